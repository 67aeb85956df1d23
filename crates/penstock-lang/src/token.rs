//! One command line to words, as a shell reads quotes.
//!
//! Quotes, backslashes, comments and `sudo` in front are understood. What a shell does beside that (several commands, pipes,
//! redirections, variables) is refused with its place: scripts are read by the crate `penstock-shell`.
//!
//! Follows: POSIX.1-2017 Shell Command Language, section 2.2 (quoting), 2.3 (token recognition).
//! Differs: one command, no expansions, no redirections.

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
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Line {
    /// Number of the line the command begins on, from 1.
    pub number: u32,
    /// That line as it stands in the file.
    pub source: String,
    /// The words, `sudo` taken off.
    pub words: Vec<Word>,
}

impl Line {
    /// A command whose words are known, as a process gets them; the source is what one would type.
    pub fn of_words(words: &[String]) -> Line {
        let mut line = Line { number: 1, ..Line::default() };
        let mut column = 1;
        for text in words {
            if !line.source.is_empty() {
                line.source.push(' ');
            }
            let shown = quoted(text);
            let len = shown.chars().count() as u32;
            line.source.push_str(&shown);
            line.words.push(Word { text: text.clone(), column, len, line: 1 });
            column += len + 1;
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

/// Splits one command line into words, `sudo` in front taken off; none where it is blank or a comment.
///
/// # Errors
/// An unterminated quote; what needs a shell (`;`, `|`, `&`, `<`, `>`, `$`, `` ` ``, parentheses outside quotes), with its column.
pub fn words(text: &str) -> Result<Vec<Word>, Diagnostic> {
    read(text, 1).map(|line| line.words)
}

/// Reads one command line that begins on this line of its file; a backslash at a line's end joins the next one.
///
/// # Errors
/// As [`words`].
pub fn read(text: &str, number: u32) -> Result<Line, Diagnostic> {
    let mut reader =
        Reader { chars: text.chars().filter(|&c| c != '\r').collect(), at: 0, line: number, column: 1 };
    let source = |line: u32| text.lines().nth((line - number) as usize).unwrap_or("").to_owned();
    let mut words = reader.words().map_err(|fault| {
        let line = fault.line;
        fault.source(&source(line))
    })?;
    let number = words.first().map_or(number, |w| w.line);
    if words.first().is_some_and(|w| w.text == "sudo" && w.len == 4) {
        words.remove(0);
    }
    Ok(Line { number, source: source(number), words })
}

/// A word as one would type it: in single quotes where a shell would see more in it than a word.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| {
        c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '/' | ':' | ',' | '=' | '@' | '%' | '+' | '^')
    };
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    line: u32,
    column: u32,
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

    fn fault(line: u32, column: u32, message: &str, help: &str) -> Diagnostic {
        Diagnostic::error(message).at("", line, column, 1).help(help)
    }

    fn words(&mut self) -> Result<Vec<Word>, Diagnostic> {
        let mut words = Vec::new();
        let mut word: Option<Word> = None;
        let end = |word: &mut Option<Word>, words: &mut Vec<Word>| words.extend(word.take());
        while let Some(c) = self.peek() {
            let (line, column) = (self.line, self.column);
            if c == '\\' && self.chars.get(self.at + 1) == Some(&'\n') {
                self.bump();
                self.bump();
                continue;
            }
            if c.is_whitespace() {
                end(&mut word, &mut words);
                self.bump();
                if c == '\n' && !words.is_empty() && self.chars[self.at..].iter().any(|c| !c.is_whitespace())
                {
                    let help = "give the commands one after the other";
                    return Err(Reader::fault(self.line, 1, "a second line: this is one command", help));
                }
                continue;
            }
            if c == '#' && word.is_none() {
                while self.peek().is_some_and(|c| c != '\n') {
                    self.bump();
                }
                continue;
            }
            if ";&|<>()$`".contains(c) {
                let message = format!("\"{c}\" needs a shell; this is one command, and no shell reads it");
                let help = "quote the character, or put the line into a script";
                return Err(Reader::fault(line, column, &message, help));
            }
            let piece = word.get_or_insert_with(|| Word { text: String::new(), column, len: 0, line });
            let begin = self.at;
            match c {
                '\\' => {
                    self.bump();
                    piece.text.extend(self.bump());
                }
                '\'' | '"' => self.quote(piece, c)?,
                c => {
                    self.bump();
                    piece.text.push(c);
                }
            }
            piece.len += (self.at - begin) as u32;
        }
        end(&mut word, &mut words);
        Ok(words)
    }

    fn quote(&mut self, piece: &mut Word, quote: char) -> Result<(), Diagnostic> {
        let (line, column) = (self.line, self.column);
        self.bump();
        while let Some(c) = self.bump() {
            match c {
                c if c == quote => return Ok(()),
                '\\' if quote == '"' => match self.bump() {
                    Some('\n') | None => {}
                    Some(c @ ('"' | '\\' | '$' | '`')) => piece.text.push(c),
                    Some(c) => piece.text.extend(['\\', c]),
                },
                c => piece.text.push(c),
            }
        }
        let help = format!("close it with {quote}");
        Err(Reader::fault(line, column, "Unterminated quoted string", &help))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &[&str]) {
        let line = read(text, 1).unwrap();
        assert_eq!(line.words.iter().map(|w| w.text.as_str()).collect::<Vec<_>>(), want, "{text}");
    }

    #[test]
    fn words_comments_continuations() {
        check("tc  qdisc\tls # all", &["tc", "qdisc", "ls"]);
        check("# none", &[]);
        check("", &[]);
        check("tc filter add \\\n  0x00 flowid 1:2\n", &["tc", "filter", "add", "0x00", "flowid", "1:2"]);
        check("sudo tc qdisc", &["tc", "qdisc"]);
        check("a 'b c' \"d\\\"e\" f\\ g '' x#y", &["a", "b c", "d\"e", "f g", "", "x#y"]);
        check("a '$b;c' \\| \"\\$d\"", &["a", "$b;c", "|", "$d"]);
        check("tc qdisc ls\r\n", &["tc", "qdisc", "ls"]);
    }

    #[test]
    fn places_are_those_of_the_file() {
        let line = read("  sudo tc a \\\n b\n", 2).unwrap();
        assert_eq!((line.number, line.source.as_str()), (2, "  sudo tc a \\"));
        let places: Vec<_> = line.words.iter().map(|w| (w.line, w.column, w.len)).collect();
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
    fn what_needs_a_shell_is_refused_with_its_place() {
        for (text, line, column) in [
            ("tc qdisc | grep x", 1, 10),
            ("tc $(cat x) y", 1, 4),
            ("tc qdisc add dev $DEV root", 1, 18),
            ("tc 'abc", 1, 4),
            ("tc q > file", 1, 6),
            ("tc q 2>/dev/null", 1, 7),
            ("tc q || true", 1, 6),
            ("tc q; tc r", 1, 5),
            ("tc q &", 1, 6),
            ("tc `x`", 1, 4),
            ("tc q\ntc r", 2, 1),
        ] {
            let fault = words(text).unwrap_err();
            assert_eq!((fault.line, fault.column), (line, column), "{text}: {fault:?}");
        }
    }
}
