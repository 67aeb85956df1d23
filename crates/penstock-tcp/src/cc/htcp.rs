//! `htcp`: grows faster the longer ago the last loss is, and falls by the ratio of the round trips.
//!
//! Follows: linux v6.12 net/ipv4/tcp_htcp.c; Leith & Shorten 2004.
//! Differs: none known.

use super::{AckSample, Algorithm, Build, CongestionControl, Parameter, Window};
use crate::info::CaState;
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "htcp",
    about: "grows faster the longer ago the last loss is (Leith & Shorten)",
    from: Kernel::V6_12,
    parameters: &[Parameter::new("use_bandwidth_switch", 1), Parameter::new("use_rtt_scaling", 1)],
    build,
};

// In 128ths.
const ALPHA_BASE: u32 = 1 << 7;
const BETA_MIN: u8 = 1 << 6;
const BETA_MAX: u8 = 102;

fn build(b: &Build<'_>) -> Box<dyn CongestionControl> {
    let on = |name| b.parameters.of(&ALGORITHM, name) != 0;
    Box::new(Htcp::new(on("use_bandwidth_switch"), on("use_rtt_scaling")))
}

/// The controller of one connection; times in jiffies, rates in segments a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Htcp {
    // Parameters
    use_bandwidth_switch: bool,
    use_rtt_scaling: bool,
    // Variables
    /// Segments that a round trip adds, 128ths.
    alpha: u32,
    /// What a loss leaves, 128ths.
    beta: u8,
    /// There was a loss before.
    modeswitch: bool,
    pkts_acked: u16,
    packetcount: u32,
    min_rtt: u32,
    max_rtt: u32,
    /// When the last loss was over.
    last_cong: u32,
    undo_last_cong: u32,
    undo_max_rtt: u32,
    undo_old_max_b: u32,
    min_b: u32,
    max_b: u32,
    old_max_b: u32,
    bi: u32,
    lasttime: u32,
}

fn msecs(ms: u32, hz: u32) -> u32 {
    (ms * hz).div_ceil(1_000)
}
/// Whether `x` lies from `low` to `high`, modulo 2^32.
//= linux v6.12 include/net/tcp.h between
fn between(x: u32, low: u32, high: u32) -> bool {
    high.wrapping_sub(low) >= x.wrapping_sub(low)
}

impl Htcp {
    fn new(use_bandwidth_switch: bool, use_rtt_scaling: bool) -> Htcp {
        Htcp { use_bandwidth_switch, use_rtt_scaling, ..Htcp::default() }
    }
    //= linux v6.12 net/ipv4/tcp_htcp.c htcp_reset
    fn reset(&mut self, now: u32) {
        self.undo_last_cong = self.last_cong;
        self.undo_max_rtt = self.max_rtt;
        self.undo_old_max_b = self.old_max_b;
        self.last_cong = now;
    }
    //= linux v6.12 net/ipv4/tcp_htcp.c measure_rtt
    fn measure_rtt(&mut self, w: &Window, rtt: u32) {
        if self.min_rtt > rtt || self.min_rtt == 0 {
            self.min_rtt = rtt;
        }
        if w.open {
            self.max_rtt = self.max_rtt.max(self.min_rtt);
            if self.max_rtt < rtt && rtt <= self.max_rtt.wrapping_add(msecs(20, w.hz)) {
                self.max_rtt = rtt;
            }
        }
    }
    //= linux v6.12 net/ipv4/tcp_htcp.c htcp_beta_update
    fn beta_update(&mut self, w: &Window) {
        if self.use_bandwidth_switch {
            let (max_b, old) = (self.max_b, self.old_max_b);
            self.old_max_b = max_b;
            if !between(max_b.wrapping_mul(5), old.wrapping_mul(4), old.wrapping_mul(6)) {
                self.beta = BETA_MIN;
                self.modeswitch = false;
                return;
            }
        }
        if self.modeswitch && self.min_rtt > msecs(10, w.hz) && self.max_rtt > 0 {
            self.beta = (((self.min_rtt << 7) / self.max_rtt) as u8).clamp(BETA_MIN, BETA_MAX);
        } else {
            self.beta = BETA_MIN;
            self.modeswitch = true;
        }
    }
    //= linux v6.12 net/ipv4/tcp_htcp.c htcp_alpha_update
    fn alpha_update(&mut self, w: &Window) {
        let hz = w.hz;
        let mut factor = 1u32;
        let diff = w.jiffies32().wrapping_sub(self.last_cong);
        if diff > hz {
            let diff = diff - hz;
            let half = diff / 2;
            let sum = diff.wrapping_mul(10).wrapping_add(half.wrapping_mul(half) / hz);
            factor = (sum / hz).wrapping_add(1);
        }
        if self.use_rtt_scaling && self.min_rtt > 0 {
            let scale = ((hz << 3) / self.min_rtt.wrapping_mul(10).max(1)).clamp(1 << 2, 10 << 3);
            factor = ((factor << 3) / scale).max(1);
        }
        self.alpha = factor.wrapping_mul(2).wrapping_mul((1 << 7) - u32::from(self.beta));
        if self.alpha == 0 {
            self.alpha = ALPHA_BASE;
        }
    }
}

