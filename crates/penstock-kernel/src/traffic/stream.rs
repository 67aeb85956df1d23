//! A flow of TCP from a real socket: one connection, or one after another.

use super::info::{Info, info};
use super::send::{
    Goal, SendOptions, SendReport, SendSample, address, deadline, due, last, mark, seconds, since,
};
use super::{clock, wait_until};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, connect as connect_socket, setsockopt, socket,
    sockopt,
};
use nix::sys::time::{TimeSpec, TimeValLike};
use penstock_measure::Distribution;
use penstock_model::traffic::Load;
use penstock_model::{Rng, Span};
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

/// A setting of this machine that is another for a moment: TCP reads it when a connection begins.
struct Setting {
    path: &'static str,
    was: String,
}

impl Setting {
    /// Sets it where a wish differs from what it is.
    fn put(path: &'static str, wish: Option<&str>) -> Result<Option<Setting>, String> {
        let Some(wish) = wish else { return Ok(None) };
        let was = std::fs::read_to_string(path).map_err(|e| format!("{path}: {e}"))?;
        if was.trim() == wish {
            return Ok(None);
        }
        std::fs::write(path, wish).map_err(|e| format!("{path}: {e} (it needs CAP_NET_ADMIN)"))?;
        Ok(Some(Setting { path, was }))
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // Whoever could set it can set it back.
        let _ = std::fs::write(self.path, self.was.trim());
    }
}

/// Begins the handshake; the settings hold until its first segment is made, which is before this returns.
fn begin(fd: &impl AsRawFd, to: SocketAddr, options: &SendOptions) -> Result<nix::Result<()>, String> {
    let wish = |wish: Option<bool>, off: &'static str| wish.map(|on| if on { "1" } else { off });
    let _ecn = Setting::put("/proc/sys/net/ipv4/tcp_ecn", wish(options.ecn, "2"))?;
    let _sack = Setting::put("/proc/sys/net/ipv4/tcp_sack", wish(options.sack, "0"))?;
    Ok(connect_socket(fd.as_raw_fd(), &SockaddrStorage::from(to)))
}

/// Asks for a congestion control, where one is named.
pub(super) fn set_cc(fd: &impl AsFd, cc: Option<&String>) -> Result<(), String> {
    let Some(cc) = cc else { return Ok(()) };
    setsockopt(fd, sockopt::TcpCongestion, &cc.into())
        .map_err(|e| format!("congestion control {cc}: {e}: this kernel has it not (modprobe tcp_{cc})"))
}

/// Connects, or answers why there is no connection. A receiver that has only just been started gets a moment.
fn connect(goal: &Goal, options: &SendOptions) -> Result<Result<TcpStream, nix::Error>, String> {
    let to = address(goal)?;
    let say = |what: &str, e: nix::Error| format!("{what}: {e}");
    let family = if to.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 };
    for attempt in 0.. {
        let fd = socket(family, SockType::Stream, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, None)
            .map_err(|e| say("socket", e))?;
        mark(&fd, to, options)?;
        set_cc(&fd, options.cc.as_ref())?;
        if let Some(mss) = options.mss {
            setsockopt(&fd, sockopt::TcpMaxSeg, &mss).map_err(|e| say("mss", e))?;
        }
        if let Some(bytes) = options.sndbuf {
            // The kernel doubles what it is told (sk_setsockopt), and an experiment says what the buffer has.
            setsockopt(&fd, sockopt::SndBuf, &(bytes / 2)).map_err(|e| say("sndbuf", e))?;
        }
        let mut begun = begin(&fd, to, options)?;
        if begun == Err(nix::Error::EINPROGRESS) {
            let mut polled = [PollFd::new(fd.as_fd(), PollFlags::POLLOUT)];
            while ppoll(&mut polled, None, None).is_err() {}
            let error =
                nix::sys::socket::getsockopt(&fd, sockopt::SocketError).map_err(|e| say("socket", e))?;
            begun = if error == 0 { Ok(()) } else { Err(nix::Error::from_raw(error)) };
        }
        match begun {
            Ok(()) => return Ok(Ok(TcpStream::from(fd))),
            Err(nix::Error::ECONNREFUSED) if attempt < 20 && clock() < deadline(options) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Err(e) => return Ok(Err(e)),
        }
    }
    Ok(Err(nix::Error::ECONNREFUSED))
}

