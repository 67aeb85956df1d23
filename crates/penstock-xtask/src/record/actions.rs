//! Cases about what filters have done to packets: policers and every other action, in and around qdiscs.

use super::classify::u32_words;
use super::dice::Dice;
use super::kinds::{Service, rate_bits, rate_word};
use super::packets::sequence;
use serde_json::{Value, json};

/// The words of a policer for some `bits` bit/s.
pub fn police_words(d: &mut Dice, bits: u64) -> String {
    let mut o = String::from("police");
    let conform = match d.range(0, 11) {
        0..=3 => " drop".to_owned(),
        4 => " continue".to_owned(),
        5 => " pipe".to_owned(),
        6 => " reclassify".to_owned(),
        7 => String::new(),
        8 => format!(" conform-exceed {}", control(d)),
        _ => format!(" conform-exceed {}/{}", control(d), control(d)),
    };
    if d.chance(8) {
        o += &format!(" mtu {}", d.scale(100, 1600));
        return o + &conform;
    }
    if d.chance(12) {
        o += &format!(" pkts_rate {} pkts_burst {}", d.scale(1, 3000), d.scale(1, 40));
        return o + &conform;
    }
    o += &format!(" rate {} burst {}", rate_word(d, bits), d.scale(200, 20_000));
    if d.chance(15) {
        o += &format!(" mtu {}", d.scale(200, 3000));
    }
    if d.chance(20) {
        let peak = bits + bits * d.range(5, 400) / 100;
        o += &format!(" peakrate {peak}bit mtu {}", d.pick(&[1514u64, 1600, 2000, 900]));
    }
    if d.chance(15) {
        o += &format!(" overhead {}", d.pick(&[4, 18, 24, 38]));
    }
    if d.chance(10) {
        o += &format!(" mpu {}", d.pick(&[64, 128, 300]));
    }
    if d.chance(15) {
        o += &format!(" linklayer {}", d.pick(&["atm", "ethernet"]));
    }
    o + &conform
}

fn control(d: &mut Dice) -> &'static str {
    d.pick(&["ok", "pass", "drop", "shot", "continue", "pipe", "reclassify", "drop"])
}

/// One action with its control.
pub fn action(d: &mut Dice, bits: u64, chains: bool) -> String {
    let after = |d: &mut Dice| d.pick(&["", " pipe", " pipe", " pipe", " ok", " continue", " drop"]);
    match d.range(0, 13) {
        0..=1 => {
            let words = ["ok", "drop", "continue", "pipe", "reclassify", "trap", "jump 1", "jump 2"];
            format!("action gact {}", d.pick(&words))
        }
        2..=3 => {
            let (often, seldom) = (control(d), control(d));
            format!("action {often} random determ {seldom} {}", d.range(1, 6))
        }
        4..=5 => format!("action {}", police_words(d, bits)),
        6 => format!("action skbedit priority 1:{:x}{}", d.range(0, 6), after(d)),
        7 => format!("action skbedit mark {}{}", d.range(0, 5), after(d)),
        8 => format!("action skbedit inheritdsfield{}", after(d)),
        9 => {
            let field = d.pick(&[
                "ip tos set 0x10",
                "ip tos set 0xb8 retain 0xfc",
                "ip ttl add 0xff",
                "ip src set 10.0.0.2",
                "ip dst set 10.0.0.9",
                "udp dport set 53",
                "eth src set 02:11:22:33:44:55",
            ]);
            format!("action pedit ex munge {field}{}", after(d))
        }
        10 => {
            let field = d.pick(&[
                "offset 0 u8 set 0x45",
                "offset 20 u16 set 0x0016",
                "ip dsfield set 0x28 retain 0xfc",
            ]);
            format!("action pedit munge {field}{}", after(d))
        }
        11 => format!("action simple sdata word{}", after(d)),
        12 if chains => format!("action goto chain {}", d.range(0, 3)),
        _ => format!("action csum ip{}", after(d)),
    }
}

