//! IP in IP, 6in4, GRE: the way into such a tunnel.
//!
//! Follows: linux v6.12 `net/ipv4/ip_tunnel.c` `ip_tunnel_xmit`, `tnl_update_pmtu`; `net/ipv4/ipip.c` `ipip_tunnel_xmit`; `net/ipv6/sit.c`
//! `ipip6_tunnel_xmit`, `sit_tunnel_xmit`; `net/ipv4/ip_gre.c` `ipgre_xmit`, `gre_tap_xmit`.

use super::{IP_HLEN, Parms, ecn};
use crate::fragment::IP_DF;
use crate::route::{Hop, RouteKind};
use crate::{Host, HostCx, icmp, six, timer};
use penstock_packet::headers::ipproto;
use penstock_packet::{L3, L4, Packet, Shim, Skb};
use std::net::Ipv4Addr;

/// `IPTUNNEL_ERR_TIMEO`, seconds.
const ERR_TIMEO_S: i64 = 30;

/// Why a packet does not go in.
enum Lost {
    /// Its kind is not carried.
    Protocol,
    /// No route to the other end.
    NoRoute,
    /// The way leads into the tunnel itself.
    Loop,
    /// It is too long for the way, and its sender knows.
    TooBig,
    /// No other end is known.
    NoRemote,
}

impl Lost {
    fn word(&self) -> &'static str {
        match self {
            Lost::Protocol => "not-carried",
            Lost::NoRoute => "no-route",
            Lost::Loop => "loop",
            Lost::TooBig => "frag-needed",
            Lost::NoRemote => "no-remote",
        }
    }
}

impl Host {
    /// A packet that a tunnel's qdisc has let go.
    pub(super) fn ip_tunnel_start(&mut self, ifindex: u32, mut packet: Packet, cx: &mut HostCx<'_>) {
        let kind = self.devices[ifindex].class.kind;
        let Some(parms) = self.devices[ifindex].tunnel.as_ref().map(|t| t.parms(kind)) else {
            self.lost_in_tunnel(ifindex, packet, "no-remote", cx);
            return;
        };
        let found = match kind == "gretap" {
            true => {
                if let Some((ethertype, tci)) = packet.rare_mut().vlan.take() {
                    packet.insert_vlan(ethertype, tci);
                }
                self.way_of_tunnel(ifindex, &parms, ipproto::GRE, &packet, cx)
            }
            false => match (kind, &packet.l3, parms.proto) {
                ("gre", ..) => self.way_of_tunnel(ifindex, &parms, ipproto::GRE, &packet, cx),
                ("ipip" | "sit", L3::Ipv4(_), 0 | ipproto::IPIP) => {
                    self.way_of_tunnel(ifindex, &parms, ipproto::IPIP, &packet, cx)
                }
                ("sit", L3::Ipv6(_), 0 | ipproto::IPV6) => {
                    self.way_of_tunnel(ifindex, &parms, ipproto::IPV6, &packet, cx)
                }
                _ => Err(Lost::Protocol),
            },
        };
        // Numbered whether it goes or not (__gre_xmit).
        if let (Shim::Gre { seq: Some(_), .. }, Some(tunnel)) =
            (parms.shim, self.devices[ifindex].tunnel.as_deref_mut())
        {
            tunnel.o_seqno = tunnel.o_seqno.wrapping_add(1);
        }
        match found {
            Ok((outer, hop)) => {
                let carried = packet.network_len() - 4 * packet.tags_in_frame() as u32;
                let memory = cx.pool.carried();
                packet.encapsulate(memory, parms.shim, kind == "gretap", outer, L4::None);
                self.iptunnel_xmit(ifindex, packet, hop, carried, cx);
            }
            Err(why) => {
                let errors = &mut self.devices[ifindex].errors;
                errors.tx += 1;
                match why {
                    Lost::NoRoute => errors.carrier += 1,
                    Lost::Loop => errors.collisions += 1,
                    _ => {}
                }
                if kind == "sit" && matches!(why, Lost::NoRoute) {
                    self.link_failure(&packet, cx);
                }
                self.lost_in_tunnel(ifindex, packet, why.word(), cx);
            }
        }
    }

