//! A packet's way out: sent from here or forwarded, through the last hooks to a device's queue, and from there to its card.
//!
//! Follows: linux v6.12 `net/ipv4/ip_output.c`, `net/core/dev.c` `__dev_queue_xmit`, `net/sched/sch_generic.c` `dequeue_skb`.
//! Differs: as its parent.

use super::{MAX_DEPTH, Transmitted};
use crate::fragment::IP_DF;
use crate::netfilter::{Fate, Hook};
use crate::route::{Hop, Key, Ports, RouteKind};
use crate::{Effect, Host, HostCx, Timer, snmp};
use penstock_model::{Handle, KernelError, Time};
use penstock_packet::{Ipv4, L3, L4, Packet, Skb};
use penstock_sched::{Cx, Xmit};
use std::net::Ipv4Addr;

impl Host {
    /// Sends an IP packet made on this machine.
    ///
    /// The caller sets `len` (with the Ethernet header: 14 + 20 + transport header + payload, up to 65,549),
    /// `priority` ([`rt_tos2priority`](super::rt_tos2priority) of a socket's ToS, or `SO_PRIORITY`), and the headers; a source of 0.0.0.0 is
    /// chosen by the route, a ttl of 0 is the route's `hoplimit` or `ip_default_ttl`, an identification of 0 without DF is numbered here.
    /// `iif` is the device that the packet's socket is bound to, 0 for none; of IPv6, the device for a destination that means something on one link only.
    /// Hardware addresses are filled in here. Packets over the device's MTU are cut into fragments.
    ///
    /// # Errors
    /// What the socket call would return: ENETUNREACH (101), EHOSTUNREACH (113), EACCES (13), EINVAL (22),
    /// EMSGSIZE (90, DF and larger than the MTU), EPERM (1, dropped by a rule). The packet is gone then, with an
    /// [`Effect::Dropped`].
    pub fn send(&mut self, packet: Packet, cx: &mut HostCx<'_>) -> Result<(), KernelError> {
        self.output(packet, cx)
    }

    /// As [`send`](Host::send), and tells what became of the packet.
    ///
    /// # Errors
    /// As [`send`](Host::send).
    pub fn transmit(&mut self, packet: Packet, cx: &mut HostCx<'_>) -> Result<Transmitted, KernelError> {
        self.drops.paced = false;
        self.output(packet, cx)?;
        Ok(Transmitted { answer: self.answer, paced: self.drops.paced })
    }

