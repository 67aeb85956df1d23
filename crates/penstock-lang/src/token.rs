//! Script text to lines of words, as a shell reads them.
//!
//! Comments, continuation lines, quotes, `;`, `sudo`, redirections to `/dev/null`, `|| true`, variables that the script
//! itself sets. What only a real shell can do (pipes, loops, command substitution) is refused with its place.
//!
//! Follows: POSIX.1-2017 Shell Command Language, section 2.2 (quoting), 2.3 (token recognition).
//! Differs: no functions, no control structures, no globbing, no command substitution.

use penstock_model::Diagnostic;

/// One word of a command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// The word without its quotes.
    pub text: String,
    /// Column of its first character in its line of the file, in characters from 1.
    pub column: u32,
    /// Length in the file, quotes included, in characters.
    pub len: u32,
    /// Line of the file it stands on, from 1 (a continued command has several).
    pub line: u32,
}

impl Word {
    /// A word from no file: line 0.
    pub fn new(text: impl Into<String>, column: u32) -> Word {
        let text = text.into();
        let len = text.chars().count() as u32;
        Word { text, column, len, line: 0 }
    }
}

/// One command line.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Line {
    /// Number of the line the command begins on, from 1.
    pub number: u32,
    /// That line as it stands in the file.
    pub source: String,
    /// The words, `sudo` and redirections taken off. Never empty.
    pub words: Vec<Word>,
    /// `2>/dev/null`: what the command says of errors is thrown away.
    pub quiet_errors: bool,
    /// `>/dev/null`: what the command prints is thrown away.
    pub quiet_output: bool,
    /// `|| true`: a failure does not count.
    pub may_fail: bool,
    /// `&`: started in the background.
    pub background: bool,
    /// `> /proc/sys/…`: what the command prints is written there.
    pub to_setting: Option<String>,
}

impl Line {
    /// A command whose words are known, as a process gets them; the source is what one would type.
    pub fn of_words(words: &[String]) -> Line {
        let mut line = blank();
        line.number = 1;
        for text in words {
            if !line.source.is_empty() {
                line.source.push(' ');
            }
            let column = line.source.chars().count() as u32 + 1;
            let shown = quoted(text);
            let len = shown.chars().count() as u32;
            line.source.push_str(&shown);
            line.words.push(Word { text: text.clone(), column, len, line: 1 });
        }
        line
    }

    /// The diagnostic with the line's place and text filled in.
    pub fn place(&self, file: &str, mut diagnostic: Diagnostic) -> Diagnostic {
        diagnostic.file = file.to_owned();
        if diagnostic.line == 0 {
            diagnostic.line = self.number;
        }
        if diagnostic.source.is_empty() {
            diagnostic.source = self.source.clone();
        }
        diagnostic
    }
}

/// Splits one command line that comes from no script into words: quotes and backslashes work, nothing else is special.
///
/// # Errors
/// An unterminated quote.
pub fn words(text: &str) -> Result<Vec<Word>, Diagnostic> {
    let mut lines = script(text).map_err(|mut e| e.remove(0))?;
    Ok(if lines.is_empty() { Vec::new() } else { lines.remove(0).words })
}

/// Reads a script.
///
/// # Errors
/// Everything in it that is not a plain command, each with line and column.
pub fn script(text: &str) -> Result<Vec<Line>, Vec<Diagnostic>> {
    let mut reader = Reader::new(text);
    reader.run();
    if reader.errors.is_empty() { Ok(reader.lines) } else { Err(reader.errors) }
}

/// A word as one would type it: in single quotes where a shell would see more in it than a word.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-./:,=@%+^".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

struct Reader<'a> {
    sources: Vec<&'a str>,
    chars: Vec<char>,
    at: usize,
    line: u32,
    column: u32,
    lines: Vec<Line>,
    errors: Vec<Diagnostic>,
    variables: Vec<(String, String)>,
    current: Line,
    state: After,
}

/// What the words being read belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Command,
    /// After `||`: only `true` or `:` may stand here.
    Or,
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

