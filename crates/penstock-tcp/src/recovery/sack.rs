//! SACK blocks from the peer: tagging the queue, duplicates, reordering.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_sacktag_write_queue`, `tcp_sacktag_one`, `tcp_check_dsack`,
//! `tcp_check_sack_reordering`; v2.6.35 `tcp_update_reordering`; RFC 2018, RFC 2883.
//! Differs: none known.

use super::Recovery;
use crate::info::CaState;
use crate::mib::Tx;
use crate::sender::Sender;
use crate::sender::acked::{
    DATA_LOST, DATA_SACKED, DSACK_TLP, DSACKING_ACK, ECE, ONLY_ORIG_SACKED, ORIG_SACK_ACKED, SackState,
};
use crate::sender::rtx::{EVER_RETRANS, LOST, RETRANS, SACKED, Seg};
use crate::seq;
use penstock_packet::Tcp;

/// Most reordering that is believed, segments (`tcp_max_reordering`; 127 in 2.6.35).
const MAX_REORDERING: u32 = 300;
const MAX_REORDERING_2_6_35: u32 = 127;

/// The blocks of the last ACK that had any, in order.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SackCache {
    blocks: [(u64, u64); 4],
    len: usize,
}

impl SackCache {
    fn push(&mut self, block: (u64, u64)) {
        self.blocks[self.len] = block;
        self.len += 1;
    }
}

impl Recovery {
    /// Tags what the blocks of `seg` report.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sacktag_write_queue
    pub(crate) fn sacktag(
        &mut self,
        tx: &mut Sender,
        seg: &Tcp,
        ack: u64,
        prior_una: u64,
        s: &mut SackState,
    ) {
        let mut blocks = [(0u64, 0u64); 4];
        let n = seg.sack_blocks().len();
        for (b, &(l, r)) in blocks.iter_mut().zip(seg.sack_blocks()) {
            let left = seq::unwrap(l, tx.space.una());
            *b = (left, left.wrapping_add(u64::from(r.wrapping_sub(l))));
        }
        let dup = self.check_dsack(tx, &blocks[..n], ack, prior_una, s);
        if tx.q.packets_out() == 0 {
            return;
        }
        let mut highest = 0;
        let mut used = SackCache::default();
        let mut numbered = [0, 1, 2, 3];
        if tx.p.today {
            // In order: what RACK takes for the round trip is that of the segment looked at last.
            numbered[..n].sort_by_key(|&i| blocks[i].0);
        }
        for &i in &numbered[..n] {
            let (start, end) = blocks[i];
            let is_dup = dup && i == 0;
            let valid = self.block_valid(tx, is_dup, start, end);
            if !valid || end <= prior_una {
                if !valid {
                    self.count_invalid(tx, is_dup, ack, end);
                }
                continue;
            }
            if is_dup {
                self.tag_duplicate(tx, start, end, s);
            }
            // What this very ACK acknowledges is tagged no more, reported or not: it is about to leave the queue.
            if end > tx.space.una() {
                self.tag_block(tx, start, end, s);
                if is_dup {
                    self.clear_duplicate(tx, start, end);
                }
            }
            if tx.p.today {
                self.join_forgotten(tx, start, end);
                used.push((start, end));
            }
            if end > self.high_seq {
                s.flag |= DATA_LOST;
            }
            highest = highest.max(end);
        }
        self.sack_cache = used;
        if self.frto_highmark.is_none_or(|high| highest > high) {
            s.flag &= !ONLY_ORIG_SACKED;
        }
        if tx.p.today {
            if let Some(low) = s.reord
                && (tx.cc.state() != CaState::Loss || self.undo_marker.is_some())
            {
                let fack = tx.q.highest_sack(tx.space.una());
                self.check_reordering(tx, low, fack, Tx::SackReorder);
            }
        } else {
            self.mark_lost_retrans(tx);
            if let Some(low) = s.reord
                && (tx.cc.state() != CaState::Loss || self.undo_marker.is_some())
                && self.frto_highmark.is_none_or(|high| tx.space.una() > high)
            {
                let fackets = tx.q.fackets_out();
                let index = tx.q.lower(low) as u32;
                if index < fackets {
                    self.update_reordering_2_6_35(fackets - index);
                }
            }
        }
    }

