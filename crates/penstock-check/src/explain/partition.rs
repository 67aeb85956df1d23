//! Which packets reach which class: all packets of a device in parts, and what is left.

use super::ask::Translated;
use super::chains;
use super::cover::{Index, Left, Patience, left};
use super::cube::{Cube, Names, Place, words};
use super::diagram::{expand, tidy};
use super::space::{Entry, INGRESS, Space, To, hook};
use super::words::{differ_at, in_one};
use super::{Probe, device, feed};
use crate::facts::{Device, Facts};
use crate::filters::{Filter, IP, IP6, QINQ, VLAN};
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
    /// What is said of rules that are not followed.
    pub unfollowed: Option<String>,
}

/// All parts of a device's packets.
///
/// # Errors
/// The script puts no qdisc on the device.
pub fn partition(facts: &Facts, dev: &str) -> Result<Partition, String> {
    let mut all = entries(facts, dev, Names::default())?;
    let mut index = Index::default();
    let mut parts = Vec::new();
    let mut live = BTreeSet::<usize>::new();
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
            live.extend(entry.by.iter().chain(&entry.through));
        }
        index.push(&entry.cube);
        let line = match (&entry.to, entry.by) {
            (To::Fell(step, line), _) => facts.rule_line(*step, *line),
            (_, by) => by.map_or(0, |s| facts.known_line(&facts.steps[s])),
        };
        let class = place(&entry.to);
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
        .map(|f| facts.known_line(&facts.steps[f.step]))
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
    let feeds = feed::feeds(facts, dev);
    let ingress = !feeds.is_empty() && feeds.iter().all(|f| f.ingress);
    let from = feeds.iter().find(|f| !f.ingress).map_or(dev, |f| f.device.name.as_str());
    let chains::Ways { all, cut, lost } = match ingress {
        true => chains::Ways { all: Vec::new(), cut: false, lost: Vec::new() },
        false => chains::ways(facts, from, &mut space.names),
    };
    let filters = feeds.iter().flat_map(|f| &f.device.filters).chain(&device.filters);
    let ways = alive(plain(all, filters.into_iter().any(asks_connection)));
    space.cut = cut;
    let mut entries: Vec<Entry> = Vec::new();
    if ingress {
        space.names.conn |= feeds.iter().any(feed::Feed::asks_connection);
        entries = space.root(&feed::arrived(&feeds));
    } else if ways.is_empty() {
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
        let all = expand(&ways, &Vec::new(), MAX_PARTS, &mut |fate| {
            if let Some((step, line)) = fate.dropped {
                return vec![(Cube::all(), (To::Fell(step, line), None, Vec::new()))];
            }
            let mut list = space.root(&fate.state);
            if let Some(source) = fate.state.translated {
                list = list
                    .into_iter()
                    .filter_map(|e| {
                        Some(Entry { cube: translated(&e.cube, source, from, &mut space.names)?, ..e })
                    })
                    .collect();
            }
            Entry::list(list)
        });
        space.cut |= all.is_none();
        entries = Entry::of(all.unwrap_or_default());
    }
    let Space { names, cut, .. } = space;
    let unfollowed = super::unfollowed(facts, &lost);
    Ok(Partition { entries, names, parts: Vec::new(), never: Vec::new(), cut, unfollowed })
}

/// The same of what the device takes in: where its filters send it.
pub(super) fn arriving(facts: &Facts, dev: &str, names: Names) -> Partition {
    let device = facts.having(dev).shaped().filter(|d| d.name == dev).last();
    let Some(device) = device.filter(|d| d.filters.iter().any(|f| hook(f.parent) == INGRESS)) else {
        let entries =
            vec![Entry { cube: Cube::all(), to: To::None("taken in"), by: None, through: Vec::new() }];
        return Partition {
            entries,
            names,
            parts: Vec::new(),
            never: Vec::new(),
            cut: false,
            unfollowed: None,
        };
    };
    let mut space = Space::new(device, facts.kernel);
    space.names = names;
    devices(facts, device, &mut space.names);
    let entries = space.arriving();
    let Space { names, cut, .. } = space;
    Partition { entries, names, parts: Vec::new(), never: Vec::new(), cut, unfollowed: None }
}

/// Every device that rules and filters name: all must be known before the first set is made, for `eth+` means every `eth1`.
pub(super) fn devices(facts: &Facts, device: &Device, names: &mut Names) {
    for name in &facts.foreign {
        names.input(name);
    }
    for input in facts.netfilter.standing.rules.iter().filter_map(|r| r.rule.input.as_ref()) {
        if !(input.wildcard && input.name.is_empty()) {
            names.known(input);
        }
    }
    super::nft::devices(&facts.netfilter.of_nft.tables, names);
    for dev in device.filters.iter().filter_map(|f| f.options.str("indev")) {
        names.input(dev);
    }
    names.tags |= device.filters.iter().any(asks_tags);
}

