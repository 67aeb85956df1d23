//! `hhf`: heavy hitters are found and served after the others.
//!
//! Follows: linux v6.12 `net/sched/sch_hhf.c`.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated, range};
use crate::jiffies;
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "hhf",
    about: "heavy hitters are found and wait behind the others",
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
    let hz = init.device.hz;
    let mut hhf = Hhf {
        hz,
        limit: 1000,
        quantum: init.device.psched_mtu().clamp(256, 1 << 20),
        hh_limit: 2048,
        reset_timeout: jiffies::from_us(40_000, hz),
        admit_bytes: 131_072,
        evict_timeout: jiffies::from_us(1_000_000, hz),
        non_hh_weight: 2,
    };
    hhf.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(hhf)))
}

/// Its parameters.
#[derive(Debug)]
pub struct Hhf {
    hz: u32,
    limit: u32,
    quantum: u32,
    hh_limit: u32,
    /// Jiffies.
    reset_timeout: u64,
    admit_bytes: u32,
    /// Jiffies.
    evict_timeout: u64,
    non_hh_weight: u32,
}

impl Params for Hhf {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        range(o, "hh_limit", 0..=2048)?;
        let number = |name, old| o.u32(name).unwrap_or(old);
        let quantum = o.u32("quantum").map_or(self.quantum, |q| q.max(256));
        let weight = number("non_hh_weight", self.non_hh_weight);
        if !(1..=i32::MAX as u64).contains(&(u64::from(quantum) * u64::from(weight))) {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        (self.quantum, self.non_hh_weight) = (quantum, weight);
        self.limit = number("limit", self.limit);
        self.hh_limit = number("hh_limit", self.hh_limit);
        self.admit_bytes = number("admit_bytes", self.admit_bytes);
        let time = |name, old| o.u32(name).map_or(old, |us| jiffies::from_us(us, self.hz));
        let (reset, evict) =
            (time("reset_timeout", self.reset_timeout), time("evict_timeout", self.evict_timeout));
        (self.reset_timeout, self.evict_timeout) = (reset, evict);
        Ok(())
    }
    fn dump(&self) -> Options {
        Options::new()
            .with("limit", self.limit)
            .with("quantum", self.quantum)
            .with("hh_limit", self.hh_limit)
            .with("reset_timeout", jiffies::to_us(self.reset_timeout, self.hz))
            .with("admit_bytes", self.admit_bytes)
            .with("evict_timeout", jiffies::to_us(self.evict_timeout, self.hz))
            .with("non_hh_weight", self.non_hh_weight)
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = ["drop_overlimit", "hh_overlimit", "tot_hh", "cur_hh"];
        Some(zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    #[test]
    fn what_others_may_send_in_a_turn_must_fit_31_bits() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let before = q.dump();
        let mut errno = |name, value: u32| {
            q.change(Some(&Options::new().with(name, value).with("limit", 5u32)), &mut bench.cx(0))
                .map_err(|e| e.errno)
        };
        assert_eq!(errno("quantum", 1 << 30), Err(22));
        assert_eq!(errno("non_hh_weight", 0), Err(22));
        assert_eq!(errno("hh_limit", 2049), Err(34));
        assert_eq!(q.dump(), before);
    }
}
