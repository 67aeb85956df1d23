//! `penstock send`: a flow from a real socket.

use super::{Header, clock, stream::stream, wait_until};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeSpec, TimeValLike};
use penstock_measure::Distribution;
use penstock_model::traffic::{Dist, Load};
use penstock_model::{Rng, Span};
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;

/// Where to send.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Goal {
    /// Address or name.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Datagrams; otherwise TCP.
    pub udp: bool,
}

/// How to send.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SendOptions {
    /// What.
    pub load: Load,
    /// The moment that times are counted from, ns of the real-time clock; 0: now.
    pub epoch_ns: i64,
    /// What is sent earlier than this from the epoch is not counted.
    pub warmup: Span,
    /// When to stop, from the epoch; `None`: when all is sent.
    pub until: Option<Span>,
    /// When what comes back is no longer waited for, from the epoch; `None`: a second behind the last datagram.
    pub end: Option<Span>,
    /// Distance of the samples of TCP's state; zero: none.
    pub interval: Span,
    /// Seed and name of the stream that sizes and gaps are drawn from.
    pub seed: u64,
    /// The name.
    pub stream: String,
    /// ToS byte.
    pub tos: u8,
    /// Firewall mark (needs `CAP_NET_ADMIN`); 0: none.
    pub mark: u32,
    /// Congestion control; `None`: the kernel's.
    pub cc: Option<String>,
    /// Maximum segment size, bytes.
    pub mss: Option<u32>,
    /// Send buffer, bytes.
    pub sndbuf: Option<usize>,
    /// ECN; `None`: as the machine has it. Needs the right to set `net.ipv4.tcp_ecn`, which is put back behind the handshake's begin.
    pub ecn: Option<bool>,
    /// Selective acknowledgements, by `net.ipv4.tcp_sack` in the same way.
    pub sack: Option<bool>,
    /// Datagrams come back from `penstock echo`: measure round trips.
    pub echo: bool,
    /// Greatest error of the sender's clock, parts per 1,000,000, up to 100,000, fast or slow; the error is drawn.
    pub drift_ppm: u32,
    /// By how much each packet departs early or late at most.
    pub jitter: Span,
    /// Keep each datagram's time.
    pub each: bool,
}

/// TCP's state at a moment.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct SendSample {
    /// Seconds from the epoch.
    pub time_s: f64,
    /// Congestion window, packets.
    pub cwnd_packets: u32,
    /// Slow-start threshold, packets.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ssthresh_packets: Option<u32>,
    /// Smoothed round trip.
    pub srtt_ms: f64,
}

/// What a sender says of itself.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SendReport {
    /// First packet, seconds from the epoch.
    pub start_s: f64,
    /// When all was sent (and TCP's peer had taken it); absent when time ran out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end_s: Option<f64>,
    /// Packets: datagrams, or segments with data, retransmits included.
    pub sent_packets: u64,
    /// Payload bytes.
    pub sent_bytes: u64,
    /// Why there was no connection.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub failed: Option<String>,
    /// The number of the first datagram that is counted.
    #[serde(default)]
    pub first: u64,
    /// Segments retransmitted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retransmitted_packets: Option<u64>,
    /// How much later than its time each packet was handed to the kernel, µs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub late_us: Option<Distribution>,
    /// Round trips through `penstock echo`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt_ms: Option<Distribution>,
    /// When each answer came, ns from the epoch, and how long it took, ns, where each is kept.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub round_trips: Vec<(i64, i64)>,
    /// How long each page took, from the opening of its connection to its end.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub transfers_ms: Vec<f64>,
    /// Its port.
    #[serde(default)]
    pub port: u16,
    /// When each datagram was sent, ns from the epoch, and its payload bytes, where each is kept.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub packets: Vec<(i64, u32)>,
    /// TCP over time.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub samples: Vec<SendSample>,
}

