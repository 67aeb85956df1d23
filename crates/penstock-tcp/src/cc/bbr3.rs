//! `bbr3`: BBR version 3, which heeds loss: it probes for more in rounds far apart, and keeps below what was too much the last time.
//!
//! Follows: draft-ietf-ccwg-bbr-02 sections 5.2 to 5.6 (names are the draft's); net/ipv4/tcp_bbr.c of google/bbr, branch v3.
//! Differs: what was lost is judged when an ACK tells of it, by the segment that arrived, not segment by segment with the excess
//! shared out (`InflightHiFromLostPacket`). ECN is not heeded (the draft has none; the branch does it only between machines of one
//! datacentre). The dice are drawn from the connection's own number.

mod probe;

use super::path::{self, BW_SCALE, BW_UNIT, Dice, EXTRA_ROUNDS, Pace, UNIT};
use super::{Algorithm, Build, CongestionControl, INFINITE_SSTHRESH, RateSample, Window};
use crate::info::CaState;
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "bbr3",
    about: "BBR version 3: bounded by loss, probes every two to three seconds (draft-ietf-ccwg-bbr)",
    from: Kernel::V2_6_35,
    parameters: &[],
    build,
};

/// Gains in 256ths: 4 ln 2; 0.5; 0.9; 1.25; windows 2 and 2.25.
const STARTUP_PACING: u32 = UNIT * 277 / 100 + 1;
const DRAIN_PACING: u32 = UNIT / 2;
const DOWN_PACING: u32 = UNIT * 9 / 10;
const UP_PACING: u32 = UNIT * 5 / 4;
const CWND_GAIN: u32 = UNIT * 2;
const UP_CWND_GAIN: u32 = UNIT * 9 / 4;
const PROBE_RTT_CWND_GAIN: u32 = UNIT / 2;
/// `BBRLossThresh` 2 %, `BBRBeta` 0.7, `BBRHeadroom` 0.15, in hundredths.
const LOSS_THRESH: u64 = 2;
const BETA: u64 = 70;
const HEADROOM: u64 = 15;
/// `BBRMinPipeCwnd`, segments.
const MIN_PIPE: u32 = 4;
/// Times in microseconds: how long the least round trip counts, how often it is looked for and for how long.
const MIN_RTT_FILTER_US: u64 = 10_000_000;
const PROBE_RTT_INTERVAL_US: u64 = 5_000_000;
const PROBE_RTT_US: u64 = 200_000;
/// Rounds without a quarter more until the pipe is full; ACKs with losses in one round until Startup ends.
const FULL_BW_ROUNDS: u32 = 3;
const FULL_LOSS_COUNT: u32 = 6;
/// Longest distance of two probes in rounds, for fairness with Reno.
const RENO_ROUNDS: u32 = 63;
/// No bound.
const INFINITE: u32 = u32::MAX;

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Bbr3::default())
}

/// `BBR.state`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum State {
    #[default]
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

/// `BBR.ack_phase`: how what is acknowledged now was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// The controller of one connection; names as in the draft. Rates are segments a microsecond in 2^-24ths, volumes segments.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bbr3 {
    state: State,
    ack_phase: AckPhase,
    pacing_gain: u32,
    cwnd_gain: u32,
    /// The greatest rate of the cycle before and of this one.
    max_bw: [u64; 2],
    bw: u64,
    bw_lo: Option<u64>,
    inflight_hi: u32,
    inflight_lo: u32,
    bw_latest: u64,
    inflight_latest: u32,
    next_round_delivered: u64,
    round_start: bool,
    rounds_since_bw_probe: u32,
    loss_round_delivered: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    loss_events_in_round: u32,
    full_bw: u64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,
    bw_probe_wait_us: u64,
    bw_probe_up_rounds: u32,
    bw_probe_up_acks: u32,
    probe_up_cnt: u32,
    bw_probe_samples: bool,
    cycle_stamp: u64,
    min_rtt_us: u32,
    min_rtt_stamp: u64,
    probe_rtt_min_us: u32,
    probe_rtt_min_stamp: u64,
    probe_rtt_expired: bool,
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,
    idle_restart: bool,
    prior_cwnd: u32,
    before: Option<CaState>,
    pace: Pace,
    ack_epoch_us: u64,
    ack_epoch_acked: u64,
    extra_acked: [u32; 2],
    extra_rounds: u32,
    dice: Dice,
}

