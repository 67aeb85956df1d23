//! `bpf`: asks a program.
//!
//! Follows: linux v6.12 `net/sched/act_bpf.c`.
//! Differs: none known but what [`crate::bpf`] and [`crate::ebpf`] say.

use super::plain::pick;
use super::{Act, ActSpec, Init, OK, PIPE, RECLASSIFY, REDIRECT, Ready, Run, SHOT, UNSPEC, int};
use crate::{bpf, ebpf};
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
    let bpf = if ebpf::is_object(options) {
        let refused = |why: ebpf::Refusal| KernelError::errno(why.errno);
        Bpf::Object(Box::new(ebpf::Program::load(options, init.kernel).map_err(refused)?))
    } else {
        let program = bpf::Program::new(options.list("ops")).ok_or_else(|| init.invalid())?;
        Bpf::Classic { program, shown: pick(options, &["ops"]) }
    };
    Ok(Ready::Set { place, control, params: Box::new(bpf) })
}

enum Bpf {
    Classic { program: bpf::Program, shown: Options },
    Object(Box<ebpf::Program>),
}

impl Act for Bpf {
    /// `tcf_bpf_act`: the program's answer where that is a control action, for -1 the action's own.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let said = match self {
            Bpf::Classic { program, .. } => program.run(skb, run.rng),
            Bpf::Object(program) => {
                let (now, rng) = (run.now, &mut *run.rng);
                let mut lent = ebpf::Lent { now, rng, sent: run.sent, redirect: run.redirect };
                program.run(skb, run.hit.classid.minor(), &mut lent).said
            }
        };
        match said as i32 {
            said @ (PIPE | RECLASSIFY | OK | REDIRECT) => said,
            SHOT => run.dropping(SHOT),
            UNSPEC => control,
            _ => UNSPEC,
        }
    }
    fn dump(&self, _: Time) -> Options {
        match self {
            Bpf::Classic { shown, .. } => shown.clone(),
            Bpf::Object(program) => {
                let mut shown = Options::new();
                program.dump(&mut shown);
                shown
            }
        }
    }
    fn unsimulated(&self) -> Option<&'static str> {
        match self {
            Bpf::Classic { .. } => None,
            Bpf::Object(program) => program.missing(),
        }
    }
}
