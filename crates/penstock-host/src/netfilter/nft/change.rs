//! `nft` commands carried out: all of one call, or none.

use super::{ChainState, Memory, RuleState, Ruleset, SetState, TableState};
use crate::netfilter::Netfilter;
use penstock_lang::nft::{
    self, Base, Command, Element, Expr, Family, Fault, Name, Options, Place, Pos, RawElement, Rule,
    Statement, value,
};
use std::collections::BTreeMap;

const ENOENT: &str = "No such file or directory";
const EEXIST: &str = "File exists";
const EBUSY: &str = "Device or resource busy";

impl Netfilter {
    /// Reads commands and carries them out; answers what they print. `devices` are the names there are.
    ///
    /// # Errors
    /// The first fault, with its place in the text; nothing is changed then.
    pub fn run_nft(
        &mut self,
        text: &str,
        _source: Option<&str>,
        options: &Options,
        devices: &[String],
    ) -> Result<String, Fault> {
        let commands = nft::parse(text)?;
        // Elements are added as a whole or not at all, and nothing else rests on them: the rules need not be copied for them.
        if let ([add @ Command::AddElement(..)], false) = (commands.as_slice(), options.check) {
            return self.nft.apply(add, options, devices);
        }
        let mut new = self.nft.clone();
        let mut printed = String::new();
        for command in &commands {
            printed.push_str(&new.apply(command, options, devices)?);
        }
        new.check(&commands)?;
        if !options.check && new != self.nft {
            self.nft = new;
            self.arrange();
        }
        Ok(printed)
    }

    /// All rules, as `nft list ruleset` prints them.
    pub fn nft_ruleset(&self) -> String {
        self.nft.list(nft::What::Ruleset, None, &Options::default())
    }
}

/// What a rule's statements remember, and its handle after those of the sets written in it.
fn rule_state(table: &mut TableState, rule: &Rule) -> RuleState {
    let is_set = |e: &Expr| matches!(e, Expr::Set(_));
    for s in &rule.statements {
        let sets = super::expressions(s).into_iter().filter(|e| super::any_part(e, &is_set)).count();
        table.handles += sets as u64;
    }
    table.handles += 1;
    let remembers = |s: &Statement| match s {
        Statement::Limit(_) => true,
        s => super::expressions(s)
            .into_iter()
            .any(|e| super::any_part(e, &|e| matches!(e, Expr::Numgen { .. }))),
    };
    let memory = match rule.statements.iter().any(remembers) {
        true => vec![Memory::default(); rule.statements.len()],
        false => Vec::new(),
    };
    RuleState { handle: table.handles, rule: rule.clone(), memory }
}

impl Ruleset {
    fn find(&self, name: &Name) -> Option<usize> {
        self.tables.iter().position(|t| t.family == name.family && t.name == name.table)
    }
    fn table_mut(&mut self, name: &Name) -> Result<&mut TableState, Fault> {
        let at = self.find(name);
        let help = "nft add table makes one";
        at.map(|at| &mut self.tables[at]).ok_or_else(|| Fault::kernel(name.table_pos, ENOENT, help))
    }
    fn chain_mut(&mut self, name: &Name) -> Result<&mut ChainState, Fault> {
        let table = self.table_mut(name)?;
        match table.chain(&name.name) {
            Some(at) => Ok(&mut table.chains[at]),
            None => Err(Fault::kernel(name.pos, ENOENT, "nft add chain makes one")),
        }
    }
    fn set_mut(&mut self, name: &Name) -> Result<&mut SetState, Fault> {
        let table = self.table_mut(name)?;
        let found = table.sets.iter_mut().find(|s| s.name == name.name);
        found.ok_or_else(|| Fault::kernel(name.pos, ENOENT, "nft add set makes one"))
    }
    /// For lists, which look before they ask the kernel.
    fn seen(&self, name: &Name) -> Result<&TableState, Fault> {
        self.find(name).map(|at| &self.tables[at]).ok_or_else(|| Fault::new(name.table_pos, ENOENT, ""))
    }

