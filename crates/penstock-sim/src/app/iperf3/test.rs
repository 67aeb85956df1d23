//! A test under way: its streams, what is printed each interval and in the end.
//!
//! Follows: iperf 3.18 `iperf_print_intermediate`, `iperf_udp_recv`, `iperf_json_start`.

use crate::app::Cx;
use crate::app::iperf3::json::Json;
use crate::app::iperf3::print::{self, End, Ends, Style};
use crate::app::iperf3::{Settings, VERSION};
use crate::index::NONE;
use crate::results::Interval;
use crate::sock::Addr;
use penstock_model::{Span, Time};

/// One stream.
pub(crate) struct Stream {
    pub(crate) id: u32,
    /// This side sends it.
    pub(crate) sender: bool,
    pub(crate) sock: u32,
    pub(crate) flow: u32,
    pub(crate) local: Addr,
    pub(crate) remote: Addr,
    /// Bytes sent or received here.
    pub(crate) bytes: u64,
    /// Datagrams sent, or the highest number received.
    pub(crate) packets: u64,
    pub(crate) errors: u64,
    pub(crate) out_of_order: u64,
    /// Seconds.
    pub(crate) jitter: f64,
    prev_transit: f64,
    /// What the other side has counted: bytes, packets, errors, jitter in ns, retransmissions; and how long it took, ns.
    pub(crate) other: [i64; 6],
    retransmits: u64,
    max_cwnd: u64,
    max_window: u64,
    rtt_us: (i64, i64, i64, i64),
    before: (u64, u64, u64, u64),
    /// What is not counted of them: packets, errors, retransmissions.
    omitted: (u64, u64, u64),
    /// The send that waits for memory.
    pub(crate) blocked: bool,
    /// A send is under way: it is carried out when the processor is through with it.
    calling: bool,
}

impl Stream {
    pub(crate) fn new(id: u32, sender: bool, sock: u32, flow: u32, local: Addr, remote: Addr) -> Stream {
        Stream {
            id,
            sender,
            sock,
            flow,
            local,
            remote,
            bytes: 0,
            packets: 0,
            errors: 0,
            out_of_order: 0,
            jitter: 0.0,
            prev_transit: 0.0,
            other: [0; 6],
            retransmits: 0,
            max_cwnd: 0,
            max_window: 0,
            rtt_us: (i64::MAX, 0, 0, 0),
            before: (0, 0, 0, 0),
            omitted: (0, 0, 0),
            blocked: false,
            calling: false,
        }
    }
    /// `[  5] local 10.0.0.1 port 45708 connected to 10.0.0.2 port 5201`.
    pub(crate) fn connected(&self) -> String {
        let (l, r) = (self.local, self.remote);
        format!("[{:3}] local {} port {} connected to {} port {}\n", self.id, l.0, l.1, r.0, r.1)
    }
    /// A datagram came.
    pub(crate) fn datagram(&mut self, len: u32, number: u64, transit: Span) {
        self.bytes += u64::from(len);
        if number > self.packets {
            self.errors += number - 1 - self.packets;
            self.packets = number;
        } else {
            self.out_of_order += 1;
        }
        let transit = (transit.as_ns() / 1000) as f64 / 1e6;
        self.jitter += ((transit - self.prev_transit).abs() - self.jitter) / 16.0;
        self.prev_transit = transit;
    }
    /// What is told to the other side in the end.
    fn results(&self, took: Span) -> [i64; 6] {
        let jitter = (self.jitter * 1e9) as i64;
        let (packets, errors, retransmits) = self.counted();
        [self.bytes as i64, packets as i64, errors as i64, jitter, retransmits as i64, took.as_ns()]
    }
    /// Packets, errors and retransmissions without what is omitted.
    fn counted(&self) -> (u64, u64, u64) {
        let (packets, errors, retransmits) = self.omitted;
        (self.packets - packets, self.errors - errors, self.retransmits.saturating_sub(retransmits))
    }
}

/// A test.
pub(crate) struct Test {
    pub(crate) settings: Settings,
    pub(crate) client: bool,
    pub(crate) streams: Vec<Stream>,
    pub(crate) start: Time,
    pub(crate) last: Time,
    /// When it counted last.
    pub(crate) ended: Time,
    intervals: Vec<Json>,
    header_printed: bool,
    end_printed: bool,
    /// What a server has printed, for the client that wants to have it; and at the client.
    pub(crate) said: String,
    pub(crate) server_said: Option<String>,
    /// It sends already, and does not count yet.
    pub(crate) omitting: bool,
}

