//! `bfifo`: one first-in-first-out queue with a limit in bytes.
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
    id: "bfifo",
    about: "one first-in-first-out queue with a limit in bytes",
    kernels: &Kernel::ALL,
    build: Bfifo::build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Fifo,
        limit: Limit::Bytes,
        work_conserving: true,
    },
};

/// A fifo that counts bytes.
pub type Bfifo = Ruled<Bytes>;

/// `limit` in bytes. Default: the device's txqueuelen times MTU and link header.
#[derive(Debug)]
pub struct Bytes;

impl Rule for Bytes {
    const KIND: &'static str = SPEC.id;
    fn default_limit(device: &Device) -> u32 {
        Fifo::tx_queue_len(device).wrapping_mul(device.psched_mtu())
    }
    #[inline]
    fn takes(fifo: &Fifo, packet: &Skb) -> bool {
        packet.pkt_len <= fifo.limit
    }
    //= linux v6.12 net/sched/sch_fifo.c __fifo_init
    fn lets_pass(limit: u32, device: &Device) -> bool {
        limit >= device.psched_mtu()
    }
    #[inline]
    fn enqueue(fifo: &mut Fifo, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if u64::from(fifo.queue.backlog()) + u64::from(packet.pkt_len) <= u64::from(fifo.limit) {
            fifo.enqueue_tail(packet)
        } else {
            fifo.refuse(packet, cx)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdisc::Qdisc;
    use crate::testing::{Bench, device, packet};

    #[test]
    fn fills_to_the_byte() {
        let mut bench = Bench::new();
        let mut q = Bfifo::new(&device(Kernel::V6_12), 1000);
        let mut put = |seq, len| q.enqueue(packet(seq, len), &mut bench.cx(0));
        assert_eq!(
            [put(0, 600), put(1, 401), put(2, 400), put(3, 1)],
            [Xmit::Success, Xmit::Drop, Xmit::Success, Xmit::Drop]
        );
        assert_eq!(Bfifo::with_default_limit(&device(Kernel::V6_12)).limit(), 1_514_000);
    }
}
