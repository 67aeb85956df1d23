//! Aggregates of classes, and the groups in which they wait for their turn.
//!
//! Follows: linux v6.12 `net/sched/sch_qfq.c`; Checconi, Rizzo & Valente, "QFQ: efficient packet scheduling with tight guarantees", and QFQ+ of
//! Valente. Classes of one weight and one `maxpkt` are an aggregate, eight at most; it is served as one, and its classes take turns within. Times are virtual:
//! bytes divided by weight, scaled by 2^30, modulo 2^64.

use super::groups::Groups;

/// No class, no aggregate.
pub(super) const NIL: u32 = u32::MAX;
/// `FRAC_BITS`.
const FRAC_BITS: u32 = 30;
/// `ONE_FP`.
const ONE: u64 = 1 << FRAC_BITS;
/// `QFQ_MTU_SHIFT`.
const MTU_SHIFT: u32 = 16;
/// `QFQ_MAX_INDEX`.
pub(super) const INDEX_MAX: u32 = 24;
/// `QFQ_MAX_AGG_CLASSES`.
const AGG_CLASSES_MAX: u32 = 8;

/// What a class is to the aggregates.
#[derive(Clone, Copy)]
struct Slot {
    agg: u32,
    /// Bytes it may still send in this turn.
    deficit: i32,
    active: bool,
    /// Its neighbours among the active classes of its aggregate.
    next: u32,
    prev: u32,
}

impl Slot {
    const EMPTY: Slot = Slot { agg: NIL, deficit: 0, active: false, next: NIL, prev: NIL };
}

/// `struct qfq_aggregate`.
#[derive(Clone)]
pub(super) struct Agg {
    pub(super) start: u64,
    pub(super) finish: u64,
    /// Index of its group, once it has one.
    pub(super) group: Option<u32>,
    weight: u32,
    /// Largest packet, bytes.
    lmax: u32,
    inv_w: u32,
    budget_max: u32,
    initial_budget: u32,
    budget: u32,
    classes: u32,
    /// Active classes, in the order of their turns.
    first: u32,
    last: u32,
    /// The slot of its group, and its neighbours there.
    pub(super) slot: u32,
    pub(super) next: u32,
    pub(super) prev: u32,
}

/// Why an aggregate's times are set anew (`enum update_reason`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reason {
    Enqueue,
    Requeue,
}

/// `qfq_gt`: with wrapping.
#[inline]
pub(super) fn later(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) > 0
}
/// `qfq_round_down`.
#[inline]
pub(super) fn rounded(time: u64, shift: u32) -> u64 {
    time & !((1 << shift) - 1)
}

/// `struct qfq_sched` without its table of classes.
pub(super) struct Engine {
    /// By the number of a class.
    slots: Vec<Slot>,
    pub(super) aggs: Vec<Agg>,
    free: Vec<u32>,
    /// Aggregates with room for more classes, the youngest last: the kernel looks at that first.
    nonfull: Vec<u32>,
    groups: Groups,
    /// The aggregate being served.
    serving: u32,
    wsum: u32,
    iwsum: u32,
    /// Most classes of an aggregate, a power of two.
    agg_classes: u32,
}

impl Engine {
    /// `qfq_init_qdisc`.
    pub(super) fn new(tx_queue_len: u32) -> Engine {
        let shift = (u64::from(tx_queue_len) + 1).min(AGG_CLASSES_MAX.into()).ilog2();
        Engine {
            slots: Vec::new(),
            aggs: Vec::new(),
            free: Vec::new(),
            nonfull: Vec::new(),
            groups: Groups::new(FRAC_BITS + MTU_SHIFT + shift - INDEX_MAX),
            serving: NIL,
            wsum: 0,
            iwsum: 0,
            agg_classes: 1 << shift,
        }
    }
    /// The sum of all weights.
    pub(super) fn wsum(&self) -> u32 {
        self.wsum
    }
    /// Weight and largest packet of a class.
    #[inline]
    pub(super) fn params(&self, class: u32) -> (u32, u32) {
        let agg = &self.aggs[self.slots[class as usize].agg as usize];
        (agg.weight, agg.lmax)
    }
    /// Whether a class is among the active ones of its aggregate.
    #[inline]
    pub(super) fn is_active(&self, class: u32) -> bool {
        self.slots[class as usize].active
    }
    /// The aggregate being served.
    #[inline]
    pub(super) fn serving(&self) -> Option<u32> {
        (self.serving != NIL).then_some(self.serving)
    }
    /// The class whose turn it is.
    #[inline]
    pub(super) fn first(&self, agg: u32) -> Option<u32> {
        let first = self.aggs[agg as usize].first;
        (first != NIL).then_some(first)
    }
    /// Whether it is this class's turn in its aggregate.
    #[inline]
    pub(super) fn is_first(&self, class: u32) -> bool {
        self.first(self.slots[class as usize].agg) == Some(class)
    }
    /// Whether a class may not send so many bytes in this turn. What it may send is compared as an unsigned number.
    #[inline]
    pub(super) fn lacks(&self, class: u32, len: u32) -> bool {
        (self.slots[class as usize].deficit as u32) < len
    }

