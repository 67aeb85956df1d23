//! Elements that a user adds, deletes and asks for: ranges one by one.
//!
//! Follows: linux v6.12 `net/netfilter/ipset/ip_set_hash_*.c` `*_uadt`, `ip_set_bitmap_*.c` `*_uadt`, `ip_set_list_set.c`
//! `list_set_uadt`, `pfxlen.c` `ip_set_range_to_cidr`, `ip_set_core.c` `call_ad`, `ip_set_utest`.

use super::elem::{Elem, Type, iface, iface_name};
use super::ext::{Ask, New, Skbinfo, Ticks};
use super::hash::{Added, Flags, Found, Hash, mask};
use super::list::Beside;
use super::{Body, Sets};
use penstock_lang::ipset::{Attributes, Error};
use penstock_lang::iptables::Family;

/// What a user wants of an element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Adt {
    Add,
    Del,
    Test,
}

/// An element as a listing has it.
pub(super) fn shown(ty: Type, e: &Elem) -> Attributes {
    let mut a = Attributes::default();
    if ty != Type::Mac {
        a.ip = Some(e.ip);
    }
    match ty {
        Type::Ip => {}
        Type::Mac | Type::IpMac => a.ether = Some(e.ether),
        Type::IpMark => a.mark = Some(e.mark),
        Type::Net | Type::NetNet => {}
        Type::NetIface => {
            a.iface = Some(iface_name(&e.iface).to_owned());
            (a.physdev, a.wildcard) = (e.physdev, e.wildcard);
        }
        _ => (a.proto, a.port) = (Some(e.proto), Some(e.port)),
    }
    if matches!(ty, Type::IpPortIp | Type::IpPortNet | Type::NetNet | Type::NetPortNet) {
        a.ip2 = Some(e.ip2);
    }
    if matches!(ty, Type::Net | Type::NetIface | Type::NetPort | Type::NetNet | Type::NetPortNet) {
        a.cidr = Some(e.cidr[0]);
    }
    if matches!(ty, Type::IpPortNet | Type::NetNet | Type::NetPortNet) {
        a.cidr2 = Some(e.cidr[1]);
    }
    a
}

/// Addresses from one to another.
#[derive(Clone, Copy)]
struct Span {
    from: u32,
    to: u32,
}

/// The greatest prefix that begins at an address and does not go beyond another: its length and its last address.
fn range_to_cidr(from: u32, to: u32, zero: bool) -> (u8, u32) {
    if zero && from == 0 && to == u32::MAX {
        return (0, to);
    }
    for length in 1..32u8 {
        let mask = Family::Ip.mask(length.into()) as u32;
        let last = from | !mask;
        if from & mask == from && last <= to {
            return (length, last);
        }
    }
    (32, from)
}

/// Whether a protocol has ports (`ip_set_proto_with_ports`).
const fn has_ports(proto: u8) -> bool {
    matches!(proto, 6 | 17 | 132 | 136)
}

/// What goes with each element of a command.
struct Each<'a, 'b> {
    adt: Adt,
    new: &'a New<'b>,
    flags: Flags,
    ticks: Ticks,
}

impl Hash {
    /// One element; whether a test found it.
    fn each(&mut self, e: &Elem, each: &Each<'_, '_>) -> Result<bool, Error> {
        match each.adt {
            Adt::Add => loop {
                match self.add(e, each.new, each.flags, each.ticks) {
                    Added::Done => return Ok(true),
                    Added::Grow => self.grow(each.ticks)?,
                    Added::Refused(Error::Exist) if each.flags.exist => return Ok(true),
                    Added::Refused(error) => return Err(error),
                }
            },
            Adt::Del => match self.del(e, each.ticks) {
                true => Ok(true),
                false if each.flags.exist => Ok(true),
                false => Err(Error::Exist),
            },
            Adt::Test => {
                let found = self.test(e, &Ask::default(), each.ticks, &mut Skbinfo::default());
                // `ip_set_enomatch`: with `nomatch` those are asked for.
                Ok(match found {
                    Found::Yes => true,
                    Found::No => false,
                    Found::Nomatch => each.flags.nomatch,
                })
            }
        }
    }

