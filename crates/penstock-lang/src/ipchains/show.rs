//! Chains and rules as `ipchains -L` writes them, and a rule as `-A -v` does.

use super::{Chain, ICMP, Listing, Mark, Rule, service};
use crate::iptables::{AddrMatch, Family};
use std::fmt::Write;

/// `-L`: the chains given.
pub fn list(chains: &[&Chain], l: &Listing) -> String {
    let mut out = String::new();
    for chain in chains {
        let _ = write!(out, "Chain {} ", chain.name);
        match &chain.policy {
            None => {
                let _ = write!(out, "({} references):", chain.references);
            }
            Some(policy) => {
                let _ = write!(out, "(policy {policy}");
                if l.verbose {
                    let _ = write!(out, ": {} packets, {} bytes", chain.packets, chain.bytes);
                }
                out.push_str("):");
            }
        }
        out.push('\n');
        // The heading stands over the first rule: an empty chain has none.
        for (i, (rule, packets, bytes)) in chain.rules.iter().enumerate() {
            if i == 0 {
                header(&mut out, l);
            }
            if l.line_numbers {
                let _ = write!(out, "{:<4} ", i + 1);
            }
            if l.verbose {
                counter(&mut out, *packets, l.exact, 8);
                counter(&mut out, *bytes, l.exact, 10);
            }
            let target = if rule.target.is_empty() { "-" } else { &rule.target };
            let _ = write!(out, "{target:<9} ");
            let shape = Shape { table: true, numeric: l.numeric, wide: l.verbose };
            body(&mut out, rule, shape);
        }
    }
    out
}

/// A rule on one line, as `-v` repeats what it adds or takes away.
pub fn print_rule(rule: &Rule) -> String {
    let mut out = format!("{} ", if rule.target.is_empty() { "-" } else { &rule.target });
    body(&mut out, rule, Shape { table: false, numeric: true, wide: true });
    out
}

fn header(out: &mut String, l: &Listing) {
    if l.line_numbers {
        out.push_str("num  ");
    }
    if l.verbose {
        out.push_str(if l.exact { "    pkts      bytes " } else { " pkts bytes " });
    }
    out.push_str("target     prot opt    ");
    if l.verbose {
        let _ = write!(out, "tosa tosx  {:<10} {:<10} {:<7} ", "ifname", "mark", "outsize");
    }
    let _ = writeln!(out, " {:<20}  {:<20}  ports", "source", "destination");
}

/// A counter, rounded to thousands and so on unless it is to be exact.
fn counter(out: &mut String, n: u64, exact: bool, width: usize) {
    let thousands = (n + 500) / 1000;
    let millions = (n + 500_000) / 1_000_000;
    let _ = match n {
        _ if exact => write!(out, "{n:>width$} "),
        0..=99_999 => write!(out, "{n:>5} "),
        _ if thousands <= 9999 => write!(out, "{thousands:>4}K "),
        _ if millions <= 9999 => write!(out, "{millions:>4}M "),
        _ => write!(out, "{:>4}G ", (millions + 500) / 1000),
    };
}

#[derive(Clone, Copy)]
struct Shape {
    /// In columns.
    table: bool,
    numeric: bool,
    /// With ToS, interface, mark and size.
    wide: bool,
}

impl Shape {
    /// A word in its column, or followed by one blank.
    fn word(self, out: &mut String, text: &str, width: usize) {
        let _ = match self.table {
            true => write!(out, "{text:<width$}"),
            false => write!(out, "{text} "),
        };
    }
}

