//! `bpf`: asks a program.
//!
//! Follows: linux v6.12 `net/sched/act_bpf.c`.
//! Differs: none known but what [`crate::bpf`] says.

use super::plain::pick;
use super::{Act, ActSpec, Init, OK, PIPE, RECLASSIFY, REDIRECT, Ready, Run, SHOT, UNSPEC, int};
use crate::bpf::Program;
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ActSpec =
    ActSpec { id: "bpf", about: "a program decides", kernels: &Kernel::LIVING, simulated: true, init };

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let program = Program::new(options.list("ops")).ok_or_else(|| init.invalid())?;
    let shown = pick(options, &["ops"]);
    Ok(Ready::Set { place, control, params: Box::new(Bpf { program, shown }) })
}

#[derive(Clone, Debug)]
struct Bpf {
    program: Program,
    shown: Options,
}

impl Act for Bpf {
    /// `tcf_bpf_act`: the program's answer where that is a control action, for -1 the action's own.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        match self.program.run(skb, run.rng) as i32 {
            said @ (PIPE | RECLASSIFY | OK | REDIRECT) => said,
            SHOT => run.dropping(SHOT),
            UNSPEC => control,
            _ => UNSPEC,
        }
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
}
