//! `ipchains` of Linux 2.2: its command lines to data, its listings and its refusals word for word.
//!
//! [parse()] is the program's own half. Which chains there are, and what may be done to them, is the kernel's half and lives with the
//! chains.
//!
//! Follows: ipchains 1.3.9 `ipchains.c`, `libipfwc.c`; linux 2.2 `include/linux/ip_fwchains.h`.
//! Differs: names of hosts and networks are not looked up; `-C`, `-M` and `-S` are refused (there is no masquerading here);
//! `-l` and `-o` are kept and shown, and nothing listens.

mod parse;
mod show;
mod value;

pub use parse::parse;
pub use show::{list, print_rule};

use crate::iptables::AddrMatch;
use crate::services;

/// The built-in chains, in the kernel's order.
pub const BUILT_IN: [&str; 3] = ["input", "forward", "output"];
/// Longest name of a chain (`IP_FW_MAX_LABEL_LENGTH`), characters.
pub const MAX_LABEL: usize = 8;
/// `ipchains -V`.
pub const VERSION: &str = "ipchains 1.3.9, 17-Mar-1999";

/// A range of ports, or of ICMP types or codes, and whether `!` stood before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    /// Least.
    pub from: u16,
    /// Greatest.
    pub to: u16,
    /// `!`.
    pub invert: bool,
}

impl Range {
    /// Any port, which later fragments have too.
    pub const ANY: Range = Range { from: 0, to: 0xffff, invert: false };

    /// Whether every port is in it.
    pub const fn is_any(self) -> bool {
        self.from == 0 && self.to == 0xffff
    }
    /// `port_match`: `None` is the port of a later fragment, which only the whole range fits.
    pub fn matches(self, port: Option<u16>) -> bool {
        match port {
            None => self.is_any(),
            Some(port) => (self.from..=self.to).contains(&port) != self.invert,
        }
    }
}

/// What a rule does to the mark of a packet that fits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mark {
    /// `-m 3`: sets it.
    Set(u32),
    /// `-m +3`, `-m -3`: adds to it, in 32 bits; 0 where no `-m` is given.
    Add(u32),
}

/// One rule (`struct ip_fwuser`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// `-s`.
    pub src: AddrMatch,
    /// `-d`.
    pub dst: AddrMatch,
    /// `-p`; 0: all.
    pub protocol: u16,
    /// `-p !`.
    pub not_protocol: bool,
    /// Source ports; of ICMP the types.
    pub sports: Range,
    /// Destination ports; of ICMP the codes.
    pub dports: Range,
    /// `-y`, and whether inverted: the first packet of a TCP connection.
    pub syn: Option<bool>,
    /// `-f`, and whether inverted: second and later fragments.
    pub fragment: Option<bool>,
    /// `-i`: the interface's name, without the `+` at its end.
    pub iface: String,
    /// Whether it only begins so.
    pub iface_wild: bool,
    /// `-i !`.
    pub not_iface: bool,
    /// `-l`.
    pub log: bool,
    /// `-o`: so many bytes of a packet for whoever listens.
    pub netlink: Option<u16>,
    /// `-m`.
    pub mark: Mark,
    /// `-t`: the ToS byte is and-ed with the first and xor-ed with the second.
    pub tos: (u8, u8),
    /// `-j`; empty: only counted.
    pub target: String,
    /// The port of `-j REDIRECT`; 0: the packet's own.
    pub redirect: u16,
}

impl Default for Rule {
    fn default() -> Rule {
        let any = AddrMatch { addr: 0, mask: 0, invert: false };
        Rule {
            src: any,
            dst: any,
            protocol: 0,
            not_protocol: false,
            sports: Range::ANY,
            dports: Range::ANY,
            syn: None,
            fragment: None,
            iface: String::new(),
            iface_wild: false,
            not_iface: false,
            log: false,
            netlink: None,
            mark: Mark::Add(0),
            tos: (0xff, 0),
            target: String::new(),
            redirect: 0,
        }
    }
}

impl Rule {
    /// What `-b` adds: source and destination exchanged (`swap_info`).
    fn reversed(&self) -> Rule {
        let mut other = Rule { src: self.dst, dst: self.src, ..self.clone() };
        if self.protocol != 1 {
            (other.sports, other.dports) = (self.dports, self.sports);
        }
        other
    }
    /// Whether `-D` with `other` takes this rule: marks and ToS masks are not compared (`del_rule_from_chain`).
    pub fn same(&self, other: &Rule) -> bool {
        let plain = |r: &Rule| Rule { mark: Mark::Add(0), tos: (0xff, 0), ..r.clone() };
        plain(self) == plain(other)
    }
}

