//! `westwood`: after a loss the window is what the ACKs' rate and the least round trip say fits (Westwood+).
//!
//! Follows: linux v6.12 net/ipv4/tcp_westwood.c; Mascolo et al. 2001.
//! Differs: every ACK is counted as on Linux's slow path, which differs from its fast path only for duplicates.

use super::reno::reno_cong_avoid;
use super::{AckSample, Algorithm, Build, CongestionControl, Window};
use penstock_model::Kernel;
use penstock_model::sockets::ControlDiag;

/// Registration.
pub static ALGORITHM: Algorithm = Algorithm {
    name: "westwood",
    about: "after a loss the window follows the rate of ACKs (Westwood+)",
    from: Kernel::V2_6_35,
    parameters: &[],
    build,
};

fn build(_: &Build<'_>) -> Box<dyn CongestionControl> {
    Box::new(Westwood::default())
}

/// The controller of one connection; times in jiffies, rates in bytes a jiffy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Westwood {
    bw_ns_est: u32,
    bw_est: u32,
    /// When the sample began.
    rtt_win_sx: u64,
    /// Bytes acknowledged in it.
    bk: u32,
    snd_una: u64,
    accounted: u64,
    rtt: u32,
    rtt_min: u32,
    first_ack: bool,
    reset_rtt_min: bool,
}

impl Westwood {
    //= linux v6.12 net/ipv4/tcp_westwood.c westwood_update_window, westwood_filter
    fn update_window(&mut self, w: &Window) {
        let delta = w.jiffies - self.rtt_win_sx;
        if self.first_ack {
            self.snd_una = w.snd_una;
            self.first_ack = false;
        }
        if self.rtt > 0 && delta > u64::from(self.rtt.max(w.hz / 20)) {
            let sample = (u64::from(self.bk) / delta) as u32;
            let filter = |a: u32, b: u32| ((7 * u64::from(a) + u64::from(b)) >> 3) as u32;
            if self.bw_ns_est == 0 && self.bw_est == 0 {
                self.bw_ns_est = sample;
                self.bw_est = sample;
            } else {
                self.bw_ns_est = filter(self.bw_ns_est, sample);
                self.bw_est = filter(self.bw_est, self.bw_ns_est);
            }
            self.bk = 0;
            self.rtt_win_sx = w.jiffies;
        }
    }
    /// Bytes this ACK stands for: a duplicate for a segment, which the ACK that follows has not to count again.
    //= linux v6.12 net/ipv4/tcp_westwood.c westwood_acked_count
    fn acked(&mut self, w: &Window) -> u32 {
        let mss = u64::from(w.mss);
        let mut acked = w.snd_una - self.snd_una;
        if acked == 0 {
            self.accounted += mss;
            acked = mss;
        }
        if acked > mss {
            if self.accounted >= acked {
                self.accounted -= acked;
                acked = mss;
            } else {
                acked -= self.accounted;
                self.accounted = 0;
            }
        }
        self.snd_una = w.snd_una;
        acked as u32
    }
    /// The window that fits, segments.
    fn fits(&self, w: &Window) -> u32 {
        let bytes = u64::from(self.bw_est) * u64::from(self.rtt_min);
        ((bytes & 0xffff_ffff) / u64::from(w.mss.max(1))).max(2) as u32
    }
}

impl CongestionControl for Westwood {
    fn hears_acks(&self) -> bool {
        true
    }
    fn init(&mut self, w: &mut Window) {
        *self = Westwood {
            reset_rtt_min: true,
            first_ack: true,
            rtt: 20 * w.hz,
            rtt_min: 20 * w.hz,
            rtt_win_sx: w.jiffies,
            snd_una: w.snd_una,
            ..Westwood::default()
        };
    }
    fn ssthresh(&mut self, w: &Window) -> u32 {
        (w.cwnd / 2).max(2)
    }
    fn cong_avoid(&mut self, w: &mut Window, acked: u32) {
        reno_cong_avoid(w, acked);
    }
    fn pkts_acked(&mut self, w: &mut Window, sample: &AckSample) {
        if let Some(us) = sample.rtt_us.filter(|&us| us > 0) {
            self.rtt = (u64::from(us) * u64::from(w.hz)).div_ceil(1_000_000) as u32;
        }
    }
    //= linux v6.12 net/ipv4/tcp_westwood.c tcp_westwood_ack
    fn in_ack_event(&mut self, w: &mut Window) {
        self.update_window(w);
        let acked = if w.slow_path {
            self.acked(w)
        } else {
            let acked = w.snd_una - self.snd_una;
            self.snd_una = w.snd_una;
            acked as u32
        };
        self.bk = self.bk.wrapping_add(acked);
        if std::mem::take(&mut self.reset_rtt_min) {
            self.rtt_min = self.rtt;
        } else {
            self.rtt_min = self.rtt_min.min(self.rtt);
        }
    }
    fn on_complete_cwr(&mut self, w: &mut Window) {
        w.ssthresh = self.fits(w);
        w.cwnd = w.ssthresh;
    }
    fn on_loss(&mut self, w: &mut Window) {
        w.ssthresh = self.fits(w);
        self.reset_rtt_min = true;
    }
    fn diag(&self, w: &Window) -> Option<ControlDiag> {
        Some(ControlDiag::Vegas(true, self.rtt * (1_000_000 / w.hz)))
    }
    fn info(&self) -> Vec<(&'static str, u64)> {
        vec![("bw_est", self.bw_est.into()), ("rtt_min_jiffies", self.rtt_min.into())]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_is_what_fits() {
        let mut x = Westwood::default();
        let mut w = Window::new(100, false);
        w.mss = 1_000;
        x.init(&mut w);
        let sample = AckSample { pkts_acked: 1, rtt_us: Some(100_000), ..AckSample::default() };
        // A segment each jiffy: 100 kB/s over 100 ms is ten segments.
        for jiffy in 1..400u64 {
            w.jiffies = jiffy;
            w.snd_una += 1_000;
            x.pkts_acked(&mut w, &sample);
            x.in_ack_event(&mut w);
        }
        w.cwnd = 40;
        x.on_complete_cwr(&mut w);
        assert!((9..=11).contains(&w.cwnd), "{}", w.cwnd);
        assert_eq!(w.cwnd, w.ssthresh);
    }
}
