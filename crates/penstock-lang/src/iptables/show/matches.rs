//! Matches as `-L` and `-S` write them.

use super::super::extension::state;
use super::super::parse::{ICMP_NAMES, ICMP6_NAMES, TCP_FLAGS, save_string};
use super::super::{
    ADDR_TYPES, ConnCount, ConnDir, Conntrack, Family, Match, PortKind, PortMatch, Ports, Statistic,
    TcpMatch, U32Test,
};
use super::Style;
use crate::services;
use std::fmt::Write;

fn port_text(port: u16, numeric: bool, protocol: u8) -> String {
    match services::name(port, protocol) {
        Some(name) if !numeric => name.to_owned(),
        _ => port.to_string(),
    }
}

fn show_ports(name: &str, p: &PortMatch, numeric: bool, protocol: u8) -> Option<String> {
    if *p == PortMatch::ANY {
        return None;
    }
    let not = if p.invert { "!" } else { "" };
    let port = |port| port_text(port, numeric, protocol);
    let Ports { from, to } = p.ports;
    Some(if from == to {
        format!("{name}:{not}{}", port(from))
    } else {
        format!("{name}s:{not}{}:{}", port(from), port(to))
    })
}

fn flag_names(bits: u8) -> String {
    let names: Vec<&str> = TCP_FLAGS.iter().filter(|(_, b)| bits & b != 0).map(|(n, _)| *n).collect();
    if names.is_empty() { "NONE".to_owned() } else { names.join(",") }
}

fn show_tcp(t: &TcpMatch, numeric: bool) -> String {
    let mut words = vec!["tcp".to_owned()];
    words.extend(show_ports("spt", &t.sport, numeric, 6));
    words.extend(show_ports("dpt", &t.dport, numeric, 6));
    if let Some((option, invert)) = t.option {
        words.push(format!("option={}{option}", if invert { "!" } else { "" }));
    }
    if t.flags.0 != 0 || t.invert_flags {
        let not = if t.invert_flags { "!" } else { "" };
        words.push(if numeric {
            format!("flags:{not}0x{:02X}/0x{:02X}", t.flags.0, t.flags.1)
        } else {
            format!("flags:{not}{}/{}", flag_names(t.flags.0), flag_names(t.flags.1))
        });
    }
    words.join(" ")
}

fn masked(value: u32, mask: u32) -> String {
    if mask == u32::MAX { format!("0x{value:x}") } else { format!("0x{value:x}/0x{mask:x}") }
}

fn port_items(ports: &[Ports], numeric: bool, protocol: u8) -> String {
    let port = |p| port_text(p, numeric, protocol);
    let item = |p: &Ports| match p.from == p.to {
        true => port(p.from),
        false => format!("{}:{}", port(p.from), port(p.to)),
    };
    ports.iter().map(item).collect::<Vec<_>>().join(",")
}

pub(super) fn tos_name(value: u8, mask: u8) -> Option<&'static str> {
    if mask == 0x3f { super::targets::named_tos(value) } else { None }
}

/// A gap in parts of a second as the greatest unit that loses least, and the unit's seconds.
pub(in crate::iptables) fn period_text(period: u64, parts: u64) -> (String, u64) {
    const UNITS: [(&str, u64); 4] = [("day", 86_400), ("hour", 3600), ("min", 60), ("sec", 1)];
    if period == 0 {
        return ("inf".to_owned(), 0);
    }
    let last = UNITS[1..].iter().position(|u| {
        let mult = u.1 * parts;
        period > mult || mult / period < mult % period
    });
    let unit = UNITS[last.unwrap_or(3)];
    (format!("{}/{}", unit.1 * parts / period, unit.0), unit.1)
}

fn icmp(ty: u8, code: (u8, u8), invert: bool, style: Style) -> String {
    let not = if invert { "!" } else { "" };
    let (names, what) = match style.family {
        Family::Ip => (ICMP_NAMES, "icmp"),
        Family::Ip6 => (ICMP6_NAMES, "ipv6-icmp"),
    };
    let name = names.iter().find(|n| n.1 == ty && (n.2, n.3) == code).filter(|_| !style.numeric);
    if let Some(name) = name {
        return format!("{what} {not}{}", name.0);
    }
    let mut out = format!("{what}{}type {ty}", if invert { " !" } else { "" });
    if code.0 == code.1 {
        let _ = write!(out, " code {}", code.0);
    } else if code != (0, 255) {
        let _ = write!(out, " codes {}-{}", code.0, code.1);
    }
    out
}

