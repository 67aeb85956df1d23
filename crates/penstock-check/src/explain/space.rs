//! The filters of a device written as one list of sets of packets: the first that a packet is in says where it goes.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c` `__tcf_classify`, `sch_htb.c` `htb_classify`,
//! `sch_prio.c` `prio_classify`.

use super::ask::{self, Control, Priority, State, act};
use super::cube::{Any, Cube, Names, Place};
use super::diagram::{List, expand, tidy};
use super::flow::Flow;
use crate::facts::{Device, Qdisc};
use crate::filters::{Filter, IP, IP6};
use penstock_model::{Handle, Kernel};
use penstock_sched::sch::cake::Which;
use penstock_sched::traits::Sorting;

/// Where packets go.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum To {
    /// A leaf class.
    Class(Handle),
    /// No class: what becomes of them.
    None(&'static str),
    /// Another device.
    Device(String),
    /// One of several classes, by a hash: first and last.
    Among(Handle, Handle),
    /// A tin of cake.
    Tin(String),
    /// Dropped by a rule of the packet filter: its command, and the line of the text that it reads.
    Fell(usize, u32),
}

/// The hook where packets are taken in, under whichever of its names.
pub const INGRESS: Handle = Handle(0xffff_0000);
/// The hook before the root.
pub const EGRESS: Handle = Handle(0xffff_fff3);

/// What filters hang on: ingress has three names.
pub fn hook(parent: Handle) -> Handle {
    match parent.0 {
        0xffff_fff1 | 0xffff_fff2 => INGRESS,
        _ => parent,
    }
}

/// Packets, where they go, and the filter that says so: its command; none for what is left.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The packets; those of earlier entries are not among them.
    pub cube: Cube,
    /// Where they go.
    pub to: To,
    /// The command of the filter that decides.
    pub by: Option<usize>,
    /// The commands of the filters further out that led here, where one qdisc stands in another's class.
    pub through: Vec<usize>,
}

/// Where packets go, the filter that says so, and those further out.
pub type Course = (To, Option<usize>, Vec<usize>);

impl Entry {
    /// All packets go to one place.
    fn all(to: To, by: Option<usize>) -> Vec<Entry> {
        vec![Entry { cube: Cube::all(), to, by, through: Vec::new() }]
    }
    /// As a list of places.
    pub fn list(all: Vec<Entry>) -> List<Course> {
        all.into_iter().map(|e| (e.cube, (e.to, e.by, e.through))).collect()
    }
    /// From a list of places.
    pub fn of(list: List<Course>) -> Vec<Entry> {
        list.into_iter().map(|(cube, (to, by, through))| Entry { cube, to, by, through }).collect()
    }
}

/// What a list of filters gives.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Hit {
    /// A class, and what its packets have now where actions have set something.
    To(Handle, usize, Option<State>),
    Drop(usize),
    Away(String, usize),
    /// One of these classes, by a hash.
    Among(Handle, Handle, usize),
    /// The rest of this priority is not asked.
    Skip,
    /// On with what this list of [`Space::onto`] says.
    Onto(usize),
    /// Nothing fits.
    Miss(Option<State>),
}

pub(super) type Hits = List<Hit>;

/// More sets than this are not made.
const MAX_SETS: usize = 400_000;

/// Writes a device's filters as sets.
pub struct Space<'a> {
    pub device: &'a Device,
    pub kernel: Kernel,
    pub names: Names,
    /// Whether the list had to be cut.
    pub cut: bool,
    /// What packets meet that are asked again or further on; each list leaves no packet over.
    onto: Vec<Hits>,
    /// Lengths that make a difference, as they are met; and the most bytes a packet has in this pass.
    pub(super) longs: std::collections::BTreeSet<u32>,
    pub(super) most: u32,
}

