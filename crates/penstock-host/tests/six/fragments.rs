//! Fragments, against `vectors/stack/fragments6.jsonl` (made by `vectors/stack/fragments6.py`): those for the router, those it sends on as they are or, where
//! it tracks connections, put together and cut again, those it makes, errors about them, and what its rules have counted.

use super::*;

/// What counters of rules say, in the order of the rules.
fn counters(rules: &str) -> Vec<(u64, u64)> {
    let mut words = rules.split_whitespace();
    let mut out = Vec::new();
    while let Some(word) = words.next() {
        if word == "counter" && words.next() == Some("packets") {
            let packets = words.next().and_then(|n| n.parse().ok()).expect("a number of packets");
            let bytes = words.nth(1).and_then(|n| n.parse().ok()).expect("a number of bytes");
            out.push((packets, bytes));
        }
    }
    out
}

fn play(case: &Value) -> Result<usize, String> {
    let mut router = Case::new(&case["setup"]);
    router.cuts = true;
    let seen = router.play(case["steps"].as_array().expect("steps"))?;
    let theirs: Vec<(u64, u64)> = serde_json::from_value(case["counters"].clone()).expect("counters");
    let listed = router.host.exec("nft list ruleset", router.now).stdout;
    match counters(&listed) {
        ours if ours == theirs => Ok(seen),
        ours => Err(format!("counters\n  linux {theirs:?}\n  ours  {ours:?}\n{listed}")),
    }
}

#[test]
fn fragments_go_as_linux_s_do() {
    let path = format!("{}/../../vectors/stack/fragments6.jsonl", env!("CARGO_MANIFEST_DIR"));
    let all = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let (mut count, mut packets, mut fragments, mut wrong) = (0, 0, 0, Vec::new());
    for line in all.lines() {
        let case: Value = serde_json::from_str(line).expect("a case in JSON");
        count += 1;
        fragments += line.matches("\"frag\"").count();
        match play(&case) {
            Ok(seen) => packets += seen,
            Err(said) => wrong.push(format!("seed {}: {said}", case["seed"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {count} cases differ\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 60 && packets >= 800 && fragments >= 2000, "{count} {packets} {fragments}");
}
