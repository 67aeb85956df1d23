//! Sockets as a machine tells of them to `ss`: what `sock_diag` answers for each, as plain data.
//!
//! Follows: linux v6.12 include/uapi/linux/inet_diag.h `struct inet_diag_msg`, include/uapi/linux/tcp.h `struct tcp_info`.
//! Differs: no inode and no cookie of Linux's; both are the socket's number among those that its machine has had.

use std::net::IpAddr;

/// What a socket speaks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Protocol {
    /// A raw socket of this protocol.
    Raw(u8),
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
}

/// States, numbered as the kernel numbers them (include/net/tcp_states.h); datagrams' sockets know two of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SocketState {
    /// Open both ways; of datagrams: connected.
    Established = 1,
    /// SYN sent.
    SynSent,
    /// SYN received.
    SynRecv,
    /// Closed here.
    FinWait1,
    /// The same, and acknowledged.
    FinWait2,
    /// Waits for strays.
    TimeWait,
    /// Not connected.
    Close,
    /// Closed by the peer.
    CloseWait,
    /// Closed by both, by the peer first.
    LastAck,
    /// Waits for connections.
    Listen,
    /// Closed by both at once.
    Closing,
}

/// What a timer is for (`idiag_timer`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SocketTimer {
    /// A retransmission, or a probe for losses.
    On,
    /// The end of TIME-WAIT.
    TimeWait,
    /// Probes of a closed window.
    Persist,
}

/// A socket's memory, bytes (`SK_MEMINFO_*`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SocketMemory {
    /// Received and not read.
    pub rmem: u64,
    /// `sk_rcvbuf`.
    pub rcvbuf: u64,
    /// Sent and still in the host (`sk_wmem_alloc`).
    pub wmem: u64,
    /// `sk_sndbuf`.
    pub sndbuf: u64,
    /// Reserved and not used (`sk_forward_alloc`).
    pub forward: u64,
    /// Written and not acknowledged (`sk_wmem_queued`).
    pub queued: u64,
    /// Packets that were dropped (`sk_drops`).
    pub drops: u32,
}

/// What a congestion control tells of itself (`union tcp_cc_info`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ControlDiag {
    /// Of Vegas's kind: whether it is at work, and a round trip, us.
    Vegas(bool, u32),
    /// DCTCP that works: the mark before, alpha, marked bytes and all bytes of this round trip. `None`: it falls back to Reno.
    Dctcp(Option<[u32; 4]>),
    /// BBR: bytes a second, the least round trip in us, gains in 256ths.
    Bbr(u64, u32, u32, u32),
}

/// What TCP tells of a connection (`struct tcp_info`); names and units as there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)] // Each is the member `tcpi_…` of this name.
pub struct TcpDiag {
    pub timestamps: bool,
    pub sack: bool,
    pub ecn: bool,
    pub ecn_seen: bool,
    /// The data in the SYN was taken (TCP Fast Open).
    pub fastopen: bool,
    /// Name of the congestion control.
    pub cc: &'static str,
    /// Shifts of the peer's windows and of ours.
    pub wscale: Option<(u8, u8)>,
    pub rto_us: u32,
    pub backoff: u8,
    pub rtt_us: u32,
    pub rttvar_us: u32,
    pub ato_us: u32,
    pub snd_mss: u32,
    pub pmtu: u32,
    pub rcv_mss: u32,
    pub advmss: u32,
    pub snd_cwnd: u32,
    pub snd_ssthresh: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u64,
    pub segs_in: u64,
    pub data_segs_out: u64,
    pub data_segs_in: u64,
    pub control: Option<ControlDiag>,
    pub last_data_sent_ms: u32,
    pub last_data_recv_ms: u32,
    pub last_ack_recv_ms: u32,
    /// Bytes a second; `u64::MAX`: not known yet.
    pub pacing_rate: u64,
    pub delivery_rate: u64,
    pub app_limited: bool,
    pub delivered: u64,
    pub delivered_ce: u64,
    pub busy_us: u64,
    pub rwnd_limited_us: u64,
    pub sndbuf_limited_us: u64,
    pub unacked: u32,
    pub retrans: u32,
    pub total_retrans: u64,
    pub lost: u32,
    pub sacked: u32,
    pub dsack_dups: u64,
    pub reordering: u32,
    pub reord_seen: u32,
    pub rcv_rtt_us: u32,
    pub rcv_space: u32,
    pub rcv_ssthresh: u32,
    pub notsent: u64,
    /// `u32::MAX`: not known yet.
    pub min_rtt_us: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
}

