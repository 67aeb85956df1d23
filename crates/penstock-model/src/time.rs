//! Instants and spans in nanoseconds of the run, and tc's way of writing them.
//!
//! Follows: iproute2 6.1 `lib/utils.c` `get_time64`, `tc/tc_util.c` `sprint_time64`.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub, SubAssign};

/// Where a machine's clock of the day stands at the start of a run: the first second of 2026, UTC, in seconds since 1970.
pub const EPOCH: i64 = 1_767_225_600;

/// An instant: nanoseconds since the start of the run. Range of an `i64`, about 292 years.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Time(i64);

/// A length of time in nanoseconds; may be negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Span(i64);

impl Time {
    /// The start of the run.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const MAX: Time = Time(i64::MAX);

    /// From nanoseconds since the start of the run.
    #[inline]
    pub const fn from_ns(ns: i64) -> Time {
        Time(ns)
    }
    /// Nanoseconds since the start of the run.
    #[inline]
    pub const fn as_ns(self) -> i64 {
        self.0
    }
    /// Seconds since the start of the run, for display and measurement only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// This instant plus `span`, or the latest instant there is.
    #[inline]
    pub const fn saturating_add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);

    /// From nanoseconds.
    #[inline]
    pub const fn from_ns(ns: i64) -> Span {
        Span(ns)
    }
    /// From microseconds.
    #[inline]
    pub const fn from_us(us: i64) -> Span {
        Span(us * 1_000)
    }
    /// From milliseconds.
    #[inline]
    pub const fn from_ms(ms: i64) -> Span {
        Span(ms * 1_000_000)
    }
    /// From whole seconds.
    #[inline]
    pub const fn from_secs(s: i64) -> Span {
        Span(s * 1_000_000_000)
    }
    /// Nanoseconds.
    #[inline]
    pub const fn as_ns(self) -> i64 {
        self.0
    }
    /// Seconds, for display and measurement only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Reads a time as tc writes it: a number and `s sec secs`, `ms msec msecs`, `us usec usecs`,
    /// `ns nsec nsecs`; without a unit microseconds (iproute2 `get_time64`).
    ///
    /// # Errors
    /// The text, when it is not a number with one of these units or does not fit 64 bits of nanoseconds.
    pub fn parse(text: &str) -> Result<Span, String> {
        let (number, unit) = split_number(text).ok_or_else(|| text.to_owned())?;
        let scale = match unit.to_ascii_lowercase().as_str() {
            "" | "us" | "usec" | "usecs" => 1e3,
            "s" | "sec" | "secs" => 1e9,
            "ms" | "msec" | "msecs" => 1e6,
            "ns" | "nsec" | "nsecs" => 1.0,
            _ => return Err(text.to_owned()),
        };
        let ns = number * scale;
        if !ns.is_finite() || ns.abs() >= 9.2e18 {
            return Err(text.to_owned());
        }
        Ok(Span(ns as i64))
    }
}

/// Splits `12.5ms` into the number and the rest, as `strtod` does. `None` without a number.
pub fn split_number(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let mut end = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
    let digits = |from: usize| bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
    let whole = digits(end);
    end += whole;
    let mut fraction = 0;
    if bytes.get(end) == Some(&b'.') {
        fraction = digits(end + 1);
        if whole + fraction > 0 {
            end += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits((end + 1 + sign).min(bytes.len()));
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some((text[..end].parse().ok()?, &text[end..]))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}s", self.0 / 1_000_000_000, self.0.unsigned_abs() % 1_000_000_000)
    }
}

impl fmt::Display for Span {
    /// As today's tc prints a time: three significant steps, `s`, `ms`, `us`, `ns` (`sprint_time64`, %.3g).
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ns = self.0 as f64;
        if self.0 >= 1_000_000_000 {
            write!(f, "{}s", general3(ns / 1e9))
        } else if self.0 >= 1_000_000 {
            write!(f, "{}ms", general3(ns / 1e6))
        } else if self.0 >= 1_000 {
            write!(f, "{}us", general3(ns / 1e3))
        } else {
            write!(f, "{}ns", self.0)
        }
    }
}

/// C's `%.3g`.
pub fn general3(x: f64) -> String {
    general(x, 3)
}

/// C's `%.{significant}g`.
pub fn general(x: f64, significant: usize) -> String {
    if x == 0.0 {
        return "0".into();
    }
    if !x.is_finite() {
        // As C has it; Rust's own words are `inf` and `NaN`.
        return x.to_string().to_lowercase();
    }
    let scientific = format!("{:.*e}", significant.max(1) - 1, x);
    let (mantissa, exponent) = scientific.split_once('e').expect("LowerExp prints an e");
    let exponent: i32 = exponent.parse().expect("LowerExp prints a decimal exponent");
    let trim = |s: &str| -> String {
        if s.contains('.') { s.trim_end_matches('0').trim_end_matches('.').to_owned() } else { s.to_owned() }
    };
    if exponent < -4 || exponent >= significant as i32 {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{}e{sign}{:02}", trim(mantissa), exponent.abs());
    }
    let decimals = (significant as i32 - 1 - exponent).max(0) as usize;
    trim(&format!("{x:.decimals$}"))
}

impl Add<Span> for Time {
    type Output = Time;
    #[inline]
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}
impl AddAssign<Span> for Time {
    #[inline]
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    #[inline]
    fn sub(self, span: Span) -> Time {
        Time(self.0 - span.0)
    }
}
impl Sub for Time {
    type Output = Span;
    #[inline]
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Add for Span {
    type Output = Span;
    #[inline]
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}
impl AddAssign for Span {
    #[inline]
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}
impl Sub for Span {
    type Output = Span;
    #[inline]
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}
impl SubAssign for Span {
    #[inline]
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}
impl Mul<i64> for Span {
    type Output = Span;
    #[inline]
    fn mul(self, times: i64) -> Span {
        Span(self.0 * times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_number_is_said_as_c_says_it() {
        let all = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 1e308].map(general3);
        assert_eq!(all, ["inf", "-inf", "nan", "1e+308"]);
    }

    #[test]
    fn reads_times_as_tc() {
        let check = |text: &str, ns: i64| assert_eq!(Span::parse(text), Ok(Span(ns)), "{text}");
        check("50ms", 50_000_000);
        check("50", 50_000);
        check("1.5s", 1_500_000_000);
        check("24.000000ms", 24_000_000);
        check("7usec", 7_000);
        check("0", 0);
        check("3ns", 3);
        check("2secs", 2_000_000_000);
        for bad in ["", "ms", "5m", "5 ms", "1e400s", "--5", "five"] {
            assert_eq!(Span::parse(bad), Err(bad.to_owned()));
        }
    }

    #[test]
    fn prints_spans_as_tc() {
        let check = |ns: i64, text: &str| assert_eq!(Span(ns).to_string(), text);
        check(11_200_000, "11.2ms");
        check(1_500_000_000, "1.5s");
        check(999, "999ns");
        check(12_345, "12.3us");
        check(100_000_000, "100ms");
        check(0, "0ns");
    }

    #[test]
    fn general_is_c_percent_g() {
        assert_eq!(general(100_000.0, 6), "100000");
        assert_eq!(general(1_000_000.0, 6), "1e+06");
        assert_eq!(general(0.00001, 3), "1e-05");
        assert_eq!(general(9.995, 3), "9.99");
        assert_eq!(general(72.2, 3), "72.2");
    }
}