/// The words of `-m conntrack`, with dashes or without.
fn conntrack(c: &Conntrack, pre: &str, style: Style) -> String {
    let mut out = String::new();
    let family = style.family;
    let not = |invert: bool| if invert { " !" } else { "" };
    if let Some((states, invert)) = c.states {
        let names: Vec<&str> = state::NAMES.iter().filter(|n| states & n.1 != 0).map(|n| n.0).collect();
        let word = if c.as_state { "state" } else { "ctstate" };
        let _ = write!(out, "{} {pre}{word} {}", not(invert), names.join(","));
    }
    if let Some((number, invert)) = c.protocol {
        let _ = write!(out, "{} {pre}ctproto {number}", not(invert));
    }
    for (name, addr) in ["ctorigsrc", "ctorigdst", "ctreplsrc", "ctrepldst"].iter().zip(&c.addrs) {
        if let Some(a) = addr {
            let text = match a.addr == 0 && !style.numeric {
                true => "anywhere".to_owned(),
                false => format!("{}{}", family.address(a.addr), family.mask_suffix(a.mask)),
            };
            let _ = write!(out, "{} {pre}{name} {text}", not(a.invert));
        }
    }
    let names = ["ctorigsrcport", "ctorigdstport", "ctreplsrcport", "ctrepldstport"];
    for (name, ports) in names.iter().zip(&c.ports) {
        if let Some(PortMatch { ports: Ports { from, to }, invert }) = ports {
            let _ = write!(out, "{} {pre}{name} {from}", not(*invert));
            if *to != 0 && to != from {
                let _ = write!(out, ":{to}");
            }
        }
    }
    if let Some((status, invert)) = c.status {
        const NAMES: [(&str, u8); 4] = [("EXPECTED", 1), ("SEEN_REPLY", 2), ("ASSURED", 4), ("CONFIRMED", 8)];
        let names: Vec<&str> = NAMES.iter().filter(|n| status & n.1 != 0).map(|n| n.0).collect();
        let names = if names.is_empty() { "NONE".to_owned() } else { names.join(",") };
        let _ = write!(out, "{} {pre}ctstatus {names}", not(invert));
    }
    if let Some((from, to, invert)) = c.expire {
        let _ = write!(out, "{} {pre}ctexpire {from}", not(invert));
        if to != from {
            let _ = write!(out, ":{to}");
        }
    }
    if let Some(reply) = c.reply {
        let _ = write!(out, " {pre}ctdir {}", if reply { "REPLY" } else { "ORIGINAL" });
    }
    out
}

fn connbytes(from: u64, to: u64, what: ConnCount, dir: ConnDir, pre: &str) -> String {
    let what = match what {
        ConnCount::Packets => "packets",
        ConnCount::Bytes => "bytes",
        ConnCount::Average => "avgpkt",
    };
    let dir = match dir {
        ConnDir::Original => "original",
        ConnDir::Reply => "reply",
        ConnDir::Both => "both",
    };
    let (not, least, most) = if from > to { (" !", to, from) } else { ("", from, to) };
    let mut out = format!("{not} {pre}connbytes {least}");
    if most != 0 && most < u64::MAX {
        let _ = write!(out, ":{most}");
    }
    let _ = match pre {
        "" => write!(out, " connbytes mode {what} connbytes direction {dir}"),
        _ => write!(out, " --connbytes-mode {what} --connbytes-dir {dir}"),
    };
    out
}

fn statistic(mode: &Statistic, invert: bool, pre: &str) -> String {
    let not = if invert { " !" } else { "" };
    match mode {
        Statistic::Random(p) => {
            let p = f64::from(*p) / 2_147_483_648.0;
            format!(" {pre}mode random{not} {pre}probability {p:.11}")
        }
        Statistic::Nth { every, packet } => {
            let mut out = format!(" {pre}mode nth{not} {pre}every {every}");
            if *packet != 0 || !pre.is_empty() {
                let _ = write!(out, " {pre}packet {packet}");
            }
            out
        }
    }
}

