//! iperf over UDP.
//!
//! Follows: iperf 2.0.4 `Client.cpp` `Run`, `write_UDP_FIN`; `Server.cpp` `Run`, `write_UDP_AckFIN`; `Listener.cpp`.
//! Datagrams are numbered from 0 and sent with a delay that makes up for late ones; the last has a negative number and is
//! answered with what the server has counted. 2.2 numbers them from 1, and its last one counts for nothing but "Sent".

use crate::app::iperf::report::{Printer, Report, Sums};
use crate::app::iperf::rows::{More, Spread, Stats};
use crate::app::iperf::tcp::throughput;
use crate::app::iperf::{Settings, peer_line, v22};
use crate::app::{Cx, Program};
use crate::index::NONE;
use crate::intent::Intent;
use crate::sock::{Addr, Kind};
use crate::wake::Wake;
use penstock_model::{Span, Time};

/// The number of a last datagram has this bit; the others are its own.
const FIN: u64 = 1 << 62;

struct Stream {
    sock: u32,
    report: Report,
    timer: u32,
    /// Number of the next datagram.
    next: u64,
    delay_us: i64,
    last_us: i64,
    amount: u64,
    /// When the datagram that waits for memory was made.
    blocked: Option<Time>,
    /// Last datagrams sent.
    fins: u32,
    done: bool,
    acked: bool,
}

/// `iperf -c -u`.
pub(crate) struct Client {
    settings: Settings,
    printer: Printer,
    sums: Sums,
    streams: Vec<Stream>,
    end: Option<Time>,
    delay_target_us: i64,
}

