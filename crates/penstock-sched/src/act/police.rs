//! `police`: a token bucket that says what becomes of a packet within and beyond it.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_police.c`.
//! Differs: packets are not simulated.

use super::{Act, ActSpec, Init, Offload, Ready, goto_chain, int, valid};
use crate::estimator::Estimator;
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "police",
    about: "token bucket: one answer within the rate, another beyond it",
    kernels: &Kernel::ALL,
    simulated: false,
    init,
};

/// Pass, pipe, drop: answers that hardware can give, and all jumps.
fn in_hardware(action: i32) -> bool {
    matches!(action, super::OK | super::SHOT | super::PIPE | super::UNSPEC) || action as u32 >> 28 != 0
}

#[derive(Clone, Debug)]
struct Police {
    /// As dumped: `mtu burst rate mpu overhead linklayer peakrate pkts_rate pkts_burst avrate result`.
    shown: Options,
    /// What becomes of a packet within the rate.
    result: i32,
    /// An estimator runs.
    estimated: bool,
}

/// `qdisc_get_rtab`: whether a rate comes with a usable table.
fn table(options: &Options, cell_log: &str) -> bool {
    (1..32).contains(&options.u32(cell_log).unwrap_or(0))
}

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let new = init.kernel == Kernel::V6_12;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    if place.exists && init.bind && !new {
        return Ok(Ready::Bound(index));
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let rate = options.u64("rate").filter(|&r| r != 0);
    let peakrate = options.u64("peakrate").filter(|&r| r != 0 && rate.is_some());
    let no_table = |rate: Option<u64>, cell| rate.is_some() && !table(options, cell);
    if no_table(rate, "cell_log") || no_table(peakrate, "peak_cell_log") {
        return Err(KernelError::errno(KernelError::ENOMEM));
    }
    let before = init.present::<Police>(place);
    let mut estimated = before.is_some_and(|p| p.estimated);
    if let Some(spec) = init.estimator {
        Estimator::new(init.kernel, spec, init.now, 0, 0)?;
        estimated = true;
    } else if options.has("avrate") && !estimated {
        return Err(init.invalid());
    }
    let result = int(options, "result");
    if new && !valid(result) {
        return Err(init.refusal(KernelError::EINVAL, "invalid fallback control action"));
    }
    if new && goto_chain(result).is_some() {
        return Err(init.refusal(KernelError::EINVAL, "goto chain not allowed on fallback"));
    }
    if new && options.has("pkts_rate") && rate.is_some() {
        let why = "packet-per-second and byte-per-second rate limits not allowed in same action";
        return Err(init.refusal(KernelError::EINVAL, why));
    }
    let none = if rate.is_some() { 255 << options.u32("cell_log").unwrap_or(0) } else { u32::MAX };
    let mtu = options.u32("mtu").filter(|&mtu| mtu != 0).unwrap_or(none);
    let mut shown = Options::new().with("mtu", mtu).with("burst", options.u32("burst").unwrap_or(0));
    let mut keep = |names: &[&'static str]| {
        for &name in names {
            if let Some(value) = options.value(name) {
                shown.set(name, value.clone());
            }
        }
    };
    if rate.is_some() {
        keep(&["rate", "mpu", "overhead", "linklayer"]);
    }
    if peakrate.is_some() {
        keep(&["peakrate"]);
    }
    if new {
        keep(&["pkts_rate", "pkts_burst"]);
    }
    if result != 0 {
        keep(&["result"]);
    }
    if options.u64("avrate").is_some_and(|r| r != 0) {
        keep(&["avrate"]);
    }
    Ok(Ready::Set { place, control, params: Box::new(Police { shown, result, estimated }) })
}

impl Act for Police {
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
    fn offload(&self, control: i32) -> Offload {
        if in_hardware(control) && in_hardware(self.result) { Offload::Yes } else { Offload::Late }
    }
}
