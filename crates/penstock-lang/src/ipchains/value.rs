//! Single values of a line, and what is said of wrong ones.

use super::{BUILT_IN, Failure, MAX_LABEL, Mark, Range, VERSION};
use crate::iptables::{AddrMatch, Family};
use crate::services;

pub(super) fn fault<T>(message: impl AsRef<str>) -> Result<T, Failure> {
    Err(Failure::parameter(message, ""))
}

pub(super) fn try_help() -> Failure {
    let stderr = "Try `ipchains -h' or 'ipchains --help' for more information.\n".to_owned();
    Failure { stderr, exit: 2, help: String::new() }
}

/// A decimal number of a range, blanks in front allowed as `strtol` does.
pub(super) fn number(text: &str, least: i64, most: i64) -> Option<i64> {
    let n: i64 = text.trim_start().parse().ok()?;
    (least..=most).contains(&n).then_some(n)
}

pub(super) fn rule_number(word: &str) -> Result<u32, Failure> {
    match number(word, 1, i64::from(i32::MAX)) {
        Some(n) => Ok(n as u32),
        None => fault(format!("Invalid rule number `{word}'")),
    }
}

pub(super) fn policy(chain: &str, policy: &str) -> Result<String, Failure> {
    if policy == "MASQ" && chain != "forward" {
        return fault("`-P MASQ' only valid for `forward' chain.");
    }
    if policy == "MASQ" {
        return Ok(policy.to_owned());
    }
    if !BUILT_IN.contains(&chain) {
        return fault("Can only set policy in built-in chains.");
    }
    if !["ACCEPT", "DENY", "REJECT"].contains(&policy) {
        return fault(format!("Invalid policy `{policy}' for -P"));
    }
    Ok(policy.to_owned())
}

pub(super) fn protocol(word: &str) -> Result<u16, Failure> {
    if let Some(n) = number(word, 0, 0xffff) {
        return Ok(n as u16);
    }
    let known = crate::iptables::PROTOCOLS.iter().find(|p| p.0.eq_ignore_ascii_case(word));
    match known {
        Some(p) => Ok(p.1.into()),
        None if word.eq_ignore_ascii_case("all") => Ok(0),
        None => fault(format!("unknown protocol `{word}' specified")),
    }
}

pub(super) fn target(name: String) -> Result<String, Failure> {
    if name.is_empty() {
        return fault("Invalid target name (too short)");
    }
    if name.len() > MAX_LABEL {
        return fault(format!("Invalid target name `{name}' ({MAX_LABEL} chars max)"));
    }
    if name.contains(char::is_whitespace) {
        return fault(format!("Invalid target name `{name}'"));
    }
    Ok(name)
}

pub(super) fn address(text: &str, invert: bool) -> Result<AddrMatch, Failure> {
    let (name, mask) = match text.rsplit_once('/') {
        None => (text, Family::Ip.mask(32)),
        Some((name, mask)) => match (Family::Ip.parse(mask), number(mask, 0, 32)) {
            (Some(mask), _) => (name, mask),
            (None, Some(bits)) => (name, Family::Ip.mask(bits as u32)),
            (None, None) => return fault(format!("invalid mask `{mask}' specified")),
        },
    };
    if mask == 0 {
        return Ok(AddrMatch { addr: 0, mask, invert });
    }
    match Family::Ip.parse(name) {
        Some(addr) => Ok(AddrMatch { addr: addr & mask, mask, invert }),
        None => Err(Failure::parameter(
            format!("host/network `{name}' not found"),
            "write the address; names are not looked up",
        )),
    }
}

pub(super) fn ports(text: Option<&str>, protocol: u16, invert: bool) -> Result<Range, Failure> {
    let Some(text) = text else { return Ok(Range::ANY) };
    let (from, to) = match text.split_once(':') {
        None => {
            let port = parse_port(text, protocol)?;
            (port, port)
        }
        Some((from, to)) => (
            if from.is_empty() { 0 } else { parse_port(from, protocol)? },
            if to.is_empty() { 0xffff } else { parse_port(to, protocol)? },
        ),
    };
    Ok(Range { from, to, invert })
}

