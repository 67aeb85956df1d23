//! Blocks of filters: priorities, chains, and the requests that change them.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c`, linux v2.6.35 `net/sched/cls_api.c`.
//! Differs: none known.

use super::{Change, Classifier, Hit, Shared, Target, find};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::rtnetlink::{FilterDump, FilterRequest, Verb};
use penstock_model::{Handle, Kernel, KernelError};
use penstock_packet::Skb;
use penstock_packet::headers::ETH_P_ALL;

/// Which block of a qdisc's [`Filters`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct BlockId(u32);

/// One priority: `struct tcf_proto`.
struct Proto {
    prio: u16,
    /// Ethertype in host order.
    protocol: u16,
    classifier: Box<dyn Classifier>,
}

/// `struct tcf_chain`.
struct Chain {
    index: u32,
    /// How many were made before it in its block.
    sequence: u32,
    /// By priority.
    protos: Vec<Proto>,
}

/// `struct tcf_block`.
#[derive(Default)]
struct Block {
    /// What packets meet: chain 0.
    main: Vec<Proto>,
    /// How many chains were made before chain 0, which is made anew whenever it was empty.
    main_sequence: u32,
    /// The other chains, oldest first.
    chains: Vec<Chain>,
    /// Chains made so far.
    made: u32,
}

/// All filters of a qdisc: its own block and those of its classes.
#[derive(Default)]
pub struct Filters {
    shared: Shared,
    blocks: Vec<Block>,
    free: Vec<u32>,
}

impl Block {
    /// `tcf_chain_get`: has the chain made where it is not there.
    fn make_chain(&mut self, index: u32) {
        let sequence = self.made;
        if index == 0 && self.main.is_empty() {
            self.main_sequence = sequence;
        } else if index != 0 && self.chains.iter().all(|c| c.index != index) {
            self.chains.push(Chain { index, sequence, protos: Vec::new() });
        } else {
            return;
        }
        self.made += 1;
    }
}

/// First priority the kernel gives of itself.
const AUTO_PRIO: u16 = 0xc000;
/// Where the priorities begin that the kernel gives.
const AUTO_PRIO_FROM: u16 = 0x8000;
/// Largest index of a chain (`TC_ACT_EXT_VAL_MASK`).
const CHAIN_MAX: u32 = 0x0fff_ffff;

impl Filters {
    /// The qdisc's own block.
    pub const ROOT: BlockId = BlockId(0);

    /// None yet. `qdisc` is the handle of the qdisc they belong to.
    pub fn new(qdisc: Handle) -> Filters {
        let shared = Shared { qdisc, ..Shared::default() };
        Filters { shared, blocks: vec![Block::default()], free: Vec::new() }
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
        for mut proto in taken.main.into_iter().chain(taken.chains.into_iter().flat_map(|c| c.protos)) {
            proto.classifier.destroy(&mut self.shared, classes);
        }
        self.free.push(block.0);
    }
    /// Whether a block has no filter that packets meet.
    #[inline]
    pub fn is_empty(&self, block: BlockId) -> bool {
        self.blocks[block.0 as usize].main.is_empty()
    }
    /// What the first filter of the block that matches says: `tcf_classify` on chain 0.
    #[inline]
    pub fn classify(&self, block: BlockId, skb: &Skb) -> Option<Hit> {
        let protos = &self.blocks[block.0 as usize].main;
        if protos.is_empty() {
            return None;
        }
        let protocol = skb.protocol();
        protos
            .iter()
            .filter(|p| p.protocol == protocol || p.protocol == ETH_P_ALL)
            .find_map(|p| p.classifier.classify(&self.shared, skb))
    }

    /// The priorities of a chain. Chain 0 is always there to be filled.
    fn chain_mut(&mut self, block: BlockId, index: u32) -> Option<&mut Vec<Proto>> {
        let block = &mut self.blocks[block.0 as usize];
        if index == 0 {
            return Some(&mut block.main);
        }
        block.chains.iter_mut().find(|c| c.index == index).map(|c| &mut c.protos)
    }
    /// Drops a chain that nothing is in.
    fn put_chain(&mut self, block: BlockId, index: u32) {
        self.blocks[block.0 as usize].chains.retain(|c| c.index != index || !c.protos.is_empty());
    }

