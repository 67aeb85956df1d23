//! `ipset` as a program.

use super::{Files, Ran};
use crate::{Host, Output};
use penstock_lang::ipset::Verb;
use penstock_lang::token::Line;
use penstock_model::Time;

impl Host {
    pub(super) fn ipset(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let words: Vec<&str> = line.words.iter().map(|w| w.text.as_str()).collect();
        let (mut said, restores) = self.netfilter.ipset_line(&words, 0, now);
        if let Some(command) = restores.filter(|c| c.verb == Verb::Restore) {
            let path = command.env.file.as_deref().unwrap_or("-");
            said = match files.read(path) {
                Ok(text) => self.netfilter.ipset_restore(&text, &command, now),
                // It says nothing else.
                Err(why) => return Output::fail(String::new(), 255, &format!("{path}: {why}")),
            };
        }
        if said.status == 0 {
            return Output { stdout: said.stdout, stderr: said.stderr, ..Output::default() };
        }
        let out = Output::fail(said.stderr, said.status, &said.help).at_word(line, said.word);
        Output { stdout: said.stdout, ..out }
    }
}
