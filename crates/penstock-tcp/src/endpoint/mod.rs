//! One side of one connection: its variables, and what the outside calls.
//!
//! Follows: linux v6.12 `struct tcp_sock`, `struct inet_connection_sock`, net/ipv4/tcp.c; v2.6.35 likewise.
//! Differs: one segment a time everywhere (no TSO, no GRO, as with `gso_max_segs 1`; bursts where `calls` say so); no urgent data, no keepalive, no path MTU discovery;
//! payload has a length and no contents.

mod accecn;
mod ack;
mod attempt;
mod calls;
mod chrono;
mod counted;
mod diag;
mod fast;
mod handshake;
mod metrics;
mod output;
mod retransmit;
mod socket;
mod timeouts;

use crate::clock::Clock;
use crate::config::{Config, Ecn, Stack};
use crate::info::{Error, Gauges, State, TcpInfo};
use crate::mib::Tx;
use crate::ns2::{OneWay, Opening};
use crate::params::Params;
use crate::recovery::Recovery;
use crate::recv::{Receiver, Timing};
use crate::segment::{EcnField, Transmit};
use crate::sender::{Sender, Todo};
use accecn::Accurate;
use attempt::Trial;
use calls::CallState;
pub use calls::{CallInfo, SendFlags, Sent};
use chrono::Chronos;
use fast::Fast;
use output::Push;
use penstock_model::{Kernel, Span, Time};
use penstock_packet::{Tcp, TcpFlags};

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
#[repr(C)]
pub struct Endpoint {
    // With each segment, in this order: what lies together comes into the cache together.
    state: State,
    stack: Stack,
    /// The retransmission that is due probes a window that the receiver has taken back.
    shrunk: bool,
    /// Retransmissions go in the midst of a segment's processing: [`Aside`].
    frozen: bool,
    sport: u16,
    dport: u16,
    /// What the peer has announced (`mss_clamp`); before its SYN, what we do.
    mss: u16,
    /// How often the socket has drawn its hash anew.
    rehashed: u16,
    /// ns-2's agent and sink, which then do everything.
    one_way: Option<Box<OneWay>>,
    /// When the connection looked at the clock last, microseconds (`tcp_mstamp`).
    mstamp_us: u64,
    /// What has been handed over last: the host may refuse it until the next is asked for.
    trial: Trial,
    push: Push,
    /// When data came last that may be read (`sk_data_ready`).
    data_ready: Option<Time>,
    rx: Receiver,
    tx: Sender,
    /// Accurate ECN, asked for or agreed on.
    accurate: Option<Box<Accurate>>,
    recovery: Recovery,
    // The others.
    rcv_scaling: bool,
    /// The last segment may be marked.
    ect: bool,
    /// Our FIN was acknowledged: what was learned is to be kept.
    ended_well: bool,
    error: Option<Error>,
    /// When a segment out of the window was answered last, jiffies (`last_oow_ack_time`); 0: none was.
    last_oow: u32,
    /// What has kept it from sending faster.
    chrono: Chronos,
    /// SYN-ACKs that we have sent, which Linux counts with no socket.
    synacks: u64,
    /// What a socket has beside that is driven call by call.
    calls: Option<Box<CallState>>,
    syn_sent_us: u64,
    aside: Option<Box<Aside>>,
    /// It is opened by Fast Open.
    fast: Option<Box<Fast>>,
    cfg: Box<Config>,
}

/// Retransmissions that go before the data of the segment at hand are taken in. Made with the first, and kept.
#[derive(Debug, Default)]
struct Aside {
    /// The header that they bear.
    header: Tcp,
    /// The first of them.
    first: Option<(Transmit, Trial)>,
}

