//! `dualpi2`: a queue for low latency beside a classic one, coupled by one PI controller (L4S).
//!
//! Follows: linux v7.2 `net/sched/sch_dualpi2.c`; RFC 9332; De Schepper et al., "PI2: A Linearized AQM for both Classic and Scalable TCP",
//! CoNEXT 2016.
//! Differs: every packet is one segment, so `split_gso` has nothing to split; a packet takes as much memory as a frame from a packet socket,
//! wherever it comes from. Where nobody says how late interrupts are ([`Qdisc::do_chores`]), the controller looks at its very moments, and a
//! packet that comes at one of them comes first.

use super::unsimulated::range;
use super::{KindSpec, memory};
use crate::aqm::ecn::set_ce;
use crate::cls::{BlockId, Filters, Gone, Verdict};
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Xmit};
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

/// `MAX_PROB`: certain.
const MAX_PROB: u32 = u32::MAX;
/// `ALPHA_BETA_MAX`: the greatest gain, in 256ths of a hertz.
const GAIN_MAX: u32 = (1 << 31) - 1;
/// `ALPHA_BETA_SCALING`: gains are kept as powers of two finer than they are given.
const GAIN_SHIFT: u32 = 2;
/// `ALPHA_BETA_GRANULARITY`.
const GAIN_UNIT: u64 = 1 << 6;
const SECOND: u64 = 1_000_000_000;
/// `MAX_WC`: the weights of both queues together, percent.
const WEIGHTS: u32 = 100;

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

/// `dualpi2_scale_alpha_beta`.
fn scaled(gain: u32) -> u32 {
    (((u64::from(gain) * u64::from(MAX_PROB)) >> GAIN_SHIFT) / SECOND) as u32
}
/// `dualpi2_unscale_alpha_beta`.
fn unscaled(gain: u32) -> u32 {
    ((u64::from(gain) * SECOND).wrapping_shl(GAIN_SHIFT) / u64::from(MAX_PROB)) as u32
}
/// `convert_us_to_nsec`: at most what 32 bits hold.
fn ns(us: u32) -> u32 {
    u32::try_from(u64::from(us) * 1000).unwrap_or(u32::MAX)
}
/// `convert_ns_to_usec`.
fn us(ns: u64) -> u32 {
    u32::try_from(ns / 1000).unwrap_or(u32::MAX)
}

/// What the options say.
#[derive(Debug)]
struct Params {
    /// Packets.
    limit: u32,
    /// Bytes.
    memory_limit: u32,
    /// ns.
    target: u64,
    /// ns.
    tupdate: u32,
    alpha: u32,
    beta: u32,
    /// ns, or packets.
    step_thresh: u32,
    step_in_packets: bool,
    min_qlen_step: u32,
    coupling: u32,
    drop_overload: bool,
    drop_early: bool,
    /// Weight of the classic queue, percent.
    wc: u32,
    /// Where the credit begins.
    credit_init: i32,
    ecn_mask: u8,
    split_gso: bool,
}

/// MTU with its link header, as it is looked at here.
fn mtu(device: &Device) -> u32 {
    device.psched_mtu().clamp(1, 1 << 20)
}
/// `get_memory_limit`: twice the greatest packet for each.
fn memory_for(limit: u32, device: &Device) -> u32 {
    u32::try_from(u64::from(limit) * 2 * u64::from(mtu(device))).unwrap_or(u32::MAX)
}
/// `dualpi2_calculate_c_protection`.
fn credit_of(wc: u32, device: &Device) -> i32 {
    (mtu(device) as i32).wrapping_mul(wc as i32 - (WEIGHTS - wc) as i32)
}

