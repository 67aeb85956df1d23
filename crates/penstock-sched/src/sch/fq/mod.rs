//! `fq`: a queue for each flow, paced, served in turn.
//!
//! Follows: linux v6.12 `net/sched/sch_fq.c`. A change that is refused for its `buckets`, `priomap` or `weights`
//! has changed what else it names, as there.
//! Differs: the hash of a packet without a connected socket is random in the kernel and here (`super::sfq::hash`); where
//! a search meets several old flows in one bucket, which of them are forgotten is as in a balanced tree; a socket is
//! known by its number, so none is taken for one that had its memory before; `priomap` and `weights` are dumped where they were set.

mod config;
mod flows;
mod queue;
#[cfg(test)]
mod tests;

use super::KindSpec;
use super::sfq::hash::Key;
use crate::aqm::ecn::set_ce;
use crate::jiffies;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Due, Init, Qdisc, Scribble, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use flows::{Flow, Flows};
use penstock_model::{Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb, TxClock};
use queue::{NIL, Pool, Queue};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "fq",
    about: "one queue for each flow, paced, served by deficit round robin",
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
        work_conserving: false,
    },
};

/// `FQ_BANDS`.
const BANDS: usize = 3;
/// Largest `initial_quantum`.
const INITIAL_QUANTUM_MAX: u32 = 1 << 20;
/// `sch_default_prio2band`: the band of each priority.
const PRIOMAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
/// Most packets that pass by the flows while others wait for their time.
const FASTPATH_MAX: u32 = 8;
/// Longest that one packet keeps its flow waiting, ns.
const WAIT_MAX_NS: u64 = 1_000_000_000;
/// No flow waits for its time.
const NEVER: u64 = u64::MAX;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let (mtu, hz) = (init.device.psched_mtu().clamp(1, 1 << 20), init.device.hz);
    let mut fq = Fq {
        since_7: init.device.kernel >= Kernel::V7_2,
        hz,
        limit: 10_000,
        flow_limit: 100,
        quantum: (2 * mtu).clamp(256, 1 << 20),
        initial_quantum: (10 * mtu).min(1 << 20),
        refill_delay: jiffies::from_us(40_000, hz),
        maxrate: u32::MAX,
        pacing: 1,
        buckets: 10,
        orphan_mask: 1023,
        low_rate_threshold: 550_000 / 8,
        timer_slack: 10_000,
        horizon: 10_000_000,
        horizon_drop: 1,
        ce_threshold: u32::MAX,
        priomap: PRIOMAP,
        priomap_set: false,
        weights_set: false,
        key: Key::draw(cx.rng),
        band: 0,
        bands: [9 << 16, 3 << 16, 1 << 16].map(|quantum| Band { quantum, ..Band::default() }),
        internal: Queue::default(),
        internal_qlen: 0,
        pool: Pool::default(),
        flows: Flows::default(),
        known: 0,
        inactive: 0,
        delayed: BinaryHeap::new(),
        sequence: 0,
        throttled: 0,
        time_next_delayed_flow: NEVER,
        watchdog: None,
        peeked: None,
        qlen: 0,
        backlog: 0,
        stats: Stats::default(),
        counts: Counts::default(),
    };
    fq.change(options, cx)?;
    if options.is_none() {
        fq.flows.resize(fq.buckets, 0, hz);
    }
    Ok(Box::new(fq))
}

/// Flows that wait for their turn: `struct fq_flow_head`.
#[derive(Clone, Copy)]
struct List {
    first: u32,
    last: u32,
}

impl Default for List {
    fn default() -> List {
        List { first: NIL, last: NIL }
    }
}

/// `struct fq_perband_flows`.
#[derive(Clone, Copy, Default)]
struct Band {
    new_flows: List,
    old_flows: List,
    credit: i32,
    /// Bytes a turn: its weight.
    quantum: i32,
    /// Packets of flows.
    packets: u32,
    drops: u64,
}

/// Which list a flow goes to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Which {
    New,
    Old,
}

/// What has happened.
#[derive(Clone, Copy, Default)]
struct Counts {
    throttled: u64,
    gc: u64,
    fastpath: u64,
    ce_mark: u64,
    horizon_drops: u64,
    horizon_caps: u64,
    flows_plimit: u64,
    pkts_too_long: u64,
    unthrottle_latency_ns: u64,
}

