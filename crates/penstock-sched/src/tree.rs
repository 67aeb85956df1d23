//! One device's tree of queueing disciplines, and what `tc` asks of it.
//!
//! Follows: linux v6.12 `net/sched/sch_api.c` `tc_modify_qdisc`, `tc_get_qdisc`, `qdisc_graft`, `tc_ctl_tclass`,
//! `tc_dump_qdisc_root`, `qdisc_tree_reduce_backlog`, `net/sched/cls_api.c` `__tcf_qdisc_find`; the same functions of
//! linux v2.6.35.
//! Differs: in 2.6.35 a qdisc could be put under a second parent with `replace … handle` of one that exists; here, as
//! in Linux since 6.6, that is refused with EINVAL.

use crate::cls::Filters;
use crate::estimator::Estimator;
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Xmit};
use crate::sch;
use crate::sch::noop::Noop;
use crate::stab::Stab;
use penstock_model::rtnetlink::{
    ClassDump, ClassRequest, FilterDump, FilterRequest, QdiscDump, QdiscRequest, Verb,
};
use penstock_model::{Handle, Kernel, KernelError, Time};
use penstock_packet::Packet;
use std::collections::BTreeMap;

/// Where a qdisc with a handle is, other than the root.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The class it is in.
    parent: Handle,
    /// How many were made before it.
    sequence: u64,
}

/// A device's qdiscs.
pub struct Tree {
    device: Device,
    /// What stands at the root where nobody put anything.
    default: fn(&Device) -> Node,
    root: Node,
    places: BTreeMap<Handle, Place>,
    sequence: u64,
    auto_handle: u32,
    warning: Option<String>,
}

/// Most qdiscs above one another in 6.12.
const DEPTH_MAX: usize = 7;
/// The first of the handles that the kernel chooses, `8000:`, is never given.
const AUTO_HANDLE: u32 = 0x8000_0000;

type Answer<T = ()> = Result<T, KernelError>;

