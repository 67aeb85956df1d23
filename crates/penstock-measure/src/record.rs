//! The run record: what `record.json` holds.
//!
//! Follows: the record format 2. A field that does not apply is absent, never null or zero; units are
//! SI and stand in the name (`throughput_bit_s`, `rtt_ms`). Same file, seed and version give the same bytes.

mod names;

pub use names::Names;

use crate::quantile::Distribution;
use crate::scores::Scores;
use serde::{Deserialize, Serialize};

/// The format this version writes.
///
/// 2: `payload_bytes`, `sent_bytes` and `received_bytes` of flows, `together`, `per_hop`, `rtt_ms` of groups, `why` of expectations; `fix` of findings
/// (format 1: `mend`).
pub const FORMAT: u32 = 2;

/// One run: what was asked, what was measured, how it was judged.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Version of this format; [`FORMAT`].
    pub format: u32,
    /// Version of the program that wrote it.
    pub penstock: String,
    /// The experiment's title.
    pub title: String,
    /// What the experiment says about itself.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub about: Option<String>,
    /// Where it ran: `sim`, `kernel`, `virtual`.
    pub ground: String,
    /// The seed of all chance in it.
    pub seed: u64,
    /// Length of the run, seconds.
    pub duration_s: f64,
    /// The machines and links it ran on.
    pub rig: Rig,
    /// The experiment file as it was read.
    pub experiment: String,
    /// The programs, in the order of the file.
    #[serde(default)]
    pub apps: Vec<App>,
    /// The flows, those that were described first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub flows: Vec<Flow>,
    /// The groups of flows, by name.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub groups: Vec<Group>,
    /// What a `[[flow]]` that makes several measured of all of them.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub together: Vec<Together>,
    /// The devices with their qdiscs and classes at the end.
    #[serde(default)]
    pub devices: Vec<Device>,
    /// What became of the packets of some code points at a device, for the expectations that ask.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub per_hop: Vec<PerHop>,
    /// Packets lost, by machine, device, place and reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub drops: Vec<Drop>,
    /// The expectations and how they fared.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub expects: Vec<Expect>,
    /// Commands of the setup that failed where the experiment allows it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub setup_failures: Vec<SetupFailure>,
    /// What was captured.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub captures: Vec<Capture>,
    /// What the figures mean for people.
    #[serde(skip_serializing_if = "Scores::is_empty", default)]
    pub scores: Scores,
    /// What `penstock check` says of the setups.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub findings: Vec<Finding>,
    /// What could not work from the beginning, told before the run.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub warnings: Vec<Warning>,
}

/// Something of the experiment that could not work.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Warning {
    /// The experiment's file.
    pub file: String,
    /// The line it stands on, from 1.
    pub line: u32,
    /// Who cannot work, and why.
    pub message: String,
    /// What to do.
    pub help: String,
    /// Whether it came so: one of those concerned failed, or received nothing.
    pub came_true: bool,
}

/// Machines and links.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Rig {
    /// Machines in the order of the file.
    pub hosts: Vec<Host>,
    /// Links in the order of the file.
    pub links: Vec<Link>,
    /// The real machine under it; absent on the simulator.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub machine: Option<Machine>,
}

/// Facts of a real machine that the numbers depend on.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Machine {
    /// Kernel release.
    pub kernel: String,
    /// Release of iproute2.
    pub iproute2: String,
    /// Ticks of the kernel per second, where it tells.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub hz: Option<u32>,
    /// What counts the kernel's time.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub clock_source: Option<String>,
    /// Processor.
    pub cpu: String,
    /// How many processors.
    pub cpus: u32,
    /// State of GSO, TSO, GRO and checksum offload on the devices.
    pub offloads: String,
    /// What kept the links' delay and loss: `netem` or `process`.
    pub delay_by: String,
    /// Packets that the whole machine's kernel dropped during the run, by its own word for the reason (`enum skb_drop_reason`); empty where
    /// tracefs is not mounted.
    #[serde(skip_serializing_if = "std::collections::BTreeMap::is_empty", default)]
    pub drop_reasons: std::collections::BTreeMap<String, u64>,
    /// What of the experiment this ground does not do.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub notes: Vec<String>,
}

