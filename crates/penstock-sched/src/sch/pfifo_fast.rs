//! `pfifo_fast`: three queues by priority; the kernel's default.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_generic.c` `pfifo_fast_enqueue`, `pfifo_fast_dequeue`.
//! Differs: none known.

use super::KindSpec;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Device, Init, Qdisc, Xmit};
use crate::queue::Queue;
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "pfifo_fast",
    about: "three bands by priority, each first in first out; the default",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Bands,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// Number of bands.
const BANDS: usize = 3;
/// `sch_default_prio2band`: band of each of the 16 priorities.
pub const PRIO2BAND: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];

fn build(init: &Init, _: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    if init.device.tx_queue_len == 0 && init.device.kernel >= Kernel::V6_12 {
        return Err(KernelError::errno(KernelError::EINVAL));
    }
    Ok(Box::new(PfifoFast::new(init)))
}

/// How a band's ring of 6.12 gives its places back: not with each packet taken, but [`RING_BATCH`] at a time and where
/// the ring begins anew (`__ptr_ring_discard_one`). Until then they count as taken.
#[derive(Clone, Copy, Default, Debug)]
struct Ring {
    size: u32,
    batch: u32,
    /// `consumer_head`: the place the next packet is taken from.
    head: u32,
    /// Places before it that are not given back yet.
    held: u32,
}

/// Places given back at once: two cache lines of pointers.
const RING_BATCH: u32 = 16;

impl Ring {
    /// `__ptr_ring_set_size`.
    fn new(size: u32) -> Ring {
        let batch = if RING_BATCH > size / 2 { 1 } else { RING_BATCH };
        Ring { size, batch, head: 0, held: 0 }
    }
    /// A packet was taken.
    #[inline]
    fn taken(&mut self) {
        self.head += 1;
        self.held += 1;
        if self.held >= self.batch {
            self.held = 0;
        }
        if self.head >= self.size {
            (self.head, self.held) = (0, 0);
        }
    }
}

/// Three bands.
#[derive(Debug)]
pub struct PfifoFast {
    // Parameters
    device: Device,
    is_root: bool,
    /// It is the only qdisc of a transmit queue.
    alone: bool,
    // Variables
    /// Places of each band (6.12).
    rings: [Ring; BANDS],
    bands: [Queue; BANDS],
    qlen: u32,
    stats: Stats,
}

impl PfifoFast {
    /// Empty.
    pub fn new(init: &Init) -> PfifoFast {
        PfifoFast {
            device: init.device,
            is_root: init.parent == Handle::ROOT,
            alone: init.parent == Handle::ROOT,
            rings: [Ring::new(init.device.tx_queue_len); BANDS],
            bands: Default::default(),
            qlen: 0,
            stats: Stats::default(),
        }
    }
}