impl Endpoint {
    /// Opens a connection from `sport` to `dport`; the SYN is then taken with [`poll_transmit`](Endpoint::poll_transmit).
    pub fn connect(cfg: &Config, sport: u16, dport: u16, isn: u32, now: Time) -> Endpoint {
        let mut e = Endpoint::new(cfg, sport, dport, isn, State::SynSent, now);
        if cfg.stack == Stack::Ns2 {
            e.one_way = Some(Box::new(OneWay::new(&e.opening(isn), None, now)));
            return e;
        }
        e.rx.select_initial_window(u32::from(e.cfg.announced().max(88)), e.cfg.window_scaling);
        e.tx.todo.syn = true;
        e.tx.mib.one(Tx::ActiveOpens);
        e
    }

    /// What a listening socket does with a SYN: an endpoint in [`State::SynReceived`], its SYN-ACK ready.
    /// `None` when `syn` is not a SYN (answer it with [`reset_for`](crate::reset_for)).
    pub fn accept(cfg: &Config, syn: &Tcp, isn: u32, now: Time) -> Option<Endpoint> {
        Endpoint::accept_marked(cfg, syn, EcnField::NotEct, isn, now)
    }

    /// The same of a SYN that came in a header with this ECN field.
    pub fn accept_marked(cfg: &Config, syn: &Tcp, ecn: EcnField, isn: u32, now: Time) -> Option<Endpoint> {
        if !syn.flags.has(TcpFlags::SYN) || syn.flags.has(TcpFlags::ACK) || syn.flags.has(TcpFlags::RST) {
            return None;
        }
        let mut e = Endpoint::new(cfg, syn.dport, syn.sport, isn, State::SynReceived, now);
        if cfg.stack == Stack::Ns2 {
            e.state = State::Established;
            e.one_way = Some(Box::new(OneWay::new(&e.opening(isn), Some(syn), now)));
            return Some(e);
        }
        e.read_syn(syn);
        e.listener_ecn(syn, ecn);
        let mss = u32::from(e.cfg.announced().max(88)) - if e.tx.stamps.ok() { 12 } else { 0 };
        e.rx.select_initial_window(mss, e.rcv_scaling);
        e.tx.todo.syn = true;
        Some(e)
    }

    fn new(cfg: &Config, sport: u16, dport: u16, isn: u32, state: State, now: Time) -> Endpoint {
        let mut cfg = cfg.clone();
        cfg.mss = cfg.mss.max(88);
        let mut clock = Clock::new(cfg.stack, cfg.hz, isn, now);
        if !cfg.timestamp_offset && cfg.stack.is_linux_6_12() {
            clock.without_offset();
        }
        let mut p = Params::new(cfg.stack, &clock);
        if let Some(span) = cfg.min_rto {
            p.rto_min = clock.span_to_jiffies(span).max(1);
        }
        let kernel = match cfg.stack {
            Stack::Linux(k) => k,
            Stack::WindowsXp => Kernel::V2_6_35,
            Stack::Ns2 => Kernel::V6_12,
        };
        p.tlp &= cfg.early_retrans;
        p.reordering = cfg.reordering.unwrap_or(p.reordering).max(1);
        let tx = Sender::new(&cfg, kernel, p, clock, isn);
        Endpoint {
            state,
            recovery: Recovery::new(&p, tx.space.iss(), (cfg.frto, cfg.recovery)),
            rx: Receiver::new(&cfg, clock.hz(), &p),
            tx,
            push: Push::default(),
            trial: Trial::Nothing,
            shrunk: false,
            frozen: false,
            aside: None,
            fast: None,
            ended_well: false,
            ect: false,
            chrono: Chronos::default(),
            synacks: 0,
            stack: cfg.stack,
            mss: cfg.mss,
            sport,
            dport,
            rcv_scaling: cfg.window_scaling,
            rehashed: 0,
            error: None,
            last_oow: 0,
            mstamp_us: clock.us,
            syn_sent_us: clock.us,
            data_ready: None,
            one_way: None,
            accurate: None,
            calls: cfg.calls.filter(|_| p.today).map(|c| Box::new(CallState::new(c, now))),
            cfg: Box::new(cfg),
        }
    }

