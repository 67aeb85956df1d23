//! A table as it stands: its chains, and what a packet needs beside each rule.

use super::Hook;
use super::asks::{self, Conncount};
use super::ipset::SetStep;
use super::mss::Mss;
use super::nat::Nat;
use penstock_lang::iptables::{
    Asks, Chain, Counted, Edit, Family, Match, Rule, Table, Target, Verdict, ZoneOf, reject_names,
};
use penstock_model::Time;

/// What a rule's target is once names are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Step {
    /// The packet goes on to the next rule.
    None,
    Verdict(Verdict),
    Return,
    Jump(u32),
    Goto(u32),
    Edit(Edit),
    Reject(Option<u8>),
    Notrack,
    Nat(Nat),
    Mss(Mss),
    Set(SetStep),
    Zone(ZoneOf),
}

/// What a match remembers between packets.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Memory {
    /// Tokens of a `limit` of nft, nanoseconds.
    pub credit: i64,
    pub previous: Time,
    pub started: bool,
    /// Packets a `statistic` has seen.
    pub count: u32,
    pub more: More,
}

/// What the rarer matches remember.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) enum More {
    #[default]
    Nothing,
    /// Credit of a `limit`, and the tick it was last brought up to.
    Limit(u32, i64),
    /// A `connlimit`'s connections.
    Connections(Box<Conncount>),
    /// The place of a `hashlimit`'s table.
    Table(u32),
    /// Bytes left of a `quota`.
    Quota(u64),
}

/// What a rule needs at hand besides its plain data.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Compiled {
    pub step: Step,
    /// By match, where any remembers something; else empty.
    pub memory: Vec<Memory>,
}

/// One table: chains as `iptables` shows them, and what evaluation needs beside each rule.
#[derive(Clone, PartialEq, Debug)]
pub struct TableState {
    pub(super) family: Family,
    pub(super) table: Table,
    /// Built-in chains first, then the user's by name.
    pub(super) chains: Vec<Chain>,
    pub(super) compiled: Vec<Vec<Compiled>>,
    /// By chain, a bit for each hook that leads to it.
    pub(super) hooks: Vec<u8>,
    /// Whether any rule's matches remember something.
    remembers: bool,
}

