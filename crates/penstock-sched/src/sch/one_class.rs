//! The class side of kinds with one inner qdisc: whatever class one names, it is the one.
//!
//! Follows: linux v6.12 `net/sched/sch_red.c` `red_class_ops`, `sch_sfb.c` `sfb_class_ops`, `sch_netem.c`
//! `netem_class_ops`; the same of linux v2.6.35.

use crate::cls::{BlockId, Filters};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};

/// One class, `:1`, with a qdisc in it.
pub struct OneClass {
    kind: &'static str,
    handle: Handle,
    /// `None`: there is no inner qdisc.
    child: Option<Node>,
    /// What a deleted inner qdisc leaves: noop, or nothing.
    empty: bool,
    /// errno of what would change or delete the class.
    refusal: i32,
    /// Where the kernel cannot show the class.
    hidden: bool,
    filters: Option<Filters>,
    /// Packets that the inner qdisc lost outside of the kind's calls.
    lost: u32,
}

impl OneClass {
    /// red's and sfb's: noop takes the place of a deleted inner qdisc. 2.6.35 refuses to change the class with another
    /// errno.
    pub fn new(kind: &'static str, handle: Handle, device: &Device) -> OneClass {
        let refusal = match device.kernel {
            Kernel::V2_6_35 => KernelError::ENOSYS,
            Kernel::V6_12 | Kernel::V7_2 => KernelError::EOPNOTSUPP,
        };
        let child = Some(Node::noop());
        OneClass { kind, handle, child, empty: false, refusal, hidden: false, filters: None, lost: 0 }
    }
    /// sfb's: with filters, and never shown.
    pub fn hidden_with_filters(mut self) -> OneClass {
        self.filters = Some(Filters::new(self.handle));
        (self.hidden, self.refusal) = (true, KernelError::ENOSYS);
        self
    }
    /// netem's of 6.12: nothing inside until somebody puts something there.
    pub fn empty(mut self) -> OneClass {
        (self.child, self.empty) = (None, true);
        self
    }
    /// The id of the class.
    pub fn class(&self) -> Handle {
        Handle::new(self.handle.major(), 1)
    }
    /// Puts a qdisc of the kind's own making inside.
    pub fn fill(&mut self, mut child: Node, cx: &mut Cx<'_>) {
        child.takes_over(self.child.as_ref().map(Node::shift).unwrap_or_default());
        if let Some(mut old) = self.child.replace(child) {
            old.reset(cx);
        }
    }
    /// Packets that the inner qdisc has lost by commands.
    pub fn lost(&self) -> u32 {
        self.lost
    }
    /// What is inside.
    pub fn child_mut(&mut self) -> Option<&mut Node> {
        self.child.as_mut()
    }
}

impl Classful for OneClass {
    fn find(&self, _: Handle) -> bool {
        true
    }
    fn graft(&mut self, _: Handle, new: Option<Node>, _: &mut Cx<'_>) -> Result<Option<Node>, KernelError> {
        let new = new.or_else(|| (!self.empty).then(Node::noop));
        Ok(std::mem::replace(&mut self.child, new))
    }
    fn leaf(&self, _: Handle) -> Option<&Node> {
        self.child.as_ref()
    }
    fn leaf_mut(&mut self, _: Handle) -> Option<&mut Node> {
        self.child.as_mut()
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        if let Some(child) = &self.child {
            visit(self.class(), child);
        }
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        let class = self.class();
        if let Some(child) = &mut self.child {
            visit(class, child);
        }
    }
    fn reduced(&mut self, _: Handle, packets: u32, _: u32) {
        self.lost = self.lost.wrapping_add(packets);
    }
    fn change_class(
        &mut self,
        _: Handle,
        _: Handle,
        _: Option<&Options>,
        _: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        Err(KernelError::errno(self.refusal))
    }
    fn delete_class(&mut self, _: Handle, _: &mut Cx<'_>) -> Result<(), KernelError> {
        Err(KernelError::errno(self.refusal))
    }
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        let Some(child) = self.child.as_ref().filter(|_| !self.hidden) else { return };
        visit(ClassDump {
            kind: self.kind,
            classid: self.class(),
            parent: self.handle,
            leaf: Some(child.handle).filter(|&h| h != Handle::UNSPEC),
            options: Options::new(),
            counters: Counters::None,
            stats: Stats::default(),
            xstats: None,
        });
    }
    fn ends_dump(&self) -> bool {
        self.hidden || self.child.is_none()
    }
    fn filters(&self) -> Option<&Filters> {
        self.filters.as_ref()
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        self.filters.as_mut()
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        (classid == Handle::UNSPEC && self.filters.is_some()).then_some(Filters::ROOT)
    }
}
