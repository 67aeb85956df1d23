//! `fq_codel`: a queue for each flow, CoDel in each, served in turn.
//!
//! Follows: linux v6.12 `net/sched/sch_fq_codel.c`.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::no_class::NoClass;
use super::unsimulated::{Params, Unsimulated};
use crate::aqm::codel;
use crate::qdisc::{Classful, Cx, Init, Qdisc};
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "fq_codel",
    about: "a queue a flow, each controlled by CoDel, served by deficit round robin",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
};

/// `FQ_CODEL_QUANTUM_MAX`.
const QUANTUM_MAX: u32 = 1 << 20;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut params = codel::Params::new();
    params.ecn = true;
    let mut fq_codel = FqCodel {
        limit: 10 * 1024,
        flows: 1024,
        made: false,
        quantum: init.device.psched_mtu().clamp(256, QUANTUM_MAX),
        drop_batch: 64,
        memory_limit: 32 << 20,
        params,
        ce_threshold_selector: 0,
        ce_threshold_mask: 0,
        classes: NoClass::with_filters(SPEC.id, init.handle),
    };
    fq_codel.change(options, cx)?;
    fq_codel.made = true;
    Ok(Box::new(Unsimulated::new(fq_codel)))
}

/// Its parameters.
pub struct FqCodel {
    limit: u32,
    flows: u32,
    /// The flows are there: their number cannot change any more.
    made: bool,
    quantum: u32,
    drop_batch: u32,
    memory_limit: u32,
    params: codel::Params,
    ce_threshold_selector: u32,
    ce_threshold_mask: u32,
    classes: NoClass,
}

impl Params for FqCodel {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        if let Some(flows) = o.u32("flows") {
            if self.made || !(1..=65536).contains(&flows) {
                return Err(KernelError::errno(KernelError::EINVAL));
            }
            self.flows = flows;
        }
        let quantum = o.u32("quantum").map(|q| q.max(256));
        if quantum.is_some_and(|q| q > QUANTUM_MAX) {
            return Err(KernelError::new(KernelError::EINVAL, "Invalid quantum"));
        }
        self.params.change(o);
        let number = |name, old| o.u32(name).unwrap_or(old);
        self.quantum = quantum.unwrap_or(self.quantum);
        self.ce_threshold_selector = number("ce_threshold_selector", self.ce_threshold_selector);
        self.ce_threshold_mask = number("ce_threshold_mask", self.ce_threshold_mask);
        self.limit = number("limit", self.limit);
        self.drop_batch = number("drop_batch", self.drop_batch).max(1);
        self.memory_limit = number("memory_limit", self.memory_limit).min(1 << 31);
        Ok(())
    }
    fn dump(&self) -> Options {
        let o = Options::new()
            .with("limit", self.limit)
            .with("flows", self.flows)
            .with("quantum", self.quantum)
            .with("drop_batch", self.drop_batch)
            .with("memory_limit", self.memory_limit);
        let o = self.params.dump(o);
        if self.params.ce_threshold == codel::DISABLED {
            return o;
        }
        o.with("ce_threshold_selector", self.ce_threshold_selector)
            .with("ce_threshold_mask", self.ce_threshold_mask)
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = [
            "maxpacket",
            "drop_overlimit",
            "ecn_mark",
            "new_flow_count",
            "new_flows_len",
            "old_flows_len",
            "ce_mark",
            "memory_used",
            "drop_overmemory",
        ];
        Some(zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u32)))
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.classes)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(&mut self.classes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    #[test]
    fn flows_are_numbered_once_and_quanta_have_bounds() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let with = |name, value: u32| Options::new().with(name, value);
        let mut made = |o: Options| build(&init, Some(&o), &mut bench.cx(0)).map(|q| q.dump());
        assert!(made(with("flows", 65537)).is_err());
        assert_eq!(made(with("flows", 7)).unwrap().u32("flows"), Some(7));
        assert_eq!(made(with("quantum", 1)).unwrap().u32("quantum"), Some(256));
        assert_eq!(made(with("limit", 3)).unwrap().u32("quantum"), Some(1514));
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let before = q.dump();
        assert_eq!(q.change(Some(&with("flows", 7)), &mut bench.cx(0)).unwrap_err().errno, 22);
        let e = q.change(Some(&with("quantum", (1 << 20) + 1)), &mut bench.cx(0)).unwrap_err();
        assert_eq!(e.to_string(), "Error: Invalid quantum.");
        assert_eq!(q.dump(), before);
    }
}