impl Client {
    pub(crate) fn new(settings: Settings) -> Client {
        let printer = settings.printer();
        let sums = Sums::new(settings.threads);
        let delay_target_us = (u64::from(settings.len) * 8_000_000 / settings.udp_rate.max(1)) as i64;
        Client { settings, printer, sums, streams: Vec::new(), end: None, delay_target_us }
    }
    fn flush(&mut self, cx: &mut Cx<'_>) {
        cx.print(&std::mem::take(&mut self.printer.text));
        cx.result.intervals.append(&mut self.sums.intervals);
    }
    /// Makes the next datagram and sends it.
    fn send(&mut self, i: usize, cx: &mut Cx<'_>) {
        loop {
            let now = cx.now();
            let stream = &mut self.streams[i];
            let made = match stream.blocked.take() {
                Some(made) => made,
                None => {
                    let now_us = now.as_ns() / 1000;
                    let adjust = self.delay_target_us + stream.last_us - now_us;
                    stream.last_us = now_us;
                    if adjust > 0 || stream.delay_us > 0 {
                        stream.delay_us += adjust;
                    }
                    now
                }
            };
            match cx.net.udp_send(stream.sock, self.settings.len, stream.next) {
                Ok(true) => {}
                Ok(false) => {
                    stream.blocked = Some(made);
                    return;
                }
                Err(error) => {
                    self.printer.text.push_str(&format!("write2 failed: {error}\n"));
                    self.over(i, cx);
                    return;
                }
            }
            stream.next += 1;
            stream.report.packet(made, u64::from(self.settings.len), &mut self.printer, &mut self.sums);
            stream.amount = stream.amount.saturating_sub(u64::from(self.settings.len));
            let over = match self.end {
                Some(end) => end < made,
                None => stream.amount == 0,
            };
            if stream.delay_us > 0 {
                // The delay comes before the end is looked at.
                let at = now + Span::from_us(stream.delay_us);
                let (timer, over) = (stream.timer, over);
                if over {
                    stream.done = true;
                }
                cx.net.set_timer(timer, at);
                break;
            }
            if over {
                self.over(i, cx);
                return;
            }
            // Without a delay the next one goes at once: it blocks when the socket's memory is used up.
        }
        if !self.printer.text.is_empty() {
            self.flush(cx);
        }
    }
    /// The transfer is over: its report, and the last datagram.
    fn over(&mut self, i: usize, cx: &mut Cx<'_>) {
        let now = cx.now();
        let stream = &mut self.streams[i];
        stream.done = true;
        // In 2.2 the number is that of the last datagram, which is not sent yet.
        let new = self.settings.new.is_some();
        let sent = stream.next - u64::from(new);
        let stats = stream.report.close(now, &mut self.printer, &mut self.sums);
        if !self.settings.new.as_ref().is_some_and(|new| new.csv) {
            let line = format!("[{:3}] Sent {} datagrams\n", stream.report.id, stream.next);
            self.printer.text.push_str(&line);
        }
        let bytes = cx.result.bytes.unwrap_or(0) + stats.bytes;
        let duration = cx.result.duration.unwrap_or_default().max(stats.end);
        cx.result.bytes = Some(bytes);
        cx.result.duration = Some(duration);
        cx.result.throughput_bit_s = throughput(bytes, duration);
        let packets = cx.result.packets.unwrap_or_default();
        cx.result.packets = Some((packets.0 + sent, packets.1));
        let flow = cx.net.sockets[stream.sock].flow;
        cx.net.meter.flows[flow as usize].completed = Some(now);
        self.flush(cx);
        self.fin(i, cx);
    }
    fn fin(&mut self, i: usize, cx: &mut Cx<'_>) {
        let stream = &mut self.streams[i];
        if stream.fins >= 10 {
            self.no_ack(i, cx);
            return;
        }
        stream.fins += 1;
        let sent = cx.net.udp_send(stream.sock, self.settings.len, FIN | stream.next);
        if let Err(error) = sent {
            cx.print(&format!("read failed: {error}\n"));
            self.no_ack(i, cx);
            return;
        }
        let at = cx.now() + Span::from_ms(250);
        cx.net.set_timer(stream.timer, at);
    }
    fn no_ack(&mut self, i: usize, cx: &mut Cx<'_>) {
        let stream = &mut self.streams[i];
        let (id, fins) = (stream.report.id, stream.fins);
        cx.print(&format!("[{id:3}] WARNING: did not receive ack of last datagram after {fins} tries.\n"));
        self.close(i, cx);
    }
    fn close(&mut self, i: usize, cx: &mut Cx<'_>) {
        let stream = &mut self.streams[i];
        stream.acked = true;
        cx.net.wakes.stop_timer(stream.timer);
        cx.net.udp_close(stream.sock);
        if self.streams.iter().all(|s| s.acked) {
            cx.exit(0);
        }
    }
}

