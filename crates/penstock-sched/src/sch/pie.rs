//! `pie`: one queue whose delay PIE controls.
//!
//! Follows: linux v6.12 `net/sched/sch_pie.c`.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated};
use crate::aqm::pie;
use crate::qdisc::{Cx, Init, Qdisc};
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "pie",
    about: "one queue whose delay is controlled by PIE",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut pie = Pie { params: pie::Params::new(init.device.kernel, 1000) };
    pie.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(pie)))
}

/// Its parameters.
#[derive(Debug)]
pub struct Pie {
    params: pie::Params,
}

impl Params for Pie {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        if let Some(o) = options {
            self.params.change(o);
        }
        Ok(())
    }
    fn dump(&self) -> Options {
        self.params.dump(Options::new())
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = ["delay", "avg_dq_rate", "pkts_in", "overlimit", "dropped", "maxq", "ecn_mark"];
        let o = zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u32)).with("prob", 0u64);
        Some(o.with("dq_rate_estimating", u32::from(self.params.dq_rate_estimator)))
    }
}
