//! What each of these queues holds: packets in order, their IP bytes, and the counters.

use crate::ledger::{DropReason, Ledger};
use crate::qdisc::Cx;
use crate::queue::Queue;
use penstock_model::Stats;
use penstock_packet::{Packet, Skb};

/// Packets and counters.
#[derive(Default, Debug)]
pub(super) struct Held {
    queue: Queue,
    /// IP bytes queued.
    bytes: u32,
    stats: Stats,
}

impl Held {
    /// Shows all packets.
    pub(super) fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.queue.iter().for_each(|packet| see(packet));
    }
    /// Packets.
    pub(super) fn len(&self) -> u32 {
        self.queue.len()
    }
    /// IP bytes.
    pub(super) fn bytes(&self) -> u32 {
        self.bytes
    }
    /// Appends a packet.
    pub(super) fn push(&mut self, packet: Packet) {
        self.bytes += packet.network_len();
        self.queue.push_tail(packet);
    }
    /// Takes the first packet, to drop it.
    pub(super) fn take(&mut self) -> Option<Packet> {
        self.remove(0)
    }
    /// Takes the packet at a place, the first being 0, to drop it.
    pub(super) fn remove(&mut self, at: u32) -> Option<Packet> {
        let packet = if at == 0 { self.queue.pop_head() } else { self.queue.remove(at) }?;
        self.bytes -= packet.network_len();
        Some(packet)
    }
    /// Takes the first packet, to send it.
    pub(super) fn send(&mut self) -> Option<Packet> {
        let packet = self.take()?;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += 1;
        Some(packet)
    }
    /// Drops a packet that is not queued, or no longer.
    pub(super) fn discard(&mut self, packet: Packet, reason: DropReason, drops: &mut Ledger) {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        drops.drop(packet, reason);
    }
    /// The first packet.
    pub(super) fn head(&self) -> Option<&Packet> {
        self.queue.head()
    }
    /// Empties it onto the ledger.
    pub(super) fn purge(&mut self, cx: &mut Cx<'_>) {
        self.bytes = 0;
        self.queue.purge(cx);
    }
    /// Counters.
    pub(super) fn stats(&self) -> Stats {
        Stats { qlen: self.queue.len(), backlog: self.queue.backlog(), ..self.stats }
    }
}
