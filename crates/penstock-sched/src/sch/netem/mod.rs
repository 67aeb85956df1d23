//! `netem`: packets are delayed, lost, doubled, damaged and put out of order.
//!
//! Follows: linux v6.12 `net/sched/sch_netem.c` (of 6.12.117, where a copy is told by `tc_depth`); [`old`] v2.6.35.
//! Differs: a duplicate goes in at the root when the enqueue at hand is over ([`Tree::enqueue`](crate::Tree::enqueue)), and the packet itself
//! lies here meanwhile: qdiscs above have noted the packet before the copy comes to them, not behind it. Of a damaged packet the bytes are
//! damaged that it has (headers; payload is a length), and that it is damaged is noted.

mod chance;
mod config;
mod damage;
mod dist;
mod old;
mod tfifo;

use super::KindSpec;
use super::one_class::OneClass;
use crate::aqm::ecn::set_ce;
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use chance::spread;
use config::Config;
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Sender, Skb};
use std::collections::VecDeque;
use tfifo::Tfifo;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "netem",
    about: "delay, drop, duplicate, corrupt and reorder packets",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Inner,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::Emulates,
        queue: Holds::Delayed,
        limit: Limit::Packets,
        work_conserving: false,
    },
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = init.device;
    if device.kernel == Kernel::V2_6_35 {
        return old::build(init, options, cx);
    }
    let mut netem = Netem {
        config: Config::new(&device),
        class: OneClass::new(SPEC.id, init.handle, &device).empty(),
        front: VecDeque::new(),
        fifo: Tfifo::default(),
        waiting: None,
        counter: 0,
        slot: None,
        watchdog: None,
        peeked: None,
        counts: Counts::default(),
        stats: Stats::default(),
    };
    netem.change(options, cx)?;
    Ok(Box::new(netem))
}

/// A packet whose copy goes in at the root before it is queued.
struct Waiting {
    packet: Packet,
    /// When it came.
    came: Time,
    /// The other segments of the super-packet whose first it is: each comes in anew behind it.
    rest: Vec<Packet>,
}

impl Waiting {
    /// It and the others.
    fn packets(&self) -> impl Iterator<Item = &Packet> {
        std::iter::once(&self.packet).chain(&self.rest)
    }
}

/// `struct slotstate`, while there are slots.
#[derive(Clone, Copy)]
struct SlotState {
    next: i64,
    packets_left: i32,
    bytes_left: i32,
}

/// As of 6.12.
struct Netem {
    // Parameters
    config: Config,
    class: OneClass,
    // Variables
    /// Those put before all others, with the moment (`sch->q`).
    front: VecDeque<(i64, Packet)>,
    fifo: Tfifo,
    waiting: Option<Waiting>,
    /// Packets delayed since the last that was put before the others.
    counter: u32,
    slot: Option<SlotState>,
    watchdog: Option<Time>,
    /// Taken out for a peek; still counted as queued.
    peeked: Option<Packet>,
    counts: Counts,
    /// `backlog` is that of what lies here itself.
    stats: Stats,
}

/// What was done to packets: 7.2 shows it.
#[derive(Default)]
struct Counts {
    delayed: u64,
    dropped: u64,
    corrupted: u64,
    duplicated: u64,
    reordered: u64,
    ecn_marked: u64,
}

