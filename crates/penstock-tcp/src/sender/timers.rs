//! The timers of the sending half, the round trips they are set by, and how often they have run out.
//!
//! Follows: linux v6.12 net/ipv4/tcp_timer.c, net/ipv4/tcp_input.c `tcp_set_rto`, `tcp_rearm_rto`, include/net/tcp.h
//! `tcp_probe0_when`; RFC 6298 section 5; RFC 9293 section 3.8.6.1 (probes).
//! Differs: none known.

use super::rtt::Rtt;
use super::rtx::RtxQueue;
use crate::clock::Clock;
use crate::minmax::WindowedMin;
use crate::params::Params;
use penstock_model::Time;

/// What the one timer for sending is set for (`icsk_pending`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pending {
    /// Retransmission timeout.
    Retrans,
    /// Tail loss probe.
    LossProbe,
    /// RACK's reordering window.
    Reorder,
    /// Zero-window probe.
    Probe0,
}

/// The timers but those of the receiving half; jiffies where not said otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timers {
    fires: Time,
    /// End of TIME-WAIT.
    wait: Time,
    /// When pacing lets the next segment go.
    pace_at: Option<Time>,
    pending: Option<Pending>,
    /// The jiffy it is set for.
    expires: u64,
    rto: u32,
    backoff: u8,
    retransmits: u32,
    total_rto: u32,
    probes_out: u32,
    /// When an acknowledgement came last.
    rcv_tstamp: u64,
    rtt: Rtt,
    min_rtt: WindowedMin,
    // Parameters
    rto_min: u32,
    rto_max: u32,
}

impl Timers {
    pub fn new(p: &Params, clock: &Clock) -> Timers {
        Timers {
            fires: Time::MAX,
            wait: Time::MAX,
            pace_at: None,
            pending: None,
            expires: 0,
            rto: p.rto_init,
            backoff: 0,
            retransmits: 0,
            total_rto: 0,
            probes_out: 0,
            rcv_tstamp: clock.jiffies,
            rtt: Rtt::new(if p.today { p.rto_min.saturating_mul(clock.jiffy_us()) } else { p.rto_min }),
            min_rtt: WindowedMin::new(),
            rto_min: p.rto_min,
            rto_max: p.rto_max,
        }
    }

    // ---- Setting them ----

    /// What the timer for sending is set for.
    #[inline]
    pub fn pending(&self) -> Option<Pending> {
        self.pending
    }
    /// The jiffy that it is set for.
    pub fn expires(&self) -> u64 {
        self.expires
    }
    /// The end of TIME-WAIT.
    pub fn wait_ends(&self) -> Time {
        self.wait
    }
    /// Sets the timer for sending, `jiffies` from now.
    #[inline]
    pub fn set(&mut self, what: Pending, jiffies: u32, clock: &Clock) {
        let expires = clock.jiffies + u64::from(jiffies.min(self.rto_max));
        if self.expires != expires || self.fires <= clock.now || self.pending.is_none() {
            self.expires = expires;
            self.fires = clock.fires(expires);
        }
        self.pending = Some(what);
    }
    /// The timer for sending goes off after so many jiffies, if not sooner.
    pub fn sooner(&mut self, jiffies: u32, clock: &Clock) {
        if let Some(what) = self.pending
            && clock.jiffies + u64::from(jiffies) < self.expires
        {
            self.set(what, jiffies, clock);
        }
    }
    /// Stops the timer for sending.
    #[inline]
    pub fn clear(&mut self) {
        self.pending = None;
        self.fires = Time::MAX;
    }
    /// Stops all.
    pub fn stop(&mut self) {
        (self.pending, self.expires, self.pace_at) = (None, 0, None);
        (self.fires, self.wait) = (Time::MAX, Time::MAX);
    }
    /// TIME-WAIT lasts until then.
    pub fn wait_until(&mut self, at: Time) {
        self.wait = at;
    }
    /// Pacing lets the next segment go then.
    pub fn pace_until(&mut self, at: Time) {
        self.pace_at = Some(at);
    }
    /// When the next of them goes off; [`Time::MAX`]: none is set.
    #[inline]
    pub fn next(&self) -> Time {
        let at = self.fires.min(self.wait);
        self.pace_at.map_or(at, |t| at.min(t))
    }

    // ---- Their ends ----