impl Test {
    pub(crate) fn new(settings: Settings, client: bool) -> Test {
        Test {
            settings,
            client,
            streams: Vec::new(),
            start: Time::ZERO,
            last: Time::ZERO,
            ended: Time::ZERO,
            intervals: Vec::new(),
            header_printed: false,
            end_printed: false,
            said: String::new(),
            server_said: None,
            omitting: false,
        }
    }
    /// Streams start now.
    pub(crate) fn begin(&mut self, now: Time) {
        (self.start, self.last, self.ended) = (now, now, now);
        self.omitting = self.settings.omit > Span::ZERO;
    }
    /// From now on it counts (`iperf_reset_stats`).
    pub(crate) fn omitted(&mut self, cx: &mut Cx<'_>) {
        self.interval(cx);
        self.omitting = false;
        let now = cx.now();
        (self.start, self.last, self.ended) = (now, now, now);
        for stream in &mut self.streams {
            if let Some(endpoint) = cx.net.endpoint(stream.sock) {
                stream.retransmits = endpoint.info().total_retrans;
            }
            (stream.bytes, stream.jitter) = (0, 0.0);
            stream.omitted = (stream.packets, stream.errors, stream.retransmits);
            stream.before = (0, stream.packets, stream.errors, stream.retransmits);
        }
    }
    /// Writes to a stream as much as it takes.
    pub(crate) fn write(&mut self, i: usize, cx: &mut Cx<'_>) {
        let now = cx.now();
        let len = u64::from(self.settings.len);
        let stream = &mut self.streams[i];
        if !stream.sender {
            return;
        }
        loop {
            if self.settings.rate > 0 {
                let elapsed = (now - self.start).as_ns() as u128;
                let due = u128::from(self.settings.rate) * elapsed / 8_000_000_000;
                if u128::from(stream.bytes) > due {
                    return;
                }
            }
            if self.settings.bytes > 0 && stream.bytes >= self.settings.bytes {
                return;
            }
            let took = cx.net.tcp_write(stream.sock, len);
            stream.bytes += took;
            if took < len {
                return;
            }
        }
    }
    /// Sends the datagrams that are due; at most 1000 at an instant. Where a call takes the processor's time, one goes and the
    /// answer is when the next call is over.
    pub(crate) fn send(&mut self, i: usize, cx: &mut Cx<'_>) -> Option<Time> {
        let now = cx.now();
        let takes_time = cx.net.machines[cx.host as usize].cpu.cost.send > Span::ZERO;
        let (rate, len) = (self.settings.rate, self.settings.len);
        let elapsed = (now - self.start).as_ns() as u128;
        let due = u128::from(rate) * elapsed / 8_000_000_000;
        let stream = &mut self.streams[i];
        if !stream.sender {
            return None;
        }
        stream.blocked = false;
        for _ in 0..1000 {
            if rate > 0 && u128::from(stream.bytes) > due
                || self.settings.bytes > 0 && stream.bytes >= self.settings.bytes
            {
                stream.calling = false;
                return None;
            }
            if takes_time && !stream.calling {
                if !cx.net.udp_has_room(stream.sock) {
                    stream.blocked = true;
                    return None;
                }
                stream.calling = true;
                return Some(cx.net.machines[cx.host as usize].cpu.call(now));
            }
            stream.calling = false;
            let s = &mut cx.net.sockets[stream.sock];
            (s.flow, s.is_source) = (stream.flow, true);
            match cx.net.udp_send_to(stream.sock, stream.remote, len, stream.packets + 1) {
                Ok(true) => {
                    stream.packets += 1;
                    stream.bytes += u64::from(len);
                }
                Ok(false) => {
                    stream.blocked = true;
                    return None;
                }
                Err(_) => return None,
            }
        }
        None
    }
    /// Whether the amount that was asked for has been sent.
    pub(crate) fn has_sent_all(&self) -> bool {
        let mut own = self.streams.iter().filter(|s| s.sender).peekable();
        self.settings.bytes > 0 && own.peek().is_some() && own.all(|s| s.bytes >= self.settings.bytes)
    }
    /// Whether this side sends any.
    pub(crate) fn sends(&self) -> bool {
        self.streams.iter().any(|s| s.sender)
    }
    /// How many streams there are going to be.
    pub(crate) fn wanted(&self) -> u32 {
        if self.settings.bidir { 2 * self.settings.parallel } else { self.settings.parallel }
    }
    /// Whether this side sends the stream of that number: where both send, the client's come first.
    pub(crate) fn sends_nth(&self, n: u32) -> bool {
        let by_client = if self.settings.bidir { n < self.settings.parallel } else { !self.settings.reverse };
        by_client == self.client
    }
    /// What is told to the other side in the end.
    pub(crate) fn results(&self) -> Vec<i64> {
        let took = self.ended - self.start;
        self.streams.iter().flat_map(|s| s.results(took)).collect()
    }
    /// What the other side has told.
    pub(crate) fn learn(&mut self, values: &[i64]) {
        for (stream, values) in self.streams.iter_mut().zip(values.chunks_exact(6)) {
            stream.other.copy_from_slice(values);
        }
    }

