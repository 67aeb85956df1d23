//! `traceroute`: probes with a time to live of 1, 2, 3 …, and who answers them.
//!
//! Follows: traceroute 2.1.2 `traceroute.c` (`do_it`, `get_timeout`, `check_expired`, `recv_reply`, `parse_icmp_res`, `print_probe`), `mod-udp.c`,
//! `mod-icmp.c`, `mod-tcp.c`, `poll.c`.
//! Differs: names are those of `/etc/hosts`; over IPv6 routes choose the device; a port that a probe of TCP has held is not given back while it runs.

mod answers;
mod parse;
#[cfg(test)]
mod recorded;

pub(crate) use parse::{KNOWN, NOT_HERE};

use crate::app::{Cx, Family, Program};
use crate::index::NONE;
use crate::intent::Intent;
use crate::socket::probe::{Discover, Probe, Unsent};
use crate::wake::Wake;
use penstock_model::Span;
use penstock_packet::headers::ipproto;
use penstock_packet::{Icmp, L4, Tcp, TcpFlags, Udp};
use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

/// How probes are made (`-M`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Method {
    /// Datagrams to one port after another.
    Default,
    /// `-U`: to one port.
    Udp,
    /// `-I`: echo requests.
    Icmp,
    /// `-T`: SYNs.
    Tcp,
}

impl Method {
    /// The transport header that is counted apart from the data.
    fn header(self) -> u32 {
        match self {
            Method::Default | Method::Udp => 8,
            Method::Icmp | Method::Tcp => 0,
        }
    }
}

/// What is behind the network header without a length on the command line.
const DEF_DATA_LEN: u32 = 40;
const POLL: u32 = 0;

/// A probe. Times are microseconds, as `gettimeofday` and `SO_TIMESTAMP` tell them.
#[derive(Clone, Default)]
struct One {
    done: bool,
    last: bool,
    sent: Option<i64>,
    heard: Option<i64>,
    from: Option<IpAddr>,
    ttl: u8,
    /// What an answer is known by: the socket, the sequence number, the port. `None` once it is done.
    key: Option<u32>,
    said: String,
}

impl One {
    /// How long it was under way, microseconds; `None` where that is nothing.
    fn took(&self) -> Option<i64> {
        let took = self.heard.unwrap_or(0) - self.sent.unwrap_or(0);
        (self.done && took > 0).then_some(took)
    }
}

/// One `traceroute`.
pub(crate) struct Traceroute {
    // Parameters
    method: Method,
    family: Family,
    target: String,
    /// The place of the target among the words.
    target_at: usize,
    packet_len: Option<i32>,
    first_hop: u32,
    max_hops: u32,
    sim_probes: u32,
    probes_per_hop: u32,
    /// `-w`: the most, and the factors in billionths.
    wait: Span,
    here: i64,
    near: i64,
    send_wait: Span,
    numeric: bool,
    dontfrag: bool,
    mtudisc: bool,
    back: bool,
    tos: u8,
    label: u32,
    mark: u32,
    port: u32,
    sport: u32,
    device: Option<String>,
    /// `-s`, and its place among the words.
    source: Option<(String, usize)>,
    // Variables
    addr: IpAddr,
    from: IpAddr,
    bound: u32,
    header_len: u32,
    data_len: u32,
    /// The destination port, or the sequence number, of the next probe.
    next: u16,
    ident: u16,
    /// Of TCP: the SYN, without ports and number, and the flow of what it opens.
    syn: Tcp,
    flow: u32,
    probes: Vec<One>,
    start: usize,
    end: usize,
    last_send: i64,
    /// Errors of the machine's own that wait in queues of sockets: whose, and the MTU.
    local: Vec<(usize, u32)>,
    /// What has come and was not read yet, and when.
    heard: VecDeque<(i64, Wake)>,
    timer: u32,
}

impl Traceroute {
    /// What traceroute does without an option.
    fn new() -> Traceroute {
        Traceroute {
            method: Method::Default,
            family: Family::Any,
            target: String::new(),
            target_at: 0,
            packet_len: None,
            first_hop: 1,
            max_hops: 30,
            sim_probes: 16,
            probes_per_hop: 3,
            wait: Span::from_secs(5),
            here: 3_000_000_000,
            near: 10_000_000_000,
            send_wait: Span::ZERO,
            numeric: false,
            dontfrag: false,
            mtudisc: false,
            back: false,
            tos: 0,
            label: 0,
            mark: 0,
            port: 0,
            sport: 0,
            device: None,
            source: None,
            addr: Ipv4Addr::UNSPECIFIED.into(),
            from: Ipv4Addr::UNSPECIFIED.into(),
            bound: 0,
            header_len: 0,
            data_len: 0,
            next: 0,
            ident: 0,
            syn: Tcp::default(),
            flow: NONE,
            probes: Vec::new(),
            start: 0,
            end: 0,
            last_send: 0,
            local: Vec::new(),
            heard: VecDeque::new(),
            timer: 0,
        }
    }
    fn now(cx: &Cx<'_>) -> i64 {
        cx.now().as_ns() / 1000
    }
    fn hop_of(&self, n: usize) -> usize {
        n / self.probes_per_hop as usize
    }

