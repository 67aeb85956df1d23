//! Routers: what a machine makes of their advertisements, and how it asks for them.
//!
//! Follows: linux v6.12 `net/ipv6/ndisc.c` `ndisc_router_discovery`, `ndisc_recv_rs`, `ndisc_send_rs`, `ndisc_parse_options`; `net/ipv6/addrconf.c`
//! `addrconf_prefix_rcv`, `addrconf_prefix_rcv_add_addr`, `addrconf_dad_completed`, `addrconf_rs_timer`; `net/ipv6/route.c` `rt6_route_rcv`,
//! `fib6_nh_mtu_change`, `rt6_clean_tohost`; RFC 4861, RFC 4862, RFC 4191.
//! Differs: no privacy addresses (`use_tempaddr`), no stable private ones, no optimistic ones; nobody asks DHCPv6 where M or O is set.

use super::icmp::ROUTER_SOLICITATION;
use super::{Address6, Learnt, MIN_MTU, Ra, Route6, is_link_local, link_local, network};
use crate::lifetime::Lifetime;
use crate::neigh::Nud;
use crate::{Host, HostCx, Timer, timer};
use penstock_model::{Rng, Time};
use penstock_packet::{Icmp, Ipv6, Packet};
use std::net::Ipv6Addr;

/// All routers of a link.
pub(crate) const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2);
/// For ever.
const INFINITE: u32 = u32::MAX;
/// `MIN_VALID_LIFETIME`: an address that has longer to live has this at least, whatever a router says, seconds.
const MIN_VALID: u32 = 7200;
/// `RTPROT_RA`.
const BY_RA: u8 = 9;
/// `IP6_RT_PRIO_USER`.
const METRIC: u32 = 1024;
// `RTAX_MTU`, `RTAX_HOPLIMIT`.
const MTU: u8 = 2;
const HOPLIMIT: u8 = 10;
/// Flags of a prefix.
const ON_LINK: u8 = 0x80;
const AUTONOMOUS: u8 = 0x40;
const PREFER_PD: u8 = 0x10;

/// How a machine asks a device's link for routers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Asking {
    /// How often it has asked since the device is up (`IF_RS_SENT`, `rs_probes`).
    probes: i64,
    /// It was answered (`IF_RA_RCVD`).
    answered: bool,
    /// Ticks until it asks again.
    interval: i64,
}

/// Options of neighbour discovery behind a message.
#[derive(Default)]
struct Options<'a> {
    source: Option<&'a [u8]>,
    mtu: Option<u32>,
    prefixes: Vec<&'a [u8]>,
    routes: Vec<&'a [u8]>,
}

/// `ndisc_parse_options`: of those that say the same the first counts. `None`: they do not end where the message does.
fn options(mut rest: &[u8]) -> Option<Options<'_>> {
    let mut all = Options::default();
    while !rest.is_empty() {
        let len = 8 * usize::from(*rest.get(1)?);
        if len == 0 || len > rest.len() {
            return None;
        }
        let (option, behind) = rest.split_at(len);
        match option[0] {
            1 if all.source.is_none() => all.source = Some(option),
            3 => all.prefixes.push(option),
            5 if all.mtu.is_none() => all.mtu = Some(four(option, 4)),
            24 => all.routes.push(option),
            _ => {}
        }
        rest = behind;
    }
    Some(all)
}

impl Options<'_> {
    /// The sender's hardware address, where it is told; `Err`: it is not as long as Ethernet's (`ndisc_opt_addr_data`).
    fn mac(&self) -> Result<Option<[u8; 6]>, ()> {
        let Some(option) = self.source else { return Ok(None) };
        option[2..].try_into().map(Some).map_err(|_| ())
    }
}

fn four(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_be_bytes)
}

fn address(bytes: &[u8]) -> Ipv6Addr {
    let mut octets = [0; 16];
    let len = bytes.len().min(16);
    octets[..len].copy_from_slice(&bytes[..len]);
    octets.into()
}

