//! Cases about the classifiers besides u32 and fw: flower, flow, bpf, basic, and what stands in chains.

use super::classify::u32_words;
use super::dice::Dice;
use super::kinds::Service;
use super::packets::sequence;
use serde_json::{Value, json};

/// Bands of the qdisc that is classified into.
const BANDS: u64 = 8;

fn port(d: &mut Dice) -> u64 {
    d.pick(&[22, 53, 80, 443, 1000, 1024, 2000, 5001, 8080, 33434, 40000, 65535])
}

/// The words of a flower filter for this protocol.
pub fn flower(d: &mut Dice, protocol: &str) -> String {
    let mut o = String::from("flower");
    let mut add = |word: String| o = format!("{o} {word}");
    if protocol == "all" {
        if d.chance(50) {
            add(format!("dst_mac 02:00:00:00:00:0{}", d.range(1, 3)));
        }
        if d.chance(20) {
            add(format!(
                "src_mac 02:00:00:00:00:0{}/ff:ff:ff:ff:ff:{}",
                d.range(1, 3),
                d.pick(&["ff", "00", "fe"])
            ));
        }
        return o;
    }
    let v6 = protocol == "ipv6";
    let proto = d.pick(&["", "", "udp", "udp", "tcp", "icmp", "47"]);
    let proto = if v6 && proto == "icmp" { "icmpv6" } else { proto };
    if !proto.is_empty() {
        add(format!("ip_proto {proto}"));
    }
    if d.chance(40) {
        add(if v6 {
            format!("src_ip 2001:db8::{}/{}", d.range(1, 5), d.pick(&[128, 128, 64, 127, 33]))
        } else {
            format!(
                "src_ip 10.0.{}.{}/{}",
                d.pick(&[0, 0, 1, 7]),
                d.range(1, 6),
                d.pick(&[32, 32, 24, 16, 30, 8])
            )
        });
    }
    if d.chance(20) {
        add(if v6 {
            format!("dst_ip 2001:db8:{}::2/{}", d.range(0, 3), d.pick(&[128, 48, 46]))
        } else {
            format!("dst_ip 10.{}.0.{}/{}", d.pick(&[0, 1, 200]), d.range(2, 9), d.pick(&[32, 8, 16, 29]))
        });
    }
    if matches!(proto, "udp" | "tcp") {
        for side in ["dst_port", "src_port"] {
            match d.range(0, 5) {
                0 => add(format!("{side} {}", port(d))),
                1 => {
                    let low = d.range(1, 3000);
                    add(format!("{side} {low}-{}", low + d.range(1, 40_000)));
                }
                2 if d.chance(30) => add(format!("{side} {}/{}", port(d), d.pick(&["0xff00", "0x00ff"]))),
                _ => {}
            }
        }
    }
    if proto == "tcp" && d.chance(30) {
        add(format!("tcp_flags {}", d.pick(&["0x10/0x10", "0x2/0x12", "0x10", "0/0x7"])));
    }
    if proto == "icmp" && d.chance(50) {
        add(format!("type {}", d.pick(&["8", "0", "3"])));
    }
    if d.chance(15) {
        add(format!("ip_tos {}", d.pick(&["0x10/0xff", "0x10", "0x2e/0xfc", "0/0x1e", "0xb8/0xfc"])));
    }
    if d.chance(8) {
        add(format!("ip_ttl {}", d.pick(&["64", "63", "0x40/0xf0"])));
    }
    if d.chance(6) {
        add(format!("ip_flags {}", d.pick(&["nofrag", "frag", "nofirstfrag"])));
    }
    o
}

