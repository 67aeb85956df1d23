//! Nexthops that routes share (`ip nexthop`, `nhid`): what there is, and what follows for the routes that go by them.
//!
//! Each route that goes by a nexthop holds its ways as any other does, so that a search need not ask here; they are written anew whenever the nexthop
//! changes.
//!
//! Follows: linux v6.12 `net/ipv4/nexthop.c` `remove_nexthop`, `remove_nexthop_from_groups`, `replace_nexthop`, `nexthop_flush_dev`,
//! `nh_find_unused_id`, `nexthop_is_blackhole`.
//! Differs: no encapsulation, no resilient groups.

use crate::Host;
use crate::route::{NextHop, Route, RouteKind};
use crate::six::Route6;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The nexthop a route goes by.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ByNexthop {
    /// Its id.
    pub id: u32,
    /// Of IPv6, where each way is a route here: the id of this way's own nexthop.
    pub member: u32,
    /// The type the route was made with (`RTN_*`): a nexthop may make it a blackhole.
    pub kind: u8,
}

/// One way, by itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Single {
    /// Of IPv6.
    pub six: bool,
    /// Gateway.
    pub via: Option<IpAddr>,
    /// Interface index; `lo` of a blackhole.
    pub dev: u32,
    /// It drops all.
    pub blackhole: bool,
    /// `onlink`.
    pub onlink: bool,
    /// `RT_SCOPE_*`.
    pub scope: u8,
}

/// What a nexthop is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// One way.
    Single(Single),
    /// Several by id and weight.
    Group(Vec<(u32, u16)>),
}

/// A nexthop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Nexthop {
    /// `RTPROT_*`.
    pub protocol: u8,
    /// What it is.
    pub kind: Kind,
}

/// The nexthops of a network namespace.
#[derive(Default)]
pub(crate) struct Nexthops {
    all: BTreeMap<u32, Nexthop>,
    /// The last id the kernel found.
    last_id: u32,
}

impl Nexthops {
    pub(crate) fn get(&self, id: u32) -> Option<&Nexthop> {
        self.all.get(&id)
    }
    /// All by id.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Nexthop)> {
        self.all.iter().map(|(id, nexthop)| (*id, nexthop))
    }
    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// The ways of a nexthop, or of one that is not there yet: id, way, weight.
    pub(crate) fn ways_of<'a>(&'a self, id: u32, kind: &'a Kind) -> Vec<(u32, &'a Single, u16)> {
        match kind {
            Kind::Single(single) => vec![(id, single, 1)],
            Kind::Group(members) => members
                .iter()
                .filter_map(|&(id, weight)| match self.all.get(&id).map(|n| &n.kind) {
                    Some(Kind::Single(single)) => Some((id, single, weight)),
                    _ => None,
                })
                .collect(),
        }
    }
    /// The groups that have it, by id and how many members each has.
    pub(crate) fn groups_of(&self, id: u32) -> Vec<(u32, usize)> {
        let of = |(&group, n): (&u32, &Nexthop)| match &n.kind {
            Kind::Group(members) if members.iter().any(|m| m.0 == id) => Some((group, members.len())),
            _ => None,
        };
        self.all.iter().filter_map(of).collect()
    }
    /// An id that nothing has.
    pub(crate) fn unused_id(&mut self) -> Option<u32> {
        let start = self.last_id;
        loop {
            self.last_id = self.last_id.wrapping_add(1);
            if self.last_id == start {
                return None;
            }
            if self.last_id != 0 && !self.all.contains_key(&self.last_id) {
                return Some(self.last_id);
            }
        }
    }
}

