//! Sending: which segment goes next, and its header.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_write_xmit`, `__tcp_transmit_skb`,
//! `tcp_established_options`; v2.6.35 likewise; RFC 896 with Minshall's variant (Nagle).
//! Differs: none known.

use crate::endpoint::attempt::{Trial, Why};
use crate::recv::delack::EarlyAck;
use crate::endpoint::{Endpoint, Transmit};
use crate::info::State;
use crate::sender::rtx;
use penstock_model::Time;
use penstock_packet::{Tcp, TcpFlags};

impl Endpoint {
    /// The next segment to send now, if there is one.
    #[inline]
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        self.clock.set(now);
        if let Some(o) = &mut self.one_way {
            return o.poll_transmit();
        }
        self.taken();
        match self.state {
            State::Closed | State::TimeWait | State::SynSent | State::SynReceived => {
                return self.transmit_rare();
            }
            _ => {}
        }
        if self.frozen.is_some()
            && let Some(t) = self.transmit_before_data()
        {
            return Some(t);
        }
        if let Some((upto, ece)) = self.todo.ack_before.take() {
            return Some(self.ack_before(upto, ece));
        }
        if let Some(early) = self.rx.early.take() {
            return Some(self.early_ack(&early));
        }
        if std::mem::take(&mut self.todo.ack_first) {
            return Some(self.pure_ack());
        }
        let todo = &self.todo;
        if (todo.rexmit_front || todo.rexmit || todo.frto_new)
            && let Some(t) = self.transmit_recovery()
        {
            return Some(t);
        }
        if (self.todo.probe_new || self.todo.probe_last)
            && let Some(t) = self.transmit_loss_probe()
        {
            return Some(t);
        }
        if self.todo.push {
            if let Some(t) = self.transmit_new() {
                return Some(t);
            }
            self.push_done();
        }
        if self.todo.probe0 {
            self.todo.probe0 = false;
            return Some(self.transmit_probe0());
        }
        if self.todo.ack_check {
            self.todo.ack_check = false;
            if self.rx.ack_due(&self.clock, &self.timing()) {
                return Some(self.pure_ack());
            }
        }
        if self.tsq {
            self.tsq_write();
            return self.poll_transmit(now);
        }
        None
    }

    /// Before a connection is open and after it is closed.
    fn transmit_rare(&mut self) -> Option<Transmit> {
        if self.todo.reset {
            self.todo.reset = false;
            let mut t = self.segment(self.snd_nxt, 0, TcpFlags::RST.with(TcpFlags::ACK));
            t.tcp.window = 0;
            t.tcp.sack_count = 0;
            return Some(t);
        }
        match self.state {
            State::SynSent | State::SynReceived if self.todo.syn => {
                self.todo.syn = false;
                let again = std::mem::take(&mut self.todo.syn_again);
                if again && self.state == State::SynSent {
                    self.trial = Trial::Syn;
                }
                Some(self.syn(again))
            }
            State::SynReceived | State::TimeWait if self.todo.ack_check => {
                self.todo.ack_check = false;
                self.rx.now.then(|| self.pure_ack())
            }
            _ => None,
        }
    }

    // ---- Bounds ----

    /// Bytes written and not sent for the first time.
    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.write_seq.saturating_sub(self.snd_nxt)
    }
    /// Whether data or FIN waits to be sent for the first time.
    pub(crate) fn has_unsent(&self) -> bool {
        self.unsent() > 0 || self.fin_queued && !self.fin_sent
    }
    /// End of the window the peer offers.
    #[inline]
    pub(crate) fn wnd_end(&self) -> u64 {
        self.snd_una + u64::from(self.snd_wnd)
    }
    /// Whether the next new segment lies within the peer's window.
    pub(crate) fn next_fits(&self) -> bool {
        let (len, fin) = self.next_segment();
        self.snd_nxt + u64::from(len) + u64::from(fin) <= self.wnd_end()
    }
    /// Length of the next new segment, and whether FIN is on it.
    #[inline]
    pub(crate) fn next_segment(&self) -> (u32, bool) {
        let mss = self.current_mss();
        if self.p.today {
            return self.head_segment(mss);
        }
        let unsent = self.unsent();
        let len = unsent.min(u64::from(mss)) as u32;
        (len, self.fin_queued && !self.fin_sent && u64::from(len) == unsent)
    }
    /// Payload a segment carries now: less where SACK blocks take room.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_current_mss
    #[inline]
    pub(crate) fn current_mss(&self) -> u32 {
        if self.sack_ok && self.rx.has_sacks() {
            let blocks = self.rx.sack_blocks(if self.ts_ok { 3 } else { 4 });
            return (self.mss - (4 + 8 * blocks)).max(1);
        }
        self.mss
    }
    /// Whether new data could go at once (`tcp_may_send_now`).
    pub(crate) fn may_send_now(&self) -> bool {
        self.has_unsent() && self.q.in_flight() < self.w.cwnd && self.next_fits()
    }

    /// Whether the host's own queue holds as much of ours as it should before a segment with `len` bytes of data.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_small_queue_check
    pub(crate) fn small_queue_full(&mut self, len: u32, shift: u32) -> bool {
        if !self.cfg.device_accounting || !self.p.today {
            return false;
        }
        // sk_pacing_rate over a millisecond, at least two segments, at most tcp_limit_output_bytes.
        let mut limit = (self.w.pacing_rate_bytes_s() >> 10).max(2 * self.truesize(len));
        if !self.w.paced_below {
            limit = limit.min(4 << 20);
        }
        // The socket itself counts for a byte.
        let full = self.in_device + 1 > limit << shift && self.q.packets_out() > 1;
        self.throttled |= full;
        full
    }

    /// Whether the next segment is to wait for its time; if so, the timer is set.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_pacing_check
    pub(crate) fn pacing_holds(&mut self) -> bool {
        let internal = self.w.pacing_rate.is_some() && !self.w.paced_below;
        if !internal || self.w.wstamp_ns <= self.clock.now.as_ns() {
            return false;
        }
        self.pace_at = Some(Time::from_ns(self.w.wstamp_ns));
        true
    }

    /// A segment with `len` bytes of data goes: when the next one may.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_update_skb_after_send
    pub(crate) fn paced(&mut self, len: u32) {
        let rate = match self.w.pacing_rate {
            Some(rate) => rate,
            None if self.w.paced_below => self.w.linux_rate,
            None => return,
        };
        let now = self.clock.now.as_ns();
        let prior = self.w.wstamp_ns;
        self.w.wstamp_ns = prior.max(now);
        // The first ten segments go as they can.
        if self.n.data_segs_out >= 10 && rate != u64::MAX {
            let mut wait = (u64::from(len) * 1_000_000_000 / rate.max(1)) as i64;
            let credit = self.w.wstamp_ns - prior;
            wait -= (wait / 2).min(credit);
            self.w.wstamp_ns += wait;
        }
    }

    /// When a segment that is made now is to leave: later than now where a queue below paces.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_transmit_skb
    #[inline]
    fn departs(&self) -> Time {
        if self.w.paced_below { self.clock.now.max(Time::from_ns(self.w.wstamp_ns)) } else { self.clock.now }
    }
    /// The same, microseconds: a round trip is counted from then.
    #[inline]
    pub(crate) fn departs_us(&self) -> u64 {
        if self.w.paced_below { self.departs().as_ns() as u64 / 1_000 } else { self.clock.us }
    }

    // ---- New data ----

    //= linux v6.12 net/ipv4/tcp_output.c tcp_write_xmit
    pub(crate) fn transmit_new(&mut self) -> Option<Transmit> {
        if self.p.today {
            return self.write_xmit(false);
        }
        let (len, fin) = self.next_segment();
        if len == 0 && !fin {
            return None;
        }
        if self.q.in_flight() >= self.w.cwnd && !fin {
            return None;
        }
        if self.snd_nxt + u64::from(len) + u64::from(fin) > self.wnd_end() {
            return None;
        }
        if self.nagle_holds(len, self.current_mss(), fin) {
            return None;
        }
        Some(self.send_new(len, fin, Why::Window))
    }

    /// Whether Nagle's algorithm keeps a small segment back: while an earlier small one is not acknowledged.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_nagle_test, tcp_minshall_check; RFC 896
    #[inline]
    pub(crate) fn nagle_holds(&self, len: u32, mss: u32, fin: bool) -> bool {
        len < mss
            && !fin
            && !self.cfg.nodelay
            && !self.todo.push_all
            && self.frto_counter != 2
            && self.q.packets_out() > 0
            && (self.cfg.stack == crate::config::Stack::WindowsXp
                || self.snd_sml > self.snd_una && self.snd_sml <= self.snd_nxt)
    }

    /// Hands over new data of this length.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_transmit_skb
    pub(crate) fn send_new(&mut self, len: u32, fin: bool, why: Why) -> Transmit {
        let seq = self.snd_nxt;
        let full = if self.p.today { self.push_mss() } else { self.mss };
        let data_end = seq + u64::from(len);
        if !self.p.today {
            self.idle_check();
        }
        if !self.p.today && self.q.in_flight() == 0 {
            self.show_window();
            self.cc.on_tx_start(&mut self.w);
        }
        let mut flags = TcpFlags::ACK;
        if fin {
            flags = flags.with(TcpFlags::FIN);
        }
        let mut bits = if fin { rtx::FIN } else { 0 };
        let pushed = |mark: Option<&u64>| mark.is_some_and(|&m| m == data_end);
        if len > 0
            && (self.sendq.head().is_some_and(|b| b.psh)
                || pushed(self.push_marks.iter().find(|&&m| m >= data_end)))
        {
            flags = flags.with(TcpFlags::PSH);
            bits |= rtx::PSH;
        }
        let mut t = self.segment(seq, len, flags);
        if self.ecn_ok && (len > 0 || self.cc.needs_ecn()) {
            t.ect = true;
            if self.queue_cwr {
                self.queue_cwr = false;
                t.tcp.flags = t.tcp.flags.with(TcpFlags::CWR);
            }
        }
        self.data_sent(len, false);
        self.n.data_segs_out += u64::from(len > 0);
        self.trial = Trial::New { end: data_end + u64::from(fin), bits, small: len < full, why };
        t
    }

    /// No more new data goes now: whether it was the window that stopped it, and the timers that follow.
    pub(crate) fn push_done(&mut self) {
        let sent = std::mem::take(&mut self.sent_pkts);
        let limited = self.q.in_flight() >= self.w.cwnd;
        // With nothing to send tcp_push_pending_frames does not come this far.
        if sent > 0 || limited && (self.has_unsent() || !self.p.today) {
            self.cwnd_validate(limited);
        }
        if sent > 0 {
            if self.in_cwnd_reduction() {
                self.prr_out += sent - self.sent_before.min(sent);
            }
            self.schedule_loss_probe(false);
        } else if self.q.packets_out() == 0 && self.has_unsent() {
            self.check_probe_timer();
        }
        (self.push_ones, self.sent_before) = (false, 0);
        self.pushes.clear();
        if std::mem::take(&mut self.corking) {
            self.autocorks();
        }
        self.todo.push = false;
        self.todo.push_all = false;
        self.pushing_mss = 0;
        self.check_space();
    }

    /// Notes whether the congestion window is used, and lets it decay where it is not.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_cwnd_validate; RFC 2861
    pub(crate) fn cwnd_validate(&mut self, limited: bool) {
        let out = self.q.packets_out();
        if self.p.today {
            if self.snd_una >= self.cwnd_usage_seq
                || limited
                || !self.is_cwnd_limited && out > self.max_packets_out
            {
                self.is_cwnd_limited = limited;
                self.max_packets_out = out;
                self.cwnd_usage_seq = self.snd_nxt;
            }
            if self.is_cwnd_limited || self.w.in_slow_start() && self.w.cwnd < 2 * self.max_packets_out {
                self.cwnd_used = 0;
                self.cwnd_stamp = self.clock.jiffies;
                return;
            }
        } else if out >= self.w.cwnd {
            self.cwnd_used = 0;
            self.cwnd_stamp = self.clock.jiffies;
            return;
        }
        self.cwnd_used = self.cwnd_used.max(out);
        if self.slow_starts_after_idle() && self.clock.jiffies - self.cwnd_stamp >= u64::from(self.rto) {
            self.application_limited();
        }
    }

    /// Whether idleness lets the window decay: not one that the controller sets by itself (BBR).
    fn slow_starts_after_idle(&self) -> bool {
        self.cfg.slow_start_after_idle && !self.cc.takes_over()
    }

    //= linux v6.12 net/ipv4/tcp_output.c tcp_cwnd_application_limited
    fn application_limited(&mut self) {
        if self.ca == crate::info::CaState::Open && !self.nospace {
            let used = self.cwnd_used.max(self.init_cwnd());
            if used < self.w.cwnd {
                self.w.ssthresh = self.current_ssthresh();
                self.w.cwnd = (self.w.cwnd + used) >> 1;
            }
            self.cwnd_used = 0;
        }
        self.cwnd_stamp = self.clock.jiffies;
    }

    /// After idleness the window is halved for each timeout that passed, down to the initial window.
    //= linux v6.12 include/net/tcp.h tcp_slow_start_after_idle_check, tcp_cwnd_restart; RFC 5681 section 4.1
    pub(crate) fn idle_check(&mut self) {
        if !self.slow_starts_after_idle() || self.q.packets_out() > 0 {
            return;
        }
        let idle = self.clock.jiffies - self.w.lsndtime;
        let rto = u64::from(self.rto.max(1));
        if self.w.lsndtime == 0 || idle <= rto {
            return;
        }
        self.show_window();
        self.cc.on_cwnd_restart(&mut self.w);
        self.w.ssthresh = self.current_ssthresh();
        let restart = self.init_cwnd().min(self.w.cwnd);
        let mut left = idle;
        while left > rto && self.w.cwnd > restart {
            left -= rto;
            self.w.cwnd >>= 1;
        }
        self.w.cwnd = self.w.cwnd.max(restart);
        self.cwnd_stamp = self.clock.jiffies;
        self.cwnd_used = 0;
    }

    /// A segment with `len` bytes of data goes, for the first time or `again`.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_event_data_sent
    pub(crate) fn data_sent(&mut self, len: u32, again: bool) {
        if self.p.today {
            if len == 0 {
                return;
            }
            if self.q.in_flight() == 0 {
                self.show_window();
                self.cc.on_tx_start(&mut self.w);
            }
        } else if again {
            return;
        }
        self.w.lsndtime = self.clock.jiffies;
        self.rx.data_sent(&self.clock);
    }

    pub(crate) fn stamp_rate(&mut self, index: usize) {
        self.q.stamp(index, self.w.first_tx_us, self.w.delivered_us, self.w.app_limited > 0);
    }

    // ---- Headers ----

    /// An ACK for what came before the segment that is being dealt with.
    //= linux v6.12 net/ipv4/tcp_dctcp.h dctcp_ece_ack_update
    fn ack_before(&mut self, upto: u64, ece: bool) -> Transmit {
        let demand = std::mem::replace(&mut self.demand_cwr, ece);
        let now = self.rx.now;
        let mut t = self.pure_ack();
        t.tcp.ack = upto as u32;
        self.demand_cwr = demand;
        // The segment itself is still to be acknowledged.
        (self.rx.now, self.rx.scheduled) = (now, true);
        t
    }

    /// Where a segment without data stands.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_acceptable_seq
    fn acceptable_seq(&self) -> u64 {
        let seq = self.snd_nxt.min(self.wnd_end().max(self.snd_una));
        if self.snd_nxt.saturating_sub(seq) < 1 << self.rx.wscale { self.snd_nxt } else { seq }
    }

    /// An ACK without data.
    fn pure_ack(&mut self) -> Transmit {
        self.segment(self.acceptable_seq(), 0, TcpFlags::ACK)
    }

    /// An ACK that was due in the midst of a segment's processing.
    fn early_ack(&mut self, early: &EarlyAck) -> Transmit {
        let mut tcp = self.header(self.acceptable_seq(), TcpFlags::ACK, early.window);
        tcp.sack = early.sacks;
        tcp.sack_count = early.blocks.min(if self.ts_ok { 3 } else { 4 });
        self.n.segs_out += 1;
        let (ect, departs) = (self.ecn_ok && self.cc.needs_ecn(), self.departs());
        Transmit { tcp, payload_len: 0, ect, retransmission: false, departs }
    }

    fn header(&self, seq: u64, flags: TcpFlags, window: u16) -> Tcp {
        Tcp {
            sport: self.sport,
            dport: self.dport,
            seq: seq as u32,
            ack: self.rx.rcv_nxt as u32,
            flags: if self.ecn_ok && self.demand_cwr { flags.with(TcpFlags::ECE) } else { flags },
            window,
            timestamps: self.ts_ok.then(|| {
                let us = if self.w.paced_below { self.departs_us() } else { self.mstamp_us };
                (self.clock.ts_of(us), self.ts_recent)
            }),
            ..Tcp::default()
        }
    }

    /// A segment of an open connection; acknowledges what has come.
    #[inline]
    pub(crate) fn segment(&mut self, seq: u64, len: u32, flags: TcpFlags) -> Transmit {
        self.n.segs_out += 1;
        if self.cfg.device_accounting && len > 0 {
            self.in_device += self.truesize(len);
            self.host_given = self.host_given.wrapping_add(1);
            self.trial_in_host = true;
        }
        if self.frozen.is_some() {
            return self.frozen_segment(seq, len, flags);
        }
        let window = self.rx.select_window();
        let mut tcp = self.header(seq, flags, window);
        if self.sack_ok && self.rx.has_sacks() {
            let room = if self.ts_ok { 3 } else { 4 };
            let spare = self.mss.saturating_sub(len).saturating_sub(4) / 8;
            tcp.sack_count = self.rx.write_sacks(&mut tcp.sack, room.min(spare as usize));
        }
        self.rx.ack_sent();
        let ect = self.ecn_ok && self.cc.needs_ecn();
        Transmit { tcp, payload_len: len, ect, retransmission: false, departs: self.departs() }
    }
    /// One that bears the header of those that went before the data at hand were taken in.
    #[cold]
    fn frozen_segment(&mut self, seq: u64, len: u32, flags: TcpFlags) -> Transmit {
        let frozen = self.frozen.unwrap_or_default();
        let echo = if frozen.flags.has(TcpFlags::ECE) { TcpFlags::ECE } else { TcpFlags(0) };
        let tcp = Tcp { seq: seq as u32, flags: flags.with(echo), ..frozen };
        let ect = self.ecn_ok && self.cc.needs_ecn();
        Transmit { tcp, payload_len: len, ect, retransmission: false, departs: self.departs() }
    }
}
