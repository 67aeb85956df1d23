//! netfilter's rules as sets of packets, each with the mark, ToS, class and fate it leaves with.
//!
//! Follows: linux v6.12 `net/ipv4/netfilter/ip_tables.c` `ipt_do_table`, `net/ipv4/ip_forward.c` `ip_forward` (the priority from the ToS).
//! Differs: what only counters, limits or time tell is a condition by itself.

mod asked;

pub(super) use asked::{has_state, states};
use asked::{headers, of_state};

use super::ask::{Priority, State, Translated};
use super::cube::{Any, Cube, Names, Place, both};
use super::diagram::tidy;
use super::nft::{self, Change, End, Station};
use crate::facts::Facts;
use crate::filters::{IP, IP6};
use crate::marks::Ruled;
use penstock_lang::iptables::{Connmark, Edit, Family, Iface, Match, Rule, Table, Target, Verdict};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// With more parts than these fewer are looked for.
const MANY: usize = 300;
/// More parts than these are not made.
const MAX_PARTS: usize = 60_000;

/// Packets and what became of them.
#[derive(Clone, Debug)]
struct Passed {
    /// The packets; those of earlier ones are not among them.
    cube: Cube,
    /// What they leave with.
    fate: Left,
    at: At,
}

/// What packets leave the hooks with.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Left {
    /// Mark, ToS, priority.
    pub state: State,
    /// The rule that dropped them: its command, and the line of the text that it reads.
    pub dropped: Option<(usize, u32)>,
}

/// What packets have behind a rule, and where they go on.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Fate(Left, At);

/// Where packets are within a table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
enum At {
    /// In a chain so many jumps deep.
    Chain(u32),
    /// There too, and through with the rule at hand.
    Done(u32),
    /// At the end of the chain that hangs at the hook.
    End,
    /// Through with the table.
    #[default]
    Out,
}

struct Way<'a> {
    facts: &'a Facts,
    chains: BTreeMap<(u8, Table, &'a str), Vec<&'a Ruled>>,
    output: &'a str,
    names: &'a mut Names,
    /// The first one a packet is in stands last.
    parts: Vec<Passed>,
    /// With more parts than these the next look for fewer is worth it.
    many: usize,
    cut: bool,
    /// What is not followed, with its place.
    lost: Vec<String>,
}

/// What the rules make of packets.
pub struct Ways {
    /// The packets, each with what it leaves with; those of earlier ones are not among them. Empty where there are no rules.
    pub all: Vec<(Cube, Left)>,
    /// Whether anything had to be left out.
    pub cut: bool,
    /// What is not followed, with its place.
    pub lost: Vec<String>,
}

/// All ways through the hooks of a packet that leaves by `output`: those of forwarded packets and of the machine's own.
pub fn ways<'a>(facts: &'a Facts, output: &'a str, names: &'a mut Names) -> Ways {
    let netfilter = &facts.netfilter;
    let chains = netfilter.standing.by_chain();
    let mut all = Ways { all: Vec::new(), cut: false, lost: nft::elsewhere(&netfilter.of_nft.tables) };
    let hangs = netfilter.of_nft.tables.iter().any(|t| t.chains.iter().any(|c| c.base.is_some()));
    if chains.is_empty() && netfilter.standing.drops.is_empty() && !hangs {
        return all;
    }
    // With rules of its own that set marks, a packet comes without one.
    let marks = facts.sets_marks();
    names.conn |= marks;
    let fresh = State { mark: if marks { (u32::MAX, 0) } else { (0, 0) }, ..State::default() };
    let hooks: [(u32, &[&str]); 2] = [
        (1, &["ingress", "PREROUTING", "FORWARD", "POSTROUTING", "egress"]),
        (0, &["OUTPUT", "POSTROUTING", "egress"]),
    ];
    for (forwarded, hooks) in hooks {
        let first = Passed {
            cube: Cube::of(Place::Forwarded, 1, forwarded),
            fate: Left { state: fresh.clone(), dropped: None },
            at: At::Chain(0),
        };
        let mut way = Way {
            facts,
            chains: chains.clone(),
            output,
            names,
            parts: vec![first],
            many: MANY,
            cut: false,
            lost: Vec::new(),
        };
        for hook in hooks {
            for station in nft::stations(facts, nft::Hook { name: hook, output }, way.names) {
                way.station(&station, hook);
            }
            if *hook == "PREROUTING" {
                for part in &mut way.parts {
                    let tos = part.fate.state.tos;
                    // IPv6 leaves the priority as it is.
                    if part.cube.at(Place::Ethertype) != (0xffff, IP6.into()) {
                        part.fate.state.priority = Priority::Tos(tos.0, tos.1);
                    }
                }
            }
        }
        all.cut |= way.cut;
        all.lost.extend(way.lost);
        all.all.extend(way.parts.into_iter().rev().map(|p| (p.cube, p.fate)));
    }
    all.lost.sort();
    all.lost.dedup();
    all
}

