//! Numbers as people read them: three significant digits, an SI prefix, the unit.

use penstock_model::time::general;

/// What a number counts; decides its unit and how it is scaled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Bits per second, in powers of 1000: `5.85 Mbit/s`.
    BitPerSecond,
    /// Bytes, in powers of 1000: `7.31 MB`.
    Byte,
    /// Milliseconds; long ones become seconds, short ones microseconds: `1.35 ms`.
    Millisecond,
    /// Seconds, unscaled: `12 s`.
    Second,
    /// Things: `12,345`.
    Count,
    /// Hundredths of a whole given as a share 0..=1: `1.2 %`.
    Share,
}

impl Unit {
    /// The factor and the name that suit a number as large as `max`: `(1e6, "Mbit/s")`.
    pub fn scale(self, max: f64) -> (f64, &'static str) {
        let max = max.abs();
        let pick = |names: [&'static str; 4]| match max {
            x if x >= 1e9 => (1e9, names[3]),
            x if x >= 1e6 => (1e6, names[2]),
            x if x >= 1e3 => (1e3, names[1]),
            _ => (1.0, names[0]),
        };
        match self {
            Unit::BitPerSecond => pick(["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]),
            Unit::Byte => pick(["B", "kB", "MB", "GB"]),
            Unit::Millisecond if max >= 1000.0 => (1000.0, "s"),
            Unit::Millisecond if max < 1.0 && max > 0.0 => (0.001, "µs"),
            Unit::Millisecond => (1.0, "ms"),
            Unit::Second => (1.0, "s"),
            Unit::Count => (1.0, ""),
            Unit::Share => (0.01, "%"),
        }
    }

    /// The number with its unit.
    pub fn show(self, x: f64) -> String {
        if self == Unit::Count {
            return if x.fract() == 0.0 && x.abs() < 1e15 { grouped(x as i64) } else { significant(x) };
        }
        let (factor, name) = self.scale(x);
        // 999.95 kbit/s would print as 1e+03: the rounding belongs to the next unit.
        let (factor, name) = match significant(x / factor).as_str() {
            "1e+03" | "1000" => self.scale(x.abs().max(factor * 1000.0)),
            _ => (factor, name),
        };
        format!("{} {name}", significant(x / factor))
    }
}

/// Three significant digits without an exponent where four digits or fewer stand before the point.
pub fn significant(x: f64) -> String {
    let size = x.abs();
    if (1000.0..1e6).contains(&size) { format!("{x:.0}") } else { general(x, 3) }
}

/// A whole number with commas: `12,345`.
pub fn grouped(n: i64) -> String {
    let digits = n.unsigned_abs().to_string();
    let mut out = String::from(if n < 0 { "-" } else { "" });
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_well() {
        let check = |unit: Unit, x: f64, text: &str| assert_eq!(unit.show(x), text);
        check(Unit::BitPerSecond, 5_850_000.0, "5.85 Mbit/s");
        check(Unit::BitPerSecond, 999_960.0, "1 Mbit/s");
        check(Unit::BitPerSecond, 0.0, "0 bit/s");
        check(Unit::BitPerSecond, 971_000.0, "971 kbit/s");
        check(Unit::Byte, 7_312_500.0, "7.31 MB");
        check(Unit::Millisecond, 1.346, "1.35 ms");
        check(Unit::Millisecond, 0.102, "102 µs");
        check(Unit::Millisecond, 1234.0, "1.23 s");
        check(Unit::Millisecond, 12_340.0, "12.3 s");
        check(Unit::Count, 115_328.0, "115,328");
        check(Unit::Count, 0.5, "0.5");
        check(Unit::Share, 0.012, "1.2 %");
        check(Unit::Second, 12.0, "12 s");
        assert_eq!(grouped(-1_000), "-1,000");
        assert_eq!(grouped(i64::MIN), "-9,223,372,036,854,775,808");
    }
}