    // Beginning.

    /// Finds the addresses, and what a packet is made of; answers why not, with the exit status.
    fn prepare(&mut self, cx: &mut Cx<'_>) -> Result<(), (String, i32)> {
        let unknown = |name: &str| format!("{name}: Name or service not known\n");
        if let Some((name, at)) = &self.source {
            match cx.resolve(name, self.family) {
                Some(addr) => self.from = addr,
                None => {
                    let text =
                        format!("{}Cannot handle `-s' option with arg `{name}' (argc {at})\n", unknown(name));
                    return Err((text, 2));
                }
            }
        }
        let Some(addr) = cx.resolve(&self.target, self.family) else {
            let name = &self.target;
            let why = match cx.resolve(name, Family::Any) {
                Some(_) if name.parse::<IpAddr>().is_ok() => {
                    format!("{name}: Address family for hostname not supported\n")
                }
                _ => unknown(name),
            };
            let at = self.target_at;
            let text =
                format!("{why}Cannot handle \"host\" cmdline arg `{name}' on position 1 (argc {at})\n");
            return Err((text, 2));
        };
        self.addr = addr;
        if self.source.is_some() && self.from.is_ipv4() != addr.is_ipv4() {
            return Err(("IP version mismatch in addresses specified\n".to_owned(), 2));
        }
        self.header_len = if addr.is_ipv4() { 20 } else { 40 } + self.method.header();
        self.data_len = match self.packet_len.and_then(|len| u32::try_from(len).ok()) {
            None => DEF_DATA_LEN - self.method.header(),
            Some(len) => len.saturating_sub(self.header_len),
        };
        let count = self.max_hops as usize * self.probes_per_hop as usize;
        self.probes = vec![One::default(); count];
        self.start = (self.first_hop as usize - 1) * self.probes_per_hop as usize;
        self.end = count;
        self.next = match (self.method, self.port) {
            (Method::Default, 0) => 33_434,
            (Method::Udp, 0) => 53,
            (Method::Icmp, 0) => 1,
            (Method::Tcp, 0) => 80,
            (_, port) => port as u16,
        };
        match self.method {
            Method::Default | Method::Udp => Ok(()),
            Method::Icmp => {
                self.data_len = self.data_len.max(8);
                self.ident = (cx.app as u16).wrapping_add(1000);
                self.connect(cx)?;
                let pings = &mut cx.net.machines[cx.host as usize].sockets.pings;
                pings.push((self.ident, cx.app, self.bound));
                Ok(())
            }
            Method::Tcp => {
                self.connect(cx)?;
                self.make_syn(cx);
                let to = cx.net.host_of(self.addr).unwrap_or(cx.host);
                self.flow = cx.new_flow(cx.flow_name(), cx.host, to, "tcp");
                cx.net.machines[cx.host as usize].sockets.raws.push((ipproto::TCP, self.addr, cx.app));
                Ok(())
            }
        }
    }
    /// What `setsockopt`, `bind` and `connect` do with a new socket.
    fn connect(&mut self, cx: &mut Cx<'_>) -> Result<(), (String, i32)> {
        let host = &mut cx.net.machines[cx.host as usize].host;
        let error = |call: &str, why: &str| Err((format!("\n{call}: {why}\n"), 1));
        if let Some(device) = &self.device {
            match host.ifindex(device) {
                Some(ifindex) if self.addr.is_ipv4() => self.bound = ifindex,
                Some(_) if host.devices().iter().filter(|d| !d.loopback).count() > 1 => {
                    let why = "over IPv6 routes choose the device; write a route";
                    return Err((format!("\ntraceroute: -i {device} is not simulated: {why}\n"), 2));
                }
                // The machine has no other device.
                Some(_) => {}
                None => return error("setsockopt SO_BINDTODEVICE", "No such device"),
            }
        }
        if self.source.is_some() && !host.has_address(self.from) {
            return error("bind", "Cannot assign requested address");
        }
        match host.connects_by(self.bound, self.addr) {
            Ok(from) if self.source.is_none() => self.from = from,
            Ok(_) => {}
            Err(why) => return error("connect", why.strerror()),
        }
        Ok(())
    }
    /// `tcp_init`.
    fn make_syn(&mut self, cx: &mut Cx<'_>) {
        self.syn = syn(self.addr, self.bound, cx);
        self.data_len = self.syn.header_len();
    }

