//! SACK blocks from the peer: tagging the queue, duplicates, reordering.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `tcp_sacktag_write_queue`, `tcp_sacktag_one`, `tcp_check_dsack`,
//! `tcp_check_sack_reordering`; v2.6.35 `tcp_update_reordering`; RFC 2018, RFC 2883.
//! Differs: none known.

use crate::endpoint::ack::{
    DATA_LOST, DATA_SACKED, DSACK_TLP, DSACKING_ACK, ECE, ONLY_ORIG_SACKED, ORIG_SACK_ACKED, SackState,
};
use crate::endpoint::Endpoint;
use crate::info::CaState;
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

impl Endpoint {
    /// Tags what the blocks of `seg` report.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sacktag_write_queue
    pub(crate) fn sacktag(&mut self, seg: &Tcp, ack: u64, prior_una: u64, s: &mut SackState) {
        let mut blocks = [(0u64, 0u64); 4];
        let n = seg.sack_blocks().len();
        for (b, &(l, r)) in blocks.iter_mut().zip(seg.sack_blocks()) {
            let left = seq::unwrap(l, self.snd_una);
            *b = (left, left.wrapping_add(u64::from(r.wrapping_sub(l))));
        }
        let dup = self.check_dsack(&blocks[..n], ack, prior_una, s);
        if self.q.packets_out() == 0 {
            return;
        }
        let mut highest = 0;
        let mut used = SackCache::default();
        let mut numbered = [0, 1, 2, 3];
        if self.p.today {
            // In order: what RACK takes for the round trip is that of the segment looked at last.
            numbered[..n].sort_by_key(|&i| blocks[i].0);
        }
        for &i in &numbered[..n] {
            let (start, end) = blocks[i];
            let is_dup = dup && i == 0;
            if !self.block_valid(is_dup, start, end) || end <= prior_una {
                continue;
            }
            if is_dup {
                self.tag_duplicate(start, end, s);
            }
            // What this very ACK acknowledges is tagged no more, reported or not: it is about to leave the queue.
            if end > self.snd_una {
                self.tag_block(start, end, s);
                if is_dup {
                    self.clear_duplicate(start, end);
                }
            }
            if self.p.today {
                self.join_forgotten(start, end);
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
        if self.p.today {
            if let Some(low) = s.reord
                && (self.ca != CaState::Loss || self.undo_marker.is_some())
            {
                let fack = self.q.highest_sack(self.snd_una);
                self.check_reordering(low, fack);
            }
        } else {
            self.mark_lost_retrans();
            if let Some(low) = s.reord
                && (self.ca != CaState::Loss || self.undo_marker.is_some())
                && self.frto_highmark.is_none_or(|high| self.snd_una > high)
            {
                let fackets = self.q.fackets_out();
                let index = self.q.lower(low) as u32;
                if index < fackets {
                    self.update_reordering_2_6_35(fackets - index);
                }
            }
        }
    }

    /// What a block reports that the ACK before did not is gone through again, and what is known there is joined.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_sacktag_write_queue (recv_sack_cache)
    fn join_forgotten(&mut self, start: u64, end: u64) {
        let mut at = start;
        for n in 0..self.sack_cache.len {
            let (from, to) = self.sack_cache.blocks[n];
            if to > at && from < end {
                self.q.join_known(at, from.min(end));
                at = to;
            }
        }
        self.q.join_known(at, end);
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_is_sackblock_valid
    fn block_valid(&self, dup: bool, start: u64, end: u64) -> bool {
        if end > self.snd_nxt || start >= end {
            return false;
        }
        if start > self.snd_una {
            return true;
        }
        match self.undo_marker {
            Some(marker) if dup => end <= self.snd_una && end > marker,
            _ => false,
        }
    }

    /// Whether the first block reports a duplicate.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_check_dsack, tcp_dsack_seen; RFC 2883 section 4
    fn check_dsack(&mut self, blocks: &[(u64, u64)], ack: u64, prior_una: u64, s: &mut SackState) -> bool {
        let (start, end) = blocks[0];
        let dup = start < ack || blocks.len() > 1 && blocks[1].0 <= start && end <= blocks[1].1;
        if !dup || start >= end || end - start > u64::from(self.max_window.max(self.mss)) {
            return false;
        }
        let segs = (end - start).div_ceil(u64::from(self.mss)).max(1);
        if self.p.today {
            if segs == 1 && self.tlp_high == Some(end) {
                s.flag |= DSACK_TLP;
            }
            self.n.dsack_dups += segs;
            if self.n.dsack_dups > self.n.total_retrans {
                return false;
            }
            if self.reord_seen && s.flag & DSACK_TLP == 0 {
                self.rack.dsack_seen = true;
            }
            s.delivered += segs as u32;
        } else {
            self.n.dsack_dups += segs;
        }
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
    fn tag_duplicate(&mut self, start: u64, end: u64, s: &mut SackState) {
        let mut i = self.q.lower(start);
        while i < self.q.packets_out() as usize && self.q.at(i).end <= end {
            let seg = *self.q.at(i);
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
    fn clear_duplicate(&mut self, start: u64, end: u64) {
        let mut i = self.q.lower(start);
        while i < self.q.packets_out() as usize && self.q.at(i).end <= end {
            self.q.untag_retrans(i);
            i += 1;
        }
    }

    //= linux v6.12 net/ipv4/tcp_input.c tcp_sacktag_one
    fn tag_block(&mut self, start: u64, end: u64, s: &mut SackState) {
        let mut rack: Option<Seg> = None;
        let highest = self.q.highest_sack(self.snd_una);
        let high_seq = self.high_seq;
        let frto_high = self.frto_highmark.unwrap_or(0);
        let (now_us, min_rtt) = (self.clock.us, self.min_rtt.value());
        let mut newest: Option<Seg> = None;
        self.q.tag_sacked(start, end, |q, i| {
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
            s.arrived(&seg);
        });
        if self.p.today {
            if let Some(n) = newest {
                self.rack_advance(n.bits, n.end, n.sent_us);
            }
            // The round trip noted is that of the segment tagged last.
            if let Some(r) = rack {
                self.rack_advance(r.bits, r.end, r.sent_us);
            }
        }
    }

    /// Something below the highest SACK arrived without being retransmitted: how far apart they were.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_check_sack_reordering
    pub(crate) fn check_reordering(&mut self, low: u64, fack: u64) {
        if low >= fack {
            return;
        }
        let metric = (fack - low).min(u64::from(u32::MAX)) as u32;
        if metric > self.reordering * self.mss {
            self.reordering = metric.div_ceil(self.mss).min(MAX_REORDERING);
        }
        self.reord_seen = true;
    }

    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_update_reordering
    pub(crate) fn update_reordering_2_6_35(&mut self, metric: u32) {
        if metric > self.reordering {
            self.reordering = metric.min(MAX_REORDERING_2_6_35);
            // Forward acknowledgement takes holes for losses: no more of it.
            self.p.fack = false;
        }
    }

    /// 2.6.35: a retransmission is lost when something sent after it was sacked.
    //= linux v2.6.35 net/ipv4/tcp_input.c tcp_mark_lost_retrans
    fn mark_lost_retrans(&mut self) {
        let upto = self.q.highest_sack(self.snd_una);
        if !self.p.fack
            || self.q.retrans_out == 0
            || upto <= self.lost_retrans_low
            || self.ca != CaState::Recovery
        {
            return;
        }
        let mut low = self.snd_nxt;
        let mut seen = 0;
        for i in 0..self.q.packets_out() as usize {
            if seen == self.q.retrans_out {
                break;
            }
            let seg = *self.q.at(i);
            if !seg.has(RETRANS) {
                continue;
            }
            if upto > seg.tx_high {
                self.q.untag_retrans(i);
                self.q.mark_lost(i);
            } else {
                low = low.min(seg.tx_high);
                seen += 1;
            }
        }
        if self.q.retrans_out > 0 {
            self.lost_retrans_low = low;
        }
    }

    // ---- Without SACK: duplicate ACKs stand in ----

    //= linux v6.12 net/ipv4/tcp_input.c tcp_limit_reno_sacked, tcp_check_reno_reordering
    fn check_reno_reordering(&mut self, addend: u32) {
        let holes = self.q.lost_out.max(1).min(self.q.packets_out());
        if self.q.sacked_out + holes > self.q.packets_out() {
            self.q.sacked_out = self.q.packets_out() - holes;
            if self.p.today {
                self.reordering = (self.q.packets_out() + addend).min(MAX_REORDERING);
                self.reord_seen = true;
            } else {
                self.update_reordering_2_6_35(self.q.packets_out() + addend);
            }
        }
    }
    /// A duplicate ACK: something arrived.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_add_reno_sack
    pub(crate) fn add_reno_sack(&mut self, ece: bool) {
        let before = self.q.sacked_out;
        self.q.sacked_out += 1;
        self.check_reno_reordering(0);
        let delivered = self.q.sacked_out.saturating_sub(before);
        self.count_delivered(delivered, if ece { ECE } else { 0 });
    }
    /// An ACK for `acked` segments: one was the hole, the rest had sent duplicate ACKs.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_remove_reno_sacks
    pub(crate) fn remove_reno_sacks(&mut self, acked: u32, flag: u32) {
        if acked > 0 {
            let delivered = acked.saturating_sub(self.q.sacked_out).max(1);
            self.count_delivered(delivered, flag);
            self.q.sacked_out = self.q.sacked_out.saturating_sub(acked - 1);
        }
        self.check_reno_reordering(acked);
    }
}