impl Netem {
    /// Packets as the kernel counts them: without the one whose copy is under way.
    fn counted(&self) -> u32 {
        let inner = self.class.leaf(Handle::UNSPEC).map_or(0, |child| child.qlen_above());
        self.front.len() as u32 + self.fifo.len() + u32::from(self.peeked.is_some()) + inner
    }
    /// The packet whose copy has come by, or will not, is queued.
    #[inline]
    fn settle(&mut self, cx: &mut Cx<'_>) {
        if let Some(waiting) = self.waiting.take() {
            self.put_waiting(waiting, cx);
        }
    }
    fn put_waiting(&mut self, waiting: Waiting, cx: &mut Cx<'_>) {
        self.put(waiting.packet, waiting.came, cx);
        self.enter_rest(waiting.rest, cx);
    }
    /// The segments behind one that is damaged come in anew, each with dice of its own.
    //= linux v6.12 net/sched/sch_netem.c netem_enqueue: finish_segs
    fn enter_rest(&mut self, rest: Vec<Packet>, cx: &mut Cx<'_>) {
        let mut lost = 0;
        let mut rest = rest.into_iter();
        while let Some(segment) = rest.next() {
            let answer = self.arrive(segment, cx);
            if answer.counts_as_drop() {
                self.stats.drops = self.stats.drops.wrapping_add(1);
            }
            lost += u32::from(answer != Xmit::Success);
            // One that has a copy waits for it, and those behind it with it.
            if let Some(waiting) = &mut self.waiting {
                waiting.rest.extend(rest);
                break;
            }
        }
        // Those above learn of as many as have stayed.
        cx.drops.not_told(lost);
    }
    /// Queues a packet: with its delay, or before all others.
    fn put(&mut self, mut packet: Packet, came: Time, cx: &mut Cx<'_>) {
        let (c, now) = (&mut self.config, came.as_ns());
        self.stats.backlog += packet.pkt_len;
        let delayed =
            c.gap == 0 || self.counter < c.gap - 1 || c.reorder < c.reorder_cor.throw(&mut c.dice, cx.rng);
        if !delayed {
            self.counts.reordered += 1;
            self.counter = 0;
            self.stats.requeues = self.stats.requeues.wrapping_add(1);
            write_down(now, &mut packet);
            self.front.push_front((now, packet));
            return;
        }
        let mut delay = c.delay.mu;
        if c.delay.sigma != 0 {
            let thrown = c.delay_cor.throw(&mut c.dice, cx.rng);
            delay = spread(delay, c.delay.sigma, thrown, c.delay.table);
        }
        let mut from = now;
        if c.rate.is_set() {
            // The line is busy with those before it; their wait is part of its delay.
            let [early, line] = self.fifo.lasts();
            let last = [self.front.back().map(|f| f.0), early, line].into_iter().flatten().max();
            if let Some(last) = last {
                delay = (delay - (last - now)).max(0);
                from = last;
            }
            delay += c.rate.time_ns(packet.pkt_len);
        }
        self.counter = self.counter.wrapping_add(1);
        self.counts.delayed += u64::from(delay != 0);
        let at = from.wrapping_add(delay);
        write_down(at, &mut packet);
        self.fifo.put(at, packet);
    }
    /// `get_slot_next`.
    fn next_slot(&mut self, cx: &mut Cx<'_>) {
        let (c, Some(state)) = (&mut self.config, &mut self.slot) else { return };
        let Some(slot) = c.slot else { return };
        let delay = match c.slot_table {
            None => {
                let range = (slot.max_delay - slot.min_delay) as u128;
                slot.min_delay + ((range * u128::from(cx.rng.next_u32())) >> 32) as i64
            }
            Some(_) if slot.dist_jitter == 0 => slot.dist_delay,
            table => spread(slot.dist_delay, slot.dist_jitter, c.dice.throw(cx.rng), table),
        };
        *state =
            SlotState { next: cx.now.as_ns() + delay, packets_left: slot.packets, bytes_left: slot.bytes };
    }
    /// A packet leaves in a slot.
    fn use_slot(&mut self, len: u32, cx: &mut Cx<'_>) {
        let Some(state) = &mut self.slot else { return };
        state.packets_left -= 1;
        state.bytes_left = state.bytes_left.wrapping_sub(len as i32);
        if state.packets_left <= 0 || state.bytes_left <= 0 {
            self.next_slot(cx);
        }
    }
    /// A packet whose time has come goes into the qdisc inside; gives it back where there is none.
    fn hand_on(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Option<Packet> {
        let Some(child) = self.class.child_mut() else { return Some(packet) };
        let before = child.qlen_above();
        self.stats.backlog -= packet.pkt_len;
        let (answer, more) = child.enqueue_told(packet, cx);
        let after = child.qlen_above();
        // What it drops of itself meanwhile counts here too (`qdisc_tree_reduce_backlog`).
        let lost = (before + more + u32::from(answer == Xmit::Success)).saturating_sub(after);
        let refused = u32::from(answer.counts_as_drop());
        self.stats.drops = self.stats.drops.wrapping_add(lost + refused);
        None
    }
    /// A packet of the qdisc inside.
    fn take_inside(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let child = self.class.child_mut()?;
        let before = child.qlen_above();
        let packet = child.dequeue(cx);
        let lost = before.saturating_sub(u32::from(packet.is_some())).saturating_sub(child.qlen_above());
        self.stats.drops = self.stats.drops.wrapping_add(lost);
        packet
    }
    /// `netem_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.settle(cx);
        let packet = self.pick(cx)?;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        Some(packet)
    }
    fn pick(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let now = cx.now.as_ns();
        loop {
            if let Some((_, packet)) = self.front.pop_front() {
                self.stats.backlog -= packet.pkt_len;
                return Some(packet);
            }
            let Some(at) = self.fifo.first() else { break };
            if self.slot.is_some_and(|slot| slot.next < at) {
                self.next_slot(cx);
            }
            let gate = self.slot.map_or(at, |slot| slot.next.max(at));
            if gate <= now {
                let packet = self.fifo.take()?;
                self.use_slot(packet.pkt_len, cx);
                if let Some(packet) = self.hand_on(packet, cx) {
                    self.stats.backlog -= packet.pkt_len;
                    return Some(packet);
                }
                continue;
            }
            if let Some(packet) = self.take_inside(cx) {
                return Some(packet);
            }
            self.watchdog = Some(Time::from_ns(gate));
            break;
        }
        // It is asked once more where it had nothing, as in the kernel.
        self.take_inside(cx)
    }
}

