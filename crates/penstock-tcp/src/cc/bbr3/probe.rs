//! How it probes for more: down, cruise, refill, up, and what is learnt of how much may be in flight.

use super::{AckPhase, BETA, Bbr3, INFINITE, LOSS_THRESH, RENO_ROUNDS, State, UNIT, rate};
use crate::cc::{RateSample, Window};

impl Bbr3 {
    pub(super) fn start_down(&mut self, w: &Window) {
        (self.loss_in_round, self.bw_latest, self.inflight_latest) = (false, 0, 0);
        self.probe_up_cnt = INFINITE;
        self.rounds_since_bw_probe = self.dice.draw(2) as u32;
        self.bw_probe_wait_us = 2_000_000 + self.dice.draw(1_000_000);
        self.cycle_stamp = w.now_us;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round(w);
        self.state = State::Down;
    }
    fn start_refill(&mut self, w: &Window) {
        (self.bw_lo, self.inflight_lo) = (None, INFINITE);
        (self.bw_probe_up_rounds, self.bw_probe_up_acks) = (0, 0);
        self.ack_phase = AckPhase::Refilling;
        self.start_round(w);
        self.state = State::Refill;
    }
    fn start_up(&mut self, w: &Window, rs: &RateSample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round(w);
        self.reset_full_bw(rate(rs).0);
        self.cycle_stamp = w.now_us;
        self.state = State::Up;
        self.raise_slope(w);
    }
    /// `BBRRaiseInflightHiSlope`.
    fn raise_slope(&mut self, w: &Window) {
        self.probe_up_cnt = (w.cwnd >> self.bw_probe_up_rounds).max(1);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
    }
    /// `BBRProbeInflightHiUpward`.
    fn probe_upward(&mut self, w: &Window, rs: &RateSample) {
        if !w.cwnd_limited || w.cwnd < self.inflight_hi {
            return;
        }
        self.bw_probe_up_acks += rs.acked_sacked;
        if self.bw_probe_up_acks >= self.probe_up_cnt {
            let delta = self.bw_probe_up_acks / self.probe_up_cnt;
            self.bw_probe_up_acks -= delta * self.probe_up_cnt;
            self.inflight_hi = self.inflight_hi.saturating_add(delta);
        }
        if self.round_start {
            self.raise_slope(w);
        }
    }
    /// `IsInflightTooHigh`.
    pub(super) fn too_high(rs: &RateSample) -> bool {
        u64::from(rs.lost) * 100 > u64::from(rs.tx_in_flight) * LOSS_THRESH
    }
    /// `BBRAdaptLongTermModel` (`BBRAdaptUpperBounds`).
    pub(super) fn adapt_long_term_model(&mut self, w: &Window, rs: &RateSample) {
        if self.round_start && self.ack_phase == AckPhase::ProbeStarting {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.round_start && self.ack_phase == AckPhase::ProbeStopping {
            self.bw_probe_samples = false;
            self.ack_phase = AckPhase::Init;
            if self.in_probe_bw() && !rs.app_limited && self.max_bw[1] > 0 {
                // BBRAdvanceMaxBwFilter.
                self.max_bw = [self.max_bw[1], 0];
            }
        }
        if Bbr3::too_high(rs) {
            if self.bw_probe_samples {
                // BBRHandleInflightTooHigh.
                self.bw_probe_samples = false;
                if !rs.app_limited {
                    let target = (u64::from(self.target_inflight(w)) * BETA / 100) as u32;
                    self.inflight_hi = rs.tx_in_flight.max(target);
                }
                if self.state == State::Up {
                    self.start_down(w);
                }
            }
        } else if self.inflight_hi != INFINITE && rs.tx_in_flight > 0 {
            self.inflight_hi = self.inflight_hi.max(rs.tx_in_flight);
            if self.state == State::Up {
                self.probe_upward(w, rs);
            }
        }
    }
    /// `BBRIsTimeToProbeBW`.
    fn is_time_to_probe(&self, w: &Window) -> bool {
        w.now_us > self.cycle_stamp + self.bw_probe_wait_us
            || self.rounds_since_bw_probe >= self.target_inflight(w).min(RENO_ROUNDS)
    }
    /// `BBRUpdateProbeBWCyclePhase`.
    pub(super) fn update_cycle_phase(&mut self, w: &Window, rs: &RateSample) {
        if !self.full_bw_reached {
            return;
        }
        self.adapt_long_term_model(w, rs);
        match self.state {
            State::Down | State::Cruise if self.is_time_to_probe(w) => self.start_refill(w),
            State::Down if w.in_flight <= self.with_headroom().min(self.inflight(w, UNIT)) => {
                self.state = State::Cruise;
            }
            State::Refill if self.round_start => {
                // What is acknowledged from here on was sent with the pipe full.
                self.bw_probe_samples = true;
                self.start_up(w, rs);
            }
            State::Up => {
                if w.cwnd_limited && w.cwnd >= self.inflight_hi {
                    self.reset_full_bw(rate(rs).0);
                } else if self.full_bw_now {
                    self.start_down(w);
                }
            }
            _ => {}
        }
    }
}
