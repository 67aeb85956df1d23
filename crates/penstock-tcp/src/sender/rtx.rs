//! The retransmission queue and its scoreboard: what was sent, what of it arrived, what is held for lost.
//!
//! Follows: linux v6.12 `tcp_rtx_queue`, `tsorted_sent_queue`, net/ipv4/tcp_input.c `tcp_sacktag_*`,
//! `tcp_mark_skb_lost`.
//! Differs: none known.
//!
//! Segments lie in sequence order in a ring; one found by sequence number costs a binary search. A list threaded
//! through them by number gives the order of sending, for RACK. Ranges reported by SACK are remembered so that a
//! block that comes again (each ACK repeats them) costs nothing: a segment is tagged once.

mod reshape;
mod sacked;

use std::collections::VecDeque;
use std::mem::replace;

/// Reported by SACK.
pub(crate) const SACKED: u8 = 1;
/// Held for lost.
pub(crate) const LOST: u8 = 2;
/// Retransmitted, and the retransmission still out (`TCPCB_SACKED_RETRANS`).
pub(crate) const RETRANS: u8 = 4;
/// Retransmitted at some time.
pub(crate) const EVER_RETRANS: u8 = 8;
/// On the list of the order of sending.
const LISTED: u8 = 16;
/// Carries FIN.
pub(crate) const FIN: u8 = 32;

/// Carries PSH.
pub(crate) const PSH: u8 = 64;
/// Taken into the buffer before it, both being sacked: it has no head of its own any more.
const JOINED: u8 = 128;

const NIL: u32 = u32::MAX;

/// One segment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seg {
    /// First sequence number.
    pub seq: u64,
    /// Sequence number after it (FIN counts one).
    pub end: u64,
    /// When it was last sent, microseconds.
    pub sent_us: u64,
    /// Segments delivered in all when it was last sent (`tx.delivered`).
    pub delivered: u64,
    /// `snd_nxt` when it was last retransmitted (2.6.35 `ack_seq`).
    pub tx_high: u64,
    prev: u32,
    next: u32,
    /// When the latest segment known to have arrived by then was sent, and when that was known, microseconds.
    pub first_tx_us: u64,
    pub delivered_us: u64,
    /// The program had nothing more to send by then.
    pub app_limited: bool,
    /// It is not the first of its buffer: the card has cut it off (or will, when it goes again).
    piece: bool,
    /// A record ends with it (`MSG_EOR`): nothing behind is put to it.
    eor: bool,
    /// Segments in flight when it was last sent, itself included, and those held for lost by then, modulo 2^32.
    pub in_flight: u32,
    pub lost: u32,
    /// Tags.
    pub bits: u8,
    /// Its number among those handed to the host, at its last transmission.
    host_no: u32,
}

impl Seg {
    #[inline]
    pub fn has(&self, bits: u8) -> bool {
        self.bits & bits != 0
    }
    /// Bytes of data, FIN not counted.
    #[inline]
    pub fn payload(&self) -> u32 {
        (self.end - self.seq) as u32 - u32::from(self.has(FIN))
    }
    /// Whether it was sent after what was sent at `us` and ended at `end`.
    #[inline]
    pub fn sent_before(&self, us: u64, end: u64) -> bool {
        us > self.sent_us || us == self.sent_us && end > self.end
    }
}

/// The queue.
#[derive(Debug)]
pub(crate) struct RtxQueue {
    segs: VecDeque<Seg>,
    front_id: u32,
    head: u32,
    tail: u32,
    /// Ranges tagged as sacked, whole segments, in order, apart from each other.
    ranges: VecDeque<(u64, u64)>,
    /// No lost segment that awaits retransmission lies below this.
    hint: u64,
    /// No segment that is neither sacked nor retransmitted lies below this.
    forward_hint: u64,
    /// Segments tagged SACKED; without SACK, duplicate ACKs counted instead.
    sacked_out: u32,
    /// Segments tagged LOST.
    lost_out: u32,
    /// Segments tagged RETRANS.
    retrans_out: u32,
    /// Losses marked in all.
    lost: u64,
    /// Retransmissions among them (`TCPLostRetransmit`).
    lost_again: u32,
    /// Segments tagged JOINED.
    joined: u32,
    /// Segments that are pieces of the buffer of the one before.
    pieces: u32,
}

