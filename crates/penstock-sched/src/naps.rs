//! Classes whose qdisc has set its watchdog, until that strikes: in the kernel a timer each, which the qdisc above them knows nothing of.
//!
//! The first of them is found at once, however many there are.

use crate::node::Node;
use crate::wait::{Places, Wait};
use penstock_model::Time;

/// When the watchdogs of a qdisc may go off with another timer, and when one goes off by itself ([`crate::Qdisc::timers`]): the
/// earliest of each.
pub(crate) type Alarm = (Time, Time);

/// What the qdisc in a class has set.
pub(crate) fn alarm(leaf: &Node) -> Option<Alarm> {
    let hard = leaf.next_wakeup()?;
    Some((leaf.first_soft().unwrap_or(hard), hard))
}

/// The classes.
#[derive(Default)]
pub(crate) struct Naps {
    /// By the moment a watchdog goes off by itself.
    hard: Wait,
    hards: Places,
    /// By the moment from which it may go off with another.
    soft: Wait,
    softs: Places,
    /// Those whose moment has come, while it is asked what they have set now.
    due: Vec<u32>,
}

impl Naps {
    /// The qdisc in `class` has set its watchdog, or set it anew.
    pub(crate) fn set(&mut self, class: u32, (soft, hard): Alarm) {
        self.hard.put(&mut self.hards, class, hard.as_ns());
        self.soft.put(&mut self.softs, class, soft.as_ns());
    }
    /// It has none any more.
    pub(crate) fn remove(&mut self, class: u32) {
        self.hard.remove(&mut self.hards, class);
        self.soft.remove(&mut self.softs, class);
    }
    /// Nobody has any.
    pub(crate) fn clear(&mut self) {
        self.hard.clear(&mut self.hards);
        self.soft.clear(&mut self.softs);
    }
    /// Whether the qdisc in `class` has set one.
    #[inline]
    pub(crate) fn has(&self, class: u32) -> bool {
        self.hards.holds(class)
    }
    /// When the first goes off by itself.
    #[inline]
    pub(crate) fn first(&self) -> Option<Time> {
        self.hard.first().map(|(at, _)| Time::from_ns(at))
    }
    /// From when on the first may go off with another.
    pub(crate) fn first_soft(&self) -> Option<Time> {
        self.soft.first().map(|(at, _)| Time::from_ns(at))
    }
    /// The classes, in no order that means anything.
    pub(crate) fn classes(&self) -> impl Iterator<Item = u32> + '_ {
        self.hard.classes()
    }
    /// Those that may go off at `now`: `struck` lets them, and says what the qdisc has set then.
    pub(crate) fn expire(&mut self, now: Time, mut struck: impl FnMut(u32) -> Option<Alarm>) {
        let mut due = std::mem::take(&mut self.due);
        while let Some((at, class)) = self.soft.first()
            && at <= now.as_ns()
        {
            self.remove(class);
            due.push(class);
        }
        for class in due.drain(..) {
            if let Some(alarm) = struck(class) {
                self.set(class, alarm);
            }
        }
        self.due = due;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_first_is_known(ops in proptest::collection::vec((0u32..20, 0i64..50, 0i64..5, 0u32..4), 1..200)) {
            let (mut naps, mut model) = (Naps::default(), BTreeMap::new());
            let ns = Time::from_ns;
            for (class, at, slack, what) in ops {
                match what {
                    0 => {
                        naps.remove(class);
                        model.remove(&class);
                    }
                    1 => {
                        let mut struck = Vec::new();
                        // Those of even numbers are set anew.
                        let again = |c: u32| c.is_multiple_of(2).then_some((ns(at + 7), ns(at + 7)));
                        naps.expire(ns(at), |c| {
                            struck.push(c);
                            again(c)
                        });
                        let due: Vec<u32> = model.iter().filter(|(_, a): &(_, &Alarm)| a.0 <= ns(at)).map(|(c, _)| *c).collect();
                        struck.sort_unstable();
                        prop_assert_eq!(&struck, &due);
                        for class in due {
                            match again(class) {
                                Some(alarm) => model.insert(class, alarm),
                                None => model.remove(&class),
                            };
                        }
                    }
                    _ => {
                        naps.set(class, (ns(at), ns(at + slack)));
                        model.insert(class, (ns(at), ns(at + slack)));
                    }
                }
                prop_assert_eq!(naps.first(), model.values().map(|a| a.1).min());
                prop_assert_eq!(naps.first_soft(), model.values().map(|a| a.0).min());
                prop_assert_eq!(naps.has(class), model.contains_key(&class));
                let mut classes: Vec<u32> = naps.classes().collect();
                classes.sort_unstable();
                prop_assert_eq!(classes, model.keys().copied().collect::<Vec<_>>());
            }
        }
    }
}
