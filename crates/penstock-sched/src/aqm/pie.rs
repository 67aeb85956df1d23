//! PIE: proportional integral controller, enhanced.
//!
//! Follows: linux v6.12 include/net/pie.h; RFC 8033.

use crate::jiffies;
use penstock_model::psched::TICK_NS;
use penstock_model::{Kernel, Options};

/// Parameters: `struct pie_params`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    kernel: Kernel,
    /// Delay to be kept, ticks of 64 ns. Default 15 ms.
    pub target: u64,
    /// How often the probability is computed, jiffies. Default 15 ms, rounded up.
    pub tupdate: u64,
    /// Most packets queued.
    pub limit: u32,
    /// Weight of the delay's distance from the target. Default 2.
    pub alpha: u32,
    /// Weight of the delay's growth. Default 20.
    pub beta: u32,
    /// Marks instead of dropping.
    pub ecn: bool,
    /// The probability grows with a packet's length.
    pub bytemode: bool,
    /// The delay is estimated from the rate at which the queue drains.
    pub dq_rate_estimator: bool,
}

impl Params {
    /// `pie_params_init`, with a limit.
    pub fn new(kernel: Kernel, limit: u32) -> Params {
        Params {
            kernel,
            target: 15_000_000 / TICK_NS,
            tupdate: jiffies::from_us(15_000, kernel),
            limit,
            alpha: 2,
            beta: 20,
            ecn: false,
            bytemode: false,
            dq_rate_estimator: false,
        }
    }
    /// Takes over what is given; times in µs.
    pub fn change(&mut self, o: &Options) {
        if let Some(target) = o.u32("target") {
            self.target = u64::from(target) * 1000 / TICK_NS;
        }
        if let Some(tupdate) = o.u32("tupdate") {
            self.tupdate = jiffies::from_us(tupdate, self.kernel);
        }
        for (name, value) in
            [("limit", &mut self.limit), ("alpha", &mut self.alpha), ("beta", &mut self.beta)]
        {
            *value = o.u32(name).unwrap_or(*value);
        }
        let flags = [
            ("ecn", &mut self.ecn),
            ("bytemode", &mut self.bytemode),
            ("dq_rate_estimator", &mut self.dq_rate_estimator),
        ];
        for (name, value) in flags {
            *value = o.u32(name).map_or(*value, |given| given != 0);
        }
    }
    /// Adds them to a dump.
    pub fn dump(&self, o: Options) -> Options {
        let target_ns = self.target.wrapping_mul(TICK_NS) as u32;
        o.with("limit", self.limit)
            .with("target", target_ns / 1000)
            .with("tupdate", jiffies::to_us(self.tupdate, self.kernel))
            .with("alpha", self.alpha)
            .with("beta", self.beta)
            .with("ecn", u32::from(self.ecn))
            .with("bytemode", u32::from(self.bytemode))
            .with("dq_rate_estimator", u32::from(self.dq_rate_estimator))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_is_shown_from_32_bits_of_nanoseconds() {
        let mut p = Params::new(Kernel::V6_12, 1000);
        let shown = |p: &Params| p.dump(Options::new()).u32("target");
        assert_eq!(shown(&p), Some(15_000));
        p.change(&Options::new().with("target", 5_000_000u32));
        // 5 s are 2^32 ns and 705032704 ns.
        assert_eq!(shown(&p), Some(705_032));
        assert_eq!(p.dump(Options::new()).u32("tupdate"), Some(16_000));
    }
}
