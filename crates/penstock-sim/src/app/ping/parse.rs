//! The command line of ping, read as ping reads it.
//!
//! Follows: iputils 20221126 `main`, `ping_strtod`, `parsetos`, `parseflow`, `strtol_or_err`, `strtoul_or_err`, and s20100418 `common_options`.

use super::{Ping, PmtuDisc, words};
use crate::app::options::{self, Known, c_number, o, seconds};
use crate::app::{Failure, Family};
use penstock_model::{Kernel, Span};
use std::net::IpAddr;

pub(crate) const KNOWN: &[Known] = &[
    o('c', "", true),
    o('i', "", true),
    o('s', "", true),
    o('Q', "", true),
    o('W', "", true),
    o('w', "", true),
    o('t', "", true),
    o('I', "", true),
    o('M', "", true),
    o('m', "", true),
    o('e', "", true),
    o('F', "", true),
    o('l', "", true),
    o('p', "", true),
    o('a', "", false),
    o('A', "", false),
    o('f', "", false),
    o('B', "", false),
    o('C', "", false),
    o('d', "", false),
    o('D', "", false),
    o('h', "", false),
    o('L', "", false),
    o('n', "", false),
    o('O', "", false),
    o('q', "", false),
    o('v', "", false),
    o('V', "", false),
    o('4', "", false),
    o('6', "", false),
];
/// Those that s20100418 has not.
const NEW: [char; 4] = ['C', 'e', 'F', 'O'];

/// What iputils' ping has beside these.
pub(crate) const NOT_HERE: &[options::NotHere] = &[
    ("-b", "broadcasts are not answered"),
    ("-N", "there are no node information queries"),
    ("-r -R -T", "there are no options of IP, and routes are followed"),
    ("-S", "the socket's memory is the system's"),
    ("-U", "the time is always that of the network alone"),
];

/// `strtol`, `strtoul` with base 10: the whole text must be a number.
fn decimal(value: &str) -> Option<i128> {
    let digits = value.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    if unsigned.is_empty() || !unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let n = unsigned.parse::<i128>().unwrap_or(i128::MAX / 2);
    Some(if digits.starts_with('-') { -n } else { n })
}
/// `atoi`: the digits a text begins with.
fn atoi(value: &str) -> i64 {
    let text = value.trim_start();
    let sign = usize::from(text.starts_with(['-', '+']));
    let end = text[sign..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |n| n + sign);
    i64::from(text[..end].parse::<i64>().unwrap_or(0) as i32)
}
/// An integer of C by decimals or by `0x`, as far as it goes, and whether all of the text was it.
fn decimal_or_hex(value: &str) -> (i64, bool) {
    let hex = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X"));
    let (text, base) = hex.map_or((value, 10), |hex| (hex, 16));
    let sign = usize::from(text.starts_with(['-', '+']));
    let end = text[sign..].find(|c: char| !c.is_digit(base)).map_or(text.len(), |n| n + sign);
    if end == sign {
        return (0, text.is_empty());
    }
    let n = i64::from_str_radix(&text[..end], base).unwrap_or(-1);
    (n, end == text.len())
}
/// `ping_strtod`: seconds as thousandths, cut off as C cuts a double off, and what follows the number where something does.
fn thousandths<'a>(value: &'a str, what: &str, least: f64) -> Result<(i64, Option<&'a str>), Failure> {
    let wrong = |why: &str| Failure::new(format!("ping: {what}: {value}{why}\n"), 2);
    let number = value.trim_start();
    // The longest beginning that is a number.
    let found = (1..=number.len()).rev().find_map(|end| {
        let n = number.get(..end)?.parse::<f64>().ok()?;
        Some((n, &number[end..]))
    });
    let (n, rest) = match found {
        Some(found) => found,
        None if value.is_empty() => return Err(wrong("")),
        None => (0.0, value),
    };
    if !n.is_finite() || n.is_subnormal() {
        return Err(wrong(": Numerical result out of range"));
    }
    if n < least || n > f64::from(i32::MAX) / 1000.0 {
        return Err(wrong(""));
    }
    Ok(((n * 1000.0) as i64, Some(rest).filter(|rest| !rest.is_empty())))
}

