//! The way of most packets in one piece: IPv4, nothing at any hook, a route and a neighbour that are known. A packet that asks for more is left
//! as it is, for the whole way in `path`.
//!
//! Follows: linux v6.12 what `path` follows; with `TCQ_F_CAN_BYPASS`, `net/core/dev.c` `__dev_xmit_skb`.

use crate::fragment::{IP_DF, IP_MF, IP_OFFSET};
use crate::path::{Transmitted, finds_its_socket};
use crate::route::RouteKind;
use crate::{Effect, Host, HostCx, rt_tos2priority};
use penstock_model::{Handle, Time};
use penstock_packet::headers::ETH_HLEN;
use penstock_packet::{L3, L4, Packet, Sender, Skb};
use penstock_sched::Cx;

/// Where a frame goes that came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// On, by this device: it is ready for that one's qdisc.
    Out(u32),
    /// To the sockets of this machine.
    Here,
    /// It asks for more than is done here, and is as it was: [`Host::receive`].
    Whole,
}

impl Host {
    /// Whether packets meet nothing between two devices: no rules, no conditioner, no action that asks for connections.
    #[inline(always)]
    fn is_bare(&self) -> bool {
        !self.netfilter.is_busy()
            && !self.ends_at_ingress
            && self.conditioners.is_empty()
            && !self.acts.ask_for_connections()
            && !self.fib.has_realms()
            && !self.sysctl.filters_sources
    }
    /// A frame came in by device `ifindex`; answers where it goes, and does to it what is done on the way there.
    #[inline(always)] // Of those that call it one counts.
    pub fn way(&mut self, ifindex: u32, frame: &mut Skb, now: Time) -> Way {
        let Some(device) = self.devices.get(ifindex) else { return Way::Whole };
        let bare = device.mac == frame.eth.1
            && device.up
            && !device.loopback
            && !device.bridged
            && frame.eth.1[0] & 1 == 0
            && device.tree.ingress().is_none()
            && !frame.is_touched()
            && self.is_bare();
        let L3::Ipv4(h) = &mut frame.l3 else { return Way::Whole };
        let Some((hop, from)) = self.fib.known(h.dst) else { return Way::Whole };
        if !bare {
            return Way::Whole;
        }
        let way = match hop.kind {
            Some(RouteKind::Unicast) => {
                let device_forwards = device.forwarding.unwrap_or(self.sysctl.ip_forward);
                if !device_forwards || from != h.src || h.ttl <= 1 || hop.neigh == 0 {
                    return Way::Whole;
                }
                let oif = hop.oif;
                // One that goes out where it came in may be told of a better way.
                if oif == ifindex || self.fib.has_turned() {
                    return Way::Whole;
                }
                let Some(out) = self.devices.get(oif) else { return Way::Whole };
                if !out.sends_plainly() || frame.len > hop.longest(out.mtu) + ETH_HLEN {
                    return Way::Whole;
                }
                let Some(mac) = self.neigh.reaches(hop.neigh - 1, self.kernel, now) else {
                    return Way::Whole;
                };
                h.ttl -= 1;
                let tos = h.tos;
                frame.priority = rt_tos2priority(self.kernel, tos);
                frame.eth = (out.mac, mac);
                let ip = &mut self.snmp.ip;
                ip.receives(frame, tos);
                ip.forwarded += 1;
                ip.leaves(frame);
                Way::Out(oif)
            }
            Some(RouteKind::Local) => {
                if h.frag_off & (IP_MF | IP_OFFSET) != 0 || !matches!(frame.l4, L4::Tcp(_) | L4::Udp(_)) {
                    return Way::Whole;
                }
                let is_others = |src| {
                    from == src || self.fib.known(src).is_some_and(|k| k.0.kind == Some(RouteKind::Unicast))
                };
                let (src, tos) = (h.src, h.tos);
                if !finds_its_socket(frame) && !is_others(src) {
                    return Way::Whole;
                }
                frame.priority = 0;
                let ip = &mut self.snmp.ip;
                ip.receives(frame, tos);
                ip.delivers += 1;
                Way::Here
            }
            _ => return Way::Whole,
        };
        let counters = &mut self.devices[ifindex].counters;
        counters.rx_packets += 1;
        counters.rx_bytes += u64::from(frame.len);
        frame.iif = ifindex;
        frame.sender = Sender::default();
        frame.mark = 0;
        frame.classid = Handle::UNSPEC;
        frame.travel();
        way
    }
    /// A packet made on this machine; answers the device it leaves by, ready for its qdisc, if it is one of most packets: as
    /// [`Host::transmit`]. `None`: it is as it was.
    #[inline(always)] // Of those that call it one counts.
    pub fn way_out(&mut self, packet: &mut Skb, now: Time) -> Option<u32> {
        if !self.is_bare() || packet.is_noted() {
            return None;
        }
        let L3::Ipv4(h) = &mut packet.l3 else { return None };
        let (hop, _) = self.fib.known(h.dst)?;
        if hop.kind != Some(RouteKind::Unicast)
            || hop.neigh == 0
            || h.src.is_unspecified()
            || h.frag_off != IP_DF
            || packet.len < 34
        {
            return None;
        }
        let oif = hop.oif;
        let out = self.devices.get(oif)?;
        if !out.sends_plainly()
            || packet.len > hop.longest(out.mtu) + ETH_HLEN
            || hop.mtu_locked
            || !self.paths.is_empty()
            || self.fib.has_turned()
        {
            return None;
        }
        let mac = self.neigh.reaches(hop.neigh - 1, self.kernel, now)?;
        if h.ttl == 0 {
            h.ttl = hop.ttl(self.sysctl.default_ttl);
        }
        packet.iif = 0;
        packet.eth = (out.mac, mac);
        let ip = &mut self.snmp.ip;
        ip.requests += 1;
        ip.leaves(packet);
        Some(oif)
    }
    /// A packet that is ready for the qdisc of device `oif` passes it by, as if it had been put in and taken out at once: the qdisc is empty and
    /// lets it (`TCQ_F_CAN_BYPASS`). Counted as taken by the wire. Else nothing was done.
    #[inline(always)] // Of those that call it one counts.
    pub fn passes_by(&mut self, oif: u32, packet: &mut Skb, now: Time) -> bool {
        let Some(device) = self.devices.get_mut(oif) else { return false };
        if !device.tree.pass_by(packet, now) {
            return false;
        }
        device.counters.tx_packets += 1;
        // A card's: `lo` sends nothing this way.
        device.counters.tx_bytes += u64::from(packet.len);
        true
    }
    /// Puts a packet that is ready for it on the qdisc of device `oif`; answers whether nothing follows but that the card may be asked. Else what
    /// follows stands among the effects, that too.
    #[inline(always)] // Of those that call it one counts.
    pub fn queue(&mut self, oif: u32, packet: Packet, cx: &mut HostCx<'_>) -> bool {
        let plain = self.put(oif, packet, cx.now);
        if !plain {
            self.queued(oif, true, cx);
        }
        plain
    }
    /// The same of an ifb, which has no card: it sends what it may at once.
    pub(crate) fn queue_on_ifb(&mut self, oif: u32, packet: Packet, cx: &mut HostCx<'_>) {
        if !self.put(oif, packet, cx.now) {
            self.queued(oif, false, cx);
        }
        self.ifb_run(oif, cx);
    }
    /// Puts a packet on a qdisc; answers whether nothing has come of it that [`Host::queued`] tells.
    #[inline(always)] // Of those that call it one counts.
    pub(crate) fn put(&mut self, oif: u32, packet: Packet, now: Time) -> bool {
        let tracks = self.acts.track_connections();
        if tracks {
            self.lend_connections();
        }
        let device = &mut self.devices[oif];
        let mut inner = Cx { now, rng: &mut device.rng, drops: &mut self.drops, acts: &mut self.acts };
        self.answer = device.tree.enqueue(packet, &mut inner);
        if tracks {
            self.take_connections_back();
        }
        !self.drops.has_copied()
            && !self.drops.has_orphans()
            && self.drops.is_empty()
            && !self.acts.has_sent()
    }
    /// The same of a packet that is made on this machine, which wants to know what became of it.
    #[inline]
    pub fn queue_own(&mut self, oif: u32, packet: Packet, cx: &mut HostCx<'_>) -> (bool, Transmitted) {
        self.drops.paced = false;
        let plain = self.queue(oif, packet, cx);
        (plain, Transmitted { answer: self.answer, paced: self.drops.paced })
    }
    /// What follows from a packet that was put on a qdisc. `kick`: the card is to be asked.
    #[cold]
    pub(crate) fn queued(&mut self, oif: u32, mut kick: bool, cx: &mut HostCx<'_>) {
        self.report_copies(cx);
        if !self.drops.is_empty() {
            // The discipline is run before what was dropped is freed (__dev_xmit_skb).
            if std::mem::take(&mut kick) {
                cx.out.push(Effect::Kick(oif));
            }
            self.report_drops(oif, cx);
        }
        if self.acts.has_sent() {
            self.send_elsewhere(cx);
        }
        if kick {
            cx.out.push(Effect::Kick(oif));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Net, ip, routed, set4, udp};
    use penstock_model::{Kernel, Rng, Span};
    use penstock_packet::Skb;

    /// A packet of most, or one that has something of its own.
    fn packet(rng: &mut Rng) -> Skb {
        let mut packet = udp("10.0.1.1", "10.0.2.1", 40 + rng.below(1460));
        packet.priority = rng.below(16);
        set4(&mut packet, |h| (h.frag_off, h.tos) = (crate::fragment::IP_DF, rng.below(256) as u8));
        match rng.below(16) {
            0 => set4(&mut packet, |h| h.ttl = 1 + rng.below(2) as u8),
            1 => set4(&mut packet, |h| h.frag_off = 0),
            2 => set4(&mut packet, |h| h.dst = ip("10.0.2.77")),
            3 => set4(&mut packet, |h| h.dst = ip("10.0.1.254")),
            4 => set4(&mut packet, |h| h.dst = ip("10.9.9.9")),
            5 => packet.tc.bad_checksum = true,
            6 => packet.tc.damaged = true,
            7 => packet.mark = 5,
            8 => packet.len = 14 + 1501,
            _ => {}
        }
        packet
    }

    /// All that can be seen of a network after many packets both ways, and how many of them went the quick way.
    fn seen(kernel: Kernel, quick: bool, router: &str) -> (String, u32) {
        let mut net: Net = routed(kernel);
        net.quick = quick.then_some(0);
        for line in router.split('\n').filter(|l| !l.is_empty()) {
            let output = net.hosts[1].exec(line, net.now);
            assert_eq!(output.status, 0, "{line}: {}", output.stderr);
        }
        let mut rng = Rng::named(3, "quick");
        for n in 0..3000u32 {
            let mut one = packet(&mut rng);
            if n % 3 == 2 {
                set4(&mut one, |h| (h.src, h.dst) = (ip("10.0.2.1"), ip("10.0.1.1")));
                let _ = net.send(2, one);
            } else if n % 50 == 7 {
                // With the address of the router itself as its sender, or for another station.
                set4(&mut one, |h| h.src = ip("10.0.2.254"));
                one.eth.1 = if n % 100 == 7 { net.hosts[1].devices()[2].mac } else { [2; 6] };
                net.receive(1, 2, one);
            } else {
                let _ = net.send(0, one);
            }
            let next = net.now + Span::from_ms(20);
            net.run(next);
        }
        let mut text = format!("{:?}\n{:?}\n{:?}\n", net.frames, net.delivered, net.dropped);
        for host in &mut net.hosts {
            for line in ["tc -s qdisc show", "ip -s link show", "ip neigh show"] {
                text.push_str(&host.exec(line, net.now).stdout);
            }
        }
        (text, net.quick.unwrap_or_default())
    }

    #[test]
    fn the_quick_way_is_the_whole_way() {
        let routers = [
            ("", 1000),
            ("tc qdisc add dev eth1 root pfifo limit 3", 1000),
            ("tc qdisc add dev eth1 root tbf rate 1mbit burst 3000 limit 6000", 1000),
            ("tc qdisc add dev eth1 clsact\ntc filter add dev eth1 egress matchall action drop", 400),
            (
                "tc qdisc add dev eth0 ingress\ntc filter add dev eth0 parent ffff: matchall action skbedit mark 7",
                400,
            ),
            ("iptables -A FORWARD -m mark --mark 5 -j DROP", 400),
            ("iptables -t nat -A POSTROUTING -o eth1 -j MASQUERADE", 400),
            ("ip route add 10.0.2.1/32 via 10.0.2.1 dev eth1 realm 7", 400),
        ];
        for kernel in Kernel::ALL {
            for (router, least) in routers {
                if kernel == Kernel::V2_6_35 && router.contains("matchall") {
                    continue;
                }
                let ((quick, went), (whole, _)) = (seen(kernel, true, router), seen(kernel, false, router));
                let differs = quick.chars().zip(whole.chars()).position(|(a, b)| a != b);
                assert!(quick == whole, "{kernel} {router}: differs from {differs:?} on");
                assert!(went > least, "{kernel} {router}: only {went} went the quick way");
            }
        }
    }
}
