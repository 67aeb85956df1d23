//! Routes, rules, and what a lookup asks and answers; the tables that hold them are in [`fib`].
//!
//! Follows: linux v6.12 `net/ipv4/fib_semantics.c` (what a match means), `fib_rules.c` `fib4_rule_match`.

mod fib;
mod l3mdev;
mod multipath;
mod turns;

pub use fib::Fib;
pub(crate) use l3mdev::{L3mdev, L3mdevs};
pub(crate) use multipath::Multipath;

pub use crate::nexthop::ByNexthop;
use crate::six::Key6;
use penstock_lang::ip::{NOP, Net, RuleSpec};
use penstock_packet::{L3, L4, Skb};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};

/// An IPv4 prefix: address and length. The address keeps its host bits where it is an interface's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Prefix {
    /// Address.
    pub addr: Ipv4Addr,
    /// Length in bits, 0..=32.
    pub len: u8,
}

impl Prefix {
    /// A prefix; lengths over 32 count as 32.
    pub fn new(addr: Ipv4Addr, len: u8) -> Prefix {
        Prefix { addr, len: len.min(32) }
    }
    /// The network mask as a number.
    pub fn mask(self) -> u32 {
        if self.len == 0 { 0 } else { u32::MAX << (32 - u32::from(self.len)) }
    }
    /// The same prefix without host bits.
    pub fn network(self) -> Prefix {
        Prefix { addr: Ipv4Addr::from(u32::from(self.addr) & self.mask()), len: self.len }
    }
    /// The directed broadcast address.
    pub fn broadcast(self) -> Ipv4Addr {
        Ipv4Addr::from(u32::from(self.addr) | !self.mask())
    }
    /// Whether `addr` lies within.
    pub fn contains(self, addr: Ipv4Addr) -> bool {
        (u32::from(self.addr) ^ u32::from(addr)) & self.mask() == 0
    }
    /// Reads `10.3.31.88/24`; without a length, 32.
    ///
    /// # Errors
    /// The text, when it is not a prefix.
    pub fn parse(text: &str) -> Result<Prefix, String> {
        let bad = || text.to_owned();
        let (addr, len) = match text.split_once('/') {
            Some((addr, len)) => (addr, len.parse::<u8>().map_err(|_| bad())?),
            None => (text, 32),
        };
        let addr = addr.parse().map_err(|_| bad())?;
        if len > 32 { Err(bad()) } else { Ok(Prefix { addr, len }) }
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr, self.len)
    }
}

/// What a route does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum RouteKind {
    /// To a neighbour or a gateway.
    Unicast,
    /// To this machine.
    Local,
    /// To everybody on the link, this machine included.
    Broadcast,
    /// Refused with ICMP host unreachable.
    Unreachable,
    /// Refused with ICMP administratively prohibited.
    Prohibit,
    /// Dropped in silence.
    Blackhole,
    /// The search goes on with the next rule.
    Throw,
}

impl RouteKind {
    /// `RTN_*`.
    pub fn number(self) -> u8 {
        match self {
            RouteKind::Unicast => 1,
            RouteKind::Local => 2,
            RouteKind::Broadcast => 3,
            RouteKind::Blackhole => 6,
            RouteKind::Unreachable => 7,
            RouteKind::Prohibit => 8,
            RouteKind::Throw => 9,
        }
    }
    /// The kind of this number.
    pub fn of(number: u8) -> Option<RouteKind> {
        let all = [
            RouteKind::Unicast,
            RouteKind::Local,
            RouteKind::Broadcast,
            RouteKind::Blackhole,
            RouteKind::Unreachable,
            RouteKind::Prohibit,
            RouteKind::Throw,
        ];
        all.into_iter().find(|k| k.number() == number)
    }
}

/// `RT_TABLE_DEFAULT`.
pub const DEFAULT: u32 = 253;
/// `RT_TABLE_MAIN`: what commands change where they name no other.
pub const MAIN: u32 = 254;
/// `RT_TABLE_LOCAL`: own and broadcast addresses, kept by the kernel; searched first.
pub const LOCAL: u32 = 255;
/// `RTPROT_KERNEL`: made by the kernel, for an address.
pub const KERNEL: u8 = 2;
/// `RTPROT_BOOT`: made by a command that does not say.
pub const BOOT: u8 = 3;

/// One way of a route over several.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NextHop {
    /// Gateway, of IPv4 or of IPv6 (RFC 5549).
    pub via: Option<IpAddr>,
    /// Interface index.
    pub dev: u32,
    /// Its part of the traffic, from 1.
    pub weight: u32,
    /// `onlink`.
    pub onlink: bool,
}

