//! The sending half below loss recovery: each part has its own fields, this joins them.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c, net/ipv4/tcp_input.c; v2.6.35 likewise.
//! Differs: as its parts.

pub(crate) mod acked;
pub(crate) mod control;
pub(crate) mod host;
pub(crate) mod mtup;
pub(crate) mod rtt;
pub(crate) mod rtx;
pub(crate) mod sendq;
pub(crate) mod space;
pub(crate) mod stamps;
pub(crate) mod timers;

use crate::clock::Clock;
use crate::config::Config;
use crate::info::{CaState, Counters};
use crate::mib::{Counts, Tx};
use crate::params::Params;
use acked::SackState;
use control::Control;
use host::InHost;
use mtup::MtuSearch;
use penstock_model::Kernel;
use rtx::RtxQueue;
use sendq::SendQueue;
use space::Space;
use stamps::Stamps;
use timers::{Pending, Timers};

/// What is to be looked at when the next segment is asked for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Todo {
    /// SYN or SYN-ACK.
    pub syn: bool,
    /// The SYN or SYN-ACK is a retransmission.
    pub syn_again: bool,
    /// It is, and answers a SYN that has come again.
    pub syn_for_syn: bool,
    /// Lost segments, as the window allows.
    pub rexmit: bool,
    /// The front segment, whatever the window.
    pub rexmit_front: bool,
    /// New data, as the windows allow.
    pub push: bool,
    /// Small segments may go (the call that pushes ends the data).
    pub push_all: bool,
    /// F-RTO: new data first, then lost segments.
    pub frto_new: bool,
    /// Tail loss probe: one new segment, whatever the congestion window.
    pub probe_new: bool,
    /// Tail loss probe: the last segment again.
    pub probe_last: bool,
    /// Zero-window probe.
    pub probe0: bool,
    /// An ACK by itself, before any data: the last of the handshake.
    pub ack_first: bool,
    /// That ACK tells what a SYN or SYN-ACK has come with (RFC 9768).
    pub reflects: bool,
    /// Consider whether an ACK is due.
    pub ack_check: bool,
    /// An ACK for what came before a mark, or the end of marks (DCTCP): up to where, and what it echoes.
    pub ack_before: Option<(u64, bool)>,
    /// RST.
    pub reset: bool,
}

impl Todo {
    /// Whether there is nothing.
    #[inline]
    pub fn is_empty(&self) -> bool {
        let Todo {
            syn,
            syn_again: _,
            syn_for_syn: _,
            rexmit,
            rexmit_front,
            push,
            push_all: _,
            frto_new,
            probe_new,
            probe_last,
            probe0,
            ack_first,
            reflects: _,
            ack_check,
            ack_before,
            reset,
        } = *self;
        let any = syn
            | rexmit
            | rexmit_front
            | push
            | frto_new
            | probe_new
            | probe_last
            | probe0
            | ack_first
            | ack_check
            | reset;
        !any && ack_before.is_none()
    }
}

/// The sending half.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Sender {
    // What a receiver needs too stands first.
    /// The present.
    pub clock: Clock,
    /// The stack's constants.
    pub p: Params,
    /// What is to be sent.
    pub todo: Todo,
    /// Whether SACK was agreed on.
    pub sack_ok: bool,
    /// Timestamps.
    pub stamps: Stamps,
    /// What was counted.
    pub n: Counters,
    /// Timers and round trips.
    pub timers: Timers,
    /// Sequence numbers and the peer's window.
    pub space: Space,
    /// What was sent and is not acknowledged.
    pub q: RtxQueue,
    /// What was written and is not sent, and the send buffer.
    pub unsent: SendQueue,
    /// What the host's queues hold.
    pub host: InHost,
    /// The congestion window.
    pub cc: Control,
    /// The search for the path's MTU.
    pub mtu_search: Option<Box<MtuSearch>>,
    /// What it has counted, with recovery and the connection's states.
    pub mib: Box<Counts<{ Tx::ALL }>>,
}

