//! Who may send: modes, rows, feeds and waits of htb's classes, and the choice of the next leaf.
//!
//! Follows: linux v6.12 net/sched/sch_htb.c from `htb_activate_prios` to `htb_lookup_leaf`; linux v2.6.35 has the
//! same machine with another clock.
//!
//! A class that has something to send and is under its rate stands in the row of its level and priority. One that is
//! over its rate but under its ceiling stands in its parent's feed; the parent, if it is the feed's first, stands in
//! its own row or feed in turn. One over its ceiling stands nowhere. A class that is not under its rate waits in its
//! level's event queue for the moment it will be.

use super::class::{Class, Classes, MAXDEPTH, Mode, NUMPRIO, Round};
use super::row::{NIL, Nodes, class_of, node};
use crate::wait::{Places, Wait};
use penstock_model::{Kernel, Time};

/// The unit of time of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clock {
    /// 6.12: ns.
    Ns,
    /// 2.6.35: ticks of 64 ns.
    Ticks,
}

/// `PSCHED_SHIFT`: a tick is 64 ns.
const PSCHED_SHIFT: u32 = 6;

impl Clock {
    pub(super) fn of(kernel: Kernel) -> Clock {
        match kernel {
            Kernel::V2_6_35 => Clock::Ticks,
            Kernel::V6_12 | Kernel::V7_2 => Clock::Ns,
        }
    }
    /// A moment in this unit.
    #[inline]
    pub(super) fn read(self, now: Time) -> i64 {
        match self {
            Clock::Ns => now.as_ns(),
            Clock::Ticks => now.as_ns() >> PSCHED_SHIFT,
        }
    }
    /// The moment of a reading.
    #[inline]
    pub(super) fn time(self, reading: i64) -> Time {
        match self {
            Clock::Ns => Time::from_ns(reading),
            Clock::Ticks => Time::from_ns(reading << PSCHED_SHIFT),
        }
    }
    /// Ticks, as tc sends them, in this unit.
    pub(super) fn span_of_ticks(self, ticks: u32) -> i64 {
        match self {
            Clock::Ns => i64::from(ticks) << PSCHED_SHIFT,
            Clock::Ticks => i64::from(ticks),
        }
    }
    /// This unit in ticks (`PSCHED_NS2TICKS`), rounded down.
    pub(super) fn ticks_of_span(self, span: i64) -> i64 {
        match self {
            Clock::Ns => span >> PSCHED_SHIFT,
            Clock::Ticks => span,
        }
    }
    /// One second.
    #[inline]
    pub(super) fn second(self) -> i64 {
        match self {
            Clock::Ns => 1_000_000_000,
            Clock::Ticks => 1_000_000_000 >> PSCHED_SHIFT,
        }
    }
}

/// `struct htb_level`.
pub(super) struct Level {
    wait: Wait,
    rows: [Round; NUMPRIO],
    /// Priorities whose row is not empty, one bit each.
    pub(super) row_mask: u32,
    /// No event is due before (`near_ev_cache`).
    near_event: i64,
}

/// The machine: everything of htb but packets, filters and `tc`.
pub(super) struct Engine {
    pub(super) classes: Classes,
    pub(super) clock: Clock,
    /// The moment of the present dequeue, in the clock's unit.
    pub(super) now: i64,
    /// Times a class went over its ceiling.
    pub(super) overlimits: u32,
    /// Those of classes that are gone.
    pub(super) gone_overlimits: u32,
    pub(super) levels: [Level; MAXDEPTH],
    nodes: Nodes,
    places: Places,
}

impl Engine {
    pub(super) fn new(kernel: Kernel) -> Engine {
        let level =
            |_| Level { wait: Wait::default(), rows: [Round::EMPTY; NUMPRIO], row_mask: 0, near_event: 0 };
        Engine {
            classes: Classes::default(),
            clock: Clock::of(kernel),
            now: 0,
            overlimits: 0,
            gone_overlimits: 0,
            levels: std::array::from_fn(level),
            nodes: Nodes::default(),
            places: Places::default(),
        }
    }

    /// `mbuffer`: the longest debt, and the longest rest that counts: a minute.
    #[inline]
    fn mbuffer(&self) -> i64 {
        60 * self.clock.second()
    }

    /// Takes in a new class.
    pub(super) fn insert(&mut self, class: Class) -> u32 {
        let classid = class.classid;
        let class = self.classes.insert(class);
        self.nodes.init(class, classid);
        self.places.init(class);
        class
    }

    /// `htb_activate`: leaf `class` has something to send.
    #[inline]
    pub(super) fn activate(&mut self, class: u32) {
        let c = &mut self.classes[class];
        if c.activity == 0 {
            c.activity = 1 << c.prio;
            self.activate_prios(class);
        }
    }
    /// `htb_deactivate`: leaf `class` has nothing to send.
    #[inline]
    pub(super) fn deactivate(&mut self, class: u32) {
        if self.classes[class].activity != 0 {
            self.deactivate_prios(class);
            self.classes[class].activity = 0;
        }
    }

