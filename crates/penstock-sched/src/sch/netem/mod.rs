//! `netem`: packets are delayed, lost, doubled, damaged and put out of order.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_netem.c`.
//! Differs: packets are not simulated yet; `seed` is dumped where it was set; of a distribution its name is kept.

use super::KindSpec;
use super::one_class::OneClass;
use super::pfifo::Pfifo;
use super::unsimulated::{Params, Unsimulated};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::psched::TICK_NS;
use penstock_model::{Handle, Kernel, KernelError, Options, Value};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "netem",
    about: "delay, drop, duplicate, corrupt and reorder packets",
    kernels: &Kernel::ALL,
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::Inner,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::Emulates,
        queue: Holds::Delayed,
        limit: Limit::Packets,
        work_conserving: false,
    },
};

/// `struct tc_netem_qopt`: a change sets all of them.
const NUMBERS: [&str; 6] = ["limit", "latency", "jitter", "loss", "duplicate", "gap"];
/// What a change leaves as it is where it says nothing of it, beside `corr`.
const KEPT: [&str; 6] = ["corrupt", "rate", "ecn", "slot", "seed", "distribution"];
/// What a change without them turns off.
const LOSS_MODELS: [&str; 2] = ["loss_state", "loss_gemodel"];

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = init.device;
    let mut class = OneClass::new(SPEC.id, init.handle, &device);
    match device.kernel {
        Kernel::V6_12 => class = class.empty(),
        Kernel::V2_6_35 => {
            let init = Init { device, handle: Handle::UNSPEC, parent: class.class() };
            class.fill(Node::new(&init, Box::new(Pfifo::with_default_limit(&device))), cx);
        }
    }
    let mut netem = Netem { device, params: Options::new(), class };
    netem.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(netem)))
}

/// Its parameters.
pub struct Netem {
    device: Device,
    /// As they are dumped.
    params: Options,
    class: OneClass,
}

/// `validate_slot`.
fn check_slot(slot: &Options) -> Result<(), KernelError> {
    let number = |name: &str| slot.i64(name).unwrap_or(0);
    let negative = |names: &[&str]| names.iter().any(|name| number(name) < 0);
    let why = if negative(&["min_delay", "max_delay"]) {
        "negative slot delay"
    } else if number("min_delay") > number("max_delay") {
        "slot min delay greater than max delay"
    } else if negative(&["dist_delay", "dist_jitter"]) {
        "negative dist delay"
    } else if negative(&["packets", "bytes"]) {
        "negative slot limit"
    } else {
        return Ok(());
    };
    Err(KernelError::new(KernelError::EINVAL, why))
}

