//! System calls on the machine's sockets.
//!
//! Follows: linux v6.12 net/ipv4/tcp.c `tcp_sendmsg_locked`, `tcp_recvmsg_locked`, `tcp_poll`, `__tcp_close`, `tcp_shutdown`,
//! `do_tcp_setsockopt`, `do_tcp_getsockopt`, net/core/sock.c `sk_setsockopt`, net/ipv4/af_inet.c.
//! Differs: `SO_REUSEADDR` changes nothing, as there are no others; `MSG_ZEROCOPY` copies, and its notices do not come.

use crate::fast::send_fast;
use crate::net::{Kind, Net};
use crate::options::{expects, get, set};
use crate::script::{Call, Expr};
use crate::words::{self, constant};
use penstock_model::{Span, Time};
use penstock_tcp::{SendFlags, State};
use std::collections::BTreeMap;

/// What a call has answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    Value(i64),
    Error(&'static str),
}
use Answer::{Error, Value};

/// A call under way.
#[derive(Clone, Debug)]
pub(crate) enum Job {
    /// It is over.
    Done(Answer),
    /// It made a socket: the script's number is the answer's.
    Made(usize),
    Accept(usize),
    Connect(usize),
    Read {
        n: usize,
        max: u64,
        null: bool,
        peek: bool,
        waits: bool,
    },
    Write {
        n: usize,
        left: u64,
        took: u64,
        flags: SendFlags,
        waits: bool,
        blocked: bool,
        /// It opens the connection by Fast Open.
        opens: bool,
    },
    Poll {
        entries: Vec<(i64, i64, i64)>,
        until: Option<Time>,
    },
}

/// Calls that are known; others are refused before the script runs.
pub(crate) const CALLS: [&str; 26] = [
    "socket",
    "bind",
    "listen",
    "accept",
    "accept4",
    "connect",
    "read",
    "readv",
    "recv",
    "recvfrom",
    "write",
    "writev",
    "send",
    "sendto",
    "sendmsg",
    "close",
    "shutdown",
    "setsockopt",
    "getsockopt",
    "fcntl",
    "ioctl",
    "poll",
    "getpid",
    "getuid",
    "sched_yield",
    "sync",
];

/// Numbers of files, and the sockets behind them.
#[derive(Default)]
pub(crate) struct Files(pub BTreeMap<i64, usize>);

pub(crate) type Read<T> = Result<T, String>;

/// A number.
pub(crate) fn number(e: &Expr) -> Read<i64> {
    match e {
        Expr::Int(n) => Ok(*n),
        Expr::Or(a, b) => Ok(number(a)? | number(b)?),
        Expr::Word(word) => constant(word).ok_or_else(|| format!("{word} is not known here")),
        Expr::List(list) if list.len() == 1 => number(&list[0]),
        other => Err(format!("a number is expected, not {other:?}")),
    }
}
/// The part of `{…}` with this name.
pub(crate) fn field<'a>(fields: &'a [Expr], name: &str) -> Option<&'a Expr> {
    fields.iter().find_map(|f| match f {
        Expr::Is(left, right) => match &**left {
            Expr::Word(word) | Expr::Of(word, _) if word == name => Some(&**right),
            _ => None,
        },
        _ => None,
    })
}
/// Bytes that a list of buffers has.
fn iov_bytes(e: &Expr) -> Read<u64> {
    let Expr::List(list) = e else { return Err("a list of buffers is expected".to_owned()) };
    list.iter().try_fold(0, |sum, one| match one {
        Expr::Fields(parts) if parts.len() == 2 => Ok(sum + number(&parts[1])?.max(0) as u64),
        _ => Err("a buffer is written {..., 100}".to_owned()),
    })
}

