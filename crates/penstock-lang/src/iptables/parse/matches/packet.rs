//! What stands in a packet's headers or beside them: `icmp`, `icmp6`, `mark`, `dscp`, `tos`, `length`, `ttl`, `hl`, `ecn`,
//! `tcpmss`, `pkttype`, `realm`.

use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, fault, number, number_prefix, opt};
use super::{Ext, Head, ext};
use crate::iptables::{Asks, Family, Match, Plain};

pub(super) const MATCHES: &[Ext<Match>] = &[
    ext("dscp", DSCP, dscp).reads(read_dscp).checks(|seen, _| match seen.0.is_empty() {
        true => fault("DSCP match: Parameter --dscp is required", "e.g. --dscp 46 or --dscp-class EF"),
        false => Ok(()),
    }),
    ext("ecn", ECN, ecn).checks(|seen, _| match seen.0.is_empty() {
        true => fault("ECN match: some option required", ""),
        false => Ok(()),
    }),
    ext("hl", HL, hop_limit).only(Family::Ip6).checks(|seen, _| match seen.0.is_empty() {
        true => fault("HL match: You must specify one of `--hl-eq', `--hl-lt', `--hl-gt'", ""),
        false => Ok(()),
    }),
    ext("icmp", &[opt("icmp-type", Kind::Text(0, 0)).must().inv()], icmp)
        .only(Family::Ip)
        .reads(|g, h| icmp_type(&g.text, h).map(drop)),
    ext("icmp6", &[opt("icmpv6-type", Kind::Text(0, 0)).must().inv()], icmp)
        .only(Family::Ip6)
        .reads(|g, h| icmp_type(&g.text, h).map(drop)),
    ext("length", &[opt("length", Kind::Range(65_535)).must().inv()], length).reads(read_length),
    ext("mark", &[opt("mark", Kind::Mark).must().inv()], mark),
    ext("pkttype", &[opt("pkt-type", Kind::Text(0, 0)).must().inv()], pkttype).reads(
        |g, _| match packet_type(&g.text) {
            Some(_) => Ok(()),
            None => {
                fault(format!("Bad packet type '{}'", g.text), "unicast, broadcast, multicast, otherhost")
            }
        },
    ),
    ext("realm", &[opt("realm", Kind::Text(0, 0)).must().inv()], realm).only(Family::Ip).reads(|g, _| {
        match realm_value(&g.text) {
            Some(_) => Ok(()),
            None => fault(format!("realm: Bad value for \"--realm\" option: \"{}\"", g.text), "a number"),
        }
    }),
    ext("tcpmss", &[opt("mss", Kind::Range(65_535)).must().inv()], tcpmss).reads(|g, _| match g.value {
        super::super::option::Value::Range([min, max], 2) if max < min => {
            fault("tcpmss: invalid range given", "least:most")
        }
        _ => Ok(()),
    }),
    ext("tos", &[opt("tos", Kind::Tos(0x3f)).must().inv()], |seen, _| {
        let (value, mask) = seen.tos("tos").unwrap_or((0, 0));
        Match::Tos { value, mask, invert: seen.inverted("tos") }
    }),
    ext("ttl", TTL, ttl).only(Family::Ip).checks(|seen, _| match seen.0.is_empty() {
        true => fault("TTL match: You must specify one of `--ttl-eq', `--ttl-lt', `--ttl-gt", ""),
        false => Ok(()),
    }),
];

