//! `dsmark`: writes the DS field of packets by a table that their class indexes. Removed from Linux 6.3.
//!
//! Follows: linux v6.1 (the last long-term kernel that had it) and v2.6.35 `net/sched/sch_dsmark.c`, configuration only.
//! Differs: packets are not carried yet; both profiles have it, although Linux 6.12 has not.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated};
use crate::cls::{BlockId, Filters};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc};
use penstock_model::rtnetlink::ClassDump;
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time, Value};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "dsmark",
    about: "sets the DS field of packets from a table indexed by class",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
};

/// What a table entry is before it is set: the field stays as it is.
const UNTOUCHED: (u8, u8) = (0xff, 0);

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let einval = || KernelError::errno(KernelError::EINVAL);
    let options = options.ok_or_else(einval)?;
    let indices =
        options.u32("indices").map(|n| n as u16).filter(|n| n.is_power_of_two()).ok_or_else(einval)?;
    Ok(Box::new(Unsimulated::new(Dsmark {
        device: init.device,
        handle: init.handle,
        default_index: options.u32("default_index").map(|n| n as u16),
        set_tc_index: options.has("set_tc_index"),
        table: vec![UNTOUCHED; usize::from(indices)],
        filters: Filters::new(init.handle),
        inner: Node::default_pfifo(&init.device, init.handle),
    })))
}

/// The qdisc.
struct Dsmark {
    // Parameters
    device: Device,
    handle: Handle,
    default_index: Option<u16>,
    set_tc_index: bool,
    /// Mask and value by index.
    table: Vec<(u8, u8)>,
    filters: Filters,
    // Variables
    inner: Node,
}

impl Dsmark {
    /// `dsmark_valid_index`.
    fn entry(&mut self, classid: Handle) -> Option<&mut (u8, u8)> {
        self.table.get_mut(usize::from(classid.minor()))
    }
}

impl Params for Dsmark {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// There is no such operation.
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let sentence = "Change operation not supported by specified qdisc";
        Err(self.device.refusal(KernelError::EINVAL, sentence))
    }
    fn dump(&self) -> Options {
        let mut options = Options::new().with("indices", self.table.len() as u32);
        if let Some(index) = self.default_index {
            options = options.with("default_index", u32::from(index));
        }
        if self.set_tc_index {
            options.set("set_tc_index", Value::Flag);
        }
        options
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
}

/// Every class there can be is found, and all have the one qdisc.
impl Classful for Dsmark {
    fn find(&self, _: Handle) -> bool {
        true
    }
    fn graft(&mut self, _: Handle, new: Option<Node>, _: &mut Cx<'_>) -> Result<Option<Node>, KernelError> {
        let new = new.unwrap_or_else(|| Node::default_pfifo(&self.device, self.handle));
        Ok(Some(std::mem::replace(&mut self.inner, new)))
    }
    fn leaf(&self, _: Handle) -> Option<&Node> {
        Some(&self.inner)
    }
    fn leaf_mut(&mut self, _: Handle) -> Option<&mut Node> {
        Some(&mut self.inner)
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        visit(self.handle, &self.inner);
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        visit(self.handle, &mut self.inner);
    }
    /// Nothing is ever queued below.
    fn reduced(&mut self, _: Handle, _: u32, _: u32) {}
    fn change_class(
        &mut self,
        _: Handle,
        classid: Handle,
        options: Option<&Options>,
        _: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let entry = self.entry(classid).ok_or(KernelError::errno(KernelError::ENOENT))?;
        let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        let byte = |name: &str| options.u32(name).map(|n| n as u8);
        *entry = (byte("mask").unwrap_or(entry.0), byte("value").unwrap_or(entry.1));
        Ok(classid)
    }
    fn delete_class(&mut self, classid: Handle, _: &mut Cx<'_>) -> Result<(), KernelError> {
        *self.entry(classid).ok_or(KernelError::errno(KernelError::EINVAL))? = UNTOUCHED;
        Ok(())
    }
    /// Entries that were never set are left out.
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        for (index, &entry) in self.table.iter().enumerate().filter(|(_, entry)| **entry != UNTOUCHED) {
            visit(ClassDump {
                kind: SPEC.id,
                classid: Handle::new(self.handle.major(), index as u16),
                parent: self.handle,
                leaf: Some(self.inner.handle).filter(|&h| h != Handle::UNSPEC),
                options: Options::new().with("mask", entry.0).with("value", entry.1),
                stats: Stats::default(),
                xstats: None,
            });
        }
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, _: Handle) -> Option<BlockId> {
        Some(Filters::ROOT)
    }
    fn bind(&mut self, _: Handle, classid: Handle) -> u32 {
        u32::from(classid.minor()) + 1
    }
}
