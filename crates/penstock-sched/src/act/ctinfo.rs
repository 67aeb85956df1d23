//! `ctinfo`: takes DSCP and mark back from a connection's mark.
//!
//! Follows: linux v6.12 `net/sched/act_ctinfo.c`.
//! Differs: packets are not simulated.

use super::plain::Plain;
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "ctinfo",
    about: "restore DSCP and mark from the connection's mark",
    kernels: &[Kernel::V6_12],
    simulated: false,
    init,
};

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |why| Err(init.refusal(KernelError::EINVAL, why));
    let Some(options) = options else { return no("act_ctinfo: ctinfo requires attributes to be passed") };
    let mask = options.u32("dscp");
    let state = options.u32("dscpstate").unwrap_or(0);
    if let Some(mask) = mask {
        let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
        if mask >> shift != 0x3f {
            return no("dscp mask must be 6 contiguous bits");
        }
        if mask & state != 0 {
            return no("dscp statemask must not overlap dscp mask");
        }
    }
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let mut shown = Options::new().with("zone", options.u32("zone").unwrap_or(0));
    if let Some(mask) = mask {
        shown = shown.with("dscp", mask).with("dscpstate", state);
    }
    if let Some(mask) = options.u32("cpmark") {
        shown = shown.with("cpmark", mask);
    }
    for name in ["dscpset", "dscperror", "cpmarkset"] {
        shown = shown.with(name, 0u64);
    }
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload: Offload::No }) })
}
