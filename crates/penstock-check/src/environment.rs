//! Variables that a script reads and never sets: those of its environment, which whoever calls it gives, and misspelt names of variables that it does set.
//!
//! What the environment holds nobody knows before the script runs for real, so it is unknown as an argument is. A name that is nearly one that the script sets is taken
//! for a misspelling: the shell puts nothing in its place.

use crate::syntax::{Kind, Token, assigns, element, is_name, tokens};
use std::collections::{BTreeMap, BTreeSet};

/// The variables of a text that nothing in it sets.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Environment {
    /// Those that its commands need and whose value is unknown: the first line that reads each.
    pub unknown: BTreeMap<String, u32>,
    /// Behind the words that set variables to what another program prints, where the script takes it that it prints something: the place, and the variable.
    pub answers: Vec<(usize, String)>,
    /// Misspelt names, and the name that is meant by each.
    pub misspelt: BTreeMap<String, String>,
}

/// How a text uses a variable.
#[derive(Clone, Default)]
struct Use {
    /// The first line where its value goes into a command or another variable.
    needed: Option<u32>,
    /// Whether it has to be given: `${NAME:?…}`, `${NAME:-}`.
    required: bool,
    /// Whether it may be left out: `${NAME:-x}`, `${NAME:+x}`.
    optional: bool,
    /// Whether it begins a command: `$SUDO tc …`.
    begins: bool,
    /// Whether it is tested: the script knows that it may not be there.
    tested: bool,
}

impl Environment {
    /// Reads a text, of which these names are read and not set.
    pub(crate) fn of(text: &str, unset: &BTreeSet<String>) -> Environment {
        if !text.contains('$') {
            return Environment::default();
        }
        let reading = Reading::of(text);
        let mut all = Environment::default();
        let known = |name: &String| {
            let of = reading.uses.get(name);
            of.is_none_or(|u| u.needed.is_none() || u.tested || u.optional || u.required || u.begins)
        };
        all.answers = reading.answers.iter().filter(|a| !known(&a.1)).cloned().collect();
        for (name, of) in &reading.uses {
            let read_only = unset.contains(name) || of.required && !reading.set.contains_key(name);
            let Some(line) = of.needed.filter(|_| read_only && !of.begins && !is_shells(name)) else {
                continue;
            };
            if of.optional {
                continue;
            }
            let meant = (!of.tested && !of.required).then(|| reading.meant(name)).flatten();
            match meant {
                Some(meant) => _ = all.misspelt.insert(name.clone(), meant.to_owned()),
                None => _ = all.unknown.insert(name.clone(), line),
            }
        }
        all
    }

    /// Leaves out what is given.
    pub(crate) fn without(&mut self, given: impl Fn(&str) -> bool) {
        self.unknown.retain(|name, _| !given(name));
        self.misspelt.retain(|name, _| !given(name));
    }
}

/// Variables that the shell sets by itself.
fn is_shells(name: &str) -> bool {
    matches!(
        name,
        "OPTARG" | "OPTIND" | "REPLY" | "_" | "FUNCNAME" | "HOME" | "PATH" | "PWD" | "USER" | "UID"
    ) || name.starts_with("BASH")
}

/// A text's variables.
#[derive(Default)]
struct Reading {
    uses: BTreeMap<String, Use>,
    /// Those that are set: the words that set each.
    set: BTreeMap<String, String>,
    /// Behind the words that set a variable to what a program prints: the place, and the variable.
    answers: Vec<(usize, String)>,
}

impl Reading {
    fn of(text: &str) -> Reading {
        let mut reading = Reading::default();
        let all = tokens(text, 0, text.len(), 1);
        let mut from = 0;
        let ends = |t: &Token| {
            t.kind == Kind::Newline
                || t.kind == Kind::Operator && !text[t.start..t.end].contains(['<', '>'])
                || t.kind == Kind::Operator && text[t.start..t.end].contains("<(")
        };
        let chains = |at: usize| {
            all.get(at).is_some_and(|t: &Token| matches!(&text[t.start..t.end], "&&" | "||" | "|" | "&"))
        };
        for at in 0..=all.len() {
            if at == all.len() || ends(&all[at]) {
                reading.command(text, &all[from..at]);
                if !(chains(at) || from > 0 && chains(from - 1)) {
                    reading.answer(text, &all[from..at]);
                }
                from = at + 1;
            }
        }
        for (line, body) in bodies(text, &all) {
            reading.reads(body, line, &Use { needed: Some(line), ..Use::default() });
        }
        reading
    }

