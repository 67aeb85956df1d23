//! `netem` of 2.6.35: delayed packets lie in a qdisc inside, by default a fifo that sorts by the moments.
//!
//! Follows: linux v2.6.35 `net/sched/sch_netem.c` `netem_enqueue`, `netem_dequeue`, `tfifo_enqueue`.
//! Differs: what goes before all others (`gap`) comes into another qdisc than a fifo as any packet does; the kernel hangs it on a list of that
//! qdisc, where few kinds ever look.

use super::chance::spread;
use super::config::Config;
use super::{SPEC, Waiting, damage};
use crate::ledger::DropReason;
use crate::node::Node;
use crate::psched::Clock;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::sch::one_class::OneClass;
use penstock_model::psched::TICK_NS;
use penstock_model::{Handle, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Sender, Skb};
use std::collections::VecDeque;

/// The moment of what goes before all others.
const FIRST: i64 = i64::MIN;

pub(super) fn build(
    init: &Init,
    options: Option<&Options>,
    cx: &mut Cx<'_>,
) -> Result<Box<dyn Qdisc>, KernelError> {
    let device = init.device;
    let mut class = OneClass::new(SPEC.id, init.handle, &device);
    let inner = Init { device, handle: Handle::UNSPEC, parent: class.class() };
    let fifo =
        Sorted { limit: device.tx_queue_len.max(1), packets: VecDeque::new(), stats: Stats::default() };
    class.fill(Node::new(&inner, Box::new(fifo)), cx);
    let clock = Clock::of(&device);
    let (config, stats) = (Config::new(&device), Stats::default());
    let mut netem =
        Old { config, class, clock, counter: 0, waiting: None, watchdog: None, peeked: None, stats };
    netem.change(options, cx)?;
    Ok(Box::new(netem))
}

struct Old {
    // Parameters
    config: Config,
    class: OneClass,
    clock: Clock,
    // Variables
    counter: u32,
    waiting: Option<Waiting>,
    /// While it is set nothing leaves (`TCQ_F_THROTTLED`).
    watchdog: Option<Time>,
    peeked: Option<Packet>,
    stats: Stats,
}

impl Old {
    fn settle(&mut self, cx: &mut Cx<'_>) -> Xmit {
        match self.waiting.take() {
            Some(Waiting { packet, came, .. }) => self.put(packet, came, cx),
            None => Xmit::Success,
        }
    }
    /// Queues a packet.
    fn put(&mut self, mut packet: Packet, came: Time, cx: &mut Cx<'_>) -> Xmit {
        let (c, now) = (&mut self.config, self.clock.read(came));
        let delayed =
            c.gap == 0 || self.counter < c.gap || c.reorder < c.reorder_cor.throw(&mut c.dice, cx.rng);
        let at = if delayed {
            let ticks = |ns: i64| ns / TICK_NS as i64;
            let (mu, sigma) = (ticks(c.delay.mu), ticks(c.delay.sigma.into()) as i32);
            let delay = match sigma {
                0 => mu,
                _ => spread(mu, sigma, c.delay_cor.throw(&mut c.dice, cx.rng), c.delay.table),
            };
            self.counter = self.counter.wrapping_add(1);
            now + delay
        } else {
            self.counter = 0;
            FIRST
        };
        // It belongs to no socket any more: what it was to leave at is free for this.
        packet.sender = Sender { departs: Time::from_ns(at), ..Sender::default() };
        let len = packet.pkt_len;
        let Some(child) = self.class.child_mut() else {
            cx.drops.drop(packet, DropReason::Purged);
            return Xmit::Drop;
        };
        let answer = child.enqueue(packet, cx);
        if answer == Xmit::Success {
            self.stats.bytes += u64::from(len);
            self.stats.packets += 1;
        } else if answer.counts_as_drop() {
            self.stats.drops = self.stats.drops.wrapping_add(1);
        }
        answer
    }
    /// `netem_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.settle(cx);
        if self.watchdog.is_some() {
            return None;
        }
        let now = self.clock.read(cx.now);
        let child = self.class.child_mut()?;
        let at = child.peek(cx).map(|packet| packet.sender.departs.as_ns());
        let mut taken = None;
        match at {
            Some(at) if at <= now => taken = child.dequeue(cx),
            Some(at) => self.watchdog = Some(self.clock.timer(cx.now, now, at - now)),
            None => {}
        }
        let mut packet = taken?;
        packet.sender.departs = Time::ZERO;
        Some(packet)
    }
}

