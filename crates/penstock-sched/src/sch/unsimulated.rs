//! Kinds that can be set up, checked and shown but carry no packets yet: their parameters behind the [`Qdisc`] contract.
//!
//! A kind file gives its [`Params`]: `change` is the kernel's `init` and `change`, `dump` its `dump`. When a kind learns
//! to carry packets it implements [`Qdisc`] itself and sets [`KindSpec::simulated`](super::KindSpec::simulated).

use crate::cls::Blocks;
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Device, Qdisc, Xmit};
use penstock_model::{KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::ops::RangeInclusive;

/// A netlink policy's range of a number, with the sentence netlink gives.
///
/// # Errors
/// ERANGE.
pub fn range(o: &Options, name: &str, range: RangeInclusive<u32>) -> Result<(), KernelError> {
    match o.u32(name) {
        Some(value) if !range.contains(&value) => {
            Err(KernelError::new(KernelError::ERANGE, "integer out of range"))
        }
        _ => Ok(()),
    }
}

/// The configuration side of one kind.
pub trait Params: Send {
    /// The kind's name.
    fn kind(&self) -> &'static str;
    /// [`Qdisc::change`].
    ///
    /// # Errors
    /// The kernel's errno and sentence; nothing is changed then.
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError>;
    /// [`Qdisc::dump`].
    fn dump(&self) -> Options;
    /// [`Qdisc::xstats`].
    fn xstats(&self, now: Time) -> Option<Options> {
        let _ = now;
        None
    }
    /// [`Qdisc::stats`]; `own` is what was counted here.
    fn stats(&self, own: Stats) -> Stats {
        own
    }
    /// [`Qdisc::take_warning`].
    fn take_warning(&mut self) -> Option<String> {
        None
    }
    /// [`Qdisc::forget_traffic_classes`].
    fn forget_traffic_classes(&mut self, map: bool) {
        let _ = map;
    }
    /// [`Qdisc::share_blocks`].
    fn share_blocks(&mut self, blocks: &Blocks) {
        let _ = blocks;
    }
    /// [`Qdisc::set_device`].
    fn set_device(&mut self, device: &Device, cx: &mut Cx<'_>) {
        let _ = (device, cx);
    }
    /// [`Qdisc::classes`].
    fn classes(&self) -> Option<&dyn Classful> {
        None
    }
    /// [`Qdisc::classes_mut`].
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        None
    }
}

/// A qdisc of a kind that carries no packets: each one that reaches it goes on the ledger as
/// [`DropReason::Unsimulated`].
#[derive(Debug)]
pub struct Unsimulated<P> {
    /// The kind's own side.
    pub params: P,
    stats: Stats,
}

impl<P: Params> Unsimulated<P> {
    /// Around parameters that were checked.
    pub fn new(params: P) -> Unsimulated<P> {
        Unsimulated { params, stats: Stats::default() }
    }
}

impl<P: Params> Qdisc for Unsimulated<P> {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.stats.drops += 1;
        cx.drops.drop(packet, DropReason::Unsimulated);
        Xmit::Drop
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        None
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        None
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        self.params.change(options, cx)
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        if let Some(classes) = self.params.classes_mut() {
            classes.children_mut(&mut |_, child| child.reset(cx));
        }
    }
    fn stats(&self) -> Stats {
        self.params.stats(self.stats)
    }
    fn take_warning(&mut self) -> Option<String> {
        self.params.take_warning()
    }
    fn forget_traffic_classes(&mut self, map: bool) {
        self.params.forget_traffic_classes(map);
    }
    fn share_blocks(&mut self, blocks: &Blocks) {
        self.params.share_blocks(blocks);
    }
    fn qlen(&self) -> u32 {
        0
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    fn dump(&self) -> Options {
        self.params.dump()
    }
    fn xstats(&self, now: Time) -> Option<Options> {
        self.params.xstats(now)
    }
    fn set_device(&mut self, device: &Device, cx: &mut Cx<'_>) {
        self.params.set_device(device, cx);
    }
    fn classes(&self) -> Option<&dyn Classful> {
        self.params.classes()
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        self.params.classes_mut()
    }
    fn kind(&self) -> &'static str {
        self.params.kind()
    }
}
