//! A command's words as they stand in the text: where each is written, and where a variable's value is.

use crate::facts::{Facts, Step};
use crate::source::{Form, Source};

/// A word of a shell's text.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Token {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Length in characters.
    pub len: u32,
    /// As written, quotes included.
    pub text: String,
    /// Whether it parts commands: `;`, `&&`, `|`.
    pub parts: bool,
}

impl Token {
    /// Without the quotes around it.
    fn bare(&self) -> &str {
        let text = self.text.as_str();
        for quote in ['"', '\''] {
            if let Some(inner) = text.strip_prefix(quote).and_then(|t| t.strip_suffix(quote)) {
                return inner;
            }
        }
        text
    }
    /// Whether it means itself: nothing in it is expanded.
    pub(crate) fn is_literal(&self) -> bool {
        self.text.starts_with('\'') || !self.bare().contains(['$', '`', '*', '?', '\\'])
    }
    /// The variable that is all of it: `$RATE`, `"${RATE}"`.
    fn variable(&self) -> Option<&str> {
        let inner = self.bare().strip_prefix('$')?;
        let name = inner.strip_prefix('{').and_then(|n| n.strip_suffix('}')).unwrap_or(inner);
        let plain = |n: &str| !n.is_empty() && n.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        plain(name).then_some(name)
    }
    /// Whether it may become any number of words.
    fn is_many(&self) -> bool {
        let quoted = self.text.starts_with('"');
        let text = self.bare();
        matches!(text, "$@" | "${@}" | "$*" | "${*}")
            || text.contains("[@]")
            || !quoted && text.starts_with('$')
    }
    /// What is written plainly, between what is expanded.
    fn pieces(&self) -> Vec<String> {
        let mut pieces: Vec<String> = vec![String::new()];
        let mut chars = self.bare().chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '$' => {
                    pieces.push(String::new());
                    match chars.peek() {
                        Some('{' | '(') => {
                            let open = chars.next().unwrap_or('{');
                            let close = if open == '{' { '}' } else { ')' };
                            let mut depth = 1;
                            for inner in chars.by_ref() {
                                depth += i32::from(inner == open) - i32::from(inner == close);
                                if depth == 0 {
                                    break;
                                }
                            }
                        }
                        _ => {
                            while chars
                                .next_if(|c| c.is_ascii_alphanumeric() || "_@*#?".contains(*c))
                                .is_some()
                            {}
                        }
                    }
                }
                '`' => {
                    pieces.push(String::new());
                    chars.by_ref().find(|c| *c == '`');
                }
                '"' | '\'' | '\\' => {}
                c => pieces.last_mut().into_iter().for_each(|p| p.push(c)),
            }
        }
        pieces
    }
    /// Whether it may have become this word.
    fn may_be(&self, word: &str) -> bool {
        if self.is_literal() {
            return self.bare() == word
                || self.bare().rsplit('/').next() == Some(word) && self.bare().starts_with('/');
        }
        // What is written plainly stands in the word, in this order.
        let pieces = self.pieces();
        let mut rest = word;
        for (at, piece) in pieces.iter().enumerate() {
            match rest.find(piece.as_str()) {
                Some(0) => rest = &rest[piece.len()..],
                Some(from) if at > 0 => rest = &rest[from + piece.len()..],
                _ => return false,
            }
        }
        pieces.last().is_none_or(|p| p.is_empty() || word.ends_with(p.as_str()))
    }
}

