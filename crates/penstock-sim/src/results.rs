//! What a run gives: per program, per flow, drops, series. Times in ns, amounts in bytes, all integers.

use crate::histogram::Histogram;
use crate::spec::{AppId, FlowId, HostId};
use penstock_model::{Span, Time};
use std::collections::BTreeMap;

/// Everything a run gives.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Results {
    /// Programs, in the order they were added.
    pub apps: Vec<AppResult>,
    /// Flows: those added as such, and those the programs made, in the order of their making.
    pub flows: Vec<FlowResult>,
    /// Lost packets by place and reason.
    pub drops: BTreeMap<DropKey, DropCount>,
    /// Commands of the timetable with what they printed.
    pub commands: Vec<CommandResult>,
    /// The series, if sampling was on.
    pub series: SeriesSet,
    /// When the run ended.
    pub ended: Time,
    /// Packets over links: one packet over one link is one hop.
    pub packet_hops: u64,
    /// Events handled.
    pub events: u64,
    /// Since when flows and waits are counted: 0, or the end of the warm-up.
    pub counted_from: Time,
    /// How long frames waited at each device that sent any.
    pub sojourns: Vec<Sojourn>,
    /// What devices sent and lost that were to be watched ([`World::watch`](crate::World::watch)).
    pub watched: Vec<Watched>,
    /// Time that each host's processor spent on frames and timer interrupts, in the order of the hosts; 0 where they cost
    /// nothing.
    pub busy: Vec<Span>,
}

/// One program's run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AppResult {
    /// Which.
    pub id: AppId,
    /// Where.
    pub host: HostId,
    /// The command line.
    pub run: String,
    /// First word of the command line.
    pub program: String,
    /// What it printed, standard output and error in order.
    pub output: String,
    /// How many bytes at the end of that are standard error: why it did not begin.
    pub complaint: usize,
    /// Exit status; `None`: still running when the run ended.
    pub exit: Option<i32>,
    /// When it started; [`Time::MAX`] if it waits for another's end.
    pub started: Time,
    /// When it ended.
    pub ended: Option<Time>,
    /// Payload bytes it sent or received, by its own count.
    pub bytes: Option<u64>,
    /// The length of time that its own report divides the bytes by.
    pub duration: Option<Span>,
    /// Throughput by its own count, bit/s, rounded down.
    pub throughput_bit_s: Option<u64>,
    /// Round trips (ping).
    pub rtt: Option<Histogram>,
    /// Every round trip in order, ns (ping).
    pub rtts: Vec<i64>,
    /// When each of them was measured.
    pub rtt_times: Vec<Time>,
    /// Standard deviation of the round trips as ping prints it, ns.
    pub rtt_mdev: Option<Span>,
    /// Sent and received packets by its own count (ping, UDP).
    pub packets: Option<(u64, u64)>,
    /// Jitter by its own count (UDP).
    pub jitter: Option<Span>,
    /// Its interval reports.
    pub intervals: Vec<Interval>,
    /// The flows it made.
    pub flows: Vec<FlowId>,
    /// The flow it and its server talk over beside those (iperf3).
    pub control: Option<FlowId>,
}

impl AppResult {
    pub(crate) fn new(id: AppId, host: HostId, run: &str, program: &str, at: Time) -> AppResult {
        AppResult {
            id,
            host,
            run: run.to_owned(),
            program: program.to_owned(),
            output: String::new(),
            complaint: 0,
            exit: None,
            started: at,
            ended: None,
            bytes: None,
            duration: None,
            throughput_bit_s: None,
            rtt: None,
            rtts: Vec::new(),
            rtt_times: Vec::new(),
            rtt_mdev: None,
            packets: None,
            jitter: None,
            intervals: Vec::new(),
            flows: Vec::new(),
            control: None,
        }
    }
}

/// One line of an interval report.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// Stream within the program, from 0.
    pub stream: u32,
    /// From, since the start of the transfer.
    pub from: Span,
    /// To.
    pub to: Span,
    /// Bytes.
    pub bytes: u64,
}