    #[inline]
    fn output(&mut self, mut packet: Packet, cx: &mut HostCx<'_>) -> Result<(), KernelError> {
        self.answer = Xmit::Success;
        let mut h = match packet.l3 {
            L3::Ipv4(h) => h,
            L3::Ipv6(h) => {
                let oif = packet.iif;
                return self.output6(packet, h, oif, cx);
            }
            _ => {
                self.discard(packet, "ip_output", "not-ip", cx);
                return Err(KernelError::errno(KernelError::EINVAL));
            }
        };
        // The device that its socket is bound to.
        let oif = std::mem::take(&mut packet.iif);
        let key = Key {
            src: h.src,
            tos: h.tos & 0x1c,
            mark: packet.mark,
            oif,
            ports: Ports::of(&packet),
            ..Key::to(h.dst)
        };
        let hop = if oif == 0 { self.route_output(key) } else { self.route_bound(key) };
        if hop.mtu_locked {
            //= linux v6.12 include/net/ip.h ip_dont_fragment
            h.frag_off &= !IP_DF;
        }
        let refused = self.refusal(&hop, h.src);
        if refused != 0 || packet.len < 34 || packet.len > 65_549 {
            //= linux v6.12 net/ipv4/ip_output.c __ip_queue_xmit; net/ipv4/udp.c udp_sendmsg
            let counts = matches!(packet.l4, L4::Tcp(_) | L4::Udp(_)) && refused == 101;
            self.snmp.ip.out_no_routes += u64::from(counts);
            self.discard(packet, "ip_output", "no-route", cx);
            return Err(KernelError::errno(if refused != 0 { refused } else { 90 }));
        }
        if h.src.is_unspecified() {
            let of_vrf = match self.fib.l3mdevs().is_empty() {
                true => None,
                false => self.source_of_vrf(&hop, self.fib.l3mdevs().update_flow(key).l3mdev),
            };
            h.src = of_vrf.unwrap_or_else(|| self.source_for(&hop, h.dst));
        }
        if h.ttl == 0 {
            h.ttl = hop.ttl(self.sysctl.default_ttl);
        }
        if h.id == 0 && h.frag_off & IP_DF == 0 {
            self.ip_id = self.ip_id.wrapping_add(1);
            h.id = self.ip_id;
        }
        packet.l3 = L3::Ipv4(h);
        if !self.paths.is_empty() && self.paths.is_locked(h.dst, cx.now) {
            h.frag_off &= !IP_DF;
            packet.l3 = L3::Ipv4(h);
        }
        let mtu = self.mtu_of(&hop, h.dst, cx.now);
        if packet.longest_network_len() > mtu && h.frag_off & IP_DF != 0 {
            self.discard(packet, "ip_output", "frag-needed", cx);
            return Err(KernelError::errno(90));
        }
        packet.set_realms(self.fib.realms(&hop, None));
        self.snmp.ip.requests += 1;
        // TCP sends for itself what is not taken.
        let discards = !matches!(packet.l4, L4::Tcp(_));
        if let L4::Icmp(i) = packet.l4 {
            //= linux v6.12 net/ipv4/ip_output.c __ip_make_skb
            self.snmp.icmp.sends(i.ty);
        }
        let sent = self.send_routed(packet, h, hop, cx);
        if discards && (sent.is_err() || self.answer == Xmit::Drop) {
            self.snmp.ip.out_discards += 1;
        }
        sent
    }

    /// `ip_local_out` and what follows.
    #[inline]
    fn send_routed(
        &mut self,
        packet: Packet,
        h: Ipv4,
        hop: Hop,
        cx: &mut HostCx<'_>,
    ) -> Result<(), KernelError> {
        if !self.fib.l3mdevs().is_empty()
            && let Some(vrf) = self.vrf_before(&hop, h.dst)
        {
            return self.vrf_ip_out(vrf, packet, hop, cx);
        }
        if self.netfilter.busy(Hook::Output) {
            return self.send_through_rules(packet, hop, cx);
        }
        self.ip_output(packet, hop, cx);
        Ok(())
    }

    /// The error of a packet from `src` that is sent that way; 0: none.
    //= linux v6.12 net/ipv4/route.c ip_route_output_key_hash_rcu, __mkroute_output
    #[inline]
    pub(crate) fn refusal(&self, hop: &Hop, src: Ipv4Addr) -> i32 {
        match hop.kind {
            Some(RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast) => {
                if src.is_loopback() && self.keeps_loopback(hop) {
                    return KernelError::EINVAL;
                }
                0
            }
            Some(RouteKind::Unreachable) => 113,
            Some(RouteKind::Prohibit) => 13,
            Some(RouteKind::Blackhole) => 22,
            Some(RouteKind::Throw) | None => 101,
        }
    }

