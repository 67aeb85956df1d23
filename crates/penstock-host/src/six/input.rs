//! IPv6 packets that come in: for this machine, or on to another.
//!
//! Follows: linux v6.12 `net/ipv6/ip6_input.c` `ip6_rcv_core`, `ip6_input_finish`, `ip6_mc_input`; `ip6_output.c` `ip6_forward`;
//! `route.c` `ip6_route_input`, `ip6_pkt_drop`.
//! Differs: of extension headers that of fragments alone; no redirects.

use super::{HEADER, Hop6, Key6, Kind6, MIN_MTU, icmp, is_link_local, needs_link};
use crate::netfilter::Hook;
use crate::route::Ports;
use crate::{Host, HostCx, snmp};
use penstock_packet::{Ipv6, L3, L4, Packet};

/// Where the next header stands in the header, bytes.
const NEXT_HEADER: u32 = 6;

impl Host {
    /// `ipv6_rcv`, `ip6_rcv_finish`.
    pub(crate) fn ip6_rcv(&mut self, ifindex: u32, mut packet: Packet, mut h: Ipv6, cx: &mut HostCx<'_>) {
        let device = &self.devices[ifindex];
        let (loopback, group) = (device.loopback, h.dst.is_multicast());
        if device.six.conf.disabled || device.mtu < MIN_MTU {
            self.snmp.ip6.arrives(&packet);
            self.snmp.ip6.in_discards += 1;
            self.discard(packet, "ip6_rcv", "disabled", cx);
            return;
        }
        self.snmp.ip6.receives(&packet, h.traffic_class);
        let scope = h.dst.segments()[0] & 0xf;
        let wrong = !loopback && (h.src.is_loopback() || h.dst.is_loopback())
            || group && (scope == 0 || scope == 1 && !loopback)
            || h.src.is_multicast();
        if wrong {
            self.snmp.ip6.header_errors += 1;
            self.discard(packet, "ip6_rcv", "bad-address", cx);
            return;
        }
        if self.netfilter.busy6(Hook::Prerouting) {
            let Some(passed) = self.prerouting6(packet, h, cx) else { return };
            packet = passed;
            if let L3::Ipv6(now) = packet.l3 {
                h = now;
            }
        }
        // What is sent by `lo` has the way that it was sent by.
        let link = needs_link(h.dst) && !loopback;
        let hop = self.lookup6(&Key6 {
            dst: h.dst,
            src: h.src,
            label: h.flow_label,
            tclass: h.traffic_class,
            mark: packet.mark,
            iif: ifindex,
            oif: if link { ifindex } else { 0 },
            strict: link,
            ports: Ports::of(&packet),
        });
        match hop.kind {
            Some(Kind6::Unicast) => self.ip6_forward(packet, h, hop, cx),
            Some(Kind6::Local | Kind6::Anycast) => self.ip6_input(packet, cx),
            Some(Kind6::Multicast) => {
                snmp::count(&mut self.snmp.ip6.in_groups, &packet);
                match self.devices[ifindex].six.is_in(h.dst) {
                    true => self.ip6_input(packet, cx),
                    false => self.discard(packet, "ip6_rcv", "no-group", cx),
                }
            }
            Some(Kind6::Blackhole) => self.discard(packet, "ip6_forward", "blackhole", cx),
            Some(Kind6::Prohibit) => {
                self.snmp.ip6.in_no_routes += 1;
                self.icmp6_send(&packet, icmp::DEST_UNREACH, icmp::ADM_PROHIBITED, 0, cx);
                self.discard(packet, "ip6_forward", "prohibited", cx);
            }
            Some(Kind6::Unreachable) | None => {
                self.snmp.ip6.in_no_routes += u64::from(!h.dst.is_unspecified());
                self.snmp.ip6.address_errors += u64::from(h.dst.is_unspecified());
                if !h.dst.is_unspecified() {
                    self.icmp6_send(&packet, icmp::DEST_UNREACH, icmp::NOROUTE, 0, cx);
                }
                self.discard(packet, "ip6_forward", "no-route", cx);
            }
        }
    }

    /// PREROUTING. Where connections are tracked, fragments are put together before (`nf_defrag_ipv6`). `None`: the packet is gone, or waits.
    #[cold]
    fn prerouting6(&mut self, packet: Packet, h: Ipv6, cx: &mut HostCx<'_>) -> Option<Packet> {
        if self.has_met_rules(&packet) { Some(packet) } else { self.prerouting6_of(packet, h, cx) }
    }
    pub(crate) fn prerouting6_of(
        &mut self,
        mut packet: Packet,
        h: Ipv6,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        if h.fragment().is_some() && self.netfilter.tracking().on() && packet.rare().ct.is_none() {
            packet = self.track_fragment6(packet, h, cx)?;
        }
        if !self.hook(Hook::Prerouting, &mut packet, 0, cx) {
            self.discard(packet, Hook::Prerouting.chain(), "dropped", cx);
            return None;
        }
        Some(packet)
    }
    /// Whether a packet that is longer than a way takes was put together here from fragments that are not (`ip6_pkt_too_big`).
    #[cold]
    fn comes_in_fragments(&self, packet: &Packet, mtu: u32) -> bool {
        (1..=mtu).contains(&packet.rare().frag_max_size)
    }

