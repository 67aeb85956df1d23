//! How much of a script was looked at.

use crate::facts::Facts;
use crate::sourced::Whole;
use crate::syntax::Syntax;
use crate::unknown;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// How many of a script's network commands were looked at, and why others were not.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Coverage {
    /// Network commands in the text.
    pub commands: usize,
    /// Those that were looked at.
    pub looked_at: usize,
    /// The others.
    pub missed: Vec<Missed>,
    /// Programs that are not simulated, with the lines of their calls: taken to end well.
    pub unknown: BTreeSet<(String, u32)>,
    /// What of network programs is not simulated, with the lines of the commands: taken to end well.
    pub parts: BTreeSet<(String, u32)>,
    /// Variables that the script needs and nobody in it sets, with the first line that reads each: their values are unknown.
    pub environment: BTreeSet<(String, u32)>,
    /// How often the script was run.
    pub runs: usize,
    /// Files that the script sources and that were read: how many of the commands stand in each, and how many of those were looked at.
    pub files: BTreeMap<String, (usize, usize)>,
}

/// Commands one after the other that were not looked at for one reason; of none, a line whose file was not read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Missed {
    /// The file of the lines; empty: the script itself.
    pub file: String,
    /// First line.
    pub from: u32,
    /// Last line.
    pub to: u32,
    /// How many.
    pub commands: usize,
    /// Why.
    pub why: String,
}

impl Missed {
    /// The file of its lines, where `name` is the script's.
    pub fn file<'a>(&'a self, name: &'a str) -> &'a str {
        if self.file.is_empty() { name } else { &self.file }
    }

    /// In words, without the lines.
    pub fn said(&self) -> String {
        match self.commands {
            0 => self.why.clone(),
            n => format!("{n} network commands not looked at: {}", self.why),
        }
    }

    /// In words, with the lines.
    pub fn text(&self) -> String {
        let lines = match (self.from, self.to) {
            (from, to) if from == to => format!("line {from}"),
            (from, to) => format!("lines {from}-{to}"),
        };
        let file = if self.file.is_empty() { String::new() } else { format!("{}, ", self.file) };
        let how = if self.commands == 0 { ":" } else { " not reached:" };
        format!("{file}{lines}{how} {}", self.why)
    }
}

impl Coverage {
    pub(crate) fn of(syntax: &Syntax, reached: &BTreeSet<usize>, runs: usize, whole: &Whole) -> Coverage {
        let mut all = Coverage { runs, ..Coverage::default() };
        let ended =
            syntax.commands.iter().enumerate().filter(|c| reached.contains(&c.0)).map(|c| c.1.line).max();
        for (at, command) in syntax.network() {
            all.commands += 1;
            if reached.contains(&at) {
                all.looked_at += 1;
                continue;
            }
            let why = syntax.why(command).unwrap_or_else(|| match ended {
                Some(line) if line <= command.line => format!("the script ends behind line {line}"),
                _ => "the script ends before".to_owned(),
            });
            let file = whole.place(command.line).0.unwrap_or("").to_owned();
            all.miss(file, command.line, command.last, why);
        }
        all.missed =
            all.missed.into_iter().chain(whole.unread.iter().cloned()).map(|m| whole.missed(m)).collect();
        all.missed.sort_by(|a, b| (&a.file, a.from).cmp(&(&b.file, b.from)));
        all.files = whole.files(syntax.network().map(|(at, c)| (c.line, reached.contains(&at))));
        all
    }

    /// Of a script in Python: the commands it gave, and those whose words are not known.
    pub(crate) fn of_python(facts: &Facts) -> Coverage {
        let given: BTreeSet<u32> = facts.steps.iter().map(|s| s.line).collect();
        let left: BTreeSet<u32> = facts.left_out.difference(&given).copied().collect();
        let mut all = Coverage {
            commands: given.len() + left.len(),
            looked_at: given.len(),
            runs: 1,
            ..Coverage::default()
        };
        for line in left {
            let why = if facts.not_called.contains(&line) {
                "it is not reached"
            } else {
                "its words are not known"
            };
            all.miss(String::new(), line, line, why.to_owned());
        }
        for (line, why) in unread_of_python(facts, &given) {
            all.commands += 1;
            all.miss(String::new(), line, line, why.to_owned());
        }
        all.missed.sort_by_key(|m| m.from);
        all
    }

    fn miss(&mut self, file: String, from: u32, to: u32, why: String) {
        match self.missed.last_mut() {
            Some(last) if last.why == why && last.file == file => {
                last.to = to.max(last.to);
                last.commands += 1;
            }
            _ => self.missed.push(Missed { file, from, to, commands: 1, why }),
        }
    }

    /// Keeps that what a program carries out in another place is not read; whether that is new.
    pub(crate) fn missed_there(&mut self, file: &str, line: u32, program: &str) -> bool {
        let why = format!("what `{program}` carries out there is not followed");
        let new = Missed { file: file.to_owned(), from: line, to: line, commands: 1, why };
        let is_new = !self.missed.contains(&new);
        self.missed.extend(is_new.then_some(new));
        is_new
    }

