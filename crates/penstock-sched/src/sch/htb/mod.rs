//! `htb`: a hierarchy of token buckets; classes with a rate of their own that borrow up to a ceiling.
//!
//! Follows: linux v6.12 net/sched/sch_htb.c and linux v2.6.35 net/sched/sch_htb.c (HTB 3.17 in both).
//! Differs: no hardware offload; `htb_hysteresis` is 0 and, in 6.12, `htb_rate_est` too, as both are unless set; "too
//! many events" (two jiffies of them in one dequeue) never happens, for no time passes within a call.
//!
//! The versions share their machine ([`engine`]). 2.6.35 counts in ticks of 64 ns with tc's rate tables, what comes
//! in rather than what goes out, no backlog in bytes, and an overlimit for each dequeue that gave nothing; 6.12 counts
//! in ns, and an overlimit for each class that went over its ceiling.

mod class;
mod engine;
mod row;
mod tc;
#[cfg(test)]
mod tests;

use super::KindSpec;
use crate::cls::{Filters, Gone, Verdict};
use crate::ledger::DropReason;
use crate::naps::{self, Naps};
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::rates::RateTable;
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use class::MAXDEPTH;
use engine::Engine;
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "htb",
    about: "a hierarchy of classes with guaranteed rates that borrow up to their ceilings",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Made,
        sorting: Sorting::Tree { direct: true },
        takes_filters: true,
        limits_rate: LimitsRate::Classes(Some("ceil")),
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: false,
    },
};

/// `TC_HTB_PROTOVER`: the version tc must speak.
const PROTOVER: u32 = 3;
/// `HTB_VER`: 3.17.
const VERSION: u32 = 0x30011;

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    Ok(Box::new(Htb::new(init, options)?))
}

/// What a rate table is made of: rate, overhead, mpu, link layer, cell size.
type TableKey = (u32, u16, u16, u8, u8);

/// The qdisc.
struct Htb {
    // Parameters
    device: Device,
    handle: Handle,
    /// Minor of the class that takes what nothing else does.
    default: u32,
    /// A class's quantum is its rate divided by this.
    r2q: u32,
    /// Most packets of the direct queue.
    direct_qlen: u32,
    filters: Filters,
    /// 2.6.35: rate tables in use, shared.
    tables: BTreeMap<TableKey, Arc<RateTable>>,
    // Variables
    engine: Engine,
    /// Packets that are not shaped.
    direct: VecDeque<Packet>,
    direct_pkts: u32,
    /// The watchdog, until it strikes.
    watchdog: Option<Time>,
    /// Classes whose qdisc has set its watchdog, until that strikes.
    naps: Naps,
    peeked: Option<Packet>,
    /// What 6.12 has to say of the last change of a class.
    warning: Option<String>,
    qlen: u32,
    /// Bytes queued. 2.6.35 does not keep them.
    backlog: u32,
    stats: Stats,
}

/// Where a packet belongs.
enum Belongs {
    Class(u32),
    Direct,
    /// Nowhere: an action's doing, or a loop of filters.
    Gone(Gone),
}

impl Htb {
    /// `htb_init`.
    fn new(init: &Init, options: Option<&Options>) -> Result<Htb, KernelError> {
        let einval = KernelError::errno(KernelError::EINVAL);
        let options = options.ok_or(einval.clone())?;
        if options.u32("version").unwrap_or(PROTOVER) != PROTOVER || !options.has("r2q") {
            return Err(einval);
        }
        if options.has("offload") && init.device.kernel >= Kernel::V6_12 {
            let words = match init.parent {
                Handle::ROOT => "hw-tc-offload ethtool feature flag must be on",
                _ => "HTB must be the root qdisc to use offload",
            };
            return Err(KernelError::new(KernelError::EOPNOTSUPP, words));
        }
        let direct_qlen = match init.device.kernel {
            Kernel::V2_6_35 => init.device.tx_queue_len.max(2),
            Kernel::V6_12 | Kernel::V7_2 => options.u32("direct_qlen").unwrap_or(init.device.tx_queue_len),
        };
        // An int in the kernel: what is negative or 0 counts as 1.
        let r2q = options.u32("r2q").filter(|&r| r >= 1 && r <= i32::MAX as u32).unwrap_or(1);
        Ok(Htb {
            device: init.device,
            handle: init.handle,
            default: options.u32("default").unwrap_or(0),
            r2q,
            direct_qlen,
            filters: Filters::new(init.handle),
            tables: BTreeMap::new(),
            engine: Engine::new(init.device.kernel),
            direct: VecDeque::new(),
            direct_pkts: 0,
            watchdog: None,
            naps: Naps::default(),
            peeked: None,
            warning: None,
            qlen: 0,
            backlog: 0,
            stats: Stats::default(),
        })
    }

