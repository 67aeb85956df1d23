//! The round-trip time: smoothed, its deviation, its least value lately, and the timeout that follows.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_rtt_estimator`, `tcp_set_rto`, lib/win_minmax.c; RFC 6298.
//! Differs: none known. Units are microseconds (6.12) or jiffies (2.6.35), as each kernel counts.

/// Estimator of one connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rtt {
    // Parameters
    /// Least deviation that counts: TCP_RTO_MIN, in the estimator's unit.
    rto_min: u32,
    // Variables
    /// Smoothed RTT times 8; 0 before the first sample.
    pub srtt: u32,
    /// Mean deviation times 4.
    mdev: u32,
    mdev_max: u32,
    /// What the timeout adds to the smoothed RTT (deviation times 4).
    pub rttvar: u32,
    rtt_seq: u64,
}

impl Rtt {
    pub fn new(rto_min: u32) -> Rtt {
        Rtt { rto_min, srtt: 0, mdev: 0, mdev_max: 0, rttvar: 0, rtt_seq: 0 }
    }

    /// Takes a measurement. `snd_una` and `snd_nxt` delimit the rounds in which the deviation may fall.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rtt_estimator
    pub fn sample(&mut self, rtt: u32, snd_una: u64, snd_nxt: u64) {
        let rtt = rtt.min(i32::MAX as u32 >> 4);
        if self.srtt == 0 {
            self.srtt = (rtt << 3).max(1);
            self.mdev = rtt << 1;
            self.rttvar = self.mdev.max(self.rto_min);
            self.mdev_max = self.rttvar;
            self.rtt_seq = snd_nxt;
            return;
        }
        let error = i64::from(rtt) - i64::from(self.srtt >> 3);
        self.srtt = ((i64::from(self.srtt) + error) as u32).max(1);
        let mut change = error.abs() - i64::from(self.mdev >> 2);
        // A falling RTT widens the deviation by an eighth of the usual gain only.
        if error < 0 && change > 0 {
            change >>= 3;
        }
        self.mdev = (i64::from(self.mdev) + change) as u32;
        if self.mdev > self.mdev_max {
            self.mdev_max = self.mdev;
            self.rttvar = self.rttvar.max(self.mdev_max);
        }
        if snd_una > self.rtt_seq {
            if self.mdev_max < self.rttvar {
                self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
            }
            self.rtt_seq = snd_nxt;
            self.mdev_max = self.rto_min;
        }
    }

    /// The timeout in the estimator's unit: smoothed RTT plus deviation.
    pub fn rto(&self) -> u32 {
        (self.srtt >> 3) + self.rttvar
    }
    /// The mean deviation in the estimator's unit, for display.
    pub fn mdev(&self) -> u32 {
        self.mdev >> 2
    }
}

/// The least of the values seen within a window of time, by three samples.
//= linux v6.12 lib/win_minmax.c minmax_running_min (Nichols' windowed filter)
#[derive(Clone, Copy, Debug)]
pub(crate) struct WindowedMin {
    samples: [(u64, u32); 3],
}

impl WindowedMin {
    pub fn new() -> WindowedMin {
        WindowedMin { samples: [(0, u32::MAX); 3] }
    }
    /// The least value; `u32::MAX` before the first.
    #[inline]
    pub fn value(&self) -> u32 {
        self.samples[0].1
    }
    /// Takes `value` at time `now`; values older than `window` are forgotten.
    #[inline]
    pub fn update(&mut self, now: u64, window: u64, value: u32) {
        let s = &mut self.samples;
        let sample = (now, value);
        if value <= s[0].1 || now - s[2].0 > window {
            *s = [sample; 3];
            return;
        }
        if value <= s[1].1 {
            s[2] = sample;
            s[1] = sample;
        } else if value <= s[2].1 {
            s[2] = sample;
        }
        let age = now - s[0].0;
        if age > window {
            s[0] = s[1];
            s[1] = s[2];
            s[2] = sample;
            if now - s[0].0 > window {
                s[0] = s[1];
                s[1] = s[2];
            }
        } else if s[1].0 == s[0].0 && age > window / 4 {
            s[2] = sample;
            s[1] = sample;
        } else if s[2].0 == s[1].0 && age > window / 2 {
            s[2] = sample;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_sample_makes_three_times_the_rtt() {
        // RFC 6298 section 2.2: SRTT = R, RTTVAR = R/2, RTO = SRTT + 4 RTTVAR.
        let mut r = Rtt::new(200_000);
        r.sample(300_000, 10, 20);
        assert_eq!((r.srtt >> 3, r.rttvar, r.rto()), (300_000, 600_000, 900_000));
        // Linux keeps the deviation's part at TCP_RTO_MIN or more.
        let mut r = Rtt::new(200_000);
        r.sample(20_000, 10, 20);
        assert_eq!(r.rto(), 220_000);
    }

    #[test]
    fn a_steady_rtt_brings_the_timeout_down_to_its_floor() {
        let mut r = Rtt::new(200_000);
        for i in 0..200 {
            r.sample(300_000, 10 * i, 10 * i + 10);
        }
        assert_eq!(r.srtt >> 3, 300_000);
        assert!((500_000..505_000).contains(&r.rto()), "{}", r.rto());
    }

    #[test]
    fn the_least_rtt_is_forgotten_after_its_window() {
        let mut m = WindowedMin::new();
        m.update(0, 100, 50);
        m.update(10, 100, 70);
        assert_eq!(m.value(), 50);
        for t in (20..140).step_by(10) {
            m.update(t, 100, 60);
        }
        assert_eq!(m.value(), 60);
    }
}
