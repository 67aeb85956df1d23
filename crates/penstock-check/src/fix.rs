//! Fixes that are safe to make unasked.

use crate::finding::{Edit, Finding};

/// The text with the safe fixes of these findings made, and how many findings they were of.
pub fn fixed(text: &str, findings: &[Finding]) -> (String, usize) {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut edits: Vec<&Edit> = findings.iter().flat_map(|f| &f.edits).collect();
    // From the end, so that places before stay what they are; of two changes to one place the first counts.
    edits.sort_by_key(|e| {
        std::cmp::Reverse(match e {
            Edit::Before(line, _) => (*line, 0),
            Edit::Replace(line, column, ..) => (*line, *column),
        })
    });
    edits.dedup();
    for edit in edits {
        match edit {
            Edit::Before(line, new) => {
                let at = (*line as usize).saturating_sub(1).min(lines.len());
                let indent: String = lines
                    .get(at)
                    .map(|l| l.chars().take_while(|c| c.is_whitespace()).collect())
                    .unwrap_or_default();
                lines.insert(at, format!("{indent}{new}"));
            }
            Edit::Replace(line, column, len, new) => {
                if let Some(old) = lines.get_mut(*line as usize - 1) {
                    let chars: Vec<char> = old.chars().collect();
                    let from = (*column as usize - 1).min(chars.len());
                    let to = (from + *len as usize).min(chars.len());
                    *old = chars[..from]
                        .iter()
                        .chain(new.chars().collect::<Vec<_>>().iter())
                        .chain(&chars[to..])
                        .collect();
                }
            }
        }
    }
    let mut out = lines.join("\n");
    if text.ends_with('\n') || out.is_empty() {
        out.push('\n');
    }
    (out, findings.iter().filter(|f| !f.edits.is_empty()).count())
}
