//! A packet's way through filters to a class, as the kernel goes it.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c` `__tcf_classify`, `cls_u32.c` `u32_classify`, `sch_htb.c` `htb_classify`, `sch_prio.c`
//! `prio_classify`.

use super::Probe;
use super::ask::{self, Control, Priority, State, act};
use super::bpf;
use super::cube::{Any, Cube, Names, Place, words};
use super::ematch::Tree;
use super::flow::{Flow, flow_key};
use super::space::{EGRESS, INGRESS, hook, in_order, node};
use crate::facts::{Device, Facts, Qdisc};
use crate::filters::{ALL, Filter};
use penstock_model::Handle;
use penstock_sched::sch::cake::Which;
use penstock_sched::traits::Sorting;
use std::collections::BTreeMap;

/// Where a packet ends, and how it came there.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Sorted {
    /// What was tried, in order.
    pub said: Vec<String>,
    /// The leaf class; `None` where there is none on the way: dropped, unshaped, or a qdisc without classes.
    pub class: Option<Handle>,
    /// What decided: `filter of line 7`, `default`, `direct`, ….
    pub by: String,
    /// Qdisc the packet waits in: kind and handle.
    pub leaf: Option<(&'static str, Handle)>,
    /// The classes one of which a hash chooses: first and last.
    pub among: Option<(Handle, Handle)>,
    /// The tin of cake it waits in, and why.
    pub tin: Option<(String, String)>,
}

/// What a filter list gives.
enum Hit {
    Class(Handle, usize),
    Drop(usize),
    Away(String, usize),
    /// One of these classes, by a hash.
    Among(Handle, Handle, usize),
    /// The rest of this priority is not asked.
    Skip,
    None,
}

/// How often a packet may be sent back to the first filter, or to another chain (`max_reclassify_loop` of `__tcf_classify`): then it is dropped.
const MAX_RESETS: u32 = 16;
/// Filters that do not fit and are told of one by one.
const TOLD: usize = 200;

/// A filter made ready.
struct Ready<'a> {
    filter: &'a Filter,
    /// What fits; u32 looks at its keys in their order instead.
    packets: Any,
    /// Extended matches, which have to fit as well.
    tree: Option<Tree>,
    keys: Vec<(u32, u32, i64, i64)>,
    mark: Option<(u32, u32)>,
    link: Option<u32>,
    acts: bool,
}

/// Filters of one priority in the order they are asked.
struct Group<'a> {
    protocol: u16,
    u32: bool,
    roots: Vec<Ready<'a>>,
}

/// A device's filters, made ready for many packets.
pub struct Sorter<'a> {
    facts: &'a Facts,
    device: &'a Device,
    names: Names,
    groups: BTreeMap<(Handle, u32), Vec<Group<'a>>>,
    /// u32's filters in tables of their own: by qdisc, table and bucket.
    buckets: BTreeMap<(Handle, u32, u32), Vec<Ready<'a>>>,
}

/// Takes a packet from a device's root to the queue it waits in.
pub fn sort(facts: &Facts, device: &Device, probe: &Probe) -> Sorted {
    Sorter::new(facts, device).sort(probe)
}

