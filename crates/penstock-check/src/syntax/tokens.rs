//! A shell text cut into words and operators, with their places.

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Word,
    Operator,
    Newline,
}

/// A token: its bytes in the text and its line, from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    pub kind: Kind,
    pub start: usize,
    pub end: usize,
    pub line: u32,
}

/// Operators, longer ones first.
const OPERATORS: [&str; 20] = [
    "<<<", "&>>", ";;&", "<<-", "&&", "||", ";;", ";&", "<<", ">>", "<&", ">&", "<>", ">|", "&>", ";", "&",
    "|", "<", ">",
];

/// The operators that begin with a byte; `None` where none does.
fn operator(first: u8) -> Option<impl Iterator<Item = &'static str>> {
    matches!(first, b'<' | b'>' | b'&' | b'|' | b';').then(|| OPERATORS.into_iter())
}

/// Reads the text between two places. What never closes ends with the text.
pub(crate) fn tokens(text: &str, from: usize, to: usize, line: u32) -> Vec<Token> {
    let mut reader =
        Reader { bytes: &text.as_bytes()[..to], text, at: from, line, out: Vec::new(), bodies: Vec::new() };
    reader.read();
    reader.out
}

struct Reader<'a> {
    bytes: &'a [u8],
    text: &'a str,
    at: usize,
    line: u32,
    out: Vec<Token>,
    /// Ends of here-documents that begin behind this line.
    bodies: Vec<String>,
}

