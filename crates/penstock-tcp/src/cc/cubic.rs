//! `cubic`: the window grows as a cubic function of the time since the last loss.
//!
//! Follows: linux v6.12 net/ipv4/tcp_cubic.c with HyStart by ACK trains and by delay (Ha & Rhee 2011); RFC 9438 with
//! Linux's constants beta 717/1024, C 41 × 10/1024. On the 2.6.35 profile `cubic/linux_2_6_35.rs` stands in.
//! Differs: the cube root is exact where Linux's (a table and one Newton step) is off by 0.2 % on average: K may
//! differ by some milliseconds.
//!
//! Time counts in 1/1024 s, windows in segments; all is integer.

mod linux_2_6_35;

use super::{AckSample, Algorithm, Build, CongestionControl, Window};
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "cubic",
    about: "cubic growth with hybrid slow start (RFC 9438)",
    from: Kernel::V2_6_35,
    parameters: &[],
    build,
};

/// Fixed point of `BETA` and of C.
pub(super) const SCALE: u32 = 1024;
/// What remains of the window after a loss, in 1024ths.
pub(super) const BETA: u32 = 717;
/// log2 of the units of time in a second.
pub(super) const HZ_SHIFT: u32 = 10;
/// 1024 C per round trip of 100 ms.
pub(super) const CUBE_RTT_SCALE: u64 = 410;
/// 2^40 / [`CUBE_RTT_SCALE`]: time cubed per segment.
pub(super) const CUBE_FACTOR: u64 = (1 << (10 + 3 * HZ_SHIFT)) / CUBE_RTT_SCALE;
/// Slope of the Reno-friendly estimate times 8.
pub(super) const BETA_SCALE: u32 = 8 * (SCALE + BETA) / 3 / (SCALE - BETA);

/// HyStart acts from this window on, segments.
pub(super) const HYSTART_LOW_WINDOW: u32 = 16;
/// ACKs closer than this belong to a train, microseconds.
const HYSTART_ACK_DELTA_US: u64 = 2_000;
/// Delay samples before a round is judged.
pub(super) const HYSTART_MIN_SAMPLES: u8 = 8;

fn build(b: &Build<'_>) -> Box<dyn CongestionControl> {
    if b.kernel < Kernel::V6_12 {
        Box::new(linux_2_6_35::Cubic::default())
    } else {
        Box::new(Cubic::default())
    }
}

/// The controller of one connection.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_time: u64,
    origin_point: u32,
    k: u32,
    delay_min_us: u32,
    epoch_start: Option<u64>,
    ack_cnt: u32,
    tcp_cwnd: u32,
    found: bool,
    sample_cnt: u8,
    round_start_us: u64,
    end_seq: u64,
    last_ack_us: u64,
    curr_rtt_us: u32,
}

/// The whole part of the cube root, bit by bit from the top.
pub fn cubic_root(a: u64) -> u32 {
    let mut left = a;
    let mut root: u64 = 0;
    for shift in (0..=63).rev().step_by(3) {
        root <<= 1;
        // (root + 1)^3 - root^3
        let step = 3 * root * (root + 1) + 1;
        if left >> shift >= step {
            left -= step << shift;
            root += 1;
        }
    }
    root as u32
}

impl Cubic {
    fn hystart_reset(&mut self, w: &Window) {
        self.round_start_us = w.now_us;
        self.last_ack_us = w.now_us;
        self.end_seq = w.snd_nxt;
        self.curr_rtt_us = u32::MAX;
        self.sample_cnt = 0;
    }

