//! Sockets as data: what a socket is, what each kind keeps, and the tables of a host.

use crate::event::Timer;
use crate::index::{LOOPBACK, NONE, Numbers};
use penstock_model::Rng;
use penstock_model::traffic::TxTimeWish;
use penstock_packet::{Cutter, L4, Packet};
use penstock_sched::{Freed, Orphan};
use penstock_tcp::fastopen::{Blackhole, Queue};
use penstock_tcp::{Config, Endpoint};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::{Index, IndexMut};

/// An address and a port.
pub(crate) type Addr = (IpAddr, u16);

/// What a socket is set to before it is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct SockOpts {
    /// `IP_TOS`.
    pub(crate) tos: u8,
    /// `SO_MARK`.
    pub(crate) mark: u32,
    /// `SO_PRIORITY`, where it is set; else it follows from the ToS.
    pub(crate) priority: Option<u32>,
    /// `SO_BINDTODEVICE`: the index of the device, or of the VRF; 0 for none.
    pub(crate) bound: u32,
    /// `SO_TXTIME`, with which each datagram names such a time.
    pub(crate) txtime: Option<TxTimeWish>,
}

/// A message of a modelled protocol: what the bytes mean that carry it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Message {
    /// What is said.
    pub(crate) kind: u32,
    /// And the numbers with it.
    pub(crate) values: Vec<i64>,
    /// And the words.
    pub(crate) text: String,
}

/// One socket.
#[repr(C)]
pub(crate) struct Sock {
    // With each packet, in this order: what lies together comes into the cache together.
    pub(crate) host: u32,
    pub(crate) flow: u32,
    pub(crate) local: Addr,
    pub(crate) remote: Addr,
    /// Whether it sends the flow's data.
    pub(crate) is_source: bool,
    pub(crate) kind: Kind,
    pub(crate) priority: u32,
    pub(crate) opts: SockOpts,
    /// Its number among the sockets that its host has had, from 1: what packets name it by.
    pub(crate) own: u32,
    /// The program it belongs to; `NONE` for a flow's own.
    pub(crate) app: u32,
}

impl Sock {
    /// What stands at a number that no socket here has.
    pub(crate) fn gone() -> Sock {
        let unspecified = (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);
        Sock {
            host: NONE,
            app: NONE,
            local: unspecified,
            remote: unspecified,
            flow: NONE,
            is_source: true,
            opts: SockOpts::default(),
            own: 0,
            priority: 0,
            kind: Kind::Gone,
        }
    }
}

/// All sockets of all hosts, by number.
#[derive(Default)]
pub(crate) struct Sockets {
    pub(crate) all: Vec<Sock>,
    /// Contents of datagrams that have any, by `Skb::seq`.
    pub(crate) notes: Vec<Message>,
    pub(crate) numbers: Numbers,
}

impl Index<u32> for Sockets {
    type Output = Sock;
    #[inline]
    fn index(&self, sock: u32) -> &Sock {
        &self.all[sock as usize]
    }
}
impl IndexMut<u32> for Sockets {
    #[inline]
    fn index_mut(&mut self, sock: u32) -> &mut Sock {
        &mut self.all[sock as usize]
    }
}
impl Sockets {
    /// A socket by its number, where there is one.
    #[inline]
    pub(crate) fn get(&self, sock: u32) -> Option<&Sock> {
        self.all.get(sock as usize)
    }
    /// The same, to be changed.
    #[inline]
    pub(crate) fn get_mut(&mut self, sock: u32) -> Option<&mut Sock> {
        self.all.get_mut(sock as usize)
    }
    /// A socket that has no address yet; answers its number.
    pub(crate) fn add(&mut self, host: u32, app: u32, opts: SockOpts, priority: u32, kind: Kind) -> u32 {
        let sock = self.numbers.next(&mut self.all, Sock::gone);
        self.all.push(Sock { host, app, opts, priority, kind, ..Sock::gone() });
        sock
    }
    /// Keeps the contents of a datagram; answers the `seq` to send it with.
    pub(crate) fn note(&mut self, values: Vec<i64>) -> u64 {
        self.notes.push(Message { kind: 0, values, text: String::new() });
        self.notes.len() as u64 - 1
    }
}

/// What kind of socket it is.
pub(crate) enum Kind {
    /// Listens for connections.
    Listener(Listener),
    /// One side of a connection.
    Tcp(Box<TcpSock>),
    /// Datagrams.
    Udp(UdpSock),
    /// Closed; the number is not used again.
    Gone,
}

