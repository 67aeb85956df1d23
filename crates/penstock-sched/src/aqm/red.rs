//! Random early detection: an average of the queue and a drop probability that rises with it.
//!
//! Follows: linux v6.12 include/net/red.h; Floyd & Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993.
//! Differs: `reciprocal_divide` is a division; it is exact, as the kernel's is.

use penstock_model::Rng;

/// Parameters: `struct red_parms`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// Least average that is marked, bytes.
    pub qth_min: u32,
    /// Average from which everything is marked, bytes.
    pub qth_max: u32,
    /// Weight of the newest length in the average, as a negative power of two. Below 32.
    pub wlog: u8,
    /// Random number bits, used where `max_p` is 0.
    pub plog: u8,
    /// Scale of idle time, as a power of two of µs. Below 32.
    pub scell_log: u8,
    /// Probability of a mark at `qth_max`, in units of 2^-32.
    pub max_p: u32,
    /// Spacing of the random numbers.
    max_p_delta: u32,
}

impl Params {
    /// `red_check_params` and `red_set_parms`. `None` for thresholds or scales that do not fit.
    pub fn new(qth_min: u32, qth_max: u32, wlog: u8, plog: u8, scell_log: u8, max_p: u32) -> Option<Params> {
        let fits = |threshold: u32| 32 - threshold.leading_zeros() + u32::from(wlog) < 32;
        if !fits(qth_min) || !fits(qth_max) || scell_log >= 32 || qth_max < qth_min {
            return None;
        }
        let delta = (qth_max - qth_min).max(1);
        let max_p = match max_p {
            0 => u32::MAX.checked_shr(u32::from(plog)).unwrap_or(u32::MAX).wrapping_mul(delta),
            given => given,
        };
        let max_p_delta = (max_p / delta).max(1);
        Some(Params { qth_min, qth_max, wlog, plog, scell_log, max_p, max_p_delta })
    }
    /// `red_random`.
    fn random(&self, rng: &mut Rng) -> u32 {
        rng.next_u32() / self.max_p_delta
    }
}

/// What to do with the packet that comes in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Let it in.
    Pass,
    /// Mark or drop it: chance said so.
    Prob,
    /// Mark or drop it: the average is over the maximum.
    Hard,
}

/// Variables: `struct red_vars`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vars {
    /// Packets since the last random number; -1 for none drawn.
    qcount: i32,
    qr: u32,
    /// The average, scaled by 2^wlog.
    pub qavg: u64,
}

impl Default for Vars {
    /// `red_set_vars`.
    fn default() -> Vars {
        Vars { qcount: -1, qr: 0, qavg: 0 }
    }
}

impl Vars {
    /// `red_calc_qavg_no_idle_time`: takes a length into the average.
    pub fn average(&mut self, p: &Params, backlog: u32) {
        self.qavg = self.qavg.wrapping_add(u64::from(backlog).wrapping_sub(self.qavg >> p.wlog));
    }
    /// `red_action`.
    pub fn action(&mut self, p: &Params, rng: &mut Rng) -> Action {
        let (min, max) = (u64::from(p.qth_min << p.wlog), u64::from(p.qth_max << p.wlog));
        if self.qavg < min {
            self.qcount = -1;
            return Action::Pass;
        }
        if self.qavg >= max {
            self.qcount = -1;
            return Action::Hard;
        }
        self.qcount += 1;
        if self.qcount == 0 {
            self.qr = p.random(rng);
            return Action::Pass;
        }
        let weight = ((self.qavg - min) >> p.wlog).wrapping_mul(self.qcount as u64);
        if weight < u64::from(self.qr) {
            return Action::Pass;
        }
        self.qcount = 0;
        self.qr = p.random(rng);
        Action::Prob
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_between_the_thresholds_by_chance_and_above_always() {
        let p = Params::new(1000, 3000, 1, 10, 0, 0).unwrap();
        let mut rng = Rng::named(1, "red");
        let mut v = Vars::default();
        let mut run = |v: &mut Vars, backlog: u32| {
            (0..100)
                .map(|_| {
                    v.average(&p, backlog);
                    v.action(&p, &mut rng)
                })
                .filter(|&a| a != Action::Pass)
                .count()
        };
        assert_eq!(run(&mut v, 900), 0);
        let some = run(&mut v, 2900);
        assert!((1..90).contains(&some), "{some}");
        assert!(run(&mut v, 4000) > 90);
        assert!(Params::new(3000, 1000, 1, 10, 0, 0).is_none());
        assert!(Params::new(1 << 30, 1 << 30, 2, 10, 0, 0).is_none());
    }
}
