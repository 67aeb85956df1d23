//! Segments coming in: opening, closing, and the checks before anything else.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_rcv_state_process`, `tcp_rcv_synsent_state_process`,
//! `tcp_validate_incoming`, `tcp_fin`, net/ipv4/tcp_minisocks.c `tcp_timewait_state_process`; RFC 9293 section 3.10.7;
//! RFC 7323 section 5 (PAWS); RFC 3168 section 6.1.
//! Differs: no challenge ACKs (RFC 5961): an RST within the window that is not at its edge, and a SYN within it, are
//! answered by an ordinary ACK; a wrong acknowledgement of our SYN is ignored, not reset; out-of-window segments are always answered (Linux limits the rate).

use crate::config::{Ecn, Stack};
use crate::endpoint::{EcnField, Endpoint, Transmit};
use crate::info::{CaState, Error, State};
use crate::recv::Taken;
use crate::seq;
use crate::timers::Pending;
use penstock_model::Time;
use penstock_packet::{Tcp, TcpFlags};

/// A timestamp older than this is not a ground for refusing a segment: 24 days, microseconds.
const PAWS_24DAYS_US: u64 = 24 * 86_400 * 1_000_000;
const PAWS_WRAP_US: u64 = i32::MAX as u64 / 1_000_000 * 1_000_000;

impl Endpoint {
    /// A segment came in, in an IP header with this ECN field.
    #[inline]
    pub fn handle_segment(&mut self, seg: &Tcp, payload_len: u32, ecn: EcnField, now: Time) {
        self.touch(now);
        self.n.segs_in += 1;
        if let Some(o) = &mut self.one_way {
            let error = o.handle_segment(&mut self.state, seg, payload_len, ecn == EcnField::Ce, now);
            if error.is_some() {
                self.done(error);
            }
            return;
        }
        match self.state {
            State::Closed => {}
            State::SynSent => self.syn_sent(seg),
            State::TimeWait => self.time_wait(seg, payload_len),
            _ => self.synchronized(seg, payload_len, ecn),
        }
    }

    // ---- Opening ----

    /// What the peer's SYN says.
    pub(crate) fn read_syn(&mut self, syn: &Tcp) {
        self.rx.begin(syn.seq);
        self.ts_ok = self.cfg.timestamps && syn.timestamps.is_some();
        self.sack_ok = self.cfg.sack && syn.sack_permitted;
        self.rcv_scaling = self.cfg.window_scaling && syn.wscale.is_some();
        self.snd_wscale = if self.rcv_scaling { syn.wscale.unwrap_or(0).min(14) } else { 0 };
        self.rx.sack = self.sack_ok;
        if let Some((val, ecr)) = syn.timestamps.filter(|_| self.ts_ok) {
            self.ts_recent = val;
            self.ts_recent_us = self.clock.us;
            self.rcv_tsecr = Some(ecr);
        }
        let wants_ecn =
            syn.flags.has(TcpFlags::ECE) && (self.state == State::SynSent || syn.flags.has(TcpFlags::CWR));
        self.ecn_ok = match self.state {
            State::SynSent => self.ecn_ok && wants_ecn && !syn.flags.has(TcpFlags::CWR),
            _ => wants_ecn && (self.cfg.ecn != Ecn::Off || self.cc.needs_ecn()),
        };
        let clamp = u32::from(syn.mss.unwrap_or(536)).clamp(88, u32::from(self.cfg.mss));
        self.mss = clamp - if self.ts_ok { 12 } else { 0 };
        self.rx.advmss = u32::from(self.cfg.mss) - if self.ts_ok { 12 } else { 0 };
        self.rx.header_len = if self.ts_ok { 32 } else { 20 };
        self.snd_wnd = u32::from(syn.window);
        self.max_window = self.snd_wnd;
        self.snd_wl1 = seq::first(syn.seq);
    }

    /// The segment size never exceeds half the largest window seen.
    //= linux v6.12 include/net/tcp.h tcp_bound_to_half_wnd
    pub(crate) fn sync_mss(&mut self) {
        // Only windows that grow lead here: a size bounded before may be given back.
        if self.mss_full > self.mss {
            let half = match self.max_window {
                w if w > 536 => w >> 1,
                w => w,
            };
            self.mss = self.mss_full.min(half.max(28));
        }
    }

