//! Parameters and counters as tc gives and shows them: `fq_change`, `fq_dump`, `fq_dump_stats`.

use super::{BANDS, Fq, NEVER, jiffies_at};
use crate::jiffies;
use penstock_model::{KernelError, Options, Time};

/// `FQ_MIN_WEIGHT`.
const WEIGHT_MIN: i64 = 16384;
/// Names of the three weights in the option tables.
const WEIGHTS: [&str; BANDS] = ["weight0", "weight1", "weight2"];

impl Fq {
    /// `fq_load_priomap`.
    fn load_priomap(&mut self, bands: Option<u32>, map: &[u8]) -> Result<(), KernelError> {
        if bands != Some(BANDS as u32) {
            return Err(KernelError::new(KernelError::EINVAL, "sch_fq: FQ only supports 3 bands"));
        }
        if let Some((i, band)) = map.iter().enumerate().find(|&(_, &band)| usize::from(band) >= BANDS) {
            let why = format!("sch_fq: FQ priomap field {i} maps to a too high band {band}");
            return Err(KernelError::new(KernelError::EINVAL, why));
        }
        for (own, &band) in self.priomap.iter_mut().zip(map) {
            *own = band;
        }
        self.priomap_set = true;
        Ok(())
    }
    /// `fq_load_weights`.
    fn load_weights(&mut self, o: &Options) -> Result<(), KernelError> {
        let weights = WEIGHTS.map(|name| o.i64(name).unwrap_or(0));
        if let Some(weight) = weights.iter().find(|&&weight| weight < WEIGHT_MIN) {
            let why = format!("sch_fq: Weight {weight} less that minimum allowed {WEIGHT_MIN}");
            return Err(KernelError::new(KernelError::EINVAL, why));
        }
        for (band, weight) in self.bands.iter_mut().zip(weights) {
            band.quantum = weight as i32;
        }
        self.weights_set = true;
        Ok(())
    }
    /// What `fq_change` sets.
    pub(super) fn set(&mut self, o: &Options, now: Time) -> Result<(), KernelError> {
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
        //= linux v7.2 net/sched/sch_fq.c fq_change: no device here lets its card wait (`max_pacing_offload_horizon` is 0).
        if o.u32("offload_horizon").is_some_and(|us| us > 0) {
            result = Err(KernelError::new(KernelError::EINVAL, "sch_fq: invalid offload_horizon"));
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
            let forgotten = self.flows.resize(buckets, jiffies_at(now, self.hz), self.hz);
            self.forget(forgotten);
        }
        result
    }

    /// `fq_dump`.
    pub(super) fn options(&self) -> Options {
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
        if self.since_7 {
            o = o.with("offload_horizon", 0u32);
        }
        if self.priomap_set || self.since_7 {
            o = o.with("bands", BANDS as u32).with("priomap", self.priomap.to_vec());
        }
        if self.weights_set || self.since_7 {
            let weights = WEIGHTS.into_iter().zip(&self.bands);
            let nested =
                weights.fold(Options::new(), |o, (name, band)| o.with(name, i64::from(band.quantum)));
            o = o.with("weights", nested);
        }
        o
    }
    /// `fq_dump_stats`.
    pub(super) fn counters(&self, now: Time) -> Options {
        let c = &self.counts;
        let delay = match self.time_next_delayed_flow {
            NEVER => 0,
            next => {
                (next.wrapping_add(self.timer_slack.into()).wrapping_sub(now.as_ns() as u64) as i64).max(0)
            }
        };
        let rows = [
            ("flows", self.known.into()),
            ("inactive", self.inactive.into()),
            ("throttled_flows", self.throttled.into()),
            ("next_packet_delay", delay as u64),
            ("gc", c.gc),
            ("highprio", 0),
            ("fastpath", c.fastpath),
            ("retrans", 0),
            ("throttled", c.throttled),
            ("latency", c.unthrottle_latency_ns.min(u32::MAX.into())),
            ("ce_mark", c.ce_mark),
            ("flows_plimit", c.flows_plimit),
            ("pkts_too_long", c.pkts_too_long),
            ("alloc_errors", 0),
            ("horizon_drops", c.horizon_drops),
            ("horizon_caps", c.horizon_caps),
            ("band0_pkts", self.bands[0].packets.into()),
            ("band1_pkts", self.bands[1].packets.into()),
            ("band2_pkts", self.bands[2].packets.into()),
            ("band0_drops", self.bands[0].drops),
            ("band1_drops", self.bands[1].drops),
            ("band2_drops", self.bands[2].drops),
        ];
        rows.into_iter().fold(Options::new(), |o, (name, value)| o.with(name, value))
    }
}
