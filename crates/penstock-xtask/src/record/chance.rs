//! Cases in which the kernel's own dice decide.

use super::aqm::gred_of;
use super::dice::Dice;
use super::kinds::Service;
use super::packets::sequence;
use serde_json::{Value, json};

/// Most packets of one case: every one of them is looked at under each seed.
const MAX_PACKETS: u64 = 90;

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
    let mut t = s.traffic(MAX_PACKETS, 3, false);
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

/// sfb.
pub fn sfb(d: &mut Dice) -> Value {
    let (up, down) = (d.pick(&["0.05", "0.2", "0.4", "0.7"]), d.pick(&["0.01", "0.1"]));
    let line = format!(
        "qdisc add dev $DEV $PARENT handle 1: sfb increment {up} decrement {down} target {} max {}",
        d.range(1, 6),
        d.range(20, 40)
    );
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

/// choke: few flows in a queue, chosen by chance.
pub fn choke(d: &mut Dice) -> Value {
    let min = d.range(2, 6);
    let max = min + d.range(2, 12);
    let burst = (2 * min + max).div_ceil(3) + d.range(1, 3);
    let probability = d.pick(&["0.05", "0.1", "0.3", "1"]);
    let ecn = d.pick(&["", " ecn"]);
    let line = format!(
        "qdisc add dev $DEV $PARENT handle 1: choke limit {} min {min} max {max} burst {burst} bandwidth 512kbit probability {probability}{ecn}",
        d.range(max, 60)
    );
    let flows = d.range(2, 4);
    let mut spec = crowd(d, |d| ("sport", json!(1000 + d.range(1, flows))));
    spec["setup"] = json!([line]);
    spec
}

/// pie: ten seconds of too much for the line.
pub fn pie(d: &mut Dice) -> Value {
    let flags = d.pick(&["", " ecn", " bytemode", " ecn bytemode", " dq_rate_estimator"]);
    let (alpha, beta) = (d.range(8, 32), d.range(1, 32));
    let line = format!(
        "qdisc add dev $DEV $PARENT handle 1: pie limit 200 target {} tupdate {} alpha {alpha} beta {beta}{flags}",
        d.pick(&["5ms", "15ms", "50ms"]),
        d.pick(&["15ms", "30ms", "100ms"])
    );
    let mut spec = crowd(d, |d| ("tos", json!(d.pick(&[0, 2, 1]))));
    // A packet of 1000 bytes each 90 ms on a line that takes one each 100 ms.
    let step = d.range(60, 95);
    let tos = d.pick(&[0, 0, 2]);
    let packets: Vec<Value> = (0..2 * MAX_PACKETS)
        .map(|n| json!({"t_us": n * step * 1000, "len": d.pick(&[1000, 1000, 1400, 600]), "tos": tos}))
        .collect();
    (spec["setup"], spec["packets"], spec["rate"]) = (json!([line]), json!(packets), json!("80kbit"));
    spec["release"] = json!("link");
    spec
}

/// fq_pie: the same for two flows, of which the one has more than its share.
pub fn fq_pie(d: &mut Dice) -> Value {
    let mut spec = pie(d);
    let line = spec["setup"][0].as_str().unwrap_or_default().replacen("pie", "fq_pie", 1);
    let ecn_prob = d.pick(&["", " ecn_prob 0", " ecn_prob 30"]);
    spec["setup"] = json!([format!("{line}{ecn_prob} flows {}", d.pick(&[2, 1024, 3000]))]);
    let entries = spec["packets"].as_array_mut().into_iter().flatten();
    for entry in entries {
        entry["priority"] = json!(d.pick(&["1:1", "1:1", "1:1", "1:2"]));
    }
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
