//! The sending half: windows, duplicate acknowledgements and the timer, counted in packets.
//!
//! Follows: ns-2.35 tcp/tcp.cc `TcpAgent` (Tahoe), tcp-reno.cc, tcp-newreno.cc, tcp-sack1.cc, scoreboard-rq.cc.
//! Differs: the window is a fixed-point number of 32 fractional bits where ns-2's is a double.

use super::board::Board;
use super::{Options, Variant};
use penstock_model::{Span, Time};

/// One packet of window.
const ONE: u64 = 1 << 32;
/// Duplicate acknowledgements that mean a loss (`numdupacks_`).
pub(super) const DUPACKS: u32 = 3;

/// What moved the window last (`last_cwnd_action_`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    None,
    DupAck,
    Timeout,
    Ecn,
    Exited,
}

/// Where [`Agent::slowdown`] lets the window fall to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fall {
    Half,
    One,
}

/// A packet the agent sends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Output {
    /// Its number; 0 is the SYN.
    pub no: i64,
    /// It tells that the window was reduced (CWR).
    pub cwr: bool,
    /// It was sent before.
    pub again: bool,
}

/// An acknowledgement as the agent sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ack<'a> {
    /// The last packet that came in order.
    pub no: i64,
    /// It echoes congestion.
    pub ece: bool,
    /// First and end of runs of packets that came out of order.
    pub sacks: &'a [(i64, i64)],
    /// Packets there are to send: numbers below this.
    pub curseq: i64,
}

/// The sender's variables; names as in ns-2.
#[derive(Debug)]
pub(super) struct Agent {
    // Parameters
    pub o: Options,
    // Variables
    /// Where the window stands, 2^-32 packets.
    cwnd: u64,
    pub ssthresh: i64,
    /// The next packet to send.
    pub(super) t_seqno: i64,
    pub maxseq: i64,
    pub(super) last_ack: i64,
    pub highest_ack: i64,
    pub(super) recover: i64,
    pub dupacks: u32,
    dupwnd: i64,
    last_action: Action,
    pub(super) first_partial: bool,
    cong_action: bool,
    ect: bool,
    ecn_backoff: bool,
    wnd_init: u32,
    // Of the SACK variant
    pub(super) board: Board,
    pub(super) pipe: i64,
    pub fast_recovery: bool,
    pub(super) timed_out: bool,
    pub(super) next_pkt: i64,
    // Round-trip time, ticks
    rtt: i64,
    srtt8: i64,
    rttvar4: i64,
    rtxcur: Span,
    pub(super) backoff: i64,
    rtt_active: bool,
    rtt_seq: i64,
    rtt_ts: Time,
    boot: Span,
    /// When the retransmission timer goes off.
    pub rtx_at: Option<Time>,
    pub(super) now: Time,
    pub(super) curseq: i64,
    /// What is to be sent, in order.
    pub out: Vec<Output>,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Fast retransmissions begun.
    pub recoveries: u64,
}

impl Agent {
    pub fn new(o: Options, seed: u32) -> Agent {
        let tick = o.tick.as_ns().max(1);
        Agent {
            cwnd: ONE,
            ssthresh: i64::from(o.window),
            t_seqno: 0,
            maxseq: -1,
            last_ack: -1,
            highest_ack: -1,
            recover: 0,
            dupacks: 0,
            dupwnd: 0,
            last_action: Action::None,
            first_partial: false,
            cong_action: false,
            ect: false,
            ecn_backoff: false,
            wnd_init: o.window_init,
            board: Board::default(),
            pipe: -1,
            fast_recovery: false,
            timed_out: false,
            next_pkt: 0,
            rtt: 0,
            srtt8: 0,
            rttvar4: (12_000_000_000 / tick) << 2,
            rtxcur: o.initial_rto,
            backoff: 1,
            rtt_active: false,
            rtt_seq: -1,
            rtt_ts: Time::ZERO,
            boot: Span::from_ns(i64::from(seed) % tick),
            rtx_at: None,
            now: Time::ZERO,
            curseq: 0,
            out: Vec::new(),
            timeouts: 0,
            recoveries: 0,
            o,
        }
    }

