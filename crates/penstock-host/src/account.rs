//! Where every packet is that a machine holds, and whether its devices account for all that they were given.

use crate::proxy::Waiting;
use crate::{Effect, Host};
use penstock_packet::Skb;

impl Host {
    /// Shows every packet that is somewhere inside: in qdiscs, waiting for ARP, for its answer by a proxy or for the rest of its datagram, or lost by
    /// a command and not yet fetched ([`Host::take_effects`]).
    pub fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        for device in self.devices.iter() {
            device.tree.packets(see);
        }
        self.teql_packets().for_each(|packet| see(packet));
        self.wireguard_packets().for_each(|packet| see(packet));
        self.neigh.iter().flat_map(|neigh| &neigh.queue).for_each(|packet| see(packet));
        self.waiting.iter().flat_map(Waiting::packets).for_each(|packet| see(packet));
        self.frags.packets().for_each(|packet| see(packet));
        let six = self.six.frags.packets().chain(self.six.tracked_frags.packets());
        six.for_each(|packet| see(packet));
        self.drops.entries().iter().for_each(|(packet, _)| see(packet));
        for effect in &self.pending {
            if let Effect::Dropped { packet, .. }
            | Effect::Next(_, packet)
            | Effect::Deliver(packet)
            | Effect::Moved(packet)
            | Effect::Across { packet, .. } = effect
            {
                see(packet);
            }
        }
        self.spaces.hosts.iter().for_each(|other| other.packets(see));
    }
    /// How many these are; of a datagram that is not whole each fragment.
    pub fn held_packets(&self) -> u32 {
        let mut held = 0;
        self.packets(&mut |_| held += 1);
        held
    }
    /// What does not add up of the qdiscs of its devices: what each was given, gave on, dropped and holds, and
    /// whether classes show the sum of those below them. A sentence each, naming device and figures; there is none but by a fault of ours.
    pub fn miscounts(&self) -> Vec<String> {
        let mut found = Vec::new();
        for device in self.devices.iter() {
            let bad = device.tree.miscounts();
            let classes = device.tree.class_miscounts();
            let said = bad.iter().map(ToString::to_string).chain(classes);
            found.extend(said.map(|m| format!("{} {}: {m}", self.name, device.name)));
        }
        found.extend(self.spaces.hosts.iter().flat_map(Host::miscounts));
        found
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{Net, routed, udp};
    use penstock_model::{Kernel, Time};

    fn shown(net: &mut Net, line: &str) {
        let said = net.hosts[1].exec(line, net.now);
        assert_eq!((said.status, said.stderr.as_str()), (0, ""), "{line}");
    }
    /// The router of three machines; ARP has been done.
    fn router() -> Net {
        let mut net = routed(Kernel::V6_12);
        net.send(0, udp("10.0.1.1", "10.0.2.1", 100)).unwrap();
        net.run(Time::from_ns(100_000_000));
        net.delivered.clear();
        net
    }

    #[test]
    fn what_mirred_moves_is_one_packet() {
        let mut net = router();
        shown(&mut net, "tc qdisc add dev eth0 clsact");
        shown(&mut net, "ip link add ifb0 type ifb");
        shown(&mut net, "ip link set ifb0 up");
        let redirect = "action mirred egress redirect dev ifb0";
        shown(&mut net, &format!("tc filter add dev eth0 ingress prio 1 matchall {redirect}"));
        net.send(0, udp("10.0.1.1", "10.0.2.1", 100)).unwrap();
        net.run(Time::from_ns(300_000_000));
        assert_eq!((net.delivered.len(), net.dropped.len()), (1, 0));
        assert!(!net.delivered[0].1.tc.role.is_copy());
        assert_eq!(net.hosts[1].miscounts(), Vec::<String>::new());
    }

    /// fq keeps its watchdog when it is emptied: asked for ever at one moment, nothing would end.
    #[test]
    fn a_device_that_is_down_wants_no_waking() {
        let mut net = router();
        shown(&mut net, "tc qdisc add dev eth1 root fq maxrate 8kbit");
        for _ in 0..4 {
            net.send(1, udp("10.0.2.254", "10.0.2.1", 1400)).unwrap();
        }
        assert!(net.hosts[1].next_wakeup(3).is_some());
        shown(&mut net, "ip link set eth1 down");
        assert!(net.hosts[1].device(3).unwrap().tree.next_wakeup().is_some());
        assert_eq!(net.hosts[1].next_wakeup(3), None);
    }
}
