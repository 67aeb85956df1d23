//! Cases about dualpi2.

use super::chance;
use super::dice::Dice;
use super::kinds::Service;
use super::packets::sequence;
use serde_json::{Value, json};

/// The words of what has no part in the probability.
fn plain_words(d: &mut Dice) -> String {
    let mut o = String::new();
    let mut add = |d: &mut Dice, percent: u32, text: String| {
        if d.chance(percent) {
            o += &format!(" {text}");
        }
    };
    let (limit, memory) = (d.scale(1, 200), d.scale(1000, 300_000));
    add(d, 30, format!("limit {limit}"));
    add(d, 20, format!("memlimit {memory}"));
    let step = d.pick(&["1ms", "500us", "10ms", "1us", "1p", "4p", "20packets", "50ms"]);
    add(d, 60, format!("step_thresh {step}"));
    let least = d.range(0, 8);
    add(d, 40, format!("min_qlen_step {least}"));
    let early = d.pick(&["drop_enqueue", "drop_dequeue"]);
    add(d, 40, early.to_owned());
    let share = d.pick(&["0%", "10%", "25%", "50%", "90%", "100%"]);
    add(d, 50, format!("classic_protection {share}"));
    let ect = d.pick(&["l4s_ect", "any_ect"]);
    add(d, 40, ect.to_owned());
    let gso = d.pick(&["split_gso", "no_split_gso"]);
    add(d, 20, gso.to_owned());
    o
}

/// Words that leave nothing to chance in most cases: a target that no delay reaches; or gains that let the probability grow to all there is
/// while a line is blocked; or, of the rest, whatever they are.
fn words(d: &mut Dice, blocked: bool) -> String {
    let plain = plain_words(d);
    let control = match d.range(0, 9) {
        0..=4 if !blocked => {
            let target = d.pick(&["2s", "5s", "1s"]);
            let gains = d.pick(&["", " alpha 0.16 beta 3.2", " alpha 0.5 beta 0.1", " alpha 16 beta 1"]);
            let overload = d.pick(&["", " overflow", " drop_on_overload"]);
            format!(" target {target} tupdate {}{gains}{overload}", d.pick(&["16ms", "5ms", "1ms", "33ms"]))
        }
        0..=7 => {
            let (target, tupdate) = (d.pick(&["1ms", "5ms", "100us"]), d.pick(&["1ms", "2ms", "5ms"]));
            let coupling = d.pick(&[1u64, 1, 1, 2, 2, 3, 255]);
            let overload = if coupling == 1 { d.pick(&["", " overflow", " drop_on_overload"]) } else { "" };
            let alpha = d.pick(&[50u64, 100, 20, 10]);
            format!(
                " target {target} tupdate {tupdate} alpha {alpha} beta {} coupling_factor {coupling}{overload}",
                d.pick(&[1u64, 5, 10])
            )
        }
        8 => format!(" max_rtt {}", d.pick(&["100ms typical_rtt 20ms", "1s", "500ms typical_rtt 400ms"])),
        _ => String::new(),
    };
    format!("dualpi2{control}{plain}")
}

/// A case.
pub fn case(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(250_000);
    let blocked = !s.alone() && d.chance(40);
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: {}", words(d, blocked))];
    if d.chance(20) {
        let verb = d.pick(&["change", "replace"]);
        setup.push(format!("qdisc {verb} dev $DEV $PARENT handle 1: {}", words(d, blocked)));
    }
    let filters = d.chance(40);
    if filters {
        for mark in 1..=4 {
            let verdict = if d.chance(10) { " action drop" } else { "" };
            setup.push(format!(
                "filter add dev $DEV parent 1: protocol all prio 1 handle {mark} fw classid 1:{:x}{verdict}",
                d.range(0, 3)
            ));
        }
    }
    let mut t = s.traffic(200, 4, true);
    if d.chance(70) {
        t.bytes_per_s *= 2;
    }
    let packets = sequence(d, t, |d, m| {
        if d.chance(70) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 1, 2, 3, 0xb9, 0x2a])));
        }
        if filters && d.chance(60) {
            m.insert("mark".into(), json!(d.range(0, 5)));
        }
        if d.chance(20) {
            m.insert("priority".into(), json!(format!("1:{:x}", d.range(0, 3))));
        }
    });
    s.spec(setup, packets)
}

/// Ten seconds of too much for the line, of flows for either queue.
pub fn dice(d: &mut Dice) -> Value {
    let mut spec = chance::pie(d);
    let control =
        d.pick(&["", " max_rtt 100ms", " target 50ms tupdate 30ms alpha 1 beta 5", " alpha 2 beta 10"]);
    let flags = d.pick(&["", " overflow", " drop_enqueue", " coupling_factor 1", " classic_protection 50%"]);
    spec["setup"] =
        json!([format!("qdisc add dev $DEV $PARENT handle 1: dualpi2 limit 200{control}{flags}")]);
    let tos = d.pick(&[[0, 0], [0, 1], [2, 1], [1, 1]]);
    for entry in spec["packets"].as_array_mut().into_iter().flatten() {
        entry["tos"] = json!(d.pick(&tos));
    }
    spec
}
