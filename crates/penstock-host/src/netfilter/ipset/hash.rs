//! A hash of elements in buckets that grow up to a limit, beyond which the table doubles.
//!
//! Follows: linux v6.12 `net/netfilter/ipset/ip_set_hash_gen.h` `mtype_add`, `mtype_del`, `mtype_test`, `mtype_test_cidrs`,
//! `mtype_resize`, `mtype_gc_do`, `mtype_add_cidr`, `mtype_del_cidr`, `mtype_ahash_memsize`.
//! Differs: what has timed out is swept out when the set is next changed or listed, as the kernel's timer would have done by then.

use super::elem::{Elem, Type};
use super::ext::{Ask, Ext, New, Skbinfo, Ticks, With};
use penstock_lang::ipset::Error;
use penstock_lang::iptables::Family;

/// `AHASH_INIT_SIZE`.
const STEP: usize = 2;
/// `AHASH_MAX_SIZE`.
pub(super) const BUCKET: u8 = 12;
/// `AHASH_MAX_TUNED`.
const TUNED: u8 = 64;
/// `HTABLE_REGION_BITS`.
const REGION_BITS: u32 = 10;

#[derive(Clone, PartialEq, Debug, Default)]
struct Slot {
    used: bool,
    nomatch: bool,
    elem: Elem,
    ext: Ext,
}

/// `struct hbucket`.
#[derive(Clone, PartialEq, Debug)]
struct Bucket {
    /// As many as its size.
    slots: Vec<Slot>,
    /// First that was never used, or is free behind all others.
    pos: usize,
}

impl Bucket {
    fn sized(size: usize) -> Bucket {
        Bucket { slots: vec![Slot::default(); size], pos: 0 }
    }
}

/// Lengths of the prefixes there are, longest first, and how many of each (`struct net_prefixes`).
#[derive(Clone, PartialEq, Debug)]
struct Prefixes {
    lengths: Vec<u8>,
    counts: Box<[u32; 129]>,
}

impl Default for Prefixes {
    fn default() -> Prefixes {
        Prefixes { lengths: Vec::new(), counts: Box::new([0; 129]) }
    }
}

impl Prefixes {
    fn add(&mut self, cidr: u8) {
        let count = &mut self.counts[usize::from(cidr)];
        *count += 1;
        if *count == 1 {
            let at = self.lengths.iter().position(|l| *l < cidr).unwrap_or(self.lengths.len());
            self.lengths.insert(at, cidr);
        }
    }
    fn del(&mut self, cidr: u8) {
        let count = &mut self.counts[usize::from(cidr)];
        *count = count.saturating_sub(1);
        if *count == 0 {
            self.lengths.retain(|l| *l != cidr);
        }
    }
}

/// What became of a new element.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Added {
    Done,
    Refused(Error),
    /// The table has to grow first (`-EAGAIN`).
    Grow,
}

/// What was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Found {
    No,
    Yes,
    /// It has `nomatch` (`-ENOTEMPTY`).
    Nomatch,
}

/// How a new element is to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Flags {
    /// `-exist`.
    pub exist: bool,
    /// `nomatch`.
    pub nomatch: bool,
}

/// A set of type `hash:…`.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Hash {
    pub ty: Type,
    pub family: Family,
    // Parameters
    pub maxelem: u32,
    pub initval: u32,
    pub bucketsize: u8,
    pub netmask: Option<u8>,
    pub bitmask: u128,
    pub markmask: u32,
    pub forceadd: bool,
    pub with: With,
    // Variables
    buckets: Vec<Option<Box<Bucket>>>,
    /// Elements of each 1024 buckets.
    regions: Vec<u32>,
    prefixes: [Prefixes; 2],
    /// What the kernel counts its buckets' bytes as: a bucket that grows counts its head anew, one that goes counts it once.
    ext_size: u64,
    /// The tick at which the timer is next due.
    sweep: i64,
}

/// The mask of a prefix.
pub(super) fn mask(family: Family, cidr: u8) -> u128 {
    family.mask(cidr.into())
}

