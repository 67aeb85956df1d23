//! One side of one connection: its variables, and what the outside calls.
//!
//! Follows: linux v6.12 `struct tcp_sock`, `struct inet_connection_sock`, net/ipv4/tcp.c; v2.6.35 likewise.
//! Differs: one segment a time everywhere (no TSO, no GRO, as with `gso_max_segs 1`); no urgent data, no Fast Open, no
//! keepalive, no path MTU discovery; payload has a length and no contents.

pub(crate) mod ack;
pub(crate) mod attempt;
pub(crate) mod handshake;
pub(crate) mod output;
pub(crate) mod retransmit;
pub(crate) mod socket;

use crate::endpoint::attempt::Trial;
use crate::cc::{CongestionControl, Window};
use crate::clock::Clock;
use crate::config::{Config, Stack};
use crate::recv::delack::Timing;
use crate::info::{CaState, Error, State, TcpInfo};
use crate::minmax::WindowedMin;
use crate::ns2::OneWay;
use crate::params::Params;
use crate::recovery::rack::Rack;
use crate::recv::Receiver;
use crate::sender::rtt::Rtt;
use crate::sender::rtx::RtxQueue;
use crate::recovery::sack::SackCache;
use crate::sender::sendq::SendQueue;
use crate::seq;
use crate::sender::timers::Timers;
use penstock_model::{Kernel, Span, Time};
use penstock_packet::{Tcp, TcpFlags};
use std::collections::VecDeque;

/// The ECN field of the IP header that a segment came in (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcnField {
    /// 00: its sender does not speak ECN for it.
    NotEct,
    /// 01 or 10: it may be marked.
    Ect,
    /// 11: it was marked on the way.
    Ce,
}

impl EcnField {
    /// The last two bits of the header's byte for type of service.
    pub const fn of_tos(tos: u8) -> EcnField {
        match tos & 3 {
            0 => EcnField::NotEct,
            3 => EcnField::Ce,
            _ => EcnField::Ect,
        }
    }
}

