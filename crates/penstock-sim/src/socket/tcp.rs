//! TCP sockets: connect, listen, write, read, close, and what they do by themselves at each instant.

use super::*;

impl Net {
    /// `listen` on a port. `None`: taken.
    pub(crate) fn tcp_listen(
        &mut self,
        host: u32,
        app: u32,
        port: u16,
        opts: SockOpts,
        mut listener: Listener,
    ) -> Option<u32> {
        let setting = self.machines[host as usize].host.tcp_settings().fastopen;
        listener.fast.listens(setting, listener.backlog);
        if listener.cfg.fastopen.is_some() {
            listener.fast.most = listener.backlog;
        }
        if self.machines[host as usize].sockets.listeners.contains_key(&port) {
            return None;
        }
        let sock = self.new_sock(host, app, opts, Kind::Listener(listener));
        self.sockets[sock].local.1 = port;
        self.machines[host as usize].sockets.listeners.insert(port, sock);
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
        let source = self.source_of(host, opts.bound, remote.0)?;
        self.route_mss(host, opts.bound, remote.0, &mut cfg);
        self.route_config(host, opts.bound, remote.0, &mut cfg);
        let port = self.ephemeral_port(host, remote, true).ok_or("Cannot assign requested address")?;
        let isn = self.machines[host as usize].sockets.rng.next_u32();
        let fast =
            cfg.fastopen.and_then(|bytes| self.fast_active(host, opts.bound, (source, remote.0), bytes));
        let end = match fast {
            None => Endpoint::connect(&cfg, port, remote.1, isn, self.now()),
            Some(how) => Endpoint::connect_fast(&cfg, port, remote.1, isn, &how, self.now()),
        };
        let in_syn = end.in_syn();
        let mut half = TcpSock::new(end, NONE, false);
        half.in_syn = in_syn.into();
        let sock = self.new_sock(host, app, opts, Kind::Tcp(Box::new(half)));
        let s = &mut self.sockets[sock];
        (s.local, s.remote, s.flow, s.is_source) = ((source, port), remote, flow, is_source);
        self.meter.flows[flow as usize].socks[usize::from(!is_source)] = sock;
        self.machines[host as usize].sockets.connections.insert((port, remote.0, remote.1), sock);
        self.pump(sock);
        Ok(sock)
    }
    /// The source that a socket speaks to `dst` with; else what `connect` returns.
    //= linux v6.12 net/ipv4/tcp_ipv4.c tcp_v4_connect; net/ipv4/datagram.c __ip4_datagram_connect
    pub(super) fn source_of(&mut self, host: u32, bound: u32, dst: IpAddr) -> Result<IpAddr, &'static str> {
        let host = &mut self.machines[host as usize].host;
        host.connects_by(bound, dst).map_err(|error| error.strerror())
    }
    /// Writes; answers how much was taken. Less than asked: [`Wake::Writable`] comes.
    pub(crate) fn tcp_write(&mut self, sock: u32, bytes: u64) -> u64 {
        let now = self.now();
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return 0 };
        let took = match t.end.goes_by_calls() {
            false => t.end.write(bytes, now),
            true => self.write_by_calls(sock, bytes, now),
        };
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return 0 };
        t.written += took;
        t.want_write = took < bytes;
        self.pump(sock);
        took
    }
    /// A call to write; answers how much was taken. One that pushes on its way sends what it may in between.
    //= linux v6.12 net/ipv4/tcp.c tcp_sendmsg_locked
    // Apart, as most sockets go without it.
    #[inline(never)]
    fn write_by_calls(&mut self, sock: u32, bytes: u64, now: Time) -> u64 {
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return 0 };
        let mut took = 0;
        let pumping = std::mem::replace(&mut t.pumping, true);
        loop {
            let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return took };
            let sent = t.end.send(bytes - took, SendFlags::default(), now);
            took += sent.bytes;
            if !sent.goes_on && took == bytes {
                break;
            }
            self.drain(sock, now);
            let Kind::Tcp(t) = &self.sockets[sock].kind else { return took };
            // What has just gone may have made room.
            if self.guard.is_over() || !sent.goes_on && (sent.bytes == 0 || !t.end.call_writable()) {
                break;
            }
        }
        if let Kind::Tcp(t) = &mut self.sockets[sock].kind {
            t.pumping = pumping;
        }
        took
    }
    /// Hands over bytes to be written as room comes; `u64::MAX`: without end. With `close` the socket is closed then.
    pub(crate) fn tcp_send(&mut self, sock: u32, bytes: u64, close: bool) {
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return };
        let gone = t.in_syn.min(bytes);
        t.in_syn -= gone;
        t.pending = t.pending.saturating_add(if bytes == u64::MAX { bytes } else { bytes - gone });
        t.written = t.written.saturating_add(bytes);
        t.close_after |= close;
        self.pump(sock);
    }
    /// Stops an endless [`tcp_send`](Net::tcp_send) and closes.
    pub(crate) fn tcp_finish(&mut self, sock: u32) {
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return };
        t.pending = 0;
        t.close_after = true;
        self.pump(sock);
    }
    /// Sends a message that takes `len` bytes of the stream.
    pub(crate) fn tcp_say(&mut self, sock: u32, len: u64, message: Message) {
        let s = &self.sockets[sock];
        let peer = self.meter.flows[s.flow as usize].socks[usize::from(s.is_source)];
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return };
        t.pending += len;
        t.written += len;
        let at = t.written;
        if let Some(Kind::Tcp(p)) = self.sockets.get_mut(peer).map(|s| &mut s.kind) {
            p.inbox.push_back((at, message));
        }
        self.pump(sock);
    }
    /// Reads what is there.
    pub(crate) fn tcp_read(&mut self, sock: u32) -> u64 {
        let now = self.now();
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return 0 };
        t.readable_told = false;
        let n = t.end.read(u64::MAX, now);
        t.read += n;
        self.count_goodput(sock, n);
        self.pump(sock);
        n
    }
    /// The next message that was read whole.
    pub(crate) fn tcp_hear(&mut self, sock: u32) -> Option<Message> {
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return None };
        let &(at, _) = t.inbox.front()?;
        if at > t.read {
            return None;
        }
        t.inbox.pop_front().map(|(_, m)| m)
    }
    /// `setsockopt(IP_TOS)` on an open socket.
    pub(crate) fn set_tos(&mut self, sock: u32, tos: u8) {
        let s = &mut self.sockets[sock];
        s.opts.tos = tos;
        if s.opts.priority.is_none() {
            s.priority = rt_tos2priority(self.machines[s.host as usize].kernel, tos);
        }
    }
    /// Closes our side.
    pub(crate) fn tcp_close(&mut self, sock: u32) {
        let now = self.now();
        if let Kind::Tcp(t) = &mut self.sockets[sock].kind {
            t.end.orphan();
            t.end.close(now);
            self.pump(sock);
        }
    }
    /// What `/proc/net/penstock_cwnd` holds: a line for each TCP connection of the host. No Linux has this file; Magaña, Izkue and
    /// Villadangos put one like it into their kernel in 2001.
    pub(crate) fn cwnd_table(&self, host: u32) -> String {
        let mut text = String::from("local_address rem_address cwnd ssthresh srtt_us mss\n");
        for s in self.sockets.all.iter().filter(|s| s.host == host) {
            let Kind::Tcp(t) = &s.kind else { continue };
            let (info, local, remote) = (t.end.info(), s.local, s.remote);
            text.push_str(&format!(
                "{}:{} {}:{} {} {} {} {}\n",
                local.0,
                local.1,
                remote.0,
                remote.1,
                info.cwnd,
                info.ssthresh,
                info.srtt.as_ns() / 1000,
                info.snd_mss
            ));
        }
        text
    }
    /// Closes a listening socket. Connections that came in by it go on.
    pub(crate) fn tcp_deaf(&mut self, sock: u32) {
        let s = &mut self.sockets[sock];
        s.kind = Kind::Gone;
        let (host, port) = (s.host, s.local.1);
        let listeners = &mut self.machines[host as usize].sockets.listeners;
        if listeners.get(&port) == Some(&sock) {
            listeners.remove(&port);
        }
    }
    /// Whether somebody listens there.
    pub(crate) fn listens(&self, host: u32, port: u16) -> bool {
        self.machines[host as usize].sockets.listeners.contains_key(&port)
    }
    /// The endpoint, while there is one.
    pub(crate) fn endpoint(&self, sock: u32) -> Option<&Endpoint> {
        match &self.sockets.get(sock)?.kind {
            Kind::Tcp(t) => Some(&t.end),
            _ => None,
        }
    }

    #[inline]
    fn count_goodput(&mut self, sock: u32, bytes: u64) {
        let s = &self.sockets[sock];
        if s.flow != NONE && !s.is_source {
            self.meter.flows[s.flow as usize].goodput_bytes += bytes;
        }
    }

    /// Lets a connection do what it has to do at this instant: fill its buffer, send, tell its program, set its timer.
    pub(super) fn pump(&mut self, sock: u32) {
        let now = self.queue.now();
        let s = &mut self.sockets[sock];
        let Kind::Tcp(t) = &mut s.kind else { return };
        if t.pumping {
            return;
        }
        t.pumping = true;
        // A segment is answered in the interrupt; the program that it wakes runs afterwards. (In 2.6.35 a reader that waits
        // takes segments itself, tcp_prequeue, before they are answered.)
        if t.end.answers_first() {
            if self.todo.in_call {
                self.drain(sock, now);
            } else {
                self.in_softirq(|net| net.drain(sock, now));
            }
        }
        let s = &mut self.sockets[sock];
        let Kind::Tcp(t) = &mut s.kind else { return };
        // After a short write the program sleeps until it is woken.
        t.blocked = t.blocked && !t.end.writable();
        let mut called = !t.end.answers_first();
        if t.pending > 0 && !t.blocked {
            let took = match t.end.goes_by_calls() {
                false => t.end.write(t.pending, now),
                true => {
                    let pending = t.pending;
                    self.write_by_calls(sock, pending, now)
                }
            };
            let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return };
            t.blocked = took < t.pending;
            if t.pending < u64::MAX {
                t.pending -= took;
            }
            called = true;
        }
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return };
        let open = t.open_told || t.end.is_open();
        if t.close_after && t.pending == 0 && open {
            t.close_after = false;
            // The call to close comes when that to write has sent what it may.
            self.drain(sock, now);
            let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return };
            t.end.orphan();
            t.end.close(now);
            called = true;
        }
        let s = &mut self.sockets[sock];
        let Kind::Tcp(t) = &mut s.kind else { return };
        if t.sink && t.end.readable() > 0 {
            let read = t.end.read(u64::MAX, now);
            t.read += read;
            called = true;
            if s.flow != NONE && !s.is_source {
                self.meter.flows[s.flow as usize].goodput_bytes += read;
            }
        }
        if t.sink && t.end.at_eof() && !t.eof_told {
            t.eof_told = true;
            t.end.orphan();
            t.end.close(now);
            called = true;
        }
        if called {
            self.drain(sock, now);
        }
        let Kind::Tcp(t) = &mut self.sockets[sock].kind else { return };
        t.pumping = false;
        t.timer.arm(t.end.poll_timeout(), Event::Tcp(sock), &mut self.queue);
        self.tell(sock);
    }
    /// Sends what a connection has to send.
    #[inline(always)] // Into `pump`, which each segment goes through.
    fn drain(&mut self, sock: u32, now: Time) {
        while !self.guard.is_over()
            && let Kind::Tcp(t) = &mut self.sockets[sock].kind
            && !t.end.is_quiet()
            && let Some(segment) = t.end.poll_transmit(now)
        {
            self.send_segment(sock, &segment);
        }
    }

    /// Sends one segment of a connection.
    #[inline]
    fn send_segment(&mut self, sock: u32, segment: &Transmit) {
        if self.guard.is_near() {
            self.tell_segment(sock, segment);
        }
        let now = self.queue.now();
        let s = &self.sockets[sock];
        let len = headers(s.remote.0) + segment.tcp.header_len() + segment.payload_len;
        let part = match (s.is_source, segment.payload_len) {
            (true, 1..) => Part::Data,
            (true, 0) => Part::Control,
            (false, _) => Part::Back,
        };
        let flow = &mut self.meter.flows[s.flow as usize];
        if part == Part::Data {
            let (segments, bytes) = match segment.gso_size {
                0 => (1, len),
                size => {
                    let n = segment.payload_len.div_ceil(size);
                    (n, len + (n - 1) * (len - segment.payload_len))
                }
            };
            flow.sent(segments, bytes, segment.retransmission, now);
        }
        let tos = s.opts.tos & !3 | if segment.ect { 2 } else { 0 };
        let l3 = network(s.local.0, s.remote.0, tos, ipproto::TCP, true);
        let mut packet = self.pool.make(len, l3, L4::Tcp(segment.tcp));
        (packet.priority, packet.mark, packet.flow) = (s.priority, s.opts.mark, tag(s.flow, part));
        packet.iif = s.opts.bound;
        if segment.gso_size > 0 {
            packet.set_gso(segment.gso_size.min(u16::MAX.into()) as u16, false);
            if matches!(&s.kind, Kind::Tcp(t) if t.end.is_accurate()) {
                packet.keep_cwr();
            }
        }
        packet.seq = if segment.retransmission { RETRANSMISSION } else { 0 };
        (packet.created, packet.queued) = (now, now);
        packet.sender = Sender {
            socket: s.own,
            // A SYN-ACK is a request's, which is not a socket yet.
            connected: !(segment.tcp.flags.has(TcpFlags::SYN) && segment.tcp.flags.has(TcpFlags::ACK)),
            tcp: true,
            rehashed: match &s.kind {
                Kind::Tcp(t) => t.end.rehashed(),
                _ => 0,
            },
            pacing_rate: None,
            departs: segment.departs,
        };
        let host = s.host;
        // What was sent before this segment has been before its card.
        self.settle_own(host, sock);
        let sent = match self.way_out(host, &mut packet) {
            Some(ifindex) => Ok(self.send_on(host, ifindex, packet)),
            None => self.on_host(host, |h, cx| h.transmit(packet, cx)),
        };
        self.settle_own(host, sock);
        if let Kind::Tcp(t) = &mut self.sockets[sock].kind {
            if sent.as_ref().is_ok_and(|s| s.paced) {
                t.end.paced_below();
            }
            match sent.map(|s| s.answer) {
                Ok(Xmit::Drop) => t.end.local_drop(now),
                Ok(Xmit::Cn) => t.end.local_congestion(now),
                Ok(_) => {}
                Err(error) => {
                    t.end.local_refusal(now);
                    // A rule that drops leaves the connection to its timers.
                    if error.errno != KernelError::EPERM {
                        t.end.unreachable(now);
                    }
                }
            }
        }
    }
    #[cold]
    fn tell_segment(&mut self, sock: u32, segment: &Transmit) {
        let s = &self.sockets[sock];
        let name = &self.machines[s.host as usize].name;
        let what = if segment.retransmission { "retransmits" } else { "sends" };
        let (tcp, len) = (&segment.tcp, segment.payload_len);
        let text = format!(
            "{name}: socket {}:{} > {}:{} {what} {len} bytes at {}",
            s.local.0, s.local.1, s.remote.0, s.remote.1, tcp.seq
        );
        self.guard.tell(text);
    }
    /// Tells the program what has happened to its connection.
    #[inline(always)] // Likewise.
    fn tell(&mut self, sock: u32) {
        let s = &mut self.sockets[sock];
        let Kind::Tcp(t) = &mut s.kind else { return };
        let state = t.end.state();
        let app = s.app;
        let mut say = |wake| self.wakes.tell(app, wake);
        if !t.open_told && t.end.is_open() {
            t.open_told = true;
            say(if t.listener == NONE { Wake::Connected(sock) } else { Wake::Accepted(sock) });
            if t.end.is_fast() {
                self.fast_told(sock);
            }
        }
        let s = &mut self.sockets[sock];
        let Kind::Tcp(t) = &mut s.kind else { return };
        let mut say = |wake| self.wakes.tell(app, wake);
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
        let Kind::Tcp(t) = &self.sockets[sock].kind else { return };
        if t.end.state() == State::Closed && t.end.poll_timeout().is_none() {
            self.bury(sock);
        }
    }
    /// Everything we sent has arrived, or the connection failed.
    #[cold]
    fn connection_over(&mut self, sock: u32, state: State) {
        let now = self.now();
        self.note_tcp(sock);
        let s = &mut self.sockets[sock];
        let Kind::Tcp(t) = &mut s.kind else { return };
        t.over_told = true;
        if t.end.is_fast() {
            self.fast_told(sock);
        }
        let s = &mut self.sockets[sock];
        let Kind::Tcp(t) = &mut s.kind else { return };
        if t.end.ended_well() {
            self.keep_metrics(sock);
        }
        let s = &mut self.sockets[sock];
        let Kind::Tcp(t) = &mut s.kind else { return };
        let error = t.end.error();
        if s.flow != NONE && s.is_source && error.is_none() {
            let flow = &mut self.meter.flows[s.flow as usize];
            flow.completed = flow.completed.or(Some(now));
        }
        let wake = match error {
            Some(error) if state == State::Closed => Wake::Failed(sock, error_text(error)),
            _ => Wake::Closed(sock),
        };
        self.wakes.tell(s.app, wake);
    }
    /// Puts what TCP says of itself into the flow's results.
    pub(crate) fn note_tcp(&mut self, sock: u32) {
        let s = &self.sockets[sock];
        let Kind::Tcp(t) = &s.kind else { return };
        if s.flow == NONE || !s.is_source {
            return;
        }
        let info = t.end.info();
        self.meter.flows[s.flow as usize].tcp = Some(TcpResult {
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
        for sock in 0..self.sockets.all.len() as u32 {
            self.note_tcp(sock);
        }
    }
    #[cold]
    fn bury(&mut self, sock: u32) {
        let s = &mut self.sockets[sock];
        if let Kind::Tcp(t) = &s.kind {
            let counters = self.machines[s.host as usize].host.snmp_mut();
            t.end.counted(&mut |name, n| counters.bury_tcp(name, n));
        }
        s.kind = Kind::Gone;
        let key = (s.local.1, s.remote.0, s.remote.1);
        let table = &mut self.machines[s.host as usize].sockets;
        if table.connections.get(&key) == Some(&sock) {
            table.connections.remove(&key);
            table.given_back(true);
        }
    }
    /// A connection's timer.
    pub(crate) fn tcp_timer(&mut self, sock: u32, seq: crate::event::Seq) {
        let now = self.now();
        let s = &mut self.sockets[sock];
        let host = s.host;
        let Kind::Tcp(t) = &mut s.kind else { return };
        if !t.timer.fires(seq) {
            return;
        }
        if t.end.poll_timeout().is_some_and(|due| due <= now) {
            t.end.handle_timeout(now);
            if t.end.is_fast() {
                self.fast_told(sock);
            }
        }
        self.pump(sock);
        self.settle(host);
    }
}
