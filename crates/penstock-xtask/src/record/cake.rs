//! Cases about cake.

use super::dice::Dice;
use super::kinds::{Service, rate_bits};
use super::packets::sequence;
use serde_json::{Map, Value, json};

/// The shaper's rate of a case.
struct Shape {
    /// Bits a second; none: unlimited.
    bits: Option<u64>,
}

/// Words of cake; `autorate` may be among them.
fn words(d: &mut Dice, shape: &Shape, autorate: bool) -> String {
    let mut o = String::from("cake");
    match shape.bits {
        Some(bits) => o += &format!(" bandwidth {bits}bit"),
        None if d.chance(50) => o += " unlimited",
        None => {}
    }
    if autorate {
        o += " autorate-ingress";
    }
    let mut maybe = |percent, choices: &[&str]| {
        if d.chance(percent) {
            o += &format!(" {}", d.pick(choices));
        }
    };
    maybe(65, &["besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"]);
    maybe(
        60,
        &[
            "flowblind",
            "srchost",
            "dsthost",
            "hosts",
            "flows",
            "dual-srchost",
            "dual-dsthost",
            "triple-isolate",
        ],
    );
    maybe(
        50,
        &["rtt 1ms", "rtt 20ms", "rtt 7ms", "lan", "metro", "regional", "internet", "datacentre", "oceanic"],
    );
    maybe(30, &["wash", "nowash"]);
    maybe(25, &["ingress", "egress"]);
    maybe(10, &["nat", "nonat"]);
    maybe(25, &["ack-filter", "ack-filter-aggressive", "no-ack-filter"]);
    maybe(10, &["split-gso", "no-split-gso"]);
    maybe(25, &["fwmark 0xf", "fwmark 0x30", "fwmark 1", "fwmark 0xffffffff"]);
    maybe(25, &["atm", "ptm", "noatm"]);
    maybe(
        30,
        &[
            "raw",
            "conservative",
            "ethernet",
            "docsis",
            "pppoe-ptm",
            "bridged-llcsnap",
            "overhead 18",
            "overhead -14",
            "overhead 44",
            "overhead 0",
        ],
    );
    maybe(20, &["mpu 64", "mpu 256", "mpu 84"]);
    if d.chance(30) {
        o += &format!(" memlimit {}", d.scale(1000, 200_000));
    }
    o
}

/// What a packet of a case has beside its flow.
fn dress(d: &mut Dice, m: &mut Map<String, Value>) {
    if d.chance(60) {
        m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0xb9, 0x2a, 0x04, 0x20, 0x88, 0xb8, 0xc0, 0x10])));
    } else if d.chance(20) {
        m.insert("tos".into(), json!(d.range(0, 255)));
    }
    if d.chance(25) {
        m.insert("priority".into(), json!(format!("1:{:x}", d.range(0, 9))));
    }
}

/// Commands that give TCP packets of each mark another acknowledgement and other flags: the packets themselves all say the same.
fn acknowledge(d: &mut Dice, setup: &mut Vec<String>) {
    setup.push("qdisc add dev $DEV clsact".to_owned());
    for mark in 1..=6 {
        let flags = d.pick(&["0x5010", "0x5010", "0x5010", "0x5050", "0x5018"]);
        setup.push(format!(
            "filter add dev $DEV egress protocol ip prio 1 handle {mark} fw action pedit munge offset 28 u32 set {} munge offset 32 u16 set {flags}",
            1000 * mark
        ));
    }
}

/// A case: by their hash one flow, or several that filters name.
pub fn case(d: &mut Dice) -> Value {
    let limited = d.chance(75);
    let shape = Shape { bits: limited.then(|| rate_bits(d, 20_000_000).max(64_000)) };
    let own = shape.bits.map_or(250_000, |bits| bits / 8);
    let mut s = Service::choose(d, if limited { 60 } else { 10 }, own);
    s.cap(own.min(1_250_000));
    let autorate = d.chance(5);
    let acks = d.chance(15);
    if limited || acks {
        s = s.unblocked();
    }
    let mut line = words(d, &shape, autorate);
    if acks && !line.contains("ack-filter") {
        line += d.pick(&[" ack-filter", " ack-filter-aggressive"]);
    }
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: {line}")];
    if d.chance(20) {
        setup.push(format!("qdisc change dev $DEV $PARENT handle 1: {}", words(d, &shape, false)));
    }
    let filtered = !acks && d.chance(60);
    if filtered {
        let one_host = d.chance(50);
        for n in 1..=6 {
            let flow = d.pick(&[1, 2, 3, 9, 10, 0x400, 0x401, 0]);
            let host = if one_host { 1 } else { d.pick(&[1, 2, 3, 0x10, 0x400, 0x401]) };
            let verdict = if d.chance(5) { " action drop" } else { "" };
            setup.push(format!(
                "filter add dev $DEV parent 1: protocol all prio 1 handle {n} fw classid {host:x}:{flow:x}{verdict}"
            ));
        }
        setup.push("filter add dev $DEV parent 1: protocol all prio 9 matchall classid 1:5".to_owned());
    }
    if acks {
        acknowledge(d, &mut setup);
    }
    let mut t = s.traffic(300, if filtered { 5 } else { 2 }, !acks);
    t.bytes_per_s = t.bytes_per_s.min(own) * d.range(8, 30) / 10;
    if d.chance(60) {
        t.span_us = t.span_us.max(d.range(400_000, 3_000_000));
    }
    let packets = sequence(d, t, |d, m| {
        dress(d, m);
        if filtered {
            m.insert("mark".into(), json!(d.range(0, 6)));
        } else if acks {
            m.insert("mark".into(), json!(d.range(1, 6)));
            m.insert("proto".into(), json!("tcp"));
        } else if d.chance(30) {
            m.insert("mark".into(), json!(d.range(0, 40)));
        }
    });
    let packets = if acks { bare(d, packets) } else { packets };
    s.spec(setup, packets)
}

/// Most packets as short as an acknowledgement without data.
fn bare(d: &mut Dice, mut packets: Vec<Value>) -> Vec<Value> {
    for packet in &mut packets {
        if d.chance(80) {
            packet["len"] = json!(54);
        }
    }
    packets
}

/// Many flows and hosts by their hashes, bulk and sparse, and BLUE.
pub fn dice(d: &mut Dice) -> Value {
    let flows = d.pick(&["triple-isolate", "dual-srchost", "dual-dsthost", "flows", "hosts", "srchost"]);
    let memory = d.pick(&["", " memlimit 40000", " memlimit 15000"]);
    let mode = d.pick(&["besteffort", "diffserv3", "diffserv4"]);
    let line =
        format!("qdisc add dev $DEV $PARENT handle 1: cake bandwidth 1mbit {mode} {flows} rtt 20ms{memory}");
    let mut packets = Vec::new();
    for n in 0..d.range(5, 12) {
        let count = d.range(5, 25);
        packets.push(json!({
            "t_us": d.range(0, 100_000), "len": d.pick(&[200, 600, 1000, 1514]), "repeat": count, "gap_us": d.range(500, 6000),
            "src": format!("10.0.0.{}", 1 + n % 3), "dst": format!("10.0.1.{}", d.range(1, 4)), "sport": 1000 + n,
            "tos": d.pick(&[0, 0, 2, 0x20, 0xb8]),
        }));
    }
    let s = Service::alone_at(125_000);
    s.spec(vec![line], packets)
}
