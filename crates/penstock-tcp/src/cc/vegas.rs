//! `vegas`: keeps between two and four segments in the queue, by the round trip's growth over its least.
//!
//! Follows: linux v6.12 net/ipv4/tcp_vegas.c; Brakmo & Peterson 1995.
//! Differs: none known.

use super::reno::reno_cong_avoid;
use super::{AckSample, Algorithm, Build, CongestionControl, Window};
use crate::info::CaState;
use penstock_model::Kernel;
use penstock_model::sockets::ControlDiag;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "vegas",
    about: "holds two to four segments in the queue (Brakmo & Peterson)",
    from: Kernel::V2_6_35,
    parameters: &[],
    build,
};

/// Segments in the queue below which the window grows.
const ALPHA: u32 = 2;
/// And above which it falls.
const BETA: u32 = 4;
/// In slow start.
const GAMMA: u32 = 1;
/// No round trip measured yet.
const NONE: u32 = 0x7fff_ffff;

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Vegas { active: false, beg_snd_nxt: 0, count: 0, min_rtt: NONE, base_rtt: NONE })
}

/// The controller of one connection.
#[derive(Clone, Copy, Debug)]
pub struct Vegas {
    active: bool,
    /// The right edge of the round trip being measured.
    beg_snd_nxt: u64,
    /// Round trips measured in it.
    count: u32,
    /// The least of them, microseconds.
    min_rtt: u32,
    /// The least ever, microseconds.
    base_rtt: u32,
}

impl Vegas {
    //= linux v6.12 net/ipv4/tcp_vegas.c vegas_enable
    fn enable(&mut self, w: &Window) {
        self.active = true;
        self.beg_snd_nxt = w.snd_nxt;
        self.count = 0;
        self.min_rtt = NONE;
    }
    fn restart(&mut self, w: &Window) {
        self.base_rtt = NONE;
        self.enable(w);
    }
    /// Once a round trip.
    //= linux v6.12 net/ipv4/tcp_vegas.c tcp_vegas_cong_avoid
    fn judge(&mut self, w: &mut Window, acked: u32) {
        if self.count <= 2 {
            // Too few to tell delay from delayed ACKs.
            return reno_cong_avoid(w, acked);
        }
        let (rtt, base) = (self.min_rtt, self.base_rtt);
        let target = (u64::from(w.cwnd) * u64::from(base) / u64::from(rtt)) as u32;
        let diff = (u64::from(w.cwnd) * u64::from(rtt - base) / u64::from(base)) as u32;
        if diff > GAMMA && w.in_slow_start() {
            w.cwnd = w.cwnd.min(target + 1);
            w.ssthresh = w.ssthresh.min(w.cwnd);
        } else if w.in_slow_start() {
            w.slow_start(acked);
        } else if diff > BETA {
            w.cwnd -= 1;
            w.ssthresh = w.ssthresh.min(w.cwnd);
        } else if diff < ALPHA {
            w.cwnd += 1;
        }
        w.cwnd = w.cwnd.max(2).min(w.cwnd_clamp);
        w.ssthresh = w.current_ssthresh();
    }
}

impl CongestionControl for Vegas {
    fn init(&mut self, w: &mut Window) {
        self.restart(w);
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        (w.cwnd / 2).max(2)
    }
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        if !self.active {
            return reno_cong_avoid(w, acked);
        }
        if w.snd_una > self.beg_snd_nxt {
            self.beg_snd_nxt = w.snd_nxt;
            self.judge(w, acked);
            self.count = 0;
            self.min_rtt = NONE;
        } else if w.in_slow_start() {
            w.slow_start(acked);
        }
    }
    fn pkts_acked(&mut self, _: &mut Window, sample: &AckSample) {
        if let Some(rtt) = sample.rtt_us {
            let rtt = rtt.saturating_add(1);
            self.base_rtt = self.base_rtt.min(rtt);
            self.min_rtt = self.min_rtt.min(rtt);
            self.count += 1;
        }
    }
    fn on_state(&mut self, w: &mut Window, state: CaState) {
        if state == CaState::Open {
            self.enable(w);
        } else {
            self.active = false;
        }
    }
    fn on_tx_start(&mut self, w: &mut Window) {
        self.restart(w);
    }
    fn on_cwnd_restart(&mut self, w: &mut Window) {
        self.restart(w);
    }
    fn diag(&self, _: &Window) -> Option<ControlDiag> {
        Some(ControlDiag::Vegas(self.active, self.base_rtt))
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("enabled", self.active.into()),
            ("rttcnt", self.count.into()),
            ("base_rtt_us", self.base_rtt.into()),
            ("min_rtt_us", self.min_rtt.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One round of a window of ten at this round trip, after a least of 100 ms.
    fn round(rtt_us: u32) -> u32 {
        let mut v = Vegas { active: false, beg_snd_nxt: 0, count: 0, min_rtt: NONE, base_rtt: NONE };
        let mut w = Window::new(250, false);
        v.init(&mut w);
        (w.cwnd, w.ssthresh, w.snd_una, w.snd_nxt) = (10, 5, 1, 10);
        let sample = |rtt| AckSample { pkts_acked: 1, rtt_us: Some(rtt), ..AckSample::default() };
        v.pkts_acked(&mut w, &sample(99_999));
        v.count = 0;
        v.min_rtt = NONE;
        for _ in 0..5 {
            v.pkts_acked(&mut w, &sample(rtt_us));
        }
        v.cong_avoid(&mut w, 1);
        w.cwnd
    }

    #[test]
    fn two_to_four_segments_may_wait() {
        // Of ten segments, 10 (rtt - 100 ms) / 100 ms wait.
        assert_eq!(round(110_000), 11, "one waits: more");
        assert_eq!(round(125_000), 10, "two wait: enough");
        assert_eq!(round(145_000), 10, "four wait: enough");
        assert_eq!(round(155_000), 9, "five wait: too many");
    }
}
