//! ICMP: echo replies, and the errors a host or router sends.
//!
//! Follows: linux v6.12 `net/ipv4/icmp.c` (`icmp_echo`, `__icmp_send`, `icmpv4_xrlim_allow`, `icmp_global_allow`, `icmp_global_consume`), `inetpeer.c`
//! `inet_peer_xrlim_allow`; RFC 792, RFC 1812.
//! Differs: no timestamps.

use crate::{Host, HostCx, timer};
use penstock_model::{Handle, Kernel, Rng, Time};
use penstock_packet::headers::{ETH_HLEN, Quoted, ipproto};
use penstock_packet::{Icmp, IcmpBody, Ipv4, L3, L4, Packet, Skb};
use std::net::Ipv4Addr;

/// Echo reply.
pub const ECHO_REPLY: u8 = 0;
/// Destination unreachable.
pub const DEST_UNREACH: u8 = 3;
/// Redirect.
pub const REDIRECT: u8 = 5;
/// Echo request.
pub const ECHO: u8 = 8;
/// Time exceeded.
pub const TIME_EXCEEDED: u8 = 11;

/// An error quotes no more than makes 576 bytes in all (RFC 1812 section 4.3.2.3).
const ROOM: u32 = 576 - 20 - 8;
/// Tokens a peer gathers at most, in errors (`XRLIM_BURST_FACTOR`).
const BURST: i64 = 6;

/// Tokens for errors to one peer, in ticks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bucket {
    tokens: i64,
    last: i64,
    /// Redirects that were sent in vain.
    redirects: i64,
}

/// Tokens for all errors of a machine, of both families, which those to one peer take as well (`icmp_msgs_per_sec`, `icmp_msgs_burst`).
#[derive(Clone, Debug)]
pub(crate) struct Together {
    /// In errors; one takes none, one or two, so that nobody can count them.
    credit: i64,
    /// The tick at which they were added last.
    stamp: Option<i64>,
    dice: Rng,
}

impl Together {
    pub(crate) fn new(dice: Rng) -> Together {
        Together { credit: 0, stamp: None, dice }
    }
    /// Whether there is any left; what has become due is added where there was none. `limits` are errors a second, and at most so many.
    //= linux v6.12 net/ipv4/icmp.c icmp_global_allow
    fn allow(&mut self, tick: i64, hz: i64, limits: (i64, i64)) -> bool {
        if self.credit > 0 {
            return true;
        }
        let since = self.stamp.map_or(hz, |stamp| (tick - stamp).min(hz));
        let more = limits.0 * since / hz;
        if since < hz / 50 || more == 0 {
            return false;
        }
        self.stamp = Some(tick);
        self.credit = (self.credit + more).min(limits.1);
        true
    }
    //= linux v6.12 net/ipv4/icmp.c icmp_global_consume
    pub(crate) fn consume(&mut self) {
        self.credit -= i64::from(self.dice.below(3));
    }
}

/// What an ICMP message quotes of a packet.
pub(crate) fn quote(packet: &Skb) -> Option<Quoted> {
    let (src, dst, protocol, fragment) = match packet.l3 {
        L3::Ipv4(h) => (h.src.into(), h.dst.into(), h.protocol, None),
        L3::Ipv6(h) => (h.src.into(), h.dst.into(), h.protocol(), h.fragment().copied()),
        _ => return None,
    };
    let (sport, dport) = match packet.l4 {
        L4::Tcp(t) => (t.sport, t.dport),
        L4::Udp(u) => (u.sport, u.dport),
        L4::Icmp(i) => (i.id, i.seq),
        L4::None => (0, 0),
    };
    Some(Quoted { src, dst, protocol, fragment, sport, dport })
}

