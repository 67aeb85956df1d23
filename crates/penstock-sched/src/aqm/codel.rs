//! CoDel: controlled delay.
//!
//! Follows: linux v6.12 include/net/codel.h, `codel_impl.h`; RFC 8289. Time is counted in units of 1024 ns.

use super::ecn::set_ce;
use penstock_model::{Options, Time};
use penstock_packet::{L3, Packet};

/// `CODEL_SHIFT`.
const SHIFT: u32 = 10;
/// `CODEL_DISABLED_THRESHOLD`: nothing is marked by its delay alone.
pub const DISABLED: u32 = i32::MAX as u32;

/// How long the machine has been up when its time begins, in units of 1024 ns: a minute. A flow of fq_codel that is hit for the first time
/// would else seem to have dropped just now, at time 0 (as it does in a kernel that has just booted; and again after 37 minutes, when the difference has wrapped, as in the kernel).
const UPTIME: u64 = 60_000_000_000 >> SHIFT;

/// `codel_get_time`: a moment in units of 1024 ns, cut to 32 bits.
pub fn time(now: Time) -> u32 {
    ((now.as_ns() as u64 >> SHIFT) + UPTIME) as u32
}
/// `codel_time_after`.
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}
/// `codel_time_before`.
fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

/// Microseconds to units of 1024 ns.
pub fn from_us(us: u32) -> u32 {
    ((u64::from(us) * 1000) >> SHIFT) as u32
}
/// `codel_time_to_us`.
pub fn to_us(time: u32) -> u32 {
    ((u64::from(time) << SHIFT) / 1000) as u32
}

/// Parameters: `struct codel_params`, times in units of 1024 ns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Params {
    /// Delay that is let stand. Default 5 ms.
    pub target: u32,
    /// How long the delay may stay above it. Default 100 ms.
    pub interval: u32,
    /// Delay above which all is marked, or [`DISABLED`].
    pub ce_threshold: u32,
    /// Marks instead of dropping.
    pub ecn: bool,
    /// Mask and value of the type of service that the threshold is for; a mask of 0: of all packets. fq_codel alone sets it.
    pub ce_threshold_selector: (u8, u8),
}

impl Params {
    /// `codel_params_init`.
    pub fn new() -> Params {
        Params {
            target: from_us(5000),
            interval: from_us(100_000),
            ce_threshold: DISABLED,
            ecn: false,
            ce_threshold_selector: (0, 0),
        }
    }
    /// Takes over what is given of `target`, `interval`, `ce_threshold` (µs) and `ecn`.
    pub fn change(&mut self, o: &Options) {
        let time = |name, old| o.u32(name).map_or(old, from_us);
        self.target = time("target", self.target);
        self.interval = time("interval", self.interval);
        self.ce_threshold = time("ce_threshold", self.ce_threshold);
        self.ecn = o.u32("ecn").map_or(self.ecn, |ecn| ecn != 0);
    }
    /// Whether the delay alone may mark this packet (`ce_threshold_selector`).
    fn may_mark(&self, packet: &Packet) -> bool {
        let (mask, selector) = self.ce_threshold_selector;
        if mask == 0 {
            return true;
        }
        matches!(packet.l3, L3::Ipv4(_) | L3::Ipv6(_)) && packet.tos() & mask == selector
    }
    /// Adds the four to a dump, the times in µs.
    pub fn dump(&self, o: Options) -> Options {
        let o = o
            .with("target", to_us(self.target))
            .with("interval", to_us(self.interval))
            .with("ecn", u32::from(self.ecn));
        if self.ce_threshold == DISABLED { o } else { o.with("ce_threshold", to_us(self.ce_threshold)) }
    }
}

impl Default for Params {
    fn default() -> Params {
        Params::new()
    }
}

/// The queue that CoDel takes packets from.
pub trait Queue {
    /// Takes the first packet.
    fn pop(&mut self) -> Option<Packet>;
    /// Bytes queued, as the kind counts them.
    fn backlog(&self) -> u32;
    /// Drops a packet that was taken.
    fn discard(&mut self, packet: Packet);
}

/// Variables: `struct codel_vars`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Vars {
    /// Drops of this dropping state.
    pub count: u32,
    /// `count` when the last dropping state began.
    pub lastcount: u32,
    /// In the dropping state.
    pub dropping: bool,
    /// 1/sqrt(count), as a fraction of 2^16.
    rec_inv_sqrt: u16,
    /// When the delay will have been above the target for an interval; 0: it is below.
    first_above_time: u32,
    /// When to drop next.
    pub drop_next: u32,
    /// How long the last packet was queued.
    pub ldelay: u32,
}

/// Counters: `struct codel_stats`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Longest packet seen, bytes.
    pub maxpacket: u32,
    /// Marked instead of dropped.
    pub ecn_mark: u32,
    /// Marked for their delay alone.
    pub ce_mark: u32,
}

impl Counts {
    /// Packets marked, for whatever reason.
    pub fn marks(&self) -> u64 {
        u64::from(self.ecn_mark) + u64::from(self.ce_mark)
    }
}

