//! `cgroup`: the class that the sender's control group names. Nothing here is in a control group that names one, so that no
//! packet ever matches.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_cgroup.c`.
//! Differs: none known.

use super::ematch::Tree as Matches;
use super::{Answer, Change, Classifier, ClsSpec, Exts, Shared, Target};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Kernel, KernelError, Options};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "cgroup",
    about: "the class that the sender's control group names",
    kernels: &Kernel::ALL,
    simulated: true,
    build: |_, kernel, _| Box::new(Cgroup { kernel, head: None }),
};

/// A priority of cgroup: one filter, which cannot be named by its handle.
struct Cgroup {
    kernel: Kernel,
    head: Option<Filter>,
}

struct Filter {
    handle: u32,
    matches: Matches,
    exts: Exts,
}

impl Filter {
    fn dump(&self, look: Look<'_>) -> Options {
        let mut o = Options::new();
        self.exts.dump(&mut o, look);
        self.matches.dump(&mut o);
        o
    }
}

impl Classifier for Cgroup {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn classify(&self, _: &Shared, _: &mut Skb, _: &mut Cx<'_>) -> Option<Answer> {
        None
    }
    fn has(&self, _: &Shared, _: u32) -> bool {
        false
    }
    fn change(&mut self, _: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let refused = |errno| Err(KernelError::errno(errno));
        let Some(options) = change.options else { return refused(KernelError::EINVAL) };
        match &self.head {
            None if change.handle == 0 => return refused(KernelError::EINVAL),
            Some(head) if head.handle != change.handle => return refused(KernelError::ENOENT),
            _ => {}
        }
        let exts = Exts::validate(options, 0, &mut change)?;
        let matches = Matches::new(options.list("ematches"), self.kernel)?;
        let exts = match self.head.take() {
            // 2.6.35 keeps the actions it is not given anew.
            Some(head) if self.kernel == Kernel::V2_6_35 && exts.is_empty() => head.exts,
            _ => exts,
        };
        self.head = Some(Filter { handle: change.handle, matches, exts });
        Ok(())
    }
    fn delete(
        &mut self,
        _: &mut Shared,
        _: u32,
        _: &Device,
        _: &mut dyn Classful,
    ) -> Result<bool, KernelError> {
        Err(KernelError::errno(KernelError::EOPNOTSUPP))
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        if let Some(head) = &self.head {
            visit(head.handle, Some(head.dump(look)));
        }
    }
    /// In 2.6.35 the header is the filter.
    fn header(&self, look: Look<'_>) -> Option<(u32, Options)> {
        let head = self.head.as_ref().filter(|_| self.kernel == Kernel::V2_6_35)?;
        Some((head.handle, head.dump(look)))
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.head.iter().for_each(|head| visit(&head.exts));
    }
    fn targets(&mut self, _: &mut Shared, _: &mut dyn FnMut(&mut Target)) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, qdisc};
    use crate::tree::Tree;

    #[test]
    fn one_filter_with_one_handle() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V6_12));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        let mut run = |words: &str| {
            let req = filter(words, "cgroup", Some(Options::new()));
            tree.filter(&req, &mut bench.cx(0)).map_err(|e| e.errno)
        };
        assert_eq!(run("add prio 1 protocol 3"), Err(KernelError::EINVAL));
        assert_eq!(run("add prio 1 protocol 3 handle 1"), Ok(()));
        assert_eq!(run("add prio 1 protocol 3 handle 1"), Ok(()));
        assert_eq!(run("add prio 1 protocol 3 handle 2"), Err(KernelError::ENOENT));
        assert_eq!(run("del prio 1 protocol 3 handle 1"), Err(KernelError::ENOENT));
        assert_eq!(run("del prio 1 protocol 3"), Ok(()));
    }
}