    /// The connection is open.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_init_transfer, tcp_finish_connect
    fn open(&mut self) {
        let active = self.state == State::SynSent;
        self.state = if self.fin_queued { State::FinWait1 } else { State::Established };
        self.mss_full = self.mss;
        if self.max_window > 0 {
            let half = if self.max_window > 536 { self.max_window >> 1 } else { self.max_window };
            self.mss = self.mss.min(half.max(28));
        }
        self.snd_una = self.iss + 1;
        self.snd_nxt = self.iss + 1;
        self.snd_sml = self.snd_una;
        self.pushed_seq = self.snd_una;
        self.cwnd_usage_seq = self.snd_una;
        self.high_seq = self.snd_una;
        self.w.lsndtime = self.clock.jiffies;
        self.rx.lrcvtime = self.clock.jiffies;
        self.cwnd_stamp = self.clock.jiffies;
        self.clear_xmit_timer();
        // A SYN lost more than once: begin with a window of one (RFC 6298 section 5.7, RFC 5681 section 3.1).
        let syn_lost = if self.p.today {
            // Unless the echo shows that the first one had arrived (tcp_try_undo_spurious_syn).
            let first = self.ts_ok.then(|| self.clock.ts_of(self.syn_sent_us));
            self.retransmits > 0 && self.n.total_retrans > 1 && (first.is_none() || self.rcv_tsecr != first)
        } else {
            self.retransmits > 0
        };
        self.w.cwnd = if syn_lost && self.cfg.stack != Stack::WindowsXp { 1 } else { self.init_cwnd() };
        if self.p.today && active && self.retransmits > 0 && !self.sack_ok {
            // Without SACK the state is kept until something beyond the SYN is acknowledged (tcp_is_non_sack_preventing_reopen).
            self.ca = CaState::Loss;
            self.undo_marker = Some(self.iss);
            self.undo_retrans = i64::from(self.retransmits);
            self.frto = true;
        }
        self.retransmits = 0;
        self.backoff = 0;
        self.total_rto = 0;
        self.retrans_stamp = None;
        self.rx.established(self.mss, &self.clock);
        self.sndbuf_expand();
        if !self.p.today
            && let crate::config::Buffer::Auto(_, max) = self.cfg.sndbuf
        {
            // tcp_fixup_sndbuf: room for three segments.
            let three = 3 * (u32::from(self.cfg.mss) + 160 + 16 + 240);
            self.sndbuf = self.cfg.sndbuf.initial().max(three.min(max));
        }
        self.show_window();
        if self.p.today {
            // The SYN, or the SYN-ACK, is the first that was delivered.
            self.n.delivered = 1;
            self.show_window();
            self.w.linux_rate = self.w.rate_of_window();
        }
        if self.ca == CaState::Cwr {
            // A SYN that was dropped here has reduced the window; with the SYN-ACK that is over, and the threshold stays.
            self.ca = CaState::Open;
        }
        self.cc.init(&mut self.w);
        self.todo.push = true;
    }

    /// Takes the round trip of the handshake, if nothing in it was repeated.
    fn handshake_rtt(&mut self) {
        if self.retransmits == 0 {
            let us = (self.clock.us - self.syn_sent_us).min(u64::from(u32::MAX >> 5)) as u32;
            if self.p.today {
                self.take_rtt(us, us, false);
            } else {
                self.take_rtt_2_6_35(self.clock.jiffies_since(self.syn_sent_us));
            }
        } else if self.ts_ok
            && let Some(ecr) = self.rcv_tsecr.filter(|&e| e != 0)
        {
            let ticks = self.clock.tsval().wrapping_sub(ecr);
            if ticks < 1 << 20 {
                if self.p.today {
                    let us = ticks.max(1) * self.clock.ts_tick_us();
                    self.take_rtt(us, us, false);
                } else {
                    self.take_rtt_2_6_35(ticks);
                }
            }
        } else if !self.p.today || self.rtt.srtt == 0 {
            // RFC 6298 section 5.7: after a lost SYN the timeout begins at three seconds.
            self.rto = self.rto.max(self.clock.hz() * 3).min(self.p.rto_max);
        }
    }