    // Sending.

    /// Makes probe `n` and hands it over; `false`: traceroute has ended.
    fn send(&mut self, n: usize, cx: &mut Cx<'_>) -> bool {
        let ttl = self.hop_of(n) as u8 + 1;
        let udp = matches!(self.method, Method::Default | Method::Udp);
        if udp && let Err((text, status)) = self.connect(cx) {
            cx.print(&text);
            self.stop(status, cx);
            return false;
        }
        let (app, host) = (cx.app, cx.host);
        let remote = (self.addr, self.next);
        let opened = match self.method {
            Method::Icmp => Ok((u32::from(self.next), L4::Icmp(self.echo()))),
            Method::Tcp => match cx.net.probe_port(host, remote) {
                Some(sport) => {
                    let seq = cx.net.probe_number(host);
                    Ok((sport.into(), L4::Tcp(Tcp { sport, dport: self.next, seq, ..self.syn })))
                }
                None => Err("Address already in use"),
            },
            _ => cx
                .net
                .probe_socket(host, app, remote, self.from, self.sport as u16)
                .map(|(sock, sport)| (sock, L4::Udp(Udp { sport, dport: self.next }))),
        };
        let (key, l4) = match opened {
            Ok(opened) => opened,
            Err(why) => {
                cx.print(&format!("\nbind: {why}\n"));
                self.stop(1, cx);
                return false;
            }
        };
        let probe = Probe {
            from: self.from,
            to: self.addr,
            size: self.method.header() + self.data_len,
            ttl,
            tos: self.tos,
            mark: self.mark,
            label: self.label,
            bound: self.bound,
            flow: self.flow,
            discover: if self.dontfrag { Discover::Probe } else { Discover::Dont },
            l4,
        };
        let now = Traceroute::now(cx);
        match cx.net.send_probe(host, &probe) {
            // The queue of errors says more.
            Ok(()) | Err(Unsent::Error("No route to host")) => {}
            Err(Unsent::TooLong(mtu)) => self.local.push((n, mtu)),
            Err(Unsent::Error(why)) => {
                cx.print(&format!("\nsend: {why}\n"));
                self.stop(1, cx);
                return false;
            }
        }
        let one = &mut self.probes[n];
        (one.sent, one.key) = (Some(now), Some(key));
        if matches!(self.method, Method::Default | Method::Icmp) {
            self.next = self.next.wrapping_add(1);
        }
        self.last_send = now;
        true
    }
    fn echo(&self) -> Icmp {
        Icmp::new(if self.addr.is_ipv4() { 8 } else { 128 }, 0, self.ident, self.next)
    }

    // The loop.

