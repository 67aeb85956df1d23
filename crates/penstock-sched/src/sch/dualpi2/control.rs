//! The PI controller of `dualpi2`.
//!
//! Follows: linux v7.2 `net/sched/sch_dualpi2.c` `calculate_probability`; RFC 9332, appendix A.

use super::config::{MAX_PROB, Params};
use penstock_model::Time;

/// `ALPHA_BETA_GRANULARITY`.
const GAIN_UNIT: u64 = 1 << 6;

/// The PI controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Control {
    /// `pi2_prob`, of [`MAX_PROB`].
    pub(super) prob: u32,
    /// The delay at the last update, ns.
    pub(super) last_qdelay: u64,
    /// When it is due next.
    pub(super) timer: Time,
}

impl Control {
    /// `calculate_probability`: the next probability with the delay as it is.
    pub(super) fn update(&mut self, p: &Params, qdelay: u64) {
        let error = (qdelay as i64).wrapping_sub(p.target as i64).wrapping_mul(p.alpha.into());
        let growth = (qdelay as i64).wrapping_sub(self.last_qdelay as i64).wrapping_mul(p.beta.into());
        let delta = error.wrapping_add(growth);
        self.last_qdelay = qdelay;
        let step = (delta.unsigned_abs() / GAIN_UNIT) as u32;
        let old = self.prob;
        self.prob = if delta > 0 {
            let new = step.wrapping_add(old);
            if new < old { MAX_PROB } else { new }
        } else {
            let new = old.wrapping_sub(step);
            if new > old { 0 } else { new }
        };
        // Where overload does not drop, what is marked of the queue for low latency is all of it at most.
        if !p.drop_overload {
            self.prob = self.prob.min(MAX_PROB / p.coupling);
        }
    }
}
