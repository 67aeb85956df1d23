//! `lp`: low priority: backs off as soon as the one-way delay grows beyond 15 % of its span.
//!
//! Follows: linux v6.12 net/ipv4/tcp_lp.c; Kuzmanovic & Knightly 2003.
//! Differs: none known.

use super::reno::reno_cong_avoid;
use super::{AckSample, Algorithm, Build, CongestionControl, Window};
use penstock_model::Kernel;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "lp",
    about: "low priority: backs off when the one-way delay grows (Kuzmanovic & Knightly)",
    from: Kernel::V6_12,
    parameters: &[],
    build,
};

/// Ticks a second of delays and of our timestamps.
const TS_HZ: u32 = 1_000;

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Lp::default())
}

/// The controller of one connection; times in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lp {
    valid_rhz: bool,
    valid_owd: bool,
    within_inf: bool,
    /// The smoothed one-way delay, times 8.
    sowd: u32,
    owd_min: u32,
    owd_max: u32,
    /// The longest of all, which is not believed at once.
    owd_max_rsv: u32,
    /// Ticks a second of the peer's timestamps.
    remote_hz: u32,
    remote_ref_time: u32,
    local_ref_time: u32,
    last_drop: u32,
    /// After a first sign the window does not grow for so long.
    inference: u32,
}

impl Lp {
    //= linux v6.12 net/ipv4/tcp_lp.c tcp_lp_remote_hz_estimator
    fn estimate_remote_hz(&mut self, tsval: u32, tsecr: u32) -> u32 {
        let mut rhz = i64::from(self.remote_hz << 6);
        let known = self.remote_ref_time != 0 && self.local_ref_time != 0;
        if known && tsval != self.remote_ref_time && tsecr != self.local_ref_time {
            let theirs = tsval.wrapping_sub(self.remote_ref_time);
            let ours = tsecr.wrapping_sub(self.local_ref_time);
            let m = i64::from(TS_HZ.wrapping_mul(theirs) / ours);
            rhz = if rhz > 0 { rhz + m - (rhz >> 6) } else { m << 6 };
        }
        self.valid_rhz = rhz >> 6 > 0;
        (self.remote_ref_time, self.local_ref_time) = (tsval, tsecr);
        (rhz >> 6) as u32
    }
    //= linux v6.12 net/ipv4/tcp_lp.c tcp_lp_owd_calculator
    fn one_way_delay(&mut self, tsval: u32, tsecr: u32) -> u32 {
        self.remote_hz = self.estimate_remote_hz(tsval, tsecr);
        let mut owd = 0;
        if self.valid_rhz {
            owd = tsval.wrapping_mul(TS_HZ / self.remote_hz.max(1)).wrapping_sub(tsecr);
        }
        self.valid_owd = owd > 0;
        owd
    }
    //= linux v6.12 net/ipv4/tcp_lp.c tcp_lp_rtt_sample
    fn take(&mut self, tsval: u32, tsecr: u32) {
        let owd = self.one_way_delay(tsval, tsecr);
        if !self.valid_rhz || !self.valid_owd {
            return;
        }
        self.owd_min = self.owd_min.min(owd);
        if owd > self.owd_max {
            if owd > self.owd_max_rsv {
                self.owd_max = if self.owd_max_rsv == 0 { owd } else { self.owd_max_rsv };
                self.owd_max_rsv = owd;
            } else {
                self.owd_max = owd;
            }
        }
        self.sowd = match self.sowd {
            0 => owd << 3,
            sowd => sowd.wrapping_add(owd.wrapping_sub(sowd >> 3)),
        };
    }
}

