//! Questions about a shaping script.

use crate::{Faults, fault, tree};
use penstock_check::explain::{self, Probe};
use penstock_check::{Edit, Facts, Settings, Which, examine, facts, fixed, form};
use penstock_machine::script::{Kept, on_a_fresh_machine};
use penstock_model::{Kernel, Rate};
use penstock_shell::Script;
use serde::Deserialize;
use serde_json::{Value, json};

/// A script and what it is read against.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    #[serde(rename = "ask")]
    _ask: String,
    /// The script's text.
    text: String,
    /// Its name; that of a file where it has one.
    #[serde(default = "nameless")]
    name: String,
    /// Other files it finds: path and text.
    #[serde(default)]
    files: Vec<(String, String)>,
    /// Its arguments.
    #[serde(default)]
    args: Vec<String>,
    /// The device in question.
    #[serde(default)]
    dev: Option<String>,
    /// Rate of that device's link, as tc writes it.
    #[serde(default)]
    rate: Option<String>,
    /// The kernel.
    #[serde(default)]
    kernel: Option<String>,
    /// `explain`: the packet.
    #[serde(default)]
    packet: Option<String>,
    /// `diff`: the new script.
    #[serde(default)]
    after: Option<String>,
}

fn nameless() -> String {
    "script".to_owned()
}

impl About {
    fn settings(&self) -> Result<Settings, Faults> {
        let kernel = match self.kernel.as_deref().filter(|k| !k.is_empty()) {
            Some(name) => Kernel::parse(name).map_err(fault)?,
            None => Kernel::default(),
        };
        let rate = self.rate.as_deref().filter(|r| !r.is_empty());
        let rate = rate.map(crate::rate).transpose()?;
        let dev = self.dev.clone().filter(|d| !d.is_empty());
        Ok(Settings { kernel, dev, rate: rate.map(Rate::bytes_per_s) })
    }
    fn script(&self, text: &str) -> Script {
        let (name, files, args) = (self.name.clone(), self.files.clone(), self.args.clone());
        Script { text: text.to_owned(), name, args, files, ..Script::default() }
    }
    fn dev(&self) -> Result<&str, Faults> {
        let dev = self.dev.as_deref().filter(|d| !d.is_empty());
        dev.ok_or_else(|| fault("name the device that packets leave by: \"dev\""))
    }
    fn facts(&self, text: &str) -> Result<Facts, Faults> {
        Ok(facts(&self.script(text), &self.settings()?))
    }
}

fn edit(edit: &Edit) -> Value {
    match edit {
        Edit::Before(line, text) => json!({ "before": line, "text": text }),
        Edit::Replace(line, column, len, text) => {
            json!({ "line": line, "column": column, "len": len, "text": text })
        }
        Edit::Remove(from, to) => json!({ "remove": from, "to": to, "text": "" }),
    }
}

/// What is wrong in it, and what it leaves.
pub(crate) fn check(about: &About) -> Result<Value, Faults> {
    let (script, settings) = (about.script(&about.text), about.settings()?);
    let answer = examine(&script, &settings);
    let finding = |f: &penstock_check::Finding| {
        let mut value = form::value(f);
        value["len"] = f.len.into();
        value["edits"] = f.edits.iter().map(edit).collect();
        value
    };
    let (fixed, count) = fixed(&about.text, &answer.findings, Which::Safe);
    let facts = facts(&script, &settings);
    Ok(json!({
        "findings": answer.findings.iter().map(finding).collect::<Vec<_>>(),
        "coverage": answer.coverage.json(), "coverage_text": answer.coverage.text(), "status": answer.exit_status(),
        "fixed": (count > 0).then_some(fixed), "fixes": count,
        "devices": tree::devices(&facts), "stopped": facts.stopped, "stderr": facts.stderr,
    }))
}

/// The way of a packet.
pub(crate) fn explain(about: &About) -> Result<Value, Faults> {
    let packet = about.packet.as_deref().unwrap_or_default();
    let probe = Probe::parse(packet).map_err(fault)?;
    let facts = about.facts(&about.text)?;
    let explained = explain::explain(&facts, about.dev()?, &probe).map_err(fault)?;
    let mut value = explained.json();
    value["place"] = explained.place().into();
    value["text"] = explained.text().into();
    value["stopped"] = json!(facts.stopped);
    Ok(value)
}

