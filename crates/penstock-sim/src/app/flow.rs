//! The source of a flow: traffic without a command line.
//!
//! TCP runs from the sender to a listener that reads and forgets; UDP to a port where datagrams are counted.
//! Each flow has a port of its own at the receiver.

use crate::app::{Cx, Family, Program, first_address, program};
use crate::index::NONE;
use crate::net::Net;
use crate::sock::{Addr, Listener, SockOpts};
use crate::spec::{FlowSpec, Transport};
use crate::wake::Wake;
use penstock_model::traffic::{Dist, Load, TcpWishes};
use penstock_model::{Rng, Span, Time};
use penstock_tcp::Config;
use std::collections::VecDeque;

/// The least port that flows listen on.
const FIRST_PORT: u32 = 20_000;
/// Where an echo server listens (RFC 862).
const ECHO_PORT: u16 = 7;

/// One flow's source.
pub(crate) struct Source {
    // Parameters
    flow: u32,
    to: u32,
    to_addr: Option<std::net::IpAddr>,
    family: Family,
    transport: Transport,
    load: Load,
    stop: Option<Time>,
    opts: SockOpts,
    port: u16,
    // Variables
    rng: Rng,
    /// What the clock's deviations are drawn from.
    clock_rng: Rng,
    /// Deviation of the clock, thousand-millionths.
    drift_ppb: i64,
    jitter: Span,
    /// When the next packet is due by that clock.
    due: Time,
    /// An on-off source is on until then.
    on_until: Time,
    sock: u32,
    timer: u32,
    next: u64,
    /// Bytes of datagrams that could not be sent yet for want of memory.
    blocked: Option<u32>,
    /// Where the receiver listens, once it does.
    remote: Option<Addr>,
    /// When the page under way was asked for.
    page: Time,
    /// No page is under way: the last one is looked at.
    reads: bool,
    /// Echoes that are under way: number, when it was asked.
    asked: VecDeque<(u64, Option<Time>)>,
}

/// How many probes are waited for at a time.
const UNANSWERED: usize = 100_000;

const GAP: u32 = 0;
const STOP: u32 = 1;

impl Source {
    pub(crate) fn new(spec: &FlowSpec, flow: u32, name: &str, net: &Net) -> Source {
        let mut clock_rng = net.rng(&format!("flow:{name}/clock"));
        let width = spec.clock.drift_ppm.min(1_000_000) * 2000;
        let drift_ppb = i64::from(clock_rng.below(width.saturating_add(1))) - i64::from(width / 2);
        Source {
            flow,
            to: spec.to.0,
            to_addr: spec.to_addr,
            family: if spec.ipv6 { Family::Six } else { Family::Any },
            transport: spec.transport.clone(),
            load: spec.load.clone(),
            stop: spec.stop,
            opts: SockOpts { tos: spec.tos, mark: spec.mark, txtime: spec.txtime, ..SockOpts::default() },
            port: spec.port,
            rng: net.rng(&format!("flow:{name}")),
            clock_rng,
            drift_ppb,
            jitter: spec.clock.jitter,
            due: Time::ZERO,
            on_until: Time::ZERO,
            sock: NONE,
            timer: NONE,
            next: 0,
            blocked: None,
            remote: None,
            page: Time::ZERO,
            reads: false,
            asked: VecDeque::new(),
        }
    }

