//! Cases about packets that arrive: filters at the ingress hook, what they let in, and what their actions do.

use super::actions::{action, police_words};
use super::classify::u32_words;
use super::dice::Dice;
use super::edits::edit;
use super::kinds::rate_bits;
use super::matches::{flower, program, tree};
use super::packets::{Traffic, sequence};
use serde_json::{Value, json};

/// What is done to packets that a filter takes.
fn done(d: &mut Dice, bits: u64) -> String {
    let one = |d: &mut Dice| match d.range(0, 9) {
        0..=3 => format!(" action {}", police_words(d, bits)),
        4..=6 => format!(" {}", action(d, bits, true)),
        7 => format!(
            " action mirred {}",
            d.pick(&["ingress mirror dev v1", "ingress redirect dev v1", "egress redirect dev lo"])
        ),
        _ => format!(" action {}", edit(d)),
    };
    (0..d.range(1, 2)).map(|_| one(d)).collect()
}

/// A case.
pub fn case(d: &mut Dice) -> Value {
    let (hook, place) =
        if d.chance(50) { ("clsact", "ingress") } else { ("handle ffff: ingress", "parent ffff:") };
    let mut setup = vec![format!("qdisc add dev $DEV {hook}")];
    setup.extend((0..=3).map(|n| format!("chain add dev $DEV {place} chain {n}")));
    let bits = if d.chance(80) { rate_bits(d, 4_000_000) } else { 1_000_000 };
    for n in 0..d.range(1, 5) {
        let chain = if d.chance(20) { format!(" chain {}", d.range(1, 3)) } else { String::new() };
        let protocol = d.pick(&["ip", "ip", "ip", "all", "ipv6"]);
        let own = match protocol {
            "ip" => 0,
            "all" => 1,
            _ => 2,
        };
        let kind = d.range(0, 5);
        // A priority belongs to one protocol and one kind.
        let prio = 100 * d.range(1, 3) + 10 * kind + own + if kind == 5 { 3 * n } else { 0 };
        let head = format!("filter add dev $DEV {place}{chain} protocol {protocol} prio {prio}");
        let target = match d.chance(60) {
            true => format!(" classid {}:{}", d.pick(&["1", "ffff", "0"]), d.range(1, 9)),
            false => String::new(),
        };
        let what = match kind {
            0 => format!("flower {}", flower(d, protocol).trim_start_matches("flower")),
            1 => format!("u32 {}", u32_words(d, protocol == "ipv6")),
            2 => format!("bpf bytecode {}", program(d)),
            3 => format!("basic match '{}'", tree(d, 1)),
            4 => format!("handle {} fw", n + 1),
            _ => "matchall".to_owned(),
        };
        let (head, what) = match what.split_once(" fw") {
            Some((handle, _)) if kind == 4 => (format!("{head} {handle}"), "fw".to_owned()),
            _ => (head, what),
        };
        let target = if kind == 2 { target.replace("classid", "flowid") } else { target };
        setup.push(format!("{head} {what}{target}{}", done(d, bits)));
    }
    let bytes_per_s = (bits.max(64_000) / 8 * 2).min(2_000_000);
    let traffic = Traffic { bytes_per_s, most: 100, span_us: 600_000, flows: 5, mixed: true };
    let packets = sequence(d, traffic, |d, m| {
        if d.chance(40) {
            m.insert("mark".into(), json!(d.range(0, 5)));
        }
    });
    json!({"release": "arrive", "setup": setup, "packets": packets, "filters": [place]})
}
