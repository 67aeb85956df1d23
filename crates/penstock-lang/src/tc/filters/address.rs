//! Addresses and prefixes as tc reads them.
//!
//! Follows: iproute2 6.1.0 and 2.6.35 `lib/utils.c` `get_addr_1`, `get_prefix_1`, `get_netmask`, `mask2bits`.

use crate::tc::args::Args;
use crate::tc::{Failure, num};
use penstock_model::Kernel;
use std::net::{Ipv4Addr, Ipv6Addr};

/// `10.3.34.11`, `10/8` (missing parts are zeroes), `10.0.0.0/255.0.0.0`, `any`: the address in host order and the bits
/// of its prefix.
pub fn prefix4(text: &str, kernel: Kernel) -> Option<(u32, u32)> {
    let (name, slash) = split(text);
    if is_any(name) {
        return Some((0, any_bits(slash, 32, kernel)?));
    }
    let address = address4(name)?;
    Some((address, bits(slash, 32)?))
}

/// The same of IPv6, as four words in host order.
pub fn prefix6(text: &str, kernel: Kernel) -> Option<([u32; 4], u32)> {
    let (name, slash) = split(text);
    if is_any(name) {
        return Some(([0; 4], any_bits(slash, 128, kernel)?));
    }
    let octets = address6(name)?;
    let word = |i: usize| u32::from_be_bytes([octets[i], octets[i + 1], octets[i + 2], octets[i + 3]]);
    Some(([word(0), word(4), word(8), word(12)], bits(slash, 128)?))
}

/// `get_addr` of either family, as bytes: what is none is the end of tc.
///
/// # Errors
/// tc's refusal.
pub fn address(args: &Args, text: &str) -> Result<Vec<u8>, Failure> {
    let found = match text {
        _ if text.contains(':') => text.parse::<Ipv6Addr>().ok().map(|a| a.octets().to_vec()),
        "default" | "all" | "any" => Some(Vec::new()),
        _ => address4(text).map(|a| a.to_be_bytes().to_vec()),
    };
    found.ok_or_else(|| {
        let line = format!("Error: any valid address is expected rather than \"{text}\".");
        args.fail(line, 1, "an IPv4 or IPv6 address").aborting()
    })
}

/// The address in these bytes.
pub fn address_text(bytes: &[u8]) -> String {
    if let Ok(four) = <[u8; 4]>::try_from(bytes) {
        return Ipv4Addr::from(four).to_string();
    }
    <[u8; 16]>::try_from(bytes).map_or_else(|_| "???".to_owned(), |six| Ipv6Addr::from(six).to_string())
}

fn split(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((name, bits)) => (name, Some(bits)),
        None => (text, None),
    }
}

fn is_any(name: &str) -> bool {
    matches!(name, "default" | "all" | "any")
}

/// `any/8` is an address like others to the tc of 2010, and refused today.
fn any_bits(slash: Option<&str>, all: u32, kernel: Kernel) -> Option<u32> {
    match slash {
        None => Some(0),
        Some(_) if kernel == Kernel::V2_6_35 => bits(slash, all),
        Some(_) => None,
    }
}

/// An IPv4 address in host order.
pub fn address4(text: &str) -> Option<u32> {
    let mut address = [0u8; 4];
    let mut rest = text;
    for (i, octet) in address.iter_mut().enumerate() {
        let (n, after) = num::strtoul(rest, 0)?;
        *octet = u8::try_from(n).ok()?;
        if after.is_empty() {
            break;
        }
        if i == 3 {
            return None;
        }
        rest = after.strip_prefix('.')?;
    }
    Some(u32::from_be_bytes(address))
}

/// An IPv6 address.
pub fn address6(text: &str) -> Option<[u8; 16]> {
    Some(text.parse::<Ipv6Addr>().ok()?.octets())
}

fn bits(slash: Option<&str>, all: u32) -> Option<u32> {
    let Some(text) = slash else { return Some(all) };
    let bits = match num::u32(text, 0) {
        Some(n) => n,
        None => mask_bits(address4(text)?)?,
    };
    (bits <= all).then_some(bits)
}

/// `mask2bits`: how long a prefix this mask is of, where it is of one.
pub fn mask_bits(mask: u32) -> Option<u32> {
    let host = !mask;
    (host & host.wrapping_add(1) == 0).then(|| mask.leading_ones())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes() {
        assert_eq!(prefix4("10.3.34.11", Kernel::V6_12), Some((0x0a03_220b, 32)));
        assert_eq!(prefix4("10/8", Kernel::V6_12), Some((0x0a00_0000, 8)));
        assert_eq!(prefix4("192.168.0.0/255.255.0.0", Kernel::V6_12), Some((0xc0a8_0000, 16)));
        assert_eq!(prefix4("any", Kernel::V6_12), Some((0, 0)));
        assert_eq!(prefix4("0/0", Kernel::V6_12), Some((0, 0)));
        for bad in ["", "10.", "10.0.0.0.0", "256.0.0.1", "10.0.0.0/33", "10.0.0.0/255.0.255.0", "x", "1::2"]
        {
            assert_eq!(prefix4(bad, Kernel::V6_12), None, "{bad}");
        }
        assert_eq!(prefix6("2001:db8::/32", Kernel::V6_12), Some(([0x2001_0db8, 0, 0, 0], 32)));
        assert_eq!(prefix6("10.0.0.1", Kernel::V6_12), None);
        assert_eq!(mask_bits(0xff00_ff00), None);
        assert_eq!(mask_bits(u32::MAX), Some(32));
    }
}
