//! PS192 and PS197 where rules of netfilter say it: the other version's ICMP, a code point that was not shifted.

use super::u32::{all, matches, word};
use crate::facts::Facts;
use crate::filters::{IP, IP6};
use crate::finding::{Found, Say};
use penstock_lang::iptables::{Edit, Family, Match, Target};
use penstock_lang::tc::num;

/// ICMP has another number in IPv6: 1 there is nobody's, and 58 in IPv4.
pub(super) fn wrong_icmp(facts: &Facts, found: &mut Found) {
    let of =
        |six: bool| if six { (1, "58", "ICMPv6 is protocol 58") } else { (58, "1", "ICMP is protocol 1") };
    for filter in all(facts).filter(|f| matches!(f.protocol, IP | IP6)) {
        let (number, right, why) = of(filter.protocol == IP6);
        let step = &facts.steps[filter.step];
        for m in matches(facts, filter).into_iter().filter(|m| word(m, 1) == "protocol") {
            if num::strtoul(word(m, 2), 0).is_some_and(|v| v.0 == number) {
                let old = format!("protocol {} {}", word(m, 2), word(m, 3));
                let fix = step.text().replacen(&old, &format!("protocol {right} 0xff"), 1);
                let reason = format!("{why}; no packet of this version has protocol {number}.");
                found.at(filter.step, word(m, 2), Say::new("the other version's ICMP", reason, fix));
            }
        }
    }
    for ruled in &facts.netfilter.rules {
        let (number, _, why) = of(ruled.family == Family::Ip6);
        if ruled.rule.protocol == Some((number as u8, false)) {
            let step = &facts.steps[ruled.step];
            let typed = step.value(&["-p", "--protocol", "--proto"]).unwrap_or("-p");
            let right = if ruled.family == Family::Ip6 { "ipv6-icmp" } else { "icmp" };
            let reason = format!("{why}; no packet of this version has protocol {number}.");
            found.at(
                ruled.step,
                typed,
                Say::new("the other version's ICMP", reason, step.with_word(typed, right)),
            );
        }
    }
    // nft's words, line by line.
    let reads = facts.steps.iter().any(|s| matches!(s.what, crate::facts::What::Rules(_)) && s.ok());
    let wrong = [
        ("ip6 nexthdr icmp", "ip6 nexthdr icmpv6"),
        ("ip6 nexthdr 1", "ip6 nexthdr icmpv6"),
        ("ip protocol icmpv6", "ip protocol icmp"),
        ("ip protocol ipv6-icmp", "ip protocol icmp"),
        ("ip protocol 58", "ip protocol icmp"),
    ];
    for (n, line) in
        facts.source.lines.iter().enumerate().filter(|l| reads && !l.1.trim_start().starts_with('#'))
    {
        for (old, new) in wrong {
            let at = line.match_indices(old).map(|m| m.0).find(|at| {
                !line[at + old.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_')
            });
            let Some(at) = at else { continue };
            let column = line[..at].chars().count() as u32 + 1;
            let reason = format!("{}; no packet has the other one's number.", of(old.starts_with("ip6")).2);
            let fix = line.trim().replacen(old, new, 1);
            found.at_line(
                n as u32 + 1,
                column,
                old.len() as u32,
                Say::new("the other version's ICMP", reason, fix),
            );
        }
    }
}

/// `TOS --set-tos 46` and `-m tos --tos 46`: a code point where the whole byte is asked for.
pub(super) fn dscp_of_rules(facts: &Facts, found: &mut Found) {
    // Those of RFC 2474's names that reach into the bits of ECN.
    const POINTS: [u8; 9] = [10, 14, 18, 22, 26, 30, 34, 38, 46];
    for ruled in &facts.netfilter.rules {
        let set = match &ruled.rule.target {
            Target::Edit(Edit::Tos { value, .. }) => Some(("--set-tos", *value)),
            _ => None,
        };
        let asked = ruled.rule.matches.iter().filter_map(|m| match m {
            Match::Tos { value, .. } => Some(("--tos", *value)),
            _ => None,
        });
        let step = &facts.steps[ruled.step];
        for (option, value) in asked.chain(set).filter(|v| POINTS.contains(&v.1)) {
            // Written as hexadecimal a byte is meant.
            let Some(word) = step.value(&[option]).filter(|w| w.parse() == Ok(value)) else { continue };
            let reason = format!(
                "{value:#04x} as a whole byte is DSCP {} with ECN bits {}; DSCP {value} is {:#04x}.",
                value >> 2,
                value & 3,
                value << 2
            );
            let fix = step.with(option, &format!("{:#04x}/0xfc", value << 2));
            found.at(
                ruled.step,
                word,
                Say::new(format!("DSCP {value} was not shifted"), reason, fix).unsure(true),
            );
        }
    }
}
