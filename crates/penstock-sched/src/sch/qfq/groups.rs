//! Groups of aggregates whose turns are about as long, each a ring of slots in the order of their virtual start; and which group is next.
//!
//! Follows: linux v6.12 `net/sched/sch_qfq.c`.

use super::engine::{Agg, INDEX_MAX, NIL, later, rounded};

/// `QFQ_MAX_SLOTS`.
const SLOTS: usize = 32;

/// What a group waits for: `enum qfq_state`, in the kernel's order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing: it may be served (ER).
    Ready,
    /// Its start (IR).
    Ineligible,
    /// A group that is to end before it (EB).
    Blocked,
    /// Both (IB).
    Both,
}

/// `struct qfq_group`.
#[derive(Clone)]
struct Group {
    start: u64,
    finish: u64,
    /// The slot that is first.
    front: u32,
    /// Slots with aggregates, from the first.
    full: u64,
    /// The youngest aggregate of each.
    slots: [u32; SLOTS],
}

/// All groups, and the virtual time.
pub(super) struct Groups {
    groups: Vec<Group>,
    /// Groups by state.
    states: [u64; 4],
    now: u64,
    before: u64,
    /// `min_slot_shift`.
    least_shift: u32,
}

/// `mask_from`.
#[inline]
fn from(bits: u64, index: u32) -> u64 {
    bits & !((1 << index) - 1)
}

