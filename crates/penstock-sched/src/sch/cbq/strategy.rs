//! The delayer: what happens to a class that is over its limit and may not borrow.
//!
//! Follows: linux v2.6.35 net/sched/sch_cbq.c `cbq_ovl_classic`, `cbq_ovl_rclassic`, `cbq_ovl_delay`,
//! `cbq_ovl_lowprio`, `cbq_ovl_drop`, `cbq_undelay`; linux v6.2 has the first only (`cbq_overlimit`). tc never had a word
//! for the others: they are set with the option `ovl` of a class, as netlink carries it.
//! Differs: a delayed class comes back when its time is over. In 2.6.35 it did not: `cbq_ovl_delay` starts its timer
//! without setting its time where it is not running, and `cbq_undelay_prio` always answers 0 for what is still to wait
//! (`sched` begins as `now` and is only ever lowered), so that the timer is not set again.

use super::{Cbq, MAXLEVEL, MAXPRIO, NIL};
use crate::qdisc::Cx;
use penstock_model::{Options, Time};

/// `TC_CBQ_OVL_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Strategy {
    /// It waits until its time has come, and `offtime` longer.
    Classic,
    /// It leaves its priority for a time.
    Delay,
    /// It has a lower priority for a time.
    Lowprio,
    /// It loses a packet.
    Drop,
    /// Meant for the first of its ancestors above the top level; comes to the same as the classic way.
    Rclassic,
}

impl Cbq {
    /// `cbq_set_overlimit`. A strategy there is not, or a priority that is none or not below the class's own, changes
    /// nothing; the kernel answers EINVAL for it, which nobody looks at.
    pub(super) fn set_overlimit(&mut self, class: u32, ovl: &Options) {
        let number = |name: &str| ovl.u32(name).unwrap_or(0);
        let own = &mut self.classes[class].own;
        own.strategy = match number("strategy") {
            0 => Strategy::Classic,
            1 => Strategy::Delay,
            2 => {
                let fits = own.priority + 2..=MAXPRIO;
                let Some(priority2) = Some(number("priority2") as usize & 0xff).filter(|p| fits.contains(p))
                else {
                    return;
                };
                own.priority2 = priority2 - 1;
                Strategy::Lowprio
            }
            3 => Strategy::Drop,
            4 => Strategy::Rclassic,
            _ => return,
        };
        own.penalty = number("penalty");
    }

    /// A class is over its limit and nobody lends to it.
    pub(super) fn overlimit(&mut self, class: u32, cx: &mut Cx<'_>) {
        match self.classes[class].own.strategy {
            // cbq_ovl_rclassic looks for an ancestor above the top level and, found or not, goes on with the class itself.
            Strategy::Classic | Strategy::Rclassic => self.delay_classic(class),
            Strategy::Delay => self.delay(class, cx.now),
            Strategy::Lowprio => self.lower(class),
            Strategy::Drop => {
                self.drop_one(class, cx);
                let own = &mut self.classes[class].own;
                own.overactions = own.overactions.wrapping_add(1);
                self.delay_classic(class);
            }
        }
    }

    /// How long a class must wait now: what it lacks, with `offtime`, without what idling would give it back.
    fn off(&mut self, class: u32) -> i64 {
        let now = self.now;
        let own = &mut self.classes[class].own;
        let mut delay = own.undertime - now + own.offtime;
        if own.avgidle < 0 {
            delay -= own.to_forgive();
        }
        own.avgidle = own.avgidle.max(own.minidle);
        delay
    }

    fn wake_after(&mut self, delay: i64) {
        if self.wd_expires == 0 || self.wd_expires > delay {
            self.wd_expires = delay;
        }
    }

