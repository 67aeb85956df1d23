//! `tcindex`: the class by the packet's tcindex, which dsmark sets.
//!
//! Follows: linux v2.6.35 `net/sched/cls_tcindex.c`; gone from Linux since 6.3, it is kept under 6.12 for scripts that name it.
//! Differs: none known.

use super::{Answer, Change, Classifier, ClsSpec, Exts, Hit, Shared, Target};
use crate::act::{self, Look};
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options};
use penstock_packet::Skb;
use std::collections::BTreeMap;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "tcindex",
    about: "the class by the packet's tcindex, which dsmark sets",
    kernels: &Kernel::BEFORE_7,
    simulated: true,
    build: |_, kernel, _| Box::new(Tcindex { kernel, params: Params::default(), filters: BTreeMap::new() }),
};

/// Largest index for which a table of all numbers is made of itself (`PERFECT_HASH_THRESHOLD`).
const PERFECT_MAX: u32 = 64;
/// `DEFAULT_HASH_SIZE`.
const HASH_SIZE: u32 = 64;

#[derive(Clone)]
struct Params {
    mask: u32,
    shift: u32,
    hash: u32,
    fall_through: u32,
    /// The table there is: of how many, and whether it has a place for each number.
    table: Option<(u32, bool)>,
}

impl Default for Params {
    fn default() -> Params {
        Params { mask: 0xffff, shift: 0, hash: HASH_SIZE, fall_through: 1, table: None }
    }
}

impl Params {
    fn most(&self) -> u32 {
        self.mask.checked_shr(self.shift).unwrap_or(0)
    }
    /// `valid_perfect_hash`.
    fn perfect(&self) -> bool {
        self.hash > self.most()
    }
    fn dump(&self) -> Options {
        Options::new()
            .with("hash", self.hash)
            .with("mask", self.mask)
            .with("shift", self.shift)
            .with("fall_through", self.fall_through)
    }
}

/// A priority of tcindex: its table.
struct Tcindex {
    kernel: Kernel,
    params: Params,
    /// By bucket, then by the order they were made in.
    filters: BTreeMap<u32, Vec<Filter>>,
}

struct Filter {
    key: u32,
    target: Target,
    exts: Exts,
}

impl Filter {
    /// `tcindex_filter_is_set`.
    fn is_set(&self) -> bool {
        self.target.0.classid != Handle::UNSPEC || !self.exts.is_empty()
    }
}

impl Tcindex {
    /// In a table of all numbers each has its own bucket.
    fn bucket(&self, handle: u32) -> u32 {
        match self.params.table {
            Some((_, true)) => handle,
            Some((size, false)) => (handle & 0xffff) % size,
            None => 0,
        }
    }
    fn find(&self, handle: u32) -> Option<&Filter> {
        let key = if self.params.table.is_some_and(|t| t.1) { handle } else { handle & 0xffff };
        self.filters.get(&self.bucket(handle))?.iter().find(|f| f.key == key)
    }
}

