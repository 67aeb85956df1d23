//! What happens when the timers of an endpoint run out.
//!
//! Follows: linux v6.12 net/ipv4/tcp_timer.c, net/ipv4/tcp_output.c `tcp_send_loss_probe`, `tcp_send_probe0`; RFC 6298
//! section 5; RFC 9293 section 3.8.6.1 (probes); RFC 8985 section 7 (tail loss probe).
//! Differs: there are no orphans: a closed socket times out by the same rules as any other, and FIN-WAIT-2 lasts until
//! the peer closes.

use super::Endpoint;
use crate::info::{CaState, Error, State};
use crate::mib::Tx;
use crate::sender::timers::Pending;
use penstock_model::Time;

impl Endpoint {
    /// When [`handle_timeout`](Endpoint::handle_timeout) wants to be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        if let Some(o) = &self.one_way {
            return o.poll_timeout();
        }
        let at = self.tx.timers.next().min(self.rx.timer());
        (at != Time::MAX).then_some(at)
    }

    /// Time has come: retransmission, probe, delayed ACK, end of TIME-WAIT. Does nothing when called early.
    pub fn handle_timeout(&mut self, now: Time) {
        self.tx.clock.set(now);
        // Held-back ACKs carry the time of the segment before (tcp_compressed_ack_kick refreshes no clock before 7.2).
        if self.tx.timers.is_due(now) || !self.rx.holds_back_until(now) || self.tx.p.newest {
            self.touch(now);
        }
        if let Some(o) = &mut self.one_way {
            if o.handle_timeout(now) {
                self.done(None);
            }
            return;
        }
        if self.tx.timers.wait_is_over(now) {
            return self.done(None);
        }
        if self.rx.timer() <= now && self.rx.delack_timeout(&self.tx.clock, self.tx.timers.rto()) {
            self.ack_at_once();
        }
        if self.tx.timers.take_paced(now) {
            self.tx.todo.push = true;
            self.tx.todo.rexmit |= self.tx.q.awaits_retransmission();
        }
        if self.tx.timers.is_due(now) {
            match self.tx.timers.take_due() {
                Some(Pending::Retrans) => self.retransmit_timer(),
                Some(Pending::Reorder) => self.recovery.rack_reo_timeout(&mut self.tx),
                Some(Pending::LossProbe) => self.send_loss_probe(),
                Some(Pending::Probe0) => self.probe_timer(),
                None => {}
            }
        }
    }

    /// The probe timeout has run out: new data if there is some, else the last segment again.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_loss_probe
    fn send_loss_probe(&mut self) {
        if self.recovery.probe_is_out() {
            return self.tx.rearm_rto();
        }
        self.recovery.probe_begins();
        if self.tx.q.packets_out() == 0 {
            return self.tx.timers.clear();
        }
        if self.tx.space.has_unsent() && self.tx.next_fits(self.current_mss()) {
            self.tx.todo.probe_new = true;
            return;
        }
        self.tx.todo.probe_last = true;
    }

    /// Whether it is time to give up.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_write_timeout
    fn write_timeout(&self) -> bool {
        if self.state == State::SynSent {
            let retries = u32::from(self.cfg.syn_retries);
            if self.tx.p.today {
                // The first four go at even intervals (tcp_syn_linear_timeouts).
                return self.tx.timers.retransmits() >= retries + 4
                    || self.timed_out(retries, self.tx.p.rto_init);
            }
            return self.tx.timers.retransmits() >= retries;
        }
        if self.state == State::SynReceived {
            // One more by Fast Open.
            let most = u32::from(self.cfg.synack_retries) + u32::from(self.is_fast_child());
            return self.tx.timers.retransmits() >= most;
        }
        if self.tx.p.xp {
            return self.tx.timers.retransmits() >= u32::from(self.cfg.retries2);
        }
        self.timed_out(u32::from(self.cfg.retries2), self.tx.p.rto_min) || self.user_timed_out()
    }
    /// Jiffies of `TCP_USER_TIMEOUT` that are left of a retransmission's time; `None`: it is not set.
    fn user_time_left(&self) -> Option<u32> {
        let timeout = self.calls.as_ref()?.user_timeout?;
        let gone = self.tx.clock.us.saturating_sub(self.recovery.retrans_stamp_us());
        let left = (timeout.as_ns().max(0) as u64 / 1_000).saturating_sub(gone);
        Some(self.tx.clock.us_to_jiffies(left))
    }
    //= linux v6.12 net/ipv4/tcp_timer.c retransmits_timed_out
    fn user_timed_out(&self) -> bool {
        self.tx.timers.retransmits() > 0 && self.user_time_left() == Some(0)
    }
    /// The next retransmission comes no later than the end of `TCP_USER_TIMEOUT`.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_clamp_rto_to_user_timeout
    pub(super) fn clamp_to_user_timeout(&mut self) {
        if let Some(left) = self.user_time_left()
            && self.tx.timers.pending() == Some(Pending::Retrans)
        {
            let rto = self.tx.timers.rto().min(left.max(1));
            self.tx.set_timer(Pending::Retrans, rto);
        }
    }
    /// The same of probes, of the time since the first of them.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_clamp_probe0_to_user_timeout
    fn probe_time_left(&self) -> Option<u32> {
        let calls = self.calls.as_ref()?;
        let timeout = self.tx.clock.span_to_jiffies(calls.user_timeout?);
        let gone = self.tx.clock.jiffies - calls.probes_since?;
        Some(u64::from(timeout).saturating_sub(gone) as u32)
    }
    /// The probe that is set comes no later than that.
    pub(super) fn clamp_probe(&mut self) {
        if let Some(left) = self.probe_time_left()
            && self.tx.timers.pending() == Some(Pending::Probe0)
        {
            self.tx.timers.sooner(left.max(2), &self.tx.clock);
        }
    }
    fn timed_out(&self, boundary: u32, base: u32) -> bool {
        let since = self.recovery.retrans_stamp_us();
        self.tx.timers.timed_out(boundary, base, since, &self.tx.clock)
    }

    /// The retransmission timeout has run out.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_retransmit_timer; RFC 6298 section 5.4 to 5.6
    fn retransmit_timer(&mut self) {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        if !opening && self.tx.q.packets_out() == 0 {
            return;
        }
        let shrunk = self.tx.space.wnd() == 0 && !opening;
        if shrunk {
            // The receiver took its window back: our retransmissions become probes, and do not kill the connection
            // while it answers.
            if self.tx.timers.silent_for(&self.tx.clock) > 2 * u64::from(self.tx.p.rto_max) {
                return self.done(Some(Error::TimedOut));
            }
            self.recovery.enter_loss(&mut self.tx);
        } else {
            self.tx.mib.one(Tx::Timeouts);
            let expired = self.write_timeout();
            if self.fast.is_some() && self.state != State::SynReceived {
                self.detect_blackhole(expired);
            }
            if expired {
                return self.done(Some(Error::TimedOut));
            }
            self.count_timeout();
            if self.state == State::SynSent && self.tx.timers.retransmits() > 0 {
                // A repeated SYN counts as lost once more (tcp_mark_skb_lost).
                self.tx.q.note_lost_again();
            }
            //= linux v6.12 include/net/sock.h sk_rethink_txhash
            if self.tx.p.today && self.cfg.txrehash && self.state != State::SynReceived {
                self.rehashed = self.rehashed.wrapping_add(1);
                self.tx.mib.one(Tx::TimeoutRehash);
            }
            self.tx.n.timeouts += 1;
            if opening {
                self.fast_child_timeout();
            } else {
                if self.recovery.use_frto_2_6_35(&self.tx) {
                    self.recovery.enter_frto_2_6_35(&mut self.tx);
                } else {
                    self.recovery.enter_loss(&mut self.tx);
                }
            }
            self.tx.timers.count_timeout();
        }
        if opening {
            self.tx.todo.syn = true;
            self.tx.todo.syn_again = true;
        } else {
            self.tx.todo.rexmit_front = true;
            self.shrunk = shrunk;
        }
        // For the others it is told from what the host says to the retransmission.
        if self.state == State::SynReceived {
            self.tx.back_off(self.state == State::SynSent);
        }
    }

    /// Counts in what state the timeout has struck.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_retransmit_timer
    fn count_timeout(&mut self) {
        if self.tx.timers.retransmits() > 0 {
            return;
        }
        let sack = self.tx.sack_ok;
        let by = match self.tx.cc.state() {
            CaState::Recovery if sack => Tx::SackRecoveryFail,
            CaState::Recovery => Tx::RenoRecoveryFail,
            CaState::Loss => Tx::LossFailures,
            state if state == CaState::Disorder || self.tx.q.sacked_out() > 0 => {
                if sack {
                    Tx::SackFailures
                } else {
                    Tx::RenoFailures
                }
            }
            _ => return,
        };
        self.tx.mib.one(by);
    }

    // ---- Zero-window probes ----

    //= linux v6.12 net/ipv4/tcp_timer.c tcp_probe_timer
    fn probe_timer(&mut self) {
        if self.tx.q.packets_out() > 0 || !self.tx.space.has_unsent() {
            if let Some(calls) = &mut self.calls {
                calls.probes_since = None;
            }
            return self.tx.timers.forget_probes();
        }
        let jiffies = self.tx.clock.jiffies;
        if let Some(calls) = &mut self.calls {
            calls.probes_since.get_or_insert(jiffies);
        }
        if self.probe_time_left() == Some(0) || self.tx.timers.probes_out() >= u32::from(self.cfg.retries2) {
            return self.done(Some(Error::TimedOut));
        }
        self.tx.todo.probe0 = true;
    }

    /// A probe was sent.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_probe0
    pub(super) fn probe0_sent(&mut self) {
        if self.tx.q.packets_out() > 0 {
            self.tx.timers.forget_probes();
            return self.tx.timers.forget_backoff();
        }
        self.tx.timers.probe_sent(self.cfg.retries2, &self.tx.clock);
        self.clamp_probe();
    }
}
