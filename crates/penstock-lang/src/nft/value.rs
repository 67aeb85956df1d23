//! Values: their types, their names, how they are read and written.

use super::data::{Data, Element, Expr, Op, Raw, RawData, RawElement, Set, Type, Verdict};
use super::{Fault, Pos};
use crate::services;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Classes of RFC 2474, 2597, 3246 and 8622; the first of several names is written back.
#[rustfmt::skip]
const DSCP: &[(&str, u128)] = &[
    ("cs0", 0x00), ("cs1", 0x08), ("cs2", 0x10), ("cs3", 0x18), ("cs4", 0x20), ("cs5", 0x28), ("cs6", 0x30),
    ("cs7", 0x38), ("df", 0x00), ("be", 0x00), ("lephb", 0x01), ("af11", 0x0a), ("af12", 0x0c), ("af13", 0x0e),
    ("af21", 0x12), ("af22", 0x14), ("af23", 0x16), ("af31", 0x1a), ("af32", 0x1c), ("af33", 0x1e),
    ("af41", 0x22), ("af42", 0x24), ("af43", 0x26), ("va", 0x2c), ("ef", 0x2e),
];
const CT_STATE: &[(&str, u128)] =
    &[("invalid", 1), ("new", 8), ("established", 2), ("related", 4), ("untracked", 64)];
const CT_STATUS: &[(&str, u128)] = &[
    ("expected", 1),
    ("seen-reply", 2),
    ("assured", 4),
    ("confirmed", 8),
    ("snat", 16),
    ("dnat", 32),
    ("dying", 512),
];
/// `RTN_…`.
const FIB_TYPE: &[(&str, u128)] = &[
    ("unspec", 0),
    ("unicast", 1),
    ("local", 2),
    ("broadcast", 3),
    ("anycast", 4),
    ("multicast", 5),
    ("blackhole", 6),
    ("unreachable", 7),
    ("prohibit", 8),
];
const TCP_FLAG: &[(&str, u128)] =
    &[("fin", 1), ("syn", 2), ("rst", 4), ("psh", 8), ("ack", 16), ("urg", 32), ("ecn", 64), ("cwr", 128)];
#[rustfmt::skip]
const ICMP: &[(&str, u128)] = &[
    ("echo-reply", 0), ("destination-unreachable", 3), ("source-quench", 4), ("redirect", 5), ("echo-request", 8),
    ("router-advertisement", 9), ("router-solicitation", 10), ("time-exceeded", 11), ("parameter-problem", 12),
    ("timestamp-request", 13), ("timestamp-reply", 14), ("info-request", 15), ("info-reply", 16),
    ("address-mask-request", 17), ("address-mask-reply", 18),
];
#[rustfmt::skip]
const ICMP6: &[(&str, u128)] = &[
    ("destination-unreachable", 1), ("packet-too-big", 2), ("time-exceeded", 3), ("parameter-problem", 4),
    ("echo-request", 128), ("echo-reply", 129), ("mld-listener-query", 130), ("mld-listener-report", 131),
    ("mld-listener-done", 132), ("mld-listener-reduction", 132), ("nd-router-solicit", 133), ("nd-router-advert", 134),
    ("nd-neighbor-solicit", 135), ("nd-neighbor-advert", 136), ("nd-redirect", 137), ("router-renumbering", 138),
    ("ind-neighbor-solicit", 141), ("ind-neighbor-advert", 142), ("mld2-listener-report", 143),
];
#[rustfmt::skip]
const ICMP_CODE: &[(&str, u128)] = &[
    ("net-unreachable", 0), ("host-unreachable", 1), ("prot-unreachable", 2), ("port-unreachable", 3), ("net-prohibited", 9),
    ("host-prohibited", 10), ("admin-prohibited", 13), ("frag-needed", 4),
];
#[rustfmt::skip]
const ICMP6_CODE: &[(&str, u128)] = &[
    ("no-route", 0), ("admin-prohibited", 1), ("addr-unreachable", 3), ("port-unreachable", 4), ("policy-fail", 5), ("reject-route", 6),
];
const PROTOCOL: &[(&str, u128)] = &[
    ("tcp", 6),
    ("udp", 17),
    ("icmp", 1),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("udplite", 136),
    ("sctp", 132),
    ("dccp", 33),
    ("esp", 50),
    ("ah", 51),
    ("comp", 108),
    ("gre", 47),
    ("igmp", 2),
    ("ipip", 94),
    ("ipv6", 41),
    ("ospf", 89),
    ("vrrp", 112),
];
const ETHER: &[(&str, u128)] = &[
    ("ip", 0x0800),
    ("arp", 0x0806),
    ("ip6", 0x86dd),
    ("8021q", 0x8100),
    ("8021ad", 0x88a8),
    ("vlan", 0x8100),
];
const PKT: &[(&str, u128)] = &[("host", 0), ("unicast", 0), ("broadcast", 1), ("multicast", 2), ("other", 3)];