    //= linux v6.12 net/ipv4/tcp_cubic.c bictcp_update
    fn update(&mut self, w: &Window, acked: u32) {
        let cwnd = w.cwnd;
        self.ack_cnt += acked;
        if self.last_cwnd == cwnd && w.jiffies - self.last_time <= u64::from(w.hz / 32) {
            return;
        }
        if self.epoch_start.is_none() || w.jiffies != self.last_time {
            self.last_cwnd = cwnd;
            self.last_time = w.jiffies;
            let epoch = *self.epoch_start.get_or_insert_with(|| {
                self.ack_cnt = acked;
                self.tcp_cwnd = cwnd;
                if self.last_max_cwnd <= cwnd {
                    self.k = 0;
                    self.origin_point = cwnd;
                } else {
                    self.k = cubic_root(CUBE_FACTOR * u64::from(self.last_max_cwnd - cwnd));
                    self.origin_point = self.last_max_cwnd;
                }
                w.jiffies
            });
            let delay_min = (u64::from(self.delay_min_us) * u64::from(w.hz)).div_ceil(1_000_000);
            let t = ((w.jiffies - epoch + delay_min) << HZ_SHIFT) / u64::from(w.hz);
            let offs = t.abs_diff(u64::from(self.k));
            let delta = (u128::from(CUBE_RTT_SCALE) * u128::from(offs).pow(3)) >> (10 + 3 * HZ_SHIFT);
            let delta = delta.min(u128::from(u32::MAX / 4)) as u32;
            let target = if t < u64::from(self.k) {
                self.origin_point.saturating_sub(delta)
            } else {
                self.origin_point.saturating_add(delta)
            };
            self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
            // Before any loss grow by 5 % per round trip at least.
            if self.last_max_cwnd == 0 {
                self.cnt = self.cnt.min(20);
            }
        }
        // Never slower than Reno.
        let delta = (cwnd * BETA_SCALE) >> 3;
        while self.ack_cnt > delta {
            self.ack_cnt -= delta.max(1);
            self.tcp_cwnd += 1;
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
        // At most one segment for two acknowledged.
        self.cnt = self.cnt.max(2);
    }

    /// Leaves slow start when ACKs come in a train longer than half the least delay, or the delay grows.
    //= linux v6.12 net/ipv4/tcp_cubic.c hystart_update
    fn hystart_update(&mut self, w: &mut Window, delay_us: u32) {
        if w.snd_una > self.end_seq {
            self.hystart_reset(w);
        }
        if w.cwnd < HYSTART_LOW_WINDOW {
            return;
        }
        if w.now_us - self.last_ack_us <= HYSTART_ACK_DELTA_US {
            self.last_ack_us = w.now_us;
            let burst = (65_536 * 4 * 1_000_000 / w.pacing_rate_bytes_s().max(1)).min(1_000);
            // A queue that paces may have spread the train over a round trip itself.
            let half = u32::from(!w.paced_below);
            if w.now_us - self.round_start_us > (u64::from(self.delay_min_us) + burst) >> half {
                self.found = true;
                w.hystart.by_train(w.cwnd);
                w.ssthresh = w.cwnd;
            }
        }
        self.curr_rtt_us = self.curr_rtt_us.min(delay_us);
        if self.sample_cnt < HYSTART_MIN_SAMPLES {
            self.sample_cnt += 1;
        } else if self.curr_rtt_us > self.delay_min_us + (self.delay_min_us >> 3).clamp(4_000, 16_000) {
            self.found = true;
            w.hystart.by_delay(w.cwnd);
            w.ssthresh = w.cwnd;
        }
    }
}

impl CongestionControl for Cubic {
    fn init(&mut self, w: &mut Window) {
        *self = Cubic::default();
        self.hystart_reset(w);
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        self.epoch_start = None;
        // Fast convergence: give way while the window keeps falling.
        self.last_max_cwnd = if w.cwnd < self.last_max_cwnd {
            (u64::from(w.cwnd) * u64::from(SCALE + BETA) / u64::from(2 * SCALE)) as u32
        } else {
            w.cwnd
        };
        ((u64::from(w.cwnd) * u64::from(BETA) / u64::from(SCALE)) as u32).max(2)
    }
    fn cong_avoid(&mut self, w: &mut Window, mut acked: u32) {
        if !w.cwnd_limited {
            return;
        }
        if w.in_slow_start() {
            acked = w.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        self.update(w, acked);
        w.cong_avoid_ai(self.cnt, acked);
    }
    fn pkts_acked(&mut self, w: &mut Window, sample: &AckSample) {
        let Some(rtt_us) = sample.rtt_us else { return };
        // Not right after recovery.
        if self.epoch_start.is_some_and(|e| w.jiffies - e < u64::from(w.hz)) {
            return;
        }
        let delay = rtt_us.max(1);
        if self.delay_min_us == 0 || self.delay_min_us > delay {
            self.delay_min_us = delay;
        }
        if !self.found && w.in_slow_start() {
            self.hystart_update(w, delay);
        }
    }
    fn on_rto(&mut self, w: &Window) {
        self.init_after_loss(w);
    }
    fn on_tx_start(&mut self, w: &mut Window) {
        // The curve stands still while nothing is sent.
        let idle = w.jiffies - w.lsndtime;
        if let Some(e) = self.epoch_start
            && idle > 0
        {
            self.epoch_start = Some((e + idle).min(w.jiffies));
        }
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("last_max_cwnd", self.last_max_cwnd.into()),
            ("k_ms", u64::from(self.k) * 1_000 / 1_024),
            ("origin_point", self.origin_point.into()),
            ("delay_min_us", self.delay_min_us.into()),
            ("hystart_found", self.found.into()),
        ]
    }
}

impl Cubic {
    fn init_after_loss(&mut self, w: &Window) {
        *self = Cubic::default();
        self.hystart_reset(w);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_whole() {
        for root in [0u64, 1, 2, 3, 4, 10, 99, 1_000, 65_535, 1_000_000, 2_642_245] {
            assert_eq!(u64::from(cubic_root(root.pow(3))), root);
            assert_eq!(u64::from(cubic_root(root.pow(3) + 3 * root)), root);
            if root > 0 {
                assert_eq!(u64::from(cubic_root(root.pow(3) - 1)), root - 1);
            }
        }
        assert_eq!(cubic_root(u64::MAX), 2_642_245);
    }

    #[test]
    fn a_loss_leaves_seven_tenths() {
        let mut c = Cubic::default();
        let mut w = Window::new(250, false);
        w.cwnd = 100;
        c.init(&mut w);
        assert_eq!(c.ssthresh(&w), 70);
        assert_eq!(c.last_max_cwnd, 100);
        w.cwnd = 80;
        assert_eq!(c.ssthresh(&w), 56);
        assert_eq!(c.last_max_cwnd, 80 * 1_741 / 2_048, "fast convergence");
        w.cwnd = 2;
        assert_eq!(c.ssthresh(&w), 2);
    }

    #[test]
    fn the_window_follows_the_cubic() {
        // W(t) = C (t - K)^3 + W_max; K = cbrt(W_max (1 - beta) / C): for 100 segments cbrt(30 / 0.4) = 4.2 s.
        let mut c = Cubic::default();
        let mut w = Window::new(250, false);
        c.init(&mut w);
        w.cwnd = 100;
        w.ssthresh = c.ssthresh(&w);
        w.cwnd = w.ssthresh;
        w.cwnd_limited = true;
        let mut seen = Vec::new();
        for round in 0..=84u64 {
            w.now_us = round * 100_000;
            w.jiffies = round * 25;
            for _ in 0..w.cwnd {
                c.cong_avoid(&mut w, 1);
            }
            seen.push(w.cwnd);
        }
        let check = |second10: usize, range: std::ops::RangeInclusive<u32>| {
            assert!(range.contains(&seen[second10]), "after {second10}/10 s: {}", seen[second10]);
        };
        check(10, 85..=90);
        check(20, 94..=99);
        check(42, 98..=104);
        check(84, 124..=136);
    }
}
