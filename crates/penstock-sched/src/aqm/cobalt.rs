//! COBALT: CoDel and BLUE side by side.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c` `cobalt_queue_full`, `cobalt_queue_empty`, `cobalt_should_drop`; Høiland-Jørgensen et al.,
//! "Piece of CAKE" (2018), section III-C. Times are nanoseconds of a clock that is older than any queue.

use super::ecn::set_ce;
use penstock_model::Rng;
use penstock_packet::Skb;

/// Parameters: `struct cobalt_params`, ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Params {
    /// How long the delay may stay above the target.
    pub interval: u64,
    /// Delay that is let stand.
    pub target: u64,
    /// What a packet of the greatest size takes on the line.
    pub mtu_time: u64,
}

/// What BLUE's probability rises by when the queue is full: 1/256 of 2^32 (`p_inc`).
const P_INC: u32 = 1 << 24;
/// What it falls by when the queue is found empty: 1/4096 (`p_dec`).
const P_DEC: u32 = 1 << 20;

/// Variables of one queue: `struct cobalt_vars`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Vars {
    /// Drops or marks of this dropping state, less what has decayed since.
    pub count: u32,
    /// 1/sqrt(count), as a fraction of 2^32.
    rec_inv_sqrt: u32,
    /// BLUE's probability, as a fraction of 2^32.
    pub p_drop: u32,
    /// In the dropping state.
    pub dropping: bool,
    /// The packet last asked about was marked.
    pub ecn_marked: bool,
    /// When to drop next, or when it was dropped last.
    pub drop_next: i64,
    /// When BLUE's probability moved last.
    pub blue_timer: i64,
}

/// 1/sqrt(n) as a fraction of 2^32 for small n, where one step of Newton's is too far off (`inv_sqrt_cache`): the nearest, but that of 4 is one less.
const INV_SQRT: [u32; 16] = [
    u32::MAX,
    u32::MAX,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];

