//! `ip netns`.
//!
//! Follows: iproute2 6.1.0 `ip/ipnetns.c`; linux v6.12 `net/core/net_namespace.c` `rtnl_net_newid`.

use crate::exec::{Files, Ran};
use crate::netns::no_space;
use crate::{Host, Output};
use penstock_lang::ip::{self, Form, NetnsCommand, NetnsRef};
use penstock_lang::token::Line;
use penstock_model::{KernelError, Time};

impl Host {
    pub(super) fn ip_netns(
        &mut self,
        command: NetnsCommand,
        form: Form,
        line: &Line,
        files: &mut dyn Files,
        now: Time,
    ) -> Ran {
        match command {
            NetnsCommand::List => {
                let names: Vec<(String, Option<i32>)> = self
                    .netns_names()
                    .into_iter()
                    .map(|name| {
                        let space = self.space_of(name);
                        let id = self.space_numbers.iter().find(|n| Some(n.0) == space).map(|n| n.1);
                        (name.to_owned(), id)
                    })
                    .collect();
                if names.is_empty() && !form.json {
                    return Output::default();
                }
                Output::say(ip::netns(&names, form, self.kernel))
            }
            NetnsCommand::ListId => {
                let mut ids = self.space_numbers.clone();
                ids.sort_by_key(|n| n.1);
                let list: Vec<NetnsRef> = ids
                    .into_iter()
                    .map(|(space, id)| match self.space_name(space) {
                        Some(name) => NetnsRef::Named(name.to_owned(), id),
                        None => NetnsRef::Number(id),
                    })
                    .collect();
                Output::say(ip::netns_ids(&list, form, self.kernel))
            }
            NetnsCommand::Add(name) => match self.add_space(&name) {
                true => Output::default(),
                false => {
                    let text = format!("Cannot create namespace file \"/run/netns/{name}\": File exists\n");
                    Output::fail(text, 1, "")
                }
            },
            NetnsCommand::Del(Some(name)) => match self.delete_space(&name, now) {
                true => Output::default(),
                false => {
                    let text = format!(
                        "Cannot remove namespace file \"/run/netns/{name}\": No such file or directory\n"
                    );
                    Output::fail(text, 1, "")
                }
            },
            NetnsCommand::Del(None) => {
                let names: Vec<String> = self.netns_names().into_iter().map(str::to_owned).collect();
                for name in names {
                    self.delete_space(&name, now);
                }
                Output::default()
            }
            NetnsCommand::Set(name, id) => self.set_space_number(&name, id),
            NetnsCommand::Identify(_) => {
                let name = self.space_name(self.space).unwrap_or_default().to_owned();
                Output::say(format!("{name}\n"))
            }
            NetnsCommand::Pids(name) => match self.space_of(&name) {
                Some(_) => Output::default(),
                None => Output::fail(no_space(&name), 1, ""),
            },
            NetnsCommand::Exec(Some(name), at) => {
                let run = |host: &mut Host| host.exec_words(line, at, files, now);
                match self.space_of(&name).and_then(|space| self.in_space(space, run)) {
                    Some(ran) => ran,
                    None => Output::fail(no_space(&name), 255, "ip netns lists the namespaces"),
                }
            }
            NetnsCommand::Exec(None, at) => {
                let names: Vec<String> = self.netns_names().into_iter().map(str::to_owned).collect();
                let mut all = Output::default();
                for name in names {
                    all.stdout.push_str(&format!("\nnetns: {name}\n"));
                    let space = self.space_of(&name);
                    let run = |host: &mut Host| host.exec_words(line, at, files, now);
                    if let Some(one) = space.and_then(|space| self.in_space(space, run)) {
                        all.stdout.push_str(&one.stdout);
                        all.stderr.push_str(&one.stderr);
                        all.diagnostics.extend(one.diagnostics);
                        all.status = if one.status != 0 { one.status } else { all.status };
                    }
                }
                all
            }
        }
    }

    /// Runs the words of a line from `at` on, as a command of their own.
    fn exec_words(&mut self, line: &Line, at: usize, files: &mut dyn Files, now: Time) -> Ran {
        let mut inner = line.clone();
        inner.words.drain(..at);
        let name = inner.words.first().map_or(String::new(), |w| w.text.clone());
        let mut out = self.run_program(&inner, files, now);
        if out.status == 127 {
            // exec(2) fails rather than the shell.
            out.stderr = format!("exec of \"{name}\" failed: No such file or directory\n");
            out.status = 255;
        }
        out
    }

    fn set_space_number(&mut self, name: &str, id: i64) -> Ran {
        let Some(space) = self.space_of(name) else {
            return Output::fail(no_space(name), 1, "");
        };
        if self.space_numbers.iter().any(|n| n.0 == space) {
            let failure = self.no(KernelError::EEXIST, "Peer netns already has a nsid assigned");
            return Output::fail(failure.stderr, failure.exit, "");
        }
        match i32::try_from(id).ok().filter(|id| *id >= 0) {
            None => {
                self.space_number(space);
            }
            Some(id) if self.space_numbers.iter().any(|n| n.1 == id) => {
                let failure = self.no(KernelError::EEXIST, "The specified nsid is already used");
                return Output::fail(failure.stderr, failure.exit, "");
            }
            Some(id) => self.space_numbers.push((space, id)),
        }
        Output::default()
    }
}
