//! `fq`: a queue for each flow, paced, served in turn.
//!
//! Follows: linux v6.12 `net/sched/sch_fq.c`. A change that is refused for its `buckets`, `priomap` or `weights`
//! has changed what else it names, as there.
//! Differs: packets are not simulated yet; `priomap` and `weights` are dumped where they were set.

use super::KindSpec;
use super::unsimulated::{Params, Unsimulated};
use crate::jiffies;
use crate::qdisc::{Cx, Init, Qdisc};
use penstock_model::{Kernel, KernelError, Options, Time};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "fq",
    about: "a queue a flow, paced, served by deficit round robin",
    kernels: &[Kernel::V6_12],
    build,
    simulated: false,
};

/// `FQ_BANDS`.
const BANDS: u32 = 3;
/// `FQ_MIN_WEIGHT`.
const WEIGHT_MIN: i64 = 16384;
/// Largest `initial_quantum`.
const INITIAL_QUANTUM_MAX: u32 = 1 << 20;
/// Names of the three weights in the option tables.
const WEIGHTS: [&str; 3] = ["weight0", "weight1", "weight2"];

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let (mtu, hz) = (init.device.psched_mtu().clamp(1, 1 << 20), init.device.hz);
    let mut fq = Fq {
        hz,
        limit: 10_000,
        flow_limit: 100,
        quantum: (2 * mtu).clamp(256, 1 << 20),
        initial_quantum: (10 * mtu).min(1 << 20),
        refill_delay: jiffies::from_us(40_000, hz),
        maxrate: u32::MAX,
        pacing: 1,
        buckets: 10,
        orphan_mask: 1023,
        low_rate_threshold: 550_000 / 8,
        timer_slack: 10_000,
        horizon: 10_000_000,
        horizon_drop: 1,
        ce_threshold: u32::MAX,
        priomap: None,
        weights: None,
    };
    fq.change(options, cx)?;
    Ok(Box::new(Unsimulated::new(fq)))
}

/// Its parameters.
#[derive(Debug)]
pub struct Fq {
    hz: u32,
    limit: u32,
    flow_limit: u32,
    quantum: u32,
    initial_quantum: u32,
    /// Jiffies.
    refill_delay: u64,
    maxrate: u32,
    pacing: u32,
    /// Logarithm of their number.
    buckets: u32,
    orphan_mask: u32,
    low_rate_threshold: u32,
    /// ns.
    timer_slack: u32,
    /// µs.
    horizon: u32,
    horizon_drop: u32,
    /// µs.
    ce_threshold: u32,
    priomap: Option<Vec<u8>>,
    weights: Option<[i64; 3]>,
}

impl Fq {
    /// `fq_load_priomap`.
    fn load_priomap(&mut self, bands: Option<u32>, map: &[u8]) -> Result<(), KernelError> {
        if bands != Some(BANDS) {
            return Err(KernelError::new(KernelError::EINVAL, "sch_fq: FQ only supports 3 bands"));
        }
        if let Some((i, band)) = map.iter().enumerate().find(|&(_, &band)| u32::from(band) >= BANDS) {
            let why = format!("sch_fq: FQ priomap field {i} maps to a too high band {band}");
            return Err(KernelError::new(KernelError::EINVAL, why));
        }
        self.priomap = Some(map.to_vec());
        Ok(())
    }
    /// `fq_load_weights`.
    fn load_weights(&mut self, o: &Options) -> Result<(), KernelError> {
        let weights = WEIGHTS.map(|name| o.i64(name).unwrap_or(0));
        if let Some(weight) = weights.iter().find(|&&weight| weight < WEIGHT_MIN) {
            let why = format!("sch_fq: Weight {weight} less that minimum allowed {WEIGHT_MIN}");
            return Err(KernelError::new(KernelError::EINVAL, why));
        }
        self.weights = Some(weights);
        Ok(())
    }
}