    // Classes

    fn append(&mut self, class: u32) {
        let agg = &mut self.aggs[self.slots[class as usize].agg as usize];
        let last = std::mem::replace(&mut agg.last, class);
        if last == NIL {
            agg.first = class;
        } else {
            self.slots[last as usize].next = class;
        }
        let slot = &mut self.slots[class as usize];
        (slot.active, slot.prev, slot.next) = (true, last, NIL);
    }
    fn unlink(&mut self, class: u32) {
        let Slot { agg, prev, next, .. } = self.slots[class as usize];
        let agg = &mut self.aggs[agg as usize];
        match prev {
            NIL => agg.first = next,
            prev => self.slots[prev as usize].next = next,
        }
        match next {
            NIL => agg.last = prev,
            next => self.slots[next as usize].prev = prev,
        }
        let slot = &mut self.slots[class as usize];
        (slot.active, slot.prev, slot.next) = (false, NIL, NIL);
    }
    /// A class waits behind the others of its aggregate.
    #[inline]
    pub(super) fn move_back(&mut self, class: u32) {
        let agg = &self.aggs[self.slots[class as usize].agg as usize];
        if agg.last != class {
            self.unlink(class);
            self.append(class);
        }
    }
    /// A packet has come to a class that had none.
    #[inline]
    pub(super) fn wake(&mut self, class: u32) {
        let agg = self.slots[class as usize].agg;
        self.slots[class as usize].deficit = self.aggs[agg as usize].lmax as i32;
        self.append(class);
        if self.aggs[agg as usize].first == class && self.serving != agg {
            self.activate_agg(agg);
        }
    }
    /// A class has sent its last packet.
    #[inline]
    pub(super) fn retire(&mut self, class: u32) {
        if self.is_active(class) {
            self.unlink(class);
        }
    }
    /// A class has sent so many bytes.
    #[inline]
    pub(super) fn charge(&mut self, class: u32, len: u32) {
        let slot = &mut self.slots[class as usize];
        slot.deficit = slot.deficit.wrapping_sub(len as i32);
    }
    /// A class's turn is over.
    pub(super) fn next_turn(&mut self, class: u32) {
        let lmax = self.params(class).1;
        let slot = &mut self.slots[class as usize];
        slot.deficit = slot.deficit.wrapping_add(lmax as i32);
        if slot.active {
            self.move_back(class);
        }
    }
    /// `qfq_deactivate_class`, of a class that may be active.
    pub(super) fn deactivate(&mut self, class: u32) {
        if self.is_active(class) {
            self.unlink(class);
            let agg = self.slots[class as usize].agg;
            if self.first(agg).is_none() {
                self.deactivate_agg(agg);
            }
        }
    }
    /// A new class, `qfq_change_class`.
    pub(super) fn add_class(&mut self, class: u32, weight: u32, lmax: u32) {
        if self.slots.len() <= class as usize {
            self.slots.resize(class as usize + 1, Slot::EMPTY);
        }
        self.slots[class as usize] = Slot { deficit: lmax as i32, ..Slot::EMPTY };
        let agg = self.aggregate(weight, lmax);
        self.add_to_agg(agg, class, false);
    }
    /// A class gets another weight or another largest packet: `qfq_change_agg`.
    pub(super) fn change_class(&mut self, class: u32, weight: u32, lmax: u32, has_packets: bool) {
        let agg = self.aggregate(weight, lmax);
        self.deactivate(class);
        self.rm_from_agg(class);
        self.add_to_agg(agg, class, has_packets);
    }
    /// A class without packets goes: `qfq_rm_from_agg`.
    pub(super) fn rm_from_agg(&mut self, class: u32) {
        let agg = std::mem::replace(&mut self.slots[class as usize].agg, NIL);
        match self.aggs[agg as usize].classes {
            1 => self.destroy_agg(agg),
            n => self.update_agg(agg, n - 1),
        }
    }

    // Aggregates

