//! `iptables -L` and `-S`: chains and rules as the program prints them.
//!
//! Follows: iptables 1.8.9 `iptables/iptables.c` `print_firewall`, `print_rule4`, `xshared.c`; 1.4.4, whose extensions
//! put the blank behind their words rather than before.

use super::Listing;
use super::parse::{ICMP_NAMES, PROTOCOLS, TCP_FLAGS, TOS_NAMES, service};
use super::rule::{
    AddrMatch, Chain, Counted, Iface, Match, PortKind, PortMatch, Ports, Rule, Target, TcpMatch,
};
use penstock_model::Kernel;
use std::fmt::Write;
use std::net::Ipv4Addr;

/// `-L`: the chains given, in the order the kernel keeps them.
pub fn list(chains: &[&Chain], listing: &Listing, kernel: Kernel) -> String {
    let mut out = String::new();
    for (i, chain) in chains.iter().enumerate() {
        if listing.number.is_none() {
            if i > 0 {
                out.push('\n');
            }
            header(&mut out, chain, listing);
        }
        for (i, counted) in chain.rules.iter().enumerate() {
            let number = i as u32 + 1;
            if listing.number.is_none_or(|n| n == number) {
                line(&mut out, counted, number, listing, kernel);
            }
        }
    }
    out
}

fn header(out: &mut String, chain: &Chain, l: &Listing) {
    let _ = write!(out, "Chain {}", chain.name);
    match chain.policy {
        Some(policy) => {
            let _ = write!(out, " (policy {}", policy.name());
            if l.verbose {
                let _ = write!(out, " {}packets, {}bytes", tight(chain.packets, l), tight(chain.bytes, l));
            }
            out.push_str(")\n");
        }
        None => {
            let _ = writeln!(out, " ({} references)", chain.references);
        }
    }
    if l.line_numbers {
        out.push_str("num  ");
    }
    if l.verbose {
        out.push_str(if l.exact { "    pkts      bytes " } else { " pkts bytes " });
    }
    out.push_str("target     prot opt");
    if l.verbose {
        out.push_str(" in     out    ");
    }
    out.push_str(" source               destination         \n");
}

/// A counter as `xtables_print_num` writes it in a column.
fn count(number: u64, l: &Listing) -> String {
    if l.exact {
        return format!("{number:8} ");
    }
    let (n, unit) = shortened(number);
    if unit.is_empty() { format!("{n:5} ") } else { format!("{n:4}{unit} ") }
}

/// The same in a sentence.
fn tight(number: u64, l: &Listing) -> String {
    if l.exact {
        return format!("{number} ");
    }
    let (n, unit) = shortened(number);
    format!("{n}{unit} ")
}

fn shortened(number: u64) -> (u64, &'static str) {
    if number <= 99_999 {
        return (number, "");
    }
    let mut n = number;
    for unit in ["K", "M", "G"] {
        n = (n + 500) / 1000;
        if n <= 9999 {
            return (n, unit);
        }
    }
    ((n + 500) / 1000, "T")
}

fn line(out: &mut String, counted: &Counted, number: u32, l: &Listing, kernel: Kernel) {
    let rule = &counted.rule;
    let old = kernel == Kernel::V2_6_35;
    if l.line_numbers {
        let _ = write!(out, "{number:<4} ");
    }
    if l.verbose {
        out.push_str(&count(counted.packets, l));
        out.push_str(&count(counted.bytes, l));
    }
    let _ = write!(out, "{:<9} ", rule.target.name());
    let (protocol, invert) = rule.protocol.unwrap_or((0, false));
    // 1.8.9 prints the protocol's number under -n; versions before and after do not.
    let name = match protocol_name(protocol) {
        Some(name) if old || !l.numeric => name.to_owned(),
        _ => protocol.to_string(),
    };
    let _ = write!(out, "{}{name:<5}", if invert { '!' } else { ' ' });
    let fragment = match rule.fragment {
        None => "--",
        Some(false) => "-f",
        Some(true) => "!f",
    };
    let _ = write!(out, "{fragment} ");
    if l.verbose {
        let iface = |i: &Option<Iface>| match i {
            Some(i) => format!("{}{}", if i.invert { "!" } else { "" }, i.text()),
            None if l.numeric => "*".to_owned(),
            None => "any".to_owned(),
        };
        let _ = write!(out, " {:<6} {:<6} ", iface(&rule.input), iface(&rule.output));
    }
    for addr in [&rule.src, &rule.dst] {
        let invert = addr.is_some_and(|a| a.invert);
        let text = match addr {
            Some(a) if a.mask == 0 && !l.numeric => "anywhere".to_owned(),
            Some(a) => shown_address(a),
            None if l.numeric => "0.0.0.0/0".to_owned(),
            None => "anywhere".to_owned(),
        };
        let _ = write!(out, "{}{text:<19} ", if invert { '!' } else { ' ' });
    }
    let mut words = Vec::new();
    if matches!(rule.target, Target::Goto(_)) {
        out.push_str("[goto] ");
    }
    words.extend(rule.matches.iter().filter_map(|m| show_match(m, l.numeric, old)));
    words.extend(show_target(&rule.target, l.numeric, old));
    // 1.4 ends each extension's words with a blank, 1.8 begins them with one; the destination's stands before both.
    for word in &words {
        let _ = if old { write!(out, "{word} ") } else { write!(out, " {word}") };
    }
    out.push('\n');
}