/// One flow.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowResult {
    /// Which.
    pub id: FlowId,
    /// Its name.
    pub name: String,
    /// Its group; may be empty.
    pub group: String,
    /// Sending host.
    pub from: HostId,
    /// Receiving host.
    pub to: HostId,
    /// `tcp`, `udp` or `icmp`.
    pub proto: &'static str,
    /// When the sender began; the warm-up's end where that was before it.
    pub started: Option<Time>,
    /// Whether it began while the run warmed up.
    pub early: bool,
    /// When it had sent everything (and TCP was told that all arrived).
    pub completed: Option<Time>,
    /// Packets sent by the source, retransmissions included.
    pub sent_packets: u64,
    /// Their bytes as frames (`skb->len`).
    pub sent_bytes: u64,
    /// Of these, packets that reached the receiving host's socket layer. Of echoes: those that were answered, and whose answer
    /// arrived.
    pub received_packets: u64,
    /// Of these, packets dropped on the way. A datagram that was cut into fragments is lost once, with the first of them.
    pub lost_packets: u64,
    /// Of these, packets under way at the end: in a qdisc, a card, on a wire, waiting for ARP, a processor or other fragments. All
    /// that were sent are received, lost or in flight.
    pub in_flight_packets: u64,
    /// Where the lost ones were lost.
    pub losses: Vec<(DropKey, u64)>,
    /// Copies of its packets: mirred's, and frames to all on a shared segment.
    pub copies: Extra,
    /// Fragments of its packets.
    pub fragments: Extra,
    /// Packets that arrived since counting began, also those that were sent before; copies are not among them.
    pub arrived_packets: u64,
    /// Their bytes as frames.
    pub received_bytes: u64,
    /// Those of them that arrived with CE.
    pub marked_packets: u64,
    /// Packets that were retransmissions.
    pub retransmitted_packets: u64,
    /// Payload bytes delivered in order to the application.
    pub goodput_bytes: u64,
    /// First and last arrival at the receiver.
    pub received_span: Option<(Time, Time)>,
    /// One-way delays, ns, from the moment the transport made the packet.
    pub owd: Histogram,
    /// Interarrival jitter (RFC 3550 section 6.4.1) after the last packet.
    pub jitter: Span,
    /// Mean of the jitter over all packets.
    pub jitter_mean: Span,
    /// The greatest it was.
    pub jitter_max: Span,
    /// What the sending TCP says of itself, at its end or the run's.
    pub tcp: Option<TcpResult>,
    /// Its losses and marks, device by device.
    pub places: Vec<Place>,
    /// How long each of its transfers took, ns, where it makes several (pages).
    pub transfers: Histogram,
    /// Each datagram in the order of sending, where the flow was to be traced.
    pub passages: Vec<Passage>,
    /// Round trips of an echo probe: when the answer came, how long it took.
    pub rtts: Vec<(Time, Span)>,
}

/// What became of packets that were made beside those a flow sent. What was made is received, lost or in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Extra {
    /// How many were made.
    pub made: u64,
    /// How many arrived, alone or as part of a datagram.
    pub received: u64,
    /// How many were dropped.
    pub lost: u64,
    /// How many are under way.
    pub in_flight: u64,
}

/// A packet that a watched device sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Carried {
    /// Its code point, 0..=63, as it left.
    pub code: u8,
    /// Its flow's number; `u32::MAX` for one of no flow.
    pub flow: u32,
    /// Length of the IP packet, bytes.
    pub bytes: u32,
    /// When it was given to the device.
    pub arrived: Time,
    /// When its first bit was put on the wire.
    pub begun: Time,
    /// When its last bit was.
    pub left: Time,
}

/// What a watched device sent and lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Watched {
    /// Its host.
    pub host: HostId,
    /// Its name.
    pub device: String,
    /// IP packets in the order in which it sent them.
    pub sent: Vec<Carried>,
    /// How many it lost, by code point.
    pub lost: Vec<u64>,
}

/// What a flow met at one device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// The host; for loss on a link, the one that sent.
    pub host: HostId,
    /// The device it was to leave by; empty where there is none.
    pub device: String,
    /// How much.
    pub count: PlaceCount,
}

/// Losses and marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PlaceCount {
    /// Packets lost; of one that was cut into fragments the first loss counts.
    pub lost_packets: u64,
    /// Bytes of all that was dropped, as IP packets.
    pub lost_bytes: u64,
    /// Packets that left with a congestion mark they had not come with.
    pub marked_packets: u64,
    /// Their bytes as IP packets.
    pub marked_bytes: u64,
}

/// How long frames waited at a device, from the discipline's enqueue to the card's taking them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sojourn {
    /// The host.
    pub host: HostId,
    /// The device.
    pub device: String,
    /// Waits, ns.
    pub waits: Histogram,
}

/// One datagram's way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Passage {
    /// Bytes of payload.
    pub bytes: u32,
    /// When it was sent.
    pub sent: Time,
    /// When it arrived; `None`: lost, or still under way.
    pub received: Option<Time>,
}

/// What the sending TCP says of itself at the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TcpResult {
    /// Congestion window, packets.
    pub cwnd: u32,
    /// Slow-start threshold, packets.
    pub ssthresh: u32,
    /// Smoothed round trip.
    pub srtt: Span,
    /// Payload bytes acknowledged by the peer.
    pub acked_bytes: u64,
    /// Segments retransmitted.
    pub retransmitted: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub recoveries: u64,
}

/// Where and why a packet was lost.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct DropKey {
    /// The host; for loss on a link, the one that sent.
    pub host: HostId,
    /// The device it was to leave by, or came in by; empty where there is none.
    pub device: String,
    /// The place: `qdisc`, `arp`, `ip_forward`, a netfilter chain… as the host names them, `link`, `cpu`, `socket`.
    pub place: &'static str,
    /// The reason in a word.
    pub reason: &'static str,
}

