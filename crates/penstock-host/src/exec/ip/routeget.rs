//! `ip route get`.
//!
//! Follows: linux v6.12 `net/ipv4/route.c` `inet_rtm_getroute`, `net/ipv6/route.c` `inet6_rtm_getroute`.

use super::route::{EACCES, EHOSTUNREACH, ENETUNREACH, four, six};
use super::routecache::{Aside, seconds, with_mtu};
use super::{Done, errno, says};
use crate::Host;
use crate::route::{Key, LOCAL, Ports, RouteKind};
use crate::six::{Key6, Kind6, Route6};
use penstock_lang::ip::{self, Form, Net, RouteFilter, RouteQuestion, RouteView};
use penstock_model::{Kernel, KernelError, Time};
use penstock_packet::Ipv4;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Host {
    fn route6_get(
        &self,
        q: &RouteQuestion,
        dst: Ipv6Addr,
        iif: Option<u32>,
        oif: Option<u32>,
        form: Form,
        now: Time,
    ) -> Done {
        let src = q.from.and_then(six).unwrap_or(Ipv6Addr::UNSPECIFIED);
        let key = Key6 {
            src,
            tclass: q.tos,
            mark: q.mark,
            iif: iif.unwrap_or(1),
            oif: oif.unwrap_or(0),
            strict: oif.is_some(),
            ports: asked(q),
            ..Key6::to(dst)
        };
        let hop = self.search6(&key);
        match hop.kind {
            None => return Err(errno(ENETUNREACH)),
            Some(Kind6::Unreachable) => return Err(errno(EHOSTUNREACH)),
            Some(Kind6::Prohibit) => return Err(errno(EACCES)),
            Some(Kind6::Blackhole) => return Err(errno(KernelError::EINVAL)),
            Some(_) => {}
        }
        let Some(r) = self.six.fib.search_route(&key) else { return Err(errno(ENETUNREACH)) };
        if q.fib_match {
            let rivals = self.six.fib.rivals(r);
            let ways: Vec<_> = rivals.iter().filter(|w| *w == r || w.is_mate(r)).collect();
            let view = self.route6_view(&ways, now);
            return Ok(ip::routes(&[view], &RouteFilter::default(), form, self.kernel));
        }
        let mut view = self.route6_view(&[&Route6 { by: None, ..r.clone() }], now);
        view.dst = Net { addr: q.dst, len: 128 };
        view.from = Some(IpAddr::V6(src));
        //= linux v6.12 net/ipv6/route.c rt6_fill_node: what a lookup finds does not expire, but what is known of a path
        view.expires = None;
        if let Some((mtu, left)) = self.known_of6(dst, now).filter(|_| hop.kind.is_some_and(Kind6::leads)) {
            view.expires = Some(seconds(left));
            with_mtu(&mut view.metrics, mtu, false);
        }
        match iif {
            //= linux v6.12 net/ipv6/route.c rt6_fill_node: the source is only told of what is sent here, or where the route names one
            Some(dev) => view.iif = self.dev_name(dev),
            None => view.src = self.source6(&hop, dst).map(IpAddr::V6),
        }
        if r.kind == 2 {
            view.dev = Some("lo".to_owned());
        }
        Ok(ip::routes(&[view], &RouteFilter::default(), form, self.kernel))
    }

    pub(super) fn route_get(&mut self, q: &RouteQuestion, form: Form, now: Time) -> Done {
        let oif = match q.oif.as_deref() {
            Some(name) if q.oif_is_vrf => Some(self.vrf_called(name, "Invalid VRF")?),
            other => other.map(|d| self.dev(d)).transpose()?,
        };
        let iif = q.iif.as_deref().map(|d| self.dev(d)).transpose()?;
        let filter = RouteFilter::default();
        let dst = match q.dst {
            IpAddr::V4(dst) => dst,
            IpAddr::V6(dst) => return self.route6_get(q, dst, iif, oif, form, now),
        };
        let from = q.from.map(four);
        let known = |from: Ipv4Addr| self.is_local(from) || oif.is_some_and(|d| self.is_local_at(d, from));
        if iif.is_none() && from.is_some_and(|from| !known(from)) {
            return Err(errno(KernelError::EINVAL));
        }
        let key = Key {
            dst,
            src: from.unwrap_or(Ipv4Addr::UNSPECIFIED),
            tos: q.tos & 0x1c,
            mark: q.mark,
            iif: iif.unwrap_or(1),
            oif: oif.unwrap_or(0),
            l3mdev: 0,
            ports: asked(q),
        };
        if iif.is_none() && self.kernel >= Kernel::V6_12 && oif.is_some_and(|dev| !self.devices[dev].up) {
            //= linux v6.12 net/ipv4/route.c ip_route_output_key_hash_rcu
            return Err(errno(ENETUNREACH));
        }
        let mut hop = self.fib.search_key(&key);
        if hop.kind.is_none()
            && let Some(oif) = oif
            && self.vrf_of(oif) == 0
        {
            // Over a device that is named, everybody is a neighbour.
            hop.kind = Some(RouteKind::Unicast);
            (hop.oif, hop.next) = (oif, dst);
        }
        let code = match hop.kind {
            None | Some(RouteKind::Throw) => ENETUNREACH,
            Some(RouteKind::Unreachable) => EHOSTUNREACH,
            Some(RouteKind::Prohibit) => EACCES,
            Some(RouteKind::Blackhole) => KernelError::EINVAL,
            _ => 0,
        };
        if code != 0 {
            return Err(errno(code));
        }
        if q.fib_match {
            let found = self.fib.search_route(&key).ok().flatten().map(|r| self.route_view(r));
            return Ok(ip::routes(&found.into_iter().collect::<Vec<_>>(), &filter, form, self.kernel));
        }
        let local = hop.kind == Some(RouteKind::Local);
        let old = self.kernel == Kernel::V2_6_35;
        let aside = self.aside(&hop, dst, now);
        let turned = aside.as_ref().is_some_and(|aside| aside.turned);
        let found = hop;
        hop = if turned { self.fib.turned(hop, dst, now) } else { hop };
        let mut cache = match hop.kind {
            Some(RouteKind::Local) => vec!["local"],
            Some(RouteKind::Broadcast) if old => vec!["local"],
            Some(RouteKind::Broadcast) => vec!["local", "brd"],
            _ => aside.as_ref().map_or_else(Vec::new, Aside::flags),
        };
        if let (Some(iif), Some(RouteKind::Unicast)) = (iif, hop.kind)
            && hop.oif == iif
        {
            let src = from.unwrap_or(Ipv4Addr::UNSPECIFIED);
            let h = Ipv4 { src, dst, tos: q.tos, ttl: 0, protocol: 0, id: 0, frag_off: 0 };
            if self.would_redirect(iif, q.mark, h, hop) {
                cache.push("redirect");
            }
        }
        let source = match from {
            Some(_) => None,
            None => Some(IpAddr::V4(self.source_for(&found, dst))),
        };
        let of_route = self.fib.search_route(&key).ok().flatten();
        //= linux v6.12 net/ipv4/route.c rt_fill_info: what the route says, not what was asked
        let tos = if old { q.tos } else { of_route.map_or(0, |r| r.tos) };
        let mut metrics = of_route.map_or_else(Vec::new, |r| r.metrics.clone());
        if let Some(aside) = &aside {
            aside.put_mtu(&mut metrics);
        }
        let view = RouteView {
            kind: hop.kind.map_or(1, RouteKind::number),
            dst: Net { addr: IpAddr::V4(dst), len: 32 },
            from: from.map(IpAddr::V4),
            tos,
            nhid: 0,
            nh_info: None,
            via: self.gateway_shown(&hop, dst, turned),
            dev: self.dev_name(self.out_device(&hop)),
            table: if old || hop.table == LOCAL { 0 } else { hop.table },
            protocol: 0,
            scope: 0,
            src: source,
            metric: None,
            flags: Vec::new(),
            expires: aside.map(|aside| aside.expires),
            realms: self.fib.realms(&found, None),
            metrics,
            nexthops: Vec::new(),
            pref: None,
            answer: Some((Some(q.mark), cache)),
            //= linux v6.12 net/ipv4/route.c rt_fill_info
            iif: iif.and_then(|dev| self.dev_name(dev)),
        };
        if iif.is_some() && !self.sysctl.ip_forward && !local {
            return Err(says(2, "RTNETLINK answers: No route to host"));
        }
        Ok(ip::routes(&[view], &filter, form, self.kernel))
    }
}

/// What a question says of protocol and ports.
fn asked(q: &RouteQuestion) -> Ports {
    Ports { protocol: q.ipproto, sport: q.sport, dport: q.dport }
}