impl Qdisc for Old {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if !cx.drops.repeating {
            self.settle(cx);
        }
        let waiting = self.waiting.take();
        let c = &mut self.config;
        let mut count = 1;
        if c.duplicate != 0 && !cx.drops.repeating && c.duplicate >= c.dup_cor.throw(&mut c.dice, cx.rng) {
            count += 1;
        }
        count -= i32::from(c.loss.strikes(&mut c.loss_cor, &mut c.dice, cx.rng));
        if count > 0 {
            cx.drops.orphan(&mut packet);
        }
        let copy = (count > 1).then(|| cx.drops.copy(&packet));
        if count > 0 && c.corrupt != 0 && c.corrupt >= c.corrupt_cor.throw(&mut c.dice, cx.rng) {
            cx.drops.unshare(&mut packet);
            damage::strike(&mut packet, cx.rng);
        }
        let answer = match copy {
            _ if count == 0 => {
                self.stats.drops = self.stats.drops.wrapping_add(1);
                cx.drops.drop(packet, DropReason::Loss);
                Xmit::Bypass
            }
            None => self.put(packet, cx.now, cx),
            Some(mut copy) => {
                copy.sender = Sender::default();
                copy.tc.role.set_orphan();
                cx.drops.send_again(copy);
                self.waiting = Some(Waiting { packet, came: cx.now, rest: Vec::new() });
                Xmit::Success
            }
        };
        if let Some(Waiting { packet, came, .. }) = waiting {
            self.put(packet, came, cx);
        }
        answer
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.peeked.take().or_else(|| self.take(cx))
    }
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            self.peeked = self.take(cx);
        }
        self.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        let inner = self.class.leaf(Handle::UNSPEC).and_then(Node::next_wakeup);
        [self.watchdog, inner].into_iter().flatten().min()
    }
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.watchdog.iter().for_each(|&at| see(at, at));
        if let Some(child) = self.class.leaf(Handle::UNSPEC) {
            child.timers(see);
        }
    }
    fn expire(&mut self, due: Due) {
        self.watchdog = self.watchdog.filter(|&at| !due.has(at, at));
        if let Some(child) = self.class.child_mut() {
            child.expire(due);
        }
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        self.settle(cx);
        self.config.change(options)?;
        self.counter = 0;
        let limit = self.config.limit;
        if let Some(child) = self.class.child_mut()
            && child.kind().get(1..) == Some("fifo")
        {
            //= linux v2.6.35 sch_fifo.c fifo_set_limit: any fifo inside is given the limit.
            child.change(Some(&Options::new().with("limit", limit)), cx)?;
        }
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        let own = [self.peeked.take(), self.waiting.take().map(|w| w.packet)];
        own.into_iter().flatten().for_each(|packet| cx.drops.drop(packet, DropReason::Purged));
        if let Some(child) = self.class.child_mut() {
            child.reset(cx);
        }
        self.watchdog = None;
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen(), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        let inner = self.class.leaf(Handle::UNSPEC).map_or(0, Node::qlen);
        inner + u32::from(self.peeked.is_some()) + u32::from(self.waiting.is_some())
    }
    fn held(&self) -> u32 {
        let own = [self.peeked.as_ref(), self.waiting.as_ref().map(|w| &w.packet)];
        let inner = self.class.leaf(Handle::UNSPEC).map_or(0, Node::backlog);
        inner + own.into_iter().flatten().map(|packet| packet.pkt_len).sum::<u32>()
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.peeked.iter().chain(self.waiting.as_ref().map(|w| &w.packet)).for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        self.config.dump()
    }
    fn unsimulated(&self) -> Option<&'static str> {
        self.config.measured.contains(&true).then_some("netem with distribution experimental")
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.config.set_device(device);
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(&self.class)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(&mut self.class)
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

/// The fifo inside, `tfifo`: by the moments, the first of equal ones first.
struct Sorted {
    limit: u32,
    packets: VecDeque<Packet>,
    stats: Stats,
}

impl Qdisc for Sorted {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let at = packet.sender.departs;
        // What goes before all others meets no limit.
        if self.packets.len() as u32 >= self.limit && at.as_ns() != FIRST {
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Overlimit);
            return Xmit::Drop;
        }
        self.stats.backlog += packet.pkt_len;
        if at.as_ns() == FIRST {
            self.stats.requeues = self.stats.requeues.wrapping_add(1);
            self.packets.push_front(packet);
            return Xmit::Success;
        }
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        let place = match self.packets.back() {
            Some(last) if at < last.sender.departs => {
                self.packets.partition_point(|p| p.sender.departs <= at)
            }
            _ => self.packets.len(),
        };
        self.packets.insert(place, packet);
        Xmit::Success
    }
    fn dequeue(&mut self, _: &mut Cx<'_>) -> Option<Packet> {
        let packet = self.packets.pop_front()?;
        self.stats.backlog -= packet.pkt_len;
        Some(packet)
    }
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.packets.front()
    }
    fn drop_one(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some(packet) = self.packets.pop_back() else { return false };
        self.stats.backlog -= packet.pkt_len;
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, DropReason::Overlimit);
        true
    }
    fn never_wakes(&self) -> bool {
        true
    }
    fn change(&mut self, options: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        self.limit = options.and_then(|o| o.u32("limit")).unwrap_or(self.limit);
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.stats.backlog = 0;
        self.packets.drain(..).for_each(|packet| cx.drops.drop(packet, DropReason::Purged));
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen(), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.packets.len() as u32
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.packets.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        Options::new().with("limit", self.limit)
    }
    fn kind(&self) -> &'static str {
        "tfifo"
    }
}
