//! `vlan`: puts on, takes off or changes a VLAN tag, or an Ethernet header.
//!
//! Follows: linux v6.12 `net/sched/act_vlan.c`.
//! Differs: `pop_eth` and `push_eth` are not simulated ([`Act::unsimulated`]).

use super::plain::pick;
use super::{Act, ActSpec, Init, Offload, Ready, Run, SHOT, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "vlan",
    about: "push, pop or modify a VLAN tag",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

const POP: u32 = 1;
const PUSH: u32 = 2;
const MODIFY: u32 = 3;
const POP_ETH: u32 = 4;
const PUSH_ETH: u32 = 5;
/// The first id no network may have.
const VID_MAX: u32 = 0xfff;
const ETH_P_8021Q: u32 = 0x8100;

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    let action = options.u32("v_action").unwrap_or(0);
    let mut shown = Options::new().with("v_action", action);
    match action {
        POP | POP_ETH => {}
        PUSH | MODIFY => {
            let id = options.u32("id").ok_or_else(|| init.invalid())?;
            if id >= VID_MAX {
                return Err(KernelError::errno(KernelError::ERANGE));
            }
            shown = shown.with("id", id).with("protocol", options.u32("protocol").unwrap_or(ETH_P_8021Q));
            match options.u32("priority") {
                Some(priority) => shown = shown.with("priority", priority),
                None if action == PUSH => shown = shown.with("priority", 0u32),
                None => {}
            }
        }
        PUSH_ETH if options.has("dst_mac") && options.has("src_mac") => {
            for (name, mac) in pick(options, &["dst_mac", "src_mac"]).iter() {
                shown.set(name, mac.clone());
            }
        }
        _ => return Err(init.invalid()),
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    Ok(Ready::Set { place, control, params: Box::new(Vlan { shown }) })
}

/// Bits of the id in a tag, and of the priority.
const VID_MASK: u16 = 0x0fff;
const PRIO_SHIFT: u32 = 13;

#[derive(Clone, Debug)]
struct Vlan {
    shown: Options,
}

impl Act for Vlan {
    /// `tcf_vlan_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let n = |name| self.shown.u32(name).map(|n| n as u16);
        let (id, protocol) = (n("id").unwrap_or(0), n("protocol").unwrap_or(ETH_P_8021Q as u16));
        let priority = n("priority").map(|p| p << PRIO_SHIFT);
        match (self.shown.u32("v_action").unwrap_or(0), skb.rare().vlan) {
            // The next tag comes out of the frame to stand beside it.
            (POP, _) => {
                let next = skb.remove_vlan();
                skb.rare_mut().vlan = next;
            }
            (PUSH, before) => {
                if let Some((ethertype, tci)) = before {
                    skb.insert_vlan(ethertype, tci);
                }
                skb.rare_mut().vlan = Some((protocol, id | priority.unwrap_or(0)));
            }
            (MODIFY, None) => {}
            (MODIFY, Some((_, tci))) => {
                let kept = tci & !VID_MASK;
                let upper = priority.map_or(kept, |p| kept & (1 << 12) | p);
                skb.rare_mut().vlan = Some((protocol, upper | id));
            }
            _ => return run.dropping(SHOT),
        }
        control
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
    fn offload(&self, _: i32) -> Offload {
        Offload::Yes
    }
    fn unsimulated(&self) -> Option<&'static str> {
        match self.shown.u32("v_action") {
            Some(POP_ETH) => Some("vlan pop_eth"),
            Some(PUSH_ETH) => Some("vlan push_eth"),
            _ => None,
        }
    }
}
