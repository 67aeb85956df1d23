//! The queue inside `netem`: packets in the order of the moments they are to be sent at.
//!
//! Follows: linux v6.12 `net/sched/sch_netem.c` `tfifo_enqueue`, `netem_peek`, `netem_erase_head`.
//! Differs: a binary heap in place of a red-black tree. Equal moments leave in the order they came, as in the kernel.

use penstock_packet::Packet;
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// A packet that is out of line.
struct Early {
    at: i64,
    seq: u64,
    packet: Packet,
}

impl PartialEq for Early {
    fn eq(&self, other: &Early) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Early {}
impl PartialOrd for Early {
    fn partial_cmp(&self, other: &Early) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Early {
    /// The heap's greatest is the one that goes first.
    fn cmp(&self, other: &Early) -> Ordering {
        (other.at, other.seq).cmp(&(self.at, self.seq))
    }
}

/// Packets with their moments, ns.
#[derive(Default)]
pub(super) struct Tfifo {
    /// Those that came in order.
    line: VecDeque<(i64, Packet)>,
    /// Those that overtake some of these.
    early: BinaryHeap<Early>,
    /// The last moment in `early`.
    early_last: i64,
    seq: u64,
}

impl Tfifo {
    /// `tfifo_enqueue`.
    pub(super) fn put(&mut self, at: i64, packet: Packet) {
        if self.line.back().is_none_or(|last| at >= last.0) {
            self.line.push_back((at, packet));
            return;
        }
        // What overtakes is behind all others of its kind for as long as there are any.
        self.early_last = if self.early.is_empty() { at } else { self.early_last.max(at) };
        self.seq += 1;
        self.early.push(Early { at, seq: self.seq, packet });
    }
    /// `netem_peek`: the first moment, and whether it is one out of line.
    fn next(&self) -> Option<(i64, bool)> {
        match (self.line.front(), self.early.peek()) {
            (Some(line), Some(early)) if early.at < line.0 => Some((early.at, true)),
            (Some(line), _) => Some((line.0, false)),
            (None, early) => early.map(|e| (e.at, true)),
        }
    }
    /// The first moment.
    #[inline]
    pub(super) fn first(&self) -> Option<i64> {
        self.next().map(|(at, _)| at)
    }
    /// The last moments: of those out of line, and of those in line.
    pub(super) fn lasts(&self) -> [Option<i64>; 2] {
        [(!self.early.is_empty()).then_some(self.early_last), self.line.back().map(|last| last.0)]
    }
    /// Takes the packet of the first moment.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Packet> {
        match self.next()? {
            (_, true) => self.early.pop().map(|e| e.packet),
            (_, false) => self.line.pop_front().map(|l| l.1),
        }
    }
    /// Packets.
    #[inline]
    pub(super) fn len(&self) -> u32 {
        (self.line.len() + self.early.len()) as u32
    }
    /// All packets.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Packet> {
        self.line.iter().map(|l| &l.1).chain(self.early.iter().map(|e| &e.packet))
    }
    /// Takes all out: those out of line first (`tfifo_reset`).
    pub(super) fn purge(&mut self, mut gone: impl FnMut(Packet)) {
        while let Some(early) = self.early.pop() {
            gone(early.packet);
        }
        self.line.drain(..).for_each(|(_, packet)| gone(packet));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn leaves_by_moment_then_as_the_kernel_s_two_queues_have_it(ops in prop::collection::vec(prop::option::of(0i64..9), 1..120)) {
            let mut queue = Tfifo::default();
            // The kernel's: a list, and a tree that is searched.
            let (mut list, mut tree) = (Vec::<(i64, u64)>::new(), Vec::<(i64, u64)>::new());
            for (seq, op) in (0u64..).zip(ops) {
                match op {
                    Some(at) => {
                        queue.put(at, packet(seq, 100));
                        if list.last().is_none_or(|l| at >= l.0) {
                            list.push((at, seq));
                        } else {
                            tree.push((at, seq));
                            tree.sort_unstable();
                        }
                    }
                    None => {
                        let early = tree.first().is_some_and(|t| list.first().is_none_or(|l| t.0 < l.0));
                        let from = if early { &mut tree } else { &mut list };
                        let first = (!from.is_empty()).then(|| from.remove(0));
                        prop_assert_eq!(queue.first(), first.map(|f| f.0));
                        prop_assert_eq!(queue.take().map(|p| p.seq), first.map(|f| f.1));
                    }
                }
                prop_assert_eq!(queue.lasts(), [tree.last().map(|t| t.0), list.last().map(|l| l.0)]);
                prop_assert_eq!(queue.len() as usize, list.len() + tree.len());
            }
        }
    }
}
