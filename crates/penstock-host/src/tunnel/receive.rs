//! The way out of a tunnel: which device a packet for this machine comes in by, and what it is there.
//!
//! Follows: linux v6.12 `net/ipv4/ip_tunnel.c` `ip_tunnel_lookup`, `ip_tunnel_rcv`; `net/ipv4/ipip.c` `ipip_tunnel_rcv`; `net/ipv6/sit.c`
//! `ipip6_rcv`, `sit_tunnel_rcv`; `net/ipv4/ip_gre.c` `gre_rcv`; `net/ipv4/tunnel4.c` `tunnel4_rcv`; `drivers/net/vxlan/vxlan_core.c` `vxlan_rcv`.

use super::ecn;
use crate::vlan::OTHERHOST;
use crate::{Host, HostCx, icmp};
use penstock_packet::headers::ipproto;
use penstock_packet::{Ipv4, L3, L4, Packet, Shim};
use std::net::Ipv4Addr;

impl Host {
    /// A packet for this machine that carries another. `Some`: no tunnel takes it, and it goes on to the sockets.
    #[cold]
    pub(crate) fn tunnel_receive(&mut self, packet: Packet, cx: &mut HostCx<'_>) -> Option<Packet> {
        if let Some(Shim::WireGuard(_)) = packet.rare().carried.as_deref().map(|c| c.shim) {
            return self.wireguard_receive(packet, cx);
        }
        let (L3::Ipv4(h), Some(carried)) = (packet.l3, packet.rare().carried.as_deref()) else {
            return Some(packet);
        };
        let iif = packet.iif;
        let ethernet = carried.eth.is_some();
        let to = match (h.protocol, carried.shim, &carried.l3) {
            (ipproto::UDP, Shim::Vxlan { vni }, _) => return self.vxlan_receive(packet, h, vni, cx),
            (ipproto::IPIP, Shim::None, L3::Ipv4(_)) => {
                let of = |host: &Host, kind| host.tunnel_for(kind, h, iif, None, ipproto::IPIP);
                of(self, "ipip").or_else(|| of(self, "sit"))
            }
            (ipproto::IPV6, Shim::None, L3::Ipv6(_)) => self.tunnel_for("sit", h, iif, None, ipproto::IPV6),
            (ipproto::GRE, Shim::Gre { key, .. }, _) => {
                self.tunnel_for(if ethernet { "gretap" } else { "gre" }, h, iif, key, 0)
            }
            _ => None,
        };
        match to {
            Some(to) => self.out_of_tunnel(to, packet, h, cx),
            None => {
                // Port unreachable where the kernel listens for such packets, protocol unreachable where it does not.
                let known = self.tunnels.by_ends.keys().any(|(kind, ..)| match h.protocol {
                    ipproto::IPIP => matches!(*kind, "ipip" | "sit"),
                    ipproto::IPV6 => *kind == "sit",
                    _ => matches!(*kind, "gre" | "gretap"),
                });
                self.icmp_send(&packet, icmp::DEST_UNREACH, if known { 3 } else { 2 }, 0, cx);
                self.discard(packet, "tunnel", "no-tunnel", cx);
            }
        }
        None
    }

    /// `ip_tunnel_lookup`: the tunnel of both ends, of the other end, of this end, of any; each before others where it is on the device that the
    /// packet came in by. `proto`: what it has to carry; 0 whatever it does.
    fn tunnel_for(&self, kind: &'static str, h: Ipv4, iif: u32, key: Option<u32>, proto: u8) -> Option<u32> {
        let any = Ipv4Addr::UNSPECIFIED;
        let mut candidate = None;
        for (local, remote) in [(h.dst, h.src), (any, h.src), (h.dst, any), (any, any)] {
            let all = self.tunnels.by_ends.get(&(kind, local, remote, key));
            for &ifindex in all.into_iter().flatten() {
                let Some(device) = self.devices.get(ifindex).filter(|d| d.up) else { continue };
                let Some(tunnel) = device.tunnel.as_deref() else { continue };
                if tunnel.link == iif {
                    return self.carries(ifindex, proto).then_some(ifindex);
                }
                // sit takes no packet of another device than its own.
                if kind != "sit" || tunnel.link == 0 {
                    candidate.get_or_insert(ifindex);
                }
            }
        }
        candidate.filter(|&ifindex| self.carries(ifindex, proto))
    }
    fn carries(&self, ifindex: u32, proto: u8) -> bool {
        let tunnel = self.devices.get(ifindex).and_then(|d| d.tunnel.as_deref());
        proto == 0 || tunnel.is_some_and(|t| t.set.proto == 0 || t.set.proto == proto)
    }