    fn is_old(&self) -> bool {
        self.device.kernel == Kernel::V2_6_35
    }

    /// `htb_classify`.
    #[inline]
    fn classify(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Belongs {
        let classes = &self.engine.classes;
        if skb.priority == self.handle.0 {
            return Belongs::Direct;
        }
        let chosen = classes.find(skb.priority);
        let mut block = Filters::ROOT;
        if let Some(class) = chosen {
            let c = &classes[class];
            if c.level == 0 {
                return Belongs::Class(class);
            }
            // Today an inner class chosen by priority starts with its own filters; in 2010 the qdisc's came first.
            if !self.is_old() {
                block = c.block;
            }
        }
        let mut hops = 0;
        loop {
            let hit = match self.filters.classify(block, skb, cx) {
                Verdict::Class(hit) => hit,
                Verdict::Unmatched => break,
                Verdict::Gone(gone) => return Belongs::Gone(gone),
            };
            let class = if hit.class > 0 {
                hit.class - 1
            } else {
                if hit.classid == self.handle {
                    return Belongs::Direct;
                }
                match classes.find(hit.classid.0) {
                    Some(class) => class,
                    None => break,
                }
            };
            let c = &classes[class];
            if c.level == 0 {
                return Belongs::Class(class);
            }
            hops += 1;
            // 2.6.35 has no such check and would never return from a loop.
            if hops > MAXDEPTH {
                return Belongs::Gone(Gone::Shot);
            }
            block = c.block;
        }
        // tc may give a default of more than 16 bits: TC_H_MAKE keeps the lower.
        match classes.find(self.handle.0 | (self.default & 0xffff)) {
            Some(class) if classes[class].level == 0 => Belongs::Class(class),
            _ => Belongs::Direct,
        }
    }

    fn count_drops(&mut self, packets: u32) {
        self.stats.drops = self.stats.drops.wrapping_add(packets);
    }
    /// Counts a packet that came in (2.6.35) or went out (6.12).
    #[inline]
    fn count(&mut self, (len, packets): (u32, u64)) {
        self.stats.bytes += u64::from(len);
        self.stats.packets += packets;
    }

    /// What a child put on the ledger during a call left this qdisc too: packets and bytes since entry `from`.
    fn lost_since(from: usize, cx: &Cx<'_>) -> (u32, u32) {
        let lost = &cx.drops.entries()[from..];
        (lost.len() as u32, lost.iter().map(|(packet, _)| packet.pkt_len).fold(0, u32::wrapping_add))
    }

    fn enqueue_direct(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.direct.len() >= self.direct_qlen as usize {
            self.count_drops(1);
            cx.drops.drop(packet, DropReason::Overlimit);
            return Xmit::Drop;
        }
        self.direct_pkts = self.direct_pkts.wrapping_add(1);
        self.qlen += 1;
        if self.is_old() {
            self.count((packet.pkt_len, packet.counts_as()));
        } else {
            self.backlog = self.backlog.wrapping_add(packet.pkt_len);
        }
        self.direct.push_back(packet);
        Xmit::Success
    }

    #[inline]
    fn enqueue_class(&mut self, class: u32, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let (len, old) = (packet.pkt_len, self.is_old());
        let (from, cut) = (cx.drops.len(), cx.drops.cut());
        let c = &mut self.engine.classes[class];
        let leaf = c.leaf.as_mut().expect("a leaf has a qdisc");
        let untold = cx.drops.untold;
        let xmit = leaf.enqueue(packet, cx);
        let alarm = naps::alarm(leaf);
        self.qlen += 1;
        if !old {
            self.backlog = self.backlog.wrapping_add(len);
        }
        let more = cx.drops.cut().since(cut);
        self.qlen += more.packets;
        if !old {
            self.backlog = self.backlog.wrapping_add(more.bytes);
        }
        if cx.drops.len() != from {
            let (mut packets, bytes) = Htb::lost_since(from, cx);
            self.qlen -= packets;
            // Of a super-packet that was cut some are told of in one number with those that are left.
            packets = packets.saturating_sub(more.packets.wrapping_sub(more.told));
            if !old {
                let untold = cx.drops.untold.wrapping_sub(untold);
                self.backlog = self.backlog.wrapping_sub(bytes).wrapping_add(untold);
            }
            // 6.12: each is told upwards (`qdisc_tree_reduce_backlog`) or by the answer. 2.6.35: only by the answer.
            if !old {
                self.count_drops(packets.saturating_sub(u32::from(xmit == Xmit::Stolen)));
            } else if xmit != Xmit::Success && xmit != Xmit::Stolen {
                self.count_drops(1);
            }
        }
        if let Some(at) = alarm {
            self.naps.set(class, at);
        }
        if xmit != Xmit::Success {
            if xmit != Xmit::Stolen {
                let c = &mut self.engine.classes[class];
                c.drops = c.drops.wrapping_add(1);
            }
            return xmit;
        }
        if old {
            let c = &mut self.engine.classes[class];
            c.count((len, 1), cx.now);
            self.count((len, 1));
        }
        self.engine.activate(class);
        Xmit::Success
    }

    /// A dequeue of the qdisc in a leaf, with what it drops on the way and the watchdog it sets.
    #[inline]
    fn dequeue_leaf(&mut self, class: u32, cx: &mut Cx<'_>) -> Option<Packet> {
        let (from, late, untold) = (cx.drops.len(), cx.drops.late, cx.drops.untold);
        let leaf = self.engine.classes[class].leaf.as_mut().expect("a leaf has a qdisc");
        let packet = leaf.dequeue(cx);
        // cake sets one with a packet too, for the next.
        let alarm = naps::alarm(leaf);
        if cx.drops.len() != from {
            let emptied = leaf.qlen() == 0;
            let (mut packets, mut bytes) = Htb::lost_since(from, cx);
            packets = packets.wrapping_sub(cx.drops.late.wrapping_sub(late));
            bytes = bytes.wrapping_sub(cx.drops.untold.wrapping_sub(untold));
            self.qlen -= packets;
            if !self.is_old() && packets > 0 {
                self.backlog = self.backlog.wrapping_sub(bytes);
                self.count_drops(packets);
                if emptied {
                    self.engine.deactivate(class);
                }
            }
        }
        // The qdisc in a leaf set its watchdog.
        if let Some(alarm) = alarm {
            self.naps.set(class, alarm);
        }
        packet
    }

    /// `htb_dequeue_tree`: a packet of a row that is not empty.
    fn dequeue_row(&mut self, level: usize, prio: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut start = self.engine.lookup_leaf(level, prio);
        let mut turn = start;
        let (class, packet) = loop {
            let class = turn?;
            if self.leaf_is_empty(class) {
                // Its qdisc dropped what it had, or another one stands there now.
                self.engine.deactivate(class);
                if self.engine.levels[level].row_mask & 1 << prio == 0 {
                    return None;
                }
                let next = self.engine.lookup_leaf(level, prio);
                if turn == start {
                    start = next;
                }
                turn = next;
                continue;
            }
            if let Some(packet) = self.dequeue_leaf(class, cx) {
                break (class, packet);
            }
            self.engine.pass_turn(class, level, prio);
            turn = self.engine.lookup_leaf(level, prio);
            if turn == start {
                return None;
            }
        };
        let (len, old, packets) = (packet.pkt_len, self.is_old(), packet.counts_as());
        let c = &mut self.engine.classes[class];
        if !old {
            c.count((len, packets), cx.now);
        }
        let deficit = &mut c.deficit[level];
        *deficit = deficit.wrapping_sub(len as i32);
        if *deficit < 0 {
            *deficit = deficit.wrapping_add(c.quantum);
            self.engine.pass_turn(class, level, prio);
        }
        if self.leaf_is_empty(class) {
            self.engine.deactivate(class);
        }
        self.engine.charge(class, level, (len, packets));
        Some(packet)
    }

    #[inline]
    fn leaf_is_empty(&self, class: u32) -> bool {
        self.engine.classes[class].leaf.as_ref().is_none_or(|leaf| leaf.qlen() == 0)
    }

    /// A packet left.
    #[inline]
    fn sent(&mut self, packet: Packet) -> Option<Packet> {
        self.qlen -= 1;
        if !self.is_old() {
            self.backlog = self.backlog.wrapping_sub(packet.pkt_len);
            self.count((packet.pkt_len, packet.counts_as()));
        }
        Some(packet)
    }

    /// `htb_dequeue`.
    #[inline]
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(packet) = self.direct.pop_front() {
            return self.sent(packet);
        }
        if self.qlen == 0 {
            return None;
        }
        cx.drops.work.clock_reads += 1;
        self.engine.now = self.engine.clock.read(cx.now);
        let mut next_event = self.engine.now + 5 * self.engine.clock.second();
        for level in 0..MAXDEPTH {
            next_event = next_event.min(self.engine.events(level));
            let mut tried = !self.engine.levels[level].row_mask;
            while tried != u32::MAX {
                let prio = tried.trailing_ones() as usize;
                tried |= 1 << prio;
                if let Some(packet) = self.dequeue_row(level, prio, cx) {
                    return self.sent(packet);
                }
            }
        }
        if self.is_old() {
            self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
        }
        self.watchdog = Some(self.engine.clock.time(next_event));
        None
    }
}