/// Where the filters stand, and what they may lead to.
fn stage(d: &mut Dice, clsact: bool) -> (Vec<String>, String, Vec<String>) {
    let mut setup = Vec::new();
    let mut targets = vec!["1:1".to_owned(), "1:2".to_owned(), "1:3".to_owned()];
    match d.range(0, 3) {
        0 => {
            setup.push("qdisc add dev $DEV $PARENT handle 1: htb default 2".to_owned());
            setup.push("class add dev $DEV parent 1: classid 1:1 htb rate 2mbit burst 3000".to_owned());
            for n in 2..=4 {
                setup.push(format!(
                    "class add dev $DEV parent 1:1 classid 1:{n} htb rate 64kbit ceil 2mbit quantum 1514"
                ));
            }
            targets = vec!["1:2".to_owned(), "1:3".to_owned(), "1:4".to_owned(), "1:1".to_owned()];
        }
        1 => setup.push(
            "qdisc add dev $DEV $PARENT handle 1: prio bands 4 priomap 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3 3"
                .to_owned(),
        ),
        _ => setup.push("qdisc add dev $DEV $PARENT handle 1: prio".to_owned()),
    }
    let place = if clsact {
        setup.push("qdisc add dev $DEV clsact".to_owned());
        "egress".to_owned()
    } else {
        "parent 1:".to_owned()
    };
    (setup, place, targets)
}

/// A case: policers alone, or all actions.
pub fn case(d: &mut Dice, police: bool) -> Value {
    let clsact = d.chance(40);
    let (mut setup, place, targets) = stage(d, clsact);
    let mut s = Service::choose(d, 60, 250_000);
    let bits = if d.chance(80) { rate_bits(d, 4_000_000) } else { 1_000_000 };
    s.cap(bits.max(64_000) / 8 * 3);
    let t = s.traffic(100, 4, true);
    if !police {
        // So that they stand in this order, whoever names one first.
        setup.extend((0..=3).map(|n| format!("chain add dev $DEV {place} chain {n}")));
    }
    for n in 0..d.range(1, 5) {
        let chain = if !police && d.chance(25) { format!(" chain {}", d.range(1, 3)) } else { String::new() };
        let protocol = d.pick(&["ip", "ip", "all", "ipv6"]);
        // A priority belongs to one protocol and one kind.
        let own = match protocol {
            "ip" => 1,
            "all" => 2,
            _ => 3,
        };
        let kind = d.range(0, 3);
        let prio = 100 * d.range(1, 3) + 10 * own + kind;
        let head = format!("filter add dev $DEV {place}{chain} protocol {protocol} prio {prio}");
        let target = if d.chance(85) {
            format!(" {} {}", d.pick(&["flowid", "classid"]), d.pick(&targets))
        } else {
            String::new()
        };
        let old = police && d.chance(40);
        let what = if old {
            format!(" {}", police_words(d, bits))
        } else if police {
            format!(" action {}", police_words(d, bits))
        } else {
            (0..d.range(1, 3)).map(|_| format!(" {}", action(d, bits, true))).collect::<String>()
        };
        setup.push(match kind {
            0 => format!("{head} handle {} fw{target}{what}", n + 1),
            1 if !old => format!("{head} matchall{target}{what}"),
            _ => format!("{head} u32 {}{target}{what}", u32_words(d, protocol == "ipv6")),
        });
    }
    let packets = sequence(d, t, |d, m| {
        if d.chance(40) {
            m.insert("mark".into(), json!(d.range(0, 5)));
        }
        if d.chance(10) {
            m.insert("priority".into(), json!(d.pick(&[0, 2, 6])));
        }
    });
    let mut spec = s.spec(setup, packets);
    let shown = if clsact { vec!["egress"] } else { vec!["parent 1:"] };
    spec["filters"] = json!(shown);
    spec
}
