//! Where a packet comes from by the routes, and by IPsec: `rpfilter`, `policy`.
//!
//! Follows: iptables 1.8.9 `extensions/libxt_rpfilter.c`, `libxt_policy.c`.

use super::super::option::{Fault, Kind, Opt, ParsedOption, Seen, fault, opt};
use super::{Ext, Head, ext};
use crate::iptables::{Asks, Match, Plain, Rpfilter};
use std::fmt::Write;

pub(super) const MATCHES: &[Ext<Match>] = &[
    ext("policy", POLICY, policy).reads(read_policy).checks(check_policy),
    ext("rpfilter", RPFILTER, rpfilter),
];

const RPFILTER: &[Opt] = &[
    opt("loose", Kind::None),
    opt("validmark", Kind::None),
    opt("accept-local", Kind::None),
    opt("invert", Kind::None),
];

fn rpfilter(seen: &Seen, _: &Head) -> Match {
    let (mut save, mut list) = (String::new(), "rpfilter".to_owned());
    for option in RPFILTER.iter().filter(|o| seen.has(o.id)) {
        let _ = write!(save, " --{}", option.id);
        let _ = write!(list, " {}", option.id);
    }
    let asked = Rpfilter {
        loose: seen.has("loose"),
        validmark: seen.has("validmark"),
        accept_local: seen.has("accept-local"),
        invert: seen.has("invert"),
    };
    let words = Plain { name: "rpfilter".to_owned(), save, numeric: list.clone(), list };
    Match::Worded(words, Asks::Rpfilter(asked))
}

const POLICY: &[Opt] =
    &[opt("dir", Kind::Text(0, 0)), opt("pol", Kind::Text(0, 0)), opt("strict", Kind::None)];

fn read_policy(given: &ParsedOption, _: &Head) -> Result<(), Fault> {
    match (given.id, given.text.as_str()) {
        ("dir", "in" | "out") | ("pol", "none" | "ipsec") | ("strict", _) => Ok(()),
        ("dir", other) => fault(format!("policy_match: invalid dir \"{other}\""), "in or out"),
        (_, other) => fault(format!("policy match: invalid policy \"{other}\""), "none or ipsec"),
    }
}

fn check_policy(seen: &Seen, _: &Head) -> Result<(), Fault> {
    if !seen.has("dir") {
        return fault("policy match: neither --dir in nor --dir out specified", "--dir in --pol none");
    }
    match seen.text("pol") == "none" && seen.has("strict") {
        true => fault("policy match: policy none but --strict given", "take --strict off"),
        false => Ok(()),
    }
}

fn policy(seen: &Seen, _: &Head) -> Match {
    let none = seen.text("pol") == "none";
    let (dir, pol) = (seen.text("dir"), if none { "none" } else { "ipsec" });
    let strict = if seen.has("strict") { " --strict" } else { "" };
    let save = format!(" --dir {dir} --pol {pol}{strict}");
    let list = format!("policy match dir {dir} pol {pol}{}", strict.replace("--", ""));
    let words = Plain { name: "policy".to_owned(), save, numeric: list.clone(), list };
    Match::Worded(words, Asks::Policy { none })
}
