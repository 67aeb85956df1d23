//! Blocks of filters: chains of priorities.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c`, linux v2.6.35 `net/sched/cls_api.c`.
//! Differs: none known.

use super::flower::Template;
use super::{Answer, Classifier, Exts, Shared, Target, Verdict};
use crate::act::{self, Look};
use crate::qdisc::{Classful, Cx};
use penstock_model::rtnetlink::{ChainDump, FilterDump};
use penstock_model::{Handle, KernelError, Options};
use penstock_packet::Skb;
use penstock_packet::headers::ETH_P_ALL;
use std::collections::BTreeSet;

/// Which block of a qdisc's [`Filters`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockId(pub(super) u32);

/// One priority: `struct tcf_proto`.
pub(super) struct Proto {
    pub prio: u16,
    /// Ethertype in host order.
    pub protocol: u16,
    pub classifier: Box<dyn Classifier>,
}

/// `struct tcf_chain`. There as long as something is in it or it was made by name.
pub(super) struct Chain {
    pub index: u32,
    /// By priority.
    pub protos: Vec<Proto>,
    /// Made by `tc chain add`.
    pub explicit: bool,
    /// Actions of this block's filters go to it (`goto chain`): it is there then, though nothing be in it.
    pub held: bool,
    /// What its filters may look at.
    pub template: Option<Template>,
}

impl Chain {
    /// `tcf_chain_held_by_acts_only`: there for actions alone, and not to be seen.
    pub fn is_held_only(&self) -> bool {
        self.held && self.protos.is_empty() && !self.explicit
    }
}

/// `struct tcf_block`.
#[derive(Default)]
pub(super) struct Block {
    /// Oldest first.
    pub chains: Vec<Chain>,
    /// Where chain 0 is among them, which packets meet first.
    main: Option<u32>,
    /// What the last request to make a filter named as its parent.
    pub classid: Handle,
}

impl Block {
    fn main(&self) -> &[Proto] {
        self.main.map_or(&[], |at| &self.chains[at as usize].protos)
    }
    pub fn chain(&self, index: u32) -> Option<&Chain> {
        self.chains.iter().find(|c| c.index == index)
    }
    pub fn chain_mut(&mut self, index: u32) -> Option<&mut Chain> {
        self.chains.iter_mut().find(|c| c.index == index)
    }
    /// `tcf_chain_get`: has the chain made where it is not there.
    pub fn make_chain(&mut self, index: u32) -> &mut Chain {
        let at = self.chains.iter().position(|c| c.index == index).unwrap_or_else(|| {
            if index == 0 {
                self.main = Some(self.chains.len() as u32);
            }
            self.chains.push(Chain {
                index,
                protos: Vec::new(),
                explicit: false,
                held: false,
                template: None,
            });
            self.chains.len() - 1
        });
        &mut self.chains[at]
    }
    /// `tcf_chain_put`: drops the chain if nothing is in it and nobody made it by name.
    pub fn put_chain(&mut self, index: u32) {
        let gone = |c: &Chain| c.index == index && c.protos.is_empty() && !c.explicit && !c.held;
        if let Some(at) = self.chains.iter().position(gone) {
            self.chains.remove(at);
            self.main = self.chains.iter().position(|c| c.index == 0).map(|at| at as u32);
        }
    }
    pub fn protos_mut(&mut self) -> impl Iterator<Item = &mut Proto> {
        self.chains.iter_mut().flat_map(|c| &mut c.protos)
    }
}

/// All filters of a qdisc: its own block and those of its classes; or those of one shared block.
#[derive(Default)]
pub struct Filters {
    pub(super) shared: Shared,
    pub(super) blocks: Vec<Block>,
    free: Vec<u32>,
    /// Blocks of classes that have been asked for a filter: all others have none.
    pub(super) asked: BTreeSet<u32>,
    /// They are of 2.6.35.
    pub(super) old: bool,
    /// There has been one.
    pub(super) ever: bool,
}

/// How often a packet may be classified anew (`max_reclassify_loop`; `MAX_REC_LOOP` of 2.6.35).
const LOOPS: u32 = 16;
const OLD_LOOPS: u32 = 4;

/// What a `show` asks the kernel for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Select {
    /// Only this priority; 0: all.
    pub prio: u16,
    /// Only this protocol; 0: all.
    pub protocol: u16,
    /// Only this chain.
    pub chain: Option<u32>,
    /// `-br`: handles and what hardware does only.
    pub terse: bool,
}

/// What a dump says of where its filters are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Where {
    /// In a qdisc's own block, with this parent.
    Own(Handle),
    /// In the shared block of this number.
    Shared(u32),
}

