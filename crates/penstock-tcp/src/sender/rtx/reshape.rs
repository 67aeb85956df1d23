//! Segments on the retransmission queue that become two, or one: cut for a retransmission that has less room, filled up from those
//! behind, and taken together once both are sacked.
//!
//! Follows: linux v6.12 net/ipv4/tcp_output.c `tcp_fragment`, `tcp_retrans_try_collapse`, net/ipv4/tcp_input.c `tcp_shift_skb_data`.
//! Differs: sacked segments stay apart here and only their memory is counted as joined.

use super::{EVER_RETRANS, FIN, JOINED, LISTED, LOST, NIL, PSH, RETRANS, RtxQueue, SACKED, Seg};

impl RtxQueue {
    /// Numbers in the order of sending that lie behind `index` go on by one, or back.
    fn shift_ids(&mut self, index: usize, back: bool) {
        let first = self.id(index);
        let front = self.front_id;
        let moved = |id: u32| match id {
            NIL => NIL,
            id if id.wrapping_sub(front) <= first.wrapping_sub(front) => id,
            id if back => id - 1,
            id => id + 1,
        };
        for seg in &mut self.segs {
            (seg.prev, seg.next) = (moved(seg.prev), moved(seg.next));
        }
        (self.head, self.tail) = (moved(self.head), moved(self.tail));
    }

    /// Makes two segments of the one at `index`, the first `len` bytes long.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_fragment
    pub fn split(&mut self, index: usize, len: u32) {
        self.shift_ids(index, false);
        let seg = &mut self.segs[index];
        let mut rest = *seg;
        seg.end = seg.seq + u64::from(len);
        rest.seq = seg.end;
        rest.piece = false;
        seg.bits &= !(PSH | FIN);
        seg.eor = false;
        let next = seg.next;
        self.segs.insert(index + 1, rest);
        if rest.has(LISTED) {
            // Right behind the first in the order of sending too.
            let (id, rest_id) = (self.id(index), self.id(index + 1));
            self.segs[index].next = rest_id;
            self.segs[index + 1].prev = id;
            match next {
                NIL => self.tail = rest_id,
                n => {
                    let at = self.index(n);
                    self.segs[at].prev = rest_id;
                }
            }
        }
        for (tag, count) in
            [(LOST, &mut self.lost_out), (RETRANS, &mut self.retrans_out), (JOINED, &mut self.joined)]
        {
            *count += u32::from(rest.has(tag));
        }
    }

    /// Cuts the segment at `index` to `mss` bytes where it has become too long (SACK blocks take room), or fills it from those behind it,
    /// as far as the peer's window goes.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_retransmit_skb, tcp_retrans_try_collapse
    pub fn resize(&mut self, index: usize, mss: u32, wnd_end: u64) {
        let seg = self.segs[index];
        let len = seg.payload();
        if len > mss {
            return self.split(index, mss);
        }
        let room = wnd_end.saturating_sub(seg.seq).min(u64::from(mss)) as u32;
        let Some(mut space) = room.checked_sub(len).filter(|&s| s > 0 && !seg.has(SACKED)) else { return };
        while let Some(next) = self.segs.get(index + 1).copied() {
            //= linux v6.12 include/net/tcp.h tcp_skb_can_collapse_to
            if self.segs[index].eor || next.has(SACKED) || next.payload() > space || next.end > wnd_end {
                break;
            }
            space -= next.payload();
            self.merge(index);
        }
    }

    /// Takes the segment behind the one at `index` into it.
    //= linux v6.12 net/ipv4/tcp_output.c tcp_collapse_retrans
    pub fn merge(&mut self, index: usize) {
        self.unlist(index + 1);
        let gone = self.segs.remove(index + 1).expect("the caller has seen it");
        self.shift_ids(index, true);
        self.pieces -= u32::from(gone.piece);
        for (tag, count) in
            [(LOST, &mut self.lost_out), (RETRANS, &mut self.retrans_out), (JOINED, &mut self.joined)]
        {
            *count -= u32::from(gone.has(tag));
        }
        let seg = &mut self.segs[index];
        seg.end = gone.end;
        seg.eor = gone.eor;
        seg.bits |= gone.bits & (PSH | FIN | EVER_RETRANS);
    }

