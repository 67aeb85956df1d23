//! Rates, and tc's way of writing them.
//!
//! Follows: iproute2 6.1 `lib/utils_math.c` `get_rate64`, `lib/json_print.c` `print_color_rate`; 2.6.35 `tc/tc_util.c` `print_rate`.

use crate::kernel::Kernel;
use crate::time::split_number;
use std::fmt;

/// A rate. Kept in bytes per second, as the kernel keeps it; written in bits, as tc writes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Rate(u64);

impl Rate {
    /// From bytes per second.
    pub const fn from_bytes_per_s(bytes: u64) -> Rate {
        Rate(bytes)
    }
    /// From bits per second, rounded down to whole bytes per second.
    pub const fn from_bit_per_s(bits: u64) -> Rate {
        Rate(bits / 8)
    }
    /// Bytes per second.
    pub const fn bytes_per_s(self) -> u64 {
        self.0
    }
    /// Bits per second.
    pub const fn bit_per_s(self) -> u64 {
        self.0 * 8
    }

    /// Reads a rate as tc does: a number and one of `bit`, `kbit`, `mbit`, `gbit`, `tbit`, their `ki`/`mi`…
    /// forms (1024), or `bps`, `kbps`, … for bytes; no unit means bits per second.
    ///
    /// # Errors
    /// The text, when it is not such a rate, is negative, or does not fit.
    pub fn parse(text: &str) -> Result<Rate, String> {
        let bad = || text.to_owned();
        let (number, unit) = split_number(text).ok_or_else(bad)?;
        let scale = if unit.is_empty() { 1.0 } else { unit_scale(unit).ok_or_else(bad)? };
        let bytes = number * scale / 8.0;
        if !(0.0..1.8e19).contains(&bytes) {
            return Err(bad());
        }
        Ok(Rate(bytes as u64))
    }
}

/// Bits per second of one unit of a rate, however its letters are written (iproute2 `suffixes`).
pub fn unit_scale(unit: &str) -> Option<f64> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "bit" => 1.0,
        "kibit" => 1024.0,
        "kbit" => 1e3,
        "mibit" => 1024.0 * 1024.0,
        "mbit" => 1e6,
        "gibit" => 1024f64.powi(3),
        "gbit" => 1e9,
        "tibit" => 1024f64.powi(4),
        "tbit" => 1e12,
        "bps" => 8.0,
        "kibps" => 8.0 * 1024.0,
        "kbps" => 8e3,
        "mibps" => 8.0 * 1024.0 * 1024.0,
        "mbps" => 8e6,
        "gibps" => 8.0 * 1024f64.powi(3),
        "gbps" => 8e9,
        "tibps" => 8.0 * 1024f64.powi(4),
        "tbps" => 8e12,
        _ => return None,
    })
}

impl Rate {
    /// As the profile's tc prints it. Today: the largest unit that divides the rate or leaves it below 1,000,000 of the smaller
    /// (`print_color_rate`). 2.6.35: bits below 1,000,000, `Kbit` below 1,000,000,000, else `Mbit` (`print_rate`). With `iec`
    /// (`tc -iec`) units of 1024.
    pub fn tc_text(self, kernel: Kernel, iec: bool) -> String {
        if kernel == Kernel::V2_6_35 {
            let bits = self.0 as f64 * 8.0;
            return match (iec, bits) {
                // 2.6.35 divides by 1024 and multiplies by it here, so that the bits come out.
                (true, b) if b >= 1000.0 * 1024.0 * 1024.0 => format!("{b:.0}Mibit"),
                (true, b) if b >= 1000.0 * 1024.0 => format!("{:.0}Kibit", b / 1024.0),
                (false, b) if b >= 1000.0 * 1e6 => format!("{:.0}Mbit", b / 1e6),
                (false, b) if b >= 1000.0 * 1000.0 => format!("{:.0}Kbit", b / 1000.0),
                (_, b) => format!("{b:.0}bit"),
            };
        }
        const UNITS: [&str; 5] = ["", "K", "M", "G", "T"];
        let kilo = if iec { 1024 } else { 1000 };
        let mut rate = self.0 << 3;
        let mut unit = 0;
        while unit < 4 && rate >= kilo && (rate.is_multiple_of(kilo) || rate >= 1000 * kilo) {
            rate /= kilo;
            unit += 1;
        }
        let i = if iec && unit > 0 { "i" } else { "" };
        format!("{:.0}{}{i}bit", rate as f64, UNITS[unit])
    }
}

impl fmt::Display for Rate {
    /// As today's tc.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.tc_text(Kernel::V6_12, false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_rates_as_tc() {
        let check = |text: &str, bytes: u64| assert_eq!(Rate::parse(text), Ok(Rate(bytes)), "{text}");
        check("10mbit", 1_250_000);
        check("10.000000Mbit", 1_250_000);
        check("800kbit", 100_000);
        check("12mbps", 12_000_000);
        check("8000", 1000);
        check("1kibit", 128);
        check("1.5mbit", 187_500);
        for bad in ["", "mbit", "10 mbit", "10mbits", "-5kbit", "1e99gbit"] {
            assert_eq!(Rate::parse(bad), Err(bad.to_owned()));
        }
    }

    #[test]
    fn prints_rates_as_tc() {
        let check = |bytes: u64, text: &str| assert_eq!(Rate(bytes).to_string(), text);
        check(1_250_000, "10Mbit");
        check(27_500, "220Kbit");
        check(187_500, "1500Kbit");
        check(1, "8bit");
        check(0, "0bit");
        check(125_000_000, "1Gbit");
        let check = |bytes: u64, text: &str| assert_eq!(Rate(bytes).tc_text(Kernel::V2_6_35, false), text);
        check(1_250_000, "10000Kbit");
        check(100_000, "800000bit");
        check(125_000_000, "1000Mbit");
        assert_eq!(Rate(128 * 1024).tc_text(Kernel::V6_12, true), "1Mibit");
    }
}
