//! The rules of `nft` as they stand: tables, chains, sets and rules, what is done to them and what they do to packets.
//!
//! Follows: linux v6.12 `net/netfilter/nf_tables_api.c`, `nf_tables_core.c` `nft_do_chain`, `nft_meta.c`, `nft_ct.c`,
//! `nft_payload.c`, `nft_limit.c`, `nft_numgen.c`, `nft_hash.c`, `nft_dynset.c`, `nft_reject*.c`.

mod change;
mod check;
mod eval;
mod found;
mod generated;
mod list;
mod live;
mod misspelt;
mod sets;
mod standing;
mod state;

use super::Hook;
use super::mss::Mss;
use super::nat::Nat;
use super::state::Memory;
use live::Kept;
use penstock_lang::iptables;
use penstock_lang::nft::{Base, Data, Expr, Family, Rule, Set, Statement, Verdict};
pub use standing::{StandingChain, StandingTable, Written};
use state::ObjectState;

/// A rule with its handle.
#[derive(Clone, PartialEq, Debug)]
struct RuleState {
    handle: u64,
    /// Counters count within.
    rule: Rule,
    /// By statement, where any remembers something; else empty.
    memory: Vec<Memory>,
    written: Written,
}

#[derive(Clone, PartialEq, Debug)]
struct ChainState {
    name: String,
    handle: u64,
    base: Option<Base>,
    comment: Option<String>,
    rules: Vec<RuleState>,
    written: Written,
}

#[derive(Clone, PartialEq, Debug)]
struct SetState {
    name: String,
    handle: u64,
    set: Set,
    comment: Option<String>,
    kept: Kept,
}

#[derive(Clone, PartialEq, Debug)]
struct TableState {
    family: Family,
    name: String,
    handle: u64,
    comment: Option<String>,
    /// The last handle given out in this table.
    handles: u64,
    chains: Vec<ChainState>,
    sets: Vec<SetState>,
    objects: Vec<ObjectState>,
}

/// All tables, the oldest first.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Ruleset {
    tables: Vec<TableState>,
    /// The last handle given to a table.
    handles: u64,
    /// The last call that changed anything.
    last: Written,
}

impl TableState {
    fn chain(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|c| c.name == name)
    }
    fn set(&self, name: &str) -> Option<&Set> {
        self.sets.iter().find(|s| s.name == name).map(|s| &s.set)
    }
    fn rules(&self) -> impl Iterator<Item = &Rule> {
        self.chains.iter().flat_map(|c| c.rules.iter().map(|r| &r.rule))
    }
}

