//! The round-trip time: smoothed, its deviation, and the timeout that follows.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_rtt_estimator`, `tcp_set_rto`; RFC 6298.
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
    pub mdev: u32,
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
}