impl Qdisc for Htb {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        match self.classify(&mut packet, cx) {
            Belongs::Class(class) => self.enqueue_class(class, packet, cx),
            Belongs::Direct => self.enqueue_direct(packet, cx),
            Belongs::Gone(gone) => gone.leave_counted(packet, &mut self.stats, cx),
        }
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(packet) = self.peeked.take() {
            self.qlen -= 1;
            if !self.is_old() {
                self.backlog = self.backlog.wrapping_sub(packet.pkt_len);
            }
            return Some(packet);
        }
        self.take(cx)
    }
    /// `qdisc_peek_dequeued`: the packet is taken, charged and counted, and kept.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            let packet = self.take(cx)?;
            self.qlen += 1;
            if !self.is_old() {
                self.backlog = self.backlog.wrapping_add(packet.pkt_len);
            }
            self.peeked = Some(packet);
        }
        self.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.naps.first().into_iter().chain(self.watchdog).min()
    }
    /// Its own, and those of the leaves that wait for theirs.
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.watchdog.iter().for_each(|&at| see(at, at));
        for class in self.naps.classes() {
            self.engine.classes[class].leaf.iter().for_each(|leaf| leaf.timers(see));
        }
    }
    fn first_soft(&self) -> Option<Time> {
        self.naps.first_soft().into_iter().chain(self.watchdog).min()
    }
    fn expire(&mut self, due: Due) {
        self.watchdog = self.watchdog.filter(|&at| !due.has(at, at));
        let Htb { naps, engine, .. } = self;
        naps.expire(due.now, |class| {
            let leaf = engine.classes[class].leaf.as_mut()?;
            leaf.expire(due);
            naps::alarm(leaf)
        });
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        match options {
            Some(_) => {
                let words = "Change operation not supported by specified qdisc";
                Err(self.device.refusal(KernelError::EINVAL, words))
            }
            None => Ok(()),
        }
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        let classes: Vec<u32> = self.engine.classes.walk().collect();
        for class in classes {
            if let Some(leaf) = &mut self.engine.classes[class].leaf {
                leaf.reset(cx);
            }
        }
        self.engine.reset();
        self.watchdog = None;
        self.naps.clear();
        for packet in self.direct.drain(..).chain(self.peeked.take()) {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.qlen, self.backlog) = (0, 0);
    }
    fn stats(&self) -> Stats {
        let overlimits = if self.is_old() { self.stats.overlimits } else { self.engine.overlimits };
        Stats { qlen: self.qlen, backlog: self.backlog, overlimits, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.direct.iter().chain(&self.peeked).for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        let options = Options::new()
            .with("r2q", self.r2q)
            .with("default", self.default)
            .with("direct_packets_stat", self.direct_pkts)
            .with("version", VERSION);
        if self.is_old() { options } else { options.with("direct_qlen", self.direct_qlen) }
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
