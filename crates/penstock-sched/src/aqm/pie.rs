//! PIE: proportional integral controller, enhanced.
//!
//! Follows: linux v6.12 include/net/pie.h; RFC 8033.

use crate::jiffies;
use penstock_model::psched::TICK_NS;
use penstock_model::{Options, Rng, Time};

/// Parameters: `struct pie_params`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    hz: u32,
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
    pub fn new(hz: u32, limit: u32) -> Params {
        Params {
            hz,
            target: 15_000_000 / TICK_NS,
            tupdate: jiffies::from_us(15_000, hz),
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
            self.tupdate = jiffies::from_us(tupdate, self.hz);
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
            .with("tupdate", jiffies::to_us(self.tupdate, self.hz))
            .with("alpha", self.alpha)
            .with("beta", self.beta)
            .with("ecn", u32::from(self.ecn))
            .with("bytemode", u32::from(self.bytemode))
            .with("dq_rate_estimator", u32::from(self.dq_rate_estimator))
    }
}

/// The queue's length that a measurement of its drain needs, bytes (`QUEUE_THRESHOLD`).
const QUEUE_THRESHOLD: u64 = 16_384;
/// `MAX_PROB`: probability 1.
const MAX_PROB: u64 = u64::MAX >> 8;
/// `PIE_SCALE`.
const SCALE: u32 = 8;
/// `PSCHED_TICKS_PER_SEC`.
const TICKS_PER_S: u64 = 1_000_000_000 / TICK_NS;

/// A span in ticks of 64 ns.
const fn ticks(ms: u64) -> u64 {
    ms * 1_000_000 / TICK_NS
}
/// `psched_get_time`.
pub fn moment(now: Time) -> u64 {
    now.as_ns() as u64 / TICK_NS
}

/// Variables: `struct pie_vars`. Times in ticks of 64 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vars {
    /// The queue's delay.
    pub qdelay: u64,
    qdelay_old: u64,
    /// For so long yet bursts pass untouched.
    burst_time: u64,
    dq_tstamp: Option<u64>,
    /// Probability of a drop, of 2^56.
    pub prob: u64,
    accu_prob: u64,
    dq_count: Option<u64>,
    /// Bytes a tick, scaled by 2^8.
    avg_dq_rate: u32,
}

impl Default for Vars {
    fn default() -> Vars {
        let (qdelay, qdelay_old, prob) = (0, 0, 0);
        let mut vars = Vars {
            qdelay,
            qdelay_old,
            burst_time: 0,
            dq_tstamp: None,
            prob,
            accu_prob: 0,
            dq_count: None,
            avg_dq_rate: 0,
        };
        vars.restart();
        vars
    }
}

