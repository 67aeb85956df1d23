//! `skbprio`: a queue for each of 64 priorities; when all is full the lowest loses a packet.
//!
//! Follows: linux v6.12 `net/sched/sch_skbprio.c`.
//! Those above are told of a packet that takes another's place by the answer alone (`NET_XMIT_CN`), not of the lengths of the two: the backlog that
//! they show drifts, as there.
//! Differs: none known.

use super::KindSpec;
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Init, Qdisc, Xmit};
use crate::queue::Queue;
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "skbprio",
    about: "64 priorities in strict order; when it is full, the lowest loses a packet",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Flows,
        sorting: Sorting::Own,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Bands,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

/// `SKBPRIO_MAX_PRIORITY`.
const PRIORITIES: usize = 64;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut skbprio = Skbprio {
        handle: init.handle,
        limit: 64,
        bands: std::iter::repeat_with(Band::default).take(PRIORITIES).collect(),
        highest: 0,
        lowest: PRIORITIES - 1,
        queued: 0,
        backlog: 0,
        peeked: None,
        stats: Stats::default(),
    };
    skbprio.change(options, cx)?;
    Ok(Box::new(skbprio))
}

/// The packets of one priority.
#[derive(Default, Debug)]
struct Band {
    queue: Queue,
    /// `drops` and `overlimits`, which are the same.
    drops: u32,
}

/// The qdisc.
#[derive(Debug)]
pub struct Skbprio {
    // Parameters
    handle: Handle,
    /// Packets.
    limit: u32,
    // Variables
    bands: Vec<Band>,
    /// The highest priority with packets; 0 where there are none.
    highest: usize,
    /// The lowest; 63 where there are none.
    lowest: usize,
    /// Packets in the bands.
    queued: u32,
    /// Their bytes.
    backlog: u32,
    /// What a parent has looked at: out of its band, and still queued.
    peeked: Option<Packet>,
    stats: Stats,
}

impl Skbprio {
    fn push(&mut self, packet: Packet, priority: usize) {
        self.queued += 1;
        self.backlog += packet.pkt_len;
        self.bands[priority].queue.push_tail(packet);
    }
    fn refuse(&mut self, packet: Packet, priority: usize, reason: DropReason, cx: &mut Cx<'_>) {
        self.bands[priority].drops = self.bands[priority].drops.wrapping_add(1);
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, reason);
    }
    /// Whether nothing of this priority waits.
    fn is_empty(&self, priority: usize) -> bool {
        self.bands[priority].queue.is_empty()
    }
    /// `skbprio_dequeue`.
    fn take(&mut self) -> Option<Packet> {
        let packet = self.bands[self.highest].queue.pop_head()?;
        self.queued -= 1;
        self.backlog -= packet.pkt_len;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        if self.is_empty(self.highest) {
            if self.lowest == self.highest {
                (self.highest, self.lowest) = (0, PRIORITIES - 1);
            } else {
                // `calc_new_high_prio`
                let below = (self.lowest..self.highest).rev();
                self.highest = below.into_iter().find(|&p| !self.is_empty(p)).unwrap_or(0);
            }
        }
        Some(packet)
    }
}

