//! `ctinfo`: takes DSCP and mark back from a connection's mark.
//!
//! Follows: linux v6.12 `net/sched/act_ctinfo.c`.
//! Differs: there is one zone; `zone` says nothing.

use super::{Act, ActSpec, Init, Ready, Run, int};
use penstock_model::{Kernel, KernelError, Options, Time};
use penstock_packet::{L3, Skb};

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "ctinfo",
    about: "restore DSCP and mark from the connection's mark",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let no = |why| Err(init.refusal(KernelError::EINVAL, why));
    let Some(options) = options else { return no("act_ctinfo: ctinfo requires attributes to be passed") };
    let mask = options.u32("dscp");
    let state = options.u32("dscpstate").unwrap_or(0);
    if let Some(mask) = mask {
        let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
        if mask >> shift != 0x3f {
            return no("dscp mask must be 6 contiguous bits");
        }
        if mask & state != 0 {
            return no("dscp statemask must not overlap dscp mask");
        }
    }
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let mut shown = Options::new().with("zone", options.u32("zone").unwrap_or(0));
    if let Some(mask) = mask {
        shown = shown.with("dscp", mask).with("dscpstate", state);
    }
    if let Some(mask) = options.u32("cpmark") {
        shown = shown.with("cpmark", mask);
    }
    let dscp = mask.map(|mask| (mask, state));
    let params = Ctinfo { shown, dscp, cpmark: options.u32("cpmark"), dscp_set: 0, cpmark_set: 0 };
    Ok(Ready::Set { place, control, params: Box::new(params) })
}

#[derive(Clone, Debug)]
struct Ctinfo {
    shown: Options,
    /// Where the code point is in the mark, and the bits of which one must be set; 0: none must.
    dscp: Option<(u32, u32)>,
    /// Bits of the mark that are copied.
    cpmark: Option<u32>,
    dscp_set: u64,
    cpmark_set: u64,
}

/// Bits of ECN.
const ECN: u8 = 3;

impl Act for Ctinfo {
    /// `tcf_ctinfo_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, _: &mut Run<'_>) -> i32 {
        let Some(mark) = skb.rare().ct_mark else { return control };
        if let Some((mask, _)) = self.dscp.filter(|&(_, state)| state == 0 || mark & state != 0) {
            let dscp = ((mark & mask) >> mask.trailing_zeros()) as u8;
            let field = match &mut skb.l3 {
                L3::Ipv4(h) => Some(&mut h.tos),
                L3::Ipv6(h) => Some(&mut h.traffic_class),
                _ => None,
            };
            if let Some(field) = field.filter(|field| **field & !ECN != dscp << 2) {
                *field = *field & ECN | dscp << 2;
                self.dscp_set += 1;
            }
        }
        if let Some(mask) = self.cpmark {
            skb.mark = mark & mask;
            self.cpmark_set += 1;
        }
        control
    }
    fn dump(&self, _: Time) -> Options {
        let counted = self.shown.clone().with("dscpset", self.dscp_set).with("dscperror", 0u64);
        counted.with("cpmarkset", self.cpmark_set)
    }
}

#[cfg(test)]
mod tests {
    use super::super::connmark::tests::acted;
    use super::*;

    #[test]
    fn the_code_point_and_the_mark_come_back() {
        let both = |state| Ctinfo {
            shown: Options::new(),
            dscp: Some((0xfc00_0000, state)),
            cpmark: Some(0xff),
            dscp_set: 0,
            cpmark_set: 0,
        };
        // EF in the upper bits; ECN stays.
        let mark = 46 << 26 | 0x0100_0000 | 0x1234;
        let mut act = both(0x0100_0000);
        assert_eq!(acted(&mut act, Some(mark), 1), (0x34, 0xb9, 0));
        assert_eq!((act.dscp_set, act.cpmark_set), (1, 1));
        // The same again changes nothing; without the bit of state nothing is set; without a connection neither.
        assert_eq!(acted(&mut act, Some(mark), 0xb9).1, 0xb9);
        assert_eq!(act.dscp_set, 1);
        assert_eq!(acted(&mut act, Some(46 << 26), 0), (0, 0, 0));
        assert_eq!(acted(&mut act, None, 0), (0, 0, 0));
        assert_eq!(acted(&mut both(0), Some(46 << 26), 0), (0, 0xb8, 0));
        assert_eq!(act.cpmark_set, 3);
    }
}
