//! Findings about a shaping script.

use penstock_check::{Settings, check};
use penstock_shell::Script;

const TEXT: &str = "tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit
";

fn main() {
    let script = Script { text: TEXT.to_owned(), name: "shape.sh".to_owned(), ..Script::default() };
    let findings = check(&script, &Settings::default());
    for finding in &findings {
        println!("shape.sh:{}: {}: {}", finding.line, finding.code, finding.message);
    }
    // A class that promises more than its parent has.
    assert_eq!((findings[0].code, findings[0].line), ("PS101", 3));
}
