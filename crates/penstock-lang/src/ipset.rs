//! `ipset`: its command lines to data, its listings and its refusals word for word.
//!
//! [`parse()`] is the program's own half. What is legal in the sets as they stand is the kernel's half and lives with the
//! sets; an [`Error`] is what the kernel answers, and its words are here.
//!
//! Follows: ipset 7.17 `lib/ipset.c`, `parse.c`, `args.c`, `print.c`, `errcode.c`, `session.c`, `ipset_*.c`.
//! Differs: names of hosts are not looked up; `help TYPE`, the interactive `-` and `-file` with `list` and `save` are
//! refused by name.

mod element;
mod error;
pub mod kind;
mod parse;
mod show;
mod value;

pub use error::Error;
pub use kind::{KINDS, Kind};
pub use parse::{parse, words};
pub use show::{Header, element, list, member, sort, xml};

use crate::iptables::Family;

/// What `ipset` calls itself and its version.
pub const VERSION: &str = "ipset v7.17";

/// What netlink carries of a set or an element: each is absent where it was not given.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// The address, or the first of several.
    pub ip: Option<u128>,
    /// The last.
    pub ip_to: Option<u128>,
    /// Length of its prefix.
    pub cidr: Option<u8>,
    /// The second address.
    pub ip2: Option<u128>,
    /// The last of the second.
    pub ip2_to: Option<u128>,
    /// Length of its prefix.
    pub cidr2: Option<u8>,
    /// Port, or type and code of ICMP.
    pub port: Option<u16>,
    /// The last port.
    pub port_to: Option<u16>,
    /// Protocol.
    pub proto: Option<u8>,
    /// Hardware address.
    pub ether: Option<[u8; 6]>,
    /// Firewall mark.
    pub mark: Option<u32>,
    /// Device.
    pub iface: Option<String>,
    /// The device is a bridge's port.
    pub physdev: bool,
    /// `wildcard`: the device's name begins so.
    pub wildcard: bool,
    /// A set that is an element.
    pub name: Option<String>,
    /// `before`, `after`: next to which.
    pub nameref: Option<String>,
    /// Whether `before`.
    pub before: bool,
    /// `nomatch`.
    pub nomatch: bool,
    /// `timeout`, seconds; 0: for ever.
    pub timeout: Option<u32>,
    /// `packets`.
    pub packets: Option<u64>,
    /// `bytes`.
    pub bytes: Option<u64>,
    /// `comment`.
    pub comment: Option<String>,
    /// `skbmark`: mark and mask.
    pub skbmark: Option<(u32, u32)>,
    /// `skbprio`.
    pub skbprio: Option<u32>,
    /// `skbqueue`.
    pub skbqueue: Option<u16>,
    /// `hashsize`.
    pub hashsize: Option<u32>,
    /// `maxelem`.
    pub maxelem: Option<u32>,
    /// `netmask`.
    pub netmask: Option<u8>,
    /// `bitmask`.
    pub bitmask: Option<u128>,
    /// `markmask`.
    pub markmask: Option<u32>,
    /// `size`.
    pub size: Option<u32>,
    /// `bucketsize`.
    pub bucketsize: Option<u8>,
    /// `initval`.
    pub initval: Option<u32>,
    /// `counters`.
    pub counters: bool,
    /// `comment` of a set: its elements may have one.
    pub comments: bool,
    /// `forceadd`.
    pub forceadd: bool,
    /// `skbinfo`.
    pub skbinfo: bool,
}

/// What is to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verb {
    /// `create`.
    Create,
    /// `add`.
    Add,
    /// `del`.
    Del,
    /// `test`.
    Test,
    /// `destroy`.
    Destroy,
    /// `list`.
    List,
    /// `save`.
    Save,
    /// `restore`.
    Restore,
    /// `flush`.
    Flush,
    /// `rename`.
    Rename,
    /// `swap`.
    Swap,
    /// `help`.
    Help,
    /// `version`.
    Version,
    /// `quit`.
    Quit,
}

/// The options that stand before or behind any command.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Env {
    /// `-o save` or `-o plain`: whether as commands.
    pub as_commands: Option<bool>,
    /// `-o xml`.
    pub xml: bool,
    /// `-s`.
    pub sorted: bool,
    /// `-q`.
    pub quiet: bool,
    /// `-!`.
    pub exist: bool,
    /// `-n`.
    pub names: bool,
    /// `-t`.
    pub terse: bool,
    /// `-f`.
    pub file: Option<String>,
}

/// One command.
#[derive(Clone, PartialEq, Debug)]
pub struct Command {
    /// What to do.
    pub verb: Verb,
    /// The set's name.
    pub set: Option<String>,
    /// The other's, of `rename` and `swap`.
    pub other: Option<String>,
    /// Its type: of the new set, or of the one that is there.
    pub kind: Option<&'static Kind>,
    /// Its family; none for a type without one.
    pub family: Option<Family>,
    /// The rest.
    pub attributes: Attributes,
    /// The options.
    pub env: Env,
    /// What is said although nothing is wrong.
    pub warnings: String,
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Standard error, newlines included.
    pub stderr: String,
    /// Exit status: 1 the kernel or a wrong value, 2 a wrong command line.
    pub exit: i32,
    /// Place of the word that is wrong in the command's words; 0 where it is the command as a whole.
    pub word: usize,
    /// Our advice; may be empty.
    pub help: String,
}

impl Failure {
    /// A wrong command line: where help is.
    pub fn parameter(message: &str) -> Failure {
        let stderr = format!("{VERSION}: {message}\nTry `ipset help' for more information.\n");
        Failure { stderr, exit: 2, word: 0, help: String::new() }
    }
    /// Something else.
    pub fn other(message: &str) -> Failure {
        Failure { stderr: format!("{VERSION}: {message}\n"), exit: 1, word: 0, help: String::new() }
    }
    /// The session's report: with the line's number in a restored file (0: none).
    pub fn report(line: u32, message: &str) -> Failure {
        let place = if line == 0 { String::new() } else { format!("Error in line {line}: ") };
        Failure::other(&format!("{place}{message}"))
    }
    /// With the word that is wrong.
    #[must_use]
    pub fn at(mut self, word: usize) -> Failure {
        self.word = word;
        self
    }
    /// With advice.
    #[must_use]
    pub fn advise(mut self, help: &str) -> Failure {
        help.clone_into(&mut self.help);
        self
    }
}
