//! Where packets go that are not sent: each with its reason, none without. And what the calls have cost in work.

use penstock_model::Time;
use penstock_packet::{Cutter, L4, Packet, Pool, Skb};
use std::collections::VecDeque;

/// The index of `lo`: what has come in by it, or by none, was made on this machine.
const LOOPBACK: u32 = 1;

/// Why a packet was dropped.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum DropReason {
    /// Over the qdisc's limit in packets or bytes, refused at the tail.
    Overlimit,
    /// Pushed out of a queue it was already in, to make room for another.
    Displaced,
    /// Larger than the qdisc ever sends (tbf's burst).
    TooBig,
    /// Dropped early by active queue management.
    Early,
    /// Lost on the line that the qdisc stands for (netem).
    Loss,
    /// A filter or its action said so.
    Filter,
    /// An action took it: what it is goes on elsewhere, and it is not lost.
    Stolen,
    /// An action sent it to the processor of a switch, which is not here.
    Trapped,
    /// It is due later than the qdisc looks ahead (fq).
    Horizon,
    /// It names no time of departure that the qdisc takes (etf, taprio).
    TxTimeInvalid,
    /// Its time of departure has passed while it waited (etf).
    TxTimeMissed,
    /// Its class or qdisc was deleted, changed or reset.
    Purged,
    /// No class would have it.
    Unclassified,
    /// The kind of qdisc it met can be set up but carries no packets yet.
    Unsimulated,
}

impl DropReason {
    /// The reason in a word, for records and tables.
    pub const fn as_str(self) -> &'static str {
        match self {
            DropReason::Overlimit => "overlimit",
            DropReason::Displaced => "displaced",
            DropReason::TooBig => "too-big",
            DropReason::Early => "early",
            DropReason::Loss => "loss",
            DropReason::Filter => "filter",
            DropReason::Stolen => "stolen",
            DropReason::Trapped => "trapped",
            DropReason::Horizon => "horizon",
            DropReason::TxTimeInvalid => "txtime-invalid",
            DropReason::TxTimeMissed => "txtime-missed",
            DropReason::Purged => "purged",
            DropReason::Unclassified => "unclassified",
            DropReason::Unsimulated => "unsimulated",
        }
    }
}

/// What a processor did for the packets: for who models how long that takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Work {
    /// Steps of classification: priorities of filters asked, filters of `u32` compared.
    pub steps: u64,
    /// Readings of the packet scheduler's clock (`psched_get_time`), by `cbq`, `htb` and `tbf`.
    pub clock_reads: u64,
}

/// A packet has been taken off its socket's memory while it waits in a qdisc (`skb_orphan_partial`), or was cut there into several, each with memory of
/// its own (`skb_segment`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Orphan {
    /// Its [`Skb::flow`].
    pub flow: u32,
    /// Its [`Skb::len`], as its socket sent it.
    pub len: u32,
    /// Length of what stands before its transport header: those of Ethernet and IP.
    pub header_len: u32,
    /// Its transport header.
    pub l4: L4,
    /// What has become of it.
    pub freed: Freed,
}

/// What a socket has free of a packet that still waits in a qdisc.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freed {
    /// Its memory (`skb_orphan_partial`).
    Memory,
    /// What it had of it at all: the packet that goes on is another (`skb_unshare`).
    All,
    /// The same, where its memory was free already.
    Place,
    /// Nothing: it was cut into so many packets more, each with memory of its own (`skb_segment`).
    Cut(u32),
}

/// A segment has its own share of the memory of what it was cut of; the last one's place in the host is that of the whole.
fn share(segment: &mut Skb, last: bool) {
    if let Some(s) = segment.rare_mut().segment.as_mut().filter(|_| !last) {
        s.by = Cutter::Kernel;
    }
}

/// Dropped packets with their reasons, in order, until the caller takes them.
#[derive(Default, Debug)]
pub struct Ledger {
    entries: Vec<(Packet, DropReason)>,
    /// Work done since it was last taken.
    pub work: Work,
    /// A qdisc has taken over the pacing of a packet's socket since this was last taken (`SK_PACING_FQ`).
    pub paced: bool,
    /// A qdisc has asked for the device's queue to be run (`netif_schedule_queue`), since this was last taken.
    scheduled: bool,
    /// Bytes that qdiscs above count as queued beyond those that are, modulo 2^32, as [`crate::Qdisc::displaces_untold`] has made them.
    pub(crate) untold: u32,
    /// Packets that those above go on counting as queued although they are dropped, as [`Ledger::drop_untold`] has entered them, modulo 2^32.
    pub(crate) late: u32,
    /// Copies that are to go in at the root, one after another.
    again: VecDeque<Packet>,
    /// One of them is going in.
    pub(crate) repeating: bool,
    /// Of each copy made since the pool last heard of them, the flow and when the packet was made.
    copied: Vec<(u32, Time)>,
    /// Packets of this machine's sockets that were orphaned since the caller last took note.
    orphans: Vec<Orphan>,
    /// Spent packets, of which copies are made.
    spare: Vec<Packet>,
    /// By how much packets and bytes have become more where qdiscs have cut super-packets, since the ledger was made, modulo 2^32.
    cut: Cut,
    /// Memory for the segments of one.
    segments: Vec<Packet>,
}

