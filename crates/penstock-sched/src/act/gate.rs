//! `gate`: lets packets pass at times, by a schedule that goes round.
//!
//! Follows: linux v6.12 `net/sched/act_gate.c`.
//! Differs: packets are not simulated.

use super::plain::Plain;
use super::{ActSpec, Init, Offload, Ready, int};
use penstock_model::{Kernel, KernelError, Options, Value};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "gate",
    about: "let packets pass by a schedule",
    kernels: &Kernel::LIVING,
    simulated: false,
    init,
};

const CLOCK_TAI: i64 = 11;

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let given = options.list("entries");
    if given.iter().any(|e| e.u32("interval").unwrap_or(0) == 0) {
        return Err(init.refusal(KernelError::EINVAL, "Invalid interval for schedule entry"));
    }
    let before = init.present::<Plain>(place).map(|p| &p.shown);
    let entries: Vec<Options> = match (given.is_empty(), before) {
        (true, None) => return Err(init.refusal(KernelError::EINVAL, "The entry list is empty")),
        (true, Some(before)) => before.list("entries").to_vec(),
        (false, _) => (0u32..).zip(given).map(|(number, e)| e.clone().with("number", number)).collect(),
    };
    let value = |name: &'static str, otherwise: Value| {
        let kept = || before.and_then(|b| b.value(name)).cloned();
        options.value(name).cloned().or_else(kept).unwrap_or(otherwise)
    };
    let cycle_given = options.i64("cycle_time").filter(|&c| c != 0);
    let cycle_kept = before.filter(|_| given.is_empty()).and_then(|b| b.i64("cycle_time"));
    let all: i64 = entries.iter().map(|e| i64::from(e.u32("interval").unwrap_or(0))).sum();
    let shown = Options::new()
        .with("priority", value("priority", Value::I64(-1)))
        .with("clockid", value("clockid", Value::I64(CLOCK_TAI)))
        .with("flags", value("flags", Value::U32(0)))
        .with("base_time", value("base_time", Value::I64(0)))
        .with("cycle_time", cycle_given.or(cycle_kept).unwrap_or(all))
        .with("cycle_time_ext", value("cycle_time_ext", Value::I64(0)))
        .with("entries", Value::List(entries));
    Ok(Ready::Set { place, control, params: Box::new(Plain { shown, offload: Offload::Yes }) })
}
