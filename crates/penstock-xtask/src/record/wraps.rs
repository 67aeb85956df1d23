//! Cases about actions that open and close, and that put something around a packet or beside it: gate, mpls, ife, tunnel_key, and what filters behind
//! them see.

use super::dice::Dice;
use super::kinds::Service;
use super::packets::sequence;
use serde_json::{Map, Value, json};

/// Lengths of a cycle, ns, of which the steps between a boot's cases are whole multiples.
const CYCLES: [u64; 4] = [10_000_000, 20_000_000, 40_000_000, 80_000_000];
/// The shortest step of a gate, ns: each is an interrupt, for as long as the kernel waits for more packets.
const STEP_MIN: u64 = 400_000;

/// The words of a gate.
fn gate(d: &mut Dice) -> String {
    let cycle = d.pick(&CYCLES);
    let count = d.range(1, 5);
    let mut left = cycle;
    let mut o = String::from("action gate");
    if d.chance(30) {
        let clock = d.pick(&["CLOCK_TAI", "CLOCK_REALTIME", "CLOCK_MONOTONIC", "CLOCK_BOOTTIME"]);
        o += &format!(" clockid {clock}");
    }
    if d.chance(30) {
        o += &format!(" priority {}", d.range(0, 7));
    }
    if d.chance(40) {
        o += &format!(" base-time {}", d.scale(1, 1_000_000_000));
    }
    // For the beginning alone: entries follow one another whatever it says.
    if d.chance(15) {
        o += &format!(" cycle-time {}", d.pick(&CYCLES));
    }
    for n in 0..count {
        let share = if n + 1 == count {
            left
        } else {
            d.scale(STEP_MIN, left / 2).min(left - STEP_MIN * (count - n))
        };
        left -= share;
        o += &match d.range(0, 5) {
            0..=1 => format!(" sched-entry close {share}"),
            2 => format!(" sched-entry open {share} {} {}", d.range(0, 7), d.scale(60, 20_000)),
            3 => format!(" sched-entry open {share} -1 {}", d.scale(60, 8000)),
            _ => format!(" sched-entry open {share}"),
        };
    }
    o
}

/// The words of an action on label stacks.
fn mpls(d: &mut Dice) -> String {
    let fields = |d: &mut Dice| {
        let mut o = String::new();
        if d.chance(40) {
            o += &format!(" tc {}", d.range(0, 7));
        }
        if d.chance(40) {
            o += &format!(" ttl {}", d.pick(&[1, 2, 3, 64, 255]));
        }
        if d.chance(15) {
            o += &format!(" bos {}", d.range(0, 1));
        }
        o
    };
    let label = |d: &mut Dice| d.pick(&[0u64, 1, 16, 17, 20, 1000, 0xf_ffff]);
    match d.range(0, 9) {
        0..=3 => {
            let of = d.pick(&["", "", " protocol mpls_uc", " protocol mpls_mc"]);
            format!("action mpls push{of} label {}{}", label(d), fields(d))
        }
        4..=6 => format!("action mpls pop protocol {}", d.pick(&["ip", "ip", "mpls_uc", "ipv6"])),
        7 => format!("action mpls modify label {}{}", label(d), fields(d)),
        8 => format!("action mpls modify ttl {}", d.range(1, 3)),
        _ => "action mpls dec_ttl".to_owned(),
    }
}

/// The words of ife.
fn ife(d: &mut Dice) -> String {
    if d.chance(40) {
        let only = d.pick(&["", "", "", " allow mark", " allow prio allow tcindex"]);
        return format!("action ife decode{only}");
    }
    let mut o = String::from("action ife encode");
    for name in ["mark", "prio", "tcindex"] {
        match d.range(0, 3) {
            0 => o += &format!(" allow {name}"),
            1 => o += &format!(" use {name} {}", d.range(1, 200)),
            _ => {}
        }
    }
    if d.chance(50) {
        o += &format!(" dst 02:15:15:15:15:{:02x}", d.range(1, 9));
    }
    if d.chance(20) {
        o += " src 02:16:16:16:16:01";
    }
    if d.chance(30) { format!("{o} type 0x{:x}", d.pick(&[0xed3eu64, 0xfefe, 0x0801])) } else { o }
}

fn address(d: &mut Dice, v6: bool) -> String {
    if v6 { format!("2001:db8::{}", d.range(1, 3)) } else { format!("192.0.2.{}", d.range(1, 3)) }
}