/// A machine.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Kernel profile, or absent for a router that is not a Linux.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kernel: Option<String>,
    /// Whose TCP it speaks where that is not its kernel's: `windows-xp`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tcp: Option<String>,
    /// What it is where it is not a Linux: `cisco`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub system: Option<String>,
    /// Whether it forwards packets.
    pub forwards: bool,
    /// Default gateway.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub via: Option<String>,
    /// Share of the run that its processor spent on packets, 0..=1; absent where they cost it nothing.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub processor_share: Option<f64>,
    /// Interfaces.
    pub devices: Vec<Interface>,
}

/// A network interface.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    pub dev: String,
    /// Addresses with prefix lengths.
    pub addresses: Vec<String>,
}

/// A link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Link {
    /// What it joins, `host:dev`; more than two ends share the medium.
    pub ends: Vec<String>,
    /// Rate of each direction (of the medium where it is shared), bits per second; absent for one without a limit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bit_s: Option<f64>,
    /// Rate at which each end sends, bits per second, where they differ; 0 for one without a limit.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub end_rates_bit_s: Vec<f64>,
    /// Propagation delay, one way.
    pub delay_ms: f64,
    /// Share of the frames it loses by chance, 0..=1.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub loss: Option<f64>,
}

/// Frames that were kept.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Capture {
    /// The file in the run folder, `captures/r-eth0.pcapng`.
    pub file: String,
    /// The cards, `host:dev`.
    pub on: Vec<String>,
    /// Frames sent and received there, while it was captured.
    pub packets: u64,
    /// Packets lost there.
    pub lost_packets: u64,
}

/// A program that ran.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct App {
    /// Its name in this run.
    pub name: String,
    /// The machine it ran on.
    pub host: String,
    /// Its command line.
    pub run: String,
    /// When it started, seconds from the start of the run; absent if it never did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub start_s: Option<f64>,
    /// When it ended; absent if it ran till the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end_s: Option<f64>,
    /// Exit status; absent if it ran till the end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub exit: Option<i32>,
    /// Payload bits per second that it reports.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub throughput_bit_s: Option<f64>,
    /// Payload bits per second until the run ended, of a program that had not come to its report by then.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub so_far_bit_s: Option<f64>,
    /// Whether the experiment lets it fail.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub may_fail: bool,
    /// Payload bytes that it reports.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub bytes: Option<u64>,
    /// Datagrams or probes sent.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sent_packets: Option<u64>,
    /// Datagrams or answers received.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub received_packets: Option<u64>,
    /// Datagrams or probes lost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lost_packets: Option<u64>,
    /// Segments that TCP retransmitted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retransmitted_packets: Option<u64>,
    /// Round-trip times.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt_ms: Option<Distribution>,
    /// Jitter as the program reports it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jitter_ms: Option<f64>,
    /// Its reports on the way, in order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub intervals: Vec<Interval>,
}

/// One interim report of a program.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// Stream within the program, from 0; absent where there is one only.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub stream: Option<u32>,
    /// Its begin, seconds from the program's own start.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Payload bytes in it.
    pub bytes: u64,
    /// Payload bits per second in it.
    pub throughput_bit_s: f64,
}