/// The words of a flow filter that throws no dice: a map of one field.
fn flow(d: &mut Dice) -> String {
    let key =
        d.pick(&["src", "dst", "proto", "priority", "mark", "iif", "nfct-src", "vlan-tag", "src", "mark"]);
    let mut o = format!("flow map key {key}");
    match d.range(0, 5) {
        0 => o += &format!(" and {:#x}", d.pick(&[0xffu64, 0xf, 3, 0xff00])),
        1 => o += &format!(" or {:#x}", d.range(0, 15)),
        2 => o += &format!(" xor {:#x}", d.range(0, 255)),
        _ => {}
    }
    if d.chance(25) {
        o += &format!(" rshift {}", d.pick(&[1, 4, 8, 16, 24]));
    }
    if d.chance(25) {
        o += &format!(" addend {}", d.range(0, 9));
    }
    if d.chance(80) {
        o += &format!(" divisor {}", d.range(1, BANDS + 2));
    }
    if d.chance(50) {
        o += &format!(" baseclass 1:{}", d.range(1, 4));
    }
    o
}

/// A classic program: something is loaded, compared, and a class or the filter's own is the answer.
pub fn program(d: &mut Dice) -> String {
    let load = match d.range(0, 9) {
        0 => "40 0 0 12".to_owned(),
        1 => "48 0 0 23".to_owned(),
        2 => "32 0 0 26".to_owned(),
        3 => "32 0 0 30".to_owned(),
        4 => format!("{} 0 0 {}", d.pick(&[40, 48, 32]), d.range(0, 1600)),
        5 => "128 0 0 0".to_owned(),
        // The mark, the protocol, the offset of the payload, by the network header.
        6 => format!("32 0 0 {}", 0xffff_f000u64 + d.pick(&[20u64, 0, 52, 48, 4, 28])),
        7 => format!("48 0 0 {}", 0xfff0_0000u64 + d.range(0, 30)),
        _ => String::new(),
    };
    let mut steps = if load.is_empty() {
        vec!["177 0 0 14".to_owned(), format!("72 0 0 {}", d.pick(&[14, 16, 20]))]
    } else {
        vec![load]
    };
    if d.chance(30) {
        steps.push(format!(
            "{} 0 0 {}",
            d.pick(&[84, 4, 20, 68, 164, 36]),
            d.pick(&[1u64, 3, 15, 255, 0xffff])
        ));
    }
    if d.chance(15) {
        steps.push(format!("{} 0 0 {}", d.pick(&[100, 116]), d.range(0, 20)));
    }
    if d.chance(15) {
        steps.push(format!("{} 0 0 {}", d.pick(&[52, 148]), d.range(1, 2000)));
    }
    if d.chance(10) {
        steps.extend(["2 0 0 3", "7 0 0 0", "96 0 0 3", "12 0 0 0"].map(str::to_owned));
    }
    if d.chance(15) {
        steps.push("22 0 0 0".to_owned());
    } else {
        let against = d.pick(&[2048u64, 17, 6, 1, 0x0a00_0001, 80, 2000, 1000, 500, 34525, 3, 64]);
        let jump = d.pick(&[21, 37, 53, 69]);
        let answer =
            |d: &mut Dice| d.pick(&[0u64, 0xffff_ffff, 0xffff_ffff, 0x1_0001, 0x1_0003, 0x1_0005, 7, 2]);
        steps.push(format!("{jump} 0 1 {against}"));
        steps.extend([format!("6 0 0 {}", answer(d)), format!("6 0 0 {}", answer(d))]);
    }
    format!("'{},{}'", steps.len(), steps.join(","))
}

/// One extended match.
fn ematch(d: &mut Dice) -> String {
    let op = d.pick(&["eq", "gt", "lt"]);
    match d.range(0, 9) {
        0 => format!("cmp(u8 at 9 layer network {op} {})", d.pick(&[1, 6, 17, 47])),
        1 => format!("cmp(u16 at {} layer transport {op} {})", d.pick(&[0, 2]), port(d)),
        2 => format!("cmp(u32 at 12 layer network mask 0xffffff00 {op} 0x0a000000)"),
        3 => format!("u32(u16 {} 0xffff at {})", d.pick(&["0x4500", "0x0a00"]), d.pick(&[0, 12, 16])),
        4 => format!("u32(u8 {} 0xff at {})", d.range(1, 6), d.pick(&[15, 19, 9])),
        5 => format!("meta(fwmark {op} {})", d.range(0, 5)),
        6 => format!("meta(fwmark mask 0x3 {op} {})", d.range(0, 3)),
        7 => format!("meta(priority {op} {})", d.range(0, 6)),
        8 => format!("meta(pkt_len {op} {})", d.range(60, 1514)),
        _ => "nbyte(\"E\" at 0 layer 1)".to_owned(),
    }
}