    /// Executes RTM_NEWTFILTER or RTM_DELTFILTER on a block. `classes` is the qdisc these filters were taken out of
    /// for the call; `req.parent` is resolved.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn request(
        &mut self,
        block: BlockId,
        req: &FilterRequest,
        device: &Device,
        classes: &mut dyn Classful,
        cx: &mut Cx<'_>,
    ) -> Result<(), KernelError> {
        let index = match device.kernel {
            Kernel::V2_6_35 => 0,
            Kernel::V6_12 => req.chain.unwrap_or(0),
        };
        if index > CHAIN_MAX {
            return Err(device.refusal(KernelError::EINVAL, "Specified chain index exceeds upper limit"));
        }
        let result = if req.verb == Verb::Del {
            self.delete(block, index, req, device, classes)
        } else {
            self.blocks[block.0 as usize].make_chain(index);
            self.create(block, index, req, device, classes, cx)
        };
        self.put_chain(block, index);
        result
    }

    /// `tc_new_tfilter`.
    fn create(
        &mut self,
        block: BlockId,
        index: u32,
        req: &FilterRequest,
        device: &Device,
        classes: &mut dyn Classful,
        cx: &mut Cx<'_>,
    ) -> Result<(), KernelError> {
        const CREATE: &str = "Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter";
        let may_create = matches!(req.verb, Verb::Add | Verb::Replace);
        let qdisc = self.shared.qdisc;
        let auto = req.prio == 0;
        let wanted = if auto { AUTO_PRIO_FROM } else { req.prio };
        let protos = self.chain_mut(block, index).expect("the chain was made");
        let (mut at, found) = find_proto(protos, wanted, req.protocol, auto, device)?;
        let mut fresh = None;
        if !found {
            let Some(kind) = req.kind.as_deref().filter(|_| req.protocol != 0) else {
                return Err(device.refusal(KernelError::EINVAL, "Filter kind and protocol must be specified"));
            };
            if !may_create {
                return Err(device.refusal(KernelError::ENOENT, CREATE));
            }
            let prio = match protos.get(at) {
                _ if !auto => req.prio,
                Some(next) => next.prio - 1,
                None => AUTO_PRIO,
            };
            let Some(spec) = find(kind) else {
                return Err(device.refusal(KernelError::ENOENT, "TC classifier not found"));
            };
            // A priority that the kernel found of itself may be taken by another protocol by now: 6.12 looks again.
            at = protos.partition_point(|p| p.prio < prio);
            fresh = Some(Proto {
                prio,
                protocol: req.protocol,
                classifier: (spec.build)(&mut self.shared, device.kernel, prio),
            });
        }
        let mut proto = match fresh {
            Some(proto) => proto,
            None => self.chain_mut(block, index).expect("the chain is there").remove(at),
        };
        let result = if req.kind.as_deref().is_some_and(|k| k != proto.classifier.kind()) {
            Err(device.refusal(KernelError::EINVAL, "Specified filter kind does not match existing one"))
        } else {
            let there = proto.classifier.has(&self.shared, req.handle);
            if !there && !may_create {
                Err(device.refusal(KernelError::ENOENT, CREATE))
            } else if there && req.verb == Verb::Add {
                Err(device.refusal(KernelError::EEXIST, "Filter already exists"))
            } else {
                let (parent, handle, options) = (req.parent, req.handle, req.options.as_ref());
                let change = Change {
                    device,
                    qdisc,
                    parent,
                    handle,
                    options,
                    classes: &mut *classes,
                    acts: &mut *cx.acts,
                    now: cx.now,
                    replace: !may_create,
                    estimator: req.estimator,
                };
                proto.classifier.change(&mut self.shared, change)
            }
        };
        if result.is_err() && !found {
            proto.classifier.destroy(&mut self.shared, classes);
        } else {
            self.chain_mut(block, index).expect("the chain is there").insert(at, proto);
        }
        result
    }

    /// `tc_del_tfilter`.
    fn delete(
        &mut self,
        block: BlockId,
        index: u32,
        req: &FilterRequest,
        device: &Device,
        classes: &mut dyn Classful,
    ) -> Result<(), KernelError> {
        const NOT_FOUND: &str = "Filter with specified priority/protocol not found";
        // In 6.12 a chain is there as long as something is in it, chain 0 too.
        let new = device.kernel == Kernel::V6_12;
        let Some(protos) = self.chain_mut(block, index).filter(|protos| !(new && protos.is_empty())) else {
            if req.prio == 0 {
                return Ok(());
            }
            return Err(device.refusal(KernelError::ENOENT, "Cannot find specified filter chain"));
        };
        if req.prio == 0 {
            for mut proto in std::mem::take(protos) {
                proto.classifier.destroy(&mut self.shared, classes);
            }
            return Ok(());
        }
        let (at, found) = find_proto(protos, req.prio, req.protocol, false, device)?;
        if !found {
            // 2.6.35 first wants to know what it would have to make.
            let vague = req.kind.is_none() || req.protocol == 0;
            let old = device.kernel == Kernel::V2_6_35 && vague;
            let errno = if old { KernelError::EINVAL } else { KernelError::ENOENT };
            return Err(device.refusal(errno, NOT_FOUND));
        }
        let mut proto = protos.remove(at);
        if req.kind.as_deref().is_some_and(|k| k != proto.classifier.kind()) {
            self.chain_mut(block, index).expect("the chain is there").insert(at, proto);
            return Err(
                device.refusal(KernelError::EINVAL, "Specified filter kind does not match existing one")
            );
        }
        if req.handle == 0 {
            proto.classifier.destroy(&mut self.shared, classes);
            return Ok(());
        }
        let result = if proto.classifier.has(&self.shared, req.handle) {
            proto.classifier.delete(&mut self.shared, req.handle, device, classes)
        } else {
            Err(device.refusal(KernelError::ENOENT, "Specified filter handle not found"))
        };
        // 2.6.35 keeps a priority without filters.
        if matches!(result, Ok(true)) && device.kernel == Kernel::V6_12 {
            proto.classifier.destroy(&mut self.shared, classes);
        } else {
            self.chain_mut(block, index).expect("the chain is there").insert(at, proto);
        }
        result.map(|_| ())
    }

    /// All filters of a block as RTM_GETTFILTER gives them: a header for each priority, then its filters.
    pub fn dump(&self, block: BlockId, parent: Handle, look: Look<'_>) -> Vec<FilterDump> {
        let block = &self.blocks[block.0 as usize];
        let mut dumps = Vec::new();
        let mut chains = vec![(block.main_sequence, 0, &block.main)];
        chains.extend(block.chains.iter().map(|c| (c.sequence, c.index, &c.protos)));
        chains.sort_unstable_by_key(|&(sequence, index, _)| (sequence, index));
        for (chain, proto) in chains.into_iter().flat_map(|(_, i, protos)| protos.iter().map(move |p| (i, p)))
        {
            let dump = |handle, options| FilterDump {
                kind: proto.classifier.kind(),
                parent,
                protocol: proto.protocol,
                prio: proto.prio,
                chain,
                handle,
                options,
            };
            dumps.push(dump(0, Default::default()));
            proto
                .classifier
                .walk(&self.shared, look, &mut |handle, options| dumps.push(dump(handle, options)));
            if proto.classifier.ends_dump() {
                break;
            }
        }
        dumps
    }

    /// `tc_bind_tclass`: a class was made; filters of classes that name it point at it now.
    pub fn bind_class(&mut self, classid: Handle, classes: &mut dyn Classful) {
        let parent = self.shared.qdisc;
        self.targets(classid, &mut |target| target.bind(parent, classid, classes));
    }
    /// `tc_bind_tclass` with no class: filters of classes that name this one let go of it.
    pub fn unbind_class(&mut self, classid: Handle, classes: &mut dyn Classful) {
        self.targets(classid, &mut |target| target.unbind(classes));
    }
    /// The targets that name a class, of the filters of classes: the kernel walks classes here, and so never comes
    /// to the filters of the qdisc itself.
    fn targets(&mut self, classid: Handle, work: &mut dyn FnMut(&mut Target)) {
        for block in self.blocks.iter_mut().skip(1) {
            let protos = block.main.iter_mut().chain(block.chains.iter_mut().flat_map(|c| &mut c.protos));
            for proto in protos {
                proto.classifier.targets(&mut self.shared, &mut |target| {
                    if target.0.classid == classid {
                        work(target);
                    }
                });
            }
        }
    }
}

