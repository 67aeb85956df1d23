//! `route`: the realms of the route a packet takes.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_route.c`.
//! A packet's realms are those of the route it takes, which who routes it notes ([`Rare::realms`](penstock_packet::Rare)).
//!
//! Kept as the kernel has it: `fromif` is filed by the low bits of the interface's index and looked for by the high ones, so it matches
//! only where the index is a multiple of 16; and answers are remembered by realms whose destination was already taken off (`fastmap`).
//! Differs: what 2.6.35 corrupts when a filter is changed to another handle is not corrupted.

use super::{Answer, Change, Classifier, ClsSpec, Exts, Hit, Shared, Target};
use crate::act::{self, Look};
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options};
use penstock_packet::Skb;
use std::cell::Cell;
use std::collections::BTreeMap;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "route",
    about: "the realms of the route a packet takes",
    kernels: &Kernel::ALL,
    simulated: true,
    build: |_, kernel, _| {
        let (filters, remembered) = (BTreeMap::new(), Cell::new([None; FASTMAP]));
        Box::new(Route { kernel, begun: false, filters, remembered })
    },
};

/// Where a filter stands: bucket by destination, by source, and its handle.
type Place = (u32, u32, u32);

/// A priority of route filters in the order of their buckets.
struct Route {
    kernel: Kernel,
    /// Whether there ever was a filter.
    begun: bool,
    filters: BTreeMap<Place, Filter>,
    /// `fastmap`: by realms and interface, the filter that answered, or that none did.
    remembered: Cell<[Option<Remembered>; FASTMAP]>,
}

/// Entries of `fastmap`.
const FASTMAP: usize = 16;

/// Realms, interface, who answered.
type Remembered = (u32, u32, Option<Place>);

struct Filter {
    id: u32,
    /// Index and name of `fromif`.
    iif: u32,
    fromif: String,
    target: Target,
    exts: Exts,
}

/// `to_hash` and `from_hash`. `None`: there is no such bucket.
fn place(handle: u32) -> Option<Place> {
    let to = if handle & 0x8000 != 0 { 256 } else { handle & 0xff };
    let id = handle >> 16;
    let from = match id & 0xffff {
        0xffff => 32,
        id if id & 0x8000 == 0 => {
            if id > 255 {
                return None;
            }
            id & 0xf
        }
        id => 16 + (id & 0xf),
    };
    Some((to, from, handle))
}

impl Route {
    fn remember(&self, id: u32, iif: u32, who: Option<Place>) {
        let mut all = self.remembered.get();
        all[(id & 0xf) as usize] = Some((id, iif, who));
        self.remembered.set(all);
    }
    fn forget(&mut self) {
        self.remembered.set([None; FASTMAP]);
    }
}