/// Sends.
///
/// # Errors
/// A sentence: no such host, nobody listens, an option that the kernel refuses.
pub fn send(goal: &Goal, options: &SendOptions) -> Result<SendReport, String> {
    let _ = nix::sys::prctl::set_timerslack(1);
    let mut options = options.clone();
    if options.epoch_ns == 0 {
        options.epoch_ns = clock();
    }
    if goal.udp { datagrams(goal, &options) } else { stream(goal, &options) }
}

/// How long a sender of probes keeps its port behind the run's end.
const HOLD: std::time::Duration = std::time::Duration::from_millis(500);

/// Where a goal is, by the first of its addresses.
pub(super) fn address(goal: &Goal) -> Result<SocketAddr, String> {
    let to = (goal.host.as_str(), goal.port);
    let found = to.to_socket_addrs().map_err(|e| match goal.host.rsplit_once(':') {
        Some((host, port)) if port.chars().all(|c| c.is_ascii_digit()) && !port.is_empty() => {
            format!("{}: {e}; the port is --port: write {host} --port {port}, from 1 to 65535", goal.host)
        }
        _ => format!("{}: {e}", goal.host),
    });
    let found = found?.next();
    found.ok_or_else(|| format!("{}: it has no address", goal.host))
}

/// Options that both transports have.
pub(super) fn mark(fd: &impl AsFd, to: SocketAddr, options: &SendOptions) -> Result<(), String> {
    if options.tos != 0 {
        let tos = i32::from(options.tos);
        let set = match to {
            SocketAddr::V4(_) => setsockopt(fd, sockopt::Ipv4Tos, &tos),
            SocketAddr::V6(_) => setsockopt(fd, sockopt::Ipv6TClass, &tos),
        };
        set.map_err(|e| format!("tos {}: {e}", options.tos))?;
    }
    if options.mark != 0 {
        setsockopt(fd, sockopt::Mark, &options.mark)
            .map_err(|e| format!("mark {}: {e} (it needs CAP_NET_ADMIN)", options.mark))?;
    }
    Ok(())
}

pub(super) fn seconds(options: &SendOptions, moment: i64) -> f64 {
    (moment - options.epoch_ns) as f64 / 1e9
}

pub(super) fn deadline(options: &SendOptions) -> i64 {
    options.until.map_or(i64::MAX, |until| options.epoch_ns + until.as_ns())
}

/// When it waits for nothing any more, ns of the real-time clock.
pub(super) fn last(options: &SendOptions) -> i64 {
    options.end.map_or_else(|| deadline(options), |end| options.epoch_ns + end.as_ns())
}

/// Since when a sender counts, ns of the real-time clock.
pub(super) fn since(options: &SendOptions) -> i64 {
    options.epoch_ns + options.warmup.as_ns()
}

/// When the packets of a flow are due by the sender's clock, ns from its start, and their payload bytes. The clock's drift adds up,
/// the jitter of one packet does not.
pub(super) fn due(options: &SendOptions) -> impl Iterator<Item = (i64, u32)> + '_ {
    let rng = Rng::named(options.seed, &format!("flow:{}", options.stream));
    let mut dice = Rng::named(options.seed, &format!("flow:{}/clock", options.stream));
    let width = options.drift_ppm * 2000;
    let drift = i128::from(dice.below(width + 1)) - i128::from(width / 2);
    let jitter = options.jitter;
    let spread = Dist::Uniform { from: Span::ZERO, to: jitter * 2 };
    options.load.packets(rng).enumerate().map(move |(n, (offset, size))| {
        let mut due = offset + (i128::from(offset) * drift / 1_000_000_000) as i64;
        // The first goes at once.
        if jitter > Span::ZERO && n > 0 {
            due += (spread.draw(&mut dice) - jitter).as_ns();
        }
        (due, size)
    })
}