    /// Seconds as `iperf_time_in_secs` has them, of microseconds.
    fn since_start(&self, at: Time) -> f64 {
        seconds(self.start, at)
    }
    pub(crate) fn style(&self) -> Style {
        let s = &self.settings;
        Style { udp: s.udp, bidir: s.bidir, client: self.client, parallel: s.parallel, format: s.format }
    }
    /// Prints, and keeps what the client wants to have (`--get-server-output`).
    pub(crate) fn say(&mut self, text: &str, cx: &mut Cx<'_>) {
        if self.settings.server_output {
            self.said.push_str(text);
        }
        cx.print(text);
    }

    /// An interval has ended.
    pub(crate) fn interval(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        if now == self.last {
            return;
        }
        // At the end a short one in which nothing came is nothing.
        let short = (now - self.last).as_ns() * 10 < self.settings.interval.as_ns();
        if short && self.header_printed && self.streams.iter().all(|s| s.bytes == s.before.0) {
            self.ended = now;
            return;
        }
        let took = seconds(self.last, now) as f32;
        let (start, end) = (self.since_start(self.last), self.since_start(now));
        let mut interval = print::Interval { rows: Vec::new(), omitted: self.omitting };
        for (i, stream) in self.streams.iter_mut().enumerate() {
            let mut tcp = print::Tcp::default();
            if let Some(info) = cx.net.endpoint(stream.sock).map(|e| e.info()) {
                let host = &mut cx.net.machines[cx.host as usize].host;
                let mtu = host.mtu_to(stream.remote.0, now).unwrap_or(0);
                stream.retransmits = info.total_retrans;
                let rtt = info.srtt.as_ns() / 1000;
                let r = &mut stream.rtt_us;
                *r = (r.0.min(rtt), r.1.max(rtt), r.2 + rtt, r.3 + 1);
                tcp = print::Tcp {
                    retransmits: stream.retransmits - stream.before.3,
                    cwnd: u64::from(info.cwnd) * u64::from(info.snd_mss),
                    window: u64::from(info.snd_wnd),
                    rtt,
                    rttvar: info.rttvar.as_ns() / 1000,
                    pmtu: u64::from(mtu),
                };
            }
            stream.max_cwnd = stream.max_cwnd.max(tcp.cwnd);
            stream.max_window = stream.max_window.max(tcp.window);
            let (b, p, e, _) = stream.before;
            stream.before = (stream.bytes, stream.packets, stream.errors, stream.retransmits);
            let bytes = stream.bytes - b;
            if !self.omitting {
                cx.result.intervals.push(Interval {
                    stream: i as u32,
                    from: self.last - self.start,
                    to: now - self.start,
                    bytes,
                });
            }
            interval.rows.push(print::Row {
                id: stream.id,
                sender: stream.sender,
                start,
                end,
                seconds: took,
                bytes,
                tcp,
                packets: stream.packets - p,
                errors: stream.errors - e,
                jitter: stream.jitter,
            });
        }
        let style = self.style();
        if !self.settings.json {
            let mut text = String::new();
            if !self.header_printed {
                text.push_str(&style.header(self.streams.first().is_some_and(|s| s.sender)));
            } else if self.settings.parallel > 1 {
                text.push_str(print::SEPARATOR);
            }
            text.push_str(&style.interval(&interval));
            self.say(&text, cx);
        } else if self.settings.stream {
            event("interval", style.interval_json(&interval), cx);
        } else {
            self.intervals.push(style.interval_json(&interval));
        }
        self.header_printed = true;
        (self.last, self.ended) = (now, now);
    }