    /// `ip_tunnel_xmit`, `ipip6_tunnel_xmit`: the outer header of a packet, and its way.
    fn way_of_tunnel(
        &mut self,
        ifindex: u32,
        set: &Parms,
        protocol: u8,
        packet: &Skb,
        cx: &mut HostCx<'_>,
    ) -> Result<(L3, Hop), Lost> {
        if set.remote.is_unspecified() {
            return Err(Lost::NoRemote);
        }
        let six_in_four = protocol == ipproto::IPV6;
        let inner = packet.innermost().0;
        let inherits = if six_in_four { set.tos == 1 } else { set.tos & 1 == 1 };
        let tos = match inner {
            L3::Ipv4(_) | L3::Ipv6(_) if inherits => ecn::dsfield(inner),
            _ if inherits => set.tos & !1,
            _ => set.tos,
        };
        let hop = self.route_of_tunnel(set, tos & 0x1c);
        match hop.kind {
            Some(RouteKind::Unicast | RouteKind::Local) => {}
            Some(RouteKind::Broadcast) if !six_in_four => {}
            _ => return Err(Lost::NoRoute),
        }
        let oif = if hop.kind == Some(RouteKind::Local) { 1 } else { hop.oif };
        if oif == ifindex {
            return Err(Lost::Loop);
        }
        let mut whole = set.pmtudisc;
        if let (L3::Ipv4(h), false) = (inner, set.ignore_df) {
            whole |= h.frag_off & IP_DF != 0;
        }
        let (mtu, locked) = self.tunnels.path(set.remote, hop.longest(self.devices[oif].mtu), cx.now);
        let kind = self.devices[ifindex].class.kind;
        let frame = if kind == "gretap" { 14 } else { 0 };
        let room = mtu.saturating_sub(IP_HLEN + set.shim.len() + frame);
        if six_in_four {
            if whole && room < 68 {
                return Err(Lost::Loop);
            }
            if whole {
                if room < six::MIN_MTU {
                    whole = false;
                }
                if packet.network_len() > room.max(six::MIN_MTU) {
                    self.icmp6_send(packet, six::icmp::PKT_TOOBIG, 0, room.max(six::MIN_MTU), cx);
                    return Err(Lost::TooBig);
                }
            }
        } else {
            self.fits_way(ifindex, packet, inner, if whole { Some(room) } else { None }, cx)?;
        }
        if self.recent_error(ifindex, cx) {
            self.link_failure(packet, cx);
        }
        let ttl = match (set.ttl, inner) {
            (0, L3::Ipv4(h)) => h.ttl,
            (0, L3::Ipv6(h)) => h.hop_limit,
            (0, _) => self.sysctl.default_ttl,
            (ttl, _) => ttl,
        };
        let tos = ecn::encapsulate(tos, ecn::dsfield(inner));
        let src = if set.local.is_unspecified() { self.source_for(&hop, set.remote) } else { set.local };
        Ok((Host::outer(src, set.remote, protocol, tos, ttl, whole && !locked), hop))
    }

