//! `SNAT`, `DNAT`, `MASQUERADE`, `REDIRECT`, `NETMAP`: read, and kept as they are written back.

use super::super::matches::{Ext, Head, ext};
use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, Value, fault, number_prefix, opt};
use super::Target;
use crate::iptables::{Family, Plain};
use crate::services;
use std::fmt::Write;

pub(super) const TARGETS: &[Ext<Target>] = &[
    ext("DNAT", DNAT, |s, h| target("DNAT", "to-destination", "to:", s, h)).reads(read),
    ext("MASQUERADE", MASQUERADE, |s, h| target("MASQUERADE", "to-ports", "masq ports: ", s, h)).reads(read),
    ext("NETMAP", NETMAP, |s, h| target("NETMAP", "to", "to:", s, h)).reads(read),
    ext("REDIRECT", REDIRECT, |s, h| target("REDIRECT", "to-ports", "redir ports ", s, h)).reads(read),
    ext("SNAT", SNAT, |s, h| target("SNAT", "to-source", "to:", s, h)).reads(read),
];

const SNAT: &[Opt] = &[
    opt("to-source", Kind::Text(0, 0)).must(),
    opt("random", Kind::None),
    opt("random-fully", Kind::None),
    opt("persistent", Kind::None),
];
const DNAT: &[Opt] = &[
    opt("to-destination", Kind::Text(0, 0)).must(),
    opt("random", Kind::None),
    opt("persistent", Kind::None),
];
const MASQUERADE: &[Opt] =
    &[opt("to-ports", Kind::Text(0, 0)), opt("random", Kind::None), opt("random-fully", Kind::None)];
const NETMAP: &[Opt] = &[opt("to", Kind::Text(0, 0)).must()];
const REDIRECT: &[Opt] = &[opt("to-ports", Kind::Text(0, 0)), opt("random", Kind::None)];

/// `first[-last[/base]]`.
fn ports(text: &str, head: &Head) -> Result<String, Fault> {
    if !matches!(head.protocol, Some((6 | 17 | 132 | 33 | 1, _))) {
        return fault("Need TCP, UDP, SCTP or DCCP with port specification", "-p tcp or -p udp before -j");
    }
    let not_valid = |t: &str| fault(format!("Port `{t}' not valid"), "0 to 65535");
    let within = |t: &str| -> Option<(u64, String)> {
        let (n, rest) = number_prefix(t)?;
        (n <= 65_535).then(|| (n, rest.to_owned()))
    };
    let (first, rest) = match within(text) {
        Some(found) => found,
        None => match services::port(text) {
            Some(port) => (u64::from(port), String::new()),
            None => return not_valid(text),
        },
    };
    let tail = match rest.chars().next() {
        None => return Ok(format!(":{first}")),
        Some('-') => &rest[1..],
        Some(':') => return fault("Invalid port:port syntax - use dash", "first-last"),
        Some(_) => return fault(format!("Garbage after port value: `{rest}'"), "first-last"),
    };
    let Some((last, rest)) = within(tail) else { return not_valid(tail) };
    if last < first {
        return fault(format!("Port range `{tail}' funky"), "first-last");
    }
    let range = if last == first { format!(":{first}") } else { format!(":{first}-{last}") };
    match rest.strip_prefix('/') {
        None if rest.is_empty() => Ok(range),
        None => fault(format!("Garbage after port range: `{rest}'"), "first-last"),
        Some(base) => match within(base).map(|b| b.0).or_else(|| services::port(base).map(u64::from)) {
            Some(base) if base > 0 => Ok(format!("{range}/{base}")),
            _ => not_valid(base),
        },
    }
}

