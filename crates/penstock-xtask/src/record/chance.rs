//! Cases in which the kernel's own dice decide.

use super::aqm::gred_of;
use super::dice::Dice;
use super::kinds::Service;
use super::packets::sequence;
use serde_json::{Value, json};

/// Most packets of one case: every one of them is looked at under each seed.
const MOST: u64 = 90;

/// Thresholds far enough apart that chance decides, weights heavy enough that the average gets there.
fn red_words(d: &mut Dice) -> String {
    let avpkt = d.pick(&[400u64, 1000]);
    let min = d.range(1500, 5000);
    let max = min + d.range(2000, 20_000);
    let burst = min / avpkt + d.range(1, 3);
    let probability = d.pick(&["0.05", "0.1", "0.3", "0.5", "1"]);
    let flags = d.pick(&["", "", " ecn", " ecn nodrop", " adaptive", " ecn adaptive"]);
    format!("limit 200000 min {min} max {max} avpkt {avpkt} burst {burst} probability {probability}{flags}")
}

/// Twice what a line of 64 kB/s takes.
fn crowd(d: &mut Dice, mut dress: impl FnMut(&mut Dice) -> (&'static str, Value)) -> Value {
    let mut s = Service::choose(d, 0, 64_000);
    s.rate = 64_000;
    let mut t = s.traffic(MOST, 3, false);
    t.bytes_per_s = 128_000;
    let packets = sequence(d, t, |d, m| {
        let (name, value) = dress(d);
        m.insert(name.into(), value);
    });
    s.spec(Vec::new(), packets)
}

/// red.
pub fn red(d: &mut Dice) -> Value {
    let line = format!("qdisc add dev $DEV $PARENT handle 1: red {} bandwidth 512kbit", red_words(d));
    let mut spec = crowd(d, |d| ("tos", json!(d.pick(&[0, 1, 2, 3]))));
    spec["setup"] = json!([line]);
    spec
}

/// gred: several virtual queues, chosen by marks.
pub fn gred(d: &mut Dice) -> Value {
    let vqs = d.range(1, 3);
    let setup = gred_of(d, vqs, |d, vq| {
        let red = red_words(d);
        let red = red.split(" ecn").next().unwrap_or_default().split(" adaptive").next().unwrap_or_default();
        let prio = if d.chance(60) { format!(" prio {}", d.range(1, 4)) } else { String::new() };
        format!("gred vq {vq} {red} bandwidth 512kbit{prio}")
    });
    let mut spec = crowd(d, |d| ("mark", json!(d.range(0, 4))));
    spec["setup"] = json!(setup);
    spec
}

/// gact with `random netrand`.
pub fn actions(d: &mut Dice) -> Value {
    let (often, seldom) =
        (d.pick(&["ok", "pipe", "continue", "drop"]), d.pick(&["drop", "ok", "continue", "reclassify"]));
    let setup = [
        "qdisc add dev $DEV $PARENT handle 1: prio".to_owned(),
        format!(
            "filter add dev $DEV parent 1: protocol ip prio 1 u32 match u32 0 0 flowid 1:1 action {often} random netrand {seldom} {}",
            d.range(1, 6)
        ),
        "filter add dev $DEV parent 1: protocol all prio 2 matchall classid 1:2".to_owned(),
    ];
    let mut spec = crowd(d, |d| ("tos", json!(d.pick(&[0, 16, 8]))));
    (spec["setup"], spec["filters"]) = (json!(setup), json!(["parent 1:"]));
    spec
}

/// flow by the hash of several fields.
pub fn flow(d: &mut Dice) -> Value {
    let keys = d.pick(&["src,dst", "src,dst,proto,proto-src,proto-dst", "src,mark", "mark", "dst,priority"]);
    let divisor = d.range(2, 6);
    let setup = [
        "qdisc add dev $DEV $PARENT handle 1: prio bands 6 priomap 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5"
            .to_owned(),
        format!(
            "filter add dev $DEV parent 1: protocol all prio 1 handle 1 flow hash keys {keys} divisor {divisor}"
        ),
    ];
    let mut spec = crowd(d, |d| ("mark", json!(d.range(0, 4))));
    spec["setup"] = json!(setup);
    spec
}
