//! Elements as packets have them: what `-m set`, `-j SET` and tc's `ipset` ask and change.
//!
//! Follows: linux v6.12 `net/netfilter/ipset/ip_set_hash_*.c` `*_kadt`, `ip_set_bitmap_*.c` `*_kadt`, `ip_set_list_set.c`
//! `list_set_ktest`, `ip_set_core.c` `ip_set_test`, `ip_set_add`, `ip_set_del`, `ip_set_getport.c`.

use super::super::Devices;
use super::super::eval::Ip;
use super::elem::{Elem, Type, iface};
use super::ext::{Ask, New, Op, Skbinfo, Ticks};
use super::hash::{Added, Flags, Found, mask};
use super::{Body, Sets, bitmap};
use penstock_lang::iptables::{Counter, Direction, Family, SetAsk};
use penstock_packet::{L3, L4, Skb};

/// A packet as sets see it.
#[derive(Clone, Copy)]
pub(in crate::netfilter) struct Seen<'a> {
    pub skb: &'a Skb,
    pub ip: &'a Ip,
    pub devices: Devices<'a>,
    pub ticks: Ticks,
    /// `skb->len`, bytes.
    pub len: u64,
}

/// Which of a packet's two sides each part of an element is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::netfilter) struct Dirs {
    pub dim: u8,
    pub src: u8,
}

impl Dirs {
    pub(in crate::netfilter) fn of(all: &[Direction]) -> Dirs {
        let bits = all.iter().enumerate().filter(|(_, d)| **d == Direction::Src).map(|(i, _)| 1u8 << i);
        Dirs { dim: all.len() as u8, src: bits.sum() }
    }
    /// Of the first part, the second, the third: from 0.
    const fn is_src(self, part: u8) -> bool {
        self.src >> part & 1 == 1
    }
}

/// What a match asks beyond membership.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(in crate::netfilter) struct Asked {
    return_nomatch: bool,
    still: bool,
    still_below: bool,
    packets_are: Option<(Op, u64)>,
    bytes_are: Option<(Op, u64)>,
}

impl Asked {
    pub(in crate::netfilter) fn of(m: &SetAsk) -> Asked {
        let counter = |c: Option<(Counter, u64)>| {
            c.map(|(op, n)| {
                let op = match op {
                    Counter::Eq => Op::Eq,
                    Counter::Ne => Op::Ne,
                    Counter::Lt => Op::Lt,
                    Counter::Gt => Op::Gt,
                };
                (op, n)
            })
        };
        Asked {
            return_nomatch: m.return_nomatch,
            still: !m.update_counters,
            still_below: !m.update_subcounters,
            packets_are: counter(m.packets),
            bytes_are: counter(m.bytes),
        }
    }
}

impl Seen<'_> {
    fn family(&self) -> Family {
        if matches!(self.skb.l3, L3::Ipv6(_)) { Family::Ip6 } else { Family::Ip }
    }
    fn addr(&self, src: bool) -> u128 {
        if src { self.ip.src } else { self.ip.dst }
    }
    /// `ip_set_get_ip4_port`: port and protocol.
    fn port(&self, src: bool) -> Option<(u16, u8)> {
        let proto = self.ip.protocol;
        if proto == 0 {
            return None;
        }
        if self.ip.later_fragment {
            return (!matches!(proto, 6 | 17 | 132 | 136 | 1)).then_some((0, proto));
        }
        match (proto, &self.skb.l4) {
            (6, L4::Tcp(t)) => Some((if src { t.sport } else { t.dport }, proto)),
            (17 | 136, L4::Udp(u)) => Some((if src { u.sport } else { u.dport }, proto)),
            (1 | 58, L4::Icmp(i)) => Some((u16::from(i.ty) << 8 | u16::from(i.code), proto)),
            (6 | 17 | 132 | 136 | 1 | 58, _) => None,
            _ => Some((0, proto)),
        }
    }
    /// A hardware address, where the packet has come in by a card.
    fn ether(&self, src: bool) -> Option<[u8; 6]> {
        let ether = if src { self.skb.eth.0 } else { self.skb.eth.1 };
        (self.skb.iif != 0 && ether != [0; 6]).then_some(ether)
    }
}

