//! `iptables` and `ip6tables`, with `-save` and `-restore`: their command lines to data, their listings and their
//! refusals word for word.
//!
//! [parse()] is the program's own half: grammar and extensions. What is legal in the tables as they stand (chains
//! there are, loops, hooks a target is for) is the kernel's half and lives with the tables.
//!
//! Follows: iptables 1.8.9 (legacy) for 6.12, iptables 1.4.4 for 2.6.35; `iptables/iptables.c`, `ip6tables.c`,
//! `xshared.c`, `iptables-save.c`, `iptables-restore.c`, `libxtables/xtoptions.c`, `extensions/lib*.c`.
//! Differs: names of hosts and networks are not looked up, users and groups only by the names every Debian has; whether a
//! set is there is asked where the rules are; matches and targets beyond those in [`extension`]'s file and the parser's tables are refused as not installed;
//! extensions that 1.4.4 did not have are taken under 2.6.35 too.

pub mod asks;
pub mod extension;
mod parse;
pub mod restore;
pub mod rule;
mod show;

pub use asks::{
    Asks, Connlimit, Counter, Direction, HashTable, Hashlimit, Owner, Physdev, Recent, RecentOp, Rpfilter,
    SetAsk, SetName, SetTarget, Times,
};
pub use extension::{
    ADDR_TYPES, ConnCount, ConnDir, Connmark, Conntrack, Edit, Match, Plain, PortKind, PortMatch, Ports,
    Statistic, Target, TcpMatch, U32Test, ZoneOf, reject_names,
};
pub(crate) use parse::PROTOCOLS;
pub use parse::parse;
pub use rule::{AddrMatch, Chain, Counted, Family, Iface, Rule, Table, Verdict};
pub use show::{list, print_rule, print_target, save, save_all};

use penstock_model::Kernel;

/// Who is speaking: it stands before every message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Program {
    /// Which of the two.
    pub family: Family,
    /// Which version.
    pub kernel: Kernel,
    /// The line of its input where it is `-restore`, from 1.
    pub line: Option<u32>,
}

/// What one command line asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// Who read it.
    pub program: Program,
    /// `-t`; `filter` where none is given.
    pub table: Table,
    /// What to do.
    pub action: Action,
    /// How often `-v` was given.
    pub verbose: u32,
    /// What is said on standard error although nothing is wrong.
    pub warnings: String,
}

/// Packets and bytes.
pub type Counters = (u64, u64);

/// The commands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// `-A`: a rule for each pair of addresses, and counters (`-c`).
    Append(String, Vec<Rule>, Counters),
    /// `-I`, before the rule with this number, from 1.
    Insert(String, u32, Vec<Rule>, Counters),
    /// `-D` by rule.
    Delete(String, Vec<Rule>),
    /// `-D` by number, from 1.
    DeleteNumber(String, u32),
    /// `-R`.
    Replace(String, u32, Box<Rule>, Counters),
    /// `-C`.
    Check(String, Vec<Rule>),
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
    /// `-P`, with counters where `-c` is given.
    Policy(String, String, Option<Counters>),
    /// `-L`, followed by `-Z` where both are given.
    List(Listing),
    /// `-S`.
    Save(Listing),
    /// `-h`, `-V`: text for standard output.
    Say(String),
    /// A line of a file that is for the other family.
    Nothing,
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

impl Program {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match (self.family, self.line.is_some()) {
            (Family::Ip, false) => "iptables",
            (Family::Ip6, false) => "ip6tables",
            (Family::Ip, true) => "iptables-restore",
            (Family::Ip6, true) => "ip6tables-restore",
        }
    }
    /// Its version.
    pub const fn version(self) -> &'static str {
        match self.kernel {
            Kernel::V2_6_35 => "1.4.4",
            Kernel::V6_12 | Kernel::V7_2 => "1.8.9 (legacy)",
        }
    }
    /// How it names itself in its messages and with `-V`.
    pub fn version_line(self) -> String {
        format!("{} v{}", self.name(), self.version())
    }
    /// Where help is.
    pub fn try_help(self) -> String {
        let name = self.name();
        format!("Try `{name} -h' or '{name} --help' for more information.")
    }
    /// A wrong command line (`PARAMETER_PROBLEM`): exit status 2 and where help is.
    pub fn parameter(self, word: usize, message: impl AsRef<str>, help: &str) -> Failure {
        let place = self.line.map_or(String::new(), |n| format!("Error occurred at line: {n}\n"));
        let (version, message) = (self.version_line(), message.as_ref());
        let stderr = format!("{version}: {message}\n{place}{}\n", self.try_help());
        Failure { stderr, exit: 2, word, help: help.to_owned() }
    }
    /// The kernel's refusal, or libiptc's: exit status 1. `-restore` only says on which line.
    pub fn refused(self, message: &str, help: &str) -> Failure {
        let name = self.name();
        let (stderr, help) = match self.line {
            None => (format!("{name}: {message}.\n"), help.to_owned()),
            Some(n) => (format!("{name}: line {n} failed\n"), format!("{message}; {help}")),
        };
        Failure { stderr, exit: 1, word: 0, help }
    }
    /// EINVAL at the commit: a target or match where it may not stand.
    pub fn invalid(self, help: &str) -> Failure {
        self.refused("Invalid argument. Run `dmesg' for more information", help)
    }
    /// A jump to something that is neither a chain there is nor a target.
    pub fn no_target(self, name: &str) -> Failure {
        parse::no_target(self, name)
    }
    /// `-t` with a name that is not a table's.
    pub fn no_such_table(self, name: &str) -> Failure {
        let stderr = format!(
            "{}: can't initialize {} table `{name}': Table does not exist (do you need to insmod?)\nPerhaps {} or your kernel needs to be upgraded.\n",
            self.version_line(),
            self.family.program(),
            self.name(),
        );
        Failure { stderr, exit: 3, word: 0, help: "tables: raw, mangle, nat, filter, security".to_owned() }
    }
}

impl Failure {
    /// The first line, for a diagnostic.
    pub fn message(&self) -> &str {
        self.stderr.lines().next().unwrap_or("")
    }
}
