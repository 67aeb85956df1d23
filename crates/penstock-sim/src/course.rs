//! Links that change in the run: rate, delay, loss, interruptions, each a function of time that is known before.
//!
//! Who sends looks up what holds when a frame leaves, so nothing happens in between, and any number of cores come to the same.
//!
//! - A rate is a step function. A frame takes as long as its bits need under it, exactly: the bits that are still to go when it
//!   changes go at the new rate.
//! - Opportunities are those of Mahimahi's `mm-link`: at each, 1500 bytes may leave, of one frame or several; what is not used is
//!   gone, and the list begins again when it is over.
//! - Delay and loss are those of the moment at which a frame's last bit leaves. A frame never overtakes another: where the delay has
//!   become less it arrives together with the one before it.
//! - A frame that is anywhere between its first bit's leaving and its last bit's arrival while the link is down is lost. Cards
//!   notice nothing, as behind a modem: they keep their carrier and go on sending.

use penstock_model::{Rate, Span, Time};

/// Bytes of an opportunity.
const OPPORTUNITY: u32 = 1500;

/// How an end's rate changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum RateCourse {
    /// It does not.
    #[default]
    Constant,
    /// From each of these times on, in their order, it is this; before the first it is the end's own. A rate of 0 is allowed but for the last.
    Steps(Vec<(Time, Rate)>),
    /// At each of these milliseconds 1500 bytes may leave. In their order; the last is above 0, and the list's length.
    Opportunities(Vec<u32>),
}

/// How what one end sends with changes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Course {
    /// The rate.
    pub rate: RateCourse,
    /// From each of these times on, in their order, the delay is this.
    pub delay: Vec<(Time, Span)>,
    /// The same of the loss, parts per 1,000,000,000.
    pub loss_ppb: Vec<(Time, u32)>,
    /// From when to when, in their order and apart, nothing gets through.
    pub down: Vec<(Time, Time)>,
}

impl Course {
    /// Refuses what cannot be.
    pub(crate) fn check(&self, end: &str, shared: bool, ring: u32, rate: Option<Rate>) -> Result<(), String> {
        let fault = |what: &str| Err(format!("{end}: {what}"));
        if shared {
            return fault(
                "a shared medium does not change in a run; give the link two ends and both directions",
            );
        }
        let rising = |times: &mut dyn Iterator<Item = Time>| {
            let times: Vec<Time> = times.collect();
            times.windows(2).all(|w| w[0] < w[1])
        };
        match &self.rate {
            RateCourse::Constant => {}
            RateCourse::Steps(_) | RateCourse::Opportunities(_) if rate.is_none() => {
                return fault("a rate that changes needs a rate to begin with");
            }
            RateCourse::Steps(steps) => {
                if !rising(&mut steps.iter().map(|s| s.0)) {
                    return fault("the rates do not stand in the order of time");
                }
                if steps.last().is_none_or(|s| s.1.bytes_per_s() == 0) {
                    return fault("the last rate is 0: nothing would ever leave again");
                }
            }
            RateCourse::Opportunities(ms) => {
                if ring > 0 {
                    return fault("a card with a ring does not follow a trace; leave the ring out");
                }
                if !ms.is_sorted() || ms.last().is_none_or(|&last| last == 0) {
                    return fault("a trace has its milliseconds in their order, the last above 0");
                }
            }
        }
        if !rising(&mut self.delay.iter().map(|s| s.0)) || !rising(&mut self.loss_ppb.iter().map(|s| s.0)) {
            return fault("the values do not stand in the order of time");
        }
        if !rising(&mut self.down.iter().flat_map(|d| [d.0, d.1])) {
            return fault("the interruptions do not stand in the order of time, or touch");
        }
        Ok(())
    }
    /// What the card knows of it.
    pub(crate) fn pace(&self) -> Option<Pace> {
        match &self.rate {
            RateCourse::Constant => None,
            RateCourse::Steps(steps) => Some(Pace::Steps { steps: steps.clone(), at: 0 }),
            RateCourse::Opportunities(ms) => {
                Some(Pace::Opportunities { ms: ms.clone(), round: 0, next: 0, left: OPPORTUNITY })
            }
        }
    }
    /// What the wire knows of it.
    pub(crate) fn way(&self, delay: Span, loss_ppb: u32) -> Way {
        Way {
            first: (delay, loss_ppb),
            delay: (self.delay.clone(), 0),
            loss_ppb: (self.loss_ppb.clone(), 0),
            down: (self.down.clone(), 0),
            arrived: Time::ZERO,
        }
    }
}

/// How a card sends whose rate changes. Times are asked for in their order.
pub(crate) enum Pace {
    Steps {
        steps: Vec<(Time, Rate)>,
        /// The step that holds.
        at: usize,
    },
    Opportunities {
        ms: Vec<u32>,
        /// The opportunity at hand: in which round of the list, which of it, and what of it is left.
        round: u64,
        next: usize,
        left: u32,
    },
}

