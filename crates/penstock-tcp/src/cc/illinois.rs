//! `illinois`: how much the window grows and falls follows from the queueing delay.
//!
//! Follows: linux v6.12 net/ipv4/tcp_illinois.c; Liu, Başar, Srikant 2006.
//! Differs: none known.

use super::{AckSample, Algorithm, Build, CongestionControl, Parameter, Window};
use crate::info::CaState;
use penstock_model::Kernel;
use penstock_model::sockets::ControlDiag;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "illinois",
    about: "growth and fall follow from the queueing delay (Liu, Başar, Srikant)",
    from: Kernel::V6_12,
    parameters: &[Parameter::read_only("theta", 5), Parameter::read_only("win_thresh", 15)],
    build,
};

// In 128ths.
const ALPHA_SHIFT: u32 = 7;
const ALPHA_BASE: u32 = 1 << ALPHA_SHIFT;
const ALPHA_MIN: u32 = 3 * ALPHA_BASE / 10;
const ALPHA_MAX: u32 = 10 * ALPHA_BASE;
/// Longer round trips count as this, microseconds.
const RTT_MAX: u32 = u32::MAX / ALPHA_MAX;
// In 64ths.
const BETA_SHIFT: u32 = 6;
const BETA_MIN: u32 = (1 << BETA_SHIFT) / 8;
const BETA_MAX: u32 = (1 << BETA_SHIFT) / 2;

fn build(b: &Build<'_>) -> Box<dyn CongestionControl> {
    let of = |name| b.parameters.of(&ALGORITHM, name);
    let (theta, win_thresh) = (of("theta") as i32, of("win_thresh") as u32);
    Box::new(Illinois { theta, win_thresh, ..Illinois::default() })
}

/// The controller of one connection; round trips in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Illinois {
    // Parameters
    /// Round trips with a short queue before it grows at its fastest again.
    theta: i32,
    /// Below this window it is Reno.
    win_thresh: u32,
    // Variables
    sum_rtt: u64,
    cnt_rtt: u16,
    base_rtt: u32,
    max_rtt: u32,
    /// The end of the round trip at hand.
    end_seq: u64,
    /// Segments that a round trip adds, 128ths; what a loss takes, 64ths.
    alpha: u32,
    beta: u32,
    acked: u16,
    rtt_above: bool,
    rtt_low: u8,
}

impl Illinois {
    fn rtt_reset(&mut self, w: &Window) {
        (self.end_seq, self.cnt_rtt, self.sum_rtt) = (w.snd_nxt, 0, 0);
    }
    //= linux v6.12 net/ipv4/tcp_illinois.c alpha
    fn alpha(&mut self, da: u32, dm: u32) -> u32 {
        let d1 = dm / 100;
        if da <= d1 {
            if !self.rtt_above {
                return ALPHA_MAX;
            }
            self.rtt_low = self.rtt_low.wrapping_add(1);
            if i32::from(self.rtt_low) < self.theta {
                return self.alpha;
            }
            (self.rtt_low, self.rtt_above) = (0, false);
            return ALPHA_MAX;
        }
        self.rtt_above = true;
        let (dm, da) = (dm - d1, da - d1);
        dm.wrapping_mul(ALPHA_MAX) / dm.wrapping_add(da.wrapping_mul(ALPHA_MAX - ALPHA_MIN) / ALPHA_MIN)
    }
    //= linux v6.12 net/ipv4/tcp_illinois.c beta
    fn beta(da: u32, dm: u32) -> u32 {
        let d2 = dm / 10;
        if da <= d2 {
            return BETA_MIN;
        }
        let d3 = dm.wrapping_mul(8) / 10;
        if da >= d3 || d3 <= d2 {
            return BETA_MAX;
        }
        let sum = BETA_MIN.wrapping_mul(d3).wrapping_sub(BETA_MAX.wrapping_mul(d2));
        sum.wrapping_add((BETA_MAX - BETA_MIN).wrapping_mul(da)) / (d3 - d2)
    }
    //= linux v6.12 net/ipv4/tcp_illinois.c update_params
    fn update(&mut self, w: &Window) {
        if w.cwnd < self.win_thresh {
            (self.alpha, self.beta) = (ALPHA_BASE, BETA_MAX);
        } else if self.cnt_rtt > 0 {
            let longest = self.max_rtt.wrapping_sub(self.base_rtt);
            let mean = ((self.sum_rtt / u64::from(self.cnt_rtt)) as u32).wrapping_sub(self.base_rtt);
            self.alpha = self.alpha(mean, longest);
            self.beta = Illinois::beta(mean, longest);
        }
        self.rtt_reset(w);
    }
}

