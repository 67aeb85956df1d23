//! `scalable`: grows by one for every hundred segments acknowledged and falls by an eighth.
//!
//! Follows: linux v6.12 net/ipv4/tcp_scalable.c; Kelly 2003.
//! Differs: none known.

use super::{Algorithm, Build, CongestionControl, Window};
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "scalable",
    about: "grows by one in a hundred segments, falls by an eighth (Kelly)",
    from: Kernel::V6_12,
    parameters: &[],
    build,
};

/// Segments acknowledged for which the window grows by one, where the window is not smaller.
pub(super) const AI_CNT: u32 = 100;

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Scalable)
}

/// The controller; without state of its own.
#[derive(Debug)]
pub struct Scalable;

impl CongestionControl for Scalable {
    fn ssthresh(&mut self, w: &Window) -> u32 {
        (w.cwnd - (w.cwnd >> 3)).max(2)
    }
    //= linux v6.12 net/ipv4/tcp_scalable.c tcp_scalable_cong_avoid
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
        w.cong_avoid_ai(w.cwnd.min(AI_CNT), acked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_less_and_a_hundredth_more() {
        let mut w = Window::new(250, false);
        (w.cwnd, w.ssthresh, w.cwnd_limited) = (800, 2, true);
        assert_eq!(Scalable.ssthresh(&w), 700);
        for _ in 0..800 {
            Scalable.cong_avoid(&mut w, 1);
        }
        assert_eq!(w.cwnd, 808);
        // A small window is Reno's.
        (w.cwnd, w.cwnd_cnt) = (10, 0);
        for _ in 0..10 {
            Scalable.cong_avoid(&mut w, 1);
        }
        assert_eq!(w.cwnd, 11);
        w.cwnd = 2;
        assert_eq!(Scalable.ssthresh(&w), 2);
    }
}