impl Pace {
    /// How long a frame of so many bytes takes whose first bit leaves now.
    pub(crate) fn takes(&mut self, bytes: u32, now: Time) -> Span {
        match self {
            Pace::Steps { steps, at } => {
                while steps.get(*at + 1).is_some_and(|next| next.0 <= now) {
                    *at += 1;
                }
                end_of(steps, *at, bytes, now) - now
            }
            Pace::Opportunities { ms, round, next, left } => {
                let period = i64::from(ms.last().copied().unwrap_or(1).max(1)) * 1_000_000;
                let time = |round: u64, next: usize| {
                    round as i64 * period + i64::from(ms.get(next).copied().unwrap_or(0)) * 1_000_000
                };
                if time(*round, *next) < now.as_ns() {
                    // What went by unused: the first of those that are still to come.
                    *round = (now.as_ns() / period) as u64;
                    let within = now.as_ns() % period;
                    *next = ms.partition_point(|&m| i64::from(m) * 1_000_000 < within);
                    *left = OPPORTUNITY;
                }
                let mut rest = bytes;
                loop {
                    let used = rest.min(*left);
                    (rest, *left) = (rest - used, *left - used);
                    if rest == 0 {
                        return Time::from_ns(time(*round, *next).max(now.as_ns())) - now;
                    }
                    (*next, *left) = (*next + 1, OPPORTUNITY);
                    if *next == ms.len() {
                        (*next, *round) = (0, *round + 1);
                    }
                }
            }
        }
    }
}

/// When the last bit leaves of a frame whose first leaves now, in step `at`.
fn end_of(steps: &[(Time, Rate)], mut at: usize, bytes: u32, now: Time) -> Time {
    // Bytes times nanoseconds over seconds: what a rate of so many bytes a second takes off in a nanosecond is that rate.
    let mut left = u128::from(bytes) * 1_000_000_000;
    let mut from = now;
    loop {
        let rate = u128::from(steps[at].1.bytes_per_s());
        let until = steps.get(at + 1).map(|next| next.0);
        let room = until.map(|until| rate * (until - from).as_ns().max(0) as u128);
        match room {
            Some(room) if room < left => {
                left -= room;
                (from, at) = (until.unwrap_or(from), at + 1);
            }
            _ => return from + Span::from_ns(left.div_ceil(rate.max(1)) as i64),
        }
    }
}

/// How a direction of a link changes. Times are asked for in their order.
pub(crate) struct Way {
    /// What holds before the first of the others.
    first: (Span, u32),
    delay: (Vec<(Time, Span)>, usize),
    loss_ppb: (Vec<(Time, u32)>, usize),
    down: (Vec<(Time, Time)>, usize),
    /// When the latest frame so far arrives.
    arrived: Time,
}

/// What holds at a time; `at` is how many of the steps had begun when it was asked last.
fn holds<T: Copy>((steps, at): &mut (Vec<(Time, T)>, usize), now: Time) -> Option<T> {
    while steps.get(*at).is_some_and(|step| step.0 <= now) {
        *at += 1;
    }
    at.checked_sub(1).map(|at| steps[at].1)
}

