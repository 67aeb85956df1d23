//! Cases about plug.

use super::dice::Dice;
use super::kinds::Service;
use super::nest;
use super::packets::sequence;
use serde_json::{Value, json};

/// A case: commands amid traffic open and close it, or nothing leaves.
pub fn case(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 40, 250_000);
    s.cap(250_000);
    let mut setup = Vec::new();
    let place = nest::choose(d, &s, 25, &mut setup);
    let limit = |d: &mut Dice| format!("limit {}", d.scale(200, 100_000));
    let first = if d.chance(60) { format!("plug {}", limit(d)) } else { "plug".to_owned() };
    setup.push(place.qdisc("add", &first));
    let told = |d: &mut Dice| {
        let word = match d.range(0, 9) {
            0..=3 => "block".to_owned(),
            4..=6 => "release".to_owned(),
            7 | 8 => "release_indefinite".to_owned(),
            _ => limit(d),
        };
        place.qdisc("change", &format!("plug {word}"))
    };
    if d.chance(20) {
        let word = told(d);
        setup.push(word);
    }
    let mut packets = sequence(d, s.traffic(150, 3, true), |_, _| {});
    let end = packets.iter().filter_map(|p| p["t_us"].as_f64()).fold(0.0, f64::max) as u64;
    for _ in 0..d.range(1, 8) {
        let at = d.range(0, end + end / 4 + 100);
        let command = json!({"t_us": at, "run": told(d)});
        let place = d.range(0, packets.len() as u64) as usize;
        packets.insert(place, command);
    }
    // At the end everything leaves: the probe waits for it.
    packets.push(json!({"t_us": 2 * end + 1000, "run": place.qdisc("change", "plug release_indefinite")}));
    s.spec(setup, packets)
}
