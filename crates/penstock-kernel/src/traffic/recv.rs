//! `penstock recv`: takes what `penstock send` sends, and measures it.

use super::ss;
use super::{Header, clock};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, setsockopt, sockopt};
use nix::sys::time::{TimeSpec, TimeValLike};
use penstock_measure::Distribution;
use penstock_model::Span;
use serde::{Deserialize, Serialize};
use std::io::{ErrorKind, IoSliceMut, Read};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};

/// How to receive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RecvOptions {
    /// Port.
    pub port: u16,
    /// Datagrams; otherwise TCP.
    pub udp: bool,
    /// The moment that times are counted from, ns of the real-time clock; 0: now.
    pub epoch_ns: i64,
    /// When to stop, from the epoch; `None`: with the first connection's end, or never.
    pub until: Option<Span>,
    /// Distance of the samples; zero: none.
    pub interval: Span,
    /// Receive buffer, bytes.
    pub rcvbuf: Option<usize>,
    /// Maximum segment size to announce, bytes.
    pub mss: Option<u32>,
    /// Stop when the first connection has ended.
    pub once: bool,
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
    let mut watch = Watch { step: options.interval.as_ns(), next: 0, ..Watch::default() };
    watch.epoch_ns = options.epoch_ns;
    watch.next = clock() + watch.step;
    if options.udp { datagrams(&options, watch) } else { stream(&options, watch) }
}

/// The report as it grows.
#[derive(Default)]
struct Watch {
    report: RecvReport,
    epoch_ns: i64,
    step: i64,
    next: i64,
    bytes: u64,
    packets: u64,
    owd_sum: f64,
    owds: Vec<f64>,
}

impl Watch {
    fn arrived(&mut self, bytes: u64, moment: i64) {
        let time = (moment - self.epoch_ns) as f64 / 1e9;
        self.report.first_s.get_or_insert(time);
        self.report.last_s = Some(time);
        self.report.bytes += bytes;
        self.bytes += bytes;
    }

    fn look(&mut self, udp: bool) {
        let now = clock();
        if self.step <= 0 || now < self.next {
            return;
        }
        let owd_ms =
            (self.packets > 0 && udp && self.owd_sum > 0.0).then(|| self.owd_sum / self.packets as f64);
        self.report.samples.push(RecvSample {
            time_s: (now - self.epoch_ns) as f64 / 1e9,
            bytes: self.bytes,
            packets: udp.then_some(self.packets),
            owd_ms,
        });
        (self.bytes, self.packets, self.owd_sum) = (0, 0, 0.0);
        self.next = now + self.step;
    }

    /// How long to wait at most, ns; `None` when time is up.
    fn patience(&self, options: &RecvOptions) -> Option<i64> {
        let now = clock();
        let end = options.until.map_or(i64::MAX, |until| options.epoch_ns + until.as_ns());
        if now >= end {
            return None;
        }
        let next = if self.step > 0 { self.next.min(end) } else { end };
        Some((next - now).clamp(1_000, 1_000_000_000))
    }

    fn finish(mut self) -> RecvReport {
        self.report.owd_ms = Distribution::of(&mut self.owds);
        self.report
    }
}

fn wait(fd: &impl AsFd, ns: i64) {
    let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    // An interrupted wait is as good as one that ended.
    let _ = ppoll(&mut polled, Some(TimeSpec::nanoseconds(ns)), None);
}

