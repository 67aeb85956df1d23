//! Forms of numbers and times that several programs share.

/// `byte_snprintf` of iperf 2.0.x, `unit_snprintf` of iperf3: four places and a unit. `format`: `a` bits by 1000,
/// `A` bytes by 1024, both with the unit that fits; `k m g b` and `K M G B` for one unit.
pub(crate) fn units(bytes: f64, format: char) -> String {
    const BITS: [&str; 4] = ["bit", "Kbit", "Mbit", "Gbit"];
    const BYTES: [&str; 4] = ["Byte", "KByte", "MByte", "GByte"];
    let upper = format.is_ascii_uppercase();
    let base = if upper { 1024.0 } else { 1000.0 };
    let mut number = if upper { bytes } else { bytes * 8.0 };
    let unit = match format.to_ascii_uppercase() {
        'B' => 0,
        'K' => 1,
        'M' => 2,
        'G' => 3,
        _ => {
            let (mut n, mut unit) = (number, 0);
            while n >= base && unit < 3 {
                n /= base;
                unit += 1;
            }
            unit
        }
    };
    for _ in 0..unit {
        number /= base;
    }
    let label = if upper { BYTES[unit] } else { BITS[unit] };
    if number < 9.995 {
        format!("{number:4.2} {label}")
    } else if number < 99.95 {
        format!("{number:4.1} {label}")
    } else {
        format!("{number:4.0} {label}")
    }
}

/// C's `%.2g`.
pub(crate) fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        "nan".to_owned()
    } else {
        penstock_model::time::general(100.0 * part as f64 / whole as f64, 2)
    }
}

/// Day and time as `iso_time` of mtr has it, `2026-01-01T00:00:00+0000`: seconds since 1970, in UTC.
pub(crate) fn date(seconds: i64) -> String {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years begin in March, eras of 400 years in one that can be divided by it.
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let part = (5 * day + 2) / 153;
    let (day, month) = (day - (153 * part + 2) / 5 + 1, if part < 10 { part + 3 } else { part - 9 });
    let year = year + era * 400 + i64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}+0000")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_take_four_places() {
        let check = |bytes: f64, format: char, text: &str| assert_eq!(units(bytes, format), text);
        check(90_281_984.0, 'A', "86.1 MByte");
        check(72.2e6 / 8.0, 'a', "72.2 Mbit");
        check(16_384.0, 'A', "16.0 KByte");
        check(8_192.0, 'A', "8.00 KByte");
        check(87_380.0, 'A', "85.3 KByte");
        check(112_640.0, 'A', " 110 KByte");
        check(991_232.0, 'A', " 968 KByte");
        check(215_000.0 / 8.0, 'a', " 215 Kbit");
        check(1_250_000.0, 'k', "10000 Kbit");
        check(0.0, 'a', "0.00 bit");
    }
}
