//! `mpls`: puts on, takes off or changes an MPLS label.
//!
//! Follows: linux v6.12 `net/sched/act_mpls.c` `tcf_mpls_init`, `tcf_mpls_act`, `tcf_mpls_get_lse`; `net/core/skbuff.c` `skb_mpls_push`, `skb_mpls_pop`,
//! `skb_mpls_update_lse`, `skb_mpls_dec_ttl`.
//! Differs: `mac_push` is not simulated ([`Act::unsimulated`]). A label that is pushed onto a packet with a VLAN tag in its frame (not beside it, as the first
//! one is) drops it; the kernel writes the ethertype of MPLS over that of the tag.

use super::plain::pick;
use super::{Act, ActSpec, Init, Offload, Ready, Run, SHOT, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::{Head, Skb};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "mpls",
    about: "push, pop or modify an MPLS label",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

const POP: u32 = 1;
const PUSH: u32 = 2;
const MODIFY: u32 = 3;
const DEC_TTL: u32 = 4;
const MAC_PUSH: u32 = 5;
/// Labels have 20 bits; this one is never on the wire.
const IMPLNULL: u32 = 3;
const TTL_DEFAULT: u32 = 255;
const ETH_P_MPLS_UC: u32 = 0x8847;
const ETH_P_MPLS_MC: u32 = 0x8848;
/// Ethertypes begin here.
const ETH_P_802_3_MIN: u32 = 0x600;

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |errno, why: &str| Err(init.refusal(errno, &format!("act_mpls: {why}")));
    let invalid = |why| no(KernelError::EINVAL, why);
    let Some(options) = options else { return invalid("Missing netlink attributes") };
    if options.u32("label").is_some_and(|l| l > 0xfffff || l == IMPLNULL) {
        return invalid("MPLS label out of range");
    }
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let action = options.u32("m_action").unwrap_or(0);
    let protocol = options.u32("protocol");
    let fields = ["label", "tc", "ttl", "bos"].iter().any(|name| options.has(name));
    match action {
        POP => match protocol {
            None => return invalid("Protocol must be set for MPLS pop"),
            Some(p) if p < ETH_P_802_3_MIN => return invalid("Invalid protocol type for MPLS pop"),
            Some(_) if fields => return invalid("Label, TTL, TC or BOS cannot be used with MPLS pop"),
            Some(_) => {}
        },
        DEC_TTL if fields || protocol.is_some() => {
            return invalid("Label, TTL, TC, BOS or protocol cannot be used with MPLS dec_ttl");
        }
        DEC_TTL => {}
        PUSH | MAC_PUSH if !options.has("label") => return invalid("Label is required for MPLS push"),
        PUSH | MAC_PUSH if protocol.is_some_and(|p| p != ETH_P_MPLS_UC && p != ETH_P_MPLS_MC) => {
            return no(KernelError::EPROTONOSUPPORT, "Protocol must be an MPLS type for MPLS push");
        }
        PUSH | MAC_PUSH => {}
        MODIFY if protocol.is_some() => return invalid("Protocol cannot be used with MPLS modify"),
        MODIFY => {}
        _ => return invalid("Unknown MPLS action"),
    }
    let control = int(options, "action");
    init.control(control)?;
    let mut shown = pick(options, &["m_action", "label", "tc", "ttl", "bos"])
        .with("protocol", protocol.unwrap_or(ETH_P_MPLS_UC));
    if matches!(action, PUSH | MAC_PUSH) && !shown.has("ttl") {
        shown = shown.with("ttl", TTL_DEFAULT);
    }
    let offload = if matches!(action, POP | PUSH | MODIFY) { Offload::Yes } else { Offload::No };
    Ok(Ready::Set { place, control, params: Box::new(Mpls::new(shown, offload)) })
}

#[derive(Clone, Debug)]
struct Mpls {
    shown: Options,
    offload: Offload,
    action: u32,
    protocol: u16,
    /// Bits of an entry that are set, and to what.
    mask: u32,
    entry: u32,
    /// Whether `bos` was given; else a pushed entry is the bottom of the stack where it is the first.
    bos: bool,
}

/// The bit of the bottom of the stack.
const BOTTOM: u32 = 1 << 8;