impl Ping {
    pub(crate) fn parse(args: &[&str], kernel: Kernel) -> Result<Ping, Failure> {
        let old = kernel == Kernel::V2_6_35;
        let usage = if old { words::USAGE_2010 } else { words::USAGE };
        let (options, targets) = options::parse_all("ping", args, KNOWN, NOT_HERE, usage, 2)?;
        let mut ping = Ping::new(kernel);
        for (letter, value) in options {
            if old && NEW.contains(&letter) {
                return Err(Failure::new(format!("ping: invalid option -- '{letter}'\n{usage}"), 2));
            }
            if old { ping.option_2010(letter, value)? } else { ping.option(letter, value)? }
        }
        if ping.pace.flood && !ping.at_intervals {
            ping.interval = Span::ZERO;
        }
        let ms = ping.interval.as_ns() / 1_000_000;
        if ms >= i64::from(i32::MAX) / ping.pace.preload {
            return Err(Failure::new(format!("ping: illegal preload and/or interval: {ms}\n"), 2));
        }
        let (&target, more) = match targets.split_last() {
            Some(found) => found,
            None if old => return Err(Failure::new(usage, 2)),
            None => return Err(Failure::new("ping: usage error: Destination address required\n", 1)),
        };
        if !more.is_empty() {
            let text = format!(
                "ping: {} before {target} is not simulated: there are no source routes; write one destination\n",
                more.join(" ")
            );
            return Err(Failure::new(text, 2));
        }
        target.clone_into(&mut ping.target);
        Ok(ping)
    }