    /// `ip_tunnel_rcv`.
    fn out_of_tunnel(&mut self, ifindex: u32, packet: Packet, h: Ipv4, cx: &mut HostCx<'_>) {
        let (csum, seq) = match packet.rare().carried.as_deref().map(|c| c.shim) {
            Some(Shim::Gre { csum, seq, .. }) => (csum, seq),
            _ => (false, None),
        };
        let device = &mut self.devices[ifindex];
        let Some(tunnel) = device.tunnel.as_deref_mut() else {
            self.discard(packet, "tunnel", "no-tunnel", cx);
            return;
        };
        if tunnel.set.icsum != csum {
            device.errors.rx += 1;
            self.discard(packet, "tunnel", "no-checksum", cx);
            return;
        }
        if tunnel.set.iseq {
            let late = |seq: u32| tunnel.i_seqno != 0 && (seq.wrapping_sub(tunnel.i_seqno) as i32) < 0;
            match seq {
                Some(seq) if !late(seq) => tunnel.i_seqno = seq.wrapping_add(1),
                _ => {
                    device.errors.rx += 1;
                    self.discard(packet, "tunnel", "out-of-order", cx);
                    return;
                }
            }
        }
        let ethernet = device.class.kind == "gretap";
        self.unpack(ifindex, packet, h.tos, if ethernet { 14 } else { 0 }, cx);
    }

    /// What a packet carries comes in by a tunnel's device, its congestion mark joined with the outer one. `more`: bytes of an Ethernet header
    /// that count.
    pub(super) fn unpack(
        &mut self,
        ifindex: u32,
        mut packet: Packet,
        outer: u8,
        more: u32,
        cx: &mut HostCx<'_>,
    ) {
        let Some(carried) = packet.rare().carried.as_deref() else {
            self.discard(packet, "tunnel", "no-tunnel", cx);
            return;
        };
        let ethernet = carried.eth.is_some();
        let mut inner = &carried.l3;
        let mut tags = &carried.tags;
        while let Some(tagged) = tags {
            (inner, tags) = (&tagged.l3, &tagged.within);
        }
        let is_ip = matches!(inner, L3::Ipv4(_) | L3::Ipv6(_));
        let before = ecn::dsfield(inner);
        let mark = match is_ip {
            true => ecn::decapsulate(outer, before),
            false => Some(0),
        };
        let Some(mark) = mark else {
            let errors = &mut self.devices[ifindex].errors;
            (errors.rx, errors.rx_frame) = (errors.rx + 1, errors.rx_frame + 1);
            self.discard(packet, "tunnel", "ce-on-not-ect", cx);
            return;
        };
        if let Some(memory) = packet.decapsulate() {
            cx.pool.free_carried(memory);
        }
        if is_ip && mark != before & 3 {
            ecn::set(packet.innermost_l3_mut(), mark);
        }
        packet.reset_ct();
        packet.iif = ifindex;
        let device = &mut self.devices[ifindex];
        packet.rare_mut().ptype = None;
        if ethernet && packet.eth.1 != device.mac && packet.eth.1[0] & 1 == 0 && !device.bridged {
            packet.rare_mut().ptype = Some(OTHERHOST);
        }
        device.counters.rx_packets += 1;
        device.counters.rx_bytes += u64::from(packet.network_len() + more);
        self.netif_receive(ifindex, packet, cx);
    }

    /// `vxlan_rcv`.
    fn vxlan_receive(&mut self, packet: Packet, h: Ipv4, vni: u32, cx: &mut HostCx<'_>) -> Option<Packet> {
        let L4::Udp(u) = packet.l4 else { return Some(packet) };
        if !self.has_vxlan_port(u.dport) {
            return Some(packet);
        }
        //= linux v6.12 net/ipv4/udp.c udp_queue_rcv_one_skb: whatever becomes of it
        self.snmp.udp[0].received += 1;
        let Some(to) = self.vxlan_of(u.dport, vni) else {
            self.discard(packet, "tunnel", "no-vni", cx);
            return None;
        };
        let from = packet.rare().carried.as_deref().and_then(|c| c.eth).map(|eth| eth.0);
        if let Some(why) = from.and_then(|mac| self.vxlan_snoop(to, mac, h.src, cx.now)) {
            self.discard(packet, "tunnel", why, cx);
            return None;
        }
        self.unpack(to, packet, h.tos, 0, cx);
        None
    }
}
