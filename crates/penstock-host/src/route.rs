//! Routes: a table of prefixes, searched longest first, and the cache in front of it.
//!
//! Follows: linux v6.12 `net/ipv4/fib_trie.c` `fib_table_lookup`, `fib_semantics.c` (what a match means),
//! `fib_frontend.c` `fib_add_ifaddr` (the routes an address brings).
//! Differs: no policy rules, so the tables are `local`, then `main`; no routes by ToS; no multipath.

use std::fmt;
use std::net::Ipv4Addr;

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
    /// The text, when it is no prefix.
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
}

/// Which of the two tables.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Table {
    /// Searched first: own and broadcast addresses, kept by the kernel.
    Local,
    /// Everything else.
    Main,
}

/// Who made a route: `proto` in `ip route show`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Proto {
    /// The kernel, for an address.
    Kernel,
    /// A command (`boot`, not shown).
    Boot,
    /// An administrator's mark.
    Static,
}

/// One route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route {
    /// Table.
    pub table: Table,
    /// Destinations, without host bits.
    pub dst: Prefix,
    /// What happens.
    pub kind: RouteKind,
    /// Gateway; `None` where destinations are on the link.
    pub via: Option<Ipv4Addr>,
    /// Interface index; 0 for the refusing kinds.
    pub dev: u32,
    /// Preferred source address.
    pub src: Option<Ipv4Addr>,
    /// Metric; the lowest wins among equal prefixes.
    pub metric: u32,
    /// Who made it.
    pub proto: Proto,
}

/// The answer of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// What happens; `None`: no route.
    pub kind: Option<RouteKind>,
    /// Interface out (or, for local ones, the interface the address stands on).
    pub oif: u32,
    /// The next hop: the gateway, or the destination itself.
    pub next: Ipv4Addr,
    /// Source address for packets made here.
    pub src: Ipv4Addr,
    /// The neighbour's place in the ARP table, plus one; 0 where it is not known yet.
    pub(crate) neigh: u32,
}

impl Hop {
    const NONE: Hop =
        Hop { kind: None, oif: 0, next: Ipv4Addr::UNSPECIFIED, src: Ipv4Addr::UNSPECIFIED, neigh: 0 };
}

const CACHE: usize = 256;

#[derive(Clone, Copy)]
struct Cached {
    dst: Ipv4Addr,
    generation: u32,
    hop: Hop,
}

/// The two tables and the cache.
pub struct Fib {
    /// In the order they are searched: table, longest prefix, lowest metric, oldest.
    routes: Vec<Route>,
    cache: Vec<Cached>,
    generation: u32,
}

impl Default for Fib {
    fn default() -> Fib {
        let empty = Cached { dst: Ipv4Addr::UNSPECIFIED, generation: 0, hop: Hop::NONE };
        Fib { routes: Vec::new(), cache: vec![empty; CACHE], generation: 1 }
    }
}

impl Fib {
    /// All routes in the order they are searched.
    pub fn routes(&self) -> &[Route] {
        &self.routes
    }
    /// Enters a route behind those that win over it.
    pub(crate) fn insert(&mut self, route: Route) {
        let key = |r: &Route| (r.table, 32 - r.dst.len, r.dst.addr, r.metric);
        let at = self.routes.partition_point(|r| key(r) <= key(&route));
        self.routes.insert(at, route);
        self.invalidate();
    }
    /// Takes out all routes that `gone` names; answers how many.
    pub(crate) fn remove(&mut self, gone: impl Fn(&Route) -> bool) -> usize {
        let before = self.routes.len();
        self.routes.retain(|r| !gone(r));
        self.invalidate();
        before - self.routes.len()
    }
    /// Takes out the first route that `gone` names.
    pub(crate) fn remove_first(&mut self, gone: impl Fn(&Route) -> bool) -> Option<Route> {
        let at = self.routes.iter().position(gone)?;
        self.invalidate();
        Some(self.routes.remove(at))
    }
    /// Forgets the cache: something it rests on has changed.
    pub(crate) fn invalidate(&mut self) {
        self.generation = self.generation.wrapping_add(1).max(1);
    }

