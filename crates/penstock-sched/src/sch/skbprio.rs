//! `skbprio`: a queue for each of 64 priorities; when all is full the lowest loses a packet.
//!
//! Follows: linux v6.12 `net/sched/sch_skbprio.c`.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::no_class::NoClass;
use super::unsimulated::{Params, Unsimulated};
use crate::qdisc::{Classful, Cx, Init, Qdisc};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "skbprio",
    about: "64 priorities in strict order; when it is full, the lowest loses a packet",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
};

/// `SKBPRIO_MAX_PRIORITY`.
const PRIORITIES: u16 = 64;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut skbprio = Skbprio { limit: 64, classes: NoClass::shown(SPEC.id, init.handle, PRIORITIES) };
    skbprio.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(skbprio)))
}

/// Its parameters.
pub struct Skbprio {
    /// Packets.
    limit: u32,
    classes: NoClass,
}

impl Params for Skbprio {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        if let Some(o) = options {
            self.limit = o.u32("limit").unwrap_or(0);
        }
        Ok(())
    }
    fn dump(&self) -> Options {
        Options::new().with("limit", self.limit)
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.classes)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(&mut self.classes)
    }
}