impl Host {
    /// Enters a nexthop, or puts it in the place of the one that is there.
    pub(crate) fn put_nexthop(&mut self, id: u32, nexthop: Nexthop) {
        let changed = self.nexthops.all.insert(id, nexthop).is_some();
        if changed {
            let mut ids: BTreeSet<u32> = self.nexthops.groups_of(id).into_iter().map(|g| g.0).collect();
            ids.insert(id);
            self.rewrite_routes_by(&ids);
        }
    }
    /// Takes a nexthop out with the routes that go by it. The groups that have it go on without it, and go with the last of theirs.
    pub(crate) fn remove_nexthop(&mut self, id: u32) -> bool {
        if self.nexthops.all.remove(&id).is_none() {
            return false;
        }
        let mut gone = BTreeSet::from([id]);
        let mut changed = BTreeSet::new();
        for (group, size) in self.nexthops.groups_of(id) {
            if size == 1 {
                self.nexthops.all.remove(&group);
                gone.insert(group);
            } else if let Some(Kind::Group(members)) = self.nexthops.all.get_mut(&group).map(|n| &mut n.kind)
            {
                members.retain(|m| m.0 != id);
                changed.insert(group);
            }
        }
        let by = |by: Option<ByNexthop>| by.is_some_and(|by| gone.contains(&by.id));
        self.fib.remove(|r| by(r.by));
        self.six.fib.remove(|r| by(r.by));
        self.rewrite_routes_by(&changed);
        true
    }
    /// What leads over a device that is down, gone or without a carrier is no nexthop any more; a blackhole stays.
    pub(crate) fn nexthops_follow(&mut self) {
        if self.nexthops.is_empty() {
            return;
        }
        let leads = |dev: u32| self.device(dev).is_some_and(|d| d.up && self.carrier(d));
        let lost = |(id, n): (u32, &Nexthop)| match &n.kind {
            Kind::Single(single) if !single.blackhole && !leads(single.dev) => Some(id),
            _ => None,
        };
        let lost: Vec<u32> = self.nexthops.iter().filter_map(lost).collect();
        for id in lost {
            self.remove_nexthop(id);
        }
    }
    /// The same in all network namespaces: a peer may be in another.
    pub(crate) fn all_nexthops_follow(&mut self) {
        if self.space_ids().iter().all(|&id| self.space_ref(id).is_none_or(|h| h.nexthops.is_empty())) {
            return;
        }
        for space in self.space_ids() {
            self.in_space(space, Host::nexthops_follow);
        }
    }
    /// The ways of the routes that go by these are what they are now.
    fn rewrite_routes_by(&mut self, ids: &BTreeSet<u32>) {
        if ids.is_empty() {
            return;
        }
        let nexthops = &self.nexthops;
        let kind_of = |id: u32| nexthops.get(id).map(|n| &n.kind);
        self.fib.alter(
            |r| r.by.is_some_and(|by| ids.contains(&by.id)),
            |r| {
                if let Some((by, kind)) = r.by.and_then(|by| Some((by, kind_of(by.id)?))) {
                    lead(r, &nexthops.ways_of(by.id, kind));
                }
            },
        );
        // Of IPv6 one route here is one way there: the first of each stands for all.
        let ours = |r: &Route6| r.by.is_some_and(|by| ids.contains(&by.id));
        let mut firsts: Vec<Route6> = Vec::new();
        for r in self.six.fib.routes().filter(|r| ours(r)) {
            if !firsts
                .iter()
                .any(|f| f.is_mate(r) && (f.table, f.dst, f.metric) == (r.table, r.dst, r.metric))
            {
                firsts.push(r.clone());
            }
        }
        self.six.fib.remove(ours);
        for first in firsts {
            let Some((by, kind)) = first.by.and_then(|by| Some((by, kind_of(by.id)?))) else { continue };
            for route in ways6(&first, by, &nexthops.ways_of(by.id, kind)) {
                self.six.fib.insert(route);
            }
        }
    }
}

/// A route leads these ways.
pub(crate) fn lead(route: &mut Route, ways: &[(u32, &Single, u16)]) {
    let given = route.by.and_then(|by| RouteKind::of(by.kind)).unwrap_or(route.kind);
    (route.kind, route.via, route.dev, route.onlink) = (given, None, 0, false);
    route.nexthops.clear();
    match ways {
        [(_, way, _)] if way.blackhole => route.kind = RouteKind::Blackhole,
        [(_, way, _)] => (route.via, route.dev, route.onlink) = (way.via, way.dev, way.onlink),
        ways => {
            let hop = |&(_, way, weight): &(u32, &Single, u16)| NextHop {
                via: way.via,
                dev: way.dev,
                weight: weight.into(),
                onlink: way.onlink,
            };
            route.nexthops.extend(ways.iter().map(hop));
        }
    }
}

/// The ways of a route of IPv6 that goes by a nexthop.
pub(crate) fn ways6(like: &Route6, by: ByNexthop, ways: &[(u32, &Single, u16)]) -> Vec<Route6> {
    let way = |&(member, way, weight): &(u32, &Single, u16)| Route6 {
        kind: if way.blackhole { RouteKind::Blackhole.number() } else { by.kind },
        via: match way.via {
            Some(IpAddr::V6(via)) => Some(via),
            _ => None,
        },
        dev: way.dev,
        onlink: way.onlink,
        weight: weight.into(),
        by: Some(ByNexthop { member, ..by }),
        ..like.clone()
    };
    ways.iter().map(way).collect()
}