impl Files {
    /// The socket of a file's number.
    fn of(&self, args: &[Expr]) -> Read<Result<usize, &'static str>> {
        let fd = number(args.first().ok_or("an argument is missing")?)?;
        Ok(self.0.get(&fd).copied().ok_or("EBADF"))
    }

    /// Begins a call.
    pub fn begin(&mut self, net: &mut Net, call: &Call) -> Read<Job> {
        let args = &call.args;
        let arg = |n: usize| args.get(n).ok_or_else(|| format!("{} has too few arguments", call.name));
        let done = |answer| Ok(Job::Done(answer));
        if call.name == "socket" {
            let (ty, protocol) = (number(arg(1)?)?, number(arg(2)?)?);
            if ty & 0xf != 1 || !matches!(protocol, 0 | 6) {
                return Err("sockets are of TCP here: socket(..., SOCK_STREAM, IPPROTO_TCP)".to_owned());
            }
            if net.host.setting("net.ipv4.tcp_mtu_probing").is_some_and(|v| v.trim() == "1") {
                return Err(
                    "net.ipv4.tcp_mtu_probing=1 is not run here: black holes are not detected; write 0 or 2"
                        .to_owned(),
                );
            }
            let n = net.add(net.config());
            net.socks[n].nonblocking = ty & words::O_NONBLOCK != 0;
            return Ok(Job::Made(n));
        }
        if matches!(call.name.as_str(), "getpid" | "getuid" | "sched_yield" | "sync") {
            return done(Value(0));
        }
        if call.name == "poll" {
            let Expr::List(list) = arg(0)? else { return Err("poll takes a list".to_owned()) };
            let entry = |e: &Expr| {
                let Expr::Fields(f) = e else {
                    return Err("an entry is written {fd=4, events=POLLOUT}".to_owned());
                };
                let get = |name: &str| field(f, name).map_or(Ok(0), number);
                Ok((get("fd")?, get("events")?, get("revents")?))
            };
            let entries = list.iter().map(entry).collect::<Read<Vec<_>>>()?;
            let ms = number(arg(2)?)?;
            let until = (ms >= 0).then(|| net.now + Span::from_ms(ms));
            return Ok(Job::Poll { entries, until });
        }
        let n = match self.of(args)? {
            Ok(n) => n,
            Err(error) => return done(Error(error)),
        };
        let null = |at: usize| matches!(args.get(at), Some(Expr::Word(w)) if w == "NULL");
        let flags = |at: usize| args.get(at).map_or(Ok(0), number);
        match call.name.as_str() {
            "bind" => {
                net.socks[n].local.1 = Net::bind_port();
                done(Value(0))
            }
            "listen" => {
                if net.socks[n].local.1 == 0 {
                    net.socks[n].local.1 = Net::bind_port();
                }
                let (setting, backlog) = (net.host.tcp_settings().fastopen, number(arg(1)?)?.max(0) as u32);
                net.socks[n].fast.listens(setting, backlog);
                net.socks[n].kind = Kind::Listens(Default::default());
                done(Value(0))
            }
            "accept" | "accept4" => match net.socks[n].kind {
                Kind::Listens(_) => Ok(Job::Accept(n)),
                _ => done(Error("EINVAL")),
            },
            "connect" => self.connect(net, n),
            "read" | "recv" | "recvfrom" | "readv" => {
                let max =
                    if call.name == "readv" { iov_bytes(arg(1)?)? } else { number(arg(2)?)?.max(0) as u64 };
                let flags = if call.name == "read" || call.name == "readv" { 0 } else { flags(3)? };
                if flags & !(words::MSG_PEEK | words::MSG_DONTWAIT) != 0 {
                    return Err(format!("{}: of flags MSG_PEEK and MSG_DONTWAIT are here", call.name));
                }
                let waits = !net.socks[n].nonblocking && flags & words::MSG_DONTWAIT == 0;
                Ok(Job::Read { n, max, null: null(1), peek: flags & words::MSG_PEEK != 0, waits })
            }
            "write" | "send" | "sendto" | "writev" | "sendmsg" => {
                let (left, flags) = match call.name.as_str() {
                    "write" => (number(arg(2)?)?, 0),
                    "writev" => (iov_bytes(arg(1)?)? as i64, 0),
                    "sendmsg" => {
                        let Expr::Fields(f) = arg(1)? else {
                            return Err("sendmsg takes {msg_name(...)=…, …}".to_owned());
                        };
                        if field(f, "msg_control")
                            .is_some_and(|c| !matches!(c, Expr::List(l) if l.is_empty()))
                        {
                            return Err("sendmsg: msg_control is not run here".to_owned());
                        }
                        (
                            iov_bytes(field(f, "msg_iov").ok_or("sendmsg: msg_iov is missing")?)? as i64,
                            flags(2)?,
                        )
                    }
                    _ => (number(arg(2)?)?, flags(3)?),
                };
                let known = words::MSG_MORE
                    | words::MSG_EOR
                    | words::MSG_DONTWAIT
                    | words::MSG_NOSIGNAL
                    | words::MSG_ZEROCOPY
                    | words::MSG_FASTOPEN;
                if flags & !known != 0 {
                    return Err(format!(
                        "{}: of flags MSG_MORE, MSG_EOR, MSG_DONTWAIT, MSG_NOSIGNAL, MSG_ZEROCOPY and MSG_FASTOPEN are here, not {:#x}",
                        call.name,
                        flags & !known
                    ));
                }
                if null(1) && left > 0 {
                    return done(Error("EFAULT"));
                }
                let waits = !net.socks[n].nonblocking && flags & words::MSG_DONTWAIT == 0;
                let how = SendFlags { more: flags & words::MSG_MORE != 0, eor: flags & words::MSG_EOR != 0 };
                let left = left.max(0) as u64;
                if flags & words::MSG_FASTOPEN != 0 || net.socks[n].deferred {
                    let unspecified = matches!(args.get(4), Some(Expr::Word(w)) if w == "AF_UNSPEC");
                    return Ok(send_fast(net, n, left, how, waits, unspecified));
                }
                Ok(Job::Write { n, left, took: 0, flags: how, waits, blocked: false, opens: false })
            }
            "close" => {
                let fd = number(arg(0)?)?;
                self.0.remove(&fd);
                close(net, n);
                done(Value(0))
            }
            "shutdown" => done(shutdown(net, n, number(arg(1)?)?)),
            "fcntl" => match number(arg(1)?)? {
                3 => done(Value(2 | if net.socks[n].nonblocking { words::O_NONBLOCK } else { 0 })),
                4 => {
                    net.socks[n].nonblocking = number(arg(2)?)? & words::O_NONBLOCK != 0;
                    done(Value(0))
                }
                _ => Err("fcntl: F_GETFL and F_SETFL are here".to_owned()),
            },
            "ioctl" => {
                let Kind::Tcp(end) = &net.socks[n].kind else { return done(Error("EINVAL")) };
                let info = end.info();
                let is = match number(arg(1)?)? {
                    0x541b => end.readable(),
                    0x5411 => info.notacked_bytes,
                    _ => info.notsent_bytes,
                };
                expects("ioctl", arg(2)?, is as i64)?;
                done(Value(0))
            }
            "setsockopt" => set(net, n, arg(1)?, arg(2)?, arg(3)?).map(Job::Done),
            "getsockopt" => get(net, n, arg(1)?, arg(2)?, arg(3)?).map(Job::Done),
            other => Err(format!("{other} is not run here: there are {}", CALLS.join(" "))),
        }
    }

    //= linux v6.12 net/ipv4/af_inet.c __inet_stream_connect
    fn connect(&mut self, net: &mut Net, n: usize) -> Read<Job> {
        match &net.socks[n].kind {
            Kind::Fresh if net.socks[n].deferred => Ok(Job::Done(Error("EISCONN"))),
            Kind::Fresh => {
                if net.socks[n].fast_connect {
                    //= linux v6.12 net/ipv4/tcp_fastopen.c tcp_fastopen_defer_connect
                    let how = net.active(n, 0);
                    if how.data {
                        net.socks[n].deferred = true;
                        return Ok(Job::Done(Value(0)));
                    }
                    net.connect_by(n, Some(how));
                } else {
                    net.connect(n);
                }
                if net.socks[n].nonblocking {
                    let failed = net.socks[n].error.filter(
                        |_| !matches!(&net.socks[n].kind, Kind::Tcp(e) if e.state() == State::SynSent),
                    );
                    return Ok(Job::Done(Error(failed.unwrap_or("EINPROGRESS"))));
                }
                Ok(Job::Connect(n))
            }
            Kind::Tcp(end) => Ok(match end.state() {
                State::SynSent if net.socks[n].nonblocking => Job::Done(Error("EALREADY")),
                State::SynSent => Job::Connect(n),
                State::Closed => Job::Done(Error(take_error(net, n).unwrap_or("ECONNREFUSED"))),
                _ => Job::Done(Error("EISCONN")),
            }),
            Kind::Listens(_) | Kind::Gone => Ok(Job::Done(Error("EINVAL"))),
        }
    }

    /// Goes on with a call; `None`: it waits. A socket that it made is behind it.
    pub fn go_on(&mut self, net: &mut Net, job: &mut Job) -> Read<Option<(Answer, Option<usize>)>> {
        let only = |answer| Ok(Some((answer, None)));
        match job {
            Job::Done(answer) => only(*answer),
            Job::Made(n) => Ok(Some((Value(0), Some(*n)))),
            Job::Accept(n) => {
                let n = *n;
                let nonblocking = net.socks[n].nonblocking;
                let Kind::Listens(queue) = &mut net.socks[n].kind else { return only(Error("EINVAL")) };
                match queue.pop_front() {
                    Some(child) => {
                        net.socks[child].accepted = true;
                        Ok(Some((Value(0), Some(child))))
                    }
                    None if nonblocking => only(Error("EAGAIN")),
                    None => Ok(None),
                }
            }
            Job::Connect(n) => {
                let n = *n;
                let Kind::Tcp(end) = &net.socks[n].kind else { return only(Error("EINVAL")) };
                match end.state() {
                    State::SynSent | State::SynReceived => Ok(None),
                    State::Closed => only(Error(take_error(net, n).unwrap_or("ECONNREFUSED"))),
                    _ => only(Value(0)),
                }
            }
            Job::Read { n, max, null, peek, waits } => {
                let (n, max, null, peek, waits) = (*n, *max, *null, *peek, *waits);
                let now = net.now;
                let shut = net.socks[n].read_shut;
                if net.socks[n].deferred {
                    return if waits { Ok(None) } else { only(Error("EAGAIN")) };
                }
                let Kind::Tcp(end) = &mut net.socks[n].kind else { return only(Error("ENOTCONN")) };
                if end.readable() > 0 && max > 0 {
                    if null {
                        return only(Error("EFAULT"));
                    }
                    let got = if peek { end.readable().min(max) } else { end.read(max, now) };
                    net.pump(n);
                    return only(Value(got as i64));
                }
                let (state, eof) = (end.state(), end.at_eof());
                if let Some(error) = take_error(net, n) {
                    return only(Error(error));
                }
                if shut || eof || state == State::Closed || max == 0 {
                    return only(Value(0));
                }
                if waits { Ok(None) } else { only(Error("EAGAIN")) }
            }
            Job::Write { n, left, took, flags, waits, blocked, opens } => {
                let n = *n;
                let sofar = |took: u64, error| if took > 0 { Value(took as i64) } else { Error(error) };
                loop {
                    let now = net.now;
                    let shut = net.socks[n].write_shut;
                    let Kind::Tcp(end) = &mut net.socks[n].kind else { return only(Error("EPIPE")) };
                    let state = end.state();
                    if !end.is_open() && state != State::Closed {
                        return if *waits { Ok(None) } else { only(Error("EAGAIN")) };
                    }
                    if state == State::Closed || shut {
                        let error = take_error(net, n).unwrap_or("EPIPE");
                        return only(if *opens { Error(error) } else { sofar(*took, error) });
                    }
                    if std::mem::take(opens) {
                        end.set_write_pending(false);
                    }
                    if *left == 0 {
                        return only(Value(*took as i64));
                    }
                    if *blocked && end.waits_for_room() && !end.call_writable() {
                        return Ok(None);
                    }
                    let sent = end.send(*left, *flags, now);
                    *took += sent.bytes;
                    *left -= sent.bytes;
                    net.pump(n);
                    if sent.goes_on || *left == 0 {
                        continue;
                    }
                    if *waits {
                        let Kind::Tcp(end) = &mut net.socks[n].kind else { return only(Error("EPIPE")) };
                        // What has just gone may have made room.
                        if end.call_writable() && sent.bytes > 0 {
                            continue;
                        }
                        *blocked = true;
                        return Ok(None);
                    }
                    if let Kind::Tcp(end) = &mut net.socks[n].kind {
                        end.send_ends();
                    }
                    return only(sofar(*took, "EAGAIN"));
                }
            }
            Job::Poll { entries, until } => {
                let mut ready = 0;
                let mut wrong = None;
                for (fd, events, expected) in entries.iter() {
                    let is = self.0.get(fd).map_or(0x20, |&n| polled(net, n))
                        & (events | words::POLLERR | words::POLLHUP | 0x20);
                    ready += i64::from(is != 0);
                    if is != *expected {
                        wrong =
                            Some(format!("poll: fd {fd}: revents: expected {expected:#x} vs actual {is:#x}"));
                    }
                }
                let over = until.is_some_and(|t| t <= net.now);
                match wrong {
                    _ if ready == 0 && !over => Ok(None),
                    Some(wrong) => Err(wrong),
                    None => only(Value(ready)),
                }
            }
        }
    }
}