fn datagrams(goal: &Goal, options: &SendOptions) -> Result<SendReport, String> {
    let to = format!("{}:{}", goal.host, goal.port);
    let address = address(goal)?;
    let any: SocketAddr = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(any).map_err(|e| format!("socket: {e}"))?;
    socket.connect(address).map_err(|e| format!("{to}: {e}"))?;
    mark(&socket, address, options)?;
    socket.set_nonblocking(true).map_err(|e| format!("socket: {e}"))?;
    let start = clock();
    let end = deadline(options);
    let port = socket.local_addr().map_or(0, |a| a.port());
    let mut report = SendReport { start_s: seconds(options, start), port, ..SendReport::default() };
    let mut datagram = vec![0u8; 65_507];
    let mut late = Vec::new();
    let mut rtts: Vec<(i64, i64)> = Vec::new();
    let mut finished = true;
    for (number, (offset, size)) in due(options).enumerate() {
        let due = start + offset;
        // One that had to wait for room in its socket is behind its own times.
        if due.max(clock()) >= end {
            finished = false;
            break;
        }
        if options.echo {
            answers(&socket, due, options, &mut rtts);
        }
        wait_until(due);
        let size = size as usize;
        let called = clock();
        let mut at = called;
        let sent = loop {
            // A datagram's time is that at which its socket takes it, not that at which a program begins to wait for room.
            at = clock().max(at);
            Header { number: number as u64, sent_ns: at }.write(&mut datagram[..size]);
            let sent = socket.send(&datagram[..size]);
            let full = matches!(&sent, Err(e) if e.kind() == ErrorKind::WouldBlock);
            if !full || options.echo {
                break sent;
            }
            // Half of the buffer is to be free before there is a next try.
            let left = end.saturating_sub(clock()).max(0);
            let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
            if matches!(ppoll(&mut polled, Some(TimeSpec::nanoseconds(left)), None), Ok(0)) {
                break sent;
            }
        };
        match sent {
            Ok(_) => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock && !options.echo => {
                finished = false;
                break;
            }
            // Whoever was told that nobody listens yet sends on: it is what datagrams are.
            Err(e) if matches!(e.kind(), ErrorKind::ConnectionRefused | ErrorKind::WouldBlock) => {}
            Err(e) if e.raw_os_error() == Some(nix::libc::ENOBUFS) => {}
            Err(e) => return Err(format!("{to}: {e}")),
        }
        if options.each {
            report.packets.push((at - options.epoch_ns, size as u32));
        }
        if at >= since(options) {
            if report.sent_packets == 0 {
                report.first = number as u64;
            }
            report.sent_packets += 1;
            report.sent_bytes += size as u64;
            late.push((called - due) as f64 / 1e3);
        }
    }
    if options.echo {
        let last = clock() + 1_000_000_000;
        let until = options.end.map_or(last, |end| (options.epoch_ns + end.as_ns()).min(last));
        answers(&socket, until, options, &mut rtts);
    }
    report.end_s = finished.then(|| seconds(options, clock()));
    // What comes back behind the run's end finds its port open, and is not told otherwise.
    if options.echo && options.end.is_some() {
        std::thread::sleep(HOLD);
    }
    report.late_us = Distribution::of(&mut late);
    report.rtt_ms =
        Distribution::of(&mut rtts.iter().map(|(_, rtt)| *rtt as f64 / 1e6).collect::<Vec<f64>>());
    if options.each {
        report.round_trips = rtts;
    }
    Ok(report)
}

/// Takes answers until a moment.
fn answers(socket: &UdpSocket, until: i64, options: &SendOptions, rtts: &mut Vec<(i64, i64)>) {
    let mut buffer = [0u8; 2048];
    loop {
        while let Ok(len) = socket.recv(&mut buffer) {
            let now = clock();
            if let Some(head) = Header::read(&buffer[..len]).filter(|_| now >= since(options)) {
                rtts.push((now - options.epoch_ns, now - head.sent_ns));
            }
        }
        // The last of the waiting is done by who sends, to the microsecond.
        let left = until - clock() - if super::exact() { 0 } else { 100_000 };
        if left <= 0 {
            return;
        }
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        if ppoll(&mut polled, Some(TimeSpec::nanoseconds(left)), None).is_err() {
            return;
        }
    }
}
