//! `etf`: earliest transmission time first, as the sender asks for with `SO_TXTIME`.
//!
//! Follows: linux v6.12 `net/sched/sch_etf.c`.
//! Differs: no hardware offload. `CLOCK_TAI` begins with the run, as all of the machine's clocks do; a time by `CLOCK_MONOTONIC` is taken for one long ago, as it
//! is in Linux. Qdiscs above are told of packets whose time passes while they wait: Linux counts these as queued there from then on.

use super::KindSpec;
use crate::ledger::DropReason;
use crate::qdisc::{Cx, Due, Init, Qdisc, Xmit};
use crate::traits::{Classes, Holds, Limit, LimitsRate, Sorting, Traits};
use penstock_model::{Kernel, KernelError, Options, Span, Stats, Time};
use penstock_packet::{Packet, Skb, TxClock, TxTime};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The kind.
pub static SPEC: KindSpec = KindSpec {
    id: "etf",
    about: "sends each packet at the time its sender named",
    kernels: &Kernel::LIVING,
    build,
    simulated: true,
    traits: Traits {
        classes: Classes::None,
        sorting: Sorting::Nothing,
        takes_filters: false,
        limits_rate: LimitsRate::No,
        queue: Holds::Delayed,
        limit: Limit::None,
        work_conserving: false,
    },
};

/// `CLOCK_TAI`.
const TAI: i64 = 11;
/// `TC_ETF_DEADLINE_MODE_ON`.
const DEADLINE_MODE: u32 = 1;
/// `TC_ETF_OFFLOAD_ON`.
const OFFLOAD: u32 = 2;
/// `TC_ETF_SKIP_SOCK_CHECK`.
const SKIP_SOCK_CHECK: u32 = 4;
/// `ENOTSUPP`, which no C library has a word for.
const ENOTSUPP: i32 = 524;

fn build(_: &Init, options: Option<&Options>, _: &mut Cx<'_>) -> Result<Box<dyn Qdisc>, KernelError> {
    let no = |errno: i32, sentence: &str| Err(KernelError::new(errno, sentence));
    let Some(options) = options else {
        return no(KernelError::EINVAL, "Missing ETF qdisc options which are mandatory");
    };
    let clockid = options.i64("clockid").unwrap_or(-1);
    if clockid < 0 {
        return no(ENOTSUPP, "Dynamic clockids are not supported");
    }
    if clockid != TAI {
        return no(KernelError::EINVAL, "Invalid clockid. CLOCK_TAI must be used");
    }
    let delta = options.i64("delta").unwrap_or(0);
    if delta < 0 {
        return no(KernelError::EINVAL, "Delta must be positive");
    }
    let flags = options.u32("flags").unwrap_or(0);
    if flags & OFFLOAD != 0 {
        return no(KernelError::EOPNOTSUPP, "Specified device does not support ETF offload");
    }
    Ok(Box::new(Etf {
        given: options.clone(),
        delta: Span::from_ns(delta),
        deadline_mode: flags & DEADLINE_MODE != 0,
        skip_sock_check: flags & SKIP_SOCK_CHECK != 0,
        waiting: BinaryHeap::new(),
        sequence: 0,
        last: Time::ZERO,
        watchdog: None,
        struck: None,
        stats: Stats::default(),
    }))
}

/// A packet that waits for its time.
struct Waiting {
    at: Time,
    /// Which came first, of those with the same time.
    sequence: u64,
    packet: Packet,
}

