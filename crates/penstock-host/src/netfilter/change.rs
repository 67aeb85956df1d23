//! `iptables` commands carried out: libiptc's half and the kernel's, with their refusals. A command that is refused
//! has changed nothing.
//!
//! Follows: iptables 1.8.9 `libiptc/libiptc.c` `iptc_strerror`; linux v6.12 `ip_tables.c` `mark_source_chains`,
//! `x_tables.c` `xt_check_target`.

use super::{Netfilter, TableState};
use penstock_lang::iptables::{
    self as ipt, Action, Chain, Command, Counted, Failure, Listing, Match, Rule, Table, Target, Verdict,
};
use penstock_model::Kernel;

/// Names that can never be a user's chain. Those of extensions the parser refuses.
const TARGETS: [&str; 4] = ["ACCEPT", "DROP", "RETURN", "QUEUE"];

fn no_chain(name: &str) -> Failure {
    let help = format!("there is no chain {name} in this table; iptables -N {name} makes one");
    Failure::kernel("No chain/target/match by that name", &help)
}

impl Netfilter {
    /// Carries out a command; answers what it prints.
    ///
    /// # Errors
    /// iptables' message and exit status; nothing is changed then.
    pub fn execute(&mut self, command: &Command, kernel: Kernel) -> Result<String, Failure> {
        if let Action::Say(text) = &command.action {
            return Ok(text.clone());
        }
        let table = self.table_mut(command.table);
        let mut new = table.clone();
        let printed = new.apply(&command.action, kernel)?;
        if *table != new {
            new.check_loops()?;
        }
        *table = new;
        self.load(command.table);
        Ok(printed)
    }
}

/// `limit_mt_check`: whether burst times cost leaves 32 bits, both as numbers of the rule (ten thousandths of a second a
/// packet) and as the kernel's credits: of a tick the greatest power of two of which a day's fit 32 bits.
fn limit_overflows(amount: u32, per_s: u32, burst: u32, hz: u32) -> bool {
    let a_second = hz << (u32::MAX / (hz * 86_400)).ilog2();
    let credits = |user: u32| match user > u32::MAX / a_second {
        true => (user / 10_000).wrapping_mul(a_second),
        false => user * a_second / 10_000,
    };
    let average = (u64::from(per_s) * 10_000 / u64::from(amount.max(1))) as u32;
    burst == 0 || credits(average.wrapping_mul(burst)) < credits(average)
}

impl TableState {
    fn apply(&mut self, action: &Action, kernel: Kernel) -> Result<String, Failure> {
        let mut printed = String::new();
        match action {
            Action::Say(text) => printed.push_str(text),
            Action::Append(chain, rule) => {
                let at = self.for_rule(chain, rule, kernel)?;
                let end = self.chains[at].rules.len();
                self.insert(at, end, rule);
            }
            Action::Insert(chain, number, rule) => {
                let at = self.for_rule(chain, rule, kernel)?;
                if *number as usize > self.chains[at].rules.len() + 1 {
                    let help = format!("{chain} has {} rules", self.chains[at].rules.len());
                    return Err(Failure::kernel("Index of insertion too big", &help));
                }
                self.insert(at, *number as usize - 1, rule);
            }
            Action::Replace(chain, number, rule) => {
                let at = self.for_rule(chain, rule, kernel)?;
                let Some(slot) = self.chains[at].rules.get_mut(*number as usize - 1) else {
                    let help = format!("{chain} has {} rules", self.chains[at].rules.len());
                    return Err(Failure::kernel("Index of replacement too big", &help));
                };
                *slot = Counted { rule: rule.clone(), packets: 0, bytes: 0 };
                self.compile();
            }
            Action::Delete(chain, rule) | Action::Check(chain, rule) => {
                let bad_rule = |help: &str| {
                    Failure::kernel("Bad rule (does a matching rule exist in that chain?)", help)
                };
                self.targets_there(rule, kernel)?;
                let at = self.index(chain).ok_or_else(|| match kernel {
                    Kernel::V2_6_35 => no_chain(chain),
                    Kernel::V6_12 => bad_rule("there is no chain of this name"),
                })?;
                let Some(place) = self.chains[at].rules.iter().position(|c| c.rule == *rule) else {
                    return Err(bad_rule("compare with iptables -S: every part of the rule counts"));
                };
                if matches!(action, Action::Delete(..)) {
                    self.chains[at].rules.remove(place);
                    self.compile();
                }
            }
            Action::DeleteNumber(chain, number) => {
                let at = self.index(chain).ok_or_else(|| no_chain(chain))?;
                let rules = &mut self.chains[at].rules;
                if *number as usize > rules.len() {
                    let help = format!("{chain} has {} rules", rules.len());
                    return Err(Failure::kernel("Index of deletion too big", &help));
                }
                rules.remove(*number as usize - 1);
                self.compile();
            }
            Action::NewChain(name) => self.new_chain(name)?,
            Action::DeleteChain(Some(name)) => self.delete_chain(name, kernel)?,
            Action::DeleteChain(None) => self.delete_all_chains(kernel)?,
            Action::Rename(old, new) => self.rename(old, new)?,
            Action::Flush(chain) => {
                for at in self.selected(chain.as_deref())? {
                    self.chains[at].rules.clear();
                }
                self.compile();
            }
            Action::Zero(chain, number) => self.zero(chain.as_deref(), *number)?,
            Action::Policy(chain, policy) => self.policy(chain, policy, kernel)?,
            Action::List(listing) => {
                printed = self.listed(listing, kernel)?;
                if listing.zero {
                    self.zero(listing.chain.as_deref(), None)?;
                }
            }
            Action::Save(listing) => {
                let chains = self.selected(listing.chain.as_deref())?;
                let views: Vec<&Chain> = chains.iter().map(|&at| &self.chains[at]).collect();
                printed = ipt::save(&views, listing);
                if listing.zero {
                    self.zero(listing.chain.as_deref(), None)?;
                }
            }
        }
        Ok(printed)
    }

