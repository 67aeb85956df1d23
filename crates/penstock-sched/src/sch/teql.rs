//! `teql0`: a slave of the trivial link equalizer, the device `teql0`.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_teql.c` `teql_enqueue`, `teql_dequeue`, `teql_qdisc_init`; which slave gets what
//! `teql0` sends is the machine's to say.
//! Differs: none known.

use super::KindSpec;
use super::fifo::Fifo;
use crate::qdisc::{Cx, Device, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats};
use penstock_packet::{Packet, Skb};

/// The kind: the module makes one equalizer unless it is asked for more.
pub static SPEC: KindSpec = KindSpec {
    id: "teql0",
    about: "makes the device a slave of the link equalizer teql0",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Fifo,
        limit: Limit::None,
        work_conserving: true,
    },
};

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    if init.device.kernel >= Kernel::V6_12 && init.parent != Handle::ROOT {
        let sentence = "sch_teql: teql can only be used as root";
        return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
    }
    Ok(Box::new(Teql { fifo: Fifo::new(&init.device, 0), master: 0, shown: 0 }))
}

/// The qdisc: what the device itself is to send, before what `teql0` has for it.
#[derive(Debug)]
struct Teql {
    fifo: Fifo,
    /// Packets that wait at `teql0`.
    master: u32,
    /// What it says its length is: as of the last time it was asked for a packet, with those at `teql0`.
    shown: u32,
}

impl Qdisc for Teql {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.fifo.queue.len() < self.fifo.device.tx_queue_len {
            return self.fifo.enqueue_tail(packet);
        }
        self.fifo.refuse(packet, cx)
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        let packet = self.fifo.dequeue_head();
        self.shown = self.fifo.queue.len() + self.master;
        packet
    }
    /// Nobody looks ahead: it is for the root alone (`teql_peek`).
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        None
    }
    fn never_wakes(&self) -> bool {
        true
    }
    /// Its card asks again whenever it may send: then `teql0` may have something for it.
    fn watches_idle(&self) -> bool {
        true
    }
    /// There is no such operation.
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let sentence = "Change operation not supported by specified qdisc";
        Err(self.fifo.device.refusal(KernelError::EINVAL, sentence))
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.fifo.queue.purge(cx);
        self.shown = 0;
    }
    fn stats(&self) -> Stats {
        // It counts no bytes that wait.
        Stats { qlen: self.shown, backlog: 0, ..self.fifo.stats }
    }
    fn qlen(&self) -> u32 {
        self.fifo.queue.len()
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.fifo.queue.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        Options::new()
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.fifo.device = *device;
    }
    fn equalizer_holds(&mut self, packets: u32) {
        self.master = packets;
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}
