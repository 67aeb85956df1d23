//! `ets`: enhanced transmission selection of 802.1Qaz, strict bands before bands that share by quanta.
//!
//! Follows: linux v6.12 `net/sched/sch_ets.c`; shared bands take turns as `drr`'s classes do.
//! Differs: no hardware offload.

use super::KindSpec;
use super::bands::{Banded, Bands};
use crate::cls::{Filters, Gone, Verdict};
use crate::ledger::DropReason;
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::collections::VecDeque;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "ets",
    about: "strict bands first, then bands that share by quanta",
    kernels: &Kernel::LIVING,
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

/// `TCQ_ETS_MAX_BANDS`.
const BANDS_MAX: u32 = 16;
/// What a quantum is kept within, bytes.
const QUANTUM_RANGE: (u32, u32) = (256, 1 << 20);

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut ets = Ets {
        bands: Bands::new(init),
        filters: Filters::new(init.handle),
        strict: 0,
        quanta: Vec::new(),
        priomap: [0; 16],
        active: VecDeque::with_capacity(BANDS_MAX as usize),
        deficits: [0; BANDS_MAX as usize],
        peeked: None,
        qlen: 0,
        backlog: 0,
        stats: Stats::default(),
    };
    ets.change(options, cx)?;
    Ok(Box::new(ets))
}

/// The qdisc.
struct Ets {
    // Parameters
    bands: Bands,
    filters: Filters,
    /// How many bands are strict.
    strict: usize,
    /// Bytes a turn, by band; 0 in strict ones.
    quanta: Vec<u32>,
    /// Band by priority.
    priomap: [u8; 16],
    // Variables
    /// Shared bands with packets, in the order of their turns.
    active: VecDeque<usize>,
    /// Bytes each may still send in this turn.
    deficits: [u32; BANDS_MAX as usize],
    peeked: Option<Packet>,
    qlen: u32,
    backlog: u32,
    stats: Stats,
}

impl Ets {
    /// `ets_classify`.
    #[inline]
    fn classify(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Result<usize, Gone> {
        let priority = Handle(skb.priority);
        let class = if priority.qdisc() == self.bands.handle {
            priority
        } else {
            match self.filters.classify(Filters::ROOT, skb, cx) {
                Verdict::Class(hit) => hit.classid,
                Verdict::Gone(gone) => return Err(gone),
                Verdict::Unmatched => {
                    let priority = if priority.major() == 0 { priority.0 & 15 } else { 0 };
                    return Ok(usize::from(self.priomap[priority as usize]));
                }
            }
        };
        Ok(self.bands.band(class).unwrap_or(usize::from(self.priomap[0])))
    }
    /// `list_del_init`: a band is not among those that take turns.
    #[inline]
    fn deactivate(&mut self, band: usize) {
        match self.active.front() {
            Some(&first) if first == band => {
                self.active.pop_front();
            }
            _ => self.active.retain(|&b| b != band),
        }
    }
    /// Runs `work` on the qdisc in a band and takes over what that has lost of itself: `qdisc_tree_reduce_backlog`. `added`:
    /// packets that it has more by what was asked, less where one was taken.
    #[inline]
    fn on_band<T>(
        &mut self,
        band: usize,
        work: impl FnOnce(&mut Node) -> T,
        added: impl FnOnce(&T) -> i64,
    ) -> T {
        let node = &mut self.bands.nodes[band];
        let before = (node.qlen_above(), node.counted_above());
        let result = work(node);
        let after = (node.qlen_above(), node.counted_above());
        self.qlen = self.qlen.wrapping_add(after.0.wrapping_sub(before.0));
        self.backlog = self.backlog.wrapping_add(after.1.wrapping_sub(before.1));
        let lost = i64::from(before.0) + added(&result) - i64::from(after.0);
        if lost > 0 {
            self.stats.drops = self.stats.drops.wrapping_add(lost as u32);
            if self.bands.nodes[band].qlen() == 0 && band >= self.strict {
                self.deactivate(band);
            }
        }
        result
    }
    /// A packet of a band.
    #[inline]
    fn take_from(&mut self, band: usize, cx: &mut Cx<'_>) -> Option<Packet> {
        self.on_band(band, |node| node.dequeue(cx), |packet| -i64::from(packet.is_some()))
    }
    /// `ets_qdisc_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let packet = loop {
            if let Some(packet) = (0..self.strict).find_map(|band| self.take_from(band, cx)) {
                break packet;
            }
            let band = *self.active.front()?;
            //= linux v6.12 sch_ets.c ets_qdisc_dequeue: a band without a packet to show ends the search.
            let len = self.on_band(band, |node| node.peek(cx).map(|p| p.pkt_len), |_| 0)?;
            let deficit = &mut self.deficits[band];
            if len > *deficit {
                *deficit = deficit.wrapping_add(self.quanta[band]);
                self.active.rotate_left(1);
                continue;
            }
            *deficit -= len;
            let packet = self.take_from(band, cx)?;
            if self.bands.nodes[band].qlen() == 0 {
                self.deactivate(band);
            }
            break packet;
        };
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        Some(packet)
    }
}

