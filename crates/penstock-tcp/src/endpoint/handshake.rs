//! Segments coming in: opening, closing, and the checks before anything else.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_rcv_state_process`, `tcp_rcv_synsent_state_process`,
//! `tcp_validate_incoming`, `tcp_fin`, net/ipv4/tcp_minisocks.c `tcp_timewait_state_process`; RFC 9293 section 3.10.7;
//! RFC 7323 section 5 (PAWS); RFC 3168 section 6.1.
//! Differs: challenge ACKs (RFC 5961) of all connections together are not limited, as `tcp_challenge_ack_limit` does not by itself; a wrong acknowledgement of
//! our SYN is ignored, not reset.

use super::Endpoint;
use super::accecn::asks as asks_accurate;
use crate::config::Ecn;
use crate::info::{CaState, Error, State};
use crate::mib::{Rx, Tx};
use crate::recv::Taken;
use crate::segment::{EcnField, Transmit};
use crate::seq;
use penstock_model::Time;
use penstock_packet::{Tcp, TcpFlags};

/// What a SYN asks for ECN with.
const ECE_CWR: TcpFlags = TcpFlags::ECE.with(TcpFlags::CWR);

impl Endpoint {
    /// Several segments came in as one packet, each but the last with `gso_size` bytes of payload; else as
    /// [`handle_segment`](Endpoint::handle_segment).
    //= linux v6.12 net/ipv4/tcp_input.c tcp_measure_rcv_mss, tcp_segs_in
    pub fn handle_segments(&mut self, seg: &Tcp, payload_len: u32, gso_size: u32, ecn: EcnField, now: Time) {
        self.rx.joined_of(gso_size);
        self.handle_segment(seg, payload_len, ecn, now);
        self.rx.joined_of(0);
        let more = u64::from(payload_len.div_ceil(gso_size.max(1)).max(1) - 1);
        self.tx.n.segs_in += more;
        self.tx.n.data_segs_in += more;
    }
    /// A segment came in, in an IP header with this ECN field.
    #[inline]
    pub fn handle_segment(&mut self, seg: &Tcp, payload_len: u32, ecn: EcnField, now: Time) {
        self.touch(now);
        self.tx.n.segs_in += 1;
        self.tx.n.data_segs_in += u64::from(payload_len > 0);
        if self.calls.is_some() {
            self.note_received(payload_len, seg.flags.has(TcpFlags::ACK));
        }
        if let Some(o) = &mut self.one_way {
            let error = o.handle_segment(&mut self.state, seg, payload_len, ecn == EcnField::Ce, now);
            if error.is_some() {
                self.done(error);
            }
            return;
        }
        match self.state {
            State::Closed => {}
            State::SynSent => self.syn_sent(seg, payload_len, ecn),
            State::TimeWait => self.time_wait(seg, payload_len),
            _ => self.synchronized(seg, payload_len, ecn),
        }
    }

    // ---- Opening ----

    /// What the peer's SYN says.
    pub(super) fn read_syn(&mut self, syn: &Tcp) {
        let stamps = syn.timestamps;
        self.tx.stamps.read_syn(self.cfg.timestamps, stamps, self.tx.clock.us);
        self.tx.sack_ok = self.cfg.sack && syn.sack_permitted;
        self.rcv_scaling = self.cfg.window_scaling && syn.wscale.is_some();
        let options = if self.tx.stamps.ok() { 12 } else { 0 };
        self.mss = syn.mss.unwrap_or(536);
        let clamp = u32::from(self.mss).clamp(88, u32::from(self.cfg.mss));
        let wscale = if self.rcv_scaling { syn.wscale.unwrap_or(0).min(14) } else { 0 };
        self.tx.space.read_syn(syn.seq, u32::from(syn.window), clamp - options, wscale);
        self.rx.begin(
            syn.seq,
            u32::from(self.cfg.announced()).max(88) - options,
            20 + options,
            self.tx.sack_ok,
        );
    }

