//! Which packets reach which class: all packets of a device in parts, and what is left.

use super::chains;
use super::cover::{Index, Left, Patience, left};
use super::cube::{Cube, Names, Place, words};
use super::diagram::expand;
use super::space::{Entry, Space, To};
use super::{Probe, device};
use crate::facts::{Device, Facts};
use penstock_model::Handle;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// More parts than these are not made.
const MAX_PARTS: usize = 400_000;
/// Earlier parts that are named one by one.
const NAMED: usize = 64;

/// One part: the packets of a set that no earlier part has.
#[derive(Clone, Debug)]
pub struct Part {
    /// The packets in words, those of earlier parts among them.
    pub packets: String,
    /// Where they go: a class, `direct`, `dropped`, a kind of queue, `to` another device.
    pub class: String,
    /// The line of the filter that decides; 0 for what is left to a default.
    pub line: u32,
    /// Numbers of earlier parts that have some of these packets; at most 64.
    pub except: Vec<usize>,
    /// How many more of them there are.
    pub more: usize,
    /// Whether any packet is left to this part.
    pub left: Reached,
    /// A packet of this part.
    pub example: Option<Probe>,
}

/// Whether packets reach a part.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// Some do.
    Yes,
    /// None does: earlier parts have them all.
    Never,
    /// That would take too long to find out.
    Unknown,
}

/// All packets that leave by a device.
pub struct Partition {
    pub(super) entries: Vec<Entry>,
    pub(super) names: Names,
    /// The parts in the order they are asked.
    pub parts: Vec<Part>,
    /// Lines of filters that never match anything.
    pub never: Vec<u32>,
    /// Whether there were too many parts to be all here.
    pub cut: bool,
}

/// All parts of a device's packets.
///
/// # Errors
/// The script puts no qdisc on the device.
pub fn partition(facts: &Facts, dev: &str) -> Result<Partition, String> {
    let mut all = entries(facts, dev, Names::default())?;
    let mut index = Index::default();
    let mut parts = Vec::new();
    let mut live = BTreeSet::new();
    let mut patience = Patience::new(all.entries.len());
    for (at, entry) in all.entries.iter().enumerate() {
        let meeting = index.meeting(&entry.cube);
        let rest = {
            let others: Vec<&Cube> = meeting.iter().map(|&i| index.get(i)).collect();
            left(&entry.cube, &others, &mut patience)
        };
        let (reached, example) = match &rest {
            Left::Nothing => (Reached::Never, None),
            Left::Some(cube) => (Reached::Yes, Probe::of(cube, &all.names)),
            Left::Unknown => (Reached::Unknown, None),
        };
        if reached != Reached::Never {
            live.extend(entry.by);
        }
        index.push(&entry.cube);
        let (line, class) = (entry.by.map_or(0, |s| facts.steps[s].line), place(&entry.to));
        let more = meeting.len().saturating_sub(NAMED);
        let except = meeting.into_iter().take(NAMED).collect();
        debug_assert_eq!(at, parts.len());
        parts.push(Part {
            packets: words(&entry.cube, &all.names),
            class,
            line,
            except,
            more,
            left: reached,
            example,
        });
    }
    // A filter may stand in several sets, or in none where it contradicts itself.
    let facts = facts.having(dev);
    let device = device(facts, dev).ok_or_else(|| format!("the script puts no qdisc on {dev}"))?;
    let mut never: Vec<u32> = device
        .filters
        .iter()
        .filter(|f| f.parent.major() != 0xffff && !live.contains(&f.step))
        // What only leads elsewhere, or goes on, decides nothing itself.
        .filter(|f| f.ends || f.classid.is_some())
        .map(|f| facts.steps[f.step].line)
        .collect();
    never.sort_unstable();
    never.dedup();
    (all.parts, all.never) = (parts, never);
    Ok(all)
}

/// The sets alone, for comparing: with the numbers that names have already.
pub(super) fn entries(facts: &Facts, dev: &str, names: Names) -> Result<Partition, String> {
    let facts = facts.having(dev);
    let device = device(facts, dev).ok_or_else(|| format!("the script puts no qdisc on {dev}"))?;
    let mut space = Space::new(device, facts.kernel);
    space.names = names;
    devices(facts, device, &mut space.names);
    let (ways, cut) = chains::ways(facts, dev, &mut space.names);
    let ways = alive(ways);
    space.cut = cut;
    let mut entries: Vec<Entry> = Vec::new();
    if ways.is_empty() {
        let forwarded = super::ask::State { priority: super::ask::Priority::Tos(0, 0), ..Default::default() };
        // Only the priority depends on where a packet comes from.
        let own = space.root(&super::ask::State::default());
        let priority = own.iter().any(|e| e.cube.0.iter().any(|b| b.0 == Place::Priority));
        if priority {
            let forwarded = space.root(&forwarded);
            for (n, list) in [(1, forwarded), (0, own)] {
                let origin = Cube::of(Place::Forwarded, 1, n);
                entries
                    .extend(list.into_iter().filter_map(|e| Some(Entry { cube: e.cube.and(&origin)?, ..e })));
            }
        } else {
            entries = own;
        }
    }
    if !ways.is_empty() {
        let ways: Vec<_> = ways.into_iter().map(|w| (w.cube, w.fate)).collect();
        let all = expand(&ways, &Vec::new(), MAX_PARTS, &mut |fate| {
            if let Some(step) = fate.dropped {
                return vec![(Cube::all(), (To::None("dropped"), Some(step)))];
            }
            let mut list = space.root(&fate.state);
            if fate.state.translated {
                list.iter_mut().for_each(|e| e.cube = translated(&e.cube, &mut space.names));
            }
            Entry::list(list)
        });
        space.cut |= all.is_none();
        entries = Entry::of(all.unwrap_or_default());
    }
    let Space { names, cut, .. } = space;
    Ok(Partition { entries, names, parts: Vec::new(), never: Vec::new(), cut })
}

