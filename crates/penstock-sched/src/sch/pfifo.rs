//! `pfifo`: one first-in-first-out queue with a limit in packets.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_fifo.c`.
//! Differs: none known.

use super::KindSpec;
use super::fifo::Fifo;
use crate::qdisc::{Cx, Device, Init, Qdisc, Xmit};
use penstock_model::{Kernel, KernelError, Options, Stats};
use penstock_packet::Packet;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "pfifo",
    about: "one first-in-first-out queue with a limit in packets",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
};

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let limit = limit(options, &init.device)?;
    Ok(Box::new(Pfifo(Fifo::new(&init.device, limit))))
}

/// `limit` in packets. Default: the device's txqueuelen.
fn limit(options: Option<&Options>, device: &Device) -> Result<u32, KernelError> {
    match options {
        Some(options) => Fifo::limit_of(options),
        None => Ok(Fifo::tx_queue_len(device)),
    }
}

/// A fifo that counts packets.
#[derive(Debug)]
pub struct Pfifo(Fifo);

impl Pfifo {
    /// With a limit of `limit` packets.
    pub fn new(device: &Device, limit: u32) -> Pfifo {
        Pfifo(Fifo::new(device, limit))
    }
    /// With the limit that stands where none is given.
    pub fn with_default_limit(device: &Device) -> Pfifo {
        Pfifo::new(device, Fifo::tx_queue_len(device))
    }
}

impl Qdisc for Pfifo {
    #[inline]
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.0.queue.len() < self.0.limit {
            self.0.enqueue_tail(packet)
        } else {
            self.0.refuse(packet, cx)
        }
    }
    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        self.0.dequeue_head()
    }
    fn drop_one(&mut self, cx: &mut Cx<'_>) -> bool {
        self.0.drop_tail(cx)
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
    use crate::ledger::DropReason;
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
        assert_eq!(Pfifo::with_default_limit(&dev).0.limit, 1);
        dev.kernel = Kernel::V6_12;
        assert_eq!(Pfifo::with_default_limit(&dev).0.limit, 0);
    }
}
