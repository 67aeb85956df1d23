//! Deep trees: three and four levels in which every kind may stand in every other, with filters of every classifier,
//! chains and actions, and with commands amid the traffic of every sort.

use super::aqm::{choke_words, codel_words, fq_codel_words, pie_words, red_words, sfb_words};
use super::classify::{fw_line, u32_line};
use super::dice::Dice;
use super::kinds::{Service, rate_bits, sfq_options, tbf_options};
use super::matches::flower;
use super::packets::sequence;
use super::{htb, midway};
use serde_json::{Value, json};

/// The cases of `mixed` from this number on are deep trees.
pub const FROM: u64 = 400_000;
/// From this number on kinds that 6.12 has not occur too.
pub const NEWER: u64 = 500_000;

/// A tree under construction.
struct Plan {
    setup: Vec<String>,
    /// Handles from here on are free.
    next: u64,
    classes: Vec<String>,
    /// Every qdisc that takes filters, with what they may lead to.
    stages: Vec<(String, Vec<String>)>,
    /// Where a qdisc stands, and the words that made it.
    qdiscs: Vec<(String, String)>,
    /// The least rate on the way, bit/s.
    bits: u64,
    /// Whether a hash decides which packets share a queue.
    hashed: bool,
    newer: bool,
}

/// A case.
pub fn case(d: &mut Dice, seed: u64) -> Value {
    let mut plan = Plan {
        setup: Vec::new(),
        next: 1,
        classes: Vec::new(),
        stages: Vec::new(),
        qdiscs: Vec::new(),
        bits: 20_000_000,
        hashed: false,
        // What is woven into a case is of the same kernel.
        newer: seed & u64::from(u32::MAX) >= NEWER,
    };
    if d.chance(10) {
        let size =
            d.pick(&["txqueuelen 0", "txqueuelen 1", "txqueuelen 30", "mtu 9000", "mtu 68", "mtu 576"]);
        plan.setup.push(format!("ip link set dev $DEV {size}"));
        if size.starts_with("mtu") {
            plan.setup.push("ip link set dev $DEV mtu 1500".to_owned());
        }
    }
    // Timers of 64 ns and what counts from the first packet on are not known against a blocked line.
    let mut s = Service::choose(d, 70, 500_000).unblocked();
    let deepest = d.range(2, 4);
    grow(d, &mut plan, "$PARENT", 0, deepest);
    for _ in 0..d.range(1, 8) {
        if !plan.stages.is_empty() {
            filter(d, &mut plan);
        }
    }
    s.cap(plan.bits / 8);
    let mut t = s.traffic(110, if plan.hashed { 1 } else { 5 }, true);
    t.bytes_per_s = t.bytes_per_s.min(plan.bits / 8).max(1000) * d.range(1, 3);
    let classes = plan.classes.clone();
    let packets = sequence(d, t, |d, m| {
        match d.range(0, 9) {
            0..=4 if !classes.is_empty() => {
                m.insert("priority".into(), json!(d.pick(&classes)));
            }
            5 => {
                m.insert("priority".into(), json!(d.range(0, 15)));
            }
            6 | 7 => {
                m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0xb9, 0x2a, 0x10, 0x88, 255])));
            }
            _ => {}
        }
        if d.chance(40) {
            m.insert("mark".into(), json!(d.pick(&[1, 2, 3, 5, 0x10, 0x12])));
        }
    });
    let (setup, commands) = (plan.setup.clone(), commands(d, &plan));
    let mut spec = s.spec(setup, packets);
    spec["drain_s"] = json!(d.pick(&[0.3, 1.5, 1.5]));
    if d.chance(65) {
        amid(d, &mut spec, &commands);
    }
    spec
}

