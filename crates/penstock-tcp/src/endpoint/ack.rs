//! What an acknowledgement brings: progress, windows, round trips, and whom to tell.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_ack`, `tcp_clean_rtx_queue`, `tcp_ack_update_rtt`; v2.6.35 likewise.
//! Differs: segments that an ACK covers in part stay whole until it covers them wholly (as Linux does with segments
//! of one MSS).

use crate::cc::{AckSample, RateSample};
use crate::endpoint::Endpoint;
use crate::info::CaState;
use crate::recovery::Rexmit;
use crate::sender::rtx::{EVER_RETRANS, RETRANS, SACKED, Seg};
use crate::seq;
use penstock_packet::{Tcp, TcpFlags};

/// The segment carried data.
pub(crate) const DATA: u32 = 0x01;
/// It brought a new window.
pub(crate) const WIN_UPDATE: u32 = 0x02;
/// It acknowledged new data.
pub(crate) const DATA_ACKED: u32 = 0x04;
/// Among it retransmitted data.
pub(crate) const RETRANS_DATA_ACKED: u32 = 0x08;
/// It acknowledged our SYN.
pub(crate) const SYN_ACKED: u32 = 0x10;
/// It brought a new SACK.
pub(crate) const DATA_SACKED: u32 = 0x20;
/// It echoed congestion (ECE).
pub(crate) const ECE: u32 = 0x40;
/// A retransmission was found lost.
pub(crate) const LOST_RETRANS: u32 = 0x80;
/// Data never retransmitted and below `high_seq` was acknowledged.
pub(crate) const ORIG_SACK_ACKED: u32 = 0x200;
/// `snd_una` advanced.
pub(crate) const SND_UNA_ADVANCED: u32 = 0x400;
/// It reported a duplicate.
pub(crate) const DSACKING_ACK: u32 = 0x800;
/// The timer is to be set anew.
pub(crate) const SET_XMIT_TIMER: u32 = 0x1000;
/// The front segment is tagged SACKED yet not acknowledged.
pub(crate) const SACK_RENEGING: u32 = 0x2000;
/// SACK reported nothing but data sent once and before the timeout (2.6.35).
pub(crate) const ONLY_ORIG_SACKED: u32 = 0x8000;
/// Among what was acknowledged, a retransmission that was not the front segment (2.6.35).
pub(crate) const NONHEAD_RETRANS_ACKED: u32 = 0x1_0000;
/// SACK reported something sent after the trouble began (2.6.35).
pub(crate) const DATA_LOST: u32 = 0x2_0000;
/// The duplicate was our tail loss probe.
pub(crate) const DSACK_TLP: u32 = 0x4000;
/// It acknowledged anything.
pub(crate) const ACKED: u32 = DATA_ACKED | SYN_ACKED;
/// Not a duplicate ACK.
pub(crate) const NOT_DUP: u32 = DATA | WIN_UPDATE | ACKED;
/// Something is amiss.
pub(crate) const CA_ALERT: u32 = DATA_SACKED | ECE | DSACKING_ACK;
/// Something arrived.
pub(crate) const FORWARD_PROGRESS: u32 = ACKED | DATA_SACKED;

/// What SACK processing hands on (`struct tcp_sacktag_state`, `struct rate_sample`).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SackState {
    pub flag: u32,
    /// Lowest sequence number newly sacked below the highest, never retransmitted.
    pub reord: Option<u64>,
    /// When the first and the last of the never-retransmitted segments newly sacked were sent, microseconds.
    pub first_sent: Option<u64>,
    pub last_sent: u64,
    /// Segments newly known to have arrived out of order.
    pub delivered: u32,
    /// `delivered` when the segment sent last among those that arrived was sent.
    pub prior_delivered: u64,
    prior_sent: u64,
    prior_end: u64,
    /// When `delivered` had grown last by then, and the time the window took to be sent, microseconds.
    prior_stamp: u64,
    sent_over: u64,
    app_limited: bool,
    /// Segments in flight then, and held for lost by then, modulo 2^32.
    tx_in_flight: u32,
    tx_lost: u32,
    /// The round trip the controller hears of, and whether it may be a delayed ACK's.
    rtt_us: Option<u32>,
    ack_delayed: bool,
}

