//! `pfifo`: one first-in-first-out queue with a limit in packets.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_fifo.c`.
//! Differs: none known.

use super::KindSpec;
use super::fifo::{Fifo, Rule, Ruled};
use crate::qdisc::{Cx, Device, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::Kernel;
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "pfifo",
    about: "one first-in-first-out queue with a limit in packets",
    kernels: &Kernel::ALL,
    build: Pfifo::build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Fifo,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

/// A fifo that counts packets.
pub type Pfifo = Ruled<Packets>;

/// `limit` in packets. Default: the device's txqueuelen.
#[derive(Debug)]
pub struct Packets;

impl Rule for Packets {
    const KIND: &'static str = SPEC.id;
    fn default_limit(device: &Device) -> u32 {
        Fifo::tx_queue_len(device)
    }
    #[inline]
    fn takes(fifo: &Fifo, _: &Skb) -> bool {
        fifo.limit > 0
    }
    fn lets_pass(limit: u32, _: &Device) -> bool {
        limit > 0
    }
    #[inline]
    fn enqueue(fifo: &mut Fifo, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if fifo.queue.len() < fifo.limit { fifo.enqueue_tail(packet) } else { fifo.refuse(packet, cx) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::DropReason;
    use crate::qdisc::Qdisc;
    use crate::testing::{Bench, device, packet};

    #[test]
    fn refuses_at_the_limit_and_counts_where_each_kernel_counts() {
        for (kernel, before) in [(Kernel::V2_6_35, 2), (Kernel::V6_12, 0)] {
            let mut bench = Bench::new();
            let mut q = Pfifo::new(&device(kernel), 2);
            let answers = [0, 1, 2].map(|i| q.enqueue(packet(i, 100), &mut bench.cx(0)));
            assert_eq!(answers, [Xmit::Success, Xmit::Success, Xmit::Drop]);
            assert_eq!(bench.dropped(), [(2, DropReason::Overlimit)]);
            assert_eq!(q.stats().packets, before);
            assert_eq!(q.peek(&mut bench.cx(0)).map(|p| p.seq), Some(0));
            assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(0));
            assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(1));
            let s = q.stats();
            assert_eq!((s.bytes, s.packets, s.drops, s.qlen, s.backlog), (200, 2, 1, 0, 0));
        }
    }

    #[test]
    fn the_default_limit_is_txqueuelen_when_made() {
        let mut dev = device(Kernel::V2_6_35);
        dev.tx_queue_len = 0;
        assert_eq!(Pfifo::with_default_limit(&dev).limit(), 1);
        dev.kernel = Kernel::V6_12;
        assert_eq!(Pfifo::with_default_limit(&dev).limit(), 0);
    }
}