/// The error a socket has to tell, which is told once.
pub(crate) fn take_error(net: &mut Net, n: usize) -> Option<&'static str> {
    let sock = &mut net.socks[n];
    if std::mem::replace(&mut sock.error_told, sock.error.is_some()) { None } else { sock.error }
}

/// What `poll` says of a socket.
//= linux v6.12 net/ipv4/tcp.c tcp_poll
fn polled(net: &Net, n: usize) -> i64 {
    let sock = &net.socks[n];
    let error = if sock.error.is_some() && !sock.error_told { words::POLLERR } else { 0 };
    match &sock.kind {
        Kind::Fresh if sock.deferred => words::POLLOUT,
        Kind::Fresh | Kind::Gone => words::POLLOUT | words::POLLHUP,
        Kind::Listens(queue) => {
            if queue.is_empty() {
                0
            } else {
                words::POLLIN
            }
        }
        Kind::Tcp(end) => {
            let state = end.state();
            let heard = sock.read_shut || end.fin_came() || state == State::Closed;
            let mut mask = error;
            if sock.write_shut && heard || state == State::Closed {
                mask |= words::POLLHUP;
            }
            if heard {
                mask |= words::POLLIN | words::POLLRDHUP;
            }
            if end.is_open() || state == State::Closed {
                if end.readable() > 0 {
                    mask |= words::POLLIN;
                }
                if sock.write_shut || state == State::Closed || end.call_writable() {
                    mask |= words::POLLOUT;
                }
            }
            mask
        }
    }
}

