//! Where packets go that are not sent: each with its reason, none without. And what the calls have cost in work.

use penstock_packet::{Packet, Pool};

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
    /// A filter or its action said so.
    Filter,
    /// An action took it: what it is goes on elsewhere, and it is not lost.
    Stolen,
    /// An action sent it to the processor of a switch, which is not here.
    Trapped,
    /// It is due later than the qdisc looks ahead (fq).
    Horizon,
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
            DropReason::Filter => "filter",
            DropReason::Stolen => "stolen",
            DropReason::Trapped => "trapped",
            DropReason::Horizon => "horizon",
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

/// Dropped packets with their reasons, in order, until the caller takes them.
#[derive(Default, Debug)]
pub struct Ledger {
    entries: Vec<(Packet, DropReason)>,
    /// Work done since it was last taken.
    pub work: Work,
    /// A qdisc has taken over the pacing of a packet's socket since this was last taken (`SK_PACING_FQ`).
    pub paced: bool,
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
    /// Gives all dropped packets back to the pool.
    pub fn recycle(&mut self, pool: &mut Pool) {
        for (packet, _) in self.entries.drain(..) {
            pool.free(packet);
        }
    }
}
