//! Options of extensions: their tables and their values.
//!
//! Follows: iptables 1.8.9 `libxtables/xtoptions.c`.

use super::Family;
use crate::services;

/// What an option's value is.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Kind {
    /// No value.
    None,
    /// Text of so many bytes; 0 for no limit.
    Text(usize, usize),
    /// A number within.
    Int(u64, u64),
    /// Numbers between colons, each up to the maximum; at most two.
    Range(u64),
    /// A fraction of 1.
    Probability,
    /// `value/mask`.
    Mark,
    /// `value/mask` or a name with this mask.
    Tos(u8),
    /// An address.
    Host,
    /// An address and a mask.
    HostMask,
    /// A prefix's length.
    Plen,
    /// A protocol.
    Protocol,
    /// Ports between colons.
    Ports,
    /// A hardware address.
    Mac,
    /// A level of syslog.
    Syslog,
}

/// A value as read.
#[derive(Clone, PartialEq, Debug)]
pub(super) enum Value {
    None,
    Text,
    Int(u64),
    /// The numbers, and how many there were.
    Range([u64; 2], usize),
    /// In 2^-31.
    Probability(u32),
    Mark(u32, u32),
    Tos(u8, u8),
    /// Address and mask.
    Net(u128, u128),
    Ports(u16, u16),
    Mac([u8; 6]),
}

/// One option: `id` is the name of the first of several that mean the same.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opt {
    pub name: &'static str,
    pub id: &'static str,
    pub kind: Kind,
    /// It must be given.
    pub must: bool,
    /// It may have a `!`.
    pub invert: bool,
    /// Ids it does not go with.
    pub excl: &'static [&'static str],
    /// Ids it needs.
    pub also: &'static [&'static str],
}

/// An option that may be left out and not be inverted.
pub(super) const fn opt(name: &'static str, kind: Kind) -> Opt {
    Opt { name, id: name, kind, must: false, invert: false, excl: &[], also: &[] }
}

impl Opt {
    pub(super) const fn must(self) -> Opt {
        Opt { must: true, ..self }
    }
    pub(super) const fn inv(self) -> Opt {
        Opt { invert: true, ..self }
    }
    pub(super) const fn id(self, id: &'static str) -> Opt {
        Opt { id, ..self }
    }
    pub(super) const fn excl(self, excl: &'static [&'static str]) -> Opt {
        Opt { excl, ..self }
    }
    pub(super) const fn also(self, also: &'static [&'static str]) -> Opt {
        Opt { also, ..self }
    }
}

/// An option that was given.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct ParsedOption {
    pub id: &'static str,
    pub value: Value,
    pub text: String,
    pub invert: bool,
    /// It was given by another of its names.
    pub old_word: bool,
}

/// A fault: the program's words and our advice.
pub(super) type Fault = (String, String);

pub(super) fn fault<T>(message: impl Into<String>, help: &str) -> Result<T, Fault> {
    Err((message.into(), help.to_owned()))
}

/// What was given to one extension.
#[derive(Clone, PartialEq, Debug, Default)]
pub(super) struct Seen(pub Vec<ParsedOption>);

impl Seen {
    pub(super) fn find(&self, id: &str) -> Option<&ParsedOption> {
        self.0.iter().find(|g| g.id == id)
    }
    pub(super) fn has(&self, id: &str) -> bool {
        self.find(id).is_some()
    }
    pub(super) fn inverted(&self, id: &str) -> bool {
        self.find(id).is_some_and(|g| g.invert)
    }
    pub(super) fn text(&self, id: &str) -> &str {
        self.find(id).map_or("", |g| g.text.as_str())
    }
    pub(super) fn int(&self, id: &str) -> Option<u64> {
        match self.find(id)?.value {
            Value::Int(n) => Some(n),
            _ => None,
        }
    }
    pub(super) fn mark(&self, id: &str) -> Option<(u32, u32)> {
        match self.find(id)?.value {
            Value::Mark(value, mask) => Some((value, mask)),
            _ => None,
        }
    }
    pub(super) fn tos(&self, id: &str) -> Option<(u8, u8)> {
        match self.find(id)?.value {
            Value::Tos(value, mask) => Some((value, mask)),
            _ => None,
        }
    }
    pub(super) fn net(&self, id: &str) -> Option<(u128, u128)> {
        match self.find(id)?.value {
            Value::Net(addr, mask) => Some((addr, mask)),
            _ => None,
        }
    }
    pub(super) fn range(&self, id: &str) -> Option<([u64; 2], usize)> {
        match self.find(id)?.value {
            Value::Range(values, count) => Some((values, count)),
            _ => None,
        }
    }
}

