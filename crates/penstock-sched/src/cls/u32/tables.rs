//! u32's hash tables and the filters in them, shared by all u32 priorities of a qdisc.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_u32.c` `struct tc_u_common`, `tc_u_hnode`, `tc_u_knode`.

use crate::act::Look;
use crate::cls::{Answer, Exts, Target};
use crate::qdisc::{Classful, Cx};
use penstock_model::{Kernel, Options};
use penstock_packet::Skb;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};

/// A handle's table: `TC_U32_HTID`.
pub(super) const fn htid(handle: u32) -> u32 {
    handle & 0xfff0_0000
}
/// A handle's bucket: `TC_U32_HASH`.
pub(super) const fn hash(handle: u32) -> u32 {
    handle >> 12 & 0xff
}
/// A handle's filter: `TC_U32_NODE`.
pub(super) const fn node(handle: u32) -> u32 {
    handle & 0xfff
}
/// All but the table: 0 for a table itself: `TC_U32_KEY`.
pub(super) const fn key(handle: u32) -> u32 {
    handle & 0xf_ffff
}

/// The priority's own table, whatever its number: `TC_U32_ROOT`.
pub(super) const ROOT: u32 = 0xfff0_0000;

/// What is in a word of the packet: `struct tc_u32_key`, in host order.
#[derive(Clone, Debug)]
pub(super) struct Key {
    pub mask: u32,
    pub val: u32,
    pub off: i32,
    pub offmask: i32,
    /// How often it matched.
    pub hits: Cell<u64>,
}

/// `TC_U32_TERMINAL`: what matches is answered.
pub(super) const TERMINAL: u8 = 1;
/// `TC_U32_OFFSET`: the next table looks `off` bytes further.
pub(super) const OFFSET: u8 = 2;
/// `TC_U32_VAROFFSET`: and as much further as the packet says.
pub(super) const VAROFFSET: u8 = 4;
/// `TC_U32_EAT`: and for good.
pub(super) const EAT: u8 = 8;

/// `struct tc_u32_sel`, in host order.
#[derive(Clone, Default, Debug)]
pub(super) struct Sel {
    pub keys: Box<[Key]>,
    pub flags: u8,
    pub offshift: u8,
    pub offmask: u16,
    pub off: u16,
    pub offoff: i16,
    pub hoff: i16,
    pub hmask: u32,
}

impl Sel {
    pub fn parse(options: &Options) -> Sel {
        let int = |o: &Options, name| o.i64(name).unwrap_or(0);
        let key = |o: &Options| Key {
            mask: o.u32("mask").unwrap_or(0),
            val: o.u32("val").unwrap_or(0),
            off: int(o, "off") as i32,
            offmask: int(o, "offmask") as i32,
            hits: Cell::new(0),
        };
        Sel {
            keys: options.list("keys").iter().map(key).collect(),
            flags: int(options, "flags") as u8,
            offshift: int(options, "offshift") as u8,
            offmask: int(options, "offmask") as u16,
            off: int(options, "off") as u16,
            offoff: int(options, "offoff") as i16,
            hoff: int(options, "hoff") as i16,
            hmask: options.u32("hmask").unwrap_or(0),
        }
    }
    pub fn dump(&self) -> Options {
        let key = |k: &Key| {
            Options::new()
                .with("mask", k.mask)
                .with("val", k.val)
                .with("off", i64::from(k.off))
                .with("offmask", i64::from(k.offmask))
        };
        Options::new()
            .with("keys", self.keys.iter().map(key).collect::<Vec<_>>())
            .with("flags", u32::from(self.flags))
            .with("offshift", u32::from(self.offshift))
            .with("off", u32::from(self.off))
            .with("offoff", i64::from(self.offoff))
            .with("offmask", u32::from(self.offmask))
            .with("hoff", i64::from(self.hoff))
            .with("hmask", self.hmask)
    }
    /// Where the mask of the hash key begins.
    pub fn fshift(&self) -> u32 {
        if self.hmask == 0 { 0 } else { self.hmask.trailing_zeros() }
    }
}

