//! The receiving side's filters, what actions send from one device to another, and the ifb that gives packets back.
//!
//! Follows: linux v6.12 `net/core/dev.c` `sch_handle_ingress`, `net/sched/act_mirred.c` `tcf_mirred_forward`,
//! `drivers/net/ifb.c` `ifb_xmit`, `ifb_ri_tasklet`.
//! Differs: what mirred sends leaves after the packet that met it, not before; an ifb gives a packet back at once, not
//! from a tasklet.

use crate::netfilter::ct::Lent;
use crate::{Effect, Host, HostCx, Timer};
use penstock_packet::Packet;
use penstock_sched::act::Port;
use penstock_sched::{Cx, Xmit};

/// What mirred sends on may meet mirred again, through devices without a queue, so many times at most.
const ROUNDS: u32 = 16;

impl Host {
    /// `sch_handle_ingress`. `None`: an action has taken the packet.
    pub(crate) fn pass_ingress(
        &mut self,
        ifindex: u32,
        mut frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        if self.acts.ask_for_connections() {
            self.netfilter.note_connection(&mut frame, cx.now);
        }
        let tracks = self.acts.track_connections();
        if tracks {
            self.lend_connections();
        }
        let device = &mut self.devices[ifindex];
        let mut inner =
            Cx { now: cx.now, rng: &mut device.rng, drops: &mut self.drops, acts: &mut self.acts };
        let passed = device.tree.receive(frame, &mut inner);
        if tracks {
            self.take_connections_back();
        }
        for (packet, reason) in self.drops.drain() {
            self.netfilter.let_go(&packet);
            cx.out.push(Effect::gone(packet, ifindex, "ingress", reason));
        }
        if self.acts.has_sent() {
            self.send_elsewhere(cx);
        }
        passed
    }

    /// The actions may track connections until they are taken back.
    #[cold]
    pub(crate) fn lend_connections(&mut self) {
        let mut lent = self.lent.take().unwrap_or_default();
        self.netfilter.lend(&mut lent);
        self.acts.lend(Some(lent));
    }
    #[cold]
    pub(crate) fn take_connections_back(&mut self) {
        if let Some(mut lent) = self.acts.lend(None).and_then(Lent::of) {
            self.netfilter.lend(&mut lent);
            self.lent = Some(lent);
        }
    }

    /// Sends or receives what mirred has directed to other devices.
    #[cold]
    pub(crate) fn send_elsewhere(&mut self, cx: &mut HostCx<'_>) {
        let mut list = std::mem::take(&mut self.sent);
        self.acts.take_sent(&mut list);
        let answer = self.answer;
        self.depth += 1;
        for sent in list.drain(..) {
            let mut packet = cx.pool.alloc(sent.skb);
            packet.reset_ct();
            if sent.copied {
                cx.pool.note_extra(&packet);
            }
            if self.devices.get(sent.ifindex).is_none() || self.depth > ROUNDS {
                self.discard(packet, "mirred", "recursion", cx);
            } else if sent.receive {
                self.netif_receive(sent.ifindex, packet, cx);
            } else {
                self.answer = Xmit::Success;
                self.dev_queue_xmit(sent.ifindex, packet, cx);
                if matches!(self.answer, Xmit::Drop | Xmit::Cn) {
                    self.acts.sending_failed(sent.action);
                }
            }
        }
        self.depth -= 1;
        self.answer = answer;
        self.sent = list;
    }