/// `xtables_options_fcheck`: what must be there, what goes with what.
pub(super) fn check_table(ext: &str, table: &[Opt], seen: &Seen) -> Result<(), Fault> {
    let mut ids: Vec<&Opt> = Vec::new();
    for opt in table {
        if ids.iter().all(|o| o.id != opt.id) {
            ids.push(opt);
        }
    }
    for opt in table {
        if opt.must && !seen.has(opt.id) {
            return fault(format!("{ext}: option \"--{}\" must be specified\n", opt.name), "");
        }
        if !seen.has(opt.id) {
            continue;
        }
        for other in ids.iter().filter(|o| o.id != opt.id) {
            if opt.also.contains(&other.id) && !seen.has(other.id) {
                let (one, needs) = (opt.name, other.name);
                return fault(format!("{ext}: option \"--{one}\" also requires \"--{needs}\".\n"), "");
            }
            if opt.excl.contains(&other.id) && seen.has(other.id) {
                let (one, two) = (opt.name, other.name);
                let message =
                    format!("{ext}: option \"--{one}\" cannot be used together with \"--{two}\".\n");
                return fault(message, "take one off");
            }
        }
    }
    Ok(())
}

/// A number as `strtoul` with base 0 reads it: decimal, `0x` hex, leading 0 octal; what follows it.
pub(super) fn number_prefix(text: &str) -> Option<(u64, &str)> {
    let (digits, radix) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(hex) if hex.starts_with(|c: char| c.is_ascii_hexdigit()) => (hex, 16),
        _ if text.starts_with('0') => (text, 8),
        _ => (text, 10),
    };
    let len = digits.bytes().take_while(|b| char::from(*b).is_digit(radix)).count();
    if len == 0 {
        return None;
    }
    let value = u64::from_str_radix(&digits[..len], radix).ok()?;
    Some((value, &digits[len..]))
}

/// A number that is all of the text.
pub(super) fn number(text: &str) -> Option<u64> {
    number_prefix(text).filter(|(_, rest)| rest.is_empty()).map(|(value, _)| value)
}

/// The numbers at the head of a text as `atoi` reads them.
pub(in crate::iptables) fn atoi(text: &str) -> i64 {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    digits[..len].parse::<i64>().map_or(if len == 0 { 0 } else { sign * i64::from(i32::MAX) }, |n| sign * n)
}

/// A port by number or name.
pub(super) fn port(text: &str) -> Option<u16> {
    match number(text) {
        Some(n) => u16::try_from(n).ok(),
        None => services::port(text),
    }
}

/// A port as `getaddrinfo` reads it for the options that 1.8.9 reads by itself (`xtopt_parse_port`): a decimal number as `strtoul` takes it,
/// of which sixteen bits are kept (65616 is 80), or a name.
fn service(text: &str, old: bool) -> Option<u16> {
    if old {
        return port(text);
    }
    let digits = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let digits = digits.strip_prefix('+').unwrap_or(digits);
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return services::port(text);
    }
    // An int that is negative stands for a name.
    let value = digits.parse::<u64>().unwrap_or(u64::MAX) as i32;
    (value >= 0).then_some(value as u16)
}

