//! Tunnels: a packet goes out within another, which is routed, meets the rules and waits at the device below as one that is made here; what comes
//! within a packet for this machine comes in by the tunnel's device.
//!
//! [`ip`] is IP in IP, GRE and 6in4, [`vxlan`] is VXLAN; [`ecn`] says what becomes of a type of service on the way in and out.
//!
//! Follows: linux v6.12 `net/ipv4/ip_tunnel_core.c` `iptunnel_xmit`, `net/ipv4/ip_tunnel.c` `ip_tunnel_lookup`, `ip_tunnel_bind_dev`;
//! `include/net/ip_tunnels.h` `iptunnel_xmit_stats`.
//! Differs: outer packets are IPv4; a kind makes no device by itself (`tunl0`, `gre0`, `sit0`); a tunnel stays in the network namespace that it was
//! made in; of a path that is narrower than its device, packets without DF are cut to the device's MTU.

pub(crate) mod ecn;
mod ip;
mod receive;
#[cfg(test)]
mod tests;
pub(crate) mod vxlan;

use crate::device::NetDevice;
use crate::fragment::IP_DF;
use crate::netfilter::Hook;
use crate::route::{Hop, Key, RouteKind};
use crate::{Effect, Host, HostCx, Timer};
use penstock_lang::ip::TunnelSet;
use penstock_model::{Span, Time};
use penstock_packet::{Ipv4, L3, Packet, Shim};
use penstock_sched::Xmit;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Errors of a device beside what its counters tell, as `ip -s link` shows them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Errors {
    /// `rx_errors`.
    pub rx: u64,
    /// Of these those with a wrong congestion mark (`rx_frame_errors`).
    pub rx_frame: u64,
    /// `tx_errors`.
    pub tx: u64,
    /// Of these those without a route (`tx_carrier_errors`).
    pub carrier: u64,
    /// Of these those whose way leads back into the tunnel (`collisions`).
    pub collisions: u64,
}

/// A device of the kinds `ipip`, `sit`, `gre`, `gretap`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Tunnel {
    /// What it is set to.
    pub set: TunnelSet,
    /// Index of the device its packets leave by; 0: any.
    pub link: u32,
    /// The next number of what it sends (`o_seqno`), and of what it receives (`i_seqno`).
    o_seqno: u32,
    i_seqno: u32,
    /// Errors heard of its packets that senders are to hear of, and when the last came, ticks.
    err_count: u32,
    err_time: i64,
    /// `ip link` and not `ip tunnel` has made it, which gives it no bounds of its MTU.
    pub by_link: bool,
}

impl Tunnel {
    pub(crate) fn new(set: TunnelSet, link: u32, by_link: bool) -> Tunnel {
        Tunnel { set, link, o_seqno: 0, i_seqno: 0, err_count: 0, err_time: 0, by_link }
    }
    /// The header between, of the next packet that it sends.
    fn shim(&self, kind: &str) -> Shim {
        let t = &self.set;
        match kind {
            "gre" | "gretap" => Shim::Gre { csum: t.ocsum, key: t.okey, seq: t.oseq.then_some(self.o_seqno) },
            _ => Shim::None,
        }
    }
    /// What a packet that goes in is made by.
    fn parms(&self, kind: &str) -> Parms {
        let t = &self.set;
        Parms {
            remote: t.remote,
            local: t.local,
            link: self.link,
            fwmark: t.fwmark,
            ttl: t.ttl,
            tos: t.tos,
            pmtudisc: t.pmtudisc,
            ignore_df: t.ignore_df,
            proto: t.proto,
            shim: self.shim(kind),
        }
    }
}

/// What a tunnel's packets are made by.
#[derive(Clone, Copy)]
struct Parms {
    remote: Ipv4Addr,
    local: Ipv4Addr,
    link: u32,
    fwmark: u32,
    ttl: u8,
    tos: u8,
    pmtudisc: bool,
    ignore_df: bool,
    proto: u8,
    shim: Shim,
}

