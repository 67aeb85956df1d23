//! Floyd's random early detection, as the simulator ns-2 has it: gentle, adaptive, in packets or bytes.
//!
//! Follows: ns-2.35 `queue/red.cc` `REDQueue`; Floyd & Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993; Floyd,
//! Gummadi & Shenker, "Adaptive RED", 2001.
//! Differs: `q_weight` 0, -1 and -2 take the exponential from [`exp`], exact to some units of the last place.
//!
//! It reckons in doubles, as ns-2 does, so that its averages are ns-2's to the last bit: additions, multiplications and
//! divisions only, each rounded as IEEE 754 says, in the order in which ns-2 makes them (`docs/adr/0008`).

/// Parameters, under the names that ns-2's scripts have for them (without the underscore at the end).
#[derive(Clone, PartialEq, Debug)]
pub struct Params {
    /// Most packets queued. Default 50.
    pub limit: u32,
    /// Least average that is marked, packets; 0: five, or half of what drains in `targetdelay`, whichever is more. Default 0.
    pub thresh: f64,
    /// Average from which gentle RED steepens and other RED drops everything, packets; 0: three times `thresh`. Default 0.
    pub maxthresh: f64,
    /// Bytes of a packet, by which idle time and byte thresholds count. Default 500.
    pub mean_pktsize: u32,
    /// The same for idle time where `cautious` is 3. Default 100.
    pub idle_pktsize: u32,
    /// Weight of the newest length in the average; 0, -1, -2: chosen after the link's rate. Default -1.
    pub q_weight: f64,
    /// The queue and its thresholds count bytes. Default true.
    pub queue_in_bytes: bool,
    /// The probability grows with a packet's length. Default true.
    pub bytes: bool,
    /// Drops keep a distance: none within the first 1/p packets after one. Default true.
    pub wait: bool,
    /// Inverse of the probability at `maxthresh`. Default 10.
    pub linterm: f64,
    /// Marks instead of dropping, where the sender understands it. Default false.
    pub setbit: bool,
    /// Above `mark_p` it drops all the same. Default true.
    pub use_mark_p: bool,
    /// Default 0.1.
    pub mark_p: f64,
    /// From `maxthresh` to twice that the probability rises to 1 instead of jumping there. Default true.
    pub gentle: bool,
    /// The probability is adapted so that the average stays in the middle of the thresholds. Default false.
    pub adaptive: bool,
    /// Adaptive after Feng et al. instead: `alpha` divides, `beta` multiplies. Default false.
    pub feng_adaptive: bool,
    /// Step up. Default 0.01.
    pub alpha: f64,
    /// Factor down. Default 0.9.
    pub beta: f64,
    /// Least time between two adaptations, s. Default 0.5.
    pub interval: f64,
    /// Delay that the automatic thresholds aim at, s. Default 0.005.
    pub targetdelay: f64,
    /// Greatest probability that is adapted to. Default 0.5.
    pub top: f64,
    /// Least one; 0: chosen after the link's rate, at most 0.01. Default 0.
    pub bottom: f64,
    /// 1: nothing is dropped where the queue is well below the average; 2: less; 3: idle time counts in `idle_pktsize`. Default 0.
    pub cautious: u32,
    /// A full queue drops its first packet but one instead of the last. Default false.
    pub drop_front: bool,
    /// A full queue drops any packet. Default false.
    pub drop_rand: bool,
    /// A forced drop does not begin the count of packets anew. Default false.
    pub ns1_compat: bool,
    /// The link's rate, bit/s.
    pub bandwidth: f64,
    /// The link's delay, s.
    pub delay: f64,
}

