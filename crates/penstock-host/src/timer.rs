//! When a kernel timer really fires: on a tick of HZ, and since 4.8 at the granularity of its wheel level.
//!
//! Follows: linux v6.12 `kernel/time/timer.c` `calc_wheel_index`, `calc_index`; v2.6.35 `internal_add_timer`
//! (every timer fires at the tick it names).
//! Differs: all machines count their ticks from the start of the run.

use penstock_model::{Kernel, Time};

/// The tick at `now`: jiffies since the start of the run.
pub(crate) fn jiffies(kernel: Kernel, now: Time) -> i64 {
    now.as_ns().div_euclid(1_000_000_000 / i64::from(kernel.hz()))
}

/// When a timer set at `now` for the tick `expires` fires.
pub(crate) fn fires(kernel: Kernel, now: Time, expires: i64) -> Time {
    let clk = jiffies(kernel, now);
    let expires = expires.max(clk + 1);
    let tick = match kernel {
        Kernel::V2_6_35 => expires,
        Kernel::V6_12 => {
            // Level n begins at 63 << 3(n-1) ticks from now and has steps of 8^n ticks; expiry is rounded up
            // past the step it falls into, so that no timer is early.
            let delta = expires - clk;
            let level = (1..9).take_while(|n| delta >= 63 << (3 * (n - 1))).count() as i64;
            let shift = 3 * level;
            ((expires >> shift) + 1) << shift
        }
    };
    Time::from_ns(tick.saturating_mul(1_000_000_000 / i64::from(kernel.hz())))
}

#[cfg(test)]
mod tests {
    use super::*;

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
