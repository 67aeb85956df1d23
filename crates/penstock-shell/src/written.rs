//! Where the words of a command stand in a script's line.
//!
//! The interpreter says which command it runs, not in which columns its words were written. Lines of commands without expansions
//! but variables that the line itself sets are read once more here, for the place of a finding alone; what is more than that has
//! the place of its line.

use penstock_lang::token::Word;

/// The commands of this text, each with its words; `None` where it has more in it than such commands.
pub(crate) fn commands(text: &str) -> Option<Vec<Vec<Word>>> {
    let chars = text.chars().filter(|&c| c != '\r').collect();
    let mut reader = Reader {
        chars,
        at: 0,
        line: 1,
        column: 1,
        commands: Vec::new(),
        variables: Vec::new(),
        words: Vec::new(),
        or: false,
    };
    reader.run()?;
    Some(reader.commands)
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    line: u32,
    column: u32,
    commands: Vec<Vec<Word>>,
    variables: Vec<(String, String)>,
    words: Vec<Word>,
    /// Behind `||`, where only `true` or `:` may stand.
    or: bool,
}

/// A word while it is read.
#[derive(Default)]
struct Piece {
    text: String,
    line: u32,
    column: u32,
    len: u32,
    quoted: bool,
    started: bool,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn bump(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += 1;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn run(&mut self) -> Option<()> {
        let mut piece = Piece::default();
        while let Some(c) = self.peek() {
            match c {
                '\\' if self.chars.get(self.at + 1) == Some(&'\n') => {
                    self.bump();
                    self.bump();
                }
                '\\' => {
                    self.start(&mut piece);
                    piece.quoted = true;
                    self.bump();
                    piece.text.extend(self.bump());
                    piece.len += 2;
                }
                '\'' | '"' => self.quote(&mut piece, c)?,
                '$' => self.variable(&mut piece, false)?,
                '#' if !piece.started => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                '\n' | ';' => {
                    self.word(&mut piece)?;
                    self.bump();
                    self.finish();
                }
                c if c.is_whitespace() => {
                    self.word(&mut piece)?;
                    self.bump();
                }
                '>' | '<' => self.redirection(&mut piece)?,
                '&' | '|' => self.operator(&mut piece)?,
                '`' | '(' | ')' => return None,
                c => {
                    self.start(&mut piece);
                    self.bump();
                    piece.text.push(c);
                    piece.len += 1;
                }
            }
        }
        self.word(&mut piece)?;
        self.finish();
        Some(())
    }

    fn start(&self, piece: &mut Piece) {
        if !piece.started {
            *piece = Piece { started: true, line: self.line, column: self.column, ..Piece::default() };
        }
    }

    fn quote(&mut self, piece: &mut Piece, quote: char) -> Option<()> {
        self.start(piece);
        piece.quoted = true;
        self.bump();
        piece.len += 1;
        loop {
            match self.peek()? {
                c if c == quote => {
                    self.bump();
                    piece.len += 1;
                    return Some(());
                }
                '$' if quote == '"' => self.variable(piece, true)?,
                '\\' if quote == '"' => {
                    self.bump();
                    match self.bump() {
                        Some('\n') | None => {}
                        Some(c @ ('"' | '\\' | '$' | '`')) => piece.text.push(c),
                        Some(c) => piece.text.extend(['\\', c]),
                    }
                    piece.len += 2;
                }
                c => {
                    self.bump();
                    piece.text.push(c);
                    piece.len += 1;
                }
            }
        }
    }

    /// `$NAME`, `${NAME}`: the value the text gave it, split at blanks where it stands outside quotes.
    fn variable(&mut self, piece: &mut Piece, quoted: bool) -> Option<()> {
        let (line, column) = (self.line, self.column);
        self.start(piece);
        self.bump();
        let braces = self.peek() == Some('{');
        if braces {
            self.bump();
        }
        let mut name = String::new();
        while let Some(c) = self.peek().filter(|&c| c.is_ascii_alphanumeric() || c == '_') {
            name.push(c);
            self.bump();
        }
        if braces && self.bump() != Some('}') {
            return None;
        }
        piece.len += if self.line == line { self.column - column } else { 1 };
        let value = self.variables.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| v.clone())?;
        if quoted {
            piece.text.push_str(&value);
            return Some(());
        }
        let mut parts = value.split_whitespace().peekable();
        if value.starts_with(char::is_whitespace) && !piece.text.is_empty() {
            self.split(piece)?;
        }
        while let Some(part) = parts.next() {
            piece.text.push_str(part);
            if parts.peek().is_some() || value.ends_with(char::is_whitespace) {
                self.split(piece)?;
            }
        }
        if piece.text.is_empty() && !piece.quoted {
            piece.started = false;
        }
        Some(())
    }

