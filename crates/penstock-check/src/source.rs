//! A script's text: its lines, what it says of failure, what it allows, where its words stand.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// What a text is written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// A shell script: an interpreter line, variables, functions, loops.
    Script,
    /// Commands one below the other and nothing else, as they stand in a text or a transcript.
    List,
    /// A file for `tc -batch`: commands without the word `tc`.
    Batch,
    /// A script in Python that calls tc.
    Python,
}

/// A text with what is known of its lines.
#[derive(Clone)]
pub struct Source {
    /// Its lines, as they stand.
    pub lines: Vec<String>,
    /// What it is written in.
    pub form: Form,
    /// The first line that ends in a carriage return.
    pub carriage_return: Option<u32>,
    /// Whether a failing command ends it: `set -e`.
    pub errexit: bool,
    /// The line from which on that holds.
    pub errexit_from: u32,
    /// Variables that are given plain values: name and value, in order.
    variables: Vec<(String, String)>,
    /// Statements of Python over several lines: the last line of each.
    spans: BTreeMap<u32, u32>,
    /// The whole text in small letters.
    lower: OnceLock<String>,
    /// The first words of its commands.
    firsts: OnceLock<BTreeSet<String>>,
}

/// The first words of a batch file's lines.
const OBJECTS: [&str; 7] = ["qdisc", "class", "filter", "chain", "action", "actions", "monitor"];
/// Programs a bare list may name.
const PROGRAMS: [&str; 16] = [
    "tc",
    "ip",
    "iptables",
    "ip6tables",
    "sysctl",
    "modprobe",
    "ifconfig",
    "ethtool",
    "nft",
    "sudo",
    "route",
    "brctl",
    "ipchains",
    "echo",
    "bridge",
    "arp",
];

