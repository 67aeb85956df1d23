//! What pfifo and bfifo share: one queue, one limit, counters.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_fifo.c`, `include/net/sch_generic.h` `qdisc_enqueue_tail`,
//! `qdisc_dequeue_head`.
//! Differs: none known.

use crate::ledger::DropReason;
use crate::qdisc::{Cx, Device, Xmit};
use crate::queue::Queue;
use penstock_model::{Kernel, KernelError, Options, Stats};
use penstock_packet::Packet;

#[derive(Debug)]
pub(super) struct Fifo {
    // Parameters
    pub device: Device,
    pub limit: u32,
    // Variables
    pub queue: Queue,
    pub stats: Stats,
}

impl Fifo {
    pub fn new(device: &Device, limit: u32) -> Fifo {
        Fifo { device: *device, limit, queue: Queue::default(), stats: Stats::default() }
    }
    /// `limit` as given.
    pub fn limit_of(options: &Options) -> Result<u32, KernelError> {
        options.u32("limit").ok_or(KernelError::errno(KernelError::EINVAL))
    }
    /// txqueuelen of the device, as it counts for a fifo without a limit.
    pub fn tx_queue_len(device: &Device) -> u32 {
        match device.kernel {
            Kernel::V2_6_35 => device.tx_queue_len.max(1),
            Kernel::V6_12 => device.tx_queue_len,
        }
    }
    #[inline]
    pub fn enqueue_tail(&mut self, packet: Packet) -> Xmit {
        // Linux counted what came in until 3.0, what goes out since.
        if self.device.kernel == Kernel::V2_6_35 {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += 1;
        }
        self.queue.push_tail(packet);
        Xmit::Success
    }
    #[inline]
    pub fn refuse(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, DropReason::Overlimit);
        Xmit::Drop
    }
    #[inline]
    pub fn dequeue_head(&mut self) -> Option<Packet> {
        let packet = self.queue.pop_head()?;
        if self.device.kernel == Kernel::V6_12 {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += 1;
        }
        Some(packet)
    }
    /// `qdisc_queue_drop`: the last packet.
    pub fn drop_tail(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(packet) = self.queue.pop_tail() else { return false };
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, DropReason::Overlimit);
        true
    }
    pub fn stats(&self) -> Stats {
        Stats { qlen: self.queue.len(), backlog: self.queue.backlog(), ..self.stats }
    }
    pub fn dump(&self) -> Options {
        Options::new().with("limit", self.limit)
    }
}
