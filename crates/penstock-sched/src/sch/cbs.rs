//! `cbs`: the credit-based shaper of 802.1Qav.
//!
//! Follows: linux v6.12 `net/sched/sch_cbs.c`.
//! Differs: no hardware offload. A reset (a new txqueuelen, the device down) empties what is inside too: Linux forgets those packets,
//! and sends them later. With `idleslope 0` and no credit the kernel's timer goes off without end; here the packets wait for a change.

use super::KindSpec;
use super::bands::{Banded, Bands};
use crate::ledger::DropReason;
use crate::node::{Node, Shown};
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::Counters;
use penstock_model::{Handle, Kernel, KernelError, Options, Span, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "cbs",
    about: "a credit-based shaper: credit grows while a frame waits and falls while one is sent",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Inner,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::Otherwise,
        queue: Holds::Classes,
        limit: Limit::None,
        work_conserving: false,
    },
};

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    if options.is_none() {
        let sentence = "Missing CBS qdisc options  which are mandatory";
        return Err(KernelError::new(KernelError::EINVAL, sentence));
    }
    let mut bands = Bands::new(init);
    // The one inside hangs on the qdisc itself, and is shown.
    let mut inner = Node::default_pfifo(&init.device, init.handle);
    inner.shown = Shown::Always;
    bands.nodes.push(inner);
    let mut cbs = Cbs {
        bands,
        given: Options::new(),
        hicredit: 0,
        locredit: 0,
        sendslope: 0,
        idleslope: 0,
        port_rate: 0,
        credits: 0,
        last: Time::ZERO,
        watchdog: None,
        struck: None,
        peeked: None,
        qlen: 0,
        stats: Stats::default(),
    };
    cbs.change(options, cx)?;
    Ok(Box::new(cbs))
}

/// What a device that tells no speed is taken for (`SPEED_10`), Mbit/s.
pub(super) const SLOWEST_MBIT: u32 = 10;
/// Bytes a second in a kbit a second.
const BYTES_PER_KBIT: i64 = 125;
/// Nanoseconds in a second.
const SECOND: i64 = 1_000_000_000;

/// The qdisc.
struct Cbs {
    // Parameters
    bands: Bands,
    /// `hicredit` and `locredit` in bytes, `sendslope` and `idleslope` in kbit/s, `offload`.
    given: Options,
    /// Bytes.
    hicredit: i64,
    locredit: i64,
    /// Bytes a second.
    sendslope: i64,
    idleslope: i64,
    port_rate: i64,
    // Variables
    /// Bytes.
    credits: i64,
    /// When credit was last reckoned, or when the last byte of the packet before is sent.
    last: Time,
    watchdog: Option<Time>,
    /// It has gone off at this very moment.
    struck: Option<Time>,
    peeked: Option<Packet>,
    /// Packets inside.
    qlen: u32,
    /// `backlog`: bytes inside.
    stats: Stats,
}

impl Cbs {
    /// `cbs_set_port_rate`.
    fn set_port_rate(&mut self) {
        let speed = self.bands.device.speed_mbit.filter(|&mbit| mbit > 0).unwrap_or(SLOWEST_MBIT);
        self.port_rate = i64::from(speed) * 1000 * BYTES_PER_KBIT;
    }
    /// Runs `work` on what is inside and takes over what that has lost of itself (`qdisc_tree_reduce_backlog`). `added`: packets that it
    /// has more by what was asked, less where one was taken.
    fn on_inner<T>(&mut self, work: impl FnOnce(&mut Node) -> T, added: impl FnOnce(&T) -> i64) -> T {
        let node = &mut self.bands.nodes[0];
        let before = (node.qlen_above(), node.counted_above());
        let result = work(node);
        let after = (node.qlen_above(), node.counted_above());
        self.qlen = self.qlen.wrapping_add(after.0.wrapping_sub(before.0));
        self.stats.backlog = self.stats.backlog.wrapping_add(after.1.wrapping_sub(before.1));
        let lost = i64::from(before.0) + added(&result) - i64::from(after.0);
        if lost > 0 {
            self.stats.drops = self.stats.drops.wrapping_add(lost as u32);
        }
        result
    }
    /// `cbs_dequeue_soft`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        // Linux's interrupt comes a nanosecond behind its timer's moment at the earliest. Where it does not, a credit that lacks a byte would never
        // come back, as the time until then is rounded down.
        let now = if self.struck == Some(cx.now) { cx.now + Span::from_ns(1) } else { cx.now };
        if now < self.last {
            self.watchdog = Some(self.last);
            return None;
        }
        if self.credits < 0 {
            let waited = (now - self.last).as_ns();
            let gained = waited.wrapping_mul(self.idleslope) / SECOND;
            self.credits = self.credits.wrapping_add(gained).min(self.hicredit);
            if self.credits < 0 {
                self.watchdog = self.until_credit().map(|ns| Time::from_ns(now.as_ns().saturating_add(ns)));
                self.last = now;
                return None;
            }
        }
        let packet = self.on_inner(|node| node.dequeue(cx), |packet| -i64::from(packet.is_some()))?;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        let len = i64::from(packet.pkt_len);
        let spent = len.wrapping_mul(self.sendslope) / self.port_rate;
        self.credits = self.credits.wrapping_add(spent).max(self.locredit);
        self.last = Time::from_ns(now.as_ns() + len * SECOND / self.port_rate);
        Some(packet)
    }
    /// `delay_from_credits`, ns; `None` where it never comes.
    fn until_credit(&self) -> Option<i64> {
        (self.idleslope != 0).then(|| (-self.credits).wrapping_mul(SECOND) / self.idleslope)
    }
}

