//! `iptables` commands carried out: libiptc's half and the kernel's, with their refusals. A command that is refused
//! has changed nothing.
//!
//! Follows: iptables 1.8.9 `libiptc/libiptc.c` `iptc_strerror`, `iptables/iptables.c`; what the kernel refuses is
//! [`super::check`].

use super::{Netfilter, TableState};
use penstock_lang::iptables::{
    self as ipt, Action, Chain, Command, Counted, Counters, Failure, Listing, Program, Rule, Target, Verdict,
};
use penstock_model::Kernel;
use std::fmt::Write;

/// Names that can never be a user's chain. Those of extensions the parser refuses.
const TARGETS: [&str; 4] = ["ACCEPT", "DROP", "RETURN", "QUEUE"];

fn no_chain(program: Program, name: &str) -> Failure {
    let tool = program.family.program();
    let has = |table: &&ipt::Table| table.built_in().contains(&name);
    let elsewhere: Vec<String> = [ipt::Table::Mangle, ipt::Table::Nat, ipt::Table::Filter]
        .iter()
        .filter(has)
        .map(|table| format!("-t {}", table.name()))
        .collect();
    let help = match elsewhere.is_empty() {
        true => format!("there is no chain {name} in this table; {tool} -N {name} makes one"),
        // Without `-t` the table is filter.
        false => format!("this table has no chain {name}; it is one of {}", elsewhere.join(" and ")),
    };
    program.refused("No chain/target/match by that name", &help)
}

impl Netfilter {
    /// Carries out a command; answers what it prints.
    ///
    /// # Errors
    /// iptables' message and exit status; nothing is changed then.
    pub fn execute(&mut self, command: &Command) -> Result<String, Failure> {
        match &command.action {
            Action::Say(text) => return Ok(text.clone()),
            Action::Nothing => return Ok(String::new()),
            _ => {}
        }
        let family = command.program.family;
        match &command.action {
            Action::Append(_, rules, _)
            | Action::Insert(_, _, rules, _)
            | Action::Delete(_, rules)
            | Action::Check(_, rules) => self.check_sets(rules.iter(), command.program)?,
            Action::Replace(_, _, rule, _) => self.check_sets(std::iter::once(&**rule), command.program)?,
            _ => {}
        }
        if let Action::Append(_, rules, _) = &command.action {
            self.check_hashes(family, rules.iter(), command.program)?;
        }
        let table = self.table_mut(family, command.table);
        let printed = match table.append_at_once(command)? {
            Some(printed) => {
                self.bind_hashes(family, command.table);
                printed
            }
            None => {
                let mut new = table.clone();
                let printed = new.apply(command)?;
                if *table != new {
                    new.commit(command.program)?;
                    self.check_hashes(family, new.all_rules(), command.program)?;
                    let table = self.table_mut(family, command.table);
                    *table = new;
                    table.forget_policies(command);
                    self.bind_hashes(family, command.table);
                }
                printed
            }
        };
        if !self.loaded(family).contains(&command.table) {
            self.load(family, command.table);
        } else if matches!(command.action, Action::Append(..) | Action::Insert(..) | Action::Replace(..)) {
            self.note_rules(&command.action);
        }
        Ok(printed)
    }

    /// Connections are tracked from the first rule on that asks for them.
    fn note_rules(&mut self, action: &Action) {
        let asks = match action {
            Action::Append(_, rules, _) | Action::Insert(_, _, rules, _) => rules.iter().any(super::tracks),
            Action::Replace(_, _, rule, _) => super::tracks(rule),
            _ => false,
        };
        if asks && !self.tracking.on {
            self.arrange();
        }
    }
}

impl TableState {
    /// The kernel's look at the table, and all that follows from its rules.
    pub(super) fn commit(&mut self, program: Program) -> Result<(), Failure> {
        self.check_all(program)?;
        self.compile();
        self.hooks = self.reach(program)?;
        Ok(())
    }

    /// With every change 1.8.9 begins the counters of all policies anew, but those it sets itself.
    fn forget_policies(&mut self, command: &Command) {
        if command.program.kernel == Kernel::V2_6_35 {
            return;
        }
        let kept = match &command.action {
            Action::Policy(name, _, Some(_)) => name.as_str(),
            _ => "",
        };
        for chain in self.chains.iter_mut().filter(|c| c.policy.is_some() && c.name != kept) {
            (chain.packets, chain.bytes) = (0, 0);
        }
    }

