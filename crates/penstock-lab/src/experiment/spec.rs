//! An experiment as plain data.

use super::source::{Place, Source};
use penstock_model::traffic::{Dist, Load, TcpWishes, TxTimeWish};
use penstock_model::{Diagnostic, Kernel, Options, PschedClock, Rate, Span};
use penstock_sched::meter::Conditioner;
use penstock_sim::Iperf;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Everything an experiment file says.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Experiment {
    /// The texts it was read from: the file itself first, then `base`, scripts, configurations.
    pub sources: Vec<Source>,
    /// Files beside it that scripts find where they run.
    pub lent: Vec<super::Lent>,
    /// What it is called; the file's name where it does not say.
    pub title: String,
    /// What it is about.
    pub about: Option<String>,
    /// How long it runs. Default 10 s.
    pub duration: Span,
    /// How much at its beginning is not counted of flows, groups and waits. Default 0.
    pub warmup: Span,
    /// Seed of all chance. Default 1.
    pub seed: u64,
    /// Distance of the samples of a series; `None`: a round number that gives some 100 to 250 of them.
    pub sample: Option<Span>,
    /// Whether cards cut TCP's super-packets (TSO, GSO), and devices of a real kernel keep GRO and checksum offload too. Default false: each segment is a
    /// packet of its own.
    pub offloads: bool,
    /// Whether [`Experiment::modern`] made it.
    pub modern: bool,
    /// Timer interrupts per second of machines with today's kernel; `None`: the profile's 250.
    pub hz: Option<u32>,
    /// How many threads make the run on the simulator. It changes the time that takes, and no byte.
    pub threads: Threads,
    /// Folders in which a run on this machine's kernel may write for good, absolute; the file cannot name them.
    pub writable: Vec<std::path::PathBuf>,
    /// Machines in the order of the file.
    pub hosts: Vec<Host>,
    /// Links in the order of the file.
    pub links: Vec<Link>,
    /// Programs in the order of the file.
    pub apps: Vec<App>,
    /// Flows in the order of the file.
    pub flows: Vec<Flow>,
    /// The name of the one `[[test]]` that is all of its traffic.
    pub test: Option<String>,
    /// Traffic conditioners in the order of the file.
    pub meters: Vec<Meter>,
    /// What is captured.
    pub captures: Vec<Capture>,
    /// The folder in which captures are written while the run goes on; `None`: that of the system for such. The file cannot name it.
    pub scratch: Option<std::path::PathBuf>,
    /// Expectations in the order of the file.
    pub expects: Vec<Expect>,
    /// What `penstock sweep` varies. A single run takes no notice of it.
    pub sweep: Option<super::Sweep>,
}

/// How many threads make a run on the simulator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Threads {
    /// One.
    #[default]
    One,
    /// At most so many where the run is large ([`LARGE`] flows or more) and promises to be much faster by it.
    Large(usize),
    /// At most so many where it promises to be faster by it.
    Most(usize),
    /// So many wherever the network can be divided at all.
    Always(usize),
}

/// Flows of a large run.
pub const LARGE: usize = 100;

impl Threads {
    /// How many, and by how many thousandths the run must become faster by them. `flows`: how many there are.
    pub(crate) fn wanted(self, flows: usize) -> (usize, u64) {
        match self {
            Threads::Large(threads) if flows >= LARGE => (threads, 1300),
            Threads::One | Threads::Large(_) => (1, 0),
            Threads::Most(threads) => (threads, 1050),
            Threads::Always(threads) => (threads, 0),
        }
    }
}

/// A traffic conditioner on a device.
#[derive(Clone, PartialEq, Debug)]
pub struct Meter {
    /// Where it stands.
    pub place: Place,
    /// Its machine.
    pub host: String,
    /// The device that packets leave by.
    pub dev: String,
    /// `srtcm`, `trtcm` or `tsw`.
    pub kind: String,
    /// What it does.
    pub conditioner: Conditioner,
}

impl Experiment {
    /// The same with every machine a Linux of today whose processor costs nothing: what the grounds `kernel` and `virtual` make of it.
    pub fn modern(mut self) -> Experiment {
        self.modern = true;
        for host in &mut self.hosts {
            host.kernel = Kernel::V6_12;
            host.os = Os::Linux;
            host.cost = None;
        }
        self
    }

    /// The same with so many timer interrupts per second on machines with today's kernel, by which TCP and the qdiscs count.
    pub fn at_hz(mut self, hz: Option<u32>) -> Experiment {
        self.hz = hz;
        self
    }

    /// The same, made by so many threads.
    pub fn on_threads(mut self, threads: Threads) -> Experiment {
        self.threads = threads;
        self
    }
}

