//! `nv`: New Vegas: lowers the window to what the rate and the least round trip say fits, for data centres.
//!
//! Follows: linux v6.12 net/ipv4/tcp_nv.c; Brakmo 2010.
//! Differs: no program of BPF gives a base round trip; the period after which the least round trip is forgotten is drawn by the connection's own dice.

use super::path::Dice;
use super::{AckSample, Algorithm, Build, CongestionControl, INFINITE_SSTHRESH, Parameter, Window};
use crate::info::CaState;
use penstock_model::Kernel;
use penstock_model::sockets::ControlDiag;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "nv",
    about: "New Vegas: the window is what rate and round trip say fits (Brakmo)",
    from: Kernel::V6_12,
    parameters: &[
        Parameter::new("nv_min_cwnd", 2),
        Parameter::new("nv_pad", 10),
        Parameter::new("nv_reset_period", 5),
    ],
    build,
};

/// The window does not grow where it is so near to what fits with `nv_pad`.
const PAD_BUFFER: u32 = 2;
/// Of what is too much, so many 128ths go.
const CONG_DEC_MULT: u32 = 30 * 128 / 100;
/// The threshold is so many eighths of what fits.
const SSTHRESH_FACTOR: u32 = 8;
/// A new round trip counts so many 256ths of the mean.
const RTT_FACTOR: u64 = 128;
/// A loss leaves so many 1024ths.
const LOSS_DEC_FACTOR: u32 = 819;
/// Round trips without congestion after which a window that grew slower than Reno grows twice as fast.
const GROWTH_RATE_NEG: u32 = 8;
/// Measurements before the window falls, before it grows, and before slow start ends.
const DEC_EVAL_MIN_CALLS: u8 = 60;
const INC_EVAL_MIN_CALLS: u8 = 20;
const SSTHRESH_EVAL_MIN_CALLS: u8 = 30;
/// Round trips it grows without a decision, and before a decision.
const STOP_RTT_CNT: u8 = 10;
const RTT_MIN_CNT: u8 = 2;
const NO_RTT: u32 = u32::MAX;
const MIN_CWND: u8 = 4;
const MIN_CWND_GROW: u8 = 2;
const TSO_CWND_BOUND: u8 = 80;

fn build(b: &Build<'_>) -> Box<dyn CongestionControl> {
    let of = |name| b.parameters.of(&ALGORITHM, name) as i32;
    let (min_cwnd, pad) = (of("nv_min_cwnd") as u32, of("nv_pad") as u32);
    Box::new(Nv { min_cwnd, pad, reset_period: of("nv_reset_period"), ..Nv::default() })
}

/// The controller of one connection; round trips in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nv {
    // Parameters
    /// Without losses the window does not fall below this, segments.
    min_cwnd: u32,
    /// Segments that may wait.
    pad: u32,
    /// Seconds after which the least round trip is measured anew.
    reset_period: i32,
    // Variables
    min_rtt_reset: u64,
    /// Growth is Reno's times 2 to this.
    growth_factor: i8,
    allow_growth: bool,
    reset: bool,
    eval_call_cnt: u8,
    /// Below this window nothing is decided.
    least_cwnd: u8,
    rtt_cnt: u8,
    last_rtt: u32,
    min_rtt: u32,
    min_rtt_new: u32,
    /// The highest rate in this round trip, 100 bits a second.
    rtt_max_rate: u32,
    rtt_start_seq: u64,
    last_snd_una: u64,
    no_cong_cnt: u32,
    dice: Dice,
}