    pub(super) fn apply(
        &mut self,
        command: &Command,
        o: &Options,
        devices: &[String],
    ) -> Result<String, Fault> {
        match command {
            Command::AddTable(name, create, comment) => self.add_table(name, *create, comment.clone())?,
            Command::DeleteTable(name) => {
                self.table_mut(name)?;
                self.tables.retain(|t| t.family != name.family || t.name != name.table);
            }
            Command::FlushTable(name) => {
                self.table_mut(name)?.chains.iter_mut().for_each(|c| c.rules.clear());
            }
            Command::ListTable(name) => return Ok(self.seen(name)?.text(o)),
            Command::AddChain(name, create, base, comment) => {
                self.add_chain(name, *create, base.as_ref(), comment.clone(), devices)?;
            }
            Command::DeleteChain(name) => self.delete_chain(name)?,
            Command::FlushChain(name) => self.chain_mut(name)?.rules.clear(),
            Command::RenameChain(name, new) => {
                if self.table_mut(name)?.chain(new).is_some() {
                    return Err(Fault::kernel(name.pos, EEXIST, "there is a chain of this name"));
                }
                self.chain_mut(name)?.name.clone_from(new);
            }
            Command::ListChain(name) => {
                let table = self.seen(name)?;
                let at = table.chain(&name.name).ok_or_else(|| Fault::new(name.pos, ENOENT, ""))?;
                return Ok(table.chain_text(at, o));
            }
            Command::AddRule(name, insert, place, rule, pos) => {
                devices_there(rule, *pos, devices)?;
                self.add_rule(name, *insert, *place, rule)?;
            }
            Command::ReplaceRule(name, handle, pos, rule) => {
                self.sets_there(name, rule)?;
                let table = self.table_mut(name)?;
                let mut fresh = rule_state(table, rule);
                let slot = self.rule_mut(name, *handle, *pos)?;
                fresh.handle = *handle;
                *slot = fresh;
            }
            Command::DeleteRule(name, handle, pos) => {
                self.rule_mut(name, *handle, *pos)?;
                self.chain_mut(name)?.rules.retain(|r| r.handle != *handle);
            }
            Command::AddSet(name, create, set, elements, comment) => {
                let table = self.table_mut(name)?;
                match table.set(&name.name) {
                    Some(_) if *create => return Err(Fault::kernel(name.pos, EEXIST, "")),
                    Some(old) if old.key != set.key || old.data != set.data => {
                        return Err(Fault::kernel(name.pos, EEXIST, "there is one of other types"));
                    }
                    Some(_) => {}
                    None => {
                        table.handles += 1;
                        let handle = table.handles;
                        let (name, comment) = (name.name.clone(), comment.clone());
                        table.sets.push(SetState { name, handle, set: set.clone(), comment });
                    }
                }
                self.add_elements(name, elements, false, name.pos)?;
            }
            Command::DeleteSet(name) => {
                self.set_mut(name)?;
                let table = self.table_mut(name)?;
                if table.rules().any(|r| uses_set(r, &name.name)) {
                    return Err(Fault::kernel(name.pos, EBUSY, "delete the rules that use it first"));
                }
                table.sets.retain(|s| s.name != name.name);
            }
            Command::FlushSet(name) => self.set_mut(name)?.set.elements_mut().clear(),
            Command::ListSet(name) => {
                let table = self.seen(name)?;
                return table.set_text(&name.name, o).ok_or_else(|| Fault::new(name.pos, ENOENT, ""));
            }
            Command::AddElement(name, create, elements, pos) => {
                self.add_elements(name, elements, *create, *pos)?;
            }
            Command::DeleteElement(name, elements, pos) => {
                for element in self.resolved(name, elements)? {
                    let all = self.set_mut(name)?.set.elements_mut();
                    match place(all, &element.key).ok() {
                        Some(at) => drop(all.remove(at)),
                        None => return Err(Fault::kernel(*pos, ENOENT, "it is not in the set")),
                    }
                }
            }
            Command::FlushRuleset(family) => {
                self.tables.retain(|t| family.is_some_and(|f| f != t.family));
            }
            Command::List(what, family) => return Ok(self.list(*what, *family, o)),
        }
        Ok(String::new())
    }