impl SackState {
    /// A segment arrived: notes what had been delivered when it was sent.
    //= linux v6.12 net/ipv4/tcp_rate.c tcp_rate_skb_delivered
    #[inline]
    pub fn arrived(&mut self, seg: &Seg) {
        if self.prior_delivered == 0
            || seg.sent_us > self.prior_sent
            || seg.sent_us == self.prior_sent && seg.end > self.prior_end
        {
            self.prior_delivered = seg.delivered;
            self.prior_sent = seg.sent_us;
            self.prior_end = seg.end;
            self.prior_stamp = seg.delivered_us;
            self.sent_over = seg.sent_us.saturating_sub(seg.first_tx_us);
            self.app_limited = seg.app_limited;
            (self.tx_in_flight, self.tx_lost) = (seg.in_flight, seg.lost);
        }
    }
}

impl Endpoint {
    /// Deals with the acknowledgement in `seg`, whose data is `start..end`. False when it is to be discarded.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ack
    pub(crate) fn ack(&mut self, seg: &Tcp, start: u64, end: u64) -> bool {
        let ack = seq::unwrap(seg.ack, self.snd_una);
        let prior_una = self.snd_una;
        let mut s = SackState::default();
        let mut flag = 0;
        if ack < prior_una {
            self.old_ack(seg, ack, start, prior_una);
            return prior_una - ack <= u64::from(self.max_window);
        }
        if ack > self.snd_nxt {
            return false;
        }
        if ack > prior_una {
            flag |= SND_UNA_ADVANCED;
            if self.p.today {
                self.retransmits = 0;
            }
        }
        let prior_fack = if self.sack_ok { self.q.highest_sack(prior_una) } else { prior_una };
        let prior_in_flight = self.q.in_flight();
        let prior_fackets = if self.p.today { 0 } else { self.q.fackets_out() };
        let prior_packets = self.q.packets_out();
        let prior_delivered = self.n.delivered;
        let prior_lost = self.q.lost;
        self.replace_ts_recent(seg, start);

        if end != start {
            flag |= DATA;
        }
        flag |= self.update_window(seg, ack, start);
        if seg.sack_count > 0 && self.sack_ok {
            self.sacktag(seg, ack, prior_una, &mut s);
            flag |= s.flag;
        }
        if seg.flags.has(TcpFlags::ECE) && self.ecn_ok && !seg.flags.has(TcpFlags::SYN) {
            flag |= ECE;
        }
        self.count_delivered(s.delivered, flag);
        if seg.flags.has(TcpFlags::CWR) {
            self.demand_cwr = false;
            if end != start {
                self.rx.now = true;
            }
        }
        self.probes_out = 0;
        self.rcv_tstamp = self.clock.jiffies;

        if prior_packets == 0 {
            if flag & DSACKING_ACK != 0 && self.p.today {
                self.fastretrans_alert(prior_una, false, &mut flag);
            }
            self.ack_probe();
            if self.tlp_high.is_some() {
                self.process_tlp_ack(ack, flag);
            }
            return true;
        }

        self.show_window();
        self.cc.in_ack_event(&mut self.w);
        let pkts_acked = self.clean_rtx(prior_fack, prior_una, prior_fackets, &mut s, &mut flag);
        if self.p.today {
            self.rack_update_reo_wnd(s.prior_delivered);
            if self.tlp_high.is_some() {
                self.process_tlp_ack(ack, flag);
            }
            let mut rexmit = Rexmit::None;
            if flag & NOT_DUP == 0 || flag & CA_ALERT != 0 || self.ca != CaState::Open {
                let dup = flag & (SND_UNA_ADVANCED | NOT_DUP | DSACKING_ACK) == 0;
                rexmit = self.fastretrans_alert(prior_una, dup, &mut flag);
            }
            if flag & SET_XMIT_TIMER != 0 && !self.schedule_loss_probe(true) {
                self.rearm_rto();
            }
            let delivered = (self.n.delivered - prior_delivered) as u32;
            let lost = self.q.lost - prior_lost;
            if self.cc.takes_over() {
                let rs = self.rate_sample(&s, delivered, lost, prior_in_flight);
                self.show_window();
                self.cc.cong_control(&mut self.w, &rs);
            } else {
                self.cong_control(delivered, lost, flag);
            }
            match rexmit {
                Rexmit::None => {}
                Rexmit::Lost => self.todo.rexmit = true,
                Rexmit::New => self.todo.frto_new = true,
            }
        } else {
            let frto = self.frto_counter > 0 && self.process_frto_2_6_35(flag);
            if self.frto_highmark.is_some_and(|high| high < self.snd_una) {
                self.frto_highmark = None;
            }
            let dubious = flag & NOT_DUP == 0 || flag & CA_ALERT != 0 || self.ca != CaState::Open;
            let may_raise = !dubious
                || (flag & ECE == 0 || self.w.cwnd < self.w.ssthresh)
                    && !matches!(self.ca, CaState::Recovery | CaState::Cwr);
            if flag & DATA_ACKED != 0 && may_raise && !frto {
                self.w.cwnd_limited = self.cwnd_limited_2_6_35(prior_in_flight);
                self.show_window();
                self.cc.cong_avoid(&mut self.w, 1);
                self.cwnd_stamp = self.clock.jiffies;
            }
            if dubious {
                self.fastretrans_alert_2_6_35(pkts_acked, flag);
            }
        }
        true
    }

