//! The congestion window: its controller, whether it is used, and the pace it sets.
//!
//! Follows: linux v6.12 net/ipv4/tcp_cong.c, net/ipv4/tcp_output.c `tcp_cwnd_validate`, `tcp_cwnd_restart`, `tcp_pacing_check`,
//! net/ipv4/tcp_rate.c; v2.6.35 likewise.
//! Differs: none known.

use super::acked::{ECE, SackState};
use super::rtx::RtxQueue;
use super::space::Space;
use super::timers::Timers;
use crate::cc::{AckSample, CongestionControl, RateSample, Window};
use crate::clock::Clock;
use crate::config::{Config, Stack};
use crate::info::CaState;
use penstock_model::sockets::ControlDiag;
use penstock_model::{Kernel, Time};

/// The window and what is known of its use.
#[derive(Debug)]
pub(crate) struct Control {
    w: Window,
    cc: Box<dyn CongestionControl>,
    usage_seq: u64,
    used: u32,
    /// When the window was used or changed last, jiffies.
    stamp: u64,
    // Parameters
    /// Idleness lets the window decay.
    decays: bool,
    stack: Stack,
    /// As configured; 0: the stack's own rule.
    initial_window: u32,
    // What the controller is, asked once.
    takes_over: bool,
    hears_acks: bool,
    sndbuf_windows: u32,
}

impl Control {
    pub fn new(cfg: &Config, kernel: Kernel, today: bool, isn: u32, iss: u64, clock: &Clock) -> Control {
        let mut w = Window::new(clock.hz(), !today);
        w.seed = isn.wrapping_mul(0x9e37_79b1);
        w.cwnd_clamp = cfg.cwnd_clamp.unwrap_or(u32::MAX).max(1);
        w.pacing_ratios = cfg.pacing_ratios;
        let cc = cfg.cc_parameters.build(cfg.cc, kernel);
        Control {
            w,
            usage_seq: iss,
            used: 0,
            stamp: clock.jiffies,
            // Not that of a controller which sets it by itself (BBR).
            decays: cfg.slow_start_after_idle && !cc.takes_over(),
            stack: cfg.stack,
            initial_window: cfg.initial_window,
            takes_over: cc.takes_over(),
            hears_acks: cc.hears_acks(),
            sndbuf_windows: cc.sndbuf_windows(),
            cc,
        }
    }

    // ---- The window ----

    /// The window and what goes with it, to be read.
    #[inline]
    pub fn window(&self) -> &Window {
        &self.w
    }
    /// Congestion window, segments.
    #[inline]
    pub fn cwnd(&self) -> u32 {
        self.w.cwnd
    }
    /// Sets it; the time of its last use stays.
    #[inline]
    pub fn put_cwnd(&mut self, cwnd: u32) {
        self.w.cwnd = cwnd;
    }
    /// It was used, or changed, now.
    #[inline]
    pub fn touch(&mut self, clock: &Clock) {
        self.stamp = clock.jiffies;
    }
    /// Slow-start threshold, segments.
    #[inline]
    pub fn ssthresh(&self) -> u32 {
        self.w.ssthresh
    }
    /// Sets it.
    pub fn set_ssthresh(&mut self, ssthresh: u32) {
        self.w.ssthresh = ssthresh;
    }
    /// The window grows no further than this, segments.
    pub fn clamp_cwnd(&mut self, most: u32) {
        self.w.cwnd_clamp = most;
    }
    /// The window before the reduction under way.
    pub fn prior_cwnd(&self) -> u32 {
        self.w.prior_cwnd
    }
    /// Notes a window to return to.
    pub fn set_prior_cwnd(&mut self, cwnd: u32) {
        self.w.prior_cwnd = cwnd;
    }
    /// What was acknowledged towards the next increase (2.6.35: towards the next decrease).
    pub fn count(&self) -> u32 {
        self.w.cwnd_cnt
    }
    /// Sets that.
    pub fn set_count(&mut self, count: u32) {
        self.w.cwnd_cnt = count;
    }
    /// The state of recovery.
    #[inline]
    pub fn state(&self) -> CaState {
        self.w.state
    }
    /// The next one; the controller is not told.
    pub fn put_state(&mut self, state: CaState) {
        self.w.state = state;
    }
    /// Whether the window is being reduced.
    #[inline]
    pub fn is_reducing(&self) -> bool {
        matches!(self.w.state, CaState::Cwr | CaState::Recovery)
    }
    /// The threshold in force, at least three quarters of the window.
    pub fn current_ssthresh(&self) -> u32 {
        self.w.current_ssthresh()
    }
    /// The window at the start of a connection or after idleness, segments.
    //= linux v6.12 tcp_init_cwnd; v2.6.35 tcp_init_cwnd (RFC 3390)
    pub fn init_cwnd(&self, mss: u32) -> u32 {
        let window = match (self.initial_window, self.stack) {
            (0, Stack::Linux(Kernel::V2_6_35)) => match mss {
                1461.. => 2,
                1096..=1460 => 3,
                _ => 4,
            },
            (0, Stack::Linux(_) | Stack::Ns2) => 10,
            (0, Stack::WindowsXp) => 2,
            (n, _) => n,
        };
        window.min(self.w.cwnd_clamp)
    }

