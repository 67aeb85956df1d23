//! `pfifo_head_drop`: a fifo with a limit in packets that drops its oldest packet, not the one that comes.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_fifo.c` `pfifo_tail_enqueue`; since 2.6.34.
//! Differs: with a limit of 0 Linux 2.6.35 looks for a packet that is not there; here the packet that comes is dropped, as in
//! 6.12.

use super::KindSpec;
use super::fifo::{Fifo, Rule, Ruled};
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Device, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::Kernel;
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "pfifo_head_drop",
    about: "one first-in-first-out queue with a limit in packets that drops the oldest",
    kernels: &Kernel::ALL,
    build: PfifoHeadDrop::build,
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

/// A fifo that counts packets and drops at its head.
type PfifoHeadDrop = Ruled<Oldest>;

/// `limit` in packets. Default: the device's txqueuelen.
#[derive(Debug)]
pub struct Oldest;

impl Rule for Oldest {
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
    fn enqueue(fifo: &mut Fifo, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if fifo.queue.len() < fifo.limit {
            return fifo.enqueue_tail(packet);
        }
        if fifo.limit == 0 {
            return fifo.refuse(packet, cx);
        }
        let Some(oldest) = fifo.queue.pop_head() else { return fifo.refuse(packet, cx) };
        if fifo.device.kernel == Kernel::V2_6_35 {
            // It was counted when it came in.
            fifo.stats.bytes = fifo.stats.bytes.wrapping_sub(u64::from(oldest.pkt_len));
            fifo.stats.packets = fifo.stats.packets.wrapping_sub(1);
        }
        fifo.stats.drops = fifo.stats.drops.wrapping_add(1);
        cx.drops.drop(oldest, DropReason::Displaced);
        fifo.enqueue_tail(packet);
        Xmit::Cn
    }
    fn drop_one(fifo: &mut Fifo, cx: &mut Cx<'_>) -> bool {
        fifo.drop_head(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::Qdisc;
    use crate::testing::{Bench, device, packet};

    #[test]
    fn the_oldest_leaves_when_it_is_full() {
        for (kernel, before) in [(Kernel::V2_6_35, 2), (Kernel::V6_12, 0)] {
            let mut bench = Bench::new();
            let mut q = PfifoHeadDrop::new(&device(kernel), 2);
            let answers = [0, 1, 2].map(|i| q.enqueue(packet(i, 100), &mut bench.cx(0)));
            assert_eq!(answers, [Xmit::Success, Xmit::Success, Xmit::Cn]);
            assert_eq!(bench.dropped(), [(0, DropReason::Displaced)]);
            assert_eq!((q.stats().packets, q.stats().drops, q.qlen()), (before, 1, 2));
            assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(1));
            assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(2));
        }
        let mut bench = Bench::new();
        let mut q = PfifoHeadDrop::new(&device(Kernel::V6_12), 0);
        assert_eq!(q.enqueue(packet(0, 100), &mut bench.cx(0)), Xmit::Drop);
        assert_eq!(bench.dropped(), [(0, DropReason::Overlimit)]);
    }
}
