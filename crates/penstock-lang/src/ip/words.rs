//! A cursor over the words of a line, and what ip reads from single words.
//!
//! Follows: iproute2 6.1.0 `lib/utils.c` (`NEXT_ARG`, `matches`, `get_u32`, `get_prefix`, `invarg`, `duparg`), `lib/ll_addr.c`.

use super::{Failure, Net};
use crate::token::Word;
use penstock_model::{Kernel, ifname};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) type Parsed<T> = Result<T, Failure>;

/// Which addresses are meant: `-4`, `-6`, or what is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Family {
    /// Not said.
    #[default]
    Any,
    /// `-4`.
    Inet,
    /// `-6`.
    Inet6,
    /// `-0`.
    Link,
    /// Another that is known and has nothing here: `-B`, `-M`.
    Other,
}

pub(super) struct Words<'a> {
    pub(super) words: &'a [Word],
    pub(super) at: usize,
    pub(super) kernel: Kernel,
}

/// iproute2's `matches`: `word` is a beginning of `full`.
pub(super) fn matches(word: &str, full: &str) -> bool {
    !word.is_empty() && full.starts_with(word)
}

impl Words<'_> {
    pub(super) fn peek(&self) -> Option<&str> {
        self.words.get(self.at).map(|w| w.text.as_str())
    }
    pub(super) fn next(&mut self) -> Option<String> {
        let text = self.peek()?.to_owned();
        self.at += 1;
        Some(text)
    }
    /// Fails at the word just read.
    pub(super) fn fail<T>(&self, exit: i32, message: impl AsRef<str>, help: &str) -> Parsed<T> {
        let stderr = format!("{}\n", message.as_ref());
        Err(Failure { stderr, exit, word: self.at.saturating_sub(1), help: help.to_owned() })
    }
    pub(super) fn usage<T>(&self, text: &str) -> Parsed<T> {
        Err(Failure {
            stderr: text.to_owned(),
            exit: 255,
            word: self.at.saturating_sub(1),
            help: String::new(),
        })
    }
    /// `NEXT_ARG`.
    pub(super) fn value(&mut self) -> Parsed<String> {
        match self.next() {
            Some(text) => Ok(text),
            None => {
                self.fail(255, "Command line is not complete. Try option \"help\"", "a value is missing here")
            }
        }
    }
    pub(super) fn unknown_command<T>(&self, command: &str, object: &str) -> Parsed<T> {
        let message = format!("Command \"{command}\" is unknown, try \"ip {object} help\".");
        self.fail(255, message, "")
    }
    /// `invarg`.
    pub(super) fn invalid<T>(&self, text: &str, why: &str) -> Parsed<T> {
        self.fail(255, format!("Error: argument \"{text}\" is wrong: {why}"), "")
    }
    /// `duparg` and `duparg2`, whose sentences differ.
    pub(super) fn twice<T>(&self, name: &str, text: &str) -> Parsed<T> {
        self.fail(255, format!("Error: duplicate \"{name}\": \"{text}\" is the second value."), "")
    }
    pub(super) fn duplicate<T>(&self, name: &str, text: &str) -> Parsed<T> {
        let message = format!("Error: either \"{name}\" is duplicate, or \"{text}\" is a garbage.");
        self.fail(255, message, "")
    }
    /// `get_prefix`.
    pub(super) fn prefix(&self, text: &str, family: Family) -> Parsed<Net> {
        let (addr, len) = match text.split_once('/') {
            Some((addr, len)) => (addr, Some(len)),
            None => (text, None),
        };
        let parsed = match address(addr, family) {
            Some(addr) => match len {
                None if matches!(addr, IpAddr::V4(_)) => Some(Net { addr, len: 32 }),
                None => Some(Net { addr, len: 128 }),
                Some(len) => mask_len(len, addr.is_ipv4()).map(|len| Net { addr, len }),
            },
            None => None,
        };
        match parsed {
            // `default` and `any` have no length.
            Some(net) if matches!(addr, "default" | "any" | "all") && len.is_none() => {
                Ok(Net { len: 0, ..net })
            }
            Some(net) => Ok(net),
            None => {
                let what = self.family_word(family);
                let message = format!("Error: {what} prefix is expected rather than \"{text}\".");
                self.fail(1, message, "e.g. 10.3.31.88/24")
            }
        }
    }
    fn family_word(&self, family: Family) -> &'static str {
        match (self.kernel, family) {
            (Kernel::V2_6_35, _) => "an inet",
            (_, Family::Any) => "any valid",
            (_, Family::Inet6) => "inet6",
            _ => "inet",
        }
    }
    /// `get_addr`.
    pub(super) fn addr(&self, text: &str, family: Family) -> Parsed<IpAddr> {
        match address(text, family) {
            Some(addr) => Ok(addr),
            None => {
                let what = self.family_word(family);
                let message = format!("Error: {what} address is expected rather than \"{text}\".");
                self.fail(1, message, "e.g. 10.3.31.88")
            }
        }
    }
    /// The next word as a number, hexadecimal behind `0x`.
    pub(super) fn number(&mut self, why: &str) -> Parsed<u32> {
        let text = self.value()?;
        match number(&text) {
            Some(n) => Ok(n),
            None => self.invalid(&text, why),
        }
    }
    /// `get_integer`.
    pub(super) fn integer(&mut self, why: &str) -> Parsed<i64> {
        let text = self.value()?;
        let parsed = match text.strip_prefix('-') {
            Some(rest) => number(rest).map(|n| -i64::from(n)),
            None => number(&text).map(i64::from),
        };
        match parsed.filter(|n| i32::try_from(*n).is_ok()) {
            Some(n) => Ok(n),
            None => self.invalid(&text, why),
        }
    }
    /// `parse_on_off` of `ip link`.
    pub(super) fn on_off(&mut self, name: &str) -> Parsed<bool> {
        match self.value()?.as_str() {
            "on" => Ok(true),
            "off" => Ok(false),
            other => {
                let message =
                    format!("Error: argument of \"{name}\" must be \"on\" or \"off\", not \"{other}\"");
                self.fail(1, message, "")
            }
        }
    }
    /// `ll_addr_a2n`: bytes in hexadecimal.
    pub(super) fn lladdr(&mut self) -> Parsed<Vec<u8>> {
        let text = self.value()?;
        if text.contains('.') {
            return match address(&text, Family::Inet) {
                Some(IpAddr::V4(addr)) => Ok(addr.octets().to_vec()),
                _ => self.fail(
                    1,
                    format!("\"{text}\" is invalid lladdr."),
                    "six bytes in hex, 02:00:00:00:00:01",
                ),
            };
        }
        let mut bytes = Vec::new();
        let mut rest = Some(text.as_str());
        while let Some(part) = rest {
            let (byte, more) = match part.split_once(':') {
                Some((byte, more)) => (byte, Some(more)),
                None => (part, None),
            };
            let read = u8::from_str_radix(byte, 16).ok().filter(|_| !byte.starts_with('+'));
            let Some(read) = read else {
                let message = format!("\"{byte}\" is invalid lladdr.");
                return self.fail(1, message, "six bytes in hex, 02:00:00:00:00:01");
            };
            bytes.push(read);
            rest = more;
        }
        Ok(bytes)
    }
    pub(super) fn need_dev<T>(&self, exit: i32) -> Parsed<T> {
        self.fail(exit, "Not enough information: \"dev\" argument is required.", "e.g. dev eth0")
    }
}

