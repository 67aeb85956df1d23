//! Classes in the order of their ids: the trees htb calls rows and feeds.
//!
//! Follows: linux v6.12 net/sched/sch_htb.c `htb_add_to_id_tree`, `htb_safe_rb_erase`, `htb_next_rb_node`,
//! `htb_id_find_next_upper`.
//! Differs: a treap over indices in place of the kernel's red-black tree over pointers. Ids are unique within a
//! qdisc, so that the order of the nodes is the same whatever the shape of the tree.
//!
//! Every class owns eight nodes, one a priority; node `class * 8 + prio` is in at most one tree at a time. A tree is
//! nothing but the index of its root. A node's rank in the heap is a fixed mix of its id, so that the shape depends
//! on the members alone.

/// No node, no class.
pub(super) const NIL: u32 = u32::MAX;
/// A node that is in no tree (`RB_EMPTY_NODE`).
const OUT: u32 = u32::MAX - 1;

#[derive(Clone, Copy)]
struct Node {
    id: u32,
    left: u32,
    right: u32,
    up: u32,
}

/// The nodes of all rows and feeds of one htb.
#[derive(Default)]
pub(super) struct Nodes(Vec<Node>);

/// Where `class` stands in a tree of priority `prio`.
#[inline]
pub(super) fn node(class: u32, prio: usize) -> u32 {
    class * 8 + prio as u32
}
/// The class of a node.
#[inline]
pub(super) fn class_of(node: u32) -> u32 {
    node / 8
}

/// Rank in the heap: a bijection of the id, so that no two are equal (the finalizer of MurmurHash3).
#[inline]
fn rank(id: u32) -> u32 {
    let mut h = id;
    h = (h ^ (h >> 16)).wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

impl Nodes {
    /// Makes the eight nodes of `class`, outside every tree.
    pub(super) fn init(&mut self, class: u32, id: u32) {
        let empty = Node { id, left: NIL, right: NIL, up: OUT };
        let from = node(class, 0) as usize;
        if self.0.len() < from + 8 {
            self.0.resize(from + 8, empty);
        }
        self.0[from..from + 8].fill(empty);
    }

    #[inline]
    fn at(&self, n: u32) -> &Node {
        &self.0[n as usize]
    }
    #[inline]
    fn at_mut(&mut self, n: u32) -> &mut Node {
        &mut self.0[n as usize]
    }

    /// Puts `n` into the tree.
    pub(super) fn insert(&mut self, root: &mut u32, n: u32) {
        let id = self.at(n).id;
        *self.at_mut(n) = Node { id, left: NIL, right: NIL, up: NIL };
        if *root == NIL {
            *root = n;
            return;
        }
        let mut above = *root;
        loop {
            let a = *self.at(above);
            let below = if id > a.id { a.right } else { a.left };
            if below == NIL {
                let a = self.at_mut(above);
                if id > a.id {
                    a.right = n
                } else {
                    a.left = n
                }
                break;
            }
            above = below;
        }
        self.at_mut(n).up = above;
        while self.at(n).up != NIL && rank(self.at(self.at(n).up).id) < rank(id) {
            self.lift(root, n);
        }
    }

    /// Takes `n` out of the tree; nothing happens when it is in none.
    pub(super) fn remove(&mut self, root: &mut u32, n: u32) {
        if self.at(n).up == OUT {
            return;
        }
        loop {
            let Node { left, right, up, .. } = *self.at(n);
            let child = match (left, right) {
                (NIL, only) | (only, NIL) => {
                    self.replace(root, up, n, only);
                    break;
                }
                (l, r) if rank(self.at(l).id) > rank(self.at(r).id) => l,
                (_, r) => r,
            };
            self.lift(root, child);
        }
        let n = self.at_mut(n);
        (n.left, n.right, n.up) = (NIL, NIL, OUT);
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
        if self.at(above).left == n {
            let moved = self.at(n).right;
            self.at_mut(above).left = moved;
            if moved != NIL {
                self.at_mut(moved).up = above;
            }
            self.at_mut(n).right = above;
        } else {
            let moved = self.at(n).left;
            self.at_mut(above).right = moved;
            if moved != NIL {
                self.at_mut(moved).up = above;
            }
            self.at_mut(n).left = above;
        }
        self.replace(root, top, above, n);
        self.at_mut(above).up = n;
    }

    /// The node with the least id.
    #[inline]
    pub(super) fn first(&self, root: u32) -> u32 {
        let mut n = root;
        if n != NIL {
            while self.at(n).left != NIL {
                n = self.at(n).left;
            }
        }
        n
    }

    /// The node after `n` (`rb_next`); [`NIL`] past the last, or when `n` is in no tree.
    #[inline]
    pub(super) fn next(&self, n: u32) -> u32 {
        let mut at = *self.at(n);
        if at.up == OUT {
            return NIL;
        }
        if at.right != NIL {
            return self.first(at.right);
        }
        let mut below = n;
        while at.up != NIL {
            let up = at.up;
            at = *self.at(up);
            if at.left == below {
                return up;
            }
            below = up;
        }
        NIL
    }

    /// The first node whose id is at least `id`.
    pub(super) fn at_or_after(&self, root: u32, id: u32) -> u32 {
        let (mut n, mut found) = (root, NIL);
        while n != NIL {
            let at = self.at(n);
            if id > at.id {
                n = at.right;
            } else {
                found = n;
                if id == at.id {
                    break;
                }
                n = at.left;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        /// Whatever goes in and out, the nodes stand in the order of their ids.
        #[test]
        fn is_an_ordered_set(ops in proptest::collection::vec((0u32..40, any::<bool>(), 0u32..0x400), 1..300)) {
            let mut nodes = Nodes::default();
            let id = |class: u32| 0x1_0000 | (class * 7919 % 0x3ff);
            for class in 0..40 {
                nodes.init(class, id(class));
            }
            let (mut root, mut model) = (NIL, BTreeMap::new());
            for (class, add, probe) in ops {
                let n = node(class, 3);
                if add && !model.contains_key(&id(class)) {
                    nodes.insert(&mut root, n);
                    model.insert(id(class), n);
                } else {
                    nodes.remove(&mut root, n);
                    model.remove(&id(class));
                }
                let mut seen = Vec::new();
                let mut at = nodes.first(root);
                while at != NIL {
                    seen.push(at);
                    at = nodes.next(at);
                }
                prop_assert_eq!(seen, model.values().copied().collect::<Vec<_>>());
                let after = model.range(0x1_0000 | probe..).next().map_or(NIL, |(_, &n)| n);
                prop_assert_eq!(nodes.at_or_after(root, 0x1_0000 | probe), after);
            }
        }
    }
}
