//! What one class of htb is: its parameters, its buckets, its place among the others.
//!
//! Follows: linux v6.12 net/sched/sch_htb.c `struct htb_class`, net/sched/sch_api.c `qdisc_class_hash_insert`,
//! `qdisc_class_hash_grow`, include/net/sch_generic.h `qdisc_class_hash`.

use super::row::NIL;
use crate::charge::Count;
use crate::cls::BlockId;
use crate::estimator::Estimator;
use crate::node::{Door, Node};
use crate::rates::{RateCfg, RateTable};
use penstock_model::Time;
use std::sync::Arc;

/// `TC_HTB_MAXDEPTH`: levels of a tree; leaves are at 0, the outermost inner classes at 7.
pub(super) const MAXDEPTH: usize = 8;
/// `TC_HTB_NUMPRIO`.
pub(super) const NUMPRIO: usize = 8;

/// `enum htb_cmode`: what a class may do now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mode {
    /// Above its ceiling.
    CantSend,
    /// Above its rate, below its ceiling.
    MayBorrow,
    /// Below its rate.
    CanSend,
}

/// What a packet costs at a rate, in the profile's unit of time.
#[derive(Clone, Debug)]
pub(super) enum Cost {
    /// 6.12: ns.
    Ns(RateCfg),
    /// 2.6.35: ticks of 64 ns.
    Ticks(Arc<RateTable>),
}

impl Cost {
    /// What `len` bytes cost.
    #[inline]
    pub(super) fn of(&self, len: u32) -> i64 {
        match self {
            Cost::Ns(rate) => rate.l2t_ns(len) as i64,
            Cost::Ticks(table) => i64::from(table.l2t(len)),
        }
    }
    /// Bytes per second.
    pub(super) fn rate_bytes(&self) -> u64 {
        match self {
            Cost::Ns(rate) => rate.rate_bytes,
            Cost::Ticks(table) => u64::from(table.rate_bytes),
        }
    }
}

/// `struct htb_prio`: one priority's tree, with where the round robin stands in it.
#[derive(Clone, Copy)]
pub(super) struct Round {
    /// The tree.
    pub(super) root: u32,
    /// Whose turn it is.
    pub(super) ptr: u32,
    /// Id of the class whose turn it was when it left; 0 for none.
    pub(super) last_ptr_id: u32,
}

impl Round {
    /// Nobody.
    pub(super) const EMPTY: Round = Round { root: NIL, ptr: NIL, last_ptr_id: 0 };
}

/// One class.
pub(super) struct Class {
    // Parameters
    pub(super) classid: u32,
    /// Index of the parent; [`NIL`] at the root.
    pub(super) parent: u32,
    pub(super) children: u32,
    pub(super) level: usize,
    pub(super) prio: usize,
    pub(super) quantum: i32,
    pub(super) rate: Cost,
    pub(super) ceil: Cost,
    /// Depth of the bucket of `rate`, in the profile's unit of time.
    pub(super) buffer: i64,
    /// Depth of the bucket of `ceil`.
    pub(super) cbuffer: i64,
    // Variables
    pub(super) tokens: i64,
    pub(super) ctokens: i64,
    /// When the buckets were last filled.
    pub(super) t_c: i64,
    pub(super) mode: Mode,
    /// Priorities it is active in, one bit each.
    pub(super) activity: u32,
    /// What each level's round still lets it send, bytes; leaves only.
    pub(super) deficit: [i32; MAXDEPTH],
    /// The qdisc in it; leaves only.
    pub(super) leaf: Option<Node>,
    /// Children that want to borrow, by priority; inner classes only.
    pub(super) feeds: Option<Box<[Round; NUMPRIO]>>,
    // Counters
    pub(super) bytes: u64,
    pub(super) packets: u64,
    pub(super) lends: u32,
    pub(super) borrows: u32,
    /// For the account: the doors of the qdiscs that stood in it before, and what classes below it that are gone had sent and
    /// borrowed.
    pub(super) doors: Door,
    pub(super) gone: Count,
    pub(super) gone_borrows: u32,
    pub(super) drops: u32,
    pub(super) overlimits: u32,
    pub(super) estimator: Option<Box<Estimator>>,
    // Tree
    pub(super) block: BlockId,
    /// Filters that point at it.
    pub(super) filter_cnt: u32,
    /// Next in its hash bucket.
    hash_next: u32,
}

