//! Command lines: which program, what it does to the machine, and what it prints.
//!
//! A command that fails has changed nothing. A script goes on after a failing line unless it says `set -e`, as a shell
//! does; a script that no shell could read (an open quote) or that needs what only a shell can do (pipes, loops) is
//! refused as a whole.

mod ethtool;
mod files;
mod filter;
mod ifconfig;
mod ip;
mod modules;
mod netfilter;
mod nettools;
mod settings;
mod tc;

pub use files::{FileError, Files, NoFiles};

use crate::{Host, Output};
use penstock_lang::token::{self, Line};
use penstock_model::{Diagnostic, Time};

/// One line of a script, carried out.
#[derive(Clone, PartialEq, Debug)]
pub struct Executed {
    /// Number of the line it begins on, from 1.
    pub number: u32,
    /// That line as it stands in the script.
    pub source: String,
    /// What it gave.
    pub output: Output,
}

/// What a script gave.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ScriptOutput {
    /// Its commands in the order they ran.
    pub lines: Vec<Executed>,
    /// What stands against the script as a whole; nothing has run then.
    pub refused: Vec<Diagnostic>,
    /// Exit status: the last command's, or the first failing one's under `set -e`; 2 where the script was refused.
    pub status: i32,
}

impl ScriptOutput {
    /// All that was printed to standard output.
    pub fn stdout(&self) -> String {
        self.lines.iter().map(|l| l.output.stdout.as_str()).collect()
    }
    /// All that was printed to standard error.
    pub fn stderr(&self) -> String {
        self.lines.iter().map(|l| l.output.stderr.as_str()).collect()
    }
    /// All findings in order, with their places.
    pub fn diagnostics(&self) -> impl Iterator<Item = &Diagnostic> {
        self.refused.iter().chain(self.lines.iter().flat_map(|l| &l.output.diagnostics))
    }
}

/// A program's outcome before it is placed: standard output, standard error, status, findings.
pub(crate) type Ran = Output;

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
    /// The finding's place: word `at` of the line.
    pub(crate) fn at_word(mut self, line: &Line, at: usize) -> Output {
        if let (Some(word), Some(d)) = (line.words.get(at), self.diagnostics.first_mut()) {
            (d.line, d.column, d.len) = (word.line, word.column, word.len);
        }
        self
    }
}

impl Host {
    /// Runs one command line at `now`: `sudo` in front, quotes, `;`, `2>/dev/null`, `|| true` are understood. Of several
    /// commands the last one's status counts. A command that fails changes nothing.
    ///
    /// What follows from it (a queue that may go on, packets a changed qdisc threw away) is taken by
    /// [`Host::take_effects`].
    pub fn exec(&mut self, line: &str, now: Time) -> Output {
        let lines = match token::script(line) {
            Ok(lines) => lines,
            Err(diagnostics) => return refused_line(diagnostics),
        };
        let mut all = Output::default();
        for line in &lines {
            let one = self.run_line(line, "", &mut NoFiles, now);
            all.stdout.push_str(&one.stdout);
            all.stderr.push_str(&one.stderr);
            all.diagnostics.extend(one.diagnostics);
            all.status = one.status;
        }
        all
    }

    /// Runs one command at `now`, its words as a process gets them; `files` lends what it reads.
    pub fn command(&mut self, words: &[String], files: &mut dyn Files, now: Time) -> Output {
        self.run_line(&Line::of_words(words), "", files, now)
    }

    /// Runs a script at `now`; `name` is the file's, for the places of findings.
    pub fn exec_script(&mut self, text: &str, name: &str, now: Time) -> ScriptOutput {
        let lines = match token::script(text) {
            Ok(lines) => lines,
            Err(mut refused) => {
                for d in &mut refused {
                    d.file = name.to_owned();
                }
                return ScriptOutput { lines: Vec::new(), refused, status: 2 };
            }
        };
        let mut result = ScriptOutput::default();
        let mut errexit = false;
        for line in &lines {
            let words: Vec<&str> = line.words.iter().map(|w| w.text.as_str()).collect();
            match words.as_slice() {
                ["set", flags @ ..] => {
                    for flag in flags {
                        errexit = match flag.strip_prefix('-') {
                            Some(on) if on.contains('e') => true,
                            _ if flag.starts_with('+') && flag.contains('e') => false,
                            _ => errexit,
                        };
                    }
                    result.status = 0;
                    continue;
                }
                ["exit", status @ ..] => {
                    let given = status.first().and_then(|s| s.parse::<u8>().ok());
                    result.status = given.map_or(result.status, i32::from);
                    break;
                }
                _ => {}
            }
            let output = self.run_line(line, name, &mut NoFiles, now);
            result.status = output.status;
            let stop = errexit && output.status != 0;
            let source = line.source.clone();
            result.lines.push(Executed { number: line.number, source, output });
            if stop {
                break;
            }
        }
        result
    }