impl<'a> Space<'a> {
    /// For a device.
    pub fn new(device: &'a Device, kernel: Kernel) -> Space<'a> {
        Space {
            device,
            kernel,
            names: Names::default(),
            cut: false,
            onto: Vec::new(),
            longs: Default::default(),
            most: u32::MAX,
        }
    }
    /// All packets of a state that come to the device's root.
    pub fn root(&mut self, state: &State) -> Vec<Entry> {
        let device = self.device;
        let Some(root) = device.qdiscs.iter().find(|q| q.parent == Handle::ROOT) else { return Vec::new() };
        self.by_length(&|s| s.before(root, state))
    }
    /// All packets that the device takes in.
    pub fn arriving(&mut self) -> Vec<Entry> {
        let state = State { mark: (u32::MAX, 0), priority: Priority::Set(0), ..State::default() };
        self.by_length(&|s| {
            let hits = s.filters(INGRESS, 0, &state, 0, None);
            s.spread(&hits, Entry::all(To::None("taken in"), None), &|_, hit| match hit {
                Hit::Drop(by) => Some(Entry::all(To::None("dropped"), Some(*by))),
                Hit::Away(dev, by) => Some(Entry::all(To::Device(dev.clone()), Some(*by))),
                Hit::To(_, by, _) | Hit::Among(_, _, by) => Some(Entry::all(To::None("taken in"), Some(*by))),
                Hit::Skip | Hit::Onto(_) | Hit::Miss(_) => None,
            })
        })
    }
    fn by_length(&mut self, of: &dyn Fn(&mut Space<'a>) -> Vec<Entry>) -> Vec<Entry> {
        (self.most, self.longs) = (u32::MAX, Default::default());
        let whole = of(self);
        // Packets that end before what some filter looks at go their own way: a list for each length that matters.
        let lengths: Vec<u32> = self.longs.iter().copied().take(8).collect();
        let mut out = Vec::new();
        let mut least = 0;
        for most in lengths {
            self.most = most - 1;
            let class = Cube::of(Place::Long(most), 1, 0);
            let class = if least > 0 { class.and(&Cube::of(Place::Long(least), 1, 1)) } else { Some(class) };
            let short = of(self);
            out.extend(class.into_iter().flat_map(|class| {
                short
                    .iter()
                    .filter_map(move |e| Some(Entry { cube: e.cube.and(&class)?, ..e.clone() }))
                    .collect::<Vec<_>>()
            }));
            least = most;
        }
        out.extend(whole);
        Entry::of(tidy(Entry::list(out)))
    }

    /// clsact's filters on the way out, and then the root.
    fn before(&mut self, root: &'a Qdisc, state: &State) -> Vec<Entry> {
        if !self.device.filters.iter().any(|f| f.parent == EGRESS) {
            return self.qdisc(root, state, 0);
        }
        let rest = self.qdisc(root, state, 0);
        let hits = self.filters(EGRESS, 0, state, 0, None);
        self.spread(&hits, rest, &|s, hit| match hit {
            Hit::Drop(by) => Some(Entry::all(To::None("dropped"), Some(*by))),
            Hit::Away(dev, by) => Some(Entry::all(To::Device(dev.clone()), Some(*by))),
            // Actions have been done, whether or not a later filter decides.
            Hit::To(_, _, Some(set)) | Hit::Miss(Some(set)) => Some(s.qdisc(root, set, 0)),
            _ => None,
        })
    }
    /// The tins of cake: marks, priorities, code points.
    fn tins(&mut self, qdisc: &'a Qdisc, state: &State) -> Vec<Entry> {
        let which = Which::new(qdisc.handle, &qdisc.options);
        let tin = |n: usize| To::Tin(which.name(n));
        let mut out = Vec::new();
        let mut add = |cube: Option<Cube>, n: usize| {
            out.extend(cube.map(|cube| Entry { cube, to: tin(n), by: None, through: Vec::new() }));
        };
        let (mask, shift) = which.mark_bits();
        for n in (0..which.count()).filter(|_| mask != 0) {
            let value = (n as u32 + 1) << shift;
            add(ask::mark(state, mask, value).filter(|_| value & !mask == 0), n);
        }
        if let Priority::Set(priority) = state.priority
            && let Some(n) = which.by_priority(priority)
        {
            add(Some(Cube::all()), n);
        } else if which.count() == 1 {
            add(Some(Cube::all()), 0);
        } else {
            let rest = which.by_dscp(0);
            for (ethertype, up) in [(IP, 16), (IP6, 20)] {
                for dscp in (0..64u8).filter(|d| which.by_dscp(*d) != rest) {
                    let bits = Cube::of(Place::Word(0), 0xfc << up, u32::from(dscp) << (2 + up));
                    let bits = if ethertype == IP { ask::adapt(&bits, state) } else { Some(bits) };
                    add(bits.and_then(|b| b.and(&Cube::ethertype(ethertype))), which.by_dscp(dscp));
                }
            }
            add(Some(Cube::ethertype(crate::filters::ARP)), which.by_dscp(0x38));
            add(Some(Cube::all()), rest);
        }
        let rest = out;
        let hits = self.filters(qdisc.handle, 0, state, 0, None);
        self.spread(&hits, rest, &|s, hit| match hit {
            Hit::Drop(by) => Some(Entry::all(To::None("dropped"), Some(*by))),
            Hit::Away(dev, by) => Some(Entry::all(To::Device(dev.clone()), Some(*by))),
            Hit::To(_, _, Some(set)) | Hit::Miss(Some(set)) if set != state => Some(s.tins(qdisc, set)),
            _ => None,
        })
    }

    fn qdisc(&mut self, qdisc: &'a Qdisc, state: &State, depth: u32) -> Vec<Entry> {
        match qdisc.traits().sorting {
            Sorting::Tree { .. } => self.tree(qdisc, qdisc.handle, state, depth),
            Sorting::Priority => self.prio(qdisc, state, depth),
            Sorting::Flat => self.flat(qdisc, state, depth),
            Sorting::Tins => self.tins(qdisc, state),
            Sorting::Nothing | Sorting::Own => Entry::all(To::None(qdisc.kind), None),
        }
    }
    pub(super) fn limit(&mut self, len: usize) -> bool {
        self.cut |= len > MAX_SETS;
        len > MAX_SETS
    }
    /// Puts what becomes of a hit's packets in its place; `None` is `rest`, which stands behind them all.
    fn spread(
        &mut self,
        hits: &Hits,
        rest: Vec<Entry>,
        of: &dyn Fn(&mut Space<'a>, &Hit) -> Option<Vec<Entry>>,
    ) -> Vec<Entry> {
        let rest = Entry::list(rest);
        let done =
            expand(hits, &rest, MAX_SETS, &mut |hit| of(self, hit).map_or_else(|| rest.clone(), Entry::list));
        self.cut |= done.is_none();
        Entry::of(done.unwrap_or(rest))
    }

    /// A leaf class, or what a qdisc with classes in it makes of its packets.
    fn leaf(&mut self, id: Handle, by: Option<usize>, state: &State, depth: u32) -> Vec<Entry> {
        let inner = self.device.leaf(id).filter(|q| depth < 6 && q.traits().sorting.is_followed());
        match inner {
            Some(inner) => {
                let mut entries = self.qdisc(inner, state, depth + 1);
                entries.iter_mut().for_each(|e| e.through.extend(by));
                entries
            }
            None => Entry::all(To::Class(id), by),
        }
    }
    fn within(&mut self, out: &mut Vec<Entry>, cube: &Cube, entries: Vec<Entry>) {
        if self.limit(out.len() + entries.len()) {
            return;
        }
        if cube.0.is_empty() {
            out.extend(entries);
            return;
        }
        for entry in entries {
            if let Some(cube) = cube.and(&entry.cube) {
                out.push(Entry { cube, ..entry });
            }
        }
    }

    /// `htb_classify`, from the qdisc or an inner class on.
    fn tree(&mut self, qdisc: &'a Qdisc, at: Handle, state: &State, depth: u32) -> Vec<Entry> {
        let direct = sends_directly(qdisc);
        let class = |s: &Self, id: Handle| {
            s.device
                .class(id)
                .filter(|c| id.qdisc() == qdisc.handle && c.id != qdisc.handle)
                .map(|c| c.children.is_empty())
        };
        if let (Priority::Set(priority), true) = (state.priority, at == qdisc.handle) {
            if priority == qdisc.handle.0 && direct {
                return Entry::all(To::None("direct"), None);
            }
            match class(self, Handle(priority)) {
                Some(true) => return self.leaf(Handle(priority), None, state, depth),
                // `hfsc_classify` begins at the root all the same.
                Some(false) if direct => return self.tree(qdisc, Handle(priority), state, depth),
                _ => {}
            }
        }
        let rest = self.rest(qdisc, state, depth);
        let hits = self.filters(at, 0, state, 0, None);
        self.spread(&hits, rest, &|s, hit| match hit {
            Hit::To(id, by, _) if *id == qdisc.handle && direct => {
                Some(Entry::all(To::None("direct"), Some(*by)))
            }
            Hit::To(id, by, set) => {
                let now = set.as_ref().unwrap_or(state);
                match class(s, *id) {
                    Some(true) => Some(s.leaf(*id, Some(*by), now, depth)),
                    Some(false) if !direct && !s.device.is_below(*id, at) => None,
                    Some(false) if depth < 16 && *id != at => Some(s.tree(qdisc, *id, now, depth + 1)),
                    _ => None,
                }
            }
            Hit::Drop(by) => Some(Entry::all(To::None("dropped"), Some(*by))),
            Hit::Away(dev, by) => Some(Entry::all(To::Device(dev.clone()), Some(*by))),
            Hit::Among(first, last, by) => Some(Entry::all(To::Among(*first, *last), Some(*by))),
            Hit::Miss(Some(set)) => Some(s.rest(qdisc, set, depth)),
            Hit::Skip | Hit::Onto(_) | Hit::Miss(None) => None,
        })
    }
    /// Where a tree sends what no filter sorts.
    fn rest(&mut self, qdisc: &'a Qdisc, state: &State, depth: u32) -> Vec<Entry> {
        let default = Handle::new(qdisc.handle.major(), qdisc.options.u32("default").unwrap_or(0) as u16);
        let leaf = self.device.class(default).is_some_and(|c| c.children.is_empty() && default.minor() != 0);
        if leaf {
            return self.leaf(default, None, state, depth);
        }
        let what = if sends_directly(qdisc) { "direct" } else { "dropped" };
        Entry::all(To::None(what), None)
    }

    /// `drr_classify`, `qfq_classify`.
    fn flat(&mut self, qdisc: &'a Qdisc, state: &State, depth: u32) -> Vec<Entry> {
        let dropped = |by| Entry::all(To::None("dropped"), by);
        if let Priority::Set(priority) = state.priority
            && Handle(priority).qdisc() == qdisc.handle
            && self.device.class(Handle(priority)).is_some()
        {
            return self.leaf(Handle(priority), None, state, depth);
        }
        let hits = self.filters(qdisc.handle, 0, state, 0, None);
        self.spread(&hits, dropped(None), &|s, hit| match hit {
            Hit::To(id, by, set) if s.device.class(*id).is_some() => {
                Some(s.leaf(*id, Some(*by), set.as_ref().unwrap_or(state), depth))
            }
            Hit::Away(dev, by) => Some(Entry::all(To::Device(dev.clone()), Some(*by))),
            Hit::Among(first, last, by) => Some(Entry::all(To::Among(*first, *last), Some(*by))),
            Hit::To(_, by, _) | Hit::Drop(by) => Some(dropped(Some(*by))),
            Hit::Skip | Hit::Onto(_) | Hit::Miss(_) => None,
        })
    }

    /// `prio_classify`.
    fn prio(&mut self, qdisc: &'a Qdisc, state: &State, depth: u32) -> Vec<Entry> {
        let bands = qdisc.options.u32("bands").unwrap_or(3);
        let map = qdisc.options.bytes("priomap").unwrap_or(&[]).to_vec();
        let band = |priority: usize| u32::from(map.get(priority & 15).copied().unwrap_or(0));
        let class = |band: u32| Handle::new(qdisc.handle.major(), band as u16 + 1);
        let of = |id: Handle| {
            let n = u32::from(id.minor()).wrapping_sub(1);
            class(if n < bands { n } else { band(0) })
        };
        if let Priority::Set(p) = state.priority
            && Handle(p).qdisc() == qdisc.handle
        {
            return self.leaf(of(Handle(p)), None, state, depth);
        }
        //= linux v6.12 net/sched/sch_prio.c prio_classify
        // The priority counts that a packet came with, and in the band what actions have made of it.
        let by_priority = |s: &mut Self, now: &State| {
            let mut rest = Vec::new();
            match state.priority {
                Priority::Set(p) => {
                    let p = if p >> 16 != 0 { 0 } else { p as usize };
                    rest = s.leaf(class(band(p)), None, now, depth);
                }
                _ => {
                    for (cube, priority) in s.priorities(state) {
                        let entries = s.leaf(class(band(priority)), None, now, depth);
                        s.within(&mut rest, &cube, entries);
                    }
                }
            }
            rest
        };
        let rest = by_priority(self, state);
        let hits = self.filters(qdisc.handle, 0, state, 0, None);
        self.spread(&hits, rest, &|s, hit| match hit {
            Hit::To(id, by, set) => Some(s.leaf(of(*id), Some(*by), set.as_ref().unwrap_or(state), depth)),
            Hit::Drop(by) => Some(Entry::all(To::None("dropped"), Some(*by))),
            Hit::Away(dev, by) => Some(Entry::all(To::Device(dev.clone()), Some(*by))),
            Hit::Among(first, last, by) => Some(Entry::all(To::Among(*first, *last), Some(*by))),
            Hit::Miss(Some(set)) => Some(by_priority(s, set)),
            Hit::Skip | Hit::Onto(_) | Hit::Miss(None) => None,
        })
    }
    /// All priorities a packet may have, by what tells them; the first that a packet is in.
    fn priorities(&self, state: &State) -> Vec<(Cube, usize)> {
        let given = (0..16).map(|n| (Cube::of(Place::Priority, 0xf, n), n as usize));
        let Priority::Tos(known, is) = state.priority else { return given.collect() };
        self.by_tos(known, is).into_iter().chain(given).collect()
    }
    /// The priorities `ip_forward` sets, with the bits of the ToS that had been set by then.
    fn by_tos(&self, known: u8, is: u8) -> Vec<(Cube, usize)> {
        let all = (0..16u8).map(|n| n << 1).filter(|tos| (tos ^ is) & known & 0x1e == 0);
        let one = |tos: u8| {
            let bits = (u32::from(0x1e & !known) << 16, u32::from(tos & !known) << 16);
            let cube = Cube::ethertype(IP).and(&Cube::of(Place::Word(0), bits.0, bits.1))?;
            Some((cube, penstock_host::rt_tos2priority(self.kernel, tos) as usize))
        };
        all.filter_map(one).collect()
    }
    /// Packets as they come, where a filter asks for a priority that was set from the ToS.
    fn forwarded(&self, all: Any, state: &State) -> Any {
        let Priority::Tos(known, is) = state.priority else { return all };
        let mut out = Any::new();
        for cube in all {
            let (mask, value) = cube.at(Place::Priority);
            if mask == 0 {
                out.push(cube);
                continue;
            }
            // `ip6_forward` leaves it as it is.
            out.extend(cube.and(&Cube::ethertype(IP6)));
            let rest = Cube(cube.0.into_iter().filter(|b| b.0 != Place::Priority).collect());
            let fits = self.by_tos(known, is).into_iter().filter(|(_, n)| *n as u32 & mask == value);
            out.extend(fits.filter_map(|(tos, _)| rest.and(&tos)));
        }
        out
    }

    /// The filters of a qdisc or a class, in the order they are asked.
    fn filters(
        &mut self,
        parent: Handle,
        chain: u32,
        state: &State,
        depth: u32,
        behind: Option<usize>,
    ) -> Hits {
        let device = self.device;
        let mut here: Vec<&Filter> =
            device.filters.iter().filter(|f| hook(f.parent) == hook(parent) && f.chain == chain).collect();
        here.sort_by_key(|f| f.prio);
        if let Some(step) = behind {
            // Only those behind the filter of this command.
            here = here.chunk_by(|a, b| a.prio == b.prio).flat_map(in_order).collect();
            let at = here.iter().position(|f| f.step == step);
            here = match at.map(|n| here.split_off(n)).as_deref() {
                Some([first, rest @ ..]) => {
                    rest.iter().copied().filter(|f| !ask::skips(first) || f.prio != first.prio).collect()
                }
                _ => here,
            };
        }
        let mut rest: Hits = Vec::new();
        for group in here.chunk_by(|a, b| a.prio == b.prio).rev() {
            let mut own: Hits = Vec::new();
            match group[0].kind.as_str() {
                "u32" => {
                    let protocol = Cube::protocol(group[0].protocol, &self.names);
                    let hits = self.u32_group(group, parent, state, depth);
                    own.extend(hits.into_iter().filter_map(|(c, h)| Some((c.and(&protocol)?, h))));
                }
                _ => {
                    // Those behind a filter stand in their order already.
                    let ordered = if behind.is_some() { group.to_vec() } else { in_order(group) };
                    for filter in ordered {
                        self.plain(filter, parent, state, depth, &mut own);
                    }
                }
            }
            if own.iter().any(|h| matches!(h.1, Hit::Skip | Hit::Onto(_))) {
                let behind: Hits = rest.iter().cloned().chain([(Cube::all(), Hit::Miss(None))]).collect();
                let all = expand(&own, &rest, MAX_SETS, &mut |hit| match hit {
                    Hit::Skip => behind.clone(),
                    Hit::Onto(list) => self.onto[*list].clone(),
                    hit => vec![(Cube::all(), hit.clone())],
                });
                self.cut |= all.is_none();
                rest = all.unwrap_or(rest);
            } else {
                own.extend(rest);
                rest = tidy(own);
            }
        }
        rest
    }

    /// A filter of any kind but u32.
    fn plain(&mut self, filter: &'a Filter, parent: Handle, state: &State, depth: u32, out: &mut Hits) {
        if filter.kind == "fw" && filter.handle == 0 {
            // The mark is the class.
            let device = self.device;
            let protocol = Cube::protocol(filter.protocol, &self.names);
            for class in &device.classes {
                for value in [class.id.0, u32::from(class.id.minor())] {
                    let cube = ask::mark(state, u32::MAX, value).and_then(|c| c.and(&protocol));
                    out.extend(cube.map(|c| (c, Hit::To(class.id, filter.step, None))));
                }
            }
            return;
        }
        if let Some(hit) = self.hit(filter, parent, state, depth) {
            if filter.kind == "flow" && matches!(hit, Hit::To(..)) {
                return self.computed(filter, state, out);
            }
            let all = ask::packets(filter, state, &mut self.names);
            let all = self.forwarded(all, state);
            out.extend(all.into_iter().map(|cube| (cube, hit.clone())));
        }
    }

    /// The classes `flow` computes.
    fn computed(&mut self, filter: &'a Filter, state: &State, out: &mut Hits) {
        let flow = Flow::of(filter);
        let asked = ask::packets(filter, state, &mut self.names);
        for (cube, class) in flow.sets().unwrap_or_default() {
            let Some(cube) = ask::adapt(&cube, state) else { continue };
            let all: Any = asked.iter().filter_map(|a| a.and(&cube)).collect();
            let all = self.forwarded(all, state);
            out.extend(all.into_iter().map(|cube| (cube, Hit::To(class, filter.step, None))));
        }
        // What has no such key gets some number.
        let (first, last) = flow.all();
        out.extend(asked.into_iter().map(|cube| (cube, Hit::Among(first, last, filter.step))));
    }

    /// What becomes of packets that fit a filter; `None` where the next one is asked as if this one were not there.
    pub(super) fn hit(
        &mut self,
        filter: &'a Filter,
        parent: Handle,
        state: &State,
        depth: u32,
    ) -> Option<Hit> {
        let mut after = state.clone();
        let class = filter.classid.unwrap_or(Handle::UNSPEC);
        let control = act(filter, &mut after);
        // Classes below look at what the actions have set.
        let new = (after != *state).then(|| after.clone());
        let there = match control {
            Control::Ok => return Some(Hit::To(class, filter.step, new)),
            Control::Drop => return Some(Hit::Drop(filter.step)),
            Control::Elsewhere(dev) => return Some(Hit::Away(dev, filter.step)),
            Control::Continue if new.is_none() => return ask::skips(filter).then_some(Hit::Skip),
            Control::Continue | Control::Again if depth >= 4 => return Some(Hit::Miss(None)),
            // Over and over, until the kernel has enough of it.
            Control::Again if new.is_none() => return Some(Hit::Drop(filter.step)),
            // Asked again, or further on, with what the actions have set.
            // From the first chain on, whichever this is.
            Control::Again => self.filters(parent, 0, &after, depth + 1, None),
            Control::Continue => self.filters(parent, filter.chain, &after, depth + 1, Some(filter.step)),
            Control::Chain(chain) if depth < 8 => self.filters(parent, chain, &after, depth + 1, None),
            Control::Chain(_) => return Some(Hit::Miss(None)),
        };
        let set = |hit: Hit| match hit {
            Hit::To(id, by, None) => Hit::To(id, by, new.clone()),
            Hit::Miss(None) => Hit::Miss(new.clone()),
            hit => hit,
        };
        let there = there.into_iter().map(|(cube, hit)| (cube, set(hit)));
        let missed = (Cube::all(), Hit::Miss(new.clone()));
        self.onto.push(there.chain([missed]).collect());
        Some(Hit::Onto(self.onto.len() - 1))
    }
}

/// Nodes of u32 stand in the order of their numbers; those without are given 0x800 and up.
pub fn node(filter: &Filter) -> u32 {
    if filter.handle & 0xfff != 0 { filter.handle & 0xfff } else { 0x800 }
}

/// Filters of one priority in the order their kind asks them.
pub fn in_order<'f>(group: &[&'f Filter]) -> Vec<&'f Filter> {
    let mut all = group.to_vec();
    match all.first().map(|f| f.kind.as_str()) {
        // The youngest first.
        Some("basic" | "bpf" | "fw") => all.reverse(),
        Some("flower") => {
            let masks: Vec<_> = all.iter().map(|f| ask::masks(&f.options)).collect();
            all.sort_by_cached_key(|f| masks.iter().position(|m| *m == ask::masks(&f.options)));
        }
        Some("u32") => all.sort_by_key(|f| node(f)),
        _ => {}
    }
    all
}

/// Whether a tree sends at once what it finds no class for.
fn sends_directly(qdisc: &Qdisc) -> bool {
    qdisc.traits().sorting == Sorting::Tree { direct: true }
}
