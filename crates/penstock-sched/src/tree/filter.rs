//! What `tc filter` asks of a tree.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_api.c` `tc_new_tfilter`, `tc_del_tfilter`, `__tcf_qdisc_find`.

use super::{Answer, Tree, with_filters};
use crate::qdisc::Cx;
use penstock_model::rtnetlink::{FilterRequest, Verb};
use penstock_model::{Handle, Kernel, KernelError};

impl Tree {
    /// Executes RTM_NEWTFILTER or RTM_DELTFILTER.
    ///
    /// # Errors
    /// The kernel's errno and sentence. Nothing is changed then.
    pub fn filter(&mut self, req: &FilterRequest, cx: &mut Cx<'_>) -> Answer {
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
        with_filters(classes, |filters, classes| filters.request(block, &req, &device, classes, cx))
            .expect("it has filters")
    }
}
