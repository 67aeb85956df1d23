//! `nft` commands carried out: all of one call, or none.

use super::live::{Clock, Kept};
use super::state::ObjectState;
use super::{ChainState, Memory, RuleState, Ruleset, SetState, TableState, Written};
use crate::netfilter::Netfilter;
use penstock_lang::nft::{
    self, Base, Command, Expr, Family, Fault, Name, Options, Place, Pos, Rule, Statement,
};
use penstock_model::Time;

pub(super) const ENOENT: &str = "No such file or directory";
pub(super) const EEXIST: &str = "File exists";
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
        now: Time,
    ) -> Result<String, Fault> {
        let commands = nft::parse(text)?;
        let clock = Clock { now: self.tracking.ticks(now), hz: self.tracking.hz() };
        // Elements are added as a whole or not at all, and nothing else rests on them: the rules need not be copied for them.
        if let ([add @ Command::AddElement(..)], false) = (commands.as_slice(), options.check) {
            return self.nft.apply(add, options, devices, clock);
        }
        let mut new = self.nft.clone();
        new.last.call += 1;
        let mut printed = String::new();
        for command in &commands {
            printed.push_str(&new.apply(command, options, devices, clock)?);
        }
        new.check(&commands)?;
        if !options.check && new != self.nft {
            self.nft = new;
            self.arrange();
        }
        Ok(printed)
    }

    /// All rules, as `nft list ruleset` prints them.
    pub fn nft_ruleset(&self, now: Time) -> String {
        let clock = Clock { now: self.tracking.ticks(now), hz: self.tracking.hz() };
        self.nft.list((nft::What::Ruleset, None, None), &Options::default(), clock)
    }
}

/// What a rule's statements remember, and its handle after those of the sets written in it.
fn rule_state(table: &mut TableState, rule: &Rule, written: Written) -> RuleState {
    let is_set = |e: &Expr| matches!(e, Expr::Set(_));
    for s in &rule.statements {
        let sets = super::expressions(s).into_iter().filter(|e| super::any_part(e, &is_set)).count();
        table.handles += sets as u64;
    }
    table.handles += 1;
    let drawn = |e: &Expr| matches!(e, Expr::Numgen { .. } | Expr::Hash { seed: None, .. });
    let remembers = |s: &Statement| match s {
        Statement::Limit(_) | Statement::Count { .. } => true,
        s => super::expressions(s).into_iter().any(|e| super::any_part(e, &drawn)),
    };
    let memory = match rule.statements.iter().any(remembers) {
        true => vec![Memory::default(); rule.statements.len()],
        false => Vec::new(),
    };
    RuleState { handle: table.handles, rule: rule.clone(), memory, written }
}

impl Ruleset {
    pub(super) fn find(&self, name: &Name) -> Option<usize> {
        self.tables.iter().position(|t| t.family == name.family && t.name == name.table)
    }
    pub(super) fn table_mut(&mut self, name: &Name) -> Result<&mut TableState, Fault> {
        let at = self.find(name);
        let help = "nft add table makes one";
        at.map(|at| &mut self.tables[at]).ok_or_else(|| Fault::kernel(name.table_pos, ENOENT, help))
    }
    fn chain_mut(&mut self, name: &Name) -> Result<&mut ChainState, Fault> {
        match self.table_mut(name)?.chain(&name.name) {
            Some(at) => Ok(&mut self.table_mut(name)?.chains[at]),
            None => Err(self.no_chain(name)),
        }
    }
    pub(super) fn set_mut(&mut self, name: &Name) -> Result<&mut SetState, Fault> {
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
        clock: Clock,
    ) -> Result<String, Fault> {
        let done = self.carry_out(command, o, devices, clock);
        // What a rule names and is not there is told as if it were its chain (`nft_cmd_enoent_rule`).
        match (done, command) {
            (
                Err(fault),
                Command::AddRule(name, _, Place::Edge | Place::Handle(..), ..)
                | Command::ReplaceRule(name, ..)
                | Command::DeleteRule(name, ..),
            ) if fault.message.ends_with(&format!("rule: {ENOENT}")) && self.find(name).is_some() => {
                Err(Fault { message: self.no_chain(name).message, ..fault })
            }
            (done, _) => done,
        }
    }

