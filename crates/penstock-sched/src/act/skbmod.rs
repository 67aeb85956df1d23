//! `skbmod`: sets or swaps Ethernet addresses, sets the ethertype, marks ECN.
//!
//! Follows: linux v6.12 `net/sched/act_skbmod.c`.
//! Differs: with another ethertype what follows the Ethernet header is unknown, at once.

use super::plain::pick;
use super::{Act, ActSpec, Init, Ready, Run, SHOT, int};
use crate::aqm::ecn::set_ce;
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::{L3, L4, Skb};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "skbmod",
    about: "set or swap Ethernet addresses",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

const SWAPMAC: u32 = 8;
const ECN: u32 = 16;
/// An option and its bit of the flags.
const SET: [(&str, u32); 3] = [("dmac", 1), ("smac", 2), ("etype", 4)];

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let given = options.u32("flags").unwrap_or(0);
    let mut flags = SET.iter().filter(|(name, _)| options.has(name)).map(|s| s.1).sum();
    // These two take the place of all others.
    for alone in [SWAPMAC, ECN] {
        if given & alone != 0 {
            flags = alone;
        }
    }
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    if flags == 0 {
        return Err(init.invalid());
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let mut shown = Options::new().with("flags", flags);
    for (name, value) in pick(options, &["dmac", "smac", "etype"]).iter() {
        if SET.iter().any(|&(n, bit)| n == name && flags & bit != 0) {
            shown.set(name, value.clone());
        }
    }
    Ok(Ready::Set { place, control, params: Box::new(Skbmod { shown }) })
}

#[derive(Clone, Debug)]
struct Skbmod {
    shown: Options,
}

impl Act for Skbmod {
    /// `tcf_skbmod_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        if control == SHOT {
            run.overlimit();
            return SHOT;
        }
        let address = |name| self.shown.bytes(name).and_then(|b| <[u8; 6]>::try_from(b).ok());
        match self.shown.u32("flags").unwrap_or(0) {
            ECN => {
                set_ce(skb);
            }
            SWAPMAC => skb.eth = (skb.eth.1, skb.eth.0),
            _ => {
                let (source, dest) = skb.eth;
                skb.eth = (address("smac").unwrap_or(source), address("dmac").unwrap_or(dest));
                if let Some(etype) = self.shown.u32("etype").map(|e| e as u16)
                    && etype != skb.protocol()
                {
                    (skb.l3, skb.l4) = (L3::Other(etype), L4::None);
                }
            }
        }
        control
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
}