/// Changes, replacements, deletions and additions of what stands, and of what never did.
fn commands(d: &mut Dice, plan: &Plan) -> Vec<String> {
    let mut all = Vec::new();
    for line in &plan.setup {
        if line.starts_with("ip ") {
            continue;
        }
        let root = line.contains("$PARENT");
        all.extend(midway::renewed(d, line));
        if !root {
            all.extend(midway::removed(line));
            all.push(line.clone());
        }
        if line.starts_with("class add") {
            all.push(line.replacen("class add", "class replace", 1));
        }
        if line.starts_with("filter add") {
            all.push(line.replacen("filter add", "filter replace", 1));
            if let Some(parent) = line.split(' ').skip_while(|w| *w != "parent").nth(1) {
                all.push(format!("filter del dev $DEV parent {parent}"));
            }
        }
    }
    for (at, _) in plan.qdiscs.iter().filter(|(at, _)| at != "$PARENT") {
        let mut other = Plan {
            setup: Vec::new(),
            next: d.range(0x700, 0x7f0),
            classes: Vec::new(),
            stages: Vec::new(),
            qdiscs: Vec::new(),
            bits: 20_000_000,
            hashed: false,
            newer: plan.newer,
        };
        let class = at.trim_start_matches("parent ").to_owned();
        grow(d, &mut other, &class, 9, 0);
        let verb = d.pick(&["replace", "replace", "add"]);
        all.extend(other.setup.iter().map(|l| l.replacen("qdisc add", &format!("qdisc {verb}"), 1)));
        all.push(format!("qdisc del dev $DEV {at}"));
    }
    for class in &plan.classes {
        if d.chance(30) {
            all.push(format!("qdisc replace dev $DEV parent {class} pfifo limit {}", d.range(0, 3)));
            all.push(format!("class del dev $DEV classid {class}"));
        }
    }
    all.push(format!("ip link set dev $DEV txqueuelen {}", d.pick(&[0, 1, 3, 100])));
    all.push(format!("ip link set dev $DEV mtu {}", d.pick(&[1500, 9000])));
    all
}

/// Puts some of them among the packets.
fn amid(d: &mut Dice, spec: &mut Value, commands: &[String]) {
    let Some(packets) = spec["packets"].as_array_mut() else { return };
    let end = packets.iter().filter_map(|p| p["t_us"].as_f64()).fold(0.0, f64::max) as u64;
    for _ in 0..d.range(1, 14) {
        let entry = json!({"t_us": d.range(0, end + end / 4 + 100), "run": d.pick(commands)});
        let place = d.range(0, packets.len() as u64) as usize;
        packets.insert(place, entry);
    }
}

fn filter(d: &mut Dice, plan: &mut Plan) {
    let (parent, targets) = d.pick(&plan.stages);
    let target = if d.chance(90) { d.pick(&targets) } else { d.pick(&plan.classes) };
    let chain = if d.chance(15) { format!(" chain {}", d.range(1, 2)) } else { String::new() };
    let protocol = d.pick(&["ip", "ip", "all", "ipv6"]);
    let head = format!("filter add dev $DEV parent {parent}{chain} protocol {protocol}");
    let kind = d.range(0, 6);
    // A priority belongs to one protocol and one kind.
    let own = match protocol {
        "ip" => 0,
        "all" => 1,
        _ => 2,
    };
    let head = format!("{head} prio {}", 100 * d.range(1, 3) + 10 * kind + own);
    let does = match d.range(0, 9) {
        0 => " action drop".to_owned(),
        1 => format!(" action goto chain {}", d.range(1, 2)),
        2 => format!(
            " action skbedit priority {} action {}",
            d.pick(&plan.classes),
            d.pick(&["ok", "continue", "reclassify"])
        ),
        3 => format!(
            " action police rate {}kbit burst {} conform-exceed {}",
            d.scale(8, 4000),
            d.scale(1, 9000),
            d.pick(&["drop", "drop/pass", "continue", "ok/continue"])
        ),
        4 => " action continue".to_owned(),
        _ => String::new(),
    };
    let line = match kind {
        0 | 1 => fw_line(d, &head, &target) + &does,
        2 => u32_line(d, &head, &target) + &does,
        3 => format!("{head} {} classid {target}{does}", flower(d, protocol)),
        4 => format!("{head} matchall classid {target}{does}"),
        5 => format!("{head} basic match 'meta(nf_mark eq {})' classid {target}{does}", d.range(0, 3)),
        _ => format!(
            "{head} flow map key {} divisor {} baseclass {target}{}",
            d.pick(&["mark", "priority", "src", "proto"]),
            d.range(1, 5),
            if does.contains("continue") || does.contains("drop") { "" } else { &does }
        ),
    };
    plan.setup.push(line);
}

