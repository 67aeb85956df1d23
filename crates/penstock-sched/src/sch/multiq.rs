//! `multiq`: a band for each transmit queue of the device.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_multiq.c`. Its own `backlog` counts no packet that comes or goes, and
//! falls by what those in its bands drop of themselves: 6.12 shows 0 or a number just below 2^32.
//! Differs: every queue of a device is in use, and none is ever stopped: the card asks when it can take a packet.

use super::KindSpec;
use super::bands::{Banded, Bands};
use crate::cls::{Filters, Gone, Verdict};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "multiq",
    about: "a band for each transmit queue, so that one that is stopped does not hold up the others",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Fixed,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: true,
    },
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut multiq = Multiq {
        bands: Bands::new(init),
        filters: Filters::new(init.handle),
        current: 0,
        qlen: 0,
        held: 0,
        stats: Stats::default(),
    };
    multiq.change(options, cx)?;
    Ok(Box::new(multiq))
}

/// The qdisc.
struct Multiq {
    // Parameters
    bands: Bands,
    filters: Filters,
    // Variables
    /// `curband`: the band that was asked last.
    current: usize,
    qlen: u32,
    /// Bytes in the bands.
    held: u32,
    /// `backlog` as the kernel keeps it here.
    stats: Stats,
}

impl Multiq {
    fn is_old(&self) -> bool {
        self.bands.device.kernel == Kernel::V2_6_35
    }
    /// `multiq_classify`: the filters only look; what counts is the queue that the packet is mapped to.
    fn classify(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Result<usize, Gone> {
        if let Verdict::Gone(gone) = self.filters.classify(Filters::ROOT, skb, cx) {
            return Err(gone);
        }
        let band = usize::from(skb.rare().queue_mapping);
        Ok(if band < self.bands.nodes.len() { band } else { 0 })
    }
    /// Runs `work` on the qdisc in a band and takes over what that has lost of itself (`qdisc_tree_reduce_backlog`). `added`: the
    /// packets and bytes that it has more by what was asked, less where one was taken.
    fn on_band<T>(
        &mut self,
        band: usize,
        work: impl FnOnce(&mut Node) -> T,
        added: impl FnOnce(&T) -> (u32, u32),
    ) -> T {
        let node = &mut self.bands.nodes[band];
        let before = (node.qlen_above(), node.counted_above(), node.backlog());
        let result = work(node);
        let after = (node.qlen_above(), node.counted_above(), node.backlog());
        let added = added(&result);
        self.qlen = self.qlen.wrapping_add(after.0.wrapping_sub(before.0));
        self.held = self.held.wrapping_add(after.2.wrapping_sub(before.2));
        let packets = before.0.wrapping_add(added.0).wrapping_sub(after.0);
        let bytes = before.1.wrapping_add(added.1).wrapping_sub(after.1);
        if !self.is_old() {
            self.stats.backlog = self.stats.backlog.wrapping_sub(bytes);
            if (packets as i32) > 0 {
                self.stats.drops = self.stats.drops.wrapping_add(packets);
            }
        }
        result
    }
    fn count(&mut self, len: u32, packets: u64) {
        self.stats.bytes += u64::from(len);
        self.stats.packets += packets;
    }
    /// The bands in the order in which they are asked next.
    fn turns(&self) -> impl Iterator<Item = usize> + use<> {
        let bands = self.bands.nodes.len();
        let first = if self.current + 1 < bands { self.current + 1 } else { 0 };
        (first..bands).chain(0..first)
    }
}

impl Qdisc for Multiq {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let band = match self.classify(&mut packet, cx) {
            Ok(band) => band,
            Err(gone) => return gone.leave_counted(packet, &mut self.stats, cx),
        };
        let len = packet.pkt_len;
        let added =
            |&(xmit, more): &(Xmit, u32)| if xmit == Xmit::Success { (1 + more, len) } else { (more, 0) };
        let (answer, _) = self.on_band(band, |node| node.enqueue_told(packet, cx), added);
        if answer == Xmit::Success {
            if self.is_old() {
                self.count(len, 1);
            }
        } else if answer.counts_as_drop() {
            self.stats.drops = self.stats.drops.wrapping_add(1);
        }
        answer
    }
    /// `multiq_dequeue`: round robin, a packet a turn.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        for band in self.turns() {
            self.current = band;
            let added = |packet: &Option<Packet>| {
                packet.as_ref().map_or((0, 0), |p| (1u32.wrapping_neg(), p.pkt_len.wrapping_neg()))
            };
            let Some(packet) = self.on_band(band, |node| node.dequeue(cx), added) else { continue };
            if !self.is_old() {
                self.count(packet.pkt_len, packet.counts_as());
            }
            return Some(packet);
        }
        None
    }
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        let shows = self.turns().find(|&band| self.on_band(band, |node| node.peek(cx).is_some(), |_| (0, 0)));
        self.bands.nodes[shows?].peek(cx)
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.bands.nodes.iter().filter_map(Node::next_wakeup).min()
    }
    /// `multiq_tune`: asks the device for its queues anew.
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        if options.is_none() {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        if !self.bands.device.is_multiqueue() {
            return Err(KernelError::errno(KernelError::EOPNOTSUPP));
        }
        self.bands.resize(self.bands.device.tx_queues as usize, cx);
        for band in 0..self.bands.nodes.len() {
            if self.bands.nodes[band].is_noop() {
                self.bands.nodes[band] = self.bands.pfifo(band);
            }
        }
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.bands.nodes.iter_mut().for_each(|band| band.reset(cx));
        (self.current, self.qlen, self.held) = (0, 0, 0);
        self.stats.backlog = 0;
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn held(&self) -> u32 {
        self.held
    }
    /// `qdisc_purge_queue` reads its own `backlog`.
    fn told(&self) -> u32 {
        self.stats.backlog
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    fn dump(&self) -> Options {
        Options::new()
            .with("bands", self.bands.nodes.len() as u32)
            .with("max_bands", self.bands.device.tx_queues)
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
    /// Each band is asked, and one that notes it may be among them.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

impl Banded for Multiq {
    super::bands::has_bands!();
    /// Nothing, until a change fills it.
    fn vacant(&self, _: usize) -> Node {
        Node::noop()
    }
    fn dump_band(&self, _: usize) -> (Handle, Options) {
        (self.bands.handle, Options::new())
    }
    /// `qdisc_tree_reduce_backlog`.
    fn reduced(&mut self, _: usize, packets: u32, bytes: u32) {
        self.qlen = self.qlen.wrapping_sub(packets);
        self.held = self.bands.nodes.iter().map(Node::backlog).sum();
        if !self.is_old() {
            self.stats.backlog = self.stats.backlog.wrapping_sub(bytes);
            self.stats.drops = self.stats.drops.wrapping_add(packets);
        }
    }
    fn filters(&self) -> Option<&Filters> {
        Some(&self.filters)
    }
    fn filters_mut(&mut self) -> Option<&mut Filters> {
        Some(&mut self.filters)
    }
}
