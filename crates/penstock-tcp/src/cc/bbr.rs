//! `bbr`: sends at the rate the path was seen to deliver and keeps no more in flight than that rate needs (version 1).
//!
//! Follows: linux v6.12 net/ipv4/tcp_bbr.c, net/ipv4/tcp_rate.c; Cardwell et al. 2016.
//! Differs: the dice of the gain cycle are drawn from the connection's own number.

use super::path::{self, BW_SCALE, BW_UNIT, Dice, EXTRA_ROUNDS, Pace, UNIT};
use super::{Algorithm, Build, CongestionControl, INFINITE_SSTHRESH, RateSample, Window};
use crate::info::CaState;
use crate::minmax::WindowedMax;
use penstock_model::Kernel;
use penstock_model::sockets::ControlDiag;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "bbr",
    about: "paces at the rate the path delivers (Cardwell et al., version 1)",
    from: Kernel::V2_6_35,
    parameters: &[],
    build,
};

/// 2/ln 2: the least gain that doubles the rate each round trip.
const HIGH_GAIN: u32 = UNIT * 2885 / 1000 + 1;
const DRAIN_GAIN: u32 = UNIT * 1000 / 2885;
const CWND_GAIN: u32 = UNIT * 2;
/// The cycle of gains: probe, drain, cruise.
const CYCLE: [u32; 8] = [UNIT * 5 / 4, UNIT * 3 / 4, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Rounds the greatest rate is remembered for.
const BW_RTTS: u32 = CYCLE.len() as u32 + 2;
/// Seconds the least round trip is remembered for.
const MIN_RTT_WIN_S: u64 = 10;
/// How long the window stays at its least to measure it, milliseconds.
const PROBE_RTT_MS: u64 = 200;
const MIN_CWND: u32 = 4;
/// The pipe is full when the rate has not grown by a quarter for three rounds.
const FULL_BW_COUNT: u32 = 3;
/// Long-term sampling (policers): rounds of an interval, loss in 256ths, how alike two rates are to be, rounds the rate is kept.
const LT_MIN_RTTS: u32 = 4;
const LT_LOSS: u64 = 50;
const LT_RATIO: u64 = UNIT as u64 / 8;
const LT_DIFF_BYTES_S: u64 = 4_000 / 8;
const LT_MAX_RTTS: u32 = 48;
fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Bbr::default())
}

/// What it is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Mode {
    #[default]
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// The controller of one connection; names as in Linux.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bbr {
    mode: Mode,
    min_rtt_us: u32,
    min_rtt_stamp: u64,
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,
    bw: WindowedMax,
    rtt_cnt: u32,
    next_rtt_delivered: u64,
    cycle_us: u64,
    cycle_idx: usize,
    prev_state: Option<CaState>,
    packet_conservation: bool,
    round_start: bool,
    idle_restart: bool,
    lt_is_sampling: bool,
    lt_rtt_cnt: u32,
    lt_use_bw: bool,
    lt_bw: u64,
    lt_last_delivered: u64,
    lt_last_us: u64,
    lt_last_lost: u64,
    pacing_gain: u32,
    cwnd_gain: u32,
    full_bw_reached: bool,
    full_bw_cnt: u32,
    full_bw: u64,
    pace: Pace,
    prior_cwnd: u32,
    ack_epoch_us: u64,
    ack_epoch_acked: u64,
    extra_acked: [u32; 2],
    extra_rtts: u32,
    extra_idx: usize,
    dice: Dice,
}

impl Bbr {
    fn bw(&self) -> u64 {
        if self.lt_use_bw { self.lt_bw } else { self.bw.value() }
    }
    fn set_pacing_rate(&mut self, w: &mut Window, bw: u64, gain: u32) {
        self.pace.set(w, bw, gain, self.full_bw_reached, HIGH_GAIN);
    }
    fn save_cwnd(&mut self, w: &Window) {
        self.prior_cwnd = path::saved(w, self.prior_cwnd, self.prev_state, self.mode == Mode::ProbeRtt);
    }

