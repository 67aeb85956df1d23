//! Loss recovery: the states Open, Disorder, CWR, Recovery, Loss, and how the window falls and is restored.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_fastretrans_alert`, `tcp_cwnd_reduction` (PRR, RFC 6937),
//! `tcp_enter_loss`, `tcp_process_loss` (F-RTO, RFC 5682), `tcp_try_undo_*`; NewReno RFC 6582.
//! Differs: none known. Restoring the window is in `undo`, 2.6.35 in `linux_2_6_35`.

mod clean;
mod frto_2_6_35;
mod linux_2_6_35;
mod rack;
mod sack;
mod undo;

use crate::cc::INFINITE_SSTHRESH;
use crate::clock::Clock;
use crate::info::CaState;
use crate::mib::Tx;
use crate::params::Params;
use crate::sender::Sender;
use crate::sender::acked::{
    DATA_ACKED, DATA_SACKED, DSACK_TLP, ECE, FORWARD_PROGRESS, LOST_RETRANS, NOT_DUP, ORIG_SACK_ACKED,
    SACK_RENEGING, SET_XMIT_TIMER, SND_UNA_ADVANCED,
};
use crate::sender::rtx::{LOST, SACKED};
use crate::sender::timers::Pending;
pub(crate) use clean::Prior;
use penstock_model::Time;
use rack::Rack;
use sack::SackCache;

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

/// What loss recovery knows beside the scoreboard.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Recovery {
    // With each acknowledgement, in this order.
    /// End of what was sent when the trouble began.
    high_seq: u64,
    rack: Rack,
    /// A tail loss probe is out: the end of what was sent before it.
    tlp_high: Option<u64>,
    /// Segments below this were looked at for their age (2.6.35 `scoreboard_skb_hint`).
    aged_up_to: u64,
    reordering: u32,
    reord_seen: u32,
    sack_reneg: bool,
    /// The peer is to be told that the window has fallen.
    queue_cwr: bool,
    /// F-RTO is under way (6.12).
    frto: bool,
    /// The step of F-RTO, 0 for none, and the end of what was sent before it (2.6.35).
    frto_counter: u8,
    tlp_retrans: bool,
    /// Holes below the highest SACK count as lost (2.6.35).
    fack: bool,
    /// F-RTO is used (`tcp_frto`).
    uses_frto: bool,
    /// How RACK finds losses (`tcp_recovery`).
    rules: u8,
    /// When the reordering window has last run out and let segments be retransmitted.
    reo_at: Time,
    // In trouble.
    prior_ssthresh: u32,
    prr_delivered: u32,
    prr_out: u32,
    /// Timestamp value of the first retransmission of the episode.
    retrans_stamp: Option<u32>,
    retrans_stamp_us: u64,
    undo_marker: Option<u64>,
    /// Retransmissions not yet reported as duplicates; -1: none made.
    undo_retrans: i64,
    frto_highmark: Option<u64>,
    lost_retrans_low: u64,
    sack_cache: SackCache,
}

impl Recovery {
    pub fn new(p: &Params, iss: u64, (uses_frto, rules): (bool, u8)) -> Recovery {
        Recovery {
            uses_frto,
            rules,
            high_seq: iss,
            tlp_high: None,
            tlp_retrans: false,
            frto: false,
            frto_counter: 0,
            frto_highmark: None,
            prior_ssthresh: 0,
            undo_marker: None,
            undo_retrans: -1,
            retrans_stamp: None,
            retrans_stamp_us: 0,
            reordering: p.reordering,
            reord_seen: 0,
            prr_delivered: 0,
            prr_out: 0,
            rack: Rack::new(),
            aged_up_to: 0,
            sack_reneg: false,
            // Forward acknowledgement: 2.6.35 takes the holes below the highest SACK for lost.
            fack: !p.today && !p.xp,
            queue_cwr: false,
            sack_cache: SackCache::default(),
            lost_retrans_low: 0,
            reo_at: Time::ZERO,
        }
    }

    // ---- What others ask ----

