//! `ip route show cache` and `ip route flush cache`: what is known of single destinations beside their routes.
//!
//! Follows: linux v6.12 `net/ipv4/route.c` `fnhe_dump_bucket`, `rt_fill_info`, `ipv4_sysctl_rtcache_flush`, `net/ipv6/route.c`
//! `rt6_nh_dump_exceptions`, `rt6_fill_node`; iproute2 6.1 `ip/iproute.c` `iproute_flush`.
//! Differs: they stand in the order of their addresses, where Linux has that of a hash with a secret; `-s` shows neither users nor age.

use super::Done;
use super::route::families;
use crate::Host;
use crate::paths::Paths;
use crate::route::{Hop, Key, Prefix, Route, RouteKind};
use crate::six::{Key6, Route6};
use penstock_lang::ip::{self, Form, Net, RouteFilter, RouteView};
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

/// What is known of a destination.
pub(super) struct Aside {
    /// It is told of by a redirect.
    pub turned: bool,
    /// The path's MTU, and whether it is locked.
    mtu: Option<(u32, bool)>,
    /// Seconds.
    pub expires: i64,
}

impl Aside {
    /// The flags behind `cache`.
    pub fn flags(&self) -> Vec<&'static str> {
        if self.turned { vec!["redirected"] } else { Vec::new() }
    }
    pub fn put_mtu(&self, metrics: &mut Vec<(u8, u32, bool)>) {
        if let Some((mtu, locked)) = self.mtu {
            with_mtu(metrics, mtu, locked);
        }
    }
}

