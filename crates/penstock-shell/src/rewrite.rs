//! A script's text, with what the interpreter reads otherwise than bash written in the way it reads rightly.
//!
//! | written | given to the interpreter |
//! |---|---|
//! | `` `cmd` `` | `$(cmd)`, lines joined by a backslash made one |
//! | `$[a + 1]` | `$((a + 1))` |
//! | `${x//%/y}` | `${x//\%/y}` |
//! | `${x:-$(cmd "$y")}` | `${x:-$(cmd $y)}` |
//! | `$SRANDOM`, `${SRANDOM:0:4}` | the same of `$RANDOM`, which begins at a number of ours, or of [`crate::dice`] |
//! | `$EPOCHSECONDS`, `$EPOCHREALTIME` | what [`crate::clock`] says |
//! | `$((M + 1))`, where some variable may begin with `0` | `$(((${M:-0}) + 1))`: the interpreter reads such a value as decimal |
//! | `f() {(` | `f() { (`: the interpreter takes `{(` for a word |
//! | `{1..20000}` | `{1..10000} {10001..20000}`: the interpreter leaves longer ranges as they are |
//!
//! Lines stay where they are. Text that is not understood to its end (quotes that never close) is left alone.

use crate::clock::NOW;
use crate::dice::SRANDOM;

/// 32 bits from bash's 15: `$SRANDOM` where chance begins at the same number each time.
const DICE: &str = "RANDOM<<17|RANDOM<<2|RANDOM&3";

/// What the characters being read belong to.
#[derive(Clone, Copy, PartialEq)]
enum In {
    /// Commands: the script itself, or `$( … )` with its open parentheses.
    Commands(usize),
    /// `(( … ))`, with its open parentheses.
    Arithmetic(usize),
    /// `" … "`.
    Quotes,
    /// `${ … }`.
    Braces,
    /// `$[ … ]`, with its open brackets.
    Brackets(usize),
}

