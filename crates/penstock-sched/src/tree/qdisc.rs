//! What `tc qdisc` asks of a tree.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_api.c` `tc_modify_qdisc`, `tc_get_qdisc`, `qdisc_create`, `qdisc_graft`.

use super::{AUTO_HANDLE, Answer, DEFAULT_TX_QUEUE_LEN, DEPTH_MAX, Place, Tree, handles_below, reduce};
use crate::node::{Node, Shift};
use crate::qdisc::{Classful, Cx, Device, Init};
use crate::sch;
use crate::stab::Stab;
use penstock_model::rtnetlink::{QdiscRequest, Verb};
use penstock_model::{Handle, Kernel, KernelError};

impl Tree {
    /// Executes RTM_NEWQDISC or RTM_DELQDISC.
    ///
    /// # Errors
    /// The kernel's errno and sentence. Nothing is changed then.
    pub fn qdisc(&mut self, req: &QdiscRequest, cx: &mut Cx<'_>) -> Answer {
        match req.verb {
            Verb::Del => self.delete_qdisc(req, cx),
            _ => self.modify_qdisc(req, cx),
        }
    }

    /// `tc_modify_qdisc`.
    fn modify_qdisc(&mut self, req: &QdiscRequest, cx: &mut Cx<'_>) -> Answer {
        let device = self.device;
        let old = device.kernel == Kernel::V2_6_35;
        let no = |errno, why| Err(device.refusal(errno, why));
        let invalid_name = invalid_name(device.kernel);
        let kind_differs = |node: &Node| req.kind.as_deref().is_some_and(|k| k != node.kind());
        let may_create = matches!(req.verb, Verb::Add | Verb::Replace | Verb::Create);

        if req.parent == Handle::INGRESS {
            self.ingress_queue = true;
        }
        let target = if req.parent == Handle::UNSPEC {
            if req.handle == Handle::UNSPEC {
                return no(KernelError::EINVAL, "Handle cannot be zero");
            }
            self.node(req.handle)
        } else {
            let here = match req.parent {
                Handle::ROOT => Some(&self.root),
                Handle::INGRESS => self.ingress.as_ref(),
                parent => {
                    let above = self.node(parent.qdisc()).filter(|_| device.kernel >= Kernel::V7_2);
                    if above.is_some_and(|node| matches!(node.kind(), "ingress" | "clsact")) {
                        return no(KernelError::EOPNOTSUPP, "Cannot add children to ingress/clsact qdisc");
                    }
                    self.leaf(parent)?
                }
            };
            let here = here.filter(|n| n.handle != Handle::UNSPEC);
            match here {
                Some(node) if req.handle != Handle::UNSPEC && node.handle == req.handle => Some(node),
                _ if req.handle != Handle::UNSPEC => {
                    if here.is_some() && !matches!(req.verb, Verb::Replace | Verb::Link) {
                        return no(KernelError::EEXIST, "NLM_F_REPLACE needed to override");
                    }
                    if req.handle.minor() != 0 {
                        return no(KernelError::EINVAL, "Invalid minor handle");
                    }
                    return match self.node(req.handle) {
                        None => self.create_and_graft(req, may_create, cx),
                        Some(_) if !old && !self.stands_in(req.handle, req.parent) => {
                            no(KernelError::EINVAL, "Cannot move an existing qdisc to a different parent")
                        }
                        Some(_) if req.verb == Verb::Add => {
                            no(KernelError::EEXIST, "Exclusivity flag on, cannot override")
                        }
                        Some(node) if kind_differs(node) => no(KernelError::EINVAL, invalid_name),
                        // Of a class that shows none (hfsc's parents): `hfsc_graft_class` takes none.
                        Some(_) => Err(KernelError::errno(KernelError::EINVAL)),
                    };
                }
                None => return self.create_and_graft(req, may_create, cx),
                Some(node) if kind_differs(node) => match req.verb {
                    Verb::Replace => return self.create_and_graft(req, true, cx),
                    Verb::Add | Verb::Change if !old => return self.create_and_graft(req, true, cx),
                    _ => Some(node),
                },
                here => here,
            }
        };

        let Some(node) = target else { return no(KernelError::ENOENT, "Specified qdisc not found") };
        if req.verb == Verb::Add {
            return no(KernelError::EEXIST, "Exclusivity flag on, cannot modify");
        }
        if kind_differs(node) {
            return no(KernelError::EINVAL, invalid_name);
        }
        if sch::ingress::is(node.kind()) {
            return match (&req.options, req.ingress_block.or(req.egress_block)) {
                (None, _) => Ok(()),
                (Some(_), Some(_)) => no(KernelError::EOPNOTSUPP, "Change of blocks is not supported"),
                (Some(_), None) => {
                    no(KernelError::EINVAL, "Change operation not supported by specified qdisc")
                }
            };
        }
        if req.options.is_some() && req.ingress_block.or(req.egress_block).is_some() {
            return no(KernelError::EOPNOTSUPP, "Change of blocks is not supported");
        }
        let handle = node.handle;
        let before = handles_below(node);
        let stab = req.stab.as_ref().map(|s| Stab::new(s, &device)).transpose();
        let mut sequence = self.sequence;
        let result = self.watched(handle, cx, |node, cx| {
            let mut warning = None;
            if req.options.is_some() {
                node.change(req.options.as_ref(), cx)?;
                warning = node.take_warning();
                Tree::count(node, &mut sequence);
            }
            node.stab = stab?.map(Box::new);
            let queue_root = node.classes().is_some_and(Classful::queue_root);
            if let Some(spec) = req.estimator.filter(|_| !queue_root) {
                // A change cannot be undone any more: the kernel lets bad estimators pass here.
                let _ = node.estimate(device.kernel, spec, cx.now);
            }
            Ok(warning)
        });
        self.sequence = sequence;
        // Bands that are gone took their qdiscs with them; in others a new one stands (red and sfb make theirs anew).
        for handle in before {
            if self.node(handle).is_none_or(|node| node.handle != handle) {
                self.places.remove(&handle);
            }
        }
        self.warning = result.expect("the qdisc was found")?;
        Ok(())
    }