fn u32_tests(tests: &[U32Test]) -> String {
    let one = |test: &U32Test| {
        let mut out = String::new();
        for (i, (op, number)) in test.steps.iter().enumerate() {
            match op {
                '<' | '>' if i > 0 => out.extend([*op, *op]),
                _ if i > 0 => out.push(*op),
                _ => {}
            }
            let _ = write!(out, "0x{number:x}");
        }
        let value = |v: &(u32, u32)| match v.0 == v.1 {
            true => format!("0x{:x}", v.0),
            false => format!("0x{:x}:0x{:x}", v.0, v.1),
        };
        let _ = write!(out, "={}", test.values.iter().map(value).collect::<Vec<_>>().join(","));
        out
    };
    format!("\"{}\"", tests.iter().map(one).collect::<Vec<_>>().join("&&"))
}

fn mac_text(mac: &[u8; 6]) -> String {
    mac.map(|b| format!("{b:02x}")).join(":")
}

fn type_names(bits: u16) -> String {
    let named = ADDR_TYPES.iter().enumerate().filter(|(i, _)| bits & 1 << i != 0);
    named.map(|(_, n)| *n).collect::<Vec<_>>().join(",")
}

const PACKET_TYPES: [&str; 4] = ["unicast", "broadcast", "multicast", "otherhost"];

pub(super) fn show(m: &Match, style: Style) -> String {
    let (numeric, old, family) = (style.numeric, style.old, style.family);
    let not = |invert: &bool| if *invert { "!" } else { "" };
    match m {
        Match::Tcp(t) => show_tcp(t, numeric),
        Match::Udp(s, d) => {
            let mut words = vec!["udp".to_owned()];
            words.extend(show_ports("spt", s, numeric, 17));
            words.extend(show_ports("dpt", d, numeric, 17));
            words.join(" ")
        }
        Match::Icmp { ty, code, invert } => icmp(*ty, *code, *invert, style),
        Match::Mark { mark, mask, invert } => {
            let not = if *invert { if old { "!" } else { "! " } } else { "" };
            format!("mark match {not}{}", masked(*mark, *mask))
        }
        // Word for word, blanks included.
        Match::Connmark { mark, mask, invert } => {
            format!("connmark match {} {}", not(invert), masked(*mark, *mask))
        }
        Match::Multiport { kind, ports, invert } => {
            let kind = match kind {
                PortKind::Source => "sports",
                PortKind::Destination => "dports",
                PortKind::Either => "ports",
            };
            let not = if *invert { " !" } else { "" };
            format!("multiport {kind} {not}{}", port_items(ports, numeric, style.protocol))
        }
        Match::Dscp { dscp, invert } => format!("DSCP match {}0x{dscp:02x}", not(invert)),
        Match::Tos { value, mask, invert } => {
            let bang = if *invert { " !" } else { "" };
            match tos_name(*value, *mask).filter(|_| !numeric) {
                Some(name) => format!("tos match{bang} {name}"),
                None if old => format!("tos match {}0x{value:02x}/0x{mask:02x}", not(invert)),
                None => format!("tos match{}0x{value:02x}/0x{mask:02x}", not(invert)),
            }
        }
        Match::Length { min, max, invert } if min == max => format!("length {}{min}", not(invert)),
        Match::Length { min, max, invert } => format!("length {}{min}:{max}", not(invert)),
        Match::Ttl { ttl, mode } => {
            let sign = match mode {
                -1 => "<",
                0 => "==",
                1 => ">",
                _ => "!=",
            };
            let name = if family == Family::Ip6 { "HL" } else { "TTL" };
            format!("{name} match {name} {sign} {ttl}")
        }
        Match::Limit { period, burst } => {
            format!("limit: avg {} burst {burst}", period_text(u64::from(*period), 10_000).0)
        }
        Match::Comment(text) => format!("/* {text} */"),
        Match::Conntrack(c) => conntrack(c, "", style).trim_start().to_owned(),
        Match::Connbytes { from, to, what, dir } => {
            connbytes(*from, *to, *what, *dir, "").trim_start().to_owned()
        }
        Match::Mac { mac, invert } => format!("MAC {}{}", if *invert { "! " } else { "" }, mac_text(mac)),
        Match::Iprange { src, dst } => {
            let mut words = Vec::new();
            for (name, range) in [("source", src), ("destination", dst)] {
                if let Some((from, to, invert)) = range {
                    let not = if *invert { " !" } else { "" };
                    let (from, to) = (family.address(*from), family.address(*to));
                    words.push(format!("{name} IP range{not} {from}-{to}"));
                }
            }
            words.join(" ")
        }
        Match::Addrtype { src, dst, limit_in, limit_out } => {
            let mut out = String::from("ADDRTYPE match");
            for (name, (bits, invert)) in [("src-type", src), ("dst-type", dst)] {
                if *bits != 0 {
                    let _ = write!(out, " {name} {}{}", not(invert), type_names(*bits));
                }
            }
            out.push_str(if *limit_in { " limit-in" } else { "" });
            out.push_str(if *limit_out { " limit-out" } else { "" });
            out
        }
        Match::Pkttype { ty, invert } => {
            format!("PKTTYPE {}= {}", not(invert), PACKET_TYPES[usize::from(ty & 3)])
        }
        Match::Statistic { mode, invert } => format!("statistic{}", statistic(mode, *invert, "")),
        Match::Ecn { ece, cwr, ect } => {
            let mut out = String::from("ECN match");
            for (name, flag) in [("ECE", ece), ("CWR", cwr)] {
                if let Some(invert) = flag {
                    let _ = write!(out, " {}{name}", not(invert));
                }
            }
            if let Some((ect, invert)) = ect {
                let _ = write!(out, " {}ECT={ect}", not(invert));
            }
            out
        }
        Match::U32 { tests, invert } => {
            format!("u32{} {}", if *invert { " !" } else { "" }, u32_tests(tests))
        }
        Match::Worded(plain, _) | Match::Plain(plain) if numeric => plain.numeric.clone(),
        Match::Worded(plain, _) | Match::Plain(plain) => plain.list.clone(),
    }
}