/// The text to give to the interpreter.
pub(crate) fn rewrite(text: &str) -> String {
    // An object is no text, whatever its bytes look like.
    if text.as_bytes().starts_with(penstock_model::binary::ELF) {
        return text.to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader {
        chars: &chars,
        at: 0,
        out: String::with_capacity(text.len()),
        heredocs: Vec::new(),
        closed: true,
        most: None,
        octal: has_octal(text),
    };
    match reader.read() {
        Some(()) => reader.out,
        // The interpreter will say what is wrong, in words of the text: those have to be the same each time.
        None => text.replace("SRANDOM", "RANDOM"),
    }
}

/// The first word whose braces give more than the interpreter expands: its line and how many.
pub(crate) fn too_many_words(text: &str) -> Option<(u32, u128)> {
    if !text.contains("..") && !text.contains(',') {
        return None;
    }
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader {
        chars: &chars,
        at: 0,
        out: String::new(),
        heredocs: Vec::new(),
        closed: true,
        most: None,
        octal: false,
    };
    reader.read();
    reader.most
}

/// Whether a here-document begins here and does not end.
pub(crate) fn here_document_is_open(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader {
        chars: &chars,
        at: 0,
        out: String::new(),
        heredocs: Vec::new(),
        closed: true,
        most: None,
        octal: false,
    };
    // A newline asks for the bodies of those begun on the last line.
    reader.read().is_some() && !(reader.heredocs.is_empty() && reader.closed)
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    out: String,
    /// Delimiters of here-documents that begin after this line, and whether tabs before them go.
    heredocs: Vec<(String, bool)>,
    /// Whether every body so far had its end.
    closed: bool,
    /// See [`too_many_words`].
    most: Option<(u32, u128)>,
    /// Whether a variable may begin with `0` and another digit.
    octal: bool,
}

/// Whether a script gives a variable digits behind a `0`, or may get some from a format.
fn has_octal(text: &str) -> bool {
    // `for i in 01 02`, `seq -w 1 12`, `{01..12}`.
    let zero = |w: &str| matches!(w.as_bytes(), [b'0', b'0'..=b'9', ..]);
    let listed = |l: &str| {
        let behind = l.split_once("for ").and_then(|l| l.1.split_once(" in "));
        behind.is_some_and(|l| l.1.split([' ', '\t', '"', ';', '{']).any(zero))
    };
    text.contains("date +")
        || text.contains("%0")
        || text.contains("seq -w")
        || text.lines().any(listed)
        || text.match_indices('=').any(|(at, _)| {
            let value = text[at + 1..].trim_start_matches(['"', '\'']).as_bytes();
            matches!(value, [b'0', b'0'..=b'9', ..])
        })
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }
    fn starts(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.peek(i) == Some(c))
    }
    fn copy(&mut self, count: usize) {
        let end = (self.at + count).min(self.chars.len());
        self.out.extend(&self.chars[self.at..end]);
        self.at = end;
    }
    fn put(&mut self, text: &str, instead_of: usize) {
        self.out.push_str(text);
        self.at += instead_of;
    }

    fn read(&mut self) -> Option<()> {
        let mut stack = vec![In::Commands(0)];
        while let Some(c) = self.peek(0) {
            let inside = *stack.last()?;
            match c {
                '\\' => self.copy(2),
                '\'' if !matches!(inside, In::Quotes | In::Arithmetic(_)) && !quoted_braces(&stack) => {
                    let end = self.chars[self.at + 1..].iter().position(|&c| c == '\'')?;
                    self.copy(end + 2);
                }
                '"' if inside == In::Quotes => {
                    stack.pop();
                    self.copy(1);
                }
                '"' if matches!(inside, In::Commands(_)) && stack.contains(&In::Braces) && self.unquote() => {
                }
                '"' => {
                    stack.push(In::Quotes);
                    self.copy(1);
                }
                '`' => self.backticks(inside == In::Quotes)?,
                '$' if self.clock_or_chance() => {}
                '$' if self.starts("$((") => {
                    stack.push(In::Arithmetic(2));
                    self.copy(3);
                }
                '$' if self.starts("$(") => {
                    stack.push(In::Commands(1));
                    self.copy(2);
                }
                '$' if self.starts("${") => {
                    stack.push(In::Braces);
                    self.copy(2);
                    self.replacement_of_percent();
                }
                '$' if self.starts("$[") => {
                    stack.push(In::Brackets(1));
                    self.put("$((", 2);
                }
                '$' => self.copy(1),
                _ => self.plain(c, inside, &mut stack)?,
            }
        }
        (stack == [In::Commands(0)]).then_some(())
    }

    /// How long the name is that begins so far ahead.
    fn name_len(&self, ahead: usize) -> usize {
        let rest = self.chars.get(self.at + ahead..).unwrap_or_default();
        match rest.first() {
            Some(c) if !c.is_ascii_digit() => {
                rest.iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').count()
            }
            _ => 0,
        }
    }

    fn name(&self, ahead: usize) -> String {
        self.chars[self.at + ahead..][..self.name_len(ahead)].iter().collect()
    }

    /// After `$`: the variables that the interpreter takes from this computer's clock and dice.
    fn clock_or_chance(&mut self) -> bool {
        let braces = usize::from(self.peek(1) == Some('{'));
        let len = usize::from(braces == 1 && self.peek(2) == Some('#'));
        let name = self.name(1 + braces + len);
        let (command, dice) = match name.as_str() {
            "EPOCHSECONDS" => (NOW.to_owned(), None),
            "EPOCHREALTIME" => (format!("{NOW} us"), None),
            "SRANDOM" => (SRANDOM.to_owned(), Some(format!("$(({DICE}))"))),
            _ => return false,
        };
        let behind = 1 + braces + len + name.len();
        if len == 0 && (braces == 0 || self.peek(behind) == Some('}')) {
            self.put(&dice.unwrap_or(format!("$({command})")), behind + braces);
            return true;
        }
        // `${SRANDOM:0:4}`: of a value that is thrown once.
        let rest = &self.chars[self.at + behind..];
        let Some(end) = rest.iter().position(|c| "{}\"'$`\\\n".contains(*c)).filter(|e| rest[*e] == '}')
        else {
            return false;
        };
        let form: String = rest[..end].iter().collect();
        let length = if len == 1 { "#" } else { "" };
        let text = format!("$(PENSTOCK_V=$({command}); printf %s ${{{length}PENSTOCK_V{form}}})");
        self.put(&text, behind + end + 1);
        true
    }

    /// The same as names in arithmetic.
    fn bare_name(&mut self, inside: In) {
        let name = self.name(0);
        let arithmetic = matches!(inside, In::Arithmetic(_) | In::Brackets(_));
        match name.as_str() {
            "SRANDOM" if arithmetic => self.put(&format!("({DICE})"), 7),
            "EPOCHSECONDS" if arithmetic => self.put(&format!("$({NOW})"), 12),
            _ if arithmetic && self.octal && self.is_read(name.len()) => {
                self.put(&format!("(${{{name}:-0}})"), name.len());
            }
            _ => self.copy(name.len()),
        }
    }

    /// Whether the name of this length that stands here in arithmetic is read and not written, and is no place in an array, no function's
    /// and no digits of a number's.
    fn is_read(&self, len: usize) -> bool {
        let before = self.chars[..self.at].iter().rev().copied();
        let near = before.clone().next();
        let steps: Vec<char> = before.filter(|c| !c.is_whitespace()).take(2).collect();
        let behind: String = self.chars[self.at + len..].iter().skip_while(|c| **c == ' ').take(3).collect();
        let is_set = behind.starts_with('=') && !behind.starts_with("==")
            || behind.starts_with("++")
            || behind.starts_with("--")
            || ["<<=", ">>="].contains(&behind.as_str())
            || behind.get(1..2) == Some("=") && behind.starts_with(['+', '-', '*', '/', '%', '&', '|', '^']);
        !is_set
            && !behind.starts_with(['[', '}', '#'])
            && !near.is_some_and(|c| c.is_ascii_alphanumeric() || "_$#{[!".contains(c))
            && !matches!(steps.as_slice(), ['+', '+'] | ['-', '-'])
    }

    /// A word with braces: a long range alone is split; what the interpreter would not expand is remembered.
    fn braces(&mut self) {
        let starts = self.word_start();
        let word: &[char] = &self.chars[self.at..];
        let len = word
            .iter()
            .position(|c| c.is_whitespace() || ";&|()<>\"'`$\\".contains(*c))
            .unwrap_or(word.len());
        let word = &word[..len];
        let ends = self.peek(len).is_none_or(|c| c.is_whitespace() || ";&|)".contains(c));
        let parts = groups(word);
        let count = parts.iter().fold(1_u128, |n, part| n.saturating_mul(part.count()));
        // The interpreter goes down one level for each pair, and gives up at a hundred.
        let deep = word.iter().filter(|c| **c == '{').count() > 90 && count > 1;
        let long = deep || parts.iter().any(|part| matches!(part, Group::Range(r) if r.count() > RANGE_MOST));
        match parts.as_slice() {
            [Group::Range(range)] if starts && ends && long && range.len == len && count <= WORDS_MOST => {
                let text = range.split();
                self.put(&text, len);
                return;
            }
            _ if long || count > WORD_MOST => {
                let line = self.chars[..self.at].iter().filter(|c| **c == '\n').count() as u32 + 1;
                self.most = self.most.or(Some((line, count)));
            }
            _ => {}
        }
        self.copy(len.max(1));
    }

    fn plain(&mut self, c: char, inside: In, stack: &mut Vec<In>) -> Option<()> {
        let top = stack.len() - 1;
        match (inside, c) {
            (_, 'a'..='z' | 'A'..='Z' | '_') => self.bare_name(inside),
            (In::Commands(_), '(') if self.starts("((") && self.word_start() => {
                stack.push(In::Arithmetic(2));
                self.copy(2);
            }
            (In::Commands(n), '(') => {
                stack[top] = In::Commands(if n == 0 { 0 } else { n + 1 });
                self.copy(1);
            }
            (In::Commands(n @ 1..), ')') => {
                if n == 1 {
                    stack.pop();
                } else {
                    stack[top] = In::Commands(n - 1);
                }
                self.copy(1);
            }
            (In::Commands(_), '#') if self.word_start() => {
                while self.peek(0).is_some_and(|c| c != '\n') {
                    self.copy(1);
                }
            }
            (In::Commands(_), '{') if self.peek(1) == Some('(') && self.word_start() => {
                self.copy(1);
                self.out.push(' ');
            }
            (In::Commands(_), '{') if !self.peek(1).is_some_and(char::is_whitespace) => self.braces(),
            (In::Commands(_), '<') if self.starts("<<<") => self.copy(3),
            (In::Commands(_), '<') if self.starts("<<") => self.heredoc(),
            (In::Commands(_), '\n') => {
                self.copy(1);
                self.heredoc_bodies();
            }
            (In::Arithmetic(n), '(') => {
                stack[top] = In::Arithmetic(n + 1);
                self.copy(1);
            }
            (In::Arithmetic(n), ')') => {
                if n == 1 {
                    stack.pop();
                } else {
                    stack[top] = In::Arithmetic(n - 1);
                }
                self.copy(1);
            }
            (In::Braces, '}') => {
                stack.pop();
                self.copy(1);
            }
            (In::Brackets(n), '[') => {
                stack[top] = In::Brackets(n + 1);
                self.copy(1);
            }
            (In::Brackets(1), ']') => {
                stack.pop();
                self.put("))", 1);
            }
            (In::Brackets(n), ']') => {
                stack[top] = In::Brackets(n - 1);
                self.copy(1);
            }
            _ => self.copy(1),
        }
        Some(())
    }

    fn word_start(&self) -> bool {
        self.at == 0
            || self.chars[self.at - 1].is_whitespace()
            || matches!(self.chars[self.at - 1], ';' | '&' | '|' | '(')
    }

    /// How far the backtick is that closes the one here.
    fn closing_backtick(&self) -> Option<usize> {
        let mut ahead = 1;
        loop {
            match self.peek(ahead)? {
                '`' => return Some(ahead),
                '\\' => ahead += 2,
                _ => ahead += 1,
            }
        }
    }

    /// `` `cmd` ``: one layer of backslashes is the backticks' own, between double quotes also those before quotes.
    fn backticks(&mut self, quoted: bool) -> Option<()> {
        let end = self.closing_backtick()?;
        let inner = &self.chars[self.at + 1..self.at + end];
        let mut command = String::new();
        let mut joined = 0;
        let mut chars = inner.iter().peekable();
        while let Some(&c) = chars.next() {
            match (c, chars.peek()) {
                // Lines are joined between single quotes as well; the count of lines stays.
                ('\\', Some('\n')) => {
                    joined += 1;
                    chars.next();
                }
                ('\\', Some(&&next)) if matches!(next, '`' | '\\' | '$') || quoted && next == '"' => {
                    command.push(next);
                    chars.next();
                }
                _ => command.push(c),
            }
        }
        // A space keeps `( … )` from being read as arithmetic.
        let space = if command.starts_with('(') { " " } else { "" };
        self.put(&format!("$({space}{}{})", rewrite(&command), "\n".repeat(joined)), end + 1);
        Some(())
    }

    /// After `${`: a name, then `//%`.
    fn replacement_of_percent(&mut self) {
        let name = self.name_len(0);
        if name > 0 && self.chars[self.at + name..].starts_with(&['/', '/', '%']) {
            self.copy(name + 2);
            self.put("\\%", 1);
        }
    }

    /// `"$x"` within a substitution within `${ … }`: the interpreter would leave a mark of its own for the quotes. Takes
    /// them off where there is no blank between them and nothing but plain characters and variables.
    fn unquote(&mut self) -> bool {
        let rest = &self.chars[self.at + 1..];
        let len = rest.iter().take_while(|c| c.is_ascii_alphanumeric() || "_$@#{}./:-".contains(**c)).count();
        if len == 0 || rest.get(len) != Some(&'"') {
            return false;
        }
        let inner: String = rest[..len].iter().collect();
        self.put(&inner, len + 2);
        true
    }

    fn heredoc(&mut self) {
        self.copy(2);
        let tabs = self.peek(0) == Some('-');
        if tabs {
            self.copy(1);
        }
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.copy(1);
        }
        let mut delimiter = String::new();
        while let Some(c) =
            self.peek(0).filter(|c| !c.is_whitespace() && !matches!(c, ';' | '&' | '|' | ')' | '<' | '>'))
        {
            if !matches!(c, '\'' | '"' | '\\') {
                delimiter.push(c);
            }
            self.copy(1);
        }
        self.heredocs.push((delimiter, tabs));
    }

    fn heredoc_bodies(&mut self) {
        for (delimiter, tabs) in std::mem::take(&mut self.heredocs) {
            self.closed = false;
            while self.at < self.chars.len() {
                let len = self.chars[self.at..]
                    .iter()
                    .position(|&c| c == '\n')
                    .map_or(self.chars.len() - self.at, |n| n + 1);
                let line: String = self.chars[self.at..self.at + len].iter().collect();
                self.copy(len);
                let line = line.trim_end_matches('\n');
                let line = if tabs { line.trim_start_matches('\t') } else { line };
                if line == delimiter {
                    self.closed = true;
                    break;
                }
            }
        }
    }
}

