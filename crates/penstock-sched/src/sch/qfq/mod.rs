//! `qfq`: quick fair queueing: classes share by weight, in almost the order of an ideal line.
//!
//! Follows: linux v6.12 `net/sched/sch_qfq.c`.
//! Differs: a class whose qdisc shows no packet though it holds some (Linux warns of it) is asked again when that qdisc's timer goes off.

mod engine;
mod groups;

use self::engine::Engine;
use super::KindSpec;
use super::hashed::{ClassChange, Hashed, HashedKind};
use super::over_leaves::{Held, OverLeaves};
use super::unsimulated::Params;
use crate::cls::Gone;
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::ptr;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "qfq",
    about: "quick fair queueing: classes share by weight with bounded delay",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Made,
        sorting: Sorting::Flat,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// `QFQ_MAX_WEIGHT`.
const WEIGHT_MAX: u32 = 1 << 10;
/// `QFQ_MAX_WSUM`: most the weights of all classes may add up to.
const WEIGHT_SUM_MAX: u32 = 64 * WEIGHT_MAX;
/// `QFQ_MIN_LMAX`, bytes.
const LMAX_MIN: u32 = 512;
/// `QFQ_MAX_LMAX`, bytes.
const LMAX_MAX: u32 = 1 << 16;

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let qfq =
        Qfq { engine: Engine::new(init.device.tx_queue_len), held: Held::default(), stats: Stats::default() };
    Ok(Box::new(Carrier(Hashed::new(init, qfq))))
}

/// What the qdisc has beside its classes.
pub struct Qfq {
    engine: Engine,
    held: Held,
    stats: Stats,
}

/// What qfq has of a class: what has come to it.
#[derive(Default)]
pub struct QfqClass {
    bytes: u64,
    packets: u64,
}

/// The kernel's check of a number against its policy, in netlink's words.
fn in_range(value: u32, least: u32, most: u32) -> Result<u32, KernelError> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(KernelError::new(KernelError::ERANGE, "integer out of range"))
    }
}

impl HashedKind for Qfq {
    type Class = QfqClass;
    const ID: &'static str = "qfq";

    /// There is no such operation.
    fn change(q: &mut Hashed<Qfq>, _: Option<&Options>) -> Result<(), KernelError> {
        Err(q.refuse(KernelError::EINVAL, "Change operation not supported by specified qdisc"))
    }
    fn dump(_: &Hashed<Qfq>) -> Options {
        Options::new()
    }
    fn change_class(
        q: &mut Hashed<Qfq>,
        change: ClassChange<'_>,
        _: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let Some(options) = change.options else {
            return Err(q.refuse(KernelError::EINVAL, "sch_qfq: missing options"));
        };
        // Netlink looks at them in the order tc sent them.
        for (name, value) in options.iter() {
            let value = match value {
                penstock_model::Value::U32(value) => *value,
                _ => continue,
            };
            match name {
                "weight" => in_range(value, 1, WEIGHT_MAX)?,
                "maxpkt" => in_range(value, LMAX_MIN, LMAX_MAX)?,
                _ => value,
            };
        }
        let weight = options.u32("weight").unwrap_or(1);
        let lmax = options.u32("maxpkt").unwrap_or(q.device.psched_mtu());
        if !(LMAX_MIN..=LMAX_MAX).contains(&lmax) {
            return Err(q.refuse(KernelError::EINVAL, "sch_qfq: MTU size out of bounds for qfq"));
        }
        let before = change.class.map(|class| q.own.engine.params(class));
        let more = weight as i32 - before.map_or(0, |(weight, _)| weight as i32);
        if before == Some((weight, lmax)) {
            return Ok(change.classid);
        }
        let sum = q.own.engine.wsum();
        if sum.wrapping_add_signed(more) > WEIGHT_SUM_MAX {
            let end = if q.device.kernel >= Kernel::V7_2 { "" } else { "\n" };
            let sentence = format!("sch_qfq: total weight out of range ({more} + {sum}){end}");
            return Err(q.refuse(KernelError::EINVAL, &sentence));
        }
        match change.class {
            Some(class) => {
                let has_packets = q.classes[class].leaf.qlen() > 0;
                q.own.engine.change_class(class, weight, lmax, has_packets);
            }
            None => {
                let class = q.add_class(change.classid, QfqClass::default(), false);
                q.own.engine.add_class(class, weight, lmax);
            }
        }
        Ok(change.classid)
    }
    fn may_delete(q: &Hashed<Qfq>, _: u32, bound: bool) -> Result<(), KernelError> {
        if bound { Err(q.refuse(KernelError::EBUSY, "sch_qfq: QFQ class in use")) } else { Ok(()) }
    }
    fn dump_class(q: &Hashed<Qfq>, class: u32) -> (Handle, Options, Option<Options>) {
        let (weight, lmax) = q.own.engine.params(class);
        (Handle::ROOT, Options::new().with("weight", weight).with("maxpkt", lmax), None)
    }
    fn class_stats(q: &Hashed<Qfq>, class: u32) -> Stats {
        let class = &q.classes[class];
        Stats { bytes: class.own.bytes, packets: class.own.packets, rate: None, ..class.leaf.stats() }
    }
    /// `qdisc_tree_reduce_backlog`, `qfq_qlen_notify`.
    fn reduced(q: &mut Hashed<Qfq>, class: u32, packets: u32, bytes: u32) {
        let qfq = &mut q.own;
        qfq.held.qlen = qfq.held.qlen.wrapping_sub(packets);
        qfq.held.backlog = qfq.held.backlog.wrapping_sub(bytes);
        qfq.stats.drops = qfq.stats.drops.wrapping_add(packets);
        if q.classes[class].leaf.qlen() == 0 {
            q.own.engine.deactivate(class);
        }
    }
    /// `qdisc_replace` tells the class of the old qdisc's end even where that was empty.
    fn replaced(q: &mut Hashed<Qfq>, class: u32) {
        q.own.held.naps.remove(class);
        if q.classes[class].leaf.qlen() == 0 {
            q.own.engine.deactivate(class);
        }
    }
    fn goes(q: &mut Hashed<Qfq>, class: u32) {
        q.own.engine.rm_from_agg(class);
    }
}