    /// Whether a qdisc stands in that class, also where the class shows none.
    fn stands_in(&self, handle: Handle, classid: Handle) -> bool {
        self.path(handle).is_some_and(|path| path.last() == Some(&classid))
    }

    /// `qdisc_leaf` of a classid: what is in that class. 2.6.35 finds nothing where 6.12 says why not.
    fn leaf(&self, classid: Handle) -> Answer<Option<&Node>> {
        let device = &self.device;
        let Some(parent) = self.node(classid.qdisc()) else {
            return Err(device.refusal(KernelError::ENOENT, "Failed to find specified qdisc"));
        };
        let classes = match parent.classes() {
            Some(classes) => classes,
            None if device.kernel == Kernel::V2_6_35 => return Ok(None),
            None => return Err(device.refusal(KernelError::EOPNOTSUPP, "Parent qdisc is not classful")),
        };
        if !classes.find(classid) {
            if device.kernel == Kernel::V2_6_35 {
                return Ok(None);
            }
            return Err(device.refusal(KernelError::ENOENT, "Specified class not found"));
        }
        Ok(classes.leaf(classid))
    }

    /// `qdisc_create` and `qdisc_graft`.
    fn create_and_graft(&mut self, req: &QdiscRequest, may_create: bool, cx: &mut Cx<'_>) -> Answer {
        let device = self.device;
        if !may_create {
            let why = "Qdisc not found. To create specify NLM_F_CREATE flag";
            return Err(device.refusal(KernelError::ENOENT, why));
        }
        let Some(spec) = req.kind.as_deref().and_then(|kind| sch::find(kind, device.kernel)) else {
            return Err(device.refusal(KernelError::ENOENT, "Specified qdisc kind is unknown"));
        };
        if req.parent == Handle::INGRESS && !sch::ingress::is(spec.id) {
            let why = "Specified parent ID is reserved for ingress and clsact Qdiscs";
            return Err(device.refusal(KernelError::EINVAL, why));
        }
        if sch::ingress::is(spec.id) {
            self.has_length(cx);
            return self.create_ingress(spec.id, req, cx);
        }
        let handle = if req.handle == Handle::UNSPEC { self.choose_handle()? } else { req.handle };
        self.has_length(cx);
        let device = self.device;
        let init = Init { device, handle, parent: req.parent };
        let stab = req.stab.as_ref().map(|s| Stab::new(s, &device));
        // 6.12 reads the size table first, 2.6.35 last.
        if let (Kernel::V6_12 | Kernel::V7_2, Some(Err(e))) = (device.kernel, &stab) {
            return Err(e.clone());
        }
        let qdisc = (spec.build)(&init, req.options.as_ref(), cx).inspect_err(|_| {
            // What was begun is destroyed.
            self.traffic_classes_gone_with(spec.id);
        })?;
        let mut node = Node::new(&init, qdisc);
        self.fill_queues(&mut node, cx);
        node.share_blocks(&self.blocks);
        node.stab = stab.transpose()?.map(Box::new);
        if let Some(spec) = req.estimator {
            if node.classes().is_some_and(Classful::queue_root) && device.kernel >= Kernel::V6_12 {
                let sentence = "Cannot attach rate estimator to a multi-queue root qdisc";
                return Err(device.refusal(KernelError::EOPNOTSUPP, sentence));
            }
            node.estimate(device.kernel, spec, cx.now)
                .map_err(|e| device.refusal(e.errno, "Failed to generate new estimator"))?;
        }
        check_blocks(spec.id, req, &device)?;
        Tree::count(&mut node, &mut self.sequence);
        let warning = node.take_warning();
        self.graft(req.parent, Some(node), cx)?;
        self.warning = warning;
        Ok(())
    }

