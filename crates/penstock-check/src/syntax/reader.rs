//! Tokens to [`Syntax`].

use super::tokens::{Kind, Token, tokens};
use super::{Arm, Choice, Command, End, Frame, Loop, Syntax};
use std::collections::BTreeSet;

/// The programs whose commands are counted.
pub(crate) const NETWORK: [&str; 14] = [
    "tc",
    "ip",
    "iptables",
    "ip6tables",
    "iptables-restore",
    "ip6tables-restore",
    "iptables-legacy",
    "iptables-nft",
    "ip6tables-legacy",
    "ip6tables-nft",
    "nft",
    "bridge",
    "ethtool",
    "ipchains",
];

/// Whether a program's commands are counted.
pub(crate) fn is_network(program: &str) -> bool {
    NETWORK.contains(&program)
}

/// Words that stand before a command, which they carry out.
const BEFORE: [&str; 14] = [
    "sudo", "command", "exec", "env", "time", "nice", "ionice", "nohup", "builtin", "!", "busybox", "setsid",
    "timeout", "doas",
];

/// Programs of which a network program's name is a mere word.
const SPEAK: [&str; 24] = [
    "echo", "printf", "logger", "which", "type", "hash", "man", "pkill", "killall", "pgrep", "pidof", "grep",
    "apt-get", "apt", "yum", "dnf", "opkg", "modprobe", "for", "test", "[", "cat", "local", "help",
];

/// Programs that carry out what stands behind them, in other places or with other words.
const CARRIES: [&str; 17] = [
    "nsenter",
    "docker",
    "docker-compose",
    "podman",
    "nerdctl",
    "kubectl",
    "lxc",
    "lxc-attach",
    "incus",
    "ssh",
    "xargs",
    "chroot",
    "unshare",
    "flock",
    "stdbuf",
    "systemd-run",
    "eval",
];

/// Whether a network program that is a word of another's command has a command behind it, and is not only named (`need tc ip`).
fn has_command(words: &[String]) -> bool {
    let next = words.get(1).map_or("", |w| w.trim_matches('"'));
    next.starts_with('-')
        || next.starts_with('$') && words.len() > 2
        || matches!(
            next,
            "qdisc"
                | "class"
                | "filter"
                | "chain"
                | "action"
                | "actions"
                | "link"
                | "addr"
                | "address"
                | "route"
                | "rule"
                | "netns"
                | "neigh"
                | "tunnel"
                | "add"
                | "l"
                | "a"
                | "r"
                | "list"
                | "flush"
                | "delete"
        )
}

/// How deep things may stand within each other.
const DEEP: usize = 60;

pub(crate) fn read(text: &str) -> Syntax {
    let mut reader = Reader {
        text,
        tokens: Vec::new(),
        at: 0,
        frames: Vec::new(),
        out: Syntax::default(),
        programs: programs(text),
        deep: 0,
        shells: 0,
        defined: 0,
    };
    reader.within(0, text.len(), 1);
    let mut out = reader.out;
    let functions = &out.functions;
    out.commands.retain(|c| c.network || c.words.first().is_some_and(|w| functions.contains_key(w)));
    // What replaces a program under its own name is a call as well; by the name of a network program it counts.
    for command in &mut out.commands {
        let called = |w: &String| functions.contains_key(w) && !NETWORK.contains(&w.as_str());
        command.network &= !command.words.first().is_some_and(called);
    }
    for (at, command) in out.commands.iter().enumerate() {
        for line in command.line..=command.last {
            out.by_line.entry(line).or_default().push(at);
        }
        for frame in &command.frames {
            if let Frame::Function(name) = frame {
                out.inside.entry(name.clone()).or_default().push(at);
            }
        }
        if command.words.first().is_some_and(|w| functions.contains_key(w)) {
            out.calls.entry(command.words[0].clone()).or_default().push(at);
        }
    }
    out.unset = unset(text);
    out
}

