//! Cases about netem.

use super::dice::Dice;
use super::kinds::{Service, rate_word};
use super::packets::sequence;
use serde_json::{Value, json};

/// A time in whole units, or in crooked ones that tc rounds.
fn time(d: &mut Dice, most_us: u64) -> String {
    let us = d.scale(1, most_us);
    match d.range(0, 3) {
        0 if us >= 1000 => format!("{}ms", us / 1000),
        1 => format!("{}.{}us", us, d.range(1, 9)),
        _ => format!("{us}us"),
    }
}

fn percent(d: &mut Dice) -> String {
    d.pick(&["0.5%", "1%", "3%", "10%", "25%", "33.3%", "50%", "80%", "100%", "0%"]).to_owned()
}

/// A correlation, seldom: its first throw hangs on the machine's own dice.
fn correlation(d: &mut Dice) -> String {
    if d.chance(12) { format!(" {}", d.pick(&["1%", "5%", "25%", "50%"])) } else { String::new() }
}

fn loss(d: &mut Dice) -> String {
    match d.range(0, 9) {
        0..=3 => {
            let word = d.pick(&["loss", "loss random", "drop"]);
            format!(" {word} {}{}", percent(d), correlation(d))
        }
        4..=6 => {
            let mut o = " loss state".to_owned();
            (0..d.range(1, 5)).for_each(|_| o += &format!(" {}", percent(d)));
            o
        }
        _ => {
            let mut o = " loss gemodel".to_owned();
            (0..d.range(1, 4)).for_each(|_| o += &format!(" {}", percent(d)));
            o
        }
    }
}

fn slot(d: &mut Dice) -> String {
    let mut o = match d.range(0, 2) {
        // A range of two ends is thrown by the machine's dice.
        0 | 1 => format!(" slot {}us", d.scale(50, 40_000)),
        _ => {
            let table = d.pick(&["normal", "pareto", "paretonormal"]);
            let mean = d.scale(500, 30_000);
            format!(" slot distribution {table} {mean}us {}us", 1 + mean / d.range(4, 20))
        }
    };
    if d.chance(50) {
        o += &format!(" packets {}", d.range(1, 6));
    }
    if d.chance(30) {
        o += &format!(" bytes {}", d.scale(300, 6000));
    }
    o
}

/// Words of netem; with `duplicate` only where a copy may come.
fn words(d: &mut Dice, duplicates: bool) -> String {
    let mut o = String::from("netem");
    if d.chance(30) {
        o += &format!(" limit {}", d.scale(1, 120));
    }
    let delayed = d.chance(75);
    if delayed {
        o += &format!(" delay {}", time(d, 120_000));
        if d.chance(60) {
            o += &format!(" {}", time(d, 60_000));
            if d.chance(45) {
                o += &format!(" distribution {}", d.pick(&["normal", "pareto", "paretonormal"]));
            }
        }
    }
    if d.chance(50) {
        o += &loss(d);
        if d.chance(25) && !o.contains(" 0%") {
            o += " ecn";
        }
    }
    if duplicates && d.chance(40) {
        o += &format!(" duplicate {}{}", percent(d), correlation(d));
    }
    if d.chance(20) {
        o += &format!(" corrupt {}{}", percent(d), correlation(d));
    }
    if delayed && d.chance(25) {
        o += &format!(" reorder {}{}", percent(d).replace("0%", "7%"), correlation(d));
        if d.chance(50) {
            o += &format!(" gap {}", d.range(1, 6));
        }
    }
    if d.chance(35) {
        let bits = d.scale(30_000, 20_000_000);
        o += &format!(" rate {}", rate_word(d, bits));
        if d.chance(50) {
            o += &format!(" {}", d.pick(&["0", "18", "-14", "40", "-60"]));
            if d.chance(60) {
                o += &format!(" {}", d.pick(&["48", "53", "64", "1", "1500"]));
                if d.chance(60) {
                    o += &format!(" {}", d.pick(&["5", "0", "-1", "12"]));
                }
            }
        }
    }
    if d.chance(20) {
        o += &slot(d);
    }
    let seed = if d.chance(80) { d.range(0, 1000) } else { d.range(0, 1 << 60) };
    o + &format!(" seed {seed}")
}

