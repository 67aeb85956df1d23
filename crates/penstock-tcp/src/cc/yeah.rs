//! `yeah`: Scalable while the queue is short, Reno while it is long, and drains it beyond 80 segments.
//!
//! Follows: linux v6.12 net/ipv4/tcp_yeah.c; Baiocchi, Castellani, Vacirca 2007.
//! Differs: none known.

use super::scalable::AI_CNT;
use super::{AckSample, Algorithm, Build, CongestionControl, Window};
use crate::info::CaState;
use penstock_model::Kernel;
use penstock_model::sockets::ControlDiag;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "yeah",
    about: "Scalable while the queue is short, Reno while it is long (Baiocchi, Castellani, Vacirca)",
    from: Kernel::V6_12,
    parameters: &[],
    build,
};

/// Segments in the queue at most.
const ALPHA: u32 = 80;
/// log2 of the least part of the window that a loss takes.
const DELTA: u32 = 3;
/// log2 of the most that draining takes.
const EPSILON: u32 = 1;
/// The queue is long from this part of the least round trip on.
const PHY: u32 = 8;
/// Round trips as Reno after which a loss halves.
const RHO: u32 = 16;
/// Round trips with a short queue that bring `reno_count` back.
const ZETA: u32 = 50;
/// No round trip measured yet.
const NONE: u32 = 0x7fff_ffff;

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Yeah::default())
}

/// The controller of one connection; round trips in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Yeah {
    active: bool,
    /// The right edge of the round trip being measured.
    beg_snd_nxt: u64,
    count: u32,
    min_rtt: u32,
    base_rtt: u32,
    last_q: u32,
    /// Round trips it has been Reno.
    doing_reno_now: u32,
    /// What Reno's window is reckoned to be.
    reno_count: u32,
    fast_count: u32,
}

impl Yeah {
    //= linux v6.12 net/ipv4/tcp_vegas.c vegas_enable
    fn enable(&mut self, w: &Window) {
        (self.active, self.beg_snd_nxt, self.count, self.min_rtt) = (true, w.snd_nxt, 0, NONE);
    }
    //= linux v6.12 net/ipv4/tcp_vegas.c tcp_vegas_init
    fn restart(&mut self, w: &Window) {
        self.base_rtt = NONE;
        self.enable(w);
    }
    /// Once a round trip: how long the queue is.
    fn judge(&mut self, w: &mut Window) {
        let longer = self.min_rtt - self.base_rtt;
        let queue = (u64::from(w.cwnd) * u64::from(longer) / u64::from(self.min_rtt)) as u32;
        if queue > ALPHA || longer > self.base_rtt / PHY {
            if queue > ALPHA && w.cwnd > self.reno_count {
                let reduction = queue.min(w.cwnd >> EPSILON);
                w.cwnd = (w.cwnd - reduction).max(self.reno_count);
                w.ssthresh = w.cwnd;
            }
            if self.reno_count <= 2 {
                self.reno_count = (w.cwnd >> 1).max(2);
            } else {
                self.reno_count += 1;
            }
            self.doing_reno_now = (self.doing_reno_now + 1).min(0xff_ffff);
        } else {
            self.fast_count += 1;
            if self.fast_count > ZETA {
                (self.reno_count, self.fast_count) = (2, 0);
            }
            self.doing_reno_now = 0;
        }
        self.last_q = queue;
    }
}