    /// What an agent of ns-2 is told when it takes over.
    fn opening(&self, isn: u32) -> Opening {
        let cfg = &self.cfg;
        Opening {
            options: cfg.ns2,
            mss: u32::from(cfg.mss),
            time_wait: cfg.time_wait,
            ecn: (cfg.ecn.asks(), cfg.ecn != Ecn::Off),
            ports: (self.sport, self.dport),
            isn,
        }
    }

    // ---- What it is ----

    /// The connection's state.
    #[inline]
    pub fn state(&self) -> State {
        self.state
    }

    /// Why the connection ended, if it did not end by FIN.
    pub fn error(&self) -> Option<Error> {
        self.error
    }

    /// Congestion window, segments (also in [`info`](Endpoint::info), which costs more).
    #[inline]
    pub fn cwnd(&self) -> u32 {
        self.one_way.as_ref().map_or(self.tx.cc.cwnd(), |o| o.cwnd())
    }

    /// The congestion controller's own variables, for display.
    pub fn cc_info(&self) -> Vec<(&'static str, u64)> {
        self.tx.cc.info()
    }

    /// How often the flow has been given another hash, modulo 2^16: after each timeout Linux 6.12 tries another path, and another queue.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_write_timeout
    #[inline]
    pub fn rehashed(&self) -> u16 {
        self.rehashed
    }

    /// A number that is another one after every segment, in or out, and after every timeout: what [`Endpoint::info`] says of a sender changes with these alone, but for
    /// segments that a timer takes for lost and that cannot be sent yet.
    #[inline]
    pub fn moves(&self) -> u64 {
        let n = &self.tx.n;
        n.segs_in.wrapping_add(n.segs_out).wrapping_add(n.timeouts)
    }

    /// The part of [`Endpoint::info`] that a sampler keeps of a sender, for less work.
    pub fn gauges(&self) -> Gauges {
        if self.one_way.is_some() { Gauges::of(&self.info()) } else { self.own_gauges() }
    }
    #[inline]
    fn own_gauges(&self) -> Gauges {
        let (q, w, timers) = (&self.tx.q, self.tx.cc.window(), &self.tx.timers);
        let unit = |x: u32| {
            if self.tx.p.today { Span::from_us(i64::from(x)) } else { self.tx.clock.jiffies_to_span(x) }
        };
        Gauges {
            cwnd: w.cwnd,
            ssthresh: w.ssthresh,
            srtt: unit(timers.srtt8() >> 3),
            rttvar: unit(timers.mdev()),
            rto: self.tx.clock.jiffies_to_span(timers.rto()),
            sacked: q.sacked_out(),
            lost: q.lost_out(),
            pacing_rate: w.pacing_rate.unwrap_or_else(|| w.rate_of_window()),
            delivery_rate: match w.delivery_rate {
                (_, 0) => 0,
                (segments, us) => segments * u64::from(self.tx.space.mss()) * 1_000_000 / us,
            },
            total_retrans: self.tx.n.total_retrans,
        }
    }

