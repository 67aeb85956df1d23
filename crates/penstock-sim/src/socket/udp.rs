//! UDP sockets and echo requests.

use super::*;

/// An echo request as its program asks for it.
#[derive(Clone, Copy)]
pub(crate) struct Echo {
    pub(crate) id: u16,
    pub(crate) seq: u16,
    /// Bytes of data, and the type of service.
    pub(crate) len: u32,
    pub(crate) tos: u8,
    /// Time to live; 0 for the machine's.
    pub(crate) ttl: u8,
    pub(crate) mark: u32,
    /// Flow label of IPv6; 0 for the machine's.
    pub(crate) label: u32,
    /// The address its socket is bound to.
    pub(crate) from: Option<IpAddr>,
    /// The device that its socket is bound to; 0 for none.
    pub(crate) bound: u32,
    /// It must not be cut.
    pub(crate) whole: bool,
}

impl Net {
    /// A UDP socket, bound to `port` (0: chosen when it is first used). `None`: taken.
    pub(crate) fn udp_bind(&mut self, host: u32, app: u32, port: u16, opts: SockOpts) -> Option<u32> {
        if port != 0 && self.machines[host as usize].sockets.udp.contains_key(&port) {
            return None;
        }
        // net.core.wmem_default: SKB_TRUESIZE(256) times 256 packets.
        let machine = &self.machines[host as usize];
        let sndbuf = machine.host.send_buffer().unwrap_or(match machine.kernel {
            Kernel::V2_6_35 => 112_640,
            Kernel::V6_12 | Kernel::V7_2 => 212_992,
        });
        let sock = self.new_sock(host, app, opts, Kind::Udp(UdpSock { sndbuf, ..UdpSock::default() }));
        if port != 0 {
            self.sockets[sock].local.1 = port;
            self.machines[host as usize].sockets.udp.insert(port, sock);
        }
        Some(sock)
    }
    /// A server on `port` that sends back what comes. `None`: taken.
    pub(crate) fn udp_echo(&mut self, host: u32, port: u16) -> Option<u32> {
        let sock = self.udp_bind(host, NONE, port, SockOpts::default())?;
        if let Kind::Udp(u) = &mut self.sockets[sock].kind {
            u.echoes = true;
        }
        Some(sock)
    }
    /// `connect` on a UDP socket: chooses address and port, and the flow its datagrams belong to.
    pub(crate) fn udp_connect(&mut self, sock: u32, remote: Addr, flow: u32) -> Result<(), &'static str> {
        let (host, bound) = (self.sockets[sock].host, self.sockets[sock].opts.bound);
        let source = self.source_of(host, bound, remote.0)?;
        if self.sockets[sock].local.1 == 0 {
            // inet_autobind: EAGAIN.
            let port = self.ephemeral_port(host, remote, false).ok_or("Resource temporarily unavailable")?;
            self.sockets[sock].local.1 = port;
            self.machines[host as usize].sockets.udp.insert(port, sock);
        }
        let s = &mut self.sockets[sock];
        s.local.0 = source;
        s.remote = remote;
        s.flow = flow;
        if let Kind::Udp(u) = &mut s.kind {
            u.connected = true;
        }
        if flow != NONE {
            self.meter.flows[flow as usize].socks[0] = sock;
        }
        Ok(())
    }
    /// Whether a datagram may be sent now; if not, [`Wake::Writable`] comes (the call blocks).
    pub(crate) fn udp_has_room(&mut self, sock: u32) -> bool {
        let Kind::Udp(u) = &mut self.sockets[sock].kind else { return true };
        u.want_write = u.wmem >= u64::from(u.sndbuf);
        !u.want_write
    }
    /// Sends a datagram to the socket's peer. `Ok(false)`: no memory, [`Wake::Writable`] comes (the call would block).
    pub(crate) fn udp_send(&mut self, sock: u32, len: u32, seq: u64) -> Result<bool, &'static str> {
        let remote = self.sockets[sock].remote;
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
        let whole = self.goes_whole(self.sockets[sock].host, to.0, len, now);
        let s = &mut self.sockets[sock];
        let kernel = self.machines[s.host as usize].kernel;
        let Kind::Udp(u) = &mut s.kind else { return Err("Bad file descriptor") };
        if let Some(error) = u.error.take() {
            return Err(error);
        }
        if u.wmem >= u64::from(u.sndbuf) {
            u.want_write = true;
            return Ok(false);
        }
        let connected = u.connected;
        let before = headers(to.0);
        let len = len.clamp(0, 65_507);
        // Cut into fragments as the MTU will have it: each is a packet of its own in memory.
        let most = if to.0.is_ipv4() || len + 48 <= 1500 { 1480 } else { 1448 };
        let mut left = len + 8;
        while left > 0 {
            let piece = left.min(most);
            u.wmem += truesize(kernel, before, piece);
            left -= piece;
        }
        u.out_bytes += u64::from(len + 8);
        let part = if s.is_source { Part::Data } else { Part::Back };
        let frame = before + 8 + len;
        let flow = s.flow;
        let sender = Sender { socket: s.own, connected, ..Sender::default() };
        let txtime = s.opts.txtime;
        let mut packet = self.pool.alloc(Skb {
            priority: s.priority,
            mark: s.opts.mark,
            flow: if flow == NONE { 0 } else { tag(flow, part) },
            seq,
            created: now,
            queued: now,
            sender,
            ..Skb::new(
                frame,
                network(s.local.0, to.0, s.opts.tos, ipproto::UDP, whole),
                L4::Udp(Udp { sport: s.local.1, dport: to.1 }),
            )
        });
        if let Some(wish) = txtime {
            let clock = if wish.monotonic { TxClock::Monotonic } else { TxClock::Tai };
            packet.sender.departs = now.saturating_add(wish.after);
            packet.rare_mut().txtime = Some(TxTime { clock, asked: true, deadline: wish.deadline });
        }
        if flow != NONE && part == Part::Data {
            self.meter.flows[flow as usize].sent(1, frame, false, now);
            self.meter.flows[flow as usize].departs(seq, len, now);
        }
        let host = s.host;
        let sent = self.on_host(host, |h, cx| h.transmit(packet, cx));
        let counters = &mut self.machines[host as usize].host.snmp_mut().udp[usize::from(to.0.is_ipv6())];
        match sent {
            Ok(sent) => {
                //= linux v6.12 net/ipv4/udp.c udp_send_skb
                match sent.answer {
                    Xmit::Drop => counters.no_memory += 1,
                    _ => counters.sent += 1,
                }
                Ok(true)
            }
            Err(error) => Err(error.strerror()),
        }
    }
    /// Whether a datagram of IPv4 is not to be cut: what is longer than the way takes is cut here (`IP_PMTUDISC_WANT`).
    //= linux v6.12 net/ipv4/ip_output.c __ip_make_skb
    fn goes_whole(&mut self, host: u32, to: IpAddr, len: u32, now: Time) -> bool {
        // No way is narrower (`net.ipv4.route.min_pmtu`).
        const ANY_WAY: u32 = 552;
        let longest = len.saturating_add(28);
        to.is_ipv6()
            || longest <= ANY_WAY
            || self.machines[host as usize].host.mtu_to(to, now).is_none_or(|mtu| longest <= mtu)
    }
    /// Closes a UDP socket.
    pub(crate) fn udp_close(&mut self, sock: u32) {
        let s = &mut self.sockets[sock];
        s.kind = Kind::Gone;
        let (host, port) = (s.host, s.local.1);
        let table = &mut self.machines[host as usize].sockets;
        if table.udp.get(&port) == Some(&sock) {
            table.udp.remove(&port);
            table.given_back(false);
        }
    }

    /// Sends an echo request.
    pub(crate) fn echo_request(
        &mut self,
        host: u32,
        to: IpAddr,
        echo: Echo,
        flow: u32,
    ) -> Result<(), &'static str> {
        let now = self.now();
        let frame = headers(to) + 8 + echo.len.min(65_507);
        let (ty, protocol) = if to.is_ipv4() { (8, ipproto::ICMP) } else { (128, ipproto::ICMPV6) };
        let kernel = self.machines[host as usize].kernel;
        let mut l3 = network(echo.from.unwrap_or(LEAST), to, echo.tos, protocol, echo.whole);
        match &mut l3 {
            L3::Ipv4(h) => h.ttl = echo.ttl,
            L3::Ipv6(h) => (h.hop_limit, h.flow_label) = (echo.ttl, echo.label),
            _ => {}
        }
        let packet = self.pool.alloc(Skb {
            priority: rt_tos2priority(kernel, echo.tos),
            mark: echo.mark,
            flow: tag(flow, Part::Data),
            seq: echo.seq.into(),
            iif: echo.bound,
            created: now,
            queued: now,
            ..Skb::new(frame, l3, L4::Icmp(Icmp::new(ty, 0, echo.id, echo.seq)))
        });
        self.meter.flows[flow as usize].sent(1, frame, false, now);
        self.on_host(host, |h, cx| h.send(packet, cx)).map_err(|e| e.strerror())
    }
}