impl Hash {
    pub(super) fn new(
        ty: Type,
        family: Family,
        hashsize: u32,
        maxelem: u32,
        with: With,
        ticks: Ticks,
    ) -> Hash {
        let bits = hashsize.max(2).next_power_of_two();
        let buckets = vec![None; bits as usize];
        let regions = vec![0; (bits >> REGION_BITS).max(1) as usize];
        Hash {
            ty,
            family,
            maxelem,
            initval: 0,
            bucketsize: BUCKET,
            netmask: None,
            bitmask: u128::MAX,
            markmask: u32::MAX,
            forceadd: false,
            with,
            buckets,
            regions,
            prefixes: Default::default(),
            ext_size: 0,
            sweep: ticks.now + ticks.hz,
        }
    }
    /// How many buckets there are.
    pub(super) fn hashsize(&self) -> u32 {
        self.buckets.len() as u32
    }
    /// `ext_size`: bytes of a bucket of so many.
    fn bucket_size(&self, slots: usize) -> u64 {
        32 + slots as u64 * self.with.size(self.ty.size(self.family))
    }
    fn place(&self, elem: &Elem) -> usize {
        elem.key(self.ty, self.family, self.initval) as usize & (self.buckets.len() - 1)
    }
    /// The longest prefix there is of an address, or a host's where there is none (`INIT_CIDR`).
    pub(super) fn longest(&self, which: usize) -> u8 {
        self.prefixes[which].lengths.first().copied().unwrap_or(self.family.bits() as u8)
    }
    /// The lengths of an element's prefixes, and whose they are.
    fn cidrs(&self, elem: &Elem) -> [Option<u8>; 2] {
        match self.ty {
            Type::IpPortNet => [Some(elem.cidr[1]), None],
            ty => [(ty.nets() > 0).then_some(elem.cidr[0]), (ty.nets() > 1).then_some(elem.cidr[1])],
        }
    }
    fn count(&mut self, elem: &Elem, comes: bool) {
        let cidrs = self.cidrs(elem);
        for (prefixes, cidr) in self.prefixes.iter_mut().zip(cidrs) {
            match (cidr, comes) {
                (Some(cidr), true) => prefixes.add(cidr),
                (Some(cidr), false) => prefixes.del(cidr),
                (None, _) => {}
            }
        }
    }

    /// `mtype_add`.
    pub(super) fn add(&mut self, elem: &Elem, new: &New<'_>, flags: Flags, ticks: Ticks) -> Added {
        let (ty, with) = (self.ty, self.with);
        let place = self.place(elem);
        let step = self.bucket_size(STEP);
        let region = (place >> REGION_BITS).min(self.regions.len() - 1);
        let mut elements = self.regions[region];
        let mut most = self.maxelem / self.regions.len() as u32;
        let mut forced = false;
        if elements >= most {
            if with.timeout.is_some() {
                self.sweep_once(ticks.now, with);
            }
            most = self.maxelem;
            elements = self.regions.iter().sum();
            forced = elements >= most && self.forceadd;
        }
        let full = elements >= most;
        let mut multi = 0;
        let Some(bucket) = &mut self.buckets[place] else {
            if full {
                return Added::Refused(Error::HashFull);
            }
            let mut bucket = Bucket::sized(STEP);
            bucket.pos = 1;
            self.buckets[place] = Some(Box::new(bucket));
            self.ext_size = self.ext_size.wrapping_add(step);
            return self.store((place, 0, region), elem, new, flags, ticks);
        };
        let mut reuse = None;
        let mut deleted = false;
        for at in 0..bucket.pos {
            let slot = &mut bucket.slots[at];
            if !slot.used {
                if reuse.is_none() {
                    (reuse, deleted) = (Some(at), true);
                }
                continue;
            }
            let expired = slot.ext.expired(with, ticks);
            if slot.elem.equal(elem, ty, &mut multi) {
                if !flags.exist && !expired {
                    return Added::Refused(Error::Exist);
                }
                // What it carries alone is new.
                if ty.nets() > 0 {
                    slot.nomatch = flags.nomatch;
                }
                slot.ext.begin(with, new);
                slot.ext.set_timeout(new.timeout, ticks);
                return Added::Done;
            }
            if expired && reuse.is_none() {
                reuse = Some(at);
            }
        }
        if reuse.is_some() || forced {
            let at = reuse.unwrap_or(0);
            if !deleted {
                let old = bucket.slots[at].elem;
                bucket.slots[at].ext.comment = None;
                self.count(&old, false);
                self.regions[region] -= 1;
            }
            return self.store((place, at, region), elem, new, flags, ticks);
        }
        if full {
            return Added::Refused(Error::HashFull);
        }
        if bucket.pos >= bucket.slots.len() {
            if ty == Type::NetIface {
                if self.bucketsize >= TUNED {
                    return Added::Refused(Error::HashFull);
                }
                if u32::from(self.bucketsize) <= multi {
                    self.bucketsize += STEP as u8;
                }
            }
            if bucket.slots.len() >= usize::from(self.bucketsize) {
                return Added::Grow;
            }
            let size = bucket.slots.len() + STEP;
            bucket.slots.resize_with(size, Slot::default);
            self.ext_size = self.ext_size.wrapping_add(step);
        }
        bucket.pos += 1;
        let at = bucket.pos - 1;
        self.store((place, at, region), elem, new, flags, ticks)
    }