impl Params {
    /// ns-2.35's defaults for a link.
    pub fn new(bandwidth: f64, delay: f64) -> Params {
        Params {
            limit: 50,
            thresh: 0.0,
            maxthresh: 0.0,
            mean_pktsize: 500,
            idle_pktsize: 100,
            q_weight: -1.0,
            queue_in_bytes: true,
            bytes: true,
            wait: true,
            linterm: 10.0,
            setbit: false,
            use_mark_p: true,
            mark_p: 0.1,
            gentle: true,
            adaptive: false,
            feng_adaptive: false,
            alpha: 0.01,
            beta: 0.9,
            interval: 0.5,
            targetdelay: 0.005,
            top: 0.5,
            bottom: 0.0,
            cautious: 0,
            drop_front: false,
            drop_rand: false,
            ns1_compat: false,
            bandwidth,
            delay,
        }
    }
    /// Packets of `mean_pktsize` that the link carries in a second.
    pub fn ptc(&self) -> f64 {
        self.bandwidth / (8.0 * f64::from(self.mean_pktsize))
    }
    /// `initialize_params`: fills in what is left to RED.
    fn complete(&mut self) {
        let ptc = self.ptc();
        if self.q_weight == 0.0 {
            self.q_weight = 1.0 - exp(-1.0 / ptc);
        } else if self.q_weight == -1.0 {
            let rtt = (3.0 * (self.delay + 1.0 / ptc)).max(0.1);
            self.q_weight = 1.0 - exp(-1.0 / (10.0 * rtt * ptc));
        } else if self.q_weight == -2.0 {
            self.q_weight = 1.0 - exp(-10.0 / ptc);
        }
        if self.thresh == 0.0 {
            self.thresh = (self.targetdelay * ptc / 2.0).max(5.0);
        }
        if self.maxthresh == 0.0 {
            self.maxthresh = 3.0 * self.thresh;
        }
        if self.bottom == 0.0 {
            self.bottom = (80_000.0 / self.bandwidth).min(0.01);
        }
    }
}

/// What to do with the packet that comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Queue it.
    Pass,
    /// Mark it if it may be (then queue it), drop it otherwise.
    Mark,
    /// Drop it.
    Drop,
    /// Queue it and drop another, or itself.
    Forced,
}

/// The state of Feng's adaptation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Status {
    Above,
    Below,
    Between,
}

/// A RED at work.
#[derive(Clone, Debug)]
pub struct Floyd {
    // Parameters
    p: Params,
    th_min: f64,
    th_max: f64,
    ptc: f64,
    v_a: f64,
    v_b: f64,
    v_c: f64,
    v_d: f64,
    // Variables
    v_ave: f64,
    v_prob1: f64,
    cur_max_p: f64,
    lastset: f64,
    count: u32,
    count_bytes: u64,
    /// The average was over the lower threshold at the packet before.
    old: bool,
    /// Since when the queue is empty and the link free, s.
    idle: Option<f64>,
    status: Status,
}

impl Floyd {
    /// An idle one at time 0.
    pub fn new(mut p: Params) -> Floyd {
        p.complete();
        let unit = if p.queue_in_bytes { f64::from(p.mean_pktsize) } else { 1.0 };
        let (th_min, th_max) = (p.thresh * unit, p.maxthresh * unit);
        let th_diff = if th_max - th_min == 0.0 { 1.0 } else { th_max - th_min };
        let cur_max_p = 1.0 / p.linterm;
        Floyd {
            th_min,
            th_max,
            ptc: p.ptc(),
            v_a: 1.0 / th_diff,
            v_b: -th_min / th_diff,
            v_c: if p.gentle { (1.0 - cur_max_p) / th_max } else { 0.0 },
            v_d: if p.gentle { 2.0 * cur_max_p - 1.0 } else { 0.0 },
            v_ave: 0.0,
            v_prob1: 0.0,
            cur_max_p,
            lastset: 0.0,
            count: 0,
            count_bytes: 0,
            old: false,
            idle: Some(0.0),
            status: Status::Above,
            p,
        }
    }
    /// Parameters, those chosen by itself filled in.
    pub fn params(&self) -> &Params {
        &self.p
    }
    /// The average queue, in bytes or packets.
    pub fn average(&self) -> f64 {
        self.v_ave
    }
    /// The lower threshold of the average, in bytes or packets.
    pub fn least(&self) -> f64 {
        self.th_min
    }
    /// The probability at `maxthresh`, as adapted.
    pub fn max_p(&self) -> f64 {
        self.cur_max_p
    }
    /// The probability that was last decided by, before the distance of drops enters.
    pub fn last_probability(&self) -> f64 {
        self.v_prob1
    }
    /// Most that may be queued, in bytes or packets.
    pub fn limit(&self) -> u32 {
        if self.p.queue_in_bytes { self.p.limit * self.p.mean_pktsize } else { self.p.limit }
    }
    /// The link asked for a packet and there was none.
    pub fn start_idle(&mut self, now: f64) {
        self.idle = Some(now);
    }
    /// The link took a packet.
    pub fn end_idle(&mut self) {
        self.idle = None;
    }

