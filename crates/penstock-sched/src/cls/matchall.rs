//! `matchall`: every packet.
//!
//! Follows: linux v6.12 `net/sched/cls_matchall.c`.
//! Differs: none known.

use super::{Answer, Change, Classifier, ClsSpec, Exts, Shared, Target, hardware_flags};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options};
use penstock_packet::Skb;
use std::cell::Cell;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "matchall",
    about: "matches every packet",
    kernels: &Kernel::LIVING,
    simulated: true,
    build: |_, _, _| Box::new(Matchall { head: None }),
};

/// A priority of matchall: one filter at most.
struct Matchall {
    head: Option<Filter>,
}

struct Filter {
    handle: u32,
    flags: u32,
    target: Target,
    exts: Exts,
    hits: Cell<u64>,
}

impl Classifier for Matchall {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    #[inline]
    fn classify(&self, _: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        let head = self.head.as_ref()?;
        head.hits.set(head.hits.get() + 1);
        head.exts.exec(head.target.0, skb, cx)
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        self.head.as_ref().is_some_and(|head| head.handle == handle)
    }
    fn change(&mut self, _: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let Some(options) = change.options else { return Err(KernelError::errno(KernelError::EINVAL)) };
        if self.head.is_some() {
            return Err(KernelError::errno(KernelError::EEXIST));
        }
        let flags = hardware_flags(options.u32("flags").unwrap_or(0))?;
        let exts = Exts::validate(options, flags.asked(), &mut change)?;
        let flags = flags.in_software()?;
        let mut target = Target::default();
        if let Some(classid) = options.u32("classid") {
            target.bind(change.parent, Handle(classid), change.classes);
        }
        let handle = change.handle.max(1);
        self.head = Some(Filter { handle, flags, target, exts, hits: Cell::new(0) });
        Ok(())
    }
    fn delete(
        &mut self,
        _: &mut Shared,
        _: u32,
        _: &Device,
        _: &mut dyn Classful,
    ) -> Result<bool, KernelError> {
        Ok(true)
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        let Some(head) = &self.head else { return };
        let mut o = Options::new();
        head.target.dump(&mut o);
        o.set("flags", head.flags.into());
        o.set("rhit", head.hits.get().into());
        head.exts.dump_counted(head.flags, &mut o, look);
        visit(head.handle, Some(o));
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.head.iter().for_each(|head| visit(&head.exts));
    }
    fn targets(&mut self, _: &mut Shared, visit: &mut dyn FnMut(&mut Target)) {
        self.head.iter_mut().for_each(|head| visit(&mut head.target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, packet, qdisc};
    use crate::tree::Tree;
    use penstock_model::Time;

    #[test]
    fn one_filter_a_priority_takes_every_packet() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V6_12));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        let rule = |flags: u32| Some(Options::new().with("classid", 0x1_0003u32).with("flags", flags));
        let mut add = |words: &str, flags: u32| {
            tree.filter(&filter(words, "matchall", rule(flags)), &mut bench.cx(0)).map_err(|e| e.errno)
        };
        assert_eq!(add("add prio 1 protocol 3", 2), Err(KernelError::EOPNOTSUPP));
        assert_eq!(add("add prio 1 protocol 3", 3), Err(KernelError::EINVAL));
        assert_eq!(add("add prio 1 protocol 3", 0), Ok(()));
        assert_eq!(add("add prio 1 protocol 3 handle 2", 0), Err(KernelError::EEXIST));
        tree.enqueue(packet(0, 100), &mut bench.cx(0));
        assert_eq!(tree.dump_classes(Time::ZERO)[2].stats.qlen, 1);
        let dumps = tree.dump_filters(Handle::UNSPEC, bench.look()).unwrap();
        let options = dumps[1].options.as_ref().unwrap();
        assert_eq!((dumps[1].handle, options.u32("flags"), options.u64("rhit")), (1, Some(8), Some(1)));
    }
}
