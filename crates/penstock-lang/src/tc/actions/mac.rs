//! Hardware addresses as the kinds read them.

use super::bad;
use crate::tc::Failure;
use crate::tc::args::Args;
use penstock_model::Options;

/// `sscanf("%x")`: a hexadecimal number at the beginning, with the rest.
fn scan_hex(text: &str) -> Option<(i64, &str)> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\x0b', '\x0c', '\r']);
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
    let end = digits.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(digits.len());
    let value = i64::from_str_radix(&digits[..end.min(15)], 16).ok()?;
    Some((sign * value, &digits[end..]))
}

/// `ll_addr_a2n` of six bytes: parts that are missing are zeroes; an address with dots is one of IP.
///
/// # Errors
/// What tc says of it, and the part at which it stopped, to which it has cut the word.
pub fn link_address(text: &str) -> Result<Vec<u8>, (String, String)> {
    if text.contains('.') {
        let Ok(address) = text.parse::<std::net::Ipv4Addr>() else {
            return Err((format!("\"{text}\" is invalid lladdr."), text.to_owned()));
        };
        let mut mac = address.octets().to_vec();
        mac.resize(6, 0);
        return Ok(mac);
    }
    let mut mac = vec![0; 6];
    let first = text.split(':').next().unwrap_or("");
    for (byte, part) in mac.iter_mut().zip(text.split(':')) {
        let found = scan_hex(part).and_then(|(n, _)| u8::try_from(n).ok());
        *byte = found.ok_or_else(|| (format!("\"{part}\" is invalid lladdr."), first.to_owned()))?;
    }
    Ok(mac)
}

/// The same as the value of a word; a bad one is the end of tc.
///
/// # Errors
/// tc's refusal.
pub fn link_address_or(args: &Args, text: &str, wrong: &str) -> Result<Vec<u8>, Failure> {
    link_address(text).map_err(|(line, cut)| {
        let help = "six hexadecimal bytes, e.g. 02:00:00:00:00:01";
        args.invarg(wrong, &cut, help).also(&line)
    })
}

/// `sscanf("%hhx:%hhx:…")`: six numbers with colons; what follows is not looked at.
pub fn six_bytes(text: &str) -> Option<Vec<u8>> {
    let mut rest = text;
    let mut mac = Vec::new();
    for i in 0..6 {
        if i > 0 {
            rest = rest.strip_prefix(':')?;
        }
        let (n, after) = scan_hex(rest)?;
        mac.push(n as u8);
        rest = after;
    }
    Some(mac)
}

/// The value of `dmac` and the like, said aloud.
///
/// # Errors
/// `line` with the word in place of `%s`.
pub fn said_aloud(args: &mut Args, word: &str, name: &str, line: &str) -> Result<Vec<u8>, Failure> {
    let help = "six hexadecimal bytes, e.g. 02:00:00:00:00:01";
    let mac = six_bytes(word).ok_or_else(|| bad(args, line.replace("%s", word), help))?;
    args.said.push(crate::tc::Command::Help(format!("{name} MAC address <{word}>\n")));
    Ok(mac)
}

/// `ll_addr_n2a`.
pub fn text(mac: &[u8]) -> String {
    mac.iter().map(|b| format!("{b:02x}")).collect::<Vec<_>>().join(":")
}

/// The address under this name.
pub fn of(o: &Options, name: &str) -> Option<String> {
    o.bytes(name).map(text)
}
