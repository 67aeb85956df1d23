//! One side of one connection: what the outside calls.

use crate::cc::{CongestionControl, INFINITE_SSTHRESH, Window};
use crate::config::Config;
use crate::info::{CaState, Error, State, TcpInfo};
use crate::seq;
use penstock_model::{Kernel, Span, Time};
use penstock_packet::{Tcp, TcpFlags};

/// A segment to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Header with its options.
    pub tcp: Tcp,
    /// Payload, bytes.
    pub payload_len: u32,
    /// To be marked ECT(0) in the IP header (RFC 3168).
    pub ect: bool,
    /// Whether any of it was sent before.
    pub retransmission: bool,
}

/// One side of one TCP connection.
///
/// # Order of calls
/// Nothing happens by itself. After **every** call that takes `now` — [`connect`](Endpoint::connect),
/// [`accept`](Endpoint::accept), [`handle_segment`](Endpoint::handle_segment),
/// [`handle_timeout`](Endpoint::handle_timeout), [`write`](Endpoint::write), [`read`](Endpoint::read),
/// [`close`](Endpoint::close), … — the caller
/// 1. takes segments with [`poll_transmit`](Endpoint::poll_transmit) until it answers `None`, and sends them in that
///    order, at that instant;
/// 2. asks [`poll_timeout`](Endpoint::poll_timeout) for the instant of the next
///    [`handle_timeout`](Endpoint::handle_timeout). It replaces what was asked before; `None` cancels. Calling
///    `handle_timeout` earlier than that does nothing.
///
/// `now` never goes back. Equal calls give equal answers: there is no chance in here.
///
/// Calls with bytes: [`write`](Endpoint::write) answers how much the send buffer took; once that was less than
/// offered, try again when [`writable`](Endpoint::writable) turns true (Linux: a third of the buffer is free).
/// [`readable`](Endpoint::readable) says how much waits for [`read`](Endpoint::read);
/// [`at_eof`](Endpoint::at_eof) that the peer has closed and everything was read.
#[derive(Debug)]
pub struct Endpoint {
    // Parameters
    cfg: Config,
    sport: u16,
    dport: u16,
    mss: u32,
    // Variables
    state: State,
    error: Option<Error>,
    cc: Box<dyn CongestionControl>,
    w: Window,
    iss: u64,
    snd_una: u64,
    snd_nxt: u64,
    write_seq: u64,
    snd_wnd: u64,
    fin: bool,
    rcv_nxt: u64,
    read_seq: u64,
    fin_received: bool,
    ack_now: bool,
    ts_recent: u32,
    peer_wscale: u8,
    timestamps: bool,
    rto: Option<Time>,
    backoff: u8,
    segs_out: u64,
    segs_in: u64,
}

impl Endpoint {
    /// Opens a connection from `sport` to `dport`; the SYN is then taken with [`poll_transmit`](Endpoint::poll_transmit).
    pub fn connect(cfg: &Config, sport: u16, dport: u16, isn: u32, now: Time) -> Endpoint {
        Endpoint::new(cfg, sport, dport, isn, State::SynSent, now)
    }

    /// What a listening socket does with a SYN: an endpoint in [`State::SynReceived`], its SYN-ACK ready.
    /// `None` when `syn` is not a SYN (answer it with [`reset_for`]).
    pub fn accept(cfg: &Config, syn: &Tcp, isn: u32, now: Time) -> Option<Endpoint> {
        if !syn.flags.has(TcpFlags::SYN) || syn.flags.has(TcpFlags::ACK) || syn.flags.has(TcpFlags::RST) {
            return None;
        }
        let mut e = Endpoint::new(cfg, syn.dport, syn.sport, isn, State::SynReceived, now);
        e.take_syn(syn);
        Some(e)
    }

