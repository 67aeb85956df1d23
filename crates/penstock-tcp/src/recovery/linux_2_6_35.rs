//! Loss recovery as Linux 2.6.35 had it, and with it Windows XP's.
//!
//! Follows: linux v2.6.35 net/ipv4/tcp_input.c `tcp_fastretrans_alert`, `tcp_update_scoreboard` (forward
//! acknowledgement, `tcp_timeout_skbs`), `tcp_cwnd_down` (rate halving), `tcp_moderate_cwnd`, `tcp_enter_loss`.
//! F-RTO is in `frto_2_6_35`.
//! Differs: Windows XP is given this machine without forward acknowledgement, with a threshold of two duplicate ACKs
//! (TcpMaxDupAcks).

use crate::endpoint::ack::{
    DATA_ACKED, DATA_LOST, DATA_SACKED, DSACKING_ACK, ECE, FORWARD_PROGRESS, NOT_DUP, SACK_RENEGING,
    SND_UNA_ADVANCED,
};
use crate::config::Stack;
use crate::endpoint::Endpoint;
use crate::info::CaState;
use crate::sender::rtx::{EVER_RETRANS, LOST, RETRANS, SACKED};
use crate::sender::timers::Pending;

impl Endpoint {
    /// Whether the congestion window is what holds sending back.
    //= linux v2.6.35 net/ipv4/tcp_cong.c tcp_is_cwnd_limited
    pub(crate) fn cwnd_limited_2_6_35(&self, in_flight: u32) -> bool {
        in_flight >= self.w.cwnd || self.w.cwnd - in_flight <= self.reordering
    }

