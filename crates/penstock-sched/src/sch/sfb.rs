//! `sfb`: stochastic fair blue, marking probabilities kept in bins that flows share by chance.
//!
//! Follows: linux v6.12 `net/sched/sch_sfb.c`; Feng, Kandlur, Saha, Shin, "Blue: A New Class of Active Queue Management
//! Algorithms", 1999.
//! Differs: the hashes are random in the kernel and here (`super::sfq::hash`). Kinds that write down something of their own in a packet (codel, cake,
//! netem …) write over its hashes when they stand below ([`crate::qdisc::Scribble`]), and other bins are counted down when it leaves.

use super::KindSpec;
use super::one_class::OneClass;
use super::pfifo::Pfifo;
use super::sfq::hash::Key;
use crate::aqm::ecn::set_ce;
use crate::cls::{Filters, Gone, Verdict};
use crate::jiffies;
use crate::ledger::DropReason;
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Rng, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "sfb",
    about: "marking probabilities in bins that flows share by chance",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Inner,
        sorting: Sorting::Nothing,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

/// `SFB_LEVELS`.
const LEVELS: usize = 8;
/// `SFB_NUMBUCKETS`.
const BUCKETS: usize = 16;
/// `SFB_MAX_PROB`: nearly 1.
const MAX_PROB: u32 = 0xffff;

/// `struct tc_sfb_qopt`'s numbers that are kept as they come.
const NUMBERS: [&str; 6] = ["max", "target", "increment", "decrement", "penalty_rate", "penalty_burst"];

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = init.device;
    let mut sfb = Sfb {
        device,
        limit: 0,
        rehash: 0,
        db: 0,
        parms: Parms::default(),
        class: OneClass::new(SPEC.id, init.handle, &device).hidden_with_filters(),
        slots: [Bins::new(cx.rng), Bins::new(cx.rng)],
        slot: 0,
        double_buffering: false,
        rehash_time: 0,
        token_time: 0,
        tokens: 0,
        counts: Counts::default(),
        stats: Stats::default(),
    };
    sfb.change(options, cx)?;
    Ok(Box::new(sfb))
}

/// One virtual queue: `struct sfb_bucket`.
#[derive(Clone, Copy, Default, Debug)]
struct Bucket {
    /// Packets, at most 65535.
    qlen: u16,
    /// Marking probability, of 65536.
    p_mark: u16,
}

/// One hash with its virtual queues: `struct sfb_bins`.
#[derive(Debug)]
struct Bins {
    key: Key,
    levels: [[Bucket; BUCKETS]; LEVELS],
}

impl Bins {
    fn new(rng: &mut Rng) -> Bins {
        Bins { key: Key::draw(rng), levels: [[Bucket::default(); BUCKETS]; LEVELS] }
    }
    /// The bucket of each level that a hash means: four bits each.
    fn buckets(&mut self, hash: u32) -> impl Iterator<Item = &mut Bucket> {
        self.levels
            .iter_mut()
            .enumerate()
            .map(move |(n, level)| &mut level[(hash >> (4 * n)) as usize % BUCKETS])
    }
    /// A packet comes: its buckets' probabilities fall where they are empty and rise where they are long. Answers the least length and
    /// the least probability.
    fn visit(&mut self, hash: u32, p: &Parms) -> (u32, u32) {
        let (mut qlen, mut p_mark) = (u32::MAX, u32::MAX);
        for b in self.buckets(hash) {
            if b.qlen == 0 {
                b.p_mark = u32::from(b.p_mark).saturating_sub(p.decrement) as u16;
            } else if u32::from(b.qlen) >= p.target {
                b.p_mark = u32::from(b.p_mark).wrapping_add(p.increment).min(MAX_PROB) as u16;
            }
            qlen = qlen.min(b.qlen.into());
            p_mark = p_mark.min(b.p_mark.into());
        }
        (qlen, p_mark)
    }
}

