//! What a socket tells about itself: `struct tcp_info`, as `ss -ti` and `getsockopt(TCP_INFO)` give it.

use penstock_model::Span;

/// States of RFC 9293 section 3.3.2. (LISTEN belongs to whoever calls [`Endpoint::accept`](crate::Endpoint::accept).)
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// SYN sent.
    SynSent,
    /// SYN received, SYN-ACK sent.
    SynReceived,
    /// Open both ways.
    Established,
    /// Closed here, FIN not yet acknowledged.
    FinWait1,
    /// Closed here, FIN acknowledged; the peer may still send.
    FinWait2,
    /// The peer has closed; we may still send.
    CloseWait,
    /// Both closed at once, our FIN not yet acknowledged.
    Closing,
    /// Both closed, our FIN not yet acknowledged.
    LastAck,
    /// Both closed; waits for stray segments.
    TimeWait,
    /// Gone.
    Closed,
}

/// Linux's states of loss recovery (`enum tcp_ca_state`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum CaState {
    /// Nothing unusual.
    Open,
    /// Duplicate ACKs or SACKs seen, not yet a loss.
    Disorder,
    /// The window is being reduced for ECN or a full local queue.
    Cwr,
    /// Fast recovery.
    Recovery,
    /// After a retransmission timeout.
    Loss,
}

/// Why a connection ended otherwise than by FIN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Error {
    /// ECONNREFUSED: RST in answer to our SYN.
    Refused,
    /// ECONNRESET: RST on an open connection.
    Reset,
    /// EPIPE: data came, or was to be sent, after the connection was closed.
    BrokenPipe,
    /// ETIMEDOUT: too many retransmissions.
    TimedOut,
    /// EHOSTUNREACH and the like, reported by [`Endpoint::unreachable`](crate::Endpoint::unreachable).
    Unreachable,
}

/// A snapshot of one endpoint; names and units of `struct tcp_info`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TcpInfo {
    /// Connection state.
    pub state: State,
    /// Loss-recovery state.
    pub ca_state: CaState,
    /// Name of the congestion control.
    pub cc: &'static str,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments; `u32::MAX / 2` (0x7fffffff) until the first reduction.
    pub ssthresh: u32,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Span,
    /// Mean deviation of the round-trip time (`tcpi_rttvar`).
    pub rttvar: Span,
    /// Least round-trip time of the last 5 minutes; `None` before the first sample.
    pub min_rtt: Option<Span>,
    /// Retransmission timeout in force, its doublings included.
    pub rto: Span,
    /// Doublings of the timeout in force.
    pub backoff: u8,
    /// Delayed-ACK timeout.
    pub ato: Span,
    /// Segment size in use for sending, bytes of payload.
    pub snd_mss: u32,
    /// Estimate of the segment size the peer sends.
    pub rcv_mss: u32,
    /// Segments sent and not acknowledged.
    pub unacked: u32,
    /// Of these, reported by SACK.
    pub sacked: u32,
    /// Of these, held for lost.
    pub lost: u32,
    /// Of these, retransmitted and still out.
    pub retrans: u32,
    /// The rate at which segments may leave, bytes a second: what a controller paces by, or what Linux would (`tcpi_pacing_rate`).
    pub pacing_rate: u64,
    /// The latest rate at which segments arrived, payload bytes a second; 0 before the first sample (`tcpi_delivery_rate`).
    pub delivery_rate: u64,
    /// Degree of reordering assumed, segments.
    pub reordering: u32,
    /// Window the peer offers, bytes.
    pub snd_wnd: u32,
    /// Window offered to the peer, bytes.
    pub rcv_wnd: u32,
    /// `sk_sndbuf`, bytes.
    pub sndbuf: u32,
    /// `sk_rcvbuf`, bytes.
    pub rcvbuf: u32,
    /// Bytes written and not yet acknowledged (SIOCOUTQ).
    pub notacked_bytes: u64,
    /// Bytes written and not yet sent for the first time (SIOCOUTQNSD).
    pub notsent_bytes: u64,
    /// Bytes acknowledged by the peer.
    pub bytes_acked: u64,
    /// Bytes received in order.
    pub bytes_received: u64,
    /// Segments sent, with retransmissions.
    pub segs_out: u64,
    /// Segments received.
    pub segs_in: u64,
    /// Segments retransmitted.
    pub total_retrans: u64,
    /// Payload bytes retransmitted.
    pub bytes_retrans: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub recoveries: u64,
    /// Duplicates the peer reported (DSACK).
    pub dsack_dups: u64,
    /// Segments delivered, as far as is known here.
    pub delivered: u64,
    /// Of these, with ECN marks.
    pub delivered_ce: u64,
    /// What was agreed on of ECN, and what Accurate ECN counts.
    pub ecn: AccEcnInfo,
    /// The data in the SYN was taken (`TCPI_OPT_SYN_DATA`).
    pub syn_data: bool,
    /// Why Fast Open was of no use (`tcpi_fastopen_client_fail`).
    pub fastopen_client_fail: u8,
}

