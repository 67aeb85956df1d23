//! What programs wait for.

use crate::event::Timer;
use crate::still::Toll;
use penstock_model::Time;

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
        from: (std::net::Ipv4Addr, u16),
        to: std::net::Ipv4Addr,
        len: u32,
        seq: u64,
        created: Time,
    },
    /// An echo reply: its ICMP length, sequence number, TTL.
    Echo { len: u32, seq: u16, ttl: u8, from: std::net::Ipv4Addr },
    /// An ICMP error about an echo of ours.
    EchoError { from: std::net::Ipv4Addr, ty: u8, code: u8, seq: u16 },
}

/// A timer of a program.
pub(crate) struct AppTimer {
    pub(crate) app: u32,
    pub(crate) token: u32,
    pub(crate) timer: Timer,
    /// What setting it again and again costs.
    pub(crate) toll: Toll,
}
