//! What a match of nft asks, as sets of packets: of the packet as it is when it comes to the rule.
//!
//! Follows: linux v6.12 `net/netfilter/nft_payload.c`, `nft_meta.c`, `nft_ct.c`, `nft_cmp.c`, `nft_lookup.c`.

use super::super::cube::{Any, Cube, Place, in_states, none_of, range};
use super::{Asking, both};
use crate::filters::{IP, IP6};
use penstock_lang::iptables::Iface;
use penstock_lang::nft::{Compare, Expr, Op, Set, Statement, value};

/// Where a value stands.
#[derive(Clone, Debug)]
enum Loc {
    /// Bits of a place: how far up, how many.
    Bits(Place, u32, u32),
    /// An address of IPv6, so far from the begin of the header.
    Six(i32),
    /// It is always this.
    Const(u128),
    /// The packet's bytes from the network header on, less so many.
    Length(u32),
    /// The device it came in by.
    Input,
    /// The device it leaves by.
    Output,
    /// What connection tracking says.
    State,
}

/// A value that some packets have.
#[derive(Clone, Debug)]
struct Key {
    /// The packets that have it: others leave the rule.
    has: Cube,
    loc: Loc,
    /// The bits of it that are compared.
    mask: u128,
}

/// The bits of nft's `ct state`, by the numbers of [`super::super::cube::STATES`].
const STATE_BITS: [u128; 5] = [8, 64, 2, 4, 1];

/// What is in both; `None`: too many.
fn joined(a: Any, b: Any) -> Option<Any> {
    both(&a, &b)
}

fn bits(has: Cube, place: Place, shift: u32, width: u32) -> Key {
    Key { has, loc: Loc::Bits(place, shift, width), mask: u128::MAX }
}

/// The transport headers of a protocol (both versions): the packets that have them, and where they begin.
fn transports(protocol: u8) -> Vec<(Cube, i32)> {
    let four = Cube::ethertype(IP)
        .and(&Cube::of(Place::Word(4), 0x1fff, 0))
        .and_then(|c| c.and(&Cube::of(Place::Word(8), 0x00ff_0000, u32::from(protocol) << 16)));
    let six = Cube::ethertype(IP6).and(&Cube::of(Place::Word(4), 0xff00, u32::from(protocol) << 8));
    four.map(|c| (c, 20)).into_iter().chain(six.map(|c| (c, 40))).collect()
}

