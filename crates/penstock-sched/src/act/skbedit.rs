//! `skbedit`: sets what the kernel notes about a packet: priority, queue, mark, type.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_skbedit.c`.
//! Differs: packets are not simulated.

use super::plain::{Plain, pick};
use super::{ActSpec, Init, Offload, Ready, SKIP_SW, int};
use penstock_model::{Kernel, KernelError, Options};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "skbedit",
    about: "set priority, queue, mark or type of a packet",
    kernels: &Kernel::ALL,
    simulated: false,
    init,
};

/// `SKBEDIT_F_TXQ_SKBHASH` of `flags`.
const TXQ_SKBHASH: u64 = 0x40;
/// `SKBEDIT_F_INHERITDSFIELD` of `flags`.
const INHERITDSFIELD: u64 = 0x20;
/// `PACKET_OTHERHOST`, the last type one may set.
const OTHERHOST: u32 = 3;

const NEW: &[&str] = &["priority", "queue_mapping", "mark", "mask", "ptype", "flags", "queue_mapping_max"];
const OLD: &[&str] = &["priority", "queue_mapping", "mark"];

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |errno, why: &str| Err(init.refusal(errno, &format!("act_skbedit: {why}")));
    let options = options.ok_or_else(|| init.invalid())?;
    let new = init.kernel == Kernel::V6_12;
    let shown = pick(options, if new { NEW } else { OLD });
    if new && shown.has("queue_mapping") && init.ingress && init.flags & SKIP_SW == 0 {
        let why = "\"queue_mapping\" option on receive side is hardware only, use skip_sw";
        return no(KernelError::EOPNOTSUPP, why);
    }
    if shown.u32("ptype").is_some_and(|t| t > OTHERHOST) {
        return Err(init.invalid());
    }
    let flags = shown.u64("flags").unwrap_or(0);
    if flags & TXQ_SKBHASH != 0 {
        let (Some(min), Some(max)) = (shown.u32("queue_mapping"), shown.u32("queue_mapping_max")) else {
            return no(KernelError::EINVAL, "Missing required range of queue_mapping.");
        };
        if max < min {
            return no(KernelError::EINVAL, "The range of queue_mapping is invalid, max < min.");
        }
        if max - min + 1 > 0xffff {
            return no(KernelError::EINVAL, "The range of queue_mapping is invalid.");
        }
    }
    let index = options.u32("index").unwrap_or(0);
    let edits = NEW[..5].iter().any(|name| shown.has(name)) || flags & (TXQ_SKBHASH | INHERITDSFIELD) != 0;
    if !new && !edits {
        return Err(init.invalid());
    }
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    if !edits {
        return Err(init.invalid());
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    // Hardware sets one thing at a time.
    let alone = ["mark", "ptype", "priority"].iter().any(|name| shown.has(name)) && shown.iter().count() == 1;
    let offload = if alone { Offload::Yes } else { Offload::No };
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload }) })
}
