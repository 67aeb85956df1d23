//! Files that a script sources, where they lie beside it: which words name them, and the one text that they are together with the script.
//!
//! All files stand behind each other in one text, the script first, so that every rule and every further run sees them as it sees the script. A line of that text
//! goes to its file and its own number before anybody is told of it.

use crate::coverage::Missed;
use crate::finding::{Edit, Finding};
use crate::source::Source;
use crate::syntax::Syntax;
use penstock_shell::{Script, file_of};
use std::collections::{BTreeMap, BTreeSet};

/// A file that a line sources, looked for by whoever can read files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sourced {
    /// The file whose line sources it, as it is called in findings.
    pub within: String,
    /// The word behind `.` or `source`, as [`SourcedWord::word`] has it.
    pub word: String,
    /// What the file is called in findings.
    pub name: String,
    /// Its text, or why it is not read.
    pub text: Result<String, String>,
}

/// A word behind `.` or `source`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourcedWord {
    /// Its line, from 1.
    pub line: u32,
    /// As written, without quotes.
    pub word: String,
    /// The paths that it may mean, the likeliest first: a literal word's own; of `$LIB/a/b.sh` the rest, `a/b.sh` and `b.sh`. Empty where its name is not known.
    pub paths: Vec<String>,
}

/// Files of one text, at most.
const FILES: usize = 64;

/// What a file of this name sources: each word once. Nothing for what is not a shell script and holds none.
pub fn sourced(name: &str, text: &str) -> Vec<SourcedWord> {
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for text in crate::holders::scripts(name, text).unwrap_or_else(|| vec![text.to_owned()]) {
        let source = Source::new(&text);
        if source.form != crate::source::Form::Python && may_source(&text) {
            let words = words(&source.runnable()).into_iter().filter(|w| known.insert(w.1.word.clone()));
            all.extend(words.map(|w| w.1));
        }
    }
    all
}

/// Whether a text has the words for it at all: most have not.
fn may_source(text: &str) -> bool {
    text.contains("source") || text.contains(". ")
}

/// What a text sources, with the places of the words in it.
fn words(text: &str) -> Vec<((usize, usize), SourcedWord)> {
    if !may_source(text) {
        return Vec::new();
    }
    let one = |&(line, from, to): &(u32, usize, usize)| {
        let written = &text[from..to];
        let word: String = written.chars().filter(|c| !matches!(c, '"' | '\'')).collect();
        let paths = paths(&word, text);
        ((from, to), SourcedWord { line, word, paths })
    };
    let given =
        |w: &((usize, usize), SourcedWord)| !w.1.word.starts_with("/dev/") && !w.1.word.starts_with("<(");
    Syntax::of(text).sourced.iter().map(one).filter(given).collect()
}

/// The paths that a word may mean.
fn paths(word: &str, text: &str) -> Vec<String> {
    let literal = |w: &str| !w.contains(['$', '`', '*', '?', '~', '{', '(']);
    let short = |w: &str| w.strip_prefix("./").unwrap_or(w).to_owned();
    if literal(word) {
        return vec![short(word)];
    }
    let word = with_values(word, text);
    if literal(&word) && !word.starts_with('/') {
        return vec![short(&word)];
    }
    // Of what an expansion leads to the rest is known, and where it is installed is not where it lies.
    let rest = if word.starts_with('/') { Some(word.as_str()) } else { behind_expansion(&word) };
    let Some(rest) = rest.map(|r| r.trim_start_matches('/')).filter(|r| literal(r) && !r.is_empty()) else {
        return Vec::new();
    };
    let tails = rest.match_indices('/').map(|(at, _)| rest[at + 1..].to_owned());
    let mut all: Vec<String> = std::iter::once(short(rest)).chain(tails).collect();
    all.retain(|p| !p.is_empty() && !p.ends_with('/'));
    all
}

/// The word with the values of variables that the text gives one plain value.
fn with_values(word: &str, text: &str) -> String {
    let mut out = String::new();
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        out += &rest[..at];
        let behind = &rest[at + 1..];
        let inner = behind.strip_prefix('{').unwrap_or(behind);
        let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inner.len());
        let closed = inner.len() == behind.len() || inner[end..].starts_with('}');
        match value(&inner[..end], text).filter(|_| closed) {
            Some(value) => {
                out += &value;
                rest = &inner[end..];
                rest = if inner.len() == behind.len() { rest } else { &rest[1..] };
            }
            None => {
                out.push('$');
                rest = behind;
            }
        }
    }
    out + rest
}