    // ---- What it is ----

    /// The window, whole packets.
    pub fn cwnd(&self) -> u32 {
        (self.cwnd >> 32) as u32
    }
    /// The smoothed round trip.
    pub fn srtt(&self) -> Span {
        Span::from_ns((self.srtt8 >> 3) * self.o.tick.as_ns())
    }
    /// Its mean deviation.
    pub fn rttvar(&self) -> Span {
        Span::from_ns((self.rttvar4 >> 2) * self.o.tick.as_ns())
    }
    /// Doublings of the timeout in force.
    pub fn doublings(&self) -> u8 {
        self.backoff.ilog2() as u8
    }

    fn reno(&self) -> bool {
        matches!(self.o.variant, Variant::Reno | Variant::Newreno)
    }
    /// The window in force, 2^-32 packets (`windowd`).
    fn windowd(&self) -> u64 {
        let inflated = if self.reno() { self.cwnd + self.dupwnd as u64 * ONE } else { self.cwnd };
        inflated.min(u64::from(self.o.window) * ONE)
    }
    /// In whole packets (`window`).
    pub(super) fn window(&self) -> i64 {
        (self.windowd() >> 32) as i64
    }

    // ---- The timer ----

    /// The timeout in force.
    //= ns-2.35 tcp/tcp.cc rtt_timeout
    pub fn rto(&self) -> Span {
        let timeout = Span::from_ns(self.rtxcur.max(self.o.min_rto).as_ns().saturating_mul(self.backoff));
        timeout.min(self.o.max_rto).max(Span::from_ns(2 * self.o.tick.as_ns()))
    }
    fn set_timer(&mut self) {
        self.rtx_at = Some(self.now + self.rto());
    }
    //= ns-2.35 tcp/tcp.cc rtt_backoff
    fn back_off(&mut self) {
        if self.backoff < 64 || self.rto() < self.o.max_rto {
            self.backoff <<= 1;
        }
        if self.backoff > 8 {
            // So far gone, the estimate is worth nothing.
            self.rttvar4 += self.srtt8 >> 3;
            self.srtt8 = 0;
        }
    }
    //= ns-2.35 tcp/tcp.cc reset_rtx_timer
    pub(super) fn reset_timer(&mut self, mild: bool, backoff: bool) {
        if backoff {
            self.back_off();
        }
        self.set_timer();
        if !mild {
            self.t_seqno = self.highest_ack + 1;
        }
        self.rtt_active = false;
    }
    //= ns-2.35 tcp/tcp.cc newtimer
    pub(super) fn new_timer(&mut self, ack: i64) {
        if self.t_seqno > ack || ack < self.maxseq || self.cwnd < ONE {
            self.set_timer();
        } else {
            self.rtx_at = None;
        }
    }
    /// Takes a round trip, counted in ticks that began at some moment of their own.
    //= ns-2.35 tcp/tcp.cc rtt_update; RFC 6298 section 2
    fn rtt_update(&mut self) {
        let tick = self.o.tick.as_ns();
        let tao = (self.now - self.rtt_ts).as_ns();
        let begun = (self.rtt_ts.as_ns() + self.boot.as_ns()).rem_euclid(tick);
        self.rtt = ((tao + begun) / tick).max(1);
        if self.srtt8 != 0 {
            let delta = self.rtt - (self.srtt8 >> 3);
            self.srtt8 = (self.srtt8 + delta).max(1);
            let delta = delta.abs() - (self.rttvar4 >> 2);
            self.rttvar4 = (self.rttvar4 + delta).max(1);
        } else {
            self.srtt8 = self.rtt << 3;
            self.rttvar4 = self.rtt << 1;
        }
        self.rtxcur = Span::from_ns((((self.rttvar4 << 3) + self.srtt8) >> 3) * tick);
    }

