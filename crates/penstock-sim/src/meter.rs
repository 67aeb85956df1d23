//! What is measured: losses by place, packets of watched devices, fates of datagrams in fragments.

use crate::flow::{Flow, Part, tag, untag};
use crate::results::{Carried, DropCount, Extra};
use penstock_model::{Span, Time};
use penstock_packet::{L3, Packet, Pool, Skb};
use std::collections::BTreeSet;

/// What is counted of everything that is sent.
#[derive(Default)]
pub(crate) struct Meter {
    pub(crate) flows: Vec<Flow>,
    drops: Vec<DropSlot>,
    /// Since when flows and waits are counted.
    pub(crate) counted_from: Time,
    /// Packets made before are of the warm-up.
    since: Time,
    pub(crate) decided: Decided,
}

/// Losses of one place and reason.
pub(crate) struct DropSlot {
    pub(crate) host: u32,
    pub(crate) ifindex: u32,
    pub(crate) place: &'static str,
    pub(crate) reason: &'static str,
    pub(crate) count: DropCount,
}

/// What one watched card has seen.
pub(crate) struct Watch {
    sent: Vec<Carried>,
    /// Lost packets by code point.
    lost: [u64; 64],
    /// The frames themselves, with the times they began to leave.
    #[cfg(test)]
    pub(crate) frames: Vec<(Time, Skb)>,
}

impl Default for Watch {
    fn default() -> Watch {
        Watch {
            sent: Vec::new(),
            lost: [0; 64],
            #[cfg(test)]
            frames: Vec::new(),
        }
    }
}

/// A datagram, as its fragments know it.
pub(crate) type Key = (u32, u64, Time);

pub(crate) fn key(skb: &Skb) -> Key {
    (skb.flow, skb.seq, skb.created)
}

/// Datagrams in fragments whose fate is known while fragments of them may still be about.
#[derive(Default)]
pub(crate) struct Decided {
    pub(crate) keys: BTreeSet<Key>,
    /// How many there may be before those are forgotten of which nothing is held.
    pub(crate) most: usize,
}

/// Decided datagrams before the first search for those that can be forgotten.
pub(crate) const DECIDED: usize = 4096;

/// What is under way of one flow.
#[derive(Clone, Copy, Default)]
pub(crate) struct InFlight {
    pub(crate) packets: u64,
    pub(crate) copies: u64,
    pub(crate) fragments: u64,
}