/// ICMP types by name: type, first and last code.
#[rustfmt::skip]
pub(in crate::iptables) const ICMP_NAMES: &[(&str, u8, u8, u8)] = &[
    ("any", 255, 0, 255),
    ("echo-reply", 0, 0, 255), ("pong", 0, 0, 255),
    ("destination-unreachable", 3, 0, 255),
    ("network-unreachable", 3, 0, 0), ("host-unreachable", 3, 1, 1), ("protocol-unreachable", 3, 2, 2),
    ("port-unreachable", 3, 3, 3), ("fragmentation-needed", 3, 4, 4), ("source-route-failed", 3, 5, 5),
    ("network-unknown", 3, 6, 6), ("host-unknown", 3, 7, 7), ("network-prohibited", 3, 9, 9),
    ("host-prohibited", 3, 10, 10), ("TOS-network-unreachable", 3, 11, 11),
    ("TOS-host-unreachable", 3, 12, 12), ("communication-prohibited", 3, 13, 13),
    ("host-precedence-violation", 3, 14, 14), ("precedence-cutoff", 3, 15, 15),
    ("source-quench", 4, 0, 255),
    ("redirect", 5, 0, 255), ("network-redirect", 5, 0, 0), ("host-redirect", 5, 1, 1),
    ("TOS-network-redirect", 5, 2, 2), ("TOS-host-redirect", 5, 3, 3),
    ("echo-request", 8, 0, 255), ("ping", 8, 0, 255),
    ("router-advertisement", 9, 0, 255), ("router-solicitation", 10, 0, 255),
    ("time-exceeded", 11, 0, 255), ("ttl-exceeded", 11, 0, 255),
    ("ttl-zero-during-transit", 11, 0, 0), ("ttl-zero-during-reassembly", 11, 1, 1),
    ("parameter-problem", 12, 0, 255), ("ip-header-bad", 12, 0, 0), ("required-option-missing", 12, 1, 1),
    ("timestamp-request", 13, 0, 255), ("timestamp-reply", 14, 0, 255),
    ("address-mask-request", 17, 0, 255), ("address-mask-reply", 18, 0, 255),
];

/// ICMPv6 types by name.
#[rustfmt::skip]
pub(in crate::iptables) const ICMP6_NAMES: &[(&str, u8, u8, u8)] = &[
    ("destination-unreachable", 1, 0, 255),
    ("no-route", 1, 0, 0), ("communication-prohibited", 1, 1, 1), ("beyond-scope", 1, 2, 2),
    ("address-unreachable", 1, 3, 3), ("port-unreachable", 1, 4, 4), ("failed-policy", 1, 5, 5),
    ("reject-route", 1, 6, 6),
    ("packet-too-big", 2, 0, 255),
    ("time-exceeded", 3, 0, 255), ("ttl-exceeded", 3, 0, 255),
    ("ttl-zero-during-transit", 3, 0, 0), ("ttl-zero-during-reassembly", 3, 1, 1),
    ("parameter-problem", 4, 0, 255), ("bad-header", 4, 0, 0), ("unknown-header-type", 4, 1, 1),
    ("unknown-option", 4, 2, 2),
    ("echo-request", 128, 0, 255), ("ping", 128, 0, 255),
    ("echo-reply", 129, 0, 255), ("pong", 129, 0, 255),
    ("router-solicitation", 133, 0, 255), ("router-advertisement", 134, 0, 255),
    ("neighbour-solicitation", 135, 0, 255), ("neighbor-solicitation", 135, 0, 255),
    ("neighbour-advertisement", 136, 0, 255), ("neighbor-advertisement", 136, 0, 255),
    ("redirect", 137, 0, 255),
];

/// What the real program says of text after a number: the first character that has no place there.
fn unknown_character(rest: &str) -> String {
    format!("unknown character {}", rest.chars().next().map(String::from).unwrap_or_default())
}

fn icmp_type(text: &str, head: &Head) -> Result<(u8, (u8, u8)), Fault> {
    let (names, what) = match head.family {
        Family::Ip => (ICMP_NAMES, "ICMP"),
        Family::Ip6 => (ICMP6_NAMES, "ICMPv6"),
    };
    let lower = text.to_ascii_lowercase();
    let like = |n: &&(&str, u8, u8, u8)| n.0.to_ascii_lowercase().starts_with(&lower);
    let mut named = names.iter().filter(like);
    if let Some(first) = named.next() {
        if let Some(other) = named.next() {
            let message = format!("Ambiguous {what} type `{text}': `{}' or `{}'?", first.0, other.0);
            return fault(message, "write the name in full");
        }
        return Ok((first.1, (first.2, first.3)));
    }
    // A range of types can be written, and is refused.
    let range = |t: &str| -> Option<(u8, u8, String)> {
        let byte = |t: &str| {
            let (n, rest) = number_prefix(t)?;
            Some((u8::try_from(n).ok()?, rest.to_owned()))
        };
        let (first, rest) = byte(t)?;
        match rest.strip_prefix(':') {
            Some(tail) => byte(tail).map(|(last, rest)| (first, last, rest)),
            None => Some((first, first, rest)),
        }
    };
    let help = "a number or a name, e.g. echo-request";
    let (ty, code) = text.split_once('/').map_or((text, None), |(ty, code)| (ty, Some(code)));
    if head.old {
        let byte = |t: &str| number(t).and_then(|n| u8::try_from(n).ok());
        let Some(number) = byte(ty) else {
            return fault(format!("Invalid {what} type `{ty}'\n"), help);
        };
        return match code.map(|c| byte(c).ok_or(c)) {
            None => Ok((number, (0, 255))),
            Some(Ok(code)) => Ok((number, (code, code))),
            Some(Err(code)) => fault(format!("Invalid {what} code `{code}'\n"), "0 to 255"),
        };
    }
    let Some((first, last, rest)) = range(text) else {
        return fault(format!("Unknown {what} type `{text}'"), help);
    };
    let codes = match rest.strip_prefix('/') {
        None if rest.is_empty() => (0, 255),
        None => return fault(unknown_character(&rest), help),
        Some(codes) => match range(codes) {
            None => return fault(format!("Unknown {what} code `{text}'"), "0 to 255"),
            Some((from, to, rest)) if rest.is_empty() => (from, to),
            Some((_, _, rest)) => return fault(unknown_character(&rest), help),
        },
    };
    if first != last {
        return fault(format!("{what} type range not supported"), "one rule for each type");
    }
    Ok((first, codes))
}

