//! `choke`: RED that also drops a packet met by chance in the queue if it is of the same flow.
//!
//! Follows: linux v6.12 `net/sched/sch_choke.c`.
//! Differs: packets are not simulated yet.

use super::KindSpec;
use super::red::{NUMBERS, parms};
use super::unsimulated::{Params, Unsimulated};
use crate::qdisc::{Cx, Init, Qdisc};
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "choke",
    about: "RED that hits flows the more the more of the queue they hold",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
};

/// `CHOKE_MAX_QUEUE`.
const MAX_QUEUE: u32 = 128 * 1024 - 1;

fn build(_: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut choke = Choke { limit: 0, flags: 0, parms: [0; 6] };
    choke.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(choke)))
}

/// Its parameters.
#[derive(Debug)]
pub struct Choke {
    /// Packets.
    limit: u32,
    flags: u32,
    /// In the order of [`NUMBERS`].
    parms: [u32; 6],
}

impl Params for Choke {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        let parms = parms(o, Kernel::V6_12)?;
        let limit = o.u32("limit").unwrap_or(0);
        if limit > MAX_QUEUE {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        (self.parms, self.limit, self.flags) = (parms, limit, o.u32("flags").unwrap_or(0));
        Ok(())
    }
    fn dump(&self) -> Options {
        let o = Options::new().with("limit", self.limit).with("flags", self.flags);
        NUMBERS.into_iter().zip(self.parms).fold(o, |o, (name, value)| o.with(name, value))
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = ["marked", "early", "pdrop", "other", "matched"];
        Some(zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u32)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    #[test]
    fn its_queue_has_an_end() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let o = |limit: u32| {
            let numbers = [83u32, 250, 9, 24, 8, 85_899_345];
            let o = Options::new().with("limit", limit);
            NUMBERS.into_iter().zip(numbers).fold(o, |o, (name, value)| o.with(name, value))
        };
        let mut errno = |o: &Options| build(&init, Some(o), &mut bench.cx(0)).err().map(|e| e.errno);
        assert_eq!([errno(&o(MAX_QUEUE)), errno(&o(MAX_QUEUE + 1))], [None, Some(22)]);
        assert_eq!(errno(&o(5).with("scell_log", 32u32)), Some(22));
        assert_eq!(errno(&Options::new().with("min", 5u32)), Some(22));
    }
}