    /// What a SYN asks of a listener.
    //= linux v7.2 net/ipv4/tcp_input.c tcp_ecn_create_request; v6.12 and v2.6.35 likewise, without Accurate ECN
    pub(super) fn listener_ecn(&mut self, syn: &Tcp, ecn: EcnField) {
        if self.tx.p.newest && self.cfg.ecn.accepts_accurate() && asks_accurate(syn) {
            return self.accept_accurate(ecn);
        }
        // A SYN that may be marked is none of RFC 3168: unless it asks for something newer, or the controller is one that marks all.
        let fits = !self.tx.p.today || ecn == EcnField::NotEct || syn.flags.has(TcpFlags::AE);
        let ok = self.cfg.ecn != Ecn::Off && fits || self.tx.cc.needs_ecn();
        self.tx.cc.set_ecn(syn.flags.has(ECE_CWR) && ok);
    }
    /// The answer to our SYN.
    //= linux v7.2 include/net/tcp_ecn.h tcp_ecn_rcv_synack; v6.12 net/ipv4/tcp_input.c tcp_ecn_rcv_synack
    fn synack_ecn(&mut self, synack: &Tcp, ecn: EcnField) {
        if self.tx.p.newest && self.tx.cc.ecn_ok() {
            return self.synack_of_newest(synack, ecn);
        }
        let flags = synack.flags;
        self.tx.cc.set_ecn(self.tx.cc.ecn_ok() && flags.has(TcpFlags::ECE) && !flags.has(TcpFlags::CWR));
    }

    /// The connection is open.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_init_transfer, tcp_finish_connect
    fn open(&mut self) {
        if self.synacks > 0 {
            self.tx.mib.one(Tx::PassiveOpens);
        }
        self.open_variables();
        self.state = if self.tx.space.is_closed() { State::FinWait1 } else { State::Established };
    }
    /// What an open connection begins with.
    pub(super) fn open_variables(&mut self) {
        let active = self.state == State::SynSent;
        self.tx.space.open();
        if self.tx.p.today {
            self.init_metrics();
        }
        self.tx.cc.opened(&self.tx.space, &self.tx.clock);
        // A SYN lost more than once: begin with a window of one (RFC 6298 section 5.7, RFC 5681 section 3.1).
        let syn_lost = if self.tx.p.today {
            // Unless the echo shows that the first one had arrived (tcp_try_undo_spurious_syn).
            let first = self.tx.stamps.ok().then(|| self.tx.clock.ts_of(self.syn_sent_us));
            self.tx.timers.retransmits() > 0
                && self.tx.n.total_retrans > 1
                && (first.is_none() || self.tx.stamps.ecr() != first)
        } else {
            self.tx.timers.retransmits() > 0
        };
        let cwnd = if syn_lost && !self.tx.p.xp { 1 } else { self.tx.cc.init_cwnd(self.tx.space.mss()) };
        self.tx.cc.put_cwnd(cwnd);
        if self.tx.p.today && active && self.tx.timers.retransmits() > 0 && !self.tx.sack_ok {
            self.recovery.opened_in_loss(&mut self.tx);
        }
        self.tx.timers.opened();
        self.recovery.opened(self.tx.space.una());
        self.rx.established(self.tx.space.mss(), &self.tx.clock);
        let mss = u32::from(self.mss);
        if !self.tx.p.today {
            self.tx.sndbuf_expand(mss, self.recovery.reordering());
            // tcp_fixup_sndbuf: room for three segments.
            self.tx.unsent.begin(3 * (mss + 304 + 16 + 192));
        }
        self.tx.show_window();
        if self.tx.p.today {
            self.tx.cc.syn_delivered();
            self.tx.set_rate();
        }
        if self.tx.cc.state() == CaState::Cwr {
            // A SYN that was dropped here has reduced the window; with the SYN-ACK that is over, and the threshold stays.
            self.tx.cc.put_state(CaState::Open);
        }
        self.tx.cc.init();
        if self.tx.p.today {
            // After the controller, which may have set the window (tcp_init_buffer_space).
            self.tx.sndbuf_expand(mss, self.recovery.reordering());
        }
        self.tx.todo.push = true;
        if self.calls.is_some() {
            // icsk_ack.lrcvtime
            self.note_received(1, true);
            self.begin_search();
        }
    }

