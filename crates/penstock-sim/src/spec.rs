//! What a world is built from: links, processing costs, flows. Plain data.

use penstock_model::traffic::{Dist, Load, TcpWishes, TxTimeWish};
use penstock_model::{Rate, Span, Time};
use penstock_packet::Skb;
use std::fmt;

/// A host of this world, in the order of [`World::add_host`](crate::World::add_host).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId(pub u32);
/// A link, in the order of [`World::add_link`](crate::World::add_link).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkId(pub u32);
/// A program, in the order of [`World::add_app`](crate::World::add_app).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AppId(pub u32);
/// A flow: one direction's data of a connection, a stream of datagrams, a series of echoes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FlowId(pub u32);

/// Why a world cannot be built so. The sentence says what to write instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BuildError(pub String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
impl std::error::Error for BuildError {}

/// Which bytes count when a frame is put on the wire.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// As on real Ethernet: the frame is padded to 60 bytes, then FCS 4, preamble 8, inter-frame gap 12 come
    /// (IEEE 802.3). What "100mbit" on a plug means: one TCP connection gets 94.1 Mbit/s of it. The default.
    #[default]
    Ethernet,
    /// The frame's own bytes only (`skb->len`, Ethernet header included), as qdiscs count.
    None,
    /// The bytes of the IP packet, as simulators count that know no Ethernet. ARP counts its 28.
    Ip,
    /// PPP over SONET (RFC 2615, framed as RFC 1662 says): flag 1, address 1, control 1, protocol 2 and FCS 4 beside the IP packet. The
    /// rate is that of the payload, 149.76 Mbit/s for STM-1.
    Pos,
    /// FDDI (ISO 9314-2, RFC 1188): preamble 8, starting delimiter 1, frame control 1, addresses 12, LLC and SNAP 8, FCS 4, ending
    /// delimiter and status 2 beside the IP packet.
    Fddi,
    /// ATM cells (AAL5, RFC 2684 with LLC): 8 and 8 bytes beside the IP packet, filled up to cells of 48 bytes, which take 53.
    Atm,
    /// PPP on a serial line (a modem): flag, address, control, protocol, FCS, flag (RFC 1662), 8 bytes beside the IP packet. Escaped bytes are not
    /// counted: what a packet holds is not known.
    Ppp,
    /// Frame Relay: flag, address of two bytes, control, NLPID, FCS, flag (RFC 2427), 8 bytes beside the IP packet.
    FrameRelay,
    /// Token Ring: SD, AC, FC, two addresses, LLC and SNAP, FCS, ED, FS (RFC 1042), 29 bytes beside the IP packet.
    TokenRing,
}

impl Framing {
    /// Bytes that a packet occupies on the wire. The tag of a VLAN beside its frame is 4 bytes of an Ethernet header.
    #[inline]
    pub(crate) fn of(self, packet: &Skb) -> u32 {
        let tagged = packet.is_noted() && packet.rare().vlan.is_some();
        let tag = u32::from(tagged && matches!(self, Framing::Ethernet | Framing::None));
        self.wire_len(packet.len + 4 * tag)
    }
    /// Bytes that a frame of `len` bytes occupies on the wire.
    #[inline]
    pub const fn wire_len(self, len: u32) -> u32 {
        match self {
            Framing::Ethernet => (if len < 60 { 60 } else { len }) + 24,
            Framing::None => len,
            Framing::Ip => len.saturating_sub(14),
            Framing::Pos => len.saturating_sub(14) + 9,
            Framing::Fddi => len.saturating_sub(14) + 36,
            Framing::Atm => (len.saturating_sub(14) + 16).div_ceil(48) * 53,
            Framing::Ppp | Framing::FrameRelay => len.saturating_sub(14) + 8,
            Framing::TokenRing => len.saturating_sub(14) + 29,
        }
    }
}

/// What a link that does not understand ECN does to the ECN field of packets. The default: nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Bleach {
    /// The field stays.
    #[default]
    No,
    /// Both bits are cleared: no router behind it may mark, and no mark set before it arrives.
    Ect,
    /// Only marks are lost: CE becomes ECT(0).
    Ce,
}

/// Whether the ends may send at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Duplex {
    /// Both directions at once. The default for two ends.
    #[default]
    Full,
    /// One frame on the segment at a time, as on a hub; always so with more than two ends. Who waits gets its turn
    /// in the order in which it began to wait: collisions cost no time.
    Half,
}

