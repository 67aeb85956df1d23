//! `iptables-save` and `iptables-restore`: their command lines, and the lines of a saved file.
//!
//! Follows: iptables 1.8.9 `iptables/iptables-save.c`, `iptables-restore.c`, `xshared.c` `add_param_to_argv`.
//! Differs: a saved file's comments carry no time of day, since a virtual machine has none.

use super::parse::{atoi, parse_as};
use super::{Command, Counters, Failure, Family, Program, Table};
use crate::token::Word;
use penstock_model::Kernel;

/// What `-save` is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SaveOptions {
    /// `-c`.
    pub counters: bool,
    /// `-t`.
    pub table: Option<String>,
    /// `-f`: a file, which the virtual machine has none of.
    pub file: Option<String>,
    /// `-V`.
    pub version: bool,
}

/// What `-restore` is asked for.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RestoreOptions {
    /// `-c`.
    pub counters: bool,
    /// `-v`, how often.
    pub verbose: u32,
    /// `-t`: nothing is committed.
    pub test: bool,
    /// `-n`: chains there are stay as they are.
    pub noflush: bool,
    /// `-T`: this table alone.
    pub table: Option<String>,
    /// A file in place of standard input.
    pub file: Option<String>,
    /// `-V`.
    pub version: bool,
    /// `-h`.
    pub help: bool,
}

/// An option: its letter, its long name, whether it has a value (0 no, 1 yes, 2 maybe).
type Own = (char, &'static str, u8);

/// Letters with their values, and the words that are no options.
type Options<'a> = (Vec<(char, &'a str)>, Vec<&'a str>);

/// Reads options: letters with their values, and the words that are none. The error is what is
/// said of an option there is not.
fn options<'a>(words: &'a [Word], own: &[Own]) -> Result<Options<'a>, String> {
    let (mut given, mut rest) = (Vec::new(), Vec::new());
    let mut at = 1;
    while let Some(word) = words.get(at).map(|w| w.text.as_str()) {
        at += 1;
        let mut value_of = |attached: Option<&'a str>, has: u8| match (attached, has) {
            (Some(value), _) => Ok(value),
            (None, 1) => {
                at += 1;
                let value = words.get(at - 1).map(|w| w.text.as_str());
                value.ok_or_else(|| {
                    format!("option requires an argument -- '{}'", word.trim_start_matches('-'))
                })
            }
            (None, 2) => {
                let number = words.get(at).filter(|w| w.text.starts_with(|c: char| c.is_ascii_digit()));
                at += usize::from(number.is_some());
                Ok(number.map_or("", |w| w.text.as_str()))
            }
            _ => Ok(""),
        };
        if let Some(long) = word.strip_prefix("--").filter(|l| !l.is_empty()) {
            let (name, attached) = long.split_once('=').map_or((long, None), |(n, v)| (n, Some(v)));
            let exact = own.iter().find(|o| o.1 == name);
            let mut like = own.iter().filter(|o| o.1.starts_with(name));
            let found = exact.or_else(|| like.next().filter(|_| like.next().is_none()));
            let found = found.ok_or_else(|| format!("unrecognized option '{word}'"))?;
            given.push((found.0, value_of(attached, found.2)?));
        } else if let Some(letters) = word.strip_prefix('-').filter(|l| !l.is_empty()) {
            for (i, letter) in letters.char_indices() {
                let found = own.iter().find(|o| o.0 == letter);
                let found = found.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
                let tail = &letters[i + letter.len_utf8()..];
                if found.2 == 1 && !tail.is_empty() {
                    given.push((letter, tail));
                    break;
                }
                given.push((letter, value_of(None, found.2)?));
            }
        } else {
            rest.push(word);
        }
    }
    Ok((given, rest))
}

fn said(stderr: String, help: &str) -> Failure {
    Failure { stderr, exit: 1, word: 0, help: help.to_owned() }
}

/// Reads `iptables-save`'s words.
///
/// # Errors
/// What the program says of them.
pub fn save_options(words: &[Word], family: Family) -> Result<SaveOptions, Failure> {
    const OWN: [Own; 7] = [
        ('b', "binary", 0),
        ('c', "counters", 0),
        ('d', "dump", 0),
        ('t', "table", 1),
        ('M', "modprobe", 1),
        ('f', "file", 1),
        ('V', "version", 0),
    ];
    let program = format!("{}-save", family.program());
    let (given, rest) = options(words, &OWN).map_err(|why| {
        let stderr = format!("{program}: {why}\nLook at manual page `{program}.8' for more information.\n");
        said(stderr, "options: -c, -t TABLE")
    })?;
    let mut out = SaveOptions::default();
    for (letter, value) in given {
        match letter {
            'c' => out.counters = true,
            't' => out.table = Some(value.to_owned()),
            'f' => out.file = Some(value.to_owned()),
            'V' => out.version = true,
            _ => {}
        }
    }
    if !rest.is_empty() && !out.version {
        return Err(said("Unknown arguments found on commandline\n".to_owned(), "it takes options alone"));
    }
    Ok(out)
}