fn protocol_name(number: u8) -> Option<&'static str> {
    match number {
        0 => Some("all"),
        _ => PROTOCOLS.iter().find(|(_, n)| *n == number).map(|(name, _)| *name),
    }
}

fn shown_address(a: &AddrMatch) -> String {
    let addr = Ipv4Addr::from(a.addr);
    match mask_text(a.mask) {
        text if text == "/32" => addr.to_string(),
        text => format!("{addr}{text}"),
    }
}

/// `/24`, or `/255.0.255.0` where the mask is no prefix.
fn mask_text(mask: u32) -> String {
    let len = mask.leading_ones();
    if mask.checked_shl(len).unwrap_or(0) == 0 {
        format!("/{len}")
    } else {
        format!("/{}", Ipv4Addr::from(mask))
    }
}

fn port_text(port: u16, numeric: bool) -> String {
    match service(port) {
        Some(name) if !numeric => name.to_owned(),
        _ => port.to_string(),
    }
}

fn show_ports(name: &str, p: &PortMatch, numeric: bool) -> Option<String> {
    if *p == PortMatch::ANY {
        return None;
    }
    let not = if p.invert { "!" } else { "" };
    let Ports { from, to } = p.ports;
    Some(if from == to {
        format!("{name}:{not}{}", port_text(from, numeric))
    } else {
        format!("{name}s:{not}{}:{}", port_text(from, numeric), port_text(to, numeric))
    })
}

fn flag_names(bits: u8) -> String {
    let names: Vec<&str> = TCP_FLAGS.iter().filter(|(_, b)| bits & b != 0).map(|(n, _)| *n).collect();
    if names.is_empty() { "NONE".to_owned() } else { names.join(",") }
}

fn show_tcp(t: &TcpMatch, numeric: bool) -> String {
    let mut words = vec!["tcp".to_owned()];
    words.extend(show_ports("spt", &t.sport, numeric));
    words.extend(show_ports("dpt", &t.dport, numeric));
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

fn port_items(ports: &[Ports], numeric: bool) -> String {
    let item = |p: &Ports| match p.from == p.to {
        true => port_text(p.from, numeric),
        false => format!("{}:{}", port_text(p.from, numeric), port_text(p.to, numeric)),
    };
    ports.iter().map(item).collect::<Vec<_>>().join(",")
}

fn tos_name(value: u8, mask: u8) -> Option<&'static str> {
    TOS_NAMES.iter().find(|(_, v)| mask == 0x3f && *v == value).map(|(name, _)| *name)
}

fn rate_text(amount: u32, per_s: u32) -> String {
    let unit = match per_s {
        1 => "sec",
        60 => "min",
        3600 => "hour",
        _ => "day",
    };
    format!("{amount}/{unit}")
}

