//! RACK: a segment is lost when one sent sufficiently later has arrived.
//!
//! Follows: linux v6.12 net/ipv4/tcp_recovery.c; RFC 8985 sections 5 and 6.
//! Differs: none known. Only on today's Linux.

use super::Recovery;
use crate::info::CaState;
use crate::sender::Sender;
use crate::sender::rtx::{EVER_RETRANS, LOST, RETRANS};
use crate::sender::timers::Pending;

/// Recoveries for which a widened reordering window is kept.
const RECOVERY_THRESH: u8 = 16;
// Of `tcp_recovery`: the reordering window stays as it begins; duplicates alone start no recovery.
const STATIC_REO_WND: u8 = 2;
const NO_DUPTHRESH: u8 = 4;
/// Least wait of any timer, microseconds (TCP_TIMEOUT_MIN_US).
const TIMEOUT_MIN_US: u64 = 2_000;

/// What is known of the segment sent last among those that arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rack {
    /// When it was sent, microseconds.
    sent_us: u64,
    end: u64,
    /// Its round trip, microseconds.
    rtt_us: u32,
    /// Something arrived since the last look.
    pub advanced: bool,
    /// Reordering window in quarters of the least RTT.
    reo_wnd_steps: u32,
    pub reo_wnd_persist: u8,
    pub dsack_seen: bool,
    last_delivered: u64,
}

impl Rack {
    pub fn new() -> Rack {
        Rack {
            sent_us: 0,
            end: 0,
            rtt_us: 0,
            advanced: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            dsack_seen: false,
            last_delivered: 0,
        }
    }
    /// A recovery was undone because of duplicates: keep the wide window a while longer.
    pub fn persist(&mut self) {
        self.reo_wnd_persist = (self.reo_wnd_persist + 1).min(RECOVERY_THRESH);
    }
}

impl Recovery {
    /// A segment with these tags, sent at `sent_us`, arrived.
    //= linux v6.12 net/ipv4/tcp_recovery.c tcp_rack_advance; RFC 8985 section 6.2 step 2
    #[inline]
    pub(crate) fn rack_advance(&mut self, tx: &Sender, bits: u8, end: u64, sent_us: u64) {
        let rtt_us = tx.clock.us.saturating_sub(sent_us).min(u64::from(u32::MAX)) as u32;
        if rtt_us < tx.timers.min_rtt() && bits & (RETRANS | EVER_RETRANS) != 0 {
            // It may have been the first transmission that arrived.
            return;
        }
        let rack = &mut self.rack;
        rack.advanced = true;
        rack.rtt_us = rtt_us;
        if sent_us > rack.sent_us || sent_us == rack.sent_us && end > rack.end {
            rack.sent_us = sent_us;
            rack.end = end;
        }
    }

    //= linux v6.12 net/ipv4/tcp_recovery.c tcp_rack_reo_wnd
    fn rack_reo_wnd(&self, tx: &Sender) -> u32 {
        let many = || tx.q.sacked_out() >= self.reordering && self.rules & NO_DUPTHRESH == 0;
        if self.reord_seen == 0 && (tx.cc.state() >= CaState::Recovery || many()) {
            return 0;
        }
        let min_rtt = tx.timers.min_rtt();
        let wnd = u64::from(min_rtt >> 2) * u64::from(self.rack.reo_wnd_steps);
        wnd.min(u64::from(tx.timers.srtt8() >> 3)) as u32
    }

    /// Microseconds until a segment sent at `sent_us` is held for lost.
    #[inline]
    fn rack_remaining(&self, tx: &Sender, sent_us: u64, reo_wnd: u32) -> i64 {
        i64::from(self.rack.rtt_us) + i64::from(reo_wnd) - tx.clock.us.saturating_sub(sent_us) as i64
    }

    /// After a timeout: whether a segment was sent so lately that it is not yet held for lost.
    pub(crate) fn rack_too_young(&self, tx: &Sender, sent_us: u64) -> bool {
        self.rack_remaining(tx, sent_us, 0) > 0
    }

    /// Marks what is lost; answers the longest wait of those that may yet be, microseconds, 0 for none.
    //= linux v6.12 net/ipv4/tcp_recovery.c tcp_rack_detect_loss
    fn rack_detect_loss(&mut self, tx: &mut Sender) -> u64 {
        let reo_wnd = self.rack_reo_wnd(tx);
        let mut wait = 0;
        let mut at = tx.q.first_sent();
        while let Some(i) = at {
            at = tx.q.next_sent(i);
            let seg = *tx.q.at(i);
            if seg.has(LOST) && !seg.has(RETRANS) {
                continue;
            }
            if !seg.sent_before(self.rack.sent_us, self.rack.end) {
                break;
            }
            let remaining = self.rack_remaining(tx, seg.sent_us, reo_wnd);
            if remaining <= 0 {
                tx.q.mark_lost_unlist(i);
            } else {
                wait = wait.max(remaining as u64);
            }
        }
        wait
    }

    /// Looks for losses after an ACK; answers whether the timer was set for the rest.
    //= linux v6.12 net/ipv4/tcp_recovery.c tcp_rack_mark_lost
    pub(crate) fn rack_mark_lost(&mut self, tx: &mut Sender) -> bool {
        if !self.rack.advanced {
            return false;
        }
        self.rack.advanced = false;
        let wait = self.rack_detect_loss(tx);
        if wait > 0 {
            let jiffies = tx.clock.us_to_jiffies(wait + TIMEOUT_MIN_US).min(tx.timers.rto());
            tx.set_timer(Pending::Reorder, jiffies);
        }
        wait > 0
    }

    /// The reordering window has passed.
    //= linux v6.12 net/ipv4/tcp_recovery.c tcp_rack_reo_timeout
    pub(crate) fn rack_reo_timeout(&mut self, tx: &mut Sender) {
        let (in_flight, lost) = (tx.q.in_flight(), tx.q.lost());
        self.rack_detect_loss(tx);
        if in_flight != tx.q.in_flight() {
            if tx.cc.state() != CaState::Recovery {
                self.enter_recovery(tx, false);
                let newly_lost = tx.q.lost() - lost;
                if !tx.cc.takes_over() {
                    self.cwnd_reduction(tx, 1, newly_lost, false);
                }
            }
            tx.todo.rexmit = true;
            self.reo_at = tx.clock.now;
        }
        if tx.timers.pending() != Some(Pending::Retrans) {
            tx.rearm_rto();
        }
    }

    /// Widens the reordering window when duplicates show that it was too narrow.
    //= linux v6.12 net/ipv4/tcp_recovery.c tcp_rack_update_reo_wnd
    pub(crate) fn rack_update_reo_wnd(&mut self, tx: &mut Sender, prior_delivered: u64) {
        if prior_delivered == 0 || self.rules & STATIC_REO_WND != 0 {
            return;
        }
        let delivered = tx.cc.delivered();
        let rack = &mut self.rack;
        if prior_delivered < rack.last_delivered {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.reo_wnd_steps = (rack.reo_wnd_steps + 1).min(0xff);
            rack.dsack_seen = false;
            rack.last_delivered = delivered;
            rack.reo_wnd_persist = RECOVERY_THRESH;
        } else if rack.reo_wnd_persist == 0 {
            rack.reo_wnd_steps = 1;
        }
    }
}
