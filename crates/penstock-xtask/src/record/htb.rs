//! Random HTB trees.

use super::classify;
use super::dice::Dice;
use super::kinds::{Service, rate_bits, rate_word};
use super::packets::sequence;
use serde_json::{Value, json};

/// One class of a generated HTB tree.
struct HtbClass {
    id: u64,
    parent: Option<u64>,
    bits: u64,
    leaf: bool,
}

/// Options of the kind, at random.
pub fn params(d: &mut Dice, bits: u64, ceil: u64, leaf: bool) -> String {
    let mut o = format!("rate {}", rate_word(d, bits));
    if ceil > bits || d.chance(20) {
        o += &format!(" ceil {}", rate_word(d, ceil));
    }
    if d.chance(60) {
        o += &format!(" burst {}", d.scale(1, 30_000));
    }
    if d.chance(50) {
        o += &format!(" cburst {}", d.scale(1, 30_000));
    }
    if leaf && d.chance(40) {
        o += &format!(" prio {}", d.range(0, 7));
    }
    if leaf && d.chance(40) {
        o += &format!(" quantum {}", d.pick(&[1000, 1500, 1514, 3000, 6000, 20_000, 60_000]));
    }
    if d.chance(8) {
        o += &format!(" mpu {}", d.pick(&[64, 300, 1500]));
    }
    if d.chance(8) {
        o += &format!(" overhead {}", d.pick(&[4, 18, 38]));
    }
    if d.chance(8) {
        o += &format!(" linklayer {}", d.pick(&["atm", "ethernet"]));
    }
    o
}

/// A case.
pub fn case(d: &mut Dice) -> Value {
    let top = if d.chance(10) { 10_000_000_000 } else { 20_000_000 };
    let total = rate_bits(d, top).max(16_000);
    let s = Service::choose(d, 75, total / 8);
    let mut classes: Vec<HtbClass> = Vec::new();
    let mut setup = Vec::new();
    let default = d.pick(&["", " default 10", " default 11", " default 3", " default 99", " default 0"]);
    let r2q = if d.chance(20) { format!(" r2q {}", d.scale(1, 200)) } else { String::new() };
    let direct = if d.chance(10) { format!(" direct_qlen {}", d.range(1, 10)) } else { String::new() };
    setup.push(format!("qdisc add dev $DEV $PARENT handle 1: htb{default}{r2q}{direct}"));
    let roots = d.range(1, 3);
    let mut id = 1;
    for _ in 0..roots {
        let bits = total / roots;
        grow(d, &mut classes, &mut id, None, bits.max(8000), 0);
    }
    let ids: Vec<u64> = classes.iter().map(|c| c.id).collect();
    for c in &classes {
        let ceil = match d.range(0, 3) {
            0 => c.bits,
            1 => total.max(c.bits),
            _ => (c.bits * d.range(1, 4)).min(total.max(c.bits)),
        };
        let parent = c.parent.map_or("1:".to_owned(), |p| format!("1:{p:x}"));
        setup.push(format!(
            "class add dev $DEV parent {parent} classid 1:{:x} htb {}",
            c.id,
            params(d, c.bits, ceil, c.leaf)
        ));
    }
    let leaves: Vec<u64> = classes.iter().filter(|c| c.leaf).map(|c| c.id).collect();
    let mut multi = false;
    for &leaf in &leaves {
        if !d.chance(35) {
            continue;
        }
        let bits = classes.iter().find(|c| c.id == leaf).map_or(8000, |c| c.bits);
        let child = match d.range(0, 6) {
            0 | 1 => format!("pfifo limit {}", d.range(1, 20)),
            2 => format!("bfifo limit {}", d.scale(200, 20_000)),
            3 => format!(
                "tbf rate {}bit burst {} limit {}",
                bits * d.range(1, 3),
                d.scale(1514, 9000),
                d.scale(2000, 30_000)
            ),
            4 => "prio".to_owned(),
            5 => {
                multi = true;
                format!("sfq limit {}", d.range(2, 60))
            }
            _ => "pfifo_fast".to_owned(),
        };
        setup.push(format!("qdisc add dev $DEV parent 1:{leaf:x} handle {:x}: {child}", 0x100 + leaf));
    }
    for _ in 0..if d.chance(30) { d.range(1, 2) } else { 0 } {
        let c = &classes[d.range(0, classes.len() as u64 - 1) as usize];
        let bits = (c.bits * d.range(1, 3) / 2).max(8000);
        let ceil = bits * d.range(1, 2);
        let parent = c.parent.map_or("1:".to_owned(), |p| format!("1:{p:x}"));
        let verb = d.pick(&["change", "replace"]);
        setup.push(format!(
            "class {verb} dev $DEV parent {parent} classid 1:{:x} htb {}",
            c.id,
            params(d, bits, ceil, c.leaf)
        ));
    }
    if d.chance(15) && leaves.len() > 1 {
        setup.push(format!("class del dev $DEV classid 1:{:x}", d.pick(&leaves)));
    }
    if d.chance(4) {
        setup.push(format!(
            "class add dev $DEV parent 1:{:x} classid 1:7e htb rate {}bit",
            d.pick(&[0x55, 0x66]),
            total
        ));
    }
    let filtered = d.chance(30);
    if filtered {
        let mut targets: Vec<String> = ids.iter().map(|i| format!("1:{i:x}")).collect();
        targets.push("1:5f".to_owned());
        classify::simple(d, &mut setup, "1:", &targets);
    }
    let mut t = s.traffic(120, if multi { 1 } else { 4 }, d.chance(30));
    t.bytes_per_s = t.bytes_per_s.min(total / 8);
    let packets = sequence(d, t, |d, m| {
        match d.range(0, 19) {
            0..=15 if !filtered || d.chance(40) => {
                m.insert("priority".into(), json!(format!("1:{:x}", d.pick(&leaves))))
            }
            16 => m.insert("priority".into(), json!(format!("1:{:x}", d.pick(&ids)))),
            17 => m.insert("priority".into(), json!(d.pick(&["1:0", "1:99", "2:1"]))),
            18 => m.insert("tos".into(), json!(d.range(0, 255))),
            _ => m.insert("mark".into(), json!(d.range(0, 5))),
        };
    });
    s.spec(setup, packets)
}

fn grow(d: &mut Dice, classes: &mut Vec<HtbClass>, id: &mut u64, parent: Option<u64>, bits: u64, depth: u64) {
    let me = *id;
    *id += if d.chance(80) { 1 } else { d.range(2, 5) };
    let children = if depth >= 4 || classes.len() > 14 {
        0
    } else if depth == 0 {
        d.range(0, 4)
    } else {
        d.range(0, 5) / 2
    };
    classes.push(HtbClass { id: me, parent, bits, leaf: children == 0 });
    for _ in 0..children {
        let share = if d.chance(80) { bits / children } else { bits };
        grow(d, classes, id, Some(me), share.max(8000), depth + 1);
    }
}
