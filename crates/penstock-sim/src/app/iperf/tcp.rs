//! iperf over TCP.
//!
//! Follows: iperf 2.0.4 `Client.cpp` `RunTCP`, `Server.cpp` `Run`. The client writes buffers until the alarm has rung and the
//! write under way has returned: so a transfer of 10 s through a slow line is reported as `0.0-10.1 sec`, and bytes
//! that the socket has taken count although they have not yet arrived.
//!
//! 2.1.8 (`Client.cpp` `SendFirstPayload`, `Listener.cpp` `apply_client_settings_tcp`, `client_test_ack`; seen with `strace`): before its first block
//! a client writes 60 bytes that say which test this is, and its report counts them; the server answers with 28 bytes, which the client
//! leaves unread until it has shut its side down. `SO_SNDTIMEO` of half the interval of reports, or of half the transfer's time without one. A write that
//! has waited so long in all returns what the socket has taken (`tcp_sendmsg_locked`), and the next one takes at once whatever is free.
//!
//! 2.2.1 writes 64 bytes first. With `-b` (`RunRateLimitedTCP`) a write waits until what was written before it is within the rate.

use crate::app::iperf::report::{Printer, Report, Sums};
use crate::app::iperf::{Settings, peer_line, v22};
use crate::app::{Cx, Program};
use crate::intent::Intent;
use crate::sock::{Kind, Listener, SockOpts};
use crate::wake::Wake;
use penstock_model::{Span, Time};
use std::net::IpAddr;

/// What a client of 2.1 says first, and one of 2.2, bytes (`struct client_tcp_testhdr` without what only other tests need).
const HEADER: u64 = 60;
const HEADER_2_2: u64 = 64;
/// What a server of 2.1 answers, bytes (`struct client_hdr_ack` without the times of `--trip-times`).
const HEADER_ACK: u64 = 28;

/// The timer of the thread that prints; the others are the streams'.
const REPORTER: u32 = u32::MAX;

struct Stream {
    sock: u32,
    connected: bool,
    done: bool,
    /// Has ended its side and waits for the server's.
    closing: bool,
    report: Report,
    /// Of the buffer being written, what the socket has not taken yet.
    left: u64,
    /// With `-n`: what is still to be sent.
    amount: u64,
    /// Bytes not yet told to the report (without intervals they are told at the end).
    untold: u64,
    /// The write under way has begun to wait.
    waiting: bool,
    /// Rings when it has waited as long as it may, or when its rate lets it write.
    timer: u32,
    /// It waits for its rate.
    paced: bool,
    /// Bytes written.
    written: u64,
    /// When it began to connect, and was connected.
    connecting: (Time, Time),
}

/// `iperf -c`.
pub(crate) struct Client {
    settings: Settings,
    printer: Printer,
    sums: Sums,
    streams: Vec<Stream>,
    end: Option<Time>,
    /// Its thread that prints has not had the processor yet.
    silent: bool,
    began: Time,
}

