//! `cbs`: the credit-based shaper of 802.1Qav.
//!
//! Follows: linux v6.12 `net/sched/sch_cbs.c`, configuration only.
//! Differs: packets are not carried yet; no hardware offload.

use super::KindSpec;
use super::bands::{Banded, Bands};
use super::unsimulated::{Params, Unsimulated};
use crate::node::{Node, Shown};
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::Counters;
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "cbs",
    about: "a credit-based shaper: credit grows while a frame waits and falls while one is sent",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::Inner,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::Otherwise,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: false,
    },
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    if options.is_none() {
        let sentence = "Missing CBS qdisc options  which are mandatory";
        return Err(KernelError::new(KernelError::EINVAL, sentence));
    }
    let mut bands = Bands::new(init);
    // The one inside hangs on the qdisc itself, and is shown.
    let mut inner = Node::default_pfifo(&init.device, init.handle);
    inner.shown = Shown::Always;
    bands.nodes.push(inner);
    let mut cbs = Cbs { bands, given: Options::new() };
    cbs.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(cbs)))
}

/// The qdisc.
struct Cbs {
    bands: Bands,
    /// `hicredit` and `locredit` in bytes, `sendslope` and `idleslope` in kbit/s, `offload`.
    given: Options,
}

impl Params for Cbs {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        if options.u32("offload").unwrap_or(0) != 0 {
            let sentence = "Specified device does not support cbs offload";
            return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
        }
        self.given = options.clone();
        Ok(())
    }
    fn dump(&self) -> Options {
        self.given.clone()
    }
    super::bands::stands_on_bands!();
}

/// One class. Whatever its id is said to be, it is found.
impl Banded for Cbs {
    super::bands::has_bands!();
    fn band(&self, _: Handle) -> Option<usize> {
        Some(0)
    }
    fn vacant(&self, _: usize) -> Node {
        Node::default_pfifo(&self.bands.device, self.bands.handle).unlisted()
    }
    fn counters(&self) -> Counters {
        Counters::None
    }
    fn dump_band(&self, _: usize) -> (Handle, Options) {
        (self.bands.handle, Options::new())
    }
}