impl CongestionControl for Illinois {
    fn init(&mut self, w: &mut Window) {
        let (theta, win_thresh) = (self.theta, self.win_thresh);
        *self = Illinois { theta, win_thresh, alpha: ALPHA_MAX, beta: BETA_MAX, ..Illinois::default() };
        self.base_rtt = 0x7fff_ffff;
        self.rtt_reset(w);
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        w.cwnd.wrapping_sub(w.cwnd.wrapping_mul(self.beta) >> BETA_SHIFT).max(2)
    }
    //= linux v6.12 net/ipv4/tcp_illinois.c tcp_illinois_cong_avoid
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        if w.snd_una > self.end_seq {
            self.update(w);
        }
        if !w.cwnd_limited {
            return;
        }
        if w.in_slow_start() {
            w.slow_start(acked);
            return;
        }
        w.cwnd_cnt = w.cwnd_cnt.wrapping_add(u32::from(self.acked));
        self.acked = 1;
        let delta = w.cwnd_cnt.wrapping_mul(self.alpha) >> ALPHA_SHIFT;
        if delta >= w.cwnd {
            w.cwnd = (w.cwnd + delta / w.cwnd).min(w.cwnd_clamp);
            w.cwnd_cnt = 0;
        }
    }
    //= linux v6.12 net/ipv4/tcp_illinois.c tcp_illinois_acked
    fn pkts_acked(&mut self, _: &mut Window, sample: &AckSample) {
        self.acked = sample.pkts_acked as u16;
        let Some(rtt) = sample.rtt_us else { return };
        let rtt = rtt.min(RTT_MAX);
        self.base_rtt = self.base_rtt.min(rtt);
        self.max_rtt = self.max_rtt.max(rtt);
        self.cnt_rtt = self.cnt_rtt.wrapping_add(1);
        self.sum_rtt += u64::from(rtt);
    }
    fn on_state(&mut self, w: &mut Window, state: CaState) {
        if state == CaState::Loss {
            (self.alpha, self.beta, self.rtt_low, self.rtt_above) = (ALPHA_BASE, BETA_MAX, 0, false);
            self.rtt_reset(w);
        }
    }
    //= linux v6.12 net/ipv4/tcp_illinois.c tcp_illinois_info
    fn diag(&self, _: &Window) -> Option<ControlDiag> {
        Some(ControlDiag::Vegas(true, self.sum_rtt.checked_div(self.cnt_rtt.into()).unwrap_or(0) as u32))
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        let mean = self.sum_rtt.checked_div(self.cnt_rtt.into()).unwrap_or(0);
        vec![
            ("enabled", 1),
            ("rttcnt", self.cnt_rtt.into()),
            ("mean_rtt_us", mean),
            ("min_rtt_us", self.base_rtt.into()),
            ("alpha128", self.alpha.into()),
            ("beta64", self.beta.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Parameters;

    #[test]
    fn growth_and_fall_follow_the_delay() {
        let mut i = Illinois { theta: 5, ..Illinois::default() };
        assert_eq!((ALPHA_MIN, RTT_MAX), (38, 3_355_443));
        // A queue of at most 100 ms: none of it, half, all.
        assert_eq!(i.alpha(1_000, 100_000), ALPHA_MAX);
        assert_eq!(i.alpha(50_500, 100_000), 99_000 * 1_280 / (99_000 + 49_500 * 1_242 / 38));
        assert_eq!(i.alpha(100_000, 100_000), 99_000 * 1_280 / (99_000 + 99_000 * 1_242 / 38));
        // Back to the fastest after five short queues.
        i.alpha = 77;
        let grown: Vec<u32> = (0..5).map(|_| i.alpha(0, 100_000)).collect();
        assert_eq!(grown, [77, 77, 77, 77, ALPHA_MAX]);
        assert_eq!(Illinois::beta(10_000, 100_000), 8);
        assert_eq!(Illinois::beta(80_000, 100_000), 32);
        // Halfway between an eighth and a half.
        assert_eq!(Illinois::beta(45_000, 100_000), 20);
    }

    #[test]
    fn a_small_window_is_reno_s() {
        let mut w = Window::new(250, false);
        let p = Parameters::default();
        let mut c = p.build(&ALGORITHM, Kernel::V6_12);
        c.init(&mut w);
        (w.cwnd, w.ssthresh, w.cwnd_limited, w.snd_una, w.snd_nxt) = (14, 2, true, 1, 100);
        c.cong_avoid(&mut w, 1);
        assert_eq!(c.ssthresh(&w), 7);
        // From 15 on, with a queue that is short, it adds ten a round trip and a loss takes an eighth.
        c.pkts_acked(&mut w, &AckSample { pkts_acked: 1, rtt_us: Some(100_000), ..AckSample::default() });
        (w.cwnd, w.snd_una) = (16, 101);
        c.cong_avoid(&mut w, 1);
        assert_eq!(c.ssthresh(&w), 14);
        assert_eq!((c.info()[4].1, w.cwnd), (1_280, 16));
        w.cwnd_cnt = 0;
        for _ in 0..2 {
            c.cong_avoid(&mut w, 1);
        }
        assert_eq!(w.cwnd, 17, "2 × 10 of 16");
    }
}
