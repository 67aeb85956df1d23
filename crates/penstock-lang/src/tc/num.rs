//! Numbers as tc reads them: C's strtod and strtoul, rates, sizes, times, handles, with tc's overflow rules.
//!
//! Follows: iproute2 6.1.0 `lib/utils.c` (`get_u32` …, `get_time`), `lib/utils_math.c` (`get_rate64`, `get_size`),
//! `tc/tc_util.c` (`get_qdisc_handle`, `get_tc_classid`, `get_size_and_cell`), `lib/ll_proto.c`; 2.6.35 where it differs.
//! Differs: `unsigned long` has 64 bits for both.

use penstock_model::{Handle, Kernel, psched, rate, size};

/// A C cast of a double to `unsigned int` as x86-64 does it: through 64 bits, then cut.
pub fn cast_u32(x: f64) -> u32 {
    if x.is_nan() || !(-9.3e18..9.3e18).contains(&x) {
        return 0;
    }
    x as i64 as u32
}

/// A C cast of a double to `unsigned long long` as x86-64 does it.
pub fn cast_u64(x: f64) -> u64 {
    if x.is_nan() {
        return 1 << 63;
    }
    if x >= 18_446_744_073_709_551_616.0 {
        return 0;
    }
    if x < 0.0 {
        return if x < -9_223_372_036_854_775_808.0 { 1 << 63 } else { x as i64 as u64 };
    }
    x as u64
}

/// `strtod`: the number at the beginning and the rest. `None` where no number begins the text.
pub fn strtod(text: &str) -> Option<(f64, &str)> {
    let body = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (sign, digits) = match body.as_bytes().first()? {
        b'-' => (-1.0, &body[1..]),
        b'+' => (1.0, &body[1..]),
        _ => (1.0, body),
    };
    let word = |w: &str| digits.get(..w.len()).is_some_and(|d| d.eq_ignore_ascii_case(w));
    for (name, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if word(name) {
            return Some((sign * value, &digits[name.len()..]));
        }
    }
    if word("0x") {
        if let Some((value, rest)) = hex_float(&digits[2..]) {
            return Some((sign * value, rest));
        }
        return Some((sign * 0.0, &digits[1..]));
    }
    let (value, rest) = penstock_model::time::split_number(digits)?;
    // A second sign is not a number.
    if digits.starts_with(['+', '-']) {
        return None;
    }
    Some((sign * value, rest))
}

/// `a.8p3` after its `0x`.
fn hex_float(text: &str) -> Option<(f64, &str)> {
    let bytes = text.as_bytes();
    let (mut value, mut scale, mut at, mut any) = (0.0f64, 1.0f64, 0, false);
    let mut point = false;
    while let Some(&b) = bytes.get(at) {
        if let Some(d) = char::from(b).to_digit(16) {
            any = true;
            value = value * 16.0 + f64::from(d);
            if point {
                scale /= 16.0;
            }
        } else if b == b'.' && !point {
            point = true;
        } else {
            break;
        }
        at += 1;
    }
    if !any {
        return None;
    }
    value *= scale;
    if matches!(bytes.get(at), Some(b'p' | b'P')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let digits =
            bytes[(at + 1 + sign).min(bytes.len())..].iter().take_while(|b| b.is_ascii_digit()).count();
        if digits > 0 {
            let end = at + 1 + sign + digits;
            let exponent: i32 = text[at + 1..end].parse().unwrap_or(i32::MAX).clamp(-5000, 5000);
            value *= 2f64.powi(exponent);
            at = end;
        }
    }
    Some((value, &text[at..]))
}

/// `strtoul`/`strtol` with their base rules: the value's sign and size, whether it passed 64 bits, the rest.
fn strtoull(text: &str, base: u32) -> Option<(bool, u128, &str)> {
    let body = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (negative, mut digits) = match body.as_bytes().first()? {
        b'-' => (true, &body[1..]),
        b'+' => (false, &body[1..]),
        _ => (false, body),
    };
    let hex = digits.starts_with("0x") || digits.starts_with("0X");
    let hex = hex && digits[2..].starts_with(|c: char| c.is_ascii_hexdigit());
    let base = match base {
        0 if hex => 16,
        0 if digits.starts_with('0') => 8,
        0 => 10,
        b => b,
    };
    if base == 16 && hex {
        digits = &digits[2..];
    }
    let end = digits.find(|c: char| !c.is_digit(base)).unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let mut value = 0u128;
    for c in digits[..end].chars() {
        value = (value * u128::from(base) + u128::from(c.to_digit(base)?)).min(1 << 70);
    }
    Some((negative, value, &digits[end..]))
}

