//! The answer of a closed port to a packet of IPv6 that a rule rejects.
//!
//! Follows: linux v6.12 `net/ipv6/netfilter/nf_reject_ipv6.c` `nf_send_reset6`.

use super::needs_link;
use crate::{Host, HostCx};
use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::{Ipv6, L3, L4, Packet, Skb, Tcp, TcpFlags};

impl Host {
    /// `nf_send_reset6`: a reset in the name of whom the packet was for.
    #[cold]
    pub(crate) fn reset6(&mut self, packet: &Packet, cx: &mut HostCx<'_>) {
        let (L3::Ipv6(h), L4::Tcp(t)) = (packet.l3, packet.l4) else { return };
        if t.flags.has(TcpFlags::RST) || h.src.is_multicast() || h.dst.is_multicast() {
            return;
        }
        let payload = packet.network_len().saturating_sub(h.header_len() + t.header_len());
        let one = |flag| u32::from(t.flags.has(flag));
        let mut tcp = Tcp { sport: t.dport, dport: t.sport, flags: TcpFlags::RST, ..Tcp::default() };
        if t.flags.has(TcpFlags::ACK) {
            tcp.seq = t.ack;
        } else {
            tcp.flags = tcp.flags.with(TcpFlags::ACK);
            tcp.ack = t.seq.wrapping_add(payload + one(TcpFlags::SYN) + one(TcpFlags::FIN));
        }
        let l3 = Ipv6 {
            src: h.dst,
            dst: h.src,
            traffic_class: 0,
            flow_label: 0,
            hop_limit: 0,
            next_header: ipproto::TCP,
            ..h
        };
        let len = ETH_HLEN + super::HEADER + 20;
        let mut answer = cx.pool.alloc(Skb {
            len,
            pkt_len: len,
            l3: L3::Ipv6(l3),
            l4: L4::Tcp(tcp),
            ..Skb::clone(packet)
        });
        (answer.priority, answer.mark, answer.iif, answer.flow) = (0, 0, 0, 0);
        answer.reset_ct();
        crate::hooks::attach(&mut answer, packet);
        if packet.is_noted() && packet.rare().bridged.is_some() {
            return self.reset_by_port(packet, answer, cx);
        }
        // Nobody waits for the outcome.
        let _ = self.output6(answer, l3, if needs_link(h.src) { packet.iif } else { 0 }, cx);
    }
}