    /// Whether a command does nothing but set a variable to what a program prints.
    fn answer(&mut self, text: &str, words: &[Token]) {
        let of = |t: &Token| &text[t.start..t.end];
        let plain = |w: &str| matches!(w, "then" | "else" | "do" | "{" | "local" | "export" | "readonly");
        let Some(token) = words.iter().find(|t| !plain(of(t))) else { return };
        let (name, value) = of(token).split_once('=').unwrap_or_default();
        let value = value.trim_matches('"');
        let prints = value.starts_with("$(") && !value.starts_with("$((") && value.ends_with(')')
            || value.len() > 1 && value.starts_with('`') && value.ends_with('`');
        let is_last = words.last().is_some_and(|t| t.end == token.end);
        // Whether it went well is asked behind it.
        let asked = text[token.end..].lines().take(2).any(|l| l.contains("$?"));
        if is_name(name) && prints && is_last && !asked {
            self.answers.push((token.end, name.to_owned()));
        }
    }

    /// The words of one command.
    fn command(&mut self, text: &str, words: &[Token]) {
        let of = |t: &Token| &text[t.start..t.end];
        let keyword = |w: &str| {
            matches!(
                w,
                "do" | "then"
                    | "else"
                    | "elif"
                    | "if"
                    | "while"
                    | "until"
                    | "!"
                    | "{"
                    | "}"
                    | "time"
                    | "exec"
                    | "eval"
            )
        };
        let mut words = words.iter().skip_while(|t| keyword(of(t))).peekable();
        while let Some(token) = words.next_if(|t| assigns(of(t))) {
            let (name, value) = of(token).split_once('=').unwrap_or_default();
            self.sets(name.trim_end_matches('+'), value);
            self.reads(value, token.line, &Use { needed: Some(token.line), ..Use::default() });
        }
        let Some(first) = words.next() else { return };
        let plain = Use { needed: Some(first.line), ..Use::default() };
        let tested = Use { tested: true, ..Use::default() };
        let how = match of(first) {
            "[" | "[[" | "test" | "case" => tested,
            w if w.starts_with("[[") => tested,
            "echo" | "printf" | "logger" | "log" | ":" | "die" => Use::default(),
            _ => plain,
        };
        match of(first) {
            "export" | "local" | "declare" | "typeset" | "readonly" => {
                for token in words {
                    let (name, value) = of(token).split_once('=').unwrap_or((of(token), ""));
                    if is_name(name) && of(token).contains('=') {
                        self.sets(name, value);
                    }
                    self.reads(value, token.line, &how);
                }
                return;
            }
            "for" | "select" => {
                if let Some(name) = words.next() {
                    self.sets(of(name), "");
                }
            }
            "read" | "mapfile" | "readarray" | "getopts" => {
                words.clone().filter(|t| is_name(of(t))).for_each(|t| self.sets(of(t), ""));
            }
            _ => {}
        }
        let begins =
            Use { begins: of(first).starts_with(['$', '"']), needed: Some(first.line), ..how.clone() };
        self.reads(of(first), first.line, &begins);
        for token in words {
            let needed = how.needed.map(|_| token.line);
            self.reads(of(token), token.line, &Use { needed, ..how.clone() });
        }
    }

    fn sets(&mut self, name: &str, value: &str) {
        let name = element(name);
        if is_name(name) {
            self.set.entry(name.to_owned()).or_default().push_str(value);
        }
    }