    /// A rule that jumps nowhere, put at the end: only it has to be looked at.
    fn append_at_once(&mut self, command: &Command) -> Result<Option<String>, Failure> {
        let Action::Append(chain, rules, counters) = &command.action else { return Ok(None) };
        let jumps = |r: &Rule| matches!(r.target, Target::Jump(_) | Target::Goto(_));
        if rules.iter().any(jumps) {
            return Ok(None);
        }
        let program = command.program;
        let Some(at) = self.index(chain) else { return Err(no_chain(program, chain)) };
        for rule in rules {
            self.check_rule(rule, self.hooks[at], program)?;
        }
        for rule in rules {
            self.append(at, rule, *counters);
        }
        self.forget_policies(command);
        Ok(Some(told(command, rules)))
    }

    /// libiptc's half of a command.
    pub(super) fn apply(&mut self, command: &Command) -> Result<String, Failure> {
        let program = command.program;
        let mut printed = String::new();
        match &command.action {
            Action::Say(_) | Action::Nothing => {}
            Action::Append(chain, rules, counters) => {
                let at = self.for_rules(chain, rules, program)?;
                let end = self.chains[at].rules.len();
                self.insert(at, end, rules.iter(), *counters);
                printed = told(command, rules);
            }
            Action::Insert(chain, number, rules, counters) => {
                let at = self.for_rules(chain, rules, program)?;
                if *number as usize > self.chains[at].rules.len() + 1 {
                    let help = format!("{chain} has {} rules", self.chains[at].rules.len());
                    return Err(program.refused("Index of insertion too big", &help));
                }
                // Each at the same place: the last stands first.
                self.insert(at, *number as usize - 1, rules.iter().rev(), *counters);
                printed = told(command, rules);
            }
            Action::Replace(chain, number, rule, counters) => {
                let at = self.for_rules(chain, std::slice::from_ref(&**rule), program)?;
                let count = self.chains[at].rules.len();
                let Some(slot) = self.chains[at].rules.get_mut(*number as usize - 1) else {
                    let help = format!("{chain} has {count} rules");
                    return Err(program.refused("Index of replacement too big", &help));
                };
                *slot = Counted { rule: Rule::clone(rule), packets: counters.0, bytes: counters.1 };
                printed = told(command, std::slice::from_ref(&**rule));
            }
            Action::Delete(chain, rules) => {
                for rule in rules {
                    let (at, place) = self.place_of(chain, rule, program)?;
                    self.chains[at].rules.remove(place);
                }
                printed = told(command, rules);
            }
            Action::Check(chain, rules) => {
                for rule in rules {
                    self.place_of(chain, rule, program)?;
                }
                printed = told(command, rules);
            }
            Action::DeleteNumber(chain, number) => {
                let at = self.index(chain).ok_or_else(|| no_chain(program, chain))?;
                let rules = &mut self.chains[at].rules;
                if *number as usize > rules.len() {
                    let help = format!("{chain} has {} rules", rules.len());
                    return Err(program.refused("Index of deletion too big", &help));
                }
                rules.remove(*number as usize - 1);
            }
            Action::NewChain(name) => self.new_chain(name, program)?,
            Action::DeleteChain(Some(name)) => {
                self.delete_chain(name, program)?;
                self.tell(&mut printed, command, "Deleting", std::slice::from_ref(name));
            }
            Action::DeleteChain(None) => {
                let names: Vec<String> =
                    self.chains.iter().filter(|c| c.policy.is_none()).map(|c| c.name.clone()).collect();
                names.iter().try_for_each(|name| self.delete_chain(name, program))?;
                self.tell(&mut printed, command, "Deleting", &names);
            }
            Action::Rename(old, new) => self.rename(old, new, program)?,
            Action::Flush(chain) => {
                let chosen = self.selected(chain.as_deref(), program)?;
                for &at in &chosen {
                    self.chains[at].rules.clear();
                }
                let names: Vec<String> = chosen.iter().map(|&at| self.chains[at].name.clone()).collect();
                self.tell(&mut printed, command, "Flushing", &names);
            }
            Action::Zero(chain, number) => {
                self.zero(chain.as_deref(), *number, program)?;
                if number.is_none() {
                    let chosen = self.selected(chain.as_deref(), program)?;
                    let names: Vec<String> = chosen.iter().map(|&at| self.chains[at].name.clone()).collect();
                    self.tell(&mut printed, command, "Zeroing", &names);
                }
            }
            Action::Policy(chain, policy, counters) => self.policy(chain, policy, *counters, program)?,
            Action::List(listing) => {
                let chains = self.views(listing, program)?;
                printed = ipt::list(&chains, listing, self.family, program.kernel);
                self.zero_listed(listing, program)?;
            }
            Action::Save(listing) => {
                let chains = self.views(listing, program)?;
                printed = ipt::save(&chains, listing, self.family);
                self.zero_listed(listing, program)?;
            }
        }
        Ok(printed)
    }

