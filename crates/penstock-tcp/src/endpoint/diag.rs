//! What a connection tells `ss`.
//!
//! Follows: linux v6.12 net/ipv4/tcp.c `tcp_get_info`, net/ipv4/inet_diag.c `inet_sk_diag_fill`, `inet_twsk_diag_fill`, `inet_req_diag_fill`,
//! net/ipv4/tcp_diag.c `tcp_diag_get_info`, net/core/sock.c `sk_get_meminfo`.
//! Differs: `sk_wmem_alloc` counts data alone, no segments without any that are still in the host's queues.

use super::Endpoint;
use crate::info::State;
use crate::sender::timers::Pending;
use penstock_model::Time;
use penstock_model::sockets::{ControlDiag, SocketMemory, SocketState, SocketTimer, TcpDiag};

/// A page of memory, bytes: what sockets reserve.
const PAGE: u64 = 4_096;

/// Milliseconds before the 32 bits of `jiffies` wrap when the kernel starts.
//= linux v6.12 include/linux/jiffies.h INITIAL_JIFFIES
const INITIAL_MS: u32 = 300_000;

impl Endpoint {
    /// The connection's state.
    pub fn diag_state(&self) -> SocketState {
        match self.state {
            State::SynSent => SocketState::SynSent,
            State::SynReceived => SocketState::SynRecv,
            State::Established => SocketState::Established,
            State::FinWait1 => SocketState::FinWait1,
            State::FinWait2 => SocketState::FinWait2,
            State::CloseWait => SocketState::CloseWait,
            State::Closing => SocketState::Closing,
            State::LastAck => SocketState::LastAck,
            State::TimeWait => SocketState::TimeWait,
            State::Closed => SocketState::Close,
        }
    }
    /// What is to be read, and what was written and is not acknowledged; a FIN counts for a byte of either, as a SYN.
    //= linux v6.12 net/ipv4/tcp_diag.c tcp_diag_get_info
    pub fn diag_queues(&self) -> (u64, u64) {
        if self.one_way.is_some() {
            let info = self.info();
            return (self.readable(), info.notacked_bytes);
        }
        let space = &self.tx.space;
        let written = space.written() + u64::from(space.is_closed());
        // A program that has read all has read the FIN too.
        let readable = self.rx.readable();
        let fin = u64::from(self.rx.fin_received() && readable > 0);
        (readable + fin, written.saturating_sub(space.una()))
    }
    /// Closed for reading (1), for writing (2).
    pub fn diag_shutdown(&self) -> u8 {
        u8::from(self.rx.fin_received()) | if self.tx.space.is_closed() { 2 } else { 0 }
    }
    /// Whether the last segment was one of those that may be marked: the socket's type of service has that bit then.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_ecn_send
    pub fn diag_ect(&self) -> bool {
        self.ect
    }
    /// The timer that runs: what for, milliseconds, how often it has run out.
    pub fn diag_timer(&self, now: Time) -> Option<(SocketTimer, u32, u32)> {
        let mut clock = self.tx.clock;
        clock.set(now);
        let timers = &self.tx.timers;
        let ms =
            |expires: u64| (expires.saturating_sub(clock.jiffies) * 1_000 / u64::from(clock.hz())) as u32;
        if self.state == State::TimeWait {
            let mut end = clock;
            end.set(timers.wait_ends());
            return Some((SocketTimer::TimeWait, ms(end.jiffies), 0));
        }
        let left = ms(timers.expires());
        match timers.pending()? {
            Pending::Retrans | Pending::LossProbe | Pending::Reorder => {
                Some((SocketTimer::On, left, timers.retransmits()))
            }
            Pending::Probe0 => Some((SocketTimer::Persist, left, timers.probes_out())),
        }
    }
    /// Memory.
    //= linux v6.12 net/core/sock.c sk_get_meminfo
    //= linux v6.12 include/net/sock.h sk_mem_charge, sk_mem_uncharge: whole pages are reserved, and none stays free
    pub fn diag_memory(&self) -> SocketMemory {
        // The SYN has a buffer and no bytes.
        let syn = if self.state == State::SynSent {
            u64::from(self.tx.p.skb_overhead).saturating_sub(1)
        } else {
            0
        };
        let (rmem, queued) = (u64::from(self.rx.rmem()), self.tx.wmem() + syn);
        SocketMemory {
            rmem,
            rcvbuf: self.rx.rcvbuf().into(),
            wmem: self.tx.host.held(),
            sndbuf: self.tx.unsent.size().into(),
            forward: (rmem + queued).next_multiple_of(PAGE) - (rmem + queued),
            queued,
            drops: self.tx.n.drops + self.rx.drops(),
        }
    }
    /// Before the peer has announced what it takes: the size of segments that is gone by, by the MTU of the path and whether that is IPv6's.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_connect_init, tcp_mtu_to_mss; net/ipv6/tcp_ipv6.c tcp_v6_connect
    fn mss_of_syn(&self, pmtu: u32, six: bool) -> u32 {
        let (clamp, headers) = if six { (1_220, 60) } else { (536, 40) };
        let mss = pmtu.saturating_sub(headers).min(clamp).max(48);
        mss - if self.tx.stamps.ok() { 12 } else { 0 }
    }
    /// What `struct tcp_info` holds at `now`; `pmtu`: the MTU of the path, bytes, which is one of IPv6 or not.
    //= linux v6.12 net/ipv4/tcp.c tcp_get_info
    pub fn diag(&self, now: Time, pmtu: u32, six: bool) -> TcpDiag {
        let info = self.info();
        let us = |span: penstock_model::Span| (span.as_ns() / 1_000).clamp(0, u32::MAX.into()) as u32;
        let own = TcpDiag {
            cc: info.cc,
            rto_us: us(info.rto),
            backoff: info.backoff,
            rtt_us: us(info.srtt),
            rttvar_us: us(info.rttvar),
            snd_mss: info.snd_mss,
            pmtu,
            snd_cwnd: info.cwnd,
            snd_ssthresh: info.ssthresh,
            segs_out: info.segs_out,
            segs_in: info.segs_in,
            bytes_retrans: info.bytes_retrans,
            bytes_acked: info.bytes_acked,
            bytes_received: info.bytes_received,
            unacked: info.unacked,
            retrans: info.retrans,
            total_retrans: info.total_retrans,
            lost: info.lost,
            sacked: info.sacked,
            reordering: info.reordering,
            ..TcpDiag::default()
        };
        if self.one_way.is_some() {
            return own;
        }
        let mut clock = self.tx.clock;
        clock.set(now);
        let hz = clock.hz();
        let (space, n, w) = (&self.tx.space, &self.tx.n, self.tx.cc.window());
        let (first, opening) = (space.iss() + 1, self.state == State::SynSent);
        let written = space.written() + u64::from(space.is_closed());
        // 32 bits that wrap, as the kernel's.
        let ms = |jiffies: u64| (jiffies.wrapping_mul(1_000) / u64::from(hz.max(1))) as u32;
        // Before the connection is open nothing has been noted: what is told then is all the time there has been.
        let since = |jiffies: u64| match opening {
            true => ms(clock.jiffies).wrapping_sub(INITIAL_MS),
            false => ms(clock.jiffies.saturating_sub(jiffies)),
        };
        let [busy, rwnd, sndbuf] =
            self.chrono.up_to(clock.jiffies).map(|j| u64::from(j) * u64::from(clock.jiffy_us()));
        let mut control = self.tx.cc.diag(space.mss());
        if let Some(ControlDiag::Dctcp(Some(values))) = &mut control {
            values[0] = u32::from(self.rx.echo.was_marked());
        }
        TcpDiag {
            timestamps: self.tx.stamps.ok(),
            sack: self.tx.sack_ok,
            ecn: w.ecn_ok,
            ecn_seen: self.rx.echo.has_seen(),
            fastopen: info.syn_data,
            wscale: (self.rcv_scaling && !opening).then(|| (space.wscale(), self.rx.wscale())),
            ato_us: self.rx.ato().min(hz / 5) * clock.jiffy_us(),
            // The SYN.
            unacked: info.unacked + u32::from(opening),
            snd_mss: if opening { self.mss_of_syn(pmtu, six) } else { info.snd_mss },
            //= linux v6.12 net/ipv4/tcp_input.c tcp_initialize_rcv_mss: no window is offered yet
            rcv_mss: if opening { 88 } else { self.rx.rcv_mss() },
            advmss: self.rx.advmss(),
            bytes_sent: space.nxt().max(first) - first - u64::from(space.fin_sent()) + n.bytes_retrans,
            bytes_acked: space.una().saturating_sub(if self.synacks == 0 { space.iss() } else { first }),
            bytes_received: self.rx.bytes_in(),
            segs_out: n.segs_out - self.synacks.min(n.segs_out),
            //= linux v6.12 net/ipv4/tcp_minisocks.c tcp_create_openreq_child: the SYN
            segs_in: n.segs_in + u64::from(self.synacks > 0),
            data_segs_out: n.data_segs_out,
            data_segs_in: n.data_segs_in,
            control,
            last_data_sent_ms: since(w.lsndtime),
            last_data_recv_ms: since(self.rx.lrcvtime()),
            last_ack_recv_ms: since(clock.jiffies.saturating_sub(self.tx.timers.silent_for(&clock))),
            pacing_rate: w.pacing_rate_bytes_s(),
            delivery_rate: info.delivery_rate,
            app_limited: w.rate_app_limited,
            delivered: info.delivered,
            delivered_ce: info.delivered_ce,
            busy_us: busy,
            rwnd_limited_us: rwnd,
            sndbuf_limited_us: sndbuf,
            dsack_dups: info.dsack_dups,
            reord_seen: self.recovery.reord_seen(),
            rcv_rtt_us: self.rx.rcv_rtt_us(),
            rcv_space: self.rx.rcv_space(),
            rcv_ssthresh: self.rx.rcv_ssthresh(),
            notsent: written.saturating_sub(space.nxt()),
            min_rtt_us: self.tx.timers.min_rtt(),
            rcv_ooopack: self.rx.ooopack(),
            snd_wnd: info.snd_wnd,
            ..own
        }
    }
}