    /// `*_uadt`.
    fn uadt(&mut self, a: &Attributes, each: &Each<'_, '_>) -> Result<bool, Error> {
        let (ty, family) = (self.ty, self.family);
        let bits = family.bits() as u8;
        let mut e = Elem { ip: a.ip.unwrap_or(0), ip2: a.ip2.unwrap_or(0), ..Elem::default() };
        let six = family == Family::Ip6 && ty != Type::Mac;
        if six && (a.ip_to.is_some() || a.ip2_to.is_some()) {
            return Err(Error::RangeUnsupported);
        }
        let least = u8::from(!ty.net0());
        let (first_is_net, second_is_net) = (
            matches!(ty, Type::Net | Type::NetIface | Type::NetPort | Type::NetNet | Type::NetPortNet),
            matches!(ty, Type::IpPortNet | Type::NetNet | Type::NetPortNet),
        );
        // Lengths of prefixes.
        if first_is_net {
            e.cidr[0] = a.cidr.unwrap_or(bits);
            if e.cidr[0] < least {
                return Err(Error::Cidr);
            }
        }
        if second_is_net {
            e.cidr[1] = a.cidr2.unwrap_or(bits);
            if e.cidr[1] < least {
                return Err(Error::Cidr);
            }
        }
        // The other parts.
        if let Some(ether) = a.ether {
            if ether == [0; 6] {
                return Err(Error::HashElem);
            }
            e.ether = ether;
        }
        let mut ports = None;
        if let Some(proto) = a.proto {
            if proto == 0 {
                return Err(Error::Proto);
            }
            let icmp = if family == Family::Ip { 1 } else { 58 };
            let with_ports = has_ports(proto);
            e.proto = proto;
            e.port = if with_ports || proto == icmp { a.port.unwrap_or(0) } else { 0 };
            ports = a.port_to.filter(|_| with_ports);
        }
        if let Some(name) = &a.iface {
            e.iface = iface(name);
            (e.physdev, e.wildcard) = (a.physdev, a.wildcard);
        }
        if ty == Type::IpMark {
            e.mark = a.mark.unwrap_or(0) & self.markmask;
            if e.mark == 0 && e.ip == 0 {
                return Err(Error::HashElem);
            }
        }
        if ty.masks() && ty != Type::NetNet {
            e.ip &= self.bitmask;
            if e.ip == 0 {
                return Err(if ty == Type::Ip { Error::HashElem } else { Error::Invalid });
            }
        }
        let spans = a.ip_to.is_some() || a.ip2_to.is_some() || ports.is_some();
        let first_spans = !first_is_net && ty != Type::Mac && ty != Type::IpMac && a.cidr.is_some() && !six;
        if each.adt == Adt::Test || !(spans || first_spans) {
            let both = if ty == Type::NetNet { self.bitmask } else { u128::MAX };
            if first_is_net {
                e.ip &= mask(family, e.cidr[0]) & both;
            }
            if second_is_net {
                e.ip2 &= mask(family, e.cidr[1]) & both;
            }
            return self.each(&e, each);
        }
        let port_to = ports.map_or(e.port, |to| to.max(e.port));
        let port_from = ports.map_or(e.port, |to| to.min(e.port));
        if six {
            // Ports alone.
            e.ip &= if first_is_net { mask(family, e.cidr[0]) } else { u128::MAX };
            e.ip2 &= if second_is_net { mask(family, e.cidr[1]) } else { u128::MAX };
            for port in port_from..=port_to {
                e.port = port;
                self.each(&e, each)?;
            }
            return Ok(true);
        }
        let first = self.span(
            (e.ip, a.ip_to),
            (a.cidr, first_is_net),
            ty == Type::Ip || ty == Type::IpMark && e.mark == 0,
        )?;
        let second = self.span((e.ip2, a.ip2_to), (a.cidr2, second_is_net), false)?;
        self.all((e, first, second), (first_is_net, second_is_net), (port_from, port_to), each)?;
        Ok(true)
    }

    /// The addresses that a part stands for.
    fn span(
        &self,
        (ip, to): (u128, Option<u128>),
        (cidr, net): (Option<u8>, bool),
        not_zero: bool,
    ) -> Result<Span, Error> {
        let from = ip as u32;
        if let Some(to) = to.map(|t| t as u32) {
            if from > to && not_zero && to == 0 {
                return Err(Error::HashElem);
            }
            let span = Span { from: from.min(to), to: from.max(to) };
            if net && (span.from, span.to) == (0, u32::MAX) {
                return Err(Error::HashRange);
            }
            return Ok(span);
        }
        match cidr {
            Some(0) if !net => Err(Error::Cidr),
            Some(cidr) => {
                let mask = mask(Family::Ip, cidr) as u32;
                Ok(Span { from: from & mask, to: from & mask | !mask })
            }
            None => Ok(Span { from, to: from }),
        }
    }

    /// Every element of a command, as the kernel's loops have them: first address, port, second address.
    fn all(
        &mut self,
        (mut e, first, second): (Elem, Span, Span),
        (first_is_net, second_is_net): (bool, bool),
        (port_from, port_to): (u16, u16),
        each: &Each<'_, '_>,
    ) -> Result<(), Error> {
        let zero = self.ty == Type::NetPortNet;
        // Networks that `netmask` makes of addresses.
        let step = match (self.ty, self.netmask) {
            (Type::Ip, Some(length)) => 1u32 << (32 - length),
            _ => 1,
        };
        let mut ip = first.from;
        loop {
            e.ip = ip.into();
            let mut last = ip;
            if first_is_net {
                (e.cidr[0], last) = range_to_cidr(ip, first.to, zero);
            }
            for port in port_from..=port_to {
                e.port = port;
                let mut ip2 = second.from;
                loop {
                    e.ip2 = ip2.into();
                    let mut last2 = ip2;
                    if second_is_net {
                        (e.cidr[1], last2) = range_to_cidr(ip2, second.to, zero);
                    }
                    self.each(&e, each)?;
                    match last2.checked_add(1).filter(|next| *next <= second.to) {
                        Some(next) => ip2 = next,
                        None => break,
                    }
                }
            }
            let next = if first_is_net { last.checked_add(1) } else { ip.checked_add(step) };
            match next.filter(|next| *next <= first.to) {
                Some(next) => ip = next,
                None => return Ok(()),
            }
        }
    }
}

