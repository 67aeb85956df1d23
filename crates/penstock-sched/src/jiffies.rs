//! The kernel's clock ticks, in which some kinds keep the times they are given.
//!
//! Follows: linux v6.12 `include/linux/jiffies.h`, `kernel/time/time.c` with HZ dividing a million.

/// `MAX_JIFFY_OFFSET` of a 64-bit kernel.
const MAX_OFFSET: u64 = (i64::MAX as u64 >> 1) - 1;

/// `usecs_to_jiffies`: rounded up.
pub fn from_us(us: u32, hz: u32) -> u64 {
    if us > to_us(MAX_OFFSET, hz) {
        return MAX_OFFSET;
    }
    u64::from(us).div_ceil(1_000_000 / u64::from(hz))
}
/// `jiffies_to_usecs`: cut to 32 bits.
pub fn to_us(jiffies: u64, hz: u32) -> u32 {
    jiffies.wrapping_mul(1_000_000 / u64::from(hz)) as u32
}
/// `msecs_to_jiffies`: rounded up; what is negative as a signed number is for ever.
pub fn from_ms(ms: u32, hz: u32) -> u64 {
    if (ms as i32) < 0 {
        return MAX_OFFSET;
    }
    u64::from(ms).div_ceil(1000 / u64::from(hz))
}
/// `jiffies_to_msecs`: cut to 32 bits.
pub fn to_ms(jiffies: u64, hz: u32) -> u32 {
    jiffies.wrapping_mul(1000 / u64::from(hz)) as u32
}

/// The tick on which a timer goes off that is set at tick `now` to `delta` ticks later: one tick late, or at the next multiple of the
/// granularity of its level (`calc_wheel_index`).
pub fn wheel(now: u64, delta: u64) -> u64 {
    let (mut shift, mut start) = (0, 63);
    while delta >= start && shift < 24 {
        shift += 3;
        start = 63 << shift;
    }
    (((now + delta) >> shift) + 1) << shift
}

/// A timer that sets itself anew each time it goes off, `delta` ticks on, and was last set to go off at `at`: when it goes off first after
/// tick `now`. As many steps of [`wheel`] without taking each: behind the first one they are equal.
pub fn wheel_after(at: u64, delta: u64, now: u64) -> u64 {
    if at > now {
        return at;
    }
    let first = wheel(at, delta);
    if first > now {
        return first;
    }
    let step = wheel(first, delta) - first;
    first + ((now - first) / step + 1) * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_are_late() {
        assert_eq!((wheel(100, 4), wheel(100, 62)), (105, 163));
        // Half a second at 250 Hz: level 1, in steps of 8 ticks.
        assert_eq!((wheel(0, 125), wheel(3, 125), wheel(0, 600)), (128, 136, 640));
    }

    #[test]
    fn a_timer_s_steps_are_taken_at_once() {
        for delta in [1, 4, 62, 63, 64, 125, 503, 504, 600, 5000, 100_000] {
            for start in [0, 1, 7, 1000, 1001, 123_457] {
                for now in [0, 5, 999, 1000, 1001, 1064, 123_456, 123_999, 700_001] {
                    let mut at = start;
                    while at <= now {
                        at = wheel(at, delta);
                    }
                    assert_eq!(wheel_after(start, delta, now), at, "{start} +{delta} at {now}");
                }
            }
        }
    }

    #[test]
    fn times_become_whole_ticks_and_come_back_rounded() {
        let k = 250;
        assert_eq!(
            [0, 1, 4000, 4001, 15_000].map(|us| to_us(from_us(us, k), k)),
            [0, 4000, 4000, 8000, 16_000]
        );
        assert_eq!(to_us(from_us(u32::MAX, k), k), 4_294_959_296);
        assert_eq!([0, 1, 600_000].map(|ms| to_ms(from_ms(ms, k), k)), [0, 4, 600_000]);
        assert_eq!(to_ms(from_ms(u32::MAX, k), k), 4_294_967_288);
    }
}
