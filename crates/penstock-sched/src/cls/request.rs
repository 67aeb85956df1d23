//! The requests that change blocks of filters.
//!
//! Follows: linux v6.12 `net/sched/cls_api.c` `tc_new_tfilter`, `tc_del_tfilter`, `tc_get_tfilter`, `tc_ctl_chain`; linux v2.6.35
//! `net/sched/cls_api.c` `tc_ctl_tfilter`.

use super::block::Proto;
use super::flower::Template;
use super::{BlockId, Change, Filters, find};
use crate::act::{Actions, Look};
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::rtnetlink::{ChainDump, FilterDump, FilterRequest, Verb};
use penstock_model::{Kernel, KernelError, Options};
use std::collections::BTreeSet;

/// First priority the kernel gives of itself.
const AUTO_PRIO: u16 = 0xc000;
/// Where the priorities begin that the kernel gives.
const AUTO_PRIO_FROM: u16 = 0x8000;
/// Largest index of a chain (`TC_ACT_EXT_VAL_MASK`).
const CHAIN_MAX: u32 = 0x0fff_ffff;

const NO_CHAIN: &str = "Cannot find specified filter chain";
const NOT_FOUND: &str = "Filter with specified priority/protocol not found";
const OTHER_KIND: &str = "Specified filter kind does not match existing one";

type Answer<T = ()> = Result<T, KernelError>;

/// What is refused before the qdisc is looked for: a priority of 0 where none can be chosen.
///
/// # Errors
/// The kernel's errno and sentence.
pub(crate) fn check_prio(req: &FilterRequest, device: &Device) -> Answer {
    if req.prio != 0 {
        return Ok(());
    }
    let why = match (req.verb, device.kernel) {
        (Verb::Add | Verb::Replace, _) => return Ok(()),
        (Verb::Del, Kernel::V6_12 | Kernel::V7_2) => {
            if req.protocol == 0 && req.handle == 0 && req.kind.is_none() {
                return Ok(());
            }
            "Cannot flush filters with protocol, handle or kind set"
        }
        _ => "Invalid filter command with priority of zero",
    };
    Err(device.refusal(KernelError::ENOENT, why))
}

/// The index of the chain a request is about. There was only one in 2.6.35.
fn chain_index(req: &FilterRequest, device: &Device) -> Answer<u32> {
    let index = match device.kernel {
        Kernel::V2_6_35 => 0,
        Kernel::V6_12 | Kernel::V7_2 => req.chain.unwrap_or(0),
    };
    if index > CHAIN_MAX {
        return Err(device.refusal(KernelError::EINVAL, "Specified chain index exceeds upper limit"));
    }
    Ok(index)
}

