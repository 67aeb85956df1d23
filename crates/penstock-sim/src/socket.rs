//! Sockets: who gets a packet, and what TCP and UDP do about it.
//!
//! Follows: linux v6.12 `net/ipv4/inet_hashtables.c` (established first, then listeners), `tcp_v4_send_reset`,
//! `net/ipv4/udp.c`, `net/core/sock.c` (`sock_alloc_send_pskb`, `sock_def_write_space`), `ip_setsockopt` IP_TOS.
//!
//! A packet carries the number of its flow, and the flow knows its two sockets: that is looked at first (and
//! checked), so that no lookup is made for a packet of a known connection.

use crate::event::{Event, Timer};
use crate::flow::{Flow, Part, RETRANSMISSION, tag, untag};
use crate::net::{NONE, Net, Wake};
use crate::results::TcpResult;
use crate::spec::Stack;
use penstock_host::rt_tos2priority;
use penstock_model::{Handle, Kernel, Rng, Time};
use penstock_packet::headers::{Icmp, ipproto};
use penstock_packet::{Ipv4, L3, L4, Packet, Skb, Tcp, Udp};
use penstock_tcp::{Config, Endpoint, State, Transmit, reset_for};
use std::collections::{BTreeMap, VecDeque};
use std::net::Ipv4Addr;

/// An address and a port.
pub(crate) type Addr = (Ipv4Addr, u16);

/// What a socket is set to before it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SockOpts {
    /// `IP_TOS`.
    pub(crate) tos: u8,
    /// `SO_MARK`.
    pub(crate) mark: u32,
    /// `SO_PRIORITY`, where it is set; else it follows from the ToS.
    pub(crate) priority: Option<u32>,
}

/// A message of a modelled protocol: what the bytes mean that carry it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    /// What is said.
    pub(crate) kind: u32,
    /// And the numbers with it.
    pub(crate) values: Vec<i64>,
}

/// One socket.
pub(crate) struct Sock {
    pub(crate) host: u32,
    /// The program it belongs to; `NONE` for a flow's own.
    pub(crate) app: u32,
    pub(crate) local: Addr,
    pub(crate) remote: Addr,
    pub(crate) flow: u32,
    /// Whether it sends the flow's data.
    pub(crate) is_source: bool,
    pub(crate) opts: SockOpts,
    priority: u32,
    pub(crate) kind: Kind,
}

/// What kind of socket it is.
pub(crate) enum Kind {
    /// Listens for connections.
    Listener(Listener),
    /// One side of a connection.
    Tcp(Box<TcpSock>),
    /// Datagrams.
    Udp(UdpSock),
    /// Closed; the number is not used again.
    Gone,
}

/// A listening socket.
pub(crate) struct Listener {
    pub(crate) cfg: Config,
    /// Accepted connections read and forget by themselves.
    pub(crate) sink: bool,
}

/// TCP's half of a socket.
pub(crate) struct TcpSock {
    pub(crate) end: Endpoint,
    timer: Timer,
    /// Accepted by this listener; `NONE` for one that connected.
    listener: u32,
    /// Bytes still to be written as room comes; `u64::MAX`: without end.
    pub(crate) pending: u64,
    /// Close once nothing is pending.
    close_after: bool,
    /// Reads by itself.
    sink: bool,
    open_told: bool,
    readable_told: bool,
    eof_told: bool,
    over_told: bool,
    want_write: bool,
    /// Bytes ever written (with what is pending) and read.
    written: u64,
    read: u64,
    /// Messages on their way to this socket, with the count of bytes read at which each is complete.
    inbox: VecDeque<(u64, Message)>,
}

/// UDP's half of a socket.
#[derive(Default)]
pub(crate) struct UdpSock {
    pub(crate) connected: bool,
    /// `sk_sndbuf`, bytes.
    pub(crate) sndbuf: u32,
    /// `sk_wmem_alloc`: memory of packets that are still in this host, and their payload.
    wmem: u64,
    out_bytes: u64,
    want_write: bool,
    /// An ICMP error to be told at the next call.
    pub(crate) error: Option<&'static str>,
}

/// The sockets of one host.
pub(crate) struct SocketTable {
    /// Connections by local port and peer.
    connections: BTreeMap<(u16, Ipv4Addr, u16), u32>,
    listeners: Vec<(u16, u32)>,
    udp: BTreeMap<u16, u32>,
    /// Who waits for echo replies, by ICMP identifier.
    pub(crate) pings: Vec<(u16, u32)>,
    rng: Rng,
    port_offset: u16,
    ports_used: u16,
}

impl SocketTable {
    pub(crate) fn new(mut rng: Rng) -> SocketTable {
        let port_offset = rng.next_u32() as u16;
        SocketTable {
            connections: BTreeMap::new(),
            listeners: Vec::new(),
            udp: BTreeMap::new(),
            pings: Vec::new(),
            rng,
            port_offset,
            ports_used: 0,
        }
    }
}