impl Mpls {
    fn new(shown: Options, offload: Offload) -> Mpls {
        let (mut mask, mut entry) = (0, 0);
        for (name, shift, bits) in [("label", 12, 20), ("tc", 9, 3), ("bos", 8, 1), ("ttl", 0, 8)] {
            if let Some(n) = shown.u32(name) {
                let field = ((1u32 << bits) - 1) << shift;
                (mask, entry) = (mask | field, entry | n << shift & field);
            }
        }
        let n = |name| shown.u32(name).unwrap_or(0);
        let (action, protocol, bos) = (n("m_action"), n("protocol") as u16, shown.has("bos"));
        Mpls { action, protocol, mask, entry, bos, shown, offload }
    }
    /// `tcf_mpls_get_lse`.
    fn changed(&self, before: u32) -> u32 {
        before & !self.mask | self.entry
    }
    /// Whether the packet goes on.
    fn apply(&self, skb: &mut Skb) -> bool {
        match self.action {
            POP => {
                if skb.is_mpls() {
                    skb.pop_label(self.protocol);
                }
                true
            }
            PUSH if skb.rare().within.is_none() => {
                let bottom = if skb.is_mpls() || self.bos { 0 } else { BOTTOM };
                skb.wrap(self.protocol, Head::Mpls(self.changed(0) | bottom));
                true
            }
            MODIFY if skb.is_mpls() => skb.label().is_some_and(|entry| skb.set_label(self.changed(entry))),
            DEC_TTL if skb.is_mpls() => skb.label().is_some_and(|entry| {
                let ttl = (entry as u8).wrapping_sub(1);
                ttl != 0 && skb.set_label(entry & !0xff | u32::from(ttl))
            }),
            _ => false,
        }
    }
}

impl Act for Mpls {
    /// `tcf_mpls_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        if self.apply(skb) { control } else { run.dropping(SHOT) }
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
    fn offload(&self, _: i32) -> Offload {
        self.offload
    }
    fn unsimulated(&self) -> Option<&'static str> {
        (self.action == MAC_PUSH).then_some("mpls mac_push")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;

    fn mpls(action: u32, protocol: u32, words: &[(&'static str, u32)]) -> Mpls {
        let o = Options::new().with("m_action", action).with("protocol", protocol);
        Mpls::new(words.iter().fold(o, |o, (name, n)| o.with(name, *n)), Offload::No)
    }

    #[test]
    fn labels_are_pushed_changed_and_popped() {
        let mut skb = packet(0, 100);
        let (l3, l4) = (skb.l3, skb.l4);
        let push = |n, ttl| mpls(PUSH, 0x8847, &[("label", n), ("ttl", ttl)]);
        assert!(push(20, 255).apply(&mut skb));
        assert!(push(30, 2).apply(&mut skb));
        // The first one is the bottom of the stack, the second is not.
        assert_eq!(skb.labels().collect::<Vec<_>>(), [30 << 12 | 2, 20 << 12 | BOTTOM | 255]);
        assert!(mpls(MODIFY, 0x8847, &[("tc", 5)]).apply(&mut skb));
        let dec = mpls(DEC_TTL, 0x8847, &[]);
        assert!(dec.apply(&mut skb));
        assert_eq!(skb.label(), Some(30 << 12 | 5 << 9 | 1));
        // The last hop ends.
        assert!(!dec.apply(&mut skb));
        assert!(mpls(POP, 0x8847, &[]).apply(&mut skb));
        assert!(mpls(POP, 0x0800, &[]).apply(&mut skb));
        assert_eq!((skb.len, skb.l3, skb.l4), (100, l3, l4));
        // Nothing to take off is no fault; nothing to change is.
        assert!(mpls(POP, 0x0800, &[]).apply(&mut skb));
        assert!(!mpls(MODIFY, 0x8847, &[("ttl", 1)]).apply(&mut skb));
        assert!(!dec.apply(&mut skb));
        assert_eq!(skb.l3, l3);
        // `bos` as it is given.
        assert!(mpls(PUSH, 0x8848, &[("label", 16), ("ttl", 9), ("bos", 0)]).apply(&mut skb));
        assert_eq!((skb.label(), skb.protocol()), (Some(16 << 12 | 9), 0x8848));
    }

    #[test]
    fn a_tag_beside_the_frame_stays_there_and_one_in_it_is_not_written_over() {
        let mut skb = packet(0, 100);
        skb.rare_mut().vlan = Some((0x8100, 5));
        let push = mpls(PUSH, 0x8847, &[("label", 20), ("ttl", 255)]);
        assert!(push.apply(&mut skb));
        assert_eq!((skb.rare().vlan, skb.len), (Some((0x8100, 5)), 104));
        skb.insert_vlan(0x8100, 6);
        assert!(!push.apply(&mut skb));
        assert!(!mpls(MODIFY, 0x8847, &[("ttl", 1)]).apply(&mut skb));
    }
}
