//! IPv6 packets on their way out.
//!
//! Follows: linux v6.12 `net/ipv6/ip6_output.c` `ip6_xmit`, `ip6_output`, `ip6_finish_output2`; `netfilter.c` `ip6_route_me_harder`;
//! `include/net/ipv6.h` `ip6_make_flowlabel`.
//! Differs: a flow label is no hash of the kernel's.

use super::{HEADER, Hop6, Key6, Kind6, MIN_MTU, group_mac, needs_link};
use crate::netfilter::Hook;
use crate::route::Ports;
use crate::{Host, HostCx, Nud, snmp};
use penstock_model::{KernelError, Time};
use penstock_packet::{Ipv6, L3, L4, Packet, Skb};
use penstock_sched::Xmit;
use std::net::Ipv6Addr;

/// `auto_flowlabels` 1, `flowlabel_state_ranges` 1: a number that a flow keeps, in the upper half.
fn flow_label(h: &Ipv6, packet: &Skb, seed: u64) -> u32 {
    let (sport, dport) = match packet.l4 {
        L4::Tcp(t) => (t.sport, t.dport),
        L4::Udp(u) => (u.sport, u.dport),
        L4::Icmp(i) => (u16::from(i.ty), u16::from(i.code)),
        L4::None => (0, 0),
    };
    let (src, dst) = (u128::from(h.src), u128::from(h.dst));
    let words = [
        (src >> 64) as u64,
        src as u64,
        (dst >> 64) as u64,
        dst as u64,
        u64::from(sport) << 48 | u64::from(dport) << 32 | u64::from(h.next_header),
        u64::from(packet.sender.rehashed),
    ];
    // FNV's shape over words, SplitMix64's finish.
    let mut hash = words.iter().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |sum, word| {
        (sum ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(29)
    });
    hash = (hash ^ hash >> 30).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((hash >> 40) as u32 & 0x000f_ffff) | 0x0008_0000
}

/// The error of a way that leads nowhere (`dst->error`), 0 of one that leads on.
fn refused(kind: Option<Kind6>) -> i32 {
    match kind {
        Some(kind) if kind.leads() => 0,
        Some(Kind6::Unreachable) => 113,
        Some(Kind6::Prohibit) => 13,
        Some(_) => KernelError::EINVAL,
        None => 101,
    }
}

impl Host {
    /// The way of a packet, of which nothing is remembered. A host passes by gateways that do not answer; a router does not ask.
    pub(crate) fn search6(&self, key: &Key6) -> Hop6 {
        let host = !self.six.forwarding;
        let silent = |dev: u32, via: Ipv6Addr| {
            let at = if host { self.neigh.find(dev, via.into()) } else { None };
            at.is_some_and(|at| self.neigh.at(at).state == Nud::Failed)
        };
        self.six.fib.search(key, &silent)
    }
    /// The same from the cache, where the destination alone decides.
    #[inline]
    pub(crate) fn lookup6(&mut self, key: &Key6) -> Hop6 {
        if !self.six.fib.is_plain() || key.strict || needs_link(key.dst) {
            return self.search6(key);
        }
        if let Some(hop) = self.six.fib.known(key.dst) {
            return *hop;
        }
        let hop = self.search6(&Key6 { oif: 0, strict: false, ..*key });
        self.six.fib.enter(key.dst, hop);
        hop
    }
    /// The source address this machine speaks to `dst` with; `None` where there is no route, or no address.
    pub fn source_towards6(&mut self, dst: Ipv6Addr) -> Option<Ipv6Addr> {
        let hop = self.lookup6(&Key6::to(dst));
        hop.kind.filter(|k| k.leads())?;
        self.source6(&hop, dst)
    }
    /// A socket has proof that `peer` hears us.
    pub fn confirm6(&mut self, peer: Ipv6Addr, now: Time) {
        let hop = self.lookup6(&Key6::to(peer));
        if hop.kind != Some(Kind6::Unicast) {
            return;
        }
        if let Some(at) = self.neigh.find(hop.oif, hop.next.into()) {
            self.neigh.at_mut(at).confirmed = crate::timer::jiffies(self.kernel, now);
        }
    }

