//! `noop`: what stands where no qdisc stands; drops everything. No kind of its own in tc.
//!
//! Follows: linux v6.12 `net/sched/sch_generic.c` `noop_qdisc_ops`.
//! Differs: none known.

use crate::ledger::DropReason;
use crate::qdisc::{Cx, Qdisc, Xmit};
use penstock_model::{KernelError, Options, Stats};
use penstock_packet::{Packet, Skb};

/// The qdisc that is none. It counts nothing.
#[derive(Debug)]
pub struct Noop;

impl Qdisc for Noop {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        cx.drops.drop(packet, DropReason::Overlimit);
        Xmit::Cn
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        None
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        None
    }
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        Err(KernelError::errno(KernelError::EINVAL))
    }
    fn reset(&mut self, _: &mut Cx<'_>) {}
    fn stats(&self) -> Stats {
        Stats::default()
    }
    fn qlen(&self) -> u32 {
        0
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    fn dump(&self) -> Options {
        Options::new()
    }
    fn kind(&self) -> &'static str {
        "noop"
    }
}
