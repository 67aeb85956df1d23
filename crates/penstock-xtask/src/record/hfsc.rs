//! Random hierarchies of service curves.

use super::classify;
use super::dice::Dice;
use super::kinds::{Service, rate_bits, rate_word};
use super::packets::sequence;
use serde_json::{Value, json};

/// One class of a generated tree.
struct Class {
    id: u64,
    parent: Option<u64>,
    bits: u64,
    leaf: bool,
}

/// A curve in one of tc's ways of writing it.
fn curve(d: &mut Dice, bits: u64) -> String {
    let rate = rate_word(d, bits.max(8000));
    let faster = (bits * d.range(1, 6)).max(8000);
    let slower = bits / d.range(2, 8);
    match d.range(0, 9) {
        0..=3 => format!("rate {rate}"),
        4 | 5 => format!("m1 {faster}bit d {}ms m2 {rate}", d.pick(&[1, 5, 10, 20, 50, 200])),
        6 | 7 => format!("m1 {slower}bit d {}ms m2 {rate}", d.pick(&[1, 5, 10, 20, 100])),
        8 => format!("umax {}b dmax {}ms rate {rate}", d.pick(&[100, 1514, 3000]), d.range(1, 60)),
        _ => format!("m1 {faster}bit d {}us m2 0bit", d.scale(100, 50_000)),
    }
}

/// Options of a class, at random.
fn params(d: &mut Dice, bits: u64, leaf: bool) -> String {
    if d.chance(10) && (leaf || d.chance(15)) {
        // Without a share of the rest there is no limit of it either.
        let limit = if d.chance(3) { " ul rate 1mbit" } else { "" };
        return format!("rt {}{limit}", curve(d, bits));
    }
    let mut o = match d.range(0, 9) {
        0..=2 => format!("ls {}", curve(d, bits)),
        3..=5 => format!("sc {}", curve(d, bits)),
        6 | 7 if leaf => format!("rt {} ls {}", curve(d, bits), curve(d, bits)),
        _ => format!("ls rate {}", rate_word(d, bits.max(8000))),
    };
    if d.chance(30) {
        let most = bits * d.range(1, 3);
        o += &format!(" ul {}", curve(d, most));
    }
    o
}

/// A qdisc for a leaf.
fn child(d: &mut Dice, bits: u64) -> String {
    match d.range(0, 8) {
        0..=2 => format!("pfifo limit {}", d.range(1, 20)),
        3 => format!("bfifo limit {}", d.scale(200, 20_000)),
        4 => format!(
            "tbf rate {}bit burst {} limit {}",
            bits.max(8000) * d.range(1, 3),
            d.scale(1514, 9000),
            d.scale(2000, 30_000)
        ),
        5 => "prio".to_owned(),
        6 => format!(
            "codel limit {} target {}ms interval {}ms",
            d.range(5, 100),
            d.range(1, 6),
            d.range(8, 60)
        ),
        7 => format!("red limit 40000 min 3000 max 3001 avpkt 1000 burst {}", d.range(4, 20)),
        _ => "pfifo_fast".to_owned(),
    }
}

/// A case.
pub fn case(d: &mut Dice) -> Value {
    let top = if d.chance(10) { 10_000_000_000 } else { 20_000_000 };
    let total = rate_bits(d, top).max(16_000);
    // Its timer goes off at whole ticks of 64 ns.
    let s = Service::choose(d, 45, total / 8).unblocked();
    let default = d.pick(&["", " default 10", " default 2", " default 3", " default 99", " default 0"]);
    let mut setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: hfsc{default}")];
    let mut classes: Vec<Class> = Vec::new();
    let (mut id, roots) = (1, d.range(1, 3));
    for _ in 0..roots {
        grow(d, &mut classes, &mut id, None, total / roots, 0);
    }
    let name = |parent: Option<u64>| parent.map_or("1:".to_owned(), |p| format!("1:{p:x}"));
    for c in &classes {
        let (parent, options) = (name(c.parent), params(d, c.bits, c.leaf));
        setup.push(format!("class add dev $DEV parent {parent} classid 1:{:x} hfsc {options}", c.id));
    }
    let ids: Vec<u64> = classes.iter().map(|c| c.id).collect();
    let leaves: Vec<u64> = classes.iter().filter(|c| c.leaf).map(|c| c.id).collect();
    for c in classes.iter().filter(|c| c.leaf) {
        if d.chance(40) {
            let child = child(d, c.bits);
            setup.push(format!("qdisc add dev $DEV parent 1:{:x} handle {:x}: {child}", c.id, 0x100 + c.id));
        }
    }
    for _ in 0..if d.chance(30) { d.range(1, 2) } else { 0 } {
        let c = &classes[d.range(0, classes.len() as u64 - 1) as usize];
        let (verb, parent) = (d.pick(&["change", "replace"]), name(c.parent));
        let bits = c.bits * d.range(1, 3) / 2;
        let options = params(d, bits, c.leaf);
        setup.push(format!("class {verb} dev $DEV parent {parent} classid 1:{:x} hfsc {options}", c.id));
    }
    if d.chance(12) && leaves.len() > 1 {
        setup.push(format!("class del dev $DEV classid 1:{:x}", d.pick(&leaves)));
    }
    if d.chance(4) {
        let id = d.pick(&[0x1, 0x66]);
        setup.push(format!(
            "class add dev $DEV parent 1:{:x} classid 1:7e hfsc {}",
            id,
            d.pick(&["ls rate 1mbit", "ul rate 1mbit"])
        ));
    }
    let filtered = d.chance(30);
    if filtered {
        let mut targets: Vec<String> = ids.iter().map(|i| format!("1:{i:x}")).collect();
        targets.push("1:5f".to_owned());
        classify::simple(d, &mut setup, "1:", &targets);
        if let Some(inner) = classes.iter().find(|c| !c.leaf)
            && d.chance(50)
        {
            classify::simple(d, &mut setup, &format!("1:{:x}", inner.id), &targets);
        }
    }
    let mut t = s.traffic(120, 4, d.chance(30));
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

fn grow(d: &mut Dice, classes: &mut Vec<Class>, id: &mut u64, parent: Option<u64>, bits: u64, depth: u64) {
    let me = *id;
    *id += if d.chance(80) { 1 } else { d.range(2, 5) };
    let children = match depth {
        _ if depth >= 4 || classes.len() > 14 => 0,
        0 => d.range(0, 4),
        _ => d.range(0, 5) / 2,
    };
    classes.push(Class { id: me, parent, bits: bits.max(8000), leaf: children == 0 });
    for _ in 0..children {
        let share = if d.chance(80) { bits / children } else { bits };
        grow(d, classes, id, Some(me), share, depth + 1);
    }
}