    /// Cuts `count` segments from `index` on anew, `mss` bytes each but the last; answers how many they are then.
    //= linux v6.12 net/ipv4/tcp_output.c __tcp_retransmit_skb, tcp_set_skb_tso_segs
    pub fn recut(&mut self, index: usize, count: usize, mss: u32) -> usize {
        for _ in 1..count {
            self.merge(index);
        }
        let mut n = 1;
        while self.segs[index + n - 1].payload() > mss {
            self.split(index + n - 1, mss);
            self.pieces += u32::from(!std::mem::replace(&mut self.segs[index + n].piece, true));
            n += 1;
        }
        n
    }

    /// Joins what is tagged within `start..end`.
    pub fn join_known(&mut self, start: u64, end: u64) {
        let mut index = self.lower(start);
        while index < self.segs.len() && self.segs[index].end <= end {
            self.join(index);
            index += 1;
        }
    }

    /// Takes the segment at `index`, just tagged, into the one before it where both are sacked and of one length.
    //= linux v6.12 net/ipv4/tcp_input.c tcp_shift_skb_data
    pub(super) fn join(&mut self, index: usize) -> bool {
        let Some(prev) = index.checked_sub(1).map(|p| self.segs[p]) else { return false };
        let Some(seg) = self.segs.get_mut(index) else { return false };
        let plain = |s: &Seg| s.bits & (SACKED | LOST | RETRANS) == SACKED;
        let joins =
            plain(&prev) && plain(seg) && prev.end - prev.seq == seg.end - seg.seq && !seg.has(JOINED);
        if joins {
            self.pieces -= u32::from(std::mem::take(&mut seg.piece));
            seg.bits |= JOINED;
            self.joined += 1;
        }
        joins
    }
}

#[cfg(test)]
mod tests {
    use crate::sender::rtx::tests::{queue, sent_order};

    #[test]
    fn a_segment_is_cut_and_filled_up() {
        let mut q = queue(4);
        q.mark_lost(1);
        q.split(1, 7);
        assert_eq!(sent_order(&q), [0, 10, 17, 20, 30]);
        assert_eq!((q.packets_out(), q.lost_out, q.at(1).payload(), q.at(2).payload()), (5, 2, 7, 3));
        q.retransmitted(0, 100, 0, 40);
        q.split(0, 4);
        assert_eq!(sent_order(&q), [10, 17, 20, 30, 0, 4]);
        q.merge(0);
        // What was sent last stands before what is cut.
        q.split(3, 2);
        assert_eq!(sent_order(&q), [10, 17, 20, 22, 30, 0]);
        q.merge(3);
        q.merge(1);
        assert_eq!(sent_order(&q), [10, 20, 30, 0]);
        assert_eq!((q.packets_out(), q.lost_out, q.at(1).end), (4, 1, 20));
        q.pop_acked(u64::MAX);
        q.merge(1);
        assert_eq!(sent_order(&q), [10, 20]);
    }

    #[test]
    fn segments_are_cut_anew() {
        let mut q = queue(4);
        for n in 0..4 {
            q.mark_lost(n);
        }
        assert_eq!(q.recut(0, 3, 8), 4);
        let ends: Vec<u64> = (0..5).map(|n| q.at(n).end).collect();
        assert_eq!(ends, [8, 16, 24, 30, 40]);
        assert_eq!((q.packets_out(), q.lost_out(), q.pieces()), (5, 5, 3));
        assert_eq!((q.buffer_len(0), q.buffer_len(2), q.buffer_len(4)), (30, 14, 10));
        assert_eq!(q.recut(0, 4, 100), 1);
        assert_eq!((q.packets_out(), q.lost_out(), q.pieces()), (2, 2, 0));
    }

    #[test]
    fn a_segment_off_the_list_knows_none_that_are_gone() {
        let mut q = queue(5);
        // The first is the neighbour of the second when that leaves the order of sending, and is acknowledged then.
        q.mark_lost_unlist(1);
        q.pop_acked(10);
        q.merge(1);
        assert_eq!(sent_order(&q), [20, 40]);
        q.split(0, 4);
        assert_eq!(sent_order(&q), [20, 40]);
    }
}
