//! `mq`: a qdisc of its own for each transmit queue; what a device with several queues has by default.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_mq.c`, configuration only.
//! Differs: packets are not carried yet; every queue of a device is in use.

use super::KindSpec;
use super::bands::{Banded, Bands};
use super::unsimulated::{Params, Unsimulated};
use crate::node::Node;
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "mq",
    about: "a qdisc for each transmit queue",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
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
    let mut bands = Bands::new(init);
    bands.nodes = (0..init.device.tx_queues as usize).map(|band| bands.queue_default(band)).collect();
    Unsimulated::new(Mq { bands })
}

/// The qdisc.
struct Mq {
    bands: Bands,
}

/// The sum over the queues: `mq_dump`.
pub fn sum(bands: &Bands) -> Stats {
    let mut sum = Stats::default();
    for stats in bands.nodes.iter().map(Node::stats) {
        sum.bytes += stats.bytes;
        sum.packets += stats.packets;
        sum.drops = sum.drops.wrapping_add(stats.drops);
        sum.overlimits = sum.overlimits.wrapping_add(stats.overlimits);
        sum.requeues = sum.requeues.wrapping_add(stats.requeues);
        sum.qlen += stats.qlen;
        sum.backlog += stats.backlog;
    }
    sum
}

impl Params for Mq {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// There is no such operation.
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let sentence = "Change operation not supported by specified qdisc";
        Err(self.bands.device.refusal(KernelError::EINVAL, sentence))
    }
    fn dump(&self) -> Options {
        Options::new()
    }
    fn stats(&self, _: Stats) -> Stats {
        sum(&self.bands)
    }
    super::bands::stands_on_bands!();
}

impl Banded for Mq {
    super::bands::has_bands!();
    fn vacant(&self, _: usize) -> Node {
        Node::noop()
    }
    fn dump_band(&self, _: usize) -> (Handle, Options) {
        (Handle::ROOT, Options::new())
    }
    fn is_queue_root(&self) -> bool {
        true
    }
}
