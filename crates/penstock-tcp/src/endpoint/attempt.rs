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

use crate::endpoint::Endpoint;
use crate::info::State;
use crate::sender::rtx;
use crate::sender::timers::Pending;
use penstock_model::Time;

/// How often softirqs are looked at again before ksoftirqd has them.
//= linux v6.12 kernel/softirq.c
const MAX_SOFTIRQ_RESTART: u32 = 10;

/// What has been handed over last.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Trial {
    /// Nothing that anything follows from.
    #[default]
    Nothing,
    /// New data up to `end`, or a FIN.
    New { end: u64, bits: u8, small: bool, why: Why },
    /// The segment at this place of the retransmission queue.
    Again { index: u32, why: Why },
    /// A SYN that was sent before.
    Syn,
    /// A probe of a closed window without data.
    WindowProbe,
}

/// What let a segment go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Why {
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
    pub(crate) fn taken(&mut self) {
        if self.trial != Trial::Nothing {
            self.trial_taken();
        }
    }
    fn trial_taken(&mut self) {
        match std::mem::take(&mut self.trial) {
            Trial::Nothing => {}
            Trial::New { end, bits, small, why } => self.new_taken(end, bits, small, why),
            Trial::Again { index, why } => self.again_taken(index as usize, why),
            Trial::Syn => self.back_off(),
            Trial::WindowProbe => self.probe0_sent(),
        }
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_event_new_data_sent
    #[inline]
    fn new_taken(&mut self, end: u64, bits: u8, small: bool, why: Why) {
        let seq = self.snd_nxt;
        let data_end = end - u64::from(bits & rtx::FIN != 0);
        let len = (data_end - seq) as u32;
        self.fin_sent |= bits & rtx::FIN != 0;
        if len > 0 {
            self.sendq.pop();
            while self.push_marks.front().is_some_and(|&mark| mark <= data_end) {
                self.push_marks.pop_front();
            }
        }
        let first = self.q.packets_out() == 0;
        if first {
            (self.w.first_tx_us, self.w.delivered_us) = (self.departs_us(), self.departs_us());
        }
        let host_no = self.trial_host_no();
        self.q.push(seq, end, self.departs_us(), self.n.delivered, bits, host_no);
        self.stamp_rate(self.q.packets_out() as usize - 1);
        self.paced(len);
        self.snd_nxt = end;
        if small {
            self.snd_sml = end;
        }
        if first || self.timers.pending == Some(Pending::LossProbe) {
            self.rearm_rto();
        }
        self.sent_pkts += 1;
        if self.frto_counter == 2 {
            self.frto_counter = 3;
        }
        if self.p.today {
            self.check_space();
        }
        match why {
            Why::LossProbe => {
                let limited = self.q.in_flight() >= self.w.cwnd;
                self.sent_pkts = 0;
                self.cwnd_validate(limited);
                if self.in_cwnd_reduction() {
                    self.prr_out += 1;
                }
                self.loss_probe_sent();
            }
            Why::WindowProbe => {
                self.sent_pkts = 0;
                self.probe0_sent();
            }
            Why::Window | Why::Timeout { .. } => {}
        }
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_retransmit_skb, tcp_xmit_retransmit_queue
    fn again_taken(&mut self, index: usize, why: Why) {
        let len = self.q.at(index).payload();
        let host_no = self.trial_host_no();
        self.q.retransmitted(index, self.n.delivered, self.snd_nxt, host_no);
        self.stamp_rate(index);
        self.paced(len);
        if why == Why::LossProbe {
            self.tlp_retrans = true;
            return self.loss_probe_sent();
        }
        if self.q.retrans_out == 0 {
            self.lost_retrans_low = self.snd_nxt;
        }
        self.q.tag_retrans(index);
        if !self.p.today {
            self.note_retransmission(self.clock.us);
        }
        match why {
            Why::Timeout { .. } => self.back_off(),
            _ => {
                if self.in_cwnd_reduction() {
                    self.prr_out += 1;
                }
                if index == 0 && self.timers.pending != Some(Pending::Reorder) {
                    self.set_xmit_timer(Pending::Retrans, self.rto);
                }
            }
        }
    }

    /// A retransmission was tried: what an undo goes by. `us`: what the segment bears as its time.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_retransmit_skb
    pub(crate) fn note_retransmission(&mut self, us: u64) {
        if self.retrans_stamp.is_none() {
            self.retrans_stamp = Some(self.clock.ts_of(us));
            self.retrans_stamp_us = us;
        }
        self.undo_retrans = self.undo_retrans.max(0) + 1;
    }

    /// The timeout after the next is twice as far.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_retransmit_timer
    pub(crate) fn back_off(&mut self) {
        let linear = self.p.today && self.state == State::SynSent && self.total_rto <= 4;
        if !linear {
            self.backoff = self.backoff.saturating_add(1);
            self.rto = self.rto.saturating_mul(2).min(self.p.rto_max);
        }
        self.set_xmit_timer(Pending::Retrans, self.rto);
    }

    // ---- What the host answers ----

    /// The local queueing discipline took the segment just taken with [`poll_transmit`](Endpoint::poll_transmit) but said it was congested
    /// (`NET_XMIT_CN`): Linux then reduces its window as for ECN (`tcp_enter_cwr`). For a drop see
    /// [`local_drop`](Endpoint::local_drop).
    pub fn local_congestion(&mut self, now: Time) {
        self.touch(now);
        let open = !matches!(self.state, State::Closed | State::SynReceived | State::TimeWait);
        if self.cfg.stack.feels_its_host() && open {
            if self.push_ones && !self.in_cwnd_reduction() {
                self.sent_before = self.sent_pkts;
            }
            self.enter_cwr();
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
        self.w.wstamp_ns = self.w.wstamp_ns.max(self.clock.now.as_ns());
        match std::mem::take(&mut self.trial) {
            Trial::Nothing => {}
            Trial::New { why: Why::LossProbe, .. } => {
                if self.q.in_flight() >= self.w.cwnd {
                    self.cwnd_validate(true);
                }
                self.rearm_rto();
            }
            Trial::Again { why: Why::LossProbe, .. } => self.rearm_rto(),
            Trial::New { why: Why::WindowProbe, .. } | Trial::WindowProbe => self.probe0_not_sent(congested),
            Trial::New { end, .. } => {
                if std::mem::take(&mut self.todo.frto_new) {
                    self.frto_over();
                }
                // A long write pushes again further on, and meets the same queue; its end comes behind.
                let mut pushes = std::mem::take(&mut self.pushes);
                while pushes.front().is_some_and(|&at| at <= end) {
                    pushes.pop_front();
                }
                let again = pushes.pop_front().is_some();
                let corking = again && std::mem::take(&mut self.corking);
                self.push_done();
                self.todo.push = again;
                self.corking = corking;
                self.pushes = pushes;
            }
            Trial::Again { why: Why::Timeout { shrunk: false }, .. } | Trial::Syn if congested => {
                self.timeout_not_sent();
            }
            Trial::Again { why: Why::Timeout { .. }, .. } | Trial::Syn => self.back_off(),
            Trial::Again { index, .. } => {
                self.todo.rexmit = false;
                self.frozen = None;
                // tcp_rack_reo_timeout sets its timer behind the try, which has stamped the front segment.
                if index == 0 && self.reo_at == self.clock.now {
                    self.set_xmit_timer(Pending::Retrans, self.rto);
                }
            }
        }
    }

    /// `TCP_RESOURCE_PROBE_INTERVAL`, jiffies: half a second.
    fn resource_probe_interval(&self) -> u32 {
        (self.clock.hz() / 2).max(1)
    }

    //= linux v6.12 net/ipv4/tcp_timer.c tcp_retransmit_timer ("Let senders fight for local resources conservatively")
    fn timeout_not_sent(&mut self) {
        let mut after = self.resource_probe_interval();
        if !self.p.today {
            // There a retransmission is counted only when it was sent, and the timeout bounds the wait.
            self.retransmits = (self.retransmits - 1).max(1);
            after = after.min(self.rto);
        }
        self.set_xmit_timer(Pending::Retrans, after);
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_probe0
    fn probe0_not_sent(&mut self, congested: bool) {
        if !congested {
            return self.probe0_sent();
        }
        if self.p.today {
            self.probes_out += 1;
            self.set_xmit_timer(Pending::Probe0, self.resource_probe_interval());
        } else {
            self.probes_out = self.probes_out.max(1);
            let when = u64::from(self.rto) << self.backoff.min(16);
            self.set_xmit_timer(Pending::Probe0, when.min(u64::from(self.resource_probe_interval())) as u32);
        }
    }

    // ---- The memory of what the host holds ----

    /// Memory of a segment with this much data (`skb->truesize`).
    #[inline]
    pub(crate) fn truesize(&self, len: u32) -> u64 {
        u64::from(len) + u64::from(self.p.skb_overhead)
    }

    /// A frame of ours with this many payload bytes has left the host. Only with `Config::device_accounting`; call
    /// [`poll_transmit`](Endpoint::poll_transmit) afterwards.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_wfree, tcp_tsq_handler
    pub fn transmitted_freed(&mut self, bytes: u32, now: Time) {
        self.touch(now);
        self.host_freed = self.host_freed.wrapping_add(1);
        self.freed(bytes);
    }

    /// The host has dropped the frame of ours with this sequence number and this many payload bytes: the one that was just handed over, or
    /// one that had waited. Before [`local_drop`](Endpoint::local_drop), where that is due too; call
    /// [`poll_transmit`](Endpoint::poll_transmit) afterwards.
    pub fn dropped_in_host(&mut self, seq: u32, bytes: u32, now: Time) {
        self.touch(now);
        let on_trial = match self.trial {
            Trial::New { .. } => self.snd_nxt as u32 == seq,
            Trial::Again { index, .. } => self.q.at(index as usize).seq as u32 == seq,
            _ => false,
        };
        if on_trial && self.trial_in_host {
            self.trial_in_host = false;
            self.host_given = self.host_given.wrapping_sub(1);
        } else if self.q.left_host_out_of_turn(seq, self.host_freed) {
            self.host_given = self.host_given.wrapping_sub(1);
        } else {
            self.host_freed = self.host_freed.wrapping_add(1);
        }
        self.freed(bytes);
    }

    /// The number of what was handed over last; that of one which has left, where it was dropped at once although the answer was good.
    fn trial_host_no(&self) -> u32 {
        if self.trial_in_host { self.host_given } else { self.host_freed }
    }

    fn freed(&mut self, bytes: u32) {
        self.in_device = self.in_device.saturating_sub(self.truesize(bytes));
        // The tasklet comes when what is under way is done. One that its own drops have called again and again has become ksoftirqd's,
        // and there a socket waits for what it has queued.
        let again = self.tsq_at == self.clock.now && self.tsq_rounds >= MAX_SOFTIRQ_RESTART;
        let ksoftirqd = again && self.in_device >= self.truesize(1);
        if self.throttled && !ksoftirqd {
            self.throttled = false;
            self.tsq = true;
        }
    }

    /// Room has come free below, and somebody waited for it.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_tsq_write
    pub(crate) fn tsq_write(&mut self) {
        self.tsq = false;
        if self.tsq_at != self.clock.now {
            (self.tsq_at, self.tsq_rounds) = (self.clock.now, 0);
        }
        self.tsq_rounds += 1;
        self.todo.push = true;
        self.todo.rexmit |= self.q.lost_out > self.q.retrans_out && self.w.cwnd > self.q.in_flight();
    }

    /// Whether the segment's last transmission is still in this host's queues; then it is looked at again when that leaves.
    //= linux v6.12 net/ipv4/tcp_output.c skb_still_in_host_queue
    pub(crate) fn still_in_host_queue(&mut self, index: usize) -> bool {
        let still = self.cfg.device_accounting
            && self.p.today
            && self.q.at(index).payload() > 0
            && self.q.is_in_host(index, self.host_freed);
        self.throttled |= still;
        still
    }
}
