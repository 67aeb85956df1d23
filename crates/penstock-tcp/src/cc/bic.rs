//! `bic`: binary search between the window of the last loss and the window after it.
//!
//! Follows: linux v6.12 net/ipv4/tcp_bic.c; Xu, Harfoush, Rhee 2004.
//! Differs: none known.

use super::{AckSample, Algorithm, Build, CongestionControl, Parameter, Window};
use crate::info::CaState;
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "bic",
    about: "binary search for the window of the last loss (Xu, Harfoush, Rhee)",
    from: Kernel::V6_12,
    parameters: &[
        Parameter::new("beta", 819),
        Parameter::new("fast_convergence", 1),
        Parameter::new("initial_ssthresh", 0),
        Parameter::new("low_window", 14),
        Parameter::new("max_increment", 16),
        Parameter::new("smooth_part", 20),
    ],
    build,
};

/// Fixed point of `beta`.
const BETA_SCALE: u32 = 1024;
/// The search goes to the point (max + min) / B.
const B: u32 = 4;
/// log2 of the fixed point of the ratio of segments to ACKs.
const ACK_RATIO_SHIFT: u32 = 4;

fn build(b: &Build<'_>) -> Box<dyn CongestionControl> {
    let of = |name| b.parameters.of(&ALGORITHM, name) as u32;
    Box::new(Bic {
        beta: of("beta"),
        fast_convergence: of("fast_convergence") != 0,
        initial_ssthresh: of("initial_ssthresh"),
        low_window: of("low_window"),
        max_increment: of("max_increment"),
        smooth_part: of("smooth_part"),
        ..Bic::default()
    })
}

/// The controller of one connection; windows in segments, times in jiffies.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bic {
    // Parameters
    /// What remains of the window after a loss, in 1024ths.
    beta: u32,
    /// Gives way while the window keeps falling.
    fast_convergence: bool,
    /// The first threshold; 0: none.
    initial_ssthresh: u32,
    /// Up to this window it is Reno.
    low_window: u32,
    /// The most it grows in a round trip.
    max_increment: u32,
    /// How slowly it comes near the window of the last loss.
    smooth_part: u32,
    // Variables
    /// The window grows by one for so many segments.
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_time: u32,
    epoch_start: u32,
    /// Segments an ACK, times 16.
    delayed_ack: u32,
}

