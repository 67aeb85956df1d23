//! In which order filters let go of what they held, and which of them the kernel frees later than others.
//!
//! Follows: linux v7.2 `net/sched/cls_api.c` `tcf_queue_work`, `net/sched/cls_flower.c` `fl_mask_put`, `fl_mask_free`, `lib/rhashtable.c`
//! `rhashtable_free_and_destroy`, `kernel/irq_work.c` `irq_work_sync`.
//!
//! One worker frees filters, in the order in which they went. A mask of flower is freed before the last of its filters. Its table of filters is to shrink
//! when one of them goes, which 7.2 has done by an interrupt's work: where the machine has none for that, it is done by the next tick. Until then whoever
//! frees the table waits, and so do all behind it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// What the filters of a machine share about it.
#[derive(Debug, Default)]
pub(super) struct Going {
    /// How many have let go so far.
    order: AtomicU32,
    /// Where in that order the first mask stands that is waited for; 0: none.
    bar: AtomicU32,
    /// How many ticks there were.
    ticks: AtomicU32,
}

impl Going {
    /// One more lets go: its place in the order, from 1.
    pub(super) fn next(&self) -> u32 {
        self.order.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }
    /// Where the first mask stands that went since this was last asked and that is waited for.
    pub(super) fn take_bar(&self) -> Option<u32> {
        Some(self.bar.swap(0, Ordering::Relaxed)).filter(|&bar| bar > 0)
    }
    /// The clock ticks.
    pub(super) fn tick(&self) {
        self.ticks.fetch_add(1, Ordering::Relaxed);
    }
}

/// The table of filters behind one of flower's masks.
#[derive(Debug)]
pub(crate) struct Shrinking {
    going: Arc<Going>,
    /// Before which tick it was first to shrink: after that one it is as small as it gets.
    first: Option<u32>,
}

impl Shrinking {
    pub(super) fn new(going: &Arc<Going>) -> Shrinking {
        Shrinking { going: Arc::clone(going), first: None }
    }
    /// A filter is taken out of it.
    pub(crate) fn loses_one(&mut self) {
        let now = self.going.ticks.load(Ordering::Relaxed);
        self.first.get_or_insert(now);
    }
}

impl Drop for Shrinking {
    fn drop(&mut self) {
        if self.first == Some(self.going.ticks.load(Ordering::Relaxed)) {
            let place = self.going.next();
            let _ = self.going.bar.compare_exchange(0, place, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_mask_that_is_to_shrink_bars_the_way_until_the_tick_behind_it() {
        let going = Arc::new(Going::default());
        let (untouched, mut early, mut late) =
            (Shrinking::new(&going), Shrinking::new(&going), Shrinking::new(&going));
        drop(untouched);
        assert_eq!((going.take_bar(), going.next()), (None, 1));
        early.loses_one();
        going.tick();
        // Its table was made small by the tick.
        early.loses_one();
        drop(early);
        assert_eq!((going.take_bar(), going.next()), (None, 2));
        late.loses_one();
        drop(late);
        assert_eq!((going.next(), going.take_bar(), going.take_bar()), (4, Some(3), None));
    }
}