/// A dump, and the kernel's complaint that ended it early.
pub type Dumped = (Vec<FilterDump>, Option<KernelError>);

impl Filters {
    /// The qdisc's own block.
    pub const ROOT: BlockId = BlockId(0);

    /// None yet. `qdisc` is the handle of the qdisc they belong to.
    pub fn new(qdisc: Handle) -> Filters {
        let shared = Shared { qdisc, ..Shared::default() };
        Filters { shared, blocks: vec![Block::default()], ..Filters::default() }
    }
    /// Those of the shared block `index`.
    pub(super) fn of_block(index: u32) -> Filters {
        let shared = Shared { block: index, ..Shared::default() };
        Filters { shared, blocks: vec![Block::default()], ..Filters::default() }
    }
    /// A block for a class.
    pub fn add_block(&mut self) -> BlockId {
        let index = self.free.pop().unwrap_or(self.blocks.len() as u32);
        if index as usize == self.blocks.len() {
            self.blocks.push(Block::default());
        }
        BlockId(index)
    }
    /// Deletes a block and its filters. `classes` is the qdisc these filters were taken out of for the call.
    pub fn remove_block(&mut self, block: BlockId, classes: &mut dyn Classful) {
        let taken = std::mem::take(&mut self.blocks[block.0 as usize]);
        for mut proto in taken.chains.into_iter().flat_map(|c| c.protos) {
            proto.classifier.destroy(&mut self.shared, classes);
        }
        self.free.push(block.0);
        self.asked.remove(&block.0);
    }
    /// Whether a block has no filter that packets meet.
    #[inline]
    pub fn is_empty(&self, block: BlockId) -> bool {
        self.blocks[block.0 as usize].main().is_empty()
    }
    /// Whether there is or was a filter, after which no packet passes by the qdisc (`tc_new_tfilter`, `TCQ_F_CAN_BYPASS`).
    pub fn were_there(&self) -> bool {
        self.ever
    }
    /// What the filters of the block make of a packet: `tcf_classify` from chain 0 on.
    #[inline]
    pub fn classify(&self, block: BlockId, skb: &mut Skb, cx: &mut Cx<'_>) -> Verdict {
        match self.answer(block, skb, cx) {
            None => Verdict::Unmatched,
            Some(answer) => answer.verdict(),
        }
    }
    /// The same with the control action itself, which is `drop` where the packet went round too often.
    #[inline]
    pub fn answer(&self, block: BlockId, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        let block = &self.blocks[block.0 as usize];
        let protos = block.main();
        if protos.is_empty() {
            return None;
        }
        let answer = self.pass(protos, skb, cx)?;
        if answer.said == act::OK { Some(answer) } else { self.conclude(block, answer, skb, cx) }
    }
    /// The answer of the first priority that has one.
    #[inline]
    fn pass(&self, protos: &[Proto], skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        protos.iter().find_map(|p| {
            // An action may have changed it.
            let protocol = skb.rare().vlan.map_or(skb.declared(), |(protocol, _)| protocol);
            if p.protocol != ETH_P_ALL && p.protocol != protocol {
                return None;
            }
            cx.drops.work.steps += 1;
            p.classifier.classify(&self.shared, skb, cx)
        })
    }
    /// `__tcf_classify` from an action's answer on: again from the start, or in another chain, until something is settled.
    #[cold]
    fn conclude(&self, block: &Block, first: Answer, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        let mut answer = first;
        for _ in 0..if self.old { OLD_LOOPS } else { LOOPS } {
            let Some(protos) = self.next_stop(block, answer.said) else { return Some(answer) };
            answer = self.pass(protos, skb, cx)?;
        }
        let settled = self.next_stop(block, answer.said).is_none();
        Some(if settled { answer } else { Answer { said: act::SHOT, ..answer } })
    }
    /// Where a packet goes on that an action sends to other filters.
    fn next_stop<'b>(&self, block: &'b Block, said: i32) -> Option<&'b [Proto]> {
        if said == act::RECLASSIFY {
            return Some(block.main());
        }
        let chain = act::goto_chain(said).filter(|_| !self.old)?;
        Some(block.chain(chain).map_or(&[], |chain| &chain.protos))
    }
    /// Shows the kind of each priority of every block and whether all it holds is matched as in the kernel
    /// ([`Classifier::exact`]), and with each of its filters' actions once more.
    pub fn kinds(&self, visit: &mut dyn FnMut(&'static str, bool, Option<&Exts>)) {
        for proto in self.blocks.iter().flat_map(|b| &b.chains).flat_map(|c| &c.protos) {
            let (kind, exact) = (proto.classifier.kind(), proto.classifier.exact());
            let kind = proto.classifier.lacks().unwrap_or(kind);
            visit(kind, exact, None);
            proto.classifier.exts(&self.shared, &mut |exts| visit(kind, exact, Some(exts)));
        }
    }

    fn place(&self, parent: Handle) -> Where {
        match self.shared.block {
            0 => Where::Own(parent),
            index => Where::Shared(index),
        }
    }

    /// The filters of a block as RTM_GETTFILTER gives them: a header for each priority, then its filters.
    pub fn dump(&self, block: BlockId, select: Select, look: Look<'_>) -> Dumped {
        let block = &self.blocks[block.0 as usize];
        let place = self.place(block.classid);
        let mut dumps = Vec::new();
        for chain in block.chains.iter().filter(|c| select.chain.is_none_or(|index| index == c.index)) {
            for proto in &chain.protos {
                let asked = (select.prio == 0 || select.prio == proto.prio)
                    && (select.protocol == 0 || select.protocol == proto.protocol);
                if !asked {
                    continue;
                }
                let head = proto.classifier.header(look);
                let (handle, options) = head.map_or((0, None), |(handle, options)| (handle, Some(options)));
                dumps.push(one(proto, chain.index, place, handle, options));
                let mut ended = proto.classifier.ends_dump();
                proto.classifier.walk(&self.shared, look, &mut |handle, options| {
                    if ended {
                        return;
                    }
                    if !select.terse {
                        dumps.push(one(proto, chain.index, place, handle, options));
                    } else if let Some(terse) = proto.classifier.terse(options) {
                        dumps.push(one(proto, chain.index, place, handle, Some(terse)));
                    } else {
                        ended = true;
                    }
                });
                if ended {
                    return (dumps, Some(KernelError::errno(KernelError::EMSGSIZE)));
                }
            }
        }
        (dumps, None)
    }
    /// One filter of a priority.
    pub(super) fn dump_one(
        &self,
        block: BlockId,
        chain: u32,
        prio: u16,
        handle: u32,
        parent: Handle,
        look: Look<'_>,
    ) -> Option<FilterDump> {
        let chain = self.blocks[block.0 as usize].chain(chain)?;
        let proto = chain.protos.iter().find(|p| p.prio == prio)?;
        let (handle, options) = proto.classifier.one(&self.shared, handle, look)?;
        Some(one(proto, chain.index, self.place(parent), handle, options))
    }
    /// The chains of a block as RTM_GETCHAIN gives them.
    pub fn dump_chains(&self, block: BlockId, index: Option<u32>) -> Vec<ChainDump> {
        let chains = &self.blocks[block.0 as usize].chains;
        let asked = chains.iter().filter(|c| index.is_none_or(|index| index == c.index) && !c.is_held_only());
        asked
            .map(|chain| ChainDump {
                parent: self.shared.qdisc,
                block: self.shared.block,
                chain: chain.index,
                explicit: chain.explicit,
                template: chain.template.as_ref().map(|t| ("flower", t.dump())),
            })
            .collect()
    }

    /// `tc_bind_tclass`: a class was made; filters of classes that name it point at it now.
    pub fn bind_class(&mut self, classid: Handle, classes: &mut dyn Classful) {
        let (parent, root) = (self.shared.qdisc, classes.root_is_class());
        self.targets(classid, root, &mut |target| target.bind(parent, classid, classes));
    }
    /// `tc_bind_tclass` with no class: filters of classes that name this one let go of it.
    pub fn unbind_class(&mut self, classid: Handle, classes: &mut dyn Classful) {
        let root = classes.root_is_class();
        self.targets(classid, root, &mut |target| target.unbind(classes));
    }
    /// The targets that name a class, of the filters of classes: the kernel walks classes here, and so never comes
    /// to the filters of the qdisc itself, unless a class stands for it (`root`).
    fn targets(&mut self, classid: Handle, root: bool, work: &mut dyn FnMut(&mut Target)) {
        let own = root.then_some(0);
        for block in own.into_iter().chain(self.asked.iter().copied().filter(|&block| block != 0)) {
            for proto in self.blocks[block as usize].protos_mut() {
                proto.classifier.targets(&mut self.shared, &mut |target| {
                    if target.0.classid == classid {
                        work(target);
                    }
                });
            }
        }
    }
}

fn one(proto: &Proto, chain: u32, place: Where, handle: u32, options: Option<Options>) -> FilterDump {
    let (parent, block) = match place {
        Where::Own(parent) => (parent, 0),
        Where::Shared(index) => (Handle::UNSPEC, index),
    };
    FilterDump {
        kind: proto.classifier.kind(),
        block,
        parent,
        protocol: proto.protocol,
        prio: proto.prio,
        chain,
        handle,
        options,
    }
}