/// Elements of one range that the interpreter expands.
const RANGE_MOST: u128 = 10_000;

/// Words that it makes of one word.
const WORD_MOST: u128 = 100_000;

/// Words that are made of one range here.
const WORDS_MOST: u128 = 1_000_000;

/// `{1..9}` or `{01..20..2}`.
#[derive(Clone, Copy)]
struct Range {
    from: i64,
    to: i64,
    step: u64,
    /// Digits, where zeros stand in front.
    width: usize,
    /// Characters it is written with.
    len: usize,
}

impl Range {
    fn read(inner: &str) -> Option<Range> {
        let mut parts = inner.split("..");
        let (from, to) = (parts.next()?, parts.next()?);
        let step = parts.next().map_or(Some(1), |s| s.parse::<i64>().ok().map(i64::unsigned_abs))?.max(1);
        if parts.next().is_some() {
            return None;
        }
        let padded =
            |n: &str| n.trim_start_matches('-').len() > 1 && n.trim_start_matches('-').starts_with('0');
        let width = if padded(from) || padded(to) { from.len().max(to.len()) } else { 0 };
        Some(Range {
            from: from.parse().ok()?,
            to: to.parse().ok()?,
            step,
            width,
            len: inner.chars().count() + 2,
        })
    }
    fn count(&self) -> u128 {
        (i128::from(self.to) - i128::from(self.from)).unsigned_abs() / u128::from(self.step) + 1
    }
    /// The same as ranges that are short enough.
    fn split(&self) -> String {
        let down = self.to < self.from;
        let at = |n: u128| {
            let by = n as i128 * i128::from(self.step);
            i128::from(self.from) + if down { -by } else { by }
        };
        let (count, width) = (self.count(), self.width);
        let piece = |n: u128| {
            let (from, to) = (at(n * RANGE_MOST), at(((n + 1) * RANGE_MOST).min(count) - 1));
            format!("{{{from:0width$}..{to:0width$}..{}}}", self.step)
        };
        (0..count.div_ceil(RANGE_MOST)).map(piece).collect::<Vec<_>>().join(" ")
    }
}

