//! A text in an editor, and what is known of it.

use crate::keys::Place;
use crate::place;
use penstock_lab::experiment;
use penstock_model::{Diagnostic, Severity};
use serde_json::{Value, json};
use std::path::Path;

/// What a text is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// A script, or bare commands of tc.
    Script,
    /// An experiment.
    Experiment,
}

impl Kind {
    /// By the editor's word for the language, the name and the text. Other TOML files are not ours.
    pub(crate) fn of(language: &str, uri: &str, text: &str) -> Option<Kind> {
        let ends = |ending: &str| uri.ends_with(ending);
        if language == "toml" || ends(".toml") {
            let ours = |line: &str| {
                ["[host.", "[[link]]", "[[flow]]", "[[app]]", "[[expect]]"]
                    .iter()
                    .any(|w| line.trim_start().starts_with(w))
            };
            return text.lines().any(ours).then_some(Kind::Experiment);
        }
        let script = matches!(language, "shellscript" | "sh" | "bash" | "tc") || ends(".sh") || ends(".tc");
        script.then_some(Kind::Script)
    }
}

/// A text and what was found in it.
pub(crate) struct Text {
    kind: Kind,
    /// Its file, where it has one.
    path: String,
    uri: String,
    text: String,
    /// The answer about this very text.
    known: Option<Value>,
}