impl Meter {
    /// Adds a flow; its results are numbered in this order.
    pub(crate) fn new_flow(&mut self, name: String, from: u32, to: u32, proto: &'static str) -> u32 {
        self.flows.push(Flow::new(name, from, to, proto));
        self.flows.len() as u32 - 1
    }
    /// The same for another core: no flow and no loss yet.
    pub(crate) fn beside(&self) -> Meter {
        Meter { counted_from: self.counted_from, since: self.since, ..Meter::default() }
    }
    /// Counts the losses that another has counted; answers where each of its places stands in the table of drops.
    pub(crate) fn join_drops(&mut self, other: &Meter) -> Vec<u32> {
        let join = |theirs: &DropSlot| {
            let at = self.drop_slot(theirs.host, theirs.ifindex, theirs.place, theirs.reason);
            let mine = &mut self.drops[at].count;
            mine.packets += theirs.count.packets;
            mine.bytes += theirs.count.bytes;
            mine.fragments += theirs.count.fragments;
            mine.copies += theirs.count.copies;
            at as u32
        };
        other.drops.iter().map(join).collect()
    }
    /// Where losses of this place and reason are counted.
    fn drop_slot(&mut self, host: u32, ifindex: u32, place: &'static str, reason: &'static str) -> usize {
        let here =
            |d: &DropSlot| d.host == host && d.ifindex == ifindex && d.reason == reason && d.place == place;
        self.drops.iter().position(here).unwrap_or_else(|| {
            self.drops.push(DropSlot { host, ifindex, place, reason, count: DropCount::default() });
            self.drops.len() - 1
        })
    }
    /// Begins to count anew. Answers since when packets must be made to count.
    pub(crate) fn end_warmup(&mut self, now: Time) -> Time {
        self.flows.iter_mut().for_each(|flow| flow.end_warmup(now));
        self.drops.clear();
        self.counted_from = now;
        self.since = now + Span::from_ns(1);
        self.decided = Decided::default();
        self.since
    }
    /// The table of drops.
    pub(crate) fn drops(&self) -> &[DropSlot] {
        &self.drops
    }
    /// A packet is lost: counted by device, place and reason, and with its flow.
    pub(crate) fn lost(
        &mut self,
        host: u32,
        ifindex: u32,
        packet: &Packet,
        place: &'static str,
        reason: &'static str,
    ) {
        if packet.created < self.since {
            return;
        }
        let at = self.drop_slot(host, ifindex, place, reason);
        let (slot, role) = (&mut self.drops[at], packet.tc.role);
        slot.count.packets += u64::from(if role.is_copy() { 1 } else { packet.segments() });
        slot.count.bytes += u64::from(packet.initial_pkt_len());
        slot.count.copies += u64::from(role.is_copy());
        slot.count.fragments += u64::from(role.is_fragment() && !role.is_copy());
        self.account_lost(host, ifindex, at as u32, packet);
    }
    /// The fate of a fragment's datagram is known; whether this is the first time.
    #[cold]
    fn decide(&mut self, skb: &Skb) -> bool {
        self.decided.keys.insert(key(skb))
    }
    /// Whether so many datagrams are decided that it pays to look for those of which nothing is held.
    pub(crate) fn decided_many(&self) -> bool {
        self.decided.keys.len() >= self.decided.most.max(DECIDED)
    }
    /// Forgets decided datagrams but for these, of which something is held.
    pub(crate) fn forget_all_but(&mut self, held: &BTreeSet<Key>) {
        self.decided.keys.retain(|key| held.contains(key));
        self.decided.most = self.decided.keys.len() * 2;
    }
    /// Whether the fate of a fragment's datagram is known.
    pub(crate) fn is_decided(&self, skb: &Skb) -> bool {
        self.decided.keys.contains(&key(skb))
    }
    /// Notes the fate of a packet that was lost at a place of the table of drops.
    fn account_lost(&mut self, host: u32, ifindex: u32, slot: u32, packet: &Packet) {
        let Some((number, Part::Data)) = untag(packet.flow) else { return };
        let role = packet.tc.role;
        let flow = &mut self.flows[number as usize];
        if packet.created < flow.since {
            return;
        }
        if role.is_copy() {
            flow.copies.lost += 1;
            return;
        }
        flow.at(host, ifindex).lost_bytes += u64::from(packet.all_network_len());
        if role.is_fragment() {
            flow.fragments.lost += 1;
            if !self.decide(packet) {
                return;
            }
        }
        let flow = &mut self.flows[number as usize];
        let packets = u64::from(packet.segments());
        flow.lost_at(slot, packets);
        flow.at(host, ifindex).lost_packets += packets;
    }
    /// Notes that a packet has reached the sockets of its host; whether it is one of its flow, and neither a copy nor one that
    /// was thought lost.
    #[inline]
    pub(crate) fn received(&mut self, number: u32, packet: &Packet) -> bool {
        let role = packet.tc.role;
        if role.is_copy() || role.is_fragment() {
            return self.received_extra(number, packet);
        }
        let flow = &mut self.flows[number as usize];
        if packet.created >= flow.since {
            flow.received_packets += u64::from(packet.segments());
        }
        true
    }
    #[cold]
    fn received_extra(&mut self, number: u32, packet: &Packet) -> bool {
        let role = packet.tc.role;
        let counts = packet.created >= self.flows[number as usize].since;
        if role.is_copy() {
            self.flows[number as usize].copies.received += u64::from(counts);
            return false;
        }
        let first = self.decide(packet);
        let flow = &mut self.flows[number as usize];
        flow.fragments.received += u64::from(counts);
        flow.received_packets += u64::from(counts && first);
        first
    }
    /// What became of the copies and fragments of a flow.
    pub(crate) fn extras(&self, number: u32, in_flight: InFlight, pool: &Pool) -> (Extra, Extra) {
        let made = pool.extras(tag(number, Part::Data));
        let flow = &self.flows[number as usize];
        let copies = Extra {
            made: made.copies,
            received: flow.copies.received + made.copies_merged,
            lost: flow.copies.lost,
            in_flight: in_flight.copies,
        };
        let fragments = Extra {
            made: made.fragments,
            received: flow.fragments.received + made.merged,
            lost: flow.fragments.lost,
            in_flight: in_flight.fragments,
        };
        (copies, fragments)
    }
}

impl Watch {
    /// The card puts a packet on the wire.
    #[cold]
    pub(crate) fn sends(&mut self, packet: &Packet, begun: Time, left: Time) {
        // ARP has no code point.
        if !matches!(packet.l3, L3::Ipv4(_) | L3::Ipv6(_)) {
            return;
        }
        #[cfg(test)]
        self.frames.push((begun, (**packet).clone()));
        self.sent.push(Carried {
            code: packet.tos() >> 2,
            flow: untag(packet.flow).map_or(u32::MAX, |(flow, _)| flow),
            bytes: packet.network_len(),
            arrived: packet.queued,
            begun,
            left,
        });
    }
    /// A packet is lost at the device, in its queue or before it.
    pub(crate) fn loses(&mut self, packet: &Packet) {
        self.lost[usize::from(packet.tos() >> 2)] += 1;
    }
    /// What it has seen: packets sent, and losses by code point.
    pub(crate) fn seen(&self) -> (&[Carried], &[u64]) {
        (&self.sent, &self.lost)
    }
}