/// Protocols by name: the program's own, then `/etc/protocols`.
pub(crate) const PROTOCOLS: &[(&str, u8)] = &[
    ("tcp", 6),
    ("sctp", 132),
    ("udp", 17),
    ("udplite", 136),
    ("icmp", 1),
    ("ipv6-icmp", 58),
    ("icmpv6", 58),
    ("esp", 50),
    ("ah", 51),
    ("mobility-header", 135),
    ("ipv6-mh", 135),
    ("mh", 135),
    ("all", 0),
    ("ip", 0),
    ("igmp", 2),
    ("ggp", 3),
    ("ipencap", 4),
    ("st", 5),
    ("egp", 8),
    ("igp", 9),
    ("pup", 12),
    ("hmp", 20),
    ("xns-idp", 22),
    ("rdp", 27),
    ("iso-tp4", 29),
    ("dccp", 33),
    ("xtp", 36),
    ("ddp", 37),
    ("idpr-cmtp", 38),
    ("ipv6", 41),
    ("ipv6-route", 43),
    ("ipv6-frag", 44),
    ("idrp", 45),
    ("rsvp", 46),
    ("gre", 47),
    ("skip", 57),
    ("ipv6-nonxt", 59),
    ("ipv6-opts", 60),
    ("rspf", 73),
    ("vmtp", 81),
    ("eigrp", 88),
    ("ospf", 89),
    ("ax.25", 93),
    ("ipip", 94),
    ("etherip", 97),
    ("encap", 98),
    ("pim", 103),
    ("ipcomp", 108),
    ("vrrp", 112),
    ("l2tp", 115),
    ("isis", 124),
    ("fc", 133),
    ("mpls-in-ip", 137),
    ("manet", 138),
    ("hip", 139),
    ("shim6", 140),
    ("wesp", 141),
    ("rohc", 142),
    ("ethernet", 143),
];

/// `xtables_parse_protocol`.
pub(super) fn protocol(text: &str) -> Option<u8> {
    match number(text) {
        Some(n) => u8::try_from(n).ok(),
        None => PROTOCOLS.iter().find(|(name, _)| *name == text).map(|p| p.1),
    }
}

/// Type of service by name, for masks of 0x3f.
pub(in crate::iptables) const TOS_NAMES: [(&str, u8); 5] = [
    ("Minimize-Delay", 0x10),
    ("Maximize-Throughput", 0x08),
    ("Maximize-Reliability", 0x04),
    ("Minimize-Cost", 0x02),
    ("Normal-Service", 0x00),
];