/// The plain value that a text gives a variable: one and no other. A default (`${1:-./x.conf}`, `${X:=x}`) is one.
fn value(name: &str, text: &str) -> Option<String> {
    if name.is_empty() {
        return None;
    }
    let mut values = BTreeSet::new();
    for line in text.lines().map(str::trim_start).filter(|l| !l.starts_with('#')) {
        for piece in line.split([';', ' ', '\t', '&']) {
            let piece = piece.trim_start_matches([':', '"']);
            let set = piece.strip_prefix(name).and_then(|p| p.strip_prefix('='));
            let default = piece.strip_prefix("${").and_then(|p| p.strip_prefix(name));
            let default = default.and_then(|p| p.strip_prefix(":=").or(p.strip_prefix('=')));
            let Some(value) = set.or(default) else { continue };
            let value = value.trim_matches(['"', '\'']);
            let value = match value.strip_prefix("${").and_then(|v| v.split_once(":-")) {
                Some((_, value)) => value,
                None => value,
            };
            values.insert(value.trim_end_matches(['"', '}']).to_owned());
        }
    }
    let one = values.pop_first().filter(|_| values.is_empty())?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "_./+-@".contains(c);
    (!one.is_empty() && one.chars().all(plain)).then_some(one)
}

/// What stands behind the expansion that a word begins with: `$X/rest`, `${0%/*}/rest`, `$(dirname "$0")/rest`, with backticks too.
fn behind_expansion(word: &str) -> Option<&str> {
    let rest = match word.strip_prefix('$') {
        None => word.strip_prefix('`').and_then(|w| w.split_once('`')).map(|w| w.1)?,
        Some(word) => match word.chars().next()? {
            open @ ('{' | '(') => {
                let close = if open == '{' { '}' } else { ')' };
                let mut depth = 0;
                let end = word.char_indices().find(|(_, c)| {
                    depth += i32::from(*c == open) - i32::from(*c == close);
                    depth == 0
                });
                &word[end?.0 + 1..]
            }
            _ => word.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_'),
        },
    };
    rest.starts_with('/').then_some(rest)
}

/// One file of a text.
#[derive(Clone, Debug)]
struct Part {
    /// What it is called in findings.
    name: String,
    /// Where the virtual machine has it.
    path: String,
    /// Lines of the whole before it.
    before: u32,
    /// Its lines.
    lines: u32,
    /// The file and the line that source it.
    by: (String, u32),
}

/// A script and what it sources, as one text.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    /// The lines of all.
    pub text: String,
    parts: Vec<Part>,
    /// Words behind `.` whose file is in the text: the line of the whole, the place in it, the path to read.
    at: Vec<(u32, String, String)>,
    /// What is not read, with lines of the whole.
    pub unread: Vec<Missed>,
    /// Whether any word's file is not there, be that allowed or not.
    pub lacks: bool,
}

impl Whole {
    /// The script with those of the files that it and they source.
    pub(crate) fn of(script: &Script, beside: &[Sourced]) -> Whole {
        let name = if script.name.is_empty() { "script".to_owned() } else { script.name.clone() };
        let alone = Part { name, path: String::new(), before: 0, lines: 0, by: (String::new(), 0) };
        let mut whole = Whole {
            text: script.text.clone(),
            parts: vec![alone],
            at: Vec::new(),
            unread: Vec::new(),
            lacks: false,
        };
        if Source::new(&script.text).form == crate::source::Form::Python || !may_source(&script.text) {
            return whole;
        }
        let ended =
            |text: &str| text.lines().map(|l| format!("{}\n", l.trim_end_matches('\r'))).collect::<String>();
        let mut texts = vec![script.text.clone()];
        let mut next = 0;
        while next < texts.len() {
            let text = texts[next].clone();
            let lines = text.lines().count() as u32;
            let before = whole.parts.get(next.wrapping_sub(1)).map_or(0, |p| p.before + p.lines);
            (whole.parts[next].before, whole.parts[next].lines) = (before, lines);
            let within = whole.parts[next].name.clone();
            let runnable = Source::new(&text).runnable();
            for (_, word) in words(&runnable) {
                let line = before + word.line;
                match Whole::file(&within, &word, script, beside) {
                    Ok((name, path, text)) => {
                        let known = whole.parts.iter().any(|p| p.path == path);
                        if !known && texts.len() < FILES {
                            let by = (within.clone(), word.line);
                            whole.parts.push(Part { name, path: path.clone(), before: 0, lines: 0, by });
                            texts.push(text);
                        }
                        whole.at.push((line, word.word, path));
                    }
                    Err(None) => {}
                    Err(Some(why)) => {
                        whole.lacks = true;
                        if !is_nothing(&text, word.line) {
                            let why = format!("`. {}` is not read: {why}", word.word);
                            whole.unread.push(Missed {
                                file: String::new(),
                                from: line,
                                to: line,
                                commands: 0,
                                why,
                            });
                        }
                    }
                }
            }
            next += 1;
        }
        if texts.len() > 1 {
            whole.text = texts.iter().map(|t| ended(t)).collect();
        }
        whole
    }