impl Host {
    /// The MTU that is known of the path to a destination of IPv6, and how long that holds.
    pub(super) fn known_of6(&self, dst: Ipv6Addr, now: Time) -> Option<(u32, Span)> {
        let &(mtu, until) = self.six.path_mtu.get(&dst)?;
        (now < until).then(|| (mtu, until - now))
    }
    pub(super) fn cache_show(&self, f: &RouteFilter, dev: Option<u32>, form: Form, now: Time) -> Done {
        let mut views = Vec::new();
        let (four, six) = families(f);
        if four && self.kernel >= Kernel::V6_12 {
            let known: BTreeSet<Ipv4Addr> = self.paths.destinations().chain(self.fib.turned_ones()).collect();
            views.extend(known.into_iter().filter_map(|dst| self.cached(dst, f, dev, now)));
        }
        if six {
            views.extend(self.six.path_mtu.keys().filter_map(|&dst| self.cached6(dst, f, dev, now)));
        }
        Ok(ip::routes(&views, f, form, self.kernel))
    }
    /// What is known of a destination beside the route that leads there by `hop`; `None` when nothing is.
    pub(super) fn aside(&self, hop: &Hop, dst: Ipv4Addr, now: Time) -> Option<Aside> {
        let turned = self.fib.turned_for(hop, dst, now);
        let known = self.paths.known_of(dst, now).filter(|_| self.kernel >= Kernel::V6_12);
        let left = turned.or(known.map(|k| k.2))?;
        (hop.kind == Some(RouteKind::Unicast)).then(|| Aside {
            turned: turned.is_some(),
            mtu: known.map(|k| (k.0, k.1)),
            expires: seconds(left),
        })
    }
    /// The gateway that stands beside a destination; a redirect's whatever it is.
    pub(super) fn gateway_shown(&self, hop: &Hop, dst: Ipv4Addr, turned: bool) -> Option<IpAddr> {
        (hop.next != dst || hop.six != 0 || turned).then(|| self.fib.next_of(hop))
    }
    fn cached(&self, dst: Ipv4Addr, f: &RouteFilter, dev: Option<u32>, now: Time) -> Option<RouteView> {
        let named = self.fib.search_key(&Key::to(dst));
        let aside = self.aside(&named, dst, now)?;
        let hop = self.fib.turned(named, dst, now);
        let via = self.gateway_shown(&hop, dst, aside.turned);
        let mut route = Route { via, dev: hop.oif, table: named.table, ..Route::new(Prefix::new(dst, 32)) };
        if !self.route_wanted(&route, f, dev) {
            return None;
        }
        route.metrics = self.fib.search_route(&Key::to(dst)).ok().flatten()?.metrics.clone();
        aside.put_mtu(&mut route.metrics);
        Some(RouteView {
            table: 0,
            protocol: 0,
            scope: 0,
            flags: Vec::new(),
            expires: Some(aside.expires),
            answer: Some((None, aside.flags())),
            iif: None,
            ..self.route_view(&route)
        })
    }
    /// Whether a filter names a destination by the route that leads there.
    fn named6(&self, dst: Ipv6Addr, f: &RouteFilter, dev: Option<u32>) -> bool {
        self.alone6(dst).is_some_and(|route| self.route6_wanted(&route, f, dev))
    }
    /// The route to a destination as one to it alone.
    fn alone6(&self, dst: Ipv6Addr) -> Option<Route6> {
        let own = self.six.fib.search_route(&Key6::to(dst))?;
        Some(Route6 { dst: Net { addr: IpAddr::V6(dst), len: 128 }, by: None, ..own.clone() })
    }
    fn cached6(&self, dst: Ipv6Addr, f: &RouteFilter, dev: Option<u32>, now: Time) -> Option<RouteView> {
        let (mtu, left) = self.known_of6(dst, now)?;
        if !self.named6(dst, f, dev) {
            return None;
        }
        let mut route = self.alone6(dst)?;
        with_mtu(&mut route.metrics, mtu, false);
        let expires = Some(seconds(left));
        Some(RouteView { expires, ..self.route6_view(&[&route], now) })
    }
    /// All of IPv4 is forgotten, whatever else is said; of IPv6 what the filter names.
    pub(super) fn cache_flush(&mut self, f: &RouteFilter, dev: Option<u32>, form: Form) -> String {
        let (four, six) = families(f);
        let mut said = String::new();
        if four {
            self.forget_paths();
            if form.stats > 0 {
                said += "*** IPv4 routing cache is flushed.\n";
            }
        }
        if six {
            let mut known = std::mem::take(&mut self.six.path_mtu);
            let before = known.len();
            known.retain(|&dst, _| !self.named6(dst, f, dev));
            let flushed = before - known.len();
            self.six.path_mtu = known;
            self.six.fib.invalidate();
            said += &match flushed {
                0 if four && form.stats > 0 => "*** Flush is complete after 0 round ***\n".to_owned(),
                n => super::rounds(n, form),
            };
        }
        said
    }
    /// What is known of single destinations of IPv4 is forgotten (`net.ipv4.route.flush`).
    pub(crate) fn forget_paths(&mut self) {
        self.paths = Paths::default();
        self.fib.forget_turns();
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

    #[test]
    fn a_flush_is_of_one_family_but_for_table_all_and_s_says_what_it_did() {
        let mut host = Host::new("h", Kernel::V6_12, 1);
        host.add_device("eth0");
        let at = |s: i64| Time::from_ns(s * 1_000_000_000);
        for command in [
            "ip link set eth0 up",
            "ip addr add 10.0.1.1/24 dev eth0",
            "ip route add default via 10.0.1.254",
            "ip addr add fd00:1::1/64 dev eth0 nodad",
            "ip route add fd00:2::/64 via fd00:1::fe",
        ] {
            assert_eq!(host.exec(command, at(0)).status, 0, "{command}");
        }
        let learn = |host: &mut Host| {
            host.frag_needed([10, 0, 2, 2].into(), 1300, at(0));
            host.six.path_mtu.insert("fd00:2::2".parse().unwrap(), (1400, at(600)));
        };
        learn(&mut host);
        let (four, six) = ("10.0.2.2 via 10.0.1.254 ", "fd00:2::2 via fd00:1::fe ");
        for (command, shown) in [
            ("ip route show cache", &[four][..]),
            ("ip -6 route show cache", &[six]),
            ("ip route show table all cache", &[four, six]),
            ("ip -6 route show cache fd00:3::/64", &[]),
        ] {
            let said = host.exec(command, at(5)).stdout;
            let ways = said.lines().filter(|l| !l.starts_with(' '));
            let firsts: Vec<String> = ways.map(|l| l.split_inclusive(' ').take(3).collect()).collect();
            assert_eq!(firsts, shown, "{command}");
        }
        // As 6.12 and iproute2 6.1 say it.
        let (cache, none) = ("*** IPv4 routing cache is flushed.\n", "Nothing to flush.\n");
        let one = "\n*** Round 1, deleting 1 entries ***\n*** Flush is complete after 1 round ***\n";
        for (command, words, left) in [
            ("ip -s route flush cache", cache.to_owned(), &[six][..]),
            ("ip -s -6 route flush cache fd00:3::/64", none.to_owned(), &[four, six]),
            ("ip -s -6 route flush cache", one.to_owned(), &[four]),
            ("ip -s route flush table all cache", [cache, one].concat(), &[]),
            ("ip -6 route flush cache", String::new(), &[four]),
        ] {
            learn(&mut host);
            assert_eq!(host.exec(command, at(5)).stdout, words, "{command}");
            let said = host.exec("ip route show table all cache", at(5)).stdout;
            assert_eq!(said.lines().filter(|l| !l.starts_with(' ')).count(), left.len(), "{command}");
            assert!(left.iter().all(|way| said.contains(way)), "{command}: {said}");
        }
    }
}
