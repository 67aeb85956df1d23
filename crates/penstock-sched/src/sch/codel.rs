//! `codel`: one queue whose delay CoDel controls.
//!
//! Follows: linux v6.12 `net/sched/sch_codel.c`.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated};
use crate::aqm::codel;
use crate::qdisc::{Cx, Init, Qdisc};
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "codel",
    about: "one queue whose delay is controlled by CoDel",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
};

fn build(_: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut codel = Codel { limit: 1000, params: codel::Params::new() };
    codel.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(codel)))
}

/// Its parameters.
#[derive(Debug)]
pub struct Codel {
    limit: u32,
    params: codel::Params,
}

impl Params for Codel {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        if let Some(o) = options {
            self.params.change(o);
            self.limit = o.u32("limit").unwrap_or(self.limit);
        }
        Ok(())
    }
    fn dump(&self) -> Options {
        self.params.dump(Options::new().with("limit", self.limit))
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = [
            "count",
            "lastcount",
            "ldelay",
            "dropping",
            "maxpacket",
            "ecn_mark",
            "drop_overlimit",
            "ce_mark",
        ];
        let o = zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u32));
        Some(o.with("drop_next", 0i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    #[test]
    fn a_change_touches_what_it_names() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((q.dump().u32("limit"), q.dump().u32("interval")), (Some(1000), Some(99_999)));
        q.change(Some(&Options::new().with("limit", 1u32).with("ecn", 1u32)), &mut bench.cx(0)).unwrap();
        assert_eq!((q.dump().u32("limit"), q.dump().u32("ecn")), (Some(1), Some(1)));
        assert_eq!(q.dump().u32("interval"), Some(99_999));
    }
}