/// Variables whose value is a network program: `TC=/sbin/tc`, `TC="$SUDO tc"`, `TC=$(which tc)`.
fn programs(text: &str) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for line in text.lines() {
        let line = line.trim_start().trim_start_matches("export ").trim_start_matches("local ");
        let Some((name, value)) = line.split_once('=') else { continue };
        if !is_name(name) {
            continue;
        }
        let mut words = value.split(|c: char| c.is_whitespace() || "\"'`$(){}:;=-|&".contains(c));
        if words.any(|w| NETWORK.contains(&w.rsplit('/').next().unwrap_or(w)))
            && value.split_whitespace().count() < 6
        {
            known.insert(name.to_owned());
        }
    }
    known.extend(asked(text).map(|(name, _)| name.to_owned()));
    known
}

/// Variables that are a program by their names.
const NAMES: [(&str, &str); 7] = [
    ("TC", "tc"),
    ("IP", "ip"),
    ("IPTABLES", "iptables"),
    ("IPT", "iptables"),
    ("IP6TABLES", "ip6tables"),
    ("IPT6", "ip6tables"),
    ("NFT", "nft"),
];

/// Those of them that a text carries out.
fn asked(text: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    let asks = |name: &str| text.contains(&format!("${name} ")) || text.contains(&format!("${{{name}}} "));
    // An address is called `IP` as well.
    let begins = |l: &str| l.starts_with("$IP ") || l.starts_with("${IP} ");
    let runs = move |name: &str| name != "IP" || text.lines().any(|l| begins(l.trim_start()));
    NAMES.into_iter().filter(move |(name, _)| asks(name) && runs(name))
}

/// Variables that another file sets and that are a program by their names: `$TC qdisc …` of a text that sets no `TC`, or sets it to a function of another
/// file.
pub(crate) fn absent(text: &str) -> Vec<(String, &'static str)> {
    let is_elsewhere = |value: &str| {
        let value = value.trim_matches(['"', '\'']);
        is_name(value)
            && !NETWORK.contains(&value)
            && ![format!("{value}("), format!("{value} ("), format!("function {value}")]
                .iter()
                .any(|f| text.contains(f))
    };
    let sets = |name: &str| {
        let given = [format!("{name}:"), format!("read {name}")];
        let value = format!("{name}=");
        let begins = |l: &str, at: usize| !l[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        text.lines().any(|l| {
            let values = l.match_indices(&value).filter(|(at, _)| begins(l, *at));
            let mut values =
                values.map(|(at, _)| l[at + value.len()..].split([' ', ';', '\t']).next().unwrap_or(""));
            given.iter().any(|g| l.contains(g.as_str())) || values.any(|v| !is_elsewhere(v))
        })
    };
    let of = asked(text).filter(|(name, _)| !sets(name));
    of.map(|(name, program)| (name.to_owned(), program)).collect()
}

/// Whether a word may be a variable's name.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// Whether a word gives a variable a value: `NAME=x`, `NAME+=x`, `NAME[1]=x`.
pub(crate) fn assigns(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| is_name(element(name.trim_end_matches('+'))))
}

/// An array's name where one of its elements is meant.
pub(crate) fn element(name: &str) -> &str {
    if name.ends_with(']') { name.split('[').next().unwrap_or(name) } else { name }
}

/// The highest of `$1`, `$2`, … in a word, where no default is given for it.
fn positional(word: &str) -> usize {
    let number = |(at, _): (usize, &str)| {
        let rest = &word[at + 1..];
        let inner = rest.trim_start_matches('{');
        let digit = inner.chars().next()?.to_digit(10)? as usize;
        let plain =
            inner.len() == rest.len() || inner[1..].starts_with(['}', ':']) && !inner[1..].starts_with(":-");
        plain.then_some(digit)
    };
    word.match_indices('$').filter_map(number).max().unwrap_or(0)
}

