//! Time always advances: what costs nothing in the model costs here what it costs on Linux, and a guard ends a run that stands still.
//!
//! A link without a rate, loopback and a program that writes without a pause take the time of the processor that does them ([`Toll`]).
//! So no loop of sending and answering can go on for ever at one instant. Should one be left, [`Guard`] counts the steps that
//! are made without time going on, as VHDL simulators do, and ends the run with the names of what was busy last.

use penstock_model::{Span, Time};
use std::collections::VecDeque;

/// Time of a frame on a link without a rate, or over `lo`: the work of both stacks. A veth pair carries 5.5 Gbit/s of 1514 bytes in one
/// stream of TCP without offloads, `lo` 12 Gbit/s in frames of 64 KiB (seen on one processor of 2023 under other load).
const FRAME: Span = Span::from_us(1);
/// And for each so many bytes of it a nanosecond.
const BYTES_PER_NS: u32 = 8;
/// Time of a system call that sends.
pub(crate) const CALL: Span = Span::from_us(1);
/// How much of such work may be done at once: short bursts take no time, as links without a rate have it elsewhere.
const AHEAD: Span = Span::from_ms(4);

/// Time of a frame with `len` bytes on a link without a rate.
#[inline]
pub(crate) fn frame(len: u32) -> Span {
    FRAME + Span::from_ns(i64::from(len / BYTES_PER_NS))
}

/// Somebody who works: a bucket of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Toll {
    /// All that was done so far is over then.
    until: Time,
}

impl Toll {
    /// Work that is begun now; answers how long it has to wait for what was done before, mostly not at all.
    #[inline]
    pub(crate) fn charge(&mut self, now: Time, work: Span) -> Span {
        self.until = self.until.max(now) + work;
        (self.until - now - AHEAD).max(Span::ZERO)
    }
}

/// Steps that are made at one instant at most, and so many more for each host, socket and program.
const MAX_STEPS: i64 = 10_000_000;
const MAX_STEPS_EACH: i64 = 1_000;
/// How many of the last steps are told.
const TOLD: i64 = 12;

/// Counts steps that are made without time going on.
#[derive(Debug)]
pub(crate) struct Guard {
    at: Time,
    /// Steps that may still be made at this instant.
    left: i64,
    most: i64,
    last: VecDeque<String>,
    stuck: Option<String>,
}

impl Guard {
    pub(crate) fn new() -> Guard {
        Guard { at: Time::ZERO, left: MAX_STEPS, most: MAX_STEPS, last: VecDeque::new(), stuck: None }
    }
    /// The network has so many hosts, sockets and programs.
    pub(crate) fn expect(&mut self, parts: usize) {
        let made = self.most - self.left;
        self.most = MAX_STEPS + MAX_STEPS_EACH * parts as i64;
        self.left = self.most - made;
    }
    /// An event happens at `now`.
    #[inline]
    pub(crate) fn event(&mut self, now: Time) {
        if now != self.at {
            (self.at, self.left) = (now, self.most);
        }
        self.left -= 1;
    }
    /// Something is done within an event.
    #[inline]
    pub(crate) fn step(&mut self) {
        self.left -= 1;
    }
    /// Whether the end is near: then the steps are told.
    #[inline]
    pub(crate) fn is_near(&self) -> bool {
        self.left < TOLD
    }
    /// Whether no more is to be done.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.left < 0
    }
    /// What is done, told where the end is near.
    #[cold]
    pub(crate) fn tell(&mut self, what: String) {
        if self.last.len() as i64 == TOLD {
            self.last.pop_front();
        }
        self.last.push_back(what);
    }
    /// The run is ended, once.
    #[cold]
    pub(crate) fn stop(&mut self) {
        let last: Vec<String> = self.last.drain(..).collect();
        self.stuck.get_or_insert_with(|| {
            format!(
                "the simulation stands still at {} s: {} steps without time going on; the last were {}",
                self.at.as_ns() as f64 / 1e9,
                self.most - self.left,
                last.join("; ")
            )
        });
    }
    /// Why the run was ended.
    pub(crate) fn stuck(&self) -> Option<&str> {
        self.stuck.as_deref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_burst_is_free_and_a_long_one_takes_its_time() {
        let mut toll = Toll::default();
        let now = Time::from_ns(1_000_000_000);
        assert!((0..4000).all(|_| toll.charge(now, FRAME) == Span::ZERO));
        assert_eq!(toll.charge(now, FRAME), FRAME);
        assert_eq!(toll.charge(now, FRAME), FRAME * 2);
        assert_eq!(
            toll.charge(now + Span::from_ms(1), FRAME),
            Span::ZERO,
            "what has been waited for is paid"
        );
        assert_eq!(frame(1514), Span::from_ns(1189));
    }
}
