//! Classes waiting for a moment: the event queue of one level of htb, and the timers of the qdiscs in classes ([`crate::naps`]).
//!
//! Follows: linux v6.12 net/sched/sch_htb.c `htb_add_to_wait_tree`, `htb_do_events`.
//! Differs: a binary heap in place of a red-black tree. Equal keys leave in the order they came, as in the kernel
//! (which puts them to the right of their equals): the heap's key is (moment, sequence number).

/// No place.
const NIL: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    key: i64,
    seq: u64,
    class: u32,
}

/// One level's event queue.
#[derive(Default)]
pub(crate) struct Wait(Vec<Entry>);

/// Where each class stands in its level's heap; [`NIL`] when it does not wait.
#[derive(Default)]
pub(crate) struct Places {
    place: Vec<u32>,
    seq: u64,
}

impl Places {
    /// Makes room for `class`, not waiting.
    pub(crate) fn init(&mut self, class: u32) {
        let class = class as usize;
        if self.place.len() <= class {
            self.place.resize(class + 1, NIL);
        }
        self.place[class] = NIL;
    }
}

impl Places {
    /// Whether `class` waits.
    #[inline]
    pub(crate) fn holds(&self, class: u32) -> bool {
        self.place.get(class as usize).is_some_and(|&at| at != NIL)
    }
}

impl Wait {
    /// Puts `class` in, or lets it wait for another moment; makes room for it.
    pub(crate) fn put(&mut self, places: &mut Places, class: u32, key: i64) {
        if places.holds(class) {
            if self.0[places.place[class as usize] as usize].key == key {
                return;
            }
            self.remove(places, class);
        } else {
            places.init(class);
        }
        self.insert(places, class, key);
    }
    /// All that wait, in no order that means anything.
    pub(crate) fn classes(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().map(|e| e.class)
    }
    /// Puts `class` in, to be woken at `key`.
    pub(crate) fn insert(&mut self, places: &mut Places, class: u32, key: i64) {
        let seq = places.seq;
        places.seq += 1;
        self.0.push(Entry { key, seq, class });
        self.up(places, self.0.len() - 1);
    }
    /// Takes `class` out, if it is in.
    pub(crate) fn remove(&mut self, places: &mut Places, class: u32) {
        if !places.holds(class) {
            return;
        }
        let i = places.place[class as usize] as usize;
        places.place[class as usize] = NIL;
        self.0.swap_remove(i);
        if i < self.0.len() {
            self.up(places, i);
            self.down(places, i);
        }
    }
    /// The first to be woken, with its moment.
    #[inline]
    pub(crate) fn first(&self) -> Option<(i64, u32)> {
        self.0.first().map(|e| (e.key, e.class))
    }
    /// Forgets all; their places are left to [`Places::init`] or a new insertion.
    pub(crate) fn clear(&mut self, places: &mut Places) {
        for e in self.0.drain(..) {
            places.place[e.class as usize] = NIL;
        }
    }

    fn up(&mut self, places: &mut Places, mut i: usize) {
        let entry = self.0[i];
        while i > 0 {
            let above = (i - 1) / 2;
            if self.0[above] < entry {
                break;
            }
            self.set(places, i, self.0[above]);
            i = above;
        }
        self.set(places, i, entry);
    }
    fn down(&mut self, places: &mut Places, mut i: usize) {
        // `up` may have moved another entry here; that one is in order already and stays.
        let entry = self.0[i];
        loop {
            let mut below = 2 * i + 1;
            if below >= self.0.len() {
                break;
            }
            if below + 1 < self.0.len() && self.0[below + 1] < self.0[below] {
                below += 1;
            }
            if entry < self.0[below] {
                break;
            }
            self.set(places, i, self.0[below]);
            i = below;
        }
        self.set(places, i, entry);
    }
    #[inline]
    fn set(&mut self, places: &mut Places, i: usize, entry: Entry) {
        self.0[i] = entry;
        places.place[entry.class as usize] = i as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn wakes_by_moment_then_by_arrival(ops in proptest::collection::vec((0u32..30, 0i64..6), 1..200)) {
            let (mut wait, mut places) = (Wait::default(), Places::default());
            (0..30).for_each(|c| places.init(c));
            let mut model: Vec<(i64, usize, u32)> = Vec::new();
            for (at, (class, key)) in ops.into_iter().enumerate() {
                if let Some(i) = model.iter().position(|m| m.2 == class) {
                    model.remove(i);
                    wait.remove(&mut places, class);
                } else {
                    model.push((key, at, class));
                    wait.insert(&mut places, class, key);
                }
                prop_assert_eq!(wait.first(), model.iter().min().map(|m| (m.0, m.2)));
            }
        }
    }
}