/// The qdisc.
pub struct Fq {
    // Parameters
    /// It is that of 7.2 or later.
    since_7: bool,
    hz: u32,
    limit: u32,
    flow_limit: u32,
    quantum: u32,
    initial_quantum: u32,
    /// Jiffies.
    refill_delay: u64,
    /// Bytes a second.
    maxrate: u32,
    pacing: u32,
    /// Logarithm of their number.
    buckets: u32,
    orphan_mask: u32,
    /// Bytes a second.
    low_rate_threshold: u32,
    /// ns.
    timer_slack: u32,
    /// µs.
    horizon: u32,
    horizon_drop: u32,
    /// µs.
    ce_threshold: u32,
    priomap: [u8; 16],
    priomap_set: bool,
    weights_set: bool,
    key: Key,
    // Variables
    /// The band that is served.
    band: usize,
    bands: [Band; BANDS],
    /// The packets that pass by the flows.
    internal: Queue,
    internal_qlen: u32,
    pool: Pool,
    flows: Flows,
    /// How many flows there are, and of these without a packet.
    known: u32,
    inactive: u32,
    /// Flows that wait for their time, by that and by when they began to, and what they waited for before that was changed.
    delayed: BinaryHeap<Reverse<(u64, u64, u32)>>,
    sequence: u64,
    /// How many wait for their time.
    throttled: u32,
    time_next_delayed_flow: u64,
    /// From when on the timer may go off, and when it does at the latest, ns.
    watchdog: Option<(u64, u64)>,
    peeked: Option<Packet>,
    /// With what was peeked at.
    qlen: u32,
    backlog: u32,
    stats: Stats,
    counts: Counts,
}

/// `jiffies`, without what they begin at.
fn jiffies_at(now: Time, hz: u32) -> u64 {
    now.as_ns() as u64 / (1_000_000_000 / u64::from(hz))
}
/// Whether its time of departure is by a clock that counts from 1970: later than any by `CLOCK_MONOTONIC`, as which it is taken.
fn is_by_wall_clock(skb: &Skb) -> bool {
    skb.is_noted() && skb.rare().txtime.is_some_and(|t| t.clock != TxClock::Monotonic)
}
/// What tells a packet's flow apart where it is not of one connected socket: odd.
fn orphan(hash: u32, mask: u32) -> u64 {
    u64::from(hash & mask) << 1 | 1
}

impl Fq {
    fn forget(&mut self, flows: u32) {
        self.known -= flows;
        self.inactive -= flows;
        self.counts.gc += u64::from(flows);
    }

    /// `fq_flow_add_tail`: in the list of the flow's band.
    fn add_tail(&mut self, n: u32, which: Which) {
        let flow = self.flows.at(n);
        flow.next = NIL;
        flow.detached = None;
        let band = &mut self.bands[usize::from(flow.band)];
        let list = if which == Which::New { &mut band.new_flows } else { &mut band.old_flows };
        let last = std::mem::replace(&mut list.last, n);
        match list.first {
            NIL => list.first = n,
            _ => self.flows.at(last).next = n,
        }
    }
    /// Takes the first flow out of a list of the band that is served.
    fn remove_first(&mut self, which: Which) {
        let band = &mut self.bands[self.band];
        let list = if which == Which::New { &mut band.new_flows } else { &mut band.old_flows };
        list.first = self.flows.at(list.first).next;
    }
    /// `fq_flow_set_throttled`.
    fn throttle(&mut self, n: u32, until: u64) {
        self.throttled += 1;
        self.counts.throttled += 1;
        self.wait(n, until);
    }
    /// `fq_flow_rb_insert`.
    fn wait(&mut self, n: u32, until: u64) {
        self.sequence += 1;
        self.flows.at(n).waits = self.sequence;
        self.delayed.push(Reverse((until, self.sequence, n)));
        self.time_next_delayed_flow = self.time_next_delayed_flow.min(until);
    }
    /// The first that waits, with its time.
    fn first_delayed(&mut self) -> Option<(u64, u32)> {
        while let Some(&Reverse((time, sequence, n))) = self.delayed.peek() {
            if self.flows.at(n).waits == sequence {
                return Some((time, n));
            }
            self.delayed.pop();
        }
        None
    }
    /// A flow that waited has its turn.
    fn unset_throttled(&mut self, n: u32) {
        self.flows.at(n).waits = 0;
        self.throttled -= 1;
        self.add_tail(n, Which::Old);
    }
    /// `fq_flow_adjust_timer`: a packet has come that may go earlier than what its flow waits for.
    fn hurry(&mut self, n: u32, time: u64, now: u64) {
        let before = std::mem::replace(&mut self.flows.at(n).time_next_packet, time);
        if time > now {
            self.wait(n, time);
            return;
        }
        self.unset_throttled(n);
        if self.time_next_delayed_flow == before {
            self.time_next_delayed_flow = self.first_delayed().map_or(NEVER, |(time, _)| time);
        }
    }
    /// `fq_check_throttled`.
    fn unthrottle(&mut self, now: u64) {
        if self.time_next_delayed_flow > now {
            return;
        }
        let sample = now - self.time_next_delayed_flow;
        if sample > 0 || !self.since_7 {
            let latency = &mut self.counts.unthrottle_latency_ns;
            *latency -= *latency >> 3;
            *latency += sample >> 3;
        }
        self.time_next_delayed_flow = NEVER;
        while let Some((time, n)) = self.first_delayed() {
            if time > now {
                self.time_next_delayed_flow = time;
                break;
            }
            self.delayed.pop();
            self.unset_throttled(n);
        }
    }

