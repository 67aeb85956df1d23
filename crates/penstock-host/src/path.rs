//! A packet's way through the machine: received, forwarded or delivered; sent from here; queued on a device.
//!
//! Follows: linux v6.12 `net/ipv4/ip_input.c`, `ip_forward.c`, `ip_output.c`, `net/core/dev.c`
//! `__dev_queue_xmit`; the order of hooks is `netfilter`'s.
//! Differs: no IP options, no source routes.

mod output;
mod source;

use self::source::Refused;
use crate::fragment::{IP_DF, IP_MF, IP_OFFSET};
use crate::neigh::Nud;
use crate::netfilter::{Fate, Hook};
use crate::route::{Hop, Key, Ports, RouteKind};
use crate::{Effect, Host, HostCx, Timer, icmp, snmp};
use penstock_model::{Handle, Kernel};
use penstock_packet::headers::ipproto;
use penstock_packet::{ETH_P_PPP_DISC, ETH_P_PPP_SES, Ipv4, L3, L4, Packet, Sender, Skb, TcpFlags};
use penstock_sched::Xmit;
use std::net::Ipv4Addr;

/// Packets to own addresses go round through `lo`; errors answer errors nowhere, so that few rounds are ever needed.
pub(crate) const MAX_DEPTH: u32 = 16;

/// `skb->priority` of a type of service, `rt_tos2priority`: the ToS bits choose among best effort 0, filler 1
/// (2.6.35 only, for minimal cost alone), bulk 2, interactive bulk 4 and interactive 6.
#[inline]
pub const fn rt_tos2priority(kernel: Kernel, tos: u8) -> u32 {
    // ip_tos2prio, whose index is the four ToS bits; the lowest is ECN's today.
    const PRIO: [u8; 16] = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];
    let bits = (tos & 0x1e) >> 1;
    match (kernel, bits) {
        (Kernel::V2_6_35, 1) => 1,
        _ => PRIO[bits as usize] as u32,
    }
}

/// Whether a packet needs no route for the socket it is for, which has one (`tcp_v4_early_demux`).
#[inline]
pub(crate) fn finds_its_socket(packet: &Skb) -> bool {
    matches!(&packet.l4, L4::Tcp(t) if !t.flags.has(TcpFlags::SYN))
}

/// What became of a packet that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmitted {
    /// What the queueing discipline answered (of a packet cut into fragments: to the first of them). [`Xmit::Success`] where none was asked:
    /// the packet waits for ARP.
    pub answer: Xmit,
    /// A queue has taken over the pacing of the packet's socket (`SK_PACING_FQ`).
    pub paced: bool,
}

impl Host {
    /// A frame for another station came in by a device: whether that one hears it all the same, as a port of a bridge does. An end of a veth pair hears every
    /// frame.
    #[cold]
    fn overhears(&self, ifindex: u32) -> bool {
        self.hears_all(ifindex) || self.devices[ifindex].is_veth()
    }
    /// Such a frame is told so, where no bridge looks for whom it is (`eth_type_trans`).
    #[cold]
    fn tell_other_host(&self, ifindex: u32, frame: &mut Packet) {
        if self.bridge_of(ifindex).is_none() {
            frame.rare_mut().ptype = Some(crate::vlan::OTHERHOST);
        }
    }
    /// A frame came in by device `ifindex`. One for another station is lost here where the device is no port of a bridge, as one for a device
    /// that is down.
    pub fn receive(&mut self, ifindex: u32, mut frame: Packet, cx: &mut HostCx<'_>) {
        let Some(device) = self.devices.get_mut(ifindex) else {
            self.discard(frame, "netif", "no-device", cx);
            return;
        };
        let to = frame.eth.1;
        let other = to != device.mac && to[0] & 1 == 0;
        if other && !self.overhears(ifindex) {
            frame.iif = ifindex;
            self.discard(frame, "netif", "other-host", cx);
            return;
        }
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if !device.up {
            self.discard(frame, "netif", "device-down", cx);
            return;
        }
        device.counters.rx_packets += 1;
        device.counters.rx_bytes += device.counted(&frame);
        frame.iif = ifindex;
        frame.sender = Sender::default();
        if !device.loopback {
            frame.mark = 0;
            frame.priority = 0;
            frame.classid = Handle::UNSPEC;
            frame.travel();
        }
        if other {
            self.tell_other_host(ifindex, &mut frame);
        }
        self.netif_receive_core(ifindex, frame, cx);
    }