/// A segment to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Header with its options.
    pub tcp: Tcp,
    /// Payload, bytes.
    pub payload_len: u32,
    /// To be marked ECT(0) in the IP header (RFC 3168).
    pub ect: bool,
    /// Whether it was sent before.
    pub retransmission: bool,
    /// When it is to leave (`skb->tstamp`): now, or later for a queue that paces ([`Endpoint::paced_below`]) to keep; [`Time::ZERO`]
    /// where nobody says.
    pub departs: Time,
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
    pub(crate) cfg: Config,
    pub(crate) p: Params,
    pub(crate) sport: u16,
    pub(crate) dport: u16,
    // Agreed on in the handshake
    pub(crate) ts_ok: bool,
    pub(crate) sack_ok: bool,
    pub(crate) ecn_ok: bool,
    pub(crate) snd_wscale: u8,
    pub(crate) rcv_scaling: bool,
    /// Payload a full segment carries (`mss_cache`).
    pub(crate) mss: u32,
    /// The same without regard to small windows.
    pub(crate) mss_full: u32,
    pub(crate) syn_sent_us: u64,
    // Variables
    pub(crate) clock: Clock,
    /// When the connection looked at the clock last, microseconds (`tcp_mstamp`).
    pub(crate) mstamp_us: u64,
    pub(crate) state: State,
    pub(crate) error: Option<Error>,
    pub(crate) todo: Todo,
    /// Sent in the midst of a segment's processing.
    pub(crate) outbox: Option<(Transmit, Trial)>,
    /// The retransmission that is due probes a window that the receiver has taken back.
    pub(crate) shrunk: bool,
    /// What has been handed over last: the host may refuse it until the next is asked for.
    pub(crate) trial: Trial,
    /// The header that retransmissions bear which go in the midst of a segment's processing.
    pub(crate) frozen: Option<Tcp>,
    // Sending
    pub(crate) iss: u64,
    pub(crate) snd_una: u64,
    pub(crate) snd_nxt: u64,
    /// End of what was written, FIN not counted.
    pub(crate) write_seq: u64,
    pub(crate) fin_queued: bool,
    pub(crate) fin_sent: bool,
    pub(crate) snd_wnd: u32,
    pub(crate) snd_wl1: u64,
    pub(crate) max_window: u32,
    /// End of the last segment below full size.
    pub(crate) snd_sml: u64,
    /// Where the last PSH mark stands.
    pub(crate) pushed_seq: u64,
    /// Ends of segments that carry PSH, not yet sent (2.6.35).
    pub(crate) push_marks: VecDeque<u64>,
    /// What was written and not sent (6.12).
    pub(crate) sendq: SendQueue,
    /// Bytes that a call to write had taken when it began to wait for room; 0: none waits.
    pub(crate) send_waits: u64,
    /// Payload of a segment in the push under way; 0: none is.
    pub(crate) pushing_mss: u32,
    pub(crate) q: RtxQueue,
    // Send buffer
    pub(crate) sndbuf: u32,
    pub(crate) skb_room: u64,
    pub(crate) nospace: bool,
    /// When data came last that may be read (`sk_data_ready`).
    pub(crate) data_ready: Option<Time>,
    /// Memory of what the host's queues hold of ours, bytes (`sk_wmem_alloc`).
    pub(crate) in_device: u64,
    /// Segments with data handed to the host so far, and those of them that have left it, modulo 2^32.
    pub(crate) host_given: u32,
    pub(crate) host_freed: u32,
    /// What was handed over last is among them.
    pub(crate) trial_in_host: bool,
    /// Where a long write has pushed on its way, as far as that has not been done yet.
    pub(crate) pushes: VecDeque<u64>,
    /// A write has ended in a short buffer, which may wait (`tcp_autocorking`).
    pub(crate) corking: bool,
    /// When the reordering window has last run out and let segments be retransmitted.
    pub(crate) reo_at: Time,
    /// A write's segments go one by one as they are full (`tcp_push_one`), each a push of its own.
    pub(crate) push_ones: bool,
    /// Segments of the push that is under way which went before the window began to fall.
    pub(crate) sent_before: u32,
    /// How often the socket has drawn its hash anew.
    pub(crate) rehashed: u16,
    /// Room has come free that was waited for (`TSQ_QUEUED`).
    pub(crate) tsq: bool,
    /// How often that was heeded at this instant.
    pub(crate) tsq_rounds: u32,
    pub(crate) tsq_at: Time,
    /// That held sending back (`TSQ_THROTTLED`).
    pub(crate) throttled: bool,
    /// When pacing lets the next segment go.
    pub(crate) pace_at: Option<Time>,
    // Congestion control
    pub(crate) cc: Box<dyn CongestionControl>,
    pub(crate) w: Window,
    pub(crate) ca: CaState,
    pub(crate) high_seq: u64,
    pub(crate) prior_ssthresh: u32,
    pub(crate) undo_marker: Option<u64>,
    /// Retransmissions not yet reported as duplicates; -1: none made.
    pub(crate) undo_retrans: i64,
    /// Timestamp value of the first retransmission of the episode.
    pub(crate) retrans_stamp: Option<u32>,
    pub(crate) retrans_stamp_us: u64,
    pub(crate) reordering: u32,
    pub(crate) reord_seen: bool,
    pub(crate) prr_delivered: u32,
    pub(crate) prr_out: u32,
    /// F-RTO is under way (6.12).
    pub(crate) frto: bool,
    /// The step of F-RTO, 0 for none, and the end of what was sent before it (2.6.35).
    pub(crate) frto_counter: u8,
    pub(crate) frto_highmark: Option<u64>,
    /// Segments below this were looked at for their age (2.6.35 `scoreboard_skb_hint`).
    pub(crate) aged_up_to: u64,
    pub(crate) sack_reneg: bool,
    pub(crate) sack_cache: SackCache,
    pub(crate) rack: Rack,
    pub(crate) tlp_high: Option<u64>,
    pub(crate) tlp_retrans: bool,
    pub(crate) lost_retrans_low: u64,
    // Congestion window validation
    pub(crate) is_cwnd_limited: bool,
    pub(crate) max_packets_out: u32,
    pub(crate) cwnd_usage_seq: u64,
    pub(crate) cwnd_used: u32,
    pub(crate) cwnd_stamp: u64,
    pub(crate) sent_pkts: u32,
    // Round-trip time and timers; jiffies where not said otherwise
    pub(crate) rtt: Rtt,
    pub(crate) min_rtt: WindowedMin,
    pub(crate) rto: u32,
    pub(crate) backoff: u8,
    pub(crate) retransmits: u32,
    pub(crate) total_rto: u32,
    pub(crate) probes_out: u32,
    pub(crate) rcv_tstamp: u64,
    pub(crate) timers: Timers,
    // Timestamps
    pub(crate) ts_recent: u32,
    pub(crate) ts_recent_us: u64,
    pub(crate) rcv_tsecr: Option<u32>,
    // ECN
    pub(crate) demand_cwr: bool,
    pub(crate) queue_cwr: bool,
    /// A segment that may be marked has come (`TCP_ECN_SEEN`).
    pub(crate) ecn_seen: bool,
    /// The segment before was marked (DCTCP).
    pub(crate) marked: bool,
    // Receiving
    pub(crate) rx: Receiver,
    // Counters
    pub(crate) n: Counters,
    /// ns-2's agent and sink, which then do everything.
    pub(crate) one_way: Option<Box<OneWay>>,
}

