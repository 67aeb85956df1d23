//! `dualpi2`: a queue for low latency beside a classic one, coupled by one PI controller (L4S).
//!
//! Follows: linux v7.2 `net/sched/sch_dualpi2.c`; RFC 9332; De Schepper et al., "PI2: A Linearized AQM for both Classic and Scalable TCP",
//! CoNEXT 2016.
//! Differs: a packet takes as much memory as a frame from a packet socket,
//! wherever it comes from. Where nobody says how late interrupts are ([`Qdisc::do_chores`]), the controller looks at its very moments, and a
//! packet that comes at one of them comes first.

mod config;
mod control;
#[cfg(test)]
mod tests;

use self::config::{MAX_PROB, Params, WEIGHTS, mtu, us};
use self::control::Control;
use super::{KindSpec, memory};
use crate::aqm::ecn::set_ce;
use crate::cls::{BlockId, Filters, Gone, Verdict};
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Scribble, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Rng, Span, Stats, Time};
use penstock_packet::{L3, Packet, Skb};
use std::collections::VecDeque;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "dualpi2",
    about: "a queue for low latency beside a classic one, coupled by one PI controller",
    kernels: &[Kernel::V7_2],
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Flows,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

/// Which queue a packet is in: `enum dualpi2_classification_results`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    /// The classic one.
    Classic,
    /// That for low latency.
    L4s,
    /// The same; it is never marked nor dropped by probability.
    Untouched,
}

impl Class {
    /// By the minor number of a class id; `None` for one that there is not.
    fn of(minor: u16) -> Option<Class> {
        [Class::Classic, Class::L4s, Class::Untouched].get(usize::from(minor)).copied()
    }
}

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let params = Params::new(&init.device);
    let mut dualpi2 = Dualpi2 {
        handle: init.handle,
        device: init.device,
        credit: params.credit_init,
        control: Control { prob: 0, last_qdelay: 0, timer: Time::ZERO },
        params,
        filters: Filters::new(init.handle),
        driven: false,
        classic: Lane::default(),
        low: Lane::default(),
        peeked: None,
        qlen: 0,
        backlog: 0,
        memory_used: 0,
        counts: Counts::default(),
        stats: Stats::default(),
    };
    if let Some(o) = options.filter(|o| !o.is_empty()) {
        dualpi2.set(o)?;
    }
    dualpi2.control.timer = cx.now + Span::from_ns(dualpi2.params.tupdate.into());
    Ok(Box::new(dualpi2))
}

/// A packet that waits: `struct dualpi2_skb_cb`.
struct Entry {
    packet: Packet,
    class: Class,
    /// Its ECN bits when it came.
    ect: u8,
    apply_step: bool,
}

/// One of the two queues.
#[derive(Default)]
struct Lane {
    entries: VecDeque<Entry>,
    /// When the packet came that stands first, as the controller knows it (`c_head_ts`, `l_head_ts`).
    head: Option<Time>,
}

