//! `etf`: earliest transmission time first, as the sender asks for with `SO_TXTIME`.
//!
//! Follows: linux v6.12 `net/sched/sch_etf.c`, configuration only.
//! Differs: packets are not carried yet; no hardware offload.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated};
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "etf",
    about: "sends each packet at the time its sender named",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Delayed,
        limit: Limit::None,
        work_conserving: false,
    },
};

/// `CLOCK_TAI`.
const TAI: i64 = 11;
/// `TC_ETF_OFFLOAD_ON`.
const OFFLOAD: u32 = 2;
/// `ENOTSUPP`, which no C library has a word for.
const ENOTSUPP: i32 = 524;

fn build(_: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let no = |errno: i32, sentence: &str| Err(KernelError::new(errno, sentence));
    let Some(options) = options else {
        return no(KernelError::EINVAL, "Missing ETF qdisc options which are mandatory");
    };
    let clockid = options.i64("clockid").unwrap_or(-1);
    if clockid < 0 {
        return no(ENOTSUPP, "Dynamic clockids are not supported");
    }
    if clockid != TAI {
        return no(KernelError::EINVAL, "Invalid clockid. CLOCK_TAI must be used");
    }
    if options.i64("delta").unwrap_or(0) < 0 {
        return no(KernelError::EINVAL, "Delta must be positive");
    }
    if options.u32("flags").unwrap_or(0) & OFFLOAD != 0 {
        return no(KernelError::EOPNOTSUPP, "Specified device does not support ETF offload");
    }
    Ok(Box::new(Unsimulated::new(Etf { given: options.clone() })))
}

/// The qdisc.
struct Etf {
    /// `delta` in ns, `clockid`, `flags`.
    given: Options,
}

impl Params for Etf {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// There is no such operation.
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let sentence = "Change operation not supported by specified qdisc";
        Err(KernelError::new(KernelError::EINVAL, sentence))
    }
    fn dump(&self) -> Options {
        self.given.clone()
    }
}
