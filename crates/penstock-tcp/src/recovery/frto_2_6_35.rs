//! F-RTO as Linux 2.6.35 had it: whether a retransmission timeout was spurious shows before anything but the front segment
//! is sent again.
//!
//! Follows: linux v2.6.35 net/ipv4/tcp_input.c `tcp_use_frto`, `tcp_enter_frto`, `tcp_process_frto`,
//! `tcp_enter_frto_loss` (RFC 4138 with its appendix B; `tcp_frto` 2, `tcp_frto_response` 0, the defaults).
//! Differs: none known. Windows XP has none of it. 6.12's is in `recovery`.
//!
//! The timeout sends the front segment again (step 1). An ACK that acknowledges data lets two new segments go (step 2,
//! 3 once one is sent). If the next ACK again brings progress, by data sent before the timeout and never again, the
//! timeout was spurious: the window falls by rate halving. Else everything not sacked is held for lost.

use crate::endpoint::ack::{
    DATA_ACKED, DATA_SACKED, FORWARD_PROGRESS, NONHEAD_RETRANS_ACKED, NOT_DUP, ONLY_ORIG_SACKED,
    RETRANS_DATA_ACKED, SND_UNA_ADVANCED,
};
use crate::config::Stack;
use crate::endpoint::Endpoint;
use crate::info::CaState;
use crate::sender::rtx::{EVER_RETRANS, RETRANS, SACKED};

impl Endpoint {
    /// Whether a timeout begins with F-RTO.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_use_frto
    pub(crate) fn use_frto_2_6_35(&self) -> bool {
        if self.p.today || self.cfg.stack == Stack::WindowsXp {
            return false;
        }
        if self.sack_ok {
            return true;
        }
        if self.q.retrans_out > 1 {
            return false;
        }
        // Without SACK only the front segment may have been sent again.
        (1..self.q.packets_out() as usize)
            .map(|i| self.q.at(i))
            .find_map(|seg| match seg {
                s if s.has(RETRANS | EVER_RETRANS) => Some(false),
                s if !s.has(SACKED) => Some(true),
                _ => None,
            })
            .unwrap_or(true)
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_enter_frto
    pub(crate) fn enter_frto_2_6_35(&mut self) {
        if self.frto_counter == 0 && self.ca <= CaState::Disorder
            || self.snd_una == self.high_seq
            || (self.ca == CaState::Loss || self.frto_counter > 0) && self.retransmits == 0
        {
            self.prior_ssthresh = self.current_ssthresh();
            let cwnd = self.w.cwnd;
            if self.frto_counter > 0 {
                self.w.cwnd = 2;
            }
            self.w.ssthresh = self.ask_ssthresh();
            self.w.cwnd = cwnd;
        }
        let again = self.q.front().is_some_and(|f| f.has(RETRANS | EVER_RETRANS));
        self.undo_marker = (!again).then_some(self.snd_una);
        self.undo_retrans = 0;
        self.q.untag_retrans(0);
        self.w.cwnd = self.w.cwnd.min(self.q.in_flight() + 1);
        let under_way = self.frto_counter > 0 || self.ca >= CaState::Recovery;
        let earlier = self.sack_ok && under_way && self.high_seq > self.snd_una;
        self.frto_highmark = Some(if earlier { self.high_seq } else { self.snd_nxt });
        self.set_ca(CaState::Disorder);
        self.high_seq = self.snd_nxt;
        self.frto_counter = 1;
    }

    /// The timeout was not spurious: all that is not sacked is held for lost, `allowed` segments may go now.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_enter_frto_loss
    fn enter_frto_loss(&mut self, allowed: u32, flag: u32) {
        if !self.sack_ok {
            self.q.sacked_out = 0;
        }
        self.q.unmark_all_lost();
        // The retransmission the timeout made stays counted while no ACK has come.
        let keep_front = self.frto_counter == 1 && flag & DATA_ACKED == 0;
        for i in 0..self.q.packets_out() as usize {
            if i > 0 || !keep_front {
                if self.q.at(i).has(RETRANS | EVER_RETRANS) {
                    self.undo_marker = None;
                }
                self.q.untag_retrans(i);
            }
            self.q.mark_lost(i);
        }
        self.w.cwnd = (self.q.in_flight() + allowed).max(1);
        self.w.cwnd_cnt = 0;
        self.cwnd_stamp = self.clock.jiffies;
        self.frto_counter = 0;
        self.reordering = self.reordering.min(self.p.reordering);
        self.set_ca(CaState::Loss);
        self.show_window();
        self.cc.on_rto(&self.w);
        self.high_seq = self.snd_nxt;
        self.queue_cwr();
        self.aged_up_to = 0;
    }

    /// An ACK while F-RTO is under way; answers whether it has set the window.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_process_frto
    pub(crate) fn process_frto_2_6_35(&mut self, flag: u32) -> bool {
        let first = self.frto_counter == 1;
        if flag & DATA_ACKED != 0 {
            self.retransmits = 0;
        }
        if flag & NONHEAD_RETRANS_ACKED != 0 || !first && flag & RETRANS_DATA_ACKED != 0 {
            self.undo_marker = None;
        }
        if self.frto_highmark.is_none_or(|high| self.snd_una >= high) {
            self.enter_frto_loss(if first { 2 } else { 3 }, flag);
            return true;
        }
        if !self.sack_ok {
            if flag & (FORWARD_PROGRESS | SND_UNA_ADVANCED) == 0 && flag & NOT_DUP != 0 {
                return true;
            }
            if flag & DATA_ACKED == 0 {
                self.enter_frto_loss(if first { 0 } else { 3 }, flag);
                return true;
            }
        } else if first {
            if flag & DATA_ACKED == 0 {
                // No new data until the retransmission is answered.
                self.w.cwnd = self.w.cwnd.min(self.q.in_flight()).max(1);
                return true;
            }
        } else if flag & FORWARD_PROGRESS == 0 || flag & DATA_SACKED != 0 && flag & ONLY_ORIG_SACKED == 0 {
            if flag & FORWARD_PROGRESS == 0 && flag & NOT_DUP != 0 {
                return true;
            }
            self.enter_frto_loss(3, flag);
            return true;
        }
        if first {
            self.w.cwnd = self.q.in_flight() + 2;
            self.frto_counter = 2;
            if !self.may_send_now() {
                self.enter_frto_loss(2, flag);
            }
            return true;
        }
        self.enter_cwr_2_6_35(false);
        self.frto_counter = 0;
        self.undo_marker = None;
        false
    }
}