    /// The counts of both sides, with how long each took.
    fn ends(&self) -> Ends {
        let own_s = self.since_start(self.ended);
        let other_s = self.streams.first().map_or(0.0, |s| s.other[5] as f64 / 1e9);
        let other_s = if other_s > 0.0 { other_s } else { own_s };
        let first = self.streams.first().is_some_and(|s| s.sender);
        let (sender_s, receiver_s) = if first { (own_s, other_s) } else { (other_s, own_s) };
        let row = |s: &Stream| {
            let (packets, errors, retransmits) = s.counted();
            let [bytes, other_packets, other_errors, other_jitter, other_retransmits, ..] = s.other;
            let (min, max, total, count) = s.rtt_us;
            let both = |own: u64, other: i64| {
                if s.sender { (own, other as u64) } else { (other as u64, own) }
            };
            let (sent, received) = both(s.bytes, bytes);
            let (sent_packets, received_packets) = both(packets, other_packets);
            End {
                id: s.id,
                sender: s.sender,
                sent,
                received,
                retransmits: if s.sender { retransmits } else { other_retransmits as u64 },
                max_cwnd: if s.sender || self.settings.bidir { s.max_cwnd } else { 0 },
                max_window: if s.sender || self.settings.bidir { s.max_window } else { 0 },
                max_rtt: if s.sender || self.settings.bidir { max } else { 0 },
                min_rtt: if count > 0 && (s.sender || self.settings.bidir) { min } else { 0 },
                mean_rtt: if count > 0 && (s.sender || self.settings.bidir) { total / count } else { 0 },
                sent_packets,
                received_packets,
                errors: if s.sender { other_errors as u64 } else { errors },
                jitter: if s.sender { other_jitter as f64 / 1e9 } else { s.jitter },
                out_of_order: s.out_of_order,
            }
        };
        let congestion = (self.settings.sender_cc.clone(), self.settings.receiver_cc.clone());
        Ends {
            rows: self.streams.iter().map(row).collect(),
            sender_s,
            receiver_s,
            own_s,
            cpu: [0.0; 6],
            congestion,
        }
    }

    /// What a server prints in the end, before it knows what the client has counted (`--get-server-output`).
    pub(crate) fn server_end(&mut self, cx: &mut Cx<'_>) {
        if !self.settings.json {
            let text = self.style().end(&self.ends(), None);
            self.say(&text, cx);
        }
        self.end_printed = true;
    }