/// Whether a filter looks at VLAN tags.
fn asks_tags(filter: &Filter) -> bool {
    let tag = |name: &str| name.starts_with("vlan_") || name.starts_with("cvlan_");
    matches!(filter.protocol, VLAN | QINQ)
        || filter.options.iter().any(|(name, _)| tag(name))
        || filter.options.list("ematches").iter().any(super::ematch::asks_tag)
        || filter.kind == "flow" && filter.options.u32("keys").is_some_and(|keys| keys >> 16 & 1 != 0)
}

/// Whether a filter's actions look at the connection's mark.
fn asks_connection(filter: &Filter) -> bool {
    filter.actions().any(|(kind, _)| matches!(kind, "connmark" | "ctinfo"))
}

/// The ways in fewer sets: where no filter looks at the connection's mark, it makes no difference behind the hooks.
fn plain(ways: Vec<(Cube, chains::Left)>, connection: bool) -> Vec<(Cube, chains::Left)> {
    let one = |(cube, mut fate): (Cube, chains::Left)| {
        if !connection {
            fate.state.conn = (0, 0);
        }
        (cube, fate)
    };
    tidy(ways.into_iter().map(one).collect())
}

/// Without the ways that no packet goes.
fn alive(ways: Vec<(Cube, chains::Left)>) -> Vec<(Cube, chains::Left)> {
    let mut index = Index::default();
    let mut patience = Patience::new(ways.len());
    let mut out = Vec::new();
    for way in ways {
        let meeting = index.meeting(&way.0);
        let others: Vec<&Cube> = meeting.iter().map(|&i| index.get(i)).collect();
        if left(&way.0, &others, &mut patience) != Left::Nothing {
            index.push(&way.0);
            out.push(way);
        }
    }
    out
}

/// The source that filters see is not the one the packet came with: it is `source`, or an address of `dev` that nobody says.
fn translated(cube: &Cube, source: Translated, dev: &str, names: &mut Names) -> Option<Cube> {
    // The words of the header that have the source, from the first, and what they have become.
    let (ethertype, first, words_of, to) = match source {
        Translated::Four(to) => (IP, 12, 1, to.map(u128::from)),
        Translated::Six(to) => (IP6, 8, 4, to),
    };
    let mut out = Cube::all();
    let mut asked = Cube::all();
    for &(place, mask, value) in &cube.0 {
        let one = Cube::of(place, mask, value);
        let at = match place {
            Place::Word(off) if (first..first + 4 * words_of).contains(&off) && off % 4 == 0 => off,
            _ => {
                out = out.and(&one)?;
                continue;
            }
        };
        match to {
            Some(to) => {
                let word = (to >> (32 * (words_of - 1 - (at - first) / 4))) as u32;
                if (word ^ value) & mask != 0 {
                    return None;
                }
            }
            None => asked = asked.and(&one)?,
        }
    }
    if asked != Cube::all() {
        let asked = if ethertype == IP6 { asked.and(&Cube::ethertype(IP6))? } else { asked };
        let text = words(&asked, names);
        let text = text.trim_start_matches("ipv6, ").trim_start_matches("src ");
        let text = format!("{dev}'s own address is within {text}");
        out = out.and(&Cube::of(Place::Other(names.other(&text)), 1, 1))?;
    }
    Some(out)
}