/// One filter: `struct tc_u_knode`.
#[derive(Debug)]
pub(super) struct Knode {
    pub handle: u32,
    pub sel: Sel,
    /// Table it hands the packet on to.
    pub down: Option<usize>,
    pub target: Target,
    pub exts: Exts,
    /// Name and index of the interface the packet must have come in by; index 0: any.
    pub indev: (String, u32),
    /// Value and mask of the firewall mark.
    pub mark: (u32, u32),
    /// `skip_hw` and the like, with what became of it.
    pub flags: u32,
    /// How often it was tried, its mark fitted, it answered.
    pub tried: Cell<u64>,
    pub marked: Cell<u32>,
    pub hit: Cell<u64>,
}

impl Knode {
    pub fn dump(&self, tables: &Tables, kernel: Kernel, look: Look<'_>) -> Options {
        let mut o = Options::new().with("sel", self.sel.dump()).with("hash", self.handle & 0xffff_f000);
        if self.target.0.classid.0 != 0 {
            o = o.with("classid", self.target.0.classid.0);
        }
        if let Some(down) = self.down {
            o = o.with("link", tables.slots[down].handle);
        }
        if self.flags != 0 {
            o = o.with("flags", self.flags);
        }
        let (val, mask) = self.mark;
        if val != 0 || mask != 0 {
            let mark = Options::new().with("val", val).with("mask", mask).with("success", self.marked.get());
            o = o.with("mark", mark);
        }
        if !self.indev.0.is_empty() {
            o = o.with("indev", self.indev.0.as_str());
        }
        self.exts.dump(&mut o, look);
        // Counters need CONFIG_CLS_U32_PERF: distributions set it today, the kernel the 2.6.35 profile stands for had it not.
        if kernel == Kernel::V2_6_35 {
            return o;
        }
        let hits = |k: &Key| Options::new().with("hits", k.hits.get());
        let pcnt = Options::new()
            .with("rcnt", self.tried.get())
            .with("rhit", self.hit.get())
            .with("kcnts", self.sel.keys.iter().map(hits).collect::<Vec<_>>());
        o.with("pcnt", pcnt)
    }
    /// What it and its actions say of a packet that matches, if it has the last word.
    #[inline]
    pub fn answer(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        if self.sel.flags & TERMINAL == 0 || (self.indev.1 != 0 && self.indev.1 != skb.iif) {
            return None;
        }
        self.hit.set(self.hit.get() + 1);
        self.exts.exec(self.target.0, skb, cx)
    }
}

/// One hash table: `struct tc_u_hnode`.
#[derive(Default, Debug)]
pub(super) struct Table {
    pub handle: u32,
    pub prio: u16,
    pub root: bool,
    /// Itself and the filters that link to it; 0 for a free place.
    pub refs: u32,
    /// Buckets less one.
    pub divisor: u32,
    pub buckets: Vec<Vec<Knode>>,
    /// Handles given, as 6.12 keeps them.
    pub ids: BTreeSet<u32>,
    /// By bucket: the filter's number, from 0x800, below which none is free.
    lowest: BTreeMap<u32, u32>,
}

/// The first number the kernel gives a filter.
const FIRST_NODE: u32 = 0x800;