    /// The file that a word means: its name, its path in the virtual machine, its text; why it is not read, and nothing where that is no loss.
    fn file(
        within: &str,
        word: &SourcedWord,
        script: &Script,
        beside: &[Sourced],
    ) -> Result<(String, String, String), Option<String>> {
        let told = beside.iter().find(|s| s.within == within && s.word == word.word);
        // A script that reads itself again.
        let is_own = |path: &String| match path.strip_prefix('/') {
            Some(_) => script.name.ends_with(path.as_str()),
            None => script.name == *path || script.name.ends_with(&format!("/{path}")),
        };
        if told.map_or(word.paths.iter().any(is_own), |s| s.name == script.name || is_own(&s.name)) {
            return Err(None);
        }
        if let Some(Sourced { name, text: Ok(text), .. }) = told {
            let plain: String = name.chars().map(|c| if c.is_whitespace() { '_' } else { c }).collect();
            let plain: Vec<&str> = plain.split('/').map(|p| if p == ".." { "up" } else { p }).collect();
            return Ok((name.clone(), file_of(&plain.join("/")), text.clone()));
        }
        // What was given by hand.
        let given = |path: &String| {
            let exact = file_of(path);
            let ends = format!("/{}", path.trim_start_matches('/'));
            let literal = !word.word.contains(['$', '`']);
            let is = |f: &&(String, String)| file_of(&f.0) == exact || !literal && f.0.ends_with(&ends);
            script.files.iter().find(is)
        };
        if let Some((path, text)) = word.paths.iter().find_map(given) {
            let path = file_of(path);
            let name = path.strip_prefix("/root/").unwrap_or(&path).to_owned();
            return Ok((name, path, text.clone()));
        }
        if makes(&script.text, &word.word) || word.word == "/etc/os-release" {
            return Err(None);
        }
        if let Some(Sourced { text: Err(why), .. }) = told {
            return Err(Some(why.clone()));
        }
        Err(Some(match word.paths.first() {
            None => "its name is not known".to_owned(),
            Some(_) => "the file is not given".to_owned(),
        }))
    }

    /// Whether the script is all there is.
    pub(crate) fn is_alone(&self) -> bool {
        self.parts.len() < 2
    }

    /// Whether a line sources one of the files.
    pub(crate) fn sources(&self, line: u32) -> bool {
        self.at.iter().any(|a| a.0 == line)
    }

    /// The text as it is run, each word that sources one of the files naming it by its path.
    pub(crate) fn placed(&self, runnable: &str) -> String {
        let mut out = String::with_capacity(runnable.len());
        let mut at = 0;
        for ((from, to), word) in words(runnable) {
            let path = self.at.iter().find(|a| a.0 == word.line && a.1 == word.word);
            let Some((.., path)) = path.filter(|_| from >= at) else { continue };
            out += &runnable[at..from];
            out += path;
            at = to;
        }
        out + &runnable[at..]
    }

