//! Filters and their actions: what was asked for, and which of it is more than a choice of class.

use super::{changed, said};
use crate::explain::ask::{Control, State, act};
use crate::explain::space::{hook, in_order};
use crate::facts::{Device, Facts};
use crate::filters::Filter;
use penstock_model::{Handle, Options, Value};
use std::collections::BTreeMap;

/// Numbers for what filters do besides choosing a class, by command: those of the first script, those of the second. The same number
/// stands for the same doing, or for one whose change is told already.
pub type Marks = [BTreeMap<usize, usize>; 2];

/// What differs, a line each; and the numbers for the comparison of traffic.
pub fn filters(a: &Facts, b: &Facts, one: &Device, two: &Device) -> (Vec<String>, Marks) {
    let (mut said, mut marks) = (Vec::new(), Marks::default());
    let (x, y) = (ordered(one), ordered(two));
    let asks = |f: &&Filter| asked(f);
    if x.iter().map(asks).eq(y.iter().map(asks)) {
        return (said, marks);
    }
    let mut lines = Lines { a, b, said: Vec::new() };
    let mut next = 0;
    // Pairs of filters that ask for the same packets at the same place.
    let mut free: Vec<&Filter> = y.clone();
    let mut pair = |f: &Filter, same: &dyn Fn(&Filter, &Filter) -> bool| {
        let at = free.iter().position(|g| same(f, g))?;
        Some(free.remove(at))
    };
    let whole = |f: &Filter, g: &Filter| asked(f) == asked(g);
    let place = |f: &Filter, g: &Filter| asked(f).0 == asked(g).0;
    let mut alone = Vec::new();
    for same in [&whole as &dyn Fn(&Filter, &Filter) -> bool, &place] {
        for f in if alone.is_empty() { x.clone() } else { std::mem::take(&mut alone) } {
            match pair(f, same) {
                Some(g) => {
                    if does(f) || does(g) {
                        next += 1;
                        marks[0].insert(f.step, next);
                        marks[1].insert(g.step, next);
                        lines.pair(f, g);
                    } else if !followed(f) {
                        lines.pair(f, g);
                    }
                }
                None => alone.push(f),
            }
        }
        if alone.is_empty() {
            break;
        }
    }
    let all = x.iter().chain(&y).copied();
    // Where a filter does something and goes on, only the same list of filters is surely the same.
    let strict =
        all.clone().any(|f| does(f) && goes_on(f)) || all.clone().any(|f| f.kind == "flow" && does(f));
    for (side, rest) in [(0, alone), (1, free)] {
        for f in rest {
            if does(f) {
                next += 1;
                marks[side].insert(f.step, next);
            }
            if strict || does(f) || !followed(f) {
                lines.lone(side, f);
            }
        }
    }
    said.extend(lines.said);
    (said, marks)
}

/// The filters in the order they are asked, place by place.
fn ordered(device: &Device) -> Vec<&Filter> {
    let mut all: Vec<&Filter> = device.filters.iter().collect();
    all.sort_by_key(|f| (hook(f.parent), f.chain, f.prio));
    let key = |f: &Filter| (hook(f.parent), f.chain, f.prio);
    all.chunk_by(|a, b| key(a) == key(b)).flat_map(in_order).collect()
}

type Asked = (
    (Handle, u32, u16, u16, String, u32, Vec<(&'static str, Value)>),
    Option<Handle>,
    Vec<(&'static str, Value)>,
);

/// All that a filter asks for: what packets, where; the class; the actions.
fn asked(f: &Filter) -> Asked {
    let acts = |name: &str| matches!(name, "action" | "police");
    let of = |actions: bool| -> Vec<(&'static str, Value)> {
        let own = f.options.iter().filter(|(name, _)| *name != "classid" && acts(name) == actions);
        own.map(|(name, value)| (name, value.clone())).collect()
    };
    // Only the handle of fw is something packets have.
    let handle = if f.kind == "fw" { f.handle } else { 0 };
    ((hook(f.parent), f.chain, f.prio, f.protocol, f.kind.clone(), handle, of(false)), f.classid, of(true))
}

/// Whether it does more than choose a class or drop.
fn does(f: &Filter) -> bool {
    f.actions().any(|(kind, o)| kind != "gact" || o.has("random") || o.has("index"))
}

/// Whether packets that fit are asked on.
fn goes_on(f: &Filter) -> bool {
    !matches!(act(f, &mut State::default()), Control::Ok | Control::Drop | Control::Elsewhere(_)) || !f.ends
}

/// Whether its packets are known as a set.
fn followed(f: &Filter) -> bool {
    matches!(f.kind.as_str(), "u32" | "fw" | "flower" | "basic" | "matchall")
}

struct Lines<'a> {
    a: &'a Facts,
    b: &'a Facts,
    said: Vec<String>,
}

impl Lines<'_> {
    fn words<'f>(facts: &'f Facts, f: &Filter) -> &'f [String] {
        let words = &facts.steps[f.step].words;
        let at = words.iter().position(|w| *w == f.kind).unwrap_or(0);
        &words[at..]
    }
    /// Two filters in the same place.
    fn pair(&mut self, f: &Filter, g: &Filter) {
        if asked(f) == asked(g) {
            return;
        }
        let begins = |word: &str| word.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
        let (x, y) = (Self::words(self.a, f), Self::words(self.b, g));
        let none = Options::new();
        let both = said(x, y, &begins).or_else(|| changed(&f.options, &g.options));
        let both = both.or_else(|| changed(&none, &g.options));
        let Some((old, new)) = both else { return };
        self.said.push(format!("{}: {old} -> {new}", place(f)));
    }
    /// One that has no other.
    fn lone(&mut self, side: usize, f: &Filter) {
        let facts = if side == 0 { self.a } else { self.b };
        let words = Self::words(facts, f).join(" ");
        let (old, new) = if side == 0 { (words.as_str(), "none") } else { ("none", words.as_str()) };
        self.said.push(format!("{}: {old} -> {new}", place(f)));
    }
}

fn place(f: &Filter) -> String {
    let parent = match f.parent.0 {
        0xffff_0000 | 0xffff_fff1 | 0xffff_fff2 => "ingress".to_owned(),
        0xffff_fff3 => "egress".to_owned(),
        _ => f.parent.to_string(),
    };
    let prio = if f.auto { String::new() } else { format!(" prio {}", f.prio) };
    format!("filter at {parent}{prio}")
}
