//! The machine under test: one Linux host with a device whose other end is the script, and its TCP sockets.
//!
//! Follows: google/packetdrill `netdev.c` (addresses, routes, the device's offloads); linux v6.12 drivers/net/tun.c `tun_net_xmit` (a frame is
//! its socket's memory no more when the device takes it), net/ipv4/tcp.c `__tcp_close`.
//! Differs: the device is an Ethernet card whose neighbours are known; a socket that was closed and got into FIN-WAIT-2 stays until the peer closes.

use crate::wire;
use penstock_host::{Effect, Host, HostCx};
use penstock_model::{Kernel, KernelError, Span, Time};
use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::{Fragment, Ipv4, Ipv6, L3, L4, Packet, Pool, Sender, Skb, Tcp, TcpFlags};
use penstock_sched::Xmit;
use penstock_tcp::fastopen::{Active, Blackhole, Queue};
use penstock_tcp::{Buffer, Calls, Config, Ecn, EcnField, Endpoint, State, Transmit, reset_for};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The device.
pub(crate) const DEVICE: &str = "tun0";
/// When the script begins, on the machine's clock: it has been up for a while.
const BEGIN: Time = Time::from_ns(10_000_000_000);
/// The port a socket listens on, where the script leaves it open; and that of the peer one connects to.
const PORT: u16 = 8080;

/// What the script's head says of the network.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Setting {
    pub six: bool,
    pub local: IpAddr,
    pub remote: IpAddr,
    pub gateway: IpAddr,
    pub mtu: u32,
    /// Longer packets come in as several segments of so many bytes that the card has joined (`--mss`); 0: each is one.
    pub mss: u32,
    pub hz: u32,
}

impl Setting {
    /// As packetdrill's own runner has it.
    pub fn new(six: bool) -> Setting {
        if six {
            let at = |subnet: u16| Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, subnet, 0, 0, 0, 0);
            return Setting {
                six,
                local: IpAddr::V6(Ipv6Addr::new(0xfd3d, 0xfa7b, 0xd17d, 0, 0, 0, 0, 1)),
                remote: IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)),
                gateway: IpAddr::V6(at(0x8888)),
                mtu: 1520,
                mss: 0,
                hz: 1000,
            };
        }
        Setting {
            six,
            local: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 1)),
            remote: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
            gateway: IpAddr::V4(Ipv4Addr::new(192, 168, 0, 2)),
            mtu: 1500,
            mss: 0,
            hz: 1000,
        }
    }
}

/// What a socket is.
pub(crate) enum Kind {
    /// Neither listens nor connects yet.
    Fresh,
    /// It listens; connections that are open and not accepted, the first first.
    Listens(VecDeque<usize>),
    /// A connection.
    Tcp(Box<Endpoint>),
    /// Gone.
    Gone,
}

/// A socket.
pub(crate) struct Sock {
    pub kind: Kind,
    pub cfg: Config,
    pub local: (IpAddr, u16),
    pub remote: (IpAddr, u16),
    pub tos: u8,
    /// DF is set (`IP_MTU_DISCOVER`).
    pub df: bool,
    pub nonblocking: bool,
    /// `SO_LINGER` of 0.
    pub lingers_not: bool,
    pub read_shut: bool,
    pub write_shut: bool,
    /// The program has closed it.
    pub orphan: bool,
    /// `TCP_USER_TIMEOUT`, `TCP_NOTSENT_LOWAT`, `TCP_CORK`, `TCP_MAXSEG` as set.
    pub user_timeout: u32,
    pub notsent_lowat: u32,
    pub cork: bool,
    pub maxseg: u16,
    /// The error that the next call is told (`sk_err`).
    pub error: Option<&'static str>,
    pub error_told: bool,
    /// The queue of Fast Open, of one that listens.
    pub fast: Queue,
    /// `TCP_FASTOPEN_CONNECT`; and it has been connected, and sends its SYN with the first data.
    pub fast_connect: bool,
    pub deferred: bool,
    /// Its last call by Fast Open did not wait for the connection.
    pub connecting: bool,
    /// It stands in its parent's queue of Fast Open; a program has accepted it.
    pub fast_queued: bool,
    pub accepted: bool,
    /// The socket that listened, where a SYN has made it.
    pub parent: Option<usize>,
    queued: bool,
}

