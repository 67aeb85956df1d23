//! Cases about fq.

use super::dice::Dice;
use super::kinds::{Service, rate_word};
use super::packets::sequence;
use serde_json::{Value, json};

/// The words of fq. Which flows share a queue hangs on the kernel's hash; so each has its own, or there is one.
fn words(d: &mut Dice) -> String {
    let mut o = String::from("fq");
    let mut add = |d: &mut Dice, percent: u32, word: &str, value: String| {
        if d.chance(percent) {
            o += &format!(" {word} {value}");
        }
    };
    let (limit, flow_limit) = (d.scale(1, 100), d.scale(1, 60));
    add(d, 40, "limit", limit.to_string());
    add(d, 30, "flow_limit", flow_limit.to_string());
    let (quantum, initial) = (d.scale(256, 6000), d.scale(1, 20_000));
    add(d, 50, "quantum", quantum.to_string());
    add(d, 50, "initial_quantum", initial.to_string());
    let bits = d.scale(30_000, 3_000_000);
    let rate = rate_word(d, bits);
    add(d, 60, "maxrate", rate);
    let bits = d.scale(8_000, 2_000_000);
    let threshold = rate_word(d, bits);
    add(d, 25, "low_rate_threshold", threshold);
    let delay = d.pick(&["0", "1ms", "10ms", "20ms", "40ms", "100ms"]);
    add(d, 30, "refill_delay", delay.to_owned());
    let late = d.pick(&["0", "1ms", "4ms", "30ms", "100ms"]);
    add(d, 30, "ce_threshold", late.to_owned());
    let slack = d.pick(&["0", "0", "0", "1000", "50us", "1ms", "20ms"]);
    add(d, 60, "timer_slack", slack.to_owned());
    if d.chance(25) {
        o += " orphan_mask 0";
    }
    if d.chance(20) {
        o += &format!(" buckets {}", d.pick(&[2u64, 4, 1024, 4096]));
    }
    if d.chance(10) {
        o += " nopacing";
    }
    o
}

/// A case about fq.
pub fn fq(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 40, 125_000);
    s.cap(d.pick(&[16_000, 125_000, 250_000]));
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: {}", words(d))];
    if d.chance(20) {
        let verb = d.pick(&["change", "replace"]);
        setup.push(format!("qdisc {verb} dev $DEV $PARENT handle 1: {}", words(d)));
    }
    let flows = d.pick(&[1, 1, 2, 3, 4]);
    let mut t = s.traffic(250, flows, true);
    if d.chance(60) {
        t.bytes_per_s *= 2;
    }
    if d.chance(12) && s.alone() {
        // Long enough for flows to be forgotten.
        t.span_us = 15_000_000;
    }
    let bands = d.chance(60);
    let packets = sequence(d, t, |d, m| {
        if d.chance(40) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0xb9, 0x2a])));
        }
        if bands && d.chance(60) {
            m.insert("priority".into(), json!(d.range(0, 15)));
        }
    });
    s.spec(setup, packets)
}
