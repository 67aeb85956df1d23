//! Cases about mq, mqprio and cake_mq: a qdisc for each transmit queue.

use super::dice::Dice;
use super::kinds::Service;
use super::multiq::{by_mark, child, with_queues};
use super::packets::sequence;
use serde_json::{Value, json};

/// What may stand in a queue.
fn in_queue(d: &mut Dice) -> String {
    match d.range(0, 5) {
        0 => "pfifo_fast".to_owned(),
        1 => "cbs idleslope 2000 sendslope -9998000 hicredit 2000 locredit -3000".to_owned(),
        2 => "fq_codel limit 20 target 1ms interval 10ms".to_owned(),
        3 => "plug limit 20000".to_owned(),
        _ => child(d),
    }
}

/// A case; the commands amid its traffic change what stands in a queue. A queue that gets another qdisc lets the kernel sleep.
pub fn case(d: &mut Dice, prio: bool) -> Value {
    let queues = d.range(2, 6);
    let s = Service::alone_at(d.pick(&[50_000, 125_000, 500_000]));
    let mut setup = Vec::new();
    // mqprio's traffic classes of one queue each leave the hash nothing to choose.
    if !prio || d.chance(50) {
        by_mark(d, &mut setup, queues);
    }
    if prio {
        let classes = if d.chance(50) { queues } else { d.range(1, queues) };
        let map: Vec<String> = (0..16).map(|_| d.range(0, classes - 1).to_string()).collect();
        let places: Vec<String> = (0..classes).map(|n| format!("1@{}", classes - 1 - n)).collect();
        setup.push(format!(
            "qdisc add dev $DEV root handle 1: mqprio num_tc {classes} map {} queues {} hw 0",
            map.join(" "),
            places.join(" ")
        ));
    } else {
        setup.push("qdisc add dev $DEV root handle 1: mq".to_owned());
    }
    let mut told = Vec::new();
    for n in 1..=queues {
        if d.chance(70) {
            let inside = in_queue(d);
            let place = format!("dev $DEV parent 1:{n:x} handle {:x}:", 16 + n);
            setup.push(format!("qdisc add {place} {inside}"));
            match inside.split(' ').next() {
                Some("plug") => {
                    told.extend(
                        ["block", "release", "release_indefinite"]
                            .map(|w| format!("qdisc change {place} plug {w}")),
                    );
                }
                Some("pfifo") => told.push(format!("qdisc change {place} pfifo limit {}", d.range(1, 9))),
                Some("prio") => {
                    told.push(format!("qdisc change {place} prio bands 2 priomap {}", ["0"; 16].join(" ")))
                }
                _ => told.push(format!("qdisc change {place} {inside}")),
            }
            if d.chance(8) {
                setup.push(format!("qdisc del dev $DEV parent 1:{n:x} handle {:x}:", 16 + n));
            }
        }
    }
    let mut packets = sequence(d, s.traffic(200, 5, true), |d, m| {
        if d.chance(85) {
            m.insert("mark".into(), json!(d.range(0, queues + 2)));
        }
        if d.chance(70) {
            m.insert("priority".into(), json!(d.range(0, 17)));
        }
    });
    let end = packets.iter().filter_map(|p| p["t_us"].as_f64()).fold(0.0, f64::max) as u64;
    if !told.is_empty() && d.chance(60) {
        for _ in 0..d.range(1, 5) {
            let entry = json!({"t_us": d.range(0, end + end / 4 + 100), "run": d.pick(&told)});
            packets.insert(d.range(0, packets.len() as u64) as usize, entry);
        }
    }
    let open: Vec<&String> = told.iter().filter(|t| t.ends_with("release_indefinite")).collect();
    for (n, command) in (0..).zip(open) {
        packets.push(json!({"t_us": 2 * end + 1000 + 1000 * n, "run": command}));
    }
    with_queues(s.spec(setup, packets), queues)
}

/// cake_mq: one rate for the queues together, and changes of what all of them do.
pub fn cake(d: &mut Dice) -> Value {
    let queues = d.range(2, 6);
    let bits = d.pick(&[400_000u64, 1_000_000, 4_000_000, 2_500_000]);
    let s = Service::alone_at(bits / 8);
    let mut setup = Vec::new();
    by_mark(d, &mut setup, queues);
    let words = |d: &mut Dice| {
        let mut o = String::from("cake_mq");
        if d.chance(80) {
            o += &format!(" bandwidth {bits}bit");
        }
        for (percent, choices) in [
            (60, &["besteffort", "diffserv3", "precedence", "diffserv4"][..]),
            (50, &["flowblind", "srchost", "dsthost", "flows", "dual-srchost"]),
            (40, &["rtt 20ms", "rtt 1ms", "metro"]),
            (25, &["wash", "nowash", "ingress"]),
            (30, &["overhead 18", "atm", "mpu 84", "docsis"]),
            (30, &["memlimit 20000", "memlimit 5000", "memlimit 100000"]),
        ] {
            if d.chance(percent) {
                o += &format!(" {}", d.pick(choices));
            }
        }
        o
    };
    setup.push(format!("qdisc add dev $DEV root handle 1: {}", words(d)));
    let mut t = s.traffic(200, 3, true);
    t.bytes_per_s = t.bytes_per_s * d.range(8, 30) / 10;
    let few = d.range(1, queues);
    let mut packets = sequence(d, t, |d, m| {
        m.insert("mark".into(), json!(d.range(1, few)));
        if d.chance(40) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0x20, 0xb8, 0x88])));
        }
    });
    let end = packets.iter().filter_map(|p| p["t_us"].as_f64()).fold(0.0, f64::max) as u64;
    if d.chance(40) {
        for _ in 0..d.range(1, 3) {
            let line = format!("qdisc change dev $DEV root handle 1: {}", words(d));
            let entry = json!({"t_us": d.range(0, end + end / 4 + 100), "run": line});
            packets.insert(d.range(0, packets.len() as u64) as usize, entry);
        }
    }
    with_queues(s.spec(setup, packets), queues)
}
