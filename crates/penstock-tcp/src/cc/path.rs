//! What both versions of BBR reckon alike: rates, the product of rate and round trip, pacing, the window's growth.
//!
//! Follows: linux v6.12 net/ipv4/tcp_bbr.c; draft-ietf-ccwg-bbr-02 sections 5.6.2 to 5.6.4.
//! Differs: none known.

use super::{RateSample, Window};
use crate::info::CaState;

/// Rates are segments a microsecond in 2^-24ths.
pub(super) const BW_SCALE: u32 = 24;
pub(super) const BW_UNIT: u64 = 1 << BW_SCALE;
/// Gains are in 256ths.
pub(super) const UNIT: u32 = 256;
/// Rounds of a half of the window over which the excess of ACKs is remembered, and what it may add, microseconds.
pub(super) const EXTRA_ROUNDS: u32 = 5;
const EXTRA_MAX_US: u64 = 100_000;

//= linux v6.12 net/ipv4/tcp_bbr.c bbr_rate_bytes_per_sec
pub(super) fn rate_bytes_s(w: &Window, bw: u64, gain: u32) -> u64 {
    // One per cent below what was measured, so as not to build a queue.
    let rate = (u128::from(bw) * u128::from(w.mss) * u128::from(gain)) >> 8;
    ((rate * (1_000_000 / 100 * 99)) >> BW_SCALE) as u64
}
/// The least of segments that a packet is made of at this rate, bytes a second.
//= linux v6.12 net/ipv4/tcp_bbr.c bbr_min_tso_segs
pub(super) fn min_tso_segs(rate: u64) -> u32 {
    if rate < 1_200_000 >> 3 { 1 } else { 2 }
}
//= linux v6.12 net/ipv4/tcp_bbr.c bbr_tso_segs_goal
pub(super) fn tso_segs_goal(w: &Window) -> u32 {
    let rate = w.pacing_rate.unwrap_or(0);
    let least = min_tso_segs(rate);
    let bytes = (rate >> 10).min(65_536 - 1 - 320);
    ((bytes / u64::from(w.mss.max(1))) as u32).max(least).min(0x7f)
}
/// Segments that a path of this rate and this least round trip holds, times `gain`.
//= linux v6.12 net/ipv4/tcp_bbr.c bbr_bdp
pub(super) fn bdp(min_rtt_us: u32, bw: u64, gain: u32) -> u32 {
    if min_rtt_us == u32::MAX {
        return 10;
    }
    let x = u128::from(bw) * u128::from(min_rtt_us) * u128::from(gain);
    (x >> 8).div_ceil(u128::from(BW_UNIT)).min(u128::from(u32::MAX / 4)) as u32
}
/// What more ACKs at once than the rate explains may add to the window.
pub(super) fn extra(bw: u64, extra_acked: [u32; 2]) -> u32 {
    let most = ((bw * EXTRA_MAX_US) >> BW_SCALE) as u32;
    extra_acked[0].max(extra_acked[1]).min(most)
}
/// The window after an ACK, on its way to `target`; `full`: the pipe is.
//= linux v6.12 net/ipv4/tcp_bbr.c bbr_set_cwnd
pub(super) fn grown(w: &Window, rs: &RateSample, cwnd: u32, target: u32, full: bool) -> u32 {
    if full {
        (cwnd + rs.acked_sacked).min(target)
    } else if cwnd < target || w.delivered < 10 {
        cwnd + rs.acked_sacked
    } else {
        cwnd
    }
}
/// The window to return to, where trouble or a look at the round trip begins now; `before`: the state of recovery so far.
//= linux v6.12 net/ipv4/tcp_bbr.c bbr_save_cwnd
pub(super) fn saved(w: &Window, prior: u32, before: Option<CaState>, probes_rtt: bool) -> u32 {
    let good = before.is_none_or(|s| s < CaState::Recovery) && !probes_rtt;
    if good { w.cwnd } else { prior.max(w.cwnd) }
}

/// Whether the pace is known from a round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    has_seen_rtt: bool,
}

impl Pace {
    /// The first pace: a window per round trip, or per millisecond where none was seen.
    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_init_pacing_rate_from_rtt
    pub fn init(&mut self, w: &mut Window, gain: u32) {
        self.has_seen_rtt |= w.srtt_us8 > 0;
        let rtt_us = if w.srtt_us8 > 0 { u64::from((w.srtt_us8 >> 3).max(1)) } else { 1_000 };
        w.pacing_rate = Some(rate_bytes_s(w, u64::from(w.cwnd) * BW_UNIT / rtt_us, gain));
    }
    /// The pace for this rate; it falls only once the pipe is `full`. `first`: the gain of the first pace.
    //= linux v6.12 net/ipv4/tcp_bbr.c bbr_set_pacing_rate
    pub fn set(&mut self, w: &mut Window, bw: u64, gain: u32, full: bool, first: u32) {
        let rate = rate_bytes_s(w, bw, gain);
        if !self.has_seen_rtt && w.srtt_us8 > 0 {
            self.init(w, first);
        }
        if full || rate > w.pacing_rate.unwrap_or(0) {
            w.pacing_rate = Some(rate);
        }
    }
}

/// Dice that fall the same each time for one connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dice(u32);

impl Dice {
    pub fn new(seed: u32) -> Dice {
        Dice(seed)
    }
    /// A number below `bound`.
    pub fn draw(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (u64::from(self.0) * bound) >> 32
    }
}
