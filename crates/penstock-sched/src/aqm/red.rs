//! Random early detection: an average of the queue and a drop probability that rises with it.
//!
//! Follows: linux v6.12 include/net/red.h; Floyd & Jacobson, IEEE/ACM Transactions on Networking 1(4), 1993.
//! Differs: `reciprocal_divide` is a division; it is exact, as the kernel's is.

use penstock_model::{Rng, Time};

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
    /// 2.6.35: bits of the random number that count, instead of a spacing.
    mask: Option<u32>,
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
        Some(Params { qth_min, qth_max, wlog, plog, scell_log, max_p, max_p_delta, mask: None })
    }
    /// As 2.6.35 takes them: unchecked, thresholds cut to what the fixed point leaves of them.
    pub fn old(qth_min: u32, qth_max: u32, wlog: u8, plog: u8, scell_log: u8) -> Params {
        let cut = |threshold: u32| threshold.wrapping_shl(wlog.into()).wrapping_shr(wlog.into());
        let mask = 1u32.checked_shl(plog.into()).map_or(u32::MAX, |bits| bits - 1);
        let (qth_min, qth_max, wlog) = (cut(qth_min), cut(qth_max), wlog & 31);
        Params { qth_min, qth_max, wlog, plog, scell_log, max_p: 0, max_p_delta: 1, mask: Some(mask) }
    }
    /// `red_random`.
    fn random(&self, rng: &mut Rng) -> u32 {
        match self.mask {
            Some(mask) => rng.next_u32() & mask,
            None => rng.next_u32() / self.max_p_delta,
        }
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

/// Where an average lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Zone {
    /// At the minimum or below.
    Small,
    /// Over the minimum, and not over the maximum.
    Between,
    /// Over the maximum.
    Large,
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
        self.action_over(p, 0, rng)
    }
    /// The same where `others` (scaled as the average) is added to the average.
    pub fn action_over(&mut self, p: &Params, others: u64, rng: &mut Rng) -> Action {
        let qavg = self.qavg.wrapping_add(others);
        let (min, max) = (u64::from(p.qth_min << p.wlog), u64::from(p.qth_max << p.wlog));
        if qavg < min {
            self.qcount = -1;
            return Action::Pass;
        }
        if qavg >= max {
            self.qcount = -1;
            return Action::Hard;
        }
        self.qcount += 1;
        if self.qcount == 0 {
            self.qr = p.random(rng);
            return Action::Pass;
        }
        let weight = ((qavg - min) >> p.wlog).wrapping_mul(self.qcount as u64);
        if weight < u64::from(self.qr) {
            return Action::Pass;
        }
        self.qcount = 0;
        self.qr = p.random(rng);
        Action::Prob
    }
}

/// How fast the average falls while the queue is empty: `Stab` and `Scell_log`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damping {
    stab: Box<[u8; 256]>,
    scell_log: u8,
    /// `Scell_max`: the longest idle time that counts.
    scell_max: i64,
    /// ns of one unit of idle time: a microsecond, in 2.6.35 a tick of 64 ns.
    unit_ns: i64,
}

impl Damping {
    /// With tc's table of shifts (256 of them; missing ones are 0).
    pub fn new(stab: &[u8], scell_log: u8, unit_ns: i64) -> Damping {
        let mut table = Box::new([0; 256]);
        for (slot, &shift) in table.iter_mut().zip(stab) {
            *slot = shift;
        }
        let scell_max = i64::from(255u32.checked_shl(u32::from(scell_log)).unwrap_or(0));
        Damping { stab: table, scell_log: scell_log & 31, scell_max, unit_ns }
    }
    /// `red_calc_qavg_from_idle_time`: what is left of an average after so long a time, ns.
    pub fn decay(&self, qavg: u64, idle_ns: i64) -> u64 {
        let idle = (idle_ns / self.unit_ns).clamp(0, self.scell_max) as u64;
        match self.stab[(idle >> self.scell_log & 255) as usize] {
            0 => {
                let less = qavg.wrapping_mul(idle) >> self.scell_log;
                if less < qavg >> 1 { qavg - less } else { qavg >> 1 }
            }
            shift => qavg.checked_shr(u32::from(shift)).unwrap_or(0),
        }
    }
}

/// A whole RED: parameters, and the average with its idle time.
#[derive(Clone, Debug)]
pub struct Red {
    // Parameters
    /// The thresholds and the probability.
    pub parms: Params,
    damping: Damping,
    // Variables
    /// The average and what chance has decided.
    pub vars: Vars,
    /// Since when the queue has been empty.
    idle: Option<Time>,
}