impl Params {
    /// `dualpi2_reset_default`.
    fn new(device: &Device) -> Params {
        Params {
            limit: 10_000,
            memory_limit: memory_for(10_000, device),
            target: 15_000_000,
            tupdate: 16_000_000,
            alpha: scaled(41),
            beta: scaled(819),
            step_thresh: 1_000_000,
            step_in_packets: false,
            min_qlen_step: 0,
            coupling: 2,
            drop_overload: true,
            drop_early: false,
            wc: 10,
            credit_init: credit_of(10, device),
            ecn_mask: 1,
            split_gso: true,
        }
    }
    /// `dualpi2_policy`.
    fn check(o: &Options) -> Result<(), KernelError> {
        for name in ["limit", "memlimit", "tupdate"] {
            range(o, name, 1..=u32::MAX)?;
        }
        for name in ["alpha", "beta"] {
            range(o, name, 1..=GAIN_MAX)?;
        }
        range(o, "coupling_factor", 1..=255)?;
        for name in ["drop_overload", "drop_early", "split_gso"] {
            range(o, name, 0..=1)?;
        }
        range(o, "classic_protection", 0..=WEIGHTS)?;
        range(o, "ecn_mask", 1..=3)?;
        if o.has("step_thresh_pkts") && o.has("step_thresh_us") {
            let sentence = "sch_dualpi2: multiple step thresh attributes";
            return Err(KernelError::new(KernelError::EINVAL, sentence));
        }
        Ok(())
    }
    /// Sets what is given. Whether the credit begins anew.
    fn set(&mut self, o: &Options, device: &Device) -> bool {
        if let Some(limit) = o.u32("limit") {
            (self.limit, self.memory_limit) = (limit, memory_for(limit, device));
        }
        let set = |field: &mut u32, value: Option<u32>| *field = value.unwrap_or(*field);
        set(&mut self.memory_limit, o.u32("memlimit"));
        self.target = o.u32("target").map_or(self.target, |us| u64::from(us) * 1000);
        set(&mut self.tupdate, o.u32("tupdate").map(ns));
        set(&mut self.alpha, o.u32("alpha").map(scaled));
        set(&mut self.beta, o.u32("beta").map(scaled));
        if let Some(packets) = o.u32("step_thresh_pkts") {
            (self.step_in_packets, self.step_thresh) = (true, packets);
        } else if let Some(us) = o.u32("step_thresh_us") {
            (self.step_in_packets, self.step_thresh) = (false, ns(us));
        }
        set(&mut self.min_qlen_step, o.u32("min_qlen_step"));
        set(&mut self.coupling, o.u32("coupling_factor"));
        let flag = |field: &mut bool, name| *field = o.u32(name).map_or(*field, |value| value != 0);
        flag(&mut self.drop_overload, "drop_overload");
        flag(&mut self.drop_early, "drop_early");
        flag(&mut self.split_gso, "split_gso");
        self.ecn_mask = o.u32("ecn_mask").map_or(self.ecn_mask, |mask| mask as u8);
        let protection = o.u32("classic_protection");
        if let Some(wc) = protection {
            (self.wc, self.credit_init) = (wc, credit_of(wc, device));
        }
        protection.is_some()
    }
    fn dump(&self) -> Options {
        let step = if self.step_in_packets {
            ("step_thresh_pkts", self.step_thresh)
        } else {
            ("step_thresh_us", us(self.step_thresh.into()))
        };
        Options::new()
            .with("limit", self.limit)
            .with("memlimit", self.memory_limit)
            .with("target", us(self.target))
            .with("tupdate", us(self.tupdate.into()))
            .with("alpha", unscaled(self.alpha))
            .with("beta", unscaled(self.beta))
            .with(step.0, step.1)
            .with("min_qlen_step", self.min_qlen_step)
            .with("coupling_factor", self.coupling)
            .with("drop_overload", u32::from(self.drop_overload))
            .with("drop_early", u32::from(self.drop_early))
            .with("classic_protection", self.wc)
            .with("ecn_mask", u32::from(self.ecn_mask))
            .with("split_gso", u32::from(self.split_gso))
    }
}

/// The PI controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Control {
    /// `pi2_prob`, of [`MAX_PROB`].
    prob: u32,
    /// The delay at the last update, ns.
    last_qdelay: u64,
    /// When it is due next.
    timer: Time,
}