    #[inline]
    pub(crate) fn route_output(&mut self, key: Key) -> Hop {
        let dst = key.dst;
        let mut hop = self.fib.lookup(&key);
        if dst == Ipv4Addr::BROADCAST && hop.kind == Some(RouteKind::Unicast) {
            hop.kind = Some(RouteKind::Broadcast);
            hop.next = dst;
        }
        hop
    }
    /// The device that a packet leaves by: to own addresses that of their VRF, or `lo`.
    #[inline]
    pub(crate) fn out_device(&self, hop: &Hop) -> u32 {
        if hop.kind == Some(RouteKind::Local) { self.fib.l3mdevs().loopback_of(hop.oif) } else { hop.oif }
    }
    /// The longest packet that this machine may send that way (`ipv4_mtu`), as far as the path is known.
    pub(crate) fn mtu_of(&self, hop: &Hop, dst: Ipv4Addr, now: Time) -> u32 {
        let oif = self.out_device(hop);
        let mtu = hop.longest(self.devices[oif].route_mtu());
        if self.paths.is_empty() { mtu } else { self.paths.longest(dst, mtu, now) }
    }
    /// The source address a packet to `dst` gets (`fib_select_default`, `inet_select_addr`).
    pub(crate) fn source_for(&self, hop: &Hop, dst: Ipv4Addr) -> Ipv4Addr {
        if hop.kind == Some(RouteKind::Local) {
            return if hop.src.is_unspecified() { dst } else { hop.src };
        }
        if !hop.src.is_unspecified() {
            return hop.src;
        }
        let out = &self.devices[hop.oif];
        let other = || self.source_elsewhere(hop.oif);
        //= linux v6.12 net/ipv4/fib_semantics.c fib_info_update_nhc_saddr: no address is nearer to a gateway of IPv6 than another
        let next = if hop.six == 0 { hop.next } else { Ipv4Addr::UNSPECIFIED };
        out.address_towards(next).or_else(other).unwrap_or(Ipv4Addr::UNSPECIFIED)
    }
    /// The source address of what this machine sends to `dst`; `None` where there is no route.
    pub fn source_towards(&mut self, dst: Ipv4Addr) -> Option<Ipv4Addr> {
        let hop = self.route_output(Key::to(dst));
        let usable = matches!(hop.kind, Some(RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast));
        usable.then(|| self.source_for(&hop, dst))
    }
    /// The MTU of the route to `dst`; `None` where there is none. A socket's MSS follows from it.
    pub fn mtu_towards(&mut self, dst: Ipv4Addr, now: Time) -> Option<u32> {
        let hop = self.route_output(Key::to(dst));
        let usable = matches!(hop.kind, Some(RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast));
        usable.then(|| self.mtu_of(&hop, dst, now))
    }

    /// `ip_output`, `ip_finish_output`. One chain with what it calls: every packet that leaves comes through here.
    #[inline(always)]
    pub(crate) fn ip_output(&mut self, mut packet: Packet, hop: Hop, cx: &mut HostCx<'_>) {
        let hop = self.redirected_hop(hop, &packet, cx.now);
        if self.netfilter.busy(Hook::Postrouting) {
            let oif = self.out_device(&hop);
            self.next_hop = hop.next;
            if !self.hook(Hook::Postrouting, &mut packet, oif, cx) {
                self.discard(packet, Hook::Postrouting.chain(), "dropped", cx);
                return;
            }
        }
        if hop.kind != Some(RouteKind::Unicast) {
            self.ip_output_special(packet, hop, cx);
            return;
        }
        let mtu = self.mtu_for(&packet, &hop, cx.now);
        if packet.longest_network_len() > mtu {
            if packet.gso().is_some() {
                //= linux v6.12 net/ipv4/ip_output.c ip_finish_output_gso
                for segment in self.cut(packet, cx) {
                    self.ip_output(segment, hop, cx);
                }
                return;
            }
            match packet.l3 {
                L3::Ipv4(h) => {
                    self.fragment(packet, h, mtu, cx, |host, piece, cx| {
                        host.ip_finish_output2(piece, hop, cx)
                    });
                }
                _ => self.discard(packet, "ip_output", "not-ip", cx),
            }
            return;
        }
        self.ip_finish_output2(packet, hop, cx);
    }

    /// The longest IP packet of it that may go this way: no longer than the fragments were that it came in (`ip_do_fragment`).
    #[inline]
    fn mtu_for(&self, packet: &Skb, hop: &Hop, now: Time) -> u32 {
        let device = &self.devices[hop.oif];
        // What a tunnel or a path has learned is of this machine's own packets (ip_dst_mtu_maybe_forward).
        let mut mtu = hop.longest(if packet.iif == 0 { device.route_mtu() } else { device.mtu });
        if !self.paths.is_empty()
            && let (0, L3::Ipv4(h)) = (packet.iif, packet.l3)
        {
            mtu = self.paths.longest(h.dst, mtu, now);
        }
        match packet.rare().frag_max_size {
            0 => mtu,
            longest => mtu.min(longest),
        }
    }