    fn open(&mut self, cx: &mut Cx<'_>) -> Result<(), &'static str> {
        let remote = match self.remote {
            Some(remote) => remote,
            None => {
                let addr = program::Source::address(self, cx.net).ok_or("Destination address required")?;
                (addr, self.receiver().open(cx.net)?)
            }
        };
        self.remote = Some(remote);
        match &self.transport {
            Transport::Tcp(tcp) => {
                let mut cfg = configure(cx.net.tcp_config(cx.host), tcp);
                cfg.fastopen = cfg.fastopen.and(match self.load {
                    Load::Bytes(bytes) => Some(bytes),
                    Load::Greedy => Some(u64::MAX),
                    // Pages were refused.
                    _ => None,
                });
                self.sock = cx.net.tcp_connect(cx.host, cx.app, remote, self.flow, true, self.opts, cfg)?;
            }
            Transport::Udp => {
                self.sock = cx.net.udp_bind(cx.host, cx.app, 0, self.opts).ok_or("Address already in use")?;
                cx.net.udp_connect(self.sock, remote, self.flow)?;
            }
        }
        Ok(())
    }
    fn size(&mut self) -> u32 {
        let size = match &self.load {
            Load::Packets { size, .. } | Load::Echo { size, .. } | Load::OnOff { size, .. } => size,
            Load::Pages { size, .. } => return size.draw_page(&mut self.rng),
            Load::Replay(all) => return all.get(self.next as usize).map_or(0, |p| p.1).clamp(1, 65_507),
            // A rate has come as packets, arrivals as flows of their own.
            Load::Greedy | Load::Bytes(_) | Load::Rate(..) | Load::Arrivals(_) => return 0,
        };
        size.draw(&mut self.rng)
    }
    /// Opens a connection for the next page.
    fn next_page(&mut self, cx: &mut Cx<'_>) {
        self.reads = false;
        if let Err(error) = self.open(cx) {
            cx.print(&format!("connect: {error}\n"));
            cx.exit(1);
            return;
        }
        self.send_page(cx);
    }
    fn send_page(&mut self, cx: &mut Cx<'_>) {
        self.page = cx.now();
        let size = self.size();
        cx.net.tcp_send(self.sock, u64::from(size), true);
    }
    /// A page has arrived whole: the reader looks at it.
    fn page_done(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        let from = cx.net.meter.counted_from;
        let flow = &mut cx.net.meter.flows[self.flow as usize];
        // A page that began while the run warmed up is not counted.
        if self.page >= from {
            flow.transfers.record((now - self.page).as_ns() as u64);
        }
        // A page under way at the flow's end is its last.
        if self.stop.is_some_and(|stop| now >= stop) {
            cx.exit(0);
            return;
        }
        flow.completed = None;
        self.reads = true;
        let Load::Pages { think, .. } = &self.load else { return };
        let at = now + think.draw(&mut self.rng);
        cx.net.set_timer(self.timer, at.max(now + Span::from_ns(1)));
    }
    /// Sends the packet that is due and asks to be woken for the next.
    fn packet(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        if self.stop.is_some_and(|stop| now >= stop) {
            self.stop(cx);
            return;
        }
        let size = self.size();
        self.next += 1;
        if matches!(self.load, Load::Echo { .. }) {
            self.asked.push_back((self.next, Some(now)));
            // What has had no answer in so many probes has none.
            let late = self.asked.len().saturating_sub(UNANSWERED);
            self.asked.drain(..late);
        }
        if self.transport == Transport::Udp {
            if cx.net.udp_send(self.sock, size, self.next) == Ok(false) {
                // The call blocks; what fell due meanwhile goes when it returns.
                self.blocked = Some(size);
                return;
            }
        } else {
            cx.net.tcp_send(self.sock, u64::from(size), false);
        }
        self.plan(cx);
    }
    /// Asks to be woken for the next packet.
    fn plan(&mut self, cx: &mut Cx<'_>) {
        let now = cx.now();
        let gap = match &self.load {
            Load::Packets { gap, .. } | Load::Echo { gap, .. } | Load::OnOff { gap, .. } => {
                gap.draw(&mut self.rng)
            }
            Load::Replay(all) => match all.get(self.next as usize) {
                Some(packet) => packet.0,
                None => return self.stop(cx),
            },
            Load::Greedy | Load::Bytes(_) | Load::Rate(..) | Load::Arrivals(_) | Load::Pages { .. } => return,
        };
        let off = i128::from(gap.as_ns()) * i128::from(self.drift_ppb) / 1_000_000_000;
        self.due = self.due.saturating_add(gap).saturating_add(Span::from_ns(off as i64));
        if let Load::OnOff { on, off, .. } = &self.load
            && self.due >= self.on_until
        {
            self.due = self.on_until.max(now).saturating_add(off.draw(&mut self.rng));
            self.on_until = self.due.saturating_add(on.draw(&mut self.rng));
        }
        let mut at = self.due;
        if self.jitter > Span::ZERO {
            let spread = Dist::Uniform { from: Span::ZERO, to: self.jitter * 2 };
            at = at.saturating_add(spread.draw(&mut self.clock_rng)) - self.jitter;
        }
        cx.net.set_timer(self.timer, at.max(now + Span::from_ns(1)));
    }
    /// The first packet: at once, or when the recording or the first time of being on begins.
    fn begin(&mut self, cx: &mut Cx<'_>) {
        self.due = cx.now();
        match &self.load {
            Load::OnOff { on, off, .. } => {
                // Somewhere in an off time: many such sources do not begin together.
                let off = off.draw(&mut self.rng);
                let into = Dist::Uniform { from: Span::ZERO, to: off }.draw(&mut self.rng);
                self.due = self.due.saturating_add(into);
                self.on_until = self.due.saturating_add(on.draw(&mut self.rng));
                cx.net.set_timer(self.timer, self.due);
            }
            Load::Replay(all) => {
                self.due = self.due.saturating_add(all.first().map_or(Span::ZERO, |p| p.0));
                cx.net.set_timer(self.timer, self.due);
            }
            _ => self.packet(cx),
        }
    }
    /// An echo has come back.
    fn answered(&mut self, seq: u64, cx: &mut Cx<'_>) {
        let now = cx.now();
        // Their numbers follow each other.
        let first = self.asked.front().map_or(0, |a| a.0);
        let place = seq.checked_sub(first).and_then(|n| self.asked.get_mut(n as usize));
        if let Some(sent) = place.and_then(|a| a.1.take()) {
            while self.asked.front().is_some_and(|a| a.1.is_none()) {
                self.asked.pop_front();
            }
            cx.net.meter.flows[self.flow as usize].rtts.push((now, now - sent));
        }
    }
    fn stop(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.load, Load::Pages { .. }) && !self.reads {
            return;
        }
        if self.transport == Transport::Udp || self.reads {
            let now = cx.now();
            let flow = &mut cx.net.meter.flows[self.flow as usize];
            flow.completed = flow.completed.or(Some(now));
            cx.net.wakes.stop_timer(self.timer);
            cx.exit(0);
        } else {
            cx.net.tcp_finish(self.sock);
        }
    }
}