    /// `-v`: what was done to which chain.
    fn tell(&self, printed: &mut String, command: &Command, what: &str, names: &[String]) {
        if command.verbose > 0 {
            for name in names {
                let _ = writeln!(printed, "{what} chain `{name}'");
            }
        }
    }

    fn views(&self, listing: &Listing, program: Program) -> Result<Vec<&Chain>, Failure> {
        let chosen = self.selected(listing.chain.as_deref(), program)?;
        Ok(chosen.iter().map(|&at| &self.chains[at]).collect())
    }
    fn zero_listed(&mut self, listing: &Listing, program: Program) -> Result<(), Failure> {
        match listing.zero {
            true => self.zero(listing.chain.as_deref(), None, program),
            false => Ok(()),
        }
    }

    /// The chain of that name, or all of them.
    fn selected(&self, name: Option<&str>, program: Program) -> Result<Vec<usize>, Failure> {
        match name {
            None => Ok((0..self.chains.len()).collect()),
            Some(name) => Ok(vec![self.index(name).ok_or_else(|| no_chain(program, name))?]),
        }
    }

    /// The chain rules go to, once all they name is there.
    fn for_rules(&self, chain: &str, rules: &[Rule], program: Program) -> Result<usize, Failure> {
        for rule in rules {
            self.targets_there(rule, program)?;
        }
        self.index(chain).ok_or_else(|| no_chain(program, chain))
    }

    fn place_of(&self, chain: &str, rule: &Rule, program: Program) -> Result<(usize, usize), Failure> {
        let bad_rule =
            |help: &str| program.refused("Bad rule (does a matching rule exist in that chain?)", help);
        self.targets_there(rule, program)?;
        let at = self.index(chain).ok_or_else(|| match program.kernel {
            Kernel::V2_6_35 => no_chain(program, chain),
            Kernel::V6_12 | Kernel::V7_2 => bad_rule("there is no chain of this name"),
        })?;
        match self.chains[at].rules.iter().position(|c| c.rule == *rule) {
            Some(place) => Ok((at, place)),
            None => {
                let tool = program.family.program();
                let help = format!("compare with {tool} -S: every part of the rule counts");
                // The look whether a target is a chain leaves its own words for the error (`iptcc_map_target`, `TC_BUILTIN`).
                let verdict = matches!(rule.target, Target::None | Target::Verdict(_) | Target::Return);
                match program.kernel {
                    Kernel::V6_12 | Kernel::V7_2 if !verdict => {
                        Err(program.refused("No chain/target/match by that name", &help))
                    }
                    _ => Err(bad_rule(&help)),
                }
            }
        }
    }

    /// All a rule jumps to is there.
    fn targets_there(&self, rule: &Rule, program: Program) -> Result<(), Failure> {
        let target = match &rule.target {
            Target::Jump(name) if self.user_chain(name).is_none() => Some((name, false)),
            Target::Goto(name) if self.user_chain(name).is_none() => Some((name, true)),
            _ => None,
        };
        if let Some((name, goto)) = target {
            // The chain appended to is looked up first by 1.8.9 only for a jump to an unknown target.
            if goto {
                let tool = program.family.program();
                let help = format!("create the chain first: {tool} -N {name}");
                let end = if program.kernel == Kernel::V2_6_35 { "\n" } else { "" };
                return Err(program.parameter(0, format!("goto '{name}' is not a chain{end}"), &help));
            }
            if self.index(name).is_some() {
                // A jump to a built-in chain.
                return Err(program.invalid("a rule cannot jump to a built-in chain"));
            }
            return Err(program.no_target(name));
        }
        Ok(())
    }