    /// An ifb sends what its qdiscs let go: back to where mirred took it from.
    pub(crate) fn ifb_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            let Some(device) = self.devices.get_mut(ifindex) else { return };
            device.counters.rx_packets += 1;
            device.counters.rx_bytes += u64::from(packet.len);
            let from = packet.iif;
            if !packet.tc.redirected || self.devices.get(from).is_none() {
                self.devices[ifindex].counters.rx_dropped += 1;
                self.discard(packet, "ifb", "not-redirected", cx);
                continue;
            }
            (packet.tc.skip_classify, packet.tc.redirected) = (true, false);
            packet.rare_mut().nest = Default::default();
            if packet.tc.from_ingress {
                packet.iif = from;
                self.netif_receive(from, packet, cx);
            } else {
                packet.iif = ifindex;
                self.dev_queue_xmit(from, packet, cx);
            }
        }
        self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert(at.max(cx.now), Timer::Cardless(ifindex));
        }
    }

    /// Tells the actions of the devices there are, where there are any actions.
    pub(crate) fn tell_ports(&mut self) {
        if self.acts.is_empty() {
            return;
        }
        let up = |d: &crate::NetDevice| d.up && self.carrier(d);
        let ports: Vec<Port> = self
            .devices
            .iter()
            .map(|d| Port { name: d.name.clone(), ifindex: d.ifindex, up: up(d) })
            .collect();
        self.acts.set_ports(ports.into_iter());
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Net, router, udp};
    use penstock_model::{Kernel, Span, Time};

    /// Sends datagrams of 1000 bytes with their headers at once.
    fn burst(net: &mut Net, count: usize) {
        for _ in 0..count {
            net.send(0, udp("10.0.1.1", "10.0.2.1", 1000)).unwrap();
        }
    }
    fn shown(net: &mut Net, line: &str) -> String {
        let now = net.now;
        net.hosts[1].exec(line, now).stdout
    }

    #[test]
    fn an_ingress_policer_drops_and_delays_nothing() {
        for kernel in Kernel::ALL {
            let add = "tc filter add dev eth0 parent ffff: protocol ip prio 1 u32 match u32 0 0 police rate 80kbit burst 2500 drop flowid :1";
            let mut net = router(kernel, &["tc qdisc add dev eth0 handle ffff: ingress", add]);
            burst(&mut net, 5);
            // 1000 bytes without the Ethernet header, twice.
            assert_eq!((net.delivered.len(), net.dropped.len()), (2, 3), "{kernel}");
            assert_eq!(net.dropped[0], (1, "ingress", "filter"));
            let until = Time::from_ns(net.now.as_ns() + 1_000_000_000);
            net.run(until);
            burst(&mut net, 5);
            assert_eq!(net.delivered.len(), 4, "{kernel}");
            let qdisc = shown(&mut net, "tc -s qdisc show dev eth0");
            assert!(qdisc.contains("Sent 10000 bytes 10 pkt (dropped 6,"), "{qdisc}");
        }
    }

    #[test]
    fn an_ifb_shapes_what_comes_in_and_gives_it_back() {
        let mut net = router(
            Kernel::V6_12,
            &[
                "ip link add ifb7 type ifb",
                "ip link set ifb7 up",
                "tc qdisc add dev ifb7 root tbf rate 80kbit burst 1600 limit 3100",
                "tc qdisc add dev eth0 clsact",
                "tc filter add dev eth0 ingress matchall action mirred egress redirect dev ifb7",
            ],
        );
        burst(&mut net, 6);
        // One goes at once, three wait (1014 bytes each), two find the queue full.
        assert_eq!((net.delivered.len(), net.dropped.len()), (1, 2), "{:?}", net.dropped);
        let start = net.now.as_ns();
        for (ms, there) in [(40, 1), (50, 2), (140, 2), (150, 3), (260, 4), (1000, 4)] {
            net.run(Time::from_ns(start + ms * 1_000_000));
            assert_eq!(net.delivered.len(), there, "{ms} ms");
        }
        let filter = shown(&mut net, "tc -s filter show dev eth0 ingress");
        assert!(filter.contains("Sent 6000 bytes 6 pkt (dropped 0, overlimits 2"), "{filter}");
        let ifb = net.hosts[1].devices().iter().find(|d| d.name == "ifb7").unwrap().counters;
        assert_eq!((ifb.rx_packets, ifb.tx_packets, ifb.rx_dropped), (4, 4, 0));
    }

    #[test]
    fn lo_has_a_queue_where_it_is_given_one() {
        let mut net = router(
            Kernel::V6_12,
            &[
                "tc qdisc add dev lo root handle 1: prio",
                "tc qdisc add dev lo parent 1:1 handle 2: netem delay 3ms",
                "tc qdisc add dev lo clsact",
                "tc filter add dev lo egress matchall action skbedit priority 1:1",
            ],
        );
        let before = net.now;
        for _ in 0..2 {
            net.send(1, udp("10.0.1.254", "10.0.1.254", 100)).unwrap();
        }
        assert_eq!(net.delivered.len(), 0);
        net.run(before + Span::from_ms(3));
        assert_eq!(net.delivered.len(), 2);
        let qdisc = shown(&mut net, "tc -s qdisc show dev lo");
        assert!(
            qdisc.contains("qdisc netem 2: parent 1:1 limit 1000 delay 3ms\n Sent 228 bytes 2 pkt"),
            "{qdisc}"
        );
        let lo = net.hosts[1].devices().iter().next().unwrap().counters;
        assert_eq!((lo.tx_packets, lo.rx_packets), (2, 2));
        shown(&mut net, "tc filter del dev lo egress");
        shown(&mut net, "tc qdisc del dev lo root");
        net.send(1, udp("10.0.1.254", "10.0.1.254", 100)).unwrap();
        assert_eq!(net.delivered.len(), 3);
    }

    #[test]
    fn a_loop_through_a_receiving_side_ends_at_its_third_round() {
        let mut net = router(
            Kernel::V6_12,
            &[
                "ip link add d0 type dummy",
                "ip link set d0 up",
                "ip addr add 10.7.0.1/24 dev d0",
                "ip link add d1 type dummy",
                "ip link set d1 up",
                "tc qdisc add dev d0 clsact",
                "tc filter add dev d0 egress matchall action mirred ingress redirect dev d1 index 1",
                "tc qdisc add dev d1 clsact",
                "tc filter add dev d1 ingress matchall action mirred egress redirect dev d0 index 2",
            ],
        );
        net.send(1, udp("10.7.0.1", "10.7.0.2", 100)).unwrap();
        let first = shown(&mut net, "tc -s actions get action mirred index 1");
        assert!(first.contains("Sent 342 bytes 3 pkt"), "{first}");
    }

    #[test]
    fn a_command_lets_go_on_what_stands_at_a_device_without_a_card() {
        let mut net = router(
            Kernel::V6_12,
            &[
                "ip link add ifb7 type ifb",
                "ip link set ifb7 up",
                "tc qdisc add dev ifb7 root plug",
                "tc qdisc add dev eth0 clsact",
                "tc filter add dev eth0 ingress matchall action mirred egress redirect dev ifb7",
            ],
        );
        burst(&mut net, 2);
        net.run(net.now + Span::from_secs(1));
        assert_eq!(net.delivered.len(), 0);
        shown(&mut net, "tc qdisc change dev ifb7 root plug release_indefinite");
        net.run(net.now + Span::from_ms(1));
        assert_eq!(net.delivered.len(), 2);
    }

    #[test]
    fn a_mirror_copies_and_a_device_that_is_down_stops_a_redirect() {
        let mut net = router(
            Kernel::V6_12,
            &[
                "ip link add d0 type dummy",
                "tc qdisc add dev eth0 clsact",
                "tc filter add dev eth0 ingress prio 1 matchall action mirred egress mirror dev d0",
            ],
        );
        burst(&mut net, 1);
        assert_eq!(net.delivered.len(), 1);
        assert!(shown(&mut net, "tc -s filter show dev eth0 ingress").contains("overlimits 1"));
        shown(&mut net, "ip link set d0 up");
        burst(&mut net, 1);
        assert_eq!(net.delivered.len(), 2);
        assert!(shown(&mut net, "tc -s filter show dev eth0 ingress").contains("overlimits 1"));
        shown(&mut net, "ip link set d0 down");
        shown(&mut net, "tc filter replace dev eth0 ingress prio 1 handle 1 matchall action drop");
        shown(&mut net, "tc filter del dev eth0 ingress prio 1");
        shown(
            &mut net,
            "tc filter add dev eth0 ingress prio 1 matchall action mirred egress redirect dev d0",
        );
        burst(&mut net, 1);
        assert_eq!((net.delivered.len(), net.dropped.last()), (2, Some(&(1, "ingress", "filter"))));
    }

    #[test]
    fn pedit_without_csum_spoils_the_header() {
        for (csum, there) in [("", 0), (" pipe action csum ip", 1)] {
            let edit =
                format!("tc filter add dev eth1 egress matchall action pedit ex munge ip tos set 0xb8{csum}");
            let mut net = router(Kernel::V6_12, &["tc qdisc add dev eth1 clsact", &edit]);
            burst(&mut net, 1);
            assert_eq!(net.delivered.len(), there, "{:?}", net.dropped);
            match net.delivered.first() {
                Some((_, packet)) => assert_eq!(packet.tos(), 0xb8),
                None => assert_eq!(net.dropped, [(2, "ip_rcv", "bad-checksum")]),
            }
        }
    }
}