impl Tree {
    /// A device just up: with the kernel's default, pfifo_fast with handle `0:`.
    pub fn new(device: Device) -> Tree {
        Tree::with_default(device, default_root)
    }
    /// A device that needs no queue (`IFF_NO_QUEUE`: veth) in 6.12: with `noqueue`.
    pub fn without_queue(device: Device) -> Tree {
        Tree::with_default(device, no_queue)
    }
    fn with_default(device: Device, default: fn(&Device) -> Node) -> Tree {
        let root = default(&device);
        Tree {
            device,
            default,
            root,
            places: BTreeMap::new(),
            sequence: 0,
            auto_handle: AUTO_HANDLE,
            warning: None,
        }
    }
    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }
    /// Changes MTU or txqueuelen. Most qdiscs look at these only when they are made; but in 6.12 another txqueuelen
    /// stops the device for a moment (`dev_qdisc_change_tx_queue_len`), which empties the whole tree.
    pub fn set_device(&mut self, device: Device, cx: &mut Cx<'_>) {
        if device.kernel == Kernel::V6_12 && device.tx_queue_len != self.device.tx_queue_len {
            self.root.reset(cx);
        }
        self.device = device;
        self.root.set_device(&device, cx);
    }
    /// The last handle the kernel chose. One counter serves all devices of a machine: whoever has several hands it
    /// from tree to tree.
    pub fn auto_handle(&self) -> u32 {
        self.auto_handle
    }
    /// The sentence the kernel added to the last request that succeeded, without tc's `Warning: `. Taken once.
    pub fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }
    /// Sets what [`Tree::auto_handle`] gives.
    pub fn set_auto_handle(&mut self, handle: u32) {
        self.auto_handle = handle;
    }

    /// Takes a packet from the network layer: `__dev_xmit_skb`. Sets its `pkt_len`.
    #[inline]
    pub fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        packet.pkt_len = packet.len;
        packet.queued = cx.now;
        self.root.enqueue(packet, cx)
    }
    /// Gives the device the next packet that may go now.
    #[inline]
    pub fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.root.dequeue(cx)
    }
    /// When to ask again although [`Tree::dequeue`] gave nothing.
    pub fn next_wakeup(&self) -> Option<Time> {
        self.root.next_wakeup()
    }
    /// The clock has reached [`Tree::next_wakeup`]: the timers due by `now` go off. Ask [`Tree::dequeue`] then.
    pub fn expire(&mut self, now: Time) {
        self.root.expire(now);
    }
    /// Packets queued.
    pub fn qlen(&self) -> u32 {
        self.root.qlen()
    }
    /// The root qdisc.
    pub fn root(&self) -> &Node {
        &self.root
    }

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

    /// Executes RTM_NEWTCLASS or RTM_DELTCLASS.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn class(&mut self, req: &ClassRequest, cx: &mut Cx<'_>) -> Answer {
        let bare = KernelError::errno;
        let (mut parent, mut qdisc) = (req.parent, req.classid.qdisc());
        if parent == Handle::ROOT || parent.qdisc() == Handle::UNSPEC {
            if qdisc == Handle::UNSPEC {
                qdisc = self.root.handle;
            }
        } else if qdisc == Handle::UNSPEC {
            qdisc = parent.qdisc();
        } else if qdisc != parent.qdisc() {
            return Err(bare(KernelError::EINVAL));
        }
        if parent != Handle::ROOT && parent != Handle::UNSPEC {
            parent = Handle::new(qdisc.major(), parent.minor());
        }
        let device = self.device;
        let node = self.node_mut(qdisc).ok_or(bare(KernelError::ENOENT))?;
        let classes = node.classes_mut().ok_or(bare(KernelError::EINVAL))?;
        let mut classid = Handle::new(qdisc.major(), req.classid.minor());
        if req.classid == Handle::UNSPEC {
            classid = if parent == Handle::ROOT { qdisc } else { Handle::UNSPEC };
        }
        let there = classid != Handle::UNSPEC && classes.find(classid);
        match (req.verb, there) {
            (Verb::Add, true) => Err(bare(KernelError::EEXIST)),
            (Verb::Del, true) => self.delete_class(qdisc, classid, cx),
            (Verb::Add | Verb::Replace, false) | (Verb::Change | Verb::Replace | Verb::Link, true) => {
                if device.kernel == Kernel::V6_12 && classid == Handle::ROOT {
                    let why = "Cannot create traffic class with classid TC_H_ROOT";
                    return Err(device.refusal(KernelError::EINVAL, why));
                }
                let below = classes.leaf(parent).map(handles_below).unwrap_or_default();
                if let (Some(spec), true) = (req.estimator, req.options.is_some()) {
                    // A bad estimator is refused before anything is changed.
                    Estimator::new(device.kernel, spec, cx.now, 0, 0)?;
                }
                let (made, warning) = self
                    .watched(qdisc, cx, |node, cx| {
                        let classes = node.classes_mut().expect("it has classes");
                        let made = classes.change_class(parent, classid, req.options.as_ref(), cx)?;
                        if let Some(spec) = req.estimator {
                            classes.estimate(made, spec, cx)?;
                        }
                        let warning = classes.take_warning();
                        Ok::<_, KernelError>((made, warning))
                    })
                    .expect("the qdisc was found")?;
                self.warning = warning;
                // A leaf that becomes a parent loses its qdisc.
                for handle in below {
                    if self.node(handle).is_none() {
                        self.places.remove(&handle);
                    }
                }
                if !there && device.kernel == Kernel::V6_12 {
                    let node = self.node_mut(qdisc).expect("the qdisc was found");
                    with_filters(node.classes_mut().expect("it has classes"), |filters, classes| {
                        filters.bind_class(made, classes);
                    });
                }
                Ok(())
            }
            (_, false) => Err(bare(KernelError::ENOENT)),
        }
    }

    fn delete_class(&mut self, qdisc: Handle, classid: Handle, cx: &mut Cx<'_>) -> Answer {
        let node = self.node_mut(qdisc).expect("the caller found it");
        let below = node.classes().and_then(|c| c.leaf(classid)).map(handles_below).unwrap_or_default();
        let result = self
            .watched(qdisc, cx, |node, cx| {
                node.classes_mut().expect("it has classes").delete_class(classid, cx)
            })
            .expect("the caller found it");
        if result.is_ok() {
            for gone in &below {
                self.places.remove(gone);
            }
        }
        if self.device.kernel == Kernel::V6_12 {
            //= linux v6.12 sch_api.c tc_ctl_tclass: filters of classes let go of the class even where it stays.
            let node = self.node_mut(qdisc).expect("the caller found it");
            with_filters(node.classes_mut().expect("it has classes"), |filters, classes| {
                filters.unbind_class(classid, classes);
            });
        }
        result
    }

    /// Executes RTM_NEWTFILTER or RTM_DELTFILTER.
    ///
    /// # Errors
    /// The kernel's errno and sentence. Nothing is changed then.
    pub fn filter(&mut self, req: &FilterRequest, cx: &mut Cx<'_>) -> Answer {
        let _ = cx;
        let device = self.device;
        let creates = matches!(req.verb, Verb::Add | Verb::Replace);
        if req.prio == 0 {
            match (req.verb, device.kernel) {
                (Verb::Del, Kernel::V6_12) => {
                    if req.protocol != 0 || req.handle != 0 || req.kind.is_some() {
                        let why = "Cannot flush filters with protocol, handle or kind set";
                        return Err(device.refusal(KernelError::ENOENT, why));
                    }
                }
                _ if creates => {}
                _ => {
                    let why = "Invalid filter command with priority of zero";
                    return Err(device.refusal(KernelError::ENOENT, why));
                }
            }
        }
        let root = self.root.handle;
        let parent = if req.parent == Handle::UNSPEC { root } else { req.parent };
        let node =
            if req.parent == Handle::UNSPEC { Some(&mut self.root) } else { self.node_mut(parent.qdisc()) };
        let Some(node) = node else {
            return Err(device.refusal(KernelError::EINVAL, "Parent Qdisc doesn't exists"));
        };
        let Some(classes) = node.classes_mut() else {
            return Err(device.refusal(KernelError::EINVAL, "Qdisc not classful"));
        };
        if classes.filters().is_none() {
            return Err(device.refusal(KernelError::EOPNOTSUPP, "Class doesn't support blocks"));
        }
        let class = if parent.minor() == 0 { Handle::UNSPEC } else { parent };
        if class != Handle::UNSPEC && !classes.find(class) {
            return Err(device.refusal(KernelError::ENOENT, "Specified class doesn't exist"));
        }
        let Some(block) = classes.block(class) else {
            return Err(KernelError::errno(KernelError::EINVAL));
        };
        let req = FilterRequest { parent, ..req.clone() };
        with_filters(classes, |filters, classes| filters.request(block, &req, &device, classes))
            .expect("it has filters")
    }

    /// All qdiscs in the kernel's order: the root, then the others as its table holds them.
    pub fn dump_qdiscs(&self, now: Time) -> Vec<QdiscDump> {
        self.nodes()
            .map(|(node, refcnt)| QdiscDump {
                kind: node.kind(),
                handle: node.handle,
                parent: node.parent,
                refcnt,
                options: match &node.stab {
                    Some(stab) => node.dump().with("stab", stab.dump()),
                    None => node.dump(),
                },
                stats: node.stats_at(now),
                xstats: node.xstats(now),
            })
            .collect()
    }
    /// All classes of all qdiscs in the kernel's order.
    pub fn dump_classes(&self, now: Time) -> Vec<ClassDump> {
        let mut dumps = Vec::new();
        for (node, _) in self.nodes() {
            if let Some(classes) = node.classes() {
                classes.walk(now, &mut |dump| dumps.push(dump));
            }
        }
        dumps
    }
    /// The filters of a qdisc or a class ([`Handle::UNSPEC`]: of the root qdisc). None where there is nothing of the
    /// kind to ask.
    ///
    /// # Errors
    /// None of today's kernels refuses to show.
    pub fn dump_filters(&self, parent: Handle, now: Time) -> Answer<Vec<FilterDump>> {
        let _ = now;
        let parent = if parent == Handle::UNSPEC { self.root.handle } else { parent };
        let node = if parent == self.root.handle { Some(&self.root) } else { self.node(parent.qdisc()) };
        let class = if parent.minor() == 0 { Handle::UNSPEC } else { parent };
        let dump = node.and_then(Node::classes).and_then(|classes| {
            let known = class == Handle::UNSPEC || classes.find(class);
            let block = classes.block(class).filter(|_| known)?;
            Some(classes.filters()?.dump(block, parent))
        });
        Ok(dump.unwrap_or_default())
    }

    // ---- finding ----

    /// Shown qdiscs with their reference counts, in the kernel's order.
    fn nodes(&self) -> impl Iterator<Item = (&Node, u32)> {
        let mut order: Vec<(u32, u64, Handle)> = self
            .places
            .iter()
            .map(|(&handle, place)| match self.device.kernel {
                // A list, in the order they were made.
                Kernel::V2_6_35 => (0, place.sequence, handle),
                // A hash table of 16 buckets, the youngest first in each.
                Kernel::V6_12 => {
                    (handle.0.wrapping_mul(0x61c8_8647) >> 28, u64::MAX - place.sequence, handle)
                }
            })
            .collect();
        order.sort_unstable();
        let root = Some((&self.root, 2)).filter(|(root, _)| !root.is_noop());
        root.into_iter().chain(order.into_iter().filter_map(|(.., handle)| Some((self.node(handle)?, 1))))
    }
    /// The classes on the way from the root to a qdisc; `None` for one that is not here.
    fn path(&self, handle: Handle) -> Option<Vec<Handle>> {
        let mut path = Vec::new();
        let mut at = handle;
        while at != self.root.handle {
            let place = self.places.get(&at)?;
            path.push(place.parent);
            at = place.parent.qdisc();
        }
        path.reverse();
        Some(path)
    }
    fn node(&self, handle: Handle) -> Option<&Node> {
        if handle == Handle::UNSPEC {
            return None;
        }
        self.path(handle)?.into_iter().try_fold(&self.root, |node, class| node.classes()?.leaf(class))
    }
    fn node_mut(&mut self, handle: Handle) -> Option<&mut Node> {
        if handle == Handle::UNSPEC {
            return None;
        }
        self.path(handle)?
            .into_iter()
            .try_fold(&mut self.root, |node, class| node.classes_mut()?.leaf_mut(class))
    }
    /// Runs `work` on a qdisc and tells those above it what it has lost: `qdisc_tree_reduce_backlog`.
    fn watched<T>(
        &mut self,
        handle: Handle,
        cx: &mut Cx<'_>,
        work: impl FnOnce(&mut Node, &mut Cx<'_>) -> T,
    ) -> Option<T> {
        let path = self.path(handle)?;
        let node = self.node_mut(handle)?;
        let (qlen, backlog) = (node.qlen(), node.backlog());
        let result = work(node, cx);
        let packets = qlen.saturating_sub(node.qlen());
        let bytes = backlog.saturating_sub(node.backlog());
        if packets > 0 || bytes > 0 {
            reduce(&mut self.root, &path, packets, bytes);
        }
        Some(result)
    }

    // ---- qdiscs ----

    /// `tc_modify_qdisc`.
    fn modify_qdisc(&mut self, req: &QdiscRequest, cx: &mut Cx<'_>) -> Answer {
        let device = self.device;
        let old = device.kernel == Kernel::V2_6_35;
        let no = |errno, why| Err(device.refusal(errno, why));
        let kind_differs = |node: &Node| req.kind.as_deref().is_some_and(|k| k != node.kind());
        let may_create = matches!(req.verb, Verb::Add | Verb::Replace);

        let target = if req.parent == Handle::UNSPEC {
            if req.handle == Handle::UNSPEC {
                return no(KernelError::EINVAL, "Handle cannot be zero");
            }
            self.node(req.handle)
        } else {
            let here = match req.parent {
                Handle::ROOT => Some(&self.root),
                // There is no ingress queue: its place is always empty.
                Handle::INGRESS => None,
                parent => self.leaf(parent)?,
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
                        Some(_) if !old => {
                            no(KernelError::EINVAL, "Cannot move an existing qdisc to a different parent")
                        }
                        Some(_) if req.verb == Verb::Add => Err(KernelError::errno(KernelError::EEXIST)),
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
            return no(KernelError::EINVAL, "Invalid qdisc name");
        }
        let handle = node.handle;
        let before = handles_below(node);
        let stab = req.stab.as_ref().map(|s| Stab::new(s, &device)).transpose();
        let result = self.watched(handle, cx, |node, cx| {
            if req.options.is_some() {
                node.change(req.options.as_ref(), cx)?;
            }
            node.stab = stab?.map(Box::new);
            if let Some(spec) = req.estimator {
                // A change cannot be undone any more: the kernel lets bad estimators pass here.
                let _ = node.estimate(device.kernel, spec, cx.now);
            }
            Ok(())
        });
        // Bands that are gone took their qdiscs with them.
        for handle in before {
            if self.node(handle).is_none() {
                self.places.remove(&handle);
            }
        }
        result.expect("the qdisc was found")
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
        let handle = if req.handle == Handle::UNSPEC { self.choose_handle()? } else { req.handle };
        let init = Init { device, handle, parent: req.parent };
        let stab = req.stab.as_ref().map(|s| Stab::new(s, &device));
        // 6.12 reads the size table first, 2.6.35 last.
        if let (Kernel::V6_12, Some(Err(e))) = (device.kernel, &stab) {
            return Err(e.clone());
        }
        let qdisc = (spec.build)(&init, req.options.as_ref(), cx)?;
        let mut node = Node::new(&init, qdisc);
        node.stab = stab.transpose()?.map(Box::new);
        if let Some(spec) = req.estimator {
            node.estimate(device.kernel, spec, cx.now)
                .map_err(|e| device.refusal(e.errno, "Failed to generate new estimator"))?;
        }
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
            Kernel::V6_12 => KernelError::ENOSPC,
        };
        Err(self.device.refusal(errno, "Maximum number of qdisc handles was exceeded"))
    }

    /// `qdisc_graft`: puts `new` (`None`: the default) in a place and destroys what was there.
    fn graft(&mut self, parent: Handle, new: Option<Node>, cx: &mut Cx<'_>) -> Answer {
        let device = self.device;
        if parent == Handle::ROOT {
            let new = new.unwrap_or_else(|| (self.default)(&device));
            let mut old = std::mem::replace(&mut self.root, new);
            old.reset(cx);
            self.places.clear();
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
        if let (Some(new), Kernel::V6_12) = (&new, device.kernel) {
            if new.stab.is_some() {
                return Err(device.refusal(KernelError::EINVAL, "STAB not supported on a non root"));
            }
            if path.len() >= DEPTH_MAX {
                return Err(device.refusal(KernelError::E2BIG, "Qdisc hierarchy is too deep"));
            }
        }
        if let Some(leaf) = classes.leaf_mut(parent) {
            let (qlen, backlog) = (leaf.qlen(), leaf.backlog());
            leaf.reset(cx);
            if qlen > 0 {
                classes.reduced(parent, qlen, backlog);
                reduce(&mut self.root, &path, qlen, backlog);
            }
        }
        let handle = new.as_ref().map(|n| n.handle);
        let node = self.node_mut(parent.qdisc()).expect("a path leads to it");
        let old = node.classes_mut().expect("it has classes").graft(parent, new, cx)?;
        for gone in old.iter().flat_map(handles_below) {
            self.places.remove(&gone);
        }
        if let Some(handle) = handle {
            self.sequence += 1;
            self.places.insert(handle, Place { parent, sequence: self.sequence });
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
                None
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
            return no(KernelError::EINVAL, "Invalid qdisc name");
        }
        if req.parent == Handle::UNSPEC {
            return no(KernelError::EINVAL, "Classid cannot be zero");
        }
        if node.handle == Handle::UNSPEC {
            return no(KernelError::ENOENT, "Cannot delete qdisc with handle of zero");
        }
        self.graft(req.parent, None, cx)
    }
}

/// What a device that needs no queue has.
fn no_queue(device: &Device) -> Node {
    let init = Init { device: *device, handle: Handle::UNSPEC, parent: Handle::ROOT };
    Node::new(&init, Box::new(sch::noqueue::Noqueue::default()))
}

/// The kernel's default for a device just up.
fn default_root(device: &Device) -> Node {
    let init = Init { device: *device, handle: Handle::UNSPEC, parent: Handle::ROOT };
    if device.tx_queue_len == 0 {
        return Node::new(&init, Box::new(Noop));
    }
    Node::new(&init, Box::new(sch::pfifo_fast::PfifoFast::new(&init)))
}

/// Handles of a qdisc and of those below it, as far as they have any.
fn handles_below(node: &Node) -> Vec<Handle> {
    let mut handles: Vec<Handle> = Some(node.handle).filter(|&h| h != Handle::UNSPEC).into_iter().collect();
    if let Some(classes) = node.classes() {
        classes.children(&mut |_, child| handles.extend(handles_below(child)));
    }
    handles
}

/// Tells every qdisc that holds a class of `path` that the qdisc in it lost packets, innermost first.
fn reduce(node: &mut Node, path: &[Handle], packets: u32, bytes: u32) {
    let Some((&class, rest)) = path.split_first() else { return };
    let Some(classes) = node.classes_mut() else { return };
    if let Some(child) = classes.leaf_mut(class) {
        reduce(child, rest, packets, bytes);
    }
    classes.reduced(class, packets, bytes);
}

/// Takes the filters out of a qdisc, so that both can be worked on, and puts them back.
/// `None` for a qdisc that has none.
pub(crate) fn with_filters<T>(
    classes: &mut dyn Classful,
    work: impl FnOnce(&mut Filters, &mut dyn Classful) -> T,
) -> Option<T> {
    let mut taken = std::mem::take(classes.filters_mut()?);
    let result = work(&mut taken, classes);
    *classes.filters_mut()? = taken;
    Some(result)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet, qdisc};

    fn shown(tree: &Tree) -> Vec<String> {
        let line = |d: QdiscDump| format!("{} {} {} {}", d.kind, d.handle, d.parent, d.refcnt);
        tree.dump_qdiscs(Time::ZERO).into_iter().map(line).collect()
    }

    #[test]
    fn a_fresh_device_has_pfifo_fast_and_gets_it_back() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = Tree::new(device(kernel));
            assert_eq!(shown(&tree), ["pfifo_fast none root 2"]);
            tree.qdisc(&qdisc("add root pfifo limit 7"), &mut bench.cx(0)).unwrap();
            assert_eq!(shown(&tree), ["pfifo 8001: root 2"]);
            tree.enqueue(packet(0, 100), &mut bench.cx(0));
            tree.qdisc(&qdisc("del root"), &mut bench.cx(0)).unwrap();
            assert_eq!(shown(&tree), ["pfifo_fast none root 2"]);
            assert_eq!(bench.dropped(), [(0, crate::DropReason::Purged)]);
            assert_eq!(tree.dump_qdiscs(Time::ZERO)[0].stats, Default::default());
        }
    }

    #[test]
    fn refusals_are_the_kernels() {
        let check = |script: &[&str], errno: i32, sentence: &str| {
            for kernel in Kernel::ALL {
                let mut bench = Bench::new();
                let mut tree = Tree::new(device(kernel));
                let (last, before) = script.split_last().unwrap();
                for line in before {
                    tree.qdisc(&qdisc(line), &mut bench.cx(0)).unwrap();
                }
                let want = device(kernel).refusal(errno, sentence);
                assert_eq!(tree.qdisc(&qdisc(last), &mut bench.cx(0)), Err(want), "{kernel} {last}");
            }
        };
        check(&["del root"], 2, "Cannot delete qdisc with handle of zero");
        check(&["add root nonsense"], 2, "Specified qdisc kind is unknown");
        check(&["add root pfifo", "add root pfifo"], 17, "Exclusivity flag on, cannot modify");
        check(
            &["add root handle 1: pfifo", "add root handle 2: pfifo"],
            17,
            "NLM_F_REPLACE needed to override",
        );
        check(&["change root pfifo limit 3"], 2, "Qdisc not found. To create specify NLM_F_CREATE flag");
        check(&["add parent 5:1 pfifo"], 2, "Failed to find specified qdisc");
        check(&["add root handle 1:1 pfifo"], 22, "Invalid minor handle");
        check(&["add root handle 1: pfifo", "del root handle 2:"], 22, "Invalid handle");
        check(&["add root handle 1: pfifo", "del root bfifo"], 22, "Invalid qdisc name");
        check(&["add root handle 1: pfifo", "add parent 1:1 pfifo"], 95, "Parent qdisc is not classful");
        check(
            &["add root pfifo_fast", "replace root pfifo_fast limit 3"],
            22,
            "Change operation not supported by specified qdisc",
        );
    }
}