    /// Ends the word in the middle of an expansion; the next one has the same place.
    fn split(&mut self, piece: &mut Piece) -> Option<()> {
        let (line, column, len) = (piece.line, piece.column, piece.len);
        self.word(piece)?;
        *piece = Piece { started: true, line, column, len, ..Piece::default() };
        Some(())
    }

    fn word(&mut self, piece: &mut Piece) -> Option<()> {
        let piece = std::mem::take(piece);
        if !piece.started || (piece.text.is_empty() && !piece.quoted) {
            return Some(());
        }
        if self.or {
            return matches!(piece.text.as_str(), "true" | ":").then_some(());
        }
        if self.words.is_empty() {
            if !piece.quoted && piece.text == "sudo" {
                return Some(());
            }
            if let Some((name, value)) = assignment(&piece.text) {
                self.variables.push((name.to_owned(), value.to_owned()));
                return Some(());
            }
        }
        self.words.push(Word { text: piece.text, column: piece.column, len: piece.len, line: piece.line });
        Some(())
    }

    fn finish(&mut self) {
        self.or = false;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }

    /// `> FILE`, `2> FILE`, `&> FILE`, `2>&1`: no words.
    fn redirection(&mut self, piece: &mut Piece) -> Option<()> {
        if piece.started
            && !piece.quoted
            && piece.text.len() == 1
            && piece.text.as_bytes()[0].is_ascii_digit()
        {
            *piece = Piece::default();
        }
        self.word(piece)?;
        let first = self.bump();
        if self.peek() == Some('>') {
            self.bump();
        }
        // A here-document goes on below.
        if first == Some('<') {
            return None;
        }
        if self.peek() == Some('&') {
            self.bump();
        }
        while self.peek().is_some_and(|c| c == ' ' || c == '\t') {
            self.bump();
        }
        while self.peek().is_some_and(|c| !c.is_whitespace() && !";&|".contains(c)) {
            self.bump();
        }
        Some(())
    }

    fn operator(&mut self, piece: &mut Piece) -> Option<()> {
        self.word(piece)?;
        match (self.bump(), self.peek()) {
            (Some('&'), Some('&')) => {
                self.bump();
                self.finish();
            }
            (Some('&'), Some('>')) => self.redirection(piece)?,
            (Some('&'), _) => self.finish(),
            (Some('|'), Some('|')) => {
                self.bump();
                self.or = true;
            }
            _ => return None,
        }
        Some(())
    }
}

/// `NAME=value` as the shell sees an assignment.
fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let mut chars = name.chars();
    let first = chars.next()?;
    let ok =
        (first.is_ascii_alphabetic() || first == '_') && chars.all(|c| c.is_ascii_alphanumeric() || c == '_');
    ok.then_some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &[&[&str]]) {
        let commands = commands(text).unwrap();
        let got: Vec<Vec<&str>> =
            commands.iter().map(|c| c.iter().map(|w| w.text.as_str()).collect()).collect();
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn commands_of_a_line() {
        check("tc  qdisc\tls # all\n# none\n\nip a", &[&["tc", "qdisc", "ls"], &["ip", "a"]]);
        check("sudo tc qdisc; ip a && ip r", &[&["tc", "qdisc"], &["ip", "a"], &["ip", "r"]]);
        check("a 'b c' \"d\\\"e\" f\\ g '' x#y", &[&["a", "b c", "d\"e", "f g", "", "x#y"]]);
        check(
            "tc a 2>/dev/null || true\ntc x > /dev/null 2>&1\niperf -s &",
            &[&["tc", "a"], &["tc", "x"], &["iperf", "-s"]],
        );
        check(
            "DEV=eth0\nTC=\"tc class add dev $DEV\"\n$TC parent ${DEV}x",
            &[&["tc", "class", "add", "dev", "eth0", "parent", "eth0x"]],
        );
    }

    #[test]
    fn places_are_those_of_the_text() {
        let commands = commands("\n  sudo tc a \\\n b\n").unwrap();
        let places: Vec<_> = commands[0].iter().map(|w| (w.line, w.column, w.len)).collect();
        assert_eq!(places, [(2, 8, 2), (2, 11, 1), (3, 2, 1)]);
    }

    #[test]
    fn what_is_more_has_no_words() {
        for text in [
            "tc | grep x",
            "tc $(cat x)",
            "tc 'abc",
            "tc $DEV",
            "cat <<E",
            "tc q || reboot",
            "tc ${a",
            "(tc q)",
        ] {
            assert!(commands(text).is_none(), "{text}");
        }
    }
}