    fn run_line(&mut self, line: &Line, file: &str, files: &mut dyn Files, now: Time) -> Output {
        let mut out = self.run_program(line, files, now);
        self.tell_ports();
        if let Some(path) = &line.to_setting
            && out.status == 0
        {
            let text = std::mem::take(&mut out.stdout);
            out = self.write_setting(path, &text, now);
        }
        if line.quiet_errors {
            out.stderr.clear();
        }
        if line.quiet_output {
            out.stdout.clear();
        }
        if line.may_fail && out.status != 0 {
            out.status = 0;
            out.diagnostics.clear();
        }
        out.diagnostics = out.diagnostics.into_iter().map(|d| line.place(file, d)).collect();
        out
    }

    fn run_program(&mut self, line: &Line, files: &mut dyn Files, now: Time) -> Ran {
        let Some(first) = line.words.first() else { return Output::default() };
        let path = first.text.as_str();
        let program = match path.rsplit_once('/') {
            Some(("/bin" | "/sbin" | "/usr/bin" | "/usr/sbin", name)) => name,
            _ => path,
        };
        if let Some(filter) = netfilter::program(program) {
            return self.packet_filter(filter, line, files, now);
        }
        match program {
            "true" | ":" | "sync" => Output::default(),
            "false" => Output { status: 1, ..Output::default() },
            "echo" => {
                let words: Vec<&str> = line.words[1..].iter().map(|w| w.text.as_str()).collect();
                let (words, end) = match words.split_first() {
                    Some((&"-n", rest)) => (rest.to_vec(), ""),
                    _ => (words, "\n"),
                };
                Output::say(words.join(" ") + end)
            }
            "hostname" if line.words.len() == 1 => Output::say(format!("{}\n", self.name)),
            "uname" => self.uname(line),
            "cat" => self.cat(line),
            "tee" => self.tee(line, files, now),
            "ls" => self.ls(line),
            "lsmod" => self.lsmod(),
            "modprobe" => self.modprobe(line, now),
            "rmmod" => self.rmmod(line, now),
            "ethtool" => self.ethtool(line),
            "ifconfig" => self.ifconfig(line, now),
            "route" => self.route_tool(line, now),
            "arp" => self.arp_tool(line, now),
            "brctl" => self.brctl(line, now),
            "netstat" if line.words.get(1).is_some_and(|w| w.text.contains('r')) => {
                Output::say(self.route_table(line.words[1].text.contains('n'), 1))
            }
            "sysctl" => self.sysctl(line, files),
            "nft" => self.nft(line, files),
            "tc" => match netns_of_tc(line) {
                None => self.tc(line, files, now),
                Some((name, line)) => {
                    let run = |host: &mut Host| host.tc(&line, files, now);
                    match self.space_of(&name).and_then(|space| self.in_space(space, run)) {
                        Some(ran) => ran,
                        None => {
                            Output::fail(crate::netns::no_space(&name), 255, "ip netns lists the namespaces")
                        }
                    }
                }
            },
            "ip" => self.ip(line, files, now),
            "ipchains" => self.ipchains(line),
            "ipfwadm" => {
                let said = "ipfwadm is Linux 2.0's: ipchains (2.2) and iptables took its place";
                Output::fail(format!("{program}: {said}\n"), 1, "")
            }
            _ if path.contains('/') => {
                Output::fail(format!("bash: {path}: No such file or directory\n"), 127, "")
            }
            _ => {
                let help = "programs here: tc ip iptables ip6tables nft ipchains sysctl ethtool ifconfig route arp brctl modprobe echo cat";
                Output::fail(format!("bash: {path}: command not found\n"), 127, help)
            }
        }
    }

    fn uname(&self, line: &Line) -> Ran {
        let release = match self.kernel {
            penstock_model::Kernel::V2_6_35 => "2.6.35-22-generic",
            penstock_model::Kernel::V6_12 => "6.12.0",
        };
        match line.words.get(1).map(|w| w.text.as_str()) {
            Some("-r") => Output::say(format!("{release}\n")),
            Some("-n") => Output::say(format!("{}\n", self.name)),
            Some("-a") => Output::say(format!("Linux {} {release} GNU/Linux\n", self.name)),
            _ => Output::say("Linux\n"),
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

fn refused_line(diagnostics: Vec<Diagnostic>) -> Output {
    let first = diagnostics.first().map_or("", |d| d.message.as_str());
    Output { stdout: String::new(), stderr: format!("bash: {first}\n"), status: 2, diagnostics }
}