    /// The variables that a text with quotes reads.
    fn reads(&mut self, text: &str, line: u32, how: &Use) {
        for (at, name, behind) in expansions(text) {
            let line = line + text[..at].matches('\n').count() as u32;
            let of = self.uses.entry(name.to_owned()).or_default();
            match behind {
                Some(b) if b.starts_with(":?") || b.starts_with('?') => {
                    of.required = true;
                    of.needed = of.needed.or(how.needed.map(|_| line));
                }
                Some(":-}" | "-}") => {
                    (of.required, of.tested) = (true, of.tested | how.tested);
                }
                Some(b) if [":-", ":+", ":=", "-", "+", "="].iter().any(|o| b.starts_with(o)) => {
                    of.optional = true
                }
                _ => {
                    of.begins |= how.begins;
                    of.tested |= how.tested;
                    let first = how.needed.map(|_| line);
                    of.needed = of.needed.min(first).or(of.needed).or(first);
                }
            }
        }
    }

    /// The name that is set and that another is nearly, where it is not made from that other one.
    fn meant(&self, name: &str) -> Option<&str> {
        let made_from = |value: &str| expansions(value).any(|e| e.1 == name);
        // One that nobody reads was to be read here: `for p in …; do tc … $port`.
        let unread = |set: &String| !self.uses.contains_key(set) && is_short_for(name, set, 1);
        let near = |(set, value): &(&String, &String)| {
            let near = is_near(name, set) || is_short_for(name, set, 3) || unread(set);
            *set != name && near && !made_from(value)
        };
        self.set.iter().find(near).map(|s| s.0.as_str())
    }
}

/// Where a text reads a variable: place and length of `NAME` in `$NAME` or `${NAME…}`, in bytes.
pub(crate) fn reads<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (usize, usize)> + 'a {
    let of = expansions(text).filter(move |e| e.1 == name);
    // In arithmetic the name stands alone.
    let dollar = move |at: usize| usize::from(text[at..].starts_with('$'));
    of.map(move |(at, name, behind)| (at + dollar(at) + usize::from(behind.is_some()), name.len()))
}

/// The expansions of variables in a text: place, name, and in braces what stands behind the name, the closing brace with it. What stands between single quotes is none.
fn expansions(text: &str) -> impl Iterator<Item = (usize, &str, Option<&str>)> {
    let bytes = text.as_bytes();
    let mut out = Vec::new();
    // Around the place at hand: `"` a quote, `(` a substitution.
    let mut around: Vec<u8> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let quoted = around.last() == Some(&b'"');
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' if !quoted => at += text[at + 1..].find('\'').map_or(bytes.len(), |e| e + 1),
            b'"' if quoted => _ = around.pop(),
            b'"' => around.push(b'"'),
            b'(' if at > 0 && bytes[at - 1] == b'$' || around.last() == Some(&b'(') => around.push(b'('),
            b')' if around.last() == Some(&b'(') => _ = around.pop(),
            b'$' if text[at..].starts_with("$((") => {
                let inner = &text[at + 3..];
                let end = expression(inner);
                out.extend(operands(&inner[..end]).map(|(from, name)| (at + 3 + from, name, None)));
            }
            b'$' => {
                let braced = bytes.get(at + 1) == Some(&b'{');
                let from = at + 1 + usize::from(braced);
                let rest = &text[from.min(text.len())..];
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
                if is_name(&rest[..end]) {
                    let close = rest[end..].find('}').map_or(rest.len(), |e| end + e + 1);
                    out.push((at, &rest[..end], braced.then(|| &rest[end..close])));
                }
            }
            _ => {}
        }
        at += 1;
    }
    out.into_iter()
}

/// Where an arithmetic expression ends: before the `))` that closes it.
pub(crate) fn expression(text: &str) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' if depth == 0 => return at,
            b')' => depth -= 1,
            _ => {}
        }
    }
    text.len()
}

