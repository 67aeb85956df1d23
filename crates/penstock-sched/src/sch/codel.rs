//! `codel`: one queue whose delay CoDel controls.
//!
//! Follows: linux v6.12 `net/sched/sch_codel.c`.
//! Differs: none known.

use super::KindSpec;
use crate::aqm::codel;
use crate::ledger::{DropReason, Ledger};
use crate::qdisc::{Cx, Init, Qdisc, Scribble, Xmit};
use crate::queue::Queue;
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "codel",
    about: "one queue whose delay is controlled by CoDel",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut codel = Codel {
        limit: 1000,
        params: codel::Params::new(),
        mtu: init.device.psched_mtu(),
        root: init.parent == Handle::ROOT,
        vars: codel::Vars::default(),
        counts: codel::Counts::default(),
        drop_overlimit: 0,
        queue: Queue::default(),
        peeked: None,
        stats: Stats::default(),
    };
    codel.change(options, cx)?;
    Ok(Box::new(codel))
}

/// The qdisc.
#[derive(Debug)]
pub struct Codel {
    // Parameters
    /// Packets.
    limit: u32,
    params: codel::Params,
    /// MTU and link header when it was made.
    mtu: u32,
    /// It is the device's own qdisc.
    root: bool,
    // Variables
    vars: codel::Vars,
    counts: codel::Counts,
    drop_overlimit: u32,
    queue: Queue,
    peeked: Option<Packet>,
    stats: Stats,
}

/// The queue, and where its drops go.
struct Drained<'a> {
    queue: &'a mut Queue,
    drops: &'a mut Ledger,
    dropped: u32,
}

impl codel::Queue for Drained<'_> {
    fn pop(&mut self) -> Option<Packet> {
        self.queue.pop_head()
    }
    fn backlog(&self) -> u32 {
        self.queue.backlog()
    }
    fn discard(&mut self, packet: Packet) {
        self.dropped += 1;
        self.drops.drop(packet, DropReason::Early);
    }
}

impl Codel {
    /// `__codel_qdisc_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let mut drained = Drained { queue: &mut self.queue, drops: cx.drops, dropped: 0 };
        let packet = self.vars.dequeue(&mut drained, &self.params, self.mtu, &mut self.counts, cx.now);
        let dropped = drained.dropped;
        self.stats.drops = self.stats.drops.wrapping_add(dropped);
        if let Some(packet) = &packet {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
        }
        packet
    }
}

impl Qdisc for Codel {
    fn stands_alone(&mut self) {
        self.root = true;
    }
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.pass_by(&packet) {
            //= linux v6.12 dev.c __dev_xmit_skb: past an empty root qdisc (TCQ_F_CAN_BYPASS).
            self.peeked = Some(packet);
            return Xmit::Success;
        }
        if self.qlen() < self.limit {
            packet.queued = cx.now;
            self.queue.push_tail(packet);
            return Xmit::Success;
        }
        self.drop_overlimit = self.drop_overlimit.wrapping_add(1);
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, DropReason::Overlimit);
        Xmit::Drop
    }
    fn pass_by(&mut self, packet: &Skb) -> bool {
        let passes = self.root && self.qlen() == 0 && self.limit > 0;
        if passes {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
        }
        passes
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.peeked.take().or_else(|| self.take(cx))
    }
    /// `codel_peek`: a dequeue's work; the packet counts as queued until it goes.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            self.peeked = self.take(cx);
        }
        self.peeked.as_ref()
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        if let Some(o) = options {
            self.params.change(o);
            self.limit = o.u32("limit").unwrap_or(self.limit);
        }
        while self.qlen() > self.limit {
            let Some(packet) = self.peeked.take().or_else(|| self.queue.pop_head()) else { break };
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Purged);
        }
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.queue.purge(cx);
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        self.vars = codel::Vars::default();
    }
    fn stats(&self) -> Stats {
        let peeked = self.peeked.as_ref().map_or(0, |p| p.pkt_len);
        Stats { qlen: self.qlen(), backlog: self.queue.backlog() + peeked, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.queue.len() + u32::from(self.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.queue.iter().for_each(|packet| see(packet));
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        self.params.dump(Options::new().with("limit", self.limit))
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.marks())
    }
    fn xstats(&self, now: Time) -> Option<Options> {
        let o = Options::new()
            .with("maxpacket", self.counts.maxpacket)
            .with("ecn_mark", self.counts.ecn_mark)
            .with("drop_overlimit", self.drop_overlimit)
            .with("ce_mark", self.counts.ce_mark);
        Some(self.vars.xstats(o, now))
    }
    /// `codel_dequeue`: found empty it leaves the state in which it drops.
    fn watches_idle(&self) -> bool {
        true
    }
    fn scribbles(&self) -> Scribble {
        Scribble::Codel
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};

    #[test]
    fn a_change_touches_what_it_names() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((q.dump().u32("limit"), q.dump().u32("interval")), (Some(1000), Some(99_999)));
        q.change(Some(&Options::new().with("limit", 1u32).with("ecn", 1u32)), &mut bench.cx(0)).unwrap();
        assert_eq!((q.dump().u32("limit"), q.dump().u32("ecn")), (Some(1), Some(1)));
        assert_eq!(q.dump().u32("interval"), Some(99_999));
    }
}