impl Control {
    /// `calculate_probability`: the next probability with the delay as it is.
    fn update(&mut self, p: &Params, qdelay: u64) {
        let error = (qdelay as i64).wrapping_sub(p.target as i64).wrapping_mul(p.alpha.into());
        let growth = (qdelay as i64).wrapping_sub(self.last_qdelay as i64).wrapping_mul(p.beta.into());
        let delta = error.wrapping_add(growth);
        self.last_qdelay = qdelay;
        let step = (delta.unsigned_abs() / GAIN_UNIT) as u32;
        let old = self.prob;
        self.prob = if delta > 0 {
            let new = step.wrapping_add(old);
            if new < old { MAX_PROB } else { new }
        } else {
            let new = old.wrapping_sub(step);
            if new > old { 0 } else { new }
        };
        // Where overload does not drop, what is marked of the queue for low latency is all of it at most.
        if !p.drop_overload {
            self.prob = self.prob.min(MAX_PROB / p.coupling);
        }
    }
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
            self.stats.packets += 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};

    const MS: i64 = 1_000_000;

    fn made(o: Option<&Options>, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(Kernel::V7_2), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, o, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }
    fn with_tos(seq: u64, len: u32, tos: u8) -> Packet {
        let mut p = packet(seq, len);
        if let L3::Ipv4(h) = &mut p.l3 {
            h.tos = tos;
        }
        p
    }
    fn number(q: &dyn Qdisc, at: i64, name: &str) -> u32 {
        q.xstats(Time::from_ns(at)).and_then(|x| x.u32(name)).unwrap_or_else(|| panic!("no {name}"))
    }

    #[test]
    fn the_low_queue_has_nine_turns_of_ten() {
        let mut bench = Bench::new();
        let mut q = made(None, &mut bench);
        for seq in 0..40 {
            assert_eq!(q.enqueue(with_tos(seq, 1000, (seq % 2) as u8), &mut bench.cx(0)), Xmit::Success);
        }
        let order: Vec<u64> =
            std::iter::from_fn(|| q.dequeue(&mut bench.cx(0))).take(20).map(|p| p.seq % 2).collect();
        // 80 MTU of credit at first, which 1000 bytes at a weight of 10 use up with the 13th; one of the classic queue gives back 90 of them.
        let turn = |n: usize| if n == 13 { 0 } else { 1 };
        assert_eq!(order, (0..20).map(turn).collect::<Vec<u64>>());
        let xstats = |name| q.xstats(Time::ZERO).unwrap().i64(name);
        assert_eq!(xstats("credit"), Some(-80 * 1514 + 19 * 10_000 - 90_000));
    }

    #[test]
    fn the_step_marks_what_has_waited_a_millisecond() {
        let mut bench = Bench::new();
        let mut q = made(None, &mut bench);
        for seq in 0..3 {
            q.enqueue(with_tos(seq, 100, 1), &mut bench.cx(0));
        }
        let tos = |p: Option<Packet>| p.map(|p| p.tos() & 3);
        assert_eq!(tos(q.dequeue(&mut bench.cx(MS))), Some(1));
        assert_eq!(tos(q.dequeue(&mut bench.cx(MS + 1))), Some(3));
        assert_eq!(number(&*q, MS, "step_mark"), 1);
        // What no sender marked, but a filter or its priority sent here, is dropped by the step.
        let mut strange = with_tos(9, 100, 0);
        strange.priority = Handle::new(1, 1).0;
        q.enqueue(strange, &mut bench.cx(2 * MS));
        q.dequeue(&mut bench.cx(2 * MS));
        assert!(q.dequeue(&mut bench.cx(9 * MS)).is_none());
        assert_eq!((q.stats().drops, q.qlen(), q.stats().backlog), (1, 0, 0));
    }

    #[test]
    fn the_controller_follows_the_greater_delay() {
        let mut bench = Bench::new();
        let mut q = made(None, &mut bench);
        q.enqueue(with_tos(0, 1000, 0), &mut bench.cx(0));
        assert_eq!(number(&*q, 16 * MS, "prob"), 0);
        // At 16 ms: 1 ms above the target by alpha, 16 ms more than before by beta.
        let want = (MS * i64::from(scaled(41)) + 16 * MS * i64::from(scaled(819))) / 64;
        assert_eq!(number(&*q, 16 * MS + 1, "prob"), want as u32);
        // Told of its interrupts it waits for them.
        q.do_chores(Time::from_ns(MS));
        assert_eq!(number(&*q, 100 * MS, "prob"), 0);
        q.do_chores(Time::from_ns(16 * MS + 1));
        assert!(number(&*q, 100 * MS, "prob") > want as u32);
    }

    #[test]
    fn overload_drops_and_overflow_marks() {
        for (drop, left) in [(1u32, 0), (0, 20)] {
            let mut bench = Bench::new();
            let sure = Options::new().with("alpha", GAIN_MAX).with("beta", GAIN_MAX).with("target", 0u32);
            let o = sure.with("drop_overload", drop).with("tupdate", 1000u32).with("coupling_factor", 4u32);
            let mut q = made(Some(&o), &mut bench);
            for seq in 0..24 {
                q.enqueue(with_tos(seq, 1000, 1), &mut bench.cx(0));
            }
            let sent = std::iter::from_fn(|| q.dequeue(&mut bench.cx(500 * MS))).count();
            // The last three are less than two MTU behind each.
            assert!(sent >= left + 3, "{drop}: {sent}");
            assert_eq!(q.stats().drops, 24 - sent as u32);
            assert_eq!(number(&*q, 500 * MS, "prob"), if drop == 1 { MAX_PROB } else { MAX_PROB / 4 });
        }
    }

    #[test]
    fn a_lower_limit_drops_classic_packets_first() {
        let mut bench = Bench::new();
        let mut q = made(None, &mut bench);
        for seq in 0..10 {
            q.enqueue(with_tos(seq, 1000, (seq % 2) as u8), &mut bench.cx(0));
        }
        q.change(Some(&Options::new().with("limit", 3u32)), &mut bench.cx(0)).unwrap();
        let gone: Vec<u64> = bench.dropped().into_iter().map(|d| d.0).collect();
        assert_eq!(gone, [0, 2, 4, 6, 8, 1, 3]);
        assert_eq!((q.qlen(), q.stats().backlog, q.stats().drops), (3, 3000, 7));
        let mut errno =
            |o: Options, bench: &mut Bench| q.change(Some(&o), &mut bench.cx(0)).map_err(|e| e.errno);
        assert_eq!(errno(Options::new(), &mut bench), Err(KernelError::EINVAL));
    }

    /// A gap is the same however often somebody looks in it.
    #[test]
    fn a_gap_is_skipped_exactly() {
        let mut bench = Bench::new();
        let mut run = |looks: bool| {
            let mut q = made(None, &mut bench);
            q.enqueue(with_tos(0, 1000, 0), &mut bench.cx(0));
            assert!(q.dequeue(&mut bench.cx(300 * MS + 17)).is_some());
            for ms in (301..20_000).filter(|_| looks) {
                q.peek(&mut bench.cx(ms * MS));
            }
            let mut times = Vec::new();
            q.peek(&mut bench.cx(20_000 * MS));
            q.chores(&mut |at| times.push(at));
            (times, number(&*q, 20_000 * MS, "prob"))
        };
        assert_eq!(run(true), run(false));
    }
}