/// A segment that has left.
#[derive(Clone, Debug)]
pub(crate) struct Left {
    pub at: Time,
    pub tcp: Tcp,
    pub payload: u32,
    pub tos: u8,
    pub ttl: u8,
}

/// The machine.
pub(crate) struct Net {
    pub host: Host,
    pub now: Time,
    pub socks: Vec<Sock>,
    /// What has left and the script has not asked for.
    pub left: VecDeque<Left>,
    pub setting: Setting,
    pub hole: Blackhole,
    pool: Pool,
    dev: u32,
    ports: u16,
}

/// Steps at one instant after which something goes round for ever.
const MOST_STEPS: u32 = 1_000_000;

impl Net {
    pub fn new(kernel: Kernel, setting: &Setting) -> Result<Net, String> {
        let mut host = Host::new("packetdrill", kernel, 1);
        host.set_hz(setting.hz);
        let dev = host.add_device(DEVICE);
        let net = Net {
            host,
            now: BEGIN,
            socks: Vec::new(),
            left: VecDeque::new(),
            setting: setting.clone(),
            hole: Blackhole::default(),
            pool: Pool::new(),
            dev,
            ports: 0,
        };
        net.addressed()
    }
    /// Gives the machine its addresses and routes.
    fn addressed(mut self) -> Result<Net, String> {
        let Setting { six, local, remote, gateway, mtu, .. } = self.setting.clone();
        let (ip, bits, host) = if six { ("ip -6", 48, 128) } else { ("ip", 16, 32) };
        let mut lines = vec![
            format!("ip link set {DEVICE} up mtu {mtu}"),
            format!("{ip} addr add {local}/{bits} dev {DEVICE}"),
        ];
        if six {
            lines.push(format!("{ip} route replace {gateway}/128 dev {DEVICE}"));
        }
        let near =
            format!("{ip} neigh replace {gateway} lladdr 02:00:00:00:00:01 nud permanent dev {DEVICE}");
        lines.push(near);
        if gateway == local {
            lines.push(format!("{ip} route add {remote}/{host} dev {DEVICE}"));
            lines.push(format!(
                "{ip} neigh replace {remote} lladdr 02:00:00:00:00:01 nud permanent dev {DEVICE}"
            ));
        } else {
            lines.push(format!("{ip} route add {remote}/{host} via {gateway} dev {DEVICE}"));
        }
        for line in lines {
            let done = self.host.exec(&line, self.now);
            if done.status != 0 {
                return Err(format!("the network cannot be set up: {line}: {}", done.stderr.trim_end()));
            }
        }
        self.effects();
        Ok(self)
    }
    /// Microseconds since the script's begin.
    pub fn script_us(&self) -> i64 {
        us_since_begin(self.now)
    }

