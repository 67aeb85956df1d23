//! Sets of addresses, ports, networks and their kin, as `ipset` makes them and `-m set`, `-j SET` and tc's `ipset` ask them.
//!
//! A set is known by its number: rules and lists keep that, names and what is behind a number change places with `swap`.
//!
//! Follows: linux v6.12 `net/netfilter/ipset/ip_set_core.c`, `ip_set_hash_gen.h`, `ip_set_bitmap_gen.h`, `ip_set_list_set.c`.
//! Differs: `initval` is drawn from the machine's own dice.

mod bitmap;
mod elem;
mod ext;
mod hash;
mod kadt;
mod list;
mod run;
mod uadt;
mod xt;

pub(super) use xt::{SetStep, fits};

use super::Dice;
use bitmap::Bitmap;
use elem::Type;
pub(super) use ext::Ticks;
use ext::With;
use hash::Hash;
use list::List;
use penstock_lang::ipset::{Attributes, Error, Header, Kind};
use penstock_lang::iptables::Family;
use penstock_model::Rng;

/// What a set holds.
#[derive(Clone, PartialEq, Debug)]
enum Body {
    Hash(Box<Hash>),
    Bitmap(Box<Bitmap>),
    List(Box<List>),
}

/// `struct ip_set`.
#[derive(Clone, PartialEq, Debug)]
struct Set {
    name: String,
    kind: &'static Kind,
    family: Option<Family>,
    body: Body,
}

impl Set {
    fn with(&self) -> With {
        match &self.body {
            Body::Hash(h) => h.with,
            Body::Bitmap(b) => b.with,
            Body::List(l) => l.with,
        }
    }
    fn catch_up(&mut self, ticks: Ticks) {
        match &mut self.body {
            Body::Hash(h) => h.catch_up(ticks),
            Body::Bitmap(b) => b.catch_up(ticks),
            Body::List(l) => l.catch_up(ticks),
        }
    }
    fn flush(&mut self) {
        match &mut self.body {
            Body::Hash(h) => h.flush(),
            Body::Bitmap(b) => b.flush(),
            Body::List(l) => l.members.clear(),
        }
    }
    /// Whether another was made alike (`mtype_same_set`).
    fn same(&self, other: &Set) -> bool {
        let bodies = match (&self.body, &other.body) {
            (Body::Hash(a), Body::Hash(b)) => {
                a.maxelem == b.maxelem && a.bitmask == b.bitmask && a.markmask == b.markmask
            }
            (Body::Bitmap(a), Body::Bitmap(b)) => {
                (a.first, a.last, a.netmask) == (b.first, b.last, b.netmask)
            }
            (Body::List(a), Body::List(b)) => a.size == b.size,
            _ => false,
        };
        self.kind == other.kind && bodies && self.with() == other.with()
    }
}

/// The sets of a machine.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Sets {
    /// By number.
    sets: Vec<Option<Set>>,
    dice: Dice,
}