/// `get_u32` and the like with base 0: decimal, `0x` hexadecimal, `0` octal.
pub(super) fn number(text: &str) -> Option<u32> {
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None if text.len() > 1 && text.starts_with('0') => (&text[1..], 8),
        None => (text, 10),
    };
    if digits.starts_with('+') { None } else { u32::from_str_radix(digits, radix).ok() }
}

/// `check_ifname`: whether a device may have this name.
pub(super) fn is_ifname(name: &str) -> bool {
    !name.is_empty() && name.len() <= ifname::MAX && is_altifname(name)
}

/// `check_altifname`.
pub(super) fn is_altifname(name: &str) -> bool {
    !name.is_empty() && name.len() < 128 && !name.bytes().any(|b| b == b'/' || ifname::is_space(b))
}

/// A prefix length, or a mask that is one.
pub(crate) fn mask_len(text: &str, v4: bool) -> Option<u8> {
    let most = if v4 { 32 } else { 128 };
    if let Ok(n) = text.parse::<u8>() {
        return (n <= most && !text.starts_with('+')).then_some(n);
    }
    let mask = u32::from(text.parse::<Ipv4Addr>().ok()?);
    let len = mask.leading_ones();
    (v4 && mask.checked_shl(len).unwrap_or(0) == 0).then_some(len as u8)
}

/// An address; of IPv4 the last parts may be missing: `10.3` is 10.3.0.0.
pub(crate) fn address(text: &str, family: Family) -> Option<IpAddr> {
    if matches!(text, "default" | "any" | "all") {
        return Some(match family {
            Family::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            _ => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        });
    }
    if text.contains(':') {
        return text.parse::<Ipv6Addr>().ok().filter(|_| family != Family::Inet).map(IpAddr::V6);
    }
    if family == Family::Inet6 {
        return None;
    }
    let mut octets = [0u8; 4];
    for (i, part) in text.split('.').enumerate() {
        if i == 4 || part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        octets[i] = part.parse().ok()?;
    }
    Some(IpAddr::V4(Ipv4Addr::from(octets)))
}