/// Every device that rules and filters name: all must be known before the first set is made, for `eth+` means every `eth1`.
pub(super) fn devices(facts: &Facts, device: &Device, names: &mut Names) {
    for name in &facts.foreign {
        names.input(name);
    }
    for input in facts.netfilter.rules.iter().filter_map(|r| r.rule.input.as_ref()) {
        if !(input.wildcard && input.name.is_empty()) {
            names.known(input);
        }
    }
    for dev in device.filters.iter().filter_map(|f| f.options.str("indev")) {
        names.input(dev);
    }
}

/// Without the ways that no packet goes.
fn alive(ways: Vec<chains::Passed>) -> Vec<chains::Passed> {
    let mut index = Index::default();
    let mut patience = Patience::new(ways.len());
    let mut out: Vec<chains::Passed> = Vec::new();
    for way in ways {
        let meeting = index.meeting(&way.cube);
        let others: Vec<&Cube> = meeting.iter().map(|&i| index.get(i)).collect();
        if left(&way.cube, &others, &mut patience) != Left::Nothing {
            index.push(&way.cube);
            out.push(way);
        }
    }
    out
}

/// The source that filters see is not the one the packet came with.
fn translated(cube: &Cube, names: &mut Names) -> Cube {
    let mut out = Cube::all();
    for &(place, mask, value) in &cube.0 {
        let one = if place == Place::Word(12) {
            let text = words(&Cube::of(place, mask, value), names);
            Cube::of(Place::Other(names.other(&format!("translated {text}"))), 1, 1)
        } else {
            Cube::of(place, mask, value)
        };
        out = out.and(&one).unwrap_or_default();
    }
    out
}

/// Where packets go, in a word.
pub(super) fn place(to: &To) -> String {
    match to {
        To::Class(id) => id.to_string(),
        To::None(what) => (*what).to_owned(),
        To::Device(dev) => format!("to {dev}"),
    }
}

impl Partition {
    /// The part a packet is in: its number.
    pub fn of(&self, probe: &Probe) -> Option<usize> {
        self.entries.iter().position(|e| e.cube.holds(probe, &self.names))
    }
    /// The class of a part; `None` where it leads to none.
    pub fn class(&self, part: usize) -> Option<Handle> {
        match self.entries.get(part)?.to {
            To::Class(id) => Some(id),
            _ => None,
        }
    }
    /// As a table: parts in the order they are asked, then what comes to each class, then what never matches.
    pub fn text(&self) -> String {
        let mut out = format!("{:<5} {:<10} {:<14} packets\n", "part", "line", "to");
        for (at, part) in self.parts.iter().enumerate() {
            let place = if part.line > 0 { part.line.to_string() } else { "default".to_owned() };
            let mut packets = part.packets.clone();
            if !part.except.is_empty() && part.left != Reached::Never {
                packets += &format!("; without {}", listed(&part.except, part.more));
            }
            match part.left {
                Reached::Never => {
                    packets += &format!("; never: parts {} have them all", listed(&part.except, part.more))
                }
                Reached::Unknown => packets += "; perhaps none is left",
                Reached::Yes => {}
            }
            out += &format!("{:<5} {:<10} {:<14} {packets}\n", at + 1, place, part.class);
        }
        out.push('\n');
        for (class, parts) in self.classes() {
            let numbers: Vec<usize> = parts.iter().copied().take(NAMED).collect();
            out += &format!("{class:<16} parts {}\n", listed(&numbers, parts.len() - numbers.len()));
        }
        let lines: Vec<String> = self.never.iter().map(u32::to_string).collect();
        if !lines.is_empty() {
            out += &format!("\nfilters that never match anything: line {}\n", lines.join(", "));
        }
        for (n, text) in self.names.others.iter().enumerate().take(20) {
            out += &format!("{}[{text}] cannot be told from the headers\n", if n == 0 { "\n" } else { "" });
        }
        if self.cut {
            out += "\nthere are more parts than are shown here\n";
        }
        out
    }
    /// The parts that come to each class.
    pub fn classes(&self) -> BTreeMap<String, Vec<usize>> {
        let mut classes: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, part) in self.parts.iter().enumerate().filter(|p| p.1.left != Reached::Never) {
            classes.entry(part.class.clone()).or_default().push(at);
        }
        classes
    }
    /// For programs.
    pub fn json(&self) -> Value {
        let one = |n: &usize| n + 1;
        let part = |p: &Part| {
            let mut v = json!({
                "line": p.line, "packets": p.packets, "to": p.class,
                "without": p.except.iter().map(one).collect::<Vec<_>>(), "without_more": p.more,
                "reached": match p.left { Reached::Yes => "yes", Reached::Never => "never", Reached::Unknown => "unknown" },
            });
            if let Some(example) = &p.example {
                v["example"] = json!(example.text());
            }
            v
        };
        let classes: BTreeMap<String, Vec<usize>> =
            self.classes().into_iter().map(|(c, p)| (c, p.iter().map(one).collect())).collect();
        json!({
            "parts": self.parts.iter().map(part).collect::<Vec<_>>(), "classes": classes,
            "never": self.never, "conditions": self.names.others, "complete": !self.cut,
        })
    }
}

fn listed(parts: &[usize], more: usize) -> String {
    let shown: Vec<String> = parts.iter().take(8).map(|n| (n + 1).to_string()).collect();
    let hidden = parts.len().saturating_sub(8) + more;
    if hidden > 0 { format!("{} and {hidden} more", shown.join(", ")) } else { shown.join(", ") }
}