    /// Sends a packet that is made here. `oif` is the device for a destination that means something on one link only.
    pub(crate) fn output6(
        &mut self,
        mut packet: Packet,
        mut h: Ipv6,
        oif: u32,
        cx: &mut HostCx<'_>,
    ) -> Result<(), KernelError> {
        self.answer = Xmit::Success;
        let link = needs_link(h.dst) && !h.dst.is_loopback();
        let hop = self.lookup6(&Key6 {
            src: h.src,
            label: h.flow_label,
            tclass: h.traffic_class,
            mark: packet.mark,
            oif,
            //= linux v6.12 net/ipv6/route.c ip6_route_output_flags_noref: a device without a source is meant
            strict: link || oif != 0 && h.src.is_unspecified(),
            ports: Ports::of(&packet),
            ..Key6::to(h.dst)
        });
        let refused = match refused(hop.kind) {
            0 if link && oif == 0 => KernelError::EINVAL,
            errno => errno,
        };
        if refused != 0 {
            self.snmp.ip6.out_no_routes += u64::from(refused == 101);
            self.discard(packet, "ip6_output", "no-route", cx);
            return Err(KernelError::errno(refused));
        }
        if h.src.is_unspecified() {
            let Some(src) = self.source6(&hop, h.dst) else {
                self.discard(packet, "ip6_output", "no-address", cx);
                return Err(KernelError::errno(99));
            };
            h.src = src;
        }
        if h.hop_limit == 0 {
            h.hop_limit = match hop.hop_limit {
                0 => self.devices[hop.oif].six.conf.hop_limit,
                said => said,
            };
        }
        if h.flow_label == 0 {
            h.flow_label = flow_label(&h, &packet, self.seed);
        }
        packet.l3 = L3::Ipv6(h);
        packet.iif = 0;
        // TCP is not cut, and nothing is longer than a length can say.
        let long = packet.longest_network_len() > self.mtu6(&hop, h.dst, cx.now);
        if long && (matches!(packet.l4, L4::Tcp(_)) || packet.network_len() > HEADER + 65_535) {
            self.discard(packet, "ip6_output", "too-big", cx);
            return Err(KernelError::errno(90));
        }
        self.snmp.ip6.requests += 1;
        if let L4::Icmp(i) = packet.l4 {
            self.snmp.icmp6.sends(i.ty);
        }
        if self.netfilter.busy6(Hook::Output) {
            return self.output6_through_rules(packet, h, hop, cx);
        }
        self.ip6_output(packet, hop, cx);
        Ok(())
    }

    /// OUTPUT, and the route again where a rule has changed what a route may hang on.
    #[cold]
    fn output6_through_rules(
        &mut self,
        mut packet: Packet,
        h: Ipv6,
        mut hop: Hop6,
        cx: &mut HostCx<'_>,
    ) -> Result<(), KernelError> {
        let mark = packet.mark;
        let oif = hop.device();
        if !self.hook(Hook::Output, &mut packet, oif, cx) {
            self.discard(packet, Hook::Output.chain(), "dropped", cx);
            return Err(KernelError::errno(KernelError::EPERM));
        }
        let L3::Ipv6(now) = packet.l3 else { return Ok(()) };
        let changed = mark != packet.mark
            || (h.hop_limit, h.traffic_class) != (now.hop_limit, now.traffic_class)
            || (h.src, h.dst) != (now.src, now.dst);
        if changed {
            let link = needs_link(now.dst) && !now.dst.is_loopback();
            let key = Key6 {
                src: now.src,
                label: now.flow_label,
                tclass: now.traffic_class,
                mark: packet.mark,
                oif: if link { oif } else { 0 },
                strict: link,
                ports: Ports::of(&packet),
                ..Key6::to(now.dst)
            };
            hop = self.lookup6(&key);
            let refused = refused(hop.kind);
            if refused != 0 {
                self.discard(packet, "ip6_output", "no-route", cx);
                return Err(KernelError::errno(refused));
            }
        }
        self.ip6_output(packet, hop, cx);
        Ok(())
    }

    /// `ip6_output`, `ip6_finish_output`.
    #[inline]
    pub(crate) fn ip6_output(&mut self, mut packet: Packet, hop: Hop6, cx: &mut HostCx<'_>) {
        let oif = hop.device();
        if self.devices[oif].six.conf.disabled {
            self.snmp.ip6.out_discards += 1;
            self.discard(packet, "ip6_output", "disabled", cx);
            return;
        }
        if self.netfilter.busy6(Hook::Postrouting) && !self.hook(Hook::Postrouting, &mut packet, oif, cx) {
            self.discard(packet, Hook::Postrouting.chain(), "dropped", cx);
            return;
        }
        if (packet.network_len() > MIN_MTU || packet.is_noted()) && self.is_long6(&packet, &hop, cx) {
            self.ip6_fragment(packet, hop, cx, |host, piece, cx| {
                host.ip6_finish_output2(piece, hop, oif, cx)
            });
            return;
        }
        self.ip6_finish_output2(packet, hop, oif, cx);
    }
    /// `ip6_finish_output2`.
    #[inline]
    fn ip6_finish_output2(&mut self, mut packet: Packet, hop: Hop6, oif: u32, cx: &mut HostCx<'_>) {
        let L3::Ipv6(h) = packet.l3 else { return };
        self.snmp.ip6.leaves(&packet);
        if h.dst.is_multicast() {
            snmp::count(&mut self.snmp.ip6.out_groups, &packet);
        }
        let device = &self.devices[oif];
        if device.loopback {
            packet.eth = (device.mac, device.mac);
            self.xmit(oif, packet, cx);
            return;
        }
        if h.dst.is_multicast() {
            packet.eth = (device.mac, group_mac(h.dst));
            self.xmit(oif, packet, cx);
            return;
        }
        let at = match hop.neigh {
            0 if !device.has_header_of_ethernet() => {
                packet.eth = ([0; 6], [0; 6]);
                self.note_next_hop(&mut packet, oif, hop.next.into());
                self.xmit(oif, packet, cx);
                return;
            }
            0 => {
                let at = self.neigh.find_or_create(oif, hop.next.into(), cx.now);
                self.six.fib.note_neigh(h.dst, hop.next, at);
                at
            }
            known => known - 1,
        };
        self.neigh_output(packet, oif, at, cx);
    }
}
