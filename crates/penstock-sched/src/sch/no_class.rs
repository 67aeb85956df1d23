//! The class side of kinds whose classes are their flows: nobody makes them, puts a qdisc into them, or finds them by
//! id, but filters choose among them.
//!
//! Follows: linux v6.12 `net/sched/sch_fq_codel.c` `fq_codel_class_ops`; the same in `sch_cake.c`, `sch_skbprio.c`.

use crate::cls::{BlockId, Filters};
use crate::qdisc::Classful;
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Options, Stats, Time};

/// Classes that cannot be touched.
pub struct NoClass {
    kind: &'static str,
    handle: Handle,
    filters: Option<Filters>,
    /// How many are always shown.
    shown: u16,
}

impl NoClass {
    /// Flows that filters may choose among; they are shown while they hold packets.
    pub fn with_filters(kind: &'static str, handle: Handle) -> NoClass {
        NoClass { kind, handle, filters: Some(Filters::new(handle)), shown: 0 }
    }
    /// Classes 1 to `shown`, without filters.
    pub fn shown(kind: &'static str, handle: Handle, shown: u16) -> NoClass {
        NoClass { kind, handle, filters: None, shown }
    }
}

impl Classful for NoClass {
    fn find(&self, _: Handle) -> bool {
        false
    }
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        for minor in 1..=self.shown {
            visit(ClassDump {
                kind: self.kind,
                classid: Handle::new(self.handle.major(), minor),
                parent: self.handle,
                leaf: None,
                options: Options::new(),
                counters: Counters::Queue,
                stats: Stats::default(),
                xstats: None,
            });
        }
    }
    fn filters(&self) -> Option<&Filters> {
        self.filters.as_ref()
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        self.filters.as_mut()
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        (classid == Handle::UNSPEC && self.filters.is_some()).then_some(Filters::ROOT)
    }
}