impl Qdisc for Ets {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let band = match self.classify(&mut packet, cx) {
            Ok(band) => band,
            Err(gone) => return gone.leave_counted(packet, &mut self.stats, cx),
        };
        let added = |&(xmit, more): &(Xmit, u32)| i64::from(xmit == Xmit::Success) + i64::from(more);
        let (answer, _) = self.on_band(band, |node| node.enqueue_told(packet, cx), added);
        if answer != Xmit::Success {
            if answer.counts_as_drop() {
                self.stats.drops = self.stats.drops.wrapping_add(1);
            }
            return answer;
        }
        if band >= self.strict && !self.active.contains(&band) {
            self.active.push_back(band);
            self.deficits[band] = self.quanta[band];
        }
        Xmit::Success
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.peeked.take().or_else(|| self.take(cx))
    }
    /// `qdisc_peek_dequeued`: the packet is taken and counted, and kept.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            self.peeked = self.take(cx);
        }
        self.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.bands.nodes.iter().filter_map(Node::next_wakeup).min()
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let no = |sentence: &str| Err(KernelError::new(KernelError::EINVAL, sentence));
        let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        let Some(bands) = options.u32("bands") else {
            return no("sch_ets: Number of bands is a required argument");
        };
        if !(1..=BANDS_MAX).contains(&bands) {
            return no("sch_ets: Invalid number of bands");
        }
        let strict = options.u32("strict").unwrap_or(0);
        if strict > bands {
            return no("sch_ets: Invalid number of strict bands");
        }
        // Unless it is said, traffic goes to the last band.
        let mut priomap = [bands as u8 - 1; 16];
        for (prio, &band) in options.bytes("priomap").unwrap_or(&[]).iter().enumerate() {
            if prio >= priomap.len() {
                return no("sch_ets: Too many priorities in ETS priomap");
            }
            if u32::from(band) >= bands {
                return no("sch_ets: Invalid band number in ETS priomap");
            }
            priomap[prio] = band;
        }
        let fitting = |quantum: u32| quantum.clamp(QUANTUM_RANGE.0, QUANTUM_RANGE.1);
        let default = fitting(self.bands.device.psched_mtu());
        let mut quanta = vec![0; strict as usize];
        for given in options.list("quanta") {
            if quanta.len() as u32 >= bands {
                return no("sch_ets: ETS quanta has more values than bands");
            }
            quanta.push(fitting(given.u32("quantum").unwrap_or(0)));
        }
        quanta.resize(bands as usize, default);
        let (bands, strict) = (bands as usize, strict as usize);
        for band in bands..self.bands.nodes.len() {
            self.deactivate(band);
            self.deficits[band] = 0;
            let node = &mut self.bands.nodes[band];
            let (packets, bytes) = node.told();
            node.reset(cx);
            Banded::reduced(self, band, packets, bytes);
        }
        self.bands.resize(bands, cx);
        for (band, &quantum) in quanta.iter().enumerate().take(self.strict.min(bands)).skip(strict) {
            if self.bands.nodes[band].qlen() > 0 {
                self.active.push_back(band);
                self.deficits[band] = quantum;
            }
        }
        for band in self.strict..strict {
            self.deactivate(band);
        }
        (self.strict, self.quanta, self.priomap) = (strict, quanta, priomap);
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.active.clear();
        self.bands.nodes.iter_mut().for_each(|band| band.reset(cx));
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.qlen, self.backlog) = (0, 0);
    }
    fn stats(&self) -> Stats {
        let peeked = self.peeked.as_ref().map_or(0, |p| p.pkt_len);
        Stats { qlen: self.qlen(), backlog: self.backlog.wrapping_add(peeked), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen + u32::from(self.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        let mut options = Options::new().with("bands", self.quanta.len() as u32);
        if self.strict > 0 {
            options = options.with("strict", self.strict as u32);
        }
        if self.quanta.len() > self.strict {
            let shared = self.quanta[self.strict..].iter();
            options = options
                .with("quanta", shared.map(|&q| Options::new().with("quantum", q)).collect::<Vec<_>>());
        }
        options.with("priomap", self.priomap.to_vec())
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.bands.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
    /// Each strict band is asked, and one that notes it may be among them.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

impl Banded for Ets {
    super::bands::has_bands!();
    /// A class's quantum can be changed; classes come and go with the qdisc's bands.
    fn change_class(&mut self, classid: Handle, options: Option<&Options>) -> Result<Handle, KernelError> {
        let Some(band) = self.bands.band(classid) else {
            let sentence = "Fine-grained class addition and removal is not supported";
            return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
        };
        let Some(options) = options else {
            let sentence = "ETS options are required for this operation";
            return Err(KernelError::new(KernelError::EINVAL, sentence));
        };
        let Some(quantum) = options.u32("quantum") else { return Ok(classid) };
        if band < self.strict {
            let sentence = "Strict bands do not have a configurable quantum";
            return Err(KernelError::new(KernelError::EINVAL, sentence));
        }
        self.quanta[band] = quantum.clamp(QUANTUM_RANGE.0, QUANTUM_RANGE.1);
        Ok(classid)
    }
    /// `qdisc_tree_reduce_backlog`, `ets_class_qlen_notify`.
    fn reduced(&mut self, band: usize, packets: u32, bytes: u32) {
        if self.bands.nodes[band].qlen() == 0 && band >= self.strict && self.qlen > 0 {
            self.deactivate(band);
        }
        self.qlen = self.qlen.wrapping_sub(packets);
        self.backlog = self.backlog.wrapping_sub(bytes);
        self.stats.drops = self.stats.drops.wrapping_add(packets);
    }
    fn dump_band(&self, band: usize) -> (Handle, Options) {
        let options = match band < self.strict {
            true => Options::new(),
            false => Options::new().with("quantum", self.quanta[band]),
        };
        (Handle::ROOT, options)
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
    fn why_no_block(&self) -> &'static str {
        "ETS classid must be zero"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};

    fn options(bands: u32, strict: u32, quanta: &[u32]) -> Options {
        let quanta: Vec<Options> = quanta.iter().map(|&q| Options::new().with("quantum", q)).collect();
        Options::new().with("bands", bands).with("strict", strict).with("quanta", quanta)
    }
    fn ets(options: &Options, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, Some(options), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }
    fn fill(q: &mut dyn Qdisc, bench: &mut Bench, bands: &[u32]) {
        for (seq, band) in bands.iter().enumerate() {
            let mut p = packet(seq as u64, 500);
            p.priority = 0x1_0001 + band;
            assert_eq!(q.enqueue(p, &mut bench.cx(0)), Xmit::Success);
        }
    }
    fn order(q: &mut dyn Qdisc, bench: &mut Bench) -> Vec<u64> {
        std::iter::from_fn(|| q.dequeue(&mut bench.cx(0))).map(|p| p.seq).collect()
    }

    #[test]
    fn strict_bands_first_then_quanta() {
        let mut bench = Bench::new();
        let mut q = ets(&options(3, 1, &[1000, 500]), &mut bench);
        fill(&mut *q, &mut bench, &[1, 1, 1, 1, 2, 2, 2, 0]);
        assert_eq!((q.stats().qlen, q.stats().backlog), (8, 4000));
        assert_eq!(order(&mut *q, &mut bench), [7, 0, 1, 4, 2, 3, 5, 6]);
        assert_eq!((q.stats().packets, q.qlen(), q.stats().backlog), (8, 0, 0));
    }

    #[test]
    fn what_was_strict_joins_the_turns() {
        let mut bench = Bench::new();
        let mut q = ets(&options(3, 3, &[]), &mut bench);
        fill(&mut *q, &mut bench, &[0, 0, 1, 1, 2]);
        q.change(Some(&options(2, 0, &[500, 500])), &mut bench.cx(0)).unwrap();
        assert_eq!(bench.dropped(), [(4, DropReason::Purged)]);
        assert_eq!((q.stats().drops, q.qlen()), (1, 4));
        assert_eq!(order(&mut *q, &mut bench), [0, 2, 1, 3]);
    }
}