impl<'a> Sorter<'a> {
    /// Makes a device's filters ready.
    pub fn new(facts: &'a Facts, device: &'a Device) -> Sorter<'a> {
        let mut names = Names { tags: true, ..Names::default() };
        let mut asked = |filter: &'a Filter| {
            let matches = filter.options.list("ematches");
            let tree = Tree::of(matches, filter.protocol, &mut names);
            let packets = match (filter.kind.as_str(), &tree) {
                ("u32", _) => Vec::new(),
                (_, Some(_)) => ask::framed(filter, vec![Cube::all()], &mut names),
                _ => ask::packets(filter, &State::default(), &mut names),
            };
            (packets, tree)
        };
        let mut ready = |filter: &'a Filter| {
            let (packets, tree) = asked(filter);
            Ready {
                filter,
                packets,
                tree,
                keys: filter.keys(),
                mark: filter
                    .options
                    .nested("mark")
                    .map(|m| (m.u32("mask").unwrap_or(0), m.u32("val").unwrap_or(0))),
                link: filter.options.u32("link").filter(|l| *l != 0),
                acts: filter.classid.is_some() || filter.actions().next().is_some(),
            }
        };
        let mut by_place: BTreeMap<(Handle, u32), Vec<&Filter>> = BTreeMap::new();
        let mut buckets: BTreeMap<_, Vec<Ready<'_>>> = BTreeMap::new();
        for filter in &device.filters {
            let hash = filter.options.u32("hash").unwrap_or(0);
            if filter.kind == "u32" && hash != 0 && hash >> 20 < 0x800 {
                let place = (filter.parent.qdisc(), hash >> 20, hash >> 12 & 0xff);
                buckets.entry(place).or_default().push(ready(filter));
            } else {
                by_place.entry((hook(filter.parent), filter.chain)).or_default().push(filter);
            }
        }
        buckets.values_mut().for_each(|b| b.sort_by_key(|r| node(r.filter)));
        let mut groups: BTreeMap<_, Vec<Group<'_>>> = BTreeMap::new();
        for (place, mut all) in by_place {
            all.sort_by_key(|f| f.prio);
            for group in all.chunk_by(|a, b| a.prio == b.prio) {
                let roots = in_order(group).into_iter().map(&mut ready).collect();
                let one = Group { protocol: group[0].protocol, u32: group[0].kind == "u32", roots };
                groups.entry(place).or_default().push(one);
            }
        }
        Sorter { facts, device, names, groups, buckets }
    }

    /// Takes a packet from the device's root to the queue it waits in.
    pub fn sort(&self, probe: &Probe) -> Sorted {
        let mut sorted = Sorted::default();
        let Some(mut at) = self.device.qdiscs.iter().find(|q| q.parent == Handle::ROOT) else {
            return sorted;
        };
        let mut walk =
            Walk { own: self, probe: probe.clone(), said: Vec::new(), missed: 0, resets: 0, among: None };
        // clsact's are asked before the root.
        let hit = walk.filters(EGRESS);
        if let Some(gone) = walk.gone(&hit) {
            return Sorted { said: walk.said, by: gone, ..sorted };
        }
        for _ in 0..8 {
            let (class, by) = match at.traits().sorting {
                Sorting::Tree { direct } => walk.tree(at, direct),
                Sorting::Priority => walk.prio(at),
                Sorting::Flat => walk.flat(at),
                Sorting::Tins => {
                    let hit = walk.filters(at.handle);
                    match walk.gone(&hit) {
                        Some(gone) => (sorted.class, sorted.by) = (None, gone),
                        None => {
                            sorted.leaf = Some((at.kind, at.handle));
                            sorted.tin = Some(walk.tin(at));
                        }
                    }
                    break;
                }
                Sorting::Nothing | Sorting::Own => {
                    sorted.leaf = Some((at.kind, at.handle));
                    break;
                }
            };
            (sorted.class, sorted.by) = (class, by);
            if let Some(among) = walk.among.take() {
                sorted.among = Some(among);
            }
            let Some(id) = sorted.class else { break };
            match self.device.leaf(id) {
                Some(inner) => at = inner,
                None => {
                    sorted.leaf = Some(("pfifo", Handle::UNSPEC));
                    break;
                }
            }
        }
        if walk.missed > TOLD {
            walk.said.push(format!("{} more filters do not fit", walk.missed - TOLD));
        }
        sorted.said = walk.said;
        sorted
    }
}

/// What becomes of a packet at the hook where a device takes packets in.
pub struct Arrived {
    /// What was tried, in order.
    pub said: Vec<String>,
    /// The packet behind it.
    pub probe: Probe,
    /// The device it is sent to.
    pub to: Option<String>,
}

impl Sorter<'_> {
    /// Takes a packet through the filters of the device's ingress, or of its egress hook.
    pub fn hooked(&self, probe: &Probe, ingress: bool) -> Arrived {
        let mut walk =
            Walk { own: self, probe: probe.clone(), said: Vec::new(), missed: 0, resets: 0, among: None };
        let hit = walk.filters(if ingress { INGRESS } else { EGRESS });
        let to = match hit {
            Hit::Away(device, _) => Some(device),
            _ => None,
        };
        Arrived { said: walk.said, probe: walk.probe, to }
    }
}