    fn add_table(&mut self, name: &Name, create: bool, comment: Option<String>) -> Result<(), Fault> {
        match self.find(name) {
            Some(_) if create => Err(Fault::kernel(name.table_pos, EEXIST, "add table takes one there is")),
            Some(_) => Ok(()),
            None => {
                self.handles += 1;
                self.tables.push(TableState {
                    family: name.family,
                    name: name.table.clone(),
                    handle: self.handles,
                    comment,
                    handles: 0,
                    chains: Vec::new(),
                    sets: Vec::new(),
                });
                Ok(())
            }
        }
    }

    fn add_chain(
        &mut self,
        name: &Name,
        create: bool,
        base: Option<&Base>,
        comment: Option<String>,
        devices: &[String],
    ) -> Result<(), Fault> {
        if self.find(name).is_none() {
            return Err(Fault::new(name.table_pos, ENOENT, "nft add table makes one"));
        }
        if let Some(base) = base {
            let nat = ["prerouting", "input", "output", "postrouting"].contains(&base.hook.as_str());
            let fits = match base.ty.as_str() {
                "nat" => nat && name.family != Family::Netdev && base.priority > -200,
                "route" => base.hook == "output",
                _ => true,
            };
            if !fits {
                let help = "chains of type nat have no forward hook, those of type route output alone";
                return Err(Fault::kernel(name.pos, "Operation not supported", help));
            }
            if base.devices.iter().any(|d| !devices.contains(d)) {
                return Err(Fault::kernel(name.pos, ENOENT, "there is no such device"));
            }
        }
        let table = self.table_mut(name)?;
        if let Some(at) = table.chain(&name.name) {
            let old = &mut table.chains[at];
            return match (base, &mut old.base) {
                _ if create => Err(Fault::kernel(name.pos, EEXIST, "add chain takes one there is")),
                (None, _) => Ok(()),
                (Some(new), Some(old))
                    if (&new.ty, &new.hook, new.priority) == (&old.ty, &old.hook, old.priority) =>
                {
                    old.drop = new.drop;
                    Ok(())
                }
                (Some(_), _) => Err(Fault::kernel(name.pos, EEXIST, "it hangs elsewhere")),
            };
        }
        table.handles += 1;
        let handle = table.handles;
        let (name, base) = (name.name.clone(), base.cloned());
        table.chains.push(ChainState { name, handle, base, comment, rules: Vec::new() });
        Ok(())
    }

    fn delete_chain(&mut self, name: &Name) -> Result<(), Fault> {
        self.chain_mut(name)?;
        let table = self.table_mut(name)?;
        let elsewhere = table.chains.iter().filter(|c| c.name != name.name).flat_map(|c| &c.rules);
        let jumps = elsewhere.flat_map(|r| super::targets(&r.rule)).any(|t| t == name.name);
        if jumps || table.sets.iter().flat_map(|s| super::set_targets(&s.set)).any(|t| t == name.name) {
            return Err(Fault::kernel(name.pos, EBUSY, "delete the rules that jump to it first"));
        }
        table.chains.retain(|c| c.name != name.name);
        Ok(())
    }

    fn rule_mut(&mut self, name: &Name, handle: u64, pos: Pos) -> Result<&mut RuleState, Fault> {
        let chain = self.chain_mut(name)?;
        let found = chain.rules.iter_mut().find(|r| r.handle == handle);
        found.ok_or_else(|| Fault::kernel(pos, ENOENT, "nft -a list ruleset shows the handles"))
    }

    /// Sets a rule names, and their types.
    fn sets_there(&self, name: &Name, rule: &Rule) -> Result<(), Fault> {
        let Some(at) = self.find(name) else { return Ok(()) };
        let table = &self.tables[at];
        for s in &rule.statements {
            let (left, right) = match s {
                Statement::Match(left, _, right) | Statement::Vmap(left, right) => (left, right),
                Statement::Set(_, Expr::Map(left, right)) => (left.as_ref(), right.as_ref()),
                _ => continue,
            };
            let Expr::Named(set, pos) = right else { continue };
            let Some(found) = table.set(set) else {
                return Err(Fault::new(*pos, ENOENT, "nft add set makes one"));
            };
            let wanted = nft::types(left);
            if found.key != wanted
                && let (Some(want), Some(has)) = (wanted.first(), found.key.first())
            {
                let message = format!(
                    "datatype mismatch, expected {}, expression has type {}",
                    want.described(),
                    has.described()
                );
                return Err(Fault::new(*pos, message, "the set is for something else"));
            }
        }
        Ok(())
    }

