//! `basic`: extended matches in a tree.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_basic.c`.
//! Differs: none known.

use super::ematch::Tree as Matches;
use super::list::List;
use super::{Answer, Change, Classifier, ClsSpec, Exts, Shared, Target};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "basic",
    about: "extended matches (cmp, meta, nbyte, u32) with and, or, not",
    kernels: &Kernel::ALL,
    simulated: true,
    build: |_, kernel, _| Box::new(Basic { kernel, filters: List::new(), generated: 0 }),
};

/// A priority of basic filters; the youngest is asked first.
struct Basic {
    kernel: Kernel,
    filters: List<Filter>,
    /// The last handle 2.6.35 gave.
    generated: u32,
}

struct Filter {
    matches: Matches,
    target: Target,
    exts: Exts,
}

impl Basic {
    /// A handle for a filter that names none.
    fn handle(&mut self) -> Result<u32, KernelError> {
        if self.kernel >= Kernel::V6_12 {
            return Ok(self.filters.free_handle());
        }
        // Round and round from the last one on.
        for _ in 0..0x8000_0000u32 {
            self.generated = if self.generated == 0x7fff_fffe { 1 } else { self.generated + 1 };
            if !self.filters.has(self.generated) {
                return Ok(self.generated);
            }
        }
        Err(KernelError::errno(KernelError::EINVAL))
    }
}

impl Classifier for Basic {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn classify(&self, _: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        self.filters.iter().rev().find_map(|(_, f)| {
            if f.matches.matches(skb, cx.rng) { f.exts.exec(f.target.0, skb, cx) } else { None }
        })
    }
    fn exact(&self) -> bool {
        self.filters.iter().all(|(_, f)| f.matches.is_exact())
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        self.filters.has(handle)
    }
    fn change(&mut self, _: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let Some(options) = change.options else { return Err(KernelError::errno(KernelError::EINVAL)) };
        let exts = Exts::validate(options, 0, &mut change)?;
        let matches = Matches::new(options.list("ematches"), self.kernel)?;
        let handle = if change.handle == 0 { self.handle()? } else { change.handle };
        let classid = options.u32("classid").map(Handle);
        let old = self.kernel == Kernel::V2_6_35;
        if let (true, Some(filter)) = (old, self.filters.get_mut(handle)) {
            // 2.6.35 keeps what it is not given anew, but for the matches.
            if let Some(classid) = classid {
                filter.target.bind(change.parent, classid, change.classes);
            }
            if !exts.is_empty() {
                filter.exts = exts;
            }
            filter.matches = matches;
            return Ok(());
        }
        let mut target = Target::default();
        if let Some(classid) = classid {
            target.bind(change.parent, classid, change.classes);
        }
        if let Some(mut gone) = self.filters.insert(handle, Filter { matches, target, exts }) {
            gone.target.unbind(change.classes);
        }
        Ok(())
    }
    fn delete(
        &mut self,
        _: &mut Shared,
        handle: u32,
        _: &Device,
        classes: &mut dyn Classful,
    ) -> Result<bool, KernelError> {
        if let Some(mut gone) = self.filters.remove(handle) {
            gone.target.unbind(classes);
        }
        Ok(self.filters.is_empty())
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        for (handle, filter) in self.filters.iter().rev() {
            let mut o = Options::new();
            filter.target.dump(&mut o);
            filter.exts.dump(&mut o, look);
            filter.matches.dump(&mut o);
            visit(handle, Some(o));
        }
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.filters.iter().for_each(|(_, f)| visit(&f.exts));
    }
    fn targets(&mut self, _: &mut Shared, visit: &mut dyn FnMut(&mut Target)) {
        self.filters.iter_mut().for_each(|f| visit(&mut f.target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, packet, qdisc};
    use crate::tree::Tree;
    use penstock_model::{Time, Value};

    #[test]
    fn the_youngest_filter_that_matches_decides() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = Tree::new(device(kernel));
            let mut req = qdisc("add root handle 1: prio");
            req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
            tree.qdisc(&req, &mut bench.cx(0)).unwrap();
            // cmp(u8 at 9 layer network eq PROTOCOL): the protocol of the IP header.
            let rule = |class: u32, protocol: u32| {
                let cmp = Options::new()
                    .with("kind", 1u32)
                    .with("flags", 0u32)
                    .with("align", 1u32)
                    .with("layer", 1u32)
                    .with("off", 9u32)
                    .with("val", protocol);
                let mut o = Options::new().with("classid", 0x1_0000 + class);
                o.set("ematches", Value::List(vec![cmp]));
                Some(o)
            };
            for (class, protocol) in [(2, 17), (3, 17), (1, 6)] {
                let words = "add prio 1 protocol 800";
                tree.filter(&filter(words, "basic", rule(class, protocol)), &mut bench.cx(0)).unwrap();
            }
            tree.enqueue(packet(0, 100), &mut bench.cx(0));
            let queued: Vec<u32> = tree.dump_classes(Time::ZERO).iter().map(|c| c.stats.qlen).collect();
            assert_eq!(queued, [0, 0, 1], "{kernel}");
            let dumps = tree.dump_filters(Handle::UNSPEC, bench.look()).unwrap();
            assert_eq!(dumps.iter().map(|d| d.handle).collect::<Vec<_>>(), [0, 3, 2, 1], "{kernel}");
        }
    }
}
