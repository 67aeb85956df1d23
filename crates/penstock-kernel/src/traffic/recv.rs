//! `penstock recv`: takes what `penstock send` sends, and measures it.

use super::info::info;
use super::stream::set_cc;
use super::{Header, clock};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockType, SockaddrIn6, SockaddrStorage, bind,
    listen, recvmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike};
use penstock_measure::Distribution;
use penstock_model::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{ErrorKind, IoSliceMut, Read};
use std::net::{Ipv6Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

/// How to receive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecvOptions {
    /// Port.
    pub port: u16,
    /// Datagrams; otherwise TCP.
    pub udp: bool,
    /// The moment that times are counted from, ns of the real-time clock; 0: now.
    pub epoch_ns: i64,
    /// What arrives earlier than this from the epoch is taken and not counted, nor are datagrams that were sent earlier.
    pub warmup: Span,
    /// When to stop, from the epoch; `None`: with the first connection's end, or never.
    pub until: Option<Span>,
    /// Distance of the samples; zero: none.
    pub interval: Span,
    /// Receive buffer, bytes.
    pub rcvbuf: Option<usize>,
    /// Congestion control, for what of it is the receiver's (DCTCP's echo of marks); `None`: the kernel's.
    pub cc: Option<String>,
    /// Maximum segment size to announce, bytes.
    pub mss: Option<u32>,
    /// Stop when the first connection has ended.
    pub once: bool,
    /// Keep the port so long after time is up, and count nothing more.
    pub hold: Span,
    /// Send every datagram back.
    pub echo: bool,
    /// Measure each sender by itself, and keep the arrival of each datagram.
    pub each: bool,
}

/// What arrived in an interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RecvSample {
    /// Its end, seconds from the epoch.
    pub time_s: f64,
    /// Payload bytes.
    pub bytes: u64,
    /// Datagrams; for TCP absent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub packets: Option<u64>,
    /// Mean one-way delay of its datagrams.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owd_ms: Option<f64>,
}

/// What a receiver saw.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct RecvReport {
    /// Datagrams, or segments with data.
    pub received_packets: u64,
    /// Payload bytes.
    pub bytes: u64,
    /// Datagrams with ECN's congestion mark.
    pub marked_packets: u64,
    /// Datagrams that came after a later one.
    pub reordered_packets: u64,
    /// The greatest number of a datagram of ours.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub highest: Option<u64>,
    /// First arrival, seconds from the epoch.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub first_s: Option<f64>,
    /// Last arrival.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub last_s: Option<f64>,
    /// One-way delays, from the sender's clock to the kernel's stamp here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owd_ms: Option<Distribution>,
    /// Interarrival jitter (RFC 3550 section 6.4.1).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jitter_ms: Option<f64>,
    /// Over time.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub samples: Vec<RecvSample>,
    /// Number and arrival of each datagram, ns from the epoch, in the order they came, where each is kept.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub arrivals: Vec<(u64, i64)>,
    /// The senders by their ports, in the order they were first heard of, where each is measured by itself.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub senders: Vec<(u16, RecvReport)>,
}

/// Receives.
///
/// # Errors
/// A sentence: the port is taken, an option that the kernel refuses.
pub fn recv(options: &RecvOptions) -> Result<RecvReport, String> {
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut options = options.clone();
    if options.epoch_ns == 0 {
        options.epoch_ns = clock();
    }
    let step = options.interval.as_ns();
    let watch = Watch { next: clock() + step, step, options: &options, ..Watch::new(&options) };
    let (report, held) = if options.udp { datagrams(watch) } else { stream(watch) }?;
    std::thread::sleep(std::time::Duration::from_nanos(options.hold.as_ns().max(0) as u64));
    drop(held);
    Ok(report)
}

/// What is counted of one sender, or of all together.
#[derive(Default)]
struct Account {
    report: RecvReport,
    owds: Vec<f64>,
    jitter: f64,
    before: Option<f64>,
    /// Since the last sample.
    bytes: u64,
    packets: u64,
    owd_sum: f64,
}