    /// The end: both sides' counts side by side. `start` is the JSON of how it began.
    pub(crate) fn finish(&mut self, start: Vec<(&'static str, Json)>, cx: &mut Cx<'_>) {
        let (style, ends) = (self.style(), self.ends());
        let server = self.server_said.take();
        if self.settings.stream {
            if let Some(said) = server {
                event("server_output_text", Json::Text(said), cx);
            }
            event("end", Json::Object(style.end_json(&ends)), cx);
        } else if self.settings.json {
            let intervals = Json::Array(std::mem::take(&mut self.intervals));
            let mut whole = vec![
                ("start", Json::Object(start)),
                ("intervals", intervals),
                ("end", Json::Object(style.end_json(&ends))),
            ];
            whole.extend(server.map(|said| ("server_output_text", Json::Text(said))));
            cx.print(&Json::Object(whole).print(0));
            cx.print("\n");
        } else if !self.end_printed {
            cx.print(&style.end(&ends, server.as_deref()));
        }
        // Each side by what it did itself: a sender's counts what it has written, of which much may not have arrived.
        let total = |of: fn(&End) -> u64| ends.rows.iter().map(of).sum::<u64>();
        let own = |e: &End| match (e.sender, self.settings.udp) {
            (true, false) => e.sent,
            _ => e.received,
        };
        let counted = ends.rows.iter().map(own).sum::<u64>();
        let counted = if counted == 0 { total(|e| e.sent).max(total(|e| e.received)) } else { counted };
        cx.result.bytes = Some(counted);
        cx.result.duration = Some(self.ended - self.start);
        cx.result.throughput_bit_s = crate::app::iperf::throughput(counted, self.ended - self.start);
        if self.settings.udp {
            let packets = total(|e| if e.sent_packets > 0 { e.sent_packets } else { e.received_packets });
            cx.result.packets = Some((packets, packets.saturating_sub(total(|e| e.errors))));
            let jitter = ends.rows.iter().map(|e| e.jitter).sum::<f64>() / self.streams.len().max(1) as f64;
            cx.result.jitter = Some(Span::from_ns((jitter * 1e9) as i64));
        }
    }
    /// How it began, for the JSON.
    pub(crate) fn start_json(
        &self,
        peer: (&'static str, String, u16),
        cookie: u64,
        mss: u32,
        now: Time,
        cx: &Cx<'_>,
    ) -> Vec<(&'static str, Json)> {
        let text = |t: &str| Json::Text(t.to_owned());
        let int = |n: u64| Json::Int(n as i64);
        let connected = |s: &Stream| {
            Json::Object(vec![
                ("socket", int(u64::from(s.id))),
                ("local_host", text(&s.local.0.to_string())),
                ("local_port", int(u64::from(s.local.1))),
                ("remote_host", text(&s.remote.0.to_string())),
                ("remote_port", int(u64::from(s.remote.1))),
            ])
        };
        let seconds = now.as_ns() / 1_000_000_000;
        let (h, m, sec) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        let clock = format!("Thu, 01 Jan 1970 {h:02}:{m:02}:{sec:02} GMT");
        let s = &self.settings;
        let mut json = vec![
            ("connected", Json::Array(self.streams.iter().map(connected).collect())),
            ("version", text(VERSION)),
            ("system_info", text("Linux")),
            ("timestamp", Json::Object(vec![("time", text(&clock)), ("timesecs", Json::Int(seconds))])),
            (peer.0, Json::Object(vec![("host", text(&peer.1)), ("port", int(u64::from(peer.2)))])),
            ("cookie", text(&format!("penstock.{cookie:027}"))),
        ];
        if !s.udp {
            let name = if s.mss > 0 { "tcp_mss" } else { "tcp_mss_default" };
            json.push((name, int(u64::from(if s.mss > 0 { s.mss.into() } else { mss }))));
        }
        json.push(("target_bitrate", int(s.rate)));
        json.push(("fq_rate", int(0)));
        // Once for each direction, as it was asked of the first socket of each.
        for n in 0..if s.bidir && self.client { 2 } else { 1 } {
            let sock = self.streams.get(n * s.parallel as usize).map(|stream| stream.sock);
            let info = sock.and_then(|sock| cx.net.endpoint(sock)).map(|e| e.info());
            json.push(("sock_bufsize", int(u64::from(s.window))));
            json.push(("sndbuf_actual", int(info.map_or(212_992, |i| u64::from(i.sndbuf)))));
            json.push(("rcvbuf_actual", int(info.map_or(212_992, |i| u64::from(i.rcvbuf)))));
        }
        json.push((
            "test_start",
            Json::Object(vec![
                ("protocol", text(if s.udp { "UDP" } else { "TCP" })),
                ("num_streams", int(u64::from(s.parallel))),
                ("blksize", int(u64::from(s.len))),
                ("omit", Json::Int(s.omit.as_ns() / 1_000_000_000)),
                ("duration", Json::Int(if s.bytes > 0 { 0 } else { s.time.as_ns() / 1_000_000_000 })),
                ("bytes", int(if s.blocks > 0 { 0 } else { s.bytes })),
                ("blocks", int(s.blocks)),
                ("reverse", Json::Int(i64::from(s.reverse))),
                ("tos", int(u64::from(s.tos))),
                ("target_bitrate", int(s.rate)),
                ("bidir", Json::Int(i64::from(s.bidir))),
                ("fqrate", int(0)),
                ("interval", Json::Float(s.interval.as_secs_f64())),
            ]),
        ));
        json
    }
    /// The stream of this socket.
    pub(crate) fn find(&self, sock: u32) -> Option<usize> {
        self.streams.iter().position(|s| s.sock == sock && sock != NONE)
    }
}

/// From one moment to another in whole microseconds, as seconds.
fn seconds(from: Time, to: Time) -> f64 {
    let us = to.as_ns() / 1000 - from.as_ns() / 1000;
    (us / 1_000_000) as f64 + (us % 1_000_000) as f64 / 1e6
}

/// A line of `--json-stream`.
pub(crate) fn event(name: &str, data: Json, cx: &mut Cx<'_>) {
    let event = Json::Object(vec![("event", Json::Text(name.to_owned())), ("data", data)]);
    cx.print(&format!("{}\n", event.line()));
}
