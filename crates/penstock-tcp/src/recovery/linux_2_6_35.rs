//! Loss recovery as Linux 2.6.35 had it, and with it Windows XP's.
//!
//! Follows: linux v2.6.35 net/ipv4/tcp_input.c `tcp_fastretrans_alert`, `tcp_update_scoreboard` (forward
//! acknowledgement, `tcp_timeout_skbs`), `tcp_cwnd_down` (rate halving), `tcp_moderate_cwnd`, `tcp_enter_loss`.
//! F-RTO is in `frto_2_6_35`.
//! Differs: Windows XP is given this machine without forward acknowledgement, with a threshold of two duplicate ACKs
//! (TcpMaxDupAcks).

use super::Recovery;
use crate::info::CaState;
use crate::sender::Sender;
use crate::sender::acked::{
    DATA_ACKED, DATA_LOST, DATA_SACKED, DSACKING_ACK, ECE, FORWARD_PROGRESS, NOT_DUP, SACK_RENEGING,
    SND_UNA_ADVANCED,
};
use crate::sender::rtx::{EVER_RETRANS, LOST, RETRANS, SACKED};

impl Recovery {
    /// Whether the congestion window is what holds sending back.
    //= linux v2.6.35 net/ipv4/tcp_cong.c tcp_is_cwnd_limited
    pub(crate) fn cwnd_limited_2_6_35(&self, tx: &Sender, in_flight: u32) -> bool {
        in_flight >= tx.cc.cwnd() || tx.cc.cwnd() - in_flight <= self.reordering
    }

