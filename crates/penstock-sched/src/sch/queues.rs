//! What mq and mqprio share: a qdisc of its own for each transmit queue of the device, none of which knows of the others.
//!
//! Follows: linux v6.12 `net/core/dev.c` `__dev_xmit_skb`, `net_tx_action`, `net/sched/sch_generic.c` `__qdisc_run`: whoever queues a
//! packet runs that queue alone, until its qdisc has nothing to give; so does a timer of that qdisc.
//! Differs: the card takes packets of the queues in turns, one of each. Which one a real card takes next is its own affair.

use super::bands::{Banded, Bands};
use crate::naps::{self, Naps};
use crate::node::Node;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use penstock_model::rtnetlink::ClassDump;
use penstock_model::{Handle, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::collections::VecDeque;

/// What came of a change; `None`: the kind has none.
pub type Changed = Option<Result<(), KernelError>>;

/// A kind whose classes are the transmit queues.
pub trait QueueKind: Send {
    /// Its name.
    const ID: &'static str;
    /// [`Qdisc::dump`].
    fn dump(&self) -> Options;
    /// [`Qdisc::queues_of`].
    fn queues_of(&self, priority: u32) -> Option<(u16, u16)> {
        let _ = priority;
        None
    }
    /// [`Qdisc::forget_traffic_classes`].
    fn forget(&mut self, map: bool) {
        let _ = map;
    }
    /// Under which class a queue's class stands.
    fn parent_of(&self, bands: &Bands, band: usize) -> Handle {
        let _ = (bands, band);
        Handle::ROOT
    }
    /// Whether there is such a class although it is no queue's.
    fn has_more(&self, classid: Handle) -> bool {
        let _ = classid;
        false
    }
    /// [`Qdisc::change`].
    fn change(&mut self, options: Option<&Options>, bands: &mut Bands, cx: &mut Cx<'_>) -> Changed {
        let _ = (options, bands, cx);
        None
    }
    /// Whether it has filled the queues itself, so that the default of the device has no place in them.
    fn has_own_queues(&self) -> bool {
        false
    }
    /// Why no other qdisc may be put into a queue.
    fn no_graft(&self) -> Option<&'static str> {
        None
    }
    /// Classes that stand before the queues' in a dump.
    fn walk_before(&self, bands: &Bands, visit: &mut dyn FnMut(ClassDump)) {
        let _ = (bands, visit);
    }
}

/// A qdisc of such a kind.
pub struct Queues<K> {
    // Parameters
    bands: Bands,
    kind: K,
    // Variables
    /// The queues that are being run, in the order in which that began.
    running: VecDeque<usize>,
    runs: Vec<bool>,
    /// Queues whose qdisc has set its watchdog.
    naps: Naps,
    /// When each queue's watchdog goes off, and how many were set before it.
    set: Vec<(Option<Time>, u64)>,
    count: u64,
    /// Those that have gone off together, as they came: when they were due, how many were set before, whose.
    struck: Vec<(Option<Time>, u64, usize)>,
    /// The qdiscs may have been changed by others: packets and timers must be asked for anew.
    unsure: bool,
    qlen: u32,
}

impl<K: QueueKind> Queues<K> {
    /// With the kernel's default in each queue.
    pub fn new(init: &Init, kind: K) -> Queues<K> {
        let mut bands = Bands::new(init);
        let queues = init.device.tx_queues as usize;
        bands.nodes = (0..queues).map(|band| bands.queue_default(band)).collect();
        Queues::with(bands, kind)
    }
    /// With these queues.
    pub fn with(bands: Bands, kind: K) -> Queues<K> {
        let queues = bands.nodes.len();
        let running = VecDeque::with_capacity(queues);
        Queues {
            bands,
            kind,
            running,
            runs: vec![false; queues],
            naps: Naps::default(),
            set: vec![(None, 0); queues],
            count: 0,
            struck: Vec::with_capacity(queues),
            unsure: false,
            qlen: 0,
        }
    }
    fn run(&mut self, band: usize) {
        if !std::mem::replace(&mut self.runs[band], true) {
            self.running.push_back(band);
        }
    }
    /// Runs `work` on a queue's qdisc and notes what it holds and when it wakes afterwards.
    fn on_queue<T>(&mut self, band: usize, work: impl FnOnce(&mut Node) -> T) -> T {
        let node = &mut self.bands.nodes[band];
        let before = node.qlen();
        let result = work(node);
        self.qlen = self.qlen.wrapping_add(node.qlen().wrapping_sub(before));
        let alarm = naps::alarm(node);
        match alarm {
            Some(alarm) => self.naps.set(band as u32, alarm),
            None => self.naps.remove(band as u32),
        }
        note(&mut self.set[band], &mut self.count, alarm);
        result
    }
    /// Asks every queue's qdisc anew, where others may have changed them since they were last asked.
    fn settle(&mut self) {
        if !std::mem::take(&mut self.unsure) {
            return;
        }
        self.naps.clear();
        self.qlen = 0;
        for (band, node) in self.bands.nodes.iter().enumerate() {
            self.qlen += node.qlen();
            if let Some(alarm) = naps::alarm(node) {
                self.naps.set(band as u32, alarm);
            }
        }
    }
}