/// By how much super-packets that were cut into segments have become more: those above a qdisc that cuts one count it once, and learn of the rest
/// by `qdisc_tree_reduce_backlog`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Cut {
    /// Packets, modulo 2^32.
    pub(crate) packets: u32,
    /// Bytes as queues count them, modulo 2^32.
    pub(crate) bytes: u32,
    /// Packets of which those above learn, modulo 2^32: not those segments that were lost at once, of which they are told in one number with the
    /// others.
    pub(crate) told: u32,
    /// Those lost at once of which qdiscs above where they were cut have taken account, modulo 2^32.
    below: u32,
}

impl Cut {
    /// What has come since.
    pub(crate) fn since(self, before: Cut) -> Cut {
        Cut {
            packets: self.packets.wrapping_sub(before.packets),
            bytes: self.bytes.wrapping_sub(before.bytes),
            told: self.told.wrapping_sub(before.told),
            below: self.below.wrapping_sub(before.below),
        }
    }
}

impl Ledger {
    /// An empty ledger.
    pub fn new() -> Ledger {
        Ledger::default()
    }
    /// Enters one drop.
    #[inline]
    pub fn drop(&mut self, packet: Packet, reason: DropReason) {
        self.entries.push((packet, reason));
    }
    /// Enters a drop of which nobody tells those above: they go on counting the packet as queued.
    pub(crate) fn drop_untold(&mut self, packet: Packet, reason: DropReason) {
        self.late = self.late.wrapping_add(1);
        self.untold = self.untold.wrapping_add(packet.pkt_len);
        self.drop(packet, reason);
    }
    /// Cuts a super-packet into its segments (`skb_gso_segment`). Those above count it as one packet, and are told here of the others; whoever
    /// loses one of them enters it as any drop. The memory goes back by [`Ledger::segments_done`].
    #[cold]
    pub(crate) fn segment(&mut self, mut packet: Packet) -> Vec<Packet> {
        let mut segments = std::mem::take(&mut self.segments);
        let count = packet.segments() as u16;
        let whole = packet.pkt_len;
        let own = packet.iif <= LOOPBACK && packet.flow != 0 && !packet.tc.role.is_copy();
        let more = u32::from(count.saturating_sub(1));
        if own && more > 0 && !packet.tc.role.is_orphan() {
            let (len, header_len, l4) = packet.as_sent();
            self.orphans.push(Orphan {
                flow: packet.flow,
                len,
                header_len,
                l4: *l4,
                freed: Freed::Cut(more),
            });
        }
        for n in 1..count {
            let mut segment = self.copy(&packet);
            segment.tc.role.set_copy(packet.tc.role.is_copy());
            if let Some((flow, _)) = self.copied.last_mut()
                && !packet.tc.role.is_copy()
            {
                // It is lent like a copy, but is part of what was sent.
                *flow = 0;
            }
            segment.become_segment(n);
            share(&mut segment, n + 1 == count);
            segments.push(segment);
        }
        packet.become_segment(0);
        share(&mut packet, count == 1);
        segments.insert(0, packet);
        let bytes = segments.iter().fold(0, |sum: u32, s| sum.wrapping_add(s.pkt_len));
        self.cut.packets = self.cut.packets.wrapping_add(u32::from(count) - 1);
        self.cut.told = self.cut.told.wrapping_add(u32::from(count) - 1);
        self.cut.bytes = self.cut.bytes.wrapping_add(bytes.wrapping_sub(whole));
        segments
    }
    /// A qdisc is done with a packet, before which the account stood as `before`: how many segments were lost in those below it of which it has not learnt.
    #[cold]
    pub(crate) fn lost_below(&mut self, before: Cut) -> u32 {
        let in_all = self.cut.since(before);
        self.cut.below = before.below.wrapping_add(in_all.packets.wrapping_sub(in_all.told));
        in_all.below
    }
    /// So many segments were lost of which those above are not told.
    pub(crate) fn not_told(&mut self, lost: u32) {
        self.cut.told = self.cut.told.wrapping_sub(lost);
    }
    /// The segments have gone where they go; so many were lost of which those above are not told, or by the answer alone.
    pub(crate) fn segments_done(&mut self, mut memory: Vec<Packet>, lost: u32) {
        self.not_told(lost);
        memory.clear();
        self.segments = memory;
    }
    /// By how much packets and bytes have become more so far ([`Ledger::segment`]).
    #[inline]
    pub(crate) fn cut(&self) -> Cut {
        self.cut
    }
    /// A number that is another one when packets have been dropped or cut.
    #[inline]
    pub(crate) fn changes(&self) -> (usize, u32) {
        (self.entries.len(), self.cut.packets)
    }
    /// How many drops are entered.
    #[inline]
    pub fn len(&self) -> usize {
        self.entries.len()
    }
    /// Whether none is entered.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
    /// The entries.
    pub fn entries(&self) -> &[(Packet, DropReason)] {
        &self.entries
    }
    /// Takes the entries out, oldest first.
    pub fn drain(&mut self) -> impl Iterator<Item = (Packet, DropReason)> + '_ {
        self.entries.drain(..)
    }
    /// The device is to ask for packets as soon as the call at hand is over (`netif_schedule_queue`).
    pub(crate) fn schedule(&mut self) {
        self.scheduled = true;
    }
    /// Whether it is.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.scheduled
    }
    /// Whether it is; the caller sees to it.
    pub fn take_scheduled(&mut self) -> bool {
        std::mem::take(&mut self.scheduled)
    }
    /// A copy of a packet that is in a qdisc's hands, to go in at the root ([`Ledger::send_again`]).
    pub(crate) fn copy(&mut self, skb: &Skb) -> Packet {
        let mut copy = match self.spare.pop() {
            Some(mut copy) => {
                (*copy).clone_from(skb);
                copy
            }
            None => Box::new(skb.clone()),
        };
        copy.tc.role.set_copy(true);
        self.copied.push((skb.flow, skb.created));
        copy
    }
    /// The tree is to put this copy in at the root as soon as the enqueue at hand is over.
    pub(crate) fn send_again(&mut self, copy: Packet) {
        self.again.push_back(copy);
    }
    /// Whether a copy waits for that.
    #[inline]
    pub(crate) fn has_again(&self) -> bool {
        !self.again.is_empty()
    }
    /// The next such copy.
    pub(crate) fn take_again(&mut self) -> Option<Packet> {
        self.again.pop_front()
    }
    /// Whether a qdisc has made copies of which the pool does not know.
    #[inline]
    pub fn has_copied(&self) -> bool {
        !self.copied.is_empty()
    }
    /// Tells the pool of the copies that qdiscs have made, and takes memory for as many more from it.
    pub fn tell_copies(&mut self, pool: &mut Pool) {
        for (flow, created) in self.copied.drain(..) {
            self.spare.extend(pool.adopt_copy(flow, created));
        }
    }
    /// Whoever delays packets as a line does takes them off their socket's memory, which a line would not hold (`skb_orphan_partial`).
    pub fn orphan(&mut self, skb: &mut Skb) {
        if skb.iif <= LOOPBACK && skb.flow != 0 && skb.tc.role.set_orphan() {
            let (len, header_len, l4) = skb.as_sent();
            self.orphans.push(Orphan { flow: skb.flow, len, header_len, l4: *l4, freed: Freed::Memory });
        }
    }
    /// Whoever changes a packet's bytes makes another packet of it where it is a clone, as those of TCP are; the one that was is free.
    //= linux v6.12 include/linux/skbuff.h skb_unshare
    #[cold]
    pub(crate) fn unshare(&mut self, skb: &mut Skb) {
        let role = skb.tc.role;
        let clone = matches!(skb.as_sent().2, L4::Tcp(_)) && !role.is_copy() && !role.is_unshared();
        if skb.iif > LOOPBACK || skb.flow == 0 || !clone {
            return;
        }
        let piece = skb.is_noted() && skb.rare().segment.is_some_and(|s| s.by == Cutter::Kernel);
        let freed = match (piece, role.is_orphan()) {
            (true, true) => return,
            // The place of the whole is the last one's.
            (true, false) => Freed::Memory,
            (false, true) => Freed::Place,
            (false, false) => Freed::All,
        };
        skb.tc.role.set_unshared();
        let (len, header_len, l4) = skb.as_sent();
        self.orphans.push(Orphan { flow: skb.flow, len, header_len, l4: *l4, freed });
    }
    /// Whether there are any.
    #[inline]
    pub fn has_orphans(&self) -> bool {
        !self.orphans.is_empty()
    }
    /// Takes note of them.
    pub fn orphans(&mut self) -> impl Iterator<Item = Orphan> + '_ {
        self.orphans.drain(..)
    }
    /// Gives all dropped packets back to the pool, and tells it of the copies made.
    pub fn recycle(&mut self, pool: &mut Pool) {
        self.tell_copies(pool);
        self.orphans.clear();
        for (packet, _) in self.entries.drain(..) {
            pool.free(packet);
        }
    }
}