/// `strtoul` of a prefix, as `get_qdisc_handle` and its kin use it.
pub fn strtoul(text: &str, base: u32) -> Option<(u64, &str)> {
    let (negative, value, rest) = strtoull(text, base)?;
    let value = u64::try_from(value).unwrap_or(u64::MAX);
    Some((if negative && value != u64::MAX { value.wrapping_neg() } else { value }, rest))
}

/// `strtol` of a prefix: 0 where no number begins the text, the nearest there is where it passes 64 bits.
pub fn strtol(text: &str, base: u32) -> i64 {
    let Some((negative, value, _)) = strtoull(text, base) else { return 0 };
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    match (negative, value) {
        (true, i64::MAX) => i64::MIN,
        (true, value) => -value,
        (false, value) => value,
    }
}

fn unsigned(text: &str, base: u32, max: u64) -> Option<u64> {
    let (negative, value, rest) = strtoull(text, base)?;
    let value = u64::try_from(value).ok()?;
    let value = if negative { value.wrapping_neg() } else { value };
    (rest.is_empty() && value <= max).then_some(value)
}

/// `get_u32`, `get_unsigned`: all of the text, base 0 reads `0x` and octal.
pub fn u32(text: &str, base: u32) -> Option<u32> {
    unsigned(text, base, 0xffff_ffff).map(|v| v as u32)
}
/// `hex2mem`: bytes of two hexadecimal digits each.
pub fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    let digits = digits.filter(|d| d.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}
/// `get_u64`.
pub fn u64(text: &str, base: u32) -> Option<u64> {
    let (negative, value, rest) = strtoull(text, base)?;
    let value = u64::try_from(value).ok().filter(|_| rest.is_empty())?;
    Some(if negative { value.wrapping_neg() } else { value })
}
/// `get_u16`.
pub fn u16(text: &str, base: u32) -> Option<u16> {
    unsigned(text, base, 0xffff).map(|v| v as u16)
}
/// `get_u8`.
pub fn u8(text: &str, base: u32) -> Option<u8> {
    unsigned(text, base, 0xff).map(|v| v as u8)
}
/// `get_s64`.
pub fn i64(text: &str, base: u32) -> Option<i64> {
    let (negative, value, rest) = strtoull(text, base)?;
    let value = if negative { -(value as i128) } else { value as i128 };
    if rest.is_empty() { i64::try_from(value).ok() } else { None }
}
/// `get_integer`.
pub fn integer(text: &str, base: u32) -> Option<i32> {
    let (negative, value, rest) = strtoull(text, base)?;
    let value = i64::try_from(value).ok()?;
    let value = if negative { -value } else { value };
    if rest.is_empty() { i32::try_from(value).ok() } else { None }
}

/// `get_rate64` (6.x) and `get_rate` (2.6.35): bytes per second. The old one keeps 32 bits of them.
pub fn rate(text: &str, kernel: Kernel) -> Option<u64> {
    let (number, unit) = strtod(text)?;
    if kernel >= Kernel::V7_2 && number < 0.0 {
        return None;
    }
    let bits = if unit.is_empty() { number } else { number * rate::unit_scale(unit)? };
    Some(match kernel {
        Kernel::V2_6_35 => u64::from(cast_u32(bits / 8.0)),
        _ => cast_u64(bits / 8.0),
    })
}

/// `get_rate`: bytes per second in 32 bits. What does not fit is refused; 2.6.35 cuts it.
pub fn rate32(text: &str, kernel: Kernel) -> Option<u32> {
    let (number, unit) = strtod(text)?;
    if kernel >= Kernel::V7_2 && number < 0.0 {
        return None;
    }
    let bytes = if unit.is_empty() { number } else { number * rate::unit_scale(unit)? } / 8.0;
    let cut = cast_u32(bytes);
    (kernel == Kernel::V2_6_35 || f64::from(cut) == bytes.floor()).then_some(cut)
}

