//! Traffic conditioners (RFC 2475 section 2.3.3) in front of devices: what Linux has not, for experiments that want it.

use crate::{Effect, Host, HostCx};
use penstock_model::Rng;
use penstock_packet::{L3, Packet};
use penstock_sched::meter::{Conditioner, Mark};

/// A conditioner on a device, with what it has seen.
#[derive(Clone, Debug)]
pub struct Conditioned {
    /// The device packets leave by.
    pub ifindex: u32,
    /// What it does.
    pub conditioner: Conditioner,
    /// Packets that were green, yellow and red.
    pub packets: [u64; 3],
    rng: Rng,
}

impl Host {
    /// Puts a conditioner in front of a device, behind those that are there: packets meet it before filters and queues. A device that is not there
    /// has none.
    pub fn add_conditioner(&mut self, dev: &str, conditioner: Conditioner) {
        let Some(ifindex) = self.ifindex(dev) else { return };
        let rng = Rng::named(self.seed, &format!("{}/{dev}/meter/{}", self.name, self.conditioners.len()));
        self.conditioners.push(Conditioned { ifindex, conditioner, packets: [0; 3], rng });
    }
    /// Its conditioners.
    pub fn conditioners(&self) -> &[Conditioned] {
        &self.conditioners
    }
    /// Takes a packet through those of a device; `None` where one of them drops it.
    #[cold]
    pub(crate) fn condition(
        &mut self,
        ifindex: u32,
        mut packet: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        const ECN: u8 = 3;
        for c in self.conditioners.iter_mut().filter(|c| c.ifindex == ifindex) {
            let bytes = packet.network_len();
            let field = match &mut packet.l3 {
                L3::Ipv4(h) => &mut h.tos,
                L3::Ipv6(h) => &mut h.traffic_class,
                _ => return Some(packet),
            };
            let Some((color, mark)) = c.conditioner.judge(*field >> 2, bytes, cx.now, &mut c.rng) else {
                continue;
            };
            c.packets[color as usize] += 1;
            match mark {
                Mark::Keep => {}
                Mark::Dscp(dscp) => *field = *field & ECN | dscp << 2,
                Mark::Drop => {
                    cx.out.push(Effect::Dropped { packet, ifindex, place: "meter", reason: color.name() });
                    return None;
                }
            }
        }
        Some(packet)
    }
}

#[cfg(test)]
mod tests {
    use crate::tests::{routed, udp};
    use penstock_model::{Kernel, Rate, Time};
    use penstock_sched::meter::{Conditioner, Mark, Meter, SrTcm};

    #[test]
    fn a_router_marks_what_keeps_to_its_rate_and_drops_the_rest() {
        let mut net = routed(Kernel::V6_12);
        net.send(0, udp("10.0.1.1", "10.0.2.1", 100)).unwrap();
        net.run(Time::from_ns(100_000_000));
        net.delivered.clear();
        let meter = Meter::SrTcm(SrTcm::new(Rate::from_bytes_per_s(1000), 2500, 1000));
        let marks = [Mark::Dscp(10), Mark::Dscp(12), Mark::Drop];
        net.hosts[1].add_conditioner("eth1", Conditioner { dscp: Vec::new(), aware: false, meter, marks });
        for _ in 0..5 {
            net.send(0, udp("10.0.1.1", "10.0.2.1", 1000)).unwrap();
        }
        let tos: Vec<u8> = net.delivered.iter().map(|(_, p)| p.tos()).collect();
        assert_eq!(tos, [10 << 2, 10 << 2, 12 << 2]);
        assert_eq!(net.dropped, [(1, "meter", "red"); 2]);
        assert_eq!(net.hosts[1].conditioners()[0].packets, [2, 1, 2]);
    }
}