impl Ruleset {
    /// Whether there is nothing at all.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }
    /// Base chains at a hook of a family: places of table and chain, and the priority; of equal ones the older first.
    pub(super) fn base_chains(&self, family: iptables::Family, hook: Hook) -> Vec<(u32, u32, i32)> {
        let wanted = match family {
            iptables::Family::Ip => Family::Ip,
            iptables::Family::Ip6 => Family::Ip6,
        };
        let mut out = Vec::new();
        for (t, table) in self.tables.iter().enumerate() {
            if table.family != wanted && table.family != Family::Inet {
                continue;
            }
            for (c, chain) in table.chains.iter().enumerate() {
                if let Some(base) = &chain.base
                    && base.hook == hook.chain().to_ascii_lowercase()
                {
                    out.push((t as u32, c as u32, base.priority));
                }
            }
        }
        out
    }
    /// Chains at a device's ingress or egress, in order.
    pub(super) fn device_chains(&self, hook: &str, device: &str) -> Vec<(u32, u32)> {
        let mut out: Vec<(i32, u32, u32)> = Vec::new();
        for (t, table) in self.tables.iter().enumerate() {
            for (c, chain) in table.chains.iter().enumerate() {
                if let Some(base) = &chain.base
                    && base.hook == hook
                    && base.devices.iter().any(|d| d == device)
                {
                    out.push((base.priority, t as u32, c as u32));
                }
            }
        }
        out.sort_unstable();
        out.into_iter().map(|(_, t, c)| (t, c)).collect()
    }
    /// Whether any chain hangs at a device.
    pub(super) fn at_devices(&self) -> bool {
        let hangs = |c: &ChainState| c.base.as_ref().is_some_and(|b| !b.devices.is_empty());
        self.tables.iter().any(|t| t.chains.iter().any(hangs))
    }
    /// Whether a rule asks for connections, or a chain translates addresses.
    pub(super) fn tracks(&self) -> bool {
        let nat = |c: &ChainState| c.base.as_ref().is_some_and(|b| b.ty == "nat");
        let counts = |s: &SetState| s.set.states.iter().any(|s| matches!(s, Statement::Count { .. }));
        self.tables
            .iter()
            .any(|t| t.chains.iter().any(nat) || t.rules().any(rule_tracks) || t.sets.iter().any(counts))
    }
    /// Whether a rule asks what a connection has carried (`ct bytes`, `ct packets`, `ct avgpkt`).
    pub(super) fn counts(&self) -> bool {
        self.tables.iter().any(|t| t.rules().any(rule_counts))
    }
    /// Whether a chain decides on translation.
    pub(super) fn is_nat(&self, table: u32, chain: u32) -> bool {
        let chain = self.tables.get(table as usize).and_then(|t| t.chains.get(chain as usize));
        chain.and_then(|c| c.base.as_ref()).is_some_and(|b| b.ty == "nat")
    }
    /// Whether any chain of a family does.
    pub(super) fn translates(&self, family: iptables::Family) -> bool {
        Hook::ALL.iter().any(|&h| self.base_chains(family, h).iter().any(|&(t, c, _)| self.is_nat(t, c)))
    }
    /// What of the rules does nothing to packets.
    pub(super) fn unsimulated(&self) -> Vec<String> {
        let mut out = Vec::new();
        for statement in self.tables.iter().flat_map(|t| t.rules()).flat_map(|r| &r.statements) {
            match statement {
                Statement::Nat(text) if Nat::of_statement(text).is_none() => {
                    out.push(format!("nft {text}: this translation is not simulated"));
                }
                Statement::Other(text) if Mss::of_statement(text).is_none() => {
                    out.push(format!("nft {text}: not simulated; packets go on as they are"));
                }
                _ => {}
            }
        }
        out
    }
}

/// All expressions of a statement.
fn expressions(s: &Statement) -> Vec<&Expr> {
    match s {
        Statement::Match(a, _, b) | Statement::Set(a, b) | Statement::Vmap(a, b) => vec![a, b],
        Statement::Dynset(d) => std::iter::once(&d.key).chain(&d.data).collect(),
        _ => Vec::new(),
    }
}

/// Whether it holds for an expression or a part of it.
fn any_part(e: &Expr, holds: &dyn Fn(&Expr) -> bool) -> bool {
    if holds(e) {
        return true;
    }
    match e {
        Expr::Op(_, a, b) | Expr::Map(a, b) => any_part(a, holds) || any_part(b, holds),
        Expr::Concat(all) => all.iter().any(|e| any_part(e, holds)),
        Expr::Hash { key: Some(key), .. } => any_part(key, holds),
        Expr::Set(s) => s.elements.iter().any(|e| match &e.data {
            Some(Data::Value(v)) => any_part(v, holds),
            _ => false,
        }),
        _ => false,
    }
}

fn rule_tracks(rule: &Rule) -> bool {
    let ct = |e: &Expr| matches!(e, Expr::Ct(..));
    let nat = |s: &Statement| match s {
        Statement::Nat(_) | Statement::Notrack | Statement::Count { .. } => true,
        Statement::Dynset(d) => d.states.iter().any(|s| matches!(s, Statement::Count { .. })),
        _ => false,
    };
    rule.statements.iter().any(|s| nat(s) || expressions(s).into_iter().any(|e| any_part(e, &ct)))
}

fn rule_counts(rule: &Rule) -> bool {
    let asks = |e: &Expr| matches!(e, Expr::Ct(key, ..) if matches!(*key, "bytes" | "packets" | "avgpkt"));
    rule.statements.iter().any(|s| expressions(s).into_iter().any(|e| any_part(e, &asks)))
}

/// Chains a rule leads to.
fn targets(rule: &Rule) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for s in &rule.statements {
        match s {
            Statement::Verdict(Verdict::Jump(c) | Verdict::Goto(c)) => names.push(c),
            Statement::Vmap(_, Expr::Set(set)) => names.extend(set_targets(set)),
            _ => {}
        }
    }
    names
}

/// Chains a verdict map leads to.
fn set_targets(set: &Set) -> Vec<&str> {
    set.elements
        .iter()
        .filter_map(|e| match &e.data {
            Some(Data::Verdict(Verdict::Jump(c) | Verdict::Goto(c))) => Some(c.as_str()),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests;
