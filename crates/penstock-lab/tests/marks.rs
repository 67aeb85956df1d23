//! What qdiscs mark, by their own count: in the record and over time.

use penstock_lab::experiment;
use penstock_lab::run::{self, Outcome};

/// An upload that speaks ECN through a router whose card has a slow line; `setup` is what stands on that card.
fn through(setup: &str, queues: u32) -> Outcome {
    let text = format!(
        r#"
title = "Marks"
duration = "3s"
[host.a]
eth0 = "10.0.1.1/24"
via = "10.0.1.2"
setup = ["sysctl -w net.ipv4.tcp_ecn=1"]
[host.r]
eth0 = "10.0.1.2/24"
eth1 = "10.0.2.1/24"
setup = ["sysctl -w net.ipv4.ip_forward=1"{setup}]
[host.b]
eth0 = "10.0.2.2/24"
via = "10.0.2.1"
setup = ["sysctl -w net.ipv4.tcp_ecn=1"]
[[link]]
ends = ["a:eth0", "r:eth0"]
rate = "100mbit"
delay = "5ms"
[[link]]
ends = [{{ end = "r:eth1", tx_queues = {queues} }}, "b:eth0"]
rate = "5mbit"
delay = "5ms"
[[flow]]
name = "up"
from = "a"
to = "b"
count = 4
load = "greedy"
"#
    );
    let experiment = experiment::parse(&text, "marks.toml").unwrap_or_else(|d| panic!("{}", d[0]));
    let mut options = run::Options { seed: None, progress: &mut |_| {}, warn: &mut |_| {} };
    run::run(&experiment, &mut options).unwrap_or_else(|d| panic!("{setup}: {}", d[0]))
}

/// Marks so far at the end of the series.
fn marks(outcome: &Outcome, object: &str) -> f64 {
    let points = outcome.series.points("r", object, "marks_packets");
    assert!(points.windows(2).all(|w| w[0].1 <= w[1].1), "{object} counts up");
    points.last().map_or(0.0, |p| p.1)
}

#[test]
fn every_kind_that_marks_tells_how_many_and_when() {
    for words in [
        "red limit 100000 min 8000 max 24000 avpkt 1000 burst 12 probability 0.1 bandwidth 5mbit ecn",
        "fq_codel",
        "codel ecn",
        "pie ecn target 5ms",
        "fq_pie ecn target 5ms ecn_prob 99",
        "choke limit 100 min 5 max 20 avpkt 1000 burst 8 probability 0.1 bandwidth 5mbit ecn",
        "sfb",
        "cake bandwidth 4mbit",
        "sfq redflowlimit 100000 min 4000 max 16000 avpkt 1000 burst 6 probability 0.2 ecn",
        "fq ce_threshold 1ms",
    ] {
        let outcome = through(&format!(r#", "tc qdisc add dev eth1 root handle 8: {words}""#), 1);
        let device = outcome.record.devices.iter().find(|d| d.host == "r" && d.dev == "eth1").unwrap();
        let counted = device.qdiscs[0].marked_packets.unwrap_or_else(|| panic!("{words} counts no marks"));
        assert!(counted > 0, "{words} marked nothing");
        let kind = words.split(' ').next().unwrap();
        let object = format!("eth1 {kind} 8:");
        // The last sample is at the end of the run.
        assert_eq!(marks(&outcome, &object), counted as f64, "{words}");
        assert!(outcome.series.points("r", &object, "drops_packets").len() > 50, "{words}");
    }
}

#[test]
fn marks_of_several_qdiscs_are_told_apart() {
    let tree = r#",
        "tc qdisc add dev eth1 root handle 1: htb default 20",
        "tc class add dev eth1 parent 1: classid 1:10 htb rate 2mbit ceil 4mbit",
        "tc class add dev eth1 parent 1: classid 1:20 htb rate 2mbit ceil 4mbit",
        "tc filter add dev eth1 parent 1: protocol ip u32 match ip dport 5100 0xffff flowid 1:10",
        "tc qdisc add dev eth1 parent 1:10 handle 10: fq_codel",
        "tc qdisc add dev eth1 parent 1:20 handle 20: codel ecn""#;
    let outcome = through(tree, 1);
    let device = outcome.record.devices.iter().find(|d| d.host == "r" && d.dev == "eth1").unwrap();
    let of = |handle: &str| device.qdiscs.iter().find(|q| q.handle == handle).unwrap().marked_packets;
    assert_eq!(of("1:"), None, "htb marks nothing and says nothing of marks");
    let (one, other) = (marks(&outcome, "eth1 fq_codel 10:"), marks(&outcome, "eth1 codel 20:"));
    assert_eq!((of("10:"), of("20:")), (Some(one as u64), Some(other as u64)));
    assert!(one + other > 0.0);
    assert!(outcome.series.points("r", "eth1 htb 1:", "marks_packets").is_empty());
    // The card counts only frames that left, so its count is at most as large.
    assert!(marks(&outcome, "eth1") <= one + other);
}

/// The queues of `mq` have no handles; each is told by its class.
#[test]
fn queues_without_a_handle_are_told_by_their_class() {
    let outcome = through("", 2);
    let device = outcome.record.devices.iter().find(|d| d.host == "r" && d.dev == "eth1").unwrap();
    let kinds: Vec<(&str, &str)> =
        device.qdiscs.iter().map(|q| (q.kind.as_str(), q.parent.as_str())).collect();
    assert_eq!(kinds.iter().filter(|k| k.0 != "mq").count(), 2, "{kinds:?}");
    for q in device.qdiscs.iter().filter(|q| q.kind != "mq") {
        let object = format!("eth1 {} 0: in {}", q.kind, q.parent);
        let drops = outcome.series.points("r", &object, "drops_packets");
        assert_eq!(drops.iter().map(|p| p.1).sum::<f64>(), q.drops as f64, "{object}");
        assert_eq!(marks(&outcome, &object), q.marked_packets.unwrap_or(0) as f64, "{object}");
        assert!(!drops.is_empty(), "{object}");
    }
}
