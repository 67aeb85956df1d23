//! A test under way: its streams, what is printed each interval and in the end.
//!
//! Follows: iperf 3.1.3 `iperf_print_intermediate`, `print_interval_results`, `iperf_print_results`, `iperf_udp_recv`.

use crate::app::Cx;
use crate::app::form::percent;
use crate::app::iperf3::Settings;
use crate::app::iperf3::json::Json;
use crate::index::NONE;
use crate::results::Interval;
use crate::sock::Addr;
use penstock_model::{Span, Time};

pub(crate) const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -\n";

/// One stream.
pub(crate) struct Stream {
    pub(crate) id: u32,
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
    /// What the other side has counted: bytes, packets, errors, jitter in ns, retransmissions.
    pub(crate) other: [i64; 5],
    retransmits: u64,
    max_cwnd: u64,
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
    pub(crate) fn new(id: u32, sock: u32, flow: u32, local: Addr, remote: Addr) -> Stream {
        Stream {
            id,
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
            other: [0; 5],
            retransmits: 0,
            max_cwnd: 0,
            rtt_us: (i64::MAX, 0, 0, 0),
            before: (0, 0, 0, 0),
            omitted: (0, 0, 0),
            blocked: false,
            calling: false,
        }
    }
    /// `[  4] local 10.0.0.1 port 45708 connected to 10.0.0.2 port 5201`.
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
    pub(crate) fn results(&self) -> [i64; 5] {
        let jitter = (self.jitter * 1e9) as i64;
        let (packets, errors, retransmits) = self.counted();
        [self.bytes as i64, packets as i64, errors as i64, jitter, retransmits as i64]
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
    /// This side sends.
    pub(crate) sender: bool,
    pub(crate) client: bool,
    pub(crate) streams: Vec<Stream>,
    pub(crate) start: Time,
    pub(crate) last: Time,
    intervals: Vec<Json>,
    pub(crate) header_printed: bool,
    /// It sends already, and does not count yet.
    pub(crate) omitting: bool,
}

fn float(x: f64) -> Json {
    Json::Float(x)
}
fn int(n: u64) -> Json {
    Json::Int(n as i64)
}

impl Test {
    pub(crate) fn new(settings: Settings, sender: bool, client: bool) -> Test {
        Test {
            settings,
            sender,
            client,
            streams: Vec::new(),
            start: Time::ZERO,
            last: Time::ZERO,
            intervals: Vec::new(),
            header_printed: false,
            omitting: false,
        }
    }
    /// Streams start now.
    pub(crate) fn begin(&mut self, now: Time) {
        (self.start, self.last) = (now, now);
        self.omitting = self.settings.omit > Span::ZERO;
    }
    /// From now on it counts (`iperf_reset_stats`).
    pub(crate) fn omitted(&mut self, cx: &mut Cx<'_>) {
        self.interval(cx);
        self.omitting = false;
        let now = cx.now();
        (self.start, self.last) = (now, now);
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
        self.settings.bytes > 0 && self.streams.iter().all(|s| s.bytes >= self.settings.bytes)
    }

