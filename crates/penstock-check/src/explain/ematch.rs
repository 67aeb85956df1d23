//! basic's extended matches as sets of packets.
//!
//! Follows: linux v6.12 `net/sched/ematch.c`, `em_cmp.c`, `em_nbyte.c`, `em_u32.c`, `em_meta.c`.

use super::cube::{Any, Cube, Names, Place, both, none_of, range};
use crate::filters::{IP, IP6};
use penstock_model::Options;

const AND: u32 = 1;
const OR: u32 = 2;
const INVERT: u32 = 4;

/// The packets a tree of matches fits; `None` where their parts would be too many.
pub fn packets(list: &[Options], protocol: u16, names: &mut Names) -> Option<Any> {
    if list.is_empty() {
        return Some(vec![Cube::all()]);
    }
    sequence(list, 0, protocol, names, 0)
}

fn n(o: &Options, name: &str) -> u32 {
    o.u32(name).unwrap_or(0)
}

/// A match and what is joined to it behind: an `and` binds everything that follows, and so does an `or`.
fn sequence(list: &[Options], at: usize, protocol: u16, names: &mut Names, depth: u32) -> Option<Any> {
    let one = list.get(at)?;
    let flags = n(one, "flags");
    let mut own = match n(one, "kind") {
        0 if depth < 16 => sequence(list, n(one, "ref") as usize, protocol, names, depth + 1)?,
        _ => single(one, protocol, names)?,
    };
    if flags & INVERT != 0 {
        own = none_of(&own)?;
    }
    match flags & (AND | OR) {
        AND => both(&own, &sequence(list, at + 1, protocol, names, depth)?),
        OR => {
            own.extend(sequence(list, at + 1, protocol, names, depth)?);
            Some(own).filter(|o| o.len() <= 4096)
        }
        _ => Some(own),
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
    let opnd = n(o, "opnd");
    let plain = n(right, "id") == 0 && n(left, "shift") == 0;
    let (mask, value) = (n(left, "value"), n(right, "value"));
    let place = match n(left, "id") {
        6 => Place::Priority,
        12 => Place::Mark,
        9 if plain && mask == 0 => {
            // `skb->len` has the Ethernet header too.
            let least = |bytes: u32| Cube::of(Place::Long(bytes.saturating_sub(14).max(1)), 1, 1);
            let from = |bytes: u32| if bytes <= 42 { vec![Cube::all()] } else { vec![least(bytes)] };
            return match opnd {
                0 => both(&from(value), &none_of(&from(value + 1))?),
                1 => Some(from(value.saturating_add(1))),
                _ => none_of(&from(value)),
            };
        }
        _ => return Some(other(o, names)),
    };
    if !plain {
        return Some(other(o, names));
    }
    match (opnd, mask) {
        (0, 0) => Some(vec![Cube::of(place, u32::MAX, value)]),
        (0, mask) if value & !mask == 0 => Some(vec![Cube::of(place, mask, value)]),
        (0, _) => Some(Vec::new()),
        (_, 0) => {
            let Some((from, to)) = ordered(opnd, value, u32::MAX) else { return Some(Vec::new()) };
            Some(range(place, 0, 32, from, to))
        }
        _ => Some(other(o, names)),
    }
}