impl Client {
    pub(crate) fn new(settings: Settings) -> Client {
        let printer = settings.printer();
        let sums = Sums::new(settings.threads);
        Client { settings, printer, sums, streams: Vec::new(), end: None, silent: true, began: Time::ZERO }
    }
    fn flush(&mut self, cx: &mut Cx<'_>) {
        if self.silent {
            return;
        }
        cx.print(&std::mem::take(&mut self.printer.text));
        cx.result.intervals.append(&mut self.sums.intervals);
    }
    /// What stands above the rows. The window is what the first socket has when it is printed (`reporter_reportsettings`,
    /// `getsock_tcp_windowsize`): where the thread that prints comes late, the socket's buffer may have grown.
    fn head(&mut self, cx: &mut Cx<'_>) {
        if !std::mem::take(&mut self.silent) {
            return;
        }
        let window =
            self.streams.first().and_then(|s| cx.net.endpoint(s.sock)).map_or(0, |e| e.info().sndbuf);
        // 2.2 looks before it connects.
        let window = match self.settings.new {
            Some(_) => self.settings.tcp_config(cx).map_or(window, |cfg| cfg.sndbuf.initial()),
            None => window,
        };
        let cc = self.streams.first().and_then(|s| cx.net.endpoint(s.sock)).map(|e| e.info().cc);
        cx.print(&self.settings.report(window, cx.app, cc));
        for (stream, i) in self.streams.iter().zip(0..) {
            let s = &cx.net.sockets[stream.sock];
            let (id, ends) = (self.settings.id(i), (s.local, s.remote));
            let line = if self.settings.new.is_some() {
                let (from, to) = stream.connecting;
                self.settings.peer_2_2(id, ends, v22::tcp(stream.sock, cx.net), Some(to - from), cx)
            } else {
                peer_line(id, ends.0, ends.1)
            };
            cx.print(&line);
        }
    }
    /// All streams are connected: the clock starts.
    fn begin(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        let late = cx.net.machines[cx.host as usize].cpu.thread();
        if late > Span::ZERO {
            let timer = cx.net.wakes.new_timer(cx.app, REPORTER);
            cx.net.set_timer(timer, now + late);
        } else {
            self.head(cx);
        }
        self.end = self.settings.time.map(|t| now + t);
        self.began = now;
        for i in 0..self.streams.len() {
            let (id, sock) = (self.settings.id(i as u32), self.streams[i].sock);
            let (local, peer) = (cx.net.sockets[sock].local, cx.net.sockets[sock].remote);
            let mut report = Report::new(id, i as u32, false, now, self.settings.interval);
            if self.settings.new.is_some() {
                report = report.with(self.settings.len, v22::ends(local, peer));
                report.tcp(v22::tcp(sock, cx.net).unwrap_or_default());
            }
            self.streams[i].report = report;
        }
        for i in 0..self.streams.len() {
            if self.settings.waits {
                let header = if self.settings.new.is_some() { HEADER_2_2 } else { HEADER };
                let took = cx.net.tcp_write(self.streams[i].sock, header);
                self.count(i, took, cx);
            }
            self.write(i, cx);
        }
    }
    /// How long a write may wait; `None`: for ever.
    fn patience(&self) -> Option<Span> {
        let Settings { waits, interval, time, .. } = self.settings;
        let half = |span: Span| Span::from_ns(span.as_ns() / 2);
        let limit = match time {
            _ if interval > Span::ZERO => half(interval),
            Some(time) => half(time),
            // That of connecting stays: what it would set is refused.
            None => Span::from_ms(4000),
        };
        waits.then_some(limit)
    }
    /// Writes buffer after buffer until the socket is full or the transfer over.
    fn write(&mut self, i: usize, cx: &mut Cx<'_>) {
        while !self.streams[i].done && !self.streams[i].closing && !self.streams[i].paced {
            let stream = &mut self.streams[i];
            stream.left -= cx.net.tcp_write(stream.sock, stream.left);
            if stream.left > 0 {
                // Its clock runs from its first wait.
                let first = !std::mem::replace(&mut stream.waiting, true);
                if let Some(limit) = self.patience().filter(|_| first) {
                    cx.net.set_timer(self.streams[i].timer, cx.now() + limit);
                }
                break;
            }
            self.returned(i, cx);
        }
        self.flush(cx);
    }
    /// A write has returned.
    fn returned(&mut self, i: usize, cx: &mut Cx<'_>) {
        let stream = &mut self.streams[i];
        let len = u64::from(self.settings.len) - stream.left;
        (stream.left, stream.waiting) = (self.settings.len.into(), false);
        cx.net.wakes.stop_timer(stream.timer);
        self.count(i, len, cx);
        let (now, stream) = (cx.now(), &mut self.streams[i]);
        stream.written += len;
        let rate = self.settings.new.as_ref().and_then(|new| new.rate);
        if let Some(rate) = rate {
            let ns = u128::from(stream.written) * 8_000_000_000 / u128::from(rate);
            let due = self.began + Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX / 2));
            if due > now {
                stream.paced = true;
                cx.net.set_timer(stream.timer, due);
                return;
            }
        }
        self.written(i, cx);
    }
    /// Whether another write follows.
    fn written(&mut self, i: usize, cx: &mut Cx<'_>) {
        let (now, stream) = (cx.now(), &mut self.streams[i]);
        let over = match self.end {
            Some(end) => now >= end,
            None => stream.amount == 0,
        };
        if over && self.settings.waits {
            stream.closing = true;
            cx.net.tcp_close(stream.sock);
            cx.net.tcp_read(stream.sock);
        } else if over {
            self.finish(i, cx);
        }
    }
    /// So many bytes were written.
    fn count(&mut self, i: usize, len: u64, cx: &Cx<'_>) {
        let stream = &mut self.streams[i];
        let new = self.settings.new.is_some();
        if new
            && stream.report.due().is_some_and(|due| due < cx.now())
            && let Some(tcp) = v22::tcp(stream.sock, cx.net)
        {
            stream.report.tcp(tcp);
        }
        if (stream.report.has_intervals() || new) && len > 0 {
            stream.report.packet(cx.now(), len, &mut self.printer, &mut self.sums);
        } else {
            stream.untold += len;
        }
        stream.amount = stream.amount.saturating_sub(len);
    }
    /// A connection did not come about.
    fn not_connected(&mut self, i: u32, to: (IpAddr, u16), why: &str, cx: &mut Cx<'_>) {
        if self.settings.new.is_some() && std::mem::take(&mut self.silent) {
            let Some(cfg) = self.settings.tcp_config(cx) else { return };
            cx.print(&self.settings.report(cfg.sndbuf.initial(), cx.app, Some(cfg.cc.name)));
        }
        let now = cx.now();
        cx.print(&self.settings.refused(self.settings.id(i), to, why, now));
    }
    fn finish(&mut self, i: usize, cx: &mut Cx<'_>) {
        let now = cx.now();
        let stream = &mut self.streams[i];
        stream.done = true;
        if stream.untold > 0 {
            stream.report.packet(now, stream.untold, &mut self.printer, &mut self.sums);
        }
        let stats = stream.report.close(now, &mut self.printer, &mut self.sums);
        if self.settings.print_mss
            && self.settings.new.is_none()
            && let Some(e) = cx.net.endpoint(stream.sock)
        {
            let mss = e.info().snd_mss;
            let text =
                format!("[{:3}] MSS size {mss} bytes (MTU {} bytes, ethernet)\n", stream.report.id, 1500);
            self.printer.text.push_str(&text);
        }
        if !stream.closing {
            cx.net.tcp_close(stream.sock);
        }
        self.head(cx);
        let bytes = cx.result.bytes.unwrap_or(0) + stats.bytes;
        let duration = cx.result.duration.unwrap_or_default().max(stats.end);
        cx.result.bytes = Some(bytes);
        cx.result.duration = Some(duration);
        cx.result.throughput_bit_s = throughput(bytes, duration);
        self.flush(cx);
        if self.streams.iter().all(|s| s.done) {
            cx.exit(0);
        }
    }
}

