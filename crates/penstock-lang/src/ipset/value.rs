//! Numbers, addresses, ports and protocols as ipset reads them.
//!
//! Follows: ipset 7.17 `lib/parse.c`, `icmp.c`, `icmpv6.c`.

use super::parse::Reader;
use super::{Attributes, Failure};
use crate::iptables::{Family, PROTOCOLS};
use crate::services;

/// What `ipset_strchr` finds: a separator that is neither first nor last.
pub(super) fn separator(text: &str, sep: char) -> Option<usize> {
    let inside = !text.starts_with(sep) && !text.ends_with(sep);
    text.find(sep).filter(|_| inside)
}

/// What a number was refused for.
enum Bad {
    Range,
    Invalid,
}

/// `strtoull` with base 0.
fn strtoull(text: &str) -> Result<u64, Bad> {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = digits.strip_prefix("0x").or(digits.strip_prefix("0X")).filter(|h| !h.is_empty());
    let (digits, radix) = match hex {
        Some(hex) => (hex, 16),
        None if digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(Bad::Invalid);
    }
    let value = u64::from_str_radix(digits, radix).map_err(|_| Bad::Range)?;
    Ok(if negative { value.wrapping_neg() } else { value })
}

/// The words of a number that is refused.
fn bad_number(text: &str, bad: &Bad, least: u64, most: u64) -> String {
    match bad {
        Bad::Range => format!("Syntax error: '{text}' is out of range {least}-{most}"),
        Bad::Invalid => format!("Syntax error: '{text}' is invalid as number"),
    }
}

/// `string_to_number_ll`.
pub(super) fn number(text: &str, least: u64, most: u64) -> Result<u64, String> {
    match strtoull(text) {
        Ok(n) if (least..=most).contains(&n) => Ok(n),
        Ok(_) => Err(bad_number(text, &Bad::Range, least, most)),
        Err(bad) => Err(bad_number(text, &bad, least, most)),
    }
}

/// `string_to_cidr`: first as a byte.
pub(super) fn cidr(text: &str, least: u8, most: u8) -> Result<u8, String> {
    let n = number(text, 0, 255)?;
    match u8::try_from(n).ok().filter(|n| (least..=most).contains(n)) {
        Some(n) => Ok(n),
        None => Err(bad_number(text, &Bad::Range, least.into(), most.into())),
    }
}

/// `ipset_parse_ether`.
pub(super) fn ether(text: &str) -> Option<[u8; 6]> {
    let mut out = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut out {
        let part = parts.next()?;
        *byte = u8::from_str_radix(part, 16).ok().filter(|_| !part.starts_with('+'))?;
    }
    (parts.next().is_none() && text.len() <= 17).then_some(out)
}

/// Names of types and codes of ICMP: the first of a number is shown.
pub(super) const ICMP: &[(&str, u8, u8)] = &[
    ("echo-reply", 0, 0),
    ("pong", 0, 0),
    ("network-unreachable", 3, 0),
    ("host-unreachable", 3, 1),
    ("protocol-unreachable", 3, 2),
    ("port-unreachable", 3, 3),
    ("fragmentation-needed", 3, 4),
    ("source-route-failed", 3, 5),
    ("network-unknown", 3, 6),
    ("host-unknown", 3, 7),
    ("network-prohibited", 3, 9),
    ("host-prohibited", 3, 10),
    ("TOS-network-unreachable", 3, 11),
    ("TOS-host-unreachable", 3, 12),
    ("communication-prohibited", 3, 13),
    ("host-precedence-violation", 3, 14),
    ("precedence-cutoff", 3, 15),
    ("source-quench", 4, 0),
    ("network-redirect", 5, 0),
    ("host-redirect", 5, 1),
    ("TOS-network-redirect", 5, 2),
    ("TOS-host-redirect", 5, 3),
    ("echo-request", 8, 0),
    ("ping", 8, 0),
    ("router-advertisement", 9, 0),
    ("router-solicitation", 10, 0),
    ("ttl-zero-during-transit", 11, 0),
    ("ttl-zero-during-reassembly", 11, 1),
    ("ip-header-bad", 12, 0),
    ("required-option-missing", 12, 1),
    ("timestamp-request", 13, 0),
    ("timestamp-reply", 14, 0),
    ("address-mask-request", 17, 0),
    ("address-mask-reply", 18, 0),
];