fn icmp(seen: &Seen, head: &Head) -> Match {
    let given = seen.0.first();
    let (ty, code) = given.and_then(|g| icmp_type(&g.text, head).ok()).unwrap_or((255, (0, 255)));
    Match::Icmp { ty, code, invert: given.is_some_and(|g| g.invert) }
}

const DSCP: &[Opt] = &[
    opt("dscp", Kind::Int(0, 63)).excl(&["dscp-class"]).inv(),
    opt("dscp-class", Kind::Text(0, 0)).excl(&["dscp"]).inv(),
];

/// A class of RFC 2474, 2597 or 3246 by name.
pub(in crate::iptables::parse) fn dscp_class(text: &str) -> Result<u8, Fault> {
    #[rustfmt::skip]
    const CLASSES: [(&str, u8); 22] = [
        ("CS0", 0x00), ("CS1", 0x08), ("CS2", 0x10), ("CS3", 0x18), ("CS4", 0x20), ("CS5", 0x28),
        ("CS6", 0x30), ("CS7", 0x38), ("BE", 0x00), ("AF11", 0x0a), ("AF12", 0x0c), ("AF13", 0x0e),
        ("AF21", 0x12), ("AF22", 0x14), ("AF23", 0x16), ("AF31", 0x1a), ("AF32", 0x1c),
        ("AF33", 0x1e), ("AF41", 0x22), ("AF42", 0x24), ("AF43", 0x26), ("EF", 0x2e),
    ];
    match CLASSES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)) {
        Some(&(_, dscp)) => Ok(dscp),
        None => fault(format!("Invalid DSCP value `{text}'"), "CS0 to CS7, AF11 to AF43, EF, BE"),
    }
}

fn read_dscp(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    if given.id == "dscp-class" { dscp_class(&given.text).map(drop) } else { Ok(()) }
}

fn dscp(seen: &Seen, _: &Head) -> Match {
    let invert = seen.0.iter().any(|g| g.invert);
    let class = || dscp_class(seen.text("dscp-class")).unwrap_or(0);
    Match::Dscp { dscp: seen.int("dscp").map_or_else(class, |n| n as u8), invert }
}

const ECN: &[Opt] = &[
    opt("ecn-tcp-cwr", Kind::None).inv(),
    opt("ecn-tcp-ece", Kind::None).inv(),
    opt("ecn-ip-ect", Kind::Int(0, 3)).inv(),
];

fn ecn(seen: &Seen, _: &Head) -> Match {
    let ect = seen.int("ecn-ip-ect").map(|n| (n as u8, seen.inverted("ecn-ip-ect")));
    let flag = |id: &str| seen.find(id).map(|g| g.invert);
    Match::Ecn { ece: flag("ecn-tcp-ece"), cwr: flag("ecn-tcp-cwr"), ect }
}

fn read_length(given: &ParsedOption, head: &Head) -> Result<(), Fault> {
    match given.value {
        super::super::option::Value::Range([min, max], 2) if head.old && min > max => {
            fault(format!("length: Bad value for \"--length\" option: \"{}\"", given.text), "least:most")
        }
        _ => Ok(()),
    }
}

fn length(seen: &Seen, _: &Head) -> Match {
    let ([min, most], count) = seen.range("length").unwrap_or_default();
    let max = if count == 2 { most } else { min };
    Match::Length { min: min as u16, max: max as u16, invert: seen.inverted("length") }
}

