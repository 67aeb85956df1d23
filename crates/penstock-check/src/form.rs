//! Findings as text, JSON, SARIF and GitHub's annotations.

use crate::coverage::Coverage;
use crate::finding::{Edit, Finding, Level};
use crate::rules;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn level(severity: Level) -> &'static str {
    severity.name()
}

/// For people: each finding with the line it is about.
///
/// `texts` are files by their names; of findings in others the line is not shown.
pub fn text(findings: &[Finding], coverage: &Coverage, texts: &[(&str, &str)]) -> String {
    let files: BTreeMap<&str, Vec<&str>> = match findings.is_empty() {
        true => BTreeMap::new(),
        false => texts.iter().rev().map(|(name, text)| (*name, text.lines().collect())).collect(),
    };
    let mut out = String::new();
    for f in findings {
        let column = if f.column > 0 { format!(":{}", f.column) } else { String::new() };
        out += &format!("{}:{}{column}: {} {}: {}\n", f.file, f.line, level(f.severity), f.code, f.message);
        let lines = files.get(f.file.as_str());
        if let Some(line) = lines.and_then(|l| l.get((f.line as usize).wrapping_sub(1))) {
            let shown = line.trim_start();
            let cut = line.chars().count() - shown.chars().count();
            out += &format!("    {shown}\n");
            if f.len > 0 && f.column as usize > cut {
                let pad = f.column as usize - 1 - cut;
                out += &format!("    {:pad$}{}\n", "", "^".repeat(f.len as usize));
            }
        }
        if !f.reason.is_empty() {
            out += &format!("  why:  {}\n", f.reason);
        }
        for (at, line) in f.fix.lines().enumerate() {
            out += &format!("  {}  {line}\n", if at == 0 { "fix:" } else { "    " });
        }
        out.push('\n');
    }
    match findings.is_empty() {
        true => out.push_str("nothing found\n"),
        false => {
            out += &format!("{}\n", counted(findings));
            let mut codes: Vec<&str> = findings.iter().map(|f| f.code).collect();
            codes.sort_unstable();
            codes.dedup();
            if let [code, ..] = codes.as_slice() {
                out += &format!("more:  penstock check --explain {code}, {}\n", link(code));
            }
        }
    }
    out + &coverage.text()
}

/// `2 errors, 1 warning, 3 notes`; notes only where there are some.
pub fn counted(findings: &[Finding]) -> String {
    let count = |s: Level| findings.iter().filter(|f| f.severity == s).count();
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let notes = match count(Level::Note) {
        0 => String::new(),
        n => format!(", {}", plural(n, "note")),
    };
    format!("{}, {}{notes}", plural(count(Level::Error), "error"), plural(count(Level::Warning), "warning"))
}

/// Where the page of a code lies.
pub fn link(code: &str) -> String {
    format!("{}/blob/main/docs/checks/{code}.md", env!("CARGO_PKG_REPOSITORY"))
}

/// The format of [`json()`]: 4 since there are notes, links and edits, 3 since it has the coverage, 2 since `fix` has its name (format 1 had no number, and called it `mend`).
pub const FORMAT: u32 = 4;

/// `{"format":4,"findings":[{"code","level","file","line","column","length","message","reason","fix","link","safe","edits"}],"coverage":{…}}`.
pub fn json(findings: &[Finding], coverage: &Coverage) -> String {
    let all: Vec<Value> = findings.iter().map(value).collect();
    format!("{:#}\n", json!({ "format": FORMAT, "findings": all, "coverage": coverage.json() }))
}

/// One finding as JSON.
pub fn value(f: &Finding) -> Value {
    let edits: Vec<Value> = f.edits.iter().map(edit).collect();
    json!({
        "code": f.code, "level": level(f.severity), "file": f.file, "line": f.line, "column": f.column, "length": f.len,
        "message": f.message, "reason": f.reason, "fix": f.fix, "link": link(f.code), "safe": f.safe, "edits": edits,
    })
}