/// What is sampled of a connection on the way.
struct Watch<'a> {
    options: &'a SendOptions,
    next: i64,
    samples: Vec<SendSample>,
    /// What stood when counting began; `None` until then.
    before: Option<Info>,
}

impl<'a> Watch<'a> {
    fn new(options: &'a SendOptions) -> Watch<'a> {
        let before = (options.warmup == Span::ZERO).then(Info::default);
        Watch { options, next: 0, samples: Vec::new(), before }
    }
    /// The moment at which there is next something to look at.
    fn due(&self) -> i64 {
        let step = self.options.interval.as_ns();
        let sample = if step > 0 { self.next } else { i64::MAX };
        if self.before.is_none() { sample.min(since(self.options)) } else { sample }
    }
    fn look(&mut self, socket: &TcpStream, force: bool) {
        let now = clock();
        let warm = self.before.is_none() && now >= since(self.options);
        let sample = self.options.interval > Span::ZERO && (force || now >= self.next);
        if !warm && !sample {
            return;
        }
        let info = info(socket);
        if warm {
            self.before = Some(info.unwrap_or_default());
        }
        if !sample {
            return;
        }
        self.next = now + self.options.interval.as_ns();
        if let Some(info) = info {
            self.samples.push(SendSample {
                time_s: seconds(self.options, now),
                cwnd_packets: info.cwnd,
                ssthresh_packets: info.ssthresh,
                srtt_ms: info.srtt_ms,
            });
        }
    }
    /// Counts what a connection has sent since counting began.
    fn count(&mut self, socket: &TcpStream, report: &mut SendReport) {
        let (Some(info), Some(before)) = (info(socket), self.before) else { return };
        report.sent_packets += info.data_out.saturating_sub(before.data_out);
        let again = info.retransmitted.saturating_sub(before.retransmitted);
        report.retransmitted_packets = Some(report.retransmitted_packets.unwrap_or(0) + again);
        // A next connection begins with nothing.
        self.before = Some(Info::default());
    }
}

/// A connection, ready to be written to; `None` when time ran out before there was one, or with the reason in the report.
fn opened(goal: &Goal, options: &SendOptions, report: &mut SendReport) -> Result<Option<TcpStream>, String> {
    match connect(goal, options)? {
        Ok(socket) => {
            let _ = socket.set_nodelay(true);
            Ok(Some(socket))
        }
        // The receiver's time is up too.
        Err(_) if clock() >= deadline(options) => Ok(None),
        Err(error) => {
            report.failed = Some(format!("{}:{}: {}", goal.host, goal.port, error.desc()));
            Ok(None)
        }
    }
}

/// Ends a connection; whether its peer has everything and has ended it too, before the run's end or, without one, a minute.
fn closed(socket: &mut TcpStream, options: &SendOptions, watch: &mut Watch<'_>) -> bool {
    let _ = socket.shutdown(Shutdown::Write);
    let _ = socket.set_nonblocking(true);
    // What was written before the flow's end may take its time.
    let end = last(options).min(clock() + 60_000_000_000);
    let mut byte = [0u8; 1];
    loop {
        // The peer closes when it has everything.
        match socket.read(&mut byte) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            read => return matches!(read, Ok(0)),
        }
        let now = clock();
        if now >= end {
            return false;
        }
        let wait = watch.due().min(end).saturating_sub(now).clamp(1_000, 1_000_000_000);
        let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        let _ = ppoll(&mut polled, Some(TimeSpec::nanoseconds(wait)), None);
        watch.look(socket, false);
    }
}

