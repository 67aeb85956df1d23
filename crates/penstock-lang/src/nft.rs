//! `nft`: rules for marks, DSCP and priority, and what such rules need: tables, chains, sets and maps.
//!
//! [parse()] reads commands or a file; what they do to the tables as they stand lives with the tables, which ask
//! [`value::elements`] about elements of a named set once they know its type. [`show`] prints.
//!
//! Follows: nftables 1.0.6 `src/scanner.l`, `parser_bison.y`, `evaluate.c`, `datatype.c`, `meta.c`, `ct.c`, `proto.c`,
//! `rule.c`, `expression.c`.
//! Differs: what nft has beyond [`data`] is refused by name (`unread`); no flow tables,
//! no `include`, no guesses at misspelt names ("did you mean"); `-j` is refused and `-e` prints
//! nothing; words of the grammar are taken as names.

mod act;
mod context;
mod cursor;
pub mod data;
pub mod dynamic;
mod dynset;
mod keys;
mod lex;
mod nat;
mod object;
mod parse;
mod sets;
pub mod show;
mod statement;
mod time;
mod unread;
pub mod value;

pub use data::*;
pub use dynamic::{Dynset, Kind, More, Object, Quota};
pub use keys::types;
pub use parse::parse;

/// Where something stands in the text: the line from 1, first and last column from 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Pos {
    /// Line.
    pub line: u32,
    /// First column, in characters.
    pub from: u32,
    /// Last column.
    pub to: u32,
}

impl Pos {
    /// From where this begins to where that ends.
    pub fn to(self, end: Pos) -> Pos {
        if end.line == self.line { Pos { to: end.to.max(self.to), ..self } } else { self }
    }
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The program's words.
    pub message: String,
    /// Where.
    pub pos: Pos,
    /// Our advice; may be empty.
    pub help: String,
}

impl Fault {
    /// One.
    pub fn new(pos: Pos, message: impl Into<String>, help: &str) -> Fault {
        Fault { message: message.into(), pos, help: help.to_owned() }
    }
    /// What the kernel refuses, by errno's text.
    pub fn kernel(pos: Pos, errno: &str, help: &str) -> Fault {
        Fault::new(pos, format!("Could not process rule: {errno}"), help)
    }
    /// As it stands on standard error: the words, the line, and the place under it.
    pub fn print(&self, text: &str, source: Option<&str>) -> String {
        let Pos { line, from, to } = self.pos;
        let place = source.map_or(String::new(), |s| format!("{s}:{line}:{from}-{to}: "));
        let shown = text.lines().nth(line.saturating_sub(1) as usize).unwrap_or("");
        // A tab stays a tab, so that the places agree.
        let blank: String = shown
            .chars()
            .chain(std::iter::repeat(' '))
            .take(from.saturating_sub(1) as usize)
            .map(|c| if c == '\t' { '\t' } else { ' ' })
            .collect();
        let carets = "^".repeat((to.saturating_sub(from) + 1) as usize);
        format!("{place}Error: {}\n{shown}\n{blank}{carets}\n", self.message)
    }
}

/// What the program was asked for besides its commands.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// `-f`.
    pub file: Option<String>,
    /// The commands of the command line.
    pub command: String,
    /// `-a`: handles.
    pub handles: bool,
    /// `-n`: numbers for all names.
    pub numeric: bool,
    /// `-y`: numbers for priorities.
    pub numeric_priority: bool,
    /// `-S`: services by name.
    pub services: bool,
    /// `-s`: no counters.
    pub stateless: bool,
    /// `-t`: no elements of sets.
    pub terse: bool,
    /// `-c`: nothing is changed.
    pub check: bool,
    /// `-e`: what was done is printed.
    pub echo: bool,
    /// `-v`, `-h`: text for standard output.
    pub say: Option<String>,
}

/// Reads the words behind the program's name.
///
/// # Errors
/// Standard error, whole.
pub fn options(words: &[&str]) -> Result<Options, String> {
    const LONG: [(&str, char); 16] = [
        ("handle", 'a'),
        ("numeric", 'n'),
        ("numeric-priority", 'y'),
        ("numeric-protocol", 'p'),
        ("numeric-time", 'T'),
        ("reversedns", 'N'),
        ("guid", 'u'),
        ("service", 'S'),
        ("stateless", 's'),
        ("terse", 't'),
        ("check", 'c'),
        ("echo", 'e'),
        ("json", 'j'),
        ("version", 'v'),
        ("help", 'h'),
        ("file", 'f'),
    ];
    let mut out = Options::default();
    let mut commands = Vec::new();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        // Options stand before the commands: a sign there may be part of them.
        if !commands.is_empty() || !word.starts_with('-') || *word == "-" {
            commands.push(*word);
            continue;
        }
        let letters: Vec<char> = match word.strip_prefix("--") {
            Some(long) => {
                let mut like = LONG.iter().filter(|l| l.0.starts_with(long));
                match (LONG.iter().find(|l| l.0 == long), like.next(), like.next()) {
                    (Some(l), ..) | (None, Some(l), None) => vec![l.1],
                    _ => return Err(format!("nft: unrecognized option '{word}'\n")),
                }
            }
            None => word[1..].chars().collect(),
        };
        for (i, letter) in letters.iter().enumerate() {
            match letter {
                'a' => out.handles = true,
                'n' => out.numeric = true,
                'y' => out.numeric_priority = true,
                'S' => out.services = true,
                's' => out.stateless = true,
                't' => out.terse = true,
                'c' => out.check = true,
                'e' => out.echo = true,
                'p' | 'T' | 'N' | 'u' | 'd' | 'o' => {}
                'v' | 'V' => out.say = Some("nftables v1.0.6 (Lester Gooch #5)\n".to_owned()),
                'h' => out.say = Some("Usage: nft [ options ] [ cmds... ]\n".to_owned()),
                'j' => return Err("Error: JSON support not compiled-in\n".to_owned()),
                'f' | 'D' | 'I' => {
                    let rest: String = letters[i + 1..].iter().collect();
                    let value = match rest.as_str() {
                        "" => words.get(at).map(|w| (*w).to_owned()),
                        rest => Some(rest.to_owned()),
                    };
                    at += usize::from(rest.is_empty());
                    let Some(value) = value else {
                        return Err(format!("nft: option requires an argument -- '{letter}'\n"));
                    };
                    if *letter == 'f' {
                        out.file = Some(value);
                    }
                    break;
                }
                _ => return Err(format!("nft: invalid option -- '{letter}'\n")),
            }
        }
    }
    out.command = commands.join(" ");
    if out.command.is_empty() && out.file.is_none() && out.say.is_none() {
        return Err("nft: no command specified\n".to_owned());
    }
    Ok(out)
}