struct Walk<'a> {
    own: &'a Sorter<'a>,
    probe: Probe,
    said: Vec<String>,
    missed: usize,
    /// How often this list of filters has been asked anew, or another chain of it.
    resets: u32,
    /// What a hash chose from last.
    among: Option<(Handle, Handle)>,
}

impl<'a> Walk<'a> {
    fn line(&self, step: usize) -> String {
        format!("filter of line {}", self.own.facts.known_line(&self.own.facts.steps[step]))
    }
    /// What a hit that names no class says.
    fn gone(&self, hit: &Hit) -> Option<String> {
        match hit {
            Hit::Drop(step) => Some(format!("dropped by the {}", self.line(*step))),
            Hit::Away(dev, step) => Some(format!("sent to {dev} by the {}", self.line(*step))),
            _ => None,
        }
    }

    /// A hash's choice: classes of the qdisc between two, as far as they are there.
    fn chosen(&mut self, hit: &Hit) -> Option<(Option<Handle>, String)> {
        let Hit::Among(first, last, step) = *hit else { return None };
        self.among = Some((first, last));
        let device = self.own.device;
        let ids = (first.minor()..=last.minor()).map(|minor| Handle::new(first.major(), minor));
        let lacking = ids.filter(|id| device.class(*id).is_none()).count();
        let rest = match lacking {
            0 => String::new(),
            n => format!("; {n} of them are not there"),
        };
        Some((None, format!("one of {first} to {last}: {}, a hash chooses{rest}", self.line(step))))
    }
    /// `cake_select_tin`.
    fn tin(&self, qdisc: &Qdisc) -> (String, String) {
        let which = Which::new(qdisc.handle, &qdisc.options);
        let dscp = self.probe.dscp();
        let (tin, why) = match (which.by_mark(self.probe.mark), which.by_priority(self.probe.priority)) {
            (Some(tin), _) => (tin, format!("mark {:#x}", self.probe.mark)),
            (None, Some(tin)) => (tin, format!("priority {}", Handle(self.probe.priority))),
            (None, None) if which.count() == 1 => (0, "the only one".to_owned()),
            (None, None) => (which.by_dscp(dscp), format!("DSCP {dscp}")),
        };
        (which.name(tin), why)
    }

    /// `htb_classify`: filters of the qdisc, then of each inner class they lead to.
    fn tree(&mut self, qdisc: &Qdisc, direct: bool) -> (Option<Handle>, String) {
        let device = self.own.device;
        let leaf =
            |id: Handle| device.class(id).filter(|c| id.qdisc() == qdisc.handle && c.id != qdisc.handle);
        let mut at = qdisc.handle;
        if self.probe.priority == qdisc.handle.0 && direct {
            return (None, "direct: its priority is the qdisc's handle".to_owned());
        }
        if let Some(class) = leaf(Handle(self.probe.priority)) {
            if class.children.is_empty() {
                return (Some(class.id), "its priority".to_owned());
            }
            // `hfsc_classify` begins at the root all the same.
            if direct {
                at = class.id;
            }
        }
        for _ in 0..16 {
            let hit = self.filters(at);
            if let Some(gone) = self.gone(&hit) {
                return (None, gone);
            }
            if let Some(chosen) = self.chosen(&hit) {
                return chosen;
            }
            let Hit::Class(id, step) = hit else { break };
            if id == qdisc.handle && direct {
                return (None, format!("direct: {} names the qdisc", self.line(step)));
            }
            match leaf(id) {
                None => {
                    self.said.push(format!("class {id} does not exist"));
                    break;
                }
                Some(class) if class.children.is_empty() => return (Some(id), self.line(step)),
                // An inner class that leads to itself leads nowhere.
                Some(_) if id == at => break,
                Some(_) if !direct && !device.is_below(id, at) => break,
                Some(_) => at = id,
            }
        }
        let default = Handle::new(qdisc.handle.major(), qdisc.options.u32("default").unwrap_or(0) as u16);
        match device.class(default).filter(|c| c.children.is_empty() && default.minor() != 0) {
            Some(class) => (Some(class.id), "default".to_owned()),
            None if !direct => (None, "dropped: no filter matches and there is no default".to_owned()),
            None => (None, "direct: no filter matches and there is no default".to_owned()),
        }
    }