impl Classifier for Tcindex {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// `tcindex_classify`.
    fn classify(&self, shared: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        let key = (u32::from(skb.tc.index) & self.params.mask).checked_shr(self.params.shift).unwrap_or(0);
        let perfect = self.params.table.is_some_and(|t| t.1);
        match self.find(key).filter(|f| !perfect || f.is_set()) {
            Some(f) => f.exts.exec(f.target.0, skb, cx),
            None if self.params.fall_through == 0 => None,
            None => {
                let classid = Handle::new(shared.qdisc.major(), key as u16);
                Some(Answer { said: act::OK, hit: Hit { classid, class: 0 } })
            }
        }
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        // A place without class and actions counts as empty.
        self.find(handle).is_some_and(Filter::is_set)
    }
    fn change(&mut self, _: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let Some(o) = change.options else { return Ok(()) };
        let exts = Exts::validate(o, 0, &mut change)?;
        let mut p = self.params.clone();
        p.hash = o.u32("hash").unwrap_or(p.hash);
        p.mask = o.u32("mask").unwrap_or(p.mask);
        p.shift = o.u32("shift").unwrap_or(p.shift);
        if self.kernel >= Kernel::V6_12 && p.shift > 16 {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let busy = match p.table {
            Some((size, true)) => !p.perfect() || p.hash > size,
            Some((size, false)) => p.hash != size,
            None => false,
        };
        if busy {
            return Err(KernelError::errno(KernelError::EBUSY));
        }
        p.fall_through = o.u32("fall_through").unwrap_or(p.fall_through);
        if p.hash == 0 {
            p.hash = if p.most() < PERFECT_MAX { p.most() + 1 } else { HASH_SIZE };
        }
        let size = p.table.map_or(p.hash, |t| t.0);
        let handle = change.handle;
        if (p.table.is_some_and(|t| t.1) || p.perfect()) && handle >= size {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        if p.table.is_none() {
            p.table = Some((p.hash, p.perfect()));
        }
        self.params = p;
        let (bucket, perfect) = (self.bucket(handle), self.params.table.is_some_and(|t| t.1));
        let key = if perfect { handle } else { handle & 0xffff };
        let list = self.filters.entry(bucket).or_default();
        let at = list.iter().position(|f| f.key == key).unwrap_or_else(|| {
            list.push(Filter { key, target: Target::default(), exts: Exts::default() });
            list.len() - 1
        });
        let filter = &mut list[at];
        if let Some(classid) = o.u32("classid") {
            filter.target.bind(change.parent, Handle(classid), change.classes);
        }
        if !exts.is_empty() {
            filter.exts = exts;
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
        let bucket = self.bucket(handle);
        let perfect = self.params.table.is_some_and(|t| t.1);
        let unbound = |f: &Filter| f.target.0.class == 0;
        if perfect && self.kernel == Kernel::V2_6_35 && self.find(handle).is_none_or(unbound) {
            return Err(KernelError::errno(KernelError::ENOENT));
        }
        if let Some(list) = self.filters.get_mut(&bucket)
            && let Some(at) = list.iter().position(|f| perfect || f.key == handle & 0xffff)
        {
            list.remove(at).target.unbind(classes);
            if list.is_empty() {
                self.filters.remove(&bucket);
            }
        }
        Ok(false)
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        let perfect = self.params.table.is_some_and(|t| t.1);
        for f in self.filters.values().flatten() {
            // The kernel shows what points at a class that is there.
            let bound = f.target.0.class != 0;
            if perfect && !bound {
                continue;
            }
            let mut o = Options::new();
            if bound {
                f.target.dump(&mut o);
            }
            f.exts.dump(&mut o, look);
            visit(f.key, Some(o));
        }
    }
    fn header(&self, _: Look<'_>) -> Option<(u32, Options)> {
        (self.kernel == Kernel::V2_6_35).then(|| (u32::MAX, self.params.dump()))
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.filters.values().flatten().for_each(|f| visit(&f.exts));
    }
    fn targets(&mut self, _: &mut Shared, visit: &mut dyn FnMut(&mut Target)) {
        self.filters.values_mut().flatten().for_each(|f| visit(&mut f.target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, packet, qdisc};
    use crate::tree::Tree;
    use penstock_model::Time;

    #[test]
    fn a_table_that_is_there_keeps_its_size() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V2_6_35));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        let mut run = |words: &str, o: Options| {
            let req = filter(&format!("{words} prio 1 protocol 3"), "tcindex", Some(o));
            tree.filter(&req, &mut bench.cx(0)).map_err(|e| e.errno)
        };
        let mask = || Options::new().with("mask", 0xfcu32).with("shift", 2u32);
        assert_eq!(run("add", mask().with("hash", 64u32)), Ok(()));
        assert_eq!(run("add handle 64", Options::new()), Err(KernelError::EINVAL));
        assert_eq!(run("add handle a", Options::new().with("classid", 0x1_0002u32)), Ok(()));
        assert_eq!(run("add handle a", Options::new()), Err(KernelError::EEXIST));
        assert_eq!(run("replace handle a", Options::new().with("hash", 128u32)), Err(KernelError::EBUSY));
        let dumps = tree.dump_filters(Handle::UNSPEC, bench.look()).unwrap();
        let head = dumps[0].options.as_ref().unwrap();
        assert_eq!((dumps[0].handle, head.u32("mask"), head.u32("shift")), (u32::MAX, Some(0xfc), Some(2)));
        assert_eq!((dumps.len(), dumps[1].handle), (2, 0xa));
        // AF11 (0x28) is 0xa of the six bits: class 1:2. What no entry names falls through to its own number.
        for (index, band) in [(0x28, 2), (0x0c, 3), (0, 1)] {
            let mut p = packet(0, 100);
            p.tc.index = index;
            tree.enqueue(p, &mut bench.cx(0));
            let held: Vec<u32> = tree.dump_classes(Time::ZERO).iter().map(|c| c.stats.qlen).collect();
            assert_eq!(held.iter().position(|&n| n == 1), Some(band - 1), "{index:#x}");
            tree.dequeue(&mut bench.cx(0)).unwrap();
        }
    }
}
