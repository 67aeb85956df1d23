//! ICMPv6: echo replies, errors, and what comes of those of others.
//!
//! Follows: linux v6.12 `net/ipv6/icmp.c` `icmp6_send`, `icmpv6_xrlim_allow`, `icmpv6_echo_reply`, `icmpv6_rcv`; RFC 4443.
//! Differs: no node information, no multicast listeners.

use super::{HEADER, Key6, Kind6, MIN_MTU, needs_link};
use crate::icmp::Bucket;
use crate::{Host, HostCx, timer};
use penstock_model::Handle;
use penstock_packet::headers::{ETH_HLEN, Quoted, ipproto};
use penstock_packet::{Fragment, Icmp, IcmpBody, Ipv6, L3, L4, Packet, Skb};
use std::net::Ipv6Addr;

/// Destination unreachable.
pub const DEST_UNREACH: u8 = 1;
/// Packet too big.
pub const PKT_TOOBIG: u8 = 2;
/// Time exceeded.
pub const TIME_EXCEED: u8 = 3;
/// Parameter problem.
pub const PARAMPROB: u8 = 4;
/// Echo request.
pub const ECHO_REQUEST: u8 = 128;
/// Echo reply.
pub const ECHO_REPLY: u8 = 129;
/// Router solicitation.
pub(crate) const ROUTER_SOLICITATION: u8 = 133;
/// Router advertisement.
pub(crate) const ROUTER_ADVERTISEMENT: u8 = 134;
/// Neighbour solicitation.
pub(crate) const SOLICITATION: u8 = 135;
/// Neighbour advertisement.
pub(crate) const ADVERTISEMENT: u8 = 136;
/// Redirect.
pub(crate) const REDIRECT: u8 = 137;

/// Codes of [`DEST_UNREACH`].
pub(crate) const NOROUTE: u8 = 0;
pub(crate) const ADM_PROHIBITED: u8 = 1;
pub(crate) const NOT_NEIGHBOUR: u8 = 2;
pub(crate) const ADDR_UNREACH: u8 = 3;
/// Nobody listens at the port.
pub const PORT_UNREACH: u8 = 4;
/// Codes of [`PARAMPROB`].
pub(crate) const HDR_FIELD: u8 = 0;
pub(crate) const UNK_NEXTHDR: u8 = 1;
pub(crate) const HDR_INCOMP: u8 = 3;
/// Code of [`TIME_EXCEED`]: not all fragments came in time.
pub(crate) const EXC_FRAGTIME: u8 = 1;

/// An error quotes no more than makes 1280 bytes in all.
const ROOM: u32 = MIN_MTU - HEADER - 8;

impl Host {
    /// Sends an ICMPv6 error about `packet`, unless RFC 4443 section 2.4 forbids it: not about errors, not to groups. `info` is the MTU of "packet
    /// too big", the place of a parameter problem, else 0. All but "packet too big" are limited for each receiver.
    pub(crate) fn icmp6_send(&mut self, packet: &Skb, ty: u8, code: u8, info: u32, cx: &mut HostCx<'_>) {
        let L3::Ipv6(h) = packet.l3 else { return };
        let group = packet.eth.1[0] & 1 == 1 && packet.iif != 0 || h.dst.is_multicast();
        if group && ty != PKT_TOOBIG || h.src.is_unspecified() || h.src.is_multicast() {
            return;
        }
        let error = match packet.l4 {
            L4::Icmp(i) => i.ty & 0x80 == 0,
            // A later fragment's type is not known, nor that of one which is cut too short.
            _ => h.protocol() == ipproto::ICMPV6 && h.fragment().is_none_or(|f| f.frag_off == 0),
        };
        if error {
            return;
        }
        // What is about a packet from lo is not limited.
        if ty != PKT_TOOBIG && !self.devices.get(packet.iif).is_some_and(|d| d.loopback) {
            if !self.global_allow(cx.now) {
                self.snmp.icmp.limited_together += 1;
                return;
            }
            if !self.xrlim_allow6(h.src, packet.iif, cx) {
                self.snmp.icmp6.limited += 1;
                return;
            }
            self.icmp_together.consume();
        }
        let src = match !group && self.is_own6(h.dst) {
            true => h.dst,
            false => self.icmp6_source(h.src, packet.iif),
        };
        let body = crate::icmp::quote(packet).map_or(IcmpBody::Data, IcmpBody::About);
        let l4 = Icmp { body, ..Icmp::new(ty, code, (info >> 16) as u16, info as u16) };
        let l3 = Ipv6 { hop_limit: 0, ..Ipv6::new(src, h.src, ipproto::ICMPV6) };
        let len = ETH_HLEN + HEADER + 8 + packet.network_len().min(ROOM);
        let mut answer = cx.pool.alloc(Skb {
            created: cx.now,
            queued: cx.now,
            ..Skb::new(len, L3::Ipv6(l3), L4::Icmp(l4))
        });
        if packet.is_noted() {
            crate::hooks::attach(&mut answer, packet);
        }
        // Nobody waits for the outcome: a message without a route is gone, as in the kernel.
        let _ = self.output6(answer, l3, if needs_link(h.src) { packet.iif } else { 0 }, cx);
    }
    /// Whether an address is this machine's, or one that it shares as a router's (`ipv6_chk_addr`, `ipv6_chk_acast_addr_src`).
    fn is_own6(&self, addr: Ipv6Addr) -> bool {
        self.six.fib.find(addr).is_some_and(|r| matches!(r.kind, 2 | 4))
    }
    /// The source of an error: what the route says, else what speaks to `dst` over the device the packet came in by.
    fn icmp6_source(&mut self, dst: Ipv6Addr, iif: u32) -> Ipv6Addr {
        let link = needs_link(dst);
        let hop = self.lookup6(&Key6 { oif: if link { iif } else { 0 }, strict: link, ..Key6::to(dst) });
        if !hop.src.is_unspecified() || iif == 0 {
            return hop.src;
        }
        self.select_source6(dst, iif).unwrap_or(Ipv6Addr::UNSPECIFIED)
    }

