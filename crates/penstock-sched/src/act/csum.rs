//! `csum`: computes checksums anew.
//!
//! Follows: linux v6.12 `net/sched/act_csum.c`.
//! Differs: the IPv4 header's is the one checksum that can be wrong here.

use super::plain::pick;
use super::{Act, ActSpec, Init, Offload, Ready, Run, SHOT, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "csum",
    about: "recompute header checksums",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let shown = pick(options, &["update_flags"]);
    Ok(Ready::Set { place, control, params: Box::new(Csum { shown }) })
}

/// `TCA_CSUM_UPDATE_FLAG_IPV4HDR`.
const IPV4HDR: u32 = 1;

#[derive(Clone, Debug)]
struct Csum {
    shown: Options,
}

impl Act for Csum {
    /// `tcf_csum_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        if control == SHOT {
            return run.dropping(SHOT);
        }
        if self.shown.u32("update_flags").unwrap_or(0) & IPV4HDR != 0 {
            skb.tc.bad_checksum = false;
        }
        control
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
    fn offload(&self, _: i32) -> Offload {
        Offload::Yes
    }
}
