//! The values of flower's words.
//!
//! Follows: iproute2 6.1.0 `tc/f_flower.c` `flower_parse_*`, `lib/ll_addr.c` `ll_addr_a2n`, `lib/utils.c` `get_prefix`.

use crate::tc::args::Args;
use crate::tc::filters::address::{address4, prefix4, prefix6};
use crate::tc::{Failure, num};

/// Splits off a mask.
pub fn halves(text: &str) -> (&str, Option<&str>) {
    match text.split_once('/') {
        Some((value, mask)) => (value, Some(mask)),
        None => (text, None),
    }
}

/// `get_u8` and the like: a number of up to `max`.
pub fn number(text: &str, base: u32, max: u32) -> Option<u32> {
    num::u32(text, base).filter(|&n| n <= max)
}

/// What tc says of a hardware address before it refuses it.
pub type Said = String;

/// `ll_addr_a2n`: octets with colons, or an IPv4 address; what is not given is 0.
pub fn hardware(text: &str) -> Result<[u8; 6], Said> {
    let mut octets = [0; 6];
    if text.contains('.') {
        let address = address4(text).ok_or_else(|| format!("\"{text}\" is invalid lladdr.\n"))?;
        octets[..4].copy_from_slice(&address.to_be_bytes());
        return Ok(octets);
    }
    let mut rest = Some(text);
    for octet in &mut octets {
        let Some(text) = rest else { break };
        let (part, after) = match text.split_once(':') {
            Some((part, after)) => (part, Some(after)),
            None => (text, None),
        };
        let value = num::strtoul(part, 16).map(|(n, _)| n as u32 as i32).filter(|n| (0..=255).contains(n));
        *octet = value.ok_or_else(|| format!("\"{part}\" is invalid lladdr.\n"))? as u8;
        rest = after;
    }
    Ok(octets)
}

/// `flower_parse_eth_addr`: address and mask. A mask may be a number of bits.
pub fn masked_hardware(text: &str) -> Result<([u8; 6], [u8; 6]), Said> {
    let (value, mask) = halves(text);
    let value = hardware(value)?;
    let Some(mask) = mask else { return Ok((value, [0xff; 6])) };
    let Some(bits) = num::u32(mask, 10) else { return Ok((value, hardware(mask)?)) };
    // The processor shifts by the number's last six bits.
    let shifted = 0xffff_ffff_ffffu64 << (64u32.wrapping_sub(bits) & 63);
    let mut octets = [0; 6];
    octets.copy_from_slice(&shifted.to_be_bytes()[..6]);
    Ok((value, octets))
}

/// A prefix as address and mask, both empty where tc has an address of no bytes (`any`).
pub struct Prefix {
    pub six: bool,
    pub address: Vec<u8>,
    pub mask: Vec<u8>,
}

/// `get_prefix`, which ends tc where it finds none. `six`: the family asked for, or whatever it is.
pub fn prefix(args: &Args, text: &str, six: Option<bool>) -> Result<Prefix, Failure> {
    let name = halves(text).0;
    if matches!(name, "any" | "all" | "default") && !text.contains('/') {
        return Ok(Prefix { six: six.unwrap_or(true), address: Vec::new(), mask: Vec::new() });
    }
    let bits_mask = |bits: u32| if bits == 0 { 0 } else { u128::MAX << (128 - bits) };
    let is_six = name.contains(':');
    let found = match is_six {
        false if six != Some(true) => prefix4(text, args.kernel()).map(|(address, bits)| Prefix {
            six: false,
            address: address.to_be_bytes().to_vec(),
            mask: bits_mask(bits).to_be_bytes()[..4].to_vec(),
        }),
        true if six != Some(false) => prefix6(text, args.kernel()).map(|(words, bits)| Prefix {
            six: true,
            address: words.iter().flat_map(|w| w.to_be_bytes()).collect(),
            mask: bits_mask(bits).to_be_bytes().to_vec(),
        }),
        _ => None,
    };
    found.ok_or_else(|| {
        let family = match six {
            None => "any valid",
            Some(false) => "inet",
            Some(true) => "inet6",
        };
        let line = format!("Error: {family} prefix is expected rather than \"{text}\".");
        args.fail(line, 1, "an address, with /BITS for a whole network").aborting()
    })
}

/// `hex2mem` of the first `text.len() / 2` pairs.
pub fn pairs(text: &str) -> Option<Vec<u8>> {
    let digit = |c: u8| char::from(c).to_digit(16);
    text.as_bytes().chunks_exact(2).map(|p| Some((digit(p[0])? << 4 | digit(p[1])?) as u8)).collect()
}

/// `flower_parse_ct_state`: flags and mask.
pub fn ct_state(text: &str) -> Option<(u32, u32)> {
    let (mut flags, mut mask) = (0, 0);
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let set = match sign {
            '+' => true,
            '-' => false,
            _ => return None,
        };
        let word = &rest[1..];
        let (name, flag) = super::CT_STATES.iter().find(|(name, _)| word.starts_with(name))?;
        if set {
            flags |= flag;
        }
        mask |= flag;
        rest = &word[name.len()..];
    }
    Some((flags, mask))
}

/// `flower_parse_matching_flags`.
pub fn flags(text: &str, known: &[(&str, u32)], value: &mut u32, mask: &mut u32) -> Option<()> {
    for token in text.split('/').filter(|t| !t.is_empty()) {
        let (no, name) = match token.strip_prefix("no") {
            Some(name) => (true, name),
            None => (false, token),
        };
        let flag = known.iter().find(|(n, _)| *n == name)?.1;
        *value = if no { *value & !flag } else { *value | flag };
        *mask |= flag;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hardware_addresses_and_masks() {
        assert_eq!(masked_hardware("1:2:3:4:5:6"), Ok(([1, 2, 3, 4, 5, 6], [0xff; 6])));
        assert_eq!(masked_hardware("aa:bb/20").map(|m| m.1), Ok([0xff, 0xff, 0xf0, 0, 0, 0]));
        assert_eq!(masked_hardware("aa:bb/ff:0:0:0:0:1").map(|m| m.1), Ok([0xff, 0, 0, 0, 0, 1]));
        assert_eq!(masked_hardware("100:2"), Err("\"100\" is invalid lladdr.\n".to_owned()));
        assert_eq!(hardware("10.0.0.1"), Ok([10, 0, 0, 1, 0, 0]));
    }

    #[test]
    fn states_of_connections() {
        assert_eq!(ct_state("+trk-new"), Some((8, 9)));
        assert_eq!(ct_state(""), Some((0, 0)));
        assert_eq!(ct_state("trk"), None);
        assert_eq!(ct_state("+foo"), None);
    }
}
