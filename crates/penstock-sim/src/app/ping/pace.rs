//! When the next request goes where it is not one a second or so: `-f`, `-A`, `-l` and intervals below 10 ms.
//!
//! Follows: iputils 20221126 `ping_common.c` `pinger`, `main_loop`, `schedule_exit`, `update_interval`, `ping.h` `in_flight`, `acknowledge`;
//! s20100418 is the same there.
//! Differs: a device that has no room for a request refuses nothing, so that `-A` is not slowed down by it; a turn of the program takes no
//! time, but for a microsecond where it has sent at this moment already.

use super::Ping;
use crate::app::Cx;
use penstock_model::{Span, Time};

/// `MININTERVAL`, ms.
const MIN_INTERVAL: i64 = 10;
/// How late a process is woken that waits in `poll` for so many milliseconds where nothing else happens: a thousandth of that, at least
/// `timer_slack_ns`.
//= linux v6.12 fs/select.c select_estimate_accuracy, __estimate_accuracy
fn slack(ms: i64) -> Span {
    Span::from_us(ms.clamp(50, 100_000))
}
const SECOND: i64 = 1_000_000_000;

/// What the loop remembers.
#[derive(Debug)]
pub(super) struct Pace {
    // Parameters
    pub flood: bool,
    pub adaptive: bool,
    /// How many requests may be under way unanswered.
    pub preload: i64,
    // Variables
    /// Since when tokens are counted, and how many there were, in milliseconds.
    last: Option<Time>,
    tokens: i64,
    /// The latest request that has been answered.
    acked: u16,
    /// Eight times the smoothed round trip, us.
    rtt: i64,
    /// The wait for the last answers has begun.
    lingers: bool,
}

impl Pace {
    pub(super) fn new() -> Pace {
        Pace {
            flood: false,
            adaptive: false,
            preload: 1,
            last: None,
            tokens: 0,
            acked: 0,
            rtt: 0,
            lingers: false,
        }
    }
    /// `update_interval`: the next interval in ms after an answer `us` late.
    pub(super) fn answered(&mut self, us: i64, interval: i64) -> i64 {
        self.rtt = if self.rtt == 0 { us * 8 } else { self.rtt + us - self.rtt / 8 };
        if !self.adaptive {
            return interval;
        }
        let estimate = if self.rtt == 0 { interval * 1000 } else { self.rtt / 8 };
        (estimate + 500) / 1000
    }
    /// `acknowledge`, of `sent` requests.
    pub(super) fn acknowledge(&mut self, seq: u16, sent: u16) {
        let newer = seq.wrapping_sub(self.acked) as i16 > 0;
        if newer || sent.wrapping_sub(self.acked) > 0x7fff {
            self.acked = seq;
        }
    }
    /// When the last request went that was within the rate.
    pub(super) fn last(&self) -> Option<Time> {
        self.last
    }
    /// `ipg/ewma` of the last line: the mean gap between requests and the smoothed round trip, ms.
    pub(super) fn summary(&self, since: Span, sent: i64) -> String {
        let (gap, rtt) = (since.as_ns() / 1000 / (sent - 1), self.rtt / 8);
        format!("ipg/ewma {}.{:03}/{}.{:03} ms", gap / 1000, gap % 1000, rtt / 1000, rtt % 1000)
    }
}

/// Milliseconds from one moment to another as ping counts them: of seconds and of the rest apart, the rest cut towards zero.
fn elapsed(from: Time, to: Time) -> i64 {
    let (from, to) = (from.as_ns(), to.as_ns());
    (to / SECOND - from / SECOND) * 1000 + (to % SECOND - from % SECOND) / 1_000_000
}

/// The first moment at which [`elapsed`] says `ms`.
fn reached(from: Time, ms: i64) -> Time {
    let whole = from + Span::from_ms(ms);
    let early = whole - Span::from_ms(1) + Span::from_ns(1);
    // In a later second, and not behind its own fraction yet, it is up to a millisecond early.
    let second = Time::from_ns(whole.as_ns() / SECOND * SECOND);
    let at = early.max(second);
    if second > from && at < whole && elapsed(from, at) >= ms { at } else { whole }
}