    /// An ACK older than what was acknowledged: only its SACKs count.
    fn old_ack(&mut self, seg: &Tcp, ack: u64, start: u64, prior_una: u64) {
        self.replace_ts_recent(seg, start);
        if seg.sack_count == 0 || !self.sack_ok || prior_una - ack > u64::from(self.max_window) {
            return;
        }
        let mut s = SackState::default();
        self.sacktag(seg, ack, prior_una, &mut s);
        if self.p.today {
            let mut flag = s.flag;
            self.count_delivered(s.delivered, flag);
            if self.fastretrans_alert(prior_una, false, &mut flag) == Rexmit::Lost {
                self.todo.rexmit = true;
            }
        } else if self.ca == CaState::Open {
            self.try_keep_open();
        }
    }

    #[inline]
    pub(crate) fn count_delivered(&mut self, segments: u32, flag: u32) {
        self.n.delivered += u64::from(segments);
        if flag & ECE != 0 {
            self.n.delivered_ce += u64::from(segments);
        }
    }

    /// Whether a segment's window is newer than the one we have.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_may_update_window
    #[inline]
    pub(crate) fn may_update_window(&self, ack: u64, start: u64, window: u32) -> bool {
        ack > self.snd_una
            || start > self.snd_wl1
            || start == self.snd_wl1 && (window > self.snd_wnd || window == 0 && self.p.today)
    }

    /// The window in `seg`, if it is newer than the one we have.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ack_update_window; RFC 9293 section 3.10.7.4
    #[inline]
    fn update_window(&mut self, seg: &Tcp, ack: u64, start: u64) -> u32 {
        let shift = if seg.flags.has(TcpFlags::SYN) { 0 } else { self.snd_wscale };
        let window = u32::from(seg.window) << shift;
        let mut flag = 0;
        if self.may_update_window(ack, start, window) {
            flag |= WIN_UPDATE;
            self.snd_wl1 = start;
            if window != self.snd_wnd {
                self.snd_wnd = window;
                if self.unsent() > 0 {
                    self.idle_check();
                }
                if window > self.max_window {
                    self.max_window = window;
                    self.sync_mss();
                }
            }
        }
        self.snd_una = ack;
        flag
    }