    /// `qfq_find_agg`, or a new one.
    fn aggregate(&mut self, weight: u32, lmax: u32) -> u32 {
        let same = |agg: &u32| {
            let agg = &self.aggs[*agg as usize];
            (agg.weight, agg.lmax) == (weight, lmax)
        };
        if let Some(agg) = self.nonfull.iter().rev().copied().find(same) {
            return agg;
        }
        let new = Agg {
            start: 0,
            finish: 0,
            group: None,
            weight,
            lmax,
            inv_w: 0,
            budget_max: 0,
            initial_budget: 0,
            budget: 0,
            classes: 0,
            first: NIL,
            last: NIL,
            slot: 0,
            next: NIL,
            prev: NIL,
        };
        let agg = match self.free.pop() {
            Some(agg) => {
                self.aggs[agg as usize] = new;
                agg
            }
            None => {
                self.aggs.push(new);
                self.aggs.len() as u32 - 1
            }
        };
        self.nonfull.push(agg);
        agg
    }
    fn destroy_agg(&mut self, agg: u32) {
        self.nonfull.retain(|&a| a != agg);
        self.wsum = self.wsum.wrapping_sub(self.aggs[agg as usize].weight);
        if self.wsum != 0 {
            self.iwsum = (ONE / u64::from(self.wsum)) as u32;
        }
        if self.serving == agg {
            self.serving = self.choose_next();
        }
        self.free.push(agg);
    }
    fn update_agg(&mut self, number: u32, classes: u32) {
        let agg = &mut self.aggs[number as usize];
        if classes == self.agg_classes {
            self.nonfull.retain(|&a| a != number);
        }
        if agg.classes > classes && classes == self.agg_classes - 1 {
            self.nonfull.push(number);
        }
        agg.budget_max = classes * agg.lmax;
        agg.inv_w = (ONE / u64::from(agg.weight * classes)) as u32;
        if agg.group.is_none() {
            agg.group = Some(self.groups.index(agg.inv_w, agg.budget_max));
        }
        let more = classes.wrapping_sub(agg.classes).wrapping_mul(agg.weight);
        agg.classes = classes;
        self.wsum = self.wsum.wrapping_add(more);
        self.iwsum = (ONE / u64::from(self.wsum)) as u32;
    }
    fn add_to_agg(&mut self, agg: u32, class: u32, has_packets: bool) {
        self.slots[class as usize].agg = agg;
        self.update_agg(agg, self.aggs[agg as usize].classes + 1);
        if has_packets {
            self.append(class);
            if self.aggs[agg as usize].first == class && self.serving != agg {
                self.activate_agg(agg);
            }
        }
    }
    /// Whether the aggregate may not send so many bytes before its turn is over.
    #[inline]
    pub(super) fn has_spent(&self, agg: u32, len: u32) -> bool {
        self.aggs[agg as usize].budget < len
    }
    /// An aggregate has sent so many bytes: they count for it and for all.
    #[inline]
    pub(super) fn spend(&mut self, agg: u32, len: u32) {
        let agg = &mut self.aggs[agg as usize];
        agg.budget = agg.budget.saturating_sub(len);
        self.groups.advance(u64::from(len) * u64::from(self.iwsum));
    }
    /// `charge_actual_service`.
    fn charge_service(&mut self, agg: u32) {
        let agg = &mut self.aggs[agg as usize];
        let received = agg.budget_max.min(agg.initial_budget.wrapping_sub(agg.budget));
        agg.finish = agg.start.wrapping_add(u64::from(received) * u64::from(agg.inv_w));
    }
    /// The turn of an aggregate, the one being served, is over. `None`: no packet is queued.
    pub(super) fn serve_next(&mut self, agg: u32, queued: bool) -> Option<u32> {
        self.charge_service(agg);
        let a = &mut self.aggs[agg as usize];
        (a.initial_budget, a.budget) = (a.budget_max, a.budget_max);
        if a.first != NIL {
            self.update_times(agg, Reason::Requeue);
            self.groups.schedule(&mut self.aggs, agg);
        } else if !queued {
            self.serving = NIL;
            return None;
        }
        self.serving = self.choose_next();
        self.serving()
    }
    fn choose_next(&mut self) -> u32 {
        self.groups.choose_next(&mut self.aggs)
    }
    /// `qfq_activate_agg`, for a packet that has come.
    fn activate_agg(&mut self, agg: u32) {
        let a = &mut self.aggs[agg as usize];
        (a.initial_budget, a.budget) = (a.budget_max, a.budget_max);
        self.update_times(agg, Reason::Enqueue);
        if self.serving == NIL {
            self.serving = agg;
            self.groups.start_at(self.aggs[agg as usize].start);
        } else if agg != self.serving {
            self.groups.schedule(&mut self.aggs, agg);
        }
    }
    /// `qfq_update_agg_ts`.
    fn update_times(&mut self, agg: u32, reason: Reason) {
        let a = &mut self.aggs[agg as usize];
        match reason {
            Reason::Enqueue => a.start = self.groups.start(a),
            Reason::Requeue => a.start = a.finish,
        }
        a.finish = a.start.wrapping_add(u64::from(a.budget_max) * u64::from(a.inv_w));
    }
    fn deactivate_agg(&mut self, agg: u32) {
        if agg == self.serving {
            self.charge_service(agg);
            self.serving = self.choose_next();
            return;
        }
        self.groups.deschedule(&mut self.aggs, agg);
    }
}
