//! `ip vrf`, and the words of `ip link add … type vrf`.
//!
//! Follows: iproute2 6.1.0 `ip/ipvrf.c` `do_ipvrf`, `ipvrf_show`, `ipvrf_exec`; `ip/iplink_vrf.c` `vrf_parse_opt`.

use super::words::{Parsed, Words, matches};
use super::{Command, Failure, Form, LinkData};

impl Words<'_> {
    /// `vrf_parse_opt`.
    pub(super) fn vrf_words(&mut self) -> Parsed<LinkData> {
        let mut table = None;
        while let Some(word) = self.next() {
            if matches(&word, "table") {
                let text = self.value()?;
                match super::rt_names::table_of(&text) {
                    Some(n) => table = Some(n),
                    None => return self.invalid(&text, "invalid table ID\n"),
                }
                continue;
            }
            let usage = "Usage: ... vrf table TABLEID\n";
            let stderr = match matches(&word, "help") {
                true => usage.to_owned(),
                false => format!("vrf: unknown option \"{word}\"?\n{usage}"),
            };
            return Err(Failure { stderr, exit: 1, word: self.at - 1, help: String::new() });
        }
        Ok(LinkData::Vrf(table))
    }

    /// `do_ipvrf`.
    pub(super) fn vrf(&mut self, form: Form) -> Parsed<Command> {
        let Some(verb) = self.next() else { return Ok(Command::VrfShow(None, form)) };
        let is = |full: &str| matches(&verb, full);
        if is("identify") {
            return Ok(Command::Say(String::new()));
        }
        if is("pids") {
            return match self.next() {
                Some(name) => Ok(Command::VrfPids(name)),
                None => self.fail(1, "Invalid arguments", "ip vrf pids NAME"),
            };
        }
        if is("exec") {
            let Some(name) = self.next() else { return self.fail(1, "No VRF name specified", "") };
            if self.peek().is_none() {
                return self.fail(1, "No command specified", "");
            }
            return Ok(Command::VrfExec(name, self.at));
        }
        if is("show") || is("lst") || is("list") {
            return Ok(Command::VrfShow(self.next(), form));
        }
        if is("help") {
            return self.usage(super::usage::VRF);
        }
        let text = format!("Command \"{verb}\" is unknown, try \"ip vrf help\".");
        self.fail(255, text, "show, exec, identify or pids")
    }
}
