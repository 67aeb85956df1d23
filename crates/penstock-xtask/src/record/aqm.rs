//! Cases about queues that drop or mark early.

use super::dice::Dice;
use super::kinds::Service;
use super::packets::sequence;
use serde_json::{Value, json};

/// The words of RED. In most cases the thresholds lie so close together that chance decides nothing.
pub fn red_words(d: &mut Dice) -> String {
    let avpkt = d.pick(&[400u64, 1000, 1500]);
    let min = d.scale(500, 20_000);
    let max = if d.chance(75) { min + d.range(1, 3) } else { min + d.scale(500, 20_000) };
    let burst = min / avpkt + d.range(1, 20);
    let mut o = format!(
        "red limit {} min {min} max {max} avpkt {avpkt} burst {burst}",
        d.scale(max, 200_000)
    );
    if d.chance(60) {
        o += &format!(" bandwidth {}kbit", d.pick(&[100, 500, 1000, 10_000]));
    }
    if d.chance(60) {
        o += &format!(" probability {}", d.pick(&["0.02", "0.1", "0.5", "1"]));
    }
    if d.chance(50) {
        o += d.pick(&[" ecn", " ecn", " ecn harddrop", " ecn nodrop", " ecn adaptive", " adaptive"]);
    }
    o
}

/// The words of CoDel.
pub fn codel_words(d: &mut Dice) -> String {
    let mut o = String::from("codel");
    if d.chance(40) {
        o += &format!(" limit {}", d.scale(1, 200));
    }
    if d.chance(70) {
        o += &format!(" target {}", d.pick(&["5ms", "1ms", "500us", "20ms", "3.3ms"]));
    }
    if d.chance(70) {
        o += &format!(" interval {}", d.pick(&["100ms", "20ms", "10ms", "50ms", "7ms"]));
    }
    if d.chance(50) {
        o += d.pick(&[" ecn", " ecn", " noecn"]);
    }
    if d.chance(30) {
        o += &format!(" ce_threshold {}", d.pick(&["1ms", "4ms", "30ms"]));
    }
    o
}

/// A case about one of them.
pub fn case(d: &mut Dice, words: impl Fn(&mut Dice) -> String) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(250_000);
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: {}", words(d))];
    if d.chance(15) {
        setup.push(format!("qdisc change dev $DEV $PARENT handle 1: {}", words(d)));
    }
    let mut t = s.traffic(300, 4, true);
    // More than the line takes.
    t.bytes_per_s *= 2;
    let packets = sequence(d, t, |d, m| {
        if d.chance(50) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0xb9, 0x2a])));
        }
    });
    s.spec(setup, packets)
}