impl CongestionControl for Htcp {
    fn init(&mut self, w: &mut Window) {
        *self = Htcp::new(self.use_bandwidth_switch, self.use_rtt_scaling);
        (self.alpha, self.beta, self.pkts_acked, self.last_cong) = (ALPHA_BASE, BETA_MIN, 1, w.jiffies32());
    }
    //= linux v6.12 net/ipv4/tcp_htcp.c htcp_recalc_ssthresh, htcp_param_update
    fn ssthresh(&mut self, w: &Window) -> u32 {
        let (min, max) = (self.min_rtt, self.max_rtt);
        self.beta_update(w);
        self.alpha_update(w);
        if min > 0 && max > min {
            self.max_rtt = min.wrapping_add((max - min).wrapping_mul(95) / 100);
        }
        (w.cwnd.wrapping_mul(self.beta.into()) >> 7).max(2)
    }
    //= linux v6.12 net/ipv4/tcp_htcp.c htcp_cong_avoid
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        if !w.cwnd_limited {
            return;
        }
        if w.in_slow_start() {
            w.slow_start(acked);
            return;
        }
        if w.cwnd_cnt.wrapping_mul(self.alpha) >> 7 >= w.cwnd {
            if w.cwnd < w.cwnd_clamp {
                w.cwnd += 1;
            }
            w.cwnd_cnt = 0;
            self.alpha_update(w);
        } else {
            w.cwnd_cnt += u32::from(self.pkts_acked);
        }
        self.pkts_acked = 1;
    }
    //= linux v6.12 net/ipv4/tcp_htcp.c measure_achieved_throughput
    fn pkts_acked(&mut self, w: &mut Window, sample: &AckSample) {
        let now = w.jiffies32();
        if w.open {
            self.pkts_acked = sample.pkts_acked as u16;
        }
        if let Some(us) = sample.rtt_us.filter(|&us| us > 0) {
            self.measure_rtt(w, w.us_to_jiffies(us));
        }
        if !self.use_bandwidth_switch {
            return;
        }
        if !matches!(w.state, CaState::Open | CaState::Disorder) {
            (self.packetcount, self.lasttime) = (0, now);
            return;
        }
        self.packetcount = self.packetcount.wrapping_add(sample.pkts_acked);
        let over = now.wrapping_sub(self.lasttime);
        let round = w.cwnd.wrapping_sub((self.alpha >> 7).max(1));
        if self.packetcount >= round && over >= self.min_rtt && self.min_rtt > 0 {
            let rate = self.packetcount.wrapping_mul(w.hz) / over;
            if now.wrapping_sub(self.last_cong) / self.min_rtt <= 3 {
                (self.min_b, self.max_b, self.bi) = (rate, rate, rate);
            } else {
                self.bi = self.bi.wrapping_mul(3).wrapping_add(rate) / 4;
                self.max_b = self.max_b.max(self.bi);
                self.min_b = self.min_b.min(self.max_b);
            }
            (self.packetcount, self.lasttime) = (0, now);
        }
    }
    //= linux v6.12 net/ipv4/tcp_htcp.c htcp_cwnd_undo
    fn undo_cwnd(&mut self, w: &Window) -> u32 {
        if self.undo_last_cong > 0 {
            self.last_cong = self.undo_last_cong;
            self.max_rtt = self.undo_max_rtt;
            self.old_max_b = self.undo_old_max_b;
            self.undo_last_cong = 0;
        }
        w.cwnd.max(w.prior_cwnd)
    }
    //= linux v6.12 net/ipv4/tcp_htcp.c htcp_state
    fn on_state(&mut self, w: &mut Window, state: CaState) {
        match state {
            CaState::Open => {
                if self.undo_last_cong > 0 {
                    (self.last_cong, self.undo_last_cong) = (w.jiffies32(), 0);
                }
            }
            CaState::Disorder => {}
            CaState::Cwr | CaState::Recovery | CaState::Loss => self.reset(w.jiffies32()),
        }
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![("alpha128", self.alpha.into()), ("beta128", self.beta.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cc::Parameters;

    fn at(parameters: &[(&str, i64)]) -> (Box<dyn CongestionControl>, Window) {
        let mut w = Window::new(100, false);
        w.jiffies = 1_000;
        let mut c = Parameters::default().with(&ALGORITHM, parameters).build(&ALGORITHM, Kernel::V6_12);
        c.init(&mut w);
        w.cwnd_limited = true;
        (c, w)
    }
    fn sample(rtt_ms: u32) -> AckSample {
        AckSample { pkts_acked: 1, rtt_us: Some(rtt_ms * 1_000), ..AckSample::default() }
    }

    #[test]
    fn growth_follows_the_time_since_the_last_loss() {
        let (mut c, mut w) = at(&[("use_rtt_scaling", 0), ("use_bandwidth_switch", 0)]);
        w.cwnd = 100;
        // Within the first second: 2 (1 - 1/2) segments a round trip.
        w.jiffies = 1_050;
        c.ssthresh(&w);
        assert_eq!(c.info()[0].1, 128);
        // Three seconds: 1 + 10 × 2 + (2/2)^2 = 22.
        w.jiffies = 1_300;
        c.ssthresh(&w);
        assert_eq!(c.info()[0].1, 22 * 128);
        // Scaled: a round trip of 200 ms counts as twice 100 ms.
        let (mut c, mut w) = at(&[("use_bandwidth_switch", 0)]);
        w.cwnd = 100;
        c.pkts_acked(&mut w, &sample(200));
        w.jiffies = 1_300;
        c.ssthresh(&w);
        assert_eq!(c.info()[0].1, 44 * 128);
    }

    #[test]
    fn a_loss_leaves_the_ratio_of_the_round_trips() {
        let (mut c, mut w) = at(&[("use_bandwidth_switch", 0)]);
        w.cwnd = 100;
        c.pkts_acked(&mut w, &sample(60));
        c.pkts_acked(&mut w, &sample(80));
        assert_eq!(c.ssthresh(&w), 50, "the first halves");
        // 6 of 8 jiffies, the memory of the longest fading: 6 + 2 × 95 / 100 = 7.
        assert_eq!(c.ssthresh(&w), 100 * 102 / 128, "109 of 128, 102 at most");
        // With rates that have changed by more than a fifth a loss halves.
        let (mut c, mut w) = at(&[]);
        w.cwnd = 100;
        for ms in [60, 80] {
            c.pkts_acked(&mut w, &sample(ms));
        }
        c.ssthresh(&w);
        w.cwnd = 3;
        w.jiffies += 50;
        c.pkts_acked(&mut w, &sample(60));
        // Two segments in ten jiffies: 20 a second, of which a quarter counts.
        w.jiffies += 10;
        for _ in 0..2 {
            c.pkts_acked(&mut w, &sample(60));
        }
        w.cwnd = 100;
        assert_eq!(c.ssthresh(&w), 50);
    }

    #[test]
    fn an_undo_brings_back_the_time_of_the_loss_before() {
        let (mut c, mut w) = at(&[("use_rtt_scaling", 0), ("use_bandwidth_switch", 0)]);
        (w.cwnd, w.prior_cwnd, w.jiffies) = (50, 100, 1_300);
        c.on_state(&mut w, CaState::Recovery);
        assert_eq!(c.undo_cwnd(&w), 100);
        c.ssthresh(&w);
        assert_eq!(c.info()[0].1, 22 * 128);
        // Not undone, the time counts from the end of recovery.
        c.on_state(&mut w, CaState::Recovery);
        w.jiffies = 1_350;
        c.on_state(&mut w, CaState::Open);
        c.ssthresh(&w);
        assert_eq!(c.info()[0].1, 128);
    }
}