    /// Takes the round trip of the handshake, if nothing in it was repeated.
    fn handshake_rtt(&mut self) {
        if self.tx.timers.retransmits() == 0 {
            let us = (self.tx.clock.us - self.syn_sent_us).min(u64::from(u32::MAX >> 5)) as u32;
            if self.tx.p.today {
                self.tx.take_rtt(us, us, false);
            } else {
                self.tx.take_rtt_2_6_35(self.tx.clock.jiffies_since(self.syn_sent_us));
            }
        } else if self.tx.stamps.ok()
            && let Some(ecr) = self.tx.stamps.ecr().filter(|&e| e != 0)
        {
            let ticks = self.tx.clock.tsval().wrapping_sub(ecr);
            if ticks < 1 << 20 {
                if self.tx.p.today {
                    let us = ticks.max(1) * self.tx.clock.ts_tick_us();
                    self.tx.take_rtt(us, us, false);
                } else {
                    self.tx.take_rtt_2_6_35(ticks);
                }
            }
        } else if !self.tx.p.today {
            // RFC 6298 section 5.7: after a lost SYN the timeout begins at three seconds (6.12: `init_metrics`).
            self.tx.timers.raise_rto(self.tx.clock.hz() * 3);
        }
    }

    /// The SYN or SYN-ACK.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_connect, tcp_make_synack, tcp_syn_options
    pub(super) fn syn(&mut self, again: bool) -> Transmit {
        let active = self.state == State::SynSent;
        let mut flags = TcpFlags::SYN;
        if !active {
            flags = flags.with(TcpFlags::ACK);
        }
        if active && (self.cfg.ecn.asks() || self.tx.cc.needs_ecn()) && !self.tx.p.xp {
            self.tx.cc.set_ecn(true);
            let accurate = self.tx.p.newest && self.cfg.ecn == Ecn::Accurate;
            if accurate && !again {
                self.ask_for_accurate();
            }
            // A repeated SYN asks no more, lest something on the way drops it for that (RFC 3168 section 6.1.1.1); for Accurate ECN once more.
            if !again || !self.cfg.ecn_fallback || accurate && self.tx.timers.retransmits() <= 1 {
                flags = flags.with(ECE_CWR);
                if accurate {
                    flags = flags.with(TcpFlags::AE);
                }
            }
        }
        let timed_out = self.tx.p.newest && again && self.synack_timed_out();
        if !active && self.tx.cc.has_classic_ecn() && !timed_out {
            flags = flags.with(TcpFlags::ECE);
        }
        if again {
            self.tx.n.total_retrans += 1;
            self.tx.mib.one(Tx::SynRetrans);
        } else {
            self.syn_sent_us = self.tx.clock.us;
            self.recovery.syn_sent(self.tx.clock.us);
            self.tx.set_rto();
        }
        self.tx.space.syn_sent();
        self.tx.n.segs_out += 1;
        self.synacks += u64::from(!active);
        self.rx.ack_sent();
        let mut tcp = Tcp {
            sport: self.sport,
            dport: self.dport,
            seq: self.tx.space.iss() as u32,
            ack: if active { 0 } else { self.rx.next() as u32 },
            flags,
            window: self.rx.offered().min(65_535) as u16,
            mss: Some(self.cfg.announced()),
            wscale: self.rcv_scaling.then_some(self.rx.wscale()),
            sack_permitted: self.tx.sack_ok,
            timestamps: self.tx.stamps.ok().then(|| (self.tx.clock.tsval(), self.tx.stamps.recent())),
            ..Tcp::default()
        };
        if !active && self.accurate.is_some() {
            self.write_synack(&mut tcp, again);
        }
        self.tx.todo.syn_for_syn = false;
        let payload_len = if self.fast.is_some() { self.write_fast(&mut tcp, again) } else { 0 };
        Transmit {
            tcp,
            payload_len,
            gso_size: 0,
            // A controller that marks all has it in its socket's type of service (tcp_assign_congestion_control).
            ect: self.tx.p.today && self.tx.cc.needs_ecn(),
            retransmission: again,
            departs: self.tx.clock.now,
        }
    }

