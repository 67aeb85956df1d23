//! `cake`: shaper, flow queues, fairness between hosts and priority tins in one.
//!
//! Follows: linux v6.12 `net/sched/sch_cake.c`; v7.2 for what differs there.
//! Differs: the hash of a flow is random in the kernel and here (`super::sfq::hash`); a packet takes as much memory as a frame from a packet
//! socket, wherever it comes from.

mod ack;
mod config;
mod entry;
mod longest;
mod share;
mod store;
#[cfg(test)]
mod tests;
mod tin;
mod turn;
mod which;

use super::sfq::hash::Key;
use super::{KindSpec, memory};
use crate::cls::{BlockId, Filters, Gone, Verdict};
use crate::ledger::DropReason;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Scribble, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
pub(super) use config::Config;
use config::Tins;
use longest::{Longest, number};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{L3, Packet, Skb};
pub(super) use share::{Seat, seats};
use store::Store;
use tin::{QUEUES, Set, Share, TINS, Tin, Wanted, ewma, mode};
pub use which::Which;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "cake",
    about: "shaper, flow queues, fairness between hosts and priority tins in one",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Flows,
        sorting: Sorting::Tins,
        takes_filters: true,
        limits_rate: LimitsRate::Qdisc("bandwidth"),
        queue: Holds::Managed,
        limit: Limit::None,
        work_conserving: false,
    },
};

/// How long the machine has been up when its time begins, ns: a minute. What has never happened was at 0.
const UPTIME: i64 = 60_000_000_000;
const SECOND: u64 = 1_000_000_000;
/// How long a rate that cake has found itself stands at least, ns, in 7.2.
const RECONFIGURED_NS: i64 = 250_000_000;
/// Dequeues for which the heap is kept after the last overflow (`overflow_timeout`).
const HEAP_KEPT: u16 = 65535;

/// `ktime_get`.
fn clock(now: Time) -> i64 {
    now.as_ns() + UPTIME
}
/// A moment of that clock.
fn moment(ns: i64) -> Time {
    Time::from_ns(ns - UPTIME)
}
/// `ktime_to_us`, in 32 bits.
fn us(ns: u64) -> u32 {
    (ns as i64 / 1000) as u32
}

/// Option by which a `cake_mq` tells its queues that a change is its own.
pub(super) const OF_MQ: &str = "of_cake_mq";

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    Ok(Box::new(Cake::new(init, options, None, cx)?))
}

impl Cake {
    /// One of the queues of a `cake_mq`, whose options are `params`.
    pub(super) fn shared(
        init: &Init,
        params: Options,
        seat: Seat,
        cx: &mut Cx<'_>,
    ) -> Result<Cake, KernelError> {
        Cake::new(init, Some(&params), Some(seat), cx)
    }
    fn new(
        init: &Init,
        options: Option<&Options>,
        seat: Option<Seat>,
        cx: &mut Cx<'_>,
    ) -> Result<Cake, KernelError> {
        let mut cake = Cake::bare(init, seat, cx);
        if let Some(o) = options {
            cake.config.change(o)?;
        }
        cake.reconfigure(cx);
        cake.estimate.peak = if cake.seat.is_none() { cake.config.rate() } else { 0 };
        Ok(cake)
    }
    /// With the defaults.
    fn bare(init: &Init, seat: Option<Seat>, cx: &mut Cx<'_>) -> Cake {
        Cake {
            handle: init.handle,
            device: init.device,
            config: Config::new(),
            filters: Filters::new(init.handle),
            key: Key::draw(cx.rng),
            by_dscp: &[0; 64],
            order: &[0; 8],
            tins_used: 0,
            tins: Default::default(),
            pace: tin::Pace::default(),
            time_next: 0,
            failsafe_next: 0,
            watchdog: None,
            current: 0,
            store: Store::default(),
            longest: Longest::new(),
            heap_kept: 0,
            buffer_used: 0,
            buffer_max_used: 0,
            buffer_limit: 0,
            estimate: Estimate::default(),
            sizes: Sizes::NONE,
            offset: 0,
            peeked: None,
            qlen: 0,
            backlog: 0,
            stats: Stats::default(),
            seat,
        }
    }
}

