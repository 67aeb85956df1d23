//! Tables, chains and rules as plain data.
//!
//! Follows: linux v6.12 `include/uapi/linux/netfilter_ipv4/ip_tables.h` `struct ipt_entry`, `struct ipt_ip`, and the
//! structures of the extensions (`xt_tcpudp.h`, `xt_mark.h`, …).

use super::extension::{Match, Target};
use std::net::{Ipv4Addr, Ipv6Addr};

/// Which of the two programs, and of whose tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Family {
    /// `iptables`: IPv4.
    #[default]
    Ip,
    /// `ip6tables`: IPv6.
    Ip6,
}

impl Family {
    /// Its program.
    pub const fn program(self) -> &'static str {
        match self {
            Family::Ip => "iptables",
            Family::Ip6 => "ip6tables",
        }
    }
    /// Bits of an address: 32 or 128.
    pub const fn bits(self) -> u32 {
        match self {
            Family::Ip => 32,
            Family::Ip6 => 128,
        }
    }
    /// The mask of a prefix.
    pub const fn mask(self, len: u32) -> u128 {
        let all = match self {
            Family::Ip => u32::MAX as u128,
            Family::Ip6 => u128::MAX,
        };
        if len == 0 { 0 } else { all << (self.bits() - len) & all }
    }
    /// An address as it is written.
    pub fn address(self, bits: u128) -> String {
        match self {
            Family::Ip => Ipv4Addr::from(bits as u32).to_string(),
            Family::Ip6 => Ipv6Addr::from(bits).to_string(),
        }
    }
    /// An address as numbers give it (`inet_pton`); `None` for anything else.
    pub fn parse(self, text: &str) -> Option<u128> {
        match self {
            Family::Ip => text.parse::<Ipv4Addr>().ok().map(|a| u128::from(u32::from(a))),
            Family::Ip6 => text.parse::<Ipv6Addr>().ok().map(u128::from),
        }
    }
    /// The length of a mask that is a prefix.
    pub fn prefix(self, mask: u128) -> Option<u32> {
        let len = mask.count_ones();
        (self.mask(len) == mask).then_some(len)
    }
    /// Behind an address: nothing for one host, `/24`, or the mask itself where it is not a prefix.
    pub fn mask_suffix(self, mask: u128) -> String {
        match self.prefix(mask) {
            Some(len) if len == self.bits() => String::new(),
            Some(len) => format!("/{len}"),
            None => format!("/{}", self.address(mask)),
        }
    }
}

/// A table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Table {
    /// `raw`: PREROUTING and OUTPUT, before connections are tracked.
    Raw,
    /// `mangle`: all five hooks.
    Mangle,
    /// `nat`: the first packet of a connection.
    Nat,
    /// `filter`: INPUT, FORWARD, OUTPUT.
    Filter,
    /// `security`: INPUT, FORWARD, OUTPUT.
    Security,
}

impl Table {
    /// All, in the order packets meet them.
    pub const ALL: [Table; 5] = [Table::Raw, Table::Mangle, Table::Nat, Table::Filter, Table::Security];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Raw => "raw",
            Table::Mangle => "mangle",
            Table::Nat => "nat",
            Table::Filter => "filter",
            Table::Security => "security",
        }
    }
    /// The table of this name.
    pub fn named(name: &str) -> Option<Table> {
        Table::ALL.into_iter().find(|t| t.name() == name)
    }
    /// Its built-in chains in the order of the hooks.
    pub const fn built_in(self) -> &'static [&'static str] {
        match self {
            Table::Raw => &["PREROUTING", "OUTPUT"],
            Table::Mangle => &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
            Table::Nat => &["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"],
            Table::Filter | Table::Security => &["INPUT", "FORWARD", "OUTPUT"],
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Verdict {
    /// It goes on, past the rest of this hook's table.
    Accept,
    /// It is gone.
    Drop,
}

impl Verdict {
    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Accept => "ACCEPT",
            Verdict::Drop => "DROP",
        }
    }
}

/// An interface's name in a rule; `eth+` means all that begin with `eth`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Iface {
    /// The name, without the plus sign.
    pub name: String,
    /// Whether it ends in a plus sign.
    pub wildcard: bool,
    /// `!`.
    pub invert: bool,
}

impl Iface {
    /// Whether a device's name (empty: no device) fits.
    #[inline]
    pub fn matches(&self, device: &str) -> bool {
        let fits = if self.wildcard { device.starts_with(&self.name) } else { device == self.name };
        fits != self.invert
    }
    /// As it was written, without `!`.
    pub fn text(&self) -> String {
        format!("{}{}", self.name, if self.wildcard { "+" } else { "" })
    }
}

/// `-s`, `-d`: an address and a mask; an IPv4 address stands in the low 32 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddrMatch {
    /// Address, masked.
    pub addr: u128,
    /// Mask; need not be a prefix.
    pub mask: u128,
    /// `!`.
    pub invert: bool,
}

impl AddrMatch {
    /// Whether an address fits.
    #[inline]
    pub fn matches(&self, addr: u128) -> bool {
        ((addr & self.mask) == self.addr) != self.invert
    }
}

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Rule {
    /// `-i`.
    pub input: Option<Iface>,
    /// `-o`.
    pub output: Option<Iface>,
    /// `-s`.
    pub src: Option<AddrMatch>,
    /// `-d`.
    pub dst: Option<AddrMatch>,
    /// `-p`, and whether inverted. 0 is never kept: it means every protocol.
    pub protocol: Option<(u8, bool)>,
    /// `-f`, and whether inverted.
    pub fragment: Option<bool>,
    /// Extensions in the order given.
    pub matches: Vec<Match>,
    /// What to do.
    pub target: Target,
}

/// A rule with its counters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Counted {
    /// The rule.
    pub rule: Rule,
    /// Packets that fitted.
    pub packets: u64,
    /// Their bytes, IP headers included, Ethernet headers not.
    pub bytes: u64,
}

/// A chain.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    /// Name, at most 28 characters.
    pub name: String,
    /// What becomes of a packet at the end of a built-in chain; `None` for the user's.
    pub policy: Option<Verdict>,
    /// Packets the policy decided on.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Rules that jump here.
    pub references: u32,
    /// Rules in order.
    pub rules: Vec<Counted>,
}
