//! Which fixes are made, and making them.

use crate::finding::{Edit, Finding};
use crate::source::Source;

/// How sure the fix of a rule is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fix {
    /// Surely right: `--fix` makes it.
    Safe,
    /// Likely: `--fix --unsafe` makes it.
    Likely,
    /// A person has to decide.
    None,
}

impl Fix {
    /// In words, for a rule's page.
    pub const fn words(self) -> &'static str {
        match self {
            Fix::Safe => "`--fix` makes the change",
            Fix::Likely => "`--fix --unsafe` makes the change",
            Fix::None => "by hand",
        }
    }
}

/// Rules whose fix is surely right where it can be written.
const SAFE: &[&str] = &[
    "PS007", "PS102", "PS107", "PS110", "PS111", "PS112", "PS114", "PS115", "PS117", "PS120", "PS121",
    "PS142", "PS144", "PS145", "PS146", "PS147", "PS149", "PS153", "PS155", "PS156", "PS157", "PS160",
    "PS162", "PS163", "PS164", "PS166", "PS167", "PS170", "PS181", "PS185", "PS191", "PS193", "PS194",
    "PS197", "PS199", "PS201", "PS207", "PS231", "PS233", "PS234", "PS241", "PS244", "PS250", "PS251",
    "PS252", "PS260", "PS261", "PS262", "PS263", "PS270", "PS280", "PS284", "PS291", "PS292", "PS295",
    "PS297", "PS300", "PS301",
];
/// Rules whose fix is likely.
const LIKELY: &[&str] = &[
    "PS015", "PS103", "PS104", "PS106", "PS108", "PS122", "PS130", "PS132", "PS136", "PS140", "PS141",
    "PS143", "PS148", "PS150", "PS151", "PS152", "PS159", "PS171", "PS172", "PS173", "PS177", "PS180",
    "PS184", "PS186", "PS190", "PS192", "PS195", "PS196", "PS204", "PS205", "PS206", "PS208", "PS209",
    "PS211", "PS213", "PS214", "PS222", "PS235", "PS236", "PS238", "PS240", "PS243", "PS264", "PS266",
    "PS271", "PS282", "PS283", "PS288", "PS289", "PS299", "PS342", "PS345",
];
/// Rules that look at a command's own words alone, so that the change is right however often the line is carried out.
const BY_WORDS: &[&str] = &[
    "PS112", "PS114", "PS115", "PS146", "PS147", "PS162", "PS185", "PS190", "PS191", "PS192", "PS193",
    "PS194", "PS195", "PS196", "PS197", "PS199", "PS207", "PS213", "PS251", "PS262", "PS263", "PS280",
    "PS284", "PS291", "PS297", "PS299", "PS300", "PS301",
];

/// How sure the fix of a rule is.
pub fn class_of(code: &str) -> Fix {
    match () {
        () if SAFE.contains(&code) => Fix::Safe,
        () if LIKELY.contains(&code) => Fix::Likely,
        () => Fix::None,
    }
}

/// Whether a rule looks at the command's own words alone.
pub(crate) fn by_words(code: &str) -> bool {
    BY_WORDS.contains(&code)
}

/// Which fixes are to be made.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Which {
    /// Those that are surely right.
    Safe,
    /// The likely ones as well.
    Likely,
}

/// Where an edit stands: line, first column, column behind it.
fn span(edit: &Edit) -> (u32, u32, u32, u32) {
    match edit {
        Edit::Before(line, _) => (*line, 0, *line, 0),
        Edit::Replace(line, column, len, _) => (*line, *column, *line, column + len),
        Edit::Remove(from, to) => (*from, 1, *to, u32::MAX),
    }
}

/// Whether two edits cannot both be made.
fn meet(a: &Edit, b: &Edit) -> bool {
    let ((a1, a2, a3, a4), (b1, b2, b3, b4)) = (span(a), span(b));
    let same = matches!((a, b), (Edit::Before(..), Edit::Before(..)));
    !same && (a1, a2) <= (b3, b4) && (b1, b2) <= (a3, a4) && (a2, b2) != (0, 0)
}