impl Vars {
    /// `cobalt_invsqrt`.
    fn invsqrt(&mut self) {
        if let Some(&known) = INV_SQRT.get(self.count as usize) {
            self.rec_inv_sqrt = known;
            return;
        }
        let inv = u64::from(self.rec_inv_sqrt);
        let square = (inv * inv) >> 32;
        let val = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        self.rec_inv_sqrt = (val.wrapping_mul(inv) >> (32 - 2 + 1)) as u32;
    }
    /// `cobalt_control`: `t + interval / sqrt(count)`.
    fn control(&self, t: i64, interval: u64) -> i64 {
        //= linux v6.12 include/linux/math.h reciprocal_scale: the interval counts with its lower 32 bits.
        t.wrapping_add(((u64::from(interval as u32) * u64::from(self.rec_inv_sqrt)) >> 32) as i64)
    }
    /// One drop fewer is remembered.
    fn decay(&mut self, p: &Params) {
        self.count -= 1;
        self.invsqrt();
        self.drop_next = self.control(self.drop_next, p.interval);
    }
    /// `cobalt_queue_full`: a packet was dropped because the whole was full. Whether BLUE wakes with this.
    pub fn queue_full(&mut self, p: &Params, now: i64) -> bool {
        let mut up = false;
        if now.wrapping_sub(self.blue_timer) as u64 > p.target {
            up = self.p_drop == 0;
            self.p_drop = self.p_drop.saturating_add(P_INC);
            self.blue_timer = now;
        }
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
        up
    }
    /// `cobalt_queue_empty`: it was the queue's turn, and nothing was there. Whether BLUE falls asleep with this.
    pub fn queue_empty(&mut self, p: &Params, now: i64) -> bool {
        let mut down = false;
        if self.p_drop != 0 && now.wrapping_sub(self.blue_timer) as u64 > p.target {
            self.p_drop = self.p_drop.saturating_sub(P_DEC);
            self.blue_timer = now;
            down = self.p_drop == 0;
        }
        self.dropping = false;
        if self.count != 0 && now >= self.drop_next {
            self.decay(p);
        }
        down
    }
    /// `cobalt_should_drop`: of a packet just taken from its queue, which has come to it at `came`: whether to drop it; it may have been
    /// marked instead. `bulk_flows`: flows whose packets of the greatest size all may wait before this one; 0 where that does not count.
    pub fn should_drop(
        &mut self,
        skb: &mut Skb,
        came: i64,
        p: &Params,
        bulk_flows: u32,
        now: i64,
        rng: &mut Rng,
    ) -> bool {
        let sojourn = now.wrapping_sub(came) as u64;
        let mut schedule = now.wrapping_sub(self.drop_next);
        let over_target = sojourn > p.target
            && sojourn > p.mtu_time.wrapping_mul(bulk_flows.into()).wrapping_mul(2)
            && sojourn > p.mtu_time.wrapping_mul(4);
        let mut next_due = self.count != 0 && schedule >= 0;
        let mut drop = false;
        self.ecn_marked = false;
        if over_target {
            if !self.dropping {
                self.dropping = true;
                self.drop_next = self.control(now, p.interval);
            }
            self.count = self.count.max(1);
        } else {
            self.dropping = false;
        }
        if next_due && self.dropping {
            self.ecn_marked = set_ce(skb);
            drop = !self.ecn_marked;
            self.count = self.count.saturating_add(1);
            self.invsqrt();
            self.drop_next = self.control(self.drop_next, p.interval);
            schedule = now.wrapping_sub(self.drop_next);
        } else {
            while next_due {
                self.decay(p);
                schedule = now.wrapping_sub(self.drop_next);
                next_due = self.count != 0 && schedule >= 0;
            }
        }
        // BLUE: a mark does not save from it.
        if self.p_drop != 0 && rng.next_u32() < self.p_drop {
            drop = true;
        }
        if self.count == 0 {
            // Until when the queue counts as active.
            self.drop_next = now.wrapping_add(p.interval as i64);
        } else if schedule > 0 && !drop {
            self.drop_next = now;
        }
        drop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;

    const P: Params = Params { interval: 100_000_000, target: 5_000_000, mtu_time: 1_211_200 };

    #[test]
    fn small_counts_have_the_nearest_inverse_of_their_root() {
        for (n, &inv) in INV_SQRT.iter().enumerate().skip(2) {
            let exact = 4_294_967_296.0 / (n as f64).sqrt();
            assert!((f64::from(inv) - exact).abs() <= 1.0, "{n}: {inv} {exact}");
        }
    }

    /// The milliseconds of 400 at which a packet is dropped that each has waited for 20 ms.
    fn drops(vars: &mut Vars) -> Vec<i64> {
        let mut rng = Rng::named(1, "cobalt");
        let mut drop = |ms: &i64| {
            let now = 1_000_000_000 + ms * 1_000_000;
            vars.should_drop(&mut packet(0, 1000), now - 20_000_000, &P, 0, now, &mut rng)
        };
        (0..400i64).filter(|ms| drop(ms)).collect()
    }

    #[test]
    fn a_delay_that_stays_is_answered_ever_sooner() {
        // 100 / sqrt(n) ms apart. A queue that was at rest for longer than an interval waits for none first: the moment lay in the past, and is now.
        let mut vars = Vars::default();
        assert_eq!(drops(&mut vars), [1, 71, 129, 179, 224, 264, 302, 338, 371]);
        assert_eq!(vars.count, 10);
        // Below the target the count decays.
        let later = 3_400_000_000;
        assert!(!vars.should_drop(&mut packet(0, 1000), later, &P, 0, later, &mut Rng::named(1, "cobalt")));
        assert_eq!((vars.count, vars.dropping), (0, false));
        // One whose last packet was 50 ms ago waits for an interval.
        let mut active = Vars { drop_next: 1_050_000_000, ..vars };
        assert_eq!(drops(&mut active), [100, 171, 229, 279, 324, 364]);
    }

    #[test]
    fn blue_rises_with_overflow_once_a_target_and_falls_with_idleness() {
        let mut vars = Vars::default();
        let now = 1_000_000_000;
        assert!(vars.queue_full(&P, now));
        assert!(!vars.queue_full(&P, now + 5_000_000));
        assert_eq!(vars.p_drop, 1 << 24);
        assert!(!vars.queue_full(&P, now + 5_000_001));
        assert_eq!(vars.p_drop, 2 << 24);
        assert!(!vars.queue_empty(&P, now + 11_000_000));
        assert_eq!(vars.p_drop, (2 << 24) - (1 << 20));
        let (mut left, mut at) = (0, now + 11_000_000);
        while vars.p_drop != 0 {
            at += 5_000_001;
            left += 1;
            assert_eq!(vars.queue_empty(&P, at), vars.p_drop == 0);
        }
        assert_eq!(left, 31);
    }
}
