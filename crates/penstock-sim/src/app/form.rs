//! Number forms that iperf and iperf3 share.

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
