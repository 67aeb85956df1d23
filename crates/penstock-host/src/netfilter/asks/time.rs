//! The time of day (`time`).
//!
//! Follows: linux v6.12 `net/netfilter/xt_time.c` `time_mt`.
//! Differs: the machine's time zone is UTC.

use penstock_lang::iptables::Times;
use penstock_model::{EPOCH, Time};

const DAY: i64 = 86_400;

/// The day of the month of a day since 1970. Years are counted from March on, so that a leap day is a year's last.
fn month_day(days: i64) -> u32 {
    let of_era = (days + 719_468).rem_euclid(146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    (of_year - (153 * month + 2) / 5 + 1) as u32
}

/// Whether it is such a time.
pub(super) fn fits(t: &Times, now: Time) -> bool {
    let mut stamp = EPOCH + now.as_ns().div_euclid(1_000_000_000);
    if !(i64::from(t.date.0)..=i64::from(t.date.1)).contains(&stamp) {
        return false;
    }
    let (start, stop) = t.day;
    let second = stamp.rem_euclid(DAY) as u32;
    if start < stop {
        if !(start..=stop).contains(&second) {
            return false;
        }
    } else {
        if second < start && second > stop {
            return false;
        }
        if t.contiguous && second <= stop {
            stamp -= DAY;
        }
    }
    let days = stamp.div_euclid(DAY);
    // The first day of 1970 was a Thursday, Monday is 1.
    let weekday = (days + 3).rem_euclid(7) + 1;
    t.week & 1 << weekday != 0 && (t.month == Times::EVERY_DAY || t.month & 1 << month_day(days) != 0)
}