    /// `fq_fastpath_check`: whether a packet may pass by the flows.
    fn may_pass(&self, skb: &Skb, time: u64, now: u64) -> bool {
        if time > now {
            return false;
        }
        if self.qlen != 0
            && (self.known != self.inactive + self.throttled
                || self.internal_qlen >= FASTPATH_MAX
                || self.time_next_delayed_flow <= now)
        {
            return false;
        }
        let sender = &skb.sender;
        (sender.tcp || sender.pacing_rate.is_none()) && self.maxrate == u32::MAX
    }
    /// `fq_classify`: the flow, `None` for those that pass by.
    fn classify(&mut self, skb: &Skb, time: u64, cx: &mut Cx<'_>) -> Option<u32> {
        let own = skb.sender.connected;
        let key = if own {
            u64::from(skb.sender.socket) << 1
        } else {
            orphan(self.key.hash(skb), self.orphan_mask)
        };
        let now = cx.now.as_ns() as u64;
        if self.may_pass(skb, time, now) {
            self.counts.fastpath += 1;
            cx.drops.paced |= own && self.pacing != 0;
            return None;
        }
        let jiffies = jiffies_at(cx.now, self.hz);
        let (found, forgotten) = self.flows.find(key, jiffies, self.hz);
        self.forget(forgotten);
        if found.is_some() {
            return found;
        }
        cx.drops.paced |= own && self.pacing != 0;
        self.known += 1;
        self.inactive += 1;
        Some(self.flows.insert(Flow::new(key, self.initial_quantum as i32, jiffies | 1)))
    }
    fn refuse(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) -> Xmit {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, reason);
        Xmit::Drop
    }

    /// The list whose turn it is in the band that is served: `fq_pband_head_select`.
    fn select(&self) -> Option<(Which, u32)> {
        let band = &self.bands[self.band];
        if band.credit <= 0 {
            return None;
        }
        match (band.new_flows.first, band.old_flows.first) {
            (NIL, NIL) => None,
            (NIL, old) => Some((Which::Old, old)),
            (new, _) => Some((Which::New, new)),
        }
    }
    /// The next band that may send; `None` where none has a flow.
    fn next_band(&mut self) -> Option<(Which, u32)> {
        let mut retry = 0;
        loop {
            retry += 1;
            if retry > BANDS {
                return None;
            }
            self.band = (self.band + 1) % BANDS;
            let band = &mut self.bands[self.band];
            band.credit = band.credit.saturating_add(band.quantum).min(band.quantum);
            if band.credit <= 0 {
                retry = 0;
            } else if let Some(found) = self.select() {
                return Some(found);
            }
        }
    }
    /// `qdisc_watchdog_schedule_range_ns`.
    fn watch(&mut self) {
        let (soft, slack) = (self.time_next_delayed_flow, u64::from(self.timer_slack));
        if soft == NEVER || self.watchdog.is_some_and(|(set, _)| set.wrapping_sub(soft) <= slack) {
            return;
        }
        self.watchdog = Some((soft, soft.saturating_add(slack)));
    }
    /// `fq_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if self.qlen == 0 {
            return None;
        }
        if let Some(first) = self.pool.first(&self.internal) {
            let taken = self.pool.take(&mut self.internal, first)?;
            self.internal_qlen -= 1;
            return Some(self.sent(taken.packet));
        }
        let now = cx.now.as_ns() as u64;
        self.unthrottle(now);
        loop {
            let Some((which, n)) = self.select().or_else(|| self.next_band()) else {
                self.watch();
                return None;
            };
            let quantum = self.quantum as i32;
            let flow = self.flows.at(n);
            if flow.credit <= 0 {
                flow.credit = flow.credit.wrapping_add(quantum);
                self.remove_first(which);
                self.add_tail(n, Which::Old);
                continue;
            }
            let Some(first) = self.pool.first(&flow.queue) else {
                self.remove_first(which);
                if which == Which::New {
                    self.add_tail(n, Which::Old);
                } else {
                    self.flows.at(n).detached = Some(jiffies_at(cx.now, self.hz) | 1);
                }
                continue;
            };
            let due = first.time.max(flow.time_next_packet);
            if now < due {
                flow.time_next_packet = due;
                self.remove_first(which);
                self.throttle(n, due);
                continue;
            }
            let mut taken = self.pool.take(&mut flow.queue, first)?;
            flow.qlen -= 1;
            self.inactive += u32::from(flow.qlen == 0);
            self.bands[usize::from(taken.band)].packets -= 1;
            if now - due > u64::from(self.ce_threshold) * 1000 {
                set_ce(&mut taken.packet);
                self.counts.ce_mark += 1;
            }
            self.charge(n, &taken.packet, now);
            return Some(self.sent(taken.packet));
        }
    }
    /// What a packet costs its flow and its band, and when the flow may send the next.
    fn charge(&mut self, n: u32, packet: &Packet, now: u64) {
        let mut len = packet.pkt_len;
        let flow = self.flows.at(n);
        flow.credit = flow.credit.wrapping_sub(len as i32);
        let band = &mut self.bands[self.band];
        band.credit = band.credit.wrapping_sub(len as i32);
        if self.pacing == 0 {
            return;
        }
        let mut rate = if self.maxrate == u32::MAX { u64::MAX } else { self.maxrate.into() };
        // Who names a time of departure paces by that; only the most a flow may send is beyond it.
        if packet.sender.departs == Time::ZERO {
            rate = rate.min(packet.sender.pacing_rate.map_or(u64::MAX, std::num::NonZeroU64::get));
            if rate <= u64::from(self.low_rate_threshold) {
                flow.credit = 0;
            } else {
                len = len.max(self.quantum);
                if flow.credit > 0 {
                    return;
                }
            }
        }
        if rate == u64::MAX {
            return;
        }
        let mut wait = u64::from(len) * 1_000_000_000;
        wait = wait.checked_div(rate).unwrap_or(wait);
        if wait > WAIT_MAX_NS {
            wait = WAIT_MAX_NS;
            self.counts.pkts_too_long += 1;
        }
        if flow.time_next_packet != 0 {
            wait -= (wait / 2).min(now - flow.time_next_packet);
        }
        flow.time_next_packet = now + wait;
    }
    /// A packet leaves.
    fn sent(&mut self, packet: Packet) -> Packet {
        self.qlen -= 1;
        self.backlog -= packet.pkt_len;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        packet
    }
}

