//! `penstock run --junit FILE`: what a run was expected to show, as the test cases that continuous integration reads.

use anyhow::{Context as _, Result};
use penstock_measure::Record;
use penstock_measure::report::expect_unit;
use penstock_model::Diagnostic;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// The file, opened before anything is run: what cannot be written is told at once, and a run that is locked out of other folders can write it.
pub struct Junit {
    file: Option<File>,
    name: String,
    suites: String,
    tests: usize,
    failures: usize,
    errors: usize,
}

impl Junit {
    /// `None`: nobody asks for it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn open(path: Option<&Path>, experiment: &Path) -> Result<Junit> {
        let open = |p: &Path| File::create(p).with_context(|| format!("cannot write {}", p.display()));
        let file = path.map(open).transpose()?;
        let name = experiment.display().to_string();
        Ok(Junit { file, name, suites: String::new(), tests: 0, failures: 0, errors: 0 })
    }

    /// A run: each expectation, each program that failed, and each thing that could not work is a case.
    pub fn run(&mut self, record: &Record) {
        let mut cases: Vec<(String, Option<String>)> = Vec::new();
        for e in &record.expects {
            let measured = || match (e.measured, &e.why) {
                (Some(x), _) => format!("measured {}", expect_unit(&e.what).show(x)),
                (None, Some(why)) => format!("not measured: {why}"),
                (None, None) => "not measured".to_owned(),
            };
            cases.push((format!("{} {}", e.what, e.value), (!e.ok).then(measured)));
        }
        for (_, app) in record.failed_apps() {
            let status = app.exit.unwrap_or_default();
            cases.push((
                format!("{} ends well", app.name),
                Some(format!("{}: exit status {status}", app.run)),
            ));
        }
        for w in record.warnings.iter().filter(|w| w.came_true) {
            cases.push((format!("{}:{}", w.file, w.line), Some(w.message.clone())));
        }
        if cases.is_empty() {
            // It expects nothing: that it ran to its end is all there is to tell.
            cases.push(("runs".to_owned(), None));
        }
        let failures = cases.iter().filter(|c| c.1.is_some()).count();
        let title = format!("{} (seed {}, on {})", record.title, record.seed, record.ground);
        self.suite(&title, cases.len(), failures, 0);
        for (name, failure) in cases {
            let _ = write!(
                self.suites,
                "    <testcase classname=\"{}\" name=\"{}\"",
                text(&self.name),
                text(&name)
            );
            self.suites += &match failure {
                None => "/>\n".to_owned(),
                Some(why) => {
                    format!(
                        "><failure message=\"{}\">{}</failure></testcase>\n",
                        text(&why),
                        text(&format!("{name}: {why}"))
                    )
                }
            };
        }
        self.suites += "  </testsuite>\n";
    }

    /// A run that was not made.
    pub fn refused(&mut self, faults: &[Diagnostic]) {
        let first = faults.first().map_or(String::new(), |f| f.message.clone());
        let all = faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
        self.suite(&self.name.clone(), 1, 0, 1);
        let _ = writeln!(
            self.suites,
            "    <testcase classname=\"{0}\" name=\"runs\"><error message=\"{1}\">{2}</error></testcase>\n  </testsuite>",
            text(&self.name),
            text(&first),
            text(&all)
        );
    }

    fn suite(&mut self, title: &str, tests: usize, failures: usize, errors: usize) {
        self.tests += tests;
        self.failures += failures;
        self.errors += errors;
        let _ = writeln!(
            self.suites,
            "  <testsuite name=\"{}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\">",
            text(title)
        );
    }

    /// Writes it, if somebody asks for it.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn write(self) -> Result<()> {
        let Some(mut file) = self.file else { return Ok(()) };
        let all = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites tests=\"{}\" failures=\"{}\" errors=\"{}\">\n{}</testsuites>\n",
            self.tests, self.failures, self.errors, self.suites
        );
        file.write_all(all.as_bytes()).context("--junit: the file cannot be written")
    }
}

/// Text of XML: without the characters that XML 1.0 cannot hold.
fn text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\n' => out += "&#10;",
            '\t' => out += "&#9;",
            '\r' => out += "&#13;",
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_text_of_xml() {
        assert_eq!(text("a<b & \"c\"\n\u{1b}[1m"), "a&lt;b &amp; &quot;c&quot;&#10;\u{fffd}[1m");
    }
}
