//! Loss recovery: the states Open, Disorder, CWR, Recovery, Loss, and how the window falls and is restored.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_fastretrans_alert`, `tcp_cwnd_reduction` (PRR, RFC 6937),
//! `tcp_enter_loss`, `tcp_process_loss` (F-RTO, RFC 5682), `tcp_try_undo_*`; NewReno RFC 6582.
//! Differs: none known. 2.6.35 is in `recovery_2_6_35`.

pub(crate) mod frto_2_6_35;
pub(crate) mod linux_2_6_35;
pub(crate) mod rack;
pub(crate) mod sack;

use crate::endpoint::ack::{
    DATA_ACKED, DATA_SACKED, DSACK_TLP, ECE, FORWARD_PROGRESS, LOST_RETRANS, NOT_DUP, ORIG_SACK_ACKED,
    SACK_RENEGING, SET_XMIT_TIMER, SND_UNA_ADVANCED,
};
use crate::cc::{INFINITE_SSTHRESH, Window};
use crate::endpoint::Endpoint;
use crate::info::CaState;
use crate::sender::rtx::{EVER_RETRANS, LOST, SACKED};
use crate::sender::timers::Pending;

/// What is to be sent after an ACK was dealt with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rexmit {
    /// Nothing in particular.
    None,
    /// What is held for lost.
    Lost,
    /// New data, to see whether the timeout was spurious.
    New,
}

impl Endpoint {
    // ---- The window falls ----

    pub(crate) fn in_cwnd_reduction(&self) -> bool {
        matches!(self.ca, CaState::Cwr | CaState::Recovery)
    }

    /// The threshold in force, at least three quarters of the window.
    pub(crate) fn current_ssthresh(&self) -> u32 {
        Window { state: self.ca, ..self.w }.current_ssthresh()
    }

    /// Asks the controller where the window is to fall to.
    pub(crate) fn ask_ssthresh(&mut self) -> u32 {
        self.show_window();
        self.cc.ssthresh(&self.w)
    }