    /// What a device has received, or what an action or an ifb puts into its receiving side.
    pub(crate) fn netif_receive(&mut self, ifindex: u32, frame: Packet, cx: &mut HostCx<'_>) {
        self.netif_receive_core(ifindex, frame, cx);
    }
    /// `__netif_receive_skb_core`.
    #[inline(always)] // One chain with `receive`.
    fn netif_receive_core(&mut self, ifindex: u32, mut frame: Packet, cx: &mut HostCx<'_>) {
        if frame.is_noted() && frame.rare().vlan.is_none() {
            // A tag in the frame comes beside it (skb_vlan_untag).
            untag(&mut frame);
        }
        let device = &mut self.devices[ifindex];
        if device.tree.ingress().is_some() || frame.tc.skip_classify {
            let Some(passed) = self.pass_ingress(ifindex, frame, cx) else { return };
            frame = passed;
        }
        if self.netfilter.at_devices() {
            let device = &self.devices[ifindex];
            if self.netfilter.run_device(true, &device.name, &mut frame, cx.now) != Fate::Accept {
                self.discard(frame, "ingress", "dropped", cx);
                return;
            }
        }
        if self.ends_at_ingress {
            cx.out.push(Effect::Deliver(frame));
            return;
        }
        if frame.is_noted() {
            let Some(ours) = self.behind_ingress(ifindex, frame, cx) else { return };
            frame = ours;
        } else if self.devices[ifindex].bridged {
            let Some(ours) = self.master_receive(ifindex, frame, cx) else { return };
            frame = ours;
        }
        match frame.l3 {
            L3::Ipv4(h) if frame.tc.bad_checksum => {
                let ip = &mut self.snmp.ip;
                ip.receives(&frame, h.tos);
                ip.header_errors += 1;
                ip.checksum_errors += 1;
                self.discard(frame, "ip_rcv", "bad-checksum", cx);
            }
            L3::Ipv4(h) => {
                self.snmp.ip.receives(&frame, h.tos);
                self.ip_rcv(frame, h, cx);
            }
            L3::Ipv6(h) => self.ip6_rcv(ifindex, frame, h, cx),
            L3::Arp(_) => self.arp_receive(ifindex, frame, cx),
            L3::Other(ETH_P_PPP_DISC | ETH_P_PPP_SES) if frame.is_noted() => {
                self.pppoe_rcv(ifindex, frame, cx)
            }
            _ => {
                self.devices[ifindex].counters.rx_dropped += 1;
                self.discard(frame, "netif", "unhandled-protocol", cx);
            }
        }
    }

    /// `ip_rcv`, `ip_rcv_finish`.
    #[inline]
    fn ip_rcv(&mut self, mut packet: Packet, mut h: Ipv4, cx: &mut HostCx<'_>) {
        if self.netfilter.busy(Hook::Prerouting) {
            let Some(passed) = self.prerouting(packet, h, cx) else { return };
            packet = passed;
            if let L3::Ipv4(now) = packet.l3 {
                h = now;
            }
        }
        let port = packet.iif;
        if !self.fib.l3mdevs().is_empty() && self.vrf_of(port) != 0 {
            let Some(passed) = self.vrf_rcv(self.vrf_of(port), packet, cx) else { return };
            packet = passed;
            if let L3::Ipv4(now) = packet.l3 {
                h = now;
            }
        }
        if (h.dst.is_loopback() || h.src.is_loopback())
            && let Some(why) = self.martian_loopback(packet.iif, h)
        {
            return self.discard(packet, "ip_rcv", why, cx);
        }
        if h.dst.is_multicast() {
            return self.ip_mc_rcv(port, packet, h, cx);
        }
        let mut hop = self.fib.lookup(&Key {
            dst: h.dst,
            src: h.src,
            tos: h.tos & 0x1c,
            mark: packet.mark,
            iif: port,
            oif: 0,
            l3mdev: 0,
            ports: Ports::of(&packet),
        });
        if h.dst == Ipv4Addr::BROADCAST {
            hop.kind = Some(RouteKind::Broadcast);
        }
        if self.sysctl.filters_sources
            && let Err(why) = self.comes_the_way_back(port, &packet, h, hop)
        {
            return self.not_from_there(packet, why, cx);
        }
        match hop.kind {
            Some(RouteKind::Unicast) => self.ip_forward(port, packet, hop, cx),
            Some(RouteKind::Local | RouteKind::Broadcast)
                if !finds_its_socket(&packet)
                    && !self.fib.knows_source(h.dst, h.src)
                    && self.claims_to_be_us(packet.iif, h) =>
            {
                self.not_from_there(packet, Refused::Martian, cx);
            }
            Some(RouteKind::Local) => self.ip_local_deliver(packet, h, cx),
            // One for another of our networks too: bc_forwarding is 0.
            Some(RouteKind::Broadcast) => {
                snmp::count(&mut self.snmp.ip.in_broadcasts, &packet);
                self.ip_local_deliver(packet, h, cx);
            }
            Some(RouteKind::Blackhole) => self.discard(packet, "ip_forward", "blackhole", cx),
            Some(RouteKind::Unreachable) => self.ip_error(port, packet, 1, "host-unreachable", cx),
            Some(RouteKind::Prohibit) => self.ip_error(port, packet, 13, "prohibited", cx),
            Some(RouteKind::Throw) | None => self.ip_error(port, packet, 0, "net-unreachable", cx),
        }
    }

