//! `drr`: deficit round robin over classes that filters choose.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_drr.c`, configuration only.
//! Differs: packets are not carried yet.

use super::KindSpec;
use super::hashed::{ClassChange, Hashed, HashedKind};
use super::unsimulated::Unsimulated;
use crate::qdisc::{Cx, Init, Qdisc};
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "drr",
    about: "deficit round robin: classes take turns, a quantum of bytes each",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
};

/// What 6.12 keeps a quantum within, bytes.
const QUANTUM_RANGE: (u32, u32) = (256, 1 << 20);

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    Ok(Box::new(Unsimulated::new(Hashed::new(init, Drr))))
}

/// The qdisc itself has nothing to set.
pub struct Drr;

/// What drr has of a class.
pub struct DrrClass {
    /// Bytes a turn.
    quantum: u32,
}

impl HashedKind for Drr {
    type Class = DrrClass;
    const ID: &'static str = "drr";
    const NO_BLOCK: &'static str = "DRR classid must be zero";

    /// There is no such operation.
    fn change(q: &mut Hashed<Drr>, _: Option<&Options>) -> Result<(), KernelError> {
        Err(q.refuse(KernelError::EINVAL, "Change operation not supported by specified qdisc"))
    }
    fn dump(_: &Hashed<Drr>) -> Options {
        Options::new()
    }
    fn change_class(q: &mut Hashed<Drr>, change: ClassChange<'_>) -> Result<Handle, KernelError> {
        let Some(options) = change.options else {
            return Err(q.refuse(KernelError::EINVAL, "DRR options are required for this operation"));
        };
        let given = options.u32("quantum");
        if given == Some(0) {
            return Err(q.refuse(KernelError::EINVAL, "Specified DRR quantum cannot be zero"));
        }
        let mut quantum = given.unwrap_or(q.device.psched_mtu());
        if q.device.kernel == Kernel::V6_12 {
            quantum = quantum.clamp(QUANTUM_RANGE.0, QUANTUM_RANGE.1);
        }
        match change.class {
            Some(class) if given.is_some() => q.classes[class].own.quantum = quantum,
            Some(_) => {}
            None => {
                q.add_class(change.classid, DrrClass { quantum }, false);
            }
        }
        Ok(change.classid)
    }
    fn may_delete(q: &Hashed<Drr>, _: u32, bound: bool) -> Result<(), KernelError> {
        if bound { Err(q.refuse(KernelError::EBUSY, "DRR class is in use")) } else { Ok(()) }
    }
    fn dump_class(q: &Hashed<Drr>, class: u32) -> (Handle, Options, Option<Options>) {
        let options = Options::new().with("quantum", q.classes[class].own.quantum);
        (Handle::ROOT, options, Some(Options::new().with("deficit", 0u32)))
    }
}