    /// `fall`: the threshold falls, too.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_enter_cwr
    pub(crate) fn enter_cwr_2_6_35(&mut self, tx: &mut Sender, fall: bool) {
        self.prior_ssthresh = 0;
        if tx.cc.state() < CaState::Cwr {
            self.undo_marker = None;
            if fall {
                tx.lower_ssthresh();
            }
            tx.cc.put_cwnd(tx.cc.cwnd().min(tx.q.in_flight() + 1));
            tx.cc.set_count(0);
            self.high_seq = tx.space.nxt();
            tx.cc.touch(&tx.clock);
            self.queue_cwr(tx);
            tx.set_ca(CaState::Cwr);
        }
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_enter_loss
    pub(crate) fn enter_loss_2_6_35(&mut self, tx: &mut Sender, reneged: bool) {
        if tx.cc.state() <= CaState::Disorder
            || tx.space.una() == self.high_seq
            || tx.cc.state() == CaState::Loss && tx.timers.retransmits() == 0
        {
            self.prior_ssthresh = tx.cc.current_ssthresh();
            tx.lower_ssthresh();
        }
        tx.cc.put_cwnd(1);
        tx.cc.set_count(0);
        tx.cc.touch(&tx.clock);
        self.undo_marker = (!reneged).then_some(tx.space.una());
        self.undo_retrans = 0;
        if reneged {
            tx.q.forget_sacks();
        } else if !tx.sack_ok {
            tx.q.set_dup_acks(0);
        }
        for i in 0..tx.q.packets_out() as usize {
            if tx.q.at(i).has(RETRANS | EVER_RETRANS) {
                self.undo_marker = None;
            }
            tx.q.untag_retrans(i);
            tx.q.forget_retransmission(i);
            tx.q.mark_lost(i);
        }
        self.aged_up_to = 0;
        // Aborts an F-RTO.
        self.frto_counter = 0;
        self.reordering = self.reordering.min(tx.p.reordering);
        tx.set_ca(CaState::Loss);
        tx.show_window();
        tx.cc.timeout();
        self.high_seq = tx.space.nxt();
        self.queue_cwr(tx);
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_moderate_cwnd
    pub(crate) fn moderate_cwnd(&self, tx: &mut Sender) {
        tx.cc.put_cwnd(tx.cc.cwnd().min(tx.q.in_flight() + self.reordering).max(1));
        tx.cc.touch(&tx.clock);
    }

    /// Rate halving: one segment less for every second ACK.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_cwnd_down
    fn cwnd_down(&self, tx: &mut Sender, flag: u32) {
        let progress = FORWARD_PROGRESS | SND_UNA_ADVANCED | DSACKING_ACK;
        if flag & progress != 0 || !tx.sack_ok && flag & NOT_DUP == 0 {
            let decr = tx.cc.count() + 1;
            tx.cc.set_count(decr & 1);
            if tx.cc.cwnd() > tx.cc.min_cwnd() {
                tx.cc.put_cwnd(tx.cc.cwnd() - (decr >> 1).min(tx.cc.cwnd() - 1));
            }
            tx.cc.put_cwnd(tx.cc.cwnd().min(tx.q.in_flight() + 1));
            tx.cc.touch(&tx.clock);
        }
    }

    fn complete_cwr(&mut self, tx: &mut Sender) {
        tx.cc.put_cwnd(tx.cc.cwnd().min(tx.cc.ssthresh()));
        tx.cc.touch(&tx.clock);
    }

    fn may_undo_2_6_35(&self, tx: &Sender) -> bool {
        // Nothing was retransmitted, or the answer is to something sent before the first retransmission.
        self.undo_marker.is_some()
            && (self.undo_retrans == 0 || self.retrans_stamp.is_none_or(|stamp| tx.stamps.ecr_before(stamp)))
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_undo_cwr
    fn undo_cwr(&mut self, tx: &mut Sender, restore_ssthresh: bool) {
        if self.prior_ssthresh > 0 {
            tx.show_window();
            tx.cc.set_prior_cwnd(tx.cc.ssthresh().saturating_mul(2).min(1 << 24));
            tx.cc.undo();
            if restore_ssthresh && self.prior_ssthresh > tx.cc.ssthresh() {
                tx.cc.set_ssthresh(self.prior_ssthresh);
                self.queue_cwr = false;
            }
        } else {
            tx.cc.put_cwnd(tx.cc.cwnd().max(tx.cc.ssthresh()));
        }
        self.moderate_cwnd(tx);
    }

    fn try_undo_recovery_2_6_35(&mut self, tx: &mut Sender) -> bool {
        if self.may_undo_2_6_35(tx) {
            self.undo_cwr(tx, true);
            self.undo_marker = None;
        }
        if tx.space.una() == self.high_seq && !tx.sack_ok {
            self.moderate_cwnd(tx);
            return true;
        }
        tx.set_ca(CaState::Open);
        false
    }

    fn try_undo_dsack_2_6_35(&mut self, tx: &mut Sender) {
        if self.undo_marker.is_some() && self.undo_retrans == 0 {
            self.undo_cwr(tx, true);
            self.undo_marker = None;
        }
    }

    /// Answers whether the next hole counts as lost.
    fn try_undo_partial_2_6_35(&mut self, tx: &mut Sender, acked: u32) -> bool {
        if self.may_undo_2_6_35(tx) {
            if !tx.q.any_retrans_done() {
                self.retrans_stamp = None;
            }
            let metric = self.fackets(tx) + acked;
            self.update_reordering_2_6_35(metric);
            self.undo_cwr(tx, false);
            return false;
        }
        !tx.sack_ok || self.fackets(tx) > self.reordering
    }

    fn try_undo_loss_2_6_35(&mut self, tx: &mut Sender) -> bool {
        if !self.may_undo_2_6_35(tx) {
            return false;
        }
        tx.q.unmark_all_lost();
        self.undo_cwr(tx, true);
        tx.timers.forget_retransmits();
        self.undo_marker = None;
        if tx.sack_ok {
            tx.set_ca(CaState::Open);
        }
        true
    }

    fn try_to_open_2_6_35(&mut self, tx: &mut Sender, flag: u32) {
        if self.frto_counter == 0 && !tx.q.any_retrans_done() {
            self.retrans_stamp = None;
        }
        if flag & ECE != 0 {
            self.enter_cwr(tx);
        }
        if tx.cc.state() != CaState::Cwr {
            self.try_keep_open(tx);
            self.moderate_cwnd(tx);
        } else {
            self.cwnd_down(tx, flag);
        }
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_fackets_out
    fn fackets(&self, tx: &Sender) -> u32 {
        if tx.sack_ok { tx.q.fackets_out() } else { tx.q.sacked_out() + 1 }
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_time_to_recover
    fn time_to_recover(&self, tx: &Sender, mss: u32) -> bool {
        if self.frto_counter > 0 {
            return false;
        }
        let heuristics = if self.fack { self.fackets(tx) } else { tx.q.sacked_out() + 1 };
        if tx.q.lost_out() > 0 || heuristics > self.reordering {
            return true;
        }
        if self.fack && self.head_timed_out(tx) {
            return true;
        }
        let out = tx.q.packets_out();
        out <= self.reordering && tx.q.sacked_out() >= (out / 2).max(tx.p.reordering) && !tx.may_send_now(mss)
    }

    /// Whether the segment at `index` was sent longer ago than the timeout.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_skb_timedout
    fn timed_out(&self, tx: &Sender, index: usize) -> bool {
        tx.clock.jiffies_since(tx.q.at(index).sent_us) > tx.timers.rto()
    }
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_head_timedout
    fn head_timed_out(&self, tx: &Sender) -> bool {
        tx.q.packets_out() > 0 && self.timed_out(tx, 0)
    }
    /// Holds for lost what is older than the timeout, once the front segment is. (The timer begins anew with each ACK
    /// that makes progress and so may run out later.)
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_timeout_skbs
    fn mark_timed_out(&mut self, tx: &mut Sender) {
        if !self.fack || !self.head_timed_out(tx) {
            return;
        }
        let mut i = tx.q.lower(self.aged_up_to);
        while i < tx.q.packets_out() as usize && self.timed_out(tx, i) {
            if !tx.q.at(i).has(SACKED | LOST) {
                tx.q.mark_lost(i);
            }
            i += 1;
        }
        self.aged_up_to = if i < tx.q.packets_out() as usize { tx.q.at(i).seq } else { tx.space.nxt() };
    }

    /// Forward retransmission: holes not held for lost go again while there is nothing new to send.
    //= linux v2.6.35 net/ipv4/tcp_output.c tcp_can_forward_retransmit
    pub(crate) fn may_retransmit_forward(&self, tx: &Sender, mss: u32) -> bool {
        !tx.p.today
            && !tx.p.xp
            && tx.cc.state() == CaState::Recovery
            && tx.sack_ok
            && tx.q.in_flight() < tx.cc.cwnd()
            && !tx.may_send_now(mss)
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_update_scoreboard
    fn update_scoreboard(&mut self, tx: &mut Sender, fast_rexmit: bool) {
        let packets = if !tx.sack_ok {
            1
        } else if self.fack {
            tx.q.fackets_out().saturating_sub(self.reordering).max(1)
        } else {
            tx.q.sacked_out().saturating_sub(self.reordering).max(u32::from(fast_rexmit))
        };
        self.mark_head_lost(tx, packets);
        self.mark_timed_out(tx);
    }

    /// Holds for lost what is not sacked among the first `packets`.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_mark_head_lost
    fn mark_head_lost(&self, tx: &mut Sender, packets: u32) {
        // Forward acknowledgement and plain duplicate ACKs count segments, SACK those sacked.
        let count_all = self.fack || !tx.sack_ok;
        let mut count = 0;
        for i in 0..tx.q.packets_out() as usize {
            if count_all && count >= packets {
                break;
            }
            let seg = tx.q.at(i);
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
                tx.q.mark_lost(i);
            }
        }
    }

    /// An ACK with something unusual about it, or while something unusual is going on.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_fastretrans_alert
    pub(crate) fn fastretrans_alert_2_6_35(&mut self, tx: &mut Sender, acked: u32, flag: u32, mss: u32) {
        let dup = flag & (SND_UNA_ADVANCED | NOT_DUP) == 0;
        let mut do_lost = dup || flag & DATA_SACKED != 0 && self.fackets(tx) > self.reordering;
        let mut fast_rexmit = false;
        if flag & ECE != 0 {
            self.prior_ssthresh = 0;
        }
        if flag & SACK_RENEGING != 0 {
            // The receiver has dropped what it had: begin again.
            self.enter_loss_2_6_35(tx, true);
            tx.timers.count_retransmission();
            tx.todo.rexmit_front = true;
            tx.set_rto();
            return;
        }
        if flag & DATA_LOST != 0
            && self.fack
            && tx.space.una() < self.high_seq
            && tx.cc.state() != CaState::Open
            && tx.q.fackets_out() > self.reordering
        {
            let packets = tx.q.fackets_out() - self.reordering;
            self.mark_head_lost(tx, packets);
        }
        if tx.cc.state() == CaState::Open {
            self.retrans_stamp = None;
        } else if tx.space.una() >= self.high_seq {
            match tx.cc.state() {
                CaState::Loss => {
                    tx.timers.forget_retransmits();
                    if self.try_undo_recovery_2_6_35(tx) {
                        return;
                    }
                }
                CaState::Cwr if tx.space.una() != self.high_seq => {
                    self.complete_cwr(tx);
                    tx.set_ca(CaState::Open);
                }
                CaState::Disorder => {
                    self.try_undo_dsack_2_6_35(tx);
                    if self.undo_marker.is_none() || !tx.sack_ok || tx.space.una() != self.high_seq {
                        self.undo_marker = None;
                        tx.set_ca(CaState::Open);
                    }
                }
                CaState::Recovery => {
                    if !tx.sack_ok {
                        tx.q.set_dup_acks(0);
                    }
                    if self.try_undo_recovery_2_6_35(tx) {
                        return;
                    }
                    self.complete_cwr(tx);
                }
                CaState::Open | CaState::Cwr => {}
            }
        }

        match tx.cc.state() {
            CaState::Recovery => {
                if flag & SND_UNA_ADVANCED == 0 {
                    if !tx.sack_ok && dup {
                        self.add_reno_sack(tx, flag & ECE != 0);
                    }
                } else {
                    do_lost = self.try_undo_partial_2_6_35(tx, acked);
                }
            }
            state => {
                if state == CaState::Loss {
                    if flag & DATA_ACKED != 0 {
                        tx.timers.forget_retransmits();
                    }
                    if !tx.sack_ok && flag & SND_UNA_ADVANCED != 0 {
                        tx.q.set_dup_acks(0);
                    }
                    if !self.try_undo_loss_2_6_35(tx) {
                        self.moderate_cwnd(tx);
                        tx.todo.rexmit = true;
                        return;
                    }
                    if tx.cc.state() != CaState::Open {
                        return;
                    }
                }
                if !tx.sack_ok {
                    if flag & SND_UNA_ADVANCED != 0 {
                        tx.q.set_dup_acks(0);
                    }
                    if dup {
                        self.add_reno_sack(tx, flag & ECE != 0);
                    }
                }
                if tx.cc.state() == CaState::Disorder {
                    self.try_undo_dsack_2_6_35(tx);
                }
                if !self.time_to_recover(tx, mss) {
                    return self.try_to_open_2_6_35(tx, flag);
                }
                tx.n.recoveries += 1;
                self.high_seq = tx.space.nxt();
                self.prior_ssthresh = 0;
                self.undo_marker = Some(tx.space.una());
                self.undo_retrans = i64::from(tx.q.retrans_out());
                if tx.cc.state() < CaState::Cwr {
                    if flag & ECE == 0 {
                        self.prior_ssthresh = tx.cc.current_ssthresh();
                    }
                    tx.lower_ssthresh();
                    self.queue_cwr(tx);
                }
                tx.cc.set_count(0);
                tx.set_ca(CaState::Recovery);
                fast_rexmit = true;
            }
        }
        if do_lost || self.fack && self.head_timed_out(tx) {
            self.update_scoreboard(tx, fast_rexmit);
        }
        self.cwnd_down(tx, flag);
        tx.todo.rexmit = true;
    }
}
