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
    let mut o =
        format!("red limit {} min {min} max {max} avpkt {avpkt} burst {burst}", d.scale(max, 200_000));
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

/// The words of CHOKe. The thresholds lie so close together that no chance is left between them.
pub fn choke_words(d: &mut Dice) -> String {
    let min = d.range(1, 30);
    let max = min + d.range(1, 2);
    let limit = d.range(max, 3 * max);
    let burst = d.range((2 * min + max).div_ceil(3).max(min + 1), max + 40);
    let mut o = format!("choke limit {limit} min {min} max {max} burst {burst}");
    if d.chance(70) {
        o += &format!(" bandwidth {}kbit", d.pick(&[100, 500, 1000, 10_000]));
    }
    if d.chance(40) {
        o += &format!(" probability {}", d.pick(&["0.02", "0.1", "0.5", "1"]));
    }
    if d.chance(40) {
        o += " ecn";
    }
    o
}

/// A case about choke: every packet of one flow, or each of its own, so that it does not matter which is met by chance.
pub fn choke(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(250_000);
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: {}", choke_words(d))];
    if d.chance(20) {
        setup.push(format!("qdisc change dev $DEV $PARENT handle 1: {}", choke_words(d)));
    }
    let mut t = s.traffic(250, 1, true);
    t.bytes_per_s *= 2;
    let alike = d.chance(10);
    let packets = sequence(d, t, |d, m| {
        if d.chance(50) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0xb9, 0x2a])));
        }
    });
    let packets = if alike { packets } else { of_many_flows(packets) };
    s.spec(setup, packets)
}

/// The same packets, each from another port.
fn of_many_flows(packets: Vec<Value>) -> Vec<Value> {
    let mut port = 10_000;
    let mut all = Vec::new();
    for entry in packets {
        let number = |name: &str| entry[name].as_f64().unwrap_or(0.0);
        let repeat = entry["repeat"].as_u64().unwrap_or(1);
        for k in 0..repeat {
            let mut one = entry.clone();
            if let Some(m) = one.as_object_mut() {
                m.remove("repeat");
                m.remove("gap_us");
                m.remove("proto");
                m.insert("t_us".into(), json!(number("t_us") + k as f64 * number("gap_us")));
                m.insert("sport".into(), json!(port));
            }
            port += 1;
            all.push(one);
        }
    }
    all
}

/// The words of PIE.
pub fn pie_words(d: &mut Dice, estimator: bool) -> String {
    let mut o = String::from("pie");
    if d.chance(40) {
        o += &format!(" limit {}", d.scale(1, 300));
    }
    if d.chance(70) {
        o += &format!(" target {}", d.pick(&["15ms", "1ms", "500us", "20ms", "5ms", "100ms", "3.3ms"]));
    }
    if d.chance(70) {
        o += &format!(" tupdate {}", d.pick(&["15ms", "30ms", "5ms", "10ms", "100ms", "21ms", "300ms"]));
    }
    if d.chance(50) {
        o += &format!(" alpha {} beta {}", d.range(0, 32), d.range(0, 32));
    }
    if d.chance(50) {
        o += d.pick(&[" ecn", " ecn", " noecn"]);
    }
    if d.chance(40) {
        o += d.pick(&[" bytemode", " bytemode", " nobytemode"]);
    }
    if estimator {
        o += " dq_rate_estimator";
    }
    o
}

/// A case about pie: seconds of it, since it begins to look after half of one.
pub fn pie(d: &mut Dice, estimator: bool) -> Value {
    let mut s = Service::choose(d, 5, 64_000);
    s.cap(d.pick(&[2_000, 10_000, 25_000]));
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: {}", pie_words(d, estimator))];
    if d.chance(20) {
        setup.push(format!("qdisc change dev $DEV $PARENT handle 1: {}", pie_words(d, estimator)));
    }
    let mut t = s.traffic(300, 4, true);
    t.span_us = d.range(500_000, 4_000_000);
    t.bytes_per_s = t.bytes_per_s * d.range(8, 20) / 10;
    let packets = sequence(d, t, |d, m| {
        if d.chance(50) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0xb9, 0x2a])));
        }
    });
    s.spec(setup, packets)
}

