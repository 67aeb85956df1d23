//! VLAN devices (802.1Q, 802.1ad): a tag on what is sent, and off what is received.
//!
//! Follows: linux v6.12 `net/8021q/vlan_dev.c` `vlan_dev_hard_start_xmit`, `vlan_dev_set_ingress_priority`,
//! `vlan_dev_set_egress_priority`; `vlan_core.c` `vlan_do_receive`; `net/core/dev.c` `__netif_receive_skb_core`.
//! Differs: every card inserts and takes off tags by itself (`NETIF_F_HW_VLAN_*`): a tag is beside the frame, counts on the wire
//! and in no queue; `REORDER_HDR`, GVRP and MVRP change nothing.

mod procfs;

use crate::{Host, HostCx, Timer};
use penstock_lang::ip::LinkData;
use penstock_packet::{L3, Packet, Skb};
use penstock_sched::Xmit;
use std::collections::BTreeMap;

/// What a VLAN device does to packets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Vlan {
    /// The device it is on.
    pub lower: u32,
    /// The tag's ethertype.
    pub protocol: u16,
    /// VLAN identifier, 0 to 4094.
    pub id: u16,
    /// `ingress-qos-map`: priority of a packet by that of its tag.
    ingress: [u32; 8],
    /// `egress-qos-map`: priority of a tag, 0 to 7, by that of its packet; 0 where nothing is said.
    egress: BTreeMap<u32, u16>,
}

/// `ip link set … type vlan`: flags that are said, and priorities added to the maps. Identifier and protocol stay.
//= linux v6.12 net/8021q/vlan_netlink.c vlan_changelink
pub(crate) fn change(data: &mut LinkData, by: &LinkData) {
    let (
        LinkData::Vlan { flags, ingress, egress, .. },
        LinkData::Vlan { flags: said, mask, ingress: more_ingress, egress: more_egress, .. },
    ) = (data, by)
    else {
        return;
    };
    *flags = *flags & !mask | said & mask;
    ingress.extend(more_ingress);
    egress.extend(more_egress);
}

impl Vlan {
    /// What the words of `ip link add … type vlan` make of it.
    pub(crate) fn new(lower: u32, data: &LinkData) -> Option<Vlan> {
        let LinkData::Vlan { id: Some(id), protocol, ingress: given, egress, .. } = data else { return None };
        let mut ingress = [0; 8];
        for &(from, to) in given {
            ingress[(from & 7) as usize] = to;
        }
        let egress = egress.iter().map(|&(from, to)| (from, (to & 7) as u16)).collect();
        Some(Vlan { lower, protocol: *protocol, id: *id, ingress, egress })
    }
    /// The tag of a packet with this priority: its identifier and the priority of `egress-qos-map`.
    fn tci(&self, priority: u32) -> u16 {
        self.id | self.egress.get(&priority).map_or(0, |p| p << 13)
    }
}

impl Host {
    /// A packet comes to a VLAN device: onto its qdisc, and what that lets go onto the qdisc of the device below. The answer is that of the
    /// VLAN's own qdisc, where it has one.
    #[cold]
    pub(crate) fn queue_on_vlan(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        let answer = self.queue_within(ifindex, packet, crate::path::MAX_DEPTH, Host::vlan_run, cx);
        if let Some(answer) = answer
            && self.devices.get(ifindex).is_some_and(|d| d.tree.root().kind() != "noqueue")
        {
            self.answer = answer;
        }
    }

