//! `cubic` as Linux 2.6.35 had it: counted in ACKs and jiffies.
//!
//! Follows: linux v2.6.35 net/ipv4/tcp_cubic.c (version 2.3), HyStart by ACK trains and by delay.
//! Differs: none known.

use super::{
    BETA, BETA_SCALE, CUBE_FACTOR, CUBE_RTT_SCALE, HYSTART_LOW_WINDOW, HYSTART_MIN_SAMPLES, HZ_SHIFT, SCALE,
    cubic_root,
};
use crate::cc::{AckSample, CongestionControl, Window};

/// log2 of the fixed point of the delayed-ACK ratio.
const ACK_RATIO_SHIFT: u32 = 4;

/// The controller of one connection.
#[derive(Clone, Debug)]
pub struct Cubic {
    cnt: u32,
    last_max_cwnd: u32,
    last_cwnd: u32,
    last_time: u64,
    origin_point: u32,
    k: u32,
    /// Least delay, jiffies times 8.
    delay_min8: u32,
    epoch_start: u64,
    ack_cnt: u32,
    tcp_cwnd: u32,
    /// Segments per ACK times 16.
    delayed_ack: u32,
    found: bool,
    sample_cnt: u8,
    round_start: u64,
    end_seq: u64,
    last_jiffies: u64,
    curr_rtt8: u32,
}

impl Default for Cubic {
    fn default() -> Cubic {
        Cubic {
            cnt: 0,
            last_max_cwnd: 0,
            last_cwnd: 0,
            last_time: 0,
            origin_point: 0,
            k: 0,
            delay_min8: 0,
            epoch_start: 0,
            ack_cnt: 0,
            tcp_cwnd: 0,
            delayed_ack: 2 << ACK_RATIO_SHIFT,
            found: false,
            sample_cnt: 0,
            round_start: 0,
            end_seq: 0,
            last_jiffies: 0,
            curr_rtt8: 0,
        }
    }
}

impl Cubic {
    fn hystart_reset(&mut self, w: &Window) {
        self.round_start = w.jiffies;
        self.last_jiffies = w.jiffies;
        self.end_seq = w.snd_nxt;
        self.curr_rtt8 = 0;
        self.sample_cnt = 0;
    }

    //= linux v2.6.35 net/ipv4/tcp_cubic.c bictcp_update
    fn update(&mut self, w: &Window) {
        let cwnd = w.cwnd;
        self.ack_cnt += 1;
        if self.last_cwnd == cwnd && w.jiffies - self.last_time <= u64::from(w.hz / 32) {
            return;
        }
        self.last_cwnd = cwnd;
        self.last_time = w.jiffies;
        if self.epoch_start == 0 {
            self.epoch_start = w.jiffies.max(1);
            self.ack_cnt = 1;
            self.tcp_cwnd = cwnd;
            if self.last_max_cwnd <= cwnd {
                self.k = 0;
                self.origin_point = cwnd;
            } else {
                self.k = cubic_root(CUBE_FACTOR * u64::from(self.last_max_cwnd - cwnd));
                self.origin_point = self.last_max_cwnd;
            }
        }
        let t = ((w.jiffies + u64::from(self.delay_min8 >> 3)).saturating_sub(self.epoch_start) << HZ_SHIFT)
            / u64::from(w.hz);
        let offs = t.abs_diff(u64::from(self.k));
        let delta = (u128::from(CUBE_RTT_SCALE) * u128::from(offs).pow(3)) >> (10 + 3 * HZ_SHIFT);
        let delta = delta.min(u128::from(u32::MAX / 4)) as u32;
        let target = if t < u64::from(self.k) {
            self.origin_point.saturating_sub(delta)
        } else {
            self.origin_point.saturating_add(delta)
        };
        self.cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.saturating_mul(100) };
        let delta = (cwnd * BETA_SCALE) >> 3;
        while self.ack_cnt > delta {
            self.ack_cnt -= delta.max(1);
            self.tcp_cwnd += 1;
        }
        if self.tcp_cwnd > cwnd {
            self.cnt = self.cnt.min(cwnd / (self.tcp_cwnd - cwnd));
        }
        self.cnt = ((u64::from(self.cnt) << ACK_RATIO_SHIFT) / u64::from(self.delayed_ack.max(1))) as u32;
        self.cnt = self.cnt.max(1);
    }

    //= linux v2.6.35 net/ipv4/tcp_cubic.c hystart_update
    fn hystart_update(&mut self, w: &mut Window, delay8: u32) {
        if self.found {
            return;
        }
        // ACKs within 2 ms, rounded up to jiffies, are a train.
        if w.jiffies - self.last_jiffies <= u64::from((2 * w.hz).div_ceil(1_000)) {
            self.last_jiffies = w.jiffies;
            self.found |= w.jiffies - self.round_start >= u64::from(self.delay_min8 >> 4);
        }
        if self.sample_cnt < HYSTART_MIN_SAMPLES {
            if self.curr_rtt8 == 0 || self.curr_rtt8 > delay8 {
                self.curr_rtt8 = delay8;
            }
            self.sample_cnt += 1;
        } else if self.curr_rtt8 > self.delay_min8 + (self.delay_min8 >> 4).clamp(2 << 3, 16 << 3) {
            self.found = true;
        }
        if self.found {
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
        self.epoch_start = 0;
        self.last_max_cwnd = if w.cwnd < self.last_max_cwnd {
            (u64::from(w.cwnd) * u64::from(SCALE + BETA) / u64::from(2 * SCALE)) as u32
        } else {
            w.cwnd
        };
        ((u64::from(w.cwnd) * u64::from(BETA) / u64::from(SCALE)) as u32).max(2)
    }
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        if !w.cwnd_limited {
            return;
        }
        if w.in_slow_start() {
            if w.snd_una > self.end_seq {
                self.hystart_reset(w);
            }
            w.slow_start(acked);
        } else {
            self.update(w);
            w.cong_avoid_ai(self.cnt, acked);
        }
    }
    fn pkts_acked(&mut self, w: &mut Window, sample: &AckSample) {
        if w.open {
            let ratio = self.delayed_ack + sample.pkts_acked;
            self.delayed_ack = ratio - (self.delayed_ack >> ACK_RATIO_SHIFT);
        }
        let Some(rtt_us) = sample.rtt_us else { return };
        // Unset, the epoch lies at jiffy 0 five minutes before the start of the run.
        if self.epoch_start > 0 && w.jiffies - self.epoch_start < u64::from(w.hz) {
            return;
        }
        let jiffies = (u64::from(rtt_us) * u64::from(w.hz)).div_ceil(1_000_000) as u32;
        let delay8 = (jiffies << 3).max(1);
        if self.delay_min8 == 0 || self.delay_min8 > delay8 {
            self.delay_min8 = delay8;
        }
        if w.in_slow_start() && w.cwnd >= HYSTART_LOW_WINDOW {
            self.hystart_update(w, delay8);
        }
    }
    fn on_rto(&mut self, w: &Window) {
        *self = Cubic::default();
        self.hystart_reset(w);
    }
    fn undo_cwnd(&mut self, w: &Window) -> u32 {
        w.cwnd.max(self.last_max_cwnd)
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("last_max_cwnd", self.last_max_cwnd.into()),
            ("k_ms", u64::from(self.k) * 1_000 / 1_024),
            ("origin_point", self.origin_point.into()),
            ("hystart_found", self.found.into()),
        ]
    }
}