/// What is known of the rate at which packets come (`autorate-ingress`).
#[derive(Default)]
struct Estimate {
    last_packet: i64,
    window_begin: i64,
    /// Average time between packets, ns.
    interval: u64,
    window_bytes: u64,
    /// Bytes a second (`avg_peak_bandwidth`).
    peak: u64,
    /// When the rate followed it last, in 7.2.
    last_reconfig: i64,
}

/// Least and greatest sizes seen, bytes: at the network layer, and as they count on the line.
struct Sizes {
    network: (u16, u16),
    adjusted: (u16, u16),
}

impl Sizes {
    const NONE: Sizes = Sizes { network: (u16::MAX, 0), adjusted: (u16::MAX, 0) };
}

/// Widens a range of sizes by one that was seen.
fn widen(range: &mut (u16, u16), len: u32) {
    if u32::from(range.1) < len {
        range.1 = len as u16;
    }
    if u32::from(range.0) > len {
        range.0 = len as u16;
    }
}

/// The qdisc.
pub struct Cake {
    handle: Handle,
    device: Device,
    config: Config,
    filters: Filters,
    key: Key,
    // What follows from the parameters
    by_dscp: &'static [u8; 64],
    /// The tins in the order they are shown and that marks count them in.
    order: &'static [u8; 8],
    tins_used: usize,
    tins: [Tin; TINS],
    pace: tin::Pace,
    // The shaper
    time_next: i64,
    failsafe_next: i64,
    watchdog: Option<Time>,
    /// The tin that was served last (`cur_tin`).
    current: usize,
    // The packets
    store: Store,
    longest: Longest,
    /// Dequeues for which the heap is still kept; 0: it is out of order.
    heap_kept: u16,
    /// Bytes of memory.
    buffer_used: u32,
    buffer_max_used: u32,
    buffer_limit: u32,
    // What was seen
    estimate: Estimate,
    sizes: Sizes,
    /// Average length of the header before the network header, in 2^-16 bytes.
    offset: u32,
    peeked: Option<Packet>,
    /// With what was peeked at.
    qlen: u32,
    backlog: u32,
    stats: Stats,
    /// Among the queues of a `cake_mq`.
    seat: Option<Seat>,
}

impl Cake {
    /// `cake_configure_rates` of a `cake_mq`'s queue: its part of the rate; what follows for CoDel stays as it is.
    fn set_part(&mut self, rate: u64) {
        let Tins { shares, .. } = self.config.tins_at(rate);
        for (tin, (rate, _)) in self.tins.iter_mut().zip(shares) {
            let new = Share::new(rate, 0, 0, 0);
            tin.share = Share { cobalt: tin.share.cobalt, ..new };
        }
        self.pace = self.tins[0].share.pace;
    }
    /// `cake_reconfigure`.
    fn reconfigure(&mut self, cx: &mut Cx<'_>) {
        let mtu = self.device.psched_mtu();
        let (rtt_us, target_us) = self.config.times_us();
        let Tins { by_dscp, order, shares } = self.config.tins();
        (self.by_dscp, self.order, self.tins_used) = (by_dscp, order, shares.len());
        for (tin, (rate, quantum)) in self.tins.iter_mut().zip(shares) {
            tin.share = Share::new(rate, mtu, target_us * 1000, rtt_us * 1000);
            tin.quantum = quantum;
        }
        for tin in self.tins_used..TINS {
            self.clear_tin(tin, cx);
        }
        self.pace = self.tins[0].share.pace;
        let (rate, given) = (self.config.rate(), self.config.memlimit());
        let limit = if given != 0 {
            given
        } else if rate != 0 {
            let bytes = rate.wrapping_mul(rtt_us) / 250_000;
            (bytes as u32).max(4 << 20)
        } else {
            u32::MAX
        };
        self.buffer_limit = limit.min(10_240u32.wrapping_mul(mtu).max(given));
    }
    /// Lets the other queues of a `cake_mq` see what is here.
    #[inline]
    fn tell_length(&self) {
        if let Some(seat) = &self.seat {
            seat.holds(self.qlen);
        }
    }
    /// `cake_clear_tin`: drops what is in a tin; its flows stay in their lists.
    fn clear_tin(&mut self, tin: usize, cx: &mut Cx<'_>) {
        self.current = tin;
        for flow in 0..self.tins[tin].flows.len() {
            while let Some((packet, _)) = self.dequeue_one(flow) {
                cx.drops.drop(packet, DropReason::Purged);
            }
        }
    }