/// The same of ICMPv6.
pub(super) const ICMP6: &[(&str, u8, u8)] = &[
    ("no-route", 1, 0),
    ("communication-prohibited", 1, 1),
    ("address-unreachable", 1, 3),
    ("port-unreachable", 1, 4),
    ("packet-too-big", 2, 0),
    ("ttl-zero-during-transit", 3, 0),
    ("ttl-zero-during-reassembly", 3, 1),
    ("bad-header", 4, 0),
    ("unknown-header-type", 4, 1),
    ("unknown-option", 4, 2),
    ("echo-request", 128, 0),
    ("ping", 128, 0),
    ("echo-reply", 129, 0),
    ("pong", 129, 0),
    ("router-solicitation", 133, 0),
    ("router-advertisement", 134, 0),
    ("neighbour-solicitation", 135, 0),
    ("neigbour-solicitation", 135, 0),
    ("neighbour-advertisement", 136, 0),
    ("neigbour-advertisement", 136, 0),
    ("redirect", 137, 0),
];

/// A protocol's name as `/etc/protocols` has it.
pub(super) fn protocol_name(number: u8) -> String {
    let known = PROTOCOLS.iter().filter(|p| p.0 != "all").find(|p| p.1 == number);
    known.map_or_else(|| number.to_string(), |p| p.0.to_owned())
}

fn protocol_number(text: &str) -> Option<u8> {
    let lower = text.to_ascii_lowercase();
    // A name, or what it is in capitals.
    let shown = if text == lower || text == text.to_ascii_uppercase() { lower.as_str() } else { text };
    let name = if lower == "icmpv6" { "ipv6-icmp" } else { shown };
    PROTOCOLS.iter().filter(|p| p.0 != "all").find(|p| p.0 == name).map(|p| p.1)
}

impl Reader {
    fn proto(&self, text: &str) -> Result<u8, Failure> {
        if let Ok(n) = number(text, 0, 255) {
            return Ok(n as u8);
        }
        match protocol_number(text) {
            None => {
                let failed = self.report(&format!("Syntax error: cannot parse '{text}' as a protocol"));
                Err(failed.advise("tcp, udp, sctp, icmp, a number, …"))
            }
            Some(0) => Err(self.report(&format!("Syntax error: Unsupported protocol '{text}'"))),
            Some(n) => Ok(n),
        }
    }

    fn icmp(&self, names: &[(&str, u8, u8)], text: &str, family: &str) -> Result<u16, Failure> {
        let named = names
            .iter()
            .find(|(name, ..)| name.get(..text.len()).is_some_and(|n| n.eq_ignore_ascii_case(text)));
        if let Some((_, ty, code)) = named {
            return Ok(u16::from(*ty) << 8 | u16::from(*code));
        }
        let Some(at) = separator(text, '/') else {
            return Err(self.report(&format!("Cannot parse {text} as an {family} type/code.")));
        };
        let byte = |t: &str| number(t, 0, 255).map_err(|e| self.report(&e));
        Ok((byte(&text[..at])? << 8 | byte(&text[at + 1..])?) as u16)
    }

    /// `ipset_parse_port`: a number, or a service.
    pub(super) fn port(&self, text: &str, proto: &str) -> Result<u16, Failure> {
        let wrong = match number(text, 0, 65_535) {
            Ok(n) => return Ok(n as u16),
            Err(wrong) => wrong,
        };
        let name = text.strip_prefix('[').and_then(|t| t.strip_suffix(']')).unwrap_or(text);
        let known = match proto {
            "tcp" => services::port_of(name, 6),
            "udp" => services::port_of(name, 17),
            _ => services::port(name),
        };
        match known {
            Some(port) => Ok(port),
            // The number's refusal was a warning until then: it has no line.
            None => Err(Failure::other(&format!("{wrong}\ncannot parse '{text}' as a {proto} port"))
                .advise("a number, or a service of /etc/services")),
        }
    }

    fn ports(&self, text: &str, proto: &str, out: &mut Attributes) -> Result<(), Failure> {
        let first = match separator(text, '-').filter(|_| !text.starts_with('[')) {
            Some(at) => {
                out.port_to = Some(self.port(&text[at + 1..], proto)?);
                &text[..at]
            }
            None => text,
        };
        out.port = Some(self.port(first, proto)?);
        Ok(())
    }