/// What [`Endpoint::poll_transmit`] has to look at.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Todo {
    /// SYN or SYN-ACK.
    pub syn: bool,
    /// It is sent again.
    pub syn_again: bool,
    /// Lost segments, as the window allows.
    pub rexmit: bool,
    /// The front segment, whatever the window.
    pub rexmit_front: bool,
    /// New data, as the windows allow.
    pub push: bool,
    /// Small segments may go (the call that pushes ends the data).
    pub push_all: bool,
    /// F-RTO: new data first, then lost segments.
    pub frto_new: bool,
    /// Tail loss probe: one new segment, whatever the congestion window.
    pub probe_new: bool,
    /// Tail loss probe: the last segment again.
    pub probe_last: bool,
    /// Zero-window probe.
    pub probe0: bool,
    /// An ACK by itself, before any data: the last of the handshake.
    pub ack_first: bool,
    /// Consider whether an ACK is due.
    pub ack_check: bool,
    /// An ACK for what came before a mark, or the end of marks (DCTCP): up to where, and what it echoes.
    pub ack_before: Option<(u64, bool)>,
    /// RST.
    pub reset: bool,
}

/// Counters for [`TcpInfo`].
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub segs_out: u64,
    pub segs_in: u64,
    pub data_segs_out: u64,
    pub total_retrans: u64,
    pub bytes_retrans: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub dsack_dups: u64,
    pub delivered: u64,
    pub delivered_ce: u64,
}

impl Endpoint {
    /// Opens a connection from `sport` to `dport`; the SYN is then taken with [`poll_transmit`](Endpoint::poll_transmit).
    pub fn connect(cfg: &Config, sport: u16, dport: u16, isn: u32, now: Time) -> Endpoint {
        let mut e = Endpoint::new(cfg, sport, dport, isn, State::SynSent, now);
        if cfg.stack == Stack::Ns2 {
            e.one_way = Some(Box::new(OneWay::new(&e.cfg, sport, dport, isn, None, now)));
            return e;
        }
        e.rx.select_initial_window(u32::from(e.cfg.mss), e.cfg.window_scaling);
        e.todo.syn = true;
        e
    }

    /// What a listening socket does with a SYN: an endpoint in [`State::SynReceived`], its SYN-ACK ready.
    /// `None` when `syn` is not a SYN (answer it with [`reset_for`]).
    pub fn accept(cfg: &Config, syn: &Tcp, isn: u32, now: Time) -> Option<Endpoint> {
        if !syn.flags.has(TcpFlags::SYN) || syn.flags.has(TcpFlags::ACK) || syn.flags.has(TcpFlags::RST) {
            return None;
        }
        let mut e = Endpoint::new(cfg, syn.dport, syn.sport, isn, State::SynReceived, now);
        if cfg.stack == Stack::Ns2 {
            e.state = State::Established;
            e.one_way = Some(Box::new(OneWay::new(&e.cfg, syn.dport, syn.sport, isn, Some(syn), now)));
            return Some(e);
        }
        e.read_syn(syn);
        let mss = u32::from(e.cfg.mss) - if e.ts_ok { 12 } else { 0 };
        e.rx.select_initial_window(mss, e.rcv_scaling);
        e.todo.syn = true;
        Some(e)
    }

