//! `teql0`: a slave of the trivial link equalizer, the device `teql0`.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_teql.c`, configuration only.
//! Differs: packets are not carried yet; there is no device `teql0`, so its MTU is nobody's to fit.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated};
use crate::qdisc::{Cx, Device, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind: the module makes one equalizer unless it is asked for more.
pub static SPEC: KindSpec = KindSpec {
    id: "teql0",
    about: "makes the device a slave of the link equalizer teql0",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Fifo,
        limit: Limit::None,
        work_conserving: true,
    },
};

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    if init.device.kernel >= Kernel::V6_12 && init.parent != Handle::ROOT {
        let sentence = "sch_teql: teql can only be used as root";
        return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
    }
    Ok(Box::new(Unsimulated::new(Teql { device: init.device })))
}

/// The qdisc.
struct Teql {
    device: Device,
}

impl Params for Teql {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// There is no such operation.
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let sentence = "Change operation not supported by specified qdisc";
        Err(self.device.refusal(KernelError::EINVAL, sentence))
    }
    fn dump(&self) -> Options {
        Options::new()
    }
}
