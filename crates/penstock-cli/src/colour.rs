//! Colours on a terminal: what is wrong, where it is, what was met.
//!
//! The text is made without them; what stands where decides. So a file or a pipe gets the same words, and nothing of a title or a path
//! can colour anything.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

/// When there are colours.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR says otherwise or TERM is dumb.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

static CHOSEN: OnceLock<Color> = OnceLock::new();

/// What the command line says.
pub fn choose(color: Color) {
    let _ = CHOSEN.set(color);
}

/// Whether standard output, or standard error, gets colours.
pub fn wanted(on_stderr: bool) -> bool {
    let terminal = if on_stderr { std::io::stderr().is_terminal() } else { std::io::stdout().is_terminal() };
    let set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    decide(CHOSEN.get().copied().unwrap_or_default(), terminal, set("NO_COLOR"), dumb)
}

/// <https://no-color.org>: the option is stronger than the variable.
fn decide(color: Color, terminal: bool, no_color: bool, dumb: bool) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal && !no_color && !dumb,
    }
}

const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const GREEN: &str = "\x1b[32m";
const CYAN: &str = "\x1b[36m";
const BOLD: &str = "\x1b[1m";
const PLAIN: &str = "\x1b[0m";

/// The text with colours.
pub fn paint(text: &str) -> String {
    text.split_inclusive('\n').map(line).collect()
}

fn line(line: &str) -> String {
    let (body, end) = match line.strip_suffix('\n') {
        Some(body) => (body, "\n"),
        None => (line, ""),
    };
    let blank = body.len() - body.trim_start().len();
    let (indent, rest) = body.split_at(blank);
    let begins = |word: &str, color: &str| {
        rest.strip_prefix(word).map(|behind| format!("{indent}{color}{word}{PLAIN}{behind}{end}"))
    };
    // Expectations, and what went wrong.
    let known = begins("NOT MET", RED)
        .or_else(|| begins("met ", GREEN))
        .or_else(|| begins("failed:", RED))
        .or_else(|| begins("refused on", RED))
        .or_else(|| begins("penstock:", RED))
        .or_else(|| begins("not measured:", YELLOW));
    if let Some(known) = known {
        return known;
    }
    // The marks below a line of a file, and what to write instead.
    if rest.starts_with('^') {
        return format!("{indent}{CYAN}{rest}{PLAIN}{end}");
    }
    match place(body) {
        Some(at) => {
            let (place, rest) = body.split_at(at);
            let (color, len) = match rest.trim_start_matches(": ") {
                said if said.starts_with("warning") => (YELLOW, "warning".len()),
                said if said.starts_with("error") => (RED, "error".len()),
                said if said.starts_with("note") => (CYAN, "note".len()),
                _ => return format!("{BOLD}{place}{PLAIN}{rest}{end}"),
            };
            let (colon, said) = rest.split_at(2);
            let (word, behind) = said.split_at(len);
            format!("{BOLD}{place}{PLAIN}{colon}{color}{word}{PLAIN}{behind}{end}")
        }
        None => line.to_owned(),
    }
}

/// How long `FILE:LINE` or `FILE:LINE:COLUMN` is with which a line begins, before `: `.
fn place(line: &str) -> Option<usize> {
    let (head, _) = line.split_once(": ")?;
    let mut parts = head.rsplit(':');
    let number =
        |part: Option<&str>| part.is_some_and(|p| !p.is_empty() && p.bytes().all(|b| b.is_ascii_digit()));
    let first = number(parts.next());
    let file = !head.starts_with(' ') && head.contains('.') && !head.contains("  ");
    (first && file).then_some(head.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_has_a_colour() {
        let is = |text: &str, want: &str| assert_eq!(paint(text), want);
        is("  met      a\n  NOT MET  b\n", "  \x1b[32mmet \x1b[0m     a\n  \x1b[1;31mNOT MET\x1b[0m  b\n");
        is("x.toml:3:4: no\n", "\x1b[1mx.toml:3:4\x1b[0m: no\n");
        is("a.sh:3: warning PS010: b", "\x1b[1ma.sh:3\x1b[0m: \x1b[1;33mwarning\x1b[0m PS010: b");
        is("  ^^^ write 5\n", "  \x1b[36m^^^ write 5\x1b[0m\n");
        is("penstock: no\n", "\x1b[1;31mpenstock:\x1b[0m no\n");
        // Figures and times stay.
        for plain in ["12:30:05: x", "  class 1:10: y", "eth0 1:10: 5", "", "metal\n"] {
            is(plain, plain);
        }
    }

    #[test]
    fn the_option_is_stronger_than_the_variable() {
        let decided: Vec<bool> = [
            (Color::Auto, true, false, false),
            (Color::Auto, false, false, false),
            (Color::Auto, true, true, false),
            (Color::Auto, true, false, true),
            (Color::Always, false, true, true),
            (Color::Never, true, false, false),
        ]
        .into_iter()
        .map(|(color, terminal, no, dumb)| decide(color, terminal, no, dumb))
        .collect();
        assert_eq!(decided, [true, false, false, false, true, false]);
    }
}