impl Red {
    /// `red_set_parms`, `red_set_vars` for a queue that has been empty since `idle`.
    pub fn new(parms: Params, damping: Damping, idle: Option<Time>) -> Red {
        Red { parms, damping, vars: Vars::default(), idle }
    }
    /// `red_calc_qavg`, for a packet that meets `backlog`: the end of an idle time, too.
    pub fn average(&mut self, now: Time, backlog: u32) {
        match self.idle.take() {
            Some(since) => self.vars.qavg = self.decayed(since, now),
            None => self.vars.average(&self.parms, backlog),
        }
    }
    fn decayed(&self, since: Time, now: Time) -> u64 {
        self.damping.decay(self.vars.qavg, now.as_ns() - since.as_ns())
    }
    /// What [`Red::average`] would make of the average now.
    pub fn average_at(&self, now: Time, backlog: u32) -> u64 {
        match self.idle {
            Some(since) => self.decayed(since, now),
            None => {
                let mut vars = self.vars;
                vars.average(&self.parms, backlog);
                vars.qavg
            }
        }
    }
    /// `red_action`.
    pub fn action(&mut self, rng: &mut Rng) -> Action {
        self.vars.action(&self.parms, rng)
    }
    /// `red_action` where `others` (scaled as the average) is added to the average.
    pub fn action_over(&mut self, others: u64, rng: &mut Rng) -> Action {
        self.vars.action_over(&self.parms, others, rng)
    }
    /// choke: where the average lies, at the minimum being below, at the maximum between.
    pub fn zone(&mut self) -> Zone {
        let scaled = |threshold: u32| u64::from(threshold << self.parms.wlog);
        let zone = match self.vars.qavg {
            q if q <= scaled(self.parms.qth_min) => Zone::Small,
            q if q > scaled(self.parms.qth_max) => Zone::Large,
            _ => Zone::Between,
        };
        if zone == Zone::Small {
            self.vars.qcount = -1;
        }
        zone
    }
    /// choke: nothing is left to chance, the next packet between draws anew.
    pub fn certain(&mut self) {
        self.vars.qcount = -1;
    }
    /// choke: whether chance marks a packet between the thresholds.
    pub fn chance(&mut self, rng: &mut Rng) -> bool {
        let (p, v) = (&self.parms, &mut self.vars);
        v.qcount += 1;
        if v.qcount == 0 {
            v.qr = p.random(rng);
            return false;
        }
        let weight = (v.qavg - u64::from(p.qth_min << p.wlog)) >> p.wlog;
        if weight.wrapping_mul(v.qcount as u64) < u64::from(v.qr) {
            return false;
        }
        v.qcount = 0;
        v.qr = p.random(rng);
        true
    }
    /// The average, and since when the queue has been empty.
    pub fn level(&self) -> (u64, Option<Time>) {
        (self.vars.qavg, self.idle)
    }
    /// Takes over another's average and idle time.
    pub fn set_level(&mut self, (qavg, idle): (u64, Option<Time>)) {
        (self.vars.qavg, self.idle) = (qavg, idle);
    }
    /// The queue is empty, if it was not known to be before.
    pub fn start_idle(&mut self, now: Time) {
        self.idle.get_or_insert(now);
    }
    /// `red_restart`.
    pub fn restart(&mut self) {
        (self.idle, self.vars.qavg, self.vars.qcount) = (None, 0, -1);
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

    fn at(us: i64) -> Time {
        Time::from_ns(us * 1000)
    }

    #[test]
    fn idle_time_halves_the_average_by_tc_s_table() {
        // The man page's example: shifts of 0, 0, … 21, 31 for cells of 2^15.
        let mut stab = [0u8; 256];
        (stab[100], stab[255]) = (3, 31);
        let parms = Params::new(1000, 3000, 5, 10, 10, 0).unwrap();
        let mut red = Red::new(parms, Damping::new(&stab, 10, 1000), None);
        red.vars.qavg = 64_000;
        red.start_idle(at(0));
        // Cell 0: the linear beginning, 64000 * 1 / 1024 less.
        red.average(at(1), 0);
        assert_eq!(red.vars.qavg, 64_000 - 62);
        red.start_idle(at(1));
        red.start_idle(at(50));
        red.average(at(1 + 100 * 1024), 0);
        assert_eq!(red.vars.qavg, (64_000 - 62) >> 3);
        red.start_idle(at(200_000));
        red.average(at(100_000_000), 0);
        assert_eq!(red.vars.qavg, 0);
    }
}
