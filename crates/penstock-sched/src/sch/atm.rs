//! `atm`: sends each class's packets over an ATM connection of its own. Removed from Linux 6.3.
//!
//! A class is made of an open ATM socket, which no machine here can have: only the class that stands for the device is
//! ever there, and tc itself fails before it asks for another.
//!
//! Follows: linux v6.1 (the last long-term kernel that had it) and v2.6.35 `net/sched/sch_atm.c`, configuration only.
//! Differs: packets are not carried yet; both profiles have it, although Linux 6.12 has not.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated};
use crate::cls::{BlockId, Filters};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "atm",
    about: "maps classes to ATM connections",
    kernels: &Kernel::BEFORE_7,
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::Table,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::Otherwise,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: false,
    },
};

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    Ok(Box::new(Unsimulated::new(Atm {
        device: init.device,
        handle: init.handle,
        filters: Filters::new(init.handle),
        link: Node::default_pfifo(&init.device, init.handle),
    })))
}

/// The qdisc with its one class.
struct Atm {
    device: Device,
    handle: Handle,
    filters: Filters,
    /// Where packets go that no filter sorts.
    link: Node,
}

impl Params for Atm {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// There is no such operation.
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let sentence = "Change operation not supported by specified qdisc";
        Err(self.device.refusal(KernelError::EINVAL, sentence))
    }
    fn dump(&self) -> Options {
        Options::new()
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
}

impl Classful for Atm {
    fn find(&self, classid: Handle) -> bool {
        classid == self.handle
    }
    fn graft(&mut self, _: Handle, new: Option<Node>, _: &mut Cx<'_>) -> Result<Option<Node>, KernelError> {
        Ok(Some(std::mem::replace(&mut self.link, new.unwrap_or_else(Node::noop))))
    }
    fn leaf(&self, classid: Handle) -> Option<&Node> {
        self.find(classid).then_some(&self.link)
    }
    fn leaf_mut(&mut self, classid: Handle) -> Option<&mut Node> {
        if self.find(classid) { Some(&mut self.link) } else { None }
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        visit(self.handle, &self.link);
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        visit(self.handle, &mut self.link);
    }
    /// Nothing is ever queued below.
    /// The one class cannot be changed, and another would need a socket.
    fn change_class(
        &mut self,
        parent: Handle,
        classid: Handle,
        _: Option<&Options>,
        _: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let fits = [Handle::UNSPEC, Handle::ROOT, self.handle].contains(&parent);
        Err(KernelError::errno(match fits && self.find(classid) {
            true => KernelError::EBUSY,
            false => KernelError::EINVAL,
        }))
    }
    fn delete_class(&mut self, _: Handle, _: &mut Cx<'_>) -> Result<(), KernelError> {
        Err(KernelError::errno(KernelError::EBUSY))
    }
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        visit(ClassDump {
            kind: SPEC.id,
            classid: self.handle,
            parent: self.handle,
            leaf: Some(self.link.handle).filter(|&h| h != Handle::UNSPEC),
            options: Options::new().with("hdr", Vec::<u8>::new()).with("excess", 0u32),
            counters: Counters::All,
            stats: Stats::default(),
            xstats: None,
        });
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        (classid == Handle::UNSPEC || self.find(classid)).then_some(Filters::ROOT)
    }
    fn bind(&mut self, _: Handle, classid: Handle) -> u32 {
        u32::from(self.find(classid))
    }
}
