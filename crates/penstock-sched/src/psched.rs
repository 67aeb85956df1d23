//! The packet scheduler's clock: moments and spans in the ticks of a kernel, and when its timers go off.
//!
//! Follows: linux v6.12 and v2.6.35 `include/net/pkt_sched.h` `psched_get_time`, `PSCHED_NS2TICKS` (a tick is 64 ns of
//! the monotonic clock), `net/sched/sch_api.c` `qdisc_watchdog_schedule`; linux v2.4.0 `include/net/pkt_sched.h`,
//! `net/sched/sch_tbf.c` and `sch_cbq.c` (their watchdogs); iproute2 of that time `tc/tc_core.c` `tc_calc_rtable`.
//!
//! What tc and kernel exchange in ticks is in ticks of 64 ns here whatever the kernel. A tick of an old kernel is made
//! of it as that kernel's tc made it, by whole microseconds.

use crate::qdisc::Device;
use crate::rates::RateTable;
use penstock_model::psched::TICK_NS;
use penstock_model::{PschedClock, Time};

/// `PSCHED_SHIFT`: a tick is 64 ns.
const SHIFT: u32 = 6;
/// How long the machine has been up when the virtual clock starts, ns: longer than the 8.6 s (128 Mi ticks) that cbq takes
/// for a class's first idle time; whole seconds, and a multiple of 64 ns.
const UPTIME_NS: i64 = 64_000_000_000;

/// What a qdisc's `psched_get_time` is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Clock(PschedClock);

impl Clock {
    /// The clock of a device's machine.
    pub(crate) fn of(device: &Device) -> Clock {
        Clock(device.clock)
    }
    /// Whether it is one of before high-resolution timers.
    #[inline]
    pub(crate) fn is_old(self) -> bool {
        self.0 != PschedClock::Ktime
    }
    /// `psched_get_time`, `PSCHED_GET_TIME`: ticks since the machine came up.
    #[inline]
    pub(crate) fn read(self, now: Time) -> i64 {
        let up = now.as_ns() + UPTIME_NS;
        match self.0 {
            PschedClock::Ktime => up >> SHIFT,
            PschedClock::Old(old) => old.read(up),
        }
    }
    /// What passed from one reading to another.
    #[inline]
    pub(crate) fn diff(self, to: i64, from: i64) -> i64 {
        match self.0 {
            PschedClock::Ktime => to.wrapping_sub(from),
            PschedClock::Old(old) => old.diff(to, from),
        }
    }
    /// When a timer goes off that is set at `now` (a reading of `at`) for `span` ticks later: then, or with an old
    /// kernel at the timer interrupt that is as many whole jiffies later, one at least.
    #[inline]
    pub(crate) fn timer(self, now: Time, at: i64, span: i64) -> Time {
        match self.0 {
            PschedClock::Ktime => Time::from_ns(((at + span) << SHIFT) - UPTIME_NS),
            PschedClock::Old(old) => {
                let jiffies = old.jiffies(now.as_ns() + UPTIME_NS);
                Time::from_ns(old.interrupt(jiffies + old.to_jiffies(span).max(1)) - UPTIME_NS)
            }
        }
    }
    /// Ticks as tc sent them in this kernel's.
    pub(crate) fn ticks_of_tc(self, ticks: u32) -> u32 {
        match self.0 {
            PschedClock::Ktime => ticks,
            PschedClock::Old(old) => {
                let us = (u64::from(ticks) * TICK_NS).div_ceil(1000);
                u32::try_from(old.ticks(us)).unwrap_or(u32::MAX)
            }
        }
    }
    /// This kernel's ticks as tc is shown them.
    pub(crate) fn ticks_for_tc(self, ticks: u32) -> u32 {
        match self.0 {
            PschedClock::Ktime => ticks,
            PschedClock::Old(old) => {
                u32::try_from((old.us(ticks.into()) * 1000).div_ceil(TICK_NS)).unwrap_or(u32::MAX)
            }
        }
    }
    /// The rate table that tc makes: of an old one, what so many cells take, looked up without rounding lengths up.
    pub(crate) fn table(self, rate: u32, overhead: u16, mpu: u16, linklayer: u8, cell_log: u8) -> RateTable {
        match self.0 {
            PschedClock::Ktime => RateTable::new(rate, overhead, mpu, linklayer, cell_log),
            PschedClock::Old(old) => RateTable::from_cells(rate, mpu, cell_log, |us| old.ticks(us) as u32),
        }
    }
}
