//! The words of `conntrack`.
//!
//! Follows: conntrack-tools 1.4.7 `src/conntrack.c` `do_parse`, `generic_opt_check`, `commands_v_options`, `extensions/libct_proto_tcp.c`, `_udp.c`, `_icmp.c`,
//! `_icmpv6.c`, `_unknown.c`; glibc `getopt_long`.

use super::tables::{ALLOWED, FLAGS, Handler, LETTERS, LONG, NAMES, NONE, PROTOCOLS};
use crate::netfilter::{Tracking, status};
use std::net::{IpAddr, Ipv6Addr};

/// What the program says and how it ends.
pub(super) struct Refused {
    /// Said before.
    pub warning: &'static str,
    pub text: String,
    pub exit: i32,
}
pub(super) type Parsed<T> = Result<T, Refused>;

/// PARAMETER_PROBLEM.
fn bad<T>(text: impl Into<String>) -> Parsed<T> {
    Err(Refused { warning: "", text: text.into(), exit: 2 })
}

/// Which table a command is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Table {
    #[default]
    Connections,
    Expectations,
    Dying,
    Unconfirmed,
}

/// `-o`.
pub(super) mod output {
    pub const XML: u8 = 1;
    pub const EXTENDED: u8 = 2;
    pub const ID: u8 = 8;
    pub const SAVE: u8 = 64;
}

/// An address to be translated to, and a port.
pub(super) type To = (Option<IpAddr>, Option<u16>);

/// A command as it was read.
#[derive(Default)]
pub(super) struct Asked {
    /// Its letter; none: the help.
    pub command: Option<char>,
    pub table: Table,
    /// Bits of options that were said.
    pub options: u32,
    /// Whether addresses are of IPv6, where that is known.
    pub six: Option<bool>,
    pub protocol: Option<u8>,
    pub handler: Option<Handler>,
    /// Source and destination of the original, of the reply.
    pub addresses: [Option<IpAddr>; 4],
    /// Bits of the first two that count, where it is not all.
    pub masks: [Option<u128>; 2],
    /// Ports, or type, code and identifier of ICMP.
    pub numbers: [Option<u16>; 4],
    /// Which options of the protocol were said.
    l4: u32,
    pub tcp: Option<u8>,
    pub timeout: Option<u32>,
    pub status: Option<u16>,
    /// What the kernel asks of the status: value and mask.
    pub status_asked: Option<(u16, u16)>,
    /// `-m`: value and mask.
    pub mark: Option<(u32, u32)>,
    /// What the kernel asks of the mark.
    pub mark_asked: Option<(u32, u32)>,
    pub zone: Option<u16>,
    pub other_zones: [Option<u16>; 2],
    pub id: Option<u32>,
    pub secmark: bool,
    pub nat: [Option<To>; 2],
    pub any_nat: bool,
    pub output: u8,
    /// Said to standard error on the way.
    pub remarks: String,
}

/// What stands in `/etc/xtables/connlabel.conf`: there is none.
const NO_LABELS: &str = "nfct_labelmap_new: No such file or directory\n";

impl Asked {
    pub fn has(&self, option: &str) -> bool {
        FLAGS.iter().position(|f| *f == option).is_some_and(|bit| self.options & 1 << bit != 0)
    }
    fn set(&mut self, letter: char) {
        if let Some(bit) = LETTERS.iter().position(|l| char::from(*l) == letter) {
            self.options |= 1 << bit;
        }
    }
    fn family(&mut self, six: bool) -> Parsed<()> {
        match self.six.replace(six) {
            Some(before) if before != six => bad("mismatched address family"),
            _ => Ok(()),
        }
    }
}

