//! `blackhole`: what comes in is gone, and the sender is told nothing.
//!
//! Follows: linux v6.12 `net/sched/sch_blackhole.c`.
//! Differs: none known.

use super::KindSpec;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Stats};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "blackhole",
    about: "whatever comes in is gone, and the sender is told nothing",
    kernels: &Kernel::LIVING,
    build: |_, _, _| Ok(Box::new(Blackhole::default()) as Box<dyn Qdisc>),
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

/// It has no parameters; it counts what it drops.
#[derive(Debug, Default)]
pub struct Blackhole {
    stats: Stats,
}

impl Qdisc for Blackhole {
    /// `blackhole_enqueue`: a drop that the sender takes for a success.
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, DropReason::Overlimit);
        Xmit::Bypass
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        None
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        None
    }
    fn never_wakes(&self) -> bool {
        true
    }
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let why = "Change operation not supported by specified qdisc";
        Err(KernelError::new(KernelError::EINVAL, why))
    }
    fn reset(&mut self, _: &mut Cx<'_>) {}
    fn stats(&self) -> Stats {
        self.stats
    }
    fn qlen(&self) -> u32 {
        0
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
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
    use crate::testing::{Bench, packet};

    #[test]
    fn every_packet_is_dropped_and_the_sender_is_told_nothing() {
        let mut bench = Bench::new();
        let mut q = Blackhole::default();
        assert_eq!(q.enqueue(packet(0, 100), &mut bench.cx(0)), Xmit::Bypass);
        assert!(q.dequeue(&mut bench.cx(0)).is_none());
        assert_eq!((q.stats().drops, q.stats().packets, q.qlen()), (1, 0, 0));
        assert_eq!(bench.dropped(), [(0, DropReason::Overlimit)]);
    }
}