    /// A packet for a group is this machine's where the device is in it; it is routed nowhere.
    //= linux v6.12 net/ipv4/route.c ip_route_input_rcu, ip_route_input_mc, ip_mc_validate_source
    #[cold]
    fn ip_mc_rcv(&mut self, port: u32, packet: Packet, h: Ipv4, cx: &mut HostCx<'_>) {
        if !self.devices[port].groups.is_in4(h.dst) {
            self.discard(packet, "ip_rcv", "no-group", cx);
            return;
        }
        if h.src.is_multicast() || self.is_local_at(port, h.src) && !self.devices[port].loopback {
            self.discard(packet, "ip_rcv", "martian-source", cx);
            return;
        }
        let hop = Hop { kind: Some(RouteKind::Local), ..self.fib.search(h.dst) };
        if self.sysctl.filters_sources
            && let Err(why) = self.comes_the_way_back(port, &packet, h, hop)
        {
            return self.not_from_there(packet, why, cx);
        }
        snmp::count(&mut self.snmp.ip.in_groups, &packet);
        self.ip_local_deliver(packet, h, cx);
    }

    /// `ip_error`: only routers tell.
    #[cold]
    fn ip_error(&mut self, port: u32, packet: Packet, code: u8, reason: &'static str, cx: &mut HostCx<'_>) {
        let L3::Ipv4(h) = packet.l3 else { return self.discard(packet, "ip_forward", reason, cx) };
        let forwards = self.forwards_from(port);
        if !forwards {
            self.snmp.ip.address_errors += 1;
        } else if code == 0 {
            self.snmp.ip.in_no_routes += 1;
        }
        if forwards && self.may_tell_of_routes(packet.iif, h.src, cx.now) {
            self.icmp_send(&packet, icmp::DEST_UNREACH, code, 0, cx);
        }
        self.discard(packet, "ip_forward", reason, cx);
    }

    /// `IN_DEV_FORWARD` of the device a packet came in by.
    #[inline]
    pub(crate) fn forwards_from(&self, iif: u32) -> bool {
        self.devices.get(iif).and_then(|d| d.forwarding).unwrap_or(self.sysctl.ip_forward)
    }