    /// An interval has ended.
    pub(crate) fn interval(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        if now == self.last {
            return;
        }
        let seconds = (now - self.last).as_secs_f64();
        let (st, et) = ((self.last - self.start).as_secs_f64(), (now - self.start).as_secs_f64());
        let tcp = !self.settings.udp;
        let omitted = if self.omitting { "(omitted)" } else { "" };
        let mut text = String::new();
        if !self.header_printed {
            text.push_str(match (tcp, self.sender) {
                (true, true) => "[ ID] Interval           Transfer     Bandwidth       Retr  Cwnd\n",
                (true, false) => "[ ID] Interval           Transfer     Bandwidth\n",
                (false, true) => "[ ID] Interval           Transfer     Bandwidth       Total Datagrams\n",
                (false, false) => {
                    "[ ID] Interval           Transfer     Bandwidth       Jitter    Lost/Total Datagrams\n"
                }
            });
        } else if self.streams.len() > 1 {
            text.push_str(SEPARATOR);
        }
        self.header_printed = true;
        let mut streams = Vec::new();
        let mut sum = (0, 0, 0, 0, 0.0);
        for (i, stream) in self.streams.iter_mut().enumerate() {
            let info = cx.net.endpoint(stream.sock).map(|e| e.info());
            if let Some(info) = info {
                stream.retransmits = info.total_retrans;
                let rtt = info.srtt.as_ns() / 1000;
                let r = &mut stream.rtt_us;
                *r = (r.0.min(rtt), r.1.max(rtt), r.2 + rtt, r.3 + 1);
            }
            let cwnd = info.map_or(0, |i| u64::from(i.cwnd) * u64::from(i.snd_mss));
            stream.max_cwnd = stream.max_cwnd.max(cwnd);
            let (b, p, e, r) = stream.before;
            stream.before = (stream.bytes, stream.packets, stream.errors, stream.retransmits);
            let (bytes, packets, errors) = (stream.bytes - b, stream.packets - p, stream.errors - e);
            let retransmits = stream.retransmits - r;
            sum =
                (sum.0 + bytes, sum.1 + packets, sum.2 + errors, sum.3 + retransmits, sum.4 + stream.jitter);
            let rate = bytes as f64 / seconds;
            if !self.omitting {
                cx.result.intervals.push(Interval {
                    stream: i as u32,
                    from: self.last - self.start,
                    to: now - self.start,
                    bytes,
                });
            }
            let head = head(&format!("{:3}", stream.id), st, et, &self.settings, bytes, rate);
            match (tcp, self.sender) {
                (true, true) => {
                    let cwnd = self.settings.units(cwnd as f64);
                    text.push_str(&format!("{head}  {retransmits:3}   {cwnd}s       {omitted}\n"));
                }
                (true, false) => text.push_str(&format!("{head}                  {omitted}\n")),
                (false, true) => text.push_str(&format!("{head}  {packets}  {omitted}\n")),
                (false, false) => {
                    let (ms, pct) = (stream.jitter * 1000.0, percent(errors, packets.max(1)));
                    text.push_str(&format!("{head}  {ms:5.3} ms  {errors}/{packets} ({pct}%)  {omitted}\n"));
                }
            }
            let mut json = amounts(Some(stream.id), st, et, seconds, bytes);
            match (tcp, self.sender) {
                (true, true) => {
                    json.push(("retransmits", int(retransmits)));
                    json.push(("snd_cwnd", int(cwnd)));
                    json.push(("rtt", Json::Int(info.map_or(0, |i| i.srtt.as_ns() / 1000))));
                }
                (true, false) => {}
                (false, true) => json.push(("packets", int(packets))),
                (false, false) => losses(&mut json, stream.jitter, errors, packets),
            }
            json.push(("omitted", Json::Bool(self.omitting)));
            streams.push(Json::Object(json));
        }
        let n = self.streams.len().max(1) as f64;
        if self.streams.len() > 1 {
            let head = head("SUM", st, et, &self.settings, sum.0, sum.0 as f64 / seconds);
            match (tcp, self.sender) {
                (true, true) => text.push_str(&format!("{head}  {:3}             {omitted}\n", sum.3)),
                (true, false) => text.push_str(&format!("{head}                  {omitted}\n")),
                (false, true) => text.push_str(&format!("{head}  {}  {omitted}\n", sum.1)),
                (false, false) => {
                    let (ms, pct) = (sum.4 / n * 1000.0, percent(sum.2, sum.1.max(1)));
                    text.push_str(&format!("{head}  {ms:5.3} ms  {}/{} ({pct}%)  {omitted}\n", sum.2, sum.1));
                }
            }
        }
        let mut json = amounts(None, st, et, seconds, sum.0);
        match (tcp, self.sender) {
            (true, true) => json.push(("retransmits", int(sum.3))),
            (true, false) => {}
            (false, true) => json.push(("packets", int(sum.1))),
            (false, false) => losses(&mut json, sum.4 / n, sum.2, sum.1),
        }
        json.push(("omitted", Json::Bool(self.omitting)));
        let both = vec![("streams", Json::Array(streams)), ("sum", Json::Object(json))];
        self.intervals.push(Json::Object(both));
        if !self.settings.json {
            cx.print(&text);
        }
        self.last = now;
    }

