//! Sets of packets as conditions on bits: a cube is bits that have values, all others being free.
//!
//! What is taken for granted of the packets: an IPv4 header has no options, an IPv6 header no extensions, and a packet has at least 28
//! bytes (TCP 40).

use super::Probe;
pub use super::names::Names;
pub use super::words::words;
use crate::filters::{ALL, IP, IP6, QINQ, VLAN};

/// Where bits stand.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Place {
    /// Ethertype behind the first tag.
    Ethertype,
    /// The first VLAN tag, which lies beside the packet: ethertype and TCI; 0 where there is none.
    Tag,
    /// Four bytes so far from the begin of the network header, a multiple of four.
    Word(i32),
    /// The mark the packet has when it comes.
    Mark,
    /// What connection tracking says of the packet: a number of [`STATES`]; every one from 4 on is `invalid`.
    State,
    /// The mark of its connection, where rules ask for it; sets of packets as they come have it at [`Place::Mark`].
    Conn,
    /// `skb->priority` as whoever made the packet set it.
    Priority,
    /// Whether the packet comes from another machine (1) or is this machine's own (0).
    Forwarded,
    /// The device it came in by: a number of [`Names`].
    Input,
    /// Whether the packet has so many bytes from the network header on.
    Long(u32),
    /// Something the headers do not tell: a number of [`Names`].
    Other(u32),
}

/// What connection tracking says of packets, by [`Place::State`]: neighbours are often asked for together.
pub const STATES: [&str; 5] = ["new", "untracked", "established", "related", "invalid"];

/// Packets of which connection tracking says one of these: numbers of [`STATES`].
pub fn in_states(fits: impl Fn(u32) -> bool) -> Any {
    let mut out = Vec::new();
    let mut say = |mask: u32, value: u32| out.push(Cube::of(Place::State, mask, value));
    match (fits(0) && fits(1), fits(2) && fits(3)) {
        (true, true) => say(4, 0),
        pairs => {
            for (pair, both) in [(0, pairs.0), (2, pairs.1)] {
                match both {
                    true => say(6, pair),
                    false => (pair..pair + 2).filter(|n| fits(*n)).for_each(|n| say(7, n)),
                }
            }
        }
    }
    if fits(4) {
        say(4, 4);
    }
    out
}

/// Bits with values, by place.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Cube(pub Vec<(Place, u32, u32)>);

/// Any of these.
pub type Any = Vec<Cube>;