/// Of packets that leave by `output` those that a rule means by this device: tagged ones go out by a VLAN device before. `None`: none.
pub(super) fn leaves_by(facts: &Facts, names: &Names, output: &str, wanted: &Iface) -> Option<Cube> {
    let plain = wanted.matches(output);
    if !names.tags {
        return plain.then(Cube::all);
    }
    if let Some(id) = super::hooks::vlan_id(facts, output, &wanted.name) {
        return (!wanted.invert).then(|| Cube::of(Place::Tag, 0xffff_0fff, 0x8100_0000 | u32::from(id)));
    }
    match (plain, wanted.wildcard || wanted.invert) {
        (true, true) => Some(Cube::all()),
        (true, false) => Some(Cube::of(Place::Tag, u32::MAX, 0)),
        (false, _) => None,
    }
}

impl<'a> Way<'a> {
    /// The packets that leave by the device a rule names: tagged ones go out by a VLAN device before. `None`: none does.
    fn leaves(&self, rule: &Rule, hook: &str) -> Option<Cube> {
        let late = matches!(hook, "POSTROUTING" | "OUTPUT");
        if late && rule.input.as_ref().is_some_and(|i| !i.matches("")) {
            return None;
        }
        let Some(wanted) = &rule.output else { return Some(Cube::all()) };
        if hook == "PREROUTING" {
            return wanted.matches("").then(Cube::all);
        }
        leaves_by(self.facts, self.names, self.output, wanted)
    }
    /// A table of iptables, or a base chain of nft.
    fn station(&mut self, station: &Station, hook: &str) {
        let nat =
            matches!(station, Station::Table(Table::Nat)) || matches!(station, Station::Chain(b) if b.nat);
        for part in &mut self.parts {
            // A connection's source is translated once.
            let through = part.fate.dropped.is_some() || nat && part.fate.state.translated.is_some();
            part.at = if through { At::Out } else { At::Chain(0) };
        }
        match station {
            Station::Table(table) => {
                for family in [Family::Ip, Family::Ip6] {
                    self.chain(family, *table, hook, hook, 0, At::End);
                    // The other family's packets have their own chain.
                    self.parts.iter_mut().filter(|p| p.at == At::End).for_each(|p| p.at = At::Chain(0));
                    let policy =
                        self.facts.netfilter.standing.drops.get(&(family as u8, *table, hook.to_owned()));
                    if let Some(&by) = policy {
                        let ethertype = if family == Family::Ip6 { IP6 } else { IP };
                        self.policy(&[Cube::ethertype(ethertype)], by);
                    }
                }
            }
            Station::Chain(base) => {
                self.lines(base, &base.chain, 0, At::End);
                if let Some(by) = base.drops {
                    self.parts.iter_mut().filter(|p| p.at == At::End).for_each(|p| p.at = At::Chain(0));
                    self.policy(&base.comes, by);
                }
            }
        }
    }
    /// Those that have come to the end of a chain are dropped.
    fn policy(&mut self, comes: &[Cube], by: (usize, u32)) {
        let then = |p: &Passed| Some(Fate(Left { dropped: Some(by), ..p.fate.clone() }, At::Out));
        self.split(comes, None, At::Chain(0), &then);
    }