/// A machine.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Host {
    /// Its name.
    pub name: String,
    /// Where its table begins.
    pub place: Place,
    /// Its kernel profile.
    pub kernel: Kernel,
    /// What its packet scheduler measures time with, and how often its timer interrupts.
    pub clock: PschedClock,
    /// Its devices in the order of the file; for a Cisco router those of its configuration.
    pub devices: Vec<Device>,
    /// Default gateway.
    pub via: Option<(Ipv4Addr, Place)>,
    /// The same of IPv6.
    pub via6: Option<(Ipv6Addr, Place)>,
    /// Commands before the run.
    pub setup: Vec<Script>,
    /// Whether the run goes on when one of them fails.
    pub setup_may_fail: bool,
    /// The configuration of a Cisco router.
    pub cisco: Option<Script>,
    /// Whose TCP and tools it has.
    pub os: Os,
    /// Which iperf 2 it has.
    pub iperf: Iperf,
    /// Whether it is a `[switch.NAME]`.
    pub switch: bool,
    /// What its processor spends on a packet.
    pub cost: Option<Cost>,
    /// By how much its clock is ahead of the run's.
    pub ahead: Span,
    /// The processor it shares with the others that name it.
    pub processor: Option<(String, Place)>,
    /// Files it has, for copies: name and bytes.
    pub files: Vec<(String, u64)>,
}

impl Host {
    /// Its gateways as they are written: that of IPv4, that of IPv6.
    pub fn gateway(&self) -> Option<String> {
        let four = self.via.as_ref().map(|(via, _)| via.to_string());
        let six = self.via6.as_ref().map(|(via, _)| via.to_string());
        match (four, six) {
            (Some(four), Some(six)) => Some(format!("{four} {six}")),
            (four, six) => four.or(six),
        }
    }
}

/// Whose TCP and tools a machine has.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Os {
    /// Linux of the kernel profile.
    #[default]
    Linux,
    /// Windows XP.
    WindowsXp,
    /// Solaris 2.6.
    Solaris,
}

impl Os {
    /// The names, as the file writes them.
    pub const ALL: [(&'static str, Os); 3] =
        [("linux", Os::Linux), ("windows-xp", Os::WindowsXp), ("solaris", Os::Solaris)];
}

/// A network interface.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// Where it is said.
    pub place: Place,
    /// Its addresses with prefix lengths.
    pub addresses: Vec<(Ipv4Addr, u8)>,
    /// Its IPv6 addresses with prefix lengths.
    pub addresses6: Vec<(Ipv6Addr, u8)>,
    /// MTU, bytes, 68..=65535; `None`: 1500.
    pub mtu: Option<u32>,
    /// txqueuelen, packets; `None`: the profile's.
    pub txqueuelen: Option<u32>,
    /// Whether its frames are captured. Default false.
    pub capture: bool,
}

/// Command lines.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Script {
    /// Name of the file they stand in, as shown.
    pub file: String,
    /// Line of that file on which `text` begins, from 1.
    pub line: u32,
    /// The lines.
    pub text: String,
    /// Where the experiment names them.
    pub place: Place,
}

impl Script {
    /// What was said of a line of `text`, with its file and that file's line.
    pub fn place_fault(&self, mut fault: Diagnostic) -> Diagnostic {
        if fault.source.is_empty() {
            let line = self.text.lines().nth(fault.line.max(1) as usize - 1);
            fault.source = line.unwrap_or_default().to_owned();
        }
        fault.file.clone_from(&self.file);
        fault.line = fault.line.max(1) + self.line - 1;
        fault
    }
}

/// What a processor spends on a packet.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cost {
    /// On each packet.
    pub packet: Dist,
    /// On each byte of it, picoseconds.
    pub byte_ps: u64,
    /// On each timer interrupt.
    pub tick: Span,
    /// On each of its programs' calls that send a datagram.
    pub send: Span,
    /// On each step of classification.
    pub classify: Span,
    /// On each reading of the packet scheduler's clock.
    pub clock: Span,
    /// Until another thread of a program runs.
    pub thread: Dist,
    /// On each packet in addition, where a qdisc was set up on the host.
    pub qdisc: Span,
    /// When another task holds the processor, from the run's start, and for how long; in the order of time.
    pub pauses: Vec<(Span, Span)>,
}

/// A link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Link {
    /// Its name; may be empty.
    pub name: String,
    /// Where its table begins.
    pub place: Place,
    /// What it joins: two ends, or more for a shared segment.
    pub ends: Vec<End>,
    /// Rate; `None`: sending takes no time.
    pub rate: Option<Rate>,
    /// Propagation delay.
    pub delay: Span,
    /// Chance to lose a frame, parts per 1,000,000,000.
    pub loss_ppb: u32,
    /// What takes time on the wire.
    pub framing: Framing,
    /// Whether only one end sends at a time. Always so with more than two ends.
    pub half_duplex: bool,
    /// What the link does to the ECN field of what passes.
    pub ecn: Ecn,
    /// The queue before it, at each end that has none of its own.
    pub queue: Option<Queue>,
    /// How it changes in the run; the values above are those of the beginning.
    pub changes: Changes,
}