pub(super) fn parse_port(word: &str, protocol: u16) -> Result<u16, Failure> {
    if !matches!(protocol, 1 | 6 | 17) {
        return fault("can only specify ports for icmp, tcp or udp");
    }
    if let Some(n) = number(word, 0, 0xffff) {
        return Ok(n as u16);
    }
    if protocol == 1 {
        return fault(format!("invalid ICMP type `{word}' specified"));
    }
    match services::port(word) {
        Some(port) => Ok(port),
        None => fault(format!("invalid port/service `{word}' specified")),
    }
}

/// `-m [+-]N`, in any base of C's.
pub(super) fn mark(text: &str) -> Result<Mark, Failure> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let parsed = match digits.strip_prefix("0x").or(digits.strip_prefix("0X")) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None if digits.len() > 1 && digits.starts_with('0') => u32::from_str_radix(&digits[1..], 8),
        None => digits.parse(),
    };
    match parsed {
        Ok(n) if text.starts_with('-') => Ok(Mark::Add(n.wrapping_neg())),
        Ok(n) if text.starts_with('+') => Ok(Mark::Add(n)),
        Ok(n) => Ok(Mark::Set(n)),
        Err(_) => fault(format!("Bad value `{text}' for -m.\n")),
    }
}

pub(super) fn hexbyte(text: &str) -> Result<u8, Failure> {
    let digits = text.strip_prefix("0x").or(text.strip_prefix("0X")).unwrap_or(text);
    match u8::from_str_radix(digits, 16) {
        Ok(n) => Ok(n),
        Err(_) => fault(format!("invalid hexbyte `{text}' specified")),
    }
}

/// Kinds of service: the ToS byte and its name in warnings.
const SERVICES: [(u8, &str); 5] = [
    (0x10, "Minimize Delay"),
    (0x08, "Minimize Throughput"),
    (0x04, "Maximize Reliability"),
    (0x02, "Minimize Cost"),
    (0x00, "Normal Service"),
];

/// What RFC 1349 has against changes of the ToS byte; the warnings, unless they are not wanted.
pub(super) fn check_tos((and, xor): (u8, u8), quiet: bool) -> Result<String, Failure> {
    let bits = |pattern: u8| (pattern & 0x0e).count_ones();
    if and & 1 == 0 || xor & 1 == 1 {
        return fault("TOS manipulation cannot alter bit 0 (RFC1349)\n");
    }
    if bits(!and & xor) > 1 {
        return fault("TOS manipulation cannot set multiple TOS bits (RFC1349)\n");
    }
    let mut out = String::new();
    for (tos, name) in SERVICES.iter().filter(|(tos, _)| !quiet && bits((tos & and) ^ xor) > 1) {
        out += &format!("Warning: TOS manipulation may set multiple TOS bits for {name} TOS (0x{tos:02x})\n");
    }
    Ok(out)
}

/// `-h`, in our words.
pub(super) fn help() -> String {
    format!(
        "{VERSION}\n\n\
         ipchains -A CHAIN RULE          put a rule at the end of a chain\n\
         ipchains -I CHAIN [N] RULE      put it before rule N (1)\n\
         ipchains -R CHAIN N RULE        put it in the place of rule N\n\
         ipchains -D CHAIN RULE|N        take a rule away\n\
         ipchains -L|-F|-Z|-X [CHAIN]    list, empty, zero, delete one chain or all\n\
         ipchains -N CHAIN               make a chain\n\
         ipchains -P CHAIN POLICY        ACCEPT, DENY or REJECT what no rule decides on\n\n\
         RULE: [-p [!] PROTO] [-s|-d [!] ADDR[/MASK] [[!] PORT[:PORT]]] [--sport|--dport|--icmp-type [!] …]\n\
         [-i [!] NAME[+]] [!] [-f] [!] [-y] [-b] [-l] [-m [+-]MARK] [-t AND XOR] [-j TARGET [PORT]]\n"
    )
}
