//! What is found, and the table of rules.

use crate::facts::Facts;
use penstock_model::Severity;
use std::collections::BTreeSet;

/// One thing found in a script.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// The file; the script's own name or that of a file it reads.
    pub file: String,
    /// Line, from 1; 0 where none is known.
    pub line: u32,
    /// Column in characters, from 1; 0 where none is known.
    pub column: u32,
    /// Length of what is marked, in characters; 0 where nothing is.
    pub len: u32,
    /// Stable code: `PS101`.
    pub code: &'static str,
    /// Whether it would be refused, or is a likely mistake.
    pub severity: Severity,
    /// A sentence in plain words; of a refusal the words of who refuses.
    pub message: String,
    /// Why, with the number that shows it.
    pub reason: String,
    /// What to write instead, to be pasted; empty where nothing can be.
    pub fix: String,
    /// Changes to the text that are safe to make unasked; empty where a person has to decide.
    pub edits: Vec<Edit>,
}

/// A change to the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Edit {
    /// A line of text before this line.
    Before(u32, String),
    /// In this line, from a column in characters, so many characters become this.
    Replace(u32, u32, u32, String),
}

/// One rule: a function over all that is known of a script.
pub struct Rule {
    /// Stable code.
    pub code: &'static str,
    /// Whether it speaks of refusals.
    pub severity: Severity,
    /// What is wrong, in a sentence.
    pub about: &'static str,
    /// Why that matters and what the kernel does, for the rule's page.
    pub why: &'static str,
    /// Finds it.
    pub find: fn(&Facts, &mut Found),
}

impl Rule {
    /// A rule that warns of what is legal: its code, [`Rule::about`], [`Rule::why`] and what finds it.
    pub const fn warning(
        code: &'static str,
        about: &'static str,
        why: &'static str,
        find: fn(&Facts, &mut Found),
    ) -> Rule {
        Rule { code, severity: Severity::Warning, about, why, find }
    }
}

/// Where the rules put what they find.
pub struct Found<'a> {
    facts: &'a Facts,
    code: &'static str,
    severity: Severity,
    all: BTreeSet<Finding>,
    places: BTreeSet<(&'static str, String, u32, u32)>,
}

/// What a rule says of a place.
#[derive(Default)]
pub struct Say {
    /// [`Finding::message`].
    pub message: String,
    /// [`Finding::reason`].
    pub reason: String,
    /// [`Finding::fix`].
    pub fix: String,
    /// [`Finding::edits`].
    pub edits: Vec<Edit>,
}

impl Say {
    /// Message, reason and fix.
    pub fn new(message: impl Into<String>, reason: impl Into<String>, fix: impl Into<String>) -> Say {
        Say { message: message.into(), reason: reason.into(), fix: fix.into(), edits: Vec::new() }
    }
    /// With a change that is safe.
    pub fn edit(mut self, edit: Option<Edit>) -> Say {
        self.edits.extend(edit);
        self
    }
}

impl<'a> Found<'a> {
    /// Nothing yet.
    pub fn new(facts: &'a Facts) -> Found<'a> {
        Found { facts, code: "", severity: Severity::Warning, all: BTreeSet::new(), places: BTreeSet::new() }
    }
    /// Runs a rule.
    pub fn run(&mut self, rule: &Rule) {
        (self.code, self.severity) = (rule.code, rule.severity);
        (rule.find)(self.facts, self);
    }
    /// At a command, marking its word `word` (or what gave it its value), where it can be found.
    pub fn at(&mut self, step: usize, word: &str, say: Say) {
        let Some(step) = self.facts.steps.get(step) else { return };
        let own = step.file == self.facts.name;
        let place = if own && !word.is_empty() { self.facts.source.find(step.line, word, 0) } else { None };
        let first = || {
            let text = self.facts.source.line(step.line);
            let column = text.chars().take_while(|c| c.is_whitespace()).count() as u32 + 1;
            (step.line, column, 0)
        };
        let (line, column, len) = place.unwrap_or_else(|| if own { first() } else { (step.line, 0, 0) });
        // The command's own line, whatever line of it the word stands on, so that a line is a command.
        let (column, len) = if line == step.line { (column, len) } else { (first().1, 0) };
        let file = step.file.clone();
        self.place(file, step.line, column, len, say);
    }
    /// At a line of the script itself.
    pub fn at_line(&mut self, line: u32, column: u32, len: u32, say: Say) {
        let file = self.facts.name.clone();
        self.place(file, line, column, len, say);
    }
    fn place(&mut self, file: String, line: u32, column: u32, len: u32, say: Say) {
        let Say { message, reason, fix, edits } = say;
        let (code, severity) = (self.code, self.severity);
        // A loop's commands stand in one place: what is said of one holds for the others.
        if line > 0 && !self.places.insert((code, file.clone(), line, column)) {
            return;
        }
        // In Python a change of words is more than a change of text.
        let edits = if self.facts.source.form == crate::source::Form::Python { Vec::new() } else { edits };
        self.all.insert(Finding { file, line, column, len, code, severity, message, reason, fix, edits });
    }
    /// All, in the order of places.
    pub fn into_findings(self) -> Vec<Finding> {
        self.all.into_iter().collect()
    }
}