fn body(out: &mut String, r: &Rule, shape: Shape) {
    let Shape { table, numeric, wide } = shape;
    let not = |invert: bool| if invert { '!' } else { ' ' };
    out.push(not(r.not_protocol));
    shape.word(out, &protocol(r.protocol), 5);
    if !table {
        out.push_str("opt    ");
    }
    let flag = |on: bool, letter: char| if on { letter } else { '-' };
    out.push(if r.syn == Some(true) { '!' } else { '-' });
    out.push(flag(r.syn.is_some(), 'y'));
    out.push(if r.fragment == Some(true) { '!' } else { '-' });
    out.push(flag(r.fragment.is_some(), 'f'));
    out.push(flag(r.log, 'l'));
    out.push(flag(r.netlink.is_some(), 'o'));
    out.push(' ');
    if wide {
        if !table {
            out.push_str("tos ");
        }
        let _ = write!(out, "0x{:02X} 0x{:02X} ", r.tos.0, r.tos.1);
        out.push(not(r.not_iface));
        let name = match (r.iface.is_empty(), r.iface_wild) {
            (true, _) => if numeric { "*" } else { "any" }.to_owned(),
            (false, true) => format!("{}+", r.iface),
            (false, false) => r.iface.clone(),
        };
        let _ = match table {
            true => write!(out, "{name:<10} "),
            false => write!(out, "via {name} "),
        };
        mark(out, r.mark, table);
        match (r.netlink, table) {
            (Some(size), true) if size != 0xffff => {
                let _ = write!(out, "{size:<7} ");
            }
            (Some(size), false) if size != 0xffff => {
                let _ = write!(out, "outsize {size} ");
            }
            (_, true) => out.push_str("        "),
            _ => {}
        }
    }
    if !table {
        out.push_str("  ");
    }
    out.push(not(r.src.invert));
    let _ = match table {
        true => write!(out, "{:<20} ", address(r.src, numeric)),
        false => write!(out, "{} ", address(r.src, numeric)),
    };
    let bang = if r.dst.invert { "!" } else { "" };
    let _ = match table {
        true => write!(out, "{bang}{:<20}", address(r.dst, numeric)),
        false => write!(out, "-> {bang}{}  ", address(r.dst, numeric)),
    };
    ports(out, r, numeric, table);
    out.push('\n');
}

fn mark(out: &mut String, mark: Mark, table: bool) {
    let _ = match (mark, table) {
        (Mark::Set(n), true) => write!(out, "0x{n:<10x} "),
        (Mark::Set(n), false) => write!(out, "mark 0x{n:x} "),
        (Mark::Add(0), true) => write!(out, "           "),
        (Mark::Add(0), false) => Ok(()),
        // glibc prints no sign before %x.
        (Mark::Add(n), true) => write!(out, "0x{n:<10x} "),
        (Mark::Add(n), false) => write!(out, "mark 0x{n:x} "),
    };
}

fn protocol(number: u16) -> String {
    match number {
        0 => "all".to_owned(),
        _ => {
            let known = crate::iptables::PROTOCOLS.iter().find(|p| u16::from(p.1) == number);
            known.map_or_else(|| number.to_string(), |p| p.0.to_owned())
        }
    }
}

fn address(a: AddrMatch, numeric: bool) -> String {
    if a.mask == 0 {
        return if numeric { "0.0.0.0/0" } else { "anywhere" }.to_owned();
    }
    Family::Ip.address(a.addr) + &Family::Ip.mask_suffix(a.mask)
}

fn ports(out: &mut String, r: &Rule, numeric: bool, table: bool) {
    if !matches!(r.protocol, 1 | 6 | 17) {
        out.push_str("  n/a");
        return;
    }
    if r.protocol == 1 && !r.sports.invert && !r.dports.invert && !numeric {
        let kind = |i: &&(&str, u16, u16, u16)| {
            (i.1, i.1, i.2, i.3) == (r.sports.from, r.sports.to, r.dports.from, r.dports.to)
        };
        if let Some(kind) = ICMP.iter().find(kind) {
            let _ = write!(out, "  {}", kind.0);
            return;
        }
    }
    let port = |n: u16| match service(n, r.protocol) {
        Some(name) if !numeric => name.to_owned(),
        _ => n.to_string(),
    };
    let any = if numeric { "*" } else { "any" };
    for (i, range) in [r.sports, r.dports].into_iter().enumerate() {
        if i == 1 {
            out.push_str(" -> ");
        }
        out.push_str(if range.invert { " !" } else { "  " });
        let _ = match (range.is_any(), range.from == range.to) {
            (true, _) => write!(out, "{any}"),
            (_, true) => write!(out, "{}", port(range.from)),
            _ => write!(out, "{}:{}", port(range.from), port(range.to)),
        };
    }
    if r.target == "REDIRECT" {
        out.push_str(if table { " => " } else { "" });
        let _ = match r.redirect {
            0 => write!(out, " {any}"),
            n => write!(out, "{}", port(n)),
        };
    }
}
