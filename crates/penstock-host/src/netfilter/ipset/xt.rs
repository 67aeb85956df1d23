//! `-m set` and `-j SET`: rules that name sets.
//!
//! Follows: linux v6.12 `net/netfilter/xt_set.c`; iptables 1.8.9 `extensions/libxt_set.h` `get_set_byname`.
//! Differs: `--map-queue` does nothing, which [`Netfilter::unsimulated`] tells.

use super::super::eval::{Ip, Way};
use super::super::state::{More, Step};
use super::super::{Netfilter, TableState};
use super::Sets;
use super::ext::{Skbinfo, Ticks};
use super::kadt::{Asked, Dirs, Seen};
use penstock_lang::iptables::{
    Asks, Failure, Family, Match, Program, Rule, SetAsk, SetName, SetTarget, Table, Target,
};
use penstock_packet::Skb;

/// A set by its number, and the sides of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Place {
    id: u32,
    dirs: Dirs,
}

/// `SET`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::netfilter) struct SetStep {
    add: Option<Place>,
    exist: bool,
    timeout: Option<u32>,
    del: Option<Place>,
    map: Option<Place>,
    mark: bool,
    prio: bool,
}

impl SetStep {
    /// What a target does once its sets' numbers are known.
    fn of(t: &SetTarget, sets: &Sets) -> SetStep {
        let place = |name: &Option<SetName>| {
            let name = name.as_ref()?;
            Some(Place { id: sets.find(&name.name)?, dirs: Dirs::of(&name.dirs) })
        };
        SetStep {
            add: place(&t.add),
            exist: t.exist,
            // `IPSET_MAX_TIMEOUT`: what fits a jiffy's 32 bits.
            timeout: t.timeout.map(|s| s.min((u32::MAX >> 1) / 1000)),
            del: place(&t.del),
            map: place(&t.map),
            mark: t.map_mark,
            prio: t.map_prio,
        }
    }

    /// `set_target_v3`.
    pub(in crate::netfilter) fn apply(self, skb: &mut Skb, way: &mut Way<'_>) {
        let Some(ip) = Ip::of(skb) else { return };
        let ticks = Ticks { now: way.tracking.ticks(way.now), hz: way.tracking.hz() };
        let len = u64::from(skb.network_len());
        let seen = Seen { skb, ip: &ip, devices: way.devices, ticks, len };
        if let Some(p) = self.add {
            way.sets.packet_change(p.id, p.dirs, Some((self.exist, self.timeout)), &seen);
        }
        if let Some(p) = self.del {
            way.sets.packet_change(p.id, p.dirs, None, &seen);
        }
        let Some(p) = self.map else { return };
        let mut info = Skbinfo::default();
        if !way.sets.packet_test(p.id, p.dirs, &Asked::default(), &seen, &mut info) {
            return;
        }
        if self.mark {
            skb.mark = (skb.mark & !info.mask) ^ info.mark;
        }
        if self.prio {
            skb.priority = info.prio;
        }
    }
}

/// Whether a packet fits (`set_match_v4`).
pub(in crate::netfilter) fn fits(m: &SetAsk, id: u32, skb: &Skb, ip: &Ip, way: &mut Way<'_>) -> bool {
    let ticks = Ticks { now: way.tracking.ticks(way.now), hz: way.tracking.hz() };
    let len = u64::from(skb.network_len());
    let seen = Seen { skb, ip, devices: way.devices, ticks, len };
    let dirs = Dirs::of(&m.set.dirs);
    let found = way.sets.packet_test(id, dirs, &Asked::of(m), &seen, &mut Skbinfo::default());
    found != m.invert
}

/// The sets that a rule names: its matches' first.
fn named(rule: &Rule) -> impl Iterator<Item = &str> {
    let matches = rule.matches.iter().filter_map(|m| match m {
        Match::Worded(_, Asks::Set(s)) => Some(s.set.name.as_str()),
        _ => None,
    });
    let target = match &rule.target {
        Target::Set(_, t) => [&t.add, &t.del, &t.map],
        _ => [&None; 3],
    };
    matches.chain(target.into_iter().flatten().map(|s| s.name.as_str()))
}

impl Netfilter {
    /// What iptables says of a rule that names a set that is not there, or is of the other family.
    pub(in crate::netfilter) fn check_sets<'a>(
        &self,
        rules: impl Iterator<Item = &'a Rule>,
        program: Program,
    ) -> Result<(), Failure> {
        for name in rules.flat_map(named) {
            match self.sets.known(name) {
                None => {
                    let all: Vec<&str> = self.sets.names().collect();
                    let help = match all.is_empty() {
                        true => format!("there are no sets yet: ipset create {name} hash:ip"),
                        false => format!(
                            "make it first (ipset create {name} hash:ip); there are {}",
                            all.join(" ")
                        ),
                    };
                    return Err(program.parameter(0, format!("Set {name} doesn't exist.\n"), &help));
                }
                Some((_, Some(family))) if family != program.family => {
                    let which = if family == Family::Ip { "IPv4" } else { "IPv6" };
                    let message =
                        format!("The protocol family of set {name} is {which}, which is not applicable.\n");
                    let help = "iptables takes sets of family inet, ip6tables of family inet6";
                    return Err(program.parameter(0, message, help));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// A table has other rules than before: each that names a set gets its number.
    pub(in crate::netfilter) fn bind_sets(&mut self, family: Family, table: Table) {
        let Netfilter { tables, sets, .. } = self;
        if sets.is_empty() {
            return;
        }
        let table: &mut TableState = &mut tables[family as usize][table as usize];
        table.each_memory(|asks, memory| {
            if let Asks::Set(s) = asks {
                memory.more = More::Table(sets.find(&s.set.name).unwrap_or(u32::MAX));
            }
        });
        for (chain, compiled) in table.chains.iter().zip(&mut table.compiled) {
            for (counted, compiled) in chain.rules.iter().zip(compiled) {
                if let Target::Set(_, t) = &counted.rule.target {
                    compiled.step = Step::Set(SetStep::of(t, sets));
                }
            }
        }
    }

    /// How often rules name a set.
    pub(super) fn set_users(&self, name: &str) -> u32 {
        let rules = self.tables.iter().flatten().flat_map(TableState::all_rules);
        rules.flat_map(named).filter(|n| *n == name).count() as u32
    }
}