    /// `do_it`, as far as it comes without waiting.
    fn go_on(&mut self, cx: &mut Cx<'_>) {
        while self.start < self.end {
            let now = Traceroute::now(cx);
            let Some(next_time) = self.pass(now, cx) else {
                if cx.result.ended.is_some() {
                    return;
                }
                continue;
            };
            if !self.local.is_empty() {
                let local = std::mem::take(&mut self.local);
                local.into_iter().for_each(|(n, mtu)| self.too_long(n, mtu, cx));
                continue;
            }
            if next_time > now {
                // Without a socket to wait for the time is asked for again and again.
                let us = next_time - now;
                let waits =
                    if self.has_sockets() { crate::wake::poll((us + 999) / 1000) } else { Span::from_us(us) };
                cx.net.set_timer(self.timer, cx.now() + waits);
                return;
            }
        }
        cx.print("\n");
        self.stop(0, cx);
    }
    fn has_sockets(&self) -> bool {
        matches!(self.method, Method::Icmp | Method::Tcp) || self.probes.iter().any(|p| p.key.is_some())
    }
    /// Prints and sends what can be; answers when something is to be done without an answer, where there is something to wait for.
    fn pass(&mut self, now: i64, cx: &mut Cx<'_>) -> Option<i64> {
        let mut next_time = None;
        let mut under_way = 0;
        let mut n = self.start;
        while n < self.end {
            let one = &self.probes[n];
            if n == self.start
                && !one.done
                && let Some(sent) = one.sent
            {
                let expires = sent + self.timeout(n);
                if expires > now {
                    next_time = Some(expires);
                } else {
                    self.done(n, cx);
                    self.check_expired(n);
                }
            }
            if self.probes[n].done {
                if n == self.start {
                    self.print_probe(n, cx);
                    self.start += 1;
                }
                if self.probes[n].last {
                    self.end = (self.hop_of(n) + 1) * self.probes_per_hop as usize;
                }
                n += 1;
                continue;
            }
            if self.probes[n].sent.is_none() {
                let next = self.last_send + self.send_wait.as_ns() / 1000;
                if self.send_wait > Span::ZERO && next > now {
                    next_time = Some(next);
                    break;
                }
                if !self.send(n, cx) {
                    return None;
                }
            }
            if next_time.is_none() {
                next_time = Some(self.probes[n].sent.unwrap_or(now) + self.timeout(n));
            }
            under_way += 1;
            if under_way >= self.sim_probes {
                break;
            }
            n += 1;
        }
        next_time
    }
    /// `get_timeout`, microseconds: by what has answered from the same hop, or from one behind it.
    fn timeout(&self, n: usize) -> i64 {
        let most = self.wait.as_ns() / 1000;
        // A millisecond more, as times are not exact.
        let scaled = |took: i64, factor: i64| {
            let us = i128::from(took + 1000) * i128::from(factor) / 1_000_000_000;
            i64::try_from(us).unwrap_or(i64::MAX).min(most)
        };
        let per_hop = self.probes_per_hop as usize;
        if self.here != 0 {
            let first = n - n % per_hop;
            if let Some(took) = self.probes[first..first + per_hop].iter().find_map(One::took) {
                return scaled(took, self.here);
            }
        }
        if self.near != 0 {
            let behind = self.probes[n + 1..].iter().take_while(|p| p.sent.is_some());
            if let Some(took) = behind.into_iter().find_map(One::took) {
                return scaled(took, self.near);
            }
        }
        most
    }
    /// `check_expired`: where the last machine answers some of its probes alone, with an error, the first answer belongs here.
    fn check_expired(&mut self, n: usize) {
        let per_hop = self.probes_per_hop as usize;
        let first = n - n % per_hop;
        if self.probes[first..n].iter().any(|p| !p.done || !p.last) {
            return;
        }
        let before_last = first < n;
        let sent = self.probes[n + 1..].iter().take_while(|p| p.sent.is_some());
        let Some(at) = sent.into_iter().position(|p| p.done).map(|i| n + 1 + i) else { return };
        let found = &self.probes[at];
        if !found.last || found.said.is_empty() {
            return;
        }
        let same_hop = before_last || n % per_hop + (at - n) < per_hop;
        let same_machine = || self.probes[..n].iter().any(|p| p.from.is_some() && p.from == found.from);
        if !same_hop && !same_machine() {
            if found.ttl == 0 {
                return;
            }
            let mut back = answers::hops_of(found.ttl);
            for (i, p) in self.probes[..n].iter().enumerate().rev() {
                let hops = answers::hops_of(p.ttl);
                if p.done && !p.last && p.ttl != 0 && hops < back {
                    back = back - hops + self.hop_of(i) + 1;
                    break;
                }
            }
            if back > self.hop_of(n) + 1 {
                return;
            }
        }
        self.probes[n] = std::mem::take(&mut self.probes[at]);
        // Its place counts as sent, so that no second probe goes for it.
        self.probes[at].sent = Some(1_000_000);
    }
    /// `probe_done`.
    fn done(&mut self, n: usize, cx: &mut Cx<'_>) {
        let one = &mut self.probes[n];
        one.done = true;
        if let Some(key) = one.key.take()
            && matches!(self.method, Method::Default | Method::Udp)
        {
            cx.net.udp_close(key);
        }
    }

    fn stop(&mut self, status: i32, cx: &mut Cx<'_>) {
        for n in 0..self.probes.len() {
            if self.probes[n].key.is_some() {
                self.done(n, cx);
            }
        }
        let table = &mut cx.net.machines[cx.host as usize].sockets;
        table.pings.retain(|&(_, app, _)| app != cx.app);
        table.raws.retain(|raw| raw.2 != cx.app);
        cx.net.wakes.stop_timer(self.timer);
        cx.exit(status);
    }
}

