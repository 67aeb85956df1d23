//! netfilter's rules as sets of packets, each with the mark, ToS, class and fate it leaves with.
//!
//! Follows: linux v6.12 `net/ipv4/netfilter/ip_tables.c` `ipt_do_table`, `net/ipv4/ip_forward.c` `ip_forward` (the priority from the ToS).
//! Differs: policies are taken to accept; what only connections, counters or time tell is a condition by itself.

use super::ask::{Priority, State, Translated};
use super::cube::{Any, Cube, Names, Place, both, none_of, range};
use super::diagram::tidy;
use crate::facts::Facts;
use crate::filters::{IP, IP6};
use crate::marks::Ruled;
use penstock_lang::iptables::{
    AddrMatch, Connmark, Edit, Family, Iface, Match, PortKind, PortMatch, Rule, Table, Target, Verdict,
    print_target,
};
use std::collections::BTreeMap;
use std::net::IpAddr;

/// With more parts than these fewer are looked for.
const MANY: usize = 300;
/// More parts than these are not made.
const MAX_PARTS: usize = 60_000;

/// Packets and what became of them.
#[derive(Clone, Debug)]
pub struct Passed {
    /// The packets; those of earlier ones are not among them.
    pub cube: Cube,
    /// What they leave with.
    pub fate: Left,
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
}

