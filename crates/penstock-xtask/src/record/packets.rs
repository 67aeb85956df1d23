//! Packet sequences: bursts, steady and ragged streams of one or several flows.

use super::dice::Dice;
use serde_json::{Map, Value, json};

/// What the packets of a case may look like.
#[derive(Clone, Copy)]
pub struct Traffic {
    /// Bytes that the queue under test passes in a second, for a load that makes it queue and yet ends.
    pub bytes_per_s: u64,
    /// At most so many packets.
    pub most: u64,
    /// At most so long a sequence, us.
    pub span_us: u64,
    /// At most so many flows.
    pub flows: u64,
    /// Whether IPv6 and other protocols than UDP occur.
    pub mixed: bool,
}

/// Addresses and ports of one flow.
pub fn flow(dice: &mut Dice, n: u64, mixed: bool) -> Map<String, Value> {
    let mut m = Map::new();
    let proto = if mixed && dice.chance(40) { dice.pick(&["tcp", "icmp", "udp", "47"]) } else { "udp" };
    if proto == "47" {
        m.insert("proto".into(), json!(47));
    } else if proto != "udp" {
        m.insert("proto".into(), json!(proto));
    }
    if mixed && dice.chance(20) {
        m.insert("src".into(), json!(format!("2001:db8::{:x}", n + 1)));
        m.insert("dst".into(), json!(format!("2001:db8:{:x}::2", dice.range(0, 3))));
    } else {
        m.insert("src".into(), json!(format!("10.0.{}.{}", dice.pick(&[0, 0, 1, 7]), n + 1)));
        if dice.chance(50) {
            m.insert("dst".into(), json!(format!("10.{}.0.{}", dice.pick(&[0, 1, 200]), dice.range(2, 9))));
        }
    }
    if dice.chance(60) {
        m.insert("sport".into(), json!(dice.pick(&[22, 53, 80, 1000, 1024, 5001, 40000, 65535])));
    }
    if dice.chance(60) {
        m.insert("dport".into(), json!(dice.pick(&[22, 53, 80, 443, 2000, 5001, 8080, 33434])));
    }
    if dice.chance(30) {
        m.insert("tos".into(), json!(dice.pick(&[0, 2, 4, 8, 16, 24, 0x1e, 0x2e, 0xb8, 0x20, 0xfc, 255])));
    }
    m
}

/// Length of a frame.
pub fn len(dice: &mut Dice) -> u64 {
    match dice.range(0, 9) {
        0..=4 => dice.pick(&[60, 64, 100, 128, 300, 576, 590, 1000, 1000, 1492, 1500, 1514, 1514]),
        5..=6 => dice.range(62, 200),
        _ => dice.range(62, 1514),
    }
}

/// A sequence; `dress` adds to each entry what the case is about (priorities, marks, addresses).
pub fn sequence(
    dice: &mut Dice,
    t: Traffic,
    mut dress: impl FnMut(&mut Dice, &mut Map<String, Value>),
) -> Vec<Value> {
    let flows: Vec<Map<String, Value>> =
        (0..dice.range(1, t.flows)).map(|n| flow(dice, n, t.mixed)).collect();
    let entries = dice.range(1, 24.max(t.most / 20));
    let mut left = dice.range(1, t.most);
    let mut bytes = t.bytes_per_s.max(2000);
    let mut out = Vec::new();
    let mut at = 0;
    let fine = dice.chance(10);
    for n in 0..entries {
        if left == 0 {
            break;
        }
        let mut m = dice.pick(&flows);
        dress(dice, &mut m);
        let least = 14
            + if m.get("src").is_some_and(|s| s.as_str().is_some_and(|s| s.contains(':'))) {
                48 + 20
            } else {
                20 + 20
            };
        let size = len(dice).max(least);
        let repeat = if dice.chance(50) { 1 } else { dice.range(1, left.min(40.max(t.most / 10))) }
            .min((bytes / size).max(1));
        bytes = bytes.saturating_sub(size * repeat);
        left -= repeat.min(left);
        let wire = (size * 1_000_000 / t.bytes_per_s.max(1)).clamp(1, 200_000);
        let gap = match dice.range(0, 5) {
            0..=2 => 0,
            3 => wire,
            _ => dice.range(1, 2 * wire),
        };
        m.insert("len".into(), json!(size));
        let when = if fine { json!(at as f64 + dice.range(0, 999) as f64 / 1000.0) } else { json!(at) };
        m.insert("t_us".into(), when);
        if repeat > 1 {
            m.insert("repeat".into(), json!(repeat));
            if gap > 0 {
                m.insert("gap_us".into(), json!(gap));
            }
        }
        out.push(Value::Object(m));
        let room = t.span_us.saturating_sub(at);
        at += match dice.range(0, 4) {
            0 | 1 => 0,
            2 => wire * repeat,
            3 => dice.range(0, 4 * wire),
            _ => dice.range(0, t.span_us / entries + 1),
        }
        .min(room);
        if n > 3 && bytes < 100 {
            break;
        }
    }
    out
}
