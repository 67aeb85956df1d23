//! The packet scheduler's tick: what tc and the kernel exchange instead of seconds.
//!
//! Follows: linux v6.12 `include/net/pkt_sched.h` (`PSCHED_SHIFT` 6: one tick is 64 ns), `net/sched/sch_api.c`
//! `psched_show`; iproute2 6.1 `tc/tc_core.c` `tc_core_init`, `tc_calc_xmittime`, `tc_calc_xmitsize`,
//! `tc_core_tick2time`. Both kernel profiles have the same tick.

/// Nanoseconds in one tick.
pub const TICK_NS: u64 = 64;
/// Ticks in one microsecond (`tick_in_usec`): 1000/64.
pub const TICK_IN_USEC: f64 = 15.625;
/// tc's time unit per second (`TIME_UNITS_PER_SEC`): microseconds.
pub const TIME_UNITS_PER_SEC: f64 = 1_000_000.0;

/// `tc_core_time2tick`: microseconds to ticks, both whole (its argument and its result are `unsigned`).
pub fn time2tick(us: f64) -> u32 {
    (f64::from(us as u64 as u32) * TICK_IN_USEC) as u64 as u32
}
/// `tc_core_tick2time`: ticks to whole microseconds.
pub fn tick2time(ticks: u32) -> u32 {
    (f64::from(ticks) / TICK_IN_USEC) as u32
}
/// `tc_calc_xmittime`: ticks that `size` bytes take at `rate` bytes per second.
pub fn xmittime(rate: u64, size: u32) -> u32 {
    time2tick(TIME_UNITS_PER_SEC * (f64::from(size) / rate as f64))
}
/// The same of iproute2 6.15 and later: rounded up, and at most what 32 bits hold.
pub fn xmittime_up(rate: u64, size: u64) -> u32 {
    (TIME_UNITS_PER_SEC * (size as f64 / rate as f64) * TICK_IN_USEC).ceil() as u32
}
/// `tc_core_tick2time` of iproute2 7: microseconds and what is less than one.
pub fn tick2us(ticks: u32) -> f64 {
    f64::from(ticks) / TICK_IN_USEC
}
/// `tc_calc_xmitsize` of iproute2 7, which rounds the bytes alone.
pub fn xmitsize_fine(rate: u64, ticks: u32) -> u64 {
    (rate as f64 * tick2us(ticks) / TIME_UNITS_PER_SEC) as u64
}
/// `tc_calc_xmitsize`: bytes that pass in `ticks` at `rate` bytes per second.
pub fn xmitsize(rate: u64, ticks: u32) -> u32 {
    (rate as f64 * f64::from(tick2time(ticks)) / TIME_UNITS_PER_SEC) as u64 as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_survive_the_way_through_ticks_as_tc_prints_them() {
        // 15k at 10 Mbit/s; the other way is exact to a byte.
        assert_eq!(xmitsize(1_250_000, xmittime(1_250_000, 15_360)), 15_360);
        assert_eq!(xmittime(1_250_000, 1600), 20_000);
        let printed = |rate| xmitsize(rate, xmittime(rate, 1600));
        assert_eq!([125_000, 375_000, 750_000, 1_875_000].map(printed), [1600, 1599, 1599, 1597]);
        // 1540 bytes at 1 Gbit/s take 12.32 us, of which tc keeps 12: the burst comes back as 1500.
        assert_eq!(xmittime(125_000_000, 1540), 187);
        assert_eq!(xmitsize(125_000_000, 187), 1375);
    }
}
