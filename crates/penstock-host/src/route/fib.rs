//! The tables of routes, searched longest prefix first, and the cache in front of them.
//!
//! Follows: linux v6.12 `net/ipv4/fib_trie.c` `fib_table_lookup`, `fib_frontend.c` `fib_add_ifaddr` (the routes an address brings).

use super::{DEFAULT, Hop, Key, L3mdevs, LOCAL, MAIN, Multipath, Prefix, Route, RouteKind, Rule, walk};
use penstock_lang::ip::RuleSpec;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Places of the cache: as many as this at first, more as more destinations are known, and never more than this.
const CACHE: (usize, usize) = (16, 1 << 16);

/// `RTAX_HOPLIMIT`.
const HOPLIMIT: u8 = 10;
/// `RTAX_MTU`, and the most it is taken for (`ip_metrics_convert`).
const MTU: u8 = 2;
const MTU_MAX: u32 = 65_535 - 15;

#[derive(Clone, Copy)]
struct Cached {
    dst: Ipv4Addr,
    generation: u32,
    hop: Hop,
    /// The sender of a packet to `dst` that may send from where it does; unspecified before there was one.
    from: Ipv4Addr,
}

impl Cached {
    /// Of no generation.
    const EMPTY: Cached = Cached::new(Ipv4Addr::UNSPECIFIED, 0, Hop::NONE);
    const fn new(dst: Ipv4Addr, generation: u32, hop: Hop) -> Cached {
        Cached { dst, generation, hop, from: Ipv4Addr::UNSPECIFIED }
    }
}

/// Gateways of IPv6 that can be known at a time.
const MOST_GATEWAYS6: usize = 60_000;

/// In the order routes are searched: table (`local` first), longest prefix, address, ToS, lowest metric.
type Place = (u64, u8, Ipv4Addr, u8, u32);

/// Where routes of these tables begin and end: [`Place`].
type Between = std::ops::RangeInclusive<Place>;

/// The tables, the rules and the cache.
#[repr(C)]
pub struct Fib {
    // With each packet, in this order: what lies together comes into the cache together.
    cache: Vec<Cached>,
    generation: u32,
    /// Whether a destination alone decides: `local`, then `main`.
    plain: bool,
    /// Routes with realms.
    with_realms: usize,
    rules_have_realms: bool,
    // The others.
    /// Those of one place: the oldest first.
    routes: BTreeMap<Place, Vec<Route>>,
    /// Routes of each table and length of prefix.
    lengths: BTreeMap<(u64, u8), usize>,
    rules: Vec<Rule>,
    /// Tables there are: those that ever had a route.
    tables: BTreeSet<u32>,
    /// Whether the rules are those that a machine begins with.
    usual: bool,
    /// Routes for which more decides than the destination.
    choosy: usize,
    /// What chooses among several ways.
    pub(crate) multipath: Multipath,
    /// Which devices are in VRFs.
    l3mdevs: L3mdevs,
    /// Places of the cache that are taken, be it by what holds no more.
    taken: usize,
    /// What redirects have told of, by destination.
    pub(super) turns: BTreeMap<Ipv4Addr, super::turns::Turn>,
    /// Gateways of IPv6 that routes have led to, each once: [`Hop`] holds its place, from 1.
    gateways6: Vec<Ipv6Addr>,
    places6: BTreeMap<Ipv6Addr, u16>,
}

impl Default for Fib {
    fn default() -> Fib {
        Fib {
            routes: BTreeMap::new(),
            lengths: BTreeMap::new(),
            rules: vec![Rule::kernel(0, LOCAL), Rule::kernel(32_766, MAIN), Rule::kernel(32_767, DEFAULT)],
            tables: BTreeSet::from([MAIN, LOCAL]),
            plain: true,
            usual: true,
            choosy: 0,
            multipath: Multipath::FOUR,
            l3mdevs: L3mdevs::default(),
            with_realms: 0,
            rules_have_realms: false,
            turns: BTreeMap::new(),
            gateways6: Vec::new(),
            places6: BTreeMap::new(),
            cache: vec![Cached::EMPTY; CACHE.0],
            taken: 0,
            generation: 1,
        }
    }
}

/// Tables in the order they stand: `local`, `main`, the others.
fn rank(table: u32) -> u64 {
    match table {
        LOCAL => 0,
        MAIN => 1,
        other => 2 + u64::from(other),
    }
}

