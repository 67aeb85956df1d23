//! Where in the script a command of its stands.

use crate::{Given, Script, called, file_of, written};
use penstock_host::Output;
use penstock_lang::token::{Line, Word};
use penstock_model::Diagnostic;

/// What the variable of [`crate::LINE`] says: `line:file`, behind a tab the lines of the calls, behind another the files of the functions.
pub(crate) struct Place<'a> {
    pub(crate) line: u32,
    pub(crate) file: &'a str,
    calls: Vec<u32>,
    callers: Vec<&'a str>,
}

impl Place<'_> {
    pub(crate) fn of(text: &str) -> Place<'_> {
        let (place, calls) = text.split_once('\t').unwrap_or((text, ""));
        let (line, file) = place.split_once(':').unwrap_or((place, ""));
        let (calls, files) = calls.split_once('\t').unwrap_or((calls, ""));
        let mut calls: Vec<u32> = calls.split_whitespace().filter_map(|l| l.parse().ok()).collect();
        // The last is where the file itself is read.
        calls.pop();
        // Each call stands in the file of the function around it. (A name with a blank, or another IFS, leaves that unknown.)
        let callers: Vec<&str> = files.split_whitespace().skip(1).collect();
        let callers = if callers.len() == calls.len() { callers } else { Vec::new() };
        Place { line: line.parse().unwrap_or(0), file, calls, callers }
    }
}

/// The command with its place: findings are marked in the script's own line.
pub(crate) fn given(words: Vec<String>, mut output: Output, place: &str, script: &Script) -> Given {
    let Place { line, file, calls, callers } = Place::of(place);
    let callers = callers.into_iter().map(|f| self::file(f, script)).collect();
    let own = is_own(file, script);
    let line = if own { behind_sudo(&script.text, line, &words).unwrap_or(line) } else { line };
    let file = if own { script.name.clone() } else { file.to_owned() };
    if !output.diagnostics.is_empty() {
        let typed = Line::of_words(&words);
        let written = if own { as_written(&script.text, line, &words) } else { None };
        let source = if own { script.text.lines().nth((line as usize).wrapping_sub(1)) } else { None };
        let placed = |d: Diagnostic| {
            let at = typed.words.iter().position(|w| d.column > 0 && w.column == d.column);
            let (at_line, shown, column, len) = match (&written, at, source) {
                (Some((first, text, words)), Some(at), _) if at < words.len() => {
                    let word = &words[at];
                    let shown = text.lines().nth(word.line as usize - 1).unwrap_or_default();
                    (first + word.line - 1, shown, word.column, word.len)
                }
                // The word as it stands in the script, where it does; a variable's value does not.
                (_, Some(at), Some(source)) => {
                    let word = typed.words[at].text.as_str();
                    match source.find(word) {
                        Some(at) => (
                            line,
                            source,
                            source[..at].chars().count() as u32 + 1,
                            word.chars().count() as u32,
                        ),
                        None => (line, source, 0, 0),
                    }
                }
                (_, None, Some(source)) => (line, source, 0, 0),
                (_, _, None) => (line, typed.source.as_str(), d.column, d.len),
            };
            Diagnostic { file: file.clone(), line: at_line, column, len, source: shown.to_owned(), ..d }
        };
        output.diagnostics = output.diagnostics.into_iter().map(placed).collect();
    }
    Given { line, file, calls, callers, words, output }
}

fn is_own(file: &str, script: &Script) -> bool {
    file.is_empty() || file_of(file) == file_of(&called(&script.name))
}

/// A file as it is called in what is told: the script by its own name.
pub(crate) fn file(file: &str, script: &Script) -> String {
    if is_own(file, script) { script.name.clone() } else { file.to_owned() }
}

/// The line of a command behind `sudo`: the interpreter counts lines anew there, and says 1. The first that has these words.
fn behind_sudo(text: &str, line: u32, words: &[String]) -> Option<u32> {
    if line != 1 || text.lines().next()?.contains(words.first()?.as_str()) {
        return None;
    }
    let has = |l: &str| l.contains("sudo") && words.iter().all(|w| l.contains(w.as_str()));
    text.lines().position(has).map(|at| at as u32 + 1)
}

/// The lines (the first one's number and the text, lines joined by a backslash together) that hold the command of these words, and its
/// words as they stand there; `None` where it does not stand there word by word.
fn as_written<'a>(text: &'a str, line: u32, words: &[String]) -> Option<(u32, &'a str, Vec<Word>)> {
    let lines: Vec<&str> = text.lines().collect();
    let goes_on = |at: usize| lines.get(at).is_some_and(|l| l.ends_with('\\'));
    let mut first = (line as usize).checked_sub(1).filter(|&at| at < lines.len())?;
    while first > 0 && goes_on(first - 1) {
        first -= 1;
    }
    let mut last = first;
    while goes_on(last) && last + 1 < lines.len() {
        last += 1;
    }
    let begin = lines[first].as_ptr() as usize - text.as_ptr() as usize;
    let end = lines[last].as_ptr() as usize - text.as_ptr() as usize + lines[last].len();
    let whole = &text[begin..end];
    let same = |c: &Vec<Word>| c.iter().skip(1).map(|w| &w.text).eq(words.iter().skip(1));
    let found = written::commands(whole)?.into_iter().find(same)?;
    Some((first as u32 + 1, whole, found))
}