/// The rate a sample tells, and the segments delivered in it.
fn rate(rs: &RateSample) -> (u64, u32) {
    let Some((delivered, us)) = rs.rate else { return (0, 0) };
    (delivered * BW_UNIT / us.max(1), delivered as u32)
}

impl Bbr3 {
    fn max_bw(&self) -> u64 {
        self.max_bw[0].max(self.max_bw[1])
    }
    fn is_probing_bw(&self) -> bool {
        matches!(self.state, State::Startup | State::Refill | State::Up)
    }
    fn in_probe_bw(&self) -> bool {
        matches!(self.state, State::Down | State::Cruise | State::Refill | State::Up)
    }
    /// `BBRBDPMultiple`.
    fn bdp(&self, bw: u64, gain: u32) -> u32 {
        path::bdp(self.min_rtt_us, bw, gain)
    }
    /// `BBRQuantizationBudget`.
    fn budget(&self, w: &Window, inflight: u32) -> u32 {
        let least = inflight.max(3 * path::tso_segs_goal(w)).max(MIN_PIPE);
        if self.state == State::Up { least + 2 } else { least }
    }
    /// `BBRInflight`.
    fn inflight(&self, w: &Window, gain: u32) -> u32 {
        self.budget(w, self.bdp(self.max_bw(), gain))
    }
    /// `BBRInflightWithHeadroom`.
    fn with_headroom(&self) -> u32 {
        if self.inflight_hi == INFINITE {
            return INFINITE;
        }
        let headroom = (u64::from(self.inflight_hi) * HEADROOM / 100).max(1) as u32;
        self.inflight_hi.saturating_sub(headroom).max(MIN_PIPE)
    }
    /// `BBRTargetInflight`.
    fn target_inflight(&self, w: &Window) -> u32 {
        self.bdp(self.bw, UNIT).min(w.cwnd)
    }
    fn set_pacing_rate(&mut self, w: &mut Window, gain: u32) {
        self.pace.set(w, self.bw, gain, self.full_bw_reached, STARTUP_PACING);
    }
    /// `BBRSaveCwnd`.
    fn save_cwnd(&mut self, w: &Window) {
        self.prior_cwnd = path::saved(w, self.prior_cwnd, self.before, self.state == State::ProbeRtt);
    }

    // ---- The model ----