    /// The script's own part of a text that is run, and the files that the others are.
    pub(crate) fn apart(&self, text: &str) -> (String, Vec<(String, String)>) {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let of = |p: &Part| {
            let (from, to) = (p.before as usize, (p.before + p.lines) as usize);
            lines.get(from.min(lines.len())..to.min(lines.len())).unwrap_or_default().concat()
        };
        let own = of(&self.parts[0]) + &lines.get(self.lines() as usize..).unwrap_or_default().concat();
        (own, self.parts.iter().skip(1).map(|p| (p.path.clone(), of(p))).collect())
    }

    /// Bytes of the script's own part of a text that is run.
    pub(crate) fn own_bytes(&self, text: &str) -> usize {
        match self.is_alone() {
            true => text.len(),
            false => text.split_inclusive('\n').take(self.parts[0].lines as usize).map(str::len).sum(),
        }
    }

    /// The lines of all.
    fn lines(&self) -> u32 {
        self.parts.last().map_or(0, |p| p.before + p.lines)
    }

    /// A line of the whole, by the file as the interpreter calls it and the line in it; `None` for a file that is not part of it.
    pub(crate) fn line(&self, file: &str, line: u32) -> Option<u32> {
        let own = &self.parts[0];
        if file == own.name {
            // Behind its end stand calls of ours.
            let behind = !self.is_alone() && line > own.lines;
            return Some(if behind { line + self.lines() - own.lines } else { line });
        }
        let path = file_of(file);
        let part = self.parts.iter().skip(1).find(|p| p.path == path)?;
        Some(if line == 0 { 0 } else { part.before + line.min(part.lines) })
    }

    /// What the shell says of a line of a file, with the line of the whole.
    pub(crate) fn said(&self, stderr: &str) -> String {
        if self.is_alone() {
            return stderr.to_owned();
        }
        let one = |line: &str| {
            let (file, rest) = line.split_once(": line ")?;
            let (number, rest) = rest.split_once(':')?;
            let number = self.line(file, number.parse().ok()?)?;
            Some(format!("{file}: line {number}:{rest}\n"))
        };
        stderr.lines().map(|l| one(l).unwrap_or_else(|| format!("{l}\n"))).collect()
    }

    fn part_of(&self, line: u32) -> &Part {
        let of = |p: &&Part| line > p.before && line <= p.before + p.lines;
        self.parts.iter().find(of).unwrap_or(&self.parts[0])
    }

    /// A finding of a line of the whole, told of its file's own line.
    pub(crate) fn told(&self, mut f: Finding) -> Finding {
        if self.is_alone() || f.file != self.parts[0].name {
            return f;
        }
        let part = self.part_of(f.line.max(1));
        f.message = self.words(&f.message, part);
        f.reason = self.words(&f.reason, part);
        let of_part = |line: u32| line > part.before && line <= part.before + part.lines;
        let stands = |e: &Edit| match e {
            Edit::Before(line, _) | Edit::Replace(line, ..) => of_part(*line),
            Edit::Remove(from, to) => of_part(*from) && of_part(*to),
        };
        if !f.edits.iter().all(stands) {
            f.edits.clear();
        }
        for edit in &mut f.edits {
            match edit {
                Edit::Before(line, _) | Edit::Replace(line, ..) => *line -= part.before,
                Edit::Remove(from, to) => (*from, *to) = (*from - part.before, *to - part.before),
            }
        }
        f.line = f.line.saturating_sub(part.before);
        f.begins = match of_part(f.begins) {
            true => f.begins - part.before,
            false => f.line,
        };
        if part.before > 0 {
            let (file, line) = &part.by;
            let stop = if f.reason.is_empty() { "" } else { " " };
            f.reason += &format!("{stop}The file is sourced by {file}, line {line}.");
            f.file.clone_from(&part.name);
        }
        f
    }

    /// What is said with lines of the whole, said with those of files: of another file than the finding's with its name.
    fn words(&self, text: &str, here: &Part) -> String {
        let mut out = String::new();
        let mut rest = text;
        while let Some(at) = ["line ", "lines "].iter().filter_map(|w| Some(rest.find(w)? + w.len())).min() {
            out += &rest[..at];
            rest = &rest[at..];
            // `lines 3-5`, `lines 3, 4 and 5`: one file's all of them.
            let mut of = None;
            loop {
                let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
                let Ok(number) = rest[..end].parse::<u32>() else { break };
                let part = self.part_of(number);
                out += &(number - part.before.min(number)).to_string();
                of = Some(part);
                rest = &rest[end..];
                let joins = ["-", ", ", " and "].into_iter().find(|j| {
                    rest.strip_prefix(j).is_some_and(|r| r.starts_with(|c: char| c.is_ascii_digit()))
                });
                let Some(joins) = joins else { break };
                out += joins;
                rest = &rest[joins.len()..];
            }
            if let Some(part) = of.filter(|p| p.before != here.before) {
                out += &format!(" of {}", part.name);
            }
        }
        out + rest
    }

