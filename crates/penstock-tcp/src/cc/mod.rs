//! Congestion control: the contract and the registry.
//!
//! Follows: linux v6.12 `struct tcp_congestion_ops`, net/ipv4/tcp_cong.c.
//!
//! The endpoint finds losses and bounds the window during recovery (PRR and its like); a controller says how the
//! window grows and where it falls to. Windows are counted in segments, as in Linux.

pub mod bbr;
pub mod bbr3;
pub mod bic;
pub mod cdg;
pub mod cubic;
pub mod dctcp;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
pub mod illinois;
pub mod ledbat;
pub mod lp;
pub mod nv;
mod parameter;
mod path;
pub mod reno;
pub mod scalable;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod yeah;

pub use self::parameter::{Parameter, Parameters};
use crate::info::CaState;
use penstock_model::Kernel;
use penstock_model::sockets::ControlDiag;
use std::fmt;

/// The part of a connection a controller sees and changes (`snd_cwnd` and its companions in `struct tcp_sock`).
#[derive(Clone, Copy, Debug)]
pub struct Window {
    // Parameters
    /// Timer interrupts a second.
    pub hz: u32,
    /// Whether windows grow by ACKs (2.6.35 and before) instead of by acknowledged segments.
    pub per_ack: bool,
    /// The pacing rate in slow start and later, per cent of a window per round trip.
    pub pacing_ratios: (u16, u16),
    /// Segment size, bytes.
    pub mss: u32,
    /// No growth beyond this, segments.
    pub cwnd_clamp: u32,
    // Variables
    /// Congestion window, segments, at least 1.
    pub cwnd: u32,
    /// Slow-start threshold, segments.
    pub ssthresh: u32,
    /// What was acknowledged towards the next increase.
    pub cwnd_cnt: u32,
    /// Whether the window was what held sending back lately, as [`Window::is_cwnd_limited`] says when the window may grow.
    pub cwnd_limited: bool,
    /// Whether it was what held sending back in the last flight (`is_cwnd_limited`).
    pub is_cwnd_limited: bool,
    /// The controller asks for a reduction of the window as after a mark (`tcp_enter_cwr`).
    pub enters_cwr: bool,
    /// The most segments out in the last flight.
    pub max_packets_out: u32,
    /// Window at the last reduction, segments, for undo.
    pub prior_cwnd: u32,
    /// Smoothed round-trip time, microseconds times 8; 0 before the first sample.
    pub srtt_us8: u32,
    /// Least round-trip time lately, microseconds; `u32::MAX` before the first sample.
    pub min_rtt_us: u32,
    /// First byte not acknowledged, as an offset that never wraps.
    pub snd_una: u64,
    /// Next byte to send.
    pub snd_nxt: u64,
    /// Segments sent and not acknowledged.
    pub packets_out: u32,
    /// Whether no loss, mark or reordering is being dealt with (`TCP_CA_Open`).
    pub open: bool,
    /// Now, microseconds.
    pub now_us: u64,
    /// Now, in `jiffies` of the kernel's profile.
    pub jiffies: u64,
    /// When data was sent last, jiffies.
    pub lsndtime: u64,
    /// The state of loss recovery.
    pub state: CaState,
    /// Whether ECN was agreed on.
    pub ecn_ok: bool,
    /// Whether it is Accurate ECN (RFC 9768).
    pub accurate_ecn: bool,
    /// Segments reckoned to be in the network.
    pub in_flight: u32,
    /// Segments delivered in all.
    pub delivered: u64,
    /// Of these, with ECN marks.
    pub delivered_ce: u64,
    /// Segments held for lost in all.
    pub lost: u64,
    /// When `delivered` grew last, microseconds (`delivered_mstamp`).
    pub delivered_us: u64,
    /// When the latest segment that arrived was sent, microseconds (`first_tx_mstamp`).
    pub first_tx_us: u64,
    /// The value of `delivered` up to which samples are limited by the program; 0: they are not.
    pub app_limited: u64,
    /// Bytes a second that may leave, where the controller paces (`sk_pacing_rate`).
    pub pacing_rate: Option<u64>,
    /// The latest rate of delivery that says something: segments, and over how long, microseconds (`rate_delivered`,
    /// `rate_interval_us`).
    pub delivery_rate: (u64, u64),
    /// Of that sample: the program had let the connection run dry (`rate_app_limited`).
    pub rate_app_limited: bool,
    /// The earliest departure of the next segment, ns (`tcp_wstamp_ns`).
    pub wstamp_ns: i64,
    /// A queue below paces by the times that segments carry, and no timer here (`SK_PACING_FQ`).
    pub paced_below: bool,
    /// The rate of the latest ACK for controllers that name none, bytes a second (`sk_pacing_rate`); small queues go by it, and queues that pace.
    pub linux_rate: u64,
    /// The ACK at hand is not what header prediction expects (`CA_ACK_SLOWPATH`).
    pub slow_path: bool,
    /// A number of the connection's own, for dice that must fall the same each time.
    pub seed: u32,
    /// How slow start was left.
    pub hystart: Hystart,
}

