//! Devices that are watched: each packet that leaves them or is lost at them, for who judges per-hop behaviours.

use crate::net::Net;
use crate::results::Watched;
use crate::spec::HostId;
use crate::world::World;
use penstock_packet::Packet;

impl World {
    /// Keeps account of every packet that a device sends or loses from now on. A device that is not there is not watched.
    pub fn watch(&mut self, host: HostId, device: &str) {
        let machine = &self.net.machines[host.0 as usize];
        let ifindex = machine.host.ifindex(device);
        let nic = ifindex.and_then(|i| machine.nics.get(i as usize)).copied();
        if let Some(nic) = nic.and_then(|n| self.net.cables.nics.get_mut(n as usize)) {
            nic.watch = Some(Box::default());
            nic.plain = false;
        }
    }
}

impl Net {
    /// A packet is lost at a device, in its queue or before it.
    pub(crate) fn note_lost(&mut self, host: u32, ifindex: u32, packet: &Packet) {
        let nics = &self.machines[host as usize].nics;
        let Some(&n) = nics.get(ifindex as usize) else { return };
        if let Some(watch) = self.cables.nics.get_mut(n as usize).and_then(|nic| nic.watch.as_mut()) {
            watch.loses(packet);
        }
    }
    /// What watched cards have seen.
    pub(crate) fn watched(&self) -> Vec<Watched> {
        let seen = self.cables.nics.iter().filter_map(|nic| nic.watch.as_ref().map(|watch| (nic, watch)));
        seen.map(|(nic, watch)| {
            let (sent, lost) = watch.seen();
            let device = self.device_name(nic.host, nic.ifindex);
            Watched { host: HostId(nic.host), device, sent: sent.to_vec(), lost: lost.to_vec() }
        })
        .collect()
    }
}
