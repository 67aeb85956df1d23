//! One queue, one limit, counters, and the rule that parts `pfifo`, `bfifo` and `pfifo_head_drop`.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_fifo.c`, `include/net/sch_generic.h` `qdisc_enqueue_tail`,
//! `qdisc_dequeue_head`, `net/core/dev.c` `__dev_xmit_skb` (`TCQ_F_CAN_BYPASS`).
//! Differs: none known.

use crate::ledger::DropReason;
use crate::qdisc::{Cx, Device, Init, Qdisc, Xmit};
use crate::queue::Queue;
use penstock_model::{Handle, Kernel, KernelError, Options, Stats};
use penstock_packet::{Packet, Skb};
use std::marker::PhantomData;

/// In what the fifos differ.
pub trait Rule: std::fmt::Debug + Send + 'static {
    /// The kind's name.
    const KIND: &'static str;
    /// The limit where none is given.
    fn default_limit(device: &Device) -> u32;
    /// Takes a packet or refuses it.
    fn enqueue(fifo: &mut Fifo, packet: Packet, cx: &mut Cx<'_>) -> Xmit;
    /// Whether there is room for a packet where nothing waits.
    fn takes(fifo: &Fifo, packet: &Skb) -> bool;
    /// Whether a packet of any length passes an empty one by that stands alone: the limit that was last asked for holds one frame of `device`.
    fn lets_pass(limit: u32, device: &Device) -> bool;
    /// Drops one packet when its parent asks for it. Whether it did.
    fn drop_one(fifo: &mut Fifo, cx: &mut Cx<'_>) -> bool {
        fifo.drop_tail(cx)
    }
}

/// A fifo with a rule.
#[derive(Debug)]
pub struct Ruled<R>(Fifo, PhantomData<R>);

impl<R: Rule> Ruled<R> {
    /// With a limit of `limit`, in the rule's unit.
    pub fn new(device: &Device, limit: u32) -> Ruled<R> {
        let mut fifo = Fifo::new(device, limit);
        fifo.lets_pass = R::lets_pass(limit, device);
        Ruled(fifo, PhantomData)
    }
    /// With the limit that stands where none is given.
    pub fn with_default_limit(device: &Device) -> Ruled<R> {
        Ruled::new(device, R::default_limit(device))
    }
    /// The limit, in the rule's unit.
    pub fn limit(&self) -> u32 {
        self.0.limit
    }
    /// As `tc` asks for it.
    ///
    /// # Errors
    /// EINVAL for options without a limit.
    pub(super) fn build(
        init: &Init,
        options: Option<&Options>,
        _: &mut Cx<'_>,
    ) -> Result<Box<dyn Qdisc>, KernelError> {
        let mut fifo = Ruled::<R>::new(&init.device, limit::<R>(options, &init.device)?);
        fifo.0.alone = init.parent == Handle::ROOT;
        Ok(Box::new(fifo))
    }
}

fn limit<R: Rule>(options: Option<&Options>, device: &Device) -> Result<u32, KernelError> {
    match options {
        Some(options) => options.u32("limit").ok_or(KernelError::errno(KernelError::EINVAL)),
        None => Ok(R::default_limit(device)),
    }
}

impl<R: Rule> Qdisc for Ruled<R> {
    fn stands_alone(&mut self) {
        self.0.alone = true;
    }
    #[inline]
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.0.queue.is_empty() && self.0.passes() {
            return self.0.enqueue_tail(packet);
        }
        R::enqueue(&mut self.0, packet, cx)
    }
    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        self.0.dequeue_head()
    }
    #[inline]
    fn pass_by(&mut self, packet: &Skb) -> bool {
        let passes = self.0.queue.is_empty() && (self.0.passes() || R::takes(&self.0, packet));
        if passes {
            self.0.stats.bytes += u64::from(packet.pkt_len);
            self.0.stats.packets += packet.counts_as();
        }
        passes
    }
    fn drop_one(&mut self, cx: &mut Cx<'_>) -> bool {
        R::drop_one(&mut self.0, cx)
    }
    fn never_wakes(&self) -> bool {
        true
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.0.queue.head()
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        self.0.limit = limit::<R>(options, &self.0.device)?;
        self.0.lets_pass = R::lets_pass(self.0.limit, &self.0.device);
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
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.0.queue.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        Options::new().with("limit", self.0.limit)
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.0.device = *device;
    }
    fn kind(&self) -> &'static str {
        R::KIND
    }
}

/// The queue itself.
#[derive(Debug)]
pub struct Fifo {
    // Parameters
    pub(super) device: Device,
    pub(super) limit: u32,
    /// It is the only qdisc of a transmit queue.
    alone: bool,
    /// `TCQ_F_CAN_BYPASS`.
    lets_pass: bool,
    // Variables
    pub(super) queue: Queue,
    pub(super) stats: Stats,
}

impl Fifo {
    pub(super) fn new(device: &Device, limit: u32) -> Fifo {
        let (queue, stats) = (Queue::default(), Stats::default());
        Fifo { device: *device, limit, alone: false, lets_pass: false, queue, stats }
    }
    /// Whether a packet of any length passes by when nothing waits: `__dev_xmit_skb`, of fifos since 2.6.39.
    #[inline]
    fn passes(&self) -> bool {
        self.alone && self.lets_pass && self.device.kernel >= Kernel::V6_12
    }
    /// txqueuelen of the device, as it counts for a fifo without a limit.
    pub(super) fn tx_queue_len(device: &Device) -> u32 {
        match device.kernel {
            Kernel::V2_6_35 => device.tx_queue_len.max(1),
            Kernel::V6_12 | Kernel::V7_2 => device.tx_queue_len,
        }
    }
    #[inline]
    pub(super) fn enqueue_tail(&mut self, packet: Packet) -> Xmit {
        // Linux counted what came in until 3.0, what goes out since.
        if self.device.kernel == Kernel::V2_6_35 {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
        }
        self.queue.push_tail(packet);
        Xmit::Success
    }
    #[inline]
    pub(super) fn refuse(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, DropReason::Overlimit);
        Xmit::Drop
    }
    #[inline]
    pub(super) fn dequeue_head(&mut self) -> Option<Packet> {
        let packet = self.queue.pop_head()?;
        if self.device.kernel >= Kernel::V6_12 {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
        }
        Some(packet)
    }
    /// `qdisc_queue_drop`: the last packet.
    pub(super) fn drop_tail(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(packet) = self.queue.pop_tail() else { return false };
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, DropReason::Overlimit);
        true
    }
    /// `qdisc_queue_drop_head`: the first packet, which counts as no drop.
    pub(super) fn drop_head(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(packet) = self.queue.pop_head() else { return false };
        cx.drops.drop(packet, DropReason::Overlimit);
        true
    }
    pub(super) fn stats(&self) -> Stats {
        Stats { qlen: self.queue.len(), backlog: self.queue.backlog(), ..self.stats }
    }
}