impl Lane {
    fn push(&mut self, entry: Entry, now: Time) {
        self.head.get_or_insert(now);
        self.entries.push_back(entry);
    }
    fn pop(&mut self) -> Option<Entry> {
        let entry = self.entries.pop_front();
        self.head = self.entries.front().map(|e| e.packet.queued);
        entry
    }
    fn len(&self) -> u32 {
        self.entries.len() as u32
    }
    /// How long the first has waited, ns.
    fn delay(&self, now: Time) -> u64 {
        self.head.map_or(0, |since| (now - since).as_ns() as u64)
    }
    fn purge(&mut self, cx: &mut Cx<'_>) {
        self.entries.drain(..).for_each(|e| cx.drops.drop(e.packet, DropReason::Purged));
        self.head = None;
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets_in_c: u32,
    packets_in_l: u32,
    maxq: u32,
    ecn_mark: u32,
    step_marks: u32,
    max_memory_used: u32,
}

/// The qdisc.
struct Dualpi2 {
    // Parameters
    handle: Handle,
    device: Device,
    params: Params,
    filters: Filters,
    // Variables
    control: Control,
    /// Somebody says when the controller's timer goes off.
    driven: bool,
    classic: Lane,
    low: Lane,
    /// What was peeked at: in neither queue, but counted as queued.
    peeked: Option<Packet>,
    /// Packets in both, and what was peeked at.
    qlen: u32,
    backlog: u32,
    /// Positive: the classic queue has its turn.
    credit: i32,
    memory_used: u32,
    counts: Counts,
    stats: Stats,
}

/// `dualpi2_roll`.
fn roll(prob: u32, rng: &mut Rng) -> bool {
    rng.next_u32() <= prob
}

/// `dualpi2_read_ect`.
fn ect(skb: &Skb) -> u8 {
    match &skb.l3 {
        L3::Ipv4(h) => h.tos & 3,
        L3::Ipv6(h) => h.traffic_class & 3,
        _ => 0,
    }
}

impl Dualpi2 {
    /// The controller as it is at `now`, where it goes by itself.
    fn controlled(&self, now: Time) -> Control {
        let mut control = self.control;
        if self.driven {
            return control;
        }
        let step = i64::from(self.params.tupdate);
        while control.timer < now {
            let (at, before) = (control.timer, control);
            control.update(&self.params, self.classic.delay(at).max(self.low.delay(at)));
            control.timer = at + Span::from_ns(step);
            // What an update leaves as it was while nothing waits, no later one changes.
            let settled = (control.prob, control.last_qdelay) == (before.prob, before.last_qdelay);
            if settled && self.classic.head.is_none() && self.low.head.is_none() && control.timer < now {
                let times = ((now - control.timer).as_ns() - 1) / step;
                control.timer += Span::from_ns(times * step);
            }
        }
        control
    }
    #[inline]
    fn run(&mut self, now: Time) {
        if !self.driven && self.control.timer < now {
            self.control = self.controlled(now);
        }
    }
    /// `dualpi2_skb_classify`.
    fn classify(&self, skb: &mut Skb, ect: u8, cx: &mut Cx<'_>) -> Result<Class, Gone> {
        if ect & self.params.ecn_mask != 0 {
            return Ok(Class::L4s);
        }
        let priority = Handle(skb.priority);
        if priority.qdisc() == self.handle
            && let Some(class) = Class::of(priority.minor())
        {
            return Ok(class);
        }
        if self.filters.is_empty(Filters::ROOT) {
            return Ok(Class::Classic);
        }
        match self.filters.classify(Filters::ROOT, skb, cx) {
            Verdict::Class(hit) => Ok(Class::of(hit.classid.minor()).unwrap_or(Class::Classic)),
            Verdict::Unmatched => Ok(Class::Classic),
            Verdict::Gone(gone) => Err(gone),
        }
    }
    fn mark(&mut self, packet: &mut Packet) -> bool {
        let marked = set_ce(packet);
        self.counts.ecn_mark = self.counts.ecn_mark.wrapping_add(marked.into());
        marked
    }
    /// `must_drop`: marks by the probability, or says that the packet is to be dropped. Never while less than two MTU are queued.
    fn must_drop(&mut self, packet: &mut Packet, class: Class, ect: u8, rng: &mut Rng) -> bool {
        if self.backlog < 2 * mtu(&self.device) {
            return false;
        }
        let prob = self.control.prob;
        let coupled = u64::from(prob) * u64::from(self.params.coupling);
        let overload = coupled > u64::from(MAX_PROB);
        match class {
            // `dualpi2_classic_marking`
            Class::Classic => {
                if roll(prob, rng) && roll(prob, rng) {
                    if overload || ect == 0 {
                        return true;
                    }
                    self.mark(packet);
                }
            }
            // `dualpi2_scalable_marking`
            Class::L4s if overload => {
                if self.params.drop_overload && roll(prob, rng) && roll(prob, rng) {
                    return true;
                }
                self.mark(packet);
            }
            Class::L4s => {
                if roll(coupled as u32, rng) {
                    if ect == 0 {
                        return true;
                    }
                    self.mark(packet);
                }
            }
            Class::Untouched => {}
        }
        false
    }
    /// `dequeue_packet`: the next of the queue whose turn it is, and by how much the credit changes if it leaves.
    fn next(&mut self) -> Option<(Entry, i32)> {
        let classic = self.qlen - self.low.len();
        let (entry, weight) = if self.low.len() > 0 && (classic == 0 || self.credit <= 0) {
            (self.low.pop()?, if classic > 0 { self.params.wc as i32 } else { 0 })
        } else if classic > 0 {
            let weight = -((WEIGHTS - self.params.wc) as i32);
            (self.classic.pop()?, if self.low.len() > 0 { weight } else { 0 })
        } else {
            self.credit = self.params.credit_init;
            return None;
        };
        let len = entry.packet.pkt_len;
        self.qlen -= 1;
        self.memory_used = self.memory_used.wrapping_sub(memory(&entry.packet));
        self.backlog = self.backlog.wrapping_sub(len);
        Some((entry, weight.wrapping_mul(len as i32)))
    }
    /// `do_step_aqm`: marks what has waited too long in the queue for low latency. Whether it is dropped instead.
    fn step(&mut self, entry: &mut Entry, now: Time) -> bool {
        let qdelay = if self.params.step_in_packets {
            u64::from(self.low.len())
        } else {
            (now - entry.packet.queued).as_ns() as u64
        };
        if entry.apply_step && qdelay > u64::from(self.params.step_thresh) {
            if entry.ect == 0 {
                return true;
            }
            let marked = self.mark(&mut entry.packet);
            self.counts.step_marks = self.counts.step_marks.wrapping_add(marked.into());
        }
        false
    }
    /// Each segment of a super-packet is a packet of its own (`split_gso`). What it answers where none is taken is the last one's fate.
    //= linux v7.2 net/sched/sch_dualpi2.c dualpi2_qdisc_enqueue
    #[cold]
    fn segment(&mut self, packet: Packet, class: Class, ect: u8, cx: &mut Cx<'_>) -> Xmit {
        let mut segments = cx.drops.segment(packet);
        let (all, mut taken, mut last) = (segments.len() as u32, 0u32, Xmit::Drop);
        for segment in segments.drain(..) {
            last = self.enter(segment, class, ect, cx);
            taken += u32::from(last == Xmit::Success);
        }
        // The answer tells of the last one.
        cx.drops.segments_done(segments, all - taken.max(1));
        if taken > 0 { Xmit::Success } else { last }
    }
    /// `dualpi2_enqueue_skb`.
    fn enter(&mut self, mut packet: Packet, class: Class, ect: u8, cx: &mut Cx<'_>) -> Xmit {
        let size = memory(&packet);
        let used = u64::from(self.memory_used) + u64::from(size);
        if self.qlen >= self.params.limit || used > u64::from(self.params.memory_limit) {
            self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Overlimit);
            return Xmit::Drop;
        }
        if self.params.drop_early && self.must_drop(&mut packet, class, ect, cx.rng) {
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Early);
            return Xmit::Bypass;
        }
        packet.queued = cx.now;
        self.memory_used = self.memory_used.wrapping_add(size);
        let c = &mut self.counts;
        c.max_memory_used = c.max_memory_used.max(self.memory_used);
        c.maxq = c.maxq.max(self.qlen);
        self.qlen += 1;
        self.backlog = self.backlog.wrapping_add(packet.pkt_len);
        let apply_step = class == Class::L4s && self.low.len() >= self.params.min_qlen_step;
        let entry = Entry { packet, class, ect, apply_step };
        if class == Class::Classic {
            c.packets_in_c = c.packets_in_c.wrapping_add(1);
            self.classic.push(entry, cx.now);
        } else {
            c.packets_in_l = c.packets_in_l.wrapping_add(1);
            self.low.push(entry, cx.now);
        }
        Xmit::Success
    }
    /// `__dualpi2_qdisc_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        while let Some((mut entry, credit)) = self.next() {
            let (class, ect) = (entry.class, entry.ect);
            let dropped = !self.params.drop_early && self.must_drop(&mut entry.packet, class, ect, cx.rng)
                || class != Class::Classic && self.step(&mut entry, cx.now);
            if dropped {
                self.stats.drops = self.stats.drops.wrapping_add(1);
                cx.drops.drop(entry.packet, DropReason::Early);
                continue;
            }
            self.credit = self.credit.wrapping_add(credit);
            self.stats.bytes += u64::from(entry.packet.pkt_len);
            self.stats.packets += entry.packet.counts_as();
            return Some(entry.packet);
        }
        None
    }
    /// Sets parameters.
    fn set(&mut self, o: &Options) -> Result<(), KernelError> {
        Params::check(o)?;
        if self.params.set(o, &self.device) {
            self.credit = self.params.credit_init;
        }
        Ok(())
    }
}

