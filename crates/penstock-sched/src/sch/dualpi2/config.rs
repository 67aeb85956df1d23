//! What the options of `dualpi2` say: defaults, checks, the dump.
//!
//! Follows: linux v7.2 `net/sched/sch_dualpi2.c` `dualpi2_reset_default`, `dualpi2_policy`, `dualpi2_change`, `dualpi2_dump`.

use crate::qdisc::Device;
use crate::sch::unsimulated::range;
use penstock_model::{KernelError, Options};

/// `MAX_PROB`: certain.
pub(super) const MAX_PROB: u32 = u32::MAX;
/// `ALPHA_BETA_MAX`: the greatest gain, in 256ths of a hertz.
pub(super) const GAIN_MAX: u32 = (1 << 31) - 1;
/// `ALPHA_BETA_SCALING`: gains are kept as powers of two finer than they are given.
pub(super) const GAIN_SHIFT: u32 = 2;
pub(super) const SECOND: u64 = 1_000_000_000;
/// `MAX_WC`: the weights of both queues together, percent.
pub(super) const WEIGHTS: u32 = 100;

/// `dualpi2_scale_alpha_beta`.
pub(super) fn scaled(gain: u32) -> u32 {
    (((u64::from(gain) * u64::from(MAX_PROB)) >> GAIN_SHIFT) / SECOND) as u32
}
/// `dualpi2_unscale_alpha_beta`.
pub(super) fn unscaled(gain: u32) -> u32 {
    ((u64::from(gain) * SECOND).wrapping_shl(GAIN_SHIFT) / u64::from(MAX_PROB)) as u32
}
/// `convert_us_to_nsec`: at most what 32 bits hold.
pub(super) fn ns(us: u32) -> u32 {
    u32::try_from(u64::from(us) * 1000).unwrap_or(u32::MAX)
}
/// `convert_ns_to_usec`.
pub(super) fn us(ns: u64) -> u32 {
    u32::try_from(ns / 1000).unwrap_or(u32::MAX)
}

/// What the options say.
#[derive(Debug)]
pub(super) struct Params {
    /// Packets.
    pub(super) limit: u32,
    /// Bytes.
    pub(super) memory_limit: u32,
    /// ns.
    pub(super) target: u64,
    /// ns.
    pub(super) tupdate: u32,
    pub(super) alpha: u32,
    pub(super) beta: u32,
    /// ns, or packets.
    pub(super) step_thresh: u32,
    pub(super) step_in_packets: bool,
    pub(super) min_qlen_step: u32,
    pub(super) coupling: u32,
    pub(super) drop_overload: bool,
    pub(super) drop_early: bool,
    /// Weight of the classic queue, percent.
    pub(super) wc: u32,
    /// Where the credit begins.
    pub(super) credit_init: i32,
    pub(super) ecn_mask: u8,
    pub(super) split_gso: bool,
}

/// MTU with its link header, as it is looked at here.
pub(super) fn mtu(device: &Device) -> u32 {
    device.psched_mtu().clamp(1, 1 << 20)
}
/// `get_memory_limit`: twice the greatest packet for each.
pub(super) fn memory_for(limit: u32, device: &Device) -> u32 {
    u32::try_from(u64::from(limit) * 2 * u64::from(mtu(device))).unwrap_or(u32::MAX)
}
/// `dualpi2_calculate_c_protection`.
pub(super) fn credit_of(wc: u32, device: &Device) -> i32 {
    (mtu(device) as i32).wrapping_mul(wc as i32 - (WEIGHTS - wc) as i32)
}

impl Params {
    /// `dualpi2_reset_default`.
    pub(super) fn new(device: &Device) -> Params {
        Params {
            limit: 10_000,
            memory_limit: memory_for(10_000, device),
            target: 15_000_000,
            tupdate: 16_000_000,
            alpha: scaled(41),
            beta: scaled(819),
            step_thresh: 1_000_000,
            step_in_packets: false,
            min_qlen_step: 0,
            coupling: 2,
            drop_overload: true,
            drop_early: false,
            wc: 10,
            credit_init: credit_of(10, device),
            ecn_mask: 1,
            split_gso: true,
        }
    }
    /// `dualpi2_policy`.
    pub(super) fn check(o: &Options) -> Result<(), KernelError> {
        for name in ["limit", "memlimit", "tupdate"] {
            range(o, name, 1..=u32::MAX)?;
        }
        for name in ["alpha", "beta"] {
            range(o, name, 1..=GAIN_MAX)?;
        }
        range(o, "coupling_factor", 1..=255)?;
        for name in ["drop_overload", "drop_early", "split_gso"] {
            range(o, name, 0..=1)?;
        }
        range(o, "classic_protection", 0..=WEIGHTS)?;
        range(o, "ecn_mask", 1..=3)?;
        if o.has("step_thresh_pkts") && o.has("step_thresh_us") {
            let sentence = "sch_dualpi2: multiple step thresh attributes";
            return Err(KernelError::new(KernelError::EINVAL, sentence));
        }
        Ok(())
    }
    /// Sets what is given. Whether the credit begins anew.
    pub(super) fn set(&mut self, o: &Options, device: &Device) -> bool {
        if let Some(limit) = o.u32("limit") {
            (self.limit, self.memory_limit) = (limit, memory_for(limit, device));
        }
        let set = |field: &mut u32, value: Option<u32>| *field = value.unwrap_or(*field);
        set(&mut self.memory_limit, o.u32("memlimit"));
        self.target = o.u32("target").map_or(self.target, |us| u64::from(us) * 1000);
        set(&mut self.tupdate, o.u32("tupdate").map(ns));
        set(&mut self.alpha, o.u32("alpha").map(scaled));
        set(&mut self.beta, o.u32("beta").map(scaled));
        if let Some(packets) = o.u32("step_thresh_pkts") {
            (self.step_in_packets, self.step_thresh) = (true, packets);
        } else if let Some(us) = o.u32("step_thresh_us") {
            (self.step_in_packets, self.step_thresh) = (false, ns(us));
        }
        set(&mut self.min_qlen_step, o.u32("min_qlen_step"));
        set(&mut self.coupling, o.u32("coupling_factor"));
        let flag = |field: &mut bool, name| *field = o.u32(name).map_or(*field, |value| value != 0);
        flag(&mut self.drop_overload, "drop_overload");
        flag(&mut self.drop_early, "drop_early");
        flag(&mut self.split_gso, "split_gso");
        self.ecn_mask = o.u32("ecn_mask").map_or(self.ecn_mask, |mask| mask as u8);
        let protection = o.u32("classic_protection");
        if let Some(wc) = protection {
            (self.wc, self.credit_init) = (wc, credit_of(wc, device));
        }
        protection.is_some()
    }
    pub(super) fn dump(&self) -> Options {
        let step = if self.step_in_packets {
            ("step_thresh_pkts", self.step_thresh)
        } else {
            ("step_thresh_us", us(self.step_thresh.into()))
        };
        Options::new()
            .with("limit", self.limit)
            .with("memlimit", self.memory_limit)
            .with("target", us(self.target))
            .with("tupdate", us(self.tupdate.into()))
            .with("alpha", unscaled(self.alpha))
            .with("beta", unscaled(self.beta))
            .with(step.0, step.1)
            .with("min_qlen_step", self.min_qlen_step)
            .with("coupling_factor", self.coupling)
            .with("drop_overload", u32::from(self.drop_overload))
            .with("drop_early", u32::from(self.drop_early))
            .with("classic_protection", self.wc)
            .with("ecn_mask", u32::from(self.ecn_mask))
            .with("split_gso", u32::from(self.split_gso))
    }
}
