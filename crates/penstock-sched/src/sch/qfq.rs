//! `qfq`: quick fair queueing, weights and packet sizes by class.
//!
//! Follows: linux v6.12 `net/sched/sch_qfq.c`, configuration only.
//! Differs: packets are not carried yet; classes are not put into aggregates, which no dump shows.

use super::KindSpec;
use super::hashed::{ClassChange, Hashed, HashedKind};
use super::unsimulated::Unsimulated;
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "qfq",
    about: "quick fair queueing: classes share by weight with bounded delay",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::Made,
        sorting: Sorting::Flat,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// `QFQ_MAX_WEIGHT`.
const WEIGHT_MAX: u32 = 1 << 10;
/// `QFQ_MAX_WSUM`: most the weights of all classes may add up to.
const WEIGHT_SUM_MAX: u32 = 64 * WEIGHT_MAX;
/// `QFQ_MIN_LMAX`, bytes.
const LMAX_MIN: u32 = 512;
/// `QFQ_MAX_LMAX`, bytes.
const LMAX_MAX: u32 = 1 << 16;

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    Ok(Box::new(Unsimulated::new(Hashed::new(init, Qfq { weight_sum: 0 }))))
}

/// What the qdisc knows of all its classes.
pub struct Qfq {
    /// `wsum`.
    weight_sum: u32,
}

/// What qfq has of a class.
pub struct QfqClass {
    weight: u32,
    /// Largest packet, bytes.
    lmax: u32,
}

/// The kernel's check of a number against its policy, in netlink's words.
fn in_range(value: u32, least: u32, most: u32) -> Result<u32, KernelError> {
    if (least..=most).contains(&value) {
        Ok(value)
    } else {
        Err(KernelError::new(KernelError::ERANGE, "integer out of range"))
    }
}

impl HashedKind for Qfq {
    type Class = QfqClass;
    const ID: &'static str = "qfq";

    /// There is no such operation.
    fn change(q: &mut Hashed<Qfq>, _: Option<&Options>) -> Result<(), KernelError> {
        Err(q.refuse(KernelError::EINVAL, "Change operation not supported by specified qdisc"))
    }
    fn dump(_: &Hashed<Qfq>) -> Options {
        Options::new()
    }
    fn change_class(
        q: &mut Hashed<Qfq>,
        change: ClassChange<'_>,
        _: &mut Cx<'_>,
    ) -> Result<Handle, KernelError> {
        let Some(options) = change.options else {
            return Err(q.refuse(KernelError::EINVAL, "sch_qfq: missing options"));
        };
        // Netlink looks at them in the order tc sent them.
        for (name, value) in options.iter() {
            let value = match value {
                penstock_model::Value::U32(value) => *value,
                _ => continue,
            };
            match name {
                "weight" => in_range(value, 1, WEIGHT_MAX)?,
                "maxpkt" => in_range(value, LMAX_MIN, LMAX_MAX)?,
                _ => value,
            };
        }
        let weight = options.u32("weight").unwrap_or(1);
        let lmax = options.u32("maxpkt").unwrap_or(q.device.psched_mtu());
        if !(LMAX_MIN..=LMAX_MAX).contains(&lmax) {
            return Err(q.refuse(KernelError::EINVAL, "sch_qfq: MTU size out of bounds for qfq"));
        }
        let before = change.class.map(|class| &q.classes[class].own);
        let more = weight as i32 - before.map_or(0, |c| c.weight as i32);
        if before.is_some_and(|c| (c.weight, c.lmax) == (weight, lmax)) {
            return Ok(change.classid);
        }
        let sum = q.own.weight_sum;
        if sum.wrapping_add_signed(more) > WEIGHT_SUM_MAX {
            let sentence = format!("sch_qfq: total weight out of range ({more} + {sum})\n");
            return Err(q.refuse(KernelError::EINVAL, &sentence));
        }
        q.own.weight_sum = sum.wrapping_add_signed(more);
        let own = QfqClass { weight, lmax };
        match change.class {
            Some(class) => q.classes[class].own = own,
            None => {
                q.add_class(change.classid, own, false);
            }
        }
        Ok(change.classid)
    }
    fn may_delete(q: &Hashed<Qfq>, _: u32, bound: bool) -> Result<(), KernelError> {
        if bound { Err(q.refuse(KernelError::EBUSY, "sch_qfq: QFQ class in use")) } else { Ok(()) }
    }
    fn deleted(q: &mut Hashed<Qfq>, own: QfqClass) {
        q.own.weight_sum -= own.weight;
    }
    fn dump_class(q: &Hashed<Qfq>, class: u32) -> (Handle, Options, Option<Options>) {
        let own = &q.classes[class].own;
        let options = Options::new().with("weight", own.weight).with("maxpkt", own.lmax);
        (Handle::ROOT, options, None)
    }
}
