//! Questions and answers in JSON: what the page in the browser, `penstock serve` and the language server ask.
//!
//! A question is an object with the field `ask`; the answer is an object, or a list of faults with their places. All that a question
//! needs comes with it: no file is read, no clock, and the same question has the same answer wherever it is asked.
//!
//! ```
//! use serde_json::json;
//! let question = json!({ "ask": "check", "text": "tc qdisc add dev eth0 root tbf rate 1mbit\n" });
//! let answer = penstock_ask::answer(&question, &mut |_| {}).unwrap();
//! assert_eq!(answer["findings"][0]["code"], "PS001");
//! ```

mod machine;
mod run;
mod script;
mod tree;
mod words;

pub use machine::Machine;
pub use penstock_lab::run::Outcome;
pub use words::choices;

use penstock_model::{Diagnostic, Rate, Severity};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What is wrong with a question, or with what it is about.
pub type Faults = Vec<Diagnostic>;

/// Answers a question; `progress` is told the share of it that is done, 0 to 1.
///
/// # Errors
/// What is wrong, each with its place where it has one.
pub fn answer(question: &Value, progress: &mut dyn FnMut(f64)) -> Result<Value, Faults> {
    let ask = question["ask"].as_str().unwrap_or_default();
    match ask {
        "check" => script::check(&read(question)?),
        "explain" => script::explain(&read(question)?),
        "partition" => script::partition(&read(question)?),
        "diff" => script::diff(&read(question)?),
        "shell" => script::shell(&read(question)?),
        "run" => ran(question, progress).map(|(_, answer)| answer),
        "read" => run::read(&read(question)?),
        "change" => run::change(read(question)?),
        "replay" => run::replay(&read(question)?),
        "words" => words::words(&read(question)?),
        "rules" => Ok(words::rules()),
        _ => Err(fault(format!(
            "\"{ask}\" is not a question; there are check, explain, partition, diff, shell, run, read, change, replay, words and rules"
        ))),
    }
}

/// Answers a `run` question; beside the answer stands the outcome, for whoever writes its folder.
///
/// # Errors
/// As [`answer`].
pub fn ran(question: &Value, progress: &mut dyn FnMut(f64)) -> Result<(Outcome, Value), Faults> {
    run::run(&read(question)?, progress)
}

/// The same with text in and text out: `{"ok": …}`, or `{"faults": […]}`.
pub fn answer_text(question: &str, progress: &mut dyn FnMut(f64)) -> String {
    let question: Result<Value, _> = serde_json::from_str(question);
    told(match question {
        Ok(question) => answer(&question, progress),
        Err(e) => Err(fault(format!("the question is not JSON: {e}"))),
    })
}

/// What was answered, as text: `{"ok": …}`, or `{"faults": […]}`.
pub fn told(answered: Result<Value, Faults>) -> String {
    match answered {
        Ok(answer) => json!({ "ok": answer }).to_string(),
        Err(faults) => json!({ "faults": faults.iter().map(said).collect::<Vec<_>>() }).to_string(),
    }
}

/// A fault as JSON.
pub fn said(fault: &Diagnostic) -> Value {
    json!({
        "level": level(fault.severity), "file": fault.file, "line": fault.line, "column": fault.column, "len": fault.len,
        "message": fault.message, "help": fault.help, "text": fault.to_string(),
    })
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Warning => "warning",
        Severity::Error => "error",
    }
}

fn fault(text: impl Into<String>) -> Faults {
    vec![Diagnostic::error(text)]
}

/// A rate as tc writes it.
fn rate(text: &str) -> Result<Rate, Faults> {
    Rate::parse(text)
        .map_err(|_| vec![Diagnostic::error(format!("\"{text}\" is not a rate")).help("write 10mbit")])
}

fn read<T: DeserializeOwned>(question: &Value) -> Result<T, Faults> {
    serde_json::from_value(question.clone()).map_err(|e| fault(format!("the question: {e}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_question() {
        assert!(answer_text("{", &mut |_| {}).contains("not JSON"));
        assert!(answer_text("{\"ask\":\"x\"}", &mut |_| {}).contains("\\\"x\\\" is not a question"));
        let wrong = answer(&json!({ "ask": "check", "text": 3 }), &mut |_| {}).unwrap_err();
        assert!(wrong[0].message.contains("invalid type"), "{}", wrong[0]);
        let strange =
            answer(&json!({ "ask": "check", "text": "", "rat": "1mbit" }), &mut |_| {}).unwrap_err();
        assert!(strange[0].message.contains("unknown field `rat`"), "{}", strange[0]);
        let fast = answer(&json!({ "ask": "check", "text": "", "rate": "fast" }), &mut |_| {}).unwrap_err();
        assert_eq!((&*fast[0].message, &*fast[0].help), ("\"fast\" is not a rate", "write 10mbit"));
    }
}
