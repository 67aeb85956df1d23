//! IPv6's tables of routes and rules, searched longest prefix first, and the cache in front of them.
//!
//! Follows: linux v6.12 `net/ipv6/route.c` `fib6_table_lookup`, `rt6_select`, `rt6_score_route`, `fib6_select_path`; `ip6_fib.c`
//! `fib6_add_rt2node`, `fib6_walk_continue`; `fib6_rules.c`.
//! Differs: of several equal ways one is chosen by a hash that is not the kernel's; a router that has no neighbour entry is not probed for its
//! preference (RFC 4191); no routes by source (`ip -6 route add … from`).

use crate::route::{ByNexthop, LOCAL, MAIN, Multipath, Ports, Rule, walk};
use penstock_lang::ip::{Net, RuleSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv6Addr};

/// An IPv6 route. Several of one prefix and metric with gateways are the ways of one (`fib6_siblings`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route6 {
    /// Table.
    pub table: u32,
    /// Destinations.
    pub dst: Net,
    /// `RTN_*`.
    pub kind: u8,
    /// Gateway.
    pub via: Option<Ipv6Addr>,
    /// Interface index.
    pub dev: u32,
    /// Preferred source address.
    pub src: Option<Ipv6Addr>,
    /// Metric; 1024 where a command names none.
    pub metric: u32,
    /// `RTPROT_*`.
    pub proto: u8,
    /// Metrics by `RTAX_*`: value, `lock`.
    pub metrics: Vec<(u8, u32, bool)>,
    /// `onlink`.
    pub onlink: bool,
    /// Its part of the traffic among its like, from 1.
    pub weight: u32,
    /// Preference among routers (RFC 4191): 0 medium, 1 high, 3 low.
    pub pref: u8,
    /// Whether a router has told of it, and as what.
    pub(crate) learnt: Learnt,
    /// The last tick it is good at (`RTF_EXPIRES`).
    pub expires: Option<i64>,
    /// That is over.
    pub(crate) expired: bool,
    /// The nexthop it goes by (`nhid`), of which this is one way.
    pub by: Option<ByNexthop>,
}

/// What a router has told of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Learnt {
    /// It is from an advertisement (`RTF_ADDRCONF`).
    pub(crate) by_ra: bool,
    /// The router is one for all that is elsewhere (`RTF_DEFAULT`).
    pub(crate) router: bool,
    /// The link's own network (`RTF_PREFIX_RT`).
    pub(crate) prefix: bool,
    /// From an option on routes (`RTF_ROUTEINFO`).
    pub(crate) info: bool,
}

impl Route6 {
    /// A route to `dst` in table main, by the kernel, over a device.
    pub(crate) fn new(dst: Net, dev: u32) -> Route6 {
        Route6 {
            table: MAIN,
            dst,
            kind: 1,
            via: None,
            dev,
            src: None,
            metric: 256,
            proto: crate::route::KERNEL,
            metrics: Vec::new(),
            onlink: false,
            weight: 1,
            pref: 0,
            learnt: Learnt::default(),
            expires: None,
            expired: false,
            by: None,
        }
    }
    /// Whether it is a way of a route of several (`rt6_qualify_for_ecmp`).
    pub(crate) fn is_way(&self) -> bool {
        self.via.is_some() && !self.learnt.by_ra && self.by.is_none()
    }
    /// Whether both are ways of one route, where they have the same table, destination and metric.
    pub(crate) fn is_mate(&self, other: &Route6) -> bool {
        match (self.by, other.by) {
            (Some(by), Some(other)) => by.id == other.id,
            (None, None) => self.is_way() && other.is_way(),
            _ => false,
        }
    }
    /// Whether it goes over the same gateway and device (`rt6_duplicate_nexthop`).
    pub(crate) fn same_way(&self, other: &Route6) -> bool {
        self.dev == other.dev && self.via == other.via && self.by == other.by
    }
    /// A metric by its number.
    pub(crate) fn metric_of(&self, number: u8) -> Option<u32> {
        self.metrics.iter().find(|m| m.0 == number && m.1 > 0).map(|m| m.1)
    }
    /// Sets one (`fib6_metric_set`).
    pub(crate) fn set_metric(&mut self, number: u8, value: u32) {
        match self.metrics.iter_mut().find(|m| m.0 == number) {
            Some(metric) => metric.1 = value,
            None => {
                self.metrics.push((number, value, false));
                self.metrics.sort_by_key(|m| m.0);
            }
        }
    }
    fn kind(&self) -> Option<Kind6> {
        Some(match self.kind {
            1 => Kind6::Unicast,
            2 => Kind6::Local,
            4 => Kind6::Anycast,
            5 => Kind6::Multicast,
            6 => Kind6::Blackhole,
            7 => Kind6::Unreachable,
            8 => Kind6::Prohibit,
            _ => return None,
        })
    }
}