    fn start_round(&mut self, w: &Window) {
        self.next_round_delivered = w.delivered;
    }
    fn update_latest_delivery_signals(&mut self, w: &Window, rs: &RateSample) {
        let (bw, delivered) = rate(rs);
        self.bw_latest = self.bw_latest.max(bw);
        self.inflight_latest = self.inflight_latest.max(delivered);
        self.loss_round_start = rs.rate.is_some() && rs.prior_delivered >= self.loss_round_delivered;
        if self.loss_round_start {
            self.loss_round_delivered = w.delivered;
        }
    }
    fn update_congestion_signals(&mut self, w: &Window, rs: &RateSample) {
        // BBRUpdateRound, BBRUpdateMaxBw.
        self.round_start = rs.rate.is_some() && rs.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round(w);
            self.rounds_since_bw_probe += 1;
        }
        let (bw, _) = rate(rs);
        if bw > 0 && (bw >= self.max_bw() || !rs.app_limited) {
            self.max_bw[1] = self.max_bw[1].max(bw);
        }
        self.loss_in_round |= rs.losses > 0;
        if !self.loss_round_start {
            return;
        }
        // BBRAdaptLowerBoundsFromCongestion.
        if self.loss_in_round && !self.is_probing_bw() {
            let (max_bw, cwnd) = (self.max_bw(), w.cwnd);
            let lo = self.bw_lo.unwrap_or(max_bw);
            self.bw_lo = Some(self.bw_latest.max(lo / 100 * BETA));
            let lo = if self.inflight_lo == INFINITE { cwnd } else { self.inflight_lo };
            self.inflight_lo = self.inflight_latest.max((u64::from(lo) * BETA / 100) as u32);
        }
        self.loss_in_round = false;
    }
    fn update_ack_aggregation(&mut self, w: &Window, rs: &RateSample) {
        if rs.acked_sacked == 0 || rs.rate.is_none() {
            return;
        }
        if self.round_start {
            self.extra_rounds += 1;
            if self.extra_rounds >= EXTRA_ROUNDS {
                self.extra_rounds = 0;
                self.extra_acked = [0, self.extra_acked[0]];
            }
        }
        let epoch_us = w.delivered_us.saturating_sub(self.ack_epoch_us);
        let mut expected = (self.bw * epoch_us) >> BW_SCALE;
        if self.ack_epoch_acked <= expected {
            (self.ack_epoch_acked, self.ack_epoch_us, expected) = (0, w.delivered_us, 0);
        }
        self.ack_epoch_acked = (self.ack_epoch_acked + u64::from(rs.acked_sacked)).min(0xf_ffff);
        let extra = self.ack_epoch_acked.saturating_sub(expected).min(u64::from(w.cwnd)) as u32;
        self.extra_acked[0] = self.extra_acked[0].max(extra);
    }
    fn reset_full_bw(&mut self, bw: u64) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (bw, 0, false);
    }
    fn check_full_bw_reached(&mut self, rs: &RateSample) {
        if self.full_bw_now || !self.round_start || rs.app_limited {
            return;
        }
        let (bw, _) = rate(rs);
        if bw >= self.full_bw + self.full_bw / 4 {
            return self.reset_full_bw(bw);
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }
    /// `BBRCheckStartupDone`, `BBRCheckStartupHighLoss`.
    fn check_startup_done(&mut self, w: &Window, rs: &RateSample) {
        if self.state != State::Startup {
            return;
        }
        self.loss_events_in_round += u32::from(rs.losses > 0);
        if self.loss_round_start {
            let recovering = w.state == CaState::Recovery;
            if recovering && self.loss_events_in_round >= FULL_LOSS_COUNT && Bbr3::too_high(rs) {
                self.full_bw_reached = true;
                self.inflight_hi = self.bdp(self.max_bw(), UNIT).max(self.inflight_latest);
            }
            self.loss_events_in_round = 0;
        }
        if self.full_bw_reached {
            self.state = State::Drain;
        }
    }
    fn check_drain_done(&mut self, w: &mut Window) {
        if self.state == State::Drain && w.in_flight <= self.inflight(w, UNIT) {
            w.ssthresh = self.inflight(w, UNIT);
            self.start_down(w);
        }
    }

    // ---- The round trip ----

    fn update_min_rtt(&mut self, w: &Window, rs: &RateSample) {
        self.probe_rtt_expired = w.now_us > self.probe_rtt_min_stamp + PROBE_RTT_INTERVAL_US;
        if let Some(rtt) = rs.rtt_us
            && (rtt < self.probe_rtt_min_us || self.probe_rtt_expired && !rs.ack_delayed)
        {
            (self.probe_rtt_min_us, self.probe_rtt_min_stamp) = (rtt, w.now_us);
        }
        let expired = w.now_us > self.min_rtt_stamp + MIN_RTT_FILTER_US;
        if self.probe_rtt_min_us < self.min_rtt_us || expired {
            (self.min_rtt_us, self.min_rtt_stamp) = (self.probe_rtt_min_us, self.probe_rtt_min_stamp);
        }
    }
    fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp(self.bw, PROBE_RTT_CWND_GAIN).max(MIN_PIPE)
    }
    fn check_probe_rtt(&mut self, w: &mut Window, rs: &RateSample) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_cwnd(w);
            self.state = State::ProbeRtt;
            self.probe_rtt_done = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round(w);
        }
        if self.state == State::ProbeRtt {
            w.app_limited = (w.delivered + u64::from(w.in_flight)).max(1);
            if self.probe_rtt_done.is_none() && w.in_flight <= self.probe_rtt_cwnd() {
                self.probe_rtt_done = Some(w.now_us + PROBE_RTT_US);
                self.probe_rtt_round_done = false;
                self.start_round(w);
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
    fn check_probe_rtt_done(&mut self, w: &mut Window) {
        if self.probe_rtt_done.is_none_or(|done| w.now_us <= done) {
            return;
        }
        self.probe_rtt_min_stamp = w.now_us;
        w.cwnd = w.cwnd.max(self.prior_cwnd);
        // BBRExitProbeRTT.
        (self.bw_lo, self.inflight_lo) = (None, INFINITE);
        if self.full_bw_reached {
            self.start_down(w);
            self.state = State::Cruise;
        } else {
            self.state = State::Startup;
        }
    }

    // ---- What follows ----

    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.state {
            State::Startup => (STARTUP_PACING, CWND_GAIN),
            State::Drain => (DRAIN_PACING, CWND_GAIN),
            State::Down => (DOWN_PACING, CWND_GAIN),
            State::Cruise | State::Refill => (UNIT, CWND_GAIN),
            State::Up => (UP_PACING, UP_CWND_GAIN),
            State::ProbeRtt => (UNIT, PROBE_RTT_CWND_GAIN),
        };
    }
    /// `BBRSetCwnd`.
    fn set_cwnd(&mut self, w: &mut Window, rs: &RateSample) {
        let mut cwnd = w.cwnd;
        let before = self.before.replace(w.state).unwrap_or(CaState::Open);
        if before >= CaState::Recovery && w.state < CaState::Recovery {
            cwnd = cwnd.max(self.prior_cwnd);
        }
        if rs.losses > 0 {
            cwnd = cwnd.saturating_sub(rs.losses).max(1);
        }
        if rs.acked_sacked > 0 {
            let extra = path::extra(self.bw, self.extra_acked);
            let target = self.budget(w, self.bdp(self.bw, self.cwnd_gain).saturating_add(extra));
            cwnd = path::grown(w, rs, cwnd, target, self.full_bw_reached);
        }
        cwnd = cwnd.max(MIN_PIPE);
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        // BBRBoundCwndForModel.
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_hi,
            State::ProbeRtt | State::Cruise => self.with_headroom(),
            State::Startup | State::Drain => INFINITE,
        };
        w.cwnd = cwnd.min(cap.min(self.inflight_lo).max(MIN_PIPE)).min(w.cwnd_clamp);
    }
}