/// A packet's time stands where an `sfb` above has noted its hashes (`netem_skb_cb`).
fn write_down(at: i64, packet: &mut Packet) {
    if packet.is_noted() && packet.rare().sfb != [0; 2] {
        packet.rare_mut().sfb = [at as u32, (at >> 32) as u32];
    }
}

impl Qdisc for Netem {
    /// `netem_enqueue`.
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if !cx.drops.repeating {
            self.settle(cx);
        }
        // What waits comes behind its copy, and does not count before.
        let waiting = self.waiting.take();
        let answer = self.arrive(packet, cx);
        if let Some(waiting) = waiting {
            self.put_waiting(waiting, cx);
        }
        answer
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.peeked.take().or_else(|| self.take(cx))
    }
    /// `qdisc_peek_dequeued`: the packet is taken and counted, and kept.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            self.peeked = self.take(cx);
        }
        self.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        let inner = self.class.leaf(Handle::UNSPEC).and_then(|child| child.next_wakeup());
        [self.watchdog, inner].into_iter().flatten().min()
    }
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.watchdog.iter().for_each(|&at| see(at, at));
        if let Some(child) = self.class.leaf(Handle::UNSPEC) {
            child.timers(see);
        }
    }
    fn expire(&mut self, due: Due) {
        self.watchdog = self.watchdog.filter(|&at| !due.has(at, at));
        if let Some(child) = self.class.child_mut() {
            child.expire(due);
        }
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        self.settle(cx);
        let anew = self.config.change(options)?;
        self.counter = 0;
        if anew.slot {
            let now = cx.now.as_ns();
            self.slot = self.config.slot.map(|slot| SlotState {
                next: now,
                packets_left: slot.packets,
                bytes_left: slot.bytes,
            });
        }
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.settle(cx);
        let mut purge = |packet| cx.drops.drop(packet, DropReason::Purged);
        self.peeked.take().into_iter().for_each(&mut purge);
        self.front.drain(..).for_each(|(_, packet)| purge(packet));
        self.fifo.purge(purge);
        if let Some(child) = self.class.child_mut() {
            child.reset(cx);
        }
        (self.watchdog, self.stats.backlog) = (None, 0);
    }
    fn stats(&self) -> Stats {
        let inner = self.class.leaf(Handle::UNSPEC).map_or(0, |child| child.counted_above());
        let waiting = self.waiting.iter().flat_map(Waiting::packets);
        let beside: u32 = self.peeked.iter().chain(waiting).map(|packet| packet.pkt_len).sum();
        let backlog = self.stats.backlog.wrapping_add(inner).wrapping_add(beside);
        let drops = self.stats.drops.wrapping_add(self.class.lost());
        Stats { qlen: self.qlen(), backlog, drops, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.counted() + self.waiting.as_ref().map_or(0, |w| w.packets().count() as u32)
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.peeked
            .iter()
            .chain(self.waiting.iter().flat_map(Waiting::packets))
            .for_each(|packet| see(packet));
        self.front.iter().for_each(|(_, packet)| see(packet));
        self.fifo.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        self.config.dump()
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.ecn_marked)
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let c = &self.counts;
        let o = Options::new()
            .with("delayed", c.delayed)
            .with("dropped", c.dropped)
            .with("corrupted", c.corrupted)
            .with("duplicated", c.duplicated)
            .with("reordered", c.reordered)
            .with("ecn_marked", c.ecn_marked);
        (self.config.kernel() >= Kernel::V7_2).then_some(o)
    }
    fn unsimulated(&self) -> Option<&'static str> {
        let mut doubles = false;
        self.class.children(&mut |_, child| doubles |= doubles_below(child));
        match () {
            () if self.config.measured.contains(&true) => Some("netem with distribution experimental"),
            () if doubles => Some("netem around another that duplicates"),
            () => None,
        }
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.config.set_device(device);
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.class)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(&mut self.class)
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