/// One route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Table.
    pub table: u32,
    /// Destinations, without host bits.
    pub dst: Prefix,
    /// Type of service it is for; 0 for all.
    pub tos: u8,
    /// What happens.
    pub kind: RouteKind,
    /// Gateway, of IPv4 or of IPv6 (RFC 5549); `None` where destinations are on the link.
    pub via: Option<IpAddr>,
    /// Interface index; 0 for the refusing kinds.
    pub dev: u32,
    /// Preferred source address.
    pub src: Option<Ipv4Addr>,
    /// Metric; the lowest wins among equal prefixes.
    pub metric: u32,
    /// Who made it: `RTPROT_*`.
    pub proto: u8,
    /// `RT_SCOPE_*`.
    pub scope: u8,
    /// `onlink`.
    pub onlink: bool,
    /// Metrics by `RTAX_*`: value, `lock`.
    pub metrics: Vec<(u8, u32, bool)>,
    /// Realms (`nh_tclassid`): of the source shifted by 16, and of the destination.
    pub realms: u32,
    /// The ways, where there are several.
    pub nexthops: Vec<NextHop>,
    /// The nexthop it goes by (`nhid`), which says the ways.
    pub by: Option<ByNexthop>,
}

impl Route {
    /// A route to `dst` in table main, by a command.
    pub fn new(dst: Prefix) -> Route {
        Route {
            table: MAIN,
            dst,
            tos: 0,
            kind: RouteKind::Unicast,
            via: None,
            dev: 0,
            src: None,
            metric: 0,
            proto: BOOT,
            scope: 0,
            onlink: false,
            metrics: Vec::new(),
            realms: 0,
            nexthops: Vec::new(),
            by: None,
        }
    }
    /// Whether it leads over this device.
    pub fn uses(&self, ifindex: u32) -> bool {
        self.dev == ifindex || self.nexthops.iter().any(|h| h.dev == ifindex)
    }
}

/// What a lookup goes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key {
    /// Destination.
    pub dst: Ipv4Addr,
    /// Source; 0.0.0.0 where it is not chosen yet.
    pub src: Ipv4Addr,
    /// Type of service.
    pub tos: u8,
    /// Mark.
    pub mark: u32,
    /// Interface it came in by; 1 (`lo`) for packets made here.
    pub iif: u32,
    /// Interface it must leave by; 0 for any.
    pub oif: u32,
    /// The VRF whose table is meant (`flowi_l3mdev`), by its index; 0: that of `oif` or of `iif`, where they are in one.
    pub l3mdev: u32,
    /// Protocol and ports.
    pub ports: Ports,
}

/// Protocol and ports of a packet, as rules ask for them; all 0 where they are not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Ports {
    /// Its protocol (`ipproto`).
    pub protocol: u8,
    /// Its source port.
    pub sport: u16,
    /// Its destination port.
    pub dport: u16,
}

impl Ports {
    /// Those of a packet; a fragment has no ports, the first neither.
    //= linux v6.12 include/net/ip_fib.h fib4_rules_early_flow_dissect; net/core/flow_dissector.c FLOW_DISSECTOR_F_PARSE_1ST_FRAG
    pub fn of(skb: &Skb) -> Ports {
        let (protocol, whole) = match &skb.l3 {
            L3::Ipv4(h) => (h.protocol, h.frag_off & 0x3fff == 0),
            L3::Ipv6(h) => (h.protocol(), h.fragment().is_none()),
            _ => return Ports::default(),
        };
        let (sport, dport) = match &skb.l4 {
            L4::Tcp(t) if whole => (t.sport, t.dport),
            L4::Udp(u) if whole => (u.sport, u.dport),
            _ => (0, 0),
        };
        Ports { protocol, sport, dport }
    }
    /// Those of an answer.
    #[must_use]
    pub fn turned(self) -> Ports {
        Ports { sport: self.dport, dport: self.sport, ..self }
    }
}

impl Key {
    /// A packet made here, of which nothing else is known.
    pub fn to(dst: Ipv4Addr) -> Key {
        let (src, ports) = (Ipv4Addr::UNSPECIFIED, Ports::default());
        Key { dst, src, tos: 0, mark: 0, iif: 1, oif: 0, l3mdev: 0, ports }
    }
}

/// A rule: which table is asked for which packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rule {
    /// Priority: the lowest is asked first.
    pub pref: u32,
    /// What it asks for and does, as `ip rule` says it.
    pub spec: RuleSpec,
    /// The device of `iif`, 0 for none, `u32::MAX` for one that is not there.
    pub(crate) iif: u32,
    /// The device of `oif`.
    pub(crate) oif: u32,
    /// The devices of `suppress_ifgroup`, by index.
    pub(crate) suppressed: Vec<u32>,
}

/// Where the first rule of this priority stands among all, which stand by their priorities.
fn first_of(rules: &[Rule], pref: u32) -> Option<usize> {
    let at = rules.partition_point(|r| r.pref < pref);
    rules.get(at).is_some_and(|r| r.pref == pref).then_some(at)
}

/// The rules that match, in the order in which they are asked: `goto` leads to the first of its priority, where there is one, whether or not
/// that matches what came before (`fib_rules_lookup`).
pub(crate) fn walk(rules: &[Rule], matches: impl Fn(&Rule) -> bool) -> impl Iterator<Item = &Rule> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let rule = rules.get(at)?;
            at += 1;
            if !matches(rule) || rule.spec.action == Some(NOP) {
                continue;
            }
            match rule.spec.goto {
                None => return Some(rule),
                Some(target) => at = first_of(rules, target).unwrap_or(at),
            }
        }
    })
}

