//! One tin: its share of the rate, its flows with their hosts, and which of them have their turn.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c` `struct cake_tin_data`, `cake_set_rate`, `cake_hash` from "set-associative hashing" on,
//! `cake_get_flow_quantum`.

use super::store::Chain;
use crate::aqm::cobalt::{Params, Vars};
use penstock_model::Rng;

/// Queues of a tin (`CAKE_QUEUES`).
pub(super) const QUEUES: usize = 1024;
/// Tins there may be (`CAKE_MAX_TINS`).
pub(super) const TINS: usize = 8;
/// Queues among which a flow looks for its own (`CAKE_SET_WAYS`).
const WAYS: usize = 8;

/// Bits of the flow mode: `CAKE_FLOW_*`.
pub(super) mod mode {
    /// `CAKE_FLOW_SRC_IP`, `CAKE_FLOW_DST_IP`.
    pub const SRC_IP: u32 = 1;
    pub const DST_IP: u32 = 2;
    pub const HOSTS: u32 = 3;
    pub const FLOWS: u32 = 4;
    /// `CAKE_FLOW_NAT_FLAG`.
    pub const NAT: u32 = 64;

    /// `cake_dsrc`: whether sources share.
    pub const fn by_source(mode: u32) -> bool {
        mode & (SRC_IP | FLOWS) == SRC_IP | FLOWS
    }
    /// `cake_ddst`: whether destinations share.
    pub const fn by_destination(mode: u32) -> bool {
        mode & (DST_IP | FLOWS) == DST_IP | FLOWS
    }
}

/// What a flow counts as: `CAKE_SET_*`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Set {
    /// It is in no list.
    #[default]
    None,
    /// New, or seldom there.
    Sparse,
    /// Counted as sparse, and yet in the turn of the bulk flows.
    SparseWait,
    /// It has used up its quantum.
    Bulk,
    /// Empty, kept until its drops are forgotten.
    Decaying,
}

/// The lists of a tin's flows, by the number of their head among the links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum List {
    New = 0,
    Old = 1,
    Decaying = 2,
}

/// One flow: `struct cake_flow`.
#[derive(Clone)]
pub(super) struct Flow {
    pub chain: Chain,
    /// Bytes it may still send in this turn.
    pub deficit: i32,
    /// Packets dropped, ever.
    pub dropped: u32,
    pub vars: Vars,
    /// Places of its hosts in the table.
    source: u16,
    destination: u16,
    pub set: Set,
    /// Its neighbours in the list it is in; itself where it is in none.
    next: u16,
    prev: u16,
}

/// What is counted of hosts: `struct cake_host`, one of source and destination.
#[derive(Clone, Copy, Default)]
struct Host {
    tag: u32,
    bulk_flows: u16,
}

/// The rate of a tin or of the whole, as nanoseconds a byte.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Pace {
    /// Nanoseconds a byte, shifted left by `shift`; 0: no limit.
    pub ns: u64,
    shift: u32,
}

impl Pace {
    /// At `rate` bytes a second, of which 64 are the least.
    fn new(rate: u64) -> Pace {
        if rate == 0 {
            return Pace::default();
        }
        let (mut ns, mut shift) = ((1_000_000_000u64 << 34) / rate.max(64), 34);
        while ns >> 34 != 0 {
            ns >>= 1;
            shift -= 1;
        }
        Pace { ns, shift }
    }
    /// How long `bytes` take, ns.
    #[inline]
    pub(super) fn time(self, bytes: u32) -> u64 {
        u64::from(bytes).wrapping_mul(self.ns) >> self.shift
    }
}

/// What follows for a tin from its share of the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Share {
    /// Bytes per second; 0 is without limit.
    pub rate: u64,
    pub pace: Pace,
    pub cobalt: Params,
    /// Bytes a flow may send per turn.
    pub flow_quantum: u16,
}

impl Share {
    /// `cake_set_rate`.
    pub(super) fn new(rate: u64, mtu: u32, target_ns: u64, rtt_ns: u64) -> Share {
        let flow_quantum = if rate == 0 { 1514 } else { (rate >> 12).clamp(300, 1514) as u16 };
        let pace = Pace::new(rate);
        let mtu_time = pace.time(mtu);
        let target = (mtu_time.wrapping_mul(3) / 2).max(target_ns);
        let interval = (rtt_ns.wrapping_add(target).wrapping_sub(target_ns)).max(target * 2);
        Share { rate, pace, cobalt: Params { interval, target, mtu_time }, flow_quantum }
    }
}