impl Type {
    /// As `type` in a set names it.
    pub fn name(self) -> &'static str {
        match self {
            Type::Mark => "mark",
            Type::Classid => "classid",
            Type::Ifname => "ifname",
            Type::Protocol => "inet_proto",
            Type::Service => "inet_service",
            Type::Ipv4 => "ipv4_addr",
            Type::Ipv6 => "ipv6_addr",
            Type::Dscp => "dscp",
            Type::Ecn => "ecn",
            Type::CtState => "ct_state",
            Type::CtStatus => "ct_status",
            Type::FibType => "fib_addrtype",
            Type::Boolean => "boolean",
            Type::CtDir => "ct_dir",
            Type::CtId => "ct_id",
            Type::Icmp => "icmp_type",
            Type::Icmp6 => "icmpv6_type",
            Type::IcmpCode => "icmp_code",
            Type::Icmp6Code => "icmpv6_code",
            Type::TcpFlag => "tcp_flag",
            Type::Uid => "uid",
            Type::Gid => "gid",
            Type::NfProto => "nf_proto",
            Type::EtherType => "ether_type",
            Type::EtherAddr => "ether_addr",
            Type::PktType => "pkt_type",
            Type::Verdict => "verdict",
            Type::Integer(_) => "integer",
        }
    }
    /// The type of this name.
    pub fn named(name: &str) -> Option<Type> {
        const ALL: [Type; 27] = [
            Type::Ecn,
            Type::Mark,
            Type::Classid,
            Type::Ifname,
            Type::Protocol,
            Type::Service,
            Type::Ipv4,
            Type::Ipv6,
            Type::Dscp,
            Type::CtState,
            Type::CtStatus,
            Type::FibType,
            Type::Boolean,
            Type::CtDir,
            Type::CtId,
            Type::Icmp,
            Type::Icmp6,
            Type::IcmpCode,
            Type::Icmp6Code,
            Type::TcpFlag,
            Type::Uid,
            Type::Gid,
            Type::NfProto,
            Type::EtherType,
            Type::EtherAddr,
            Type::PktType,
            Type::Verdict,
        ];
        ALL.into_iter().find(|t| t.name() == name)
    }
    /// As messages call it.
    pub fn described(self) -> &'static str {
        match self {
            Type::Mark => "packet mark",
            Type::Classid => "TC classid",
            Type::Ifname => "network interface name",
            Type::Protocol => "Internet protocol",
            Type::Service => "internet network service",
            Type::Ipv4 => "IPv4 address",
            Type::Ipv6 => "IPv6 address",
            Type::Dscp => "Differentiated Services Code Point",
            Type::Ecn => "Explicit Congestion Notification",
            Type::CtState => "conntrack state",
            Type::CtStatus => "conntrack status",
            Type::FibType => "fib address type",
            Type::Boolean => "boolean type",
            Type::CtDir => "conntrack direction",
            Type::CtId => "conntrack id",
            Type::Icmp => "ICMP type",
            Type::Icmp6 => "ICMPv6 type",
            Type::IcmpCode => "icmp code",
            Type::Icmp6Code => "icmpv6 code",
            Type::TcpFlag => "TCP flag",
            Type::Uid => "user ID",
            Type::Gid => "group ID",
            Type::NfProto => "netfilter protocol",
            Type::EtherType => "Ethernet protocol",
            Type::EtherAddr => "Ethernet address",
            Type::PktType => "packet type",
            Type::Verdict => "netfilter verdict",
            Type::Integer(_) => "integer",
        }
    }
    /// Bits.
    pub fn bits(self) -> u32 {
        match self {
            Type::Mark
            | Type::Classid
            | Type::Ipv4
            | Type::CtState
            | Type::CtStatus
            | Type::FibType
            | Type::CtId
            | Type::Uid
            | Type::Gid => 32,
            Type::Boolean => 1,
            Type::Ifname | Type::Ipv6 => 128,
            Type::Service | Type::EtherType => 16,
            Type::EtherAddr => 48,
            Type::Dscp => 6,
            Type::Ecn => 2,
            Type::Protocol
            | Type::CtDir
            | Type::Icmp
            | Type::Icmp6
            | Type::IcmpCode
            | Type::Icmp6Code
            | Type::TcpFlag
            | Type::NfProto
            | Type::PktType => 8,
            Type::Verdict => 32,
            Type::Integer(bits) => bits.into(),
        }
    }
    fn names(self) -> &'static [(&'static str, u128)] {
        match self {
            Type::Dscp => DSCP,
            Type::Ecn => &[("not-ect", 0), ("ect1", 1), ("ect0", 2), ("ce", 3)],
            Type::CtState => CT_STATE,
            Type::CtStatus => CT_STATUS,
            Type::FibType => FIB_TYPE,
            Type::Boolean => &[("exists", 1), ("missing", 0)],
            Type::CtDir => &[("original", 0), ("reply", 1)],
            Type::Icmp => ICMP,
            Type::Icmp6 => ICMP6,
            Type::IcmpCode => ICMP_CODE,
            Type::Icmp6Code => ICMP6_CODE,
            Type::TcpFlag => TCP_FLAG,
            Type::NfProto => &[("ipv4", 2), ("ipv6", 10)],
            Type::EtherType => ETHER,
            Type::PktType => PKT,
            Type::Protocol => PROTOCOL,
            _ => &[],
        }
    }
    /// Whether several values are joined with commas.
    pub fn is_flags(self) -> bool {
        matches!(self, Type::CtState | Type::CtStatus | Type::TcpFlag)
    }
    /// The greatest value.
    pub fn most(self) -> u128 {
        if self.bits() >= 128 { u128::MAX } else { (1 << self.bits()) - 1 }
    }
    /// How many elements stand on a line of a named set.
    pub fn per_line(self) -> usize {
        match self {
            Type::NfProto
            | Type::Integer(_)
            | Type::Protocol
            | Type::Service
            | Type::TcpFlag
            | Type::Mark
            | Type::Classid
            | Type::Uid
            | Type::Gid
            | Type::CtId
            | Type::CtDir => 5,
            Type::Ipv4 | Type::CtState | Type::CtStatus | Type::PktType => 2,
            _ => 1,
        }
    }
    /// Written back.
    pub fn text(self, value: u128, numeric: bool, with_services: bool) -> String {
        let name = self.names().iter().find(|n| n.1 == value).map(|n| n.0);
        let number = || match self {
            Type::Mark => format!("0x{value:08x}"),
            Type::Classid => match value {
                0 => "none".to_owned(),
                0xffff_ffff => "root".to_owned(),
                v => format!("{:x}:{:x}", v >> 16, v & 0xffff),
            },
            Type::Ipv4 => Ipv4Addr::from(value as u32).to_string(),
            Type::Ipv6 => Ipv6Addr::from(value).to_string(),
            Type::Dscp => format!("0x{value:02x}"),
            Type::CtState | Type::CtStatus | Type::TcpFlag => format!("0x{value:x}"),
            Type::EtherType => format!("0x{value:04x}"),
            Type::EtherAddr => {
                let bytes = (value as u64).to_be_bytes();
                bytes[2..].iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
            }
            _ => value.to_string(),
        };
        if self == Type::Service && with_services && !numeric {
            let port = value as u16;
            if let Some(name) = services::name(port, 6).or_else(|| services::name(port, 17)) {
                return format!("\"{name}\"");
            }
        }
        match name {
            Some(name) if !numeric => name.to_owned(),
            _ => number(),
        }
    }
}