/// The words of tunnel_key.
fn tunnel_key(d: &mut Dice) -> String {
    if d.chance(20) {
        return "action tunnel_key unset".to_owned();
    }
    let v6 = d.chance(30);
    let (src, dst) = (address(d, v6), address(d, v6));
    let mut o = format!("action tunnel_key set src_ip {src} dst_ip {dst} id {}", d.range(1, 3));
    if d.chance(50) {
        o += &format!(" dst_port {}", d.pick(&[4789, 6081]));
    }
    match d.range(0, 5) {
        0 => o += &format!(" geneve_opts 0102:{:02}:11223344", d.range(1, 2)),
        1 => o += &format!(" geneve_opts 0102:80:11223344,0103:01:{}", "5566778899aabbcc"),
        2 => o += &format!(" vxlan_opts {}", d.range(1, 3)),
        3 => o += &format!(" erspan_opts {}", d.pick(&["1:2:0:0", "2:0:1:63", "1:7:0:0"])),
        _ => {}
    }
    if d.chance(30) {
        o += &format!(" tos {} ttl {}", d.pick(&[4, 8]), d.pick(&[64, 1]));
    }
    if d.chance(30) {
        o += " nocsum";
    }
    o
}

/// The words of ct, and whether they are for IPv4 alone.
fn ct(d: &mut Dice) -> (String, bool) {
    if d.chance(12) {
        return ("action ct clear".to_owned(), false);
    }
    let mut o = String::from("action ct");
    let commit = d.chance(60);
    if commit {
        o += " commit";
        if d.chance(15) {
            o += " force";
        }
    }
    if d.chance(35) {
        o += &format!(" zone {}", d.range(1, 2));
    }
    if commit && d.chance(50) {
        o += &format!(" mark {}", d.pick(&["7", "0x10/0xf0", "3/0xf", "1/3"]));
    }
    if commit && d.chance(25) {
        o += &format!(" label {}", d.pick(&["ff00/ff00", "0102030405060708090a0b0c0d0e0f10", "01/03"]));
    }
    let nat = d.chance(35);
    if nat {
        o += " nat";
        if commit {
            o += &format!(" {} addr 10.77.0.{}", d.pick(&["src", "dst"]), d.range(1, 2));
        }
    }
    (o, nat)
}

/// A flower filter for what is known of connections.
fn connection_words(d: &mut Dice) -> String {
    let mut o = String::from("flower");
    if d.chance(70) {
        let states = [
            "+trk+new",
            "+trk+est",
            "-trk",
            "+trk",
            "+trk+est+rpl",
            "+trk-rpl",
            "+trk+inv",
            "-new",
            "+trk-new",
        ];
        o += &format!(" ct_state {}", d.pick(&states));
    }
    if d.chance(40) {
        o += &format!(" ct_zone {}", d.pick(&["0", "1", "2", "1/1"]));
    }
    if d.chance(40) {
        o += &format!(" ct_mark {}", d.pick(&["7", "0x10/0xf0", "3/3", "0/1"]));
    }
    if d.chance(20) {
        o += &format!(" ct_label {}", d.pick(&["ff00/ff00", "01/01"]));
    }
    o
}

/// A flower filter for what they leave: with its protocol.
fn match_words(d: &mut Dice) -> (&'static str, String) {
    if d.chance(50) {
        let mut o = String::from("flower");
        for (word, value) in [
            ("mpls_label", d.pick(&[0u64, 1, 16, 17, 20, 1000, 0xf_ffff])),
            ("mpls_tc", d.range(0, 7)),
            ("mpls_bos", d.range(0, 1)),
            ("mpls_ttl", d.pick(&[1, 2, 3, 63, 64, 254, 255])),
        ] {
            if d.chance(30) {
                o += &format!(" {word} {value}");
            }
        }
        if o.len() == 6 {
            for depth in 1..=d.range(1, 3) {
                o += if depth == 1 { " mpls" } else { "" };
                o += &format!(" lse depth {depth}");
                if d.chance(60) {
                    o += &format!(" label {}", d.pick(&[0u64, 1, 16, 17, 20, 1000]));
                }
                if d.chance(30) {
                    o += &format!(" bos {}", d.range(0, 1));
                }
            }
        }
        return (d.pick(&["mpls_uc", "mpls_uc", "mpls_mc"]), o);
    }
    let v6 = d.chance(30);
    let mut o = String::from("flower");
    for (word, value) in [("enc_src_ip", address(d, v6)), ("enc_dst_ip", address(d, v6))] {
        if d.chance(30) {
            o += &format!(" {word} {value}");
        }
    }
    if d.chance(40) {
        o += &format!(" enc_key_id {}", d.range(1, 3));
    }
    if d.chance(20) {
        o += &format!(" enc_dst_port {}", d.pick(&[4789, 6081]));
    }
    if d.chance(15) {
        o += &format!(" enc_tos {}", d.pick(&["4", "8", "0/4"]));
    }
    match d.range(0, 7) {
        0 => o += &format!(" geneve_opts 0102:{:02}:11223344/ffff:ff:ffffffff", d.range(1, 2)),
        1 => o += " geneve_opts 0102:80:11223344/ffff:f0:ff00ff00",
        2 => o += &format!(" vxlan_opts {}", d.range(1, 3)),
        3 => o += &format!(" erspan_opts {}", d.pick(&["1:2:0:0", "2:0:1:63", "2:0:0:63", "1:7:0:0"])),
        _ => {}
    }
    (d.pick(&["all", "ip"]), o)
}

