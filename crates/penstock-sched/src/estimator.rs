//! Rate estimators: a moving average of what a qdisc or class sends, in bytes and packets per second.
//!
//! The kernel looks at the counters from a timer; here the looks that are due are taken when time has come that far,
//! before the counters change or are read, which gives the same numbers. A quarter of a second is `HZ/4` = 62 jiffies
//! of 4 ms.
//!
//! Follows: linux v6.12 and v2.6.35 `net/core/gen_estimator.c` `gen_new_estimator`, `est_timer`,
//! `gen_estimator_read`.
//! Differs: 2.6.35 looks at all estimators of one interval from one timer; here each has its own, which is the same
//! for those made at the same time.

use penstock_model::{Kernel, KernelError, Options, Time};

/// A rate estimator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Estimator {
    // Parameters
    kernel: Kernel,
    /// Interval as a power of two of quarters of a second, 0..=5.
    interval_log: u8,
    /// Weight of one look: 2^-ewma_log.
    ewma_log: u8,
    // Variables
    next_jiffy: i64,
    last_bytes: u64,
    last_packets: u64,
    avbps: u64,
    avpps: u64,
}

/// `HZ`.
const HZ: i64 = 250;
/// One jiffy, ns.
const JIFFY_NS: i64 = 1_000_000_000 / HZ;

