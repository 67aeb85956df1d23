//! `choke`: RED that also drops a packet met by chance in the queue if it is of the same flow.
//!
//! Follows: linux v6.12 `net/sched/sch_choke.c`.
//! Differs: a packet that the ring's running over forgets is on the ledger as displaced; the kernel leaks it. No counter knows of it in either.

use super::KindSpec;
use super::red::{Counts, Fate, NUMBERS, mark, parms, random};
use crate::aqm::red::{self, Action, Zone};
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Device, Init, Qdisc, Scribble, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Rng, Stats, Time};
use penstock_packet::{L3, L4, Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "choke",
    about: "RED that drops more from flows that hold more of the queue",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

/// `CHOKE_MAX_QUEUE`.
const MAX_QUEUE: u32 = 128 * 1024 - 1;
/// How often a packet is looked for at random before the first one is taken.
const TRIES: u32 = 3;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
    parms(o, Kernel::V6_12)?;
    let mut choke = Choke {
        limit: 0,
        flags: 0,
        parms: [0; 6],
        red: random(o, &init.device, None),
        device: init.device,
        ring: Vec::new(),
        head: 0,
        tail: 0,
        qlen: 0,
        backlog: 0,
        counts: Counts::default(),
        matched: 0,
        stats: Stats::default(),
    };
    choke.change(options, cx)?;
    Ok(Box::new(choke))
}

/// What two packets of one flow have in common (`make_flow_keys_digest`).
#[derive(Clone, Copy, PartialEq, Eq)]
struct Flow {
    ethertype: u16,
    protocol: u8,
    ports: (u16, u16),
    addresses: [u32; 2],
}

impl Flow {
    fn of(skb: &Skb) -> Flow {
        let (l3, l4) = skb.dissected();
        let ports = |whole: bool| match l4 {
            L4::Tcp(t) if whole => (t.sport, t.dport),
            L4::Udp(u) if whole => (u.sport, u.dport),
            _ => (0, 0),
        };
        let (protocol, ports, addresses) = match l3 {
            L3::Ipv4(h) => (h.protocol, ports(h.frag_off & 0x3fff == 0), [h.src.to_bits(), h.dst.to_bits()]),
            // The digest has room for two words: the first two of the source.
            L3::Ipv6(h) => {
                let src = h.src.to_bits();
                (h.protocol(), ports(h.fragment().is_none()), [(src >> 96) as u32, (src >> 64) as u32])
            }
            _ => (0, (0, 0), [0, 0]),
        };
        Flow { ethertype: skb.protocol(), protocol, ports, addresses }
    }
}

/// The qdisc.
#[derive(Debug)]
pub struct Choke {
    // Parameters
    device: Device,
    /// Packets.
    limit: u32,
    flags: u32,
    /// In the order of [`NUMBERS`].
    parms: [u32; 6],
    // Variables
    red: red::Red,
    /// Packets in order from `head` to before `tail`, with the places of those dropped from the midst; the first is never such a
    /// place. Its size is a power of two. Where the places of dropped packets let `tail` run into `head` it looks empty, whatever `qlen`
    /// says, as in the kernel.
    ring: Vec<Option<Packet>>,
    head: usize,
    tail: usize,
    qlen: u32,
    /// Bytes.
    backlog: u32,
    counts: Counts,
    matched: u32,
    stats: Stats,
}

impl Choke {
    fn discard(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) {
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, reason);
    }
    /// The place so many behind another.
    fn after(&self, place: usize, n: usize) -> usize {
        (place + n) & (self.ring.len() - 1)
    }
    fn is_empty(&self) -> bool {
        self.head == self.tail
    }
    /// The place of a packet by chance (`choke_peek_random`).
    fn peek_random(&self, rng: &mut Rng) -> usize {
        let len = self.tail.wrapping_sub(self.head) & (self.ring.len() - 1);
        for _ in 0..TRIES {
            let at = self.after(self.head, rng.below(len as u32) as usize);
            if self.ring[at].is_some() {
                return at;
            }
        }
        self.head
    }
    /// Takes the packet at a place (`choke_drop_by_idx`, `choke_zap_head_holes`).
    fn take(&mut self, at: usize) -> Option<Packet> {
        let packet = self.ring.get_mut(at)?.take()?;
        self.qlen -= 1;
        self.backlog -= packet.pkt_len;
        while self.head != self.tail && self.ring[self.head].is_none() {
            self.head = self.after(self.head, 1);
        }
        Some(packet)
    }
    /// Puts a packet behind the last.
    fn put(&mut self, packet: Packet, cx: &mut Cx<'_>) {
        self.qlen += 1;
        self.backlog += packet.pkt_len;
        if let Some(forgotten) = self.ring[self.tail].replace(packet) {
            cx.drops.drop(forgotten, DropReason::Displaced);
        }
        self.tail = self.after(self.tail, 1);
    }
}