/// The receiving side of a flow: a program of its own where the source is on another core.
pub(crate) struct Sink {
    flow: u32,
    to: u32,
    port: u16,
    echoes: bool,
    transport: Transport,
}

impl Sink {
    /// The port that it takes where nobody has that.
    pub(crate) fn first_port(&self) -> u16 {
        match self.port {
            0 if self.echoes => ECHO_PORT,
            // Each flow has its own, from where its number puts it.
            0 => (FIRST_PORT + self.flow % (65_536 - FIRST_PORT)) as u16,
            port => port,
        }
    }
    /// Whether it takes that port whoever has it.
    pub(crate) fn is_fixed(&self) -> bool {
        self.port != 0 || self.echoes
    }
    /// Opens it and answers its port.
    fn open(&self, net: &mut Net) -> Result<u16, &'static str> {
        let first = self.first_port();
        if self.echoes {
            // Where somebody listens already, that server answers, if it is one.
            let _ = net.udp_echo(self.to, first);
            return Ok(first);
        }
        // From there around.
        let ports = match self.port {
            0 => (first..=u16::MAX).chain(FIRST_PORT as u16..first),
            _ => (first..=first).chain(0..0),
        };
        for port in ports {
            let found = match &self.transport {
                Transport::Tcp(tcp) => {
                    let cfg = configure(net.tcp_config(self.to), tcp);
                    let listener =
                        Listener { cfg: Box::new(cfg), backlog: 128, sink: true, fast: Default::default() };
                    net.tcp_listen(self.to, NONE, port, SockOpts::default(), listener)
                }
                Transport::Udp => net.udp_bind(self.to, NONE, port, SockOpts::default()),
            };
            if found.is_some() || self.port != 0 {
                // Somebody listens on the port that was asked for: then that is the receiver.
                return Ok(port);
            }
        }
        Err("Address already in use")
    }
}

