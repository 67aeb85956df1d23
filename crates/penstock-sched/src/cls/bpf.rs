//! `bpf`: a program decides.
//!
//! Follows: linux v6.12 `net/sched/cls_bpf.c`.
//! Differs: programs are checked but not run: the kind is not simulated.

use super::list::List;
use super::{Answer, Change, Classifier, ClsSpec, Exts, Shared, Target, VERBOSE, hardware_flags};
use crate::act::Look;
use crate::bpf::is_valid;
use crate::qdisc::{Classful, Cx, Device};
use penstock_model::{Handle, Kernel, KernelError, Options, Value};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "bpf",
    about: "a program decides",
    kernels: &[Kernel::V6_12],
    simulated: false,
    build: |_, _, _| Box::new(Bpf { programs: List::new() }),
};

/// A priority of programs; the youngest is asked first.
struct Bpf {
    programs: List<Program>,
}

struct Program {
    ops: Vec<Options>,
    direct: bool,
    flags: u32,
    target: Target,
    exts: Exts,
}

impl Classifier for Bpf {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn classify(&self, _: &Shared, _: &mut Skb, _: &mut Cx<'_>) -> Option<Answer> {
        None
    }
    fn has(&self, _: &Shared, handle: u32) -> bool {
        self.programs.has(handle)
    }
    fn change(&mut self, _: &mut Shared, mut change: Change<'_>) -> Result<(), KernelError> {
        let einval = || KernelError::errno(KernelError::EINVAL);
        let o = change.options.ok_or_else(einval)?;
        let exts = Exts::validate(o, 0, &mut change)?;
        let asked = o.u32("flags_gen").unwrap_or(0);
        let flags = hardware_flags(asked).map_err(|_| einval())?;
        let direct = o.u32("flags").unwrap_or(0);
        if asked & VERBOSE != 0 || direct & !1 != 0 {
            return Err(einval());
        }
        let ops = o.list("ops");
        if ops.is_empty() || !is_valid(ops) {
            return Err(einval());
        }
        let old = self.programs.get(change.handle).map(|p| p.flags & 3);
        if old.is_some_and(|old| old != asked & 3) {
            return Err(einval());
        }
        let flags = flags.in_software()?;
        let mut target = Target::default();
        if let Some(classid) = o.u32("classid") {
            target.bind(change.parent, Handle(classid), change.classes);
        }
        let handle = if change.handle == 0 { self.programs.free_handle() } else { change.handle };
        let program = Program { ops: ops.to_vec(), direct: direct & 1 != 0, flags, target, exts };
        if let Some(mut gone) = self.programs.insert(handle, program) {
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
        if let Some(mut gone) = self.programs.remove(handle) {
            gone.target.unbind(classes);
        }
        Ok(self.programs.is_empty())
    }
    fn destroy(&mut self, _: &mut Shared, classes: &mut dyn Classful) {
        self.programs.take().for_each(|mut gone| gone.target.unbind(classes));
    }
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        for (handle, p) in self.programs.iter().rev() {
            let mut o = Options::new();
            p.target.dump(&mut o);
            o.set("ops", Value::List(p.ops.clone()));
            p.exts.dump(&mut o, look);
            if p.direct {
                o.set("flags", 1u32.into());
            }
            o.set("flags_gen", p.flags.into());
            visit(handle, Some(o));
        }
    }
    fn exts(&self, _: &Shared, visit: &mut dyn FnMut(&Exts)) {
        self.programs.iter().for_each(|(_, p)| visit(&p.exts));
    }
    fn targets(&mut self, _: &mut Shared, visit: &mut dyn FnMut(&mut Target)) {
        self.programs.iter_mut().for_each(|p| visit(&mut p.target));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid(ops: &[[u32; 4]]) -> bool {
        let ops: Vec<Options> = ops
            .iter()
            .map(|&[code, jt, jf, k]| {
                Options::new().with("code", code).with("jt", jt).with("jf", jf).with("k", k)
            })
            .collect();
        is_valid(&ops)
    }

    #[test]
    fn programs_the_kernel_takes() {
        // As tcpdump writes `ip`: load the ethertype, compare, return.
        assert!(valid(&[[0x28, 0, 0, 12], [0x15, 0, 1, 0x800], [0x06, 0, 0, 262_144], [0x06, 0, 0, 0]]));
        assert!(!valid(&[[0x15, 0, 5, 0x800], [0x06, 0, 0, 0]]), "a jump beyond the end");
        assert!(!valid(&[[0x00, 0, 0, 1]]), "no return at the end");
        assert!(!valid(&[[999, 0, 0, 0], [0x06, 0, 0, 0]]), "no such instruction");
        assert!(!valid(&[[0x60, 0, 0, 3], [0x06, 0, 0, 0]]), "memory read before it is written");
        assert!(valid(&[[0x02, 0, 0, 3], [0x60, 0, 0, 3], [0x06, 0, 0, 0]]));
        assert!(!valid(&[[0x34, 0, 0, 0], [0x06, 0, 0, 0]]), "division by 0");
    }
}
