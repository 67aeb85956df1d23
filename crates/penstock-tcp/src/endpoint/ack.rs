//! What an acknowledgement brings: progress, windows, round trips, and whom to tell.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_ack`, `tcp_ack_update_window`, `tcp_ack_probe`; v2.6.35 likewise.
//! Differs: none known.

use super::Endpoint;
use crate::info::CaState;
use crate::mib::{Rx, Tx};
use crate::recovery::{Prior, Rexmit};
use crate::sender::acked::{
    CA_ALERT, DATA, DATA_ACKED, DSACKING_ACK, ECE, NOT_DUP, SET_XMIT_TIMER, SND_UNA_ADVANCED, SackState,
    WIN_UPDATE,
};
use crate::sender::timers::Pending;
use crate::seq;
use penstock_packet::{Tcp, TcpFlags};

impl Endpoint {
    /// Deals with the acknowledgement in `seg`, whose data is `start..end` and which is not what header prediction expects (`slow`), or is. False when it is to
    /// be discarded.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ack
    pub(crate) fn ack(&mut self, seg: &Tcp, start: u64, end: u64, slow: bool) -> bool {
        let ack = seq::unwrap(seg.ack, self.tx.space.una());
        let prior_una = self.tx.space.una();
        let tsval = seg.timestamps.filter(|_| self.tx.stamps.ok()).map_or(0, |t| t.0);
        let mut s = SackState { tsval, ..SackState::default() };
        let mut flag = 0;
        if ack < prior_una {
            let mut most = u64::from(self.tx.space.max_window());
            if self.tx.p.newest {
                most = most.min(prior_una.saturating_sub(self.tx.space.iss() + 1));
            }
            if self.tx.p.today && prior_una - ack > most {
                self.challenge();
                return false;
            }
            self.old_ack(seg, ack, start, prior_una);
            return prior_una - ack <= most;
        }
        if ack > self.tx.space.nxt() {
            if self.tx.p.newest {
                self.challenge();
            }
            return false;
        }
        if ack > prior_una {
            flag |= SND_UNA_ADVANCED;
            if self.tx.p.today {
                self.tx.timers.forget_retransmits();
            }
        }
        let prior_fack = if self.tx.sack_ok { self.tx.q.highest_sack(prior_una) } else { prior_una };
        let prior_in_flight = self.tx.q.in_flight();
        let prior_fackets = if self.tx.p.today { 0 } else { self.tx.q.fackets_out() };
        let prior_packets = self.tx.q.packets_out();
        let prior_delivered = self.tx.cc.delivered();
        let prior_lost = self.tx.q.lost();
        let newer = self.replace_ts_recent(seg, start);

        if end != start {
            flag |= DATA;
        } else if slow || ack == prior_una {
            self.tx.mib.one(Tx::PureAcks);
        }
        flag |= self.update_window(seg, ack, start);
        if seg.sack_count > 0 && self.tx.sack_ok {
            self.recovery.sacktag(&mut self.tx, seg, ack, prior_una, &mut s);
            flag |= s.flag;
        }
        if seg.flags.has(TcpFlags::ECE) && self.tx.cc.has_classic_ecn() && !seg.flags.has(TcpFlags::SYN) {
            flag |= ECE;
        }
        self.tx.cc.count_delivered(s.delivered, flag);
        if seg.flags.has(TcpFlags::CWR) && (self.tx.cc.has_classic_ecn() || !self.tx.p.newest) {
            self.rx.echo.heard();
            if end != start {
                self.rx.ack_at_once();
            }
        }
        //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_established
        // What brings data alone, as foreseen, is looked at no further where its memory is reserved.
        let (rmem, len) = (u64::from(self.rx.rmem()), (end - start) as u32);
        let reserved = (rmem + self.tx.wmem()).wrapping_neg() % 4_096;
        let foreseen = len > 0 && ack == prior_una && self.tx.cc.is_foreseen();
        let whole = u64::from(self.rx.truesize(len)) > reserved;
        if !foreseen || whole {
            self.tx.timers.heard(&self.tx.clock);
        }
        let fast = !slow && (len == 0 || !whole);
        if fast && len > 0 {
            self.rx.mib.one(Rx::HpHits);
        }
        if fast && ack > prior_una {
            self.tx.mib.one(Tx::HpAcks);
        }

        if prior_packets == 0 {
            if self.accurate.is_some() {
                self.process_accurate(seg, s.delivered, s.delivered_bytes, slow, newer, &mut flag);
            }
            if self.tx.cc.hears_acks() && self.tx.p.today {
                self.tx.show_window();
                self.tx.cc.in_ack_event();
            }
            if flag & DSACKING_ACK != 0 && self.tx.p.today {
                self.recovery.fastretrans_alert(&mut self.tx, prior_una, false, &mut flag);
            }
            self.ack_probe();
            if self.recovery.probe_is_out() {
                self.recovery.process_tlp_ack(&mut self.tx, ack, flag);
            }
            return true;
        }

        if !self.tx.p.today {
            self.tx.show_window();
            self.tx.cc.in_ack_event();
        }
        let prior = Prior { fack: prior_fack, una: prior_una, fackets: prior_fackets };
        let pkts_acked = self.recovery.clean_rtx(&mut self.tx, prior, &mut s, &mut flag);
        if self.tx.q.packets_out() == 0 {
            self.chrono_acked();
        }
        if self.tx.p.today {
            self.recovery.rack_update_reo_wnd(&mut self.tx, s.prior_delivered);
            if self.accurate.is_some() {
                let delivered = (self.tx.cc.delivered() - prior_delivered) as u32;
                self.process_accurate(seg, delivered, s.delivered_bytes, slow, newer, &mut flag);
            }
            if self.tx.cc.hears_acks() {
                self.tx.show_window();
                self.tx.cc.in_ack_event();
            }
            if self.recovery.probe_is_out() {
                self.recovery.process_tlp_ack(&mut self.tx, ack, flag);
            }
            let mut rexmit = Rexmit::None;
            if flag & NOT_DUP == 0 || flag & CA_ALERT != 0 || self.tx.cc.state() != CaState::Open {
                let dup = flag & (SND_UNA_ADVANCED | NOT_DUP | DSACKING_ACK) == 0;
                rexmit = self.recovery.fastretrans_alert(&mut self.tx, prior_una, dup, &mut flag);
            }
            if flag & SET_XMIT_TIMER != 0 && !self.tx.schedule_loss_probe(true) {
                self.tx.rearm_rto();
            }
            let delivered = (self.tx.cc.delivered() - prior_delivered) as u32;
            let lost = self.tx.q.lost() - prior_lost;
            let prior = (delivered, lost, prior_in_flight);
            self.tx.rate_gen(&s, prior, self.recovery.is_reneged());
            if !self.tx.cc.takes_over() {
                self.recovery.cong_control(&mut self.tx, delivered, lost, flag);
            }
            match rexmit {
                Rexmit::None => {}
                Rexmit::Lost => self.tx.todo.rexmit = true,
                Rexmit::New => self.tx.todo.frto_new = true,
            }
        } else {
            self.ack_2_6_35(pkts_acked, prior_in_flight, flag);
        }
        true
    }