/// How a link changes in a run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Changes {
    /// Its rate, bit/s.
    pub rate: Option<Change>,
    /// Its delay, ns.
    pub delay: Option<Change>,
    /// Its loss, parts per 1,000,000,000.
    pub loss: Option<Change>,
    /// From when to when nothing gets through.
    pub down: Vec<(Span, Span)>,
}

impl Changes {
    /// Whether anything changes.
    pub fn any(&self) -> bool {
        self.rate.is_some() || self.delay.is_some() || self.loss.is_some() || !self.down.is_empty()
    }
}

/// How a quantity changes with time.
#[derive(Clone, PartialEq, Debug)]
pub enum Change {
    /// By a function.
    Values(Values),
    /// By a trace of Mahimahi's: at each of these milliseconds 1500 bytes can leave; the last is its length.
    Trace(Vec<u32>),
}

/// A function of time.
#[derive(Clone, PartialEq, Debug)]
pub enum Values {
    /// From each of these times on this value.
    List(Vec<(Span, u64)>),
    /// From one value to another, straight.
    Ramp {
        /// The first and the last.
        values: (u64, u64),
        /// When it begins to change.
        from: Span,
        /// When it has changed; `None`: at the end of the run.
        to: Option<Span>,
        /// How long each step is; `None`: a hundredth of it, 1 ms or more.
        every: Option<Span>,
    },
    /// Up and down, from the middle on.
    Sine {
        /// The least and the greatest.
        values: (u64, u64),
        /// How long a wave is.
        period: Span,
        /// How long each step is; `None`: a hundredth of it, 1 ms or more.
        every: Option<Span>,
    },
    /// One after another, again and again.
    Turns {
        /// The values.
        values: Vec<u64>,
        /// How long each holds.
        every: Span,
    },
}

/// Frames of some cards, kept in a file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Capture {
    /// Where it is asked for.
    pub place: Place,
    /// Its name, which is that of the file too.
    pub name: String,
    /// The cards: ends of links.
    pub on: Vec<End>,
    /// How many bytes of each frame are kept, at most.
    pub snaplen: usize,
    /// Whether packets that are lost there are kept too.
    pub drops: bool,
    /// From when on.
    pub from: Span,
    /// Until when; `None`: until the run ends.
    pub until: Option<Span>,
}

/// What takes time on a link's wire beside the IP packet. Default: what does on Ethernet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Framing {
    /// Header, FCS, preamble and gap, at least 60 bytes.
    #[default]
    Ethernet,
    /// The Ethernet header, as qdiscs count.
    None,
    /// Nothing.
    Ip,
    /// PPP over SONET.
    Pos,
    /// FDDI.
    Fddi,
    /// ATM cells.
    Atm,
    /// PPP on a serial line.
    Ppp,
    /// Frame Relay.
    FrameRelay,
    /// Token Ring.
    TokenRing,
}

impl Framing {
    /// All, and their names as the file writes them.
    pub const ALL: [(Framing, &'static str); 9] = [
        (Framing::Ethernet, "ethernet"),
        (Framing::None, "none"),
        (Framing::Ip, "ip"),
        (Framing::Pos, "pos"),
        (Framing::Fddi, "fddi"),
        (Framing::Atm, "atm"),
        (Framing::Ppp, "ppp"),
        (Framing::FrameRelay, "frame-relay"),
        (Framing::TokenRing, "token-ring"),
    ];
    /// Its name.
    pub fn name(self) -> &'static str {
        Framing::ALL.iter().find(|f| f.0 == self).map_or("", |f| f.1)
    }
}

/// What a link does to the ECN field. Default: nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Ecn {
    /// Leaves it.
    #[default]
    Pass,
    /// Clears both bits.
    Bleach,
    /// Takes marks off.
    Unmark,
}