pub(super) fn stream(goal: &Goal, options: &SendOptions) -> Result<SendReport, String> {
    let start = clock();
    let mut watch = Watch::new(options);
    let mut report = SendReport { start_s: seconds(options, start), ..SendReport::default() };
    if let Load::Pages { .. } = options.load {
        pages(goal, options, &mut watch, &mut report)?;
        report.samples = watch.samples;
        return Ok(report);
    }
    let Some(mut socket) = opened(goal, options, &mut report)? else { return Ok(report) };
    report.port = socket.local_addr().map_or(0, |a| a.port());
    let mut late = Vec::new();
    match &options.load {
        Load::Greedy => {
            write(&mut socket, u64::MAX, deadline(options), &mut watch, &mut report)?;
        }
        Load::Bytes(n) => {
            write(&mut socket, *n, deadline(options), &mut watch, &mut report)?;
        }
        _ => {
            let end = deadline(options);
            for (offset, size) in due(options) {
                let due = start + offset;
                if due >= end {
                    break;
                }
                watch.look(&socket, false);
                wait_until(due);
                late.push((clock() - due) as f64 / 1e3);
                if !write(&mut socket, u64::from(size), end, &mut watch, &mut report)? {
                    break;
                }
            }
        }
    }
    if closed(&mut socket, options, &mut watch) {
        report.end_s = Some(seconds(options, clock()));
    }
    watch.look(&socket, true);
    report.late_us = Distribution::of(&mut late);
    watch.count(&socket, &mut report);
    report.samples = watch.samples;
    Ok(report)
}

/// Pages: one connection after another, until time is up. What a reader thinks begins when a page's connection has ended.
fn pages(
    goal: &Goal,
    options: &SendOptions,
    watch: &mut Watch<'_>,
    report: &mut SendReport,
) -> Result<(), String> {
    let Load::Pages { size, think } = &options.load else { return Ok(()) };
    let mut rng = Rng::named(options.seed, &format!("flow:{}", options.stream));
    let end = deadline(options);
    while clock() < end {
        let begun = clock();
        let bytes = size.draw_page(&mut rng);
        let Some(mut socket) = opened(goal, options, report)? else { break };
        // A page that is under way at the flow's end is its last.
        let until = last(options);
        let whole = write(&mut socket, u64::from(bytes), until, watch, report)?
            && closed(&mut socket, options, watch);
        let ended = clock();
        watch.look(&socket, false);
        watch.count(&socket, report);
        if !whole {
            break;
        }
        if ended >= since(options) {
            report.transfers_ms.push((ended - begun) as f64 / 1e6);
        }
        let next = ended.saturating_add(think.draw(&mut rng).as_ns());
        // What begins behind the warm-up's end counts from nothing.
        if next >= since(options) {
            watch.before.get_or_insert_default();
        }
        // Where the run goes on without it, the flow ends with its last page, or while that is looked at.
        report.end_s = (next >= end && end < until).then(|| seconds(options, ended.max(end)));
        if next >= end {
            break;
        }
        wait_until(next);
    }
    Ok(())
}

/// Writes so many bytes; whether all were before time ran out.
fn write(
    socket: &mut TcpStream,
    bytes: u64,
    end: i64,
    watch: &mut Watch<'_>,
    report: &mut SendReport,
) -> Result<bool, String> {
    let block = [0u8; 65_536];
    let mut left = bytes;
    while left > 0 {
        watch.look(socket, false);
        let now = clock();
        if now >= end {
            return Ok(false);
        }
        match socket.write(&block[..left.min(block.len() as u64) as usize]) {
            Ok(n) => {
                left -= n as u64;
                report.sent_bytes += if now >= since(watch.options) { n as u64 } else { 0 };
            }
            // Samples on the way are no reason to write: a third of the buffer is to be free first.
            Err(e) if e.kind() == ErrorKind::WouldBlock => loop {
                let next = watch.due().min(end);
                let wait = next.saturating_sub(clock()).clamp(1_000, 1_000_000_000);
                let mut polled = [PollFd::new(socket.as_fd(), PollFlags::POLLOUT)];
                let ready = ppoll(&mut polled, Some(TimeSpec::nanoseconds(wait)), None);
                if ready.is_ok_and(|n| n > 0) || clock() >= end {
                    break;
                }
                watch.look(socket, false);
            },
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) => return Err(format!("the connection broke: {e}")),
        }
    }
    Ok(true)
}
