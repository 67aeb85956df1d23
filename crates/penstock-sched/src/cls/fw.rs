//! `fw`: classes by firewall mark.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_fw.c`.
//! Differs: none known.

use super::{Answer, Change, Classifier, ClsSpec, Exts, Hit, Shared, Target};
use crate::act::{self, Look};
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "fw",
    about: "class by firewall mark",
    kernels: &Kernel::ALL,
    simulated: true,
    build: |_, kernel, _| Box::new(Fw::new(kernel)),
};

/// One mark.
#[derive(Debug)]
struct Filter {
    id: u32,
    /// Name and index of the interface the packet must have come in by; index 0: any.
    indev: (String, u32),
    target: Target,
    exts: Exts,
}

/// Filters in the buckets of their hash, oldest first (they are asked from the youngest on), and the mask of marks they share.
struct Head {
    mask: u32,
    buckets: Vec<Vec<Filter>>,
}

/// A priority of fw filters. Without any, the mark itself is the classid ("old method").
struct Fw {
    kernel: Kernel,
    head: Option<Head>,
}

impl Fw {
    fn new(kernel: Kernel) -> Fw {
        Fw { kernel, head: None }
    }
    /// `HTSIZE`: 256, or as many pointers as a page of a 64-bit machine holds.
    fn size(&self) -> usize {
        match self.kernel {
            Kernel::V2_6_35 => 512,
            Kernel::V6_12 | Kernel::V7_2 => 256,
        }
    }
    /// `fw_hash`.
    #[inline]
    fn bucket(&self, id: u32) -> usize {
        let hash = match self.kernel {
            Kernel::V2_6_35 => (id >> 27) ^ (id >> 18 & 0x1ff) ^ (id >> 9 & 0x1ff) ^ (id & 0x1ff),
            Kernel::V6_12 | Kernel::V7_2 => {
                let id = id ^ id >> 16;
                (id ^ id >> 8) & 0xff
            }
        };
        hash as usize
    }
    fn filter_mut(&mut self, id: u32) -> Option<&mut Filter> {
        let bucket = self.bucket(id);
        self.head.as_mut()?.buckets[bucket].iter_mut().find(|f| f.id == id)
    }
}