/// The words of the lines from one to another.
pub(crate) fn tokens(source: &Source, from: u32, to: u32) -> Vec<Token> {
    let mut all = Vec::new();
    let mut open: Option<Token> = None;
    let (mut quote, mut depth) = (None, 0u32);
    for line in from..=to {
        let chars: Vec<char> = source.line(line).chars().collect();
        let mut at = 0;
        if open.is_some() && quote.is_none() && depth == 0 {
            all.extend(open.take());
        }
        while at < chars.len() {
            let c = chars[at];
            let column = at as u32 + 1;
            let begin = || Token { line, column, len: 0, text: String::new(), parts: false };
            let push = |token: &mut Option<Token>, c: char| {
                let token = token.get_or_insert_with(begin);
                token.text.push(c);
                token.len += 1;
            };
            match (quote, c) {
                (Some(q), _) => {
                    push(&mut open, c);
                    if c == '\\' && q == '"' && at + 1 < chars.len() {
                        at += 1;
                        push(&mut open, chars[at]);
                    } else if c == q {
                        quote = None;
                    }
                }
                (None, '\\') if at + 1 == chars.len() => {}
                (None, '\\') => {
                    push(&mut open, c);
                    at += 1;
                    push(&mut open, chars[at]);
                }
                (None, '"' | '\'' | '`') => {
                    quote = Some(c);
                    push(&mut open, c);
                }
                (None, '$') if matches!(chars.get(at + 1), Some('(' | '{')) => {
                    push(&mut open, c);
                    at += 1;
                    push(&mut open, chars[at]);
                    depth += 1;
                }
                (None, ')' | '}') if depth > 0 => {
                    depth -= 1;
                    push(&mut open, c);
                }
                (None, '(' | '{') if depth > 0 => {
                    depth += 1;
                    push(&mut open, c);
                }
                (None, _) if depth > 0 => push(&mut open, c),
                (None, '#') if open.is_none() => break,
                (None, c) if c.is_whitespace() => all.extend(open.take()),
                (None, ';' | '|' | '&' | '(' | ')') => {
                    // `2>&1` and `&>` are redirections.
                    let redirects = c == '&'
                        && (open.as_ref().is_some_and(|o| o.text.ends_with('>'))
                            || chars.get(at + 1) == Some(&'>'));
                    if redirects {
                        push(&mut open, c);
                    } else {
                        all.extend(open.take());
                        all.push(Token { line, column, len: 1, text: c.to_string(), parts: true });
                    }
                }
                (None, c) => push(&mut open, c),
            }
            at += 1;
        }
    }
    all.extend(open);
    all
}

/// Lines up one command's words with tokens: for each word the token it comes from. All words and all tokens up to the command's end are used up.
fn line_up(tokens: &[Token], words: &[String]) -> Option<Vec<usize>> {
    fn go(tokens: &[Token], at: usize, words: &[String], out: &mut Vec<usize>, budget: &mut u32) -> bool {
        *budget = budget.saturating_sub(1);
        let Some(token) = tokens.get(at).filter(|t| !t.parts && !redirects(&t.text)) else {
            return words.is_empty();
        };
        if *budget == 0 {
            return false;
        }
        if let Some(first) = words.first()
            && token.may_be(first)
        {
            out.push(at);
            if go(tokens, at + 1, &words[1..], out, budget) {
                return true;
            }
            out.pop();
        }
        if token.is_many() {
            // One by one, then all the rest.
            for n in (0..=words.len()).filter(|n| *n != 1) {
                out.extend(std::iter::repeat_n(at, n));
                if go(tokens, at + 1, &words[n..], out, budget) {
                    return true;
                }
                out.truncate(out.len() - n);
            }
        }
        false
    }
    let mut out = Vec::new();
    go(tokens, 0, words, &mut out, &mut 4000).then_some(out)
}

fn redirects(text: &str) -> bool {
    let rest = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
    rest.starts_with(['<', '>']) && (text.starts_with(['<', '>', '&']) || rest.len() < text.len())
}

/// A command's words and the tokens they come from.
pub(crate) struct Written {
    tokens: Vec<Token>,
    /// For each word, the token's number; `None` for a word that is not written (`tc` in a batch).
    from: Vec<Option<usize>>,
}

/// Where a word's value is written.
pub(crate) enum Origin {
    /// Here, and for this command alone.
    Here(Token),
    /// In a variable that others use as well: its name, and the line that sets it.
    Shared(String, u32),
    /// Nobody can tell.
    Unknown,
}

impl Written {
    /// A step's, in the script's own text.
    pub(crate) fn of(facts: &Facts, step: &Step) -> Option<Written> {
        if step.file != facts.name || step.line == 0 || facts.source.form == Form::Python {
            return None;
        }
        let all = tokens(&facts.source, step.line, facts.source.end_of(step.line));
        Self::within(all, &step.words)
    }

