//! Tables, chains and rules as plain data.
//!
//! Follows: linux v6.12 `include/uapi/linux/netfilter_ipv4/ip_tables.h` `struct ipt_entry`, `struct ipt_ip`, and the
//! structures of the extensions (`xt_tcpudp.h`, `xt_mark.h`, …).

use penstock_model::Handle;
use std::net::Ipv4Addr;

/// A table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Table {
    /// `mangle`: all five hooks.
    Mangle,
    /// `filter`: INPUT, FORWARD, OUTPUT.
    Filter,
}

impl Table {
    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Mangle => "mangle",
            Table::Filter => "filter",
        }
    }
    /// Its built-in chains in the order of the hooks.
    pub const fn built_in(self) -> &'static [&'static str] {
        match self {
            Table::Mangle => &["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"],
            Table::Filter => &["INPUT", "FORWARD", "OUTPUT"],
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

/// `-s`, `-d`: an address and a mask.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AddrMatch {
    /// Address, masked.
    pub addr: u32,
    /// Mask; need not be a prefix.
    pub mask: u32,
    /// `!`.
    pub invert: bool,
}

impl AddrMatch {
    /// Whether an address fits.
    #[inline]
    pub fn matches(&self, addr: Ipv4Addr) -> bool {
        ((u32::from(addr) & self.mask) == self.addr) != self.invert
    }
}

/// A range of ports, ends included.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ports {
    /// First.
    pub from: u16,
    /// Last.
    pub to: u16,
}

impl Ports {
    /// Every port.
    pub const ALL: Ports = Ports { from: 0, to: 65_535 };
    /// Whether a port lies within.
    #[inline]
    pub const fn holds(self, port: u16) -> bool {
        self.from <= port && port <= self.to
    }
}

/// One side's ports in a tcp or udp match.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortMatch {
    /// The range.
    pub ports: Ports,
    /// `!`.
    pub invert: bool,
}

impl PortMatch {
    /// Matches every port.
    pub const ANY: PortMatch = PortMatch { ports: Ports::ALL, invert: false };
    /// Whether a port fits.
    #[inline]
    pub const fn matches(self, port: u16) -> bool {
        self.ports.holds(port) != self.invert
    }
}

/// `-m tcp`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpMatch {
    /// `--sport`.
    pub sport: PortMatch,
    /// `--dport`.
    pub dport: PortMatch,
    /// `--tcp-flags`: the flags looked at and those that must be set of them; both 0 for none.
    pub flags: (u8, u8),
    /// `!` before `--tcp-flags` or `--syn`.
    pub invert_flags: bool,
}

/// Which ports `-m multiport` looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PortKind {
    /// `--sports`.
    Source,
    /// `--dports`.
    Destination,
    /// `--ports`: either.
    Either,
}

/// A match extension.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Match {
    /// `-m tcp`.
    Tcp(TcpMatch),
    /// `-m udp`: source and destination ports.
    Udp(PortMatch, PortMatch),
    /// `-m icmp`: type (255: any) and the range of codes.
    Icmp {
        /// Type; 255 is any.
        ty: u8,
        /// First and last code.
        code: (u8, u8),
        /// `!`.
        invert: bool,
    },
    /// `-m mark`.
    Mark {
        /// Value.
        mark: u32,
        /// Bits looked at.
        mask: u32,
        /// `!`.
        invert: bool,
    },
    /// `-m multiport`, at most 15 ports; a range counts twice.
    Multiport {
        /// Which.
        kind: PortKind,
        /// The ports; single ones are ranges of one.
        ports: Vec<Ports>,
        /// `!`.
        invert: bool,
    },
    /// `-m dscp`.
    Dscp {
        /// 0..=63.
        dscp: u8,
        /// `!`.
        invert: bool,
    },
    /// `-m tos`.
    Tos {
        /// Value.
        value: u8,
        /// Bits looked at.
        mask: u8,
        /// `!`.
        invert: bool,
    },
    /// `-m length`: of the IP packet, bytes.
    Length {
        /// Least.
        min: u16,
        /// Most.
        max: u16,
        /// `!`.
        invert: bool,
    },
    /// `-m ttl`.
    Ttl {
        /// Compared with.
        ttl: u8,
        /// -1 less than, 0 equal, 1 greater than, 2 not equal.
        mode: i8,
    },
    /// `-m limit`: so many packets in a while, after a burst.
    Limit {
        /// Packets in `per`.
        amount: u32,
        /// 1 s, 60 s, 3,600 s or 86,400 s.
        per_s: u32,
        /// Burst, packets. Default 5.
        burst: u32,
    },
    /// `-m comment`.
    Comment(String),
}

/// What a rule does with a packet that fits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// Count it, nothing else.
    None,
    /// `ACCEPT`, `DROP`.
    Verdict(Verdict),
    /// `RETURN`.
    Return,
    /// `-j` to a chain of the user's.
    Jump(String),
    /// `-g`: the same without coming back here.
    Goto(String),
    /// `MARK`: `mark = (mark & !mask) ^ value`.
    Mark {
        /// Value.
        value: u32,
        /// Mask.
        mask: u32,
    },
    /// `TOS`: `tos = (tos & !mask) ^ value`.
    Tos {
        /// Value.
        value: u8,
        /// Mask.
        mask: u8,
    },
    /// `DSCP`, 0..=63.
    Dscp(u8),
    /// `CLASSIFY`: `skb->priority`.
    Classify(Handle),
}

impl Target {
    /// Its name in the target column; empty for none.
    pub fn name(&self) -> &str {
        match self {
            Target::None => "",
            Target::Verdict(v) => v.name(),
            Target::Return => "RETURN",
            Target::Jump(chain) | Target::Goto(chain) => chain,
            Target::Mark { .. } => "MARK",
            Target::Tos { .. } => "TOS",
            Target::Dscp(_) => "DSCP",
            Target::Classify(_) => "CLASSIFY",
        }
    }
}

/// One rule.
#[derive(Clone, PartialEq, Eq, Debug)]
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

impl Default for Rule {
    fn default() -> Rule {
        Rule {
            input: None,
            output: None,
            src: None,
            dst: None,
            protocol: None,
            fragment: None,
            matches: Vec::new(),
            target: Target::None,
        }
    }
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
