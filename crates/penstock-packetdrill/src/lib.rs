//! packetdrill's scripts, run on a TCP endpoint of Penstock: no root, no kernel, no wall clock.
//!
//! A script ([`parse`]) makes system calls on the sockets of one machine, puts segments into its device and says which are to leave it, and when.
//! [`run`] does the first two in virtual time and holds the third against what the machine sends. Commands between backquotes are carried out by that
//! machine (`sysctl`, `ip`, `tc`, `ethtool`), by the interpreter of `penstock-shell`.
//!
//! Follows: google/packetdrill 2c4001c.
//! Differs: TCP alone; what is not run (MD5, UDP, ICMP, tunnels, wire mode) is refused by name before the script begins.

mod code;
mod fast;
mod info;
mod lex;
mod net;
mod options;
mod parse;
mod run;
mod script;
mod sys;
mod wire;
mod words;

pub use parse::parse;
pub use script::{Action, Call, Event, Expr, Fault, Packet, Script, TcpOption, Tos, When};

use penstock_model::Kernel;

/// What a run is told.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whose TCP. Default Linux 6.12.
    pub kernel: Kernel,
    /// Timer interrupts per second (CONFIG_HZ). Default 1000, as the scripts are written for.
    pub hz: u32,
    /// Files that commands of the script find: path relative to the script's folder, and text.
    pub files: Vec<(String, String)>,
}

impl Default for Options {
    fn default() -> Options {
        Options { kernel: Kernel::V6_12, hz: 1000, files: Vec::new() }
    }
}

/// What a run has shown.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// What commands and code have printed.
    pub printed: String,
    /// Why the script does not pass; `None`: it does.
    pub failure: Option<Failure>,
}

/// Why a script does not pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// The line of the event, from 1; 0: the script's head, or what cleans up.
    pub line: u32,
    /// What is wrong, in packetdrill's words where it has some.
    pub message: String,
}

/// The files beside a script that its commands name, in texts that `read` gives by their path from the script's folder.
pub fn files_of(script: &Script, read: &mut dyn FnMut(&str) -> Option<String>) -> Vec<(String, String)> {
    let commands = script.events.iter().filter_map(|e| match &e.action {
        Action::Command(text) => Some(text.as_str()),
        _ => None,
    });
    let mut texts: Vec<String> =
        commands.chain(script.init.as_deref()).chain(script.cleanup.as_deref()).map(str::to_owned).collect();
    let mut found: Vec<(String, String)> = Vec::new();
    while let Some(text) = texts.pop() {
        let words = text.split(|c: char| c.is_whitespace() || "\"';&|()<>=".contains(c));
        let paths = words.filter(|w| {
            w.contains('/') && !w.starts_with('/') && w.chars().any(|c| c.is_ascii_alphanumeric())
        });
        for path in paths {
            if found.len() < 100
                && !found.iter().any(|f| f.0 == path)
                && let Some(text) = read(path)
            {
                texts.push(text.clone());
                found.push((path.to_owned(), text));
            }
        }
    }
    found
}

/// Runs a script.
pub fn run(script: &Script, options: &Options) -> Report {
    let mut report = Report::default();
    report.failure = run::run(script, options, &mut report).err();
    report
}