    /// `ip_finish_output2`.
    #[inline(always)]
    fn ip_finish_output2(&mut self, mut packet: Packet, hop: Hop, cx: &mut HostCx<'_>) {
        self.snmp.ip.leaves(&packet);
        if let L3::Ipv4(h) = packet.l3
            && h.dst.is_multicast()
        {
            snmp::count(&mut self.snmp.ip.out_groups, &packet);
        }
        let at = match hop.neigh {
            0 if !self.devices[hop.oif].has_header_of_ethernet() => {
                // There is nobody to be found on a tunnel.
                let next = self.fib.next_of(&hop);
                self.note_next_hop(&mut packet, hop.oif, next);
                self.xmit(hop.oif, packet, cx);
                return;
            }
            0 => {
                if hop.six != 0 && self.devices[hop.oif].mtu < crate::six::MIN_MTU {
                    //= linux v6.12 net/ipv6/ndisc.c ndisc_constructor: there is no IPv6 on the device
                    self.discard(packet, "ip_output", "no-neighbour", cx);
                    return;
                }
                let at = self.neigh.find_or_create(hop.oif, self.fib.next_of(&hop), cx.now);
                if let L3::Ipv4(h) = packet.l3 {
                    self.fib.note_neigh(h.dst, &hop, at);
                }
                at
            }
            known => known - 1,
        };
        self.neigh_output(packet, hop.oif, at, cx);
    }

