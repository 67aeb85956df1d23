//! `gate`: lets packets pass at times, by a schedule that goes round.
//!
//! Follows: linux v6.12 `net/sched/act_gate.c` `tcf_gate_init`, `gate_get_start_time`, `gate_start_timer`, `gate_timer_func`, `tcf_gate_act`.
//! Differs: all clocks of a machine begin with the run, so `clockid` decides nothing; the timer is never late. What it would have done since the
//! packet before is done when the next one comes.

use super::{Act, ActSpec, Init, Offload, Ready, Run, SHOT, int};
use penstock_model::{Kernel, KernelError, Options, Time, Value};
use penstock_packet::Skb;

/// The kind.
pub static SPEC: ActSpec = ActSpec {
    id: "gate",
    about: "let packets pass by a schedule",
    kernels: &Kernel::LIVING,
    simulated: true,
    init,
};

const CLOCK_TAI: i64 = 11;
/// `CLOCK_REALTIME`, `CLOCK_MONOTONIC`, `CLOCK_BOOTTIME`, `CLOCK_TAI`.
const CLOCKS: [i64; 4] = [0, 1, 7, CLOCK_TAI];

fn init(init: &Init<'_>, options: Option<&Options>) -> Result<Ready, KernelError> {
    let options = options.ok_or_else(|| init.invalid())?;
    let index = options.u32("index").unwrap_or(0);
    let Some(place) = init.place(index)? else { return Ok(Ready::Bound(index)) };
    init.claim(place)?;
    let control = int(options, "action");
    init.control(control)?;
    let given = options.list("entries");
    if given.iter().any(|e| e.u32("interval").unwrap_or(0) == 0) {
        return Err(init.refusal(KernelError::EINVAL, "Invalid interval for schedule entry"));
    }
    let present = init.present::<Gate>(place);
    let before = present.map(|g| &g.shown);
    let entries: Vec<Options> = match (given.is_empty(), before) {
        (true, None) => return Err(init.refusal(KernelError::EINVAL, "The entry list is empty")),
        (true, Some(before)) => before.list("entries").to_vec(),
        (false, _) => (0u32..).zip(given).map(|(number, e)| e.clone().with("number", number)).collect(),
    };
    let value = |name: &'static str, otherwise: Value| {
        let kept = || before.and_then(|b| b.value(name)).cloned();
        options.value(name).cloned().or_else(kept).unwrap_or(otherwise)
    };
    let cycle_kept = before.filter(|_| given.is_empty()).and_then(|b| b.i64("cycle_time"));
    let cycle = options.i64("cycle_time").or(cycle_kept).filter(|&c| c != 0);
    let all: i64 = entries.iter().map(|e| i64::from(e.u32("interval").unwrap_or(0))).sum();
    let shown = Options::new()
        .with("priority", value("priority", Value::I64(-1)))
        .with("clockid", value("clockid", Value::I64(CLOCK_TAI)))
        .with("flags", value("flags", Value::U32(0)))
        .with("base_time", value("base_time", Value::I64(0)))
        .with("cycle_time", cycle.unwrap_or(all))
        .with("cycle_time_ext", value("cycle_time_ext", Value::I64(0)))
        .with("entries", Value::List(entries));
    if !CLOCKS.contains(&shown.i64("clockid").unwrap_or(0)) {
        return Err(init.refusal(KernelError::EINVAL, "Invalid 'clockid'"));
    }
    // The timer runs on where neither the clock nor the base time is another one.
    let same = |name| before.is_some_and(|b| b.i64(name) == shown.i64(name));
    let running = present.filter(|_| same("base_time") && same("clockid"));
    let running = running.map(|gate| gate.at(init.now).expires);
    Ok(Ready::Set { place, control, params: Box::new(Gate::new(shown, running, init.now)) })
}

/// `struct tcfg_gate_entry`; its `ipv` is for hardware.
#[derive(Clone, Copy, Debug)]
struct Entry {
    open: bool,
    interval: u32,
    /// Bytes that pass while it lasts; none where it is negative.
    max_octets: i32,
}

