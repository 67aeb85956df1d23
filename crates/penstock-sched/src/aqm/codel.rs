//! CoDel: controlled delay.
//!
//! Follows: linux v6.12 include/net/codel.h, `codel_impl.h`; RFC 8289. Time is counted in units of 1024 ns.

use penstock_model::Options;

/// `CODEL_SHIFT`.
const SHIFT: u32 = 10;
/// `CODEL_DISABLED_THRESHOLD`: nothing is marked by its delay alone.
pub const DISABLED: u32 = i32::MAX as u32;

/// Microseconds to units of 1024 ns.
pub fn from_us(us: u32) -> u32 {
    ((u64::from(us) * 1000) >> SHIFT) as u32
}
/// `codel_time_to_us`.
pub fn to_us(time: u32) -> u32 {
    ((u64::from(time) << SHIFT) / 1000) as u32
}

/// Parameters: `struct codel_params`, times in units of 1024 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// Delay that is let stand. Default 5 ms.
    pub target: u32,
    /// How long the delay may stay above it. Default 100 ms.
    pub interval: u32,
    /// Delay above which all is marked, or [`DISABLED`].
    pub ce_threshold: u32,
    /// Marks instead of dropping.
    pub ecn: bool,
}

impl Params {
    /// `codel_params_init`.
    pub fn new() -> Params {
        Params { target: from_us(5000), interval: from_us(100_000), ce_threshold: DISABLED, ecn: false }
    }
    /// Takes over what is given of `target`, `interval`, `ce_threshold` (µs) and `ecn`.
    pub fn change(&mut self, o: &Options) {
        let time = |name, old| o.u32(name).map_or(old, from_us);
        self.target = time("target", self.target);
        self.interval = time("interval", self.interval);
        self.ce_threshold = time("ce_threshold", self.ce_threshold);
        self.ecn = o.u32("ecn").map_or(self.ecn, |ecn| ecn != 0);
    }
    /// Adds the four to a dump, the times in µs.
    pub fn dump(&self, o: Options) -> Options {
        let o = o
            .with("target", to_us(self.target))
            .with("interval", to_us(self.interval))
            .with("ecn", u32::from(self.ecn));
        if self.ce_threshold == DISABLED { o } else { o.with("ce_threshold", to_us(self.ce_threshold)) }
    }
}

impl Default for Params {
    fn default() -> Params {
        Params::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lose_what_1024_ns_cannot_hold() {
        assert_eq!([1, 3, 1024, 5000].map(|us| to_us(from_us(us))), [0, 2, 1024, 4999]);
        let mut p = Params::new();
        p.change(&Options::new().with("ecn", 2u32).with("ce_threshold", 20_000u32));
        assert_eq!((p.ecn, p.target, to_us(p.ce_threshold)), (true, 4882, 19_999));
        assert!(!Params::new().dump(Options::new()).has("ce_threshold"));
    }
}
