//! `hfsc`: hierarchical fair service curves, real-time, link-sharing and upper limit.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_hfsc.c`, configuration only.
//! Differs: packets are not carried yet.

use super::KindSpec;
use super::hashed::{ClassChange, Hashed, HashedKind};
use super::unsimulated::Unsimulated;
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::psched::TICK_NS;
use penstock_model::{Handle, Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "hfsc",
    about: "a hierarchy of service curves: guarantees of delay and rate, fair shares, ceilings",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::Made,
        sorting: Sorting::Tree { direct: false },
        takes_filters: true,
        limits_rate: LimitsRate::Classes(Some("ul/m2")),
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: false,
    },
};

/// `PSCHED_TICKS_PER_SEC`.
const TICKS_PER_SEC: u64 = 1_000_000_000 / TICK_NS;
/// `SM_SHIFT`.
const SM_SHIFT: u32 = 24;
/// The class that stands for the qdisc itself.
const ROOT: u32 = 0;

/// A service curve as the kernel keeps it (`struct internal_sc`): slopes in bytes per tick with 24 bits behind the point,
/// the length of the first in ticks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Curve {
    sm1: u64,
    dx: u64,
    sm2: u64,
}

impl Curve {
    /// `sc2isc` of one of tc's: `m1` and `m2` in bytes per second, `d` in µs. `None` where both slopes are 0.
    fn parse(options: Option<&Options>) -> Option<Curve> {
        let options = options?;
        let number = |name: &str| u64::from(options.u32(name).unwrap_or(0));
        let slope = |m: u64| (m << SM_SHIFT).div_ceil(TICKS_PER_SEC);
        let (m1, m2) = (number("m1"), number("m2"));
        let dx = (number("d") * TICKS_PER_SEC).div_ceil(1_000_000);
        (m1 != 0 || m2 != 0).then(|| Curve { sm1: slope(m1), dx, sm2: slope(m2) })
    }
    /// `hfsc_dump_sc`.
    fn dump(&self) -> Options {
        let rate = |sm: u64| (sm.wrapping_mul(TICKS_PER_SEC) >> SM_SHIFT) as u32;
        let d = (self.dx.wrapping_mul(1_000_000) / TICKS_PER_SEC) as u32;
        Options::new().with("m1", rate(self.sm1)).with("d", d).with("m2", rate(self.sm2))
    }
}

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
    let mut q = Hashed::new(init, Hfsc { default: default(options), warning: None });
    let root = HfscClass { parent: None, level: 0, rt: None, ls: None, ul: None };
    q.add_class(init.handle, root, false);
    Ok(Box::new(Unsimulated::new(q)))
}

fn default(options: &Options) -> u32 {
    options.u32("default").unwrap_or(0)
}

/// What the qdisc has.
pub struct Hfsc {
    /// Minor of the class of what no filter sorts.
    default: u32,
    warning: Option<String>,
}

/// What hfsc has of a class.
pub struct HfscClass {
    /// `None` for the qdisc's own class.
    parent: Option<u32>,
    level: u32,
    rt: Option<Curve>,
    ls: Option<Curve>,
    ul: Option<Curve>,
}

/// `hfsc_adjust_levels` after a class came in below `class`: levels only rise.
fn raise_levels(q: &mut Hashed<Hfsc>, mut class: Option<u32>) {
    let mut least = 1;
    while let Some(at) = class.filter(|&at| q.classes[at].own.level < least) {
        q.classes[at].own.level = least;
        least += 1;
        class = q.classes[at].own.parent;
    }
}

/// `hfsc_adjust_levels`, from `class` upwards.
fn adjust_levels(q: &mut Hashed<Hfsc>, mut class: Option<u32>) {
    while let Some(at) = class {
        let children = q.classes.iter().filter(|(_, c)| c.own.parent == Some(at));
        let level = children.map(|(_, c)| c.own.level + 1).max().unwrap_or(0);
        q.classes[at].own.level = level;
        class = q.classes[at].own.parent;
    }
}

