//! `fq_pie`: a queue for each flow, PIE in each, served in turn.
//!
//! Follows: linux v6.12 `net/sched/sch_fq_pie.c`. What stands before a wrong number of flows is changed although the
//! change is refused, as there.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated, range};
use crate::aqm::pie;
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "fq_pie",
    about: "one queue for each flow, each controlled by PIE, served by deficit round robin",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut fq_pie = FqPie {
        params: pie::Params::new(init.device.hz, 10 * 1024),
        flows: 1024,
        made: false,
        quantum: init.device.psched_mtu().clamp(256, 1 << 20),
        memory_limit: 32 << 20,
        ecn_prob: 10,
    };
    fq_pie.change(options, cx)?;
    fq_pie.made = true;
    Ok(Box::new(Unsimulated::new(fq_pie)))
}

/// Its parameters.
#[derive(Debug)]
pub struct FqPie {
    params: pie::Params,
    flows: u32,
    /// The flows are there: their number cannot change any more.
    made: bool,
    quantum: u32,
    memory_limit: u32,
    ecn_prob: u32,
}

impl Params for FqPie {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        let refused = |why| Err(KernelError::new(KernelError::EINVAL, why));
        range(o, "quantum", 1..=1 << 20)?;
        self.params.limit = o.u32("limit").unwrap_or(self.params.limit);
        if let Some(flows) = o.u32("flows") {
            if self.made {
                return refused("sch_fq_pie: Number of flows cannot be changed");
            }
            if !(1..=65536).contains(&flows) {
                return refused("sch_fq_pie: Number of flows must range in [1..65536]");
            }
            self.flows = flows;
        }
        self.params.change(o);
        let number = |name, old| o.u32(name).unwrap_or(old);
        self.quantum = number("quantum", self.quantum).max(256);
        self.memory_limit = number("memory_limit", self.memory_limit);
        self.ecn_prob = number("ecn_prob", self.ecn_prob);
        Ok(())
    }
    fn dump(&self) -> Options {
        let o = Options::new()
            .with("flows", self.flows)
            .with("quantum", self.quantum)
            .with("memory_limit", self.memory_limit)
            .with("ecn_prob", self.ecn_prob);
        self.params.dump(o)
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = [
            "pkts_in",
            "overlimit",
            "overmemory",
            "dropped",
            "ecn_mark",
            "new_flow_count",
            "new_flows_len",
            "old_flows_len",
            "memory_used",
        ];
        Some(zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    #[test]
    fn a_refused_number_of_flows_lets_the_limit_through() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let o = Options::new().with("limit", 9u32).with("flows", 9u32).with("alpha", 9u32);
        let e = q.change(Some(&o), &mut bench.cx(0)).unwrap_err();
        assert_eq!(e.to_string(), "Error: sch_fq_pie: Number of flows cannot be changed.");
        assert_eq!((q.dump().u32("limit"), q.dump().u32("alpha")), (Some(9), Some(2)));
        let e = q.change(Some(&Options::new().with("quantum", 1u32 << 21)), &mut bench.cx(0)).unwrap_err();
        assert_eq!((e.errno, e.to_string()), (34, "Error: integer out of range.".to_owned()));
    }
}
