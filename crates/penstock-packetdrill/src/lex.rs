//! A script's tokens.
//!
//! Follows: google/packetdrill `lexer.l`.
//! Differs: addresses are no tokens: they stand in options and strings alone, and the headers around a packet that have some are refused.

use crate::script::Fault;

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Token {
    /// `...`.
    Ellipsis,
    /// A decimal number.
    Int(i64),
    /// `0x…`.
    Hex(i64),
    /// A number with a point, in millionths (a time); and its text, which may be the flags' `.5`.
    Float(i64, String),
    /// A name.
    Word(String),
    /// `"…"`.
    Str(String),
    /// `` `…` ``.
    Command(String),
    /// `%{ … }%`.
    Code(String),
    /// `--name` and what stands behind `=`.
    Option(String, Option<String>),
    /// Any other character.
    Char(char),
}

/// A token and its line, from 1.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Placed {
    pub token: Token,
    pub line: u32,
}

/// The longest script that is read, bytes.
const LONGEST: usize = 1 << 22;

struct Reader<'a> {
    rest: &'a str,
    line: u32,
}

impl<'a> Reader<'a> {
    /// Takes the first `len` bytes.
    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.line += taken.matches('\n').count() as u32;
        self.rest = rest;
        taken
    }
    /// Takes what stands before `end`, and that too.
    fn until(&mut self, open: usize, end: &str, what: &str) -> Result<&'a str, Fault> {
        let line = self.line;
        self.take(open);
        let at = self
            .rest
            .find(end)
            .ok_or_else(|| Fault::new(line, format!("{what} has no end: {end} is missing")))?;
        let text = self.take(at);
        self.take(end.len());
        Ok(text)
    }
    /// Takes what stands between two of `quote`; a backslash before one takes its meaning away.
    fn quoted(&mut self, quote: char) -> Result<&'a str, Fault> {
        let line = self.line;
        self.take(1);
        let mut escaped = false;
        let end = self.rest.char_indices().find(|&(_, c)| {
            let ends = c == quote && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        let (at, _) = end.ok_or_else(|| Fault::new(line, format!("{quote} is never closed")))?;
        let text = self.take(at);
        self.take(1);
        Ok(text)
    }
    fn number(&mut self) -> Result<Token, Fault> {
        let line = self.line;
        let bad = |text: &str| Fault::new(line, format!("{text} is not a number that fits"));
        let digits = |s: &str| s.find(|c: char| !c.is_ascii_digit()).unwrap_or(s.len());
        if let Some(hex) = self.rest.strip_prefix("0x") {
            let len = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
            if len > 0 {
                let text = self.take(2 + len);
                return i64::from_str_radix(&text[2..], 16).map(Token::Hex).map_err(|_| bad(text));
            }
        }
        let sign = usize::from(self.rest.starts_with('-'));
        let whole = digits(&self.rest[sign..]);
        let behind = &self.rest[sign + whole..];
        let part = behind.strip_prefix('.').map_or(0, digits);
        if part == 0 {
            let text = self.take(sign + whole);
            return text.parse().map(Token::Int).map_err(|_| bad(text));
        }
        let text = self.take(sign + whole + 1 + part);
        let (units, millionths) = text[sign..].split_once('.').unwrap_or_default();
        let units: i64 = if units.is_empty() { 0 } else { units.parse().map_err(|_| bad(text))? };
        let millionths: i64 = format!("{millionths:0<6}")[..6].parse().map_err(|_| bad(text))?;
        let value =
            units.checked_mul(1_000_000).and_then(|v| v.checked_add(millionths)).ok_or_else(|| bad(text))?;
        Ok(Token::Float(if sign == 1 { -value } else { value }, text.to_owned()))
    }
    /// Takes blanks and comments.
    fn skip(&mut self) -> Result<(), Fault> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
            self.take(blank);
            if self.rest.starts_with("//") {
                let len = self.rest.find('\n').unwrap_or(self.rest.len());
                self.take(len);
            } else if self.rest.starts_with("/*") {
                self.until(2, "*/", "a comment")?;
            } else if blank == 0 {
                return Ok(());
            }
        }
    }
    /// `--name` or `--name=value`; quotes hold a value with blanks together.
    fn option(&mut self) -> Token {
        self.take(2);
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let len = self.rest.find(|c| !word(c)).unwrap_or(self.rest.len());
        let name = self.take(len).to_owned();
        if !self.rest.starts_with('=') {
            return Token::Option(name, None);
        }
        self.take(1);
        let mut quote = None;
        let end = self.rest.find(|c: char| match quote {
            Some(q) => {
                if c == q {
                    quote = None;
                }
                false
            }
            None if c == '"' || c == '`' => {
                quote = Some(c);
                false
            }
            None => c.is_whitespace(),
        });
        Token::Option(name, Some(self.take(end.unwrap_or(self.rest.len())).to_owned()))
    }
}