    /// A VLAN device sends what its qdisc lets go, and comes again when that lets go more.
    pub(crate) fn vlan_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            let vlan = self.devices.get(ifindex).and_then(|d| d.vlan.as_deref());
            let Some(vlan) = vlan.filter(|v| self.devices.get(v.lower).is_some()) else {
                self.discard(packet, "netif", "no-device", cx);
                return;
            };
            let (lower, tag) = (vlan.lower, (vlan.protocol, vlan.tci(packet.priority)));
            // A tag that is there already goes into the frame (__vlan_hwaccel_push_inside).
            if let Some((ethertype, tci)) = packet.rare_mut().vlan.replace(tag) {
                packet.insert_vlan(ethertype, tci);
            }
            packet.rare_mut().nest = Default::default();
            let len = packet.len;
            self.answer = Xmit::Success;
            self.xmit(lower, packet, cx);
            if self.answer == Xmit::Drop {
                let counters = &mut self.devices[ifindex].counters;
                counters.tx_packets -= 1;
                counters.tx_bytes -= u64::from(len);
                counters.tx_dropped += 1;
            }
        }
        self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert(at.max(cx.now), Timer::Cardless(ifindex));
        }
    }

    /// A frame with something beside it, behind the ingress filters: into the VLAN that its tag names; `Some` where the network layer takes it.
    #[cold]
    pub(crate) fn behind_ingress(
        &mut self,
        ifindex: u32,
        mut frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        if let Some(vlan) = self.vlan_of(ifindex, &frame) {
            self.vlan_receive(vlan, frame, cx);
            return None;
        }
        if self.devices[ifindex].bridged {
            frame = self.master_receive(ifindex, frame, cx)?;
        }
        // A tag with a priority alone is off; what it stands before may be a VLAN's.
        while let Some((_, tci)) = frame.rare().vlan {
            if tci & VID_MASK != 0 {
                frame.rare_mut().ptype = Some(OTHERHOST);
                break;
            }
            frame.rare_mut().vlan = frame.remove_vlan();
            if let Some(vlan) = self.vlan_of(ifindex, &frame) {
                self.vlan_receive(vlan, frame, cx);
                return None;
            }
        }
        let rare = frame.rare_mut();
        rare.vlan = None;
        if rare.ptype != Some(OTHERHOST) {
            return Some(frame);
        }
        //= linux v6.12 net/ipv4/ip_input.c ip_rcv_core; net/ipv6/ip6_input.c ip6_rcv_core
        if matches!(frame.l3, L3::Ipv4(_) | L3::Ipv6(_)) {
            self.devices[ifindex].counters.rx_otherhost += 1;
        }
        self.discard(frame, "netif", "other-host", cx);
        None
    }
    /// The VLAN device that a frame's tag names.
    fn vlan_of(&self, ifindex: u32, frame: &Skb) -> Option<u32> {
        let (ethertype, tci) = frame.rare().vlan?;
        self.devices.tagged(ifindex, ethertype, tci & VID_MASK)
    }
    /// `vlan_do_receive`.
    fn vlan_receive(&mut self, vlan: u32, mut frame: Packet, cx: &mut HostCx<'_>) {
        let tci = frame.rare_mut().vlan.take().map_or(0, |tag| tag.1);
        let device = &mut self.devices[vlan];
        if !device.up {
            self.discard(frame, "netif", "device-down", cx);
            return;
        }
        if frame.rare().ptype == Some(OTHERHOST) && frame.eth.1 == device.mac {
            frame.rare_mut().ptype = None;
        }
        frame.priority = device.vlan.as_ref().map_or(0, |v| v.ingress[usize::from(tci >> 13)]);
        device.counters.rx_packets += 1;
        // The Ethernet header is off by then.
        device.counters.rx_bytes += u64::from(frame.network_len());
        // PACKET_MULTICAST, which a broadcast is not.
        let group = frame.eth.1[0] & 1 == 1 && frame.eth.1 != [0xff; 6];
        device.counters.rx_multicast += u64::from(group);
        frame.iif = vlan;
        self.netif_receive(vlan, frame, cx);
    }
}

/// `VLAN_VID_MASK`.
pub(crate) const VID_MASK: u16 = 0x0fff;
/// `PACKET_OTHERHOST`.
pub(crate) const OTHERHOST: u8 = 3;

#[cfg(test)]
mod tests {
    use crate::tests::{Net, echo, routed, udp};
    use penstock_model::{Kernel, Time};

