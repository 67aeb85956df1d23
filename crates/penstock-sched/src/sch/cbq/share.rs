//! The estimator and the link-sharing scheduler: who is under its limit, and who borrows from whom.
//!
//! Follows: linux v6.2 and v2.6.35 net/sched/sch_cbq.c `cbq_mark_toplevel`, `cbq_update`, `cbq_update_toplevel`,
//! `cbq_under_limit`, the head of `cbq_dequeue`; Floyd and Jacobson 1995 section V and appendix A (the estimator),
//! section III-C (top-level link-sharing).

use super::class::shift_right;
use super::{Cbq, LINK, NIL, PASTPERFECT};
use crate::charge::Count;
use crate::node::Door;
use crate::qdisc::Cx;
use penstock_model::Time;

/// An idle time above this, ticks, is none that was measured: the class begins anew with `maxidle`.
const LONG_IDLE: u64 = 128 * 1024 * 1024;

impl Cbq {
    /// `cbq_mark_toplevel`: something came to a class that is under its limit, or may borrow below the top level.
    pub(super) fn mark_toplevel(&mut self, class: u32, cx: &mut Cx<'_>) {
        let toplevel = self.toplevel;
        let (mut at_level, old) = (class, self.is_old());
        if toplevel <= self.classes[class].own.level {
            return;
        }
        // TCQ_F_THROTTLED: the qdisc in the class has a watchdog running.
        if old && self.naps.has(class) {
            return;
        }
        cx.drops.work.clock_reads += 1;
        let mut now = self.clock.read(cx.now);
        if old {
            now = self.now + self.clock.diff(now, self.now_rt);
        }
        loop {
            let own = &self.classes[at_level].own;
            if toplevel <= own.level {
                return;
            }
            if own.undertime < now {
                self.toplevel = own.level;
                return;
            }
            at_level = own.borrow;
            if at_level == NIL {
                return;
            }
        }
    }

    /// Time goes on to `now`, after the packet sent last has been accounted for.
    pub(super) fn advance(&mut self, now: i64, at: Time) {
        if !self.is_old() {
            if self.tx_class != NIL {
                // The packet is over when the link should have sent it.
                let end = self.now + self.classes[LINK].own.rate.l2t(self.tx_len);
                self.update(end, at);
            }
            self.now = now;
            return;
        }
        // An artificial clock: the later of the real one and of the work done.
        let mut passed = self.clock.diff(now, self.now_rt);
        if self.tx_class != NIL {
            let work = self.classes[LINK].own.rate.l2t(self.tx_len);
            self.now += work;
            self.update(self.now, at);
            passed = (passed - work).max(0);
        }
        self.now += passed;
        self.now_rt = now;
    }

    /// `cbq_update`: the last packet, which ended at `now`, counts for its class and those it shares with.
    //= Floyd and Jacobson 1995, section V: avgidle, and the undertime of a class over its limit
    fn update(&mut self, now: i64, at: Time) {
        let (sender, len, old) = (self.tx_class, self.tx_len, self.is_old());
        self.tx_class = NIL;
        let on_the_link = self.classes[LINK].own.rate.l2t(len);
        let mut class = sender;
        while class != NIL {
            let class_of = &mut self.classes[class];
            let own = &mut class_of.own;
            own.count(len, at, &mut class_of.estimator);
            let share = own.rate.l2t(len);
            let since = self.clock.diff(now, own.last);
            let mut avgidle = if since as u64 > LONG_IDLE {
                own.maxidle
            } else {
                own.avgidle + (since - share) - shift_right(own.avgidle, own.ewma_log)
            };
            if avgidle <= 0 {
                avgidle = avgidle.max(own.minidle);
                own.avgidle = avgidle;
                own.undertime = now + own.to_forgive() - on_the_link + share;
            } else {
                own.undertime = PASTPERFECT;
                own.avgidle = avgidle.min(own.maxidle);
            }
            if old || now > own.last {
                own.last = now;
            }
            class = own.share;
        }
        self.update_toplevel(sender);
    }

    /// What went through the doors of the qdiscs that stand or stood in a class.
    pub(super) fn through(&self, class: u32) -> Door {
        let class = &self.classes[class];
        let mut all = class.own.doors;
        all.add(&class.leaf.door);
        all
    }
    /// What has left a class's own queue and was counted: the last packet is when the next one is asked for.
    pub(super) fn sent(&self, class: u32) -> Count {
        let sent = self.through(class).left.less(self.classes[class].own.forgotten);
        if self.tx_class == class { sent.less(Count::one(self.tx_len)) } else { sent }
    }
    /// The same of a class and those that share with it.
    pub(super) fn total(&self, class: u32) -> Count {
        let mut all = self.sent(class);
        all.add(self.classes[class].own.gone);
        for (child, c) in self.classes.iter().filter(|(_, c)| c.own.share == class) {
            all.add(self.total(child).less(c.own.before));
        }
        all
    }
    /// A class goes, or shares no more: what it sent until now has been counted above.
    pub(super) fn leaves_share(&mut self, class: u32) {
        let (above, before) = (self.classes[class].own.share, self.classes[class].own.before);
        if above != NIL {
            let shared = self.total(class).less(before);
            self.classes[above].own.gone.add(shared);
        }
    }
    /// The last packet will not be counted.
    pub(super) fn forgets_sent(&mut self) {
        if self.tx_class != NIL {
            let last = Count::one(self.tx_len);
            self.classes[self.tx_class].own.forgotten.add(last);
        }
        (self.tx_class, self.tx_borrowed) = (NIL, NIL);
    }

    /// `cbq_update_toplevel`: the sender has more, so whoever lends may go on lending.
    fn update_toplevel(&mut self, sender: u32) {
        let mut lender = self.tx_borrowed;
        if self.toplevel < self.classes[lender].own.level || self.classes[sender].leaf.qlen() <= 1 {
            return;
        }
        while lender != NIL {
            let own = &self.classes[lender].own;
            if own.undertime == PASTPERFECT {
                self.toplevel = own.level;
                return;
            }
            lender = own.borrow;
        }
    }

    /// `cbq_under_limit`: on whose allowance a class may send: its own, or that of the nearest ancestor under its limit
    /// that is not above the top level. Where nobody lends, the class is dealt with as over its limit.
    pub(super) fn under_limit(&mut self, class: u32, cx: &mut Cx<'_>) -> Option<u32> {
        let now = self.now;
        let own = &mut self.classes[class].own;
        if own.parent == NIL {
            return Some(class);
        }
        let mut lender = class;
        loop {
            let own = &mut self.classes[lender].own;
            if own.undertime == PASTPERFECT || now >= own.undertime {
                own.delayed = false;
                return Some(lender);
            }
            lender = own.borrow;
            if lender == NIL {
                let own = &mut self.classes[class].own;
                own.overlimits = own.overlimits.wrapping_add(1);
                self.overlimit(class, cx);
                return None;
            }
            if self.classes[lender].own.level > self.toplevel {
                return None;
            }
        }
    }
}