/// The edits that are made: those of each finding all or none, the first finding first. How many findings they are of.
fn chosen(findings: &[Finding], which: Which) -> (Vec<&Edit>, usize) {
    let mut all: Vec<&Edit> = Vec::new();
    let mut count = 0;
    for finding in findings.iter().filter(|f| !f.edits.is_empty() && (f.safe || which == Which::Likely)) {
        let known = |edit: &Edit| all.contains(&edit);
        if finding.edits.iter().all(known) {
            count += 1;
        } else if !finding.edits.iter().any(|e| all.iter().any(|other| meet(e, other))) {
            all.extend(&finding.edits);
            count += 1;
        }
    }
    all.dedup();
    (all, count)
}

/// The text with the fixes of these findings made, and how many findings they were of.
pub fn fixed(text: &str, findings: &[Finding], which: Which) -> (String, usize) {
    let (edits, count) = chosen(findings, which);
    (applied(text, &edits), count)
}

/// The text with these edits made.
pub(crate) fn applied(text: &str, edits: &[&Edit]) -> String {
    // Each line keeps its own ending; a new one has that of the line it stands before.
    let parted = |line: &str| {
        let body = line.strip_suffix('\n').map_or(line, |l| l.strip_suffix('\r').unwrap_or(l));
        (body.to_owned(), line[body.len()..].to_owned())
    };
    let mut lines: Vec<(String, String)> = text.split_inclusive('\n').map(parted).collect();
    let mut edits = edits.to_vec();
    // From the end, so that places before stay what they are.
    edits.sort_by_key(|e| std::cmp::Reverse((span(e).0, span(e).1)));
    for edit in edits {
        match edit {
            Edit::Before(line, new) => {
                let at = (*line as usize).saturating_sub(1).min(lines.len());
                let indent: String = lines
                    .get(at)
                    .map(|l| l.0.chars().take_while(|c| c.is_whitespace()).collect())
                    .unwrap_or_default();
                let ending = lines.get(at).or(lines.last()).map_or("", |l| l.1.as_str());
                let ending = if ending.is_empty() { "\n" } else { ending }.to_owned();
                // Behind a last line that has no ending.
                if let Some(last) = at.checked_sub(1).filter(|_| at == lines.len()) {
                    lines[last].1.clone_from(&ending);
                }
                lines.insert(at, (format!("{indent}{new}"), ending));
            }
            Edit::Replace(line, column, len, new) => {
                if let Some((old, _)) = lines.get_mut(*line as usize - 1) {
                    let chars: Vec<char> = old.chars().collect();
                    let from = (*column as usize - 1).min(chars.len());
                    let to = (from + *len as usize).min(chars.len());
                    *old = chars[..from]
                        .iter()
                        .copied()
                        .chain(new.chars())
                        .chain(chars[to..].iter().copied())
                        .collect();
                }
            }
            Edit::Remove(from, to) => {
                let (from, to) = ((*from as usize).saturating_sub(1), (*to as usize).min(lines.len()));
                lines.drain(from.min(to)..to);
            }
        }
    }
    lines.into_iter().flat_map(|(body, ending)| [body, ending]).collect()
}

/// The edit that takes a command away: its lines, where it has them for itself.
pub(crate) fn removal(source: &Source, line: u32) -> Option<Edit> {
    let end = source.end_of(line);
    let text = source.logical(line);
    let alone = !text.contains([';', '|', '&', '{', '}', '(', '`'])
        && text.split_whitespace().next().is_some_and(|w| w == "tc" || w == "filter");
    // What stands around it must not be left empty: only a line among commands goes.
    let begins = |l: &str| {
        matches!(l.trim(), "do" | "then" | "else" | "{")
            || l.trim_end().ends_with([';', '{', ')'])
            || l.contains("then")
            || l.contains("; do")
    };
    let before = line.checked_sub(1).map_or("", |n| source.line(n));
    (alone && !begins(before)).then_some(Edit::Remove(line, end))
}