impl Sender {
    pub fn new(cfg: &Config, kernel: Kernel, p: Params, clock: Clock, isn: u32) -> Sender {
        let space = Space::new(isn);
        Sender {
            mib: Box::default(),
            q: RtxQueue::new(),
            unsent: SendQueue::new(cfg.sndbuf),
            cc: Control::new(cfg, kernel, p.today, isn, space.iss(), &clock),
            timers: Timers::new(&p, &clock),
            host: InHost::new(cfg.device_accounting, p.skb_overhead, cfg.limit_output),
            stamps: Stamps::new(cfg.timestamps, p.today),
            sack_ok: cfg.sack,
            todo: Todo::default(),
            mtu_search: None,
            n: Counters::default(),
            space,
            clock,
            p,
        }
    }

    // ---- The controller ----

    /// Shows the controller where things stand.
    #[inline]
    pub fn show_window(&mut self) {
        self.cc.show(&self.space, &self.q, &self.timers, &self.clock);
    }
    /// The next state of recovery.
    //= linux v6.12 net/ipv4/tcp_cong.c tcp_set_ca_state
    pub fn set_ca(&mut self, state: CaState) {
        self.show_window();
        self.cc.set_state(state);
    }
    /// Asks the controller where the window is to fall to.
    pub fn ask_ssthresh(&mut self) -> u32 {
        self.show_window();
        self.cc.ask_ssthresh()
    }
    /// The window falls to what the controller says.
    pub fn lower_ssthresh(&mut self) {
        let ssthresh = self.ask_ssthresh();
        self.cc.set_ssthresh(ssthresh);
    }
    /// What an ACK tells of the rate of delivery; `prior`: segments it delivered, held for lost, and what was in flight before it. A controller
    /// that decides by it does.
    #[inline]
    pub fn rate_gen(&mut self, s: &SackState, prior: (u32, u64, u32), reneged: bool) {
        let of = (self.timers.min_rtt(), &self.clock);
        let rs = self.cc.rate_sample(s, prior, reneged, self.q.lost(), of);
        if self.cc.takes_over() {
            self.show_window();
            self.cc.decide(&rs);
        }
    }
    /// What Linux would pace by, from now to the next ACK.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_update_pacing_rate
    #[inline]
    pub fn update_pacing_rate(&mut self) {
        if self.p.today && !self.cc.names_rate() {
            self.set_rate();
        }
    }
    /// The rate of the window as it stands.
    #[inline]
    pub fn set_rate(&mut self) {
        self.cc.update_rate(self.space.mss(), self.q.packets_out(), &self.timers);
    }
    /// Sending starts again with nothing in flight.
    pub fn tx_start(&mut self) {
        self.show_window();
        self.cc.tx_start();
    }
    /// Whether the window is full.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.q.in_flight() >= self.cc.cwnd()
    }

    /// Notes whether the congestion window is used, and lets it decay where it is not.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_cwnd_validate; RFC 2861
    pub fn cwnd_validate(&mut self, limited: bool) {
        let (out, rto) = (self.q.packets_out(), self.timers.rto());
        if self.cc.validate(limited, out, &self.space, rto, &self.clock) {
            let may_fall = self.cc.state() == CaState::Open && !self.unsent.is_waited_for();
            self.cc.application_limited(may_fall, self.space.mss(), &self.clock);
        }
    }
    /// After idleness the window is halved for each timeout that passed, down to the initial window.
    //= linux v6.12 include/net/tcp.h tcp_slow_start_after_idle_check, tcp_cwnd_restart; RFC 5681 section 4.1
    pub fn idle_check(&mut self) {
        if self.q.packets_out() > 0 {
            return;
        }
        let rto = self.timers.rto().max(1);
        if let Some(idle) = self.cc.idle_for(rto, &self.clock) {
            self.show_window();
            self.cc.restart(idle, rto, self.space.mss(), &self.clock);
        }
    }

    // ---- Timers ----

    /// Sets the timer for sending, `jiffies` from now.
    #[inline]
    pub fn set_timer(&mut self, what: Pending, jiffies: u32) {
        self.timers.set(what, jiffies, &self.clock);
    }
    /// The retransmission timeout begins anew.
    pub fn set_rto(&mut self) {
        self.set_timer(Pending::Retrans, self.timers.rto());
    }
    /// After progress: the timeout starts anew, or ends where nothing is out.
    pub fn rearm_rto(&mut self) {
        self.timers.rearm(&self.q, &self.clock);
    }
    /// The timeout after the next is twice as far; `opening`: our SYN is out.
    //= linux v6.12 net/ipv4/tcp_timer.c tcp_retransmit_timer
    pub fn back_off(&mut self, opening: bool) {
        let linear = self.p.today && opening && self.timers.is_linear();
        self.timers.back_off(linear, &self.clock);
    }
    /// Sets the timer of the tail loss probe where one is useful; answers whether it did.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_schedule_loss_probe
    pub fn schedule_loss_probe(&mut self, advancing_rto: bool) -> bool {
        if !self.p.tlp
            || self.q.packets_out() == 0
            || !self.sack_ok
            || !matches!(self.cc.state(), CaState::Open | CaState::Cwr)
        {
            return false;
        }
        let mut timeout = self.p.rto_init;
        if self.timers.srtt8() > 0 {
            let slack = if self.q.packets_out() == 1 { 200_000 } else { 2_000 };
            timeout = self.clock.us_to_jiffies(u64::from(self.timers.srtt8() >> 2) + slack);
        }
        if advancing_rto {
            timeout = timeout.min(self.timers.rto());
        } else {
            let delta = self.timers.rto_delta_us(&self.q, &self.clock);
            if delta > 0 {
                timeout = timeout.min(self.clock.us_to_jiffies(delta as u64));
            }
        }
        self.set_timer(Pending::LossProbe, timeout);
        true
    }
    /// Data wait, nothing is out and no timer runs: the window is probed.
    //= linux v6.12 include/net/tcp.h tcp_check_probe_timer
    pub fn check_probe_timer(&mut self) {
        if self.q.packets_out() == 0 {
            self.timers.begin_probing(&self.clock);
        }
    }

    // ---- Round trips ----

    /// Takes a measured round trip, microseconds (6.12); `ca_rtt` is what the controller hears of it.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ack_update_rtt
    #[inline]
    pub fn take_rtt(&mut self, rtt: u32, ca_rtt: u32, maybe_delayed: bool) {
        if !(maybe_delayed && ca_rtt > self.timers.min_rtt()) {
            let us = if ca_rtt > 0 { ca_rtt } else { self.clock.jiffy_us() };
            self.timers.note_min_rtt(us, &self.clock);
        }
        self.timers.take_rtt(rtt, self.space.una(), self.space.nxt(), &self.clock);
    }
    /// Takes a measured round trip, jiffies (2.6.35).
    pub fn take_rtt_2_6_35(&mut self, jiffies: u32) {
        self.timers.take_rtt_2_6_35(jiffies, self.space.una(), self.space.nxt());
    }

    // ---- The send buffer ----

    /// Bytes of data and overhead charged to the send buffer.
    //= linux v6.12 include/net/sock.h sk_wmem_queued_add
    #[inline]
    pub fn wmem(&self) -> u64 {
        let bytes = self.space.unacked();
        match self.p.skb_overhead {
            0 => bytes,
            overhead if self.p.today => {
                let heads = u64::from(self.q.packets_out() - self.q.joined() - self.q.pieces())
                    + self.unsent.len() as u64;
                bytes + u64::from(overhead) * heads
            }
            overhead => bytes + u64::from(overhead) * bytes.div_ceil(u64::from(self.space.mss())),
        }
    }
    /// Whether it is full.
    pub fn wmem_full(&self) -> bool {
        self.wmem() >= u64::from(self.unsent.size())
    }
    /// Whether there is room enough to wake a writer.
    #[inline]
    pub fn write_space(&self) -> bool {
        let (wmem, size) = (self.wmem(), u64::from(self.unsent.size()));
        wmem < size && (self.p.skb_overhead == 0 || size - wmem >= wmem >> 1)
    }
    /// Lets an autotuned send buffer follow the window; `mss` is what we announce.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sndbuf_expand; v2.6.35 tcp_new_space
    pub fn sndbuf_expand(&mut self, mss: u32, reordering: u32) {
        if !self.unsent.grows() {
            return;
        }
        let mss = mss.max(self.space.mss());
        let (per_mss, segs) = if self.p.today {
            // MAX_TCP_HEADER 320, struct skb_shared_info 320, struct sk_buff 256.
            ((mss + 320 + 320).next_power_of_two() + 256, self.cc.cwnd().max(10).max(reordering + 1))
        } else {
            // MAX_TCP_HEADER 304 (128, LL_MAX_HEADER 128 with mesh networks, 48 for tunnels), 16, struct sk_buff 192 of a 32-bit kernel: as
            // Ubuntu 10.10 has it, whose iperf prints 27.0 KByte with a window of seven.
            (mss + 304 + 16 + 192, self.cc.cwnd().max(reordering + 1))
        };
        self.unsent.expand(u64::from(per_mss) * u64::from(segs) * u64::from(self.cc.sndbuf_windows()));
    }
    /// Room has come free in the send buffer.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_check_space, tcp_new_space
    #[inline]
    pub fn check_space(&mut self, mss: u32, reordering: u32) {
        if self.unsent.is_waited_for() {
            let out = if self.p.today { self.q.in_flight() } else { self.q.packets_out() };
            if out < self.cc.cwnd() && (self.unsent.grows() || !self.p.today) {
                self.sndbuf_expand(mss, reordering);
                self.cc.touch(&self.clock);
            }
            if self.write_space() {
                self.unsent.waited(false);
            }
        }
    }

    // ---- What goes next ----

    /// Length of the next new segment, and whether FIN is on it, where segments carry `mss` bytes.
    #[inline]
    pub fn next_segment(&self, mss: u32) -> (u32, bool) {
        let unsent = self.space.unsent();
        let held = match self.p.today {
            true => self.unsent.head().map_or(0, |b| b.end - self.space.nxt()),
            false => unsent,
        };
        let len = held.min(u64::from(mss)) as u32;
        (len, self.space.fin_waits() && u64::from(len) == unsent)
    }
    /// Whether a segment lies within the peer's window.
    #[inline]
    pub fn fits(&self, (len, fin): (u32, bool)) -> bool {
        self.space.nxt() + u64::from(len) + u64::from(fin) <= self.space.wnd_end()
    }
    /// Whether the next new segment does.
    pub fn next_fits(&self, mss: u32) -> bool {
        self.fits(self.next_segment(mss))
    }
    /// Whether new data could go at once (`tcp_may_send_now`).
    pub fn may_send_now(&self, mss: u32) -> bool {
        self.space.has_unsent() && !self.is_full() && self.next_fits(mss)
    }
    /// Whether both windows let all go that was written.
    pub fn all_may_go(&self) -> bool {
        let segments = u64::from(self.cc.cwnd().saturating_sub(self.q.in_flight()));
        self.space.unsent() <= segments * u64::from(self.space.mss())
            && self.space.written() <= self.space.wnd_end()
    }

    // ---- The host ----

    /// Whether the host's own queue holds as much of ours as it should before a segment with `len` bytes of data.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_small_queue_check
    pub fn small_queue_full(&mut self, len: u32, shift: u32) -> bool {
        if !self.host.is_accounted() || !self.p.today {
            return false;
        }
        let (rate, bounded) = self.cc.small_queue();
        // 7.2 keeps to tcp_limit_output_bytes whoever paces.
        let bounded = bounded || self.p.newest;
        self.host.is_full(len, rate, bounded, shift, self.q.packets_out())
    }
    /// Whether the next segment is to wait for its time; if so, the timer is set.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_pacing_check
    pub fn pacing_holds(&mut self) -> bool {
        let Some(at) = self.cc.pacing_holds(&self.clock) else { return false };
        self.timers.pace_until(at);
        true
    }
    /// Whether the segment's last transmission is still in this host's queues; then it is looked at again when that leaves.
    //= linux v6.12 net/ipv4/tcp_output.c skb_still_in_host_queue
    pub fn still_in_host_queue(&mut self, index: usize) -> bool {
        let still = self.host.is_accounted()
            && self.p.today
            && self.q.at(index).payload() > 0
            && self.q.is_in_host(index, self.host.freed());
        if still {
            self.mib.one(Tx::SpuriousRtxHostQueues);
            self.host.throttle();
        }
        still
    }
    /// What the rate of delivery is reckoned from when the segment at `index` arrives.
    #[inline]
    pub fn stamp_rate(&mut self, index: usize) {
        self.cc.stamp_rate(&mut self.q, index);
    }
    /// A segment with `len` bytes of data goes: when the next one may.
    #[inline]
    pub fn paced(&mut self, len: u32) {
        self.cc.paced(len, self.n.data_segs_out, &self.clock);
    }
    /// When a segment that is made now is to leave, microseconds.
    #[inline]
    pub fn departs_us(&self) -> u64 {
        self.cc.departs_us(&self.clock)
    }
}
