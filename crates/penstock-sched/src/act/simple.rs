//! `simple`: logs a word for each packet, as an example of an action.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_simple.c`.
//! Differs: there is no log to write to.

use super::plain::{Plain, pick};
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "simple",
    about: "log a word for each packet",
    kernels: &Kernel::ALL,
    simulated: true,
    init,
};

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    if !options.has("sdata") {
        return Err(init.invalid());
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let shown = pick(options, &["sdata"]);
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload: Offload::No }) })
}
