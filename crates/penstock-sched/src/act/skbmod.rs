//! `skbmod`: sets or swaps Ethernet addresses, sets the ethertype, marks ECN.
//!
//! Follows: linux v6.12 `net/sched/act_skbmod.c`.
//! Differs: packets are not simulated.

use super::plain::{Plain, pick};
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "skbmod",
    about: "set or swap Ethernet addresses",
    kernels: &[Kernel::V6_12],
    simulated: false,
    init,
};

const SWAPMAC: u32 = 8;
const ECN: u32 = 16;
/// An option and its bit of the flags.
const SET: [(&str, u32); 3] = [("dmac", 1), ("smac", 2), ("etype", 4)];

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let given = options.u32("flags").unwrap_or(0);
    let mut flags = SET.iter().filter(|(name, _)| options.has(name)).map(|s| s.1).sum();
    // These two take the place of all others.
    for alone in [SWAPMAC, ECN] {
        if given & alone != 0 {
            flags = alone;
        }
    }
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    if flags == 0 {
        return Err(init.invalid());
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let mut shown = Options::new().with("flags", flags);
    for (name, value) in pick(options, &["dmac", "smac", "etype"]).iter() {
        if SET.iter().any(|&(n, bit)| n == name && flags & bit != 0) {
            shown.set(name, value.clone());
        }
    }
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload: Offload::No }) })
}