    /// The router of three machines and its client after commands on each.
    fn net(client: &[&str], router: &[&str]) -> Net {
        let mut net = routed(Kernel::V6_12);
        for (host, lines) in [(0, client), (1, router)] {
            for line in lines {
                let said = net.hosts[host].exec(line, net.now);
                assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
            }
        }
        net
    }
    fn shown(net: &mut Net, host: usize, line: &str) -> String {
        let now = net.now;
        net.hosts[host].exec(line, now).stdout
    }
    fn wait(net: &mut Net, ms: i64) {
        net.run(Time::from_ns(net.now.as_ns() + ms * 1_000_000));
    }
    const CLIENT: [&str; 3] = [
        "ip link add link eth0 name eth0.10 type vlan id 10 egress-qos-map 0:3 5:6 16:2 21:7",
        "ip addr add 10.10.0.1/24 dev eth0.10",
        "ip link set eth0.10 up",
    ];
    const ROUTER: [&str; 3] = [
        "ip link add link eth0 name v10 type vlan id 10 ingress-qos-map 3:7",
        "ip addr add 10.10.0.254/24 dev v10",
        "ip link set v10 up",
    ];

    #[test]
    fn a_vlan_is_a_network_of_its_own() {
        let mut net = net(&CLIENT, &ROUTER);
        net.send(0, echo("10.10.0.254")).unwrap();
        wait(&mut net, 100);
        assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
        // ARP and the echo both ways, each with its tag beside the frame.
        let tags: Vec<_> = net.frames.iter().map(|(_, host, f)| (*host, f.rare().vlan, f.len)).collect();
        let (to, from) = (Some((0x8100, 0x600a)), Some((0x8100, 10)));
        assert_eq!(tags, [(0, to, 42), (1, from, 42), (0, to, 98), (1, from, 98)]);
        let counters = |host: usize, dev: &str| {
            net.hosts[host].devices().iter().find(|d| d.name == dev).unwrap().counters
        };
        for (host, dev) in [(0, "eth0"), (0, "eth0.10"), (1, "eth0"), (1, "v10")] {
            let c = counters(host, dev);
            // As a VLAN of Linux counts: with the Ethernet header what is sent, without it what is received.
            let received = if dev == "eth0" { 140 } else { 112 };
            assert_eq!((c.rx_packets, c.rx_bytes, c.tx_packets, c.tx_bytes), (2, received, 2, 140), "{dev}");
        }
        assert_eq!(net.hosts[0].unsimulated_devices(), [""; 0]);
    }

    #[test]
    fn another_identifier_or_ethertype_is_not_for_it() {
        for kind in ["id 11", "id 10 protocol 802.1ad"] {
            let add = format!("ip link add link eth0 name v10 type vlan {kind}");
            let mut net = net(&CLIENT, &[&add, ROUTER[1], ROUTER[2]]);
            net.send(0, echo("10.10.0.254")).unwrap();
            wait(&mut net, 100);
            assert_eq!((net.delivered.len(), net.dropped.as_slice()), (0, &[(1, "netif", "other-host")][..]));
        }
        // One that is down takes its frames, and nobody hears of them.
        let mut net = net(&CLIENT, &[ROUTER[0], ROUTER[1], ROUTER[2], "ip link set v10 down"]);
        net.send(0, echo("10.10.0.254")).unwrap();
        wait(&mut net, 100);
        assert_eq!(net.dropped, [(1, "netif", "device-down")]);
    }

    #[test]
    fn a_tag_s_priority_is_the_packet_s_until_the_route() {
        // Seen by a filter at the VLAN's ingress; at the card's ingress the frame is 802.1Q.
        let count = "action pass";
        let mut net = net(
            &CLIENT,
            &[
                ROUTER[0],
                ROUTER[1],
                ROUTER[2],
                "tc qdisc add dev eth0 clsact",
                &format!(
                    "tc filter add dev eth0 ingress protocol 802.1q prio 1 flower vlan_id 10 vlan_prio 3 {count}"
                ),
                "tc qdisc add dev v10 clsact",
                &format!(
                    "tc filter add dev v10 ingress protocol ip prio 1 basic match 'meta(priority eq 7)' {count}"
                ),
            ],
        );
        net.send(0, echo("10.10.0.254")).unwrap();
        wait(&mut net, 100);
        assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
        for (dev, packets) in [("eth0", 2), ("v10", 1)] {
            let text = shown(&mut net, 1, &format!("tc -s filter show dev {dev} ingress"));
            assert!(text.contains(&format!("{packets} pkt")), "{text}");
        }
    }