/// `SKB_TRUESIZE` of a frame with `len` bytes of IP payload, by the sizes kmalloc has (512, 1024, 2048, 4096…).
fn truesize(len: u32) -> u64 {
    // Headers before and `skb_shared_info` behind the data, then `struct sk_buff`.
    u64::from((len + 64 + 320).next_power_of_two().max(512)) + 256
}

impl Net {
    /// The TCP that a host's sockets start with.
    pub(crate) fn tcp_config(&self, host: u32) -> Config {
        let machine = &self.machines[host as usize];
        let mut cfg = match machine.stack {
            Stack::Linux => Config::linux(machine.kernel),
            Stack::WindowsXp => Config::windows_xp(),
        };
        cfg.device_accounting = machine.stack == Stack::Linux;
        cfg
    }
    fn new_sock(&mut self, host: u32, app: u32, opts: SockOpts, kind: Kind) -> u32 {
        let priority =
            opts.priority.unwrap_or_else(|| rt_tos2priority(self.machines[host as usize].kernel, opts.tos));
        let unspecified = (Ipv4Addr::UNSPECIFIED, 0);
        self.socks.push(Sock {
            host,
            app,
            local: unspecified,
            remote: unspecified,
            flow: NONE,
            is_source: true,
            opts,
            priority,
            kind,
        });
        self.socks.len() as u32 - 1
    }
    /// Adds a flow; its results are numbered in this order.
    pub(crate) fn new_flow(&mut self, name: String, from: u32, to: u32, proto: &'static str) -> u32 {
        self.flows.push(Flow::new(name, from, to, proto));
        self.flows.len() as u32 - 1
    }
    /// The host with this address.
    pub(crate) fn host_of(&self, addr: Ipv4Addr) -> Option<u32> {
        self.machines.iter().position(|m| m.host.is_local(addr) && !addr.is_loopback()).map(|i| i as u32)
    }

    // Ports.

    /// A port nobody uses here. Linux goes up from an offset that the peer decides (by 2 today, so that even ports
    /// are for connect); Windows XP counts from 1025.
    fn ephemeral_port(&mut self, host: u32, remote: Addr, tcp: bool) -> u16 {
        let machine = &mut self.machines[host as usize];
        let table = &mut machine.sockets;
        let (low, count, step) = match (machine.stack, machine.kernel) {
            (Stack::WindowsXp, _) => (1025u32, 3976u32, 1u32),
            (_, Kernel::V2_6_35) => (32_768, 28_233, 1),
            (_, Kernel::V6_12) => (32_768, 28_232, 2),
        };
        let mut offset = u32::from(table.ports_used);
        if machine.stack == Stack::Linux {
            let peer = u32::from(remote.0) ^ u32::from(remote.1) << 16 ^ u32::from(table.port_offset);
            offset += (peer.wrapping_mul(0x9e37_79b1) >> 8) & !1;
        }
        for i in 0..count {
            let port = (low + (offset + i) * step % count) as u16;
            let taken = if tcp {
                table
                    .connections
                    .range((port, Ipv4Addr::UNSPECIFIED, 0)..)
                    .next()
                    .is_some_and(|(k, _)| k.0 == port)
            } else {
                table.udp.contains_key(&port)
            };
            if !taken {
                table.ports_used = table.ports_used.wrapping_add(1 + i as u16);
                return port;
            }
        }
        low as u16
    }

    // TCP.