impl Classifier for Route {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    //= linux v6.12 net/sched/cls_route.c route4_classify
    fn classify(&self, shared: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        let (mut id, iif) = (skb.rare().realms, skb.iif);
        if !self.begun {
            // 2.6.35 without any filter: the realms are the class.
            let class = Handle(id);
            let ours = class.major() == 0 || class.major() == shared.qdisc.major();
            let hit = Hit { classid: class, class: 0 };
            return (id != 0 && ours && self.kernel == Kernel::V2_6_35)
                .then_some(Answer { said: act::OK, hit });
        }
        let slot = |id: u32| (id & 0xf) as usize;
        if let Some((of, from, found)) = self.remembered.get()[slot(id)]
            && (of, from) == (id, iif)
        {
            let filter = self.filters.get(&found?)?;
            return Some(Answer { said: act::OK, hit: filter.target.0 });
        }
        let mut keep = true;
        for to in [id & 0xff, 256] {
            if to == 256 {
                id &= !0xffff;
            }
            for from in [id >> 16 & 0xf, 16 + (iif >> 16 & 0xf), 32] {
                let bucket = self.filters.range((to, from, 0)..=(to, from, u32::MAX));
                for (place, f) in bucket {
                    if from < 16 && f.id != id || (16..32).contains(&from) && f.iif != iif {
                        continue;
                    }
                    let plain = f.exts.is_empty();
                    if plain && keep {
                        self.remember(id, iif, Some(*place));
                    }
                    match f.exts.exec(f.target.0, skb, cx) {
                        None => keep = false,
                        answer => return answer,
                    }
                }
            }
        }
        if keep {
            self.remember(id, iif, None);
        }
        None
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        place(handle).is_some_and(|place| self.filters.contains_key(&place))
    }
    fn change(&mut self, _: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let device = *change.device;
        let no = |errno, why: &str| Err(device.refusal(errno, why));
        let new_kernel = self.kernel >= Kernel::V6_12;
        let handle = change.handle;
        if new_kernel && handle == 0 {
            return no(KernelError::EINVAL, "Creating with handle of 0 is invalid");
        }
        let Some(o) = change.options else {
            if !new_kernel && handle == 0 {
                return Ok(());
            }
            return no(KernelError::EINVAL, "cls_route: Missing options");
        };
        let n = |name| o.u32(name);
        for (name, max) in [("to", 0xff), ("from", 0xff), ("iif", 0x7fff)] {
            if n(name).is_some_and(|n| n > max) {
                let errno = if new_kernel { KernelError::ERANGE } else { KernelError::EINVAL };
                return Err(KernelError::errno(errno));
            }
        }
        let fold = place(handle).filter(|place| self.filters.contains_key(place));
        let exts = Exts::validate(o, 0, &mut change)?;
        let (to, from, iif) = (n("to"), n("from"), n("iif"));
        if to.is_some() && fold.is_none() && handle & 0x8000 != 0 {
            return no(KernelError::EINVAL, "Invalid handle");
        }
        if from.is_some() && iif.is_some() {
            return no(KernelError::EINVAL, "'from' and 'fromif' are mutually exclusive");
        }
        let mut made = to.unwrap_or(0x8000);
        made |= match (from, iif) {
            (Some(id), _) => id << 16,
            (None, Some(id)) => (id | 0x8000) << 16,
            (None, None) => 0xffff << 16,
        };
        let keeps = fold.is_none() || (new_kernel && made == handle & !0x7f00);
        if handle != 0 && keeps {
            made |= handle & 0x7f00;
        }
        if new_kernel && fold.is_some() && to.is_none() && from.is_none() && iif.is_none() && made != handle {
            return no(KernelError::EINVAL, "Routing attributes required");
        }
        if handle != 0 && fold.is_none() && made != handle {
            let why = format!("Handle mismatch constructed: {handle:x} (expected: {made:x})");
            return no(KernelError::EINVAL, &why);
        }
        if made == 0 && new_kernel {
            return no(KernelError::EINVAL, "Replacing with handle of 0 is invalid");
        }
        let here = place(made).ok_or(KernelError::errno(KernelError::EINVAL))?;
        if self.filters.contains_key(&here) && fold != Some(here) {
            return no(KernelError::EEXIST, &format!("Handle {made:x} is already in use"));
        }
        let old = fold.and_then(|place| self.filters.remove(&place));
        let (mut id, mut index, mut fromif) =
            old.as_ref().map_or((0, 0, String::new()), |f| (f.id, f.iif, f.fromif.clone()));
        if let Some(to) = to {
            id = to;
        }
        if let Some(from) = from {
            id = to.unwrap_or(0) | from << 16;
        } else if let Some(iif) = iif {
            index = iif;
            fromif = o.str("fromif").unwrap_or("").to_owned();
        }
        let mut target = Target::default();
        let mut exts = exts;
        if let Some(mut old) = old {
            if new_kernel {
                old.target.unbind(change.classes);
            } else {
                // 2.6.35 keeps what it is not given anew.
                target = old.target;
                exts = if exts.is_empty() { old.exts } else { exts };
            }
        }
        if let Some(classid) = n("classid") {
            target.bind(change.parent, Handle(classid), change.classes);
        }
        self.forget();
        self.begun = true;
        self.filters.insert(here, Filter { id, iif: index, fromif, target, exts });
        Ok(())
    }
    fn delete(
        &mut self,
        _: &mut Shared,
        handle: u32,
        _: &Device,
        classes: &mut dyn Classful,
    ) -> Result<bool, KernelError> {
        if let Some(mut gone) = place(handle).and_then(|place| self.filters.remove(&place)) {
            gone.target.unbind(classes);
            self.forget();
        }
        Ok(self.filters.is_empty())
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        for ((.., handle), f) in &self.filters {
            let mut o = Options::new();
            if handle & 0x8000 == 0 {
                o.set("to", (f.id & 0xff).into());
            }
            if handle & 0x8000_0000 != 0 {
                if handle >> 16 != 0xffff {
                    o.set("iif", f.iif.into());
                    o.set("fromif", f.fromif.as_str().into());
                }
            } else {
                o.set("from", (f.id >> 16).into());
            }
            f.target.dump(&mut o);
            f.exts.dump(&mut o, look);
            visit(*handle, Some(o));
        }
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.filters.values().for_each(|f| visit(&f.exts));
    }
    fn targets(&mut self, _: &mut Shared, visit: &mut dyn FnMut(&mut Target)) {
        self.filters.values_mut().for_each(|f| visit(&mut f.target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, qdisc};
    use crate::tree::Tree;

    #[test]
    fn handles_are_what_the_realms_make_of_them() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V6_12));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        let mut add = |handle: &str, o: Options| {
            let req = filter(&format!("add prio 1 protocol 3 handle {handle}"), "route", Some(o));
            tree.filter(&req, &mut bench.cx(0)).map_err(|e| e.extack)
        };
        let to = |n: u32| Options::new().with("to", n);
        assert_eq!(add("20003", to(3).with("from", 2u32)), Ok(()));
        assert_eq!(add("ffff0004", to(4)), Ok(()));
        let mismatch = "Handle mismatch constructed: 3 (expected: ffff0003)";
        assert_eq!(add("3", to(3)), Err(mismatch.to_owned()));
        assert_eq!(add("0", to(3)), Err("Creating with handle of 0 is invalid".to_owned()));
        let handles: Vec<u32> =
            tree.dump_filters(Handle::UNSPEC, bench.look()).unwrap().iter().map(|d| d.handle).collect();
        assert_eq!(handles, [0, 0x2_0003, 0xffff_0004]);
    }
}
