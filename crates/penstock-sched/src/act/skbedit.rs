//! `skbedit`: sets what the kernel notes about a packet: priority, queue, mark, type.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/act_skbedit.c`.
//! Differs: the queue that is set is noted; what queues a device has does not follow it.

use super::plain::{Plain, pick};
use super::{Act, ActSpec, Init, Offload, Ready, Run, SKIP_SW, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::{L3, Skb};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "skbedit",
    about: "set priority, queue, mark or type of a packet",
    kernels: &Kernel::ALL,
    simulated: true,
    init,
};

/// `SKBEDIT_F_TXQ_SKBHASH` of `flags`.
const TXQ_SKBHASH: u64 = 0x40;
/// `SKBEDIT_F_INHERITDSFIELD` of `flags`.
const INHERITDSFIELD: u64 = 0x20;
/// `PACKET_OTHERHOST`, the last type one may set.
const OTHERHOST: u32 = 3;

const NEW: &[&str] = &["priority", "queue_mapping", "mark", "mask", "ptype", "flags", "queue_mapping_max"];
const OLD: &[&str] = &["priority", "queue_mapping", "mark"];

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |errno, why: &str| Err(init.refusal(errno, &format!("act_skbedit: {why}")));
    let options = options.ok_or_else(|| init.invalid())?;
    let new = init.kernel >= Kernel::V6_12;
    let shown = pick(options, if new { NEW } else { OLD });
    if new && shown.has("queue_mapping") && init.ingress && init.flags & SKIP_SW == 0 {
        let why = "\"queue_mapping\" option on receive side is hardware only, use skip_sw";
        return no(KernelError::EOPNOTSUPP, why);
    }
    if shown.u32("ptype").is_some_and(|t| t > OTHERHOST) {
        return Err(init.invalid());
    }
    let flags = shown.u64("flags").unwrap_or(0);
    if flags & TXQ_SKBHASH != 0 {
        let (Some(min), Some(max)) = (shown.u32("queue_mapping"), shown.u32("queue_mapping_max")) else {
            return no(KernelError::EINVAL, "Missing required range of queue_mapping.");
        };
        if max < min {
            return no(KernelError::EINVAL, "The range of queue_mapping is invalid, max < min.");
        }
        if max - min + 1 > 0xffff {
            return no(KernelError::EINVAL, "The range of queue_mapping is invalid.");
        }
    }
    let index = options.u32("index").unwrap_or(0);
    let edits = NEW[..5].iter().any(|name| shown.has(name)) || flags & (TXQ_SKBHASH | INHERITDSFIELD) != 0;
    if !new && !edits {
        return Err(init.invalid());
    }
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    if !edits {
        return Err(init.invalid());
    }
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    // Hardware sets one thing at a time.
    let alone = ["mark", "ptype", "priority"].iter().any(|name| shown.has(name)) && shown.iter().count() == 1;
    let offload = if alone { Offload::Yes } else { Offload::No };
    let edit = Edit::new(&shown);
    Ok(Ready::Set { place, control, params: Box::new(Skbedit { plain: Plain { shown, offload }, edit }) })
}

/// What is done to each packet.
#[derive(Clone, Copy, Debug)]
struct Edit {
    priority: Option<u32>,
    inherit: bool,
    queue_mapping: Option<u16>,
    /// Among how many queues from there on the packet's hash chooses (`skbhash`); 0: none.
    spread: u16,
    /// Value and mask.
    mark: Option<(u32, u32)>,
    ptype: Option<u8>,
}

impl Edit {
    fn new(o: &Options) -> Edit {
        Edit {
            priority: o.u32("priority"),
            inherit: o.u64("flags").unwrap_or(0) & INHERITDSFIELD != 0,
            queue_mapping: o.u32("queue_mapping").map(|q| q as u16),
            spread: match o.u64("flags").unwrap_or(0) & TXQ_SKBHASH {
                0 => 0,
                _ => (o.u32("queue_mapping_max").unwrap_or(0) + 1)
                    .wrapping_sub(o.u32("queue_mapping").unwrap_or(0)) as u16,
            },
            mark: o.u32("mark").map(|mark| (mark, o.u32("mask").unwrap_or(u32::MAX))),
            ptype: o.u32("ptype").map(|t| t as u8),
        }
    }
}

#[derive(Clone, Debug)]
struct Skbedit {
    plain: Plain,
    edit: Edit,
}

impl Act for Skbedit {
    /// `tcf_skbedit_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        let Edit { priority, inherit, queue_mapping, spread, mark, ptype } = self.edit;
        skb.priority = priority.unwrap_or(skb.priority);
        if inherit {
            // With a tag in the frame, that is where the kernel takes the IP header to be.
            let tos = match (skb.innermost().0, &skb.rare().within) {
                (L3::Ipv4(h), None) => Some(h.tos),
                (L3::Ipv6(h), None) => Some(h.traffic_class),
                (L3::Ipv4(_), Some(tagged)) => Some(tagged.tci as u8),
                (L3::Ipv6(_), Some(tagged)) => Some((tagged.tci >> 4) as u8),
                _ => None,
            };
            skb.priority = tos.map_or(skb.priority, |tos| u32::from(tos >> 2));
        }
        if let Some(queue) = queue_mapping.filter(|&queue| u32::from(queue) < run.ports.tx_queues) {
            let rare = skb.rare_mut();
            (rare.queue_mapping, rare.queue_chosen, rare.queue_spread) = (queue, true, spread);
        }
        if let Some((mark, mask)) = mark {
            skb.mark = skb.mark & !mask | mark & mask;
        }
        if ptype.is_some() {
            skb.rare_mut().ptype = ptype;
        }
        control
    }
    fn dump(&self, now: Time) -> Options {
        self.plain.dump(now)
    }
    fn offload(&self, control: i32) -> Offload {
        self.plain.offload(control)
    }
}