/// What a route does with a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind6 {
    /// To a neighbour or a gateway.
    Unicast,
    /// To this machine.
    Local,
    /// To this machine, as to any other that has the address.
    Anycast,
    /// To a group.
    Multicast,
    /// Dropped in silence.
    Blackhole,
    /// Refused: no route.
    Unreachable,
    /// Refused: administratively prohibited.
    Prohibit,
}

impl Kind6 {
    /// Whether a packet that is sent can go there at all.
    pub fn leads(self) -> bool {
        matches!(self, Kind6::Unicast | Kind6::Local | Kind6::Anycast | Kind6::Multicast)
    }
}

/// What a lookup goes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Key6 {
    /// Destination.
    pub dst: Ipv6Addr,
    /// Source; `::` where it is not chosen yet.
    pub src: Ipv6Addr,
    /// Flow label, for the choice among ways.
    pub label: u32,
    /// DSCP as rules ask for it.
    pub tclass: u8,
    /// Mark.
    pub mark: u32,
    /// Interface it came in by; 1 (`lo`) for packets made here.
    pub iif: u32,
    /// Interface that is preferred; 0 for any.
    pub oif: u32,
    /// It must be that one (`RT6_LOOKUP_F_IFACE`).
    pub strict: bool,
    /// Protocol and ports.
    pub ports: Ports,
}

impl Key6 {
    /// A packet made here, of which nothing else is known.
    pub fn to(dst: Ipv6Addr) -> Key6 {
        Key6 {
            dst,
            src: Ipv6Addr::UNSPECIFIED,
            label: 0,
            tclass: 0,
            mark: 0,
            iif: 1,
            oif: 0,
            strict: false,
            ports: Ports::default(),
        }
    }
}

/// The answer of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop6 {
    /// What happens; `None`: no route.
    pub kind: Option<Kind6>,
    /// Interface out; that of the address for own ones.
    pub oif: u32,
    /// The next hop: the gateway, or the destination itself.
    pub next: Ipv6Addr,
    /// Preferred source address; `::` where the route names none.
    pub src: Ipv6Addr,
    /// The neighbour's place in the table, plus one; 0 where it is not known yet.
    pub(crate) neigh: u32,
    /// Largest packet that this machine may send there, where it is not the device's to say; and until when that is known.
    pub(crate) mtu: u32,
    /// The route says so for those it forwards too (`mtu lock`).
    pub(crate) mtu_locked: bool,
    /// Hop limit of packets made here, where it is not the device's to say.
    pub(crate) hop_limit: u8,
    /// Length of the prefix that matched.
    pub len: u8,
    /// The table the route stands in.
    pub table: u32,
}

impl Hop6 {
    /// The device a packet leaves by: `lo` for own addresses.
    #[inline]
    pub(crate) fn device(&self) -> u32 {
        match self.kind {
            Some(Kind6::Local | Kind6::Anycast) => 1,
            _ => self.oif,
        }
    }
    const NONE: Hop6 = Hop6 {
        kind: None,
        oif: 0,
        next: Ipv6Addr::UNSPECIFIED,
        src: Ipv6Addr::UNSPECIFIED,
        neigh: 0,
        mtu: 0,
        mtu_locked: false,
        hop_limit: 0,
        len: 0,
        table: 0,
    };
}

// `RTAX_MTU`, `RTAX_HOPLIMIT`.
const MTU: u8 = 2;
const HOPLIMIT: u8 = 10;

#[derive(Clone, Copy)]
struct Cached {
    dst: Ipv6Addr,
    generation: u32,
    hop: Hop6,
}

/// Places of the cache: as many at first, and at most.
const CACHE: (usize, usize) = (16, 1 << 16);

/// In the order `ip -6 route` shows them, which is that of the kernel's tree walked from its leaves: table, last address of the prefix, the
/// longest first, lowest metric.
type Place = (u32, u128, u8, u32);

