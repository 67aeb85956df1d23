//! Matches and targets as plain data.
//!
//! Follows: linux v6.12 `include/uapi/linux/netfilter/xt_*.h`, `netfilter_ipv4/ipt_*.h`, `netfilter_ipv6/ip6t_*.h`.

use super::asks::{Asks, SetTarget};
use super::rule::{AddrMatch, Family, Verdict};
use penstock_model::Handle;

/// An extension's words: they are kept as they were read, and shown so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plain {
    /// Its name.
    pub name: String,
    /// As `-S` writes its options, each with a blank before it.
    pub save: String,
    /// As `-L` shows it, without the blank before it.
    pub list: String,
    /// As `-L -n` shows it.
    pub numeric: String,
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
    /// `--tcp-option`: an option's number, and `!`.
    pub option: Option<(u8, bool)>,
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
    /// `-m icmp` (type 255: any), `-m icmp6`: type and the range of codes.
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
    /// `-m ttl`, `-m hl`.
    Ttl {
        /// Compared with.
        ttl: u8,
        /// -1 less than, 0 equal, 1 greater than, 2 not equal.
        mode: i8,
    },
    /// `-m limit`: so many packets in a while, after a burst.
    Limit {
        /// The mean gap between packets, ten thousandths of a second.
        period: u32,
        /// Burst, packets. Default 5.
        burst: u32,
    },
    /// `-m comment`.
    Comment(String),
    /// `-m connmark`.
    Connmark {
        /// Value.
        mark: u32,
        /// Bits looked at.
        mask: u32,
        /// `!`.
        invert: bool,
    },
    /// `-m conntrack`, `-m state`.
    Conntrack(Conntrack),
    /// `-m connbytes`.
    Connbytes {
        /// Least; greater than `to` where inverted.
        from: u64,
        /// Most.
        to: u64,
        /// What is counted.
        what: ConnCount,
        /// Of which direction.
        dir: ConnDir,
    },
    /// `-m mac`: the sender's hardware address.
    Mac {
        /// The address.
        mac: [u8; 6],
        /// `!`.
        invert: bool,
    },
    /// `-m iprange`: source and destination ranges, each with its `!`.
    Iprange {
        /// `--src-range`: first, last, inverted.
        src: Option<(u128, u128, bool)>,
        /// `--dst-range`.
        dst: Option<(u128, u128, bool)>,
    },
    /// `-m addrtype`.
    Addrtype {
        /// `--src-type`: types ([`ADDR_TYPES`], a bit each) and `!`.
        src: (u16, bool),
        /// `--dst-type`.
        dst: (u16, bool),
        /// `--limit-iface-in`.
        limit_in: bool,
        /// `--limit-iface-out`.
        limit_out: bool,
    },
    /// `-m pkttype`: 0 to this host, 1 broadcast, 2 multicast, 3 to another host.
    Pkttype {
        /// Which.
        ty: u8,
        /// `!`.
        invert: bool,
    },
    /// `-m statistic`.
    Statistic {
        /// How the packets are chosen.
        mode: Statistic,
        /// `!`.
        invert: bool,
    },
    /// `-m ecn`.
    Ecn {
        /// `--ecn-tcp-ece`: whether inverted.
        ece: Option<bool>,
        /// `--ecn-tcp-cwr`.
        cwr: Option<bool>,
        /// `--ecn-ip-ect`: the codepoint and `!`.
        ect: Option<(u8, bool)>,
    },
    /// `-m u32`.
    U32 {
        /// Tests, all of which must hold.
        tests: Vec<U32Test>,
        /// `!`.
        invert: bool,
    },
    /// One whose words are kept as they were read, and what it asks.
    Worded(Plain, Asks),
    /// One that nothing is done with.
    Plain(Plain),
}

/// Kinds of addresses as `-m addrtype` names them, in the order of their bits.
pub const ADDR_TYPES: [&str; 12] = [
    "UNSPEC",
    "UNICAST",
    "LOCAL",
    "BROADCAST",
    "ANYCAST",
    "MULTICAST",
    "BLACKHOLE",
    "UNREACHABLE",
    "PROHIBIT",
    "THROW",
    "NAT",
    "XRESOLVE",
];