    /// Whether the timer for sending has run out.
    pub fn is_due(&self, now: Time) -> bool {
        self.fires <= now
    }
    /// Whether TIME-WAIT is over.
    pub fn wait_is_over(&self, now: Time) -> bool {
        self.wait <= now
    }
    /// Whether pacing lets the next segment go from now on; asked once.
    pub fn take_paced(&mut self, now: Time) -> bool {
        let due = self.pace_at.is_some_and(|t| t <= now);
        if due {
            self.pace_at = None;
        }
        due
    }
    /// What the timer for sending was set for, which has run out; a timeout and a window probe leave it stopped.
    pub fn take_due(&mut self) -> Option<Pending> {
        let due = self.pending;
        match due {
            None => self.fires = Time::MAX,
            Some(Pending::Retrans | Pending::Probe0) => self.clear(),
            Some(Pending::LossProbe | Pending::Reorder) => {}
        }
        due
    }

    // ---- The retransmission timeout ----

    /// The timeout in force, its doublings included.
    #[inline]
    pub fn rto(&self) -> u32 {
        self.rto
    }
    /// Its doublings.
    pub fn backoff(&self) -> u8 {
        self.backoff
    }
    /// Timeouts since progress was made last.
    #[inline]
    pub fn retransmits(&self) -> u32 {
        self.retransmits
    }
    /// Progress was made, or trouble is over.
    #[inline]
    pub fn forget_retransmits(&mut self) {
        self.retransmits = 0;
    }
    /// A timeout.
    pub fn count_timeout(&mut self) {
        self.count_retransmission();
        self.total_rto += 1;
    }
    /// A retransmission that counts as one by timeout.
    pub fn count_retransmission(&mut self) {
        self.retransmits += 1;
    }
    /// The retransmission of the last timeout was not sent after all.
    pub fn uncount_retransmission(&mut self) {
        self.retransmits = (self.retransmits - 1).max(1);
    }
    /// Whether timeouts of the SYN come at even intervals still.
    pub fn is_linear(&self) -> bool {
        self.total_rto <= 4
    }
    /// The connection is open: what its handshake has cost is forgotten.
    pub fn opened(&mut self) {
        self.clear();
        (self.retransmits, self.backoff, self.total_rto) = (0, 0, 0);
    }
    /// The timeout is at least so long, but not beyond its bound.
    pub fn raise_rto(&mut self, least: u32) {
        self.rto = self.rto.max(least).min(self.rto_max);
    }
    /// The timeout after the next is twice as far; or as far, where they come at even intervals.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_retransmit_timer
    pub fn back_off(&mut self, linear: bool, clock: &Clock) {
        if !linear {
            self.backoff = self.backoff.saturating_add(1);
            self.rto = self.rto.saturating_mul(2).min(self.rto_max);
        }
        self.set(Pending::Retrans, self.rto, clock);
    }
    /// Microseconds until the retransmission timeout of the front segment would be.
    //= linux v6.12 include/net/tcp.h tcp_rto_delta_us
    pub fn rto_delta_us(&self, q: &RtxQueue, clock: &Clock) -> i64 {
        let rto_us = i64::from(self.rto) * i64::from(clock.jiffy_us());
        q.front().map_or(rto_us, |f| f.sent_us as i64 + rto_us - clock.us as i64)
    }
    /// After progress: the timeout starts anew, or ends where nothing is out.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_rearm_rto; RFC 6298 section 5.2, 5.3
    pub fn rearm(&mut self, q: &RtxQueue, clock: &Clock) {
        if q.packets_out() == 0 {
            if self.pending != Some(Pending::Probe0) {
                self.clear();
            }
            return;
        }
        let mut rto = self.rto;
        if matches!(self.pending, Some(Pending::Reorder | Pending::LossProbe)) {
            rto = clock.us_to_jiffies(self.rto_delta_us(q, clock).max(1) as u64);
        }
        self.set(Pending::Retrans, rto, clock);
    }
    /// Whether retransmitting, begun at `since_us`, has lasted longer than `boundary` doublings of `base` jiffies would.
    //= linux v6.12 net/ipv4/tcp_timer.c retransmits_timed_out, tcp_model_timeout
    pub fn timed_out(&self, boundary: u32, base: u32, since_us: u64, clock: &Clock) -> bool {
        if self.retransmits == 0 {
            return false;
        }
        let linear = (self.rto_max / base.max(1)).max(1).ilog2();
        let timeout = if boundary <= linear {
            ((2u64 << boundary) - 1) * u64::from(base)
        } else {
            ((2u64 << linear) - 1) * u64::from(base) + u64::from(boundary - linear) * u64::from(self.rto_max)
        };
        (clock.us - since_us) >= timeout * u64::from(clock.jiffy_us())
    }

    // ---- Round trips ----