impl Program for Traceroute {
    fn intent(&self) -> Intent {
        Intent::call(&self.target, None, None).over(self.family)
    }
    fn needs_all(&self) -> bool {
        !self.numeric || self.method == Method::Tcp
    }
    fn largest(&self) -> u32 {
        let len = self.packet_len.and_then(|len| u32::try_from(len).ok());
        len.unwrap_or(DEF_DATA_LEN).min(65_000)
    }
    fn start(&mut self, cx: &mut Cx<'_>) {
        if let Err((text, status)) = self.prepare(cx) {
            cx.print(&text);
            cx.exit(status);
            return;
        }
        self.timer = cx.net.wakes.new_timer(cx.app, POLL);
        let (target, addr, hops, len) =
            (&self.target, self.addr, self.max_hops, self.header_len + self.data_len);
        cx.print(&format!("traceroute to {target} ({addr}), {hops} hops max, {len} byte packets"));
        self.last_send = i64::MIN / 2;
        self.go_on(cx);
    }
    fn wake(&mut self, wake: Wake, cx: &mut Cx<'_>) {
        if let Wake::Echo { from, .. }
        | Wake::EchoError { from, .. }
        | Wake::Segment { from, .. }
        | Wake::Told { from, .. } = wake
            && self.device.is_some()
            && cx.net.machines[cx.host as usize].host.has_address(from)
        {
            // What this machine says comes by lo, which a socket that is bound to another device does not hear.
            return;
        }
        if !matches!(wake, Wake::Timer(_)) {
            // The process comes to its turn when all is heard that comes at this instant.
            self.heard.push_back((Traceroute::now(cx), wake));
            let now = cx.now();
            return cx.net.set_timer(self.timer, now);
        }
        // One by one from a socket that hears all; each of the others has one of them.
        let raw = matches!(self.method, Method::Icmp | Method::Tcp);
        loop {
            while let Some((at, wake)) = self.heard.pop_front() {
                self.hear(wake, at, cx);
                if raw {
                    break;
                }
            }
            self.go_on(cx);
            if cx.result.ended.is_some() || self.heard.is_empty() {
                break;
            }
        }
    }
}

/// A SYN for `addr`, without ports and number, with the options that the machine's settings name; `bound`: the device's number, or 0.
pub(crate) fn syn(addr: IpAddr, bound: u32, cx: &mut Cx<'_>) -> Tcp {
    let now = cx.now();
    let machine = &mut cx.net.machines[cx.host as usize];
    let settings = machine.host.tcp_settings();
    let mtu = machine.host.mtu_by(bound, addr, now).filter(|mtu| *mtu >= 576).unwrap_or(576);
    let mss = mtu - if addr.is_ipv4() { 40 } else { 60 };
    let mut flags = TcpFlags::SYN;
    if settings.ecn == 1 {
        flags = flags.with(TcpFlags::ECE).with(TcpFlags::CWR);
    }
    let timestamps = settings.timestamps.then(|| (cx.net.probe_number(cx.host), 0));
    Tcp {
        flags,
        window: (4 * mss) as u16,
        mss: Some(mss as u16),
        sack_permitted: settings.sack,
        wscale: settings.window_scaling.then_some(2),
        timestamps,
        ..Tcp::default()
    }
}

impl Traceroute {
    /// What came at `at`.
    fn hear(&mut self, wake: Wake, at: i64, cx: &mut Cx<'_>) {
        match wake {
            Wake::Echo { seq, ttl, from, .. } if from == self.addr => {
                let Some(n) = self.find(seq.into()) else { return };
                self.answered(n, (from, ttl), at, cx);
            }
            //= linux v6.12 net/ipv4/raw.c raw_err: of a redirect the socket is not told
            Wake::EchoError { ty: 5, from, .. } if from.is_ipv4() => {}
            Wake::EchoError { from, ttl, ty, code, seq, info } => {
                let Some(n) = self.find(seq.into()) else { return };
                self.told(n, (from, ttl), (ty, code, info), at, cx);
            }
            Wake::Datagram { sock, from, .. } if from.0 == self.addr => {
                let Some(n) = self.find(sock) else { return };
                self.answered(n, (from.0, 0), at, cx);
            }
            Wake::Segment { from, ttl, ports } if ports.0 == self.next => {
                let Some(n) = self.find(ports.1.into()) else { return };
                self.answered(n, (from, ttl), at, cx);
            }
            Wake::Told { sock, from, ttl, ty, code, info, ports } => {
                let key = if sock == NONE { ports.0.into() } else { sock };
                let Some(n) = self.find(key) else { return };
                self.told(n, (from, ttl), (ty, code, info), at, cx);
            }
            _ => {}
        }
    }
}