    /// `drr_classify`, `qfq_classify`.
    fn flat(&mut self, qdisc: &Qdisc) -> (Option<Handle>, String) {
        let device = self.own.device;
        let own = Handle(self.probe.priority);
        if own.qdisc() == qdisc.handle && device.class(own).is_some() {
            return (Some(own), "its priority".to_owned());
        }
        let hit = self.filters(qdisc.handle);
        if let Some(chosen) = self.chosen(&hit) {
            return chosen;
        }
        match (self.gone(&hit), hit) {
            (Some(gone), _) => (None, gone),
            (_, Hit::Class(id, step)) if device.class(id).is_some() => (Some(id), self.line(step)),
            _ => (None, "dropped: no filter matches".to_owned()),
        }
    }

    /// `prio_classify`.
    fn prio(&mut self, qdisc: &Qdisc) -> (Option<Handle>, String) {
        let bands = qdisc.options.u32("bands").unwrap_or(3);
        let map = qdisc.options.bytes("priomap").unwrap_or(&[]).to_vec();
        let band_of = |priority: u32| u32::from(map.get(priority as usize & 15).copied().unwrap_or(0));
        // What a filter's actions make of it does not count here.
        let priority = self.probe.priority;
        let own = Handle(priority).qdisc() == qdisc.handle;
        let (id, by) = match if own { Hit::None } else { self.filters(qdisc.handle) } {
            _ if own => (Handle(priority), "its priority".to_owned()),
            Hit::Class(id, step) => (id, self.line(step)),
            hit => {
                if let Some(gone) = self.gone(&hit) {
                    return (None, gone);
                }
                if let Some(chosen) = self.chosen(&hit) {
                    return chosen;
                }
                let priority = if priority >> 16 != 0 { 0 } else { priority };
                let band = band_of(priority);
                return (
                    Some(Handle::new(qdisc.handle.major(), band as u16 + 1)),
                    format!("priomap: priority {} is band {band}", priority & 15),
                );
            }
        };
        let band = u32::from(id.minor()).wrapping_sub(1);
        let band = if band < bands { band } else { band_of(0) };
        (Some(Handle::new(qdisc.handle.major(), band as u16 + 1)), by)
    }

    /// The filters of a qdisc or a class, in the order they are asked.
    fn filters(&mut self, parent: Handle) -> Hit {
        self.resets = 0;
        self.chain(parent, 0)
    }
    fn chain(&mut self, parent: Handle, chain: u32) -> Hit {
        let own = self.own;
        for group in own.groups.get(&(parent, chain)).into_iter().flatten() {
            if group.protocol != ALL && group.protocol != self.probe.protocol_seen() {
                continue;
            }
            let hit = match group.u32 {
                true => self.bucket(&group.roots, (0, 0), 0),
                false => self.plain(&group.roots),
            };
            match hit {
                None | Some(Hit::Skip) => {}
                Some(hit) => return hit,
            }
        }
        Hit::None
    }

    fn misses(&mut self, filter: &Filter, why: &dyn Fn() -> String) {
        self.missed += 1;
        if self.missed <= TOLD {
            let line = self.own.facts.known_line(&self.own.facts.steps[filter.step]);
            self.said.push(format!("line {line} (prio {}, {}): no: {}", filter.prio, filter.kind, why()));
        }
    }
    fn fits(&mut self, filter: &Filter, seen: &str) {
        let line = self.own.facts.known_line(&self.own.facts.steps[filter.step]);
        self.said.push(format!("line {line} (prio {}, {}): fits{seen}", filter.prio, filter.kind));
    }

