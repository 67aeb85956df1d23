//! Random rules of `iptables`, `ip6tables` and `nft` as real Linux takes, refuses and lists them (`vectors/netfilter/rules.jsonl`, made by
//! `vectors/netfilter/rules.py`).

use penstock_host::Host;
use penstock_model::{Kernel, Time};
use serde_json::Value;

/// Steps at which the two go apart, by case, and why. The list may only shrink.
const APART: &[(&str, &[(u64, usize)])] = &[
    (
        "the recorder's kernel has no events of connections",
        &[(19, 10), (19, 12), (19, 13), (19, 14), (24, 18), (24, 27), (24, 28), (24, 29)],
    ),
    ("names of ports that only the other protocol has", &[(110, 8), (110, 12), (110, 13), (110, 14)]),
    ("a device within a set that is not there", &[(210, 10), (210, 22)]),
    (
        "a line with two faults, of which the other is told",
        &[(212, 16), (230, 12), (235, 16), (237, 19), (240, 15), (240, 17)],
    ),
    ("nft forgets `meta nfproto` behind a joined key", &[(241, 22)]),
];

/// What a step says: its output, the line in which it is refused, its status. How the place is underlined is not compared.
fn said(out: &str, err: &str, status: i64) -> (String, String, i64) {
    (out.to_owned(), err.lines().next().unwrap_or_default().to_owned(), status)
}

#[test]
fn rules_are_taken_refused_and_listed_as_linux_does() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/netfilter/rules.jsonl");
    let text = std::fs::read_to_string(path).expect("the recorded cases");
    let (mut cases, mut alike, mut wrong) = (0, 0, Vec::new());
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        let seed = case["seed"].as_u64().expect("a seed");
        let mut host = Host::new("r", Kernel::V6_12, 1);
        host.add_device("eth0");
        host.add_device("eth1");
        cases += 1;
        for (n, step) in case["steps"].as_array().expect("steps").iter().enumerate() {
            let line = step["run"].as_str().expect("a command");
            let done = host.exec(line, Time::from_ns(n as i64 * 1_000_000));
            let field = |name: &str| step[name].as_str().unwrap_or_default();
            let theirs = said(field("out"), field("err"), step["status"].as_i64().expect("a status"));
            let ours = said(&done.stdout, &done.stderr, i64::from(done.status));
            let known = APART.iter().any(|(_, steps)| steps.contains(&(seed, n)));
            match (ours == theirs, known) {
                (true, false) => alike += 1,
                (true, true) => {
                    wrong.push(format!("seed {seed} step {n} is alike now: take it off the list"))
                }
                (false, true) => {}
                (false, false) => {
                    wrong.push(format!("seed {seed} step {n}: {line}\nours {ours:#?}\ntheirs {theirs:#?}"))
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {cases}\n{}", wrong.len(), wrong.join("\n\n"));
    assert!(cases >= 120 && alike >= 4050, "{cases} {alike}");
}