impl Account {
    fn sample(&mut self, time_s: f64, udp: bool) {
        let owd_ms =
            (self.packets > 0 && udp && self.owd_sum > 0.0).then(|| self.owd_sum / self.packets as f64);
        let packets = udp.then_some(self.packets);
        self.report.samples.push(RecvSample { time_s, bytes: self.bytes, packets, owd_ms });
        (self.bytes, self.packets, self.owd_sum) = (0, 0, 0.0);
    }
    /// Payload has arrived, this many seconds from the epoch.
    fn arrived(&mut self, bytes: u64, time_s: f64) {
        self.report.first_s.get_or_insert(time_s);
        self.report.last_s = Some(time_s);
        self.report.bytes += bytes;
    }
    /// A datagram of ours took so long, ms.
    fn datagram(&mut self, head: Header, owd: f64) {
        let highest = self.report.highest.map_or(head.number, |h| h.max(head.number));
        self.report.reordered_packets += u64::from(head.number < highest);
        self.report.highest = Some(highest);
        self.owds.push(owd);
        if let Some(last) = self.before.replace(owd) {
            self.jitter += ((owd - last).abs() - self.jitter) / 16.0;
        }
    }
    fn finish(mut self) -> RecvReport {
        self.report.owd_ms = Distribution::of(&mut self.owds);
        self.report.jitter_ms = self.before.map(|_| self.jitter);
        self.report
    }
}

/// The report as it grows.
struct Watch<'a> {
    options: &'a RecvOptions,
    all: Account,
    /// Each sender by itself, and where its port's latest stands.
    senders: Vec<(u16, Account)>,
    by_port: BTreeMap<u16, usize>,
    step: i64,
    next: i64,
    /// Since when all is counted, ns of the real-time clock.
    since: i64,
}

impl<'a> Watch<'a> {
    fn new(options: &'a RecvOptions) -> Watch<'a> {
        Watch {
            options,
            all: Account::default(),
            senders: Vec::new(),
            by_port: BTreeMap::new(),
            step: 0,
            next: 0,
            since: options.epoch_ns + options.warmup.as_ns(),
        }
    }
    fn time_s(&self, moment: i64) -> f64 {
        (moment - self.options.epoch_ns) as f64 / 1e9
    }
    /// A sender is heard of for the first time, or by a connection of its own.
    fn greet(&mut self, port: u16) {
        if self.options.each {
            self.by_port.insert(port, self.senders.len());
            self.senders.push((port, Account::default()));
        }
    }
    /// Does this to the account of all and to that of one sender.
    fn count(&mut self, port: u16, what: impl Fn(&mut Account)) {
        what(&mut self.all);
        if let Some(at) = self.by_port.get(&port) {
            what(&mut self.senders[*at].1);
        }
    }
    fn arrived(&mut self, port: u16, bytes: u64, moment: i64) {
        self.count(port, |account| account.bytes += bytes);
        if moment >= self.since {
            let time_s = self.time_s(moment);
            self.count(port, |account| account.arrived(bytes, time_s));
        }
    }
    fn look(&mut self, udp: bool) {
        let now = clock();
        if self.step <= 0 || now < self.next {
            return;
        }
        let time_s = self.time_s(now);
        self.all.sample(time_s, udp);
        self.senders.iter_mut().for_each(|(_, account)| account.sample(time_s, udp));
        self.next = now + self.step;
    }
    /// How long to wait at most, ns; `None` when time is up.
    fn patience(&self) -> Option<i64> {
        let now = clock();
        let end = self.options.until.map_or(i64::MAX, |until| self.options.epoch_ns + until.as_ns());
        if now >= end {
            return None;
        }
        let mut next = if self.step > 0 { self.next.min(end) } else { end };
        if self.since > now {
            next = next.min(self.since);
        }
        Some((next - now).clamp(1_000, 1_000_000_000))
    }
    fn finish(self) -> RecvReport {
        let mut report = self.all.finish();
        report.senders = self.senders.into_iter().map(|(port, one)| (port, one.finish())).collect();
        report
    }
}

fn wait(fd: &impl AsFd, ns: i64) {
    let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    // An interrupted wait is as good as one that ended.
    let _ = ppoll(&mut polled, Some(TimeSpec::nanoseconds(ns)), None);
}

fn say(what: &str, e: nix::Error) -> String {
    format!("{what}: {e}")
}

/// A socket on a port of every address of both families, or of IPv4 where the kernel has no other.
fn bound(kind: SockType, options: &RecvOptions) -> Result<OwnedFd, String> {
    let taken = |e: nix::Error| format!("port {}: {e}", options.port);
    let Ok(fd) = socket(AddressFamily::Inet6, kind, SockFlag::SOCK_CLOEXEC, None) else {
        let any = ("0.0.0.0", options.port);
        let taken = |e: std::io::Error| format!("port {}: {e}", options.port);
        return match kind {
            SockType::Datagram => UdpSocket::bind(any).map(OwnedFd::from).map_err(taken),
            _ => TcpListener::bind(any).map(OwnedFd::from).map_err(taken),
        };
    };
    setsockopt(&fd, sockopt::Ipv6V6Only, &false).map_err(|e| say("both families", e))?;
    if kind == SockType::Stream {
        setsockopt(&fd, sockopt::ReuseAddr, &true).map_err(|e| say("socket", e))?;
    }
    let any = std::net::SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, options.port, 0, 0);
    bind(fd.as_raw_fd(), &SockaddrIn6::from(any)).map_err(taken)?;
    Ok(fd)
}