/// The numbers of [`NUMBERS`].
#[derive(Clone, Copy, Default, Debug)]
struct Parms {
    /// Packets of a bin above which all is dropped.
    max: u32,
    /// Packets of a bin from which on its probability rises (`bin_size`).
    target: u32,
    /// By how much it rises and falls, of 65535.
    increment: u32,
    decrement: u32,
    /// Packets a second that flows may send which do not respond.
    penalty_rate: u32,
    /// Packets.
    penalty_burst: u32,
}

impl Parms {
    fn array(&self) -> [u32; 6] {
        [self.max, self.target, self.increment, self.decrement, self.penalty_rate, self.penalty_burst]
    }
}

#[derive(Clone, Copy, Default, Debug)]
struct Counts {
    earlydrop: u32,
    penaltydrop: u32,
    bucketdrop: u32,
    queuedrop: u32,
    childdrop: u32,
    marked: u32,
}

/// The qdisc.
pub struct Sfb {
    // Parameters
    device: Device,
    /// Packets.
    limit: u32,
    /// Jiffies between one hash and the next.
    rehash: u64,
    /// Jiffies for which the next hash is prepared.
    db: u64,
    parms: Parms,
    class: OneClass,
    // Variables
    slots: [Bins; 2],
    /// Which of them decides.
    slot: usize,
    double_buffering: bool,
    /// Jiffies.
    rehash_time: u64,
    token_time: u64,
    /// Packets.
    tokens: u32,
    counts: Counts,
    stats: Stats,
}

fn count(counter: &mut u32) {
    *counter = counter.wrapping_add(1);
}

impl Sfb {
    fn jiffies(&self, now: Time) -> u64 {
        now.as_ns() as u64 * u64::from(self.device.hz) / 1_000_000_000
    }
    fn child(&self) -> Option<&Node> {
        self.class.leaf(Handle::UNSPEC)
    }
    /// `sfb_enqueue` where the time of a hash is over, or the next one is to be prepared.
    fn turn_over(&mut self, cx: &mut Cx<'_>) {
        let now = self.jiffies(cx.now);
        let limit = self.rehash_time + self.rehash;
        if now > limit {
            //= linux v6.12 sch_sfb.c sfb_swap_slot
            self.slots[self.slot].key = Key::draw(cx.rng);
            self.slot ^= 1;
            self.double_buffering = false;
            self.rehash_time = now;
        } else if !self.double_buffering && self.db > 0 && now > limit.wrapping_sub(self.db) {
            self.double_buffering = true;
        }
    }
    /// The hash of a packet under the key that decides: of the class that a filter names, or of its flow.
    fn hash(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Result<u32, Gone> {
        let key = &self.slots[self.slot].key;
        let Some(filters) = self.class.filters().filter(|f| !f.is_empty(Filters::ROOT)) else {
            return Ok(key.hash(skb));
        };
        match filters.classify(Filters::ROOT, skb, cx) {
            Verdict::Class(hit) => Ok(key.hash_word(hit.classid.minor().into())),
            Verdict::Unmatched => Err(Gone::Shot),
            Verdict::Gone(gone) => Err(gone),
        }
    }
    /// `sfb_rate_limit`: whether a flow that does not respond has had its part.
    fn exceeds_penalty(&mut self, now: Time) -> bool {
        let p = &self.parms;
        if p.penalty_rate == 0 || p.penalty_burst == 0 {
            return true;
        }
        if self.tokens < 1 {
            let (jiffies, hz) = (self.jiffies(now), u64::from(self.device.hz));
            let age = (jiffies - self.token_time).min(10 * hz);
            let p = &self.parms;
            self.tokens = ((age * u64::from(p.penalty_rate) / hz) as u32).min(p.penalty_burst);
            self.token_time = jiffies;
            if self.tokens < 1 {
                return true;
            }
        }
        self.tokens -= 1;
        false
    }
    fn discard(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) -> Xmit {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, reason);
        Xmit::Cn
    }
    fn overlimit(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) -> Xmit {
        self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
        self.discard(packet, reason, cx)
    }
    /// Counts what the inner qdisc dropped of what it held, when it should hold `expected` packets
    /// (`qdisc_tree_reduce_backlog`).
    fn lost(&mut self, expected: u32) {
        let gone = expected.saturating_sub(self.qlen());
        self.stats.drops = self.stats.drops.wrapping_add(gone);
    }
    /// Puts a packet into the inner qdisc, and counts it in its bins.
    fn pass_on(&mut self, mut packet: Packet, hashes: [u32; 2], cx: &mut Cx<'_>) -> Xmit {
        packet.rare_mut().sfb = hashes;
        let (dropped, before) = (cx.drops.changes(), self.qlen());
        let Some(child) = self.class.child_mut() else { return Gone::Shot.leave(packet, cx) };
        let (answer, more) = child.enqueue_told(packet, cx);
        if answer == Xmit::Success {
            for (bins, hash) in self.slots.iter_mut().zip(hashes).filter(|(_, hash)| *hash != 0) {
                bins.buckets(hash).for_each(|b| b.qlen = b.qlen.saturating_add(1));
            }
        } else if answer.counts_as_drop() {
            count(&mut self.counts.childdrop);
            self.stats.drops = self.stats.drops.wrapping_add(1);
        }
        if cx.drops.changes() != dropped {
            self.lost(before + more + u32::from(answer == Xmit::Success));
        }
        answer
    }
    fn empty_bins(&mut self) {
        for bins in &mut self.slots {
            bins.levels = [[Bucket::default(); BUCKETS]; LEVELS];
        }
        (self.slot, self.double_buffering) = (0, false);
    }
}