/// `get_size`: bytes. Since 2018 what does not fit 32 bits is refused; 2.6.35 cuts it.
pub fn size(text: &str, kernel: Kernel) -> Option<u32> {
    let (number, unit) = strtod(text)?;
    if kernel >= Kernel::V7_2 && number < 0.0 {
        return None;
    }
    let bytes = number * size::unit_scale(unit)?;
    let cut = cast_u32(bytes);
    (kernel == Kernel::V2_6_35 || f64::from(cut) == bytes.floor()).then_some(cut)
}

/// What helps where a burst takes more ticks than 32 bits hold.
pub const BURST_HELP: &str = "fewer bytes: it takes 274 s of the rate at most";

/// `get_size64`: bytes. Before 7 what does not fit 32 bits is refused or cut.
pub fn size64(text: &str, kernel: Kernel) -> Option<u64> {
    if kernel < Kernel::V7_2 {
        return size(text, kernel).map(u64::from);
    }
    let (number, unit) = strtod(text)?;
    let bytes = number * size::unit_scale(unit)?;
    let whole = bytes as u64;
    (number >= 0.0 && whole < u64::MAX && whole as f64 == bytes.floor()).then_some(whole)
}

/// `get_size64_and_cell`: `15k` or `15k/8`, the cell as its logarithm.
pub fn size64_and_cell(text: &str, kernel: Kernel) -> Option<(u64, Option<u32>)> {
    let Some((bytes, cell)) = text.split_once('/') else {
        return Some((size64(text, kernel)?, None));
    };
    let bytes = size64(bytes, kernel)?;
    let cell = integer(cell, 0)?;
    let log = (0..32).find(|&i| 1i32.wrapping_shl(i) == cell);
    log.map(|l| (bytes, Some(l)))
}

/// `get_size_and_cell`: `15k` or `15k/8`, the cell as its logarithm.
pub fn size_and_cell(text: &str, kernel: Kernel) -> Option<(u32, Option<u32>)> {
    let (bytes, log) = size64_and_cell(text, kernel)?;
    Some((u32::try_from(bytes).ok()?, log))
}

/// `tc_calc_xmittime`: ticks that so many bytes take at a rate. Since 7.2 they are rounded up, and at most what 32 bits hold.
pub fn xmittime(rate: u64, size: u64, kernel: Kernel) -> u32 {
    match kernel {
        Kernel::V7_2 => psched::xmittime_up(rate, size),
        Kernel::V2_6_35 | Kernel::V6_12 => psched::xmittime(rate, size as u32),
    }
}

/// `get_time`: microseconds; without a unit microseconds.
pub fn time(text: &str) -> Option<u32> {
    let (number, unit) = strtod(text)?;
    let scale = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" => 1_000_000.0,
        "ms" | "msec" | "msecs" => 1000.0,
        "" | "us" | "usec" | "usecs" => 1.0,
        _ => return None,
    };
    Some(cast_u32(number * scale))
}

/// `get_time64`: nanoseconds; without a unit nanoseconds.
pub fn time64(text: &str) -> Option<i64> {
    let (number, unit) = strtod(text)?;
    let scale = match unit.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" => 1e9,
        "ms" | "msec" | "msecs" => 1e6,
        "us" | "usec" | "usecs" => 1e3,
        "" | "ns" | "nsec" | "nsecs" => 1.0,
        _ => return None,
    };
    let ns = number * scale;
    // A C cast of what does not fit gives the least number there is.
    Some(if (-9.3e18..9.223_372_036_854_775e18).contains(&ns) { ns as i64 } else { i64::MIN })
}

/// `get_qdisc_handle`: `1:`, `1`, `none`. What follows the colon is not looked at; 2.6.35 lets the number overflow.
pub fn qdisc_handle(text: &str, kernel: Kernel) -> Option<Handle> {
    if text == "none" {
        return Some(Handle::UNSPEC);
    }
    let (major, rest) = strtoul(text, 16)?;
    let fits = kernel == Kernel::V2_6_35 || major < 1 << 16;
    (fits && (rest.is_empty() || rest.starts_with(':'))).then_some(Handle((major as u32) << 16))
}

