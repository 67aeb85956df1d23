//! `tbf`: a token bucket in front of one inner qdisc.
//!
//! Tokens are time: ns in 6.12, ticks of 64 ns in 2.6.35, of the clock source in 2.2 and 2.4. A packet may go when the bucket (and with `peakrate` the
//! second, shallow one) holds the time it takes at that rate.
//!
//! Follows: linux v6.12 and v2.6.35 `net/sched/sch_tbf.c`, `include/net/sch_generic.h` `qdisc_peek_dequeued`;
//! linux v2.4.0 `net/sched/sch_tbf.c` (2.2 has the same).

use super::KindSpec;
use super::bfifo::Bfifo;
use crate::ledger::DropReason;
use crate::node::Node;
use crate::psched::Clock;
use crate::qdisc::{Classful, Cx, Device, Due, Init, Qdisc, Xmit};
use crate::rates::{RateCfg, RateTable};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::psched::TICK_NS;
use penstock_model::rtnetlink::{ClassDump, Counters};
use penstock_model::{Handle, Kernel, KernelError, Options, Stats, Time};
use penstock_packet::{Packet, Skb};

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "tbf",
    about: "shape to a rate with a token bucket",
    kernels: &Kernel::ALL,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::Inner,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::Qdisc("rate"),
        queue: Holds::Classes,
        limit: Limit::Bytes,
        work_conserving: false,
    },
};

/// `cell_log` of a rate table for packets of up to 2047 bytes, as tc chooses it.
const CELL_LOG: u32 = 3;

fn build(init: &Init, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
    let params = Params::parse(options, &init.device)?;
    let mut tbf = Tbf {
        device: init.device,
        handle: init.handle,
        t_c: params.meter.read(cx.now),
        tokens: params.buffer,
        ptokens: params.mtu,
        inner: Node::noop(),
        params,
        peeked: None,
        watchdog: None,
        qlen: 0,
        stats: Stats::default(),
    };
    tbf.fill_inner();
    Ok(Box::new(tbf))
}

/// How a length becomes time.
#[derive(Clone, Debug)]
enum Meter {
    Ns { rate: RateCfg, peak: Option<RateCfg> },
    Ticks { clock: Clock, rate: RateTable, peak: Option<RateTable> },
}

impl Meter {
    /// The moment in its unit.
    #[inline]
    fn read(&self, now: Time) -> i64 {
        match self {
            Meter::Ns { .. } => now.as_ns(),
            Meter::Ticks { clock, .. } => clock.read(now),
        }
    }
}

#[derive(Clone, Debug)]
struct Params {
    /// Limit of the inner fifo, bytes.
    limit: u32,
    /// Longest packet that ever goes, bytes.
    max_size: u32,
    /// Depth of the bucket, ns or ticks.
    buffer: i64,
    /// Depth of the peak bucket, ns or ticks.
    mtu: i64,
    meter: Meter,
}