/// The tables, the rules and the cache.
#[repr(C)]
pub struct Fib6 {
    // With each packet.
    cache: Vec<Cached>,
    generation: u32,
    /// Whether a destination alone decides: `local`, then `main`, one way each.
    plain: bool,
    // The others.
    /// Those of one place: the oldest first.
    routes: BTreeMap<Place, Vec<Route6>>,
    /// Routes of each table and length of prefix, the longest first.
    lengths: BTreeMap<(u32, u8), usize>,
    rules: Vec<Rule>,
    usual: bool,
    /// What chooses among several ways.
    pub(crate) multipath: Multipath,
    /// Places with several routes.
    shared: usize,
    /// Destinations that have driven another out of the cache since it last grew.
    driven_out: usize,
    /// Routes that expire, the first of them first. One that is gone or has another time by now may still stand here.
    expiring: BTreeSet<(i64, Place)>,
    /// A route that expires was entered (`fib6_start_gc`).
    pub(crate) more_expire: bool,
}

impl Default for Fib6 {
    fn default() -> Fib6 {
        Fib6 {
            cache: vec![Cached { dst: Ipv6Addr::UNSPECIFIED, generation: 0, hop: Hop6::NONE }; CACHE.0],
            generation: 1,
            plain: true,
            routes: BTreeMap::new(),
            lengths: BTreeMap::new(),
            rules: vec![Rule::kernel(0, LOCAL), Rule::kernel(32_766, MAIN)],
            usual: true,
            multipath: Multipath::SIX,
            shared: 0,
            driven_out: 0,
            expiring: BTreeSet::new(),
            more_expire: false,
        }
    }
}

/// Whether several routes of a place are several ways for one destination. Those of a link are not: a device belongs to the destination.
fn decides(&(_, last, short, _): &Place) -> bool {
    short > 120 || !super::needs_link(last.into())
}

fn bits(net: &Net) -> u128 {
    match net.addr {
        IpAddr::V6(a) => a.into(),
        IpAddr::V4(_) => 0,
    }
}