    fn new(cfg: &Config, sport: u16, dport: u16, isn: u32, state: State, _now: Time) -> Endpoint {
        let iss = seq::first(isn);
        Endpoint {
            cfg: cfg.clone(),
            sport,
            dport,
            mss: 536,
            state,
            error: None,
            cc: (cfg.cc.build)(Kernel::V6_12),
            w: Window {
                cwnd: 10,
                ssthresh: INFINITE_SSTHRESH,
                cwnd_cnt: 0,
                cwnd_clamp: u32::MAX,
                cwnd_limited: true,
                prior_cwnd: 0,
                srtt_us8: 0,
                min_rtt_us: u32::MAX,
                mss: 536,
                snd_una: iss,
                snd_nxt: iss,
                in_flight: 0,
                now_us: 0,
                jiffies: 0,
                hz: 250,
                gso_burst_us: 0,
            },
            iss,
            snd_una: iss,
            snd_nxt: iss,
            write_seq: iss + 1,
            snd_wnd: 0,
            fin: false,
            rcv_nxt: 0,
            read_seq: 0,
            fin_received: false,
            ack_now: false,
            ts_recent: 0,
            peer_wscale: 0,
            timestamps: cfg.timestamps,
            rto: None,
            backoff: 0,
            segs_out: 0,
            segs_in: 0,
        }
    }

    fn take_syn(&mut self, syn: &Tcp) {
        self.rcv_nxt = seq::first(syn.seq) + 1;
        self.read_seq = self.rcv_nxt;
        self.snd_wnd = u64::from(syn.window);
        self.peer_wscale = if self.cfg.window_scaling { syn.wscale.unwrap_or(0).min(14) } else { 0 };
        self.timestamps = self.cfg.timestamps && syn.timestamps.is_some();
        if let Some((val, _)) = syn.timestamps {
            self.ts_recent = val;
        }
        self.mss = u32::from(syn.mss.unwrap_or(536).clamp(88, self.cfg.mss.max(88)));
        if self.timestamps {
            self.mss -= 12;
        }
    }

    /// A segment came in. `ce`: the IP header carried Congestion Experienced.
    pub fn handle_segment(&mut self, seg: &Tcp, payload_len: u32, ce: bool, now: Time) {
        let _ = (ce, now);
        self.segs_in += 1;
        if seg.flags.has(TcpFlags::RST) {
            self.error = Some(if self.state == State::SynSent { Error::Refused } else { Error::Reset });
            self.state = State::Closed;
            return;
        }
        if self.state == State::Closed {
            return;
        }
        if self.state == State::SynSent {
            if !seg.flags.has(TcpFlags::SYN) {
                return;
            }
            self.take_syn(seg);
            self.snd_una = self.snd_nxt;
            self.rto = None;
            self.state = State::Established;
            self.ack_now = true;
            return;
        }
        let ack = seq::unwrap(seg.ack, self.snd_una);
        if let Some((val, _)) = seg.timestamps {
            self.ts_recent = val;
        }
        if seg.flags.has(TcpFlags::ACK) && ack <= self.snd_nxt {
            let scale = if seg.flags.has(TcpFlags::SYN) { 0 } else { self.peer_wscale };
            self.snd_wnd = u64::from(seg.window) << scale;
            if ack > self.snd_una {
                let acked = ((ack - self.snd_una) as u32).div_ceil(self.mss);
                self.snd_una = ack;
                self.backoff = 0;
                self.rto = None;
                if self.state == State::SynReceived {
                    self.state = State::Established;
                } else {
                    self.cc.cong_avoid(&mut self.w, acked);
                }
                if self.fin && ack == self.write_seq + 1 {
                    self.state = match self.state {
                        State::FinWait1 => State::FinWait2,
                        State::Closing => State::TimeWait,
                        State::LastAck => State::Closed,
                        s => s,
                    };
                }
            }
        }
        let at = seq::unwrap(seg.seq, self.rcv_nxt);
        let end = at + u64::from(payload_len);
        if payload_len > 0 {
            self.ack_now = true;
            if at <= self.rcv_nxt && end > self.rcv_nxt {
                self.rcv_nxt = end;
            }
        }
        if seg.flags.has(TcpFlags::FIN) && end == self.rcv_nxt && !self.fin_received {
            self.fin_received = true;
            self.rcv_nxt += 1;
            self.ack_now = true;
            self.state = match self.state {
                State::Established => State::CloseWait,
                State::FinWait1 => State::Closing,
                State::FinWait2 => State::TimeWait,
                s => s,
            };
        }
    }