impl Params {
    fn parse(options: &Options, device: &Device) -> Result<Params, KernelError> {
        match device.kernel {
            Kernel::V2_6_35 => Params::ticks(options, device),
            Kernel::V6_12 | Kernel::V7_2 => Params::ns(options),
        }
        .ok_or(KernelError::errno(KernelError::EINVAL))
    }
    /// `tbf_change` of 6.12.
    fn ns(options: &Options) -> Option<Params> {
        let ticks = |name| i64::from(options.u32(name).unwrap_or(0)) * TICK_NS as i64;
        let bounded = |name| ticks(name).min(i64::from(u32::MAX)) as u64;
        let spec = |rate| RateCfg::new(rate, overhead(options), mpu(options), linklayer(options));
        let rate = spec(options.u64("rate").unwrap_or(0));
        let (mut buffer, mut mtu) = (ticks("buffer"), ticks("mtu"));
        let mut max_size;
        if let Some(burst) = options.u32("burst") {
            max_size = u64::from(burst);
            buffer = rate.l2t_ns(burst) as i64;
        } else {
            max_size = ns_t2l(&rate, bounded("buffer")).min(u64::from(u32::MAX));
        }
        let peak = options.u64("peakrate").filter(|&r| r != 0).map(spec);
        if let Some(peak) = &peak {
            if peak.rate_bytes <= rate.rate_bytes {
                return None;
            }
            if let Some(pburst) = options.u32("pburst") {
                max_size = max_size.min(u64::from(pburst));
                mtu = peak.l2t_ns(pburst) as i64;
            } else {
                max_size = max_size.min(ns_t2l(peak, bounded("mtu")));
            }
        }
        let max_size = u32::try_from(max_size).ok().filter(|&size| size > 0)?;
        let limit = options.u32("limit").unwrap_or(0);
        Some(Params { limit, max_size, buffer, mtu, meter: Meter::Ns { rate, peak } })
    }
    /// `tbf_change` of 2.6.35, and of 2.2 and 2.4, whose longest packet is the device's.
    fn ticks(options: &Options, device: &Device) -> Option<Params> {
        let clock = Clock::of(device);
        let number = |name| options.u32(name).unwrap_or(0);
        let table = |rate: u32, cell_log: &str| {
            let cell_log = options.u32(cell_log).unwrap_or(CELL_LOG);
            let usable = rate != 0 && (1..32).contains(&cell_log);
            usable.then(|| {
                clock.table(rate, overhead(options), mpu(options), linklayer(options), cell_log as u8)
            })
        };
        let rate = table(number("rate"), "cell_log")?;
        let peak = match number("peakrate") {
            0 => None,
            peak if peak > number("rate") => Some(table(peak, "peak_cell_log")?),
            _ => return None,
        };
        let (buffer, mtu) = (clock.ticks_of_tc(number("buffer")), clock.ticks_of_tc(number("mtu")));
        let mut max_size = rate.longest(buffer);
        if let Some(peak) = &peak {
            max_size = max_size.min(peak.longest(mtu));
        }
        if clock.is_old() {
            max_size = i64::from(device.psched_mtu());
            if let Some(peak) = &peak {
                let cell = 1 << peak.cell_log;
                while max_size >= cell && peak.l2t(((max_size / cell - 1) * cell) as u32) > mtu {
                    max_size -= cell;
                }
            }
            if rate.l2t(max_size as u32) > buffer {
                return None;
            }
        }
        let max_size = u32::try_from(max_size).ok()?;
        let meter = Meter::Ticks { clock, rate, peak };
        Some(Params { limit: number("limit"), max_size, buffer: buffer.into(), mtu: mtu.into(), meter })
    }
}

fn overhead(options: &Options) -> u16 {
    options.i64("overhead").unwrap_or(0) as u16
}
fn mpu(options: &Options) -> u16 {
    options.u32("mpu").unwrap_or(0) as u16
}
fn linklayer(options: &Options) -> u8 {
    options.u32("linklayer").unwrap_or(1) as u8 & 0x0f
}

/// `psched_ns_t2l`: bytes that pass in `ns`.
fn ns_t2l(rate: &RateCfg, ns: u64) -> u64 {
    let mut len = ns.wrapping_mul(rate.rate_bytes) / 1_000_000_000;
    if u32::from(rate.linklayer) == crate::rates::LINKLAYER_ATM {
        len = len / 53 * 48;
    }
    len.saturating_sub(u64::from(rate.overhead))
}

/// A token bucket.
pub struct Tbf {
    // Parameters
    device: Device,
    handle: Handle,
    params: Params,
    // Variables
    tokens: i64,
    ptokens: i64,
    /// When tokens were last counted, ns or ticks.
    t_c: i64,
    inner: Node,
    /// Taken out for a peek; still counted as queued.
    peeked: Option<Packet>,
    watchdog: Option<Time>,
    qlen: u32,
    /// `backlog` is kept in 6.12 only: 2.6.35 has none here.
    stats: Stats,
}