    // ---- The controller ----

    /// Shows the controller where things stand.
    #[inline]
    pub fn show(&mut self, space: &Space, q: &RtxQueue, timers: &Timers, clock: &Clock) {
        let w = &mut self.w;
        w.mss = space.mss();
        w.srtt_us8 = if w.per_ack { timers.srtt8().saturating_mul(clock.jiffy_us()) } else { timers.srtt8() };
        w.min_rtt_us = timers.min_rtt();
        w.snd_una = space.una();
        w.snd_nxt = space.nxt();
        w.packets_out = q.packets_out();
        w.open = w.state == CaState::Open;
        w.now_us = clock.us;
        w.jiffies = clock.jiffies;
        w.in_flight = q.in_flight();
        w.lost = q.lost();
    }
    /// Whether ECN was agreed on.
    #[inline]
    pub fn ecn_ok(&self) -> bool {
        self.w.ecn_ok
    }
    /// Whether it is.
    pub fn set_ecn(&mut self, ok: bool) {
        self.w.ecn_ok = ok;
    }
    /// Whether ECN as of RFC 3168 was agreed on.
    #[inline]
    pub fn has_classic_ecn(&self) -> bool {
        self.w.ecn_ok && !self.w.accurate_ecn
    }
    /// Whether what was agreed on is Accurate ECN.
    pub fn set_accurate(&mut self, accurate: bool) {
        self.w.accurate_ecn = accurate;
    }
    /// Whether every segment is to be ECN-capable and marks are echoed one by one.
    #[inline]
    pub fn needs_ecn(&self) -> bool {
        self.cc.needs_ecn()
    }
    /// Whether the controller decides the window and the rate itself.
    #[inline]
    pub fn takes_over(&self) -> bool {
        self.takes_over
    }
    /// Windows the send buffer has room for.
    pub fn sndbuf_windows(&self) -> u32 {
        self.sndbuf_windows
    }
    /// The controller's own variables, for display.
    pub fn info(&self) -> Vec<(&'static str, u64)> {
        self.cc.info()
    }
    /// What `ss -i` is told of it, where segments carry `mss` bytes.
    pub fn diag(&self, mss: u32) -> Option<ControlDiag> {
        self.cc.diag(&Window { mss, ..self.w })
    }
    /// The connection is open.
    pub fn init(&mut self) {
        self.cc.init(&mut self.w);
    }
    /// Where the window is to fall to.
    pub fn ask_ssthresh(&mut self) -> u32 {
        self.cc.ssthresh(&self.w)
    }
    /// Returns to the window that a reduction which was wrong has left.
    pub fn undo(&mut self) {
        self.w.cwnd = self.cc.undo_cwnd(&self.w);
    }
    /// The bound of the window while it falls by rate halving.
    pub fn min_cwnd(&self) -> u32 {
        self.cc.min_cwnd(&self.w)
    }
    /// The state of recovery changes.
    pub fn set_state(&mut self, state: CaState) {
        self.cc.on_state(&mut self.w, state);
        self.w.state = state;
    }
    /// A timeout has begun a recovery.
    pub fn loss(&mut self) {
        self.cc.on_loss(&mut self.w);
    }
    /// A timeout.
    pub fn timeout(&mut self) {
        self.cc.on_rto(&self.w);
    }
    /// A reduction of the window is over.
    pub fn reduced(&mut self) {
        self.cc.on_complete_cwr(&mut self.w);
    }
    /// Sending starts again with nothing in flight.
    pub fn tx_start(&mut self) {
        self.cc.on_tx_start(&mut self.w);
    }
    /// Whether the controller hears of every ACK before what it acknowledges is taken off.
    #[inline]
    pub fn hears_acks(&self) -> bool {
        self.hears_acks
    }
    /// An ACK, before what it acknowledges is taken off.
    #[inline]
    pub fn in_ack_event(&mut self) {
        self.cc.in_ack_event(&mut self.w);
    }
    /// It has acknowledged something.
    #[inline]
    pub fn pkts_acked(&mut self, sample: &AckSample) {
        self.cc.pkts_acked(&mut self.w, sample);
    }
    /// The window may grow by so many segments acknowledged; `limited`: it was what held sending back.
    #[inline]
    pub fn grow(&mut self, acked: u32, limited: bool, clock: &Clock) {
        self.w.cwnd_limited = limited;
        self.cc.cong_avoid(&mut self.w, acked);
        self.stamp = clock.jiffies;
    }
    /// Whether the controller has asked for a reduction of the window; asked once.
    #[inline]
    pub fn takes_cwr(&mut self) -> bool {
        std::mem::take(&mut self.w.enters_cwr)
    }
    /// The controller's own decision.
    pub fn decide(&mut self, rs: &RateSample) {
        self.cc.cong_control(&mut self.w, rs);
    }
    /// Whether the ACK at hand is what header prediction expects.
    #[inline]
    pub fn is_foreseen(&self) -> bool {
        !self.w.slow_path && !self.w.per_ack
    }
    /// The ACK at hand is not what header prediction expects, or is.
    #[inline]
    pub fn set_slow_path(&mut self, slow: bool) {
        self.w.slow_path = slow;
    }