/// A case; of connections (`ct`) or of the others.
pub fn case(d: &mut Dice, ct_alone: bool) -> Value {
    let s = Service::alone_at(d.pick(&[20_000, 125_000, 1_000_000]));
    let mut setup = vec![
        "qdisc add dev $DEV root handle 1: prio bands 8 priomap 0 1 2 3 4 5 6 7 0 1 2 3 4 5 6 7".to_owned(),
        "qdisc add dev $DEV clsact".to_owned(),
    ];
    let about = if ct_alone { 4 } else { d.range(0, 3) };
    for n in 0..d.range(1, 4) {
        let after = d.pick(&["", " continue", " continue", " pipe", " ok"]);
        // tc 6.1 wants a word behind an address of `nat`.
        let after = if about == 4 && after.is_empty() { " pipe" } else { after };
        let mut four = false;
        let mut one = |d: &mut Dice| match about {
            0 => gate(d),
            1 => mpls(d),
            2 => ife(d),
            3 => tunnel_key(d),
            _ => {
                let (words, ip) = ct(d);
                four |= ip;
                words
            }
        };
        let mut actions: Vec<String> = (0..d.range(1, 3)).map(|_| one(d)).collect();
        if d.chance(20) {
            actions.push(match d.range(0, 3) {
                0 => gate(d),
                1 => format!("action vlan push id {}", d.range(1, 9)),
                2 => "action vlan pop".to_owned(),
                _ => format!("action skbedit mark {} priority {}", d.range(0, 9), d.range(0, 7)),
            });
        }
        // A gate's own word for what comes next stands behind its entries.
        let list = actions.join(" pipe ");
        let what = if d.chance(60) { "matchall".to_owned() } else { format!("handle {} fw", d.range(1, 4)) };
        let prio = 10 * (n + 1) + u64::from(what != "matchall");
        let protocol = if four { "ip" } else { "all" };
        setup
            .push(format!("filter add dev $DEV egress protocol {protocol} prio {prio} {what} {list}{after}"));
    }
    for n in 0..d.range(0, 3) {
        let (protocol, words) =
            if about == 4 { (d.pick(&["ip", "ipv6"]), connection_words(d)) } else { match_words(d) };
        let action = d.pick(&["drop", "ok", "continue", "skbedit priority 5", "skbedit mark 3 pipe"]);
        setup.push(format!(
            "filter add dev $DEV egress protocol {protocol} prio {} {words} action {action}",
            100 + n
        ));
    }
    if about == 1 && d.chance(70) {
        for n in 0..3 {
            setup.push(format!(
                "filter add dev $DEV egress protocol mpls_uc prio {} matchall action mpls pop protocol {} continue",
                200 + n,
                d.pick(&["ip", "ip", "mpls_uc"])
            ));
        }
    }
    if about == 2 && d.chance(70) {
        setup.push(
            "filter add dev $DEV egress protocol 0xed3e prio 300 matchall action ife decode continue"
                .to_owned(),
        );
    }
    let most = d.pick(&[5, 20, 60, 150]);
    let mut traffic = s.traffic(most, 4, true);
    if about == 0 {
        traffic.span_us = 100_000;
    }
    let packets = sequence(d, traffic, |d, m| {
        if d.chance(60) {
            m.insert("mark".into(), json!(d.range(0, 5)));
        }
        if d.chance(40) {
            m.insert("priority".into(), json!(d.range(0, 9)));
        }
        // Some answer others: what is for the flow's ports comes from them.
        if about == 4 && d.chance(40) {
            let given =
                |m: &Map<String, Value>, name: &str, default: Value| m.get(name).cloned().unwrap_or(default);
            for (one, other, (first, second)) in [
                ("src", "dst", (json!("10.0.0.1"), json!("10.0.0.2"))),
                ("sport", "dport", (json!(1000), json!(2000))),
            ] {
                let (a, b) = (given(m, one, first), given(m, other, second));
                m.insert(one.into(), b);
                m.insert(other.into(), a);
            }
        }
    });
    let mut spec = s.spec(setup, packets);
    spec["filters"] = json!(["egress"]);
    spec
}
