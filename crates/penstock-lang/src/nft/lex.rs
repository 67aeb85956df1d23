//! Text to tokens, as `scanner.l` cuts it.

use super::{Fault, Pos};
use std::net::Ipv6Addr;

/// A token.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Token {
    /// A bare word.
    Word(String),
    /// A quoted word.
    Quoted(String),
    /// Digits, as they were written.
    Number(String),
    /// A sign: one or two characters.
    Sign(&'static str),
    Newline,
    End,
}

impl Token {
    /// As the grammar's messages name it.
    pub(super) fn named(&self) -> String {
        match self {
            Token::Word(word) if KEYWORDS.contains(&word.as_str()) => word.clone(),
            Token::Word(_) => "string".to_owned(),
            Token::Quoted(_) => "quoted string".to_owned(),
            Token::Number(_) => "number".to_owned(),
            Token::Sign(sign) => match *sign {
                ";" => "semicolon".to_owned(),
                ":" => "colon".to_owned(),
                "," => "comma".to_owned(),
                "." => ".".to_owned(),
                s => format!("'{s}'"),
            },
            Token::Newline => "newline".to_owned(),
            Token::End => "end of file".to_owned(),
        }
    }
}

/// Words of the grammar that its messages call by name.
const KEYWORDS: &[&str] = &[
    "accept",
    "add",
    "chain",
    "comment",
    "continue",
    "counter",
    "create",
    "ct",
    "daddr",
    "delete",
    "dport",
    "drop",
    "dscp",
    "dynamic",
    "element",
    "expires",
    "flags",
    "flush",
    "goto",
    "handle",
    "hook",
    "insert",
    "ip",
    "ip6",
    "inet",
    "gc-interval",
    "jump",
    "length",
    "limit",
    "list",
    "log",
    "map",
    "mark",
    "meta",
    "meter",
    "policy",
    "position",
    "priority",
    "protocol",
    "quota",
    "rate",
    "reject",
    "rename",
    "replace",
    "return",
    "rule",
    "ruleset",
    "saddr",
    "set",
    "sport",
    "state",
    "table",
    "tcp",
    "timeout",
    "type",
    "typeof",
    "udp",
    "update",
    "vmap",
];

const SIGNS: [&str; 27] = [
    "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "{", "}", "(", ")", "[", "]", ",", ";", ":", "=", ".",
    "/", "*", "&", "|", "^", "<", ">", "!",
];

/// Tokens with their places. The command line's end is a newline, as the program adds one.
pub(super) fn tokens(text: &str) -> Result<Vec<(Token, Pos)>, Fault> {
    let mut out = Vec::new();
    let mut pending = String::new();
    for (n, line) in text.lines().enumerate() {
        let number = n as u32 + 1;
        // A backslash at the end joins the next line.
        let (line, joined) = match line.strip_suffix('\\') {
            Some(line) => (line, true),
            None => (line, false),
        };
        pending.clear();
        cut(line, number, &mut out)?;
        if !joined {
            let end = line.chars().count() as u32 + 1;
            out.push((Token::Newline, Pos { line: number, from: end, to: end }));
        }
    }
    let last = out.last().map_or(Pos { line: 1, from: 1, to: 1 }, |t| t.1);
    out.push((Token::End, Pos { from: last.to, ..last }));
    Ok(out)
}

fn cut(line: &str, number: u32, out: &mut Vec<(Token, Pos)>) -> Result<(), Fault> {
    let chars: Vec<char> = line.chars().collect();
    let mut at = 0;
    while at < chars.len() {
        let c = chars[at];
        let start = at;
        let place = |end: usize| Pos { line: number, from: start as u32 + 1, to: end as u32 };
        if c == ' ' || c == '\t' || c == '\r' {
            at += 1;
            continue;
        }
        if c == '#' {
            return Ok(());
        }
        if c == '"' {
            let Some(len) = chars[at + 1..].iter().position(|&c| c == '"') else {
                return Err(Fault::new(
                    place(chars.len()),
                    "syntax error, unexpected junk",
                    "a quote is open",
                ));
            };
            at += len + 2;
            let text: String = chars[start + 1..at - 1].iter().collect();
            out.push((Token::Quoted(text), place(at)));
            continue;
        }
        if let Some(len) = address_or_class(&chars[at..]) {
            at += len;
            out.push((Token::Word(chars[start..at].iter().collect()), place(at)));
            continue;
        }
        if c.is_ascii_digit()
            && let Some(len) = super::time::len(&chars[at..])
        {
            at += len;
            out.push((Token::Word(chars[start..at].iter().collect()), place(at)));
            continue;
        }
        if c.is_ascii_digit() {
            let hex = c == '0' && matches!(chars.get(at + 1), Some('x' | 'X'));
            at += if hex { 2 } else { 0 };
            while chars.get(at).is_some_and(|c| if hex { c.is_ascii_hexdigit() } else { c.is_ascii_digit() })
            {
                at += 1;
            }
            out.push((Token::Number(chars[start..at].iter().collect()), place(at)));
            continue;
        }
        if c.is_alphabetic() || c == '_' || c == '@' || c == '$' {
            at += 1;
            while chars.get(at).is_some_and(|&c| c.is_alphanumeric() || "/-_.\\".contains(c)) {
                at += 1;
            }
            if chars.get(at) == Some(&'*') {
                at += 1;
            }
            out.push((Token::Word(chars[start..at].iter().collect()), place(at)));
            continue;
        }
        if c == '-' || c == '+' {
            at += 1;
            out.push((Token::Sign(if c == '-' { "-" } else { "+" }), place(at)));
            continue;
        }
        let sign = SIGNS.iter().find(|s| s.chars().eq(chars[at..].iter().take(s.len()).copied()));
        let Some(sign) = sign else {
            return Err(Fault::new(place(at + 1), "syntax error, unexpected junk", ""));
        };
        at += sign.len();
        out.push((Token::Sign(sign), place(at)));
    }
    Ok(())
}

/// The length of an IPv6 address, a class (`1:10`), a dotted quad or a hardware address at the head.
fn address_or_class(chars: &[char]) -> Option<usize> {
    let len = chars.iter().take_while(|c| c.is_ascii_hexdigit() || **c == ':' || **c == '.').count();
    let mut text: String = chars[..len].iter().collect();
    let follows = |len: usize| chars.get(len).is_some_and(|c| c.is_alphanumeric() || *c == '_');
    while text.ends_with('.') || text.ends_with(':') && !text.ends_with("::") {
        text.pop();
    }
    let len = text.chars().count();
    if len == 0 || follows(len) {
        return None;
    }
    let colons = text.matches(':').count();
    if colons == 5 && text.split(':').all(|p| p.len() == 2) {
        return Some(len);
    }
    if colons >= 2 && text.parse::<Ipv6Addr>().is_ok() {
        return Some(len);
    }
    if colons >= 1
        && let Some((major, rest)) = text.split_once(':')
    {
        // The first two of `1:2:3` are a class.
        let minor = rest.split(':').next().unwrap_or("");
        let four = |t: &str| (1..=4).contains(&t.len()) && t.bytes().all(|b| b.is_ascii_hexdigit());
        if four(major) && four(minor) {
            return Some(major.len() + 1 + minor.len());
        }
        text = major.to_owned();
    }
    let quads =
        text.split('.').count() == 4 && text.split('.').all(|p| !p.is_empty() && p.parse::<u32>().is_ok());
    quads.then_some(text.len())
}