impl Fib6 {
    fn place(table: u32, dst: &Net, metric: u32) -> Place {
        (table, bits(dst) | !super::mask(dst.len), 128 - dst.len, metric)
    }
    /// All routes in the order they are shown.
    pub fn routes(&self) -> impl Iterator<Item = &Route6> + Clone {
        self.routes.values().flatten()
    }
    /// All rules in the order they are asked.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
    /// Whether a table has routes.
    pub(crate) fn has_table(&self, table: u32) -> bool {
        self.lengths.range((table, 0)..=(table, 128)).next().is_some()
    }
    /// The routes of a table to exactly this prefix, lowest metric first.
    pub(crate) fn to(&self, table: u32, dst: &Net) -> impl Iterator<Item = &Route6> + Clone {
        let between = Fib6::place(table, dst, 0)..=Fib6::place(table, dst, u32::MAX);
        self.routes.range(between).flat_map(|(_, all)| all)
    }
    /// The routes of the same table, prefix and metric.
    pub(crate) fn rivals(&self, route: &Route6) -> &[Route6] {
        self.routes.get(&Fib6::place(route.table, &route.dst, route.metric)).map_or(&[], Vec::as_slice)
    }
    /// Enters a route behind its like; `false` where the same is there.
    pub(crate) fn insert(&mut self, route: Route6) -> bool {
        let place = Fib6::place(route.table, &route.dst, route.metric);
        let counts = decides(&place);
        let all = self.routes.entry(place).or_default();
        if let Some(same) = all.iter_mut().find(|r| r.same_way(&route)) {
            //= linux v6.12 net/ipv6/ip6_fib.c fib6_add_rt2node: one that expires takes the newest word for it all the same
            if same.expires.is_some() {
                (same.expires, same.expired) = (route.expires, false);
                // Of a link's own network it is no router's word any more.
                if !route.learnt.by_ra && same.via.is_none() {
                    (same.learnt.by_ra, same.learnt.prefix) = (false, false);
                }
                if let Some(mtu) = route.metric_of(MTU) {
                    same.set_metric(MTU, mtu);
                }
                self.expiring.extend(route.expires.map(|at| (at, place)));
                self.invalidate();
            }
            return false;
        }
        *self.lengths.entry((route.table, 128 - route.dst.len)).or_default() += 1;
        if let Some(expires) = route.expires {
            self.expiring.insert((expires, place));
            self.more_expire = true;
        }
        all.push(route);
        self.shared += usize::from(all.len() == 2 && counts);
        self.invalidate();
        true
    }
    /// Takes out all that `gone` names, which is asked of each in their order; answers how many.
    pub(crate) fn remove(&mut self, mut gone: impl FnMut(&Route6) -> bool) -> usize {
        let Fib6 { routes, lengths, shared, .. } = self;
        let mut count = 0;
        routes.retain(|place, all| {
            let &(table, _, short, _) = place;
            let before = all.len();
            all.retain(|r| !gone(r));
            let out = before - all.len();
            if let Some(n) = lengths.get_mut(&(table, short)) {
                *n -= out;
            }
            *shared -= usize::from(before > 1 && all.len() < 2 && decides(place));
            count += out;
            !all.is_empty()
        });
        lengths.retain(|_, n| *n > 0);
        if count > 0 {
            self.invalidate();
        }
        count
    }
    /// Says of those of `like`'s table, prefix and metric that `which` names when they expire. Whether there is one.
    pub(crate) fn set_expiry(
        &mut self,
        like: &Route6,
        which: impl Fn(&Route6) -> bool,
        expires: Option<i64>,
    ) -> bool {
        let place = Fib6::place(like.table, &like.dst, like.metric);
        let Some(all) = self.routes.get_mut(&place) else { return false };
        let mut found = false;
        for route in all.iter_mut().filter(|r| which(r)) {
            (route.expires, route.expired, found) = (expires, false, true);
        }
        if let (true, Some(expires)) = (found, expires) {
            self.expiring.insert((expires, place));
        }
        self.invalidate();
        found
    }
    /// Changes the route of the same table, prefix and metric that goes the same way, where there is one.
    pub(crate) fn alter(&mut self, like: &Route6, change: impl FnOnce(&mut Route6)) {
        let place = Fib6::place(like.table, &like.dst, like.metric);
        let found = self.routes.get_mut(&place).and_then(|all| all.iter_mut().find(|r| r.same_way(like)));
        if let Some(route) = found {
            change(route);
            self.invalidate();
        }
    }
    /// Changes all routes.
    pub(crate) fn alter_all(&mut self, change: impl FnMut(&mut Route6)) {
        self.routes.values_mut().flatten().for_each(change);
        self.invalidate();
    }
    /// Whether a route may expire.
    pub(crate) fn some_expire(&self) -> bool {
        !self.expiring.is_empty()
    }
    /// Nothing goes any more by routes that have expired before `tick` (`fib6_check_expired`). Answers when the next one does.
    pub(crate) fn expire(&mut self, tick: i64) -> Option<i64> {
        let mut changed = false;
        for (expires, place) in self.expiring.range(..(tick, Place::default())) {
            for route in self.routes.get_mut(place).into_iter().flatten() {
                changed |= route.expires == Some(*expires) && !std::mem::replace(&mut route.expired, true);
            }
        }
        if changed {
            self.invalidate();
        }
        self.expiring.range((tick, Place::default())..).next().map(|&(expires, _)| expires)
    }
    /// Takes out what has expired before `tick`; whether there are others that expire (`fib6_age`).
    pub(crate) fn clear_expired(&mut self, tick: i64) -> bool {
        while let Some(&(expires, place)) = self.expiring.first().filter(|(expires, _)| *expires < tick) {
            self.expiring.pop_first();
            let found = self.routes.get(&place).into_iter().flatten().find(|r| r.expires == Some(expires));
            if let Some(like) = found.cloned() {
                self.remove_like(&like, |r| r.expires == Some(expires));
            }
        }
        let Fib6 { expiring, routes, .. } = self;
        expiring.retain(|(expires, place)| {
            routes.get(place).into_iter().flatten().any(|r| r.expires == Some(*expires))
        });
        !expiring.is_empty()
    }
    /// Takes out those of `like`'s table, prefix and metric that `gone` names.
    pub(crate) fn remove_like(&mut self, like: &Route6, gone: impl Fn(&Route6) -> bool) {
        let place = Fib6::place(like.table, &like.dst, like.metric);
        let Some(all) = self.routes.get_mut(&place) else { return };
        let before = all.len();
        all.retain(|r| !gone(r));
        let (left, length) = (all.len(), (like.table, 128 - like.dst.len));
        self.shared -= usize::from(before > 1 && left < 2 && decides(&place));
        if left == 0 {
            self.routes.remove(&place);
        }
        if let Some(n) = self.lengths.get_mut(&length) {
            *n -= before - left;
            if *n == 0 {
                self.lengths.remove(&length);
            }
        }
        self.invalidate();
    }
    /// An address is gone: no route prefers it any more.
    pub(crate) fn forget_source(&mut self, addr: Ipv6Addr) {
        for route in self.routes.values_mut().flatten().filter(|r| r.src == Some(addr)) {
            route.src = None;
        }
        self.invalidate();
    }
    /// Changes the rules; they stay in order of priority, the older first.
    pub(crate) fn change_rules(&mut self, change: impl FnOnce(&mut Vec<Rule>)) {
        change(&mut self.rules);
        self.rules.sort_by_key(|r| r.pref);
        let bare = |r: &Rule, table| {
            let bare = RuleSpec {
                table: Some(table),
                protocol: r.spec.protocol,
                family: r.spec.family,
                ..RuleSpec::default()
            };
            r.spec == bare
        };
        self.usual = matches!(self.rules.as_slice(), [local, main] if bare(local, LOCAL) && bare(main, MAIN));
        self.invalidate();
    }
    /// Forgets the cache: something it rests on has changed.
    pub(crate) fn invalidate(&mut self) {
        self.generation = self.generation.wrapping_add(1).max(1);
        self.plain = self.usual && self.shared == 0;
    }
    /// Whether the cache may be asked at all.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    #[inline]
    fn home(&self, dst: Ipv6Addr) -> usize {
        let bits = u128::from(dst);
        let mixed = ((bits >> 64) as u64 ^ (bits as u64).rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 40) as usize & (self.cache.len() - 1)
    }
    /// What the cache knows of a destination.
    #[inline]
    pub(crate) fn known(&self, dst: Ipv6Addr) -> Option<&Hop6> {
        let cached = &self.cache[self.home(dst)];
        (cached.dst == dst && cached.generation == self.generation && self.plain).then_some(&cached.hop)
    }
    /// Keeps what a search for a destination has found.
    pub(crate) fn enter(&mut self, dst: Ipv6Addr, hop: Hop6) {
        let home = self.home(dst);
        let old = self.cache[home];
        if old.generation == self.generation && old.dst != dst {
            self.driven_out += 1;
            if self.driven_out > self.cache.len() && self.cache.len() < CACHE.1 {
                self.grow();
                return self.enter(dst, hop);
            }
        }
        self.cache[home] = Cached { dst, generation: self.generation, hop };
    }
    #[cold]
    fn grow(&mut self) {
        let size = self.cache.len() * 4;
        let empty = Cached { dst: Ipv6Addr::UNSPECIFIED, generation: 0, hop: Hop6::NONE };
        let old = std::mem::replace(&mut self.cache, vec![empty; size]);
        self.driven_out = 0;
        for cached in old.into_iter().filter(|c| c.generation == self.generation) {
            let home = self.home(cached.dst);
            self.cache[home] = cached;
        }
    }
    /// Notes where the neighbour of a destination stands, for the next packet.
    #[inline]
    pub(crate) fn note_neigh(&mut self, dst: Ipv6Addr, next: Ipv6Addr, neigh: u32) {
        let home = self.home(dst);
        let cached = &mut self.cache[home];
        if cached.dst == dst && cached.generation == self.generation && cached.hop.next == next {
            cached.hop.neigh = neigh + 1;
        }
    }

