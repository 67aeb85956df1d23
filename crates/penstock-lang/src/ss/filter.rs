//! Expressions over sockets: `dst 10.0.0.2 and not sport = :22`.
//!
//! Follows: iproute2 6.1.0 `misc/ssfilter.y`, `misc/ss.c` `parse_hostcond`, `run_ssfilter`; linux v6.12 net/ipv4/inet_diag.c `inet_diag_bc_run`.
//! Differs: names of hosts are nobody's; `cgroup` and conditions of other families are refused by name.

use super::{Machine, Refusal, failed, not_simulated, usage};
use crate::ip::words::{Family, address, mask_len};
use crate::services;
use penstock_model::sockets::Socket;
use std::net::IpAddr;

/// An address and its length, a port: as far as they are asked for.
type Host = (Option<(IpAddr, u8)>, Option<i64>);

/// An expression.
#[derive(Clone, PartialEq, Debug)]
pub enum Filter {
    /// Both hold.
    And(Box<Filter>, Box<Filter>),
    /// One of them does.
    Or(Box<Filter>, Box<Filter>),
    /// It does not.
    Not(Box<Filter>),
    /// The address (and its length) and the port of the peer (`true`), or our own.
    Host(bool, Option<(IpAddr, u8)>, Option<i64>),
    /// The port of the peer (`true`), or our own, is at least this.
    AtLeast(bool, i64),
    /// It is at most this.
    AtMost(bool, i64),
    /// It is bound to this device.
    Device(u32),
    /// Its mark, under a mask.
    Mark(u32, u32),
    /// Its port was chosen for it.
    Autobound,
}

fn within(addr: IpAddr, net: IpAddr, len: u8) -> bool {
    let (a, n, bits) = match (addr, net) {
        (IpAddr::V4(a), IpAddr::V4(n)) => (u128::from(u32::from(a)), u128::from(u32::from(n)), 32),
        (IpAddr::V6(a), IpAddr::V6(n)) => (u128::from(a), u128::from(n), 128),
        (IpAddr::V6(a), IpAddr::V4(n)) => match a.to_ipv4_mapped() {
            Some(a) => (u128::from(u32::from(a)), u128::from(u32::from(n)), 32),
            None => return false,
        },
        (IpAddr::V4(_), IpAddr::V6(_)) => return false,
    };
    len == 0 || (a ^ n) >> (bits - u32::from(len)) == 0
}

impl Filter {
    /// Whether a socket is meant; `ephemeral`: the ports that are chosen for sockets.
    pub(super) fn holds(&self, s: &Socket, ephemeral: (u16, u16)) -> bool {
        let port = |peer: bool| i64::from(if peer { s.remote.1 } else { s.local.1 });
        match self {
            Filter::And(a, b) => a.holds(s, ephemeral) && b.holds(s, ephemeral),
            Filter::Or(a, b) => a.holds(s, ephemeral) || b.holds(s, ephemeral),
            Filter::Not(a) => !a.holds(s, ephemeral),
            Filter::Host(peer, net, wanted) => {
                let addr = if *peer { s.remote.0 } else { s.local.0 };
                wanted.is_none_or(|w| w == port(*peer)) && net.is_none_or(|(net, len)| within(addr, net, len))
            }
            Filter::AtLeast(peer, least) => port(*peer) >= *least,
            Filter::AtMost(peer, most) => port(*peer) <= *most,
            Filter::Device(ifindex) => s.bound == *ifindex,
            Filter::Mark(mark, mask) => s.mark & mask == *mark,
            Filter::Autobound => (ephemeral.0..=ephemeral.1).contains(&s.local.1),
        }
    }
}

/// What is being asked of what follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum About {
    Address(bool),
    Port(bool),
    Device,
    Mark,
}

#[derive(Clone, PartialEq, Debug)]
enum Token {
    Open,
    Close,
    Not,
    And,
    Or,
    Equal,
    Unequal,
    AtLeast,
    AtMost,
    More,
    Less,
    About(About),
    Autobound,
    Host(Option<(IpAddr, u8)>, Option<i64>),
    Device(u32),
    Mark(u32, u32),
    End,
}

struct Parser<'a> {
    words: std::vec::IntoIter<String>,
    machine: &'a Machine<'a>,
    preferred: &'a mut Option<bool>,
    about: Option<About>,
    next: Option<Token>,
}

/// The words of an argument: blanks part them, a backslash takes what follows as it is.
fn words_of(argument: &str) -> Vec<String> {
    let (mut words, mut word, mut any) = (Vec::new(), String::new(), false);
    let mut chars = argument.chars();
    while let Some(c) = chars.next() {
        match c {
            ' ' | '\t' => {
                if std::mem::take(&mut any) {
                    words.push(std::mem::take(&mut word));
                }
            }
            '\\' => {
                word.extend(chars.next());
                any = true;
            }
            c => {
                word.push(c);
                any = true;
            }
        }
    }
    if any {
        words.push(word);
    }
    words
}