    /// A device that needs no queue has no txqueuelen of 0 any more as soon as a qdisc is made for it.
    //= linux v6.12 net/sched/sch_api.c qdisc_create
    fn has_length(&mut self, cx: &mut Cx<'_>) {
        if self.no_queue && self.device.tx_queue_len == 0 && self.device.kernel >= Kernel::V6_12 {
            self.device.tx_queue_len = DEFAULT_TX_QUEUE_LEN;
            let device = self.device;
            self.root.set_device(&device, cx);
        }
    }

    /// The same for what stands at the ingress hook, whose handle is always `ffff:`.
    fn create_ingress(&mut self, kind: &'static str, req: &QdiscRequest, cx: &mut Cx<'_>) -> Answer {
        let device = self.device;
        if req.parent != Handle::INGRESS {
            return Err(KernelError::errno(KernelError::EOPNOTSUPP));
        }
        check_blocks(kind, req, &device)?;
        if let Some(stab) = &req.stab {
            Stab::new(stab, &device)?;
        }
        let init = Init { device, handle: Handle::INGRESS.qdisc(), parent: req.parent };
        let mut node = sch::ingress::create(&init, req, &self.blocks);
        if let Some(spec) = req.estimator {
            node.estimate(device.kernel, spec, cx.now)
                .map_err(|e| device.refusal(e.errno, "Failed to generate new estimator"))?;
        }
        Tree::count(&mut node, &mut self.sequence);
        self.graft(req.parent, Some(node), cx)
    }

    /// `qdisc_alloc_handle`.
    fn choose_handle(&mut self) -> Answer<Handle> {
        for _ in 0..0x8000 {
            self.auto_handle = self.auto_handle.wrapping_add(0x1_0000);
            if self.auto_handle == Handle::ROOT.qdisc().0 {
                self.auto_handle = AUTO_HANDLE;
            }
            let handle = Handle(self.auto_handle);
            if handle != self.root.handle && !self.places.contains_key(&handle) {
                return Ok(handle);
            }
        }
        let errno = match self.device.kernel {
            Kernel::V2_6_35 => KernelError::ENOMEM,
            Kernel::V6_12 | Kernel::V7_2 => KernelError::ENOSPC,
        };
        Err(self.device.refusal(errno, "Maximum number of qdisc handles was exceeded"))
    }

