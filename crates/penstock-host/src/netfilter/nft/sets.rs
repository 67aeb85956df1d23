//! Sets made, their elements entered, and the rules that name them.
//!
//! Follows: linux v6.12 `nf_tables_api.c` `nft_select_set_ops`, `nft_add_set_elem`, `nft_set_elem_expr_alloc`, `nft_dynset.c` `nft_dynset_init`;
//! nftables 1.0.6 `evaluate.c` `set_evaluate`, `expr_evaluate_set_elem`.

use super::change::{EEXIST, ENOENT};
use super::live::{Clock, Kept, Refused, SIZE};
use super::{Ruleset, SetState, TableState};
use penstock_lang::nft::{
    self, Dynset, Element, Expr, Fault, Kind, Name, Pos, RawElement, Rule, Set, Statement, value,
};
use std::collections::BTreeMap;

const ENOTSUPP: &str = "Operation not supported";

impl TableState {
    /// The place of an object.
    pub(super) fn object(&self, kind: Kind, name: &str) -> Option<usize> {
        self.objects.iter().position(|o| o.kind == kind && o.name == name)
    }
    pub(super) fn add_set(
        &mut self,
        name: &Name,
        set: &Set,
        comment: Option<String>,
        clock: Clock,
    ) -> Result<(), Fault> {
        if set.dynamic && set.interval {
            let help = "packets add single values: take off interval, or dynamic";
            return Err(Fault::kernel(name.pos, ENOTSUPP, help));
        }
        if set.states.len() > 2 {
            return Err(Fault::kernel(name.pos, "Argument list too long", "a set has two of them at most"));
        }
        no_time_and_count(&set.states, set, name.pos)?;
        self.handles += 1;
        let kept = Kept::of(set, clock);
        let handle = self.handles;
        self.sets.push(SetState { name: name.name.clone(), handle, set: set.clone(), comment, kept });
        Ok(())
    }
    /// A meter goes with its rule.
    pub(super) fn drop_meters(&mut self) {
        let used: Vec<String> = self
            .sets
            .iter()
            .filter(|s| s.set.meter && self.rules().any(|r| uses_set(r, &s.name)))
            .map(|s| s.name.clone())
            .collect();
        self.sets.retain(|s| !s.set.meter || used.contains(&s.name));
    }
}

/// Connections of an element are looked for by the worker, which elements with a time have not (`nft_set_elem_expr_alloc`).
fn no_time_and_count(states: &[Statement], set: &Set, pos: Pos) -> Result<(), Fault> {
    match set.timeouts && states.iter().any(|s| matches!(s, Statement::Count { .. })) {
        true => Err(Fault::kernel(pos, ENOTSUPP, "ct count and timeout do not go together")),
        false => Ok(()),
    }
}

/// Whether packets may change a set (`set->ops->update`): the kernel's hash table that grows is taken where nothing fits better.
fn is_changed_by_packets(set: &Set) -> bool {
    let short = set.key.len() == 1 && set.key[0].bits() <= 16 && set.data.is_none();
    match (set.interval, set.dynamic, set.timeouts) {
        (true, ..) => false,
        (_, true, _) => true,
        (_, _, true) => !(set.memory && set.size.is_some()),
        _ => set.size.is_none() && !short,
    }
}

/// An element's time, and what it counts, as the set has it.
fn declared(set: &Set, element: &Element, pos: Pos) -> Result<(), Fault> {
    let Some(more) = element.more.as_deref() else { return Ok(()) };
    if (more.timeout.is_some() || more.expires.is_some()) && !set.timeouts {
        return Err(Fault::kernel(pos, "Invalid argument", "the set has no flags timeout"));
    }
    let most = more.timeout.or(set.timeout);
    if more.expires.zip(most).is_some_and(|(expires, timeout)| expires > timeout) {
        return Err(Fault::kernel(pos, "Numerical result out of range", "expires is at most the timeout"));
    }
    if more.states.is_empty() {
        return Ok(());
    }
    if set.states.is_empty() && !set.dynamic {
        let help = "e.g. counter; in the set's block";
        return Err(Fault::new(pos, "missing statement in set declaration", help));
    }
    no_time_and_count(&more.states, set, pos)?;
    if set.states.is_empty() {
        return Ok(());
    }
    if set.states.len() != more.states.len() {
        let (n, m) = (set.states.len(), more.states.len());
        let message = format!("number of statements mismatch, set expects {n} but element has {m}");
        return Err(Fault::new(pos, message, "each element has what the set declares"));
    }
    let differs = more.states.iter().zip(&set.states).find(|(a, b)| kind(a) != kind(b));
    if let Some((has, want)) = differs {
        let message =
            format!("statement mismatch, element expects {}, but set has type {}", kind(has), kind(want));
        return Err(Fault::new(pos, message, "each element has what the set declares"));
    }
    Ok(())
}