/// How much was lost so, of what was made since counting began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DropCount {
    /// Packets, fragments and copies.
    pub packets: u64,
    /// Bytes as frames.
    pub bytes: u64,
    /// How many of them were fragments (and no copies).
    pub fragments: u64,
    /// How many were copies.
    pub copies: u64,
}

/// A command of the timetable and what came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommandResult {
    /// Where.
    pub host: HostId,
    /// When.
    pub at: Time,
    /// The line.
    pub line: String,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit status.
    pub status: i32,
}

/// All series, with one common clock.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SeriesSet {
    /// The sampling instants.
    pub times: Vec<Time>,
    /// The series.
    pub series: Vec<Series>,
}

/// One quantity over time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// Where it was measured; `None` for flows.
    pub host: Option<HostId>,
    /// What: `eth0`, `eth0 htb 1:`, `eth0 class 1:10`, `flow NAME`.
    pub object: String,
    /// Which object of the host, as a number: finds the series again.
    pub(crate) key: u64,
    /// Which quantity.
    pub metric: Metric,
    /// Index into the times of the first value: an object may come to be later than the run.
    pub first: usize,
    /// Values. Cumulative for counters ([`Metric::is_counter`]).
    pub values: Vec<i64>,
}

impl Series {
    /// The flow it is of; `None` for what was measured on a machine.
    pub fn flow(&self) -> Option<FlowId> {
        self.host.is_none().then_some(FlowId(self.key as u32))
    }
}

/// The quantities that are sampled.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Metric {
    /// Bytes that left (counter).
    Bytes,
    /// Packets that left (counter).
    Packets,
    /// Packets dropped (counter).
    Drops,
    /// Bytes waiting (gauge).
    Backlog,
    /// Packets waiting (gauge).
    Qlen,
    /// Payload bytes delivered in order (counter).
    Goodput,
    /// Congestion window, packets (gauge).
    Cwnd,
    /// Slow-start threshold, packets; from the first reduction on (gauge).
    Ssthresh,
    /// Smoothed round trip, ns (gauge).
    Srtt,
    /// Mean deviation of the round trip, ns (gauge).
    Rttvar,
    /// Retransmission timeout in force, ns (gauge).
    Rto,
    /// The rate at which TCP lets segments leave, bytes a second (gauge).
    PacingRate,
    /// The latest rate at which they arrived, bytes a second (gauge).
    DeliveryRate,
    /// Packets sent that SACKs have reported, and that are held for lost (gauges).
    Sacked,
    /// See [`Metric::Sacked`].
    Lost,
    /// Packets retransmitted (counter).
    Retrans,
    /// Packets a class sent on an ancestor's allowance, or lent (counter).
    Borrowed,
    /// Times a class was over its limit and nobody lent (counter).
    Overlimits,
    /// Times cbq put a class off for it (counter).
    Overactions,
    /// cbq: average idle time of a class, scaled by 2^ewma, ticks (gauge).
    Avgidle,
    /// cbq: how long a class is over its limit yet, ticks; 0 where it is under (gauge).
    Undertime,
    /// Time the processor spent on frames and timer interrupts, ns (counter).
    Processor,
    /// Packets marked by routers so far (gauge; there is none before the first).
    Marks,
    /// Mean one-way delay of the packets since the sample before, ns (gauge; 0 without any).
    Owd,
}

impl Metric {
    /// Whether values only grow: differences are the quantity.
    pub const fn is_counter(self) -> bool {
        use Metric::*;
        matches!(self, Bytes | Packets | Drops | Goodput | Borrowed | Overlimits | Overactions | Processor)
    }
    /// The name in records.
    pub const fn as_str(self) -> &'static str {
        match self {
            Metric::Bytes => "bytes",
            Metric::Packets => "packets",
            Metric::Drops => "drops",
            Metric::Backlog => "backlog",
            Metric::Qlen => "qlen",
            Metric::Goodput => "goodput",
            Metric::Cwnd => "cwnd",
            Metric::Ssthresh => "ssthresh",
            Metric::Srtt => "srtt",
            Metric::Rttvar => "rttvar",
            Metric::Rto => "rto",
            Metric::PacingRate => "pacing_rate",
            Metric::DeliveryRate => "delivery_rate",
            Metric::Sacked => "sacked",
            Metric::Lost => "lost",
            Metric::Retrans => "retrans",
            Metric::Borrowed => "borrowed",
            Metric::Overlimits => "overlimits",
            Metric::Overactions => "overactions",
            Metric::Avgidle => "avgidle",
            Metric::Undertime => "undertime",
            Metric::Processor => "processor",
            Metric::Owd => "owd",
            Metric::Marks => "marks",
        }
    }
}