impl Table {
    pub fn new(handle: u32, prio: u16, root: bool, divisor: u32) -> Table {
        let buckets = (0..=divisor).map(|_| Vec::new()).collect();
        Table { handle, prio, root, refs: 1, divisor, buckets, ids: BTreeSet::new(), lowest: BTreeMap::new() }
    }
    /// The table as it is shown: `u32_dump`.
    pub fn dump(&self) -> Options {
        Options::new().with("divisor", self.divisor + 1)
    }
    /// The place of the first filter with this number or a later one; buckets are in the order of numbers.
    fn place(bucket: &[Knode], handle: u32) -> usize {
        bucket.partition_point(|n| node(n.handle) < node(handle))
    }
    pub fn find(&self, handle: u32) -> Option<&Knode> {
        let bucket = self.buckets.get(hash(handle) as usize)?;
        bucket.get(Self::place(bucket, handle)).filter(|n| n.handle == handle)
    }
    pub fn find_mut(&mut self, handle: u32) -> Option<&mut Knode> {
        let bucket = self.buckets.get_mut(hash(handle) as usize)?;
        let at = Self::place(bucket, handle);
        bucket.get_mut(at).filter(|n| n.handle == handle)
    }
    /// The number, from 0x800, below which none is free in a handle's bucket.
    pub fn lowest(&self, handle: u32) -> u32 {
        self.lowest.get(&(handle & !0xfff)).copied().unwrap_or(FIRST_NODE)
    }
    /// A handle is given.
    pub fn take_id(&mut self, handle: u32) {
        self.ids.insert(handle);
        if node(handle) == self.lowest(handle) {
            self.lowest.insert(handle & !0xfff, node(handle) + 1);
        }
    }
    /// A handle is free again.
    pub fn free_id(&mut self, handle: u32) {
        self.ids.remove(&handle);
        if node(handle) >= FIRST_NODE && node(handle) < self.lowest(handle) {
            self.lowest.insert(handle & !0xfff, node(handle));
        }
    }
    /// All handles are free again.
    pub fn free_ids(&mut self) {
        self.ids.clear();
        self.lowest.clear();
    }
}

/// All tables of a qdisc: `struct tc_u_common`.
#[derive(Default, Debug)]
pub struct Tables {
    /// Places of tables; those without references are free.
    pub(super) slots: Vec<Table>,
    /// Places in use, youngest table first.
    pub(super) order: Vec<usize>,
    /// Priorities that use them.
    pub(super) users: u32,
    /// Filters in all tables.
    pub(super) knodes: u32,
    /// Numbers of tables taken, as 6.12 keeps them.
    pub(super) ids: BTreeSet<u32>,
    /// The next number to try in 6.12, the last one given in 2.6.35.
    pub(super) next_id: u32,
}

impl Tables {
    pub(super) fn lookup(&self, htid: u32) -> Option<usize> {
        self.order.iter().copied().find(|&t| self.slots[t].handle == htid)
    }
    pub(super) fn add(&mut self, table: Table) -> usize {
        let place = match self.slots.iter().position(|t| t.refs == 0) {
            Some(free) => {
                self.slots[free] = table;
                free
            }
            None => {
                self.slots.push(table);
                self.slots.len() - 1
            }
        };
        self.order.insert(0, place);
        place
    }
    /// Lets go of a table linked to.
    pub(super) fn unlink(&mut self, down: Option<usize>) {
        if let Some(down) = down {
            self.slots[down].refs -= 1;
        }
    }
    /// Takes one filter out.
    pub(super) fn remove(&mut self, table: usize, handle: u32, classes: &mut dyn Classful) {
        let bucket = &mut self.slots[table].buckets[hash(handle) as usize];
        let Some(at) = bucket.iter().position(|n| n.handle == handle) else { return };
        let mut gone = bucket.remove(at);
        self.slots[table].free_id(handle);
        self.knodes -= 1;
        gone.target.unbind(classes);
        self.unlink(gone.down);
    }
    /// Deletes a table with its filters.
    pub(super) fn destroy(&mut self, table: usize, classes: &mut dyn Classful) {
        self.clear(table, classes);
        let handle = self.slots[table].handle;
        self.ids.remove(&id_of(handle));
        self.order.retain(|&t| t != table);
        self.slots[table].refs = 0;
    }
    /// Deletes the filters of a table.
    pub(super) fn clear(&mut self, table: usize, classes: &mut dyn Classful) {
        let nodes: Vec<Knode> = self.slots[table].buckets.iter_mut().flat_map(std::mem::take).collect();
        self.slots[table].free_ids();
        for mut gone in nodes {
            self.knodes -= 1;
            gone.target.unbind(classes);
            self.unlink(gone.down);
        }
    }
    /// Deletes everything.
    pub(super) fn destroy_all(&mut self, classes: &mut dyn Classful) {
        for table in self.order.clone() {
            self.clear(table, classes);
        }
        *self = Tables::default();
    }
}

/// `handle2id` of 6.12: the number of a table that was given one.
pub(super) const fn id_of(handle: u32) -> u32 {
    if handle & 0x8000_0000 != 0 { handle >> 20 & 0x7ff } else { handle }
}
