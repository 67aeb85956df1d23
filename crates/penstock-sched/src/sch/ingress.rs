//! `ingress` and `clsact`: places for filters on what a device receives, and with clsact also on what it sends.
//!
//! They hold no packets. Each side has a block of filters: its own, or one that several qdiscs share.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_ingress.c`.
//! Differs: none known.

use super::KindSpec;
use crate::act;
use crate::cls::{BlockId, Blocks, Filters, Gone, SharedBlock, Verdict};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::QdiscRequest;
use penstock_model::{Handle, Kernel, KernelError, Options, Stats};
use penstock_packet::{Packet, Skb};

/// `ingress`.
pub static INGRESS: KindSpec = KindSpec {
    id: "ingress",
    about: "a place for filters on what a device receives",
    kernels: &Kernel::ALL,
    build: |_, _, _| Err(KernelError::errno(KernelError::EOPNOTSUPP)),
    simulated: true,
    traits: Traits {
        classes: Classes::Hooks,
        sorting: Sorting::Nothing,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Nothing,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// `clsact`.
pub static CLSACT: KindSpec = KindSpec {
    id: "clsact",
    about: "a place for filters on what a device receives and sends",
    kernels: &Kernel::LIVING,
    build: |_, _, _| Err(KernelError::errno(KernelError::EOPNOTSUPP)),
    simulated: true,
    traits: Traits {
        classes: Classes::Hooks,
        sorting: Sorting::Nothing,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Nothing,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// Whether it is one of the two.
pub fn is(kind: &str) -> bool {
    kind == INGRESS.id || kind == CLSACT.id
}

/// Minors of the two sides.
const MIN_INGRESS: u16 = 0xfff2;
const MIN_EGRESS: u16 = 0xfff3;

/// The filters of one direction.
enum Side {
    Own(BlockId),
    Shared(SharedBlock),
}

/// Either qdisc.
struct Ingress {
    kind: &'static str,
    filters: Filters,
    ingress: Side,
    /// clsact's other side.
    egress: Option<Side>,
    /// Of 2.6.35.
    old: bool,
    /// What passed, and what its filters dropped.
    stats: Stats,
}

/// `ingress_init`, `clsact_init` at the device's ingress hook.
pub(crate) fn create(init: &Init, req: &QdiscRequest, blocks: &Blocks) -> Node {
    let mut filters = Filters::new(init.handle);
    let clsact = req.kind.as_deref() == Some(CLSACT.id);
    let side = |index: Option<u32>, own: BlockId| match index {
        Some(index) => Side::Shared(blocks.hold(index)),
        None => Side::Own(own),
    };
    let ingress = side(req.ingress_block, Filters::ROOT);
    let egress = clsact.then(|| side(req.egress_block, filters.add_block()));
    let kind = if clsact { CLSACT.id } else { INGRESS.id };
    let old = init.device.kernel == Kernel::V2_6_35;
    Node::new(init, Box::new(Ingress { kind, filters, ingress, egress, old, stats: Stats::default() }))
}

impl Ingress {
    fn side(&self, classid: Handle) -> Option<&Side> {
        match (&self.egress, classid.minor()) {
            (None, _) | (Some(_), MIN_INGRESS) => Some(&self.ingress),
            (Some(egress), MIN_EGRESS) => Some(egress),
            _ => None,
        }
    }
}

impl Qdisc for Ingress {
    /// `tc_run`; `ingress_enqueue` of 2.6.35.
    fn pass(&mut self, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Gone> {
        let side = if skb.tc.at_ingress { Some(&self.ingress) } else { self.egress.as_ref() };
        let (empty, answer) = match side? {
            Side::Own(block) => (self.filters.is_empty(*block), self.filters.answer(*block, skb, cx)),
            Side::Shared(block) => {
                let filters = block.filters();
                (filters.is_empty(Filters::ROOT), filters.answer(Filters::ROOT, skb, cx))
            }
        };
        // Without filters 6.12 does not come here.
        if empty && !self.old {
            return None;
        }
        self.stats.bytes += u64::from(skb.pkt_len);
        self.stats.packets += skb.counts_as();
        let answer = answer?;
        if let act::OK | act::RECLASSIFY = answer.said {
            skb.tc.index = answer.hit.classid.minor();
        }
        if answer.said == act::REDIRECT {
            // Where no device was named it is gone, and nobody counts it.
            crate::ebpf::redirect(skb, cx.acts);
            return Some(Gone::Stolen);
        }
        let Verdict::Gone(gone) = answer.verdict() else { return None };
        if gone == Gone::Shot {
            self.stats.drops = self.stats.drops.wrapping_add(1);
        }
        Some(gone)
    }
    /// Nobody queues anything here.
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        Gone::Shot.leave(packet, cx)
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        None
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        None
    }
    fn reset(&mut self, _: &mut Cx<'_>) {}
    fn stats(&self) -> Stats {
        self.stats
    }
    fn qlen(&self) -> u32 {
        0
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    fn kind(&self) -> &'static str {
        self.kind
    }
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        Ok(())
    }
    fn dump(&self) -> Options {
        let mut o = Options::new();
        if let Side::Shared(block) = &self.ingress {
            o.set("ingress_block", block.index().into());
        }
        if let Some(Side::Shared(block)) = &self.egress {
            o.set("egress_block", block.index().into());
        }
        o
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
}

impl Classful for Ingress {
    /// ingress finds a class of any number, clsact its two.
    fn find(&self, classid: Handle) -> bool {
        self.side(classid).is_some()
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        match self.side(classid)? {
            Side::Own(block) => Some(*block),
            Side::Shared(_) => None,
        }
    }
    fn shared_block(&self, classid: Handle) -> Option<SharedBlock> {
        match self.side(classid)? {
            Side::Own(_) => None,
            Side::Shared(block) => Some(block.clone()),
        }
    }
    fn bind(&mut self, _: Handle, classid: Handle) -> u32 {
        match &self.egress {
            None => u32::from(classid.minor()) + 1,
            Some(_) if self.side(classid).is_some() => u32::from(classid.minor()),
            Some(_) => 0,
        }
    }
}
