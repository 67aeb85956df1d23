//! What is found, and the table of rules.

use crate::facts::{Facts, Step};
use crate::fix::{Fix, class_of};
use crate::written::{Origin, Token, Written};
use std::collections::{BTreeMap, BTreeSet};

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Level {
    /// A matter of taste, or of what cannot be seen from here.
    Note,
    /// Legal, but a likely mistake.
    Warning,
    /// Refused.
    Error,
}

impl Level {
    /// Its name: `note`, `warning`, `error`.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Note => "note",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }
    /// The level of a name.
    pub fn named(name: &str) -> Option<Level> {
        [Level::Note, Level::Warning, Level::Error].into_iter().find(|l| l.name() == name)
    }
}

/// One thing found in a script.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Finding {
    /// The file; the script's own name or that of a file it reads.
    pub file: String,
    /// Line of the word that it is about, from 1; 0 where none is known.
    pub line: u32,
    /// Column in characters, from 1; 0 where none is known.
    pub column: u32,
    /// Length of what is marked, in characters; 0 where nothing is.
    pub len: u32,
    /// Stable code: `PS101`.
    pub code: &'static str,
    /// Whether it would be refused, is a likely mistake, or a matter of taste.
    pub severity: Level,
    /// A sentence in plain words; of a refusal the words of who refuses.
    pub message: String,
    /// Why, with the number that shows it.
    pub reason: String,
    /// What to write instead, to be pasted; empty where nothing can be.
    pub fix: String,
    /// Changes to the text; empty where a person has to decide.
    pub edits: Vec<Edit>,
    /// Whether the changes are surely right, so that `--fix` makes them unasked.
    pub safe: bool,
    /// The line that the command begins at: comments that allow the finding stand there.
    pub begins: u32,
}

impl Finding {
    /// Puts it at another line of the text, and what it changes.
    pub(crate) fn raise(&mut self, to: impl Fn(u32) -> u32) {
        (self.line, self.begins) = (to(self.line), to(self.begins));
        for edit in &mut self.edits {
            match edit {
                Edit::Before(line, _) | Edit::Replace(line, ..) => *line = to(*line),
                Edit::Remove(from, last) => (*from, *last) = (to(*from), to(*last)),
            }
        }
    }
}

/// A change to the text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Edit {
    /// A line of text before this line.
    Before(u32, String),
    /// In this line, from a column in characters, so many characters become this.
    Replace(u32, u32, u32, String),
    /// The lines from one to another, both included, go.
    Remove(u32, u32),
}

/// One rule: a function over all that is known of a script.
pub struct Rule {
    /// Stable code.
    pub code: &'static str,
    /// Whether it speaks of refusals, of likely mistakes or of taste.
    pub severity: Level,
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
        Rule { code, severity: Level::Warning, about, why, find }
    }
    /// A rule of taste: what it finds does not fail by default.
    pub const fn note(
        code: &'static str,
        about: &'static str,
        why: &'static str,
        find: fn(&Facts, &mut Found),
    ) -> Rule {
        Rule { code, severity: Level::Note, about, why, find }
    }
}

