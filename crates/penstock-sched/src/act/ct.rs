//! `ct`: sends a packet through connection tracking, with NAT if asked.
//!
//! The connections are the machine's, which lends them ([`Connections`]) for as long as a packet is with the filters.
//!
//! Follows: linux v6.12 `net/sched/act_ct.c`.
//! Differs: no helpers, and no choice of addresses of IPv6 ([`Act::unsimulated`]); no flow table, so that TCP's windows are looked at of every segment;
//! fragments have the connection of their addresses alone, as they are not put together before.

use super::plain::pick;
use super::{Act, ActSpec, Init, Offload, Ready, Run, SHOT, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::{L3, Skb, Tracked};
use std::any::Any;

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "ct",
    about: "track the packet's connection",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

const COMMIT: u32 = 1;
const FORCE: u32 = 2;
const CLEAR: u32 = 4;
const NAT: u32 = 8;
const NAT_SRC: u32 = 16;
const NAT_DST: u32 = 32;

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |errno, why: &str| Err(init.refusal(errno, &format!("act_ct: {why}")));
    let Some(options) = options else {
        return no(KernelError::EINVAL, "Ct requires attributes to be passed");
    };
    if init.bind && !init.clsact {
        let why = "Attaching ct to a non ingress/clsact qdisc is unsupported";
        return no(KernelError::EOPNOTSUPP, why);
    }
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let action = options.u32("ct_action").unwrap_or(0);
    let mut shown = Options::new().with("ct_action", action);
    if action & CLEAR == 0 {
        let both = NAT | NAT_SRC | NAT_DST;
        if action & both == both {
            return no(KernelError::EOPNOTSUPP, "dnat and snat can't be enabled at the same time");
        }
        shown = shown.with("zone", options.u32("zone").unwrap_or(0));
        // What no bit of is set, is not there.
        if options.u32("mark_mask").is_some_and(|m| m != 0) {
            shown = merged(shown, pick(options, &["mark", "mark_mask"]));
        }
        let full = |name| {
            let mut bytes = options.bytes(name)?.to_vec();
            bytes.resize(16, 0);
            Some(bytes)
        };
        if let (Some(labels), Some(mask)) = (full("labels"), full("labels_mask"))
            && mask.iter().any(|&b| b != 0)
        {
            shown = shown.with("labels", labels).with("labels_mask", mask);
        }
        if action & NAT != 0 && action & (NAT_SRC | NAT_DST) != 0 {
            shown = merged(shown, pick(options, &["addr_min", "addr_max", "port_min", "port_max"]));
        }
        shown = merged(shown, pick(options, &["helper"]));
    }
    let offload = if shown.has("helper") { Offload::Late } else { Offload::Yes };
    Ok(Ready::Set { place, control, params: Box::new(Ct::new(shown, offload)) })
}

/// What `ct` asks of a machine's connections for a packet: `struct tcf_ct_params`.
#[derive(Clone, Debug, Default)]
pub struct Ask {
    /// The zone, in which the same addresses and ports are another connection.
    pub zone: u16,
    /// `commit`: the connection is kept from now on, with mark, labels and translation.
    pub commit: bool,
    /// `force`: a connection whose answer the packet is, is forgotten.
    pub force: bool,
    /// `nat`; none: addresses stay.
    pub nat: Option<Translation>,
    /// Bits of the mark that are set, and to what.
    pub mark: (u32, u32),
    /// Bits of the labels that are set, and to what; the first byte is the highest.
    pub labels: (u128, u128),
}

/// What `nat` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Translation {
    /// `src`.
    pub source: bool,
    /// `dst`.
    pub destination: bool,
    /// First and last address.
    pub addresses: Option<(u128, u128)>,
    /// First and last port.
    pub ports: Option<(u16, u16)>,
}

/// A machine's connections, as `ct` needs them.
pub trait Connections: Any + Send {
    /// Finds the packet's connection, or begins one; translates, marks and keeps it as is asked, and notes on the packet what is known of it.
    /// `false`: the packet is dropped.
    fn track(&mut self, skb: &mut Skb, ask: &Ask, now: Time) -> bool;
    /// The packet has no connection any more: one that it alone knows of is gone.
    fn let_go(&mut self, known: Tracked);
}

#[derive(Clone, Debug)]
struct Ct {
    shown: Options,
    offload: Offload,
    clear: bool,
    ask: Ask,
}

impl Ct {
    fn new(shown: Options, offload: Offload) -> Ct {
        let n = |name| shown.u32(name).unwrap_or(0);
        let bytes =
            |name| shown.bytes(name).unwrap_or_default().iter().fold(0, |all, b| all << 8 | u128::from(*b));
        let (action, port) = (n("ct_action"), |name| shown.u32(name).map(|p| p as u16));
        let address = |name| shown.has(name).then(|| bytes(name));
        let nat = (action & NAT != 0).then(|| Translation {
            source: action & NAT_SRC != 0,
            destination: action & NAT_DST != 0,
            addresses: address("addr_min").map(|min| (min, address("addr_max").unwrap_or(min))),
            ports: port("port_min").map(|min| (min, port("port_max").unwrap_or(min))),
        });
        let ask = Ask {
            zone: n("zone") as u16,
            commit: action & COMMIT != 0,
            force: action & FORCE != 0,
            nat,
            mark: (n("mark_mask"), n("mark")),
            labels: (bytes("labels_mask"), bytes("labels")),
        };
        Ct { clear: action & CLEAR != 0, ask, shown, offload }
    }
}

/// `UNTRACKED` of `iptables`' states.
const UNTRACKED: u8 = 16;

impl Act for Ct {
    /// `tcf_ct_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        if self.clear {
            let known = skb.rare().ct;
            if let Some(known) = known.filter(|known| known.id.is_some()) {
                if let Some(connections) = &mut run.connections {
                    connections.let_go(known);
                }
                skb.rare_mut().ct = Some(Tracked { id: None, state: UNTRACKED, reply: false });
            }
            if skb.is_noted() {
                skb.rare_mut().post_ct = None;
            }
            return control;
        }
        // Behind a tag in the frame is an IP header all the same (`skb_protocol`), which nobody reads then.
        let ip = matches!(skb.l3, L3::Ipv4(_) | L3::Ipv6(_));
        let passed = ip && run.connections.as_mut().is_some_and(|c| c.track(skb, &self.ask, run.now));
        if !passed {
            return run.dropping(SHOT);
        }
        skb.rare_mut().post_ct = Some(self.ask.zone);
        control
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
    fn offload(&self, _: i32) -> Offload {
        self.offload
    }
    fn unsimulated(&self) -> Option<&'static str> {
        if self.shown.has("helper") {
            return Some("ct helper");
        }
        let six = self.shown.bytes("addr_min").is_some_and(|a| a.len() == 16);
        six.then_some("ct nat to IPv6 addresses")
    }
}

fn merged(mut one: Options, other: Options) -> Options {
    for (name, value) in other.iter() {
        one.set(name, value.clone());
    }
    one
}
