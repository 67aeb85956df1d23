//! The packets of all flows, in chains: `struct cake_flow`'s `head` and `tail`, `dequeue_head`, `flow_queue_add`.

use penstock_packet::{Packet, Skb};

/// No packet.
pub(super) const NIL: u32 = u32::MAX;

/// A packet in its place.
struct Slot {
    packet: Option<Packet>,
    /// What it counts as on the line, bytes (`adjusted_len`).
    adjusted: u32,
    next: u32,
}

/// The packets of one flow.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    head: u32,
    tail: u32,
}

impl Chain {
    pub(super) const EMPTY: Chain = Chain { head: NIL, tail: NIL };

    pub(super) fn is_empty(self) -> bool {
        self.head == NIL
    }
    /// The place of the last packet, where there is one.
    pub(super) fn tail(self) -> u32 {
        self.tail
    }
    /// The place of the first packet.
    pub(super) fn head(self) -> u32 {
        self.head
    }
}

/// All packets.
#[derive(Default)]
pub(super) struct Store {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

impl Store {
    /// Appends a packet that counts as `adjusted` bytes on the line.
    #[inline]
    pub(super) fn push(&mut self, chain: &mut Chain, packet: Packet, adjusted: u32) {
        let slot = Slot { packet: Some(packet), adjusted, next: NIL };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at as usize] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() as u32 - 1
            }
        };
        if chain.head == NIL {
            chain.head = at;
        } else {
            self.slots[chain.tail as usize].next = at;
        }
        chain.tail = at;
    }
    /// Takes the first packet, with what it counts as.
    #[inline]
    pub(super) fn pop(&mut self, chain: &mut Chain) -> Option<(Packet, u32)> {
        let at = chain.head;
        let slot = self.slots.get_mut(at as usize)?;
        chain.head = slot.next;
        let taken = slot.packet.take().map(|packet| (packet, slot.adjusted));
        self.free.push(at);
        taken
    }
    /// Takes the packet behind the one at `before` ([`NIL`]: the first) out of a chain. It is not the last one.
    pub(super) fn unlink(&mut self, chain: &mut Chain, before: u32) -> Option<(Packet, u32)> {
        if before == NIL {
            return self.pop(chain);
        }
        let at = self.slots[before as usize].next;
        let slot = self.slots.get_mut(at as usize)?;
        let next = slot.next;
        let taken = slot.packet.take().map(|packet| (packet, slot.adjusted));
        self.slots[before as usize].next = next;
        self.free.push(at);
        taken
    }
    /// The packet at a place, and the place behind.
    pub(super) fn at(&self, at: u32) -> Option<(&Skb, u32)> {
        let slot = self.slots.get(at as usize)?;
        Some((slot.packet.as_deref()?, slot.next))
    }
    /// How many packets are in a chain.
    pub(super) fn count(&self, chain: Chain) -> u32 {
        std::iter::successors(self.at(chain.head), |&(_, next)| self.at(next)).count() as u32
    }
    /// Shows every packet.
    pub(super) fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.slots.iter().filter_map(|slot| slot.packet.as_deref()).for_each(see);
    }
}