/// What `-m connbytes` counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnCount {
    /// `packets`.
    Packets,
    /// `bytes`.
    Bytes,
    /// `avgpkt`: bytes a packet.
    Average,
}

/// Of which direction of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnDir {
    /// `original`.
    Original,
    /// `reply`.
    Reply,
    /// `both`.
    Both,
}

/// How `-m statistic` chooses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statistic {
    /// By dice: the probability in 2^-31.
    Random(u32),
    /// Every so many-th, the first after `packet`.
    Nth {
        /// One of so many.
        every: u32,
        /// Which, from 0.
        packet: u32,
    },
}

/// One test of `-m u32`: a place reached by steps, and the ranges its value must lie in.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct U32Test {
    /// Operator (`&`, `<`, `>`, `@`; the first is not looked at) and number.
    pub steps: Vec<(char, u32)>,
    /// First and last value.
    pub values: Vec<(u32, u32)>,
}

/// States of a connection, bits of [`Conntrack::states`].
pub mod state {
    /// INVALID.
    pub const INVALID: u8 = 1;
    /// NEW.
    pub const NEW: u8 = 2;
    /// RELATED.
    pub const RELATED: u8 = 4;
    /// ESTABLISHED.
    pub const ESTABLISHED: u8 = 8;
    /// UNTRACKED.
    pub const UNTRACKED: u8 = 16;
    /// SNAT.
    pub const SNAT: u8 = 32;
    /// DNAT.
    pub const DNAT: u8 = 64;
    /// Names in the order they are written.
    pub const NAMES: [(&str, u8); 7] = [
        ("INVALID", INVALID),
        ("NEW", NEW),
        ("RELATED", RELATED),
        ("ESTABLISHED", ESTABLISHED),
        ("UNTRACKED", UNTRACKED),
        ("SNAT", SNAT),
        ("DNAT", DNAT),
    ];
}

/// `-m conntrack`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Conntrack {
    /// Written as `-m state --state`.
    pub as_state: bool,
    /// `--ctstate`: bits of [`state`], and `!`.
    pub states: Option<(u8, bool)>,
    /// `--ctproto`.
    pub protocol: Option<(u8, bool)>,
    /// `--ctorigsrc`, `--ctorigdst`, `--ctreplsrc`, `--ctrepldst`.
    pub addrs: [Option<AddrMatch>; 4],
    /// `--ctorigsrcport`, `--ctorigdstport`, `--ctreplsrcport`, `--ctrepldstport`.
    pub ports: [Option<PortMatch>; 4],
    /// `--ctstatus`: 1 EXPECTED, 2 SEEN_REPLY, 4 ASSURED, 8 CONFIRMED, and `!`.
    pub status: Option<(u8, bool)>,
    /// `--ctexpire`: seconds left, and `!`.
    pub expire: Option<(u32, u32, bool)>,
    /// `--ctdir`: whether the reply's.
    pub reply: Option<bool>,
}

/// What a rule does with a packet that fits.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Target {
    /// Count it, nothing else.
    #[default]
    None,
    /// `ACCEPT`, `DROP`.
    Verdict(Verdict),
    /// `RETURN`.
    Return,
    /// `-j` to a chain of the user's.
    Jump(String),
    /// `-g`: the same without coming back here.
    Goto(String),
    /// The packet or its connection is changed, and the packet goes on.
    Edit(Edit),
    /// `REJECT`: an index of [`reject_names`].
    Reject(u8),
    /// `NOTRACK` (true) or `CT --notrack` alone.
    Notrack(bool),
    /// `LOG`, `NFLOG`: the packet goes on as it is.
    Log(Plain),
    /// `CT` with a zone, and its words.
    Zone(Plain, ZoneOf),
    /// `SET`, and its words.
    Set(Plain, Box<SetTarget>),
    /// One that nothing is done with.
    Plain(Plain),
}

