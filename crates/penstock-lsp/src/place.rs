//! Places in a text: lines and characters from 1 as we count them, lines and UTF-16 units from 0 as editors do.

use serde_json::{Value, json};

/// The UTF-16 units of so many characters of a line.
fn units(line: &str, chars: usize) -> usize {
    line.chars().take(chars).map(char::len_utf16).sum()
}

/// The byte of a line at so many UTF-16 units.
pub(crate) fn byte(line: &str, units: usize) -> usize {
    let mut sum = 0;
    for (at, c) in line.char_indices() {
        if sum >= units {
            return at;
        }
        sum += c.len_utf16();
    }
    line.len()
}

/// The range of so many characters; the whole line where no column is known.
pub(crate) fn range(text: &str, line: u32, column: u32, len: u32) -> Value {
    let at = (line as usize).saturating_sub(1);
    let words = text.lines().nth(at).unwrap_or_default();
    let (from, to) = match column {
        0 => (0, words.chars().count()),
        column if len == 0 => (column as usize - 1, words.chars().count()),
        column => (column as usize - 1, (column + len) as usize - 1),
    };
    json!({
        "start": { "line": at, "character": units(words, from) },
        "end": { "line": at, "character": units(words, to.max(from)) },
    })
}

/// A place before a line.
pub(crate) fn before(line: u32) -> Value {
    let at = json!({ "line": line.saturating_sub(1), "character": 0 });
    json!({ "start": at, "end": at })
}

/// The word around a place, of letters that ids and names have.
pub(crate) fn word(line: &str, units: usize) -> &str {
    let at = byte(line, units);
    let is = |c: char| c.is_ascii_alphanumeric() || "_:.-".contains(c);
    let from =
        line[..at].rfind(|c| !is(c)).map_or(0, |n| n + line[n..].chars().next().map_or(1, char::len_utf8));
    let to = line[at..].find(|c| !is(c)).map_or(line.len(), |n| at + n);
    &line[from..to]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_and_units() {
        // 𝄞 is one character and two units.
        let text = "a\n𝄞 tc qdisc\n";
        assert_eq!(range(text, 2, 3, 2)["start"], json!({ "line": 1, "character": 3 }));
        assert_eq!(range(text, 2, 3, 2)["end"], json!({ "line": 1, "character": 5 }));
        assert_eq!(range(text, 2, 0, 0)["end"]["character"], 11);
        assert_eq!((word("parent 1:10 é", 9), word("é 1:10", 4), word("", 3)), ("1:10", "1:10", ""));
    }
}
