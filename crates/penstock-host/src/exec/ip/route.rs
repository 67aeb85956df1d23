//! `ip route`.
//!
//! Follows: linux v6.12 `net/ipv4/fib_frontend.c`, `fib_semantics.c` `fib_create_info`, `fib_check_nh_v4_gw`, `fib_nh_match`,
//! `fib_trie.c` `fib_table_insert`, `fib_table_delete`.

use super::super::controls;
use super::{Done, errno, says};
use crate::nexthop::{Kind, lead, ways6};
use crate::route::{BOOT, ByNexthop, Key, LOCAL, MAIN, NextHop, Route, RouteKind};
use crate::six::{Route6, network};
use crate::{Host, Prefix};
use penstock_lang::ip::{
    self, Failure, Family, Form, METRICS, Net, NextHopView, NexthopView, RouteFilter, RouteSpec, RouteVerb,
    RouteView, control_of,
};
use penstock_model::{Kernel, KernelError, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// ENETUNREACH, EHOSTUNREACH, EACCES.
pub(super) const ENETUNREACH: i32 = 101;
pub(super) const EHOSTUNREACH: i32 = 113;
pub(super) const EACCES: i32 = 13;

pub(super) fn four(addr: IpAddr) -> Ipv4Addr {
    match addr {
        IpAddr::V4(addr) => addr,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

pub(super) fn six(addr: IpAddr) -> Option<Ipv6Addr> {
    match addr {
        IpAddr::V6(addr) => Some(addr),
        IpAddr::V4(_) => None,
    }
}

impl Host {
    pub(super) fn route_change(&mut self, verb: RouteVerb, spec: &RouteSpec, now: Time) -> Done {
        if let Some(name) = &spec.vrf {
            let table = self.devices[self.vrf_called(name, "Invalid VRF\n")?].vrf_table();
            return self.route_change(verb, &RouteSpec { table, vrf: None, ..spec.clone() }, now);
        }
        // Whether a device of several ways is there is asked before the words behind it are read.
        self.devs_of_ways(spec)?;
        if let Some(fault) = &spec.fault {
            return Err(fault.clone());
        }
        if spec.family == Family::Inet6 {
            return self.route6_change(verb, spec, now);
        }
        let dev = spec.dev.as_deref().map(|d| self.dev(d)).transpose()?;
        let dst =
            spec.dst.map_or(Prefix::new(Ipv4Addr::UNSPECIFIED, 0), |n| Prefix::new(four(n.addr), n.len));
        if dst.network() != dst {
            return Err(self.no(KernelError::EINVAL, "Invalid prefix for given prefix length"));
        }
        let kind = match spec.kind {
            None => RouteKind::Unicast,
            Some(number) => match RouteKind::of(number) {
                Some(kind) => kind,
                None => return Err(self.no(KernelError::EINVAL, "Invalid route type")),
            },
        };
        let own = matches!(kind, RouteKind::Local | RouteKind::Broadcast);
        let table = spec.table.filter(|t| *t != 0).unwrap_or(if own { LOCAL } else { MAIN });
        if let Some(why) = spec.via_fault {
            return Err(self.no(KernelError::EINVAL, why));
        }
        let via = spec.via;
        let by = self.nexthop_named(verb, spec, kind.number())?;
        if verb == RouteVerb::Del {
            let named: Vec<_> = spec.nexthops.iter().map(|h| h.via).zip(self.devs_of_ways(spec)?).collect();
            //= linux v6.12 net/ipv4/fib_semantics.c fib_nh_match: way by way
            let ways = |r: &Route| {
                let one = [(r.via, r.dev)];
                let all: Vec<_> = r.nexthops.iter().map(|h| (h.via, h.dev)).collect();
                let all = if all.is_empty() { &one[..] } else { &all[..] };
                let same = |way: &(Option<IpAddr>, u32), via: Option<IpAddr>, dev: Option<u32>| {
                    dev.is_none_or(|dev| dev == way.1) && via.is_none_or(|via| Some(via) == way.0)
                };
                let pairs = all.iter().zip(&named);
                named.is_empty()
                    || all.len() <= named.len() && pairs.into_iter().all(|(way, n)| same(way, n.0, n.1))
            };
            let shape = |r: &Route| match (by, r.by) {
                (Some(by), of) => of.is_some_and(|of| of.id == by.id),
                (None, Some(_)) => via.is_none() && dev.is_none() && spec.nexthops.is_empty(),
                (None, None) => true,
            };
            let gone = self.fib.remove_first(table, dst, |r| {
                r.tos == spec.tos
                    && shape(r)
                    && ways(r)
                    && spec.kind.is_none_or(|_| r.by.map_or(r.kind.number(), |by| by.kind) == kind.number())
                    && spec.scope.is_none_or(|s| r.scope == s)
                    && spec.src.is_none_or(|s| r.src.map(IpAddr::V4) == Some(s))
                    && spec.protocol.is_none_or(|p| r.proto == p)
                    && spec.metric.is_none_or(|m| r.metric == m)
                    && via.is_none_or(|v| r.via == Some(v) || r.nexthops.iter().any(|h| h.via == Some(v)))
                    && dev.is_none_or(|d| r.uses(d))
            });
            return match gone {
                Some(_) => Ok(String::new()),
                None if !self.fib.has_table(table) && self.kernel >= Kernel::V6_12 => {
                    Err(self.no(KernelError::ESRCH, "FIB table does not exist"))
                }
                None => Err(errno(KernelError::ESRCH)),
            };
        }
        let mut route = Route {
            table,
            tos: spec.tos,
            kind,
            via,
            src: spec.src.map(four),
            metric: spec.metric.unwrap_or(0),
            proto: spec.protocol.unwrap_or(BOOT),
            onlink: spec.onlink,
            metrics: spec.metrics.clone(),
            // Realms stand with a way of the route's own (fib_create_info).
            realms: if by.is_none() { spec.realms } else { 0 },
            by,
            ..Route::new(dst)
        };
        route.scope = spec.scope.unwrap_or(match kind {
            RouteKind::Local => 254,
            RouteKind::Broadcast => 253,
            RouteKind::Unicast if via.is_none() && spec.nexthops.is_empty() && spec.nhid.is_none() => 253,
            _ => 0,
        });
        self.check_route(&mut route, dev, spec)?;
        if by.is_some() && spec.metrics.is_empty() {
            //= linux v6.12 net/ipv4/fib_semantics.c fib_find_info_nh: a route takes over the metrics of one like it by the same nexthop
            let like = |r: &&Route| {
                r.by == by
                    && (r.table, r.proto, r.scope, r.src, r.metric)
                        == (route.table, route.proto, route.scope, route.src, route.metric)
            };
            if let Some(shared) = self.fib.routes().find(like).map(|r| r.metrics.clone()) {
                route.metrics = shared;
            }
        }
        self.take_controls(spec)?;
        self.note_unfollowed(spec);
        let rivals = self.fib.rivals(&route);
        let (there, twin) = (!rivals.is_empty(), rivals.contains(&route));
        match (verb, there) {
            (RouteVerb::Add, true) => return Err(errno(KernelError::EEXIST)),
            (RouteVerb::Change, false) => return Err(errno(KernelError::ENOENT)),
            (RouteVerb::Change | RouteVerb::Replace, true) => {
                self.fib.replace(route);
                return Ok(String::new());
            }
            (RouteVerb::Append | RouteVerb::Prepend, true) if twin => {
                return Err(errno(KernelError::EEXIST));
            }
            (RouteVerb::Prepend, _) => self.fib.insert_first(route),
            _ => self.fib.insert(route),
        }
        Ok(String::new())
    }

    /// Notes the words of a route from which nothing follows.
    fn note_unfollowed(&mut self, spec: &RouteSpec) {
        // Kept in eighths and quarters of milliseconds. Since Linux 3.6 a row of `ip tcp_metrics` takes them up.
        let old = spec.metrics.iter().filter(|_| self.kernel == Kernel::V2_6_35);
        let metrics = old.filter_map(|&(metric, value, _)| match METRICS.get(usize::from(metric)) {
            Some(&"rtt") if value > 0 => Some(format!("rtt {}ms", value / 8)),
            Some(&"rttvar") if value > 0 => Some(format!("rttvar {}ms", value / 4)),
            _ => None,
        });
        let all = spec.others.iter().cloned().chain(metrics);
        self.unfollowed.extend(
            all.map(|words| format!("ip route … {words}: not simulated; the route is as without it")),
        );
    }

    /// The congestion controls that a route names must be there; their modules are loaded.
    //= linux v6.12 net/ipv4/metrics.c ip_metrics_convert
    fn take_controls(&mut self, spec: &RouteSpec) -> Result<(), Failure> {
        for &(_, number, _) in
            spec.metrics.iter().filter(|m| METRICS.get(usize::from(m.0)) == Some(&"congctl"))
        {
            let name = control_of(number).unwrap_or("");
            if self.kernel == Kernel::V2_6_35 {
                // It came with Linux 4.0.
                self.unfollowed
                    .insert(format!("ip route … congctl {name}: not simulated; the route is as without it"));
                continue;
            }
            let Some(control) = controls::find(name, self.kernel) else {
                return Err(self.no(KernelError::EINVAL, "Unknown tcp congestion algorithm"));
            };
            self.register_control(control);
        }
        Ok(())
    }

    /// `fib_create_info`: fills in the way, or says what is wrong with it.
    fn check_route(&self, route: &mut Route, dev: Option<u32>, spec: &RouteSpec) -> Result<(), Failure> {
        let refusing = !matches!(route.kind, RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast);
        if let Some(by) = route.by {
            let Some(kind) = self.nexthops.get(by.id).map(|n| &n.kind) else { return Ok(()) };
            let ways = self.nexthops.ways_of(by.id, kind);
            match refusing {
                true => self.check_gateways(&ways)?,
                false => self.check_ways(&ways, route.scope, matches!(kind, Kind::Group(_)))?,
            }
            lead(route, &ways);
        } else if refusing {
            if route.via.is_some() || dev.is_some() || !spec.nexthops.is_empty() {
                let why = "Gateway, device and multipath can not be specified for this route type";
                return Err(self.no(KernelError::EINVAL, why));
            }
        } else if spec.nexthops.is_empty() {
            route.dev = match (dev, route.scope) {
                // What is this machine's own needs no way.
                (Some(dev), 254) if route.via.is_none() => dev,
                _ => self.check_gateway(route.table, route.via, dev, route.onlink, route.scope)?,
            };
        } else {
            let devs = self.devs_of_ways(spec)?;
            if route.scope == 254 && devs.len() > 1 {
                let why = "Route with host scope can not have multiple nexthops";
                return Err(self.no(KernelError::EINVAL, why));
            }
            if let Some(why) = spec.nexthops.iter().find_map(|hop| hop.fault) {
                return Err(self.no(KernelError::EINVAL, why));
            }
            for (hop, dev) in spec.nexthops.iter().zip(devs) {
                let via = hop.via;
                let dev = self.check_gateway(route.table, via, dev, hop.onlink, route.scope)?;
                route.nexthops.push(NextHop { via, dev, weight: hop.weight, onlink: hop.onlink });
            }
            if let [only] = route.nexthops.as_slice() {
                (route.via, route.dev, route.onlink) = (only.via, only.dev, only.onlink);
                route.nexthops.clear();
            }
        }
        // A local route may name the address it is for.
        let in_table = |src: Ipv4Addr| {
            let found = self.fib.find_in(route.table, &Key::to(src));
            route.table != MAIN && found.is_some_and(|r| r.kind == RouteKind::Local)
        };
        let own = |src: Ipv4Addr| {
            self.is_local(src) || in_table(src) || route.kind == RouteKind::Local && src == route.dst.addr
        };
        if route.src.is_some_and(|src| !own(src)) {
            return Err(self.no(KernelError::EINVAL, "Invalid prefsrc address"));
        }
        Ok(())
    }

    /// The nexthop that a route is to go by, where it names one: it must be there, and no other way may be named.
    //= linux v6.12 net/ipv4/fib_frontend.c rtm_to_fib_config, net/ipv6/route.c rtm_to_fib6_config
    fn nexthop_named(
        &self,
        verb: RouteVerb,
        spec: &RouteSpec,
        kind: u8,
    ) -> Result<Option<ByNexthop>, Failure> {
        // IPv6 asks whether an id is named at all.
        let named = |id: u32| id != 0 || spec.family == Family::Inet6;
        let Some(id) = spec.nhid.filter(|&id| named(id)) else { return Ok(None) };
        if spec.via.is_some() || spec.dev.is_some() || !spec.nexthops.is_empty() {
            let why = "Nexthop specification and nexthop id are mutually exclusive";
            return Err(self.no(KernelError::EINVAL, why));
        }
        if id == 0 {
            return Ok(None);
        }
        let Some(nexthop) = self.nexthops.get(id) else {
            return Err(self.no(KernelError::EINVAL, "Nexthop id does not exist"));
        };
        if spec.family == Family::Inet6 && verb != RouteVerb::Del {
            self.check_ways6(&self.nexthops.ways_of(id, &nexthop.kind))?;
        }
        Ok(Some(ByNexthop { id, member: 0, kind }))
    }

    /// The device of one of several ways.
    //= iproute2 6.1.0 ip/iproute.c parse_nexthops
    fn dev_of_way(&self, name: &str) -> Result<u32, Failure> {
        self.dev(name).map_err(|mut failure| {
            if self.kernel >= Kernel::V6_12 {
                failure.stderr.push_str("Error: cannot parse nexthop\n");
                failure.exit = 255;
            }
            failure
        })
    }
    fn devs_of_ways(&self, spec: &RouteSpec) -> Result<Vec<Option<u32>>, Failure> {
        let dev = |hop: &ip::NextHopSpec| hop.dev.as_deref().map(|name| self.dev_of_way(name)).transpose();
        spec.nexthops.iter().map(dev).collect()
    }
    fn route6_change(&mut self, verb: RouteVerb, spec: &RouteSpec, now: Time) -> Done {
        let dev = spec.dev.as_deref().map(|d| self.dev(d)).transpose()?;
        let Some(Net { addr: IpAddr::V6(addr), len }) = spec.dst else {
            return Err(errno(KernelError::EINVAL));
        };
        let dst = network(addr, len);
        if dst.addr != IpAddr::V6(addr) {
            return Err(self.no(KernelError::EINVAL, "Invalid prefix for given prefix length"));
        }
        if spec.via.is_some_and(|via| via.is_ipv4()) {
            return Err(self.no(KernelError::EINVAL, "IPv6 does not support RTA_VIA attribute"));
        }
        let via = spec.via.and_then(six);
        let table = spec.table.filter(|t| *t != 0).unwrap_or(MAIN);
        let kind = spec.kind.unwrap_or(1);
        let by = self.nexthop_named(verb, spec, kind)?;
        if verb == RouteVerb::Del {
            return self.route6_delete(spec, table, dst, via, dev);
        }
        let refusing = matches!(kind, 6..=9);
        let src = match spec.src {
            Some(IpAddr::V6(src)) if !self.is_local6(src) => {
                return Err(self.no(KernelError::EINVAL, "Invalid source address"));
            }
            Some(IpAddr::V6(src)) => Some(src),
            _ => None,
        };
        let mut ways = Vec::new();
        if spec.nexthops.is_empty() && by.is_none() {
            ways.push((via, dev, spec.onlink, 1));
        }
        for hop in &spec.nexthops {
            let dev = hop.dev.as_deref().map(|d| self.dev_of_way(d)).transpose()?;
            let via = hop.via.and_then(six);
            ways.push((via, dev, hop.onlink, hop.weight));
        }
        self.take_controls(spec)?;
        self.note_unfollowed(spec);
        let mut routes = Vec::new();
        let hz = i64::from(self.hz);
        let expires = spec.expires.filter(|&s| s != u32::MAX).map(|s| self.tick(now) + i64::from(s) * hz);
        let like = |dev: u32| Route6 {
            table,
            kind,
            src,
            metric: spec.metric.filter(|m| *m > 0).unwrap_or(1024),
            proto: spec.protocol.unwrap_or(BOOT),
            metrics: spec.metrics.clone(),
            expires,
            //= linux v6.12 net/ipv6/route.c rtm_to_fib6_config
            pref: spec.pref.filter(|p| matches!(p, 1 | 3)).unwrap_or(0),
            ..Route6::new(dst, dev)
        };
        for (via, dev, onlink, weight) in ways {
            let dev = if refusing { 1 } else { self.check_way6(via, dev, onlink)? };
            let among = !refusing && !spec.nexthops.is_empty();
            if among && via.is_none() && self.kernel >= Kernel::V6_12 {
                //= linux v6.12 net/ipv6/route.c ip6_route_multipath_add
                let why = "Device only routes can not be added for IPv6 using the multipath API.";
                return Err(self.no(KernelError::EINVAL, why));
            }
            routes.push(Route6 { via: via.filter(|_| !refusing), onlink, weight, ..like(dev) });
        }
        if let Some((by, kind)) = by.and_then(|by| Some((by, self.nexthops.get(by.id).map(|n| &n.kind)?))) {
            routes.extend(ways6(&like(0), by, &self.nexthops.ways_of(by.id, kind)));
        }
        let Some(first) = routes.first() else { return Ok(String::new()) };
        let there = !self.six.fib.rivals(first).is_empty();
        match (verb, there) {
            (RouteVerb::Add, true) => return Err(errno(KernelError::EEXIST)),
            //= linux v6.12 net/ipv6/ip6_fib.c fib6_add_1
            (RouteVerb::Change, false) if self.six.fib.to(table, &dst).next().is_none() => {
                return Err(self.no(KernelError::ENOENT, "Can not replace route - no match found"));
            }
            (RouteVerb::Change, false) => return Err(errno(KernelError::ENOENT)),
            (RouteVerb::Change | RouteVerb::Replace, true) => self.give_way6(first),
            _ => {}
        }
        // All its ways are there where one is.
        let twin = by.is_some() && self.six.fib.rivals(first).iter().any(|r| r.is_mate(first));
        let new = !twin && routes.into_iter().all(|route| self.six.fib.insert(route));
        // Of one that is there the time has changed.
        self.watch_routes6(now);
        if new { Ok(String::new()) } else { Err(errno(KernelError::EEXIST)) }
    }
    /// A route takes the place of its like: all ways of one that it can be a way of, else one.
    //= linux v6.12 net/ipv6/ip6_fib.c fib6_add_rt2node with NLM_F_REPLACE
    fn give_way6(&mut self, new: &Route6) {
        let all = self.six.fib.rivals(new);
        let like = all.iter().find(|r| r.is_way() == new.is_way());
        let Some(gone) = like.or(all.first()).cloned() else { return };
        let ways = like.is_some() && gone.is_way();
        let mate = |r: &Route6| r.by.is_some() && r.is_mate(&gone);
        self.six.fib.remove_like(&gone, |r| ways && r.is_way() || mate(r) || r.same_way(&gone));
    }
    fn route6_delete(
        &mut self,
        spec: &RouteSpec,
        table: u32,
        dst: Net,
        via: Option<Ipv6Addr>,
        dev: Option<u32>,
    ) -> Done {
        let meant = |r: &Route6| {
            let asked = spec.nhid.filter(|&id| id != 0);
            // Of what goes by a nexthop neither gateway nor device are asked for.
            let shape = match r.by {
                Some(by) => asked.is_none_or(|id| id == by.id),
                None => {
                    asked.is_none() && via.is_none_or(|v| r.via == Some(v)) && dev.is_none_or(|d| r.dev == d)
                }
            };
            shape && spec.metric.is_none_or(|m| r.metric == m) && spec.protocol.is_none_or(|p| r.proto == p)
        };
        let Some(found) = self.six.fib.to(table, &dst).find(|r| meant(r)).cloned() else {
            //= linux v6.12 net/ipv6/route.c __ip6_del_rt: at the root of a table stands an entry that leads nowhere
            let asks = via.is_some() || dev.is_some() || spec.metric.is_some();
            let root = dst.len == 0 && !asks && spec.protocol.is_none_or(|p| p == crate::route::KERNEL);
            let table_there = matches!(table, MAIN | LOCAL) || self.six.fib.has_table(table);
            let bare = root && table_there && self.six.fib.to(table, &dst).next().is_none();
            return Err(errno(if bare { KernelError::ENOENT } else { KernelError::ESRCH }));
        };
        // Without a gateway or a device all ways of the route are meant (`RTA_MULTIPATH` without `via`).
        let all = via.is_none() && dev.is_none() && found.is_way();
        let mate = |r: &Route6| r.by.is_some() && r.is_mate(&found);
        self.six.fib.remove_like(&found, |r| all && r.is_way() || mate(r) || r.same_way(&found));
        Ok(String::new())
    }
    pub(super) fn dev_name(&self, ifindex: u32) -> Option<String> {
        self.device(ifindex).map(|d| d.name.clone())
    }
    /// What stands behind a way: a route to an own address never has `linkdown` (`fib_sync_down_dev`).
    fn way_flags(&self, dev: u32, onlink: bool, own: bool) -> Vec<&'static str> {
        let mut flags = Vec::new();
        if onlink {
            flags.push("onlink");
        }
        if !own && self.kernel >= Kernel::V6_12 && self.device(dev).is_some_and(|d| d.up && !self.carrier(d))
        {
            flags.push("linkdown");
        }
        flags
    }
    fn nexthop_info(&self, by: Option<ByNexthop>) -> Option<NexthopView> {
        let id = by?.id;
        self.nexthops.get(id).map(|n| self.nexthop_view(id, n))
    }
    pub(super) fn route_view(&self, r: &Route) -> RouteView {
        // A nexthop that drops all stands on `lo`.
        let dropped = r.by.is_some() && r.dev == 0 && r.nexthops.is_empty();
        RouteView {
            kind: r.kind.number(),
            dst: Net { addr: IpAddr::V4(r.dst.addr), len: r.dst.len },
            from: None,
            tos: r.tos,
            nhid: r.by.map_or(0, |by| by.id),
            nh_info: self.nexthop_info(r.by),
            via: r.via,
            dev: self.dev_name(if dropped { 1 } else { r.dev }),
            table: r.table,
            protocol: r.proto,
            scope: r.scope,
            src: r.src.map(IpAddr::V4),
            metric: (r.metric != 0).then_some(r.metric),
            flags: self.way_flags(r.dev, r.onlink, r.scope == 254),
            expires: None,
            metrics: r.metrics.clone(),
            realms: r.realms,
            nexthops: r
                .nexthops
                .iter()
                .map(|h| NextHopView {
                    via: h.via,
                    dev: self.dev_name(h.dev),
                    weight: h.weight,
                    flags: self.way_flags(h.dev, h.onlink, false),
                })
                .collect(),
            pref: None,
            answer: None,
            iif: None,
        }
    }
    /// A route with all its ways.
    pub(super) fn route6_view(&self, ways: &[&Route6], now: Time) -> RouteView {
        let r = ways[0];
        let hz = i64::from(self.hz);
        let left = |end: i64| end - self.tick(now);
        //= linux v6.12 net/core/rtnetlink.c rtnl_put_cacheinfo: hundredths of a second in an int
        let seconds = |ticks: i64| (ticks * 100 / hz).clamp(-i64::from(i32::MAX), i32::MAX.into()) / 100;
        // A group is shown as one, whatever it has.
        let many = ways.len() > 1 || r.by.is_some_and(|by| by.id != by.member);
        let nexthops = match many {
            false => Vec::new(),
            true => ways
                .iter()
                .map(|r| NextHopView {
                    via: r.via.map(IpAddr::V6),
                    dev: self.dev_name(r.dev),
                    weight: r.weight,
                    flags: self.way_flags(r.dev, r.onlink, false),
                })
                .collect(),
        };
        RouteView {
            kind: r.kind,
            dst: r.dst,
            from: None,
            tos: 0,
            nhid: r.by.map_or(0, |by| by.id),
            nh_info: self.nexthop_info(r.by),
            via: r.via.filter(|_| !many).map(IpAddr::V6),
            dev: self.dev_name(r.dev).filter(|_| !many),
            table: r.table,
            protocol: r.proto,
            scope: 0,
            src: r.src.map(IpAddr::V6),
            metric: Some(r.metric),
            flags: if many { Vec::new() } else { self.way_flags(r.dev, r.onlink, false) },
            expires: r.expires.map(left).filter(|&ticks| ticks != 0).map(seconds),
            metrics: r.metrics.clone(),
            realms: 0,
            nexthops,
            pref: Some(match r.pref {
                1 => "high",
                3 => "low",
                _ => "medium",
            }),
            answer: None,
            iif: None,
        }
    }

    /// `filter_nlmsg`.
    pub(super) fn route_wanted(&self, r: &Route, f: &RouteFilter, dev: Option<u32>) -> bool {
        let dst = Net { addr: IpAddr::V4(r.dst.addr), len: r.dst.len };
        let own = matches!(r.kind, RouteKind::Local | RouteKind::Broadcast);
        (f.table == 0 || f.table == r.table)
            && !(f.not_own && own)
            && dev.is_none_or(|d| r.dev == d)
            && f.tos.is_none_or(|t| t == r.tos)
            && f.protocol.is_none_or(|p| p == r.proto)
            && f.scope.is_none_or(|s| s == r.scope)
            && f.kind.is_none_or(|k| k == r.kind.number())
            && f.metric.is_none_or(|m| m == r.metric)
            && f.via.is_none_or(|v| r.via.is_some_and(|via| v.contains(via)))
            && f.src.is_none_or(|s| r.src.is_some_and(|src| s.contains(IpAddr::V4(src))))
            && f.root.is_none_or(|root| root.len <= dst.len && root.contains(dst.addr))
            && f.covers.is_none_or(|c| dst.len <= c.len && dst.contains(c.addr))
    }
    pub(super) fn route6_wanted(&self, r: &Route6, f: &RouteFilter, dev: Option<u32>) -> bool {
        (f.table == 0 || f.table == r.table)
            && dev.is_none_or(|d| r.dev == d)
            && f.protocol.is_none_or(|p| p == r.proto)
            && f.metric.is_none_or(|m| m == r.metric)
            && f.kind.is_none_or(|k| k == r.kind)
            && f.root.is_none_or(|root| root.len <= r.dst.len && root.contains(r.dst.addr))
            && f.covers.is_none_or(|c| r.dst.len <= c.len && r.dst.contains(c.addr))
    }

    pub(super) fn route_show(&mut self, f: &RouteFilter, form: Form, now: Time) -> Done {
        if let Some(name) = &f.vrf {
            let table = self.devices[self.vrf_called(name, "Invalid VRF\n")?].vrf_table().unwrap_or(0);
            return self.route_show(&RouteFilter { table, vrf: None, not_own: true, ..f.clone() }, form, now);
        }
        let dev = f.dev.as_deref().map(|d| self.dev(d)).transpose()?;
        let (four, six) = families(f);
        if f.cache {
            return self.cache_show(f, dev, form, now);
        }
        if four && f.table != 0 && !self.fib.has_table(f.table) && self.kernel >= Kernel::V6_12 {
            let mut failure = self.no(KernelError::ENOENT, "ipv4: FIB table does not exist");
            failure.stderr.push_str("Dump terminated\n");
            return Err(failure);
        }
        let mut views = Vec::new();
        if four {
            let mut wanted: Vec<&Route> =
                self.fib.routes().filter(|r| self.route_wanted(r, f, dev)).collect();
            // Today's trie is walked by address, longest prefix first; 2.6.35's hash by length.
            if self.kernel >= Kernel::V6_12 {
                wanted.sort_by_key(|r| {
                    (r.table & 255, r.table, r.dst.addr, 32 - r.dst.len, u8::MAX - r.tos, r.metric)
                });
            }
            views.extend(wanted.into_iter().map(|r| self.route_view(r)));
        }
        if six {
            let wanted: Vec<&Route6> =
                self.six.fib.routes().filter(|r| self.route6_wanted(r, f, dev)).collect();
            let of_one = |a: &&Route6, b: &&Route6| {
                (a.table, a.dst, a.metric) == (b.table, b.dst, b.metric) && a.is_mate(b)
            };
            views.extend(wanted.chunk_by(of_one).map(|ways| self.route6_view(ways, now)));
        }
        Ok(ip::routes(&views, f, form, self.kernel))
    }

    pub(super) fn route_flush(&mut self, f: &RouteFilter, form: Form) -> Done {
        if let Some(name) = &f.vrf {
            let table = self.devices[self.vrf_called(name, "Invalid VRF\n")?].vrf_table().unwrap_or(0);
            return self.route_flush(&RouteFilter { table, vrf: None, not_own: true, ..f.clone() }, form);
        }
        let dev = f.dev.as_deref().map(|d| self.dev(d)).transpose()?;
        if f.cache {
            return Ok(self.cache_flush(f, dev, form));
        }
        let (four, six) = families(f);
        let (mut stays, mut flushed) = (false, 0);
        if four {
            let gone: Vec<bool> = self.fib.routes().map(|r| self.route_wanted(r, f, dev)).collect();
            stays = self.fib.routes().zip(&gone).any(|(r, gone)| *gone && r.by.is_some());
            let mut gone = gone.into_iter();
            flushed += self.fib.remove(|r| gone.next() == Some(true) && r.by.is_none());
        }
        if six {
            let gone: Vec<bool> = self.six.fib.routes().map(|r| self.route6_wanted(r, f, dev)).collect();
            stays |= self.six.fib.routes().zip(&gone).any(|(r, gone)| *gone && r.by.is_some());
            let mut gone = gone.into_iter();
            flushed += self.six.fib.remove(|r| gone.next() == Some(true) && r.by.is_none());
        }
        if stays {
            //= iproute2 6.1.0 ip/iproute.c iproute_flush: it names the way beside the nexthop, which the kernel refuses (rtm_to_fib_config)
            return Err(Failure {
                help: "ip nexthop del id ID takes the routes that go by it along".to_owned(),
                ..says(2, "Failed to send flush request: Invalid argument")
            });
        }
        Ok(super::rounds(flushed, form))
    }
}

/// Of which families a dump of routes is, IPv4 and IPv6: without a word both only of all tables.
//= iproute2 6.1.0 ip/iproute.c iproute_list_flush_or_save
pub(super) fn families(f: &RouteFilter) -> (bool, bool) {
    (f.family != Family::Inet6, f.family == Family::Inet6 || f.family == Family::Any && f.table == 0)
}