impl CongestionControl for Yeah {
    //= linux v6.12 net/ipv4/tcp_yeah.c tcp_yeah_init
    fn init(&mut self, w: &mut Window) {
        self.restart(w);
        (self.doing_reno_now, self.last_q, self.reno_count) = (0, 0, 2);
        w.cwnd_clamp = w.cwnd_clamp.min(u32::MAX / 128);
    }
    //= linux v6.12 net/ipv4/tcp_yeah.c tcp_yeah_ssthresh
    fn ssthresh(&mut self, w: &Window) -> u32 {
        let half = (w.cwnd >> 1).max(2);
        let reduction =
            if self.doing_reno_now < RHO { self.last_q.min(half).max(w.cwnd >> DELTA) } else { half };
        self.fast_count = 0;
        self.reno_count = (self.reno_count >> 1).max(2);
        (w.cwnd.wrapping_sub(reduction) as i32).max(2) as u32
    }
    //= linux v6.12 net/ipv4/tcp_yeah.c tcp_yeah_cong_avoid
    fn cong_avoid(&mut self, w: &mut Window, mut acked: u32) {
        if !w.cwnd_limited {
            return;
        }
        let mut avoids = true;
        if w.in_slow_start() {
            acked = w.slow_start(acked);
            avoids = acked > 0;
        }
        if avoids {
            let every = if self.doing_reno_now == 0 { w.cwnd.min(AI_CNT) } else { w.cwnd };
            w.cong_avoid_ai(every, acked);
        }
        if w.snd_una > self.beg_snd_nxt {
            if self.count > 2 {
                self.judge(w);
            }
            (self.beg_snd_nxt, self.count, self.min_rtt) = (w.snd_nxt, 0, NONE);
        }
    }
    fn pkts_acked(&mut self, _: &mut Window, sample: &AckSample) {
        let Some(rtt) = sample.rtt_us else { return };
        let rtt = rtt + 1;
        self.base_rtt = self.base_rtt.min(rtt);
        self.min_rtt = self.min_rtt.min(rtt);
        self.count += 1;
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

    /// A window after a round trip of `rtt_us`, where the least is 100 ms.
    fn round(y: &mut Yeah, w: &mut Window, rtt_us: u32) {
        (w.snd_una, w.snd_nxt, w.ssthresh, w.cwnd_limited) = (w.snd_nxt + 1, w.snd_nxt + 100, 2, true);
        for _ in 0..3 {
            let sample = AckSample { pkts_acked: 1, rtt_us: Some(rtt_us - 1), ..AckSample::default() };
            y.pkts_acked(w, &sample);
        }
        y.cong_avoid(w, 1);
    }
    fn begun(cwnd: u32) -> (Yeah, Window) {
        let (mut y, mut w) = (Yeah::default(), Window::new(250, false));
        y.init(&mut w);
        w.cwnd = cwnd;
        round(&mut y, &mut w, 100_000);
        w.cwnd_cnt = 0;
        (y, w)
    }

    #[test]
    fn a_long_queue_is_drained() {
        let (mut y, mut w) = begun(1_000);
        // 1000 × 25 / 125: 200 segments wait.
        round(&mut y, &mut w, 125_000);
        assert_eq!((y.last_q, w.cwnd, w.ssthresh, y.reno_count, y.doing_reno_now), (200, 800, 800, 400, 1));
        // 800 × 5 / 105 = 38, and 5 ms are less than an eighth: short.
        round(&mut y, &mut w, 105_000);
        assert_eq!((y.last_q, w.cwnd, y.doing_reno_now, y.fast_count), (38, 800, 0, 2));
        // 20 ms are more than an eighth, the queue is no more than 80: nothing is drained.
        w.cwnd = 400;
        round(&mut y, &mut w, 120_000);
        assert_eq!((y.last_q, w.cwnd, y.reno_count, y.doing_reno_now), (66, 400, 401, 1));
    }

    #[test]
    fn a_loss_takes_the_queue_or_half() {
        let (mut y, mut w) = begun(800);
        assert_eq!(y.ssthresh(&w), 700, "no queue: an eighth");
        y.last_q = 300;
        assert_eq!(y.ssthresh(&w), 500);
        y.last_q = 500;
        assert_eq!(y.ssthresh(&w), 400);
        (y.last_q, y.doing_reno_now) = (0, 16);
        assert_eq!(y.ssthresh(&w), 400, "Reno for long: half");
        w.cwnd = 2;
        assert_eq!(y.ssthresh(&w), 2);
    }
}