    /// `ip_forward` of a packet that came in by `port`, which may be one of a VRF.
    #[inline]
    fn ip_forward(&mut self, port: u32, mut packet: Packet, hop: Hop, cx: &mut HostCx<'_>) {
        // As the rules have left it.
        let L3::Ipv4(h) = packet.l3 else {
            self.discard(packet, "ip_forward", "not-ip", cx);
            return;
        };
        if !self.forwards_from(port) || packet.eth.1[0] & 1 == 1 {
            self.snmp.ip.address_errors += u64::from(!self.forwards_from(port));
            self.discard(packet, "ip_forward", "not-forwarding", cx);
            return;
        }
        if !self.fib.knows_source(h.dst, h.src) && self.martian_source(port, h) {
            self.discard(packet, "ip_forward", "martian-source", cx);
            return;
        }
        if h.ttl <= 1 {
            self.snmp.ip.header_errors += 1;
            self.icmp_send(&packet, icmp::TIME_EXCEEDED, 0, 0, cx);
            self.discard(packet, "ip_forward", "ttl-exceeded", cx);
            return;
        }
        self.snmp.ip.forwarded += 1;
        let mtu = hop.longest(self.devices[hop.oif].mtu);
        if packet.longest_network_len() > mtu && h.frag_off & IP_DF != 0 {
            self.snmp.ip.frag_fails += 1;
            self.icmp_send(&packet, icmp::DEST_UNREACH, 4, mtu.min(65_535) as u16, cx);
            self.discard(packet, "ip_forward", "frag-needed", cx);
            return;
        }
        if hop.oif == port {
            self.redirect(port, &packet, h, hop, cx);
        }
        let realms = match self.fib.has_realms() {
            true => {
                let l3mdev = self.vrf_of(port);
                let back = Key { src: h.dst, tos: h.tos & 0x1c, mark: packet.mark, l3mdev, ..Key::to(h.src) };
                self.fib.realms(&hop, Some(&back))
            }
            false => 0,
        };
        packet.set_realms(realms);
        if let L3::Ipv4(h) = &mut packet.l3 {
            h.ttl -= 1;
        }
        packet.priority = rt_tos2priority(self.kernel, h.tos);
        if self.netfilter.busy(Hook::Forward) && !self.hook(Hook::Forward, &mut packet, hop.oif, cx) {
            self.discard(packet, Hook::Forward.chain(), "dropped", cx);
            return;
        }
        self.ip_output(packet, hop, cx);
    }

    /// `ip_local_deliver`, `ip_local_deliver_finish`.
    fn ip_local_deliver(&mut self, packet: Packet, h: Ipv4, cx: &mut HostCx<'_>) {
        let mut packet = packet;
        if packet.tc.damaged {
            self.snmp.damaged(&packet, false);
            self.discard(packet, "ip_local_deliver", "bad-checksum", cx);
            return;
        }
        if h.frag_off & (IP_MF | IP_OFFSET) != 0 {
            match self.defragment(packet, h, cx) {
                Some(whole) => packet = whole,
                None => return,
            }
        }
        if self.netfilter.busy(Hook::Input) && !self.hook(Hook::Input, &mut packet, 0, cx) {
            self.discard(packet, Hook::Input.chain(), "dropped", cx);
            return;
        }
        if packet.is_noted() && packet.rare().carried.is_some() {
            let Some(others) = self.tunnel_receive(packet, cx) else {
                self.snmp.ip.delivers += 1;
                return;
            };
            packet = others;
        }
        match packet.l4 {
            L4::None => self.snmp.ip.unknown_protocols += 1,
            _ => self.snmp.ip.delivers += 1,
        }
        match packet.l4 {
            L4::Icmp(_) => self.icmp_receive(packet, cx),
            // tcp_v4_rcv: one in a frame for all is nobody's.
            L4::Tcp(_) if packet.eth.1[0] & 1 == 1 => {
                self.discard(packet, "ip_local_deliver", "not-one-host", cx);
            }
            L4::Udp(u) if self.is_wireguards(u.dport) => {
                self.discard(packet, "wireguard", "no-message", cx);
            }
            L4::Tcp(_) | L4::Udp(_) => self.deliver(packet, cx),
            L4::None => {
                self.icmp_send(&packet, icmp::DEST_UNREACH, 2, 0, cx);
                self.discard(packet, "ip_local_deliver", "no-protocol", cx);
            }
        }
    }

    #[inline]
    pub(crate) fn deliver(&mut self, mut packet: Packet, cx: &mut HostCx<'_>) {
        packet.reset_ct();
        cx.out.push(Effect::Deliver(packet));
    }

    #[cold]
    pub(crate) fn report_drops(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        for (packet, reason) in self.drops.drain() {
            if packet.is_noted() {
                self.netfilter.let_go(&packet);
            }
            cx.out.push(Effect::gone(packet, ifindex, "qdisc", reason));
        }
    }

    /// A qdisc has made copies, or taken packets off their sockets.
    #[cold]
    pub(crate) fn report_copies(&mut self, cx: &mut HostCx<'_>) {
        self.drops.tell_copies(cx.pool);
        cx.out.extend(self.drops.orphans().map(Effect::Orphaned));
    }

