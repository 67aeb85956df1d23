//! `fq_codel`: a queue for each flow, CoDel in each, served in turn.
//!
//! Follows: linux v6.12 `net/sched/sch_fq_codel.c`.
//! Differs: the hash of a flow is random in the kernel and here (`super::sfq::hash`); a packet takes as much memory
//! as a frame from a packet socket, wherever it comes from.

pub(super) mod table;

use self::table::Table;
use super::KindSpec;
use super::memory;
use super::sfq::chains::{Chain, Pool};
use super::sfq::hash::Key;
use crate::aqm::codel;
use crate::cls::{BlockId, Filters, Gone, Verdict};
use crate::ledger::{DropReason, Ledger};
use crate::qdisc::{Classful, Cx, Init, Qdisc, Scribble, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};
use std::collections::VecDeque;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "fq_codel",
    about: "one queue for each flow, each controlled by CoDel, served by deficit round robin",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Flows,
        sorting: Sorting::Own,
        takes_filters: true,
        limits_rate: LimitsRate::No,
        queue: Holds::Managed,
        limit: Limit::Packets,
        work_conserving: true,
    },
};

/// `FQ_CODEL_QUANTUM_MAX`.
const QUANTUM_MAX: u32 = 1 << 20;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let mut params = codel::Params::new();
    params.ecn = true;
    let mtu = init.device.psched_mtu().min(QUANTUM_MAX);
    let mut fq_codel = FqCodel {
        handle: init.handle,
        limit: 10 * 1024,
        flows_cnt: 1024,
        quantum: mtu.max(256),
        drop_batch: 64,
        memory_limit: 32 << 20,
        since_7: init.device.kernel >= Kernel::V7_2,
        params,
        mtu,
        bypass: false,
        filters: Filters::new(init.handle),
        key: Key::draw(cx.rng),
        made: false,
        flows: Table::default(),
        pool: Pool::default(),
        new_flows: VecDeque::new(),
        old_flows: VecDeque::new(),
        counts: codel::Counts::default(),
        memory_usage: 0,
        drop_overlimit: 0,
        drop_overmemory: 0,
        new_flow_count: 0,
        peeked: None,
        qlen: 0,
        backlog: 0,
        stats: Stats::default(),
    };
    fq_codel.change(options, cx)?;
    fq_codel.made = true;
    fq_codel.bypass = init.parent == Handle::ROOT && fq_codel.limit > 0;
    Ok(Box::new(fq_codel))
}

/// What a packet takes of the memory: in 7.2 nothing while it counts as its socket's.
//= linux v7.2 net/sched/sch_fq_codel.c fq_codel_enqueue, include/net/sock.h is_skb_wmem
pub(crate) fn memory_of(skb: &Skb, since_7: bool) -> u32 {
    const LOOPBACK: u32 = 1;
    let role = &skb.tc.role;
    let owned = skb.iif <= LOOPBACK && !role.is_orphan() && !role.is_copy();
    if since_7 && owned { 0 } else { memory(skb) }
}

/// One flow: `struct fq_codel_flow` with its place in `backlogs`.
#[derive(Default)]
struct Flow {
    chain: Chain,
    qlen: u32,
    /// Bytes.
    backlog: u32,
    deficit: i32,
    vars: codel::Vars,
    /// It stands in one of the lists.
    listed: bool,
}

/// The qdisc.
pub struct FqCodel {
    // Parameters
    handle: Handle,
    /// Packets.
    limit: u32,
    flows_cnt: u32,
    /// Bytes a turn.
    quantum: u32,
    /// Most packets dropped at once.
    drop_batch: u32,
    /// Bytes of memory.
    memory_limit: u32,
    /// It is that of 7.2 or later.
    since_7: bool,
    params: codel::Params,
    /// MTU and link header when it was made.
    mtu: u32,
    /// Whether a packet passes by when nothing is queued (`TCQ_F_CAN_BYPASS` of the device's own qdisc).
    bypass: bool,
    filters: Filters,
    key: Key,
    /// From then on it keeps the number of its flows.
    made: bool,
    // Variables
    /// Those that have had a packet.
    flows: Table<Flow>,
    pool: Pool,
    /// Places of flows.
    new_flows: VecDeque<u32>,
    old_flows: VecDeque<u32>,
    counts: codel::Counts,
    memory_usage: u32,
    drop_overlimit: u32,
    drop_overmemory: u32,
    new_flow_count: u32,
    peeked: Option<Packet>,
    /// Without what was peeked at.
    qlen: u32,
    backlog: u32,
    stats: Stats,
}