/// What a packet is to do with a set.
#[derive(Clone, Copy)]
enum Do<'a> {
    Test(&'a Ask),
    Add(Flags, Option<u32>),
    Del,
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Came {
    /// The packet holds nothing that could be an element of the set, or the set is full.
    Refused,
    No,
    Yes,
    Nomatch,
    /// `bitmap:ip,mac` wants the packet's address (`-EAGAIN`).
    Fill,
}

impl Sets {
    /// `ip_set_test`.
    pub(in crate::netfilter) fn packet_test(
        &mut self,
        id: u32,
        dirs: Dirs,
        asked: &Asked,
        seen: &Seen<'_>,
        info: &mut Skbinfo,
    ) -> bool {
        let Some(set) = self.get(id) else { return false };
        if usize::from(dirs.dim) < set.kind.parts.len() || set.family.is_some_and(|f| f != seen.family()) {
            return false;
        }
        let nets = set.kind.nets;
        if matches!(set.body, Body::List(_)) {
            return self.list_test(id, dirs, asked, seen, info);
        }
        let ask = Ask {
            bytes: Some(seen.len),
            still: asked.still,
            packets_are: asked.packets_are,
            bytes_are: asked.bytes_are,
        };
        match self.packet(id, dirs, Do::Test(&ask), seen, info) {
            Came::Fill => {
                self.packet(id, dirs, Do::Add(Flags::default(), None), seen, info);
                true
            }
            Came::Yes => !(asked.return_nomatch && nets),
            Came::Nomatch => asked.return_nomatch && nets,
            Came::No | Came::Refused => false,
        }
    }

    /// `list_set_ktest`.
    fn list_test(&mut self, id: u32, dirs: Dirs, asked: &Asked, seen: &Seen<'_>, info: &mut Skbinfo) -> bool {
        // Counters of the sets below are not looked at.
        let below =
            Asked { packets_are: None, bytes_are: None, still: asked.still || asked.still_below, ..*asked };
        let mut at = 0;
        loop {
            let member = match self.get(id).map(|s| &s.body) {
                Some(Body::List(l)) => l.members.get(at).map(|m| m.0),
                _ => None,
            };
            let Some(member) = member else { return false };
            if self.packet_test(member, dirs, &below, seen, info) {
                let ask = Ask {
                    bytes: Some(seen.len),
                    still: asked.still,
                    packets_are: asked.packets_are,
                    bytes_are: asked.bytes_are,
                };
                let Some(Body::List(l)) = self.get_mut(id).map(|s| &mut s.body) else { return false };
                let with = l.with;
                if l.members.get_mut(at).is_some_and(|m| m.1.matches(with, &ask, seen.ticks, info)) {
                    return true;
                }
            }
            at += 1;
        }
    }

    /// `ip_set_add`, `ip_set_del` of a packet; whether it was done.
    pub(in crate::netfilter) fn packet_change(
        &mut self,
        id: u32,
        dirs: Dirs,
        add: Option<(bool, Option<u32>)>,
        seen: &Seen<'_>,
    ) -> bool {
        let Some(set) = self.get_mut(id) else { return false };
        if usize::from(dirs.dim) < set.kind.parts.len() || set.family.is_some_and(|f| f != seen.family()) {
            return false;
        }
        set.catch_up(seen.ticks);
        if let Body::List(l) = &set.body {
            // The first of those below that takes it.
            let with = l.with;
            let mut at = 0;
            loop {
                let member = match self.get(id).map(|s| &s.body) {
                    Some(Body::List(l)) => l.members.get(at),
                    _ => None,
                };
                let Some((member, gone)) = member.map(|m| (m.0, m.1.expired(with, seen.ticks))) else {
                    return true;
                };
                if !gone && self.packet_change(member, dirs, add, seen) {
                    return true;
                }
                at += 1;
            }
        }
        let what = match add {
            Some((exist, timeout)) => Do::Add(Flags { exist, nomatch: false }, timeout),
            None => Do::Del,
        };
        self.packet(id, dirs, what, seen, &mut Skbinfo::default()) == Came::Yes
    }

    /// `*_kadt`.
    fn packet(&mut self, id: u32, dirs: Dirs, what: Do<'_>, seen: &Seen<'_>, info: &mut Skbinfo) -> Came {
        let ticks = seen.ticks;
        let Some(set) = self.get_mut(id) else { return Came::Refused };
        let new = |with: super::With, timeout: Option<u32>| New {
            timeout: timeout.or(with.timeout).unwrap_or(0),
            packets: Some(1),
            bytes: Some(seen.len),
            ..New::default()
        };
        match &mut set.body {
            Body::List(_) => Came::Refused,
            Body::Bitmap(map) => {
                let mut ether = None;
                let value = match map.ty {
                    bitmap::Type::Port => match seen.port(dirs.is_src(0)) {
                        Some((port, 6 | 17)) => port.into(),
                        _ => return Came::Refused,
                    },
                    _ => seen.addr(dirs.is_src(0)) as u32,
                };
                let Some(place) = map.id(value) else { return Came::Refused };
                if map.ty == bitmap::Type::IpMac {
                    ether = seen.ether(dirs.is_src(1));
                    if ether.is_none() {
                        return Came::Refused;
                    }
                }
                let done = match what {
                    Do::Test(ask) => {
                        return match map.test(place, ether, ask, ticks, info) {
                            None => Came::Fill,
                            Some(Found::Yes) => Came::Yes,
                            Some(_) => Came::No,
                        };
                    }
                    Do::Add(flags, timeout) => map.add(place, ether, &new(map.with, timeout), flags, ticks),
                    Do::Del => map.del(place, ticks),
                };
                if done.is_ok() { Came::Yes } else { Came::Refused }
            }
            Body::Hash(hash) => {
                let test = matches!(what, Do::Test(_));
                let (ty, family) = (hash.ty, hash.family);
                let host = family.bits() as u8;
                let cidr = |which: usize| if test { host } else { hash.longest(which) };
                let mut e = Elem::default();
                if !matches!(ty, Type::Mac) {
                    e.ip = seen.addr(dirs.is_src(0));
                }
                match ty {
                    Type::Ip | Type::Net => {}
                    Type::Mac | Type::IpMac => {
                        let which = u8::from(ty == Type::IpMac);
                        match seen.ether(dirs.is_src(which)) {
                            Some(ether) => e.ether = ether,
                            None => return Came::Refused,
                        }
                    }
                    Type::IpMark => e.mark = seen.skb.mark & hash.markmask,
                    Type::NetNet => e.ip2 = seen.addr(dirs.is_src(1)),
                    Type::NetIface => {
                        let name = if dirs.is_src(1) { seen.devices.input } else { seen.devices.output };
                        if name.is_empty() {
                            return Came::Refused;
                        }
                        e.iface = iface(name);
                    }
                    Type::IpPort | Type::IpPortIp | Type::IpPortNet | Type::NetPort | Type::NetPortNet => {
                        match seen.port(dirs.is_src(1)) {
                            Some((port, proto)) => (e.port, e.proto) = (port, proto),
                            None => return Came::Refused,
                        }
                        if matches!(ty, Type::IpPortIp | Type::IpPortNet | Type::NetPortNet) {
                            e.ip2 = seen.addr(dirs.is_src(2));
                        }
                    }
                }
                match ty {
                    Type::Net | Type::NetIface | Type::NetPort => e.cidr[0] = cidr(0),
                    Type::IpPortNet => e.cidr[1] = cidr(0),
                    Type::NetNet | Type::NetPortNet => e.cidr = [cidr(0), cidr(1)],
                    _ => {}
                }
                if ty.nets() > 0 && ty != Type::IpPortNet {
                    e.ip &= mask(family, e.cidr[0]);
                }
                if matches!(ty, Type::IpPortNet | Type::NetNet | Type::NetPortNet) {
                    e.ip2 &= mask(family, e.cidr[1]);
                }
                if ty.masks() {
                    e.ip &= hash.bitmask;
                    e.ip2 &= hash.bitmask;
                    let net6 = ty == Type::NetNet && (family == Family::Ip || e.cidr[0] != host);
                    if e.ip == 0 && !net6 {
                        return Came::Refused;
                    }
                }
                match what {
                    Do::Test(ask) => match hash.test(&e, ask, ticks, info) {
                        Found::Yes => Came::Yes,
                        Found::No => Came::No,
                        Found::Nomatch => Came::Nomatch,
                    },
                    // The table grows by commands alone.
                    Do::Add(flags, timeout) => match hash.add(&e, &new(hash.with, timeout), flags, ticks) {
                        Added::Done => Came::Yes,
                        Added::Refused(_) | Added::Grow => Came::Refused,
                    },
                    Do::Del => {
                        if hash.del(&e, ticks) {
                            Came::Yes
                        } else {
                            Came::Refused
                        }
                    }
                }
            }
        }
    }
}