impl OverLeaves for Qfq {
    fn held(&self) -> &Held {
        &self.held
    }
    fn held_mut(&mut self) -> &mut Held {
        &mut self.held
    }
}

/// The qdisc as it carries packets.
struct Carrier(Hashed<Qfq>);

impl Carrier {
    /// Packets that a class's qdisc has dropped of itself count here too.
    #[inline]
    fn lost(&mut self, class: u32, should: u32, has: u32) {
        if should != has {
            let qfq = &mut self.0.own;
            qfq.stats.drops = qfq.stats.drops.wrapping_add(should.saturating_sub(has));
            if self.0.classes[class].leaf.qlen() == 0 {
                self.0.own.engine.deactivate(class);
            }
        }
    }
    /// The length of the packet that the qdisc in a class shows.
    #[inline]
    fn peek_len(&mut self, class: u32, cx: &mut Cx<'_>) -> Option<u32> {
        let (len, before, after) = self.0.on_leaf(class, |leaf| leaf.peek(cx).map(|p| p.pkt_len));
        self.lost(class, before, after);
        len
    }
    /// `qfq_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.0.settle();
        let mut agg = self.0.own.engine.serving()?;
        let mut class = self.0.own.engine.first(agg);
        let mut len = class.and_then(|class| self.peek_len(class, cx));
        if len.is_none_or(|len| len == 0 || self.0.own.engine.has_spent(agg, len)) {
            // The qdisc has lost its last packet meanwhile: another aggregate is being served.
            agg = self.0.own.engine.serve_next(agg, self.0.own.held.qlen > 0)?;
            class = self.0.own.engine.first(agg);
            len = class.and_then(|class| self.peek_len(class, cx));
        }
        let (class, len) = (class?, len?);
        let (packet, before, after) = self.0.on_leaf(class, |leaf| leaf.dequeue(cx));
        self.lost(class, before - u32::from(packet.is_some()), after);
        let packet = packet?;
        self.0.own.engine.charge(class, len);
        if self.0.classes[class].leaf.qlen() == 0 {
            self.0.own.engine.retire(class);
        } else {
            let next = self.peek_len(class, cx).unwrap_or(0);
            if self.0.own.engine.lacks(class, next) {
                self.0.own.engine.next_turn(class);
            }
        }
        let qfq = &mut self.0.own;
        qfq.stats.bytes += u64::from(packet.pkt_len);
        qfq.stats.packets += packet.counts_as();
        qfq.engine.spend(agg, len);
        Some(packet)
    }
}