fn kind(s: &Statement) -> &'static str {
    match s {
        Statement::Counter(..) => "counter",
        Statement::Limit(_) => "limit",
        Statement::Quota(_) => "quota",
        _ => "connlimit",
    }
}

fn why_not(refused: &Refused, pos: Pos) -> Fault {
    match refused {
        Refused::Exists => Fault::kernel(pos, EEXIST, "it is in the set"),
        Refused::Differs => Fault::kernel(pos, EEXIST, "it gives something else"),
        Refused::Full => {
            Fault::kernel(pos, "Too many open files in system", "the set is full: a greater size")
        }
    }
}

impl Ruleset {
    /// The rule as the kernel keeps it, with the sets that it changes bound to it, and its meters made.
    pub(super) fn bound(&mut self, name: &Name, rule: &Rule, pos: Pos, clock: Clock) -> Result<Rule, Fault> {
        let mut rule = rule.clone();
        for s in &mut rule.statements {
            match s {
                Statement::Quota(q) if q.used > q.bytes => {
                    return Err(Fault::kernel(pos, "Invalid argument", "used is more than the quota"));
                }
                Statement::Object(kind, object, at) => {
                    let there = self.find(name).and_then(|t| self.tables[t].object(*kind, object));
                    if there.is_none() {
                        return Err(Fault::kernel(
                            *at,
                            ENOENT,
                            &format!("nft add {} makes one", kind.word()),
                        ));
                    }
                }
                Statement::Dynset(d) => self.bind(name, d, pos, clock)?,
                _ => {}
            }
        }
        Ok(rule)
    }

    fn bind(&mut self, name: &Name, d: &mut Dynset, pos: Pos, clock: Clock) -> Result<(), Fault> {
        let key = nft::types(&d.key);
        let table = self.table_mut(name)?;
        if let Some(size) = d.meter {
            if table.sets.iter().any(|s| s.name == d.set) {
                return Err(Fault::kernel(d.pos, ENOTSUPP, "there is a set or a meter of this name"));
            }
            let (size, timeouts) = (Some(size), d.timeout.is_some());
            let mut set = Set::default();
            (set.key, set.size, set.timeouts) = (key, size, timeouts);
            (set.dynamic, set.meter) = (true, true);
            no_time_and_count(&d.states, &set, pos)?;
            let own = Name { name: d.set.clone(), pos: d.pos, ..name.clone() };
            return table.add_set(&own, &set, None, clock);
        }
        let Some(SetState { set, kept, .. }) =
            table.sets.iter_mut().find(|s| s.name == d.set && !s.set.meter)
        else {
            return Err(Fault::new(d.pos, ENOENT, "nft add set makes one"));
        };
        if set.key != key
            && let (Some(want), Some(has)) = (set.key.first(), key.first())
        {
            let message = format!(
                "datatype mismatch: expected {}, expression has type {}",
                named(&set.key, *want),
                named(&key, *has)
            );
            return Err(Fault::new(pos, message, "the set is for something else"));
        }
        d.resolve(set.data)?;
        if !is_changed_by_packets(set) {
            return Err(Fault::kernel(pos, ENOTSUPP, "give the set flags dynamic"));
        }
        if set.constant {
            return Err(Fault::kernel(pos, "Device or resource busy", "the set has flags constant"));
        }
        if d.timeout.is_some() && !set.timeouts {
            return Err(Fault::kernel(pos, ENOTSUPP, "give the set flags dynamic,timeout"));
        }
        if !d.states.is_empty() && !set.dynamic {
            return Err(Fault::kernel(pos, "Invalid argument", "give the set flags dynamic"));
        }
        if set.data == Some(nft::Type::Verdict) {
            return Err(Fault::kernel(pos, ENOTSUPP, "packets add no verdicts to a map"));
        }
        no_time_and_count(&d.states, set, pos)?;
        let differs = || d.states.iter().map(kind).ne(set.states.iter().map(kind));
        if !d.states.is_empty() && !set.states.is_empty() && differs() {
            return Err(Fault::kernel(pos, ENOTSUPP, "the set declares another statement"));
        }
        if !set.states.is_empty() {
            // What the set declares is not shown again in the rule.
            d.states.clear();
        }
        set.size = set.size.filter(|&size| size > 0).or(Some(SIZE));
        kept.hash(set, clock);
        Ok(())
    }