fn datagrams(options: &RecvOptions, mut watch: Watch) -> Result<RecvReport, String> {
    let socket =
        UdpSocket::bind(("0.0.0.0", options.port)).map_err(|e| format!("port {}: {e}", options.port))?;
    let say = |what: &str, e: nix::Error| format!("{what}: {e}");
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true).map_err(|e| say("timestamps", e))?;
    setsockopt(&socket, sockopt::IpRecvTos, &true).map_err(|e| say("tos", e))?;
    if let Some(bytes) = options.rcvbuf {
        setsockopt(&socket, sockopt::RcvBuf, &bytes).map_err(|e| say("rcvbuf", e))?;
    }
    let mut buffer = vec![0u8; 65_536];
    let mut control = nix::cmsg_space!(TimeSpec, u8, [u8; 16]);
    let (mut highest, mut jitter, mut before): (Option<u64>, f64, Option<f64>) = (None, 0.0, None);
    while let Some(ns) = watch.patience(options) {
        wait(&socket, ns);
        loop {
            let mut parts = [IoSliceMut::new(&mut buffer)];
            let got = match recvmsg::<SockaddrIn>(
                socket.as_raw_fd(),
                &mut parts,
                Some(&mut control),
                MsgFlags::MSG_DONTWAIT,
            ) {
                Ok(got) => got,
                Err(_) => break,
            };
            let (mut stamp, mut tos) = (None, 0u8);
            for message in got.cmsgs().map_err(|e| say("control message", e))? {
                match message {
                    ControlMessageOwned::ScmTimestampns(t) => stamp = Some(t.num_nanoseconds()),
                    ControlMessageOwned::Ipv4Tos(byte) => tos = byte,
                    _ => {}
                }
            }
            let len = got.bytes;
            let moment = stamp.unwrap_or_else(clock);
            watch.arrived(len as u64, moment);
            watch.packets += 1;
            watch.report.received_packets += 1;
            watch.report.marked_packets += u64::from(tos & 3 == 3);
            let Some(head) = Header::read(&buffer[..len]) else { continue };
            watch.report.reordered_packets += u64::from(highest.is_some_and(|h| head.number < h));
            highest = Some(highest.map_or(head.number, |h| h.max(head.number)));
            let owd = (moment - head.sent_ns) as f64 / 1e6;
            watch.owds.push(owd);
            watch.owd_sum += owd;
            if let Some(last) = before.replace(owd) {
                jitter += ((owd - last).abs() - jitter) / 16.0;
            }
        }
        watch.look(true);
    }
    watch.report.jitter_ms = before.map(|_| jitter);
    Ok(watch.finish())
}

fn stream(options: &RecvOptions, mut watch: Watch) -> Result<RecvReport, String> {
    let listener =
        TcpListener::bind(("0.0.0.0", options.port)).map_err(|e| format!("port {}: {e}", options.port))?;
    let say = |what: &str, e: nix::Error| format!("{what}: {e}");
    if let Some(bytes) = options.rcvbuf {
        setsockopt(&listener, sockopt::RcvBuf, &bytes).map_err(|e| say("rcvbuf", e))?;
    }
    if let Some(mss) = options.mss {
        setsockopt(&listener, sockopt::TcpMaxSeg, &mss).map_err(|e| say("mss", e))?;
    }
    listener.set_nonblocking(true).map_err(|e| format!("socket: {e}"))?;
    let mut open: Vec<(TcpStream, u16)> = Vec::new();
    let mut buffer = vec![0u8; 262_144];
    let mut ended = false;
    while let Some(ns) = watch.patience(options) {
        {
            let mut polled = vec![PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
            polled.extend(open.iter().map(|(s, _)| PollFd::new(s.as_fd(), PollFlags::POLLIN)));
            let _ = ppoll(&mut polled, Some(TimeSpec::nanoseconds(ns)), None);
        }
        while let Ok((socket, peer)) = listener.accept() {
            socket.set_nonblocking(true).map_err(|e| format!("socket: {e}"))?;
            open.push((socket, peer.port()));
        }
        let mut n = 0;
        while n < open.len() {
            match open[n].0.read(&mut buffer) {
                Ok(0) => {
                    watch.report.received_packets += segments(&open[n].0);
                    open.remove(n);
                    ended = true;
                }
                Ok(len) => watch.arrived(len as u64, clock()),
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
    for (socket, _) in &open {
        watch.report.received_packets += segments(socket);
    }
    Ok(watch.finish())
}

/// Segments with data that a connection has received.
fn segments(socket: &TcpStream) -> u64 {
    let Ok(peer) = socket.peer_addr() else { return 0 };
    let _ = peer;
    socket.local_addr().ok().and_then(|a| ss::info(a.port())).map_or(0, |i| i.data_in)
}
