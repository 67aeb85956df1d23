//! One direction of a network link, for programs that have packets of their own: a Linux qdisc by its `tc` words, a rate, a delay, a loss.
//!
//! Nothing here reads a clock or does I/O: [`Link::enqueue`] and [`Link::dequeue`] are told the time, [`Link::next_wake`] says when to call again. Equal calls
//! give equal answers.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;

mod meta;
mod slots;

pub use meta::{Meta, set_tos};
pub use penstock_model::{Kernel, Rate, Span, Time};

use penstock_lang::{show, tc, token};
use penstock_model::{PschedClock, Rng};
use penstock_packet::{L3, Packet, Pool, Skb};
use penstock_sched::{Actions, Cx, Device, Ledger, Tree, Xmit};
use slots::Slots;
use std::collections::VecDeque;

/// The device's name in `tc` commands.
pub const DEVICE: &str = "eth0";

/// Most lost packets that are kept until somebody asks for them.
const KEPT: usize = 1024;

/// What a link is like.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How fast frames go onto the line; none: at once. Default none.
    pub rate: Option<Rate>,
    /// How long the line takes. Default 0.
    pub delay: Span,
    /// Chance that the line loses a frame, parts per 1,000,000,000. Default 0.
    pub loss_ppb: u32,
    /// MTU of the device, bytes without the Ethernet header. Default 1500.
    pub mtu: u32,
    /// The device's queue length where a qdisc takes it as its limit, packets. Default 1000.
    pub txqueuelen: u32,
    /// The kernel whose qdiscs these are. Default 6.12; `dualpi2` and `cake_mq` are in 7.2.
    pub kernel: Kernel,
    /// The seed of all dice. Default 1.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Settings {
        let kernel = Kernel::default();
        Settings { rate: None, delay: Span::ZERO, loss_ppb: 0, mtu: 1500, txqueuelen: 1000, kernel, seed: 1 }
    }
}

/// What `tc` or the kernel refuses, in its words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused(String);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// Reads a rate as tc does: `10mbit`.
///
/// # Errors
/// A sentence when it is none.
pub fn rate(text: &str) -> Result<Rate, Refused> {
    let rate = Rate::parse(text).ok().filter(|r| r.bytes_per_s() > 0);
    rate.ok_or_else(|| Refused(format!("\"{text}\" is not a rate; write e.g. 10mbit")))
}

/// A packet at the other end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival<T> {
    /// What was sent.
    pub data: T,
    /// When its last bit arrived.
    pub at: Time,
    /// Its type of service or traffic class now: queues set ECN's congestion mark, actions and cake rewrite it. [`set_tos`] writes it into a datagram.
    pub tos: u8,
}

/// One direction of a link. `T` is whatever a packet is to the caller; it is cloned only where `netem` duplicates a packet.
pub struct Link<T> {
    // Parameters
    rate: Option<Rate>,
    delay: Span,
    loss_ppb: u32,
    // Variables
    tree: Tree,
    rng: Rng,
    dice: Rng,
    drops: Ledger,
    acts: Actions,
    pool: Pool,
    slots: Slots<T>,
    clock: Time,
    /// When the card has put its last frame onto the line.
    free: Time,
    /// Whether the qdisc may have a packet for the card.
    asking: bool,
    line: VecDeque<(Time, Packet)>,
    lost: VecDeque<(T, &'static str)>,
    lost_packets: u64,
}

impl<T: Clone> Link<T> {
    /// A link whose device has the kernel's default qdisc, `pfifo_fast`.
    pub fn new(settings: &Settings) -> Link<T> {
        let kernel = settings.kernel;
        let tree = Tree::new(Device {
            ifindex: 2,
            mtu: settings.mtu,
            hard_header_len: 14,
            tx_queue_len: settings.txqueuelen,
            tx_queues: 1,
            speed_mbit: settings.rate.map(|r| (r.bit_per_s() / 1_000_000).max(1) as u32),
            kernel,
            clock: PschedClock::default(),
            hz: kernel.hz(),
        });
        Link {
            rate: settings.rate,
            delay: settings.delay,
            loss_ppb: settings.loss_ppb,
            tree,
            rng: Rng::named(settings.seed, DEVICE),
            dice: Rng::named(settings.seed, "link/loss"),
            drops: Ledger::new(),
            acts: Actions::new(),
            pool: Pool::new(),
            slots: Slots::new(),
            clock: Time::ZERO,
            free: Time::ZERO,
            asking: false,
            line: VecDeque::new(),
            lost: VecDeque::new(),
            lost_packets: 0,
        }
    }

