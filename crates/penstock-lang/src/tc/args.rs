//! A walk over the words of one command, and the ways tc fails.
//!
//! Follows: iproute2 6.1.0 `include/utils.h` (`NEXT_ARG`), `lib/utils.c` (`matches`, `incomplete_command`, `invarg`,
//! `duparg`).

use super::{Command, Env, Failure};
use crate::token::Word;
use penstock_model::{Diagnostic, Kernel};

/// The words still to be read, and what tc would have said on the way.
pub struct Args<'a> {
    words: &'a [Word],
    at: usize,
    /// Surroundings of the command.
    pub env: &'a Env<'a>,
    /// `-raw`, which makes some parsers talkative.
    pub raw: bool,
    /// The request is to make something new (NLM_F_EXCL), which changes what some classes need.
    pub exclusive: bool,
    /// The actions that are read are a filter's, which may also name one that is there.
    pub of_filter: bool,
    /// What goes to stderr before the command itself: usage texts, warnings.
    pub said: Vec<Command>,
}

/// `matches`: a word and everything it abbreviates.
pub fn matches(word: &str, full: &str) -> bool {
    !word.is_empty() && full.starts_with(word)
}

impl<'a> Args<'a> {
    /// All of `words`.
    pub fn new(words: &'a [Word], env: &'a Env<'a>) -> Args<'a> {
        Args { words, at: 0, env, raw: false, exclusive: false, of_filter: false, said: Vec::new() }
    }
    /// Every word of the command, those done with as well.
    pub fn all(&self) -> &'a [Word] {
        self.words
    }
    /// The profile.
    pub fn kernel(&self) -> Kernel {
        self.env.kernel
    }
    /// Whether tc is the one of 2010.
    pub fn old(&self) -> bool {
        self.env.kernel == Kernel::V2_6_35
    }
    /// Whether tc is that of the profile 7.2 or later.
    pub fn since_7(&self) -> bool {
        self.env.kernel >= Kernel::V7_2
    }
    /// The next word, left where it is.
    pub fn peek(&self) -> Option<&'a Word> {
        self.words.get(self.at)
    }
    /// The next word's text, or nothing at the end.
    pub fn peek_text(&self) -> Option<&'a str> {
        self.peek().map(|w| w.text.as_str())
    }
    /// Takes the next word.
    pub fn next_word(&mut self) -> Option<&'a Word> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }
    /// How many words are left.
    pub fn left(&self) -> usize {
        self.words.len() - self.at
    }
    /// Position, for going back to it.
    pub fn mark(&self) -> usize {
        self.at
    }
    /// Goes back to where [`Args::mark`] was taken.
    pub fn back_to(&mut self, mark: usize) {
        self.at = mark;
    }
    /// The words still to be read.
    pub fn rest(&self) -> &'a [Word] {
        &self.words[self.at..]
    }
    /// The word read last.
    pub fn last(&self) -> Option<&'a Word> {
        self.words.get(self.at.checked_sub(1)?)
    }

    /// `NEXT_ARG`: the value that must follow.
    ///
    /// # Errors
    /// `Command line is not complete. Try option "help"`.
    pub fn value(&mut self) -> Result<&'a Word, Failure> {
        self.next_word().ok_or_else(|| {
            let mut failure = self.fail_at(
                self.last(),
                "Command line is not complete. Try option \"help\"".to_owned(),
                255,
                match self.last() {
                    Some(w) => format!("a value must follow \"{}\"", w.text),
                    None => "say what to do".to_owned(),
                },
            );
            failure.aborts = true;
            if let Some(w) = self.last() {
                failure.diagnostic.column = w.column + w.len;
                failure.diagnostic.len = 1;
            }
            failure
        })
    }

    /// A failure at `word`: tc's line, its exit code, our advice.
    pub fn fail_at(&self, word: Option<&Word>, line: String, exit: i32, help: impl Into<String>) -> Failure {
        let mut diagnostic = Diagnostic::error(line.clone()).help(help);
        if let Some(w) = word.or(self.words.last()) {
            diagnostic = diagnostic.at("", w.line, w.column, w.len);
        }
        Failure { stderr: line + "\n", exit, aborts: false, diagnostic: Box::new(diagnostic) }
    }

    /// The same at the word read last.
    pub fn fail(&self, line: impl Into<String>, exit: i32, help: impl Into<String>) -> Failure {
        self.fail_at(self.last(), line.into(), exit, help)
    }

    /// `invarg`. The tc of 2010 has its two arguments the wrong way round in many places.
    pub fn invarg(&self, message: &str, argument: &str, help: impl Into<String>) -> Failure {
        let mut f = self.fail(format!("Error: argument \"{argument}\" is wrong: {message}"), 255, help);
        f.aborts = true;
        f
    }

    /// `invarg` as tc's own files call it: swapped in 2.6.35.
    pub fn invarg_tc(&self, message: &str, argument: &str, help: impl Into<String>) -> Failure {
        if self.old() { self.invarg(argument, message, help) } else { self.invarg(message, argument, help) }
    }

    /// `duparg`.
    pub fn duparg(&self, key: &str, argument: &str) -> Failure {
        let line = format!("Error: duplicate \"{key}\": \"{argument}\" is the second value.");
        let mut f = self.fail(line, 255, format!("keep one \"{key}\""));
        f.aborts = true;
        f
    }
}

impl Failure {
    /// The same with a usage block after tc's line.
    pub fn usage(mut self, text: &str) -> Failure {
        self.stderr.push_str(text);
        self
    }
    /// The same with the line that a caller adds, unless tc has already ended.
    pub fn then(mut self, line: &str) -> Failure {
        if !self.aborts {
            self.stderr.push_str(line);
            self.stderr.push('\n');
            if self.diagnostic.message.is_empty() {
                line.clone_into(&mut self.diagnostic.message);
            }
        }
        self
    }
    /// The same where tc calls `exit` with this code.
    pub fn aborting_with(mut self, exit: i32) -> Failure {
        self.exit = exit;
        self.aborting()
    }
    /// The same where tc calls `exit`, which ends a batch.
    pub fn aborting(mut self) -> Failure {
        self.aborts = true;
        self
    }
    /// The same with what tc said before, newlines included.
    pub fn said_before(mut self, text: &str) -> Failure {
        self.stderr.insert_str(0, text);
        if let Some(line) = text.lines().find(|line| !line.is_empty()) {
            self.diagnostic.message = format!("{line}\n{}", self.diagnostic.message);
        }
        self
    }
    /// The same with another line before tc's last one.
    pub fn also(mut self, line: &str) -> Failure {
        self.stderr = format!("{line}\n{}", self.stderr);
        self.diagnostic.message = format!("{line}\n{}", self.diagnostic.message);
        self
    }
}
