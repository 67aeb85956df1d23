//! Command lines: which program, what it does to the machine, and what it prints.
//!
//! A command that fails has changed nothing. Scripts are the interpreter's (`penstock-shell`): it gives commands here word by word.

mod conntrack;
pub(crate) mod controls;
pub(crate) mod ethtool;
mod files;
mod filter;
mod ifconfig;
mod ip;
mod ipset;
mod killall;
mod modules;
mod netfilter;
mod nettools;
mod nstat;
mod objects;
mod ppp;
mod programs;
mod radvd;
mod settings;
mod ss;
mod tc;
pub(crate) mod vlantools;
mod wg;

pub use controls::followed_parameters;
pub use files::{FileError, Files, NoFiles};
pub use objects::Loading;
pub use programs::{PROGRAMS, Program, Reach};
pub use settings::keys::unfollowed as unfollowed_settings;

use crate::{Host, Output};
use penstock_lang::token::{self, Line};
use penstock_model::{Diagnostic, Time};

/// A program's outcome before it is placed: standard output, standard error, status, findings.
pub(crate) type Ran = Output;

/// Commands of Linux that this machine refuses as not simulated, with what to do instead.
pub fn not_here() -> Vec<(String, &'static str)> {
    let objects = penstock_lang::ip::ELSEWHERE.iter().map(|(name, instead)| (format!("ip {name}"), *instead));
    let kinds = ip::kinds_elsewhere().map(|(kind, instead)| (format!("ip link add … type {kind}"), instead));
    objects.chain(kinds).chain(ethtool::asked::not_here()).collect()
}

impl Output {
    pub(crate) fn say(stdout: impl Into<String>) -> Output {
        Output { stdout: stdout.into(), ..Output::default() }
    }
    /// A failure whose first line of standard error is the finding, with advice.
    pub(crate) fn fail(stderr: impl Into<String>, status: i32, help: &str) -> Output {
        let stderr = stderr.into();
        let message = stderr.lines().next().unwrap_or("").to_owned();
        let diagnostics = vec![Diagnostic::error(message).help(help)];
        Output { stdout: String::new(), stderr, status, diagnostics }
    }
    /// What Linux carries out and this machine does not, where the command was refused for that: `ip xfrm`. Its refusal is one of ours.
    pub fn unsimulated(&self) -> Option<&str> {
        let first = self.stderr.lines().next().filter(|_| self.status != 0)?;
        first.strip_suffix(": not simulated")
    }
    /// A refusal of what Linux carries out and this machine does not, with what to do instead.
    pub(crate) fn not_simulated(what: &str, instead: &str) -> Output {
        Output::fail(format!("{what}: not simulated\n"), 1, instead)
    }
    /// The finding's place: word `at` of the line.
    pub(crate) fn at_word(mut self, line: &Line, at: usize) -> Output {
        if let (Some(word), Some(d)) = (line.words.get(at), self.diagnostics.first_mut()) {
            (d.line, d.column, d.len) = (word.line, word.column, word.len);
        }
        self
    }
}

impl Host {
    /// Runs one command at `now`, as one types it without a shell: quotes and `sudo` in front are understood; `;`, `|`, `>`, `$` and
    /// their like are refused (exit status 2). A command that fails changes nothing.
    ///
    /// What follows from it (a queue that may go on, packets a changed qdisc threw away) is taken by
    /// [`Host::take_effects`].
    pub fn exec(&mut self, line: &str, now: Time) -> Output {
        match token::read(line, 1) {
            Ok(line) => self.run_line(&line, &mut NoFiles, now),
            Err(fault) => refused_line(fault),
        }
    }

    /// Runs one command at `now`, its words as a process gets them; `files` lends what it reads.
    pub fn command(&mut self, words: &[String], files: &mut dyn Files, now: Time) -> Output {
        self.run_line(&Line::of_words(words), files, now)
    }

    fn run_line(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Output {
        let mut out = self.run_program(line, files, now);
        self.macvlans_changed(now);
        self.all_nexthops_follow();
        self.tell_ports();
        out.diagnostics = out.diagnostics.into_iter().map(|d| line.place("", d)).collect();
        out
    }

    fn run_program(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let Some(first) = line.words.first() else { return Output::default() };
        let path = first.text.as_str();
        match programs::find(path) {
            Some(program) => program.run(self, programs::Call { line, files, now }),
            None if path.contains('/') => {
                Output::fail(format!("bash: {path}: No such file or directory\n"), 127, "")
            }
            None => {
                let names: Vec<&str> = Program::tools().map(|p| p.name).collect();
                let help = format!("programs here: {} echo cat", names.join(" "));
                Output::fail(format!("bash: {path}: command not found\n"), 127, &help)
            }
        }
    }

    /// `tc`, in the namespace that `-n` names.
    fn tc_in_space(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let Some((name, line)) = netns_of_tc(line) else { return self.tc(line, files, now) };
        let run = |host: &mut Host| host.tc(&line, files, now);
        match self.space_of(&name).and_then(|space| self.in_space(space, run)) {
            Some(ran) => ran,
            None => Output::fail(crate::netns::no_space(&name), 255, "ip netns lists the namespaces"),
        }
    }

    /// A device's qdiscs have changed: its queue may go on.
    pub(crate) fn kick_later(&mut self, ifindex: u32) {
        self.keep_drops(ifindex);
    }
}

/// `tc -n NAME …`: the name, and the line without it.
fn netns_of_tc(line: &Line) -> Option<(String, Line)> {
    let mut at = 1;
    while let Some(option) = line.words.get(at).and_then(|w| w.text.strip_prefix('-')) {
        let option = option.trim_start_matches('-');
        if option == "n" || option.len() > 2 && "netns".starts_with(option) {
            let name = line.words.get(at + 1).map_or("(null)", |w| w.text.as_str()).to_owned();
            let mut rest = line.clone();
            rest.words.drain(at..(at + 2).min(line.words.len()));
            return Some((name, rest));
        }
        let takes_value = ["b", "cf", "l"].contains(&option)
            || option.len() > 1 && ["batch", "conf", "loops"].iter().any(|o| o.starts_with(option));
        at += if takes_value { 2 } else { 1 };
    }
    None
}

fn refused_line(fault: Diagnostic) -> Output {
    let stderr = format!("penstock: {}\n", fault.message);
    Output { stdout: String::new(), stderr, status: 2, diagnostics: vec![fault] }
}