#[derive(Clone, Debug)]
struct Gate {
    // Parameters
    shown: Options,
    entries: Box<[Entry]>,
    /// All intervals, ns.
    round: i64,
    // Variables
    /// The entry that is current, and what it has let pass; none before the schedule begins, when all may pass.
    current: Option<(usize, i32)>,
    next: usize,
    /// `current_close_time`.
    close: i64,
    /// When the timer fires.
    expires: i64,
}

impl Gate {
    /// A schedule of which nothing has begun. `running`: when the timer of the one before it would fire, which fires then or at the beginning,
    /// whichever is earlier.
    fn new(shown: Options, running: Option<i64>, now: Time) -> Gate {
        let entry = |e: &Options| Entry {
            open: e.u32("open").unwrap_or(0) != 0,
            interval: e.u32("interval").unwrap_or(0),
            max_octets: e.i64("max_octets").unwrap_or(-1) as i32,
        };
        let entries: Box<[Entry]> = shown.list("entries").iter().map(entry).collect();
        let round = entries.iter().map(|e| i64::from(e.interval)).sum();
        let n = |name| shown.i64(name).unwrap_or(0);
        let start = start(n("base_time"), n("cycle_time"), now.as_ns());
        let expires = running.filter(|&at| at != 0).map_or(start, |at| at.min(start));
        Gate { shown, entries, round, current: None, next: 0, close: start, expires }
    }
    /// As it is at a moment.
    fn at(&self, now: Time) -> Gate {
        let mut gate = self.clone();
        gate.advance(now.as_ns());
        gate
    }
    /// Does what the timer has done until now.
    fn advance(&mut self, now: i64) {
        while self.expires <= now {
            // Whole rounds end as they begin, but for the first one, which may have begun before its time.
            if self.expires == self.close && now - self.expires >= self.round {
                let rounds = (now - self.expires) / self.round * self.round;
                self.expires += rounds;
                self.close += rounds;
            }
            self.fire();
        }
    }
    /// `gate_timer_func`.
    fn fire(&mut self) {
        self.current = Some((self.next, 0));
        self.close = self.close.wrapping_add(i64::from(self.entries[self.next].interval));
        self.expires = self.close;
        self.next = (self.next + 1) % self.entries.len();
    }
}

/// `gate_get_start_time`: the base time, or the first beginning of a cycle after now.
fn start(base: i64, cycle: i64, now: i64) -> i64 {
    if base > now {
        return base;
    }
    let n = (now.wrapping_sub(base) as u64).checked_div(cycle as u64).unwrap_or(0);
    base.wrapping_add(n.wrapping_add(1).wrapping_mul(cycle as u64) as i64)
}

