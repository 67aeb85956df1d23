//! A first-in-first-out queue with the counters every qdisc keeps: what `sch->q`, `sch->qstats` and
//! `sch->bstats` are to the fifos.
//!
//! Follows: linux v6.12 and v2.6.35 `include/net/sch_generic.h` `qdisc_enqueue_tail`, `qdisc_dequeue_head`,
//! `qdisc_reset_queue`.

use crate::ledger::DropReason;
use crate::qdisc::Cx;
use penstock_packet::Packet;
use std::collections::VecDeque;

/// Packets in order, and their bytes.
#[derive(Default, Debug)]
pub struct Queue {
    packets: VecDeque<Packet>,
    backlog: u32,
}

impl Queue {
    /// Appends a packet.
    #[inline]
    pub fn push_tail(&mut self, packet: Packet) {
        self.backlog += packet.pkt_len;
        self.packets.push_back(packet);
    }
    /// Takes the first packet.
    #[inline]
    pub fn pop_head(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.backlog -= packet.pkt_len;
        Some(packet)
    }
    /// Takes the last packet.
    #[inline]
    pub fn pop_tail(&mut self) -> Option<Packet> {
        let packet = self.packets.pop_back()?;
        self.backlog -= packet.pkt_len;
        Some(packet)
    }
    /// Takes the packet at a place, the first being 0.
    pub fn remove(&mut self, at: u32) -> Option<Packet> {
        let packet = self.packets.remove(at as usize)?;
        self.backlog -= packet.pkt_len;
        Some(packet)
    }
    /// The packet at a place, the first being 0.
    pub fn get(&self, at: u32) -> Option<&Packet> {
        self.packets.get(at as usize)
    }
    /// The first packet.
    #[inline]
    pub fn head(&self) -> Option<&Packet> {
        self.packets.front()
    }
    /// All packets, the first first.
    pub fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.packets.iter()
    }
    /// Packets.
    #[inline]
    pub fn len(&self) -> u32 {
        self.packets.len() as u32
    }
    /// Whether there is none.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
    /// Bytes.
    #[inline]
    pub fn backlog(&self) -> u32 {
        self.backlog
    }
    /// Puts all packets on the ledger as purged.
    pub fn purge(&mut self, cx: &mut Cx<'_>) {
        self.backlog = 0;
        for packet in self.packets.drain(..) {
            cx.drops.drop(packet, DropReason::Purged);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, packet};

    #[test]
    fn keeps_order_and_bytes() {
        let mut bench = Bench::new();
        let mut q = Queue::default();
        for (seq, len) in [(0, 100), (1, 200), (2, 300)] {
            q.push_tail(packet(seq, len));
        }
        assert_eq!((q.len(), q.backlog()), (3, 600));
        assert_eq!(q.pop_head().map(|p| p.seq), Some(0));
        assert_eq!(q.pop_tail().map(|p| p.seq), Some(2));
        q.purge(&mut bench.cx(0));
        assert_eq!((q.len(), q.backlog(), bench.drops.len()), (0, 0, 1));
    }
}
