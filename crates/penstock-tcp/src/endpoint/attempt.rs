//! Handing a segment to the host: it counts as sent only when the host has taken it.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `__tcp_transmit_skb` and what its callers do with the answer (`tcp_write_xmit`,
//! `tcp_retransmit_skb`, `tcp_send_loss_probe`, `tcp_send_probe0`), net/ipv4/tcp_timer.c `tcp_retransmit_timer`,
//! `tcp_wfree`, `tcp_tsq_write`; v2.6.35 likewise.
//! Differs: none known.
//!
//! A segment that [`poll_transmit`](Endpoint::poll_transmit) hands over is on trial until the next call: what the kernel does before it asks
//! the queue is done at once (header, ACK state, counters), what it does after a good answer is done by [`Endpoint::taken`]. A bad answer
//! comes in between, by [`Endpoint::local_drop`] or [`Endpoint::local_refusal`].

use super::Endpoint;
use crate::info::{CaState, State};
use crate::mib::Tx;
use crate::sender::rtx;
use crate::sender::timers::Pending;
use penstock_model::Time;

/// What has been handed over last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Trial {
    /// Nothing that anything follows from.
    #[default]
    Nothing,
    /// New data up to `end`, or a FIN; as segments of `size` bytes that the card cuts, 0: as one.
    New { end: u64, bits: u8, small: bool, why: Why, size: u32 },
    /// So many segments from this place of the retransmission queue on.
    Again { index: u32, count: u32, why: Why },
    /// A SYN that was sent before.
    Syn,
    /// A probe of a closed window without data.
    WindowProbe,
}

/// What let a segment go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Why {
    /// The windows.
    Window,
    /// The retransmission timeout. `shrunk`: the receiver has taken its window back, and this probes it.
    Timeout { shrunk: bool },
    /// A tail loss probe.
    LossProbe,
    /// A probe of a closed window.
    WindowProbe,
}

