//! What a connection begins with from those before it between the same addresses, and what it leaves for the next.
//!
//! Follows: linux v6.12 net/ipv4/tcp_metrics.c `tcp_init_metrics`, `tcp_update_metrics`.
//! Differs: none known.

use super::Endpoint;
use crate::cc::INFINITE_SSTHRESH;
use crate::info::{CaState, State};
use penstock_model::TcpMetrics;
use penstock_model::tcp_metrics::Metric;

impl Endpoint {
    /// Whether the next segment may open the connection: then [`know`](Endpoint::know) what is kept first.
    #[inline]
    pub fn is_opening(&self) -> bool {
        matches!(self.state, State::SynSent | State::SynReceived)
    }
    /// What is kept of connections before, for the moment the connection opens; `ssthresh`: the threshold counts too (`tcp_no_ssthresh_metrics_save` 0).
    /// Of effect in the profiles 6.12 and later.
    pub fn know(&mut self, kept: Option<&TcpMetrics>, ssthresh: bool) {
        self.cfg.known = kept.map(|row| (*row, ssthresh));
    }
    /// Takes what is known.
    //= linux v6.12 net/ipv4/tcp_metrics.c tcp_init_metrics
    pub(super) fn init_metrics(&mut self) {
        let mut rtt8 = 0;
        // What the handshake has cost does not stay.
        self.tx.cc.set_ssthresh(INFINITE_SSTHRESH);
        if let Some((row, ssthresh)) = self.cfg.known.take() {
            if row.is_locked(Metric::Cwnd) {
                self.tx.cc.clamp_cwnd(row.get(Metric::Cwnd));
            }
            let kept = row.get(Metric::Ssthresh);
            if ssthresh && kept > 0 {
                self.tx.cc.set_ssthresh(kept.min(self.tx.cc.window().cwnd_clamp));
            }
            let reordering = row.get(Metric::Reordering);
            if reordering > 0 {
                self.recovery.know_reordering(reordering);
            }
            rtt8 = row.get(Metric::Rtt);
        }
        self.tx.timers.init_metrics(rtt8, &self.tx.clock);
    }
    /// Whether the connection has ended as connections do, and what it has learned is to be kept: asked once it is over on this side.
    pub fn ended_well(&self) -> bool {
        self.ended_well
    }
    /// Whether it has learned anything of its path; else what was kept of the round trip is forgotten.
    pub fn has_learned(&self) -> bool {
        self.tx.timers.backoff() == 0 && self.tx.timers.srtt8() > 0
    }
    /// Writes into a row what this connection has learned. `ssthresh`: the threshold too.
    //= linux v6.12 net/ipv4/tcp_metrics.c tcp_update_metrics
    pub fn leave(&self, row: &mut TcpMetrics, ssthresh: bool) {
        let srtt = self.tx.timers.srtt8();
        let kept = row.get(Metric::Rtt);
        let lower = i64::from(kept) - i64::from(srtt);
        row.learn(Metric::Rtt, if lower <= 0 { srtt } else { kept - (lower >> 3) as u32 });
        let deviation = (lower.unsigned_abs() >> 1).max(self.tx.timers.mdev_kept().into()) as u32;
        let kept = row.get(Metric::Rttvar);
        row.learn(
            Metric::Rttvar,
            if deviation >= kept { deviation } else { kept - ((kept - deviation) >> 2) },
        );

        let (cwnd, threshold) = (self.tx.cc.cwnd(), self.tx.cc.ssthresh());
        let (kept_window, kept_threshold) = (row.get(Metric::Cwnd), row.get(Metric::Ssthresh));
        if threshold >= INFINITE_SSTHRESH {
            // Slow start has not ended.
            if ssthresh && kept_threshold > 0 && cwnd >> 1 > kept_threshold {
                row.learn(Metric::Ssthresh, cwnd >> 1);
            }
            row.learn(Metric::Cwnd, kept_window.max(cwnd));
        } else if cwnd >= threshold && self.tx.cc.state() == CaState::Open {
            if ssthresh {
                row.learn(Metric::Ssthresh, (cwnd >> 1).max(threshold));
            }
            row.learn(Metric::Cwnd, kept_window.wrapping_add(cwnd) >> 1);
        } else {
            // The window says nothing, and the threshold little.
            row.learn(Metric::Cwnd, kept_window.wrapping_add(threshold) >> 1);
            if ssthresh && kept_threshold > 0 && threshold > kept_threshold {
                row.learn(Metric::Ssthresh, threshold);
            }
            let reordering = self.recovery.reordering();
            if row.get(Metric::Reordering) < reordering && reordering != self.tx.p.reordering {
                row.learn(Metric::Reordering, reordering);
            }
        }
        row.touch(self.tx.clock.jiffies);
    }
}