    /// `fib6_rule_lookup`: the way of a packet. `fails` says of a gateway that it did not answer when it was asked for.
    pub(crate) fn search(&self, key: &Key6, fails: &dyn Fn(u32, Ipv6Addr) -> bool) -> Hop6 {
        for rule in walk(&self.rules, |r| r.matches6(key)) {
            let refused = match rule.spec.action {
                None => None,
                // FR_ACT_UNREACHABLE says that there is no route.
                Some(6) => Some(Kind6::Blackhole),
                Some(8) => Some(Kind6::Prohibit),
                Some(_) => return Hop6::NONE,
            };
            if refused.is_some() {
                return Hop6 { kind: refused, ..Hop6::NONE };
            }
            let table = rule.spec.table.unwrap_or(MAIN);
            let found = self.find_in(table, key, fails);
            let found = found.filter(|r| r.kind().is_some() && !rule.suppresses(r.dst.len, r.dev));
            if let Some(r) = found {
                return Fib6::hop_of(r, key);
            }
        }
        Hop6::NONE
    }
    /// The route that decides, by `local` and `main` alone.
    pub(crate) fn find(&self, dst: Ipv6Addr) -> Option<&Route6> {
        let key = Key6::to(dst);
        let alive = |_: u32, _: Ipv6Addr| false;
        self.find_in(LOCAL, &key, &alive).or_else(|| self.find_in(MAIN, &key, &alive))
    }
    /// The route of this table to `dst`.
    pub(crate) fn find_of(&self, table: u32, dst: Ipv6Addr) -> Option<&Route6> {
        self.find_in(table, &Key6::to(dst), &|_, _| false)
    }
    /// The route of a packet, by the rules; `None` where one refuses.
    pub(crate) fn search_route(&self, key: &Key6) -> Option<&Route6> {
        let alive = |_: u32, _: Ipv6Addr| false;
        let mut tables = walk(&self.rules, |r| r.matches6(key)).take_while(|r| r.spec.action.is_none());
        tables.find_map(|rule| {
            let found = self.find_in(rule.spec.table.unwrap_or(MAIN), key, &alive);
            found.filter(|r| r.kind().is_some() && !rule.suppresses(r.dst.len, r.dev))
        })
    }
    fn hop_of(r: &Route6, key: &Key6) -> Hop6 {
        let metric = |number| r.metric_of(number);
        Hop6 {
            kind: r.kind(),
            oif: r.dev,
            next: r.via.unwrap_or(key.dst),
            src: r.src.unwrap_or(Ipv6Addr::UNSPECIFIED),
            neigh: 0,
            mtu: metric(MTU).unwrap_or(0),
            mtu_locked: r.metrics.iter().any(|m| m.0 == MTU && m.2),
            hop_limit: metric(HOPLIMIT).unwrap_or(0).min(255) as u8,
            len: r.dst.len,
            table: r.table,
        }
    }
    /// `fib6_table_lookup`: of the prefixes that match the longest that has a route which will do. A machine that does not forward passes by
    /// gateways that do not answer, unless there is no other.
    fn find_in(&self, table: u32, key: &Key6, fails: &dyn Fn(u32, Ipv6Addr) -> bool) -> Option<&Route6> {
        let look = |fails: &dyn Fn(u32, Ipv6Addr) -> bool| {
            self.lengths.range((table, 0)..=(table, 128)).find_map(|(&(_, short), _)| {
                self.select(table, &super::network(key.dst, 128 - short), key, fails)
            })
        };
        look(fails).or_else(|| look(&|_, _| false))
    }
    /// `rt6_select`: of the routes to a prefix the best of the lowest metric, then of the others.
    fn select(
        &self,
        table: u32,
        dst: &Net,
        key: &Key6,
        fails: &dyn Fn(u32, Ipv6Addr) -> bool,
    ) -> Option<&Route6> {
        let score = |r: &Route6| {
            if r.expired {
                return None;
            }
            let fits = key.oif == 0 || r.dev == key.oif;
            let dead = r.via.is_some_and(|via| fails(r.dev, via));
            //= linux v6.12 net/ipv6/route.c rt6_score_route: its router's preference is more than the device
            let preferred = (r.pref ^ 2) + 1;
            if dead || !fits && key.strict { None } else { Some(preferred << 2 | u8::from(fits) << 1) }
        };
        let mut best: Option<(&Route6, u8, u32)> = None;
        let mut first = None;
        for r in self.to(table, dst) {
            let lowest = *first.get_or_insert(r.metric);
            if r.metric != lowest && best.is_some_and(|b| b.2 == lowest) {
                break;
            }
            if let Some(score) = score(r)
                && best.is_none_or(|b| score > b.1)
            {
                best = Some((r, score, r.metric));
            }
        }
        let (chosen, _, metric) = best?;
        if !chosen.is_mate(chosen) || key.iif == 1 && key.oif == chosen.dev {
            return Some(chosen);
        }
        let ways =
            || self.to(table, dst).filter(move |r| r.metric == metric && r.is_mate(chosen) && !r.expired);
        if ways().nth(1).is_none() {
            return Some(chosen);
        }
        let ends = (key.src.into(), key.dst.into());
        let way = self.multipath.choose(ends, key.label, key.ports, ways().map(|r| r.weight));
        way.and_then(|n| ways().nth(n)).filter(|r| score(r).is_some()).or(Some(chosen))
    }
}