/// `atoi` and its like: digits behind a sign, as far as they go.
fn atol(text: &str) -> i64 {
    let text = text.trim_start();
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    sign * digits[..end].parse::<i64>().unwrap_or(if end == 0 { 0 } else { i64::MAX })
}
/// `strtoul` with base 0, and what stands behind the number.
fn strtoul(text: &str) -> (u64, &str) {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hex = digits.strip_prefix("0x").filter(|d| d.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (digits, radix) = match hex {
        Some(hex) => (hex, 16),
        None if digits.starts_with('0') => (digits, 8),
        None => (digits, 10),
    };
    let end = digits.find(|c: char| !c.is_digit(radix)).unwrap_or(digits.len());
    let value = u64::from_str_radix(&digits[..end], radix).unwrap_or(if end == 0 { 0 } else { u64::MAX });
    (if negative { value.wrapping_neg() } else { value }, &digits[end..])
}
/// `inet_aton`: of four parts the last may stand for those behind it.
fn aton(text: &str) -> Option<u32> {
    let parts: Vec<&str> = text.split('.').collect();
    let mut addr = 0u32;
    for (n, part) in parts.iter().enumerate() {
        let last = n + 1 == parts.len();
        let (value, rest) = strtoul(part);
        let room = if last { 32 - 8 * n as u32 } else { 8 };
        let fits =
            n < 4 && part.starts_with(|c: char| c.is_ascii_digit()) && rest.is_empty() && value < 1 << room;
        if !fits {
            return None;
        }
        addr |= if last { value as u32 } else { (value as u32) << (24 - 8 * n) };
    }
    Some(addr)
}
fn inet(text: &str) -> Option<IpAddr> {
    aton(text).map(|a| IpAddr::V4(a.into())).or_else(|| text.parse::<Ipv6Addr>().ok().map(IpAddr::V6))
}

/// `do_parse`.
pub(super) fn parse(words: &[&str]) -> Parsed<Asked> {
    let mut reader = Reader { words, at: 0, asked: Asked::default(), own: Vec::new() };
    reader.run()?;
    let mut a = reader.asked;
    if a.six.is_none() && !matches!(a.command, Some('L' | 'U' | 'D' | 'G' | 'F' | 'E')) {
        a.six = Some(false);
    }
    if a.any_nat && (a.has("src-nat") || a.has("dst-nat")) {
        return bad("cannot specify `--src-nat' or `--dst-nat' with `--any-nat'");
    }
    let Some(command) = a.command.filter(|c| !matches!(c, 'V' | 'h')) else { return Ok(a) };
    let row = ALLOWED.iter().find(|row| row.0 == command);
    let of_expectations = a.table == Table::Expectations;
    let rules = row.map_or(NONE, |row| if of_expectations { row.2 } else { row.1 });
    let pairs = "you have to specify `--src' and `--dst'|you have to specify `--reply-src' and `--reply-dst'";
    check(a.options, rules, &FLAGS, Some(pairs))?;
    if let Some(handler) = a.handler.filter(|_| !of_expectations) {
        let (rules, names) = handler.allowed(command);
        let ports = "you have to specify `--sport' and `--dport'|you have to specify `--reply-src-port' and `--reply-dst-port'";
        let pairs = matches!(handler, Handler::Tcp | Handler::Udp).then_some(ports);
        check(a.l4, rules, names, pairs)?;
    }
    Ok(a)
}

/// `generic_opt_check`.
fn check(options: u32, rules: &[u8], names: &[&str], pairs: Option<&str>) -> Parsed<()> {
    for (bit, (rule, name)) in rules.iter().zip(names).enumerate() {
        match (options & 1 << bit != 0, rule) {
            (false, b'1') => {
                return bad(format!("You need to supply the `--{name}' option for this command"));
            }
            (true, b'0') => return bad(format!("Illegal option `--{name}' with this command")),
            _ => {}
        }
    }
    let Some(pairs) = pairs.filter(|_| rules.contains(&b'3')) else { return Ok(()) };
    if [0b11, 0b1100].iter().any(|pair| options & pair == *pair) {
        return Ok(());
    }
    let (first, second) = pairs.split_once('|').unwrap_or((pairs, pairs));
    bad(if options & 0b11 == 0 && options & 0b1100 != 0 { second } else { first })
}

struct Reader<'a> {
    words: &'a [&'a str],
    at: usize,
    asked: Asked,
    /// Options of the protocols that were named.
    own: Vec<(&'static str, Handler, u8)>,
}

