//! The packet scheduler's clock: moments and spans in the ticks of a kernel, and when its timers go off.
//!
//! Follows: linux v6.12 and v2.6.35 `include/net/pkt_sched.h` `psched_get_time`, `PSCHED_NS2TICKS` (a tick is 64 ns of
//! the monotonic clock), `net/sched/sch_api.c` `qdisc_watchdog_schedule`.

use crate::qdisc::Device;
use penstock_model::Time;

/// `PSCHED_SHIFT`: a tick is 64 ns.
const SHIFT: u32 = 6;
/// How long the machine has been up when the virtual clock starts, ns: longer than the 8.6 s (128 Mi ticks) that cbq takes
/// for a class's first idle time, a multiple of 64 ns.
const UPTIME_NS: i64 = 60_000_000_000 / 64 * 64;

/// What a qdisc's `psched_get_time` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Clock;

impl Clock {
    /// The clock of a device's machine.
    pub(crate) fn of(_: &Device) -> Clock {
        Clock
    }
    /// `psched_get_time`: ticks since the machine came up.
    #[inline]
    pub(crate) fn read(self, now: Time) -> i64 {
        (now.as_ns() + UPTIME_NS) >> SHIFT
    }
    /// When a timer goes off that is set at `now` (a reading of `at`) for `span` ticks later.
    #[inline]
    pub(crate) fn timer(self, now: Time, at: i64, span: i64) -> Time {
        let _ = now;
        self.time(at + span)
    }
    /// The moment of a reading.
    #[inline]
    pub(crate) fn time(self, reading: i64) -> Time {
        Time::from_ns((reading << SHIFT) - UPTIME_NS)
    }
}