/// A listening socket.
pub(crate) struct Listener {
    pub(crate) cfg: Box<Config>,
    /// How many connections may wait until the program takes them: none ever does here.
    pub(crate) backlog: u32,
    /// Accepted connections read and forget by themselves.
    pub(crate) sink: bool,
    /// Its queue of Fast Open.
    pub(crate) fast: Queue,
}

/// TCP's half of a socket.
#[repr(C)]
pub(crate) struct TcpSock {
    // With each segment, in this order: what lies together comes into the cache together.
    /// Its segments are being sent.
    pub(crate) pumping: bool,
    /// What is pending did not fit: it waits until the socket is writable.
    pub(crate) blocked: bool,
    /// Close once nothing is pending.
    pub(crate) close_after: bool,
    /// Reads by itself.
    pub(crate) sink: bool,
    pub(crate) open_told: bool,
    pub(crate) readable_told: bool,
    pub(crate) eof_told: bool,
    pub(crate) over_told: bool,
    pub(crate) want_write: bool,
    /// Accepted by this listener; `NONE` for one that connected.
    pub(crate) listener: u32,
    /// Bytes still to be written as room comes; `u64::MAX`: without end.
    pub(crate) pending: u64,
    /// Bytes ever read.
    pub(crate) read: u64,
    pub(crate) timer: Timer,
    pub(crate) end: Endpoint,
    // The others.
    /// Bytes ever written, with what is pending.
    pub(crate) written: u64,
    /// Of what its program writes, bytes that have gone with the SYN.
    pub(crate) in_syn: u64,
    /// Messages on their way to this socket, with the count of bytes read at which each is complete.
    pub(crate) inbox: VecDeque<(u64, Message)>,
}

/// UDP's half of a socket.
#[derive(Default)]
pub(crate) struct UdpSock {
    pub(crate) connected: bool,
    /// `sk_sndbuf`, bytes.
    pub(crate) sndbuf: u32,
    /// `sk_wmem_alloc`: memory of packets that are still in this host, and their payload.
    pub(crate) wmem: u64,
    pub(crate) out_bytes: u64,
    pub(crate) want_write: bool,
    /// `IP_RECVERR`: its program hears of each ICMP error.
    pub(crate) recverr: bool,
    /// Sends back what comes (RFC 862).
    pub(crate) echoes: bool,
    /// An ICMP error to be told at the next call.
    pub(crate) error: Option<&'static str>,
}

/// The sockets of one host.
pub(crate) struct SocketTable {
    /// Connections by local port and peer.
    pub(crate) connections: BTreeMap<(u16, IpAddr, u16), u32>,
    pub(crate) listeners: BTreeMap<u16, u32>,
    pub(crate) udp: BTreeMap<u16, u32>,
    /// Who waits for echo replies, by ICMP identifier.
    pub(crate) pings: Vec<(u16, u32, u32)>,
    /// Raw sockets that see segments of their peer and hear of errors about what is sent to it: the protocol, the peer, and the program of each.
    pub(crate) raws: Vec<(u8, IpAddr, u32)>,
    /// Programs by their number in the world: their names and the numbers of their processes.
    pub(crate) processes: BTreeMap<u32, (String, u32)>,
    pub(crate) rng: Rng,
    /// The key of Fast Open that it has drawn, where none is set; whether a black hole was seen.
    pub(crate) fast_key: Option<[u8; 16]>,
    pub(crate) hole: Blackhole,
    /// Sockets that there have been.
    pub(crate) made: u32,
    pub(crate) port_offset: u16,
    pub(crate) ports_used: u16,
    /// Of each protocol and parity: no port is free any more, so that nobody looks again until one is given back.
    pub(crate) full: [[bool; 2]; 2],
    /// Peers to which every port of a parity has a connection; the same.
    pub(crate) full_towards: BTreeSet<(Addr, u32)>,
}

impl SocketTable {
    pub(crate) fn new(mut rng: Rng) -> SocketTable {
        let port_offset = rng.next_u32() as u16;
        SocketTable {
            connections: BTreeMap::new(),
            listeners: BTreeMap::new(),
            udp: BTreeMap::new(),
            pings: Vec::new(),
            raws: Vec::new(),
            processes: BTreeMap::new(),
            rng,
            fast_key: None,
            hole: Blackhole::default(),
            made: 0,
            port_offset,
            ports_used: 0,
            full: [[false; 2]; 2],
            full_towards: BTreeSet::new(),
        }
    }
}

#[cfg(test)]
impl SocketTable {
    /// The initial sequence number of the next connection follows from this.
    pub(crate) fn set_isn(&mut self, seed: u32) {
        self.rng = Rng::named(u64::from(seed), "isn");
    }
}