impl<'a> Reader<'a> {
    fn run(&mut self) -> Parsed<()> {
        while let Some(&word) = self.words.get(self.at) {
            self.at += 1;
            if word == "--" {
                return Ok(());
            }
            if let Some(long) = word.strip_prefix("--") {
                self.long(word, long)?;
            } else if word.len() > 1 && word.starts_with('-') {
                self.short(word)?;
            }
            // Other words are read over.
        }
        Ok(())
    }
    fn needed(&mut self, word: &str) -> Parsed<&'a str> {
        let Some(&value) = self.words.get(self.at) else {
            return bad(format!("option `{word}' requires an argument"));
        };
        self.at += 1;
        Ok(value)
    }
    /// `get_optional_arg`.
    fn optional(&mut self, glued: Option<&str>) -> Option<&'a str> {
        let next = *self.words.get(self.at).filter(|w| glued.is_none() && !w.starts_with(['-', '!']))?;
        self.at += 1;
        Some(next)
    }
    fn long(&mut self, word: &'a str, text: &'a str) -> Parsed<()> {
        let (name, glued) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        let unknown = || bad(format!("unknown option `{word}'"));
        let own = self.own.iter().filter(|o| o.0.starts_with(name));
        let own: Vec<_> = own.copied().collect();
        let general: Vec<_> = LONG.iter().filter(|o| o.0.starts_with(name)).collect();
        if let Some(found) = own.iter().find(|o| o.0 == name) {
            return self.of_protocol(*found, word, glued);
        }
        let exact = general.iter().find(|o| o.0 == name);
        let same = general.windows(2).all(|w| (w[0].1, w[0].2) == (w[1].1, w[1].2));
        let found = match (exact, general.first(), own.first()) {
            (Some(found), ..) => **found,
            (_, Some(found), None) if same => **found,
            (_, None, Some(found)) if own.windows(2).all(|w| w[0].2 == w[1].2) => {
                return self.of_protocol(*found, word, glued);
            }
            _ => return unknown(),
        };
        match found.1 {
            0 if glued.is_some() => unknown(),
            1 if glued.is_none() => {
                let value = self.needed(word)?;
                self.option(found.2, Some(value))
            }
            _ => self.option(found.2, glued),
        }
    }
    fn of_protocol(
        &mut self,
        option: (&'static str, Handler, u8),
        word: &str,
        glued: Option<&'a str>,
    ) -> Parsed<()> {
        let value = match glued {
            Some(value) => value,
            None => self.needed(word)?,
        };
        let (_, handler, bit) = option;
        let a = &mut self.asked;
        a.l4 |= 1 << bit;
        match (handler, bit) {
            (Handler::Tcp, 6) => match Tracking::tcp_state(value) {
                Some(state) => a.tcp = Some(state),
                None => return bad(format!("unknown TCP state `{value}'")),
            },
            (Handler::Icmp | Handler::Icmpv6, 0 | 1) => {
                a.numbers[usize::from(bit)] = Some(u16::from(atol(value) as u8));
            }
            (_, 0..4) => a.numbers[usize::from(bit)] = Some(atol(value) as u16),
            _ => {}
        }
        Ok(())
    }
    fn short(&mut self, word: &'a str) -> Parsed<()> {
        let mut rest = &word[1..];
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            match letter {
                'L' | 'I' | 'U' | 'D' | 'G' | 'E' | 'F' | 'A' | 'C' | 'n' | 'g' | 'j' => {
                    return self.option(letter, Some(rest).filter(|r| !r.is_empty()));
                }
                'h' | 'V' | 'S' => self.option(letter, None)?,
                's' | 'd' | 'r' | 'q' | 'p' | 't' | 'u' | 'e' | 'a' | 'm' | 'i' | 'f' | 'o' | 'c' | 'b'
                | 'w' | 'l' => {
                    let value = if rest.is_empty() { self.needed(word)? } else { rest };
                    return self.option(letter, Some(value));
                }
                'z' => {
                    let value = if rest.is_empty() { None } else { Some(rest) };
                    return self.option(letter, value);
                }
                _ => return bad(format!("unknown option `{word}'")),
            }
        }
        Ok(())
    }
    fn table(&mut self, glued: Option<&str>) -> Parsed<Table> {
        let Some(name) = self.optional(glued) else { return Ok(Table::Connections) };
        let of = [
            ("expect", Table::Expectations),
            ("conntrack", Table::Connections),
            ("dying", Table::Dying),
            ("unconfirmed", Table::Unconfirmed),
        ];
        match of.iter().find(|t| t.0.starts_with(name)) {
            Some(table) => Ok(table.1),
            None => bad(format!("unknown type `{name}'")),
        }
    }
    fn option(&mut self, letter: char, value: Option<&'a str>) -> Parsed<()> {
        let text = value.unwrap_or_default();
        match letter {
            'L' | 'I' | 'D' | 'G' | 'F' | 'E' | 'V' | 'h' | 'C' | 'S' | 'U' | 'A' => {
                let table = self.table(value)?;
                if letter != 'L' && matches!(table, Table::Dying | Table::Unconfirmed) {
                    return bad("Can't do that command with tables `dying' and `unconfirmed'");
                }
                if matches!(letter, 'U' | 'A') && table == Table::Expectations {
                    let name = if letter == 'U' { "update" } else { "add" };
                    return bad(format!("Can't do --{name} on expectations"));
                }
                let a = &mut self.asked;
                if a.command.replace(letter).is_some() {
                    return bad("Invalid commands combination");
                }
                a.table = table;
                return Ok(());
            }
            's' | 'd' | 'r' | 'q' | '[' | ']' | '{' | '}' => return self.address(letter, text),
            'n' | 'g' | 'j' => return self.translation(letter, value),
            _ => {}
        }
        let a = &mut self.asked;
        a.set(letter);
        match letter {
            'p' => {
                let lower = text.to_ascii_lowercase();
                let number = || {
                    Some(strtoul(text))
                        .filter(|(n, rest)| rest.is_empty() && *n <= 255 && !text.is_empty())
                        .map(|n| n.0 as u8)
                };
                let named = PROTOCOLS.iter().find(|p| p.0 == lower).map(|p| (p.1, p.2));
                let unknown =
                    |n: u8| PROTOCOLS.iter().find(|p| p.1 == n).map_or((n, Handler::Unknown), |p| (n, p.2));
                let of_file = NAMES.iter().find(|p| p.0 == text).map(|p| (p.1, Handler::Unknown));
                let Some((number, handler)) = named.or(of_file).or_else(|| number().map(unknown)) else {
                    return bad(format!("`{text}' unsupported protocol"));
                };
                (a.protocol, a.handler) = (Some(number), Some(handler));
                self.own.extend(handler.options().into_iter().map(|(name, bit)| (name, handler, bit)));
            }
            't' => a.timeout = Some(atol(text) as u32),
            'u' => self.status(text)?,
            'e' => parameters(text, &[("ALL", 0), ("NEW", 0), ("UPDATES", 0), ("DESTROY", 0)]).map(|_| ())?,
            'o' => {
                let kinds = [
                    ("xml", output::XML),
                    ("extended", output::EXTENDED),
                    ("timestamp", 4),
                    ("id", output::ID),
                    ("ktimestamp", 16),
                    ("labels", 32),
                    ("userspace", 0),
                    ("save", output::SAVE),
                ];
                a.output |= parameters(text, &kinds.map(|(name, bit)| (name, u16::from(bit))))? as u8;
                if a.output & 32 != 0 && a.remarks.is_empty() {
                    a.remarks += NO_LABELS;
                }
                if a.output & output::SAVE != 0 && a.output != output::SAVE {
                    let text =
                        "cannot combine save output with any other output type, use -o save only".to_owned();
                    return Err(Refused { warning: "", text, exit: 1 });
                }
            }
            'w' => a.zone = Some(strtoul(text).0 as u16),
            '(' => a.other_zones[0] = Some(strtoul(text).0 as u16),
            ')' => a.other_zones[1] = Some(strtoul(text).0 as u16),
            'i' => a.id = Some(strtoul(text).0 as u32),
            'c' => a.secmark = true,
            'm' => {
                let (value, rest) = strtoul(text);
                let mask = rest.strip_prefix('/').map_or(u32::MAX, |mask| strtoul(mask).0 as u32);
                a.mark = Some((value as u32, mask));
                a.mark_asked = a.mark;
            }
            'l' | '<' | '>' => {
                let first = text.split(',').next().unwrap_or_default();
                return match (letter, value) {
                    ('>', None) => Ok(()),
                    _ => {
                        Err(Refused { warning: NO_LABELS, text: format!("unknown label '{first}'"), exit: 2 })
                    }
                };
            }
            'a' => a.remarks += "WARNING: ignoring -a, deprecated option.\n",
            'f' if text.starts_with("ipv4") => a.family(false)?,
            'f' if text.starts_with("ipv6") => a.family(true)?,
            'f' => return bad(format!("`{text}' unsupported protocol")),
            _ => {}
        }
        Ok(())
    }
    /// `parse_parameter_mask`.
    fn status(&mut self, text: &str) -> Parsed<()> {
        let (mut bits, mut mask) = (0, 0);
        for part in text.split(',') {
            let (negated, name) = part.strip_prefix('!').map_or((false, part), |name| (true, name));
            if name.is_empty() {
                return bad(format!("Bad parameter `{part}'"));
            }
            if !negated && name.starts_with("UNREPLIED") {
                mask |= status::SEEN_REPLY;
                continue;
            }
            let known = [
                ("ASSURED", status::ASSURED),
                ("SEEN_REPLY", status::SEEN_REPLY),
                ("UNSET", 0),
                ("FIXED_TIMEOUT", status::FIXED_TIMEOUT),
                ("EXPECTED", status::EXPECTED),
                ("OFFLOAD", 1 << 14),
                ("HW_OFFLOAD", 1 << 15),
            ];
            let value = parameters(name, &known)?;
            *(if negated { &mut mask } else { &mut bits }) |= value;
        }
        let a = &mut self.asked;
        a.status = Some(bits);
        // The program puts it where it keeps the mark.
        if let Some(mark) = &mut a.mark {
            mark.0 = u32::from(bits);
        }
        a.status_asked = Some((bits, if mask == 0 { bits } else { mask }));
        Ok(())
    }
    fn address(&mut self, letter: char, text: &str) -> Parsed<()> {
        let (addr, mask) = match text.split_once('/') {
            None => (text, None),
            Some((addr, mask)) => {
                let digits = mask.strip_prefix('+').unwrap_or(mask);
                let number = if digits.is_empty() { Some(0) } else { digits.parse::<u32>().ok() };
                (addr, Some(number))
            }
        };
        let Some(addr) = inet(addr) else { return bad(format!("Invalid IP address `{text}'")) };
        self.asked.family(addr.is_ipv6())?;
        let most = if addr.is_ipv6() { 128 } else { 32 };
        let mask = mask.map(|m| m.filter(|m| *m <= most));
        if mask.is_some() && !matches!(letter, 's' | 'd' | '[' | ']') {
            let name = LONG.iter().find(|o| o.2 == letter).map_or("unknown", |o| o.0);
            return bad(format!("CIDR notation unavailable for `--{name}'"));
        }
        if mask == Some(None) {
            return bad("Invalid netmask");
        }
        let a = &mut self.asked;
        a.set(letter);
        let bits = |addr: IpAddr| match addr {
            IpAddr::V4(a) => u128::from(u32::from(a)) | u128::MAX << 32,
            IpAddr::V6(a) => a.into(),
        };
        match letter {
            's' => a.addresses[0] = Some(addr),
            'd' => a.addresses[1] = Some(addr),
            'r' => a.addresses[2] = Some(addr),
            'q' => a.addresses[3] = Some(addr),
            '{' => a.masks[0] = Some(bits(addr)),
            '}' => a.masks[1] = Some(bits(addr)),
            _ => {}
        }
        if let Some(Some(len)) = mask.filter(|m| *m != Some(most)) {
            let (at, flag) = if letter == 's' { (0, '{') } else { (1, '}') };
            let before = if addr.is_ipv6() { 0 } else { 96 };
            a.masks[at] = Some(crate::six::mask((before + len) as u8));
            a.set(flag);
        }
        Ok(())
    }
    /// `split_address_and_port`.
    fn translation(&mut self, letter: char, glued: Option<&str>) -> Parsed<()> {
        self.asked.set(letter);
        let word = self.optional(glued);
        let mut to: To = (None, None);
        if let Some(word) = word {
            let (addr, port) = match (word.find('['), word.split_once(':')) {
                (Some(open), _) => match word[open + 1..].split_once(']') {
                    Some(("", _)) => return bad("No IPv6 address specified"),
                    None => return bad("No closing ']' around IPv6 address"),
                    Some((addr, rest)) => match rest.split_once(':') {
                        Some((_, port)) => (addr, Some(port)),
                        None => (word, None),
                    },
                },
                (None, Some((addr, port))) if !port.contains(':') => (addr, Some(port)),
                _ => (word, None),
            };
            if port == Some("") {
                return bad("No port specified after `:'");
            }
            let number = port.map(|p| p.parse::<u16>().map_err(|_| p)).transpose();
            match number {
                Err(port) => return bad(format!("Invalid port `{port}'")),
                Ok(port) => to.1 = port,
            }
            if addr.contains('/') {
                let Some(_) = inet(addr.split('/').next().unwrap_or_default()) else {
                    return bad(format!("Invalid IP address `{addr}'"));
                };
                let name = LONG.iter().find(|o| o.2 == letter).map_or("unknown", |o| o.0);
                return bad(format!("CIDR notation unavailable for `--{name}'"));
            }
            let Some(addr) = inet(addr) else { return bad(format!("Invalid IP address `{addr}'")) };
            self.asked.family(addr.is_ipv6())?;
            to.0 = Some(addr);
        }
        let a = &mut self.asked;
        match letter {
            'n' => a.nat[0] = Some(to),
            'g' => a.nat[1] = Some(to),
            _ => (a.any_nat, a.nat) = (true, [Some(to), Some(to)]),
        }
        Ok(())
    }
}

/// `parse_parameter`: names that begin so, with commas between.
fn parameters(text: &str, known: &[(&str, u16)]) -> Parsed<u16> {
    let mut all = 0;
    let mut rest = text;
    loop {
        let (name, more) = rest.split_once(',').map_or((rest, None), |(name, more)| (name, Some(more)));
        let begins = |full: &str| {
            full.len() >= name.len()
                && full.is_char_boundary(name.len())
                && full[..name.len()].eq_ignore_ascii_case(name)
        };
        match known.iter().find(|k| begins(k.0)).filter(|_| !name.is_empty()) {
            Some(found) => all |= found.1,
            None => return bad(format!("Bad parameter `{rest}'")),
        }
        match more {
            Some(more) => rest = more,
            None => return Ok(all),
        }
    }
}