impl RtxQueue {
    pub fn new() -> RtxQueue {
        RtxQueue {
            segs: VecDeque::new(),
            front_id: 0,
            head: NIL,
            tail: NIL,
            ranges: VecDeque::new(),
            hint: u64::MAX,
            forward_hint: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            lost: 0,
            lost_again: 0,
            joined: 0,
            pieces: 0,
        }
    }

    /// Segments sent and not acknowledged.
    #[inline]
    pub fn packets_out(&self) -> u32 {
        self.segs.len() as u32
    }
    /// Segments reported by SACK; without SACK, duplicate ACKs counted instead.
    #[inline]
    pub fn sacked_out(&self) -> u32 {
        self.sacked_out
    }
    /// So many duplicate ACKs are counted, for want of SACK.
    #[inline]
    pub fn set_dup_acks(&mut self, n: u32) {
        self.sacked_out = n;
    }
    /// Segments held for lost.
    #[inline]
    pub fn lost_out(&self) -> u32 {
        self.lost_out
    }
    /// Retransmissions that are out.
    #[inline]
    pub fn retrans_out(&self) -> u32 {
        self.retrans_out
    }
    /// Losses marked in all.
    #[inline]
    pub fn lost(&self) -> u64 {
        self.lost
    }
    /// Segments that have no head of their own any more.
    #[inline]
    pub fn joined(&self) -> u32 {
        self.joined
    }
    /// Segments that are pieces of the buffer of the one before.
    #[inline]
    pub fn pieces(&self) -> u32 {
        self.pieces
    }
    /// The last segment is one.
    pub fn last_joins(&mut self) {
        if let Some(seg) = self.segs.back_mut() {
            self.pieces += u32::from(!replace(&mut seg.piece, true));
        }
    }
    /// A record ends with the last segment.
    pub fn last_ends_record(&mut self) {
        if let Some(seg) = self.segs.back_mut() {
            seg.eor = true;
        }
    }
    /// The segment at `index` begins a buffer.
    pub(super) fn begins(&mut self, index: usize) {
        if let Some(seg) = self.segs.get_mut(index) {
            self.pieces -= u32::from(std::mem::take(&mut seg.piece));
        }
    }
    /// Cuts off what of the buffer of the segment at `index` goes again as one packet, at most so many segments; answers where it ends
    /// and whether they are several.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_retransmit_skb, tcp_fragment
    pub fn cut_run(&mut self, index: usize, most: usize) -> (u64, bool) {
        self.begins(index);
        let mut n = 1;
        while n < most
            && let Some(next) = self.segs.get(index + n)
            && next.piece
            && next.has(LOST)
            && !next.has(SACKED | RETRANS)
        {
            n += 1;
        }
        self.begins(index + n);
        (self.segs[index + n - 1].end, n > 1)
    }
    /// Bytes of the segment at `index` and of those behind it that are pieces of its buffer still, not reported by SACK.
    pub fn buffer_len(&self, index: usize) -> u32 {
        let rest = self.segs.iter().skip(index + 1).take_while(|s| s.piece && !s.has(SACKED));
        self.segs[index].payload() + rest.map(Seg::payload).sum::<u32>()
    }
    /// Whether segments wait that are held for lost.
    #[inline]
    pub fn awaits_retransmission(&self) -> bool {
        self.lost_out > self.retrans_out
    }
    /// Whether a retransmission is out or the front segment was one.
    pub fn any_retrans_done(&self) -> bool {
        self.retrans_out > 0 || self.front().is_some_and(|f| f.has(EVER_RETRANS))
    }
    /// Segments reckoned to be in the network.
    //= linux v6.12 include/net/tcp.h tcp_packets_in_flight
    #[inline]
    pub fn in_flight(&self) -> u32 {
        (self.packets_out() + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }
    #[inline]
    pub fn front(&self) -> Option<&Seg> {
        self.segs.front()
    }
    #[inline]
    pub fn at(&self, index: usize) -> &Seg {
        &self.segs[index]
    }
    /// It counts as never retransmitted.
    pub fn forget_retransmission(&mut self, index: usize) {
        self.segs[index].bits &= !EVER_RETRANS;
    }
    /// Index of the first segment that begins at or after `seq`.
    pub fn lower(&self, seq: u64) -> usize {
        // The common case in order: the front.
        match self.segs.front() {
            Some(s) if s.seq >= seq => 0,
            None => 0,
            _ => self.segs.partition_point(|s| s.seq < seq),
        }
    }
    /// The highest sequence number reported by SACK; `una` when there is none.
    //= linux v6.12 include/net/tcp.h tcp_highest_sack_seq
    #[inline]
    pub fn highest_sack(&self, una: u64) -> u64 {
        self.ranges.back().map_or(una, |r| r.1)
    }
    /// Segments from the front up to the highest one sacked (`fackets_out`).
    pub fn fackets_out(&self) -> u32 {
        self.ranges.back().map_or(0, |r| self.lower(r.1) as u32)
    }

    #[inline]
    fn index(&self, id: u32) -> usize {
        id.wrapping_sub(self.front_id) as usize
    }
    #[inline]
    fn id(&self, index: usize) -> u32 {
        // Never NIL: the front's number stays below 2^31.
        self.front_id.wrapping_add(index as u32)
    }

    fn unlist(&mut self, index: usize) {
        if !self.segs[index].has(LISTED) {
            return;
        }
        let seg = &mut self.segs[index];
        // No number of a neighbour stays behind in it: that may be gone by the time the numbers move.
        let (prev, next) = (replace(&mut seg.prev, NIL), replace(&mut seg.next, NIL));
        seg.bits &= !LISTED;
        match prev {
            NIL => self.head = next,
            p => {
                let i = self.index(p);
                self.segs[i].next = next;
            }
        }
        match next {
            NIL => self.tail = prev,
            n => {
                let i = self.index(n);
                self.segs[i].prev = prev;
            }
        }
    }

    fn list_last(&mut self, index: usize) {
        let (id, tail) = (self.id(index), self.tail);
        let seg = &mut self.segs[index];
        seg.bits |= LISTED;
        (seg.prev, seg.next) = (tail, NIL);
        match tail {
            NIL => self.head = id,
            t => {
                let i = self.index(t);
                self.segs[i].next = id;
            }
        }
        self.tail = id;
    }

    /// A new segment was sent.
    #[inline]
    pub fn push(&mut self, seq: u64, end: u64, sent_us: u64, delivered: u64, bits: u8, host_no: u32) {
        let seg = Seg {
            seq,
            end,
            sent_us,
            delivered,
            tx_high: 0,
            prev: NIL,
            next: NIL,
            first_tx_us: 0,
            delivered_us: 0,
            app_limited: false,
            piece: false,
            eor: false,
            in_flight: 0,
            lost: 0,
            bits,
            host_no,
        };
        self.segs.push_back(seg);
        self.list_last(self.segs.len() - 1);
    }

    /// Takes the front segment off where it ends at or before `una`; its tags are no longer counted.
    #[inline]
    pub fn pop_acked(&mut self, una: u64) -> Option<Seg> {
        if self.segs.front()?.end > una {
            return None;
        }
        self.unlist(0);
        let seg = self.segs.pop_front().expect("not empty");
        self.front_id = self.front_id.wrapping_add(1);
        if self.front_id >= 1 << 31 {
            self.renumber();
        }
        if seg.has(SACKED) {
            self.sacked_out -= 1;
            while self.ranges.front().is_some_and(|r| r.1 <= seg.end) {
                self.ranges.pop_front();
            }
        }
        if seg.has(LOST) {
            self.lost_out -= 1;
        }
        if seg.has(RETRANS) {
            self.retrans_out -= 1;
        }
        if seg.has(JOINED) {
            self.joined -= 1;
        }
        if self.pieces > 0 {
            self.pieces -= u32::from(seg.piece);
            self.begins(0);
        }
        Some(seg)
    }

    /// Begins the numbers anew, before one of them would be [`NIL`].
    fn renumber(&mut self) {
        let shift = self.front_id;
        let moved = |id: u32| if id == NIL { NIL } else { id.wrapping_sub(shift) };
        for seg in &mut self.segs {
            (seg.prev, seg.next) = (moved(seg.prev), moved(seg.next));
        }
        (self.head, self.tail, self.front_id) = (moved(self.head), moved(self.tail), 0);
    }

    /// It was tried to send the segment at `index` again.
    pub fn tried_again(&mut self, index: usize, sent_us: u64) {
        let seg = &mut self.segs[index];
        seg.sent_us = sent_us;
        seg.bits |= EVER_RETRANS;
    }
    /// And it went.
    pub fn retransmitted(&mut self, index: usize, delivered: u64, snd_nxt: u64, host_no: u32) {
        self.unlist(index);
        self.list_last(index);
        let seg = &mut self.segs[index];
        (seg.delivered, seg.tx_high, seg.host_no) = (delivered, snd_nxt, host_no);
    }
    /// Whether the segment at `index` has not left the host, of which the first `freed` have.
    pub fn is_in_host(&self, index: usize, freed: u32) -> bool {
        (self.segs[index].host_no.wrapping_sub(freed) as i32) > 0
    }
    /// The segment at `seq` (32 bits) has left the host before its turn: those behind it move up. `false`: it is not known to be there.
    pub fn left_host_out_of_turn(&mut self, seq: u32, freed: u32) -> bool {
        let waits = |no: u32| (no.wrapping_sub(freed) as i32) > 0;
        let Some(gone) =
            self.segs.iter().find(|s| s.seq as u32 == seq && waits(s.host_no)).map(|s| s.host_no)
        else {
            return false;
        };
        for seg in self.segs.iter_mut().filter(|s| waits(s.host_no)) {
            if seg.host_no == gone {
                seg.host_no = freed;
            } else if (seg.host_no.wrapping_sub(gone) as i32) > 0 {
                seg.host_no = seg.host_no.wrapping_sub(1);
            }
        }
        true
    }
    /// What the rate of delivery is reckoned from when the segment at `index` arrives.
    //= linux v6.12 net/ipv4/tcp_rate.c tcp_rate_skb_sent
    pub fn stamp(&mut self, index: usize, first_tx_us: u64, delivered_us: u64, app_limited: bool) {
        let (in_flight, lost) = (self.in_flight(), self.lost as u32);
        let seg = &mut self.segs[index];
        (seg.first_tx_us, seg.delivered_us, seg.app_limited) = (first_tx_us, delivered_us, app_limited);
        (seg.in_flight, seg.lost) = (in_flight, lost);
    }
    /// Counts the segment at `index` as a retransmission that is out.
    pub fn tag_retrans(&mut self, index: usize) {
        if !self.segs[index].has(RETRANS) {
            self.segs[index].bits |= RETRANS;
            self.retrans_out += 1;
        }
    }
    /// The retransmission of the segment at `index` is not out any more.
    pub fn untag_retrans(&mut self, index: usize) {
        if self.segs[index].has(RETRANS) {
            self.segs[index].bits &= !RETRANS;
            self.retrans_out -= 1;
            self.forward_hint = self.forward_hint.min(self.segs[index].seq);
        }
    }

    /// Holds the segment at `index` for lost (again, if its retransmission was out).
    //= linux v6.12 net/ipv4/tcp_input.c tcp_mark_skb_lost
    pub fn mark_lost(&mut self, index: usize) {
        let seg = self.segs[index];
        if seg.has(SACKED) {
            return;
        }
        self.hint = self.hint.min(seg.seq);
        if seg.has(LOST) {
            if seg.has(RETRANS) {
                self.untag_retrans(index);
                self.lost += 1;
                self.lost_again += 1;
            }
        } else {
            self.segs[index].bits |= LOST;
            self.lost_out += 1;
            self.lost += 1;
        }
    }

    /// One more, which does not stand here.
    pub fn note_lost_again(&mut self) {
        self.lost_again += 1;
    }
    /// Retransmissions that were lost again.
    pub fn lost_again(&self) -> u32 {
        self.lost_again
    }

    /// Marks the segment lost for RACK, which then looks at it no more until it is retransmitted.
    pub fn mark_lost_unlist(&mut self, index: usize) {
        self.mark_lost(index);
        self.unlist(index);
    }

    /// No segment is held for lost any more.
    pub fn unmark_all_lost(&mut self) {
        if self.lost_out > 0 {
            for seg in &mut self.segs {
                seg.bits &= !LOST;
            }
        }
        self.lost_out = 0;
        self.hint = u64::MAX;
    }

    /// The next lost segment that awaits retransmission.
    pub fn next_lost(&mut self) -> Option<usize> {
        if self.lost_out == 0 {
            return None;
        }
        let mut i = self.lower(self.hint);
        while i < self.segs.len() {
            let seg = &self.segs[i];
            if seg.has(LOST) && !seg.has(SACKED | RETRANS) {
                self.hint = seg.seq;
                return Some(i);
            }
            i += 1;
        }
        self.hint = u64::MAX;
        None
    }

    /// The first hole below the highest sequence number reported by SACK that is not yet retransmitted.
    //= linux v2.6.35 net/ipv4/tcp_output.c tcp_xmit_retransmit_queue
    pub fn next_forward(&mut self) -> Option<usize> {
        let highest = self.ranges.back()?.1;
        let mut i = self.lower(self.forward_hint);
        while i < self.segs.len() && self.segs[i].seq < highest {
            if !self.segs[i].has(SACKED | RETRANS) {
                self.forward_hint = self.segs[i].seq;
                return Some(i);
            }
            i += 1;
        }
        self.forward_hint = self.forward_hint.max(highest);
        None
    }

    /// The first segment at or after `index` in the order of sending that RACK may still judge.
    pub fn first_sent(&self) -> Option<usize> {
        (self.head != NIL).then(|| self.index(self.head))
    }
    /// The one sent after the segment at `index`.
    pub fn next_sent(&self, index: usize) -> Option<usize> {
        let next = self.segs[index].next;
        (self.segs[index].has(LISTED) && next != NIL).then(|| self.index(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn queue(n: u64) -> RtxQueue {
        let mut q = RtxQueue::new();
        for i in 0..n {
            q.push(i * 10, i * 10 + 10, i, 0, 0, 0);
        }
        q
    }
    fn sack(q: &mut RtxQueue, start: u64, end: u64) -> usize {
        let mut n = 0;
        q.tag_sacked(start, end, |_, _| n += 1);
        n
    }
    pub(super) fn sent_order(q: &RtxQueue) -> Vec<u64> {
        let mut out = Vec::new();
        let mut i = q.first_sent();
        while let Some(x) = i {
            out.push(q.at(x).seq);
            i = q.next_sent(x);
        }
        out
    }

    #[test]
    fn a_segment_is_tagged_once() {
        let mut q = queue(10);
        assert_eq!(sack(&mut q, 20, 40), 2);
        assert_eq!(sack(&mut q, 20, 60), 2);
        assert_eq!(sack(&mut q, 20, 60), 0);
        assert_eq!(sack(&mut q, 15, 85), 2, "only whole segments: 60 and 70");
        assert_eq!((q.sacked_out, q.highest_sack(0), q.fackets_out()), (6, 80, 8));
        assert_eq!(q.ranges, [(20, 80)]);
        for _ in 0..3 {
            q.pop_acked(u64::MAX);
        }
        assert_eq!((q.sacked_out, q.packets_out(), q.in_flight()), (5, 7, 2));
    }

    #[test]
    fn ranges_join() {
        let mut q = queue(10);
        sack(&mut q, 0, 10);
        sack(&mut q, 20, 30);
        sack(&mut q, 40, 50);
        sack(&mut q, 80, 90);
        assert_eq!(q.ranges, [(0, 10), (20, 30), (40, 50), (80, 90)]);
        sack(&mut q, 5, 45);
        assert_eq!(q.ranges, [(0, 50), (80, 90)]);
        assert_eq!(q.sacked_out, 6);
    }

    #[test]
    fn lost_segments_are_found_in_order_once() {
        let mut q = queue(6);
        q.mark_lost(3);
        q.mark_lost(1);
        assert_eq!(q.next_lost(), Some(1));
        q.retransmitted(1, 100, 0, 60);
        q.tag_retrans(1);
        assert_eq!(q.next_lost(), Some(3));
        q.retransmitted(3, 100, 0, 60);
        q.tag_retrans(3);
        assert_eq!(q.next_lost(), None);
        assert_eq!((q.lost_out, q.retrans_out, q.in_flight()), (2, 2, 6));
        // Its retransmission is lost too.
        q.mark_lost(1);
        assert_eq!((q.next_lost(), q.retrans_out, q.lost), (Some(1), 1, 3));
    }

    #[test]
    fn the_order_of_sending_follows_retransmissions() {
        let mut q = queue(4);
        q.retransmitted(1, 100, 0, 40);
        assert_eq!(sent_order(&q), [0, 20, 30, 10]);
        sack(&mut q, 20, 30);
        assert_eq!(sent_order(&q), [0, 30, 10]);
        q.pop_acked(u64::MAX);
        q.mark_lost_unlist(0);
        assert_eq!(sent_order(&q), [30]);
    }

    #[test]
    fn numbers_may_wrap() {
        let mut q = RtxQueue::new();
        q.front_id = (1 << 31) - 2;
        for i in 0..4 {
            q.push(i * 10, i * 10 + 10, i, 0, 0, 0);
            q.pop_acked(u64::MAX);
        }
        q.push(40, 50, 5, 0, 0, 0);
        q.push(50, 60, 6, 0, 0, 0);
        assert_eq!(sent_order(&q), [40, 50]);
    }
}