/// Words of a kind without classes below, or whose classes are left as they are.
fn leaf(d: &mut Dice, plan: &mut Plan) -> String {
    let last = if plan.newer { 22 } else { 20 };
    match d.range(0, last) {
        0 => format!("pfifo limit {}", d.scale(0, 40)),
        1 => format!("bfifo limit {}", d.scale(1, 20_000)),
        2 => format!("pfifo_head_drop limit {}", d.scale(0, 20)),
        3 => codel_words(d),
        4 => {
            plan.hashed |= d.chance(50);
            fq_codel_words(d)
        }
        5 => format!(
            "fq limit {} flow_limit {} maxrate {}kbit",
            d.scale(1, 100),
            d.scale(1, 60),
            d.scale(30, 20_000)
        ),
        6 => pie_words(d, false),
        7 => pie_words(d, false).replacen("pie", "fq_pie", 1),
        8 => red_words(d),
        9 => {
            plan.hashed = true;
            choke_words(d)
        }
        10 => {
            plan.hashed = true;
            sfb_words(d)
        }
        11 => {
            plan.hashed = true;
            format!("sfq{}", sfq_options(d))
        }
        12 => {
            format!(
                "hhf limit {} quantum {} admit_bytes {}",
                d.scale(1, 100),
                d.scale(256, 6000),
                d.scale(100, 20_000)
            )
        }
        13 => format!("skbprio limit {}", d.scale(0, 40)),
        14 => {
            plan.hashed = true;
            let rate = rate_bits(d, 20_000_000).max(64_000);
            plan.bits = plan.bits.min(rate);
            format!(
                "cake bandwidth {rate}bit {} {}{}",
                d.pick(&["besteffort", "precedence", "diffserv3", "diffserv4", "diffserv8"]),
                d.pick(&["flowblind", "flows", "triple-isolate", "hosts"]),
                d.pick(&["", " ingress", " wash", " atm overhead 18", " ack-filter", " no-split-gso"])
            )
        }
        15 => "pfifo_fast".to_owned(),
        16 => {
            let shape =
                d.pick(&["", " loss 100%", " limit 3", " duplicate 100%", " corrupt 100%", " limit 1"]);
            format!("netem delay {}us{shape}", d.scale(1, 60_000))
        }
        17 => format!("tbf {}", tbf_options(d, plan.bits.max(64_000))),
        18 => format!("gred setup vqs {} default 0", d.range(1, 4)),
        19 => d.pick(&["blackhole", "plug limit 4000", "plug", "noqueue"]).to_owned(),
        20 => "drr".to_owned(),
        21 => format!(
            "dualpi2 limit {} target {} tupdate {} {}",
            d.scale(1, 100),
            d.pick(&["2s", "5s"]),
            d.pick(&["16ms", "5ms"]),
            d.pick(&["", "step_thresh 1ms", "step_thresh 4p", "no_split_gso", "drop_enqueue"])
        ),
        _ => format!("dualpi2 limit {} target 3s", d.scale(1, 30)),
    }
}