    /// Sets a rule names, and their types.
    pub(super) fn sets_there(&self, name: &Name, rule: &Rule) -> Result<(), Fault> {
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

    pub(super) fn resolved(&mut self, name: &Name, elements: &[RawElement]) -> Result<Vec<Element>, Fault> {
        let set = &self.set_mut(name)?.set;
        value::elements(elements, &set.key, set.data)
    }

    pub(super) fn add_elements(
        &mut self,
        name: &Name,
        elements: &[RawElement],
        create: bool,
        (pos, clock): (Pos, Clock),
    ) -> Result<(), Fault> {
        let fresh = self.resolved(name, elements)?;
        let SetState { set, kept, .. } = self.set_mut(name)?;
        for (element, raw) in fresh.iter().zip(elements) {
            declared(set, element, pos)?;
            let several = match &element.key {
                Expr::Range(..) => Some("range"),
                Expr::Prefix(..) => Some("prefix"),
                Expr::Name(name) if name.ends_with('*') => Some("prefix"),
                _ => None,
            };
            if let Some(several) = several
                && !set.interval
            {
                let message = format!(
                    "You must add 'flags interval' to your set declaration if you want to add {several} elements"
                );
                return Err(Fault::new(value::place(&raw.key), message, "{ type …; flags interval; }"));
            }
        }
        // What touches is one where the set says so, and what overlaps is refused elsewhere.
        let one_part = set.interval && set.key.len() == 1;
        if one_part && set.auto_merge && *kept == Kept::Plain {
            let size = set.size;
            let (mut whole, ty) = (set.elements.clone(), set.key[0]);
            fresh.into_iter().for_each(|element| merge(&mut whole, element, ty));
            if size.is_some_and(|size| whole.len() > size as usize) {
                return Err(why_not(&Refused::Full, pos));
            }
            *set.elements_mut() = whole;
            return Ok(());
        }
        if one_part && !set.auto_merge {
            overlaps(&set.elements, &fresh, pos)?;
        }
        if *kept != Kept::Plain {
            let (mut whole, mut all) = (set.clone(), kept.clone());
            for mut element in fresh {
                if one_part && set.auto_merge {
                    let (first, last) = touched(&whole.elements, &element.key);
                    let gone: Vec<Expr> = within(&whole.elements, first, last).cloned().collect();
                    let merged = value::as_written(first, last, set.key[0]);
                    if gone.iter().all(|key| *key != merged) {
                        for key in &gone {
                            all.remove(&mut whole, key, clock);
                        }
                        element.key = merged;
                    }
                }
                all.add(&mut whole, element, create, clock).map_err(|refused| why_not(&refused, pos))?;
            }
            (*set, *kept) = (whole, all);
            return Ok(());
        }
        // Those of this call, in their order, and which of them the set has not.
        let mut new: Vec<Element> = Vec::new();
        let mut seen: BTreeMap<Vec<(u128, u128)>, Vec<usize>> = BTreeMap::new();
        for element in fresh {
            let same = seen.entry(value::order(&element.key)).or_default();
            let twin = same.iter().map(|&i| &new[i]).find(|e| e.key == element.key);
            let there = place(&set.elements, &element.key).ok().map(|at| &set.elements[at]);
            match there.or(twin) {
                Some(_) if create => return Err(why_not(&Refused::Exists, pos)),
                Some(old) if old.data != element.data => {
                    return Err(why_not(&Refused::Differs, pos));
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
        if set.size.is_some_and(|size| set.elements.len() + new.len() > size as usize) {
            return Err(why_not(&Refused::Full, pos));
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

/// The range of a key with those of a set's elements that overlap it or lie beside it.
fn touched(all: &[Element], key: &Expr) -> (u128, u128) {
    let (mut first, mut last) = value::bounds(key);
    // Elements of such a set are apart: each end has one neighbour at most.
    for (from, to) in all.iter().map(|e| value::bounds(&e.key)) {
        if from <= last.saturating_add(1) && first <= to.saturating_add(1) {
            (first, last) = (first.min(from), last.max(to));
        }
    }
    (first, last)
}
/// The keys of the elements from one value to another.
fn within(all: &[Element], first: u128, last: u128) -> impl Iterator<Item = &Expr> {
    let inside = move |e: &&Element| {
        let (from, to) = value::bounds(&e.key);
        first <= from && to <= last
    };
    all.iter().filter(inside).map(|e| &e.key)
}
/// Adds to a set with `auto-merge`: what overlaps or touches becomes one, with the comment of the last.
//= nftables 1.0.6 src/intervals.c set_automerge
fn merge(all: &mut Vec<Element>, mut element: Element, ty: nft::Type) {
    let (first, last) = touched(all, &element.key);
    let merged = value::as_written(first, last, ty);
    if all.iter().any(|e| e.key == merged) {
        return;
    }
    all.retain(|e| {
        let (from, to) = value::bounds(&e.key);
        !(first <= from && to <= last)
    });
    element.key = merged;
    let at = place(all, &element.key).unwrap_or_else(|at| at);
    all.insert(at, element);
}
/// Whether ranges overlap, those of a command or those of a set, without being the same.
//= nftables 1.0.6 src/intervals.c set_overlap
fn overlaps(all: &[Element], fresh: &[Element], pos: Pos) -> Result<(), Fault> {
    let mut ranges: Vec<(u128, u128, bool)> = Vec::with_capacity(all.len() + fresh.len());
    for (list, is_fresh) in [(all, false), (fresh, true)] {
        ranges.extend(list.iter().map(|e| {
            let (from, to) = value::bounds(&e.key);
            (from, to, is_fresh)
        }));
    }
    ranges.sort_unstable();
    let mut before: Option<(u128, u128, bool)> = None;
    for range in ranges {
        if let Some(b) = before
            && range.0 <= b.1
            && (b.0, b.1) != (range.0, range.1)
            && (b.2 || range.2)
        {
            let said = match b.2 && range.2 {
                true => "conflicting intervals specified",
                false => "interval overlaps with an existing one",
            };
            return Err(Fault::new(pos, said, "auto-merge makes one of those that overlap"));
        }
        before = before.filter(|b| b.1 > range.1).or(Some(range));
    }
    Ok(())
}

/// Where the element with a key stands among those of a set, which are in order; an error says where it would.
pub(super) fn place(all: &[Element], key: &Expr) -> Result<usize, usize> {
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

pub(super) fn uses_set(rule: &Rule, name: &str) -> bool {
    let named = |e: &Expr| matches!(e, Expr::Named(n, _) if n == name);
    let changed = |s: &Statement| matches!(s, Statement::Dynset(d) if d.set == name);
    if rule.statements.iter().any(changed) {
        return true;
    }
    rule.statements.iter().flat_map(super::expressions).any(|e| super::any_part(e, &named))
}

/// A type, or several joined, as messages call them.
fn named(types: &[nft::Type], one: nft::Type) -> String {
    match types {
        [_] => one.described().to_owned(),
        all => {
            let all: Vec<&str> = all.iter().map(|t| t.described()).collect();
            format!("concatenation of ({})", all.join(", "))
        }
    }
}