impl Params for Fq {
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        if o.u32("initial_quantum").is_some_and(|q| q > INITIAL_QUANTUM_MAX) {
            return Err(KernelError::errno(KernelError::ERANGE));
        }
        let number = |name, old| o.u32(name).unwrap_or(old);
        let mut result = Ok(());
        let buckets = number("buckets", self.buckets);
        if !(1..=18).contains(&buckets) {
            result = Err(KernelError::errno(KernelError::EINVAL));
        }
        self.limit = number("limit", self.limit);
        self.flow_limit = number("flow_limit", self.flow_limit);
        self.quantum = number("quantum", self.quantum).clamp(256, 1 << 20);
        self.initial_quantum = number("initial_quantum", self.initial_quantum);
        self.maxrate = number("maxrate", self.maxrate);
        self.low_rate_threshold = number("low_rate_threshold", self.low_rate_threshold);
        self.pacing = number("pacing", self.pacing);
        if let Some(us) = o.u32("refill_delay") {
            self.refill_delay = jiffies::from_us(us, self.hz);
        }
        if let (Ok(()), Some(map)) = (&result, o.bytes("priomap")) {
            result = self.load_priomap(o.u32("bands"), map);
        }
        if let (Ok(()), Some(weights)) = (&result, o.nested("weights")) {
            result = self.load_weights(weights);
        }
        self.orphan_mask = number("orphan_mask", self.orphan_mask);
        self.ce_threshold = number("ce_threshold", self.ce_threshold);
        self.timer_slack = number("timer_slack", self.timer_slack);
        self.horizon = number("horizon", self.horizon);
        self.horizon_drop = number("horizon_drop", self.horizon_drop);
        if result.is_ok() {
            self.buckets = buckets;
        }
        result
    }
    fn dump(&self) -> Options {
        let mut o = Options::new()
            .with("limit", self.limit)
            .with("flow_limit", self.flow_limit)
            .with("quantum", self.quantum)
            .with("initial_quantum", self.initial_quantum)
            .with("pacing", self.pacing)
            .with("maxrate", self.maxrate)
            .with("refill_delay", jiffies::to_us(self.refill_delay, self.hz))
            .with("orphan_mask", self.orphan_mask)
            .with("low_rate_threshold", self.low_rate_threshold)
            .with("ce_threshold", self.ce_threshold)
            .with("buckets", self.buckets)
            .with("timer_slack", self.timer_slack)
            .with("horizon", self.horizon)
            .with("horizon_drop", self.horizon_drop);
        if let Some(map) = &self.priomap {
            o = o.with("bands", BANDS).with("priomap", map.clone());
        }
        if let Some(weights) = self.weights {
            let nested =
                WEIGHTS.into_iter().zip(weights).fold(Options::new(), |o, (name, w)| o.with(name, w));
            o = o.with("weights", nested);
        }
        o
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let zero = [
            "flows",
            "inactive",
            "throttled_flows",
            "next_packet_delay",
            "gc",
            "highprio",
            "retrans",
            "throttled",
            "latency",
            "ce_mark",
            "flows_plimit",
            "pkts_too_long",
            "alloc_errors",
            "horizon_drops",
            "horizon_caps",
        ];
        Some(zero.into_iter().fold(Options::new(), |o, name| o.with(name, 0u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    #[test]
    fn refused_changes_change_the_rest() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let before = q.dump();
        assert_eq!((before.u32("quantum"), before.u32("initial_quantum")), (Some(3028), Some(15_140)));
        let bad = Options::new().with("initial_quantum", 1u32 << 21).with("limit", 5u32);
        assert_eq!(q.change(Some(&bad), &mut bench.cx(0)).unwrap_err().errno, 34);
        assert_eq!(q.dump(), before);
        let bad = Options::new().with("buckets", 19u32).with("limit", 5u32);
        assert_eq!(q.change(Some(&bad), &mut bench.cx(0)).unwrap_err().errno, 22);
        assert_eq!((q.dump().u32("limit"), q.dump().u32("buckets")), (Some(5), Some(10)));
        let weights =
            Options::new().with("weight0", 16384i64).with("weight1", 16383i64).with("weight2", 1i64);
        let e = q.change(Some(&Options::new().with("weights", weights)), &mut bench.cx(0)).unwrap_err();
        assert_eq!(e.extack, "sch_fq: Weight 16383 less that minimum allowed 16384");
    }
}
