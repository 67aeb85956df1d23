//! `hhf`: heavy hitters are found and served after the others.
//!
//! Follows: linux v6.12 `net/sched/sch_hhf.c`; Estan & Varghese, "New Directions in Traffic Measurement and Accounting". Where a packet takes the place of
//! another of the same bucket, those above are told by the answer alone, and the backlog that they show drifts. What a reset empties counts as sent.
//! Differs: the hash of a flow is random in the kernel and here (`super::sfq::hash`).

mod finder;

use self::finder::Finder;
use super::KindSpec;
use super::sfq::hash::Key;
use super::unsimulated::range;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Init, Qdisc, Xmit};
use crate::queue::Queue;
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::collections::VecDeque;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "hhf",
    about: "heavy hitters are found and wait behind the others",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

/// The bucket of heavy hitters (`WDRR_BUCKET_FOR_HH`).
const HEAVY: usize = 0;
/// That of the others.
const LIGHT: usize = 1;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let hz = init.device.hz;
    let mut hhf = Hhf {
        hz,
        limit: 1000,
        quantum: init.device.psched_mtu().clamp(256, 1 << 20),
        non_hh_weight: 2,
        finder: Finder::new(Key::draw(cx.rng), hz, jiffy(cx.now, hz)),
        buckets: Default::default(),
        new_buckets: VecDeque::new(),
        old_buckets: VecDeque::new(),
        drop_overlimit: 0,
        peeked: None,
        stats: Stats::default(),
    };
    hhf.change(options, cx)?;
    Ok(Box::new(hhf))
}

/// `hhf_time_stamp`: the tick at or before a moment.
fn jiffy(now: Time, hz: u32) -> u32 {
    (now.as_ns() as u64 / (1_000_000_000 / u64::from(hz))) as u32
}

/// `struct wdrr_bucket`.
#[derive(Default)]
struct Bucket {
    queue: Queue,
    deficit: i32,
    /// It stands in one of the lists.
    listed: bool,
}

/// The qdisc.
pub struct Hhf {
    // Parameters
    hz: u32,
    /// Packets.
    limit: u32,
    /// Bytes a turn.
    quantum: u32,
    /// How many turns of a heavy hitter one of the others is worth.
    non_hh_weight: u32,
    // Variables
    finder: Finder,
    buckets: [Bucket; 2],
    new_buckets: VecDeque<usize>,
    old_buckets: VecDeque<usize>,
    drop_overlimit: u32,
    peeked: Option<Packet>,
    stats: Stats,
}

impl Hhf {
    fn turn(&self, bucket: usize) -> i32 {
        let weight = if bucket == HEAVY { 1 } else { self.non_hh_weight };
        weight.wrapping_mul(self.quantum) as i32
    }
    fn queued(&self) -> u32 {
        self.buckets.iter().map(|bucket| bucket.queue.len()).sum()
    }
    /// `hhf_drop`: of heavy hitters first; answers the bucket.
    fn displace(&mut self, cx: &mut Cx<'_>) -> usize {
        let from = if self.buckets[HEAVY].queue.is_empty() { LIGHT } else { HEAVY };
        if let Some(packet) = self.buckets[from].queue.pop_head() {
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Displaced);
        }
        from
    }
    /// `hhf_dequeue`.
    fn take(&mut self) -> Option<Packet> {
        loop {
            let new = !self.new_buckets.is_empty();
            let list = if new { &mut self.new_buckets } else { &mut self.old_buckets };
            let n = *list.front()?;
            if self.buckets[n].deficit <= 0 {
                list.pop_front();
                self.old_buckets.push_back(n);
                self.buckets[n].deficit = self.buckets[n].deficit.wrapping_add(self.turn(n));
                continue;
            }
            let Some(packet) = self.buckets[n].queue.pop_head() else {
                list.pop_front();
                if new && !self.old_buckets.is_empty() {
                    self.old_buckets.push_back(n);
                } else {
                    self.buckets[n].listed = false;
                }
                continue;
            };
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
            let bucket = &mut self.buckets[n];
            bucket.deficit = bucket.deficit.wrapping_sub(packet.pkt_len as i32);
            return Some(packet);
        }
    }
}

impl Qdisc for Hhf {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let n = if self.finder.is_heavy(&packet, jiffy(cx.now, self.hz)) { HEAVY } else { LIGHT };
        let turn = self.turn(n);
        let bucket = &mut self.buckets[n];
        bucket.queue.push_tail(packet);
        if !std::mem::replace(&mut bucket.listed, true) {
            bucket.deficit = turn;
            let list = if n == HEAVY { &mut self.old_buckets } else { &mut self.new_buckets };
            list.push_back(n);
        }
        if self.qlen() <= self.limit {
            return Xmit::Success;
        }
        self.drop_overlimit = self.drop_overlimit.wrapping_add(1);
        if self.displace(cx) == n { Xmit::Cn } else { Xmit::Success }
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
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        range(o, "hh_limit", 0..=2048)?;
        let number = |name, old| o.u32(name).unwrap_or(old);
        let quantum = o.u32("quantum").map_or(self.quantum, |q| q.max(256));
        let weight = number("non_hh_weight", self.non_hh_weight);
        if !(1..=i32::MAX as u64).contains(&(u64::from(quantum) * u64::from(weight))) {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        (self.quantum, self.non_hh_weight) = (quantum, weight);
        self.limit = number("limit", self.limit);
        self.finder.change(o, self.hz);
        while self.qlen() > self.limit {
            // Counted as sent here, and as dropped by those above.
            let Some(packet) = self.peeked.take().or_else(|| self.take()) else { break };
            cx.drops.drop(packet, DropReason::Purged);
        }
        Ok(())
    }
    /// What is queued leaves as if it were sent.
    fn reset(&mut self, cx: &mut Cx<'_>) {
        while let Some(packet) = self.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        self.finder.reset(jiffy(cx.now, self.hz));
    }
    fn stats(&self) -> Stats {
        let peeked = self.peeked.as_ref().map_or(0, |p| p.pkt_len);
        let backlog = self.buckets.iter().map(|bucket| bucket.queue.backlog()).sum::<u32>() + peeked;
        Stats { qlen: self.qlen(), backlog, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.queued() + u32::from(self.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        let queued = self.buckets.iter().flat_map(|bucket| bucket.queue.iter());
        queued.chain(&self.peeked).for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        let o = Options::new().with("limit", self.limit).with("quantum", self.quantum);
        self.finder.dump(o, self.hz).with("non_hh_weight", self.non_hh_weight)
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        Some(self.finder.xstats(Options::new().with("drop_overlimit", self.drop_overlimit)))
    }
    /// A bucket that is found empty leaves its list, and comes as a new one again.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    #[test]
    fn what_others_may_send_in_a_turn_must_fit_31_bits() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let before = q.dump();
        let mut errno = |name, value: u32| {
            q.change(Some(&Options::new().with(name, value).with("limit", 5u32)), &mut bench.cx(0))
                .map_err(|e| e.errno)
        };
        assert_eq!(errno("quantum", 1 << 30), Err(22));
        assert_eq!(errno("non_hh_weight", 0), Err(22));
        assert_eq!(errno("hh_limit", 2049), Err(34));
        assert_eq!(q.dump(), before);
    }
}