/// Reads `iptables-restore`'s words.
///
/// # Errors
/// What the program says of them.
pub fn restore_options(words: &[Word], family: Family) -> Result<RestoreOptions, Failure> {
    const OWN: [Own; 11] = [
        ('b', "binary", 0),
        ('c', "counters", 0),
        ('v', "verbose", 0),
        ('V', "version", 0),
        ('t', "test", 0),
        ('h', "help", 0),
        ('n', "noflush", 0),
        ('M', "modprobe", 1),
        ('T', "table", 1),
        ('w', "wait", 2),
        ('W', "wait-interval", 2),
    ];
    let program = format!("{}-restore", family.program());
    let (given, rest) = options(words, &OWN).map_err(|why| {
        let stderr = format!("{program}: {why}\nTry `{program} -h' for more information.\n");
        said(stderr, "options: -c, -n, -t, -v, -T TABLE")
    })?;
    let mut out = RestoreOptions::default();
    for (letter, value) in given {
        match letter {
            'c' => out.counters = true,
            'v' => out.verbose += 1,
            'V' => out.version = true,
            't' => out.test = true,
            'h' => out.help = true,
            'n' => out.noflush = true,
            'T' => out.table = Some(value.to_owned()),
            _ => {}
        }
    }
    if rest.len() > 1 {
        return Err(said("Unknown arguments found on commandline\n".to_owned(), "one file"));
    }
    out.file = rest.first().map(|f| (*f).to_owned());
    Ok(out)
}

/// What a line of a saved file says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Line {
    /// Nothing: empty, a comment, or for the other family.
    Nothing,
    /// `*NAME`.
    Table(String),
    /// `:CHAIN POLICY [PACKETS:BYTES]`; no policy for one of the user's.
    Chain {
        /// Its name.
        name: String,
        /// `-` is not a policy.
        policy: Option<String>,
        /// Counters, where they were asked for.
        counters: Option<Counters>,
    },
    /// `COMMIT`.
    Commit,
    /// A rule, as a command.
    Rule(Box<Command>),
}

/// Splits a rule's line into words: double quotes hold blanks, and a backslash within them the next character.
fn split(program: Program, text: &str) -> Result<Vec<String>, Failure> {
    let mut words = Vec::new();
    let (mut word, mut open, mut escaped, mut quoted) = (String::new(), false, false, false);
    for c in text.chars() {
        if open {
            match c {
                _ if escaped => {
                    word.push(c);
                    escaped = false;
                }
                '\\' => escaped = true,
                '"' => {
                    open = false;
                    words.push(std::mem::take(&mut word));
                    quoted = false;
                }
                _ => word.push(c),
            }
        } else if c == '"' {
            (open, quoted) = (true, true);
        } else if c.is_ascii_whitespace() {
            if !word.is_empty() {
                words.push(std::mem::take(&mut word));
                quoted = false;
            }
        } else {
            word.push(c);
        }
        if word.len() >= 1024 {
            return Err(program.parameter(0, "Parameter too long!", "at most 1023 bytes"));
        }
    }
    if !word.is_empty() || quoted && open {
        words.push(word);
    }
    Ok(words)
}

/// Reads a line; `table` is the one it stands in, `counters` whether counters count.
///
/// # Errors
/// What the program says of it.
pub fn read_line(
    text: &str,
    line: u32,
    table: Option<Table>,
    options: &RestoreOptions,
    (family, kernel): (Family, Kernel),
) -> Result<Line, Failure> {
    let program = Program { family, kernel, line: Some(line) };
    let name = program.name();
    let first = text.chars().next();
    match (first, table) {
        (None | Some('#'), _) => return Ok(Line::Nothing),
        (Some('*'), None) => {
            return match text[1..].split_ascii_whitespace().next() {
                Some(table) => Ok(Line::Table(table.to_owned())),
                None => Err(program.parameter(0, format!("{name}: line {line} table name invalid"), "")),
            };
        }
        (Some(':'), Some(_)) => {
            let mut words = text[1..].split_ascii_whitespace();
            let Some(chain) = words.next() else {
                return Err(program.parameter(0, format!("{name}: line {line} chain name invalid"), ""));
            };
            if chain.len() >= 29 {
                let message = format!("Invalid chain name `{chain}' (28 chars max)");
                return Err(program.parameter(0, message, ""));
            }
            let Some(policy) = words.next() else {
                return Err(program.parameter(0, format!("{name}: line {line} policy invalid"), ""));
            };
            let mut counters = None;
            if policy != "-" && options.counters {
                counters = words.next().and_then(counted);
                if counters.is_none() {
                    let message = format!("invalid policy counters for chain '{chain}'");
                    return Err(program.parameter(0, message, "[packets:bytes]"));
                }
            }
            let policy = (policy != "-").then(|| policy.to_owned());
            return Ok(Line::Chain { name: chain.to_owned(), policy, counters });
        }
        (_, Some(_)) if text == "COMMIT" => return Ok(Line::Commit),
        _ => {}
    }
    let Some(table) = table else {
        return Err(said(format!("{name}: line {line} failed\n"), "a table begins with *NAME"));
    };
    let mut rest = text;
    let mut given = Vec::new();
    if let Some(inside) = text.strip_prefix('[') {
        let bad =
            |what: &str| program.parameter(0, format!("Bad line {line}: need {what}"), "[packets:bytes]");
        let (inside, tail) = inside.split_once(']').ok_or_else(|| bad("]"))?;
        let (packets, bytes) = inside.split_once(':').ok_or_else(|| bad("]"))?;
        if options.counters {
            given = vec!["--set-counters".to_owned(), packets.to_owned(), bytes.to_owned()];
        }
        rest = tail;
    }
    let mut words = vec![name.to_owned()];
    if !options.noflush {
        words.extend((0..options.verbose).map(|_| "-v".to_owned()));
    }
    words.extend(given);
    words.extend(split(program, rest)?);
    let words: Vec<Word> = words.into_iter().map(|w| Word::new(w, 0)).collect();
    let command = parse_as(&words, program, table)?;
    Ok(Line::Rule(Box::new(command)))
}

/// `[packets:bytes]`.
fn counted(text: &str) -> Option<Counters> {
    let (packets, bytes) = text.strip_prefix('[')?.split_once(':')?;
    let number = |t: &str| t.starts_with(|c: char| c.is_ascii_digit()).then(|| atoi(t).max(0) as u64);
    Some((number(packets)?, number(bytes)?))
}
