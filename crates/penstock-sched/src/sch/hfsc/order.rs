//! Classes in the order of a time, each with a second number of which the least is known below every place of the tree.
//!
//! Follows: linux v6.12 net/sched/sch_hfsc.c `eltree_insert` to `cftree_update`.
//! Differs: treaps over indices in place of red-black trees over pointers, and one tree in place of the two that a class has for its
//! children (by virtual time and by fit time). Equal times stand in the order they came, as there; the searches that walk along
//! a tree there go down it here.

/// No place.
pub(super) const NIL: u32 = u32::MAX;
/// A place that is in no tree.
const OUT: u32 = u32::MAX - 1;

#[derive(Clone, Copy)]
struct Place {
    /// The time, and when it came.
    key: (u64, u64),
    value: u64,
    /// The least value from here down.
    least: u64,
    left: u32,
    right: u32,
    up: u32,
}

/// The places of all trees of one kind: one for each class, in at most one of them. A tree is nothing but the index of its root.
#[derive(Default)]
pub(super) struct Order {
    places: Vec<Place>,
    came: u64,
}

/// Rank in the heap: a fixed mix of the index (the finalizer of MurmurHash3).
#[inline]
fn rank(n: u32) -> u32 {
    let mut h = n;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

impl Order {
    /// Makes the place of `n`, in no tree.
    pub(super) fn make(&mut self, n: u32) {
        let empty = Place { key: (0, 0), value: 0, least: 0, left: NIL, right: NIL, up: OUT };
        if self.places.len() <= n as usize {
            self.places.resize(n as usize + 1, empty);
        }
        self.places[n as usize] = empty;
    }
    /// Takes all places out of their trees.
    pub(super) fn clear(&mut self) {
        self.places.iter_mut().for_each(|place| place.up = OUT);
    }
    #[inline]
    fn at(&self, n: u32) -> &Place {
        &self.places[n as usize]
    }
    #[inline]
    fn at_mut(&mut self, n: u32) -> &mut Place {
        &mut self.places[n as usize]
    }
    #[inline]
    fn least_of(&self, n: u32) -> u64 {
        if n == NIL { u64::MAX } else { self.at(n).least }
    }
    /// Reckons the least anew; whether it is another.
    #[inline]
    fn reckon(&mut self, n: u32) -> bool {
        let place = *self.at(n);
        let least = place.value.min(self.least_of(place.left)).min(self.least_of(place.right));
        std::mem::replace(&mut self.at_mut(n).least, least) != least
    }
    fn reckon_up(&mut self, mut n: u32) {
        while n != NIL && self.reckon(n) {
            n = self.at(n).up;
        }
    }

    /// Puts `n` into a tree, behind all of the same time.
    pub(super) fn insert(&mut self, root: &mut u32, n: u32, time: u64, value: u64) {
        self.came += 1;
        let key = (time, self.came);
        *self.at_mut(n) = Place { key, value, least: value, left: NIL, right: NIL, up: NIL };
        if *root == NIL {
            *root = n;
            return;
        }
        let mut above = *root;
        loop {
            let a = *self.at(above);
            let after = key > a.key;
            let below = if after { a.right } else { a.left };
            if below == NIL {
                let a = self.at_mut(above);
                *(if after { &mut a.right } else { &mut a.left }) = n;
                break;
            }
            above = below;
        }
        self.at_mut(n).up = above;
        self.reckon_up(above);
        while self.at(n).up != NIL && rank(self.at(n).up) < rank(n) {
            self.lift(root, n);
        }
    }
    /// Takes `n` out of its tree; nothing happens when it is in none.
    pub(super) fn remove(&mut self, root: &mut u32, n: u32) {
        if self.at(n).up == OUT {
            return;
        }
        let up = loop {
            let Place { left, right, up, .. } = *self.at(n);
            let child = match (left, right) {
                (NIL, only) | (only, NIL) => {
                    self.replace(root, up, n, only);
                    break up;
                }
                (l, r) if rank(l) > rank(r) => l,
                (_, r) => r,
            };
            self.lift(root, child);
        };
        self.at_mut(n).up = OUT;
        self.reckon_up(up);
    }
    /// Puts `new` where `old` was below `up`.
    #[inline]
    fn replace(&mut self, root: &mut u32, up: u32, old: u32, new: u32) {
        if up == NIL {
            *root = new;
        } else if self.at(up).left == old {
            self.at_mut(up).left = new;
        } else {
            self.at_mut(up).right = new;
        }
        if new != NIL {
            self.at_mut(new).up = up;
        }
    }
    /// Rotates `n` above its parent.
    fn lift(&mut self, root: &mut u32, n: u32) {
        let above = self.at(n).up;
        let top = self.at(above).up;
        let moved = if self.at(above).left == n {
            let moved = std::mem::replace(&mut self.at_mut(n).right, above);
            self.at_mut(above).left = moved;
            moved
        } else {
            let moved = std::mem::replace(&mut self.at_mut(n).left, above);
            self.at_mut(above).right = moved;
            moved
        };
        if moved != NIL {
            self.at_mut(moved).up = above;
        }
        self.replace(root, top, above, n);
        self.at_mut(above).up = n;
        self.reckon(above);
        self.reckon(n);
    }

    /// Changes the value of `n` where it stands.
    #[inline]
    pub(super) fn set_value(&mut self, n: u32, value: u64) {
        self.at_mut(n).value = value;
        if self.at(n).up != OUT {
            self.reckon_up(n);
        }
    }
    /// The time of the first.
    #[inline]
    pub(super) fn first_time(&self, root: u32) -> Option<u64> {
        let mut n = (root != NIL).then_some(root)?;
        while self.at(n).left != NIL {
            n = self.at(n).left;
        }
        Some(self.at(n).key.0)
    }
    /// The time of the last.
    #[inline]
    pub(super) fn last_time(&self, root: u32) -> Option<u64> {
        let mut n = (root != NIL).then_some(root)?;
        while self.at(n).right != NIL {
            n = self.at(n).right;
        }
        Some(self.at(n).key.0)
    }
    /// The least value in a tree.
    #[inline]
    pub(super) fn least(&self, root: u32) -> Option<u64> {
        (root != NIL).then(|| self.at(root).least)
    }
    /// The first whose value is at most `most`.
    pub(super) fn first_within(&self, root: u32, most: u64) -> Option<u32> {
        let mut n = root;
        while n != NIL && self.at(n).least <= most {
            let place = self.at(n);
            if place.left != NIL && self.at(place.left).least <= most {
                n = place.left;
            } else if place.value <= most {
                return Some(n);
            } else {
                n = place.right;
            }
        }
        None
    }
    /// The least value above `most`. All of the tree is looked at.
    pub(super) fn least_above(&self, root: u32, most: u64) -> Option<u64> {
        let mut best = None;
        let mut left = vec![root];
        while let Some(n) = left.pop().filter(|_| root != NIL) {
            let place = self.at(n);
            if place.value > most {
                best = Some(best.map_or(place.value, |b: u64| b.min(place.value)));
            }
            left.extend([place.left, place.right].into_iter().filter(|&n| n != NIL));
        }
        best
    }
    /// Of those up to a time the one with the least value, the first of several.
    pub(super) fn least_up_to(&self, root: u32, time: u64) -> Option<u32> {
        let mut best: Option<(u64, u32)> = None;
        let mut n = root;
        while n != NIL {
            let place = self.at(n);
            if place.key.0 > time {
                n = place.left;
                continue;
            }
            // All left of here came before it, and they come before what follows.
            let least = place.value.min(self.least_of(place.left));
            if best.is_none_or(|(value, _)| least < value) {
                best = Some((least, n));
            }
            n = place.right;
        }
        let (value, above) = best?;
        let mut n = self.at(above).left;
        if self.least_of(n) != value || n == NIL {
            return Some(above);
        }
        loop {
            let place = self.at(n);
            n = match place.left {
                left if left != NIL && self.at(left).least == value => left,
                _ if place.value == value => return Some(n),
                _ => place.right,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Rng;

    /// The same by walking along a list.
    #[test]
    fn it_finds_what_a_walk_would_find() {
        let mut rng = Rng::named(5, "order");
        let (mut order, mut root) = (Order::default(), NIL);
        let mut list: Vec<(u64, u64, u32)> = Vec::new();
        (0..40).for_each(|n| order.make(n));
        for step in 0..20_000 {
            let n = rng.next_u32() % 40;
            match list.iter().position(|&(_, _, m)| m == n) {
                Some(at) if step % 3 == 0 => {
                    let value = u64::from(rng.next_u32() % 9);
                    order.set_value(n, value);
                    list[at].1 = value;
                }
                Some(at) => {
                    order.remove(&mut root, n);
                    list.remove(at);
                }
                None => {
                    let (time, value) = (u64::from(rng.next_u32() % 12), u64::from(rng.next_u32() % 9));
                    order.insert(&mut root, n, time, value);
                    let at = list.partition_point(|&(t, ..)| t <= time);
                    list.insert(at, (time, value, n));
                }
            }
            let asked = u64::from(rng.next_u32() % 12);
            assert_eq!(order.first_time(root), list.first().map(|l| l.0));
            assert_eq!(order.last_time(root), list.last().map(|l| l.0));
            assert_eq!(order.least(root), list.iter().map(|l| l.1).min());
            assert_eq!(order.first_within(root, asked), list.iter().find(|l| l.1 <= asked).map(|l| l.2));
            let due = list.iter().filter(|l| l.0 <= asked);
            assert_eq!(order.least_up_to(root, asked), due.min_by_key(|l| l.1).map(|l| l.2));
        }
    }
}
