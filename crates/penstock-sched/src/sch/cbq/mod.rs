//! `cbq`: class based queueing, a hierarchy of classes whose idle time is measured. Removed from Linux 6.3.
//!
//! Follows: linux v6.2 (the last that had it), v2.6.35 and v2.4.0 `net/sched/sch_cbq.c`; Floyd and Jacobson, "Link-sharing and
//! Resource Management Models for Packet Networks", IEEE/ACM Transactions on Networking 3(4), 1995.
//! Differs: the profile 6.12 has it, although Linux 6.12 has not. The police attribute of 2.6.35, which no tc ever set,
//! is not there. A filter's action that says `reclassify` has the packet classified anew; there it went to the class below in the split.
//! Vectors: vectors/cbq.jsonl.
//!
//! The parts, as the paper names them:
//! - the estimator ([`share`], `cbq_update`): per class the averaged difference between the time that passed since its
//!   last packet and the time that packet should take at the class's rate (section V, appendix A: `idle`, `avgidle`,
//!   `maxidle`; the moment `undertime` until which a class over its limit must wait);
//! - the general scheduler ([`round`], `cbq_dequeue_prio`): priorities, and within one weighted round robin by
//!   allotments in bytes (section IV);
//! - the link-sharing scheduler (`cbq_under_limit`): a class sends if it is under its limit, or an ancestor is that it
//!   may borrow from, not above the top level (section III-C: top-level link-sharing; Figs. 4 and 5);
//! - the delayer (`cbq_overlimit`): what happens to a class over its limit that may not borrow.

mod class;
mod round;
mod share;
mod strategy;
mod tc;
#[cfg(test)]
mod tests;

use super::KindSpec;
use super::hashed::ClassTable;
use crate::cls::{Filters, Gone, Verdict};
use crate::ledger::DropReason;
use crate::naps::{self, Naps};
use crate::psched::Clock;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use class::{CbqClass, Rate};
use penstock_model::{Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::cell::Cell;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "cbq",
    about: "class based queueing: rates kept by the idle time between packets, classes borrow from above",
    kernels: &Kernel::BEFORE_7,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Made,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::Classes(None),
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: false,
    },
};

/// `TC_CBQ_MAXPRIO`: priorities, counted from 0, that send; one more holds the classes that are delayed.
const MAXPRIO: usize = 8;
/// `TC_CBQ_MAXLEVEL`: borrowing is not cut off.
const MAXLEVEL: u32 = 8;
/// `PSCHED_PASTPERFECT`: the class is under its limit.
const PASTPERFECT: i64 = 0;
/// The number of the qdisc's own class, the link: it is the first.
const LINK: u32 = 0;
/// No class.
const NIL: u32 = u32::MAX;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = init.device;
    let no = |sentence: &str| Err(device.refusal(KernelError::EINVAL, sentence));
    let Some(options) = options else { return no("CBQ options are required for this operation") };
    let Some(rate) = Rate::parse(options, &device)? else {
        return no("Rate specification missing or incomplete");
    };
    Ok(Box::new(Cbq::new(init, rate, options, cx.now)))
}

/// The qdisc.
struct Cbq {
    // Parameters
    device: Device,
    handle: penstock_model::Handle,
    filters: Filters,
    classes: ClassTable<CbqClass>,
    /// Classes of each priority.
    nclasses: [i32; MAXPRIO + 1],
    /// Their weights together, bytes per second.
    quanta: [u32; MAXPRIO + 1],
    /// The last id the kernel chose, without its uppermost bit (`hgenerator`).
    generated: u16,
    // Variables
    clock: Clock,
    /// Priorities with classes that have something to send, one bit each.
    activemask: u32,
    /// The last class in each priority's ring.
    active: [u32; MAXPRIO + 1],
    /// Who sent the packet that has not been accounted for yet.
    tx_class: u32,
    /// On whose allowance.
    tx_borrowed: u32,
    /// Its length, bytes.
    tx_len: u32,
    /// The moment of the last dequeue; in 2.6.35 an artificial time that also counts what the packets should take.
    now: i64,
    /// 2.6.35: the moment of the last dequeue by the clock.
    now_rt: i64,
    /// Priorities with delayed classes, one bit each.
    pmask: u32,
    /// How long until a class may send again, ticks; 0 where nobody waits.
    wd_expires: i64,
    /// No class above this level lends.
    toplevel: u32,
    /// The timer that undoes delays.
    delay_timer: Option<Time>,
    watchdog: Option<Time>,
    /// Classes whose qdisc has set its watchdog, until that strikes.
    naps: Naps,
    peeked: Option<Packet>,
    /// What the last `tc class show` left in the link's counters.
    link_undertime: Cell<i64>,
    qlen: u32,
    /// Bytes queued, which the kernel does not count.
    held: u32,
    /// `backlog`: nothing is counted in; 6.12 takes out what children lose.
    stats: Stats,
}