    /// Carries out a `tc` command, with or without its first word: `qdisc replace dev eth0 root fq_codel`. Answers what tc prints.
    ///
    /// # Errors
    /// tc's refusal or the kernel's; what a link cannot do. A command that sets up what is not simulated has done so when it is refused: another must
    /// take it away.
    pub fn tc(&mut self, now: Time, command: &str) -> Result<String, Refused> {
        self.advance(now);
        let kernel = self.tree.device().kernel;
        let words = token::words(command).map_err(|d| Refused(d.to_string()))?;
        if words.iter().any(|w| w.text == "mirred") {
            return Err(Refused("mirred: a link has one device, there is no other to send to".to_owned()));
        }
        let device = |name: &str| {
            let speed_mbit = self.tree.device().speed_mbit;
            (name == DEVICE).then_some(tc::Link { ifindex: 2, speed_mbit })
        };
        let parsed = tc::parse_in(&words, &tc::Env { kernel, device: &device, objects: &tc::NoObjects });
        let commands = parsed.map_err(|failure| Refused(failure.stderr.trim_end().to_owned()))?;
        let mut said = String::new();
        for command in commands {
            said += &self.carry_out(&command)?;
        }
        if let Some(kind) = self.tree.unsimulated().first() {
            return Err(Refused(format!(
                "{} {}: it carries no packets here; take it away",
                kind.object, kind.kind
            )));
        }
        if self.acts.track_connections() {
            return Err(Refused("action ct: a link has no connections; take it away".to_owned()));
        }
        if let Some(kind) = self.acts.unsimulated().first() {
            return Err(Refused(format!("action {kind}: it carries no packets here; take it away")));
        }
        // What was let go of, and what may go now.
        self.asking = true;
        self.settle();
        self.advance(now);
        Ok(said)
    }

    fn carry_out(&mut self, command: &tc::Command) -> Result<String, Refused> {
        let (now, kernel) = (self.clock, self.tree.device().kernel);
        let mut cx = Cx { now, rng: &mut self.rng, drops: &mut self.drops, acts: &mut self.acts };
        let on_device = |dev: &Option<String>| match dev.as_deref() {
            None | Some(DEVICE) => Ok(()),
            Some(other) => Err(Refused(format!("Cannot find device \"{other}\""))),
        };
        let named = |n: usize| (0..n).map(|_| DEVICE.to_owned());
        let done = match command {
            tc::Command::Qdisc { dev, req } => {
                on_device(dev)?;
                self.tree.qdisc(req, &mut cx)
            }
            tc::Command::Class { dev, req } => {
                on_device(dev)?;
                self.tree.class(req, &mut cx)
            }
            tc::Command::Filter { dev, req } => {
                on_device(dev)?;
                self.tree.filter(req, &mut cx)
            }
            tc::Command::Chain { dev, req } => {
                on_device(dev)?;
                self.tree.chain(req)
            }
            tc::Command::ShowQdisc(wish) => {
                let dumps = self.tree.dump_qdiscs(now);
                return Ok(show::qdiscs(&named(dumps.len()).zip(dumps).collect::<Vec<_>>(), wish, kernel));
            }
            tc::Command::ShowClass(wish) => {
                let dumps = self.tree.show_classes(wish.parent, now);
                return Ok(show::classes(&named(dumps.len()).zip(dumps).collect::<Vec<_>>(), wish, kernel));
            }
            tc::Command::Say(text) | tc::Command::Help(text) => return Ok(text.clone()),
            tc::Command::Fail(failure) => return Err(Refused(failure.stderr.trim_end().to_owned())),
            _ => {
                return Err(Refused(
                    "a link takes qdisc, class, filter and chain, and shows qdisc and class".to_owned(),
                ));
            }
        };
        done.map_err(|error| Refused(tc::refused(command, &error).stderr.trim_end().to_owned()))?;
        Ok(self.tree.take_warning().map(|w| format!("Warning: {w}\n")).unwrap_or_default())
    }

    /// A packet comes to the queue. `false`: the qdisc says that it dropped it, or another in its place; which, [`Link::dropped`] tells.
    ///
    /// # Panics
    /// `now` lies before the moment of an earlier call.
    pub fn enqueue(&mut self, now: Time, meta: Meta, data: T) -> bool {
        self.advance(now);
        let slot = self.slots.put(data);
        let (flow, before) = (slot + 1, self.pool.extras(slot + 1).copies);
        let mut packet = self.pool.make(meta.len, meta.l3, meta.l4);
        (packet.seq, packet.flow, packet.created) = (u64::from(slot), flow, now);
        (packet.priority, packet.mark) = (meta.priority, meta.mark);
        let mut cx = Cx { now, rng: &mut self.rng, drops: &mut self.drops, acts: &mut self.acts };
        let answer = self.tree.enqueue(packet, &mut cx);
        if self.drops.has_copied() {
            self.drops.tell_copies(&mut self.pool);
            self.slots.share(slot, self.pool.extras(flow).copies - before);
        }
        self.asking = true;
        self.settle();
        self.advance(now);
        matches!(answer, Xmit::Success | Xmit::Stolen)
    }

