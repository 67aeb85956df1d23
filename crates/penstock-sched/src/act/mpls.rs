//! `mpls`: puts on, takes off or changes an MPLS label.
//!
//! Follows: linux v6.12 `net/sched/act_mpls.c`.
//! Differs: packets are not simulated.

use super::plain::{Plain, pick};
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "mpls",
    about: "push, pop or modify an MPLS label",
    kernels: &Kernel::LIVING,
    simulated: false,
    init,
};

const POP: u32 = 1;
const PUSH: u32 = 2;
const MODIFY: u32 = 3;
const DEC_TTL: u32 = 4;
const MAC_PUSH: u32 = 5;
/// Labels have 20 bits; this one is never on the wire.
const IMPLNULL: u32 = 3;
const TTL_DEFAULT: u32 = 255;
const ETH_P_MPLS_UC: u32 = 0x8847;
const ETH_P_MPLS_MC: u32 = 0x8848;
/// Ethertypes begin here.
const ETH_P_802_3_MIN: u32 = 0x600;

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |errno, why: &str| Err(init.refusal(errno, &format!("act_mpls: {why}")));
    let invalid = |why| no(KernelError::EINVAL, why);
    let Some(options) = options else { return invalid("Missing netlink attributes") };
    if options.u32("label").is_some_and(|l| l > 0xfffff || l == IMPLNULL) {
        return invalid("MPLS label out of range");
    }
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let action = options.u32("m_action").unwrap_or(0);
    let protocol = options.u32("protocol");
    let fields = ["label", "tc", "ttl", "bos"].iter().any(|name| options.has(name));
    match action {
        POP => match protocol {
            None => return invalid("Protocol must be set for MPLS pop"),
            Some(p) if p < ETH_P_802_3_MIN => return invalid("Invalid protocol type for MPLS pop"),
            Some(_) if fields => return invalid("Label, TTL, TC or BOS cannot be used with MPLS pop"),
            Some(_) => {}
        },
        DEC_TTL if fields || protocol.is_some() => {
            return invalid("Label, TTL, TC, BOS or protocol cannot be used with MPLS dec_ttl");
        }
        DEC_TTL => {}
        PUSH | MAC_PUSH if !options.has("label") => return invalid("Label is required for MPLS push"),
        PUSH | MAC_PUSH if protocol.is_some_and(|p| p != ETH_P_MPLS_UC && p != ETH_P_MPLS_MC) => {
            return no(KernelError::EPROTONOSUPPORT, "Protocol must be an MPLS type for MPLS push");
        }
        PUSH | MAC_PUSH => {}
        MODIFY if protocol.is_some() => return invalid("Protocol cannot be used with MPLS modify"),
        MODIFY => {}
        _ => return invalid("Unknown MPLS action"),
    }
    let control = int(options, "action");
    init.control(control)?;
    let mut shown = pick(options, &["m_action", "label", "tc", "ttl", "bos"])
        .with("protocol", protocol.unwrap_or(ETH_P_MPLS_UC));
    if matches!(action, PUSH | MAC_PUSH) && !shown.has("ttl") {
        shown = shown.with("ttl", TTL_DEFAULT);
    }
    let offload = if matches!(action, POP | PUSH | MODIFY) { Offload::Yes } else { Offload::No };
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload }) })
}