impl Qdisc for Sfb {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.qlen() >= self.limit {
            count(&mut self.counts.queuedrop);
            return self.overlimit(packet, DropReason::Overlimit, cx);
        }
        if self.rehash > 0 {
            self.turn_over(cx);
        }
        let hash = match self.hash(&mut packet, cx) {
            Ok(hash) => hash.max(1),
            Err(gone) => return gone.leave_counted(packet, &mut self.stats, cx),
        };
        let slot = self.slot;
        let mut hashes = [0; 2];
        hashes[slot] = hash;
        let (least_qlen, p_min) = self.slots[slot].visit(hash, &self.parms);
        if least_qlen >= self.parms.max {
            count(&mut self.counts.bucketdrop);
            return self.overlimit(packet, DropReason::Overlimit, cx);
        }
        if p_min >= MAX_PROB {
            // The flow does not respond.
            if self.double_buffering {
                let next = &mut self.slots[slot ^ 1];
                let hash = next.key.hash(&packet).max(1);
                next.visit(hash, &self.parms);
                hashes[slot ^ 1] = hash;
            }
            if self.exceeds_penalty(cx.now) {
                count(&mut self.counts.penaltydrop);
                return self.overlimit(packet, DropReason::Early, cx);
            }
            return self.pass_on(packet, hashes, cx);
        }
        let r = cx.rng.next_u32() >> 16;
        if r < p_min {
            // Where so much is marked, some is dropped.
            let drops = p_min > MAX_PROB / 2 && r < (p_min - MAX_PROB / 2) * 2;
            if drops || !set_ce(&mut packet) {
                count(&mut self.counts.earlydrop);
                return self.discard(packet, DropReason::Early, cx);
            }
            count(&mut self.counts.marked);
        }
        self.pass_on(packet, hashes, cx)
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let (dropped, before) = (cx.drops.changes(), self.qlen());
        let packet = self.class.child_mut().and_then(|child| child.dequeue(cx));
        if let Some(packet) = &packet {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
            for (bins, hash) in self.slots.iter_mut().zip(packet.rare().sfb).filter(|(_, hash)| *hash != 0) {
                bins.buckets(hash).for_each(|b| b.qlen = b.qlen.saturating_sub(1));
            }
        }
        if cx.drops.changes() != dropped {
            self.lost(before - u32::from(packet.is_some()));
        }
        packet
    }
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        let (dropped, before) = (cx.drops.changes(), self.qlen());
        let there = self.class.child_mut().is_some_and(|child| child.peek(cx).is_some());
        if cx.drops.changes() != dropped {
            self.lost(before);
        }
        if there { self.class.child_mut()?.peek(cx) } else { None }
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.child()?.next_wakeup()
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        // `sfb_default_ops`, where tc sends nothing.
        let (default, hz) = ([25, 20, 66, 11, 10, 20], self.device.hz);
        let number = |name: &str, default: u32| options.map_or(default, |o| o.u32(name).unwrap_or(0));
        let n = |at: usize| number(NUMBERS[at], default[at]);
        self.parms = Parms {
            max: n(0),
            target: n(1),
            increment: n(2),
            decrement: n(3),
            penalty_rate: n(4),
            penalty_burst: n(5),
        };
        self.rehash = jiffies::from_ms(number("rehash", 600_000), hz);
        self.db = jiffies::from_ms(number("db", 60_000), hz);
        self.limit = match number("limit", 0) {
            0 => self.device.tx_queue_len,
            limit => limit,
        };
        let init = Init { device: self.device, handle: Handle::UNSPEC, parent: self.class.class() };
        //= linux v6.12 sch_api.c qdisc_purge_queue
        let held = self.qlen();
        self.class.fill(Node::new(&init, Box::new(Pfifo::new(&self.device, self.limit))), cx);
        self.lost(held);
        let now = self.jiffies(cx.now);
        (self.rehash_time, self.token_time, self.tokens) = (now, now, self.parms.penalty_burst);
        self.slots = [Bins::new(cx.rng), Bins::new(cx.rng)];
        (self.slot, self.double_buffering) = (0, false);
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        if let Some(child) = self.class.child_mut() {
            child.reset(cx);
        }
        self.empty_bins();
        self.slots[0].key = Key::draw(cx.rng);
    }
    fn stats(&self) -> Stats {
        let (qlen, backlog) = self.child().map_or((0, 0), |c| (c.qlen_above(), c.counted_above()));
        Stats { qlen, backlog, drops: self.stats.drops.wrapping_add(self.class.lost()), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.child().map_or(0, Node::qlen_above)
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    fn dump(&self) -> Options {
        let hz = self.device.hz;
        let o = Options::new()
            .with("limit", self.limit)
            .with("rehash", jiffies::to_ms(self.rehash, hz))
            .with("db", jiffies::to_ms(self.db, hz));
        NUMBERS.into_iter().zip(self.parms.array()).fold(o, |o, (name, value)| o.with(name, value))
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.marked.into())
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let c = &self.counts;
        let bins = self.slots[self.slot].levels.as_flattened();
        let most = |of: fn(&Bucket) -> u16| bins.iter().map(of).max().map_or(0, u32::from);
        let total: u32 = bins.iter().map(|b| u32::from(b.p_mark)).sum();
        let rows = [
            ("earlydrop", c.earlydrop),
            ("penaltydrop", c.penaltydrop),
            ("bucketdrop", c.bucketdrop),
            ("queuedrop", c.queuedrop),
            ("childdrop", c.childdrop),
            ("marked", c.marked),
            ("maxqlen", most(|b| b.qlen)),
            ("maxprob", most(|b| b.p_mark)),
            ("avgprob", total / (LEVELS * BUCKETS) as u32),
        ];
        Some(rows.into_iter().fold(Options::new(), |o, (name, value)| o.with(name, value)))
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};

    fn init() -> Init {
        Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT }
    }

    #[test]
    fn no_limit_is_txqueuelen_and_the_fifo_has_it() {
        let mut bench = Bench::new();
        let mut q = build(&init(), None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let class = Handle::new(1, 1);
        let seen = |q: &dyn Qdisc| {
            let fifo = q.classes().unwrap().leaf(class).unwrap();
            (q.dump().u32("limit"), fifo.kind(), fifo.dump().u32("limit"), q.dump().u32("max"))
        };
        assert_eq!(seen(&*q), (Some(1000), "pfifo", Some(1000), Some(25)));
        q.change(Some(&Options::new().with("limit", 7u32)), &mut bench.cx(0)).unwrap();
        assert_eq!(seen(&*q), (Some(7), "pfifo", Some(7), Some(0)));
        let errno = q.classes_mut().unwrap().delete_class(class, &mut bench.cx(0)).map_err(|e| e.errno);
        assert_eq!(errno, Err(38));
    }

    /// Bins of three packets whose probability is all or nothing, and a penalty of ten packets a second, two at once.
    fn blunt(bench: &mut Bench) -> Box<dyn Qdisc> {
        let numbers = [6u32, 3, MAX_PROB, 1, 10, 2];
        let o = Options::new().with("limit", 50u32).with("rehash", 600_000u32).with("db", 60_000u32);
        let o = NUMBERS.into_iter().zip(numbers).fold(o, |o, (name, value)| o.with(name, value));
        build(&init(), Some(&o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_flow_that_does_not_respond_has_its_penalty_and_no_more() {
        let mut bench = Bench::new();
        let mut q = blunt(&mut bench);
        let answers: Vec<Xmit> = (0..7).map(|seq| q.enqueue(packet(seq, 100), &mut bench.cx(0))).collect();
        // Three fill the bins; the fourth finds them long, and two have tokens.
        assert_eq!(answers, [[Xmit::Success; 5].as_slice(), &[Xmit::Cn; 2]].concat());
        let x = q.xstats(Time::ZERO).unwrap();
        let row = |name| x.u32(name).unwrap();
        assert_eq!((row("penaltydrop"), row("maxqlen"), row("maxprob")), (2, 5, MAX_PROB));
        assert_eq!((q.stats().drops, q.stats().overlimits, q.qlen()), (2, 2, 5));
        // A tenth of a second is one packet more; then the bins are at their end.
        assert_eq!(q.enqueue(packet(7, 100), &mut bench.cx(100_000_000)), Xmit::Success);
        assert_eq!(q.enqueue(packet(8, 100), &mut bench.cx(900_000_000)), Xmit::Cn);
        assert_eq!(q.xstats(Time::ZERO).unwrap().u32("bucketdrop"), Some(1));
        while q.dequeue(&mut bench.cx(0)).is_some() {}
        assert_eq!((q.xstats(Time::ZERO).unwrap().u32("maxqlen"), q.qlen()), (Some(0), 0));
    }

    #[test]
    fn what_codel_writes_in_a_packet_is_taken_for_its_hashes() {
        let mut bench = Bench::new();
        let mut q = blunt(&mut bench);
        let class = Handle::new(1, 1);
        let inside = Init { parent: class, ..init() };
        let codel = (crate::sch::codel::SPEC.build)(&inside, None, &mut bench.cx(0))
            .unwrap_or_else(|e| panic!("{e}"));
        q.classes_mut().unwrap().graft(class, Some(Node::new(&inside, codel)), &mut bench.cx(0)).unwrap();
        for seq in 0..2 {
            q.enqueue(packet(seq, 100), &mut bench.cx(0));
        }
        while q.dequeue(&mut bench.cx(0)).is_some() {}
        // The time was 0: no bin is counted down.
        assert_eq!((q.xstats(Time::ZERO).unwrap().u32("maxqlen"), q.qlen()), (Some(2), 0));
    }

    #[test]
    fn the_next_hash_is_warmed_up_and_takes_over() {
        let mut bench = Bench::new();
        let mut q = blunt(&mut bench);
        for seq in 0..4 {
            q.enqueue(packet(seq, 100), &mut bench.cx(0));
        }
        // In the warm-up the packet counts in both; after it the next hash knows of that one alone.
        assert_eq!(q.enqueue(packet(4, 100), &mut bench.cx(560_000_000_000)), Xmit::Success);
        assert_eq!(q.xstats(Time::ZERO).unwrap().u32("maxqlen"), Some(5));
        assert_eq!(q.enqueue(packet(5, 100), &mut bench.cx(600_100_000_000)), Xmit::Success);
        assert_eq!(q.xstats(Time::ZERO).unwrap().u32("maxqlen"), Some(2));
        while q.dequeue(&mut bench.cx(0)).is_some() {}
        assert_eq!(q.xstats(Time::ZERO).unwrap().u32("maxqlen"), Some(0));
    }
}
