//! Words that may follow, and what codes mean.

use crate::Faults;
use penstock_lang::tc::kinds::KINDS;
use penstock_machine::complete;
use serde::Deserialize;
use serde_json::{Value, json};

/// What has been typed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Typed {
    #[serde(rename = "ask")]
    _ask: String,
    /// The line up to the cursor.
    line: String,
    /// Devices that are there.
    #[serde(default)]
    devices: Vec<String>,
}

/// What may follow a line: words with what they mean.
pub fn choices(line: &str, devices: &[String]) -> Vec<(String, String)> {
    complete::choices(line, devices).into_iter().map(|c| (c.word, c.about)).collect()
}

pub(crate) fn words(typed: &Typed) -> Result<Value, Faults> {
    let all = choices(&typed.line, &typed.devices);
    let choice = |(word, about): &(String, String)| json!({ "word": word, "about": about });
    Ok(json!({ "choices": all.iter().map(choice).collect::<Vec<_>>() }))
}

/// The rules of check, and the kinds of qdiscs.
pub(crate) fn rules() -> Value {
    let rule = |r: &penstock_check::Rule| json!({ "code": r.code, "level": r.severity.name(), "about": r.about, "why": r.why });
    let rules: Vec<Value> = penstock_check::rules::all().map(rule).collect();
    let kinds: Vec<&str> = KINDS.iter().map(|k| k.id).collect();
    json!({ "rules": rules, "kinds": kinds, "version": env!("CARGO_PKG_VERSION") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_kind_are_offered() {
        let all = choices("tc qdisc add dev eth0 root tbf la", &[]);
        assert_eq!(all.iter().map(|(w, _)| w.as_str()).collect::<Vec<_>>(), ["latency"]);
        let rules = rules();
        assert!(rules["rules"].as_array().unwrap().iter().any(|r| r["code"] == "PS101"));
        assert!(rules["kinds"].as_array().unwrap().iter().any(|k| k == "htb"));
    }
}
