//! `pie`: one queue whose delay PIE controls.
//!
//! Follows: linux v6.12 `net/sched/sch_pie.c`.
//! Differs: the probability is computed at the first packet after its timer has gone off, for the moment when it did; where a packet
//! comes on the very tick, the timer is first.

use super::KindSpec;
use crate::aqm::ecn::set_ce;
use crate::aqm::pie;
use crate::jiffies;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Device, Init, Qdisc, Scribble, Xmit};
use crate::queue::Queue;
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "pie",
    about: "one queue whose delay is controlled by PIE",
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

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let hz = init.device.hz;
    let half = u64::from(hz) / 2;
    let mut pie = Pie {
        device: init.device,
        params: pie::Params::new(hz, 1000),
        vars: pie::Vars::default(),
        timer: Some(jiffies::wheel(jiffy(cx.now, hz), half)),
        counts: Counts::default(),
        queue: Queue::default(),
        peeked: None,
        stats: Stats::default(),
    };
    pie.change(options, cx)?;
    Ok(Box::new(pie))
}

/// The tick at or before a moment.
fn jiffy(now: Time, hz: u32) -> u64 {
    now.as_ns() as u64 / (1_000_000_000 / u64::from(hz))
}

/// `struct pie_stats`.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    packets_in: u32,
    dropped: u32,
    overlimit: u32,
    ecn_mark: u32,
    maxq: u32,
}

/// The qdisc.
#[derive(Debug)]
pub struct Pie {
    // Parameters
    device: Device,
    params: pie::Params,
    // Variables
    vars: pie::Vars,
    /// The tick on which the probability is computed next; `None` once `tupdate` was 0.
    timer: Option<u64>,
    counts: Counts,
    queue: Queue,
    peeked: Option<Packet>,
    stats: Stats,
}

impl Pie {
    /// `pie_timer`, as often as it has gone off by `now`: the variables and when it goes off next.
    fn adapted(&self, now: Time) -> (pie::Vars, Option<u64>) {
        let (today, backlog, tupdate) = (jiffy(now, self.device.hz), self.backlog(), self.params.tupdate);
        let (mut vars, mut timer) = (self.vars, self.timer);
        while let Some(at) = timer.filter(|&at| at <= today) {
            let before = vars;
            vars.update(&self.params, backlog);
            // What an update leaves as it was, no later one changes while nothing comes or goes.
            let settled = vars == before;
            let next = |at| {
                if settled { jiffies::wheel_after(at, tupdate, today) } else { jiffies::wheel(at, tupdate) }
            };
            timer = (tupdate > 0).then(|| next(at));
        }
        (vars, timer)
    }
    #[inline]
    fn adapt(&mut self, now: Time) {
        if self.timer.is_some_and(|at| at <= jiffy(now, self.device.hz)) {
            (self.vars, self.timer) = self.adapted(now);
        }
    }
    fn backlog(&self) -> u32 {
        self.queue.backlog() + self.peeked.as_ref().map_or(0, |p| p.pkt_len)
    }
    fn refuse(&mut self, packet: Packet, reason: DropReason, cx: &mut Cx<'_>) -> Xmit {
        self.counts.dropped = self.counts.dropped.wrapping_add(1);
        self.vars.dropped();
        self.stats.drops = self.stats.drops.wrapping_add(1);
        cx.drops.drop(packet, reason);
        Xmit::Drop
    }
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let packet = self.queue.pop_head()?;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        self.vars.dequeued(&self.params, packet.len, packet.queued, self.queue.backlog(), cx.now);
        Some(packet)
    }
}