/// Variables that are read and never set, where no default is given for them.
fn unset(text: &str) -> BTreeSet<String> {
    let (mut read, mut set) = (BTreeSet::new(), BTreeSet::new());
    for line in text.lines().filter(|l| !l.trim_start().starts_with('#')) {
        for (at, _) in line.match_indices("$((") {
            let inner = &line[at + 3..];
            let end = crate::environment::expression(inner);
            read.extend(crate::environment::operands(&inner[..end]).map(|o| o.1));
        }
        for (at, _) in line.match_indices('$') {
            let rest = line[at + 1..].trim_start_matches('{');
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(end);
            if !is_name(name) {
                continue;
            }
            let has_default =
                line[at + 1..].starts_with('{') && behind.starts_with([':', '-', '=', '+', '?']);
            if has_default {
                set.insert(name)
            } else {
                read.insert(name)
            };
        }
        for (at, _) in line.match_indices('=') {
            let mut begin = line[..at].trim_end_matches(['+', '-', '*', '/', '%', '|', '&', '^']);
            // Within `(( ))` blanks may stand before `=`.
            if line[..at].contains("((") || line.trim_start().starts_with("let ") {
                begin = begin.trim_end();
            }
            let begin =
                if begin.ends_with(']') { begin.rfind('[').map_or(begin, |at| &begin[..at]) } else { begin };
            let other = |c: &(usize, char)| !(c.1.is_ascii_alphanumeric() || c.1 == '_');
            let from = begin.char_indices().rfind(other).map_or(0, |(at, c)| at + c.len_utf8());
            set.insert(&begin[from..]);
        }
        let mut words = line.split(|c: char| c.is_whitespace() || c == ';').peekable();
        while let Some(word) = words.next() {
            match word {
                "for" | "select" => set.extend(words.next()),
                "read" | "local" | "declare" | "typeset" | "export" | "getopts" | "mapfile" | "readarray"
                | "printf" => {
                    set.extend(
                        words.clone().take_while(|w| !w.starts_with(['<', '|', '#'])).filter(|w| is_name(w)),
                    );
                }
                _ => {}
            }
        }
    }
    let kept = [
        "HOME",
        "PATH",
        "USER",
        "UID",
        "EUID",
        "PWD",
        "OLDPWD",
        "SHELL",
        "HOSTNAME",
        "IFS",
        "RANDOM",
        "SECONDS",
        "LINENO",
        "OPTARG",
        "OPTIND",
        "REPLY",
        "PPID",
        "BASHPID",
        "FUNCNAME",
        "BASH_SOURCE",
        "SRANDOM",
        "TERM",
        "EPOCHSECONDS",
        "EPOCHREALTIME",
        "PIPESTATUS",
        "BASH_VERSION",
        "LOGNAME",
        "BASH_LINENO",
        "BASH_REMATCH",
        "BASH_COMMAND",
        "COLUMNS",
        "HOSTTYPE",
        "OSTYPE",
        "MACHTYPE",
        "LINES",
        "BASH_VERSINFO",
    ];
    read.difference(&set).filter(|n| !kept.contains(n)).map(|n| (*n).to_owned()).collect()
}

struct Reader<'a> {
    text: &'a str,
    tokens: Vec<Token>,
    at: usize,
    frames: Vec<Frame>,
    out: Syntax,
    programs: BTreeSet<String>,
    deep: usize,
    /// Shells within that commands are read in: `( … )`, substitutions.
    shells: usize,
    /// Functions so far.
    defined: usize,
}

impl<'a> Reader<'a> {
    /// Reads commands between two places of the text.
    fn within(&mut self, from: usize, to: usize, line: u32) {
        if self.deep >= DEEP {
            return;
        }
        let nested = usize::from(self.deep > 0);
        self.deep += 1;
        self.shells += nested;
        let outer = std::mem::replace(&mut self.tokens, tokens(self.text, from, to, line));
        let at = std::mem::replace(&mut self.at, 0);
        while self.at < self.tokens.len() {
            let before = self.at;
            self.list(&[]);
            // A word or an operator that closes nothing.
            if self.at == before {
                self.at += 1;
            }
        }
        self.tokens = outer;
        self.at = at;
        self.shells -= nested;
        self.deep -= 1;
    }