impl Groups {
    pub(super) fn new(least_shift: u32) -> Groups {
        let empty = Group { start: 0, finish: 0, front: 0, full: 0, slots: [NIL; SLOTS] };
        Groups { groups: vec![empty; INDEX_MAX as usize + 1], states: [0; 4], now: 0, before: 0, least_shift }
    }
    /// `qfq_calc_index`.
    pub(super) fn index(&self, inv_w: u32, most: u32) -> u32 {
        let size = u64::from(most) * u64::from(inv_w);
        match (size >> self.least_shift).checked_ilog2() {
            None => 0,
            Some(log) => log + 1 - u32::from(size == 1 << (log + self.least_shift)),
        }
    }
    /// How wide the slots of a group are, as a power of two.
    #[inline]
    fn shift(&self, group: u32) -> u32 {
        self.least_shift + group
    }
    /// Virtual time goes on.
    #[inline]
    pub(super) fn advance(&mut self, by: u64) {
        self.now = self.now.wrapping_add(by);
    }
    /// The first aggregate is served from its start on.
    pub(super) fn start_at(&mut self, start: u64) {
        (self.before, self.now) = (start, start);
    }
    #[inline]
    fn bits(&mut self, state: State) -> &mut u64 {
        &mut self.states[state as usize]
    }
    fn clear(&mut self, state: State, group: u32) {
        *self.bits(state) &= !(1 << group);
    }
    /// `qfq_move_groups`.
    fn move_groups(&mut self, mask: u64, src: State, dst: State) {
        let moved = *self.bits(src) & mask;
        *self.bits(dst) |= moved;
        *self.bits(src) &= !mask;
    }
    /// The group's state by its times: `qfq_calc_state`; it is entered there.
    fn enter(&mut self, group: u32) {
        let g = &self.groups[group as usize];
        let early = later(g.start, self.now);
        let blocking = from(self.states[State::Ready as usize], group);
        let blocked =
            blocking != 0 && later(g.finish, self.groups[blocking.trailing_zeros() as usize].finish);
        let state = match (early, blocked) {
            (false, false) => State::Ready,
            (true, false) => State::Ineligible,
            (false, true) => State::Blocked,
            (true, true) => State::Both,
        };
        *self.bits(state) |= 1 << group;
    }
    /// `qfq_unblock_groups`.
    fn unblock(&mut self, group: u32, old_finish: u64) {
        let mask = from(self.states[State::Ready as usize], group + 1);
        if mask != 0 && !later(self.groups[mask.trailing_zeros() as usize].finish, old_finish) {
            return;
        }
        let below = (1 << group) - 1;
        self.move_groups(below, State::Blocked, State::Ready);
        self.move_groups(below, State::Both, State::Ineligible);
    }
    /// `qfq_update_eligible`, `qfq_make_eligible`.
    fn update_eligible(&mut self) {
        let waiting = self.states[State::Ineligible as usize] | self.states[State::Both as usize];
        if waiting == 0 {
            return;
        }
        if self.states[State::Ready as usize] == 0 {
            let start = self.groups[waiting.trailing_zeros() as usize].start;
            if later(start, self.now) {
                self.now = start;
            }
        }
        let changed = (self.now >> self.least_shift) ^ (self.before >> self.least_shift);
        if changed != 0 {
            // `fls` looks at 32 bits.
            let mask = match 32 - (changed as u32).leading_zeros() {
                32 => u64::MAX,
                last => (1 << last) - 1,
            };
            self.move_groups(mask, State::Ineligible, State::Ready);
            self.move_groups(mask, State::Both, State::Blocked);
        }
    }
    fn head(&self, group: u32) -> u32 {
        let g = &self.groups[group as usize];
        g.slots[g.front as usize]
    }
    /// `qfq_slot_scan`: the first aggregate of the first slot that has one, which becomes the front.
    fn scan(&mut self, group: u32) -> u32 {
        let g = &mut self.groups[group as usize];
        if g.full == 0 {
            return NIL;
        }
        let i = g.full.trailing_zeros();
        if i > 0 {
            g.front = (g.front + i) % SLOTS as u32;
            g.full >>= i;
        }
        self.head(group)
    }
    /// Takes an aggregate out of the slot at `offset` from the front.
    fn unlink(&mut self, aggs: &mut [Agg], agg: u32, group: u32, offset: u64) {
        let (next, prev) = (aggs[agg as usize].next, aggs[agg as usize].prev);
        let g = &mut self.groups[group as usize];
        let slot = ((u64::from(g.front) + offset) % SLOTS as u64) as usize;
        match prev {
            NIL => g.slots[aggs[agg as usize].slot as usize] = next,
            prev => aggs[prev as usize].next = next,
        }
        if next != NIL {
            aggs[next as usize].prev = prev;
        }
        if g.slots[slot] == NIL {
            g.full &= !1u64.wrapping_shl(offset as u32);
        }
        (aggs[agg as usize].next, aggs[agg as usize].prev) = (NIL, NIL);
    }
    /// The group begins with another slot.
    fn set_times(&mut self, group: u32, start: u64) {
        let shift = self.shift(group);
        let g = &mut self.groups[group as usize];
        (g.start, g.finish) = (start, start.wrapping_add(2 << shift));
    }
    /// `qfq_choose_next_agg`.
    pub(super) fn choose_next(&mut self, aggs: &mut [Agg]) -> u32 {
        self.update_eligible();
        self.before = self.now;
        let ready = self.states[State::Ready as usize];
        if ready == 0 {
            return NIL;
        }
        let group = ready.trailing_zeros();
        let old_finish = self.groups[group as usize].finish;
        let agg = self.head(group);
        self.unlink(aggs, agg, group, 0);
        match self.scan(group) {
            NIL => self.clear(State::Ready, group),
            front => {
                let start = rounded(aggs[front as usize].start, self.shift(group));
                if self.groups[group as usize].start == start {
                    return agg;
                }
                self.set_times(group, start);
                self.clear(State::Ready, group);
                self.enter(group);
            }
        }
        self.unblock(group, old_finish);
        agg
    }
    /// `qfq_update_start`: when an aggregate begins for which a packet has come.
    pub(super) fn start(&self, agg: &Agg) -> u64 {
        let group = agg.group.expect("it has classes");
        let shift = self.shift(group);
        let finish = rounded(agg.finish, shift);
        let limit = rounded(self.now, shift).wrapping_add(1 << shift);
        if later(agg.finish, self.now) && !later(finish, limit) {
            return agg.finish;
        }
        let mask = from(self.states[State::Ready as usize], group);
        if mask != 0 {
            let next = self.groups[mask.trailing_zeros() as usize].finish;
            if later(finish, next) {
                return if later(limit, next) { next } else { limit };
            }
        }
        self.now
    }
    /// `qfq_schedule_agg`. Another one is being served, so virtual time stays.
    pub(super) fn schedule(&mut self, aggs: &mut [Agg], agg: u32) {
        let a = &aggs[agg as usize];
        let (group, start) = (a.group.expect("it has classes"), a.start);
        let shift = self.shift(group);
        let round = rounded(start, shift);
        let g = &mut self.groups[group as usize];
        let moves = g.full == 0 || later(g.start, start);
        if moves {
            if g.full != 0 {
                // `qfq_slot_rotate`
                let i = (g.start.wrapping_sub(round) >> shift) as u32;
                g.full = g.full.wrapping_shl(i);
                g.front = g.front.wrapping_sub(i) % SLOTS as u32;
                self.clear(State::Ineligible, group);
                self.clear(State::Both, group);
            }
            self.set_times(group, round);
            self.enter(group);
        }
        self.insert(aggs, agg, group, round);
    }
    /// `qfq_slot_insert`.
    fn insert(&mut self, aggs: &mut [Agg], agg: u32, group: u32, round: u64) {
        let shift = self.shift(group);
        let g = &mut self.groups[group as usize];
        let most = SLOTS as u64 - 2;
        let mut offset = round.wrapping_sub(g.start) >> shift;
        if offset > most {
            let back = round.wrapping_sub(g.start).wrapping_sub(most << shift);
            let a = &mut aggs[agg as usize];
            (a.start, a.finish) = (a.start.wrapping_sub(back), a.finish.wrapping_sub(back));
            offset = most;
        }
        let slot = ((u64::from(g.front) + offset) % SLOTS as u64) as usize;
        let head = std::mem::replace(&mut g.slots[slot], agg);
        g.full |= 1 << offset;
        let a = &mut aggs[agg as usize];
        (a.slot, a.next, a.prev) = (slot as u32, head, NIL);
        if head != NIL {
            aggs[head as usize].prev = agg;
        }
    }
    /// `qfq_deactivate_agg` of one that waits.
    pub(super) fn deschedule(&mut self, aggs: &mut [Agg], agg: u32) {
        let a = &mut aggs[agg as usize];
        a.finish = a.start;
        let (group, start) = (a.group.expect("it has classes"), a.start);
        let round = rounded(start, self.shift(group));
        let offset = round.wrapping_sub(self.groups[group as usize].start) >> self.shift(group);
        self.unlink(aggs, agg, group, offset);
        let waits = [State::Ineligible, State::Blocked, State::Both];
        if self.groups[group as usize].full == 0 {
            waits.into_iter().for_each(|state| self.clear(state, group));
            // The kernel would unblock others here where no group from this one on is ready, and this one is: never.
            self.clear(State::Ready, group);
        } else if self.head(group) == NIL {
            let front = self.scan(group);
            let start = rounded(aggs[front as usize].start, self.shift(group));
            if self.groups[group as usize].start != start {
                self.clear(State::Ready, group);
                waits.into_iter().for_each(|state| self.clear(state, group));
                self.set_times(group, start);
                self.enter(group);
            }
        }
    }
}