    fn carry_out(
        &mut self,
        command: &Command,
        o: &Options,
        devices: &[String],
        clock: Clock,
    ) -> Result<String, Fault> {
        match command {
            Command::AddTable(name, create, comment) => self.add_table(name, *create, comment.clone())?,
            Command::DeleteTable(name) => {
                self.table_mut(name)?;
                self.tables.retain(|t| t.family != name.family || t.name != name.table);
            }
            Command::FlushTable(name) => {
                let table = self.table_mut(name)?;
                table.chains.iter_mut().for_each(|c| c.rules.clear());
                table.drop_meters();
            }
            Command::ListTable(name) => return Ok(self.seen(name)?.text(o, clock)),
            Command::AddChain(name, create, base, comment) => {
                self.add_chain(name, *create, base.as_ref(), comment.clone(), devices)?;
            }
            Command::DeleteChain(name) => self.delete_chain(name)?,
            Command::FlushChain(name) => {
                let table = self.table_mut(name)?;
                let Some(at) = table.chain(&name.name) else {
                    return Err(Fault::kernel(name.pos, ENOENT, "nft list chains shows those there are"));
                };
                table.chains[at].rules.clear();
                table.drop_meters();
            }
            Command::RenameChain(name, new) => {
                if self.table_mut(name)?.chain(new).is_some() {
                    return Err(Fault::kernel(name.pos, EEXIST, "there is a chain of this name"));
                }
                let old = name.name.clone();
                self.chain_mut(name)?.name.clone_from(new);
                let table = self.table_mut(name)?;
                for rule in table.chains.iter_mut().flat_map(|c| &mut c.rules) {
                    rule.rule.rename_chain(&old, new);
                }
                for s in &mut table.sets {
                    s.set.rename_chain(&old, new);
                }
            }
            Command::ListChain(name) => {
                let table = self.seen(name)?;
                let at = table.chain(&name.name).ok_or_else(|| Fault::new(name.pos, ENOENT, ""))?;
                return Ok(table.chain_text(at, o));
            }
            Command::AddRule(name, insert, place, rule, pos) => {
                devices_there(rule, *pos, devices)?;
                self.chain_mut(name)?;
                let rule = self.bound(name, rule, *pos, clock)?;
                self.add_rule(name, *insert, *place, &rule, *pos)?;
            }
            Command::ReplaceRule(name, handle, pos, rule) => {
                self.sets_there(name, rule)?;
                self.rule_mut(name, *handle, *pos)?;
                let rule = self.bound(name, rule, *pos, clock)?;
                let written = self.written(*pos);
                let table = self.table_mut(name)?;
                let mut fresh = rule_state(table, &rule, written);
                let slot = self.rule_mut(name, *handle, *pos)?;
                fresh.handle = *handle;
                *slot = fresh;
                self.table_mut(name)?.drop_meters();
            }
            Command::DeleteRule(name, handle, pos) => {
                self.chain_mut(name)?;
                self.rule_mut(name, *handle, *pos)?;
                self.chain_mut(name)?.rules.retain(|r| r.handle != *handle);
                self.table_mut(name)?.drop_meters();
            }
            Command::AddSet(name, create, set, elements, comment) => {
                let table = self.table_mut(name)?;
                match table.set(&name.name) {
                    Some(_) if *create => return Err(Fault::kernel(name.pos, EEXIST, "")),
                    Some(old) if old.key != set.key || old.data != set.data => {
                        return Err(Fault::kernel(name.pos, EEXIST, "there is one of other types"));
                    }
                    Some(_) => {}
                    None => table.add_set(name, set, comment.clone(), clock)?,
                }
                self.add_elements(name, elements, false, (name.pos, clock))?;
            }
            Command::DeleteSet(name) => {
                let table = self.table_mut(name)?;
                if table.set(&name.name).is_none() {
                    return Err(self.no_set(name));
                }
                if table.rules().any(|r| super::sets::uses_set(r, &name.name)) {
                    return Err(Fault::kernel(name.pos, EBUSY, "delete the rules that use it first"));
                }
                table.sets.retain(|s| s.name != name.name);
            }
            Command::FlushSet(name) => {
                let set = self.set_mut(name)?;
                set.set.elements_mut().clear();
                set.kept.clear();
            }
            Command::ListSet(name) => {
                let table = self.seen(name)?;
                let text = table.set_text(&name.name, false, o, clock);
                return text.ok_or_else(|| Fault::new(name.pos, ENOENT, ""));
            }
            Command::ListMeter(name) => {
                let table = self.seen(name)?;
                let text = table.set_text(&name.name, true, o, clock);
                return text.ok_or_else(|| Fault::new(name.pos, ENOENT, ""));
            }
            Command::AddObject(name, create, object, comment) => {
                let table = self.table_mut(name)?;
                if table.object(object.kind(), &name.name).is_some() {
                    return match create {
                        true => Err(Fault::kernel(name.pos, EEXIST, "there is one of this name")),
                        false => Ok(String::new()),
                    };
                }
                if let nft::Object::Quota(q) = object
                    && q.used > q.bytes
                {
                    return Err(Fault::kernel(name.pos, "Invalid argument", "used is more than the quota"));
                }
                table.handles += 1;
                let fresh = ObjectState::new(&name.name, table.handles, object, comment.clone());
                table.objects.push(fresh);
            }
            Command::DeleteObject(name, kind) => {
                let table = self.table_mut(name)?;
                let Some(at) = table.object(*kind, &name.name) else {
                    return Err(Fault::kernel(name.pos, ENOENT, "there is no such object"));
                };
                let named =
                    |s: &Statement| matches!(s, Statement::Object(k, n, _) if k == kind && *n == name.name);
                if table.rules().any(|r| r.statements.iter().any(named)) {
                    return Err(Fault::kernel(name.pos, EBUSY, "delete the rules that use it first"));
                }
                table.objects.remove(at);
            }
            Command::ListObject(name, kind, reset) => {
                let missing = || Fault::new(name.pos, ENOENT, "");
                let text = self.seen(name)?.object_text(*kind, &name.name, o).ok_or_else(missing)?;
                if *reset {
                    let table = self.table_mut(name)?;
                    let at = table.object(*kind, &name.name);
                    at.map(|at| &mut table.objects[at]).into_iter().for_each(ObjectState::reset);
                }
                return Ok(text);
            }
            Command::ResetObjects(kind, family, table) => {
                if let Some(name) = table {
                    self.seen(name)?;
                }
                let text = self.list((nft::What::Objects(*kind), *family, table.as_ref()), o, clock);
                let one = |t: &TableState| {
                    family.is_none_or(|f| f == t.family)
                        && table.as_ref().is_none_or(|n| n.family == t.family && n.table == t.name)
                };
                let tables = self.tables.iter_mut().filter(|t| one(t));
                tables.flat_map(|t| &mut t.objects).filter(|b| b.kind == *kind).for_each(ObjectState::reset);
                return Ok(text);
            }
            Command::AddElement(name, create, elements, pos) => {
                self.add_elements(name, elements, *create, (*pos, clock))?;
            }
            Command::GetElement(name, elements, pos) => {
                let fresh = self.resolved(name, elements)?;
                let missing = || Fault::new(name.pos, ENOENT, "");
                let text = self.seen(name)?.got(&name.name, &fresh, o, clock).ok_or_else(missing)?;
                return text.ok_or_else(|| Fault::kernel(*pos, ENOENT, "it is not in the set"));
            }
            Command::DeleteElement(name, elements, pos) => {
                for element in self.resolved(name, elements)? {
                    let SetState { set, kept, .. } = self.set_mut(name)?;
                    if *kept != Kept::Plain {
                        if !kept.remove(set, &element.key, clock) {
                            return Err(Fault::kernel(*pos, ENOENT, "it is not in the set"));
                        }
                        continue;
                    }
                    let all = self.set_mut(name)?.set.elements_mut();
                    match super::sets::place(all, &element.key).ok() {
                        Some(at) => drop(all.remove(at)),
                        None => return Err(Fault::kernel(*pos, ENOENT, "it is not in the set")),
                    }
                }
            }
            Command::FlushRuleset(family) => {
                self.tables.retain(|t| family.is_some_and(|f| f != t.family));
            }
            Command::List(what, family, table) => {
                if let Some(name) = table {
                    self.seen(name)?;
                }
                return Ok(self.list((*what, *family, table.as_ref()), o, clock));
            }
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
                    objects: Vec::new(),
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
        let written = self.written(name.pos);
        let table = self.table_mut(name)?;
        if let Some(at) = table.chain(&name.name) {
            let old = &mut table.chains[at];
            if base.is_some() {
                old.written = written;
            }
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
        table.chains.push(ChainState { name, handle, base, comment, rules: Vec::new(), written });
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

    fn add_rule(
        &mut self,
        name: &Name,
        insert: bool,
        place: Place,
        rule: &Rule,
        pos: Pos,
    ) -> Result<(), Fault> {
        self.sets_there(name, rule)?;
        self.chain_mut(name)?;
        let written = self.written(pos);
        let table = self.table_mut(name)?;
        let fresh = rule_state(table, rule, written);
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