impl Vars {
    /// `codel_Newton_step`.
    fn newton_step(&mut self) {
        let invsqrt = u32::from(self.rec_inv_sqrt) << 16;
        let square = (u64::from(invsqrt) * u64::from(invsqrt)) >> 32;
        let val = (3u64 << 32).wrapping_sub(u64::from(self.count).wrapping_mul(square)) >> 2;
        let val = val.wrapping_mul(u64::from(invsqrt)) >> (32 - 2 + 1);
        self.rec_inv_sqrt = (val >> 16) as u16;
    }
    /// `codel_control_law`: `t + interval / sqrt(count)`.
    fn control_law(&self, t: u32, interval: u32) -> u32 {
        let step = (u64::from(interval) * u64::from(u32::from(self.rec_inv_sqrt) << 16)) >> 32;
        t.wrapping_add(step as u32)
    }
    /// `codel_should_drop`.
    fn should_drop(
        &mut self,
        packet: Option<&Packet>,
        p: &Params,
        mtu: u32,
        counts: &mut Counts,
        backlog: u32,
        now: u32,
    ) -> bool {
        let Some(packet) = packet else {
            self.first_above_time = 0;
            return false;
        };
        self.ldelay = now.wrapping_sub(time(packet.queued));
        counts.maxpacket = counts.maxpacket.max(packet.pkt_len);
        if before(self.ldelay, p.target) || backlog <= mtu {
            self.first_above_time = 0;
            return false;
        }
        if self.first_above_time == 0 {
            self.first_above_time = now.wrapping_add(p.interval);
            return false;
        }
        after(now, self.first_above_time)
    }
    /// `codel_dequeue`: the next packet of a queue, after those that are dropped or marked. `mtu` (with the link header):
    /// a queue of no more bytes is left alone.
    //= RFC 8289 section 5
    pub fn dequeue(
        &mut self,
        queue: &mut dyn Queue,
        p: &Params,
        mtu: u32,
        counts: &mut Counts,
        moment: Time,
    ) -> Option<Packet> {
        let now = time(moment);
        let Some(mut packet) = queue.pop() else {
            (self.first_above_time, self.dropping) = (0, false);
            return None;
        };
        let drop = self.should_drop(Some(&packet), p, mtu, counts, queue.backlog(), now);
        let mut left = Some(packet);
        if self.dropping {
            if !drop {
                self.dropping = false;
            }
            while self.dropping && !before(now, self.drop_next) {
                self.count = self.count.wrapping_add(1);
                self.newton_step();
                let Some(mut taken) = left.take() else { break };
                if p.ecn && set_ce(&mut taken) {
                    counts.ecn_mark = counts.ecn_mark.wrapping_add(1);
                    self.drop_next = self.control_law(self.drop_next, p.interval);
                    left = Some(taken);
                    break;
                }
                queue.discard(taken);
                left = queue.pop();
                if self.should_drop(left.as_ref(), p, mtu, counts, queue.backlog(), now) {
                    self.drop_next = self.control_law(self.drop_next, p.interval);
                } else {
                    self.dropping = false;
                }
            }
        } else if drop {
            packet = left.take()?;
            if p.ecn && set_ce(&mut packet) {
                counts.ecn_mark = counts.ecn_mark.wrapping_add(1);
                left = Some(packet);
            } else {
                queue.discard(packet);
                left = queue.pop();
                self.should_drop(left.as_ref(), p, mtu, counts, queue.backlog(), now);
            }
            self.start_dropping(p, now);
        }
        if let Some(packet) = &mut left
            && after(self.ldelay, p.ce_threshold)
            && p.may_mark(packet)
            && set_ce(packet)
        {
            counts.ce_mark = counts.ce_mark.wrapping_add(1);
        }
        left
    }
    /// The dropping state begins: as fast as the last one ended, if that was not long ago.
    fn start_dropping(&mut self, p: &Params, now: u32) {
        self.dropping = true;
        let delta = self.count.wrapping_sub(self.lastcount);
        let recent = before(now.wrapping_sub(self.drop_next), p.interval.wrapping_mul(16));
        if delta > 1 && recent {
            self.count = delta;
            self.newton_step();
        } else {
            (self.count, self.rec_inv_sqrt) = (1, u16::MAX);
        }
        self.lastcount = self.count;
        self.drop_next = self.control_law(now, p.interval);
    }
    /// Adds what the kinds show of it: `struct tc_codel_xstats`.
    pub fn xstats(&self, o: Options, now: Time) -> Options {
        let next = self.drop_next.wrapping_sub(time(now)) as i32;
        let us = i64::from(to_us(next.unsigned_abs()));
        let next = match next {
            _ if !self.dropping => 0,
            next if next >= 0 => us,
            _ => -us,
        };
        o.with("count", self.count)
            .with("lastcount", self.lastcount)
            .with("ldelay", to_us(self.ldelay))
            .with("dropping", u32::from(self.dropping))
            .with("drop_next", next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_lose_what_1024_ns_cannot_hold() {
        assert_eq!([1, 3, 1024, 5000].map(|us| to_us(from_us(us))), [0, 2, 1024, 4999]);
        let mut p = Params::new();
        p.change(&Options::new().with("ecn", 2u32).with("ce_threshold", 20_000u32));
        assert_eq!((p.ecn, p.target, to_us(p.ce_threshold)), (true, 4882, 19_999));
        assert!(!Params::new().dump(Options::new()).has("ce_threshold"));
    }

    #[test]
    fn the_root_is_found_by_newton() {
        let mut v = Vars { count: 1, rec_inv_sqrt: u16::MAX, ..Vars::default() };
        let mut steps = Vec::new();
        for _ in 0..4 {
            steps.push(v.control_law(0, 100_000));
            v.count += 1;
            v.newton_step();
        }
        // Towards 100000 / sqrt(n) for n of 1 to 4, one step of Newton's each.
        assert_eq!(steps, [99998, 50001, 56250, 48779]);
    }
}