/// Whether a qdisc, or one below it, is a netem that duplicates.
fn doubles_below(node: &crate::Node) -> bool {
    let mut found = node.kind() == SPEC.id && node.dump().u32("duplicate").unwrap_or(0) > 0;
    if let Some(classes) = node.classes() {
        classes.children(&mut |_, child| found |= doubles_below(child));
    }
    found
}

impl Netem {
    /// The dice are thrown for a packet, or a segment.
    fn arrive(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let c = &mut self.config;
        let mut count = 1;
        if c.duplicate != 0 && packet.tc.depth == 0 && c.duplicate >= c.dup_cor.throw(&mut c.dice, cx.rng) {
            count += 1;
            self.counts.duplicated += 1;
        }
        if c.loss.strikes(&mut c.loss_cor, &mut c.dice, cx.rng) {
            if c.ecn && set_ce(&mut packet) {
                // 7.2 takes this no more for a drop.
                self.counts.ecn_marked += 1;
                let drop = c.kernel() < Kernel::V7_2;
                self.stats.drops = self.stats.drops.wrapping_add(drop.into());
            } else {
                self.counts.dropped += 1;
                count -= 1;
            }
        }
        self.enter(packet, count, cx)
    }
    /// What comes of a packet of which so many are to go on.
    fn enter(&mut self, mut packet: Packet, count: u32, cx: &mut Cx<'_>) -> Xmit {
        if count == 0 {
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Loss);
            return Xmit::Bypass;
        }
        let c = &self.config;
        if c.delay.mu != 0 || c.delay.sigma != 0 || c.rate.is_set() {
            cx.drops.orphan(&mut packet);
        }
        let copies = count > 1;
        // The copy is not damaged with it; but where there is no room neither goes in.
        let full = self.counted() >= self.config.limit;
        let copy = (copies && !full).then(|| cx.drops.copy(&packet));
        let mut rest = Vec::new();
        let c = &mut self.config;
        if c.corrupt != 0 && c.corrupt >= c.corrupt_cor.throw(&mut c.dice, cx.rng) {
            if packet.gso().is_some() {
                let mut segments = cx.drops.segment(packet);
                packet = segments.remove(0);
                rest.append(&mut segments);
                cx.drops.segments_done(segments, 0);
            }
            cx.drops.unshare(&mut packet);
            damage::strike(&mut packet, cx.rng);
            self.counts.corrupted += 1;
        }
        if full {
            // As one packet (`qdisc_drop_all`).
            cx.drops.not_told(rest.len() as u32);
            rest.into_iter().for_each(|segment| cx.drops.drop(segment, DropReason::Overlimit));
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Overlimit);
            return Xmit::Drop;
        }
        let Some(mut copy) = copy else {
            self.put(packet, cx.now, cx);
            self.enter_rest(rest, cx);
            return Xmit::Success;
        };
        // Prevents duplicates of duplicates. A copy belongs to no socket.
        copy.tc.depth += 1;
        copy.sender = Sender::default();
        copy.tc.role.set_orphan();
        cx.drops.send_again(copy);
        self.waiting = Some(Waiting { packet, came: cx.now, rest });
        Xmit::Success
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet, qdisc};

    fn netem(kernel: Kernel, o: &Options, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, Some(o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }
    fn pair(probability: u32) -> Options {
        Options::new().with("probability", probability).with("correlation", 5u32)
    }

    #[test]
    fn a_change_forgets_some_and_keeps_some() {
        let mut bench = Bench::new();
        let first = Options::new()
            .with("limit", 1000u32)
            .with("latency", 5u32)
            .with("ecn", 1u32)
            .with("corrupt", pair(7))
            .with("loss_gemodel", Options::new().with("p", 1u32));
        let mut q = netem(Kernel::V6_12, &first, &mut bench);
        q.change(Some(&Options::new().with("limit", 9u32).with("gap", 2u32)), &mut bench.cx(0)).unwrap();
        let o = q.dump();
        assert_eq!((o.u32("limit"), o.u32("latency"), o.u32("ecn")), (Some(9), Some(0), Some(1)));
        assert_eq!((o.nested("corrupt"), o.has("loss_gemodel")), (Some(&pair(7)), false));
        assert_eq!(o.nested("reorder").unwrap().u32("probability"), Some(u32::MAX));
        assert!(build_without_options(&mut bench).is_err());
    }
    fn build_without_options(bench: &mut Bench) -> Result<Box<dyn Qdisc>, KernelError> {
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, None, &mut bench.cx(0))
    }

    /// A super-packet is damaged, so it is cut; each segment has a copy of its own, and none is lost on the way.
    #[test]
    fn segments_wait_for_their_copies_one_behind_the_other() {
        let mut bench = Bench::new();
        let mut tree = crate::Tree::new(device(Kernel::V7_2));
        let all = Options::new().with("probability", u32::MAX).with("correlation", 0u32);
        let o = Options::new().with("limit", 50u32).with("duplicate", u32::MAX).with("corrupt", all);
        tree.qdisc(&qdisc("add root handle 9: ets bands 1 strict 1"), &mut bench.cx(0)).unwrap();
        let mut add = qdisc("add parent 9:1 handle 1: netem");
        add.options = Some(o);
        tree.qdisc(&add, &mut bench.cx(0)).unwrap();
        let mut whole = packet(1, 4242);
        whole.priority = Handle::new(9, 1).0;
        whole.set_gso(1400, true);
        tree.enqueue(whole, &mut bench.cx(0));
        // Three segments, the whole copy's three, and a copy of each but the first.
        let shown = tree.dump_qdiscs(Time::ZERO);
        assert_eq!(shown.iter().map(|q| q.stats.qlen).collect::<Vec<_>>(), [8, 8]);
        assert_eq!(shown[0].stats.drops, 0);
        let out = (0..).map_while(|_| tree.dequeue(&mut bench.cx(1))).count();
        assert_eq!(out, 8);
    }

    #[test]
    fn slots_are_not_negative_and_jitter_has_31_bits() {
        let mut bench = Bench::new();
        let mut q = netem(Kernel::V6_12, &Options::new().with("jitter", u32::MAX), &mut bench);
        assert_eq!(q.dump().u32("jitter"), Some(33_554_431));
        let slot = |name, value: i64| {
            Options::new().with("slot", Options::new().with("max_delay", 5i64).with(name, value))
        };
        let mut said = |o: Options| q.change(Some(&o), &mut bench.cx(0)).map_err(|e| e.extack);
        assert_eq!(said(slot("min_delay", -1)), Err("negative slot delay".into()));
        assert_eq!(said(slot("min_delay", 6)), Err("slot min delay greater than max delay".into()));
        assert_eq!(said(slot("dist_delay", -1)), Err("negative dist delay".into()));
        assert_eq!(said(slot("packets", -1)), Err("negative slot limit".into()));
        assert_eq!(said(slot("dist_jitter", 1 << 40)), Ok(()));
        assert_eq!(q.dump().nested("slot").unwrap().i64("dist_jitter"), Some(2_147_483_647));
    }

    #[test]
    fn what_is_inside() {
        let mut bench = Bench::new();
        let o = Options::new().with("limit", 50u32);
        let class = Handle::new(1, 1);
        let q = netem(Kernel::V6_12, &o, &mut bench);
        assert!(q.classes().unwrap().leaf(class).is_none() && q.classes().unwrap().ends_dump());
        let mut q = netem(Kernel::V2_6_35, &o, &mut bench);
        let limit = |q: &dyn Qdisc| q.classes().unwrap().leaf(class).unwrap().dump().u32("limit");
        assert_eq!(limit(&*q), Some(50));
        q.change(Some(&Options::new().with("limit", 8u32)), &mut bench.cx(0)).unwrap();
        assert_eq!(limit(&*q), Some(8));
    }

    /// A tree of `prio` with netem in its first band.
    fn below_prio(options: Options, bench: &mut Bench) -> crate::Tree {
        let mut tree = crate::Tree::new(device(Kernel::V6_12));
        let mut prio = qdisc("add root handle 1: prio");
        prio.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
        tree.qdisc(&prio, &mut bench.cx(0)).unwrap();
        let mut netem = qdisc("add parent 1:1 handle 2: netem");
        netem.options = Some(options);
        tree.qdisc(&netem, &mut bench.cx(0)).unwrap();
        tree
    }

    #[test]
    fn a_copy_goes_in_at_the_root_before_its_packet() {
        let mut bench = Bench::new();
        let doubles = Options::new().with("limit", 9u32).with("duplicate", u32::MAX).with("seed", 3u64);
        let mut tree = below_prio(doubles, &mut bench);
        assert_eq!(tree.enqueue(packet(7, 100), &mut bench.cx(0)), Xmit::Success);
        assert_eq!((tree.qlen(), tree.root().stats().backlog, tree.miscounts()), (2, 200, vec![]));
        let out: Vec<(u64, bool)> = std::iter::from_fn(|| tree.dequeue(&mut bench.cx(0)))
            .map(|p| (p.seq, p.tc.role.is_copy()))
            .collect();
        assert_eq!(out, [(7, true), (7, false)]);
        assert!(tree.miscounts().is_empty() && bench.drops.has_copied() && bench.drops.is_empty());
    }

    #[test]
    fn a_packet_whose_copy_is_lost_is_queued_all_the_same() {
        let mut bench = Bench::new();
        // Every copy is lost, and of the packets those that are doubled stay one.
        let o = Options::new()
            .with("limit", 9u32)
            .with("duplicate", u32::MAX)
            .with("loss", u32::MAX / 2)
            .with("seed", 5u64);
        let mut tree = below_prio(o, &mut bench);
        for seq in 0..50 {
            tree.enqueue(packet(seq, 100), &mut bench.cx(0));
            while tree.dequeue(&mut bench.cx(0)).is_some() {}
            assert_eq!((tree.qlen(), tree.miscounts()), (0, vec![]));
        }
        assert!(!bench.drops.is_empty());
    }

    #[test]
    fn what_cannot_be_done_is_named() {
        let mut bench = Bench::new();
        let named = |tree: &crate::Tree| tree.unsimulated().into_iter().map(|u| u.kind).collect::<Vec<_>>();
        let o = Options::new().with("limit", 9u32).with("jitter", 5u32);
        let mut tree = below_prio(o.clone().with("distribution", "experimental"), &mut bench);
        assert_eq!(named(&tree), ["netem with distribution experimental"]);
        let mut change = qdisc("change parent 1:1 handle 2: netem");
        change.options = Some(o.clone().with("distribution", "normal"));
        tree.qdisc(&change, &mut bench.cx(0)).unwrap();
        assert!(named(&tree).is_empty());
        let mut inner = qdisc("add parent 2:1 handle 3: netem");
        inner.options = Some(o.with("duplicate", 9u32));
        tree.qdisc(&inner, &mut bench.cx(0)).unwrap();
        assert_eq!(named(&tree), ["netem around another that duplicates"]);
    }
}