fn save_ports(out: &mut String, option: &str, p: &PortMatch) {
    if *p == PortMatch::ANY {
        return;
    }
    let not = if p.invert { " !" } else { "" };
    let _ = write!(out, "{not} {option} {}", port_items(&[p.ports], true, 0));
}

pub(super) fn save(out: &mut String, m: &Match, family: Family) {
    let not = |invert: &bool| if *invert { " !" } else { "" };
    let _ = match m {
        Match::Tcp(t) => {
            out.push_str(" -m tcp");
            save_ports(out, "--sport", &t.sport);
            save_ports(out, "--dport", &t.dport);
            if let Some((option, invert)) = t.option {
                let _ = write!(out, "{} --tcp-option {option}", not(&invert));
            }
            if t.flags.0 != 0 || t.invert_flags {
                let flags = (flag_names(t.flags.0), flag_names(t.flags.1));
                let _ = write!(out, "{} --tcp-flags {} {}", not(&t.invert_flags), flags.0, flags.1);
            }
            Ok(())
        }
        Match::Udp(s, d) => {
            out.push_str(" -m udp");
            save_ports(out, "--sport", s);
            save_ports(out, "--dport", d);
            Ok(())
        }
        Match::Icmp { ty: 255, invert, .. } if family == Family::Ip => {
            write!(out, " -m icmp{} --icmp-type any", not(invert))
        }
        Match::Icmp { ty, code, invert } => {
            let (name, option) = match family {
                Family::Ip => ("icmp", "icmp-type"),
                Family::Ip6 => ("icmp6", "icmpv6-type"),
            };
            let _ = write!(out, " -m {name}{} --{option} {ty}", not(invert));
            if *code == (0, 255) { Ok(()) } else { write!(out, "/{}", code.0) }
        }
        Match::Mark { mark, mask, invert } => {
            write!(out, " -m mark{} --mark {}", not(invert), masked(*mark, *mask))
        }
        Match::Connmark { mark, mask, invert } => {
            write!(out, " -m connmark{} --mark {}", not(invert), masked(*mark, *mask))
        }
        Match::Multiport { kind, ports, invert } => {
            let kind = match kind {
                PortKind::Source => "--sports",
                PortKind::Destination => "--dports",
                PortKind::Either => "--ports",
            };
            write!(out, " -m multiport{} {kind} {}", not(invert), port_items(ports, true, 0))
        }
        Match::Dscp { dscp, invert } => write!(out, " -m dscp{} --dscp 0x{dscp:02x}", not(invert)),
        Match::Tos { value, mask, invert } => {
            write!(out, " -m tos{} --tos 0x{value:02x}/0x{mask:02x}", not(invert))
        }
        Match::Length { min, max, invert } if min == max => {
            write!(out, " -m length{} --length {min}", not(invert))
        }
        Match::Length { min, max, invert } => write!(out, " -m length{} --length {min}:{max}", not(invert)),
        Match::Ttl { ttl, mode } => {
            let name = if family == Family::Ip6 { "hl" } else { "ttl" };
            let (not, option) = match mode {
                -1 => ("", "lt"),
                1 => ("", "gt"),
                2 => ("! ", "eq"),
                _ => ("", "eq"),
            };
            write!(out, " -m {name} {not}--{name}-{option} {ttl}")
        }
        Match::Limit { period, burst } => {
            let _ = write!(out, " -m limit --limit {}", period_text(u64::from(*period), 10_000).0);
            if *burst == 5 { Ok(()) } else { write!(out, " --limit-burst {burst}") }
        }
        Match::Comment(text) => write!(out, " -m comment --comment {}", save_string(text)),
        Match::Conntrack(c) => {
            let name = if c.as_state { "state" } else { "conntrack" };
            let style = Style { family, numeric: true, old: false, protocol: 0 };
            write!(out, " -m {name}{}", conntrack(c, "--", style))
        }
        Match::Connbytes { from, to, what, dir } => {
            write!(out, " -m connbytes{}", connbytes(*from, *to, *what, *dir, "--"))
        }
        Match::Mac { mac, invert } => write!(out, " -m mac{} --mac-source {}", not(invert), mac_text(mac)),
        Match::Iprange { src, dst } => {
            out.push_str(" -m iprange");
            for (option, range) in [("--src-range", src), ("--dst-range", dst)] {
                if let Some((from, to, invert)) = range {
                    let (from, to) = (family.address(*from), family.address(*to));
                    let _ = write!(out, "{} {option} {from}-{to}", not(invert));
                }
            }
            Ok(())
        }
        Match::Addrtype { src, dst, limit_in, limit_out } => {
            out.push_str(" -m addrtype");
            for (option, (bits, invert)) in [("--src-type", src), ("--dst-type", dst)] {
                if *bits != 0 {
                    let _ = write!(out, "{} {option} {}", not(invert), type_names(*bits));
                }
            }
            out.push_str(if *limit_in { " --limit-iface-in" } else { "" });
            out.push_str(if *limit_out { " --limit-iface-out" } else { "" });
            Ok(())
        }
        Match::Pkttype { ty, invert } => {
            write!(out, " -m pkttype{} --pkt-type {}", not(invert), PACKET_TYPES[usize::from(ty & 3)])
        }
        Match::Statistic { mode, invert } => {
            write!(out, " -m statistic{}", statistic(mode, *invert, "--"))
        }
        Match::Ecn { ece, cwr, ect } => {
            out.push_str(" -m ecn");
            for (option, flag) in [("--ecn-tcp-ece", ece), ("--ecn-tcp-cwr", cwr)] {
                if let Some(invert) = flag {
                    let _ = write!(out, "{} {option}", not(invert));
                }
            }
            match ect {
                Some((ect, invert)) => write!(out, "{} --ecn-ip-ect {ect}", not(invert)),
                None => Ok(()),
            }
        }
        Match::U32 { tests, invert } => write!(out, " -m u32{} --u32 {}", not(invert), u32_tests(tests)),
        Match::Worded(plain, _) | Match::Plain(plain) => write!(out, " -m {}{}", plain.name, plain.save),
    };
}