/// What an expression looks at, for each kind of packets that has it; `None` where headers do not tell.
fn keys(e: &Expr) -> Option<Vec<Key>> {
    let (four, six) = (Cube::ethertype(IP), Cube::ethertype(IP6));
    let one = |loc: Loc| Some(vec![Key { has: Cube::all(), loc, mask: u128::MAX }]);
    Some(match e {
        Expr::Meta("mark") => vec![bits(Cube::all(), Place::Mark, 0, 32)],
        Expr::Ct("mark", None) => vec![bits(Cube::all(), Place::Conn, 0, 32)],
        Expr::Ct("state", None) => return one(Loc::State),
        Expr::Meta("iifname" | "iif") => return one(Loc::Input),
        Expr::Meta("oifname" | "oif") => return one(Loc::Output),
        Expr::Meta("length") => return one(Loc::Length(0)),
        Expr::Meta("protocol") | Expr::Field("ether", "type") => {
            vec![bits(Cube::all(), Place::Ethertype, 0, 16)]
        }
        Expr::Meta("nfproto") => vec![
            Key { has: four, loc: Loc::Const(2), mask: u128::MAX },
            Key { has: six, loc: Loc::Const(10), mask: u128::MAX },
        ],
        Expr::Meta("l4proto") => {
            vec![bits(four, Place::Word(8), 16, 8), bits(six, Place::Word(4), 8, 8)]
        }
        Expr::Field("ip", field) => match *field {
            "saddr" => vec![bits(four, Place::Word(12), 0, 32)],
            "daddr" => vec![bits(four, Place::Word(16), 0, 32)],
            "protocol" => vec![bits(four, Place::Word(8), 16, 8)],
            "ttl" => vec![bits(four, Place::Word(8), 24, 8)],
            "dscp" => vec![bits(four, Place::Word(0), 18, 6)],
            "ecn" => vec![bits(four, Place::Word(0), 16, 2)],
            "id" => vec![bits(four, Place::Word(4), 16, 16)],
            "frag-off" => vec![bits(four, Place::Word(4), 0, 16)],
            "length" => vec![Key { has: four, loc: Loc::Length(0), mask: u128::MAX }],
            "version" => vec![Key { has: four, loc: Loc::Const(4), mask: u128::MAX }],
            _ => return None,
        },
        Expr::Field("ip6", field) => match *field {
            "saddr" => vec![Key { has: six, loc: Loc::Six(8), mask: u128::MAX }],
            "daddr" => vec![Key { has: six, loc: Loc::Six(24), mask: u128::MAX }],
            "nexthdr" => vec![bits(six, Place::Word(4), 8, 8)],
            "hoplimit" => vec![bits(six, Place::Word(4), 0, 8)],
            "dscp" => vec![bits(six, Place::Word(0), 22, 6)],
            "ecn" => vec![bits(six, Place::Word(0), 20, 2)],
            "length" => vec![Key { has: six, loc: Loc::Length(40), mask: u128::MAX }],
            "version" => vec![Key { has: six, loc: Loc::Const(6), mask: u128::MAX }],
            _ => return None,
        },
        Expr::Field("tcp", field) => {
            let (word, shift, width) = match *field {
                "sport" => (0, 16, 16),
                "dport" => (0, 0, 16),
                "flags" => (12, 16, 8),
                _ => return None,
            };
            let all = transports(6).into_iter();
            all.map(|(has, at)| bits(has, Place::Word(at + word), shift, width)).collect()
        }
        Expr::Field(header @ ("udp" | "th"), field @ ("sport" | "dport")) => {
            let shift = if *field == "sport" { 16 } else { 0 };
            let mut all = transports(17);
            all.extend(if *header == "th" { transports(6) } else { Vec::new() });
            all.into_iter().map(|(has, at)| bits(has, Place::Word(at), shift, 16)).collect()
        }
        Expr::Field(header @ ("icmp" | "icmpv6"), field @ ("type" | "code")) => {
            let shift = if *field == "type" { 24 } else { 16 };
            let all = transports(if *header == "icmp" { 1 } else { 58 }).into_iter();
            all.map(|(has, at)| bits(has, Place::Word(at), shift, 8)).collect()
        }
        Expr::Op(Op::And, a, b) => {
            let mask = number(b)?;
            let keys = keys(a)?.into_iter().map(|k| Key { mask: k.mask & mask, ..k });
            keys.collect()
        }
        _ => return None,
    })
}

/// A number that is written out.
pub(super) fn number(e: &Expr) -> Option<u128> {
    match e {
        Expr::Value(n, _) | Expr::Flags(n, None, _) => Some(*n),
        Expr::Op(op, a, b) => {
            let (a, b) = (number(a)?, number(b)?);
            Some(match op {
                Op::And => a & b,
                Op::Or => a | b,
                Op::Xor => a ^ b,
                Op::Left => a.checked_shl(b as u32).unwrap_or(0) & 0xffff_ffff,
                Op::Right => a.checked_shr(b as u32).unwrap_or(0),
            })
        }
        _ => None,
    }
}

/// Numbers of 128 bits as prefixes of the four words from `off` on.
fn range_six(off: i32, from: u128, to: u128) -> Any {
    let mut out = Vec::new();
    let mut at = from;
    while at <= to {
        let mut free = at.trailing_zeros();
        // As wide as fits.
        while free > 0 && (free == 128 || at | ((1u128 << free) - 1) > to) {
            if free == 128 && to == u128::MAX {
                return vec![Cube::all()];
            }
            free -= 1;
        }
        let mask = if free == 128 { 0 } else { u128::MAX << free };
        out.extend(Cube::bytes(off, &at.to_be_bytes(), &mask.to_be_bytes()));
        match at.checked_add(1u128 << free) {
            Some(next) => at = next,
            None => break,
        }
    }
    out
}

