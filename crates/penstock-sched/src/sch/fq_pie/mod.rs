//! `fq_pie`: a queue for each flow, PIE in each, served in turn.
//!
//! Follows: linux v6.12 `net/sched/sch_fq_pie.c`. What stands before a wrong number of flows is changed although the
//! change is refused, as there.
//! Differs: the hash of a flow is random in the kernel and here (`super::sfq::hash`); a packet takes as much memory as a frame from a packet
//! socket; the probabilities are computed at the first packet after the timer has gone off, for the moment when it did, and where a packet comes
//! on the very tick, the timer is first.

mod clock;

use self::clock::Clock;
use super::KindSpec;
use super::fq_codel::table::Table;
use super::memory;
use super::sfq::chains::{Chain, Pool};
use super::sfq::hash::Key;
use super::unsimulated::range;
use crate::aqm::ecn::set_ce;
use crate::aqm::pie;
use crate::jiffies;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Device, Init, Qdisc, Scribble, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::collections::VecDeque;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "fq_pie",
    about: "one queue for each flow, each controlled by PIE, served by deficit round robin",
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

/// How many flows the timer looks at before it waits for the next tick.
const BATCH: u32 = 2048;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let hz = init.device.hz;
    let mut fq_pie = FqPie {
        handle: init.handle,
        device: init.device,
        params: pie::Params::new(hz, 10 * 1024),
        flows_cnt: 1024,
        made: false,
        quantum: init.device.psched_mtu().clamp(256, 1 << 20),
        memory_limit: 32 << 20,
        ecn_prob: 10,
        key: Key::draw(cx.rng),
        flows: Table::default(),
        batches: Vec::new(),
        pool: Pool::default(),
        new_flows: VecDeque::new(),
        old_flows: VecDeque::new(),
        clock: Clock::new(jiffies::wheel(jiffy(cx.now, hz), u64::from(hz) / 2)),
        counts: Counts::default(),
        memory_usage: 0,
        peeked: None,
        qlen: 0,
        backlog: 0,
        stats: Stats::default(),
    };
    fq_pie.change(options, cx)?;
    fq_pie.made = true;
    fq_pie.batches.resize(fq_pie.flows_cnt.div_ceil(BATCH) as usize, Vec::new());
    Ok(Box::new(fq_pie))
}

/// The tick at or before a moment.
fn jiffy(now: Time, hz: u32) -> u64 {
    now.as_ns() as u64 / (1_000_000_000 / u64::from(hz))
}

/// One flow: `struct fq_pie_flow`.
#[derive(Default)]
struct Flow {
    chain: Chain,
    deficit: i32,
    /// Bytes. It outlives a reset, up to the flow's next packet.
    backlog: u32,
    vars: pie::Vars,
    /// It stands in one of the lists.
    listed: bool,
}

/// `struct pie_stats` and what stands beside it.
#[derive(Clone, Copy, Default)]
struct Counts {
    packets_in: u32,
    dropped: u32,
    overlimit: u32,
    overmemory: u32,
    ecn_mark: u32,
    new_flows: u32,
}

/// The qdisc.
pub struct FqPie {
    // Parameters
    handle: Handle,
    device: Device,
    params: pie::Params,
    flows_cnt: u32,
    /// The flows are there: their number cannot change any more.
    made: bool,
    /// Bytes a turn.
    quantum: u32,
    /// Bytes of memory above which packets are counted, and not dropped.
    memory_limit: u32,
    /// Percent.
    ecn_prob: u32,
    key: Key,
    // Variables
    /// Those that have had a packet: an update leaves the others as they are.
    flows: Table<Flow>,
    /// Their places, by the batch in which the timer looks at them.
    batches: Vec<Vec<u32>>,
    pool: Pool,
    /// Places of flows.
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    clock: Clock,
    counts: Counts,
    /// Bytes; a reset leaves it as it is.
    memory_usage: u32,
    peeked: Option<Packet>,
    /// Without what was peeked at.
    qlen: u32,
    backlog: u32,
    stats: Stats,
}