impl Rule {
    /// Whether it says `goto` a priority that no rule has.
    pub(crate) fn goes_nowhere(&self, all: &[Rule]) -> bool {
        self.spec.goto.is_some_and(|target| first_of(all, target).is_none())
    }
    /// Whether a route that it has found is not good enough for it (`fib4_rule_suppress`, `fib6_rule_suppress`).
    pub(crate) fn suppresses(&self, len: u8, dev: u32) -> bool {
        self.spec.suppress.is_some_and(|least| u32::from(len) <= least)
            || self.suppressed.binary_search(&dev).is_ok()
    }
    pub(crate) fn kernel(pref: u32, table: u32) -> Rule {
        let spec = RuleSpec { table: Some(table), protocol: Some(KERNEL), ..RuleSpec::default() };
        Rule { pref, spec, iif: 0, oif: 0, suppressed: Vec::new() }
    }
    fn within(net: Option<Net>, addr: IpAddr) -> bool {
        net.is_none_or(|n| n.len == 0 || n.contains(addr))
    }
    /// `fib4_rule_match`. All programs here are root's: a rule that asks for another user matches no packet.
    fn matches(&self, key: &Key) -> bool {
        let ways = (key.iif, key.oif);
        self.hits(ways, key.l3mdev != 0, key.mark, (key.src.into(), key.dst.into()), key.tos, key.ports)
    }
    /// The same of IPv6 (`fib6_rule_match`), of which no packet is in a VRF here.
    pub(crate) fn matches6(&self, key: &Key6) -> bool {
        self.hits(
            (key.iif, key.oif),
            false,
            key.mark,
            (key.src.into(), key.dst.into()),
            key.tclass,
            key.ports,
        )
    }
    #[inline]
    fn hits(
        &self,
        (iif, oif): (u32, u32),
        in_vrf: bool,
        mark: u32,
        (src, dst): (IpAddr, IpAddr),
        tos: u8,
        ports: Ports,
    ) -> bool {
        let within = |range: Option<(u16, u16)>, port: u16| {
            range.is_none_or(|(low, high)| (low..=high).contains(&port))
        };
        let s = &self.spec;
        let hit = (self.iif == 0 || self.iif == iif)
            && (self.oif == 0 || self.oif == oif)
            && s.fwmark.is_none_or(|(wanted, mask)| (wanted ^ mark) & mask.unwrap_or(u32::MAX) == 0)
            && Rule::within(s.from, src)
            && Rule::within(s.to, dst)
            && s.tos.is_none_or(|wanted| wanted == 0 || wanted == tos)
            && s.ipproto.is_none_or(|wanted| wanted == ports.protocol)
            && within(s.sport, ports.sport)
            && within(s.dport, ports.dport)
            && (!s.l3mdev || in_vrf)
            && s.uids.is_none_or(|(low, _)| low == 0);
        hit != s.not
    }
}

/// The answer of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// What happens; `None`: no route.
    pub kind: Option<RouteKind>,
    /// Interface out (or, for local ones, the interface the address stands on).
    pub oif: u32,
    /// The next hop: the gateway, or the destination itself; that too where the gateway is of IPv6 (`rt_nexthop`).
    pub next: Ipv4Addr,
    /// Source address for packets made here.
    pub src: Ipv4Addr,
    /// The neighbour's place in the ARP table, plus one; 0 where it is not known yet.
    pub(crate) neigh: u32,
    /// The table the route stands in.
    pub table: u32,
    /// The route's realms.
    pub realms: u32,
    /// The longest IP packet the route lets pass (`mtu`), bytes; 0: the device says.
    pub(crate) mtu: u16,
    /// It stands fast (`mtu lock`): what is made here goes without DF.
    pub(crate) mtu_locked: bool,
    /// The TTL of what is made here (`hoplimit`); 0: the host says.
    pub(crate) hoplimit: u8,
    /// The gateway of IPv6, as [`Fib::next_of`] knows it; 0 for none.
    pub(crate) six: u16,
}

impl Hop {
    /// The TTL of what is made here and names none; `own` is the host's.
    //= linux v6.12 include/net/route.h ip4_dst_hoplimit
    #[inline]
    pub(crate) fn ttl(&self, own: u8) -> u8 {
        if self.hoplimit == 0 { own } else { self.hoplimit }
    }
    /// The longest IP packet that may go this way out of a device of this MTU.
    //= linux v6.12 include/net/ip.h ip_dst_mtu_maybe_forward
    #[inline]
    pub(crate) fn longest(&self, device: u32) -> u32 {
        if self.mtu == 0 { device } else { device.min(self.mtu.into()) }
    }

    pub(crate) const NONE: Hop = Hop {
        kind: None,
        oif: 0,
        next: Ipv4Addr::UNSPECIFIED,
        src: Ipv4Addr::UNSPECIFIED,
        neigh: 0,
        table: 0,
        realms: 0,
        mtu: 0,
        mtu_locked: false,
        hoplimit: 0,
        six: 0,
    };
    fn refusing(kind: RouteKind) -> Hop {
        Hop { kind: Some(kind), ..Hop::NONE }
    }
}
