//! `mirred`: sends a packet, or a copy of it, out of or into another device.
//!
//! Follows: linux v7.2, v6.12 and v2.6.35 `net/sched/act_mirred.c`.
//! Differs: the device is kept by its name; what is sent elsewhere leaves when the call that met the action is over. To all
//! devices of a block (`blockid`) nothing is sent: the packet counts as over the limit, as where the block has no devices.

use super::{Act, ActSpec, Init, Offload, Ready, Run, SHOT, STOLEN, Sent, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "mirred",
    about: "redirect or mirror to another device",
    kernels: &Kernel::ALL,
    simulated: true,
    init,
};

/// `TCA_EGRESS_REDIR`, `TCA_EGRESS_MIRROR`, `TCA_INGRESS_REDIR`, `TCA_INGRESS_MIRROR`.
const ACTIONS: std::ops::RangeInclusive<u32> = 1..=4;

#[derive(Clone, Debug, Default)]
struct Mirred {
    eaction: u32,
    dev: Option<String>,
    block: Option<u32>,
    /// 7.2 refuses to send a packet to where it is.
    refuses_loops: bool,
}

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |why| Err(init.refusal(KernelError::EINVAL, why));
    let Some(options) = options else { return no("act_mirred: Mirred requires attributes to be passed") };
    let new = init.kernel >= Kernel::V6_12;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    let dev = options.str("dev").map(str::to_owned);
    let block = options.u32("blockid").filter(|_| new);
    if block.is_some() && dev.is_some() {
        return no("act_mirred: Cannot specify Block ID and dev simultaneously");
    }
    let eaction = options.u32("eaction").unwrap_or(0);
    if new && !ACTIONS.contains(&eaction) {
        return no("act_mirred: Unknown mirred option");
    }
    if !place.exists && dev.is_none() && block.is_none() {
        return no("act_mirred: Must specify device or block");
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let mut mirred = init.present::<Mirred>(place).cloned().unwrap_or_default();
    (mirred.eaction, mirred.refuses_loops) = (eaction, init.kernel >= Kernel::V7_2);
    if dev.is_some() || block.is_some() {
        (mirred.dev, mirred.block) = (dev, block);
    }
    Ok(Ready::Set { place, control, params: Box::new(mirred) })
}

/// Most mirred within one another (`MIRRED_NEST_LIMIT`), and rounds through receiving sides (`MIRRED_DEFER_LIMIT`).
const NEST_LIMIT: u8 = 4;
const DEFER_LIMIT: u8 = 3;

impl Mirred {
    fn redirects(&self) -> bool {
        matches!(self.eaction, 1 | 3)
    }
    fn receives(&self) -> bool {
        self.eaction >= 3
    }
}

impl Act for Mirred {
    /// `tcf_mirred_act`, `tcf_mirred_to_dev`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let (mut nest, depth) = skb.rare().nest;
        if depth >= NEST_LIMIT || skb.tc.depth >= DEFER_LIMIT {
            return SHOT;
        }
        let failed = if self.redirects() { SHOT } else { control };
        let port = self.dev.as_deref().and_then(|name| run.ports.named(name)).filter(|port| port.up);
        let Some(port) = port else {
            run.overlimit();
            return failed;
        };
        let here = port.ifindex == skb.tc.dev && self.receives() == skb.tc.at_ingress;
        if self.refuses_loops && here {
            run.overlimit();
            return failed;
        }
        if !self.receives() && nest[..usize::from(depth)].contains(&port.ifindex) {
            run.overlimit();
            return failed;
        }
        let mut copy = skb.clone();
        if self.receives() {
            copy.tc.depth += 1;
            if depth > 0 && !skb.tc.at_ingress {
                // It waits for a processor (netif_rx), which has none within one another when it comes to it.
                copy.rare_mut().nest = Default::default();
            }
        } else {
            nest[usize::from(depth)] = port.ifindex;
            copy.rare_mut().nest = (nest, depth + 1);
        }
        copy.iif = skb.tc.dev;
        if self.redirects() {
            (copy.tc.redirected, copy.tc.from_ingress) = (true, skb.tc.at_ingress);
        }
        // Who says that the packet is stolen keeps only its husk.
        let copied = !(self.redirects() && control == STOLEN);
        if copied {
            copy.tc.role.set_copy(true);
        } else {
            skb.tc.role.set_moved();
        }
        let (ifindex, receive, action) = (port.ifindex, self.receives(), run.index);
        let sent = Sent { skb: copy, ifindex, receive, action, copied };
        run.sent.push(sent);
        control
    }
    fn dump(&self, _: Time) -> Options {
        let mut o = Options::new().with("eaction", self.eaction);
        if let Some(dev) = &self.dev {
            o = o.with("dev", dev.as_str());
        }
        if let Some(block) = self.block {
            o = o.with("blockid", block);
        }
        o
    }
    fn offload(&self, _: i32) -> Offload {
        Offload::Yes
    }
    fn device_gone(&mut self, name: &str) {
        if self.dev.as_deref() == Some(name) {
            self.dev = None;
        }
    }
    fn device_renamed(&mut self, old: &str, new: &str) {
        if self.dev.as_deref() == Some(old) {
            self.dev = Some(new.to_owned());
        }
    }
}
