//! Sets of type `bitmap:…`: a place for each address or port of a range.
//!
//! Follows: linux v6.12 `net/netfilter/ipset/ip_set_bitmap_gen.h`, `ip_set_bitmap_ip.c`, `ip_set_bitmap_ipmac.c`, `ip_set_bitmap_port.c`.

use super::ext::{Ask, Ext, New, Skbinfo, Ticks, With};
use super::hash::{Flags, Found};
use penstock_lang::ipset::{Attributes, Error};
use penstock_lang::iptables::Family;

/// Which bitmap it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Type {
    Ip,
    IpMac,
    Port,
}

/// One place.
#[derive(Clone, PartialEq, Debug, Default)]
struct Place {
    there: bool,
    /// `bitmap:ip,mac`: the address is known.
    filled: bool,
    ether: [u8; 6],
    ext: Ext,
}

/// A set of type `bitmap:…`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Bitmap {
    pub ty: Type,
    pub first: u32,
    pub last: u32,
    /// Addresses a place stands for.
    pub hosts: u32,
    pub netmask: Option<u8>,
    pub with: With,
    places: Vec<Place>,
    /// So many are there, those that have timed out among them until they are swept out.
    entries: u64,
    sweep: i64,
}

/// `IPSET_BITMAP_MAX_RANGE`.
const MOST: u64 = 0xffff;

/// The mask of a range and the length of its prefix (`range_to_mask`).
fn range_to_mask(from: u32, to: u32) -> (u32, u8) {
    let (mut mask, mut bits) = (0xffff_fffe_u32, 32u8);
    loop {
        bits -= 1;
        if bits == 0 || mask == 0 || to & mask == from {
            return (mask, bits);
        }
        mask <<= 1;
    }
}

impl Bitmap {
    /// `bitmap_ip_create`, `bitmap_ipmac_create`, `bitmap_port_create`.
    pub(super) fn create(ty: Type, a: &Attributes, with: With, ticks: Ticks) -> Result<Bitmap, Error> {
        let (mut first, mut last, mut hosts, mut netmask) = (0u32, 0u32, 1u32, None);
        let count;
        if ty == Type::Port {
            let (from, to) = (a.port.unwrap_or(0), a.port_to.unwrap_or(0));
            (first, last) = (from.min(to).into(), from.max(to).into());
            count = u64::from(last - first) + 1;
        } else {
            let from = a.ip.unwrap_or(0) as u32;
            if let Some(to) = a.ip_to {
                (first, last) = (from.min(to as u32), from.max(to as u32));
            } else if let Some(cidr) = a.cidr {
                if cidr >= 32 {
                    return Err(Error::Cidr);
                }
                let mask = Family::Ip.mask(cidr.into()) as u32;
                (first, last) = (from & mask, from | !mask);
            }
            if let Some(length) = a.netmask.filter(|n| *n != 32) {
                let mask = Family::Ip.mask(length.into()) as u32;
                (first, last) = (first & mask, last | !mask);
                let (range, bits) = range_to_mask(first, last);
                if range == 0 && (first != 0 || last != u32::MAX) || length <= bits {
                    return Err(Error::BitmapRange);
                }
                hosts = 1 << (32 - length);
                count = 1u64 << (length - bits);
                netmask = Some(length);
            } else {
                count = u64::from(last - first) + 1;
            }
        }
        if count > MOST + 1 {
            return Err(Error::BitmapSize);
        }
        let places = vec![Place::default(); count as usize];
        let sweep = ticks.now + period(with, ticks);
        Ok(Bitmap { ty, first, last, hosts, netmask, with, places, entries: 0, sweep })
    }

    /// The place of an address or port within the range.
    pub(super) fn id(&self, value: u32) -> Option<usize> {
        let within = (self.first..=self.last).contains(&value);
        within.then(|| {
            let mask = self.netmask.map_or(u32::MAX, |n| Family::Ip.mask(n.into()) as u32);
            ((value & mask).wrapping_sub(self.first) / self.hosts) as usize
        })
    }