/// Which packets reach each class.
pub(crate) fn partition(about: &About) -> Result<Value, Faults> {
    let facts = about.facts(&about.text)?;
    let parts = explain::partition(&facts, about.dev()?).map_err(fault)?;
    let mut value = parts.json();
    value["text"] = parts.text().into();
    value["stopped"] = json!(facts.stopped);
    Ok(value)
}

/// What changes from one script to the other.
pub(crate) fn diff(about: &About) -> Result<Value, Faults> {
    let after = about.after.as_deref().ok_or_else(|| fault("diff needs the new script: \"after\""))?;
    let (before, after) = (about.facts(&about.text)?, about.facts(after)?);
    let lines = explain::diff(&before, &after, about.dev()?).map_err(fault)?;
    Ok(json!({ "lines": lines, "stopped": before.stopped.or(after.stopped) }))
}

/// Runs it on a fresh machine: what it prints, and how it ends.
pub(crate) fn shell(about: &About) -> Result<Value, Faults> {
    let mut kept = Kept::default();
    let kernel = about.settings()?.kernel;
    let done = on_a_fresh_machine(&about.script(&about.text), kernel, &[], &mut kept);
    let status = done.map(|(_, _, status)| status).map_err(fault)?;
    Ok(json!({ "stdout": kept.stdout, "stderr": kept.stderr, "status": status }))
}

#[cfg(test)]
mod tests {
    use crate::answer;
    use serde_json::{Value, json};

    const SHAPER: &str = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                          tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
                          tc class add dev eth0 parent 1:1 classid 1:10 htb rate 600kbit ceil 1mbit\n\
                          tc class add dev eth0 parent 1:1 classid 1:20 htb rate 400kbit ceil 1mbit\n\
                          tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10\n";

    fn ask(question: Value) -> Value {
        answer(&question, &mut |_| {}).unwrap()
    }

    #[test]
    fn a_script_is_checked_and_its_tree_told() {
        let answer = ask(json!({ "ask": "check", "text": SHAPER }));
        let device = &answer["devices"][0];
        assert_eq!((device["name"].as_str(), device["filters"].as_u64()), (Some("eth0"), Some(1)));
        let class = device["classes"].as_array().unwrap().iter().find(|c| c["id"] == "1:10").unwrap();
        assert_eq!((class["id"].as_str(), class["parent"].as_str()), (Some("1:10"), Some("1:1")));
        assert_eq!(
            (class["rate_bit_s"].as_u64(), class["ceil_bit_s"].as_u64()),
            (Some(600_000), Some(1_000_000))
        );
        assert_eq!((class["borrows"].as_str(), class["line"].as_u64()), (Some("1:1"), Some(3)));
        assert!(class["promise"][0].as_str().unwrap().starts_with("guaranteed 600kbit"), "{class}");
    }

    #[test]
    fn safe_fixes_come_with_their_places() {
        let text = "tc qdisc add dev eth0 root handle 1: htb default 10\n\
                    tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n";
        let answer = ask(json!({ "ask": "check", "text": text }));
        let all = answer["findings"].as_array().unwrap();
        let first = all.iter().find(|f| f["len"] != 0).unwrap();
        assert!(first["line"].as_u64() > Some(0) && first["column"].as_u64() > Some(0), "{first}");
        assert_eq!(answer["fixed"].is_null(), all.iter().all(|f| f["safe"] == false));
    }

    #[test]
    fn a_packet_finds_its_class() {
        let question = json!({ "ask": "explain", "text": SHAPER, "dev": "eth0", "packet": "tcp 10.0.0.1:40000 > 10.0.0.2:22" });
        assert_eq!(ask(question)["class"], "1:10");
        let parts = ask(json!({ "ask": "partition", "text": SHAPER, "dev": "eth0" }));
        assert!(parts["text"].as_str().unwrap().contains("1:10"), "{parts}");
        let after = SHAPER.replace("dport 22", "dport 23");
        let changed = ask(json!({ "ask": "diff", "text": SHAPER, "after": after, "dev": "eth0" }));
        assert!(!changed["lines"].as_array().unwrap().is_empty());
        let none = answer(
            &json!({ "ask": "explain", "text": SHAPER, "packet": "tcp 1.2.3.4:1 > 5.6.7.8:2" }),
            &mut |_| {},
        );
        assert!(none.unwrap_err()[0].message.contains("name the device"));
    }
}
