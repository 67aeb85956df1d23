//! Text of others, as a terminal may be given it.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The text with every character that a terminal would obey instead of showing it written out: `\\x1b`, `\\u{202e}`. Line ends and tabs stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            c if !obeyed(c) => out.push(c),
            c if (c as u32) < 0x100 => _ = write!(out, "\\x{:02x}", c as u32),
            c => _ = write!(out, "\\u{{{:x}}}", c as u32),
        }
    }
    Cow::Owned(out)
}

/// Control characters of ASCII and of ISO 8859, and those that turn the direction of writing (Unicode TR 36).
fn obeyed(c: char) -> bool {
    c.is_control() && c != '\n' && c != '\t'
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_obeyed() {
        let shown = visible("a\u{1b}]0;x\u{7}\r\n\tb\u{9b}2J \u{202e}ä→");
        assert_eq!(shown, "a\\x1b]0;x\\x07\\x0d\n\tb\\x9b2J \\u{202e}ä→");
        assert!(matches!(visible("plain ä\n"), Cow::Borrowed(_)));
    }
}