    /// Whether every network command was looked at, and every file that is sourced was read.
    pub fn is_whole(&self) -> bool {
        self.looked_at == self.commands && self.missed.iter().all(|m| m.commands > 0)
    }

    /// In words: one line, and one for each reason.
    pub fn text(&self) -> String {
        let plural = if self.commands == 1 { "" } else { "s" };
        let mut out = match self.commands {
            0 => "no network command in it\n".to_owned(),
            all => format!("{} of {all} network command{plural} looked at\n", self.looked_at),
        };
        for missed in &self.missed {
            out += &format!("  {}\n", missed.text());
        }
        if !self.files.is_empty() {
            let one = |(name, (commands, looked_at)): (&String, &(usize, usize))| match commands {
                0 => name.clone(),
                n => format!("{name} ({looked_at} of {n})"),
            };
            out += &format!(
                "  sourced and read as well: {}\n",
                self.files.iter().map(one).collect::<Vec<_>>().join(", ")
            );
        }
        if self.commands > 0 && !self.environment.is_empty() {
            // Of several scripts in one file each variable once.
            let mut all: Vec<_> = self.environment.iter().collect();
            all.dedup_by(|b, a| a.0 == b.0);
            let list = |one: &dyn Fn(&(String, u32)) -> String, by: &str| {
                all.iter().map(|e| one(e)).collect::<Vec<_>>().join(by)
            };
            let (comes, them) = if all.len() == 1 { ("comes", "it") } else { ("come", "them") };
            out += &format!(
                "  {} {comes} from the environment: give {them} with {}\n",
                list(&|(name, line)| format!("`${name}` (line {line})"), ", "),
                list(&|(name, _)| format!("--env {name}=…"), " ")
            );
        }
        if !self.is_whole() && self.runs >= crate::explore::RUNS {
            out += &format!("  the script was run {} times, which is the most\n", self.runs);
        }
        if !self.unknown.is_empty() || !self.parts.is_empty() {
            let mut names: Vec<(&str, u32)> = Vec::new();
            // Of a text without network commands other programs are no matter.
            let programs = self.unknown.iter().filter(|u| self.commands > 0 && !u.0.contains(' '));
            for (name, line) in programs.chain(&self.parts) {
                let name = if unknown::is_symbol(name) { "a program whose name is unknown" } else { name };
                if names.last().is_none_or(|n| n.0 != name) {
                    names.push((name, *line));
                }
            }
            let names: Vec<String> =
                names.iter().map(|(name, line)| format!("{name} (line {line})")).collect();
            if !names.is_empty() {
                out += &format!("  not simulated, taken to succeed: {}\n", names.join(", "));
            }
        }
        out
    }

    /// The same as JSON.
    pub fn json(&self) -> Value {
        let missed = |m: &Missed| {
            let mut one = json!({ "from": m.from, "to": m.to, "commands": m.commands, "why": m.why });
            if !m.file.is_empty() {
                one["file"] = json!(m.file);
            }
            one
        };
        let unknown = |u: &(String, u32)| json!({ "program": u.0, "line": u.1 });
        let file = |(name, (commands, looked_at)): (&String, &(usize, usize))| json!({ "file": name, "commands": commands, "looked_at": looked_at });
        json!({
            "sourced": self.files.iter().map(file).collect::<Vec<_>>(),
            "commands": self.commands, "looked_at": self.looked_at, "runs": self.runs,
            "not_reached": self.missed.iter().map(missed).collect::<Vec<_>>(),
            "environment": self.environment.iter().map(|(name, line)| json!({ "name": name, "line": line })).collect::<Vec<_>>(),
            "not_simulated": self.unknown.iter().chain(&self.parts).map(unknown).collect::<Vec<_>>(),
        })
    }
}

/// Lines of Python that give a network command in a way that is not followed.
fn unread_of_python(facts: &Facts, given: &BTreeSet<u32>) -> Vec<(u32, &'static str)> {
    let mut out = Vec::new();
    let lines = &facts.source.lines;
    let by_netlink = lines.iter().any(|l| l.contains("pyroute2"));
    let mut within = false;
    let mut end = 0;
    for (n, line) in lines.iter().enumerate() {
        let number = n as u32 + 1;
        let quotes = line.matches("\"\"\"").count() + line.matches("'''").count();
        let inside = within || quotes > 0;
        within ^= quotes % 2 == 1;
        if inside || number <= end {
            continue;
        }
        let last = facts.source.end_of(number);
        let seen = (number..=last).any(|l| given.contains(&l) || facts.left_out.contains(&l));
        if seen {
            end = last;
            continue;
        }
        let shown =
            ["print(", "log", "help=", "echo", "raise ", "description", ".info(", ".debug(", "write("];
        let requests = by_netlink && line.contains(".tc(");
        if requests {
            out.push((number, "requests of pyroute2 are not read"));
        } else if line.contains('(')
            && crate::embedded::speaks(line)
            && !shown.iter().any(|s| line.contains(s))
        {
            out.push((number, "it is not known to be carried out"));
        }
    }
    out
}
