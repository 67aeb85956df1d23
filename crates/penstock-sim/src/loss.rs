//! Losses: counted by device, place and reason, and with their flows.

use crate::index::LOOPBACK;
use crate::meter::DropSlot;
use crate::net::Net;
use crate::results::{DropCount, DropKey};
use crate::sock::Owed;
use crate::spec::HostId;
use penstock_packet::Packet;
use std::collections::BTreeMap;

impl Net {
    /// A packet is lost at no device in particular.
    pub(crate) fn lost_at(&mut self, host: u32, packet: Packet, place: &'static str, reason: &'static str) {
        self.lost_on(host, 0, packet, place, reason);
    }
    /// A packet is lost: counted by device, place and reason, and with its flow.
    pub(crate) fn lost_on(
        &mut self,
        host: u32,
        ifindex: u32,
        packet: Packet,
        place: &'static str,
        reason: &'static str,
    ) {
        if ifindex > 0 {
            let now = self.queue.now();
            if let Some(tap) = self.machines[host as usize].host.tap(ifindex) {
                tap.loses(now, &packet, place, reason);
            }
        }
        if ifindex > 0 && self.captured {
            self.capture_lost(host, ifindex, &packet, place, reason);
        }
        // What a meter drops has not come to the device.
        if ifindex > 0 && place != "meter" {
            self.note_lost(host, ifindex, &packet);
        }
        self.meter.lost(host, ifindex, &packet, place, reason);
        // What was lost on the link has left its socket's memory, or leaves it when it is sent.
        if packet.iif <= LOOPBACK && Owed::any(&packet) && !matches!(place, "link" | "cpu" | "socket") {
            self.dropped_at_home(host, &packet);
        }
        self.pool.free(packet);
    }
    /// All losses so far.
    pub(crate) fn drops(&self) -> BTreeMap<DropKey, DropCount> {
        let mut all: BTreeMap<DropKey, DropCount> = BTreeMap::new();
        for slot in self.meter.drops() {
            // Devices that are gone share a name: none.
            let count = all.entry(self.drop_key(slot)).or_default();
            count.packets += slot.count.packets;
            count.bytes += slot.count.bytes;
            count.fragments += slot.count.fragments;
            count.copies += slot.count.copies;
        }
        all
    }
    fn drop_key(&self, d: &DropSlot) -> DropKey {
        let device = self.device_name(d.host, d.ifindex);
        DropKey { host: HostId(d.host), device, place: d.place, reason: d.reason }
    }
    /// Losses by the places of the table of drops, named.
    pub(crate) fn named_losses(&self, lost_at: &[(u32, u64)]) -> Vec<(DropKey, u64)> {
        let mut named: BTreeMap<DropKey, u64> = BTreeMap::new();
        for &(slot, packets) in lost_at {
            *named.entry(self.drop_key(&self.meter.drops()[slot as usize])).or_default() += packets;
        }
        named.into_iter().collect()
    }
}