impl Cbq {
    /// `cbq_init`.
    fn new(init: &Init, rate: Rate, options: &Options, now: Time) -> Cbq {
        let clock = Clock::of(&init.device);
        let moment = clock.read(now);
        let mut q = Cbq {
            device: init.device,
            handle: init.handle,
            filters: Filters::new(init.handle),
            // Of 2.2 and 2.4 the hash never grows.
            classes: if clock.is_old() { ClassTable::fixed(16) } else { ClassTable::default() },
            nclasses: [0; MAXPRIO + 1],
            quanta: [0; MAXPRIO + 1],
            generated: 0,
            clock,
            activemask: 0,
            active: [NIL; MAXPRIO + 1],
            tx_class: NIL,
            tx_borrowed: NIL,
            tx_len: 0,
            now: moment,
            now_rt: moment,
            pmask: 0,
            wd_expires: 0,
            toplevel: MAXLEVEL,
            delay_timer: None,
            watchdog: None,
            naps: Naps::default(),
            peeked: None,
            link_undertime: Cell::new(0),
            qlen: 0,
            held: 0,
            stats: Stats::default(),
        };
        let mut link = CbqClass::link(rate, init.device.psched_mtu());
        link.set_lss(options.nested("lss"), clock);
        q.insert(init.handle, link, None);
        q.add_prio(LINK);
        q
    }

    fn is_old(&self) -> bool {
        self.device.kernel == Kernel::V2_6_35
    }

    /// `cbq_classify`: the class a packet belongs to.
    fn classify(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Result<u32, Gone> {
        let priority = penstock_model::Handle(skb.priority);
        if priority.qdisc() == self.handle
            && let Some(class) = self.classes.find(priority)
        {
            return Ok(class);
        }
        let mut head = LINK;
        loop {
            let block = if head == LINK { Some(Filters::ROOT) } else { self.classes[head].block };
            let hit = match block.map(|block| self.filters.classify(block, skb, cx)) {
                Some(Verdict::Class(hit)) => hit,
                Some(Verdict::Gone(gone)) => return Err(gone),
                Some(Verdict::Unmatched) | None => break,
            };
            let (at, defaults) = (&self.classes[head].own, &self.classes[head].own.defaults);
            let class = if hit.class > 0 {
                hit.class - 1
            } else {
                let found = if hit.classid.major() != 0 {
                    self.classes.find(hit.classid).unwrap_or(NIL)
                } else {
                    match defaults[(hit.classid.0 & 15) as usize] {
                        NIL => defaults[0],
                        class => class,
                    }
                };
                if found == NIL {
                    break;
                }
                found
            };
            let level = self.classes[class].own.level;
            // 2.6.35 looks only where the filter does not know the class, and runs in a circle for ever where a
            // filter of the qdisc names the link.
            if level >= at.level {
                break;
            }
            if level == 0 {
                return Ok(class);
            }
            head = class;
        }
        if priority.major() != 0 {
            return Ok(head);
        }
        let defaults = &self.classes[head].own.defaults;
        Ok(match (defaults[(skb.priority & 15) as usize], defaults[0]) {
            (NIL, NIL) => head,
            (NIL, class) | (class, _) => class,
        })
    }

    fn count_drops(&mut self, packets: u32) {
        self.stats.drops = self.stats.drops.wrapping_add(packets);
    }

    /// What a child put on the ledger during a call: packets and bytes since entry `from`.
    fn lost_since(from: usize, cx: &Cx<'_>) -> (u32, u32) {
        let lost = &cx.drops.entries()[from..];
        (lost.len() as u32, lost.iter().map(|(packet, _)| packet.pkt_len).fold(0, u32::wrapping_add))
    }

    /// `qdisc_tree_reduce_backlog` (6.12), `qdisc_tree_decrease_qlen`: a child lost packets that it had.
    fn reduce(&mut self, packets: u32, bytes: u32) {
        self.qlen -= packets;
        self.held = self.held.wrapping_sub(bytes);
        if !self.is_old() {
            self.stats.backlog = self.stats.backlog.wrapping_sub(bytes);
            self.count_drops(packets);
        }
    }

    /// A packet to the qdisc in a class.
    fn enqueue_class(&mut self, class: u32, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let (len, from) = (packet.pkt_len, cx.drops.len());
        let xmit = self.classes[class].leaf.enqueue(packet, cx);
        let taken = xmit == Xmit::Success;
        let (mut packets, mut bytes) = Cbq::lost_since(from, cx);
        if taken {
            self.qlen += 1;
            self.held = self.held.wrapping_add(len);
        } else {
            // One is told by the answer; it was never counted in.
            (packets, bytes) = (packets - 1, bytes.wrapping_sub(len));
        }
        // One that has displaced another is told by the answer alone, whatever the lengths of the two.
        if packets > 0 {
            self.reduce(packets, bytes);
        }
        if taken {
            if self.is_old() {
                self.stats.bytes += u64::from(len);
                self.stats.packets += 1;
            }
            self.mark_toplevel(class, cx);
            if self.classes[class].own.next_alive == NIL {
                self.activate(class);
            }
        } else if xmit.counts_as_drop() {
            self.count_drops(1);
            self.mark_toplevel(class, cx);
            let own = &mut self.classes[class].own;
            own.drops = own.drops.wrapping_add(1);
        }
        xmit
    }

    /// `cbq_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        cx.drops.work.clock_reads += 1;
        let now = self.clock.read(cx.now);
        self.advance(now, cx.now);
        loop {
            self.wd_expires = 0;
            if let Some(packet) = self.dequeue_1(cx) {
                self.qlen -= 1;
                self.held = self.held.wrapping_sub(packet.pkt_len);
                if !self.is_old() {
                    self.stats.bytes += u64::from(packet.pkt_len);
                    self.stats.packets += 1;
                }
                return Some(packet);
            }
            let link = &mut self.classes[LINK].own;
            if self.toplevel == MAXLEVEL && link.undertime == PASTPERFECT {
                break;
            }
            // Nobody may send: the cut-off is lifted, and the link may lend once.
            self.toplevel = MAXLEVEL;
            link.undertime = PASTPERFECT;
        }
        if self.qlen > 0 {
            self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
            if self.wd_expires != 0 {
                self.watchdog = Some(self.clock.timer(cx.now, now, self.wd_expires));
            }
        }
        None
    }
}

