//! `gact`: one control action, by chance another.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_gact.c`.
//! Differs: none known. `netrand` throws our dice, not the kernel's.

use super::{Act, ActSpec, Init, OK, Offload, Ready, Run, SHOT, TRAP, goto_chain, int, valid};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "gact",
    about: "pass, drop, or another control action",
    kernels: &Kernel::ALL,
    simulated: true,
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
    /// Packets that `determ` has counted.
    packets: u32,
    old: bool,
}

/// `PGACT_NETRAND`.
const NETRAND: u32 = 1;
/// `PGACT_DETERM`.
const DETERM: u32 = 2;

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let chance = options.nested("random").map(|p| Gact {
        ptype: p.u32("type").unwrap_or(0),
        pval: p.u32("val").unwrap_or(0),
        paction: int(p, "action"),
        packets: 0,
        old: init.kernel == Kernel::V2_6_35,
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
        let least = u32::from(init.kernel >= Kernel::V6_12);
        gact = Gact { pval: chance.pval.max(least), packets: gact.packets, ..chance };
    }
    Ok(Ready::Set { place, control, params: Box::new(gact) })
}

impl Act for Gact {
    fn act(&mut self, _: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let seldom = match self.ptype {
            NETRAND => run.rng.below(self.pval) == 0,
            DETERM => {
                // In 2010 the first packet was one of the seldom ones.
                let count = if self.old { self.packets } else { self.packets.wrapping_add(1) };
                self.packets = self.packets.wrapping_add(1);
                count.is_multiple_of(self.pval.max(1))
            }
            _ => false,
        };
        run.dropping(if seldom { self.paction } else { control })
    }
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