    /// The SYN or SYN-ACK.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_connect, tcp_make_synack, tcp_syn_options
    pub(crate) fn syn(&mut self, again: bool) -> Transmit {
        let active = self.state == State::SynSent;
        let mut flags = TcpFlags::SYN;
        if !active {
            flags = flags.with(TcpFlags::ACK);
        }
        if active && (self.cfg.ecn == Ecn::On || self.cc.needs_ecn()) && self.cfg.stack != Stack::WindowsXp {
            self.ecn_ok = true;
            // A repeated SYN asks no more, lest something on the way drops it for that (RFC 3168 section 6.1.1.1).
            if !again {
                flags = flags.with(TcpFlags::ECE).with(TcpFlags::CWR);
            }
        }
        if !active && self.ecn_ok {
            flags = flags.with(TcpFlags::ECE);
        }
        if again {
            self.n.total_retrans += 1;
        } else {
            self.syn_sent_us = self.clock.us;
            self.retrans_stamp_us = self.clock.us;
            self.set_xmit_timer(Pending::Retrans, self.rto);
        }
        self.snd_nxt = self.iss + 1;
        self.n.segs_out += 1;
        self.rx.ack_sent();
        let tcp = Tcp {
            sport: self.sport,
            dport: self.dport,
            seq: self.iss as u32,
            ack: if active { 0 } else { self.rx.rcv_nxt as u32 },
            flags,
            window: self.rx.rcv_wnd.min(65_535) as u16,
            mss: Some(self.cfg.mss),
            wscale: self.rcv_scaling.then_some(self.rx.wscale),
            sack_permitted: self.sack_ok,
            timestamps: self.ts_ok.then(|| (self.clock.tsval(), self.ts_recent)),
            ..Tcp::default()
        };
        Transmit { tcp, payload_len: 0, ect: false, retransmission: again, departs: self.clock.now }
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_synsent_state_process; RFC 9293 section 3.10.7.3
    fn syn_sent(&mut self, seg: &Tcp) {
        let ours = seq::unwrap(seg.ack, self.snd_nxt) == self.iss + 1 && self.snd_nxt > self.iss;
        if seg.flags.has(TcpFlags::ACK) {
            if !ours {
                // For an older connection; our SYN stands.
                return;
            }
            if seg.flags.has(TcpFlags::RST) {
                return self.done(Some(Error::Refused));
            }
            if !seg.flags.has(TcpFlags::SYN) {
                return;
            }
            self.read_syn(seg);
            self.handshake_rtt();
            self.open();
            self.todo.ack_first = true;
        } else if seg.flags.has(TcpFlags::SYN) && !seg.flags.has(TcpFlags::RST) {
            // Both open at once.
            self.ecn_ok = false;
            self.state = State::SynReceived;
            self.read_syn(seg);
            self.todo.syn = true;
            self.retransmits = 0;
        }
    }

    // ---- Open ----

    /// Checks a segment's place in the window; false when it is dealt with.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_validate_incoming
    #[inline]
    fn acceptable(&mut self, seg: &Tcp, start: u64, end: u64) -> bool {
        let flags = seg.flags;
        if self.ts_ok {
            let Some((val, ecr)) = seg.timestamps else {
                // Without the timestamp agreed on (RFC 7323 section 3.2); an RST may lack it.
                return if flags.has(TcpFlags::RST) { self.reset_in_window(start) } else { false };
            };
            self.rcv_tsecr = Some(ecr);
            // One tick back is let pass (TCP_PAWS_WINDOW).
            let old = (self.ts_recent.wrapping_sub(val) as i32) > 1
                && self.clock.us - self.ts_recent_us < self.paws_wrap_us()
                && self.ts_recent != 0;
            if old && !flags.has(TcpFlags::RST) && !self.disordered_ack(seg, start, end, val) {
                self.send_dupack(start, end);
                return false;
            }
        } else {
            self.rcv_tsecr = None;
        }
        if end < self.rx.rcv_wup || start > self.rx.rcv_nxt + u64::from(self.rx.window()) {
            if !flags.has(TcpFlags::RST) {
                self.send_dupack(start, end);
            }
            return false;
        }
        if flags.has(TcpFlags::RST) {
            return self.reset_in_window(start);
        }
        if flags.has(TcpFlags::SYN) {
            // Our handshake's last ACK was lost.
            if self.state == State::SynReceived && !flags.has(TcpFlags::ACK) {
                self.todo.syn = true;
                self.todo.syn_again = true;
            } else if self.state == State::SynReceived {
                return true;
            } else {
                self.rx.now = true;
                self.todo.ack_check = true;
            }
            return false;
        }
        true
    }

    fn reset_in_window(&mut self, start: u64) -> bool {
        if start == self.rx.rcv_nxt {
            let error = match self.state {
                State::CloseWait => Error::BrokenPipe,
                State::SynReceived => Error::Refused,
                _ => Error::Reset,
            };
            self.done(Some(error));
        } else {
            self.rx.now = true;
            self.todo.ack_check = true;
        }
        false
    }

    /// An old timestamp on a pure ACK that was overtaken on the way and opens no window is no matter.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_disordered_ack, tcp_tsval_replay
    fn disordered_ack(&self, seg: &Tcp, start: u64, end: u64, val: u32) -> bool {
        let ack = seq::unwrap(seg.ack, self.snd_una);
        let window = u32::from(seg.window) << self.snd_wscale;
        let replay = match self.p.today {
            // Of a peer whose timestamps count 1200 a second.
            true => self.rto.saturating_mul(1_200) / self.clock.hz(),
            false => self.rto * self.clock.jiffy_us() / self.clock.ts_tick_us(),
        };
        start == end
            && start == self.rx.rcv_nxt
            && ack == self.snd_una
            && !self.may_update_window(ack, start, window)
            && self.ts_recent.wrapping_sub(val) <= replay
    }

    /// After so long without a timestamp any is believed, microseconds.
    //= linux v6.12 include/net/tcp.h TCP_PAWS_WRAP; v2.6.35 TCP_PAWS_24DAYS
    fn paws_wrap_us(&self) -> u64 {
        if self.p.today { PAWS_WRAP_US } else { PAWS_24DAYS_US }
    }

    /// Notes the timestamp to echo.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_replace_ts_recent; RFC 7323 section 4.3
    #[inline]
    pub(crate) fn replace_ts_recent(&mut self, seg: &Tcp, start: u64) {
        if let Some((val, _)) = seg.timestamps
            && self.ts_ok
            && start <= self.rx.rcv_wup
            && ((val.wrapping_sub(self.ts_recent) as i32) >= 0
                || self.clock.us - self.ts_recent_us >= self.paws_wrap_us())
        {
            self.ts_recent = val;
            self.ts_recent_us = self.clock.us;
        }
    }

    /// Answers what lies outside the window.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_send_dupack
    fn send_dupack(&mut self, start: u64, end: u64) {
        if start != end && start < self.rx.rcv_nxt {
            self.rx.enter_quickack(16);
            self.rx.dsack_set(start, end.min(self.rx.rcv_nxt));
        }
        self.rx.now = true;
        self.todo.ack_check = true;
    }

    /// Every state with both numbers known.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_established, tcp_rcv_state_process
    fn synchronized(&mut self, seg: &Tcp, len: u32, ecn: EcnField) {
        let fin = seg.flags.has(TcpFlags::FIN);
        let start = seq::unwrap(seg.seq, self.rx.rcv_nxt);
        let syn = u64::from(seg.flags.has(TcpFlags::SYN));
        let end = start + syn + u64::from(len) + u64::from(fin);
        if !self.acceptable(seg, start, end) || !seg.flags.has(TcpFlags::ACK) {
            return;
        }
        let established = self.state == State::Established;
        if self.state == State::SynReceived {
            if seq::unwrap(seg.ack, self.snd_nxt) != self.iss + 1 {
                // A number we never sent.
                return;
            }
            self.handshake_rtt();
            self.snd_wnd = u32::from(seg.window) << if syn > 0 { 0 } else { self.snd_wscale };
            self.max_window = self.max_window.max(self.snd_wnd);
            self.snd_wl1 = start;
            self.open();
        }
        let fast = self.predicted(seg, start);
        self.w.slow_path = !fast;
        if !self.ack(seg, start, end) {
            return;
        }
        // Only of an established connection's segments (tcp_rcv_state_process measures none): the handshake's last ACK is not looked at.
        if established && let Some(ecr) = self.rcv_tsecr {
            self.rx.rcv_rtt_measure_ts(ecr, len, &self.clock);
        }
        self.todo.push = true;
        if self.fin_sent && self.snd_una == self.snd_nxt && !self.our_fin_acked() {
            return;
        }
        if end > start {
            self.recover_before_data();
        }
        if end > start + syn && !self.rx.fin_received() {
            self.take_data(seg, start + syn, len, fin, ecn);
        } else if end > start {
            // After the peer's FIN only repetitions come.
            self.rx.now = true;
        }
        self.todo.ack_check = true;
    }

    /// Whether the segment is what header prediction expects.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_established, tcp_fast_path_on
    fn predicted(&self, seg: &Tcp, start: u64) -> bool {
        self.state == State::Established
            && start == self.rx.rcv_nxt
            && seg.sack_count == 0
            && seg.flags.0 & !TcpFlags::PSH.0 == TcpFlags::ACK.0
            && u32::from(seg.window) << self.snd_wscale == self.snd_wnd
            && !self.rx.has_ooo()
            && self.rx.rcv_wnd > 0
    }

    /// Our FIN was acknowledged: the next state. False when the connection is over.
    fn our_fin_acked(&mut self) -> bool {
        match self.state {
            State::FinWait1 => self.state = State::FinWait2,
            State::Closing => self.enter_time_wait(),
            State::LastAck => {
                self.done(None);
                return false;
            }
            _ => {}
        }
        true
    }

    fn enter_time_wait(&mut self) {
        self.state = State::TimeWait;
        self.clear_xmit_timer();
        self.timers.wait = self.clock.now + self.cfg.time_wait;
    }

    fn take_data(&mut self, seg: &Tcp, start: u64, len: u32, fin: bool, ecn: EcnField) {
        if self.ecn_ok && len > 0 && self.cc.needs_ecn() {
            self.echo_each_mark(ecn == EcnField::Ce);
        } else if self.ecn_ok && len > 0 {
            self.rx.quick_for_mark = self.wants_quick_ack(ecn);
        }
        let had_fin = self.rx.fin_received();
        let header = seg.header_len();
        let psh = seg.flags.has(TcpFlags::PSH) || fin;
        let taken = self.rx.data(start, len, fin, psh, header, &self.clock, self.rto);
        if self.ecn_ok && len > 0 && !self.cc.needs_ecn() && taken != Taken::Nothing {
            // Congestion experienced: tell the sender until it says it has heard.
            self.demand_cwr |= ecn == EcnField::Ce;
            self.ecn_seen |= ecn != EcnField::NotEct;
        }
        if taken == Taken::InOrder {
            self.data_ready = Some(self.clock.now);
        }
        if taken == Taken::InOrder && !had_fin && self.rx.fin_received() {
            self.rx.scheduled = true;
            match self.state {
                State::Established => {
                    self.state = State::CloseWait;
                    self.rx.pingpong = true;
                }
                // Both closed at once: our FIN is still out.
                State::FinWait1 => {
                    self.state = State::Closing;
                    self.rx.now = true;
                }
                State::FinWait2 => {
                    self.enter_time_wait();
                    self.rx.now = true;
                }
                _ => {}
            }
        }
    }

    //= linux v6.12 net/ipv4/tcp_input.c __tcp_ecn_check_ce
    fn wants_quick_ack(&self, ecn: EcnField) -> bool {
        match ecn {
            // Probably a retransmission.
            EcnField::NotEct => self.ecn_seen && self.p.today,
            EcnField::Ect => false,
            EcnField::Ce => !self.demand_cwr,
        }
    }

    /// Tells the sender of each change of the mark, by an ACK of its own.
    //= linux v6.12 net/ipv4/tcp_dctcp.h dctcp_ece_ack_update
    //= RFC 8257 section 3.2
    fn echo_each_mark(&mut self, ce: bool) {
        if self.marked != ce {
            if self.rx.delack.is_some() {
                self.todo.ack_before = Some((self.rx.rcv_nxt, self.marked));
            }
            self.rx.now = true;
        }
        self.marked = ce;
        self.demand_cwr = ce;
    }

    // ---- Closed ----

    /// Strays after the end: the peer's FIN again is acknowledged again.
    //= linux v6.12 net/ipv4/tcp_minisocks.c tcp_timewait_state_process
    fn time_wait(&mut self, seg: &Tcp, len: u32) {
        if seg.flags.has(TcpFlags::RST) {
            return self.done(None);
        }
        let end = seq::unwrap(seg.seq, self.rx.rcv_nxt) + u64::from(len);
        if seg.flags.has(TcpFlags::FIN) || len > 0 {
            self.rx.now = true;
            self.todo.ack_check = true;
            if end < self.rx.rcv_nxt {
                self.timers.wait = self.clock.now + self.cfg.time_wait;
            }
        }
    }
}