    /// `fall`: the threshold falls, too.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_enter_cwr
    pub(crate) fn enter_cwr_2_6_35(&mut self, fall: bool) {
        self.prior_ssthresh = 0;
        if self.ca < CaState::Cwr {
            self.undo_marker = None;
            if fall {
                self.w.ssthresh = self.ask_ssthresh();
            }
            self.w.cwnd = self.w.cwnd.min(self.q.in_flight() + 1);
            self.w.cwnd_cnt = 0;
            self.high_seq = self.snd_nxt;
            self.cwnd_stamp = self.clock.jiffies;
            self.queue_cwr();
            self.set_ca(CaState::Cwr);
        }
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_enter_loss
    pub(crate) fn enter_loss_2_6_35(&mut self, reneged: bool) {
        if self.ca <= CaState::Disorder
            || self.snd_una == self.high_seq
            || self.ca == CaState::Loss && self.retransmits == 0
        {
            self.prior_ssthresh = self.current_ssthresh();
            self.w.ssthresh = self.ask_ssthresh();
        }
        self.w.cwnd = 1;
        self.w.cwnd_cnt = 0;
        self.cwnd_stamp = self.clock.jiffies;
        self.undo_marker = (!reneged).then_some(self.snd_una);
        self.undo_retrans = 0;
        if reneged {
            self.q.forget_sacks();
        } else if !self.sack_ok {
            self.q.sacked_out = 0;
        }
        for i in 0..self.q.packets_out() as usize {
            if self.q.at(i).has(RETRANS | EVER_RETRANS) {
                self.undo_marker = None;
            }
            self.q.untag_retrans(i);
            self.q.at_mut(i).bits &= !EVER_RETRANS;
            self.q.mark_lost(i);
        }
        self.aged_up_to = 0;
        // Aborts an F-RTO.
        self.frto_counter = 0;
        self.reordering = self.reordering.min(self.p.reordering);
        self.set_ca(CaState::Loss);
        self.show_window();
        self.cc.on_rto(&self.w);
        self.high_seq = self.snd_nxt;
        self.queue_cwr();
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_moderate_cwnd
    pub(crate) fn moderate_cwnd(&mut self) {
        self.w.cwnd = self.w.cwnd.min(self.q.in_flight() + self.reordering).max(1);
        self.cwnd_stamp = self.clock.jiffies;
    }

    /// Rate halving: one segment less for every second ACK.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_cwnd_down
    fn cwnd_down(&mut self, flag: u32) {
        let progress = FORWARD_PROGRESS | SND_UNA_ADVANCED | DSACKING_ACK;
        if flag & progress != 0 || !self.sack_ok && flag & NOT_DUP == 0 {
            let decr = self.w.cwnd_cnt + 1;
            self.w.cwnd_cnt = decr & 1;
            if self.w.cwnd > self.cc.min_cwnd(&self.w) {
                self.w.cwnd -= (decr >> 1).min(self.w.cwnd - 1);
            }
            self.w.cwnd = self.w.cwnd.min(self.q.in_flight() + 1);
            self.cwnd_stamp = self.clock.jiffies;
        }
    }

    fn complete_cwr(&mut self) {
        self.w.cwnd = self.w.cwnd.min(self.w.ssthresh);
        self.cwnd_stamp = self.clock.jiffies;
    }

    fn may_undo_2_6_35(&self) -> bool {
        // Nothing was retransmitted, or the answer is to something sent before the first retransmission.
        self.undo_marker.is_some()
            && (self.undo_retrans == 0 || self.retrans_stamp.is_none_or(|stamp| self.ecr_before(stamp)))
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_undo_cwr
    fn undo_cwr(&mut self, restore_ssthresh: bool) {
        if self.prior_ssthresh > 0 {
            self.show_window();
            self.w.prior_cwnd = self.w.ssthresh.saturating_mul(2).min(1 << 24);
            self.w.cwnd = self.cc.undo_cwnd(&self.w);
            if restore_ssthresh && self.prior_ssthresh > self.w.ssthresh {
                self.w.ssthresh = self.prior_ssthresh;
                self.queue_cwr = false;
            }
        } else {
            self.w.cwnd = self.w.cwnd.max(self.w.ssthresh);
        }
        self.moderate_cwnd();
    }

    fn try_undo_recovery_2_6_35(&mut self) -> bool {
        if self.may_undo_2_6_35() {
            self.undo_cwr(true);
            self.undo_marker = None;
        }
        if self.snd_una == self.high_seq && !self.sack_ok {
            self.moderate_cwnd();
            return true;
        }
        self.set_ca(CaState::Open);
        false
    }

    fn try_undo_dsack_2_6_35(&mut self) {
        if self.undo_marker.is_some() && self.undo_retrans == 0 {
            self.undo_cwr(true);
            self.undo_marker = None;
        }
    }

    /// Answers whether the next hole counts as lost.
    fn try_undo_partial_2_6_35(&mut self, acked: u32) -> bool {
        if self.may_undo_2_6_35() {
            if !self.any_retrans_done() {
                self.retrans_stamp = None;
            }
            let metric = self.fackets() + acked;
            self.update_reordering_2_6_35(metric);
            self.undo_cwr(false);
            return false;
        }
        !self.sack_ok || self.fackets() > self.reordering
    }

    fn try_undo_loss_2_6_35(&mut self) -> bool {
        if !self.may_undo_2_6_35() {
            return false;
        }
        self.q.unmark_all_lost();
        self.undo_cwr(true);
        self.retransmits = 0;
        self.undo_marker = None;
        if self.sack_ok {
            self.set_ca(CaState::Open);
        }
        true
    }

    fn try_to_open_2_6_35(&mut self, flag: u32) {
        if self.frto_counter == 0 && !self.any_retrans_done() {
            self.retrans_stamp = None;
        }
        if flag & ECE != 0 {
            self.enter_cwr();
        }
        if self.ca != CaState::Cwr {
            self.try_keep_open();
            self.moderate_cwnd();
        } else {
            self.cwnd_down(flag);
        }
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_fackets_out
    fn fackets(&self) -> u32 {
        if self.sack_ok { self.q.fackets_out() } else { self.q.sacked_out + 1 }
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_time_to_recover
    fn time_to_recover(&self) -> bool {
        if self.frto_counter > 0 {
            return false;
        }
        let heuristics = if self.p.fack { self.fackets() } else { self.q.sacked_out + 1 };
        if self.q.lost_out > 0 || heuristics > self.reordering {
            return true;
        }
        if self.p.fack && self.head_timed_out() {
            return true;
        }
        let out = self.q.packets_out();
        out <= self.reordering
            && self.q.sacked_out >= (out / 2).max(self.p.reordering)
            && !self.may_send_now()
    }

    /// Whether the segment at `index` was sent longer ago than the timeout.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_skb_timedout
    fn timed_out(&self, index: usize) -> bool {
        self.clock.jiffies_since(self.q.at(index).sent_us) > self.rto
    }
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_head_timedout
    fn head_timed_out(&self) -> bool {
        self.q.packets_out() > 0 && self.timed_out(0)
    }
    /// Holds for lost what is older than the timeout, once the front segment is. (The timer begins anew with each ACK
    /// that makes progress and so may run out later.)
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_timeout_skbs
    fn mark_timed_out(&mut self) {
        if !self.p.fack || !self.head_timed_out() {
            return;
        }
        let mut i = self.q.lower(self.aged_up_to);
        while i < self.q.packets_out() as usize && self.timed_out(i) {
            if !self.q.at(i).has(SACKED | LOST) {
                self.q.mark_lost(i);
            }
            i += 1;
        }
        self.aged_up_to = if i < self.q.packets_out() as usize { self.q.at(i).seq } else { self.snd_nxt };
    }

    /// Forward retransmission: holes not held for lost go again while there is nothing new to send.
    //= linux v2.6.35 net/ipv4/tcp_output.c tcp_can_forward_retransmit
    pub(crate) fn may_retransmit_forward(&self) -> bool {
        !self.p.today
            && self.cfg.stack != Stack::WindowsXp
            && self.ca == CaState::Recovery
            && self.sack_ok
            && self.q.in_flight() < self.w.cwnd
            && !self.may_send_now()
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_update_scoreboard
    fn update_scoreboard(&mut self, fast_rexmit: bool) {
        let packets = if !self.sack_ok {
            1
        } else if self.p.fack {
            self.q.fackets_out().saturating_sub(self.reordering).max(1)
        } else {
            self.q.sacked_out.saturating_sub(self.reordering).max(u32::from(fast_rexmit))
        };
        self.mark_head_lost(packets);
        self.mark_timed_out();
    }

    /// Holds for lost what is not sacked among the first `packets`.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_mark_head_lost
    fn mark_head_lost(&mut self, packets: u32) {
        // Forward acknowledgement and plain duplicate ACKs count segments, SACK those sacked.
        let count_all = self.p.fack || !self.sack_ok;
        let mut count = 0;
        for i in 0..self.q.packets_out() as usize {
            if count_all && count >= packets {
                break;
            }
            let seg = self.q.at(i);
            if seg.end > self.high_seq {
                break;
            }
            if count_all || seg.has(SACKED) {
                count += 1;
            }
            if count > packets {
                break;
            }
            if !seg.has(SACKED | LOST) {
                self.q.mark_lost(i);
            }
        }
    }

    /// An ACK with something unusual about it, or while something unusual is going on.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_fastretrans_alert
    pub(crate) fn fastretrans_alert_2_6_35(&mut self, acked: u32, flag: u32) {
        let dup = flag & (SND_UNA_ADVANCED | NOT_DUP) == 0;
        let mut do_lost = dup || flag & DATA_SACKED != 0 && self.fackets() > self.reordering;
        let mut fast_rexmit = false;
        if flag & ECE != 0 {
            self.prior_ssthresh = 0;
        }
        if flag & SACK_RENEGING != 0 {
            // The receiver has dropped what it had: begin again.
            self.enter_loss_2_6_35(true);
            self.retransmits += 1;
            self.todo.rexmit_front = true;
            self.set_xmit_timer(Pending::Retrans, self.rto);
            return;
        }
        if flag & DATA_LOST != 0
            && self.p.fack
            && self.snd_una < self.high_seq
            && self.ca != CaState::Open
            && self.q.fackets_out() > self.reordering
        {
            self.mark_head_lost(self.q.fackets_out() - self.reordering);
        }
        if self.ca == CaState::Open {
            self.retrans_stamp = None;
        } else if self.snd_una >= self.high_seq {
            match self.ca {
                CaState::Loss => {
                    self.retransmits = 0;
                    if self.try_undo_recovery_2_6_35() {
                        return;
                    }
                }
                CaState::Cwr if self.snd_una != self.high_seq => {
                    self.complete_cwr();
                    self.set_ca(CaState::Open);
                }
                CaState::Disorder => {
                    self.try_undo_dsack_2_6_35();
                    if self.undo_marker.is_none() || !self.sack_ok || self.snd_una != self.high_seq {
                        self.undo_marker = None;
                        self.set_ca(CaState::Open);
                    }
                }
                CaState::Recovery => {
                    if !self.sack_ok {
                        self.q.sacked_out = 0;
                    }
                    if self.try_undo_recovery_2_6_35() {
                        return;
                    }
                    self.complete_cwr();
                }
                CaState::Open | CaState::Cwr => {}
            }
        }

        match self.ca {
            CaState::Recovery => {
                if flag & SND_UNA_ADVANCED == 0 {
                    if !self.sack_ok && dup {
                        self.add_reno_sack(flag & ECE != 0);
                    }
                } else {
                    do_lost = self.try_undo_partial_2_6_35(acked);
                }
            }
            state => {
                if state == CaState::Loss {
                    if flag & DATA_ACKED != 0 {
                        self.retransmits = 0;
                    }
                    if !self.sack_ok && flag & SND_UNA_ADVANCED != 0 {
                        self.q.sacked_out = 0;
                    }
                    if !self.try_undo_loss_2_6_35() {
                        self.moderate_cwnd();
                        self.todo.rexmit = true;
                        return;
                    }
                    if self.ca != CaState::Open {
                        return;
                    }
                }
                if !self.sack_ok {
                    if flag & SND_UNA_ADVANCED != 0 {
                        self.q.sacked_out = 0;
                    }
                    if dup {
                        self.add_reno_sack(flag & ECE != 0);
                    }
                }
                if self.ca == CaState::Disorder {
                    self.try_undo_dsack_2_6_35();
                }
                if !self.time_to_recover() {
                    return self.try_to_open_2_6_35(flag);
                }
                self.n.recoveries += 1;
                self.high_seq = self.snd_nxt;
                self.prior_ssthresh = 0;
                self.undo_marker = Some(self.snd_una);
                self.undo_retrans = i64::from(self.q.retrans_out);
                if self.ca < CaState::Cwr {
                    if flag & ECE == 0 {
                        self.prior_ssthresh = self.current_ssthresh();
                    }
                    self.w.ssthresh = self.ask_ssthresh();
                    self.queue_cwr();
                }
                self.w.cwnd_cnt = 0;
                self.set_ca(CaState::Recovery);
                fast_rexmit = true;
            }
        }
        if do_lost || self.p.fack && self.head_timed_out() {
            self.update_scoreboard(fast_rexmit);
        }
        self.cwnd_down(flag);
        self.todo.rexmit = true;
    }
}