/// `get_tc_classid`: `1:10`, `:10`, `1:`, `root`, `none`, or all 32 bits as one hexadecimal number.
pub fn classid(text: &str, kernel: Kernel) -> Option<Handle> {
    match text {
        "root" => return Some(Handle::ROOT),
        "none" => return Some(Handle::UNSPEC),
        _ => {}
    }
    // The variables of 2.6.35 have 32 bits.
    let cut = |v: u64| if kernel == Kernel::V2_6_35 { u64::from(v as u32) } else { v };
    let (major, rest) = match strtoul(text, 16) {
        Some((v, rest)) => (cut(v), rest),
        None if text.starts_with(':') => (0, text),
        None => return None,
    };
    let Some(minor) = rest.strip_prefix(':') else {
        return rest.is_empty().then_some(Handle(major as u32));
    };
    let (minor, rest) = strtoul(minor, 16).map_or((0, minor), |(v, rest)| (cut(v), rest));
    (rest.is_empty() && major < 1 << 16 && minor < 1 << 16)
        .then_some(Handle((major as u32) << 16 | minor as u32))
}

/// Link layer protocols: ethertype and name, in tc's order (the first that fits is printed).
const PROTOCOLS: [(u16, &str); 54] = [
    (0x0060, "loop"),
    (0x0200, "pup"),
    (0x0201, "pupat"),
    (0x0800, "ip"),
    (0x0805, "x25"),
    (0x0806, "arp"),
    (0x08ff, "bpq"),
    (0x0a00, "ieeepup"),
    (0x0a01, "ieeepupat"),
    (0x6000, "dec"),
    (0x6001, "dna_dl"),
    (0x6002, "dna_rc"),
    (0x6003, "dna_rt"),
    (0x6004, "lat"),
    (0x6005, "diag"),
    (0x6006, "cust"),
    (0x6007, "sca"),
    (0x8035, "rarp"),
    (0x809b, "atalk"),
    (0x80f3, "aarp"),
    (0x8137, "ipx"),
    (0x86dd, "ipv6"),
    (0x8863, "ppp_disc"),
    (0x8864, "ppp_ses"),
    (0x884c, "atmmpoa"),
    (0x8884, "atmfate"),
    (0x0001, "802_3"),
    (0x0002, "ax25"),
    (0x0003, "all"),
    (0x0004, "802_2"),
    (0x0005, "snap"),
    (0x0006, "ddcmp"),
    (0x0007, "wan_ppp"),
    (0x0008, "ppp_mp"),
    (0x0009, "localtalk"),
    (0x000c, "can"),
    (0x0010, "ppptalk"),
    (0x0011, "tr_802_2"),
    (0x0015, "mobitex"),
    (0x0016, "control"),
    (0x0017, "irda"),
    (0x0018, "econet"),
    (0x88ca, "tipc"),
    (0x8892, "profinet"),
    (0x88a2, "aoe"),
    (0x88a4, "ethercat"),
    (0x8100, "802.1Q"),
    (0x88a8, "802.1ad"),
    (0x8847, "mpls_uc"),
    (0x8848, "mpls_mc"),
    (0x6558, "teb"),
    (0x8100, "802.1Q"),
    (0x88cc, "LLDP"),
    (0x0800, "ipv4"),
];

/// The names a profile's tc knows.
fn protocols(kernel: Kernel) -> impl Iterator<Item = &'static (u16, &'static str)> {
    PROTOCOLS.iter().filter(move |(_, name)| match kernel {
        Kernel::V2_6_35 => {
            !matches!(*name, "profinet" | "ethercat" | "802.1ad" | "mpls_uc" | "mpls_mc" | "teb" | "LLDP")
        }
        _ => true,
    })
}

/// `ll_proto_a2n`: an ethertype in host order by its name or number.
pub fn protocol(text: &str, kernel: Kernel) -> Option<u16> {
    let named = protocols(kernel).find(|(_, name)| name.eq_ignore_ascii_case(text)).map(|p| p.0);
    named.or_else(|| u16(text, 0))
}