/// A number as it is written in rules.
fn number(text: &str) -> Option<u128> {
    match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) => u128::from_str_radix(hex, 16).ok(),
        None if text.bytes().all(|b| b.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// One value of a type.
fn atom(text: &str, pos: Pos, ty: Type) -> Result<u128, Fault> {
    let bad = |message: &str, help: &str| Err(Fault::new(pos, message, help));
    let value = match (ty, number(text)) {
        (Type::Service, Some(n)) if n > 65_535 => return bad("Service out of range", "0 to 65535"),
        (Type::Ipv4 | Type::Ipv6, Some(n)) if ty == Type::Ipv4 && n <= u128::from(u32::MAX) => n,
        (_, Some(n)) => n,
        (Type::Ipv4, None) => match text.parse::<Ipv4Addr>() {
            Ok(addr) => u32::from(addr).into(),
            Err(_) => {
                return bad(
                    "Could not resolve hostname: Name or service not known",
                    "write the address in numbers",
                );
            }
        },
        (Type::Ipv6, None) => match text.parse::<Ipv6Addr>() {
            Ok(addr) => addr.into(),
            Err(_) => {
                let message = match text.parse::<Ipv4Addr>() {
                    Ok(_) => "Could not resolve hostname: Address family for hostname not supported",
                    Err(_) => "Could not resolve hostname: Name or service not known",
                };
                return bad(message, "write the address in numbers");
            }
        },
        (Type::Service, None) => match services::port(text) {
            Some(port) => port.into(),
            None => {
                let message = "Could not resolve service: Servname not supported for ai_socktype";
                return bad(message, "0 to 65535");
            }
        },
        (Type::Classid, None) => match (text, text.split_once(':')) {
            ("none", _) => 0,
            ("root", _) => 0xffff_ffff,
            (_, Some((major, minor))) => {
                let hex = |t: &str| u128::from_str_radix(t, 16).ok().filter(|&n| n <= 0xffff);
                match (hex(major), hex(minor)) {
                    (Some(major), Some(minor)) => major << 16 | minor,
                    _ => return bad("Could not parse TC classid", "MAJOR:MINOR in hex, e.g. 1:10"),
                }
            }
            // Word for word: what is not a class is none.
            _ => 0,
        },
        (Type::Uid | Type::Gid, None) => match (text, ty) {
            ("root", _) => 0,
            (_, Type::Uid) => return bad("User does not exist", "a number, or root"),
            _ => return bad("Group does not exist", "a number, or root"),
        },
        (Type::EtherAddr, None) => {
            let parts: Option<Vec<u128>> =
                text.split(':').map(|p| u128::from_str_radix(p, 16).ok()).collect();
            match parts.filter(|p| p.len() == 6) {
                Some(parts) => parts.into_iter().fold(0, |all, b| all << 8 | b & 0xff),
                None => {
                    return bad("Could not parse Ethernet address", "six pairs of hex digits with colons");
                }
            }
        }
        (Type::Protocol, None) => match ty.names().iter().find(|n| n.0 == text) {
            Some(n) => n.1,
            None => return bad("Could not resolve protocol name", "tcp, udp, icmp, …, or a number"),
        },
        (_, None) => match ty.names().iter().find(|n| n.0 == text) {
            Some(n) => n.1,
            None => {
                let names: Vec<&str> = ty.names().iter().map(|n| n.0).collect();
                let message = format!("Could not parse {}", ty.described());
                return Err(Fault::new(pos, message, &names.join(" ")));
            }
        },
    };
    if value > ty.most() {
        let message = match ty {
            Type::Service => "Service out of range".to_owned(),
            Type::Protocol => "Protocol out of range".to_owned(),
            _ => format!("Value {value} exceeds valid range 0-{}", ty.most()),
        };
        return Err(Fault::new(pos, message, ""));
    }
    Ok(value)
}

/// Where a value stands.
pub fn place(raw: &Raw) -> Pos {
    match raw {
        Raw::Word(_, pos, _) | Raw::Named(_, pos) | Raw::Expr(_, pos) | Raw::Set(_, pos) => *pos,
        Raw::Prefix(addr, _, pos) => place(addr).to(*pos),
        Raw::Range(a, b) | Raw::Op(_, a, b) | Raw::Map(a, b) => place(a).to(place(b)),
        Raw::List(all) | Raw::Concat(all) => match (all.first(), all.last()) {
            (Some(a), Some(b)) => place(a).to(place(b)),
            _ => Pos::default(),
        },
    }
}

/// A written value as one of the key's types.
pub(super) fn resolve(raw: &Raw, key: &[Type]) -> Result<Expr, Fault> {
    let ty = key.first().copied().unwrap_or(Type::Integer(32));
    match raw {
        Raw::Word(text, pos, _) if ty == Type::Ifname => {
            if text.trim_end_matches('*').len() > 15 {
                return Err(Fault::new(*pos, "String exceeds maximum length of 16", "at most 15 characters"));
            }
            Ok(Expr::Name(text.clone()))
        }
        Raw::Word(text, pos, _) => {
            let value = atom(text, *pos, ty)?;
            Ok(if ty.is_flags() { Expr::Flags(value, None, ty) } else { Expr::Value(value, ty) })
        }
        Raw::Range(from, to) => {
            let one = |raw: &Raw| match resolve(raw, key)? {
                Expr::Value(v, _) => Ok(v),
                _ => Err(Fault::new(place(raw), "Range expression is not a value", "")),
            };
            let (first, last) = (one(from)?, one(to)?);
            if first > last {
                let message = "Range has zero or negative size";
                return Err(Fault::new(place(raw), message, "first-last"));
            }
            Ok(Expr::Range(first, last, ty))
        }
        Raw::Prefix(addr, len, pos) => {
            let bits = ty.bits();
            if *len > u64::from(bits) {
                let message = format!("Prefix length {len} is invalid for type of {bits} bits width");
                return Err(Fault::new(*pos, message, ""));
            }
            match resolve(addr, key)? {
                Expr::Value(v, _) => {
                    let mask = if *len == 0 { 0 } else { ty.most() << (u64::from(bits) - len) & ty.most() };
                    Ok(Expr::Prefix(v & mask, *len as u8, ty))
                }
                _ => Err(Fault::new(*pos, "Prefix expression is undefined for this type", "")),
            }
        }
        Raw::List(all) => {
            let mut bits = 0;
            for one in all {
                match resolve(one, key)? {
                    Expr::Flags(v, None, _) => bits |= v,
                    _ => {
                        return Err(Fault::new(
                            place(one),
                            "Basetype of type is not bitmask",
                            "use { a, b }",
                        ));
                    }
                }
            }
            Ok(Expr::Flags(bits, None, ty))
        }
        Raw::Set(raw_elements, _) => {
            let list = elements(raw_elements, key, None)?;
            Ok(Expr::Set(anonymous(key, None, list)))
        }
        Raw::Named(name, pos) => Ok(Expr::Named(name.clone(), *pos)),
        Raw::Concat(all) if all.len() == key.len() => {
            let parts: Result<Vec<Expr>, Fault> =
                all.iter().zip(key).map(|(raw, ty)| resolve(raw, std::slice::from_ref(ty))).collect();
            Ok(Expr::Concat(parts?))
        }
        Raw::Concat(_) => Err(Fault::new(place(raw), "unexpected concat component", "")),
        Raw::Expr(e, _) => Ok(e.clone()),
        Raw::Op(op, a, b) => {
            let operand = |raw: &Raw| match resolve(raw, key)? {
                e @ (Expr::Value(..) | Expr::Flags(_, None, _) | Expr::Op(..)) => Ok(e),
                e => {
                    let what = match e {
                        Expr::Range(..) => "range",
                        Expr::Prefix(..) => "prefix",
                        Expr::Set(_) | Expr::Named(..) => "set",
                        _ => "these",
                    };
                    let message =
                        format!("Binary operation ({}) is undefined for {what} expressions", op.sign());
                    Err(Fault::new(place(raw), message, "join single values"))
                }
            };
            Ok(folded(*op, operand(a)?, operand(b)?))
        }
        Raw::Map(..) => Err(Fault::new(place(raw), "syntax error, unexpected map", "")),
    }
}

/// Two masks one behind the other are one (`x & A | B` of a mark).
pub(super) fn folded(op: Op, a: Expr, b: Expr) -> Expr {
    let plain = |e: &Expr| match e {
        Expr::Value(v, t) => Some((*v, *t)),
        Expr::Flags(v, None, t) => Some((*v, *t)),
        _ => None,
    };
    if let (Some((x, ty)), Some((y, _))) = (plain(&a), plain(&b)) {
        let value = match op {
            Op::And => x & y,
            Op::Or => x | y,
            Op::Xor => x ^ y,
            Op::Left => x.checked_shl(y as u32).unwrap_or(0) & ty.most(),
            Op::Right => x.checked_shr(y as u32).unwrap_or(0),
        };
        return if ty.is_flags() { Expr::Flags(value, None, ty) } else { Expr::Value(value, ty) };
    }
    Expr::Op(op, Box::new(a), Box::new(b))
}

/// Elements of a set or map with these types.
///
/// # Errors
/// A value that is none of the type.
pub fn elements(raw: &[RawElement], key: &[Type], data: Option<Type>) -> Result<Vec<Element>, Fault> {
    raw.iter()
        .map(|e| {
            let given = match (&e.data, data) {
                (None, _) => None,
                (Some(RawData::Verdict(v)), _) => Some(Data::Verdict(v.clone())),
                (Some(RawData::Value(v)), ty) => Some(Data::Value(resolve(v, &[ty.unwrap_or(Type::Mark)])?)),
            };
            Ok(Element { key: resolve(&e.key, key)?, data: given, more: e.more.clone() })
        })
        .collect()
}

/// First and last value of a key, for putting keys in order.
pub fn bounds(key: &Expr) -> (u128, u128) {
    match key {
        Expr::Value(v, _) | Expr::Flags(v, _, _) => (*v, *v),
        Expr::Range(a, b, _) => (*a, *b),
        Expr::Prefix(v, len, ty) => {
            let host = ty.bits() - u32::from(*len);
            (*v, *v | if host >= 128 { u128::MAX } else { (1 << host) - 1 })
        }
        Expr::Name(name) => {
            let mut bytes = [0u8; 16];
            for (b, c) in bytes.iter_mut().zip(name.bytes()) {
                *b = c;
            }
            (u128::from_be_bytes(bytes), u128::from_be_bytes(bytes))
        }
        Expr::Concat(parts) => parts.first().map_or((0, 0), bounds),
        _ => (0, 0),
    }
}

/// By what elements are listed: their first value; flags by the lowest of them (`expr_msort_value` of a chain of `|`). Which of
/// several with the same lowest flag comes first is the chance of the kernel's table: here the one with more flags.
pub fn order(key: &Expr) -> Vec<(u128, u128)> {
    match key {
        Expr::Flags(v, _, _) => vec![(if *v == 0 { 0 } else { 1 << v.trailing_zeros() }, !v)],
        Expr::Concat(parts) if parts.iter().all(|p| matches!(p, Expr::Value(..) | Expr::Name(_))) => {
            parts.iter().rev().map(in_memory).collect()
        }
        Expr::Concat(parts) => parts.iter().flat_map(order).collect(),
        // A number of the machine's own: the last letter says most.
        Expr::Name(_) => vec![(bounds(key).0.swap_bytes(), 0)],
        _ => vec![bounds(key)],
    }
}

/// The same of a part of a joined key: keys are compared as one number whose highest byte lies last in memory (`concat_expr_msort_value`).
fn in_memory(key: &Expr) -> (u128, u128) {
    let turned = match key {
        Expr::Value(v, ty) => turned(*v, *ty),
        Expr::Name(_) => bounds(key).0.swap_bytes(),
        _ => return bounds(key),
    };
    (turned, turned)
}

/// A number with its highest byte last in memory, read back: numbers of the machine's own lie so already.
pub(super) fn turned(value: u128, ty: Type) -> u128 {
    match ty {
        Type::Mark | Type::Classid | Type::Uid | Type::Gid | Type::Integer(32) => value,
        _ => value.swap_bytes() >> (128 - 8 * ty.bits().div_ceil(8)),
    }
}

/// Puts elements in the order they are shown, each once.
pub fn ordered(elements: &mut Vec<Element>) {
    elements.sort_by_cached_key(|e| order(&e.key));
    elements.dedup_by(|a, b| a.key == b.key);
}

/// A range as an address's prefix where it is one.
pub fn as_written(first: u128, last: u128, ty: Type) -> Expr {
    if first == last {
        return Expr::Value(first, ty);
    }
    let size = last.wrapping_sub(first).wrapping_add(1);
    let address = matches!(ty, Type::Ipv4 | Type::Ipv6);
    if address && size.is_power_of_two() && first & (size - 1) == 0 {
        return Expr::Prefix(first, (ty.bits() - size.trailing_zeros()) as u8, ty);
    }
    Expr::Range(first, last, ty)
}

/// A set written in a rule: in order, and where there are ranges, those that touch are one.
pub(super) fn anonymous(key: &[Type], data: Option<Type>, mut list: Vec<Element>) -> Set {
    let is_range = |e: &Element| matches!(e.key, Expr::Range(..) | Expr::Prefix(..));
    let interval = list.iter().any(is_range);
    ordered(&mut list);
    if interval && data.is_none() && key.len() == 1 {
        let mut merged: Vec<(u128, u128)> = Vec::new();
        for e in &list {
            let (first, last) = bounds(&e.key);
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => merged.push((first, last)),
            }
        }
        list = merged
            .into_iter()
            .map(|(first, last)| Element::new(as_written(first, last, key[0]), None))
            .collect();
    }
    Set { key: key.to_vec(), data, interval, elements: list, ..Set::default() }
}

/// A verdict's words.
pub fn verdict_text(v: &Verdict) -> String {
    match v {
        Verdict::Accept => "accept".to_owned(),
        Verdict::Drop => "drop".to_owned(),
        Verdict::Continue => "continue".to_owned(),
        Verdict::Return => "return".to_owned(),
        Verdict::Jump(chain) => format!("jump {chain}"),
        Verdict::Goto(chain) => format!("goto {chain}"),
    }
}