/// One end of a link. What is `None` here is as the link says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct End {
    /// The host.
    pub host: HostId,
    /// The device's name, e.g. `eth0`; made when the host has none of that name yet.
    pub device: String,
    /// Rate at which this end sends.
    pub rate: Option<Rate>,
    /// Delay of what this end sends.
    pub delay: Option<Span>,
    /// Loss of what this end sends, parts per 1,000,000,000.
    pub loss_ppb: Option<u32>,
    /// What happens to the ECN field of what this end sends.
    pub bleach: Option<Bleach>,
    /// Frames the NIC takes from the qdisc ahead of the one on the wire. Default 0: the qdisc is the queue.
    pub ring: u32,
    /// With a ring: after how many sent frames the driver is told, so that it frees their memory and fills their places. Default 1.
    pub tx_frames: u32,
    /// With a ring: whether the driver counts bytes (BQL), so that the ring takes no more than keeps the card busy. Default `false`.
    pub bql: bool,
    /// How what this end sends with changes in the run; where it says nothing the values above hold. Default: nothing changes.
    pub course: Option<crate::course::Course>,
}

impl End {
    /// An end with the link's own rate, delay and loss.
    pub fn new(host: HostId, device: &str) -> End {
        End {
            host,
            device: device.to_owned(),
            rate: None,
            delay: None,
            loss_ppb: None,
            bleach: None,
            ring: 0,
            tx_frames: 1,
            bql: false,
            course: None,
        }
    }
}

/// A link between two ends, or a segment that several share.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkSpec {
    /// Name, for random streams and results; `host:dev-host:dev` where it is empty.
    pub name: String,
    /// Two ends or more.
    pub ends: Vec<End>,
    /// Rate; `None`: frames take no time to send.
    pub rate: Option<Rate>,
    /// Propagation delay. Default 0.
    pub delay: Span,
    /// Loss, parts per 1,000,000,000; each frame is lost with this chance after it was sent. Default 0.
    pub loss_ppb: u32,
    /// What happens to the ECN field. Default nothing.
    pub bleach: Bleach,
    /// Which bytes count on the wire.
    pub framing: Framing,
    /// Whether the two ends may send at once.
    pub duplex: Duplex,
}

impl LinkSpec {
    /// A full-duplex link without loss between two ends.
    pub fn new(a: End, b: End, rate: Option<Rate>, delay: Span) -> LinkSpec {
        LinkSpec {
            name: String::new(),
            ends: vec![a, b],
            rate,
            delay,
            loss_ppb: 0,
            bleach: Bleach::No,
            framing: Framing::default(),
            duplex: Duplex::default(),
        }
    }
}

/// What a host's processor spends on each frame that comes in, before it is forwarded or delivered. One server,
/// first come first served; frames that find `net.core.netdev_max_backlog` waiting are dropped, 1000 unless set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// Time per frame.
    pub packet: Dist,
    /// Time per byte of the frame, picoseconds.
    pub byte_ps: u64,
    /// Time per timer interrupt (`HZ` a second), which frames wait for too.
    pub tick: Span,
    /// Time of a program's call that sends a datagram (iperf3's): the programs of a host take turns call by call.
    pub send: Span,
    /// Time of a step of classification: a priority of filters asked, a filter of `u32` compared, a rule of the packet filter looked
    /// at. It is spent when the packet has passed, and the frames behind it wait.
    pub classify: Span,
    /// Time of reading the packet scheduler's clock, which `cbq`, `htb` and `tbf` do.
    pub clock: Span,
    /// How long until another thread of a program has the processor: iperf's, which prints, reads the window then.
    pub thread: Dist,
    /// Time per frame in addition, where a qdisc that was set up stands before any of the host's cards.
    pub qdisc: Span,
    /// When another task of the machine holds the processor, and for how long: in the order of time, none before the one before ends.
    pub pauses: Vec<(Time, Span)>,
}

impl Cost {
    /// No time at all: the default.
    pub const ZERO: Cost = Cost {
        packet: Dist::ZERO,
        byte_ps: 0,
        tick: Span::ZERO,
        send: Span::ZERO,
        classify: Span::ZERO,
        clock: Span::ZERO,
        thread: Dist::ZERO,
        qdisc: Span::ZERO,
        pauses: Vec::new(),
    };
}

