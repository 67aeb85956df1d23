//! `drr`: deficit round robin over classes that filters choose.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_drr.c`; Shreedhar & Varghese, SIGCOMM 1995.
//! Differs: a class whose qdisc shows no packet though it holds some (Linux warns of it) waits for the qdisc's timer.

use super::KindSpec;
use super::hashed::{ClassChange, Hashed, HashedKind};
use super::over_leaves::{Held, OverLeaves};
use super::unsimulated::Params;
use crate::cls::Gone;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::collections::VecDeque;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "drr",
    about: "deficit round robin: classes take turns, a quantum of bytes each",
    kernels: &Kernel::ALL,
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

/// What 6.12 keeps a quantum within, bytes.
const QUANTUM_RANGE: (u32, u32) = (256, 1 << 20);

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    Ok(Box::new(Carrier(Hashed::new(init, Drr::default()))))
}

/// The qdisc itself has nothing to set.
#[derive(Default)]
pub struct Drr {
    /// Classes with packets, in the order of their turns.
    active: VecDeque<u32>,
    held: Held,
    stats: Stats,
}

/// What drr has of a class.
pub struct DrrClass {
    // Parameters
    /// Bytes a turn.
    quantum: u32,
    // Variables
    /// Bytes it may still send in this turn.
    deficit: u32,
    active: bool,
    bytes: u64,
    packets: u64,
}

impl DrrClass {
    fn new(quantum: u32) -> DrrClass {
        DrrClass { quantum, deficit: 0, active: false, bytes: 0, packets: 0 }
    }
}

impl HashedKind for Drr {
    type Class = DrrClass;
    const ID: &'static str = "drr";
    const NO_BLOCK: &'static str = "DRR classid must be zero";

    /// There is no such operation.
    fn change(q: &mut Hashed<Drr>, _: Option<&Options>) -> Result<(), KernelError> {
        Err(q.refuse(KernelError::EINVAL, "Change operation not supported by specified qdisc"))
    }
    fn dump(_: &Hashed<Drr>) -> Options {
        Options::new()
    }
    fn change_class(
        q: &mut Hashed<Drr>,
        change: ClassChange<'_>,
        _: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let Some(options) = change.options else {
            return Err(q.refuse(KernelError::EINVAL, "DRR options are required for this operation"));
        };
        let given = options.u32("quantum");
        if given == Some(0) {
            return Err(q.refuse(KernelError::EINVAL, "Specified DRR quantum cannot be zero"));
        }
        let mut quantum = given.unwrap_or(q.device.psched_mtu());
        if q.device.kernel >= Kernel::V6_12 {
            quantum = quantum.clamp(QUANTUM_RANGE.0, QUANTUM_RANGE.1);
        }
        match change.class {
            Some(class) if given.is_some() => q.classes[class].own.quantum = quantum,
            Some(_) => {}
            None => {
                q.add_class(change.classid, DrrClass::new(quantum), false);
            }
        }
        Ok(change.classid)
    }
    fn may_delete(q: &Hashed<Drr>, _: u32, bound: bool) -> Result<(), KernelError> {
        if bound { Err(q.refuse(KernelError::EBUSY, "DRR class is in use")) } else { Ok(()) }
    }
    fn dump_class(q: &Hashed<Drr>, class: u32) -> (Handle, Options, Option<Options>) {
        let options = Options::new().with("quantum", q.classes[class].own.quantum);
        let class = &q.classes[class];
        let deficit = if class.leaf.qlen() > 0 { class.own.deficit } else { 0 };
        (Handle::ROOT, options, Some(Options::new().with("deficit", deficit)))
    }
    fn class_stats(q: &Hashed<Drr>, class: u32) -> Stats {
        let class = &q.classes[class];
        let (bytes, packets) = (class.own.bytes, class.own.packets);
        Stats { bytes, packets, rate: None, ..class.leaf.stats() }
    }
    /// `qdisc_tree_reduce_backlog`, `drr_qlen_notify`.
    fn reduced(q: &mut Hashed<Drr>, class: u32, packets: u32, bytes: u32) {
        let old = is_old(q);
        let drr = &mut q.own;
        drr.held.qlen = drr.held.qlen.wrapping_sub(packets);
        drr.held.backlog = drr.held.backlog.wrapping_sub(bytes);
        if !old {
            drr.stats.drops = drr.stats.drops.wrapping_add(packets);
        }
        let emptied = q.classes[class].leaf.qlen() == 0;
        if emptied && std::mem::take(&mut q.classes[class].own.active) {
            q.own.active.retain(|&c| c != class);
        }
    }
}