/// The variables that an arithmetic expression reads by their names alone: `RATE * 9 / 10`.
pub(crate) fn operands(text: &str) -> impl Iterator<Item = (usize, &str)> {
    // What a program prints is none of them.
    let (mut depth, mut inside) = (0_usize, Vec::with_capacity(text.len()));
    for (at, byte) in text.bytes().enumerate() {
        depth += usize::from(byte == b'(' && (depth > 0 || text[..at].ends_with('$')));
        inside.push(depth > 0);
        depth -= usize::from(byte == b')' && depth > 0);
    }
    let part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = move |(at, c): &(usize, char)| {
        let before = text[..*at].chars().next_back();
        (c.is_ascii_alphabetic() || *c == '_')
            && !before.is_some_and(|b| part(b) || matches!(b, '$' | '{' | '#'))
    };
    text.char_indices().filter(move |c| !inside[c.0]).filter(begins).filter_map(move |(at, _)| {
        let rest = &text[at..];
        let end = rest.find(|c: char| !part(c)).unwrap_or(rest.len());
        let behind = rest[end..].trim_start();
        let sets = behind.starts_with('=') && !behind.starts_with("==");
        (!sets).then_some((at, &rest[..end]))
    })
}

/// The bodies of here-documents in which variables are expanded: first line and text.
fn bodies<'a>(text: &'a str, all: &[Token]) -> Vec<(u32, &'a str)> {
    let mut out = Vec::new();
    for pair in all.windows(2) {
        let (operator, word) = (&text[pair[0].start..pair[0].end], &text[pair[1].start..pair[1].end]);
        if !matches!(operator, "<<" | "<<-") || word.contains(['\'', '"', '\\']) {
            continue;
        }
        let Some(begin) = text[pair[1].end..].find('\n').map(|at| pair[1].end + at + 1) else { continue };
        let ends = |line: &&str| line.trim_start_matches('\t').trim_end() == word;
        let length: usize = text[begin..].split_inclusive('\n').take_while(|l| !ends(l)).map(str::len).sum();
        out.push((pair[1].line + 1, &text[begin..begin + length]));
    }
    out
}

/// Whether a name is a slip away from another: case, underscores, a letter lost, added, changed or swapped. Names that differ in a number are two names.
pub(crate) fn is_near(name: &str, other: &str) -> bool {
    let plain =
        |n: &str| n.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect::<Vec<char>>();
    let digits = |n: &str| n.chars().filter(char::is_ascii_digit).collect::<String>();
    let (a, b) = (plain(name), plain(other));
    if digits(name) != digits(other) || a.len().min(b.len()) < 2 {
        return false;
    }
    if a == b {
        return true;
    }
    let shortest = a.len().min(b.len());
    let slips = slips(&a, &b);
    // Of short names a letter that is another makes another name: `UP`, `IP`; `LAN`, `WAN`.
    match shortest {
        0..=2 => false,
        3..=4 => slips == 1 && (a.len() != b.len() || is_swap(&a, &b)),
        5..=7 => slips <= 1 && !differs_in_word(name, other),
        _ => slips <= 2 && !differs_in_word(name, other),
    }
}

/// Whether one of two names is the beginning of the other, of so many letters at least: `DEV` and `DEVICE`. `DEV_LAN` is another name.
fn is_short_for(name: &str, other: &str, least: usize) -> bool {
    let (short, long) = if name.len() < other.len() { (name, other) } else { (other, name) };
    let rest = long.strip_prefix(short).unwrap_or("");
    short.len() >= least && !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_alphabetic())
}

/// Whether two letters beside each other have changed places, and nothing else.
fn is_swap(a: &[char], b: &[char]) -> bool {
    let different: Vec<usize> = (0..a.len()).filter(|&n| a[n] != b[n]).collect();
    matches!(different.as_slice(), [m, n] if m + 1 == *n && a[*m] == b[*n] && a[*n] == b[*m])
}

/// Whether two names differ in one of their words that is short: `RATE_UP` and `RATE_DN`, `LAN_IF` and `WAN_IF` are two names.
fn differs_in_word(name: &str, other: &str) -> bool {
    let words = |n: &str| n.split('_').map(str::to_ascii_lowercase).collect::<Vec<_>>();
    let (a, b) = (words(name), words(other));
    a.len() == b.len() && a.len() > 1 && {
        let different: Vec<usize> = (0..a.len()).filter(|&n| a[n] != b[n]).collect();
        different.len() > 1
            || different.iter().any(|&n| a[n].len().min(b[n].len()) < 4 && a[n].len() == b[n].len())
    }
}

