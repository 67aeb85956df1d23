//! The rules as they stand, for those who want to know what packets meet without sending any.

use super::{Ruleset, live::Clock};
use crate::netfilter::Netfilter;
use penstock_lang::nft::{Base, Family, Pos, Rule, Set};
use penstock_model::Time;

/// Where something was written. It means nothing to who compares machines.
#[derive(Clone, Copy, Debug, Default)]
pub struct Written {
    /// The call of `nft` on this machine, of those that changed something, from 1.
    pub call: u32,
    /// The line of the text that it read, from 1.
    pub line: u32,
}

impl PartialEq for Written {
    fn eq(&self, _: &Written) -> bool {
        true
    }
}

/// A table.
#[derive(Clone, PartialEq, Debug)]
pub struct StandingTable {
    /// Its family.
    pub family: Family,
    /// Its name.
    pub name: String,
    /// Its chains, the oldest first.
    pub chains: Vec<StandingChain>,
    /// Its sets and maps by name, with the elements they have now.
    pub sets: Vec<(String, Set)>,
}

/// A chain.
#[derive(Clone, PartialEq, Debug)]
pub struct StandingChain {
    /// Its name.
    pub name: String,
    /// Where it hangs, if anywhere.
    pub base: Option<Base>,
    /// Where it was declared last.
    pub written: Written,
    /// Its rules in order.
    pub rules: Vec<(Rule, Written)>,
}

impl StandingTable {
    /// A chain by its name.
    pub fn chain(&self, name: &str) -> Option<&StandingChain> {
        self.chains.iter().find(|c| c.name == name)
    }
    /// A set or map by its name.
    pub fn set(&self, name: &str) -> Option<&Set> {
        self.sets.iter().find(|s| s.0 == name).map(|s| &s.1)
    }
}

impl Ruleset {
    pub(super) fn written(&self, pos: Pos) -> Written {
        Written { line: pos.line, ..self.last }
    }
}

impl Netfilter {
    /// The tables of nft, the oldest first.
    pub fn nft_standing(&self, now: Time) -> Vec<StandingTable> {
        let clock = Clock { now: self.tracking.ticks(now), hz: self.tracking.hz() };
        let tables = self.nft.tables.iter().map(|t| StandingTable {
            family: t.family,
            name: t.name.clone(),
            chains: t
                .chains
                .iter()
                .map(|c| StandingChain {
                    name: c.name.clone(),
                    base: c.base.clone(),
                    written: c.written,
                    rules: c.rules.iter().map(|r| (r.rule.clone(), r.written)).collect(),
                })
                .collect(),
            sets: t.sets.iter().map(|s| (s.name.clone(), s.kept.shown(&s.set, clock))).collect(),
        });
        tables.collect()
    }
    /// How many calls of `nft` have changed something.
    pub fn nft_calls(&self) -> u32 {
        self.nft.last.call
    }
}
