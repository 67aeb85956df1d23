//! A shell script's network commands as they stand in its text, and what stands around each: conditions, loops, functions.
//!
//! The interpreter says which commands were carried out. This says which there are, so that what was not reached is known, and how a text has to
//! be changed to reach it.

mod reader;
mod tokens;

pub(crate) use reader::{absent, assigns, element, is_name, is_network};
pub(crate) use tokens::{Kind, Token, tokens};

use std::collections::{BTreeMap, BTreeSet};

/// What a command stands in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Frame {
    /// An arm of a construct with several: number of the construct, number of the arm.
    Arm(usize, usize),
    /// The body of a loop: its number.
    Loop(usize),
    /// Behind `&&` or `||`: the operator's place, and the text before it.
    Behind { at: usize, condition: String, line: u32, and: bool },
    /// A function's body.
    Function(String),
}

/// A construct of which one arm is taken: `if`, `case`.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// Its line.
    pub line: u32,
    /// For each arm: its condition or patterns, and what makes it the one that is taken.
    pub arms: Vec<Arm>,
    /// Where the word of a `case` ends; `None` for `if`.
    pub word_end: Option<usize>,
    /// The word of a `case`.
    pub word: String,
}

/// An arm.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    /// Its condition as written; the patterns of a `case`'s arm.
    pub condition: String,
    pub line: u32,
    /// Before the `then` that ends its condition; the end of its patterns in a `case`. `None`: `else`.
    pub at: Option<usize>,
}

/// A loop.
#[derive(Clone, Debug)]
pub(crate) struct Loop {
    pub line: u32,
    /// Its condition or its list.
    pub condition: String,
    /// Before `do` for `while` and `until`, the end of the list for `for`.
    pub at: usize,
    /// `while`, `until` or `for`.
    pub word: &'static str,
    /// Where `< FILE` stands behind it.
    pub input: Option<(usize, usize)>,
}

/// A command of the text.
#[derive(Clone, Debug)]
pub(crate) struct Command {
    pub line: u32,
    /// Line of its last word.
    pub last: u32,
    /// Its words as written, without redirections and assignments.
    pub words: Vec<String>,
    /// From the outermost in.
    pub frames: Vec<Frame>,
    /// Whether it is a network command; the others are calls of functions.
    pub network: bool,
}

/// What a word like `exit` leaves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// The script.
    Exit,
    /// The script, behind the program that the word carries out: `exec`.
    Exec,
    /// The script, from within a loop that may have no other end.
    ExitOfLoop,
    /// A function, or a turn of a loop.
    Return,
}

impl Command {
    /// Whether the words that a program was given may be this command's: those without expansions are among them, in their order.
    fn gives(&self, words: &[String]) -> bool {
        let mut begin = 0;
        let first_is_plain = !self.words.first().is_some_and(|w| w.contains('$'));
        if first_is_plain && let (Some(written), Some(run)) = (self.words.first(), words.first()) {
            let base = |w: &str| {
                w.trim_matches('"').rsplit('/').next().unwrap_or(w).replace("-legacy", "").replace("-nft", "")
            };
            if written != run && base(written) != base(run) && written != "ip" {
                // Behind `ssh HOST`, `docker exec NAME` and their like.
                let Some(at) = words.iter().position(|w| base(w) == base(written)) else { return false };
                begin = at;
            }
        }
        let mut given = words.iter().skip(begin + 1);
        let open =
            |b: u8| matches!(b, b'$' | b'`' | b'*' | b'?' | b'[' | b'{' | b'~' | b'\\' | b'"' | b'\'' | b'(');
        let plain = |w: &&String| !w.bytes().any(open);
        self.words.iter().skip(1).filter(plain).all(|w| given.any(|g| g == w))
    }
}

/// What a text has in it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Syntax {
    pub commands: Vec<Command>,
    pub choices: Vec<Choice>,
    pub loops: Vec<Loop>,
    /// The places behind definitions of functions, outside of everything else.
    pub defined: Vec<usize>,
    /// Functions by name: their lines.
    pub functions: BTreeMap<String, u32>,
    /// Where `exit`, `return` and their like stand, and `set` with options that end a script.
    pub ends: Vec<(usize, usize, End)>,
    /// The line of the first `exit` that nothing is a condition of.
    pub over: Option<u32>,
    /// The highest of `$1`, `$2`, … that is read outside functions.
    pub positional: usize,
    /// Commands by line: those of several lines by each.
    by_line: BTreeMap<u32, Vec<usize>>,
    /// Commands by the function they stand in, and calls by what they call.
    inside: BTreeMap<String, Vec<usize>>,
    calls: BTreeMap<String, Vec<usize>>,
    /// Words behind `.` and `source`: line, and where each begins and ends.
    pub sourced: Vec<(u32, usize, usize)>,
    /// Variables that are read and nowhere set.
    pub unset: BTreeSet<String>,
}

impl Syntax {
    /// Reads a text.
    pub(crate) fn of(text: &str) -> Syntax {
        reader::read(text)
    }