impl Params for Netem {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        if let Some(slot) = o.nested("slot") {
            check_slot(slot)?;
        }
        let params = &mut self.params;
        for name in NUMBERS {
            params.set(name, Value::U32(o.u32(name).unwrap_or(0)));
        }
        if self.device.kernel == Kernel::V6_12 {
            // The table of the distribution works with 31 bits of nanoseconds.
            let jitter = o.u32("jitter").unwrap_or(0).min((i32::MAX as u64 / TICK_NS) as u32);
            params.set("jitter", Value::U32(jitter));
        }
        for name in LOSS_MODELS {
            params.remove(name);
            if let Some(model) = o.value(name) {
                params.set(name, model.clone());
            }
        }
        if o.u32("gap").unwrap_or(0) != 0 {
            let correlation = params.nested("reorder").and_then(|r| r.u32("correlation")).unwrap_or(0);
            let always = Options::new().with("probability", u32::MAX).with("correlation", correlation);
            params.set("reorder", always.into());
        }
        for name in ["corr", "reorder"].into_iter().chain(KEPT) {
            if let Some(value) = o.value(name) {
                params.set(name, value.clone());
            }
        }
        if let Some(mut slot) = o.nested("slot").cloned() {
            let jitter = slot.i64("dist_jitter").unwrap_or(0).min(i32::MAX.into());
            slot.set("dist_jitter", Value::I64(jitter));
            let any = ["min_delay", "max_delay", "dist_jitter"].iter().any(|n| slot.i64(n).unwrap_or(0) != 0);
            params.remove("slot");
            if any {
                params.set("slot", slot.into());
            }
        }
        if self.device.kernel == Kernel::V2_6_35
            && let Some(child) = self.class.child_mut()
            && child.kind().get(1..) == Some("fifo")
        {
            //= linux v2.6.35 sch_fifo.c fifo_set_limit: any fifo inside is given the limit.
            child.change(Some(&Options::new().with("limit", o.u32("limit").unwrap_or(0))), cx)?;
        }
        Ok(())
    }
    fn dump(&self) -> Options {
        self.params.clone()
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.class)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(&mut self.class)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};

    fn netem(kernel: Kernel, o: &Options, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, Some(o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }
    fn pair(probability: u32) -> Options {
        Options::new().with("probability", probability).with("correlation", 5u32)
    }

    #[test]
    fn a_change_forgets_some_and_keeps_some() {
        let mut bench = Bench::new();
        let first = Options::new()
            .with("limit", 1000u32)
            .with("latency", 5u32)
            .with("ecn", 1u32)
            .with("corrupt", pair(7))
            .with("loss_gemodel", Options::new().with("p", 1u32));
        let mut q = netem(Kernel::V6_12, &first, &mut bench);
        q.change(Some(&Options::new().with("limit", 9u32).with("gap", 2u32)), &mut bench.cx(0)).unwrap();
        let o = q.dump();
        assert_eq!((o.u32("limit"), o.u32("latency"), o.u32("ecn")), (Some(9), Some(0), Some(1)));
        assert_eq!((o.nested("corrupt"), o.has("loss_gemodel")), (Some(&pair(7)), false));
        assert_eq!(o.nested("reorder").unwrap().u32("probability"), Some(u32::MAX));
        assert!(build_without_options(&mut bench).is_err());
    }
    fn build_without_options(bench: &mut Bench) -> Result<Box<dyn Qdisc>, KernelError> {
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, None, &mut bench.cx(0))
    }

    #[test]
    fn slots_are_not_negative_and_jitter_has_31_bits() {
        let mut bench = Bench::new();
        let mut q = netem(Kernel::V6_12, &Options::new().with("jitter", u32::MAX), &mut bench);
        assert_eq!(q.dump().u32("jitter"), Some(33_554_431));
        let slot = |name, value: i64| {
            Options::new().with("slot", Options::new().with("max_delay", 5i64).with(name, value))
        };
        let mut said = |o: Options| q.change(Some(&o), &mut bench.cx(0)).map_err(|e| e.extack);
        assert_eq!(said(slot("min_delay", -1)), Err("negative slot delay".into()));
        assert_eq!(said(slot("min_delay", 6)), Err("slot min delay greater than max delay".into()));
        assert_eq!(said(slot("dist_delay", -1)), Err("negative dist delay".into()));
        assert_eq!(said(slot("packets", -1)), Err("negative slot limit".into()));
        assert_eq!(said(slot("dist_jitter", 1 << 40)), Ok(()));
        assert_eq!(q.dump().nested("slot").unwrap().i64("dist_jitter"), Some(2_147_483_647));
    }

    #[test]
    fn what_is_inside() {
        let mut bench = Bench::new();
        let o = Options::new().with("limit", 50u32);
        let class = Handle::new(1, 1);
        let q = netem(Kernel::V6_12, &o, &mut bench);
        assert!(q.classes().unwrap().leaf(class).is_none() && q.classes().unwrap().ends_dump());
        let mut q = netem(Kernel::V2_6_35, &o, &mut bench);
        let limit = |q: &dyn Qdisc| q.classes().unwrap().leaf(class).unwrap().dump().u32("limit");
        assert_eq!(limit(&*q), Some(50));
        q.change(Some(&Options::new().with("limit", 8u32)), &mut bench.cx(0)).unwrap();
        assert_eq!(limit(&*q), Some(8));
    }
}