    /// Time has come: retransmission, delayed ACK, probe, end of TIME-WAIT.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.rto.is_some_and(|t| t <= now) {
            self.rto = None;
            self.backoff += 1;
            self.snd_nxt = self.snd_una;
        }
    }

    /// When [`handle_timeout`](Endpoint::handle_timeout) wants to be called.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.rto
    }

    /// The next segment to send now, if there is one.
    pub fn poll_transmit(&mut self, now: Time) -> Option<Transmit> {
        if self.state == State::Closed {
            return None;
        }
        let mut flags = TcpFlags::default();
        let mut len = 0;
        let mut mss = None;
        let at = self.snd_nxt;
        if self.snd_nxt == self.iss {
            mss = Some(self.cfg.mss);
            flags = flags.with(TcpFlags::SYN);
            self.snd_nxt += 1;
        } else if self.state != State::SynSent && self.state != State::SynReceived {
            let wnd = self.snd_wnd.min(u64::from(self.w.cwnd * self.mss));
            let room = (self.snd_una + wnd).saturating_sub(self.snd_nxt);
            len = self.write_seq.saturating_sub(self.snd_nxt).min(u64::from(self.mss));
            if len > room {
                len = 0;
            }
            self.snd_nxt += len;
            if self.fin && self.snd_nxt == self.write_seq {
                flags = flags.with(TcpFlags::FIN);
                self.snd_nxt += 1;
            }
        }
        if self.snd_nxt == at && !self.ack_now {
            return None;
        }
        if self.snd_nxt > at && self.rto.is_none() {
            self.rto = Some(now + Span::from_ms(1000 << self.backoff.min(7)));
        }
        self.ack_now = false;
        if self.state != State::SynSent {
            flags = flags.with(TcpFlags::ACK);
        }
        self.segs_out += 1;
        let syn = flags.has(TcpFlags::SYN);
        let window = if syn { 65_535 } else { 1 << 10 };
        Some(Transmit {
            tcp: Tcp {
                sport: self.sport,
                dport: self.dport,
                seq: at as u32,
                ack: self.rcv_nxt as u32,
                flags,
                window,
                mss,
                wscale: (syn && self.cfg.window_scaling).then_some(7),
                sack_permitted: syn && self.cfg.sack,
                timestamps: self.timestamps.then(|| ((now.as_ns() / 1_000_000) as u32, self.ts_recent)),
                sack: [(0, 0); 4],
                sack_count: 0,
            },
            payload_len: len as u32,
            ect: false,
            retransmission: false,
        })
    }

    /// Hands `bytes` to the socket; answers how many the send buffer took (0 before the connection is open, after
    /// [`close`](Endpoint::close), and on an error).
    pub fn write(&mut self, bytes: u64, now: Time) -> u64 {
        let _ = now;
        if self.fin || !matches!(self.state, State::Established | State::CloseWait) {
            return 0;
        }
        let queued = self.write_seq - self.snd_una;
        let took = bytes.min(u64::from(self.cfg.sndbuf.max()).saturating_sub(queued));
        self.write_seq += took;
        took
    }

    /// Takes up to `max` bytes that arrived in order; answers how many.
    pub fn read(&mut self, max: u64, now: Time) -> u64 {
        let _ = now;
        let n = self.readable().min(max);
        self.read_seq += n;
        n
    }

    /// Bytes that wait to be read.
    pub fn readable(&self) -> u64 {
        self.rcv_nxt - u64::from(self.fin_received) - self.read_seq
    }

    /// Whether the peer has closed its side and everything it sent was read.
    pub fn at_eof(&self) -> bool {
        self.fin_received && self.readable() == 0
    }

    /// Whether a writer that waits is woken.
    pub fn writable(&self) -> bool {
        !self.fin
            && matches!(self.state, State::Established | State::CloseWait)
            && self.write_seq - self.snd_una < u64::from(self.cfg.sndbuf.max()) / 3 * 2
    }

    /// Closes our side: FIN after what was written. Reading goes on (`shutdown(SHUT_WR)`).
    pub fn close(&mut self, now: Time) {
        let _ = now;
        self.state = match self.state {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            s => s,
        };
        self.fin = true;
    }

    /// Ends the connection at once, with an RST where one is due (`SO_LINGER` of 0).
    pub fn abort(&mut self, now: Time) {
        let _ = now;
        self.state = State::Closed;
    }

    /// The host knows that the peer cannot be reached (no route, ARP failed, an ICMP error while connecting).
    pub fn unreachable(&mut self, now: Time) {
        let _ = now;
        if self.state == State::SynSent {
            self.error = Some(Error::Unreachable);
            self.state = State::Closed;
        }
    }

    /// The local queueing discipline dropped a segment of ours, or said it was congested (`NET_XMIT_DROP`,
    /// `NET_XMIT_CN`): Linux then reduces its window as for ECN (`tcp_enter_cwr`).
    pub fn local_congestion(&mut self, now: Time) {
        let _ = now;
    }

    /// Frames of ours with this many payload bytes in all have left the host (or were dropped in it). Only with
    /// [`Config::device_accounting`]; call [`poll_transmit`](Endpoint::poll_transmit) afterwards.
    pub fn transmitted_freed(&mut self, bytes: u32, now: Time) {
        let _ = (bytes, now);
    }

    /// Turns Nagle's algorithm off or on (`TCP_NODELAY`).
    pub fn set_nodelay(&mut self, nodelay: bool) {
        self.cfg.nodelay = nodelay;
    }

    /// The connection's state.
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, if it did not end by FIN.
    pub fn error(&self) -> Option<Error> {
        self.error
    }

    /// A snapshot of the variables.
    pub fn info(&self) -> TcpInfo {
        TcpInfo {
            state: self.state,
            ca_state: CaState::Open,
            cc: self.cfg.cc.name,
            cwnd: self.w.cwnd,
            ssthresh: self.w.ssthresh,
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            min_rtt: None,
            rto: Span::from_secs(1),
            backoff: self.backoff,
            ato: Span::ZERO,
            snd_mss: self.mss,
            rcv_mss: self.mss,
            unacked: (self.snd_nxt - self.snd_una).div_ceil(u64::from(self.mss)) as u32,
            sacked: 0,
            lost: 0,
            retrans: 0,
            reordering: 3,
            snd_wnd: self.snd_wnd as u32,
            rcv_wnd: 65_535,
            sndbuf: self.cfg.sndbuf.initial(),
            rcvbuf: self.cfg.rcvbuf.initial(),
            notacked_bytes: self.write_seq - self.snd_una,
            notsent_bytes: self.write_seq.saturating_sub(self.snd_nxt),
            bytes_acked: self.snd_una - self.iss,
            bytes_received: 0,
            segs_out: self.segs_out,
            segs_in: self.segs_in,
            total_retrans: 0,
            bytes_retrans: 0,
            timeouts: 0,
            recoveries: 0,
            dsack_dups: 0,
            delivered: 0,
            delivered_ce: 0,
        }
    }
}