/// A tree of them.
pub fn tree(d: &mut Dice, depth: u64) -> String {
    let one = |d: &mut Dice| {
        let inner = if depth > 0 && d.chance(25) { format!("({})", tree(d, depth - 1)) } else { ematch(d) };
        if d.chance(20) { format!("not {inner}") } else { inner }
    };
    let mut o = one(d);
    let joint = d.pick(&["and", "or"]);
    for _ in 0..d.range(0, 2) {
        o = format!("{o} {joint} {}", one(d));
    }
    o
}

/// What a packet may be done to besides being classified.
fn also(d: &mut Dice) -> String {
    match d.range(0, 9) {
        0 => " action ok".to_owned(),
        1 => " action drop".to_owned(),
        2 => " action continue".to_owned(),
        3 => format!(" action goto chain {}", d.range(1, 2)),
        4 => format!(" action skbedit mark {} continue", d.range(0, 5)),
        5 => format!(" action bpf bytecode {}", program(d)),
        _ => String::new(),
    }
}

/// A case about `only` one kind of them, or all.
pub fn case(d: &mut Dice, only: Option<&str>) -> Value {
    let priomap = vec![(BANDS - 1).to_string(); 16].join(" ");
    let mut setup =
        vec![format!("qdisc add dev $DEV $PARENT handle 1: prio bands {BANDS} priomap {priomap}")];
    setup.extend((0..=2).map(|n| format!("chain add dev $DEV parent 1: chain {n}")));
    for n in 0..d.range(1, 8) {
        let (kind, number) = match only {
            Some("flower") => ("flower", 0),
            Some("flow") => ("flow", 1),
            Some("bpf") => ("bpf", 2),
            Some("basic") => ("basic", 3),
            _ => d.pick(&[
                ("flower", 0u64),
                ("flow", 1),
                ("bpf", 2),
                ("basic", 3),
                ("u32", 4),
                ("matchall", 5),
            ]),
        };
        let protocol = d.pick(&["ip", "ip", "ip", "all", "ipv6"]);
        let own = match protocol {
            "ip" => 0,
            "all" => 1,
            _ => 2,
        };
        // A priority belongs to one protocol and one kind.
        let prio = 100 * d.range(1, 3) + 10 * number + own + if kind == "matchall" { 3 * n } else { 0 };
        let chain = if d.chance(20) { format!(" chain {}", d.range(1, 2)) } else { String::new() };
        let handle = if kind == "flow" { format!(" handle {}", n + 1) } else { String::new() };
        let head = format!("filter add dev $DEV parent 1:{chain} protocol {protocol} prio {prio}{handle}");
        let what = match kind {
            "flower" => flower(d, protocol),
            "flow" => flow(d),
            "bpf" => format!("bpf bytecode {}", program(d)),
            "basic" => format!("basic match '{}'", tree(d, 1)),
            "u32" => format!("u32 {}", u32_words(d, protocol == "ipv6")),
            _ => "matchall".to_owned(),
        };
        let what =
            if kind == "flow" && d.chance(20) { format!("{what} match '{}'", ematch(d)) } else { what };
        let target = match kind {
            "flow" => String::new(),
            "flower" | "matchall" | "basic" => format!(" classid 1:{}", d.range(1, BANDS)),
            _ => format!(" flowid 1:{}", d.range(1, BANDS)),
        };
        setup.push(format!("{head} {what}{target}{}", also(d)));
    }
    let s = Service::choose(d, 50, 250_000);
    let t = s.traffic(70, 6, true);
    let packets = sequence(d, t, |d, m| {
        if d.chance(40) {
            m.insert("mark".into(), json!(d.range(0, 5)));
        }
        if d.chance(25) {
            m.insert("priority".into(), json!(d.pick(&[json!(0), json!(2), json!(6), json!("1:3")])));
        }
    });
    let mut spec = s.spec(setup, packets);
    spec["filters"] = json!(["parent 1:"]);
    spec
}
