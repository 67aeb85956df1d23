//! `iperf3 -s`.

use crate::app::iperf3::json::Json;
use crate::app::iperf3::test::{Stream, Test, event};
use crate::app::iperf3::{HELLO, Settings, say};
use crate::app::{Cx, Program};
use crate::index::NONE;
use crate::intent::Intent;
use crate::sock::{Addr, Listener, Message, SockOpts};
use crate::wake::Wake;
use penstock_model::{Span, Time};

const INTERVAL: u32 = 0;
const PACE: u32 = 1;
const OMIT: u32 = 2;
const LINE: &str = "-----------------------------------------------------------\n";

/// The number of a stream's socket in the server's process.
fn id(n: u32, udp: bool) -> u32 {
    match (udp, n) {
        (false, 0..3) => 5 + 3 * n,
        (false, _) => 7 + 2 * n,
        (true, 0 | 1) => 5 + n,
        (true, 2) => 9,
        (true, _) => 6 + 2 * n,
    }
}

/// The server.
pub(crate) struct Server {
    settings: Settings,
    udp: u32,
    control: u32,
    peer: Addr,
    cookie: i64,
    test: Option<Test>,
    running: bool,
    timers: [u32; 3],
    start_json: Vec<(&'static str, Json)>,
    started: Time,
    /// How many tests there have been, this one included, and what was printed since the last.
    tests: u32,
    said: String,
}

impl Server {
    pub(crate) fn new(settings: Settings) -> Server {
        Server {
            settings,
            udp: NONE,
            control: NONE,
            peer: (std::net::Ipv4Addr::UNSPECIFIED.into(), 0),
            cookie: 0,
            test: None,
            running: false,
            timers: [NONE; 3],
            start_json: Vec::new(),
            started: Time::ZERO,
            tests: 0,
            said: String::new(),
        }
    }
    fn listening(&mut self, cx: &mut Cx<'_>) {
        if !self.settings.json {
            self.tests += 1;
            let text =
                format!("{LINE}Server listening on {} (test #{})\n{LINE}", self.settings.port, self.tests);
            cx.print(&text);
            self.said = text;
        }
    }
    fn tell(&self, kind: u32, len: u64, values: Vec<i64>, cx: &mut Cx<'_>) {
        cx.net.tcp_say(self.control, len, Message { kind, values, text: String::new() });
    }
    /// A message that came on a connection.
    fn hear(&mut self, sock: u32, message: &Message, cx: &mut Cx<'_>) {
        let value = |i: usize| message.values.get(i).copied().unwrap_or(0);
        match message.kind {
            say::COOKIE if self.control == NONE => {
                let s = &cx.net.sockets[sock];
                (self.control, self.peer, self.cookie) = (sock, s.remote, value(0));
                if !self.settings.json {
                    let text = format!("Accepted connection from {}, port {}\n", self.peer.0, self.peer.1);
                    cx.print(&text);
                    self.said.push_str(&text);
                }
                self.started = cx.now();
                self.tell(say::PARAM_EXCHANGE, 1, Vec::new(), cx);
            }
            say::COOKIE => {
                let wanted = self.test.as_ref().map_or(0, |t| t.wanted() as usize - t.streams.len());
                if value(0) == self.cookie && wanted > 0 {
                    let s = &cx.net.sockets[sock];
                    let stream = (s.flow, s.local, s.remote);
                    self.add_stream(sock, stream.0, stream.1, stream.2, cx);
                } else {
                    cx.net.tcp_say(
                        sock,
                        1,
                        Message { kind: say::ACCESS_DENIED, values: Vec::new(), text: String::new() },
                    );
                    cx.net.tcp_close(sock);
                }
            }
            say::PARAMS => {
                let settings = Settings {
                    udp: value(0) != 0,
                    parallel: value(1) as u32,
                    reverse: value(2) != 0,
                    len: value(3) as u32,
                    rate: value(4) as u64,
                    tos: value(5) as u8,
                    bytes: value(6) as u64,
                    time: Span::from_ns(value(7)),
                    omit: Span::from_ns(value(8)),
                    blocks: value(9) as u64,
                    bidir: value(10) != 0,
                    server_output: value(11) != 0,
                    ..self.settings.clone()
                };
                if (settings.reverse || settings.bidir) && settings.udp {
                    cx.net.set_tos(self.udp, settings.tos);
                }
                let mut test = Test::new(settings, false);
                test.said = std::mem::take(&mut self.said);
                self.test = Some(test);
                self.tell(say::CREATE_STREAMS, 1, Vec::new(), cx);
            }
            say::TEST_END => {
                let Some(test) = &mut self.test else { return };
                self.running = false;
                test.interval(cx);
                for timer in self.timers {
                    cx.net.wakes.stop_timer(timer);
                }
                self.tell(say::EXCHANGE_RESULTS, 1, Vec::new(), cx);
            }
            say::RESULTS => {
                let Some(test) = &mut self.test else { return };
                test.learn(&message.values);
                let (values, mut text) = (test.results(), String::new());
                if test.settings.server_output {
                    test.server_end(cx);
                    text = std::mem::take(&mut test.said);
                }
                let len = 250 + text.len() as u64;
                cx.net.tcp_say(self.control, len, Message { kind: say::RESULTS, values, text });
                self.tell(say::DISPLAY_RESULTS, 1, Vec::new(), cx);
            }
            say::IPERF_DONE => self.done(cx),
            _ => {}
        }
    }
    fn add_stream(&mut self, sock: u32, flow: u32, local: Addr, remote: Addr, cx: &mut Cx<'_>) {
        let Some(test) = &mut self.test else { return };
        let n = test.streams.len() as u32;
        let sender = test.sends_nth(n);
        if sender && !test.settings.udp {
            cx.net.set_tos(sock, test.settings.tos);
        }
        test.streams.push(Stream::new(id(n, test.settings.udp), sender, sock, flow, local, remote));
        if test.streams.len() as u32 == test.wanted() {
            self.tell(say::TEST_START, 1, Vec::new(), cx);
            self.tell(say::TEST_RUNNING, 1, Vec::new(), cx);
            self.run(cx);
        }
    }
    fn run(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        let Some(test) = &mut self.test else { return };
        self.running = true;
        test.begin(now);
        let mss = test.streams.first().and_then(|s| cx.net.endpoint(s.sock)).map_or(0, |e| e.info().snd_mss);
        if let Some(info) = test.streams.first().and_then(|s| cx.net.endpoint(s.sock)).map(|e| e.info()) {
            let cc = info.cc.to_owned();
            (test.settings.sender_cc, test.settings.receiver_cc) = (cc.clone(), cc);
        }
        let peer = ("accepted_connection", self.peer.0.to_string(), self.peer.1);
        self.start_json = test.start_json(peer, self.cookie as u64, mss, self.started, cx);
        if test.settings.stream {
            event("start", Json::Object(std::mem::take(&mut self.start_json)), cx);
        } else if !test.settings.json {
            let lines: String = test.streams.iter().map(Stream::connected).collect();
            test.say(&lines, cx);
        }
        if test.settings.interval > Span::ZERO {
            cx.net.set_timer(self.timers[INTERVAL as usize], now + test.settings.interval);
        }
        if test.omitting {
            cx.net.set_timer(self.timers[OMIT as usize], now + test.settings.omit);
        }
        self.work(cx);
    }
    fn work(&mut self, cx: &mut Cx<'_>) {
        let Some(test) = self.test.as_mut().filter(|t| t.sends() && self.running) else { return };
        let mut call = None;
        for i in 0..test.streams.len() {
            if test.settings.udp {
                call = test.send(i, cx);
            } else {
                test.write(i, cx);
            }
            if call.is_some() {
                break;
            }
        }
        if let Some(over) = call {
            cx.net.set_timer(self.timers[PACE as usize], over);
        } else if test.settings.udp || test.settings.rate > 0 {
            let at = cx.now() + Span::from_ms(1);
            cx.net.set_timer(self.timers[PACE as usize], at);
        }
    }
    /// The client has gone, well or not.
    fn done(&mut self, cx: &mut Cx<'_>) {
        if let Some(mut test) = self.test.take()
            && !test.streams.is_empty()
        {
            let start = std::mem::take(&mut self.start_json);
            test.finish(start, cx);
            if !test.settings.udp {
                test.streams.iter().for_each(|s| cx.net.tcp_close(s.sock));
            }
        }
        for timer in self.timers {
            cx.net.wakes.stop_timer(timer);
        }
        cx.net.tcp_close(self.control);
        self.control = NONE;
        self.running = false;
        if self.settings.one_off {
            cx.exit(0);
        } else {
            self.listening(cx);
        }
    }
}

impl Program for Server {
    fn intent(&self) -> Intent {
        Intent::listen("tcp", self.settings.port)
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        cx.print(&self.settings.warnings);
        let cfg = cx.net.tcp_config(cx.host);
        let listener = Listener { cfg: Box::new(cfg), backlog: 4_096, sink: false, fast: Default::default() };
        let port = self.settings.port;
        let udp = cx.net.udp_bind(cx.host, cx.app, port, SockOpts::default());
        let tcp = cx.net.tcp_listen(cx.host, cx.app, port, SockOpts::default(), listener);
        let (Some(udp), Some(_)) = (udp, tcp) else {
            cx.print("iperf3: error - unable to start listener for connections: Address already in use\niperf3: exiting\n");
            cx.exit(1);
            return;
        };
        self.udp = udp;
        self.timers = [INTERVAL, PACE, OMIT].map(|token| cx.net.wakes.new_timer(cx.app, token));
        self.listening(cx);
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Readable(sock) => {
                let n = cx.net.tcp_read(sock);
                if let Some(test) = &mut self.test
                    && let Some(i) = test.find(sock)
                    && self.running
                    && !test.streams[i].sender
                {
                    test.streams[i].bytes += n;
                }
                while let Some(message) = cx.net.tcp_hear(sock) {
                    self.hear(sock, &message, cx);
                }
            }
            Wake::Writable(sock) => {
                let Some(test) = self.test.as_mut().filter(|t| t.sends() && self.running) else { return };
                if test.settings.udp {
                    return self.work(cx);
                }
                for i in 0..test.streams.len() {
                    if test.streams[i].sock == sock {
                        test.write(i, cx);
                    }
                }
            }
            Wake::Datagram { sock, from, to, len, seq, created } => {
                let port = self.settings.port;
                let known = self.test.as_ref().and_then(|t| t.streams.iter().position(|s| s.remote == from));
                if seq & HELLO != 0 {
                    let wanted = self
                        .test
                        .as_ref()
                        .is_some_and(|t| t.settings.udp && (t.streams.len() as u32) < t.wanted());
                    let flow = (seq & !HELLO) as u32;
                    if known.is_none() && !wanted {
                        return;
                    }
                    cx.net.sockets[sock].flow = NONE;
                    let _ = cx.net.udp_send_to(sock, from, 4, HELLO);
                    if known.is_none() {
                        if self.test.as_ref().is_some_and(|t| t.sends_nth(t.streams.len() as u32)) {
                            cx.net.meter.flows[flow as usize].socks = [sock, NONE];
                        }
                        self.add_stream(sock, flow, (to, port), from, cx);
                    }
                } else if let (Some(i), Some(test), true) = (known, &mut self.test, self.running)
                    && !test.streams[i].sender
                {
                    let transit = cx.now() - created;
                    test.streams[i].datagram(len, seq, transit);
                }
            }
            Wake::Timer(INTERVAL) => {
                if let Some(test) = &mut self.test {
                    test.interval(cx);
                    let at = cx.now() + test.settings.interval;
                    cx.net.set_timer(self.timers[INTERVAL as usize], at);
                }
            }
            Wake::Timer(OMIT) => {
                if let Some(test) = &mut self.test {
                    test.omitted(cx);
                    if test.settings.interval > Span::ZERO {
                        let at = cx.now() + test.settings.interval;
                        cx.net.set_timer(self.timers[INTERVAL as usize], at);
                    }
                }
                self.work(cx);
            }
            Wake::Timer(_) => self.work(cx),
            Wake::Eof(sock) | Wake::Failed(sock, _) if sock == self.control => {
                if !self.settings.json {
                    cx.print("iperf3: error - the client has unexpectedly closed the connection\n");
                }
                self.done(cx);
            }
            _ => {}
        }
    }
}
