//! Spent packets, kept for reuse, and the account of those that are out.

use crate::carried::Carried;
use crate::headers::{L3, L4};
use crate::skb::{Packet, Sender, Skb, TcNote};
use penstock_model::{Handle, Time};
use std::collections::BTreeMap;

/// What a packet points to that carries another.
type Memory = Box<Carried>;

/// Spent packets, kept for reuse: in the steady state nothing is allocated per packet. It counts those that are lent out, and
/// what was made of packets beside those that were sent.
#[derive(Default, Debug)]
pub struct Pool {
    spent: Vec<Packet>,
    /// Memory for what tunnels carry.
    spare: Vec<Memory>,
    /// Made and not given back.
    lent: u64,
    /// Packets made before are not counted among the extras.
    since: Time,
    extras: BTreeMap<u32, Extras>,
}

/// What was made of the packets of one flow ([`Skb::flow`]) beside those that were sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extras {
    /// Fragments, the first of each datagram included.
    pub fragments: u64,
    /// Fragments that have become part of a whole datagram again.
    pub merged: u64,
    /// Copies, in packets: one that is cut into fragments counts as so many.
    pub copies: u64,
    /// Copies that have become part of a whole datagram again.
    pub copies_merged: u64,
}

impl Pool {
    /// An empty pool.
    pub fn new() -> Pool {
        Pool::default()
    }
    /// [`Skb::new`] in reused memory where there is some.
    #[inline]
    pub fn make(&mut self, len: u32, l3: L3, l4: L4) -> Packet {
        self.lent = self.lent.wrapping_add(1);
        let Some(mut packet) = self.spent.pop() else { return Box::new(Skb::new(len, l3, l4)) };
        // Field by field: to build one and to move it here would cost twice as much.
        (packet.len, packet.pkt_len, packet.priority, packet.mark) = (len, len, 0, 0);
        (packet.flow, packet.seq, packet.created, packet.queued) = (0, 0, Time::ZERO, Time::ZERO);
        (packet.iif, packet.eth, packet.classid) = (0, ([0; 6], [0; 6]), Handle::UNSPEC);
        packet.l3 = l3;
        packet.l4 = l4;
        packet.sender = Sender::default();
        packet.tc = TcNote::default();
        packet
    }
    /// A packet with these contents, in reused memory where there is some.
    #[inline]
    pub fn alloc(&mut self, skb: Skb) -> Packet {
        self.lent = self.lent.wrapping_add(1);
        match self.spent.pop() {
            Some(mut packet) => {
                let rare = std::mem::take(&mut packet.rare);
                *packet = skb;
                if packet.rare.0.is_none() {
                    packet.rare = rare;
                }
                packet
            }
            None => Box::new(skb),
        }
    }
    /// Segment number `n` of a super-packet, in reused memory where there is some.
    #[cold]
    pub fn segment(&mut self, whole: &Skb, n: u16) -> Packet {
        let mut packet = self.make(0, L3::Other(0), L4::None);
        let memory = std::mem::take(&mut packet.rare);
        *packet = whole.with(memory);
        packet.rare_mut().clone_from(whole.rare());
        packet.become_segment(n);
        if n > 0 && packet.tc.role.is_copy() {
            self.note_extra(&packet);
        }
        packet
    }
    /// Takes a spent packet back.
    #[inline]
    pub fn free(&mut self, packet: Packet) {
        // A packet of another's making may be given back too: who asks for the count does without such.
        self.lent = self.lent.wrapping_sub(1);
        self.spent.push(packet);
    }
    /// Memory for what a tunnel carries.
    pub fn carried(&mut self) -> Box<Carried> {
        self.spare.pop().unwrap_or_default()
    }
    /// Takes such memory back.
    pub fn free_carried(&mut self, memory: Box<Carried>) {
        self.spare.push(memory);
    }
    /// Takes a packet back whose contents go on elsewhere: into the pool of another core.
    #[inline]
    pub fn hand_over(&mut self, mut packet: Packet) -> Skb {
        let skb = std::mem::replace(&mut *packet, Skb::new(0, L3::Other(0), L4::None));
        self.free(packet);
        skb
    }
    /// An empty pool that counts extras of the same packets as this one.
    pub fn beside(&self) -> Pool {
        Pool { since: self.since, ..Pool::default() }
    }
    /// Counts what another pool has counted, too: what was lent here may have been given back there.
    pub fn join(&mut self, other: Pool) {
        self.lent = self.lent.wrapping_add(other.lent);
        for (flow, more) in other.extras {
            let extras = self.extras.entry(flow).or_default();
            extras.fragments += more.fragments;
            extras.merged += more.merged;
            extras.copies += more.copies;
            extras.copies_merged += more.copies_merged;
        }
    }
    /// Packets that were made here and have not been given back.
    pub fn lent(&self) -> u64 {
        self.lent
    }