impl Qdisc for Cbq {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        match self.classify(&mut packet, cx) {
            Ok(class) => self.enqueue_class(class, packet, cx),
            Err(gone) => gone.leave_counted(packet, &mut self.stats, cx),
        }
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(packet) = self.peeked.take() {
            self.qlen -= 1;
            self.held = self.held.wrapping_sub(packet.pkt_len);
            return Some(packet);
        }
        self.take(cx)
    }
    /// `qdisc_peek_dequeued`: the packet is taken, charged and counted, and kept.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            let packet = self.take(cx)?;
            self.qlen += 1;
            self.held = self.held.wrapping_add(packet.pkt_len);
            self.peeked = Some(packet);
        }
        self.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.naps.first().into_iter().chain(self.watchdog).chain(self.delay_timer).min()
    }
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.watchdog.into_iter().chain(self.delay_timer).for_each(|at| see(at, at));
        self.naps.classes().for_each(|class| self.classes[class].leaf.timers(see));
    }
    fn first_soft(&self) -> Option<Time> {
        self.naps.first_soft().into_iter().chain(self.watchdog).chain(self.delay_timer).min()
    }
    fn expire(&mut self, due: Due) {
        self.watchdog = self.watchdog.filter(|&at| !due.has(at, at));
        if self.delay_timer.is_some_and(|at| due.has(at, at)) {
            self.delay_timer = None;
            self.undelay(due.now);
        }
        let Cbq { naps, classes, .. } = self;
        naps.expire(due.now, |class| {
            let leaf = &mut classes[class].leaf;
            leaf.expire(due);
            naps::alarm(leaf)
        });
    }
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let words = "Change operation not supported by specified qdisc";
        Err(self.device.refusal(KernelError::EINVAL, words))
    }
    /// `cbq_reset`.
    fn reset(&mut self, cx: &mut Cx<'_>) {
        (self.activemask, self.pmask) = (0, 0);
        self.forgets_sent();
        (self.watchdog, self.delay_timer) = (None, None);
        self.toplevel = MAXLEVEL;
        self.now = self.clock.read(cx.now);
        self.now_rt = self.now;
        self.active = [NIL; MAXPRIO + 1];
        self.naps.clear();
        for class in self.classes.iter_mut() {
            class.leaf.reset(cx);
            class.own.reset();
        }
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.qlen, self.held, self.stats.backlog) = (0, 0, 0);
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn held(&self) -> u32 {
        self.held
    }
    fn dump(&self) -> Options {
        self.dump_options(LINK)
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        Some(self.classes[LINK].own.xstats(self.link_undertime.get()))
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
    /// `cbq_dequeue`: the last packet is charged when the next is asked for.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}
