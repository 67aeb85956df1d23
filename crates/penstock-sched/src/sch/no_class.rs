//! The class side of kinds whose classes are their flows: nobody makes them, puts a qdisc into them, or finds them by
//! id, but filters choose among them.
//!
//! Follows: linux v6.12 `net/sched/sch_fq_codel.c` `fq_codel_class_ops`; the same in `sch_cake.c`.

use crate::cls::{BlockId, Filters};
use crate::qdisc::Classful;
use penstock_model::Handle;

/// Classes that cannot be touched.
pub struct NoClass {
    filters: Filters,
}

impl NoClass {
    /// Flows that filters may choose among; they are shown while they hold packets.
    pub fn new(handle: Handle) -> NoClass {
        NoClass { filters: Filters::new(handle) }
    }
}

impl Classful for NoClass {
    fn find(&self, _: Handle) -> bool {
        false
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        (classid == Handle::UNSPEC).then_some(Filters::ROOT)
    }
}
