//! A host's processor: one server for the frames that come in.

use penstock_model::{Rng, Span, Time};
use penstock_packet::Packet;
use std::collections::VecDeque;

/// A host's processor: one server for the frames that come in.
#[repr(C)]
pub(crate) struct Cpu {
    // With each packet, in this order: what lies together comes into the cache together.
    /// Whether frames take no time, and whether what they ask for beside their own time costs any: told by `cost`, and asked
    /// with each frame.
    free: bool,
    counts_work: bool,
    /// Frames waiting with the interface they came in by; the first is being served.
    pub(crate) backlog: VecDeque<(u32, Packet)>,
    // The others.
    pub(crate) cost: crate::spec::Cost,
    pub(crate) rng: Rng,
    /// Time spent on frames so far.
    pub(crate) busy: Span,
    /// Timer interrupts per second.
    pub(crate) hz: u32,
    /// The calls of programs that were begun or wait for their turn are over then.
    pub(crate) calls_until: Time,
    /// What packets that have passed still cost is over then.
    pub(crate) works_until: Time,
    /// How many of the cost's pauses are over.
    paused: usize,
}

/// How often a frame's time is looked at anew for the interrupts that come while others are served.
const INTERRUPTED_MOST: u32 = 1000;

impl Cpu {
    /// A processor with nothing to do. `hz`: its timer interrupts per second.
    pub(crate) fn new(cost: crate::spec::Cost, rng: Rng, hz: u32) -> Cpu {
        let mut cpu = Cpu {
            cost: crate::spec::Cost::ZERO,
            free: true,
            counts_work: false,
            rng,
            backlog: VecDeque::new(),
            busy: Span::ZERO,
            hz,
            calls_until: Time::ZERO,
            works_until: Time::ZERO,
            paused: 0,
        };
        cpu.set_cost(cost);
        cpu
    }
    /// What it spends from now on.
    pub(crate) fn set_cost(&mut self, cost: crate::spec::Cost) {
        self.counts_work = cost.classify > Span::ZERO || cost.clock > Span::ZERO;
        let each = cost.byte_ps > 0 || !cost.packet.is_zero() || cost.qdisc > Span::ZERO;
        self.free = !each && !self.counts_work && cost.pauses.is_empty();
        self.paused = 0;
        self.cost = cost;
    }
    /// Time for this frame, from `now`, with the timer interrupts that come meanwhile. `shaped`: qdiscs were set up on the host.
    pub(crate) fn service(&mut self, len: u32, shaped: bool, now: Time) -> Span {
        let bytes = (u64::from(len) * self.cost.byte_ps / 1000) as i64;
        let qdisc = if shaped { self.cost.qdisc } else { Span::ZERO };
        let own = self.cost.packet.draw(&mut self.rng) + Span::from_ns(bytes) + qdisc;
        self.busy += own;
        let work = own + (self.works_until - now).max(Span::ZERO);
        let work = if self.cost.pauses.is_empty() { work } else { self.with_pauses(work, now) };
        if self.cost.tick == Span::ZERO {
            return work;
        }
        let (before, mut whole) = (self.interrupts(now), work);
        for _ in 0..INTERRUPTED_MOST {
            let longer = work + self.cost.tick * (self.interrupts(now + whole) - before);
            if longer == whole {
                break;
            }
            whole = longer;
        }
        whole
    }
    /// How long work lasts from `now` with the pauses that fall into it: another task is not interrupted by a frame.
    fn with_pauses(&mut self, work: Span, now: Time) -> Span {
        let pauses = &self.cost.pauses;
        while pauses.get(self.paused).is_some_and(|&(at, length)| at + length <= now) {
            self.paused += 1;
        }
        let mut end = now + work;
        for &(at, length) in &pauses[self.paused..] {
            if at > end {
                break;
            }
            end += if at < now { at + length - now } else { length };
        }
        end - now
    }
    /// Whether what packets ask for beside their own time costs any.
    #[inline]
    pub(crate) fn counts_work(&self) -> bool {
        self.counts_work
    }
    /// Work that was done at `now`: frames to come wait for its end.
    pub(crate) fn works(&mut self, work: penstock_sched::Work, now: Time) {
        let times = |cost: Span, n: u64| cost * i64::try_from(n).unwrap_or(i64::MAX);
        let takes = times(self.cost.classify, work.steps) + times(self.cost.clock, work.clock_reads);
        self.works_until = self.works_until.max(now) + takes;
        self.busy += takes;
    }
    /// How long a thread that was woken waits for the processor.
    pub(crate) fn thread(&mut self) -> Span {
        self.cost.thread.draw(&mut self.rng)
    }
    /// A program's call that sends: when it is over. Calls are served in the order in which they are made.
    pub(crate) fn call(&mut self, now: Time) -> Time {
        self.calls_until = self.calls_until.max(now) + self.cost.send;
        self.busy += self.cost.send;
        self.calls_until
    }
    /// Timer interrupts until `now`.
    fn interrupts(&self, now: Time) -> i64 {
        let (ns, hz, second) = (now.as_ns(), i64::from(self.hz), 1_000_000_000);
        ns / second * hz + ns % second * hz / second
    }
    /// Time spent on frames and timer interrupts until `now`.
    pub(crate) fn spent(&self, now: Time) -> Span {
        self.busy + self.cost.tick * self.interrupts(now)
    }
    /// Whether frames take no time.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(packet_us: i64, hz: u32) -> Cpu {
        let packet = penstock_model::traffic::Dist::Constant(Span::from_us(packet_us));
        // 11.9 us an interrupt: a Pentium III of 550 MHz, by the study of 2001.
        let cost = crate::spec::Cost { packet, tick: Span::from_ns(11_900), ..crate::spec::Cost::ZERO };
        Cpu::new(cost, Rng::named(1, "cpu"), hz)
    }

    #[test]
    fn frames_wait_for_timer_interrupts() {
        // 10000 a second take 11.9 %: a millisecond of work lasts 1/(1 - 0.119) ms.
        let service = cpu(1000, 10_000).service(100, false, Time::ZERO);
        assert_eq!(service, Span::from_ns(1_000_000 + 11 * 11_900));
        assert_eq!(cpu(1000, 100).service(100, false, Time::ZERO), Span::from_ms(1));
    }

    #[test]
    fn what_was_set_up_costs_each_frame() {
        let cost = crate::spec::Cost { qdisc: Span::from_us(30), ..crate::spec::Cost::ZERO };
        let mut cpu = Cpu::new(cost, Rng::named(1, "cpu"), 100);
        assert!(!cpu.is_free());
        assert_eq!(cpu.service(100, true, Time::ZERO), Span::from_us(30));
        assert_eq!(cpu.service(100, false, Time::ZERO), Span::ZERO);
    }

    #[test]
    fn frames_wait_while_another_task_has_the_processor() {
        let (ms, at) = (Span::from_ms, |t: i64| Time::ZERO + Span::from_ms(t));
        let packet = penstock_model::traffic::Dist::Constant(ms(2));
        let pauses = vec![(at(10), ms(5)), (at(15), ms(1)), (at(30), ms(4))];
        let cost = crate::spec::Cost { packet, pauses, ..crate::spec::Cost::ZERO };
        let mut cpu = Cpu::new(cost, Rng::named(1, "cpu"), 100);
        let mut lasts = |t: i64| cpu.service(100, false, at(t));
        assert_eq!(lasts(1), ms(2));
        // It begins before the first pause and ends after the second, which follows it at once.
        assert_eq!(lasts(9), ms(2 + 5 + 1));
        assert_eq!(lasts(12), ms(3 + 1 + 2));
        assert_eq!(lasts(16), ms(2));
        assert_eq!(lasts(33), ms(1 + 2));
        assert_eq!(lasts(40), ms(2));
        // Without a cost of its own a frame waits all the same.
        let cost = crate::spec::Cost { pauses: vec![(at(1), ms(3))], ..crate::spec::Cost::ZERO };
        let mut free = Cpu::new(cost, Rng::named(1, "cpu"), 100);
        assert!(!free.is_free());
        assert_eq!((free.service(100, false, at(2)), free.service(100, false, at(5))), (ms(2), Span::ZERO));
    }

    /// Table 2 and figure 19 of Magaña, Izkue and Villadangos 2001, in percent of the processor over rest at 100 Hz: 0.9 at 1024 Hz
    /// (1.2 with jiffies), 11.8 at 10000 Hz; scheduling adds 6 at 100 Hz and 7 at 10000, together 19.7.
    #[test]
    fn the_clock_studys_processor() {
        let second = Time::from_ns(1_000_000_000);
        let share = |cpu: &Cpu| cpu.spent(second).as_secs_f64() * 100.0;
        let rest = |hz| share(&cpu(19, hz));
        let near = |got: f64, want: f64, within: f64| assert!((got - want).abs() < within, "{got} {want}");
        near(rest(1024) - rest(100), 0.9, 0.3);
        near(rest(10_000) - rest(100), 11.8, 0.1);
        // Some 7.5 Mbit/s of 1400 bytes and 2 Mbit/s of 100: 3170 packets a second of 19 us.
        let loaded = |hz| {
            let mut cpu = cpu(19, hz);
            for _ in 0..3170 {
                cpu.service(100, false, Time::ZERO);
            }
            share(&cpu)
        };
        near(loaded(100) - rest(100), 6.0, 0.1);
        near(loaded(10_000) - rest(100), 19.7, 2.0);
    }
}
