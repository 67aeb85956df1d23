//! What an acknowledgement takes off the queue, and the round trips it tells.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_clean_rtx_queue`, `tcp_ack_update_rtt`; v2.6.35 likewise.
//! Differs: segments that an ACK covers in part stay whole until it covers them wholly (as Linux does with segments
//! of one MSS).

use super::Recovery;
use crate::cc::AckSample;
use crate::mib::Tx;
use crate::sender::Sender;
use crate::sender::acked::{
    ACKED, CA_ALERT, DATA_ACKED, NONHEAD_RETRANS_ACKED, ORIG_SACK_ACKED, RETRANS_DATA_ACKED, SACK_RENEGING,
    SET_XMIT_TIMER, SackState,
};
use crate::sender::rtx::{EVER_RETRANS, RETRANS, SACKED, Seg};

/// How things stood before the acknowledgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prior {
    /// The highest sequence number reported by SACK.
    pub fack: u64,
    /// The first byte not acknowledged.
    pub una: u64,
    /// Segments from the front up to the highest one sacked (2.6.35).
    pub fackets: u32,
}

impl Recovery {
    /// Takes what was acknowledged off the queue; answers how many segments.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_clean_rtx_queue; v2.6.35 likewise
    pub(crate) fn clean_rtx(
        &mut self,
        tx: &mut Sender,
        prior: Prior,
        s: &mut SackState,
        flag: &mut u32,
    ) -> u32 {
        let prior_sacked = tx.q.sacked_out();
        let prior_delivered = tx.cc.delivered();
        let mut reord = None;
        let mut first_acked: Option<u64> = None;
        let mut last_acked = 0;
        let mut pkts = 0;
        let mut reord_index = None;
        while let Some(seg) = tx.q.pop_acked(tx.space.una()) {
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
            if !seg.has(SACKED) && tx.sack_ok {
                tx.cc.count_delivered(1, *flag);
                if tx.p.today && !self.spurious_retrans(tx, &seg) {
                    self.rack_advance(tx, seg.bits, seg.end, seg.sent_us);
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
        if tx.q.front().is_some_and(|f| f.has(SACKED)) {
            *flag |= SACK_RENEGING;
        }

        if tx.p.today {
            self.update_rtt(
                tx,
                first_acked,
                last_acked,
                pkts,
                prior_sacked,
                prior_delivered,
                prior.una,
                s,
                flag,
            );
        } else if pkts > 0 {
            self.update_rtt_2_6_35(tx, first_acked, last_acked, pkts, flag);
        }
        if pkts > 0 {
            if tx.p.today {
                *flag |= SET_XMIT_TIMER;
                tx.mtu_probe_acked();
                // What SACK had reported of it is in it.
                let end = tx.q.front().map_or(tx.space.una(), |f| f.seq);
                s.delivered_bytes = (end - prior.una) as u32;
            }
            if !tx.sack_ok {
                self.remove_reno_sacks(tx, pkts, *flag);
                if *flag & RETRANS_DATA_ACKED != 0 {
                    *flag &= !ORIG_SACK_ACKED;
                }
            } else if tx.p.today {
                // A hole that was not retransmitted was filled: reordering.
                if let Some(r) = reord
                    && r < prior.fack
                {
                    self.check_reordering(tx, r, prior.fack, Tx::SackReorder);
                }
            } else if let Some(i) = reord_index
                && i < prior.fackets
            {
                self.update_reordering_2_6_35(prior.fackets - i);
            }
        }
        pkts
    }

    /// Whether the peer's echo shows that the first transmission of a retransmitted segment arrived.
    fn spurious_retrans(&self, tx: &Sender, seg: &Seg) -> bool {
        seg.has(RETRANS | EVER_RETRANS) && tx.stamps.ecr_before(tx.clock.ts_of(seg.sent_us))
    }

    /// The round trip by the times of sending, else by SACK, else by timestamp; and what the controller hears.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_ack_update_rtt; RFC 6298 section 3 (Karn)
    #[allow(clippy::too_many_arguments)]
    fn update_rtt(
        &mut self,
        tx: &mut Sender,
        first_acked: Option<u64>,
        last_acked: u64,
        pkts: u32,
        prior_sacked: u32,
        prior_delivered: u64,
        prior_una: u64,
        s: &mut SackState,
        flag: &mut u32,
    ) {
        let now = tx.clock.us;
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
                && tx.space.una() - prior_una < u64::from(tx.space.mss())
                && s.prior_delivered + 1 == tx.cc.delivered()
                && prior_delivered + 1 == tx.cc.delivered()
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
            && let Some(ecr) = tx.stamps.ecr()
            && ecr != 0
        {
            let ticks = tx.clock.tsval().wrapping_sub(ecr);
            if ticks < i32::MAX as u32 / 1_000 {
                rtt = Some(ticks.max(1) * tx.clock.ts_tick_us());
                ca_rtt = rtt;
            }
        }
        let updated = rtt.is_some();
        if let Some(rtt) = rtt {
            tx.take_rtt(rtt, ca_rtt.unwrap_or(rtt), maybe_delayed);
        }
        if pkts == 0
            && updated
            && let (Some(sack), Some(front)) = (sack_rtt, tx.q.front())
            && sack > since(front.sent_us)
        {
            *flag |= SET_XMIT_TIMER;
        }
        (s.rtt_us, s.ack_delayed) = (ca_rtt, maybe_delayed);
        tx.show_window();
        let delivered = (tx.cc.delivered() - s.prior_delivered) as u32;
        let sample = AckSample {
            pkts_acked: pkts,
            rtt_us: ca_rtt,
            in_flight: tx.space.mss().wrapping_mul(delivered),
            sacked_out: tx.q.sacked_out(),
            rcv_tsval: s.tsval,
            rcv_tsecr: tx.stamps.ecr().filter(|&e| e != 0).map_or(0, |e| tx.clock.ticks_of(e)),
        };
        tx.cc.pkts_acked(&sample);
    }

    /// 2.6.35: by timestamp where there is one, else by the time of sending; in jiffies.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_ack_update_rtt
    fn update_rtt_2_6_35(
        &mut self,
        tx: &mut Sender,
        first_acked: Option<u64>,
        last_acked: u64,
        pkts: u32,
        flag: &u32,
    ) {
        let clean = *flag & RETRANS_DATA_ACKED == 0;
        let ecr = tx.stamps.ecr().filter(|&e| e != 0);
        let sample = match ecr {
            Some(ecr) => Some(tx.clock.tsval().wrapping_sub(ecr)),
            None => first_acked.filter(|_| clean).map(|t| tx.clock.jiffies_since(t)),
        };
        if let Some(jiffies) = sample
            && jiffies < 1 << 24
        {
            tx.take_rtt_2_6_35(jiffies);
        }
        tx.rearm_rto();
        let rtt_us = first_acked.filter(|_| clean).map(|_| {
            let us = (tx.clock.us - last_acked).min(u64::from(u32::MAX >> 5)) as u32;
            tx.timers.note_min_rtt(us, &tx.clock);
            tx.clock.jiffies_since(last_acked) * tx.clock.jiffy_us()
        });
        tx.show_window();
        tx.cc.pkts_acked(&AckSample {
            pkts_acked: pkts,
            rtt_us: rtt_us.filter(|&r| r > 0),
            ..AckSample::default()
        });
    }
}