    // ---- What fits ----

    fn bdp(&self, bw: u64, gain: u32) -> u32 {
        path::bdp(self.min_rtt_us, bw, gain)
    }
    fn quantization_budget(&self, w: &Window, cwnd: u32) -> u32 {
        let mut cwnd = cwnd + 3 * path::tso_segs_goal(w);
        cwnd = (cwnd + 1) & !1;
        if self.mode == Mode::ProbeBw && self.cycle_idx == 0 {
            cwnd += 2;
        }
        cwnd
    }
    fn inflight(&self, w: &Window, bw: u64, gain: u32) -> u32 {
        self.quantization_budget(w, self.bdp(bw, gain))
    }
    /// What will be in the network when the next segment may leave.
    fn in_net_at_edt(&self, w: &Window, now: u32) -> u32 {
        let wait_us = ((w.wstamp_ns.max(0) as u64) / 1_000).saturating_sub(w.now_us);
        let delivered = (self.bw() * wait_us) >> BW_SCALE;
        let mut at = u64::from(now);
        if self.pacing_gain > UNIT {
            at += u64::from(path::tso_segs_goal(w));
        }
        at.saturating_sub(delivered) as u32
    }

    // ---- The model ----

    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_update_bw
    fn update_bw(&mut self, w: &Window, rs: &RateSample) {
        self.round_start = false;
        let Some((delivered, interval_us)) = rs.rate else { return };
        if rs.prior_delivered >= self.next_rtt_delivered {
            self.next_rtt_delivered = w.delivered;
            self.rtt_cnt += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        self.lt_bw_sampling(w, rs);
        let bw = delivered * BW_UNIT / interval_us.max(1);
        if !rs.app_limited || bw >= self.bw.value() {
            self.bw.update(BW_RTTS, self.rtt_cnt, bw);
        }
    }

    fn reset_lt_interval(&mut self, w: &Window) {
        self.lt_last_us = w.delivered_us;
        self.lt_last_delivered = w.delivered;
        self.lt_last_lost = w.lost;
        self.lt_rtt_cnt = 0;
    }
    fn reset_lt(&mut self, w: &Window) {
        (self.lt_bw, self.lt_use_bw, self.lt_is_sampling) = (0, false, false);
        self.reset_lt_interval(w);
    }
    /// Whether a policer stands in the way: two intervals with much loss and the same rate.
    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_lt_bw_sampling, bbr_lt_bw_interval_done
    fn lt_bw_sampling(&mut self, w: &Window, rs: &RateSample) {
        if self.lt_use_bw {
            if self.mode == Mode::ProbeBw && self.round_start {
                self.lt_rtt_cnt += 1;
                if self.lt_rtt_cnt >= LT_MAX_RTTS {
                    self.reset_lt(w);
                    self.reset_probe_bw(w);
                }
            }
            return;
        }
        if !self.lt_is_sampling {
            if rs.losses == 0 {
                return;
            }
            self.reset_lt_interval(w);
            self.lt_is_sampling = true;
        }
        if rs.app_limited {
            return self.reset_lt(w);
        }
        self.lt_rtt_cnt += u32::from(self.round_start);
        if self.lt_rtt_cnt < LT_MIN_RTTS {
            return;
        }
        if self.lt_rtt_cnt > 4 * LT_MIN_RTTS {
            return self.reset_lt(w);
        }
        if rs.losses == 0 {
            return;
        }
        let lost = w.lost - self.lt_last_lost;
        let delivered = w.delivered - self.lt_last_delivered;
        if delivered == 0 || lost << 8 < LT_LOSS * delivered {
            return;
        }
        let ms = (w.delivered_us / 1_000).saturating_sub(self.lt_last_us / 1_000);
        if ms < 1 {
            return;
        }
        let bw = delivered * BW_UNIT / (ms * 1_000);
        if self.lt_bw > 0 {
            let diff = bw.abs_diff(self.lt_bw);
            if diff * u64::from(UNIT) <= LT_RATIO * self.lt_bw
                || path::rate_bytes_s(w, diff, UNIT) <= LT_DIFF_BYTES_S
            {
                self.lt_bw = (bw + self.lt_bw) >> 1;
                self.lt_use_bw = true;
                self.pacing_gain = UNIT;
                self.lt_rtt_cnt = 0;
                return;
            }
        }
        self.lt_bw = bw;
        self.reset_lt_interval(w);
    }

    /// How many more ACKs come at once than the rate explains.
    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_update_ack_aggregation
    fn update_ack_aggregation(&mut self, w: &Window, rs: &RateSample) {
        if rs.acked_sacked == 0 || rs.rate.is_none() {
            return;
        }
        if self.round_start {
            self.extra_rtts = (self.extra_rtts + 1).min(0x1f);
            if self.extra_rtts >= EXTRA_ROUNDS {
                self.extra_rtts = 0;
                self.extra_idx ^= 1;
                self.extra_acked[self.extra_idx] = 0;
            }
        }
        let acked = u64::from(rs.acked_sacked);
        let epoch_us = w.delivered_us.saturating_sub(self.ack_epoch_us);
        let mut expected = (self.bw() * epoch_us) >> BW_SCALE;
        if self.ack_epoch_acked <= expected || self.ack_epoch_acked + acked >= 1 << 20 {
            self.ack_epoch_acked = 0;
            self.ack_epoch_us = w.delivered_us;
            expected = 0;
        }
        self.ack_epoch_acked = (self.ack_epoch_acked + acked).min(0xf_ffff);
        let extra = self.ack_epoch_acked.saturating_sub(expected).min(u64::from(w.cwnd)) as u32;
        let held = &mut self.extra_acked[self.extra_idx];
        *held = extra.max(*held);
    }

    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_is_next_cycle_phase
    fn update_cycle_phase(&mut self, w: &Window, rs: &RateSample) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let full = w.delivered_us.saturating_sub(self.cycle_us) > u64::from(self.min_rtt_us);
        let next = if self.pacing_gain == UNIT {
            full
        } else {
            let inflight = self.in_net_at_edt(w, rs.prior_in_flight);
            let bw = self.bw.value();
            if self.pacing_gain > UNIT {
                full && (rs.losses > 0 || inflight >= self.inflight(w, bw, self.pacing_gain))
            } else {
                full || inflight <= self.inflight(w, bw, UNIT)
            }
        };
        if next {
            self.advance_cycle(w);
        }
    }
    fn advance_cycle(&mut self, w: &Window) {
        self.cycle_idx = (self.cycle_idx + 1) % CYCLE.len();
        self.cycle_us = w.delivered_us;
    }
    fn reset_probe_bw(&mut self, w: &Window) {
        self.mode = Mode::ProbeBw;
        self.cycle_idx = CYCLE.len() - 1 - self.dice.draw(7) as usize;
        self.advance_cycle(w);
    }
    fn reset_mode(&mut self, w: &Window) {
        if self.full_bw_reached {
            self.reset_probe_bw(w);
        } else {
            self.mode = Mode::Startup;
        }
    }

    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_check_full_bw_reached
    fn check_full_bw(&mut self, rs: &RateSample) {
        if self.full_bw_reached || !self.round_start || rs.app_limited {
            return;
        }
        if self.bw.value() >= (self.full_bw * 5 / 4) {
            self.full_bw = self.bw.value();
            self.full_bw_cnt = 0;
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_reached = self.full_bw_cnt >= FULL_BW_COUNT;
    }
    fn check_drain(&mut self, w: &mut Window) {
        if self.mode == Mode::Startup && self.full_bw_reached {
            self.mode = Mode::Drain;
            w.ssthresh = self.inflight(w, self.bw.value(), UNIT);
        }
        if self.mode == Mode::Drain
            && self.in_net_at_edt(w, w.in_flight) <= self.inflight(w, self.bw.value(), UNIT)
        {
            self.reset_probe_bw(w);
        }
    }

    fn check_probe_rtt_done(&mut self, w: &mut Window) {
        if self.probe_rtt_done.is_some_and(|t| w.jiffies > t) {
            self.min_rtt_stamp = w.jiffies;
            w.cwnd = w.cwnd.max(self.prior_cwnd);
            self.reset_mode(w);
        }
    }
    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_update_min_rtt
    fn update_min_rtt(&mut self, w: &mut Window, rs: &RateSample) {
        let expired = w.jiffies > self.min_rtt_stamp + MIN_RTT_WIN_S * u64::from(w.hz);
        if let Some(rtt) = rs.rtt_us
            && (rtt < self.min_rtt_us || expired && !rs.ack_delayed)
        {
            self.min_rtt_us = rtt;
            self.min_rtt_stamp = w.jiffies;
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd(w);
            self.probe_rtt_done = None;
        }
        if self.mode == Mode::ProbeRtt {
            w.app_limited = (w.delivered + u64::from(w.in_flight)).max(1);
            if self.probe_rtt_done.is_none() && w.in_flight <= MIN_CWND {
                self.probe_rtt_done = Some(w.jiffies + (PROBE_RTT_MS * u64::from(w.hz)).div_ceil(1_000));
                self.probe_rtt_round_done = false;
                self.next_rtt_delivered = w.delivered;
            } else if self.probe_rtt_done.is_some() {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(w);
                }
            }
        }
        if rs.rate.is_some_and(|r| r.0 > 0) {
            self.idle_restart = false;
        }
    }

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (HIGH_GAIN, HIGH_GAIN),
            Mode::Drain => (DRAIN_GAIN, HIGH_GAIN),
            Mode::ProbeBw if self.lt_use_bw => (UNIT, CWND_GAIN),
            Mode::ProbeBw => (CYCLE[self.cycle_idx], CWND_GAIN),
            Mode::ProbeRtt => (UNIT, UNIT),
        };
    }

    // ---- The window ----

    /// The window of the first round of a recovery, or the one before it; whether it stands.
    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_set_cwnd_to_recover_or_restore
    fn recover_or_restore(&mut self, w: &Window, rs: &RateSample, cwnd: &mut u32) -> bool {
        let before = self.prev_state.unwrap_or(CaState::Open);
        if rs.losses > 0 {
            *cwnd = cwnd.saturating_sub(rs.losses).max(1);
        }
        if w.state == CaState::Recovery && before != CaState::Recovery {
            self.packet_conservation = true;
            self.next_rtt_delivered = w.delivered;
            *cwnd = w.in_flight + rs.acked_sacked;
        } else if before >= CaState::Recovery && w.state < CaState::Recovery {
            *cwnd = (*cwnd).max(self.prior_cwnd);
            self.packet_conservation = false;
        }
        self.prev_state = Some(w.state);
        if self.packet_conservation {
            *cwnd = (*cwnd).max(w.in_flight + rs.acked_sacked);
        }
        self.packet_conservation
    }
    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_set_cwnd
    fn set_cwnd(&mut self, w: &mut Window, rs: &RateSample) {
        let mut cwnd = w.cwnd;
        if rs.acked_sacked > 0 && !self.recover_or_restore(w, rs, &mut cwnd) {
            let mut target = self.bdp(self.bw(), self.cwnd_gain);
            if self.full_bw_reached {
                target += path::extra(self.bw(), self.extra_acked);
            }
            target = self.quantization_budget(w, target);
            cwnd = path::grown(w, rs, cwnd, target, self.full_bw_reached);
            cwnd = cwnd.max(MIN_CWND);
        }
        w.cwnd = cwnd.min(w.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            w.cwnd = w.cwnd.min(MIN_CWND);
        }
    }
}