/// A flow: one that was described, or a connection, a stream of datagrams, a series of echoes that a program made.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Flow {
    /// Its name in this run.
    pub name: String,
    /// Sending machine.
    pub from: String,
    /// Receiving machine.
    pub to: String,
    /// `tcp` or `udp`.
    pub proto: String,
    /// The group it is counted with.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub group: Option<String>,
    /// The program that made it; absent for a flow that was described.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub app: Option<String>,
    /// The code point it is sent with (`EF`, `AF11`, or a number), unless that is 0.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dscp: Option<String>,
    /// When it started, seconds.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub start_s: Option<f64>,
    /// When its last byte arrived, for flows with an end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub end_s: Option<f64>,
    /// Packets sent after the warm-up (retransmissions included); a datagram that is cut into fragments is one. On the simulator
    /// each of them is received, lost or in flight.
    pub sent_packets: u64,
    /// Packets of these received.
    pub received_packets: u64,
    /// Packets of these lost on the way.
    pub lost_packets: u64,
    /// Packets of these still under way at the end: in qdiscs, cards and on wires, waiting for ARP, for a processor or for the
    /// rest of their fragments; absent where nobody can look.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub in_flight_packets: Option<u64>,
    /// Copies that were made of them (mirred, frames to all on a shared medium): none of these counts as sent, received or lost.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub copied_packets: Option<u64>,
    /// Fragments that were made of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fragments: Option<u64>,
    /// Where the lost ones were lost and why; together they are `lost_packets`.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub losses: Vec<Loss>,
    /// Packets that arrived with ECN's congestion mark.
    pub marked_packets: u64,
    /// Segments that TCP retransmitted.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retransmitted_packets: Option<u64>,
    /// New payload delivered, bytes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub payload_bytes: Option<u64>,
    /// Bytes of the packets sent, as frames (Ethernet header, no FCS).
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sent_bytes: Option<u64>,
    /// Bytes of the packets received, as frames.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub received_bytes: Option<u64>,
    /// New payload delivered, bits per second over the flow's life.
    pub goodput_bit_s: f64,
    /// Everything received with IP headers, bits per second over the flow's life.
    pub throughput_bit_s: f64,
    /// One-way delays.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owd_ms: Option<Distribution>,
    /// Quantiles of the one-way delays at [`crate::quantile::SHARES`]; of a flow that is one of many those of all stand in [`Together`].
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub owd_quantiles_ms: Vec<f64>,
    /// Round trips of an echo probe.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt_ms: Option<Distribution>,
    /// Interarrival jitter (RFC 3550) when the last packet had come; it forgets what was 16 packets before.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jitter_ms: Option<f64>,
    /// Mean of that jitter over all packets; on `sim`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jitter_mean_ms: Option<f64>,
    /// The greatest it ever was; on `sim`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jitter_max_ms: Option<f64>,
    /// How much later than its time each packet was handed to the kernel, µs; only where real time passes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub late_us: Option<Distribution>,
    /// What became of its datagrams one by one; only where the experiment has the flow traced.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub analysis: Option<crate::passage::Analysis>,
}

/// All flows of a `[[flow]]` that makes several (`count`, `arrivals`).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Together {
    /// Its name; each flow's is this with a number behind.
    pub name: String,
    /// How many flows.
    pub flows: u64,
    /// One-way delays of all their packets.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owd_ms: Option<Distribution>,
    /// Quantiles of these at [`crate::quantile::SHARES`].
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub owd_quantiles_ms: Vec<f64>,
    /// Round trips of echo probes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt_ms: Option<Distribution>,
}

/// The packets of some code points at a device: what per-hop behaviours promise of them.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct PerHop {
    /// Machine.
    pub host: String,
    /// The device they left by.
    pub dev: String,
    /// The code points, 0..=63, in the order of drop precedence.
    pub codes: Vec<u8>,
    /// The rate configured for them, bits per second, where the experiment says it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bit_s: Option<f64>,
    /// Packets that left.
    pub packets: u64,
    /// Packets lost.
    pub lost_packets: u64,
    /// Least and greatest time from the packet's arrival to its last bit.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub delay_ms: Option<(f64, f64)>,
    /// Difference of the two.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub jitter_ms: Option<f64>,
    /// Error terms of expedited forwarding (RFC 3246), of the aggregate and of the packet; where a rate is configured.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ea_ms: Option<f64>,
    /// As `ea_ms`.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ep_ms: Option<f64>,
    /// Packets that left behind one of their own flow that had come later.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reordered_packets: Option<u64>,
    /// Of three code points: by how much a lower drop precedence lost more than a higher one, as shares.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub precedence: Option<f64>,
    /// Share of the packets with the first code point that were put on the wire while one of another waited.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ahead: Option<f64>,
}