impl Nv {
    //= linux v6.12 net/ipv4/tcp_nv.c tcpnv_reset
    fn begin(&mut self, w: &Window) {
        self.reset = false;
        (self.no_cong_cnt, self.rtt_cnt, self.last_rtt, self.rtt_max_rate) = (0, 0, 0, 0);
        self.eval_call_cnt = 0;
        (self.rtt_start_seq, self.last_snd_una) = (w.snd_una, w.snd_una);
    }
    /// Takes a measurement.
    fn take(&mut self, w: &Window, rtt_us: u32, in_flight: u32) {
        let mean = match self.last_rtt {
            0 => {
                self.min_rtt = rtt_us << 1;
                rtt_us
            }
            last => ((u64::from(rtt_us) * RTT_FACTOR + u64::from(last) * (256 - RTT_FACTOR)) >> 8) as u32,
        };
        self.last_rtt = mean;
        let rate = (u64::from(in_flight) * 80_000 / u64::from(mean.max(1))) as u32;
        self.rtt_max_rate = self.rtt_max_rate.max(rate);
        self.eval_call_cnt = self.eval_call_cnt.saturating_add(1);
        self.min_rtt = self.min_rtt.min(mean);
        self.min_rtt_new = self.min_rtt_new.min(mean);
        if w.jiffies >= self.min_rtt_reset {
            (self.min_rtt, self.min_rtt_new) = (self.min_rtt_new, NO_RTT);
            let dice = self.dice.draw(256) as i32;
            let period = self.reset_period.wrapping_mul(384 + dice).wrapping_mul(w.hz as i32) >> 9;
            self.min_rtt_reset = w.jiffies.wrapping_add_signed(period.into());
            self.least_cwnd = (self.least_cwnd / 2).max(MIN_CWND);
        }
    }
    /// Once a round trip.
    fn judge(&mut self, w: &mut Window, bytes_acked: u32) {
        self.rtt_start_seq = w.snd_nxt;
        self.rtt_cnt = self.rtt_cnt.saturating_add(1);
        // One ACK in a round trip: segments come together, and a larger window is needed to see anything.
        if self.eval_call_cnt == 1
            && bytes_acked >= (u32::from(self.least_cwnd) - 1).wrapping_mul(w.mss)
            && self.least_cwnd < TSO_CWND_BOUND + 1
        {
            self.least_cwnd = (self.least_cwnd + MIN_CWND_GROW).min(TSO_CWND_BOUND + 1);
            self.rtt_start_seq = w.snd_nxt + u64::from(u32::from(self.least_cwnd).wrapping_mul(w.mss));
            (self.eval_call_cnt, self.allow_growth) = (0, true);
            return;
        }
        let product = u64::from(self.rtt_max_rate) * u64::from(self.min_rtt);
        let fits = ((product / (80_000 * u64::from(w.mss))) as u32).wrapping_add(self.pad);
        if w.cwnd > fits {
            if !self.is_congested(w) {
                return;
            }
            self.allow_growth = false;
            w.ssthresh = SSTHRESH_FACTOR.wrapping_mul(fits) >> 3;
            if w.cwnd - fits > 2 {
                let fall = ((w.cwnd - fits).wrapping_mul(CONG_DEC_MULT) >> 7).max(2);
                w.cwnd -= fall;
            } else {
                w.cwnd = fits;
            }
            self.growth_factor = self.growth_factor.min(0);
            self.no_cong_cnt = 0;
        } else if w.cwnd <= fits.wrapping_sub(PAD_BUFFER) {
            if self.eval_call_cnt < INC_EVAL_MIN_CALLS {
                return;
            }
            self.allow_growth = true;
            self.no_cong_cnt += 1;
            if self.growth_factor < 0 && self.no_cong_cnt > GROWTH_RATE_NEG {
                self.growth_factor += 1;
                self.no_cong_cnt = 0;
            }
        } else {
            return;
        }
        (self.eval_call_cnt, self.rtt_cnt, self.rtt_max_rate) = (0, 0, 0);
        w.cwnd = w.cwnd.max(self.min_cwnd);
    }
    /// Whether enough was measured to say so.
    fn is_congested(&mut self, w: &Window) -> bool {
        if self.rtt_cnt < RTT_MIN_CNT {
            return false;
        }
        if w.ssthresh == INFINITE_SSTHRESH {
            return self.eval_call_cnt >= SSTHRESH_EVAL_MIN_CALLS;
        }
        if self.eval_call_cnt < DEC_EVAL_MIN_CALLS {
            self.allow_growth &= self.rtt_cnt <= STOP_RTT_CNT;
            return false;
        }
        true
    }
}