impl Vars {
    /// `pie_vars_init`: delay and probability stay.
    pub fn restart(&mut self) {
        self.burst_time = ticks(150);
        (self.dq_tstamp, self.accu_prob, self.dq_count, self.avg_dq_rate) = (None, 0, None, 0);
    }
    /// A packet was dropped: the sum of the probabilities begins anew.
    pub fn dropped(&mut self) {
        self.accu_prob = 0;
    }
    /// `pie_drop_early`: whether a packet of `size` bytes is to be marked or dropped that meets `backlog`. `mtu` with the link header.
    //= RFC 8033 section 4.1
    pub fn drop_early(&mut self, p: &Params, mtu: u32, backlog: u32, size: u32, rng: &mut Rng) -> bool {
        let mtu = mtu.clamp(1, 1 << 20);
        let calm = self.qdelay < p.target / 2 && self.prob < MAX_PROB / 5;
        if self.burst_time > 0 || calm || backlog < 2 * mtu {
            return false;
        }
        let local = match p.bytemode && size <= mtu {
            true => u64::from(size).wrapping_mul(self.prob / u64::from(mtu)),
            false => self.prob,
        };
        self.accu_prob = if local == 0 { 0 } else { self.accu_prob.wrapping_add(local) };
        if self.accu_prob < MAX_PROB / 100 * 85 {
            return false;
        }
        if self.accu_prob >= MAX_PROB / 2 * 17 {
            return true;
        }
        if rng.next_u64() >> 8 < local {
            self.accu_prob = 0;
            return true;
        }
        false
    }
    /// Whether the probability is small enough to mark instead of dropping.
    pub fn may_mark(&self) -> bool {
        self.prob <= MAX_PROB / 10
    }
    /// Whether the probability is at most so many percent.
    pub fn is_below(&self, percent: u32) -> bool {
        self.prob <= (MAX_PROB / 100).wrapping_mul(percent.into())
    }
    /// `pie_process_dequeue`: a packet of `len` bytes that came at `enqueued` leaves `backlog` behind.
    pub fn dequeued(&mut self, p: &Params, len: u32, enqueued: Time, backlog: u32, at: Time) {
        let now = moment(at);
        let dtime;
        if !p.dq_rate_estimator {
            self.qdelay = if backlog > 0 { now.wrapping_sub(moment(enqueued)) } else { 0 };
            dtime = self.dq_tstamp.map_or(0, |before| now.wrapping_sub(before) as u32);
            self.dq_tstamp = Some(now);
            if dtime == 0 {
                return;
            }
        } else {
            let long = u64::from(backlog) >= QUEUE_THRESHOLD;
            if long && self.dq_count.is_none() {
                (self.dq_tstamp, self.dq_count) = (Some(now), Some(0));
            }
            let Some(count) = &mut self.dq_count else { return };
            *count += u64::from(len);
            if *count < QUEUE_THRESHOLD {
                return;
            }
            dtime = now.wrapping_sub(self.dq_tstamp.unwrap_or(u64::MAX)) as u32;
            if dtime == 0 {
                return;
            }
            let rate = ((*count << SCALE) as u32) / dtime;
            let before = self.avg_dq_rate;
            self.avg_dq_rate = if before == 0 { rate } else { before - (before >> 3) + (rate >> 3) };
            match long {
                false => self.dq_count = None,
                true => (self.dq_count, self.dq_tstamp) = (Some(0), Some(now)),
            }
        }
        self.burst_time = self.burst_time.saturating_sub(u64::from(dtime));
    }
    /// `pie_calculate_probability`, as the timer does it.
    //= RFC 8033 section 4.2
    pub fn update(&mut self, p: &Params, backlog: u32) {
        let (qdelay, qdelay_old) = if p.dq_rate_estimator {
            let old = self.qdelay;
            self.qdelay_old = old;
            let scaled = backlog.wrapping_shl(SCALE);
            (scaled.checked_div(self.avg_dq_rate).map_or(0, u64::from), old)
        } else {
            (self.qdelay, self.qdelay_old)
        };
        let mut update = qdelay != 0 || backlog == 0;
        let scaled = |weight: u32| (u64::from(weight).wrapping_mul(MAX_PROB / TICKS_PER_S)) >> 4;
        let (mut alpha, mut beta) = (scaled(p.alpha), scaled(p.beta));
        if self.prob < MAX_PROB / 10 {
            (alpha, beta) = (alpha >> 1, beta >> 1);
            let mut power = 100u64;
            while self.prob < MAX_PROB / power && power <= 1_000_000 {
                (alpha, beta, power) = (alpha >> 2, beta >> 2, power * 10);
            }
        }
        let away = alpha.wrapping_mul(qdelay.wrapping_sub(p.target));
        let growth = beta.wrapping_mul(qdelay.wrapping_sub(qdelay_old));
        let mut delta = away.wrapping_add(growth) as i64;
        let old = self.prob;
        if delta > (MAX_PROB / 50) as i64 && self.prob >= MAX_PROB / 10 {
            delta = (MAX_PROB / 100 * 2) as i64;
        }
        if qdelay > ticks(250) {
            delta = delta.wrapping_add((MAX_PROB / 50) as i64);
        }
        self.prob = self.prob.wrapping_add(delta as u64);
        if delta > 0 {
            if self.prob < old {
                (self.prob, update) = (MAX_PROB, false);
            }
        } else if self.prob > old {
            self.prob = 0;
        }
        if qdelay == 0 && qdelay_old == 0 && update {
            self.prob -= self.prob / 64;
        }
        self.qdelay = qdelay;
        let measured = !p.dq_rate_estimator || self.avg_dq_rate > 0;
        if self.qdelay < p.target / 2 && self.qdelay_old < p.target / 2 && self.prob == 0 && measured {
            self.restart();
        }
        if !p.dq_rate_estimator {
            self.qdelay_old = qdelay;
        }
    }
    /// Adds what the kinds show of it: `struct tc_pie_xstats`, without the counters.
    pub fn xstats(&self, p: &Params, o: Options) -> Options {
        let delay_us = (self.qdelay.wrapping_mul(TICK_NS) as u32) / 1000;
        let rate = match p.dq_rate_estimator {
            true => (u64::from(self.avg_dq_rate).wrapping_mul(TICKS_PER_S) >> SCALE) as u32,
            false => 0,
        };
        o.with("prob", self.prob << 8)
            .with("delay", delay_us)
            .with("avg_dq_rate", rate)
            .with("dq_rate_estimating", u32::from(p.dq_rate_estimator))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue of constant delay for so many updates; the probability in millionths.
    fn hold(v: &mut Vars, p: &Params, delay_ms: u64, updates: u32) -> u64 {
        for _ in 0..updates {
            v.qdelay = ticks(delay_ms);
            v.update(p, 15_000);
        }
        (u128::from(v.prob) * 1_000_000 / u128::from(MAX_PROB)) as u64
    }

    #[test]
    fn the_probability_follows_the_delay() {
        let p = Params::new(250, 1000);
        let mut v = Vars::default();
        assert_eq!(hold(&mut v, &p, 10, 50), 0);
        // 15 ms over the target: alpha of 1/8 s, scaled down where the probability is small: slow at first, then steady.
        let first = hold(&mut v, &p, 30, 10);
        let later = hold(&mut v, &p, 30, 400);
        assert!(first < 1000 && later > 20_000, "{first} {later}");
        // 300 ms: two percent more an update, and two besides for so long a delay.
        let before = hold(&mut v, &p, 300, 1);
        assert!((39_000..41_000).contains(&(hold(&mut v, &p, 300, 1) - before)));
        let high = hold(&mut v, &p, 300, 1000);
        assert!(high >= 999_000, "{high}");
        // Empty: 1/64 less an update, besides.
        let before = v.prob;
        (v.qdelay_old, v.qdelay) = (0, 0);
        v.update(&p, 0);
        assert!(v.prob < before - before / 65);
    }

    #[test]
    fn bursts_pass_and_then_drops_keep_their_share() {
        let p = Params::new(250, 1000);
        let mut rng = Rng::named(1, "pie");
        let mut v = Vars { prob: MAX_PROB / 10, qdelay: ticks(20), ..Vars::default() };
        let mut drops = |v: &mut Vars, backlog: u32| {
            (0..10_000).filter(|_| v.drop_early(&p, 1514, backlog, 1514, &mut rng)).count()
        };
        assert_eq!(drops(&mut v, 100_000), 0);
        v.burst_time = 0;
        assert_eq!(drops(&mut v, 3000), 0);
        // One in ten, but never two within 8: fewer than a tenth, more than a twentieth.
        let n = drops(&mut v, 100_000);
        assert!((450..900).contains(&n), "{n}");
        assert_eq!((v.may_mark(), Vars { prob: MAX_PROB / 9, ..v }.may_mark()), (true, false));
    }

    #[test]
    fn the_drain_is_measured_over_16_kb() {
        let mut p = Params::new(250, 1000);
        p.dq_rate_estimator = true;
        let mut v = Vars::default();
        // 1000 bytes a millisecond.
        for i in 0..40 {
            v.dequeued(&p, 1000, Time::ZERO, 20_000, Time::from_ns(i * 1_000_000));
        }
        let rate = v.xstats(&p, Options::new()).u32("avg_dq_rate").unwrap();
        assert!((1_000_000..1_140_000).contains(&rate), "{rate}");
        v.update(&p, 20_000);
        let delay = v.xstats(&p, Options::new()).u32("delay").unwrap();
        assert!((17_000..20_500).contains(&delay), "{delay}");
    }

    #[test]
    fn the_target_is_shown_from_32_bits_of_nanoseconds() {
        let mut p = Params::new(250, 1000);
        let shown = |p: &Params| p.dump(Options::new()).u32("target");
        assert_eq!(shown(&p), Some(15_000));
        p.change(&Options::new().with("target", 5_000_000u32));
        // 5 s are 2^32 ns and 705032704 ns.
        assert_eq!(shown(&p), Some(705_032));
        assert_eq!(p.dump(Options::new()).u32("tupdate"), Some(16_000));
    }
}