    /// What a block reports that the ACK before did not is gone through again, and what is known there is joined.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sacktag_write_queue (recv_sack_cache)
    fn join_forgotten(&self, tx: &mut Sender, start: u64, end: u64) {
        let mut at = start;
        for n in 0..self.sack_cache.len {
            let (from, to) = self.sack_cache.blocks[n];
            if to > at && from < end {
                tx.q.join_known(at, from.min(end));
                at = to;
            }
        }
        tx.q.join_known(at, end);
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_is_sackblock_valid
    fn block_valid(&self, tx: &Sender, dup: bool, start: u64, end: u64) -> bool {
        if end > tx.space.nxt() || start >= end {
            return false;
        }
        if start > tx.space.una() {
            return true;
        }
        match self.undo_marker {
            Some(marker) if dup => end <= tx.space.una() && end > marker,
            _ => false,
        }
    }

    /// Counts a block that says nothing of what is out.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sacktag_write_queue
    #[cold]
    fn count_invalid(&self, tx: &mut Sender, dup: bool, ack: u64, end: u64) {
        let una = tx.space.una();
        // An ACK that was overtaken tells what is old.
        match dup {
            true if self.undo_marker.is_none() => tx.mib.one(Tx::DsackIgnoredNoUndo),
            true => tx.mib.one(Tx::DsackIgnoredOld),
            false if ack != una && end <= una => {}
            false => tx.mib.one(Tx::SackDiscard),
        }
    }

    /// Whether the first block reports a duplicate.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_check_dsack, tcp_dsack_seen; RFC 2883 section 4
    fn check_dsack(
        &mut self,
        tx: &mut Sender,
        blocks: &[(u64, u64)],
        ack: u64,
        prior_una: u64,
        s: &mut SackState,
    ) -> bool {
        let (start, end) = blocks[0];
        let dup = start < ack || blocks.len() > 1 && blocks[1].0 <= start && end <= blocks[1].1;
        if dup {
            tx.mib.one(if start < ack { Tx::DsackRecv } else { Tx::DsackOfoRecv });
        }
        if !dup || start >= end || end - start > u64::from(tx.space.max_window().max(tx.space.mss())) {
            if dup {
                tx.mib.one(Tx::DsackIgnoredDubious);
            }
            return false;
        }
        let segs = (end - start).div_ceil(u64::from(tx.space.mss())).max(1);
        if tx.p.today {
            if segs == 1 && self.tlp_high == Some(end) {
                s.flag |= DSACK_TLP;
            }
            tx.n.dsack_dups += segs;
            if tx.n.dsack_dups > tx.n.total_retrans {
                tx.mib.one(Tx::DsackIgnoredDubious);
                return false;
            }
            if self.reord_seen > 0 && s.flag & DSACK_TLP == 0 {
                self.rack.dsack_seen = true;
            }
            s.delivered += segs as u32;
        } else {
            tx.n.dsack_dups += segs;
        }
        tx.mib.add(Tx::DsackRecvSegs, segs as u32);
        s.flag |= DSACKING_ACK;
        if let Some(marker) = self.undo_marker
            && self.undo_retrans > 0
            && end <= prior_una
            && end > marker
        {
            self.undo_retrans = (self.undo_retrans - segs as i64).max(0);
        }
        true
    }

    /// Counts a duplicate of something that is still on the queue.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sacktag_one
    fn tag_duplicate(&mut self, tx: &mut Sender, start: u64, end: u64, s: &mut SackState) {
        let mut i = tx.q.lower(start);
        while i < tx.q.packets_out() as usize && tx.q.at(i).end <= end {
            let seg = *tx.q.at(i);
            if seg.has(RETRANS | EVER_RETRANS) {
                if self.undo_marker.is_some_and(|m| seg.end > m) && self.undo_retrans > 0 {
                    self.undo_retrans -= 1;
                }
                if seg.has(SACKED) {
                    s.reord = Some(s.reord.map_or(seg.seq, |r| r.min(seg.seq)));
                }
            }
            i += 1;
        }
    }

    /// What came twice is out no more.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sacktag_one
    fn clear_duplicate(&self, tx: &mut Sender, start: u64, end: u64) {
        let mut i = tx.q.lower(start);
        while i < tx.q.packets_out() as usize && tx.q.at(i).end <= end {
            tx.q.untag_retrans(i);
            i += 1;
        }
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_sacktag_one
    fn tag_block(&mut self, tx: &mut Sender, start: u64, end: u64, s: &mut SackState) {
        let mut rack: Option<Seg> = None;
        let highest = tx.q.highest_sack(tx.space.una());
        let high_seq = self.high_seq;
        let frto_high = self.frto_highmark.unwrap_or(0);
        let (now_us, min_rtt) = (tx.clock.us, tx.timers.min_rtt());
        let mut newest: Option<Seg> = None;
        tx.q.tag_sacked(start, end, |q, i| {
            let seg = *q.at(i);
            if !seg.has(RETRANS | EVER_RETRANS) || now_us.saturating_sub(seg.sent_us) >= u64::from(min_rtt) {
                // Of the segments that RACK may learn from, the one sent last is enough.
                if newest.is_none_or(|n| n.sent_before(seg.sent_us, seg.end)) {
                    newest = Some(seg);
                }
                rack = Some(seg);
            }
            if seg.has(RETRANS) {
                if seg.has(LOST) {
                    q.unmark_lost(i);
                    q.untag_retrans(i);
                }
            } else {
                if !seg.has(EVER_RETRANS) {
                    if seg.seq < highest {
                        s.reord = Some(s.reord.map_or(seg.seq, |r| r.min(seg.seq)));
                    }
                    if seg.end <= high_seq {
                        s.flag |= ORIG_SACK_ACKED;
                    }
                    if seg.end <= frto_high {
                        s.flag |= ONLY_ORIG_SACKED;
                    }
                    s.first_sent.get_or_insert(seg.sent_us);
                    s.last_sent = seg.sent_us;
                }
                q.unmark_lost(i);
            }
            s.flag |= DATA_SACKED;
            s.delivered += 1;
            s.delivered_bytes += seg.payload();
            s.arrived(&seg);
        });
        if tx.p.today {
            if let Some(n) = newest {
                self.rack_advance(tx, n.bits, n.end, n.sent_us);
            }
            // The round trip noted is that of the segment tagged last.
            if let Some(r) = rack {
                self.rack_advance(tx, r.bits, r.end, r.sent_us);
            }
        }
    }

    /// Something below the highest SACK arrived without being retransmitted: how far apart they were.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_check_sack_reordering
    ///
    /// `by`: what counts it.
    pub(crate) fn check_reordering(&mut self, tx: &mut Sender, low: u64, fack: u64, by: Tx) {
        if low >= fack {
            return;
        }
        let metric = (fack - low).min(u64::from(u32::MAX)) as u32;
        if metric > self.reordering * tx.space.mss() {
            self.reordering = metric.div_ceil(tx.space.mss()).min(MAX_REORDERING);
        }
        self.reord_seen += 1;
        tx.mib.one(by);
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_update_reordering
    pub(crate) fn update_reordering_2_6_35(&mut self, metric: u32) {
        if metric > self.reordering {
            self.reordering = metric.min(MAX_REORDERING_2_6_35);
            // Forward acknowledgement takes holes for losses: no more of it.
            self.fack = false;
        }
    }

    /// 2.6.35: a retransmission is lost when something sent after it was sacked.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_mark_lost_retrans
    fn mark_lost_retrans(&mut self, tx: &mut Sender) {
        let upto = tx.q.highest_sack(tx.space.una());
        if !self.fack
            || tx.q.retrans_out() == 0
            || upto <= self.lost_retrans_low
            || tx.cc.state() != CaState::Recovery
        {
            return;
        }
        let mut low = tx.space.nxt();
        let mut seen = 0;
        for i in 0..tx.q.packets_out() as usize {
            if seen == tx.q.retrans_out() {
                break;
            }
            let seg = *tx.q.at(i);
            if !seg.has(RETRANS) {
                continue;
            }
            if upto > seg.tx_high {
                tx.q.untag_retrans(i);
                tx.q.mark_lost(i);
            } else {
                low = low.min(seg.tx_high);
                seen += 1;
            }
        }
        if tx.q.retrans_out() > 0 {
            self.lost_retrans_low = low;
        }
    }

    // ---- Without SACK: duplicate ACKs stand in ----

    //= linux v6.12 net/ipv4/tcp_input.c tcp_limit_reno_sacked, tcp_check_reno_reordering
    fn check_reno_reordering(&mut self, tx: &mut Sender, addend: u32) {
        let holes = tx.q.lost_out().max(1).min(tx.q.packets_out());
        if tx.q.sacked_out() + holes > tx.q.packets_out() {
            tx.q.set_dup_acks(tx.q.packets_out() - holes);
            if tx.p.today {
                self.reordering = (tx.q.packets_out() + addend).min(MAX_REORDERING);
                self.reord_seen += 1;
                tx.mib.one(Tx::RenoReorder);
            } else {
                self.update_reordering_2_6_35(tx.q.packets_out() + addend);
            }
        }
    }
    /// A duplicate ACK: something arrived.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_add_reno_sack
    pub(crate) fn add_reno_sack(&mut self, tx: &mut Sender, ece: bool) {
        let before = tx.q.sacked_out();
        tx.q.set_dup_acks(before + 1);
        self.check_reno_reordering(tx, 0);
        let delivered = tx.q.sacked_out().saturating_sub(before);
        tx.cc.count_delivered(delivered, if ece { ECE } else { 0 });
    }
    /// An ACK for `acked` segments: one was the hole, the rest had sent duplicate ACKs.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_remove_reno_sacks
    pub(crate) fn remove_reno_sacks(&mut self, tx: &mut Sender, acked: u32, flag: u32) {
        if acked > 0 {
            let delivered = acked.saturating_sub(tx.q.sacked_out()).max(1);
            tx.cc.count_delivered(delivered, flag);
            tx.q.set_dup_acks(tx.q.sacked_out().saturating_sub(acked - 1));
        }
        self.check_reno_reordering(tx, acked);
    }
}