    /// `cbq_ovl_classic`.
    fn delay_classic(&mut self, class: u32) {
        let now = self.now;
        let delay = if self.classes[class].own.delayed {
            self.classes[class].own.undertime - now
        } else {
            let delay = self.off(class).max(1);
            let own = &mut self.classes[class].own;
            own.undertime = now + delay;
            own.overactions = own.overactions.wrapping_add(1);
            own.delayed = true;
            delay
        };
        self.wake_after(delay);
        if self.toplevel != MAXLEVEL {
            return;
        }
        // Who might borrow is woken when the first lender is under its limit.
        let (mut base, mut last) = (self.wd_expires, delay);
        let mut lender = self.classes[class].own.borrow;
        while lender != NIL {
            let own = &self.classes[lender].own;
            last = own.undertime - now;
            if last < base {
                last = last.max(1);
                base = last;
            }
            lender = own.borrow;
        }
        // 2.2 and 2.4 take what they looked at last.
        self.wd_expires = if self.clock.is_old() { last } else { base };
    }

    /// `cbq_ovl_delay`.
    fn delay(&mut self, class: u32, at: Time) {
        let now = self.now;
        let mut delay = self.classes[class].own.undertime - now;
        if !self.classes[class].own.delayed {
            delay = self.off(class);
            let own = &mut self.classes[class].own;
            own.undertime = now + delay;
            if delay > 0 {
                let span = delay + i64::from(own.penalty);
                own.penalized = now + span;
                own.cpriority = MAXPRIO;
                own.delayed = true;
                own.overactions = own.overactions.wrapping_add(1);
                self.pmask |= 1 << MAXPRIO;
                let due = self.clock.timer(at, now, span);
                // One that runs is only ever set earlier; one that does not is started as it was left: anew here.
                self.delay_timer = Some(self.delay_timer.map_or(due, |set| set.min(due)));
                return;
            }
            delay = 1;
        }
        self.wake_after(delay);
    }

    /// `cbq_ovl_lowprio`.
    fn lower(&mut self, class: u32) {
        let now = self.now;
        let own = &mut self.classes[class].own;
        own.penalized = now + i64::from(own.penalty);
        if own.cpriority != own.priority2 {
            own.cpriority = own.priority2;
            own.overactions = own.overactions.wrapping_add(1);
            self.pmask |= 1 << own.cpriority;
        }
        self.delay_classic(class);
    }

    /// The drop of `cbq_ovl_drop`: a packet of the class's qdisc, where that can drop one.
    fn drop_one(&mut self, class: u32, cx: &mut Cx<'_>) {
        let from = cx.drops.len();
        if self.classes[class].leaf.drop_one(cx) {
            let (packets, bytes) = Cbq::lost_since(from, cx);
            self.reduce(packets, bytes);
        }
    }

    /// `cbq_undelay`: classes whose penalty is over have their priority again.
    pub(super) fn undelay(&mut self, at: Time) {
        let now = self.clock.read(at);
        let mut mask = std::mem::take(&mut self.pmask);
        let mut delay = 0;
        while mask != 0 {
            let prio = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            let next = self.undelay_prio(prio, now);
            if next > 0 {
                self.pmask |= 1 << prio;
                if next < delay || delay == 0 {
                    delay = next;
                }
            }
        }
        if delay != 0 {
            self.delay_timer = Some(self.clock.timer(at, now, delay));
        }
    }

    /// How long until the next penalty of a priority is over; 0 where there is none.
    fn undelay_prio(&mut self, prio: usize, now: i64) -> i64 {
        let mut next = 0;
        for class in 0..self.classes.slots() {
            let Some(own) = self.classes.get(class).map(|class| &class.own) else { continue };
            if own.cpriority != prio || own.priority == prio {
                continue;
            }
            let (left, queued) = (own.penalized - now, own.next_alive != NIL);
            if left > 0 {
                next = if next == 0 { left } else { left.min(next) };
                continue;
            }
            self.deactivate(class);
            let own = &mut self.classes[class].own;
            own.cpriority = own.priority;
            own.delayed = false;
            if queued {
                self.activate(class);
            }
        }
        next
    }
}
