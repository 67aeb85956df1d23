//! `ledbat`: a scavenger that keeps the queueing delay it causes at a target and yields to everyone else.
//!
//! Follows: RFC 6817 (Shalunov et al. 2012) with TARGET 60 ms (the RFC allows 100 ms at most), GAIN 1, base delay over ten minutes.
//! Differs: delays are round trips here, not one-way delays (the RFC's section 2.4.2 lets it be so where clocks cannot be had): a queue on the way back counts too.

use super::{AckSample, Algorithm, Build, CongestionControl, Window};
use penstock_model::Kernel;
use std::collections::VecDeque;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "ledbat",
    about: "a scavenger: 60 ms of queueing delay at most (RFC 6817)",
    from: Kernel::V2_6_35,
    parameters: &[],
    build,
};

/// The queueing delay aimed at, microseconds.
const TARGET_US: i64 = 60_000;
/// Minutes whose least delays are remembered (BASE_HISTORY).
const BASE_HISTORY: usize = 10;
/// Samples of which the least is the current delay (CURRENT_FILTER).
const CURRENT_FILTER: usize = 4;
/// Segments the window may grow beyond what was in flight (ALLOWED_INCREASE).
const ALLOWED_INCREASE: u32 = 1;
/// Least window, segments (MIN_CWND).
const MIN_CWND: u32 = 2;

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Ledbat::default())
}

/// The controller of one connection.
#[derive(Clone, Debug, Default)]
pub struct Ledbat {
    /// The least delay of each minute, the present one last, microseconds.
    base: VecDeque<u32>,
    /// When the present minute began, microseconds.
    minute_us: u64,
    current: VecDeque<u32>,
    /// The window's fraction, 2^-16 segments.
    fraction: i64,
}

impl Ledbat {
    //= RFC 6817 section 2.4.2
    //# maintain a list of BASE_HISTORY one-way delay minima, one a minute
    fn update_base(&mut self, delay: u32, now_us: u64) {
        if self.base.is_empty() || now_us - self.minute_us >= 60_000_000 {
            if self.base.len() == BASE_HISTORY {
                self.base.pop_front();
            }
            self.base.push_back(delay);
            self.minute_us = now_us;
        } else if let Some(least) = self.base.back_mut() {
            *least = delay.min(*least);
        }
    }
    fn queueing_delay_us(&self) -> Option<i64> {
        let current = self.current.iter().min()?;
        let base = self.base.iter().min()?;
        Some(i64::from(*current) - i64::from(*base))
    }
}

impl CongestionControl for Ledbat {
    fn ssthresh(&mut self, w: &Window) -> u32 {
        (w.cwnd / 2).max(MIN_CWND)
    }
    //= RFC 6817 section 2.4.2
    //# cwnd += GAIN * off_target * bytes_newly_acked * MSS / cwnd
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        let Some(queue) = self.queueing_delay_us() else { return };
        if w.in_slow_start() && queue < TARGET_US / 4 {
            if w.cwnd_limited {
                w.slow_start(acked);
            }
            return;
        }
        w.ssthresh = w.ssthresh.min(w.cwnd);
        let off_target = TARGET_US - queue;
        let step = ((off_target * i64::from(acked)) << 16) / (TARGET_US * i64::from(w.cwnd.max(1)));
        // Never faster than Reno.
        let window = (i64::from(w.cwnd) << 16) + self.fraction + step.min(i64::from(acked) << 16);
        let reach = if w.cwnd_limited { w.cwnd + ALLOWED_INCREASE } else { w.cwnd };
        let window = window.clamp(i64::from(MIN_CWND) << 16, i64::from(reach.max(MIN_CWND)) << 16);
        w.cwnd = ((window >> 16) as u32).min(w.cwnd_clamp);
        self.fraction = window & 0xffff;
    }
    fn pkts_acked(&mut self, w: &mut Window, sample: &AckSample) {
        let Some(rtt) = sample.rtt_us else { return };
        self.update_base(rtt, w.now_us);
        if self.current.len() == CURRENT_FILTER {
            self.current.pop_front();
        }
        self.current.push_back(rtt);
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![("queueing_delay_us", self.queueing_delay_us().unwrap_or(0).max(0) as u64)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The window after ten round trips of 100 segments at this queueing delay.
    fn after(queue_us: u32) -> u32 {
        let mut l = Ledbat::default();
        let mut w = Window::new(250, false);
        (w.cwnd, w.ssthresh, w.cwnd_limited) = (100, 50, true);
        let sample = |rtt| AckSample { pkts_acked: 1, rtt_us: Some(rtt), ..AckSample::default() };
        l.pkts_acked(&mut w, &sample(20_000));
        for _ in 0..1_000 {
            l.pkts_acked(&mut w, &sample(20_000 + queue_us));
            l.cong_avoid(&mut w, 1);
        }
        w.cwnd
    }

    #[test]
    fn the_window_holds_the_target() {
        assert!((108..=110).contains(&after(0)), "a segment a round trip: {}", after(0));
        assert_eq!(after(60_000), 100);
        assert!((104..=105).contains(&after(30_000)), "{}", after(30_000));
        assert!(after(120_000) < 95, "twice the target: down again");
        assert!(after(600_000) <= 30, "far above: quickly down");
    }
}