/// Flows that are counted together. Rates are over the time that is counted (RFC 5166).
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// How many flows.
    pub flows: u64,
    /// New payload delivered to the applications, bits per second of all the time that is counted.
    pub goodput_bit_s: f64,
    /// Everything received with IP headers, bits per second.
    pub throughput_bit_s: f64,
    /// New payload delivered, bits per second of the time in which any of its flows lived.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub active_bit_s: Option<f64>,
    /// Packets sent (retransmissions included).
    pub sent_packets: u64,
    /// Share of the packets sent that were retransmitted; absent without TCP.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub retransmission_rate: Option<f64>,
    /// Jain's index of the goodputs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fairness: Option<f64>,
    /// Least goodput over the greatest.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub min_over_max: Option<f64>,
    /// From when on Jain's index of the goodputs stays at 0.9 or more, seconds; absent where it never does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub convergence_s: Option<f64>,
    /// Mean share of the flows that lose in a sampled interval in which any loses.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub loss_synchronisation: Option<f64>,
    /// One-way delays of all its packets.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub owd_ms: Option<Distribution>,
    /// Round trips of its echo probes.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rtt_ms: Option<Distribution>,
    /// How long transfers that came to an end took, from the opening of the connection to its end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completion_ms: Option<Distribution>,
    /// How many came to an end.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub completed: Option<u64>,
    /// What it lost and where it was marked, device by device.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub links: Vec<GroupAtLink>,
}

/// What a group met at one device. Bytes are those of IP packets.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct GroupAtLink {
    /// Machine.
    pub host: String,
    /// Interface by which the packets were to leave; empty for loss on the way.
    pub dev: String,
    /// Packets dropped.
    pub lost_packets: u64,
    /// Their bits per second.
    pub lost_bit_s: f64,
    /// Packets marked.
    pub marked_packets: u64,
    /// Their bits per second.
    pub marked_bit_s: f64,
}

/// A device at the end of the run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Device {
    /// Machine.
    pub host: String,
    /// Interface.
    pub dev: String,
    /// How long frames waited for it, where any did.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub sojourn_ms: Option<Distribution>,
    /// Its qdiscs in the kernel's order.
    pub qdiscs: Vec<Qdisc>,
    /// Its classes in the kernel's order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub classes: Vec<Class>,
    /// Its meters in the order of the experiment.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub meters: Vec<Meter>,
}

/// A meter at the end of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Meter {
    /// `srtcm`, `trtcm` or `tsw`.
    pub kind: String,
    /// Packets within the profile.
    pub green_packets: u64,
    /// Packets within its excess.
    pub yellow_packets: u64,
    /// Packets beyond that.
    pub red_packets: u64,
}

/// Packets lost at one place for one reason.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Drop {
    /// The machine; of a link's loss the one that sent.
    pub host: String,
    /// The device they were to leave by or came in by; absent where it is not known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dev: Option<String>,
    /// Where: `qdisc`, `ingress`, `link`, `ip_forward`, a netfilter chain, ….
    pub place: String,
    /// Why, in a word: `overlimit`, `early`, `filter`, `loss`, …; `dropped` where a kernel does not tell.
    pub reason: String,
    /// How many that were made after the warm-up, fragments and copies among them.
    pub packets: u64,
    /// How many of them were fragments, which are no copies.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub fragments: Option<u64>,
    /// How many of them were copies.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub copies: Option<u64>,
}

/// Packets of one flow lost at one place for one reason: of a datagram in fragments, the place and reason of the first that
/// was lost.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Loss {
    /// As [`Drop::host`].
    pub host: String,
    /// As [`Drop::dev`].
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dev: Option<String>,
    /// As [`Drop::place`].
    pub place: String,
    /// As [`Drop::reason`].
    pub reason: String,
    /// How many.
    pub packets: u64,
}