impl Endpoint {
    /// The host has taken what was handed over last, if anything follows from that.
    #[inline]
    pub(super) fn taken(&mut self) {
        if self.trial != Trial::Nothing {
            self.trial_taken();
        }
    }
    fn trial_taken(&mut self) {
        match std::mem::take(&mut self.trial) {
            Trial::Nothing => {}
            Trial::New { end, bits, small, why, size } => self.new_taken(end, bits, small, why, size),
            Trial::Again { index, count, why } => {
                self.again_taken(index as usize, count as usize, why);
            }
            Trial::Syn => self.tx.back_off(self.state == State::SynSent),
            Trial::WindowProbe => self.probe0_sent(),
        }
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_event_new_data_sent
    #[inline]
    fn new_taken(&mut self, end: u64, bits: u8, small: bool, why: Why, size: u32) {
        let seq = self.tx.space.nxt();
        let data_end = end - u64::from(bits & rtx::FIN != 0);
        let len = (data_end - seq) as u32;
        let mut ends_record = false;
        if len > 0 && self.tx.unsent.head().is_some_and(|b| b.end <= data_end) {
            ends_record = self.tx.unsent.pop().is_some_and(|b| b.eor);
        }
        let first = self.tx.q.packets_out() == 0;
        let departs_us = self.tx.departs_us();
        if first {
            self.tx.cc.flight_begins(departs_us);
        }
        let mut from = seq;
        let mut segments = 1;
        while size > 0 && data_end - from > u64::from(size) {
            let cut = from + u64::from(size);
            self.piece_taken(from, cut, 0, departs_us);
            (from, segments) = (cut, segments + 1);
        }
        self.piece_taken(from, end, bits, departs_us);
        if ends_record {
            self.tx.q.last_ends_record();
        }
        self.tx.paced(len);
        self.tx.space.sent(data_end, bits & rtx::FIN != 0, small);
        if (first || self.tx.timers.pending() == Some(Pending::LossProbe)) && self.state != State::SynReceived
        {
            self.tx.rearm_rto();
        }
        self.push.sent += segments;
        self.tx.mib.add(Tx::OrigDataSent, segments);
        self.recovery.new_data_sent();
        if self.tx.p.today {
            self.tx.check_space(u32::from(self.mss), self.recovery.reordering());
        }
        match why {
            Why::LossProbe => {
                let limited = self.tx.is_full();
                self.push.sent = 0;
                self.tx.cwnd_validate(limited);
                if self.tx.cc.is_reducing() {
                    self.recovery.prr_sent(segments);
                }
                self.recovery.loss_probe_sent(&mut self.tx);
            }
            Why::WindowProbe => {
                self.push.sent = 0;
                self.probe0_sent();
            }
            Why::Window | Why::Timeout { .. } => {}
        }
    }

    /// A segment of what was handed over is out.
    #[inline(always)] // Mostly there is one.
    fn piece_taken(&mut self, seq: u64, end: u64, bits: u8, departs_us: u64) {
        self.tx.q.push(seq, end, departs_us, self.tx.cc.delivered(), bits, self.tx.host.last_no());
        if let Some(calls) = &mut self.calls
            && std::mem::replace(&mut calls.joins, true)
        {
            self.tx.q.last_joins();
        }
        self.tx.stamp_rate(self.tx.q.packets_out() as usize - 1);
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_retransmit_skb, tcp_xmit_retransmit_queue
    fn again_taken(&mut self, index: usize, count: usize, why: Why) {
        let last = self.tx.q.at(index + count - 1);
        let len = (last.end - self.tx.q.at(index).seq) as u32 - u32::from(last.has(rtx::FIN));
        let (nxt, host_no) = (self.tx.space.nxt(), self.tx.host.last_no());
        for index in index..index + count {
            self.tx.q.retransmitted(index, self.tx.cc.delivered(), nxt, host_no);
            self.tx.stamp_rate(index);
        }
        self.tx.paced(len);
        if why == Why::LossProbe {
            self.recovery.probe_retransmits();
            return self.recovery.loss_probe_sent(&mut self.tx);
        }
        if self.tx.q.retrans_out() == 0 {
            self.recovery.first_retransmission(nxt);
        }
        for index in index..index + count {
            self.tx.q.tag_retrans(index);
        }
        if !self.tx.p.today {
            self.recovery.note_retransmission(&self.tx.clock, self.tx.clock.us);
        }
        match why {
            Why::Timeout { .. } => {
                self.tx.back_off(self.state == State::SynSent);
                self.clamp_to_user_timeout();
            }
            _ => {
                let in_loss = self.tx.cc.state() == CaState::Loss;
                let by = if in_loss { Tx::SlowStartRetrans } else { Tx::FastRetrans };
                self.tx.mib.add(by, count as u32);
                if self.tx.cc.is_reducing() {
                    self.recovery.prr_sent(count as u32);
                }
                if index == 0 && self.tx.timers.pending() != Some(Pending::Reorder) {
                    self.tx.set_rto();
                }
            }
        }
    }

    // ---- What the host answers ----

    /// The local queueing discipline took the segment just taken with [`poll_transmit`](Endpoint::poll_transmit) but said it was congested
    /// (`NET_XMIT_CN`): Linux then reduces its window as for ECN (`tcp_enter_cwr`). For a drop see
    /// [`local_drop`](Endpoint::local_drop).
    pub fn local_congestion(&mut self, now: Time) {
        self.touch(now);
        let open = !matches!(self.state, State::Closed | State::SynReceived | State::TimeWait);
        if self.cfg.stack.feels_its_host() && open {
            if self.push.ones && !self.tx.cc.is_reducing() {
                self.push.sent_before = self.push.sent;
            }
            self.recovery.enter_cwr(&mut self.tx);
        }
    }

    /// The local queueing discipline dropped the segment just taken with [`poll_transmit`](Endpoint::poll_transmit)
    /// (`NET_XMIT_DROP`). Linux knows at once: data counts as not sent, no more is sent now, the window is reduced, and the timers that
    /// wait for such a host try again after half a second. To be called before the next `poll_transmit`; not for `NET_XMIT_CN`.
    pub fn local_drop(&mut self, now: Time) {
        if self.cfg.stack.feels_its_host() {
            self.local_congestion(now);
            self.not_taken(true);
        }
    }

    /// The host would not send the segment just taken with [`poll_transmit`](Endpoint::poll_transmit): a rule of the packet filter dropped it, or
    /// there is no route (a negative `errno`). Data counts as not sent, and no more is sent now; the window stays, and the timers go on as
    /// after a loss.
    pub fn local_refusal(&mut self, now: Time) {
        if self.cfg.stack.feels_its_host() {
            self.touch(now);
            self.not_taken(false);
        }
    }

    fn not_taken(&mut self, congested: bool) {
        // What is due is stamped with the time of this try.
        self.tx.cc.due_now(&self.tx.clock);
        if let Trial::Again { count, .. } = self.trial {
            self.tx.mib.add(Tx::RetransFail, count);
        }
        match std::mem::take(&mut self.trial) {
            Trial::Nothing => {}
            Trial::New { why: Why::LossProbe, .. } => {
                if self.tx.is_full() {
                    self.tx.cwnd_validate(true);
                }
                self.tx.rearm_rto();
            }
            Trial::Again { why: Why::LossProbe, .. } => self.tx.rearm_rto(),
            Trial::New { why: Why::WindowProbe, .. } | Trial::WindowProbe => self.probe0_not_sent(congested),
            Trial::New { end, .. } => {
                if std::mem::take(&mut self.tx.todo.frto_new) {
                    self.recovery.frto_over(&mut self.tx);
                }
                // A long write pushes again further on, and meets the same queue; its end comes behind.
                let mut pushes = std::mem::take(&mut self.push.pushes);
                while pushes.front().is_some_and(|&at| at <= end) {
                    pushes.pop_front();
                }
                let again = pushes.pop_front().is_some();
                let corking = again && std::mem::take(&mut self.push.corking);
                self.push_done();
                self.tx.todo.push = again;
                self.push.corking = corking;
                self.push.pushes = pushes;
            }
            Trial::Again { why: Why::Timeout { shrunk: false }, .. } | Trial::Syn if congested => {
                self.timeout_not_sent();
            }
            Trial::Again { why: Why::Timeout { .. }, .. } | Trial::Syn => {
                self.tx.back_off(self.state == State::SynSent)
            }
            Trial::Again { index, .. } => {
                self.tx.todo.rexmit = false;
                self.frozen = false;
                // tcp_rack_reo_timeout sets its timer behind the try, which has stamped the front segment.
                if index == 0 && self.recovery.reo_is_at(self.tx.clock.now) {
                    self.tx.set_rto();
                }
            }
        }
    }

    /// `TCP_RESOURCE_PROBE_INTERVAL`, jiffies: half a second.
    fn resource_probe_interval(&self) -> u32 {
        (self.tx.clock.hz() / 2).max(1)
    }

    //= linux v6.12 net/ipv4/tcp_timer.c tcp_retransmit_timer ("Let senders fight for local resources conservatively")
    fn timeout_not_sent(&mut self) {
        let mut after = self.resource_probe_interval();
        if !self.tx.p.today {
            // There a retransmission is counted only when it was sent, and the timeout bounds the wait.
            self.tx.timers.uncount_retransmission();
            after = after.min(self.tx.timers.rto());
        }
        self.tx.set_timer(Pending::Retrans, after);
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_probe0
    fn probe0_not_sent(&mut self, congested: bool) {
        if !congested {
            return self.probe0_sent();
        }
        let interval = self.resource_probe_interval();
        if self.tx.p.today {
            self.tx.timers.probe_not_sent(true, interval, &self.tx.clock);
            self.clamp_probe();
        } else {
            let when = u64::from(self.tx.timers.rto()) << self.tx.timers.backoff().min(16);
            let when = when.min(u64::from(interval)) as u32;
            self.tx.timers.probe_not_sent(false, when, &self.tx.clock);
        }
    }

    // ---- The memory of what the host holds ----

    /// A frame of ours with this many payload bytes has left the host. Only with `Config::device_accounting`; call
    /// [`poll_transmit`](Endpoint::poll_transmit) afterwards.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_wfree, tcp_tsq_handler
    pub fn transmitted_freed(&mut self, bytes: u32, now: Time) {
        self.touch(now);
        self.tx.host.left();
        self.tx.host.release(bytes, now);
    }

    /// The host has cut a packet of ours into so many segments more, each of which is an `sk_buff` of its own: `transmitted_orphaned` follows for
    /// each but the last.
    //= linux v6.12 net/ipv4/tcp_offload.c tcp_gso_segment
    pub fn transmitted_cut(&mut self, more: u32) {
        self.tx.host.cut(more);
    }
    /// A frame of ours with this many payload bytes stays in a queue of the host that holds it as a line would: its memory is free
    /// (`skb_orphan_partial`). [`transmitted_left`](Endpoint::transmitted_left) follows when it leaves; call
    /// [`poll_transmit`](Endpoint::poll_transmit) afterwards.
    //= linux v6.12 net/core/sock.c skb_orphan_partial
    pub fn transmitted_orphaned(&mut self, bytes: u32, now: Time) {
        self.touch(now);
        self.tx.host.release(bytes, now);
    }
    /// Such a frame has left the host.
    pub fn transmitted_left(&mut self) {
        self.tx.host.left();
    }

    /// The host has dropped the frame of ours with this sequence number and this many payload bytes (`None`: their memory was free already): the one that was just handed over, or
    /// one that had waited. Before [`local_drop`](Endpoint::local_drop), where that is due too; call
    /// [`poll_transmit`](Endpoint::poll_transmit) afterwards.
    pub fn dropped_in_host(&mut self, seq: u32, bytes: Option<u32>, now: Time) {
        self.touch(now);
        let on_trial = match self.trial {
            Trial::New { .. } => self.tx.space.nxt() as u32 == seq,
            Trial::Again { index, .. } => self.tx.q.at(index as usize).seq as u32 == seq,
            _ => false,
        };
        let host = &mut self.tx.host;
        if !(on_trial && host.last_dropped()) {
            if self.tx.q.left_host_out_of_turn(seq, host.freed()) {
                host.dropped();
            } else {
                host.left();
            }
        }
        if let Some(bytes) = bytes {
            host.release(bytes, now);
        }
    }

    /// Room has come free below, and somebody waited for it.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_tsq_write
    pub(super) fn tsq_write(&mut self) {
        self.tx.todo.push = true;
        self.tx.todo.rexmit |= self.tx.q.awaits_retransmission() && !self.tx.is_full();
    }
}
