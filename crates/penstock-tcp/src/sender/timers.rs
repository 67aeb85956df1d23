//! The timers of an endpoint and what happens when they run out.
//!
//! Follows: linux v6.12 net/ipv4/tcp_timer.c, net/ipv4/tcp_output.c `tcp_send_loss_probe`, `tcp_send_probe0`; RFC 6298
//! section 5; RFC 9293 section 3.8.6.1 (probes); RFC 8985 section 7 (tail loss probe).
//! Differs: there are no orphans: a closed socket times out by the same rules as any other, and FIN-WAIT-2 lasts until
//! the peer closes.

use crate::endpoint::Endpoint;
use crate::info::{CaState, Error, State};
use penstock_model::Time;

/// What the one timer for sending is set for (`icsk_pending`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pending {
    /// Retransmission timeout.
    Retrans,
    /// Tail loss probe.
    LossProbe,
    /// RACK's reordering window.
    Reorder,
    /// Zero-window probe.
    Probe0,
}

/// The timers but those of the receiving half.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    pub pending: Option<Pending>,
    /// The jiffy it is set for.
    pub expires: u64,
    fires: Time,
    /// End of TIME-WAIT.
    pub wait: Time,
}

impl Timers {
    pub fn new() -> Timers {
        Timers { pending: None, expires: 0, fires: Time::MAX, wait: Time::MAX }
    }
}

