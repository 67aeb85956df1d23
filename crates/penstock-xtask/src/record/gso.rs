//! Super-packets among the traffic of any kind's cases.

use super::dice::Dice;
use serde_json::{Map, Value, json};

/// Of so many entries of a sequence in 100 the packets become super-packets.
const LIFTED: u32 = 45;
/// Bytes that a case may send in the time the line needs for them, s.
const SECONDS: f64 = 15.0;
/// Most segments of one (`UDP_MAX_SEGMENTS` is 128).
const SEGMENTS: u64 = 44;

/// The case with super-packets in place of some of its packets: those of TCP and UDP. They come from a packet socket, which counts no segments.
pub fn lift(d: &mut Dice, mut spec: Value) -> Value {
    for line in spec["setup"].as_array_mut().into_iter().flatten() {
        // tc 6.1 does not know netem's.
        if let Some((before, _)) = line.as_str().and_then(|text| text.split_once(" seed ")) {
            *line = json!(before);
        }
    }
    lift_seeded(d, spec)
}

/// The same with netem's seeds left where they are.
pub fn lift_seeded(d: &mut Dice, mut spec: Value) -> Value {
    // The start of a blocked line differs by nanoseconds where there are several queues, and again with packets of both kinds.
    if spec["release"] == "block" && !spec["tx_queues"].is_null() {
        return spec;
    }
    let rate = spec["rate"].as_str().map_or(1e6, bytes_per_s);
    let mut left = (rate * SECONDS).min(3e6) as u64;
    let least = if spec["setup"].to_string().contains("cake") { 1000 } else { 100 };
    for entry in spec["packets"].as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
        let repeat = entry.get("repeat").and_then(Value::as_u64).unwrap_or(1);
        if entry.contains_key("run") || entry.contains_key("txtime_us") || !d.chance(LIFTED) {
            continue;
        }
        let Some(headers) = headers(entry) else { continue };
        let size = if d.chance(60) { d.pick(&[1448, 1460, 1400, 1428, 536]) } else { d.range(least, 1460) };
        let segments = match d.range(0, 3) {
            0 => 2,
            1 => d.range(2, 5),
            2 => d.range(3, 16),
            _ => d.range(2, SEGMENTS),
        };
        let last = if d.chance(50) { size } else { d.range(6, size) };
        let len = headers + size * (segments - 1) + last;
        let times = repeat.min(d.range(1, 4));
        if len > 65_535 || len * times > left {
            continue;
        }
        left -= len * times;
        entry.insert("len".into(), json!(len));
        entry.insert("gso_size".into(), json!(size));
        entry.insert("gso_dodgy".into(), json!(true));
        if times == 1 {
            entry.remove("repeat");
            entry.remove("gap_us");
        } else {
            entry.insert("repeat".into(), json!(times));
        }
    }
    spec
}

/// Bytes before the payload; none where a packet is not cut.
fn headers(entry: &Map<String, Value>) -> Option<u64> {
    let v6 = entry.get("src").and_then(Value::as_str).is_some_and(|src| src.contains(':'));
    let transport = match entry.get("proto").map(Value::as_str) {
        None | Some(Some("udp")) => 8,
        Some(Some("tcp")) => 20,
        _ => return None,
    };
    Some(14 + if v6 { 40 } else { 20 } + transport)
}

/// The rate of a line as a specification writes it.
pub fn bytes_per_s(text: &str) -> f64 {
    let digits: f64 = text.trim_end_matches(char::is_alphabetic).parse().unwrap_or(1e6);
    let scale = if text.contains('g') {
        1e9
    } else if text.contains('m') {
        1e6
    } else if text.contains('k') {
        1e3
    } else {
        1.0
    };
    digits * scale / 8.0
}