    /// Own addresses and broadcasts: by `lo`, or to everybody.
    #[cold]
    fn ip_output_special(&mut self, mut packet: Packet, hop: Hop, cx: &mut HostCx<'_>) {
        let oif = self.out_device(&hop);
        if oif == 0 {
            self.discard(packet, "ip_output", "no-device", cx);
            return;
        }
        let device = &self.devices[oif];
        let own = hop.kind == Some(RouteKind::Local);
        let to = if own || device.loopback { device.mac } else { crate::arp::MAC_BROADCAST };
        packet.eth = (device.mac, to);
        let mtu = device.mtu;
        let broadcast = hop.kind == Some(RouteKind::Broadcast);
        let send = |host: &mut Host, piece: Packet, cx: &mut HostCx<'_>| {
            if broadcast {
                snmp::count(&mut host.snmp.ip.out_broadcasts, &piece);
            }
            host.snmp.ip.leaves(&piece);
            host.xmit(oif, piece, cx);
        };
        match packet.l3 {
            L3::Ipv4(h) if packet.longest_network_len() > mtu => self.fragment(packet, h, mtu, cx, send),
            _ => send(self, packet, cx),
        }
    }

    /// A packet of this call comes to a device. The qdisc is run after each packet (`__dev_xmit_skb`): one that comes while the card is still to
    /// be asked for another (a fragment, what waited for ARP) waits for that.
    #[inline]
    pub(crate) fn xmit(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        if self.cuts_before(ifindex, &packet) {
            for segment in self.cut(packet, cx) {
                self.xmit(ifindex, segment, cx);
            }
            return;
        }
        let before = |e: &Effect| matches!(e, Effect::Kick(i) | Effect::Next(i, _) if *i == ifindex);
        if !cx.out.is_empty() && cx.out.iter().rev().any(before) {
            cx.out.push(Effect::Next(ifindex, packet));
            return;
        }
        self.dev_queue_xmit(ifindex, packet, cx);
    }
    /// `__dev_queue_xmit`: onto the device's qdisc.
    #[inline]
    pub(crate) fn dev_queue_xmit(&mut self, ifindex: u32, mut packet: Packet, cx: &mut HostCx<'_>) {
        if self.netfilter.at_devices() {
            let device = &self.devices[ifindex];
            if self.netfilter.run_device(false, &device.name, &mut packet, cx.now) != Fate::Accept {
                self.discard(packet, "egress", "dropped", cx);
                return;
            }
        }
        if !self.conditioners.is_empty() {
            let Some(passed) = self.condition(ifindex, packet, cx) else { return };
            packet = passed;
        }
        if self.acts.ask_for_connections() {
            self.netfilter.note_connection(&mut packet, cx.now);
        }
        if self.netfilter.translates() {
            self.netfilter.note_inside(&mut packet, cx.now);
        }
        let device = &mut self.devices[ifindex];
        if let Some(tap) = &mut device.tap {
            tap.comes(cx.now, &packet);
        }
        if !device.up || device.loopback {
            self.xmit_special(ifindex, packet, cx);
            return;
        }
        if device.is_cardless() {
            match device.class.kind {
                "ifb" => self.queue_on_ifb(ifindex, packet, cx),
                "bridge" => self.queue_on_bridge(ifindex, packet, cx),
                "veth" | "tun" | "tap" => self.queue_without_carrier(ifindex, packet, cx),
                "vlan" => self.queue_on_vlan(ifindex, packet, cx),
                "macvlan" => self.queue_on_macvlan(ifindex, packet, cx),
                "vrf" => self.queue_on_vrf(ifindex, packet, cx),
                "bond" => self.queue_on_bond(ifindex, packet, cx),
                "teql" => self.queue_on_teql(ifindex, packet, cx),
                _ => self.queue_on_tunnel(ifindex, packet, cx),
            }
        } else if self.queue(ifindex, packet, cx) {
            cx.out.push(Effect::Kick(ifindex));
        }
    }

    #[cold]
    fn xmit_special(&mut self, ifindex: u32, mut packet: Packet, cx: &mut HostCx<'_>) {
        let device = &mut self.devices[ifindex];
        if !device.up {
            device.counters.tx_dropped += 1;
            cx.out.push(Effect::Dropped { packet, ifindex, place: "netif", reason: "device-down" });
            return;
        }
        // As long as lo is given no queue, what is sent is received at once.
        let root = device.tree.root();
        if root.handle != Handle::UNSPEC || device.tree.ingress().is_some() && root.kind() == "noqueue" {
            self.queue_within(ifindex, packet, MAX_DEPTH, Host::lo_run, cx);
            return;
        }
        if self.depth >= MAX_DEPTH {
            cx.out.push(Effect::Dropped { packet, ifindex, place: "netif", reason: "recursion" });
            return;
        }
        device.counters.tx_packets += 1;
        device.counters.tx_bytes += device.counted(&packet);
        packet.eth = ([0; 6], [0; 6]);
        self.depth += 1;
        self.receive(ifindex, packet, cx);
        self.depth -= 1;
    }
    /// `lo` receives what its qdisc lets go, and comes again when that lets go more.
    #[cold]
    pub(crate) fn lo_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            packet.eth = ([0; 6], [0; 6]);
            packet.rare_mut().nest = Default::default();
            self.receive(ifindex, packet, cx);
        }
        self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert(at.max(cx.now), Timer::Cardless(ifindex));
        }
    }

    /// The card asks for the next frame of device `ifindex`. `None`: nothing may go now; ask again after the
    /// next [`Effect::Kick`] or at [`Host::next_wakeup`].
    #[inline(always)] // Of those that call it one counts.
    pub fn dequeue(&mut self, ifindex: u32, cx: &mut HostCx<'_>) -> Option<Packet> {
        let device = self.devices.get_mut(ifindex)?;
        if !device.up {
            return None;
        }
        if device.tree.next_wakeup().is_some_and(|at| at <= cx.now) {
            device.tree.expire(cx.now);
        }
        let mut inner =
            Cx { now: cx.now, rng: &mut device.rng, drops: &mut self.drops, acts: &mut self.acts };
        let mut packet = device.tree.dequeue(&mut inner);
        if self.teql.is_some() {
            packet = self.teql_dequeued(ifindex, packet, cx);
        }
        if let Some(packet) = &packet
            && let Some(device) = self.devices.get_mut(ifindex)
        {
            device.counters.tx_packets += 1;
            device.counters.tx_bytes += device.counted(packet);
            if let Some(tap) = &mut device.tap {
                tap.leaves(cx.now, packet);
            }
        }
        if !self.drops.is_empty() {
            self.report_drops(ifindex, cx);
        }
        packet
    }
}
