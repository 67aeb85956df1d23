//! What has come out of order, kept as Linux keeps it: in a red-black tree, whose shape can be seen.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_data_queue_ofo` (the search), lib/rbtree.c (where a node stands).
//! Differs: none known.
//!
//! The search for a segment's place tries to append it to each buffer on its way down, not only to the one right before its place. So which
//! buffers lie on the way decides whether a duplicate is dropped and reported, or appended to a buffer that ends where it begins
//! and held twice.

use super::window::HEAD_MEM;
use super::{HEAD_ROOM, Held, Receiver};
use crate::mib::Rx;

/// No node.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    held: Held,
    /// Left and right.
    child: [u32; 2],
    parent: u32,
    red: bool,
}

/// The buffers out of order, by their first byte.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct OooQueue {
    root: u32,
    last: u32,
    nodes: Vec<Node>,
    free: Vec<u32>,
}

/// How far a search has come: the node whose child is looked at next, and on which side that is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    parent: u32,
    side: usize,
}

impl Default for OooQueue {
    fn default() -> Self {
        OooQueue { nodes: Vec::new(), free: Vec::new(), root: NONE, last: NONE }
    }
}

impl OooQueue {
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.root == NONE
    }
    pub fn clear(&mut self) {
        *self = OooQueue::default();
    }
    /// The first buffer.
    pub fn first(&self) -> Option<u32> {
        (self.root != NONE).then(|| self.outermost(self.root, 0))
    }
    /// The last buffer.
    pub fn last(&self) -> Option<u32> {
        (self.last != NONE).then_some(self.last)
    }
    pub fn at(&self, id: u32) -> Held {
        self.nodes[id as usize].held
    }
    pub fn at_mut(&mut self, id: u32) -> &mut Held {
        &mut self.nodes[id as usize].held
    }
    /// The buffer behind this one.
    pub fn next(&self, id: u32) -> Option<u32> {
        self.neighbour(id, 1)
    }

    // ---- Search ----

    /// Where a search begins.
    pub fn top(&self) -> Place {
        Place { parent: NONE, side: 0 }
    }
    /// Right behind all.
    pub fn behind_last(&self) -> Place {
        Place { parent: self.last, side: 1 }
    }
    /// Goes on with the search for the place of what begins at `start`: answers the next buffer on the way that does not begin behind it.
    pub fn step(&self, place: &mut Place, start: u64) -> Option<u32> {
        loop {
            let id = match place.parent {
                NONE => self.root,
                parent => self.nodes[parent as usize].child[place.side],
            };
            if id == NONE {
                return None;
            }
            let right = self.at(id).start <= start;
            *place = Place { parent: id, side: usize::from(right) };
            if right {
                return Some(id);
            }
        }
    }

    // ---- Changes ----

    /// Puts a buffer where a search has ended.
    pub fn insert(&mut self, place: Place, held: Held) -> u32 {
        let node = Node { held, child: [NONE; 2], parent: place.parent, red: true };
        let id = match self.free.pop() {
            Some(id) => {
                self.nodes[id as usize] = node;
                id
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() as u32 - 1
            }
        };
        if place.parent == NONE {
            (self.root, self.last) = (id, id);
        } else {
            self.nodes[place.parent as usize].child[place.side] = id;
            if place.parent == self.last && place.side == 1 {
                self.last = id;
            }
        }
        self.balance_inserted(id);
        id
    }

    /// Takes a buffer out.
    pub fn remove(&mut self, id: u32) -> Held {
        if id == self.last {
            self.last = self.neighbour(id, 0).unwrap_or(NONE);
        }
        let Node { held, child: [left, right], parent, mut red } = self.nodes[id as usize];
        // What has lost a black node above it: `child`, below `above`.
        let (child, above);
        if left == NONE || right == NONE {
            child = if left == NONE { right } else { left };
            above = parent;
            self.replace(id, child);
        } else {
            let heir = self.outermost(right, 0);
            child = self.nodes[heir as usize].child[1];
            if heir == right {
                above = heir;
            } else {
                above = self.nodes[heir as usize].parent;
                self.replace(heir, child);
                self.adopt(heir, 1, right);
            }
            self.replace(id, heir);
            self.adopt(heir, 0, left);
            red = std::mem::replace(&mut self.nodes[heir as usize].red, red);
        }
        if !red {
            self.balance_removed(child, above);
        }
        self.free.push(id);
        held
    }

    // ---- The tree ----

    fn is_red(&self, id: u32) -> bool {
        id != NONE && self.nodes[id as usize].red
    }
    fn paint(&mut self, id: u32, red: bool) {
        self.nodes[id as usize].red = red;
    }
    fn parent(&self, id: u32) -> u32 {
        self.nodes[id as usize].parent
    }
    fn child(&self, id: u32, side: usize) -> u32 {
        self.nodes[id as usize].child[side]
    }
    /// On which side of its parent a node hangs.
    fn side(&self, id: u32, parent: u32) -> usize {
        usize::from(self.child(parent, 1) == id)
    }
    fn outermost(&self, mut id: u32, side: usize) -> u32 {
        while self.child(id, side) != NONE {
            id = self.child(id, side);
        }
        id
    }
    /// The node next in order on that side.
    fn neighbour(&self, mut id: u32, side: usize) -> Option<u32> {
        let below = self.child(id, side);
        if below != NONE {
            return Some(self.outermost(below, 1 - side));
        }
        loop {
            let parent = self.parent(id);
            if parent == NONE {
                return None;
            }
            if self.child(parent, side) != id {
                return Some(parent);
            }
            id = parent;
        }
    }
    fn adopt(&mut self, id: u32, side: usize, child: u32) {
        self.nodes[id as usize].child[side] = child;
        if child != NONE {
            self.nodes[child as usize].parent = id;
        }
    }
    /// Hangs `new` where `old` hangs.
    fn replace(&mut self, old: u32, new: u32) {
        let parent = self.parent(old);
        if parent == NONE {
            self.root = new;
            if new != NONE {
                self.nodes[new as usize].parent = NONE;
            }
        } else {
            self.adopt(parent, self.side(old, parent), new);
        }
    }
    /// Turns the node down to that side; its other child takes its place.
    fn rotate(&mut self, id: u32, side: usize) {
        let up = self.child(id, 1 - side);
        self.replace(id, up);
        self.adopt(id, 1 - side, self.child(up, side));
        self.adopt(up, side, id);
    }

    //= linux v6.12 lib/rbtree.c __rb_insert
    fn balance_inserted(&mut self, mut id: u32) {
        loop {
            let parent = self.parent(id);
            if !self.is_red(parent) {
                break;
            }
            let above = self.parent(parent);
            let side = self.side(parent, above);
            let uncle = self.child(above, 1 - side);
            if self.is_red(uncle) {
                self.paint(parent, false);
                self.paint(uncle, false);
                self.paint(above, true);
                id = above;
                continue;
            }
            let mut top = parent;
            if self.child(parent, 1 - side) == id {
                self.rotate(parent, side);
                top = id;
            }
            self.paint(top, false);
            self.paint(above, true);
            self.rotate(above, 1 - side);
            break;
        }
        self.paint(self.root, false);
    }

    //= linux v6.12 lib/rbtree.c ____rb_erase_color
    fn balance_removed(&mut self, mut id: u32, mut parent: u32) {
        while parent != NONE && !self.is_red(id) {
            let side = self.side_of(id, parent);
            let mut sibling = self.child(parent, 1 - side);
            if self.is_red(sibling) {
                self.paint(sibling, false);
                self.paint(parent, true);
                self.rotate(parent, side);
                sibling = self.child(parent, 1 - side);
            }
            let (near, far) = (self.child(sibling, side), self.child(sibling, 1 - side));
            if !self.is_red(near) && !self.is_red(far) {
                self.paint(sibling, true);
                id = parent;
                parent = self.parent(id);
                continue;
            }
            if !self.is_red(far) {
                self.paint(near, false);
                self.paint(sibling, true);
                self.rotate(sibling, 1 - side);
                sibling = near;
            }
            let red = self.is_red(parent);
            self.paint(sibling, red);
            self.paint(parent, false);
            self.paint(self.child(sibling, 1 - side), false);
            self.rotate(parent, side);
            return;
        }
        if id != NONE {
            self.paint(id, false);
        }
    }
    /// The side of what may be no node: the one whose subtree is a black node short.
    fn side_of(&self, id: u32, parent: u32) -> usize {
        // Where both are missing nothing is short: the other side has a black node at least.
        usize::from(self.child(parent, 0) != id)
    }
}