    fn within(all: Vec<Token>, words: &[String]) -> Option<Written> {
        let begins = |at: usize| at == 0 || all[at - 1].parts || is_before_command(&all[at - 1].text);
        for at in 0..all.len() {
            if let Some(from) = line_up(&all[at..], words) {
                return Some(Written { from: from.into_iter().map(|n| Some(n + at)).collect(), tokens: all });
            }
            // A line of a batch has no `tc`.
            if begins(at)
                && words.len() > 2
                && let Some(from) = line_up(&all[at..], &words[1..])
            {
                let from = std::iter::once(None).chain(from.into_iter().map(|n| Some(n + at))).collect();
                return Some(Written { from, tokens: all });
            }
        }
        None
    }

    /// The token of a word.
    pub(crate) fn token(&self, word: usize) -> Option<&Token> {
        self.from.get(word).copied().flatten().map(|at| &self.tokens[at])
    }

    /// Whether a variable without quotes is no word here, or is several of which one is unknown: what another word means hangs on that.
    pub(crate) fn is_loose(&self, unknown: &std::collections::BTreeSet<usize>) -> bool {
        let Some(&first) = self.from.iter().flatten().min() else { return false };
        let own = (first..self.tokens.len())
            .take_while(|&at| !self.tokens[at].parts && !redirects(&self.tokens[at].text));
        own.filter(|&at| self.tokens[at].variable().is_some() && self.tokens[at].is_many()).any(|at| {
            let words: Vec<usize> = (0..self.from.len()).filter(|&w| self.from[w] == Some(at)).collect();
            words.is_empty() || words.len() > 1 && words.iter().any(|w| unknown.contains(w))
        })
    }

    /// Whether a word has nothing in the place of its variables: `"${RATE[i]}kbit"` that has become `kbit`.
    pub(crate) fn is_hollow(&self, words: &[String]) -> bool {
        let hollow = |(word, at): (&String, &Option<usize>)| {
            let token =
                at.map(|at| &self.tokens[at]).filter(|t| t.text.contains('$') && t.variable().is_none());
            token.is_some_and(|t| t.pieces().concat() == *word)
        };
        words.iter().zip(&self.from).any(hollow)
    }

    /// Whether each word is a token of its own.
    pub(crate) fn one_to_one(&self) -> bool {
        self.from.iter().flatten().collect::<std::collections::BTreeSet<_>>().len()
            == self.from.iter().flatten().count()
    }

    /// The command as the call that led to it writes it, where its words come from there.
    pub(crate) fn of_call(facts: &Facts, step: &Step) -> Option<Written> {
        let own = Self::of(facts, step)?;
        let first = own.from.iter().position(|f| f.is_some_and(|at| own.tokens[at].is_many()))?;
        let at = own.from[first]?;
        let last = own.from.iter().rposition(|f| *f == Some(at))?;
        let mut words = first..last + 1;
        for &call in &step.calls {
            let all = tokens(&facts.source, call, facts.source.end_of(call));
            let lined_up = |start: usize| Some((start, line_up(&all[start..], &step.words[words.clone()])?));
            let Some((start, from)) = (0..all.len()).find_map(lined_up) else { continue };
            // What this call itself hands on (`"$@"`) stands in the call around it.
            let hands_on = |n: &usize| matches!(all[start + n].bare(), "$@" | "${@}" | "$*" | "${*}");
            if let Some(first) = from.iter().position(hands_on) {
                let last = from.iter().rposition(hands_on).unwrap_or(first);
                words = words.start + first..words.start + last + 1;
                continue;
            }
            // Words before the function's name and behind it stand in the function.
            let mut whole = vec![None; step.words.len()];
            whole[words].iter_mut().zip(from).for_each(|(w, n)| *w = Some(n + start));
            return Some(Written { from: whole, tokens: all });
        }
        None
    }

    /// Where the value of a word is written.
    pub(crate) fn origin(&self, facts: &Facts, step: &Step, word: usize) -> Origin {
        let Some(token) = self.token(word) else { return Origin::Unknown };
        if token.is_literal() {
            return Origin::Here(token.clone());
        }
        let (Some(name), value) = (token.variable(), step.words[word].as_str()) else {
            return Origin::Unknown;
        };
        variable(facts, step, name, value, 0)
    }
}

fn is_before_command(text: &str) -> bool {
    matches!(
        text,
        "do" | "then" | "else" | "!" | "{" | "if" | "while" | "until" | "elif" | "sudo" | "time" | "exec"
    )
}

