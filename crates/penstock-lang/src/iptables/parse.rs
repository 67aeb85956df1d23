//! Words to a command, as `do_parse`, `do_command4` and the extensions' option tables read them.

use super::extension::{Match, Target};
use super::rule::{AddrMatch, Family, Iface, Rule, Table, Verdict};
use super::{Action, Command, Failure, Listing, Program};
use crate::token::Word;
use matches::Head;
use option::{Kind, Opt, ParsedOption, Seen};
use penstock_model::Kernel;

mod address;
mod matches;
mod option;
mod targets;
mod verb;

pub(super) use matches::{ICMP_NAMES, ICMP6_NAMES, TCP_FLAGS};
pub(crate) use option::PROTOCOLS;
pub(super) use option::{TOS_NAMES, atoi};

/// Reads the words of a line, the program's name first (`iptables`, `ip6tables`, `iptables-legacy`, …).
///
/// # Errors
/// What the program says of the line; nothing has happened then.
pub fn parse(words: &[Word], kernel: Kernel) -> Result<Command, Failure> {
    let name = words.first().map_or("", |w| w.text.rsplit('/').next().unwrap_or(""));
    let family = if name.starts_with("ip6") { Family::Ip6 } else { Family::Ip };
    parse_as(words, Program { family, kernel, line: None }, Table::Filter)
}

/// The same as a certain program, with the table that holds where none is named. A line that is for the other family alone
/// comes back as [`Action::Nothing`].
pub(super) fn parse_as(words: &[Word], program: Program, table: Table) -> Result<Command, Failure> {
    let p = Parser {
        words,
        at: 1,
        program,
        table: table.name().to_owned(),
        table_given: program.line.is_some(),
        verb: None,
        rule: Rule::default(),
        listing: Listing::default(),
        zero: None,
        loaded: Vec::new(),
        protocol_word: None,
        protocol_used: false,
        target: None,
        given: Vec::new(),
        addresses: Vec::new(),
        counters: (0, 0),
        verbose: 0,
        goto: false,
        invert: false,
        done: None,
        warnings: String::new(),
        waits: false,
        interval: false,
    };
    p.run()
}

/// A text as `xtables_save_string` writes it: quoted where anything but letters, digits, `_` and `-` is in it.
pub(super) fn save_string(text: &str) -> String {
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b)) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        if "\"\\'".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

/// The refusal of a jump to something that is neither a chain nor a known target.
pub(super) fn no_target(program: Program, name: &str) -> Failure {
    let message = match program.kernel {
        Kernel::V2_6_35 => format!(
            "Couldn't load target `{name}':/lib/xtables/libipt_{name}.so: cannot open shared object file: No such file or directory\n"
        ),
        Kernel::V6_12 | Kernel::V7_2 => format!("Couldn't load target `{name}':No such file or directory\n"),
    };
    program.parameter(0, message, &targets::advice(name, program.family))
}

/// A command letter with its chain and number.
struct Verb {
    letter: char,
    chain: Option<String>,
    number: Option<u32>,
    other: Option<String>,
    word: usize,
}

/// An extension whose options may be given: a match named by `-m` or by `-p`, or the target.
#[derive(Clone)]
struct Loaded {
    name: &'static str,
    options: &'static [Opt],
    seen: Seen,
    is_target: bool,
}

struct Parser<'a> {
    words: &'a [Word],
    at: usize,
    program: Program,
    table: String,
    table_given: bool,
    verb: Option<Verb>,
    rule: Rule,
    listing: Listing,
    zero: Option<Option<String>>,
    /// Oldest first.
    loaded: Vec<Loaded>,
    /// `-p`'s word.
    protocol_word: Option<String>,
    protocol_used: bool,
    /// `-j` or `-g`: its word's place and the name.
    target: Option<(usize, String)>,
    /// Letters of the options given that are not legal with every command, and where each stands.
    given: Vec<(char, usize)>,
    /// `-s` and `-d`, which are looked at last.
    addresses: Vec<(char, usize, String, bool)>,
    counters: (u64, u64),
    verbose: u32,
    goto: bool,
    invert: bool,
    /// `-h`, `-V`, or a line that is not for this program.
    done: Option<Action>,
    /// What is said although nothing is wrong.
    warnings: String,
    /// `-w` was given.
    waits: bool,
    /// `-W` was given.
    interval: bool,
}

type Parsed<T = ()> = Result<T, Failure>;

