//! Cases about etf: packets that name their time of departure.

use super::dice::Dice;
use super::kinds::Service;
use super::multiq::{by_mark, with_queues};
use super::packets::{Traffic, sequence};
use serde_json::{Map, Value, json};

/// Options of the kind at random. What waits for its time below another qdisc must not miss it (`sure`), as Linux tells those above nothing of that.
pub fn words(d: &mut Dice, deadline: bool, sure: bool) -> String {
    let mut o = format!("etf clockid {}", d.pick(&["CLOCK_TAI", "TAI"]));
    let delta = d.scale(2, 3_000_000);
    if sure {
        o += &format!(" delta {}", delta.max(300_000));
    } else if d.chance(90) {
        o += &format!(" delta {delta}");
    }
    if deadline {
        o += " deadline_mode";
    }
    if d.chance(35) {
        o += " skip_sock_check";
    }
    if d.chance(2) {
        o += " offload";
    }
    o
}

/// What a packet asks for.
pub fn wish(d: &mut Dice, m: &mut Map<String, Value>, deadline: bool, most_us: u64) {
    if d.chance(6) {
        return;
    }
    let after = match d.range(0, 9) {
        0 => -(d.scale(1, 2000) as i64),
        1 => 0,
        2 => 5000,
        _ => d.scale(1, most_us) as i64,
    };
    m.insert("txtime_us".into(), json!(after));
    // Not CLOCK_REALTIME: the peer takes such a time for that of the arrival.
    if d.chance(6) {
        m.insert("txtime_clock".into(), json!("monotonic"));
    }
    if deadline != d.chance(6) {
        m.insert("txtime_deadline".into(), json!(true));
    }
}

/// A case. With `anywhere` it may stand in a transmit queue, where commands would let the kernel sleep, or below another qdisc, where a packet may miss its time
/// while a command runs.
pub fn case(d: &mut Dice, anywhere: bool) -> Value {
    let deadline = d.chance(35);
    let place = if anywhere { d.range(0, 9) } else { 9 };
    let mut setup = Vec::new();
    let (s, sure) = match place {
        0 => (Service::line_at(1_250_000_000), true),
        _ => (Service::alone_at(d.pick(&[20_000, 125_000, 1_000_000])), place < 3),
    };
    let mut in_queues = None;
    match place {
        1 | 2 => {
            let map: Vec<&str> = (0..16).map(|_| if d.chance(70) { "0" } else { "1" }).collect();
            setup
                .push(format!("qdisc add dev $DEV $PARENT handle 8: prio bands 2 priomap {}", map.join(" ")));
            setup.push(format!("qdisc add dev $DEV parent 8:1 handle 1: {}", words(d, deadline, sure)));
        }
        3 | 4 => {
            let n = d.range(2, 4);
            in_queues = Some(n);
            by_mark(d, &mut setup, n);
            setup.push("qdisc add dev $DEV root handle 1: mq".to_owned());
            for queue in (1..=n).filter(|_| d.chance(80)).collect::<Vec<_>>() {
                let inside = words(d, deadline, false);
                setup
                    .push(format!("qdisc add dev $DEV parent 1:{queue:x} handle {:x}: {inside}", 16 + queue));
            }
        }
        _ => setup.push(format!("qdisc add dev $DEV $PARENT handle 1: {}", words(d, deadline, sure))),
    }
    if d.chance(15) {
        setup.push(format!("ip link set dev $DEV txqueuelen {}", d.range(1, 30)));
    }
    let most_us = d.pick(&[300, 5000, 80_000]);
    let few = if d.chance(30) { d.pick(&[5, 20]) } else { 120 };
    let traffic = Traffic { bytes_per_s: s.rate.min(1_000_000), span_us: 400_000, ..s.traffic(few, 4, true) };
    let packets = sequence(d, traffic, |d, m| {
        wish(d, m, deadline, most_us);
        // A line needs up to 200 us for what comes at one moment.
        if let Some(after) =
            m.get("txtime_us").and_then(Value::as_i64).filter(|&after| sure && (0..400).contains(&after))
        {
            m.insert("txtime_us".into(), json!(after + 400));
        }
        if d.chance(50) {
            m.insert("priority".into(), json!(d.range(0, 16)));
        }
        if d.chance(60) {
            m.insert("mark".into(), json!(d.range(0, 5)));
        }
    });
    let spec = s.spec(setup, packets);
    in_queues.map_or(spec.clone(), |n| with_queues(spec, n))
}