    /// `copy_data` of `mtype_add`.
    fn store(
        &mut self,
        (place, at, region): (usize, usize, usize),
        elem: &Elem,
        new: &New<'_>,
        flags: Flags,
        ticks: Ticks,
    ) -> Added {
        self.regions[region] += 1;
        self.count(elem, true);
        if let Some(slot) = self.buckets[place].as_mut().and_then(|b| b.slots.get_mut(at)) {
            slot.elem = *elem;
            slot.nomatch = self.ty.nets() > 0 && flags.nomatch;
            slot.ext.begin(self.with, new);
            slot.ext.set_timeout(new.timeout, ticks);
            slot.used = true;
        }
        Added::Done
    }

    /// `mtype_del`; whether it was there.
    pub(super) fn del(&mut self, elem: &Elem, ticks: Ticks) -> bool {
        let (ty, with) = (self.ty, self.with);
        let place = self.place(elem);
        let step = self.bucket_size(STEP);
        let region = (place >> REGION_BITS).min(self.regions.len() - 1);
        let Some(bucket) = &mut self.buckets[place] else { return false };
        let mut multi = 0;
        let found = (0..bucket.pos)
            .find(|&at| bucket.slots[at].used && bucket.slots[at].elem.equal(elem, ty, &mut multi));
        let Some(at) = found else { return false };
        if bucket.slots[at].ext.expired(with, ticks) {
            return false;
        }
        bucket.slots[at].used = false;
        bucket.slots[at].ext.comment = None;
        if at + 1 == bucket.pos {
            bucket.pos -= 1;
        }
        let unused = bucket.slots[..bucket.pos].iter().filter(|s| !s.used).count();
        if bucket.pos == unused {
            let size = bucket.slots.len();
            self.buckets[place] = None;
            self.ext_size = self.ext_size.wrapping_sub(self.bucket_size(size));
        } else if unused >= STEP {
            bucket.shrink();
            self.ext_size = self.ext_size.wrapping_sub(step);
        }
        self.regions[region] -= 1;
        self.count(elem, false);
        true
    }

    /// `mtype_test`.
    pub(super) fn test(&mut self, elem: &Elem, ask: &Ask, ticks: Ticks, info: &mut Skbinfo) -> Found {
        let host = self.family.bits() as u8;
        let cidrs = self.cidrs(elem);
        if self.ty.nets() > 0 && cidrs.iter().flatten().all(|c| *c == host) {
            return self.test_cidrs(elem, ask, ticks, info);
        }
        self.look(elem, ask, ticks, info, &mut 0)
    }

