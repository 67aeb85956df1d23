//! `noqueue`: no queue at all; what a device that needs none (veth, lo) has until it is given one.
//!
//! A packet handed over is to be asked for at once: the device takes it within the same call of the network layer.
//!
//! Follows: linux v6.12 `net/sched/sch_generic.c` `noqueue_qdisc_ops`, `attach_one_default_qdisc`; `net/core/dev.c`
//! `__dev_queue_xmit`.
//! Differs: none known.

use super::KindSpec;
use crate::qdisc::{Cx, Init, Qdisc, Xmit};
use crate::queue::Queue;
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "noqueue",
    about: "no queue: the device takes each packet at once",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Nothing,
        limit: Limit::None,
        work_conserving: true,
    },
};

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    if init.parent != Handle::ROOT {
        return Err(init.device.refusal(KernelError::EINVAL, "Cannot assign noqueue to a class"));
    }
    Ok(Box::new(Noqueue::default()))
}

/// What is on its way to the device. It counts nothing.
#[derive(Default, Debug)]
pub struct Noqueue(Queue);

impl Qdisc for Noqueue {
    fn enqueue(&mut self, packet: Packet, _: &mut Cx<'_>) -> Xmit {
        self.0.push_tail(packet);
        Xmit::Success
    }
    fn pass_by(&mut self, _: &Skb) -> bool {
        self.0.is_empty()
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        self.0.pop_head()
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.0.head()
    }
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let why = "Change operation not supported by specified qdisc";
        Err(KernelError::new(KernelError::EINVAL, why))
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.0.purge(cx);
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.0.len(), backlog: self.0.backlog(), ..Stats::default() }
    }
    fn qlen(&self) -> u32 {
        self.0.len()
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.0.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        Options::new()
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet, qdisc};
    use crate::tree::Tree;

    #[test]
    fn a_device_without_a_queue_gets_none_back() {
        let mut bench = Bench::new();
        let mut tree = Tree::without_queue(device(Kernel::V6_12));
        tree.enqueue(packet(1, 100), &mut bench.cx(0));
        assert_eq!(tree.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(1));
        let mut prio = qdisc("add root handle 1: prio");
        prio.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![1u8; 16]));
        tree.qdisc(&prio, &mut bench.cx(0)).unwrap();
        let refused = tree.qdisc(&qdisc("add parent 1:1 noqueue"), &mut bench.cx(0)).unwrap_err();
        assert_eq!(refused.to_string(), "Error: Cannot assign noqueue to a class.");
        tree.qdisc(&qdisc("del root"), &mut bench.cx(0)).unwrap();
        let dump = tree.dump_qdiscs(penstock_model::Time::ZERO).remove(0);
        assert_eq!((dump.kind, dump.stats.packets), ("noqueue", 0));
    }
}
