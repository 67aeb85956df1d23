//! Which queue is the longest: a heap of all queues of all tins by their bytes, kept only while the buffer is full now and then.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c` `cake_heapify`, `cake_heapify_up`, `cake_heap_swap`, and the building of the heap in `cake_drop`.

use super::tin::{QUEUES, TINS};

/// All queues.
const ALL: usize = QUEUES * TINS;

/// Bytes of every queue, and the heap.
pub(super) struct Longest {
    /// Bytes of the queue with this number: 1024 times the tin, and the flow.
    backlogs: Vec<u32>,
    /// Numbers of queues in the order of the heap; empty until the first overflow.
    heap: Vec<u16>,
    /// Where each queue stands in it (`overflow_idx`).
    places: Vec<u16>,
}

/// The number of a queue.
pub(super) fn number(tin: usize, flow: usize) -> usize {
    tin * QUEUES + flow
}

impl Longest {
    pub(super) fn new() -> Longest {
        Longest { backlogs: vec![0; ALL], heap: Vec::new(), places: Vec::new() }
    }
    /// Bytes in a queue.
    #[inline]
    pub(super) fn backlog(&self, queue: usize) -> u32 {
        self.backlogs[queue]
    }
    /// The same, to change them.
    #[inline]
    pub(super) fn backlog_mut(&mut self, queue: usize) -> &mut u32 {
        &mut self.backlogs[queue]
    }
    /// Orders the heap anew. At first it holds the first queue of each tin, then the second of each, and so on.
    pub(super) fn build(&mut self) {
        if self.heap.is_empty() {
            self.heap = (0..ALL).map(|k| number(k % TINS, k / TINS) as u16).collect();
            self.places = vec![0; ALL];
            for (place, &queue) in self.heap.iter().enumerate() {
                self.places[usize::from(queue)] = place as u16;
            }
        }
        for place in (0..ALL / 2).rev() {
            self.sink(place);
        }
    }
    /// The longest one.
    pub(super) fn first(&self) -> usize {
        usize::from(self.heap[0])
    }
    fn at(&self, place: usize) -> u32 {
        self.backlogs[usize::from(self.heap[place])]
    }
    fn swap(&mut self, i: usize, j: usize) {
        self.heap.swap(i, j);
        self.places[usize::from(self.heap[i])] = i as u16;
        self.places[usize::from(self.heap[j])] = j as u16;
    }
    /// The queue at a place of the heap has become shorter. As in the kernel what is below is compared with what has risen the step before, so it mostly
    /// sinks by one step; the first may then not be the longest for a while.
    fn sink(&mut self, mut place: usize) {
        let (mut most, mut bytes) = (place, self.at(place));
        loop {
            for below in [2 * place + 1, 2 * place + 2] {
                if below < ALL && self.at(below) > bytes {
                    (most, bytes) = (below, self.at(below));
                }
            }
            if most == place {
                return;
            }
            self.swap(place, most);
            place = most;
        }
    }
    /// The longest queue has become shorter.
    pub(super) fn first_shrank(&mut self) {
        self.sink(0);
    }
    /// A queue has become shorter.
    pub(super) fn shrank(&mut self, queue: usize) {
        self.sink(usize::from(self.places[queue]));
    }
    /// A queue has become longer.
    pub(super) fn grew(&mut self, queue: usize) {
        let mut place = usize::from(self.places[queue]);
        while place > 0 {
            let above = (place - 1) / 2;
            if self.at(place) <= self.at(above) {
                return;
            }
            self.swap(place, above);
            place = above;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Rng;

    #[test]
    fn the_first_of_a_heap_just_built_is_the_longest() {
        let (mut longest, mut rng) = (Longest::new(), Rng::named(1, "heap"));
        for _ in 0..50 {
            for _ in 0..300 {
                let queue = rng.below(ALL as u32) as usize;
                *longest.backlog_mut(queue) = rng.below(2000);
            }
            longest.build();
            assert_eq!(longest.backlog(longest.first()), longest.backlogs.iter().copied().max().unwrap_or(0));
            let first = longest.first();
            *longest.backlog_mut(first) = 0;
            longest.first_shrank();
            assert_ne!(longest.first(), first);
        }
    }

    #[test]
    fn what_has_shrunk_sinks_by_one_step() {
        let mut longest = Longest::new();
        // The first queue of each of the eight tins stand at the top, in order.
        for (tin, bytes) in [900, 800, 100, 700, 0, 0, 0, 0].into_iter().enumerate() {
            *longest.backlog_mut(number(tin, 0)) = bytes;
        }
        longest.build();
        *longest.backlog_mut(number(0, 0)) = 50;
        longest.first_shrank();
        // 700, below 800 before, would have had to rise above 50.
        assert_eq!(longest.heap[..4], [1, 0, 2, 3].map(|tin| number(tin, 0) as u16));
        *longest.backlog_mut(number(3, 0)) = 1000;
        longest.grew(number(3, 0));
        assert_eq!(longest.first(), number(3, 0));
    }
}
