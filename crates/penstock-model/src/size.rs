//! Sizes in bytes, and tc's way of writing them.
//!
//! Follows: iproute2 6.1 `lib/utils_math.c` `get_size`, `lib/json_print_math.c` `sprint_size`.

use crate::time::{general, split_number};
use std::fmt;

/// A size in bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Size(u64);

impl Size {
    /// From bytes.
    pub const fn from_bytes(bytes: u64) -> Size {
        Size(bytes)
    }
    /// Bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Reads a size as tc does: a number and `b`, `k kb`, `m mb`, `g gb` (powers of 1024) or `kbit`, `mbit`, `gbit`.
    ///
    /// # Errors
    /// The text, when it is not such a size, is negative, or does not fit.
    pub fn parse(text: &str) -> Result<Size, String> {
        let bad = || text.to_owned();
        let (number, unit) = split_number(text).ok_or_else(bad)?;
        let scale = unit_scale(unit).ok_or_else(bad)?;
        let bytes = number * scale;
        if !(0.0..1.8e19).contains(&bytes) {
            return Err(bad());
        }
        Ok(Size(bytes as u64))
    }
}

/// Bytes of one unit of a size, however its letters are written; no unit is bytes.
pub fn unit_scale(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1024.0,
        "m" | "mb" => 1024.0 * 1024.0,
        "g" | "gb" => 1024f64.powi(3),
        "kbit" => 1024.0 / 8.0,
        "mbit" => 1024.0 * 1024.0 / 8.0,
        "gbit" => 1024f64.powi(3) / 8.0,
        _ => return None,
    })
}

impl fmt::Display for Size {
    /// As tc: `15Kb` and `2Mb` where the value lies within 16 bytes (1024 for Mb) of a whole one, else bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const KILO: f64 = 1024.0;
        const MEGA: f64 = 1024.0 * 1024.0;
        let bytes = self.0 as f64;
        let near = |unit: f64, within: f64| {
            let whole = (bytes / unit).round_ties_even();
            (bytes >= unit && (unit * whole - bytes).abs() < within).then_some(whole)
        };
        if let Some(whole) = near(MEGA, 1024.0) {
            write!(f, "{}Mb", general(whole, 6))
        } else if let Some(whole) = near(KILO, 16.0) {
            write!(f, "{}Kb", general(whole, 6))
        } else {
            write!(f, "{}b", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_sizes_as_tc() {
        let check = |text: &str, bytes: u64| assert_eq!(Size::parse(text), Ok(Size(bytes)), "{text}");
        check("15k", 15_360);
        check("1540", 1540);
        check("1500b", 1500);
        check("1mb", 1_048_576);
        check("8kbit", 1024);
        for bad in ["", "k", "15kk", "-1", "15 k"] {
            assert_eq!(Size::parse(bad), Err(bad.to_owned()));
        }
    }

    #[test]
    fn prints_sizes_as_tc() {
        let check = |bytes: u64, text: &str| assert_eq!(Size(bytes).to_string(), text);
        check(15_360, "15Kb");
        check(1600, "1600b");
        check(1599, "1599b");
        check(15_350, "15Kb");
        check(1_048_576, "1Mb");
        check(0, "0b");
    }
}
