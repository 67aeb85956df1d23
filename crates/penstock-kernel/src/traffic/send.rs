//! `penstock send`: a flow from a real socket.

use super::ss::{self, Info};
use super::{Header, clock, wait_until};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::{TimeSpec, TimeValLike};
use penstock_measure::Distribution;
use penstock_model::traffic::Load;
use penstock_model::{Rng, Span};
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

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
    /// When to stop, from the epoch; `None`: when all is sent.
    pub until: Option<Span>,
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
    /// Datagrams come back from `penstock echo`: measure round trips.
    pub echo: bool,
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
    /// Segments retransmitted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retransmitted_packets: Option<u64>,
    /// How much later than its time each packet was handed to the kernel, µs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub late_us: Option<Distribution>,
    /// Round trips through `penstock echo`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt_ms: Option<Distribution>,
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

/// Options that both transports have.
fn mark(fd: &impl AsFd, options: &SendOptions) -> Result<(), String> {
    if options.tos != 0 {
        setsockopt(fd, sockopt::Ipv4Tos, &i32::from(options.tos))
            .map_err(|e| format!("tos {}: {e}", options.tos))?;
    }
    if options.mark != 0 {
        setsockopt(fd, sockopt::Mark, &options.mark)
            .map_err(|e| format!("mark {}: {e} (it needs CAP_NET_ADMIN)", options.mark))?;
    }
    Ok(())
}

fn seconds(options: &SendOptions, moment: i64) -> f64 {
    (moment - options.epoch_ns) as f64 / 1e9
}

fn deadline(options: &SendOptions) -> i64 {
    options.until.map_or(i64::MAX, |until| options.epoch_ns + until.as_ns())
}

fn datagrams(goal: &Goal, options: &SendOptions) -> Result<SendReport, String> {
    let to = format!("{}:{}", goal.host, goal.port);
    let socket = UdpSocket::bind("0.0.0.0:0").map_err(|e| format!("socket: {e}"))?;
    socket.connect(&to).map_err(|e| format!("{to}: {e}"))?;
    mark(&socket, options)?;
    socket.set_nonblocking(true).map_err(|e| format!("socket: {e}"))?;
    let start = clock();
    let end = deadline(options);
    let mut report = SendReport { start_s: seconds(options, start), ..SendReport::default() };
    let mut datagram = vec![0u8; 65_507];
    let mut late = Vec::new();
    let mut rtts = Vec::new();
    let rng = Rng::named(options.seed, &format!("flow/{}", options.stream));
    let mut finished = true;
    for (offset, size) in options.load.packets(rng) {
        let due = start + offset;
        // One that had to wait for room in its socket is behind its own times.
        if due.max(clock()) >= end {
            finished = false;
            break;
        }
        if options.echo {
            answers(&socket, due, &mut rtts);
        }
        wait_until(due);
        let size = size as usize;
        let called = clock();
        let sent = loop {
            // A datagram's time is that at which its socket takes it, not that at which a program begins to wait for room.
            Header { number: report.sent_packets, sent_ns: clock() }.write(&mut datagram[..size]);
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
        report.sent_packets += 1;
        report.sent_bytes += size as u64;
        late.push((called - due) as f64 / 1e3);
    }
    if options.echo {
        answers(&socket, clock() + 1_000_000_000, &mut rtts);
    }
    report.end_s = finished.then(|| seconds(options, clock()));
    report.late_us = Distribution::of(&mut late);
    report.rtt_ms = Distribution::of(&mut rtts);
    Ok(report)
}

/// Takes answers until a moment.
fn answers(socket: &UdpSocket, until: i64, rtts: &mut Vec<f64>) {
    let mut buffer = [0u8; 2048];
    loop {
        while let Ok(len) = socket.recv(&mut buffer) {
            if let Some(head) = Header::read(&buffer[..len]) {
                rtts.push((clock() - head.sent_ns) as f64 / 1e6);
            }
        }
        // The last of the waiting is done by who sends, to the microsecond.
        let left = until - clock() - 100_000;
        if left <= 0 {
            return;
        }
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        if ppoll(&mut polled, Some(TimeSpec::nanoseconds(left)), None).is_err() {
            return;
        }
    }
}

/// Connects; a receiver that is only just being started gets a moment.
fn connect(goal: &Goal, options: &SendOptions) -> Result<TcpStream, String> {
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, connect, socket};
    use std::os::fd::AsRawFd as _;
    let to = format!("{}:{}", goal.host, goal.port);
    let addr = to.to_socket_addrs().map_err(|e| format!("{to}: {e}"))?.find_map(|a| match a {
        std::net::SocketAddr::V4(v4) => Some(v4),
        std::net::SocketAddr::V6(_) => None,
    });
    let addr = SockaddrIn::from(addr.ok_or_else(|| format!("{to}: it has no IPv4 address"))?);
    let say = |what: &str, e: nix::Error| format!("{what}: {e}");
    for attempt in 0.. {
        let fd = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None)
            .map_err(|e| say("socket", e))?;
        mark(&fd, options)?;
        if let Some(cc) = &options.cc {
            setsockopt(&fd, sockopt::TcpCongestion, &cc.into()).map_err(|e| {
                format!("congestion control {cc}: {e}: this kernel has it not (modprobe tcp_{cc})")
            })?;
        }
        if let Some(mss) = options.mss {
            setsockopt(&fd, sockopt::TcpMaxSeg, &mss).map_err(|e| say("mss", e))?;
        }
        if let Some(bytes) = options.sndbuf {
            setsockopt(&fd, sockopt::SndBuf, &bytes).map_err(|e| say("sndbuf", e))?;
        }
        match connect(fd.as_raw_fd(), &addr) {
            Ok(()) => return Ok(TcpStream::from(fd)),
            Err(nix::Error::ECONNREFUSED) if attempt < 20 => std::thread::sleep(Duration::from_millis(10)),
            Err(e) => return Err(format!("{to}: {e}")),
        }
    }
    Err(format!("{to}: nobody listens"))
}