    /// A packet that has arrived at the other end by now; the earliest first.
    ///
    /// # Panics
    /// `now` lies before the moment of an earlier call.
    pub fn dequeue(&mut self, now: Time) -> Option<Arrival<T>> {
        self.advance(now);
        let at = self.line.front().map(|f| f.0).filter(|&at| at <= now)?;
        let (_, packet) = self.line.pop_front()?;
        let (tos, data) = (packet.tos(), self.slots.take(packet.seq as u32));
        self.pool.free(packet);
        Some(Arrival { data, at, tos })
    }

    /// When to call [`Link::dequeue`] again: a packet arrives then, or a queue has something to do. `None`: not before the next packet comes.
    pub fn next_wake(&self) -> Option<Time> {
        [self.line.front().map(|f| f.0), self.next()].into_iter().flatten().min()
    }

    /// A packet that was lost since this was last asked, and why, in the kernel's words where it has one; `loss`: on the line. At most 1024 are kept.
    pub fn dropped(&mut self) -> Option<(T, &'static str)> {
        self.lost.pop_front()
    }

    /// How many packets were lost so far.
    pub fn lost_packets(&self) -> u64 {
        self.lost_packets
    }

    /// Packets that wait in the qdisc.
    pub fn qlen(&self) -> u32 {
        self.tree.qlen()
    }

    /// When the next thing happens between the queue and the card.
    fn next(&self) -> Option<Time> {
        let ask = self.asking.then(|| self.free.max(self.clock));
        let timer = self.tree.next_wakeup().map(|at| at.max(self.clock));
        [ask, timer].into_iter().flatten().min()
    }

    /// Does all that happens until `now`, each thing at its own moment.
    fn advance(&mut self, now: Time) {
        assert!(now >= self.clock, "a link's time goes forward: {now} lies before {}", self.clock);
        while let Some(at) = self.next().filter(|&at| at <= now) {
            self.clock = at;
            if self.tree.next_wakeup().is_some_and(|timer| timer <= at) {
                self.tree.expire(at);
                self.asking = true;
            }
            if self.asking && self.free <= at {
                self.ask();
            }
        }
        self.clock = now;
    }

    /// The card takes a frame from the qdisc, and puts it onto the line.
    fn ask(&mut self) {
        let now = self.clock;
        let mut cx = Cx { now, rng: &mut self.rng, drops: &mut self.drops, acts: &mut self.acts };
        let packet = self.tree.dequeue(&mut cx);
        self.asking = packet.is_some();
        if let Some(packet) = packet {
            self.free = sent(now, packet.len, self.rate);
            match self.dice_say_lost() {
                true => self.lose(packet, "loss"),
                false => self.line.push_back((self.free.saturating_add(self.delay), packet)),
            }
        }
        self.settle();
    }

    fn dice_say_lost(&mut self) -> bool {
        self.loss_ppb > 0 && self.dice.below(1_000_000_000) < self.loss_ppb
    }

    /// Takes note of what the qdiscs dropped.
    fn settle(&mut self) {
        if self.drops.take_scheduled() {
            self.asking = true;
        }
        if self.drops.has_orphans() {
            self.drops.orphans().for_each(drop);
        }
        if self.drops.is_empty() {
            return;
        }
        let mut drops = std::mem::take(&mut self.drops);
        for (packet, reason) in drops.drain() {
            self.lose(packet, reason.as_str());
        }
        self.drops = drops;
    }

    fn lose(&mut self, packet: Packet, reason: &'static str) {
        let data = self.slots.take(packet.seq as u32);
        self.pool.free(packet);
        self.lost_packets += 1;
        if self.lost.len() == KEPT {
            self.lost.pop_front();
        }
        self.lost.push_back((data, reason));
    }
}

/// When the last bit of a frame is on the line, rounded up to a nanosecond.
fn sent(now: Time, bytes: u32, rate: Option<Rate>) -> Time {
    let Some(rate) = rate else { return now };
    let ns = (u64::from(bytes) * 1_000_000_000).div_ceil(rate.bytes_per_s().max(1));
    now.saturating_add(Span::from_ns(i64::try_from(ns).unwrap_or(i64::MAX)))
}

/// What the queues see of a packet, for callers who make it themselves.
impl From<Skb> for Meta {
    fn from(skb: Skb) -> Meta {
        let priority = match skb.l3 {
            L3::Ipv4(ip) => meta::priority(ip.tos),
            _ => 0,
        };
        Meta { len: skb.len, l3: skb.l3, l4: skb.l4, priority, mark: skb.mark }
    }
}

#[cfg(test)]
mod tests;
