//! basic's extended matches as sets of packets.
//!
//! Follows: linux v6.12 `net/sched/ematch.c`, `em_cmp.c`, `em_nbyte.c`, `em_u32.c`, `em_meta.c`.

use super::Probe;
use super::cube::{Any, Cube, Names, Place, both, none_of, range};
use crate::filters::{ALL, IP, IP6, QINQ, VLAN};
use penstock_model::Options;

const AND: u32 = 1;
const OR: u32 = 2;
const INVERT: u32 = 4;

/// The packets a tree of matches fits; `None` where their parts would be too many.
pub fn packets(list: &[Options], protocol: u16, names: &mut Names) -> Option<Any> {
    if list.is_empty() {
        return Some(vec![Cube::all()]);
    }
    sequence(list, 0, protocol, names, 0, false)
}

fn n(o: &Options, name: &str) -> u32 {
    o.u32(name).unwrap_or(0)
}

/// A match and what is joined to it behind, or with `not` what does not fit them: an `and` binds everything that follows, and so does an `or`.
fn sequence(
    list: &[Options],
    at: usize,
    protocol: u16,
    names: &mut Names,
    depth: u32,
    not: bool,
) -> Option<Any> {
    let one = list.get(at)?;
    let flags = n(one, "flags");
    let turned = not != (flags & INVERT != 0);
    let mut own = match n(one, "kind") {
        0 if depth < 16 => sequence(list, n(one, "ref") as usize, protocol, names, depth + 1, turned)?,
        _ if turned => none_of(&single(one, protocol, names)?)?,
        _ => single(one, protocol, names)?,
    };
    match (flags & (AND | OR), not) {
        (0, _) => Some(own),
        // What is not in both is not in one or not in the other.
        (AND, false) | (OR, true) => both(&own, &sequence(list, at + 1, protocol, names, depth, not)?),
        _ => {
            own.extend(sequence(list, at + 1, protocol, names, depth, not)?);
            Some(own).filter(|o| o.len() <= 4096)
        }
    }
}

/// A filter's matches, to be asked about one packet.
pub enum Tree {
    /// A match: the packets it fits.
    Leaf(Any),
    /// A match or several, turned round.
    Not(Box<Tree>),
    /// All of them.
    And(Box<Tree>, Box<Tree>),
    /// Any of them.
    Or(Box<Tree>, Box<Tree>),
}

impl Tree {
    /// Of a filter's list; `None` where it has none, or a match that is not there.
    pub fn of(list: &[Options], protocol: u16, names: &mut Names) -> Option<Tree> {
        Self::sequence(list, 0, protocol, names, 0)
    }
    fn sequence(list: &[Options], at: usize, protocol: u16, names: &mut Names, depth: u32) -> Option<Tree> {
        let one = list.get(at)?;
        let flags = n(one, "flags");
        let mut own = match n(one, "kind") {
            0 if depth < 16 => Self::sequence(list, n(one, "ref") as usize, protocol, names, depth + 1)?,
            _ => Tree::Leaf(single(one, protocol, names)?),
        };
        if flags & INVERT != 0 {
            own = Tree::Not(Box::new(own));
        }
        let mut rest = || Some(Box::new(Self::sequence(list, at + 1, protocol, names, depth)?));
        Some(match flags & (AND | OR) {
            AND => Tree::And(Box::new(own), rest()?),
            OR => Tree::Or(Box::new(own), rest()?),
            _ => own,
        })
    }
    /// Whether a packet fits.
    pub fn holds(&self, probe: &Probe, names: &Names) -> bool {
        match self {
            Tree::Leaf(any) => any.iter().any(|c| c.holds(probe, names)),
            Tree::Not(tree) => !tree.holds(probe, names),
            Tree::And(a, b) => a.holds(probe, names) && b.holds(probe, names),
            Tree::Or(a, b) => a.holds(probe, names) || b.holds(probe, names),
        }
    }
}

/// What nobody can tell from the headers.
fn other(o: &Options, names: &mut Names) -> Any {
    let text = format!("ematch kind {}: {o:?}", n(o, "kind"));
    vec![Cube::of(Place::Other(names.other(&text)), 1, 1)]
}

fn base(layer: u32, protocol: u16) -> Option<i32> {
    match (layer, protocol) {
        (0, _) => Some(-14),
        (1, _) => Some(0),
        (2, IP) => Some(20),
        (2, IP6) => Some(40),
        _ => None,
    }
}

/// That a packet reaches so far.
fn reaches(end: i32) -> Cube {
    if end > 28 { Cube::of(Place::Long(end as u32), 1, 1) } else { Cube::all() }
}

fn single(o: &Options, protocol: u16, names: &mut Names) -> Option<Any> {
    // Where the transport header begins is another question for each version of IP.
    if n(o, "layer") == 2 && matches!(n(o, "kind"), 1 | 2) && matches!(protocol, ALL | VLAN | QINQ) {
        let mut out = Any::new();
        for version in [IP, IP6] {
            out.extend(both(&single(o, version, names)?, &[Cube::ethertype(version)])?);
        }
        return Some(out);
    }
    match n(o, "kind") {
        1 => cmp(o, protocol, names),
        2 => {
            let Some(base) = base(n(o, "layer"), protocol) else { return Some(other(o, names)) };
            let needle = o.bytes("needle").unwrap_or_default();
            let off = base + n(o, "off") as i32;
            let cube = Cube::bytes(off, needle, &vec![0xff; needle.len()])?;
            Some(cube.and(&reaches(off + needle.len() as i32)).into_iter().collect())
        }
        3 => {
            let off = o.i64("off").unwrap_or(0) as i32;
            let cube = Cube::word(off, n(o, "mask"), n(o, "val")).and_then(|c| c.and(&reaches(off + 4)));
            Some(cube.into_iter().collect())
        }
        4 => meta(o, names),
        _ => Some(other(o, names)),
    }
}

