//! `flow`: the class it computes, where what it looks at is known.
//!
//! Follows: linux v6.12 `net/sched/cls_flow.c` `flow_classify`.

use super::Probe;
use super::cube::{Any, Cube, Place};
use crate::filters::{Filter, IP, IP6};
use penstock_model::Handle;
use std::net::IpAddr;

/// What a filter computes.
pub struct Flow {
    keys: u32,
    hash: bool,
    mask: u32,
    xor: u32,
    rshift: u32,
    addend: u32,
    divisor: u32,
    base: Handle,
}

const SRC: u32 = 0;
const DST: u32 = 1;
const PROTO: u32 = 2;
const PROTO_SRC: u32 = 3;
const PROTO_DST: u32 = 4;
const PRIORITY: u32 = 6;
const MARK: u32 = 7;
const VLAN_TAG: u32 = 16;

/// More classes than these are not told apart one by one.
const MANY: usize = 1024;

impl Flow {
    /// Of a filter of this kind.
    pub fn of(filter: &Filter) -> Flow {
        let n = |name: &str| filter.options.u32(name);
        let given = Handle(n("baseclass").unwrap_or(0));
        let major = if given.major() == 0 { filter.parent.major() } else { given.major() };
        Flow {
            keys: n("keys").unwrap_or(0),
            hash: n("mode") == Some(1),
            mask: n("mask").unwrap_or(u32::MAX),
            xor: n("xor").unwrap_or(0),
            rshift: n("rshift").unwrap_or(0) & 31,
            addend: n("addend").unwrap_or(0),
            divisor: n("divisor").unwrap_or(0),
            base: Handle::new(major, given.minor().max(1)),
        }
    }
    /// The one key that is mapped; none where a hash is.
    pub fn key(&self) -> Option<u32> {
        (!self.hash && self.keys.count_ones() == 1).then(|| self.keys.trailing_zeros())
    }
    /// The class of a key's value.
    pub fn class(&self, key: u32) -> Handle {
        let minor = (((key & self.mask) ^ self.xor) >> self.rshift).wrapping_add(self.addend);
        let minor = if self.divisor == 0 { minor } else { minor % self.divisor };
        Handle::new(self.base.major(), self.base.0.wrapping_add(minor) as u16)
    }
    /// The first and the last class it may choose.
    pub fn all(&self) -> (Handle, Handle) {
        let last = match self.divisor {
            0 => 0xffff,
            n => u32::from(self.base.minor()).saturating_add(n - 1).min(0xffff),
        };
        (self.base, Handle::new(self.base.major(), last as u16))
    }
    /// The packets of each class, where bits of their headers say which; `None` where they do not, or in too many ways.
    pub fn sets(&self) -> Option<Vec<(Cube, Handle)>> {
        let whole = Cube::of(Place::Word(4), 0x3fff, 0);
        let one = |c: Option<Cube>| c.into_iter().collect::<Any>();
        // Where the key's bits stand: the packets that have it, the place, how far up, how wide.
        let (has, place, shift, width): (Any, Place, u32, u32) = match self.key()? {
            SRC => (vec![Cube::ethertype(IP)], Place::Word(12), 0, u32::MAX),
            DST => (vec![Cube::ethertype(IP)], Place::Word(16), 0, u32::MAX),
            PROTO => (vec![Cube::ethertype(IP)], Place::Word(8), 16, 0xff),
            key @ (PROTO_SRC | PROTO_DST) => {
                let of = |protocol: u32| {
                    let whole = whole.and(&Cube::of(Place::Word(8), 0x00ff_0000, protocol << 16))?;
                    Cube::ethertype(IP).and(&whole)
                };
                let has = [6, 17].into_iter().flat_map(|p| one(of(p))).collect();
                (has, Place::Word(20), if key == PROTO_SRC { 16 } else { 0 }, 0xffff)
            }
            PRIORITY => (vec![Cube::all()], Place::Priority, 0, 0xf),
            MARK => (vec![Cube::all()], Place::Mark, 0, u32::MAX),
            VLAN_TAG => (vec![Cube::all()], Place::Tag, 0, 0xfff),
            _ => return None,
        };
        let seen = self.mask & width & u32::MAX << self.rshift;
        if 1usize.checked_shl(seen.count_ones()).is_none_or(|n| n > MANY) {
            return None;
        }
        let mut out = Vec::new();
        let mut value = 0u32;
        loop {
            for has in &has {
                let here = Cube::of(place, seen << shift, value << shift);
                out.extend(has.and(&here).map(|cube| (cube, self.class(value))));
            }
            value = value.wrapping_sub(seen) & seen;
            if value == 0 {
                return Some(out);
            }
        }
    }
}

/// A key of a packet; `None` where nothing tells it, or the kernel takes something else in its place.
pub fn flow_key(probe: &Probe, key: u32) -> Option<u32> {
    let fold = |addr: IpAddr| match addr {
        IpAddr::V4(addr) => u32::from(addr),
        IpAddr::V6(addr) => (0..4).fold(0, |sum, word| sum ^ (u128::from(addr) >> (32 * word)) as u32),
    };
    let ip = matches!(probe.innermost(), IP | IP6);
    let ports = matches!(probe.protocol, 6 | 17) && (probe.sport, probe.dport) != (0, 0);
    match key {
        SRC if ip => Some(fold(probe.src)).filter(|n| *n != 0),
        DST if ip => Some(fold(probe.dst)).filter(|n| *n != 0),
        PROTO if ip => Some(probe.protocol.into()),
        PROTO_SRC if ports => Some(probe.sport.into()),
        PROTO_DST if ports => Some(probe.dport.into()),
        PRIORITY => Some(probe.priority),
        MARK => Some(probe.mark),
        VLAN_TAG => Some(probe.tags.first().map_or(0, |tag| u32::from(tag.1 & 0xfff))),
        _ => None,
    }
}