    #[inline]
    fn slot(dst: Ipv4Addr) -> usize {
        (u32::from(dst).wrapping_mul(0x9e37_79b1) >> 24) as usize % CACHE
    }
    /// The route of `dst`, from the cache where it knows.
    #[inline]
    pub(crate) fn lookup(&mut self, dst: Ipv4Addr) -> Hop {
        let cached = &self.cache[Fib::slot(dst)];
        if cached.dst == dst && cached.generation == self.generation {
            return cached.hop;
        }
        self.lookup_slow(dst)
    }
    #[cold]
    fn lookup_slow(&mut self, dst: Ipv4Addr) -> Hop {
        let hop = self.search(dst);
        self.cache[Fib::slot(dst)] = Cached { dst, generation: self.generation, hop };
        hop
    }
    /// The route of `dst`, from the tables.
    pub(crate) fn search(&self, dst: Ipv4Addr) -> Hop {
        let Some(r) = self.find(dst) else { return Hop::NONE };
        Hop {
            kind: Some(r.kind),
            oif: r.dev,
            next: r.via.unwrap_or(dst),
            src: r.src.unwrap_or(Ipv4Addr::UNSPECIFIED),
            neigh: 0,
        }
    }
    /// The route that matches `dst`.
    pub(crate) fn find(&self, dst: Ipv4Addr) -> Option<&Route> {
        // Routes of one table stand longest prefix first, so that the first match is the longest.
        self.routes.iter().find(|r| r.dst.contains(dst))
    }
    /// Notes where the neighbour of a destination stands, for the next packet.
    #[inline]
    pub(crate) fn note_neigh(&mut self, dst: Ipv4Addr, next: Ipv4Addr, neigh: u32) {
        let cached = &mut self.cache[Fib::slot(dst)];
        if cached.dst == dst && cached.generation == self.generation && cached.hop.next == next {
            cached.hop.neigh = neigh + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(dst: &str, dev: u32, metric: u32) -> Route {
        Route {
            table: Table::Main,
            dst: Prefix::parse(dst).unwrap(),
            kind: RouteKind::Unicast,
            via: None,
            dev,
            src: None,
            metric,
            proto: Proto::Boot,
        }
    }

    #[test]
    fn the_longest_prefix_wins_then_the_lowest_metric() {
        let mut fib = Fib::default();
        for r in [route("0.0.0.0/0", 1, 0), route("10.0.0.0/8", 2, 5), route("10.1.0.0/16", 3, 0)] {
            fib.insert(r);
        }
        fib.insert(route("10.0.0.0/8", 4, 1));
        let oif = |fib: &mut Fib, dst: &str| fib.lookup(dst.parse().unwrap()).oif;
        assert_eq!(oif(&mut fib, "192.0.2.1"), 1);
        assert_eq!(oif(&mut fib, "10.2.0.1"), 4);
        assert_eq!(oif(&mut fib, "10.1.2.3"), 3);
        assert_eq!(oif(&mut fib, "10.1.2.3"), 3);
        assert_eq!(fib.remove(|r| r.dev == 3), 1);
        assert_eq!(oif(&mut fib, "10.1.2.3"), 4);
    }

    #[test]
    fn prefixes_read_and_print() {
        let p = Prefix::parse("10.3.31.88/24").unwrap();
        assert_eq!(p.network().to_string(), "10.3.31.0/24");
        assert_eq!(p.broadcast().to_string(), "10.3.31.255");
        assert_eq!(Prefix::parse("10.3.31.88").unwrap().len, 32);
        for bad in ["", "10.3.31", "10.3.31.88/33", "10.3.31.88/", "x/8", "10.3.31.88/-1"] {
            assert!(Prefix::parse(bad).is_err(), "{bad}");
        }
    }
}