    fn user_chain(&self, name: &str) -> Option<usize> {
        self.index(name).filter(|&at| at >= self.built_in_count())
    }

    fn insert<'a>(
        &mut self,
        chain: usize,
        at: usize,
        rules: impl Iterator<Item = &'a Rule>,
        counters: Counters,
    ) {
        let (packets, bytes) = counters;
        let counted = rules.map(|rule| Counted { rule: rule.clone(), packets, bytes });
        self.chains[chain].rules.splice(at..at, counted);
    }

    pub(super) fn new_chain(&mut self, name: &str, program: Program) -> Result<(), Failure> {
        if TARGETS.contains(&name) || self.index(name).is_some() {
            return Err(program.refused("Chain already exists", "iptables -F empties it"));
        }
        self.chains.push(Chain {
            name: name.to_owned(),
            policy: None,
            packets: 0,
            bytes: 0,
            references: 0,
            rules: Vec::new(),
        });
        self.compile();
        Ok(())
    }

    fn delete_chain(&mut self, name: &str, program: Program) -> Result<(), Failure> {
        let at = self.index(name).ok_or_else(|| no_chain(program, name))?;
        let chain = &self.chains[at];
        if chain.policy.is_some() {
            return Err(match program.kernel {
                Kernel::V2_6_35 => program.refused("Can't delete built-in chain", ""),
                Kernel::V6_12 | Kernel::V7_2 => program.invalid("built-in chains stay; -F empties one"),
            });
        }
        if chain.references > 0 {
            return Err(program.refused("Too many links", "delete the rules that jump to it first"));
        }
        if !chain.rules.is_empty() {
            return Err(program.refused("Directory not empty", "empty it first: -F"));
        }
        self.chains.remove(at);
        self.compile();
        Ok(())
    }

    fn rename(&mut self, old: &str, new: &str, program: Program) -> Result<(), Failure> {
        if TARGETS.contains(&new) || self.index(new).is_some() {
            return Err(program.refused("File exists", "there is a chain of this name"));
        }
        let Some(at) = self.user_chain(old) else { return Err(no_chain(program, old)) };
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

    fn zero(&mut self, chain: Option<&str>, number: Option<u32>, program: Program) -> Result<(), Failure> {
        for at in self.selected(chain, program)? {
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
                    None => return Err(program.refused("Index of counter too big", "")),
                },
            }
        }
        Ok(())
    }

    pub(super) fn policy(
        &mut self,
        chain: &str,
        policy: &str,
        counters: Option<Counters>,
        program: Program,
    ) -> Result<(), Failure> {
        let at = self.index(chain).filter(|&at| at < self.built_in_count());
        let Some(at) = at else {
            return Err(program.refused("Bad built-in chain name", "only built-in chains have a policy"));
        };
        let verdict = match policy {
            "ACCEPT" => Verdict::Accept,
            "DROP" => Verdict::Drop,
            _ => {
                let message = match program.kernel {
                    Kernel::V2_6_35 => "Bad policy name",
                    Kernel::V6_12 | Kernel::V7_2 => "Bad policy name. Run `dmesg' for more information",
                };
                return Err(program.refused(message, "ACCEPT or DROP"));
            }
        };
        let chain = &mut self.chains[at];
        chain.policy = Some(verdict);
        if let Some((packets, bytes)) = counters {
            (chain.packets, chain.bytes) = (packets, bytes);
        }
        Ok(())
    }
}

/// `-v`: the rules as they were understood.
fn told(command: &Command, rules: &[Rule]) -> String {
    if command.verbose == 0 {
        return String::new();
    }
    let program = command.program;
    rules.iter().map(|r| ipt::print_rule(r, program.family, program.kernel)).collect()
}

#[cfg(test)]
mod packets;
#[cfg(test)]
pub(in crate::netfilter) mod tests;
