//! What of a tree can be set up and shown, but does not do to packets what the kernel does.

use super::Tree;
use crate::cls::{self, Filters};
use crate::node::Node;
use crate::{act, sch};
use std::collections::BTreeSet;

/// A kind that is not simulated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Unsimulated {
    /// `qdisc`, `filter` or `action`.
    pub object: &'static str,
    /// Its kind, with what of it where the kind itself is simulated.
    pub kind: &'static str,
}

impl Tree {
    /// The kinds of qdiscs, filters and actions of this device that are not simulated, each once, in order of their names.
    pub fn unsimulated(&self) -> BTreeSet<Unsimulated> {
        let mut found = BTreeSet::new();
        self.below(&self.root, &mut found);
        if let Some(ingress) = self.ingress() {
            self.below(ingress, &mut found);
        }
        found
    }

    fn below(&self, node: &Node, found: &mut BTreeSet<Unsimulated>) {
        let kind = node.kind();
        if sch::find(kind, self.device.kernel).is_some_and(|spec| !spec.simulated) {
            found.insert(Unsimulated { object: "qdisc", kind });
        }
        if let Some(kind) = node.qdisc().unsimulated() {
            found.insert(Unsimulated { object: "qdisc", kind });
        }
        let Some(classes) = node.classes() else { return };
        if let Some(filters) = classes.filters() {
            self.of_filters(filters, found);
        }
        classes.children(&mut |_, child| self.below(child, found));
    }

    fn of_filters(&self, filters: &Filters, found: &mut BTreeSet<Unsimulated>) {
        filters.kinds(&mut |kind, exact, exts| {
            if !exact || cls::find(kind, self.device.kernel).is_some_and(|spec| !spec.simulated) {
                found.insert(Unsimulated { object: "filter", kind });
            }
            for kind in exts.into_iter().flat_map(cls::Exts::kinds) {
                if act::find(kind, self.device.kernel).is_some_and(|spec| !spec.simulated) {
                    found.insert(Unsimulated { object: "action", kind });
                }
            }
        });
    }
}