    /// An element in its bucket.
    fn look(&mut self, elem: &Elem, ask: &Ask, ticks: Ticks, info: &mut Skbinfo, multi: &mut u32) -> Found {
        let (ty, with) = (self.ty, self.with);
        let place = self.place(elem);
        let Some(bucket) = &mut self.buckets[place] else { return Found::No };
        let pos = bucket.pos;
        for slot in &mut bucket.slots[..pos] {
            if !slot.used || !slot.elem.equal(elem, ty, multi) {
                continue;
            }
            if slot.ext.matches(with, ask, ticks, info) {
                return if slot.nomatch { Found::Nomatch } else { Found::Yes };
            }
            *multi = 0;
        }
        Found::No
    }

    /// `mtype_test_cidrs`: with each length of prefix there is, the longest first.
    fn test_cidrs(&mut self, elem: &Elem, ask: &Ask, ticks: Ticks, info: &mut Skbinfo) -> Found {
        let family = self.family;
        let mut multi = 0;
        let second = self.ty == Type::IpPortNet;
        let mut i = 0;
        while let (Some(&first), 0) = (self.prefixes[0].lengths.get(i), multi) {
            i += 1;
            let mut asked = *elem;
            if second {
                asked.ip2 &= mask(family, first);
                asked.cidr[1] = first;
            } else {
                asked.ip &= mask(family, first);
                asked.cidr[0] = first;
            }
            if self.ty.nets() == 1 {
                let found = self.look(&asked, ask, ticks, info, &mut multi);
                if found != Found::No {
                    return found;
                }
                continue;
            }
            let mut k = 0;
            while let Some(&other) = self.prefixes[1].lengths.get(k) {
                k += 1;
                asked.ip2 = elem.ip2 & mask(family, other);
                asked.cidr[1] = other;
                let found = self.look(&asked, ask, ticks, info, &mut multi);
                if found != Found::No {
                    return found;
                }
            }
        }
        Found::No
    }