impl Filters {
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
    ) -> Answer {
        self.old = device.kernel == Kernel::V2_6_35;
        let del = req.verb == Verb::Del;
        if !del || device.kernel == Kernel::V2_6_35 {
            self.blocks[block.0 as usize].classid = req.parent;
        }
        let index = chain_index(req, device)?;
        let result = if del {
            self.delete(block, index, req, device, classes)
        } else {
            self.asked.insert(block.0);
            self.blocks[block.0 as usize].make_chain(index);
            self.create(block, index, req, device, classes, cx)
        };
        if result.is_ok() && !del {
            let all = &mut self.blocks[block.0 as usize];
            req.options.iter().flat_map(goto_chains).for_each(|index| all.make_chain(index).held = true);
        }
        // What is added lets go of nothing.
        if req.verb != Verb::Add {
            self.let_go(block, cx.acts);
        }
        self.blocks[block.0 as usize].put_chain(index);
        result
    }

    /// `tcf_chain_put_by_act`: chains that no action of the block's filters goes to any more.
    fn let_go(&mut self, block: BlockId, acts: &Actions) {
        let Filters { shared, blocks, .. } = self;
        let block = &mut blocks[block.0 as usize];
        if !block.chains.iter().any(|c| c.held) {
            return;
        }
        let mut wanted = BTreeSet::new();
        for proto in block.chains.iter().flat_map(|c| &c.protos) {
            proto.classifier.exts(shared, &mut |exts| wanted.extend(exts.chains(acts)));
        }
        let gone: Vec<u32> =
            block.chains.iter().filter(|c| c.held && !wanted.contains(&c.index)).map(|c| c.index).collect();
        for index in gone {
            block.make_chain(index).held = false;
            block.put_chain(index);
        }
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
    ) -> Answer {
        const CREATE: &str = "Need both RTM_NEWTFILTER and NLM_F_CREATE to create a new filter";
        let may_create = matches!(req.verb, Verb::Add | Verb::Replace);
        let Filters { shared, blocks, .. } = self;
        let chain = blocks[block.0 as usize].make_chain(index);
        let auto = req.prio == 0;
        let wanted = if auto { AUTO_PRIO_FROM } else { req.prio };
        let (mut at, found) = find_proto(&chain.protos, wanted, req.protocol, auto, device)?;
        if !found {
            let Some(kind) = req.kind.as_deref().filter(|_| req.protocol != 0) else {
                return Err(device.refusal(KernelError::EINVAL, "Filter kind and protocol must be specified"));
            };
            if !may_create {
                return Err(device.refusal(KernelError::ENOENT, CREATE));
            }
            let prio = match chain.protos.get(at) {
                _ if !auto => req.prio,
                Some(next) => next.prio - 1,
                None => AUTO_PRIO,
            };
            let Some(spec) = find(kind, device.kernel) else {
                return Err(device.refusal(KernelError::ENOENT, "TC classifier not found"));
            };
            // A priority that the kernel found of itself may be taken by another protocol by now: 6.12 looks again.
            at = chain.protos.partition_point(|p| p.prio < prio);
            let classifier = (spec.build)(shared, device.kernel, prio);
            chain.protos.insert(at, Proto { prio, protocol: req.protocol, classifier });
        }
        let proto = &mut chain.protos[at];
        let kind = proto.classifier.kind();
        let result = if req.kind.as_deref().is_some_and(|k| k != kind) {
            Err(device.refusal(KernelError::EINVAL, OTHER_KIND))
        } else {
            let there = proto.classifier.has(shared, req.handle);
            if !there && !may_create {
                Err(device.refusal(KernelError::ENOENT, CREATE))
            } else if there && req.verb == Verb::Add {
                Err(device.refusal(KernelError::EEXIST, "Filter already exists"))
            } else if chain.template.is_some() && kind != "flower" {
                let why = "Chain template is set to a different filter kind";
                Err(device.refusal(KernelError::EINVAL, why))
            } else {
                let change = Change {
                    device,
                    qdisc: shared.qdisc,
                    parent: req.parent,
                    handle: req.handle,
                    options: req.options.as_ref(),
                    template: chain.template.as_ref(),
                    classes: &mut *classes,
                    acts: &mut *cx.acts,
                    now: cx.now,
                    replace: !may_create,
                    estimator: req.estimator,
                };
                proto.classifier.change(shared, change)
            }
        };
        if result.is_err() && !found {
            let mut proto = chain.protos.remove(at);
            proto.classifier.destroy(shared, classes);
        }
        self.ever |= result.is_ok();
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
    ) -> Answer {
        let new = device.kernel >= Kernel::V6_12;
        let Filters { shared, blocks, .. } = self;
        if !new {
            blocks[block.0 as usize].make_chain(0);
        }
        let Some(chain) = blocks[block.0 as usize].chain_mut(index) else {
            if req.prio == 0 {
                return Ok(());
            }
            return Err(device.refusal(KernelError::ENOENT, NO_CHAIN));
        };
        if req.prio == 0 {
            for mut proto in std::mem::take(&mut chain.protos) {
                proto.classifier.destroy(shared, classes);
            }
            return Ok(());
        }
        let (at, found) = find_proto(&chain.protos, req.prio, req.protocol, false, device)?;
        if !found {
            // 2.6.35 first wants to know what it would have to make.
            let vague = req.kind.is_none() || req.protocol == 0;
            let errno = if !new && vague { KernelError::EINVAL } else { KernelError::ENOENT };
            return Err(device.refusal(errno, NOT_FOUND));
        }
        let proto = &mut chain.protos[at];
        if req.kind.as_deref().is_some_and(|k| k != proto.classifier.kind()) {
            return Err(device.refusal(KernelError::EINVAL, OTHER_KIND));
        }
        let last = if req.handle == 0 {
            true
        } else if proto.classifier.has(shared, req.handle) {
            // 2.6.35 keeps a priority without filters.
            proto.classifier.delete(shared, req.handle, device, classes)? && new
        } else {
            return Err(device.refusal(KernelError::ENOENT, "Specified filter handle not found"));
        };
        if last {
            let mut proto = chain.protos.remove(at);
            proto.classifier.destroy(shared, classes);
        }
        Ok(())
    }

    /// `tc_get_tfilter`.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn get(
        &self,
        block: BlockId,
        req: &FilterRequest,
        device: &Device,
        look: Look<'_>,
    ) -> Answer<FilterDump> {
        let index = chain_index(req, device)?;
        let Some(chain) = self.blocks[block.0 as usize].chain(index) else {
            return Err(device.refusal(KernelError::EINVAL, NO_CHAIN));
        };
        let (at, found) = find_proto(&chain.protos, req.prio, req.protocol, false, device)?;
        if !found {
            return Err(device.refusal(KernelError::ENOENT, NOT_FOUND));
        }
        let proto = &chain.protos[at];
        if req.kind.as_deref().is_some_and(|k| k != proto.classifier.kind()) {
            return Err(device.refusal(KernelError::EINVAL, OTHER_KIND));
        }
        let known = proto.classifier.has(&self.shared, req.handle);
        known
            .then(|| self.dump_one(block, index, req.prio, req.handle, req.parent, look))
            .flatten()
            .ok_or_else(|| device.refusal(KernelError::ENOENT, "Specified filter handle not found"))
    }

    /// Executes RTM_NEWCHAIN or RTM_DELCHAIN on a block.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn chain_request(
        &mut self,
        block: BlockId,
        req: &FilterRequest,
        device: &Device,
        classes: &mut dyn Classful,
    ) -> Answer {
        let index = chain_index(req, device)?;
        let Filters { shared, blocks, .. } = self;
        let block = &mut blocks[block.0 as usize];
        if req.verb == Verb::Del {
            let Some(chain) = block.chain_mut(index).filter(|c| !c.is_held_only()) else {
                return Err(device.refusal(KernelError::EINVAL, NO_CHAIN));
            };
            for mut proto in std::mem::take(&mut chain.protos) {
                proto.classifier.destroy(shared, classes);
            }
            (chain.explicit, chain.template) = (false, None);
            block.put_chain(index);
            return Ok(());
        }
        if block.chain(index).is_some_and(|c| !c.is_held_only()) {
            return Err(device.refusal(KernelError::EEXIST, "Filter chain already exists"));
        }
        let template = match req.kind.as_deref() {
            None => None,
            Some(kind) if find(kind, device.kernel).is_none() => {
                return Err(device.refusal(KernelError::ENOENT, "TC classifier not found"));
            }
            Some("flower") => Some(Template::new(req.options.as_ref(), device)?),
            Some(_) => {
                let why = "Chain templates are not supported with specified classifier";
                return Err(device.refusal(KernelError::EOPNOTSUPP, why));
            }
        };
        let chain = block.make_chain(index);
        (chain.explicit, chain.template) = (true, template);
        Ok(())
    }

    /// `tc_ctl_chain` with RTM_GETCHAIN.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn get_chain(&self, block: BlockId, req: &FilterRequest, device: &Device) -> Answer<ChainDump> {
        let index = chain_index(req, device)?;
        self.dump_chains(block, Some(index))
            .pop()
            .ok_or_else(|| device.refusal(KernelError::EINVAL, NO_CHAIN))
    }
}