/// The words of fq_codel.
pub fn fq_codel_words(d: &mut Dice) -> String {
    let mut o = codel_words(d).replacen("codel", "fq_codel", 1);
    if d.chance(40) {
        o += &format!(" quantum {}", d.scale(256, 6000));
    }
    if d.chance(30) {
        o += &format!(" drop_batch {}", d.scale(1, 64));
    }
    if d.chance(20) && o.contains("ce_threshold") {
        o += d.pick(&[" ce_threshold_selector 0x1/0x3", " ce_threshold_selector 0x28/0xfc"]);
    }
    o
}

/// fq_codel: flows named by priorities or by filters; by their hash one alone.
pub fn fq_codel(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(250_000);
    let mut line = fq_codel_words(d);
    if d.chance(15) {
        line += &format!(" memory_limit {}", d.scale(2000, 60_000));
    }
    let (named, filtered) = (d.chance(60), d.chance(40));
    let flows = match named || filtered {
        true if d.chance(60) => 1024,
        true => d.range(2, 8),
        false => 1,
    };
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: {line} flows {flows}")];
    if filtered {
        for n in 1..=3 {
            let beyond = u64::from(d.chance(10));
            let target = d.range(0, flows.min(9) + beyond);
            setup.push(format!(
                "filter add dev $DEV parent 1: protocol all prio 1 handle {n} fw classid 1:{target:x}"
            ));
        }
        if d.chance(60) {
            setup.push("filter add dev $DEV parent 1: protocol all prio 9 matchall classid 1:1".to_owned());
        }
    }
    let mut t = s.traffic(300, if named || filtered { 4 } else { 1 }, true);
    t.bytes_per_s *= 2;
    let packets = sequence(d, t, |d, m| {
        if d.chance(40) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0xb9, 0x2a])));
        }
        if filtered {
            m.insert("mark".into(), json!(d.range(0, 4)));
        }
        if named && (!filtered || d.chance(50)) {
            m.insert("priority".into(), json!(format!("1:{:x}", d.range(1, flows.min(6)))));
        }
    });
    s.spec(setup, packets)
}

/// The words of sfb: probabilities that are all or nothing, or too small to matter.
pub fn sfb_words(d: &mut Dice) -> String {
    let mut o = format!("sfb increment {} decrement {}", d.pick(&["1", "1", "0"]), d.pick(&["1", "1", "0"]));
    if d.chance(60) {
        o += &format!(" limit {}", d.scale(1, 200));
    }
    if d.chance(70) {
        let target = d.range(1, 20);
        o += &format!(" target {target}");
        if d.chance(60) {
            o += &format!(" max {}", target + d.range(0, 30));
        }
    }
    if d.chance(60) {
        o += &format!(" penalty_rate {} penalty_burst {}", d.range(0, 1), d.range(0, 30));
    }
    o
}

/// sfb: its hashes are random, and how many bins two flows share shows; so there is one.
pub fn sfb(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(250_000);
    let filtered = d.chance(30);
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: {}", sfb_words(d))];
    if d.chance(15) {
        setup.push(format!("qdisc change dev $DEV $PARENT handle 1: {}", sfb_words(d)));
    }
    if d.chance(25) {
        let child = d.pick(&["pfifo limit 5", "bfifo limit 9000", "prio", "pfifo_head_drop limit 6"]);
        setup.push(format!("qdisc add dev $DEV parent 1:1 handle 11: {child}"));
    }
    if filtered {
        for n in 1..=3 {
            setup
                .push(format!("filter add dev $DEV parent 1: protocol all prio 1 handle {n} fw classid 1:1"));
        }
        if d.chance(50) {
            setup.push("filter add dev $DEV parent 1: protocol all prio 9 matchall classid 1:1".to_owned());
        }
    }
    let mut t = s.traffic(300, if filtered { 3 } else { 1 }, true);
    t.bytes_per_s *= 2;
    let packets = sequence(d, t, |d, m| {
        if d.chance(50) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0xb9, 0x2a])));
        }
        if filtered {
            m.insert("mark".into(), json!(d.range(0, 4)));
        }
    });
    s.spec(setup, packets)
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