    /// Takes what was acknowledged off the queue; answers how many segments.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_clean_rtx_queue; v2.6.35 likewise
    fn clean_rtx(
        &mut self,
        prior_fack: u64,
        prior_una: u64,
        prior_fackets: u32,
        s: &mut SackState,
        flag: &mut u32,
    ) -> u32 {
        let prior_sacked = self.q.sacked_out;
        let prior_delivered = self.n.delivered;
        let mut reord = None;
        let mut first_acked: Option<u64> = None;
        let mut last_acked = 0;
        let mut pkts = 0;
        let mut reord_index = None;
        while let Some(seg) = self.q.front().copied() {
            if seg.end > self.snd_una {
                break;
            }
            self.q.pop();
            if seg.has(RETRANS | EVER_RETRANS) {
                *flag |= RETRANS_DATA_ACKED;
                if *flag & DATA_ACKED != 0 {
                    *flag |= NONHEAD_RETRANS_ACKED;
                }
            } else if !seg.has(SACKED) {
                last_acked = seg.sent_us;
                first_acked.get_or_insert(seg.sent_us);
                reord.get_or_insert(seg.seq);
                reord_index.get_or_insert(pkts);
                if seg.end <= self.high_seq {
                    *flag |= ORIG_SACK_ACKED;
                }
            }
            if !seg.has(SACKED) && self.sack_ok {
                self.count_delivered(1, *flag);
                if self.p.today && !self.spurious_retrans(&seg) {
                    self.rack_advance(seg.bits, seg.end, seg.sent_us);
                }
            }
            // What was reported before counts no more.
            if !seg.has(SACKED) {
                s.arrived(&seg);
            }
            pkts += 1;
            *flag |= DATA_ACKED;
            self.aged_up_to = 0;
        }
        if self.q.front().is_some_and(|f| f.has(SACKED)) {
            *flag |= SACK_RENEGING;
        }

        if self.p.today {
            self.update_rtt(first_acked, last_acked, pkts, prior_sacked, prior_delivered, prior_una, s, flag);
        } else if pkts > 0 {
            self.update_rtt_2_6_35(first_acked, last_acked, pkts, flag);
        }
        if pkts > 0 {
            if self.p.today {
                *flag |= SET_XMIT_TIMER;
            }
            if !self.sack_ok {
                self.remove_reno_sacks(pkts, *flag);
                if *flag & RETRANS_DATA_ACKED != 0 {
                    *flag &= !ORIG_SACK_ACKED;
                }
            } else if self.p.today {
                // A hole that was not retransmitted was filled: reordering.
                if let Some(r) = reord
                    && r < prior_fack
                {
                    self.check_reordering(r, prior_fack);
                }
            } else if let Some(i) = reord_index
                && i < prior_fackets
            {
                self.update_reordering_2_6_35(prior_fackets - i);
            }
        }
        pkts
    }

    /// Whether the peer's echo shows that the first transmission of a retransmitted segment arrived.
    fn spurious_retrans(&self, seg: &Seg) -> bool {
        seg.has(RETRANS | EVER_RETRANS) && self.ecr_before(self.clock.ts_of(seg.sent_us))
    }
    /// Whether the timestamp echoed lies before `when`.
    pub(crate) fn ecr_before(&self, when: u32) -> bool {
        self.rcv_tsecr.is_some_and(|ecr| ecr != 0 && (ecr.wrapping_sub(when) as i32) < 0)
    }

    /// The round trip by the times of sending, else by SACK, else by timestamp; and what the controller hears.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ack_update_rtt; RFC 6298 section 3 (Karn)
    #[allow(clippy::too_many_arguments)]
    fn update_rtt(
        &mut self,
        first_acked: Option<u64>,
        last_acked: u64,
        pkts: u32,
        prior_sacked: u32,
        prior_delivered: u64,
        prior_una: u64,
        s: &mut SackState,
        flag: &mut u32,
    ) {
        let now = self.clock.us;
        let since = |t: u64| now.saturating_sub(t).min(u64::from(u32::MAX >> 5)) as u32;
        let mut seq_rtt = None;
        let mut ca_rtt = None;
        let mut maybe_delayed = false;
        if let Some(first) = first_acked
            && *flag & RETRANS_DATA_ACKED == 0
        {
            seq_rtt = Some(since(first));
            ca_rtt = Some(since(last_acked));
            maybe_delayed = pkts == 1
                && prior_sacked == 0
                && self.snd_una - prior_una < u64::from(self.mss)
                && s.prior_delivered + 1 == self.n.delivered
                && prior_delivered + 1 == self.n.delivered
                && *flag & CA_ALERT == 0;
        }
        let mut sack_rtt = None;
        if let Some(first) = s.first_sent {
            sack_rtt = Some(since(first));
            ca_rtt = Some(since(s.last_sent));
        }
        let mut rtt = seq_rtt.or(sack_rtt);
        if rtt.is_none()
            && *flag & ACKED != 0
            && let Some(ecr) = self.rcv_tsecr
            && ecr != 0
        {
            let ticks = self.clock.tsval().wrapping_sub(ecr);
            if ticks < i32::MAX as u32 / 1_000 {
                rtt = Some(ticks.max(1) * self.clock.ts_tick_us());
                ca_rtt = rtt;
            }
        }
        let updated = rtt.is_some();
        if let Some(rtt) = rtt {
            self.take_rtt(rtt, ca_rtt.unwrap_or(rtt), maybe_delayed);
        }
        if pkts == 0
            && updated
            && let (Some(sack), Some(front)) = (sack_rtt, self.q.front())
            && sack > since(front.sent_us)
        {
            *flag |= SET_XMIT_TIMER;
        }
        (s.rtt_us, s.ack_delayed) = (ca_rtt, maybe_delayed);
        self.show_window();
        self.cc.pkts_acked(&mut self.w, &AckSample { pkts_acked: pkts, rtt_us: ca_rtt });
    }

