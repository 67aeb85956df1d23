//! Findings that are known already: a file with one a line, `CODE FILE:LINE MESSAGE`.

use crate::finding::Finding;
use std::collections::BTreeMap;

/// What a baseline file says. A line's number does not count, so that a script may grow; how often a finding stands there does.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Baseline(BTreeMap<(String, String), usize>);

impl Baseline {
    /// Reads a file; lines that begin with `#` say nothing.
    pub fn parse(text: &str) -> Baseline {
        let mut known = BTreeMap::new();
        for line in text.lines().filter(|l| !l.starts_with('#') && !l.trim().is_empty()) {
            let mut words = line.splitn(3, ' ');
            let (code, message) = (words.next().unwrap_or(""), words.nth(1).unwrap_or(""));
            *known.entry((code.to_owned(), message.to_owned())).or_insert(0) += 1;
        }
        Baseline(known)
    }
    /// The file that knows these findings.
    pub fn write(findings: &[Finding]) -> String {
        let line =
            |f: &Finding| format!("{} {}:{} {}\n", f.code, f.file.replace(' ', "_"), f.line, f.message);
        findings.iter().map(line).collect()
    }
    /// Those it does not know.
    pub fn new_ones(mut self, findings: Vec<Finding>) -> Vec<Finding> {
        let unknown = |f: &Finding| match self.0.get_mut(&(f.code.to_owned(), f.message.clone())) {
            Some(left) if *left > 0 => {
                *left -= 1;
                false
            }
            _ => true,
        };
        findings.into_iter().filter(unknown).collect()
    }
}
