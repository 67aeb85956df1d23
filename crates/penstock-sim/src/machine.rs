//! One machine: its host and what surrounds it.

use crate::cpu::Cpu;
use crate::event::Timer;
use crate::sock::SocketTable;
use crate::spec::{Iperf, Stack};
use crate::still::Toll;
use penstock_host::{Crossing, Host, NetDevice};
use penstock_model::{Handle, Kernel, Span, Time};
use penstock_packet::Packet;
use std::collections::{BTreeMap, VecDeque};

/// One host and what surrounds it.
#[repr(C)]
pub(crate) struct Machine {
    // With each packet, in this order: what lies together comes into the cache together.
    /// Cards by interface index.
    pub(crate) nics: Vec<u32>,
    pub(crate) timer: Timer,
    pub(crate) kernel: Kernel,
    pub(crate) cpu: Cpu,
    pub(crate) host: Host,
    // The others.
    pub(crate) name: String,
    pub(crate) stack: Stack,
    pub(crate) iperf: Iperf,
    /// Which of the processors that several machines share is its own; [`NONE`](crate::index::NONE): it has one to itself.
    pub(crate) processor: u32,
    pub(crate) sockets: SocketTable,
    pub(crate) lo: Loopback,
    pub(crate) spaces: Spaces,
}

impl Machine {
    /// How long its processor takes with a frame from `now` on.
    pub(crate) fn service(&mut self, len: u32, now: Time) -> Span {
        let set_up = |device: &NetDevice| device.tree.root().handle != Handle::UNSPEC;
        let shaped = self.cpu.cost.qdisc > Span::ZERO && self.host.devices().iter().any(set_up);
        self.cpu.service(len, shaped, now)
    }
}

/// How a machine and its network namespaces know of each other.
#[derive(Default)]
pub(crate) struct Spaces {
    /// The machine that this one is a namespace of; `None` for a machine as such.
    pub(crate) of: Option<u32>,
    /// The machines that its namespaces are, by their numbers.
    pub(crate) others: BTreeMap<u32, u32>,
    /// How often its devices had come or gone when their cards were looked at last.
    pub(crate) seen: u64,
    /// Frames that come in when what is at hand is done, by macvlans or below them.
    pub(crate) crossing: VecDeque<(u32, Crossing, Packet)>,
    /// How much of such work is done at once.
    pub(crate) toll: Toll,
    /// In place of this machine while another has it.
    pub(crate) absent: Option<Box<Host>>,
}

/// What waits on `lo` for the processor, which has more to do than it can at one instant.
#[derive(Default)]
pub(crate) struct Loopback {
    pub(crate) toll: Toll,
    pub(crate) waiting: VecDeque<Packet>,
}
