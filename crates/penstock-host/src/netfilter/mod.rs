//! netfilter: the five hooks, the tables `mangle` and `filter`, and a packet's way through their chains.
//!
//! The hooks in the kernel's order, and the tables at each by priority: mangle (-150) before filter (0).
//!
//! Follows: linux v6.12 `net/ipv4/netfilter/ip_tables.c` `ipt_do_table`, `iptable_mangle.c`, `iptable_filter.c`,
//! `net/netfilter/xt_*.c`; the same of 2.6.35, whose `CLASSIFY` is for mangle alone.
//! Differs: no nat, raw and security tables, no connection tracking.

mod change;
mod eval;

use penstock_lang::iptables::{Chain, Table, Target, Verdict};
use penstock_model::Time;
use penstock_packet::Skb;

/// Where a packet is on its way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Hook {
    /// Just received.
    Prerouting,
    /// For this machine, whole.
    Input,
    /// For another machine, TTL already one less.
    Forward,
    /// Made here.
    Output,
    /// On its way out, not yet cut into fragments.
    Postrouting,
}

impl Hook {
    /// The built-in chain of this hook.
    pub const fn chain(self) -> &'static str {
        match self {
            Hook::Prerouting => "PREROUTING",
            Hook::Input => "INPUT",
            Hook::Forward => "FORWARD",
            Hook::Output => "OUTPUT",
            Hook::Postrouting => "POSTROUTING",
        }
    }
}

/// What a rule's target is once names are looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    None,
    Verdict(Verdict),
    Return,
    Jump(u32),
    Goto(u32),
    Mark { value: u32, mask: u32 },
    Tos { value: u8, mask: u8 },
    Dscp(u8),
    Classify(u32),
}

/// Tokens of a `limit` match, in units of the kernel's credit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Credit {
    credit: i64,
    previous: Time,
    started: bool,
}

/// What a rule needs at hand besides its plain data.
#[derive(Clone, PartialEq, Debug)]
struct Compiled {
    step: Step,
    credit: Credit,
}

/// One table: chains as `iptables` shows them, and what evaluation needs beside each rule.
#[derive(Clone, PartialEq, Debug)]
pub struct TableState {
    table: Table,
    /// Built-in chains first, then the user's by name.
    chains: Vec<Chain>,
    compiled: Vec<Vec<Compiled>>,
}

/// The tables and which hooks have anything to do.
#[derive(Clone, PartialEq, Debug)]
pub struct Netfilter {
    mangle: TableState,
    filter: TableState,
    /// A bit a hook, by [`Hook`]'s order: set where a rule or a policy could touch a packet, or count it.
    busy: u8,
}

impl Default for Netfilter {
    fn default() -> Netfilter {
        Netfilter { mangle: TableState::new(Table::Mangle), filter: TableState::new(Table::Filter), busy: 0 }
    }
}

impl TableState {
    fn new(table: Table) -> TableState {
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
        TableState { table, chains, compiled }
    }
    /// Its chains: the built-in ones in the order of the hooks, then the user's by name.
    pub fn chains(&self) -> &[Chain] {
        &self.chains
    }
    fn index(&self, name: &str) -> Option<usize> {
        self.chains.iter().position(|c| c.name == name)
    }
    fn built_in_count(&self) -> usize {
        self.table.built_in().len()
    }
    /// Puts the user's chains in order, looks up the chains jumped to, counts who refers to whom. `Credit`s of limit
    /// matches begin anew, as after any replacement of a table.
    fn compile(&mut self) {
        let built_in = self.built_in_count();
        self.chains[built_in..].sort_by(|a, b| a.name.cmp(&b.name));
        for chain in &mut self.chains {
            chain.references = 0;
        }
        let names: Vec<String> = self.chains.iter().map(|c| c.name.clone()).collect();
        let find = |name: &str| names.iter().position(|n| n == name);
        let mut references = vec![0u32; names.len()];
        self.compiled.clear();
        for chain in &self.chains {
            let mut out = Vec::with_capacity(chain.rules.len());
            for counted in &chain.rules {
                let step = match &counted.rule.target {
                    Target::None => Step::None,
                    Target::Verdict(v) => Step::Verdict(*v),
                    Target::Return => Step::Return,
                    Target::Jump(name) | Target::Goto(name) => match find(name) {
                        Some(at) => {
                            references[at] += 1;
                            match counted.rule.target {
                                Target::Jump(_) => Step::Jump(at as u32),
                                _ => Step::Goto(at as u32),
                            }
                        }
                        None => Step::None,
                    },
                    Target::Mark { value, mask } => Step::Mark { value: *value, mask: *mask },
                    Target::Tos { value, mask } => Step::Tos { value: *value, mask: *mask },
                    Target::Dscp(dscp) => Step::Dscp(*dscp),
                    Target::Classify(class) => Step::Classify(class.0),
                };
                out.push(Compiled { step, credit: Credit::default() });
            }
            self.compiled.push(out);
        }
        for (chain, references) in self.chains.iter_mut().zip(references) {
            chain.references = references;
        }
    }
}

/// The devices a packet came in by and leaves by, empty where there is none (yet, or any more).
#[derive(Clone, Copy, Debug)]
pub struct Devices<'a> {
    /// In.
    pub input: &'a str,
    /// Out.
    pub output: &'a str,
}

impl Netfilter {
    /// A table.
    pub fn table(&self, table: Table) -> &TableState {
        match table {
            Table::Mangle => &self.mangle,
            Table::Filter => &self.filter,
        }
    }
    fn table_mut(&mut self, table: Table) -> &mut TableState {
        match table {
            Table::Mangle => &mut self.mangle,
            Table::Filter => &mut self.filter,
        }
    }
    /// Whether a packet at this hook has to be looked at: a table was ever touched (its module is loaded then, and
    /// its policies count packets from that moment).
    #[inline]
    pub fn busy(&self, hook: Hook) -> bool {
        self.busy & (1 << hook as u8) != 0
    }
    /// A command has used `table`: its hooks are registered from now on.
    fn load(&mut self, table: Table) {
        self.busy |= match table {
            Table::Mangle => 0b1_1111,
            Table::Filter => 0b0_1110,
        };
    }
    /// Takes a packet through the tables of a hook. The mark, ToS and priority may change.
    #[inline]
    pub fn run(&mut self, hook: Hook, skb: &mut Skb, devices: Devices<'_>, now: Time) -> Verdict {
        if !self.busy(hook) {
            return Verdict::Accept;
        }
        if self.mangle.run(hook, skb, devices, now) == Verdict::Drop {
            return Verdict::Drop;
        }
        match hook {
            Hook::Prerouting | Hook::Postrouting => Verdict::Accept,
            _ => self.filter.run(hook, skb, devices, now),
        }
    }
}
