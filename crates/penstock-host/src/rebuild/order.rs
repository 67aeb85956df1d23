//! The order in which things that stand on one another are made.

use penstock_model::Handle;
use penstock_model::rtnetlink::ClassDump;
use std::collections::BTreeMap;

/// Classes, each behind its parent; else the last that was shown first: of those in one bucket of their table the youngest is shown first.
pub fn parents_first<'a>(classes: &[&'a ClassDump]) -> Vec<&'a ClassDump> {
    let parents: BTreeMap<Handle, Handle> = classes.iter().map(|c| (c.classid, c.parent)).collect();
    let depth = |class: &&'a ClassDump| {
        let (mut depth, mut at) = (0, class.parent);
        while let Some(&parent) = parents.get(&at) {
            depth += 1;
            at = parent;
            if depth > parents.len() {
                break;
            }
        }
        depth
    };
    let mut all: Vec<&ClassDump> = classes.iter().rev().copied().collect();
    all.sort_by_cached_key(depth);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Options;
    use penstock_model::rtnetlink::{Counters, Stats};

    #[test]
    fn a_parent_stands_before_its_children() {
        let class = |id: u32, parent: u32| ClassDump {
            kind: "htb",
            classid: Handle(0x1_0000 | id),
            parent: if parent == 0 { Handle::ROOT } else { Handle(0x1_0000 | parent) },
            leaf: None,
            options: Options::new(),
            counters: Counters::All,
            stats: Stats::default(),
            xstats: None,
        };
        let (a, b, c) = (class(3, 2), class(2, 1), class(1, 0));
        let ids: Vec<u16> = parents_first(&[&a, &b, &c]).iter().map(|c| c.classid.minor()).collect();
        assert_eq!(ids, [1, 2, 3]);
    }
}