    /// `mtype_add`.
    pub(super) fn add(
        &mut self,
        id: usize,
        ether: Option<[u8; 6]>,
        new: &New<'_>,
        flags: Flags,
        ticks: Ticks,
    ) -> Result<(), Error> {
        let with = self.with;
        let Some(place) = self.places.get_mut(id) else { return Err(Error::BitmapRange) };
        // `bitmap_ipmac_do_add`: whether it was there already, and whether only now the address is known.
        let (mut was, mut fills) = (place.there, false);
        if self.ty == Type::IpMac {
            match (place.there, place.filled, ether) {
                (true, true, Some(ether)) if flags.exist => place.ether = ether,
                (true, true, _) | (true, false, None) => {}
                (true, false, Some(ether)) => {
                    (place.ether, place.filled) = (ether, true);
                    (was, fills) = (false, true);
                }
                (false, _, Some(ether)) => (place.ether, place.filled) = (ether, true),
                (false, _, None) => place.filled = false,
            }
        }
        if was {
            if place.ext.expired(with, ticks) {
                self.entries -= 1;
            } else if !flags.exist {
                return Err(Error::Exist);
            } else {
                self.entries -= 1;
            }
            place.ext.comment = None;
        }
        if fills {
            self.entries -= 1;
        }
        if with.timeout.is_some() {
            match (self.ty, fills, ether) {
                (Type::IpMac, true, _) => {
                    let seconds = match with.timeout == Some(new.timeout) {
                        true => place.ext.timeout as u32,
                        false => new.timeout,
                    };
                    place.ext.set_timeout(seconds, ticks);
                }
                // The clock does not run until the address is known.
                (Type::IpMac, false, None) => place.ext.timeout = new.timeout.into(),
                _ => place.ext.set_timeout(new.timeout, ticks),
            }
        }
        place.ext.begin(with, new);
        place.there = true;
        self.entries += 1;
        Ok(())
    }

    /// `mtype_del`.
    pub(super) fn del(&mut self, id: usize, ticks: Ticks) -> Result<(), Error> {
        let with = self.with;
        let Some(place) = self.places.get_mut(id).filter(|p| p.there) else { return Err(Error::Exist) };
        place.there = false;
        place.ext.comment = None;
        self.entries -= 1;
        if place.ext.expired(with, ticks) { Err(Error::Exist) } else { Ok(()) }
    }

    /// `mtype_test`; `None`: the packet's address is to be filled in (`-EAGAIN`).
    pub(super) fn test(
        &mut self,
        id: usize,
        ether: Option<[u8; 6]>,
        ask: &Ask,
        ticks: Ticks,
        info: &mut Skbinfo,
    ) -> Option<Found> {
        let (with, ty) = (self.with, self.ty);
        let Some(place) = self.places.get_mut(id).filter(|p| p.there) else { return Some(Found::No) };
        if ty == Type::IpMac {
            match ether.filter(|_| place.filled) {
                Some(ether) if ether != place.ether => return Some(Found::No),
                Some(_) => {}
                None => return None,
            }
        }
        Some(if place.ext.matches(with, ask, ticks, info) { Found::Yes } else { Found::No })
    }

    /// What the timer has done until now.
    pub(super) fn catch_up(&mut self, ticks: Ticks) {
        if self.with.timeout.is_none() || ticks.now < self.sweep {
            return;
        }
        let period = period(self.with, ticks);
        let last = self.sweep + (ticks.now - self.sweep) / period * period;
        let then = Ticks { now: last, ..ticks };
        for place in &mut self.places {
            let runs = place.there && (self.ty != Type::IpMac || place.filled);
            if runs && place.ext.expired(self.with, then) {
                place.there = false;
                place.ext.comment = None;
                self.entries -= 1;
            }
        }
        self.sweep = last + period;
    }

    pub(super) fn flush(&mut self) {
        for place in &mut self.places {
            place.there = false;
            place.ext.comment = None;
        }
        self.entries = 0;
    }
    pub(super) fn entries(&self) -> u64 {
        self.entries
    }

    /// What is there, by number.
    pub(super) fn members(&self, ticks: Ticks) -> Vec<Attributes> {
        let mut out = Vec::new();
        for (id, place) in self.places.iter().enumerate().filter(|(_, p)| p.there) {
            let filled = self.ty != Type::IpMac || place.filled;
            if filled && place.ext.expired(self.with, ticks) {
                continue;
            }
            let value = self.first + id as u32 * self.hosts;
            let mut a = Attributes::default();
            match self.ty {
                Type::Port => a.port = Some(value as u16),
                Type::Ip => a.ip = Some(value.into()),
                Type::IpMac => (a.ip, a.ether) = (Some(value.into()), place.filled.then_some(place.ether)),
            }
            place.ext.show(self.with, ticks, filled, &mut a);
            out.push(a);
        }
        out
    }

    /// Bytes that the kernel says it takes (`mtype_memsize`).
    pub(super) fn memory(&self) -> u64 {
        let (map, elem) = match self.ty {
            Type::Ip => (88, (0, 1)),
            Type::IpMac => (80, (8, 8)),
            Type::Port => (72, (0, 1)),
        };
        let places = self.places.len() as u64;
        let comments: u64 = self.places.iter().map(|p| p.ext.comment_size()).sum();
        map + places.div_ceil(64) * 8 + places * self.with.size(elem) + comments
    }
}

/// Ticks between two runs of the timer (`IPSET_GC_PERIOD`).
pub(super) fn period(with: With, ticks: Ticks) -> i64 {
    i64::from((with.timeout.unwrap_or(0) / 3).clamp(1, 180)) * ticks.hz
}