impl CongestionControl for Nv {
    //= linux v6.12 net/ipv4/tcp_nv.c tcpnv_init
    fn init(&mut self, w: &mut Window) {
        self.begin(w);
        self.allow_growth = true;
        self.min_rtt_reset = w.jiffies + 2 * u64::from(w.hz);
        (self.min_rtt, self.min_rtt_new) = (NO_RTT, NO_RTT);
        (self.least_cwnd, self.growth_factor, self.dice) = (MIN_CWND, 0, Dice::new(w.seed));
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        (w.cwnd.wrapping_mul(LOSS_DEC_FACTOR) >> 10).max(2)
    }
    //= linux v6.12 net/ipv4/tcp_nv.c tcpnv_cong_avoid
    fn cong_avoid(&mut self, w: &mut Window, mut acked: u32) {
        if !w.cwnd_limited || !self.allow_growth {
            return;
        }
        if w.in_slow_start() {
            acked = w.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        let every = match self.growth_factor {
            slower @ ..0 => w.cwnd << -slower,
            faster => (w.cwnd >> faster).max(4),
        };
        w.cong_avoid_ai(every, acked);
    }
    //= linux v6.12 net/ipv4/tcp_nv.c tcpnv_acked
    fn pkts_acked(&mut self, w: &mut Window, sample: &AckSample) {
        let Some(rtt_us) = sample.rtt_us else { return };
        if !matches!(w.state, CaState::Open | CaState::Disorder) {
            return;
        }
        let bytes_acked = (w.snd_una - self.last_snd_una) as u32;
        self.last_snd_una = w.snd_una;
        if sample.in_flight == 0 {
            return;
        }
        self.take(w, rtt_us, sample.in_flight);
        if self.rtt_start_seq < w.snd_una {
            self.judge(w, bytes_acked);
        }
    }
    //= linux v6.12 net/ipv4/tcp_nv.c tcpnv_state
    fn on_state(&mut self, w: &mut Window, state: CaState) {
        if state == CaState::Open && self.reset {
            self.begin(w);
        } else if matches!(state, CaState::Loss | CaState::Cwr | CaState::Recovery) {
            (self.reset, self.allow_growth) = (true, false);
            if state == CaState::Loss {
                self.growth_factor = self.growth_factor.min(0);
                if self.growth_factor > -8 {
                    self.growth_factor -= 1;
                }
            }
        }
    }
    //= linux v6.12 net/ipv4/tcp_nv.c tcpnv_get_info
    fn diag(&self, _: &Window) -> Option<ControlDiag> {
        Some(ControlDiag::Vegas(true, self.last_rtt))
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("enabled", 1),
            ("rttcnt", self.rtt_cnt.into()),
            ("last_rtt_us", self.last_rtt.into()),
            ("min_rtt_us", self.min_rtt.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begun(cwnd: u32) -> (Nv, Window) {
        let mut nv = Nv { min_cwnd: 2, pad: 10, reset_period: 5, ..Nv::default() };
        let mut w = Window::new(250, false);
        (w.mss, w.snd_una, w.snd_nxt) = (1_000, 1, 1);
        nv.init(&mut w);
        (w.cwnd, w.cwnd_limited) = (cwnd, true);
        (nv, w)
    }
    /// A round trip of `calls` ACKs, each after this time and with this much delivered since its segment was sent.
    fn round(nv: &mut Nv, w: &mut Window, calls: u32, rtt_us: u32, segments: u32) {
        w.snd_nxt = w.snd_una + u64::from(calls) * 1_000 + 500;
        for _ in 0..calls {
            w.snd_una += 1_000;
            let in_flight = segments * 1_000;
            let sample = AckSample { pkts_acked: 1, rtt_us: Some(rtt_us), in_flight, ..AckSample::default() };
            nv.pkts_acked(w, &sample);
        }
        w.snd_una = w.snd_nxt;
    }

    #[test]
    fn the_window_falls_towards_what_fits() {
        let (mut nv, mut w) = begun(100);
        // 50 segments in 10 ms: 400 Mbit/s. With the least round trip of 10 ms 50 fit, and ten may wait.
        round(&mut nv, &mut w, 40, 10_000, 50);
        assert_eq!((nv.last_rtt, nv.min_rtt, nv.rtt_max_rate), (10_000, 10_000, 400_000));
        assert_eq!(w.cwnd, 100, "not in the first round trip");
        round(&mut nv, &mut w, 40, 10_000, 50);
        assert_eq!((w.cwnd, w.ssthresh), (100 - ((40 * 38) >> 7), 60), "30 % of 40 too many");
        assert!(!nv.allow_growth);
        // Beyond slow start sixty measurements are needed.
        let cwnd = w.cwnd;
        for _ in 0..2 {
            round(&mut nv, &mut w, 19, 10_000, 50);
        }
        assert_eq!((w.cwnd, nv.eval_call_cnt), (cwnd, 77));
        round(&mut nv, &mut w, 1, 10_000, 50);
        assert_eq!(w.cwnd, cwnd - ((29 * 38) >> 7));
    }

    #[test]
    fn with_room_it_grows() {
        let (mut nv, mut w) = begun(30);
        nv.allow_growth = false;
        for _ in 0..2 {
            round(&mut nv, &mut w, 25, 10_000, 30);
        }
        assert!(nv.allow_growth, "30 of 40 that fit");
        w.ssthresh = 2;
        nv.cong_avoid(&mut w, 30);
        assert_eq!(w.cwnd, 31);
        nv.on_state(&mut w, CaState::Loss);
        assert_eq!((nv.growth_factor, nv.ssthresh(&w)), (-1, (31 * 819) >> 10));
        nv.on_state(&mut w, CaState::Open);
        (nv.allow_growth, w.cwnd_cnt) = (true, 0);
        nv.cong_avoid(&mut w, 61);
        assert_eq!(w.cwnd, 31, "half as fast after a timeout");
        nv.cong_avoid(&mut w, 1);
        assert_eq!(w.cwnd, 32);
    }

    #[test]
    fn the_least_round_trip_is_forgotten() {
        let (mut nv, mut w) = begun(10);
        round(&mut nv, &mut w, 5, 10_000, 10);
        w.jiffies = 499;
        round(&mut nv, &mut w, 5, 30_000, 10);
        assert_eq!(nv.min_rtt, 10_000);
        w.jiffies = 500;
        round(&mut nv, &mut w, 1, 30_000, 10);
        assert_eq!((nv.min_rtt, nv.min_rtt_new), (10_000, NO_RTT));
        // 3.75 s to 6.25 s later.
        assert!((500 + 937..500 + 1_563).contains(&nv.min_rtt_reset), "{}", nv.min_rtt_reset);
        w.jiffies = nv.min_rtt_reset;
        round(&mut nv, &mut w, 1, 30_000, 10);
        assert!(nv.min_rtt > 29_000, "{}", nv.min_rtt);
    }
}