impl Ping {
    /// Whether the loop below has the say.
    pub(super) fn is_quick(&self) -> bool {
        self.pace.flood || self.pace.adaptive || self.pace.preload > 1 || self.ms() < MIN_INTERVAL
    }
    fn ms(&self) -> i64 {
        self.interval.as_ns() / 1_000_000
    }
    /// `in_flight`.
    fn in_flight(&self) -> i64 {
        let ahead = (self.sent.len() as u16).wrapping_sub(self.pace.acked);
        if ahead <= 0x7fff {
            return ahead.into();
        }
        self.sent.len() as i64 - self.received as i64 - self.errors as i64
    }
    fn has_sent_all(&self) -> bool {
        self.count > 0 && self.sent.len() as u64 >= self.count && self.deadline.is_none()
    }
    /// `pinger`: sends a request if one may go. In how many milliseconds it wants to be asked again.
    fn try_to_send(&mut self, cx: &mut Cx<'_>) -> i64 {
        if self.has_sent_all() {
            return 1000;
        }
        let (now, interval) = (cx.now(), self.ms());
        match self.pace.last {
            None => self.pace.tokens = interval * (self.pace.preload - 1),
            Some(last) => {
                let ms = elapsed(last, now);
                if interval == 0 && ms < MIN_INTERVAL && self.in_flight() >= self.pace.preload {
                    return MIN_INTERVAL - ms;
                }
                let tokens = (ms + self.pace.tokens).min(interval * self.pace.preload);
                if tokens < interval {
                    return interval - tokens;
                }
                self.pace.tokens = tokens - interval;
            }
        }
        self.pace.last = Some(now);
        let errors = self.errors;
        let went = self.request(cx);
        if !went || self.errors > errors {
            self.pace.tokens = 0;
            return interval.max(MIN_INTERVAL);
        }
        if self.pace.flood && !self.quiet {
            cx.print(".");
        }
        interval - self.pace.tokens
    }
    /// `schedule_exit`.
    fn linger(&mut self, next: i64, cx: &mut Cx<'_>) -> i64 {
        if self.pace.lingers || !self.has_sent_all() {
            return next;
        }
        let wait = self.wait_for_the_last();
        // A timer of nothing is none, and is asked for again (`setitimer`).
        if wait > Span::ZERO {
            self.pace.lingers = true;
            cx.net.set_timer(self.exit, cx.now() + wait);
        }
        next.max(wait.as_ns() / 1_000_000)
    }
    /// `main_loop`, until it waits.
    pub(super) fn turn(&mut self, cx: &mut Cx<'_>) {
        let next = loop {
            if self.enough() {
                return self.finish(cx);
            }
            let next = self.try_to_send(cx);
            let next = self.linger(next, cx);
            if next > 0 {
                break next;
            }
        };
        let (now, interval) = (cx.now(), self.ms());
        let most = interval.max(MIN_INTERVAL);
        let polls = self.pace.adaptive || next < most;
        let at = if !polls || interval == 0 && !self.pace.adaptive && self.in_flight() > 0 {
            // SO_RCVTIMEO.
            let hz = i64::from(self.kernel.hz());
            let (jiffy, jiffies) = (SECOND / hz, (most * hz + 999) / 1000);
            Time::from_ns((now.as_ns() / jiffy + jiffies) * jiffy)
        } else if next > MIN_INTERVAL {
            now + Span::from_ms(next) + slack(next)
        } else if self.in_flight() > 0 {
            now + Span::from_ms(MIN_INTERVAL) + slack(MIN_INTERVAL)
        } else {
            // It asks for the time again and again.
            self.pace.last.map_or(now, |last| reached(last, interval - self.pace.tokens))
        };
        cx.net.set_timer(self.timer, at.max(now + Span::from_us(1)));
    }
    /// An answer has come: the loop goes on.
    pub(super) fn go_on(&mut self, cx: &mut Cx<'_>) {
        if self.enough() {
            return self.finish(cx);
        }
        if self.pace.last == Some(cx.now()) {
            cx.net.set_timer(self.timer, cx.now() + Span::from_us(1));
            return;
        }
        self.turn(cx);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_counted_by_seconds_and_the_rest() {
        let at = |ns| Time::from_ns(ns);
        assert_eq!(elapsed(at(999_500_000), at(1_000_000_000)), 1, "half of one");
        assert_eq!(elapsed(at(100), at(1_000_099)), 0);
        assert_eq!(elapsed(at(100), at(1_000_100)), 1);
        for from in [0, 1, 999_999_999, 998_000_001, 123_456_789] {
            for ms in [1, 2, 7, 10, 999, 1000, 1001, 2500] {
                let t = reached(at(from), ms);
                assert!(elapsed(at(from), t) >= ms, "{from} {ms}");
                assert!(elapsed(at(from), at(t.as_ns() - 1)) < ms, "{from} {ms}: earlier than {t:?}");
            }
        }
    }
}