/// The RST that answers a segment for which there is no socket; `None` for a segment that is itself an RST.
//= RFC 9293 section 3.10.7.1
pub fn reset_for(seg: &Tcp, payload_len: u32) -> Option<Transmit> {
    if seg.flags.has(TcpFlags::RST) {
        return None;
    }
    let mut tcp = Tcp { sport: seg.dport, dport: seg.sport, flags: TcpFlags::RST, ..Tcp::default() };
    if seg.flags.has(TcpFlags::ACK) {
        tcp.seq = seg.ack;
    } else {
        let syn_fin = u32::from(seg.flags.has(TcpFlags::SYN)) + u32::from(seg.flags.has(TcpFlags::FIN));
        tcp.flags = tcp.flags.with(TcpFlags::ACK);
        tcp.ack = seg.seq.wrapping_add(payload_len).wrapping_add(syn_fin);
    }
    Some(Transmit { tcp, payload_len: 0, ect: false, retransmission: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_carries_bytes_and_closes() {
        let cfg = Config::linux(Kernel::V6_12);
        let mut now = Time::ZERO;
        let mut a = Endpoint::connect(&cfg, 1000, 2000, 7, now);
        let syn = a.poll_transmit(now).unwrap();
        assert_eq!(syn.tcp.header_len(), 40);
        let mut b = Endpoint::accept(&cfg, &syn.tcp, 9, now).unwrap();
        let (mut sent, mut got) = (0, 0);
        for _ in 0..1000 {
            now += Span::from_ms(1);
            while let Some(t) = a.poll_transmit(now) {
                b.handle_segment(&t.tcp, t.payload_len, false, now);
            }
            got += b.read(u64::MAX, now);
            if b.at_eof() {
                b.close(now);
            }
            while let Some(t) = b.poll_transmit(now) {
                a.handle_segment(&t.tcp, t.payload_len, false, now);
            }
            sent += a.write(1_000_000 - sent, now);
            if sent == 1_000_000 {
                a.close(now);
            }
        }
        assert_eq!(got, 1_000_000);
        assert_eq!((a.state(), b.state()), (State::TimeWait, State::Closed));
    }
}
