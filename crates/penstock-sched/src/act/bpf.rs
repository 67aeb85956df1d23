//! `bpf`: asks a program.
//!
//! Follows: linux v6.12 `net/sched/act_bpf.c`.
//! Differs: programs are checked but not run.

use super::plain::{Plain, pick};
use super::{ActSpec, Init, Offload, Ready, int};
use crate::bpf::is_valid;
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: ActSpec =
    ActSpec { id: "bpf", about: "a program decides", kernels: &[Kernel::V6_12], simulated: false, init };

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let ops = options.list("ops");
    if ops.is_empty() || !is_valid(ops) {
        return Err(init.invalid());
    }
    let shown = pick(options, &["ops"]);
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload: Offload::No }) })
}
