//! F-RTO as Linux 2.6.35 had it: whether a retransmission timeout was spurious shows before anything but the front segment
//! is retransmitted.
//!
//! Follows: linux v2.6.35 net/ipv4/tcp_input.c `tcp_use_frto`, `tcp_enter_frto`, `tcp_process_frto`,
//! `tcp_enter_frto_loss` (RFC 4138 with its appendix B; `tcp_frto` 2, `tcp_frto_response` 0, the defaults).
//! Differs: none known. Windows XP has none of it. 6.12's is in `recovery`.
//!
//! The timeout sends the front segment again (step 1). An ACK that acknowledges data lets two new segments go (step 2,
//! 3 once one is sent). If the next ACK again brings progress, by data sent before the timeout and never again, the
//! timeout was spurious: the window falls by rate halving. Else everything not sacked is held for lost.

use super::Recovery;
use crate::info::CaState;
use crate::sender::Sender;
use crate::sender::acked::{
    DATA_ACKED, DATA_SACKED, FORWARD_PROGRESS, NONHEAD_RETRANS_ACKED, NOT_DUP, ONLY_ORIG_SACKED,
    RETRANS_DATA_ACKED, SND_UNA_ADVANCED,
};
use crate::sender::rtx::{EVER_RETRANS, RETRANS, SACKED};

impl Recovery {
    /// Whether a timeout begins with F-RTO.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_use_frto
    pub(crate) fn use_frto_2_6_35(&self, tx: &Sender) -> bool {
        if tx.p.today || tx.p.xp {
            return false;
        }
        if tx.sack_ok {
            return true;
        }
        if tx.q.retrans_out() > 1 {
            return false;
        }
        // Without SACK only the front segment may have been retransmitted.
        (1..tx.q.packets_out() as usize)
            .map(|i| tx.q.at(i))
            .find_map(|seg| match seg {
                s if s.has(RETRANS | EVER_RETRANS) => Some(false),
                s if !s.has(SACKED) => Some(true),
                _ => None,
            })
            .unwrap_or(true)
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_enter_frto
    pub(crate) fn enter_frto_2_6_35(&mut self, tx: &mut Sender) {
        if self.frto_counter == 0 && tx.cc.state() <= CaState::Disorder
            || tx.space.una() == self.high_seq
            || (tx.cc.state() == CaState::Loss || self.frto_counter > 0) && tx.timers.retransmits() == 0
        {
            self.prior_ssthresh = tx.cc.current_ssthresh();
            let cwnd = tx.cc.cwnd();
            if self.frto_counter > 0 {
                tx.cc.put_cwnd(2);
            }
            tx.lower_ssthresh();
            tx.cc.put_cwnd(cwnd);
        }
        let again = tx.q.front().is_some_and(|f| f.has(RETRANS | EVER_RETRANS));
        self.undo_marker = (!again).then_some(tx.space.una());
        self.undo_retrans = 0;
        tx.q.untag_retrans(0);
        tx.cc.put_cwnd(tx.cc.cwnd().min(tx.q.in_flight() + 1));
        let under_way = self.frto_counter > 0 || tx.cc.state() >= CaState::Recovery;
        let earlier = tx.sack_ok && under_way && self.high_seq > tx.space.una();
        self.frto_highmark = Some(if earlier { self.high_seq } else { tx.space.nxt() });
        tx.set_ca(CaState::Disorder);
        self.high_seq = tx.space.nxt();
        self.frto_counter = 1;
    }

    /// The timeout was not spurious: all that is not sacked is held for lost, `allowed` segments may go now.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_enter_frto_loss
    fn enter_frto_loss(&mut self, tx: &mut Sender, allowed: u32, flag: u32) {
        if !tx.sack_ok {
            tx.q.set_dup_acks(0);
        }
        tx.q.unmark_all_lost();
        // The retransmission the timeout made stays counted while no ACK has come.
        let keep_front = self.frto_counter == 1 && flag & DATA_ACKED == 0;
        for i in 0..tx.q.packets_out() as usize {
            if i > 0 || !keep_front {
                if tx.q.at(i).has(RETRANS | EVER_RETRANS) {
                    self.undo_marker = None;
                }
                tx.q.untag_retrans(i);
            }
            tx.q.mark_lost(i);
        }
        tx.cc.put_cwnd((tx.q.in_flight() + allowed).max(1));
        tx.cc.set_count(0);
        tx.cc.touch(&tx.clock);
        self.frto_counter = 0;
        self.reordering = self.reordering.min(tx.p.reordering);
        tx.set_ca(CaState::Loss);
        tx.show_window();
        tx.cc.timeout();
        self.high_seq = tx.space.nxt();
        self.queue_cwr(tx);
        self.aged_up_to = 0;
    }

    /// An ACK while F-RTO is under way; answers whether it has set the window.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_process_frto
    pub(crate) fn process_frto_2_6_35(&mut self, tx: &mut Sender, flag: u32, mss: u32) -> bool {
        let first = self.frto_counter == 1;
        if flag & DATA_ACKED != 0 {
            tx.timers.forget_retransmits();
        }
        if flag & NONHEAD_RETRANS_ACKED != 0 || !first && flag & RETRANS_DATA_ACKED != 0 {
            self.undo_marker = None;
        }
        if self.frto_highmark.is_none_or(|high| tx.space.una() >= high) {
            self.enter_frto_loss(tx, if first { 2 } else { 3 }, flag);
            return true;
        }
        if !tx.sack_ok {
            if flag & (FORWARD_PROGRESS | SND_UNA_ADVANCED) == 0 && flag & NOT_DUP != 0 {
                return true;
            }
            if flag & DATA_ACKED == 0 {
                self.enter_frto_loss(tx, if first { 0 } else { 3 }, flag);
                return true;
            }
        } else if first {
            if flag & DATA_ACKED == 0 {
                // No new data until the retransmission is answered.
                tx.cc.put_cwnd(tx.cc.cwnd().min(tx.q.in_flight()).max(1));
                return true;
            }
        } else if flag & FORWARD_PROGRESS == 0 || flag & DATA_SACKED != 0 && flag & ONLY_ORIG_SACKED == 0 {
            if flag & FORWARD_PROGRESS == 0 && flag & NOT_DUP != 0 {
                return true;
            }
            self.enter_frto_loss(tx, 3, flag);
            return true;
        }
        if first {
            tx.cc.put_cwnd(tx.q.in_flight() + 2);
            self.frto_counter = 2;
            if !tx.may_send_now(mss) {
                self.enter_frto_loss(tx, 2, flag);
            }
            return true;
        }
        self.enter_cwr_2_6_35(tx, false);
        self.frto_counter = 0;
        self.undo_marker = None;
        false
    }
}
