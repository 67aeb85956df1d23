//! When to acknowledge: at once, with data, every second segment, or when the delay has run out.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_event_data_recv`, `tcp_measure_rcv_mss`, `__tcp_ack_snd_check`,
//! net/ipv4/tcp_output.c `tcp_send_delayed_ack`, net/ipv4/tcp_timer.c `tcp_delack_timer_handler`; v2.6.35 likewise.
//! Differs: Windows XP acknowledges every second full segment and otherwise after 200 ms.

use super::{Receiver, TCP_MAX_QUICKACKS, TCP_MIN_MSS, TCP_MSS_DEFAULT};
use crate::clock::Clock;
use crate::config::Stack;
use crate::mib::Rx;
use penstock_model::{Span, Time};

/// ACKs compressed at most into one (`tcp_comp_sack_nr`).
const COMP_SACK_NR: u32 = 44;
/// Longest wait for them (`tcp_comp_sack_delay_ns`).
const COMP_SACK_DELAY_NS: u64 = 1_000_000;
/// How much later their timer goes off where nothing else interrupts (`tcp_comp_sack_slack_ns`).
const COMP_SACK_SLACK_NS: u64 = 100_000;
/// The same of 7.2.
const COMP_SACK_SLACK_NS_7_2: u64 = 10_000;
/// How much of a round trip they wait at most, per cent (`tcp_comp_sack_rtt_percent` of 7.2; before, 5).
const COMP_SACK_RTT_PERCENT: u64 = 33;

/// What the receiving half needs to know of the sending half to time its ACKs; jiffies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    /// The smoothed RTT, where there is one.
    pub srtt: Option<u32>,
    /// The same in microseconds.
    pub srtt_us: Option<u32>,
}

/// An ACK that is to go as things stood in the midst of a segment's processing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyAck {
    /// The header's window.
    pub window: u16,
    /// SACK blocks, the first `blocks` of them.
    pub sacks: [(u32, u32); 4],
    pub blocks: u8,
}

impl Receiver {
    /// In-order data came.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_event_data_recv
    pub(crate) fn data_received(&mut self, len: u32, psh: bool, header: u32, clock: &Clock, rto: u32) {
        self.scheduled = true;
        self.measure_rcv_mss(len, psh, header);
        self.rcv_rtt_measure(clock);
        if self.ato == 0 {
            self.incr_quickack(TCP_MAX_QUICKACKS);
            self.ato = self.ato_min;
        } else {
            let gap = (clock.jiffies - self.lrcvtime).min(u64::from(u32::MAX)) as u32;
            if gap <= self.ato_min / 2 {
                self.ato = (self.ato >> 1) + self.ato_min / 2;
            } else if gap < self.ato {
                self.ato = ((self.ato >> 1) + gap).min(rto);
                if self.today() {
                    self.ato = self.ato.min(self.delack_max(clock));
                }
            } else if gap > rto {
                self.incr_quickack(TCP_MAX_QUICKACKS);
            }
        }
        self.lrcvtime = clock.jiffies;
        self.answer_mark();
    }

    //= linux v6.12 net/ipv4/tcp_input.c __tcp_ecn_check_ce
    pub(crate) fn answer_mark(&mut self) {
        if std::mem::take(&mut self.quick_for_mark) {
            self.enter_quickack(2);
        }
    }