/// A tin.
#[derive(Default)]
pub(super) struct Tin {
    pub share: Share,
    /// Weight among the tins where the whole has no limit.
    pub quantum: u16,
    pub deficit: i32,
    /// When it would send next at its own rate.
    pub time_next: i64,
    /// Empty until the first packet comes.
    pub flows: Vec<Flow>,
    tags: Vec<u32>,
    /// By source and by destination.
    hosts: [Vec<Host>; 2],
    /// First and last of each list.
    lists: [Ends; 3],
    pub bulk_flows: u16,
    pub sparse_flows: u16,
    pub decaying_flows: u16,
    pub unresponsive_flows: u16,
    // Counters
    /// Bytes queued.
    pub backlog: u32,
    pub dropped: u32,
    pub ecn_mark: u32,
    pub packets: u32,
    pub bytes: u64,
    pub ack_drops: u32,
    pub max_skblen: u32,
    /// Moving averages of the delay, ns.
    pub average: u64,
    pub peak: u64,
    pub base: u64,
    pub way_hits: u32,
    pub way_misses: u32,
    pub way_collisions: u32,
}

/// No flow.
const NONE: u16 = u16::MAX;

#[derive(Clone, Copy)]
struct Ends {
    first: u16,
    last: u16,
}

impl Default for Ends {
    fn default() -> Ends {
        Ends { first: NONE, last: NONE }
    }
}

/// `cake_ewma`.
pub(super) fn ewma(average: u64, sample: u64, shift: u32) -> u64 {
    average.wrapping_sub(average >> shift).wrapping_add(sample >> shift)
}

/// Which queue a packet asks for.
#[derive(Clone, Copy)]
pub(super) struct Wanted {
    /// Hash of its flow.
    pub flow: u32,
    /// Flow mode.
    pub mode: u32,
}

impl Tin {
    /// Makes the tables, once.
    #[inline]
    pub(super) fn open(&mut self) {
        if self.flows.is_empty() {
            self.make_tables();
        }
    }
    #[cold]
    fn make_tables(&mut self) {
        let flow = Flow {
            chain: Chain::EMPTY,
            deficit: 0,
            dropped: 0,
            vars: Vars::default(),
            source: 0,
            destination: 0,
            set: Set::None,
            next: NONE,
            prev: NONE,
        };
        self.flows = vec![flow; QUEUES];
        self.tags = vec![0; QUEUES];
        self.hosts = [vec![Host::default(); QUEUES], vec![Host::default(); QUEUES]];
    }

    /// Whether a list is empty.
    #[inline]
    pub(super) fn first(&self, list: List) -> Option<usize> {
        let first = self.lists[list as usize].first;
        (first != NONE).then_some(usize::from(first))
    }
    /// Takes a flow out of the list it is in.
    pub(super) fn leave(&mut self, list: List, n: usize) {
        let Flow { next, prev, .. } = self.flows[n];
        match prev {
            NONE => self.lists[list as usize].first = next,
            prev => self.flows[usize::from(prev)].next = next,
        }
        match next {
            NONE => self.lists[list as usize].last = prev,
            next => self.flows[usize::from(next)].prev = prev,
        }
    }
    /// Puts a flow at the end of a list.
    pub(super) fn join(&mut self, list: List, n: usize) {
        let ends = &mut self.lists[list as usize];
        let last = std::mem::replace(&mut ends.last, n as u16);
        match last {
            NONE => ends.first = n as u16,
            last => self.flows[usize::from(last)].next = n as u16,
        }
        (self.flows[n].next, self.flows[n].prev) = (NONE, last);
    }
    /// Flows that are sparse or bulk.
    #[inline]
    pub(super) fn active(&self) -> u32 {
        u32::from(self.sparse_flows) + u32::from(self.bulk_flows)
    }

    /// `cake_inc_srchost_bulk_flow_count`, `cake_inc_dsthost_bulk_flow_count`.
    pub(super) fn count_hosts(&mut self, n: usize, mode: u32) {
        if mode::by_source(mode) {
            self.count_host(0, self.flows[n].source);
        }
        if mode::by_destination(mode) {
            self.count_host(1, self.flows[n].destination);
        }
    }
    fn count_host(&mut self, side: usize, at: u16) {
        let host = &mut self.hosts[side][usize::from(at)];
        if usize::from(host.bulk_flows) < QUEUES {
            host.bulk_flows += 1;
        }
    }
    /// `cake_dec_srchost_bulk_flow_count`, `cake_dec_dsthost_bulk_flow_count`.
    pub(super) fn discount_hosts(&mut self, n: usize, mode: u32) {
        let Flow { source, destination, .. } = self.flows[n];
        for (side, at, shares) in
            [(0, source, mode::by_source(mode)), (1, destination, mode::by_destination(mode))]
        {
            if shares {
                let host = &mut self.hosts[side][usize::from(at)];
                host.bulk_flows = host.bulk_flows.saturating_sub(1);
            }
        }
    }
    /// `cake_get_flow_quantum`: the dice keep the rounding from adding up.
    pub(super) fn flow_quantum(&self, n: usize, mode: u32, rng: &mut Rng) -> i32 {
        let mut load = 1;
        if mode::by_source(mode) {
            load = load.max(self.hosts[0][usize::from(self.flows[n].source)].bulk_flows);
        }
        if mode::by_destination(mode) {
            load = load.max(self.hosts[1][usize::from(self.flows[n].destination)].bulk_flows);
        }
        let throw = rng.next_u32() >> 16;
        ((u32::from(self.share.flow_quantum) * u32::from(65535 / load) + throw) >> 16) as i32
    }

