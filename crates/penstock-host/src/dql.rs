//! Byte queue limits: how many bytes a driver takes from the queue before it has heard that some are sent.
//!
//! Follows: linux v6.12 lib/dynamic_queue_limits.c, include/linux/dynamic_queue_limits.h, include/linux/netdevice.h `netdev_tx_sent_queue`,
//! `netdev_tx_completed_queue`, net/core/net-sysfs.c `bql_set`.
//! Differs: nobody watches for stalls (`stall_thrs`).

use crate::Host;
use penstock_model::Time;

/// `DQL_MAX_LIMIT`: half of what counters can tell apart, less a little.
pub(crate) const MAX_LIMIT: u32 = (u32::MAX >> 1) - (u32::MAX >> 4);

/// The limits of one transmit queue. Counters run modulo 2^32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dql {
    // Parameters
    /// `limit_max`, `limit_min`, bytes.
    pub(crate) max: u32,
    pub(crate) min: u32,
    /// `hold_time`, milliseconds.
    pub(crate) hold_ms: u32,
    // Variables
    /// The limit as it stands, bytes.
    pub(crate) limit: u32,
    queued: u32,
    completed: u32,
    adj_limit: u32,
    last_obj: u32,
    prev_queued: u32,
    prev_ovlimit: u32,
    prev_last_obj: u32,
    lowest_slack: u32,
    slack_start: u64,
    /// `__QUEUE_STATE_STACK_XOFF`.
    stopped: bool,
}

/// `a - b` where that is positive.
fn posdiff(a: u32, b: u32) -> u32 {
    let d = a.wrapping_sub(b);
    if d as i32 > 0 { d } else { 0 }
}

impl Dql {
    /// As a driver begins (`dql_init`), at this jiffy.
    pub fn new(jiffies: u64) -> Dql {
        Dql {
            max: MAX_LIMIT,
            min: 0,
            hold_ms: 1000,
            limit: 0,
            queued: 0,
            completed: 0,
            adj_limit: 0,
            last_obj: 0,
            prev_queued: 0,
            prev_ovlimit: 0,
            prev_last_obj: 0,
            lowest_slack: u32::MAX,
            slack_start: jiffies,
            stopped: false,
        }
    }
    /// Whether the stack gives the driver nothing now.
    #[inline]
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }
    /// Bytes the driver has that are not known to be sent (`inflight`).
    pub fn inflight(&self) -> u32 {
        self.queued.wrapping_sub(self.completed)
    }
    fn avail(&self) -> i32 {
        self.adj_limit.wrapping_sub(self.queued) as i32
    }
    /// The driver takes so many bytes.
    //= linux v6.12 include/linux/netdevice.h netdev_tx_sent_queue
    pub fn sent(&mut self, bytes: u32) {
        self.last_obj = bytes;
        self.queued = self.queued.wrapping_add(bytes);
        self.stopped |= self.avail() < 0;
    }
    /// So many bytes are known to be sent, at this jiffy of a clock of `hz`.
    //= linux v6.12 lib/dynamic_queue_limits.c dql_completed, include/linux/netdevice.h netdev_tx_completed_queue
    pub fn done(&mut self, bytes: u32, jiffies: u64, hz: u32) {
        if bytes == 0 {
            return;
        }
        let queued = self.queued;
        let completed = self.completed.wrapping_add(bytes);
        let mut limit = self.limit;
        let mut ovlimit = posdiff(queued.wrapping_sub(self.completed), limit);
        let in_progress = queued.wrapping_sub(completed);
        let prev_in_progress = self.prev_queued.wrapping_sub(self.completed);
        let all_prev = completed.wrapping_sub(self.prev_queued) as i32 >= 0;
        if ovlimit > 0 && in_progress == 0 || self.prev_ovlimit > 0 && all_prev {
            // The queue has run dry, or may have: more by what went, and what was over the limit before.
            limit = limit.wrapping_add(posdiff(completed, self.prev_queued)).wrapping_add(self.prev_ovlimit);
            (self.slack_start, self.lowest_slack) = (jiffies, u32::MAX);
        } else if in_progress > 0 && prev_in_progress > 0 && !all_prev {
            // It was busy all the time: the least that was too much in a while is taken off.
            let gone = completed.wrapping_sub(self.completed);
            let slack = posdiff(limit.wrapping_add(self.prev_ovlimit), gone.wrapping_mul(2));
            let of_last =
                if self.prev_ovlimit > 0 { posdiff(self.prev_last_obj, self.prev_ovlimit) } else { 0 };
            self.lowest_slack = self.lowest_slack.min(slack.max(of_last));
            let hold = u64::from(self.hold_ms) * u64::from(hz) / 1000;
            if jiffies > self.slack_start + hold {
                limit = posdiff(limit, self.lowest_slack);
                (self.slack_start, self.lowest_slack) = (jiffies, u32::MAX);
            }
        }
        limit = limit.max(self.min).min(self.max.max(self.min));
        if limit != self.limit {
            self.limit = limit;
            ovlimit = 0;
        }
        self.adj_limit = limit.wrapping_add(completed);
        self.prev_ovlimit = ovlimit;
        self.prev_last_obj = self.last_obj;
        self.completed = completed;
        self.prev_queued = queued;
        self.stopped &= self.avail() < 0;
    }
}