impl Classifier for Fw {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    #[inline]
    fn classify(&self, shared: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        let Some(head) = &self.head else {
            let id = Handle(skb.mark);
            let ours = id.major() == 0 || id.major() == shared.qdisc.major();
            let hit = Hit { classid: id, class: 0 };
            return (skb.mark != 0 && ours).then_some(Answer { said: act::OK, hit });
        };
        let id = skb.mark & head.mask;
        head.buckets[self.bucket(id)].iter().rev().filter(|f| f.id == id).find_map(|f| {
            match f.indev.1 == 0 || f.indev.1 == skb.iif {
                true => f.exts.exec(f.target.0, skb, cx),
                false => None,
            }
        })
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        self.head.as_ref().is_some_and(|h| h.buckets[self.bucket(handle)].iter().any(|f| f.id == handle))
    }
    fn change(&mut self, shared: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let einval = KernelError::errno(KernelError::EINVAL);
        let Some(options) = change.options else {
            if change.handle == 0 && shared.is_block() {
                let why = "Must specify mark when attaching fw filter to block";
                return Err(change.device.refusal(KernelError::EINVAL, why));
            }
            return if change.handle == 0 { Ok(()) } else { Err(einval) };
        };
        let given = options.u32("mask");
        let id = change.handle;
        if self.filter_mut(id).is_none() && id == 0 {
            return Err(einval);
        }
        let size = self.size();
        let fresh = self.head.is_none();
        let exts = Exts::validate(options, 0, &mut change)?;
        let indev = indev(options, change.device)?;
        let head = self.head.get_or_insert_with(|| Head {
            mask: given.unwrap_or(u32::MAX),
            buckets: (0..size).map(|_| Vec::new()).collect(),
        });
        if given.unwrap_or(u32::MAX) != head.mask {
            debug_assert!(!fresh, "a fresh head has the mask given");
            return Err(einval);
        }
        let old = self.kernel == Kernel::V2_6_35;
        let classid = options.u32("classid").map(Handle);
        let (parent, classes) = (change.parent, change.classes);
        if let Some(filter) = self.filter_mut(id) {
            match classid {
                Some(classid) => filter.target.bind(parent, classid, classes),
                // Today a replaced filter starts anew; in 2010 it kept its class.
                None if !old => {
                    filter.target.unbind(classes);
                    filter.target = Target::default();
                }
                None => {}
            }
            if options.has("indev") {
                filter.indev = indev;
            }
            // 2.6.35 keeps what it is not given anew.
            if !old || !exts.is_empty() {
                filter.exts = exts;
            }
            return Ok(());
        }
        let mut target = Target::default();
        if let Some(classid) = classid {
            target.bind(parent, classid, classes);
        }
        let bucket = self.bucket(id);
        if let Some(head) = &mut self.head {
            head.buckets[bucket].push(Filter { id, indev, target, exts });
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
        let Some(head) = &mut self.head else { return Err(KernelError::errno(KernelError::EINVAL)) };
        let Some(at) = head.buckets[bucket].iter().position(|f| f.id == handle) else {
            return Err(KernelError::errno(KernelError::EINVAL));
        };
        head.buckets[bucket].remove(at).target.unbind(classes);
        Ok(head.buckets.iter().all(Vec::is_empty))
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        let Some(head) = &self.head else { return };
        for filter in head.buckets.iter().flat_map(|b| b.iter().rev()) {
            let classid = filter.target.0.classid;
            let mut options = None;
            if classid != Handle::UNSPEC || !filter.exts.is_empty() {
                let mut o = Options::new();
                if classid != Handle::UNSPEC {
                    o.set("classid", classid.0.into());
                }
                if !filter.indev.0.is_empty() {
                    o.set("indev", filter.indev.0.as_str().into());
                }
                if head.mask != u32::MAX {
                    o.set("mask", head.mask.into());
                }
                filter.exts.dump(&mut o, look);
                options = Some(o);
            }
            visit(filter.id, options);
        }
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.head.iter().flat_map(|h| &h.buckets).flatten().for_each(|f| visit(&f.exts));
    }
    /// `fw_walk` of the old method says stop (and 6.12 takes it for "Buffer too small for object").
    fn ends_dump(&self) -> bool {
        self.head.is_none()
    }
    fn targets(&mut self, _: &mut Shared, visit: &mut dyn FnMut(&mut Target)) {
        for filter in self.head.iter_mut().flat_map(|h| &mut h.buckets).flatten() {
            visit(&mut filter.target);
        }
    }
}

/// `indev`, the interface a packet must have come in by: its name, and as `ifindex` its index, which the host adds
/// where it has such an interface.
pub(super) fn indev(options: &Options, device: &Device) -> Result<(String, u32), KernelError> {
    let Some(name) = options.str("indev") else { return Ok((String::new(), 0)) };
    match options.u32("ifindex") {
        Some(index) => Ok((name.to_owned(), index)),
        // 2.6.35 compares names: one that is not there never matches.
        None if device.kernel == Kernel::V2_6_35 => Ok((name.to_owned(), u32::MAX)),
        None => Err(device.refusal(KernelError::ENODEV, "Network device not found")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, packet, qdisc};
    use crate::tree::Tree;
    use penstock_model::Time;

    fn tree(kernel: Kernel, bench: &mut Bench) -> Tree {
        let mut tree = Tree::new(device(kernel));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![1u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        tree
    }
    /// The band, from 1, that a packet with this mark lands in.
    fn band(tree: &mut Tree, bench: &mut Bench, mark: u32) -> usize {
        let mut p = packet(0, 100);
        p.mark = mark;
        tree.enqueue(p, &mut bench.cx(0));
        let at = tree.dump_classes(Time::ZERO).iter().position(|c| c.stats.qlen > 0).unwrap();
        tree.dequeue(&mut bench.cx(0)).unwrap();
        at + 1
    }

    #[test]
    fn marks_name_classes_behind_one_mask() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = tree(kernel, &mut bench);
            let rule =
                |class: u32| Some(Options::new().with("classid", 0x1_0000 + class).with("mask", 0xffu32));
            let mut add = |words: &str, options| tree.filter(&filter(words, "fw", options), &mut bench.cx(0));
            add("add prio 1 protocol 800 handle 6", rule(3)).unwrap();
            add("add prio 1 protocol 800 handle 7", rule(1)).unwrap();
            let again = add("add prio 1 protocol 800 handle 7", rule(1));
            assert_eq!(again, Err(device(kernel).refusal(KernelError::EEXIST, "Filter already exists")));
            let other = rule(1).map(|o| o.with("mask", 0xfu32));
            assert_eq!(add("add prio 1 protocol 800 handle 8", other).map_err(|e| e.errno), Err(22));
            let bands = [6, 0x106, 7, 5, 0].map(|mark| band(&mut tree, &mut bench, mark));
            assert_eq!(bands, [3, 3, 1, 2, 2], "{kernel}");
            tree.filter(&filter("del prio 1 protocol 800 handle 6", "fw", None), &mut bench.cx(0)).unwrap();
            assert_eq!(band(&mut tree, &mut bench, 6), 2);
        }
    }

    #[test]
    fn without_options_the_mark_is_the_class() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut tree = tree(kernel, &mut bench);
            tree.filter(&filter("add prio 1 protocol 800", "fw", None), &mut bench.cx(0)).unwrap();
            let bands = [3, 0x1_0001, 0x2_0001, 0].map(|mark| band(&mut tree, &mut bench, mark));
            assert_eq!(bands, [3, 1, 2, 2], "{kernel}");
        }
    }
}