/// How often slow start was left before any loss, and at windows of how many segments in all.
#[derive(Clone, Copy, Debug, Default)]
pub struct Hystart {
    train: (u32, u32),
    delay: (u32, u32),
}

impl Hystart {
    /// For a train of ACKs that is longer than half the least delay.
    pub fn by_train(&mut self, cwnd: u32) {
        self.train = (self.train.0 + 1, self.train.1.wrapping_add(cwnd));
    }
    /// For a delay that has grown.
    pub fn by_delay(&mut self, cwnd: u32) {
        self.delay = (self.delay.0 + 1, self.delay.1.wrapping_add(cwnd));
    }
    /// The counters, as `nstat` names them.
    pub fn counted(&self) -> [(&'static str, u64); 4] {
        [
            ("TcpExtTCPHystartTrainDetect", self.train.0.into()),
            ("TcpExtTCPHystartTrainCwnd", self.train.1.into()),
            ("TcpExtTCPHystartDelayDetect", self.delay.0.into()),
            ("TcpExtTCPHystartDelayCwnd", self.delay.1.into()),
        ]
    }
}

/// Slow-start threshold before any loss.
pub const INFINITE_SSTHRESH: u32 = 0x7fff_ffff;

impl Window {
    /// A window before the connection is open.
    pub fn new(hz: u32, per_ack: bool) -> Window {
        Window {
            hystart: Hystart::default(),
            hz,
            per_ack,
            pacing_ratios: (200, 120),
            mss: 536,
            cwnd_clamp: u32::MAX,
            // TCP_INIT_CWND: what a SYN that is dropped here is reduced from.
            cwnd: if per_ack { 1 } else { 10 },
            ssthresh: INFINITE_SSTHRESH,
            cwnd_cnt: 0,
            cwnd_limited: false,
            is_cwnd_limited: false,
            enters_cwr: false,
            max_packets_out: 0,
            prior_cwnd: 0,
            srtt_us8: 0,
            min_rtt_us: u32::MAX,
            snd_una: 0,
            snd_nxt: 0,
            packets_out: 0,
            open: true,
            now_us: 0,
            jiffies: 0,
            lsndtime: 0,
            state: CaState::Open,
            ecn_ok: false,
            accurate_ecn: false,
            in_flight: 0,
            delivered: 0,
            delivered_ce: 0,
            lost: 0,
            delivered_us: 0,
            first_tx_us: 0,
            app_limited: 0,
            pacing_rate: None,
            delivery_rate: (0, 0),
            rate_app_limited: true,
            wstamp_ns: 0,
            paced_below: false,
            linux_rate: u64::MAX,
            slow_path: false,
            seed: 0,
        }
    }

    /// Whether the window is what holds sending back.
    //= linux v6.12 include/net/tcp.h tcp_is_cwnd_limited
    #[inline]
    pub fn is_cwnd_limited(&self) -> bool {
        self.is_cwnd_limited || self.in_slow_start() && self.cwnd < 2 * self.max_packets_out
    }
    /// `jiffies` as the kernel counts them: 32 bits that begin five minutes before they wrap.
    //= linux v6.12 include/linux/jiffies.h INITIAL_JIFFIES
    #[inline]
    pub fn jiffies32(&self) -> u32 {
        (self.jiffies as u32).wrapping_sub(300 * self.hz)
    }
    /// Whole jiffies that cover so many microseconds.
    //= linux v6.12 kernel/time/time.c usecs_to_jiffies
    #[inline]
    pub fn us_to_jiffies(&self, us: u32) -> u32 {
        (u64::from(us) * u64::from(self.hz)).div_ceil(1_000_000) as u32
    }
    /// The threshold in force, at least three quarters of the window.
    //= linux v6.12 include/net/tcp.h tcp_current_ssthresh
    pub fn current_ssthresh(&self) -> u32 {
        if matches!(self.state, CaState::Cwr | CaState::Recovery) {
            self.ssthresh
        } else {
            self.ssthresh.max((self.cwnd >> 1) + (self.cwnd >> 2))
        }
    }