impl Program for Sink {
    fn start(&mut self, cx: &mut Cx<'_>) {
        // Its port is free, or whoever has it is the receiver.
        let _ = self.open(cx.net);
    }
    fn wake(&mut self, _: Wake, _: &mut Cx<'_>) {}
}

impl Source {
    /// Its receiving side.
    fn receiver(&self) -> Sink {
        let (flow, to, port) = (self.flow, self.to, self.port);
        let echoes = matches!(self.load, Load::Echo { .. });
        Sink { flow, to, port, echoes, transport: self.transport.clone() }
    }
}

impl program::Source for Source {
    fn about(&self) -> (u32, u32, bool) {
        (self.flow, self.to, self.remote.is_some())
    }
    fn kind(&self) -> (bool, bool) {
        let udp = self.transport == Transport::Udp;
        (udp, matches!(self.load, Load::Greedy | Load::Bytes(_) | Load::Pages { .. }))
    }
    fn sink(&self) -> program::Sink {
        let sink = self.receiver();
        program::Sink { port: sink.first_port(), fixed: sink.is_fixed(), program: Box::new(sink) }
    }
    fn address(&self, net: &Net) -> Option<std::net::IpAddr> {
        self.to_addr.or_else(|| first_address(net, self.to, self.family))
    }
    fn finds(&mut self, remote: Addr) {
        self.remote = Some(remote);
    }
    fn forgets(&mut self) {
        self.remote = None;
    }
}

/// A host's TCP as a flow wants it.
pub(crate) fn configure(mut cfg: Config, spec: &TcpWishes) -> Config {
    if let Some(options) = spec.ns2 {
        cfg = Config { ns2: options, ..Config::ns2() };
    }
    if let Some(n) = spec.initial_window {
        cfg.initial_window = n;
        cfg.ns2.window_init = n;
    }
    if let Some(span) = spec.min_rto {
        cfg.min_rto = Some(span);
        cfg.ns2.min_rto = span;
    }
    cfg.quickack |= spec.quickack;
    cfg.fastopen = spec.fastopen.then_some(0);
    cfg.hz = spec.hz.unwrap_or(cfg.hz);
    if let Some(cc) = &spec.cc {
        // Checked when the flow was added.
        let _ = cfg.set_cc(cc);
    }
    if let Some(mss) = spec.mss {
        (cfg.mss, cfg.mss_follows_mtu) = (mss.max(1), false);
    }
    if let Some(ecn) = spec.ecn {
        cfg.ecn = if ecn { penstock_tcp::Ecn::On } else { penstock_tcp::Ecn::Off };
    }
    if let Some(sack) = spec.sack {
        cfg.sack = sack;
    }
    if let Some(bytes) = spec.sndbuf {
        cfg.sndbuf = penstock_tcp::Buffer::Fixed(bytes);
    }
    if let Some(bytes) = spec.rcvbuf {
        cfg.rcvbuf = penstock_tcp::Buffer::Fixed(bytes);
    }
    cfg
}

impl Program for Source {
    fn source(&mut self) -> Option<&mut dyn program::Source> {
        Some(self)
    }
    fn largest(&self) -> u32 {
        if self.transport != Transport::Udp {
            return 0;
        }
        match &self.load {
            Load::Packets { size, .. } | Load::Echo { size, .. } | Load::OnOff { size, .. } => size.largest(),
            Load::Replay(all) => all.iter().map(|p| p.1).max().unwrap_or(0),
            Load::Greedy | Load::Bytes(_) | Load::Rate(..) | Load::Arrivals(_) | Load::Pages { .. } => 0,
        }
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        if let Err(error) = self.open(cx) {
            cx.print(&format!("connect: {error}\n"));
            cx.exit(1);
            return;
        }
        let now = cx.now();
        cx.net.meter.flows[self.flow as usize].started = Some(now);
        self.timer = cx.net.wakes.new_timer(cx.app, GAP);
        match self.load {
            Load::Greedy => cx.net.tcp_send(self.sock, u64::MAX, false),
            Load::Bytes(bytes) => cx.net.tcp_send(self.sock, bytes, true),
            Load::Pages { .. } => self.send_page(cx),
            _ if self.transport == Transport::Udp => self.begin(cx),
            _ => {}
        }
        if let Some(stop) = self.stop {
            let timer = cx.net.wakes.new_timer(cx.app, STOP);
            cx.net.set_timer(timer, stop);
        }
    }

    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        match wake {
            Wake::Timer(GAP) if matches!(self.load, Load::Pages { .. }) => self.next_page(cx),
            Wake::Timer(GAP) => self.packet(cx),
            Wake::Timer(_) => self.stop(cx),
            Wake::Connected(_)
                if !matches!(self.load, Load::Greedy | Load::Bytes(_) | Load::Pages { .. }) =>
            {
                self.begin(cx);
            }
            Wake::Datagram { seq, .. } => self.answered(seq, cx),
            Wake::Writable(_) => {
                if let Some(size) = self.blocked.take() {
                    // The datagram that waited goes now, and those that fell due meanwhile behind it.
                    let _ = cx.net.udp_send(self.sock, size, self.next);
                    self.plan(cx);
                }
            }
            Wake::Failed(_, error) => {
                cx.print(&format!("connect: {error}\n"));
                cx.exit(1);
            }
            Wake::Closed(_) if matches!(self.load, Load::Pages { .. }) => self.page_done(cx),
            Wake::Closed(_) => cx.exit(0),
            _ => {}
        }
    }
}