    /// The second half of `cake_hash`: the queue of a flow. `hosts` gives the hashes of its source and its destination.
    pub(super) fn find(&mut self, wanted: Wanted, hosts: impl FnOnce() -> [u32; 2]) -> usize {
        let Wanted { flow: hash, mode } = wanted;
        let reduced = hash as usize % QUEUES;
        if self.tags[reduced] == hash && self.flows[reduced].set != Set::None {
            return reduced;
        }
        let (inner, outer) = (reduced % WAYS, reduced - reduced % WAYS);
        let ways = (0..WAYS).map(|i| outer + (inner + i) % WAYS);
        let (n, new) = if let Some(n) = ways.clone().find(|&n| self.tags[n] == hash) {
            if n != reduced {
                self.way_hits = self.way_hits.wrapping_add(1);
            }
            (n, self.flows[n].set == Set::None)
        } else if let Some(n) = ways.clone().find(|&n| self.flows[n].set == Set::None) {
            self.way_misses = self.way_misses.wrapping_add(1);
            (n, true)
        } else {
            self.way_collisions = self.way_collisions.wrapping_add(1);
            if self.flows[reduced].set == Set::Bulk {
                self.discount_hosts(reduced, mode);
            }
            (reduced, true)
        };
        self.tags[n] = hash;
        if new && (mode::by_source(mode) || mode::by_destination(mode)) {
            let [source, destination] = hosts();
            let bulk = self.flows[n].set == Set::Bulk;
            if mode::by_source(mode) {
                let at = self.find_host(0, source);
                self.flows[n].source = at;
                if bulk {
                    self.count_host(0, at);
                }
            }
            if mode::by_destination(mode) {
                let at = self.find_host(1, destination);
                self.flows[n].destination = at;
                if bulk {
                    self.count_host(1, at);
                }
            }
        }
        n
    }
    /// The place of a host: its own, else one without bulk flows, else where its hash points.
    fn find_host(&mut self, side: usize, hash: u32) -> u16 {
        let hosts = &mut self.hosts[side];
        let reduced = hash as usize % QUEUES;
        let (inner, outer) = (reduced % WAYS, reduced - reduced % WAYS);
        let mut ways = (0..WAYS).map(|i| outer + (inner + i) % WAYS);
        if let Some(at) = ways.clone().find(|&at| hosts[at].tag == hash) {
            return at as u16;
        }
        let at = ways.find(|&at| hosts[at].bulk_flows == 0).unwrap_or(reduced);
        hosts[at].tag = hash;
        at as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_tins_get_longer_targets() {
        // 1 Mbit/s: 1514 bytes take 12.112 ms, half as much again is the least target.
        let tin = Share::new(125_000, 1514, 5_000_000, 100_000_000);
        let cobalt = tin.cobalt;
        assert_eq!((cobalt.target / 1000, cobalt.interval / 1000, tin.flow_quantum), (18_168, 113_168, 300));
        let free = Share::new(0, 1514, 5_000_000, 100_000_000);
        let cobalt = free.cobalt;
        assert_eq!((cobalt.target, cobalt.interval, free.flow_quantum), (5_000_000, 100_000_000, 1514));
    }

    #[test]
    fn eight_flows_of_one_hash_have_a_queue_each_and_the_ninth_shares() {
        let mut tin = Tin::default();
        tin.open();
        let mut find = |flow: u32| {
            let n = tin.find(Wanted { flow, mode: 4 }, || [0, 0]);
            tin.flows[n].set = Set::Bulk;
            n
        };
        let places: Vec<usize> = (1..=9).map(|k| find(13 + k * 1024)).collect();
        assert_eq!(places, [13, 14, 15, 8, 9, 10, 11, 12, 13]);
        // The first has lost its queue to the ninth, and takes it back.
        assert_eq!((find(13 + 1024), find(13 + 3 * 1024)), (13, 15));
        assert_eq!((tin.way_misses, tin.way_hits, tin.way_collisions), (8, 1, 2));
    }

    #[test]
    fn a_host_of_many_bulk_flows_gives_each_less() {
        let (mut tin, mut rng) = (Tin::default(), Rng::named(1, "tin"));
        tin.open();
        tin.share = Share::new(0, 1514, 5_000_000, 100_000_000);
        for flow in 1..=4 {
            let n = tin.find(Wanted { flow, mode: 5 }, || [77, 0]);
            (tin.flows[n].set, _) = (Set::Bulk, tin.count_hosts(n, 5));
        }
        let mean = (0..4000).map(|_| tin.flow_quantum(1, 5, &mut rng)).sum::<i32>() as f64 / 4000.0;
        // 1514 / 4, rounded by the dice.
        assert!((mean - 378.5).abs() < 0.05, "{mean}");
        tin.discount_hosts(1, 5);
        assert!((503..=505).contains(&tin.flow_quantum(1, 5, &mut rng)));
    }
}