    /// `ip6_forward`.
    fn ip6_forward(&mut self, mut packet: Packet, h: Ipv6, hop: Hop6, cx: &mut HostCx<'_>) {
        if !self.six.forwarding || packet.eth.1[0] & 1 == 1 {
            self.snmp.ip6.address_errors += u64::from(!self.six.forwarding);
            self.discard(packet, "ip6_forward", "not-forwarding", cx);
            return;
        }
        if h.hop_limit <= 1 {
            self.snmp.ip6.header_errors += 1;
            self.icmp6_send(&packet, icmp::TIME_EXCEED, 0, 0, cx);
            self.discard(packet, "ip6_forward", "hop-limit-exceeded", cx);
            return;
        }
        if !self.proxies.is_empty()
            && self.proxies_ndp("all")
            && self.proxy_of(packet.iif, h.dst.into()).is_some()
        {
            //= linux v6.12 net/ipv6/ip6_output.c ip6_forward_proxy_check
            if matches!(packet.l4, L4::Icmp(i) if (133..=137).contains(&i.ty)) {
                return self.ip6_input(packet, cx);
            }
            if is_link_local(h.dst) {
                self.icmp6_send(&packet, icmp::DEST_UNREACH, icmp::ADDR_UNREACH, 0, cx);
                self.discard(packet, "ip6_forward", "proxied-link-local", cx);
                return;
            }
        }
        if packet.iif != hop.oif {
            if h.src.is_unspecified() || h.src.is_loopback() {
                self.snmp.ip6.address_errors += 1;
                self.discard(packet, "ip6_forward", "martian-source", cx);
                return;
            }
            if is_link_local(h.src) {
                self.icmp6_send(&packet, icmp::DEST_UNREACH, icmp::NOT_NEIGHBOUR, 0, cx);
                self.snmp.ip6.address_errors += 1;
                self.discard(packet, "ip6_forward", "link-local-source", cx);
                return;
            }
        }
        //= linux v6.12 include/net/ip6_route.h ip6_dst_mtu_maybe_forward
        let mtu = match hop.mtu_locked && hop.mtu > 0 {
            true => hop.mtu,
            false => self.devices[hop.oif].mtu6(),
        };
        let mtu = mtu.max(MIN_MTU);
        self.snmp.ip6.forwarded += 1;
        if packet.longest_network_len() > mtu && !self.comes_in_fragments(&packet, mtu) {
            self.snmp.ip6.too_big += 1;
            self.snmp.ip6.frag_fails += 1;
            self.icmp6_send(&packet, icmp::PKT_TOOBIG, 0, mtu, cx);
            self.discard(packet, "ip6_forward", "too-big", cx);
            return;
        }
        if let L3::Ipv6(h) = &mut packet.l3 {
            h.hop_limit -= 1;
        }
        if self.netfilter.busy6(Hook::Forward) && !self.hook(Hook::Forward, &mut packet, hop.oif, cx) {
            self.discard(packet, Hook::Forward.chain(), "dropped", cx);
            return;
        }
        self.ip6_output(packet, hop, cx);
    }

    /// `ip6_input`, `ip6_protocol_deliver_rcu`.
    fn ip6_input(&mut self, mut packet: Packet, cx: &mut HostCx<'_>) {
        let L3::Ipv6(h) = packet.l3 else { return };
        if self.netfilter.busy6(Hook::Input) && !self.hook(Hook::Input, &mut packet, 0, cx) {
            self.discard(packet, Hook::Input.chain(), "dropped", cx);
            return;
        }
        let mut protocol_at = NEXT_HEADER;
        if h.fragment().is_some() {
            //= linux v6.12 net/ipv6/ip6_input.c ip6_protocol_deliver_rcu: behind the rules
            let Some(whole) = self.defragment6(packet, h, cx) else { return };
            packet = whole;
            if matches!(packet.l3, L3::Ipv6(h) if h.fragment().is_some()) {
                protocol_at = HEADER;
            }
        }
        if packet.is_noted() {
            self.forget_fragments6(&mut packet);
        }
        if packet.tc.damaged {
            self.snmp.damaged(&packet, true);
            self.discard(packet, "ip6_input", "bad-checksum", cx);
            return;
        }
        if packet.is_noted() && packet.rare().carried.is_some() {
            let Some(others) = self.tunnel_receive(packet, cx) else {
                self.snmp.ip6.delivers += 1;
                return;
            };
            packet = others;
        }
        match packet.l4 {
            L4::None => self.snmp.ip6.unknown_protocols += 1,
            _ => self.snmp.ip6.delivers += 1,
        }
        match packet.l4 {
            L4::Icmp(i) => self.icmp6_receive(packet, i, cx),
            L4::Udp(u) if self.is_wireguards(u.dport) => {
                self.discard(packet, "wireguard", "no-message", cx);
            }
            L4::Tcp(_) | L4::Udp(_) => self.deliver(packet, cx),
            L4::None => {
                self.icmp6_send(&packet, icmp::PARAMPROB, icmp::UNK_NEXTHDR, protocol_at, cx);
                self.discard(packet, "ip6_input", "no-protocol", cx);
            }
        }
    }
}