    /// What this ACK tells of the rate of delivery.
    //= linux v6.12 net/ipv4/tcp_rate.c tcp_rate_gen
    fn rate_sample(&mut self, s: &SackState, delivered: u32, lost: u64, prior_in_flight: u32) -> RateSample {
        if self.n.delivered > self.w.app_limited {
            self.w.app_limited = 0;
        }
        if delivered > 0 {
            self.w.delivered_us = self.clock.us;
        }
        let mut rs = RateSample {
            rate: None,
            prior_delivered: s.prior_delivered,
            rtt_us: s.rtt_us,
            ack_delayed: s.ack_delayed,
            losses: lost.min(u64::from(u32::MAX)) as u32,
            acked_sacked: delivered,
            prior_in_flight,
            app_limited: s.app_limited,
            tx_in_flight: s.tx_in_flight,
            lost: (self.q.lost as u32).wrapping_sub(s.tx_lost),
        };
        if s.prior_sent > 0 {
            self.w.first_tx_us = s.prior_sent;
        }
        if s.prior_stamp > 0 && !self.sack_reneg {
            // The longer of the time the segments took to be sent and to be acknowledged.
            let interval = s.sent_over.max(self.clock.us.saturating_sub(s.prior_stamp));
            if interval >= u64::from(self.min_rtt.value()) && interval > 0 {
                let (now, (segments, us)) = (self.n.delivered - s.prior_delivered, self.w.delivery_rate);
                rs.rate = Some((now, interval));
                if !rs.app_limited || now * us >= segments * interval {
                    self.w.delivery_rate = (now, interval);
                }
            }
        }
        rs
    }

    /// Takes a measured round trip, microseconds (6.12).
    pub(crate) fn take_rtt(&mut self, rtt: u32, ca_rtt: u32, maybe_delayed: bool) {
        if !(maybe_delayed && ca_rtt > self.min_rtt.value()) {
            let window = 300 * u64::from(self.clock.hz());
            let value = if ca_rtt > 0 { ca_rtt } else { self.clock.jiffy_us() };
            self.min_rtt.update(self.clock.jiffies, window, value);
        }
        self.rtt.sample(rtt, self.snd_una, self.snd_nxt);
        self.rto = self.clock.us_to_jiffies(u64::from(self.rtt.rto())).min(self.p.rto_max);
        self.backoff = 0;
    }

    /// 2.6.35: by timestamp where there is one, else by the time of sending; in jiffies.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_ack_update_rtt
    fn update_rtt_2_6_35(&mut self, first_acked: Option<u64>, last_acked: u64, pkts: u32, flag: &u32) {
        let clean = *flag & RETRANS_DATA_ACKED == 0;
        let ecr = self.rcv_tsecr.filter(|&e| e != 0);
        let sample = match ecr {
            Some(ecr) => Some(self.clock.tsval().wrapping_sub(ecr)),
            None => first_acked.filter(|_| clean).map(|t| self.clock.jiffies_since(t)),
        };
        if let Some(jiffies) = sample
            && jiffies < 1 << 24
        {
            self.take_rtt_2_6_35(jiffies);
        }
        self.rearm_rto();
        let rtt_us = first_acked.filter(|_| clean).map(|_| {
            let us = (self.clock.us - last_acked).min(u64::from(u32::MAX >> 5)) as u32;
            self.min_rtt.update(self.clock.jiffies, 300 * u64::from(self.clock.hz()), us);
            self.clock.jiffies_since(last_acked) * self.clock.jiffy_us()
        });
        self.show_window();
        self.cc.pkts_acked(&mut self.w, &AckSample { pkts_acked: pkts, rtt_us: rtt_us.filter(|&r| r > 0) });
    }

    /// Takes a measured round trip, jiffies (2.6.35).
    pub(crate) fn take_rtt_2_6_35(&mut self, jiffies: u32) {
        self.rtt.sample(jiffies.max(1), self.snd_una, self.snd_nxt);
        self.rto = self.rtt.rto().min(self.p.rto_max);
        self.backoff = 0;
    }
}