    /// `ended`: where packets are behind its end.
    fn chain(&mut self, family: Family, table: Table, chain: &str, hook: &str, depth: u32, ended: At) {
        if depth > 16 {
            return;
        }
        let rules = self
            .chains
            .iter()
            .find(|(k, _)| (k.0, k.1, k.2) == (family as u8, table, chain))
            .map_or(Vec::new(), |(_, r)| r.clone());
        for ruled in rules {
            self.rule(family, table, ruled, hook, (depth, ended));
            self.next(depth);
        }
        self.leave(depth, ended);
    }
    /// Those that are through with a rule go on with the next.
    fn next(&mut self, depth: u32) {
        self.parts.iter_mut().filter(|p| p.at == At::Done(depth)).for_each(|p| p.at = At::Chain(depth));
    }
    /// Those that have come to a chain's end.
    fn leave(&mut self, depth: u32, ended: At) {
        self.parts.iter_mut().filter(|p| p.at == At::Chain(depth)).for_each(|p| p.at = ended);
    }
    /// A chain of nft.
    fn lines(&mut self, base: &nft::Base, chain: &str, depth: u32, ended: At) {
        if depth > 16 {
            return;
        }
        for line in base.chains.get(chain).into_iter().flatten() {
            let mut lost: Vec<String> = line.lost.clone();
            for way in &line.ways {
                if self.cut {
                    return;
                }
                let asks = way.asked.iter().any(nft::asks_state);
                let of_state = |state: &State| -> Any {
                    way.asked.iter().filter_map(|c| nft::settled(c, state, Place::Mark)).collect()
                };
                let unsure = std::cell::Cell::new(false);
                let then = |p: &Passed| {
                    let left = changed(&p.fate, way, line.by);
                    unsure.set(unsure.get() || left.is_none());
                    let at = match &way.end {
                        End::Next => At::Done(depth),
                        End::Accept | End::Drop => At::Out,
                        End::Return => ended,
                        End::Jump(_) | End::Goto(_) => At::Chain(depth + 1),
                    };
                    Some(Fate(left.unwrap_or_else(|| p.fate.clone()), at))
                };
                let none = [Cube::all()];
                if asks {
                    self.split(&none, Some(&of_state), At::Chain(depth), &then);
                } else {
                    self.split(&way.asked, None, At::Chain(depth), &then);
                }
                if unsure.get() {
                    lost.push(line.text.clone());
                }
                match &way.end {
                    End::Jump(to) => self.lines(base, to, depth + 1, At::Done(depth)),
                    End::Goto(to) => self.lines(base, to, depth + 1, ended),
                    _ => {}
                }
            }
            let place = self.facts.rule_place(line.by.0, line.by.1);
            self.lost.extend(lost.into_iter().map(|text| format!("{place}: `{text}`")));
            self.next(depth);
        }
        self.leave(depth, ended);
    }
    fn rule(
        &mut self,
        family: Family,
        table: Table,
        ruled: &'a Ruled,
        hook: &str,
        (depth, ended): (u32, At),
    ) {
        let rule = &ruled.rule;
        let Some(out) = self.leaves(rule, hook).filter(|_| !self.cut) else { return };
        let Some(asked) = headers(family, rule, hook, self.names).and_then(|all| both(&all, &[out])) else {
            self.cut = true;
            return;
        };
        let tests_state = rule.matches.iter().any(|m| {
            matches!(m, Match::Dscp { .. } | Match::Tos { .. } | Match::Mark { .. } | Match::Connmark { .. })
        });
        let facts = self.facts;
        let then = |p: &Passed| then(p, ruled, (depth, ended), facts);
        let of_state = |state: &State| of_state(family, rule, state);
        let of_state: Option<&dyn Fn(&State) -> Any> = if tests_state { Some(&of_state) } else { None };
        if !self.split(&asked, of_state, At::Chain(depth), &then) {
            return;
        }
        match &rule.target {
            Target::Jump(to) => self.chain(family, table, to, hook, depth + 1, At::Done(depth)),
            Target::Goto(to) => self.chain(family, table, to, hook, depth + 1, ended),
            Target::Plain(p) if matches!(p.name.as_str(), "DNAT" | "REDIRECT" | "NETMAP") => {
                let place = self.facts.rule_place(ruled.step, ruled.line);
                self.lost.push(format!("{place}: `{}`", p.name));
            }
            _ => {}
        }
    }
    /// Parts off those packets that are asked for; what becomes of them is said for each part of those that are `here`. Whether there are any.
    fn split(
        &mut self,
        asked: &[Cube],
        of_state: Option<&dyn Fn(&State) -> Any>,
        here: At,
        then: &dyn Fn(&Passed) -> Option<Fate>,
    ) -> bool {
        let moved: Vec<Option<Fate>> =
            self.parts.iter().map(|p| if p.at == here { then(p) } else { None }).collect();
        let first = moved.iter().position(Option::is_some);
        let last = moved.iter().rposition(Option::is_some);
        let (Some(first), Some(last)) = (first, last) else { return false };
        // Where all packets that came into this chain leave it alike, one set says it; the widest part of them comes last.
        let alike = moved[first..=last].iter().all(|m| *m == moved[first]);
        let widest = self.parts[first].cube.clone();
        let within = |p: &Passed| {
            widest.0.iter().all(|&(place, mask, value)| {
                let have = p.cube.at(place);
                mask & !have.0 == 0 && (value ^ have.1) & mask == 0
            })
        };
        if alike && of_state.is_none() && self.parts[first..=last].iter().all(within) {
            let fate = moved[first].clone().unwrap_or_default();
            let at = last + 1;
            let new = asked
                .iter()
                .rev()
                .filter_map(|c| Some(Passed { cube: c.and(&widest)?, fate: fate.0.clone(), at: fate.1 }));
            let new: Vec<Passed> = new.collect();
            self.parts.splice(at..at, new);
        } else {
            let old = std::mem::take(&mut self.parts);
            for (part, moved) in old.into_iter().zip(moved) {
                let mut before = Vec::new();
                if let Some(fate) = moved {
                    let all = match of_state {
                        Some(of_state) => both(asked, &of_state(&part.fate.state)),
                        None => Some(asked.to_vec()),
                    };
                    self.cut |= all.is_none();
                    for cube in all.unwrap_or_default() {
                        let cube = part.cube.and(&cube);
                        before.extend(cube.map(|cube| Passed { cube, fate: fate.0.clone(), at: fate.1 }));
                    }
                }
                self.parts.push(part);
                self.parts.extend(before.into_iter().rev());
            }
        }
        if self.parts.len() > self.many {
            let old = std::mem::take(&mut self.parts).into_iter().rev();
            let short = tidy(old.map(|p| (p.cube, (p.fate, p.at))).collect());
            self.parts =
                short.into_iter().rev().map(|(cube, (fate, at))| Passed { cube, fate, at }).collect();
            self.many = MANY.max(2 * self.parts.len());
        }
        if self.parts.len() > MAX_PARTS {
            self.cut = true;
        }
        true
    }
}

