//! A question and its answer: what is wrong in a script.

use serde_json::json;

fn main() {
    let script = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
                  tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n";
    let question = json!({ "ask": "check", "text": script });
    let answer = penstock_ask::answer(&question, &mut |_| {}).expect("it is a question");
    let findings = answer["findings"].as_array().expect("a list");
    for finding in findings {
        println!("line {}: {}: {}", finding["line"], finding["code"], finding["message"]);
    }
    assert!(!findings.is_empty(), "the default class is missing");
}
