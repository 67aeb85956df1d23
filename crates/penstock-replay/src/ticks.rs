//! The kernel's tick: which come on a machine that is mostly idle.
//!
//! Follows: linux v6.12 `kernel/time/tick-sched.c` `tick_nohz_handler`, `tick_nohz_next_event`, `tick_nohz_stop_tick`,
//! `tick_nohz_idle_exit`; `kernel/sched/idle.c` `do_idle`, which stops the tick only after one that came while it was idle.

/// HZ 100.
const TICK_NS: i64 = 10_000_000;
/// How far apart the kernel's own timers are, and the tick on which the probe made its network namespace.
const OWN_NS: i64 = 110_000_000;
const BORN_NS: i64 = 1_000_000_000;

/// The tick's timer. All moments are ns of the kernel's clock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ticks {
    /// When it expires next; [`i64::MAX`]: it is not set.
    pub tick: i64,
    /// Whether it is set for the next timer of the wheel instead of the next tick.
    stopped: bool,
    /// A tick that comes although nothing else asks for it.
    asked: i64,
}

impl Ticks {
    /// While a program runs.
    pub fn new(now: i64) -> Ticks {
        Ticks { tick: behind(now), stopped: false, asked: i64::MIN }
    }
    /// A timer of one jiffy is set, which goes off on the second tick from now.
    pub fn ask(&mut self, now: i64) {
        self.asked = behind(now) + TICK_NS;
    }
    /// `tick_nohz_handler`, if the timer has expired: the moment of the tick.
    pub fn expire(&mut self, now: i64) -> Option<i64> {
        if self.tick > now {
            return None;
        }
        let tick = self.tick;
        self.tick = if self.stopped { i64::MAX } else { behind(now) };
        Some(tick)
    }
    /// A task runs: `tick_nohz_idle_exit`.
    pub fn run(&mut self, now: i64) {
        if self.stopped {
            *self = Ticks { asked: self.asked, ..Ticks::new(now) };
        }
    }
    /// The end of an interrupt that found the machine idle, and `ticked` or not. `queued`: whether a timer of a queue goes off on a tick.
    pub fn idle(&mut self, now: i64, ticked: Option<i64>, queued: &dyn Fn(i64) -> bool) {
        if ticked.is_some_and(own_timer) {
            return self.run(now);
        }
        if ticked.is_none() && !self.stopped {
            return;
        }
        let last = behind(now) - TICK_NS;
        let next = (1..)
            .map(|n| last + n * TICK_NS)
            .find(|&tick| own_timer(tick) || tick == self.asked || queued(tick));
        let next = next.unwrap_or(i64::MAX);
        if self.stopped || next - last > TICK_NS {
            *self = Ticks { tick: next, stopped: true, asked: self.asked };
        }
    }
}

/// The first tick behind a moment.
fn behind(now: i64) -> i64 {
    (now.div_euclid(TICK_NS) + 1) * TICK_NS
}

/// Whether a thread of the kernel's own sleeps until this tick: the probe's network namespace has one of `pktgen`, made with it, and the first
/// namespace another. Both sleep ten ticks, and one for the timer wheel.
fn own_timer(tick: i64) -> bool {
    let (first, since) = (tick % OWN_NS, tick - BORN_NS);
    first == 0 || (since > 0 && since % OWN_NS == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    /// The ticks, in ms, of a machine that is idle from a moment on.
    fn ticks(from: i64, to: i64, queued: &dyn Fn(i64) -> bool) -> Vec<i64> {
        let (mut ticks, mut seen) = (Ticks::new(from), Vec::new());
        while ticks.tick < to {
            let now = ticks.tick + 1;
            let ticked = ticks.expire(now);
            seen.extend(ticked.map(|t| t / MS));
            ticks.idle(now, ticked, queued);
        }
        seen
    }

    #[test]
    fn an_idle_machine_has_few_ticks() {
        // After a program's run one; a thread of the kernel's on every 110 ms of the clock and one tick later another, each with
        // one behind it.
        let seen = ticks(1061 * MS, 1400 * MS, &|_| false);
        assert_eq!(seen, [1070, 1100, 1110, 1120, 1210, 1220, 1230, 1320, 1330, 1340]);
        // A queue's timer alone wakes nobody.
        assert_eq!(ticks(1061 * MS, 1100 * MS, &|t| t == 1090 * MS), [1070, 1090]);
        // Nor does one on the next tick, which is not stopped for it.
        assert_eq!(ticks(1061 * MS, 1100 * MS, &|t| t == 1080 * MS), [1070, 1080]);
    }

    #[test]
    fn a_stopped_tick_starts_with_a_task() {
        let mut ticks = Ticks::new(1061 * MS);
        let ticked = ticks.expire(1070 * MS + 1);
        ticks.idle(1070 * MS + 1, ticked, &|_| false);
        assert_eq!(ticks, Ticks { tick: 1100 * MS, stopped: true, ..ticks });
        ticks.run(1082 * MS);
        assert_eq!(ticks, Ticks { tick: 1090 * MS, stopped: false, ..ticks });
    }

    #[test]
    fn a_second_tick_comes_where_it_is_asked_for() {
        let mut ticks = Ticks::new(1131 * MS);
        ticks.ask(1131 * MS);
        let mut seen = Vec::new();
        while ticks.tick < 1210 * MS {
            let now = ticks.tick + 1;
            let ticked = ticks.expire(now);
            seen.extend(ticked.map(|t| t / MS));
            ticks.idle(now, ticked, &|_| false);
        }
        assert_eq!(seen, [1140, 1150]);
    }
}