/// What stands between braces in a word.
enum Group {
    Range(Range),
    /// `{a,b}`: how many.
    List(u128),
}

impl Group {
    fn count(&self) -> u128 {
        match self {
            Group::Range(range) => range.count(),
            Group::List(n) => *n,
        }
    }
}

/// The braces of a word, those within others left out.
fn groups(word: &[char]) -> Vec<Group> {
    let mut all = Vec::new();
    let (mut depth, mut from, mut commas) = (0_u32, 0, 0_u128);
    for (at, c) in word.iter().enumerate() {
        match c {
            '{' => {
                if depth == 0 {
                    (from, commas) = (at + 1, 0);
                }
                depth += 1;
            }
            ',' if depth == 1 => commas += 1,
            '}' if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    let inner: String = word[from..at].iter().collect();
                    match Range::read(&inner) {
                        Some(range) => all.push(Group::Range(range)),
                        None if commas > 0 => all.push(Group::List(commas + 1)),
                        None => {}
                    }
                }
            }
            _ => {}
        }
    }
    all
}

/// `"${x:-'}"`: between double quotes a single quote in braces is itself.
fn quoted_braces(stack: &[In]) -> bool {
    stack.last() == Some(&In::Braces) && stack.iter().rev().find(|i| **i != In::Braces) == Some(&In::Quotes)
}

