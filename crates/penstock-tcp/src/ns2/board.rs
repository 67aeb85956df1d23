//! What the sender knows of packets that came out of order.
//!
//! Follows: ns-2.35 tcp/scoreboard-rq.cc, tcp/rq.cc.
//! Differs: runs that overlap are joined at once.

/// What the receiver holds beyond the last packet in order.
//= ns-2.35 tcp/scoreboard-rq.cc; tcp/rq.cc
#[derive(Debug)]
pub(super) struct Board {
    /// Runs of packets, in order, apart from each other.
    runs: Vec<(i64, i64)>,
    /// No hole below this is to be retransmitted.
    h_seqno: i64,
    sack_min: i64,
}

impl Default for Board {
    fn default() -> Board {
        Board { runs: Vec::new(), h_seqno: -1, sack_min: -1 }
    }
}

impl Board {
    pub fn clear(&mut self) {
        self.runs.clear();
        self.h_seqno = -1;
    }
    fn total(&self) -> i64 {
        self.runs.iter().map(|r| r.1 - r.0).sum()
    }
    /// Takes the blocks of an ACK; answers whether they said anything new.
    pub fn update(&mut self, last_ack: i64, sacks: &[(i64, i64)]) -> bool {
        let before = self.total();
        let mut changed = false;
        if self.sack_min <= last_ack {
            self.sack_min = last_ack + 1;
            changed = !self.runs.is_empty();
            // What is in order by now, with the run it touches.
            self.runs.retain(|r| r.1 > last_ack + 1);
            if let Some(first) = self.runs.first_mut() {
                first.0 = first.0.max(last_ack + 1);
            }
        }
        for &(start, end) in sacks {
            self.add(start, end);
        }
        changed || before != self.total()
    }
    fn add(&mut self, mut start: i64, mut end: i64) {
        if start >= end {
            return;
        }
        self.runs.retain(|r| {
            let apart = r.0 > end || r.1 < start;
            if !apart {
                (start, end) = (start.min(r.0), end.max(r.1));
            }
            apart
        });
        let place = self.runs.partition_point(|r| r.0 < start);
        self.runs.insert(place, (start, end));
    }
    /// The first packet from `no` on that did not arrive, as far as is known, and whether anything above it did.
    pub fn next_hole(&self, no: i64) -> Option<(i64, bool)> {
        for (i, run) in self.runs.iter().enumerate() {
            if run.0 > no {
                return Some((no, true));
            }
            if no <= run.1 {
                return Some((run.1, i + 1 < self.runs.len()));
            }
        }
        None
    }
    pub fn next_retransmission(&mut self) -> Option<i64> {
        self.h_seqno = self.h_seqno.max(self.sack_min);
        let (no, more) = self.next_hole(self.h_seqno)?;
        if no <= 0 || !more {
            return None;
        }
        self.h_seqno = self.h_seqno.max(no);
        Some(no)
    }
    pub fn retransmitted(&mut self, no: i64) {
        self.h_seqno = self.h_seqno.max(no + 1);
    }
}
