//! `prio`: bands in strict order, chosen by filters or priority; each band a qdisc of its own.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_prio.c`.
//! Differs: the dequeue of 2.6.35 forgot a packet that a peek had already taken out of a child; here it gives it.

use super::KindSpec;
use crate::cls::{BlockId, Filters, Gone, Verdict};
use crate::node::{Node, Shift};
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "prio",
    about: "bands in strict priority, chosen by filters or by the packet's priority",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Fixed,
        sorting: Sorting::Priority,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: true,
    },
};

/// Most bands (`TCQ_PRIO_BANDS`).
const BANDS_MAX: u32 = 16;
/// Fewest bands (`TCQ_MIN_PRIO_BANDS`).
const BANDS_MIN: u32 = 2;

fn build(init: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let (bands, prio2band) = parse(options)?;
    let mut prio = Prio {
        device: init.device,
        handle: init.handle,
        prio2band,
        filters: Filters::new(init.handle),
        bands: Vec::new(),
        qlen: 0,
        shift: Shift::default(),
        stats: Stats::default(),
    };
    prio.bands = (0..bands).map(|band| prio.default_band(band)).collect();
    Ok(Box::new(prio))
}

/// `bands` (2..=16) and `priomap` (a band for each of the 16 priorities).
fn parse(options: Option<&Options>) -> Result<(u32, [u8; 16]), KernelError> {
    let einval = KernelError::errno(KernelError::EINVAL);
    let options = options.ok_or(einval.clone())?;
    let bands = options.u32("bands").ok_or(einval.clone())?;
    let priomap = options.bytes("priomap").ok_or(einval.clone())?;
    let priomap = <[u8; 16]>::try_from(priomap).map_err(|_| einval.clone())?;
    let fits =
        (BANDS_MIN..=BANDS_MAX).contains(&bands) && priomap.iter().all(|&band| u32::from(band) < bands);
    if fits { Ok((bands, priomap)) } else { Err(einval) }
}

/// Bands in strict order.
pub struct Prio {
    // Parameters
    device: Device,
    handle: Handle,
    prio2band: [u8; 16],
    filters: Filters,
    // Variables
    bands: Vec<Node>,
    qlen: u32,
    /// What bands that are gone have left in `qlen` and `backlog` ([`Node::shift`]).
    shift: Shift,
    /// `backlog` is kept in 6.12 only: 2.6.35 has none here.
    stats: Stats,
}