impl Reader<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }
    fn starts(&self, text: &str) -> bool {
        self.bytes[self.at.min(self.bytes.len())..].starts_with(text.as_bytes())
    }
    fn step(&mut self, count: usize) {
        for _ in 0..count {
            self.line += u32::from(self.byte(0) == b'\n');
            self.at += 1;
        }
        self.at = self.at.min(self.bytes.len());
    }
    fn put(&mut self, kind: Kind, start: usize, line: u32) {
        self.out.push(Token { kind, start, end: self.at, line });
    }

    fn read(&mut self) {
        while self.at < self.bytes.len() {
            let (start, line) = (self.at, self.line);
            match self.byte(0) {
                b' ' | b'\t' | b'\r' => self.step(1),
                b'\\' if self.byte(1) == b'\n' => self.step(2),
                b'\n' => {
                    self.step(1);
                    self.put(Kind::Newline, start, line);
                    self.skip_bodies();
                }
                b'#' => {
                    while self.at < self.bytes.len() && self.byte(0) != b'\n' {
                        self.step(1);
                    }
                }
                b'(' if self.byte(1) == b'(' => {
                    self.arithmetic();
                    self.put(Kind::Word, start, line);
                }
                b'(' | b')' => {
                    self.step(1);
                    self.put(Kind::Operator, start, line);
                }
                first => match operator(first).and_then(|mut all| all.find(|o| self.starts(o))) {
                    Some(operator) if !(self.starts("<(") || self.starts(">(")) => {
                        self.step(operator.len());
                        self.put(Kind::Operator, start, line);
                    }
                    _ => {
                        self.word();
                        self.put(Kind::Word, start, line);
                        self.begins_body();
                    }
                },
            }
        }
    }

    /// Behind `<<`: the word is the end of a here-document.
    fn begins_body(&mut self) {
        let [.., before, word] = self.out.as_slice() else { return };
        if matches!(&self.text[before.start..before.end], "<<" | "<<-") && before.kind == Kind::Operator {
            let end: String =
                self.text[word.start..word.end].chars().filter(|c| !"'\"\\".contains(*c)).collect();
            self.bodies.push(end);
        }
    }

    fn skip_bodies(&mut self) {
        for end in std::mem::take(&mut self.bodies) {
            while self.at < self.bytes.len() {
                let rest = &self.text[self.at..self.bytes.len()];
                let length = rest.find('\n').map_or(rest.len(), |at| at + 1);
                let is_end = rest[..length].trim_end().trim_start_matches('\t') == end;
                self.step(length);
                if is_end {
                    break;
                }
            }
        }
    }

    /// `(( … ))`, or `( ( … ) )` written without a blank: to its closing parenthesis.
    fn arithmetic(&mut self) {
        let mut depth = 0_usize;
        while self.at < self.bytes.len() {
            match self.byte(0) {
                b'(' => depth += 1,
                b')' => depth -= 1,
                b'\'' | b'"' => {
                    self.quoted();
                    continue;
                }
                _ => {}
            }
            self.step(1);
            if depth == 0 {
                break;
            }
        }
    }

    fn word(&mut self) {
        // `[[ … ]]` is one word here: what looks like an operator in it is none.
        if self.starts("[[") && matches!(self.byte(2), b' ' | b'\t') {
            while self.at < self.bytes.len()
                && !(self.starts("]]") && self.bytes[self.at - 1].is_ascii_whitespace())
            {
                self.piece();
            }
            self.step(2);
            return;
        }
        while self.at < self.bytes.len() {
            match self.byte(0) {
                b' ' | b'\t' | b'\r' | b'\n' | b';' | b'&' | b'|' | b')' => break,
                // An array's elements belong to the word.
                b'(' if self.at > 0 && self.bytes[self.at - 1] == b'=' => self.parentheses(),
                b'(' => break,
                b'<' | b'>' if self.byte(1) != b'(' => break,
                b'<' | b'>' => {
                    self.step(1);
                    self.parentheses();
                }
                _ => self.piece(),
            }
        }
    }

    /// One character, or what a quote, a backslash or a `$` begins.
    fn piece(&mut self) {
        match self.byte(0) {
            b'\\' => self.step(2),
            b'\'' | b'"' | b'`' => self.quoted(),
            b'$' if self.byte(1) == b'(' => {
                self.step(1);
                self.parentheses();
            }
            b'$' if self.byte(1) == b'{' => {
                self.step(2);
                while self.at < self.bytes.len() && self.byte(0) != b'}' {
                    self.piece();
                }
                self.step(1);
            }
            _ => self.step(1),
        }
    }

    fn quoted(&mut self) {
        let quote = self.byte(0);
        self.step(1);
        while self.at < self.bytes.len() && self.byte(0) != quote {
            match (quote, self.byte(0)) {
                (b'"' | b'`', b'\\') => self.step(2),
                (b'"', b'$' | b'`') => self.piece(),
                _ => self.step(1),
            }
        }
        self.step(1);
    }

    /// From `(` to the `)` that closes it.
    fn parentheses(&mut self) {
        let mut depth = 0_usize;
        let mut blank = false;
        while self.at < self.bytes.len() {
            match self.byte(0) {
                b'(' => depth += 1,
                b')' if depth == 1 => {
                    self.step(1);
                    return;
                }
                b')' => depth -= 1,
                b'#' if blank => {
                    while self.at < self.bytes.len() && self.byte(0) != b'\n' {
                        self.step(1);
                    }
                    continue;
                }
                _ => {
                    blank = self.byte(0).is_ascii_whitespace();
                    self.piece();
                    continue;
                }
            }
            blank = false;
            self.step(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_operators_and_what_is_skipped() {
        let cut = |text: &str| {
            let all = tokens(text, 0, text.len(), 1);
            all.iter().map(|t| (text[t.start..t.end].to_owned(), t.line)).collect::<Vec<_>>()
        };
        let words = |text: &str| cut(text).into_iter().map(|t| t.0).collect::<Vec<_>>();
        assert_eq!(words("a && b||c;d & # e"), ["a", "&&", "b", "||", "c", ";", "d", "&"]);
        assert_eq!(
            words("x=$(tc a; ip b) \"$(f \"1\")\" ${y:-a b}"),
            ["x=$(tc a; ip b)", "\"$(f \"1\")\"", "${y:-a b}"]
        );
        assert_eq!(words("[[ a && b ]] || c"), ["[[ a && b ]]", "||", "c"]);
        assert_eq!(words("a=(1 2) for ((i=0;i<3;i++))"), ["a=(1 2)", "for", "((i=0;i<3;i++))"]);
        assert_eq!(words("a 2>&1 >x"), ["a", "2", ">&", "1", ">", "x"]);
        let heredoc = cut("cat <<E >x\ntc $(\nE\ntc b \\\n c\nd");
        let last: Vec<_> = heredoc.iter().rev().take(2).rev().map(|t| (t.0.as_str(), t.1)).collect();
        assert_eq!(last, [("\n", 5), ("d", 6)]);
        assert!(heredoc.iter().any(|t| *t == ("tc".to_owned(), 4)));
    }
}
