//! Python's text as tokens: names, numbers, strings with their places, and where blocks begin and end.

/// A token.
#[derive(Clone, PartialEq, Debug)]
pub enum Token {
    /// A name or a keyword.
    Name(String),
    /// A whole number.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// A string: its text, and whether it is an f-string.
    Str(String, bool),
    /// An operator or a bracket.
    Op(&'static str),
    /// The end of a statement.
    Newline,
    /// A block begins.
    Indent,
    /// A block ends.
    Dedent,
}

/// A token with its line, from 1.
pub type Placed = (Token, u32);

/// Operators, the long ones first.
const OPS: [&str; 46] = [
    "**=", "//=", "...", "==", "!=", "<=", ">=", "->", ":=", "+=", "-=", "*=", "/=", "%=", "|=", "&=", "^=",
    "**", "//", "<<", ">>", "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "@", "=", "+", "-", "*", "/",
    "%", "<", ">", "&", "|", "^", "~", "!", "$",
];

struct Reader<'a> {
    text: &'a [char],
    at: usize,
    line: u32,
    tokens: Vec<Placed>,
    indents: Vec<usize>,
    depth: u32,
}

/// The tokens of a text; what cannot be read is left out.
pub fn tokens(text: &str) -> Vec<Placed> {
    let text: Vec<char> = text.replace('\r', "").chars().collect();
    let mut reader = Reader { text: &text, at: 0, line: 1, tokens: Vec::new(), indents: vec![0], depth: 0 };
    reader.all();
    reader.tokens
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> char {
        self.text.get(self.at + ahead).copied().unwrap_or('\0')
    }
    fn push(&mut self, token: Token) {
        self.tokens.push((token, self.line));
    }
    fn all(&mut self) {
        let mut fresh = true;
        while self.at < self.text.len() {
            if fresh && self.depth == 0 {
                fresh = false;
                if !self.indentation() {
                    fresh = true;
                    continue;
                }
            }
            let c = self.peek(0);
            match c {
                '\n' => {
                    if self.depth == 0 {
                        self.push(Token::Newline);
                        fresh = true;
                    }
                    self.at += 1;
                    self.line += 1;
                }
                '\\' if self.peek(1) == '\n' => {
                    self.at += 2;
                    self.line += 1;
                }
                ' ' | '\t' => self.at += 1,
                '#' => {
                    while self.at < self.text.len() && self.peek(0) != '\n' {
                        self.at += 1;
                    }
                }
                _ => self.one(c),
            }
        }
        self.push(Token::Newline);
        while self.indents.len() > 1 {
            self.indents.pop();
            self.push(Token::Dedent);
        }
    }
    /// Blanks at a line's beginning; false where the line says nothing.
    fn indentation(&mut self) -> bool {
        let mut width = 0;
        while matches!(self.peek(0), ' ' | '\t') {
            width += if self.peek(0) == '\t' { 8 - width % 8 } else { 1 };
            self.at += 1;
        }
        if matches!(self.peek(0), '\n' | '#' | '\0') {
            while self.at < self.text.len() && self.peek(0) != '\n' {
                self.at += 1;
            }
            if self.at < self.text.len() {
                self.at += 1;
                self.line += 1;
            }
            return false;
        }
        if width > *self.indents.last().unwrap_or(&0) {
            self.indents.push(width);
            self.push(Token::Indent);
        }
        while width < *self.indents.last().unwrap_or(&0) {
            self.indents.pop();
            self.push(Token::Dedent);
        }
        true
    }
    fn one(&mut self, c: char) {
        if c.is_ascii_digit() {
            return self.number();
        }
        if c == '"' || c == '\'' {
            return self.string("");
        }
        if c.is_alphabetic() || c == '_' {
            let from = self.at;
            while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
                self.at += 1;
            }
            let name: String = self.text[from..self.at].iter().collect();
            let prefix = name.len() <= 2 && name.to_lowercase().chars().all(|c| "rbfu".contains(c));
            if prefix && matches!(self.peek(0), '"' | '\'') {
                return self.string(&name.to_lowercase());
            }
            return self.push(Token::Name(name));
        }
        for op in OPS {
            if op.chars().enumerate().all(|(i, o)| self.peek(i) == o) {
                self.at += op.len();
                match op {
                    "(" | "[" | "{" => self.depth += 1,
                    ")" | "]" | "}" => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                }
                return self.push(Token::Op(op));
            }
        }
        self.at += 1;
    }
    fn number(&mut self) {
        let from = self.at;
        while self.peek(0).is_ascii_alphanumeric()
            || self.peek(0) == '_'
            || self.peek(0) == '.' && self.peek(1).is_ascii_digit()
        {
            self.at += 1;
        }
        let word: String = self.text[from..self.at].iter().filter(|c| **c != '_').collect();
        let token = match word.strip_prefix("0x") {
            Some(hex) => i64::from_str_radix(hex, 16).ok().map(Token::Int),
            None => word.parse().ok().map(Token::Int).or_else(|| word.parse().ok().map(Token::Float)),
        };
        if let Some(token) = token {
            self.push(token);
        }
    }
    fn string(&mut self, prefix: &str) {
        let (raw, formatted) = (prefix.contains('r'), prefix.contains('f'));
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        let begins = self.line;
        self.at += if triple { 3 } else { 1 };
        let mut text = String::new();
        while self.at < self.text.len() {
            let c = self.peek(0);
            if c == quote && (!triple || self.peek(1) == quote && self.peek(2) == quote) {
                self.at += if triple { 3 } else { 1 };
                break;
            }
            if c == '\n' {
                self.line += 1;
                if !triple {
                    break;
                }
            }
            if c == '\\' && !raw {
                self.at += 1;
                let escaped = self.peek(0);
                match escaped {
                    'n' => text.push('\n'),
                    't' => text.push('\t'),
                    // The line goes on; what follows stands a line further down all the same.
                    '\n' => self.line += 1,
                    'x' | 'u' | 'r' | '0' => text.push('?'),
                    '\\' | '\'' | '"' => text.push(escaped),
                    _ => text.extend(['\\', escaped]),
                }
            } else {
                text.push(c);
            }
            self.at += 1;
        }
        self.tokens.push((Token::Str(text, formatted), begins));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_strings_and_lines() {
        let all = tokens(
            "def f(a,\n      b):\n    x = f'{a}' \"b\" # c\n\n    return 0x10\ny = \"\"\"1\n2\"\"\"\n",
        );
        let at = |t: &Token| all.iter().find(|p| p.0 == *t).map(|p| p.1);
        assert_eq!(at(&Token::Indent), Some(3));
        assert_eq!(at(&Token::Str("{a}".to_owned(), true)), Some(3));
        assert_eq!(at(&Token::Int(16)), Some(5));
        assert_eq!(at(&Token::Str("1\n2".to_owned(), false)), Some(6));
        assert_eq!(all.iter().filter(|p| p.0 == Token::Dedent).count(), 1);
    }
}