/// A chain as it is listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// Name, at most [`MAX_LABEL`] characters.
    pub name: String,
    /// `ACCEPT`, `DENY`, `REJECT` or `MASQ`; `None` for the user's.
    pub policy: Option<String>,
    /// Packets the policy decided on.
    pub packets: u64,
    /// Their bytes, as IP packets.
    pub bytes: u64,
    /// Rules that jump here.
    pub references: u32,
    /// Rules with their packets and bytes.
    pub rules: Vec<(Rule, u64, u64)>,
}

/// What a listing shows.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing {
    /// One chain, or all.
    pub chain: Option<String>,
    /// `-n`.
    pub numeric: bool,
    /// `-v`.
    pub verbose: bool,
    /// `-x`.
    pub exact: bool,
    /// `--line-numbers`.
    pub line_numbers: bool,
    /// `-Z` as well.
    pub zero: bool,
}

/// What one command line asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Action {
    /// `-A`; two rules with `-b`.
    Append(String, Vec<Rule>),
    /// `-I`, before the rule with this number, from 1.
    Insert(String, u32, Vec<Rule>),
    /// `-D` by rule.
    Delete(String, Vec<Rule>),
    /// `-D` by number, from 1.
    DeleteNumber(String, u32),
    /// `-R`.
    Replace(String, u32, Box<Rule>),
    /// `-N`.
    NewChain(String),
    /// `-X`; `None`: all of the user's.
    DeleteChain(Option<String>),
    /// `-F`; `None`: all.
    Flush(Option<String>),
    /// `-Z`; `None`: all.
    Zero(Option<String>),
    /// `-P`.
    Policy(String, String),
    /// `-L`.
    List(Listing),
    /// `-h`, `-V`.
    Say(String),
}

/// A command line, read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Command {
    /// What to do.
    pub action: Action,
    /// `-v`.
    pub verbose: bool,
    /// Warnings, for standard output.
    pub warnings: String,
}

/// A refusal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Failure {
    /// Standard error, newlines included.
    pub stderr: String,
    /// Exit status: 1 the kernel refused, 2 a wrong command line.
    pub exit: i32,
    /// Our advice; may be empty.
    pub help: String,
}

impl Failure {
    /// A wrong command line.
    pub(crate) fn parameter(message: impl AsRef<str>, help: &str) -> Failure {
        let message = message.as_ref();
        let stderr =
            format!("ipchains: {message}\nTry `ipchains -h' or 'ipchains --help' for more information.\n");
        Failure { stderr, exit: 2, help: help.to_owned() }
    }
    /// The kernel's refusal, in `ipfwc_strerror`'s words.
    pub fn refused(message: &str, help: &str) -> Failure {
        Failure { stderr: format!("ipchains: {message}\n"), exit: 1, help: help.to_owned() }
    }
}

/// Types of ICMP: name, type, least and greatest code.
pub(crate) const ICMP: [(&str, u16, u16, u16); 37] = [
    ("echo-reply", 0, 0, 0xffff),
    ("pong", 0, 0, 0xffff),
    ("destination-unreachable", 3, 0, 0xffff),
    ("network-unreachable", 3, 0, 0),
    ("host-unreachable", 3, 1, 1),
    ("protocol-unreachable", 3, 2, 2),
    ("port-unreachable", 3, 3, 3),
    ("fragmentation-needed", 3, 4, 4),
    ("source-route-failed", 3, 5, 5),
    ("network-unknown", 3, 6, 6),
    ("host-unknown", 3, 7, 7),
    ("network-prohibited", 3, 9, 9),
    ("host-prohibited", 3, 10, 10),
    ("TOS-network-unreachable", 3, 11, 11),
    ("TOS-host-unreachable", 3, 12, 12),
    ("communication-prohibited", 3, 13, 13),
    ("host-precedence-violation", 3, 14, 14),
    ("precedence-cutoff", 3, 15, 15),
    ("source-quench", 4, 0, 0xffff),
    ("redirect", 5, 0, 0xffff),
    ("network-redirect", 5, 0, 0),
    ("host-redirect", 5, 1, 1),
    ("TOS-network-redirect", 5, 2, 2),
    ("TOS-host-redirect", 5, 3, 3),
    ("echo-request", 8, 0, 0xffff),
    ("ping", 8, 0, 0xffff),
    ("router-advertisement", 9, 0, 0xffff),
    ("router-solicitation", 10, 0, 0xffff),
    ("time-exceeded", 11, 0, 0xffff),
    ("ttl-exceeded", 11, 0, 0xffff),
    ("ttl-zero-during-transit", 11, 0, 0),
    ("ttl-zero-during-reassembly", 11, 1, 1),
    ("parameter-problem", 12, 0, 0xffff),
    ("ip-header-bad", 12, 0, 0),
    ("required-option-missing", 12, 1, 1),
    ("timestamp-request", 13, 0, 0xffff),
    ("timestamp-reply", 14, 0, 0xffff),
];

/// The service of a port.
fn service(port: u16, protocol: u16) -> Option<&'static str> {
    services::name(port, protocol as u8).filter(|_| matches!(protocol, 6 | 17))
}