impl Tbf {
    fn class(&self) -> Handle {
        Handle::new(self.handle.major(), 1)
    }
    /// `fifo_set_limit`, or a bfifo where there is nothing and `limit` is not 0.
    fn fill_inner(&mut self) {
        if !self.inner.is_noop() {
            return;
        }
        if self.params.limit > 0 {
            let init = Init { device: self.device, handle: Handle::UNSPEC, parent: self.class() };
            let shift = self.inner.shift();
            self.inner = Node::new(&init, Box::new(Bfifo::new(&self.device, self.params.limit)));
            self.inner.takes_over(shift);
        }
    }
    /// Takes over what the inner qdisc holds, after it has dropped packets of itself.
    #[cold]
    fn recount(&mut self) {
        let qlen = self.inner.qlen_above().wrapping_add(u32::from(self.peeked.is_some()));
        if self.device.kernel >= Kernel::V6_12 {
            self.stats.drops = self.stats.drops.wrapping_add(self.qlen.saturating_sub(qlen));
            let peeked = self.peeked.as_ref().map_or(0, |p| p.pkt_len);
            self.stats.backlog = self.inner.counted_above().wrapping_add(peeked);
        }
        self.qlen = qlen;
    }
    /// Whether the packet at the head, `len` bytes, may go now: `t_c`, tokens and peak tokens once it has gone. Where it may not the watchdog is set.
    #[inline]
    fn admit(&mut self, len: u32, now: Time) -> Option<(i64, i64, i64)> {
        let params = &self.params;
        let now_units = params.meter.read(now);
        let (passed, cost, peak_cost) = match &params.meter {
            Meter::Ns { rate, peak } => {
                (now_units - self.t_c, rate.l2t_ns(len) as i64, peak.map(|p| p.l2t_ns(len) as i64))
            }
            Meter::Ticks { clock, rate, peak } => {
                let peak = peak.as_ref().map(|p| i64::from(p.l2t(len)));
                (clock.diff(now_units, self.t_c), i64::from(rate.l2t(len)), peak)
            }
        };
        let earned = passed.min(params.buffer);
        let mut ptoks = 0;
        if let Some(cost) = peak_cost {
            ptoks = (earned + self.ptokens).min(params.mtu) - cost;
        }
        let toks = (earned + self.tokens).min(params.buffer) - cost;
        if (toks | ptoks) >= 0 {
            return Some((now_units, toks, ptoks));
        }
        let short = (-toks).max(-ptoks);
        self.watchdog = Some(match &params.meter {
            Meter::Ns { .. } => Time::from_ns(now_units + short),
            Meter::Ticks { clock, .. } => clock.timer(now, now_units, short),
        });
        self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
        None
    }
    /// `tbf_segment`: a super-packet that is longer than the burst goes in segment by segment.
    #[cold]
    fn segment(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let dropped = cx.drops.changes();
        let mut segments = cx.drops.segment(packet);
        let (all, mut taken) = (segments.len() as u32, 0);
        for segment in segments.drain(..) {
            let len = segment.pkt_len;
            let answer = self.inner.enqueue(segment, cx);
            if answer == Xmit::Success {
                taken += 1;
                self.stats.backlog = self.stats.backlog.wrapping_add(len);
            } else if answer.counts_as_drop() {
                self.stats.drops = self.stats.drops.wrapping_add(1);
            }
        }
        // The answer tells of the last one.
        cx.drops.segments_done(segments, all - taken.max(1));
        self.qlen += taken;
        if cx.drops.changes() != dropped {
            self.recount();
        }
        if taken > 0 { Xmit::Success } else { Xmit::Drop }
    }
    /// `tbf_dequeue`.
    #[inline]
    fn take(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let dropped = cx.drops.changes();
        let len = self.inner.peek(cx).map(|packet| packet.pkt_len);
        let mut taken = None;
        cx.drops.work.clock_reads += u64::from(len.is_some());
        if let Some(len) = len
            && let Some(left) = self.admit(len, cx.now)
        {
            taken = self.inner.dequeue(cx);
            //= linux v6.12 sch_tbf.c tbf_dequeue: a qdisc that shows a packet and does not give it (etf before its time) costs no tokens.
            if taken.is_some() {
                (self.t_c, self.tokens, self.ptokens) = left;
            }
        }
        if let Some(packet) = &taken {
            self.qlen -= 1;
            if self.device.kernel >= Kernel::V6_12 {
                self.stats.backlog = self.stats.backlog.wrapping_sub(packet.pkt_len);
                self.stats.bytes += u64::from(packet.pkt_len);
                self.stats.packets += packet.counts_as();
            }
        }
        if cx.drops.changes() != dropped {
            self.recount();
        }
        taken
    }
}