impl Cube {
    /// Every packet.
    pub fn all() -> Cube {
        Cube::default()
    }
    /// Bits at one place.
    pub fn of(place: Place, mask: u32, value: u32) -> Cube {
        if mask == 0 { Cube::all() } else { Cube(vec![(place, mask, value & mask)]) }
    }
    /// What a filter for a protocol is asked about: with tags of which it makes a difference the first one's ethertype counts.
    pub fn protocol(protocol: u16, names: &Names) -> Cube {
        match protocol {
            ALL => Cube::all(),
            VLAN | QINQ => Cube::of(Place::Tag, 0xffff_0000, u32::from(protocol) << 16),
            _ if names.tags => {
                Cube(vec![(Place::Ethertype, 0xffff, protocol.into()), (Place::Tag, u32::MAX, 0)])
            }
            _ => Cube::ethertype(protocol),
        }
    }
    /// An ethertype; every one for `ALL`.
    pub fn ethertype(protocol: u16) -> Cube {
        if protocol == ALL { Cube::all() } else { Cube::of(Place::Ethertype, 0xffff, protocol.into()) }
    }
    /// Bytes from the network header on, wherever they begin.
    pub fn bytes(off: i32, bytes: &[u8], masks: &[u8]) -> Option<Cube> {
        let mut cube = Cube::all();
        for (i, (byte, mask)) in bytes.iter().zip(masks).enumerate() {
            let at = off + i as i32;
            let shift = 24 - 8 * at.rem_euclid(4) as u32;
            let one = Cube::of(
                Place::Word(at - at.rem_euclid(4)),
                u32::from(*mask) << shift,
                u32::from(*byte) << shift,
            );
            cube = cube.and(&one)?;
        }
        Some(cube)
    }
    /// Four bytes from anywhere.
    pub fn word(off: i32, mask: u32, value: u32) -> Option<Cube> {
        if off.rem_euclid(4) == 0 {
            return Some(Cube::of(Place::Word(off), mask, value));
        }
        Cube::bytes(off, &value.to_be_bytes(), &mask.to_be_bytes())
    }
    /// What is in both; `None` where nothing is.
    pub fn and(&self, other: &Cube) -> Option<Cube> {
        if other.0.is_empty() {
            return Some(self.clone());
        }
        let mut out = Vec::with_capacity(self.0.len() + other.0.len());
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x.0 == y.0 => {
                    if (x.2 ^ y.2) & x.1 & y.1 != 0 {
                        return None;
                    }
                    out.push((x.0, x.1 | y.1, x.2 | y.2));
                    a.next();
                    b.next();
                }
                (Some(x), Some(y)) if x.0 < y.0 => {
                    out.push(**x);
                    a.next();
                }
                (_, Some(y)) => {
                    out.push(**y);
                    b.next();
                }
                (Some(x), None) => {
                    out.push(**x);
                    a.next();
                }
                (None, None) => break,
            }
        }
        Some(Cube(out)).filter(Cube::can_be)
    }
    /// Whether any packet is in both, as far as their bits tell.
    pub fn meets(&self, other: &Cube) -> bool {
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            match x.0.cmp(&y.0) {
                std::cmp::Ordering::Equal => {
                    if (x.2 ^ y.2) & x.1 & y.1 != 0 {
                        return false;
                    }
                    a.next();
                    b.next();
                }
                std::cmp::Ordering::Less => {
                    a.next();
                }
                std::cmp::Ordering::Greater => {
                    b.next();
                }
            }
        }
        true
    }
    /// The bits at a place: mask and value.
    pub fn at(&self, place: Place) -> (u32, u32) {
        self.0.iter().find(|b| b.0 == place).map_or((0, 0), |b| (b.1, b.2))
    }
    /// Whether such packets can be: what has many bytes has few too, and headers are what they are.
    pub fn can_be(&self) -> bool {
        let mut least = 0;
        let mut most = u32::MAX;
        for (place, _, value) in &self.0 {
            if let Place::Long(n) = place {
                if *value == 0 {
                    most = most.min(n - 1);
                } else {
                    least = least.max(*n);
                }
            }
        }
        let ethertype = self.at(Place::Ethertype);
        if ethertype.0 == 0xffff {
            let first = self.at(Place::Word(0));
            let (fixed, is) = known_bits(ethertype.1 as u16);
            if (first.1 ^ is) & first.0 & fixed != 0 {
                return false;
            }
            let protocol = self.at(Place::Word(8));
            if ethertype.1 == u32::from(IP)
                && (protocol.0 & 0x00ff_0000, protocol.1 & 0x00ff_0000) == (0x00ff_0000, 0x0006_0000)
            {
                least = least.max(40);
            }
            if ethertype.1 == u32::from(IP6) {
                least = least.max(48);
            }
        }
        least.max(28) <= most
    }
    /// Everything that is not in it.
    pub fn not(&self) -> Any {
        let mut out = Vec::new();
        let mut before = Cube::all();
        for &(place, mask, value) in &self.0 {
            let mut bits = mask;
            while bits != 0 {
                let bit = 1 << (31 - bits.leading_zeros());
                bits &= !bit;
                out.extend(before.and(&Cube::of(place, bit, !value)));
                let Some(next) = before.and(&Cube::of(place, bit, value)) else { return out };
                before = next;
            }
        }
        out
    }
    /// Whether a packet is in it.
    pub fn holds(&self, probe: &Probe, names: &Names) -> bool {
        self.0.iter().all(|&(place, mask, value)| (probe.at(place, names) ^ value) & mask == 0)
    }
}

