//! `gact`: one control action, by chance another.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_gact.c`.
//! Differs: packets are not simulated.

use super::{Act, ActSpec, Init, OK, Offload, Ready, SHOT, TRAP, goto_chain, int, valid};
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "gact",
    about: "pass, drop, or another control action",
    kernels: &Kernel::ALL,
    simulated: false,
    init,
};

/// How many ways of chance there are: none, `netrand`, `determ`.
const MAX_RAND: u32 = 3;

/// `random`: `struct tc_gact_p`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Gact {
    ptype: u32,
    pval: u32,
    paction: i32,
}

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let chance = options.nested("random").map(|p| Gact {
        ptype: p.u32("type").unwrap_or(0),
        pval: p.u32("val").unwrap_or(0),
        paction: int(p, "action"),
    });
    if let (Some(p), Kernel::V6_12) = (&chance, init.kernel) {
        if p.ptype >= MAX_RAND {
            return Err(init.invalid());
        }
        if !valid(p.paction) {
            return Err(init.refusal(KernelError::EINVAL, "invalid fallback control action"));
        }
        if goto_chain(p.paction).is_some() {
            return Err(init.refusal(KernelError::EINVAL, "goto chain not allowed on fallback"));
        }
    }
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let mut gact = init.present::<Gact>(place).copied().unwrap_or_default();
    if let Some(chance) = chance {
        let least = u32::from(init.kernel == Kernel::V6_12);
        gact = Gact { pval: chance.pval.max(least), ..chance };
    }
    Ok(Ready::Set { place, control, params: Box::new(gact) })
}

impl Act for Gact {
    fn dump(&self, _: Time) -> Options {
        if self.ptype == 0 {
            return Options::new();
        }
        let random = Options::new()
            .with("type", self.ptype)
            .with("val", self.pval)
            .with("action", i64::from(self.paction));
        Options::new().with("random", random)
    }
    fn offload(&self, control: i32) -> Offload {
        match control {
            OK | SHOT | TRAP => Offload::Yes,
            control if goto_chain(control).is_some() => Offload::Yes,
            _ => Offload::No,
        }
    }
}