impl HashedKind for Hfsc {
    type Class = HfscClass;
    const ID: &'static str = "hfsc";

    fn change(q: &mut Hashed<Hfsc>, options: Option<&Options>) -> Result<(), KernelError> {
        q.own.default = default(options.ok_or(KernelError::errno(KernelError::EINVAL))?);
        Ok(())
    }
    fn dump(q: &Hashed<Hfsc>) -> Options {
        Options::new().with("default", q.own.default)
    }
    fn change_class(q: &mut Hashed<Hfsc>, change: ClassChange<'_>) -> Result<Handle, KernelError> {
        let einval = || KernelError::errno(KernelError::EINVAL);
        q.own.warning = None;
        let options = change.options.ok_or_else(einval)?;
        let [rt, ls, ul] = ["rt", "ls", "ul"].map(|name| Curve::parse(options.nested(name)));
        if let Some(class) = change.class {
            if change.parent != Handle::UNSPEC {
                let parent = q.classes[class].own.parent;
                if change.parent != parent.map_or(Handle::ROOT, |p| q.classes[p].classid) {
                    return Err(einval());
                }
            }
            let own = &mut q.classes[class].own;
            (own.rt, own.ls, own.ul) = (rt.or(own.rt), ls.or(own.ls), ul.or(own.ul));
            return Ok(change.classid);
        }
        if change.parent == Handle::ROOT {
            return Err(KernelError::errno(KernelError::EEXIST));
        }
        let parent = match change.parent {
            Handle::UNSPEC => ROOT,
            parent => q.classes.find(parent).ok_or(KernelError::errno(KernelError::ENOENT))?,
        };
        if change.classid == Handle::UNSPEC || change.classid.qdisc() != q.handle {
            return Err(einval());
        }
        if rt.is_none() && ls.is_none() {
            return Err(einval());
        }
        if q.device.kernel == Kernel::V6_12 && parent != ROOT && q.classes[parent].own.ls.is_none() {
            let above = &mut q.classes[parent].own;
            above.ls = above.rt;
            q.own.warning = Some("Forced curve change on parent 'rt' to 'sc'".to_owned());
        }
        q.add_class(change.classid, HfscClass { parent: Some(parent), level: 0, rt, ls, ul }, true);
        raise_levels(q, Some(parent));
        Ok(change.classid)
    }
    fn may_delete(q: &Hashed<Hfsc>, class: u32, bound: bool) -> Result<(), KernelError> {
        if bound || class == ROOT || q.classes[class].own.level > 0 {
            return Err(q.refuse(KernelError::EBUSY, "HFSC class in use"));
        }
        Ok(())
    }
    fn deleted(q: &mut Hashed<Hfsc>, own: HfscClass) {
        adjust_levels(q, own.parent);
    }
    fn is_inner(q: &Hashed<Hfsc>, class: u32) -> bool {
        q.classes[class].own.level > 0
    }
    fn may_bind(q: &Hashed<Hfsc>, parent: Option<u32>, class: u32) -> bool {
        parent.is_none_or(|parent| q.classes[parent].own.level > q.classes[class].own.level)
    }
    fn dump_class(q: &Hashed<Hfsc>, class: u32) -> (Handle, Options, Option<Options>) {
        let own = &q.classes[class].own;
        let mut options = Options::new();
        for (name, curve) in [("rt", own.rt), ("ls", own.ls), ("ul", own.ul)] {
            if let Some(curve) = curve {
                options = options.with(name, curve.dump());
            }
        }
        let xstats = Options::new()
            .with("period", 0u32)
            .with("work", 0u64)
            .with("rtwork", 0u64)
            .with("level", own.level);
        (own.parent.map_or(Handle::ROOT, |p| q.classes[p].classid), options, Some(xstats))
    }
    fn take_warning(&mut self) -> Option<String> {
        self.warning.take()
    }
}