    /// A snapshot of the variables.
    pub fn info(&self) -> TcpInfo {
        let g = self.own_gauges();
        let (space, q, w, timers) = (&self.tx.space, &self.tx.q, self.tx.cc.window(), &self.tx.timers);
        let (clock, n, first) = (&self.tx.clock, &self.tx.n, space.iss() + 1);
        let sent = space.nxt().min(space.written());
        let mut info = TcpInfo {
            state: match self.state {
                State::SynReceived if self.is_fast_child() && self.tx.space.is_closed() => State::FinWait1,
                state => state,
            },
            ca_state: w.state,
            cc: self.cfg.cc.name,
            cwnd: g.cwnd,
            ssthresh: g.ssthresh,
            srtt: g.srtt,
            rttvar: g.rttvar,
            min_rtt: (timers.min_rtt() != u32::MAX).then(|| Span::from_us(i64::from(timers.min_rtt()))),
            rto: g.rto,
            backoff: timers.backoff(),
            ato: clock.jiffies_to_span(self.rx.ato()),
            snd_mss: space.mss(),
            rcv_mss: self.rx.rcv_mss(),
            unacked: q.packets_out(),
            sacked: g.sacked,
            lost: g.lost,
            retrans: q.retrans_out(),
            pacing_rate: g.pacing_rate,
            delivery_rate: g.delivery_rate,
            reordering: self.recovery.reordering(),
            snd_wnd: space.wnd(),
            rcv_wnd: self.rx.offered(),
            sndbuf: self.tx.unsent.size(),
            rcvbuf: self.rx.rcvbuf(),
            notacked_bytes: space.written().saturating_sub(space.una().max(first)),
            notsent_bytes: space.written() - sent.max(first),
            bytes_acked: space.una().min(space.written()).saturating_sub(first),
            bytes_received: self.rx.readable() + self.rx.bytes_read(),
            segs_out: n.segs_out,
            segs_in: n.segs_in,
            total_retrans: g.total_retrans,
            bytes_retrans: n.bytes_retrans,
            timeouts: n.timeouts,
            recoveries: n.recoveries,
            dsack_dups: n.dsack_dups,
            delivered: w.delivered,
            delivered_ce: w.delivered_ce,
            ecn: self.accurate_info(),
            syn_data: self.syn_data_acked(),
            fastopen_client_fail: self.fast_fail(),
        };
        if let Some(o) = &self.one_way {
            o.show(&mut info);
        }
        info
    }

    /// A queue that the segments leave through paces from now on: segments are handed over with their times of departure
    /// ([`Transmit::departs`]) and no timer holds them back here. Controllers that name no rate are paced then as well, at twice the
    /// window per round trip in slow start and 1.2 times later. Of no effect in profiles other than Linux 6.12.
    //= linux v6.12 net/sched/sch_fq.c fq_classify
    pub fn paced_below(&mut self) {
        self.tx.cc.set_paced_below(self.cfg.stack.is_linux_6_12());
    }

    // ---- Within ----

    /// Looks at the clock.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_mstamp_refresh
    #[inline]
    fn touch(&mut self, now: Time) {
        self.tx.clock.set(now);
        self.mstamp_us = self.tx.clock.us;
        self.push.mss = 0;
    }

    /// The connection is over.
    fn done(&mut self, error: Option<Error>) {
        self.count_end(error);
        self.state = State::Closed;
        self.error = self.error.or(error);
        self.tx.todo = Todo::default();
        self.tx.timers.stop();
        self.rx.ack_sent();
        self.one_way = None;
    }

    /// An ACK is to be sent at once.
    fn ack_at_once(&mut self) {
        self.rx.ack_at_once();
        self.tx.todo.ack_check = true;
    }

    /// What the receiving half needs to time its ACKs.
    #[inline]
    fn timing(&self) -> Timing {
        let srtt8 = self.tx.timers.srtt8();
        let some = srtt8 > 0;
        let (srtt, srtt_us) = if self.tx.p.today {
            let us = srtt8 >> 3;
            (self.tx.clock.us_to_jiffies(u64::from(us)), us)
        } else {
            let j = srtt8 >> 3;
            (j, j * self.tx.clock.jiffy_us())
        };
        Timing { srtt: some.then_some(srtt), srtt_us: some.then_some(srtt_us) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::mem::offset_of;

    #[test]
    fn what_each_segment_needs_lies_together() {
        // What recovery, retransmission and set-up need stands behind, or elsewhere. Thirty-two lines of a cache.
        assert!(size_of::<Endpoint>() <= 2048, "{}", size_of::<Endpoint>());
        let (rx, tx) = (offset_of!(Endpoint, rx), offset_of!(Endpoint, tx));
        assert!(rx <= 112 && tx <= 656, "{rx} {tx}");
        assert!(offset_of!(Endpoint, recovery) < offset_of!(Endpoint, rcv_scaling));
        let cold = [offset_of!(Endpoint, error), offset_of!(Endpoint, aside), offset_of!(Endpoint, cfg)];
        assert!(cold.iter().all(|&at| at >= offset_of!(Endpoint, rcv_scaling)));
    }
}
