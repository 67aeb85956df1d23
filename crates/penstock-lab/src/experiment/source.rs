//! The texts an experiment is made of, and faults found in them, each with its line.

use penstock_model::Diagnostic;
use std::ops::Range;

/// A text that was read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Source {
    /// Its name as shown: the path it was read from.
    pub name: String,
    /// Its contents.
    pub text: String,
}

/// A place in one of the texts: which, and its bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Place {
    /// Index of the text.
    pub source: usize,
    /// Bytes of it.
    pub span: Range<usize>,
}

impl Source {
    /// An error at these bytes.
    pub fn fault(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Diagnostic {
        let text = &self.text;
        let mut start = span.start.min(text.len());
        // A place past the last line's end belongs to that line.
        while start > 0 && start == text.len() && text.as_bytes()[start - 1] == b'\n' {
            start -= 1;
        }
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        let begin = text[..start].rfind('\n').map_or(0, |i| i + 1);
        let end = text[start..].find('\n').map_or(text.len(), |i| start + i);
        let mut stop = span.end.clamp(start, end);
        while !text.is_char_boundary(stop) {
            stop -= 1;
        }
        let line = text[..begin].matches('\n').count() + 1;
        let column = text[begin..start].chars().count() + 1;
        let len = text[start..stop].chars().count().max(1);
        // A tab would move the mark below the line; a blank does not.
        let shown: String = text[begin..end].chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        Diagnostic::error(message)
            .at(&self.name, line as u32, column as u32, len as u32)
            .source(shown.trim_end())
            .help(help)
    }

    /// The line a byte stands in, from 1.
    pub fn line(&self, at: usize) -> u32 {
        self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|&&b| b == b'\n').count() as u32 + 1
    }
}

/// The word of `known` that was surely meant: a few letters away, or another word for the same thing.
pub fn meant<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    const SYNONYMS: [(&str, &str); 28] = [
        ("bandwidth", "rate"),
        ("speed", "rate"),
        ("bitrate", "rate"),
        ("capacity", "rate"),
        ("latency", "delay"),
        ("propagation", "delay"),
        ("gateway", "via"),
        ("gw", "via"),
        ("router", "via"),
        ("default", "via"),
        ("command", "run"),
        ("cmd", "run"),
        ("exec", "run"),
        ("host", "on"),
        ("start", "at"),
        ("when", "at"),
        ("time", "duration"),
        ("length", "duration"),
        ("name", "title"),
        ("description", "about"),
        ("commands", "setup"),
        ("script", "setup"),
        ("nodes", "ends"),
        ("endpoints", "ends"),
        ("between", "ends"),
        ("size", "bytes"),
        ("source", "from"),
        ("destination", "to"),
    ];
    let lower = word.to_lowercase();
    if let Some(known) = known.iter().find(|k| k.to_lowercase() == lower) {
        return Some(known);
    }
    let close = known.iter().map(|k| (distance(&lower, &k.to_lowercase()), *k)).min_by_key(|(d, _)| *d);
    if let Some((d, k)) = close
        && d <= 1.max(k.chars().count().max(lower.chars().count()) / 3)
    {
        return Some(k);
    }
    let synonym = SYNONYMS.iter().find(|(other, k)| *other == lower && known.contains(k));
    synonym.and_then(|(_, k)| known.iter().copied().find(|have| have == k))
}

/// Letters to add, take, change, or swap with the next (optimal string alignment). Long words are far from everything.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().take(64).collect(), b.chars().take(64).collect());
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = above[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut least = change.min(above[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                least = least.min(before[j - 2] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut above, row);
    }
    above[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant() {
        let known = ["rate", "delay", "loss", "ends", "duration"];
        assert_eq!(meant("rtae", &known), Some("rate"));
        assert_eq!(meant("latency", &known), Some("delay"));
        assert_eq!(meant("Duration", &known), Some("duration"));
        assert_eq!(meant("durration", &known), Some("duration"));
        assert_eq!(meant("colour", &known), None);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn places_survive_any_span() {
        let s = Source { name: "x".into(), text: "ä\n\tb = 1\n".into() };
        let d = s.fault(4..5, "m", "h");
        assert_eq!((d.line, d.column, d.len, d.source.as_str()), (2, 2, 1, " b = 1"));
        for start in 0..20 {
            for end in 0..20 {
                let d = s.fault(start..end, "m", "");
                assert!(d.line >= 1 && d.line <= 2, "{start}..{end}: {d:?}");
            }
        }
        let empty = Source { name: "x".into(), text: String::new() };
        assert_eq!(empty.fault(0..9, "m", "").line, 1);
    }
}
