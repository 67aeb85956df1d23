//! What `tc class` asks of a tree.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_api.c` `tc_ctl_tclass`.

use super::{Answer, Tree, handles_below, with_filters};
use crate::estimator::Estimator;
use crate::qdisc::Cx;
use crate::sch;
use penstock_model::rtnetlink::{ClassRequest, Verb};
use penstock_model::{Handle, Kernel, KernelError, Options};

impl Tree {
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
        let kind_of_qdisc = node.kind();
        let classes = node.classes_mut().ok_or(bare(KernelError::EINVAL))?;
        let mut classid = Handle::new(qdisc.major(), req.classid.minor());
        if req.classid == Handle::UNSPEC {
            classid = if parent == Handle::ROOT { qdisc } else { Handle::UNSPEC };
        }
        let there = classid != Handle::UNSPEC && classes.find(classid);
        match (req.verb, there) {
            (Verb::Add, true) => Err(bare(KernelError::EEXIST)),
            (Verb::Del, true) => self.delete_class(qdisc, classid, cx),
            (Verb::Add | Verb::Replace, false)
            | (Verb::Change | Verb::Replace | Verb::Create | Verb::Link, true) => {
                if device.kernel >= Kernel::V6_12 && classid == Handle::ROOT {
                    let why = "Cannot create traffic class with classid TC_H_ROOT";
                    return Err(device.refusal(KernelError::EINVAL, why));
                }
                let below = classes.leaf(parent).map(handles_below).unwrap_or_default();
                if let (Some(spec), true) = (req.estimator, req.options.is_some()) {
                    // A bad estimator is refused before anything is changed.
                    Estimator::new(device.kernel, spec, cx.now, 0, 0)?;
                }
                // The kernel does not compare kinds: it reads what another kind sent as its own. Here it reads nothing in it.
                let nothing = Options::new();
                let foreign = req.kind.as_deref().is_some_and(|kind| kind != kind_of_qdisc);
                let options = req.options.as_ref().map(|options| if foreign { &nothing } else { options });
                let (made, warning) = self
                    .watched(qdisc, cx, |node, cx| {
                        let classes = node.classes_mut().expect("it has classes");
                        let made = classes.change_class(parent, classid, options, cx)?;
                        if let Some(spec) = req.estimator {
                            classes.estimate(made, spec, cx)?;
                        }
                        let warning = classes.take_warning();
                        Ok::<_, KernelError>((made, warning))
                    })
                    .expect("the qdisc was found")?;
                self.warning = warning;
                let mut sequence = self.sequence;
                let node = self.node_mut(qdisc).expect("the qdisc was found");
                if let Some(leaf) = node.classes_mut().and_then(|c| c.leaf_mut(made)) {
                    Tree::count(leaf, &mut sequence);
                }
                self.sequence = sequence;
                // A leaf that becomes a parent loses its qdisc.
                for handle in below {
                    if self.node(handle).is_none() {
                        self.places.remove(&handle);
                    }
                }
                if !there && device.kernel >= Kernel::V6_12 {
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
        let at_ingress = sch::ingress::is(node.kind());
        let below = node.classes().and_then(|c| c.leaf(classid)).map(handles_below).unwrap_or_default();
        let result = self
            .watched(qdisc, cx, |node, cx| {
                node.classes_mut().expect("it has classes").delete_class(classid, cx)
            })
            .expect("the caller found it");
        if result.is_ok() {
            // dsmark's classes share their qdisc: it stays.
            for handle in below {
                if self.node(handle).is_none() {
                    self.places.remove(&handle);
                }
            }
        }
        // Filters are reached by way of the classes, of which those at the ingress hook show none (`ingress_walk`).
        if self.device.kernel >= Kernel::V6_12 && !at_ingress {
            //= linux v6.12 sch_api.c tc_ctl_tclass: filters of classes let go of the class even where it stays.
            let node = self.node_mut(qdisc).expect("the caller found it");
            with_filters(node.classes_mut().expect("it has classes"), |filters, classes| {
                filters.unbind_class(classid, classes);
            });
        }
        result
    }
}
