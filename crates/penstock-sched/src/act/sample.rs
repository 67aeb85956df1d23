//! `sample`: hands one packet in so many to whoever listens to a psample group.
//!
//! Follows: linux v6.12 `net/sched/act_sample.c`.
//! Differs: nobody listens here, so that nothing is to be seen of a sample.

use super::plain::{Plain, pick};
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options, Value};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "sample",
    about: "hand samples of packets to a psample group",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let (Some(rate), true) = (options.u32("rate"), options.has("group")) else {
        return Err(init.refusal(KernelError::EINVAL, "sample rate and group are required"));
    };
    let control = int(options, "action");
    init.control(control)?;
    if rate == 0 {
        return Err(init.refusal(KernelError::EINVAL, "invalid sample rate"));
    }
    let mut shown = pick(options, &["rate", "group", "trunc"]);
    // A truncation once set stays.
    if let (Some(before), false) = (init.present::<Plain>(place), shown.has("trunc"))
        && let Some(trunc) = before.shown.u32("trunc")
    {
        shown.set("trunc", Value::U32(trunc));
    }
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload: Offload::Yes }) })
}
