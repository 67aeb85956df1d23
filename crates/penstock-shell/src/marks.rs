//! Marks in text that the interpreter or we keep for ourselves, and that nobody is to see.

use crate::tools;
use std::borrow::Cow;

/// A mark of ours before what a traced command begins with (`PS4`): the interpreter repeats it for each script within another, and
/// counts the file that it reads a script from.
pub(crate) const TRACE: char = '\u{e00f}';

/// What was traced (`set -x`), as deep as bash has it.
pub(crate) fn traced(text: &str) -> Cow<'_, str> {
    if !text.contains(TRACE) {
        return Cow::Borrowed(text);
    }
    let line = |line: &str| {
        let rest = line.trim_start_matches(TRACE);
        let marks = (line.len() - rest.len()) / TRACE.len_utf8();
        // What tells of a script's end is no command of the script's.
        if marks > 0 && rest.contains(tools::BODY) {
            return None;
        }
        Some(match rest.chars().next() {
            Some(first) if marks > 2 => first.to_string().repeat(marks - 2) + rest,
            _ => rest.to_owned(),
        })
    };
    Cow::Owned(text.split('\n').filter_map(line).collect::<Vec<_>>().join("\n"))
}

/// The same of what goes into a file.
pub(crate) fn traced_bytes(bytes: &[u8]) -> Cow<'_, [u8]> {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.contains(TRACE) => Cow::Owned(traced(text).into_owned().into_bytes()),
        _ => Cow::Borrowed(bytes),
    }
}

/// Text without the marks that the interpreter keeps for itself and sometimes leaves in words.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    let mark = |c: char| ('\u{e000}'..='\u{e00f}').contains(&c);
    if text.contains(mark) { Cow::Owned(text.replace(mark, "")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interpreter_s_marks_are_taken_out() {
        assert_eq!(plain("a\u{e000}b"), "ab");
    }
}