    // ---- Sending ----

    //= ns-2.35 tcp/tcp.cc output
    pub(super) fn output(&mut self, no: i64) {
        let again = no < self.maxseq;
        let cwr = self.cong_action && (!again || self.o.cwr_on_retransmit);
        self.cong_action &= !cwr;
        let all_acked = self.highest_ack == self.maxseq;
        self.out.push(Output { no, cwr, again: no <= self.maxseq });
        if no > self.maxseq {
            self.maxseq = no;
            if !self.rtt_active {
                self.rtt_active = true;
                if no > self.rtt_seq {
                    self.rtt_seq = no;
                    self.rtt_ts = self.now;
                }
            }
        }
        if self.rtx_at.is_none() || all_acked {
            self.set_timer();
        }
    }

    /// Sends what the window allows; `burst` packets at most, 0 for no bound.
    pub fn send_much(&mut self, now: Time, curseq: i64, burst: u32) {
        (self.now, self.curseq) = (now, curseq);
        if self.o.variant == Variant::Sack1 {
            return self.send_much_sack(burst);
        }
        let mut sent = 0;
        while self.t_seqno <= self.highest_ack + self.window() && self.t_seqno < self.curseq {
            self.output(self.t_seqno);
            self.t_seqno += 1;
            sent += 1;
            if sent == burst {
                break;
            }
        }
    }

    /// Limited transmit: a new packet for each of the first two duplicates.
    //= ns-2.35 tcp/tcp.cc send_one
    //= RFC 3042 section 2
    pub(super) fn send_one(&mut self) {
        let ahead = self.t_seqno - self.highest_ack - i64::from(self.dupacks);
        if self.t_seqno <= self.highest_ack + i64::from(self.o.window)
            && self.t_seqno < self.curseq
            && (ahead <= 0 || ahead as u64 * ONE <= self.cwnd)
        {
            self.output(self.t_seqno);
            self.t_seqno += 1;
        }
    }

    // ---- The window ----

    //= ns-2.35 tcp/tcp.cc opencwnd
    //= RFC 5681 section 3.1
    fn open_window(&mut self) {
        if self.cwnd < self.ssthresh as u64 * ONE {
            self.cwnd += ONE;
        } else {
            self.cwnd += ((u128::from(ONE) << 32) / u128::from(self.cwnd.max(1))) as u64;
        }
    }

    //= ns-2.35 tcp/tcp.cc slowdown
    fn slowdown(&mut self, ssthresh: bool, fall: Fall) {
        let half = if self.o.precise { self.windowd() / 2 } else { (self.window() / 2) as u64 * ONE };
        if ssthresh {
            self.ssthresh = (half >> 32) as i64;
        }
        self.cwnd = if fall == Fall::Half { half } else { ONE };
        self.ssthresh = self.ssthresh.max(2);
        self.cong_action = true;
    }

    /// An ACK that echoes congestion: the window falls once a round trip.
    //= ns-2.35 tcp/tcp.cc ecn
    //= RFC 3168 section 6.1.2
    fn ecn(&mut self, ack: i64) {
        if ack > self.recover || self.last_action == Action::Timeout {
            self.recover = self.maxseq;
            self.last_action = Action::Ecn;
            if self.cwnd <= ONE && self.ecn_backoff {
                self.back_off();
            } else {
                self.ecn_backoff = self.cwnd <= ONE;
            }
            self.slowdown(true, Fall::Half);
        }
    }

    // ---- Acknowledgements ----

    /// An acknowledgement came.
    pub fn recv(&mut self, ack: &Ack<'_>, now: Time) {
        (self.now, self.curseq) = (now, ack.curseq);
        if ack.ece && self.o.ecn {
            self.ecn(ack.no);
        }
        match self.o.variant {
            Variant::Sack1 => self.recv_sack(ack),
            Variant::Newreno => self.recv_newreno(ack),
            Variant::Reno | Variant::Tahoe => self.recv_reno(ack),
        }
    }