impl Way {
    /// Delay and loss of a frame whose last bit leaves now.
    pub(crate) fn at(&mut self, now: Time) -> (Span, u32) {
        let delay = holds(&mut self.delay, now).unwrap_or(self.first.0);
        let loss = holds(&mut self.loss_ppb, now).unwrap_or(self.first.1);
        self.arrived = self.arrived.max(now + delay);
        (self.arrived - now, loss)
    }
    /// Whether the link is up all the time that a frame is on it.
    pub(crate) fn is_up(&mut self, begin: Time, arrival: Time) -> bool {
        let (down, at) = &mut self.down;
        while down.get(*at).is_some_and(|d| d.1 <= begin) {
            *at += 1;
        }
        down.get(*at).is_none_or(|d| d.0 >= arrival)
    }
    /// The least delay that there is at any time.
    pub(crate) fn least_delay(&self) -> Span {
        let begins = self.delay.0.first().is_none_or(|step| step.0 > Time::ZERO);
        let first = begins.then_some(self.first.0);
        self.delay.0.iter().map(|step| step.1).chain(first).min().unwrap_or(self.first.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: i64) -> Time {
        Time::from_ns(n * 1_000_000)
    }
    fn mbit(n: u64) -> Rate {
        Rate::from_bit_per_s(n * 1_000_000)
    }

    #[test]
    fn a_frame_that_meets_a_new_rate_goes_on_with_it() {
        let steps = vec![(ms(0), mbit(8)), (ms(10), Rate::from_bit_per_s(0)), (ms(20), mbit(16))];
        let mut pace = Course { rate: RateCourse::Steps(steps), ..Course::default() }.pace().unwrap();
        // 1000 bytes at 8 Mbit/s.
        assert_eq!(pace.takes(1000, ms(0)), Span::from_ms(1));
        // Half of it before the stop, half behind it at twice the rate.
        assert_eq!(pace.takes(1000, Time::from_ns(9_500_000)), Span::from_ns(500_000 + 10_000_000 + 250_000));
        assert_eq!(pace.takes(1000, ms(15)), Span::from_ns(5_500_000));
        // To the end of a step exactly.
        let steps = vec![(ms(0), mbit(8)), (ms(1), mbit(1))];
        let mut pace = Course { rate: RateCourse::Steps(steps), ..Course::default() }.pace().unwrap();
        assert_eq!(pace.takes(1000, ms(0)), Span::from_ms(1));
    }

    #[test]
    fn a_trace_gives_1500_bytes_at_each_of_its_lines_and_begins_again() {
        let pace = || {
            Course { rate: RateCourse::Opportunities(vec![1, 1, 4, 10]), ..Course::default() }.pace().unwrap()
        };
        let mut trace = pace();
        // Two opportunities in one millisecond, the rest of the second for the next frame at that very moment.
        assert_eq!(trace.takes(2000, ms(0)), Span::from_ms(1));
        assert_eq!(trace.takes(1000, ms(1)), Span::ZERO);
        assert_eq!(trace.takes(1, ms(1)), Span::from_ms(3));
        // What is not used is gone.
        assert_eq!(trace.takes(1500, ms(5)), Span::from_ms(5));
        // And again from 10 ms on: 11, 11, 14, 20; 21 …
        assert_eq!(trace.takes(1500, ms(10)), Span::from_ms(1));
        assert_eq!(trace.takes(4500, ms(11)), Span::from_ms(9));
        assert_eq!(trace.takes(100, Time::from_ns(35_000_001)), Span::from_ns(4_999_999));
        // Over any length of time as much leaves as the list has: 4 in 10 ms.
        let (mut trace, mut now, mut frames) = (pace(), ms(0), 0);
        while now < ms(10_000) {
            now = now + trace.takes(1500, now);
            frames += 1;
        }
        assert_eq!(frames, 4000);
    }

    #[test]
    fn delay_and_loss_are_those_of_the_moment_and_nothing_overtakes() {
        let course = Course {
            delay: vec![(ms(10), Span::from_ms(50)), (ms(20), Span::from_ms(5))],
            loss_ppb: vec![(ms(10), 7)],
            down: vec![(ms(100), ms(110))],
            ..Course::default()
        };
        let mut way = course.way(Span::from_ms(20), 0);
        assert_eq!(way.least_delay(), Span::from_ms(5));
        assert_eq!(way.at(ms(9)), (Span::from_ms(20), 0));
        assert_eq!(way.at(ms(19)), (Span::from_ms(50), 7));
        // The one before arrives at 69 ms.
        assert_eq!(way.at(ms(20)), (Span::from_ms(49), 7));
        assert_eq!(way.at(ms(80)), (Span::from_ms(5), 7));
        assert!(way.is_up(ms(80), ms(100)) && !way.is_up(ms(90), Time::from_ns(100_000_001)));
        assert!(!way.is_up(ms(109), ms(200)) && way.is_up(ms(110), ms(200)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        let check = |course: &Course, shared, ring| course.check("a:eth0", shared, ring, Some(mbit(1)));
        let steps = |steps: &[(i64, u64)]| Course {
            rate: RateCourse::Steps(steps.iter().map(|&(t, r)| (ms(t), mbit(r))).collect()),
            ..Course::default()
        };
        assert!(check(&steps(&[(0, 1), (5, 0), (6, 2)]), false, 0).is_ok());
        for (course, shared, ring, said) in [
            (steps(&[(0, 1)]), true, 0, "a shared medium"),
            (steps(&[(1, 1), (1, 2)]), false, 0, "order of time"),
            (steps(&[(0, 1), (1, 0)]), false, 0, "the last rate is 0"),
            (Course { rate: RateCourse::Opportunities(vec![1]), ..Course::default() }, false, 4, "ring"),
            (Course { rate: RateCourse::Opportunities(vec![2, 1]), ..Course::default() }, false, 0, "order"),
            (Course { rate: RateCourse::Opportunities(vec![0]), ..Course::default() }, false, 0, "above 0"),
            (Course { down: vec![(ms(5), ms(4))], ..Course::default() }, false, 0, "interruptions"),
        ] {
            let refused = check(&course, shared, ring).unwrap_err();
            assert!(refused.contains(said), "{refused}");
        }
        assert!(steps(&[(0, 1)]).check("a:eth0", false, 0, None).is_err());
    }
}
