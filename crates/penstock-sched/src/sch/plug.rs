//! `plug`: holds packets until it is told to let them go.
//!
//! Follows: linux v6.12 `net/sched/sch_plug.c`. It dumps no options.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated};
use crate::qdisc::{Cx, Init, Qdisc};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "plug",
    about: "holds packets until told to release them",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Delayed,
        limit: Limit::None,
        work_conserving: false,
    },
};

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = &init.device;
    let limit = match options {
        Some(o) => o.u32("limit").unwrap_or(0),
        None => device.tx_queue_len.wrapping_mul(device.psched_mtu()),
    };
    Ok(Box::new(Unsimulated::new(Plug { limit, throttled: true, unplug_indefinite: false })))
}

/// Its parameters and what it was told last.
#[derive(Debug)]
pub struct Plug {
    /// Most bytes held.
    pub limit: u32,
    /// Packets wait.
    pub throttled: bool,
    /// Packets pass until the next `block`.
    pub unplug_indefinite: bool,
}

impl Params for Plug {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        match o.str("action") {
            Some("block") => {
                self.throttled |= self.unplug_indefinite;
                self.unplug_indefinite = false;
            }
            Some("release") => self.throttled = false,
            Some("release_indefinite") => (self.throttled, self.unplug_indefinite) = (false, true),
            Some("limit") => self.limit = o.u32("limit").unwrap_or(0),
            _ => return Err(KernelError::errno(KernelError::EINVAL)),
        }
        Ok(())
    }
    fn dump(&self) -> Options {
        Options::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Bench;

    #[test]
    fn it_is_opened_and_closed() {
        let mut bench = Bench::new();
        let mut plug = Plug { limit: 5, throttled: true, unplug_indefinite: false };
        let mut told = |action: &str| {
            let o = Options::new().with("action", action).with("limit", 9u32);
            plug.change(Some(&o), &mut bench.cx(0))
                .map(|()| (plug.limit, plug.throttled))
                .map_err(|e| e.errno)
        };
        assert_eq!(told("release"), Ok((5, false)));
        assert_eq!(told("block"), Ok((5, false)));
        assert_eq!(told("release_indefinite"), Ok((5, false)));
        assert_eq!(told("block"), Ok((5, true)));
        assert_eq!(told("limit"), Ok((9, true)));
        assert_eq!(told("open"), Err(22));
    }
}