/// A moment of the kernel's clock; what lies behind its end is never.
fn moment(ns: u64) -> Time {
    i64::try_from(ns).map_or(Time::MAX, Time::from_ns)
}

impl Qdisc for Fq {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let band = self.priomap[(packet.priority & 15) as usize];
        let counted = &mut self.bands[usize::from(band)];
        if counted.packets >= self.limit {
            counted.drops += 1;
            return self.refuse(packet, DropReason::Overlimit, cx);
        }
        let now = cx.now.as_ns() as u64;
        let mut time = packet.sender.departs.as_ns() as u64;
        if time == 0 {
            time = now;
        } else {
            let horizon = now + u64::from(self.horizon) * 1000;
            // 7.2 converts the times of other clocks.
            if time as i64 > horizon as i64 || !self.since_7 && is_by_wall_clock(&packet) {
                if self.horizon_drop != 0 {
                    self.counts.horizon_drops += 1;
                    return self.refuse(packet, DropReason::Horizon, cx);
                }
                self.counts.horizon_caps += 1;
                packet.sender.departs = Time::from_ns(horizon as i64);
                time = horizon;
            }
        }
        let flow = self.classify(&packet, time, cx);
        let (len, named) = (packet.pkt_len, packet.sender.departs != Time::ZERO);
        match flow {
            None => {
                self.internal_qlen += 1;
                self.pool.add(&mut self.internal, packet, time, band);
            }
            Some(n) => {
                let flow = self.flows.at(n);
                if flow.qlen >= self.flow_limit {
                    self.counts.flows_plimit += 1;
                    return self.refuse(packet, DropReason::Overlimit, cx);
                }
                if let Some(age) = flow.detached {
                    if jiffies_at(cx.now, self.hz) > age + self.refill_delay {
                        flow.credit = (flow.credit as u32).max(self.quantum) as i32;
                    }
                    // Still by the band it had before.
                    self.add_tail(n, Which::New);
                }
                let flow = self.flows.at(n);
                flow.band = band;
                self.bands[usize::from(band)].packets += 1;
                self.inactive -= u32::from(flow.qlen == 0);
                flow.qlen += 1;
                self.pool.add(&mut flow.queue, packet, time, band);
                let waits = flow.waits != 0 && time < flow.time_next_packet;
                if self.since_7 && named && waits && self.maxrate == u32::MAX {
                    self.hurry(n, time, now);
                }
            }
        }
        self.backlog += len;
        self.qlen += 1;
        Xmit::Success
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(packet) = self.peeked.take() {
            self.qlen -= 1;
            self.backlog -= packet.pkt_len;
            return Some(packet);
        }
        self.take(cx)
    }
    /// `qdisc_peek_dequeued`: a dequeue's work; the packet counts as queued until it goes.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none()
            && let Some(packet) = self.take(cx)
        {
            self.qlen += 1;
            self.backlog += packet.pkt_len;
            self.peeked = Some(packet);
        }
        self.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.watchdog.map(|(_, hard)| moment(hard))
    }
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        if let Some((soft, hard)) = self.watchdog {
            see(moment(soft), moment(hard));
        }
    }
    fn expire(&mut self, due: Due) {
        self.watchdog = self.watchdog.filter(|&(soft, hard)| !due.has(moment(soft), moment(hard)));
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        if o.u32("initial_quantum").is_some_and(|q| q > INITIAL_QUANTUM_MAX) {
            return Err(KernelError::errno(KernelError::ERANGE));
        }
        let result = self.set(o, cx.now);
        while self.qlen > self.limit {
            // Counted as sent here, and as dropped by those above.
            let Some(packet) = self.dequeue(cx) else { break };
            cx.drops.drop(packet, DropReason::Purged);
        }
        result
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        let pool = &mut self.pool;
        let mut purge = |queue: &mut Queue| {
            while let Some(first) = pool.first(queue)
                && let Some(taken) = pool.take(queue, first)
            {
                cx.drops.drop(taken.packet, DropReason::Purged);
            }
        };
        purge(&mut self.internal);
        self.flows.clear(|flow| purge(&mut flow.queue));
        for band in &mut self.bands {
            (band.new_flows, band.old_flows, band.packets) = (List::default(), List::default(), 0);
        }
        self.delayed.clear();
        self.throttled = 0;
        (self.internal_qlen, self.known, self.inactive) = (0, 0, 0);
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
    fn dump(&self) -> Options {
        self.options()
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.ce_mark)
    }
    fn xstats(&self, now: Time) -> Option<Options> {
        Some(self.counters(now))
    }
    fn scribbles(&self) -> Scribble {
        Scribble::Nanoseconds
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}
