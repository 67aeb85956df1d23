//! Extended regular expressions of POSIX, as `sysctl -r` takes them, carried out by the crate `regex-lite`.
//!
//! Follows: POSIX.1-2017 XBD 9.4; glibc 2.36 `posix/regcomp.c` with `RE_SYNTAX_POSIX_EXTENDED`.
//! Differs: back references are refused; letters are those of ASCII.

use regex_lite::Regex;
use std::iter::Peekable;
use std::str::Chars;

/// A pattern.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Eq for Pattern {}

impl Pattern {
    /// Reads a pattern; `None` where it is not one.
    pub fn new(text: &str) -> Option<Pattern> {
        Regex::new(&translated(text)?).ok().map(Pattern)
    }

    /// Whether it is found in a text.
    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// The same pattern in the words of `regex-lite`; `None` where it is not one here.
fn translated(text: &str) -> Option<String> {
    let mut out = String::new();
    let mut open = 0;
    // Whether there is something to repeat, and whether that is a repetition already.
    let (mut some, mut again) = (false, false);
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if matches!(c, '*' | '+' | '?' | '{') {
            if !some {
                return None;
            }
            match c {
                // A second `?` would ask for the shortest there.
                '?' if again => out.push_str("{0,1}"),
                '{' => {
                    out.push('{');
                    out.extend(chars.peek().filter(|&&c| c == ',').map(|_| '0'));
                    loop {
                        let c = chars.next()?;
                        out.push(c);
                        if c == '}' {
                            break;
                        }
                    }
                }
                c => out.push(c),
            }
            again = true;
            continue;
        }
        (some, again) = (!matches!(c, '(' | '|' | '^'), false);
        match c {
            '(' => {
                open += 1;
                out.push(c);
            }
            ')' if open > 0 => {
                open -= 1;
                out.push(c);
            }
            ')' | '}' => literal(c, &mut out),
            '[' => set(&mut chars, &mut out)?,
            '\\' => match chars.next()? {
                '`' => out.push_str("\\A"),
                '\'' => out.push_str("\\z"),
                c @ ('w' | 'W' | 's' | 'S' | 'b' | 'B' | '<' | '>') => out.extend(['\\', c]),
                c if c.is_ascii_digit() => return None,
                c => literal(c, &mut out),
            },
            c => out.push(c),
        }
    }
    Some(out)
}

fn literal(c: char, out: &mut String) {
    if c.is_ascii_punctuation() {
        out.push('\\');
    }
    out.push(c);
}

/// A set behind its `[`: a backslash in it is a backslash, and only `[:` is more than a bracket.
fn set(chars: &mut Peekable<Chars<'_>>, out: &mut String) -> Option<()> {
    out.push('[');
    if chars.next_if_eq(&'^').is_some() {
        out.push('^');
    }
    let mut first = true;
    loop {
        match chars.next()? {
            ']' if !first => {
                out.push(']');
                return Some(());
            }
            '[' if chars.peek() == Some(&':') => {
                out.push('[');
                loop {
                    let c = chars.next()?;
                    out.push(c);
                    if c == ':' && chars.next_if_eq(&']').is_some() {
                        out.push(']');
                        break;
                    }
                }
            }
            // Collating symbols and equivalence classes.
            '[' if matches!(chars.peek(), Some('.' | '=')) => return None,
            '-' => out.push('-'),
            c => literal(c, out),
        }
        first = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Each as glibc's `regcomp` with `REG_EXTENDED` has it.
    #[test]
    fn found_or_not() {
        let is = |pattern: &str, text: &str| Pattern::new(pattern).map(|p| p.is_in(text));
        for (pattern, text, want) in [
            ("forward", "net.ipv4.ip_forward", true),
            ("^net.ipv4.ip_(forward|default_ttl)$", "net.ipv4.ip_default_ttl", true),
            ("^net.ipv4.ip_(forward|default_ttl)$", "net.ipv4.ip_forwards", false),
            ("conf\\.(all|eth[0-9]+)\\.rp_filter", "net.ipv4.conf.eth12.rp_filter", true),
            ("conf\\.(all|eth[0-9]+)\\.rp_filter", "net.ipv4.conf.lo.rp_filter", false),
            ("^[^n]", "net", false),
            ("a{2,3}b", "xaab", true),
            ("a{2}b", "xab", false),
            ("^a{,2}$", "aa", true),
            ("^a{,2}$", "aaa", false),
            ("(a*)*c", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaab", false),
            ("", "x", true),
            ("[[:digit:]]x?$", "ab7", true),
            ("a|^b", "cb", false),
            ("[]a]", "]", true),
            ("[^]a]", "]", false),
            ("[\\d]", "d", true),
            ("[\\d]", "7", false),
            ("[a&&b]", "&", true),
            ("[a-c-]", "-", true),
            ("a)", "a)", true),
            ("^ab*?$", "abb", true),
            ("^ab+?$", "a", true),
            ("^ab?+$", "abb", true),
            ("^(a{1}{2})?b$", "aab", true),
            ("^a{1}?$", "", true),
            ("\\d}", "d}", true),
            ("a|", "q", true),
            ("()", "q", true),
            ("\\<ip_", "net.ip_forward", true),
            ("\\.", "x", false),
        ] {
            assert_eq!(is(pattern, text), Some(want), "{pattern} in {text}");
        }
        for none in [
            "(",
            "[a",
            "*",
            "^*a",
            "(*a)",
            "a|*b",
            "{",
            "a{",
            "(?i)a",
            "a{x}",
            "\\",
            "(a)\\1",
            "[[:nothing:]]",
        ] {
            assert!(Pattern::new(none).is_none(), "{none}");
        }
    }
}
