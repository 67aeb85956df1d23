//! `nat`: rewrites addresses without keeping state.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_nat.c`.
//! Differs: none known.

use super::plain::pick;
use super::{Act, ActSpec, Init, Ready, Run, SHOT, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::{L3, L4, Skb};
use std::net::{IpAddr, Ipv4Addr};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "nat",
    about: "rewrite source or destination addresses",
    kernels: &Kernel::ALL,
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
    let shown = pick(options, &["old_addr", "new_addr", "mask", "flags"]);
    Ok(Ready::Set { place, control, params: Box::new(Nat { shown }) })
}

/// `TCA_NAT_FLAG_EGRESS`: the source is rewritten, not the destination.
const EGRESS: u32 = 1;
/// Offset of a fragment.
const IP_OFFSET: u16 = 0x1fff;

#[derive(Clone, Debug)]
struct Nat {
    shown: Options,
}

impl Nat {
    /// The address it makes of another.
    fn map(&self, address: Ipv4Addr) -> Option<Ipv4Addr> {
        let n = |name| self.shown.u32(name).unwrap_or(0);
        let (old, new, mask) = (n("old_addr"), n("new_addr"), n("mask"));
        ((old ^ address.to_bits()) & mask == 0)
            .then(|| Ipv4Addr::from_bits(new & mask | address.to_bits() & !mask))
    }
}

impl Act for Nat {
    /// `tcf_nat_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        if control == SHOT {
            return run.dropping(SHOT);
        }
        let egress = self.shown.u32("flags").unwrap_or(0) & EGRESS != 0;
        let L3::Ipv4(h) = &mut skb.l3 else { return control };
        let address = if egress { &mut h.src } else { &mut h.dst };
        if let Some(new) = self.map(*address) {
            *address = new;
        }
        // An ICMP error speaks of a packet that went the other way.
        if h.frag_off & IP_OFFSET == 0
            && let L4::Icmp(icmp) = &mut skb.l4
            && let Some(about) = icmp.about_mut()
        {
            let address = if egress { &mut about.dst } else { &mut about.src };
            if let IpAddr::V4(old) = *address
                && let Some(new) = self.map(old)
            {
                *address = new.into();
            }
        }
        control
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
}
