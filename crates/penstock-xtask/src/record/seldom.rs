//! Cases about the actions that other cases have seldom: most of them in each, in packets that leave and packets that arrive.

use super::classify::u32_words;
use super::dice::Dice;
use super::edits::seen;
use super::kinds::{Service, rate_bits};
use super::packets::{Traffic, sequence};
use serde_json::{Value, json};

/// The actions.
const ACTIONS: [&str; 9] =
    ["connmark", "csum", "ctinfo", "mirred", "nat", "sample", "simple", "skbmod", "vlan"];
/// So many of them are in a case.
const DEALT: usize = 7;

/// One action of the kind, with what follows it.
fn action(d: &mut Dice, kind: &str, arrives: bool) -> String {
    let after = d.pick(&[
        " pipe",
        " pipe",
        " pipe",
        " pipe",
        " pipe",
        " pipe",
        " continue",
        " ok",
        " reclassify",
        " drop",
    ]);
    let words = match kind {
        "connmark" => format!("connmark{}", d.pick(&["", "", " zone 2"])),
        "csum" => {
            let headers = [
                "ip4h",
                "ip4h and udp",
                "tcp",
                "icmp",
                "udp",
                "ip4h and tcp and udp and icmp",
                "igmp",
                "sctp",
            ];
            format!("csum {}", d.pick(&headers))
        }
        "ctinfo" => {
            let what = [
                "cpmark",
                "cpmark 0xff",
                "dscp 0xfc000000 0x01000000",
                "dscp 0xfc000000",
                "dscp 0x3f 0x40 cpmark 0xff",
            ];
            format!("ctinfo {}{}", d.pick(&what), d.pick(&["", "", " zone 1"]))
        }
        "mirred" => {
            let ways: &[&str] = match arrives {
                true => &[
                    "ingress mirror dev v1",
                    "ingress redirect dev v1",
                    "egress mirror dev lo",
                    "egress redirect dev lo",
                ],
                false => &[
                    "ingress mirror dev v1",
                    "ingress mirror dev v1",
                    "ingress redirect dev v1",
                    "egress mirror dev lo",
                ],
            };
            // It has controls of its own.
            return format!(" action mirred {}", d.pick(ways));
        }
        "nat" => {
            let way = d.pick(&["egress", "ingress"]);
            let prefix = d.pick(&[32, 32, 24, 16, 8]);
            format!(
                "nat {way} 10.0.{}.{}/{prefix} 10.9.0.{}",
                d.pick(&[0, 0, 1]),
                d.range(0, 4),
                d.range(0, 9)
            )
        }
        "sample" => {
            let cut = d.pick(&["", "", " trunc 64"]);
            format!("sample rate {} group {}{cut}", d.scale(1, 100), d.range(1, 3))
        }
        "simple" => format!("simple sdata {}", d.pick(&["a", "seen", "thirty_letters_are_not_too_many"])),
        "skbmod" => {
            let what = [
                "swap mac",
                "set dmac 02:00:00:00:00:07",
                "set smac 02:00:00:00:00:01",
                "set dmac 02:00:00:00:00:01 set smac 02:00:00:00:00:07",
                "ecn",
            ];
            format!("skbmod {}", d.pick(&what))
        }
        _ => {
            let id = d.range(1, 6);
            match d.range(0, 5) {
                0..=2 => format!(
                    "vlan push id {id}{}",
                    d.pick(&["", " priority 5", " protocol 802.1ad priority 3"])
                ),
                3 | 4 => format!("vlan modify id {id}{}", d.pick(&["", " priority 2"])),
                _ => "vlan pop".to_owned(),
            }
        }
    };
    format!(" action {words}{after}")
}

/// The actions of one case, dealt to its filters.
fn deal(d: &mut Dice, arrives: bool) -> Vec<String> {
    let mut kinds = ACTIONS.to_vec();
    let mut hands = vec![String::new(); d.range(2, 4) as usize];
    for n in 0..DEALT {
        let kind = kinds.swap_remove(d.range(0, kinds.len() as u64 - 1) as usize);
        let hand = n % hands.len();
        hands[hand] += &action(d, kind, arrives);
    }
    hands
}

/// What a filter with actions takes.
fn taken(d: &mut Dice, protocol: &str) -> String {
    match d.range(0, 5) {
        0 | 1 => "matchall".to_owned(),
        2 => format!("handle {} fw", d.range(1, 3)),
        3 => format!(
            "flower{}",
            if protocol == "ip" { d.pick(&["", " ip_proto udp", " ip_proto tcp"]) } else { "" }
        ),
        _ => format!("u32 {}", u32_words(d, protocol == "ipv6")),
    }
}

/// A case.
pub fn case(d: &mut Dice) -> Value {
    let arrives = d.chance(50);
    let clsact = d.chance(40);
    let mut setup = Vec::new();
    if !arrives {
        let priomap = ["5"; 16].join(" ");
        setup.push(format!("qdisc add dev $DEV $PARENT handle 1: prio bands 6 priomap {priomap}"));
    }
    let place = match (arrives, clsact) {
        (true, true) => "ingress",
        (true, false) => "parent ffff:",
        (false, true) => "egress",
        (false, false) => "parent 1:",
    };
    match (arrives, clsact) {
        (_, true) => setup.push("qdisc add dev $DEV clsact".to_owned()),
        (true, false) => setup.push("qdisc add dev $DEV handle ffff: ingress".to_owned()),
        (false, false) => {}
    }
    for (n, actions) in (1..).zip(deal(d, arrives)) {
        let protocol = d.pick(&["ip", "ip", "all", "all", "ipv6"]);
        let what = taken(d, protocol);
        setup.push(format!("filter add dev $DEV {place} protocol {protocol} prio {n} {what}{actions}"));
    }
    for n in 1..=d.range(0, 4) {
        let (number, protocol, words) = seen(d);
        let head = |parent| {
            format!("filter add dev $DEV {parent} protocol {protocol} prio {}", 10 * (10 * n + number))
        };
        // How the kind calls a class, if it is told of one.
        let (handle, class) = match words.split(' ').next() {
            Some("flow") => (" handle 1", String::new()),
            Some("u32") => ("", format!(" flowid 1:{}", d.range(1, 6))),
            _ => ("", format!(" classid 1:{}", d.range(1, 6))),
        };
        let (parent, done) = match arrives {
            true => (place, format!(" action {}", d.pick(&["ok", "drop", "pipe"]))),
            false => ("parent 1:", String::new()),
        };
        setup.push(format!("{}{handle} {words}{class}{done}", head(parent)));
    }
    let dress = |d: &mut Dice, m: &mut serde_json::Map<String, Value>| {
        if d.chance(50) {
            m.insert("mark".into(), json!(d.range(0, 4)));
        }
    };
    if arrives {
        let bytes_per_s = rate_bits(d, 4_000_000).max(64_000) / 4;
        let traffic = Traffic { bytes_per_s, most: 80, span_us: 600_000, flows: 5, mixed: true };
        let packets = sequence(d, traffic, dress);
        return json!({"release": "arrive", "setup": setup, "packets": packets, "filters": [place]});
    }
    let s = Service::choose(d, 50, 250_000);
    let packets = sequence(d, s.traffic(70, 5, true), dress);
    let mut spec = s.spec(setup, packets);
    spec["filters"] = if clsact { json!(["egress", "parent 1:"]) } else { json!(["parent 1:"]) };
    spec
}