impl Ord for Waiting {
    /// The earliest is the greatest.
    fn cmp(&self, other: &Waiting) -> Ordering {
        (other.at, other.sequence).cmp(&(self.at, self.sequence))
    }
}
impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Waiting) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Waiting {
    fn eq(&self, other: &Waiting) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Waiting {}

/// The qdisc.
struct Etf {
    // Parameters
    /// `delta` in ns, `clockid`, `flags`.
    given: Options,
    delta: Span,
    deadline_mode: bool,
    skip_sock_check: bool,
    // Variables
    waiting: BinaryHeap<Waiting>,
    sequence: u64,
    /// The time of the last packet that was given on.
    last: Time,
    watchdog: Option<Time>,
    /// It has gone off at this very moment.
    struck: Option<Time>,
    stats: Stats,
}

/// What a packet's time of departure is by `CLOCK_TAI`, and whether a socket has asked for it, and how.
fn txtime(skb: &Skb) -> (Time, Option<TxTime>) {
    let noted = if skb.is_noted() { skb.rare().txtime } else { None };
    match noted {
        Some(TxTime { clock: TxClock::Tai | TxClock::Realtime, .. }) => (skb.sender.departs, noted),
        // TCP's pacing is by CLOCK_MONOTONIC.
        _ => (Time::ZERO, noted),
    }
}

impl Etf {
    /// `is_packet_valid`: the time of a packet that is taken.
    fn time_of(&self, skb: &Skb, now: Time) -> Option<Time> {
        let (at, asked) = txtime(skb);
        if !self.skip_sock_check {
            let fits = |t: TxTime| t.asked && t.clock == TxClock::Tai && t.deadline == self.deadline_mode;
            asked.filter(|&t| fits(t))?;
        }
        // Before the machine's clock begins nothing has a time.
        (at >= now && at >= self.last && at > Time::ZERO).then_some(at)
    }
    /// `reset_watchdog`.
    fn watch(&mut self) {
        self.watchdog = self.waiting.peek().map(|first| first.at - self.delta);
    }
    /// `timesortedlist_remove`.
    fn remove(&mut self) -> Option<Packet> {
        let Waiting { at, packet, .. } = self.waiting.pop()?;
        self.stats.backlog -= packet.pkt_len;
        self.stats.bytes += u64::from(packet.pkt_len);
        self.stats.packets += packet.counts_as();
        self.last = at;
        Some(packet)
    }
    /// `timesortedlist_drop`: those whose time has come or passed. Those above are not told.
    fn drop_late(&mut self, now: Time, cx: &mut Cx<'_>) {
        while self.waiting.peek().is_some_and(|first| first.at <= now)
            && let Some(Waiting { packet, .. }) = self.waiting.pop()
        {
            self.stats.backlog -= packet.pkt_len;
            self.stats.drops = self.stats.drops.wrapping_add(1);
            self.stats.overlimits = self.stats.overlimits.wrapping_add(1);
            cx.drops.drop_untold(packet, DropReason::TxTimeMissed);
        }
    }
}

impl Qdisc for Etf {
    fn enqueue(&mut self, packet: Packet, cx: &mut Cx<'_>) -> Xmit {
        let Some(at) = self.time_of(&packet, cx.now) else {
            self.stats.drops = self.stats.drops.wrapping_add(1);
            cx.drops.drop(packet, DropReason::TxTimeInvalid);
            return Xmit::Drop;
        };
        self.stats.backlog += packet.pkt_len;
        self.sequence += 1;
        self.waiting.push(Waiting { at, sequence: self.sequence, packet });
        self.watch();
        Xmit::Success
    }
    /// `etf_dequeue_timesortedlist`.
    fn dequeue(&mut self, cx: &mut Cx<'_>) -> Option<Packet> {
        let first = self.waiting.peek()?.at;
        // Linux's interrupt comes a nanosecond behind its timer's moment at the earliest, and only behind that moment the packet may go.
        let now = if self.struck == Some(cx.now) { cx.now + Span::from_ns(1) } else { cx.now };
        let mut given = None;
        if first < now {
            self.drop_late(now, cx);
        } else if self.deadline_mode {
            given = self.remove();
            if let Some(packet) = &mut given {
                packet.sender.departs = now;
            }
        } else if now > first - self.delta {
            given = self.remove();
        }
        self.watch();
        given
    }
    /// `etf_peek_timesortedlist`: the first, whether its time has come or not.
    fn peek(&mut self, _: &mut Cx<'_>) -> Option<&Packet> {
        self.waiting.peek().map(|first| &first.packet)
    }
    fn next_wakeup(&self) -> Option<Time> {
        self.watchdog
    }
    fn drops_untold(&self) -> bool {
        true
    }
    fn timers(&self, see: &mut dyn FnMut(Time, Time)) {
        self.watchdog.iter().for_each(|&at| see(at, at));
    }
    fn expire(&mut self, due: Due) {
        if let Some(at) = self.watchdog.filter(|&at| due.has(at, at)) {
            (self.watchdog, self.struck) = (None, due.is_on_time().then_some(at));
        }
    }
    /// There is no such operation.
    fn change(&mut self, _: Option<&Options>, _: &mut Cx<'_>) -> Result<(), KernelError> {
        let sentence = "Change operation not supported by specified qdisc";
        Err(KernelError::new(KernelError::EINVAL, sentence))
    }
    fn reset(&mut self, cx: &mut Cx<'_>) {
        // In no order that means anything.
        for Waiting { packet, .. } in self.waiting.drain() {
            cx.drops.drop(packet, DropReason::Purged);
        }
        (self.watchdog, self.struck, self.last) = (None, None, Time::ZERO);
        self.stats.backlog = 0;
    }
    fn stats(&self) -> Stats {
        Stats { qlen: self.qlen(), ..self.stats }
    }
    fn qlen(&self) -> u32 {
        self.waiting.len() as u32
    }
    fn packets(&self, see: &mut dyn FnMut(&Skb)) {
        self.waiting.iter().for_each(|waiting| see(&waiting.packet));
    }
    fn dump(&self) -> Options {
        self.given.clone()
    }
    fn kind(&self) -> &'static str {
        SPEC.id
    }
}
