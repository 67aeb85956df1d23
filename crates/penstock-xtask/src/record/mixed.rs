//! Random trees of every kind in every kind, with filters anywhere and commands that come late.

use super::classify::{fw_line, u32_line};
use super::dice::Dice;
use super::htb::params;
use super::kinds::{Service, rate_bits, sfq_options, tbf_options};
use super::packets::sequence;
use serde_json::{Value, json};

/// A tree under construction.
struct Plan {
    setup: Vec<String>,
    /// Handles from here on are free.
    next: u64,
    /// Every class there is.
    classes: Vec<String>,
    /// Every qdisc that takes filters, with what they may lead to.
    stages: Vec<(String, Vec<String>)>,
    /// The least rate on the way, bit/s.
    bits: u64,
    dice_inside: bool,
}

/// A case of at most `most` packets.
pub fn case(d: &mut Dice, most: u64) -> Value {
    let mut plan = Plan {
        setup: Vec::new(),
        next: 1,
        classes: Vec::new(),
        stages: Vec::new(),
        bits: 10_000_000,
        dice_inside: false,
    };
    if d.chance(10) {
        plan.setup.push(format!("ip link set dev $DEV txqueuelen {}", d.range(1, 40)));
    }
    let stab = d.chance(6);
    let mut s = Service::choose(d, if stab { 100 } else { 60 }, 500_000);
    grow(d, &mut plan, "$PARENT", 0, stab);
    for _ in 0..d.range(0, 5) {
        if plan.stages.is_empty() {
            break;
        }
        let (parent, targets) = d.pick(&plan.stages);
        let target = if d.chance(90) { d.pick(&targets) } else { d.pick(&plan.classes) };
        let head =
            format!("filter add dev $DEV parent {parent} protocol {}", d.pick(&["ip", "ip", "all", "ipv6"]));
        let prio = d.range(1, 60);
        let line = if d.chance(40) {
            fw_line(d, &format!("{head} prio {}", prio * 2), &target)
        } else {
            u32_line(d, &format!("{head} prio {}", prio * 2 + 1), &target)
        };
        plan.setup.push(line);
    }
    for _ in 0..if d.chance(25) { 1 } else { 0 } {
        if let Some(class) = (!plan.classes.is_empty()).then(|| d.pick(&plan.classes)) {
            let line = match d.range(0, 3) {
                0 => {
                    format!("qdisc replace dev $DEV parent {class} handle 7a: pfifo limit {}", d.range(1, 9))
                }
                1 => format!("qdisc del dev $DEV parent {class}"),
                2 => format!("class del dev $DEV classid {class}"),
                _ => {
                    format!("qdisc add dev $DEV parent {class} handle 7b: bfifo limit {}", d.scale(100, 9000))
                }
            };
            plan.setup.push(line);
        }
    }
    s.cap(plan.bits / 8);
    let mut t = s.traffic(most, if plan.dice_inside { 1 } else { 5 }, true);
    t.bytes_per_s = t.bytes_per_s.min(plan.bits / 8).max(1000) * most.div_ceil(110);
    let classes = plan.classes.clone();
    let packets = sequence(d, t, |d, m| {
        match d.range(0, 9) {
            0..=4 if !classes.is_empty() => {
                m.insert("priority".into(), json!(d.pick(&classes)));
            }
            5 => {
                m.insert("priority".into(), json!(d.range(0, 15)));
            }
            6 => {
                m.insert("tos".into(), json!(d.range(0, 255)));
            }
            _ => {}
        }
        if d.chance(30) {
            m.insert("mark".into(), json!(d.pick(&[1, 2, 3, 5, 0x10, 0x12])));
        }
    });
    let mut spec = s.spec(plan.setup, packets);
    if d.chance(8) {
        spec["drain_s"] = json!(d.pick(&[0.05, 0.12, 0.4]));
    }
    spec
}

