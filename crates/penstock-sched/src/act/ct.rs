//! `ct`: sends a packet through connection tracking, with NAT if asked.
//!
//! Follows: linux v6.12 `net/sched/act_ct.c`.
//! Differs: packets are not simulated.

use super::plain::{Plain, pick};
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "ct",
    about: "track the packet's connection",
    kernels: &Kernel::LIVING,
    simulated: false,
    init,
};

const CLEAR: u32 = 4;
const NAT: u32 = 8;
const NAT_SRC: u32 = 16;
const NAT_DST: u32 = 32;

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |errno, why: &str| Err(init.refusal(errno, &format!("act_ct: {why}")));
    let Some(options) = options else {
        return no(KernelError::EINVAL, "Ct requires attributes to be passed");
    };
    if init.bind && !init.clsact {
        let why = "Attaching ct to a non ingress/clsact qdisc is unsupported";
        return no(KernelError::EOPNOTSUPP, why);
    }
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let action = options.u32("ct_action").unwrap_or(0);
    let mut shown = Options::new().with("ct_action", action);
    if action & CLEAR == 0 {
        let both = NAT | NAT_SRC | NAT_DST;
        if action & both == both {
            return no(KernelError::EOPNOTSUPP, "dnat and snat can't be enabled at the same time");
        }
        shown = shown.with("zone", options.u32("zone").unwrap_or(0));
        // What no bit of is set, is not there.
        if options.u32("mark_mask").is_some_and(|m| m != 0) {
            shown = merged(shown, pick(options, &["mark", "mark_mask"]));
        }
        let full = |name| {
            let mut bytes = options.bytes(name)?.to_vec();
            bytes.resize(16, 0);
            Some(bytes)
        };
        if let (Some(labels), Some(mask)) = (full("labels"), full("labels_mask"))
            && mask.iter().any(|&b| b != 0)
        {
            shown = shown.with("labels", labels).with("labels_mask", mask);
        }
        if action & NAT != 0 && action & (NAT_SRC | NAT_DST) != 0 {
            shown = merged(shown, pick(options, &["addr_min", "addr_max", "port_min", "port_max"]));
        }
        shown = merged(shown, pick(options, &["helper"]));
    }
    let offload = if shown.has("helper") { Offload::Late } else { Offload::Yes };
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload }) })
}

fn merged(mut one: Options, other: Options) -> Options {
    for (name, value) in other.iter() {
        one.set(name, value.clone());
    }
    one
}
