//! `connmark`: gives a packet its connection's mark.
//!
//! Follows: linux v6.12 `net/sched/act_connmark.c`.
//! Differs: there is one zone; `zone` says nothing.

use super::plain::pick;
use super::{Act, ActSpec, Init, Ready, Run, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "connmark",
    about: "copy the connection's mark to the packet",
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
    Ok(Ready::Set { place, control, params: Box::new(Connmark { shown: pick(options, &["zone"]) }) })
}

#[derive(Clone, Debug)]
struct Connmark {
    shown: Options,
}

impl Act for Connmark {
    /// `tcf_connmark_act`: overlimits count the packets that got a mark.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        if let Some(mark) = skb.rare().ct_mark {
            skb.mark = mark;
            run.overlimit();
        }
        control
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::act::{Ports, exec::Counts};
    use crate::cls::Hit;
    use crate::testing::packet;
    use penstock_model::Rng;

    /// A packet with its connection's mark behind an action.
    pub fn acted(act: &mut dyn Act, ct_mark: Option<u32>, tos: u8) -> (u32, u8, u32) {
        let (mut rng, mut counts, mut hit) = (Rng::named(1, "act"), Counts::default(), Hit::default());
        let mut skb = packet(0, 100);
        skb.rare_mut().ct_mark = ct_mark;
        if let penstock_packet::L3::Ipv4(h) = &mut skb.l3 {
            h.tos = tos;
        }
        let mut run = Run {
            now: Time::ZERO,
            rng: &mut rng,
            counts: &mut counts,
            hit: &mut hit,
            rate: None,
            ports: &Ports::default(),
            sent: &mut Vec::new(),
            redirect: &mut None,
            index: 1,
            connections: None,
        };
        act.act(&mut skb, 0, &mut run);
        (skb.mark, skb.tos(), counts.stats.overlimits)
    }

    #[test]
    fn a_packet_gets_the_mark_of_its_connection() {
        let mut act = Connmark { shown: Options::new() };
        assert_eq!(acted(&mut act, Some(7), 0), (7, 0, 1));
        assert_eq!(acted(&mut act, None, 0), (0, 0, 0));
    }
}