fn grow(d: &mut Dice, plan: &mut Plan, parent: &str, depth: u64, stab: bool) {
    let handle = plan.next;
    plan.next += 1;
    let h = format!("{handle:x}");
    let at = if parent == "$PARENT" { parent.to_owned() } else { format!("parent {parent}") };
    let size_table = match (stab, d.range(0, 2)) {
        (false, _) => String::new(),
        (true, 0) => " stab overhead 20 linklayer atm".to_owned(),
        (true, 1) => format!(" stab linklayer ethernet mpu {} overhead {}", d.range(64, 200), d.range(1, 60)),
        (true, _) => " stab mtu 1500 tsize 128 overhead -8 linklayer ethernet".to_owned(),
    };
    let start = format!("qdisc add dev $DEV {at} handle {h}:{size_table} ");
    let kind = if depth == 0 {
        d.range(0, 5)
    } else if depth >= 3 {
        d.range(6, 12)
    } else {
        d.range(0, 12)
    };
    match kind {
        0..=2 => htb(d, plan, &start, handle, depth),
        3 | 4 => {
            let bands = d.range(2, 5);
            plan.setup.push(if bands == 3 {
                format!("{start}prio")
            } else {
                format!(
                    "{start}prio bands {bands} priomap {}",
                    (0..16).map(|_| d.range(0, bands - 1).to_string()).collect::<Vec<_>>().join(" ")
                )
            });
            let classes: Vec<String> = (1..=bands).map(|b| format!("{h}:{b}")).collect();
            for class in &classes {
                if d.chance(50) {
                    grow(d, plan, class, depth + 1, false);
                }
            }
            plan.classes.extend(classes.clone());
            plan.stages.push((format!("{h}:"), classes));
        }
        5 | 6 => {
            let bits = rate_bits(d, 20_000_000).max(64_000);
            plan.bits = plan.bits.min(bits);
            plan.setup.push(format!("{start}tbf {}", tbf_options(d, bits)));
            if d.chance(60) {
                grow(d, plan, &format!("{h}:1"), depth + 1, false);
            }
        }
        7 | 8 => plan.setup.push(format!("{start}pfifo limit {}", d.scale(1, 40))),
        9 => plan.setup.push(format!("{start}bfifo limit {}", d.scale(60, 20_000))),
        10 => {
            plan.dice_inside = true;
            plan.setup.push(format!("{start}sfq{}", sfq_options(d)));
        }
        _ => plan.setup.push(format!("{start}pfifo_fast")),
    }
}

fn htb(d: &mut Dice, plan: &mut Plan, start: &str, handle: u64, depth: u64) {
    let default = if d.chance(70) { format!(" default {}", d.range(1, 9)) } else { String::new() };
    plan.setup.push(format!("{start}htb{default}"));
    let total = rate_bits(d, 20_000_000).max(64_000);
    plan.bits = plan.bits.min(total);
    let mut made: Vec<(u64, u64)> = Vec::new();
    let mut inner: Vec<u64> = Vec::new();
    for n in 1..=d.range(1, 7) {
        // A class under an earlier one, or under the qdisc.
        let parent = if made.is_empty() || d.chance(30) { None } else { Some(d.pick(&made)) };
        let bits = parent.map_or(total, |p| (p.1 / d.range(1, 4)).max(16_000));
        let ceil = if d.chance(60) { total } else { bits };
        let at = parent.map_or(format!("{handle:x}:"), |p| format!("{handle:x}:{:x}", p.0));
        inner.extend(parent.map(|p| p.0));
        plan.setup.push(format!(
            "class add dev $DEV parent {at} classid {handle:x}:{n:x} htb {}",
            params(d, bits, ceil.max(bits), true)
        ));
        made.push((n, bits));
    }
    let id = |n: u64| format!("{handle:x}:{n:x}");
    for &(n, _) in &made {
        if !inner.contains(&n) && d.chance(40) {
            grow(d, plan, &id(n), depth + 1, false);
        }
    }
    let classes: Vec<String> = made.iter().map(|m| id(m.0)).collect();
    plan.classes.extend(classes.clone());
    plan.stages.push((format!("{handle:x}:"), classes.clone()));
    if let Some(&n) = inner.first() {
        plan.stages.push((id(n), classes));
    }
}