    /// Lines that were not looked at, told of their file's own lines.
    pub(crate) fn missed(&self, mut m: Missed) -> Missed {
        if self.is_alone() {
            return m;
        }
        let part = self.part_of(m.from);
        m.why = self.words(&m.why, part);
        (m.from, m.to) = (m.from - part.before, m.to.min(part.before + part.lines) - part.before);
        if part.before > 0 {
            m.file.clone_from(&part.name);
        }
        m
    }

    /// A line of the whole as that of its file, and that file's name where it is not the script.
    pub(crate) fn place(&self, line: u32) -> (Option<&str>, u32) {
        let part = self.part_of(line.max(1));
        ((part.before > 0).then_some(part.name.as_str()), line.saturating_sub(part.before))
    }

    /// The files that are read as well, how many commands of the whole stand in each, and how many of those were looked at.
    pub(crate) fn files(
        &self,
        commands: impl Iterator<Item = (u32, bool)>,
    ) -> BTreeMap<String, (usize, usize)> {
        let none = |p: &Part| (p.name.clone(), (0, 0));
        let mut all: BTreeMap<String, (usize, usize)> = self.parts.iter().skip(1).map(none).collect();
        for (line, looked_at) in commands {
            if let (Some(name), _) = self.place(line) {
                let of = all.entry(name.to_owned()).or_default();
                *of = (of.0 + 1, of.1 + usize::from(looked_at));
            }
        }
        all
    }
}

/// Whether a comment says that nothing is lost: `# shellcheck source=/dev/null` on the line or right above.
fn is_nothing(text: &str, line: u32) -> bool {
    let lines: Vec<&str> = text.lines().collect();
    let says = |n: u32| {
        let line = lines.get((n as usize).wrapping_sub(1));
        line.is_some_and(|l| l.contains("shellcheck source=/dev/null"))
    };
    let mut above = line;
    while above > 1 && lines.get(above as usize - 2).is_some_and(|l| l.trim_start().starts_with('#')) {
        above -= 1;
    }
    (above..=line).any(says)
}