impl Qdisc for PfifoFast {
    fn stands_alone(&mut self) {
        self.alone = true;
    }
    #[inline]
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let number = usize::from(PRIO2BAND[packet.priority as usize & 15]);
        let (band, ring) = (&mut self.bands[number], &self.rings[number]);
        // One limit for all bands in 2.6.35; since 4.16 each band is a ring of its own.
        let (full, old) = match self.device.kernel {
            Kernel::V2_6_35 => (self.qlen >= self.device.tx_queue_len, true),
            Kernel::V6_12 | Kernel::V7_2 => (band.len() + ring.held >= ring.size, false),
        };
        //= linux v6.12 net/core/dev.c __dev_xmit_skb: past an empty one that stands alone (TCQ_F_CAN_BYPASS), whatever it would hold.
        if full && !(self.alone && self.qlen == 0) {
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Overlimit);
            return Xmit::Drop;
        }
        if old {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
        }
        self.qlen += 1;
        band.push_tail(packet);
        Xmit::Success
    }
    #[inline]
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        let take = |(band, ring): (&mut Queue, &mut Ring)| {
            let packet = band.pop_head()?;
            ring.taken();
            Some(packet)
        };
        let packet = self.bands.iter_mut().zip(&mut self.rings).find_map(take)?;
        self.qlen -= 1;
        if self.device.kernel >= Kernel::V6_12 {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
        }
        Some(packet)
    }
    #[inline]
    fn pass_by(&mut self, packet: &Skb) -> bool {
        let number = usize::from(PRIO2BAND[packet.priority as usize & 15]);
        let ring = &mut self.rings[number];
        if self.qlen > 0 {
            return false;
        }
        ring.taken();
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        true
    }
    fn never_wakes(&self) -> bool {
        true
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.bands.iter().find_map(Queue::head)
    }
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        Err(self.device.refusal(KernelError::EINVAL, "Change operation not supported by specified qdisc"))
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.qlen = 0;
        for (band, ring) in self.bands.iter_mut().zip(&mut self.rings) {
            (0..band.len()).for_each(|_| ring.taken());
            band.purge(cx);
        }
    }
    fn stats(&self) -> Stats {
        let backlog = self.bands.iter().map(Queue::backlog).sum();
        Stats { qlen: self.qlen, backlog, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.bands.iter().flat_map(Queue::iter).for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        Options::new().with("bands", BANDS as u32).with("priomap", PRIO2BAND.to_vec())
    }
    /// 6.12 resizes its rings at once, dropping the youngest packets that no longer fit, but only those of a root
    /// (`dev_qdisc_change_tx_queue_len`); 2.6.35 reads txqueuelen with each packet.
    fn set_device(&mut self, device: &Device, cx: &mut Cx<'_>) {
        self.device = *device;
        if device.kernel >= Kernel::V6_12 && self.is_root {
            self.rings = [Ring::new(device.tx_queue_len); BANDS];
            for band in &mut self.bands {
                while band.len() > device.tx_queue_len
                    && let Some(packet) = band.pop_tail()
                {
                    self.qlen -= 1;
                    cx.drops.drop(packet, DropReason::Purged);
                }
            }
        }
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};

    fn init(kernel: Kernel, tx_queue_len: u32, parent: Handle) -> Init {
        Init { device: Device { tx_queue_len, ..device(kernel) }, handle: Handle::UNSPEC, parent }
    }

    #[test]
    fn lower_bands_go_first() {
        let mut bench = Bench::new();
        let mut q = PfifoFast::new(&init(Kernel::V6_12, 1000, Handle::ROOT));
        for (seq, priority) in [(0, 2), (1, 0), (2, 6), (3, 4), (4, 7), (5, 0x10006)] {
            let mut p = packet(seq, 100);
            p.priority = priority;
            q.enqueue(p, &mut bench.cx(0));
        }
        let order: Vec<u64> = std::iter::from_fn(|| q.dequeue(&mut bench.cx(0))).map(|p| p.seq).collect();
        assert_eq!(order, [2, 4, 5, 1, 3, 0]);
    }

    #[test]
    fn the_limit_is_for_all_bands_in_2010_and_for_each_today() {
        for (kernel, taken) in [(Kernel::V2_6_35, 2), (Kernel::V6_12, 4)] {
            let mut bench = Bench::new();
            let mut q = PfifoFast::new(&init(kernel, 2, Handle::ROOT));
            for (seq, priority) in [(0, 0), (1, 0), (2, 0), (3, 6), (4, 6)] {
                let mut p = packet(seq, 100);
                p.priority = priority;
                q.enqueue(p, &mut bench.cx(0));
            }
            assert_eq!((q.qlen(), q.stats().drops), (taken, 5 - taken), "{kernel}");
        }
    }
    #[test]
    fn a_shorter_txqueuelen_drops_the_youngest_of_a_root_only() {
        for (parent, left) in [(Handle::ROOT, 1), (Handle::new(1, 1), 3)] {
            let mut bench = Bench::new();
            let mut q = PfifoFast::new(&init(Kernel::V6_12, 3, parent));
            for seq in 0..3 {
                q.enqueue(packet(seq, 100), &mut bench.cx(0));
            }
            q.set_device(&Device { tx_queue_len: 1, ..device(Kernel::V6_12) }, &mut bench.cx(0));
            assert_eq!((q.qlen(), q.peek(&mut bench.cx(0)).map(|p| p.seq)), (left, Some(0)));
        }
    }

    #[test]
    fn a_ring_gives_its_places_back_sixteen_at_a_time() {
        let mut bench = Bench::new();
        let device = Device { tx_queue_len: 40, ..device(Kernel::V6_12) };
        let mut q = PfifoFast::new(&Init { device, handle: Handle::UNSPEC, parent: Handle::ROOT });
        let mut fill = |q: &mut PfifoFast| {
            (0..100).take_while(|&i| q.enqueue(packet(i, 100), &mut bench.cx(0)) == Xmit::Success).count()
        };
        assert_eq!(fill(&mut q), 40);
        let mut bench = Bench::new();
        let mut take = |q: &mut PfifoFast, n: u32| (0..n).for_each(|_| drop(q.dequeue(&mut bench.cx(0))));
        take(&mut q, 15);
        assert_eq!(fill(&mut q), 0);
        take(&mut q, 1);
        assert_eq!(fill(&mut q), 16);
        // 40 places end before the third sixteen is full.
        take(&mut q, 24);
        assert_eq!(fill(&mut q), 24);
    }
}
