//! Cases about actions that change a packet, and filters that see the change.

use super::dice::Dice;
use super::kinds::Service;
use super::matches::program;
use super::packets::sequence;
use serde_json::{Value, json};

/// One action.
pub fn edit(d: &mut Dice) -> String {
    let after = d.pick(&["", " pipe", " pipe", " pipe", " pipe", " ok", " continue", " reclassify"]);
    match d.range(0, 18) {
        0 | 1 => {
            format!("vlan push id {}{}{after}", d.range(1, 6), d.pick(&["", " priority 5", " priority 3"]))
        }
        2 => format!("vlan pop{after}"),
        3 => format!("vlan modify id {}{}{after}", d.range(1, 6), d.pick(&["", " priority 2"])),
        4 | 5 => {
            let way = d.pick(&["egress", "ingress"]);
            format!(
                "nat {way} 10.0.0.{}/{} 10.9.0.{}{after}",
                d.range(0, 4),
                d.pick(&[32, 32, 24, 8]),
                d.range(0, 9)
            )
        }
        6 => format!(
            "skbmod {}{after}",
            d.pick(&["swap mac", "set dmac 02:00:00:00:00:07", "set smac 02:00:00:00:00:01", "ecn"])
        ),
        7 => format!("mirred ingress {} dev v1", d.pick(&["mirror", "redirect", "mirror"])),
        8 => format!("csum {}{after}", d.pick(&["ip4h", "ip4h and udp", "tcp", "icmp"])),
        9 => format!("bpf bytecode {}", program(d)),
        10 => format!("sample rate {} group 1{after}", d.range(1, 5)),
        11 => format!("connmark{after}"),
        12 => format!(
            "ctinfo {}",
            d.pick(&["cpmark", "dscp 0xfc000000 0x01000000", "dscp 0x3f 0x40 cpmark 0xff"])
        ),
        13 => format!(
            "skbedit {}{after}",
            d.pick(&["mark 3", "mark 4/0xf", "priority 1:2", "ptype host", "queue_mapping 0"])
        ),
        14 => {
            format!("pedit ex munge ip dsfield set {} retain 0xfc{after}", d.pick(&["0xb8", "0x28", "0x20"]))
        }
        15 => format!("pedit ex munge ip ttl {}{after}", d.pick(&["set 9", "dec", "add 1"])),
        16 => format!(
            "pedit ex munge {} set {}{after}",
            d.pick(&["ip src", "ip dst"]),
            d.pick(&["10.0.0.2", "10.9.0.9"])
        ),
        17 => format!(
            "pedit ex munge {} set {}{after}",
            d.pick(&["tcp sport", "udp dport", "udp sport"]),
            d.pick(&[53, 80, 2000])
        ),
        _ => format!("simple sdata seen{after}"),
    }
}

/// A filter that sees what was changed.
pub fn seen(d: &mut Dice) -> (u64, &'static str, String) {
    match d.range(0, 8) {
        0 => (1, "802.1Q", format!("flower vlan_id {}", d.range(1, 6))),
        1 => (1, "802.1Q", format!("flower vlan_prio {} vlan_ethtype ip", d.pick(&[5, 3, 2, 0]))),
        2 => (2, "ip", format!("flower src_ip 10.9.0.{}/{}", d.range(0, 9), d.pick(&[32, 24]))),
        3 => (2, "ip", format!("flower ip_tos {}/0xfc", d.pick(&["0xb8", "0x28", "0x20"]))),
        4 => (2, "ip", format!("flower ip_proto udp dst_port {}", d.pick(&[53, 80, 2000]))),
        5 => (3, "all", format!("flower dst_mac 02:00:00:00:00:0{}", d.pick(&[1, 2, 7]))),
        6 => (4, "ip", format!("u32 match u8 {} 0xff at 8", d.pick(&[9, 63, 65, 64]))),
        7 => (5, "all", "flow map key vlan-tag divisor 4".to_owned()),
        _ => (4, "ip", format!("u32 match ip dst 10.9.0.{}/{}", d.range(0, 9), d.pick(&[32, 24]))),
    }
}

/// A case: edits at the egress hook or in the qdisc's first filters, then filters of what has come of them.
pub fn case(d: &mut Dice) -> Value {
    let clsact = d.chance(70);
    let mut setup = vec![
        "qdisc add dev $DEV $PARENT handle 1: prio bands 6 priomap 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5 5"
            .to_owned(),
    ];
    let place = if clsact {
        setup.push("qdisc add dev $DEV clsact".to_owned());
        "egress"
    } else {
        "parent 1:"
    };
    for n in 1..=d.range(1, 3) {
        let protocol = d.pick(&["ip", "ip", "all", "ipv6"]);
        let what = d.pick(&["matchall", "matchall", "fw"]);
        let handle = if what == "fw" { format!("handle {} ", d.range(1, 3)) } else { String::new() };
        let edits: String = (0..d.range(1, 3)).map(|_| format!(" action {}", edit(d))).collect();
        setup.push(format!("filter add dev $DEV {place} protocol {protocol} prio {n} {handle}{what}{edits}"));
    }
    for n in 0..d.range(1, 5) {
        let (number, protocol, words) = seen(d);
        let prio = 10 * (10 * n + number);
        let handle = if words.starts_with("flow ") { " handle 1" } else { "" };
        let class = match words.split(' ').next() {
            Some("flow") => String::new(),
            Some("u32") => format!(" flowid 1:{}", d.range(1, 6)),
            _ => format!(" classid 1:{}", d.range(1, 6)),
        };
        setup.push(format!(
            "filter add dev $DEV parent 1: protocol {protocol} prio {prio}{handle} {words}{class}"
        ));
    }
    let s = Service::choose(d, 50, 250_000);
    let t = s.traffic(60, 5, true);
    let packets = sequence(d, t, |d, m| {
        if d.chance(50) {
            m.insert("mark".into(), json!(d.range(0, 4)));
        }
    });
    let mut spec = s.spec(setup, packets);
    spec["filters"] = if clsact { json!(["egress", "parent 1:"]) } else { json!(["parent 1:"]) };
    spec
}