/// What a router's message says of a router, from its second four bytes.
struct Router {
    addr: Ipv6Addr,
    hop_limit: u8,
    pref: u8,
    /// Seconds.
    lifetime: u16,
}

impl Host {
    /// A router has spoken, or somebody asks for routers.
    pub(crate) fn router_receive(&mut self, packet: Packet, h: Ipv6, i: Icmp, cx: &mut HostCx<'_>) {
        let ifindex = packet.iif;
        let message = packet.is_noted().then(|| packet.rare().message.clone()).flatten();
        // A router would have made less of it: it is from this link.
        if h.hop_limit != 255 || i.code != 0 {
            self.discard(packet, "ndisc", "malformed", cx);
            return;
        }
        cx.pool.free(packet);
        let bytes = message.as_deref().unwrap_or_default();
        match i.ty {
            ROUTER_SOLICITATION => self.ndisc_recv_rs(ifindex, h, bytes, cx),
            _ => self.ndisc_router_discovery(ifindex, h, i, bytes, cx),
        }
        self.radvd_hears(ifindex, h, i, bytes, cx);
    }
    fn ndisc_recv_rs(&mut self, ifindex: u32, h: Ipv6, bytes: &[u8], cx: &mut HostCx<'_>) {
        if !self.devices[ifindex].six.conf.forwarding || h.src.is_unspecified() {
            return;
        }
        let Some(Ok(mac)) = options(bytes).map(|o| o.mac()) else { return };
        let at = self.neigh.find_or_create(ifindex, h.src.into(), cx.now);
        self.ndisc_update(at, mac, Nud::Stale, true, Some(false), cx);
    }