    /// TCP_DELACK_MAX, jiffies.
    fn delack_max(&self, clock: &Clock) -> u32 {
        clock.hz() / 5
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_measure_rcv_mss
    #[inline]
    pub(crate) fn measure_rcv_mss(&mut self, len: u32, psh: bool, header: u32) {
        let last = std::mem::take(&mut self.last_seg_size);
        let all = len;
        let len = if self.joined_of > 0 { self.joined_of.into() } else { len };
        if len >= self.rcv_mss {
            if len != self.rcv_mss && self.today() {
                let ratio =
                    ((u64::from(all) << 8) / u64::from(self.truesize(all).max(1))).clamp(1, 255) as u32;
                if ratio != self.scaling_ratio {
                    self.scaling_ratio = ratio;
                    self.window_clamp = self.full_space().clamp(0, i64::from(u32::MAX)) as u32;
                    self.space = self.space.min(self.window_clamp).max(1);
                }
            }
            self.rcv_mss = len.min(self.advmss).max(1);
            if psh && self.today() {
                self.pushed = true;
            }
            return;
        }
        let whole = len + header;
        if whole >= TCP_MSS_DEFAULT + 20 || whole >= TCP_MIN_MSS + 20 && !psh {
            // What SACK blocks take of a segment counts as if it were data.
            let invariant = whole.saturating_sub(self.header_len);
            self.last_seg_size = invariant;
            if invariant == last {
                self.rcv_mss = invariant.max(1);
                return;
            }
        }
        self.pushed2 |= self.pushed;
        self.pushed = true;
    }

    fn incr_quickack(&mut self, max: u32) {
        let n = match self.rcv_wnd / (2 * self.rcv_mss) {
            0 => 2,
            n => n,
        };
        self.quick = self.quick.max(n.min(max));
    }

    /// ACKs go without delay for a while (`tcp_enter_quickack_mode`).
    pub(crate) fn enter_quickack(&mut self, max: u32) {
        if self.stack == Stack::WindowsXp {
            self.now = true;
            return;
        }
        self.incr_quickack(max);
        self.pingpong = false;
        self.ato = self.ato_min;
    }

    /// We sent data: shortly after receiving some, the session is held for interactive.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_event_data_sent
    #[inline]
    pub(crate) fn data_sent(&mut self, clock: &Clock) {
        if clock.jiffies - self.lrcvtime < u64::from(self.ato) {
            self.pingpong = true;
        }
    }

    /// A segment with our acknowledgement was sent.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_event_ack_sent
    #[inline]
    pub(crate) fn ack_sent(&mut self) {
        if self.quick > 0 {
            let n = u32::from(self.scheduled);
            if n >= self.quick {
                self.quick = 0;
                self.ato = self.ato_min;
            } else {
                self.quick -= n;
            }
        }
        if self.compressed > 0 {
            self.mib.add(Rx::AckCompressed, self.compressed);
        }
        self.compressed = 0;
        self.compressed_at = None;
        self.scheduled = false;
        self.now = false;
        self.soon = false;
        self.nomem = false;
        self.pushed = false;
        self.pushed2 = false;
        self.delack = None;
        // Linux leaves the timer running (inet_csk_clear_xmit_timer): it finds nothing to do, or ACKs that were held back.
        if !self.today() {
            self.delack_fires = Time::MAX;
        }
    }

    /// After a segment was dealt with and the data it let go was sent: whether an ACK is to be sent at once. If not,
    /// it is owed and its timer set.
    //= linux v6.12 net/ipv4/tcp_input.c __tcp_ack_snd_check
    pub(crate) fn ack_due(&mut self, clock: &Clock, timing: &Timing) -> bool {
        if self.now {
            return true;
        }
        if !self.scheduled {
            return false;
        }
        let unacked = self.rcv_nxt - self.rcv_wup;
        if self.stack == Stack::WindowsXp {
            let (segments, jiffies) = self.deferred;
            if unacked >= u64::from(segments) * u64::from(self.rcv_mss) || self.has_ooo() {
                return true;
            }
            if self.delack.is_none() {
                self.set_delack(clock.jiffies + jiffies, clock);
            }
            return false;
        }
        if unacked > u64::from(self.rcv_mss)
            && (self.today() && self.readable() == 0 || self.pick_window() >= self.rcv_wnd)
            || self.quick > 0 && !self.pingpong
            || self.quickack
            || self.soon
        {
            return true;
        }
        if !self.has_ooo() {
            return self.delay_ack(clock, timing);
        }
        if !self.sack || !self.today() || self.compressed >= COMP_SACK_NR {
            return true;
        }
        if self.compressed_rcv_nxt != self.rcv_nxt {
            self.compressed_rcv_nxt = self.rcv_nxt;
            self.dup_acks = 0;
        }
        if self.dup_acks < 3 {
            self.dup_acks += 1;
            return true;
        }
        self.compressed += 1;
        if self.compressed_at.is_none() {
            let mut rtt8 = self.rtt_est8;
            if let Some(us) = timing.srtt_us {
                rtt8 = rtt8.min(u64::from(us) << 3);
            }
            let ns = match self.newest() {
                true => {
                    ((rtt8 + (rtt8 >> 2)) * COMP_SACK_RTT_PERCENT).min(COMP_SACK_DELAY_NS)
                        + COMP_SACK_SLACK_NS_7_2
                }
                false => (rtt8 * 125 / 20).min(COMP_SACK_DELAY_NS) + COMP_SACK_SLACK_NS,
            };
            self.compressed_at = Some(clock.now + Span::from_ns(ns as i64));
        }
        false
    }

    /// ACKs held back are sent before the blocks they report are pushed out: with what is known so far.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sack_compress_send_ack
    pub(crate) fn flush_compressed(&mut self) {
        if self.compressed > 0 {
            let mut sacks = [(0, 0); 4];
            let blocks = self.write_sacks(&mut sacks, 4);
            self.early = Some(EarlyAck { window: self.select_window(), sacks, blocks });
            // One of them is this.
            self.compressed -= 1;
            self.ack_sent();
        }
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_delayed_ack
    fn delay_ack(&mut self, clock: &Clock, timing: &Timing) -> bool {
        let mut ato = self.ato;
        if ato > self.ato_min {
            let mut max = if self.pingpong || self.pushed { self.delack_max(clock) } else { clock.hz() / 2 };
            if let Some(srtt) = timing.srtt {
                max = max.min(srtt.max(self.ato_min));
            }
            ato = ato.min(max);
        }
        if self.today() {
            //= linux v6.12 net/ipv4/tcp_output.c tcp_delack_max
            ato = ato.min(self.delack_max(clock)).min(self.rto_min.max(2) - 1);
        }
        let mut timeout = clock.jiffies + u64::from(ato);
        if let Some(earlier) = self.delack {
            if earlier <= clock.jiffies + u64::from(ato >> 2) {
                return true;
            }
            timeout = timeout.min(earlier);
        }
        if self.delack != Some(timeout) {
            self.set_delack(timeout, clock);
        }
        false
    }

    fn set_delack(&mut self, timeout: u64, clock: &Clock) {
        self.delack = Some(timeout);
        self.delack_fires = clock.fires(timeout);
    }

    /// Whether the timer of held-back ACKs has run out.
    pub(crate) fn holds_back_until(&self, now: Time) -> bool {
        self.compressed_at.is_some_and(|t| t <= now)
    }

    /// When [`delack_timeout`](Receiver::delack_timeout) wants to be called; [`Time::MAX`]: never.
    #[inline]
    pub(crate) fn timer(&self) -> Time {
        self.compressed_at.map_or(self.delack_fires, |c| c.min(self.delack_fires))
    }

    /// The delay has run out: answers whether an ACK is to be sent.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_delack_timer_handler
    pub(crate) fn delack_timeout(&mut self, clock: &Clock, rto: u32) -> bool {
        if self.compressed_at.is_some_and(|t| t <= clock.now) {
            self.compressed_at = None;
            let held = self.compressed > 0;
            self.compressed -= u32::from(held);
            return held;
        }
        if self.delack_fires > clock.now {
            return false;
        }
        let pending = self.delack.take().is_some();
        self.delack_fires = Time::MAX;
        if self.today() && self.compressed > 0 {
            self.compressed -= 1;
            return true;
        }
        if !pending || !self.scheduled {
            return false;
        }
        if !self.pingpong {
            self.ato = (self.ato << 1).min(rto);
            if self.today() {
                self.ato = self.ato.min(self.delack_max(clock));
            }
        } else {
            self.pingpong = false;
            self.ato = self.ato_min;
        }
        self.mib.one(Rx::DelayedAcks);
        true
    }
}
