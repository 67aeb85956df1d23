//! Cases about hhf.

use super::dice::Dice;
use super::kinds::Service;
use super::nest;
use super::packets::sequence;
use serde_json::Value;

/// Options of the kind, at random. Times are whole ticks of any clock.
fn words(d: &mut Dice) -> String {
    let mut o = String::from("hhf");
    let mut add = |d: &mut Dice, percent: u32, word: &str, value: String| {
        if d.chance(percent) {
            o += &format!(" {word} {value}");
        }
    };
    let limit = d.scale(1, 150);
    add(d, 60, "limit", limit.to_string());
    let quantum = d.scale(256, 6000);
    add(d, 50, "quantum", quantum.to_string());
    let admit = d.scale(100, 20_000);
    add(d, 80, "admit_bytes", admit.to_string());
    let reset = d.pick(&["20ms", "40ms", "100ms", "1s", "0"]);
    add(d, 50, "reset_timeout", reset.to_owned());
    let evict = d.pick(&["20ms", "100ms", "200ms", "1s", "0"]);
    add(d, 60, "evict_timeout", evict.to_owned());
    let weight = d.range(1, 6);
    add(d, 40, "non_hh_weight", weight.to_string());
    let most = d.pick(&[0, 1, 1, 2, 5, 2048]);
    add(d, 30, "hh_limit", most.to_string());
    o
}

/// A case: so few flows that no two meet in the filter, but for one of many boots, which is left out then.
pub fn case(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(d.pick(&[16_000, 125_000, 250_000]));
    let mut setup = Vec::new();
    let place = nest::choose(d, &s, 35, &mut setup);
    let first = words(d);
    setup.push(place.qdisc("add", &first));
    if d.chance(20) {
        let again = words(d);
        setup.push(place.qdisc("change", &again));
    }
    let flows = d.pick(&[1, 2, 3, 4]);
    let mut t = s.traffic(250, flows, true);
    if d.chance(60) {
        t.bytes_per_s *= 2;
    }
    if d.chance(30) {
        t.span_us = 3_000_000;
    }
    let packets = sequence(d, t, |_, _| {});
    s.spec(setup, packets)
}