    /// `mtype_resize`: doubles until every bucket fits.
    pub(super) fn grow(&mut self, ticks: Ticks) -> Result<(), Error> {
        let mut size = self.buckets.len();
        'again: loop {
            size *= 2;
            if size > 1 << 28 {
                return Err(Error::HashFull);
            }
            let mut buckets: Vec<Option<Box<Bucket>>> = vec![None; size];
            let mut regions = vec![0u32; (size >> REGION_BITS).max(1)];
            let (mut ext_size, step) = (0, self.bucket_size(STEP));
            for slot in self.buckets.iter().flatten().flat_map(|b| &b.slots[..b.pos]) {
                if !slot.used || slot.ext.expired(self.with, ticks) {
                    continue;
                }
                let place = slot.elem.key(self.ty, self.family, self.initval) as usize & (size - 1);
                let bucket = buckets[place].get_or_insert_with(|| {
                    ext_size += step;
                    Box::new(Bucket::sized(STEP))
                });
                if bucket.pos >= bucket.slots.len() {
                    if bucket.slots.len() >= usize::from(self.bucketsize) {
                        continue 'again;
                    }
                    let more = bucket.slots.len() + STEP;
                    bucket.slots.resize_with(more, Slot::default);
                    ext_size += step;
                }
                let at = bucket.pos;
                bucket.slots[at] = slot.clone();
                bucket.pos += 1;
                let region = (place >> REGION_BITS).min(regions.len() - 1);
                regions[region] += 1;
            }
            (self.buckets, self.regions, self.ext_size) = (buckets, regions, ext_size);
            return Ok(());
        }
    }

    /// What the timer has done until now, where it is due (`mtype_gc`).
    pub(super) fn catch_up(&mut self, ticks: Ticks) {
        let Some(timeout) = self.with.timeout else { return };
        if ticks.now < self.sweep {
            return;
        }
        let period = i64::from((timeout / 3).clamp(1, 180)) * ticks.hz;
        // Each run takes a step off a bucket; after so many nothing changes.
        let runs = (ticks.now - self.sweep) / period + 1;
        let last = self.sweep + (runs - 1) * period;
        for run in (0..runs.min(TUNED.into())).rev() {
            self.sweep_once(last - run * period, self.with);
        }
        self.sweep = last + period;
    }

    /// `mtype_gc_do`.
    fn sweep_once(&mut self, now: i64, with: With) {
        for place in 0..self.buckets.len() {
            let Some(bucket) = &mut self.buckets[place] else { continue };
            let mut gone: [Option<Elem>; TUNED as usize] = [None; TUNED as usize];
            let mut unused = 0;
            for (slot, gone) in bucket.slots[..bucket.pos].iter_mut().zip(&mut gone) {
                let ticks = Ticks { now, hz: 1 };
                if slot.used && slot.ext.expired(with, ticks) {
                    slot.used = false;
                    slot.ext.comment = None;
                    *gone = Some(slot.elem);
                }
                unused += usize::from(!slot.used);
            }
            if unused >= STEP {
                let size = bucket.slots.len();
                let less = match unused >= size {
                    true => {
                        self.buckets[place] = None;
                        self.bucket_size(size)
                    }
                    false => {
                        bucket.shrink();
                        self.bucket_size(STEP)
                    }
                };
                self.ext_size = self.ext_size.wrapping_sub(less);
            }
            let region = (place >> REGION_BITS).min(self.regions.len() - 1);
            for elem in gone.into_iter().flatten() {
                self.regions[region] -= 1;
                self.count(&elem, false);
            }
        }
    }

    /// `mtype_flush`.
    pub(super) fn flush(&mut self) {
        self.buckets.iter_mut().for_each(|b| *b = None);
        self.regions.iter_mut().for_each(|r| *r = 0);
        self.prefixes = Default::default();
        self.ext_size = 0;
    }

    /// What is there, bucket by bucket: each with its `nomatch` and what it carries.
    pub(super) fn members(&self, ticks: Ticks) -> impl Iterator<Item = (&Elem, bool, &Ext)> {
        let with = self.with;
        let slots = self.buckets.iter().flatten().flat_map(|b| &b.slots[..b.pos]);
        slots.filter(move |s| s.used && !s.ext.expired(with, ticks)).map(|s| (&s.elem, s.nomatch, &s.ext))
    }

    /// Bytes that the kernel says it takes on a machine of 64 bits (`mtype_ahash_memsize` and what its elements take).
    pub(super) fn memory(&self) -> u64 {
        let up = |n: u64, to: u64| n.div_ceil(to) * to;
        let (elem, align) = self.ty.size(self.family);
        // `struct htype` up to `initval`: the table, the timer's work, two numbers.
        let mut size = 8 + 104 + 8;
        size += if self.ty == Type::IpMark { 4 } else { 0 };
        size += 1;
        if self.ty.masks() {
            size = up(size + 1, 4) + 16;
        }
        size = up(size, 8) + 16;
        size = up(size, align) + elem;
        if self.ty.nets() > 0 {
            let lengths = u64::from(self.family.bits()) + u64::from(self.ty.net0());
            size = up(size, 4) + lengths * if self.ty.nets() == 2 { 12 } else { 8 };
        }
        size = up(size, 8);
        let comments: u64 = match self.with.comments {
            true => self.members_at_all().map(Ext::comment_size).sum(),
            false => 0,
        };
        (size + 24 + 24 * self.regions.len() as u64 + comments).wrapping_add(self.ext_size)
            & u64::from(u32::MAX)
    }
    fn members_at_all(&self) -> impl Iterator<Item = &Ext> {
        self.buckets.iter().flatten().flat_map(|b| &b.slots[..b.pos]).filter(|s| s.used).map(|s| &s.ext)
    }
}

impl Bucket {
    /// Those that are used move together, into a step less.
    fn shrink(&mut self) {
        let size = self.slots.len() - STEP;
        let mut slots: Vec<Slot> = self.slots.drain(..self.pos).filter(|s| s.used).collect();
        self.pos = slots.len();
        slots.resize_with(size, Slot::default);
        self.slots = slots;
    }
}