/// One flow as CoDel drains it, with what the drain changes of the whole.
struct Drained<'a> {
    flow: (&'a mut Chain, &'a mut u32, &'a mut u32),
    pool: &'a mut Pool,
    qlen: &'a mut u32,
    backlog: &'a mut u32,
    memory: &'a mut u32,
    since_7: bool,
    drops: &'a mut Ledger,
    dropped: u32,
}

impl codel::Queue for Drained<'_> {
    fn pop(&mut self) -> Option<Packet> {
        let (chain, qlen, backlog) = &mut self.flow;
        let packet = self.pool.pop_head(chain)?;
        **qlen -= 1;
        **backlog -= packet.pkt_len;
        *self.qlen -= 1;
        *self.backlog -= packet.pkt_len;
        *self.memory = self.memory.wrapping_sub(memory_of(&packet, self.since_7));
        Some(packet)
    }
    /// CoDel sees the backlog of the whole.
    fn backlog(&self) -> u32 {
        *self.backlog
    }
    fn discard(&mut self, packet: Packet) {
        self.dropped += 1;
        self.drops.drop(packet, DropReason::Early);
    }
}

impl FqCodel {
    /// `fq_codel_classify`: a flow, from 0; `None` where a filter must name one and does not.
    fn classify(&self, skb: &mut Skb, cx: &mut Cx<'_>) -> Result<Option<u32>, Gone> {
        let named = |minor: u32| (1..=self.flows_cnt).contains(&minor).then(|| minor - 1);
        let priority = Handle(skb.priority);
        if priority.qdisc() == self.handle
            && let Some(flow) = named(priority.minor().into())
        {
            return Ok(Some(flow));
        }
        if self.filters.is_empty(Filters::ROOT) {
            let scaled = (u64::from(self.key.hash_from_socket(skb)) * u64::from(self.flows_cnt)) >> 32;
            return Ok(Some(scaled as u32));
        }
        match self.filters.classify(Filters::ROOT, skb, cx) {
            Verdict::Class(hit) => Ok(named(hit.classid.minor().into())),
            Verdict::Unmatched => Ok(None),
            Verdict::Gone(gone) => Err(gone),
        }
    }
    /// `fq_codel_drop`: half of the fattest flow, of several the first, from its head; answers its number.
    fn displace(&mut self, cx: &mut Cx<'_>) -> u32 {
        let mut fattest = (0, 0);
        for (n, flow) in self.flows.iter().filter(|(_, flow)| flow.backlog > 0) {
            if flow.backlog > fattest.0 || flow.backlog == fattest.0 && n < fattest.1 {
                fattest = (flow.backlog, n);
            }
        }
        let (threshold, n) = (fattest.0 >> 1, fattest.1);
        let place = self.flows.place(n);
        let flow = self.flows.at(place);
        let (mut count, mut bytes) = (0, 0);
        while let Some(packet) = self.pool.pop_head(&mut flow.chain) {
            count += 1;
            bytes += packet.pkt_len;
            self.memory_usage = self.memory_usage.wrapping_sub(memory_of(&packet, self.since_7));
            cx.drops.drop(packet, DropReason::Displaced);
            if count >= self.drop_batch || bytes >= threshold {
                break;
            }
        }
        flow.vars.count = flow.vars.count.wrapping_add(count);
        flow.backlog -= bytes;
        flow.qlen -= count;
        self.stats.drops = self.stats.drops.wrapping_add(count);
        self.backlog -= bytes;
        self.qlen -= count;
        n
    }
    /// `__fq_codel_dequeue`.
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
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
            let mut drained = Drained {
                flow: (&mut flow.chain, &mut flow.qlen, &mut flow.backlog),
                pool: &mut self.pool,
                qlen: &mut self.qlen,
                backlog: &mut self.backlog,
                memory: &mut self.memory_usage,
                since_7: self.since_7,
                drops: cx.drops,
                dropped: 0,
            };
            let packet = flow.vars.dequeue(&mut drained, &self.params, self.mtu, &mut self.counts, cx.now);
            let dropped = drained.dropped;
            self.stats.drops = self.stats.drops.wrapping_add(dropped);
            let Some(packet) = packet else {
                list.pop_front();
                if new && !self.old_flows.is_empty() {
                    self.old_flows.push_back(n);
                } else {
                    self.flows.at(n).listed = false;
                }
                continue;
            };
            flow.deficit = flow.deficit.wrapping_sub(packet.pkt_len as i32);
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
            return Some(packet);
        }
    }
}