/// What was agreed on of ECN (`tcpi_ecn_mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnMode {
    /// Nothing.
    #[default]
    Off,
    /// That of RFC 3168.
    Classic,
    /// That of RFC 9768.
    Accurate,
    /// Accurate ECN was asked for, and not answered yet.
    Pending,
}

/// What Accurate ECN counts and thinks (Linux 7.2); all 0 without it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct AccEcnInfo {
    /// What was agreed on.
    pub mode: EcnMode,
    /// Marked segments that came (`tcpi_received_ce`).
    pub received_ce: u32,
    /// Payload bytes that came in ECT(1), ECT(0) and CE (`tcpi_received_e1_bytes`, …).
    pub received: [u32; 3],
    /// The same of what arrived there, as far as the peer has told (`tcpi_delivered_e1_bytes`, …).
    pub delivered: [u32; 3],
    /// What seems to be spoilt on the way: 1 and 2 the ACE field out and in, 4 and 8 the option out and in (`tcpi_accecn_fail_mode`).
    pub fail_mode: u8,
    /// The peer's option: 0 not seen, 1 seen without counters, 2 with, 3 spoilt (`tcpi_accecn_opt_seen`).
    pub option_seen: u8,
}

/// The part of a [`TcpInfo`] that changes most; names and units as there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gauges {
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments.
    pub ssthresh: u32,
    /// Smoothed round-trip time.
    pub srtt: Span,
    /// Its mean deviation.
    pub rttvar: Span,
    /// Retransmission timeout.
    pub rto: Span,
    /// Segments that SACK has reported.
    pub sacked: u32,
    /// Segments that are held for lost.
    pub lost: u32,
    /// The rate at which segments leave, bytes a second.
    pub pacing_rate: u64,
    /// The rate at which they arrived of late, bytes a second.
    pub delivery_rate: u64,
    /// Segments retransmitted so far.
    pub total_retrans: u64,
}

impl Gauges {
    /// What of a snapshot belongs to it.
    pub(crate) fn of(info: &TcpInfo) -> Gauges {
        Gauges {
            cwnd: info.cwnd,
            ssthresh: info.ssthresh,
            srtt: info.srtt,
            rttvar: info.rttvar,
            rto: info.rto,
            sacked: info.sacked,
            lost: info.lost,
            pacing_rate: info.pacing_rate,
            delivery_rate: info.delivery_rate,
            total_retrans: info.total_retrans,
        }
    }
}

/// Counters for [`TcpInfo`].
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Counters {
    pub segs_out: u64,
    pub segs_in: u64,
    pub data_segs_out: u64,
    pub data_segs_in: u64,
    pub total_retrans: u64,
    pub bytes_retrans: u64,
    pub timeouts: u64,
    pub recoveries: u64,
    pub dsack_dups: u64,
    pub drops: u32,
}