impl CongestionControl for Bbr {
    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_min_tso_segs
    fn min_tso_segs(&self, rate: u64) -> Option<u32> {
        Some(path::min_tso_segs(rate))
    }
    fn init(&mut self, w: &mut Window) {
        *self = Bbr {
            next_rtt_delivered: w.delivered,
            min_rtt_us: w.min_rtt_us,
            min_rtt_stamp: w.jiffies,
            ack_epoch_us: w.now_us,
            pacing_gain: HIGH_GAIN,
            cwnd_gain: HIGH_GAIN,
            dice: Dice::new(w.seed),
            ..Bbr::default()
        };
        w.ssthresh = INFINITE_SSTHRESH;
        self.pace.init(w, HIGH_GAIN);
        self.reset_lt(w);
    }
    fn takes_over(&self) -> bool {
        true
    }
    fn cong_control(&mut self, w: &mut Window, rs: &RateSample) {
        self.update_bw(w, rs);
        self.update_ack_aggregation(w, rs);
        self.update_cycle_phase(w, rs);
        self.check_full_bw(rs);
        self.check_drain(w);
        self.update_min_rtt(w, rs);
        self.update_gains();
        let bw = self.bw();
        self.set_pacing_rate(w, bw, self.pacing_gain);
        self.set_cwnd(w, rs);
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        self.save_cwnd(w);
        w.ssthresh
    }
    fn cong_avoid(&mut self, _: &mut Window, _: u32) {}
    fn undo_cwnd(&mut self, w: &Window) -> u32 {
        self.full_bw = 0;
        self.full_bw_cnt = 0;
        self.reset_lt(w);
        w.cwnd
    }
    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_set_state
    fn on_state(&mut self, w: &mut Window, state: CaState) {
        if state == CaState::Loss {
            self.prev_state = Some(CaState::Loss);
            self.full_bw = 0;
            self.round_start = true;
            let lost = RateSample { losses: 1, ..RateSample::default() };
            self.lt_bw_sampling(w, &lost);
        }
    }
    fn on_tx_start(&mut self, w: &mut Window) {
        if w.app_limited == 0 {
            return;
        }
        self.idle_restart = true;
        self.ack_epoch_us = w.now_us;
        self.ack_epoch_acked = 0;
        if self.mode == Mode::ProbeBw {
            let bw = self.bw();
            self.set_pacing_rate(w, bw, UNIT);
        } else if self.mode == Mode::ProbeRtt {
            self.check_probe_rtt_done(w);
        }
    }
    fn sndbuf_windows(&self) -> u32 {
        3
    }
    fn diag(&self, w: &Window) -> Option<ControlDiag> {
        let bytes = (self.bw() * u64::from(w.mss) * 1_000_000) >> BW_SCALE;
        Some(ControlDiag::Bbr(bytes, self.min_rtt_us, self.pacing_gain, self.cwnd_gain))
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("mode", self.mode as u64),
            ("bw_segments_s", (self.bw() * 1_000_000) >> BW_SCALE),
            ("min_rtt_us", self.min_rtt_us.into()),
            ("pacing_gain_256", self.pacing_gain.into()),
            ("cwnd_gain_256", self.cwnd_gain.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn startup_ends_when_the_rate_grows_no_more() {
        let mut b = Bbr::default();
        let mut w = Window::new(250, false);
        (w.mss, w.cwnd, w.srtt_us8, w.min_rtt_us) = (1_448, 10, 160_000, 20_000);
        b.init(&mut w);
        assert!(b.takes_over());
        // A segment each 100 us is all that comes, a window in 20 ms.
        for round in 1..=6u64 {
            w.now_us += 20_000;
            w.jiffies += 5;
            w.delivered += 200;
            w.delivered_us = w.now_us;
            let rs = RateSample {
                rate: Some((200, 20_000)),
                prior_delivered: w.delivered - 200,
                rtt_us: Some(20_000),
                acked_sacked: 200,
                prior_in_flight: 200,
                ..RateSample::default()
            };
            b.cong_control(&mut w, &rs);
            assert_eq!(b.full_bw_reached, round >= 4, "three rounds without growth: {round}");
        }
        // Twice what the path holds, with three bursts and what ACKs bring at once.
        assert!((400..=640).contains(&w.cwnd), "{}", w.cwnd);
        let rate = w.pacing_rate.unwrap();
        assert!((9_000_000..=19_000_000).contains(&rate), "{rate}");
    }
}