impl Qdisc for Skbprio {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let priority = (packet.priority as usize).min(PRIORITIES - 1);
        if self.qlen() < self.limit {
            self.push(packet, priority);
            self.highest = self.highest.max(priority);
            self.lowest = self.lowest.min(priority);
            return Xmit::Success;
        }
        let lowest = self.lowest;
        if priority <= lowest {
            self.refuse(packet, priority, DropReason::Overlimit, cx);
            return Xmit::Drop;
        }
        self.push(packet, priority);
        if let Some(last) = self.bands[lowest].queue.pop_tail() {
            self.queued -= 1;
            self.backlog -= last.pkt_len;
            self.refuse(last, lowest, DropReason::Displaced, cx);
        }
        if self.is_empty(lowest) {
            if lowest == self.highest {
                (self.highest, self.lowest) = (priority, priority);
            } else {
                // `calc_new_low_prio`: up to the highest as it was.
                let above = (lowest + 1..=self.highest).find(|&p| !self.is_empty(p));
                self.lowest = above.unwrap_or(PRIORITIES - 1);
            }
        }
        self.highest = self.highest.max(priority);
        Xmit::Cn
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        self.peeked.take().or_else(|| self.take())
    }
    /// `qdisc_peek_dequeued`: a dequeue's work; the packet counts as queued until it goes.
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            self.peeked = self.take();
        }
        self.peeked.as_ref()
    }
    fn never_wakes(&self) -> bool {
        true
    }
    fn displaces_untold(&self) -> bool {
        true
    }
    /// What is queued stays, however many.
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        if let Some(o) = options {
            self.limit = o.u32("limit").unwrap_or(0);
        }
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        for band in &mut self.bands {
            band.queue.purge(cx);
            band.drops = 0;
        }
        (self.highest, self.lowest, self.queued, self.backlog) = (0, PRIORITIES - 1, 0, 0);
    }
    fn stats(&self) -> Stats {
        let peeked = self.peeked.as_ref().map_or(0, |p| p.pkt_len);
        Stats { qlen: self.qlen(), backlog: self.backlog + peeked, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.queued + u32::from(self.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.bands
            .iter()
            .flat_map(|band| band.queue.iter())
            .chain(&self.peeked)
            .for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        Options::new().with("limit", self.limit)
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

/// Classes 1 to 64, which are shown and nothing else.
impl Classful for Skbprio {
    fn find(&self, _: Handle) -> bool {
        false
    }
    /// The kernel counts no packets by priority.
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        for (band, minor) in self.bands.iter().zip(1..) {
            visit(ClassDump {
                kind: SPEC.id,
                classid: Handle::new(self.handle.major(), minor),
                parent: self.handle,
                leaf: None,
                options: Options::new(),
                counters: Counters::Queue,
                stats: Stats {
                    backlog: band.queue.backlog(),
                    drops: band.drops,
                    overlimits: band.drops,
                    ..Stats::default()
                },
                xstats: None,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};

    fn queue(limit: u32, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let o = Options::new().with("limit", limit);
        build(&init, Some(&o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }

    fn give(q: &mut dyn Qdisc, bench: &mut Bench, seq: u64, priority: u32) -> Xmit {
        let mut p = packet(seq, 100);
        p.priority = priority;
        q.enqueue(p, &mut bench.cx(0))
    }

    #[test]
    fn the_highest_goes_first_and_the_lowest_loses() {
        let mut bench = Bench::new();
        let mut q = queue(3, &mut bench);
        for (seq, priority) in [(0, 5), (1, 1), (2, 5)] {
            assert_eq!(give(&mut *q, &mut bench, seq, priority), Xmit::Success);
        }
        assert_eq!(give(&mut *q, &mut bench, 3, 1), Xmit::Drop);
        assert_eq!(give(&mut *q, &mut bench, 4, 900), Xmit::Cn);
        assert_eq!(bench.dropped(), [(3, DropReason::Overlimit), (1, DropReason::Displaced)]);
        assert_eq!(give(&mut *q, &mut bench, 5, 6), Xmit::Cn, "the youngest of the lowest goes");
        assert_eq!(bench.dropped(), [(2, DropReason::Displaced)]);
        let order: Vec<u64> = std::iter::from_fn(|| q.dequeue(&mut bench.cx(0))).map(|p| p.seq).collect();
        assert_eq!((order, q.qlen(), q.stats().drops), (vec![4, 5, 0], 0, 3));
        assert_eq!(give(&mut *q, &mut bench, 6, 0), Xmit::Success);
        assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(6));
    }

    #[test]
    fn what_was_looked_at_stays_the_next_and_fills_the_queue() {
        let mut bench = Bench::new();
        let mut q = queue(2, &mut bench);
        give(&mut *q, &mut bench, 0, 1);
        assert_eq!(q.peek(&mut bench.cx(0)).map(|p| p.seq), Some(0));
        assert_eq!(give(&mut *q, &mut bench, 1, 2), Xmit::Success);
        assert_eq!(give(&mut *q, &mut bench, 2, 9), Xmit::Cn);
        let order: Vec<u64> = std::iter::from_fn(|| q.dequeue(&mut bench.cx(0))).map(|p| p.seq).collect();
        assert_eq!(order, [0, 2]);
    }
}