fn grow(d: &mut Dice, plan: &mut Plan, parent: &str, depth: u64, deepest: u64) {
    let handle = plan.next;
    plan.next += 1;
    let h = format!("{handle:x}");
    let at = if parent == "$PARENT" { parent.to_owned() } else { format!("parent {parent}") };
    let size_table = if depth <= deepest && d.chance(12) {
        d.pick(&[
            " stab overhead 20 linklayer atm",
            " stab linklayer ethernet mpu 300 overhead 40",
            " stab mtu 1500 tsize 128 overhead -8 linklayer ethernet",
            " stab mtu 2047 tsize 512 mpu 64 overhead 44 linklayer atm",
            " stab overhead -30 linklayer ethernet",
        ])
    } else {
        ""
    };
    let start = format!("qdisc add dev $DEV {at} handle {h}:{size_table} ");
    if depth >= deepest || (depth > 0 && d.chance(20)) {
        let words = leaf(d, plan);
        plan.setup.push(format!("{start}{words}"));
        plan.qdiscs.push((at, words));
        return;
    }
    let kind = d.range(0, 12);
    let before = plan.setup.len();
    let mut below: Vec<String> = Vec::new();
    match kind {
        0 | 1 => below = htb_tree(d, plan, &start, handle),
        2 => below = curves(d, plan, &start, handle),
        3..=5 => {
            let bands = d.range(2, 5);
            let map: Vec<String> = (0..16).map(|_| d.range(0, bands - 1).to_string()).collect();
            plan.setup.push(if kind == 5 {
                let strict = d.range(0, bands);
                let quanta: Vec<String> =
                    (0..bands - strict).map(|_| d.pick(&[1, 300, 1514, 4000]).to_string()).collect();
                let quanta =
                    if quanta.is_empty() { String::new() } else { format!(" quanta {}", quanta.join(" ")) };
                format!("{start}ets bands {bands} strict {strict}{quanta} priomap {}", map.join(" "))
            } else {
                format!("{start}prio bands {bands} priomap {}", map.join(" "))
            });
            below = (1..=bands).map(|b| format!("{h}:{b}")).collect();
            plan.stages.push((format!("{h}:"), below.clone()));
        }
        6 | 7 => {
            let qfq = kind == 7;
            plan.setup.push(format!("{start}{}", if qfq { "qfq" } else { "drr" }));
            let count = if d.chance(3) { d.range(60, 130) } else { d.range(1, 4) };
            for n in 1..=count {
                let words = match qfq {
                    true => format!(
                        "qfq weight {} maxpkt {}",
                        d.scale(1, 1023),
                        d.pick(&[512, 1000, 1514, 1514, 9000])
                    ),
                    false => format!("drr quantum {}", d.pick(&[1, 300, 1514, 6000])),
                };
                plan.setup.push(format!("class add dev $DEV parent {h}: classid {h}:{n:x} {words}"));
                below.push(format!("{h}:{n:x}"));
            }
            plan.stages.push((format!("{h}:"), below.clone()));
            if d.chance(70) {
                plan.setup.push(format!(
                    "filter add dev $DEV parent {h}: protocol all prio 999 matchall classid {h}:1"
                ));
            }
        }
        8 => {
            let bits = if d.chance(8) {
                d.pick(&[8, 1000, 100_000_000_000])
            } else {
                rate_bits(d, 20_000_000).max(64_000)
            };
            plan.bits = plan.bits.min(bits.max(64_000));
            plan.setup.push(format!("{start}tbf {}", tbf_options(d, bits)));
            below = vec![format!("{h}:1")];
        }
        9 => {
            plan.setup.push(format!("{start}netem delay {}us", d.scale(1, 30_000)));
            below = vec![format!("{h}:1")];
        }
        10 => {
            plan.setup.push(format!("{start}{}", red_words(d)));
            below = vec![format!("{h}:1")];
        }
        11 => {
            plan.setup.push(format!(
                "{start}cbs idleslope {} sendslope -10000000 hicredit {} locredit -{}",
                d.scale(64, 20_000),
                d.scale(1, 10_000),
                d.scale(1, 10_000)
            ));
            below = vec![format!("{h}:0")];
        }
        _ => {
            plan.hashed = true;
            plan.setup.push(format!("{start}{}", sfb_words(d)));
            below = vec![format!("{h}:1")];
        }
    }
    plan.qdiscs.push((at, plan.setup[before].clone()));
    let one = below.len() == 1;
    for class in below.iter().take(8) {
        if one || d.chance(55) {
            grow(d, plan, class, depth + 1, deepest);
        }
    }
    plan.classes.extend(below);
}