    /// Whether the window is below the threshold (2.6.35: not above it).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh || self.per_ack && self.cwnd == self.ssthresh
    }
    /// Slow start: one segment for each acknowledged; answers the acknowledged segments left over at the threshold.
    /// 2.6.35: one segment for each ACK.
    //= linux v6.12 net/ipv4/tcp_cong.c tcp_slow_start; v2.6.35 tcp_slow_start
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        if self.per_ack {
            self.cwnd = (self.cwnd + 1).min(self.cwnd_clamp);
            return 0;
        }
        let cwnd = self.cwnd.saturating_add(acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd.min(self.cwnd_clamp);
        left
    }
    /// Congestion avoidance: one segment for every `w` acknowledged. 2.6.35: for every `w` ACKs and one.
    //= linux v6.12 net/ipv4/tcp_cong.c tcp_cong_avoid_ai; v2.6.35 tcp_cong_avoid_ai
    #[inline]
    pub fn cong_avoid_ai(&mut self, w: u32, acked: u32) {
        if self.per_ack {
            if self.cwnd_cnt >= w {
                self.cwnd += 1;
                self.cwnd_cnt = 0;
            } else {
                self.cwnd_cnt += 1;
            }
        } else {
            if self.cwnd_cnt >= w {
                self.cwnd_cnt = 0;
                self.cwnd += 1;
            }
            self.cwnd_cnt += acked;
            if self.cwnd_cnt >= w {
                let delta = self.cwnd_cnt / w.max(1);
                self.cwnd_cnt -= delta * w;
                self.cwnd += delta;
            }
        }
        self.cwnd = self.cwnd.min(self.cwnd_clamp);
    }
    /// The rate that Linux keeps for pacing and for small queues, bytes per second: the controller's, or that of the latest ACK's window;
    /// `u64::MAX` before the first (`sk_pacing_rate`).
    #[inline]
    pub fn pacing_rate_bytes_s(&self) -> u64 {
        self.pacing_rate.unwrap_or(self.linux_rate)
    }
    /// The rate Linux would pace at, bytes per second: a window per round trip, times the ratio for slow start or that for later.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_update_pacing_rate
    pub fn rate_of_window(&self) -> u64 {
        let ratio = if self.cwnd < self.ssthresh / 2 { self.pacing_ratios.0 } else { self.pacing_ratios.1 };
        let rate = u64::from(self.mss)
            * (1_000_000 / 100 * 8)
            * u64::from(ratio)
            * u64::from(self.cwnd.max(self.packets_out));
        if self.srtt_us8 > 0 { rate / u64::from(self.srtt_us8) } else { rate }
    }
}

/// What one ACK brought (`struct ack_sample`).
#[derive(Clone, Copy, Debug, Default)]
pub struct AckSample {
    /// Segments newly acknowledged.
    pub pkts_acked: u32,
    /// Round-trip time measured, microseconds, where there was one.
    pub rtt_us: Option<u32>,
    /// Bytes delivered since the segment was sent that arrived last.
    pub in_flight: u32,
    /// Segments that SACK reports beyond what is acknowledged.
    pub sacked_out: u32,
    /// The timestamp of the segment at hand, and what it echoes, in milliseconds of our clock; 0 without.
    pub rcv_tsval: u32,
    /// The echo.
    pub rcv_tsecr: u32,
}

/// What an ACK tells of the rate of delivery (`struct rate_sample`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RateSample {
    /// Segments delivered over the interval, and how long it lasted, microseconds; `None`: nothing can be said.
    pub rate: Option<(u64, u64)>,
    /// `delivered` when the segment was sent that arrived last.
    pub prior_delivered: u64,
    /// The round trip, microseconds, where there was one.
    pub rtt_us: Option<u32>,
    /// It may have been a delayed ACK.
    pub ack_delayed: bool,
    /// Segments held for lost by this ACK.
    pub losses: u32,
    /// Segments it reported for the first time.
    pub acked_sacked: u32,
    /// Segments in flight before it.
    pub prior_in_flight: u32,
    /// The program had nothing to send then.
    pub app_limited: bool,
    /// Segments in flight when that segment was sent, itself included.
    pub tx_in_flight: u32,
    /// Segments held for lost since then.
    pub lost: u32,
}