impl FqPie {
    /// `fq_pie_timer`, as often as it has gone off by `now`.
    #[inline]
    fn adapt(&mut self, now: Time) {
        let today = jiffy(now, self.device.hz);
        if self.clock.is_due(today) {
            self.update(today);
        }
    }
    #[cold]
    fn update(&mut self, today: u64) {
        // Whether the round so far has left every flow as it was; `None` where it began before something came or went.
        let mut settled = None;
        while self.clock.is_due(today) {
            if self.clock.batch == 0 {
                settled = Some(true);
            }
            for &place in &self.batches[self.clock.batch as usize] {
                let flow = self.flows.at(place);
                let before = flow.vars;
                flow.vars.update(&self.params, flow.backlog);
                if flow.vars != before {
                    settled = settled.map(|_| false);
                }
            }
            self.clock.step(self.batches.len() as u32, self.params.tupdate);
            if self.clock.batch == 0 && settled == Some(true) {
                // What an update leaves as it was, no later one changes while nothing comes or goes.
                self.clock.skip(self.batches.len() as u32, self.params.tupdate, today);
            }
        }
    }
    /// `fq_pie_classify`: a flow, from 0. It takes no filters.
    #[inline]
    fn classify(&self, skb: &Skb) -> u32 {
        let priority = Handle(skb.priority);
        let minor = u32::from(priority.minor());
        if priority.qdisc() == self.handle && (1..=self.flows_cnt).contains(&minor) {
            return minor - 1;
        }
        ((u64::from(self.key.hash_from_socket(skb)) * u64::from(self.flows_cnt)) >> 32) as u32
    }
    /// `fq_pie_qdisc_dequeue`.
    fn take(&mut self, now: Time) -> Option<Packet> {
        loop {
            let new = !self.new_flows.is_empty();
            let list = if new { &mut self.new_flows } else { &mut self.old_flows };
            let n = *list.front()?;
            let flow = self.flows.at(n);
            if flow.deficit <= 0 {
                flow.deficit = flow.deficit.wrapping_add(self.quantum as i32);
                list.pop_front();
                self.old_flows.push_back(n);
                continue;
            }
            let Some(packet) = self.pool.pop_head(&mut flow.chain) else {
                list.pop_front();
                if new && !self.old_flows.is_empty() {
                    self.old_flows.push_back(n);
                } else {
                    flow.listed = false;
                }
                continue;
            };
            let len = packet.pkt_len;
            self.qlen -= 1;
            self.backlog -= len;
            self.stats.bytes += u64::from(len);
            self.stats.packets += packet.counts_as();
            flow.deficit = flow.deficit.wrapping_sub(len as i32);
            flow.backlog = flow.backlog.wrapping_sub(len);
            self.memory_usage = self.memory_usage.wrapping_sub(memory(&packet));
            flow.vars.dequeued(&self.params, packet.len, packet.queued, flow.backlog, now);
            return Some(packet);
        }
    }
}