impl Act for Gate {
    /// `tcf_gate_act`.
    fn act(&mut self, skb: &mut Skb, control: i32, run: &mut Run<'_>) -> i32 {
        self.advance(run.now.as_ns());
        let Some((current, octets)) = &mut self.current else { return control };
        let entry = self.entries[*current];
        if !entry.open {
            return run.dropping(SHOT);
        }
        if entry.max_octets >= 0 {
            *octets = octets.wrapping_add(skb.pkt_len as i32);
            if *octets > entry.max_octets {
                run.overlimit();
                return run.dropping(SHOT);
            }
        }
        control
    }
    fn dump(&self, _: Time) -> Options {
        self.shown.clone()
    }
    fn offload(&self, _: i32) -> Offload {
        Offload::Yes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;

    fn entry(open: u32, interval_ms: u32, max_octets: i64) -> Options {
        let o = Options::new().with("open", open).with("interval", interval_ms * MS as u32);
        o.with("max_octets", max_octets)
    }
    fn gate(base: i64, cycle: i64, entries: Vec<Options>, running: Option<i64>, now: i64) -> Gate {
        let shown = Options::new().with("base_time", base).with("cycle_time", cycle);
        Gate::new(shown.with("entries", entries), running, Time::from_ns(now))
    }
    /// Whether a packet of so many bytes passes.
    fn passes(gate: &mut Gate, at: i64, len: u32) -> (bool, u32, u32) {
        use crate::act::exec::Counts;
        let (mut rng, mut counts) = (penstock_model::Rng::named(1, "act"), Counts::default());
        let mut skb = crate::testing::packet(0, len);
        skb.pkt_len = len;
        let mut run = Run {
            now: Time::from_ns(at),
            rng: &mut rng,
            counts: &mut counts,
            hit: &mut crate::cls::Hit::default(),
            rate: None,
            ports: &crate::act::Ports::default(),
            sent: &mut Vec::new(),
            redirect: &mut None,
            index: 1,
            connections: None,
        };
        let said = gate.act(&mut skb, 0, &mut run);
        (said == 0, counts.stats.drops, counts.stats.overlimits)
    }

    #[test]
    fn entries_follow_one_another_from_the_first_cycle_on() {
        // Made at 5 ms: 10 ms open, 20 ms closed, from 30 ms on.
        let mut g = gate(0, 30 * MS, vec![entry(1, 10, -1), entry(0, 20, -1)], None, 5 * MS);
        let mut seen = |at_ms: i64| passes(&mut g, at_ms * MS, 100);
        // Before the schedule begins all pass.
        assert_eq!(seen(29), (true, 0, 0));
        assert_eq!(
            [seen(30), seen(39), seen(40), seen(59), seen(60)].map(|s| s.0),
            [true, true, false, false, true]
        );
        // Many rounds later.
        assert_eq!(seen(30 * 1_000_000 + 9), (true, 0, 0));
        assert_eq!(seen(30 * 1_000_000 + 10), (false, 1, 0));
        assert_eq!(g.expires, (30 * 1_000_000 + 30) * MS);
    }

    #[test]
    fn an_entry_lets_its_octets_pass_and_no_more() {
        let mut g = gate(MS, 10 * MS, vec![entry(1, 10, 250)], None, 0);
        let mut seen = |at_ms: i64| passes(&mut g, at_ms * MS, 100);
        assert_eq!([seen(1).0, seen(2).0], [true, true]);
        // What does not fit is counted too: a short one behind it does not pass.
        assert_eq!(seen(3), (false, 1, 1));
        assert_eq!([seen(10).0, seen(11).0], [false, true]);
        // Nothing at all, as opposed to no limit.
        let mut g = gate(MS, 10 * MS, vec![entry(1, 10, 0)], None, 0);
        assert_eq!(passes(&mut g, MS, 1), (false, 1, 1));
    }

    #[test]
    fn the_beginning_is_that_of_a_cycle() {
        assert_eq!(
            [start(50, 10, 3), start(50, 10, 50), start(50, 10, 59), start(-5, 10, 0)],
            [50, 60, 60, 5]
        );
        // A cycle that is not as long as its entries counts for the beginning alone.
        let mut g = gate(0, 7 * MS, vec![entry(1, 10, -1), entry(0, 10, -1)], None, MS);
        assert!(!passes(&mut g, 17 * MS, 1).0);
        assert!(passes(&mut g, 27 * MS, 1).0);
    }

    #[test]
    fn a_timer_that_runs_begins_the_new_schedule_before_its_time() {
        // The old one fires at 12 ms, the new one would begin at 30 ms: the first entry lasts from 12 to 40 ms.
        let mut g = gate(0, 30 * MS, vec![entry(0, 10, -1), entry(1, 20, -1)], Some(12 * MS), 5 * MS);
        let mut seen = |at_ms: i64| passes(&mut g, at_ms * MS, 100).0;
        assert_eq!(
            [seen(11), seen(12), seen(39), seen(40), seen(59), seen(60)],
            [true, false, false, true, true, false]
        );
    }
}