impl Endpoint {
    /// When [`handle_timeout`](Endpoint::handle_timeout) wants to be called.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        if let Some(o) = &self.one_way {
            return o.poll_timeout();
        }
        let mut at = self.timers.fires.min(self.timers.wait);
        if let Some(t) = self.rx.timer() {
            at = at.min(t);
        }
        if let Some(t) = self.pace_at {
            at = at.min(t);
        }
        (at != Time::MAX).then_some(at)
    }

    /// Time has come: retransmission, probe, delayed ACK, end of TIME-WAIT. Does nothing when called early.
    pub fn handle_timeout(&mut self, now: Time) {
        self.clock.set(now);
        // Held-back ACKs carry the time of the segment before (tcp_compressed_ack_kick refreshes no clock).
        if self.timers.fires <= now || !self.rx.holds_back_until(now) {
            self.touch(now);
        }
        if let Some(o) = &mut self.one_way {
            if o.handle_timeout(now) {
                self.done(None);
            }
            return;
        }
        if self.timers.wait <= now {
            return self.done(None);
        }
        if self.rx.timer().is_some_and(|t| t <= now) && self.rx.delack_timeout(&self.clock, self.rto) {
            self.rx.now = true;
            self.todo.ack_check = true;
        }
        if self.pace_at.is_some_and(|t| t <= now) {
            self.pace_at = None;
            self.todo.push = true;
            self.todo.rexmit |= self.q.lost_out > self.q.retrans_out;
        }
        if self.timers.fires <= now {
            match self.timers.pending {
                Some(Pending::Retrans) => {
                    self.clear_xmit_timer();
                    self.retransmit_timer();
                }
                Some(Pending::Reorder) => self.rack_reo_timeout(),
                Some(Pending::LossProbe) => self.send_loss_probe(),
                Some(Pending::Probe0) => {
                    self.clear_xmit_timer();
                    self.probe_timer();
                }
                None => self.timers.fires = Time::MAX,
            }
        }
    }

    /// Sets the timer for sending, `jiffies` from now.
    #[inline]
    pub(crate) fn set_xmit_timer(&mut self, what: Pending, jiffies: u32) {
        let expires = self.clock.jiffies + u64::from(jiffies.min(self.p.rto_max));
        if self.timers.expires != expires
            || self.timers.fires <= self.clock.now
            || self.timers.pending.is_none()
        {
            self.timers.expires = expires;
            self.timers.fires = self.clock.fires(expires);
        }
        self.timers.pending = Some(what);
    }
    #[inline]
    pub(crate) fn clear_xmit_timer(&mut self) {
        self.timers.pending = None;
        self.timers.fires = Time::MAX;
    }

    /// Microseconds until the retransmission timeout of the front segment would be.
    //= linux v6.12 include/net/tcp.h tcp_rto_delta_us
    fn rto_delta_us(&self) -> i64 {
        let rto_us = i64::from(self.rto) * i64::from(self.clock.jiffy_us());
        self.q.front().map_or(rto_us, |f| f.sent_us as i64 + rto_us - self.clock.us as i64)
    }

    /// After progress: the timeout starts anew, or ends where nothing is out.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rearm_rto; RFC 6298 section 5.2, 5.3
    pub(crate) fn rearm_rto(&mut self) {
        if self.q.packets_out() == 0 {
            if self.timers.pending != Some(Pending::Probe0) {
                self.clear_xmit_timer();
            }
            return;
        }
        let mut rto = self.rto;
        if matches!(self.timers.pending, Some(Pending::Reorder | Pending::LossProbe)) {
            rto = self.clock.us_to_jiffies(self.rto_delta_us().max(1) as u64);
        }
        self.set_xmit_timer(Pending::Retrans, rto);
    }

    /// Sets the timer of the tail loss probe where one is useful; answers whether it did.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_schedule_loss_probe
    pub(crate) fn schedule_loss_probe(&mut self, advancing_rto: bool) -> bool {
        if !self.p.today
            || self.q.packets_out() == 0
            || !self.sack_ok
            || !matches!(self.ca, CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let mut timeout = self.p.rto_init;
        if self.rtt.srtt > 0 {
            let us = u64::from(self.rtt.srtt >> 2) + if self.q.packets_out() == 1 { 200_000 } else { 2_000 };
            timeout = self.clock.us_to_jiffies(us);
        }
        if advancing_rto {
            timeout = timeout.min(self.rto);
        } else {
            let delta = self.rto_delta_us();
            if delta > 0 {
                timeout = timeout.min(self.clock.us_to_jiffies(delta as u64));
            }
        }
        self.set_xmit_timer(Pending::LossProbe, timeout);
        true
    }

    /// The probe timeout has run out: new data if there is some, else the last segment again.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_loss_probe
    fn send_loss_probe(&mut self) {
        if self.tlp_high.is_some() {
            return self.rearm_rto();
        }
        self.tlp_retrans = false;
        if self.q.packets_out() == 0 {
            return self.clear_xmit_timer();
        }
        if self.has_unsent() && self.next_fits() {
            self.todo.probe_new = true;
            return;
        }
        self.todo.probe_last = true;
    }

    /// The probe was sent.
    pub(crate) fn loss_probe_sent(&mut self) {
        self.tlp_high = Some(self.snd_nxt);
        self.clear_xmit_timer();
        self.rearm_rto();
    }

    /// Whether retransmitting has lasted longer than `boundary` doublings of `base` jiffies would.
    //= linux v6.12 net/ipv4/tcp_timer.c retransmits_timed_out, tcp_model_timeout
    fn retransmits_timed_out(&self, boundary: u32, base: u32) -> bool {
        if self.retransmits == 0 {
            return false;
        }
        let linear = (self.p.rto_max / base.max(1)).max(1).ilog2();
        let timeout = if boundary <= linear {
            ((2u64 << boundary) - 1) * u64::from(base)
        } else {
            ((2u64 << linear) - 1) * u64::from(base)
                + u64::from(boundary - linear) * u64::from(self.p.rto_max)
        };
        (self.clock.us - self.retrans_stamp_us) >= timeout * u64::from(self.clock.jiffy_us())
    }

    /// Whether it is time to give up.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_write_timeout
    fn write_timeout(&self) -> bool {
        if self.state == State::SynSent {
            let retries = u32::from(self.cfg.syn_retries);
            if self.p.today {
                // The first four go at even intervals (tcp_syn_linear_timeouts).
                return self.retransmits >= retries + 4
                    || self.retransmits_timed_out(retries, self.p.rto_init);
            }
            return self.retransmits >= retries;
        }
        if self.state == State::SynReceived {
            return self.retransmits >= u32::from(self.cfg.synack_retries);
        }
        if self.cfg.stack == crate::config::Stack::WindowsXp {
            return self.retransmits >= u32::from(self.cfg.retries2);
        }
        self.retransmits_timed_out(u32::from(self.cfg.retries2), self.p.rto_min)
    }

    /// The retransmission timeout has run out.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_retransmit_timer; RFC 6298 section 5.4 to 5.6
    fn retransmit_timer(&mut self) {
        let opening = matches!(self.state, State::SynSent | State::SynReceived);
        if !opening && self.q.packets_out() == 0 {
            return;
        }
        let shrunk = self.snd_wnd == 0 && !opening;
        if shrunk {
            // The receiver took its window back: our retransmissions become probes, and do not kill the connection
            // while it answers.
            if self.clock.jiffies - self.rcv_tstamp > 2 * u64::from(self.p.rto_max) {
                return self.done(Some(Error::TimedOut));
            }
            self.enter_loss();
        } else {
            if self.write_timeout() {
                return self.done(Some(Error::TimedOut));
            }
            if self.p.today && self.state != State::SynReceived {
                self.rehashed = self.rehashed.wrapping_add(1);
            }
            self.n.timeouts += 1;
            if !opening {
                if self.use_frto_2_6_35() {
                    self.enter_frto_2_6_35();
                } else {
                    self.enter_loss();
                }
            }
            self.retransmits += 1;
            self.total_rto += 1;
        }
        if opening {
            self.todo.syn = true;
            self.todo.syn_again = true;
        } else {
            self.todo.rexmit_front = true;
            self.shrunk = shrunk;
        }
        // For the others it is told from what the host says to the retransmission.
        if self.state == State::SynReceived {
            self.back_off();
        }
    }

    // ---- Zero-window probes ----

    /// The wait before the next probe: the timeout, doubled for each probe so far.
    //= linux v6.12 include/net/tcp.h tcp_probe0_when
    fn probe0_when(&self) -> u32 {
        let backoff = u32::from(self.backoff).min((self.p.rto_max / self.p.rto_min).ilog2() + 1);
        let when = u64::from(self.rto.max(self.p.rto_min)) << backoff;
        when.min(u64::from(self.p.rto_max)) as u32
    }

    /// Data wait, nothing is out and no timer runs: the window is probed.
    //= linux v6.12 include/net/tcp.h tcp_check_probe_timer
    pub(crate) fn check_probe_timer(&mut self) {
        if self.q.packets_out() == 0 && self.timers.pending.is_none() {
            let when = self.rto.max(self.p.rto_min);
            self.set_xmit_timer(Pending::Probe0, when);
        }
    }

    /// An ACK came while nothing was out.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ack_probe
    pub(crate) fn ack_probe(&mut self) {
        if !self.has_unsent() {
            return;
        }
        if self.next_fits() {
            self.backoff = 0;
            if self.timers.pending == Some(Pending::Probe0) {
                self.clear_xmit_timer();
            }
        } else {
            let when = self.probe0_when();
            self.set_xmit_timer(Pending::Probe0, when);
        }
    }

    //= linux v6.12 net/ipv4/tcp_timer.c tcp_probe_timer
    fn probe_timer(&mut self) {
        if self.q.packets_out() > 0 || !self.has_unsent() {
            self.probes_out = 0;
            return;
        }
        if self.probes_out >= u32::from(self.cfg.retries2) {
            return self.done(Some(Error::TimedOut));
        }
        self.todo.probe0 = true;
    }

    /// A probe was sent.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_probe0
    pub(crate) fn probe0_sent(&mut self) {
        if self.q.packets_out() > 0 {
            self.probes_out = 0;
            self.backoff = 0;
            return;
        }
        self.probes_out += 1;
        if self.backoff < self.cfg.retries2 {
            self.backoff += 1;
        }
        let when = self.probe0_when();
        self.set_xmit_timer(Pending::Probe0, when);
    }
}
