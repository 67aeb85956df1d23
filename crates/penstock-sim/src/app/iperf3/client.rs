//! `iperf3 -c`.

use crate::app::iperf3::json::Json;
use crate::app::iperf3::test::{Stream, Test, event};
use crate::app::iperf3::{COOKIE_SIZE, HELLO, Settings, VERSION, say};
use crate::app::{Cx, Program};
use crate::index::NONE;
use crate::intent::Intent;
use crate::sock::{Addr, Message, SockOpts};
use crate::spec::FlowId;
use crate::wake::Wake;
use penstock_model::Span;

const INTERVAL: u32 = 0;
const END: u32 = 1;
const PACE: u32 = 2;
const HELLO_AGAIN: u32 = 3;
const OMIT: u32 = 4;

const UNABLE: &str = "unable to connect to server - server may have stopped running or use a different port, firewall issue, etc.";

/// The number of a stream's socket in the client's process.
fn id(n: u32) -> u32 {
    if n < 3 { 5 + 2 * n } else { 6 + 2 * n }
}

/// The client.
pub(crate) struct Client {
    test: Test,
    addr: Addr,
    to: u32,
    control: u32,
    running: bool,
    over: bool,
    /// A call that sends takes the processor's time; it goes on when that is over.
    in_call: bool,
    /// Streams that the server has answered (UDP) or that are connected (TCP).
    ready: u32,
    timers: [u32; 5],
    start_json: Vec<(&'static str, Json)>,
    /// The server's congestion control.
    other_cc: Option<String>,
}

impl Client {
    pub(crate) fn new(settings: Settings) -> Client {
        Client {
            test: Test::new(settings, true),
            addr: (std::net::Ipv4Addr::UNSPECIFIED.into(), 0),
            to: 0,
            control: NONE,
            running: false,
            over: false,
            in_call: false,
            ready: 0,
            timers: [NONE; 5],
            start_json: Vec::new(),
            other_cc: None,
        }
    }
    fn fail(&self, text: &str, cx: &mut Cx<'_>) {
        if self.test.settings.stream {
            event("error", Json::Text(text.to_owned()), cx);
            event("end", Json::Object(vec![]), cx);
        } else if self.test.settings.json {
            let mut start = self.start_json.clone();
            if start.is_empty() {
                start = vec![
                    ("connected", Json::Array(vec![])),
                    ("version", Json::Text(VERSION.to_owned())),
                    ("system_info", Json::Text("Linux".to_owned())),
                ];
            }
            let json = Json::Object(vec![
                ("start", Json::Object(start)),
                ("intervals", Json::Array(vec![])),
                ("end", Json::Object(vec![])),
                ("error", Json::Text(text.to_owned())),
            ]);
            cx.print(&json.print(0));
            cx.print("\n");
        } else {
            cx.print(&format!("iperf3: error - {text}\n"));
        }
        cx.exit(1);
    }
    fn tell(&self, kind: u32, len: u64, values: Vec<i64>, cx: &mut Cx<'_>) {
        cx.net.tcp_say(self.control, len, Message { kind, values, text: String::new() });
    }
    fn opts(&self) -> SockOpts {
        SockOpts { tos: self.test.settings.tos, ..SockOpts::default() }
    }
    fn create_streams(&mut self, cx: &mut Cx<'_>) {
        let settings = &self.test.settings;
        let proto = if settings.udp { "udp" } else { "tcp" };
        for i in 0..self.test.wanted() {
            let sender = self.test.sends_nth(i);
            let (from, to) = if sender { (cx.host, self.to) } else { (self.to, cx.host) };
            let name = cx.flow_name();
            let flow = cx.new_flow(name, from, to, proto);
            let sock = if self.test.settings.udp {
                let sock = cx.net.udp_bind(cx.host, cx.app, 0, self.opts()).unwrap_or(NONE);
                cx.net.udp_connect(sock, self.addr, flow).map(|()| sock)
            } else {
                match self.test.settings.tcp_config(cx.net, cx.host) {
                    Ok(cfg) => cx.net.tcp_connect(cx.host, cx.app, self.addr, flow, sender, self.opts(), cfg),
                    Err(text) => {
                        cx.print(&text);
                        cx.exit(1);
                        return;
                    }
                }
            };
            let sock = match sock {
                Ok(sock) => sock,
                Err(error) => return self.fail(&format!("unable to connect stream: {error}"), cx),
            };
            let s = &cx.net.sockets[sock];
            self.test.streams.push(Stream::new(id(i), sender, sock, flow, s.local, s.remote));
        }
        if self.test.settings.udp {
            self.hello(cx);
        }
    }
    /// Opens the streams at the server; again if nothing was heard of for a second.
    fn hello(&mut self, cx: &mut Cx<'_>) {
        for stream in self.test.streams.iter().skip(self.ready as usize) {
            let s = &mut cx.net.sockets[stream.sock];
            let flow = std::mem::replace(&mut s.flow, NONE);
            let seq = HELLO | u64::from(stream.flow);
            let _ = cx.net.udp_send(stream.sock, 4, seq);
            cx.net.sockets[stream.sock].flow = flow;
        }
        let at = cx.now() + Span::from_secs(1);
        cx.net.set_timer(self.timers[HELLO_AGAIN as usize], at);
    }
    fn run(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        self.running = true;
        self.test.begin(now);
        let mss =
            self.test.streams.first().and_then(|s| cx.net.endpoint(s.sock)).map_or(0, |e| e.info().snd_mss);
        let peer = ("connecting_to", self.test.settings.host.clone(), self.addr.1);
        self.start_json = self.test.start_json(peer, u64::from(cx.app) + 1, mss, now, cx);
        if let Some(info) = self.test.streams.first().and_then(|s| cx.net.endpoint(s.sock)).map(|e| e.info())
        {
            let own = info.cc.to_owned();
            let other = self.other_cc.clone().unwrap_or_else(|| own.clone());
            let s = &mut self.test.settings;
            (s.sender_cc, s.receiver_cc) = if s.reverse { (other, own) } else { (own, other) };
        }
        if self.test.settings.stream {
            event("start", Json::Object(std::mem::take(&mut self.start_json)), cx);
        }
        if !self.test.settings.json {
            let lines: String = self.test.streams.iter().map(Stream::connected).collect();
            cx.print(&lines);
        }
        if self.test.settings.interval > Span::ZERO {
            cx.net.set_timer(self.timers[INTERVAL as usize], now + self.test.settings.interval);
        }
        if self.test.settings.bytes == 0 {
            let lasts = self.test.settings.omit + self.test.settings.time;
            cx.net.set_timer(self.timers[END as usize], now + lasts);
        }
        if self.test.omitting {
            cx.net.set_timer(self.timers[OMIT as usize], now + self.test.settings.omit);
        }
        self.work(cx);
    }
    /// Sends what may be sent now.
    fn work(&mut self, cx: &mut Cx<'_>) {
        if !self.test.sends() || self.over {
            return;
        }
        let mut call = None;
        for i in 0..self.test.streams.len() {
            if self.test.settings.udp {
                call = self.test.send(i, cx);
            } else {
                self.test.write(i, cx);
            }
            if call.is_some() {
                break;
            }
        }
        self.in_call = call.is_some();
        if self.test.has_sent_all() {
            self.end(cx);
        } else if let Some(over) = call {
            cx.net.set_timer(self.timers[PACE as usize], over);
        } else if self.test.settings.udp || self.test.settings.rate > 0 {
            let at = cx.now() + Span::from_ms(1);
            cx.net.set_timer(self.timers[PACE as usize], at);
        }
    }
    fn end(&mut self, cx: &mut Cx<'_>) {
        self.over = true;
        self.test.interval(cx);
        for timer in self.timers {
            cx.net.wakes.stop_timer(timer);
        }
        if self.test.settings.udp {
            for stream in self.test.streams.iter().filter(|s| s.sender) {
                cx.net.meter.flows[stream.flow as usize].completed = Some(self.test.ended);
            }
        }
        self.tell(say::TEST_END, 1, Vec::new(), cx);
    }
    fn hear(&mut self, message: &Message, cx: &mut Cx<'_>) {
        let s = &mut self.test.settings;
        if let Some(control) = cx.net.endpoint(self.control).filter(|_| s.fits) {
            s.len = control.info().snd_mss.max(16);
            s.count_blocks();
        }
        let s = &self.test.settings;
        match message.kind {
            say::ACCESS_DENIED => {
                self.fail("the server is busy running a test. try again later", cx);
            }
            say::PARAM_EXCHANGE => {
                let values = vec![
                    i64::from(s.udp),
                    i64::from(s.parallel),
                    i64::from(s.reverse),
                    i64::from(s.len),
                    s.rate as i64,
                    i64::from(s.tos),
                    s.bytes as i64,
                    s.time.as_ns(),
                    s.omit.as_ns(),
                    s.blocks as i64,
                    i64::from(s.bidir),
                    i64::from(s.server_output),
                ];
                self.tell(say::PARAMS, 130, values, cx);
            }
            say::CREATE_STREAMS => self.create_streams(cx),
            say::TEST_RUNNING => self.run(cx),
            say::EXCHANGE_RESULTS => {
                let values = self.test.results();
                self.tell(say::RESULTS, 250, values, cx);
            }
            say::RESULTS => {
                self.test.learn(&message.values);
                if self.test.settings.server_output {
                    self.test.server_said = Some(message.text.clone());
                }
            }
            say::DISPLAY_RESULTS => {
                let start = std::mem::take(&mut self.start_json);
                self.test.finish(start, cx);
                self.tell(say::IPERF_DONE, 1, Vec::new(), cx);
                for stream in &self.test.streams {
                    if self.test.settings.udp {
                        cx.net.udp_close(stream.sock);
                    } else {
                        cx.net.tcp_close(stream.sock);
                    }
                }
                cx.net.tcp_close(self.control);
                if !self.test.settings.json {
                    cx.print("\niperf Done.\n");
                }
                cx.exit(0);
            }
            _ => {}
        }
    }
}

impl Program for Client {
    fn intent(&self) -> Intent {
        let s = &self.test.settings;
        let lasts = (s.bytes == 0).then_some(s.omit + s.time);
        Intent::call(&s.host, Some(("tcp", s.port)), lasts).over(s.family)
    }
    fn largest(&self) -> u32 {
        // Else a segment of its control connection fits in.
        let s = &self.test.settings;
        if s.udp && !s.fits { s.len } else { 0 }
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        cx.print(&self.test.settings.warnings);
        let host = self.test.settings.host.clone();
        let Some(addr) = cx.resolve(&host, self.test.settings.family) else {
            self.fail(&format!("{UNABLE}: Name or service not known"), cx);
            return;
        };
        self.addr = (addr, self.test.settings.port);
        self.to = cx.net.host_of(addr).unwrap_or(cx.host);
        self.timers =
            [INTERVAL, END, PACE, HELLO_AGAIN, OMIT].map(|token| cx.net.wakes.new_timer(cx.app, token));
        if !self.test.settings.json {
            cx.print(&format!("Connecting to host {host}, port {}\n", self.test.settings.port));
            if self.test.settings.reverse {
                cx.print(&format!("Reverse mode, remote host {host} is sending\n"));
            }
        }
        let name = format!("{} iperf3 control {}", cx.net.machines[cx.host as usize].name, cx.app);
        let flow = cx.net.meter.new_flow(name, cx.host, self.to, "tcp");
        cx.result.control = Some(FlowId(flow));
        let cfg = cx.net.tcp_config(cx.host);
        match cx.net.tcp_connect(cx.host, cx.app, self.addr, flow, true, SockOpts::default(), cfg) {
            Ok(sock) => self.control = sock,
            Err(error) => self.fail(&format!("{UNABLE}: {error}"), cx),
        }
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Connected(sock) => {
                let cookie =
                    Message { kind: say::COOKIE, values: vec![i64::from(cx.app) + 1], text: String::new() };
                cx.net.tcp_say(sock, COOKIE_SIZE, cookie);
            }
            Wake::Readable(sock) if sock == self.control => {
                cx.net.tcp_read(sock);
                while let Some(message) = cx.net.tcp_hear(sock) {
                    self.hear(&message, cx);
                }
            }
            Wake::Readable(sock) => {
                if let Some(i) = self.test.find(sock) {
                    let n = cx.net.tcp_read(sock);
                    if !self.over && !self.test.streams[i].sender {
                        self.test.streams[i].bytes += n;
                    }
                }
            }
            Wake::Writable(sock) => {
                let Some(i) = self.test.find(sock) else { return };
                if !self.running || self.over || self.in_call {
                    return;
                }
                if self.test.settings.udp {
                    return self.work(cx);
                }
                self.test.write(i, cx);
                if self.test.has_sent_all() {
                    self.end(cx);
                }
            }
            Wake::Datagram { sock, len, seq, created, .. } => {
                let Some(i) = self.test.find(sock) else { return };
                if seq & HELLO != 0 {
                    if self.ready == i as u32 {
                        self.ready += 1;
                    }
                    if self.ready == self.test.wanted() {
                        cx.net.wakes.stop_timer(self.timers[HELLO_AGAIN as usize]);
                    }
                } else if !self.over && !self.test.streams[i].sender {
                    let transit = cx.now() - created;
                    self.test.streams[i].datagram(len, seq, transit);
                }
            }
            Wake::Timer(INTERVAL) => {
                self.test.interval(cx);
                let at = cx.now() + self.test.settings.interval;
                cx.net.set_timer(self.timers[INTERVAL as usize], at);
            }
            Wake::Timer(OMIT) => {
                self.test.omitted(cx);
                if self.test.settings.interval > Span::ZERO {
                    let at = cx.now() + self.test.settings.interval;
                    cx.net.set_timer(self.timers[INTERVAL as usize], at);
                }
                self.work(cx);
            }
            Wake::Timer(END) => self.end(cx),
            Wake::Timer(PACE) => self.work(cx),
            Wake::Timer(_) => self.hello(cx),
            Wake::Failed(sock, error) if sock == self.control || !self.running => {
                self.fail(&format!("{UNABLE}: {error}"), cx);
            }
            Wake::Eof(sock) if sock == self.control => {
                self.fail("control socket has closed unexpectedly", cx);
            }
            _ => {}
        }
    }
}