/// A qdisc at the end of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Qdisc {
    /// Kind.
    pub kind: String,
    /// Handle.
    pub handle: String,
    /// Parent: `root` or a classid.
    pub parent: String,
    /// Its configured parameters in one line, as tc prints them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub options: Option<String>,
    /// Configured rate, for a kind that has one (tbf), bits per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bit_s: Option<f64>,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Overlimits.
    pub overlimits: u64,
    /// Requeues.
    pub requeues: u64,
    /// Bytes queued.
    pub backlog: u64,
    /// Packets queued.
    pub qlen: u64,
    /// Packets it marked with CE by its own count, of the kinds that count them; absent on kernel and virtual.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub marked_packets: Option<u64>,
}

/// A class at the end of the run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Class {
    /// Kind of its qdisc.
    pub kind: String,
    /// Its id.
    pub classid: String,
    /// Parent: `root` or a classid.
    pub parent: String,
    /// Handle of the qdisc in it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub leaf: Option<String>,
    /// Guaranteed rate, bits per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rate_bit_s: Option<f64>,
    /// Ceiling, bits per second.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub ceil_bit_s: Option<f64>,
    /// Priority, 0 first.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub prio: Option<u32>,
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets sent on its own tokens.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lended: Option<u64>,
    /// Packets sent on an ancestor's tokens.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub borrowed: Option<u64>,
}

impl Class {
    /// Whether it stands for a flow that its qdisc holds at the moment, and so is no part of what was set up.
    pub fn is_flow(&self) -> bool {
        matches!(self.kind.as_str(), "sfq" | "sfb" | "fq_codel" | "fq_pie" | "cake" | "choke")
    }
    /// Whether it was set up or came with its qdisc: neither a flow nor the one place for an inner qdisc that some kinds show as a class.
    pub fn is_set_up(&self) -> bool {
        let place =
            matches!(self.kind.as_str(), "tbf" | "red" | "gred" | "netem" | "cbs" | "skbprio" | "plug");
        !self.is_flow() && !place
    }
}

/// An expectation, judged.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Expect {
    /// What was measured.
    pub what: String,
    /// What it should be.
    pub value: String,
    /// What it was, in bit/s, ms or as a number; absent if there was nothing to measure.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub measured: Option<f64>,
    /// Whether it was.
    pub ok: bool,
    /// Why there is nothing measured, where the run's ground cannot measure it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why: Option<String>,
}

/// A command of the setup that was refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct SetupFailure {
    /// Machine.
    pub host: String,
    /// The command.
    pub command: String,
    /// What it said.
    pub message: String,
}

/// What `penstock check` found in a machine's setup.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Finding {
    /// Machine.
    pub host: String,
    /// Stable code: `PS101`.
    pub code: String,
    /// `error` for what is refused, `warning` for a likely mistake.
    pub level: String,
    /// The file, as the experiment names it.
    pub file: String,
    /// Line of that file, from 1; 0 where none is known.
    pub line: u32,
    /// Column in characters, from 1; 0 where none is known.
    pub column: u32,
    /// A sentence in plain words.
    pub message: String,
    /// Why, with the number that shows it.
    pub reason: String,
    /// What to write instead; empty where nothing can be. Format 1 called it `mend`.
    #[serde(alias = "mend")]
    pub fix: String,
}

impl Record {
    /// The record as JSON text: two blanks of indentation, a newline at the end.
    pub fn to_json(&self) -> String {
        let mut text =
            serde_json::to_string_pretty(self).expect("a record has string keys and finite numbers");
        text.push('\n');
        text
    }

    /// Reads a record.
    ///
    /// # Errors
    /// A sentence when the text is not a record or one of a later format.
    pub fn from_json(text: &str) -> Result<Record, String> {
        check_format(text)?;
        let value: serde_json::Value =
            serde_json::from_str(text).map_err(|e| format!("this is not a run record: {e}"))?;
        crate::sound::figures(&value)?;
        serde_json::from_str(text).map_err(|e| format!("this is not a run record: {e}"))
    }