    /// `htb_activate_prios`: puts a class into its row or its ancestors' feeds, by its new mode.
    fn activate_prios(&mut self, class: u32) {
        let mut class = class;
        let mut mask = self.classes[class].activity;
        loop {
            let c = &self.classes[class];
            let parent = c.parent;
            if c.mode != Mode::MayBorrow || parent == NIL || mask == 0 {
                break;
            }
            let p = &mut self.classes[parent];
            let feeds = p.feeds.as_mut().expect("a parent has feeds");
            for prio in bits(mask) {
                let feed = &mut feeds[prio];
                if feed.root != NIL {
                    // The parent is where it belongs already.
                    mask &= !(1 << prio);
                }
                self.nodes.insert(&mut feed.root, node(class, prio));
            }
            p.activity |= mask;
            class = parent;
        }
        let c = &self.classes[class];
        if c.mode == Mode::CanSend && mask != 0 {
            let level = &mut self.levels[c.level];
            level.row_mask |= mask;
            for prio in bits(mask) {
                self.nodes.insert(&mut level.rows[prio].root, node(class, prio));
            }
        }
    }

    /// `htb_deactivate_prios`: takes a class out of its row or its ancestors' feeds, by its old mode.
    fn deactivate_prios(&mut self, class: u32) {
        let mut class = class;
        let mut mask = self.classes[class].activity;
        loop {
            let c = &self.classes[class];
            let (parent, classid) = (c.parent, c.classid);
            if c.mode != Mode::MayBorrow || parent == NIL || mask == 0 {
                break;
            }
            let p = &mut self.classes[parent];
            let feeds = p.feeds.as_mut().expect("a parent has feeds");
            let mut emptied = 0;
            for prio in bits(mask) {
                let (feed, n) = (&mut feeds[prio], node(class, prio));
                if feed.ptr == n {
                    // The turn is lost, but the round goes on where it was.
                    feed.last_ptr_id = classid;
                    feed.ptr = NIL;
                }
                self.nodes.remove(&mut feed.root, n);
                if feed.root == NIL {
                    emptied |= 1 << prio;
                }
            }
            mask = emptied;
            p.activity &= !mask;
            class = parent;
        }
        let c = &self.classes[class];
        if c.mode == Mode::CanSend && mask != 0 {
            let level = &mut self.levels[c.level];
            for prio in bits(mask) {
                let (row, n) = (&mut level.rows[prio], node(class, prio));
                if row.ptr == n {
                    row.ptr = self.nodes.next(n);
                }
                self.nodes.remove(&mut row.root, n);
                if row.root == NIL {
                    level.row_mask &= !(1 << prio);
                }
            }
        }
    }

    /// `htb_change_class_mode`: sets the mode a class has `diff` after its buckets were filled; answers how long
    /// until the next change where the mode is not [`Mode::CanSend`].
    #[inline]
    fn change_mode(&mut self, class: u32, diff: i64) -> i64 {
        let c = &mut self.classes[class];
        let (new, diff) = c.mode_after(diff);
        if new == c.mode {
            return diff;
        }
        if new == Mode::CantSend {
            c.overlimits = c.overlimits.wrapping_add(1);
            self.overlimits = self.overlimits.wrapping_add(1);
        }
        if c.activity == 0 {
            c.mode = new;
        } else {
            if c.mode != Mode::CantSend {
                self.deactivate_prios(class);
            }
            self.classes[class].mode = new;
            if new != Mode::CantSend {
                self.activate_prios(class);
            }
        }
        diff
    }

    /// `htb_add_to_wait_tree`: wakes `class` after `delay`.
    fn wait(&mut self, class: u32, delay: i64) {
        let key = if delay == 0 { self.now + 1 } else { self.now + delay };
        let level = &mut self.levels[self.classes[class].level];
        level.near_event = level.near_event.min(key);
        level.wait.insert(&mut self.places, class, key);
    }
    /// Takes `class` out of its level's event queue, if it waits there.
    pub(super) fn forget(&mut self, class: u32) {
        let level = self.classes[class].level;
        self.levels[level].wait.remove(&mut self.places, class);
    }

