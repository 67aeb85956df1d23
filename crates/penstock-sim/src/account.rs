//! Every packet is accounted for: what was sent is received, lost or in flight.
//!
//! What is received and lost is counted as it happens; what is in flight is counted where it is, by walking every place that
//! holds packets. So the two can disagree, and where they do the fault is ours.
//!
//! - A packet counts by the time it was made: what the warm-up made is neither sent nor received nor lost.
//! - A datagram that was cut into fragments is one packet. Its fate is the first that one of its fragments meets: lost with
//!   the first that is lost, received when it is whole.
//! - A copy (`Role`) is not a packet of its flow: copies have a tally of their own.
//!
//! Beside the flows' packets every packet of the pool is looked for: those made and not given back are those held.

use crate::flow::{Part, untag};
use crate::meter::{InFlight, Key, key};
use crate::net::Net;
use crate::results::Extra;
use crate::sock::Owed;
use penstock_host::Effect;
use penstock_packet::{Packet, Skb};
use std::collections::BTreeSet;

impl Net {
    /// Shows every packet there is.
    pub(crate) fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        for machine in &self.machines {
            machine.host.packets(see);
            machine.cpu.backlog.iter().for_each(|(_, packet)| see(packet));
            machine.lo.waiting.iter().for_each(|packet| see(packet));
            machine.spaces.crossing.iter().for_each(|(_, _, packet)| see(packet));
        }
        self.cables.nics.iter().flat_map(|nic| &nic.queue).for_each(|packet| see(packet));
        self.cables.wires.iter().flat_map(|wire| &wire.in_flight).for_each(|(_, _, packet)| see(packet));
        for effect in self.todo.asked.iter().chain(&self.todo.spare) {
            if let Effect::Dropped { packet, .. }
            | Effect::Deliver(packet)
            | Effect::Next(_, packet)
            | Effect::Moved(packet)
            | Effect::Across { packet, .. } = effect
            {
                see(packet);
            }
        }
    }
    /// What is under way of each flow.
    pub(crate) fn in_flight(&self) -> Vec<InFlight> {
        let mut all = vec![InFlight::default(); self.meter.flows.len()];
        let mut seen: BTreeSet<Key> = BTreeSet::new();
        self.packets(&mut |skb| {
            let Some((flow, Part::Data)) = untag(skb.flow) else { return };
            if skb.created < self.meter.flows[flow as usize].since {
                return;
            }
            let (at, role) = (&mut all[flow as usize], skb.tc.role);
            if role.is_copy() {
                at.copies += 1;
            } else if role.is_fragment() {
                at.fragments += 1;
                at.packets += u64::from(!self.meter.is_decided(skb) && seen.insert(key(skb)));
            } else {
                at.packets += u64::from(skb.segments());
            }
        });
        all
    }

    /// Between two events, when no packet is in anybody's hands: forgets decided datagrams of which nothing is held, where there
    /// are many.
    pub(crate) fn forget_decided(&mut self) {
        if !self.meter.decided_many() {
            return;
        }
        let mut held = BTreeSet::new();
        self.packets(&mut |skb| {
            if skb.tc.role.is_fragment() {
                held.insert(key(skb));
            }
        });
        self.meter.forget_all_but(&held);
    }
    /// What is left of a packet that mirred has sent elsewhere.
    #[cold]
    pub(crate) fn moved(&mut self, host: u32, packet: Packet) {
        if packet.iif <= crate::index::LOOPBACK && Owed::any(&packet) {
            self.dropped_at_home(host, &packet);
        }
        self.pool.free(packet);
    }

    /// What does not add up: of each flow, device and qdisc, and of all packets together. A sentence each, with the figures;
    /// there is none but by a fault of ours.
    pub(crate) fn miscounts(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut held = 0;
        self.packets(&mut |_| held += 1);
        if self.pool.lent() != held {
            let lent = self.pool.lent();
            found.push(format!("{lent} packets were made and not given back, and {held} are somewhere"));
        }
        found.extend(self.machines.iter().flat_map(|m| m.host.miscounts()));
        for (number, in_flight) in self.in_flight().into_iter().enumerate() {
            let flow = &self.meter.flows[number];
            let (sent, received, lost) = (flow.sent_packets, flow.received_packets, flow.lost_packets);
            let under_way = in_flight.packets;
            if sent != received + lost + under_way {
                found.push(format!(
                    "flow {}: {sent} packets sent, but {received} received, {lost} lost and {under_way} in flight",
                    flow.name
                ));
            }
            let placed: u64 = flow.lost_at.iter().map(|at| at.1).sum();
            if placed != lost {
                found.push(format!("flow {}: {lost} packets lost, but {placed} at some place", flow.name));
            }
            let (copies, fragments) = self.meter.extras(number as u32, in_flight, &self.pool);
            for (what, Extra { made, received, lost, in_flight }) in
                [("copies", copies), ("fragments", fragments)]
            {
                if made != received + lost + in_flight {
                    found.push(format!(
                        "flow {}: {made} {what} made, but {received} received, {lost} lost and {in_flight} in flight",
                        flow.name
                    ));
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::meter::DECIDED;
    use crate::*;
    use penstock_host::Prefix;
    use penstock_model::{Kernel, Rate, Span, Time};

    fn ms(ms: i64) -> Time {
        Time::from_ns(ms * 1_000_000)
    }
    /// Two hosts on 1 Mbit/s and 20 ms; the first sends datagrams of `size` every 10 ms, whose qdisc is `qdisc`.
    fn line(qdisc: &str, size: u32, ring: u32) -> World {
        let mut world = World::new(1);
        let (a, b) = (world.add_host("a", Kernel::V6_12), world.add_host("b", Kernel::V6_12));
        let end = End { ring, ..End::new(a, "eth0") };
        let rate = Some(Rate::from_bit_per_s(1_000_000));
        world.add_link(LinkSpec::new(end, End::new(b, "eth0"), rate, Span::from_ms(20))).unwrap();
        for (host, text) in [(a, "10.0.0.1/24"), (b, "10.0.0.2/24")] {
            let ifindex = world.host(host).ifindex("eth0").unwrap();
            world.host_mut(host).add_address(ifindex, Prefix::parse(text).unwrap()).unwrap();
        }
        assert_eq!(world.exec(a, &format!("tc qdisc add dev eth0 root {qdisc}")).status, 0);
        let load = Load::Packets { size: Sizes::Constant(size), gap: Dist::Constant(Span::from_ms(10)) };
        world.add_flow(flow(a, b, Transport::Udp, load)).unwrap();
        world
    }
    fn flow(from: HostId, to: HostId, transport: Transport, load: Load) -> FlowSpec {
        FlowSpec {
            txtime: None,
            name: "f".to_owned(),
            group: String::new(),
            from,
            to,
            to_addr: None,
            ipv6: false,
            count: 1,
            transport,
            load,
            start: Time::ZERO,
            start_to: Time::ZERO,
            stop: None,
            tos: 0,
            mark: 0,
            port: 0,
            clock: SenderClock::default(),
            trace: false,
        }
    }

    #[test]
    fn each_fault_of_the_account_is_named_with_its_figures() {
        let mut world = line("pfifo limit 20", 4000, 0);
        world.run_quietly(ms(2000));
        assert_eq!(world.miscounts(), Vec::<String>::new());
        let flow = &mut world.net.meter.flows[0];
        let (sent, received, lost) = (flow.sent_packets, flow.received_packets, flow.lost_packets);
        flow.lost_packets += 1;
        let said = world.miscounts();
        let in_flight = sent - received - lost;
        let first = format!(
            "flow f: {sent} packets sent, but {received} received, {} lost and {in_flight} in flight",
            lost + 1
        );
        assert_eq!(said, [first, format!("flow f: {} packets lost, but {lost} at some place", lost + 1)]);
        world.net.meter.flows[0].lost_packets -= 1;
        world.net.meter.flows[0].fragments.lost += 1;
        assert_eq!(world.miscounts().len(), 1);
        world.net.meter.flows[0].fragments.lost -= 1;
        // A packet that nobody holds: its loss is told although it is of no flow.
        let packet = world.net.pool.alloc(penstock_packet::Skb::new(
            60,
            penstock_packet::L3::Other(1),
            penstock_packet::L4::None,
        ));
        drop(packet);
        let said = world.miscounts();
        assert!(said.len() == 1 && said[0].contains("packets were made and not given back"), "{said:?}");
    }

    /// A datagram is lost with its first lost fragment; the others are no more losses, in the queue, on the way or in reassembly.
    #[test]
    fn a_datagrams_fate_is_its_fragments_first() {
        let mut world = line("pfifo limit 4", 8000, 0);
        let results = world.run(ms(3000));
        let flow = &results.flows[0];
        assert_eq!(flow.sent_packets, 301);
        assert_eq!(flow.lost_packets + flow.received_packets + flow.in_flight_packets, 301);
        assert!(flow.lost_packets > 290 && flow.fragments.lost > 1000, "{flow:?}");
        // Those that wait for fragments which never come are thrown away after 30 s, and lost already.
        let before = flow.lost_packets;
        let waiting = flow.fragments.in_flight;
        let results = world.run(ms(34_000));
        let expired: u64 =
            results.drops.iter().filter(|d| d.0.reason == "timeout").map(|d| d.1.fragments).sum();
        assert!(waiting > 0 && expired > waiting / 2, "{waiting} {expired}");
        assert!(results.flows[0].lost_packets > before);
        assert_eq!(world.miscounts(), Vec::<String>::new());
    }

    /// Datagrams whose fate is known are forgotten once nothing of them is about.
    #[test]
    fn fates_are_forgotten() {
        let mut world = line("pfifo limit 4", 3000, 0);
        world.net.meter.decided.most = 1;
        for step in 1..400 {
            world.run_quietly(ms(step * 100));
            world.net.meter.decided.most = 0;
            while world.net.meter.decided.keys.len() < DECIDED {
                let n = world.net.meter.decided.keys.len() as u64;
                world.net.meter.decided.keys.insert((9999, n, Time::ZERO));
            }
        }
        world.net.forget_decided();
        // Of 31 s at most: what waits in reassembly.
        assert!(world.net.meter.decided.keys.len() < 3200, "{}", world.net.meter.decided.keys.len());
        assert!(world.net.meter.decided.keys.iter().all(|key| key.0 != 9999));
        assert_eq!(world.miscounts(), Vec::<String>::new());
    }

    /// What a card with a ring frees lets TCP send: not beside the frame that comes next, but behind it.
    #[test]
    fn a_ring_puts_one_frame_on_the_wire_at_a_time() {
        for ring in [1, 2, 5] {
            let mut world = line("pfifo limit 1000", 100, ring);
            let (a, b) = (HostId(0), HostId(1));
            let tcp = Transport::Tcp(TcpWishes { sndbuf: Some(60_000), ..TcpWishes::default() });
            for _ in 0..3 {
                world.add_flow(flow(a, b, tcp.clone(), Load::Greedy)).unwrap();
            }
            let results = world.run(ms(5000));
            let bytes: u64 = results.flows.iter().map(|f| f.received_bytes).sum();
            assert!(bytes * 8 < 5_000_000, "ring {ring}: {bytes} bytes in 5 s of 1 Mbit/s");
            assert_eq!(world.miscounts(), Vec::<String>::new());
        }
    }
}