fn blank() -> Line {
    Line {
        number: 0,
        source: String::new(),
        words: Vec::new(),
        quiet_errors: false,
        quiet_output: false,
        may_fail: false,
        background: false,
        to_setting: None,
    }
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Reader<'a> {
        Reader {
            sources: text.lines().collect(),
            chars: text.chars().filter(|&c| c != '\r').collect(),
            at: 0,
            line: 1,
            column: 1,
            lines: Vec::new(),
            errors: Vec::new(),
            variables: Vec::new(),
            current: blank(),
            state: After::Command,
        }
    }

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

    fn source(&self, line: u32) -> &'a str {
        self.sources.get(line as usize - 1).copied().unwrap_or("")
    }

    fn error(&mut self, line: u32, column: u32, len: u32, message: &str, help: &str) {
        let d = Diagnostic::error(message).at("", line, column, len).source(self.source(line)).help(help);
        self.errors.push(d);
    }

    fn run(&mut self) {
        let mut piece = Piece::default();
        while let Some(c) = self.peek() {
            let (line, column) = (self.line, self.column);
            match c {
                '\\' if self.chars.get(self.at + 1) == Some(&'\n') => {
                    self.bump();
                    self.bump();
                }
                '\\' => {
                    self.start(&mut piece);
                    piece.quoted = true;
                    self.bump();
                    if let Some(next) = self.bump() {
                        piece.text.push(next);
                    }
                    piece.len += 2;
                }
                '\'' | '"' => self.quote(&mut piece, c),
                '$' => self.variable(&mut piece, false),
                '#' if !piece.started => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.bump();
                    }
                }
                '\n' | ';' => {
                    self.word(&mut piece);
                    self.bump();
                    self.finish();
                }
                c if c.is_whitespace() => {
                    self.word(&mut piece);
                    self.bump();
                }
                '>' | '<' => self.redirection(&mut piece),
                '&' | '|' => self.operator(&mut piece),
                '`' | '(' | ')' => {
                    self.error(
                        line,
                        column,
                        1,
                        &format!("\"{c}\" needs a shell; commands here are read, not run by one"),
                        "write the command's result instead, or quote the character",
                    );
                    self.skip_line();
                    piece = Piece::default();
                }
                _ => {
                    self.start(&mut piece);
                    self.bump();
                    piece.text.push(c);
                    piece.len += 1;
                }
            }
        }
        self.word(&mut piece);
        self.finish();
    }

    fn start(&self, piece: &mut Piece) {
        if !piece.started {
            *piece = Piece { started: true, line: self.line, column: self.column, ..Piece::default() };
        }
    }

    fn skip_line(&mut self) {
        while self.peek().is_some_and(|c| c != '\n') {
            self.bump();
        }
        self.current = blank();
        self.state = After::Command;
    }

    fn quote(&mut self, piece: &mut Piece, quote: char) {
        self.start(piece);
        piece.quoted = true;
        let (line, column) = (self.line, self.column);
        self.bump();
        piece.len += 1;
        loop {
            match self.peek() {
                None => {
                    self.error(
                        line,
                        column,
                        1,
                        "Unterminated quoted string",
                        &format!("close it with {quote}"),
                    );
                    return;
                }
                Some(c) if c == quote => {
                    self.bump();
                    piece.len += 1;
                    return;
                }
                Some('$') if quote == '"' => self.variable(piece, true),
                Some('\\') if quote == '"' => {
                    self.bump();
                    match self.bump() {
                        Some('\n') => {}
                        Some(c @ ('"' | '\\' | '$' | '`')) => piece.text.push(c),
                        Some(c) => {
                            piece.text.push('\\');
                            piece.text.push(c);
                        }
                        None => {}
                    }
                    piece.len += 2;
                }
                Some(c) => {
                    self.bump();
                    piece.text.push(c);
                    piece.len += 1;
                }
            }
        }
    }

    /// `$NAME`, `${NAME}`: the value the script gave it, split at blanks where it stands outside quotes.
    fn variable(&mut self, piece: &mut Piece, quoted: bool) {
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
        let closed = !braces || self.peek() == Some('}');
        if braces && closed {
            self.bump();
        }
        let len = if self.line == line { self.column - column } else { 1 };
        piece.len += len;
        let value = self.variables.iter().rev().find(|(n, _)| *n == name).map(|(_, v)| v.clone());
        let Some(value) = value.filter(|_| closed) else {
            let message = if name.is_empty() || !closed {
                "\"$\" needs a shell; commands here are read, not run by one".to_owned()
            } else {
                format!("variable {name} is not set in this script")
            };
            self.error(
                line,
                column,
                len.max(1),
                &message,
                "set it before, as NAME=value, or write the value",
            );
            if name.is_empty() || !closed {
                self.skip_line();
                *piece = Piece::default();
            }
            return;
        };
        if quoted {
            piece.text.push_str(&value);
            return;
        }
        let mut parts = value.split_whitespace().peekable();
        if value.starts_with(char::is_whitespace) && !piece.text.is_empty() {
            self.split(piece);
        }
        while let Some(part) = parts.next() {
            piece.text.push_str(part);
            if parts.peek().is_some() || value.ends_with(char::is_whitespace) {
                self.split(piece);
            }
        }
        if piece.text.is_empty() && !piece.quoted {
            piece.started = false;
        }
    }

    /// Ends the word in the middle of an expansion; the next one has the same place.
    fn split(&mut self, piece: &mut Piece) {
        let (line, column, len) = (piece.line, piece.column, piece.len);
        self.word(piece);
        *piece = Piece { started: true, line, column, len, ..Piece::default() };
    }

    fn word(&mut self, piece: &mut Piece) {
        let piece = std::mem::take(piece);
        if !piece.started || (piece.text.is_empty() && !piece.quoted) {
            return;
        }
        if self.state == After::Or {
            if !matches!(piece.text.as_str(), "true" | ":") {
                self.error(
                    piece.line,
                    piece.column,
                    piece.len,
                    "only \"|| true\" is understood after a command",
                    "write the other command on a line of its own",
                );
            }
            self.current.may_fail = true;
            return;
        }
        let word = Word { text: piece.text, column: piece.column, len: piece.len, line: piece.line };
        if self.current.words.is_empty() {
            if !piece.quoted && word.text == "sudo" {
                self.current.number = word.line;
                return;
            }
            if let Some((name, value)) = assignment(&word.text) {
                self.variables.push((name.to_owned(), value.to_owned()));
                return;
            }
            if self.current.number == 0 {
                self.current.number = word.line;
            }
            let number = self.current.number;
            self.current.source = self.source(number).to_owned();
        }
        self.current.words.push(word);
    }

    fn finish(&mut self) {
        let line = std::mem::replace(&mut self.current, blank());
        self.state = After::Command;
        if !line.words.is_empty() {
            self.lines.push(line);
        }
    }

    /// `2>/dev/null`, `> /dev/null`, `&>/dev/null`, `2>&1`.
    fn redirection(&mut self, piece: &mut Piece) {
        let (line, column) = (self.line, self.column);
        let descriptor = if piece.started && !piece.quoted && piece.text.len() == 1 {
            let digit = piece.text.chars().next().filter(char::is_ascii_digit);
            if digit.is_some() {
                *piece = Piece::default();
            }
            digit
        } else {
            None
        };
        self.word(piece);
        let c = self.bump();
        if self.peek() == Some('>') {
            self.bump();
        }
        let joins = self.peek() == Some('&');
        if joins {
            self.bump();
        }
        while self.peek().is_some_and(|c| c == ' ' || c == '\t') {
            self.bump();
        }
        let mut target = String::new();
        while let Some(c) = self.peek().filter(|c| !c.is_whitespace() && !matches!(c, ';' | '&' | '|')) {
            target.push(c);
            self.bump();
        }
        match (c, descriptor, joins, target.as_str()) {
            (Some('>'), None | Some('1'), false, "/dev/null") => self.current.quiet_output = true,
            (Some('>'), Some('2'), false, "/dev/null") => self.current.quiet_errors = true,
            (Some('>'), Some('2'), true, "1") => self.current.quiet_errors = self.current.quiet_output,
            (Some('>'), None | Some('1'), false, path) if path.starts_with("/proc/sys/") => {
                self.current.to_setting = Some(target);
            }
            (Some('>'), None, true, "/dev/null") => {
                (self.current.quiet_output, self.current.quiet_errors) = (true, true);
            }
            _ => {
                let len = if self.line == line { self.column - column } else { 1 };
                self.error(
                    line,
                    column,
                    len,
                    "redirection to a file is not understood",
                    "take it off, or send it to /dev/null",
                );
            }
        }
    }

    fn operator(&mut self, piece: &mut Piece) {
        let (line, column) = (self.line, self.column);
        self.word(piece);
        let first = self.bump();
        match (first, self.peek()) {
            (Some('&'), Some('&')) => {
                self.bump();
                self.finish();
            }
            (Some('&'), Some('>')) => {
                self.redirection(piece);
                self.current.quiet_errors = self.current.quiet_output;
            }
            (Some('&'), _) => {
                self.current.background = true;
                self.finish();
            }
            (Some('|'), Some('|')) => {
                self.bump();
                self.state = After::Or;
            }
            _ => {
                self.error(
                    line,
                    column,
                    1,
                    "a pipe needs a shell; commands here are read, not run by one",
                    "take it off",
                );
                self.skip_line();
            }
        }
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
        let lines = script(text).unwrap();
        let got: Vec<Vec<&str>> =
            lines.iter().map(|l| l.words.iter().map(|w| w.text.as_str()).collect()).collect();
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn words_comments_continuations() {
        check("tc  qdisc\tls # all\n# none\n\nip a", &[&["tc", "qdisc", "ls"], &["ip", "a"]]);
        check("tc filter add \\\n  0x00 flowid 1:2\n", &[&["tc", "filter", "add", "0x00", "flowid", "1:2"]]);
        check("sudo tc qdisc; ip a && ip r", &[&["tc", "qdisc"], &["ip", "a"], &["ip", "r"]]);
        check("a 'b c' \"d\\\"e\" f\\ g '' x#y", &[&["a", "b c", "d\"e", "f g", "", "x#y"]]);
        check("tc qdisc ls\r\n", &[&["tc", "qdisc", "ls"]]);
    }

    #[test]
    fn variables_of_the_script_itself() {
        check(
            "DEV=eth0\nTC=\"tc class add dev $DEV\"\n$TC parent ${DEV}x",
            &[&["tc", "class", "add", "dev", "eth0", "parent", "eth0x"]],
        );
        let e = script("tc qdisc add dev $DEV root").unwrap_err();
        assert_eq!((e[0].line, e[0].column, e[0].len), (1, 18, 4));
        assert_eq!(e[0].message, "variable DEV is not set in this script");
    }

    #[test]
    fn places_are_those_of_the_file() {
        let lines = script("\n  sudo tc a \\\n b\n").unwrap();
        assert_eq!(lines[0].number, 2);
        assert_eq!(lines[0].source, "  sudo tc a \\");
        let places: Vec<_> = lines[0].words.iter().map(|w| (w.line, w.column, w.len)).collect();
        assert_eq!(places, [(2, 8, 2), (2, 11, 1), (3, 2, 1)]);
    }

    #[test]
    fn a_process_s_words_are_typed_again() {
        let words = ["tc", "a b", "", "it's", "0x00/0xff"].map(str::to_owned);
        let line = Line::of_words(&words);
        assert_eq!(line.source, "tc 'a b' '' 'it'\\''s' 0x00/0xff");
        assert_eq!(line.words.iter().map(|w| w.column).collect::<Vec<_>>(), [1, 4, 10, 13, 23]);
        let again = super::words(&line.source).unwrap();
        assert_eq!(again.iter().map(|w| &w.text).collect::<Vec<_>>(), words.iter().collect::<Vec<_>>());
    }

    #[test]
    fn what_a_script_says_about_failure() {
        let lines =
            script("tc qdisc del dev eth0 root 2>/dev/null || true\ntc x > /dev/null 2>&1\niperf -s &")
                .unwrap();
        assert!(lines[0].quiet_errors && lines[0].may_fail && !lines[0].quiet_output);
        assert!(lines[1].quiet_errors && lines[1].quiet_output && !lines[1].may_fail);
        assert!(lines[2].background);
        assert_eq!(lines[0].words.len(), 6);
    }

    #[test]
    fn what_needs_a_shell_is_refused_with_its_place() {
        let check = |text: &str, column: u32| {
            let e = script(text).unwrap_err();
            assert_eq!((e.len(), e[0].line, e[0].column), (1, 1, column), "{text}: {e:?}");
        };
        check("tc qdisc | grep x", 10);
        check("tc $(cat x) y", 4);
        check("tc 'abc", 4);
        check("tc q > file", 6);
        check("tc q || reboot", 9);
    }
}