impl Estimator {
    /// With `struct tc_estimator`'s interval (-2..=3: 2^n seconds) and ewma exponent, from counters as they stand.
    ///
    /// # Errors
    /// EINVAL for an interval out of range, and in 6.12 for an exponent of 0 or above 30.
    pub fn new(
        kernel: Kernel,
        (interval, ewma_log): (i8, u8),
        now: Time,
        bytes: u64,
        packets: u64,
    ) -> Result<Estimator, KernelError> {
        let fits = match kernel {
            // There a shift by 64 or more is whatever the processor makes of it.
            Kernel::V2_6_35 => ewma_log < 64,
            Kernel::V6_12 | Kernel::V7_2 => (1..31).contains(&ewma_log),
        };
        if !(-2..=3).contains(&interval) || !fits {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let interval_log = (interval + 2) as u8;
        let next_jiffy = now.as_ns() / JIFFY_NS + ((HZ / 4) << interval_log);
        let (last_bytes, last_packets) = (bytes, packets);
        Ok(Estimator {
            kernel,
            interval_log,
            ewma_log,
            next_jiffy,
            last_bytes,
            last_packets,
            avbps: 0,
            avpps: 0,
        })
    }
    /// Goes on from another's averages: `gen_replace_estimator`.
    pub fn continuing(mut self, old: &Estimator) -> Estimator {
        (self.avbps, self.avpps) = (old.avbps, old.avpps);
        self
    }
    /// What it was made with, for a dump; Linux does not tell.
    pub fn dump(&self) -> Options {
        Options::new()
            .with("interval", i64::from(self.interval_log) - 2)
            .with("ewma", u32::from(self.ewma_log))
    }
    /// Whether a look is due: [`Estimator::advance`] must be called before the counters change.
    #[inline]
    pub fn is_due(&self, now: Time) -> bool {
        now.as_ns() >= self.next_jiffy * JIFFY_NS
    }
    /// Takes the looks due by `now`, at counters that have not changed since the one before the first of them.
    pub fn advance(&mut self, now: Time, bytes: u64, packets: u64) {
        while self.is_due(now) {
            self.next_jiffy += (HZ / 4) << self.interval_log;
            let before = (self.avbps, self.avpps);
            self.look(bytes, packets);
            let still = before == (self.avbps, self.avpps) && self.is_due(now);
            if still && (self.last_bytes, self.last_packets) == (bytes, packets) && self.rests() {
                // Nothing moves any more: on to the last look.
                let step = (HZ / 4) << self.interval_log;
                let due = now.as_ns() / JIFFY_NS - self.next_jiffy;
                self.next_jiffy += (due / step + 1) * step;
            }
        }
    }
    /// Whether a look at unchanged counters changes nothing.
    fn rests(&self) -> bool {
        let mut next = *self;
        next.look(self.last_bytes, self.last_packets);
        (next.avbps, next.avpps) == (self.avbps, self.avpps)
    }
    /// `est_timer`.
    fn look(&mut self, bytes: u64, packets: u64) {
        let ewma = u32::from(self.ewma_log);
        let grow =
            |average: u64, sample: u64| average.wrapping_add((sample >> ewma).wrapping_sub(average >> ewma));
        let bytes_sent = bytes.wrapping_sub(self.last_bytes);
        let packets_sent = packets.wrapping_sub(self.last_packets);
        let log = u32::from(self.interval_log);
        match self.kernel {
            Kernel::V6_12 | Kernel::V7_2 => {
                self.avbps = grow(self.avbps, bytes_sent << (10 - log));
                self.avpps = grow(self.avpps, packets_sent << (10 - log));
            }
            Kernel::V2_6_35 => {
                self.avbps = grow(self.avbps, bytes_sent << (7 - log));
                self.avpps = grow(self.avpps, u64::from((packets_sent as u32) << (12 - log))) & 0xffff_ffff;
            }
        }
        (self.last_bytes, self.last_packets) = (bytes, packets);
    }
    /// The averages, bytes and packets per second.
    pub fn rate(&self) -> (u64, u64) {
        match self.kernel {
            Kernel::V6_12 | Kernel::V7_2 => (self.avbps >> 8, self.avpps >> 8),
            Kernel::V2_6_35 => ((self.avbps + 0xf) >> 5, (self.avpps + 0x1ff) >> 10),
        }
    }
    /// The averages as of `now`, from counters as they stand.
    pub fn rate_at(mut self, now: Time, bytes: u64, packets: u64) -> (u64, u64) {
        self.advance(now, bytes, packets);
        self.rate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes each 10 ms for `seconds`, then the averages.
    fn steady(kernel: Kernel, interval: i8, ewma_log: u8, seconds: i64) -> (u64, u64) {
        let mut est = Estimator::new(kernel, (interval, ewma_log), Time::ZERO, 0, 0).unwrap();
        for (count, ms) in (0u64..).zip((0..seconds * 1000).step_by(10)) {
            est.advance(Time::from_ns(ms * 1_000_000), count * 1000, count);
        }
        est.rate()
    }

    #[test]
    fn settles_near_the_rate() {
        for kernel in Kernel::ALL {
            let (bytes, packets) = steady(kernel, 0, 2, 60);
            // 248 jiffies of 4 ms pass for a second.
            assert!((98_000..=100_000).contains(&bytes), "{kernel} {bytes}");
            assert!((98..=100).contains(&packets), "{kernel} {packets}");
            let (early, _) = steady(kernel, 0, 2, 2);
            assert!(early < 50_000, "{kernel} {early}");
        }
    }

    #[test]
    fn many_idle_looks_at_once_are_as_many_one_by_one() {
        for kernel in Kernel::ALL {
            let mut busy = Estimator::new(kernel, (-2, 3), Time::ZERO, 0, 0).unwrap();
            busy.advance(Time::from_ns(1_000_000_000), 1_000_000, 1000);
            let (mut once, mut steps) = (busy, busy);
            for ms in 1000..400_000 {
                steps.advance(Time::from_ns(ms * 1_000_000), 1_000_000, 1000);
            }
            once.advance(Time::from_ns(399_999_000_000), 1_000_000, 1000);
            assert_eq!(once, steps, "{kernel}");
        }
    }

    #[test]
    fn nonsense_is_refused() {
        for bad in [(-3, 2), (4, 2), (0, 0), (0, 31)] {
            assert!(Estimator::new(Kernel::V6_12, bad, Time::ZERO, 0, 0).is_err(), "{bad:?}");
        }
        assert!(Estimator::new(Kernel::V2_6_35, (4, 2), Time::ZERO, 0, 0).is_err());
    }
}
