//! A window that has fallen for nothing is restored.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_try_undo_*`, `tcp_undo_cwnd_reduction`, `tcp_packet_delayed`; RFC 6582.
//! Differs: none known. 2.6.35 is in `linux_2_6_35`.

use super::Recovery;
use crate::info::CaState;
use crate::mib::Tx;
use crate::sender::Sender;
use crate::sender::acked::ECE;

impl Recovery {
    pub(super) fn stamp_cleanup(&mut self, tx: &mut Sender) {
        if !tx.q.any_retrans_done() {
            self.retrans_stamp = None;
        }
    }

    /// Whether the ACK answers something sent before the first retransmission.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_packet_delayed
    pub(super) fn packet_delayed(&self, tx: &Sender) -> bool {
        match self.retrans_stamp {
            Some(stamp) => tx.stamps.ecr_before(stamp),
            None => tx.sack_ok || tx.space.una() < self.high_seq,
        }
    }
    pub(super) fn may_undo(&self, tx: &Sender) -> bool {
        self.undo_marker.is_some() && (self.undo_retrans == 0 || self.packet_delayed(tx))
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_undo_cwnd_reduction
    pub(super) fn undo_cwnd_reduction(&mut self, tx: &mut Sender, unmark_loss: bool) {
        if unmark_loss {
            tx.q.unmark_all_lost();
        }
        if self.prior_ssthresh > 0 {
            tx.show_window();
            tx.cc.undo();
            if self.prior_ssthresh > tx.cc.ssthresh() {
                tx.cc.set_ssthresh(self.prior_ssthresh);
                self.queue_cwr = false;
            }
        }
        tx.cc.touch(&tx.clock);
        self.undo_marker = None;
        self.rack.advanced = true;
    }

    /// Without SACK the state is kept until something above `high_seq` is acknowledged.
    //= RFC 6582 section 3.2 step 3
    pub(super) fn reno_keeps_state(&mut self, tx: &mut Sender) -> bool {
        if tx.space.una() == self.high_seq && !tx.sack_ok {
            self.stamp_cleanup(tx);
            return true;
        }
        false
    }

    pub(super) fn try_undo_recovery(&mut self, tx: &mut Sender) -> bool {
        if self.may_undo(tx) {
            let in_loss = tx.cc.state() == CaState::Loss;
            self.undo_cwnd_reduction(tx, false);
            tx.mib.one(if in_loss { Tx::LossUndo } else { Tx::FullUndo });
        } else if self.rack.reo_wnd_persist > 0 {
            self.rack.reo_wnd_persist -= 1;
        }
        if self.reno_keeps_state(tx) {
            return true;
        }
        tx.set_ca(CaState::Open);
        self.sack_reneg = false;
        false
    }

    pub(super) fn try_undo_dsack(&mut self, tx: &mut Sender) -> bool {
        if self.undo_marker.is_some() && self.undo_retrans == 0 {
            self.rack.persist();
            self.undo_cwnd_reduction(tx, false);
            tx.mib.one(Tx::DsackUndo);
            return true;
        }
        false
    }

    pub(super) fn try_undo_loss(&mut self, tx: &mut Sender, frto: bool) -> bool {
        if !frto && !self.may_undo(tx) {
            return false;
        }
        self.undo_cwnd_reduction(tx, true);
        tx.mib.one(Tx::LossUndo);
        if frto {
            tx.mib.one(Tx::SpuriousRtos);
        }
        tx.timers.forget_retransmits();
        if self.reno_keeps_state(tx) {
            return true;
        }
        if frto || tx.sack_ok {
            tx.set_ca(CaState::Open);
            self.sack_reneg = false;
        }
        true
    }

    /// True where the rest of the ACK's recovery work is to be left.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_try_undo_partial
    pub(super) fn try_undo_partial(&mut self, tx: &mut Sender, prior_una: u64) -> bool {
        if self.undo_marker.is_some() && self.packet_delayed(tx) {
            let fack = tx.q.highest_sack(tx.space.una());
            self.check_reordering(tx, prior_una, fack, Tx::TsReorder);
            if tx.q.retrans_out() > 0 {
                return true;
            }
            self.stamp_cleanup(tx);
            self.undo_cwnd_reduction(tx, true);
            tx.mib.one(Tx::PartialUndo);
            self.try_keep_open(tx);
        }
        false
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_try_keep_open
    pub(crate) fn try_keep_open(&mut self, tx: &mut Sender) {
        let undoing = !tx.p.today && self.undo_marker.is_some();
        let left_out = tx.q.sacked_out() + tx.q.lost_out() > 0 || undoing;
        let state = if left_out || tx.q.any_retrans_done() { CaState::Disorder } else { CaState::Open };
        if tx.cc.state() != state {
            tx.set_ca(state);
            self.high_seq = tx.space.nxt();
        }
    }

    pub(super) fn try_to_open(&mut self, tx: &mut Sender, flag: u32) {
        self.stamp_cleanup(tx);
        if flag & ECE != 0 {
            self.enter_cwr(tx);
        }
        if tx.cc.state() != CaState::Cwr {
            self.try_keep_open(tx);
        }
    }
}
