//! Today's sfq: as many flows as asked for, depth, head drop, RED in each flow.
//!
//! Follows: linux v6.12 net/sched/sch_sfq.c.

use super::chains::{Chain, Pool};
use super::depths::Depths;
use super::hash::Key;
use super::{Perturb, buckets_are_classes, classify, refuse_change};
use crate::aqm::ecn::set_ce;
use crate::aqm::red::{self, Action};
use crate::cls::{BlockId, Filters};
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Xmit};
use penstock_model::rtnetlink::ClassDump;
use penstock_model::{Handle, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// `SFQ_MAX_DEPTH`: most packets of one flow, and the default limit of all.
const MAX_DEPTH: u32 = 127;
/// `SFQ_DEFAULT_FLOWS`.
const DEFAULT_FLOWS: u32 = 128;
/// `SFQ_MAX_FLOWS`.
const MAX_FLOWS: u32 = 0x1_0000 - MAX_DEPTH - 1;
/// `SFQ_DEFAULT_HASH_DIVISOR`.
const DEFAULT_DIVISOR: u32 = 1024;
/// `SFQ_EMPTY_SLOT`, `tail == NULL`: no slot.
const NONE: u16 = 0xffff;
/// `TC_RED_ECN`: mark rather than drop by chance.
const RED_ECN: u32 = 1;
/// `TC_RED_HARDDROP`: drop above the maximum all the same.
const RED_HARDDROP: u32 = 2;
/// Longest perturbation period, s: `INT_MAX / HZ`.
const PERTURB_MAX: i64 = i32::MAX as i64 / 250;

/// One flow: `struct sfq_slot`.
#[derive(Clone, Copy)]
struct Slot {
    chain: Chain,
    /// Next in the round.
    next: u16,
    bucket: u16,
    allot: i32,
    backlog: u32,
    vars: red::Vars,
}

/// Marks and drops of the RED mode: `struct tc_sfqred_stats`.
#[derive(Clone, Copy, Default)]
struct RedStats {
    prob_drop: u32,
    forced_drop: u32,
    prob_mark: u32,
    forced_mark: u32,
    prob_mark_head: u32,
    forced_mark_head: u32,
}

/// What `tc` set, checked: the first half of `sfq_change`.
struct Params {
    limit: u32,
    divisor: u32,
    headdrop: bool,
    maxdepth: u32,
    maxflows: u32,
    quantum: u32,
    flags: u32,
    perturb_s: i32,
    red: Option<red::Params>,
}

impl Params {
    fn read(options: Option<&Options>, device: &Device) -> Result<Params, KernelError> {
        let mut p = Params {
            limit: MAX_DEPTH,
            divisor: DEFAULT_DIVISOR,
            headdrop: false,
            maxdepth: MAX_DEPTH,
            maxflows: DEFAULT_FLOWS,
            quantum: device.psched_mtu().clamp(256, 1 << 20),
            flags: 0,
            perturb_s: 0,
            red: None,
        };
        let Some(o) = options else { return Ok(p) };
        let given = |name| o.u32(name).unwrap_or(0);
        let refuse = |sentence: &str| Err(KernelError::new(KernelError::EINVAL, sentence));
        let bare = KernelError::errno(KernelError::EINVAL);
        let (divisor, quantum, limit) = (given("divisor"), given("quantum"), given("limit"));
        if divisor != 0 && (!divisor.is_power_of_two() || divisor > 65536) {
            return Err(bare);
        }
        if quantum > i32::MAX as u32 {
            return refuse("sch_sfq: invalid quantum");
        }
        if quantum > 1 << 20 {
            return refuse("sch_sfq: quantum too large");
        }
        let perturb = o.i64("perturb").unwrap_or(0);
        if !(0..=PERTURB_MAX).contains(&perturb) {
            return refuse("sch_sfq: invalid perturb period");
        }
        p.perturb_s = perturb as i32;
        let scale = |name| given(name).min(255) as u8;
        let red = red::Params::new(
            given("min"),
            given("max"),
            scale("ewma"),
            scale("plog"),
            scale("scell_log"),
            given("max_p"),
        );
        let Some(red) = red else { return Err(bare) };
        p.red = (red.qth_min > 0).then_some(red);
        if quantum > 0 {
            p.quantum = quantum.max(256);
        }
        if given("flows") > 0 {
            p.maxflows = given("flows").min(MAX_FLOWS);
        }
        if divisor > 0 {
            p.divisor = divisor;
            p.maxflows = p.maxflows.min(divisor);
        }
        if given("depth") > 0 {
            p.maxdepth = given("depth").min(MAX_DEPTH);
        }
        p.flags = given("redflags") & 0xff;
        p.headdrop = o.has("headdrop");
        if limit > 0 {
            p.limit = limit.min(p.maxdepth * p.maxflows);
            p.maxflows = p.maxflows.min(p.limit);
        }
        if p.limit == 1 {
            return refuse("sch_sfq: invalid limit");
        }
        Ok(p)
    }
}

/// Flows by hash, served in turn.
pub(super) struct Sfq {
    // Parameters
    device: Device,
    handle: Handle,
    params: Params,
    filters: Filters,
    // Variables
    key: Key,
    perturb: Perturb,
    /// Slot of each bucket.
    ht: Vec<u16>,
    slots: Vec<Slot>,
    depths: Depths,
    pool: Pool,
    /// The slot served last.
    tail: u16,
    qlen: u32,
    backlog: u32,
    peeked: Option<Packet>,
    stats: Stats,
    red_stats: RedStats,
    /// Packets on their way from one hash to another.
    moving: Vec<Packet>,
}

impl Sfq {
    pub(super) fn new(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Sfq, KernelError> {
        let params = Params::read(options, &init.device)?;
        let (flows, perturb_s) = (params.maxflows as u16, params.perturb_s);
        let slot = Slot {
            chain: Chain::default(),
            next: 0,
            bucket: 0,
            allot: 0,
            backlog: 0,
            vars: red::Vars::default(),
        };
        Ok(Sfq {
            device: init.device,
            handle: init.handle,
            filters: Filters::new(init.handle),
            key: Key::draw(cx.rng),
            perturb: Perturb::new(perturb_s, cx.now),
            ht: vec![NONE; params.divisor as usize],
            slots: vec![slot; usize::from(flows)],
            depths: Depths::new(flows, MAX_DEPTH as u16),
            pool: Pool::default(),
            tail: NONE,
            qlen: 0,
            backlog: 0,
            peeked: None,
            stats: Stats::default(),
            red_stats: RedStats::default(),
            moving: Vec::new(),
            params,
        })
    }

    #[inline]
    fn slot(&mut self, x: u16) -> &mut Slot {
        &mut self.slots[usize::from(x)]
    }
    /// A slot that came to life joins the round, last.
    #[inline]
    fn join(&mut self, x: u16) {
        let next = match self.tail {
            NONE => x,
            tail => std::mem::replace(&mut self.slot(tail).next, x),
        };
        let quantum = self.params.quantum as i32;
        let slot = self.slot(x);
        slot.next = next;
        slot.allot = quantum;
        self.tail = x;
    }
    /// A bucket without a slot takes a free one; [`NONE`] when there is none.
    #[inline]
    fn take_slot(&mut self, bucket: u16) -> u16 {
        let Some(x) = self.depths.last_come(0) else { return NONE };
        self.ht[usize::from(bucket)] = x;
        self.slot(x).bucket = bucket;
        x
    }

    fn refuse(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, reason);
    }

    /// `sfq_drop`: one packet of the longest flow; answers whose.
    fn displace(&mut self, cx: &mut Cx<'_>) -> u16 {
        let x = match self.depths.deepest() {
            0 => return NONE,
            1 => {
                // All flows have one packet: the one whose turn is next loses.
                let x = self.slots[usize::from(self.tail)].next;
                let Slot { next, bucket, .. } = *self.slot(x);
                if next == x {
                    self.tail = NONE;
                } else {
                    let tail = self.tail;
                    self.slot(tail).next = next;
                }
                self.ht[usize::from(bucket)] = NONE;
                x
            }
            depth => self.depths.last_come(depth).expect("a slot of the greatest depth"),
        };
        let chain = &mut self.slots[usize::from(x)].chain;
        let packet = if self.params.headdrop { self.pool.pop_head(chain) } else { self.pool.pop_tail(chain) };
        let packet = packet.expect("a slot of this depth has packets");
        self.slot(x).backlog -= packet.pkt_len;
        self.depths.dec(x);
        self.qlen -= 1;
        self.backlog -= packet.pkt_len;
        self.refuse(packet, DropReason::Displaced, cx);
        x
    }

    /// RED in a flow: whether the packet that comes in must be dropped.
    fn congested(&mut self, x: u16, packet: &mut Packet, red: red::Params, cx: &mut Cx<'_>) -> bool {
        let slot = &mut self.slots[usize::from(x)];
        slot.vars.average(&red, slot.backlog);
        let hard = match slot.vars.action(&red, cx.rng) {
            Action::Pass => return false,
            Action::Prob => false,
            Action::Hard => true,
        };
        self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
        let ecn = self.params.flags & RED_ECN != 0 && !(hard && self.params.flags & RED_HARDDROP != 0);
        let count = &mut self.red_stats;
        if ecn {
            let head = if self.params.headdrop { self.pool.head_mut(&slot.chain) } else { None };
            if head.is_some_and(|head| set_ce(head)) {
                let marked = if hard { &mut count.forced_mark_head } else { &mut count.prob_mark_head };
                *marked = marked.wrapping_add(1);
                return false;
            }
            if set_ce(packet) {
                let marked = if hard { &mut count.forced_mark } else { &mut count.prob_mark };
                *marked = marked.wrapping_add(1);
                return false;
            }
        }
        let dropped = if hard { &mut count.forced_drop } else { &mut count.prob_drop };
        *dropped = dropped.wrapping_add(1);
        true
    }

    /// A flow that may not grow: the packet is dropped, or the flow's first in its stead.
    fn congestion_drop(&mut self, x: u16, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) -> Xmit {
        if !self.params.headdrop {
            self.refuse(packet, reason, cx);
            return Xmit::Drop;
        }
        let slot = &mut self.slots[usize::from(x)];
        let head = self.pool.pop_head(&mut slot.chain).expect("a flow that may not grow has packets");
        slot.backlog = slot.backlog - head.pkt_len + packet.pkt_len;
        self.backlog = self.backlog - head.pkt_len + packet.pkt_len;
        self.pool.push_tail(&mut slot.chain, packet);
        self.refuse(head, if reason == DropReason::Early { reason } else { DropReason::Displaced }, cx);
        Xmit::Cn
    }

    /// `sfq_perturbation`, as often as its timer struck meanwhile.
    #[cold]
    fn perturbation(&mut self, cx: &mut Cx<'_>) {
        while self.tail != NONE && self.filters.is_empty(Filters::ROOT) && self.perturb.is_due(cx.now) {
            self.key = Key::draw(cx.rng);
            self.rehash(cx);
            self.perturb.strike();
        }
        if self.perturb.is_due(cx.now) {
            self.key = Key::draw(cx.rng);
            self.perturb.catch_up(cx.now);
        }
    }

    /// `sfq_rehash`: all packets under a new key. What finds no room is dropped, which sfq itself does not count.
    fn rehash(&mut self, cx: &mut Cx<'_>) {
        let mut moving = std::mem::take(&mut self.moving);
        for x in 0..self.slots.len() as u16 {
            if self.depths.of(x) == 0 {
                continue;
            }
            while let Some(packet) = self.pool.pop_head(&mut self.slots[usize::from(x)].chain) {
                self.depths.dec(x);
                moving.push(packet);
            }
            let slot = self.slot(x);
            slot.backlog = 0;
            slot.vars = red::Vars::default();
            let bucket = slot.bucket;
            self.ht[usize::from(bucket)] = NONE;
        }
        self.tail = NONE;
        for packet in moving.drain(..) {
            let bucket = (self.key.hash(&packet) & (self.params.divisor - 1)) as u16;
            let mut x = self.ht[usize::from(bucket)];
            if x == NONE {
                x = self.take_slot(bucket);
            }
            if x == NONE || u32::from(self.depths.of(x)) >= self.params.maxdepth {
                self.qlen -= 1;
                self.backlog -= packet.pkt_len;
                cx.drops.drop(packet, DropReason::Displaced);
                continue;
            }
            let slot = &mut self.slots[usize::from(x)];
            let len = packet.pkt_len;
            self.pool.push_tail(&mut slot.chain, packet);
            if let Some(red) = &self.params.red {
                slot.vars.average(red, slot.backlog);
            }
            slot.backlog += len;
            self.depths.inc(x);
            if self.depths.of(x) == 1 {
                self.join(x);
            }
        }
        self.moving = moving;
    }

    #[inline]
    fn take(&mut self) -> Option<Packet> {
        if self.tail == NONE {
            return None;
        }
        let quantum = self.params.quantum as i32;
        let x = loop {
            let x = self.slots[usize::from(self.tail)].next;
            let slot = self.slot(x);
            if slot.allot > 0 {
                break x;
            }
            slot.allot += quantum;
            self.tail = x;
        };
        let packet = self.pool.pop_head(&mut self.slots[usize::from(x)].chain)?;
        self.depths.dec(x);
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        self.qlen -= 1;
        self.backlog -= packet.pkt_len;
        let left = self.depths.of(x);
        let slot = self.slot(x);
        slot.backlog -= packet.pkt_len;
        if left > 0 {
            slot.allot -= packet.pkt_len as i32;
            return Some(packet);
        }
        let Slot { next, bucket, .. } = *slot;
        self.ht[usize::from(bucket)] = NONE;
        if next == x {
            self.tail = NONE;
        } else {
            let tail = self.tail;
            self.slot(tail).next = next;
        }
        Some(packet)
    }

    fn divisor(&self) -> usize {
        self.ht.len()
    }
    /// What `tc class show` says of a bucket in use: `sfq_dump_class_stats`.
    fn bucket(&self, bucket: usize) -> Option<(Stats, i32)> {
        let x = self.ht[bucket];
        let slot = self.slots.get(usize::from(x))?;
        let stats = Stats { qlen: u32::from(self.depths.of(x)), backlog: slot.backlog, ..Stats::default() };
        Some((stats, slot.allot))
    }
}

impl Qdisc for Sfq {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.perturb.is_due(cx.now) {
            self.perturbation(cx);
        }
        let hash = |skb: &Skb| self.key.hash(skb);
        let bucket = match classify(self.handle, &self.filters, self.params.divisor, &mut packet, hash, cx) {
            Ok(Some(bucket)) => bucket,
            Ok(None) => {
                self.refuse(packet, DropReason::Unclassified, cx);
                return Xmit::Bypass;
            }
            Err(gone) => return gone.leave_counted(packet, &mut self.stats, cx),
        };
        let bucket = (bucket - 1) as u16;
        let mut x = self.ht[usize::from(bucket)];
        if x == NONE {
            x = self.take_slot(bucket);
            if x == NONE {
                self.refuse(packet, DropReason::Overlimit, cx);
                return Xmit::Drop;
            }
            let slot = self.slot(x);
            slot.backlog = 0;
            slot.vars = red::Vars::default();
        } else {
            if let Some(red) = self.params.red
                && self.congested(x, &mut packet, red, cx)
            {
                return self.congestion_drop(x, packet, DropReason::Early, cx);
            }
            if u32::from(self.depths.of(x)) >= self.params.maxdepth {
                return self.congestion_drop(x, packet, DropReason::Overlimit, cx);
            }
        }
        let slot = &mut self.slots[usize::from(x)];
        self.backlog += packet.pkt_len;
        slot.backlog += packet.pkt_len;
        self.pool.push_tail(&mut slot.chain, packet);
        self.depths.inc(x);
        if self.depths.of(x) == 1 {
            self.join(x);
        }
        self.qlen += 1;
        if self.qlen <= self.params.limit {
            return Xmit::Success;
        }
        // The sender hears of it only when the drop was from its own flow.
        if self.displace(cx) == x { Xmit::Cn } else { Xmit::Success }
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(packet) = self.peeked.take() {
            self.qlen -= 1;
            self.backlog -= packet.pkt_len;
            return Some(packet);
        }
        if self.perturb.is_due(cx.now) {
            self.perturbation(cx);
        }
        self.take()
    }
    /// `qdisc_peek_dequeued`: the packet is taken, counted as sent, and kept.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            let packet = self.dequeue(cx)?;
            self.qlen += 1;
            self.backlog += packet.pkt_len;
            self.peeked = Some(packet);
        }
        self.peeked.as_ref()
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        refuse_change(&self.device, options)
    }
    /// `sfq_reset` dequeues, and what is dequeued counts as sent.
    fn reset(&mut self, cx: &mut Cx<'_>) {
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        while let Some(packet) = self.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.qlen, self.backlog) = (0, 0);
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen, backlog: self.backlog, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.pool.packets(see);
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn marks(&self) -> Option<u64> {
        let s = &self.red_stats;
        let marks = [s.prob_mark, s.forced_mark, s.prob_mark_head, s.forced_mark_head];
        Some(marks.into_iter().map(u64::from).sum())
    }
    fn dump(&self) -> Options {
        let p = &self.params;
        let mut o = Options::new()
            .with("quantum", p.quantum)
            .with("perturb", p.perturb_s)
            .with("limit", p.limit)
            .with("divisor", p.divisor)
            .with("flows", p.maxflows)
            .with("depth", p.maxdepth);
        if p.headdrop {
            o = o.with("headdrop", penstock_model::Value::Flag);
        }
        if let Some(red) = &p.red {
            let s = &self.red_stats;
            o = o
                .with("min", red.qth_min)
                .with("max", red.qth_max)
                .with("ewma", red.wlog)
                .with("plog", red.plog)
                .with("scell_log", red.scell_log)
                .with("max_p", red.max_p)
                .with("redflags", p.flags)
                .with("prob_drop", s.prob_drop)
                .with("forced_drop", s.forced_drop)
                .with("prob_mark", s.prob_mark)
                .with("forced_mark", s.forced_mark)
                .with("prob_mark_head", s.prob_mark_head)
                .with("forced_mark_head", s.forced_mark_head);
        }
        o
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