/// All ways through the hooks of a packet that leaves by `output`: those of forwarded packets and of the machine's own.
///
/// Whether anything had to be left out is the other half of the answer.
pub fn ways<'a>(facts: &'a Facts, output: &'a str, names: &'a mut Names) -> (Vec<Passed>, bool) {
    let chains = facts.netfilter.standing.by_chain();
    if chains.is_empty() {
        return (Vec::new(), false);
    }
    // With rules of its own that set marks, a packet comes without one.
    let marks = facts.sets_marks();
    names.conn |= marks;
    let fresh = State { mark: if marks { (u32::MAX, 0) } else { (0, 0) }, ..State::default() };
    let mut out = Vec::new();
    let mut cut = false;
    let hooks: [(u32, &[&str]); 2] =
        [(1, &["PREROUTING", "FORWARD", "POSTROUTING"]), (0, &["OUTPUT", "POSTROUTING"])];
    for (forwarded, hooks) in hooks {
        let first = Passed {
            cube: Cube::of(Place::Forwarded, 1, forwarded),
            fate: Left { state: fresh.clone(), dropped: None },
            at: At::Chain(0),
        };
        let mut way =
            Way { facts, chains: chains.clone(), output, names, parts: vec![first], many: MANY, cut: false };
        for hook in hooks {
            for table in Table::ALL.into_iter().filter(|t| t.built_in().contains(hook)) {
                way.parts
                    .iter_mut()
                    .for_each(|p| p.at = if p.fate.dropped.is_some() { At::Out } else { At::Chain(0) });
                for family in [Family::Ip, Family::Ip6] {
                    way.chain(family, table, hook, hook, 0);
                }
            }
            if *hook == "PREROUTING" {
                for part in &mut way.parts {
                    let tos = part.fate.state.tos;
                    part.fate.state.priority = Priority::Tos(tos.0, tos.1);
                }
            }
        }
        cut |= way.cut;
        out.extend(way.parts.into_iter().rev());
    }
    (out, cut)
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
        let plain = wanted.matches(self.output);
        if !self.names.tags {
            return plain.then(Cube::all);
        }
        if let Some(id) = super::hooks::vlan_id(self.facts, self.output, &wanted.name) {
            return (!wanted.invert).then(|| Cube::of(Place::Tag, 0xffff_0fff, 0x8100_0000 | u32::from(id)));
        }
        match (plain, wanted.wildcard || wanted.invert) {
            (true, true) => Some(Cube::all()),
            (true, false) => Some(Cube::of(Place::Tag, u32::MAX, 0)),
            (false, _) => None,
        }
    }
    fn chain(&mut self, family: Family, table: Table, chain: &str, hook: &str, depth: u32) {
        if depth > 16 {
            return;
        }
        let rules = self
            .chains
            .iter()
            .find(|(k, _)| (k.0, k.1, k.2) == (family as u8, table, chain))
            .map_or(Vec::new(), |(_, r)| r.clone());
        for ruled in rules {
            self.rule(family, table, ruled, hook, depth);
        }
        if depth > 0 {
            // Back to where they came from.
            for part in self.parts.iter_mut().filter(|p| p.at == At::Chain(depth)) {
                part.at = At::Chain(depth - 1);
            }
        }
    }
    fn rule(&mut self, family: Family, table: Table, ruled: &'a Ruled, hook: &str, depth: u32) {
        let rule = &ruled.rule;
        let Some(out) = self.leaves(rule, hook).filter(|_| !self.cut) else { return };
        let Some(asked) = headers(family, rule, hook, self.names).and_then(|all| both(&all, &[out])) else {
            self.cut = true;
            return;
        };
        let here = At::Chain(depth);
        let moved: Vec<Option<Fate>> = self
            .parts
            .iter()
            .map(|p| if p.at == here { then(p, ruled, depth, self.facts) } else { None })
            .collect();
        let tests_state = rule.matches.iter().any(|m| {
            matches!(m, Match::Dscp { .. } | Match::Tos { .. } | Match::Mark { .. } | Match::Connmark { .. })
        });
        let first = moved.iter().position(Option::is_some);
        let last = moved.iter().rposition(Option::is_some);
        let (Some(first), Some(last)) = (first, last) else { return };
        // Where all packets that came into this chain leave it alike, one set says it; the widest part of them comes last.
        let alike = moved[first..=last].iter().all(|m| *m == moved[first]);
        let widest = self.parts[first].cube.clone();
        let within = |p: &Passed| {
            widest.0.iter().all(|&(place, mask, value)| {
                let have = p.cube.at(place);
                mask & !have.0 == 0 && (value ^ have.1) & mask == 0
            })
        };
        if alike && !tests_state && self.parts[first..=last].iter().all(within) {
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
                    let state = of_state(family, rule, &part.fate.state);
                    for cube in both(&asked, &state).unwrap_or_default() {
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
        if let Target::Jump(to) | Target::Goto(to) = &rule.target {
            self.chain(family, table, to, hook, depth + 1);
        }
    }
}

/// What becomes of packets of a part that fit a rule; `None` where nothing does.
fn then(part: &Passed, ruled: &Ruled, depth: u32, facts: &Facts) -> Option<Fate> {
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
        Target::Return => at = if depth == 0 { At::Out } else { At::Chain(depth - 1) },
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

/// A rule's tests of ToS and marks, as they are by then.
fn of_state(family: Family, rule: &Rule, state: &State) -> Any {
    let mut all = vec![Cube::all()];
    for m in &rule.matches {
        let tos = |value: u8, mask: u8| {
            let at = super::ask::tos_at(family == Family::Ip6);
            let cube = Cube::of(Place::Word(0), u32::from(mask) << at, u32::from(value) << at);
            super::ask::adapt(&cube, state)
        };
        let (fits, invert) = match m {
            Match::Dscp { dscp, invert } => (tos(dscp << 2, 0xfc), *invert),
            Match::Tos { value, mask, invert } => (tos(*value, *mask), *invert),
            Match::Mark { mark, mask, invert } | Match::Connmark { mark, mask, invert } => {
                let known = if matches!(m, Match::Mark { .. }) { state.mark } else { state.conn };
                let state = State { mark: known, ..State::default() };
                let fits = super::ask::mark(&state, *mask, *mark).filter(|_| mark & !mask == 0);
                (fits, *invert)
            }
            _ => continue,
        };
        let fits: Any = fits.into_iter().collect();
        let fits = if invert { none_of(&fits) } else { Some(fits) };
        all = fits.and_then(|f| both(&all, &f)).unwrap_or_default();
    }
    all
}

/// What a rule asks of headers, but for mark and ToS; `None` where its parts would be too many.
fn headers(family: Family, rule: &Rule, hook: &str, names: &mut Names) -> Option<Any> {
    let six = family == Family::Ip6;
    let mut all = vec![Cube::ethertype(if six { IP6 } else { IP })];
    let mut join = |more: Any, invert: bool| -> Option<()> {
        let more = if invert { none_of(&more)? } else { more };
        all = both(&all, &more)?;
        Some(())
    };
    if let Some(input) = rule.input.as_ref().filter(|_| !matches!(hook, "POSTROUTING" | "OUTPUT")) {
        join(devices(input, names), input.invert)?;
    }
    for (addr, off) in [(&rule.src, if six { 8 } else { 12 }), (&rule.dst, if six { 24 } else { 16 })] {
        if let Some(addr) = addr {
            join(address(addr, off, six), addr.invert)?;
        }
    }
    if let Some((protocol, invert)) = rule.protocol {
        join(vec![proto(protocol, six)], invert)?;
    }
    if let Some(invert) = rule.fragment {
        let first = Cube::of(Place::Word(4), 0x1fff, 0);
        join(vec![first], !invert)?;
    }
    let port = if six { 40 } else { 20 };
    let whole = if six { Cube::all() } else { Cube::of(Place::Word(4), 0x1fff, 0) };
    let ports = |m: &PortMatch, shift: u32| -> Option<Any> {
        let fits = range(Place::Word(port), shift, 16, m.ports.from.into(), m.ports.to.into());
        if m.invert { none_of(&fits) } else { Some(fits) }
    };
    for m in &rule.matches {
        match m {
            Match::Comment(_)
            | Match::Mark { .. }
            | Match::Connmark { .. }
            | Match::Dscp { .. }
            | Match::Tos { .. } => {}
            Match::Tcp(t) => {
                join(vec![whole.and(&proto(6, six))?], false)?;
                join(both(&ports(&t.sport, 16)?, &ports(&t.dport, 0)?)?, false)?;
                if t.flags.0 != 0 {
                    let (mask, value) = (u32::from(t.flags.0) << 16, u32::from(t.flags.1) << 16);
                    join(vec![Cube::of(Place::Word(port + 12), mask, value)], t.invert_flags)?;
                }
                if t.option.is_some() {
                    join(vec![Cube::of(Place::Other(names.other("--tcp-option")), 1, 1)], false)?;
                }
            }
            Match::Udp(s, d) => {
                join(vec![whole.and(&proto(17, six))?], false)?;
                join(both(&ports(s, 16)?, &ports(d, 0)?)?, false)?;
            }
            Match::Multiport { kind, ports, invert } => {
                let side = |shift: u32| -> Any {
                    let one = |p: &penstock_lang::iptables::Ports| {
                        range(Place::Word(port), shift, 16, p.from.into(), p.to.into())
                    };
                    ports.iter().flat_map(one).collect()
                };
                let fits = match kind {
                    PortKind::Source => side(16),
                    PortKind::Destination => side(0),
                    PortKind::Either => side(16).into_iter().chain(side(0)).collect(),
                };
                join(vec![whole.clone()], false)?;
                join(fits, *invert)?;
            }
            Match::Icmp { ty, code, invert } => {
                let fits = match ty {
                    255 => vec![Cube::all()],
                    ty => {
                        let codes = range(Place::Word(port), 16, 8, code.0.into(), code.1.into());
                        both(&codes, &[Cube::of(Place::Word(port), 0xff00_0000, u32::from(*ty) << 24)])?
                    }
                };
                join(vec![whole.clone()], false)?;
                join(fits, *invert)?;
            }
            Match::Length { min, max, invert } => {
                let from =
                    |n: u32| if n <= 28 { vec![Cube::all()] } else { vec![Cube::of(Place::Long(n), 1, 1)] };
                let fits = both(&from((*min).into()), &none_of(&from(u32::from(*max) + 1))?)?;
                join(fits, *invert)?;
            }
            Match::Ttl { ttl, mode } => {
                let (place, shift) = if six { (Place::Word(4), 0) } else { (Place::Word(8), 24) };
                let ttl = u32::from(*ttl);
                let fits = match mode {
                    -1 if ttl == 0 => Vec::new(),
                    -1 => range(place, shift, 8, 0, ttl - 1),
                    1 if ttl == 255 => Vec::new(),
                    1 => range(place, shift, 8, ttl + 1, 255),
                    _ => range(place, shift, 8, ttl, ttl),
                };
                join(fits, *mode == 2)?;
            }
            Match::Iprange { src, dst } if !six => {
                for (side, off) in [(src, 12), (dst, 16)] {
                    if let Some((from, to, invert)) = side {
                        join(range(Place::Word(off), 0, 32, *from as u32, *to as u32), *invert)?;
                    }
                }
            }
            other => {
                let alone = Rule { matches: vec![other.clone()], ..Rule::default() };
                let text = print_target(&alone, family, penstock_model::Kernel::default()).trim().to_owned();
                join(vec![Cube::of(Place::Other(names.other(&text)), 1, 1)], false)?;
            }
        }
    }
    Some(all)
}

fn proto(protocol: u8, six: bool) -> Cube {
    match six {
        true => Cube::of(Place::Word(4), 0xff00, u32::from(protocol) << 8),
        false => Cube::of(Place::Word(8), 0x00ff_0000, u32::from(protocol) << 16),
    }
}

fn address(addr: &AddrMatch, off: i32, six: bool) -> Any {
    if !six {
        return vec![Cube::of(Place::Word(off), addr.mask as u32, addr.addr as u32)];
    }
    Cube::bytes(off, &addr.addr.to_be_bytes(), &addr.mask.to_be_bytes()).into_iter().collect()
}

/// The devices a name, or the begin of one, means.
fn devices(input: &Iface, names: &Names) -> Any {
    if input.wildcard && input.name.is_empty() {
        return vec![Cube::all()];
    }
    names.numbers(input).into_iter().map(|n| Cube::of(Place::Input, 0xffff, n)).collect()
}
