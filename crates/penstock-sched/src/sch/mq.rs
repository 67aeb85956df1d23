//! `mq`: a qdisc of its own for each transmit queue; what a device with several queues has by default.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_mq.c`. How packets are carried: [`super::queues`].
//! Differs: every queue of a device is in use.

use super::KindSpec;
use super::queues::{QueueKind, Queues};
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "mq",
    about: "a qdisc for each transmit queue",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Queues,
        sorting: Sorting::Own,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: true,
    },
};

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    if init.parent != Handle::ROOT || !init.device.is_multiqueue() {
        return Err(KernelError::errno(KernelError::EOPNOTSUPP));
    }
    Ok(Box::new(default(init)))
}

/// What a device of several queues has before anybody asks for something else.
pub fn default(init: &Init) -> impl Qdisc + use<> {
    Queues::new(init, Mq)
}

/// It has nothing to set.
struct Mq;

impl QueueKind for Mq {
    const ID: &'static str = SPEC.id;
    fn dump(&self) -> Options {
        Options::new()
    }
}