/// A congestion controller.
pub trait CongestionControl: fmt::Debug + Send {
    /// Called when the connection is established.
    fn init(&mut self, _w: &mut Window) {}
    /// Where the window falls to on a loss, segments. May change the controller's own state.
    fn ssthresh(&mut self, w: &Window) -> u32;
    /// `acked` segments were acknowledged while the window may grow.
    fn cong_avoid(&mut self, w: &mut Window, acked: u32);
    /// Every ACK that acknowledged something, before `cong_avoid`.
    fn pkts_acked(&mut self, _w: &mut Window, _sample: &AckSample) {}
    /// A retransmission timeout (`set_state` to `TCP_CA_Loss`).
    fn on_rto(&mut self, _w: &Window) {}
    /// The window to return to when a reduction proves to have been wrong, segments.
    fn undo_cwnd(&mut self, w: &Window) -> u32 {
        w.cwnd.max(w.prior_cwnd)
    }
    /// The bound of the window while it falls by rate halving, segments (2.6.35, `min_cwnd`).
    fn min_cwnd(&self, w: &Window) -> u32 {
        w.ssthresh
    }
    /// The least of segments that one packet is made of, at a pacing rate of `rate` bytes a second; `None`: as `tcp_min_tso_segs` says.
    fn min_tso_segs(&self, _rate: u64) -> Option<u32> {
        None
    }
    /// Sending starts again with nothing in flight (`CA_EVENT_TX_START`).
    fn on_tx_start(&mut self, _w: &mut Window) {}
    /// The congestion window was restarted after idleness (`CA_EVENT_CWND_RESTART`).
    fn on_cwnd_restart(&mut self, _w: &mut Window) {}
    /// Whether [`in_ack_event`](CongestionControl::in_ack_event) does anything. The same all along.
    fn hears_acks(&self) -> bool {
        false
    }
    /// Every ACK, before what it acknowledges is taken off (`in_ack_event`), where [`hears_acks`](CongestionControl::hears_acks).
    fn in_ack_event(&mut self, _w: &mut Window) {}
    /// The state of recovery is about to be this one (`set_state`).
    fn on_state(&mut self, _w: &mut Window, _state: CaState) {}
    /// A timeout has begun a recovery (`CA_EVENT_LOSS`).
    fn on_loss(&mut self, _w: &mut Window) {}
    /// A reduction of the window is over (`CA_EVENT_COMPLETE_CWR`).
    fn on_complete_cwr(&mut self, _w: &mut Window) {}
    /// Whether it decides the window and the rate itself, ACK by ACK (`cong_control`). The same all along.
    fn takes_over(&self) -> bool {
        false
    }
    /// That decision.
    fn cong_control(&mut self, _w: &mut Window, _rs: &RateSample) {}
    /// Whether every segment is to be ECN-capable and marks are echoed one by one (`TCP_CONG_NEEDS_ECN`).
    fn needs_ecn(&self) -> bool {
        false
    }
    /// Windows the send buffer has room for (`sndbuf_expand`). The same all along.
    fn sndbuf_windows(&self) -> u32 {
        2
    }
    /// The controller's own variables, for display.
    fn info(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
    /// What `ss -i` is told of it.
    //= linux v6.12 include/net/tcp.h struct tcp_congestion_ops, get_info
    fn diag(&self, w: &Window) -> Option<ControlDiag> {
        let _ = w;
        None
    }
}

/// What a controller is made from.
#[derive(Debug)]
pub struct Build<'a> {
    /// The kernel's profile.
    pub kernel: Kernel,
    /// What the parameters of its module are set to.
    pub parameters: &'a Parameters,
}

/// An entry of the registry.
#[derive(Debug)]
pub struct Algorithm {
    /// Name, as `sysctl net.ipv4.tcp_congestion_control` has it.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    /// The oldest profile that it can be had in.
    pub from: Kernel,
    /// The parameters of its module that are followed, in alphabetical order.
    pub parameters: &'static [Parameter],
    /// Makes one for a connection.
    pub build: fn(&Build<'_>) -> Box<dyn CongestionControl>,
}

/// All controllers, in alphabetical order.
pub static ALGORITHMS: &[&Algorithm] = &[
    &bbr::ALGORITHM,
    &bbr3::ALGORITHM,
    &bic::ALGORITHM,
    &cdg::ALGORITHM,
    &cubic::ALGORITHM,
    &dctcp::ALGORITHM,
    &highspeed::ALGORITHM,
    &htcp::ALGORITHM,
    &hybla::ALGORITHM,
    &illinois::ALGORITHM,
    &ledbat::ALGORITHM,
    &lp::ALGORITHM,
    &nv::ALGORITHM,
    &reno::ALGORITHM,
    &scalable::ALGORITHM,
    &vegas::ALGORITHM,
    &veno::ALGORITHM,
    &westwood::ALGORITHM,
    &yeah::ALGORITHM,
];

/// Names a flow may ask for: those of [`ALGORITHMS`], and `newreno`.
pub fn names() -> Vec<&'static str> {
    // RFC 6582's NewReno is what Linux calls reno.
    let known = ALGORITHMS.iter().map(|a| a.name);
    known.chain(["newreno"]).collect()
}

/// Names that a profile has.
pub fn names_of(kernel: Kernel) -> Vec<&'static str> {
    ALGORITHMS.iter().filter(|a| a.from <= kernel).map(|a| a.name).collect()
}

/// The controller of this name.
pub fn find(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().copied().find(|a| a.name == name)
}