impl Class {
    /// A leaf without parameters, able to send.
    pub(super) fn new(classid: u32, parent: u32, cost: (Cost, Cost), leaf: Node, block: BlockId) -> Class {
        Class {
            classid,
            parent,
            children: 0,
            level: 0,
            prio: 0,
            quantum: 0,
            rate: cost.0,
            ceil: cost.1,
            buffer: 0,
            cbuffer: 0,
            tokens: 0,
            ctokens: 0,
            t_c: 0,
            mode: Mode::CanSend,
            activity: 0,
            deficit: [0; MAXDEPTH],
            leaf: Some(leaf),
            feeds: None,
            bytes: 0,
            packets: 0,
            lends: 0,
            borrows: 0,
            doors: Door::default(),
            gone: Count::default(),
            gone_borrows: 0,
            drops: 0,
            overlimits: 0,
            estimator: None,
            block,
            filter_cnt: 0,
            hash_next: NIL,
        }
    }
    /// What went through the doors of the qdiscs that stand or stood in it.
    pub(super) fn through(&self) -> Door {
        let mut all = self.doors;
        self.leaf.iter().for_each(|leaf| all.add(&leaf.door));
        all
    }
    /// A packet of `len` bytes, which counts as so many `packets`, counts; before that the estimator has the looks that are due.
    #[inline]
    pub(super) fn count(&mut self, (len, packets): (u32, u64), now: Time) {
        if let Some(estimator) = &mut self.estimator
            && estimator.is_due(now)
        {
            estimator.advance(now, self.bytes, self.packets);
        }
        self.bytes += u64::from(len);
        self.packets = self.packets.wrapping_add(packets);
    }
    /// `htb_class_mode`: its mode `diff` after the buckets were last filled, and how long until that changes.
    #[inline]
    pub(super) fn mode_after(&self, diff: i64) -> (Mode, i64) {
        let toks = self.ctokens + diff;
        if toks < 0 {
            return (Mode::CantSend, -toks);
        }
        let toks = self.tokens + diff;
        if toks >= 0 { (Mode::CanSend, diff) } else { (Mode::MayBorrow, -toks) }
    }
    /// `htb_accnt_tokens`.
    #[inline]
    pub(super) fn account(&mut self, len: u32, diff: i64, mbuffer: i64) {
        self.tokens = charged((diff + self.tokens).min(self.buffer) - self.rate.of(len), mbuffer);
    }
    /// `htb_accnt_ctokens`.
    #[inline]
    pub(super) fn account_ceil(&mut self, len: u32, diff: i64, mbuffer: i64) {
        self.ctokens = charged((diff + self.ctokens).min(self.cbuffer) - self.ceil.of(len), mbuffer);
    }
}

/// A debt is bounded: nobody waits longer than `mbuffer`.
#[inline]
fn charged(toks: i64, mbuffer: i64) -> i64 {
    if toks <= -mbuffer { 1 - mbuffer } else { toks }
}

/// All classes: a slab, and the kernel's hash by id, whose order is the order of `tc class show`.
pub(super) struct Classes {
    slab: Vec<Option<Class>>,
    free: Vec<u32>,
    heads: Vec<u32>,
    count: usize,
}

impl Default for Classes {
    fn default() -> Classes {
        Classes { slab: Vec::new(), free: Vec::new(), heads: vec![NIL; 4], count: 0 }
    }
}

impl std::ops::Index<u32> for Classes {
    type Output = Class;
    #[inline]
    fn index(&self, class: u32) -> &Class {
        self.slab[class as usize].as_ref().expect("the class is there")
    }
}
impl std::ops::IndexMut<u32> for Classes {
    #[inline]
    fn index_mut(&mut self, class: u32) -> &mut Class {
        self.slab[class as usize].as_mut().expect("the class is there")
    }
}

impl Classes {
    /// `qdisc_class_hash`.
    #[inline]
    fn bucket(&self, classid: u32) -> usize {
        let id = classid ^ classid >> 8;
        (id ^ id >> 4) as usize & (self.heads.len() - 1)
    }
    /// `htb_find`; id 0 is nobody's.
    #[inline]
    pub(super) fn find(&self, classid: u32) -> Option<u32> {
        if classid == 0 {
            return None;
        }
        let mut class = self.heads[self.bucket(classid)];
        while class != NIL {
            let c = &self[class];
            if c.classid == classid {
                return Some(class);
            }
            class = c.hash_next;
        }
        None
    }
    /// Takes a new class in, before the others of its bucket, and answers its index.
    pub(super) fn insert(&mut self, class: Class) -> u32 {
        let index = self.free.pop().unwrap_or(self.slab.len() as u32);
        if index as usize == self.slab.len() {
            self.slab.push(None);
        }
        let bucket = self.bucket(class.classid);
        let hash_next = std::mem::replace(&mut self.heads[bucket], index);
        self.slab[index as usize] = Some(Class { hash_next, ..class });
        self.count += 1;
        index
    }
    /// Takes a class out.
    pub(super) fn remove(&mut self, index: u32) -> Class {
        let class = self.slab[index as usize].take().expect("the class is there");
        let bucket = self.bucket(class.classid);
        if self.heads[bucket] == index {
            self.heads[bucket] = class.hash_next;
        } else {
            let mut before = self.heads[bucket];
            while self[before].hash_next != index {
                before = self[before].hash_next;
            }
            self[before].hash_next = class.hash_next;
        }
        self.free.push(index);
        self.count -= 1;
        class
    }
    /// `qdisc_class_hash_grow`: twice the buckets once they are three quarters full. The classes of a bucket change
    /// their order by it, as they do in the kernel.
    pub(super) fn grow(&mut self) {
        if self.count * 4 <= self.heads.len() * 3 {
            return;
        }
        let wider = vec![NIL; self.heads.len() * 2];
        for head in std::mem::replace(&mut self.heads, wider) {
            let mut class = head;
            while class != NIL {
                let bucket = self.bucket(self[class].classid);
                let next = std::mem::replace(&mut self.heads[bucket], class);
                class = std::mem::replace(&mut self[class].hash_next, next);
            }
        }
    }
    /// Indices in the order the kernel walks them.
    pub(super) fn walk(&self) -> impl Iterator<Item = u32> + '_ {
        self.heads.iter().flat_map(move |&head| {
            std::iter::successors((head != NIL).then_some(head), move |&class| {
                let next = self[class].hash_next;
                (next != NIL).then_some(next)
            })
        })
    }
}