impl Bucket {
    /// Of a peer nobody was told of for long.
    pub(crate) fn full(tick: i64, hz: i64) -> Bucket {
        Bucket { tokens: 0, last: tick - 60 * hz, redirects: 0 }
    }
    /// Takes `cost` of at most five times that much.
    fn take(&mut self, tick: i64, cost: i64) -> bool {
        self.tokens = (self.tokens + tick - self.last).min(5 * cost);
        self.last = tick;
        let enough = self.tokens >= cost;
        self.tokens -= if enough { cost } else { 0 };
        enough
    }
    /// Whether one more redirect may be sent: at most `number`, each twice as long after the last one, from `load` ticks on; after a silence they begin anew.
    //= linux v6.12 net/ipv4/route.c ip_rt_send_redirect
    pub(crate) fn may_redirect(&mut self, tick: i64, (number, load, silence): (i64, i64, i64)) -> bool {
        if tick > self.last.saturating_add(silence) {
            (self.tokens, self.redirects) = (0, 0);
        }
        if self.redirects >= number {
            self.last = tick;
            return false;
        }
        let may = self.redirects == 0 || {
            let doubled = load.saturating_mul(1 << self.redirects.clamp(0, 40));
            tick > self.last.saturating_add(doubled)
        };
        if may {
            self.last = tick;
            self.redirects += 1;
        }
        may
    }
    /// `inet_peer_xrlim_allow`: one more, where the last ones were long enough ago.
    pub(crate) fn allow(&mut self, tick: i64, timeout: i64) -> bool {
        let tokens = (self.tokens + tick - self.last).min(BURST * timeout);
        self.last = tick;
        let allow = tokens >= timeout;
        self.tokens = tokens - if allow { timeout } else { 0 };
        allow
    }
}

impl Host {
    /// Sends an ICMP error about `packet`, unless RFC 1122 and 1812 forbid it: not about ICMP errors, broadcasts
    /// or later fragments. `info` is the next hop's MTU in "fragmentation needed", otherwise 0.
    /// At most one a second to a peer once six have gone out (`icmp_ratelimit`), and of all together some 1000 a second (`icmp_msgs_per_sec`).
    pub fn icmp_send(&mut self, packet: &Skb, ty: u8, code: u8, info: u16, cx: &mut HostCx<'_>) {
        self.icmp_send_by(packet.iif, packet, ty, code, info, cx);
    }
    /// The same of a packet that is with device `dev`, in whose VRF the message goes.
    pub(crate) fn icmp_send_by(
        &mut self,
        dev: u32,
        packet: &Skb,
        ty: u8,
        code: u8,
        info: u16,
        cx: &mut HostCx<'_>,
    ) {
        self.icmp_send_info(dev, packet, (ty, code), info.into(), cx);
    }
    /// The same with all of the second word, which in a redirect is the gateway.
    pub(crate) fn icmp_send_info(
        &mut self,
        dev: u32,
        packet: &Skb,
        (ty, code): (u8, u8),
        info: u32,
        cx: &mut HostCx<'_>,
    ) {
        let L3::Ipv4(h) = packet.l3 else { return };
        let came_to_all = packet.is_noted() && matches!(packet.rare().ptype, Some(1 | 2));
        let broadcast = (packet.eth.1[0] & 1 == 1 || came_to_all) && packet.iif != 0;
        if broadcast || h.dst.is_multicast() || h.frag_off & 0x1fff != 0 {
            return;
        }
        if matches!(packet.l4, L4::Icmp(i) if !matches!(i.ty, ECHO_REPLY | ECHO | 13..=18)) {
            return;
        }
        if h.src.is_unspecified() || self.is_broadcast_at(dev, h.dst) {
            return;
        }
        // Fragmentation needed is never limited: path MTU discovery hangs on it. Nor are by themselves redirects (icmp_ratemask), which have limits of
        // their own, and what is about a packet from lo.
        let from_lo = self.devices.get(dev).is_some_and(|d| d.loopback);
        if !from_lo && (ty, code) != (DEST_UNREACH, 4) && self.is_limited(ty) {
            if !self.global_allow(cx.now) {
                self.snmp.icmp.limited_together += 1;
                return;
            }
            if !self.xrlim_allow(self.vrf_of(dev), h.src, cx.now) {
                self.snmp.icmp.limited += 1;
                return;
            }
            self.icmp_together.consume();
        }
        let src = if self.is_local_at(dev, h.dst) { h.dst } else { Ipv4Addr::UNSPECIFIED };
        let tos = (h.tos & 0x1e) | 0xc0;
        let body = quote(packet).map_or(IcmpBody::Data, IcmpBody::About);
        let l4 = Icmp { body, ..Icmp::new(ty, code, (info >> 16) as u16, info as u16) };
        self.icmp_output((src, h.src), tos, l4, (dev, packet), cx);
    }