/// Where packets of a tunnel are looked for: kind, this end, the other end, the key. An end may be 0.0.0.0.
type Place = (&'static str, Ipv4Addr, Ipv4Addr, Option<u32>);

/// The tunnels of a machine.
#[derive(Default)]
pub(crate) struct Tunnels {
    /// The newest first.
    by_ends: BTreeMap<Place, Vec<u32>>,
    /// WireGuard devices that are up, by port.
    pub(crate) wireguards: BTreeMap<u16, u32>,
    /// VXLAN devices by port and identifier.
    by_vni: BTreeMap<(u16, u32), Vec<u32>>,
    /// Largest packets on the ways to other ends, where routers have told of them: bytes, whether that is below what paths may have (then packets
    /// may be cut), and until when it holds.
    paths: BTreeMap<Ipv4Addr, (u32, bool, Time)>,
}

/// `ip_rt_mtu_expires`, `ip_rt_min_pmtu`.
const EXPIRES: Span = Span::from_secs(600);
const MIN_PMTU: u32 = 552;
/// `IP_TUNNEL_RECURSION_LIMIT`, `XMIT_RECURSION_LIMIT`: devices without a queue within one another.
const TUNNELS_WITHIN: u32 = 5;
const WITHIN: u32 = 8;
/// Length of an IPv4 header, bytes.
const IP_HLEN: u32 = 20;

impl Tunnels {
    /// A router could not send a packet on to `dst`: it was longer than `mtu`.
    //= linux v6.12 net/ipv4/route.c __ip_rt_update_pmtu
    fn narrow(&mut self, dst: Ipv4Addr, mtu: u32, now: Time) {
        let (mtu, locked) = if mtu < MIN_PMTU { (MIN_PMTU, true) } else { (mtu, false) };
        let known = self.paths.get(&dst).filter(|p| p.2 > now).map_or(u32::MAX, |p| p.0);
        self.paths.insert(dst, (mtu.min(known), locked, now + EXPIRES));
    }
    /// The largest packet to `dst` over a device with this MTU, and whether packets may be cut whatever they say.
    fn path(&self, dst: Ipv4Addr, mtu: u32, now: Time) -> (u32, bool) {
        match self.paths.get(&dst) {
            Some(&(known, locked, until)) if until > now && known < mtu => (known, locked),
            _ => (mtu, false),
        }
    }
    fn enter(&mut self, place: Place, ifindex: u32) {
        self.by_ends.entry(place).or_default().insert(0, ifindex);
    }
    fn leave(&mut self, place: Place, ifindex: u32) {
        if let Some(all) = self.by_ends.get_mut(&place) {
            all.retain(|&i| i != ifindex);
            if all.is_empty() {
                self.by_ends.remove(&place);
            }
        }
    }
    /// The tunnel with just these ends and this key (`ip_tunnel_find`), whatever device it is on.
    pub(crate) fn same(&self, place: Place) -> Option<u32> {
        self.by_ends.get(&place)?.first().copied()
    }
}

/// Where a tunnel's packets are looked for.
pub(crate) fn place(kind: &'static str, set: &TunnelSet) -> Place {
    (kind, set.local, set.remote, set.ikey)
}

impl Host {
    /// A device is a tunnel with these ends from now on. Gives it its MTU, unless that was said.
    pub(crate) fn bind_tunnel(&mut self, ifindex: u32, tunnel: Tunnel) {
        let kind = self.devices[ifindex].class.kind;
        self.unbind_tunnel(ifindex);
        self.tunnels.enter(place(kind, &tunnel.set), ifindex);
        let device = &mut self.devices[ifindex];
        let between = !tunnel.set.remote.is_unspecified() && !device.has_header_of_ethernet();
        device.flags = device.flags & !POINTOPOINT | if between { POINTOPOINT } else { 0 };
        device.tunnel = Some(Box::new(tunnel));
    }
    /// A tunnel has no ends any more: it goes, or gets others.
    pub(crate) fn unbind_tunnel(&mut self, ifindex: u32) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        let kind = device.class.kind;
        if let Some(tunnel) = device.tunnel.take() {
            self.tunnels.leave(place(kind, &tunnel.set), ifindex);
        }
        if let Some(vxlan) = self.devices[ifindex].vxlan.take() {
            self.leave_vni(ifindex, &vxlan);
        }
    }
    /// `ip_tunnel_bind_dev`, `ipip6_tunnel_bind_dev`: the MTU that follows from the way to the other end.
    pub(crate) fn tunnel_mtu(&mut self, kind: &'static str, tunnel: &Tunnel) -> u32 {
        let parms = tunnel.parms(kind);
        let mut device = None;
        if !parms.remote.is_unspecified() {
            let hop = self.route_of_tunnel(&parms, parms.tos & 0x1c);
            device = match hop.kind {
                Some(RouteKind::Unicast | RouteKind::Broadcast) => Some(hop.oif),
                Some(RouteKind::Local) => Some(1),
                _ => None,
            };
        }
        let device = device.or((tunnel.link != 0).then_some(tunnel.link));
        let mtu = device.and_then(|d| self.devices.get(d)).map_or(1500, |d| d.mtu.min(65_535));
        let frame = if kind == "gretap" { 14 } else { 0 };
        let least = if kind == "sit" { 1280 } else { 68 };
        mtu.saturating_sub(IP_HLEN + parms.shim.len() + frame).max(least)
    }
    /// The way to the other end.
    fn route_of_tunnel(&mut self, p: &Parms, tos: u8) -> Hop {
        self.route_by(Key { src: p.local, tos, mark: p.fwmark, oif: p.link, ..Key::to(p.remote) })
    }
    /// The way of an outer packet: by the device that the key names, on whose link the destination is taken to be where no route says otherwise.
    //= linux v6.12 net/ipv4/route.c ip_route_output_key_hash_rcu
    pub(crate) fn route_by(&mut self, key: Key) -> Hop {
        if key.oif == 0 {
            return self.route_output(key);
        }
        let hop = self.fib.search_key(&key);
        match hop.kind {
            None if self.devices.get(key.oif).is_some() && self.vrf_of(key.oif) == 0 => {
                Hop { kind: Some(RouteKind::Unicast), oif: key.oif, next: key.dst, ..hop }
            }
            _ => hop,
        }
    }

    /// A packet comes to a tunnel's device: onto its qdisc, and what that lets go into the tunnel. The answer is that of its own qdisc.
    #[cold]
    pub(crate) fn queue_on_tunnel(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        if let Some(answer) = self.queue_within(ifindex, packet, WITHIN + 1, Host::tunnel_run, cx) {
            self.answer = answer;
        }
    }
    /// A tunnel sends what its qdisc lets go, and comes again when that lets go more.
    pub(crate) fn tunnel_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            // Counted when it is on its way.
            let Some(device) = self.devices.get_mut(ifindex) else { return };
            device.counters.tx_packets -= 1;
            device.counters.tx_bytes -= u64::from(packet.len);
            packet.rare_mut().nest = Default::default();
            match device.class.kind {
                "vxlan" => self.vxlan_xmit(ifindex, packet, cx),
                "ppp" => self.ppp_start_xmit(ifindex, packet, cx),
                "wireguard" => self.wg_xmit(ifindex, packet, cx),
                _ => self.ip_tunnel_start(ifindex, packet, cx),
            }
        }
        self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert(at.max(cx.now), Timer::Cardless(ifindex));
        }
    }

    /// `iptunnel_xmit`: a packet whose outer headers stand goes its way. `carried`: the bytes that count.
    pub(crate) fn iptunnel_xmit(
        &mut self,
        ifindex: u32,
        packet: Packet,
        hop: Hop,
        carried: u32,
        cx: &mut HostCx<'_>,
    ) {
        if self.depth > TUNNELS_WITHIN {
            self.devices[ifindex].errors.tx += 1;
            self.lost_in_tunnel(ifindex, packet, "recursion", cx);
            return;
        }
        self.depth += 1;
        let went = self.local_out(packet, hop, cx);
        self.depth -= 1;
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if went {
            device.counters.tx_packets += 1;
            device.counters.tx_bytes += u64::from(carried);
        } else {
            device.counters.tx_dropped += 1;
        }
    }
    /// `ip_local_out` of an outer packet; whether it went.
    fn local_out(&mut self, mut packet: Packet, hop: Hop, cx: &mut HostCx<'_>) -> bool {
        self.ip_id = self.ip_id.wrapping_add(1).max(1);
        let (id, mut whole, mut dst) = (self.ip_id, false, Ipv4Addr::UNSPECIFIED);
        if let L3::Ipv4(h) = &mut packet.l3 {
            h.id = id;
            (whole, dst) = (h.frag_off & IP_DF != 0, h.dst);
        }
        // skb_scrub_packet within one namespace: the mark stays.
        (packet.iif, packet.rare_mut().ptype) = (0, None);
        packet.reset_ct();
        packet.set_realms(self.fib.realms(&hop, None));
        let out = self.out_device(&hop);
        let (mtu, _) = self.tunnels.path(dst, hop.longest(self.devices[out].mtu), cx.now);
        if whole && packet.network_len() > mtu {
            //= linux v6.12 net/ipv4/ip_output.c ip_fragment: this machine hears of it itself
            self.snmp.ip.frag_fails += 1;
            self.icmp_send_by(out, &packet, crate::icmp::DEST_UNREACH, 4, mtu as u16, cx);
            self.discard(packet, "ip_output", "frag-needed", cx);
            return false;
        }
        self.answer = Xmit::Success;
        //= linux v6.12 net/ipv4/ip_tunnel_core.c iptunnel_xmit
        self.snmp.ip.requests += 1;
        if !self.fib.l3mdevs().is_empty()
            && let Some(vrf) = self.vrf_before(&hop, dst)
        {
            return self.vrf_ip_out(vrf, packet, hop, cx).is_ok() && self.answer != Xmit::Drop;
        }
        if self.netfilter.busy(Hook::Output) {
            if self.send_through_rules(packet, hop, cx).is_err() {
                return false;
            }
        } else {
            self.ip_output(packet, hop, cx);
        }
        self.answer != Xmit::Drop
    }
    /// A packet is lost in a tunnel's device.
    pub(crate) fn lost_in_tunnel(
        &mut self,
        ifindex: u32,
        packet: Packet,
        reason: &'static str,
        cx: &mut HostCx<'_>,
    ) {
        if packet.is_noted() {
            self.netfilter.let_go(&packet);
        }
        cx.out.push(Effect::Dropped { packet, ifindex, place: "tunnel", reason });
    }
    /// An outer header.
    pub(crate) fn outer(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, tos: u8, ttl: u8, whole: bool) -> L3 {
        L3::Ipv4(Ipv4 { tos, ttl, frag_off: if whole { IP_DF } else { 0 }, ..Ipv4::new(src, dst, protocol) })
    }
}

/// `IFF_POINTOPOINT`.
pub(crate) const POINTOPOINT: u32 = 0x10;

impl NetDevice {
    /// Whether its frames have an Ethernet header; those of IP tunnels have none.
    pub fn has_header_of_ethernet(&self) -> bool {
        matches!(self.class.link_type, "ether" | "loopback")
    }
    /// The largest IP packet that this machine itself sends by it: a tunnel may have learned of less than its MTU.
    pub(crate) fn route_mtu(&self) -> u32 {
        self.mtu.min(self.path_mtu)
    }
    /// Bounds of its MTU; a largest one of 0 is none.
    pub(crate) fn mtu_bounds(&self) -> (u32, u32) {
        match &self.tunnel {
            Some(t) if t.by_link && self.class.kind != "sit" => {
                (if self.class.kind == "gretap" { 68 } else { 0 }, 0)
            }
            Some(t) if self.class.kind != "sit" => (68, 65_535 - IP_HLEN - t.shim(self.class.kind).len()),
            _ => (self.class.min_mtu, self.class.max_mtu),
        }
    }
}