impl Prio {
    fn class(&self, band: u32) -> Handle {
        Handle::new(self.handle.major(), (band + 1) as u16)
    }
    fn default_band(&self, band: u32) -> Node {
        Node::default_pfifo(&self.device, self.class(band))
    }
    /// `prio_find`: the band of a class.
    fn band(&self, classid: Handle) -> Option<usize> {
        let band = usize::from(classid.minor()).checked_sub(1)?;
        (band < self.bands.len()).then_some(band)
    }
    /// `prio_classify`.
    #[inline]
    fn classify(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Result<usize, Gone> {
        let priority = Handle(skb.priority);
        let class = if priority.qdisc() == self.handle {
            priority
        } else {
            match self.filters.classify(Filters::ROOT, skb, cx) {
                Verdict::Class(hit) => hit.classid,
                Verdict::Gone(gone) => return Err(gone),
                Verdict::Unmatched => {
                    let priority = if priority.major() == 0 { priority.0 & 15 } else { 0 };
                    return Ok(usize::from(self.prio2band[priority as usize]));
                }
            }
        };
        Ok(self.band(class).unwrap_or(usize::from(self.prio2band[0])))
    }
    /// Takes over what the bands hold, after one of them has dropped packets of itself. The kernel is told by
    /// `qdisc_tree_reduce_backlog`, which in 6.12 counts those packets as drops.
    #[cold]
    fn recount(&mut self) {
        let qlen = self.bands.iter().map(Node::qlen_above).fold(self.shift.packets, u32::wrapping_add);
        if self.device.kernel >= Kernel::V6_12 {
            self.stats.drops = self.stats.drops.wrapping_add(self.qlen.saturating_sub(qlen));
            let counted = self.bands.iter().map(Node::counted_above);
            self.stats.backlog = counted.fold(self.shift.bytes, u32::wrapping_add);
        }
        self.qlen = qlen;
    }
}

impl Qdisc for Prio {
    #[inline]
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let len = packet.pkt_len;
        let band = match self.classify(&mut packet, cx) {
            Ok(band) => band,
            Err(gone) => return gone.leave_counted(packet, &mut self.stats, cx),
        };
        let (dropped, cut) = (cx.drops.changes(), cx.drops.cut());
        let answer = self.bands[band].enqueue(packet, cx);
        self.qlen = self.qlen.wrapping_add(cx.drops.cut().since(cut).told);
        if answer == Xmit::Success {
            self.qlen += 1;
            match self.device.kernel {
                Kernel::V6_12 | Kernel::V7_2 => self.stats.backlog = self.stats.backlog.wrapping_add(len),
                Kernel::V2_6_35 => {
                    self.stats.bytes += u64::from(len);
                    self.stats.packets += 1;
                }
            }
        } else if answer.counts_as_drop() {
            self.stats.drops = self.stats.drops.wrapping_add(1);
        }
        if cx.drops.changes() != dropped {
            self.recount();
        }
        answer
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        // A band that notes it is asked although there is nothing.
        if self.qlen == 0 && !self.bands.iter().any(Node::watches_idle) {
            return None;
        }
        let dropped = cx.drops.changes();
        let packet = self.bands.iter_mut().find_map(|band| band.dequeue(cx));
        if let Some(packet) = &packet {
            self.qlen -= 1;
            if self.device.kernel >= Kernel::V6_12 {
                self.stats.backlog = self.stats.backlog.wrapping_sub(packet.pkt_len);
                self.stats.bytes += u64::from(packet.pkt_len);
                self.stats.packets += packet.counts_as();
            }
        }
        if cx.drops.changes() != dropped {
            self.recount();
        }
        packet
    }
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        let dropped = cx.drops.changes();
        let band = self.bands.iter_mut().position(|band| band.peek(cx).is_some());
        if cx.drops.changes() != dropped {
            self.recount();
        }
        self.bands[band?].peek(cx)
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.bands.iter().filter_map(Node::next_wakeup).min()
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let (bands, prio2band) = parse(options)?;
        self.prio2band = prio2band;
        for mut gone in self.bands.drain((bands as usize).min(self.bands.len())..) {
            self.shift = self.shift.and(gone.leaves_behind());
            gone.reset(cx);
        }
        while self.bands.len() < bands as usize {
            self.bands.push(self.default_band(self.bands.len() as u32));
        }
        // A band whose qdisc was deleted is empty in 2.6.35, until a change fills it again.
        for band in 0..bands {
            if self.bands[band as usize].is_noop() {
                self.bands[band as usize] = self.default_band(band);
            }
        }
        self.recount();
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.bands.iter_mut().for_each(|band| band.reset(cx));
        (self.qlen, self.shift) = (0, Shift::default());
        self.stats.backlog = 0;
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    fn dump(&self) -> Options {
        Options::new().with("bands", self.bands.len() as u32).with("priomap", self.prio2band.to_vec())
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
    /// `prio_dequeue` asks each band, and one that notes it may be among them.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

impl Classful for Prio {
    fn find(&self, classid: Handle) -> bool {
        self.band(classid).is_some()
    }
    fn graft(
        &mut self,
        classid: Handle,
        new: Option<Node>,
        _: &mut Cx<'_>,
    ) -> Result<Option<Node>, KernelError> {
        let band = self.band(classid).ok_or(KernelError::errno(KernelError::ENOENT))?;
        let new = match (new, self.device.kernel) {
            (Some(new), _) => new,
            (None, Kernel::V2_6_35) => Node::noop(),
            (None, Kernel::V6_12 | Kernel::V7_2) => self.default_band(band as u32),
        };
        Ok(Some(std::mem::replace(&mut self.bands[band], new)))
    }
    fn leaf(&self, classid: Handle) -> Option<&Node> {
        self.bands.get(self.band(classid)?)
    }
    fn leaf_mut(&mut self, classid: Handle) -> Option<&mut Node> {
        let band = self.band(classid)?;
        self.bands.get_mut(band)
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        for (band, node) in self.bands.iter().enumerate() {
            visit(self.class(band as u32), node);
        }
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        for (band, node) in self.bands.iter_mut().enumerate() {
            visit(Handle::new(self.handle.major(), band as u16 + 1), node);
        }
    }
    fn reduced(&mut self, _: Handle, _: u32, _: u32) {
        self.recount();
    }
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        for (band, node) in self.bands.iter().enumerate() {
            visit(ClassDump {
                kind: SPEC.id,
                classid: self.class(band as u32),
                parent: self.handle,
                leaf: Some(node.handle).filter(|&h| h != Handle::UNSPEC),
                options: Options::new(),
                counters: Counters::All,
                stats: node.stats(),
                xstats: None,
            });
        }
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn block(&self, classid: Handle) -> Option<BlockId> {
        (classid == Handle::UNSPEC).then_some(Filters::ROOT)
    }
    fn bind(&mut self, _: Handle, classid: Handle) -> u32 {
        self.band(classid).map_or(0, |band| band as u32 + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::DropReason;
    use crate::sch::pfifo_fast::PRIO2BAND;
    use crate::testing::{Bench, device, packet};

    fn options(bands: u32) -> Options {
        Options::new().with("bands", bands).with("priomap", PRIO2BAND.to_vec())
    }
    fn prio(kernel: Kernel, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, Some(&options(3)), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn bands_go_in_order_and_priority_names_them() {
        let mut bench = Bench::new();
        let mut q = prio(Kernel::V6_12, &mut bench);
        // priomap: 0 is band 1, 1 band 2, 6 band 0; 1:3 names band 2, 1:9 none: priomap[0]; 2:1 is not ours: 0.
        for (seq, priority) in [(0, 1), (1, 0), (2, 6), (3, 0x1_0003), (4, 0x1_0009), (5, 0x2_0001)] {
            let mut p = packet(seq, 100);
            p.priority = priority;
            assert_eq!(q.enqueue(p, &mut bench.cx(0)), Xmit::Success);
        }
        assert_eq!((q.stats().qlen, q.stats().backlog), (6, 600));
        let order: Vec<u64> = std::iter::from_fn(|| q.dequeue(&mut bench.cx(0))).map(|p| p.seq).collect();
        assert_eq!(order, [2, 1, 4, 5, 0, 3]);
        let s = q.stats();
        assert_eq!((s.packets, s.bytes, s.qlen, s.backlog), (6, 600, 0, 0));
    }

    #[test]
    fn fewer_bands_purge_what_is_in_the_others() {
        for (kernel, drops) in [(Kernel::V6_12, 1), (Kernel::V2_6_35, 0)] {
            let mut bench = Bench::new();
            let mut q = prio(kernel, &mut bench);
            let mut p = packet(0, 100);
            p.priority = 1;
            q.enqueue(p, &mut bench.cx(0));
            let two = Options::new().with("bands", 2u32).with("priomap", vec![0u8; 16]);
            q.change(Some(&two), &mut bench.cx(0)).unwrap();
            assert_eq!(bench.dropped(), [(0, DropReason::Purged)]);
            assert_eq!((q.stats().qlen, q.stats().backlog, q.stats().drops), (0, 0, drops));
        }
    }

    #[test]
    fn nonsense_is_refused_and_changes_nothing() {
        let mut bench = Bench::new();
        let mut q = prio(Kernel::V6_12, &mut bench);
        for bad in [options(1), options(17), options(2), Options::new()] {
            assert_eq!(q.change(Some(&bad), &mut bench.cx(0)).map_err(|e| e.errno), Err(22));
        }
        assert_eq!(q.dump(), options(3));
    }
}