/// Whether more decides about a route's packets than their destination.
fn is_choosy(r: &Route) -> bool {
    r.tos != 0
        || !r.nexthops.is_empty()
        || r.table == DEFAULT
        || r.kind == RouteKind::Throw && r.table >= MAIN
}

/// Realms of a packet, of which a half that is 0 is taken from `tag` (`set_class_tag`).
fn filled(realms: u32, tag: u32) -> u32 {
    let of = |half: u32| if realms & half == 0 { tag & half } else { realms & half };
    of(0xffff) | of(0xffff_0000)
}

impl Fib {
    /// All routes in the order they are searched.
    pub fn routes(&self) -> impl Iterator<Item = &Route> + Clone {
        self.routes.values().flatten()
    }
    /// All rules in the order they are asked.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }
    /// Whether a table is there.
    pub fn has_table(&self, table: u32) -> bool {
        self.tables.contains(&table)
    }
    fn place(r: &Route) -> Place {
        (rank(r.table), 32 - r.dst.len, r.dst.addr, u8::MAX - r.tos, r.metric)
    }
    /// The routes of a table to exactly this prefix.
    fn between(table: u32, dst: Prefix) -> Between {
        let (rank, short) = (rank(table), 32 - dst.len);
        (rank, short, dst.addr, 0, 0)..=(rank, short, dst.addr, u8::MAX, u32::MAX)
    }
    /// The same, in the order they are searched.
    pub(crate) fn to(&self, table: u32, dst: Prefix) -> impl Iterator<Item = &Route> {
        self.routes.range(Fib::between(table, dst)).flat_map(|(_, all)| all)
    }
    /// The routes of the same table, prefix, ToS and metric as `route`, the oldest first.
    pub(crate) fn rivals(&self, route: &Route) -> &[Route] {
        self.routes.get(&Fib::place(route)).map_or(&[], Vec::as_slice)
    }
    /// Enters a route behind those that win over it.
    pub(crate) fn insert(&mut self, route: Route) {
        self.counted(&route);
        self.routes.entry(Fib::place(&route)).or_default().push(route);
        self.invalidate();
    }
    /// Enters a route before those that are its equals.
    pub(crate) fn insert_first(&mut self, route: Route) {
        self.counted(&route);
        self.routes.entry(Fib::place(&route)).or_default().insert(0, route);
        self.invalidate();
    }
    fn counted(&mut self, route: &Route) {
        debug_assert_eq!(route.dst, route.dst.network(), "a destination has no host bits");
        self.tables.insert(route.table);
        *self.lengths.entry((rank(route.table), 32 - route.dst.len)).or_default() += 1;
        self.choosy += usize::from(is_choosy(route));
        self.with_realms += usize::from(route.realms != 0);
        for via in route.nexthops.iter().map(|hop| hop.via).chain([route.via]) {
            let Some(IpAddr::V6(via)) = via else { continue };
            if self.gateways6.len() < usize::from(u16::MAX) && !self.places6.contains_key(&via) {
                self.gateways6.push(via);
                self.places6.insert(via, self.gateways6.len() as u16);
            }
        }
    }
    /// Whether no more gateways of IPv6 find room but those that are known.
    pub(crate) fn is_full6(&self) -> bool {
        self.gateways6.len() >= MOST_GATEWAYS6
    }
    /// The neighbour that packets of this way are given to.
    #[inline]
    pub(crate) fn next_of(&self, hop: &Hop) -> IpAddr {
        match hop.six {
            0 => hop.next.into(),
            place => self.gateway6(place),
        }
    }
    #[cold]
    fn gateway6(&self, place: u16) -> IpAddr {
        self.gateways6.get(usize::from(place) - 1).map_or(Ipv6Addr::UNSPECIFIED, |via| *via).into()
    }
    fn uncounted(&mut self, route: &Route) {
        let length = (rank(route.table), 32 - route.dst.len);
        if let Some(count) = self.lengths.get_mut(&length) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&length);
            }
        }
        self.choosy -= usize::from(is_choosy(route));
        self.with_realms -= usize::from(route.realms != 0);
        if self.has_turned() {
            self.watch_turns(route);
        }
    }
    /// Puts a route in the place of the first of its [`Fib::rivals`]; whether there was one.
    pub(crate) fn replace(&mut self, route: Route) -> bool {
        let Some(first) = self.routes.get_mut(&Fib::place(&route)).and_then(|all| all.first_mut()) else {
            return false;
        };
        let old = std::mem::replace(first, route.clone());
        self.uncounted(&old);
        self.counted(&route);
        self.invalidate();
        true
    }
    /// Changes the ways of those routes that `which` names; their places stay.
    pub(crate) fn alter(&mut self, which: impl Fn(&Route) -> bool, mut change: impl FnMut(&mut Route)) {
        let mut routes = std::mem::take(&mut self.routes);
        for route in routes.values_mut().flatten().filter(|r| which(r)) {
            self.uncounted(route);
            change(route);
            self.counted(route);
        }
        self.routes = routes;
        self.invalidate();
    }
    /// Takes out all routes that `gone` names, which is asked of each in their order; answers how many.
    pub(crate) fn remove(&mut self, mut gone: impl FnMut(&Route) -> bool) -> usize {
        let mut out = Vec::new();
        self.routes.retain(|_, all| {
            out.extend(all.extract_if(.., |r| gone(r)));
            !all.is_empty()
        });
        out.iter().for_each(|r| self.uncounted(r));
        self.invalidate();
        out.len()
    }
    /// Takes out the first route of a table to a prefix that `gone` names.
    pub(crate) fn remove_first(
        &mut self,
        table: u32,
        dst: Prefix,
        gone: impl Fn(&Route) -> bool,
    ) -> Option<Route> {
        let mut all = self.routes.range(Fib::between(table, dst));
        let (place, at) = all.find_map(|(place, all)| Some((*place, all.iter().position(&gone)?)))?;
        let all = self.routes.get_mut(&place)?;
        let route = all.remove(at);
        if all.is_empty() {
            self.routes.remove(&place);
        }
        self.uncounted(&route);
        self.invalidate();
        Some(route)
    }
    /// Changes the rules; they stay in order of priority, the older first.
    pub(crate) fn change_rules(&mut self, change: impl FnOnce(&mut Vec<Rule>)) {
        change(&mut self.rules);
        self.rules.sort_by_key(|r| r.pref);
        self.rules_have_realms = self.rules.iter().any(|r| r.spec.realms != 0);
        let tables: Vec<Option<u32>> = self.rules.iter().map(|r| r.spec.table).collect();
        self.usual = tables == [Some(LOCAL), Some(MAIN), Some(DEFAULT)]
            && self.rules.iter().all(|r| {
                let bare = RuleSpec {
                    table: r.spec.table,
                    protocol: r.spec.protocol,
                    family: r.spec.family,
                    ..RuleSpec::default()
                };
                r.spec == bare
            });
        self.invalidate();
    }
    /// Which devices are in VRFs.
    #[inline]
    pub(crate) fn l3mdevs(&self) -> &L3mdevs {
        &self.l3mdevs
    }
    /// VRFs have come or gone, or ports of theirs have.
    pub(crate) fn set_l3mdevs(&mut self, l3mdevs: L3mdevs) {
        self.l3mdevs = l3mdevs;
        self.invalidate();
    }
    /// A table is there from now on, with or without routes (`fib_new_table`).
    pub(crate) fn new_table(&mut self, table: u32) {
        self.tables.insert(table);
    }
    /// Forgets the cache: something it rests on has changed.
    pub(crate) fn invalidate(&mut self) {
        self.generation = self.generation.wrapping_add(1).max(1);
        self.plain = self.usual && self.choosy == 0 && self.l3mdevs.is_empty();
    }

    /// Where the search for a destination in the cache begins, whose size is a power of two. It goes on from place to place up to one that is empty.
    #[inline]
    fn home(&self, dst: Ipv4Addr) -> usize {
        let mixed = u32::from(dst).wrapping_mul(0x9e37_79b1);
        (mixed >> 16) as usize & (self.cache.len() - 1)
    }
    /// What the cache knows of a destination that is true still.
    #[inline]
    fn cached(&self, dst: Ipv4Addr) -> Option<&Cached> {
        let first = &self.cache[self.home(dst)];
        if first.dst == dst && first.generation == self.generation && self.plain {
            return Some(first);
        }
        self.cached_beyond(dst)
    }
    #[inline(never)]
    fn cached_beyond(&self, dst: Ipv4Addr) -> Option<&Cached> {
        let cached = &self.cache[self.find_place(dst)];
        (self.plain && cached.dst == dst && cached.generation == self.generation).then_some(cached)
    }
    fn cached_mut(&mut self, dst: Ipv4Addr) -> Option<&mut Cached> {
        let place = self.find_place(dst);
        let cached = &mut self.cache[place];
        (self.plain && cached.dst == dst && cached.generation == self.generation).then_some(cached)
    }
    /// The place of a destination; else the one where it may be entered: one that holds no more, or the empty one at the end.
    fn find_place(&self, dst: Ipv4Addr) -> usize {
        let (mut at, mut free) = (self.home(dst), None);
        loop {
            let cached = &self.cache[at];
            if cached.generation == 0 {
                return free.unwrap_or(at);
            }
            if cached.dst == dst {
                return at;
            }
            if cached.generation != self.generation {
                free.get_or_insert(at);
            }
            at = (at + 1) & (self.cache.len() - 1);
        }
    }
    /// Enters a destination that is not there, or no more true.
    fn enter(&mut self, entry: Cached) {
        let place = self.find_place(entry.dst);
        self.taken += usize::from(self.cache[place].generation == 0);
        self.cache[place] = entry;
        if self.taken * 2 > self.cache.len() {
            self.make_room();
        }
    }
    /// The places of what holds no more are free again. Where a quarter of them all still holds the cache is made larger; one that is as large as
    /// it may be forgets all.
    #[cold]
    fn make_room(&mut self) {
        let holds = |cached: &Cached| cached.generation == self.generation;
        let len = self.cache.len();
        let many = self.cache.iter().filter(|c| holds(c)).count() * 4 > len;
        let size = if many { (len * 4).min(CACHE.1) } else { len };
        let old = std::mem::replace(&mut self.cache, vec![Cached::EMPTY; size]);
        self.taken = 0;
        if many && size == len {
            return;
        }
        for entry in old {
            if entry.generation == self.generation {
                let place = self.find_place(entry.dst);
                self.cache[place] = entry;
                self.taken += 1;
            }
        }
    }
    /// What the cache knows of a destination: the way there, and the sender that may send from where it does.
    #[inline]
    pub(crate) fn known(&self, dst: Ipv4Addr) -> Option<(&Hop, Ipv4Addr)> {
        self.cached(dst).map(|known| (&known.hop, known.from))
    }
    /// The route of a packet, from the cache where it knows.
    #[inline]
    pub(crate) fn lookup(&mut self, key: &Key) -> Hop {
        match self.cached(key.dst) {
            Some(cached) => cached.hop,
            None => self.lookup_slow(key),
        }
    }
    #[cold]
    fn lookup_slow(&mut self, key: &Key) -> Hop {
        let hop = self.search_key(key);
        if self.plain {
            self.enter(Cached::new(key.dst, self.generation, hop));
        }
        hop
    }
    /// Whether any route or rule has realms: else [`Fib::realms`] gives 0.
    #[inline]
    pub(crate) fn has_realms(&self) -> bool {
        self.with_realms > 0 || self.rules_have_realms
    }
    /// Realms of a packet that takes `hop`: the route's, and where these say nothing of its source, those of the way back (`None` for a
    /// packet made here).
    //= linux v6.12 net/ipv4/route.c rt_set_nexthop, set_class_tag; include/net/ip_fib.h fib_combine_itag
    #[inline]
    pub(crate) fn realms(&self, hop: &Hop, back: Option<&Key>) -> u32 {
        if !self.has_realms() {
            return 0;
        }
        let found = back.and_then(|key| self.search_rule(key).ok().flatten());
        let tag = found.map_or(0, |(route, rule)| match route.realms << 16 {
            0 => rule.spec.realms.rotate_left(16),
            own => own | rule.spec.realms >> 16,
        });
        filled(hop.realms, tag)
    }
    /// The route to `dst` of a packet made here, from the tables.
    pub(crate) fn search(&self, dst: Ipv4Addr) -> Hop {
        self.search_key(&Key::to(dst))
    }
    /// `fib_rules_lookup`.
    pub(crate) fn search_key(&self, key: &Key) -> Hop {
        match self.search_rule(key) {
            Ok(Some((r, rule))) => {
                let hop = self.hop_of(r, key);
                Hop { realms: filled(hop.realms, rule.spec.realms), ..hop }
            }
            Ok(None) => Hop::NONE,
            Err(kind) => Hop::refusing(kind),
        }
    }
    /// The same, as the route itself; an error is a rule that refuses.
    pub(crate) fn search_route(&self, key: &Key) -> Result<Option<&Route>, RouteKind> {
        Ok(self.search_rule(key)?.map(|found| found.0))
    }
    /// The same with the rule that led to it.
    fn search_rule(&self, key: &Key) -> Result<Option<(&Route, &Rule)>, RouteKind> {
        let key = &self.l3mdevs.update_flow(*key);
        for rule in walk(&self.rules, |r| r.matches(key)) {
            match rule.spec.action {
                Some(action) => return Err(RouteKind::of(action).unwrap_or(RouteKind::Blackhole)),
                None => {
                    let table = match rule.spec.l3mdev {
                        true => self.l3mdevs.of(key.l3mdev).table,
                        false => rule.spec.table.unwrap_or(MAIN),
                    };
                    let found = self.find_in(table, key);
                    match found {
                        Some(r) if r.kind == RouteKind::Throw || rule.suppresses(r.dst.len, r.dev) => {}
                        Some(r) => return Ok(Some((r, rule))),
                        None => {}
                    }
                }
            }
        }
        Ok(None)
    }
    fn hop_of(&self, r: &Route, key: &Key) -> Hop {
        let (via, dev) = match r.nexthops.as_slice() {
            [] => (r.via, r.dev),
            hops => {
                let ends = (key.src.into(), key.dst.into());
                let chosen = self.multipath.choose(ends, 0, key.ports, hops.iter().map(|h| h.weight));
                chosen.and_then(|n| hops.get(n)).map_or((None, 0), |h| (h.via, h.dev))
            }
        };
        let mtu = r.metrics.iter().find(|m| m.0 == MTU);
        let (next, six) = match via {
            Some(IpAddr::V4(via)) => (via, 0),
            Some(IpAddr::V6(via)) => (key.dst, self.places6.get(&via).copied().unwrap_or(0)),
            None => (key.dst, 0),
        };
        Hop {
            kind: Some(r.kind),
            oif: dev,
            next,
            src: r.src.unwrap_or(Ipv4Addr::UNSPECIFIED),
            neigh: 0,
            table: r.table,
            realms: r.realms,
            mtu: mtu.map_or(0, |m| m.1.min(MTU_MAX) as u16),
            mtu_locked: mtu.is_some_and(|m| m.2),
            hoplimit: r.metrics.iter().find(|m| m.0 == HOPLIMIT).map_or(0, |m| m.1.min(255) as u8),
            six,
        }
    }
    /// `fib_table_lookup`: the lengths of prefix that the table has, the longest first; of each the routes to the one prefix that matches.
    pub(crate) fn find_in(&self, table: u32, key: &Key) -> Option<&Route> {
        let rank = rank(table);
        self.lengths.range((rank, 0)..=(rank, 32)).find_map(|(&(_, short), _)| {
            let dst = Prefix { addr: key.dst, len: 32 - short }.network();
            self.to(table, dst)
                .find(|r| (r.tos == 0 || r.tos == key.tos) && (key.oif == 0 || r.dev == 0 || r.uses(key.oif)))
        })
    }
    /// The route that matches `dst` in the tables `local` and `main`.
    pub(crate) fn find(&self, dst: Ipv4Addr) -> Option<&Route> {
        let key = Key::to(dst);
        self.find_in(LOCAL, &key).or_else(|| self.find_in(MAIN, &key))
    }
    /// Whether [`Fib::note_source`] was told of a packet from `src` to `dst`, and no route has changed since.
    #[inline]
    pub(crate) fn knows_source(&self, dst: Ipv4Addr, src: Ipv4Addr) -> bool {
        self.cached(dst).is_some_and(|cached| cached.from == src)
    }
    /// A packet from `src` to `dst` may come: `src` is no address of this machine and no broadcast.
    pub(crate) fn note_source(&mut self, dst: Ipv4Addr, src: Ipv4Addr) {
        if let Some(cached) = self.cached_mut(dst) {
            cached.from = src;
        }
    }
    /// Notes where the neighbour of a destination stands, for the next packet.
    #[inline]
    pub(crate) fn note_neigh(&mut self, dst: Ipv4Addr, hop: &Hop, neigh: u32) {
        let same = |c: &Hop| (c.next, c.six) == (hop.next, hop.six);
        if let Some(cached) = self.cached_mut(dst).filter(|c| same(&c.hop)) {
            cached.hop.neigh = neigh + 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::NextHop;
    use super::*;

    fn route(dst: &str, dev: u32, metric: u32) -> Route {
        Route { dev, metric, ..Route::new(Prefix::parse(dst).unwrap()) }
    }

    #[test]
    fn the_longest_prefix_wins_then_the_lowest_metric() {
        let mut fib = Fib::default();
        for r in [route("0.0.0.0/0", 1, 0), route("10.0.0.0/8", 2, 5), route("10.1.0.0/16", 3, 0)] {
            fib.insert(r);
        }
        fib.insert(route("10.0.0.0/8", 4, 1));
        let oif = |fib: &mut Fib, dst: &str| fib.lookup(&Key::to(dst.parse().unwrap())).oif;
        assert_eq!(oif(&mut fib, "192.0.2.1"), 1);
        assert_eq!(oif(&mut fib, "10.2.0.1"), 4);
        assert_eq!(oif(&mut fib, "10.1.2.3"), 3);
        assert_eq!(oif(&mut fib, "10.1.2.3"), 3);
        assert_eq!(fib.remove(|r| r.dev == 3), 1);
        assert_eq!(oif(&mut fib, "10.1.2.3"), 4);
    }

    /// Whatever comes and goes: the route that a search through all of them in their order finds.
    #[test]
    fn a_search_finds_what_a_walk_finds() {
        let mut dice = penstock_model::Rng::named(7, "fib");
        let mut fib = Fib::default();
        let mut routes: Vec<Route> = Vec::new();
        let addr =
            |dice: &mut penstock_model::Rng| Ipv4Addr::from(0x0a00_0000 | (dice.next_u64() as u32 & 0x0f0f));
        for step in 0..4000u32 {
            let len = [0, 8, 20, 24, 28, 30, 32][dice.below(7) as usize];
            let new = Route {
                table: [MAIN, LOCAL, 100][dice.below(3) as usize],
                tos: [0, 0, 0x10][dice.below(3) as usize],
                metric: dice.below(2),
                dev: 1 + dice.below(3),
                realms: dice.below(2),
                ..Route::new(Prefix::new(addr(&mut dice), len).network())
            };
            match dice.below(5) {
                0 if !routes.is_empty() => {
                    let old = routes.remove(dice.below(routes.len() as u32) as usize);
                    assert_eq!(fib.remove_first(old.table, old.dst, |r| *r == old), Some(old));
                }
                1 if step % 500 == 1 => {
                    let gone = |r: &Route| r.dev == 2;
                    let before = routes.len();
                    routes.retain(|r| !gone(r));
                    assert_eq!(fib.remove(gone), before - routes.len());
                }
                2 => {
                    if routes.iter().any(|r| Fib::place(r) == Fib::place(&new)) {
                        continue;
                    }
                    let at = routes.partition_point(|r| Fib::place(r) < Fib::place(&new));
                    routes.insert(at, new.clone());
                    fib.insert_first(new);
                }
                _ => {
                    if fib.rivals(&new).contains(&new) {
                        continue;
                    }
                    let at = routes.partition_point(|r| Fib::place(r) <= Fib::place(&new));
                    routes.insert(at, new.clone());
                    fib.insert(new);
                }
            }
            assert!(fib.routes().eq(&routes));
            assert_eq!(fib.has_realms(), routes.iter().any(|r| r.realms != 0));
            let key = Key {
                tos: [0, 0x10][dice.below(2) as usize],
                oif: [0, 0, 1][dice.below(3) as usize],
                ..Key::to(addr(&mut dice))
            };
            for table in [LOCAL, MAIN, 100, 101] {
                let walked = routes.iter().filter(|r| r.table == table).find(|r| {
                    r.dst.contains(key.dst)
                        && (r.tos == 0 || r.tos == key.tos)
                        && (key.oif == 0 || r.uses(key.oif))
                });
                assert_eq!(fib.find_in(table, &key), walked);
            }
        }
    }

    /// More destinations than the cache holds at first, again and again: each has its own route.
    #[test]
    fn the_cache_grows_and_stays_true() {
        let mut fib = Fib::default();
        for i in 0..2000 {
            let addr = Ipv4Addr::from(0x0a00_0000 + i);
            fib.insert(Route { dev: 10 + i, ..Route::new(Prefix::new(addr, 32)) });
        }
        for round in 0..6 {
            for i in 0..2000 {
                let addr = Ipv4Addr::from(0x0a00_0000 + i);
                assert_eq!(fib.lookup(&Key::to(addr)).oif, 10 + i, "round {round}");
            }
        }
        assert!((4096..=CACHE.1).contains(&fib.cache.len()), "{}", fib.cache.len());
        // Each of them is known: none has driven another out.
        assert_eq!(fib.taken, 2000);
        assert!((0..2000).all(|i| fib.cached(Ipv4Addr::from(0x0a00_0000 + i)).is_some()));
        fib.remove(|r| r.dev == 10);
        assert_eq!(fib.lookup(&Key::to(Ipv4Addr::from(0x0a00_0000))).kind, None);
    }

    /// What held before a change is taken for nothing and its places are used again; of more than it has places for it forgets all.
    #[test]
    fn the_cache_forgets_and_stays_true() {
        let mut fib = Fib::default();
        fib.insert(Route { dev: 7, ..Route::new(Prefix::new(Ipv4Addr::UNSPECIFIED, 0)) });
        let addr = |i: u32| Ipv4Addr::from(0x0a00_0000 + i);
        for change in 0..50 {
            for i in 0..100 {
                assert_eq!(fib.lookup(&Key::to(addr(i * (change + 1)))).oif, 7 + change);
                fib.note_source(addr(i * (change + 1)), addr(9));
            }
            assert!((0..100).all(|i| fib.knows_source(addr(i * (change + 1)), addr(9))));
            fib.replace(Route { dev: 8 + change, ..Route::new(Prefix::new(Ipv4Addr::UNSPECIFIED, 0)) });
            assert!(!fib.knows_source(addr(0), addr(9)));
        }
        assert!(fib.cache.len() <= 1024, "{}", fib.cache.len());
        for i in 0..200_000 {
            assert_eq!(fib.lookup(&Key::to(addr(i))).oif, 57);
        }
        assert_eq!(fib.cache.len(), CACHE.1);
        assert!(fib.taken * 2 <= CACHE.1);
    }

    #[test]
    fn rules_choose_the_table() {
        let mut fib = Fib::default();
        fib.insert(route("0.0.0.0/0", 1, 0));
        fib.insert(Route { table: 100, ..route("0.0.0.0/0", 2, 0) });
        fib.insert(Route { table: 101, kind: RouteKind::Throw, ..route("0.0.0.0/0", 0, 0) });
        let mark = |mark, table| Rule {
            pref: 10 + mark,
            spec: RuleSpec { fwmark: Some((mark, None)), table: Some(table), ..RuleSpec::default() },
            iif: 0,
            oif: 0,
            suppressed: Vec::new(),
        };
        fib.change_rules(|rules| rules.extend([mark(7, 100), mark(8, 101)]));
        let oif =
            |fib: &mut Fib, mark| fib.lookup(&Key { mark, ..Key::to("192.0.2.1".parse().unwrap()) }).oif;
        assert_eq!((oif(&mut fib, 0), oif(&mut fib, 7), oif(&mut fib, 8)), (1, 2, 1));
        fib.change_rules(|rules| rules.retain(|r| r.pref == 0));
        assert_eq!(fib.lookup(&Key::to("192.0.2.1".parse().unwrap())).kind, None);
    }

    #[test]
    fn ways_are_shared_by_weight() {
        let mut fib = Fib::default();
        let hop = |dev, weight| NextHop { via: None, dev, weight, onlink: false };
        fib.insert(Route { nexthops: vec![hop(1, 3), hop(2, 1)], ..route("10.0.0.0/8", 0, 0) });
        let mut seen = [0; 3];
        for i in 0..4000u32 {
            seen[fib.lookup(&Key::to(Ipv4Addr::from(0x0a00_0000 + i))).oif as usize] += 1;
        }
        assert!((2800..3200).contains(&seen[1]) && seen[1] + seen[2] == 4000, "{seen:?}");
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