fn show_match(m: &Match, numeric: bool, old: bool) -> Option<String> {
    let not = |invert: &bool| if *invert { "!" } else { "" };
    Some(match m {
        Match::Tcp(t) => show_tcp(t, numeric),
        Match::Udp(s, d) => {
            let mut words = vec!["udp".to_owned()];
            words.extend(show_ports("spt", s, numeric));
            words.extend(show_ports("dpt", d, numeric));
            words.join(" ")
        }
        Match::Icmp { ty, code, invert } => {
            let name = ICMP_NAMES.iter().find(|n| n.1 == *ty && (n.2, n.3) == *code).filter(|_| !numeric);
            match name {
                Some(name) => format!("icmp {}{}", not(invert), name.0),
                None if *code == (0, 255) => {
                    format!("icmp {}type {ty}", not(invert)).replace("icmp type", "icmptype")
                }
                None => {
                    format!("icmp {}type {ty} code {}", not(invert), code.0).replace("icmp type", "icmptype")
                }
            }
        }
        Match::Mark { mark, mask, invert } => {
            format!(
                "mark match {}{}",
                if *invert { if old { "!" } else { "! " } } else { "" },
                masked(*mark, *mask)
            )
        }
        Match::Multiport { kind, ports, invert } => {
            let kind = match kind {
                PortKind::Source => "sports",
                PortKind::Destination => "dports",
                PortKind::Either => "ports",
            };
            let not = if *invert { " !" } else { "" };
            format!("multiport {kind} {not}{}", port_items(ports, numeric))
        }
        Match::Dscp { dscp, invert } => format!("DSCP match {}0x{dscp:02x}", not(invert)),
        Match::Tos { value, mask, invert } => {
            let not = if *invert { " !" } else { "" };
            match tos_name(*value, *mask).filter(|_| !numeric) {
                Some(name) => format!("tos match{not} {name}"),
                None if old => {
                    format!("tos match {}0x{value:02x}/0x{mask:02x}", if *invert { "!" } else { "" })
                }
                None => format!("tos match{}0x{value:02x}/0x{mask:02x}", if *invert { "!" } else { "" }),
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
            format!("TTL match TTL {sign} {ttl}")
        }
        Match::Limit { amount, per_s, burst } => {
            format!("limit: avg {} burst {burst}", rate_text(*amount, *per_s))
        }
        Match::Comment(text) => format!("/* {text} */"),
    })
}

fn show_target(t: &Target, numeric: bool, old: bool) -> Option<String> {
    Some(match t {
        Target::Mark { value, mask } => {
            if *value == 0 {
                format!("MARK and 0x{:x}", !mask)
            } else if value == mask {
                format!("MARK or 0x{value:x}")
            } else if *mask == 0 {
                format!("MARK xor 0x{value:x}")
            } else if *mask == u32::MAX && !old {
                format!("MARK set 0x{value:x}")
            } else {
                format!("MARK xset 0x{value:x}/0x{mask:x}")
            }
        }
        Target::Tos { value, mask } => match tos_name(*value, *mask).filter(|_| !numeric) {
            Some(name) if old => format!("TOS set {name}"),
            // Word for word, blanks included.
            Some(name) => format!(" TOS set{name}"),
            None if old || numeric => format!("TOS set 0x{value:02x}/0x{mask:02x}"),
            None if *value == 0 => format!("TOS and 0x{:02x}", !mask),
            None if value == mask => format!("TOS or 0x{value:02x}"),
            None if *mask == 0 => format!("TOS xor 0x{value:02x}"),
            None => format!("TOS set 0x{value:02x}/0x{mask:02x}"),
        },
        Target::Dscp(dscp) => format!("DSCP set 0x{dscp:02x}"),
        Target::Classify(class) => format!("CLASSIFY set {:x}:{:x}", class.major(), class.minor()),
        _ => return None,
    })
}

/// `-S`: the commands that would make these chains. Policies and new chains come first, then the rules.
pub fn save(chains: &[&Chain], listing: &Listing) -> String {
    let mut out = String::new();
    if listing.number.is_none() {
        for chain in chains {
            match chain.policy {
                Some(policy) => {
                    let _ = write!(out, "-P {} {}", chain.name, policy.name());
                    if listing.verbose {
                        let _ = write!(out, " -c {} {}", chain.packets, chain.bytes);
                    }
                }
                None => {
                    let _ = write!(out, "-N {}", chain.name);
                }
            }
            out.push('\n');
        }
    }
    for chain in chains {
        for (i, counted) in chain.rules.iter().enumerate() {
            if listing.number.is_some_and(|n| n != i as u32 + 1) {
                continue;
            }
            let _ = write!(out, "-A {}", chain.name);
            save_rule(&mut out, &counted.rule);
            if listing.verbose {
                let counters = format!(" -c {} {}", counted.packets, counted.bytes);
                // The counters stand before the target.
                let start = out.rfind('\n').map_or(0, |i| i + 1);
                match out[start..].find(" -j ").or(out[start..].find(" -g ")) {
                    Some(at) => out.insert_str(start + at, &counters),
                    None => out.push_str(&counters),
                }
            }
            out.push('\n');
        }
    }
    out
}

fn save_rule(out: &mut String, rule: &Rule) {
    let not = |invert: bool| if invert { " !" } else { "" };
    for (option, addr) in [("-s", &rule.src), ("-d", &rule.dst)] {
        if let Some(a) = addr {
            let _ = write!(out, "{} {option} {}{}", not(a.invert), Ipv4Addr::from(a.addr), mask_text(a.mask));
        }
    }
    for (option, iface) in [("-i", &rule.input), ("-o", &rule.output)] {
        if let Some(i) = iface.as_ref().filter(|i| !i.name.is_empty() || i.invert) {
            let _ = write!(out, "{} {option} {}", not(i.invert), i.text());
        }
    }
    if let Some((number, invert)) = rule.protocol {
        let name = protocol_name(number).map_or_else(|| number.to_string(), str::to_owned);
        let _ = write!(out, "{} -p {name}", not(invert));
    }
    if let Some(invert) = rule.fragment {
        let _ = write!(out, "{} -f", not(invert));
    }
    for m in &rule.matches {
        save_match(out, m);
    }
    let name = rule.target.name();
    match &rule.target {
        Target::None => {}
        Target::Goto(_) => {
            let _ = write!(out, " -g {name}");
        }
        _ => {
            let _ = write!(out, " -j {name}");
        }
    }
    let _ = match &rule.target {
        Target::Mark { value, mask } => write!(out, " --set-xmark 0x{value:x}/0x{mask:x}"),
        Target::Tos { value, mask } => write!(out, " --set-tos 0x{value:02x}/0x{mask:02x}"),
        Target::Dscp(dscp) => write!(out, " --set-dscp 0x{dscp:02x}"),
        Target::Classify(c) => write!(out, " --set-class {:04x}:{:04x}", c.major(), c.minor()),
        _ => Ok(()),
    };
}

fn save_ports(out: &mut String, option: &str, p: &PortMatch) {
    if *p == PortMatch::ANY {
        return;
    }
    let not = if p.invert { " !" } else { "" };
    let _ = write!(out, "{not} {option} {}", port_items(&[p.ports], true));
}

fn save_match(out: &mut String, m: &Match) {
    let not = |invert: &bool| if *invert { " !" } else { "" };
    let _ = match m {
        Match::Tcp(t) => {
            out.push_str(" -m tcp");
            save_ports(out, "--sport", &t.sport);
            save_ports(out, "--dport", &t.dport);
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
        Match::Icmp { ty, code, invert } => match (ty, code) {
            (255, _) => write!(out, " -m icmp{} --icmp-type any", not(invert)),
            (_, (0, 255)) => write!(out, " -m icmp{} --icmp-type {ty}", not(invert)),
            _ => write!(out, " -m icmp{} --icmp-type {ty}/{}", not(invert), code.0),
        },
        Match::Mark { mark, mask, invert } => {
            write!(out, " -m mark{} --mark {}", not(invert), masked(*mark, *mask))
        }
        Match::Multiport { kind, ports, invert } => {
            let kind = match kind {
                PortKind::Source => "--sports",
                PortKind::Destination => "--dports",
                PortKind::Either => "--ports",
            };
            write!(out, " -m multiport{} {kind} {}", not(invert), port_items(ports, true))
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
            let option = match mode {
                -1 => "--ttl-lt",
                1 => "--ttl-gt",
                2 => "! --ttl-eq",
                _ => "--ttl-eq",
            };
            write!(out, " -m ttl {option} {ttl}")
        }
        Match::Limit { amount, per_s, burst } => {
            let _ = write!(out, " -m limit --limit {}", rate_text(*amount, *per_s));
            if *burst == 5 { Ok(()) } else { write!(out, " --limit-burst {burst}") }
        }
        Match::Comment(text) => {
            let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            if !text.is_empty() && text.chars().all(plain) {
                write!(out, " -m comment --comment {text}")
            } else {
                let escaped = text.replace('\\', "\\\\").replace('"', "\\\"");
                write!(out, " -m comment --comment \"{escaped}\"")
            }
        }
    };
}
