//! Targets that change a packet's header: `DSCP`, `TOS`, `TTL`, `HL`, `ECN`, `TCPMSS`.

use super::super::matches::{Ext, Head, dscp_class, ext};
use super::super::option::{Kind, Opt, Seen, fault, opt};
use super::Target;
use crate::iptables::{Edit, Family, Plain};

pub(super) const TARGETS: &[Ext<Target>] = &[
    ext("DSCP", DSCP, |seen, _| {
        let class = || dscp_class(seen.text("set-dscp-class")).unwrap_or(0);
        Target::Edit(Edit::Dscp(seen.int("set-dscp").map_or_else(class, |n| n as u8)))
    })
    .reads(|given, _| match given.id {
        "set-dscp-class" => dscp_class(&given.text).map(drop),
        _ => Ok(()),
    })
    .checks(|seen, _| match seen.0.is_empty() {
        true => fault("DSCP target: Parameter --set-dscp is required", "e.g. --set-dscp 46"),
        false => Ok(()),
    }),
    ext("ECN", ECN, ecn).only(Family::Ip).checks(|seen, _| match seen.0.is_empty() {
        true => fault("ECN target: An operation is required", "e.g. --ecn-tcp-remove"),
        false => Ok(()),
    }),
    ext("HL", HL, |seen, _| change(seen, "hl-")).only(Family::Ip6).checks(|seen, _| {
        match seen.0.is_empty() {
            true => fault("HL: You must specify an action", "--hl-set, --hl-dec or --hl-inc"),
            false => Ok(()),
        }
    }),
    ext("TCPMSS", TCPMSS, tcpmss)
        .reads(|given, head| {
            let most = if head.family == Family::Ip { 65_515 } else { 65_495 };
            match given.value {
                super::super::option::Value::Int(n) if n > most => fault(
                    format!("TCPMSS: bad value for option \"--set-mss\", or out of range (0-{most}).\n"),
                    "bytes",
                ),
                _ => Ok(()),
            }
        })
        .checks(|seen, _| match seen.0.is_empty() {
            true => {
                fault("TCPMSS target: At least one parameter is required", "--clamp-mss-to-pmtu or --set-mss")
            }
            false => Ok(()),
        }),
    ext("TOS", TOS, tos).checks(|seen, head| match (seen.0.is_empty(), head.old) {
        (false, _) => Ok(()),
        (true, true) => fault("TOS: The --set-tos parameter is required", "e.g. --set-tos 0x10"),
        (true, false) => fault("TOS: An action is required", "e.g. --set-tos 0x10"),
    }),
    ext("TTL", TTL, |seen, _| change(seen, "ttl-")).only(Family::Ip).checks(|seen, _| {
        match seen.0.is_empty() {
            true => fault("TTL: You must specify an action", "--ttl-set, --ttl-dec or --ttl-inc"),
            false => Ok(()),
        }
    }),
];

const DSCP: &[Opt] = &[
    opt("set-dscp", Kind::Int(0, 63)).excl(&["set-dscp-class"]),
    opt("set-dscp-class", Kind::Text(0, 0)).excl(&["set-dscp"]),
];

const ANY_TOS: &[&str] = &["set-tos", "and-tos", "or-tos", "xor-tos"];
const TOS: &[Opt] = &[
    opt("set-tos", Kind::Tos(0x3f)).excl(ANY_TOS),
    opt("and-tos", Kind::Int(0, 255)).excl(ANY_TOS),
    opt("or-tos", Kind::Int(0, 255)).excl(ANY_TOS),
    opt("xor-tos", Kind::Int(0, 255)).excl(ANY_TOS),
];

fn tos(seen: &Seen, _: &Head) -> Target {
    let bits = |id: &str| seen.int(id).map(|n| n as u8);
    let (value, mask) = match (bits("and-tos"), bits("or-tos"), bits("xor-tos")) {
        (Some(b), _, _) => (0, !b),
        (_, Some(b), _) => (b, b),
        (_, _, Some(b)) => (b, 0),
        _ => seen.tos("set-tos").unwrap_or_default(),
    };
    Target::Edit(Edit::Tos { value, mask })
}

const CHANGES: &[&str] = &["ttl-set", "ttl-dec", "ttl-inc", "hl-set", "hl-dec", "hl-inc"];
const TTL: &[Opt] = &[
    opt("ttl-set", Kind::Int(0, 255)).excl(CHANGES),
    opt("ttl-dec", Kind::Int(1, 255)).excl(CHANGES),
    opt("ttl-inc", Kind::Int(1, 255)).excl(CHANGES),
];
const HL: &[Opt] = &[
    opt("hl-set", Kind::Int(0, 255)).excl(CHANGES),
    opt("hl-dec", Kind::Int(1, 255)).excl(CHANGES),
    opt("hl-inc", Kind::Int(1, 255)).excl(CHANGES),
];

fn change(seen: &Seen, prefix: &str) -> Target {
    let id = seen.0.first().map_or("", |g| g.id);
    let op = match id.strip_prefix(prefix) {
        Some("dec") => '-',
        Some("inc") => '+',
        _ => '=',
    };
    Target::Edit(Edit::Ttl { op, value: seen.int(id).unwrap_or(0) as u8 })
}

const ECN: &[Opt] = &[
    opt("ecn-tcp-remove", Kind::None).excl(&["ecn-tcp-cwr", "ecn-tcp-ece"]),
    opt("ecn-tcp-cwr", Kind::Int(0, 1)).excl(&["ecn-tcp-remove"]),
    opt("ecn-tcp-ece", Kind::Int(0, 1)).excl(&["ecn-tcp-remove"]),
    opt("ecn-ip-ect", Kind::Int(0, 3)),
];

fn ecn(seen: &Seen, _: &Head) -> Target {
    let remove = seen.has("ecn-tcp-remove");
    let flag = |id: &str| if remove { Some(false) } else { seen.int(id).map(|n| n == 1) };
    Target::Edit(Edit::Ecn {
        ece: flag("ecn-tcp-ece"),
        cwr: flag("ecn-tcp-cwr"),
        ect: seen.int("ecn-ip-ect").map(|n| n as u8),
    })
}

const TCPMSS: &[Opt] = &[opt("set-mss", Kind::Int(0, 65_535)), opt("clamp-mss-to-pmtu", Kind::None)];

fn tcpmss(seen: &Seen, _: &Head) -> Target {
    let clamp =
        seen.0.last().is_some_and(|g| g.id == "clamp-mss-to-pmtu") || seen.int("set-mss") == Some(65_535);
    let (save, list) = match seen.int("set-mss").filter(|_| !clamp) {
        Some(mss) => (format!(" --set-mss {mss}"), format!("TCPMSS set {mss}")),
        None => (" --clamp-mss-to-pmtu".to_owned(), "TCPMSS clamp to PMTU".to_owned()),
    };
    Target::Plain(Plain { name: "TCPMSS".to_owned(), save, numeric: list.clone(), list })
}
