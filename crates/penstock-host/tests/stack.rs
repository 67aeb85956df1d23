//! A router that translates addresses, packet by packet against what a real one did (`vectors/stack`).
//!
//! Where the kernel chose a port at random, ours may be another of the same kind; from then on it stands for that one.

#[path = "stack/packet.rs"]
mod packet;
#[path = "stack/play.rs"]
mod play;

use play::Case;
use serde_json::Value;

fn cases(file: &str) -> Vec<Value> {
    let path = format!("{}/../../vectors/stack/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    text.lines().map(|line| serde_json::from_str(line).expect("a case in JSON")).collect()
}

#[test]
fn packets_are_translated_as_linux_does() {
    replay("nat.jsonl", 100, 1500);
}

/// The same of IPv6 (`vectors/stack/nat6.py`).
#[test]
fn packets_of_ipv6_are_translated_as_linux_does() {
    replay("nat6.jsonl", 90, 1300);
}

/// All cases of a file agree, and there are at least so many, and packets.
#[track_caller]
fn replay(file: &str, least: usize, least_packets: usize) {
    let wanted: Option<u64> = std::env::var("PENSTOCK_STACK").ok().and_then(|n| n.parse().ok());
    let all = cases(file);
    let mut packets = 0;
    let mut wrong = Vec::new();
    for case in &all {
        if wanted.is_some_and(|seed| case["seed"] != seed) {
            continue;
        }
        match Case::new(case).play(wanted.is_some()) {
            Ok(seen) => packets += seen,
            Err(said) => wrong.push(format!("seed {}: {said}", case["seed"])),
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases differ\n{}", wrong.len(), all.len(), wrong.join("\n"));
    assert!(
        wanted.is_some() || (all.len() >= least && packets >= least_packets),
        "{} cases, {packets} packets",
        all.len()
    );
}
