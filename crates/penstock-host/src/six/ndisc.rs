//! Neighbour discovery: finding the hardware address of the next hop, and answering those who look for ours.
//!
//! Follows: linux v6.12 `net/ipv6/ndisc.c` `ndisc_solicit`, `ndisc_recv_ns`, `ndisc_recv_na`, `ndisc_send_skb`; `net/core/neighbour.c`
//! `neigh_update` with `NEIGH_UPDATE_F_WEAK_OVERRIDE`; RFC 4861.
//! Differs: no redirects.

use super::icmp::{ADVERTISEMENT, SOLICITATION};
use super::{ALL_NODES, HEADER, group_mac, solicited_node};
use crate::neigh::{Nud, Parm};
use crate::netfilter::Hook;
use crate::{Host, HostCx, snmp, timer};
use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::{Icmp, IcmpBody, Ipv6, L3, L4, Packet, Skb};
use std::net::{IpAddr, Ipv6Addr};

// Flags of an advertisement, as the first 16 of its 32 bits.
const ROUTER: u16 = 0x8000;
const SOLICITED: u16 = 0x4000;
const OVERRIDE: u16 = 0x2000;

impl Host {
    /// `ndisc_solicit`.
    pub(crate) fn ndisc_solicit(&mut self, at: u32, cx: &mut HostCx<'_>) {
        let n = self.neigh.at(at);
        let IpAddr::V6(target) = n.addr else { return };
        let ifindex = n.ifindex;
        let unicast = i64::from(n.probes) < self.neigh.parm(true, ifindex, Parm::Ucast);
        let own = n.queue.back().and_then(|p| match p.l3 {
            L3::Ipv6(h) if self.has_address6(ifindex, h.src) => Some(h.src),
            _ => None,
        });
        self.neigh.at_mut(at).probes += 1;
        let device = &self.devices[ifindex];
        // Without the sender's address it is asked in the name of the link-local one (ndisc_send_ns).
        let near = || device.addresses6.iter().find(|a| super::is_link_local(a.addr)).map(|a| a.addr);
        let Some(src) = own.or_else(near) else { return };
        let body = IcmpBody::Neighbour { target, mac: Some(device.mac) };
        let dst = if unicast { target } else { solicited_node(target) };
        self.ndisc_send(ifindex, src, dst, Icmp { body, ..Icmp::new(SOLICITATION, 0, 0, 0) }, None, cx);
    }

    /// `ndisc_send_skb`: through the rules and out by this very device. `message` is what stands behind the first 8 bytes of a message about routers.
    pub(crate) fn ndisc_send(
        &mut self,
        ifindex: u32,
        src: Ipv6Addr,
        dst: Ipv6Addr,
        l4: Icmp,
        message: Option<&[u8]>,
        cx: &mut HostCx<'_>,
    ) {
        let behind = match (l4.body, message) {
            (_, Some(bytes)) => bytes.len() as u32,
            (IcmpBody::Neighbour { mac: Some(_), .. }, None) => 24,
            (_, None) => 16,
        };
        let len = ETH_HLEN + HEADER + 8 + behind;
        let l3 = Ipv6 { hop_limit: 255, ..Ipv6::new(src, dst, ipproto::ICMPV6) };
        let mut packet = cx.pool.alloc(Skb {
            created: cx.now,
            queued: cx.now,
            ..Skb::new(len, L3::Ipv6(l3), L4::Icmp(l4))
        });
        if let Some(bytes) = message {
            packet.rare_mut().message = Some(bytes.into());
        }
        self.snmp.ip6.requests += 1;
        self.snmp.icmp6.sends(l4.ty);
        for hook in [Hook::Output, Hook::Postrouting] {
            if self.netfilter.busy6(hook) && !self.hook(hook, &mut packet, ifindex, cx) {
                self.discard(packet, hook.chain(), "dropped", cx);
                return;
            }
        }
        self.snmp.ip6.leaves(&packet);
        if dst.is_multicast() {
            snmp::count(&mut self.snmp.ip6.out_groups, &packet);
            packet.eth = (self.devices[ifindex].mac, group_mac(dst));
            self.xmit(ifindex, packet, cx);
            return;
        }
        let at = self.neigh.find_or_create(ifindex, dst.into(), cx.now);
        self.neigh_output(packet, ifindex, at, cx);
    }

    /// A solicitation or an advertisement has come.
    pub(crate) fn ndisc_receive(&mut self, packet: Packet, h: Ipv6, i: Icmp, cx: &mut HostCx<'_>) {
        let ifindex = packet.iif;
        let IcmpBody::Neighbour { target, mac } = i.body else {
            self.discard(packet, "ndisc", "malformed", cx);
            return;
        };
        // A router would have made less of it: it is from this link.
        if h.hop_limit != 255 || i.code != 0 || target.is_multicast() {
            self.discard(packet, "ndisc", "malformed", cx);
            return;
        }
        match i.ty {
            SOLICITATION => self.ndisc_recv_ns(packet, h, target, mac, false, cx),
            _ => {
                cx.pool.free(packet);
                self.ndisc_recv_na(ifindex, h, target, mac, i.id, cx);
            }
        }
    }
    /// A solicitation has waited for its answer (`pndisc_redo`).
    pub(crate) fn ndisc_redo(&mut self, packet: Packet, cx: &mut HostCx<'_>) {
        if let (L3::Ipv6(h), L4::Icmp(Icmp { body: IcmpBody::Neighbour { target, mac }, .. })) =
            (packet.l3, packet.l4)
        {
            return self.ndisc_recv_ns(packet, h, target, mac, true, cx);
        }
        cx.pool.free(packet);
    }

