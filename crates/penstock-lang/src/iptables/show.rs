//! `-L` and `-S`, and what `-save` prints: chains and rules as the program writes them.
//!
//! Follows: iptables 1.8.9 `iptables/iptables.c` `print_firewall`, `print_rule4`, `ip6tables.c`, `xshared.c`,
//! `iptables-save.c`; 1.4.4, whose extensions put the blank behind their words rather than before.

mod matches;
mod targets;

use super::parse::PROTOCOLS;
use super::rule::{AddrMatch, Chain, Counted, Family, Iface, Rule, Table};
use super::{Listing, Target};
use penstock_model::Kernel;
use std::fmt::Write;

pub(super) use matches::period_text;

/// How words are written.
#[derive(Clone, Copy)]
struct Style {
    family: Family,
    numeric: bool,
    /// 1.4.4.
    old: bool,
    /// The rule's protocol, whose services ports are named by.
    protocol: u8,
}

/// `-L`: the chains given, in the order the kernel keeps them.
pub fn list(chains: &[&Chain], listing: &Listing, family: Family, kernel: Kernel) -> String {
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
                line(&mut out, counted, number, listing, (family, kernel));
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

fn line(out: &mut String, counted: &Counted, number: u32, l: &Listing, (family, kernel): (Family, Kernel)) {
    let rule = &counted.rule;
    let old = kernel == Kernel::V2_6_35;
    if l.line_numbers {
        let _ = write!(out, "{number:<4} ");
    }
    if l.verbose {
        out.push_str(&count(counted.packets, l));
        out.push_str(&count(counted.bytes, l));
    }
    let _ = write!(out, "{:<9} ", column_name(&rule.target, family));
    let (protocol, invert) = rule.protocol.unwrap_or((0, false));
    // 1.8.9 prints the protocol's number under -n; versions before and after do not.
    let name = match protocol_name(protocol) {
        Some(name) if old || !l.numeric => name.to_owned(),
        _ => protocol.to_string(),
    };
    let _ = write!(out, "{}{name:<4} {} ", if invert { '!' } else { ' ' }, fragment(rule));
    if l.verbose {
        let iface = |i: &Option<Iface>| iface_text(i, l.numeric);
        let _ = write!(out, " {:<6} {:<6} ", iface(&rule.input), iface(&rule.output));
    }
    for addr in [&rule.src, &rule.dst] {
        let invert = addr.is_some_and(|a| a.invert);
        let _ = write!(out, "{}{:<19} ", if invert { '!' } else { ' ' }, side(addr, l.numeric, family));
    }
    let style = Style { family, numeric: l.numeric, old, protocol };
    extensions(out, rule, style);
    out.push('\n');
}

/// The rule as `-v` tells of it while it is added, checked or deleted.
pub fn print_rule(rule: &Rule, family: Family, kernel: Kernel) -> String {
    let mut out = String::new();
    let (protocol, invert) = rule.protocol.unwrap_or((0, false));
    let name = protocol_name(protocol).map_or_else(|| protocol.to_string(), str::to_owned);
    let not = if invert { '!' } else { ' ' };
    let _ = write!(out, "{} {not}{name} opt {} ", column_name(&rule.target, family), fragment(rule));
    let (input, output) = (iface_text(&rule.input, true), iface_text(&rule.output, true));
    let _ = write!(out, "in {input} out {output} ");
    let marks = [&rule.src, &rule.dst].map(|a| if a.is_some_and(|a| a.invert) { '!' } else { ' ' });
    let (src, dst) = (side(&rule.src, true, family), side(&rule.dst, true, family));
    let _ = write!(out, "{}{src} {}-> {dst}  ", marks[0], marks[1]);
    let style = Style { family, numeric: true, old: kernel == Kernel::V2_6_35, protocol };
    extensions(&mut out, rule, style);
    out.push('\n');
    out
}

/// What `-L -n` tells of the rule's target behind the columns, a blank before it.
pub fn print_target(rule: &Rule, family: Family, kernel: Kernel) -> String {
    let mut out = String::new();
    let style = Style { family, numeric: true, old: kernel == Kernel::V2_6_35, protocol: 0 };
    extensions(&mut out, rule, style);
    out
}

/// A target's name in the first column: NOTRACK is one of CT's there.
fn column_name(target: &Target, family: Family) -> &str {
    match target {
        Target::Notrack(_) => "CT",
        _ => target.name(family),
    }
}

fn fragment(rule: &Rule) -> &'static str {
    match rule.fragment {
        None => "--",
        Some(false) => "-f",
        Some(true) => "!f",
    }
}

