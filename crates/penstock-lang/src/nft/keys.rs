//! What can be looked at: keys of `meta` and `ct`, fields of headers, and the type of each.
//!
//! Follows: nftables 1.0.6 `meta.c` `meta_templates`, `ct.c` `ct_templates`, `proto.c`.

use super::data::{Expr, FibResult, Type};

/// Keys of `meta` and what they are. Those behind the blank line can only be looked at.
pub(super) const META: &[(&str, Type)] = &[
    ("mark", Type::Mark),
    ("priority", Type::Classid),
    ("pkttype", Type::PktType),
    ("nftrace", Type::Integer(1)),
    ("length", Type::Integer(32)),
    ("protocol", Type::EtherType),
    ("iifname", Type::Ifname),
    ("oifname", Type::Ifname),
    ("iif", Type::Ifname),
    ("oif", Type::Ifname),
    ("skuid", Type::Uid),
    ("skgid", Type::Gid),
    ("nfproto", Type::NfProto),
    ("l4proto", Type::Protocol),
    ("cpu", Type::Integer(32)),
    ("random", Type::Integer(32)),
];
pub(super) const META_KEYS: &str = "length, protocol, priority, mark, iif, oif, iifname, oifname, iiftype, oiftype, skuid, skgid, nftrace, rtclassid, secmark, nfproto, \
    l4proto, ibrname, obrname, pkttype, cpu, iifgroup, oifgroup, cgroup, random, ipsec, iifkind, oifkind, ibrpvid, ibrvproto, time, day, hour, sdif, sdifname";

/// Keys of `meta` that may stand without the word.
pub(super) const BARE: [&str; 10] =
    ["mark", "iifname", "oifname", "iif", "oif", "skuid", "skgid", "nftrace", "rtclassid", "pkttype"];

pub(super) const CT: &[(&str, Type)] = &[
    ("state", Type::CtState),
    ("status", Type::CtStatus),
    ("zone", Type::Integer(16)),
    ("mark", Type::Mark),
    ("direction", Type::CtDir),
    ("id", Type::CtId),
    ("bytes", Type::Integer(64)),
    ("packets", Type::Integer(64)),
    ("avgpkt", Type::Integer(64)),
    ("l3proto", Type::NfProto),
    ("protocol", Type::Protocol),
    ("saddr", Type::Ipv4),
    ("daddr", Type::Ipv4),
    ("proto-src", Type::Service),
    ("proto-dst", Type::Service),
];

/// Fields of headers.
pub(super) const FIELDS: &[(&str, &str, Type)] = &[
    ("ether", "saddr", Type::EtherAddr),
    ("ether", "daddr", Type::EtherAddr),
    ("ether", "type", Type::EtherType),
    ("ip", "saddr", Type::Ipv4),
    ("ip", "daddr", Type::Ipv4),
    ("ip", "protocol", Type::Protocol),
    ("ip", "dscp", Type::Dscp),
    ("ip", "ecn", Type::Ecn),
    ("ip", "ttl", Type::Integer(8)),
    ("ip", "length", Type::Integer(16)),
    ("ip", "id", Type::Integer(16)),
    ("ip", "frag-off", Type::Integer(16)),
    ("ip", "version", Type::Integer(4)),
    ("ip6", "saddr", Type::Ipv6),
    ("ip6", "daddr", Type::Ipv6),
    ("ip6", "nexthdr", Type::Protocol),
    ("ip6", "dscp", Type::Dscp),
    ("ip6", "ecn", Type::Ecn),
    ("ip6", "hoplimit", Type::Integer(8)),
    ("ip6", "length", Type::Integer(16)),
    ("ip6", "flowlabel", Type::Integer(20)),
    ("ip6", "version", Type::Integer(4)),
    ("frag", "nexthdr", Type::Protocol),
    ("frag", "reserved", Type::Integer(8)),
    ("frag", "frag-off", Type::Integer(13)),
    ("frag", "reserved2", Type::Integer(2)),
    ("frag", "more-fragments", Type::Integer(1)),
    ("frag", "id", Type::Integer(32)),
    ("exthdr", "hbh", Type::Boolean),
    ("exthdr", "frag", Type::Boolean),
    ("exthdr", "rt", Type::Boolean),
    ("exthdr", "dst", Type::Boolean),
    ("exthdr", "mh", Type::Boolean),
    ("tcp", "sport", Type::Service),
    ("tcp", "dport", Type::Service),
    ("tcp", "flags", Type::TcpFlag),
    ("tcp", "sequence", Type::Integer(32)),
    ("tcp", "ackseq", Type::Integer(32)),
    ("tcp", "window", Type::Integer(16)),
    ("udp", "sport", Type::Service),
    ("udp", "dport", Type::Service),
    ("udp", "length", Type::Integer(16)),
    ("th", "sport", Type::Service),
    ("th", "dport", Type::Service),
    ("icmp", "type", Type::Icmp),
    ("icmp", "code", Type::IcmpCode),
    ("icmpv6", "type", Type::Icmp6),
    ("icmpv6", "code", Type::Icmp6Code),
];

/// The type of an expression.
pub fn types(e: &Expr) -> Vec<Type> {
    let of = |list: &[(&str, Type)], key: &str| list.iter().find(|k| k.0 == key).map(|k| k.1);
    match e {
        Expr::Meta(key) => vec![of(META, key).unwrap_or(Type::Integer(32))],
        Expr::Ct(key, _) => vec![of(CT, key).unwrap_or(Type::Integer(32))],
        Expr::Fib { result, .. } => vec![match result {
            FibResult::Type => Type::FibType,
            FibResult::Oif | FibResult::Oifname => Type::Ifname,
            FibResult::Present => Type::Boolean,
        }],
        Expr::Field(header, field) => {
            let found = FIELDS.iter().find(|f| f.0 == *header && f.1 == *field);
            vec![found.map_or(Type::Integer(32), |f| f.2)]
        }
        Expr::Value(_, ty) | Expr::Range(_, _, ty) | Expr::Prefix(_, _, ty) | Expr::Flags(_, _, ty) => {
            vec![*ty]
        }
        Expr::Name(_) => vec![Type::Ifname],
        Expr::Op(_, a, _) => types(a),
        Expr::Map(_, map) => match map.as_ref() {
            Expr::Set(s) => s.data.into_iter().collect(),
            _ => Vec::new(),
        },
        Expr::Concat(all) => all.iter().flat_map(types).collect(),
        Expr::Set(s) => s.key.clone(),
        Expr::Numgen { .. } | Expr::Hash { .. } => vec![Type::Integer(32)],
        Expr::Named(..) => Vec::new(),
    }
}

/// The type of what is looked at in an expression, if anything is.
pub(super) fn source_type(e: &Expr) -> Option<Type> {
    match e {
        Expr::Meta(_) | Expr::Ct(..) | Expr::Field(..) | Expr::Fib { .. } => types(e).first().copied(),
        Expr::Op(_, a, _) => source_type(a),
        _ => None,
    }
}
