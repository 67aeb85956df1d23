//! `bpf`: a program decides, a classic one or one of an eBPF object.
//!
//! Follows: linux v6.12 `net/sched/cls_bpf.c`.
//! Differs: none known but what [`crate::bpf`] and [`crate::ebpf`] say.

use super::list::List;
use super::{Answer, Change, Classifier, ClsSpec, Exts, Hit, Shared, Target, VERBOSE, hardware_flags};
use crate::act::{self, Look};
use crate::qdisc::{Classful, Cx, Device};
use crate::{bpf, ebpf};
use penstock_model::{Handle, Kernel, KernelError, Options, Value};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ClsSpec = ClsSpec {
    id: "bpf",
    about: "a program decides",
    kernels: &Kernel::LIVING,
    simulated: true,
    build: |_, _, _| Box::new(Bpf { programs: List::new() }),
};

/// A priority of programs; the youngest is asked first.
struct Bpf {
    programs: List<Program>,
}

/// What there is to run.
enum Code {
    Classic { program: bpf::Program, ops: Vec<Options> },
    Object(Box<ebpf::Program>),
}

struct Program {
    code: Code,
    direct: bool,
    flags: u32,
    target: Target,
    exts: Exts,
}

impl Classifier for Bpf {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    /// `cls_bpf_classify`.
    fn classify(&self, _: &Shared, skb: &mut Skb, cx: &mut Cx<'_>) -> Option<Answer> {
        for (_, program) in self.programs.iter().rev() {
            let own = program.target.0;
            let minor = own.classid.minor();
            let (said, minor) = match &program.code {
                Code::Classic { program, .. } => (program.run(skb, cx.rng), minor),
                Code::Object(program) => {
                    let answer = program.run(skb, minor, &mut cx.acts.lent(cx.now, cx.rng));
                    (answer.said, answer.classid)
                }
            };
            if program.direct {
                let hit = Hit { classid: Handle(own.classid.0 & 0xffff_0000 | u32::from(minor)), class: 0 };
                match said as i32 {
                    said @ (act::OK | act::SHOT | act::STOLEN | act::REDIRECT | act::TRAP) => {
                        return Some(Answer { said, hit });
                    }
                    _ => continue,
                }
            }
            let hit = match said {
                0 => continue,
                u32::MAX => own,
                classid => Hit { classid: Handle(classid), class: 0 },
            };
            if let Some(answer) = program.exts.exec(hit, skb, cx) {
                return Some(answer);
            }
        }
        None
    }
    fn exact(&self) -> bool {
        self.lacks().is_none()
    }
    fn lacks(&self) -> Option<&'static str> {
        self.programs.iter().find_map(|(_, p)| match &p.code {
            Code::Classic { program, .. } => (!program.is_exact()).then_some(SPEC.id),
            Code::Object(program) => program.missing(),
        })
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
        let code = if ebpf::is_object(o) {
            let refused = |why: ebpf::Refusal| KernelError::errno(why.errno);
            Code::Object(Box::new(ebpf::Program::load(o, change.device.kernel).map_err(refused)?))
        } else {
            let ops = o.list("ops");
            Code::Classic { program: bpf::Program::new(ops).ok_or_else(einval)?, ops: ops.to_vec() }
        };
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
        let program = Program { code, direct: direct & 1 != 0, flags, target, exts };
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
    fn walk(&self, _: &Shared, look: Look<'_>, visit: &mut dyn FnMut(u32, Option<Options>)) {
        for (handle, p) in self.programs.iter().rev() {
            let mut o = Options::new();
            p.target.dump(&mut o);
            match &p.code {
                Code::Classic { ops, .. } => {
                    o.set("ops", Value::List(ops.clone()));
                }
                Code::Object(program) => program.dump(&mut o),
            }
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
    use crate::testing::{Bench, device, filter, packet, qdisc};
    use crate::tree::Tree;
    use penstock_model::Time;

    #[test]
    fn the_youngest_program_that_answers_names_the_class() {
        let mut bench = Bench::new();
        let mut tree = Tree::new(device(Kernel::V6_12));
        let mut req = qdisc("add root handle 1: prio");
        req.options = Some(Options::new().with("bands", 3u32).with("priomap", vec![0u8; 16]));
        tree.qdisc(&req, &mut bench.cx(0)).unwrap();
        // What each returns: its own class, another one, nothing.
        for (classid, answer) in [(0x1_0002u32, u32::MAX), (0x1_0001, 0x1_0003), (0x1_0001, 0)] {
            let ret =
                Options::new().with("code", 0x06u32).with("jt", 0u32).with("jf", 0u32).with("k", answer);
            let mut o = Options::new().with("classid", classid);
            o.set("ops", Value::List(vec![ret]));
            tree.filter(&filter("add prio 1 protocol 3", "bpf", Some(o)), &mut bench.cx(0)).unwrap();
        }
        let queued =
            |tree: &Tree| tree.dump_classes(Time::ZERO).iter().map(|c| c.stats.qlen).collect::<Vec<_>>();
        tree.enqueue(packet(0, 100), &mut bench.cx(0));
        assert_eq!(queued(&tree), [0, 0, 1]);
        let mut gone = filter("del prio 1 protocol 3 handle 2", "bpf", None);
        gone.options = None;
        tree.filter(&gone, &mut bench.cx(0)).unwrap();
        tree.enqueue(packet(1, 100), &mut bench.cx(0));
        assert_eq!(queued(&tree), [0, 1, 1]);
    }
}