/// What is sampled of a connection on the way.
struct Watch<'a> {
    options: &'a SendOptions,
    port: u16,
    next: i64,
    samples: Vec<SendSample>,
    last: Option<Info>,
}

impl Watch<'_> {
    fn look(&mut self, force: bool) {
        let step = self.options.interval.as_ns();
        if step <= 0 || (!force && clock() < self.next) {
            return;
        }
        let now = clock();
        self.next = now + step;
        if let Some(info) = ss::info(self.port) {
            self.samples.push(SendSample {
                time_s: seconds(self.options, now),
                cwnd_packets: info.cwnd,
                ssthresh_packets: info.ssthresh,
                srtt_ms: info.srtt_ms,
            });
            self.last = Some(info);
        }
    }
}

fn stream(goal: &Goal, options: &SendOptions) -> Result<SendReport, String> {
    let start = clock();
    let mut socket = connect(goal, options)?;
    let _ = socket.set_nodelay(true);
    socket.set_nonblocking(true).map_err(|e| format!("socket: {e}"))?;
    let port = socket.local_addr().map_err(|e| format!("socket: {e}"))?.port();
    let mut watch = Watch { options, port, next: 0, samples: Vec::new(), last: None };
    let mut report = SendReport { start_s: seconds(options, start), ..SendReport::default() };
    let mut late = Vec::new();
    let done = match &options.load {
        Load::Greedy => write(&mut socket, u64::MAX, options, &mut watch, &mut report)?,
        Load::Bytes(n) => write(&mut socket, *n, options, &mut watch, &mut report)?,
        paced => {
            let rng = Rng::named(options.seed, &format!("flow/{}", options.stream));
            let end = deadline(options);
            let mut done = true;
            for (offset, size) in paced.packets(rng) {
                let due = start + offset;
                if due >= end {
                    done = false;
                    break;
                }
                watch.look(false);
                wait_until(due);
                late.push((clock() - due) as f64 / 1e3);
                if !write(&mut socket, u64::from(size), options, &mut watch, &mut report)? {
                    done = false;
                    break;
                }
            }
            done
        }
    };
    watch.look(true);
    let _ = socket.shutdown(Shutdown::Write);
    if done {
        // The peer closes when it has everything.
        let _ = socket.set_nonblocking(false);
        let left = deadline(options).saturating_sub(clock()).clamp(1_000_000, 60_000_000_000);
        let _ = socket.set_read_timeout(Some(Duration::from_nanos(left as u64)));
        let mut byte = [0u8; 1];
        if matches!(socket.read(&mut byte), Ok(0)) {
            report.end_s = Some(seconds(options, clock()));
        }
    }
    report.late_us = Distribution::of(&mut late);
    if let Some(info) = ss::info(port).or(watch.last) {
        report.sent_packets = info.data_out;
        report.retransmitted_packets = Some(info.retransmitted);
    }
    report.samples = watch.samples;
    Ok(report)
}

/// Writes so many bytes; whether all were before time ran out.
fn write(
    socket: &mut TcpStream,
    bytes: u64,
    options: &SendOptions,
    watch: &mut Watch<'_>,
    report: &mut SendReport,
) -> Result<bool, String> {
    let block = [0u8; 65_536];
    let end = deadline(options);
    let mut left = bytes;
    while left > 0 {
        watch.look(false);
        let now = clock();
        if now >= end {
            return Ok(false);
        }
        match socket.write(&block[..left.min(block.len() as u64) as usize]) {
            Ok(n) => {
                left -= n as u64;
                report.sent_bytes += n as u64;
            }
            // Samples on the way are no reason to write: a third of the buffer is to be free first.
            Err(e) if e.kind() == ErrorKind::WouldBlock => loop {
                let next = if options.interval > Span::ZERO { watch.next.min(end) } else { end };
                let wait = next.saturating_sub(clock()).clamp(1_000, 1_000_000_000);
                let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
                let ready = ppoll(&mut polled, Some(TimeSpec::nanoseconds(wait)), None);
                if ready.is_ok_and(|n| n > 0) || clock() >= end {
                    break;
                }
                watch.look(false);
            },
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(format!("the connection broke: {e}")),
        }
    }
    Ok(true)
}