impl Qdisc for FqCodel {
    fn stands_alone(&mut self) {
        self.bypass = self.limit > 0;
    }
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        if self.pass_by(&packet) {
            //= linux v6.12 dev.c __dev_xmit_skb: past an empty root qdisc (TCQ_F_CAN_BYPASS).
            self.peeked = Some(packet);
            return Xmit::Success;
        }
        let n = match self.classify(&mut packet, cx) {
            Ok(Some(n)) => n,
            Ok(None) => return Gone::Shot.leave_counted(packet, &mut self.stats, cx),
            Err(gone) => return gone.leave_counted(packet, &mut self.stats, cx),
        };
        packet.queued = cx.now;
        let place = self.flows.place(n);
        let flow = self.flows.at(place);
        flow.backlog += packet.pkt_len;
        self.backlog += packet.pkt_len;
        self.memory_usage = self.memory_usage.wrapping_add(memory_of(&packet, self.since_7));
        flow.qlen += 1;
        self.pool.push_tail(&mut flow.chain, packet);
        if !std::mem::replace(&mut flow.listed, true) {
            self.new_flows.push_back(place);
            self.new_flow_count = self.new_flow_count.wrapping_add(1);
            flow.deficit = self.quantum as i32;
        }
        let over_memory = self.memory_usage > self.memory_limit;
        self.qlen += 1;
        if self.qlen() <= self.limit && !over_memory {
            return Xmit::Success;
        }
        let before = self.qlen;
        let from = self.displace(cx);
        let dropped = before - self.qlen;
        self.drop_overlimit = self.drop_overlimit.wrapping_add(dropped);
        if over_memory {
            self.drop_overmemory = self.drop_overmemory.wrapping_add(dropped);
        }
        if from == n { Xmit::Cn } else { Xmit::Success }
    }
    fn pass_by(&mut self, packet: &Skb) -> bool {
        let passes = self.bypass && self.qlen() == 0 && !self.filters.were_there();
        if passes {
            self.stats.bytes += u64::from(packet.pkt_len);
            self.stats.packets += packet.counts_as();
        }
        passes
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.peeked.take().or_else(|| self.take(cx))
    }
    /// `fq_codel_peek`: a dequeue's work; the packet counts as queued until it goes.
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none() {
            self.peeked = self.take(cx);
        }
        self.peeked.as_ref()
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let Some(o) = options else { return Ok(()) };
        if let Some(flows) = o.u32("flows") {
            if self.made || !(1..=65536).contains(&flows) {
                return Err(KernelError::errno(KernelError::EINVAL));
            }
            self.flows_cnt = flows;
        }
        let quantum = o.u32("quantum").map(|q| q.max(256));
        if quantum.is_some_and(|q| q > QUANTUM_MAX) {
            return Err(KernelError::new(KernelError::EINVAL, "Invalid quantum"));
        }
        self.params.change(o);
        let number = |name, old| o.u32(name).unwrap_or(old);
        self.quantum = quantum.unwrap_or(self.quantum);
        let (mask, selector) = self.params.ce_threshold_selector;
        self.params.ce_threshold_selector = (
            number("ce_threshold_mask", mask.into()) as u8,
            number("ce_threshold_selector", selector.into()) as u8,
        );
        self.limit = number("limit", self.limit);
        self.drop_batch = number("drop_batch", self.drop_batch).max(1);
        self.memory_limit = number("memory_limit", self.memory_limit).min(1 << 31);
        while self.qlen() > self.limit || self.memory_usage > self.memory_limit {
            // Counted as sent here, and as dropped by those above.
            let Some(packet) = self.peeked.take().or_else(|| self.take(cx)) else { break };
            cx.drops.drop(packet, DropReason::Purged);
        }
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        for (_, flow) in self.flows.iter_mut() {
            while let Some(packet) = self.pool.pop_head(&mut flow.chain) {
                cx.drops.drop(packet, DropReason::Purged);
            }
            (flow.qlen, flow.backlog, flow.listed, flow.vars) = (0, 0, false, codel::Vars::default());
        }
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        self.new_flows.clear();
        self.old_flows.clear();
        (self.memory_usage, self.qlen, self.backlog) = (0, 0, 0);
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
            .with("limit", self.limit)
            .with("flows", self.flows_cnt)
            .with("quantum", self.quantum)
            .with("drop_batch", self.drop_batch)
            .with("memory_limit", self.memory_limit);
        let o = self.params.dump(o);
        if self.params.ce_threshold == codel::DISABLED {
            return o;
        }
        let (mask, selector) = self.params.ce_threshold_selector;
        o.with("ce_threshold_selector", u32::from(selector)).with("ce_threshold_mask", u32::from(mask))
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.marks())
    }
    fn xstats(&self, _: Time) -> Option<Options> {
        let rows = [
            ("maxpacket", self.counts.maxpacket),
            ("drop_overlimit", self.drop_overlimit),
            ("ecn_mark", self.counts.ecn_mark),
            ("new_flow_count", self.new_flow_count),
            ("new_flows_len", self.new_flows.len() as u32),
            ("old_flows_len", self.old_flows.len() as u32),
            ("ce_mark", self.counts.ce_mark),
            ("memory_used", self.memory_usage),
            ("drop_overmemory", self.drop_overmemory),
        ];
        Some(rows.into_iter().fold(Options::new(), |o, (name, value)| o.with(name, value)))
    }
    /// `fq_codel_dequeue`: a flow that is found empty leaves its list, and comes as a new one again.
    fn watches_idle(&self) -> bool {
        true
    }
    fn scribbles(&self) -> Scribble {
        Scribble::CodelAndMemory { since_7: self.since_7 }
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
    fn classes(&self) -> Option<&dyn Classful> {
        Some(self)
    }
    fn classes_mut(&mut self) -> Option<&mut dyn Classful> {
        Some(self)
    }
}