    /// `tnl_update_pmtu`: whether a packet fits its way, of which `room` is left for it (`None`: outer packets may be cut). Its sender hears where
    /// it does not, and this machine itself sends shorter ones from then on.
    fn fits_way(
        &mut self,
        ifindex: u32,
        packet: &Skb,
        inner: &L3,
        room: Option<u32>,
        cx: &mut HostCx<'_>,
    ) -> Result<(), Lost> {
        let device = &mut self.devices[ifindex];
        let mtu = match room {
            Some(room) => {
                device.path_mtu = if room < device.mtu { room.max(super::MIN_PMTU) } else { u32::MAX };
                room
            }
            None => device.route_mtu(),
        };
        let bridged = device.bridged;
        if let (L3::Ipv4(h), false) = (inner, bridged) {
            self.room_in_tunnel(h.dst, mtu, cx.now);
        }
        let too_big = packet.network_len() > mtu;
        match inner {
            L3::Ipv4(h) if too_big && h.frag_off & IP_DF != 0 => {
                self.icmp_send(packet, icmp::DEST_UNREACH, 4, mtu as u16, cx);
                Err(Lost::TooBig)
            }
            L3::Ipv6(_) if too_big && mtu >= six::MIN_MTU => {
                self.icmp6_send(packet, six::icmp::PKT_TOOBIG, 0, mtu, cx);
                Err(Lost::TooBig)
            }
            _ => Ok(()),
        }
    }
    /// Whether a tunnel has heard of an error that the next sender is to hear of.
    fn recent_error(&mut self, ifindex: u32, cx: &HostCx<'_>) -> bool {
        let (tick, hz) = (timer::jiffies(self.kernel, cx.now), i64::from(self.kernel.hz()));
        let Some(tunnel) = self.devices[ifindex].tunnel.as_deref_mut().filter(|t| t.err_count > 0) else {
            return false;
        };
        let recent = tick < tunnel.err_time + ERR_TIMEO_S * hz;
        tunnel.err_count = if recent { tunnel.err_count - 1 } else { 0 };
        recent
    }
    /// `dst_link_failure`: the sender of a packet hears that the host is unreachable.
    fn link_failure(&mut self, packet: &Skb, cx: &mut HostCx<'_>) {
        self.icmp_send(packet, icmp::DEST_UNREACH, 1, 0, cx);
        self.icmp6_send(packet, six::icmp::DEST_UNREACH, six::icmp::ADDR_UNREACH, 0, cx);
    }

    /// An ICMP error speaks of a packet to `dst` that a tunnel of this machine has sent (`ipip_err`, `gre_err`, `ipip6_err`, `vxlan_err_lookup`).
    pub(crate) fn tunnel_error(&mut self, i: &penstock_packet::Icmp, cx: &HostCx<'_>) {
        let Some(about) = i.about() else { return };
        let (std::net::IpAddr::V4(src), std::net::IpAddr::V4(dst)) = (about.src, about.dst) else { return };
        let kinds: &[&'static str] = match about.protocol {
            ipproto::IPIP => &["ipip", "sit"],
            ipproto::IPV6 => &["sit"],
            ipproto::GRE => &["gre", "gretap"],
            ipproto::UDP if i.ty == icmp::DEST_UNREACH && i.code == 4 && self.has_vxlan_port(about.dport) => {
                self.tunnels.narrow(dst, u32::from(i.seq), cx.now);
                return;
            }
            _ => return,
        };
        let Some(ifindex) = kinds.iter().find_map(|kind| self.tunnel_between(kind, src, dst)) else { return };
        match (i.ty, i.code) {
            (icmp::DEST_UNREACH, 4) => {
                self.tunnels.narrow(dst, u32::from(i.seq), cx.now);
                return;
            }
            // A source route failed: of no packet of ours. Nor have packets of GRE a port.
            (icmp::DEST_UNREACH, 5) => return,
            (icmp::DEST_UNREACH, 3) if about.protocol == ipproto::GRE => return,
            (icmp::DEST_UNREACH, _) | (icmp::TIME_EXCEEDED, 0) => {}
            _ => return,
        }
        let (tick, hz) = (timer::jiffies(self.kernel, cx.now), i64::from(self.kernel.hz()));
        let Some(tunnel) = self.devices[ifindex].tunnel.as_deref_mut() else { return };
        if tunnel.set.remote.is_unspecified() || tunnel.set.ttl == 0 && i.ty == icmp::TIME_EXCEEDED {
            return;
        }
        let recent = tick < tunnel.err_time + ERR_TIMEO_S * hz;
        tunnel.err_count = if recent { tunnel.err_count + 1 } else { 1 };
        tunnel.err_time = tick;
    }
    /// A tunnel of a kind between two ends, whatever its key.
    fn tunnel_between(&self, kind: &'static str, local: Ipv4Addr, remote: Ipv4Addr) -> Option<u32> {
        let ends = [local, Ipv4Addr::UNSPECIFIED];
        ends.into_iter().find_map(|local| {
            let range = (kind, local, remote, None)..=(kind, local, remote, Some(u32::MAX));
            let of = self.tunnels.by_ends.range(range).flat_map(|(_, all)| all);
            of.copied().find(|&i| self.devices.get(i).is_some_and(|d| d.up))
        })
    }
}