    #[cold]
    pub(crate) fn discard(
        &mut self,
        packet: Packet,
        place: &'static str,
        reason: &'static str,
        cx: &mut HostCx<'_>,
    ) {
        let ifindex = packet.iif;
        if packet.is_noted() {
            self.netfilter.let_go(&packet);
        }
        cx.out.push(Effect::Dropped { packet, ifindex, place, reason });
    }

    /// Whether `addr` is one of this machine's.
    #[inline]
    pub fn is_local(&self, addr: Ipv4Addr) -> bool {
        self.fib.find(addr).is_some_and(|r| r.kind == RouteKind::Local)
    }
    /// Whether `addr` is a broadcast address here.
    pub fn is_broadcast(&self, addr: Ipv4Addr) -> bool {
        addr == Ipv4Addr::BROADCAST || self.fib.find(addr).is_some_and(|r| r.kind == RouteKind::Broadcast)
    }

    /// Runs whatever is due: ARP's requests and expiries, datagrams that never became whole.
    pub fn handle_timer(&mut self, cx: &mut HostCx<'_>) {
        while let Some(timer) = self.timers.pop_due(cx.now) {
            match timer {
                Timer::Neigh(at) => self.neigh_timer_fired(at, cx),
                Timer::Proxy(six) => self.proxy_timer_fired(six, cx),
                Timer::Solicit(at) if self.neigh.at(at).state == Nud::Incomplete => self.neigh_probe(at, cx),
                Timer::Solicit(_) => {}
                Timer::Announce(ifindex) => self.announce_timer_fired(ifindex, cx),
                Timer::Fragments(id) => self.fragments_expired(id, cx),
                Timer::Fragments6(by, id) => self.fragments6_expired(by, id, cx),
                Timer::Bond(ifindex) => self.bond_timer_fired(ifindex, cx),
                Timer::Routers(ifindex) => self.router_timer_fired(ifindex, cx),
                Timer::Ppp(pid) => self.ppp_timer_fired(pid, cx),
                Timer::Radvd => self.radvd_timer_fired(cx),
                Timer::SpanningTree(bridge) => self.tree_timer_fired(bridge, cx),
                Timer::WireGuard(ifindex) => self.wireguard_timer_fired(ifindex, cx),
                Timer::Cardless(ifindex) => self.run_cardless(ifindex, cx),
                Timer::Lifetimes(six) => self.watch_lifetimes(six, cx.now),
                Timer::Expiry6 => self.watch_routes6(cx.now),
                Timer::Gc6 => self.run_gc6(cx.now),
            }
        }
    }
    /// A device without a card sends what its qdisc lets go.
    #[cold]
    pub(crate) fn run_cardless(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        match self.devices.get(ifindex).map(|d| d.class.kind) {
            Some("ifb") => self.ifb_run(ifindex, cx),
            Some("loopback") => self.lo_run(ifindex, cx),
            Some("bridge") => self.bridge_run(ifindex, cx),
            Some("vlan") => self.vlan_run(ifindex, cx),
            Some("macvlan") => self.macvlan_run(ifindex, cx),
            Some("vrf") => self.vrf_run(ifindex, cx),
            Some("bond") => self.bond_run(ifindex, cx),
            Some("teql") => self.teql_run(ifindex, cx),
            _ => self.tunnel_run(ifindex, cx),
        }
    }
    /// ICMP destination unreachable about a packet that was delivered: `code` 3 where no socket listens on a UDP
    /// port. TCP answers with a reset of its own.
    pub fn icmp_unreachable(&mut self, packet: &Packet, code: u8, cx: &mut HostCx<'_>) {
        let known = matches!(packet.l3, L3::Ipv4(h) if h.protocol != ipproto::TCP || code != 3);
        if known {
            self.icmp_send(packet, icmp::DEST_UNREACH, code, 0, cx);
        } else if code == 3 && matches!(packet.l3, L3::Ipv6(h) if h.protocol() != ipproto::TCP) {
            self.port_unreachable6(packet, cx);
        }
    }
}

#[cold]
fn untag(frame: &mut Skb) {
    if let Some(tag) = frame.remove_vlan() {
        frame.rare_mut().vlan = Some(tag);
    }
}
