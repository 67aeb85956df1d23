//! `iptables`: its command lines to data, its listings and its refusals word for word.
//!
//! [`parse`] is the program's own half: grammar and extensions. What is legal in the tables as they stand (chains
//! there are, loops, hooks a target is for) is the kernel's half and lives with the tables.
//!
//! Follows: iptables 1.8.9 (legacy) for 6.12, iptables 1.4.4 for 2.6.35; `iptables/iptables.c`, `xshared.c`,
//! `extensions/libxt_*.c`, `libipt_icmp.c`.
//! Differs: no `nat`, `raw` and `security` tables, no names of hosts and networks; services by a short list of names;
//! the matches and targets named in [`rule`].

mod parse;
pub mod rule;
mod show;

pub use parse::parse;
pub use rule::{
    AddrMatch, Chain, Counted, Iface, Match, PortKind, PortMatch, Ports, Rule, Table, Target, TcpMatch,
    Verdict,
};
pub use show::{list, save};

use penstock_model::Kernel;

/// What one command line asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// `-t`; `filter` where none is given.
    pub table: Table,
    /// What to do.
    pub action: Action,
}

/// The commands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// `-A`.
    Append(String, Rule),
    /// `-I`, before the rule with this number, from 1.
    Insert(String, u32, Rule),
    /// `-D` by rule.
    Delete(String, Rule),
    /// `-D` by number, from 1.
    DeleteNumber(String, u32),
    /// `-R`.
    Replace(String, u32, Rule),
    /// `-C`.
    Check(String, Rule),
    /// `-N`.
    NewChain(String),
    /// `-X`; `None`: all chains of the user's that are empty and not referred to.
    DeleteChain(Option<String>),
    /// `-E`.
    Rename(String, String),
    /// `-F`; `None`: all chains.
    Flush(Option<String>),
    /// `-Z`; `None`: all chains; with a number one rule only.
    Zero(Option<String>, Option<u32>),
    /// `-P`.
    Policy(String, String),
    /// `-L`, followed by `-Z` where both are given.
    List(Listing),
    /// `-S`.
    Save(Listing),
    /// `-h`, `-V`: text for standard output.
    Say(String),
}

/// What a listing shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// One chain, or all.
    pub chain: Option<String>,
    /// One rule, from 1.
    pub number: Option<u32>,
    /// `-n`: numbers in place of names.
    pub numeric: bool,
    /// `-v`: counters and interfaces.
    pub verbose: bool,
    /// `-x`: counters in full.
    pub exact: bool,
    /// `--line-numbers`.
    pub line_numbers: bool,
    /// `-Z` as well: counters are set to zero after they are shown.
    pub zero: bool,
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Standard error, newlines included.
    pub stderr: String,
    /// Exit status: 1 the kernel refused, 2 a wrong command line, 3 no such table, 4 a resource.
    pub exit: i32,
    /// Place of the word that is wrong in the command's words; 0 where it is the command as a whole.
    pub word: usize,
    /// Our advice; may be empty.
    pub help: String,
}

/// How the program names itself in its messages.
pub const fn version(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::V2_6_35 => "iptables v1.4.4",
        Kernel::V6_12 => "iptables v1.8.9 (legacy)",
    }
}

impl Failure {
    /// A wrong command line (`PARAMETER_PROBLEM`): exit status 2 and where help is.
    pub fn parameter(kernel: Kernel, word: usize, message: impl AsRef<str>, help: &str) -> Failure {
        let (version, message) = (version(kernel), message.as_ref());
        let stderr =
            format!("{version}: {message}\nTry `iptables -h' or 'iptables --help' for more information.\n");
        Failure { stderr, exit: 2, word, help: help.to_owned() }
    }
    /// The kernel's refusal, or libiptc's: exit status 1.
    pub fn kernel(message: &str, help: &str) -> Failure {
        Failure { stderr: format!("iptables: {message}.\n"), exit: 1, word: 0, help: help.to_owned() }
    }
    /// A jump to something that is neither a chain there is nor a target.
    pub fn no_target(kernel: Kernel, name: &str) -> Failure {
        parse::no_target(kernel, name)
    }
    /// EINVAL at the commit: a target or match where it may not stand.
    pub fn invalid(help: &str) -> Failure {
        let stderr = "iptables: Invalid argument. Run `dmesg' for more information.\n".to_owned();
        Failure { stderr, exit: 1, word: 0, help: help.to_owned() }
    }
    /// The first line, for a diagnostic.
    pub fn message(&self) -> &str {
        self.stderr.lines().next().unwrap_or("")
    }
}
