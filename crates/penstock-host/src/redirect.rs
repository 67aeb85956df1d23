//! ICMP redirects: a router tells a sender of the better gateway on its own link, and the sender follows.
//!
//! Follows: linux v6.12 `net/ipv4/route.c` `__mkroute_input`, `ip_rt_send_redirect`, `__ip_do_redirect`, `net/ipv4/fib_frontend.c` `__fib_validate_source`;
//! v2.6.35 `ip_rt_send_redirect`, `ip_rt_redirect`; RFC 792, RFC 1122 section 3.2.2.2.
//! Differs: of 2.6.35 a way that was told of stays as long as it would since 3.6.

use crate::route::{Hop, Key, RouteKind};
use crate::{Host, HostCx, icmp, timer};
use penstock_model::{Kernel, Span};
use penstock_packet::headers::Quoted;
use penstock_packet::{Icmp, Ipv4, L3, Skb};
use std::net::Ipv4Addr;

/// `net.ipv4.route.gc_timeout`: how long a way that was told of is gone by.
const STAYS: Span = Span::from_secs(300);

/// What `net.ipv4.conf` says of redirects, of a device or of all.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Redirects {
    /// `send_redirects`.
    pub send: bool,
    /// `accept_redirects`.
    pub accept: bool,
    /// `shared_media`: all on the wire can speak with each other, whatever their networks.
    pub shared: bool,
    /// `secure_redirects`: only gateways that a default route names are believed, where the wire is not shared.
    pub secure: bool,
}

impl Redirects {
    /// As Linux begins.
    pub const ON: Redirects = Redirects { send: true, accept: true, shared: true, secure: true };
    /// The setting of this name.
    pub fn of(&mut self, attribute: &str) -> Option<&mut bool> {
        Some(match attribute {
            "send_redirects" => &mut self.send,
            "accept_redirects" => &mut self.accept,
            "shared_media" => &mut self.shared,
            "secure_redirects" => &mut self.secure,
            _ => return None,
        })
    }
}