impl Qdisc for FqPie {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.adapt(cx.now);
        let number = self.classify(&packet);
        let (place, first) = self.flows.entry(number);
        if first {
            self.batches[(number / BATCH) as usize].push(place);
        }
        let flow = self.flows.at(place);
        let size = memory(&packet);
        let full = self.qlen + u32::from(self.peeked.is_some()) >= self.params.limit;
        let mut reason = DropReason::Overlimit;
        let mut taken = false;
        if full {
            self.counts.overlimit = self.counts.overlimit.wrapping_add(1);
        } else {
            if self.memory_usage > self.memory_limit.wrapping_add(size) {
                self.counts.overmemory = self.counts.overmemory.wrapping_add(1);
            }
            reason = DropReason::Early;
            let mtu = self.device.psched_mtu();
            taken = !flow.vars.drop_early(&self.params, mtu, flow.backlog, packet.len, cx.rng);
            if !taken && self.params.ecn && flow.vars.is_below(self.ecn_prob) && set_ce(&mut packet) {
                self.counts.ecn_mark = self.counts.ecn_mark.wrapping_add(1);
                taken = true;
            }
        }
        if !taken {
            self.counts.dropped = self.counts.dropped.wrapping_add(1);
            flow.vars.dropped();
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, reason);
            return Xmit::Cn;
        }
        packet.queued = cx.now;
        let len = packet.pkt_len;
        self.counts.packets_in = self.counts.packets_in.wrapping_add(1);
        self.memory_usage = self.memory_usage.wrapping_add(size);
        self.backlog += len;
        self.qlen += 1;
        self.pool.push_tail(&mut flow.chain, packet);
        if !std::mem::replace(&mut flow.listed, true) {
            self.new_flows.push_back(place);
            self.counts.new_flows = self.counts.new_flows.wrapping_add(1);
            flow.deficit = self.quantum as i32;
            flow.backlog = 0;
        }
        flow.backlog += len;
        Xmit::Success
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.adapt(cx.now);
        self.peeked.take().or_else(|| self.take(cx.now))
    }
    /// `qdisc_peek_dequeued`: a dequeue's work; the packet counts as queued until it goes.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        self.adapt(cx.now);
        if self.peeked.is_none() {
            self.peeked = self.take(cx.now);
        }
        self.peeked.as_ref()
    }
    fn never_wakes(&self) -> bool {
        true
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        let refused = |why| Err(KernelError::new(KernelError::EINVAL, why));
        range(o, "quantum", 1..=1 << 20)?;
        self.adapt(cx.now);
        self.params.limit = o.u32("limit").unwrap_or(self.params.limit);
        if let Some(flows) = o.u32("flows") {
            if self.made {
                return refused("sch_fq_pie: Number of flows cannot be changed");
            }
            if !(1..=65536).contains(&flows) {
                return refused("sch_fq_pie: Number of flows must range in [1..65536]");
            }
            self.flows_cnt = flows;
        }
        self.params.change(o);
        let number = |name, old| o.u32(name).unwrap_or(old);
        self.quantum = number("quantum", self.quantum).max(256);
        self.memory_limit = number("memory_limit", self.memory_limit);
        self.ecn_prob = number("ecn_prob", self.ecn_prob);
        while self.qlen() > self.params.limit {
            // Counted as sent here, and as dropped by those above.
            let Some(packet) = self.peeked.take().or_else(|| self.take(cx.now)) else { break };
            cx.drops.drop(packet, DropReason::Purged);
        }
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.adapt(cx.now);
        for (_, flow) in self.flows.iter_mut() {
            while let Some(packet) = self.pool.pop_head(&mut flow.chain) {
                cx.drops.drop(packet, DropReason::Purged);
            }
            flow.listed = false;
            flow.vars.restart();
        }
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        self.new_flows.clear();
        self.old_flows.clear();
        (self.qlen, self.backlog) = (0, 0);
    }
    fn stats(&self) -> Stats {
        let peeked = self.peeked.as_ref().map_or(0, |p| p.pkt_len);
        Stats { qlen: self.qlen(), backlog: self.backlog + peeked, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen + u32::from(self.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.pool.packets(see);
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        let o = Options::new()
            .with("flows", self.flows_cnt)
            .with("quantum", self.quantum)
            .with("memory_limit", self.memory_limit)
            .with("ecn_prob", self.ecn_prob);
        self.params.dump(o)
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.ecn_mark.into())
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let c = &self.counts;
        let rows = [
            ("pkts_in", c.packets_in),
            ("overlimit", c.overlimit),
            ("overmemory", c.overmemory),
            ("dropped", c.dropped),
            ("ecn_mark", c.ecn_mark),
            ("new_flow_count", c.new_flows),
            ("new_flows_len", self.new_flows.len() as u32),
            ("old_flows_len", self.old_flows.len() as u32),
            ("memory_used", self.memory_usage),
        ];
        Some(rows.into_iter().fold(Options::new(), |o, (name, value)| o.with(name, value)))
    }
    fn ticks_at(&self, tick: Time) -> bool {
        self.clock.goes_off_at(jiffy(tick, self.device.hz), self.batches.len() as u32, self.params.tupdate)
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
    }
    /// A flow that is found empty leaves its list, and comes as a new one again.
    fn watches_idle(&self) -> bool {
        true
    }
    fn scribbles(&self) -> Scribble {
        if self.params.dq_rate_estimator { Scribble::Nothing } else { Scribble::Ticks }
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};
    use penstock_model::Handle;

    #[test]
    fn a_refused_number_of_flows_lets_the_limit_through() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let o = Options::new().with("limit", 9u32).with("flows", 9u32).with("alpha", 9u32);
        let e = q.change(Some(&o), &mut bench.cx(0)).unwrap_err();
        assert_eq!(e.to_string(), "Error: sch_fq_pie: Number of flows cannot be changed.");
        assert_eq!((q.dump().u32("limit"), q.dump().u32("alpha")), (Some(9), Some(2)));
        let e = q.change(Some(&Options::new().with("quantum", 1u32 << 21)), &mut bench.cx(0)).unwrap_err();
        assert_eq!((e.errno, e.to_string()), (34, "Error: integer out of range.".to_owned()));
    }
}