/// `ll_proto_n2a`: the name of an ethertype, or `[number]`.
pub fn protocol_name(id: u16, kernel: Kernel, numeric: bool) -> String {
    match protocols(kernel).find(|p| p.0 == id).filter(|_| !numeric) {
        Some((_, name)) => (*name).to_owned(),
        None => format!("[{id}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_by_base() {
        assert_eq!(u32("0x10", 0), Some(16));
        assert_eq!(u32("010", 0), Some(8));
        assert_eq!(u32("0x10", 10), None);
        assert_eq!(u32("ff", 16), Some(255));
        assert_eq!(u32("0xff", 16), Some(255));
        assert_eq!(u32("4294967295", 0), Some(u32::MAX));
        assert_eq!(u32("4294967296", 0), None);
        assert_eq!(u32("-1", 0), None);
        assert_eq!(u32("", 0), None);
        assert_eq!(u32("09", 0), None);
        assert_eq!(u16("65536", 10), None);
        assert_eq!(integer("-14", 0), Some(-14));
        assert_eq!(integer("2147483648", 0), None);
    }

    #[test]
    fn rates_sizes_times() {
        let k = Kernel::V6_12;
        assert_eq!(rate("10mbit", k), Some(1_250_000));
        assert_eq!(rate("220KBIT", k), Some(27_500));
        assert_eq!(rate("0x10kbit", k), Some(2000));
        assert_eq!(rate("8000", k), Some(1000));
        assert_eq!(rate("1e3kbit", k), Some(125_000));
        assert_eq!(rate("-8bit", k), Some(u64::MAX));
        assert_eq!(rate("40gbit", Kernel::V2_6_35), Some(705_032_704));
        assert_eq!(rate("10mbits", k), None);
        assert_eq!(rate("mbit", k), None);
        assert_eq!(size("4gb", k), None);
        assert_eq!(size("4gb", Kernel::V2_6_35), Some(0));
        assert_eq!(size("1.5k", k), Some(1536));
        assert_eq!(size("8kbit", k), Some(1024));
        assert_eq!(size("-1", k), None);
        assert_eq!(size_and_cell("15k/8", k), Some((15_360, Some(3))));
        assert_eq!(size_and_cell("5gb/8", k), None);
        assert_eq!(size64_and_cell("5gb/8", k), None);
        assert_eq!(size64_and_cell("5gb/8", Kernel::V7_2), Some((5 << 30, Some(3))));
        assert_eq!(size64_and_cell("-1", Kernel::V7_2), None);
        assert_eq!(size_and_cell("15k/9", k), None);
        assert_eq!(time("50ms"), Some(50_000));
        assert_eq!(time("7"), Some(7));
        assert_eq!(time("1ns"), None);
        assert_eq!(
            ["1us", "7", "-3ms", "1e99s"].map(time64),
            [Some(1000), Some(7), Some(-3_000_000), Some(i64::MIN)]
        );
        assert_eq!(
            [rate32("34gbit", k), rate32("34.3gbit", k), rate32("40gbit", k), rate32("-8bit", k)],
            [Some(4_250_000_000), Some(4_287_499_999), None, None]
        );
        assert_eq!(rate32("40gbit", Kernel::V2_6_35), Some(705_032_704));
    }

    #[test]
    fn handles() {
        let check =
            |text: &str, id: u32| assert_eq!(classid(text, Kernel::V6_12), Some(Handle(id)), "{text}");
        check("1:10", 0x0001_0010);
        check("0x1:0xa", 0x0001_000a);
        check(":5", 5);
        check("1:", 0x0001_0000);
        check("10", 0x10);
        check("10001", 0x0001_0001);
        check("root", u32::MAX);
        for bad in ["", "x", "1:x", "1:1:1", "1:12345", "12345:1", "1x"] {
            assert_eq!(classid(bad, Kernel::V6_12), None, "{bad}");
        }
        assert_eq!(qdisc_handle("1:5", Kernel::V6_12), Some(Handle(0x0001_0000)));
        assert_eq!(qdisc_handle("12345:", Kernel::V6_12), None);
        assert_eq!(qdisc_handle("12345:", Kernel::V2_6_35), Some(Handle(0x2345_0000)));
    }

    #[test]
    fn protocols_by_name_and_number() {
        assert_eq!(protocol("IP", Kernel::V6_12), Some(0x0800));
        assert_eq!(protocol("ipv4", Kernel::V6_12), Some(0x0800));
        assert_eq!(protocol("802.1q", Kernel::V6_12), Some(0x8100));
        assert_eq!(protocol("0x88a8", Kernel::V6_12), Some(0x88a8));
        assert_eq!(protocol("nonsense", Kernel::V6_12), None);
        assert_eq!(protocol_name(0x0800, Kernel::V6_12, false), "ip");
        assert_eq!(protocol_name(0x1234, Kernel::V6_12, false), "[4660]");
    }
}
