//! What drr and qfq share as they carry packets: which class a packet goes to, what the qdiscs in the classes hold, and when those wake.

use super::hashed::{Hashed, HashedKind};
use crate::cls::{Filters, Gone, Verdict};
use crate::naps::{self, Naps};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Due};
use penstock_model::{Handle, Time};
use penstock_packet::{Packet, Skb};

/// What the qdiscs in the classes hold together.
#[derive(Default)]
pub(super) struct Held {
    /// Classes whose qdisc has set its watchdog.
    pub(super) naps: Naps,
    /// Their qdiscs may have been changed by others: who naps must be asked anew.
    pub(super) unsure: bool,
    /// Taken from its class, and not given on yet.
    pub(super) peeked: Option<Packet>,
    /// Packets, without what was peeked at.
    pub(super) qlen: u32,
    /// Bytes, likewise, as [`Node::counted_above`] has them.
    pub(super) backlog: u32,
}

/// A kind that sends what the qdiscs in its classes hold.
pub(super) trait OverLeaves: HashedKind {
    /// What they hold.
    fn held(&self) -> &Held;
    /// The same, to change it.
    fn held_mut(&mut self) -> &mut Held;
}

impl<K: OverLeaves> Hashed<K> {
    /// `drr_classify`, `qfq_classify`: `None` for a packet that no class would have.
    pub(super) fn class_of(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Result<Option<u32>, Gone> {
        let priority = Handle(skb.priority);
        if priority.qdisc() == self.handle
            && let Some(class) = self.classes.find(priority)
        {
            return Ok(Some(class));
        }
        match self.filters.classify(Filters::ROOT, skb, cx) {
            Verdict::Class(hit) if hit.class > 0 => Ok(Some(hit.class - 1)),
            Verdict::Class(hit) => Ok(self.classes.find(hit.classid)),
            Verdict::Unmatched => Ok(None),
            Verdict::Gone(gone) => Err(gone),
        }
    }
    /// Runs `work` on the qdisc in a class and takes over what that has lost of itself. Answers also the packets it held before and after, as [`Node::qlen_above`]
    /// has them.
    pub(super) fn on_leaf<T>(&mut self, class: u32, work: impl FnOnce(&mut Node) -> T) -> (T, u32, u32) {
        let leaf = &mut self.classes[class].leaf;
        let before = (leaf.qlen_above(), leaf.counted_above());
        let result = work(leaf);
        let after = (leaf.qlen_above(), leaf.counted_above());
        let alarm = naps::alarm(leaf);
        let held = self.own.held_mut();
        match alarm {
            Some(alarm) => held.naps.set(class, alarm),
            None => held.naps.remove(class),
        }
        held.qlen = held.qlen.wrapping_add(after.0.wrapping_sub(before.0));
        held.backlog = held.backlog.wrapping_add(after.1.wrapping_sub(before.1));
        (result, before.0, after.0)
    }
    /// Asks every class's qdisc for its watchdog, where others may have changed them since they were last asked.
    #[inline]
    pub(super) fn settle(&mut self) {
        let Hashed { classes, own, .. } = self;
        let held = own.held_mut();
        if std::mem::take(&mut held.unsure) {
            held.naps.clear();
            for (number, class) in classes.iter() {
                if let Some(alarm) = naps::alarm(&class.leaf) {
                    held.naps.set(number, alarm);
                }
            }
        }
    }
    /// [`crate::Qdisc::next_wakeup`].
    pub(super) fn leaves_wake(&self) -> Option<Time> {
        if !self.own.held().unsure {
            return self.own.held().naps.first();
        }
        let mut next: Option<Time> = None;
        self.children(&mut |_, child| next = [next, child.next_wakeup()].into_iter().flatten().min());
        next
    }
    /// [`crate::Qdisc::first_soft`].
    pub(super) fn leaves_may_wake(&self) -> Option<Time> {
        if !self.own.held().unsure {
            return self.own.held().naps.first_soft();
        }
        let mut next: Option<Time> = None;
        self.children(&mut |_, child| next = [next, child.first_soft()].into_iter().flatten().min());
        next
    }
    /// [`crate::Qdisc::expire`].
    pub(super) fn leaves_expire(&mut self, due: Due) {
        self.settle();
        let Hashed { classes, own, .. } = self;
        own.held_mut().naps.expire(due.now, |class| {
            let leaf = &mut classes[class].leaf;
            leaf.expire(due);
            naps::alarm(leaf)
        });
    }
}