/// The bits of the first word that every packet of a protocol has: mask and value.
pub fn known_bits(protocol: u16) -> (u32, u32) {
    match protocol {
        IP => (0xff00_0000, 0x4500_0000),
        IP6 => (0xf000_0000, 0x6000_0000),
        _ => (0, 0),
    }
}

/// Both of two lists; `None` where they would be too many.
pub fn both(a: &[Cube], b: &[Cube]) -> Option<Any> {
    if a.len() * b.len() > 4096 {
        return None;
    }
    Some(a.iter().flat_map(|x| b.iter().filter_map(|y| x.and(y))).collect())
}

/// None of a list; `None` where the parts would be too many.
pub fn none_of(all: &[Cube]) -> Option<Any> {
    let mut out = vec![Cube::all()];
    for cube in all {
        out = both(&out, &cube.not())?;
    }
    Some(out)
}

/// Numbers from `from` to `to` at bits `shift` upward, `width` of them, as prefixes.
pub fn range(place: Place, shift: u32, width: u32, from: u32, to: u32) -> Any {
    let mut out = Vec::new();
    let full = if width == 32 { u32::MAX } else { (1 << width) - 1 };
    let (mut at, to) = (u64::from(from), u64::from(to.min(full)));
    while at <= to {
        let mut size = if at == 0 { 1u64 << width } else { at & at.wrapping_neg() };
        while at + size - 1 > to {
            size /= 2;
        }
        let mask = full & !((size - 1) as u32);
        out.push(Cube::of(place, mask << shift, (at as u32) << shift));
        at += size;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bits: &[(i32, u32, u32)]) -> Cube {
        bits.iter().fold(Cube::all(), |c, b| c.and(&Cube::of(Place::Word(b.0), b.1, b.2)).unwrap())
    }

    #[test]
    fn bits_join_and_contradict() {
        let a = of(&[(12, 0xff00_0000, 0x0a00_0000)]);
        assert_eq!(
            a.and(&of(&[(12, 0xffff_0000, 0x0a01_0000)])),
            Some(of(&[(12, 0xffff_0000, 0x0a01_0000)]))
        );
        assert_eq!(a.and(&of(&[(12, 0x8000_0000, 0x8000_0000)])), None);
        assert!(a.meets(&of(&[(16, 1, 1)])));
        let not = of(&[(12, 3, 2)]).not();
        assert_eq!(not, [of(&[(12, 2, 0)]), of(&[(12, 3, 3)])]);
        assert_eq!(none_of(&[Cube::all()]), Some(vec![]));
    }

    #[test]
    fn states_that_are_asked_for_together_are_one_set() {
        for bits in 0..32u32 {
            let cubes = in_states(|n| bits >> n & 1 != 0);
            for code in 0..8u32 {
                let held = cubes.iter().any(|c| (c.at(Place::State).1 ^ code) & c.at(Place::State).0 == 0);
                assert_eq!(held, bits >> code.min(4) & 1 != 0, "{bits:#b} {code}");
            }
        }
        assert_eq!(in_states(|n| n == 2 || n == 3).len(), 1);
    }

    #[test]
    fn ranges_are_prefixes() {
        let r = range(Place::Word(20), 0, 16, 1000, 1023);
        assert_eq!(r, [of(&[(20, 0xfff8, 1000)]), of(&[(20, 0xfff0, 1008)])]);
        assert_eq!(range(Place::Word(20), 0, 16, 0, 65535), [Cube::all()]);
        assert_eq!(range(Place::Word(12), 0, 32, 5, 5), [of(&[(12, u32::MAX, 5)])]);
    }

    #[test]
    fn lengths_and_headers_that_cannot_be() {
        let long = |n, v| Cube::of(Place::Long(n), 1, v);
        assert_eq!(long(100, 1).and(&long(60, 0)), None);
        assert!(long(100, 0).and(&long(60, 1)).is_some());
        assert_eq!(
            Cube::ethertype(IP).and(&of(&[(8, 0xff_0000, 0x06_0000)])).unwrap().and(&long(36, 0)),
            None
        );
        assert_eq!(Cube::ethertype(IP).and(&of(&[(0, 0xf000_0000, 0x6000_0000)])), None);
    }
}