impl Host {
    /// The driver of this card counts the bytes it has (`netdev_tx_sent_queue`).
    pub fn set_bql(&mut self, ifindex: u32, now: Time) {
        let jiffies = self.jiffies_at(now);
        if let Some(device) = self.devices.get_mut(ifindex) {
            device.bql = Some(Box::new(Dql::new(jiffies)));
        }
    }
    /// Whether that keeps the stack from giving it more.
    #[inline]
    pub fn bql_stops(&self, ifindex: u32) -> bool {
        self.devices.get(ifindex).and_then(|d| d.bql.as_ref()).is_some_and(|b| b.is_stopped())
    }
    /// Such a driver takes so many bytes.
    pub fn bql_sent(&mut self, ifindex: u32, bytes: u32) {
        if let Some(bql) = self.devices.get_mut(ifindex).and_then(|d| d.bql.as_mut()) {
            bql.sent(bytes);
        }
    }
    /// So many of them are known to be sent.
    pub fn bql_done(&mut self, ifindex: u32, bytes: u32, now: Time) {
        let (jiffies, hz) = (self.jiffies_at(now), self.hz());
        if let Some(bql) = self.devices.get_mut(ifindex).and_then(|d| d.bql.as_mut()) {
            bql.done(bytes, jiffies, hz);
        }
    }
    fn jiffies_at(&self, now: Time) -> u64 {
        (now.as_ns().max(0) as u128 * u128::from(self.hz()) / 1_000_000_000) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Random bytes given and sent, against what the kernel's file makes of the same: the last limit, and a sum over all steps.
    #[test]
    fn limits_move_as_in_the_kernel() {
        let recorded: [(u32, u32, u64); 8] = [
            (1, 21165, 0xbff2_621e_f088_faa6),
            (2, 2546, 0xe5e8_0fb3_8954_0e72),
            (3, 16807, 0xbefc_a3c4_743c_cded),
            (4, 4814, 0x8704_7737_cabd_e8c6),
            (5, 20796, 0xa561_49e0_49e6_fa83),
            (6, 1170, 0xa117_bb8d_16b1_4bcb),
            (7, 28791, 0x193f_7311_09a7_0d39),
            (8, 6524, 0x45ae_158f_914f_5c31),
        ];
        for (seed, limit, sum) in recorded {
            let (mut x, mut digest, mut jiffies) = (u64::from(seed), 0u64, 1000);
            let mut dice = |n: u32| {
                x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (x >> 33) as u32 % n
            };
            let mut dql = Dql::new(jiffies);
            dql.max = if seed % 3 > 0 { MAX_LIMIT } else { 20_000 };
            dql.min = if seed % 4 > 0 { 0 } else { 3000 };
            // Of a clock of 1000 Hz.
            dql.hold_ms = if seed % 2 > 0 { 100 } else { 3 };
            for _ in 0..20_000 {
                let sends = dice(3) < 2;
                if sends && !dql.is_stopped() {
                    dql.sent(60 + dice(1455));
                } else {
                    let held = dql.inflight();
                    if held > 0 {
                        let bytes = if dice(2) == 1 { held } else { 1 + dice(held) };
                        dql.done(bytes, jiffies, 1000);
                    }
                    jiffies += u64::from(dice(4) == 0);
                }
                let step =
                    u64::from(dql.limit) * 31 + u64::from(dql.inflight()) + u64::from(dql.is_stopped());
                digest = digest.wrapping_mul(1_000_003).wrapping_add(step);
            }
            assert_eq!((dql.limit, digest), (limit, sum), "{seed}");
        }
    }
}