impl Qdisc for Dualpi2 {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.run(cx.now);
        let ect = ect(&packet);
        let class = match self.classify(&mut packet, ect, cx) {
            Ok(class) => class,
            Err(gone) => return gone.leave_counted(packet, &mut self.stats, cx),
        };
        if self.params.split_gso && packet.gso().is_some() {
            return self.segment(packet, class, ect, cx);
        }
        self.enter(packet, class, ect, cx)
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.run(cx.now);
        let Some(packet) = self.peeked.take() else { return self.take(cx) };
        self.qlen -= 1;
        self.backlog = self.backlog.wrapping_sub(packet.pkt_len);
        Some(packet)
    }
    /// `dualpi2_peek`: a dequeue's work; the packet counts as queued until it goes.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        self.run(cx.now);
        if self.peeked.is_none()
            && let Some(packet) = self.take(cx)
        {
            self.qlen += 1;
            self.backlog = self.backlog.wrapping_add(packet.pkt_len);
            self.peeked = Some(packet);
        }
        self.peeked.as_ref()
    }
    fn never_wakes(&self) -> bool {
        true
    }
    fn chores(&self, see: &mut dyn FnMut(Time)) {
        see(self.control.timer);
    }
    fn do_chores(&mut self, now: Time) {
        self.driven = true;
        if self.control.timer <= now {
            let qdelay = self.classic.delay(now).max(self.low.delay(now));
            self.control.update(&self.params, qdelay);
            self.control.timer = now + Span::from_ns(self.params.tupdate.into());
        }
    }
    /// A dequeue that finds it empty gives the credit back.
    fn watches_idle(&self) -> bool {
        true
    }
    fn dump_looks(&self) -> u32 {
        1
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        if o.is_empty() {
            let sentence = "sch_dualpi2: Dualpi2 options are required";
            return Err(KernelError::new(KernelError::EINVAL, sentence));
        }
        self.run(cx.now);
        self.set(o)?;
        while self.qlen > self.params.limit || self.memory_used > self.params.memory_limit {
            // `qdisc_dequeue_internal`: what was peeked at goes first, and its memory once more.
            let gone = if self.qlen > self.low.len() {
                self.peeked.take().or_else(|| self.classic.entries.pop_front().map(|e| e.packet))
            } else {
                self.low.entries.pop_front().map(|e| e.packet)
            };
            let Some(packet) = gone else { break };
            self.qlen -= 1;
            self.backlog = self.backlog.wrapping_sub(packet.pkt_len);
            self.memory_used = self.memory_used.wrapping_sub(memory(&packet));
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Purged);
        }
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.run(cx.now);
        self.classic.purge(cx);
        self.low.purge(cx);
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.qlen, self.backlog, self.memory_used) = (0, 0, 0);
        self.control.prob = 0;
        self.counts = Counts::default();
        self.credit = self.params.credit_init;
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen, backlog: self.backlog, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        let both = self.classic.entries.iter().chain(&self.low.entries);
        both.for_each(|e| see(&e.packet));
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        self.params.dump()
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.ecn_mark.into())
    }
    fn xstats(&self, now: Time) -> Option<Options> {
        let c = &self.counts;
        let o = Options::new()
            .with("prob", self.controlled(now).prob)
            .with("delay_c", us(self.classic.delay(now)))
            .with("delay_l", us(self.low.delay(now)))
            .with("pkts_in_c", c.packets_in_c)
            .with("pkts_in_l", c.packets_in_l)
            .with("maxq", c.maxq)
            .with("ecn_mark", c.ecn_mark)
            .with("step_mark", c.step_marks)
            .with("credit", i64::from(self.credit))
            .with("memory_used", self.memory_used)
            .with("max_memory_used", c.max_memory_used)
            .with("memory_limit", self.params.memory_limit);
        Some(o)
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
    fn scribbles(&self) -> Scribble {
        Scribble::Nanoseconds
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

/// Filters choose among the two queues; as classes these are shown without ids of their own, and not found.
impl Classful for Dualpi2 {
    fn find(&self, _: Handle) -> bool {
        false
    }
    //= linux v7.2 net/sched/sch_dualpi2.c dualpi2_walk: there is no `dump`, so both rows name the qdisc itself.
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        for _ in 0..2 {
            visit(ClassDump {
                kind: SPEC.id,
                classid: self.handle,
                parent: self.handle,
                leaf: None,
                options: Options::new(),
                counters: Counters::None,
                stats: Stats::default(),
                xstats: None,
            });
        }
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        (classid == Handle::UNSPEC).then_some(Filters::ROOT)
    }
}