fn mark(seen: &Seen, _: &Head) -> Match {
    let (mark, mask) = seen.mark("mark").unwrap_or_default();
    Match::Mark { mark, mask, invert: seen.inverted("mark") }
}

fn packet_type(name: &str) -> Option<u8> {
    const TYPES: [(&str, u8); 7] = [
        ("unicast", 0),
        ("broadcast", 1),
        ("multicast", 2),
        ("otherhost", 3),
        ("bcast", 1),
        ("mcast", 2),
        ("host", 0),
    ];
    TYPES.iter().find(|t| t.0.eq_ignore_ascii_case(name)).map(|t| t.1)
}

fn pkttype(seen: &Seen, _: &Head) -> Match {
    Match::Pkttype { ty: packet_type(seen.text("pkt-type")).unwrap_or(0), invert: seen.inverted("pkt-type") }
}

fn realm_value(text: &str) -> Option<(u64, u64)> {
    let (id, mask) = text.split_once('/').map_or((text, None), |(id, mask)| (id, Some(mask)));
    let mask = mask.map_or(Some(0xffff_ffff), number)?;
    Some((number(id)?, mask))
}

fn realm(seen: &Seen, _: &Head) -> Match {
    let (id, mask) = realm_value(seen.text("realm")).unwrap_or_default();
    let not = if seen.inverted("realm") { "! " } else { "" };
    let value = if mask == 0xffff_ffff { format!("0x{id:x}") } else { format!("0x{id:x}/0x{mask:x}") };
    let words = Plain {
        name: "realm".to_owned(),
        save: format!(" {not}--realm {value}"),
        list: format!("{not}realm {value}"),
        numeric: format!("{not}realm {value}"),
    };
    Match::Worded(words, Asks::Realm { id: id as u32, mask: mask as u32, invert: seen.inverted("realm") })
}

fn tcpmss(seen: &Seen, _: &Head) -> Match {
    let ([min, most], count) = seen.range("mss").unwrap_or_default();
    let range = match count {
        2 if most != min => format!("{min}:{most}"),
        _ => min.to_string(),
    };
    let invert = seen.inverted("mss");
    let list = format!("tcpmss match {}{range}", if invert { "!" } else { "" });
    let words = Plain {
        name: "tcpmss".to_owned(),
        save: format!("{} --mss {range}", if invert { " !" } else { "" }),
        numeric: list.clone(),
        list,
    };
    let last = if count == 2 { most } else { min };
    Match::Worded(words, Asks::Mss { range: (min as u16, last as u16), invert })
}

const TTL_ANY: &[&str] = &["ttl-lt", "ttl-gt", "ttl-eq"];
const TTL: &[Opt] = &[
    opt("ttl-lt", Kind::Int(0, 255)).excl(TTL_ANY),
    opt("ttl-gt", Kind::Int(0, 255)).excl(TTL_ANY),
    opt("ttl-eq", Kind::Int(0, 255)).excl(TTL_ANY).inv(),
    opt("ttl", Kind::Int(0, 255)).id("ttl-eq").excl(TTL_ANY).inv(),
];
const HL_ANY: &[&str] = &["hl-lt", "hl-gt", "hl-eq"];
const HL: &[Opt] = &[
    opt("hl-lt", Kind::Int(0, 255)).excl(HL_ANY),
    opt("hl-gt", Kind::Int(0, 255)).excl(HL_ANY),
    opt("hl-eq", Kind::Int(0, 255)).excl(HL_ANY).inv(),
    opt("hl", Kind::Int(0, 255)).id("hl-eq").excl(HL_ANY).inv(),
];

fn compared(seen: &Seen, prefix: &str) -> Match {
    let given = seen.0.first();
    let mode = match given.map(|g| (g.id.strip_prefix(prefix).unwrap_or(""), g.invert)) {
        Some(("-lt", _)) => -1,
        Some(("-gt", _)) => 1,
        Some((_, true)) => 2,
        _ => 0,
    };
    let ttl = given.and_then(|g| seen.int(g.id)).unwrap_or(0) as u8;
    Match::Ttl { ttl, mode }
}
fn ttl(seen: &Seen, _: &Head) -> Match {
    compared(seen, "ttl")
}
fn hop_limit(seen: &Seen, _: &Head) -> Match {
    compared(seen, "hl")
}
