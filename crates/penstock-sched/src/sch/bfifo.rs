//! `bfifo`: one first-in-first-out queue with a limit in bytes.
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
    id: "bfifo",
    about: "one first-in-first-out queue with a limit in bytes",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
};

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let limit = limit(options, &init.device)?;
    Ok(Box::new(Bfifo(Fifo::new(&init.device, limit))))
}

/// `limit` in bytes. Default: the device's txqueuelen times MTU and link header.
fn limit(options: Option<&Options>, device: &Device) -> Result<u32, KernelError> {
    match options {
        Some(options) => Fifo::limit_of(options),
        None => Ok(Fifo::tx_queue_len(device).wrapping_mul(device.psched_mtu())),
    }
}

/// A fifo that counts bytes.
#[derive(Debug)]
pub struct Bfifo(Fifo);

impl Bfifo {
    /// With a limit of `limit` bytes.
    pub fn new(device: &Device, limit: u32) -> Bfifo {
        Bfifo(Fifo::new(device, limit))
    }
    /// With the limit that stands where none is given.
    pub fn with_default_limit(device: &Device) -> Bfifo {
        Bfifo::new(device, Fifo::tx_queue_len(device).wrapping_mul(device.psched_mtu()))
    }
}

impl Qdisc for Bfifo {
    #[inline]
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if u64::from(self.0.queue.backlog()) + u64::from(packet.pkt_len) <= u64::from(self.0.limit) {
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
        assert_eq!(Bfifo::with_default_limit(&device(Kernel::V6_12)).0.limit, 1_514_000);
    }
}