    /// The end: both sides' counts side by side. `start` is the JSON of how it began.
    pub(crate) fn finish(&mut self, start: Vec<(&'static str, Json)>, cx: &mut Cx<'_>) {
        let tcp = !self.settings.udp;
        let et = (self.last - self.start).as_secs_f64();
        let mut text = String::from(SEPARATOR);
        text.push_str(if tcp {
            "[ ID] Interval           Transfer     Bandwidth       Retr\n"
        } else {
            "[ ID] Interval           Transfer     Bandwidth       Jitter    Lost/Total Datagrams\n"
        });
        let (mut all_sent, mut all_received, mut all_retransmits) = (0, 0, 0);
        let (mut all_packets, mut all_errors, mut all_jitter) = (0, 0, 0.0);
        let mut streams = Vec::new();
        let per_second = |bytes: u64| if et > 0.0 { bytes as f64 / et } else { 0.0 };
        for s in &self.streams {
            let (sent, received) =
                if self.sender { (s.bytes, s.other[0] as u64) } else { (s.other[0] as u64, s.bytes) };
            all_sent += sent;
            all_received += received;
            let id = format!("{:3}", s.id);
            let line = head(&id, 0.0, et, &self.settings, sent, per_second(sent));
            if tcp {
                let retransmits = if self.sender { s.counted().2 } else { s.other[4] as u64 };
                all_retransmits += retransmits;
                text.push_str(&format!("{line}  {retransmits:3}             sender\n"));
                let line = head(&id, 0.0, et, &self.settings, received, per_second(received));
                text.push_str(&format!("{line}                  receiver\n"));
                let mut sender = amounts(Some(s.id), 0.0, et, et, sent);
                sender.push(("retransmits", int(retransmits)));
                if self.sender {
                    let (min, max, total, count) = s.rtt_us;
                    sender.push(("max_snd_cwnd", int(s.max_cwnd)));
                    sender.push(("max_rtt", Json::Int(max)));
                    sender.push(("min_rtt", Json::Int(if count > 0 { min } else { 0 })));
                    sender.push(("mean_rtt", Json::Int(if count > 0 { total / count } else { 0 })));
                }
                let receiver = amounts(Some(s.id), 0.0, et, et, received);
                let both = vec![("sender", Json::Object(sender)), ("receiver", Json::Object(receiver))];
                streams.push(Json::Object(both));
                continue;
            }
            let (packets, errors, jitter) = if self.sender {
                (s.counted().0, s.other[2] as u64, s.other[3] as f64 / 1e9)
            } else {
                (s.counted().0, s.counted().1, s.jitter)
            };
            (all_packets, all_errors, all_jitter) =
                (all_packets + packets, all_errors + errors, all_jitter + jitter);
            let (ms, pct) = (jitter * 1000.0, percent(errors, packets.max(1)));
            text.push_str(&format!("{line}  {ms:5.3} ms  {errors}/{packets} ({pct}%)  \n"));
            if self.client {
                text.push_str(&format!("[{:3}] Sent {packets} datagrams\n", s.id));
            }
            let mut udp = amounts(Some(s.id), 0.0, et, et, sent);
            losses(&mut udp, jitter, errors, packets);
            udp.push(("out_of_order", int(s.out_of_order)));
            streams.push(Json::Object(vec![("udp", Json::Object(udp))]));
        }
        let n = self.streams.len().max(1) as f64;
        if self.streams.len() > 1 {
            let line = head("SUM", 0.0, et, &self.settings, all_sent, per_second(all_sent));
            if tcp {
                text.push_str(&format!("{line}  {all_retransmits:3}             sender\n"));
                let line = head("SUM", 0.0, et, &self.settings, all_received, per_second(all_received));
                text.push_str(&format!("{line}                  receiver\n"));
            } else {
                let (ms, pct) = (all_jitter / n * 1000.0, percent(all_errors, all_packets.max(1)));
                text.push_str(&format!("{line}  {ms:5.3} ms  {all_errors}/{all_packets} ({pct}%)  \n"));
            }
        }
        let mut end = vec![("streams", Json::Array(streams))];
        if tcp {
            let mut sum = amounts(None, 0.0, et, et, all_sent);
            sum.push(("retransmits", int(all_retransmits)));
            end.push(("sum_sent", Json::Object(sum)));
            end.push(("sum_received", Json::Object(amounts(None, 0.0, et, et, all_received))));
        } else {
            let mut sum = amounts(None, 0.0, et, et, all_sent);
            losses(&mut sum, all_jitter / n, all_errors, all_packets);
            end.push(("sum", Json::Object(sum)));
        }
        let names =
            ["host_total", "host_user", "host_system", "remote_total", "remote_user", "remote_system"];
        let cpu = names.into_iter().map(|name| (name, float(0.0))).collect();
        end.push(("cpu_utilization_percent", Json::Object(cpu)));
        if self.settings.json {
            let intervals = Json::Array(std::mem::take(&mut self.intervals));
            let whole =
                vec![("start", Json::Object(start)), ("intervals", intervals), ("end", Json::Object(end))];
            cx.print(&Json::Object(whole).print(0));
            cx.print("\n");
        } else {
            cx.print(&text);
        }
        // Each side by what it did itself: a sender's counts what it has written, of which much may not have arrived.
        let counted = if self.sender && tcp { all_sent } else { all_received };
        let counted = if counted == 0 { all_sent.max(all_received) } else { counted };
        cx.result.bytes = Some(counted);
        cx.result.duration = Some(self.last - self.start);
        cx.result.throughput_bit_s = crate::app::iperf::throughput(counted, self.last - self.start);
        if !tcp {
            cx.result.packets = Some((all_packets, all_packets.saturating_sub(all_errors)));
            cx.result.jitter = Some(Span::from_ns((all_jitter / n * 1e9) as i64));
        }
    }
    /// How it began, for the JSON.
    pub(crate) fn start_json(
        &self,
        peer: (&'static str, Addr),
        cookie: u64,
        mss: u32,
        now: Time,
    ) -> Vec<(&'static str, Json)> {
        let text = |t: &str| Json::Text(t.to_owned());
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
            ("version", text("iperf 3.1.3")),
            ("system_info", text("Linux")),
            ("timestamp", Json::Object(vec![("time", text(&clock)), ("timesecs", Json::Int(seconds))])),
            (
                peer.0,
                Json::Object(vec![("host", text(&peer.1.0.to_string())), ("port", int(u64::from(peer.1.1)))]),
            ),
            ("cookie", text(&format!("penstock.{cookie:027}"))),
        ];
        if !s.udp {
            json.push(("tcp_mss_default", int(u64::from(mss))));
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
            ]),
        ));
        json
    }
    /// The stream of this socket.
    pub(crate) fn find(&self, sock: u32) -> Option<usize> {
        self.streams.iter().position(|s| s.sock == sock && sock != NONE)
    }
}

