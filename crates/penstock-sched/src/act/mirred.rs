//! `mirred`: sends a packet, or a copy of it, out of or into another device.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_mirred.c`.
//! Differs: packets are not simulated; the device is kept by its name.

use super::{Act, ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "mirred",
    about: "redirect or mirror to another device",
    kernels: &Kernel::ALL,
    simulated: false,
    init,
};

/// `TCA_EGRESS_REDIR`, `TCA_EGRESS_MIRROR`, `TCA_INGRESS_REDIR`, `TCA_INGRESS_MIRROR`.
const ACTIONS: std::ops::RangeInclusive<u32> = 1..=4;

#[derive(Clone, Debug, Default)]
struct Mirred {
    eaction: u32,
    dev: Option<String>,
    block: Option<u32>,
}

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |why| Err(init.refusal(KernelError::EINVAL, why));
    let Some(options) = options else { return no("act_mirred: Mirred requires attributes to be passed") };
    let new = init.kernel == Kernel::V6_12;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    let dev = options.str("dev").map(str::to_owned);
    let block = options.u32("blockid").filter(|_| new);
    if block.is_some() && dev.is_some() {
        return no("act_mirred: Cannot specify Block ID and dev simultaneously");
    }
    let eaction = options.u32("eaction").unwrap_or(0);
    if new && !ACTIONS.contains(&eaction) {
        return no("act_mirred: Unknown mirred option");
    }
    if !place.exists && dev.is_none() && block.is_none() {
        return no("act_mirred: Must specify device or block");
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let mut mirred = init.present::<Mirred>(place).cloned().unwrap_or_default();
    mirred.eaction = eaction;
    if dev.is_some() || block.is_some() {
        (mirred.dev, mirred.block) = (dev, block);
    }
    Ok(Ready::Set { place, control, params: Box::new(mirred) })
}

impl Act for Mirred {
    fn dump(&self, _: Time) -> Options {
        let mut o = Options::new().with("eaction", self.eaction);
        if let Some(dev) = &self.dev {
            o = o.with("dev", dev.as_str());
        }
        if let Some(block) = self.block {
            o = o.with("blockid", block);
        }
        o
    }
    fn offload(&self, _: i32) -> Offload {
        Offload::Yes
    }
    fn device_gone(&mut self, name: &str) {
        if self.dev.as_deref() == Some(name) {
            self.dev = None;
        }
    }
    fn device_renamed(&mut self, old: &str, new: &str) {
        if self.dev.as_deref() == Some(old) {
            self.dev = Some(new.to_owned());
        }
    }
}