/// All numbers of a width that compare so with another: from, to.
fn ordered(opnd: u32, value: u32, full: u32) -> Option<(u32, u32)> {
    match opnd {
        0 => (value <= full).then_some((value, value)),
        1 => (value < full).then(|| (value + 1, full)),
        2 => (value > 0).then(|| (0, (value - 1).min(full))),
        _ => None,
    }
}

fn cmp(o: &Options, protocol: u16, names: &mut Names) -> Option<Any> {
    let width = n(o, "align");
    let (mask, value) = (n(o, "mask"), n(o, "val"));
    let full = if width >= 4 { u32::MAX } else { (1 << (8 * width)) - 1 };
    let Some(base) = base(n(o, "layer"), protocol) else { return Some(other(o, names)) };
    let off = base + n(o, "off") as i32;
    // A number that lies in one word.
    let within = off.rem_euclid(4) + width as i32 <= 4;
    let place = Place::Word(off - off.rem_euclid(4));
    let shift = 32 - 8 * (off.rem_euclid(4) as u32 + width);
    let mask = if mask == 0 { full } else { mask & full };
    if n(o, "opnd") == 0 {
        if value & !mask != 0 {
            return Some(Vec::new());
        }
        let bytes = |v: u32| v.to_be_bytes()[4 - width as usize..].to_vec();
        let cube = Cube::bytes(off, &bytes(value), &bytes(mask))?;
        return Some(cube.and(&reaches(off + width as i32)).into_iter().collect());
    }
    if mask != full || !within {
        return Some(other(o, names));
    }
    let Some((from, to)) = ordered(n(o, "opnd"), value, full) else { return Some(Vec::new()) };
    both(&range(place, shift, 8 * width, from, to), &[reaches(off + width as i32)])
}

fn meta(o: &Options, names: &mut Names) -> Option<Any> {
    let empty = Options::new();
    let (left, right) = (o.nested("left").unwrap_or(&empty), o.nested("right").unwrap_or(&empty));
    let (opnd, shift) = (n(o, "opnd"), n(left, "shift"));
    let (mask, value) = (n(left, "value"), n(right, "value"));
    let constant = n(right, "id") == 0 && shift < 32;
    match n(left, "id") {
        6 if constant => numbers(Place::Priority, 32, (shift, mask), (opnd, value)),
        12 if constant => numbers(Place::Mark, 32, (shift, mask), (opnd, value)),
        // Two bytes as they stand in memory, which tc leaves as they are.
        7 if constant && shift == 0 && opnd == 0 && (mask == 0 || mask & 0xffff == 0xffff) => {
            let Ok(value) = u16::try_from(value) else { return Some(Vec::new()) };
            Some(vec![Cube::protocol(value.swap_bytes(), names)])
        }
        9 if constant && shift == 0 && mask == 0 => {
            // `skb->len` has the Ethernet header too.
            let least = |bytes: u32| Cube::of(Place::Long(bytes.saturating_sub(14).max(1)), 1, 1);
            let from = |bytes: u32| if bytes <= 42 { vec![Cube::all()] } else { vec![least(bytes)] };
            match opnd {
                0 => both(&from(value), &none_of(&from(value + 1))?),
                1 => Some(from(value.saturating_add(1))),
                _ => none_of(&from(value)),
            }
        }
        // The tag beside the packet; without one nothing fits.
        VLAN_TAG if constant => {
            let tagged = [VLAN, QINQ].map(|tpid| Cube::of(Place::Tag, 0xffff_0000, u32::from(tpid) << 16));
            match numbers(Place::Tag, 16, (shift, mask), (opnd, value)) {
                Some(tci) => both(&tci, &tagged),
                None => Some(other(o, names)),
            }
        }
        _ => return Some(other(o, names)),
    }
    .or_else(|| Some(other(o, names)))
}

/// Whether a match looks at VLAN tags, or at the protocol, which is a tag's where there is one.
pub fn asks_tag(o: &Options) -> bool {
    n(o, "kind") == 4 && matches!(o.nested("left").map(|left| n(left, "id")), Some(7 | VLAN_TAG))
}

/// `TCF_META_ID_VLAN_TAG`.
const VLAN_TAG: u32 = 46;

//= linux v6.12 net/sched/em_meta.c meta_int_apply_extras
/// A number of so many bits, shifted down and then masked (0: not), that compares so with another; `None` where that is no set of bits.
fn numbers(place: Place, width: u32, (shift, mask): (u32, u32), (opnd, value): (u32, u32)) -> Option<Any> {
    let full = if shift >= width { 0 } else { u32::MAX >> (32 - width + shift) };
    let seen = if mask == 0 { full } else { mask & full };
    match opnd {
        0 if value & !seen != 0 => Some(Vec::new()),
        0 => Some(vec![Cube::of(place, seen << shift, value << shift)]),
        _ if seen == full && full > 0 => {
            let Some((from, to)) = ordered(opnd, value, full) else { return Some(Vec::new()) };
            Some(range(place, shift, width - shift, from, to))
        }
        _ => None,
    }
}