impl CongestionControl for Bbr3 {
    fn init(&mut self, w: &mut Window) {
        *self = Bbr3 {
            next_round_delivered: w.delivered,
            loss_round_delivered: w.delivered,
            min_rtt_us: w.min_rtt_us,
            min_rtt_stamp: w.now_us,
            probe_rtt_min_us: w.min_rtt_us,
            probe_rtt_min_stamp: w.now_us,
            inflight_hi: INFINITE,
            inflight_lo: INFINITE,
            probe_up_cnt: INFINITE,
            ack_epoch_us: w.now_us,
            pacing_gain: STARTUP_PACING,
            cwnd_gain: CWND_GAIN,
            dice: Dice::new(w.seed),
            ..Bbr3::default()
        };
        w.ssthresh = INFINITE_SSTHRESH;
        self.pace.init(w, STARTUP_PACING);
    }
    fn takes_over(&self) -> bool {
        true
    }
    /// `BBRUpdateModelAndState`, `BBRUpdateControlParameters`.
    fn cong_control(&mut self, w: &mut Window, rs: &RateSample) {
        self.update_latest_delivery_signals(w, rs);
        self.update_congestion_signals(w, rs);
        self.update_ack_aggregation(w, rs);
        self.check_full_bw_reached(rs);
        self.check_startup_done(w, rs);
        self.check_drain_done(w);
        self.update_cycle_phase(w, rs);
        self.update_min_rtt(w, rs);
        self.check_probe_rtt(w, rs);
        if self.loss_round_start {
            (self.bw_latest, self.inflight_latest) = rate(rs);
        }
        self.bw = self.bw_lo.map_or(self.max_bw(), |lo| lo.min(self.max_bw()));
        self.update_gains();
        self.set_pacing_rate(w, self.pacing_gain);
        self.set_cwnd(w, rs);
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        self.save_cwnd(w);
        w.ssthresh
    }
    fn cong_avoid(&mut self, _: &mut Window, _: u32) {}
    fn undo_cwnd(&mut self, w: &Window) -> u32 {
        self.reset_full_bw(0);
        self.loss_in_round = false;
        w.cwnd.max(self.prior_cwnd)
    }
    fn on_state(&mut self, w: &mut Window, state: CaState) {
        if state == CaState::Loss {
            self.before = Some(CaState::Loss);
            self.reset_full_bw(0);
            if !self.is_probing_bw() && self.inflight_lo == INFINITE {
                self.inflight_lo = w.cwnd.max(self.prior_cwnd);
            }
        }
    }
    /// `BBRHandleRestartFromIdle`.
    fn on_tx_start(&mut self, w: &mut Window) {
        if w.app_limited == 0 {
            return;
        }
        self.idle_restart = true;
        (self.ack_epoch_us, self.ack_epoch_acked) = (w.now_us, 0);
        if self.in_probe_bw() {
            self.set_pacing_rate(w, UNIT);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(w);
        }
    }
    fn sndbuf_windows(&self) -> u32 {
        3
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("state", self.state as u64),
            ("bw_segments_s", (self.bw * 1_000_000) >> BW_SCALE),
            ("min_rtt_us", self.min_rtt_us.into()),
            ("inflight_hi", self.inflight_hi.into()),
            ("inflight_lo", self.inflight_lo.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start() -> (Bbr3, Window) {
        let (mut b, mut w) = (Bbr3::default(), Window::new(250, false));
        (w.mss, w.cwnd, w.srtt_us8, w.min_rtt_us) = (1_448, 10, 160_000, 20_000);
        b.init(&mut w);
        (b, w)
    }
    /// A round of 20 ms in which 200 segments arrive, as many as the path takes.
    fn round(b: &mut Bbr3, w: &mut Window, lost: u32, tx_in_flight: u32) {
        w.now_us += 20_000;
        w.delivered += 200;
        w.delivered_us = w.now_us;
        w.in_flight = tx_in_flight.min(200);
        let rs = RateSample {
            rate: Some((200, 20_000)),
            prior_delivered: w.delivered - 200,
            rtt_us: Some(20_000),
            acked_sacked: 200,
            prior_in_flight: 200,
            losses: lost,
            lost,
            tx_in_flight,
            ..RateSample::default()
        };
        b.cong_control(w, &rs);
    }

    /// Rounds without loss until it is in this state.
    fn until(b: &mut Bbr3, w: &mut Window, state: State, tx_in_flight: u32) {
        for _ in 0..500 {
            if b.state == state {
                return;
            }
            round(b, w, 0, tx_in_flight);
        }
        panic!("{:?} instead of {state:?}", b.state);
    }

    #[test]
    fn startup_drain_and_the_cycle() {
        let (mut b, mut w) = start();
        let mut seen = vec![b.state];
        for _ in 0..160 {
            round(&mut b, &mut w, 0, 200);
            if *seen.last().unwrap() != b.state {
                seen.push(b.state);
            }
        }
        // The pipe is full after three rounds without growth; what is in flight is at the product at once, so that draining takes no round.
        use State::{Cruise, Down, Refill, Startup, Up};
        assert!(seen.starts_with(&[Startup, Cruise, Refill, Up, Down, Cruise, Refill]), "{seen:?}");
        assert!((400..=640).contains(&w.cwnd), "{}", w.cwnd);
    }

    #[test]
    fn loss_while_probing_bounds_what_is_in_flight() {
        let (mut b, mut w) = start();
        until(&mut b, &mut w, State::Up, 200);
        round(&mut b, &mut w, 4, 200);
        // Two in a hundred are borne.
        assert_eq!((b.state, b.inflight_hi), (State::Up, INFINITE));
        round(&mut b, &mut w, 5, 230);
        assert_eq!((b.state, b.inflight_hi), (State::Down, 230));
        assert!(w.cwnd <= 230);
        until(&mut b, &mut w, State::Cruise, 190);
        // 15 % of headroom for others.
        assert_eq!(w.cwnd, 230 - 34);
    }

    #[test]
    fn loss_while_cruising_lowers_the_short_term_bounds_until_the_next_probe() {
        let (mut b, mut w) = start();
        until(&mut b, &mut w, State::Cruise, 200);
        let cwnd = w.cwnd;
        round(&mut b, &mut w, 3, 200);
        assert_eq!(b.inflight_lo, (cwnd * 7 / 10).max(200));
        until(&mut b, &mut w, State::Refill, 200);
        assert_eq!((b.inflight_lo, b.bw_lo), (INFINITE, None));
    }
}