fn port_of(from: Option<SockaddrStorage>) -> u16 {
    let from = from.as_ref();
    let four = from.and_then(|a| a.as_sockaddr_in()).map(|a| a.port());
    four.or_else(|| from.and_then(|a| a.as_sockaddr_in6()).map(|a| a.port())).unwrap_or(0)
}

fn datagrams(mut watch: Watch<'_>) -> Result<(RecvReport, OwnedFd), String> {
    let options = watch.options;
    let socket = UdpSocket::from(bound(SockType::Datagram, options)?);
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(|e| say("timestamps", e))?;
    setsockopt(&socket, sockopt::IpRecvTos, &true).map_err(|e| say("tos", e))?;
    // Of no use where the socket is one of IPv4.
    let _ = setsockopt(&socket, sockopt::Ipv6RecvTClass, &true);
    if let Some(bytes) = options.rcvbuf {
        // The kernel doubles what it is told (sk_setsockopt), and an experiment says what the buffer has.
        setsockopt(&socket, sockopt::RcvBuf, &(bytes / 2)).map_err(|e| say("rcvbuf", e))?;
    }
    let mut buffer = vec![0u8; 65_536];
    let mut control = nix::cmsg_space!(TimeSpec, u8, i32, [u8; 16]);
    while let Some(ns) = watch.patience() {
        wait(&socket, ns);
        loop {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let flags = MsgFlags::MSG_DONTWAIT;
            let Ok(got) =
                recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut control), flags)
            else {
                break;
            };
            let (mut stamp, mut tos) = (None, 0u8);
            for message in got.cmsgs().map_err(|e| say("control message", e))? {
                match message {
                    ControlMessageOwned::ScmTimestampns(t) => stamp = Some(t.num_nanoseconds()),
                    ControlMessageOwned::Ipv4Tos(byte) => tos = byte,
                    ControlMessageOwned::Ipv6TClass(class) => tos = class as u8,
                    _ => {}
                }
            }
            let (len, from) = (got.bytes, got.address);
            let port = port_of(from);
            if options.echo
                && let Some(from) = from
            {
                // An answer that cannot be sent is one that is lost.
                let _ = nix::sys::socket::sendto(socket.as_raw_fd(), &buffer[..len], &from, flags);
            }
            let moment = stamp.unwrap_or_else(clock);
            if !watch.by_port.contains_key(&port) {
                watch.greet(port);
            }
            watch.arrived(port, len as u64, moment);
            let head = Header::read(&buffer[..len]);
            let counts = head.map_or(moment, |h| h.sent_ns) >= watch.since;
            let marked = u64::from(tos & 3 == 3 && moment >= watch.since);
            watch.count(port, |account| {
                account.packets += 1;
                account.report.received_packets += u64::from(counts);
                account.report.marked_packets += marked;
            });
            let Some(head) = head else { continue };
            let owd = (moment - head.sent_ns) as f64 / 1e6;
            watch.count(port, |account| account.owd_sum += owd);
            if options.each {
                let at = (head.number, moment - options.epoch_ns);
                watch.count(port, |account| account.report.arrivals.push(at));
            }
            if moment >= watch.since {
                watch.count(port, |account| account.datagram(head, owd));
            }
        }
        watch.look(true);
    }
    Ok((watch.finish(), socket.into()))
}

