//! A stack's clocks: microseconds, jiffies and timestamp values, and when its timers really fire.
//!
//! Follows: linux v6.12 kernel/time/timer.c `calc_wheel_index`, include/net/tcp.h `tcp_time_stamp_ts`;
//! v2.6.35 `tcp_time_stamp` (jiffies).
//! Differs: Windows XP's clock is taken as ticks of 10 ms that start nowhere in particular.

use crate::config::Stack;
use penstock_model::{Kernel, Span, Time};

/// Jiffies at the start of the run, as Linux starts: five minutes before the 32-bit counter wraps.
const INITIAL_JIFFIES_S: u64 = 300;

/// The present instant in every unit the stack uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    // Parameters
    jiffy_ns: i64,
    /// Timers sit on the hierarchical wheel of 4.8 and later, whose buckets grow coarser with distance.
    wheel: bool,
    /// Timestamps count milliseconds (6.12), else jiffies.
    ts_ms: bool,
    ts_offset: u32,
    // Variables
    pub now: Time,
    /// Microseconds since the start of the run.
    pub us: u64,
    /// Timer ticks since the start of the run.
    pub jiffies: u64,
}

impl Clock {
    pub fn new(stack: Stack, hz: u32, isn: u32, now: Time) -> Clock {
        let jiffy_ns = 1_000_000_000 / i64::from(hz.clamp(1, 1_000_000));
        let today = stack.is_linux_6_12();
        let hz = (1_000_000_000 / jiffy_ns) as u64;
        // 6.12 gives each connection an offset of its own; 2.6.35 sends jiffies as they are.
        let ts_offset = match stack {
            Stack::Linux(Kernel::V2_6_35) => ((INITIAL_JIFFIES_S * hz) as u32).wrapping_neg(),
            _ => isn.wrapping_mul(0x9e37_79b1) | 1,
        };
        let mut clock =
            Clock { jiffy_ns, wheel: today, ts_ms: today, ts_offset, now: Time::MAX, us: 0, jiffies: 0 };
        clock.set(now);
        clock
    }

    /// Timestamps are those of the host's clock as it is.
    //= linux v6.12 net/ipv4/tcp_ipv4.c tcp_v4_init_ts_off: of `tcp_timestamps` 1 alone
    pub fn without_offset(&mut self) {
        self.ts_offset = 0;
    }
    /// Moves to `now`.
    #[inline]
    pub fn set(&mut self, now: Time) {
        if now != self.now {
            self.now = now;
            let ns = now.as_ns().max(0);
            self.us = ns as u64 / 1_000;
            self.jiffies = (ns / self.jiffy_ns) as u64;
        }
    }

    /// The timestamp value of an instant given in microseconds.
    #[inline]
    pub fn ts_of(&self, us: u64) -> u32 {
        let ticks = if self.ts_ms { us / 1_000 } else { us * 1_000 / self.jiffy_ns as u64 };
        (ticks as u32).wrapping_add(self.ts_offset)
    }
    /// The timestamp value of now.
    #[inline]
    pub fn tsval(&self) -> u32 {
        let ticks = if self.ts_ms { self.us / 1_000 } else { self.jiffies };
        (ticks as u32).wrapping_add(self.ts_offset)
    }
    /// A timestamp value of ours without its offset.
    #[inline]
    pub fn ticks_of(&self, ts: u32) -> u32 {
        ts.wrapping_sub(self.ts_offset)
    }
    /// Microseconds one tick of the timestamp clock lasts.
    pub fn ts_tick_us(&self) -> u32 {
        if self.ts_ms { 1_000 } else { self.jiffy_us() }
    }
    /// Microseconds a jiffy lasts.
    pub fn jiffy_us(&self) -> u32 {
        (self.jiffy_ns / 1_000) as u32
    }
    /// Timer interrupts per second.
    pub fn hz(&self) -> u32 {
        (1_000_000_000 / self.jiffy_ns) as u32
    }
    /// Jiffies that began since an instant given in microseconds.
    pub fn jiffies_since(&self, us: u64) -> u32 {
        self.jiffies.saturating_sub(us * 1_000 / self.jiffy_ns as u64).min(u64::from(u32::MAX)) as u32
    }
    /// Whole jiffies that cover `us` microseconds (`usecs_to_jiffies`).
    #[inline]
    pub fn us_to_jiffies(&self, us: u64) -> u32 {
        (us * 1_000).div_ceil(self.jiffy_ns as u64).min(u64::from(u32::MAX)) as u32
    }
    /// Jiffies in a span, rounded up.
    pub fn span_to_jiffies(&self, span: Span) -> u32 {
        self.us_to_jiffies(span.as_ns().max(0) as u64 / 1_000)
    }
    /// A number of jiffies as a span.
    pub fn jiffies_to_span(&self, jiffies: u32) -> Span {
        Span::from_ns(self.jiffy_ns * i64::from(jiffies))
    }
    /// When a timer set for the jiffy `expires` is run.
    //= linux v6.12 kernel/time/timer.c calc_wheel_index, calc_index
    pub fn fires(&self, expires: u64) -> Time {
        let mut at = expires;
        if self.wheel {
            let delta = expires.saturating_sub(self.jiffies);
            let mut level = 0;
            while level < 8 && delta >= 63 << (3 * level) {
                level += 1;
            }
            at = ((expires >> (3 * level)) + 1) << (3 * level);
        }
        Time::from_ns((at.max(self.jiffies + 1) as i64).saturating_mul(self.jiffy_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clock(kernel: Kernel, ms: i64) -> Clock {
        Clock::new(Stack::Linux(kernel), 250, 1, Time::ZERO + Span::from_ms(ms))
    }

    #[test]
    fn timers_fire_on_ticks() {
        // 2.6.35: at the tick it is set for, so up to a tick early.
        let c = clock(Kernel::V2_6_35, 10);
        assert_eq!(c.jiffies, 2);
        assert_eq!(c.fires(c.jiffies + 10), Time::from_ns(48_000_000));
        // 6.12: one tick later, and from 63 ticks on in steps of 8.
        let c = clock(Kernel::V6_12, 10);
        assert_eq!(c.fires(c.jiffies + 10), Time::from_ns(52_000_000));
        assert_eq!(c.fires(c.jiffies + 250), Time::from_ns(256 * 4_000_000));
    }

    #[test]
    fn timestamps_count_milliseconds_or_jiffies() {
        let c = clock(Kernel::V6_12, 1_000);
        assert_eq!(c.tsval().wrapping_sub(c.ts_of(0)), 1_000);
        let c = clock(Kernel::V2_6_35, 1_000);
        assert_eq!(c.tsval().wrapping_sub(c.ts_of(0)), 250);
        assert_eq!(c.tsval(), (-75_000i32 + 250) as u32);
    }
}