    /// Degree of reordering assumed, segments.
    #[inline]
    pub fn reordering(&self) -> u32 {
        self.reordering
    }
    /// It is what connections before have seen.
    pub fn know_reordering(&mut self, segments: u32) {
        self.reordering = segments;
    }
    /// How often it was seen.
    pub fn reord_seen(&self) -> u32 {
        self.reord_seen
    }
    /// Whether the receiver has dropped what it had reported.
    #[inline]
    pub fn is_reneged(&self) -> bool {
        self.sack_reneg
    }
    /// Whether a tail loss probe is out.
    #[inline]
    pub fn probe_is_out(&self) -> bool {
        self.tlp_high.is_some()
    }
    /// A tail loss probe is about to go.
    pub fn probe_begins(&mut self) {
        self.tlp_retrans = false;
    }
    /// It was a retransmission.
    pub fn probe_retransmits(&mut self) {
        self.tlp_retrans = true;
    }
    /// Whether F-RTO waits for what two new segments bring (2.6.35).
    #[inline]
    pub fn frto_sends(&self) -> bool {
        self.frto_counter == 2
    }
    /// Whether F-RTO is under way (2.6.35).
    pub fn frto_runs(&self) -> bool {
        self.frto_counter > 0
    }
    /// New data was sent.
    #[inline]
    pub fn new_data_sent(&mut self) {
        if self.frto_counter == 2 {
            self.frto_counter = 3;
        }
    }
    /// What F-RTO went by is acknowledged.
    pub fn forget_frto(&mut self, una: u64) {
        if self.frto_highmark.is_some_and(|high| high < una) {
            self.frto_highmark = None;
        }
    }
    /// So many segments were sent while the window falls.
    #[inline]
    pub fn prr_sent(&mut self, segments: u32) {
        self.prr_out += segments;
    }
    /// Whether the next segment with new data tells the peer that the window has fallen; asked once.
    #[inline]
    pub fn take_cwr(&mut self) -> bool {
        std::mem::take(&mut self.queue_cwr)
    }
    /// When the first retransmission of the episode was made, microseconds.
    pub fn retrans_stamp_us(&self) -> u64 {
        self.retrans_stamp_us
    }
    /// Whether the reordering window has run out just now.
    pub fn reo_is_at(&self, now: Time) -> bool {
        self.reo_at == now
    }
    /// A retransmission went while none was out (2.6.35).
    pub fn first_retransmission(&mut self, nxt: u64) {
        self.lost_retrans_low = nxt;
    }

    // ---- Opening ----

    /// The SYN goes.
    pub fn syn_sent(&mut self, us: u64) {
        self.retrans_stamp_us = us;
    }
    /// The connection is open, its stream begins at `una`.
    pub fn opened(&mut self, una: u64) {
        self.high_seq = una;
        self.retrans_stamp = None;
    }
    /// Without SACK a SYN that was retransmitted leaves the state of loss, until something beyond it is acknowledged
    /// (tcp_is_non_sack_preventing_reopen).
    pub fn opened_in_loss(&mut self, tx: &mut Sender) {
        tx.cc.put_state(CaState::Loss);
        self.undo_marker = Some(tx.space.iss());
        self.undo_retrans = i64::from(tx.timers.retransmits());
        self.frto = true;
    }

    // ---- The window falls ----