impl Sets {
    /// None; `dice` are what `initval` is drawn from.
    pub(super) fn new(dice: Rng) -> Sets {
        Sets { sets: Vec::new(), dice: Dice(dice) }
    }
    /// Whether there are none.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.sets.is_empty()
    }
    /// The number of a set.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.sets.iter().position(|s| s.as_ref().is_some_and(|s| s.name == name)).map(|at| at as u32)
    }
    fn get(&self, id: u32) -> Option<&Set> {
        self.sets.get(id as usize)?.as_ref()
    }
    fn get_mut(&mut self, id: u32) -> Option<&mut Set> {
        self.sets.get_mut(id as usize)?.as_mut()
    }
    /// A set's type and family.
    pub(super) fn known(&self, name: &str) -> Option<(&'static Kind, Option<Family>)> {
        self.get(self.find(name)?).map(|s| (s.kind, s.family))
    }
    /// The names of all.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.sets.iter().flatten().map(|s| s.name.as_str())
    }
    /// Lists that have a set among theirs.
    fn listed(&self, id: u32) -> u32 {
        let of = |s: &Set| match &s.body {
            Body::List(l) => l.members.iter().filter(|m| m.0 == id).count() as u32,
            _ => 0,
        };
        self.sets.iter().flatten().map(of).sum()
    }

    /// `ip_set_create`.
    fn create(
        &mut self,
        name: &str,
        (kind, family): (&'static Kind, Option<Family>),
        a: &Attributes,
        exist: bool,
        ticks: Ticks,
    ) -> Result<(), Error> {
        let with =
            With { timeout: a.timeout, counters: a.counters, comments: a.comments, skbinfo: a.skbinfo };
        let body = match (Type::named(kind.name), kind.name) {
            (Some(ty), _) => Body::Hash(Box::new(self.hash(ty, family, a, with, ticks)?)),
            (None, "list:set") => Body::List(Box::new(List::new(a.size.unwrap_or(8).max(4), with, ticks))),
            (None, name) => {
                let ty = match name {
                    "bitmap:ip" => bitmap::Type::Ip,
                    "bitmap:port" => bitmap::Type::Port,
                    _ => bitmap::Type::IpMac,
                };
                Body::Bitmap(Box::new(Bitmap::create(ty, a, with, ticks)?))
            }
        };
        let set = Set { name: name.to_owned(), kind, family, body };
        if let Some(clash) = self.find(name).and_then(|id| self.get(id)) {
            return if exist && set.same(clash) { Ok(()) } else { Err(Error::SetExists) };
        }
        match self.sets.iter().position(Option::is_none) {
            Some(free) => self.sets[free] = Some(set),
            None => self.sets.push(Some(set)),
        }
        Ok(())
    }

    fn hash(
        &mut self,
        ty: Type,
        family: Option<Family>,
        a: &Attributes,
        with: With,
        ticks: Ticks,
    ) -> Result<Hash, Error> {
        let family = family.unwrap_or_default();
        let hashsize = a.hashsize.unwrap_or(1024).max(64);
        if hashsize > 1 << 27 {
            return Err(Error::NoMemory);
        }
        if a.markmask == Some(0) {
            return Err(Error::Markmask);
        }
        if a.bitmask == Some(0) {
            return Err(Error::Netmask);
        }
        let mut hash = Hash::new(ty, family, hashsize, a.maxelem.unwrap_or(65_536), with, ticks);
        hash.initval = a.initval.unwrap_or_else(|| self.dice.0.next_u32());
        if let Some(size) = a.bucketsize {
            let size = size.clamp(2, hash::BUCKET);
            hash.bucketsize = size + size % 2;
        }
        hash.netmask = a.netmask.filter(|n| u32::from(*n) != family.bits());
        hash.bitmask = a.netmask.map_or(u128::MAX, |n| family.mask(n.into()));
        hash.bitmask = a.bitmask.unwrap_or(hash.bitmask);
        hash.markmask = a.markmask.unwrap_or(u32::MAX);
        hash.forceadd = a.forceadd;
        Ok(hash)
    }

    /// `ip_set_destroy`: a set, or all. `used` says how many rules name one.
    fn destroy(&mut self, name: Option<&str>, exist: bool, used: &dyn Fn(&str) -> u32) -> Result<(), Error> {
        let busy =
            |sets: &Sets, id: u32| sets.get(id).is_some_and(|s| used(&s.name) > 0) || sets.listed(id) > 0;
        match name {
            Some(name) => match self.find(name) {
                None if exist => Ok(()),
                None => Err(Error::NoSet),
                Some(id) if busy(self, id) => Err(Error::Busy),
                Some(id) => {
                    self.sets[id as usize] = None;
                    Ok(())
                }
            },
            None => {
                // Lists let go of theirs first: a set that only lists name goes with all others.
                let all = 0..self.sets.len() as u32;
                if all.clone().any(|id| busy(self, id)) {
                    return Err(Error::Busy);
                }
                self.sets.clear();
                Ok(())
            }
        }
    }

    /// `ip_set_flush`.
    fn flush(&mut self, name: Option<&str>) -> Result<(), Error> {
        match name {
            None => self.sets.iter_mut().flatten().for_each(Set::flush),
            Some(name) => {
                let id = self.find(name).ok_or(Error::NoSet)?;
                if let Some(set) = self.get_mut(id) {
                    set.flush();
                }
            }
        }
        Ok(())
    }

    /// `ip_set_rename`.
    fn rename(&mut self, name: &str, to: &str, used: &dyn Fn(&str) -> u32) -> Result<(), Error> {
        let id = self.find(name).ok_or(Error::NoSet)?;
        if used(name) > 0 || self.listed(id) > 0 {
            return Err(Error::Referenced);
        }
        if self.find(to).is_some() {
            return Err(Error::Name2);
        }
        if let Some(set) = self.get_mut(id) {
            to.clone_into(&mut set.name);
        }
        Ok(())
    }

    /// `ip_set_swap`: what is behind two names. Who refers to a name refers to the other set from then on.
    fn swap(&mut self, name: &str, other: &str) -> Result<(), Error> {
        let one = self.find(name).ok_or(Error::NoSet)?;
        let two = self.find(other).ok_or(Error::Name2)?;
        let alike = match (self.get(one), self.get(two)) {
            (Some(a), Some(b)) => a.kind.parts_alike(b.kind) && a.family == b.family,
            _ => false,
        };
        if !alike {
            return Err(Error::TypeMismatch);
        }
        self.sets.swap(one as usize, two as usize);
        for (id, name) in [(one, name), (two, other)] {
            if let Some(set) = self.get_mut(id) {
                name.clone_into(&mut set.name);
            }
        }
        Ok(())
    }

    /// What a listing says of a set, without its members.
    fn header(&self, id: u32, rules: u32, ticks: Ticks) -> Option<Header> {
        let set = self.get(id)?;
        let with = set.with();
        let mut options = Attributes {
            timeout: with.timeout,
            counters: with.counters,
            comments: with.comments,
            skbinfo: with.skbinfo,
            ..Attributes::default()
        };
        let (memory, entries) = match &set.body {
            Body::Hash(h) => {
                options.hashsize = Some(h.hashsize());
                options.maxelem = Some(h.maxelem);
                options.netmask = h.netmask;
                options.bitmask = (h.netmask.is_none() && h.bitmask != u128::MAX).then_some(h.bitmask);
                options.markmask = Some(h.markmask);
                options.forceadd = h.forceadd;
                options.bucketsize = Some(h.bucketsize);
                options.initval = Some(h.initval);
                (h.memory(), h.members(ticks).count() as u64)
            }
            Body::Bitmap(b) => {
                match b.ty {
                    bitmap::Type::Port => {
                        (options.port, options.port_to) = (Some(b.first as u16), Some(b.last as u16));
                    }
                    _ => (options.ip, options.ip_to) = (Some(b.first.into()), Some(b.last.into())),
                }
                options.netmask = b.netmask;
                (b.memory(), b.entries())
            }
            Body::List(l) => {
                options.size = Some(l.size);
                (l.memory(), l.members.len() as u64)
            }
        };
        let references = rules + self.listed(id);
        let (name, kind, family) = (set.name.clone(), set.kind, set.family);
        Some(Header { name, kind, family, options, memory, references, entries })
    }

    /// A set's members, in the kernel's order.
    fn members(&self, id: u32, ticks: Ticks) -> Vec<Attributes> {
        let Some(set) = self.get(id) else { return Vec::new() };
        match &set.body {
            Body::Bitmap(b) => b.members(ticks),
            Body::List(l) => {
                let alive = l.members.iter().filter(|m| !m.1.expired(l.with, ticks));
                alive
                    .map(|(id, ext)| {
                        let name = self.get(*id).map(|s| s.name.clone());
                        let mut a = Attributes { name, ..Attributes::default() };
                        ext.show(l.with, ticks, true, &mut a);
                        a
                    })
                    .collect()
            }
            Body::Hash(h) => h
                .members(ticks)
                .map(|(elem, nomatch, ext)| {
                    let mut a = uadt::shown(h.ty, elem);
                    a.nomatch = nomatch;
                    ext.show(h.with, ticks, true, &mut a);
                    a
                })
                .collect(),
        }
    }
}