/// The long options of the program itself.
const LONG: &[(&str, char)] = &[
    ("append", 'A'),
    ("delete", 'D'),
    ("check", 'C'),
    ("insert", 'I'),
    ("replace", 'R'),
    ("list", 'L'),
    ("list-rules", 'S'),
    ("flush", 'F'),
    ("zero", 'Z'),
    ("new-chain", 'N'),
    ("delete-chain", 'X'),
    ("rename-chain", 'E'),
    ("policy", 'P'),
    ("source", 's'),
    ("destination", 'd'),
    ("src", 's'),
    ("dst", 'd'),
    ("protocol", 'p'),
    ("in-interface", 'i'),
    ("jump", 'j'),
    ("table", 't'),
    ("match", 'm'),
    ("numeric", 'n'),
    ("out-interface", 'o'),
    ("verbose", 'v'),
    ("wait", 'w'),
    ("wait-interval", 'W'),
    ("exact", 'x'),
    ("fragments", 'f'),
    ("version", 'V'),
    ("help", 'h'),
    ("line-numbers", '0'),
    ("modprobe", 'M'),
    ("set-counters", 'c'),
    ("goto", 'g'),
    ("ipv4", '4'),
    ("ipv6", '6'),
];

impl Parser<'_> {
    fn fail<T>(&self, word: usize, message: impl AsRef<str>, help: &str) -> Parsed<T> {
        Err(self.program.parameter(word, message, help))
    }
    /// A message that 1.4.4 ends with an empty line of its own.
    fn ended(&self, message: String) -> String {
        if self.old() { message + "\n" } else { message }
    }

    fn old(&self) -> bool {
        self.program.kernel == Kernel::V2_6_35
    }
    fn head(&self) -> Head {
        Head { family: self.program.family, protocol: self.rule.protocol, old: self.old() }
    }
    /// The value of the option just read.
    fn value(&mut self, option: &str) -> Parsed<String> {
        match self.words.get(self.at) {
            Some(word) => {
                self.at += 1;
                Ok(word.text.clone())
            }
            None if self.old() => {
                self.fail(self.at - 1, format!("Unknown arg `{option}'"), "it needs a value")
            }
            None => {
                let message = format!("option \"{option}\" requires an argument");
                self.fail(self.at - 1, message, "it needs a value")
            }
        }
    }
    /// The value of an option that 1.4.4 lets be inverted between itself and its value (`-s ! 10.0.0.0/8`).
    fn invertible(&mut self, option: &str, attached: Option<String>) -> Parsed<(String, bool)> {
        let mut invert = std::mem::take(&mut self.invert);
        if let Some(value) = attached {
            return Ok((value, invert));
        }
        let mut value = self.value(option)?;
        if value == "!" && self.old() {
            if invert {
                return self.fail(self.at - 1, "Multiple `!' flags not allowed", "take one off");
            }
            invert = true;
            value = self.value(option)?;
        }
        Ok((value, invert))
    }
    /// A following word that is not an option.
    fn optional(&mut self) -> Option<String> {
        let word = self.words.get(self.at)?;
        if word.text.starts_with(['-', '!']) {
            return None;
        }
        self.at += 1;
        Some(word.text.clone())
    }

    /// The command; what was warned of stands before a refusal, as it was printed before it.
    fn run(mut self) -> Parsed<Command> {
        self.read().map_err(|mut failure| {
            failure.stderr.insert_str(0, &self.warnings);
            failure
        })
    }

    fn read(&mut self) -> Parsed<Command> {
        while self.at < self.words.len() {
            if self.words[self.at].text == "--" {
                self.at += 1;
                break;
            }
            self.step()?;
            if let Some(action) = self.done.take() {
                let table = Table::named(&self.table).unwrap_or(Table::Filter);
                let warnings = std::mem::take(&mut self.warnings);
                return Ok(Command { program: self.program, table, action, verbose: 0, warnings });
            }
        }
        self.finish()
    }

    fn step(&mut self) -> Parsed {
        let here = self.at;
        let word = self.words[here].text.clone();
        self.at += 1;
        if word == "!" {
            if self.invert {
                return self.fail(here, "multiple consecutive ! not allowed", "take one off");
            }
            self.invert = true;
            return Ok(());
        }
        if let Some(short) = word.strip_prefix('-').filter(|s| !s.is_empty() && !s.starts_with('-')) {
            return self.short_options(here, short);
        }
        if let Some(long) = word.strip_prefix("--").filter(|s| !s.is_empty()) {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (long.to_owned(), None),
            };
            return self.long_option(here, &name, attached);
        }
        if self.old() {
            return self.fail(here, format!("Bad argument `{word}'"), "");
        }
        let mut f = self.program.parameter(here, "", "an option begins with - or --");
        let (_, hint) = f.stderr.split_once('\n').unwrap_or(("", ""));
        f.stderr = format!("Bad argument `{word}'\n{hint}");
        Err(f)
    }

    fn short_options(&mut self, here: usize, letters: &str) -> Parsed {
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            rest = &rest[letter.len_utf8()..];
            let takes = "ACDEIMNPRcdgijmopst".contains(letter) || "FLSXZWhw".contains(letter);
            if takes && !rest.is_empty() {
                // `-peth0`: the value hangs on the letter.
                return self.short(here, letter, Some(rest.to_owned()));
            }
            self.short(here, letter, None)?;
        }
        Ok(())
    }

    /// The option a word means: its whole name or the only beginning. First the program's own, then those of extensions,
    /// the newest first; `None` for none.
    fn named(&self, name: &str) -> Option<Found> {
        let mut like: Vec<(&str, Found)> = Vec::new();
        for (long, letter) in LONG {
            if *long == name {
                return Some(Found::Own(*letter));
            }
            if long.starts_with(name) {
                like.push((long, Found::Own(*letter)));
            }
        }
        for (at, loaded) in self.loaded.iter().enumerate().rev() {
            // A match named twice: only the newer of the two can still be spoken to.
            if self.loaded[at + 1..].iter().any(|l| l.name == loaded.name && l.is_target == loaded.is_target)
            {
                continue;
            }
            for (i, opt) in loaded.options.iter().enumerate() {
                if opt.name == name {
                    return Some(Found::Extension(at, i));
                }
                if opt.name.starts_with(name) && like.iter().all(|l| l.0 != opt.name) {
                    like.push((opt.name, Found::Extension(at, i)));
                }
            }
        }
        match like[..] {
            [(_, found)] => Some(found),
            _ => None,
        }
    }

    fn long_option(&mut self, here: usize, name: &str, attached: Option<String>) -> Parsed {
        let mut found = self.named(name);
        if found.is_none() && self.load_protocol() {
            found = self.named(name);
        }
        match found {
            Some(Found::Own(letter)) => self.short(here, letter, attached),
            Some(Found::Extension(at, opt)) => {
                self.extension_option(here, at, opt, attached)?;
                self.invert = false;
                Ok(())
            }
            None => self.unknown(here, "--", name),
        }
    }

    /// `-p tcp` loads the match of that name when an option is met that nobody has.
    fn load_protocol(&mut self) -> bool {
        let Some(word) = &self.protocol_word else { return false };
        let name = match option::number(word) {
            Some(n) => {
                let Some(p) = PROTOCOLS.iter().find(|p| u64::from(p.1) == n) else { return false };
                p.0
            }
            None => word.as_str(),
        };
        let Some(ext) = matches::find(name, self.program.family) else { return false };
        if self.protocol_used && self.loaded.iter().any(|l| !l.is_target && l.name == ext.name) {
            return false;
        }
        self.protocol_used = true;
        if self.loaded.iter().any(|l| !l.is_target && l.name == ext.name) {
            return false;
        }
        self.loaded.push(Loaded {
            name: ext.name,
            options: ext.options,
            seen: Seen::default(),
            is_target: false,
        });
        true
    }

    fn unknown<T>(&self, here: usize, dashes: &str, name: &str) -> Parsed<T> {
        let help = match name {
            "dport" | "sport" | "destination-port" | "source-port" => "ports belong to -p tcp or -p udp",
            "dports" | "sports" | "ports" => "lists of ports belong to -m multiport",
            "set-mark" | "set-xmark" => "it belongs to -j MARK",
            "mark" => "it belongs to -m mark",
            "todev" => "IMQ was never part of Linux: an ifb device and mirred do its work",
            _ => "no match or target named before it has this option",
        };
        if self.old() {
            self.fail(here, format!("Unknown arg `{dashes}{name}'"), help)
        } else {
            self.fail(here, format!("unknown option \"{dashes}{name}\""), help)
        }
    }

    fn extension_option(&mut self, here: usize, at: usize, opt: usize, attached: Option<String>) -> Parsed {
        let loaded = self.loaded[at].clone();
        let opt = loaded.options[opt];
        let name = loaded.name;
        let is_tcp = name == "tcp" && !loaded.is_target;
        let mut invert = std::mem::take(&mut self.invert);
        let mut text = String::new();
        if opt.kind != Kind::None {
            self.invert = invert;
            (text, invert) = self.invertible(&format!("--{}", opt.name), attached)?;
        }
        let seen_before = loaded.seen.has(opt.id);
        if seen_before && is_tcp && !self.old() {
            let message = match opt.id {
                "tcp-flags" => "Only one of `--syn' or `--tcp-flags'  allowed".to_owned(),
                id => format!("Only one `--{id}' allowed"),
            };
            return self.fail(here, message, "take one off");
        }
        if seen_before && matches!(opt.id, "match-set" | "add-set" | "del-set" | "map-set") {
            return self.fail(here, format!("--{} can be specified only once", opt.id), "take one off");
        }
        if seen_before && !self.old() {
            let message = format!("{name}: option \"--{}\" can only be used once.\n", opt.id);
            return self.fail(here, message, "take one off");
        }
        if self.old() && !loaded.seen.0.is_empty() && (loaded.is_target || name == "multiport") {
            let message = match name {
                "multiport" => "multiport can only have one option".to_owned(),
                "MARK" => "MARK target: Only one --set/and/or/xor... is allowed".to_owned(),
                _ if !seen_before => String::new(),
                _ => format!("{name}: option \"--{}\" can only be used once.\n", opt.id),
            };
            if !message.is_empty() {
                return self.fail(here, message, "take one off");
            }
        }
        if invert && !opt.invert && !self.old() {
            let message = format!("{name}: option \"--{}\" cannot be inverted.\n", opt.id);
            return self.fail(here, message, "take the ! off");
        }
        if matches!(opt.id, "match-set" | "add-set" | "del-set" | "map-set") {
            match self.optional() {
                Some(dirs) => text = format!("{text} {dirs}"),
                None => {
                    let message = format!("--{} requires two args.", opt.id);
                    return self.fail(here, message, "the set's name, and src, dst or a list of them");
                }
            }
        }
        if opt.name == "tcp-flags" {
            match self.optional() {
                Some(comp) => text = format!("{text} {comp}"),
                None => return self.fail(here, "--tcp-flags requires two args.", "mask and the flags set"),
            }
        }
        let word = self.at - 1;
        let head = self.head();
        let value = match option::read(name, &opt, &text, head.family, head.old) {
            Ok(value) => value,
            Err((message, help)) => return self.fail(word, message, &help),
        };
        let old_word = opt.name != opt.id;
        let given = ParsedOption { id: opt.id, value, text, invert, old_word };
        let read = match loaded.is_target {
            true => targets::find(name, head.family).map(|e| e.read),
            false => matches::find(name, head.family).map(|e| e.read),
        };
        if let Some(Err((message, help))) = read.map(|read| read(&given, &head)) {
            return self.fail(word, message, &help);
        }
        self.warnings.push_str(&warning(name, &given, head.family));
        let seen = &mut self.loaded[at].seen.0;
        seen.retain(|g| g.id != opt.id);
        seen.push(given);
        Ok(())
    }

    /// `-m NAME`.
    fn load(&mut self, here: usize, name: &str) -> Parsed {
        let Some(ext) = matches::find(name, self.program.family) else {
            let message = if self.old() {
                format!(
                    "Couldn't load match `{name}':/lib/xtables/libipt_{name}.so: cannot open shared object file: No such file or directory\n"
                )
            } else {
                format!("Couldn't load match `{name}':No such file or directory\n")
            };
            let all = || format!("matches: {}", matches::names(self.program.family).join(" "));
            let help = matches::replaced(name).map_or_else(all, str::to_owned);
            return self.fail(here, message, &help);
        };
        let (seen, is_target) = (Seen::default(), false);
        self.loaded.push(Loaded { name: ext.name, options: ext.options, seen, is_target });
        Ok(())
    }

    /// `-j NAME`.
    fn jump(&mut self, here: usize, name: &str) -> Parsed {
        if name.is_empty() {
            return self.fail(here, "Invalid target name (too short)", "");
        }
        if name.len() > 28 {
            return self.fail(here, format!("Invalid target name `{name}' (28 chars max)"), "");
        }
        if name.chars().any(char::is_whitespace) {
            return self.fail(here, format!("Invalid target name `{name}'"), "");
        }
        self.target = Some((here, name.to_owned()));
        if !self.goto
            && let Some(ext) = targets::find(name, self.program.family)
        {
            let (seen, is_target) = (Seen::default(), true);
            self.loaded.push(Loaded { name: ext.name, options: ext.options, seen, is_target });
        }
        Ok(())
    }
}

/// What some options have the program say although nothing is wrong.
fn warning(extension: &str, given: &ParsedOption, family: Family) -> String {
    match (extension, given.id) {
        ("set", "match-set") if given.old_word => {
            "--set option deprecated, please use --match-set\n".to_owned()
        }
        ("NFLOG", "nflog-range") => {
            "warn: --nflog-range has never worked and is no longer supported, please use --nflog-size instead\n"
                .to_owned()
        }
        ("time", "localtz") => "WARNING: --localtz is being replaced by --kerneltz, since \"local\" is ambiguous. Note the kernel timezone has caveats - see manpage for details.\n".to_owned(),
        ("iprange", _) => match given.text.split_once('-') {
            Some((from, to)) if family.parse(from) > family.parse(to) => {
                format!("xt_iprange: range {from}-{to} is reversed and will never match\n")
            }
            _ => String::new(),
        },
        _ => String::new(),
    }
}

/// Whose option a word is.
#[derive(Clone, Copy)]
enum Found {
    Own(char),
    /// Place among those loaded, place in its table.
    Extension(usize, usize),
}

#[cfg(test)]
mod tests;