impl Key {
    /// The packets whose value is one of these; `None` where that is no set of bits.
    fn within(&self, from: u128, to: u128) -> Option<Any> {
        if self.mask != u128::MAX {
            return if from == to { self.masked(u128::MAX, from) } else { None };
        }
        Some(match &self.loc {
            Loc::Bits(place, shift, width) => {
                let most = if *width == 32 { u128::from(u32::MAX) } else { (1 << width) - 1 };
                if from > most {
                    return Some(Vec::new());
                }
                range(*place, *shift, *width, from as u32, to.min(most) as u32)
            }
            Loc::Six(off) => range_six(*off, from, to),
            Loc::Const(n) if (from..=to).contains(n) => vec![Cube::all()],
            Loc::Const(_) => Vec::new(),
            Loc::Length(less) => {
                let least = |n: u128| -> Any {
                    let n = n.saturating_add((*less).into());
                    match n {
                        0..=28 => vec![Cube::all()],
                        0x1_0000.. => Vec::new(),
                        n => vec![Cube::of(Place::Long(n as u32), 1, 1)],
                    }
                };
                joined(least(from), none_of(&least(to.saturating_add(1)))?)?
            }
            Loc::State => in_states(|n| (from..=to).contains(&STATE_BITS[n as usize])),
            Loc::Input | Loc::Output => return None,
        })
    }
    /// The packets whose value has these bits of a mask.
    fn masked(&self, mask: u128, is: u128) -> Option<Any> {
        let mask = mask & self.mask;
        Some(match &self.loc {
            Loc::Bits(place, shift, width) => {
                let most = if *width == 32 { u128::from(u32::MAX) } else { (1 << width) - 1 };
                match is & !(mask & most) {
                    0 => vec![Cube::of(*place, ((mask & most) as u32) << shift, (is as u32) << shift)],
                    _ => Vec::new(),
                }
            }
            Loc::Six(off) if is & !mask == 0 => {
                Cube::bytes(*off, &is.to_be_bytes(), &mask.to_be_bytes()).into_iter().collect()
            }
            Loc::Const(n) if n & mask == is => vec![Cube::all()],
            Loc::Six(_) | Loc::Const(_) => Vec::new(),
            Loc::State => in_states(|n| STATE_BITS[n as usize] & mask == is),
            Loc::Length(_) | Loc::Input | Loc::Output => return None,
        })
    }
    /// The packets that have any of these bits.
    fn any(&self, flags: u128) -> Option<Any> {
        if let Loc::State = self.loc {
            return Some(in_states(|n| STATE_BITS[n as usize] & flags & self.mask != 0));
        }
        let mut out = Vec::new();
        for bit in (0..128).map(|n| 1u128 << n).filter(|bit| flags & bit != 0) {
            if self.mask & bit != 0 {
                out.extend(self.masked(bit, bit)?);
            }
        }
        Some(out)
    }
    /// The packets whose value is this element, or within it.
    fn is(&self, element: &Expr, asking: &mut Asking<'_>) -> Option<Any> {
        match (&self.loc, element) {
            (Loc::Input | Loc::Output, Expr::Name(name)) => {
                let wildcard = name.ends_with('*');
                let wanted = Iface { name: name.trim_end_matches('*').to_owned(), wildcard, invert: false };
                Some(match self.loc {
                    Loc::Input => asking.came_by(&wanted),
                    _ => asking.leaves_by(&wanted),
                })
            }
            (Loc::Input | Loc::Output, _) => None,
            (_, Expr::Flags(v, Some(mask), _)) => self.masked(*mask, *v),
            (_, Expr::Value(..) | Expr::Flags(..) | Expr::Range(..) | Expr::Prefix(..)) => {
                let (from, to) = value::bounds(element);
                self.within(from, to)
            }
            _ => None,
        }
    }
}

/// The packets of each kind that have all parts of a key: the parts, and the packets.
fn kinds(e: &Expr) -> Option<Vec<(Vec<Key>, Cube)>> {
    let parts: &[Expr] = match e {
        Expr::Concat(all) => all,
        one => std::slice::from_ref(one),
    };
    let mut all: Vec<(Vec<Key>, Cube)> = vec![(Vec::new(), Cube::all())];
    for part in parts {
        let own = keys(part)?;
        let mut next = Vec::new();
        for (have, cube) in &all {
            for key in &own {
                if let Some(cube) = cube.and(&key.has) {
                    next.push(([have.clone(), vec![key.clone()]].concat(), cube));
                }
            }
        }
        all = next;
    }
    Some(all)
}

/// The packets that show an element.
fn shows(keys: &[Key], element: &Expr, asking: &mut Asking<'_>) -> Option<Any> {
    let parts: &[Expr] = match element {
        Expr::Concat(all) => all,
        one => std::slice::from_ref(one),
    };
    if parts.len() != keys.len() {
        return None;
    }
    let mut all = vec![Cube::all()];
    for (key, part) in keys.iter().zip(parts) {
        all = joined(all, key.is(part, asking)?)?;
    }
    Some(all)
}

