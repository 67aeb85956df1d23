//! What SACK has reported: tags on segments, and the ranges that are known.

use super::{LOST, RETRANS, RtxQueue, SACKED};

impl RtxQueue {
    /// Forgets every SACK (the receiver has reneged).
    pub fn forget_sacks(&mut self) {
        for seg in &mut self.segs {
            seg.bits &= !SACKED;
        }
        self.ranges.clear();
        self.sacked_out = 0;
        self.forward_hint = 0;
    }

    /// Calls `each` with the index of every segment that lies wholly within `start..end` and is not tagged SACKED,
    /// and tags it. `each` sees the segment as it was before.
    pub fn tag_sacked(&mut self, start: u64, end: u64, mut each: impl FnMut(&mut RtxQueue, usize)) {
        let mut at = start;
        while at < end {
            // Skip what is known: the range that holds `at`.
            let r = self.ranges.partition_point(|r| r.1 <= at);
            let gap_end = match self.ranges.get(r) {
                Some(&(lo, hi)) if lo <= at => {
                    at = hi;
                    continue;
                }
                Some(&(lo, _)) => lo.min(end),
                None => end,
            };
            let mut i = self.lower(at);
            let mut tagged: Option<(u64, u64)> = None;
            while i < self.segs.len() && self.segs[i].end <= gap_end {
                if self.segs[i].has(SACKED) {
                    i += 1;
                    continue;
                }
                let before = self.segs[i].bits;
                each(self, i);
                self.unlist(i);
                let seg = &mut self.segs[i];
                seg.bits |= SACKED;
                tagged = Some((tagged.map_or(seg.seq, |t| t.0), seg.end));
                self.sacked_out += 1;
                // R without L does not become plain S.
                if before & (LOST | RETRANS) != RETRANS && self.join(i) {
                    self.join(i + 1);
                }
                i += 1;
            }
            if let Some((lo, hi)) = tagged {
                self.remember(lo, hi);
            }
            at = gap_end;
        }
    }

    fn remember(&mut self, lo: u64, hi: u64) {
        let r = self.ranges.partition_point(|r| r.1 < lo);
        match self.ranges.get(r).copied() {
            Some((a, b)) if a <= hi => {
                let mut merged = (a.min(lo), b.max(hi));
                while let Some(&(c, d)) = self.ranges.get(r + 1) {
                    if c > merged.1 {
                        break;
                    }
                    merged.1 = merged.1.max(d);
                    self.ranges.remove(r + 1);
                }
                self.ranges[r] = merged;
            }
            _ => self.ranges.insert(r, (lo, hi)),
        }
    }

    /// Takes the LOST tag, and with it RETRANS, off a segment that is about to be tagged SACKED.
    pub fn unmark_lost(&mut self, index: usize) {
        if self.segs[index].has(LOST) {
            self.segs[index].bits &= !LOST;
            self.lost_out -= 1;
        }
    }
}