    /// `qdisc_graft`: puts `new` (`None`: the default) in a place and destroys what was there.
    pub(super) fn graft(&mut self, parent: Handle, new: Option<Node>, cx: &mut Cx<'_>) -> Answer {
        let device = self.device;
        if parent == Handle::ROOT {
            let mut new = match new {
                Some(new) => new,
                None if self.up => self.default_node(cx),
                None => Node::noop(),
            };
            Tree::count(&mut new, &mut self.sequence);
            let mut old = std::mem::replace(&mut self.root, new);
            old.reset(cx);
            self.traffic_classes_gone_with(old.kind());
            self.places.clear();
            return Ok(());
        }
        let beside = parent.major() == Handle::INGRESS.major() && self.path(parent.qdisc()).is_none();
        if parent == Handle::INGRESS || beside {
            if parent != Handle::INGRESS && new.is_some() {
                return Err(KernelError::errno(KernelError::EOPNOTSUPP));
            }
            self.ingress = new;
            //= linux v6.12 sch_api.c qdisc_graft: the device is deactivated meanwhile, which empties all its queues. In 7.2 that keeps them.
            if self.up && device.kernel != Kernel::V7_2 {
                self.root.reset(cx);
            }
            return Ok(());
        }
        let Some(path) = self.path(parent.qdisc()) else {
            return Err(KernelError::errno(KernelError::ENOENT));
        };
        let node = self.node_mut(parent.qdisc()).expect("a path leads to it");
        let Some(classes) = node.classes_mut() else {
            return Err(KernelError::errno(KernelError::EOPNOTSUPP));
        };
        if !classes.find(parent) {
            return Err(device.refusal(KernelError::ENOENT, "Specified class not found"));
        }
        if let (Some(new), Kernel::V6_12 | Kernel::V7_2) = (&new, device.kernel) {
            if new.stab.is_some() && !classes.queue_root() {
                return Err(device.refusal(KernelError::EINVAL, "STAB not supported on a non root"));
            }
            if path.len() >= DEPTH_MAX {
                return Err(device.refusal(KernelError::E2BIG, "Qdisc hierarchy is too deep"));
            }
        }
        if let Some(sentence) = classes.no_graft() {
            return Err(device.refusal(KernelError::EOPNOTSUPP, sentence));
        }
        let mut shift = Shift::default();
        if let Some(leaf) = classes.leaf_mut(parent) {
            let ((qlen, bytes), before) = (leaf.told(), cx.drops.len());
            shift = leaf.leaves_behind();
            leaf.reset(cx);
            leaf.takes_over(shift);
            let lost = (cx.drops.len() - before) as u64;
            if qlen > 0 || bytes > 0 {
                classes.reduced(parent, qlen, bytes);
            }
            node.door.lost += lost;
            reduce(&mut self.root, &path, (qlen, bytes), lost);
        }
        if new.as_ref().is_some_and(|new| new.kind() == "choke") {
            over_choke(&mut self.root, &path);
        }
        let handle = new.as_ref().map(|n| n.handle);
        let node = self.node_mut(parent.qdisc()).expect("a path leads to it");
        let classes = node.classes_mut().expect("it has classes");
        let old = classes.graft(parent, new, cx)?;
        //= linux v6.12 net/sched/sch_mq.c mq_graft: the device is deactivated meanwhile, which empties all its queues.
        let stops = classes.stops_device() && device.kernel == Kernel::V6_12;
        if let Some(new) = classes.leaf_mut(parent).filter(|_| shift != Shift::default()) {
            new.takes_over(shift);
        }
        for gone in old.iter().flat_map(handles_below) {
            self.places.remove(&gone);
        }
        if let Some(handle) = handle {
            self.places.insert(handle, Place { parent });
        }
        if stops && self.up {
            self.root.reset(cx);
        }
        Ok(())
    }