/// Reads a value; `old` for the words of 1.4.4.
pub(super) fn read(ext: &str, opt: &Opt, text: &str, family: Family, old: bool) -> Result<Value, Fault> {
    let name = opt.id;
    let old_words = |what: &str| fault(format!("{ext}: Bad value for \"--{name}\" option: \"{text}\""), what);
    Ok(match opt.kind {
        Kind::None => Value::None,
        Kind::Text(least, most) => {
            if text.len() < least {
                let message = format!("Argument must have a minimum length of {least} characters\n");
                return fault(message, "");
            }
            if most != 0 && text.len() > most {
                let message = format!("Argument must have a maximum length of {most} characters\n");
                return fault(message, "");
            }
            Value::Text
        }
        Kind::Int(least, most) => match number(text).filter(|n| (least..=most).contains(n)) {
            Some(n) => Value::Int(n),
            None => {
                // A segment's size has to leave room for the IP header (`sizeof(struct iphdr)`).
                let most = match (ext, name, family) {
                    ("TCPMSS", "set-mss", Family::Ip) => most - 20,
                    ("TCPMSS", "set-mss", Family::Ip6) => most - 40,
                    _ => most,
                };
                let range = format!("{least}-{most}");
                if old && (ext, most) == ("DSCP", 63) {
                    let message = format!("DSCP `{text}` out of range\n");
                    return fault(message, "0 to 63 (the ToS byte divided by four)");
                }
                if old {
                    return old_words(&range);
                }
                let message =
                    format!("{ext}: bad value for option \"--{name}\", or out of range ({range}).\n");
                return fault(message, &range);
            }
        },
        Kind::Range(most) => return range(ext, name, text, most, old),
        Kind::Probability => {
            let fraction = text.parse::<f64>().ok().filter(|p| (0.0..=1.0).contains(p));
            let Some(p) = fraction else {
                let message = format!("{ext}: bad value for option \"--{name}\", or out of range (0-1).\n");
                return fault(message, "0 to 1, e.g. 0.5");
            };
            Value::Probability((p * 2_147_483_648.0).round() as u32)
        }
        Kind::Mark => match mark(text) {
            Some((value, mask)) => Value::Mark(value, mask),
            None => {
                let help = "value or value/mask, up to 0xffffffff";
                if old {
                    return old_words(help);
                }
                let message = format!("{ext}: bad integer value for option \"--{name}\", or out of range.\n");
                return fault(message, help);
            }
        },
        Kind::Tos(default) => return tos(ext, name, text, default, old),
        Kind::Host | Kind::HostMask => return host(ext, opt, text, family),
        Kind::Plen => {
            let bits = u64::from(family.bits());
            let len = number(text).filter(|&n| n <= bits);
            let Some(mask) = len.map(|n| family.mask(n as u32)).or_else(|| family.parse(text)) else {
                return fault(bad_length(ext, name, family), "");
            };
            Value::Net(0, mask)
        }
        Kind::Protocol => match protocol(&text.to_ascii_lowercase()) {
            Some(number) => Value::Int(number.into()),
            None => {
                return fault(format!("unknown protocol \"{text}\" specified"), "tcp, udp, icmp, a number");
            }
        },
        Kind::Ports => return port_range(ext, name, text, old),
        Kind::Mac => match mac(text) {
            Some(mac) => Value::Mac(mac),
            None => return fault("Invalid MAC address specified.", "six pairs of hex digits with colons"),
        },
        Kind::Syslog => return syslog(text),
    })
}

fn bad_length(ext: &str, name: &str, family: Family) -> String {
    let bits = family.bits();
    format!(
        "{ext}: bad value for option \"--{name}\", neither a valid network mask nor valid CIDR (0-{bits}).\n"
    )
}

fn mark(text: &str) -> Option<(u32, u32)> {
    let whole = |t: &str| number(t).and_then(|n| u32::try_from(n).ok());
    match text.split_once('/') {
        Some((value, mask)) => Some((whole(value)?, whole(mask)?)),
        None => Some((whole(text)?, u32::MAX)),
    }
}

fn range(ext: &str, name: &str, text: &str, most: u64, old: bool) -> Result<Value, Fault> {
    let mut values = [0u64; 2];
    let mut count = 0;
    let mut rest = text;
    loop {
        if count == 2 {
            let message = format!("{ext}: Too many components for option \"--{name}\" (max: 2)\n");
            return fault(message, "least:most");
        }
        let tail = if rest.is_empty() || rest.starts_with(':') {
            values[count] = if count == 1 { most } else { 0 };
            rest
        } else {
            let Some((value, tail)) = number_prefix(rest).filter(|(n, _)| *n <= most) else {
                if old {
                    let message = format!("{ext}: Bad value for \"--{name}\" option: \"{text}\"");
                    return fault(message, "least:most");
                }
                let message = format!(
                    "{ext}: bad value for option \"--{name}\" near \"{rest}\", or out of range (0-{most}).\n"
                );
                return fault(message, "a number, or least:most");
            };
            if !tail.is_empty() && !tail.starts_with(':') {
                let message =
                    format!("{ext}: Argument to \"--{name}\" has unexpected characters near \"{tail}\".\n");
                return fault(message, "a number, or least:most");
            }
            values[count] = value;
            tail
        };
        count += 1;
        if tail.is_empty() {
            return Ok(Value::Range(values, count));
        }
        rest = &tail[1..];
    }
}