impl Qdisc for Choke {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.red.average(cx.now, self.qlen);
        let zone = self.red.zone();
        if zone != Zone::Small {
            if !self.is_empty() {
                let at = self.peek_random(cx.rng);
                let same = |other: &Packet| Flow::of(other) == Flow::of(&packet);
                if self.ring[at].as_ref().is_some_and(same) {
                    self.matched = self.matched.wrapping_add(1);
                    if let Some(other) = self.take(at) {
                        self.discard(other, DropReason::Early, cx);
                    }
                    self.discard(packet, DropReason::Early, cx);
                    return Xmit::Cn;
                }
            }
            let action = match zone {
                Zone::Large => {
                    self.red.certain();
                    Action::Hard
                }
                _ if self.red.chance(cx.rng) => Action::Prob,
                _ => Action::Pass,
            };
            if action != Action::Pass {
                self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
            }
            // choke knows no nodrop.
            if mark(action, self.flags & 3, &mut packet, &mut self.counts) == Fate::Drops {
                self.discard(packet, DropReason::Early, cx);
                return Xmit::Cn;
            }
        }
        if self.qlen >= self.limit {
            self.counts.pdrop = self.counts.pdrop.wrapping_add(1);
            self.discard(packet, DropReason::Overlimit, cx);
            return Xmit::Drop;
        }
        self.put(packet, cx);
        Xmit::Success
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if self.is_empty() {
            self.red.start_idle(cx.now);
            return None;
        }
        let packet = self.take(self.head)?;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        Some(packet)
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        if self.is_empty() { None } else { self.ring[self.head].as_ref() }
    }
    fn watches_idle(&self) -> bool {
        true
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let o = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        let parms = parms(o, Kernel::V6_12)?;
        let limit = o.u32("limit").unwrap_or(0);
        if limit > MAX_QUEUE {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        (self.parms, self.limit, self.flags) = (parms, limit, o.u32("flags").unwrap_or(0));
        let size = (limit + 1).next_power_of_two() as usize;
        if size != self.ring.len() {
            // A ring of another size: without the empty places, and with no more than it holds.
            let mut old = std::mem::replace(&mut self.ring, (0..size).map(|_| None).collect());
            let (mut at, end) = (self.head, self.tail);
            (self.head, self.tail) = (0, 0);
            while at != end {
                match old[at].take() {
                    Some(packet) if self.tail < size - 1 => {
                        self.ring[self.tail] = Some(packet);
                        self.tail += 1;
                    }
                    Some(packet) => {
                        self.qlen -= 1;
                        self.backlog -= packet.pkt_len;
                        self.discard(packet, DropReason::Purged, cx);
                    }
                    None => {}
                }
                at = (at + 1) & (old.len() - 1);
            }
            for packet in old.into_iter().flatten() {
                cx.drops.drop(packet, DropReason::Displaced);
            }
        }
        self.red = random(o, &self.device, None);
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        (self.qlen, self.backlog) = (0, 0);
        for packet in self.ring.iter_mut().filter_map(Option::take) {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.head, self.tail) = (0, 0);
        self.red.restart();
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen, backlog: self.backlog, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.ring.iter().flatten().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        let o = Options::new().with("limit", self.limit).with("flags", self.flags);
        NUMBERS.into_iter().zip(self.parms).fold(o, |o, (name, value)| o.with(name, value))
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.marks())
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        Some(self.counts.xstats().with("matched", self.matched))
    }
    fn scribbles(&self) -> Scribble {
        Scribble::Byte
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};
    use penstock_model::Handle;

    #[test]
    fn its_queue_has_an_end() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let o = |limit: u32| {
            let numbers = [83u32, 250, 9, 24, 8, 85_899_345];
            let o = Options::new().with("limit", limit);
            NUMBERS.into_iter().zip(numbers).fold(o, |o, (name, value)| o.with(name, value))
        };
        let mut errno = |o: &Options| build(&init, Some(o), &mut bench.cx(0)).err().map(|e| e.errno);
        assert_eq!([errno(&o(MAX_QUEUE)), errno(&o(MAX_QUEUE + 1))], [None, Some(22)]);
        assert_eq!(errno(&o(5).with("scell_log", 32u32)), Some(22));
        assert_eq!(errno(&Options::new().with("min", 5u32)), Some(22));
    }

    /// A choke between 2 and `max` packets with the average at once at the queue's length.
    fn choke(max: u32, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let numbers = [2u32, max, 0, 31, 0, 0];
        let o = Options::new().with("limit", 50u32);
        let o = NUMBERS.into_iter().zip(numbers).fold(o, |o, (name, value)| o.with(name, value));
        build(&init, Some(&o), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn a_flow_that_meets_itself_loses_both() {
        let mut bench = Bench::new();
        let mut q = choke(40, &mut bench);
        // Up to the minimum nothing is looked at; then each packet meets one of its own flow, and both go.
        let answers: Vec<Xmit> = (0..6).map(|seq| q.enqueue(packet(seq, 100), &mut bench.cx(0))).collect();
        assert_eq!(answers[..3], [Xmit::Success; 3]);
        assert_eq!(answers[3], Xmit::Cn);
        let xstats = q.xstats(Time::ZERO).unwrap();
        let dropped = bench.dropped();
        assert_eq!(dropped.len() as u32, 2 * xstats.u32("matched").unwrap());
        assert_eq!((q.stats().drops, q.qlen()), (dropped.len() as u32, 6 - dropped.len() as u32));
        assert_eq!(q.stats().backlog, q.qlen() * 100);
        let rest: Vec<u64> = std::iter::from_fn(|| q.dequeue(&mut bench.cx(0)).map(|p| p.seq)).collect();
        assert!(rest.windows(2).all(|w| w[0] < w[1]) && rest.len() == 6 - dropped.len(), "{rest:?}");
    }

    #[test]
    fn a_ring_full_of_places_looks_empty() {
        let mut bench = Bench::new();
        let mut q = choke(40, &mut bench);
        q.change(Some(&q.dump().with("limit", 3u32)), &mut bench.cx(0)).unwrap();
        let mut send = |flow: u16, bench: &mut Bench| {
            let mut p = packet(u64::from(flow), 100);
            if let L4::Udp(u) = &mut p.l4 {
                u.sport = flow;
            }
            q.enqueue(p, &mut bench.cx(0))
        };
        for flow in [1, 2, 3] {
            assert_eq!(send(flow, &mut bench), Xmit::Success);
        }
        // Sooner or later it meets the second one, whose place stays: in a ring of four there is one more.
        assert!((0..100).any(|_| send(2, &mut bench) == Xmit::Cn));
        assert_eq!(send(4, &mut bench), Xmit::Success);
        assert_eq!((q.qlen(), q.dequeue(&mut bench.cx(0)).map(|p| p.seq)), (3, None));
    }

    #[test]
    fn strangers_are_dropped_over_the_maximum_only() {
        let mut bench = Bench::new();
        let mut q = choke(4, &mut bench);
        let mut other = |seq: u64| {
            let mut p = packet(seq, 100);
            if let L4::Udp(u) = &mut p.l4 {
                u.sport = seq as u16;
            }
            q.enqueue(p, &mut bench.cx(0))
        };
        let answers: Vec<Xmit> = (0..8).map(&mut other).collect();
        // The chance between the thresholds is 0 here; an average of five is over the maximum of four.
        assert_eq!(answers, [[Xmit::Success; 5].as_slice(), &[Xmit::Cn; 3]].concat());
        assert_eq!(q.xstats(Time::ZERO).unwrap().u32("early"), Some(3));
    }
}