/// Where packets go, in a word.
pub(super) fn place(to: &To) -> String {
    match to {
        To::Class(id) => id.to_string(),
        To::None(what) => (*what).to_owned(),
        To::Device(dev) => format!("to {dev}"),
        To::Among(first, last) if first == last => first.to_string(),
        To::Among(first, last) => format!("{first}-{last}"),
        To::Tin(name) => name.clone(),
        To::Fell(..) => "dropped".to_owned(),
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
        let (rows, row_of) = self.rows();
        for (at, row) in rows.iter().enumerate() {
            let part = &self.parts[row.parts[0]];
            let place = if part.line > 0 { part.line.to_string() } else { "default".to_owned() };
            let mut packets = row.packets.clone();
            let mut except: Vec<usize> = row
                .parts
                .iter()
                .flat_map(|p| &self.parts[*p].except)
                .filter_map(|p| row_of[*p].filter(|r| *r != at))
                .collect();
            except.sort_unstable();
            except.dedup();
            let more = row.parts.iter().map(|p| self.parts[*p].more).max().unwrap_or(0);
            if !except.is_empty() {
                packets += &format!("; without {}", listed(&except, more));
            }
            if row.parts.iter().all(|p| self.parts[*p].left == Reached::Unknown) {
                packets += "; perhaps none is left";
            }
            out += &format!("{:<5} {:<10} {:<14} {packets}\n", at + 1, place, part.class);
        }
        out.push('\n');
        let mut classes: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            classes.entry(self.parts[row.parts[0]].class.as_str()).or_default().push(at);
        }
        for (class, parts) in classes {
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
        if let Some(said) = &self.unfollowed {
            out += &format!("\n{said}\n");
        }
        out
    }
    /// Lines for people: parts that no packet reaches are left out, and what holds of forwarded packets and of the machine's own
    /// alike is said once. With them the line of each part.
    fn rows(&self) -> (Vec<Row>, Vec<Option<usize>>) {
        let mut rows: Vec<Row> = Vec::new();
        let mut row_of = vec![None; self.parts.len()];
        let mut known: BTreeMap<(u32, &str, String), usize> = BTreeMap::new();
        for (at, part) in self.parts.iter().enumerate().filter(|p| p.1.left != Reached::Never) {
            let origin = self.entries.get(at).map_or((0, 0), |e| e.cube.at(Place::Forwarded));
            let cube = self
                .entries
                .get(at)
                .map(|e| Cube(e.cube.0.iter().filter(|b| b.0 != Place::Forwarded).copied().collect()));
            let both = cube.map_or_else(|| part.packets.clone(), |c| words(&c, &self.names));
            let key = (part.line, part.class.as_str(), both.clone());
            // What is asked before this part and is said behind that row must have none of its packets.
            let taken = |row: usize| {
                let first = rows[row].parts.first().copied().unwrap_or(at);
                let meets = |k: usize| match (self.entries.get(k), self.entries.get(at)) {
                    (Some(earlier), Some(own)) => earlier.cube.and(&own.cube).is_some(),
                    _ => true,
                };
                (first..at).any(|k| row_of[k].is_some_and(|r| r > row) && meets(k))
            };
            let other = known
                .get(&key)
                .copied()
                .filter(|row| origin.0 != 0 && rows[*row].origin == Some(1 - origin.1) && !taken(*row));
            match other {
                Some(row) => {
                    rows[row].origin = None;
                    rows[row].packets = both;
                    rows[row].parts.push(at);
                    row_of[at] = Some(row);
                }
                None => {
                    row_of[at] = Some(rows.len());
                    known.insert(key, rows.len());
                    let origin = (origin.0 != 0).then_some(origin.1);
                    rows.push(Row { packets: part.packets.clone(), parts: vec![at], origin });
                }
            }
        }
        self.merged(rows, row_of)
    }
    /// Rows behind one another that say the same of other numbers of one field are one row.
    fn merged(&self, rows: Vec<Row>, mut row_of: Vec<Option<usize>>) -> (Vec<Row>, Vec<Option<usize>>) {
        let cube = |row: &Row| -> Option<Cube> {
            let whole = &self.entries.get(row.parts[0])?.cube;
            let told = |b: &&(Place, u32, u32)| row.origin.is_some() || b.0 != Place::Forwarded;
            Some(Cube(whole.0.iter().filter(told).copied().collect()))
        };
        let cubes: Vec<Option<Cube>> = rows.iter().map(cube).collect();
        let alike = |a: &Row, b: &Row| {
            let (one, two) = (&self.parts[a.parts[0]], &self.parts[b.parts[0]]);
            (one.line, &one.class, a.origin) == (two.line, &two.class, b.origin)
        };
        let known = |parts: &[usize]| parts.iter().all(|p| self.parts[*p].left != Reached::Unknown);
        let mut out: Vec<Row> = Vec::new();
        let mut new_of = vec![0; rows.len()];
        let mut rows: Vec<Option<Row>> = rows.into_iter().map(Some).collect();
        let mut at = 0;
        while let Some(Some(first)) = rows.get(at) {
            let mut place = None;
            let mut group: Vec<Cube> = cubes[at].iter().cloned().collect();
            for next in at + 1..rows.len() {
                let (Some(row), Some(own), Some(begin)) = (&rows[next], &cubes[next], &cubes[at]) else {
                    break;
                };
                let differs = differ_at(begin, own);
                if differs.is_none()
                    || place.is_some_and(|p| Some(p) != differs)
                    || !alike(first, row)
                    || !known(&row.parts)
                {
                    break;
                }
                place = differs;
                group.push(own.clone());
            }
            let whole =
                (group.len() > 1 && known(&first.parts)).then(|| in_one(&group, &self.names)).flatten();
            let end = at + if whole.is_some() { group.len() } else { 1 };
            let mut all = rows[at..end].iter_mut().filter_map(Option::take);
            if let Some(mut row) = all.next() {
                all.for_each(|r| row.parts.extend(r.parts));
                row.packets = whole.unwrap_or(row.packets);
                new_of[at..end].fill(out.len());
                out.push(row);
            }
            at = end;
        }
        for row in row_of.iter_mut().flatten() {
            *row = new_of[*row];
        }
        (out, row_of)
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
            "never": self.never, "conditions": self.names.others, "complete": !self.cut, "not_followed": self.unfollowed,
        })
    }
}

/// A line of the table.
struct Row {
    packets: String,
    parts: Vec<usize>,
    /// Whether its packets are forwarded ones (1) or the machine's own (0); `None`: both.
    origin: Option<u32>,
}

fn listed(parts: &[usize], more: usize) -> String {
    let shown: Vec<String> = parts.iter().take(8).map(|n| (n + 1).to_string()).collect();
    let hidden = parts.len().saturating_sub(8) + more;
    if hidden > 0 { format!("{} and {hidden} more", shown.join(", ")) } else { shown.join(", ") }
}