    /// Whether every expectation was met.
    pub fn holds(&self) -> bool {
        self.expects.iter().all(|e| e.ok)
    }
    /// The programs that failed: those with an exit status other than 0 that may not fail and of whose status no expectation speaks.
    pub fn failed_apps(&self) -> impl Iterator<Item = (usize, &App)> {
        let judged =
            |app: &App| self.expects.iter().any(|e| e.what.strip_suffix(" exit") == Some(&*app.name));
        let failed =
            move |(_, app): &(usize, &App)| app.exit.is_some_and(|s| s != 0) && !app.may_fail && !judged(app);
        self.apps.iter().enumerate().filter(failed)
    }
    /// Whether it went as it was meant to: every expectation met, no program failed, and nothing came to pass that could not work.
    pub fn succeeded(&self) -> bool {
        self.holds() && self.failed_apps().next().is_none() && !self.warnings.iter().any(|w| w.came_true)
    }
}

/// Refuses what is no record, or one of a later format.
fn check_format(text: &str) -> Result<(), String> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let version: Version =
        serde_json::from_str(text).map_err(|e| format!("this is not a run record: {e}"))?;
    if version.format > FORMAT {
        return Err(format!(
            "this record has format {}; this version reads up to {FORMAT}: use a later penstock",
            version.format
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Record {
        Record {
            format: FORMAT,
            penstock: "0.1.0".into(),
            title: "t".into(),
            about: None,
            ground: "sim".into(),
            seed: 7,
            duration_s: 12.0,
            rig: Rig::default(),
            experiment: "title = \"t\"\n".into(),
            apps: vec![App {
                name: "u5 iperf".into(),
                host: "u5".into(),
                run: "iperf -c 10.3.31.88".into(),
                exit: Some(0),
                throughput_bit_s: Some(5_850_000.0),
                bytes: Some(7_312_500),
                rtt_ms: Distribution::of(&mut [1.0, 2.0]),
                ..App::default()
            }],
            flows: Vec::new(),
            groups: Vec::new(),
            together: Vec::new(),
            devices: Vec::new(),
            per_hop: Vec::new(),
            drops: vec![Drop {
                host: "r".into(),
                dev: None,
                place: "FORWARD".into(),
                reason: "dropped".into(),
                packets: 3,
                ..Drop::default()
            }],
            scores: Scores::default(),
            expects: vec![Expect {
                what: "u5 iperf throughput".into(),
                value: "5.5mbit..6.0mbit".into(),
                measured: Some(5_850_000.0),
                ok: true,
                why: None,
            }],
            setup_failures: Vec::new(),
            captures: Vec::new(),
            findings: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_record_comes_back_as_it_was() {
        let record = sample();
        let text = record.to_json();
        assert_eq!(Record::from_json(&text).as_ref(), Ok(&record));
        assert_eq!(Record::from_json(&text).unwrap().to_json(), text);
        assert!(record.holds());
    }

    #[test]
    fn what_does_not_apply_is_absent() {
        let text = sample().to_json();
        assert!(!text.contains("null") && !text.contains("jitter_ms") && !text.contains("flows"), "{text}");
        assert!(text.contains("\"throughput_bit_s\": 5850000.0"), "{text}");
    }

    /// A record that format 1 wrote.
    #[test]
    fn an_old_record_still_opens() {
        let old = Record::from_json(include_str!("../tests/data/record-1.json")).unwrap();
        assert_eq!((old.format, old.apps.len(), old.flows.len()), (1, 5, 6));
        assert!(old.flows.iter().all(|f| f.payload_bytes.is_none()) && old.per_hop.is_empty());
        assert!(old.together.is_empty() && old.expects.iter().all(|e| e.why.is_none()));
    }

    #[test]
    fn a_record_of_format_1_still_opens() {
        let old = Record::from_json(include_str!("../tests/golden/record-format-1.json")).unwrap();
        assert_eq!((old.format, old.title.as_str()), (1, "A small house"));
        assert_eq!(old.findings[0].fix, "tc qdisc add dev eth0 parent 1:20 handle 20: sfq perturb 10");
        assert!(old.to_json().contains("\"fix\"") && !old.to_json().contains("\"mend\""));
    }

    #[test]
    fn strangers_are_refused_in_words() {
        assert!(Record::from_json("{}").unwrap_err().starts_with("this is not a run record"));
        assert!(Record::from_json("{\"format\": 3}").unwrap_err().contains("up to 2"));
        assert!(Record::from_json("nonsense").is_err());
    }
}
