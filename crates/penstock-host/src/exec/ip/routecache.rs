//! `ip route show cache` and `ip route flush cache`: what is known of single destinations beside their routes.
//!
//! Follows: linux v6.12 `net/ipv4/route.c` `fnhe_dump_bucket`, `rt_fill_info`, `ipv4_sysctl_rtcache_flush`, `net/ipv6/route.c`
//! `rt6_nh_dump_exceptions`, `rt6_fill_node`; iproute2 6.1 `ip/iproute.c` `iproute_flush`.
//! Differs: they stand in the order of their addresses, where Linux has that of a hash with a secret; `-s` shows neither users nor age.

use super::Done;
use crate::Host;
use crate::paths::Paths;
use crate::route::{Key, Prefix, Route, RouteKind};
use crate::six::{Key6, Route6};
use penstock_lang::ip::{self, Family, Form, Net, RouteFilter, RouteView};
use penstock_model::{Kernel, Span, Time};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// `RTAX_MTU`.
const MTU: u8 = 2;

/// A time that is left, in whole seconds.
pub(super) fn seconds(left: Span) -> i64 {
    left.as_ns().div_euclid(1_000_000_000)
}

/// Metrics with this MTU in place of the route's own.
pub(super) fn with_mtu(metrics: &mut Vec<(u8, u32, bool)>, mtu: u32, locked: bool) {
    metrics.retain(|m| m.0 != MTU);
    metrics.push((MTU, mtu, locked));
    metrics.sort_by_key(|m| m.0);
}

impl Host {
    /// What is known of the path to a destination, MTU and whether it is locked, and how long that holds.
    pub(super) fn known_of(&self, dst: Ipv4Addr, now: Time) -> Option<(u32, bool, Span)> {
        self.paths.known_of(dst, now).filter(|_| self.kernel >= Kernel::V6_12)
    }
    /// The same of IPv6.
    pub(super) fn known_of6(&self, dst: Ipv6Addr, now: Time) -> Option<(u32, Span)> {
        let &(mtu, until) = self.six.path_mtu.get(&dst)?;
        (now < until).then(|| (mtu, until - now))
    }
    pub(super) fn cache_show(&self, f: &RouteFilter, dev: Option<u32>, form: Form, now: Time) -> Done {
        let mut views = Vec::new();
        if f.family != Family::Inet6 && self.kernel >= Kernel::V6_12 {
            let known: BTreeSet<Ipv4Addr> = self.paths.destinations().chain(self.fib.turned_ones()).collect();
            views.extend(known.into_iter().filter_map(|dst| self.cached(dst, f, dev, now)));
        }
        if f.family != Family::Inet {
            views.extend(self.six.path_mtu.keys().filter_map(|&dst| self.cached6(dst, f, dev, now)));
        }
        Ok(ip::routes(&views, f, form, self.kernel))
    }
    fn cached(&self, dst: Ipv4Addr, f: &RouteFilter, dev: Option<u32>, now: Time) -> Option<RouteView> {
        let named = self.fib.search_key(&Key::to(dst));
        if named.kind != Some(RouteKind::Unicast) {
            return None;
        }
        let turned = self.fib.turned_for(&named, dst, now);
        let known = self.known_of(dst, now);
        let left = turned.or(known.map(|k| k.2))?;
        let hop = self.fib.turned(named, dst, now);
        let via = (hop.next != dst || hop.six != 0 || turned.is_some()).then(|| self.fib.next_of(&hop));
        let mut route = Route { via, dev: hop.oif, table: named.table, ..Route::new(Prefix::new(dst, 32)) };
        if !self.route_wanted(&route, f, dev) {
            return None;
        }
        route.metrics = self.fib.search_route(&Key::to(dst)).ok().flatten()?.metrics.clone();
        if let Some((mtu, locked, _)) = known {
            with_mtu(&mut route.metrics, mtu, locked);
        }
        let cache = if turned.is_some() { vec!["redirected"] } else { Vec::new() };
        Some(RouteView {
            table: 0,
            protocol: 0,
            scope: 0,
            flags: Vec::new(),
            expires: Some(seconds(left)),
            answer: Some((None, cache)),
            ..self.route_view(&route)
        })
    }
    fn cached6(&self, dst: Ipv6Addr, f: &RouteFilter, dev: Option<u32>, now: Time) -> Option<RouteView> {
        let (mtu, left) = self.known_of6(dst, now)?;
        let own = self.six.fib.search_route(&Key6::to(dst))?;
        let dst = Net { addr: IpAddr::V6(dst), len: 128 };
        let mut route = Route6 { dst, by: None, ..own.clone() };
        if !self.route6_wanted(&route, f, dev) {
            return None;
        }
        with_mtu(&mut route.metrics, mtu, false);
        let expires = Some(seconds(left));
        Some(RouteView { expires, ..self.route6_view(&[&route], now) })
    }
    /// All is forgotten, of both families or of one.
    pub(super) fn cache_flush(&mut self, family: Family) {
        if family != Family::Inet6 {
            self.paths = Paths::default();
            self.fib.forget_turns();
        }
        if family != Family::Inet {
            self.six.path_mtu.clear();
            self.six.fib.invalidate();
        }
        self.fib.invalidate();
    }
}

#[cfg(test)]
mod tests {
    use crate::Host;
    use penstock_model::{Kernel, Time};

    #[test]
    fn a_path_whose_mtu_is_known_is_shown_and_forgotten() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        let at = |s: i64| Time::from_ns(s * 1_000_000_000);
        for command in
            ["ip link set eth0 up", "ip addr add 10.0.1.1/24 dev eth0", "ip route add default via 10.0.1.254"]
        {
            assert_eq!(host.exec(command, at(0)).status, 0, "{command}");
        }
        let mut said = |command: &str| host.exec(command, at(5)).stdout;
        assert_eq!(said("ip route show cache"), "");
        host.frag_needed([10, 0, 2, 2].into(), 1300, at(0));
        host.frag_needed([10, 0, 3, 3].into(), 400, at(0));
        let mut said = |command: &str| host.exec(command, at(5)).stdout;
        // As 6.12 and iproute2 6.1 say it.
        let first = "10.0.2.2 via 10.0.1.254 dev eth0 \n    cache expires 595sec mtu 1300 \n";
        let other = "10.0.3.3 via 10.0.1.254 dev eth0 \n    cache expires 595sec mtu lock 552 \n";
        assert_eq!(said("ip route show cache"), [first, other].concat());
        assert_eq!(said("ip route show cache 10.0.3.3"), other);
        assert_eq!(said("ip route show cache dev lo"), "");
        assert_eq!(
            said("ip route get 10.0.2.2"),
            "10.0.2.2 via 10.0.1.254 dev eth0 src 10.0.1.1 uid 0 \n    cache expires 595sec mtu 1300 \n"
        );
        assert_eq!(
            said("ip -j route show cache 10.0.2.2").trim_end(),
            "[{\"dst\":\"10.0.2.2\",\"gateway\":\"10.0.1.254\",\"dev\":\"eth0\",\"flags\":[],\"cache\":[],\
             \"expires\":595,\"metrics\":[{\"mtu\":1300}]}]"
        );
        assert_eq!(said("ip route flush cache"), "");
        assert_eq!(said("ip route show cache"), "");
        assert!(said("ip route get 10.0.2.2").ends_with("    cache \n"));
    }
}