    /// `icmpv6_xrlim_allow` with `icmp.ratelimit` 1000 ms: a wide prefix may be told more often.
    fn xrlim_allow6(&mut self, peer: Ipv6Addr, iif: u32, cx: &HostCx<'_>) -> bool {
        let link = needs_link(peer);
        let hop = self.lookup6(&Key6 { oif: if link { iif } else { 0 }, strict: link, ..Key6::to(peer) });
        match hop.kind {
            Some(Kind6::Local | Kind6::Anycast) => return true,
            Some(kind) if kind.leads() => {}
            _ => return false,
        }
        let hz = i64::from(self.hz);
        let timeout = hz >> ((128 - u32::from(hop.len)) >> 5);
        let tick = timer::ticks(self.hz, cx.now);
        self.six.buckets.entry(peer).or_insert_with(|| Bucket::full(tick, hz)).allow(tick, timeout)
    }

    /// ICMPv6 for this machine: echoes are answered, neighbours are its own to hear, the rest is the sockets'.
    pub(crate) fn icmp6_receive(&mut self, packet: Packet, i: Icmp, cx: &mut HostCx<'_>) {
        let L3::Ipv6(h) = packet.l3 else { return };
        self.snmp.icmp6.receives(i.ty);
        match i.ty {
            ECHO_REQUEST => self.icmp6_echo(packet, h, i, cx),
            SOLICITATION | ADVERTISEMENT => self.ndisc_receive(packet, h, i, cx),
            ROUTER_SOLICITATION | ROUTER_ADVERTISEMENT => self.router_receive(packet, h, i, cx),
            // Redirects, listeners' reports.
            130..=132 | REDIRECT | 143 => self.discard(packet, "icmp6", "ignored", cx),
            PKT_TOOBIG => {
                //= linux v6.12 net/ipv6/icmp.c icmpv6_notify: of a later fragment nobody knows whose it is
                let later = |q: &Quoted| q.fragment.is_some_and(|f| f.offset() > 0);
                if let Some(about) = i.about().filter(|q| !later(q))
                    && let std::net::IpAddr::V6(dst) = about.dst
                {
                    self.too_big6(dst, i.info(), cx);
                }
                self.deliver(packet, cx);
            }
            _ => self.deliver(packet, cx),
        }
    }
    /// `icmpv6_echo_reply`.
    fn icmp6_echo(&mut self, mut packet: Packet, h: Ipv6, i: Icmp, cx: &mut HostCx<'_>) {
        if self.six.echo_ignore_all {
            self.discard(packet, "icmp6", "echo-ignored", cx);
            return;
        }
        let src = if self.is_local6(h.dst) { h.dst } else { Ipv6Addr::UNSPECIFIED };
        let next_header = ipproto::ICMPV6;
        let reply = Ipv6 { src, dst: h.src, hop_limit: 0, flow_label: 0, next_header, ..h };
        if h.fragment().is_some() {
            packet.len -= Fragment::LEN;
            packet.pkt_len = packet.len;
        }
        self.forget_fragments6(&mut packet);
        let iif = packet.iif;
        packet.l3 = L3::Ipv6(reply);
        packet.l4 = L4::Icmp(Icmp { ty: ECHO_REPLY, ..i });
        (packet.priority, packet.mark, packet.classid) = (0, 0, Handle::UNSPEC);
        packet.reset_ct();
        let _ = self.output6(packet, reply, iif, cx);
    }
    /// ICMPv6 destination unreachable about a packet that was delivered: nobody listens at its port.
    pub(crate) fn port_unreachable6(&mut self, packet: &Packet, cx: &mut HostCx<'_>) {
        self.icmp6_send(packet, DEST_UNREACH, PORT_UNREACH, 0, cx);
    }
}