impl Qdisc for Cbs {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.qlen() == 0 && self.credits > 0 {
            // Credit does not grow while nothing waits.
            (self.credits, self.last) = (0, cx.now);
        }
        let added = |&(xmit, more): &(Xmit, u32)| i64::from(xmit == Xmit::Success) + i64::from(more);
        self.on_inner(|node| node.enqueue_told(packet, cx), added).0
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
        [self.watchdog, self.bands.nodes[0].next_wakeup()].into_iter().flatten().min()
    }
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.watchdog.iter().for_each(|&at| see(at, at));
        self.bands.nodes[0].timers(see);
    }
    fn expire(&mut self, due: Due) {
        if let Some(at) = self.watchdog.filter(|&at| due.has(at, at)) {
            (self.watchdog, self.struck) = (None, due.is_on_time().then_some(at));
        }
        self.bands.nodes[0].expire(due);
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        if options.u32("offload").unwrap_or(0) != 0 {
            let sentence = "Specified device does not support cbs offload";
            return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
        }
        self.set_port_rate();
        let number = |name: &str| options.i64(name).unwrap_or(0);
        (self.hicredit, self.locredit) = (number("hicredit"), number("locredit"));
        self.idleslope = number("idleslope") * BYTES_PER_KBIT;
        self.sendslope = number("sendslope") * BYTES_PER_KBIT;
        self.given = options.clone();
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.bands.nodes[0].reset(cx);
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.qlen, self.stats.backlog) = (0, 0);
        if self.bands.device.kernel >= Kernel::V7_2 {
            (self.watchdog, self.credits, self.last) = (None, 0, Time::ZERO);
        }
    }
    fn stats(&self) -> Stats {
        let peeked = self.peeked.as_ref().map_or(0, |p| p.pkt_len);
        Stats { qlen: self.qlen(), backlog: self.stats.backlog.wrapping_add(peeked), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen + u32::from(self.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        self.given.clone()
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        let speed = self.bands.device.speed_mbit;
        self.bands.device = *device;
        if speed != device.speed_mbit {
            self.set_port_rate();
        }
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
    /// A dequeue that finds nothing asks what is inside, and reckons its credit.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

/// One class. Whatever its id is said to be, it is found.
impl Banded for Cbs {
    super::bands::has_bands!();
    fn band(&self, _: Handle) -> Option<usize> {
        Some(0)
    }
    fn vacant(&self, _: usize) -> Node {
        Node::default_pfifo(&self.bands.device, self.bands.handle).unlisted()
    }
    /// `qdisc_tree_reduce_backlog`.
    fn reduced(&mut self, _: usize, packets: u32, bytes: u32) {
        self.qlen = self.qlen.wrapping_sub(packets);
        self.stats.backlog = self.stats.backlog.wrapping_sub(bytes);
        self.stats.drops = self.stats.drops.wrapping_add(packets);
    }
    fn has_refusals(&self) -> bool {
        false
    }
    fn counters(&self) -> Counters {
        Counters::None
    }
    fn dump_band(&self, _: usize) -> (Handle, Options) {
        (self.bands.handle, Options::new())
    }
}