    /// Whether the timer has retransmitted the SYN-ACK before this one.
    //= linux v7.2 include/net/request_sock.h num_timeout
    pub(super) fn synack_timed_out(&self) -> bool {
        let this = !self.tx.todo.syn_for_syn;
        self.tx.timers.retransmits() > u32::from(this)
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_synsent_state_process; RFC 9293 section 3.10.7.3
    fn syn_sent(&mut self, seg: &Tcp, payload_len: u32, ecn: EcnField) {
        let ack = seq::unwrap(seg.ack, self.tx.space.nxt());
        let fast = self.fast.is_some();
        let ours = (ack == self.tx.space.iss() + 1 || fast && self.acks_fast_syn(ack))
            && self.tx.space.nxt() > self.tx.space.iss();
        if seg.flags.has(TcpFlags::ACK) {
            if !ours {
                // For an older connection; our SYN stands.
                if fast && !seg.flags.has(TcpFlags::RST) {
                    self.refuses_synack(seg, true);
                }
                return;
            }
            if fast && self.echoes_wrong(seg) {
                if !seg.flags.has(TcpFlags::RST) {
                    self.refuses_synack(seg, false);
                }
                return;
            }
            if seg.flags.has(TcpFlags::RST) {
                return self.done(Some(Error::Refused));
            }
            if !seg.flags.has(TcpFlags::SYN) {
                return;
            }
            self.read_syn(seg);
            self.synack_ecn(seg, ecn);
            self.tx.timers.heard(&self.tx.clock);
            self.handshake_rtt();
            self.open();
            if fast && self.fast_synack(seg, payload_len, seg.fast_open()) {
                return;
            }
            (self.tx.todo.ack_first, self.tx.todo.reflects) = (true, true);
        } else if seg.flags.has(TcpFlags::SYN) && !seg.flags.has(TcpFlags::RST) {
            // Both open at once.
            if self.accurate.is_some() {
                self.crossed_accurate(seg, ecn);
            } else {
                let ok = self.tx.cc.ecn_ok() && seg.flags.has(ECE_CWR);
                self.tx.cc.set_ecn(ok);
            }
            self.state = State::SynReceived;
            self.read_syn(seg);
            self.tx.todo.syn = true;
            self.tx.timers.forget_retransmits();
        }
    }

    // ---- Open ----

    /// Checks a segment's place in the window; false when it is dealt with.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_validate_incoming
    #[inline]
    fn acceptable(&mut self, seg: &Tcp, start: u64, end: u64, ecn: EcnField) -> bool {
        let flags = seg.flags;
        if self.tx.stamps.ok() {
            let Some((val, ecr)) = seg.timestamps else {
                // Without the timestamp agreed on (RFC 7323 section 3.2); an RST may lack it.
                return if flags.has(TcpFlags::RST) { self.reset_in_window(start) } else { false };
            };
            self.tx.stamps.echoed(Some(ecr));
            let old = self.tx.stamps.is_old(val, self.tx.clock.us);
            if old && !flags.has(TcpFlags::RST) && !self.disordered_ack(seg, start, end, val) {
                if !(self.tx.p.today && flags.has(TcpFlags::SYN)) {
                    self.tx.mib.one(Tx::PawsEstab);
                }
                if self.tx.p.today && flags.has(TcpFlags::SYN) {
                    self.syn_challenge();
                } else if !(self.tx.p.newest && start == end && start < self.rx.next()) {
                    // 7.2 passes over ACKs that are merely old.
                    self.send_dupack(seg, start, end, Tx::SkippedPaws);
                }
                return false;
            }
        } else {
            self.tx.stamps.echoed(None);
        }
        if self.out_of_window(flags, start, end) {
            if !flags.has(TcpFlags::RST) {
                if self.tx.p.today && flags.has(TcpFlags::SYN) {
                    self.syn_challenge();
                } else {
                    self.send_dupack(seg, start, end, Tx::SkippedSeq);
                }
            } else if self.resets_behind_fin(start) {
                return self.reset_in_window(self.rx.next());
            }
            return false;
        }
        if flags.has(TcpFlags::RST) {
            return self.reset_in_window(start);
        }
        if flags.has(TcpFlags::SYN) {
            // Our handshake's last ACK was lost.
            if self.state == State::SynReceived && !flags.has(TcpFlags::ACK) {
                self.tx.todo.syn = true;
                self.tx.todo.syn_again = true;
                self.tx.todo.syn_for_syn = true;
                self.syn_again(seg, ecn);
            } else if self.state == State::SynReceived {
                return true;
            } else if self.tx.p.today {
                self.challenged(seg, ecn);
                self.tx.mib.one(Tx::InErrs);
                self.syn_challenge();
            } else {
                self.ack_at_once();
            }
            return false;
        }
        true
    }

    /// Whether a segment lies outside the window.
    //= linux v7.2 net/ipv4/tcp_input.c tcp_sequence; v6.12 likewise, by the window that is offered now
    #[inline]
    fn out_of_window(&self, flags: TcpFlags, start: u64, end: u64) -> bool {
        if end < self.rx.last_acked() {
            return true;
        }
        if !self.tx.p.newest {
            return start > self.rx.next() + u64::from(self.rx.window());
        }
        let limit = self.rx.next() + self.rx.largest_window();
        // A FIN may stand behind it; what reaches beyond it is taken where nothing waits to be read.
        end - u64::from(flags.has(TcpFlags::FIN)) > limit && (start > limit || self.rx.readable() > 0)
    }
    /// Whether an RST stands where a FIN has been (`tcp_reset_check`).
    fn resets_behind_fin(&self, start: u64) -> bool {
        self.tx.p.today
            && start + 1 == self.rx.next()
            && matches!(self.state, State::CloseWait | State::LastAck | State::Closing)
    }
    /// Whether an answer to a segment out of the window is one too many (`tcp_invalid_ratelimit`).
    //= linux v6.12 net/ipv4/tcp_input.c __tcp_oow_rate_limited
    fn oow_limited(&mut self, by: Tx) -> bool {
        let now = self.tx.clock.jiffies as u32;
        let least = self.tx.clock.span_to_jiffies(self.cfg.invalid_ratelimit);
        if self.last_oow != 0 && now.wrapping_sub(self.last_oow) < least {
            self.tx.mib.one(by);
            return true;
        }
        self.last_oow = now.max(1);
        false
    }
    /// An ACK for somebody who may not be the peer.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_send_challenge_ack; RFC 5961
    pub(super) fn challenge(&mut self) {
        if self.oow_limited(Tx::SkippedChallenge) {
            return;
        }
        self.tx.mib.one(Tx::ChallengeAck);
        if self.state == State::SynReceived {
            return self.ack_at_once();
        }
        self.tx.todo.ack_first = true;
    }

    /// The same for a SYN.
    fn syn_challenge(&mut self) {
        self.tx.mib.one(Tx::SynChallenge);
        self.challenge();
    }

    fn reset_in_window(&mut self, start: u64) -> bool {
        let sacked = self.tx.p.today && self.rx.last_sacked() == Some(start);
        //= linux v6.12 net/ipv4/tcp_minisocks.c tcp_check_req: any within the window; 7.2 wants it at its edge
        let opening = self.state == State::SynReceived && self.tx.p.today && !self.tx.p.newest;
        if start == self.rx.next() || sacked || opening || self.resets_behind_fin(start) {
            let error = match self.state {
                State::CloseWait => Error::BrokenPipe,
                State::SynReceived if !self.is_fast_child() => Error::Refused,
                _ => Error::Reset,
            };
            self.done(Some(error));
        } else if self.tx.p.today {
            self.reset_out_of_order();
            self.challenge();
        } else {
            self.ack_at_once();
        }
        false
    }

    /// An old timestamp on a pure ACK that was overtaken on the way and opens no window is no matter.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_disordered_ack, tcp_tsval_replay
    fn disordered_ack(&self, seg: &Tcp, start: u64, end: u64, val: u32) -> bool {
        let ack = seq::unwrap(seg.ack, self.tx.space.una());
        let window = self.tx.space.scaled(seg.window, false);
        let replay = match self.tx.p.today {
            // Of a peer whose timestamps count 1200 a second.
            true => self.tx.timers.rto().saturating_mul(1_200) / self.tx.clock.hz(),
            false => self.tx.timers.rto() * self.tx.clock.jiffy_us() / self.tx.clock.ts_tick_us(),
        };
        start == end
            && start == self.rx.next()
            && ack == self.tx.space.una()
            && !self.tx.space.may_update_window(ack, start, window, self.tx.p.today)
            && self.tx.stamps.recent().wrapping_sub(val) <= replay
    }

    /// Notes the timestamp to echo; answers whether it is a later one.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_replace_ts_recent; RFC 7323 section 4.3
    #[inline]
    pub(super) fn replace_ts_recent(&mut self, seg: &Tcp, start: u64) -> bool {
        if let Some((val, _)) = seg.timestamps
            && self.tx.stamps.ok()
            && start <= self.rx.last_acked()
        {
            let newer = (val.wrapping_sub(self.tx.stamps.recent()) as i32) > 0;
            self.tx.stamps.replace(val, self.tx.clock.us);
            return newer;
        }
        false
    }

    /// Answers what lies outside the window.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_send_dupack
    ///
    /// `by`: what counts one that is too soon to be answered.
    fn send_dupack(&mut self, seg: &Tcp, start: u64, end: u64, by: Tx) {
        // One with data is answered each time.
        let bare = start == end || seg.flags.has(TcpFlags::SYN);
        if self.tx.p.today && bare && self.oow_limited(by) {
            return;
        }
        if start != end && start < self.rx.next() {
            self.rx.mib.one(Rx::DelayedAckLost);
            self.rx.enter_quickack(16);
            self.came_again(start);
            self.rx.dsack_set(start, end.min(self.rx.next()));
        }
        self.ack_at_once();
    }

    /// Every state with both numbers known.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_established, tcp_rcv_state_process
    fn synchronized(&mut self, seg: &Tcp, len: u32, ecn: EcnField) {
        let fin = seg.flags.has(TcpFlags::FIN);
        let start = seq::unwrap(seg.seq, self.rx.next());
        let syn = u64::from(seg.flags.has(TcpFlags::SYN));
        let end = start + syn + u64::from(len) + u64::from(fin);
        if !self.acceptable(seg, start, end, ecn) || !seg.flags.has(TcpFlags::ACK) {
            self.tx.n.drops += 1;
            return;
        }
        let established = self.state == State::Established;
        if self.state == State::SynReceived {
            let (ack, first) = (seq::unwrap(seg.ack, self.tx.space.nxt()), self.tx.space.iss() + 1);
            let child = self.is_fast_child();
            if ack != first && !(child && ack > first && ack <= self.tx.space.nxt()) {
                // A number we never sent.
                return;
            }
            self.handshake_rtt();
            let window = self.tx.space.scaled(seg.window, syn > 0);
            if child {
                self.fast_child_opens(window, start);
            } else {
                self.tx.space.first_window(window, start);
                self.open();
            }
            if self.accurate.is_some() {
                self.third_ack(seg, len, ecn);
                // Its timestamp was taken when the connection was made (tcp_check_req).
                self.replace_ts_recent(seg, start);
            }
        } else if self.accurate.is_some() {
            match self.state {
                State::Established => self.count_received(ecn, len, self.rx.joined(len)),
                State::FinWait2 => self.accurate_is_over(),
                _ => {}
            }
        }
        let fast = self.predicted(seg, start);
        self.tx.cc.set_slow_path(!fast);
        //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_state_process: nothing there takes an ACK without data once the peer has closed
        let closed = matches!(self.state, State::CloseWait | State::Closing | State::LastAck);
        if !self.ack(seg, start, end, !fast) {
            self.tx.n.drops += 1;
            return;
        }
        self.tx.n.drops += u32::from(closed && start == end);
        // Only of an established connection's segments (tcp_rcv_state_process measures none): the handshake's last ACK is not looked at.
        if established && let Some(ecr) = self.tx.stamps.ecr() {
            self.rx.rcv_rtt_measure_ts(ecr, len, &self.tx.clock);
        }
        self.tx.todo.push = true;
        if self.tx.space.fin_sent() && self.tx.space.una() == self.tx.space.nxt() && !self.our_fin_acked() {
            return;
        }
        if end > start {
            self.recover_before_data();
        }
        if end > start + syn && !self.rx.fin_received() {
            self.take_data(seg, start + syn, len, fin, ecn);
        } else if end > start {
            // After the peer's FIN only repetitions come.
            self.tx.n.drops += 1;
            self.rx.ack_at_once();
        }
        self.tx.todo.ack_check = true;
    }

    /// Whether the segment is what header prediction expects.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_established, tcp_fast_path_on
    fn predicted(&self, seg: &Tcp, start: u64) -> bool {
        self.state == State::Established
            && start == self.rx.next()
            && seg.sack_count == 0
            && seg.accecn.is_none()
            && seg.flags.without(TcpFlags::PSH) == self.expected_flags()
            && self.tx.space.scaled(seg.window, false) == self.tx.space.wnd()
            && !self.rx.has_ooo()
            && self.rx.offered() > 0
    }

    /// Our FIN was acknowledged: the next state. False when the connection is over.
    fn our_fin_acked(&mut self) -> bool {
        //= linux v6.12 net/ipv4/tcp_minisocks.c tcp_time_wait; net/ipv4/tcp_input.c tcp_rcv_state_process: where tcp_update_metrics is called
        self.ended_well |= matches!(self.state, State::FinWait1 | State::Closing | State::LastAck);
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
        //= linux v6.12 net/ipv4/inet_timewait_sock.c __inet_twsk_schedule
        self.tx.mib.one(Tx::TimeWait);
        self.tx.timers.clear();
        self.tx.timers.wait_until(self.tx.clock.now + self.cfg.time_wait);
    }

    fn take_data(&mut self, seg: &Tcp, start: u64, len: u32, fin: bool, ecn: EcnField) {
        if self.accurate.is_some() && start + u64::from(len) + u64::from(fin) <= self.rx.next() {
            self.came_again(start);
        }
        if self.tx.cc.ecn_ok() && len > 0 && self.tx.cc.needs_ecn() {
            self.echo_each_mark(ecn == EcnField::Ce);
        } else if self.tx.cc.ecn_ok() && len > 0 {
            self.rx.marked(ecn);
        }
        let had_fin = self.rx.fin_received();
        let header = seg.header_len();
        let psh = seg.flags.has(TcpFlags::PSH) || fin;
        let taken = self.rx.data(start, len, fin, psh, header, &self.tx.clock, self.tx.timers.rto());
        if self.tx.cc.ecn_ok() && len > 0 && !self.tx.cc.needs_ecn() && taken != Taken::Nothing {
            // Congestion experienced: tell the sender until it says it has heard.
            self.rx.echo.taken(ecn);
        }
        self.tx.n.drops += u32::from(taken == Taken::Nothing);
        if taken == Taken::InOrder {
            self.data_ready = Some(self.tx.clock.now);
        }
        if taken == Taken::InOrder && !had_fin && self.rx.fin_received() {
            self.rx.owe_ack(self.rx.acks_at_once());
            match self.state {
                State::Established => {
                    self.state = State::CloseWait;
                    self.rx.turn_interactive();
                }
                // Both closed at once: our FIN is still out.
                State::FinWait1 => {
                    self.state = State::Closing;
                    self.rx.ack_at_once();
                }
                State::FinWait2 => {
                    self.enter_time_wait();
                    self.rx.ack_at_once();
                }
                _ => {}
            }
        }
    }

    /// Tells the sender of each change of the mark, by an ACK of its own.
    //= linux v6.12 net/ipv4/tcp_dctcp.h dctcp_ece_ack_update
    //= RFC 8257 section 3.2
    fn echo_each_mark(&mut self, ce: bool) {
        if let Some(before) = self.rx.echo.each_mark(ce) {
            if self.rx.is_delayed() {
                self.tx.todo.ack_before = Some((self.rx.next(), before));
            }
            self.rx.ack_at_once();
        }
    }

    // ---- Closed ----

    /// Strays after the end: the peer's FIN again is acknowledged again.
    //= linux v6.12 net/ipv4/tcp_minisocks.c tcp_timewait_state_process
    fn time_wait(&mut self, seg: &Tcp, len: u32) {
        if seg.flags.has(TcpFlags::RST) {
            return self.done(None);
        }
        let end = seq::unwrap(seg.seq, self.rx.next()) + u64::from(len);
        if seg.flags.has(TcpFlags::FIN) || len > 0 {
            self.ack_at_once();
            if end < self.rx.next() {
                self.tx.timers.wait_until(self.tx.clock.now + self.cfg.time_wait);
            }
        }
    }
}
