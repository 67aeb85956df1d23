//! `bpf`: a program decides.
//!
//! Follows: linux v6.12 `net/sched/cls_bpf.c`, `net/core/filter.c` `bpf_check_classic`.
//! Differs: programs are checked but not run: the kind is not simulated.

use super::list::List;
use super::{Change, Classifier, ClsSpec, Exts, Hit, Shared, Target, VERBOSE, hardware_flags};
use crate::act::Look;
use crate::qdisc::{Classful, Device};
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
    fn classify(&self, _: &Shared, _: &Skb) -> Option<Hit> {
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

/// Instructions a classic program may have: loads (absolute, indirect, immediate, length, memory), stores, arithmetic, jumps, returns.
const CODES: [u32; 49] = [
    0x20, 0x28, 0x30, 0x40, 0x48, 0x50, 0x80, 0x00, 0x60, 0x81, 0x01, 0x61, 0xb1, 0x02, 0x03, 0x04, 0x0c,
    0x14, 0x1c, 0x24, 0x2c, 0x34, 0x3c, 0x94, 0x9c, 0x54, 0x5c, 0x44, 0x4c, 0xa4, 0xac, 0x64, 0x6c, 0x74,
    0x7c, 0x84, 0x05, 0x15, 0x1d, 0x25, 0x2d, 0x35, 0x3d, 0x45, 0x4d, 0x06, 0x16, 0x07, 0x87,
];
/// Words of scratch memory.
const MEMWORDS: u32 = 16;
/// Where the kernel's own data is read from: `SKF_AD_OFF` and its end.
const AD_OFF: u32 = 0xffff_f000;
const AD_MAX: u32 = 64;

/// `bpf_check_classic` with `check_load_and_stores`.
fn is_valid(ops: &[Options]) -> bool {
    let field = |o: &Options, name| o.u32(name).unwrap_or(0);
    let ops: Vec<[u32; 4]> =
        ops.iter().map(|o| [field(o, "code"), field(o, "jt"), field(o, "jf"), field(o, "k")]).collect();
    let len = ops.len();
    for (pc, &[code, jt, jf, k]) in ops.iter().enumerate() {
        if !CODES.contains(&code) {
            return false;
        }
        let left = len - pc - 1;
        let fits = match code {
            // Division and remainder by a constant 0, shifts of 32 and more.
            0x34 | 0x94 => k != 0,
            0x64 | 0x74 => k < 32,
            // Scratch memory.
            0x60 | 0x61 | 0x02 | 0x03 => k < MEMWORDS,
            0x05 => (k as usize) < left,
            0x15 | 0x1d | 0x25 | 0x2d | 0x35 | 0x3d | 0x45 | 0x4d => {
                (jt as usize) < left && (jf as usize) < left
            }
            // Absolute loads of the kernel's own data.
            0x20 | 0x28 | 0x30 => k < AD_OFF || (k - AD_OFF < AD_MAX && k % 4 == 0),
            _ => true,
        };
        if !fits {
            return false;
        }
    }
    let returns = ops.last().is_some_and(|op| op[0] == 0x06 || op[0] == 0x16);
    returns && loads_follow_stores(&ops)
}

/// Whether memory is written before it is read, on every way there.
fn loads_follow_stores(ops: &[[u32; 4]]) -> bool {
    let mut masks = vec![u16::MAX; ops.len()];
    let mut valid = 0u16;
    for (pc, &[code, jt, jf, k]) in ops.iter().enumerate() {
        valid &= masks[pc];
        match code {
            0x02 | 0x03 => valid |= 1 << k,
            0x60 | 0x61 if valid & 1 << k == 0 => return false,
            0x05 => {
                masks[pc + 1 + k as usize] &= valid;
                valid = u16::MAX;
            }
            0x15 | 0x1d | 0x25 | 0x2d | 0x35 | 0x3d | 0x45 | 0x4d => {
                masks[pc + 1 + jt as usize] &= valid;
                masks[pc + 1 + jf as usize] &= valid;
                valid = u16::MAX;
            }
            _ => {}
        }
    }
    true
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
