//! Cases about taprio: gates that open and close by a schedule, and times of departure by one.

use super::dice::Dice;
use super::etf;
use super::kinds::Service;
use super::multiq::{by_mark, with_queues};
use super::packets::{Traffic, sequence};
use serde_json::{Value, json};

/// Lengths of a cycle, ns, of which the steps between a boot's cases are whole multiples.
const CYCLES: [u64; 8] =
    [640_000, 2_000_000, 4_000_000, 10_000_000, 10_000_000, 20_000_000, 40_000_000, 80_000_000];

/// A schedule at random: its entries and the words before them.
fn schedule(d: &mut Dice, classes: u64) -> String {
    let cycle = d.pick(&CYCLES);
    let count = d.range(1, 6);
    let mut left = cycle;
    let mut o = String::new();
    for n in 0..count {
        // The shortest a gate may be open is what 60 bytes take on 10 Gbit/s: 48 ns.
        let share =
            if n + 1 == count { left } else { d.scale(60, (left / 2).max(61)).min(left - 60 * (count - n)) };
        left -= share.min(left);
        let mask = if d.chance(8) { 0 } else { d.range(0, (1 << classes) - 1) | d.range(0, 1) };
        o += &format!(" sched-entry S {mask:x} {}", share.max(60));
    }
    // The cycle may end before its entries do, or after them.
    let mut words = String::new();
    if d.chance(15) {
        let other = d.pick(&CYCLES);
        words += &format!(" cycle-time {other}");
    } else if left > 0 {
        words += &format!(" cycle-time {cycle}");
    }
    if d.chance(40) {
        words += &format!(" base-time {}", d.scale(1, 1_000_000_000));
    }
    if d.chance(15) {
        words += &format!(" cycle-time-extension {}", d.scale(1, cycle));
    }
    words + &o
}

/// A case.
pub fn case(d: &mut Dice, anywhere: bool) -> Value {
    let queues = d.range(2, 5);
    let classes = if d.chance(60) { queues } else { d.range(1, queues) };
    let s = Service::alone_at(d.pick(&[20_000, 125_000, 1_000_000]));
    let mut setup = Vec::new();
    if d.chance(40) {
        by_mark(d, &mut setup, queues);
    }
    let assist = d.chance(25);
    let map: Vec<String> = (0..16).map(|_| d.range(0, classes - 1).to_string()).collect();
    // Classes of one queue each leave the hash nothing to choose.
    let places: Vec<String> = (0..classes).map(|n| format!("1@{}", classes - 1 - n)).collect();
    let clock = d.pick(&["CLOCK_TAI", "CLOCK_TAI", "CLOCK_REALTIME", "CLOCK_MONOTONIC", "CLOCK_BOOTTIME"]);
    let clock = if assist { "CLOCK_TAI" } else { clock };
    let mode =
        if assist { format!(" flags 1 txtime-delay {}", d.scale(1, 2_000_000)) } else { String::new() };
    let traffic_classes = format!("num_tc {classes} map {} queues {}", map.join(" "), places.join(" "));
    let tail = format!("clockid {clock}{mode}");
    let words = schedule(d, classes);
    setup.push(format!("qdisc add dev $DEV root handle 100: taprio {traffic_classes}{words} {tail}"));
    // Without txtime-assist another qdisc in a queue ends the schedule.
    for n in 1..=queues {
        if d.chance(if assist { 70 } else { 6 }) {
            let inside = match d.range(0, 4) {
                0..=2 if assist => {
                    format!("{} skip_sock_check", etf::words(d, false, true).replace(" skip_sock_check", ""))
                }
                0 => format!("pfifo limit {}", d.range(1, 30)),
                1 => format!("bfifo limit {}", d.scale(1500, 30_000)),
                2 => "pfifo_head_drop limit 5".to_owned(),
                3 => "fq_codel limit 20 target 1ms interval 10ms".to_owned(),
                _ => "prio".to_owned(),
            };
            setup.push(format!("qdisc add dev $DEV parent 100:{n:x} handle {:x}: {inside}", 16 + n));
        }
    }
    // `at_us`: when the command is given, amid traffic; its schedule may begin later then.
    let change = |d: &mut Dice, at_us: Option<u64>| {
        let mut words = schedule(d, classes);
        let from_1970 = clock != "CLOCK_MONOTONIC" && clock != "CLOCK_BOOTTIME";
        if let Some(at_us) = at_us.filter(|_| from_1970 && d.chance(60)) {
            let mut all: Vec<&str> = words.split_whitespace().collect();
            if let Some(given) = all.iter().position(|w| *w == "base-time") {
                all.drain(given..given + 2);
            }
            words = format!(" base-time $T0+{} {}", at_us * 1000 + d.scale(1, 60_000_000), all.join(" "));
        }
        let again = if d.chance(50) { format!(" {traffic_classes}") } else { String::new() };
        let other = d.pick(&["", "", "", "", " num_tc 1 map 0 queues 1@1", " flags 2"]);
        let other = if words.contains('$') { "" } else { other };
        format!("qdisc change dev $DEV root handle 100: taprio{again}{words} {tail}{other}")
    };
    if d.chance(if assist { 20 } else { 50 }) {
        let line = change(d, None);
        if !line.ends_with("@1") && !line.ends_with("flags 2") {
            setup.push(line);
        }
    }
    let asks = d.chance(30);
    let few = if d.chance(30) { d.pick(&[5, 20]) } else { 150 };
    let traffic = Traffic { span_us: 100_000, ..s.traffic(few, 5, true) };
    let mut packets = sequence(d, traffic, |d, m| {
        if asks && d.chance(60) {
            etf::wish(d, m, false, 5000);
            // All clocks of a machine of ours begin with the run.
            m.remove("txtime_clock");
        }
        if d.chance(80) {
            m.insert("priority".into(), json!(d.range(0, 17)));
        }
        if d.chance(60) {
            m.insert("mark".into(), json!(d.range(0, queues + 1)));
        }
    });
    if !anywhere {
        let end = packets.iter().filter_map(|p| p["t_us"].as_f64()).fold(0.0, f64::max) as u64;
        for _ in 0..d.range(1, 3) {
            let at_us = d.range(0, end + end / 4 + 100);
            let entry = json!({"t_us": at_us, "run": change(d, Some(at_us))});
            packets.insert(d.range(0, packets.len() as u64) as usize, entry);
        }
    }
    let mut spec = with_queues(s.spec(setup, packets), queues);
    // Its timer goes off without end, which takes a real computer's time.
    spec["drain_s"] = json!(0.5);
    spec
}