    /// `calculate_p_new`: the probability at an average, as the very first decision has it. What figures are drawn from.
    pub fn probability(&self, average: f64) -> f64 {
        let p = if self.p.gentle && average >= self.th_max {
            self.v_c * average + self.v_d
        } else if average >= self.th_max {
            1.0
        } else {
            (self.v_a * average + self.v_b) * self.cur_max_p
        };
        if p > 1.0 { 1.0 } else { p }
    }
    /// `modify_p`: spreads the drops evenly instead of geometrically.
    fn spread(&self, mut p: f64, size: u32) -> f64 {
        let count = if self.p.bytes {
            (self.count_bytes / u64::from(self.p.mean_pktsize)) as f64
        } else {
            f64::from(self.count)
        };
        if self.p.wait {
            if count * p < 1.0 {
                p = 0.0;
            } else if count * p < 2.0 {
                p /= 2.0 - count * p;
            } else {
                p = 1.0;
            }
        } else if count * p < 1.0 {
            p /= 1.0 - count * p;
        } else {
            p = 1.0;
        }
        if self.p.bytes && p < 1.0 {
            p = (p * f64::from(size)) / f64::from(self.p.mean_pktsize);
        }
        if p > 1.0 { 1.0 } else { p }
    }

    /// A packet of `size` bytes comes and finds `queued` (bytes or packets). `dice` gives a number from 0 to 1 when asked.
    pub fn arrive(&mut self, queued: u32, size: u32, now: f64, dice: &mut dyn FnMut() -> f64) -> Action {
        let mut m: i64 = 0;
        if let Some(since) = self.idle.take() {
            let ptc = match self.p.cautious {
                3 => self.ptc * f64::from(self.p.mean_pktsize) / f64::from(self.p.idle_pktsize),
                _ => self.ptc,
            };
            m = (ptc * (now - since)) as i64;
        }
        self.estimate(queued, m + 1, now);
        self.count = self.count.wrapping_add(1);
        self.count_bytes += u64::from(size);
        let mut action = Action::Pass;
        if self.v_ave >= self.th_min && queued > 1 {
            let most = if self.p.gentle { 2.0 * self.th_max } else { self.th_max };
            if !self.p.use_mark_p && self.v_ave >= most {
                action = Action::Forced;
            } else if !self.old {
                (self.count, self.count_bytes, self.old) = (1, u64::from(size), true);
            } else {
                action = self.early(queued, size, dice);
            }
        } else {
            self.old = false;
        }
        if queued >= self.limit() { Action::Forced } else { action }
    }
    /// `drop_early`.
    fn early(&mut self, queued: u32, size: u32, dice: &mut dyn FnMut() -> f64) -> Action {
        self.v_prob1 = self.probability(self.v_ave);
        let p = self.spread(self.v_prob1, size);
        // The share of the average that 50 ms without packets would leave.
        let below = |floyd: &Floyd| {
            let packets = (floyd.ptc * 0.05) as u32;
            f64::from(queued) / (power(1.0 - floyd.p.q_weight, packets) * floyd.v_ave)
        };
        if self.p.cautious == 1 && below(self) < 1.0 {
            return Action::Pass;
        }
        let mut u = dice();
        if self.p.cautious == 2 && below(self) < 1.0 {
            u *= 1.0 / below(self);
        }
        if u > p {
            return Action::Pass;
        }
        (self.count, self.count_bytes) = (0, 0);
        let may_mark = self.p.setbit && (!self.p.use_mark_p || self.v_prob1 <= self.p.mark_p);
        if may_mark { Action::Mark } else { Action::Drop }
    }
    /// A forced drop was made.
    pub fn forced(&mut self) {
        if !self.p.ns1_compat {
            (self.count, self.count_bytes) = (0, 0);
        }
    }
    /// `estimator`: the average after a packet and the `m - 1` that would have come in the idle time before it.
    fn estimate(&mut self, queued: u32, m: i64, now: f64) {
        let keep = 1.0 - self.p.q_weight;
        let mut average = self.v_ave;
        for _ in 1..m {
            average *= keep;
            // Nothing is left: the rest of an hour changes nothing.
            if average == 0.0 {
                break;
            }
        }
        average *= keep;
        average += self.p.q_weight * f64::from(queued);
        if self.p.adaptive {
            if self.p.feng_adaptive {
                self.adapt_feng(average);
            } else if now > self.lastset + self.p.interval {
                self.adapt(average, now);
            }
        }
        self.v_ave = average;
    }
    /// `updateMaxP`.
    fn adapt(&mut self, average: f64, now: f64) {
        let part = 0.4 * (self.th_max - self.th_min);
        if average < self.th_min + part && self.cur_max_p > self.p.bottom {
            self.cur_max_p *= self.p.beta;
            self.lastset = now;
        } else if average > self.th_max - part && self.p.top > self.cur_max_p {
            let quarter = 0.25 * self.cur_max_p;
            self.cur_max_p += if self.p.alpha > quarter { quarter } else { self.p.alpha };
            self.lastset = now;
        }
    }
    /// `updateMaxPFeng`.
    fn adapt_feng(&mut self, average: f64) {
        if self.th_min < average && average < self.th_max {
            self.status = Status::Between;
        }
        if average < self.th_min && self.status != Status::Below {
            self.status = Status::Below;
            self.cur_max_p /= self.p.alpha;
        }
        if average > self.th_max && self.status != Status::Above {
            self.status = Status::Above;
            self.cur_max_p *= self.p.beta;
        }
    }
}