impl Default for TcpDiag {
    fn default() -> TcpDiag {
        TcpDiag {
            timestamps: false,
            sack: false,
            ecn: false,
            ecn_seen: false,
            fastopen: false,
            cc: "",
            wscale: None,
            rto_us: 0,
            backoff: 0,
            rtt_us: 0,
            rttvar_us: 0,
            ato_us: 0,
            snd_mss: 0,
            pmtu: 0,
            rcv_mss: 0,
            advmss: 0,
            snd_cwnd: 0,
            snd_ssthresh: u32::MAX,
            bytes_sent: 0,
            bytes_retrans: 0,
            bytes_acked: 0,
            bytes_received: 0,
            segs_out: 0,
            segs_in: 0,
            data_segs_out: 0,
            data_segs_in: 0,
            control: None,
            last_data_sent_ms: 0,
            last_data_recv_ms: 0,
            last_ack_recv_ms: 0,
            pacing_rate: u64::MAX,
            delivery_rate: 0,
            app_limited: false,
            delivered: 0,
            delivered_ce: 0,
            busy_us: 0,
            rwnd_limited_us: 0,
            sndbuf_limited_us: 0,
            unacked: 0,
            retrans: 0,
            total_retrans: 0,
            lost: 0,
            sacked: 0,
            dsack_dups: 0,
            reordering: 3,
            reord_seen: 0,
            rcv_rtt_us: 0,
            rcv_space: 0,
            rcv_ssthresh: 0,
            notsent: 0,
            min_rtt_us: u32::MAX,
            rcv_ooopack: 0,
            snd_wnd: 0,
        }
    }
}

/// One socket.
#[derive(Clone, PartialEq, Debug)]
pub struct Socket {
    /// What it speaks.
    pub protocol: Protocol,
    /// Its state.
    pub state: SocketState,
    /// Bytes to be read; of a listener: connections to be taken.
    pub recv_q: u64,
    /// Bytes not acknowledged, or still here; of a listener: how many connections may wait.
    pub send_q: u64,
    /// Its own address and port.
    pub local: (IpAddr, u16),
    /// The peer's.
    pub remote: (IpAddr, u16),
    /// A socket of IPv6 that takes IPv4 too.
    pub dual: bool,
    /// The device it is bound to; 0: to none.
    pub bound: u32,
    /// `SO_MARK`.
    pub mark: u32,
    /// Type of service, or traffic class.
    pub tos: u8,
    /// `SO_PRIORITY`.
    pub priority: u32,
    /// Its number; 0: it has left its program, or has none yet.
    pub ino: u32,
    /// What tells it from others.
    pub cookie: u32,
    /// Program, process and file of its own.
    pub user: Option<(String, u32, u32)>,
    /// Closed for reading (1), for writing (2); `None` where a socket is not one in full: a request, one in TIME-WAIT.
    pub shutdown: Option<u8>,
    /// A timer that runs: what for, how many milliseconds still, how often it has run out.
    pub timer: Option<(SocketTimer, u32, u32)>,
    /// Its memory, of a socket in full.
    pub memory: Option<SocketMemory>,
    /// What TCP tells.
    pub tcp: Option<Box<TcpDiag>>,
}