impl SocketTable {
    /// A port is free again.
    pub(crate) fn given_back(&mut self, tcp: bool) {
        self.full[usize::from(tcp)] = [false; 2];
        if tcp {
            self.full_towards.clear();
        }
    }
}

impl TcpSock {
    pub(crate) fn new(end: Endpoint, listener: u32, sink: bool) -> TcpSock {
        TcpSock {
            end,
            timer: Timer::default(),
            listener,
            pending: 0,
            close_after: false,
            sink,
            open_told: false,
            readable_told: false,
            eof_told: false,
            over_told: false,
            want_write: false,
            blocked: false,
            pumping: false,
            written: 0,
            in_syn: 0,
            read: 0,
            inbox: VecDeque::new(),
        }
    }
}

/// What a frame owes to the memory of the socket that made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Owed {
    /// `Skb::flow`; 0 for one that no socket of this host made.
    pub(crate) flow: u32,
    /// The port that a datagram of no flow came from: an answer, of a server of many; else 0.
    pub(crate) port: u16,
    /// Payload of its TCP segment.
    pub(crate) tcp_payload: u32,
    /// What is behind the IP header.
    pub(crate) ip_payload: u32,
    /// The headers of Ethernet and IP.
    pub(crate) headers: u32,
    /// Whether its memory is free already, or is all that comes free of it: it stays in the host.
    pub(crate) part: Owing,
}

/// The port a datagram comes from; 0 of what is none.
#[cold]
fn port_of(l4: &L4) -> u16 {
    if let L4::Udp(udp) = l4 { udp.sport } else { 0 }
}

/// What of a frame is over for the socket that made it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Owing {
    /// It leaves, and with it its memory.
    #[default]
    Both,
    /// It leaves; its memory is free already.
    Place,
    /// Its memory; it stays in a queue of the host.
    Memory,
    /// Nothing: it was cut into `ip_payload` packets more, each of which has memory of its own.
    Cut,
}

impl Owed {
    /// Whether a socket may have made this packet, and wait for its memory: it is a flow's, or a datagram.
    #[inline(always)] // Of each packet.
    pub(crate) fn any(packet: &Packet) -> bool {
        packet.flow != 0 || matches!(packet.l4, L4::Udp(_))
    }
    #[inline(always)] // Of each packet.
    pub(crate) fn of(packet: &Packet) -> Owed {
        let role = packet.tc.role;
        // What came in, and a qdisc's copy, belongs to no socket here.
        let own = packet.iif <= LOOPBACK && !(role.is_copy() && role.is_orphan()) && !role.is_unshared();
        let flow = if own { packet.flow } else { 0 };
        let part = if role.is_orphan() { Owing::Place } else { Owing::Both };
        let (len, headers, l4) = packet.as_sent();
        let mut owed = Owed { part, ..Owed::by(flow, len, headers, l4) };
        if own && flow == 0 {
            owed.port = port_of(l4);
        }
        if packet.is_noted() { owed.of_segment(packet) } else { owed }
    }
    /// The same of a segment of a super-packet that was cut on its way to the wire.
    #[cold]
    fn of_segment(self, packet: &Packet) -> Owed {
        match packet.rare().segment.map(|s| s.by) {
            Some(Cutter::Card(0)) => Owed::default(),
            Some(Cutter::Card(payload)) => Owed { tcp_payload: payload, ..self },
            Some(Cutter::Kernel) if self.part == Owing::Both => Owed { part: Owing::Memory, ..self },
            _ => self,
        }
    }
    /// What comes free of a packet that a qdisc has orphaned.
    pub(crate) fn to(orphan: Orphan) -> Owed {
        let mut owed = Owed::by(orphan.flow, orphan.len, orphan.header_len, &orphan.l4);
        if orphan.flow == 0 {
            owed.port = port_of(&orphan.l4);
        }
        match orphan.freed {
            Freed::Memory => Owed { part: Owing::Memory, ..owed },
            Freed::Place => Owed { part: Owing::Place, ..owed },
            Freed::All => owed,
            Freed::Cut(more) => Owed { part: Owing::Cut, ip_payload: more, ..owed },
        }
    }
    fn by(flow: u32, len: u32, header_len: u32, l4: &L4) -> Owed {
        let ip_payload = len.saturating_sub(header_len);
        let tcp_payload = match l4 {
            L4::Tcp(tcp) => ip_payload.saturating_sub(tcp.header_len()),
            _ => 0,
        };
        Owed { flow, port: 0, tcp_payload, ip_payload, headers: header_len, part: Owing::Both }
    }
}