    /// Filters of every kind but u32.
    fn plain(&mut self, filters: &'a [Ready<'a>]) -> Option<Hit> {
        for ready in filters {
            let filter = ready.filter;
            if filter.kind == "fw" && filter.handle == 0 {
                if self.probe.mark == 0 {
                    self.misses(filter, &|| "the packet has no mark".to_owned());
                    continue;
                }
                self.fits(filter, "");
                return Some(Hit::Class(self.by_mark(filter.parent), filter.step));
            }
            if let Some(class) = bpf::class(filter, &self.probe) {
                let Some(class) = class else {
                    self.misses(filter, &|| "its program answers 0".to_owned());
                    continue;
                };
                self.fits(filter, "");
                match self.answer(filter) {
                    Some(Hit::Class(_, step)) if step == filter.step => {
                        return Some(Hit::Class(class, step));
                    }
                    Some(hit) => return Some(hit),
                    None => continue,
                }
            }
            let names = &self.own.names;
            let seen = ready.packets.iter().any(|c| c.holds(&self.probe, names));
            if seen && ready.tree.as_ref().is_some_and(|t| !t.holds(&self.probe, names)) {
                self.misses(filter, &|| "its matches do not fit".to_owned());
                continue;
            }
            if !seen {
                let (probe, names) = (self.probe.clone(), &self.own.names);
                let why = || {
                    ready.packets.first().map_or("it fits nothing".to_owned(), |c| why_not(c, &probe, names))
                };
                self.misses(filter, &why);
                continue;
            }
            self.fits(filter, "");
            if let Some(hit) = self.answer(filter) {
                return Some(match (filter.kind.as_str(), hit) {
                    ("flow", Hit::Class(..)) => self.computed(filter),
                    (_, hit) => hit,
                });
            }
        }
        None
    }
    /// The class `flow` computes.
    fn computed(&self, filter: &Filter) -> Hit {
        let flow = Flow::of(filter);
        match flow.key().and_then(|key| flow_key(&self.probe, key)) {
            Some(key) => Hit::Class(flow.class(key), filter.step),
            None => {
                let (first, last) = flow.all();
                Hit::Among(first, last, filter.step)
            }
        }
    }
    /// A class by a mark: its minor number is enough.
    fn by_mark(&self, parent: Handle) -> Handle {
        let mark = Handle(self.probe.mark);
        if mark.major() == 0 { Handle::new(parent.major(), mark.minor()) } else { mark }
    }

    /// What a filter's actions say; `None` where the next filter is asked.
    fn answer(&mut self, filter: &Filter) -> Option<Hit> {
        let mut state = State {
            mark: (u32::MAX, self.probe.mark),
            conn: (u32::MAX, self.probe.connmark.unwrap_or(0)),
            priority: Priority::Set(self.probe.priority),
            tos: (u8::MAX, self.probe.tos),
            ..State::default()
        };
        let said = act(filter, &mut state);
        self.probe.mark = state.mark.1;
        self.probe.tos = self.probe.tos & !state.tos.0 | state.tos.1 & state.tos.0;
        if let Priority::Set(priority) = state.priority {
            self.probe.priority = priority;
        }
        match said {
            Control::Ok => Some(Hit::Class(filter.classid.unwrap_or(Handle::UNSPEC), filter.step)),
            Control::Drop => Some(Hit::Drop(filter.step)),
            Control::Elsewhere(dev) => Some(Hit::Away(dev, filter.step)),
            Control::Continue => {
                self.said.push("  and goes on".to_owned());
                ask::skips(filter).then_some(Hit::Skip)
            }
            Control::Again | Control::Chain(_) if self.resets >= MAX_RESETS => Some(Hit::Drop(filter.step)),
            // From the first chain on, whichever this is.
            Control::Again => {
                self.resets += 1;
                Some(self.chain(hook(filter.parent), 0))
            }
            Control::Chain(chain) => {
                self.resets += 1;
                self.said.push(format!("  to chain {chain}"));
                Some(self.chain(hook(filter.parent), chain))
            }
        }
    }

    /// u32's filters of one bucket.
    fn bucket(&mut self, filters: &'a [Ready<'a>], base: (i32, i32), level: u32) -> Option<Hit> {
        'next: for ready in filters {
            let filter = ready.filter;
            if let Some((mask, value)) = ready.mark
                && self.probe.mark & mask != value
            {
                let mark = self.probe.mark;
                self.misses(filter, &|| format!("mark {mark:#x}, wanted {value:#x}/{mask:#x}"));
                continue;
            }
            if let Some(dev) = filter.options.str("indev")
                && self.probe.input.as_deref() != Some(dev)
            {
                self.misses(filter, &|| format!("it did not come in by {dev}"));
                continue;
            }
            let mut seen = String::new();
            for &(mask, value, off, offmask) in &ready.keys {
                let at = base.0 + off as i32 + (base.1 & offmask as i32);
                if at + 4 > i32::from(self.probe.len) {
                    self.misses(filter, &|| {
                        format!("the packet ends before byte {at}; this priority gives up")
                    });
                    return Some(Hit::Skip);
                }
                let have = self.probe.word(at);
                if (have ^ value) & mask != 0 {
                    let behind = if offmask != 0 { "nexthdr+" } else { "" };
                    self.misses(filter, &|| {
                        format!("at {behind}{off} it has {have:08x}, wanted {:08x}/{mask:08x}", value & mask)
                    });
                    continue 'next;
                }
                let (behind, first) =
                    (if offmask != 0 { "nexthdr+" } else { "" }, if seen.is_empty() { ':' } else { ',' });
                seen += &format!(
                    "{first} at {behind}{off} it has {have:08x}, wanted {:08x}/{mask:08x}",
                    value & mask
                );
            }
            self.fits(filter, &seen);
            if let Some(link) = ready.link
                && level < 8
            {
                let hit = self.link(filter, link >> 20, base, level);
                if hit.is_some() {
                    return hit;
                }
            }
            if ready.acts
                && let Some(hit) = self.answer(filter)
            {
                return Some(hit);
            }
        }
        None
    }

    /// Into the hash table a u32 filter links to.
    fn link(&mut self, filter: &Filter, table: u32, base: (i32, i32), level: u32) -> Option<Hit> {
        let own = self.own;
        let sel = filter.options.nested("sel").cloned().unwrap_or_default();
        let n = |name: &str| sel.u32(name).unwrap_or(0);
        let divisor = own.device.tables.get(&(filter.parent.qdisc(), table)).copied().unwrap_or(1);
        let hmask = n("hmask");
        let key = self.probe.word(base.0 + sel.i64("hoff").unwrap_or(0) as i32) & hmask;
        let bucket =
            if divisor > 1 && hmask != 0 { (key >> hmask.trailing_zeros()) & (divisor - 1) } else { 0 };
        self.said.push(format!("  into table {table:x}:, bucket {bucket:x} of {divisor}"));
        let (mut base, mut off2) = (base.0, base.1);
        let flags = n("flags");
        if flags & 6 != 0 {
            off2 = n("off") as i32 + 3;
            if flags & 4 != 0 {
                let at = base + sel.i64("offoff").unwrap_or(0) as i32;
                let half = self.probe.word(at) >> 16;
                off2 += ((half & n("offmask")) >> n("offshift")) as i32;
            }
            off2 &= !3;
        }
        if flags & 8 != 0 {
            base += off2;
            off2 = 0;
        }
        let inside = own.buckets.get(&(filter.parent.qdisc(), table, bucket))?;
        self.bucket(inside, (base, off2), level + 1)
    }
}

/// Which bits of a set a packet has not.
fn why_not(cube: &Cube, probe: &Probe, names: &Names) -> String {
    for &(place, mask, value) in &cube.0 {
        let have = probe.at(place, names);
        if (have ^ value) & mask == 0 {
            continue;
        }
        return match place {
            Place::Word(off) => format!("at {off} it has {have:08x}, wanted {value:08x}/{mask:08x}"),
            Place::Other(_) => "what it asks cannot be told from the headers".to_owned(),
            _ => format!("wanted {}", words(&Cube::of(place, mask, value), names)),
        };
    }
    "it fits".to_owned()
}
