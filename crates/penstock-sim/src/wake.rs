//! What programs wait for, and their timers.

use crate::event::{Event, Queue, Seq, Timer};
use crate::index::{NONE, Numbers};
use crate::still::{CALL, Toll};
use penstock_model::{Span, Time};
use std::collections::VecDeque;

/// Something a program waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Wake {
    /// One of its timers.
    Timer(u32),
    /// Its connection is open.
    Connected(u32),
    /// Its connection ended with an error (`errno`'s text).
    Failed(u32, &'static str),
    /// A connection came in on its listening socket.
    Accepted(u32),
    /// There is something to read.
    Readable(u32),
    /// There is room to write again.
    Writable(u32),
    /// The peer has closed and all was read.
    Eof(u32),
    /// The connection is over (both sides closed and acknowledged).
    Closed(u32),
    /// A datagram came.
    Datagram {
        sock: u32,
        from: (std::net::IpAddr, u16),
        to: std::net::IpAddr,
        len: u32,
        seq: u64,
        created: Time,
    },
    /// An echo reply: its ICMP length, sequence number, TTL.
    Echo { len: u32, seq: u16, ttl: u8, from: std::net::IpAddr },
    /// An ICMP error about an echo of ours.
    EchoError { from: std::net::IpAddr, ttl: u8, ty: u8, code: u8, seq: u16, info: u32 },
    /// An ICMP error about what a socket has sent that wants to hear of it (`IP_RECVERR`): whose it is, its TTL, what it says; the ports of what was
    /// sent. `sock` is [`NONE`](crate::index::NONE) for a raw socket.
    Told { sock: u32, from: std::net::IpAddr, ttl: u8, ty: u8, code: u8, info: u32, ports: (u16, u16) },
    /// A segment from the peer of a raw socket: its ports.
    Segment { from: std::net::IpAddr, ttl: u8, ports: (u16, u16) },
}

/// How long `poll` sleeps with a timeout of so many milliseconds, when nothing comes.
pub(crate) fn poll(ms: i64) -> Span {
    select(ms.saturating_mul(1000))
}
/// The same of `select`, in microseconds: timers have slack.
//= linux v6.12 fs/select.c select_estimate_accuracy, __estimate_accuracy
pub(crate) fn select(us: i64) -> Span {
    let slack = if us == 0 { 0 } else { us.clamp(50_000, 100_000_000) };
    Span::from_ns(us.saturating_mul(1000).saturating_add(slack))
}

/// A timer of a program.
pub(crate) struct AppTimer {
    pub(crate) app: u32,
    pub(crate) token: u32,
    pub(crate) timer: Timer,
    /// What setting it again and again costs.
    pub(crate) toll: Toll,
}

impl AppTimer {
    pub(crate) fn new(app: u32, token: u32) -> AppTimer {
        AppTimer { app, token, timer: Timer::default(), toll: Toll::default() }
    }
}

/// What programs are to be told, and when.
#[derive(Default)]
pub(crate) struct Wakes {
    /// Which program is to be woken, and for what, in this order.
    pub(crate) due: VecDeque<(u32, Wake)>,
    pub(crate) timers: Vec<AppTimer>,
    pub(crate) numbers: Numbers,
    /// Hosts and ports where a daemon is to answer.
    pub(crate) daemons: Vec<(u32, u16)>,
}

impl Wakes {
    /// Tells a program; nobody, where `app` is [`NONE`]: a flow's own socket.
    #[inline]
    pub(crate) fn tell(&mut self, app: u32, wake: Wake) {
        if app != NONE {
            self.due.push_back((app, wake));
        }
    }
    /// Makes a timer that wakes `app` with [`Wake::Timer`]`(token)`.
    pub(crate) fn new_timer(&mut self, app: u32, token: u32) -> u32 {
        let n = self.numbers.next(&mut self.timers, || AppTimer::new(NONE, 0));
        self.timers.push(AppTimer::new(app, token));
        n
    }
    /// Sets a timer, or moves it; in the past means now. What is done at its end costs a system call: a program that does it without a
    /// pause gets on by that.
    pub(crate) fn set_timer(&mut self, timer: u32, at: Time, queue: &mut Queue) {
        let now = queue.now();
        let t = &mut self.timers[timer as usize];
        let at = at.max(now + t.toll.charge(now, CALL));
        t.timer.move_to(Some(at), Event::App(timer), queue);
    }
    /// Unsets a timer.
    pub(crate) fn stop_timer(&mut self, timer: u32) {
        self.timers[timer as usize].timer = Timer::default();
    }
    /// A timer's event: whose it is and which, unless it was moved or unset.
    pub(crate) fn fires(&mut self, timer: u32, seq: Seq) {
        let t = &mut self.timers[timer as usize];
        if t.timer.fires(seq) {
            self.due.push_back((t.app, Wake::Timer(t.token)));
        }
    }
}
