//! sfq as it was in 2010: 128 flows, 127 packets, 1024 buckets, nothing to choose but the limit.
//!
//! Follows: linux v2.6.35 net/sched/sch_sfq.c.
//!
//! Its oddities are kept: a flow that comes to life keeps the allotment it left with, an allotment is a 16-bit
//! number and wraps, a new perturbation leaves packets where they are (so that a flow may overtake itself), and
//! every drop is told to the sender of the packet that came last.

use super::chains::{Chain, Pool};
use super::depths::Depths;
use super::hash::old_hash;
use super::{Perturb, buckets_are_classes, classify, refuse_change};
use crate::cls::{BlockId, Filters};
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Xmit};
use penstock_model::rtnetlink::ClassDump;
use penstock_model::{Handle, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// `SFQ_DEPTH`: slots; as an index, no slot.
const DEPTH: u16 = 128;
/// `SFQ_HASH_DIVISOR`.
const DIVISOR: usize = 1024;

#[derive(Clone, Copy, Default)]
struct Slot {
    chain: Chain,
    /// Next in the round.
    next: u16,
    bucket: u16,
    allot: i16,
}

/// Flows by hash, served in turn.
pub(super) struct Sfq {
    // Parameters
    device: Device,
    handle: Handle,
    quantum: u32,
    limit: u32,
    filters: Filters,
    // Variables
    perturbation: u32,
    perturb: Perturb,
    /// The slot served last.
    tail: u16,
    /// Slot of each bucket.
    ht: [u16; DIVISOR],
    slots: [Slot; DEPTH as usize],
    depths: Depths,
    pool: Pool,
    qlen: u32,
    stats: Stats,
}

impl Sfq {
    pub(super) fn new(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Sfq, KernelError> {
        let given = |name| options.and_then(|o| o.u32(name)).unwrap_or(0);
        let limit = match given("limit") {
            0 => u32::from(DEPTH) - 1,
            limit => limit.min(u32::from(DEPTH) - 1),
        };
        let quantum = match given("quantum") {
            0 => init.device.psched_mtu(),
            quantum => quantum,
        };
        // The kernel multiplies by HZ in an int; what overflows is nonsense there and here.
        let perturb = options.and_then(|o| o.i64("perturb")).unwrap_or(0).clamp(0, i64::from(i32::MAX / 250));
        let mut sfq = Sfq {
            device: init.device,
            handle: init.handle,
            quantum,
            limit,
            filters: Filters::new(init.handle),
            perturbation: 0,
            perturb: Perturb::new(perturb as i32, cx.now),
            tail: DEPTH,
            ht: [DEPTH; DIVISOR],
            slots: [Slot::default(); DEPTH as usize],
            depths: Depths::new(DEPTH, DEPTH - 1),
            pool: Pool::default(),
            qlen: 0,
            stats: Stats::default(),
        };
        // Given options and no period, the kernel forgets to draw.
        if options.is_none() || perturb > 0 {
            sfq.perturbation = cx.rng.next_u32();
        }
        Ok(sfq)
    }

    #[inline]
    fn slot(&mut self, x: u16) -> &mut Slot {
        &mut self.slots[usize::from(x)]
    }
    /// A slot's turn comes: its allotment grows by a quantum, in 16 bits.
    #[inline]
    fn replenish(&mut self, x: u16) {
        let quantum = self.quantum as i16;
        let slot = self.slot(x);
        slot.allot = slot.allot.wrapping_add(quantum);
    }

    /// `sfq_drop`: the last packet of the longest flow.
    fn displace(&mut self, cx: &mut Cx<'_>) {
        let x = match self.depths.deepest() {
            0 => return,
            1 => {
                // All flows have one packet: the one whose turn is next loses.
                let tail = self.tail;
                let x = self.slot(tail).next;
                let next = self.slot(x).next;
                self.slot(tail).next = next;
                self.replenish(next);
                let bucket = self.slot(x).bucket;
                self.ht[usize::from(bucket)] = DEPTH;
                x
            }
            depth => self.depths.last_come(depth).expect("a slot of the greatest depth"),
        };
        let chain = &mut self.slots[usize::from(x)].chain;
        let packet = self.pool.pop_tail(chain).expect("a slot of this depth has packets");
        self.depths.dec(x);
        self.qlen -= 1;
        self.stats.backlog -= packet.pkt_len;
        self.refuse(packet, DropReason::Displaced, cx);
    }

    fn refuse(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, reason);
    }

    /// `sfq_perturbation`: a new key; packets stay where they are.
    #[cold]
    fn perturbation(&mut self, cx: &mut Cx<'_>) {
        self.perturbation = cx.rng.next_u32();
        self.perturb.catch_up(cx.now);
    }

    #[inline]
    fn take(&mut self) -> Option<Packet> {
        if self.tail == DEPTH {
            return None;
        }
        let tail = self.tail;
        let x = self.slot(tail).next;
        let packet = self.pool.pop_head(&mut self.slots[usize::from(x)].chain)?;
        self.depths.dec(x);
        self.qlen -= 1;
        self.stats.backlog -= packet.pkt_len;
        let left = self.depths.of(x);
        let slot = self.slot(x);
        let Slot { next, bucket, .. } = *slot;
        if left == 0 {
            self.ht[usize::from(bucket)] = DEPTH;
            if next == x {
                self.tail = DEPTH;
                return Some(packet);
            }
            self.slot(tail).next = next;
            self.replenish(next);
        } else {
            slot.allot = slot.allot.wrapping_sub(packet.pkt_len as i16);
            if slot.allot <= 0 {
                self.tail = x;
                self.replenish(next);
            }
        }
        Some(packet)
    }

    fn divisor(&self) -> usize {
        DIVISOR
    }
    /// What `tc class show` says of a bucket in use: `sfq_dump_class_stats`.
    fn bucket(&self, bucket: usize) -> Option<(Stats, i32)> {
        let x = self.ht[bucket];
        let slot = self.slots.get(usize::from(x))?;
        let stats = Stats { qlen: u32::from(self.depths.of(x)), ..Stats::default() };
        Some((stats, i32::from(slot.allot)))
    }
}

impl Qdisc for Sfq {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.perturb.is_due(cx.now) {
            self.perturbation(cx);
        }
        let hash = |skb: &Skb| old_hash(skb, self.perturbation);
        let bucket = match classify(self.handle, &self.filters, DIVISOR as u32, &mut packet, hash, cx) {
            Ok(Some(bucket)) => bucket,
            Ok(None) => {
                self.refuse(packet, DropReason::Unclassified, cx);
                return Xmit::Bypass;
            }
            Err(gone) => return gone.leave_counted(packet, &mut self.stats, cx),
        };
        let bucket = bucket as usize - 1;
        let mut x = self.ht[bucket];
        if x == DEPTH {
            // There is always a free slot: at most 127 hold a packet.
            x = self.depths.last_come(0).expect("a free slot");
            self.ht[bucket] = x;
            self.slot(x).bucket = bucket as u16;
        }
        if u32::from(self.depths.of(x)) >= self.limit {
            self.refuse(packet, DropReason::Overlimit, cx);
            return Xmit::Drop;
        }
        let len = packet.pkt_len;
        self.stats.backlog += len;
        self.pool.push_tail(&mut self.slots[usize::from(x)].chain, packet);
        self.depths.inc(x);
        if self.depths.of(x) == 1 {
            let tail = self.tail;
            if tail == DEPTH {
                let allot = self.quantum as i16;
                let slot = self.slot(x);
                (slot.next, slot.allot) = (x, allot);
            } else {
                let next = std::mem::replace(&mut self.slot(tail).next, x);
                self.slot(x).next = next;
            }
            self.tail = x;
        }
        self.qlen += 1;
        if self.qlen <= self.limit {
            self.stats.bytes += u64::from(len);
            self.stats.packets += 1;
            return Xmit::Success;
        }
        self.displace(cx);
        Xmit::Cn
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if self.perturb.is_due(cx.now) {
            self.perturbation(cx);
        }
        self.take()
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        let tail = self.slots.get(usize::from(self.tail))?;
        self.pool.head(&self.slots[usize::from(tail.next)].chain)
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        refuse_change(&self.device, options)
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        while let Some(packet) = self.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.pool.packets(see);
    }
    fn dump(&self) -> Options {
        Options::new()
            .with("quantum", self.quantum)
            .with("perturb", self.perturb.period_s)
            .with("limit", self.limit)
            .with("divisor", DIVISOR as u32)
            .with("flows", self.limit)
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
    fn kind(&self) -> &'static str {
        super::SPEC.id
    }
}

buckets_are_classes!(Sfq);