    /// A packet is made beside those that were sent: a copy, a fragment, or a fragment of a copy.
    pub fn note_extra(&mut self, skb: &Skb) {
        let role = skb.tc.role;
        let Some(extras) = self.extras_of(skb) else { return };
        match role.is_copy() {
            true => extras.copies += 1,
            false => extras.fragments += u64::from(role.is_fragment()),
        }
    }
    /// A copy was made elsewhere of a packet of this flow, made then: it counts as lent, and among the extras. Gives memory for the next
    /// copy, where there is some.
    pub fn adopt_copy(&mut self, flow: u32, created: Time) -> Option<Packet> {
        self.lent = self.lent.wrapping_add(1);
        if flow != 0 && created >= self.since {
            self.extras.entry(flow).or_default().copies += 1;
        }
        self.spent.pop()
    }
    /// Such a packet becomes part of another.
    pub fn note_merged(&mut self, skb: &Skb) {
        let role = skb.tc.role;
        let Some(extras) = self.extras_of(skb) else { return };
        match role.is_copy() {
            true => extras.copies_merged += 1,
            false => extras.merged += u64::from(role.is_fragment()),
        }
    }
    fn extras_of(&mut self, skb: &Skb) -> Option<&mut Extras> {
        (skb.flow != 0 && skb.created >= self.since).then(|| self.extras.entry(skb.flow).or_default())
    }
    /// What was made beside the packets of this [`Skb::flow`] that were sent.
    pub fn extras(&self, flow: u32) -> Extras {
        self.extras.get(&flow).copied().unwrap_or_default()
    }
    /// Counts extras anew, of packets that are made from `since` on.
    pub fn count_extras_since(&mut self, since: Time) {
        self.since = since;
        self.extras.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::skb::Rare;

    #[test]
    fn a_packet_goes_from_one_pool_to_another() {
        let (mut here, mut last) = (Pool::new(), Pool::new());
        let mut there = here.beside();
        let mut packet = here.alloc(Skb { seq: 7, flow: 3, ..Skb::new(100, L3::Other(5), L4::None) });
        packet.rare_mut().vlan = Some((0x8100, 5));
        packet.tc.role.set_copy(true);
        there.note_extra(&packet);
        let was = format!("{packet:?}");
        let skb = here.hand_over(packet);
        let again = there.alloc(skb);
        assert_eq!((format!("{again:?}"), here.lent(), there.lent()), (was, 0, 1));
        // The memory stays where it was.
        assert_eq!(
            format!("{:?}", here.make(60, L3::Other(1), L4::None).rare()),
            format!("{:?}", Rare::NONE)
        );
        there.free(again);
        last.join(here);
        last.join(there);
        assert_eq!((last.lent(), last.extras(3).copies), (1, 1));
    }

    #[test]
    fn the_pool_counts_what_is_out_and_what_is_made_of_it() {
        let mut pool = Pool::new();
        let own = pool.make(60, L3::Other(1), L4::None);
        let mut sent = pool.alloc(Skb { flow: 3, created: Time::from_ns(5), ..(*own).clone() });
        sent.tc.role.set_fragment();
        let mut copy = (*sent).clone();
        copy.tc.role.set_copy(true);
        let early = Skb { created: Time::ZERO, ..(*sent).clone() };
        pool.count_extras_since(Time::from_ns(5));
        // What belongs to no flow, or was made before, counts for none; a copy's fragments are copies.
        for skb in [&*own, &*sent, &copy, &early] {
            pool.note_extra(skb);
            pool.note_merged(skb);
        }
        pool.note_extra(&copy);
        let counted = Extras { fragments: 1, merged: 1, copies: 2, copies_merged: 1 };
        assert_eq!(pool.extras(3), counted);
        assert_eq!((pool.extras(0), pool.lent()), (Extras::default(), 2));
        pool.free(own);
        pool.free(sent);
        assert_eq!(pool.lent(), 0);
    }
}