impl CongestionControl for Lp {
    fn init(&mut self, _: &mut Window) {
        *self = Lp { owd_min: u32::MAX, ..Lp::default() };
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        (w.cwnd >> 1).max(2)
    }
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        if !self.within_inf {
            reno_cong_avoid(w, acked);
        }
    }
    //= linux v6.12 net/ipv4/tcp_lp.c tcp_lp_pkts_acked
    fn pkts_acked(&mut self, w: &mut Window, sample: &AckSample) {
        let now = (w.now_us / 1_000) as u32;
        if sample.rtt_us.is_some_and(|us| us > 0) {
            self.take(sample.rcv_tsval, sample.rcv_tsecr);
        }
        let delta = now.wrapping_sub(sample.rcv_tsecr);
        if delta as i32 > 0 {
            self.inference = delta.wrapping_mul(3);
        }
        self.within_inf = self.last_drop > 0 && now.wrapping_sub(self.last_drop) < self.inference;
        let span = self.owd_max.wrapping_sub(self.owd_min);
        if self.sowd >> 3 < self.owd_min.wrapping_add(span.wrapping_mul(15) / 100) {
            return;
        }
        self.owd_min = self.sowd >> 3;
        (self.owd_max, self.owd_max_rsv) = (self.sowd >> 2, self.sowd >> 2);
        w.cwnd = if self.within_inf { 1 } else { (w.cwnd >> 1).max(1) };
        self.last_drop = now;
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("owd_ms", (self.sowd >> 3).into()),
            ("owd_min_ms", self.owd_min.into()),
            ("owd_max_ms", self.owd_max.into()),
            ("remote_hz", self.remote_hz.into()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An ACK at `ms` for a segment sent 100 ms before that was `owd_ms` under way, by a clock that is 5 s ahead.
    fn ack(lp: &mut Lp, w: &mut Window, ms: u32, owd_ms: u32) {
        w.now_us = u64::from(ms) * 1_000;
        let sent = ms - 100;
        let (rcv_tsval, rcv_tsecr) = (sent + owd_ms + 5_000, sent);
        let sample =
            AckSample { pkts_acked: 1, rtt_us: Some(100_000), rcv_tsval, rcv_tsecr, ..AckSample::default() };
        lp.pkts_acked(w, &sample);
    }

    #[test]
    fn a_delay_that_grows_halves_the_window_and_then_leaves_one() {
        let (mut lp, mut w) = (Lp::default(), Window::new(250, false));
        lp.init(&mut w);
        (w.cwnd, w.ssthresh, w.cwnd_limited) = (20, 2, true);
        ack(&mut lp, &mut w, 1_000, 30);
        assert_eq!((lp.remote_hz, w.cwnd), (0, 20), "nothing to compare with");
        ack(&mut lp, &mut w, 1_010, 30);
        // The first delay has no span: it counts as beyond it. The longest is then taken for twice as long.
        assert_eq!((lp.remote_hz, lp.sowd >> 3, lp.owd_min, lp.owd_max), (1_000, 5_030, 5_030, 10_060));
        assert_eq!((w.cwnd, lp.last_drop, lp.inference), (10, 1_010, 300));
        // 11 ticks there in 10 here: 64100 / 64 = 1001 a second, and 1000 / 1001 of their time is nothing.
        ack(&mut lp, &mut w, 1_020, 31);
        assert_eq!((lp.remote_hz, lp.sowd, lp.owd_max), (1_001, 40_240 - 920 - 5_030, 10_060));
        lp.cong_avoid(&mut w, 50);
        assert_eq!((w.cwnd, lp.within_inf), (10, true), "three round trips without growth");
        ack(&mut lp, &mut w, 1_320, 31);
        lp.cong_avoid(&mut w, 10);
        assert_eq!((w.cwnd, lp.within_inf), (11, false));
    }

    #[test]
    fn a_second_sign_within_three_round_trips_leaves_one_segment() {
        let (mut lp, mut w) = (Lp::default(), Window::new(250, false));
        lp.init(&mut w);
        w.cwnd = 20;
        for ms in [1_000, 1_010] {
            ack(&mut lp, &mut w, ms, 30);
        }
        lp.sowd = 10_060 << 3;
        ack(&mut lp, &mut w, 1_020, 30);
        assert_eq!((w.cwnd, lp.last_drop), (1, 1_020));
    }
}
