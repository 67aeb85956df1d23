//! `flow`: a class computed from fields of the packet.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/cls_flow.c`.
//! Differs: packets are not classified: the kind is not simulated.

use super::ematch::Tree as Matches;
use super::list::List;
use super::{Answer, Change, Classifier, ClsSpec, Exts, Shared, Target};
use crate::act::Look;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "flow",
    about: "a class computed from fields of the packet, or from their hash",
    kernels: &Kernel::ALL,
    simulated: false,
    build: |_, kernel, _| Box::new(Flow { kernel, filters: List::new() }),
};

const HASH: u32 = 1;
/// Keys there are: `FLOW_KEY_MAX` + 1. `rxhash` came after 2.6.35.
const KEYS: [u32; 2] = [17, 18];

/// A priority of flow filters, oldest first.
struct Flow {
    kernel: Kernel,
    filters: List<Filter>,
}

#[derive(Clone)]
struct Params {
    keys: u32,
    mode: u32,
    mask: u32,
    xor: u32,
    rshift: u32,
    addend: u32,
    divisor: u32,
    baseclass: Handle,
    /// Seconds.
    perturb: u32,
}

struct Filter {
    params: Params,
    matches: Matches,
    exts: Exts,
}

impl Classifier for Flow {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn classify(&self, _: &Shared, _: &mut Skb, _: &mut Cx<'_>) -> Option<Answer> {
        None
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        self.filters.has(handle)
    }
    fn change(&mut self, shared: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let einval = || KernelError::errno(KernelError::EINVAL);
        let o = change.options.ok_or_else(einval)?;
        let u32 = |name| o.u32(name);
        if u32("rshift").is_some_and(|n| n > 31) && self.kernel == Kernel::V6_12 {
            return Err(KernelError::errno(KernelError::ERANGE));
        }
        let mut baseclass = Handle(u32("baseclass").unwrap_or(0));
        if u32("baseclass").is_some() && baseclass.minor() == 0 {
            return Err(einval());
        }
        let keys = u32("keys");
        let nkeys = keys.map_or(0, u32::count_ones);
        let known = KEYS[usize::from(self.kernel == Kernel::V6_12)];
        if keys == Some(0) {
            return Err(einval());
        }
        if keys.is_some_and(|keys| keys >> known != 0) {
            return Err(KernelError::errno(KernelError::EOPNOTSUPP));
        }
        let (matches, exts) = if self.kernel == Kernel::V6_12 {
            let matches = Matches::new(o.list("ematches"), self.kernel)?;
            (matches, Exts::validate(o, 0, &mut change)?)
        } else {
            let exts = Exts::validate(o, 0, &mut change)?;
            (Matches::new(o.list("ematches"), self.kernel)?, exts)
        };
        let handle = change.handle;
        let old = self.filters.get(handle).map(|f| f.params.clone());
        if old.is_none() && (handle == 0 || keys.is_none()) {
            return Err(einval());
        }
        let mode = u32("mode").unwrap_or(old.as_ref().map_or(0, |f| f.mode));
        if mode != HASH && (nkeys > 1 || u32("perturb").is_some()) {
            return Err(einval());
        }
        let kept = old.as_ref().filter(|_| mode == HASH).map_or(0, |f| f.perturb);
        let perturb = u32("perturb").unwrap_or(kept);
        if old.is_none() {
            if baseclass.major() == 0 {
                if shared.is_block() {
                    let why = "Must specify baseclass when attaching flow filter to block";
                    return Err(change.device.refusal(KernelError::EINVAL, why));
                }
                baseclass = Handle::new(shared.qdisc.major(), baseclass.minor());
            }
            if baseclass.minor() == 0 {
                baseclass = Handle::new(baseclass.major(), 1);
            }
        }
        let mut params = old.unwrap_or(Params {
            keys: 0,
            mode,
            mask: u32::MAX,
            xor: 0,
            rshift: 0,
            addend: 0,
            divisor: 0,
            baseclass,
            perturb,
        });
        for (name, field) in [
            ("keys", &mut params.keys),
            ("mask", &mut params.mask),
            ("xor", &mut params.xor),
            ("rshift", &mut params.rshift),
            ("addend", &mut params.addend),
            ("divisor", &mut params.divisor),
        ] {
            *field = u32(name).unwrap_or(*field);
        }
        (params.mode, params.perturb) = (mode, perturb);
        if baseclass != Handle::UNSPEC {
            params.baseclass = baseclass;
        }
        let exts = match self.filters.get_mut(handle) {
            // 2.6.35 keeps the actions it is not given anew.
            Some(filter) if self.kernel == Kernel::V2_6_35 && exts.is_empty() => {
                std::mem::take(&mut filter.exts)
            }
            _ => exts,
        };
        self.filters.insert(handle, Filter { params, matches, exts });
        Ok(())
    }
    fn delete(
        &mut self,
        _: &mut Shared,
        handle: u32,
        _: &Device,
        _: &mut dyn Classful,
    ) -> Result<bool, KernelError> {
        self.filters.remove(handle);
        Ok(self.filters.is_empty())
    }
    fn destroy(&mut self, _: &mut Shared, _: &mut dyn Classful) {
        self.filters.take().for_each(drop);
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        for (handle, f) in self.filters.iter() {
            let p = &f.params;
            let mut o = Options::new().with("keys", p.keys).with("mode", p.mode);
            if p.mask != u32::MAX || p.xor != 0 {
                o = o.with("mask", p.mask).with("xor", p.xor);
            }
            for (name, value) in [
                ("rshift", p.rshift),
                ("addend", p.addend),
                ("divisor", p.divisor),
                ("baseclass", p.baseclass.0),
                ("perturb", p.perturb),
            ] {
                if value != 0 {
                    o = o.with(name, value);
                }
            }
            f.exts.dump(&mut o, look);
            f.matches.dump(&mut o);
            visit(handle, Some(o));
        }
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.filters.iter().for_each(|(_, f)| visit(&f.exts));
    }
    fn targets(&mut self, _: &mut Shared, _: &mut dyn FnMut(&mut Target)) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, filter, qdisc};
    use crate::tree::Tree;

    #[test]
    fn what_is_refused_and_what_the_kernel_fills_in() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V6_12));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        let mut add = |handle: &str, o: Options| {
            let req = filter(&format!("add prio 1 protocol 3{handle}"), "flow", Some(o));
            tree.filter(&req, &mut bench.cx(0)).map_err(|e| e.errno)
        };
        let keys = |keys: u32| Options::new().with("keys", keys);
        assert_eq!(add("", keys(1)), Err(KernelError::EINVAL));
        assert_eq!(add(" handle 1", Options::new()), Err(KernelError::EINVAL));
        assert_eq!(add(" handle 1", keys(3)), Err(KernelError::EINVAL));
        assert_eq!(add(" handle 1", keys(1 << 18)), Err(KernelError::EOPNOTSUPP));
        assert_eq!(add(" handle 1", keys(1).with("perturb", 5u32)), Err(KernelError::EINVAL));
        assert_eq!(add(" handle 1", keys(1).with("rshift", 32u32)), Err(KernelError::ERANGE));
        assert_eq!(add(" handle 1", keys(3).with("mode", 1u32).with("perturb", 5u32)), Ok(()));
        let dump = tree.dump_filters(Handle::UNSPEC, bench.look()).unwrap().pop().unwrap();
        let want = keys(3).with("mode", 1u32).with("baseclass", 0x1_0001u32).with("perturb", 5u32);
        assert_eq!(dump.options, Some(want));
    }
}