/// `base` to a whole power, by multiplication.
fn power(base: f64, times: u32) -> f64 {
    (0..times).fold(1.0, |product, _| product * base)
}

/// The exponential of a number of 0 or less, by its series after halving: the same on every platform.
fn exp(x: f64) -> f64 {
    let mut halvings = 0;
    let mut y = x;
    while y < -0.5 && halvings < 64 {
        y /= 2.0;
        halvings += 1;
    }
    let mut sum = 1.0;
    for n in (1..=24u32).rev() {
        sum = 1.0 + y / f64::from(n) * sum;
    }
    for _ in 0..halvings {
        sum *= sum;
    }
    sum
}

/// A number from 0 to 1 of 53 random bits, for [`Floyd::arrive`].
pub fn unit(random: u64) -> f64 {
    (random >> 11) as f64 / (1u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packets(gentle: bool) -> Params {
        Params {
            thresh: 18.0,
            maxthresh: 54.0,
            limit: 72,
            queue_in_bytes: false,
            bytes: false,
            q_weight: 0.002,
            mean_pktsize: 1500,
            gentle,
            ..Params::new(1.5e6, 0.015)
        }
    }

    #[test]
    fn the_probability_has_the_papers_shape() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        let gentle = Floyd::new(packets(true));
        for (average, p) in [(18.0, 0.0), (36.0, 0.05), (54.0, 0.1), (81.0, 0.55), (108.0, 1.0), (200.0, 1.0)]
        {
            near(gentle.probability(average), p);
        }
        let hard = Floyd::new(packets(false));
        near(hard.probability(53.999_999), 0.1 - 1e-6 / 360.0);
        near(hard.probability(54.0), 1.0);
    }

    #[test]
    fn what_is_left_to_it_follows_the_link() {
        // ns-2: 1.5 Mbit/s, 500 bytes, 15 ms.
        let red = Floyd::new(Params::new(1.5e6, 0.015));
        let p = red.params();
        assert_eq!((p.thresh, p.maxthresh, p.bottom), (5.0, 15.0, 0.01));
        assert!((p.q_weight - (1.0 - (-1.0f64 / 375.0).exp())).abs() < 1e-15, "{}", p.q_weight);
        let fast = Floyd::new(Params::new(1e8, 0.001));
        assert_eq!((fast.params().thresh, fast.params().bottom), (62.5, 0.0008));
    }

    #[test]
    fn idle_time_counts_as_small_packets() {
        let mut red = Floyd::new(packets(true));
        let mut dice = || 1.0;
        for _ in 0..2000 {
            red.end_idle();
            red.arrive(40, 1500, 1.0, &mut dice);
        }
        let before = red.average();
        red.start_idle(1.0);
        // 125 packets a second of 1500 bytes: 1.004 s are 125 of them, and one that finds nothing.
        red.arrive(0, 1500, 2.004, &mut dice);
        let mut expected = before;
        for _ in 0..126 {
            expected *= 1.0 - 0.002;
        }
        assert_eq!(red.average(), expected);
    }

    #[test]
    fn adaptive_red_keeps_the_average_in_the_middle() {
        let mut red = Floyd::new(Params { adaptive: true, ..packets(true) });
        let mut dice = || 1.0;
        let mut at = |red: &mut Floyd, queued, seconds: u32| {
            for i in 0..seconds * 100 {
                red.arrive(queued, 1500, f64::from(i) / 100.0 + red.lastset, &mut dice);
            }
        };
        at(&mut red, 70, 60);
        let high = red.max_p();
        assert!(high > 0.3, "{high}");
        at(&mut red, 1, 60);
        assert!(red.max_p() < 0.011, "{}", red.max_p());
    }

    #[test]
    fn exponentials_are_right() {
        for x in [0.0, -1e-9, -0.01, -0.4, -1.0, -10.0, -700.0] {
            let (got, want) = (exp(x), f64::exp(x));
            assert!((got - want).abs() <= want * 1e-13, "{x}: {got} {want}");
        }
    }
}