impl Qdisc for Pie {
    fn enqueue(&mut self, mut packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        self.adapt(cx.now);
        if self.qlen() >= self.params.limit {
            self.counts.overlimit = self.counts.overlimit.wrapping_add(1);
            return self.refuse(packet, DropReason::Overlimit, cx);
        }
        let (mtu, backlog) = (self.device.psched_mtu(), self.backlog());
        if self.vars.drop_early(&self.params, mtu, backlog, packet.len, cx.rng) {
            if !(self.params.ecn && self.vars.may_mark() && set_ce(&mut packet)) {
                return self.refuse(packet, DropReason::Early, cx);
            }
            self.counts.ecn_mark = self.counts.ecn_mark.wrapping_add(1);
        }
        packet.queued = cx.now;
        self.counts.packets_in = self.counts.packets_in.wrapping_add(1);
        self.counts.maxq = self.counts.maxq.max(self.qlen());
        self.queue.push_tail(packet);
        Xmit::Success
    }
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        self.adapt(cx.now);
        match self.peeked.take() {
            Some(packet) => Some(packet),
            None => self.take(cx),
        }
    }
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        self.adapt(cx.now);
        if self.peeked.is_none() {
            self.peeked = self.take(cx);
        }
        self.peeked.as_ref()
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        self.adapt(cx.now);
        if let Some(o) = options {
            self.params.change(o);
        }
        while self.qlen() > self.params.limit {
            let Some(packet) = self.peeked.take().or_else(|| self.queue.pop_head()) else { break };
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::Purged);
        }
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.adapt(cx.now);
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        self.queue.purge(cx);
        self.vars.restart();
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen(), backlog: self.backlog(), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.queue.len() + u32::from(self.peeked.is_some())
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.queue.iter().for_each(|packet| see(packet));
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        self.params.dump(Options::new())
    }
    fn marks(&self) -> Option<u64> {
        Some(self.counts.ecn_mark.into())
    }
    fn xstats(&self, now: Time) -> Option<Options> {
        let c = &self.counts;
        let o = Options::new()
            .with("pkts_in", c.packets_in)
            .with("overlimit", c.overlimit)
            .with("dropped", c.dropped)
            .with("maxq", c.maxq)
            .with("ecn_mark", c.ecn_mark);
        Some(self.adapted(now).0.xstats(&self.params, o))
    }
    fn ticks_at(&self, tick: Time) -> bool {
        let (at, tupdate) = (jiffy(tick, self.device.hz), self.params.tupdate);
        // The first time after the tick before.
        self.timer.is_some_and(|timer| match tupdate {
            0 => timer == at,
            _ => jiffies::wheel_after(timer, tupdate, at.saturating_sub(1)) == at,
        })
    }
    fn set_device(&mut self, device: &Device, _: &mut Cx<'_>) {
        self.device = *device;
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
    use crate::testing::{Bench, device, packet};
    use penstock_model::Handle;

    fn pie(o: Option<&Options>, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(Kernel::V6_12), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, o, &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// Packets of 1000 bytes each 0.9 ms into a line that takes one a millisecond, for so many ms: the queue at the end.
    fn flood(q: &mut dyn Qdisc, bench: &mut Bench, ms: i64) -> u32 {
        let mut sent = 0;
        for us in (0..ms * 1000).step_by(100) {
            if us % 900 == 0 {
                sent += 1;
                q.enqueue(packet(sent, 1000), &mut bench.cx(us * 1000));
            }
            if us % 1000 == 0 {
                q.dequeue(&mut bench.cx(us * 1000));
            }
        }
        q.qlen()
    }

    #[test]
    fn the_delay_stays_near_the_target() {
        let mut bench = Bench::new();
        let mut q = pie(None, &mut bench);
        let queued = flood(&mut *q, &mut bench, 30_000);
        // 15 ms of a packet each.
        assert!((3..40).contains(&queued), "{queued}");
        let dropped = bench.dropped();
        assert!((2_000..5_000).contains(&dropped.len()), "{}", dropped.len());
        assert!(dropped.iter().all(|(_, r)| *r == DropReason::Early));
        assert_eq!(q.xstats(Time::ZERO).unwrap().u32("dropped"), Some(dropped.len() as u32));
    }

    #[test]
    fn a_lower_limit_drops_what_is_too_much() {
        let mut bench = Bench::new();
        let mut q = pie(None, &mut bench);
        for seq in 0..10 {
            q.enqueue(packet(seq, 1000), &mut bench.cx(0));
        }
        assert_eq!(q.peek(&mut bench.cx(0)).map(|p| p.seq), Some(0));
        q.change(Some(&Options::new().with("limit", 4u32)), &mut bench.cx(0)).unwrap();
        assert_eq!((q.qlen(), q.stats().backlog, bench.dropped().len()), (4, 4000, 6));
        assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(6));
        assert_eq!(q.enqueue(packet(11, 1000), &mut bench.cx(0)), Xmit::Success);
        assert_eq!(q.enqueue(packet(12, 1000), &mut bench.cx(0)), Xmit::Drop);
    }

    /// A gap is the same however often somebody looks in it, and costs no more than the time to settle.
    #[test]
    fn a_gap_is_skipped_exactly() {
        let mut bench = Bench::new();
        let mut q = pie(None, &mut bench);
        flood(&mut *q, &mut bench, 3_000);
        while q.dequeue(&mut bench.cx(3_000_000_000)).is_some() {}
        let mut watched = Bench::new();
        let mut same = pie(None, &mut watched);
        flood(&mut *same, &mut watched, 3_000);
        while same.dequeue(&mut watched.cx(3_000_000_000)).is_some() {}
        // One adapts at every tick, the other not at all until the end of a year.
        for ms in (3_000..40_000).step_by(4) {
            same.peek(&mut watched.cx(ms * 1_000_000));
        }
        let (soon, year) = (Time::from_ns(40_000_000_000), Time::from_ns(31_557_600_000_000_000));
        assert_eq!(q.xstats(soon), same.xstats(soon));
        assert!((0..2_000).all(|_| q.xstats(year) == same.xstats(year)));
        let ticks = |q: &dyn Qdisc| -> Vec<bool> {
            (0..40).map(|i| q.ticks_at(Time::from_ns(year.as_ns() + i * 4_000_000))).collect()
        };
        assert_eq!(ticks(&*q), ticks(&*same));
        assert_eq!(ticks(&*q).iter().filter(|t| **t).count(), 8);
    }
}