/// Where the value of a variable is written.
fn variable(facts: &Facts, step: &Step, name: &str, value: &str, depth: u32) -> Origin {
    if let Ok(number) = name.parse::<usize>() {
        let Some(&call) = step.calls.first() else { return Origin::Unknown };
        let all = tokens(&facts.source, call, facts.source.end_of(call));
        let commands = all.split(|t| t.parts);
        let fits = |c: &&[Token]| c.get(number).is_some_and(|t| t.may_be(value));
        let found: Vec<&Token> = commands.filter(fits).map(|c| &c[number]).collect();
        return match found.as_slice() {
            [token] if token.is_literal() => Origin::Here((*token).clone()),
            [token] if depth < 4 => match token.variable() {
                Some(name) if name.parse::<usize>().is_err() => variable(facts, step, name, value, depth + 1),
                _ => Origin::Unknown,
            },
            _ => Origin::Unknown,
        };
    }
    let mut set: Vec<Token> = Vec::new();
    let mut uses = 0;
    for number in 1..=facts.source.lines.len() as u32 {
        let text = facts.source.line(number);
        if !text.contains(name) {
            continue;
        }
        let begins = format!("{name}=");
        for token in tokens(&facts.source, number, number) {
            if let Some(value) = token.text.strip_prefix(&begins) {
                let ahead = begins.chars().count() as u32;
                let (column, len) = (token.column + ahead, token.len - ahead);
                set.push(Token { line: number, column, len, text: value.to_owned(), parts: false });
            }
        }
        let code = text.split(" #").next().unwrap_or("");
        if !code.trim_start().starts_with('#') {
            uses += code
                .match_indices(name)
                .filter(|(at, _)| {
                    let before = code[..*at].trim_end_matches('{');
                    let after = code[at + name.len()..].chars().next();
                    before.ends_with('$') && !after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
                })
                .count();
        }
    }
    match set.as_slice() {
        [one] if one.is_literal() && one.bare() == value && uses == 1 => {
            let quoted = one.text.starts_with(['"', '\'']);
            let (skip, less) = if quoted { (1, 2) } else { (0, 0) };
            Origin::Here(Token {
                column: one.column + skip,
                len: one.len - less,
                text: value.to_owned(),
                ..one.clone()
            })
        }
        [one] => match one.variable() {
            Some(inner) if depth < 4 && uses == 1 => variable(facts, step, inner, value, depth + 1),
            _ => Origin::Shared(name.to_owned(), one.line),
        },
        [one, ..] => Origin::Shared(name.to_owned(), one.line),
        [] => Origin::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn words_stand_where_they_are_written() {
        let source = Source::new(
            "for i in 1 2; do\n  tc class add dev \"$DEV\" \\\n    classid 1:$i htb rate ${R}mbit 2>/dev/null || true\n",
        );
        let all = tokens(&source, 2, 3);
        let written =
            Written::within(all, &words("tc class add dev eth0 classid 1:2 htb rate 5mbit")).unwrap();
        let place = |n| written.token(n).map(|t| (t.line, t.column, t.text.clone())).unwrap();
        assert_eq!(place(4), (2, 20, "\"$DEV\"".to_owned()));
        assert_eq!(place(6), (3, 13, "1:$i".to_owned()));
        assert_eq!(place(9), (3, 27, "${R}mbit".to_owned()));
        assert!(written.one_to_one());
    }

    #[test]
    fn a_batch_has_no_program_and_a_wrapper_has_all_words_in_one() {
        let source =
            Source::new("class add dev eth0 classid 1:1 htb rate 1mbit\nipt() { iptables -w \"$@\"; }\n");
        let batch = Written::within(
            tokens(&source, 1, 1),
            &words("tc class add dev eth0 classid 1:1 htb rate 1mbit"),
        );
        assert_eq!(batch.unwrap().token(8).map(|t| t.column), Some(36));
        let wrapped = Written::within(tokens(&source, 2, 2), &words("iptables -w -t mangle -F")).unwrap();
        assert!(!wrapped.one_to_one());
        assert!(!redirects("10mbit") && redirects("2>/dev/null") && redirects("<<EOF") && redirects(">&2"));
    }
}