    // ---- Whether the window is used ----

    /// Whether it was what held sending back lately.
    #[inline]
    pub fn is_limited(&self) -> bool {
        self.w.is_cwnd_limited()
    }
    /// Notes whether it is; answers whether it has not been for as long as `rto`.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_cwnd_validate; RFC 2861
    pub fn validate(&mut self, limited: bool, out: u32, space: &Space, rto: u32, clock: &Clock) -> bool {
        let used = if self.w.per_ack {
            out >= self.w.cwnd
        } else {
            if space.una() >= self.usage_seq
                || limited
                || !self.w.is_cwnd_limited && out > self.w.max_packets_out
            {
                self.w.is_cwnd_limited = limited;
                self.w.max_packets_out = out;
                self.usage_seq = space.nxt();
            }
            self.is_limited()
        };
        if used {
            self.used = 0;
            self.stamp = clock.jiffies;
            return false;
        }
        self.used = self.used.max(out);
        self.decays && clock.jiffies - self.stamp >= u64::from(rto)
    }
    /// It was not used by so much: it falls halfway to what was, where it may.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_cwnd_application_limited
    pub fn application_limited(&mut self, may_fall: bool, mss: u32, clock: &Clock) {
        if may_fall {
            let used = self.used.max(self.init_cwnd(mss));
            if used < self.w.cwnd {
                self.w.ssthresh = self.w.current_ssthresh();
                self.w.cwnd = (self.w.cwnd + used) >> 1;
            }
            self.used = 0;
        }
        self.stamp = clock.jiffies;
    }
    /// How long nothing was sent, jiffies, where that is longer than `rto` and lets the window decay.
    #[inline]
    pub fn idle_for(&self, rto: u32, clock: &Clock) -> Option<u64> {
        if !self.decays {
            return None;
        }
        let idle = clock.jiffies - self.w.lsndtime;
        (self.w.lsndtime != 0 && idle > u64::from(rto)).then_some(idle)
    }
    /// After idleness the window is halved for each timeout that passed, down to the initial window.
    //= linux v6.12 include/net/tcp.h tcp_slow_start_after_idle_check, tcp_cwnd_restart; RFC 5681 section 4.1
    pub fn restart(&mut self, idle: u64, rto: u32, mss: u32, clock: &Clock) {
        self.cc.on_cwnd_restart(&mut self.w);
        self.w.ssthresh = self.w.current_ssthresh();
        let restart = self.init_cwnd(mss).min(self.w.cwnd);
        let (mut left, rto) = (idle, u64::from(rto));
        while left > rto && self.w.cwnd > restart {
            left -= rto;
            self.w.cwnd >>= 1;
        }
        self.w.cwnd = self.w.cwnd.max(restart);
        self.stamp = clock.jiffies;
        self.used = 0;
    }
    /// The connection is open.
    pub fn opened(&mut self, space: &Space, clock: &Clock) {
        self.usage_seq = space.una();
        self.w.lsndtime = clock.jiffies;
        self.stamp = clock.jiffies;
    }
    /// Data was sent.
    #[inline]
    pub fn data_sent(&mut self, clock: &Clock) {
        self.w.lsndtime = clock.jiffies;
    }

