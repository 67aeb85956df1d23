//! Neighbours, of ARP and of neighbour discovery: their states, and the packets that wait for them.
//!
//! Follows: linux v2.6.35 and v6.12 `net/core/neighbour.c`; what they do with frames is in `nud`.

mod parms;

pub(crate) use parms::{Parm, split};

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
    /// It says that it is a router (`NTF_ROUTER`).
    pub(crate) router: bool,
    /// A routing program knows it (`NTF_EXT_LEARNED`).
    pub(crate) extern_learn: bool,
    /// It is to stay known (`NTF_MANAGED`).
    pub(crate) managed: bool,
    /// Who has said so (`RTPROT_*`); 0: nobody has.
    pub(crate) protocol: u8,
}

/// An address that is answered for (`struct pneigh_entry`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Proxy {
    /// The device; 0: any.
    pub ifindex: u32,
    /// Address.
    pub addr: IpAddr,
    /// `router`.
    pub router: bool,
    /// `extern_learn`.
    pub extern_learn: bool,
    /// `protocol`; 0: none.
    pub protocol: u8,
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
    /// Ticks a confirmation lasts where nothing was set; drawn anew every 300 s.
    reachable: i64,
    drawn: i64,
    /// What was set, by whether it is of IPv6 and by device; 0 is `default`.
    set: BTreeMap<(bool, u32, Parm), i64>,
    /// Ticks a confirmation lasts on a device, where something was set.
    own_reachable: BTreeMap<(bool, u32), i64>,
}

impl NeighTable {
    pub(crate) fn new(kernel: Kernel, rng: Rng) -> NeighTable {
        let mut table = NeighTable {
            kernel,
            entries: Vec::new(),
            index: BTreeMap::new(),
            rng,
            reachable: 0,
            drawn: 0,
            set: BTreeMap::new(),
            own_reachable: BTreeMap::new(),
        };
        table.draw_reachable();
        table
    }
    /// `neigh_rand_reach_time`: between half and three halves of the base.
    fn draw_reachable(&mut self) {
        let base = 30 * i64::from(self.kernel.hz());
        self.reachable = i64::from(self.rng.below(base as u32)) + base / 2;
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
            confirmed: tick - 2 * self.ticks(addr.is_ipv6(), ifindex, Parm::Reachable),
            used: tick,
            updated: tick,
            timer: None,
            queue: VecDeque::new(),
            queue_bytes: 0,
            router: false,
            extern_learn: false,
            managed: false,
            protocol: 0,
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