/// What packets of a part have behind a rule of nft; `None` where a bit that is not known would be turned.
fn changed(fate: &Left, way: &nft::Way, by: (usize, u32)) -> Option<Left> {
    let Left { mut state, mut dropped } = fate.clone();
    for change in &way.changes {
        match *change {
            Change::Mark(bits) => state.mark = bits.known(state.mark, state.conn)?,
            Change::Conn(bits) => state.conn = bits.known(state.mark, state.conn)?,
            Change::Tos { six, mask, value } => {
                state.tos = (state.tos.0 | mask, state.tos.1 & !mask | value);
                state.six = six;
            }
            Change::Priority(n) => state.priority = Priority::Set(n),
            Change::Lost => {}
            Change::Source(to) => {
                let six = way.asked.iter().any(|c| c.at(Place::Ethertype).1 == u32::from(IP6));
                state.translated = Some(match to {
                    Some(IpAddr::V6(to)) => Translated::Six(Some(to.into())),
                    Some(IpAddr::V4(to)) => Translated::Four(Some(to.into())),
                    None if six => Translated::Six(None),
                    None => Translated::Four(None),
                });
            }
        }
    }
    if way.end == End::Drop {
        dropped = Some(by);
    }
    Some(Left { state, dropped })
}

/// What becomes of packets of a part that fit a rule; `None` where nothing does.
fn then(part: &Passed, ruled: &Ruled, (depth, ended): (u32, At), facts: &Facts) -> Option<Fate> {
    let Left { mut state, mut dropped } = part.fate.clone();
    let mut at = part.at;
    match &ruled.rule.target {
        Target::Edit(Edit::Mark { value, mask }) => {
            let known = state.mark.0 | mask;
            state.mark = (known, (state.mark.1 & !mask ^ value) & known);
        }
        Target::Edit(Edit::Connmark { op, value, ctmask, nfmask, shift }) => {
            connmark(*op, *value, *ctmask, *nfmask, *shift, &mut state);
        }
        Target::Edit(Edit::Tos { value, mask }) => {
            state.tos = (state.tos.0 | mask, state.tos.1 & !mask ^ value);
            state.six = ruled.family == Family::Ip6;
        }
        Target::Edit(Edit::Dscp(dscp)) => {
            state.tos = (state.tos.0 | 0xfc, state.tos.1 & 3 | dscp << 2);
            state.six = ruled.family == Family::Ip6;
        }
        Target::Edit(Edit::Classify(class)) => state.priority = Priority::Set(class.0),
        Target::Verdict(Verdict::Accept) => at = At::Out,
        Target::Verdict(Verdict::Drop) | Target::Reject(_) => {
            dropped = Some((ruled.step, ruled.line));
            at = At::Out;
        }
        Target::Return => at = ended,
        Target::Jump(_) | Target::Goto(_) => at = At::Chain(depth + 1),
        Target::Plain(p) if matches!(p.name.as_str(), "MASQUERADE" | "SNAT") => {
            let source = super::hooks::source(facts, ruled.family, &p.save, ruled.rule.output.as_ref());
            state.translated = Some(match (ruled.family, source) {
                (Family::Ip6, Some(IpAddr::V6(to))) => Translated::Six(Some(to.into())),
                (Family::Ip6, _) => Translated::Six(None),
                (_, Some(IpAddr::V4(to))) => Translated::Four(Some(to.into())),
                _ => Translated::Four(None),
            });
            at = At::Out;
        }
        _ => return None,
    }
    Some(Fate(Left { state, dropped }, at))
}

/// `CONNMARK` on what is known of both marks; what moves bits or mixes them leaves them as they were.
fn connmark(op: Connmark, value: u32, ctmask: u32, nfmask: u32, shift: i8, state: &mut State) {
    let (mark, conn) = (state.mark, state.conn);
    let put = |to: (u32, u32), from: (u32, u32), mask: u32| {
        (to.0 & !mask | from.0 & mask, to.1 & !mask | from.1 & mask & from.0)
    };
    match op {
        _ if shift != 0 => {}
        Connmark::Set => {
            let known = conn.0 | ctmask;
            state.conn = (known, (conn.1 & !ctmask ^ value) & known);
        }
        Connmark::Save if nfmask & !ctmask == 0 => {
            let cleared = (conn.0 | ctmask, conn.1 & !ctmask);
            state.conn = put(cleared, mark, nfmask);
        }
        Connmark::Restore if ctmask & !nfmask == 0 => {
            let cleared = (mark.0 | nfmask, mark.1 & !nfmask);
            state.mark = put(cleared, conn, ctmask);
        }
        Connmark::Save | Connmark::Restore => {}
    }
}