impl Sets {
    /// `ip_set_uadd`, `ip_set_udel`, `ip_set_utest`: whether a test found it.
    pub(super) fn user(
        &mut self,
        name: &str,
        adt: Adt,
        a: &Attributes,
        exist: bool,
        ticks: Ticks,
    ) -> Result<bool, Error> {
        let id = self.find(name).ok_or(Error::NoSet)?;
        let member = a.name.as_deref().map(|name| self.find(name));
        let reference = a.nameref.as_deref().map(|name| self.find(name));
        let is_list = |sets: &Sets, id: u32| sets.get(id).is_some_and(|s| matches!(s.body, Body::List(_)));
        let loops = member.flatten().is_some_and(|id| is_list(self, id));
        let Some(set) = self.get_mut(id) else { return Err(Error::NoSet) };
        let with = set.with();
        // `ip_set_get_extensions`.
        if a.timeout.is_some() && with.timeout.is_none() {
            return Err(Error::Timeout);
        }
        if (a.packets.is_some() || a.bytes.is_some()) && !with.counters {
            return Err(Error::Counter);
        }
        if a.comment.is_some() && !with.comments {
            return Err(Error::Comment);
        }
        if (a.skbmark.is_some() || a.skbprio.is_some() || a.skbqueue.is_some()) && !with.skbinfo {
            return Err(Error::Skbinfo);
        }
        let (skb_mark, skb_mask) = a.skbmark.unwrap_or((0, 0));
        let new = New {
            timeout: a.timeout.or(with.timeout).unwrap_or(0),
            packets: a.packets,
            bytes: a.bytes,
            comment: a.comment.as_deref(),
            skb: Skbinfo {
                mark: skb_mark,
                mask: skb_mask,
                prio: a.skbprio.unwrap_or(0),
                queue: a.skbqueue.unwrap_or(0),
            },
        };
        let flags = Flags { exist, nomatch: a.nomatch };
        if adt != Adt::Test {
            set.catch_up(ticks);
        }
        match &mut set.body {
            Body::Hash(hash) => hash.uadt(a, &Each { adt, new: &new, flags, ticks }),
            Body::List(list) => {
                let Some(Some(member)) = member else { return Err(Error::Name) };
                if loops {
                    return Err(Error::Loop);
                }
                let beside = match reference {
                    None => Beside::Anywhere,
                    Some(None) => return Err(Error::Nameref),
                    Some(Some(other)) if a.before => Beside::Before(other),
                    Some(Some(other)) => Beside::After(other),
                };
                let passed = |done: Result<(), Error>| match done {
                    Err(Error::Exist) if exist => Ok(true),
                    done => done.map(|()| true),
                };
                match adt {
                    Adt::Add => passed(list.add(member, beside, &new, flags, ticks)),
                    Adt::Del => passed(list.del(member, beside, ticks)),
                    Adt::Test => Ok(list.test(member, beside, ticks)),
                }
            }
            Body::Bitmap(map) => {
                let one = a.ip.map_or(a.port.map_or(0, u32::from), |ip| ip as u32);
                if map.id(one).is_none() {
                    return Err(Error::BitmapRange);
                }
                let to = a.ip_to.map(|t| t as u32).or(a.port_to.map(u32::from));
                let span = match (to, a.cidr) {
                    _ if adt == Adt::Test => Span { from: one, to: one },
                    (Some(to), _) => Span { from: one.min(to), to: one.max(to) },
                    (None, Some(0)) => return Err(Error::Cidr),
                    (None, Some(cidr)) => {
                        let mask = mask(Family::Ip, cidr) as u32;
                        Span { from: one & mask, to: one & mask | !mask }
                    }
                    (None, None) => Span { from: one, to: one },
                };
                if span.to > map.last || to.is_some() && span.from < map.first {
                    return Err(Error::BitmapRange);
                }
                if adt == Adt::Test {
                    let id = map.id(one).unwrap_or(0);
                    let found = map.test(id, a.ether, &Ask::default(), ticks, &mut Skbinfo::default());
                    return Ok(found.is_none_or(|f| f == Found::Yes));
                }
                let mut value = span.from;
                loop {
                    let Some(id) = map.id(value) else { return Err(Error::BitmapRange) };
                    let done = match adt {
                        Adt::Add => map.add(id, a.ether, &new, flags, ticks),
                        _ => map.del(id, ticks),
                    };
                    match done {
                        Err(Error::Exist) if exist => {}
                        done => done?,
                    }
                    match value.checked_add(map.hosts).filter(|v| *v <= span.to) {
                        Some(next) => value = next,
                        None => return Ok(true),
                    }
                }
            }
        }
    }
}
