//! The kernel's timers of a spanning tree: on which tick one goes off, and whose turn is first.
//!
//! Follows: linux v6.12 `kernel/time/timer.c` `__mod_timer`, `enqueue_timer`, `__run_timers`, `round_jiffies`.

use crate::timer::{fires_at, level, ticks};
use penstock_model::{Kernel, Span, Time};
use std::cell::Cell;
use std::cmp::Reverse;

/// A machine's clock: how its ticks are counted, and now.
#[derive(Clone, Copy)]
pub(crate) struct Clock<'a> {
    pub(crate) kernel: Kernel,
    pub(crate) hz: u32,
    pub(crate) now: Time,
    /// Timers of trees that were set on this machine so far.
    pub(crate) set: &'a Cell<u64>,
}

impl Clock<'_> {
    pub(super) fn jiffies(self) -> i64 {
        ticks(self.hz, self.now)
    }
    /// `clock_t_to_jiffies`, of hundredths of a second.
    pub(crate) fn of(self, span: Span) -> i64 {
        span.as_ns() / (1_000_000_000 / i64::from(self.hz))
    }
    /// `mod_timer`, for so many ticks from now.
    pub(super) fn arm(self, timer: &mut Timer, jiffies: i64) {
        self.arm_at(timer, self.jiffies() + jiffies);
    }
    fn arm_at(self, timer: &mut Timer, expires: i64) {
        let at = fires_at(self.kernel, self.hz, self.now, expires);
        let level = level(self.kernel, self.hz, self.now, expires);
        // One that is set for the same tick, or stays in its place of the wheel, is left where it is (`__mod_timer`).
        match timer {
            Some(due) if due.expires == expires => {}
            Some(due) if (due.at, due.level) == (at, level) => due.expires = expires,
            _ => {
                self.set.set(self.set.get() + 1);
                *timer = Some(Due { at, expires, level, set: self.set.get() });
            }
        }
    }
    /// The same at a whole second, where that is not past (`round_jiffies`).
    pub(super) fn arm_rounded(self, timer: &mut Timer, jiffies: i64) {
        let (hz, j) = (i64::from(self.hz), self.jiffies() + jiffies);
        let rest = j.rem_euclid(hz);
        let rounded = if rest < hz / 4 { j - rest } else { j - rest + hz };
        self.arm_at(timer, if rounded > self.jiffies() { rounded } else { j });
    }
    /// What is left of a timer, hundredths of a second (`br_timer_value`).
    pub(crate) fn left(self, timer: Timer) -> i64 {
        timer.map_or(0, |due| (due.expires - self.jiffies()).max(0) * 100 / i64::from(self.hz))
    }
}

/// A timer that is set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Due {
    /// When it goes off.
    pub(crate) at: Time,
    /// The tick it is set for.
    pub(crate) expires: i64,
    level: u32,
    set: u64,
}

impl Due {
    /// Which of those that are due goes off first: of the wheel's coarsest level, and there the one that was set last (`__run_timers`, `enqueue_timer`).
    pub(crate) fn turn(self) -> (Time, Reverse<u32>, Reverse<u64>) {
        (self.at, Reverse(self.level), Reverse(self.set))
    }
}

/// A timer, where it is set.
pub(crate) type Timer = Option<Due>;