    fn new(cfg: &Config, sport: u16, dport: u16, isn: u32, state: State, now: Time) -> Endpoint {
        let mut cfg = cfg.clone();
        cfg.mss = cfg.mss.max(88);
        let clock = Clock::new(cfg.stack, cfg.hz, isn, now);
        let mut p = Params::new(cfg.stack, &clock);
        if let Some(span) = cfg.min_rto {
            p.rto_min = clock.span_to_jiffies(span).max(1);
        }
        let kernel = match cfg.stack {
            Stack::Linux(k) => k,
            Stack::WindowsXp => Kernel::V2_6_35,
            Stack::Ns2 => Kernel::V6_12,
        };
        let iss = seq::first(isn);
        let mut w = Window::new(clock.hz(), !p.today);
        w.seed = isn.wrapping_mul(0x9e37_79b1);
        w.cwnd_clamp = cfg.cwnd_clamp.unwrap_or(u32::MAX).max(1);
        p.reordering = cfg.reordering.unwrap_or(p.reordering).max(1);
        Endpoint {
            p,
            sport,
            dport,
            ts_ok: cfg.timestamps,
            sack_ok: cfg.sack,
            ecn_ok: false,
            snd_wscale: 0,
            rcv_scaling: cfg.window_scaling,
            mss: 536,
            mss_full: 536,
            syn_sent_us: clock.us,
            mstamp_us: clock.us,
            clock,
            state,
            error: None,
            todo: Todo::default(),
            outbox: None,
            shrunk: false,
            trial: Trial::Nothing,
            frozen: None,
            host_given: 0,
            host_freed: 0,
            trial_in_host: false,
            tsq: false,
            tsq_rounds: 0,
            tsq_at: Time::ZERO,
            corking: false,
            reo_at: Time::ZERO,
            push_ones: false,
            sent_before: 0,
            rehashed: 0,
            pushes: VecDeque::new(),
            iss,
            snd_una: iss,
            snd_nxt: iss,
            write_seq: iss + 1,
            fin_queued: false,
            fin_sent: false,
            snd_wnd: 0,
            snd_wl1: 0,
            max_window: 0,
            snd_sml: iss,
            pushed_seq: iss,
            push_marks: VecDeque::new(),
            sendq: SendQueue::default(),
            send_waits: 0,
            pushing_mss: 0,
            q: RtxQueue::new(),
            sndbuf: cfg.sndbuf.initial().min(1 << 30),
            skb_room: 0,
            nospace: false,
            data_ready: None,
            in_device: 0,
            throttled: false,
            pace_at: None,
            cc: (cfg.cc.build)(kernel),
            w,
            ca: CaState::Open,
            high_seq: iss,
            prior_ssthresh: 0,
            undo_marker: None,
            undo_retrans: -1,
            retrans_stamp: None,
            retrans_stamp_us: 0,
            reordering: p.reordering,
            reord_seen: false,
            prr_delivered: 0,
            prr_out: 0,
            frto: false,
            frto_counter: 0,
            frto_highmark: None,
            aged_up_to: 0,
            sack_reneg: false,
            sack_cache: SackCache::default(),
            rack: Rack::new(),
            tlp_high: None,
            tlp_retrans: false,
            lost_retrans_low: 0,
            is_cwnd_limited: false,
            max_packets_out: 0,
            cwnd_usage_seq: iss,
            cwnd_used: 0,
            cwnd_stamp: clock.jiffies,
            sent_pkts: 0,
            rtt: Rtt::new(if p.today { p.rto_min.saturating_mul(clock.jiffy_us()) } else { p.rto_min }),
            min_rtt: WindowedMin::new(),
            rto: p.rto_init,
            backoff: 0,
            retransmits: 0,
            total_rto: 0,
            probes_out: 0,
            rcv_tstamp: clock.jiffies,
            timers: Timers::new(),
            ts_recent: 0,
            ts_recent_us: 0,
            rcv_tsecr: None,
            demand_cwr: false,
            queue_cwr: false,
            ecn_seen: false,
            marked: false,
            rx: Receiver::new(&cfg, clock.hz(), p.rto_min),
            n: Counters::default(),
            one_way: None,
            cfg,
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
        self.one_way.as_ref().map_or(self.w.cwnd, |o| o.cwnd())
    }

    /// The congestion controller's own variables, for display.
    pub fn cc_info(&self) -> Vec<(&'static str, u64)> {
        self.cc.info()
    }

    /// How often the flow has been given another hash, modulo 2^16: after each timeout Linux 6.12 tries another path, and another queue.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_write_timeout
    #[inline]
    pub fn rehashed(&self) -> u16 {
        self.rehashed
    }

    /// A snapshot of the variables.
    pub fn info(&self) -> TcpInfo {
        let unit = |x: u32| {
            if self.p.today { Span::from_us(i64::from(x)) } else { self.clock.jiffies_to_span(x) }
        };
        let sent = self.snd_nxt.min(self.write_seq);
        let mut info = TcpInfo {
            state: self.state,
            ca_state: self.ca,
            cc: self.cfg.cc.name,
            cwnd: self.w.cwnd,
            ssthresh: self.w.ssthresh,
            srtt: unit(self.rtt.srtt >> 3),
            rttvar: unit(self.rtt.mdev()),
            min_rtt: (self.min_rtt.value() != u32::MAX)
                .then(|| Span::from_us(i64::from(self.min_rtt.value()))),
            rto: self.clock.jiffies_to_span(self.rto),
            backoff: self.backoff,
            ato: self.clock.jiffies_to_span(self.rx.ato),
            snd_mss: self.mss,
            rcv_mss: self.rx.rcv_mss,
            unacked: self.q.packets_out(),
            sacked: self.q.sacked_out,
            lost: self.q.lost_out,
            retrans: self.q.retrans_out,
            pacing_rate: self.w.pacing_rate.unwrap_or_else(|| self.w.rate_of_window()),
            delivery_rate: match self.w.delivery_rate {
                (_, 0) => 0,
                (segments, us) => segments * u64::from(self.mss) * 1_000_000 / us,
            },
            reordering: self.reordering,
            snd_wnd: self.snd_wnd,
            rcv_wnd: self.rx.rcv_wnd,
            sndbuf: self.sndbuf,
            rcvbuf: self.rx.rcvbuf,
            notacked_bytes: self.write_seq.saturating_sub(self.snd_una.max(self.iss + 1)),
            notsent_bytes: self.write_seq - sent.max(self.iss + 1),
            bytes_acked: self.snd_una.min(self.write_seq).saturating_sub(self.iss + 1),
            bytes_received: self.rx.readable() + self.rx.bytes_read(),
            segs_out: self.n.segs_out,
            segs_in: self.n.segs_in,
            total_retrans: self.n.total_retrans,
            bytes_retrans: self.n.bytes_retrans,
            timeouts: self.n.timeouts,
            recoveries: self.n.recoveries,
            dsack_dups: self.n.dsack_dups,
            delivered: self.n.delivered,
            delivered_ce: self.n.delivered_ce,
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
        self.w.paced_below = self.cfg.stack.is_linux_6_12();
    }

    // ---- Within ----

    /// Looks at the clock.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_mstamp_refresh
    #[inline]
    pub(crate) fn touch(&mut self, now: Time) {
        self.clock.set(now);
        self.mstamp_us = self.clock.us;
        self.pushing_mss = 0;
    }

    /// The connection is over.
    pub(crate) fn done(&mut self, error: Option<Error>) {
        self.state = State::Closed;
        self.error = self.error.or(error);
        self.todo = Todo::default();
        self.timers = Timers::new();
        self.rx.ack_sent();
        self.one_way = None;
        self.pace_at = None;
    }

    /// What the receiving half needs to time its ACKs.
    #[inline]
    pub(crate) fn timing(&self) -> Timing {
        let some = self.rtt.srtt > 0;
        let (srtt, srtt_us) = if self.p.today {
            let us = self.rtt.srtt >> 3;
            (self.clock.us_to_jiffies(u64::from(us)), us)
        } else {
            let j = self.rtt.srtt >> 3;
            (j, j * self.clock.jiffy_us())
        };
        Timing { srtt: some.then_some(srtt), srtt_us: some.then_some(srtt_us) }
    }

    /// Shows the controller where things stand.
    #[inline]
    pub(crate) fn show_window(&mut self) {
        let w = &mut self.w;
        w.mss = self.mss;
        w.srtt_us8 =
            if self.p.today { self.rtt.srtt } else { self.rtt.srtt.saturating_mul(self.clock.jiffy_us()) };
        w.min_rtt_us = self.min_rtt.value();
        w.snd_una = self.snd_una;
        w.snd_nxt = self.snd_nxt;
        w.packets_out = self.q.packets_out();
        w.open = self.ca == CaState::Open;
        w.now_us = self.clock.us;
        w.jiffies = self.clock.jiffies;
        w.state = self.ca;
        w.ecn_ok = self.ecn_ok;
        w.in_flight = self.q.in_flight();
        w.delivered = self.n.delivered;
        w.delivered_ce = self.n.delivered_ce;
        w.lost = self.q.lost;
    }

    /// The next state of recovery.
    //= linux v6.12 net/ipv4/tcp_cong.c tcp_set_ca_state
    pub(crate) fn set_ca(&mut self, state: CaState) {
        self.show_window();
        self.cc.on_state(&mut self.w, state);
        self.ca = state;
    }

    /// The window at the start of a connection or after idleness, segments.
    //= linux v6.12 tcp_init_cwnd; v2.6.35 tcp_init_cwnd (RFC 3390)
    pub(crate) fn init_cwnd(&self) -> u32 {
        match (self.cfg.initial_window, self.cfg.stack) {
            (0, Stack::Linux(Kernel::V2_6_35)) => match self.mss {
                1461.. => 2,
                1096..=1460 => 3,
                _ => 4,
            },
            (0, Stack::Linux(_) | Stack::Ns2) => 10,
            (0, Stack::WindowsXp) => 2,
            (n, _) => n,
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
    Some(Transmit { tcp, payload_len: 0, ect: false, retransmission: false, departs: Time::ZERO })
}