impl Qdisc for Carrier {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let class = match self.0.class_of(&mut packet, cx) {
            Ok(Some(class)) => class,
            Ok(None) => return Gone::Shot.leave_counted(packet, &mut self.0.own.stats, cx),
            Err(gone) => return gone.leave_counted(packet, &mut self.0.own.stats, cx),
        };
        let (len, packets) = (packet.pkt_len, packet.counts_as());
        self.0.settle();
        let (weight, lmax) = self.0.own.engine.params(class);
        if lmax < len {
            if len > LMAX_MAX {
                let stats = &mut self.0.own.stats;
                stats.drops = stats.drops.wrapping_add(1);
                cx.drops.drop(packet, DropReason::TooBig);
                return Xmit::Drop;
            }
            let has_packets = self.0.classes[class].leaf.qlen() > 0;
            self.0.own.engine.change_class(class, weight, len, has_packets);
        }
        let this = ptr::from_ref::<Skb>(&packet);
        let ((answer, more), before, after) = self.0.on_leaf(class, |leaf| leaf.enqueue_told(packet, cx));
        self.lost(class, before + more + u32::from(answer == Xmit::Success), after);
        if answer != Xmit::Success {
            if answer.counts_as_drop() {
                let stats = &mut self.0.own.stats;
                stats.drops = stats.drops.wrapping_add(1);
            }
            return answer;
        }
        let counted = &mut self.0.classes[class];
        counted.look(cx.now, counted.own.bytes, counted.own.packets);
        counted.own.bytes += u64::from(len);
        counted.own.packets += packets;
        if !self.0.own.engine.is_active(class) {
            self.0.own.engine.wake(class);
            return Xmit::Success;
        }
        //= linux v6.12 sch_qfq.c qfq_enqueue: a look at each packet's class, which does a dequeue's work where the qdisc in it is of such a kind.
        let (head, before, after) =
            self.0.on_leaf(class, |leaf| leaf.peek(cx).map(|p| ptr::from_ref::<Skb>(p)));
        self.lost(class, before, after);
        let engine = &mut self.0.own.engine;
        if head == Some(this) && engine.is_first(class) && engine.lacks(class, len) {
            engine.move_back(class);
        }
        Xmit::Success
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.0.own.held.peeked.take().or_else(|| self.take(cx))
    }
    /// `qdisc_peek_dequeued`: the packet is taken and counted, and kept.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.0.own.held.peeked.is_none() {
            self.0.own.held.peeked = self.take(cx);
        }
        self.0.own.held.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.0.leaves_wake()
    }
    fn first_soft(&self) -> Option<Time> {
        self.0.leaves_may_wake()
    }
    fn expire(&mut self, due: Due) {
        self.0.leaves_expire(due);
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        Qfq::change(&mut self.0, options)
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        let order: Vec<u32> = self.0.classes.walk().collect();
        for class in order {
            self.0.own.engine.deactivate(class);
            self.0.classes[class].leaf.reset(cx);
        }
        self.0.own.held.unsure = true;
        if let Some(packet) = self.0.own.held.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.0.own.held.qlen, self.0.own.held.backlog) = (0, 0);
    }
    fn stats(&self) -> Stats {
        let qfq = &self.0.own;
        let peeked = qfq.held.peeked.as_ref().map_or(0, |p| p.pkt_len);
        Stats { qlen: self.qlen(), backlog: qfq.held.backlog.wrapping_add(peeked), ..qfq.stats }
    }
    fn qlen(&self) -> u32 {
        self.0.own.held.qlen + u32::from(self.0.own.held.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.0.own.held.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        Options::new()
    }
    fn set_device(&mut self, device: &Device, cx: &mut Cx<'_>) {
        Params::set_device(&mut self.0, device, cx);
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.0)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        self.0.own.held.unsure = true;
        Some(&mut self.0)
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}