/// Bits per second, rounded down.
pub(crate) fn throughput(bytes: u64, duration: Span) -> Option<u64> {
    let ns = u128::try_from(duration.as_ns()).ok().filter(|&ns| ns > 0)?;
    u64::try_from(u128::from(bytes) * 8_000_000_000 / ns).ok()
}

impl Program for Client {
    fn intent(&self) -> Intent {
        let s = &self.settings;
        Intent::call(&s.host, Some(("tcp", s.port)), s.time).over(s.family)
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        cx.print(&self.settings.warnings);
        let Some(addr) = self.settings.server_addr(cx) else { return };
        let Some(cfg) = self.settings.tcp_config(cx) else { return };
        let to = cx.net.host_of(addr).unwrap_or(cx.host);
        for i in 0..self.settings.threads {
            let name = cx.flow_name();
            let flow = cx.new_flow(name, cx.host, to, "tcp");
            let timer = cx.net.wakes.new_timer(cx.app, i);
            let remote = (addr, self.settings.port);
            let opts = self.settings.sock_opts();
            match cx.net.tcp_connect(cx.host, cx.app, remote, flow, true, opts, cfg.clone()) {
                Ok(sock) => self.streams.push(Stream {
                    sock,
                    connected: false,
                    done: false,
                    closing: false,
                    report: Report::new(0, 0, false, Time::ZERO, Span::ZERO),
                    left: u64::from(self.settings.len),
                    amount: self.settings.amount,
                    untold: 0,
                    waiting: false,
                    timer,
                    paced: false,
                    written: 0,
                    connecting: (cx.now(), cx.now()),
                }),
                Err(error) => {
                    self.not_connected(i, (addr, self.settings.port), error, cx);
                    cx.exit(1);
                    return;
                }
            }
        }
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Connected(sock) => {
                let now = cx.now();
                for stream in self.streams.iter_mut().filter(|s| s.sock == sock) {
                    (stream.connected, stream.connecting.1) = (true, now);
                }
                if self.streams.iter().all(|s| s.connected) {
                    self.begin(cx);
                }
            }
            Wake::Writable(sock) => {
                if let Some(i) = self.streams.iter().position(|s| s.sock == sock) {
                    self.write(i, cx);
                }
            }
            Wake::Timer(REPORTER) => {
                self.head(cx);
                self.flush(cx);
            }
            Wake::Timer(i) => {
                let i = i as usize;
                if std::mem::take(&mut self.streams[i].paced) {
                    self.written(i, cx);
                    self.write(i, cx);
                } else if !self.streams[i].done && !self.streams[i].closing {
                    self.returned(i, cx);
                    self.write(i, cx);
                }
            }
            Wake::Failed(sock, error) => {
                let Some(i) = self.streams.iter().position(|s| s.sock == sock) else { return };
                if self.streams[i].done {
                    return;
                }
                if self.streams[i].closing {
                    self.finish(i, cx);
                } else if self.streams[i].connected {
                    cx.print(&format!("write2 failed: {error}\n"));
                    self.finish(i, cx);
                } else {
                    let to = cx.net.sockets[sock].remote;
                    self.not_connected(i as u32, to, error, cx);
                    cx.exit(1);
                }
            }
            Wake::Eof(sock) => {
                let waiting = |s: &Stream| s.sock == sock && s.closing && !s.done;
                if let Some(i) = self.streams.iter().position(waiting) {
                    self.finish(i, cx);
                }
            }
            Wake::Readable(sock)
                if self.streams.iter().any(|s| s.sock == sock && (s.closing || !self.settings.waits)) =>
            {
                cx.net.tcp_read(sock);
            }
            _ => {}
        }
    }
}