    #[test]
    fn its_own_qdisc_shapes_and_hands_over_to_the_card_s() {
        let tbf = "tc qdisc add dev eth0.10 root tbf rate 80kbit burst 1600 limit 3100";
        let prio = "tc qdisc add dev eth0 root handle 1: prio";
        let mut net = net(&[CLIENT[0], CLIENT[1], CLIENT[2], tbf, prio], &ROUTER);
        net.send(0, echo("10.10.0.254")).unwrap();
        wait(&mut net, 1000);
        net.delivered.clear();
        let mut refused = 0;
        for _ in 0..6 {
            refused += u32::from(net.send(0, udp("10.10.0.1", "10.10.0.254", 1000)).is_err());
        }
        // One goes at once, three wait (1014 bytes each), two find the queue full.
        assert_eq!((net.delivered.len(), net.dropped.len(), refused), (1, 2, 0), "{:?}", net.dropped);
        let start = net.now.as_ns();
        for (ms, there) in [(40, 1), (50, 2), (150, 3), (260, 4), (1000, 4)] {
            net.run(Time::from_ns(start + ms * 1_000_000));
            assert_eq!(net.delivered.len(), there, "{ms} ms");
        }
        let text = shown(&mut net, 0, "tc -s qdisc show dev eth0");
        // Four datagrams, the echo and its ARP.
        assert!(text.contains(&format!("Sent {} bytes 6 pkt", 4 * 1014 + 98 + 42)), "{text}");
    }

    #[test]
    fn a_vlan_in_a_vlan_has_two_tags() {
        let inner = [
            "ip link add link eth0.10 name q type vlan id 20",
            "ip addr add 10.20.0.1/24 dev q",
            "ip link set q up",
        ];
        let there = [
            "ip link add link v10 name q type vlan id 20",
            "ip addr add 10.20.0.2/24 dev q",
            "ip link set q up",
        ];
        let all = |a: &[&'static str], b: &[&'static str]| [a, b].concat();
        let mut net = net(&all(&CLIENT, &inner), &all(&ROUTER, &there));
        net.send(0, echo("10.20.0.2")).unwrap();
        wait(&mut net, 100);
        assert_eq!(net.delivered.len(), 1, "{:?}", net.dropped);
        let (_, _, frame) = net.frames.last().unwrap();
        assert_eq!((frame.rare().vlan, frame.tags_in_frame(), frame.len), (Some((0x8100, 10)), 1, 102));
    }

    #[test]
    fn maps_are_shown_and_wrong_ones_refused() {
        let mut net = net(&CLIENT, &ROUTER);
        let text = shown(&mut net, 0, "ip -d link show eth0.10");
        assert!(text.contains("id 10 <REORDER_HDR> \n      egress-qos-map { 16:2 0:3 21:7 5:6 } "), "{text}");
        let text = shown(&mut net, 1, "ip -d link show v10");
        assert!(text.contains("id 10 <REORDER_HDR> \n      ingress-qos-map { 3:7 } "), "{text}");
        let said =
            net.hosts[0].exec("ip link add link eth0 name w type vlan id 3 egress-qos-map 1:x", net.now);
        assert_eq!(said.status, 255, "{}", said.stderr);
        // Over a device of another namespace it carries nothing here, and that is said.
        net.hosts[0].exec("ip netns add s", net.now);
        net.hosts[0].exec("ip link set eth0.10 netns s", net.now);
        net.hosts[0].exec("ip netns exec s ip link set eth0.10 up", net.now);
        assert!(net.hosts[0].devices().iter().all(|d| d.name != "eth0.10"));
    }
}