/// A queue's watchdog is set, where it was not for that moment before.
fn note(set: &mut (Option<Time>, u64), count: &mut u64, alarm: Option<naps::Alarm>) {
    let hard = alarm.map(|(_, hard)| hard);
    if hard != set.0 {
        *set = (hard, *count);
        *count += 1;
    }
}

impl<K: QueueKind> Qdisc for Queues<K> {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.settle();
        let band = usize::from(packet.rare().queue_mapping).min(self.bands.nodes.len() - 1);
        self.run(band);
        self.on_queue(band, |node| node.enqueue(packet, cx))
    }
    /// From the queue whose turn it is.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.settle();
        while let Some(&band) = self.running.front() {
            if let Some(packet) = self.on_queue(band, |node| node.dequeue(cx)) {
                return Some(packet);
            }
            self.running.pop_front();
            self.runs[band] = false;
        }
        None
    }
    /// Nobody stands above and asks.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        self.settle();
        let band = *self.running.iter().find(|&&band| self.bands.nodes[band].qlen() > 0)?;
        self.bands.nodes[band].peek(cx)
    }
    fn next_queue(&mut self) {
        if self.running.len() > 1 {
            self.running.rotate_left(1);
        }
    }
    fn kick(&mut self, class: Handle) {
        if let Some(band) = self.bands.band(class) {
            self.run(band);
        }
    }
    fn next_wakeup(&self) -> Option<Time> {
        match self.unsure {
            false => self.naps.first(),
            true => self.bands.nodes.iter().filter_map(Node::next_wakeup).min(),
        }
    }
    fn first_soft(&self) -> Option<Time> {
        match self.unsure {
            false => self.naps.first_soft(),
            true => self.bands.nodes.iter().filter_map(Node::first_soft).min(),
        }
    }
    fn expire(&mut self, due: Due) {
        self.settle();
        let Queues { bands, naps, set, count, struck, .. } = self;
        naps.expire(due.now, |band| {
            let node = &mut bands.nodes[band as usize];
            let mut strikes = false;
            node.timers(&mut |soft, hard| strikes |= due.has(soft, hard));
            node.expire(due);
            let set = &mut set[band as usize];
            if strikes {
                struck.push((set.0, set.1, band as usize));
            }
            let alarm = naps::alarm(node);
            note(set, count, alarm);
            alarm
        });
        // Of timers for the same moment that goes off first which was set first.
        self.struck.sort_unstable();
        for n in 0..self.struck.len() {
            self.run(self.struck[n].2);
        }
        self.struck.clear();
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        if let Some(done) = self.kind.change(options, &mut self.bands, cx) {
            self.unsure = true;
            return done;
        }
        // mq and mqprio have no such operation.
        let sentence = "Change operation not supported by specified qdisc";
        Err(self.bands.device.refusal(KernelError::EINVAL, sentence))
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.bands.nodes.iter_mut().for_each(|node| node.reset(cx));
        self.unsure = true;
    }
    fn stats(&self) -> Stats {
        sum(&self.bands.nodes)
    }
    fn qlen(&self) -> u32 {
        match self.unsure {
            false => self.qlen,
            true => self.bands.nodes.iter().map(Node::qlen).sum(),
        }
    }
    fn packets(&self, _: &mut dyn FnMut(&Skb)) {}
    fn dump(&self) -> Options {
        self.kind.dump()
    }
    fn queues_of(&self, priority: u32) -> Option<(u16, u16)> {
        self.kind.queues_of(priority)
    }
    fn forget_traffic_classes(&mut self, map: bool) {
        self.kind.forget(map);
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.bands.device = *device;
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        self.unsure = true;
        Some(self)
    }
    /// Each queue is run until its qdisc has nothing to give, and one that notes it may be among them.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        K::ID
    }
}

/// The sum over queues: `mq_dump`.
pub fn sum(nodes: &[Node]) -> Stats {
    let mut sum = Stats::default();
    for stats in nodes.iter().map(Node::stats) {
        sum.bytes += stats.bytes;
        sum.packets += stats.packets;
        sum.drops = sum.drops.wrapping_add(stats.drops);
        sum.overlimits = sum.overlimits.wrapping_add(stats.overlimits);
        sum.requeues = sum.requeues.wrapping_add(stats.requeues);
        sum.qlen += stats.qlen;
        sum.backlog = sum.backlog.wrapping_add(stats.backlog);
    }
    sum
}

impl<K: QueueKind> Banded for Queues<K> {
    fn id(&self) -> &'static str {
        K::ID
    }
    fn bands(&self) -> &Bands {
        &self.bands
    }
    fn bands_mut(&mut self) -> &mut Bands {
        &mut self.bands
    }
    fn has_more(&self, classid: Handle) -> bool {
        self.kind.has_more(classid)
    }
    fn vacant(&self, _: usize) -> Node {
        Node::noop()
    }
    fn dump_band(&self, band: usize) -> (Handle, Options) {
        (self.kind.parent_of(&self.bands, band), Options::new())
    }
    fn walk_before(&self, visit: &mut dyn FnMut(ClassDump)) {
        self.kind.walk_before(&self.bands, visit);
    }
    fn is_queue_root(&self) -> bool {
        true
    }
    fn has_own_queues(&self) -> bool {
        self.kind.has_own_queues()
    }
    fn no_graft(&self) -> Option<&'static str> {
        self.kind.no_graft()
    }
}
