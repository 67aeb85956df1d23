//! Commands of `ipset` carried out.
//!
//! Follows: ipset 7.17 `lib/session.c`; linux v6.12 `ip_set_core.c` `ip_set_dump_do`: lists come last.
//! Differs: `restore` carries out line by line; where a line is wrong, those before it for the same set are in force, which ipset would not have sent yet.

use super::super::Netfilter;
use super::ext::Ticks;
use super::uadt::Adt;
use penstock_lang::ipset::{self, Command, Error, Failure, Verb};
use penstock_model::Time;

/// What a command gave.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Said {
    pub stdout: String,
    pub stderr: String,
    pub status: i32,
    /// Place of the word that is wrong.
    pub word: usize,
    pub help: String,
}

impl Said {
    fn failed(mut self, f: Failure) -> Said {
        self.stderr += &f.stderr;
        (self.status, self.word, self.help) = (f.exit, f.word, f.help);
        self
    }
}

impl Netfilter {
    /// Runs a command line, the program's name first; `line` is its number in a restored file, or 0. `None`: it wants to
    /// read a file.
    pub(crate) fn ipset_line(&mut self, words: &[&str], line: u32, now: Time) -> (Said, Option<Command>) {
        let parsed = ipset::parse(words, line, &|name| self.sets.known(name));
        let quiet = words.iter().any(|w| matches!(*w, "-q" | "-quiet" | "--quiet"));
        let mut said = Said::default();
        let command = match parsed {
            Ok(command) => command,
            Err(f) => {
                said = said.failed(f);
                if quiet {
                    said.stderr.clear();
                }
                return (said, None);
            }
        };
        said.stderr.clone_from(&command.warnings);
        if command.verb == Verb::Restore {
            return (said, Some(command));
        }
        if let Err(error) = self.ipset(&command, &mut said, now) {
            let f = Failure::report(line, error.words(command.verb)).advise(error.advice());
            said = said.failed(f);
        }
        if quiet {
            said.stderr.clear();
        }
        (said, None)
    }

    /// Reads a saved file; `exist` is the option of `restore`.
    pub(crate) fn ipset_restore(&mut self, text: &str, command: &Command, now: Time) -> Said {
        let mut all = Said::default();
        for (i, line) in text.lines().enumerate() {
            let trimmed = line.trim_start();
            if trimmed.is_empty() || trimmed.starts_with('#') || trimmed.trim_end() == "COMMIT" {
                continue;
            }
            let mut words = match ipset::words(trimmed) {
                Ok(words) => words,
                Err(f) => return all.failed(f),
            };
            if command.env.exist {
                words.push("-exist".to_owned());
            }
            if words.get(1).map(String::as_str) == Some("quit") {
                return all;
            }
            let texts: Vec<&str> = words.iter().map(String::as_str).collect();
            let (said, _) = self.ipset_line(&texts, i as u32 + 1, now);
            all.stdout += &said.stdout;
            all.stderr += &said.stderr;
            (all.status, all.word, all.help) = (said.status, 0, said.help);
            if all.status != 0 {
                return all;
            }
        }
        all
    }

    fn ipset(&mut self, command: &Command, said: &mut Said, now: Time) -> Result<(), Error> {
        let ticks = Ticks { now: self.tracking.ticks(now), hz: self.tracking.hz() };
        let (set, other) = (command.set.as_deref().unwrap_or(""), command.other.as_deref().unwrap_or(""));
        let (a, env) = (&command.attributes, &command.env);
        match command.verb {
            Verb::Create => {
                let Some(kind) = command.kind else { return Ok(()) };
                self.sets.create(set, (kind, command.family), a, env.exist, ticks)?;
            }
            Verb::Add | Verb::Del => {
                let adt = if command.verb == Verb::Add { Adt::Add } else { Adt::Del };
                self.sets.user(set, adt, a, env.exist, ticks)?;
            }
            Verb::Test => {
                let found = self.sets.user(set, Adt::Test, a, false, ticks)?;
                let element = command.kind.map_or(String::new(), |k| ipset::element(k, command.family, a));
                match found {
                    true => said.stderr += &format!("Warning: {element} is in set {set}.\n"),
                    false => {
                        said.stderr += &format!("{element} is NOT in set {set}.\n");
                        said.status = 1;
                    }
                }
            }
            Verb::Destroy => {
                let mut sets =
                    std::mem::replace(&mut self.sets, super::Sets::new(penstock_model::Rng::named(0, "")));
                let done = sets.destroy(command.set.as_deref(), env.exist, &|name| self.set_users(name));
                self.sets = sets;
                done?;
            }
            Verb::Flush => self.sets.flush(command.set.as_deref())?,
            Verb::Rename => {
                let mut sets =
                    std::mem::replace(&mut self.sets, super::Sets::new(penstock_model::Rng::named(0, "")));
                let done = sets.rename(set, other, &|name| self.set_users(name));
                self.sets = sets;
                done?;
            }
            Verb::Swap => self.sets.swap(set, other)?,
            Verb::List | Verb::Save => self.ipset_list(command, said, ticks)?,
            Verb::Version => said.stdout += &format!("{}, protocol version: 7\n", ipset::VERSION),
            Verb::Help => {
                said.stdout += &format!(
                    "{}\n\nUsage: ipset [options] COMMAND\n\nThe commands and types are described in the manual page ipset(8).\n",
                    ipset::VERSION
                );
            }
            Verb::Restore | Verb::Quit => {}
        }
        Ok(())
    }

    /// `ip_set_dump`: sets by number, lists last.
    fn ipset_list(&mut self, command: &Command, said: &mut Said, ticks: Ticks) -> Result<(), Error> {
        let env = &command.env;
        let chosen: Vec<u32> = match &command.set {
            Some(name) => vec![self.sets.find(name).ok_or(Error::NoSet)?],
            None => {
                let all = (0..self.sets.sets.len() as u32).filter(|id| self.sets.get(*id).is_some());
                let is_list = |id: &u32| self.sets.get(*id).is_some_and(|s| s.kind.name == "list:set");
                let (lists, others): (Vec<u32>, Vec<u32>) = all.partition(is_list);
                // Names alone come in the order of the numbers.
                let mut chosen = others;
                chosen.extend(lists);
                chosen
            }
        };
        let as_commands = env.as_commands.unwrap_or(command.verb == Verb::Save);
        if env.xml {
            said.stdout.push_str("<ipsets>\n");
        }
        for (i, id) in chosen.into_iter().enumerate() {
            if let Some(set) = self.sets.get_mut(id) {
                set.catch_up(ticks);
            }
            let rules = self.sets.get(id).map_or(0, |s| self.set_users(&s.name));
            let Some(header) = self.sets.header(id, rules, ticks) else { continue };
            if env.names && !as_commands {
                let name = &header.name;
                said.stdout +=
                    &if env.xml { format!("<ipset name=\"{name}\"/>\n") } else { format!("{name}\n") };
                continue;
            }
            let mut members: Vec<String> = match env.terse {
                true => Vec::new(),
                false => {
                    let all = self.sets.members(id, ticks);
                    all.iter().map(|a| ipset::member(header.kind, header.family, a)).collect()
                }
            };
            if env.sorted && header.kind.is_hash() {
                ipset::sort(&mut members);
            }
            if env.xml {
                said.stdout += &ipset::xml(&header, &members, env.terse);
                continue;
            }
            if i > 0 && !as_commands {
                said.stdout.push('\n');
            }
            said.stdout += &ipset::list(&header, &members, as_commands, env.terse);
        }
        if env.xml {
            said.stdout.push_str("</ipsets>\n");
        }
        Ok(())
    }
}