impl Host {
    /// `IN_DEV_ORCONF`.
    fn redirects_either(&self, ifindex: u32, which: impl Fn(&Redirects) -> bool) -> bool {
        which(&self.sysctl.redirects) || self.devices.get(ifindex).is_some_and(|d| which(&d.redirects))
    }
    /// `IN_DEV_RX_REDIRECTS`: a router heeds them only where both say so.
    fn accepts_redirects(&self, ifindex: u32) -> bool {
        let (all, Some(device)) = (self.sysctl.redirects.accept, self.devices.get(ifindex)) else {
            return false;
        };
        let own = device.redirects.accept;
        if self.forwards_from(ifindex) { all && own } else { all || own }
    }
    /// Tells the sender of a packet that goes out where it came in of the way it could have taken itself.
    #[cold]
    pub(crate) fn redirect(&mut self, port: u32, packet: &Skb, h: Ipv4, hop: Hop, cx: &mut HostCx<'_>) {
        if !self.would_redirect(port, packet.mark, h, hop) {
            return;
        }
        let hz = i64::from(self.hz);
        let [number, load, silence] = self.sysctl.redirect_limits;
        let limits = (number.unwrap_or(9), load.unwrap_or(hz / 50), silence.unwrap_or((hz / 50) << 10));
        let (tick, kernel) = (timer::ticks(self.hz, cx.now), self.kernel);
        // 2.6.35 counts for each route of its cache.
        let bucket = match kernel {
            Kernel::V2_6_35 => self.redirected.entry((h.src, h.dst)).or_default(),
            Kernel::V6_12 | Kernel::V7_2 => {
                let peer = (self.vrf_of(port), h.src);
                self.icmp_buckets.entry(peer).or_insert_with(|| icmp::Bucket::full(tick, hz))
            }
        };
        if bucket.may_redirect(tick, limits) {
            self.icmp_send_info(port, packet, (icmp::REDIRECT, 1), u32::from(hop.next), cx);
        }
    }
    /// Whether the sender of a packet that comes in by `port` and goes on by it would be told of a better way (`RTCF_DOREDIRECT`).
    //= linux v6.12 net/ipv4/route.c __mkroute_input
    pub(crate) fn would_redirect(&self, port: u32, mark: u32, h: Ipv4, hop: Hop) -> bool {
        if !self.redirects_either(port, |r| r.send) || !self.sends_directly(port, mark, h) {
            return false;
        }
        let gateway = (hop.next != h.dst).then_some(hop.next);
        self.redirects_either(port, |r| r.shared) || self.is_onlink(port, h.src, gateway.unwrap_or(h.src))
    }
    /// Whether the way back to a packet's sender has no gateway between.
    //= linux v6.12 net/ipv4/fib_frontend.c __fib_validate_source
    fn sends_directly(&self, port: u32, mark: u32, h: Ipv4) -> bool {
        let mark = if self.is_valid_mark(port) { mark } else { 0 };
        let l3mdev = self.vrf_of(port);
        let back = Key { src: h.dst, tos: h.tos & 0x1c, mark, l3mdev, ..Key::to(h.src) };
        let direct = |key: &Key| match self.fib.search_route(key) {
            Ok(Some(r)) if r.kind == RouteKind::Unicast => {
                let via = r.nexthops.first().map_or(r.via, |first| first.via);
                Some((r.uses(port), via.is_none()))
            }
            _ => None,
        };
        match direct(&back) {
            Some((true, direct)) => direct,
            None => false,
            // The way back leads elsewhere: what a route over this device would say.
            Some((false, _)) => direct(&Key { oif: port, ..back }).is_some_and(|(_, direct)| direct),
        }
    }
    /// The gateway `by` has told of a better one for a packet of a socket here, which is bound to `bound` (0: to no device); it came in by `iif`.
    //= linux v6.12 net/ipv4/route.c __ip_do_redirect
    pub fn follow_redirect(
        &mut self,
        bound: u32,
        (iif, by): (u32, Ipv4Addr),
        icmp: Icmp,
        about: &Quoted,
        cx: &mut HostCx<'_>,
    ) {
        let (std::net::IpAddr::V4(dst), std::net::IpAddr::V4(src)) = (about.dst, about.src) else { return };
        let new = Ipv4Addr::from(icmp.info());
        let key = Key { src, oif: bound, ..Key::to(dst) };
        let route = if bound == 0 { self.route_output(key) } else { self.route_bound(key) };
        let hop = self.fib.turned(route, dst, cx.now);
        if icmp.code & 7 > 3
            || hop.kind != Some(RouteKind::Unicast)
            || hop.six != 0
            || hop.next != by
            || by == dst
        {
            return;
        }
        let nobody = new.is_multicast() || new.is_broadcast() || new.octets()[0] == 0;
        if new == by || nobody || !self.accepts_redirects(iif) {
            return;
        }
        let believed = if self.redirects_either(iif, |r| r.shared) {
            !self.is_local(new) && !self.is_broadcast(new)
        } else {
            self.is_onlink(iif, new, by)
                && (!self.redirects_either(iif, |r| r.secure) || self.fib.has_gateway(new, iif))
        };
        if !believed {
            return;
        }
        let at = self.neigh.find_or_create(hop.oif, new.into(), cx.now);
        if !self.neigh.at(at).state.is_valid() {
            // First it has to be there: the next redirect will find it so.
            self.neigh_event_send(hop.oif, at, None, cx);
            return;
        }
        //= linux v6.12 net/ipv4/route.c update_or_create_fnhe: both lie in one entry
        self.fib.turn(dst, &route, new, cx.now + STAYS);
        self.paths.lasts(dst, cx.now + STAYS);
    }
    /// Where a packet goes, as far as redirects have told.
    #[inline]
    pub(crate) fn redirected_hop(&self, hop: Hop, packet: &Skb, now: penstock_model::Time) -> Hop {
        match packet.l3 {
            L3::Ipv4(h) if self.fib.has_turned() && hop.kind == Some(RouteKind::Unicast) => {
                self.fib.turned(hop, h.dst, now)
            }
            _ => hop,
        }
    }
}
