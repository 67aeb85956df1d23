//! `veno`: Reno that takes a loss with a short queue for one of the air: a fifth less in place of half.
//!
//! Follows: linux v6.12 net/ipv4/tcp_veno.c; Fu & Liew 2003.
//! Differs: none known.

use super::reno::reno_cong_avoid;
use super::{AckSample, Algorithm, Build, CongestionControl, Window};
use crate::info::CaState;
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "veno",
    about: "Reno that tells losses of the air by the queue (Fu & Liew)",
    from: Kernel::V6_12,
    parameters: &[],
    build,
};

/// log2 of the fixed point of the queue.
const SHIFT: u32 = 1;
/// Segments in the queue from which on there is congestion, times 2.
const BETA: u32 = 3 << SHIFT;
/// No round trip measured yet.
const NONE: u32 = 0x7fff_ffff;

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Veno { active: false, count: 0, min_rtt: NONE, base_rtt: NONE, inc: true, diff: 0 })
}

/// The controller of one connection; round trips in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Veno {
    active: bool,
    /// Round trips measured.
    count: u16,
    /// The least since the window was looked at last.
    min_rtt: u32,
    /// The least of all.
    base_rtt: u32,
    /// Whether the next round trip in congestion adds a segment.
    inc: bool,
    /// Segments in the queue, times 2.
    diff: u32,
}

impl Veno {
    //= linux v6.12 net/ipv4/tcp_veno.c tcp_veno_init, veno_enable
    fn restart(&mut self) {
        (self.base_rtt, self.inc, self.active, self.min_rtt) = (NONE, true, true, NONE);
    }
}

impl CongestionControl for Veno {
    fn init(&mut self, _: &mut Window) {
        self.restart();
    }
    //= linux v6.12 net/ipv4/tcp_veno.c tcp_veno_ssthresh
    fn ssthresh(&mut self, w: &Window) -> u32 {
        let left = if self.diff < BETA { w.cwnd.wrapping_mul(4) / 5 } else { w.cwnd >> 1 };
        left.max(2)
    }
    //= linux v6.12 net/ipv4/tcp_veno.c tcp_veno_cong_avoid
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        if !self.active {
            return reno_cong_avoid(w, acked);
        }
        if !w.cwnd_limited {
            return;
        }
        if self.count <= 2 {
            reno_cong_avoid(w, acked);
        } else {
            let target = ((u64::from(w.cwnd) * u64::from(self.base_rtt)) << SHIFT) / u64::from(self.min_rtt);
            self.diff = (w.cwnd << SHIFT).wrapping_sub(target as u32);
            self.grow(w, acked);
            w.cwnd = if w.cwnd < 2 { 2 } else { w.cwnd.min(w.cwnd_clamp) };
        }
        self.min_rtt = NONE;
    }
    fn pkts_acked(&mut self, _: &mut Window, sample: &AckSample) {
        let Some(rtt) = sample.rtt_us else { return };
        let rtt = rtt + 1;
        self.base_rtt = self.base_rtt.min(rtt);
        self.min_rtt = self.min_rtt.min(rtt);
        self.count = self.count.wrapping_add(1);
    }
    fn on_state(&mut self, _: &mut Window, state: CaState) {
        self.active = state == CaState::Open;
        if self.active {
            self.min_rtt = NONE;
        }
    }
    fn on_tx_start(&mut self, _: &mut Window) {
        self.restart();
    }
    fn on_cwnd_restart(&mut self, _: &mut Window) {
        self.restart();
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![("queue2", self.diff.into()), ("base_rtt_us", self.base_rtt.into())]
    }
}

impl Veno {
    fn grow(&mut self, w: &mut Window, mut acked: u32) {
        if w.in_slow_start() {
            acked = w.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        if self.diff < BETA {
            w.cong_avoid_ai(w.cwnd, acked);
        } else if w.cwnd_cnt >= w.cwnd {
            // In congestion every second round trip.
            if self.inc && w.cwnd < w.cwnd_clamp {
                w.cwnd += 1;
                self.inc = false;
            } else {
                self.inc = true;
            }
            w.cwnd_cnt = 0;
        } else {
            w.cwnd_cnt += acked;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Parameters;

    /// A window of 20 after five round trips of 100 ms and one of `rtt_us` since.
    fn at(rtt_us: u32) -> (Box<dyn CongestionControl>, Window) {
        let mut w = Window::new(250, false);
        let mut c = Parameters::default().build(&ALGORITHM, Kernel::V6_12);
        c.init(&mut w);
        (w.cwnd, w.ssthresh, w.cwnd_limited) = (20, 2, true);
        let sample = |rtt| AckSample { pkts_acked: 1, rtt_us: Some(rtt), ..AckSample::default() };
        for _ in 0..5 {
            c.pkts_acked(&mut w, &sample(99_999));
        }
        c.cong_avoid(&mut w, 1);
        c.pkts_acked(&mut w, &sample(rtt_us - 1));
        c.cong_avoid(&mut w, 1);
        (c, w)
    }

    #[test]
    fn a_loss_takes_a_fifth_or_half() {
        // 2 × 20 × (1 - 100 / rtt) of queue: 5 with 115 ms, 6 with 118 ms.
        let (mut c, w) = at(115_000);
        assert_eq!((c.info()[0].1, c.ssthresh(&w)), (40 - 34, 10), "40 × 100 / 115 = 34.8");
        let (mut c, w) = at(114_000);
        assert_eq!((c.info()[0].1, c.ssthresh(&w)), (40 - 35, 16), "40 × 100 / 114 = 35.1");
    }

    #[test]
    fn in_congestion_it_grows_every_second_round_trip() {
        let (mut c, mut w) = at(150_000);
        w.cwnd_cnt = 0;
        let mut grown = Vec::new();
        for n in 0..90 {
            let before = w.cwnd;
            c.pkts_acked(&mut w, &AckSample { pkts_acked: 1, rtt_us: Some(150_000), ..AckSample::default() });
            c.cong_avoid(&mut w, 1);
            if w.cwnd > before {
                grown.push(n);
            }
        }
        // 20 segments are counted, the next ACK grows; then 21 are counted and nothing grows; then 21 more.
        assert_eq!(grown, [20, 64]);
    }
}
