//! Neighbours, of ARP and of neighbour discovery: their states, and the packets that wait for them.
//!
//! Follows: linux v2.6.35 and v6.12 `net/core/neighbour.c`; what they do with frames is in `nud`.

use crate::timer;
use penstock_model::{Kernel, Rng, Time};
use penstock_packet::Packet;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// `NUD_*`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Nud {
    /// Known by name only.
    None,
    /// Being asked for.
    Incomplete,
    /// Confirmed lately.
    Reachable,
    /// Known, not confirmed lately.
    Stale,
    /// Used while stale: about to be probed.
    Delay,
    /// Being probed.
    Probe,
    /// Did not answer.
    Failed,
    /// Entered by hand.
    Permanent,
    /// Entered by hand until it is used up (`nud noarp`).
    Noarp,
}

impl Nud {
    /// `NUD_CONNECTED`: frames go without a thought.
    #[inline]
    pub fn is_connected(self) -> bool {
        matches!(self, Nud::Reachable | Nud::Permanent | Nud::Noarp)
    }
    /// `NUD_VALID`: the hardware address may be used.
    pub fn is_valid(self) -> bool {
        self.is_connected() || matches!(self, Nud::Stale | Nud::Delay | Nud::Probe)
    }
    /// `NUD_IN_TIMER`.
    pub fn in_timer(self) -> bool {
        matches!(self, Nud::Incomplete | Nud::Reachable | Nud::Delay | Nud::Probe)
    }
    /// As `ip neigh` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Nud::None => "NONE",
            Nud::Incomplete => "INCOMPLETE",
            Nud::Reachable => "REACHABLE",
            Nud::Stale => "STALE",
            Nud::Delay => "DELAY",
            Nud::Probe => "PROBE",
            Nud::Failed => "FAILED",
            Nud::Permanent => "PERMANENT",
            Nud::Noarp => "NOARP",
        }
    }
}

/// Requests by unicast before those by broadcast (`ucast_solicit`, 3).
pub(crate) const UCAST_PROBES: u32 = 3;
/// Requests in all: `ucast_solicit` 3 and `mcast_solicit` 3.
pub(crate) const MAX_PROBES: u32 = 6;
/// Span between two requests, s (`retrans_time`).
pub(crate) const RETRANS_S: i64 = 1;
/// Span a stale entry is used before it is probed, s (`delay_first_probe_time`).
pub(crate) const DELAY_PROBE_S: i64 = 5;
/// Mean life of a confirmation, s (`base_reachable_time`).
pub(crate) const BASE_REACHABLE_S: i64 = 30;

/// A neighbour.
#[derive(Debug)]
#[repr(C)]
pub struct Neigh {
    // With each packet, in this order: what lies together comes into the cache together.
    /// State.
    pub state: Nud,
    /// Its hardware address, while [`Nud::is_valid`].
    pub mac: [u8; 6],
    /// The device it is behind.
    pub ifindex: u32,
    /// Its address.
    pub addr: IpAddr,
    pub(crate) used: i64,
    /// Ticks.
    pub(crate) confirmed: i64,
    // The others.
    pub(crate) probes: u32,
    pub(crate) updated: i64,
    pub(crate) timer: Option<Time>,
    pub(crate) queue: VecDeque<Packet>,
    pub(crate) queue_bytes: u32,
}

/// The table. An entry keeps its place until it is deleted by hand.
#[repr(C)]
pub struct NeighTable {
    // With each packet, in this order: what lies together comes into the cache together.
    entries: Vec<Neigh>,
    kernel: Kernel,
    // The others.
    /// Those of ARP before those of neighbour discovery.
    index: BTreeMap<(bool, u32, IpAddr), u32>,
    rng: Rng,
    /// Ticks a confirmation lasts; drawn anew every 300 s.
    reachable: i64,
    drawn: i64,
}

impl NeighTable {
    pub(crate) fn new(kernel: Kernel, rng: Rng) -> NeighTable {
        let mut table =
            NeighTable { kernel, entries: Vec::new(), index: BTreeMap::new(), rng, reachable: 0, drawn: 0 };
        table.draw_reachable();
        table
    }
    /// `neigh_rand_reach_time`: between half and three halves of the base.
    fn draw_reachable(&mut self) {
        let base = BASE_REACHABLE_S * i64::from(self.kernel.hz());
        self.reachable = i64::from(self.rng.below(base as u32)) + base / 2;
    }
    pub(crate) fn reachable_time(&mut self, now: Time) -> i64 {
        let tick = timer::jiffies(self.kernel, now);
        if tick - self.drawn > 300 * i64::from(self.kernel.hz()) {
            self.drawn = tick;
            self.draw_reachable();
        }
        self.reachable
    }
    /// All entries that anything is known of, by device and address.
    pub fn iter(&self) -> impl Iterator<Item = &Neigh> {
        self.index.values().map(|&at| &self.entries[at as usize])
    }
    pub(crate) fn find(&self, ifindex: u32, addr: IpAddr) -> Option<u32> {
        self.index.get(&(addr.is_ipv6(), ifindex, addr)).copied()
    }
    pub(crate) fn find_or_create(&mut self, ifindex: u32, addr: IpAddr, now: Time) -> u32 {
        if let Some(at) = self.find(ifindex, addr) {
            return at;
        }
        let tick = timer::jiffies(self.kernel, now);
        let at = self.entries.len() as u32;
        self.entries.push(Neigh {
            ifindex,
            addr,
            mac: [0; 6],
            state: Nud::None,
            probes: 0,
            confirmed: tick - 2 * BASE_REACHABLE_S * i64::from(self.kernel.hz()),
            used: tick,
            updated: tick,
            timer: None,
            queue: VecDeque::new(),
            queue_bytes: 0,
        });
        self.index.insert((addr.is_ipv6(), ifindex, addr), at);
        at
    }
    /// The places of a device's neighbours.
    pub(crate) fn of_device(&self, ifindex: u32) -> impl Iterator<Item = u32> + '_ {
        self.index.iter().filter(move |((_, dev, _), _)| *dev == ifindex).map(|(_, &at)| at)
    }
    /// Takes an entry out of sight; its place is not used again.
    pub(crate) fn forget(&mut self, at: u32) {
        let n = &mut self.entries[at as usize];
        self.index.remove(&(n.addr.is_ipv6(), n.ifindex, n.addr));
        n.state = Nud::None;
        n.ifindex = 0;
    }
    #[inline]
    pub(crate) fn at(&self, at: u32) -> &Neigh {
        &self.entries[at as usize]
    }
    /// The hardware address of a neighbour that frames go to without a thought, or while it is asked whether it is still there
    /// (`neigh_connected_output`, `neigh_resolve_output` of a neighbour in `NUD_DELAY` or `NUD_PROBE`).
    #[inline]
    pub(crate) fn reaches(&mut self, at: u32, kernel: Kernel, now: Time) -> Option<[u8; 6]> {
        let n = &mut self.entries[at as usize];
        match n.state {
            state if state.is_connected() => {}
            Nud::Delay | Nud::Probe => n.used = timer::jiffies(kernel, now),
            _ => return None,
        }
        Some(n.mac)
    }
    #[inline]
    pub(crate) fn at_mut(&mut self, at: u32) -> &mut Neigh {
        &mut self.entries[at as usize]
    }
    pub(crate) fn len(&self) -> u32 {
        self.entries.len() as u32
    }
}