    // ---- What was delivered ----

    /// Segments delivered in all.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.w.delivered
    }
    /// Segments were delivered by an ACK with these flags.
    #[inline]
    pub fn count_delivered(&mut self, segments: u32, flag: u32) {
        self.w.delivered += u64::from(segments);
        if flag & ECE != 0 && !self.w.accurate_ecn {
            self.w.delivered_ce += u64::from(segments);
        }
    }
    /// Of what was delivered, segments with marks.
    #[inline]
    pub fn delivered_ce(&self) -> u64 {
        self.w.delivered_ce
    }
    /// So many marked ones more.
    pub fn count_delivered_ce(&mut self, segments: u32) {
        self.w.delivered_ce += u64::from(segments);
    }
    /// The SYN, or the SYN-ACK, is the first that was delivered.
    pub fn syn_delivered(&mut self) {
        self.w.delivered = 1;
    }
    /// The program has let the connection run dry: samples of its rate say little until what comes now is delivered.
    //= linux v6.12 net/ipv4/tcp_rate.c tcp_rate_check_app_limited
    pub fn run_dry(&mut self, in_flight: u32) {
        self.w.app_limited = (self.w.delivered + u64::from(in_flight)).max(1);
    }
    /// The first of a flight goes at `us`.
    #[inline]
    pub fn flight_begins(&mut self, us: u64) {
        (self.w.first_tx_us, self.w.delivered_us) = (us, us);
    }
    /// What the rate of delivery is reckoned from when the segment at `index` arrives.
    #[inline]
    pub fn stamp_rate(&self, q: &mut RtxQueue, index: usize) {
        q.stamp(index, self.w.first_tx_us, self.w.delivered_us, self.w.app_limited > 0);
    }
    /// What an ACK tells of the rate of delivery; `reneged`: the receiver has dropped what it had reported.
    //= linux v6.12 net/ipv4/tcp_rate.c tcp_rate_gen
    #[inline]
    pub fn rate_sample(
        &mut self,
        s: &SackState,
        (delivered, newly_lost, prior_in_flight): (u32, u64, u32),
        reneged: bool,
        lost: u64,
        (min_rtt, clock): (u32, &Clock),
    ) -> RateSample {
        if self.w.delivered > self.w.app_limited {
            self.w.app_limited = 0;
        }
        if delivered > 0 {
            self.w.delivered_us = clock.us;
        }
        let mut rs = RateSample {
            rate: None,
            prior_delivered: s.prior_delivered,
            rtt_us: s.rtt_us,
            ack_delayed: s.ack_delayed,
            losses: newly_lost.min(u64::from(u32::MAX)) as u32,
            acked_sacked: delivered,
            prior_in_flight,
            app_limited: s.app_limited,
            tx_in_flight: s.tx_in_flight,
            lost: (lost as u32).wrapping_sub(s.tx_lost),
        };
        if s.prior_sent > 0 {
            self.w.first_tx_us = s.prior_sent;
        }
        if s.prior_stamp > 0 && !reneged {
            // The longer of the time the segments took to be sent and to be acknowledged.
            let interval = s.sent_over.max(clock.us.saturating_sub(s.prior_stamp));
            if interval >= u64::from(min_rtt) && interval > 0 {
                let (now, (segments, us)) = (self.w.delivered - s.prior_delivered, self.w.delivery_rate);
                rs.rate = Some((now, interval));
                if !rs.app_limited || now * us >= segments * interval {
                    self.w.delivery_rate = (now, interval);
                    self.w.rate_app_limited = rs.app_limited;
                }
            }
        }
        rs
    }

    // ---- The pace ----

    /// The least of segments that the controller makes a packet of; `None`: it does not say.
    pub fn min_tso_segs(&self) -> Option<u32> {
        self.cc.min_tso_segs(self.w.pacing_rate_bytes_s())
    }
    /// The rate small queues go by, bytes a second, and whether their bound holds.
    #[inline]
    pub fn small_queue(&self) -> (u64, bool) {
        (self.w.pacing_rate_bytes_s(), !self.w.paced_below)
    }
    /// What Linux would pace by, from now to the next ACK, where the controller names no rate.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_update_pacing_rate
    #[inline]
    pub fn update_rate(&mut self, mss: u32, packets_out: u32, timers: &Timers) {
        // All of the window that the rate goes by. Only of stacks whose round trips count microseconds.
        (self.w.mss, self.w.packets_out, self.w.srtt_us8) = (mss, packets_out, timers.srtt8());
        self.w.linux_rate = self.w.rate_of_window();
    }
    /// Whether the controller names a rate.
    #[inline]
    pub fn names_rate(&self) -> bool {
        self.w.pacing_rate.is_some()
    }
    /// A queue below paces, or no more.
    pub fn set_paced_below(&mut self, below: bool) {
        self.w.paced_below = below;
    }
    /// Whether one does.
    #[inline]
    pub fn is_paced_below(&self) -> bool {
        self.w.paced_below
    }
    /// The time the next segment is to wait for, if it is.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_pacing_check
    #[inline]
    pub fn pacing_holds(&self, clock: &Clock) -> Option<Time> {
        let internal = self.w.pacing_rate.is_some() && !self.w.paced_below;
        (internal && self.w.wstamp_ns > clock.now.as_ns()).then(|| Time::from_ns(self.w.wstamp_ns))
    }
    /// A segment with `len` bytes of data goes, after `data_segs` before it: when the next one may.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_update_skb_after_send
    #[inline]
    pub fn paced(&mut self, len: u32, data_segs: u64, clock: &Clock) {
        let rate = match self.w.pacing_rate {
            Some(rate) => rate,
            None if self.w.paced_below => self.w.linux_rate,
            None => return,
        };
        let now = clock.now.as_ns();
        let prior = self.w.wstamp_ns;
        self.w.wstamp_ns = prior.max(now);
        // The first ten segments go as they can.
        if data_segs >= 10 && rate != u64::MAX {
            let mut wait = (u64::from(len) * 1_000_000_000 / rate.max(1)) as i64;
            let credit = self.w.wstamp_ns - prior;
            wait -= (wait / 2).min(credit);
            self.w.wstamp_ns += wait;
        }
    }
    /// When the last paced segment lets the next one go (`tcp_wstamp_ns`).
    pub fn wstamp(&self) -> Time {
        Time::from_ns(self.w.wstamp_ns)
    }
    /// What is due bears this time at least.
    pub fn due_now(&mut self, clock: &Clock) {
        self.w.wstamp_ns = self.w.wstamp_ns.max(clock.now.as_ns());
    }
    /// When a segment that is made now is to leave: later than now where a queue below paces.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_transmit_skb
    #[inline]
    pub fn departs(&self, clock: &Clock) -> Time {
        if self.w.paced_below { clock.now.max(Time::from_ns(self.w.wstamp_ns)) } else { clock.now }
    }
    /// The same, microseconds: a round trip is counted from then.
    #[inline]
    pub fn departs_us(&self, clock: &Clock) -> u64 {
        if self.w.paced_below { self.departs(clock).as_ns() as u64 / 1_000 } else { clock.us }
    }
}
