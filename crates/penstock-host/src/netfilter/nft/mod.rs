//! nft's rules.
use super::eval::Way;
use super::{Fate, Hook};
use penstock_lang::iptables::Family;
use penstock_packet::Skb;

/// All of them.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ruleset {}

impl Ruleset {
    pub(super) fn tracks(&self) -> bool {
        false
    }
    pub(super) fn base_chains(&self, _: Family, _: Hook) -> Vec<(u32, u32, i32)> {
        Vec::new()
    }
    pub(super) fn run(&mut self, _: u32, _: u32, _: &mut Skb, _: &mut Way<'_>) -> Fate {
        Fate::Accept
    }
    pub(super) fn unsimulated(&self) -> Vec<String> {
        Vec::new()
    }
}
