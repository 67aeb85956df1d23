//! The timer that computes the probabilities: a round of all flows, a batch of them each tick, then a pause of `tupdate`.
//!
//! Follows: linux v6.12 `net/sched/sch_fq_pie.c` `fq_pie_timer`.

use crate::jiffies;

/// When it goes off next, and for which batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Clock {
    /// A tick; `None` once `tupdate` was 0.
    at: Option<u64>,
    /// From 0.
    pub(super) batch: u32,
}

impl Clock {
    /// It goes off at tick `at` first.
    pub(super) fn new(at: u64) -> Clock {
        Clock { at: Some(at), batch: 0 }
    }
    /// Whether it goes off by this tick.
    #[inline]
    pub(super) fn is_due(self, today: u64) -> bool {
        self.at.is_some_and(|at| at <= today)
    }
    /// It has gone off for a batch of so many.
    pub(super) fn step(&mut self, batches: u32, tupdate: u64) {
        let Some(at) = self.at else { return };
        self.batch += 1;
        let mut pause = 0;
        if self.batch >= batches {
            (self.batch, pause) = (0, tupdate);
        }
        self.at = (tupdate > 0).then(|| jiffies::wheel(at, pause));
    }
    /// Leaves out whole rounds, of those that begin by `today` all but the last. It stands before a round, and before it was one: so all pauses are equal.
    pub(super) fn skip(&mut self, batches: u32, tupdate: u64, today: u64) {
        if let Some(at) = self.at.filter(|&at| at <= today) {
            let period = Clock::period(at, batches, tupdate);
            self.at = Some(at + (today - at) / period * period);
        }
    }
    /// From the beginning of a round that came after a pause to that of the next.
    fn period(at: u64, batches: u32, tupdate: u64) -> u64 {
        jiffies::wheel(at + u64::from(batches - 1), tupdate) - at
    }
    /// Whether it goes off on this tick.
    pub(super) fn goes_off_at(self, tick: u64, batches: u32, tupdate: u64) -> bool {
        let mut next = self;
        for _ in self.batch..batches {
            match next.at {
                Some(at) if at < tick => next.step(batches, tupdate),
                at => return at == Some(tick),
            }
        }
        match next.at {
            Some(at) if at < tick => (tick - at) % Clock::period(at, batches, tupdate) < u64::from(batches),
            at => at == Some(tick),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_left_out_as_if_each_had_been() {
        for batches in [1, 2, 5, 32] {
            for tupdate in [1, 4, 62, 63, 100, 700] {
                let mut watched = Clock::new(51);
                let mut went_off = Vec::new();
                while went_off.len() < 300 {
                    went_off.extend(watched.at);
                    watched.step(batches, tupdate);
                }
                let last = went_off[299];
                let told: Vec<u64> =
                    (0..=last).filter(|&t| Clock::new(51).goes_off_at(t, batches, tupdate)).collect();
                assert_eq!(told, went_off, "{batches} {tupdate}");
                // After the first round it may skip.
                let mut skips = Clock::new(51);
                (0..batches).for_each(|_| skips.step(batches, tupdate));
                skips.skip(batches, tupdate, last);
                while skips.is_due(last) {
                    skips.step(batches, tupdate);
                }
                assert_eq!(skips, watched, "{batches} {tupdate}");
            }
        }
        let mut once = Clock::new(51);
        once.step(1, 0);
        assert!(!once.is_due(u64::MAX) && !once.goes_off_at(60, 1, 0));
    }
}
