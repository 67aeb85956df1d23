//! A machine's setup as one shell script, and which of its commands failed.
//!
//! A setup is a list of texts. They are one script: variables, functions and `set -e` go on from one text to the next, and the
//! end of one is the end of a line. Bash and the interpreter tell of failures in the same way: an `ERR` trap of ours
//! ([`TRAP`]) writes a mark to standard error behind what the command said there.

/// A mark on standard error behind a command that failed: line, status, command.
const FAILED: &str = "@penstock failed@";

/// Makes a shell set the marks. A script that sets an `ERR` trap of its own has that one.
pub const TRAP: &str =
    "set -E; trap 'printf \"\\n@penstock failed@ %s %s %s\\n\" \"$LINENO\" \"$?\" \"$BASH_COMMAND\" >&2' ERR";

/// The same where the setup is read as a file by another script (`. FILE`), and the command is not known.
pub const TRAP_OF_FILE: &str = "set -E; trap 'printf \"\\n@penstock failed@ %s %s %s\\n\" \"$LINENO\" \"$?\" \"${BASH_SOURCE:+file}\" >&2' ERR";

/// The mark behind a command that failed.
pub fn mark(line: u32, status: i32) -> String {
    format!("\n{FAILED} {line} {status} file\n")
}

/// The texts of a setup, joined.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Setup {
    text: String,
    /// The first line of each text, from 1.
    begins: Vec<u32>,
    /// How many lines each has, one at least.
    lengths: Vec<u32>,
}

impl Setup {
    /// Joins the texts in their order.
    pub fn of<'a>(texts: impl IntoIterator<Item = &'a str>) -> Setup {
        let mut setup = Setup::default();
        let mut line = 1;
        for text in texts {
            setup.begins.push(line);
            setup.lengths.push((text.lines().count() as u32).max(1));
            let end = if text.ends_with('\n') { "" } else { "\n" };
            setup.text.extend([text, end]);
            line += (text.matches('\n').count() + end.len()) as u32;
        }
        setup
    }
    /// The script. It ends with a command that does nothing, well: the exit status is not 0 only where the script says `exit`, or
    /// ends by `set -e`; nobody asks what its last command gave.
    pub fn text(&self) -> String {
        format!("{}\n:\n", self.text)
    }
    /// The text that a line of the script belongs to, and the line's number there, from 1. A line of 0, which is not known, is
    /// the first one's; one behind the last, where a shell has missed something, is the last one's.
    pub fn place(&self, line: u32) -> (usize, u32) {
        let at = self.begins.partition_point(|&begin| begin <= line.max(1)).max(1) - 1;
        let line = line.max(1) - self.begins.get(at).copied().unwrap_or(1) + 1;
        (at, self.lengths.get(at).map_or(line, |&most| line.min(most)))
    }
}

/// A command that failed, and said something on standard error. What fails in silence (`false`, or behind `2>/dev/null`)
/// is the script's own business.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failed {
    /// Its line, from 1.
    pub line: u32,
    /// Its exit status.
    pub status: i32,
    /// The command as the shell shows it; empty where that is not known.
    pub command: String,
    /// What it and the commands before it said since the last failure, by lines.
    pub said: Vec<String>,
}