    fn ndisc_router_discovery(&mut self, ifindex: u32, h: Ipv6, i: Icmp, bytes: &[u8], cx: &mut HostCx<'_>) {
        let Some(all) = bytes.get(8..).and_then(options).filter(|_| is_link_local(h.src)) else { return };
        if !self.six.on {
            return;
        }
        let conf = self.devices[ifindex].six.conf;
        let accepts = conf.accepts_ra();
        let trusted = conf.ra.of(Ra::FROM_LOCAL) != 0 || !self.has_address6(ifindex, h.src);
        let mut way = None;
        if accepts {
            let asking = &mut self.devices[ifindex].six.asking;
            asking.answered |= asking.probes > 0;
            let short = i.seq != 0 && i64::from(i.seq) < conf.ra.of(Ra::MIN_LFT);
            if conf.ra.of(Ra::DEFRTR) != 0 && !short && trusted {
                let pref = match i.id as u8 >> 3 & 3 {
                    2 => 0,
                    _ if conf.ra.of(Ra::RTR_PREF) == 0 => 0,
                    pref => pref,
                };
                let router = Router { addr: h.src, hop_limit: (i.id >> 8) as u8, pref, lifetime: i.seq };
                match self.default_router(ifindex, &router, cx.now) {
                    Ok(there) => way = there,
                    // One that was entered by hand has its place.
                    Err(()) => return,
                }
                self.told_hop_limit(ifindex, router.hop_limit, way.as_ref());
            }
            self.neigh.told_six(ifindex, four(bytes, 4), four(bytes, 0), self.hz);
        }
        let at = self.neigh.find_or_create(ifindex, h.src.into(), cx.now);
        let Ok(mac) = all.mac() else { return };
        self.ndisc_update(at, mac, Nud::Stale, true, Some(true), cx);
        if !accepts {
            return;
        }
        if trusted && conf.ra.of(Ra::RTR_PREF) != 0 {
            for option in &all.routes {
                self.route_told(ifindex, h.src, option, cx.now);
            }
        }
        if conf.ra.of(Ra::PINFO) != 0 {
            for option in &all.prefixes {
                self.prefix_told(ifindex, option, cx.now);
            }
        }
        let device = &mut self.devices[ifindex];
        if let Some(mtu) = all.mtu.filter(|_| conf.ra.of(Ra::MTU) != 0)
            && (MIN_MTU..=device.mtu).contains(&mtu)
            && device.mtu6() != mtu
        {
            device.six.conf.mtu = mtu;
            if let Some(way) = &way {
                self.six.fib.alter(way, |r| r.set_metric(MTU, mtu));
            }
            self.routes_take_mtu(ifindex, mtu, mtu);
        }
        self.watch_routes6(cx.now);
    }
    /// The default route by a router that says that it is one. `Ok(None)`: it says that it is none. `Err`: there is another like it.
    fn default_router(&mut self, ifindex: u32, router: &Router, now: Time) -> Result<Option<Route6>, ()> {
        let metric = self.devices[ifindex].six.conf.ra.of(Ra::DEFRTR_METRIC) as u32;
        let expires = Some(self.tick(now) + i64::from(router.lifetime) * i64::from(self.hz));
        let mut there =
            self.route_over(ifindex, router.addr, 0, Ipv6Addr::UNSPECIFIED, |l| l.by_ra && l.router);
        if let Some(old) = there.take_if(|r| router.lifetime == 0 || r.metric != metric) {
            self.six.fib.remove_like(&old, |r| r.same_way(&old));
        }
        if let Some(old) = there {
            self.six.fib.alter(&old, |r| r.pref = router.pref);
            self.six.fib.set_expiry(&old, |r| r.same_way(&old), expires);
            return Ok(Some(old));
        }
        if router.lifetime == 0 {
            return Ok(None);
        }
        let new = Route6 {
            via: Some(router.addr),
            metric,
            proto: BY_RA,
            pref: router.pref,
            learnt: Learnt { by_ra: true, router: true, ..Learnt::default() },
            expires,
            ..Route6::new(network(Ipv6Addr::UNSPECIFIED, 0), ifindex)
        };
        if !self.six.fib.insert(new.clone()) {
            return Err(());
        }
        self.six.has_routers = true;
        let at = self.neigh.find_or_create(ifindex, router.addr.into(), now);
        self.neigh.at_mut(at).router = true;
        Ok(Some(new))
    }
    /// A route over a router that another said of itself (`rt6_get_dflt_router`, `rt6_get_route_info`).
    fn route_over(
        &self,
        ifindex: u32,
        router: Ipv6Addr,
        len: u8,
        dst: Ipv6Addr,
        is: impl Fn(Learnt) -> bool,
    ) -> Option<Route6> {
        let found = |r: &&Route6| r.dev == ifindex && r.via == Some(router) && is(r.learnt);
        self.six.fib.to(crate::route::MAIN, &network(dst, len)).find(found).cloned()
    }
    fn told_hop_limit(&mut self, ifindex: u32, hops: u8, way: Option<&Route6>) {
        let conf = &mut self.devices[ifindex].six.conf;
        let least = conf.ra.of(Ra::MIN_HOP_LIMIT);
        if hops == 0 || least >= 256 || least > i64::from(hops) {
            return;
        }
        conf.hop_limit = hops;
        if let Some(way) = way {
            self.six.fib.alter(way, |r| r.set_metric(HOPLIMIT, hops.into()));
        }
        self.six.fib.invalidate();
    }
    /// `rt6_route_rcv`, and what is asked before: a network that a router leads to (RFC 4191 section 2.3).
    fn route_told(&mut self, ifindex: u32, router: Ipv6Addr, option: &[u8], now: Time) {
        let ra = self.devices[ifindex].six.conf.ra;
        let (units, len, pref) = (option[1], option[2], option[3] >> 3 & 3);
        let lifetime = four(option, 4);
        let bounds = ra.of(Ra::RT_INFO_MIN_PLEN)..=ra.of(Ra::RT_INFO_MAX_PLEN);
        let least = match len {
            0 => 1,
            1..=64 => 2,
            _ => 3,
        };
        if len == 0 && ra.of(Ra::DEFRTR) == 0
            || lifetime != 0 && i64::from(lifetime) < ra.of(Ra::MIN_LFT)
            || !bounds.contains(&i64::from(len))
            || !(least..=3).contains(&units)
            || len > 128
            || pref == 2
        {
            return;
        }
        let dst = address(&option[8..]);
        let is = |l: Learnt| if len == 0 { l.by_ra && l.router } else { l.info };
        let there = self.route_over(ifindex, router, len, dst, is);
        let expires =
            (lifetime != INFINITE).then(|| self.tick(now) + i64::from(lifetime) * i64::from(self.hz));
        match there {
            Some(old) if lifetime == 0 => self.six.fib.remove_like(&old, |r| r.same_way(&old)),
            Some(old) => {
                self.six.fib.alter(&old, |r| (r.pref, r.learnt.info) = (pref, true));
                self.six.fib.set_expiry(&old, |r| r.same_way(&old), expires);
            }
            None if lifetime == 0 => {}
            None => {
                let new = Route6 {
                    via: Some(router),
                    metric: METRIC,
                    proto: BY_RA,
                    pref,
                    learnt: Learnt { by_ra: true, router: len == 0, info: true, prefix: false },
                    ..Route6::new(network(dst, len), ifindex)
                };
                // It is entered as one that stays: no clearing away is begun for it.
                if self.six.fib.insert(new.clone()) {
                    self.six.fib.set_expiry(&new, |r| r.same_way(&new), expires);
                }
            }
        }
    }
    /// `addrconf_prefix_rcv`: a prefix of the link (RFC 4861 section 4.6.2).
    fn prefix_told(&mut self, ifindex: u32, option: &[u8], now: Time) {
        if option.len() < 32 {
            return;
        }
        let (len, flags) = (option[2], option[3]);
        let (valid, preferred) = (four(option, 4), four(option, 8));
        let prefix = address(&option[16..]);
        let ra = self.devices[ifindex].six.conf.ra;
        if prefix.is_multicast()
            || is_link_local(prefix)
            || preferred > valid
            || valid != 0 && i64::from(valid) < ra.of(Ra::MIN_LFT)
        {
            return;
        }
        if flags & ON_LINK != 0 && len <= 128 {
            self.link_route_told(ifindex, prefix, len, valid, now);
        }
        let other = ra.of(Ra::HONOR_PIO_PFLAG) != 0 && flags & PREFER_PD != 0;
        if flags & AUTONOMOUS == 0 || ra.of(Ra::AUTOCONF) == 0 || other || len != 64 {
            return;
        }
        let device = &self.devices[ifindex];
        let id = match device.six.token {
            0 if !device.has_eui() => return,
            0 => u128::from(link_local(device.mac)) as u64,
            token => token,
        };
        let tokenized = device.six.token != 0;
        let addr = Ipv6Addr::from(u128::from(prefix) >> 64 << 64 | u128::from(id));
        self.address_told(
            ifindex,
            Address6 { tokenized, ..Address6::new(addr, len) },
            (valid, preferred),
            now,
        );
    }
    fn link_route_told(&mut self, ifindex: u32, prefix: Ipv6Addr, len: u8, valid: u32, now: Time) {
        let expires = (valid != INFINITE).then(|| self.tick(now) + i64::from(valid) * i64::from(self.hz));
        let learnt = Learnt { by_ra: true, prefix: true, ..Learnt::default() };
        let new = Route6 { expires, learnt, ..Route6::new(network(prefix, len), ifindex) };
        let is = |r: &&Route6| r.dev == ifindex && r.via.is_none() && r.learnt == learnt;
        let there = self.six.fib.to(new.table, &new.dst).find(is).cloned();
        match there {
            Some(old) if valid == 0 => self.six.fib.remove_like(&old, |r| r.same_way(&old)),
            Some(old) => drop(self.six.fib.set_expiry(&old, |r| r.same_way(&old), expires)),
            None if valid == 0 => {}
            None => drop(self.six.fib.insert(new)),
        }
    }
    /// `addrconf_prefix_rcv_add_addr`.
    fn address_told(&mut self, ifindex: u32, new: Address6, told: (u32, u32), now: Time) {
        let (tick, hz) = (self.tick(now), i64::from(self.hz));
        let (mut valid, preferred) = told;
        let ra = self.devices[ifindex].six.conf.ra;
        let device = &mut self.devices[ifindex];
        let count = device.addresses6.len() as i64;
        let lifetime = Lifetime { permanent: false, deprecated: false, ..Lifetime::new(Some(told), tick) };
        match device.addresses6.iter_mut().find(|a| a.addr == new.addr) {
            Some(old) => {
                let age = u32::try_from((tick - old.lifetime.since) / hz).unwrap_or(u32::MAX);
                let stored = old.lifetime.seconds.0.saturating_sub(age);
                if stored > 0 {
                    if ra.of(Ra::HONOR_PIO_LIFE) == 0 {
                        valid = valid.max(stored.min(MIN_VALID));
                    }
                    let (seconds, permanent) = ((valid, preferred), old.lifetime.permanent);
                    old.lifetime = Lifetime { seconds, permanent, ..lifetime };
                }
            }
            None => {
                let most = ra.of(Ra::MAX_ADDRESSES);
                let full = most != 0 && count >= most;
                let new = Address6 { lifetime, by_ra: true, ..new };
                if valid == 0 || full || self.insert_address6(ifindex, new).is_err() {
                    return;
                }
            }
        }
        self.lives(lifetime, true, now);
    }
    /// `rt6_mtu_change`: what routes over a device say of the MTU is no more than this, and all of it where they said what the device had.
    pub(crate) fn routes_take_mtu(&mut self, ifindex: u32, mtu: u32, before: u32) {
        self.six.fib.alter_all(|r| {
            if r.dev == ifindex
                && let Some(m) = r.metrics.iter_mut().find(|m| m.0 == MTU && m.1 > 0 && !m.2)
                && (m.1 >= mtu || m.1 == before)
            {
                m.1 = mtu;
            }
        });
    }
    /// `rt6_clean_tohost`: a router is one no more.
    pub(crate) fn forget_router(&mut self, router: Ipv6Addr) {
        self.six.fib.remove(|r| r.learnt.by_ra && r.learnt.router && r.via == Some(router));
    }

