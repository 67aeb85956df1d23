//! What kind of traffic filters bring to a class: urgent or bulk, by DSCP and TOS.

use crate::facts::{Device, Facts};
use crate::filters::{Field, Filter, IP6};
use penstock_lang::iptables::{Edit, Match, Target};
use penstock_model::Handle;

/// Kinds of traffic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// EF, voice admit, CS4 and above, AF4x, TOS low delay.
    Urgent,
    /// CS1, LE, TOS throughput.
    Bulk,
}

/// Of a byte of type of service, as far as a mask shows it.
fn of_tos(value: u32, mask: u32) -> Option<Kind> {
    match (value & mask & 0xfc, mask & 0xfc) {
        (_, 0) => None,
        // RFC 1349's bits, where they are asked for alone.
        (0x10, _) => Some(Kind::Urgent),
        (0x08, _) => Some(Kind::Bulk),
        (tos, 0xfc) => match tos >> 2 {
            46 | 44 | 40 | 48 | 56 | 32 | 34 | 36 | 38 => Some(Kind::Urgent),
            8 | 1 => Some(Kind::Bulk),
            _ => None,
        },
        (tos, 0xe0) if tos >= 0xa0 => Some(Kind::Urgent),
        (0x20, 0xe0) => Some(Kind::Bulk),
        _ => None,
    }
}

/// Of what a filter asks for.
pub fn kind_of(filter: &Filter) -> Option<Kind> {
    let bits = filter.tests.get(&Field::Net(0));
    let by_header = bits.and_then(|b| match filter.protocol {
        IP6 => of_tos(b.value >> 20 & 0xff, b.mask >> 20 & 0xff),
        _ => of_tos(b.value >> 16 & 0xff, b.mask >> 16 & 0xff),
    });
    let named = filter.tests.get(&Field::Named("ip_tos"));
    by_header.or_else(|| named.and_then(|b| of_tos(b.value, b.mask & 0xff)))
}

/// Of what filters and rules bring to a class; `None` where that is neither, or both.
pub fn kinds_of(facts: &Facts, device: &Device, class: Handle) -> Option<Kind> {
    let mut kinds: Vec<Option<Kind>> = Vec::new();
    for filter in device.filters.iter().filter(|f| f.classid == Some(class)) {
        if filter.kind == "fw" && filter.handle != 0 {
            let by_mark = facts.netfilter.rules.iter().filter(
                |r| matches!(r.rule.target, Target::Edit(Edit::Mark { value, .. }) if value == filter.handle),
            );
            kinds.extend(by_mark.map(|r| of_rule(&r.rule.matches)));
        } else {
            kinds.push(kind_of(filter));
        }
    }
    let classified = facts
        .netfilter
        .rules
        .iter()
        .filter(|r| matches!(r.rule.target, Target::Edit(Edit::Classify(h)) if h == class));
    kinds.extend(classified.map(|r| of_rule(&r.rule.matches)));
    let first = kinds.first().copied().flatten()?;
    kinds.iter().all(|k| *k == Some(first)).then_some(first)
}

fn of_rule(matches: &[Match]) -> Option<Kind> {
    matches.iter().find_map(|m| match m {
        Match::Dscp { dscp, invert: false } => of_tos(u32::from(*dscp) << 2, 0xfc),
        Match::Tos { value, mask, invert: false } => of_tos(u32::from(*value), u32::from(*mask)),
        _ => None,
    })
}
