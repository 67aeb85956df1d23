//! What `tc filter` and `tc chain` ask of a tree.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_api.c` `tc_new_tfilter`, `tc_del_tfilter`, `tc_ctl_chain`, `__tcf_qdisc_find`,
//! `tc_dump_tfilter`, `tc_dump_chain`.

use super::{Answer, Tree, with_filters};
use crate::act::Look;
use crate::cls::request::check_prio;
use crate::cls::{BlockId, Dumped, Filters, Select, SharedBlock};
use crate::node::Node;
use crate::qdisc::{Classful, Cx};
use penstock_model::rtnetlink::{ChainDump, FilterDump, FilterRequest};
use penstock_model::{Handle, KernelError};

/// Filters to be shown.
enum Shown<'a> {
    Own(&'a Filters, BlockId),
    Shared(SharedBlock),
}

impl Tree {
    /// `tcf_block_find`: the qdisc's resolved parent and the block, or what the kernel says.
    fn block_of(&self, parent: Handle) -> Answer<(Handle, BlockId)> {
        let device = &self.device;
        let no = |errno, why| Err(device.refusal(errno, why));
        let (parent, node) = match parent {
            Handle::UNSPEC => (self.root.handle, Some(&self.root)),
            parent => (parent, self.node(parent.qdisc())),
        };
        let Some(node) = node else { return no(KernelError::EINVAL, "Parent Qdisc doesn't exists") };
        let Some(classes) = node.classes() else { return no(KernelError::EINVAL, "Qdisc not classful") };
        if classes.filters().is_none() {
            return no(KernelError::EOPNOTSUPP, "Class doesn't support blocks");
        }
        let class = if parent.minor() == 0 { Handle::UNSPEC } else { parent };
        if class != Handle::UNSPEC && !classes.find(class) {
            return no(KernelError::ENOENT, "Specified class doesn't exist");
        }
        if classes.shared_block(class).is_some() {
            let why = "This filter block is shared. Please use the block index to manipulate the filters";
            return no(KernelError::EOPNOTSUPP, why);
        }
        let block =
            classes.block(class).ok_or_else(|| device.refusal(KernelError::EINVAL, classes.no_block()))?;
        Ok((parent, block))
    }
    /// Works on the filters and the qdisc that `parent` belongs to, which was found before.
    fn on_filters<T>(
        &mut self,
        parent: Handle,
        work: impl FnOnce(&mut Filters, &mut dyn Classful) -> Answer<T>,
    ) -> Answer<T> {
        let root = parent.qdisc() == self.root.handle.qdisc();
        let node = if root { Some(&mut self.root) } else { self.node_mut(parent.qdisc()) };
        let classes = node.and_then(Node::classes_mut).expect("it was found");
        with_filters(classes, work).expect("it has filters")
    }

    /// Executes RTM_NEWTFILTER or RTM_DELTFILTER.
    ///
    /// # Errors
    /// The kernel's errno and sentence. Nothing is changed then.
    pub fn filter(&mut self, req: &FilterRequest, cx: &mut Cx<'_>) -> Answer {
        let device = self.device;
        check_prio(req, &device)?;
        let (parent, block) = self.block_of(req.parent)?;
        let resolved;
        let req = if parent == req.parent {
            req
        } else {
            resolved = FilterRequest { parent, ..req.clone() };
            &resolved
        };
        self.on_filters(parent, |filters, classes| filters.request(block, req, &device, classes, cx))
    }
    /// RTM_GETTFILTER of one filter.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn get_filter(&self, req: &FilterRequest, look: Look<'_>) -> Answer<FilterDump> {
        check_prio(req, &self.device)?;
        let (parent, block) = self.block_of(req.parent)?;
        let req = FilterRequest { parent, ..req.clone() };
        self.filters_at(parent).expect("it was found").get(block, &req, &self.device, look)
    }
    /// Executes RTM_NEWCHAIN or RTM_DELCHAIN.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn chain(&mut self, req: &FilterRequest) -> Answer {
        let device = self.device;
        let (parent, block) = self.block_of(req.parent)?;
        self.on_filters(parent, |filters, classes| filters.chain_request(block, req, &device, classes))
    }
    /// RTM_GETCHAIN of one chain.
    ///
    /// # Errors
    /// The kernel's errno and sentence.
    pub fn get_chain(&self, req: &FilterRequest) -> Answer<ChainDump> {
        let (parent, block) = self.block_of(req.parent)?;
        self.filters_at(parent).expect("it was found").get_chain(block, req, &self.device)
    }

    fn filters_at(&self, parent: Handle) -> Option<&Filters> {
        let root = parent.qdisc() == self.root.handle.qdisc();
        let node = if root { Some(&self.root) } else { self.node(parent.qdisc()) };
        node?.classes()?.filters()
    }
    /// What a dump shows of a parent; nothing where there is nothing of the kind to ask.
    fn shown(&self, parent: Handle) -> Option<Shown<'_>> {
        let node = if parent == Handle::UNSPEC { &self.root } else { self.node(parent.qdisc())? };
        let classes = node.classes()?;
        let class = if parent.minor() == 0 { Handle::UNSPEC } else { parent };
        if class != Handle::UNSPEC && !classes.find(class) {
            return None;
        }
        match classes.shared_block(class) {
            Some(block) => Some(Shown::Shared(block)),
            None => Some(Shown::Own(classes.filters()?, classes.block(class)?)),
        }
    }
    /// The filters of a qdisc or a class ([`Handle::UNSPEC`]: of the root qdisc), and what ended the dump early.
    pub fn show_filters(&self, parent: Handle, select: Select, look: Look<'_>) -> Dumped {
        match self.shown(parent) {
            Some(Shown::Own(filters, block)) => filters.dump(block, select, look),
            Some(Shown::Shared(block)) => block.filters().dump(Filters::ROOT, select, look),
            None => (Vec::new(), None),
        }
    }
    /// All filters of a qdisc or a class.
    ///
    /// # Errors
    /// None: what ends a dump early is told by [`Tree::show_filters`].
    pub fn dump_filters(&self, parent: Handle, look: Look<'_>) -> Answer<Vec<FilterDump>> {
        Ok(self.show_filters(parent, Select::default(), look).0)
    }
    /// The chains of a qdisc or a class.
    pub fn dump_chains(&self, parent: Handle, chain: Option<u32>) -> Vec<ChainDump> {
        match self.shown(parent) {
            Some(Shown::Own(filters, block)) => filters.dump_chains(block, chain),
            Some(Shown::Shared(block)) => block.filters().dump_chains(Filters::ROOT, chain),
            None => Vec::new(),
        }
    }
}