//= linux v6.12 net/ipv4/tcp.c __tcp_close
fn close(net: &mut Net, n: usize) {
    let now = net.now;
    //= linux v6.12 net/ipv4/inet_connection_sock.c inet_csk_listen_stop
    if let Kind::Listens(queue) = &mut net.socks[n].kind {
        for child in std::mem::take(queue) {
            if let Kind::Tcp(end) = &mut net.socks[child].kind {
                end.abort(now);
            }
            net.socks[child].orphan = true;
            net.pump(child);
        }
    }
    let sock = &mut net.socks[n];
    sock.orphan = true;
    let lingers_not = sock.lingers_not;
    match &mut sock.kind {
        Kind::Tcp(end) => {
            if end.readable() > 0 || lingers_not {
                end.abort(now);
            } else {
                end.orphan();
                end.close(now);
            }
        }
        kind => *kind = Kind::Gone,
    }
    net.pump(n);
}

//= linux v6.12 net/ipv4/af_inet.c inet_shutdown
fn shutdown(net: &mut Net, n: usize, how: i64) -> Answer {
    let now = net.now;
    let sock = &mut net.socks[n];
    let Kind::Tcp(end) = &mut sock.kind else { return Error("ENOTCONN") };
    if !(0..=2).contains(&how) {
        return Error("EINVAL");
    }
    if matches!(end.state(), State::Closed | State::SynSent) {
        return Error("ENOTCONN");
    }
    sock.read_shut |= how != 1;
    if how != 0 && !std::mem::replace(&mut sock.write_shut, true) {
        end.close(now);
    }
    net.pump(n);
    Value(0)
}