    fn listed(&self, listing: &Listing, kernel: Kernel) -> Result<String, Failure> {
        let chains = self.selected(listing.chain.as_deref())?;
        let views: Vec<&Chain> = chains.iter().map(|&at| &self.chains[at]).collect();
        Ok(ipt::list(&views, listing, kernel))
    }

    /// The chain of that name, or all of them.
    fn selected(&self, name: Option<&str>) -> Result<Vec<usize>, Failure> {
        match name {
            None => Ok((0..self.chains.len()).collect()),
            Some(name) => Ok(vec![self.index(name).ok_or_else(|| no_chain(name))?]),
        }
    }

    /// The chain a rule goes to, once all it names is there and may stand there.
    fn for_rule(&self, chain: &str, rule: &Rule, kernel: Kernel) -> Result<usize, Failure> {
        self.targets_there(rule, kernel)?;
        let at = self.index(chain).ok_or_else(|| no_chain(chain))?;
        let mangle_only = match rule.target {
            Target::Tos { .. } | Target::Dscp(_) => true,
            Target::Classify(_) => kernel == Kernel::V2_6_35,
            _ => false,
        };
        if mangle_only && self.table != Table::Mangle {
            let help = format!("{} works in the mangle table alone: -t mangle", rule.target.name());
            return Err(Failure::invalid(&help));
        }
        if matches!(rule.target, Target::Classify(_)) && matches!(chain, "PREROUTING" | "INPUT") {
            return Err(Failure::invalid("CLASSIFY works in OUTPUT, FORWARD and POSTROUTING"));
        }
        for m in &rule.matches {
            if let Match::Limit { amount, per_s, burst } = m
                && limit_overflows(*amount, *per_s, *burst, kernel.hz())
            {
                let help =
                    "burst times the gap between packets is too long; take a smaller --limit-burst, not 0";
                return Err(Failure::kernel("Numerical result out of range", help));
            }
        }
        Ok(at)
    }

    /// All a rule jumps to is there.
    fn targets_there(&self, rule: &Rule, kernel: Kernel) -> Result<(), Failure> {
        let target = match &rule.target {
            Target::Jump(name) if self.user_chain(name).is_none() => Some((name, false)),
            Target::Goto(name) if self.user_chain(name).is_none() => Some((name, true)),
            _ => None,
        };
        if let Some((name, goto)) = target {
            // The chain appended to is looked up first by 1.8.9 only for a jump to an unknown target.
            if goto {
                let help = format!("create the chain first: iptables -N {name}");
                return Err(Failure::parameter(kernel, 0, format!("goto '{name}' is not a chain\n"), &help));
            }
            if self.index(name).is_some() {
                // A jump to a built-in chain.
                return Err(Failure::invalid("a rule cannot jump to a built-in chain"));
            }
            return Err(Failure::no_target(kernel, name));
        }
        Ok(())
    }

    fn user_chain(&self, name: &str) -> Option<usize> {
        self.index(name).filter(|&at| at >= self.built_in_count())
    }

    fn insert(&mut self, chain: usize, at: usize, rule: &Rule) {
        self.chains[chain].rules.insert(at, Counted { rule: rule.clone(), packets: 0, bytes: 0 });
        self.compile();
    }

    fn new_chain(&mut self, name: &str) -> Result<(), Failure> {
        if TARGETS.contains(&name) || self.index(name).is_some() {
            return Err(Failure::kernel("Chain already exists", "iptables -F empties it"));
        }
        self.push_chain(name);
        Ok(())
    }
    fn push_chain(&mut self, name: &str) {
        self.chains.push(Chain {
            name: name.to_owned(),
            policy: None,
            packets: 0,
            bytes: 0,
            references: 0,
            rules: Vec::new(),
        });
        self.compile();
    }