/// `[  4]   0.00-1.00   sec  99.3 MBytes   833 Mbits/sec`.
fn head(id: &str, st: f64, et: f64, settings: &Settings, bytes: u64, rate: f64) -> String {
    let (transfer, rate) = (settings.units(bytes as f64), settings.rate(rate));
    format!("[{id}] {st:6.2}-{et:<6.2} sec  {transfer}s  {rate}s/sec")
}

fn amounts(id: Option<u32>, st: f64, et: f64, seconds: f64, bytes: u64) -> Vec<(&'static str, Json)> {
    let mut json = Vec::new();
    if let Some(id) = id {
        json.push(("socket", int(u64::from(id))));
    }
    let rate = if seconds > 0.0 { bytes as f64 / seconds * 8.0 } else { 0.0 };
    json.extend([
        ("start", float(st)),
        ("end", float(et)),
        ("seconds", float(seconds)),
        ("bytes", int(bytes)),
        ("bits_per_second", float(rate)),
    ]);
    json
}

fn losses(json: &mut Vec<(&'static str, Json)>, jitter: f64, errors: u64, packets: u64) {
    let percent = if packets > 0 { 100.0 * errors as f64 / packets as f64 } else { 0.0 };
    json.extend([
        ("jitter_ms", float(jitter * 1000.0)),
        ("lost_packets", int(errors)),
        ("packets", int(packets)),
        ("lost_percent", float(percent)),
    ]);
}