impl TableState {
    pub(super) fn new(family: Family, table: Table) -> TableState {
        let chain = |name: &&str| Chain {
            name: (*name).to_owned(),
            policy: Some(Verdict::Accept),
            packets: 0,
            bytes: 0,
            references: 0,
            rules: Vec::new(),
        };
        let chains: Vec<Chain> = table.built_in().iter().map(chain).collect();
        let compiled = vec![Vec::new(); chains.len()];
        let hooks = chains.iter().map(|c| Hook::of_chain(&c.name).map_or(0, Hook::bit)).collect();
        TableState { family, table, chains, compiled, hooks, remembers: false }
    }
    /// Its chains: the built-in ones in the order of the hooks, then the user's by name.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }
    pub(super) fn index(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|c| c.name == name)
    }
    pub(super) fn built_in_count(&self) -> usize {
        self.table.built_in().len()
    }

    /// Adds a rule that jumps nowhere; nothing else has to be looked up again. What matches remember begins anew all the same.
    pub(super) fn append(&mut self, chain: usize, rule: &Rule, counters: (u64, u64)) {
        if self.remembers {
            for (chain, compiled) in self.chains.iter().zip(&mut self.compiled) {
                for (counted, compiled) in chain.rules.iter().zip(compiled) {
                    if !compiled.memory.is_empty() {
                        compiled.memory = memory(&counted.rule);
                    }
                }
            }
        }
        let step = self.step(&rule.target, |_| None);
        let memory = memory(rule);
        self.remembers |= !memory.is_empty();
        self.compiled[chain].push(Compiled { step, memory });
        let (packets, bytes) = counters;
        self.chains[chain].rules.push(Counted { rule: rule.clone(), packets, bytes });
    }

    /// All of its rules, in order.
    pub(super) fn all_rules(&self) -> impl Iterator<Item = &Rule> {
        self.chains.iter().flat_map(|c| c.rules.iter().map(|r| &r.rule))
    }

    /// Each match that remembers more than a count.
    pub(super) fn each_memory(&mut self, mut each: impl FnMut(&Asks, &mut Memory)) {
        if !self.remembers {
            return;
        }
        for (chain, compiled) in self.chains.iter().zip(&mut self.compiled) {
            for (counted, compiled) in chain.rules.iter().zip(compiled) {
                for (m, memory) in counted.rule.matches.iter().zip(&mut compiled.memory) {
                    if let Match::Worded(_, asks) = m {
                        each(asks, memory);
                    }
                }
            }
        }
    }

    /// Puts the user's chains in order, looks up the chains jumped to, counts who refers to whom. What matches remember
    /// begins anew, as after any replacement of a table.
    pub(super) fn compile(&mut self) {
        let built_in = self.built_in_count();
        self.chains[built_in..].sort_by(|a, b| a.name.cmp(&b.name));
        let names: Vec<String> = self.chains.iter().map(|c| c.name.clone()).collect();
        let find = |name: &str| names.iter().position(|n| n == name);
        let mut references = vec![0u32; names.len()];
        let mut compiled = Vec::with_capacity(self.chains.len());
        for chain in &self.chains {
            let mut out = Vec::with_capacity(chain.rules.len());
            for counted in &chain.rules {
                if let Target::Jump(name) | Target::Goto(name) = &counted.rule.target
                    && let Some(at) = find(name)
                {
                    references[at] += 1;
                }
                let step = self.step(&counted.rule.target, find);
                out.push(Compiled { step, memory: memory(&counted.rule) });
            }
            compiled.push(out);
        }
        self.remembers = compiled.iter().flatten().any(|c| !c.memory.is_empty());
        self.compiled = compiled;
        for (chain, references) in self.chains.iter_mut().zip(references) {
            chain.references = references;
        }
    }

    fn step(&self, target: &Target, find: impl Fn(&str) -> Option<usize>) -> Step {
        match target {
            // The numbers of `SET`'s sets are looked up where the sets are (`Netfilter::bind_sets`).
            Target::None | Target::Log(_) | Target::Set(..) => Step::None,
            Target::Verdict(v) => Step::Verdict(*v),
            Target::Return => Step::Return,
            Target::Jump(name) => find(name).map_or(Step::None, |at| Step::Jump(at as u32)),
            Target::Goto(name) => find(name).map_or(Step::None, |at| Step::Goto(at as u32)),
            Target::Edit(edit) => Step::Edit(*edit),
            Target::Reject(at) => {
                Step::Reject(reject_names(self.family).get(usize::from(*at)).and_then(|n| n.2))
            }
            Target::Notrack(_) | Target::Zone(_, ZoneOf::Untracked) => Step::Notrack,
            Target::Zone(_, zone) => Step::Zone(*zone),
            // Nobody listens to a queue here: the kernel drops, unless it is to pass by.
            Target::Plain(p) if p.name == "NFQUEUE" => Step::Verdict(match p.save.contains("bypass") {
                true => Verdict::Accept,
                false => Verdict::Drop,
            }),
            Target::Plain(p) => match Mss::of_target(p) {
                Some(mss) => Step::Mss(mss),
                None => Nat::of_target(p, self.family).map_or(Step::None, Step::Nat),
            },
        }
    }
}

fn memory(rule: &Rule) -> Vec<Memory> {
    let remembers = |m: &Match| match m {
        Match::Limit { .. } | Match::Statistic { .. } => true,
        Match::Worded(_, asks) => asks::begins(asks) != More::Nothing,
        _ => false,
    };
    if !rule.matches.iter().any(remembers) {
        return Vec::new();
    }
    let begins = |m: &Match| match m {
        Match::Worded(_, asks) => Memory { more: asks::begins(asks), ..Memory::default() },
        _ => Memory::default(),
    };
    rule.matches.iter().map(begins).collect()
}