impl Ecn {
    /// The names, as the file writes them.
    pub const ALL: [(&'static str, Ecn); 3] =
        [("pass", Ecn::Pass), ("bleach", Ecn::Bleach), ("unmark", Ecn::Unmark)];
}

/// A queue that is not Linux's, before a link.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// Its kind.
    pub kind: &'static str,
    /// What it is set to.
    pub options: Options,
    /// Where it is said.
    pub place: Place,
}

/// One end of a link.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct End {
    /// Machine.
    pub host: String,
    /// Device.
    pub dev: String,
    /// Where it is said.
    pub place: Place,
    /// Rate at which this end sends, where it differs from the link's.
    pub rate: Option<Rate>,
    /// Delay of what this end sends.
    pub delay: Option<Span>,
    /// Loss of what this end sends.
    pub loss_ppb: Option<u32>,
    /// What happens to the ECN field of what this end sends.
    pub ecn: Option<Ecn>,
    /// The queue before the link at this end.
    pub queue: Option<Queue>,
    /// Frames its card takes ahead of the one on the wire. Default 0.
    pub ring: u32,
    /// Frames between two interrupts of its card that tell of sent ones. Default 1.
    pub tx_frames: u32,
    /// Whether its driver counts bytes (BQL). Default `false`.
    pub bql: bool,
    /// Transmit queues of its card. 0 counts as 1.
    pub tx_queues: u32,
    /// How what this end sends with changes, where it differs from the link's.
    pub changes: Changes,
    /// Whether its frames are captured. Default false.
    pub capture: bool,
}

/// A program, started once.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct App {
    /// Its name: as given, or `HOST PROGRAM`, numbered from the second on.
    pub name: String,
    /// Where its table begins.
    pub place: Place,
    /// Where the experiment says what it runs.
    pub run_place: Place,
    /// Machine.
    pub on: String,
    /// Command line, as the file has it.
    pub run: String,
    /// The lines of `run = "@file"`.
    pub script: Option<Script>,
    /// When it starts: from the start of the run, or from the end of `after`.
    pub at: Span,
    /// The app it waits for, by its number.
    pub after: Option<usize>,
    /// Whether it may fail: else an exit status other than 0 makes the run a failed one. Default false.
    pub may_fail: bool,
}

/// Traffic without a command line.
#[derive(Clone, PartialEq, Debug)]
pub struct Flow {
    /// Its name: as given, or `FROM-TO`.
    pub name: String,
    /// Where its table begins.
    pub place: Place,
    /// The group it is counted with.
    pub group: Option<String>,
    /// Sender.
    pub from: String,
    /// Receiver.
    pub to: String,
    /// Over IPv6, whatever the receiver has of IPv4. Default false: IPv6 only where it has no address of IPv4.
    pub ipv6: bool,
    /// How many alike.
    pub count: u32,
    /// TCP, or datagrams.
    pub tcp: Option<TcpWishes>,
    /// What it sends.
    pub load: Load,
    /// Earliest and latest start.
    pub at: (Span, Span),
    /// When it stops; `None`: when everything is sent, or with the run.
    pub until: Option<Span>,
    /// ToS byte.
    pub tos: u8,
    /// Firewall mark of its socket.
    pub mark: u32,
    /// Destination port; 0: any.
    pub port: u16,
    /// How far its clock may be off, millionths. Default 0.
    pub drift_ppm: u32,
    /// How much too early or too late each packet may leave. Default 0.
    pub jitter: Span,
    /// Whether each datagram is recorded. Default false.
    pub trace: bool,
    /// The times of departure that its datagrams ask for.
    pub txtime: Option<TxTimeWish>,
}

/// Something to be judged when the run is over.
#[derive(Clone, PartialEq, Debug)]
pub struct Expect {
    /// What, as the file has it.
    pub what: String,
    /// Its value, as the file has it.
    pub value: String,
    /// Where it stands.
    pub place: Place,
    /// What to measure.
    pub measure: Measure,
    /// What it must be.
    pub range: Bounds,
}

/// What an expectation measures.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Measure {
    /// Of what.
    pub subject: Subject,
    /// Which figure of it.
    pub figure: &'static str,
    /// Which part of a distribution; empty for a single number.
    pub part: &'static str,
}

/// What an expectation is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// An app, by its number.
    App(usize),
    /// A flow by its name, all of its count together.
    Flow(String),
    /// All flows of a group.
    Group(String),
    /// The packets of some code points at a device.
    Phb {
        /// Machine.
        host: String,
        /// Device.
        dev: String,
        /// The code points, 0..=63, in the order of drop precedence.
        codes: Vec<u8>,
        /// The rate configured for them.
        rate: Option<Rate>,
    },
    /// A device's root qdisc, another qdisc by its handle, or a class by its id.
    Queue {
        /// Machine.
        host: String,
        /// Device.
        dev: String,
        /// `1:` or `1:10`; `None`: the root qdisc.
        id: Option<String>,
    },
}

/// A range of numbers, in the unit of the record: bit/s, ms, bytes, or plain.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Bounds {
    /// Least.
    pub low: f64,
    /// Greatest.
    pub high: f64,
    /// Whether `low` itself is out.
    pub above: bool,
    /// Whether `high` itself is out.
    pub below: bool,
}

impl Bounds {
    /// Whether `x` lies in the range.
    pub fn hold(&self, x: f64) -> bool {
        let low = if self.above { x > self.low } else { x >= self.low };
        let high = if self.below { x < self.high } else { x <= self.high };
        low && high
    }
}