impl Bic {
    //= linux v6.12 net/ipv4/tcp_bic.c bictcp_reset
    fn reset(&mut self) {
        (self.cnt, self.last_max_cwnd, self.last_cwnd, self.last_time, self.epoch_start) = (0, 0, 0, 0, 0);
        self.delayed_ack = 2 << ACK_RATIO_SHIFT;
    }
    //= linux v6.12 net/ipv4/tcp_bic.c bictcp_update
    fn update(&mut self, w: &Window) {
        let (cwnd, now) = (w.cwnd, w.jiffies32());
        if self.last_cwnd == cwnd && (now.wrapping_sub(self.last_time) as i32) <= (w.hz / 32) as i32 {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = now;
        if self.epoch_start == 0 {
            self.epoch_start = now;
        }
        if cwnd <= self.low_window {
            self.cnt = cwnd;
            return;
        }
        let slowly = cwnd.wrapping_mul(self.smooth_part) / B;
        let linear = cwnd / self.max_increment.max(1);
        self.cnt = if cwnd < self.last_max_cwnd {
            match (self.last_max_cwnd - cwnd) / B {
                far if far > self.max_increment => linear,
                0 | 1 => slowly,
                dist => cwnd / dist,
            }
        } else if cwnd < self.last_max_cwnd.wrapping_add(B) {
            slowly
        } else if cwnd < self.last_max_cwnd.wrapping_add(self.max_increment.wrapping_mul(B - 1)) {
            cwnd.wrapping_mul(B - 1) / (cwnd - self.last_max_cwnd)
        } else {
            linear
        };
        // Before any loss: 5 % in a round trip at least.
        if self.last_max_cwnd == 0 {
            self.cnt = self.cnt.min(20);
        }
        self.cnt = ((self.cnt << ACK_RATIO_SHIFT) / self.delayed_ack.max(1)).max(1);
    }
}

impl CongestionControl for Bic {
    fn init(&mut self, w: &mut Window) {
        self.reset();
        if self.initial_ssthresh > 0 {
            w.ssthresh = self.initial_ssthresh;
        }
    }
    //= linux v6.12 net/ipv4/tcp_bic.c bictcp_recalc_ssthresh
    fn ssthresh(&mut self, w: &Window) -> u32 {
        self.epoch_start = 0;
        self.last_max_cwnd = if w.cwnd < self.last_max_cwnd && self.fast_convergence {
            w.cwnd.wrapping_mul(BETA_SCALE.wrapping_add(self.beta)) / (2 * BETA_SCALE)
        } else {
            w.cwnd
        };
        let left =
            if w.cwnd <= self.low_window { w.cwnd >> 1 } else { w.cwnd.wrapping_mul(self.beta) / BETA_SCALE };
        left.max(2)
    }
    //= linux v6.12 net/ipv4/tcp_bic.c bictcp_cong_avoid
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
        self.update(w);
        w.cong_avoid_ai(self.cnt, acked);
    }
    //= linux v6.12 net/ipv4/tcp_bic.c bictcp_acked
    fn pkts_acked(&mut self, w: &mut Window, sample: &AckSample) {
        if w.open {
            let change = sample.pkts_acked.wrapping_sub(self.delayed_ack >> ACK_RATIO_SHIFT);
            self.delayed_ack = self.delayed_ack.wrapping_add(change);
        }
    }
    fn on_state(&mut self, _: &mut Window, state: CaState) {
        if state == CaState::Loss {
            self.reset();
        }
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![("last_max_cwnd", self.last_max_cwnd.into()), ("cnt", self.cnt.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Parameters;

    fn bic(parameters: &[(&str, i64)]) -> (Box<dyn CongestionControl>, Window) {
        let mut w = Window::new(250, false);
        let mut c = Parameters::default().with(&ALGORITHM, parameters).build(&ALGORITHM, Kernel::V6_12);
        c.init(&mut w);
        w.cwnd_limited = true;
        (c, w)
    }
    /// Segments that the window grows by one for, after a loss at `max`, with ACKs for two segments each.
    fn cnt(max: u32, cwnd: u32) -> u64 {
        let (mut c, mut w) = bic(&[]);
        w.cwnd = max;
        w.ssthresh = c.ssthresh(&w);
        w.cwnd = cwnd;
        w.ssthresh = 2;
        c.cong_avoid(&mut w, 1);
        c.info()[1].1
    }

    #[test]
    fn a_loss_leaves_four_fifths_or_half() {
        let (mut c, mut w) = bic(&[]);
        w.cwnd = 100;
        assert_eq!(c.ssthresh(&w), 100 * 819 / 1024);
        assert_eq!(c.info()[0], ("last_max_cwnd", 100));
        // Fast convergence: 80 (1024 + 819) / 2048.
        w.cwnd = 80;
        assert_eq!(c.ssthresh(&w), 63);
        assert_eq!(c.info()[0].1, 71);
        w.cwnd = 14;
        assert_eq!(c.ssthresh(&w), 7);
        w.cwnd = 3;
        assert_eq!(c.ssthresh(&w), 2);
        let (mut c, mut w) = bic(&[("beta", 512), ("fast_convergence", 0)]);
        w.cwnd = 100;
        assert_eq!(c.ssthresh(&w), 50);
        w.cwnd = 80;
        c.ssthresh(&w);
        assert_eq!(c.info()[0].1, 80);
    }

    #[test]
    fn it_searches_for_the_window_of_the_last_loss() {
        // Two segments an ACK: delayed_ack is 32, what is computed is halved.
        assert_eq!(cnt(200, 100), 100 / 16 / 2, "25 away: linear, by 16 a round trip");
        assert_eq!(cnt(200, 160), 160 / 10 / 2, "10 away: by the distance");
        assert_eq!(cnt(200, 196), 196 * 20 / 4 / 2, "near: slowly");
        assert_eq!(cnt(200, 203), 203 * 20 / 4 / 2, "just beyond: slowly");
        assert_eq!(cnt(200, 210), 210 * 3 / 10 / 2, "10 beyond: faster");
        assert_eq!(cnt(200, 300), 300 / 16 / 2, "far beyond: linear");
        assert_eq!(cnt(10, 10), 10, "low_window: as Reno");
    }

    #[test]
    fn a_timeout_forgets_all_and_parameters_are_followed() {
        let (mut c, mut w) = bic(&[("initial_ssthresh", 40)]);
        assert_eq!(w.ssthresh, 40);
        w.cwnd = 100;
        c.ssthresh(&w);
        c.on_state(&mut w, CaState::Recovery);
        assert_eq!(c.info()[0].1, 100);
        c.on_state(&mut w, CaState::Loss);
        assert_eq!(c.info()[0].1, 0);
    }
}