/// What a setup said on standard error: the failures, the text without the marks, and the line and status of the last failure, heard or
/// not, or of the shell's own complaint. Lines at or before `prelude` are ours (a function that stands for `sudo`): the command that called it failed.
pub fn failures(stderr: &str, prelude: u32) -> (Vec<Failed>, String, Option<(u32, i32)>) {
    let (mut failed, mut rest, mut last) = (Vec::new(), String::new(), None);
    let mut said: Vec<String> = Vec::new();
    for line in stderr.lines() {
        let Some(mark) = line.strip_prefix(FAILED) else {
            if !line.trim().is_empty() {
                said.push(line.trim_end().to_owned());
                rest.push_str(line);
                rest.push('\n');
            }
            continue;
        };
        let mut parts = mark.trim_start().splitn(3, ' ');
        let mut number = || parts.next().and_then(|n| n.parse().ok());
        let (line, status) = (number().unwrap_or(0), number().unwrap_or(1));
        let command = parts.next().unwrap_or_default().to_owned();
        // Our own function, or the script that reads the setup, tells of the same failure again.
        if (1..=prelude as i32).contains(&line) || mark.ends_with(' ') {
            continue;
        }
        let line = (line as u32).saturating_sub(prelude);
        last = Some((line, status));
        if !said.is_empty() {
            failed.push(Failed { line, status, command, said: std::mem::take(&mut said) });
        }
    }
    // A fault of the shell's own (a quote that never closes) raises no trap; it says its line.
    let own = || {
        let number = said.last()?.split_once("line ")?.1.split_once(':')?.0.parse::<u32>().ok()?;
        Some((number.saturating_sub(prelude), 2))
    };
    last = last.or_else(own);
    (failed, rest, last)
}

/// The line that tells why a command failed: the first it said, but for what commands before it only warned of.
pub fn told<'a>(said: impl Iterator<Item = &'a str> + Clone) -> &'a str {
    let mut all = said.clone();
    said.into_iter().find(|l| !l.starts_with("Warning: ")).or_else(|| all.next()).unwrap_or_default()
}

/// What is said of a setup that ended with a status although no command was heard to fail: `exit`, `set -e` behind a silent
/// command, or a fault of the shell's own. `rest`: all it said.
pub fn ended(status: i32, rest: &str) -> String {
    let said = rest.lines().last().map(|l| format!(" ({l})")).unwrap_or_default();
    format!("the setup ended with status {status}{said}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_whole_are_lines_of_the_texts() {
        let setup = Setup::of(["a", "b\nc\n", "d\n\n", "e"]);
        assert_eq!(setup.text(), "a\nb\nc\nd\n\ne\n\n:\n");
        let places: Vec<_> = (0..=7).map(|line| setup.place(line)).collect();
        assert_eq!(places, [(0, 1), (0, 1), (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 1)]);
        assert_eq!(Setup::of([]).place(3), (0, 3));
        assert_eq!(Setup::of(["", "x"]).place(2), (1, 1));
    }

    #[test]
    fn what_failed_and_was_heard() {
        let said = "note\nError: no\n\n@penstock failed@ 1 2 \"$@\"\n\n@penstock failed@ 4 2 sudo tc\n\n\
                    @penstock failed@ 5 1 false\ncat: x\n\n@penstock failed@ 7 1 cat x\n@penstock failed@ 1 1 \n";
        let (failed, rest, last) = failures(said, 1);
        assert_eq!(failed.len(), 2);
        assert_eq!((failed[0].line, failed[0].status, failed[0].command.as_str()), (3, 2, "sudo tc"));
        assert_eq!(failed[0].said, ["note", "Error: no"]);
        assert_eq!((failed[1].line, failed[1].said.join(" ")), (6, "cat: x".to_owned()));
        assert_eq!(rest, "note\nError: no\ncat: x\n");
        assert_eq!(last, Some((6, 1)));
        assert!(TRAP.contains(FAILED));
        assert_eq!(told(["Warning: sch_x", "Error: no", "more"].into_iter()), "Error: no");
        assert_eq!(told(["Warning: sch_x"].into_iter()), "Warning: sch_x");
        assert_eq!(told([].into_iter()), "");
        assert_eq!(ended(3, "a\nb\n"), "the setup ended with status 3 (b)");
        assert_eq!(ended(1, ""), "the setup ended with status 1");
        let own = "setup: line 4: unexpected EOF while looking for matching `\"'\n";
        assert_eq!(failures(own, 1), (Vec::new(), own.to_owned(), Some((3, 2))));
    }
}
