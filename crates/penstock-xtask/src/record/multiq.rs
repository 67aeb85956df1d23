//! Cases about a device of several transmit queues: multiq.

use super::dice::Dice;
use super::kinds::Service;
use super::nest;
use super::packets::sequence;
use serde_json::{Value, json};

/// Says how many transmit queues the device has.
pub fn with_queues(mut spec: Value, queues: u64) -> Value {
    spec["tx_queues"] = json!(queues);
    spec
}

/// Marks of packets choose their queues, at the device's egress hook, before any qdisc. What has no such mark goes to the first.
/// (Without a filter the kernel's hash would choose.)
pub fn by_mark(d: &mut Dice, setup: &mut Vec<String>, queues: u64) {
    setup.push("qdisc add dev $DEV clsact".to_owned());
    for mark in 1..=queues + 1 {
        // One more than there are is set nowhere: then the next filter does.
        let queue = if d.chance(90) { mark % queues } else { d.range(0, queues + 1) };
        let next = if queue < queues { "pass" } else { "continue" };
        setup.push(format!(
            "filter add dev $DEV egress protocol all prio 1 handle {mark} fw action skbedit queue_mapping {queue} {next}"
        ));
    }
    setup.push(
        "filter add dev $DEV egress protocol all prio 9 matchall action skbedit queue_mapping 0 pass"
            .to_owned(),
    );
}

/// What may stand in a band.
pub fn child(d: &mut Dice) -> String {
    match d.range(0, 8) {
        0 | 1 => format!("pfifo limit {}", d.range(1, 30)),
        2 => format!("bfifo limit {}", d.scale(1000, 20_000)),
        3 => format!("red limit 40000 min 3000 max 3001 avpkt 1000 burst {}", d.range(4, 20)),
        4 => "prio".to_owned(),
        5 => format!("pfifo_head_drop limit {}", d.range(1, 12)),
        6 => format!("codel limit {} target 1ms interval 10ms", d.range(2, 40)),
        7 => {
            let rate = d.scale(64_000, 4_000_000);
            format!("tbf rate {rate}bit burst {} limit {}", d.scale(1514, 10_000), d.scale(2000, 40_000))
        }
        _ => format!("skbprio limit {}", d.range(1, 20)),
    }
}

/// A case.
pub fn case(d: &mut Dice, seed: u64) -> Value {
    // The same in a case and in what is woven into it.
    let queues = 2 + seed % 4;
    let mut s = Service::choose(d, 15, 250_000);
    s.cap(500_000);
    let mut setup = Vec::new();
    by_mark(d, &mut setup, queues);
    if d.chance(20) {
        setup.push(format!("ip link set dev $DEV txqueuelen {}", d.pick(&[1, 1, 2, 5, 30])));
        s = s.unblocked();
    }
    let place = nest::choose(d, &s, 25, &mut setup);
    setup.push(place.qdisc("add", "multiq"));
    for n in 1..=queues {
        if d.chance(45) {
            setup.push(format!(
                "qdisc add dev $DEV parent {} handle {:x}: {}",
                nest::class(n),
                16 + n,
                child(d)
            ));
        } else if d.chance(6) {
            setup.push(format!(
                "qdisc add dev $DEV parent {} handle {:x}: pfifo limit 9",
                nest::class(n),
                16 + n
            ));
            setup.push(format!("qdisc del dev $DEV parent {} handle {:x}:", nest::class(n), 16 + n));
        }
    }
    if d.chance(15) {
        setup.push(place.qdisc("change", "multiq"));
    }
    let major = nest::HANDLE;
    for mark in 1..=d.range(0, 3) {
        let action = match d.range(0, 4) {
            0 => "drop".to_owned(),
            1 => "pass".to_owned(),
            _ => format!("skbedit queue_mapping {} pass", d.range(0, queues + 1)),
        };
        setup.push(format!(
            "filter add dev $DEV parent {major} protocol all prio 1 handle {mark} fw action {action}"
        ));
    }
    let packets = sequence(d, s.traffic(200, 4, true), |d, m| {
        if d.chance(85) {
            m.insert("mark".into(), json!(d.range(0, queues + 2)));
        }
        if d.chance(20) {
            m.insert("priority".into(), json!(d.range(0, 15)));
        }
    });
    with_queues(s.spec(setup, packets), queues)
}
