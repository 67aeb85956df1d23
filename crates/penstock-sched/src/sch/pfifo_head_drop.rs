//! `pfifo_head_drop`: a fifo with a limit in packets that drops its oldest packet, not the one that comes.
//!
//! Follows: linux v6.12 `net/sched/sch_fifo.c` `pfifo_tail_enqueue`; since 2.6.34.
//! Differs: with a limit of 0 Linux 2.6.35 looks for a packet that is not there; here the packet that comes is dropped, as in
//! 6.12.

use super::KindSpec;
use super::fifo::Fifo;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Device, Init, Qdisc, Xmit};
use penstock_model::{Kernel, KernelError, Options, Stats};
use penstock_packet::Packet;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "pfifo_head_drop",
    about: "one first-in-first-out queue with a limit in packets that drops the oldest",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
};

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let limit = limit(options, &init.device)?;
    Ok(Box::new(PfifoHeadDrop(Fifo::new(&init.device, limit))))
}

/// `limit` in packets. Default: the device's txqueuelen.
fn limit(options: Option<&Options>, device: &Device) -> Result<u32, KernelError> {
    match options {
        Some(options) => Fifo::limit_of(options),
        None => Ok(Fifo::tx_queue_len(device)),
    }
}

/// A fifo that counts packets and drops at its head.
#[derive(Debug)]
struct PfifoHeadDrop(Fifo);

impl Qdisc for PfifoHeadDrop {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.0.queue.len() < self.0.limit {
            return self.0.enqueue_tail(packet);
        }
        if self.0.limit == 0 {
            return self.0.refuse(packet, cx);
        }
        let Some(oldest) = self.0.queue.pop_head() else { return self.0.refuse(packet, cx) };
        if self.0.device.kernel == Kernel::V2_6_35 {
            // It was counted when it came in.
            self.0.stats.bytes = self.0.stats.bytes.wrapping_sub(u64::from(oldest.pkt_len));
            self.0.stats.packets = self.0.stats.packets.wrapping_sub(1);
        }
        self.0.stats.drops = self.0.stats.drops.wrapping_add(1);
        cx.drops.drop(oldest, DropReason::Displaced);
        self.0.enqueue_tail(packet);
        Xmit::Cn
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        self.0.dequeue_head()
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.0.queue.head()
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        self.0.limit = limit(options, &self.0.device)?;
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.0.queue.purge(cx);
    }
    fn stats(&self) -> Stats {
        self.0.stats()
    }
    fn qlen(&self) -> u32 {
        self.0.queue.len()
    }
    fn dump(&self) -> Options {
        self.0.dump()
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.0.device = *device;
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};

    #[test]
    fn the_oldest_leaves_when_it_is_full() {
        for (kernel, before) in [(Kernel::V2_6_35, 2), (Kernel::V6_12, 0)] {
            let mut bench = Bench::new();
            let mut q = PfifoHeadDrop(Fifo::new(&device(kernel), 2));
            let answers = [0, 1, 2].map(|i| q.enqueue(packet(i, 100), &mut bench.cx(0)));
            assert_eq!(answers, [Xmit::Success, Xmit::Success, Xmit::Cn]);
            assert_eq!(bench.dropped(), [(0, DropReason::Displaced)]);
            assert_eq!((q.stats().packets, q.stats().drops, q.qlen()), (before, 1, 2));
            assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(1));
            assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(2));
        }
        let mut bench = Bench::new();
        let mut q = PfifoHeadDrop(Fifo::new(&device(Kernel::V6_12), 0));
        assert_eq!(q.enqueue(packet(0, 100), &mut bench.cx(0)), Xmit::Drop);
        assert_eq!(bench.dropped(), [(0, DropReason::Overlimit)]);
    }
}