struct Connection {
    sock: u32,
    peer: IpAddr,
    report: Report,
    untold: u64,
    /// Of what the client says first, bytes still to come.
    header: u64,
}

/// `iperf -s`.
pub(crate) struct Server {
    settings: Settings,
    printer: Printer,
    connections: Vec<Connection>,
    /// Sums of the connections of one client that run together.
    groups: Vec<(IpAddr, Sums)>,
    streams: u32,
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Server {
        let printer = settings.printer();
        Server { settings, printer, connections: Vec::new(), groups: Vec::new(), streams: 0 }
    }
    fn group(groups: &mut Vec<(IpAddr, Sums)>, peer: IpAddr) -> &mut Sums {
        let at = groups.iter().position(|(p, _)| *p == peer).unwrap_or_else(|| {
            groups.push((peer, Sums::new(0)));
            groups.len() - 1
        });
        &mut groups[at].1
    }
    fn flush(&mut self, cx: &mut Cx<'_>) {
        cx.print(&std::mem::take(&mut self.printer.text));
        for (_, sums) in &mut self.groups {
            cx.result.intervals.append(&mut sums.intervals);
        }
    }
    fn read(&mut self, i: usize, cx: &mut Cx<'_>) {
        let now = cx.now();
        let c = &mut self.connections[i];
        let n = cx.net.tcp_read(c.sock);
        if n == 0 {
            return;
        }
        if c.header > 0 {
            c.header = c.header.saturating_sub(n);
            if c.header == 0 {
                cx.net.tcp_write(c.sock, HEADER_ACK);
            }
        }
        let new = self.settings.new.is_some();
        if c.report.has_intervals() || new {
            let sums = Server::group(&mut self.groups, c.peer);
            // In 2.2 the rows tell of reads, each of which takes a buffer at most.
            let most = if new { u64::from(self.settings.len) } else { n };
            let mut left = n;
            while left > 0 {
                let read = left.min(most);
                c.report.packet(now, read, &mut self.printer, sums);
                left -= read;
            }
            if !self.printer.text.is_empty() {
                self.flush(cx);
            }
        } else {
            c.untold += n;
        }
    }
    fn over(&mut self, i: usize, cx: &mut Cx<'_>) {
        let now = cx.now();
        let mut c = self.connections.remove(i);
        let sums = Server::group(&mut self.groups, c.peer);
        if c.untold > 0 {
            c.report.packet(now, c.untold, &mut self.printer, sums);
        }
        let stats = c.report.close(now, &mut self.printer, sums);
        if !self.connections.iter().any(|o| o.peer == c.peer) {
            sums.threads = 0;
        }
        cx.net.tcp_close(c.sock);
        cx.result.bytes = Some(stats.bytes);
        cx.result.duration = Some(stats.end);
        cx.result.throughput_bit_s = throughput(stats.bytes, stats.end);
        self.flush(cx);
    }
}