impl Source {
    /// Reads a text.
    pub fn new(text: &str) -> Source {
        let lines: Vec<String> = text.lines().map(|l| l.trim_end_matches('\r').to_owned()).collect();
        let carriage_return = text.split('\n').position(|l| l.ends_with('\r')).map(|n| n as u32 + 1);
        let form = form(&lines);
        let sets = |line: &String| {
            let mut words = line.split_whitespace();
            words.next() == Some("set")
                && words
                    .any(|w| w.starts_with('-') && !w.starts_with("--") && w.contains('e') || w == "errexit")
        };
        let shebang_e = lines.first().is_some_and(|l| {
            l.starts_with("#!") && l.split_whitespace().skip(1).any(|w| w.starts_with('-') && w.contains('e'))
        });
        let set_at = lines.iter().position(sets);
        let errexit = form == Form::Script && (shebang_e || set_at.is_some());
        let errexit_from = if shebang_e { 1 } else { set_at.map_or(1, |n| n as u32 + 1) };
        let mut variables = Vec::new();
        for line in lines.iter().filter(|l| l.contains('=')) {
            let joined = line.replace(" = ", "=");
            for piece in if form == Form::Python { joined.as_str() } else { line }.split([';', ' ', '\t']) {
                if let Some((name, value)) = piece.split_once('=')
                    && !name.is_empty()
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
                {
                    let value = value.trim_matches(['"', '\'']);
                    let value = value
                        .strip_prefix("${")
                        .and_then(|v| v.split_once(":-"))
                        .map_or(value, |(_, d)| d.trim_end_matches('}'));
                    variables.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        let spans = if form == Form::Python { crate::python::spans(text) } else { BTreeMap::new() };
        Source {
            lines,
            form,
            carriage_return,
            errexit,
            errexit_from,
            variables,
            spans,
            lower: OnceLock::new(),
            firsts: OnceLock::new(),
        }
    }

    /// What the interpreter is given: for a batch each line with the word `tc` before it, so that lines stay where they are.
    pub fn runnable(&self) -> String {
        let line = |l: &String| match (self.form, l.split_whitespace().next()) {
            (Form::Batch, Some(first)) if OBJECTS.contains(&first) => format!("tc {l}\n"),
            // Everything runs as root, and behind `sudo` the interpreter loses count of lines.
            _ => format!("{}\n", without_sudo(l)),
        };
        self.lines.iter().map(line).collect()
    }

    /// A line, from 1; empty where there is none.
    pub fn line(&self, number: u32) -> &str {
        self.lines.get((number as usize).wrapping_sub(1)).map_or("", String::as_str)
    }

    /// The last line of the command that begins at `number`: lines that end in a backslash go on.
    pub fn end_of(&self, number: u32) -> u32 {
        if self.form == Form::Python {
            return self.spans.get(&number).copied().unwrap_or(number);
        }
        let mut last = number;
        while self.line(last).ends_with('\\') && (last as usize) < self.lines.len() {
            last += 1;
        }
        last
    }

    /// A command with the lines that continue it.
    pub fn logical(&self, number: u32) -> String {
        let last = self.end_of(number);
        (number..=last)
            .map(|n| self.line(n).trim_end().trim_end_matches('\\').to_owned())
            .collect::<Vec<_>>()
            .join(" ")
    }

    /// Where a word stands in the command that begins at `number`: line, column and length in characters. A variable's
    /// name stands for its value. `nth` counts occurrences from 0.
    pub fn find(&self, number: u32, word: &str, nth: usize) -> Option<(u32, u32, u32)> {
        if word.is_empty() {
            return None;
        }
        let names = self.variables.iter().filter(|v| v.1 == word).flat_map(|v| match self.form {
            Form::Python => [format!("{{{}}}", v.0), v.0.clone()],
            _ => [format!("${}", v.0), format!("${{{}}}", v.0)],
        });
        for wanted in std::iter::once(word.to_owned()).chain(names) {
            let mut left = nth;
            for line in number..=self.end_of(number) {
                let text = self.line(line);
                let mut from = 0;
                while let Some(at) = text[from..].find(&wanted).map(|a| a + from) {
                    let end = at + wanted.len();
                    if bounded(text, at, end) {
                        if left == 0 {
                            let column = text[..at].chars().count() as u32 + 1;
                            return Some((line, column, wanted.chars().count() as u32));
                        }
                        left -= 1;
                    }
                    from = end;
                }
            }
        }
        None
    }

    /// The first line that has these words one behind the other; where none has, the first that has all of them in any order, or that names the program and its
    /// first word and has the most of the others.
    pub fn line_of(&self, words: &[String]) -> Option<u32> {
        let whole = words.join(" ");
        let apart = |l: &String| words.iter().all(|w| l.contains(w.as_str()));
        let at = self.lines.iter().position(|l| l.contains(&whole));
        let begins = words.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
        let has = |l: &str| {
            let pieces = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | ';' | '(' | ')');
            let of_line: BTreeSet<&str> = l.split(pieces).collect();
            words.iter().filter(|w| of_line.contains(w.as_str())).count()
        };
        let most = || {
            let named = self.lines.iter().enumerate().filter(|l| l.1.contains(&begins));
            named.rev().max_by_key(|l| has(l.1)).map(|l| l.0)
        };
        at.or_else(|| self.lines.iter().position(apart)).or_else(most).map(|n| n as u32 + 1)
    }

    /// Whether the script expects that the command at a line may fail and has an answer to it.
    pub fn expects_failure(&self, number: u32) -> bool {
        let text = self.logical(number);
        let text = text.trim_start();
        let first = text.split_whitespace().next().unwrap_or("");
        if matches!(first, "if" | "while" | "until" | "elif" | "!") {
            return true;
        }
        match text.split_once("||") {
            Some((_, then)) if passes_on(then) => false,
            Some((_, then)) => {
                let word = then.trim_start().trim_start_matches('{').split_whitespace().next().unwrap_or("");
                !matches!(
                    word.trim_end_matches(';'),
                    "exit"
                        | "die"
                        | "return"
                        | "echo"
                        | "printf"
                        | "fail"
                        | "error"
                        | "fatal"
                        | "err"
                        | "logger"
                )
            }
            None => false,
        }
    }

    /// Whether a failure of the command at a line ends nothing under `set -e`: it is tested, or followed by `||` or `&&`.
    pub fn is_tested(&self, number: u32) -> bool {
        let text = self.logical(number);
        let first = text.split_whitespace().next().unwrap_or("");
        let chained = text.contains("||") || text.contains("&&");
        let last = text.rsplit("||").next().and_then(|t| t.rsplit("&&").next()).unwrap_or("");
        matches!(first, "if" | "while" | "until" | "elif" | "!") || chained && !passes_on(last)
    }

    /// Whether a command's failure is passed over: `|| true`, `|| :`.
    pub fn is_ignored(&self, number: u32) -> bool {
        let text = self.logical(number);
        let last = text.rsplit_once("||").map_or("", |t| t.1).trim().trim_end_matches(['}', ';', ' ']);
        text.matches("||").count() == 1 && !text.contains("&&") && matches!(last, "true" | ":")
    }

    /// Whether the command's standard error goes to `/dev/null`.
    pub fn is_hushed(&self, number: u32) -> bool {
        // Most commands have no redirection at all.
        let redirects = |n: u32| ["null", "NULL", "2>", ">&"].iter().any(|w| self.line(n).contains(w));
        if !(number..=self.end_of(number)).any(redirects) {
            return false;
        }
        hushed(&self.logical(number))
    }

    /// Whether the standard error of the command with these words goes to `/dev/null`: of several on a line each has its own, unless they stand in braces.
    pub fn hushes(&self, number: u32, words: &[String]) -> bool {
        if !self.is_hushed(number) {
            return false;
        }
        let text = self.logical(number);
        let begins = words.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(" ");
        let mut pieces = text.split(';').skip_while(|p| !p.contains(&begins));
        let Some(own) = pieces.next() else { return true };
        let closes = |p: &str| p.trim_start().starts_with(['}', ')']) || p.trim_start().starts_with("done");
        hushed(own) || pieces.any(|p| p.contains(&begins) && hushed(p) || closes(p) && hushed(p))
    }

    /// Codes that are allowed at a line: `# penstock: allow PS123` on it, on the lines that continue it, or on those of nothing
    /// but comment right above. A comment on the text's first lines before any command with `allow-file` holds for the whole text.
    pub fn allowed(&self, number: u32) -> BTreeSet<String> {
        let mut codes = BTreeSet::new();
        for line in number..=self.end_of(number) {
            codes.extend(allows(self.line(line), "allow"));
        }
        let mut above = number;
        while above > 1 && self.line(above - 1).trim_start().starts_with('#') {
            above -= 1;
            codes.extend(allows(self.line(above), "allow"));
        }
        codes
    }

    /// Every code that a comment allows: the comment's line, whether it is for the whole text, the code.
    pub fn allowances(&self) -> Vec<(u32, bool, String)> {
        let of = |(n, line): (usize, &'_ String)| {
            let number = n as u32 + 1;
            let here = allows(line, "allow").into_iter().map(move |c| (number, false, c));
            here.chain(allows(line, "allow-file").into_iter().map(move |c| (number, true, c)))
                .collect::<Vec<_>>()
        };
        self.lines.iter().enumerate().flat_map(of).collect()
    }

    /// The lines of comments that hold for the command at a line.
    pub fn allowing(&self, number: u32) -> std::ops::RangeInclusive<u32> {
        let mut above = number;
        while above > 1 && self.line(above - 1).trim_start().starts_with('#') {
            above -= 1;
        }
        above..=self.end_of(number)
    }

    /// Codes that are allowed in the whole text: `# penstock: allow-file PS123`.
    pub fn allowed_everywhere(&self) -> BTreeSet<String> {
        self.lines.iter().flat_map(|l| allows(l, "allow-file")).collect()
    }

    /// Whether any of these stands anywhere in the text, in any case, be it within another word.
    pub fn holds(&self, words: &[&str]) -> bool {
        let lower = self.lower.get_or_init(|| self.lines.join("\n").to_lowercase());
        words.iter().any(|w| lower.contains(w))
    }

    /// Whether the text speaks of any of these words, in any case.
    pub fn mentions(&self, words: &[&str]) -> bool {
        self.holds(words)
            && self.lines.iter().any(|l| {
                let l = l.to_lowercase();
                words.iter().any(|w| l.match_indices(w).any(|(at, _)| bounded(&l, at, at + w.len())))
            })
    }

    /// Whether the text says one of these words, and not that it is none: `# fibre, no DSL here`.
    pub fn claims(&self, words: &[&str]) -> bool {
        self.first_claim(words) > 0
    }

    /// The first line that does so; 0 where none does.
    pub fn first_claim(&self, words: &[&str]) -> u32 {
        if !self.holds(words) {
            return 0;
        }
        let claims = |l: &String| {
            let l = l.to_lowercase();
            words.iter().any(|w| {
                l.match_indices(w).any(|(at, _)| {
                    let mut before =
                        l[..at].split(|c: char| !c.is_alphanumeric()).rev().filter(|w| !w.is_empty());
                    let denied = before.by_ref().take(2).any(|w| {
                        matches!(w, "no" | "not" | "without" | "never" | "nor" | "isn" | "non" | "instead")
                    });
                    bounded(&l, at, at + w.len()) && !denied
                })
            })
        };
        self.lines.iter().position(claims).map_or(0, |n| n as u32 + 1)
    }

    /// Whether one of these words is a command of the text.
    pub fn commands(&self, words: &[&str]) -> bool {
        let firsts = self.firsts.get_or_init(|| {
            let code = self.lines.iter().filter(|l| !l.trim_start().starts_with('#'));
            let begins = |c: char| matches!(c, '|' | ';' | '&' | '(' | '{' | '`');
            let keyword =
                |w: &&str| !matches!(*w, "do" | "then" | "else" | "while" | "until" | "if" | "!" | "sudo");
            let mut all: BTreeSet<&str> = BTreeSet::new();
            for line in code {
                all.extend(line.split(begins).filter_map(|p| p.split_whitespace().find(keyword)));
            }
            all.into_iter().map(str::to_owned).collect()
        });
        words.iter().any(|w| firsts.contains(*w))
    }

    /// Whether a program is called by a path (`./measure`, `/opt/x/run`) that is no network program, or what the script was given (`"$@"`): an experiment, while what
    /// was set up stands.
    pub fn calls_others(&self) -> bool {
        self.commands(&[]);
        let other = |w: &String| {
            let (folder, base) = w.rsplit_once('/').unwrap_or(("", w));
            matches!(w.as_str(), "\"$@\"" | "$@" | "$*")
                || !folder.is_empty()
                    && !base.is_empty()
                    && !w.contains('=')
                    && !w.starts_with(['"', '>', '#'])
                    && !penstock_host::Program::is_of_scripts(base)
                    && w.chars().all(|c| c.is_ascii_alphanumeric() || "./_-".contains(c))
        };
        self.firsts.get().is_some_and(|all| all.iter().any(other))
    }

    /// The one line that writes these words for a program to read: as a line of a here-document or as what `echo` and `printf` print. What
    /// the shell fills in may be any word.
    pub fn writes(&self, words: &[String]) -> Option<u32> {
        let fits = |line: &String| {
            let text = line.trim().trim_start_matches("echo ");
            // A format, and what its conversions make of the words behind it.
            let format = text.strip_prefix("printf ").map(|t| t.trim_start_matches("-- ").trim_start());
            let text = format.map_or(text, |f| match f.chars().next().filter(|q| matches!(q, '"' | '\'')) {
                Some(quote) => f[1..].split(quote).next().unwrap_or(""),
                None => f,
            });
            let text = text.split(" | ").next().unwrap_or("").split(" >>").next().unwrap_or("");
            let text = text.trim().trim_matches(['"', '\'', ';']).trim_end_matches("\\n");
            let mut own = text.split_whitespace();
            let same = words.iter().all(|w| {
                own.next().is_some_and(|o| o == w || o.contains('$') || format.is_some() && o.contains('%'))
            });
            same && own.next().is_none()
        };
        let mut all = self.lines.iter().enumerate().filter(|l| fits(l.1)).map(|l| l.0 as u32 + 1);
        all.next().filter(|_| all.next().is_none())
    }

    /// The line where a here-document's text begins that the command at `number` reads, where it reads one.
    pub fn heredoc(&self, number: u32) -> Option<u32> {
        let last = self.end_of(number);
        (number..=last)
            .any(|n| self.line(n).contains("<<") && !self.line(n).contains("<<<"))
            .then_some(last + 1)
    }
}

/// The line with blanks in place of `sudo` before a command.
pub fn without_sudo(line: &str) -> String {
    let mut out = line.to_owned();
    for (at, _) in line.match_indices("sudo") {
        let from =
            ["/usr/bin/", "/bin/"].iter().find(|f| line[..at].ends_with(**f)).map_or(at, |f| at - f.len());
        let before = line[..from].trim_end();
        let begins = before.is_empty()
            || before.ends_with([';', '&', '|', '(', '{'])
            || before.ends_with("then")
            || before.ends_with("do");
        // A variable that holds the program: `TC="sudo tc"`, `SUDO=sudo`, `${SUDO:-sudo}`.
        let bare = before.trim_end_matches(['"', '\'']);
        let valued = before.len() == from && (is_set(bare) || bare.ends_with(":-") || bare.ends_with(":="));
        let mut end = at + 4;
        while let Some(flag) = line[end..].strip_prefix(" -") {
            let letters = flag.chars().take_while(char::is_ascii_alphabetic).count();
            let plain = letters > 0 && flag[..letters].chars().all(|c| "nEHSk".contains(c));
            let ended = flag[letters..].chars().next().is_none_or(|c| matches!(c, ' ' | '"' | '\''));
            if !(plain && ended) {
                break;
            }
            end += 2 + letters;
        }
        let rest = &line[end..];
        let ends = rest.is_empty() || rest.starts_with(['"', '\'', '}', ';', ' ']);
        let goes_on = rest.starts_with(' ') && !rest[1..].starts_with('-');
        if begins && goes_on || valued && ends && !rest.starts_with(" -") {
            let end = end + usize::from(goes_on && (begins || bare != before));
            out.replace_range(from..end, &" ".repeat(end - from));
        }
    }
    out
}

/// Whether what ends here is a variable's name and its `=`.
fn is_set(text: &str) -> bool {
    let name = text.strip_suffix('=').unwrap_or("");
    let begins = name.rfind(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).map_or(0, |n| n + 1);
    let name = &name[begins..];
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

/// The codes behind `# penstock: WORD`.
fn allows(line: &str, word: &str) -> Vec<String> {
    let Some((_, comment)) = line.split_once("# penstock:") else { return Vec::new() };
    let mut words = comment.split([' ', ',', '\t']).filter(|w| !w.is_empty());
    if words.next() != Some(word) {
        return Vec::new();
    }
    words.take_while(|w| w.starts_with("PS")).map(str::to_owned).collect()
}

fn bounded(text: &str, from: usize, to: usize) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | ':' | '-' | '/');
    let before = text[..from].chars().next_back();
    let after = text[to..].chars().next();
    // A flag's word may follow a `/`, and a name in braces ends itself.
    !before.is_some_and(|c| inside(c) && c != '/') && !after.is_some_and(inside)
}

/// Whether what stands last in a chain is what a wrapper was given: nothing asks how that ends (`((DRY)) || "$@"`).
fn passes_on(last: &str) -> bool {
    let last = last.trim().trim_end_matches(['}', ';', ' ']);
    matches!(last, "\"$@\"" | "$@" | "$*" | "\"${@}\"")
}

/// Whether standard error goes to `/dev/null` somewhere in a command.
fn hushed(text: &str) -> bool {
    let text: String = text.split_whitespace().collect();
    [
        "2>/dev/null",
        "&>/dev/null",
        ">/dev/null2>&1",
        "2>&-",
        "2>>/dev/null",
        "stderr=subprocess.DEVNULL",
        "stderr=DEVNULL",
    ]
    .iter()
    .any(|h| text.contains(h))
}

fn form(lines: &[String]) -> Form {
    if let Some(first) = lines.first().filter(|l| l.starts_with("#!")) {
        return if first.contains("python") { Form::Python } else { Form::Script };
    }
    let imports = |l: &String| l.starts_with("import ") || l.starts_with("from ") && l.contains(" import ");
    if lines.iter().any(imports) {
        return Form::Python;
    }
    let mut firsts = Vec::new();
    let mut continues = false;
    for line in lines {
        let text = line.trim();
        if !continues && !text.is_empty() && !text.starts_with('#') {
            let word = text.split_whitespace().next().unwrap_or("");
            firsts.push((word.rsplit('/').next().unwrap_or(word), text));
        }
        continues = text.ends_with('\\');
    }
    if firsts.first().is_some_and(|f| OBJECTS.contains(&f.0))
        && firsts.iter().all(|f| OBJECTS.contains(&f.0) || f.0 == "tc")
    {
        return Form::Batch;
    }
    let plain = |f: &(&str, &str)| {
        PROGRAMS.contains(&f.0) && !f.1.contains(['$', '`']) && !f.1.contains("<<") && !f.1.contains("&&")
    };
    if firsts.iter().all(plain) { Form::List } else { Form::Script }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_text_is_written_in() {
        assert_eq!(Source::new("#!/bin/sh\ntc qdisc").form, Form::Script);
        assert_eq!(Source::new("tc qdisc add\n# x\nip link\n").form, Form::List);
        assert_eq!(Source::new("DEV=eth0\ntc qdisc add dev $DEV root sfq").form, Form::Script);
        assert_eq!(Source::new("# batch\nqdisc add dev eth0 root sfq\nclass add x").form, Form::Batch);
    }

    #[test]
    fn words_are_found_through_variables_and_continued_lines() {
        let source = Source::new("R=5mbit\ntc class add \\\n  rate ${R} ceil 10mbit");
        assert_eq!(source.find(2, "5mbit", 0), Some((3, 8, 4)));
        assert_eq!(source.find(2, "10mbit", 0), Some((3, 18, 6)));
        assert_eq!(source.find(2, "0mbit", 0), None);
        assert_eq!(source.end_of(2), 3);
        let is = |line: &str, plain: &str| assert_eq!(without_sudo(line), plain, "{line}");
        is("sudo tc; sudo ip # sudo x", "     tc;      ip # sudo x");
        is("/usr/bin/sudo -nE tc -s", "                  tc -s");
        is("TC=\"sudo tc\" SUDO=sudo", "TC=\"     tc\" SUDO=    ");
        is("S='sudo -n'; T=${SUDO:-sudo}", "S='       '; T=${SUDO:-    }");
        is("sudo -u root tc", "sudo -u root tc");
        is("SUDO=sudo tc", "SUDO=     tc");
        is("PSEUDO=sudoku", "PSEUDO=sudoku");
    }

    #[test]
    fn what_a_script_says_of_failure() {
        let source = Source::new(
            "tc a 2>/dev/null\ntc b || true\ntc c || exit 1\nif tc d; then\ntc e >/dev/null 2>&1\nset -eu",
        );
        let wrapper = Source::new("run() { ((DRY)) || \"$@\"; }\ntry() { \"$@\" || :; }");
        assert_eq!(
            [1, 2].map(|n| (wrapper.expects_failure(n), wrapper.is_tested(n))),
            [(false, false), (true, true)]
        );
        assert!(source.is_hushed(1) && source.is_hushed(5) && !source.is_hushed(2));
        assert_eq!([1, 2, 3, 4].map(|n| source.expects_failure(n)), [false, true, false, true]);
        let source = Source::new(
            "tc a del 2>/dev/null; tc a add x\n{ tc a add x; tc b; } 2>/dev/null\ntc a add x 2>/dev/null",
        );
        let words = ["tc", "a", "add", "x"].map(str::to_owned);
        assert_eq!([1, 2, 3].map(|n| source.hushes(n, &words)), [false, true, true]);
    }

    #[test]
    fn what_is_allowed() {
        let source = Source::new(
            "# penstock: allow PS101, PS102\ntc a\ntc b # penstock: allow PS103 because\n# penstock: allow-file PS9",
        );
        assert_eq!(source.allowed(2).into_iter().collect::<Vec<_>>(), ["PS101", "PS102"]);
        assert_eq!(source.allowed(3).into_iter().collect::<Vec<_>>(), ["PS103"]);
        assert_eq!(source.allowed_everywhere().into_iter().collect::<Vec<_>>(), ["PS9"]);
    }
}