/// Letters lost, added, changed or swapped between two names.
fn slips(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let changed = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = changed.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::Syntax;

    type Names = (Vec<(String, u32)>, Vec<(String, String)>);

    fn of(text: &str) -> Names {
        let all = Environment::of(text, &Syntax::of(text).unset);
        let unknown = all.unknown.into_iter().collect();
        (unknown, all.misspelt.into_iter().collect())
    }

    #[test]
    fn what_nobody_sets_is_of_the_environment_or_misspelt() {
        let names = |text: &str| of(text).0.into_iter().map(|n| n.0).collect::<Vec<_>>();
        assert_eq!(
            of("#!/bin/sh\nA=1\ntc qdisc add dev $dev root tbf rate ${bytes_limit}").0,
            [("bytes_limit".to_owned(), 3), ("dev".to_owned(), 3)]
        );
        // What only a test or a message reads is needed by nobody.
        assert_eq!(
            names("[ \"$A\" ] && echo $B; case $C in x) ;; esac; if [ -z \"$D\" ]; then tc x $D; fi"),
            ["D"]
        );
        // A default makes it known, a demand makes it needed.
        assert_eq!(
            names("tc ${A:-x} $B ${C:?no} $C ${D:+x}; [ -n \"${E:-}\" ] || exit; tc $E"),
            ["B", "C", "E"]
        );
        assert_eq!(names("$SUDO tc qdisc; awk '{print $NF}' x; tc \"$(awk '{ print $NR }' $F)\""), ["F"]);
        assert_eq!(
            of("x=1\ntc -batch - <<E\nqdisc add dev $dev root sfq # don't\nE\ntc <<'E'\n$g\nE\n").0,
            [("dev".to_owned(), 3)]
        );
        assert_eq!(
            of("DEV=eth0\ntc qdisc add dev $DVE root sfq\ntc $Dev\n").1,
            [("DVE".to_owned(), "DEV".to_owned()), ("Dev".to_owned(), "DEV".to_owned())]
        );
        let places = |line: &'static str| reads(line, "AB").collect::<Vec<_>>();
        assert_eq!(places("tc $AB ${AB}x '$AB' $((AB / 2))"), [(4, 2), (9, 2), (23, 2)]);
        // A variable that is made from it is no other name for it.
        assert_eq!(of("DEV=$dev\ntc qdisc add dev $dev root sfq\n"), (vec![("dev".to_owned(), 1)], vec![]));
        assert_eq!(
            of("for p in 1 2; do tc x $port; done\nDEV=eth0\ntc $DEVICE $DEV_LAN $DEV").1,
            [("DEVICE".to_owned(), "DEV".to_owned()), ("port".to_owned(), "p".to_owned())]
        );
        assert_eq!(names("A=$((RATE * 9 / 10 + $B + x1 + 0xff))\ntc $A $(( C=1 ))"), ["B", "RATE", "x1"]);
        assert_eq!(of("DEV=eth0\n[ -n \"$dev\" ] && tc $dev\n").1, []);
    }

    #[test]
    fn names_a_slip_apart() {
        for (a, b) in [
            ("DEV", "dev"),
            ("IFACE", "IFCAE"),
            ("RATE", "RAT"),
            ("DOWNLINK", "DOWNLINKK"),
            ("UPLNK", "UPLINK"),
            ("DWONLINK", "DOWNLINK"),
            ("WANIF", "WAN_IF"),
            ("INTERFACE", "INTREFACE"),
            ("IFB_DEV", "IFBDEV"),
            ("BANDWITH", "BANDWIDTH"),
        ] {
            assert!(is_near(a, b) && is_near(b, a), "{a} {b}");
        }
        for (a, b) in [
            ("LAN", "WAN"),
            ("UP", "IP"),
            ("DEV1", "DEV2"),
            ("RATE_UP", "RATE_DN"),
            ("LAN_IF", "WAN_IF"),
            ("DEV", "RATE"),
            ("dev", "device"),
            ("LAN_RATE", "WAN_RATE"),
            ("UPLINK", "DOWNLINK"),
            ("MIN_RATE", "MAX_RATE"),
        ] {
            assert!(!is_near(a, b), "{a} {b}");
        }
    }
}