impl Receiver {
    /// Puts bytes among those out of order; what is reported ends at `sack_end`, behind a FIN.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_data_queue_ofo
    pub(crate) fn store(&mut self, held: Held, len: u32, sack_end: u64) {
        let Held { start, end, .. } = held;
        let grows = self.sack && self.today();
        let mut held = held;
        let mut place = self.ooo.behind_last();
        let mut covered = None;
        if let Some(last) = self.ooo.last() {
            if self.append_ooo(last, &held) {
                return self.appended_ooo(len, start, sack_end);
            }
            if start < self.ooo.at(last).end {
                place = self.ooo.top();
                while let Some(id) = self.ooo.step(&mut place, start) {
                    let before = self.ooo.at(id);
                    if !self.today() && self.ooo.next(id).is_some_and(|next| self.ooo.at(next).start <= start)
                    {
                        // There only the last that does not begin behind it is looked at.
                        continue;
                    }
                    if end <= before.end {
                        self.mib.one(Rx::OfoMerge);
                        self.drops = self.drops.saturating_add(1);
                        self.dsack_set(start, end);
                        return self.sack_new(start, sack_end);
                    }
                    if before.start == start {
                        self.dsack_extend(before.start, before.end);
                        covered = Some(id);
                        break;
                    }
                    if start < before.end {
                        self.dsack_set(start, before.end);
                    } else if self.append_ooo(id, &held) {
                        return self.appended_ooo(len, start, sack_end);
                    }
                }
            }
        }
        let own = match covered {
            Some(id) => {
                self.mib.one(Rx::OfoMerge);
                self.drops = self.drops.saturating_add(1);
                self.rmem -= self.ooo.at(id).mem;
                *self.ooo.at_mut(id) = held;
                id
            }
            None => self.ooo.insert(place, held),
        };
        while let Some(next) = self.ooo.next(own).filter(|&n| self.ooo.at(n).start < end) {
            let after = self.ooo.at(next);
            self.dsack_extend(after.start, after.end.min(end));
            if end < after.end {
                break;
            }
            self.mib.one(Rx::OfoMerge);
            self.drops = self.drops.saturating_add(1);
            self.rmem -= self.ooo.remove(next).mem;
        }
        self.sack_new(start, sack_end);
        if grows {
            self.grow_window(len, false);
        }
        if self.today() && len <= HEAD_ROOM {
            (held.mem, held.frags, held.linear) = (HEAD_MEM, 0, true);
            *self.ooo.at_mut(own) = held;
        }
        self.rmem += held.mem;
    }
    /// Appends bytes to a buffer out of order that ends where they begin, if it can take them; 2.6.35 never does.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ooo_try_coalesce
    fn append_ooo(&mut self, to: u32, held: &Held) -> bool {
        let done = self.today() && self.ooo.at_mut(to).coalesce(held);
        if done {
            self.mib.one(Rx::RcvCoalesce);
            self.rmem += held.mem - HEAD_MEM;
        }
        done
    }
    /// Bytes out of order were appended.
    fn appended_ooo(&mut self, len: u32, start: u64, sack_end: u64) {
        if self.sack {
            self.grow_window(len, true);
        }
        self.sack_new(start, sack_end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(q: &mut OooQueue, start: u64) -> u32 {
        let mut place = q.top();
        while q.step(&mut place, start).is_some() {}
        q.insert(place, Held::of(start, start + 1))
    }
    /// The tree in brackets, black nodes with a point.
    fn shape(q: &OooQueue, id: u32) -> String {
        if id == NONE {
            return String::new();
        }
        let node = &q.nodes[id as usize];
        let [l, r] = node.child.map(|c| shape(q, c));
        format!("({l}{}{}{r})", node.held.start, if node.red { "" } else { "." })
    }
    /// Order, links and colours; answers how many black nodes a way down has.
    fn check(q: &OooQueue, id: u32, low: u64, high: u64) -> u32 {
        if id == NONE {
            return 1;
        }
        let node = &q.nodes[id as usize];
        assert!(low <= node.held.start && node.held.start <= high);
        for child in node.child.into_iter().filter(|&c| c != NONE) {
            assert_eq!(q.parent(child), id);
            assert!(!(node.red && q.is_red(child)), "two red ones");
        }
        let left = check(q, node.child[0], low, node.held.start);
        assert_eq!(
            left,
            check(q, node.child[1], node.held.start, high),
            "black nodes below {}",
            node.held.start
        );
        left + u32::from(!node.red)
    }

    #[test]
    fn shapes_are_those_of_the_algorithm() {
        let mut q = OooQueue::default();
        for start in [13, 8, 11] {
            put(&mut q, start);
        }
        assert_eq!(shape(&q, q.root), "((8)11.(13))");
        let mut q = OooQueue::default();
        let ids: Vec<u32> = (1..=8).map(|n| put(&mut q, n)).collect();
        assert_eq!(shape(&q, q.root), "(((1.)2(3.))4.((5.)6(7.(8))))");
        // The root goes, which has two children: the next in order takes its place.
        q.remove(ids[3]);
        assert_eq!(shape(&q, q.root), "(((1.)2(3.))5.((6.)7(8.)))");
        // A leaf goes, whose sibling is black and without children.
        q.remove(ids[0]);
        assert_eq!(shape(&q, q.root), "((2.(3))5.((6.)7(8.)))");
    }

    #[test]
    fn order_and_colours_hold() {
        let mut q = OooQueue::default();
        let mut all: Vec<(u64, u32)> = Vec::new();
        let mut x = 1u64;
        for _ in 0..20_000 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let dice = x >> 33;
            if all.is_empty() || dice % 9 < 5 && all.len() < 200 {
                let start = dice / 9 % 1_000;
                if all.iter().any(|a| a.0 == start) {
                    continue;
                }
                all.push((start, put(&mut q, start)));
                all.sort_unstable();
            } else {
                let (start, id) = all.remove((dice / 9) as usize % all.len());
                assert_eq!(q.remove(id).start, start);
            }
            check(&q, q.root, 0, u64::MAX);
            assert!(!q.is_red(q.root));
            let mut seen = Vec::new();
            let mut at = q.first();
            while let Some(id) = at {
                seen.push((q.at(id).start, id));
                at = q.next(id);
            }
            assert_eq!(seen, all);
            assert_eq!(q.last(), all.last().map(|a| a.1));
        }
        assert!(q.nodes.len() <= 200, "places are used again");
    }
}
