//! Slots by how many packets they hold: those of each depth in a list, and the greatest depth there is.
//!
//! Follows: linux v6.12 and v2.6.35 net/sched/sch_sfq.c `sfq_link`, `sfq_inc`, `sfq_dec`, `struct sfq_head`.
//! Differs: none known.

/// Neighbours in the list of slots of one depth: `struct sfq_head`.
#[derive(Clone, Copy)]
struct Link {
    next: u16,
    prev: u16,
    /// Packets of the slot.
    depth: u16,
}

/// The lists.
pub(super) struct Depths {
    /// Each slot's place among those of its depth, then the lists' heads by depth.
    links: Vec<Link>,
    slots: u16,
    deepest: u16,
}

impl Depths {
    /// So many slots, all empty; none ever holds more than `most` packets.
    pub(super) fn new(slots: u16, most: u16) -> Depths {
        let slot = |_| Link { next: 0, prev: 0, depth: 0 };
        let head = |depth| Link { next: slots + depth, prev: slots + depth, depth };
        let links = (0..slots).map(slot).chain((0..=most).map(head)).collect();
        let mut depths = Depths { links, slots, deepest: 0 };
        (0..slots).for_each(|x| depths.link(x));
        depths
    }
    /// Packets of a slot.
    #[inline]
    pub(super) fn of(&self, x: u16) -> u16 {
        self.links[usize::from(x)].depth
    }
    /// Packets of the slot that has most.
    #[inline]
    pub(super) fn deepest(&self) -> u16 {
        self.deepest
    }
    /// The slot of this depth that came to it last.
    #[inline]
    pub(super) fn last_come(&self, depth: u16) -> Option<u16> {
        let x = self.links[usize::from(self.slots + depth)].next;
        (x < self.slots).then_some(x)
    }
    /// A packet comes to a slot: `sfq_inc`.
    #[inline]
    pub(super) fn inc(&mut self, x: u16) {
        self.unlink(x);
        let depth = self.of(x) + 1;
        self.links[usize::from(x)].depth = depth;
        self.deepest = self.deepest.max(depth);
        self.link(x);
    }
    /// A packet leaves a slot: `sfq_dec`.
    #[inline]
    pub(super) fn dec(&mut self, x: u16) {
        let last = self.unlink(x);
        let depth = self.of(x);
        self.links[usize::from(x)].depth = depth - 1;
        if last && self.deepest == depth {
            self.deepest -= 1;
        }
        self.link(x);
    }
    /// `sfq_link`: first among those of its depth.
    #[inline]
    fn link(&mut self, x: u16) {
        let depth = self.of(x);
        let prev = self.slots + depth;
        let next = self.links[usize::from(prev)].next;
        self.links[usize::from(x)] = Link { next, prev, depth };
        self.links[usize::from(prev)].next = x;
        self.links[usize::from(next)].prev = x;
    }
    /// Takes a slot out of its depth's list; answers whether nobody is left there.
    #[inline]
    fn unlink(&mut self, x: u16) -> bool {
        let Link { next, prev, .. } = self.links[usize::from(x)];
        self.links[usize::from(prev)].next = next;
        self.links[usize::from(next)].prev = prev;
        next == prev
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deepest_and_the_last_come() {
        let mut d = Depths::new(4, 10);
        assert_eq!((d.deepest(), d.last_come(0), d.last_come(1)), (0, Some(3), None));
        for x in [0, 1, 1, 2, 2] {
            d.inc(x);
        }
        assert_eq!((d.deepest(), d.last_come(2), d.last_come(1), d.of(2)), (2, Some(2), Some(0), 2));
        d.dec(2);
        assert_eq!((d.deepest(), d.last_come(2), d.last_come(1)), (2, Some(1), Some(2)));
        d.dec(1);
        assert_eq!((d.deepest(), d.last_come(2), d.last_come(1)), (1, None, Some(1)));
    }
}