    /// The peer is to be told that the window has fallen (CWR).
    fn queue_cwr(&mut self, tx: &Sender) {
        self.queue_cwr |= tx.cc.has_classic_ecn();
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_init_cwnd_reduction
    pub(crate) fn init_cwnd_reduction(&mut self, tx: &mut Sender) {
        self.high_seq = tx.space.nxt();
        self.tlp_high = None;
        tx.cc.set_count(0);
        tx.cc.set_prior_cwnd(tx.cc.cwnd());
        self.prr_delivered = 0;
        self.prr_out = 0;
        tx.lower_ssthresh();
        self.queue_cwr(tx);
    }

    /// Proportional rate reduction: as many segments out as makes the window end at the threshold.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_cwnd_reduction
    //= RFC 6937 section 3
    pub(crate) fn cwnd_reduction(
        &mut self,
        tx: &mut Sender,
        delivered: u32,
        newly_lost: u64,
        una_advanced: bool,
    ) {
        if delivered == 0 || tx.cc.prior_cwnd() == 0 {
            return;
        }
        let in_flight = i64::from(tx.q.in_flight());
        let delta = i64::from(tx.cc.ssthresh()) - in_flight;
        self.prr_delivered += delivered;
        let out = i64::from(self.prr_out);
        let mut send = if delta < 0 {
            let prior = u64::from(tx.cc.prior_cwnd());
            let target = (u64::from(tx.cc.ssthresh()) * u64::from(self.prr_delivered)).div_ceil(prior);
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
        tx.cc.put_cwnd((in_flight + send).max(1) as u32);
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_end_cwnd_reduction
    pub(crate) fn end_cwnd_reduction(&mut self, tx: &mut Sender) {
        if tx.cc.takes_over() {
            return;
        }
        if tx.cc.ssthresh() < INFINITE_SSTHRESH
            && (tx.cc.state() == CaState::Cwr || self.undo_marker.is_some())
        {
            tx.cc.put_cwnd(tx.cc.ssthresh());
            tx.cc.touch(&tx.clock);
        }
        tx.show_window();
        tx.cc.reduced();
    }

    /// Congestion without loss: ECN, or a full queue on this host.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_enter_cwr
    pub(crate) fn enter_cwr(&mut self, tx: &mut Sender) {
        if !tx.p.today {
            return self.enter_cwr_2_6_35(tx, true);
        }
        self.prior_ssthresh = 0;
        if tx.cc.state() < CaState::Cwr {
            self.undo_marker = None;
            self.init_cwnd_reduction(tx);
            tx.set_ca(CaState::Cwr);
        }
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_enter_recovery
    pub(crate) fn enter_recovery(&mut self, tx: &mut Sender, ece: bool) {
        self.stamp_cleanup(tx);
        tx.n.recoveries += 1;
        tx.mib.one(if tx.sack_ok { Tx::SackRecovery } else { Tx::RenoRecovery });
        self.prior_ssthresh = 0;
        self.init_undo(tx);
        if !tx.cc.is_reducing() {
            if !ece {
                self.prior_ssthresh = tx.cc.current_ssthresh();
            }
            self.init_cwnd_reduction(tx);
        }
        tx.set_ca(CaState::Recovery);
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_init_undo
    fn init_undo(&mut self, tx: &mut Sender) {
        self.undo_marker = Some(tx.space.una());
        self.undo_retrans = i64::from(tx.q.retrans_out());
        if self.tlp_high.is_some() && self.tlp_retrans {
            self.undo_retrans += 1;
        }
        if self.undo_retrans == 0 {
            self.undo_retrans = -1;
        }
    }

    /// After a retransmission timeout.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_enter_loss, tcp_timeout_mark_lost
    pub(crate) fn enter_loss(&mut self, tx: &mut Sender) {
        if !tx.p.today {
            return self.enter_loss_2_6_35(tx, false);
        }
        let new_recovery = tx.cc.state() < CaState::Recovery;
        let reneged = tx.q.front().is_some_and(|f| f.has(SACKED));
        if reneged {
            tx.q.forget_sacks();
            tx.mib.one(Tx::SackReneging);
            self.sack_reneg = true;
        } else if !tx.sack_ok {
            tx.q.set_dup_acks(0);
        }
        for i in 0..tx.q.packets_out() as usize {
            if !reneged && i > 0 && self.rack_too_young(tx, tx.q.at(i).sent_us) {
                continue;
            }
            tx.q.mark_lost(i);
        }
        if tx.cc.state() <= CaState::Disorder
            || self.high_seq <= tx.space.una()
            || tx.cc.state() == CaState::Loss && tx.timers.retransmits() == 0
        {
            self.prior_ssthresh = tx.cc.current_ssthresh();
            tx.cc.set_prior_cwnd(tx.cc.cwnd());
            tx.lower_ssthresh();
            tx.cc.loss();
            self.init_undo(tx);
        }
        tx.cc.put_cwnd(tx.q.in_flight() + 1);
        tx.cc.set_count(0);
        tx.cc.touch(&tx.clock);
        if tx.cc.state() <= CaState::Disorder && tx.q.sacked_out() >= tx.p.reordering {
            self.reordering = self.reordering.min(tx.p.reordering);
        }
        tx.set_ca(CaState::Loss);
        tx.show_window();
        tx.cc.timeout();
        self.high_seq = tx.space.nxt();
        self.tlp_high = None;
        self.queue_cwr(tx);
        self.frto = self.uses_frto && (new_recovery || tx.timers.retransmits() > 0);
    }

    // ---- The machine ----

    /// Marks what is lost by the rules in force.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_identify_packet_loss, tcp_newreno_mark_lost
    fn identify_loss(&mut self, tx: &mut Sender, flag: &mut u32) {
        if tx.q.packets_out() == 0 {
            return;
        }
        if !tx.sack_ok {
            let advanced = *flag & SND_UNA_ADVANCED != 0;
            let due = tx.cc.state() < CaState::Recovery && tx.q.sacked_out() >= self.reordering
                || tx.cc.state() == CaState::Recovery && advanced;
            if due && !tx.q.at(0).has(LOST) {
                tx.q.mark_lost(0);
            }
            return;
        }
        let prior = tx.q.retrans_out();
        if self.rack_mark_lost(tx) {
            *flag &= !SET_XMIT_TIMER;
        }
        if prior > tx.q.retrans_out() {
            *flag |= LOST_RETRANS;
        }
    }

    /// An ACK with something unusual about it, or while something unusual is going on.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_fastretrans_alert
    pub(crate) fn fastretrans_alert(
        &mut self,
        tx: &mut Sender,
        prior_una: u64,
        dup: bool,
        flag: &mut u32,
    ) -> Rexmit {
        let ece = *flag & ECE != 0;
        if tx.q.packets_out() == 0 {
            tx.q.set_dup_acks(0);
        }
        if ece {
            self.prior_ssthresh = 0;
        }
        if *flag & SACK_RENEGING != 0 && *flag & SND_UNA_ADVANCED != 0 {
            let delay = tx.clock.us_to_jiffies(u64::from(tx.timers.srtt8() >> 4).max(10_000));
            tx.set_timer(Pending::Retrans, delay);
            *flag &= !SET_XMIT_TIMER;
            return Rexmit::None;
        }

        if tx.cc.state() == CaState::Open {
            self.retrans_stamp = None;
        } else if tx.space.una() >= self.high_seq {
            match tx.cc.state() {
                CaState::Cwr if tx.space.una() != self.high_seq => {
                    self.end_cwnd_reduction(tx);
                    tx.set_ca(CaState::Open);
                }
                CaState::Recovery => {
                    if !tx.sack_ok {
                        tx.q.set_dup_acks(0);
                    }
                    if self.try_undo_recovery(tx) {
                        return Rexmit::None;
                    }
                    self.end_cwnd_reduction(tx);
                }
                _ => {}
            }
        }

        let mut rexmit = Rexmit::None;
        match tx.cc.state() {
            CaState::Recovery => {
                if *flag & SND_UNA_ADVANCED == 0 {
                    if !tx.sack_ok && dup {
                        self.add_reno_sack(tx, ece);
                    }
                } else if self.try_undo_partial(tx, prior_una) {
                    return Rexmit::None;
                }
                if self.try_undo_dsack(tx) {
                    self.try_to_open(tx, *flag);
                }
                self.identify_loss(tx, flag);
                if tx.cc.state() != CaState::Recovery {
                    if tx.q.lost_out() == 0 {
                        return Rexmit::None;
                    }
                    self.enter_recovery(tx, ece);
                }
                return Rexmit::Lost;
            }
            CaState::Loss => {
                rexmit = self.process_loss(tx, *flag, dup);
                self.identify_loss(tx, flag);
                if !(tx.cc.state() == CaState::Open || *flag & LOST_RETRANS != 0) {
                    return rexmit;
                }
            }
            _ => {}
        }
        if !tx.sack_ok {
            if *flag & SND_UNA_ADVANCED != 0 {
                tx.q.set_dup_acks(0);
            }
            if dup {
                self.add_reno_sack(tx, ece);
            }
        }
        if tx.cc.state() <= CaState::Disorder {
            self.try_undo_dsack(tx);
        }
        self.identify_loss(tx, flag);
        if tx.q.lost_out() == 0 {
            self.try_to_open(tx, *flag);
            return rexmit;
        }
        if tx.cc.state() < CaState::Cwr && tx.mtu_probe_failed() {
            self.lost_without_congestion(tx);
            return Rexmit::Lost;
        }
        self.enter_recovery(tx, ece);
        Rexmit::Lost
    }

    /// What is lost was too long for the way: it goes again, and the window does not shrink for it.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_non_congestion_loss_retransmit
    pub(crate) fn lost_without_congestion(&mut self, tx: &mut Sender) {
        if tx.cc.state() == CaState::Loss {
            return;
        }
        self.high_seq = tx.space.nxt();
        tx.cc.set_ssthresh(tx.cc.current_ssthresh());
        (self.prior_ssthresh, self.undo_marker) = (0, None);
        tx.set_ca(CaState::Loss);
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_process_loss; RFC 5682 section 3.1
    fn process_loss(&mut self, tx: &mut Sender, flag: u32, dup: bool) -> Rexmit {
        let recovered = tx.space.una() >= self.high_seq;
        if flag & SND_UNA_ADVANCED != 0 && self.try_undo_loss(tx, false) {
            return Rexmit::None;
        }
        if self.frto {
            // Data sent before the timeout and never again arrived: it was spurious.
            if flag & ORIG_SACK_ACKED != 0 && self.try_undo_loss(tx, true) {
                return Rexmit::None;
            }
            if tx.space.nxt() > self.high_seq {
                if flag & DATA_SACKED != 0 || dup {
                    self.frto = false;
                }
            } else if flag & SND_UNA_ADVANCED != 0 && !recovered {
                self.high_seq = tx.space.nxt();
                if tx.space.unsent() > 0 && tx.space.wnd_end() > tx.space.nxt() {
                    return Rexmit::New;
                }
                self.frto = false;
            }
        }
        if recovered {
            self.try_undo_recovery(tx);
            return Rexmit::None;
        }
        if !tx.sack_ok {
            if tx.space.nxt() > self.high_seq && dup {
                self.add_reno_sack(tx, flag & ECE != 0);
            } else if flag & SND_UNA_ADVANCED != 0 {
                tx.q.set_dup_acks(0);
            }
        }
        Rexmit::Lost
    }

    /// A retransmission was tried: what an undo goes by. `us`: what the segment bears as its time.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_retransmit_skb
    pub(crate) fn note_retransmission(&mut self, clock: &Clock, us: u64) {
        if self.retrans_stamp.is_none() {
            self.retrans_stamp = Some(clock.ts_of(us));
            self.retrans_stamp_us = us;
        }
        self.undo_retrans = self.undo_retrans.max(0) + 1;
    }

    /// F-RTO has sent what new data it could.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_xmit_recovery
    pub(crate) fn frto_over(&mut self, tx: &mut Sender) {
        if tx.space.nxt() <= self.high_seq {
            self.frto = false;
            tx.todo.rexmit = true;
        }
    }

    /// The probe was sent.
    pub(crate) fn loss_probe_sent(&mut self, tx: &mut Sender) {
        self.tlp_high = Some(tx.space.nxt());
        tx.mib.one(Tx::LossProbes);
        tx.timers.clear();
        tx.rearm_rto();
    }

    /// The end of a tail loss probe.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_process_tlp_ack; RFC 8985 section 7.4
    pub(crate) fn process_tlp_ack(&mut self, tx: &mut Sender, ack: u64, flag: u32) {
        let Some(high) = self.tlp_high else { return };
        if ack < high {
            return;
        }
        if !self.tlp_retrans || flag & DSACK_TLP != 0 {
            self.tlp_high = None;
        } else if ack > high {
            // The probe repaired a loss: the window falls once.
            self.init_cwnd_reduction(tx);
            tx.set_ca(CaState::Cwr);
            self.end_cwnd_reduction(tx);
            self.try_keep_open(tx);
            tx.mib.one(Tx::LossProbeRecovery);
        } else if flag & (SND_UNA_ADVANCED | NOT_DUP | DATA_SACKED) == 0 {
            self.tlp_high = None;
        }
    }

    /// The window after an ACK: falls where the state says so, else may grow.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_cong_control, tcp_may_raise_cwnd
    #[inline]
    pub(crate) fn cong_control(&mut self, tx: &mut Sender, delivered: u32, lost: u64, flag: u32) {
        self.change_window(tx, delivered, lost, flag);
        tx.update_pacing_rate();
    }
    #[inline]
    fn change_window(&mut self, tx: &mut Sender, delivered: u32, lost: u64, flag: u32) {
        if tx.cc.is_reducing() {
            self.cwnd_reduction(tx, delivered, lost, flag & SND_UNA_ADVANCED != 0);
            return;
        }
        let grows = if self.reordering > tx.p.reordering { FORWARD_PROGRESS } else { DATA_ACKED };
        if flag & grows != 0 {
            let limited = tx.cc.is_limited();
            tx.show_window();
            tx.cc.grow(delivered, limited, &tx.clock);
            if tx.cc.takes_cwr() {
                self.enter_cwr(tx);
            }
        }
    }
}