impl Asking<'_> {
    /// The set an expression names, where no packet changes it and none of its elements limits anything.
    pub(super) fn set<'s>(&'s self, e: &'s Expr) -> Option<&'s Set> {
        let set = match e {
            Expr::Set(set) => set,
            Expr::Named(name, _) => self.table.set(name)?,
            _ => return None,
        };
        let limits = |s: &Statement| !matches!(s, Statement::Counter(..));
        let own = |e: &penstock_lang::nft::Element| e.more.iter().any(|m| m.states.iter().any(limits));
        let free = !set.dynamic && !set.timeouts && !set.states.iter().any(limits);
        Some(set).filter(|s| free && !s.elements.iter().any(own))
    }

    /// What a match asks; `None` where headers do not tell.
    pub(super) fn holds(&mut self, left: &Expr, how: Compare, right: &Expr) -> Option<Any> {
        let elements: Option<Vec<Expr>> = match right {
            Expr::Set(_) | Expr::Named(..) => {
                Some(self.set(right)?.elements.iter().map(|e| e.key.clone()).collect())
            }
            _ => None,
        };
        let mut out = Vec::new();
        for (keys, has) in kinds(left)? {
            let (found, not) = match (&elements, how, right, keys.as_slice()) {
                (Some(all), Compare::Is | Compare::Equal | Compare::Not, ..) => {
                    let mut found = Vec::new();
                    for element in all {
                        found.extend(shows(&keys, element, self)?);
                    }
                    if let [Key { loc: Loc::State, .. }] = keys.as_slice() {
                        let has =
                            |n: u32| found.iter().any(|c| in_states(|m| m == n).iter().any(|s| c.meets(s)));
                        found = in_states(has);
                    }
                    (found, how == Compare::Not)
                }
                (None, Compare::Is, Expr::Flags(v, None, _), [key]) => (key.any(*v)?, false),
                (None, Compare::Without, Expr::Flags(v, None, _), [key]) => (key.any(*v)?, true),
                (None, Compare::Not, Expr::Flags(v, None, _), [key]) => (key.masked(u128::MAX, *v)?, true),
                (None, Compare::Equal, Expr::Flags(v, None, _), [key]) => (key.masked(u128::MAX, *v)?, false),
                (None, Compare::Is | Compare::Equal, ..) => (shows(&keys, right, self)?, false),
                (None, Compare::Not, ..) => (shows(&keys, right, self)?, true),
                (None, _, Expr::Value(n, _), [key]) => {
                    let (from, to) = match how {
                        Compare::Less if *n == 0 => continue,
                        Compare::Less => (0, n - 1),
                        Compare::AtMost => (0, *n),
                        Compare::Greater => (n.saturating_add(1), u128::MAX),
                        _ => (*n, u128::MAX),
                    };
                    (key.within(from, to)?, false)
                }
                _ => return None,
            };
            let found = if not { none_of(&found)? } else { found };
            out.extend(joined(vec![has], found)?);
        }
        Some(out)
    }
    /// The packets that show an element of a map's key.
    pub(super) fn shown(&mut self, key: &Expr, element: &Expr) -> Option<Any> {
        let mut out = Vec::new();
        for (keys, has) in kinds(key)? {
            out.extend(joined(vec![has], shows(&keys, element, self)?)?);
        }
        Some(out)
    }
    /// The packets that have a map's key at all.
    pub(super) fn have(&self, key: &Expr) -> Option<Any> {
        Some(kinds(key)?.into_iter().map(|k| k.1).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_ranges_are_prefixes() {
        let all = |from: u128, to: u128| range_six(8, from, to);
        assert_eq!(all(0, u128::MAX), [Cube::all()]);
        assert_eq!(all(5, 5).len(), 1);
        let begin = 0x2001_0db8u128 << 96;
        let net = all(begin, begin | u128::MAX >> 32);
        assert_eq!(net, [Cube::of(Place::Word(8), u32::MAX, 0x2001_0db8)]);
        // 1, 2-3, 4-5, 6.
        assert_eq!(all(1, 6).len(), 4);
        assert_eq!(all(u128::MAX - 2, u128::MAX).len(), 2);
    }
}
