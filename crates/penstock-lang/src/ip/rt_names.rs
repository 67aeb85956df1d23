//! The names and numbers of routes' tables, protocols, scopes, types, realms and metrics.
//!
//! Follows: iproute2 6.1.0 `lib/rt_names.c`, `ip/rtm_map.c`, `ip/iproute.c` `mx_names`, `etc/iproute2/rt_tables`, `rt_protos`.
//! Differs: none known.

use super::words::{matches, number};

/// `RTN_*` by their numbers.
pub const TYPES: [&str; 12] = [
    "none",
    "unicast",
    "local",
    "broadcast",
    "anycast",
    "multicast",
    "blackhole",
    "unreachable",
    "prohibit",
    "throw",
    "nat",
    "xresolve",
];

const PROTOCOLS: [(&str, u8); 21] = [
    ("unspec", 0),
    ("redirect", 1),
    ("kernel", 2),
    ("boot", 3),
    ("static", 4),
    ("gated", 8),
    ("ra", 9),
    ("mrt", 10),
    ("zebra", 11),
    ("bird", 12),
    ("dnrouted", 13),
    ("xorp", 14),
    ("ntk", 15),
    ("dhcp", 16),
    ("keepalived", 18),
    ("babel", 42),
    ("openr", 99),
    ("bgp", 186),
    ("isis", 187),
    ("ospf", 188),
    ("rip", 189),
];

/// `rtnl_rtprot_n2a`.
pub fn protocol_name(protocol: u8) -> String {
    let named = PROTOCOLS.iter().find(|p| p.1 == protocol);
    named.map_or(if protocol == 192 { "eigrp".to_owned() } else { protocol.to_string() }, |p| p.0.to_owned())
}

/// `get_rt_realms_or_raw`: a raw number, `FROM/TO` or `TO`; each a number to 255 or the one name there is.
pub(super) fn realms_of(text: &str) -> Option<u32> {
    let one = |text: &str| match text {
        "cosmos" => Some(0),
        _ => number(text).filter(|n| *n <= 255),
    };
    match text.split_once('/') {
        Some((from, "")) => one(from).map(|from| from << 16),
        Some((from, to)) => Some(one(from)? << 16 | one(to)?),
        None => one(text).or_else(|| number(text)),
    }
}

pub(super) fn protocol_of(text: &str) -> Option<u8> {
    let named = PROTOCOLS.iter().find(|p| p.0 == text).map(|p| p.1);
    named.or((text == "eigrp").then_some(192)).or_else(|| number(text).and_then(|n| u8::try_from(n).ok()))
}

/// `rtnl_rtscope_n2a`.
pub fn scope_name(scope: u8) -> String {
    match scope {
        0 => "global".to_owned(),
        255 => "nowhere".to_owned(),
        254 => "host".to_owned(),
        253 => "link".to_owned(),
        200 => "site".to_owned(),
        n => n.to_string(),
    }
}

/// `rtnl_rttable_n2a`.
pub fn table_name(table: u32) -> String {
    match table {
        253 => "default".to_owned(),
        254 => "main".to_owned(),
        255 => "local".to_owned(),
        n => n.to_string(),
    }
}

/// `rtnl_rttable_a2n`.
pub(super) fn table_of(text: &str) -> Option<u32> {
    match text {
        "default" => Some(253),
        "main" => Some(254),
        "local" => Some(255),
        "unspec" => Some(0),
        _ => number(text),
    }
}

/// `rtnl_rtntype_a2n`.
pub(super) fn type_of(text: &str) -> Option<u8> {
    let whole = |t: &str| matches!(t, "local" | "nat" | "throw");
    let found =
        TYPES.iter().position(|t| if whole(t) { *t == text } else { *t != "none" && matches(text, t) });
    let named = found.map(|n| n as u8).or((text == "brd").then_some(3));
    named.or_else(|| number(text).and_then(|n| u8::try_from(n).ok()))
}

/// Congestion controls, in the order of the numbers that stand for them in a route's metrics, from 1 on.
const CONTROLS: [&str; 19] = [
    "bbr",
    "bbr3",
    "bic",
    "cdg",
    "cubic",
    "dctcp",
    "highspeed",
    "htcp",
    "hybla",
    "illinois",
    "ledbat",
    "lp",
    "nv",
    "reno",
    "scalable",
    "vegas",
    "veno",
    "westwood",
    "yeah",
];

/// The congestion control that a number stands for in a route's metrics (`congctl`); `None` for one that no kernel has.
pub fn control_of(number: u32) -> Option<&'static str> {
    CONTROLS.get(number.checked_sub(1)? as usize).copied()
}
/// The number that stands for a name; 0 for one that no kernel has (`TCP_CA_UNSPEC`).
pub(super) fn number_of_control(name: &str) -> u32 {
    CONTROLS.iter().position(|c| *c == name).map_or(0, |n| n as u32 + 1)
}

/// The names of `RTAX_*`, by number; what is read as a time; what is left out of text.
pub const METRICS: [&str; 18] = [
    "",
    "",
    "mtu",
    "window",
    "rtt",
    "rttvar",
    "ssthresh",
    "cwnd",
    "advmss",
    "reordering",
    "hoplimit",
    "initcwnd",
    "features",
    "rto_min",
    "initrwnd",
    "quickack",
    "congctl",
    "fastopen_no_cookie",
];