/// Reads an expression; `None`: there is none. `preferred`: whether conditions are of IPv6, which they may say themselves.
pub(super) fn parse(
    arguments: &[&str],
    machine: &Machine<'_>,
    preferred: &mut Option<bool>,
) -> Result<Option<Filter>, Refusal> {
    let words: Vec<String> = arguments.iter().flat_map(|a| words_of(a)).collect();
    let mut p = Parser { words: words.into_iter(), machine, preferred, about: None, next: None };
    if p.peek()? == &Token::End {
        return Ok(None);
    }
    let filter = p.list(0)?;
    match p.peek()? {
        Token::End => Ok(Some(filter)),
        _ => Err(wrong()),
    }
}

fn wrong() -> Refusal {
    usage("ss: bison bellows (while parsing filter): \"syntax error!\" Sorry.\n")
}

/// How deep parentheses may stand within each other.
const DEEPEST: u32 = 200;

impl Parser<'_> {
    fn peek(&mut self) -> Result<&Token, Refusal> {
        if self.next.is_none() {
            self.next = Some(self.read()?);
        }
        Ok(self.next.as_ref().unwrap_or(&Token::End))
    }
    fn take(&mut self) -> Result<Token, Refusal> {
        match self.next.take() {
            Some(token) => Ok(token),
            None => self.read(),
        }
    }
    /// Expressions side by side; those that stand together without a word must both hold. No word binds closer than another.
    fn list(&mut self, depth: u32) -> Result<Filter, Refusal> {
        let mut left = self.one(depth)?;
        loop {
            let and = match self.peek()? {
                Token::End | Token::Close => return Ok(left),
                Token::Or => {
                    self.take()?;
                    false
                }
                Token::And => {
                    self.take()?;
                    true
                }
                _ => true,
            };
            let right = Box::new(self.one(depth)?);
            left = match and {
                true => Filter::And(Box::new(left), right),
                false => Filter::Or(Box::new(left), right),
            };
        }
    }
    fn one(&mut self, depth: u32) -> Result<Filter, Refusal> {
        if depth > DEEPEST {
            return Err(wrong());
        }
        match self.take()? {
            Token::Open => {
                let inner = self.list(depth + 1)?;
                match self.take()? {
                    Token::Close => Ok(inner),
                    _ => Err(wrong()),
                }
            }
            Token::Not => Ok(Filter::Not(Box::new(self.one(depth + 1)?))),
            Token::Autobound => Ok(Filter::Autobound),
            Token::About(about) => self.condition(about),
            _ => Err(wrong()),
        }
    }
    fn condition(&mut self, about: About) -> Result<Filter, Refusal> {
        let sign = match self.peek()? {
            Token::Equal | Token::Unequal | Token::AtLeast | Token::AtMost | Token::More | Token::Less => {
                self.take()?
            }
            _ => Token::Equal,
        };
        let not = |f| Filter::Not(Box::new(f));
        let value = self.take()?;
        Ok(match (about, value, sign) {
            (About::Address(peer), Token::Host(net, port), Token::Equal) => Filter::Host(peer, net, port),
            (About::Port(peer), Token::Host(net, port), sign) => {
                let number = port.unwrap_or(-1);
                match sign {
                    Token::Unequal => not(Filter::Host(peer, net, port)),
                    Token::AtLeast => Filter::AtLeast(peer, number),
                    Token::AtMost => Filter::AtMost(peer, number),
                    Token::More => not(Filter::AtMost(peer, number)),
                    Token::Less => not(Filter::AtLeast(peer, number)),
                    _ => Filter::Host(peer, net, port),
                }
            }
            (About::Device, Token::Device(n), Token::Equal) => Filter::Device(n),
            (About::Device, Token::Device(n), Token::Unequal) => not(Filter::Device(n)),
            (About::Mark, Token::Mark(mark, mask), Token::Equal) => Filter::Mark(mark, mask),
            (About::Mark, Token::Mark(mark, mask), Token::Unequal) => not(Filter::Mark(mark, mask)),
            _ => return Err(wrong()),
        })
    }
    fn read(&mut self) -> Result<Token, Refusal> {
        let Some(word) = self.words.next() else { return Ok(Token::End) };
        let about = match word.as_str() {
            "!" | "not" => return Ok(Token::Not),
            "&" | "&&" | "and" => return Ok(Token::And),
            "|" | "||" | "or" => return Ok(Token::Or),
            "(" => return Ok(Token::Open),
            ")" => return Ok(Token::Close),
            "dst" => About::Address(true),
            "src" => About::Address(false),
            "dport" => About::Port(true),
            "sport" => About::Port(false),
            "dev" => About::Device,
            "fwmark" => About::Mark,
            "cgroup" => return not_simulated("ss cgroup", "there are no control groups here: leave it out"),
            ">=" | "ge" | "geq" => return Ok(Token::AtLeast),
            "<=" | "le" | "leq" => return Ok(Token::AtMost),
            "!=" | "ne" | "neq" => return Ok(Token::Unequal),
            "=" | "==" | "eq" => return Ok(Token::Equal),
            ">" | "gt" => return Ok(Token::More),
            "<" | "lt" => return Ok(Token::Less),
            "autobound" => return Ok(Token::Autobound),
            _ => return self.value(&word),
        };
        self.about = Some(about);
        Ok(Token::About(about))
    }
    fn value(&mut self, word: &str) -> Result<Token, Refusal> {
        match self.about {
            Some(About::Device) => {
                let found = (self.machine.device)(word).or_else(|| integer(word).map(|n| n as u32));
                found.map(Token::Device).ok_or_else(|| failed("Cannot parse device.\n", 1))
            }
            Some(About::Mark) => {
                let (mark, mask) = word.split_once('/').map_or((word, None), |(m, k)| (m, Some(k)));
                let mask = mask.map_or(Some(0xffff_ffff), integer);
                match (integer(mark), mask) {
                    (Some(mark), Some(mask)) => Ok(Token::Mark(mark as u32, mask as u32)),
                    _ => Err(failed(format!("Cannot parse mark {word}.\n"), 1)),
                }
            }
            about => {
                let is_port = matches!(about, Some(About::Port(_)));
                let (net, port) = self.host(word, is_port)?;
                Ok(Token::Host(net, port))
            }
        }
    }
    //= iproute2 6.1.0 misc/ss.c parse_hostcond
    fn host(&mut self, word: &str, is_port: bool) -> Result<Host, Refusal> {
        const CANNOT: &str = "Cannot parse dst/src address.\n";
        let mut rest = word;
        for (name, six) in [("inet:", false), ("inet6:", true)] {
            if let Some(bare) = word.strip_prefix(name) {
                *self.preferred = Some(six);
                rest = bare;
            }
        }
        for other in ["unix:", "link:", "netlink:", "vsock:"] {
            if word.starts_with(other) {
                return not_simulated(&format!("ss {other}"), super::OTHERS_ARE_NOT);
            }
        }
        let (addr, port) = if is_port {
            ("", Some(rest))
        } else if let Some(inner) = rest.strip_prefix('[') {
            let (addr, port) = inner.split_once(']').ok_or_else(|| failed(CANNOT, 1))?;
            (addr, Some(port))
        } else if let Some(port) = rest.strip_prefix('*') {
            ("*", Some(port))
        } else {
            let from = rest.find('/').unwrap_or(0);
            match rest[from..].rfind(':') {
                Some(at) => (&rest[..from + at], Some(&rest[from + at..])),
                None => (rest, None),
            }
        };
        let mut number = None;
        if let Some(port) = port.map(|p| p.strip_prefix(':').unwrap_or(p))
            && !port.is_empty()
            && !port.starts_with('*')
        {
            number = integer(port).or_else(|| services::port(port).map(i64::from));
            if number.is_none() {
                let said = format!("Error: \"{port}\" does not look like a port.\n{CANNOT}");
                return Err(failed(said, 1));
            }
        }
        if addr.is_empty() || addr.starts_with('*') {
            return Ok((None, number));
        }
        let family = match self.preferred {
            None => Family::Any,
            Some(false) => Family::Inet,
            Some(true) => Family::Inet6,
        };
        let (bare, len) = addr.split_once('/').map_or((addr, None), |(a, len)| (a, Some(len)));
        let net = address(bare, family).and_then(|a| {
            let whole = if matches!(bare, "default" | "any" | "all") {
                0
            } else if a.is_ipv4() {
                32
            } else {
                128
            };
            Some((a, len.map_or(Some(whole), |len| mask_len(len, a.is_ipv4()))?))
        });
        match net {
            Some((_, 0)) => Ok((None, number)),
            Some(net) => Ok((Some(net), number)),
            None => {
                let said = format!("Error: an inet prefix is expected rather than \"{addr}\".\n{CANNOT}");
                Err(failed(said, 1))
            }
        }
    }
}

/// A number as C reads it: decimal, hexadecimal behind `0x`, octal behind `0`.
fn integer(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let n = if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        u32::from_str_radix(hex, 16).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        u32::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse::<u32>().ok().filter(|_| !digits.starts_with('+'))?
    };
    Some(if negative { -i64::from(n) } else { i64::from(n) })
}