    /// Whether messages of a type are limited at all (`icmp_ratemask`): without a setting unreachable, source quench, time exceeded and parameter problem.
    //= linux v6.12 net/ipv4/icmp.c icmpv4_mask_allow
    fn is_limited(&self, ty: u8) -> bool {
        let mask = self.number("net.ipv4.icmp_ratemask").unwrap_or(0x1818);
        ty <= 18 && mask >> ty & 1 == 1
    }
    /// Whether this machine may send one more error at all, of either family; 2.6.35 has no such limit.
    pub(crate) fn global_allow(&mut self, now: Time) -> bool {
        if self.kernel == Kernel::V2_6_35 {
            return true;
        }
        let begins = if self.kernel == Kernel::V7_2 { (10_000, 10_000) } else { (1000, 50) };
        let per_second = self.number("net.ipv4.icmp_msgs_per_sec").unwrap_or(begins.0);
        let limits = (per_second, self.number("net.ipv4.icmp_msgs_burst").unwrap_or(begins.1));
        let hz = i64::from(self.hz);
        self.icmp_together.allow(timer::ticks(self.hz, now), hz, limits)
    }
    /// What a command has set a key of numbers to.
    fn number(&self, key: &str) -> Option<i64> {
        self.sysctl.kept.get(key)?.parse().ok()
    }
    /// `inet_peer_xrlim_allow` with `icmp_ratelimit`, which begins at 1000 ms; 0 lets all pass, and up to 6.12 leaves no tokens to `ip_error`.
    fn xrlim_allow(&mut self, vrf: u32, peer: Ipv4Addr, now: Time) -> bool {
        if vrf == 0 && self.is_local(peer) {
            return true;
        }
        let hz = i64::from(self.hz);
        let set = self.number("net.ipv4.icmp_ratelimit");
        let timeout = set.map_or(hz, |ms| (ms.clamp(0, 1 << 31) * hz + 999) / 1000);
        if timeout == 0 && self.kernel == Kernel::V7_2 {
            return true;
        }
        let tick = timer::ticks(self.hz, now);
        let bucket = self.icmp_buckets.entry((vrf, peer)).or_insert_with(|| Bucket::full(tick, hz));
        bucket.allow(tick, timeout)
    }
    /// Whether a sender may hear once more that there is no route: of the same tokens, before the message itself takes its own.
    //= linux v6.12 net/ipv4/route.c ip_error
    pub(crate) fn may_tell_of_routes(&mut self, iif: u32, peer: Ipv4Addr, now: Time) -> bool {
        if self.kernel == Kernel::V2_6_35 {
            return true;
        }
        let (tick, hz, vrf) = (timer::ticks(self.hz, now), i64::from(self.hz), self.vrf_of(iif));
        let bucket = self.icmp_buckets.entry((vrf, peer)).or_insert_with(|| Bucket::full(tick, hz));
        bucket.take(tick, hz)
    }

    /// Makes an ICMP error about a packet, of whose connection it is, and sends it.
    fn icmp_output(
        &mut self,
        (src, dst): (Ipv4Addr, Ipv4Addr),
        tos: u8,
        l4: Icmp,
        (dev, about): (u32, &Skb),
        cx: &mut HostCx<'_>,
    ) {
        let len = ETH_HLEN + 20 + 8 + about.network_len().min(ROOM);
        // The route's, or the host's.
        let ttl = 0;
        let l3 = L3::Ipv4(Ipv4 { src, dst, tos, ttl, protocol: ipproto::ICMP, id: 0, frag_off: 0 });
        let mut packet =
            cx.pool.alloc(Skb { created: cx.now, queued: cx.now, ..Skb::new(len, l3, L4::Icmp(l4)) });
        packet.iif = self.vrf_of(dev);
        if about.is_noted() {
            crate::hooks::attach(&mut packet, about);
        }
        // Nobody waits for the outcome: a message without a route is gone, as in the kernel.
        let _ = self.send(packet, cx);
    }

