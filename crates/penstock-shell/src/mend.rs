//! A script's text, with what the interpreter reads otherwise than bash written in the way it reads rightly.
//!
//! | written | given to the interpreter |
//! |---|---|
//! | `` `cmd` `` | `$(cmd)`, lines joined by a backslash made one |
//! | `$[a + 1]` | `$((a + 1))` |
//! | `${x//%/y}` | `${x//\%/y}` |
//! | `${x:-$(cmd "$y")}` | `${x:-$(cmd $y)}` |
//! | `$SECONDS` | the script's own clock ([`crate::clock`]) |
//! | `$SRANDOM` | the same of `$RANDOM`, which begins at a number of ours |
//!
//! Lines stay where they are. Text that is not understood to its end (quotes that never close) is left alone.

use crate::clock::SECONDS;

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
pub(crate) fn mend(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader {
        chars: &chars,
        at: 0,
        out: String::with_capacity(text.len()),
        heredocs: Vec::new(),
        closed: true,
    };
    match reader.read() {
        Some(()) => reader.out,
        // The interpreter will say what is wrong, in words of the text: those have to be the same each time.
        None => text.replace("SRANDOM", "RANDOM").replace("SECONDS", SECONDS),
    }
}

/// Whether a here-document begins here and does not end.
pub(crate) fn here_document_is_open(text: &str) -> bool {
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader { chars: &chars, at: 0, out: String::new(), heredocs: Vec::new(), closed: true };
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
        let name = self.name(1 + braces);
        match name.as_str() {
            "SECONDS" => self.put(&format!("${}{SECONDS}", if braces == 1 { "{" } else { "" }), 8 + braces),
            "SRANDOM" if braces == 0 => self.put(&format!("$(({DICE}))"), 8),
            "SRANDOM" if self.peek(9) == Some('}') => self.put(&format!("$(({DICE}))"), 10),
            _ => return false,
        }
        true
    }

    /// The same as names in arithmetic, and where a script sets its seconds anew.
    fn bare_name(&mut self, inside: In) {
        let name = self.name(0);
        let arithmetic = matches!(inside, In::Arithmetic(_) | In::Brackets(_));
        let sets = matches!(inside, In::Commands(_))
            && self.word_start()
            && matches!(self.peek(name.len()), Some('=' | '+'));
        match name.as_str() {
            "SECONDS" if arithmetic || sets => self.put(SECONDS, 7),
            "SRANDOM" if arithmetic => self.put(&format!("({DICE})"), 7),
            _ => self.copy(name.len()),
        }
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
        self.put(&format!("$({space}{}{})", mend(&command), "\n".repeat(joined)), end + 1);
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

/// `"${x:-'}"`: between double quotes a single quote in braces is itself.
fn quoted_braces(stack: &[In]) -> bool {
    stack.last() == Some(&In::Braces) && stack.iter().rev().find(|i| **i != In::Braces) == Some(&In::Quotes)
}

#[cfg(test)]
mod tests {
    use super::mend;

    #[track_caller]
    fn check(text: &str, want: &str) {
        assert_eq!(mend(text), want);
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
    fn old_arithmetic_and_percent() {
        check("x=$[ a[1] + $b ]", "x=$(( a[1] + $b ))");
        check("echo \"${L[$[i-1]]}\"", "echo \"${L[$((i-1))]}\"");
        check("r=\"${r//%/ * 8}\" s=${r/%x/y}", "r=\"${r//\\%/ * 8}\" s=${r/%x/y}");
        check("(( a << 2 )); echo $(( b << 3 ))\nX=\"`c`\"", "(( a << 2 )); echo $(( b << 3 ))\nX=\"$(c)\"");
    }

    #[test]
    fn clock_and_chance() {
        check(
            "SECONDS=0; echo $SECONDS ${SECONDS} $((SECONDS+1)) $SECONDSX '$SECONDS' SECONDS",
            "PENSTOCK_SECONDS=0; echo $PENSTOCK_SECONDS ${PENSTOCK_SECONDS} $((PENSTOCK_SECONDS+1)) $SECONDSX '$SECONDS' SECONDS",
        );
        check(
            "a=$SRANDOM b=\"${SRANDOM}\" c=$((SRANDOM%5)) d=${SRANDOM:0:2}",
            "a=$((RANDOM<<17|RANDOM<<2|RANDOM&3)) b=\"$((RANDOM<<17|RANDOM<<2|RANDOM&3))\" \
             c=$(((RANDOM<<17|RANDOM<<2|RANDOM&3)%5)) d=${SRANDOM:0:2}",
        );
        check(
            "ceil=1 BSECONDS=2 x-SECONDS=3 echo a#SECONDS=4",
            "ceil=1 BSECONDS=2 x-SECONDS=3 echo a#SECONDS=4",
        );
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
}