/// The words of one RED of gred, behind `gred`.
fn vq_words(d: &mut Dice, vq: u64) -> String {
    let red = red_words(d);
    // The same words but for the flags, which are each queue's own.
    let kept = red.split(" ecn").next().unwrap_or_default().split(" adaptive").next().unwrap_or_default();
    let prio = if d.chance(60) { format!(" prio {}", d.range(1, 4)) } else { String::new() };
    let own = if d.chance(20) { " ecn" } else { "" };
    let bandwidth = if kept.contains("bandwidth") { "" } else { " bandwidth 1000kbit" };
    format!("gred vq {vq}{}{bandwidth}{prio}{own}", kept.trim_start_matches("red"))
}

/// The commands of a gred of `vqs` virtual queues with these words each.
pub fn gred_of(d: &mut Dice, vqs: u64, words: impl Fn(&mut Dice, u64) -> String) -> Vec<String> {
    let grio = if d.chance(50) { " grio" } else { "" };
    let limit = if d.chance(40) { format!(" limit {}", d.scale(3000, 200_000)) } else { String::new() };
    let mut setup = vec![format!(
        "qdisc add dev $DEV $PARENT handle 1: gred setup vqs {vqs} default {}{grio}{limit}",
        d.range(0, vqs - 1)
    )];
    for vq in 0..vqs {
        if d.chance(80) {
            setup.push(format!("qdisc change dev $DEV $PARENT handle 1: {}", words(d, vq)));
        }
    }
    setup.push("qdisc add dev $DEV clsact".to_owned());
    for mark in 1..=4 {
        setup.push(format!(
            "filter add dev $DEV egress protocol all prio 1 handle {mark} fw classid 1:{:x} action ok",
            d.range(0, vqs)
        ));
    }
    setup
}

/// A case about gred: filters at the egress hook choose the virtual queue.
pub fn gred(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(250_000);
    let vqs = d.range(1, 4);
    let setup = gred_of(d, vqs, vq_words);
    let mut t = s.traffic(300, 4, true);
    t.bytes_per_s *= 2;
    let packets = sequence(d, t, |d, m| {
        m.insert("mark".into(), json!(d.range(0, 4)));
        if d.chance(40) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3])));
        }
    });
    s.spec(setup, packets)
}

/// A case about drr.
pub fn drr(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 8, 250_000);
    s.cap(500_000);
    let mut setup = vec!["qdisc add dev $DEV $PARENT handle 1: drr".to_owned()];
    let classes = d.range(1, 5);
    for n in 1..=classes {
        let quantum = if d.chance(70) { format!(" quantum {}", d.scale(200, 8000)) } else { String::new() };
        setup.push(format!("class add dev $DEV parent 1: classid 1:{n} drr{quantum}"));
        if d.chance(60) {
            let child = match d.range(0, 5) {
                0..=2 => format!("pfifo limit {}", d.range(1, 30)),
                3 => format!("bfifo limit {}", d.scale(1000, 20_000)),
                4 => format!("red limit 40000 min 3000 max 3001 avpkt 1000 burst {}", d.range(4, 20)),
                _ => codel_words(d),
            };
            setup.push(format!("qdisc add dev $DEV parent 1:{n} handle {:x}: {child}", 16 + n));
        }
    }
    for n in 0..d.range(1, 4) {
        let beyond = u64::from(d.chance(10));
        let target = d.range(1, classes + beyond);
        setup.push(format!(
            "filter add dev $DEV parent 1: protocol all prio 1 handle {} fw classid 1:{target}",
            n + 1
        ));
    }
    if d.chance(70) {
        setup.push("filter add dev $DEV parent 1: protocol all prio 9 matchall classid 1:1".to_owned());
    }
    let t = s.traffic(200, 4, true);
    let packets = sequence(d, t, |d, m| {
        if d.chance(70) {
            m.insert("mark".into(), json!(d.range(0, 4)));
        } else if d.chance(50) {
            m.insert("priority".into(), json!(format!("1:{:x}", d.range(0, classes + 1))));
        }
    });
    s.spec(setup, packets)
}
