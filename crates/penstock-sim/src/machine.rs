//! One machine: its host and what surrounds it.

use crate::cpu::Cpu;
use crate::event::Timer;
use crate::sock::SocketTable;
use crate::spec::{Iperf, Stack};
use crate::still::Toll;
use penstock_host::Host;
use penstock_model::Kernel;
use penstock_packet::Packet;
use std::collections::VecDeque;

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
    pub(crate) sockets: SocketTable,
    pub(crate) lo: Loopback,
}

/// What waits on `lo` for the processor, which has more to do than it can at one instant.
#[derive(Default)]
pub(crate) struct Loopback {
    pub(crate) toll: Toll,
    pub(crate) waiting: VecDeque<Packet>,
}