    fn add_rule(&mut self, name: &Name, insert: bool, place: Place, rule: &Rule) -> Result<(), Fault> {
        self.sets_there(name, rule)?;
        self.chain_mut(name)?;
        let table = self.table_mut(name)?;
        let fresh = rule_state(table, rule);
        let chain = self.chain_mut(name)?;
        let beside = match place {
            Place::Edge => {
                let at = if insert { 0 } else { chain.rules.len() };
                chain.rules.insert(at, fresh);
                return Ok(());
            }
            Place::Handle(handle, pos) => {
                let found = chain.rules.iter().position(|r| r.handle == handle);
                found.ok_or_else(|| Fault::kernel(pos, ENOENT, "nft -a list ruleset shows the handles"))?
            }
            Place::Index(at, pos) => {
                let there = (at as usize) < chain.rules.len();
                there
                    .then_some(at as usize)
                    .ok_or_else(|| Fault::kernel(pos, ENOENT, "rules count from 0"))?
            }
        };
        chain.rules.insert(if insert { beside } else { beside + 1 }, fresh);
        Ok(())
    }

    fn resolved(&mut self, name: &Name, elements: &[RawElement]) -> Result<Vec<Element>, Fault> {
        let set = &self.set_mut(name)?.set;
        value::elements(elements, &set.key, set.data)
    }

    fn add_elements(
        &mut self,
        name: &Name,
        elements: &[RawElement],
        create: bool,
        pos: Pos,
    ) -> Result<(), Fault> {
        let fresh = self.resolved(name, elements)?;
        let set = &mut self.set_mut(name)?.set;
        // Those of this call, in their order, and which of them the set has not.
        let mut new: Vec<Element> = Vec::new();
        let mut seen: BTreeMap<Vec<(u128, u128)>, Vec<usize>> = BTreeMap::new();
        for element in fresh {
            let same = seen.entry(value::order(&element.key)).or_default();
            let twin = same.iter().map(|&i| &new[i]).find(|e| e.key == element.key);
            let there = place(&set.elements, &element.key).ok().map(|at| &set.elements[at]);
            match there.or(twin) {
                Some(_) if create => return Err(Fault::kernel(pos, EEXIST, "it is in the set")),
                Some(old) if old.data != element.data => {
                    return Err(Fault::kernel(pos, EEXIST, "it gives something else"));
                }
                Some(_) => {}
                None => {
                    same.push(new.len());
                    new.push(element);
                }
            }
        }
        if new.is_empty() {
            return Ok(());
        }
        let all = set.elements_mut();
        match (new.len(), new.pop()) {
            (1, Some(one)) => {
                let at = place(all, &one.key).unwrap_or_else(|at| at);
                all.insert(at, one);
            }
            (_, last) => {
                all.extend(new.into_iter().chain(last));
                value::ordered(all);
            }
        }
        Ok(())
    }
}

/// Where the element with a key stands among those of a set, which are in order; an error says where it would.
fn place(all: &[Element], key: &Expr) -> Result<usize, usize> {
    let wanted = value::order(key);
    let mut at = all.partition_point(|e| value::order(&e.key) < wanted);
    while let Some(e) = all.get(at).filter(|e| value::order(&e.key) == wanted) {
        if e.key == *key {
            return Ok(at);
        }
        at += 1;
    }
    Err(at)
}

/// `iif` and `oif` are for devices there are.
fn devices_there(rule: &Rule, pos: Pos, devices: &[String]) -> Result<(), Fault> {
    let missing = |s: &Statement| match s {
        Statement::Match(Expr::Meta("iif" | "oif"), _, Expr::Name(name)) => !devices.contains(name),
        _ => false,
    };
    match rule.statements.iter().any(missing) {
        true => Err(Fault::new(pos, "Interface does not exist", "iifname and oifname may name others")),
        false => Ok(()),
    }
}

fn uses_set(rule: &Rule, name: &str) -> bool {
    let named = |e: &Expr| matches!(e, Expr::Named(n, _) if n == name);
    rule.statements.iter().flat_map(super::expressions).any(|e| super::any_part(e, &named))
}