/// Whether a script itself writes the file of a word: a redirection or `tee` has the same word behind it.
fn makes(text: &str, word: &str) -> bool {
    let bare: String = text.chars().filter(|c| !matches!(c, '"' | '\'')).collect();
    let ends = |rest: &str| !rest.starts_with(|c: char| c.is_alphanumeric() || "._/-".contains(c));
    [">", "> ", "tee ", "tee -a "].iter().any(|w| {
        let wanted = format!("{w}{word}");
        bare.match_indices(&wanted).any(|(at, _)| ends(&bare[at + wanted.len()..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn names(text: &str, want: &[&str]) {
        let got: Vec<String> = sourced("x", text).into_iter().flat_map(|w| w.paths).collect();
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn words_that_are_sourced() {
        names(
            "#!/bin/sh\n. ./lib.sh\nsource parts/a.sh && . \"../b.sh\"\n",
            &["lib.sh", "parts/a.sh", "../b.sh"],
        );
        for word in [
            "\"$(dirname \"$0\")/lib.sh\"",
            "${0%/*}/lib.sh",
            "\"$LIB\"/lib.sh",
            "`dirname $0`/lib.sh",
            "$(cd \"$(dirname \"${BASH_SOURCE[0]}\")\" && pwd)/lib.sh",
        ] {
            names(&format!("#!/bin/bash\n. {word}\n"), &["lib.sh"]);
        }
        names("#!/bin/sh\n. /lib/functions.sh\n. \"$1\"\n", &["/lib/functions.sh"]);
        names("#!/bin/sh\nD=lib\nC=./x.conf\n. $D/a.sh\n. \"$C\"\n", &["lib/a.sh", "x.conf"]);
        names("#!/bin/sh\n: ${D:=/usr/lib}\n. ${D}/a.sh\n", &["usr/lib/a.sh", "lib/a.sh", "a.sh"]);
        names("#!/bin/sh\nC=${1:-shaper.conf}\n. \"$C\"\nX=a\nX=b\n. $X\n", &["shaper.conf"]);
        names("#!/bin/sh\n# . ./no.sh\necho . ./no.sh\n. <(echo)\n. /dev/stdin\n", &[]);
        names("import os\nfrom . import x\n", &[]);
    }

    #[test]
    fn lines_of_the_whole_are_those_of_files() {
        let file = |within: &str, word: &str, name: &str, text: &str| Sourced {
            within: within.to_owned(),
            word: word.to_owned(),
            name: name.to_owned(),
            text: Ok(text.to_owned()),
        };
        let script = Script {
            name: "d/x.sh".to_owned(),
            text: "#!/bin/sh\n. ./a.sh\nf".to_owned(),
            ..Script::default()
        };
        let beside = [
            file("d/x.sh", "./a.sh", "d/a.sh", "one\n. \"$X\"/b.sh\nthree\n"),
            file("d/a.sh", "$X/b.sh", "d/b.sh", "four\n"),
        ];
        let whole = Whole::of(&script, &beside);
        assert_eq!(whole.text, "#!/bin/sh\n. ./a.sh\nf\none\n. \"$X\"/b.sh\nthree\nfour\n");
        let placed = whole.placed(&Source::new(&whole.text).runnable());
        let (own, files) = whole.apart(&(placed + "call\n"));
        assert_eq!(own, "#!/bin/sh\n. /root/d/a.sh\nf\ncall\n");
        let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
        assert_eq!(
            files,
            [file("/root/d/a.sh", "one\n. /root/d/b.sh\nthree\n"), file("/root/d/b.sh", "four\n")]
        );
        let line = |file: &str, line| whole.line(file, line);
        assert_eq!(
            [line("d/x.sh", 3), line("d/x.sh", 4), line("/root/d/b.sh", 1), line("/x", 1)],
            [Some(3), Some(8), Some(7), None]
        );
        assert_eq!(
            [whole.place(2), whole.place(5), whole.place(7)],
            [(None, 2), (Some("d/a.sh"), 2), (Some("d/b.sh"), 1)]
        );
        let said = "from line 2 (line 7) and lines 4, 5 and 6.";
        assert_eq!(
            whole.words(said, &whole.parts[1]),
            "from line 2 of d/x.sh (line 1 of d/b.sh) and lines 1, 2 and 3."
        );
        assert_eq!(whole.said("d/a.sh: line 3: x\ny\n"), "d/a.sh: line 6: x\ny\n");
        assert!(whole.unread.is_empty() && !whole.lacks);
    }

    #[test]
    fn what_is_not_read_is_said() {
        let of = |text: &str, files: &[(&str, &str)]| {
            let files = files.iter().map(|f| (f.0.to_owned(), f.1.to_owned())).collect();
            let script =
                Script { name: "x.sh".to_owned(), text: text.to_owned(), files, ..Script::default() };
            Whole::of(&script, &[]).unread.into_iter().map(|m| (m.from, m.why)).collect::<Vec<_>>()
        };
        let not = |line: u32, why: &str| (line, why.to_owned());
        assert_eq!(
            of("#!/bin/sh\n. /lib/functions.sh\n[ -f \"$1\" ] && . \"$1\"\n", &[]),
            [
                not(2, "`. /lib/functions.sh` is not read: the file is not given"),
                not(3, "`. $1` is not read: its name is not known")
            ]
        );
        let given: &[(&str, &str)] = &[("/root/a.sh", "x\n"), ("/usr/lib/sqm/functions.sh", "y\n")];
        assert_eq!(of("#!/bin/sh\n. ./a.sh\n. ${LIB}/functions.sh\n", given), []);
        assert_eq!(of("#!/bin/sh\n. /lib/functions.sh\n", given).len(), 1);
        assert_eq!(of("#!/bin/sh\n# shellcheck source=/dev/null\n. /etc/x\n", &[]), []);
        assert_eq!(of("#!/bin/sh\nF=$(mktemp)\necho A=1 > \"$F\"\n. $F\n. /etc/os-release\n", &[]), []);
    }
}