/// `tcf_chain_tp_find`: where a priority is or belongs, and whether it is there.
fn find_proto(
    protos: &[Proto],
    prio: u16,
    protocol: u16,
    auto: bool,
    device: &Device,
) -> Result<(usize, bool), KernelError> {
    let at = protos.partition_point(|p| p.prio < prio);
    match protos.get(at).filter(|p| p.prio == prio) {
        None => Ok((at, false)),
        Some(p) if auto || (p.protocol != protocol && protocol != 0) => {
            Err(device.refusal(KernelError::EINVAL, "Filter with specified priority/protocol not found"))
        }
        Some(_) => Ok((at, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, qdisc};
    use crate::tree::Tree;
    use penstock_model::Options;

    fn tree(kernel: Kernel, bench: &mut Bench) -> Tree {
        let mut tree = Tree::new(device(kernel));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![1u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        tree
    }
    fn rule() -> Option<Options> {
        Some(Options::new().with("classid", 0x1_0001u32))
    }
    /// (chain, prio, handle) as listed.
    fn listed(tree: &Tree, bench: &Bench) -> Vec<(u32, u16, u32)> {
        let dumps = tree.dump_filters(Handle::UNSPEC, bench.look()).unwrap();
        dumps.iter().map(|d| (d.chain, d.prio, d.handle)).collect()
    }

    #[test]
    fn the_kernel_numbers_priorities_downwards() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = tree(kernel, &mut bench);
            for mark in ["1", "2"] {
                let words = format!("add protocol 800 handle {mark}");
                tree.filter(&filter(&words, "fw", rule()), &mut bench.cx(0)).unwrap();
            }
            tree.filter(&filter("add prio 5 protocol 800 handle 3", "fw", rule()), &mut bench.cx(0)).unwrap();
            let want = [(0, 5, 0), (0, 5, 3), (0, 49151, 0), (0, 49151, 2), (0, 49152, 0), (0, 49152, 1)];
            assert_eq!(listed(&tree, &bench), want, "{kernel}");
        }
    }

    #[test]
    fn one_priority_has_one_protocol_and_one_kind() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = tree(kernel, &mut bench);
            let mut run = |words: &str, kind: &str| {
                tree.filter(&filter(words, kind, rule()), &mut bench.cx(0)).map_err(|e| (e.errno, e.extack))
            };
            run("add prio 1 protocol 800 handle 1", "fw").unwrap();
            let old = kernel == Kernel::V2_6_35;
            let says = |text: &str| if old { String::new() } else { text.to_owned() };
            let other = says("Filter with specified priority/protocol not found");
            assert_eq!(run("add prio 1 protocol 86dd handle 2", "fw"), Err((22, other)));
            let kind = says("Specified filter kind does not match existing one");
            assert_eq!(run("add prio 1 protocol 800", "u32"), Err((22, kind)));
            assert_eq!(run("add prio 2 protocol 800", "flower").map_err(|e| e.0), Err(2));
        }
    }

    #[test]
    fn the_last_filter_takes_its_priority_along_in_6_12() {
        for (kernel, left) in [(Kernel::V6_12, vec![]), (Kernel::V2_6_35, vec![(0, 1, 0)])] {
            let mut bench = Bench::new();
            let mut tree = tree(kernel, &mut bench);
            let words = "prio 1 protocol 800 handle 1";
            tree.filter(&filter(&format!("add {words}"), "fw", rule()), &mut bench.cx(0)).unwrap();
            tree.filter(&filter(&format!("del {words}"), "fw", None), &mut bench.cx(0)).unwrap();
            assert_eq!(listed(&tree, &bench), left, "{kernel}");
        }
    }
}