/// Flows are classes to look at, and filters choose among them.
impl Classful for FqCodel {
    fn find(&self, _: Handle) -> bool {
        false
    }
    fn walk(&self, now: Time, visit: &mut dyn FnMut(ClassDump)) {
        let mut listed: Vec<(u32, &Flow)> = self.flows.iter().filter(|(_, flow)| flow.listed).collect();
        listed.sort_by_key(|&(n, _)| n);
        for (n, flow) in listed {
            let o = Options::new().with("deficit", i64::from(flow.deficit));
            visit(ClassDump {
                kind: SPEC.id,
                classid: Handle(self.handle.0 | (n + 1) & 0xffff),
                parent: self.handle,
                leaf: None,
                options: Options::new(),
                counters: Counters::Queue,
                stats: Stats { qlen: flow.qlen, backlog: flow.backlog, ..Stats::default() },
                xstats: Some(flow.vars.xstats(o, now)),
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device};

    #[test]
    fn flows_are_numbered_once_and_quanta_have_bounds() {
        let mut bench = Bench::new();
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        let with = |name, value: u32| Options::new().with(name, value);
        let mut made = |o: Options| build(&init, Some(&o), &mut bench.cx(0)).map(|q| q.dump());
        assert!(made(with("flows", 65537)).is_err());
        assert_eq!(made(with("flows", 7)).unwrap().u32("flows"), Some(7));
        assert_eq!(made(with("quantum", 1)).unwrap().u32("quantum"), Some(256));
        assert_eq!(made(with("limit", 3)).unwrap().u32("quantum"), Some(1514));
        let mut q = build(&init, None, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"));
        let before = q.dump();
        assert_eq!(q.change(Some(&with("flows", 7)), &mut bench.cx(0)).unwrap_err().errno, 22);
        let e = q.change(Some(&with("quantum", (1 << 20) + 1)), &mut bench.cx(0)).unwrap_err();
        assert_eq!(e.to_string(), "Error: Invalid quantum.");
        assert_eq!(q.dump(), before);
    }
}
