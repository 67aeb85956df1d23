//! A script's text, with what the interpreter reads otherwise than bash written in the way it reads rightly.
//!
//! | written | given to the interpreter |
//! |---|---|
//! | `` `cmd` `` | `$(cmd)` |
//! | `$[a + 1]` | `$((a + 1))` |
//! | `${x//%/y}` | `${x//\%/y}` |
//! | `${x:-$(cmd "$y")}` | `${x:-$(cmd $y)}` |
//!
//! Lines stay where they are. Text that is not understood to its end (quotes that never close) is left alone.

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
    let mut reader =
        Reader { chars: &chars, at: 0, out: String::with_capacity(text.len()), heredocs: Vec::new() };
    match reader.read() {
        Some(()) => reader.out,
        None => text.to_owned(),
    }
}

struct Reader<'a> {
    chars: &'a [char],
    at: usize,
    out: String,
    /// Delimiters of here-documents that begin after this line, and whether tabs before them go.
    heredocs: Vec<(String, bool)>,
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

    fn plain(&mut self, c: char, inside: In, stack: &mut Vec<In>) -> Option<()> {
        let top = stack.len() - 1;
        match (inside, c) {
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
        let mut chars = inner.iter().peekable();
        while let Some(&c) = chars.next() {
            match (c, chars.peek()) {
                ('\\', Some(&&next)) if matches!(next, '`' | '\\' | '$') || quoted && next == '"' => {
                    command.push(next);
                    chars.next();
                }
                _ => command.push(c),
            }
        }
        // A space keeps `( … )` from being read as arithmetic.
        let space = if command.starts_with('(') { " " } else { "" };
        self.put(&format!("$({space}{})", mend(&command)), end + 1);
        Some(())
    }

    /// After `${`: a name, then `//%`.
    fn replacement_of_percent(&mut self) {
        let name =
            self.chars[self.at..].iter().take_while(|c| c.is_ascii_alphanumeric() || **c == '_').count();
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
            "C=$(find \\( -a \\) \\\n -b '*~'| sed 's/\\(a\\)/\\1/')",
        );
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
            "cat <<-'E'\n\tdon't\n\tE\necho ${x#*'}'}\n",
            "echo $# ${#x} a#b $'q'\n",
        ] {
            check(text, text);
        }
    }
}
