//! `multiq`: a band for each transmit queue of the device.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_multiq.c`, configuration only.
//! Differs: packets are not carried yet; every queue of a device is in use.

use super::KindSpec;
use super::bands::{Banded, Bands};
use super::unsimulated::{Params, Unsimulated};
use crate::cls::Filters;
use crate::node::Node;
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "multiq",
    about: "a band for each transmit queue, so that one that is stopped does not hold up the others",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::Fixed,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: true,
    },
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut multiq = Multiq { bands: Bands::new(init), filters: Filters::new(init.handle) };
    multiq.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(multiq)))
}

/// The qdisc.
struct Multiq {
    bands: Bands,
    filters: Filters,
}

impl Params for Multiq {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// Asks the device for its queues anew.
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        if options.is_none() {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        if !self.bands.device.is_multiqueue() {
            return Err(KernelError::errno(KernelError::EOPNOTSUPP));
        }
        self.bands.resize(self.bands.device.tx_queues as usize, cx);
        for band in 0..self.bands.nodes.len() {
            if self.bands.nodes[band].is_noop() {
                self.bands.nodes[band] = self.bands.pfifo(band);
            }
        }
        Ok(())
    }
    fn dump(&self) -> Options {
        Options::new()
            .with("bands", self.bands.nodes.len() as u32)
            .with("max_bands", self.bands.device.tx_queues)
    }
    super::bands::stands_on_bands!();
}

impl Banded for Multiq {
    super::bands::has_bands!();
    /// Nothing, until a change fills it.
    fn vacant(&self, _: usize) -> Node {
        Node::noop()
    }
    fn dump_band(&self, _: usize) -> (Handle, Options) {
        (self.bands.handle, Options::new())
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
}