fn is_old(q: &Hashed<Drr>) -> bool {
    q.device.kernel == Kernel::V2_6_35
}

impl OverLeaves for Drr {
    fn held(&self) -> &Held {
        &self.held
    }
    fn held_mut(&mut self) -> &mut Held {
        &mut self.held
    }
}

/// The qdisc as it carries packets.
struct Carrier(Hashed<Drr>);

impl Carrier {
    /// Packets that a class's qdisc has dropped of itself: in 6.12 they count here too.
    fn lost(&mut self, class: u32, should: u32, has: u32) {
        if !is_old(&self.0) {
            let stats = &mut self.0.own.stats;
            stats.drops = stats.drops.wrapping_add(should.saturating_sub(has));
        }
        let emptied = self.0.classes[class].leaf.qlen() == 0;
        if emptied && should != has && std::mem::take(&mut self.0.classes[class].own.active) {
            self.0.own.active.retain(|&c| c != class);
        }
    }
    /// Counts a packet of a class.
    fn count(&mut self, class: u32, (len, packets): (u32, u64), now: Time) {
        let class = &mut self.0.classes[class];
        class.look(now, class.own.bytes, class.own.packets);
        class.own.bytes += u64::from(len);
        class.own.packets += packets;
        let stats = &mut self.0.own.stats;
        stats.bytes += u64::from(len);
        stats.packets += packets;
    }
    /// `drr_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.0.settle();
        loop {
            let class = *self.0.own.active.front()?;
            let (len, before, after) = self.0.on_leaf(class, |leaf| leaf.peek(cx).map(|p| p.pkt_len));
            self.lost(class, before, after);
            //= linux v6.12 sch_drr.c drr_dequeue: a class without a packet to show ends the search.
            let len = len?;
            let own = &mut self.0.classes[class].own;
            if len > own.deficit {
                own.deficit = own.deficit.wrapping_add(own.quantum);
                self.0.own.active.rotate_left(1);
                continue;
            }
            own.deficit -= len;
            let (packet, before, after) = self.0.on_leaf(class, |leaf| leaf.dequeue(cx));
            self.lost(class, before - u32::from(packet.is_some()), after);
            let emptied = self.0.classes[class].leaf.qlen() == 0;
            if emptied && std::mem::take(&mut self.0.classes[class].own.active) {
                self.0.own.active.retain(|&c| c != class);
            }
            if let Some(packet) = &packet
                && !is_old(&self.0)
            {
                self.count(class, (len, packet.counts_as()), cx.now);
            }
            return packet;
        }
    }
}

impl Qdisc for Carrier {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let class = match self.0.class_of(&mut packet, cx) {
            Ok(Some(class)) => class,
            Ok(None) => return Gone::Shot.leave_counted(packet, &mut self.0.own.stats, cx),
            Err(gone) => return gone.leave_counted(packet, &mut self.0.own.stats, cx),
        };
        let len = packet.pkt_len;
        self.0.settle();
        let ((answer, more), before, after) = self.0.on_leaf(class, |leaf| leaf.enqueue_told(packet, cx));
        self.lost(class, before + more + u32::from(answer == Xmit::Success), after);
        if answer != Xmit::Success {
            if answer.counts_as_drop() {
                let stats = &mut self.0.own.stats;
                stats.drops = stats.drops.wrapping_add(1);
            }
            return answer;
        }
        let empty = self.0.classes[class].leaf.qlen() == 0;
        let own = &mut self.0.classes[class].own;
        if !empty && !std::mem::replace(&mut own.active, true) {
            own.deficit = own.quantum;
            self.0.own.active.push_back(class);
        }
        if is_old(&self.0) {
            self.count(class, (len, 1), cx.now);
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
        Drr::change(&mut self.0, options)
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.0.children_mut(&mut |_, child| child.reset(cx));
        self.0.own.held.unsure = true;
        for class in self.0.own.active.drain(..) {
            self.0.classes[class].own.active = false;
        }
        if let Some(packet) = self.0.own.held.peeked.take() {
            cx.drops.drop(packet, crate::ledger::DropReason::Purged);
        }
        (self.0.own.held.qlen, self.0.own.held.backlog) = (0, 0);
    }
    fn stats(&self) -> Stats {
        let drr = &self.0.own;
        let peeked = drr.held.peeked.as_ref().map_or(0, |p| p.pkt_len);
        let backlog = if is_old(&self.0) { 0 } else { drr.held.backlog.wrapping_add(peeked) };
        Stats { qlen: self.qlen(), backlog, ..drr.stats }
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