impl Program for Server {
    fn intent(&self) -> Intent {
        Intent::listen("tcp", self.settings.port)
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        cx.print(&self.settings.warnings);
        let Some(cfg) = self.settings.tcp_config(cx) else { return };
        let (window, cc) = (cfg.rcvbuf.initial(), cfg.cc.name);
        let opts = SockOpts { tos: self.settings.tos, ..SockOpts::default() };
        let listener = Listener { cfg: Box::new(cfg), backlog: 10, sink: false, fast: Default::default() };
        if cx.net.tcp_listen(cx.host, cx.app, self.settings.port, opts, listener).is_none() {
            cx.print("bind failed: Address already in use\n");
            cx.exit(1);
            return;
        }
        cx.print(&self.settings.report(window, cx.app, Some(cc)));
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        let find = |connections: &[Connection], sock: u32| connections.iter().position(|c| c.sock == sock);
        match wake {
            Wake::Accepted(sock) => {
                let now = cx.now();
                let (local, peer) = {
                    let s = &cx.net.sockets[sock];
                    debug_assert!(!matches!(s.kind, Kind::Udp(_)));
                    (s.local, s.remote)
                };
                // The listening socket is the first; an accepted one gets the lowest free number after it. 2.2 counts transfers instead.
                let mut n = if self.settings.new.is_some() { self.streams } else { 1 };
                while self.connections.iter().any(|c| c.report.id == self.settings.id(n)) {
                    n += 1;
                }
                let id = self.settings.id(n);
                let line = if self.settings.new.is_some() {
                    self.settings.peer_2_2(id, (local, peer), v22::tcp(sock, cx.net), None, cx)
                } else {
                    peer_line(id, local, peer)
                };
                cx.print(&line);
                Server::group(&mut self.groups, peer.0).threads += 1;
                let report = Report::new(id, self.streams, false, now, self.settings.interval)
                    .with(self.settings.len, v22::ends(peer, local));
                self.streams += 1;
                let header = match (self.settings.waits, self.settings.new.is_some()) {
                    (true, true) => HEADER_2_2,
                    (true, false) => HEADER,
                    (false, _) => 0,
                };
                self.connections.push(Connection { sock, peer: peer.0, report, untold: 0, header });
            }
            Wake::Readable(sock) => {
                if let Some(i) = find(&self.connections, sock) {
                    self.read(i, cx);
                }
            }
            Wake::Eof(sock) | Wake::Failed(sock, _) => {
                if let Some(i) = find(&self.connections, sock) {
                    self.read(i, cx);
                    self.over(i, cx);
                }
            }
            _ => {}
        }
    }
}