/// The chains that the actions of a request go to.
fn goto_chains(options: &Options) -> impl Iterator<Item = u32> + '_ {
    let controls = options.list("action").iter().filter_map(|one| one.nested("options")).flat_map(|o| {
        let random = o.nested("random").and_then(|r| r.i64("action"));
        [o.i64("action"), o.i64("result"), random]
    });
    controls.flatten().filter_map(|control| crate::act::goto_chain(control as i32))
}

/// `tcf_chain_tp_find`: where a priority is or belongs, and whether it is there.
fn find_proto(
    protos: &[Proto],
    prio: u16,
    protocol: u16,
    auto: bool,
    device: &Device,
) -> Answer<(usize, bool)> {
    let at = protos.partition_point(|p| p.prio < prio);
    match protos.get(at).filter(|p| p.prio == prio) {
        None => Ok((at, false)),
        Some(p) if auto || (p.protocol != protocol && protocol != 0) => {
            Err(match (device.kernel >= Kernel::V7_2, auto) {
                (false, _) => device.refusal(KernelError::EINVAL, NOT_FOUND),
                (true, true) => {
                    device.refusal(KernelError::ENOSPC, "Lowest ID from auto-alloc range already in use")
                }
                (true, false) => device
                    .refusal(KernelError::EINVAL, "Protocol mismatch for filter with specified priority"),
            })
        }
        Some(_) => Ok((at, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, qdisc};
    use crate::tree::Tree;
    use penstock_model::Handle;

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
            let other = says(match kernel {
                Kernel::V7_2 => "Protocol mismatch for filter with specified priority",
                _ => "Filter with specified priority/protocol not found",
            });
            assert_eq!(run("add prio 1 protocol 86dd handle 2", "fw"), Err((22, other)));
            let kind = says("Specified filter kind does not match existing one");
            assert_eq!(run("add prio 1 protocol 800", "u32"), Err((22, kind)));
            assert_eq!(run("add prio 2 protocol 800", "nonesuch").map_err(|e| e.0), Err(2));
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