    fn on_host<T>(&mut self, work: impl FnOnce(&mut Host, &mut HostCx<'_>) -> T) -> (T, Vec<Effect>) {
        let mut out = Vec::new();
        let mut cx = HostCx { now: self.now, pool: &mut self.pool, out: &mut out };
        let done = work(&mut self.host, &mut cx);
        (done, out)
    }

    // ---- Frames ----

    /// Does what commands have asked for.
    pub fn effects(&mut self) {
        let mut out = Vec::new();
        self.host.take_effects(&mut out);
        self.carry_out(out);
    }
    fn carry_out(&mut self, effects: Vec<Effect>) {
        let mut todo: VecDeque<Effect> = effects.into();
        let mut steps = 0;
        while let Some(effect) = todo.pop_front() {
            steps += 1;
            if steps > MOST_STEPS {
                break;
            }
            match effect {
                Effect::Kick(ifindex) => todo.extend(self.transmit(ifindex)),
                Effect::Next(ifindex, packet) => {
                    let (_, out) = self.on_host(|h, cx| h.comes_to(ifindex, packet, cx));
                    todo.extend(out);
                }
                Effect::Across { ifindex, how, packet, .. } => {
                    let (_, out) = self.on_host(|h, cx| h.comes_across(ifindex, how, packet, cx));
                    todo.extend(out);
                }
                Effect::Deliver(packet) => self.deliver(packet),
                Effect::Dropped { packet, .. } => self.dropped(packet),
                Effect::Orphaned(_) | Effect::Moved(_) => {}
            }
        }
    }
    /// The device takes what its discipline gives.
    fn transmit(&mut self, ifindex: u32) -> Vec<Effect> {
        let mut all = Vec::new();
        for _ in 0..MOST_STEPS {
            let (packet, out) = self.on_host(|h, cx| h.dequeue(ifindex, cx));
            all.extend(out);
            let Some(packet) = packet else { break };
            if ifindex != self.dev {
                self.pool.free(packet);
                continue;
            }
            let at = self.now;
            if let L4::Tcp(tcp) = packet.l4 {
                let (ip, ttl) = match packet.l3 {
                    L3::Ipv4(h) => (20, h.ttl),
                    L3::Ipv6(h) => (40, h.hop_limit),
                    _ => (0, 0),
                };
                let payload = packet.len.saturating_sub(ETH_HLEN + ip + tcp.header_len());
                self.left.push_back(Left { at, tcp, payload, tos: packet.tos(), ttl });
                if let Some(Kind::Tcp(end)) = self.owner(&packet).map(|s| &mut self.socks[s].kind)
                    && payload > 0
                {
                    end.transmitted_freed(payload, at);
                }
            }
            self.pool.free(packet);
        }
        all
    }
    /// The socket that has made a packet.
    fn owner(&self, packet: &Skb) -> Option<usize> {
        (packet.iif == 0)
            .then(|| packet.sender.socket.checked_sub(1).map(|n| n as usize))
            .flatten()
            .filter(|&n| n < self.socks.len())
    }
    fn dropped(&mut self, packet: Packet) {
        let now = self.now;
        if let L4::Tcp(tcp) = packet.l4
            && let Some(Kind::Tcp(end)) = self.owner(&packet).map(|s| &mut self.socks[s].kind)
        {
            let ip = if self.setting.six { 40 } else { 20 };
            let payload = packet.len.saturating_sub(ETH_HLEN + ip + tcp.header_len());
            if payload > 0 {
                end.dropped_in_host(tcp.seq, Some(payload), now);
            }
        }
        self.pool.free(packet);
    }

    fn network(&self, from: IpAddr, to: IpAddr, tos: u8, df: bool, ttl: u8) -> L3 {
        match (from, to) {
            (IpAddr::V6(src), IpAddr::V6(dst)) => L3::Ipv6(Ipv6 {
                src,
                dst,
                traffic_class: tos,
                flow_label: 0,
                next_header: ipproto::TCP,
                fragment: Fragment::NONE,
                hop_limit: ttl,
            }),
            (from, to) => {
                let v4 = |a: IpAddr| if let IpAddr::V4(a) = a { a } else { Ipv4Addr::UNSPECIFIED };
                let frag_off = if df { 0x4000 } else { 0 };
                L3::Ipv4(Ipv4 { tos, ttl, frag_off, ..Ipv4::new(v4(from), v4(to), ipproto::TCP) })
            }
        }
    }

    /// A segment comes in by the device.
    pub fn inject(&mut self, tcp: Tcp, payload: u32, tos: u8) {
        let Setting { local, remote, six, .. } = self.setting;
        let len = ETH_HLEN + if six { 40 } else { 20 } + tcp.header_len() + payload;
        let l3 = self.network(remote, local, tos, true, 255);
        let mut packet = self.pool.make(len, l3, L4::Tcp(tcp));
        packet.eth = ([2, 0, 0, 0, 0, 1], self.host.device(self.dev).map_or([0; 6], |d| d.mac));
        (packet.created, packet.queued) = (self.now, self.now);
        let dev = self.dev;
        let ((), out) = self.on_host(|h, cx| h.receive(dev, packet, cx));
        self.carry_out(out);
        self.pump_all();
    }
    /// A packet for this machine's sockets.
    fn deliver(&mut self, packet: Packet) {
        let L4::Tcp(tcp) = packet.l4 else { return self.pool.free(packet) };
        let ip = if self.setting.six { 40 } else { 20 };
        let payload = packet.len.saturating_sub(ETH_HLEN + ip + tcp.header_len());
        let ecn = EcnField::of_tos(packet.tos());
        self.pool.free(packet);
        let now = self.now;
        // A connection that was reset is not found any more.
        let open = |k: &Kind| matches!(k, Kind::Tcp(end) if end.state() != State::Closed);
        let mine = |s: &Sock| open(&s.kind) && s.local.1 == tcp.dport && s.remote.1 == tcp.sport;
        if let Some(n) = self.socks.iter().position(mine) {
            let sock = &mut self.socks[n];
            let Kind::Tcp(end) = &mut sock.kind else { return };
            //= linux v6.12 net/ipv4/tcp_input.c tcp_rcv_state_process: data for a socket that was closed
            let waits = matches!(end.state(), State::FinWait1 | State::FinWait2);
            if sock.orphan && waits && payload > 0 && end.is_new(tcp.seq, payload) {
                sock.kind = Kind::Gone;
                return self.reset(&tcp, payload);
            }
            match self.setting.mss {
                mss @ 1.. if payload > mss => end.handle_segments(&tcp, payload, mss, ecn, now),
                _ => end.handle_segment(&tcp, payload, ecn, now),
            }
            return self.pump(n);
        }
        let listens = |s: &Sock| matches!(s.kind, Kind::Listens(_)) && s.local.1 == tcp.dport;
        if let Some(parent) = self.socks.iter().position(listens) {
            let mut cfg = self.socks[parent].cfg.clone();
            self.route_config(&mut cfg, self.socks[parent].maxseg);
            let verdict = if tcp.flags.has(TcpFlags::SYN) && !tcp.flags.has(TcpFlags::ACK) {
                self.fast_verdict(parent, &tcp, payload)
            } else {
                (false, None)
            };
            let (child, reply) = verdict;
            if let Some(end) = Endpoint::accept_fast(&cfg, &tcp, payload, ecn, 0, child, reply, now) {
                let of = &self.socks[parent];
                let (tos, maxseg, local) = (of.tos, of.maxseg, of.local);
                let (lowat, timeout) = (of.notsent_lowat, of.user_timeout);
                let n = self.add(cfg);
                let own = &mut self.socks[n];
                (own.local, own.remote) = (local, (self.setting.remote, tcp.sport));
                (own.tos, own.maxseg, own.parent) = (tos, maxseg, Some(parent));
                own.kind = Kind::Tcp(Box::new(end));
                own.fast_queued = child;
                (own.notsent_lowat, own.user_timeout) = (lowat, timeout);
                return self.pump(n);
            }
        }
        self.reset(&tcp, payload);
    }
    /// Answers a segment for no socket.
    fn reset(&mut self, tcp: &Tcp, payload: u32) {
        let Some(reset) = reset_for(tcp, payload) else { return };
        let (local, remote) = (self.setting.local, self.setting.remote);
        let len = ETH_HLEN + if self.setting.six { 40 } else { 20 } + reset.tcp.header_len();
        let l3 = self.network(local, remote, 0, true, 0);
        let packet = self.pool.make(len, l3, L4::Tcp(reset.tcp));
        let (_, out) = self.on_host(|h, cx| h.send(packet, cx));
        self.carry_out(out);
    }

    // ---- Sockets ----

    /// A new socket's place.
    pub fn add(&mut self, cfg: Config) -> usize {
        self.socks.push(Sock {
            kind: Kind::Fresh,
            cfg,
            local: (self.setting.local, 0),
            remote: (self.setting.remote, 0),
            tos: 0,
            df: true,
            nonblocking: false,
            lingers_not: false,
            read_shut: false,
            write_shut: false,
            orphan: false,
            user_timeout: 0,
            notsent_lowat: 0,
            cork: false,
            maxseg: 0,
            fast: Queue::default(),
            fast_connect: false,
            deferred: false,
            connecting: false,
            fast_queued: false,
            accepted: false,
            error: None,
            error_told: false,
            parent: None,
            queued: false,
        });
        self.socks.len() - 1
    }
    /// What a socket begins with, as the machine is set.
    pub fn config(&self) -> Config {
        let mut cfg = Config::linux(self.host.kernel());
        let s = self.host.tcp_settings();
        let number = |name: &str| {
            self.host.setting(&format!("net.ipv4.{name}")).and_then(|v| v.trim().parse::<i64>().ok())
        };
        cfg.hz = self.host.hz();
        let _ = cfg.set_cc(&s.congestion_control);
        (cfg.sack, cfg.timestamps, cfg.window_scaling) = (s.sack, s.timestamps, s.window_scaling);
        cfg.ecn = Ecn::of_setting(s.ecn);
        (cfg.ecn_option, cfg.ecn_fallback) = (s.ecn_option, s.ecn_fallback);
        cfg.invalid_ratelimit = s.invalid_ratelimit;
        cfg.slow_start_after_idle = s.slow_start_after_idle.unwrap_or(cfg.slow_start_after_idle);
        let [syn, synack, data] = s.retries;
        (cfg.syn_retries, cfg.synack_retries) =
            (syn.unwrap_or(cfg.syn_retries), synack.unwrap_or(cfg.synack_retries));
        cfg.retries2 = data.unwrap_or(cfg.retries2);
        if let Some((first, most)) = s.wmem {
            cfg.sndbuf = Buffer::Auto(first, most);
        }
        if let Some((first, most)) = s.rmem {
            cfg.rcvbuf = Buffer::Auto(first, if s.moderate_rcvbuf { most } else { first });
        }
        cfg.min_rto = s.rto_min;
        cfg.reordering = number("tcp_reordering").and_then(|n| u32::try_from(n).ok());
        cfg.early_retrans = s.early_retrans;
        (cfg.frto, cfg.recovery, cfg.dsack, cfg.pacing_ratios) =
            (s.frto, s.recovery, s.dsack, s.pacing_ratios);
        for &(control, name, value) in &s.parameters {
            if let Some(control) = penstock_tcp::cc::find(control) {
                cfg.cc_parameters.set(control, name, value);
            }
        }
        cfg.device_accounting = true;
        let at_least = |name: &str, least: u32, own: u32| {
            number(name).map_or(own, |n| n.clamp(i64::from(least), i64::from(u32::MAX)) as u32)
        };
        let own = Calls::default();
        cfg.calls = Some(Calls {
            min_tso_segs: at_least("tcp_min_tso_segs", 1, own.min_tso_segs),
            tso_win_divisor: at_least("tcp_tso_win_divisor", 0, own.tso_win_divisor),
            notsent_lowat: at_least("tcp_notsent_lowat", 0, own.notsent_lowat),
            mtu_probing: (number("tcp_mtu_probing") == Some(2)).then(|| at_least("tcp_base_mss", 48, 1024)),
            headers: if self.setting.six { 60 } else { 40 },
            ..own
        });
        cfg
    }
    /// Connections hear of the settings that they look at with each segment.
    pub fn settings_changed(&mut self) {
        let option = self.host.tcp_settings().ecn_option;
        for sock in &mut self.socks {
            if let Kind::Tcp(end) = &mut sock.kind {
                end.set_ecn_option(option);
            }
        }
    }
    /// Connections hear of a route's MTU.
    pub fn routes_changed(&mut self) {
        let (remote, now) = (self.setting.remote, self.now);
        let headers = if self.setting.six { 60 } else { 40 };
        let Some(mtu) = self.host.mtu_to(remote, now) else { return };
        for sock in &mut self.socks {
            if let Kind::Tcp(end) = &mut sock.kind {
                end.set_path_mss(mtu.saturating_sub(headers).max(1));
            }
        }
    }
    /// What the route to the peer says of a connection.
    fn route_config(&mut self, cfg: &mut Config, maxseg: u16) {
        let remote = self.setting.remote;
        let now = self.now;
        if let Some(mtu) = self.host.mtu_to(remote, now) {
            let headers = if self.setting.six { 60 } else { 40 };
            cfg.mss = mtu.saturating_sub(headers).clamp(1, 65_495) as u16;
        }
        let route = self.host.tcp_route_to(remote);
        cfg.min_rto = route.rto_min.or(cfg.min_rto);
        cfg.initial_window = route.initcwnd.unwrap_or(0);
        cfg.initial_rwnd = route.initrwnd;
        cfg.window_clamp = cfg.window_clamp.or(route.window);
        cfg.cwnd_clamp = route.cwnd;
        cfg.reordering = route.reordering.or(cfg.reordering);
        cfg.quickack |= route.quickack;
        if let Some(name) = route.congctl {
            let _ = cfg.set_cc(name);
        }
        if route.ecn {
            cfg.ecn = cfg.ecn.asked();
        }
        if let Some(advmss) = route.advmss {
            cfg.mss = cfg.mss.min(advmss.min(65_495) as u16);
        }
        if maxseg > 0 {
            cfg.mss = cfg.mss.min(maxseg);
        }
    }
    /// The socket connects.
    pub fn connect(&mut self, n: usize) {
        self.connect_by(n, None);
    }
    /// The same by Fast Open, where it is said how. The bytes of data that went with the SYN.
    pub fn connect_by(&mut self, n: usize, how: Option<Active>) -> u64 {
        let mut cfg = self.socks[n].cfg.clone();
        self.route_config(&mut cfg, self.socks[n].maxseg);
        if self.socks[n].local.1 == 0 {
            self.ports += 1;
            self.socks[n].local.1 = 40_000 + self.ports;
        }
        let sock = &mut self.socks[n];
        sock.remote.1 = PORT;
        sock.deferred = false;
        let end = match how {
            None => Endpoint::connect(&cfg, sock.local.1, PORT, 0, self.now),
            Some(how) => Endpoint::connect_fast(&cfg, sock.local.1, PORT, 0, &how, self.now),
        };
        let in_syn = end.in_syn();
        sock.kind = Kind::Tcp(Box::new(end));
        self.take_options(n);
        self.pump(n);
        in_syn.into()
    }
    /// Hands the endpoint what was set before it was there.
    pub fn take_options(&mut self, n: usize) {
        let now = self.now;
        let sock = &mut self.socks[n];
        let (timeout, lowat, cork) = (sock.user_timeout, sock.notsent_lowat, sock.cork);
        if let Kind::Tcp(end) = &mut sock.kind {
            end.set_user_timeout((timeout > 0).then(|| Span::from_ms(timeout.into())));
            if lowat > 0 {
                end.set_notsent_lowat(lowat);
            }
            if cork {
                end.set_cork(true, now);
            }
        }
    }
    /// The port the next connection of the peer comes from.
    pub fn peer_port(&mut self) -> u16 {
        self.ports += 1;
        50_000 + self.ports
    }
    /// The port where the socket is bound that the script leaves open.
    pub fn bind_port() -> u16 {
        PORT
    }

    // ---- Time ----

    /// Lets a connection do what it has to do at this instant.
    pub fn pump(&mut self, n: usize) {
        for _ in 0..MOST_STEPS {
            let now = self.now;
            let Kind::Tcp(end) = &mut self.socks[n].kind else { return };
            let Some(segment) = end.poll_transmit(now) else { break };
            self.send(n, &segment);
        }
        self.fast_told(n);
        let sock = &mut self.socks[n];
        let Kind::Tcp(end) = &mut sock.kind else { return };
        let state = end.state();
        if let Some(error) = end.error() {
            sock.error.get_or_insert(errno_of(error));
        }
        let open = end.is_open();
        if sock.orphan && state == State::Closed && end.poll_timeout().is_none() {
            sock.kind = Kind::Gone;
        }
        if open
            && !std::mem::replace(&mut self.socks[n].queued, true)
            && let Some(parent) = self.socks[n].parent
        {
            self.take_options(n);
            if let Kind::Listens(queue) = &mut self.socks[parent].kind {
                queue.push_back(n);
            }
        }
    }
    pub fn pump_all(&mut self) {
        for n in 0..self.socks.len() {
            self.pump(n);
        }
    }
    /// Sends one segment of a connection.
    fn send(&mut self, n: usize, segment: &Transmit) {
        let now = self.now;
        let sock = &self.socks[n];
        let tos = sock.tos & !3 | if segment.ect { 2 } else { 0 };
        let len = ETH_HLEN
            + if self.setting.six { 40 } else { 20 }
            + segment.tcp.header_len()
            + segment.payload_len;
        let l3 = self.network(sock.local.0, sock.remote.0, tos, sock.df, 0);
        let rehashed = match &sock.kind {
            Kind::Tcp(end) => end.rehashed(),
            _ => 0,
        };
        let mut packet = self.pool.make(len, l3, L4::Tcp(segment.tcp));
        (packet.created, packet.queued) = (now, now);
        let flags = segment.tcp.flags;
        packet.sender = Sender {
            socket: n as u32 + 1,
            connected: !(flags.has(TcpFlags::SYN) && flags.has(TcpFlags::ACK)),
            tcp: true,
            rehashed,
            pacing_rate: None,
            departs: segment.departs,
        };
        let (sent, out) = self.on_host(|h, cx| h.transmit(packet, cx));
        self.carry_out(out);
        let Kind::Tcp(end) = &mut self.socks[n].kind else { return };
        if sent.as_ref().is_ok_and(|s| s.paced) {
            end.paced_below();
        }
        match sent.map(|s| s.answer) {
            Ok(Xmit::Drop) => end.local_drop(now),
            Ok(Xmit::Cn) => end.local_congestion(now),
            Ok(_) => {}
            Err(error) => {
                end.local_refusal(now);
                if error.errno != KernelError::EPERM {
                    end.unreachable(now);
                }
            }
        }
    }

    /// When something happens next by itself.
    pub fn next_event(&self) -> Option<Time> {
        let ends = self.socks.iter().filter_map(|s| match &s.kind {
            Kind::Tcp(end) => end.poll_timeout(),
            _ => None,
        });
        ends.chain(self.host.next_timer()).chain(self.host.next_wakeup(self.dev)).min()
    }
    /// Goes on to a moment at which something happens by itself, and lets it happen.
    pub fn step(&mut self, at: Time) {
        self.now = self.now.max(at);
        let now = self.now;
        if self.host.next_timer().is_some_and(|t| t <= now) {
            let ((), out) = self.on_host(|h, cx| h.handle_timer(cx));
            self.carry_out(out);
        }
        if self.host.next_wakeup(self.dev).is_some_and(|t| t <= now) {
            let out = self.transmit(self.dev);
            self.carry_out(out);
        }
        for n in 0..self.socks.len() {
            if let Kind::Tcp(end) = &mut self.socks[n].kind
                && end.poll_timeout().is_some_and(|t| t <= now)
            {
                end.handle_timeout(now);
            }
        }
        self.pump_all();
    }
}

/// Microseconds from the script's begin to a moment.
pub(crate) fn us_since_begin(at: Time) -> i64 {
    (at - BEGIN).as_ns().div_euclid(1_000)
}
/// The moment so many microseconds after the script's begin.
pub(crate) fn at_us(us: i64) -> Time {
    BEGIN + Span::from_us(us)
}

fn errno_of(error: penstock_tcp::Error) -> &'static str {
    match error {
        penstock_tcp::Error::Refused => "ECONNREFUSED",
        penstock_tcp::Error::Reset => "ECONNRESET",
        penstock_tcp::Error::BrokenPipe => "EPIPE",
        penstock_tcp::Error::TimedOut => "ETIMEDOUT",
        penstock_tcp::Error::Unreachable => "EHOSTUNREACH",
    }
}

impl Left {
    /// As a script would write it.
    pub fn as_packet(&self) -> crate::script::Packet {
        crate::script::Packet {
            inbound: false,
            tos: crate::script::Tos::Whole(self.tos),
            ttl: Some(self.ttl),
            ports: None,
            flags: self.tcp.flags.0,
            seq: self.tcp.seq,
            len: self.payload,
            ack: self.tcp.ack,
            window: Some(self.tcp.window),
            options: Some(wire::options_of(&self.tcp)),
        }
    }
}