    /// An ACK older than what was acknowledged: only its SACKs count.
    fn old_ack(&mut self, seg: &Tcp, ack: u64, start: u64, prior_una: u64) {
        self.replace_ts_recent(seg, start);
        if seg.sack_count == 0 || !self.tx.sack_ok || prior_una - ack > u64::from(self.tx.space.max_window())
        {
            return;
        }
        let mut s = SackState::default();
        self.recovery.sacktag(&mut self.tx, seg, ack, prior_una, &mut s);
        if self.tx.p.today {
            let mut flag = s.flag;
            self.tx.cc.count_delivered(s.delivered, flag);
            if self.recovery.fastretrans_alert(&mut self.tx, prior_una, false, &mut flag) == Rexmit::Lost {
                self.tx.todo.rexmit = true;
            }
        } else if self.tx.cc.state() == CaState::Open {
            self.recovery.try_keep_open(&mut self.tx);
        }
    }

    /// What 2.6.35 does with an ACK for so many segments.
    fn ack_2_6_35(&mut self, pkts_acked: u32, prior_in_flight: u32, flag: u32) {
        let mss = self.current_mss();
        let tx = &mut self.tx;
        let frto = self.recovery.frto_runs() && self.recovery.process_frto_2_6_35(tx, flag, mss);
        self.recovery.forget_frto(tx.space.una());
        let dubious = flag & NOT_DUP == 0 || flag & CA_ALERT != 0 || tx.cc.state() != CaState::Open;
        let may_raise =
            !dubious || (flag & ECE == 0 || tx.cc.cwnd() < tx.cc.ssthresh()) && !tx.cc.is_reducing();
        if flag & DATA_ACKED != 0 && may_raise && !frto {
            let limited = self.recovery.cwnd_limited_2_6_35(tx, prior_in_flight);
            tx.show_window();
            tx.cc.grow(1, limited, &tx.clock);
        }
        if dubious {
            self.recovery.fastretrans_alert_2_6_35(tx, pkts_acked, flag, mss);
        }
    }

    /// The window in `seg`, if it is newer than the one we have.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ack_update_window; RFC 9293 section 3.10.7.4
    #[inline]
    fn update_window(&mut self, seg: &Tcp, ack: u64, start: u64) -> u32 {
        let tx = &mut self.tx;
        let window = tx.space.scaled(seg.window, seg.flags.has(TcpFlags::SYN));
        let mut flag = 0;
        if tx.space.may_update_window(ack, start, window, tx.p.today) {
            flag |= WIN_UPDATE;
            if tx.space.set_window(window, start) {
                if tx.space.unsent() > 0 {
                    tx.idle_check();
                }
                tx.space.note_largest();
            }
        }
        tx.space.acked(ack);
        flag
    }

    /// An ACK came while nothing was out.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ack_probe
    fn ack_probe(&mut self) {
        if !self.tx.space.has_unsent() {
            return;
        }
        if self.tx.next_fits(self.current_mss()) {
            self.tx.timers.forget_backoff();
            if let Some(calls) = &mut self.calls {
                calls.probes_since = None;
            }
            if self.tx.timers.pending() == Some(Pending::Probe0) {
                self.tx.timers.clear();
            }
        } else {
            self.tx.timers.set_probe(&self.tx.clock);
        }
    }
}