    /// ICMP for this machine: echoes are answered, the rest is the sockets' (replies, errors).
    pub(crate) fn icmp_receive(&mut self, mut packet: Packet, cx: &mut HostCx<'_>) {
        let (L3::Ipv4(h), L4::Icmp(i)) = (packet.l3, packet.l4) else {
            self.discard(packet, "icmp", "malformed", cx);
            return;
        };
        self.snmp.icmp.receives(i.ty);
        if i.ty != ECHO {
            self.tunnel_error(&i, cx);
            self.deliver(packet, cx);
            return;
        }
        let to_all = h.dst.is_multicast() || self.is_broadcast_at(packet.iif, h.dst);
        let ignores = "net.ipv4.icmp_echo_ignore_broadcasts";
        if to_all && !self.is_set_to(ignores, "0") {
            self.snmp.icmp.in_errors += 1;
        }
        if self.sysctl.icmp_echo_ignore_all || to_all && !self.is_set_to(ignores, "0") {
            self.discard(packet, "icmp", "echo-ignored", cx);
            return;
        }
        // The route's, or the host's.
        let ttl = 0;
        // fib_compute_spec_dst: of a broadcast the route says.
        let src = if to_all { Ipv4Addr::UNSPECIFIED } else { h.dst };
        packet.l3 = L3::Ipv4(Ipv4 { src, dst: h.src, ttl, id: 0, frag_off: 0, ..h });
        packet.l4 = L4::Icmp(Icmp { ty: ECHO_REPLY, ..i });
        packet.priority = 0;
        packet.mark = 0;
        packet.iif = self.vrf_of(packet.iif);
        packet.classid = Handle::UNSPEC;
        packet.reset_ct();
        if packet.is_noted() {
            packet.rare_mut().frag_max_size = 0;
        }
        let _ = self.send(packet, cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A burst of 50, of which each error takes one on average, then 20 every 20 ms.
    #[test]
    fn all_errors_together_are_limited() {
        let mut together = Together::new(Rng::named(1, "icmp"));
        let mut sent = |ticks: std::ops::Range<i64>| {
            ticks
                .map(|tick| {
                    (0..100)
                        .filter(|_| {
                            let may = together.allow(tick, 100, (1000, 50));
                            if may {
                                together.consume();
                            }
                            may
                        })
                        .count()
                })
                .collect::<Vec<_>>()
        };
        let at_once = sent(500..501)[0];
        assert!((30..80).contains(&at_once), "{at_once}");
        let later = sent(501..601);
        // Not before two ticks are over, and never more than what these are worth, or so.
        assert_eq!(later[0], 0);
        assert!(later.windows(2).all(|two| two[0] == 0 || two[1] == 0), "{later:?}");
        assert!((850..1150).contains(&later.iter().sum::<usize>()), "{later:?}");
        assert!(!Together::new(Rng::named(1, "icmp")).allow(0, 100, (0, 50)));
    }

    #[test]
    fn redirects_come_twice_as_late_each_time_and_end_until_a_silence() {
        let limits = (3, 5, 100);
        let mut bucket = Bucket::full(1000, 250);
        let sent: Vec<i64> = (1000..1200).filter(|&tick| bucket.may_redirect(tick, limits)).collect();
        // 5 << 1 and 5 << 2 ticks have to be over.
        assert_eq!(sent, [1000, 1011, 1032]);
        assert!(!bucket.may_redirect(1299, limits) && bucket.may_redirect(1400, limits));
        // Whatever a setting says.
        for n in [i64::MIN, -1, 0, i64::MAX] {
            bucket.may_redirect(1500, (n, n, n));
        }
    }
}