    fn delete_chain(&mut self, name: &str, kernel: Kernel) -> Result<(), Failure> {
        let at = self.index(name).ok_or_else(|| no_chain(name))?;
        let chain = &self.chains[at];
        if chain.policy.is_some() {
            return Err(match kernel {
                Kernel::V2_6_35 => Failure::kernel("Can't delete built-in chain", ""),
                Kernel::V6_12 => Failure::invalid("built-in chains stay; iptables -F empties one"),
            });
        }
        if chain.references > 0 {
            return Err(Failure::kernel("Too many links", "delete the rules that jump to it first"));
        }
        if !chain.rules.is_empty() {
            return Err(Failure::kernel("Directory not empty", "empty it first: iptables -F"));
        }
        self.chains.remove(at);
        self.compile();
        Ok(())
    }
    /// `-X` alone: every chain of the user's, and the first that cannot go stops all.
    fn delete_all_chains(&mut self, kernel: Kernel) -> Result<(), Failure> {
        let names: Vec<String> =
            self.chains.iter().filter(|c| c.policy.is_none()).map(|c| c.name.clone()).collect();
        names.iter().try_for_each(|name| self.delete_chain(name, kernel))
    }

    fn rename(&mut self, old: &str, new: &str) -> Result<(), Failure> {
        if TARGETS.contains(&new) || self.index(new).is_some() {
            return Err(Failure::kernel("File exists", "there is a chain of this name"));
        }
        let Some(at) = self.user_chain(old) else { return Err(no_chain(old)) };
        self.chains[at].name = new.to_owned();
        for chain in &mut self.chains {
            for counted in &mut chain.rules {
                match &mut counted.rule.target {
                    Target::Jump(name) | Target::Goto(name) if name == old => *name = new.to_owned(),
                    _ => {}
                }
            }
        }
        self.compile();
        Ok(())
    }

    fn zero(&mut self, chain: Option<&str>, number: Option<u32>) -> Result<(), Failure> {
        for at in self.selected(chain)? {
            let chain = &mut self.chains[at];
            match number {
                None => {
                    (chain.packets, chain.bytes) = (0, 0);
                    for counted in &mut chain.rules {
                        (counted.packets, counted.bytes) = (0, 0);
                    }
                }
                Some(n) => match chain.rules.get_mut(n as usize - 1) {
                    Some(counted) => (counted.packets, counted.bytes) = (0, 0),
                    None => return Err(Failure::kernel("Index of counter too big", "")),
                },
            }
        }
        Ok(())
    }

    fn policy(&mut self, chain: &str, policy: &str, kernel: Kernel) -> Result<(), Failure> {
        let at = self.index(chain).filter(|&at| at < self.built_in_count());
        let Some(at) = at else {
            return Err(Failure::kernel("Bad built-in chain name", "only built-in chains have a policy"));
        };
        let verdict = match policy {
            "ACCEPT" => Verdict::Accept,
            "DROP" => Verdict::Drop,
            _ => {
                let message = match kernel {
                    Kernel::V2_6_35 => "Bad policy name",
                    Kernel::V6_12 => "Bad policy name. Run `dmesg' for more information",
                };
                return Err(Failure::kernel(message, "ACCEPT or DROP"));
            }
        };
        self.chains[at].policy = Some(verdict);
        Ok(())
    }

    /// A packet must come to an end: no chain a hook leads to may be reached from itself, and no chain from a hook where
    /// one of its targets may not stand. Chains no hook leads to may be in a circle, as in the kernel.
    fn check_loops(&self) -> Result<(), Failure> {
        for start in 0..self.built_in_count() {
            let mut path = Vec::new();
            self.walk(start, start, &mut path)?;
        }
        Ok(())
    }
    fn walk(&self, start: usize, chain: usize, path: &mut Vec<usize>) -> Result<(), Failure> {
        let hook = &self.chains[start].name;
        path.push(chain);
        let mut next: Vec<usize> = Vec::new();
        for counted in &self.chains[chain].rules {
            match &counted.rule.target {
                Target::Jump(name) | Target::Goto(name) => next.extend(self.index(name)),
                Target::Classify(_) if matches!(hook.as_str(), "PREROUTING" | "INPUT") => {
                    return Err(Failure::invalid("CLASSIFY works in OUTPUT, FORWARD and POSTROUTING"));
                }
                _ => {}
            }
        }
        next.sort_unstable();
        next.dedup();
        for to in next {
            if path.contains(&to) {
                let help = format!("{} would be reached from itself", self.chains[to].name);
                return Err(Failure::kernel("Too many levels of symbolic links", &help));
            }
            self.walk(start, to, path)?;
        }
        path.pop();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
