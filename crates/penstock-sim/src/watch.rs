//! Devices that are watched: each packet that leaves them or is lost at them, for who judges per-hop behaviours.

use crate::flow::untag;
use crate::meter::Watch;
use crate::net::Net;
use crate::results::{Carried, Watched};
use crate::spec::HostId;
use crate::world::World;
use penstock_model::Time;
use penstock_packet::{L3, Packet};

impl World {
    /// Keeps account of every packet that a device sends or loses from now on. A device that is not there is not watched.
    pub fn watch(&mut self, host: HostId, device: &str) {
        let machine = &self.net.machines[host.0 as usize];
        let ifindex = machine.host.ifindex(device);
        let nic = ifindex.and_then(|i| machine.nics.get(i as usize)).copied();
        if let Some(nic) = nic.and_then(|n| self.net.nics.get_mut(n as usize)) {
            nic.watch = Some(Box::default());
        }
    }
}

impl Net {
    /// A watched card puts a packet on the wire.
    #[cold]
    pub(crate) fn note_sent(&mut self, n: u32, packet: &Packet, begun: Time, left: Time) {
        let Some(watch) = &mut self.nics[n as usize].watch else { return };
        // ARP has no code point.
        if !matches!(packet.l3, L3::Ipv4(_) | L3::Ipv6(_)) {
            return;
        }
        #[cfg(test)]
        watch.frames.push((begun, (**packet).clone()));
        watch.sent.push(Carried {
            code: packet.tos() >> 2,
            flow: untag(packet.flow).map_or(u32::MAX, |(flow, _)| flow),
            bytes: packet.network_len(),
            arrived: packet.queued,
            begun,
            left,
        });
    }
    /// A packet is lost at a device, in its queue or before it.
    pub(crate) fn note_lost(&mut self, host: u32, ifindex: u32, packet: &Packet) {
        let nics = &self.machines[host as usize].nics;
        let Some(&n) = nics.get(ifindex as usize) else { return };
        if let Some(watch) = self.nics.get_mut(n as usize).and_then(|nic| nic.watch.as_mut()) {
            watch.lost[usize::from(packet.tos() >> 2)] += 1;
        }
    }
    /// What watched cards have seen.
    pub(crate) fn watched(&self) -> Vec<Watched> {
        let seen = self.nics.iter().filter_map(|nic| nic.watch.as_ref().map(|watch| (nic, watch)));
        seen.map(|(nic, watch)| Watched {
            host: HostId(nic.host),
            device: self.device_name(nic.host, nic.ifindex),
            sent: watch.sent.clone(),
            lost: watch.lost.to_vec(),
        })
        .collect()
    }
    /// The warm-up is over.
    pub(crate) fn forget_watched(&mut self) {
        self.nics.iter_mut().filter_map(|nic| nic.watch.as_mut()).for_each(|w| **w = Watch::default());
    }
}