/// A change as a range of the text, from a line and column to another (behind the last character), and what stands there instead.
fn edit(e: &Edit) -> Value {
    let (from, column, to, end, text) = match e {
        Edit::Before(line, text) => (*line, 1, *line, 1, format!("{text}\n")),
        Edit::Replace(line, column, len, text) => (*line, *column, *line, column + len, text.clone()),
        Edit::Remove(from, to) => (*from, 1, to + 1, 1, String::new()),
    };
    json!({ "line": from, "column": column, "end_line": to, "end_column": end, "text": text })
}

/// A number that stays while lines are put in above: of the code, the file, the message and how many such stand before.
fn fingerprint(f: &Finding, nth: usize) -> String {
    // FNV-1a.
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for byte in format!("{}\0{}\0{}\0{nth}", f.code, f.file, f.message).bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

/// One line a finding, as gcc writes it and editors read it.
pub fn gcc(findings: &[Finding], coverage: &Coverage, name: &str) -> String {
    let one = |f: &Finding| {
        let why = if f.reason.is_empty() { String::new() } else { format!(" {}", f.reason) };
        let text = format!("{}.{why}", f.message).replace('\n', " ");
        format!("{}:{}:{}: {}: {text} [{}]\n", f.file, f.line, f.column.max(1), level(f.severity), f.code)
    };
    let unread =
        |m: &crate::coverage::Missed| format!("{}:{}:1: warning: {}\n", m.file(name), m.from, m.said());
    findings.iter().map(one).chain(coverage.missed.iter().map(unread)).collect()
}

fn xml(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            // XML 1.0 has no other control characters.
            c if c < ' ' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Message, reason and fix, a line each.
fn whole(f: &Finding) -> String {
    let all = [f.message.as_str(), f.reason.as_str(), f.fix.as_str()];
    all.into_iter().filter(|t| !t.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Checkstyle's XML: each file with its findings.
pub fn checkstyle(all: &[(&str, &[Finding], &Coverage)]) -> String {
    let mut out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<checkstyle version=\"10.0\">\n".to_owned();
    for (name, findings, coverage) in all {
        // A script may read others.
        let mut by_file: BTreeMap<&str, String> = BTreeMap::new();
        by_file.entry(name).or_default();
        for f in *findings {
            let severity = if f.severity == Level::Note { "info" } else { level(f.severity) };
            *by_file.entry(&f.file).or_default() += &format!(
                "    <error line=\"{}\" column=\"{}\" severity=\"{severity}\" message=\"{}\" source=\"penstock.{}\"/>\n",
                f.line,
                f.column,
                xml(&whole(f)),
                f.code
            );
        }
        for m in &coverage.missed {
            let text = m.said();
            *by_file.entry(m.file(name)).or_default() += &format!(
                "    <error line=\"{}\" severity=\"warning\" message=\"{}\" source=\"penstock.coverage\"/>\n",
                m.from,
                xml(&text)
            );
        }
        for (file, lines) in by_file {
            out += &format!("  <file name=\"{}\">\n{lines}  </file>\n", xml(file));
        }
    }
    out + "</checkstyle>\n"
}

/// JUnit's XML: a test case for each script, failed where a finding of this level or above is, or lines were not looked at.
pub fn junit(all: &[(&str, &[Finding], &Coverage)], least: Option<Level>) -> String {
    let fails = |f: &&Finding| least.is_some_and(|l| f.severity >= l);
    let failed = |c: &(&str, &[Finding], &Coverage)| {
        c.1.iter().any(|f| fails(&f)) || least.is_some() && !c.2.is_whole()
    };
    let failures = all.iter().filter(|c| failed(c)).count();
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n<testsuite name=\"penstock check\" tests=\"{}\" failures=\"{failures}\">\n",
        all.len()
    );
    for case in all {
        let (name, findings, coverage) = case;
        let line = |f: &Finding| {
            format!("{}:{}:{}: {} {}: {}\n", f.file, f.line, f.column, level(f.severity), f.code, whole(f))
        };
        let mut text: String = findings.iter().map(line).collect();
        for m in &coverage.missed {
            text += &format!("{}:{}: {}\n", m.file(name), m.from, m.said());
        }
        out += &format!("  <testcase classname=\"penstock.check\" name=\"{}\">\n", xml(name));
        if failed(case) {
            out +=
                &format!("    <failure message=\"{}\">{}</failure>\n", xml(&counted(findings)), xml(&text));
        } else if !text.is_empty() {
            out += &format!("    <system-out>{}</system-out>\n", xml(&text));
        }
        out += "  </testcase>\n";
    }
    out + "</testsuite>\n</testsuites>\n"
}

/// SARIF 2.1.0, as code scanners read it.
pub fn sarif(findings: &[Finding], coverage: &Coverage) -> String {
    let rule = |r: &crate::finding::Rule| {
        json!({ "id": r.code, "shortDescription": { "text": r.about }, "fullDescription": { "text": r.why }, "helpUri": link(r.code),
                "help": { "text": r.why }, "defaultConfiguration": { "level": level(r.severity) } })
    };
    let mut seen: BTreeMap<(&str, String, String), usize> = BTreeMap::new();
    let mut result = |f: &Finding| {
        let mut region = json!({ "startLine": f.line.max(1) });
        if f.column > 0 {
            region["startColumn"] = json!(f.column);
            if f.len > 0 {
                region["endColumn"] = json!(f.column + f.len);
            }
        }
        let nth =
            *seen.entry((f.code, f.file.clone(), f.message.clone())).and_modify(|n| *n += 1).or_insert(0);
        let mut one = json!({ "ruleId": f.code, "level": level(f.severity), "message": { "text": whole(f) },
                "locations": [{ "physicalLocation": { "artifactLocation": { "uri": f.file }, "region": region } }],
                "partialFingerprints": { "penstock/v1": fingerprint(f, nth) } });
        if !f.edits.is_empty() {
            let replacement = |e: &Edit| {
                let e = edit(e);
                json!({ "deletedRegion": { "startLine": e["line"], "startColumn": e["column"], "endLine": e["end_line"], "endColumn": e["end_column"] },
                        "insertedContent": { "text": e["text"] } })
            };
            let text = if f.safe { "surely right" } else { "likely" };
            one["fixes"] = json!([{ "description": { "text": format!("{text}: {}", f.fix) },
                "artifactChanges": [{ "artifactLocation": { "uri": f.file }, "replacements": f.edits.iter().map(replacement).collect::<Vec<_>>() }] }]);
        }
        one
    };
    let results: Vec<Value> = findings.iter().map(&mut result).collect();
    let driver = json!({ "name": "penstock check", "version": env!("CARGO_PKG_VERSION"), "rules": rules::all().map(rule).collect::<Vec<_>>() });
    let unread = |m: &crate::coverage::Missed| json!({ "level": "warning", "message": { "text": m.text() } });
    let notes: Vec<Value> = coverage.missed.iter().map(unread).collect();
    let run = json!({
        "tool": { "driver": driver }, "results": results,
        "invocations": [{ "executionSuccessful": coverage.is_whole(), "toolExecutionNotifications": notes }],
        "properties": { "coverage": coverage.json() },
    });
    format!(
        "{:#}\n",
        json!({ "version": "2.1.0", "$schema": "https://json.schemastore.org/sarif-2.1.0.json", "runs": [run] })
    )
}

/// Commands of GitHub's workflows: one annotation a line.
pub fn github(findings: &[Finding], coverage: &Coverage, name: &str) -> String {
    let escape = |s: &str| s.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A");
    let property = |s: &str| escape(s).replace(':', "%3A").replace(',', "%2C");
    let line = |f: &Finding| {
        let column = if f.column > 0 { format!(",col={}", f.column) } else { String::new() };
        let text = whole(f);
        let kind = if f.severity == Level::Note { "notice" } else { level(f.severity) };
        format!(
            "::{} file={},line={}{column},title={}::{}\n",
            kind,
            property(&f.file),
            f.line,
            f.code,
            escape(&text)
        )
    };
    let unread = |m: &crate::coverage::Missed| {
        let text = escape(&m.said());
        format!(
            "::warning file={},line={},endLine={},title=not looked at::{text}\n",
            property(m.file(name)),
            m.from,
            m.to
        )
    };
    findings.iter().map(line).chain(coverage.missed.iter().map(unread)).collect()
}