    /// `htb_charge_class`: a packet of `len` bytes, which counts as so many `packets`, left `leaf`, borrowed from `level`.
    pub(super) fn charge(&mut self, leaf: u32, level: usize, (len, packets): (u32, u64)) {
        let (now, mbuffer) = (self.now, self.mbuffer());
        let moment = self.clock.time(now);
        let mut class = leaf;
        while class != NIL {
            let c = &mut self.classes[class];
            let diff = (now - c.t_c).min(mbuffer);
            if c.level >= level {
                if c.level == level {
                    c.lends = c.lends.wrapping_add(1);
                }
                c.account(len, diff, mbuffer);
            } else {
                c.borrows = c.borrows.wrapping_add(1);
                c.tokens += diff;
            }
            c.account_ceil(len, diff, mbuffer);
            c.t_c = now;
            if c.level > 0 {
                c.count((len, packets), moment);
            }
            let (parent, old) = (c.parent, c.mode);
            let delay = self.change_mode(class, 0);
            let new = self.classes[class].mode;
            if old != new {
                if old != Mode::CanSend {
                    self.forget(class);
                }
                if new != Mode::CanSend {
                    self.wait(class, delay);
                }
            }
            class = parent;
        }
    }

    /// Events of a level that are due, and the moment of its next: the quick check of `htb_dequeue` and
    /// `htb_do_events`. The kernel breaks off after two jiffies; here no time passes meanwhile.
    #[inline]
    pub(super) fn events(&mut self, level: usize) -> i64 {
        let near = self.levels[level].near_event;
        if self.now < near { near } else { self.do_events(level) }
    }

    fn do_events(&mut self, level: usize) -> i64 {
        let (now, mbuffer) = (self.now, self.mbuffer());
        let event = loop {
            let Some((key, class)) = self.levels[level].wait.first() else {
                break now + self.clock.second();
            };
            if key > now {
                break key;
            }
            self.levels[level].wait.remove(&mut self.places, class);
            let diff = (now - self.classes[class].t_c).min(mbuffer);
            let delay = self.change_mode(class, diff);
            if self.classes[class].mode != Mode::CanSend {
                self.wait(class, delay);
            }
        };
        self.levels[level].near_event = event;
        event
    }

    /// The round of a row (`inner` is [`NIL`]) or of an inner class's feed.
    #[inline]
    fn round(&mut self, inner: u32, level: usize, prio: usize) -> &mut Round {
        if inner == NIL {
            &mut self.levels[level].rows[prio]
        } else {
            &mut self.classes[inner].feeds.as_mut().expect("an inner class has feeds")[prio]
        }
    }

    /// `htb_lookup_leaf`: the leaf whose turn it is in a row; `None` when the row is empty.
    pub(super) fn lookup_leaf(&mut self, level: usize, prio: usize) -> Option<u32> {
        if self.levels[level].rows[prio].root == NIL {
            return None;
        }
        let (mut stack, mut depth) = ([NIL; MAXDEPTH], 0);
        // The bound is the kernel's.
        for _ in 0..65535 {
            let Round { root, mut ptr, last_ptr_id } = *self.round(stack[depth], level, prio);
            if ptr == NIL && last_ptr_id != 0 {
                ptr = self.nodes.at_or_after(root, last_ptr_id);
            }
            let past_the_end = ptr == NIL;
            if past_the_end {
                ptr = self.nodes.first(root);
            }
            *self.round(stack[depth], level, prio) = Round { root, ptr, last_ptr_id: 0 };
            if past_the_end {
                // The round begins anew here, and the turn passes on above.
                if depth > 0 {
                    depth -= 1;
                    let above = self.round(stack[depth], level, prio).ptr;
                    if above == NIL {
                        return None;
                    }
                    self.round(stack[depth], level, prio).ptr = self.nodes.next(above);
                }
                continue;
            }
            let class = class_of(ptr);
            if self.classes[class].level == 0 {
                return Some(class);
            }
            depth += 1;
            stack[depth] = class;
        }
        None
    }

    /// The turn passes to the next after `class`, which sent at `level`.
    #[inline]
    pub(super) fn pass_turn(&mut self, class: u32, level: usize, prio: usize) {
        let inner = if level == 0 { NIL } else { self.classes[class].parent };
        if level > 0 && inner == NIL {
            return;
        }
        let ptr = self.round(inner, level, prio).ptr;
        if ptr != NIL {
            self.round(inner, level, prio).ptr = self.nodes.next(ptr);
        }
    }

    /// `htb_reset` for the machine: all classes idle and able to send. Buckets keep what they hold.
    pub(super) fn reset(&mut self) {
        let all: Vec<u32> = self.classes.walk().collect();
        for class in all {
            let c = &mut self.classes[class];
            if let Some(feeds) = &mut c.feeds {
                feeds.fill(Round::EMPTY);
            }
            c.activity = 0;
            c.mode = Mode::CanSend;
        }
        for level in &mut self.levels {
            level.wait.clear(&mut self.places);
            level.rows = [Round::EMPTY; NUMPRIO];
            level.row_mask = 0;
        }
    }
}

/// The positions of the bits that are set, lowest first.
#[inline]
fn bits(mask: u32) -> impl Iterator<Item = usize> {
    let mut left = mask;
    std::iter::from_fn(move || {
        if left == 0 {
            return None;
        }
        let bit = left.trailing_zeros() as usize;
        left &= left - 1;
        Some(bit)
    })
}