fn iface_text(iface: &Option<Iface>, numeric: bool) -> String {
    match iface {
        Some(i) => format!("{}{}", if i.invert { "!" } else { "" }, i.text()),
        None if numeric => "*".to_owned(),
        None => "any".to_owned(),
    }
}

fn side(addr: &Option<AddrMatch>, numeric: bool, family: Family) -> String {
    match addr {
        Some(a) if a.mask == 0 && !numeric => "anywhere".to_owned(),
        // IPv6 looks at the address, IPv4 at the mask.
        Some(a) if a.addr == 0 && family == Family::Ip6 && !numeric => "anywhere".to_owned(),
        Some(a) => shown_address(a, numeric, family),
        None if numeric && family == Family::Ip6 => "::/0".to_owned(),
        None if numeric => "0.0.0.0/0".to_owned(),
        None => "anywhere".to_owned(),
    }
}

fn extensions(out: &mut String, rule: &Rule, style: Style) {
    if matches!(rule.target, Target::Goto(_)) {
        out.push_str("[goto] ");
    }
    let mut words = Vec::new();
    words.extend(rule.matches.iter().map(|m| matches::show(m, style)));
    words.extend(targets::show(&rule.target, style));
    // 1.4 ends each extension's words with a blank, 1.8 begins them with one; the destination's stands before both.
    for word in words.iter().filter(|w| !w.is_empty()) {
        let _ = if style.old { write!(out, "{word} ") } else { write!(out, " {word}") };
    }
}

fn protocol_name(number: u8) -> Option<&'static str> {
    match number {
        0 => Some("all"),
        _ => PROTOCOLS.iter().find(|(_, n)| *n == number).map(|(name, _)| *name),
    }
}

/// Names that every machine has: `localhost`, and those of Debian's `/etc/networks`.
fn shown_address(a: &AddrMatch, numeric: bool, family: Family) -> String {
    let name = match (family, a.addr) {
        _ if numeric => None,
        (Family::Ip, 0x7f00_0001) => Some("localhost"),
        (Family::Ip, 0) => Some("default"),
        (Family::Ip, 0x7f00_0000) => Some("loopback"),
        (Family::Ip, 0xa9fe_0000) => Some("link-local"),
        _ => None,
    };
    let mask = family.mask_suffix(a.mask);
    name.map_or_else(|| format!("{}{mask}", family.address(a.addr)), |name| format!("{name}{mask}"))
}

/// `-S`: the commands that would make these chains. Policies and new chains come first, then the rules.
pub fn save(chains: &[&Chain], listing: &Listing, family: Family) -> String {
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
            let counters = listing.verbose.then_some((counted.packets, counted.bytes));
            save_rule(&mut out, &counted.rule, counters, family);
            out.push('\n');
        }
    }
    out
}

/// A table as `-save` prints it, without the lines that tell the time.
pub fn save_all(table: Table, chains: &[&Chain], counters: bool, family: Family) -> String {
    let mut out = format!("*{}\n", table.name());
    for chain in chains {
        let policy = chain.policy.map_or("-", |p| p.name());
        let counted = if chain.policy.is_some() { (chain.packets, chain.bytes) } else { (0, 0) };
        let _ = writeln!(out, ":{} {policy} [{}:{}]", chain.name, counted.0, counted.1);
    }
    for chain in chains {
        for counted in &chain.rules {
            if counters {
                let _ = write!(out, "[{}:{}] ", counted.packets, counted.bytes);
            }
            let _ = write!(out, "-A {}", chain.name);
            save_rule(&mut out, &counted.rule, None, family);
            out.push('\n');
        }
    }
    out.push_str("COMMIT\n");
    out
}

fn save_rule(out: &mut String, rule: &Rule, counters: Option<(u64, u64)>, family: Family) {
    let not = |invert: bool| if invert { " !" } else { "" };
    for (option, addr) in [("-s", &rule.src), ("-d", &rule.dst)] {
        if let Some(a) = addr {
            let mask = match family.prefix(a.mask) {
                Some(len) => len.to_string(),
                None => family.address(a.mask),
            };
            let _ = write!(out, "{} {option} {}/{mask}", not(a.invert), family.address(a.addr));
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
        matches::save(out, m, family);
    }
    if let Some((packets, bytes)) = counters {
        let _ = write!(out, " -c {packets} {bytes}");
    }
    let name = rule.target.name(family);
    let _ = match &rule.target {
        Target::None => Ok(()),
        Target::Goto(_) => write!(out, " -g {name}"),
        _ => write!(out, " -j {name}"),
    };
    targets::save(out, &rule.target, family);
}