    /// The network commands.
    pub(crate) fn network(&self) -> impl Iterator<Item = (usize, &Command)> {
        self.commands.iter().enumerate().filter(|c| c.1.network)
    }

    /// Commands of a function.
    pub(crate) fn in_function(&self, name: &str) -> impl Iterator<Item = usize> {
        self.inside.get(name).into_iter().flatten().copied()
    }

    /// Calls that stand in no arm and no loop and lead to network commands, be it through other functions.
    pub(crate) fn calls_with_commands(&self) -> impl Iterator<Item = usize> {
        let mut with: BTreeSet<&str> = BTreeSet::new();
        loop {
            let before = with.len();
            for (name, inside) in &self.inside {
                let gives = |at: &usize| {
                    let of = &self.commands[*at];
                    of.network || of.words.first().is_some_and(|w| with.contains(w.as_str()))
                };
                if inside.iter().any(gives) {
                    with.insert(name);
                }
            }
            if with.len() == before {
                break;
            }
        }
        let plain = |f: &Frame| matches!(f, Frame::Function(_));
        let calls =
            self.calls.iter().filter(|(name, _)| with.contains(name.as_str())).flat_map(|c| c.1).copied();
        calls.filter(|at| self.commands[*at].frames.iter().all(plain)).collect::<Vec<_>>().into_iter()
    }

    /// Calls of a function.
    pub(crate) fn calls_of(&self, name: &str) -> impl Iterator<Item = usize> {
        self.calls.get(name).into_iter().flatten().copied()
    }

    /// The line of a command that a pipeline has carried out: the interpreter knows that of the whole pipeline alone.
    pub(crate) fn in_pipeline(&self, line: u32, words: &[String]) -> Option<u32> {
        let gives = |at: &usize| self.commands[*at].network && self.commands[*at].gives(words);
        if self.by_line.get(&line).into_iter().flatten().any(gives) {
            return None;
        }
        let below = self.by_line.range(line + 1..line + 100);
        below.flat_map(|(_, at)| at).find(|at| gives(at)).map(|&at| self.commands[at].line)
    }

    /// The commands at a line that may be the one that was given with these words; calls at these lines.
    pub(crate) fn given(&self, line: u32, words: &[String], calls: &[u32], reached: &mut BTreeSet<usize>) {
        for &at in self.by_line.get(&line).into_iter().flatten() {
            if !reached.contains(&at) && self.commands[at].network && self.commands[at].gives(words) {
                reached.insert(at);
            }
        }
        for line in calls {
            let calls = self.by_line.get(line).into_iter().flatten();
            // `$TC qdisc add …` and `run tc …` may be calls, too: of functions that carry them out.
            let is = |at: &usize| !self.commands[*at].network || self.commands[*at].gives(words);
            reached.extend(calls.copied().filter(is));
        }
    }

    /// Whether a command that was carried out is one of those that are counted: at its line, or at those of the calls that led to it.
    pub(crate) fn counts(&self, line: u32, words: &[String], calls: &[u32]) -> bool {
        let at = |line: &u32| self.by_line.get(line).into_iter().flatten();
        let network = |at: &&usize| self.commands[**at].network;
        let here = std::iter::once(&line)
            .chain(calls)
            .any(|l| at(l).filter(network).any(|at| self.commands[*at].gives(words)));
        // A batch's lines stand behind its command.
        here || at(&line).any(|at| self.commands[*at].network)
    }

    /// Why a command that was not reached may not be: the innermost thing it stands in, in words.
    pub(crate) fn why(&self, command: &Command) -> Option<String> {
        let short = |text: &str| {
            let one: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
            if one.chars().count() > 60 { one.chars().take(57).collect::<String>() + "..." } else { one }
        };
        Some(match command.frames.last()? {
            Frame::Arm(choice, arm) => {
                let choice = &self.choices[*choice];
                let of = &choice.arms[*arm];
                match (choice.word_end, of.at) {
                    (Some(_), _) => {
                        format!(
                            "`{}` is not `{}` (line {})",
                            short(&choice.word),
                            short(&of.condition),
                            choice.line
                        )
                    }
                    (None, Some(_)) => format!("`{}` failed (line {})", short(&of.condition), of.line),
                    (None, None) => {
                        format!("`{}` succeeded (line {})", short(&choice.arms[0].condition), choice.line)
                    }
                }
            }
            Frame::Loop(at) => {
                let this = &self.loops[*at];
                format!("the loop over `{}` was not entered (line {})", short(&this.condition), this.line)
            }
            Frame::Behind { condition, line, and: true, .. } => {
                format!("`{}` failed (line {line})", short(condition))
            }
            Frame::Behind { condition, line, .. } => {
                format!("`{}` succeeded (line {line})", short(condition))
            }
            Frame::Function(name) => {
                let line = self.functions.get(name).copied().unwrap_or(command.line);
                format!("the function {name} is not called (line {line})")
            }
        })
    }
}