#[cfg(test)]
mod tests {
    use super::{has_octal, rewrite};

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(rewrite(text), want);
    }

    #[test]
    fn backticks_between_quotes() {
        check("X=\"`which tc`\"\nY=`which ip`", "X=\"$(which tc)\"\nY=$(which ip)");
        check(r#"X="a `echo \"b\" \$c` d""#, r#"X="a $(echo "b" $c) d""#);
        check(r#"X="`echo \`id\``""#, r#"X="$(echo $(id))""#);
        check(
            "C=`find \\( -a \\) \\\n -b '*~'| sed 's/\\(a\\)/\\\\1/'`",
            "C=$(find \\( -a \\)  -b '*~'| sed 's/\\(a\\)/\\1/'\n)",
        );
        check("A=`sed 's/a//; \\\n p'`\n", "A=$(sed 's/a//;  p'\n)\n");
        check("echo '`a`' # \"`b`\"\n", "echo '`a`' # \"`b`\"\n");
        check("cat <<E\n\"`a`\nE\nX=\"`b`\"", "cat <<E\n\"`a`\nE\nX=\"$(b)\"");
    }

    #[test]
    fn a_subshell_right_behind_a_brace() {
        check("f() {(\n a\n)}\n", "f() { (\n a\n)}\n");
        check("echo ${x}{(\n", "echo ${x}{(\n");
    }

    #[test]
    fn old_arithmetic_and_percent() {
        check("x=$[ a[1] + $b ]", "x=$(( a[1] + $b ))");
        check("echo \"${L[$[i-1]]}\"", "echo \"${L[$((i-1))]}\"");
        check("r=\"${r//%/ * 8}\" s=${r/%x/y}", "r=\"${r//\\%/ * 8}\" s=${r/%x/y}");
        check("(( a << 2 )); echo $(( b << 3 ))\nX=\"`c`\"", "(( a << 2 )); echo $(( b << 3 ))\nX=\"$(c)\"");
    }

    #[test]
    fn clock_and_chance() {
        check("SECONDS=0; echo $SECONDS $((SECONDS+1))", "SECONDS=0; echo $SECONDS $((SECONDS+1))");
        check(
            "a=$SRANDOM b=\"${SRANDOM}\" c=$((SRANDOM%5))",
            "a=$((RANDOM<<17|RANDOM<<2|RANDOM&3)) b=\"$((RANDOM<<17|RANDOM<<2|RANDOM&3))\" \
             c=$(((RANDOM<<17|RANDOM<<2|RANDOM&3)%5))",
        );
        check(
            "d=${SRANDOM:0:2} e=${#SRANDOM}",
            "d=$(PENSTOCK_V=$(penstock-srandom); printf %s ${PENSTOCK_V:0:2}) \
             e=$(PENSTOCK_V=$(penstock-srandom); printf %s ${#PENSTOCK_V})",
        );
        check(
            "a=$EPOCHSECONDS b=${EPOCHREALTIME%.*} c=$((EPOCHSECONDS-1)) EPOCHSECONDSX '$EPOCHSECONDS'",
            "a=$(penstock-now) b=$(PENSTOCK_V=$(penstock-now us); printf %s ${PENSTOCK_V%.*}) \
             c=$(($(penstock-now)-1)) EPOCHSECONDSX '$EPOCHSECONDS'",
        );
    }

    #[test]
    fn long_ranges() {
        check("for i in {1..10001}; do", "for i in {1..10000..1} {10001..10001..1}; do");
        check("echo {20000..00000..3} x", "echo {20000..00000..3} x");
        check("echo {30000..00000..2}", "echo {30000..10002..2} {10000..00000..2}");
        check("echo {1..10000} '{1..20000}' a{1,2} { x; }", "echo {1..10000} '{1..20000}' a{1,2} { x; }");
        assert_eq!(super::too_many_words("echo {1..20000}\n{1..10}{1..10}"), None);
        assert_eq!(super::too_many_words("x\necho a{1..20000}b"), Some((2, 20_000)));
        assert_eq!(super::too_many_words("echo {1..1000}{1..1000}"), Some((1, 1_000_000)));
        assert_eq!(super::too_many_words("echo {1..99999999}"), Some((1, 99_999_999)));
        assert!(super::too_many_words(&format!("echo {}", "{a,".repeat(95) + &"}".repeat(95))).is_some());
        assert_eq!(super::too_many_words("echo '{1..99999999}' # {1..99999999}"), None);
    }

    #[test]
    fn quotes_within_substitutions_within_braces() {
        check("D=\"${X:-$(dirname \"$0\")}\"", "D=\"${X:-$(dirname $0)}\"");
        check("D=\"$(dirname \"$0\")\" E=${Y:-\"z\"}", "D=\"$(dirname \"$0\")\" E=${Y:-\"z\"}");
        check("D=${X:-$(cmd \"a b\")}", "D=${X:-$(cmd \"a b\")}");
    }

    #[test]
    fn the_rest_stays() {
        for text in [
            "case $1 in a) echo \"it's\" ;; esac\n",
            "echo don\\'t; f() { echo \"$(echo \"x)\")\"; }\n",
            "X=\"`unclosed",
            "X=\"$(echo",
            "cat <<-'E'\n\tdon't\n\tE\necho ${x#*'}'}\n",
            "echo $# ${#x} a#b $'q'\n",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn numbers_with_a_zero_are_found() {
        let found = [
            "for i in 07 08; do :; done",
            "for m in {01..12}; do :; done",
            "for h in $(seq -w 1 12); do :; done",
            "x=08",
        ];
        assert!(found.iter().all(|t| has_octal(t)));
        assert!(!["for i in 0 10 0x8; do :; done", "# in 08 for", "x=0"].iter().any(|t| has_octal(t)));
    }
}