    /// `cake_classify` up to the tin: the flow and the host that filters name, from 1; 0 where they do not.
    fn classify(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Result<(u32, u32), Gone> {
        if self.filters.is_empty(Filters::ROOT) {
            return Ok((0, 0));
        }
        let named = |number: u16| if usize::from(number) <= QUEUES { u32::from(number) } else { 0 };
        match self.filters.classify(Filters::ROOT, skb, cx) {
            Verdict::Class(hit) => Ok((named(hit.classid.minor()), named(hit.classid.major()))),
            Verdict::Unmatched => Ok((0, 0)),
            Verdict::Gone(gone) => Err(gone),
        }
    }
    /// `cake_select_tin`.
    fn select_tin(&self, skb: &mut Skb) -> usize {
        let mark = self.config.tin_by_mark(skb.mark);
        let washed = self.config.wash.then(|| wash(skb));
        let used = self.tins_used as u32;
        if self.config.besteffort {
            return 0;
        }
        if (1..=used).contains(&mark) {
            return self.order[mark as usize - 1].into();
        }
        let priority = Handle(skb.priority);
        let minor = u32::from(priority.minor());
        if priority.qdisc() == self.handle && (1..=used).contains(&minor) {
            return self.order[minor as usize - 1].into();
        }
        let tin = usize::from(self.by_dscp[usize::from(washed.unwrap_or_else(|| dscp(skb)))]);
        if tin < self.tins_used { tin } else { 0 }
    }
    /// `cake_hash`: the queue within a tin. `flow`, `host`: named by filters, from 1.
    fn hash(&mut self, tin: usize, skb: &Skb, flow: u32, host: u32) -> usize {
        let mode = self.config.flow_mode;
        if mode == 0 {
            return 0;
        }
        let key = self.key;
        //= linux v6.12 net/sched/sch_cake.c cake_update_flowkeys
        let inside = if mode & mode::NAT != 0 && skb.is_noted() { skb.seen_inside() } else { None };
        let skb = inside.as_ref().unwrap_or(skb);
        let hosts = || match host {
            0 if mode & mode::HOSTS != 0 => key.hosts(skb),
            0 => [0, 0],
            host => [host - 1; 2],
        };
        let mut hash = match flow {
            0 if mode & mode::FLOWS != 0 => key.hash_from_socket(skb),
            0 => 0,
            flow => flow - 1,
        };
        if mode & mode::FLOWS == 0 {
            let [source, destination] = hosts();
            hash ^= if mode & mode::SRC_IP != 0 { source } else { 0 };
            hash ^= if mode & mode::DST_IP != 0 { destination } else { 0 };
        }
        self.tins[tin].find(Wanted { flow: hash, mode }, hosts)
    }

    /// `cake_advance_shaper`: charges the current tin `tin` and the whole for a packet.
    fn charge(&mut self, tin: usize, len: u32, now: i64, dropped: bool) {
        if self.pace.ns == 0 {
            return;
        }
        let tin = &mut self.tins[tin];
        let of_tin = tin.share.pace.time(len) as i64;
        let of_all = self.pace.time(len);
        if tin.time_next < now {
            tin.time_next = tin.time_next.wrapping_add(of_tin);
        } else if tin.time_next < now.wrapping_add(of_tin) {
            tin.time_next = now.wrapping_add(of_tin);
        }
        self.time_next = self.time_next.wrapping_add(of_all as i64);
        if !dropped {
            let failsafe = of_all.wrapping_add(of_all >> 1);
            self.failsafe_next = self.failsafe_next.wrapping_add(failsafe as i64);
        }
    }
    /// Sets the watchdog for when the whole may send; a moment that is over is the present one.
    fn wait(&mut self, now: i64) {
        self.watchdog = Some(moment(self.time_next.min(self.failsafe_next).max(now)));
    }

    /// `cake_drop`: drops the first packet of the longest queue. Which that is.
    fn displace(&mut self, cx: &mut Cx<'_>) -> usize {
        if self.heap_kept == 0 {
            self.longest.build();
        }
        self.heap_kept = HEAP_KEPT;
        let queue = self.longest.first();
        let (tin, n) = (queue / QUEUES, queue % QUEUES);
        let b = &mut self.tins[tin];
        let taken = b.flows.get_mut(n).and_then(|flow| self.store.pop(&mut flow.chain));
        let Some((packet, adjusted)) = taken else {
            self.heap_kept = 0;
            return queue;
        };
        let now = clock(cx.now);
        let flow = &mut b.flows[n];
        if flow.vars.queue_full(&b.share.cobalt, now) {
            b.unresponsive_flows = b.unresponsive_flows.wrapping_add(1);
        }
        flow.dropped = flow.dropped.wrapping_add(1);
        b.dropped = b.dropped.wrapping_add(1);
        b.backlog = b.backlog.wrapping_sub(packet.pkt_len);
        let backlog = self.longest.backlog_mut(queue);
        *backlog = backlog.wrapping_sub(packet.pkt_len);
        self.buffer_used = self.buffer_used.wrapping_sub(memory(&packet));
        self.backlog = self.backlog.wrapping_sub(packet.pkt_len);
        self.stats.drops = self.stats.drops.wrapping_add(1);
        self.qlen -= 1;
        if self.config.ingress {
            self.charge(tin, adjusted, now, true);
        }
        cx.drops.drop(packet, DropReason::Displaced);
        self.longest.first_shrank();
        queue
    }

    /// Moves the estimate of the rate at which packets come, and now and then the rate itself after it.
    fn estimate_rate(&mut self, now: i64, cx: &mut Cx<'_>) {
        let e = &mut self.estimate;
        let interval = (now.wrapping_sub(e.last_packet) as u64).min(SECOND);
        e.interval = ewma(e.interval, interval, if interval > e.interval { 2 } else { 8 });
        e.last_packet = now;
        if interval <= e.interval {
            return;
        }
        let window = now.wrapping_sub(e.window_begin) as u64;
        let seen = e.window_bytes.wrapping_mul(SECOND) / window.max(1);
        e.peak = ewma(e.peak, seen, if seen > e.peak { 2 } else { 8 });
        (e.window_bytes, e.window_begin) = (0, now);
        // In 6.12 nothing notes when it was done last, so it is never too soon.
        if self.device.kernel >= Kernel::V7_2 {
            if now <= self.estimate.last_reconfig.wrapping_add(RECONFIGURED_NS) {
                return;
            }
            self.estimate.last_reconfig = now;
        }
        let e = &self.estimate;
        self.config.set_rate(e.peak.wrapping_mul(15) >> 4);
        self.reconfigure(cx);
    }

    fn dump_tin(&self, tin: &Tin) -> Options {
        let Share { rate, cobalt, flow_quantum, .. } = tin.share;
        Options::new()
            .with("threshold_rate", rate)
            .with("sent_bytes", tin.bytes)
            .with("backlog_bytes", tin.backlog)
            .with("target_us", us(cobalt.target))
            .with("interval_us", us(cobalt.interval))
            .with("peak_delay_us", us(tin.peak))
            .with("avg_delay_us", us(tin.average))
            .with("base_delay_us", us(tin.base))
            .with("sent_packets", tin.packets)
            .with("way_indirect_hits", tin.way_hits)
            .with("way_misses", tin.way_misses)
            .with("way_collisions", tin.way_collisions)
            .with("drops", tin.dropped)
            .with("ecn_mark", tin.ecn_mark)
            .with("ack_drops", tin.ack_drops)
            .with("sparse_flows", u32::from(tin.sparse_flows) + u32::from(tin.decaying_flows))
            .with("bulk_flows", u32::from(tin.bulk_flows))
            .with("unresponsive_flows", u32::from(tin.unresponsive_flows))
            .with("max_pkt_len", tin.max_skblen)
            .with("flow_quantum", u32::from(flow_quantum))
    }
}

/// The code point behind all tags: `cake_handle_diffserv`. ARP has the highest.
fn dscp(skb: &Skb) -> u8 {
    match skb.innermost().0 {
        L3::Ipv4(h) => h.tos >> 2,
        L3::Ipv6(h) => h.traffic_class >> 2,
        L3::Arp(_) => 56,
        L3::Other(_) => 0,
    }
}

/// The same, which is then taken off the packet: its ECN bits stay.
fn wash(skb: &mut Skb) -> u8 {
    let dscp = dscp(skb);
    match skb.innermost_l3_mut() {
        L3::Ipv4(h) => h.tos &= 3,
        L3::Ipv6(h) => h.traffic_class &= 3,
        L3::Arp(_) | L3::Other(_) => {}
    }
    dscp
}

impl Qdisc for Cake {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let (flow, host) = match self.classify(&mut packet, cx) {
            Ok(named) => named,
            Err(gone) => return gone.leave_counted(packet, &mut self.stats, cx),
        };
        let now = clock(cx.now);
        let tin = self.select_tin(&mut packet);
        self.tins[tin].open();
        let n = self.hash(tin, &packet, flow, host);
        let queue = number(tin, n);
        // The shaper's times do not lie behind.
        if self.tins[tin].backlog == 0 {
            let b = &mut self.tins[tin];
            b.time_next = b.time_next.max(now);
            if self.qlen == 0 {
                if self.time_next < now {
                    (self.failsafe_next, self.time_next) = (now, now);
                } else if self.time_next > now && self.failsafe_next > now {
                    self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
                    self.wait(now);
                }
            }
        }
        let b = &mut self.tins[tin];
        b.max_skblen = b.max_skblen.max(packet.pkt_len);
        packet.queued = cx.now;
        let more = if self.config.split_gso && packet.gso().is_some() {
            self.put_segments(packet, (tin, n), cx)
        } else {
            self.put(packet, (tin, n), now, cx)
        };
        let b = &mut self.tins[tin];
        b.bytes = b.bytes.wrapping_add(i64::from(more as i32) as u64);
        b.backlog = b.backlog.wrapping_add(more);
        let backlog = self.longest.backlog_mut(queue);
        *backlog = backlog.wrapping_add(more);
        self.backlog = self.backlog.wrapping_add(more);
        self.estimate.window_bytes = self.estimate.window_bytes.wrapping_add(i64::from(more as i32) as u64);
        if self.heap_kept != 0 {
            self.longest.grew(queue);
        }
        if self.config.autorate {
            self.estimate_rate(now, cx);
        } else {
            (self.estimate.window_bytes, self.estimate.last_packet) = (0, now);
        }
        self.enlist(tin, n, cx);
        self.buffer_max_used = self.buffer_max_used.max(self.buffer_used);
        let mut own = false;
        while self.buffer_used > self.buffer_limit {
            own |= self.displace(cx) == queue;
        }
        self.tell_length();
        if own { Xmit::Cn } else { Xmit::Success }
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let Some(packet) = self.peeked.take() else {
            let packet = self.take(cx);
            self.tell_length();
            return packet;
        };
        self.qlen -= 1;
        self.backlog = self.backlog.wrapping_sub(packet.pkt_len);
        Some(packet)
    }
    /// `qdisc_peek_dequeued`: a dequeue's work; the packet counts as queued until it goes.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none()
            && let Some(packet) = self.take(cx)
        {
            self.qlen += 1;
            self.backlog = self.backlog.wrapping_add(packet.pkt_len);
            self.peeked = Some(packet);
        }
        self.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.watchdog
    }
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.watchdog.iter().for_each(|&at| see(at, at));
    }
    fn expire(&mut self, due: Due) {
        self.watchdog = self.watchdog.filter(|&at| !due.has(at, at));
    }
    //= linux v6.12 net/sched/sch_cake.c cake_clear_tin: it frees packets and tells nobody.
    fn tells_of_change(&self) -> bool {
        false
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        if self.seat.is_some() && !options.is_some_and(|o| o.has(OF_MQ)) {
            let sentence = "can't reconfigure cake_mq sub-qdiscs";
            return Err(KernelError::new(KernelError::EOPNOTSUPP, sentence));
        }
        if let Some(o) = options
            && self.config.change(o)?
        {
            self.sizes = Sizes::NONE;
        }
        self.reconfigure(cx);
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        for tin in 0..TINS {
            self.clear_tin(tin, cx);
        }
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.qlen, self.backlog) = (0, 0);
        self.tell_length();
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen, backlog: self.backlog, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.store.packets(see);
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        self.config.params.clone()
    }
    fn marks(&self) -> Option<u64> {
        let used = &self.order[..self.tins_used];
        Some(used.iter().map(|&tin| u64::from(self.tins[usize::from(tin)].ecn_mark)).sum())
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let Sizes { network, adjusted } = self.sizes;
        let tins =
            self.order[..self.tins_used].iter().map(|&tin| self.dump_tin(&self.tins[usize::from(tin)]));
        let o = Options::new()
            .with("memory_used", self.buffer_max_used)
            .with("memory_limit", self.buffer_limit)
            .with("capacity_estimate", self.estimate.peak)
            .with("min_network_size", network.0)
            .with("max_network_size", network.1)
            .with("min_adj_size", adjusted.0)
            .with("max_adj_size", adjusted.1)
            .with("avg_hdr_offset", self.offset.wrapping_add(0x8000) >> 16);
        let o = match self.device.kernel {
            Kernel::V7_2 => o.with("active_queues", self.seat.as_ref().map_or(0, |seat| seat.active_queues)),
            _ => o,
        };
        Some(o.with("tins", tins.collect::<Vec<_>>()))
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
    fn scribbles(&self) -> Scribble {
        Scribble::Nanoseconds
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

/// Flows are classes to look at, and filters choose among them.
impl Classful for Cake {
    fn find(&self, _: Handle) -> bool {
        false
    }
    fn walk(&self, now: Time, visit: &mut dyn FnMut(ClassDump)) {
        let now = clock(now);
        for (place, &tin) in self.order[..self.tins_used].iter().enumerate() {
            let tin = usize::from(tin);
            for (n, flow) in self.tins[tin].flows.iter().enumerate().filter(|(_, f)| f.set != Set::None) {
                let since = |at: i64| i64::from((now.wrapping_sub(at) / 1000) as i32);
                let vars = &flow.vars;
                let mut o = Options::new()
                    .with("deficit", i64::from(flow.deficit))
                    .with("dropping", u32::from(vars.dropping))
                    .with("count", vars.count)
                    .with("blue_prob", vars.p_drop);
                if vars.p_drop != 0 {
                    o = o.with("blue_timer", since(vars.blue_timer));
                }
                if vars.dropping {
                    o = o.with("drop_next", since(vars.drop_next));
                }
                let (qlen, backlog) = (self.store.count(flow.chain), self.longest.backlog(number(tin, n)));
                visit(ClassDump {
                    kind: SPEC.id,
                    classid: Handle(self.handle.0 | (number(place, n) as u32 + 1)),
                    parent: self.handle,
                    leaf: None,
                    options: Options::new(),
                    counters: Counters::Queue,
                    stats: Stats { qlen, backlog, drops: flow.dropped, ..Stats::default() },
                    xstats: Some(o),
                });
            }
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
}