impl Program for Client {
    fn intent(&self) -> Intent {
        let s = &self.settings;
        Intent::call(&s.host, Some(("udp", s.port)), s.time).over(s.family)
    }
    fn largest(&self) -> u32 {
        self.settings.len
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        cx.print(&self.settings.warnings);
        if self.delay_target_us > 1_000_000 {
            let seconds = self.delay_target_us as f64 / 1e6;
            cx.print(&format!("WARNING: delay too large, reducing from {seconds:.1} to 1.0 seconds.\n"));
            self.delay_target_us = 1_000_000;
        }
        let Some(addr) = self.settings.server_addr(cx) else { return };
        let to = cx.net.host_of(addr).unwrap_or(cx.host);
        for i in 0..self.settings.threads {
            let sock = cx.net.udp_bind(cx.host, cx.app, 0, self.settings.sock_opts()).unwrap_or(NONE);
            let name = cx.flow_name();
            let flow = cx.new_flow(name, cx.host, to, "udp");
            if let Err(error) = cx.net.udp_connect(sock, (addr, self.settings.port), flow) {
                cx.print(&format!("connect failed: {error}\n"));
                cx.exit(1);
                return;
            }
            let mut window = 0;
            if let Kind::Udp(u) = &mut cx.net.sockets[sock].kind {
                if self.settings.window > 0 {
                    u.sndbuf = self.settings.window * 2;
                }
                window = u.sndbuf;
            }
            if i == 0 {
                cx.print(&self.settings.report(window, cx.app, None));
            }
            let id = self.settings.id(i);
            let s = &cx.net.sockets[sock];
            let (local, remote) = (s.local, s.remote);
            let line = if self.settings.new.is_some() {
                self.settings.peer_2_2(id, (local, remote), None, None, cx)
            } else {
                peer_line(id, local, remote)
            };
            cx.print(&line);
            let timer = cx.net.wakes.new_timer(cx.app, i);
            self.streams.push(Stream {
                sock,
                report: Report::new(id, i, false, now, self.settings.interval)
                    .with(self.settings.len, v22::ends(local, remote)),
                timer,
                next: u64::from(self.settings.new.is_some()),
                delay_us: 0,
                last_us: now.as_ns() / 1000,
                amount: self.settings.amount,
                blocked: None,
                fins: 0,
                done: false,
                acked: false,
            });
        }
        self.end = self.settings.time.map(|t| now + t);
        for i in 0..self.streams.len() {
            self.send(i, cx);
        }
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Timer(i) => {
                let i = i as usize;
                let stream = &self.streams[i];
                match (stream.done, stream.fins) {
                    (false, _) => self.send(i, cx),
                    (true, 0) => self.over(i, cx),
                    (true, _) => self.fin(i, cx),
                }
            }
            Wake::Writable(sock) => {
                if let Some(i) = self.streams.iter().position(|s| s.sock == sock && s.blocked.is_some()) {
                    self.send(i, cx);
                }
            }
            Wake::Datagram { sock, seq, .. } => {
                let Some(i) = self.streams.iter().position(|s| s.sock == sock && s.fins > 0 && !s.acked)
                else {
                    return;
                };
                let id = self.streams[i].report.id;
                if let Some(m) = cx.net.sockets.notes.get(seq as usize) {
                    let at = |n: usize| m.values.get(n).copied().unwrap_or(0);
                    let stats = Stats {
                        start: Span::ZERO,
                        end: Span::from_ns(at(0)),
                        bytes: at(1) as u64,
                        jitter: at(2) as f64 / 1e9,
                        errors: at(3) as u64,
                        datagrams: at(4) as u64,
                        out_of_order: at(5) as u64,
                        more: told(&m.values),
                    };
                    let packets = cx.result.packets.unwrap_or_default();
                    cx.result.packets =
                        Some((packets.0, packets.1 + stats.datagrams.saturating_sub(stats.errors)));
                    cx.result.jitter = Some(Span::from_ns(at(2)));
                    self.printer.relay(id, &stats);
                    self.flush(cx);
                }
                self.close(i, cx);
            }
            _ => {}
        }
    }
}

/// What a server of 2.2 tells besides: of the delays how many, their sum, least, greatest and deviation; the datagrams, and how many a second.
fn tell(stats: &Stats) -> [i64; 7] {
    let (t, more) = (&stats.more.transit, &stats.more);
    let ns = |seconds: f64| (seconds * 1e9).round() as i64;
    let seconds = stats.end.as_secs_f64();
    let pps = if seconds > 0.0 { more.packets as f64 / seconds } else { 0.0 };
    [t.n as i64, ns(t.sum), ns(t.min), ns(t.max), ns(t.deviation()), more.packets as i64, pps.round() as i64]
}
/// The other way round.
fn told(values: &[i64]) -> More {
    let at = |n: usize| values.get(n + 6).copied().unwrap_or(0);
    let seconds = |n: usize| at(n) as f64 / 1e9;
    More {
        transit: Spread::of(at(0) as u64, [seconds(1), seconds(2), seconds(3), seconds(4)]),
        packets: at(5) as u64,
        pps: at(6) as f64,
        whole: true,
        ..More::default()
    }
}

struct Peer {
    from: Addr,
    report: Report,
    /// When the newest datagram but the last came.
    heard: Time,
    /// What was answered to the last datagram, once it came.
    answer: Option<u64>,
}

