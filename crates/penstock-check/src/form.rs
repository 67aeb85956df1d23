//! Findings as text, JSON, SARIF and GitHub's annotations.

use crate::coverage::Coverage;
use crate::finding::Finding;
use crate::rules;
use penstock_model::Severity;
use serde_json::{Value, json};

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

/// For people: each finding with the line it is about.
pub fn text(findings: &[Finding], coverage: &Coverage, source: &str) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let mut out = String::new();
    for f in findings {
        let column = if f.column > 0 { format!(":{}", f.column) } else { String::new() };
        out += &format!("{}:{}{column}: {} {}: {}\n", f.file, f.line, level(f.severity), f.code, f.message);
        if let Some(line) = lines.get((f.line as usize).wrapping_sub(1)) {
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
    let count = |s: Severity| findings.iter().filter(|f| f.severity == s).count();
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    match findings.is_empty() {
        true => out.push_str("nothing found\n"),
        false => {
            out += &format!(
                "{}, {}\n",
                plural(count(Severity::Error), "error"),
                plural(count(Severity::Warning), "warning")
            )
        }
    }
    out + &coverage.text()
}

/// The format of [`json()`]: 3 since it has the coverage, 2 since `fix` has its name (format 1 had no number, and called it `mend`).
pub const FORMAT: u32 = 3;

/// `{"format":3,"findings":[{"code","level","file","line","column","message","reason","fix"}],"coverage":{…}}`.
pub fn json(findings: &[Finding], coverage: &Coverage) -> String {
    let all: Vec<Value> = findings.iter().map(value).collect();
    format!("{:#}\n", json!({ "format": FORMAT, "findings": all, "coverage": coverage.json() }))
}

/// One finding as JSON.
pub fn value(f: &Finding) -> Value {
    json!({
        "code": f.code, "level": level(f.severity), "file": f.file, "line": f.line, "column": f.column,
        "message": f.message, "reason": f.reason, "fix": f.fix,
    })
}

/// SARIF 2.1.0, as code scanners read it.
pub fn sarif(findings: &[Finding], coverage: &Coverage) -> String {
    let rule = |r: &crate::finding::Rule| {
        json!({ "id": r.code, "shortDescription": { "text": r.about }, "fullDescription": { "text": r.why },
                "defaultConfiguration": { "level": level(r.severity) } })
    };
    let result = |f: &Finding| {
        let mut region = json!({ "startLine": f.line.max(1) });
        if f.column > 0 {
            region["startColumn"] = json!(f.column);
            if f.len > 0 {
                region["endColumn"] = json!(f.column + f.len);
            }
        }
        let text = [f.message.as_str(), f.reason.as_str(), f.fix.as_str()]
            .into_iter()
            .filter(|t| !t.is_empty())
            .collect::<Vec<_>>()
            .join("\n");
        json!({ "ruleId": f.code, "level": level(f.severity), "message": { "text": text },
                "locations": [{ "physicalLocation": { "artifactLocation": { "uri": f.file }, "region": region } }] })
    };
    let driver = json!({ "name": "penstock check", "version": env!("CARGO_PKG_VERSION"), "rules": rules::all().map(rule).collect::<Vec<_>>() });
    let unread = |m: &crate::coverage::Missed| json!({ "level": "warning", "message": { "text": format!("lines {}-{} not reached: {}", m.from, m.to, m.why) } });
    let notes: Vec<Value> = coverage.missed.iter().map(unread).collect();
    let run = json!({
        "tool": { "driver": driver }, "results": findings.iter().map(result).collect::<Vec<_>>(),
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
        let text = [f.message.as_str(), f.reason.as_str(), f.fix.as_str()]
            .into_iter()
            .filter(|t| !t.is_empty())
            .collect::<Vec<_>>()
            .join("\n");
        format!(
            "::{} file={},line={}{column},title={}::{}\n",
            level(f.severity),
            property(&f.file),
            f.line,
            f.code,
            escape(&text)
        )
    };
    let unread = |m: &crate::coverage::Missed| {
        let text = escape(&format!("{} network commands not looked at: {}", m.commands, m.why));
        format!(
            "::warning file={},line={},endLine={},title=not looked at::{text}\n",
            property(name),
            m.from,
            m.to
        )
    };
    findings.iter().map(line).chain(coverage.missed.iter().map(unread)).collect()
}
