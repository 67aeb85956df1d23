//! What to build and to run, as plain data.

use penstock_model::traffic::{Load, TcpWishes};
use penstock_model::{Rate, Span};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Everything a run on the kernel needs to know.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Seed of all chance that is ours (losses, drawn sizes and gaps).
    pub seed: u64,
    /// Length of the run.
    pub duration: Span,
    /// How long what flows send, receive and lose is not counted yet.
    pub warmup: Span,
    /// Distance of the samples of counters.
    pub sample: Span,
    /// Whether the devices keep GSO, TSO, GRO and checksum offload. Default false: a packet is a packet.
    pub offloads: bool,
    /// Machines.
    pub hosts: Vec<Host>,
    /// Links between them.
    pub links: Vec<Link>,
    /// Programs.
    pub apps: Vec<App>,
    /// Flows of our own tools.
    pub flows: Vec<Flow>,
    /// Files that setups and apps find where they run: relative paths and texts. Without any they run where this process stands.
    pub files: Vec<(String, String)>,
    /// Whether time is exact (the virtual ground): a link then keeps its rate frame by frame instead of within a millisecond.
    pub exact: bool,
    /// The token of the job, for what lies outside the run's namespaces.
    pub token: String,
    /// The `penstock` program, for flows and delay lines.
    pub penstock: std::path::PathBuf,
}

/// A machine: one namespace.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Its name, for `/etc/hosts` and messages.
    pub name: String,
    /// Its devices.
    pub devices: Vec<Device>,
    /// Default gateway.
    pub via: Option<Ipv4Addr>,
    /// The same of IPv6.
    pub via6: Option<Ipv6Addr>,
    /// Whether it forwards before any command says so.
    pub forwards: bool,
    /// Arguments of `ip route` commands before the setup.
    pub routes: Vec<String>,
    /// Shell texts before the run, each with its name.
    pub setup: Vec<Script>,
    /// Whether the run goes on when one of them fails.
    pub setup_may_fail: bool,
}

impl Host {
    /// The address it is spoken to at: its first, of `lo` only where there is no other.
    pub fn address(&self) -> Option<Ipv4Addr> {
        self.in_order().find_map(|d| d.addresses.first()).map(|a| a.0)
    }
    /// The same of IPv6.
    pub fn address6(&self) -> Option<Ipv6Addr> {
        self.in_order().find_map(|d| d.addresses6.first()).map(|a| a.0)
    }
    /// Its devices, `lo` behind the others.
    fn in_order(&self) -> impl Iterator<Item = &Device> {
        let own = |lo: bool| move |d: &&Device| (d.name == "lo") == lo;
        self.devices.iter().filter(own(false)).chain(self.devices.iter().filter(own(true)))
    }
    /// The place of a device among those of the machine, from 0; `lo` is not counted. Interface indices follow this order.
    pub fn place_of(&self, dev: &str) -> Option<usize> {
        self.devices.iter().filter(|d| d.name != "lo").position(|d| d.name == dev)
    }
}

/// Command lines for a shell.
#[derive(Clone, Debug, Default)]
pub struct Script {
    /// Name of the file they stand in.
    pub file: String,
    /// Line of that file on which the text begins, from 1.
    pub line: u32,
    /// The text.
    pub text: String,
}

/// A device of a machine.
#[derive(Clone, Debug, Default)]
pub struct Device {
    /// Its name, any that Linux allows.
    pub name: String,
    /// Its addresses.
    pub addresses: Vec<(Ipv4Addr, u8)>,
    /// Its IPv6 addresses.
    pub addresses6: Vec<(Ipv6Addr, u8)>,
    /// MTU, bytes; `None`: 1500.
    pub mtu: Option<u32>,
    /// txqueuelen, packets; `None`: 1000.
    pub txqueuelen: Option<u32>,
}

/// A link: two ends, or more that a switch joins.
#[derive(Clone, Debug, Default)]
pub struct Link {
    /// Its ends.
    pub ends: Vec<End>,
    /// Rate; `None`: no limit.
    pub rate: Option<Rate>,
    /// One-way delay.
    pub delay: Span,
    /// Chance to lose a frame, parts per 1,000,000,000.
    pub loss_ppb: u32,
    /// Whether preamble, gap and FCS take time.
    pub ethernet: bool,
}

/// An end of a link, and what differs for the frames it sends.
#[derive(Clone, Debug, Default)]
pub struct End {
    /// Index of the machine.
    pub host: usize,
    /// Its device.
    pub dev: String,
    /// Rate of what it sends, where not the link's.
    pub rate: Option<Rate>,
    /// Delay of what it sends, where not the link's.
    pub delay: Option<Span>,
    /// Loss of what it sends, where not the link's.
    pub loss_ppb: Option<u32>,
}

/// A program.
#[derive(Clone, Debug, Default)]
pub struct App {
    /// Index of the machine.
    pub host: usize,
    /// Shell text to run.
    pub run: String,
    /// Start, from the begin of the run or from the end of `after`.
    pub at: Span,
    /// The program it waits for.
    pub after: Option<usize>,
}

/// A flow of `penstock send` to `penstock recv`.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Index of the sending machine.
    pub from: usize,
    /// Index of the receiving machine.
    pub to: usize,
    /// Address it sends to.
    pub addr: IpAddr,
    /// TCP with these wishes, or datagrams.
    pub tcp: Option<TcpWishes>,
    /// What it sends.
    pub load: Load,
    /// Start.
    pub at: Span,
    /// Stop; `None`: when all is sent, or with the run.
    pub until: Option<Span>,
    /// ToS byte.
    pub tos: u8,
    /// Firewall mark.
    pub mark: u32,
    /// Port; 0: any.
    pub port: u16,
    /// The flow whose receiver takes this one too; `None`: it has its own.
    pub receiver: Option<usize>,
    /// Greatest error of its sender's clock, parts per 1,000,000.
    pub drift_ppm: u32,
    /// By how much each packet departs early or late at most.
    pub jitter: Span,
    /// Whether each datagram's times are kept.
    pub trace: bool,
    /// Name of its stream of chance.
    pub name: String,
}