    /// From now on the machine makes addresses of IPv6 of its own.
    fn six_begin(&mut self, now: Time) {
        if std::mem::replace(&mut self.six.on, true) {
            return;
        }
        let all: Vec<u32> = self.devices.iter().map(|d| d.ifindex).collect();
        for ifindex in all {
            self.six_up(ifindex);
            self.ask_routers(ifindex, now);
        }
    }
    /// From now on it makes addresses of IPv6 of its own, and asks for routers where a device is up or comes up, as Linux does. Without this a
    /// machine that has an address of IPv6 hears routers, but does not ask: what nobody answers would only be in the way.
    pub fn look_for_routers(&mut self, now: Time) {
        if std::mem::replace(&mut self.six.asks, true) {
            return;
        }
        if !self.six.on {
            return self.six_begin(now);
        }
        let all: Vec<u32> = self.devices.iter().map(|d| d.ifindex).collect();
        all.into_iter().for_each(|ifindex| self.ask_routers(ifindex, now));
    }
    /// A device is up and has its link-local address: it asks for routers.
    pub(crate) fn ask_routers(&mut self, ifindex: u32, now: Time) {
        if !self.six.asks || !self.six.on {
            return;
        }
        self.timers.retain(|timer| timer != Timer::Routers(ifindex));
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if device.loopback || !device.has_eui() || !device.addresses6.iter().any(|a| is_link_local(a.addr)) {
            return;
        }
        device.six.asking.probes = 0;
        self.timers.insert(now, Timer::Routers(ifindex));
    }
    /// `addrconf_dad_completed`, `addrconf_rs_timer`: it asks, and again later unless it is answered.
    pub(crate) fn router_timer_fired(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        let Some(device) = self.devices.get(ifindex) else { return };
        let six = &device.six;
        let (conf, asking) = (six.conf, six.asking);
        let most = conf.ra.of(Ra::SOLICITATIONS);
        if !device.up || conf.disabled || !conf.accepts_ra() || asking.answered && asking.probes > 0 {
            return;
        }
        if most >= 0 && asking.probes >= most {
            return;
        }
        let Some(src) = device.addresses6.iter().map(|a| a.addr).find(|a| is_link_local(*a)) else { return };
        let mac = device.mac;
        let message = [&[1, 1], &mac[..]].concat();
        self.ndisc_send(
            ifindex,
            src,
            ALL_ROUTERS,
            Icmp::new(ROUTER_SOLICITATION, 0, 0, 0),
            Some(&message),
            cx,
        );
        let probes = asking.probes + 1;
        let hz = i64::from(self.hz);
        let last = probes > 1 && probes == most;
        let interval = match asking.probes {
            0 => self.within(900_000, 1_100_000, conf.ra.of(Ra::INTERVAL) * hz),
            _ => {
                let (longer, most) =
                    (self.within(1_900_000, 2_100_000, asking.interval), conf.ra.of(Ra::MAX_INTERVAL) * hz);
                if longer > most { self.within(900_000, 1_100_000, most) } else { longer }
            }
        };
        self.devices[ifindex].six.asking = Asking { probes, interval, ..asking };
        let wait = if last { conf.ra.of(Ra::DELAY) * hz } else { interval };
        let at = timer::fires_at(self.kernel, self.hz, cx.now, self.tick(cx.now) + wait);
        self.timers.insert(at, Timer::Routers(ifindex));
    }
    /// `rfc3315_s14_backoff_init`, `rfc3315_s14_backoff_update`: so many millionths of some ticks.
    fn within(&mut self, least: u32, most: u32, ticks: i64) -> i64 {
        let (seed, name) = (self.seed, &self.name);
        let rng = self.six.dice.get_or_insert_with(|| Rng::named(seed, &format!("host:{name}/routers")));
        // As numbers of 64 bits without a sign, of which 32 with one stay.
        let share =
            u64::from(least + rng.below(most - least + 1)).wrapping_mul(i64::from(ticks as i32) as u64);
        i64::from((share / 1_000_000) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_end_where_the_message_does() {
        let mtu = [5, 1, 0, 0, 0, 0, 5, 0];
        let mac = [1, 1, 2, 0, 0, 0, 0, 1];
        let all = [&mtu[..], &mac, &[5, 1, 0, 0, 0, 0, 6, 0]].concat();
        let read = options(&all).unwrap();
        assert_eq!((read.mtu, read.mac()), (Some(1280), Ok(Some([2, 0, 0, 0, 0, 1]))));
        for wrong in [&[1, 2, 0, 0, 0, 0, 0, 0][..], &[1, 0, 0, 0, 0, 0, 0, 0], &[1]] {
            assert!(options(wrong).is_none());
        }
        let long = [1, 2, 2, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(options(&long).unwrap().mac(), Err(()));
    }

    #[test]
    fn any_interval_is_reckoned_with() {
        let mut host = Host::new("h", penstock_model::Kernel::V6_12, 1);
        let mut waits = -1;
        for _ in 0..100 {
            waits = host.within(1_900_000, 2_100_000, waits);
            assert!(i32::try_from(waits).is_ok());
        }
        for ticks in [i64::MIN, i64::MAX, i64::from(i32::MIN), 0] {
            host.within(900_000, 1_100_000, ticks);
        }
    }
}