    pub(crate) fn queue_cwr(&mut self) {
        self.queue_cwr |= self.ecn_ok;
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_init_cwnd_reduction
    pub(crate) fn init_cwnd_reduction(&mut self) {
        self.high_seq = self.snd_nxt;
        self.tlp_high = None;
        self.w.cwnd_cnt = 0;
        self.w.prior_cwnd = self.w.cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.w.ssthresh = self.ask_ssthresh();
        self.queue_cwr();
    }

    /// Proportional rate reduction: as many segments out as makes the window end at the threshold.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_cwnd_reduction
    //= RFC 6937 section 3
    pub(crate) fn cwnd_reduction(&mut self, delivered: u32, newly_lost: u64, una_advanced: bool) {
        if delivered == 0 || self.w.prior_cwnd == 0 {
            return;
        }
        let in_flight = i64::from(self.q.in_flight());
        let delta = i64::from(self.w.ssthresh) - in_flight;
        self.prr_delivered += delivered;
        let out = i64::from(self.prr_out);
        let mut send = if delta < 0 {
            let prior = u64::from(self.w.prior_cwnd);
            let target = (u64::from(self.w.ssthresh) * u64::from(self.prr_delivered)).div_ceil(prior);
            target as i64 - out
        } else {
            let mut n = (i64::from(self.prr_delivered) - out).max(i64::from(delivered));
            if una_advanced && newly_lost == 0 {
                n += 1;
            }
            n.min(delta)
        };
        // The first retransmission is not held back.
        send = send.max(i64::from(self.prr_out == 0));
        self.w.cwnd = (in_flight + send).max(1) as u32;
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_end_cwnd_reduction
    pub(crate) fn end_cwnd_reduction(&mut self) {
        if self.cc.takes_over() {
            return;
        }
        if self.w.ssthresh < INFINITE_SSTHRESH && (self.ca == CaState::Cwr || self.undo_marker.is_some()) {
            self.w.cwnd = self.w.ssthresh;
            self.cwnd_stamp = self.clock.jiffies;
        }
        self.show_window();
        self.cc.on_complete_cwr(&mut self.w);
    }

    /// Congestion without loss: ECN, or a full queue on this host.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_enter_cwr
    pub(crate) fn enter_cwr(&mut self) {
        if !self.p.today {
            return self.enter_cwr_2_6_35(true);
        }
        self.prior_ssthresh = 0;
        if self.ca < CaState::Cwr {
            self.undo_marker = None;
            self.init_cwnd_reduction();
            self.set_ca(CaState::Cwr);
        }
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_enter_recovery
    pub(crate) fn enter_recovery(&mut self, ece: bool) {
        self.stamp_cleanup();
        self.n.recoveries += 1;
        self.prior_ssthresh = 0;
        self.init_undo();
        if !self.in_cwnd_reduction() {
            if !ece {
                self.prior_ssthresh = self.current_ssthresh();
            }
            self.init_cwnd_reduction();
        }
        self.set_ca(CaState::Recovery);
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_init_undo
    fn init_undo(&mut self) {
        self.undo_marker = Some(self.snd_una);
        self.undo_retrans = i64::from(self.q.retrans_out);
        if self.tlp_high.is_some() && self.tlp_retrans {
            self.undo_retrans += 1;
        }
        if self.undo_retrans == 0 {
            self.undo_retrans = -1;
        }
    }

    /// After a retransmission timeout.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_enter_loss, tcp_timeout_mark_lost
    pub(crate) fn enter_loss(&mut self) {
        if !self.p.today {
            return self.enter_loss_2_6_35(false);
        }
        let new_recovery = self.ca < CaState::Recovery;
        let reneged = self.q.front().is_some_and(|f| f.has(SACKED));
        if reneged {
            self.q.forget_sacks();
            self.sack_reneg = true;
        } else if !self.sack_ok {
            self.q.sacked_out = 0;
        }
        for i in 0..self.q.packets_out() as usize {
            if !reneged && i > 0 && self.rack_too_young(self.q.at(i).sent_us) {
                continue;
            }
            self.q.mark_lost(i);
        }
        if self.ca <= CaState::Disorder
            || self.high_seq <= self.snd_una
            || self.ca == CaState::Loss && self.retransmits == 0
        {
            self.prior_ssthresh = self.current_ssthresh();
            self.w.prior_cwnd = self.w.cwnd;
            self.w.ssthresh = self.ask_ssthresh();
            self.cc.on_loss(&mut self.w);
            self.init_undo();
        }
        self.w.cwnd = self.q.in_flight() + 1;
        self.w.cwnd_cnt = 0;
        self.cwnd_stamp = self.clock.jiffies;
        if self.ca <= CaState::Disorder && self.q.sacked_out >= self.p.reordering {
            self.reordering = self.reordering.min(self.p.reordering);
        }
        self.set_ca(CaState::Loss);
        self.show_window();
        self.cc.on_rto(&self.w);
        self.high_seq = self.snd_nxt;
        self.tlp_high = None;
        self.queue_cwr();
        self.frto = new_recovery || self.retransmits > 0;
    }

    // ---- The window is restored ----

    /// Whether a retransmission is out or the front segment was one.
    pub(crate) fn any_retrans_done(&self) -> bool {
        self.q.retrans_out > 0 || self.q.front().is_some_and(|f| f.has(EVER_RETRANS))
    }
    fn stamp_cleanup(&mut self) {
        if !self.any_retrans_done() {
            self.retrans_stamp = None;
        }
    }

    /// Whether the ACK answers something sent before the first retransmission.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_packet_delayed
    fn packet_delayed(&self) -> bool {
        match self.retrans_stamp {
            Some(stamp) => self.ecr_before(stamp),
            None => self.sack_ok || self.snd_una < self.high_seq,
        }
    }
    fn may_undo(&self) -> bool {
        self.undo_marker.is_some() && (self.undo_retrans == 0 || self.packet_delayed())
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_undo_cwnd_reduction
    fn undo_cwnd_reduction(&mut self, unmark_loss: bool) {
        if unmark_loss {
            self.q.unmark_all_lost();
        }
        if self.prior_ssthresh > 0 {
            self.show_window();
            self.w.cwnd = self.cc.undo_cwnd(&self.w);
            if self.prior_ssthresh > self.w.ssthresh {
                self.w.ssthresh = self.prior_ssthresh;
                self.queue_cwr = false;
            }
        }
        self.cwnd_stamp = self.clock.jiffies;
        self.undo_marker = None;
        self.rack.advanced = true;
    }

    /// Without SACK the state is kept until something above `high_seq` is acknowledged.
    //= RFC 6582 section 3.2 step 3
    fn reno_keeps_state(&mut self) -> bool {
        if self.snd_una == self.high_seq && !self.sack_ok {
            self.stamp_cleanup();
            return true;
        }
        false
    }

    fn try_undo_recovery(&mut self) -> bool {
        if self.may_undo() {
            self.undo_cwnd_reduction(false);
        } else if self.rack.reo_wnd_persist > 0 {
            self.rack.reo_wnd_persist -= 1;
        }
        if self.reno_keeps_state() {
            return true;
        }
        self.set_ca(CaState::Open);
        self.sack_reneg = false;
        false
    }

    fn try_undo_dsack(&mut self) -> bool {
        if self.undo_marker.is_some() && self.undo_retrans == 0 {
            self.rack.persist();
            self.undo_cwnd_reduction(false);
            return true;
        }
        false
    }

    fn try_undo_loss(&mut self, frto: bool) -> bool {
        if !frto && !self.may_undo() {
            return false;
        }
        self.undo_cwnd_reduction(true);
        self.retransmits = 0;
        if self.reno_keeps_state() {
            return true;
        }
        if frto || self.sack_ok {
            self.set_ca(CaState::Open);
            self.sack_reneg = false;
        }
        true
    }

    /// True where the rest of the ACK's recovery work is to be left.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_try_undo_partial
    fn try_undo_partial(&mut self, prior_una: u64) -> bool {
        if self.undo_marker.is_some() && self.packet_delayed() {
            let fack = self.q.highest_sack(self.snd_una);
            self.check_reordering(prior_una, fack);
            if self.q.retrans_out > 0 {
                return true;
            }
            self.stamp_cleanup();
            self.undo_cwnd_reduction(true);
            self.try_keep_open();
        }
        false
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_try_keep_open
    pub(crate) fn try_keep_open(&mut self) {
        let undoing = !self.p.today && self.undo_marker.is_some();
        let left_out = self.q.sacked_out + self.q.lost_out > 0 || undoing;
        let state = if left_out || self.any_retrans_done() { CaState::Disorder } else { CaState::Open };
        if self.ca != state {
            self.set_ca(state);
            self.high_seq = self.snd_nxt;
        }
    }

    fn try_to_open(&mut self, flag: u32) {
        self.stamp_cleanup();
        if flag & ECE != 0 {
            self.enter_cwr();
        }
        if self.ca != CaState::Cwr {
            self.try_keep_open();
        }
    }

    // ---- The machine ----

    /// Marks what is lost by the rules in force.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_identify_packet_loss, tcp_newreno_mark_lost
    fn identify_loss(&mut self, flag: &mut u32) {
        if self.q.packets_out() == 0 {
            return;
        }
        if !self.sack_ok {
            let advanced = *flag & SND_UNA_ADVANCED != 0;
            let due = self.ca < CaState::Recovery && self.q.sacked_out >= self.reordering
                || self.ca == CaState::Recovery && advanced;
            if due && !self.q.at(0).has(LOST) {
                self.q.mark_lost(0);
            }
            return;
        }
        let prior = self.q.retrans_out;
        if self.rack_mark_lost() {
            *flag &= !SET_XMIT_TIMER;
        }
        if prior > self.q.retrans_out {
            *flag |= LOST_RETRANS;
        }
    }

    /// An ACK with something unusual about it, or while something unusual is going on.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_fastretrans_alert
    pub(crate) fn fastretrans_alert(&mut self, prior_una: u64, dup: bool, flag: &mut u32) -> Rexmit {
        let ece = *flag & ECE != 0;
        if self.q.packets_out() == 0 {
            self.q.sacked_out = 0;
        }
        if ece {
            self.prior_ssthresh = 0;
        }
        if *flag & SACK_RENEGING != 0 && *flag & SND_UNA_ADVANCED != 0 {
            let delay = self.clock.us_to_jiffies(u64::from(self.rtt.srtt >> 4).max(10_000));
            self.set_xmit_timer(Pending::Retrans, delay);
            *flag &= !SET_XMIT_TIMER;
            return Rexmit::None;
        }

        if self.ca == CaState::Open {
            self.retrans_stamp = None;
        } else if self.snd_una >= self.high_seq {
            match self.ca {
                CaState::Cwr if self.snd_una != self.high_seq => {
                    self.end_cwnd_reduction();
                    self.set_ca(CaState::Open);
                }
                CaState::Recovery => {
                    if !self.sack_ok {
                        self.q.sacked_out = 0;
                    }
                    if self.try_undo_recovery() {
                        return Rexmit::None;
                    }
                    self.end_cwnd_reduction();
                }
                _ => {}
            }
        }

        let mut rexmit = Rexmit::None;
        match self.ca {
            CaState::Recovery => {
                if *flag & SND_UNA_ADVANCED == 0 {
                    if !self.sack_ok && dup {
                        self.add_reno_sack(ece);
                    }
                } else if self.try_undo_partial(prior_una) {
                    return Rexmit::None;
                }
                if self.try_undo_dsack() {
                    self.try_to_open(*flag);
                }
                self.identify_loss(flag);
                if self.ca != CaState::Recovery {
                    if self.q.lost_out == 0 {
                        return Rexmit::None;
                    }
                    self.enter_recovery(ece);
                }
                return Rexmit::Lost;
            }
            CaState::Loss => {
                rexmit = self.process_loss(*flag, dup);
                self.identify_loss(flag);
                if !(self.ca == CaState::Open || *flag & LOST_RETRANS != 0) {
                    return rexmit;
                }
            }
            _ => {}
        }
        if !self.sack_ok {
            if *flag & SND_UNA_ADVANCED != 0 {
                self.q.sacked_out = 0;
            }
            if dup {
                self.add_reno_sack(ece);
            }
        }
        if self.ca <= CaState::Disorder {
            self.try_undo_dsack();
        }
        self.identify_loss(flag);
        if self.q.lost_out == 0 {
            self.try_to_open(*flag);
            return rexmit;
        }
        self.enter_recovery(ece);
        Rexmit::Lost
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_process_loss; RFC 5682 section 3.1
    fn process_loss(&mut self, flag: u32, dup: bool) -> Rexmit {
        let recovered = self.snd_una >= self.high_seq;
        if flag & SND_UNA_ADVANCED != 0 && self.try_undo_loss(false) {
            return Rexmit::None;
        }
        if self.frto {
            // Data sent before the timeout and never again arrived: it was spurious.
            if flag & ORIG_SACK_ACKED != 0 && self.try_undo_loss(true) {
                return Rexmit::None;
            }
            if self.snd_nxt > self.high_seq {
                if flag & DATA_SACKED != 0 || dup {
                    self.frto = false;
                }
            } else if flag & SND_UNA_ADVANCED != 0 && !recovered {
                self.high_seq = self.snd_nxt;
                if self.unsent() > 0 && self.wnd_end() > self.snd_nxt {
                    return Rexmit::New;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery();
            return Rexmit::None;
        }
        if !self.sack_ok {
            if self.snd_nxt > self.high_seq && dup {
                self.add_reno_sack(flag & ECE != 0);
            } else if flag & SND_UNA_ADVANCED != 0 {
                self.q.sacked_out = 0;
            }
        }
        Rexmit::Lost
    }

    /// The end of a tail loss probe.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_process_tlp_ack; RFC 8985 section 7.4
    pub(crate) fn process_tlp_ack(&mut self, ack: u64, flag: u32) {
        let Some(high) = self.tlp_high else { return };
        if ack < high {
            return;
        }
        if !self.tlp_retrans || flag & DSACK_TLP != 0 {
            self.tlp_high = None;
        } else if ack > high {
            // The probe repaired a loss: the window falls once.
            self.init_cwnd_reduction();
            self.set_ca(CaState::Cwr);
            self.end_cwnd_reduction();
            self.try_keep_open();
        } else if flag & (SND_UNA_ADVANCED | NOT_DUP | DATA_SACKED) == 0 {
            self.tlp_high = None;
        }
    }

    /// The window after an ACK: falls where the state says so, else may grow.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_cong_control, tcp_may_raise_cwnd
    #[inline]
    pub(crate) fn cong_control(&mut self, delivered: u32, lost: u64, flag: u32) {
        self.change_window(delivered, lost, flag);
        self.update_pacing_rate();
    }
    /// What Linux would pace by, from now to the next ACK.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_update_pacing_rate
    #[inline]
    pub(crate) fn update_pacing_rate(&mut self) {
        if self.p.today && self.w.pacing_rate.is_none() {
            self.show_window();
            self.w.linux_rate = self.w.rate_of_window();
        }
    }
    #[inline]
    fn change_window(&mut self, delivered: u32, lost: u64, flag: u32) {
        if self.in_cwnd_reduction() {
            self.cwnd_reduction(delivered, lost, flag & SND_UNA_ADVANCED != 0);
            return;
        }
        let grows = if self.reordering > self.p.reordering { FORWARD_PROGRESS } else { DATA_ACKED };
        if flag & grows != 0 {
            self.w.cwnd_limited =
                self.is_cwnd_limited || self.w.in_slow_start() && self.w.cwnd < 2 * self.max_packets_out;
            self.show_window();
            self.cc.cong_avoid(&mut self.w, delivered);
            self.cwnd_stamp = self.clock.jiffies;
        }
    }
}