/// The zone in which a packet's connection is looked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZoneOf {
    /// `--zone N`.
    Number(u16),
    /// `--zone mark`: the packet's mark.
    Mark,
    /// `--notrack`: it has none.
    Untracked,
}

/// What a target changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edit {
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
    /// `CONNMARK`.
    Connmark {
        /// What is done.
        op: Connmark,
        /// Value of `set`.
        value: u32,
        /// The connection's bits.
        ctmask: u32,
        /// The packet's bits.
        nfmask: u32,
        /// Shift, left positive.
        shift: i8,
    },
    /// `TTL`, `HL`.
    Ttl {
        /// `=`, `-` or `+`.
        op: char,
        /// The number.
        value: u8,
    },
    /// `ECN`.
    Ecn {
        /// ECE.
        ece: Option<bool>,
        /// CWR.
        cwr: Option<bool>,
        /// The codepoint.
        ect: Option<u8>,
    },
}

/// What `CONNMARK` does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connmark {
    /// The connection's mark is set.
    Set,
    /// The packet's becomes the connection's.
    Save,
    /// The connection's becomes the packet's.
    Restore,
}

/// Names of `REJECT --reject-with`, their short names, and what is sent: an ICMP code of type 3 (ICMPv6: type 1), or
/// nothing for a TCP reset.
pub const fn reject_names(family: Family) -> &'static [(&'static str, &'static str, Option<u8>)] {
    match family {
        Family::Ip => &[
            ("icmp-net-unreachable", "net-unreach", Some(0)),
            ("icmp-host-unreachable", "host-unreach", Some(1)),
            ("icmp-proto-unreachable", "proto-unreach", Some(2)),
            ("icmp-port-unreachable", "port-unreach", Some(3)),
            ("icmp-net-prohibited", "net-prohib", Some(9)),
            ("icmp-host-prohibited", "host-prohib", Some(10)),
            ("tcp-reset", "tcp-rst", None),
            ("icmp-admin-prohibited", "admin-prohib", Some(13)),
        ],
        Family::Ip6 => &[
            ("icmp6-no-route", "no-route", Some(0)),
            ("icmp6-adm-prohibited", "adm-prohibited", Some(1)),
            ("icmp6-addr-unreachable", "addr-unreach", Some(3)),
            ("icmp6-port-unreachable", "port-unreach", Some(4)),
            ("tcp-reset", "tcp-reset", None),
            ("icmp6-policy-fail", "policy-fail", Some(5)),
            ("icmp6-reject-route", "reject-route", Some(6)),
        ],
    }
}

impl Target {
    /// Its name in the target column; empty for none.
    pub fn name(&self, family: Family) -> &str {
        match self {
            Target::None => "",
            Target::Verdict(v) => v.name(),
            Target::Return => "RETURN",
            Target::Jump(chain) | Target::Goto(chain) => chain,
            Target::Edit(edit) => edit.name(family),
            Target::Reject(_) => "REJECT",
            Target::Notrack(true) => "NOTRACK",
            Target::Notrack(false) => "CT",
            Target::Log(plain) | Target::Plain(plain) | Target::Set(plain, _) | Target::Zone(plain, _) => {
                &plain.name
            }
        }
    }
}

impl Edit {
    /// Its name in the target column.
    pub const fn name(&self, family: Family) -> &'static str {
        match (self, family) {
            (Edit::Mark { .. }, _) => "MARK",
            (Edit::Tos { .. }, _) => "TOS",
            (Edit::Dscp(_), _) => "DSCP",
            (Edit::Classify(_), _) => "CLASSIFY",
            (Edit::Connmark { .. }, _) => "CONNMARK",
            (Edit::Ttl { .. }, Family::Ip) => "TTL",
            (Edit::Ttl { .. }, Family::Ip6) => "HL",
            (Edit::Ecn { .. }, _) => "ECN",
        }
    }
}
