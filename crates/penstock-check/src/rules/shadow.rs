//! PS18x: filters that others stand before.

use crate::facts::{Facts, Step};
use crate::filters::{ALL, Bits, Field, Filter};
use crate::finding::{Found, Level, Rule, Say};
use penstock_model::Handle;
use std::collections::BTreeMap;

pub const RULES: &[Rule] = &[
    Rule {
        code: "PS180",
        severity: Level::Warning,
        about: "a filter that no packet reaches",
        why: "Filters are asked in the order of their priorities, the lowest number first, and those of one priority as they were given; the first that fits decides. A \
            filter whose packets all fit an \
              earlier one never matches. Without `prio` the kernel counts down from 49152, so that the filter given last is asked first. Put the narrow filter \
         before the wide one.",
        find: shadowed,
    },
    Rule {
        code: "PS181",
        severity: Level::Warning,
        about: "the same filter twice",
        why: "The second never matches, and a later change or deletion of one leaves the other.",
        find: twice,
    },
];

/// What is looked at, apart from the values.
type Shape = (Handle, u32, u16, Vec<(Field, u32)>);

/// For each filter that an earlier one covers wholly: its number, the other's.
pub fn covered(filters: &[Filter]) -> Vec<(usize, usize)> {
    let mut order: Vec<usize> = (0..filters.len()).filter(|&i| filters[i].reached).collect();
    order.sort_by_key(|&i| (filters[i].prio, i));
    // Those asked before, by what they look at, then by the values.
    let mut seen: BTreeMap<Shape, BTreeMap<Vec<u32>, usize>> = BTreeMap::new();
    let mut shapes: BTreeMap<(Handle, u32), Vec<Shape>> = BTreeMap::new();
    let mut all = Vec::new();
    for i in order {
        let b = &filters[i];
        let here = (b.parent, b.chain);
        let mut first: Option<usize> = None;
        for shape in shapes.get(&here).map_or(&[][..], Vec::as_slice) {
            if shape.2 != ALL && shape.2 != b.protocol {
                continue;
            }
            let values: Option<Vec<u32>> = shape
                .3
                .iter()
                .map(|(field, mask)| {
                    let bits = b.tests.get(field).copied().unwrap_or(Bits { mask: 0, value: 0 });
                    (mask & !bits.mask == 0).then_some(bits.value & mask)
                })
                .collect();
            let Some(&a) = values.and_then(|v| seen.get(shape)?.get(&v)) else { continue };
            // flower asks those of one priority mask by mask, in an order of its own.
            let ordered =
                filters[a].prio < b.prio || filters[a].kind != "flower" || shape.3.len() == b.tests.len();
            if ordered && first.is_none_or(|f| a < f) {
                first = Some(a);
            }
        }
        if let Some(a) = first {
            all.push((i, a));
        }
        if b.exact && b.ends {
            let shape: Shape =
                (b.parent, b.chain, b.protocol, b.tests.iter().map(|(f, t)| (*f, t.mask)).collect());
            let values = b.tests.values().map(|t| t.value & t.mask).collect();
            let known = shapes.entry(here).or_default();
            if !known.contains(&shape) {
                known.push(shape.clone());
            }
            seen.entry(shape).or_default().entry(values).or_insert(i);
        }
    }
    all
}

fn pairs(facts: &Facts) -> Vec<(&Filter, &Filter)> {
    let of = |d: &'_ crate::facts::Device| covered(&d.filters);
    facts
        .devices
        .iter()
        .flat_map(|d| of(d).into_iter().map(move |(b, a)| (&d.filters[b], &d.filters[a])))
        .collect()
}

fn same_place(a: &Filter, b: &Filter) -> bool {
    a.tests == b.tests && a.protocol == b.protocol && b.exact && a.classid == b.classid
}

fn does_same(a: &Filter, b: &Filter) -> bool {
    a.classid == b.classid && a.actions().next().is_none() && b.actions().next().is_none()
}

/// Where a command is known to stand.
fn here<'a>(facts: &Facts, step: &'a Step) -> (&'a String, u32) {
    (&step.file, facts.known_line(step))
}

fn shadowed(facts: &Facts, found: &mut Found) {
    for (b, a) in pairs(facts) {
        if does_same(a, b) {
            continue;
        }
        let (first, second) = (&facts.steps[a.step], &facts.steps[b.step]);
        // The narrow one after the wide one: said where the wide one stands only if it came later and went before by its number.
        let chosen = if a.auto || b.auto { " (chosen by the kernel, counting down)" } else { "" };
        let wide = if a.takes_all() { "takes everything" } else { "takes all of its packets" };
        let to = |f: &Filter| f.classid.map_or("its action".to_owned(), |c| c.to_string());
        let line = facts.known_line(first);
        let reason = format!(
            "The filter of line {line} (prio {}{chosen}) is asked first, {wide} and sends them to {}; this one (prio {}) would send them to {}.",
            a.prio,
            to(a),
            b.prio,
            to(b)
        );
        let with = |step: &Step, prio: u16| {
            step.with(if step.has("pref") { "pref" } else { "prio" }, &prio.to_string())
        };
        // Where both look at the same, or one command makes both, no order helps.
        let alike =
            a.tests == b.tests && a.protocol == b.protocol || (&first.file, line) == here(facts, second);
        let (fix, of) = match (b.prio, a.auto || b.auto) {
            _ if alike => (String::new(), b.step),
            (_, true) => (second.with("prio", "1"), b.step),
            (_, false) if a.prio > 1 => (with(second, a.prio - 1), b.step),
            _ => (with(first, b.prio.saturating_add(1)), a.step),
        };
        let message = format!("no packet reaches this filter: line {line} {wide} first");
        found.at(b.step, &b.kind, Say::new(message, reason, fix).fixing(of));
    }
}

fn twice(facts: &Facts, found: &mut Found) {
    for (b, a) in pairs(facts) {
        if does_same(a, b) && same_place(a, b) {
            let line = facts.known_line(&facts.steps[a.step]);
            let reason = format!(
                "Line {line} has the same match and the same class {}.",
                a.classid.map_or("none".to_owned(), |c| c.to_string())
            );
            let step = &facts.steps[b.step];
            let once = facts.steps.iter().filter(|s| s.line == step.line && s.file == step.file).count() == 1;
            let own = step.file == facts.name && once && step.calls.is_empty();
            let edit = own.then(|| crate::fix::removal(&facts.source, step.line)).flatten();
            found.at(
                b.step,
                &b.kind,
                Say::new(format!("line {line} already has this filter"), reason, "").edit(edit),
            );
        }
    }
}