/// What stands inside.
fn child(d: &mut Dice) -> String {
    match d.range(0, 7) {
        0 => format!("pfifo limit {}", d.range(1, 12)),
        1 => format!("bfifo limit {}", d.scale(600, 8000)),
        2 => format!(
            "tbf rate {}kbit burst {} limit {}",
            d.scale(50, 4000),
            d.scale(1514, 6000),
            d.scale(2000, 20_000)
        ),
        3 => "prio".to_owned(),
        4 => "codel target 1ms interval 10ms".to_owned(),
        5 => "pfifo_fast".to_owned(),
        6 => format!("netem delay {} seed {}", time(d, 20_000), d.range(0, 99)),
        _ => format!(
            "red limit 20000 min 2000 max 6000 avpkt 1000 burst 4 probability 1 bandwidth {}kbit",
            d.scale(100, 2000)
        ),
    }
}

/// A case: netem alone, below others, with a qdisc inside.
pub fn case(d: &mut Dice) -> Value {
    let mut s = Service::choose(d, 55, 125_000);
    s.cap(d.pick(&[16_000, 125_000, 1_000_000]));
    let (mut setup, mut parent) = (Vec::new(), "$PARENT");
    match d.range(0, 9) {
        0 => {
            setup.push("qdisc add dev $DEV $PARENT handle 9: prio".to_owned());
            parent = "parent 9:1";
        }
        1 => {
            setup.push("qdisc add dev $DEV $PARENT handle 9: htb default 1".to_owned());
            setup.push(format!(
                "class add dev $DEV parent 9: classid 9:1 htb rate {}kbit",
                d.scale(100, 4000)
            ));
            parent = "parent 9:1";
        }
        2 => {
            setup.push("qdisc add dev $DEV $PARENT handle 9: drr".to_owned());
            setup.push("class add dev $DEV parent 9: classid 9:1 drr".to_owned());
            setup.push("filter add dev $DEV parent 9: protocol all prio 1 matchall classid 9:1".to_owned());
            parent = "parent 9:1";
        }
        3 => {
            setup.push(format!(
                "qdisc add dev $DEV $PARENT handle 9: tbf rate {}kbit burst 3000 limit 20000",
                d.scale(100, 4000)
            ));
            parent = "parent 9:1";
        }
        _ => {}
    }
    setup.push(format!("qdisc add dev $DEV {parent} handle 1: {}", words(d, true)));
    if d.chance(25) {
        setup.push(format!("qdisc add dev $DEV parent 1:1 handle 2: {}", child(d)));
    }
    if d.chance(20) {
        let verb = d.pick(&["change", "replace"]);
        setup.push(format!("qdisc {verb} dev $DEV {parent} handle 1: {}", words(d, true)));
    }
    let mut t = s.traffic(150, 4, true);
    t.bytes_per_s = t.bytes_per_s.max(20_000);
    let packets = sequence(d, t, |d, m| {
        if d.chance(40) {
            m.insert("tos".into(), json!(d.pick(&[0, 1, 2, 3, 0x10, 0xb8])));
        }
        if d.chance(30) {
            m.insert("priority".into(), json!(d.range(0, 15)));
        }
    });
    s.spec(setup, packets)
}

/// What hangs on the machine's dice: the first of correlated throws, slots between two lengths, throws without a seed.
pub fn dice(d: &mut Dice) -> Value {
    let line = match d.range(0, 5) {
        0 => format!("delay {}ms {}ms {}%", d.range(20, 60), d.range(5, 20), d.pick(&[5, 25, 50])),
        1 => format!("loss {} {}%", percent(d), d.pick(&[10, 25, 50])),
        2 => format!("slot {}us {}us packets {}", d.range(500, 3000), d.range(4000, 20_000), d.range(1, 4)),
        3 => format!("delay 10ms {}ms distribution normal duplicate {}", d.range(1, 4), percent(d)),
        4 => "delay 5ms reorder 30% 50% gap 2".to_owned(),
        _ => format!("loss gemodel {} {} 70% 1%", percent(d), percent(d)),
    };
    let setup = vec![format!("qdisc add dev $DEV $PARENT handle 1: netem {line}")];
    let s = Service::alone_at(125_000);
    let packets = (0..40).map(|n| json!({"t_us": n * 900, "len": 500, "sport": 1000 + n % 3})).collect();
    s.spec(setup, packets)
}