/// An htb with classes; answers its leaves.
fn htb_tree(d: &mut Dice, plan: &mut Plan, start: &str, handle: u64) -> Vec<String> {
    let default = if d.chance(70) { format!(" default {}", d.range(1, 9)) } else { String::new() };
    let more = d.pick(&["", "", "", " r2q 1", " direct_qlen 2", " direct_qlen 0"]);
    plan.setup.push(format!("{start}htb{default}{more}"));
    let total = rate_bits(d, 20_000_000).max(64_000);
    plan.bits = plan.bits.min(total);
    let mut made: Vec<(u64, u64)> = Vec::new();
    let mut inner: Vec<u64> = Vec::new();
    let count = if d.chance(4) { d.range(60, 200) } else { d.range(1, 7) };
    for n in 1..=count {
        let parent = if made.is_empty() || d.chance(30) { None } else { Some(d.pick(&made)) };
        let bits = match d.range(0, 30) {
            0 => 8,
            1 => 100_000_000_000,
            _ => parent.map_or(total, |p| (p.1 / d.range(1, 4)).max(16_000)),
        };
        let ceil = if d.chance(60) { total } else { bits };
        let at = parent.map_or(format!("{handle:x}:"), |p| format!("{handle:x}:{:x}", p.0));
        inner.extend(parent.map(|p| p.0));
        plan.setup.push(format!(
            "class add dev $DEV parent {at} classid {handle:x}:{n:x} htb {}",
            htb::params(d, bits, ceil.max(bits), true)
        ));
        made.push((n, bits));
    }
    let id = |n: u64| format!("{handle:x}:{n:x}");
    let classes: Vec<String> = made.iter().map(|m| id(m.0)).collect();
    plan.classes.extend(inner.iter().map(|&n| id(n)));
    plan.stages.push((format!("{handle:x}:"), classes.clone()));
    if let Some(&n) = inner.first() {
        plan.stages.push((id(n), classes));
    }
    made.iter().filter(|m| !inner.contains(&m.0)).map(|m| id(m.0)).collect()
}

/// An hfsc with classes; answers its leaves.
fn curves(d: &mut Dice, plan: &mut Plan, start: &str, handle: u64) -> Vec<String> {
    let default = if d.chance(70) { format!(" default {}", d.range(1, 5)) } else { String::new() };
    plan.setup.push(format!("{start}hfsc{default}"));
    let total = rate_bits(d, 20_000_000).max(64_000);
    plan.bits = plan.bits.min(total);
    let (mut all, mut inner) = (Vec::new(), Vec::new());
    for n in 1..=d.range(1, 5) {
        let parent = if all.is_empty() || d.chance(50) { None } else { Some(d.pick(&all)) };
        let at = parent.map_or(format!("{handle:x}:"), |p: u64| format!("{handle:x}:{p:x}"));
        inner.extend(parent);
        let bits = total / d.range(1, 4);
        let curve = match d.range(0, 4) {
            0 => format!("sc rate {bits}bit"),
            1 => format!("ls rate {bits}bit ul rate {total}bit"),
            2 => format!("ls m1 {}bit d {}ms m2 {bits}bit", bits * 2, d.range(1, 60)),
            3 => format!("rt m1 {}bit d {}us m2 {bits}bit ls rate {bits}bit", bits * 3, d.scale(100, 40_000)),
            _ => format!("rt umax 1514b dmax {}ms rate {bits}bit ls rate {bits}bit", d.range(1, 60)),
        };
        plan.setup.push(format!("class add dev $DEV parent {at} classid {handle:x}:{n:x} hfsc {curve}"));
        all.push(n);
    }
    let id = |n: u64| format!("{handle:x}:{n:x}");
    let classes: Vec<String> = all.iter().map(|&n| id(n)).collect();
    plan.classes.extend(inner.iter().map(|&n| id(n)));
    plan.stages.push((format!("{handle:x}:"), classes));
    all.into_iter().filter(|n| !inner.contains(n)).map(id).collect()
}

#[cfg(test)]
mod tests {
    use super::super::kinds;
    use super::*;

    #[test]
    fn trees_are_deep_and_of_every_kind() {
        let all: Vec<String> =
            (FROM..FROM + 200).map(|n| kinds::generate("mixed", n).unwrap().to_string()).collect();
        assert_eq!(kinds::generate("mixed", FROM).unwrap().to_string(), all[0]);
        for kind in ["drr", "qfq", "hfsc", "ets", "netem", "cbs", "choke", "cake", "fq_pie", "hhf", "gred"] {
            assert!(all.iter().any(|case| case.contains(&format!(": {kind}"))), "{kind}");
        }
        let deep = all.iter().filter(|case| case.contains("handle 9:") && case.contains("\"run\"")).count();
        assert!(deep > 20, "{deep}");
        assert!(!all.iter().any(|case| case.contains("dualpi2")));
    }
}