    fn ndisc_recv_ns(
        &mut self,
        packet: Packet,
        h: Ipv6,
        target: Ipv6Addr,
        mac: Option<[u8; 6]>,
        waited: bool,
        cx: &mut HostCx<'_>,
    ) {
        let ifindex = packet.iif;
        let to_us = packet.eth.1 == self.devices[ifindex].mac;
        // Whoever has no address yet asks whether anybody has this one.
        let dad = h.src.is_unspecified();
        if dad && (mac.is_some() || solicited_node(h.dst) != h.dst) {
            return cx.pool.free(packet);
        }
        let group = h.dst.is_multicast();
        let own = self.has_address6(ifindex, target);
        let device = &self.devices[ifindex];
        let mut router = device.six.conf.forwarding;
        if !own {
            if !device.six.is_anycast(target) {
                match self.answers_for6(ifindex, target) {
                    Some(as_router) => router = as_router,
                    None => return cx.pool.free(packet),
                }
            }
            if !waited && !to_us && group && self.neigh.parm(true, ifindex, Parm::ProxyDelay) != 0 {
                return self.proxy_waits(true, packet, cx);
            }
        }
        cx.pool.free(packet);
        let router = if router { ROUTER } else { 0 };
        let overrides = |yes: bool| if yes { OVERRIDE } else { 0 };
        if dad {
            return self.ndisc_send_na(ifindex, ALL_NODES, target, router | overrides(own), true, cx);
        }
        let at = match mac.is_some() || !group {
            true => Some(self.neigh.find_or_create(ifindex, h.src.into(), cx.now)),
            false => self.neigh.find(ifindex, h.src.into()),
        };
        let Some(at) = at else { return };
        self.ndisc_update(at, mac, Nud::Stale, true, None, cx);
        let flags = router | SOLICITED | overrides(own && group);
        self.ndisc_send_na(ifindex, h.src, target, flags, group, cx);
    }
    fn ndisc_send_na(
        &mut self,
        ifindex: u32,
        dst: Ipv6Addr,
        target: Ipv6Addr,
        flags: u16,
        option: bool,
        cx: &mut HostCx<'_>,
    ) {
        let src = match self.has_address6(ifindex, target) {
            true => Some(target),
            false => self.select_source6(dst, ifindex),
        };
        let Some(src) = src else { return };
        let mac = option.then_some(self.devices[ifindex].mac);
        let body = IcmpBody::Neighbour { target, mac };
        self.ndisc_send(ifindex, src, dst, Icmp { body, ..Icmp::new(ADVERTISEMENT, 0, flags, 0) }, None, cx);
    }

    fn ndisc_recv_na(
        &mut self,
        ifindex: u32,
        h: Ipv6,
        target: Ipv6Addr,
        mac: Option<[u8; 6]>,
        flags: u16,
        cx: &mut HostCx<'_>,
    ) {
        let solicited = flags & SOLICITED != 0;
        if h.dst.is_multicast() && solicited || self.has_address6(ifindex, target) {
            return;
        }
        let Some(at) = self.neigh.find(ifindex, target.into()) else { return };
        if self.neigh.at(at).state == Nud::Failed {
            return;
        }
        let new = if solicited { Nud::Reachable } else { Nud::Stale };
        let before = self.neigh.at(at).router;
        self.ndisc_update(at, mac, new, flags & OVERRIDE != 0, Some(flags & ROUTER != 0), cx);
        if before && !self.neigh.at(at).router {
            self.forget_router(h.src);
        }
    }

    /// `ndisc_update`: what a neighbour has said of its hardware address, and whether it is a router. One that is known for sure is not given up for
    /// a word without "override", but is asked again.
    pub(crate) fn ndisc_update(
        &mut self,
        at: u32,
        mac: Option<[u8; 6]>,
        new: Nud,
        overrides: bool,
        router: Option<bool>,
        cx: &mut HostCx<'_>,
    ) {
        let n = self.neigh.at(at);
        let (old, known) = (n.state, n.mac);
        if matches!(old, Nud::Permanent | Nud::Noarp) {
            return;
        }
        let mac = match mac {
            Some(mac) => mac,
            None if old.is_valid() => known,
            None => return,
        };
        if !old.is_valid() || mac == known || overrides {
            self.neigh_update(at, mac, new, true, cx);
            let n = self.neigh.at_mut(at);
            n.router = router.unwrap_or(n.router);
        } else if old == Nud::Reachable {
            self.neigh_timer(at, None);
            let tick = timer::jiffies(self.kernel, cx.now);
            let n = self.neigh.at_mut(at);
            (n.state, n.updated) = (Nud::Stale, tick);
        }
    }
}