    /// `listen` on a port. `None`: taken.
    pub(crate) fn tcp_listen(
        &mut self,
        host: u32,
        app: u32,
        port: u16,
        opts: SockOpts,
        listener: Listener,
    ) -> Option<u32> {
        if self.machines[host as usize].sockets.listeners.iter().any(|&(p, _)| p == port) {
            return None;
        }
        let sock = self.new_sock(host, app, opts, Kind::Listener(listener));
        self.socks[sock as usize].local.1 = port;
        self.machines[host as usize].sockets.listeners.push((port, sock));
        Some(sock)
    }
    /// Opens a connection; the program hears of it by [`Wake::Connected`] or [`Wake::Failed`].
    /// `flow` is the flow whose source this socket is (or whose sink, if `is_source` is false).
    #[allow(clippy::too_many_arguments)] // The arguments of socket, setsockopt and connect at once.
    pub(crate) fn tcp_connect(
        &mut self,
        host: u32,
        app: u32,
        remote: Addr,
        flow: u32,
        is_source: bool,
        opts: SockOpts,
        mut cfg: Config,
    ) -> Result<u32, &'static str> {
        let source =
            self.machines[host as usize].host.source_towards(remote.0).ok_or("Network is unreachable")?;
        if let Some(mtu) = self.machines[host as usize].host.mtu_towards(remote.0) {
            cfg.mss = cfg.mss.min(mtu.saturating_sub(40).clamp(1, 65_495) as u16);
        }
        let port = self.ephemeral_port(host, remote, true);
        let isn = self.machines[host as usize].sockets.rng.next_u32();
        let end = Endpoint::connect(&cfg, port, remote.1, isn, self.now());
        let sock = self.new_sock(host, app, opts, Kind::Tcp(Box::new(TcpSock::new(end, NONE, false))));
        let s = &mut self.socks[sock as usize];
        (s.local, s.remote, s.flow, s.is_source) = ((source, port), remote, flow, is_source);
        self.flows[flow as usize].socks[usize::from(!is_source)] = sock;
        self.machines[host as usize].sockets.connections.insert((port, remote.0, remote.1), sock);
        self.pump(sock);
        Ok(sock)
    }
    /// Writes; answers how much was taken. Less than asked: [`Wake::Writable`] comes.
    pub(crate) fn tcp_write(&mut self, sock: u32, bytes: u64) -> u64 {
        let now = self.now();
        let Kind::Tcp(t) = &mut self.socks[sock as usize].kind else { return 0 };
        let took = t.end.write(bytes, now);
        t.written += took;
        t.want_write = took < bytes;
        self.pump(sock);
        took
    }
    /// Hands over bytes to be written as room comes; `u64::MAX`: without end. With `close` the socket is closed then.
    pub(crate) fn tcp_send(&mut self, sock: u32, bytes: u64, close: bool) {
        let Kind::Tcp(t) = &mut self.socks[sock as usize].kind else { return };
        t.pending = t.pending.saturating_add(bytes);
        t.written = t.written.saturating_add(bytes);
        t.close_after |= close;
        self.pump(sock);
    }
    /// Stops an endless [`tcp_send`](Net::tcp_send) and closes.
    pub(crate) fn tcp_finish(&mut self, sock: u32) {
        let Kind::Tcp(t) = &mut self.socks[sock as usize].kind else { return };
        t.pending = 0;
        t.close_after = true;
        self.pump(sock);
    }
    /// Sends a message that takes `len` bytes of the stream.
    pub(crate) fn tcp_say(&mut self, sock: u32, len: u64, message: Message) {
        let s = &self.socks[sock as usize];
        let peer = self.flows[s.flow as usize].socks[usize::from(s.is_source)];
        let Kind::Tcp(t) = &mut self.socks[sock as usize].kind else { return };
        t.pending += len;
        t.written += len;
        let at = t.written;
        if let Some(Kind::Tcp(p)) = self.socks.get_mut(peer as usize).map(|s| &mut s.kind) {
            p.inbox.push_back((at, message));
        }
        self.pump(sock);
    }
    /// Reads what is there.
    pub(crate) fn tcp_read(&mut self, sock: u32) -> u64 {
        let now = self.now();
        let Kind::Tcp(t) = &mut self.socks[sock as usize].kind else { return 0 };
        t.readable_told = false;
        let n = t.end.read(u64::MAX, now);
        t.read += n;
        self.count_goodput(sock, n);
        self.pump(sock);
        n
    }
    /// The next message that was read whole.
    pub(crate) fn tcp_hear(&mut self, sock: u32) -> Option<Message> {
        let Kind::Tcp(t) = &mut self.socks[sock as usize].kind else { return None };
        let &(at, _) = t.inbox.front()?;
        if at > t.read {
            return None;
        }
        t.inbox.pop_front().map(|(_, m)| m)
    }
    /// `setsockopt(IP_TOS)` on an open socket.
    pub(crate) fn set_tos(&mut self, sock: u32, tos: u8) {
        let s = &mut self.socks[sock as usize];
        s.opts.tos = tos;
        if s.opts.priority.is_none() {
            s.priority = rt_tos2priority(self.machines[s.host as usize].kernel, tos);
        }
    }
    /// Closes our side.
    pub(crate) fn tcp_close(&mut self, sock: u32) {
        let now = self.now();
        if let Kind::Tcp(t) = &mut self.socks[sock as usize].kind {
            t.end.close(now);
            self.pump(sock);
        }
    }
    /// Closes at once, with RST.
    pub(crate) fn tcp_abort(&mut self, sock: u32) {
        let now = self.now();
        if let Kind::Tcp(t) = &mut self.socks[sock as usize].kind {
            t.end.abort(now);
            self.pump(sock);
        }
    }
    /// Whether somebody listens there.
    pub(crate) fn listens(&self, host: u32, port: u16) -> bool {
        self.machines[host as usize].sockets.listeners.iter().any(|&(p, _)| p == port)
    }
    /// Stops listening.
    pub(crate) fn tcp_unlisten(&mut self, sock: u32) {
        let host = self.socks[sock as usize].host;
        self.machines[host as usize].sockets.listeners.retain(|&(_, s)| s != sock);
        self.socks[sock as usize].kind = Kind::Gone;
    }
    /// The endpoint, while there is one.
    pub(crate) fn endpoint(&self, sock: u32) -> Option<&Endpoint> {
        match &self.socks.get(sock as usize)?.kind {
            Kind::Tcp(t) => Some(&t.end),
            _ => None,
        }
    }

    #[inline]
    fn count_goodput(&mut self, sock: u32, bytes: u64) {
        let s = &self.socks[sock as usize];
        if s.flow != NONE && !s.is_source {
            self.flows[s.flow as usize].goodput_bytes += bytes;
        }
    }

    /// Lets a connection do what it has to do at this instant: fill its buffer, send, tell its program, set its timer.
    fn pump(&mut self, sock: u32) {
        let now = self.queue.now();
        let s = &mut self.socks[sock as usize];
        let Kind::Tcp(t) = &mut s.kind else { return };
        if t.pending > 0 && (t.end.writable() || t.pending < u64::MAX) {
            let took = t.end.write(t.pending, now);
            if t.pending < u64::MAX {
                t.pending -= took;
            }
        }
        if t.close_after && t.pending == 0 && t.open_told {
            t.close_after = false;
            t.end.close(now);
        }
        if t.sink && t.end.readable() > 0 {
            let read = t.end.read(u64::MAX, now);
            t.read += read;
            if s.flow != NONE && !s.is_source {
                self.flows[s.flow as usize].goodput_bytes += read;
            }
        }
        if t.sink && t.end.at_eof() && !t.eof_told {
            t.eof_told = true;
            t.end.close(now);
        }
        loop {
            let Kind::Tcp(t) = &mut self.socks[sock as usize].kind else { return };
            let Some(segment) = t.end.poll_transmit(now) else { break };
            self.send_segment(sock, &segment);
        }
        let Kind::Tcp(t) = &mut self.socks[sock as usize].kind else { return };
        t.timer.arm(t.end.poll_timeout(), Event::Tcp(sock), &mut self.queue);
        self.tell(sock);
    }
    /// Sends one segment of a connection.
    #[inline]
    fn send_segment(&mut self, sock: u32, segment: &Transmit) {
        let now = self.queue.now();
        let s = &self.socks[sock as usize];
        let len = 34 + segment.tcp.header_len() + segment.payload_len;
        let part = match (s.is_source, segment.payload_len) {
            (true, 1..) => Part::Data,
            (true, 0) => Part::Control,
            (false, _) => Part::Back,
        };
        let flow = &mut self.flows[s.flow as usize];
        if part == Part::Data {
            flow.sent(len, segment.retransmission, now);
        }
        let packet = self.pool.alloc(Skb {
            len,
            pkt_len: len,
            priority: s.priority,
            mark: s.opts.mark,
            l3: L3::Ipv4(Ipv4 {
                src: s.local.0,
                dst: s.remote.0,
                tos: s.opts.tos & !3 | if segment.ect { 2 } else { 0 },
                ttl: 0,
                protocol: ipproto::TCP,
                id: 0,
                frag_off: 0x4000,
            }),
            l4: L4::Tcp(segment.tcp),
            flow: tag(s.flow, part),
            seq: if segment.retransmission { RETRANSMISSION } else { 0 },
            created: now,
            queued: now,
            iif: 0,
            eth: ([0; 6], [0; 6]),
            classid: Handle::UNSPEC,
        });
        let host = s.host;
        let refused = self.on_host(host, |h, cx| h.send(packet, cx)).is_err();
        if refused && let Kind::Tcp(t) = &mut self.socks[sock as usize].kind {
            t.end.unreachable(now);
        }
    }
    /// Tells the program what has happened to its connection.
    #[inline]
    fn tell(&mut self, sock: u32) {
        let s = &mut self.socks[sock as usize];
        let Kind::Tcp(t) = &mut s.kind else { return };
        let state = t.end.state();
        let app = s.app;
        let mut say = |wake| {
            if app != NONE {
                self.wakes.push_back((app, wake));
            }
        };
        if !t.open_told && !matches!(state, State::SynSent | State::SynReceived | State::Closed) {
            t.open_told = true;
            say(if t.listener == NONE { Wake::Connected(sock) } else { Wake::Accepted(sock) });
        }
        if !t.readable_told && !t.sink && t.end.readable() > 0 {
            t.readable_told = true;
            say(Wake::Readable(sock));
        }
        if t.want_write && t.end.writable() {
            t.want_write = false;
            say(Wake::Writable(sock));
        }
        if !t.eof_told && t.open_told && t.end.at_eof() {
            t.eof_told = true;
            say(Wake::Eof(sock));
        }
        if !t.over_told && matches!(state, State::FinWait2 | State::TimeWait | State::Closed) {
            self.connection_over(sock, state);
        }
        let Kind::Tcp(t) = &self.socks[sock as usize].kind else { return };
        if t.end.state() == State::Closed && t.end.poll_timeout().is_none() {
            self.bury(sock);
        }
    }
    /// Everything we sent has arrived, or the connection failed.
    #[cold]
    fn connection_over(&mut self, sock: u32, state: State) {
        let now = self.now();
        self.note_tcp(sock);
        let s = &mut self.socks[sock as usize];
        let Kind::Tcp(t) = &mut s.kind else { return };
        t.over_told = true;
        let error = t.end.error();
        if s.flow != NONE && s.is_source && error.is_none() {
            let flow = &mut self.flows[s.flow as usize];
            flow.completed = flow.completed.or(Some(now));
        }
        if s.app != NONE {
            let wake = match error {
                Some(error) if state == State::Closed => Wake::Failed(sock, error_text(error)),
                _ => Wake::Closed(sock),
            };
            self.wakes.push_back((s.app, wake));
        }
    }
    /// Puts what TCP says of itself into the flow's results.
    pub(crate) fn note_tcp(&mut self, sock: u32) {
        let s = &self.socks[sock as usize];
        let Kind::Tcp(t) = &s.kind else { return };
        if s.flow == NONE || !s.is_source {
            return;
        }
        let info = t.end.info();
        self.flows[s.flow as usize].tcp = Some(TcpResult {
            cwnd: info.cwnd,
            ssthresh: info.ssthresh,
            srtt: info.srtt,
            acked_bytes: info.bytes_acked,
            retransmitted: info.total_retrans,
            timeouts: info.timeouts,
            recoveries: info.recoveries,
        });
    }
    /// The last snapshot of every connection that is still open.
    pub(crate) fn note_all_tcp(&mut self) {
        for sock in 0..self.socks.len() as u32 {
            self.note_tcp(sock);
        }
    }
    #[cold]
    fn bury(&mut self, sock: u32) {
        let s = &mut self.socks[sock as usize];
        s.kind = Kind::Gone;
        let key = (s.local.1, s.remote.0, s.remote.1);
        let table = &mut self.machines[s.host as usize].sockets;
        if table.connections.get(&key) == Some(&sock) {
            table.connections.remove(&key);
        }
    }
    /// A connection's timer.
    pub(crate) fn tcp_timer(&mut self, sock: u32, seq: crate::event::Seq) {
        let now = self.now();
        let s = &mut self.socks[sock as usize];
        let host = s.host;
        let Kind::Tcp(t) = &mut s.kind else { return };
        if !t.timer.fires(seq) {
            return;
        }
        if t.end.poll_timeout().is_some_and(|due| due <= now) {
            t.end.handle_timeout(now);
        }
        self.pump(sock);
        self.settle(host);
    }

    // UDP.

    /// A UDP socket, bound to `port` (0: chosen when it is first used). `None`: taken.
    pub(crate) fn udp_bind(&mut self, host: u32, app: u32, port: u16, opts: SockOpts) -> Option<u32> {
        if port != 0 && self.machines[host as usize].sockets.udp.contains_key(&port) {
            return None;
        }
        // net.core.wmem_default: SKB_TRUESIZE(256) times 256 packets.
        let sndbuf = match self.machines[host as usize].kernel {
            Kernel::V2_6_35 => 112_640,
            Kernel::V6_12 => 212_992,
        };
        let sock = self.new_sock(host, app, opts, Kind::Udp(UdpSock { sndbuf, ..UdpSock::default() }));
        if port != 0 {
            self.socks[sock as usize].local.1 = port;
            self.machines[host as usize].sockets.udp.insert(port, sock);
        }
        Some(sock)
    }
    /// `connect` on a UDP socket: chooses address and port, and the flow its datagrams belong to.
    pub(crate) fn udp_connect(&mut self, sock: u32, remote: Addr, flow: u32) -> Result<(), &'static str> {
        let host = self.socks[sock as usize].host;
        let source =
            self.machines[host as usize].host.source_towards(remote.0).ok_or("Network is unreachable")?;
        if self.socks[sock as usize].local.1 == 0 {
            let port = self.ephemeral_port(host, remote, false);
            self.socks[sock as usize].local.1 = port;
            self.machines[host as usize].sockets.udp.insert(port, sock);
        }
        let s = &mut self.socks[sock as usize];
        s.local.0 = source;
        s.remote = remote;
        s.flow = flow;
        if let Kind::Udp(u) = &mut s.kind {
            u.connected = true;
        }
        if flow != NONE {
            self.flows[flow as usize].socks[0] = sock;
        }
        Ok(())
    }
    /// Sends a datagram to the socket's peer. `Ok(false)`: no memory, [`Wake::Writable`] comes (the call would block).
    pub(crate) fn udp_send(&mut self, sock: u32, len: u32, seq: u64) -> Result<bool, &'static str> {
        let remote = self.socks[sock as usize].remote;
        self.udp_send_to(sock, remote, len, seq)
    }
    /// Sends a datagram.
    pub(crate) fn udp_send_to(
        &mut self,
        sock: u32,
        to: Addr,
        len: u32,
        seq: u64,
    ) -> Result<bool, &'static str> {
        let now = self.now();
        let s = &mut self.socks[sock as usize];
        let Kind::Udp(u) = &mut s.kind else { return Err("Bad file descriptor") };
        if let Some(error) = u.error.take() {
            return Err(error);
        }
        if u.wmem >= u64::from(u.sndbuf) {
            u.want_write = true;
            return Ok(false);
        }
        let len = len.clamp(0, 65_507);
        // Cut into fragments as the MTU will have it: each is a packet of its own in memory.
        let mut left = len + 8;
        while left > 0 {
            let piece = left.min(1480);
            u.wmem += truesize(piece);
            left -= piece;
        }
        u.out_bytes += u64::from(len + 8);
        let part = if s.is_source { Part::Data } else { Part::Back };
        let frame = 14 + 20 + 8 + len;
        let flow = s.flow;
        let packet = self.pool.alloc(Skb {
            len: frame,
            pkt_len: frame,
            priority: s.priority,
            mark: s.opts.mark,
            l3: L3::Ipv4(Ipv4 {
                src: s.local.0, // 0.0.0.0 where it is not connected: the route decides
                dst: to.0,
                tos: s.opts.tos,
                ttl: 0,
                protocol: ipproto::UDP,
                id: 0,
                frag_off: if len + 28 <= 1500 { 0x4000 } else { 0 },
            }),
            l4: L4::Udp(Udp { sport: s.local.1, dport: to.1 }),
            flow: if flow == NONE { 0 } else { tag(flow, part) },
            seq,
            created: now,
            queued: now,
            iif: 0,
            eth: ([0; 6], [0; 6]),
            classid: Handle::UNSPEC,
        });
        if flow != NONE && part == Part::Data {
            self.flows[flow as usize].sent(frame, false, now);
        }
        let host = s.host;
        match self.on_host(host, |h, cx| h.send(packet, cx)) {
            Ok(()) => Ok(true),
            Err(error) => Err(error.strerror()),
        }
    }
    /// Keeps the contents of a datagram; answers the `seq` to send it with.
    pub(crate) fn note(&mut self, values: Vec<i64>) -> u64 {
        self.notes.push(Message { kind: 0, values });
        self.notes.len() as u64 - 1
    }
    /// Closes a UDP socket.
    pub(crate) fn udp_close(&mut self, sock: u32) {
        let s = &mut self.socks[sock as usize];
        s.kind = Kind::Gone;
        let (host, port) = (s.host, s.local.1);
        let table = &mut self.machines[host as usize].sockets;
        if table.udp.get(&port) == Some(&sock) {
            table.udp.remove(&port);
        }
    }

    // Echo.

    /// Sends an echo request with `len` bytes of data.
    pub(crate) fn echo_request(
        &mut self,
        host: u32,
        to: Ipv4Addr,
        id: u16,
        seq: u16,
        len: u32,
        tos: u8,
        flow: u32,
    ) -> Result<(), &'static str> {
        let now = self.now();
        let frame = 14 + 20 + 8 + len.min(65_507);
        let kernel = self.machines[host as usize].kernel;
        let packet = self.pool.alloc(Skb {
            len: frame,
            pkt_len: frame,
            priority: rt_tos2priority(kernel, tos),
            mark: 0,
            l3: L3::Ipv4(Ipv4 {
                src: Ipv4Addr::UNSPECIFIED,
                dst: to,
                tos,
                ttl: 0,
                protocol: ipproto::ICMP,
                id: 0,
                frag_off: if len + 28 <= 1500 { 0x4000 } else { 0 },
            }),
            l4: L4::Icmp(Icmp { ty: 8, code: 0, id, seq, about: None }),
            flow: tag(flow, Part::Data),
            seq: 0,
            created: now,
            queued: now,
            iif: 0,
            eth: ([0; 6], [0; 6]),
            classid: Handle::UNSPEC,
        });
        self.flows[flow as usize].sent(frame, false, now);
        self.on_host(host, |h, cx| h.send(packet, cx)).map_err(|e| e.strerror())
    }

    // Delivery.

    /// A packet for this host's sockets.
    #[inline]
    pub(crate) fn deliver(&mut self, host: u32, packet: Packet) {
        let L3::Ipv4(ip) = packet.l3 else {
            self.pool.free(packet);
            return;
        };
        match packet.l4 {
            L4::Tcp(ref tcp) => {
                let payload = packet.len.saturating_sub(34 + tcp.header_len());
                let ce = ip.tos & 3 == 3;
                let tcp = *tcp;
                self.deliver_tcp(host, packet, ip, &tcp, payload, ce);
            }
            L4::Udp(udp) => self.deliver_udp(host, packet, ip, udp),
            L4::Icmp(icmp) => self.deliver_icmp(host, packet, ip, icmp),
            L4::None => self.pool.free(packet),
        }
    }

    #[inline]
    fn deliver_tcp(&mut self, host: u32, packet: Packet, ip: Ipv4, tcp: &Tcp, payload: u32, ce: bool) {
        let now = self.queue.now();
        let known = untag(packet.flow).and_then(|(flow, part)| {
            let flow = &mut self.flows[flow as usize];
            if part == Part::Data {
                flow.received(packet.len, ce, packet.created, now);
            }
            let sock = flow.socks[usize::from(part != Part::Back)];
            let s = self.socks.get(sock as usize)?;
            let mine = s.host == host && s.local.1 == tcp.dport && s.remote == (ip.src, tcp.sport);
            (mine && matches!(s.kind, Kind::Tcp(_))).then_some(sock)
        });
        let sock = known.or_else(|| {
            let table = &self.machines[host as usize].sockets;
            table.connections.get(&(tcp.dport, ip.src, tcp.sport)).copied()
        });
        match sock {
            Some(sock) => {
                self.pool.free(packet);
                if let Kind::Tcp(t) = &mut self.socks[sock as usize].kind {
                    t.end.handle_segment(tcp, payload, ce, now);
                    self.pump(sock);
                }
            }
            None => self.deliver_syn(host, packet, ip, tcp, payload),
        }
    }
    /// A segment for no connection: a listener may make one of it, else it is answered with RST.
    fn deliver_syn(&mut self, host: u32, packet: Packet, ip: Ipv4, tcp: &Tcp, payload: u32) {
        let now = self.now();
        let listening = self.machines[host as usize]
            .sockets
            .listeners
            .iter()
            .find(|&&(p, _)| p == tcp.dport)
            .map(|&(_, s)| s);
        let accepted = listening.and_then(|listener| {
            let isn = self.machines[host as usize].sockets.rng.next_u32();
            let Kind::Listener(l) = &self.socks[listener as usize].kind else { return None };
            let end = Endpoint::accept(&l.cfg, tcp, isn, now)?;
            Some((listener, l.sink, end))
        });
        let flow = untag(packet.flow).map(|(flow, part)| (flow, part == Part::Back));
        if let Some((listener, sink, end)) = accepted {
            let (app, opts) = {
                let l = &self.socks[listener as usize];
                (l.app, l.opts)
            };
            // The flow's data may run from the accepting side (iperf3 -R): then the connecting side said so.
            let (flow, is_source) = match flow {
                Some((flow, from_sink)) => (flow, from_sink),
                None => (self.new_flow("connection".to_owned(), host, host, "tcp"), false),
            };
            let sock = self.new_sock(host, app, opts, Kind::Tcp(Box::new(TcpSock::new(end, listener, sink))));
            let s = &mut self.socks[sock as usize];
            (s.local, s.remote) = ((ip.dst, tcp.dport), (ip.src, tcp.sport));
            (s.flow, s.is_source) = (flow, is_source);
            self.flows[flow as usize].socks[usize::from(!is_source)] = sock;
            self.machines[host as usize].sockets.connections.insert((tcp.dport, ip.src, tcp.sport), sock);
            self.pool.free(packet);
            self.pump(sock);
            return;
        }
        if let Some(reset) = reset_for(tcp, payload) {
            self.send_reset(host, ip, packet.flow, &reset);
        }
        self.pool.free(packet);
    }
    fn send_reset(&mut self, host: u32, about: Ipv4, flow: u32, reset: &Transmit) {
        let now = self.now();
        let len = 34 + reset.tcp.header_len();
        let flow = untag(flow)
            .map_or(0, |(f, part)| tag(f, if part == Part::Back { Part::Control } else { Part::Back }));
        let packet = self.pool.alloc(Skb {
            len,
            pkt_len: len,
            priority: 0,
            mark: 0,
            l3: L3::Ipv4(Ipv4 {
                src: about.dst,
                dst: about.src,
                tos: 0,
                ttl: 0,
                protocol: ipproto::TCP,
                id: 0,
                frag_off: 0x4000,
            }),
            l4: L4::Tcp(reset.tcp),
            flow,
            seq: 0,
            created: now,
            queued: now,
            iif: 0,
            eth: ([0; 6], [0; 6]),
            classid: Handle::UNSPEC,
        });
        // Nobody waits for the answer: an unreachable peer gets none.
        let _ = self.on_host(host, |h, cx| h.send(packet, cx));
    }

    fn deliver_udp(&mut self, host: u32, packet: Packet, ip: Ipv4, udp: Udp) {
        let now = self.now();
        if let Some((flow, Part::Data)) = untag(packet.flow) {
            let flow = &mut self.flows[flow as usize];
            flow.received(packet.len, ip.tos & 3 == 3, packet.created, now);
        }
        let Some(&sock) = self.machines[host as usize].sockets.udp.get(&udp.dport) else {
            self.on_host(host, |h, cx| h.icmp_unreachable(&packet, 3, cx));
            self.pool.free(packet);
            return;
        };
        let len = packet.len.saturating_sub(42);
        if let Some((flow, Part::Data)) = untag(packet.flow) {
            self.flows[flow as usize].goodput_bytes += u64::from(len);
        }
        let app = self.socks[sock as usize].app;
        if app != NONE {
            let (seq, created) = (packet.seq, packet.created);
            let wake = Wake::Datagram { sock, from: (ip.src, udp.sport), to: ip.dst, len, seq, created };
            self.wakes.push_back((app, wake));
        }
        self.pool.free(packet);
    }

    fn deliver_icmp(&mut self, host: u32, packet: Packet, ip: Ipv4, icmp: Icmp) {
        let now = self.now();
        match (icmp.ty, icmp.about) {
            (0, _) => {
                let waiting =
                    self.machines[host as usize].sockets.pings.iter().find(|&&(id, _)| id == icmp.id);
                if let Some(&(_, app)) = waiting {
                    let len = packet.len - 34;
                    self.wakes.push_back((app, Wake::Echo { len, seq: icmp.seq, ttl: ip.ttl, from: ip.src }));
                }
            }
            (3 | 11, Some(about)) => {
                let table = &self.machines[host as usize].sockets;
                match about.protocol {
                    ipproto::ICMP => {
                        if let Some(&(_, app)) = table.pings.iter().find(|&&(id, _)| id == about.sport) {
                            let error = Wake::EchoError {
                                from: ip.src,
                                ty: icmp.ty,
                                code: icmp.code,
                                seq: about.dport,
                            };
                            self.wakes.push_back((app, error));
                        }
                    }
                    ipproto::UDP => {
                        if let Some(&sock) = table.udp.get(&about.sport)
                            && let Kind::Udp(u) = &mut self.socks[sock as usize].kind
                            && u.connected
                            && icmp.ty == 3
                        {
                            u.error =
                                Some(if icmp.code == 3 { "Connection refused" } else { "No route to host" });
                        }
                    }
                    ipproto::TCP => {
                        let key = (about.sport, about.dst, about.dport);
                        if let Some(&sock) = table.connections.get(&key)
                            && let Kind::Tcp(t) = &mut self.socks[sock as usize].kind
                            && icmp.ty == 3
                        {
                            t.end.unreachable(now);
                            self.pump(sock);
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        self.pool.free(packet);
    }

    // Memory of what waits in this host.

    /// A frame was taken by the card: if a socket of this host made it, its memory is free again.
    #[inline]
    pub(crate) fn left_host(&mut self, host: u32, packet: &Packet) {
        if packet.iif == 0 && packet.flow != 0 {
            self.free_memory(host, packet);
        }
    }
    fn free_memory(&mut self, host: u32, packet: &Packet) {
        let now = self.queue.now();
        let Some((flow, part)) = untag(packet.flow) else { return };
        let sock = self.flows[flow as usize].socks[usize::from(part == Part::Back)];
        let Some(s) = self.socks.get_mut(sock as usize) else { return };
        if s.host != host {
            return;
        }
        match &mut s.kind {
            Kind::Tcp(t) => {
                let L4::Tcp(tcp) = &packet.l4 else { return };
                let payload = packet.len.saturating_sub(34 + tcp.header_len());
                if payload > 0 {
                    t.end.transmitted_freed(payload, now);
                    self.pump(sock);
                }
            }
            Kind::Udp(u) => {
                let bytes = u64::from(packet.len.saturating_sub(34)).min(u.out_bytes);
                if bytes > 0 {
                    u.wmem -= (u128::from(u.wmem) * u128::from(bytes) / u128::from(u.out_bytes)) as u64;
                    u.out_bytes -= bytes;
                }
                if u.want_write && u.wmem * 2 <= u64::from(u.sndbuf) {
                    u.want_write = false;
                    if s.app != NONE {
                        self.wakes.push_back((s.app, Wake::Writable(sock)));
                    }
                }
            }
            _ => {}
        }
    }
    /// A packet was dropped before it left this host, which had made it.
    #[cold]
    pub(crate) fn dropped_at_home(&mut self, host: u32, packet: &Packet) {
        if let Some((flow, part)) = untag(packet.flow) {
            let sock = self.flows[flow as usize].socks[usize::from(part == Part::Back)];
            if let Some(s) = self.socks.get_mut(sock as usize)
                && s.host == host
                && let Kind::Tcp(t) = &mut s.kind
            {
                t.end.local_congestion(self.queue.now());
            }
        }
        self.free_memory(host, packet);
    }
}

impl TcpSock {
    fn new(end: Endpoint, listener: u32, sink: bool) -> TcpSock {
        TcpSock {
            end,
            timer: Timer::default(),
            listener,
            pending: 0,
            close_after: false,
            sink,
            open_told: false,
            readable_told: false,
            eof_told: false,
            over_told: false,
            want_write: false,
            written: 0,
            read: 0,
            inbox: VecDeque::new(),
        }
    }
}

/// `strerror` of what ended a connection.
fn error_text(error: penstock_tcp::Error) -> &'static str {
    match error {
        penstock_tcp::Error::Refused => "Connection refused",
        penstock_tcp::Error::Reset => "Connection reset by peer",
        penstock_tcp::Error::BrokenPipe => "Broken pipe",
        penstock_tcp::Error::TimedOut => "Connection timed out",
        penstock_tcp::Error::Unreachable => "No route to host",
    }
}

impl Net {
    /// Makes a timer that wakes `app` with [`Wake::Timer`]`(token)`.
    pub(crate) fn new_timer(&mut self, app: u32, token: u32) -> u32 {
        self.app_timers.push(crate::net::AppTimer { app, token, timer: Timer::default() });
        self.app_timers.len() as u32 - 1
    }
    /// Sets a timer, or moves it; in the past means now.
    pub(crate) fn set_timer(&mut self, timer: u32, at: Time) {
        let t = &mut self.app_timers[timer as usize].timer;
        *t = Timer::default();
        t.arm(Some(at), Event::App(timer), &mut self.queue);
    }
    /// Unsets a timer.
    pub(crate) fn stop_timer(&mut self, timer: u32) {
        self.app_timers[timer as usize].timer = Timer::default();
    }
}