/// `[address[-address]][:ports]` as it is written back.
fn to(text: &str, head: &Head) -> Result<String, Fault> {
    let family = head.family;
    let (addresses, port_part) = match text.split_once('[') {
        None => match text.match_indices(':').collect::<Vec<_>>()[..] {
            [(at, _)] => (&text[..at], Some(&text[at + 1..])),
            _ => (text, None),
        },
        Some((_, inside)) => {
            let Some((inside, rest)) = inside.split_once(']').filter(|_| family == Family::Ip6) else {
                return fault("Invalid address format", "");
            };
            (inside, rest.split_once(':').map(|(_, ports)| ports))
        }
    };
    let ports = match port_part {
        Some(part) => ports(part, head)?,
        None => String::new(),
    };
    if addresses.is_empty() && port_part.is_some() {
        return Ok(ports);
    }
    let (from, last) = addresses.split_once('-').unwrap_or((addresses, addresses));
    let mut out = String::new();
    let brackets = family == Family::Ip6 && !ports.is_empty();
    for (i, text) in [from, last].into_iter().enumerate() {
        match family.parse(text) {
            Some(addr) if i == 0 => out = family.address(addr),
            Some(addr) if family.parse(from) != Some(addr) => {
                let _ = write!(out, "-{}", family.address(addr));
            }
            Some(_) => {}
            None => return fault(format!("Bad IP address \"{text}\""), "e.g. 10.0.0.1 or 10.0.0.1-10.0.0.9"),
        }
    }
    Ok(if brackets { format!("[{out}]{ports}") } else { out + &ports })
}

/// `address[/length or mask]` as it is written back.
fn net(text: &str, head: &Head) -> Result<String, Fault> {
    let bad = || fault(format!("Bad network address \"{text}\""), "e.g. 10.0.0.0/24");
    let (addr, mask) = text.split_once('/').unwrap_or((text, ""));
    let bits = if head.family == Family::Ip6 { 128 } else { 32 };
    let Some(parsed) = head.family.parse(addr) else {
        let other = if head.family == Family::Ip { Family::Ip6 } else { Family::Ip };
        return match other.parse(addr) {
            Some(_) => {
                let message = "getaddrinfo: Address family for hostname not supported\n";
                fault(message, "an address of the program's own family")
            }
            None => bad(),
        };
    };
    let len = match (mask.parse::<u32>(), head.family.parse(mask)) {
        _ if mask.is_empty() => bits,
        (Ok(len), _) if len <= bits => len,
        (_, Some(mask)) if head.family == Family::Ip => {
            let mask = mask as u32;
            if mask.leading_ones() + mask.trailing_zeros() < 32 {
                return bad();
            }
            mask.leading_ones()
        }
        _ => return bad(),
    };
    let host = if bits == len { 0 } else { u128::MAX >> (128 - (bits - len)) };
    let shown = head.family.address(parsed & !host);
    Ok(format!("{shown}/{len}"))
}

fn range(given: &ParsedOption, head: &Head) -> Result<String, Fault> {
    match given.id {
        "to-ports" => ports(&given.text, head),
        "to" => net(&given.text, head),
        _ => to(&given.text, head),
    }
}

fn read(given: &ParsedOption, head: &Head) -> Result<(), Fault> {
    match given.value {
        Value::Text => range(given, head).map(drop),
        _ => Ok(()),
    }
}

fn target(name: &str, id: &str, shown: &str, seen: &Seen, head: &Head) -> Target {
    let range = seen.find(id).and_then(|g| range(g, head).ok()).unwrap_or_default();
    let (mut save, mut list) = (String::new(), String::new());
    if !range.is_empty() {
        let bare = if id == "to-ports" { range.trim_start_matches(':') } else { range.as_str() };
        let _ = write!(save, " --{id} {bare}");
        let _ = write!(list, " {shown}{bare}");
    }
    for flag in ["random", "random-fully", "persistent"] {
        if seen.has(flag) {
            let _ = write!(save, " --{flag}");
            let _ = write!(list, " {flag}");
        }
    }
    let list = list.trim_start().to_owned();
    Target::Plain(Plain { name: name.to_owned(), save, numeric: list.clone(), list })
}
