//! `reno`: slow start and additive increase, halving on loss.
//!
//! Follows: linux v6.12 net/ipv4/tcp_cong.c `tcp_reno_*`; RFC 5681 section 3.1.
//! Differs: none known.

use super::{Algorithm, Build, CongestionControl, Window};
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "reno",
    about: "slow start, additive increase, halving on loss (RFC 5681)",
    from: Kernel::V2_6_35,
    parameters: &[],
    build,
};

/// The controller; without state of its own.
#[derive(Debug)]
pub struct Reno;

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Reno)
}

/// Slow start, then a segment a window.
//= linux v6.12 net/ipv4/tcp_cong.c tcp_reno_cong_avoid
pub(super) fn reno_cong_avoid(w: &mut Window, mut acked: u32) {
    if !w.cwnd_limited {
        return;
    }
    if w.in_slow_start() {
        acked = w.slow_start(acked);
        if acked == 0 {
            return;
        }
    }
    w.cong_avoid_ai(w.cwnd, acked);
}

impl CongestionControl for Reno {
    fn ssthresh(&mut self, w: &Window) -> u32 {
        (w.cwnd / 2).max(2)
    }
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        reno_cong_avoid(w, acked);
    }
    //= linux v2.6.35 net/ipv4/tcp_cong.c tcp_reno_min_cwnd
    fn min_cwnd(&self, w: &Window) -> u32 {
        w.ssthresh / 2
    }
}