/// A connection that is open.
struct Open {
    socket: TcpStream,
    port: u16,
    /// Segments with data that it had received when counting began.
    before: u64,
}

impl Open {
    /// Segments with data that it has received since counting began.
    fn segments(&self) -> u64 {
        info(&self.socket).map_or(0, |i| i.data_in.saturating_sub(self.before))
    }
}

fn stream(mut watch: Watch<'_>) -> Result<(RecvReport, OwnedFd), String> {
    let options = watch.options;
    let fd = bound(SockType::Stream, options)?;
    if let Some(bytes) = options.rcvbuf {
        // The kernel doubles what it is told (sk_setsockopt), and an experiment says what the buffer has.
        setsockopt(&fd, sockopt::RcvBuf, &(bytes / 2)).map_err(|e| say("rcvbuf", e))?;
    }
    set_cc(&fd, options.cc.as_ref())?;
    if let Some(mss) = options.mss {
        setsockopt(&fd, sockopt::TcpMaxSeg, &mss).map_err(|e| say("mss", e))?;
    }
    let backlog = nix::sys::socket::Backlog::new(128).map_err(|e| say("listen", e))?;
    listen(&fd, backlog).map_err(|e| say("listen", e))?;
    let listener = TcpListener::from(fd);
    listener.set_nonblocking(true).map_err(|e| format!("socket: {e}"))?;
    let mut open: Vec<Open> = Vec::new();
    let mut buffer = vec![0u8; 262_144];
    let (mut ended, mut warm) = (false, options.warmup == Span::ZERO);
    while let Some(ns) = watch.patience() {
        {
            let mut polled = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            polled.extend(open.iter().map(|c| PollFd::new(c.socket.as_fd(), PollFlags::POLLIN)));
            let _ = ppoll(&mut polled, Some(TimeSpec::nanoseconds(ns)), None);
        }
        if !warm && clock() >= watch.since {
            open.iter_mut().for_each(|c| c.before = c.segments());
            warm = true;
        }
        while let Ok((socket, peer)) = listener.accept() {
            socket.set_nonblocking(true).map_err(|e| format!("socket: {e}"))?;
            watch.greet(peer.port());
            open.push(Open { socket, port: peer.port(), before: 0 });
        }
        let mut n = 0;
        while n < open.len() {
            let port = open[n].port;
            match open[n].socket.read(&mut buffer) {
                Ok(0) => {
                    let segments = if warm { open[n].segments() } else { 0 };
                    watch.count(port, |account| account.report.received_packets += segments);
                    open.remove(n);
                    ended = true;
                }
                Ok(len) => watch.arrived(port, len as u64, clock()),
                Err(e) if e.kind() == ErrorKind::WouldBlock => n += 1,
                Err(_) => {
                    open.remove(n);
                    ended = true;
                }
            }
        }
        watch.look(false);
        if ended && open.is_empty() && (options.once || options.until.is_none()) {
            break;
        }
    }
    for connection in &open {
        let segments = connection.segments();
        watch.count(connection.port, |account| account.report.received_packets += segments);
    }
    Ok((watch.finish(), listener.into()))
}