/// Whose TCP and sockets a host has, beyond its kernel profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Stack {
    /// Linux of the host's kernel profile.
    #[default]
    Linux,
    /// Windows XP: 8 KB windows, no timestamps; its programs print their Windows forms.
    WindowsXp,
    /// A Cisco router's: a window of 4128 bytes, no SACK, no timestamps.
    Ios,
    /// A Sun with Solaris 2.6: 8 KB windows, late acknowledgements; the rest of the machine is a Linux.
    Solaris,
}

/// Which iperf 2 a host has; with 2.1 and 2.2 goes an iperf3 since 3.2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Iperf {
    /// 2.0.4 and 2.0.5: a client of TCP has ended when its last write returns; what its socket still holds counts as sent.
    #[default]
    V2_0,
    /// 2.1: it ends its side of the connection then, and waits until the server has closed the other; only then its clock
    /// stops. A server of UDP stops its clock with the datagram before the last, whose repetitions may come much later.
    V2_1,
    /// 2.2: the same, with the options of 2.2.1, and printed as that does.
    V2_2,
}

/// Traffic without a command line: one flow or many alike.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowSpec {
    /// Name; with `count` above 1 a number is appended. `from-to` where it is empty.
    pub name: String,
    /// Group, for results; may be empty.
    pub group: String,
    /// Sender.
    pub from: HostId,
    /// Receiver.
    pub to: HostId,
    /// Address of the receiver; `None`: its first.
    pub to_addr: Option<std::net::IpAddr>,
    /// Over IPv6, whatever addresses of IPv4 the receiver has. Default: only where it has none of these.
    pub ipv6: bool,
    /// How many. Default 1.
    pub count: u32,
    /// TCP or UDP and what goes with it.
    pub transport: Transport,
    /// What is sent.
    pub load: Load,
    /// Earliest start; each flow starts at a moment between this and `start_to`, chosen by the seed.
    pub start: Time,
    /// Latest start; `start` for a common one.
    pub start_to: Time,
    /// When sending ends; `None`: with the run, or when the bytes are through.
    pub stop: Option<Time>,
    /// ToS byte.
    pub tos: u8,
    /// Firewall mark of the socket (`SO_MARK`).
    pub mark: u32,
    /// Destination port; 0: chosen.
    pub port: u16,
    /// The clock that its packets are timed by.
    pub clock: SenderClock,
    /// The times of departure that its datagrams ask for. UDP only.
    pub txtime: Option<TxTimeWish>,
    /// Whether each datagram is kept account of ([`FlowResult::passages`](crate::FlowResult::passages)).
    pub trace: bool,
}

/// How a sender's clock differs from the true time. A perfect one is the default.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SenderClock {
    /// It is too fast or too slow by up to so many millionths; how much is drawn for each flow.
    pub drift_ppm: u32,
    /// Each packet leaves up to so much too early or too late, not added up.
    pub jitter: Span,
}

/// How a flow's data travel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Transport {
    /// A TCP connection.
    Tcp(TcpWishes),
    /// UDP datagrams.
    Udp,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_on_different_wires() {
        // An IP packet of 1500 bytes and one of 40, in frames of 1514 and 54.
        for (framing, full, short) in [
            (Framing::Ethernet, 1538, 84),
            (Framing::None, 1514, 54),
            (Framing::Ip, 1500, 40),
            (Framing::Pos, 1509, 49),
            (Framing::Fddi, 1536, 76),
            // 1516 bytes are 32 cells; 56 are two.
            (Framing::Atm, 32 * 53, 2 * 53),
            (Framing::Ppp, 1508, 48),
            (Framing::FrameRelay, 1508, 48),
            (Framing::TokenRing, 1529, 69),
        ] {
            assert_eq!((framing.wire_len(1514), framing.wire_len(54)), (full, short), "{framing:?}");
        }
    }

    #[test]
    fn ethernet_counts_what_the_plug_says() {
        assert_eq!(Framing::Ethernet.wire_len(1514), 1538);
        assert_eq!(Framing::Ethernet.wire_len(42), 84);
        assert_eq!(Framing::None.wire_len(42), 42);
        assert_eq!(Framing::Ip.wire_len(1514), 1500);
    }
}
