//! `blackhole`: what comes in is gone, and the sender is told nothing.
//!
//! Follows: linux v6.12 `net/sched/sch_blackhole.c`.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated};
use crate::qdisc::{Cx, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "blackhole",
    about: "whatever comes in is gone, and the sender is told nothing",
    kernels: &[Kernel::V6_12],
    build: |_, _, _| Ok(Box::new(Unsimulated::new(Blackhole)) as Box<dyn Qdisc>),
    simulated: false,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Nothing,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// It has no parameters.
#[derive(Debug)]
pub struct Blackhole;

impl Params for Blackhole {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let why = "Change operation not supported by specified qdisc";
        Err(KernelError::new(KernelError::EINVAL, why))
    }
    fn dump(&self) -> Options {
        Options::new()
    }
}
