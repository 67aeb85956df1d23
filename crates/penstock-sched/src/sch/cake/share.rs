//! What the queues of a `cake_mq` know of each other: how many of them are active, each of which then has its part of the rate.
//!
//! Follows: linux v7.2 `net/sched/sch_cake.c` `cake_dequeue` (`is_shared`), `struct cake_sched_data` "mq sync state".

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering::Relaxed};

/// How long a queue goes by what it has seen of the others, ns (`sync_time`).
const SYNC_NS: i64 = 200_000;

/// What a queue lets the others see.
#[derive(Default)]
struct Seen {
    /// Packets.
    qlen: AtomicU32,
    /// When a packet left it last (`last_active`), ns.
    active: AtomicI64,
}

/// One queue among those of a `cake_mq`.
pub struct Seat {
    all: Arc<[Seen]>,
    me: usize,
    last_checked: i64,
    /// How many it has seen active, itself included; 0 before it has looked.
    pub(super) active_queues: u32,
}

/// A place for each of `count` queues.
pub fn seats(count: usize) -> impl Iterator<Item = Seat> {
    let all: Arc<[Seen]> = (0..count).map(|_| Seen::default()).collect();
    (0..count).map(move |me| Seat { all: Arc::clone(&all), me, last_checked: 0, active_queues: 0 })
}

impl Seat {
    /// So many packets wait here.
    #[inline]
    pub(super) fn holds(&self, qlen: u32) {
        self.all[self.me].qlen.store(qlen, Relaxed);
    }
    /// A packet leaves.
    #[inline]
    pub(super) fn sends(&self, now: i64) {
        self.all[self.me].active.store(now, Relaxed);
    }
    /// Looks at the others, where the last look is long enough ago: how many are active.
    #[inline]
    pub(super) fn look(&mut self, now: i64) -> Option<u32> {
        if now.wrapping_sub(self.last_checked) < SYNC_NS {
            return None;
        }
        let others = self.all.iter().enumerate().filter(|(n, _)| *n != self.me);
        let active =
            |seen: &Seen| seen.qlen.load(Relaxed) > 0 || seen.active.load(Relaxed) > self.last_checked;
        let active = 1 + others.filter(|(_, seen)| active(seen)).count() as u32;
        (self.last_checked, self.active_queues) = (now, active);
        Some(active)
    }
}