fn tos(ext: &str, name: &str, text: &str, default: u8, old: bool) -> Result<Value, Fault> {
    let help = "0 to 0xff, value/mask, or a name, e.g. Minimize-Delay";
    let byte = |n: u64| u8::try_from(n).ok();
    match number_prefix(text).and_then(|(n, rest)| Some((byte(n)?, rest))) {
        Some((value, "")) => Ok(Value::Tos(value, 0xff)),
        Some((value, rest)) => match rest.strip_prefix('/').and_then(number).and_then(byte) {
            Some(mask) => Ok(Value::Tos(value, mask)),
            None => fault(format!("Illegal value: \"{text}\""), help),
        },
        None => match TOS_NAMES.iter().find(|(n, _)| n.eq_ignore_ascii_case(text)) {
            Some((_, value)) => Ok(Value::Tos(*value, default)),
            None if old => fault(format!("{ext}: Bad value for \"--{name}\" option: \"{text}\""), help),
            None => fault(format!("Symbolic name \"{text}\" is unknown"), help),
        },
    }
}

fn host(ext: &str, opt: &Opt, text: &str, family: Family) -> Result<Value, Fault> {
    let (addr, mask) = match text.split_once('/') {
        Some((addr, mask)) if opt.kind == Kind::HostMask => (addr, Some(mask)),
        _ => (text, None),
    };
    let Some(addr) = family.parse(addr) else {
        let other = if family == Family::Ip { Family::Ip6 } else { Family::Ip };
        let why = match other.parse(addr) {
            Some(_) => "Address family for hostname not supported",
            None => "Name or service not known",
        };
        return fault(format!("getaddrinfo: {why}\n"), "an address in numbers: names are not looked up");
    };
    let mask = match mask {
        None => family.mask(family.bits()),
        Some(text) => {
            let len = number(text).filter(|&n| n <= u64::from(family.bits()));
            match len.map(|n| family.mask(n as u32)).or_else(|| family.parse(text)) {
                Some(mask) => mask,
                None => return fault(bad_length(ext, opt.id, family), ""),
            }
        }
    };
    Ok(Value::Net(addr, mask))
}

fn port_range(ext: &str, name: &str, text: &str, old: bool) -> Result<Value, Fault> {
    let mut ports = (0, u16::MAX);
    let mut count = 0;
    for part in text.split(':') {
        if count == 2 {
            let message = format!("{ext}: Too many components for option \"--{name}\" (max: 2)\n");
            return fault(message, "first:last");
        }
        if !part.is_empty() {
            let Some(port) = service(part, old) else {
                return fault(format!("Port \"{part}\" does not resolve to anything.\n"), "0 to 65535");
            };
            *(if count == 0 { &mut ports.0 } else { &mut ports.1 }) = port;
        }
        count += 1;
    }
    if count == 1 {
        ports.1 = ports.0;
    }
    Ok(Value::Ports(ports.0, ports.1))
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0u8; 6];
    let mut parts = text.split(':');
    for byte in &mut mac {
        let part = parts.next().filter(|p| (1..=2).contains(&p.len()))?;
        *byte = u8::from_str_radix(part, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

fn syslog(text: &str) -> Result<Value, Fault> {
    const LEVELS: [(&str, u64); 9] = [
        ("alert", 1),
        ("crit", 2),
        ("debug", 7),
        ("emerg", 0),
        ("error", 3),
        ("info", 6),
        ("notice", 5),
        ("panic", 0),
        ("warning", 4),
    ];
    let named = || LEVELS.iter().find(|l| l.0 == text).map(|l| l.1);
    match number(text).filter(|&n| n <= 7).or_else(named) {
        Some(level) => Ok(Value::Int(level)),
        None => fault(format!("log level \"{text}\" unknown\n"), "0 to 7, or a name, e.g. info"),
    }
}