/// The tokens of a script; `defines` are words that stand for something else.
pub(crate) fn tokens(text: &str, defines: &mut Vec<(String, String)>) -> Result<Vec<Placed>, Fault> {
    if text.len() > LONGEST {
        return Err(Fault::new(0, format!("a script has at most {LONGEST} bytes")));
    }
    let mut r = Reader { rest: text, line: 1 };
    let mut all = Vec::new();
    loop {
        r.skip()?;
        let line = r.line;
        let Some(c) = r.rest.chars().next() else { return Ok(all) };
        let next = r.rest[c.len_utf8()..].chars().next();
        let digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
        let token = match c {
            '`' => Token::Command(r.quoted('`')?.to_owned()),
            '"' => Token::Str(r.quoted('"')?.to_owned()),
            '%' if next == Some('{') => {
                Token::Code(r.until(2, "}%", "a piece of code")?.trim_matches([' ', '\t']).to_owned())
            }
            '-' if next == Some('-') => {
                let option = r.option();
                if let Token::Option(name, Some(value)) = &option
                    && name == "define"
                    && let Some((word, value)) = value.split_once('=')
                {
                    defines.push((word.to_owned(), value.to_owned()));
                }
                option
            }
            '.' if r.rest.starts_with("...") => {
                r.take(3);
                Token::Ellipsis
            }
            '.' if digit(next) => r.number()?,
            '-' if digit(next) => r.number()?,
            '-' if next == Some('.') && digit(r.rest.chars().nth(2)) => r.number()?,
            // A cookie is of hexadecimal digits.
            c if c.is_ascii_alphanumeric()
                && matches!(all.last(), Some(Placed { token: Token::Word(w), .. }) if w == "FO" || w == "FOEXP") =>
            {
                let len =
                    r.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(r.rest.len());
                let text = r.take(len);
                Token::Word(
                    defines.iter().rev().find(|d| d.0 == text).map_or(text, |d| d.1.as_str()).to_owned(),
                )
            }
            // A name may begin with a digit; a number ends where one would.
            c if c.is_ascii_alphanumeric() || c == '_' => {
                let len =
                    r.rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(r.rest.len());
                let whole = &r.rest[..len];
                let hex = whole
                    .strip_prefix("0x")
                    .is_some_and(|h| !h.is_empty() && h.chars().all(|c| c.is_ascii_hexdigit()));
                if hex || whole.chars().all(|c| c.is_ascii_digit()) {
                    r.number()?
                } else {
                    word(r.take(len), defines, line)?
                }
            }
            c => {
                r.take(c.len_utf8());
                Token::Char(c)
            }
        };
        all.push(Placed { token, line });
    }
}

/// A word, or what it stands for.
fn word(text: &str, defines: &[(String, String)], line: u32) -> Result<Token, Fault> {
    let Some((_, value)) = defines.iter().rev().find(|d| d.0 == text) else {
        return Ok(Token::Word(text.to_owned()));
    };
    let inner = |quote: char| value.strip_prefix(quote).and_then(|v| v.strip_suffix(quote));
    if let Some(text) = inner('"') {
        return Ok(Token::Str(text.to_owned()));
    }
    if let Some(text) = inner('`') {
        return Ok(Token::Command(text.to_owned()));
    }
    let number = match value.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok(),
        None => value.parse().ok(),
    };
    match number {
        Some(n) => Ok(Token::Int(n)),
        None if value.is_empty() => Err(Fault::new(line, format!("{text} is defined as nothing"))),
        None => Ok(Token::Word(value.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<Token> {
        let all = tokens(text, &mut vec![("N".to_owned(), "7".to_owned())]).unwrap();
        all.into_iter().map(|p| p.token).collect()
    }

    #[test]
    fn times_and_flags_are_told_apart() {
        use Token::*;
        let float = |v, t: &str| Float(v, t.to_owned());
        assert_eq!(read("+.1...0.200"), [Char('+'), float(100_000, ".1"), Ellipsis, float(200_000, "0.200")]);
        assert_eq!(read("+0...0"), [Char('+'), Int(0), Ellipsis, Int(0)]);
        assert_eq!(
            read("+.3~+.303"),
            [Char('+'), float(300_000, ".3"), Char('~'), Char('+'), float(303_000, ".303")]
        );
        assert_eq!(read("> P. 1:N"), [Char('>'), Word("P".to_owned()), Char('.'), Int(1), Char(':'), Int(7)]);
        assert_eq!(read("-1 0x2a"), [Int(-1), Hex(42)]);
        assert_eq!(read("// a\n/* b\n*/ %{ x }%"), [Code("x".to_owned())]);
        assert_eq!(
            read("--a --b=c::1 `d`"),
            [
                Option("a".to_owned(), None),
                Option("b".to_owned(), Some("c::1".to_owned())),
                Command("d".to_owned())
            ]
        );
    }

    #[test]
    fn what_has_no_end_is_told_with_its_line() {
        for text in ["\n`a", "\n%{ a", "\n/* a", "\n\"a"] {
            assert_eq!(tokens(text, &mut Vec::new()).unwrap_err().line, 2, "{text}");
        }
    }
}