impl Qdisc for Tbf {
    #[inline]
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let len = packet.pkt_len;
        if len > self.params.max_size {
            if packet.segments_fit(self.params.max_size) {
                return self.segment(packet, cx);
            }
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::TooBig);
            return Xmit::Drop;
        }
        let (dropped, cut) = (cx.drops.changes(), cx.drops.cut());
        let answer = self.inner.enqueue(packet, cx);
        self.qlen = self.qlen.wrapping_add(cx.drops.cut().since(cut).told);
        if answer == Xmit::Success {
            self.qlen += 1;
            match self.device.kernel {
                Kernel::V6_12 | Kernel::V7_2 => self.stats.backlog = self.stats.backlog.wrapping_add(len),
                Kernel::V2_6_35 => {
                    self.stats.bytes += u64::from(len);
                    self.stats.packets += 1;
                }
            }
        } else if answer.counts_as_drop() {
            self.stats.drops = self.stats.drops.wrapping_add(1);
        }
        if cx.drops.changes() != dropped {
            self.recount();
        }
        answer
    }
    #[inline]
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        if let Some(packet) = self.peeked.take() {
            self.qlen -= 1;
            if self.device.kernel >= Kernel::V6_12 {
                self.stats.backlog = self.stats.backlog.wrapping_sub(packet.pkt_len);
            }
            return Some(packet);
        }
        self.take(cx)
    }
    fn peek(&mut self, cx: &mut Cx<'_>) -> Option<&Packet> {
        if self.peeked.is_none()
            && let Some(packet) = self.take(cx)
        {
            // It is still part of the queue.
            self.qlen += 1;
            if self.device.kernel >= Kernel::V6_12 {
                self.stats.backlog = self.stats.backlog.wrapping_add(packet.pkt_len);
            }
            self.peeked = Some(packet);
        }
        self.peeked.as_ref()
    }
    fn next_wakeup(&self) -> Option<Time> {
        match (self.watchdog, self.inner.next_wakeup()) {
            (Some(own), Some(inner)) => Some(own.min(inner)),
            (own, inner) => own.or(inner),
        }
    }
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.watchdog.iter().for_each(|&at| see(at, at));
        self.inner.timers(see);
    }
    fn expire(&mut self, due: Due) {
        self.watchdog = self.watchdog.filter(|&at| !due.has(at, at));
        self.inner.expire(due);
    }
    fn change(&mut self, options: Option<&Options>, cx: &mut Cx<'_>) -> Result<(), KernelError> {
        let options = options.ok_or(KernelError::errno(KernelError::EINVAL))?;
        let params = Params::parse(options, &self.device)?;
        //= linux v6.12 net/sched/sch_fifo.c fifo_set_limit: it asks for "fifo" behind the first letter of the name.
        if matches!(self.inner.kind(), "bfifo" | "pfifo" | "pfifo_head_drop") {
            self.inner.change(Some(&Options::new().with("limit", params.limit)), cx)?;
        }
        (self.tokens, self.ptokens) = (params.buffer, params.mtu);
        self.params = params;
        self.fill_inner();
        Ok(())
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        self.inner.reset(cx);
        if let Some(packet) = self.peeked.take() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        self.t_c = self.params.meter.read(cx.now);
        (self.tokens, self.ptokens) = (self.params.buffer, self.params.mtu);
        self.watchdog = None;
        self.qlen = 0;
        self.stats.backlog = 0;
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen, ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.qlen
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.peeked.iter().for_each(|packet| see(packet));
    }
    fn dump(&self) -> Options {
        let p = &self.params;
        let mut o = Options::new().with("limit", p.limit);
        match &p.meter {
            Meter::Ns { rate, peak } => {
                let ticks = |ns: i64| (ns / TICK_NS as i64) as u32;
                o = o.with("rate", rate.rate_bytes).with("buffer", ticks(p.buffer)).with("mtu", ticks(p.mtu));
                if let Some(peak) = peak {
                    o = o.with("peakrate", peak.rate_bytes);
                }
                o.with("mpu", u32::from(rate.mpu))
                    .with("overhead", i64::from(rate.overhead))
                    .with("linklayer", u32::from(rate.linklayer))
                    .with("cell_log", 0u32)
                    .with("peak_cell_log", 0u32)
            }
            Meter::Ticks { clock, rate, peak } => {
                let ticks = |span: i64| clock.ticks_for_tc(span as u32);
                o = o.with("rate", u64::from(rate.rate_bytes));
                o = o.with("buffer", ticks(p.buffer)).with("mtu", ticks(p.mtu));
                if let Some(peak) = peak {
                    o = o.with("peakrate", u64::from(peak.rate_bytes));
                    o = o.with("peak_cell_log", u32::from(peak.cell_log));
                }
                o.with("mpu", u32::from(rate.mpu))
                    .with("overhead", i64::from(rate.overhead))
                    .with("linklayer", u32::from(rate.linklayer))
                    .with("cell_log", u32::from(rate.cell_log))
            }
        }
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
    /// `tbf_dequeue` asks what it holds, which may note it.
    fn watches_idle(&self) -> bool {
        true
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}

/// One class. Whatever its id is said to be, it is found.
impl Classful for Tbf {
    fn find(&self, _: Handle) -> bool {
        true
    }
    fn graft(&mut self, _: Handle, new: Option<Node>, _: &mut Cx<'_>) -> Result<Option<Node>, KernelError> {
        Ok(Some(std::mem::replace(&mut self.inner, new.unwrap_or_else(Node::noop))))
    }
    fn leaf(&self, _: Handle) -> Option<&Node> {
        Some(&self.inner)
    }
    fn leaf_mut(&mut self, _: Handle) -> Option<&mut Node> {
        Some(&mut self.inner)
    }
    fn children(&self, visit: &mut dyn FnMut(Handle, &Node)) {
        visit(self.class(), &self.inner);
    }
    fn children_mut(&mut self, visit: &mut dyn FnMut(Handle, &mut Node)) {
        visit(self.class(), &mut self.inner);
    }
    fn reduced(&mut self, _: Handle, _: u32, _: u32) {
        self.recount();
    }
    fn walk(&self, _: Time, visit: &mut dyn FnMut(ClassDump)) {
        visit(ClassDump {
            kind: SPEC.id,
            classid: self.class(),
            parent: self.handle,
            leaf: Some(self.inner.handle).filter(|&h| h != Handle::UNSPEC),
            options: Options::new(),
            counters: Counters::None,
            stats: Stats::default(),
            xstats: None,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Bench, device, packet};
    use penstock_model::psched::xmittime;

    /// 1 Mbit/s, burst 3000 bytes.
    fn options(kernel: Kernel) -> Options {
        let o = Options::new()
            .with("rate", 125_000u64)
            .with("limit", 100_000u32)
            .with("buffer", xmittime(125_000, 3000))
            .with("mtu", 0u32)
            .with("linklayer", 1u32);
        if kernel >= Kernel::V6_12 { o.with("burst", 3000u32) } else { o.with("cell_log", 4u32) }
    }
    fn tbf(kernel: Kernel, bench: &mut Bench) -> Box<dyn Qdisc> {
        let init = Init { device: device(kernel), handle: Handle::new(1, 0), parent: Handle::ROOT };
        build(&init, Some(&options(kernel)), &mut bench.cx(0)).unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn what_is_longer_than_the_burst_goes_in_by_segments() {
        let mut bench = Bench::new();
        let mut q = tbf(Kernel::V6_12, &mut bench);
        let mut whole = packet(7, 42 + 3500);
        whole.set_gso(1000, false);
        whole.pkt_len = whole.initial_pkt_len();
        assert_eq!(q.enqueue(whole, &mut bench.cx(0)), Xmit::Success);
        assert_eq!((q.qlen(), q.stats().backlog), (4, 3500 + 4 * 42));
        let sizes: Vec<(u64, u32)> = (0..4)
            .filter_map(|_| q.dequeue(&mut bench.cx(1_000_000_000)))
            .map(|segment| (segment.seq, segment.len))
            .collect();
        assert_eq!(sizes, [(7, 1042), (7, 1042)]);
        // Segments that are too long themselves do not help.
        let mut whole = packet(8, 42 + 8000);
        whole.set_gso(4000, false);
        whole.pkt_len = whole.initial_pkt_len();
        assert_eq!(q.enqueue(whole, &mut bench.cx(0)), Xmit::Drop);
        assert_eq!(bench.dropped(), [(8, DropReason::TooBig)]);
    }

    #[test]
    fn a_burst_goes_at_once_and_the_rest_at_the_rate() {
        for kernel in Kernel::ALL {
            let mut bench = Bench::new();
            let mut q = tbf(kernel, &mut bench);
            for seq in 0..4 {
                q.enqueue(packet(seq, 1500), &mut bench.cx(0));
            }
            let (mut now, mut out) = (0, Vec::new());
            while q.qlen() > 0 {
                match q.dequeue(&mut bench.cx(now)) {
                    Some(p) => out.push((p.seq, now)),
                    None => now = q.next_wakeup().expect("it waits for tokens").as_ns(),
                }
            }
            // The table of 2.6.35 rounds 1500 up to cells of 16 bytes: 1504 bytes, 12.032 ms each.
            let (third, fourth) = match kernel {
                Kernel::V6_12 | Kernel::V7_2 => (12_000_000, 24_000_000),
                Kernel::V2_6_35 => (12_096_000, 24_128_000),
            };
            let want = match kernel {
                Kernel::V6_12 | Kernel::V7_2 => vec![(0, 0), (1, 0), (2, third), (3, fourth)],
                Kernel::V2_6_35 => vec![(0, 0), (1, 64_000), (2, third), (3, fourth)],
            };
            assert_eq!(out, want, "{kernel}");
            assert_eq!(q.stats().packets, 4);
        }
    }

    #[test]
    fn what_is_longer_than_the_burst_never_goes() {
        let mut bench = Bench::new();
        let mut q = tbf(Kernel::V6_12, &mut bench);
        assert_eq!(q.enqueue(packet(0, 3001), &mut bench.cx(0)), Xmit::Drop);
        assert_eq!(bench.dropped(), [(0, DropReason::TooBig)]);
        assert_eq!(q.enqueue(packet(1, 3000), &mut bench.cx(0)), Xmit::Success);
        assert_eq!(q.stats().drops, 1);
    }

    #[test]
    fn a_peek_takes_the_tokens_and_keeps_the_packet() {
        let mut bench = Bench::new();
        let mut q = tbf(Kernel::V6_12, &mut bench);
        q.enqueue(packet(0, 1000), &mut bench.cx(0));
        assert_eq!(q.peek(&mut bench.cx(0)).map(|p| p.seq), Some(0));
        assert_eq!((q.qlen(), q.stats().backlog, q.stats().packets), (1, 1000, 1));
        assert_eq!(q.dequeue(&mut bench.cx(0)).map(|p| p.seq), Some(0));
        assert_eq!((q.qlen(), q.stats().backlog, q.stats().packets), (0, 0, 1));
    }

    #[test]
    fn nonsense_is_refused() {
        let mut bench = Bench::new();
        for kernel in Kernel::ALL {
            let mut q = tbf(kernel, &mut bench);
            let before = q.dump();
            let slow_peak = options(kernel).with("peakrate", 125_000u64).with("mtu", 20_000u32);
            let nothing = options(kernel).with("burst", 0u32).with("buffer", 0u32).with("rate", 0u64);
            for bad in [slow_peak, nothing] {
                assert_eq!(q.change(Some(&bad), &mut bench.cx(0)).map_err(|e| e.errno), Err(22), "{kernel}");
            }
            assert_eq!(q.dump(), before);
        }
    }
}