    /// The smoothed round trip times 8, in the estimator's unit; 0 before the first.
    #[inline]
    pub fn srtt8(&self) -> u32 {
        self.rtt.srtt
    }
    /// Its mean deviation, in the same unit.
    pub fn mdev(&self) -> u32 {
        self.rtt.mdev()
    }
    /// The same times 4, as it is kept for connections to come (`mdev_us`).
    pub fn mdev_kept(&self) -> u32 {
        self.rtt.mdev
    }
    /// The connection is open, and connections before it had a round trip of so many eighths of a microsecond; 0: not known. Where theirs is the longer, the first timeout
    /// follows from it, and the estimate stays. Where the handshake has measured none either, the timeout begins at three seconds.
    //= linux v6.12 net/ipv4/tcp_metrics.c tcp_init_metrics; RFC 6298 section 5.7
    pub fn init_metrics(&mut self, rtt8: u32, clock: &Clock) {
        if rtt8 > self.rtt.srtt {
            let jiffies = rtt8 / (8 * clock.jiffy_us());
            self.rto = jiffies.saturating_add((2 * jiffies).max(self.rto_min));
        } else if self.rtt.srtt == 0 {
            self.rto = 3 * clock.hz();
        }
    }
    /// The least round trip lately, microseconds; `u32::MAX` before the first.
    #[inline]
    pub fn min_rtt(&self) -> u32 {
        self.min_rtt.value()
    }
    /// A round trip of so many microseconds may be the least.
    pub fn note_min_rtt(&mut self, us: u32, clock: &Clock) {
        self.min_rtt.update(clock.jiffies, 300 * u64::from(clock.hz()), us);
    }
    /// Takes a measured round trip, microseconds (6.12). `una..nxt` is what is out.
    pub fn take_rtt(&mut self, rtt: u32, una: u64, nxt: u64, clock: &Clock) {
        self.rtt.sample(rtt, una, nxt);
        self.rto = clock.us_to_jiffies(u64::from(self.rtt.rto())).min(self.rto_max);
        self.backoff = 0;
    }
    /// Takes a measured round trip, jiffies (2.6.35).
    pub fn take_rtt_2_6_35(&mut self, jiffies: u32, una: u64, nxt: u64) {
        self.rtt.sample(jiffies.max(1), una, nxt);
        self.rto = self.rtt.rto().min(self.rto_max);
        self.backoff = 0;
    }

    // ---- Probes of a closed window ----

    /// An acknowledgement came.
    #[inline]
    pub fn heard(&mut self, clock: &Clock) {
        self.probes_out = 0;
        self.rcv_tstamp = clock.jiffies;
    }
    /// How long none has come.
    pub fn silent_for(&self, clock: &Clock) -> u64 {
        clock.jiffies - self.rcv_tstamp
    }
    /// Probes since then.
    pub fn probes_out(&self) -> u32 {
        self.probes_out
    }
    /// Nothing is to be probed.
    pub fn forget_probes(&mut self) {
        self.probes_out = 0;
    }
    /// Timeouts are as long as measured again.
    pub fn forget_backoff(&mut self) {
        self.backoff = 0;
    }
    /// A probe was sent; doublings end at `most`.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_send_probe0
    pub fn probe_sent(&mut self, most: u8, clock: &Clock) {
        self.probes_out += 1;
        if self.backoff < most {
            self.backoff += 1;
        }
        self.set_probe(clock);
    }
    /// A probe could not be sent: the next after `jiffies`; it counts as one (6.12), or as the first (2.6.35).
    pub fn probe_not_sent(&mut self, counts: bool, jiffies: u32, clock: &Clock) {
        self.probes_out = if counts { self.probes_out + 1 } else { self.probes_out.max(1) };
        self.set(Pending::Probe0, jiffies, clock);
    }
    /// Sets the timer of the next probe: the timeout, doubled for each probe so far.
    //= linux v6.12 include/net/tcp.h tcp_probe0_when
    pub fn set_probe(&mut self, clock: &Clock) {
        let backoff = u32::from(self.backoff).min((self.rto_max / self.rto_min).ilog2() + 1);
        let when = u64::from(self.rto.max(self.rto_min)) << backoff;
        self.set(Pending::Probe0, when.min(u64::from(self.rto_max)) as u32, clock);
    }
    /// Sets the timer of the first probe where none runs.
    //= linux v6.12 include/net/tcp.h tcp_check_probe_timer
    pub fn begin_probing(&mut self, clock: &Clock) {
        if self.pending.is_none() {
            self.set(Pending::Probe0, self.rto.max(self.rto_min), clock);
        }
    }
}