/// Two texts side by side as `diff -u` shows them: what goes with `-`, what comes with `+`, and a line around each change.
pub fn difference(name: &str, old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let (a, b): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let ahead = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
    let behind = a[ahead..].iter().rev().zip(b[ahead..].iter().rev()).take_while(|(x, y)| x == y).count();
    let (mid_a, mid_b) = (&a[ahead..a.len() - behind], &b[ahead..b.len() - behind]);
    // The few lines in between: longest common subsequence, or one block where they are many.
    let mut ops: Vec<(char, &str)> = Vec::new();
    if mid_a.len() * mid_b.len() > 4_000_000 {
        ops.extend(mid_a.iter().map(|l| ('-', *l)).chain(mid_b.iter().map(|l| ('+', *l))));
    } else {
        let mut best = vec![vec![0u32; mid_b.len() + 1]; mid_a.len() + 1];
        for i in (0..mid_a.len()).rev() {
            for j in (0..mid_b.len()).rev() {
                best[i][j] = if mid_a[i] == mid_b[j] {
                    best[i + 1][j + 1] + 1
                } else {
                    best[i + 1][j].max(best[i][j + 1])
                };
            }
        }
        let (mut i, mut j) = (0, 0);
        while i < mid_a.len() || j < mid_b.len() {
            if i < mid_a.len() && j < mid_b.len() && mid_a[i] == mid_b[j] {
                ops.push((' ', mid_a[i]));
                (i, j) = (i + 1, j + 1);
            } else if j >= mid_b.len() || i < mid_a.len() && best[i + 1][j] >= best[i][j + 1] {
                ops.push(('-', mid_a[i]));
                i += 1;
            } else {
                ops.push(('+', mid_b[j]));
                j += 1;
            }
        }
    }
    let mut whole: Vec<(char, &str)> = a[..ahead].iter().map(|l| (' ', *l)).collect();
    whole.extend(ops);
    whole.extend(a[a.len() - behind..].iter().map(|l| (' ', *l)));
    let mut out = format!("--- {name}\n+++ {name}\n");
    let changed: Vec<usize> = whole.iter().enumerate().filter(|l| l.1.0 != ' ').map(|l| l.0).collect();
    let mut at = 0;
    while at < changed.len() {
        let mut end = at;
        while end + 1 < changed.len() && changed[end + 1] - changed[end] <= 6 {
            end += 1;
        }
        let (from, to) = (changed[at].saturating_sub(3), (changed[end] + 4).min(whole.len()));
        let lines =
            |part: &[(char, &str)], sign: char| part.iter().filter(|l| l.0 == ' ' || l.0 == sign).count();
        let (first_a, first_b) = (lines(&whole[..from], '-') + 1, lines(&whole[..from], '+') + 1);
        let (count_a, count_b) = (lines(&whole[from..to], '-'), lines(&whole[from..to], '+'));
        out += &format!("@@ -{first_a},{count_a} +{first_b},{count_b} @@\n");
        whole[from..to].iter().for_each(|(sign, line)| out += &format!("{sign}{line}\n"));
        at = end + 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_those_of_diff() {
        let old = "a\nb\nc\nd\ne\nf\ng\nh\n";
        let new = "a\nb\nc\nD\ne\nf\ng\nh\n";
        assert_eq!(
            difference("x", old, new),
            "--- x\n+++ x\n@@ -1,7 +1,7 @@\n a\n b\n c\n-d\n+D\n e\n f\n g\n"
        );
        assert_eq!(difference("x", old, old), "");
    }

    #[test]
    fn no_rule_is_in_two_classes_and_every_one_exists() {
        let codes: Vec<&str> = crate::rules::all().map(|r| r.code).collect();
        for code in SAFE.iter().chain(LIKELY).chain(BY_WORDS) {
            assert!(codes.contains(code), "{code}");
        }
        assert!(SAFE.iter().all(|c| !LIKELY.contains(c)));
        assert!(SAFE.len() >= 40, "{}", SAFE.len());
    }
}
