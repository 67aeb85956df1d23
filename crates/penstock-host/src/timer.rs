//! When a kernel timer really fires: on a tick of HZ, and since 4.8 at the granularity of its wheel level.
//!
//! Follows: linux v6.12 `kernel/time/timer.c` `calc_wheel_index`, `calc_index`; v2.6.35 `internal_add_timer`
//! (every timer fires at the tick it names).
//! Differs: all machines count their ticks from the start of the run.

use crate::Timer;
use penstock_model::{Kernel, Time};
use std::collections::BTreeSet;

/// The timers that are set. When the first goes off is asked after every packet, and kept.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Timers {
    // With each packet, in this order: what lies together comes into the cache together.
    first: Option<Time>,
    // The others.
    set: BTreeSet<(Time, Timer)>,
}

impl Timers {
    /// When the first goes off.
    #[inline]
    pub(crate) fn first(&self) -> Option<Time> {
        self.first
    }
    pub(crate) fn insert(&mut self, at: Time, timer: Timer) {
        self.set.insert((at, timer));
        self.look();
    }
    pub(crate) fn remove(&mut self, at: Time, timer: Timer) {
        self.set.remove(&(at, timer));
        self.look();
    }
    /// Whether this one is set. Few are.
    pub(crate) fn has(&self, timer: Timer) -> bool {
        self.set.iter().any(|&(_, t)| t == timer)
    }
    /// Takes the first that is due.
    pub(crate) fn pop_due(&mut self, now: Time) -> Option<Timer> {
        if self.first? > now {
            return None;
        }
        let due = self.set.pop_first();
        self.look();
        due.map(|(_, timer)| timer)
    }
    pub(crate) fn retain(&mut self, keep: impl Fn(Timer) -> bool) {
        self.set.retain(|&(_, timer)| keep(timer));
        self.look();
    }
    fn look(&mut self) {
        self.first = self.set.first().map(|&(at, _)| at);
    }
}

/// The tick at `now`: jiffies since the start of the run.
#[inline]
pub(crate) fn jiffies(kernel: Kernel, now: Time) -> i64 {
    ticks(kernel.hz(), now)
}

/// The same of a machine whose clock ticks `hz` times a second.
#[inline]
pub(crate) fn ticks(hz: u32, now: Time) -> i64 {
    now.as_ns().div_euclid(1_000_000_000 / i64::from(hz))
}

/// When a timer set at `now` for the tick `expires` fires.
pub(crate) fn fires(kernel: Kernel, now: Time, expires: i64) -> Time {
    fires_at(kernel, kernel.hz(), now, expires)
}

/// The same of a machine whose clock ticks `hz` times a second.
pub(crate) fn fires_at(kernel: Kernel, hz: u32, now: Time, expires: i64) -> Time {
    let clk = ticks(hz, now);
    let expires = expires.max(clk + 1);
    let tick = match kernel {
        Kernel::V2_6_35 => expires,
        Kernel::V6_12 | Kernel::V7_2 => {
            // Level n begins at 63 << 3(n-1) ticks from now and has steps of 8^n ticks; expiry is rounded up
            // past the step it falls into, so that no timer is early.
            let shift = 3 * level(kernel, hz, now, expires);
            ((expires >> shift) + 1) << shift
        }
    };
    Time::from_ns(tick.saturating_mul(1_000_000_000 / i64::from(hz)))
}

/// The level of the wheel that a timer set at `now` for the tick `expires` stands on; 0 where there is no such wheel.
pub(crate) fn level(kernel: Kernel, hz: u32, now: Time, expires: i64) -> u32 {
    let clk = ticks(hz, now);
    let delta = expires.max(clk + 1) - clk;
    match kernel {
        Kernel::V2_6_35 => 0,
        Kernel::V6_12 | Kernel::V7_2 => (1..9).take_while(|n| delta >= 63 << (3 * (n - 1))).count() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_timer_is_known() {
        let mut timers = Timers::default();
        let at = Time::from_ns;
        timers.insert(at(5), Timer::Neigh(1));
        timers.insert(at(3), Timer::Cardless(2));
        timers.insert(at(4), Timer::Fragments(3));
        assert_eq!((timers.first(), timers.pop_due(at(2))), (Some(at(3)), None));
        timers.retain(|timer| timer != Timer::Cardless(2));
        assert_eq!(timers.first(), Some(at(4)));
        assert_eq!(timers.pop_due(at(9)), Some(Timer::Fragments(3)));
        timers.remove(at(5), Timer::Neigh(1));
        assert_eq!((timers.first(), timers.pop_due(at(9))), (None, None));
    }

    #[test]
    fn a_second_is_a_second_or_a_step_more() {
        let now = Time::from_ns(10_500_000);
        assert_eq!(jiffies(Kernel::V6_12, now), 2);
        assert_eq!(fires(Kernel::V2_6_35, now, 2 + 250).as_ns(), 252 * 4_000_000);
        // 252 ticks lie in level 1, steps of 8: (252 >> 3) + 1 = 32.
        assert_eq!(fires(Kernel::V6_12, now, 2 + 250).as_ns(), 256 * 4_000_000);
        assert_eq!(fires(Kernel::V6_12, now, 3).as_ns(), 4 * 4_000_000);
    }
}