/// Where the rules put what they find.
pub struct Found<'a> {
    facts: &'a Facts,
    code: &'static str,
    severity: Level,
    all: BTreeSet<Finding>,
    places: BTreeSet<(&'static str, String, u32, u32)>,
    /// What one call or another gave to a function's command: by code and place, the calls' lines with what is said of each.
    by_call: BTreeMap<(&'static str, u32, u32), Vec<OfCall>>,
    /// How often a line's commands were carried out.
    times: BTreeMap<(&'a str, u32), u32>,
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
    /// Whether the fix is less sure here than elsewhere: only `--unsafe` makes it.
    pub likely: bool,
    /// The level where it is not the rule's.
    pub level: Option<Level>,
    /// The command that the fix is of, where it is another than the one at fault.
    pub fixes: Option<usize>,
}

impl Say {
    /// Message, reason and fix.
    pub fn new(message: impl Into<String>, reason: impl Into<String>, fix: impl Into<String>) -> Say {
        Say { message: message.into(), reason: reason.into(), fix: fix.into(), ..Say::default() }
    }
    /// With a change to the text.
    pub fn edit(mut self, edit: Option<Edit>) -> Say {
        self.edits.extend(edit);
        self
    }
    /// With a level of its own.
    pub fn level(mut self, level: Level) -> Say {
        self.level = Some(level);
        self
    }
    /// With a fix that changes another command.
    pub fn fixing(mut self, step: usize) -> Say {
        self.fixes = Some(step);
        self
    }
    /// With a fix that is only likely.
    pub fn unsure(mut self, unsure: bool) -> Say {
        self.likely |= unsure;
        self
    }
}

/// A place in the text.
#[derive(Clone, Copy)]
struct Place {
    line: u32,
    column: u32,
    len: u32,
    begins: u32,
    /// Whether it is in a function's body, so that its callers are worth telling.
    inside: bool,
    /// Whether it is a word of a function's body that has more in it than letters.
    varies: bool,
}

/// The lines of a command's calls, the nearest first, with what is said of it.
type OfCall = (Vec<u32>, Place, Say);

impl<'a> Found<'a> {
    /// Nothing yet.
    pub fn new(facts: &'a Facts) -> Found<'a> {
        let mut times = BTreeMap::new();
        for step in &facts.steps {
            *times.entry((step.file.as_str(), step.line)).or_default() += 1;
        }
        let (all, places) = (BTreeSet::new(), BTreeSet::new());
        Found { facts, code: "", severity: Level::Warning, all, places, by_call: BTreeMap::new(), times }
    }
    /// Runs a rule.
    pub fn run(&mut self, rule: &Rule) {
        (self.code, self.severity) = (rule.code, rule.severity);
        (rule.find)(self.facts, self);
        self.calls();
    }
    /// What a word within a function's command takes from some calls and not from others is said of these; what it takes from all, of the command.
    fn calls(&mut self) {
        for ((_, begins, _), said) in std::mem::take(&mut self.by_call) {
            let steps = self.facts.steps.iter().filter(|s| s.line == begins && s.file == self.facts.name);
            let steps: Vec<&[u32]> = steps.map(|s| s.calls.as_slice()).filter(|c| !c.is_empty()).collect();
            // Of calls within calls those that differ most.
            let line = |calls: &[u32], level: usize| calls.get(level).or(calls.last()).copied().unwrap_or(0);
            let at = |level: usize| steps.iter().map(|c| line(c, level)).collect::<BTreeSet<u32>>();
            let level = (0..4).rev().max_by_key(|&level| at(level).len()).unwrap_or(0);
            let all = at(level);
            let some: BTreeSet<u32> = said.iter().map(|s| line(&s.0, level)).collect();
            let file = self.facts.name.clone();
            if some.len() >= all.len() {
                if let Some((_, place, say)) = said.into_iter().next() {
                    self.place(file, place, say);
                }
                continue;
            }
            for (calls, _, mut say) in said {
                let line = line(&calls, level);
                let text = self.facts.source.line(line);
                let column = text.chars().take_while(|c| c.is_whitespace()).count() as u32 + 1;
                say.reason = say.reason.split(" Called from line").next().unwrap_or("").to_owned();
                say.reason += &format!(" The command is that of line {begins}.");
                say.edits.clear();
                self.place(
                    file.clone(),
                    Place { line, column, len: 0, begins: line, inside: false, varies: false },
                    say,
                );
            }
        }
    }
    /// At a command, marking its word `word` (or what gave it its value), where it can be found.
    pub fn at(&mut self, number: usize, word: &str, say: Say) {
        let Some(step) = self.facts.steps.get(number) else { return };
        if step.file != self.facts.name || step.line == 0 {
            let place =
                Place { line: step.line, column: 0, len: 0, begins: step.line, inside: false, varies: false };
            return self.place(step.file.clone(), place, say);
        }
        let written = Written::of(self.facts, step);
        let call =
            written.as_ref().filter(|w| !w.one_to_one()).and_then(|_| Written::of_call(self.facts, step));
        let place = self.find(step, word, written.as_ref(), call.as_ref());
        let mut say = say;
        match say.fixes.filter(|at| *at != number).and_then(|at| self.facts.steps.get(at)) {
            None => self.as_written(step, call.as_ref().or(written.as_ref()), &mut say),
            Some(other) if other.file == self.facts.name && other.line > 0 => {
                self.as_written(other, Written::of(self.facts, other).as_ref(), &mut say);
            }
            Some(_) => {}
        }
        if place.inside && !step.calls.is_empty() {
            let called = |l: &&u32| self.facts.is_called(**l);
            let lines: Vec<String> = step.calls.iter().filter(called).take(3).map(u32::to_string).collect();
            if !lines.is_empty() {
                say.reason += &format!(" Called from line {}.", lines.join(", from line "));
            }
        }
        if place.varies && step.calls.first().is_some_and(|l| self.facts.is_called(*l)) {
            let key = (self.code, place.begins, place.column);
            let said = self.by_call.entry(key).or_default();
            if said.len() < 100 && said.iter().all(|s| s.0 != step.calls) {
                said.push((step.calls.clone(), place, say));
            }
            return;
        }
        self.place(step.file.clone(), place, say);
    }

    /// At a line of the text that a command reads (rules of nft), from 1, where it can be found; 0 is the command itself.
    pub fn at_text(&mut self, number: usize, line: usize, word: &str, say: Say) {
        let Some(step) = self.facts.steps.get(number) else { return };
        let source = &self.facts.source;
        let text = match &step.what {
            crate::facts::What::Rules(text) if line > 0 && step.file == self.facts.name => text,
            _ => return self.at(number, word, say),
        };
        let begins = source.heredoc(step.line).map(|b| b + line as u32 - 1);
        let words = || -> Vec<String> {
            text.lines().nth(line).unwrap_or("").split_whitespace().map(str::to_owned).collect()
        };
        let Some(at) = begins.or_else(|| source.writes(&words())) else { return self.at(number, word, say) };
        let own = source.line(at);
        let column = own.find(word).map_or(0, |n| own[..n].chars().count() as u32 + 1);
        let len = if column > 0 { word.chars().count() as u32 } else { 0 };
        let place = Place { line: at, column, len, begins: at, inside: false, varies: false };
        self.place(step.file.clone(), place, say);
    }

    /// Where a word of a command stands: in the command, in the call that gave it, or where the command begins.
    fn find(&self, step: &Step, word: &str, written: Option<&Written>, call: Option<&Written>) -> Place {
        let source = &self.facts.source;
        let of = |token: &Token, begins: u32, inside: bool| Place {
            line: token.line,
            column: token.column,
            len: token.len,
            begins,
            inside,
            varies: inside && !token.is_literal(),
        };
        let number = step.words.iter().position(|w| w == word).filter(|_| !word.is_empty());
        if let (Some(number), Some(call)) = (number, call)
            && let Some(token) = call.token(number)
        {
            let begins = step.calls.iter().copied().filter(|l| *l <= token.line).max().unwrap_or(token.line);
            return of(token, begins, false);
        }
        // What the call gives as `$2` is the call's.
        if let (Some(number), Some(written), false) = (number, written, step.calls.is_empty())
            && let Some(token) = written.token(number)
            && !token.is_literal()
            && let Origin::Here(token) = written.origin(self.facts, step, number)
            && step.calls.contains(&token.line)
        {
            return of(&token, token.line, false);
        }
        if let (Some(number), Some(written)) = (number, written)
            && let Some(token) = written.token(number)
        {
            return of(token, step.line, true);
        }
        if let Some((line, column, len)) = source.find(step.line, word, 0) {
            return Place { line, column, len, begins: step.line, inside: true, varies: false };
        }
        // A wrapper says nothing of its own: the call does.
        if let Some(token) = call.and_then(|c| (0..step.words.len()).find_map(|n| c.token(n))) {
            let text = source.line(token.line);
            let column = text.chars().take_while(|c| c.is_whitespace()).count() as u32 + 1;
            return Place {
                line: token.line,
                column,
                len: 0,
                begins: token.line,
                inside: false,
                varies: false,
            };
        }
        let text = source.line(step.line);
        let column = text.chars().take_while(|c| c.is_whitespace()).count() as u32 + 1;
        Place { line: step.line, column, len: 0, begins: step.line, inside: true, varies: false }
    }

    /// Says the fix in the script's own words, and makes the changes to the text from it.
    fn as_written(&self, step: &Step, written: Option<&Written>, say: &mut Say) {
        let class = class_of(self.code);
        let (Some(written), false) = (written, say.fix.is_empty() || say.fix.contains('\n')) else { return };
        let wanted = say.fix.clone();
        let new: Vec<&str> = wanted.split_whitespace().collect();
        let old: Vec<&str> = step.words.iter().map(String::as_str).collect();
        if old.iter().any(|w| w.contains(char::is_whitespace)) {
            return;
        }
        let changes = changed(&old, &new);
        let kept = old.len() - changes.iter().map(|c| c.0.len()).sum::<usize>();
        if changes.is_empty() || kept * 2 < old.len() || !written.one_to_one() {
            return;
        }
        let tokens: Option<Vec<&Token>> = (0..old.len())
            .filter(|n| *n > 0 || written.token(0).is_some())
            .map(|n| written.token(n))
            .collect();
        if let Some(tokens) = tokens {
            let ahead = old.len() - tokens.len();
            let mut text: Vec<String> = Vec::new();
            let mut at = ahead;
            for (of, by) in &changes {
                text.extend(
                    tokens[at.max(ahead) - ahead..of.start.max(ahead) - ahead].iter().map(|t| t.text.clone()),
                );
                text.extend(by.iter().map(|w| (*w).to_owned()));
                at = of.end;
            }
            text.extend(tokens[at.max(ahead) - ahead..].iter().map(|t| t.text.clone()));
            say.fix = text.join(" ");
        }
        if !say.edits.is_empty() || class == Fix::None {
            return;
        }
        let mut edits = Vec::new();
        for (of, by) in &changes {
            match self.change(step, written, of.clone(), &by.join(" ")) {
                Ok(edit) => edits.push(edit),
                Err(Some((name, line))) => {
                    say.reason += &format!(
                        " The value is that of `{name}` (line {line}), which is used elsewhere too."
                    );
                    return;
                }
                Err(None) => return,
            }
        }
        // What a loop carries out often is changed only where the rule looks at nothing else.
        let times = self.times.get(&(step.file.as_str(), step.line)).copied().unwrap_or(0);
        let own = step.line..=self.facts.source.end_of(step.line);
        let repeats = |e: &Edit| matches!(e, Edit::Replace(line, ..) if own.contains(line));
        if times > 1 && !crate::fix::by_words(self.code) && edits.iter().any(repeats) {
            return;
        }
        // What the call gives is written where the call stands.
        let calls = |e: &Edit| matches!(e, Edit::Replace(line, ..) if step.calls.contains(line) && *line != step.line);
        if let Some(Edit::Replace(line, ..)) = edits.first()
            && edits.iter().all(calls)
        {
            let text = self.facts.source.lines.join("\n");
            let changed = crate::fix::applied(&text, &edits.iter().collect::<Vec<_>>());
            say.fix = changed.lines().nth(*line as usize - 1).unwrap_or("").trim().to_owned();
        }
        say.edits = edits;
    }

    /// The change that puts new words in the place of a command's words; where a variable stands in the way, its name and line.
    fn change(
        &self,
        step: &Step,
        written: &Written,
        of: std::ops::Range<usize>,
        by: &str,
    ) -> Result<Edit, Option<(String, u32)>> {
        let is_there = |t: &Token| {
            let chars: Vec<char> = self.facts.source.line(t.line).chars().collect();
            // What stands nowhere in the text has no column.
            let Some(from) = (t.column as usize).checked_sub(1) else { return false };
            chars.get(from..from + t.len as usize).is_some_and(|c| c.iter().collect::<String>() == t.text)
        };
        if of.is_empty() {
            let before =
                written.token(of.start.checked_sub(1).ok_or(None)?).filter(|t| is_there(t)).ok_or(None)?;
            return Ok(Edit::Replace(before.line, before.column + before.len, 0, format!(" {by}")));
        }
        if of.len() == 1 && !by.is_empty() {
            return match written.origin(self.facts, step, of.start) {
                Origin::Here(t) if is_there(&t) => {
                    let quote = t.text.chars().next().filter(|c| matches!(c, '"' | '\'')).map(String::from);
                    let quote = quote.unwrap_or_default();
                    Ok(Edit::Replace(t.line, t.column, t.len, format!("{quote}{by}{quote}")))
                }
                Origin::Shared(name, line) => Err(Some((name, line))),
                _ => Err(None),
            };
        }
        let (first, last) = (written.token(of.start).ok_or(None)?, written.token(of.end - 1).ok_or(None)?);
        let literal = of.clone().all(|n| written.token(n).is_some_and(|t| t.is_literal() && is_there(t)));
        if first.line != last.line || !literal {
            return Err(None);
        }
        let mut from = first.column;
        // What goes takes the blank before it along.
        if by.is_empty()
            && let Some(before) = written.token(of.start.checked_sub(1).ok_or(None)?)
            && before.line == first.line
        {
            from = before.column + before.len;
        }
        Ok(Edit::Replace(first.line, from, last.column + last.len - from, by.to_owned()))
    }

    /// At a line of the script itself.
    pub fn at_line(&mut self, line: u32, column: u32, len: u32, say: Say) {
        let file = self.facts.name.clone();
        self.place(file, Place { line, column, len, begins: line, inside: false, varies: false }, say);
    }
    fn place(&mut self, file: String, place: Place, say: Say) {
        let Place { line, column, len, begins, .. } = place;
        let Say { message, reason, fix, edits, likely, level, .. } = say;
        let (code, severity) = (self.code, level.unwrap_or(self.severity));
        // A loop's commands stand in one place: what is said of one holds for the others.
        if line > 0 && !self.places.insert((code, file.clone(), line, column)) {
            return;
        }
        // In Python a change of words is more than a change of text.
        let edits = if self.facts.source.form == crate::source::Form::Python { Vec::new() } else { edits };
        let safe = class_of(code) == Fix::Safe && !likely;
        self.all.insert(Finding {
            file,
            line,
            column,
            len,
            code,
            severity,
            message,
            reason,
            fix,
            edits,
            safe,
            begins,
        });
    }
    /// All, in the order of places.
    pub fn into_findings(self) -> Vec<Finding> {
        self.all.into_iter().collect()
    }
}

/// Where two lists of words differ: ranges of the old one, and what stands in the new one instead.
fn changed<'w>(old: &[&str], new: &[&'w str]) -> Vec<(std::ops::Range<usize>, Vec<&'w str>)> {
    // Longest common subsequence.
    let mut best = vec![vec![0u16; new.len() + 1]; old.len() + 1];
    for i in (0..old.len()).rev() {
        for j in (0..new.len()).rev() {
            best[i][j] =
                if old[i] == new[j] { best[i + 1][j + 1] + 1 } else { best[i + 1][j].max(best[i][j + 1]) };
        }
    }
    let mut out: Vec<(std::ops::Range<usize>, Vec<&str>)> = Vec::new();
    let (mut i, mut j) = (0, 0);
    let mut open: Option<(std::ops::Range<usize>, Vec<&str>)> = None;
    while i < old.len() || j < new.len() {
        if i < old.len() && j < new.len() && old[i] == new[j] && best[i][j] == best[i + 1][j + 1] + 1 {
            out.extend(open.take());
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let now = open.get_or_insert((i..i, Vec::new()));
        if j >= new.len() || i < old.len() && best[i + 1][j] >= best[i][j + 1] {
            i += 1;
            now.0.end = i;
        } else {
            now.1.push(new[j]);
            j += 1;
        }
    }
    out.extend(open);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_two_commands_differ() {
        let words = |t: &'static str| t.split(' ').collect::<Vec<_>>();
        let of = |a, b| changed(&words(a), &words(b));
        assert_eq!(of("a rate 1 ceil 2", "a rate 3 ceil 2"), [(2..3, vec!["3"])]);
        assert_eq!(of("a b", "a b c d"), [(2..2, vec!["c", "d"])]);
        assert_eq!(of("a x 1 b", "a b"), [(1..3, vec![])]);
        assert_eq!(of("a b", "a b"), []);
    }
}
