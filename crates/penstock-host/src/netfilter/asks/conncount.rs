//! Connections counted by an address (`connlimit`).
//!
//! An address's list has the connections that were counted and may be gone: each is looked for again when another is counted, once a tick at most.
//!
//! Follows: linux 6.12.y `net/netfilter/nf_conncount.c` `count_tree`, `insert_tree`, `__nf_conncount_add`, `__nf_conncount_gc_list`.
//! Differs: an address of whose connections none is left is kept until the rule goes, where the kernel takes it out when another comes into the
//! same of its 256 trees.

use super::super::conntrack::{Tracking, Tuple, status};
use super::super::eval::Way;
use super::super::places::{Key, Places};
use penstock_packet::Skb;

/// So many that are gone are thrown out at once (`CONNCOUNT_GC_MAX_COLLECT`).
const MOST_AT_ONCE: usize = 64;

/// Whose connections are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Of {
    pub addr: u128,
    pub zone: u16,
}

impl Key for Of {
    fn words(&self) -> [u64; 5] {
        [self.addr as u64, (self.addr >> 64) as u64, self.zone.into(), 0, 0]
    }
}

/// All connections, where they are not told apart.
const HERE: Of = Of { addr: 0, zone: 0 };

/// `struct nf_conncount_list`.
#[derive(Clone, PartialEq, Debug)]
struct List {
    tuples: Vec<Tuple>,
    /// The tick at which they were last looked for, and how many there were then.
    looked: (i64, usize),
}

/// All that one rule has counted.
#[derive(Clone, PartialEq, Debug, Default)]
pub(in crate::netfilter) struct Conncount(Places<Of, List>);

/// What became of a connection that was to be counted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Added {
    /// It is counted.
    Yes,
    /// It is assured: it was counted before, or never will be.
    Assured,
}

/// Whether a connection that was counted is gone or over.
fn is_gone(tuple: &Tuple, tracking: &mut Tracking, now: i64) -> bool {
    let found = tracking.find(tuple, now).map(|found| found.0);
    tracking.get(found).is_none_or(|c| c.is_closed())
}

impl List {
    fn clean(&mut self, tracking: &mut Tracking, now: i64) {
        if self.looked.0 == now {
            return;
        }
        let mut gone = 0;
        self.tuples.retain(|tuple| {
            let keep = gone > MOST_AT_ONCE || !is_gone(tuple, tracking, now);
            gone += usize::from(!keep);
            keep
        });
        self.looked = (now, self.tuples.len());
    }

    fn add(&mut self, tuple: Tuple, id: Option<u32>, tracking: &mut Tracking, now: i64) -> Added {
        let confirmed = tracking.get(id).map(|c| c.status).filter(|s| s & status::CONFIRMED != 0);
        if confirmed.is_some_and(|s| s & status::ASSURED != 0) {
            return Added::Assured;
        }
        let fresh =
            self.looked.0 == now && self.tuples.len() - self.looked.1.min(self.tuples.len()) < MOST_AT_ONCE;
        if confirmed.is_some() || !fresh {
            let (mut gone, mut counted) = (0, false);
            self.tuples.retain(|other| {
                if counted || gone > MOST_AT_ONCE {
                    return true;
                }
                let found = tracking.find(other, now).map(|found| found.0);
                // The packet's own stays, even where it is over.
                counted = found.is_some() && *other == tuple;
                let keep = counted || tracking.get(found).is_some_and(|c| !c.is_closed());
                gone += usize::from(!keep);
                keep
            });
            if counted {
                return Added::Yes;
            }
            self.looked = (now, self.tuples.len());
        }
        self.tuples.push(tuple);
        Added::Yes
    }
}

/// A packet's connection: its tuple, and which it is where it is known.
fn connection(skb: &Skb, tracking: &mut Tracking, now: i64) -> Option<(Tuple, Option<u32>)> {
    let known = skb.rare().ct.and_then(|known| known.id).filter(|&id| tracking.get(Some(id)).is_some());
    if let Some((tuple, id)) = known.and_then(|id| Some((tracking.get(Some(id))?.tuples[0], id))) {
        return Some((tuple, Some(id)));
    }
    let tuple = Tuple::of(skb)?;
    Some((tuple, tracking.find(&tuple, now).map(|found| found.0)))
}

impl Conncount {
    /// Counts a packet's connection; how many its address has now. 0: that cannot be told.
    pub(super) fn count(&mut self, of: Of, skb: &Skb, way: &mut Way<'_>) -> u32 {
        let tracking = &mut *way.tracking;
        let now = tracking.ticks(way.now);
        let Some((tuple, id)) = connection(skb, tracking, now) else { return 0 };
        let Some(list) = self.0.get_mut(&of) else {
            self.0.insert(of, List { tuples: vec![tuple], looked: (now, 0) });
            return 1;
        };
        let empty = list.tuples.is_empty();
        if list.add(tuple, id, tracking, now) == Added::Assured && !empty {
            list.clean(tracking, now);
        }
        list.tuples.len() as u32
    }
    /// Counts a packet's connection among all that come here, whatever their addresses (`nft_connlimit_do_eval`). `None`: that cannot be told.
    pub(in crate::netfilter) fn count_here(&mut self, skb: &Skb, way: &mut Way<'_>) -> Option<u32> {
        let tracking = &mut *way.tracking;
        let now = tracking.ticks(way.now);
        let (tuple, id) = connection(skb, tracking, now)?;
        if self.0.get(&HERE).is_none() {
            self.0.insert(HERE, List { tuples: Vec::new(), looked: (now, 0) });
        }
        let list = self.0.get_mut(&HERE)?;
        if list.add(tuple, id, tracking, now) == Added::Assured {
            list.clean(tracking, now);
        }
        Some(list.tuples.len() as u32)
    }
    /// Whether none of those is left (`nf_conncount_gc_list`).
    pub(in crate::netfilter) fn is_over(&mut self, way: &mut Way<'_>) -> bool {
        let now = way.tracking.ticks(way.now);
        let Some(list) = self.0.get_mut(&HERE) else { return false };
        list.clean(way.tracking, now);
        list.tuples.is_empty()
    }
}