    //= ns-2.35 tcp/tcp.cc recv; tcp/tcp-reno.cc recv
    fn recv_reno(&mut self, ack: &Ack<'_>) {
        if ack.no > self.last_ack {
            if self.last_action == Action::DupAck && self.reno() {
                self.last_action = Action::Exited;
            }
            self.dupwnd = 0;
            self.new_ack_grows(ack);
        } else if ack.no == self.last_ack {
            self.duplicate();
        }
        if !self.reno() || self.dupacks == 0 || self.dupacks >= DUPACKS {
            self.send_much(self.now, ack.curseq, 0);
        }
    }

    fn duplicate(&mut self) {
        self.dupacks += 1;
        if self.dupacks == DUPACKS {
            self.dupack_action();
        } else if self.dupacks > DUPACKS {
            if self.last_action == Action::DupAck {
                self.dupwnd += 1;
            }
        } else if self.o.limited_transmit {
            self.send_one();
        }
    }

    //= ns-2.35 tcp/tcp-newreno.cc recv
    fn recv_newreno(&mut self, ack: &Ack<'_>) {
        if ack.no > self.last_ack {
            if ack.no >= self.recover || self.last_action != Action::DupAck {
                if self.dupwnd > 0 {
                    self.dupwnd = 0;
                    if self.last_action == Action::DupAck {
                        self.last_action = Action::Exited;
                    }
                }
                self.first_partial = false;
                self.new_ack_grows(ack);
            } else {
                self.partial_ack(ack.no);
            }
        } else if ack.no == self.last_ack {
            self.duplicate();
        }
        if self.dupacks == 0 {
            self.send_much(self.now, ack.curseq, 0);
        } else if self.dupacks >= DUPACKS {
            self.send_much(self.now, ack.curseq, 2);
        }
    }

    /// An ACK for a part of what was out when recovery began: the next hole goes at once.
    //= ns-2.35 tcp/tcp-newreno.cc partialnewack_helper, partialnewack
    //= RFC 2582 section 3
    //= RFC 6582 section 3.2
    fn partial_ack(&mut self, no: i64) {
        if !self.o.deflate {
            self.dupwnd = 0;
        }
        // The impatient variant sets the timer for the first partial ACK alone.
        if !self.o.impatient || !self.first_partial {
            self.first_partial = true;
            self.new_timer(no);
        }
        if self.o.deflate {
            let deflate = no - self.last_ack;
            if self.dupwnd > deflate {
                self.dupwnd -= deflate - 1;
            } else {
                self.cwnd = self.cwnd.saturating_sub((deflate - self.dupwnd) as u64 * ONE);
                self.dupwnd = 1;
            }
            self.cwnd = self.cwnd.max(ONE);
        }
        self.last_ack = no;
        self.highest_ack = no;
        self.t_seqno = self.t_seqno.max(no + 1);
        if self.rtt_active && no >= self.rtt_seq {
            self.rtt_active = false;
            self.backoff = 1;
        }
        self.output(no + 1);
    }

    //= ns-2.35 tcp/tcp.cc recv_newack_helper
    pub(super) fn new_ack_grows(&mut self, ack: &Ack<'_>) {
        self.new_ack(ack);
        if !self.ect || !ack.ece {
            self.open_window();
        }
        if self.ect && !ack.ece {
            self.ecn_backoff = false;
        }
        self.ect |= ack.ece;
        if self.last_ack == 0 {
            self.cwnd = u64::from(self.wnd_init) * ONE;
        }
    }

