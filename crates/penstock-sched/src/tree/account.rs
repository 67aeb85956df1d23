//! Whether every packet that was given to a device's qdiscs is accounted for.

use super::Tree;
use crate::node::Node;
use crate::traits::Holds;
use penstock_model::{Handle, Kernel};
use penstock_packet::Skb;

/// A qdisc whose packets do not add up: a fault of ours.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Miscount {
    /// Its kind.
    pub kind: &'static str,
    /// Its handle; [`Handle::UNSPEC`] for one that the kernel made by itself.
    pub handle: Handle,
    /// [`Handle::ROOT`] or the class it is in.
    pub parent: Handle,
    /// What was given to it, without what it gave on and what it or one below dropped.
    pub left: i64,
    /// Packets that lie in it and below it.
    pub held: u64,
    /// What it says is queued.
    pub qlen: u32,
}

impl std::fmt::Display for Miscount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (kind, handle, parent, left, held) = (self.kind, self.handle, self.parent, self.left, self.held);
        write!(
            f,
            "qdisc {kind} {handle} in {parent}: of the packets given to it {left} were neither given on nor dropped, but \
             {held} are held (its qlen is {})",
            self.qlen
        )
    }
}

impl Tree {
    /// Shows every packet that lies in the qdiscs.
    pub fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        packets(&self.root, see);
    }
    /// The qdiscs whose packets do not add up: given to it = given on + dropped + held, and what it says is queued is what
    /// lies there. There is none but by a fault of ours.
    pub fn miscounts(&self) -> Vec<Miscount> {
        let mut found = Vec::new();
        check(&self.root, &mut found);
        found
    }
    /// The classes that do not show the sum of what they and those below them have sent, or not the drops of their own queue, and the
    /// qdiscs with classes that do not show the drops of all below, a sentence each; see [`crate::charge`]. There is none but by a
    /// fault of ours.
    pub fn class_miscounts(&self) -> Vec<String> {
        let mut found = Vec::new();
        classes(&self.root, self.device.kernel, &mut found);
        found
    }
}

fn classes(node: &Node, kernel: Kernel, found: &mut Vec<String>) {
    let Some(own) = node.classes() else { return };
    let (kind, handle) = (node.kind(), node.handle);
    let said = crate::charge::miscounts(&own.charged());
    found.extend(said.into_iter().map(|s| format!("{kind} {s}")));
    if let Some((shown, sum)) = own.overlimits().filter(|(shown, sum)| shown != sum) {
        found.push(format!("qdisc {kind} {handle}: shows {shown} overlimits, but its classes had {sum}"));
    }
    let (shown, lost) = (node.stats().drops, node.door.drops(kernel));
    // mq and its like show the sum of the qdiscs that stand in them now. What a queue of its own loses by a `change` of its limits is told to
    // those above alone.
    let passes_on =
        crate::sch::traits(kind).queue == Holds::Classes && !own.queue_root() && own.counts_refusals();
    if passes_on && !node.over_choke && shown != lost as u32 {
        found.push(format!(
            "qdisc {kind} {handle}: shows {shown} drops, but {lost} were lost in it and below"
        ));
    }
    own.children(&mut |_, child| classes(child, kernel, found));
}

fn packets(node: &Node, see: &mut dyn FnMut(&Skb)) {
    node.qdisc().packets(see);
    if let Some(classes) = node.classes() {
        classes.children(&mut |_, child| packets(child, see));
    }
}

/// How many packets lie in a qdisc and below, and whether all of these say so themselves.
fn check(node: &Node, found: &mut Vec<Miscount>) -> (u64, bool) {
    let mut held = 0;
    node.qdisc().packets(&mut |_| held += 1);
    // choke loses count where the places of dropped packets let its ring's end run into its begin, as in the kernel.
    let mut counts = node.kind() != "choke" && !node.lost_late;
    if let Some(classes) = node.classes() {
        classes.children(&mut |_, child| {
            let below = check(child, found);
            held += below.0;
            counts &= below.1;
        });
    }
    if node.door.holds() != held || counts && u64::from(node.qlen()) != held {
        found.push(Miscount {
            kind: node.kind(),
            handle: node.handle,
            parent: node.parent,
            left: node.door.holds() as i64,
            held,
            qlen: node.qlen(),
        });
    }
    // Nor do those above one that drops in a change and does not tell.
    counts &= node.qdisc().tells_of_change();
    (held, counts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet, qdisc};
    use penstock_model::Options;

    #[test]
    fn a_qdisc_that_loses_count_is_named() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V6_12));
        let mut prio = qdisc("add root handle 1: prio");
        prio.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![1u8; 16]));
        tree.qdisc(&prio, &mut bench.cx(0)).unwrap();
        tree.qdisc(&qdisc("add parent 1:2 handle 12: pfifo limit 2"), &mut bench.cx(0)).unwrap();
        for seq in 0..5 {
            tree.enqueue(packet(seq, 100), &mut bench.cx(0));
        }
        assert!(tree.dequeue(&mut bench.cx(0)).is_some());
        assert_eq!((bench.drops.len(), tree.miscounts()), (3, vec![]));
        // What takes its place empties it: those above lose count of nothing.
        tree.qdisc(&qdisc("replace parent 1:2 handle 13: pfifo limit 2"), &mut bench.cx(0)).unwrap();
        assert_eq!((bench.drops.len(), tree.miscounts()), (4, vec![]));
        tree.root.door.given += 1;
        let said: Vec<String> = tree.miscounts().iter().map(Miscount::to_string).collect();
        let words = "qdisc prio 1: in root: of the packets given to it 1 were neither given on nor dropped, but 0 are held \
                     (its qlen is 0)";
        assert_eq!(said, [words]);
    }
}