/// The path in `file:///a%20b`; the address itself where it is another.
fn path_of(uri: &str) -> String {
    let Some(rest) = uri.strip_prefix("file://") else { return uri.to_owned() };
    let mut bytes = Vec::new();
    let mut left = rest.bytes();
    while let Some(b) = left.next() {
        let hex = |n: Option<u8>| (n? as char).to_digit(16);
        let mut ahead = left.clone();
        match (b, hex(ahead.next()), hex(ahead.next())) {
            (b'%', Some(high), Some(low)) => {
                bytes.push((high * 16 + low) as u8);
                left = ahead;
            }
            _ => bytes.push(b),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn severity(level: &str) -> u32 {
    match level {
        "error" => 1,
        "note" => 3,
        _ => 2,
    }
}

impl Text {
    pub(crate) fn new(kind: Kind, uri: &str, text: &str) -> Text {
        Text { kind, path: path_of(uri), uri: uri.to_owned(), text: text.to_owned(), known: None }
    }

    pub(crate) fn becomes(&mut self, text: &str) {
        text.clone_into(&mut self.text);
        self.known = None;
    }

    pub(crate) fn is_looked_at(&self) -> bool {
        self.known.is_some()
    }

    /// Looks at the text: what is wrong in it, as diagnostics of the protocol.
    pub(crate) fn look(&mut self) -> Vec<Value> {
        self.known();
        match self.kind {
            Kind::Script => self.findings().iter().map(|f| self.diagnostic(f)).collect(),
            Kind::Experiment => self.faults(),
        }
    }

    /// What is known of a script; asked once for each text.
    fn known(&mut self) -> &Value {
        if self.known.is_none() {
            let known = match self.kind {
                Kind::Script => {
                    let question = json!({ "ask": "check", "text": self.text, "name": self.path });
                    penstock_ask::answer(&question, &mut |_| {}).unwrap_or_default()
                }
                Kind::Experiment => Value::Null,
            };
            self.known = Some(known);
        }
        self.known.as_ref().unwrap_or(&Value::Null)
    }

    /// Findings in this file, not in those it reads.
    fn findings(&self) -> Vec<Value> {
        let all = self.known.as_ref().and_then(|known| known["findings"].as_array());
        let here = |f: &&Value| f["file"].as_str().is_none_or(|file| file.is_empty() || file == self.path);
        all.into_iter().flatten().filter(here).cloned().collect()
    }

    fn diagnostic(&self, finding: &Value) -> Value {
        let number = |name: &str| finding[name].as_u64().unwrap_or(0) as u32;
        let word = |name: &str| finding[name].as_str().unwrap_or_default();
        let lines = [word("message"), word("reason"), word("fix")];
        let message: Vec<&str> = lines.into_iter().filter(|l| !l.is_empty()).collect();
        json!({
            "range": place::range(&self.text, number("line"), number("column"), number("len")),
            "severity": severity(word("level")), "code": word("code"), "source": "penstock", "message": message.join("\n"),
        })
    }

    /// What is wrong in an experiment. The files it names are those beside it.
    fn faults(&self) -> Vec<Value> {
        let Err(faults) = experiment::parse(&self.text, &self.path) else { return Vec::new() };
        let one = |f: &Diagnostic| {
            let here = f.file.is_empty() || Path::new(&f.file) == Path::new(&self.path);
            let mut message =
                if here { f.message.clone() } else { format!("{}:{}: {}", f.file, f.line, f.message) };
            if !f.help.is_empty() {
                message += &format!("\n{}", f.help);
            }
            let (line, column, len) = if here { (f.line, f.column, f.len) } else { (1, 0, 0) };
            let level = if f.severity == Severity::Error { 1 } else { 2 };
            json!({
                "range": place::range(&self.text, line, column, len), "severity": level, "source": "penstock", "message": message,
            })
        };
        faults.iter().map(one).collect()
    }

    fn line(&self, number: usize) -> &str {
        self.text.lines().nth(number).unwrap_or_default()
    }

    /// The qdisc or class of this name: what is known of it, with its device.
    fn named(&mut self, word: &str) -> Option<(String, Value)> {
        let known = self.known();
        for device in known["devices"].as_array()? {
            let name = device["name"].as_str().unwrap_or_default().to_owned();
            let lists = [("classes", "id"), ("qdiscs", "handle")];
            for (list, key) in lists {
                let found = device[list].as_array().and_then(|all| all.iter().find(|one| one[key] == word));
                if let Some(found) = found {
                    return Some((name, found.clone()));
                }
            }
        }
        None
    }

    /// The text up to a place; `whole`: to the end of the word there.
    fn before(&self, (line, character): (usize, usize), whole: bool) -> &str {
        let above: usize = self.text.split_inclusive('\n').take(line).map(str::len).sum();
        let words = self.text[above..].lines().next().unwrap_or_default();
        let mut end = place::byte(words, character);
        if whole {
            let part = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
            end += words[end..].find(|c| !part(c)).unwrap_or(words.len() - end);
        }
        &self.text[..above + end]
    }

    /// What a class or a qdisc under the pointer is; of an experiment what a key means.
    pub(crate) fn meaning(&mut self, (line, character): (usize, usize)) -> Value {
        if self.kind == Kind::Experiment {
            let said = Place::behind(self.before((line, character), true)).meaning();
            return said
                .map_or(Value::Null, |text| json!({ "contents": { "kind": "markdown", "value": text } }));
        }
        let word = place::word(self.line(line), character).to_owned();
        if word.is_empty() {
            return Value::Null;
        }
        let Some((device, found)) = self.named(&word) else { return Value::Null };
        let kind = found["kind"].as_str().unwrap_or_default();
        let mut text = format!("**{device} {word}**, {kind}\n");
        for sentence in found["promise"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            text += &format!("\n- {sentence}");
        }
        json!({ "contents": { "kind": "markdown", "value": text } })
    }

    /// The words that may follow; of an experiment the keys and the words of values.
    pub(crate) fn words(&mut self, (line, character): (usize, usize)) -> Value {
        if self.kind == Kind::Experiment {
            return Place::behind(self.before((line, character), false)).choices().into();
        }
        let whole = self.line(line);
        let before = &whole[..place::byte(whole, character)];
        let mut devices = vec!["eth0".to_owned(), "eth1".to_owned()];
        if let Some(all) = self.known.as_ref().and_then(|known| known["devices"].as_array()) {
            devices.extend(all.iter().filter_map(|d| d["name"].as_str()).map(str::to_owned));
        }
        devices.sort();
        devices.dedup();
        let choices = penstock_ask::choices(before, &devices);
        choices
            .into_iter()
            .map(|(word, about)| json!({ "label": word, "detail": about, "kind": 14 }))
            .collect()
    }

    /// Where a class, a qdisc, or a machine of an experiment is made.
    pub(crate) fn definition(&mut self, (line, character): (usize, usize)) -> Value {
        let word = place::word(self.line(line), character).to_owned();
        let at = match self.kind {
            Kind::Script => {
                self.named(&word).and_then(|(_, found)| found["line"].as_u64()).unwrap_or(0) as u32
            }
            Kind::Experiment => {
                let host = word.split(':').next().unwrap_or_default();
                let heads = [format!("[host.{host}]"), format!("[host.\"{host}\"]")];
                let found = self.text.lines().position(|l| heads.iter().any(|head| l.trim() == *head));
                found.map_or(0, |at| at as u32 + 1)
            }
        };
        if at == 0 {
            return Value::Null;
        }
        json!({ "uri": self.uri, "range": place::range(&self.text, at, 0, 0) })
    }

    /// The safe fixes of what was found in a range, and all of them at once.
    pub(crate) fn actions(&mut self, range: &Value) -> Value {
        if self.kind != Kind::Script {
            return Value::Null;
        }
        let fixed = self.known()["fixed"].as_str().map(str::to_owned);
        let line = |end: &str| range[end]["line"].as_u64().unwrap_or(0) + 1;
        let (first, last) = (line("start"), line("end"));
        let mut all: Vec<Value> = Vec::new();
        for finding in self.findings() {
            let edits: Vec<Value> =
                finding["edits"].as_array().into_iter().flatten().map(|e| self.edit(e)).collect();
            let near = finding["line"].as_u64().is_some_and(|at| (first..=last).contains(&at));
            if near && !edits.is_empty() {
                let title = format!("{}: make the fix", finding["code"].as_str().unwrap_or_default());
                all.push(json!({
                    "title": title, "kind": "quickfix", "isPreferred": true, "diagnostics": [self.diagnostic(&finding)],
                    "edit": { "changes": { self.uri.as_str(): edits } },
                }));
            }
        }
        if let Some(fixed) = fixed {
            let lines = self.text.split('\n').count();
            let whole =
                json!({ "start": { "line": 0, "character": 0 }, "end": { "line": lines, "character": 0 } });
            all.push(json!({
                "title": "Make all safe fixes", "kind": "source.fixAll",
                "edit": { "changes": { self.uri.as_str(): [{ "range": whole, "newText": fixed }] } },
            }));
        }
        all.into()
    }

    fn edit(&self, edit: &Value) -> Value {
        let number = |name: &str| edit[name].as_u64().unwrap_or(0) as u32;
        let text = edit["text"].as_str().unwrap_or_default();
        if let Some(first) = edit["remove"].as_u64() {
            let start = place::before(first as u32)["start"].clone();
            let end = place::before(number("to") + 1)["start"].clone();
            return json!({ "range": { "start": start, "end": end }, "newText": "" });
        }
        match edit["before"].as_u64() {
            Some(line) => {
                let old = self.line((line as usize).saturating_sub(1));
                let indent: String = old.chars().take_while(|c| c.is_whitespace()).collect();
                json!({ "range": place::before(line as u32), "newText": format!("{indent}{text}\n") })
            }
            None => {
                // What is put in takes the place of no character.
                let mut range = place::range(&self.text, number("line"), number("column"), number("len"));
                if number("len") == 0 {
                    range["end"] = range["start"].clone();
                }
                json!({ "range": range, "newText": text })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_texts_are_ours() {
        assert_eq!(Kind::of("shellscript", "file:///x", ""), Some(Kind::Script));
        assert_eq!(Kind::of("", "file:///a/b.tc", ""), Some(Kind::Script));
        assert_eq!(Kind::of("toml", "file:///Cargo.toml", "[package]\nname = \"x\"\n"), None);
        assert_eq!(Kind::of("toml", "file:///x.toml", "[host.a]\n"), Some(Kind::Experiment));
        assert_eq!(Kind::of("rust", "file:///x.rs", ""), None);
        assert_eq!(path_of("file:///a%20b/%c3%A9%"), "/a b/é%");
        assert_eq!(path_of("untitled:1"), "untitled:1");
    }
}
