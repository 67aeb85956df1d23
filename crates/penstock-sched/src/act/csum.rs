//! `csum`: computes checksums anew.
//!
//! Follows: linux v6.12 `net/sched/act_csum.c`.
//! Differs: packets are not simulated.

use super::plain::{Plain, pick};
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "csum",
    about: "compute checksums of headers anew",
    kernels: &[Kernel::V6_12],
    simulated: false,
    init,
};

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let shown = pick(options, &["update_flags"]);
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload: Offload::Yes }) })
}