    /// `ipset_parse_proto_port`.
    pub(super) fn proto_port(&self, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        // That the protocol is no number was a warning too.
        let warned = |name: &str, mut failed: Failure| {
            if number(name, 0, 255).is_err() {
                let line = format!("\nSyntax error: '{name}' is invalid as number\ncannot parse");
                failed.stderr = failed.stderr.replace("\ncannot parse", &line);
            }
            failed
        };
        let Some(at) = separator(text, ':') else {
            out.proto = Some(6);
            let done = self.ports(text, "tcp", out);
            return match text.strip_suffix(':') {
                Some(name) => done.map_err(|failed| warned(name, failed)),
                None => done,
            };
        };
        let (name, rest) = (&text[..at], &text[at + 1..]);
        let proto = self.proto(name)?;
        out.proto = Some(proto);
        match proto {
            6 | 17 | 132 | 136 => {
                return self.ports(rest, name, out).map_err(|failed| warned(name, failed));
            }
            1 if self.family != Some(Family::Ip) => {
                return Err(self.report("Syntax error: Protocol ICMP can be used with family inet only"));
            }
            1 => out.port = Some(self.icmp(ICMP, rest, "ICMP")?),
            58 if self.family != Some(Family::Ip6) => {
                return Err(self.report("Syntax error: Protocol ICMPv6 can be used with family inet6 only"));
            }
            58 => out.port = Some(self.icmp(ICMP6, rest, "ICMPv6")?),
            _ if rest != "0" => {
                let words =
                    format!("Syntax error: Protocol {name} can be used with pseudo port value 0 only.");
                return Err(self.report(&words).advise("write PROTO:0"));
            }
            _ => out.port = Some(0),
        }
        Ok(())
    }

    /// `ipset_parse_tcp_udp_port`.
    pub(super) fn tcp_udp_port(&self, text: &str, out: &mut Attributes) -> Result<(), Failure> {
        self.proto_port(text, out)?;
        match out.proto.take() {
            Some(6 | 17) => Ok(()),
            _ => Err(self.report("Syntax error: Only protocols TCP and UDP are valid")),
        }
    }

    /// `ipset_parse_skbmark`: hexadecimal with `0x`, as `sscanf` takes it.
    pub(super) fn skbmark(&self, text: &str) -> Result<(u32, u32), Failure> {
        let hex = |t: &str| -> Option<(u32, usize)> {
            let digits = t.strip_prefix("0x")?;
            let digits = digits.strip_prefix("0x").unwrap_or(digits);
            let len = digits.bytes().take_while(u8::is_ascii_hexdigit).count();
            let value = u64::from_str_radix(digits.get(..len.min(16))?, 16).ok()?;
            Some((value as u32, t.len() - digits.len() + len))
        };
        let both = hex(text).and_then(|(mark, len)| {
            let mask = hex(text[len..].strip_prefix('/')?)?;
            Some((mark, mask.0))
        });
        match both.or(hex(text).map(|(mark, _)| (mark, u32::MAX))) {
            Some(mark) => Ok(mark),
            None => Err(self
                .report(
                    "Syntax error: Invalid skbmark format, it should be:  MARK/MASK or MARK (see manpage)",
                )
                .advise("hexadecimal, e.g. 0x10 or 0x10/0xff")),
        }
    }

    /// `ipset_parse_skbprio`.
    pub(super) fn skbprio(&self, text: &str) -> Result<u32, Failure> {
        let hex = |t: &str| {
            let t = t.strip_prefix("0x").unwrap_or(t);
            let len = t.bytes().take_while(u8::is_ascii_hexdigit).count();
            u32::from_str_radix(&t[..len], 16).ok()
        };
        let both = text.split_once(':').and_then(|(major, minor)| Some((hex(major)?, hex(minor)?)));
        match both {
            Some((major, minor)) => Ok(major << 16 | minor & 0xffff),
            None => {
                let words = "Syntax error: Invalid skbprio format, it should be:MAJOR:MINOR (see manpage)";
                Err(self.report(words).advise("a class as tc writes it, e.g. 1:10"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_with_any_base() {
        assert_eq!(number("0x10", 0, 255), Ok(16));
        assert_eq!(number("010", 0, 255), Ok(8));
        assert_eq!(number("256", 0, 255), Err("Syntax error: '256' is out of range 0-255".to_owned()));
        assert_eq!(number("1a", 0, 255), Err("Syntax error: '1a' is invalid as number".to_owned()));
        assert_eq!(number("", 0, 255), Err("Syntax error: '' is invalid as number".to_owned()));
    }

    #[test]
    fn separators_stand_inside() {
        assert_eq!(separator("a-b", '-'), Some(1));
        assert_eq!(separator("-b", '-'), None);
        assert_eq!(separator("b-", '-'), None);
    }
}
