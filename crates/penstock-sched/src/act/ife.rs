//! `ife`: wraps a packet in an Ethernet frame that carries metadata, or takes it out.
//!
//! Follows: linux v6.12 `net/sched/act_ife.c`, `act_meta_mark.c`, `act_meta_skbprio.c`, `act_meta_skbtcindex.c`.
//! Differs: packets are not simulated.

use super::plain::Plain;
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options, Value};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "ife",
    about: "carry metadata between machines in an Ethernet frame",
    kernels: &Kernel::LIVING,
    simulated: false,
    init,
};

const ENCODE: u32 = 1;
const ETH_P_IFE: u32 = 0xed3e;
/// What metadata there is.
const META: [&str; 3] = ["mark", "prio", "tcindex"];

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let Some(options) = options else {
        return Err(init.refusal(KernelError::EINVAL, "act_ife: IFE requires attributes to be passed"));
    };
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let flags = options.u32("flags").unwrap_or(0);
    let mut shown = Options::new().with("flags", flags).with("type", 0u32);
    if flags & ENCODE != 0 {
        shown = shown.with("type", options.u32("type").unwrap_or(ETH_P_IFE));
        for name in ["dst", "src"] {
            if let Some(mac) = options.bytes(name).filter(|m| m.iter().any(|&b| b != 0)) {
                shown = shown.with(name, mac.to_vec());
            }
        }
    }
    match options.nested("meta") {
        Some(meta) => shown = shown.with("meta", meta.clone()),
        // Without a list, all metadata there is may come.
        None => {
            let mut all = Options::new();
            for name in META {
                all.set(name, Value::Flag);
            }
            shown = shown.with("meta", all);
        }
    }
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload: Offload::No }) })
}