    fn token(&self) -> Option<Token> {
        self.tokens.get(self.at).copied()
    }
    fn written(&self, token: Token) -> &'a str {
        &self.text[token.start..token.end]
    }
    fn is(&self, text: &str) -> bool {
        self.token().is_some_and(|t| self.written(t) == text && t.kind != Kind::Newline)
    }
    fn skip(&mut self, text: &str) -> bool {
        let there = self.is(text);
        self.at += usize::from(there);
        there
    }
    fn skip_newlines(&mut self) {
        while self.token().is_some_and(|t| t.kind == Kind::Newline) {
            self.at += 1;
        }
    }
    /// What was read from one place to the token at hand.
    fn since(&self, from: usize) -> String {
        let end = self.tokens.get(self.at.wrapping_sub(1)).map_or(from, |t| t.end);
        self.text[from.min(end)..end].trim().trim_end_matches(';').trim_end().to_owned()
    }
    fn start(&self) -> usize {
        self.token().map_or(self.text.len(), |t| t.start)
    }
    fn line(&self) -> u32 {
        self.token().or(self.tokens.last().copied()).map_or(1, |t| t.line)
    }

    /// Commands, until one of these words or operators, which stays.
    fn list(&mut self, ends: &[&str]) {
        loop {
            while self.token().is_some_and(|t| {
                t.kind == Kind::Newline || t.kind == Kind::Operator && matches!(self.written(t), ";" | "&")
            }) {
                self.at += 1;
            }
            let Some(token) = self.token() else { return };
            let text = self.written(token);
            if ends.contains(&text)
                || token.kind == Kind::Operator && matches!(text, ")" | ";;" | ";&" | ";;&")
            {
                return;
            }
            let (before, functions) = (self.at, self.defined);
            self.and_or();
            if self.at == before {
                self.at += 1;
            }
            // Where functions stand in an arm, behind all of the construct.
            if self.deep == 1
                && self.frames.is_empty()
                && self.defined > functions
                && let Some(last) = self.tokens.get(self.at.wrapping_sub(1))
            {
                self.out.defined.push(last.end);
            }
        }
    }

    fn and_or(&mut self) {
        let depth = self.frames.len();
        let (mut from, mut line) = (self.start(), self.line());
        self.pipeline();
        while let Some(token) = self.token().filter(|t| t.kind == Kind::Operator) {
            let and = match self.written(token) {
                "&&" => true,
                "||" => false,
                _ => break,
            };
            let condition = self.since(from);
            self.at += 1;
            self.skip_newlines();
            self.frames.truncate(depth);
            self.frames.push(Frame::Behind { at: token.start, condition, line, and });
            (from, line) = (self.start(), self.line());
            self.pipeline();
        }
        self.frames.truncate(depth);
    }

    fn pipeline(&mut self) {
        loop {
            self.command();
            if !(self.skip("|")) {
                return;
            }
            self.skip_newlines();
        }
    }

    fn command(&mut self) {
        while self.skip("!") {}
        let Some(token) = self.token() else { return };
        if self.deep >= DEEP {
            self.at += 1;
            return;
        }
        self.deep += 1;
        match self.written(token) {
            "{" => {
                self.at += 1;
                self.list(&["}"]);
                self.skip("}");
            }
            "(" => {
                self.at += 1;
                self.shells += 1;
                self.list(&[]);
                self.shells -= 1;
                self.skip(")");
            }
            "if" => self.condition(),
            "while" => self.turns("while"),
            "until" => self.turns("until"),
            "for" | "select" => self.over(),
            "case" => self.case(),
            "function" => {
                self.at += 1;
                let name = self.token().map_or("", |t| self.written(t)).to_owned();
                let line = self.line();
                self.at += 1;
                if self.skip("(") {
                    self.skip(")");
                }
                self.function(name, line);
            }
            _ => {
                let next = self.tokens.get(self.at + 1).map(|t| self.written(*t));
                let is_function = token.kind == Kind::Word
                    && next == Some("(")
                    && self.tokens.get(self.at + 2).map(|t| self.written(*t)) == Some(")");
                if is_function {
                    self.at += 3;
                    self.function(self.written(token).to_owned(), token.line);
                } else {
                    self.simple();
                }
            }
        }
        self.deep -= 1;
        // Redirections of a compound command.
        while self.token().is_some_and(|t| t.kind == Kind::Operator && self.written(t).contains(['<', '>'])) {
            self.at += 2;
        }
    }

    fn function(&mut self, name: String, line: u32) {
        self.defined += 1;
        self.skip_newlines();
        self.out.functions.insert(name.clone(), line);
        // A function that an arm defines is there where the arm is taken.
        let arms = self.frames.iter().filter(|f| matches!(f, Frame::Arm(..))).cloned();
        let inside = arms.chain([Frame::Function(name)]).collect();
        let outer = std::mem::replace(&mut self.frames, inside);
        self.command();
        self.frames = outer;
    }

    fn condition(&mut self) {
        let number = self.out.choices.len();
        let line = self.line();
        self.out.choices.push(Choice { line, arms: Vec::new(), word_end: None, word: String::new() });
        loop {
            // `if` or `elif`.
            self.at += 1;
            let (from, line) = (self.start(), self.line());
            self.list(&["then"]);
            let arm = Arm { condition: self.since(from), line, at: Some(self.start()) };
            self.out.choices[number].arms.push(arm);
            self.skip("then");
            self.arm(number, &["elif", "else", "fi"]);
            if !self.is("elif") {
                break;
            }
        }
        if self.is("else") {
            let arm = Arm { condition: String::new(), line: self.line(), at: None };
            self.at += 1;
            self.out.choices[number].arms.push(arm);
            self.arm(number, &["fi"]);
        }
        self.skip("fi");
    }

    /// The commands of the last arm that was begun.
    fn arm(&mut self, number: usize, ends: &[&str]) {
        let arm = self.out.choices[number].arms.len() - 1;
        self.frames.push(Frame::Arm(number, arm));
        self.list(ends);
        self.frames.pop();
    }

    fn turns(&mut self, word: &'static str) {
        let line = self.line();
        self.at += 1;
        let from = self.start();
        self.list(&["do"]);
        let condition = self.since(from);
        self.body(Loop { line, condition, at: self.start(), word, input: None });
    }

    fn over(&mut self) {
        let line = self.line();
        self.at += 1;
        let from = self.start();
        while self.token().is_some_and(|t| t.kind == Kind::Word) && !self.is("do") {
            self.substitutions(self.tokens[self.at]);
            self.at += 1;
        }
        let condition = self.since(from);
        let at = self.tokens.get(self.at.wrapping_sub(1)).map_or(from, |t| t.end);
        while self.token().is_some_and(|t| t.kind == Kind::Newline || self.written(t) == ";") {
            self.at += 1;
        }
        self.body(Loop { line, condition, at, word: "for", input: None });
    }

    fn body(&mut self, of: Loop) {
        let number = self.out.loops.len();
        self.out.loops.push(of);
        if self.skip("do") || self.skip("{") {
            self.frames.push(Frame::Loop(number));
            self.list(&["done", "}"]);
            self.frames.pop();
            self.at += 1;
            if self.is("<")
                && let [from, file, ..] = self.tokens[self.at..]
            {
                self.out.loops[number].input = Some((from.start, file.end));
            }
        }
    }

    fn case(&mut self) {
        let number = self.out.choices.len();
        let line = self.line();
        self.at += 1;
        let Some(word) = self.token() else { return };
        self.substitutions(word);
        let choice =
            Choice { line, arms: Vec::new(), word_end: Some(word.end), word: self.written(word).to_owned() };
        self.out.choices.push(choice);
        self.at += 1;
        self.skip_newlines();
        self.skip("in");
        loop {
            self.skip_newlines();
            if self.token().is_none() || self.skip("esac") {
                return;
            }
            self.skip("(");
            let (from, line) = (self.start(), self.line());
            while self.token().is_some() && !self.is(")") {
                self.at += 1;
            }
            let arm = Arm { condition: self.since(from), line, at: Some(self.start()) };
            self.out.choices[number].arms.push(arm);
            self.skip(")");
            self.arm(number, &["esac"]);
            if !(self.skip(";;") || self.skip(";&") || self.skip(";;&")) {
                self.skip("esac");
                return;
            }
        }
    }

    fn simple(&mut self) {
        let mut words: Vec<Token> = Vec::new();
        while let Some(token) = self.token() {
            match token.kind {
                Kind::Newline => break,
                Kind::Operator if self.written(token).contains(['<', '>']) => {
                    // `2>&1`: the number before it is no word.
                    if words.last().is_some_and(|w| {
                        w.end == token.start && self.written(*w).bytes().all(|b| b.is_ascii_digit())
                    }) {
                        words.pop();
                    }
                    self.at += 2;
                }
                Kind::Operator => break,
                Kind::Word => {
                    words.push(token);
                    self.at += 1;
                }
            }
        }
        let at_top = !self.frames.iter().any(|f| matches!(f, Frame::Function(_)));
        for &word in &words {
            self.substitutions(word);
            if at_top {
                let highest = positional(self.written(word));
                self.out.positional = self.out.positional.max(highest);
            }
        }
        let text = |t: &Token| self.written(*t);
        let first = words.iter().position(|t| !assigns(text(t))).unwrap_or(words.len());
        let words = &words[first..];
        let Some(&name) = words.first() else { return };
        match self.written(name) {
            "exit" => {
                let turns = |f: &Frame| matches!(f, Frame::Loop(n) if self.out.loops[*n].word != "for");
                let end = if self.frames.iter().any(turns) { End::ExitOfLoop } else { End::Exit };
                self.out.ends.push((name.start, name.end, end));
                if self.frames.is_empty() && self.shells == 0 {
                    self.out.over.get_or_insert(name.line);
                }
            }
            "exec" if words.len() > 1 => self.out.ends.push((name.start, name.end, End::Exec)),
            "return" | "break" | "continue" => self.out.ends.push((name.start, name.end, End::Return)),
            "set" => {
                let ends = |t: &Token| {
                    let w = self.written(*t);
                    w.starts_with('-') && !w.starts_with("--") && w.contains(['e', 'u'])
                        || matches!(w, "errexit" | "nounset")
                };
                if words.iter().skip(1).any(ends) {
                    self.out.ends.push((name.start, name.end, End::Exit));
                }
            }
            "." | "source" => {
                let file = words.get(1).filter(|t| self.written(**t) != "--").or(words.get(2));
                self.out.sourced.extend(file.map(|t| (t.line, t.start, t.end)));
            }
            _ => {}
        }
        let written: Vec<String> = words.iter().map(|t| self.written(*t).to_owned()).collect();
        let (network, begin) = match self.program_at(&written) {
            Some(at) => (true, at),
            None => (false, 0),
        };
        let last = words.last().map_or(name, |w| *w);
        let extra = self.written(last).matches('\n').count() as u32;
        let command = Command {
            line: name.line,
            last: last.line + extra,
            words: written[begin..].to_vec(),
            frames: self.frames.clone(),
            network,
        };
        self.out.commands.push(command);
    }

    /// Which of the words is a network program that is carried out.
    fn program_at(&self, words: &[String]) -> Option<usize> {
        let is = |word: &str| {
            let word = word.trim_matches('"').trim_start_matches('\\');
            let variable = word.strip_prefix('$').map(|v| v.trim_start_matches('{').trim_end_matches('}'));
            variable.map_or_else(
                || NETWORK.contains(&word.rsplit('/').next().unwrap_or(word)),
                |name| self.programs.contains(name),
            )
        };
        let first = words.first()?;
        if is(first) {
            // `TC=tc; $TC` alone, and `ip netns exec NAME tc …` are the same command.
            return Some(0);
        }
        if SPEAK.contains(&first.as_str())
            || first == "command" && words.get(1).is_some_and(|w| w.starts_with('-'))
        {
            return None;
        }
        let carries = CARRIES.contains(&first.rsplit('/').next().unwrap_or(first))
            || first.trim_start_matches('"').starts_with('$')
            || self.out.functions.contains_key(first);
        if carries {
            let at = 1 + words[1..].iter().position(|w| is(w))?;
            let spoken = words[1..at].iter().any(|w| SPEAK.contains(&w.as_str()));
            return (has_command(&words[at..]) && !spoken).then_some(at);
        }
        if BEFORE.contains(&first.as_str()) {
            let at = 1 + words[1..].iter().position(|w| is(w))?;
            return (at < 5).then_some(at);
        }
        None
    }

    /// The commands within a word's `$( )` and backticks.
    fn substitutions(&mut self, word: Token) {
        let text = self.written(word);
        if !text.contains("$(") && !text.contains('`') {
            return;
        }
        let bytes = text.as_bytes();
        let mut at = 0;
        let mut quote = false;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' => at += 1,
                b'"' => quote = !quote,
                b'\'' if !quote => at += text[at + 1..].find('\'').map_or(text.len(), |e| e + 1),
                b'$' if text[at..].starts_with("$((") => at += 2,
                b'$' if text[at..].starts_with("$(") => {
                    let end = closing(bytes, at + 1);
                    self.inner(word, at + 2, end);
                    at = end;
                }
                b'`' => {
                    let end = text[at + 1..].find('`').map_or(text.len(), |e| at + 1 + e);
                    self.inner(word, at + 1, end);
                    at = end;
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn inner(&mut self, word: Token, from: usize, to: usize) {
        let text = self.written(word);
        let to = to.min(text.len());
        if from < to {
            let line = word.line + text[..from].matches('\n').count() as u32;
            self.within(word.start + from, word.start + to, line);
        }
    }
}

/// Where the parenthesis at this place is closed.
fn closing(bytes: &[u8], open: usize) -> usize {
    let (mut depth, mut at) = (0_usize, open);
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 1,
            b'\'' => at += bytes[at + 1..].iter().position(|b| *b == b'\'').map_or(bytes.len(), |e| e + 1),
            b'(' => depth += 1,
            b')' if depth <= 1 => return at,
            b')' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(u32, String)> {
        let syntax = read(text);
        syntax.network().map(|(_, c)| (c.line, c.words.join(" "))).collect()
    }

    #[test]
    fn network_commands_wherever_they_stand() {
        let text = "TC=/sbin/tc\nwhich jq || exit 1; tc a 2>&1 >x\nif $TC b; then\n  sudo ip c |\n  grep x\nelse x=$(tc d | wc -l)\nfi\n\
                    echo tc; case $1 in start|go) for i in `ip e`; do ${TC} f \\\n g; done;; *) tc h;; esac\nf() { iptables \"$@\" && tc i; }\ncat <<E\ntc j\nE\nf -A x\n";
        let want = [
            (2, "tc a"),
            (3, "$TC b"),
            (4, "ip c"),
            (6, "tc d"),
            (8, "ip e"),
            (8, "${TC} f g"),
            (9, "tc h"),
            (10, "iptables \"$@\""),
            (10, "tc i"),
        ];
        let want: Vec<(u32, String)> = want.map(|(n, w)| (n, w.to_owned())).to_vec();
        assert_eq!(found(text), want);
        let syntax = read(text);
        assert_eq!(syntax.functions.keys().collect::<Vec<_>>(), ["f"]);
        assert!(syntax.commands.iter().any(|c| !c.network && c.words == ["f", "-A", "x"] && c.line == 14));
        assert_eq!(syntax.ends.len(), 1);
        let why = |words: &str| {
            let command = syntax.network().find(|c| c.1.words.join(" ") == words).unwrap().1;
            syntax.why(command).unwrap()
        };
        assert_eq!(why("ip c"), "`$TC b` failed (line 3)");
        assert_eq!(why("tc d"), "`$TC b` succeeded (line 3)");
        assert_eq!(why("tc h"), "`$1` is not `*` (line 8)");
        assert_eq!(why("${TC} f g"), "the loop over `i in `ip e`` was not entered (line 8)");
        assert_eq!(why("tc i"), "`iptables \"$@\"` failed (line 10)");
    }

    #[test]
    fn variables_that_nobody_sets() {
        let text = "A=1\nfor b in x; do echo $b $A $C ${D:-1} ${E}; done\nread F G\necho $F $HOME $1 $#\nlocal H; echo $H";
        assert_eq!(unset(text).into_iter().collect::<Vec<_>>(), ["C", "E"]);
    }

    #[test]
    fn any_text_is_read_to_its_end() {
        for text in [
            "",
            "fi",
            ")",
            "((",
            "case",
            "case x in",
            "if",
            "f(",
            "\"",
            "$(",
            "`",
            "a=(",
            "[[ ",
            "{",
            "<<",
            "for",
            ";;",
            "\\",
            "$((",
            "while",
        ] {
            read(text);
            read(&text.repeat(300));
        }
    }
}