    /// An option of today's ping.
    fn option(&mut self, letter: char, value: &str) -> Result<(), Failure> {
        // `strtol_or_err`, `strtoul_or_err`.
        let number = |from: i64, to: i64| {
            let wrong =
                |why: String| Err(Failure::new(format!("ping: invalid argument: '{value}'{why}\n"), 1));
            let unsigned = letter == 'm' || letter == 'e';
            let (least, most) = if unsigned {
                (-i128::from(u64::MAX), i128::from(u64::MAX))
            } else {
                (i128::from(i64::MIN), i128::from(i64::MAX))
            };
            match decimal(value) {
                None => wrong(String::new()),
                Some(n) if !(least..=most).contains(&n) => {
                    wrong(": Numerical result out of range".to_owned())
                }
                Some(n) => match i64::try_from(if unsigned { n.rem_euclid(1 << 64) } else { n }) {
                    Ok(n) if (from..=to).contains(&n) => Ok(n),
                    _ => wrong(format!(": out of range: {from} <= value <= {to}")),
                },
            }
        };
        match letter {
            'c' => self.count = number(1, i64::MAX)? as u64,
            'i' => {
                let (ms, garbage) = thousandths(value, "bad timing interval", f64::NEG_INFINITY)?;
                if ms < 0 {
                    let text = format!("ping: -i {value} is not simulated: write 0 or more\n");
                    return Err(Failure::new(text, 2));
                }
                self.at_intervals = true;
                self.interval = Span::from_ms(ms);
                self.said.push_str(&words::garbage(garbage));
            }
            's' => self.size = number(0, i32::MAX.into())? as u32,
            'Q' => {
                let (n, whole) = decimal_or_hex(value);
                if !whole {
                    return Err(Failure::new(format!("ping: bad TOS value: {value}\n"), 2));
                }
                if n > 255 {
                    let text =
                        format!("ping: the decimal value of TOS bits must be in range 0-255: {}\n", n as i32);
                    return Err(Failure::new(text, 2));
                }
                self.tos = n as u8;
            }
            'W' => {
                let (ms, garbage) = thousandths(value, "bad linger time", 0.0)?;
                self.linger = Span::from_ms(ms);
                self.said.push_str(&words::garbage(garbage));
            }
            'w' => self.deadline = Some(number(0, i32::MAX.into())?).filter(|&s| s > 0).map(Span::from_secs),
            't' => self.ttl = Some(number(0, 255)? as u8),
            'l' => self.pace.preload = number(1, 0x10000)?,
            'e' => self.ident = Some(number(0, 0xffff)? as u16),
            'm' => self.mark = number(0, u32::MAX.into())? as u32,
            'F' => {
                let (label, whole) = decimal_or_hex(value);
                if !whole {
                    return Err(Failure::new(format!("ping: bad value for flowinfo: {value}\n"), 2));
                }
                if !(0..=0xf_ffff).contains(&label) {
                    let text = format!("ping: flow value is greater than 20 bits: {value}\n");
                    return Err(Failure::new(text, 2));
                }
                self.label = Some(label as u32);
            }
            _ => return self.option_of_both(letter, value),
        }
        Ok(())
    }
    /// An option of s20100418.
    fn option_2010(&mut self, letter: char, value: &str) -> Result<(), Failure> {
        let fail = |text: String| Err(Failure::new(text, 2));
        let n = atoi(value);
        match letter {
            'c' if n <= 0 => return fail("ping: bad number of packets to transmit.\n".to_owned()),
            'c' => self.count = n as u64,
            'i' => {
                let Some(ns) = seconds(value) else { return fail("ping: bad timing interval.\n".to_owned()) };
                self.at_intervals = true;
                // Whole milliseconds.
                self.interval = Span::from_ns(ns / 1_000_000 * 1_000_000);
            }
            's' if n < 0 => return fail(format!("ping: illegal negative packet size {n}.\n")),
            's' if n > 65_507 => return fail(format!("ping: packet size too large: {n}\n")),
            's' => self.size = n as u32,
            'Q' => {
                let Some(n) = c_number(value) else {
                    return fail("ping: TOS bits error: not a number\n".to_owned());
                };
                if !(0..=255).contains(&n) {
                    return fail(format!(
                        "ping: the decimal value of TOS bits must be in range 0-255: {n}\n"
                    ));
                }
                self.tos = n as u8;
            }
            'W' if !(0..=2147).contains(&n) => return fail("ping: bad linger time.\n".to_owned()),
            'W' => self.linger = Span::from_secs(n),
            'w' if n < 0 => return fail("ping: bad wait time.\n".to_owned()),
            'w' => self.deadline = Some(n).filter(|&s| s > 0).map(Span::from_secs),
            't' if !(0..=255).contains(&n) => return fail(format!("ping: ttl {} out of range\n", n as u32)),
            't' => self.ttl = Some(n as u8),
            'l' if n <= 0 => return fail("ping: bad preload value, should be 1..65536\n".to_owned()),
            'l' => self.pace.preload = n.min(0x10000),
            'm' => match decimal(value).map(|n| n as i32) {
                Some(mark) if mark >= 0 => self.mark = mark as u32,
                _ => return fail("mark cannot be negative".to_owned()),
            },
            _ => return self.option_of_both(letter, value),
        }
        Ok(())
    }
    /// An option that both know the same way.
    fn option_of_both(&mut self, letter: char, value: &str) -> Result<(), Failure> {
        let fail = |text: String| Err(Failure::new(text, 2));
        match letter {
            'M' => {
                self.pmtudisc = Some(match value {
                    "do" => PmtuDisc::Do,
                    "want" => PmtuDisc::Want,
                    "dont" => PmtuDisc::Dont,
                    _ => return fail(words::bad_pmtudisc(value, self.kernel)),
                });
            }
            'I' => match value.parse::<IpAddr>() {
                Ok(addr) => {
                    (if addr.is_ipv4() { &mut self.source4 } else { &mut self.source6 }).replace(addr);
                    self.strict = true;
                }
                Err(_) if value.contains([':', '%']) => {
                    let (addr, device) = super::with_scope(value);
                    match (addr.parse::<std::net::Ipv6Addr>(), device) {
                        (Ok(addr), Some(device)) => {
                            (self.source6, self.strict) = (Some(addr.into()), true);
                            self.device = Some(device.to_owned());
                        }
                        _ => return fail(format!("ping: invalid source address: {value}\n")),
                    }
                }
                Err(_) => self.device = Some(value.to_owned()),
            },
            'V' => return Err(Failure::new(words::version(self.kernel), 0)),
            'h' if self.kernel == Kernel::V2_6_35 => return fail(words::USAGE_2010.to_owned()),
            'h' => return fail(words::USAGE.to_owned()),
            'p' => {
                self.pattern = Some(words::pattern(value, self.kernel).map_err(|text| Failure::new(text, 2))?)
            }
            'A' => self.pace.adaptive = true,
            'f' => self.pace.flood = true,
            'B' => self.strict = true,
            'q' => self.quiet = true,
            'O' => self.outstanding = true,
            'D' => self.times = true,
            'a' => self.audible = true,
            'v' => self.verbose = true,
            '4' | '6' => {
                let family = if letter == '4' { Family::Four } else { Family::Six };
                if self.family != Family::Any && self.family != family {
                    return fail("ping: only one -4 or -6 option may be specified\n".to_owned());
                }
                self.family = family;
            }
            // Names of replies are never looked up; a debugging flag, a connected socket and what multicasts do at their
            // sender change nothing of what one machine answers.
            _ => debug_assert!(['n', 'C', 'd', 'L'].contains(&letter), "-{letter} does nothing"),
        }
        Ok(())
    }
}