    /// `tc_get_qdisc` with RTM_DELQDISC.
    fn delete_qdisc(&mut self, req: &QdiscRequest, cx: &mut Cx<'_>) -> Answer {
        let device = self.device;
        let no = |errno, why| Err(device.refusal(errno, why));
        let node = if req.parent == Handle::UNSPEC {
            match self.node(req.handle) {
                Some(node) => node,
                None => return no(KernelError::ENOENT, "Failed to find qdisc with specified handle"),
            }
        } else {
            let node = if req.parent == Handle::ROOT {
                Some(&self.root)
            } else if req.parent.major() == Handle::INGRESS.major() {
                match (&self.ingress, self.ingress_queue) {
                    // What the kernel puts in an empty place has no handle.
                    (None, true) if req.handle != Handle::UNSPEC => {
                        return no(KernelError::EINVAL, "Invalid handle");
                    }
                    (None, true) => {
                        return no(KernelError::ENOENT, "Cannot delete qdisc with handle of zero");
                    }
                    (node, _) => node.as_ref(),
                }
            } else if self.node(req.parent.qdisc()).is_none() {
                return no(KernelError::ENOENT, "Failed to find qdisc with specified classid");
            } else {
                self.leaf(req.parent)?
            };
            let Some(node) = node else {
                return no(KernelError::ENOENT, "Cannot find specified qdisc on specified device");
            };
            if req.handle != Handle::UNSPEC && node.handle != req.handle {
                return no(KernelError::EINVAL, "Invalid handle");
            }
            node
        };
        if req.kind.as_deref().is_some_and(|k| k != node.kind()) {
            return no(KernelError::EINVAL, invalid_name(device.kernel));
        }
        if req.parent == Handle::UNSPEC {
            return no(KernelError::EINVAL, "Classid cannot be zero");
        }
        if node.handle == Handle::UNSPEC {
            return no(KernelError::ENOENT, "Cannot delete qdisc with handle of zero");
        }
        self.graft(req.parent, None, cx)
    }

    /// mqprio and taprio take the device's traffic classes with them when they are destroyed, whoever else has set some
    /// in the meantime.
    fn traffic_classes_gone_with(&mut self, kind: &str) {
        match kind {
            "mqprio" => self.root.forget_traffic_classes(false),
            "taprio" => self.root.forget_traffic_classes(true),
            _ => {}
        }
    }
}

/// What is said where a request names another kind than the one that stands there.
fn invalid_name(kernel: Kernel) -> &'static str {
    match kernel {
        Kernel::V7_2 => "Invalid qdisc name: must match existing qdisc",
        Kernel::V2_6_35 | Kernel::V6_12 => "Invalid qdisc name",
    }
}

/// `qdisc_block_indexes_set`: who has blocks that can be shared.
fn check_blocks(kind: &str, req: &QdiscRequest, device: &Device) -> Answer {
    let sides = [
        (req.ingress_block, "ingress", sch::ingress::is(kind)),
        (req.egress_block, "egress", kind == sch::ingress::CLSACT.id),
    ];
    for (index, side, has) in sides {
        let big = side[..1].to_uppercase() + &side[1..];
        let why = match (index, has) {
            (Some(0), _) => (KernelError::EINVAL, format!("{big} block index cannot be 0")),
            (Some(_), false) => (KernelError::EOPNOTSUPP, format!("{big} block sharing is not supported")),
            _ => continue,
        };
        return Err(device.refusal(why.0, &why.1));
    }
    if req.ingress_block.is_some() && req.ingress_block == req.egress_block {
        //= linux v6.12 cls_api.c tcf_block_get_ext: a block knows a device once.
        return Err(device.refusal(KernelError::EBUSY, "block dev insert failed"));
    }
    Ok(())
}

/// Notes in the qdiscs of a path that a choke stands below.
fn over_choke(node: &mut Node, path: &[Handle]) {
    node.over_choke = true;
    let Some((&class, rest)) = path.split_first() else { return };
    if let Some(child) = node.classes_mut().and_then(|classes| classes.leaf_mut(class)) {
        over_choke(child, rest);
    }
}
