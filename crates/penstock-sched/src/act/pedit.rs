//! `pedit`: rewrites words of a packet.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_pedit.c`.
//! Differs: packets are not simulated. Values and masks are kept in host order.

use super::plain::{Plain, pick};
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "pedit",
    about: "rewrite words of a packet",
    kernels: &Kernel::ALL,
    simulated: false,
    init,
};

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |why| Err(init.refusal(KernelError::EINVAL, why));
    let Some(options) = options else { return no("act_pedit: Pedit requires attributes to be passed") };
    let index = options.u32("index").unwrap_or(0);
    let keys = options.list("keys");
    let old = init.kernel == Kernel::V2_6_35;
    if old && keys.is_empty() && init.place(index)?.is_none_or(|p| !p.exists) {
        return Err(init.invalid());
    }
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    if keys.is_empty() && !old {
        return no("act_pedit: Pedit requires keys to be passed");
    }
    let control = int(options, "action");
    init.control(control)?;
    let unaligned =
        |key: &Options| key.u32("offmask").unwrap_or(0) == 0 && !(int(key, "off") as u32).is_multiple_of(4);
    if !old && keys.iter().any(unaligned) {
        return no("act_pedit: Offsets must be on 32bit boundaries");
    }
    let command = |key: &Options| key.u32("cmd").unwrap_or(0);
    let alike = keys.iter().all(|key| command(key) == command(&keys[0]));
    let offload = match alike && options.has("ex") {
        true => Offload::Yes,
        false => Offload::Says("act_pedit: Unsupported pedit command offload"),
    };
    let shown = pick(options, &["ex", "keys"]);
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload }) })
}