/// `iperf -s -u`.
pub(crate) struct Server {
    settings: Settings,
    printer: Printer,
    sums: Sums,
    sock: u32,
    peers: Vec<Peer>,
    streams: u32,
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Server {
        let printer = settings.printer();
        Server { settings, printer, sums: Sums::new(0), sock: NONE, peers: Vec::new(), streams: 0 }
    }
}

impl Program for Server {
    fn intent(&self) -> Intent {
        Intent::listen("udp", self.settings.port)
    }
    fn largest(&self) -> u32 {
        self.settings.len
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        cx.print(&self.settings.warnings);
        let Some(sock) = cx.net.udp_bind(cx.host, cx.app, self.settings.port, self.settings.sock_opts())
        else {
            cx.print("bind failed: Address already in use\n");
            cx.exit(1);
            return;
        };
        self.sock = sock;
        let window = match &cx.net.sockets[sock].kind {
            Kind::Udp(u) if self.settings.window == 0 => u.sndbuf,
            _ => self.settings.window * 2,
        };
        cx.print(&self.settings.report(window, cx.app, None));
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        let Wake::Datagram { from, to, len, seq, created, .. } = wake else { return };
        let now = cx.now();
        let known = self.peers.iter().position(|p| p.from == from);
        let i = match known {
            Some(i) => i,
            // A last datagram of nobody is left alone.
            None if seq & FIN != 0 => return,
            None => {
                let mut n = if self.settings.new.is_some() { self.streams } else { 0 };
                while self.peers.iter().any(|p| p.answer.is_none() && p.report.id == self.settings.id(n)) {
                    n += 1;
                }
                let id = self.settings.id(n);
                let local = (to, self.settings.port);
                let line = if self.settings.new.is_some() {
                    self.settings.peer_2_2(id, (local, from), None, None, cx)
                } else {
                    peer_line(id, local, from)
                };
                cx.print(&line);
                let report = Report::new(id, self.streams, true, now, self.settings.interval)
                    .with(self.settings.len, v22::ends(from, local));
                self.streams += 1;
                self.sums.threads += 1;
                self.peers.push(Peer { from, report, heard: now, answer: None });
                self.peers.len() - 1
            }
        };
        let peer = &mut self.peers[i];
        if peer.answer.is_none() && (seq & FIN == 0 || self.settings.new.is_none()) {
            let transit = now - created;
            peer.report.datagram(now, u64::from(len), seq & !FIN, transit, &mut self.printer, &mut self.sums);
        }
        if seq & FIN == 0 {
            peer.heard = now;
        } else {
            // 2.1's clock stops with the datagram before the last (`Reporter.c`: the last is dated as the one before).
            let end = if self.settings.waits { peer.heard } else { now };
            let answer = match peer.answer {
                Some(answer) => answer,
                None => {
                    let stats = peer.report.close(end, &mut self.printer, &mut self.sums);
                    self.sums.threads -= 1;
                    cx.result.bytes = Some(stats.bytes);
                    cx.result.duration = Some(stats.end);
                    cx.result.throughput_bit_s = throughput(stats.bytes, stats.end);
                    cx.result.packets = Some((stats.datagrams, stats.datagrams.saturating_sub(stats.errors)));
                    cx.result.jitter = Some(Span::from_ns((stats.jitter * 1e9) as i64));
                    let mut values = vec![
                        stats.end.as_ns() / 1000 * 1000,
                        stats.bytes as i64,
                        (stats.jitter * 1e6) as i64 * 1000,
                        stats.errors as i64,
                        stats.datagrams as i64,
                        stats.out_of_order as i64,
                    ];
                    values.extend(tell(&stats));
                    cx.net.sockets.note(values)
                }
            };
            self.peers[i].answer = Some(answer);
            // Lost answers are made up for by the client's asking again.
            let _ = cx.net.udp_send_to(self.sock, from, self.settings.len, answer);
        }
        if !self.printer.text.is_empty() {
            cx.print(&std::mem::take(&mut self.printer.text));
            cx.result.intervals.append(&mut self.sums.intervals);
        }
    }
}