    //= ns-2.35 tcp/tcp.cc newack
    pub(super) fn new_ack(&mut self, ack: &Ack<'_>) {
        self.dupacks = 0;
        self.last_ack = ack.no;
        self.highest_ack = ack.no;
        self.t_seqno = self.t_seqno.max(ack.no + 1);
        if self.rtt_active && ack.no >= self.rtt_seq {
            if !self.ect || !self.ecn_backoff || !ack.ece {
                self.backoff = 1;
                self.ecn_backoff = false;
            }
            self.rtt_active = false;
            self.rtt_update();
        }
        self.new_timer(ack.no);
    }

    /// The third duplicate.
    //= ns-2.35 tcp/tcp.cc dupack_action; tcp/tcp-reno.cc; tcp/tcp-newreno.cc; tcp/tcp-sack1.cc
    pub(super) fn dupack_action(&mut self) {
        let again = self.o.variant == Variant::Reno && self.last_action == Action::DupAck;
        if self.highest_ack > self.recover || again || self.highest_ack == 0 {
            self.recover = self.maxseq;
            self.last_action = Action::DupAck;
            self.recoveries += 1;
            match self.o.variant {
                Variant::Tahoe => {
                    self.slowdown(true, Fall::One);
                    self.reset_timer(false, false);
                }
                Variant::Reno => {
                    self.slowdown(true, Fall::Half);
                    self.reset_timer(true, false);
                    self.output(self.last_ack + 1);
                    self.dupwnd = i64::from(DUPACKS);
                }
                Variant::Newreno => {
                    self.reset_timer(true, false);
                    self.slowdown(true, Fall::Half);
                    self.output(self.last_ack + 1);
                    self.dupwnd = i64::from(DUPACKS);
                }
                Variant::Sack1 => {
                    self.begin_sack_recovery();
                    self.slowdown(true, Fall::Half);
                    self.output(self.last_ack + 1);
                }
            }
        } else if self.o.ecn && self.last_action == Action::Ecn {
            // The window has fallen already for this flight.
            self.last_action = Action::DupAck;
            match self.o.variant {
                Variant::Tahoe => {
                    self.slowdown(false, Fall::One);
                    self.reset_timer(false, false);
                }
                Variant::Sack1 => {
                    self.begin_sack_recovery();
                    self.output(self.last_ack + 1);
                }
                _ => {
                    self.reset_timer(true, false);
                    self.output(self.last_ack + 1);
                    self.dupwnd = i64::from(DUPACKS);
                }
            }
        }
    }

    // ---- Timeout ----

    /// The retransmission timer went off.
    //= ns-2.35 tcp/tcp.cc timeout; tcp/tcp-reno.cc timeout; tcp/tcp-sack1.cc timeout
    //= RFC 6298 section 5
    pub fn timeout(&mut self, now: Time, curseq: i64) {
        (self.now, self.curseq) = (now, curseq);
        self.rtx_at = None;
        match self.o.variant {
            Variant::Sack1 => {
                self.dupacks = 0;
                self.fast_recovery = false;
                self.timed_out = true;
                self.last_ack = self.last_ack.max(self.highest_ack);
                self.board.clear();
            }
            Variant::Reno | Variant::Newreno => {
                self.dupwnd = 0;
                self.dupacks = 0;
            }
            Variant::Tahoe => {}
        }
        self.recover = self.maxseq;
        self.cwnd = self.cwnd.max(ONE);
        if self.highest_ack == -1 {
            self.wnd_init = self.wnd_init.min(1);
        }
        let idle = self.highest_ack == self.maxseq;
        if idle || self.highest_ack < self.recover && self.last_action == Action::Ecn {
            self.slowdown(false, Fall::One);
        } else {
            self.timeouts += 1;
            self.last_action = Action::Timeout;
            self.slowdown(true, Fall::One);
        }
        self.reset_timer(false, !idle);
        if idle {
            // ns-2 lets it go off again and again, which changes nothing more.
            self.rtx_at = None;
        }
        self.last_action = Action::Timeout;
        self.send_much(now, curseq, 0);
    }
}
