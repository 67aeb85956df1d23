//! ECN's receiving side: the echo of congestion, and what a mark asks for.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `__tcp_ecn_check_ce`, linux v7.2 `tcp_data_ecn_check`, net/ipv4/tcp_dctcp.h `dctcp_ece_ack_update`; RFC 3168 section 6.1.3;
//! RFC 8257 section 3.2; v2.6.35 likewise.
//! Differs: none known.

use crate::segment::EcnField;

/// What is echoed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    // Parameters
    how: How,
    // Variables
    /// Our segments tell of congestion until the sender says it has heard.
    demand_cwr: bool,
    /// A segment that may be marked has come (`TCP_ECN_SEEN`).
    seen: bool,
    /// The segment before was marked (DCTCP).
    marked: bool,
}

/// What marks lead to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum How {
    /// An echo, as in Linux 2.6.35.
    Before,
    /// An echo, as in today's.
    Today,
    /// Nothing here: they are counted (RFC 9768).
    Accurate,
}

impl Echo {
    pub fn new(today: bool) -> Echo {
        let how = if today { How::Today } else { How::Before };
        Echo { how, demand_cwr: false, seen: false, marked: false }
    }
    /// Whether our segments tell of congestion.
    #[inline]
    pub fn is_demanded(&self) -> bool {
        self.demand_cwr
    }
    /// Whether a segment that may be marked has come.
    pub fn has_seen(&self) -> bool {
        self.seen
    }
    /// Whether the segment before was marked (DCTCP).
    pub fn was_marked(&self) -> bool {
        self.marked
    }
    /// The sender has heard.
    pub fn heard(&mut self) {
        self.demand_cwr = false;
    }
    /// Sets what is echoed; answers what was.
    pub fn replace(&mut self, demand: bool) -> bool {
        std::mem::replace(&mut self.demand_cwr, demand)
    }
    /// Marks are counted from now on, not echoed.
    pub fn is_accurate(&mut self) {
        self.how = How::Accurate;
    }
    /// A segment has come: with Accurate ECN it need not have data.
    pub fn note_capable(&mut self, ecn: EcnField) {
        self.seen |= ecn != EcnField::NotEct;
    }
    /// A segment's data was taken.
    pub fn taken(&mut self, ecn: EcnField) {
        if self.how == How::Accurate {
            return;
        }
        self.demand_cwr |= ecn == EcnField::Ce;
        self.seen |= ecn != EcnField::NotEct;
    }
    /// Whether the next ACKs are to go at once.
    //= linux v6.12 net/ipv4/tcp_input.c __tcp_ecn_check_ce
    pub fn wants_quick_ack(&self, ecn: EcnField) -> bool {
        match ecn {
            // Probably a retransmission.
            EcnField::NotEct => self.seen && self.how != How::Before,
            EcnField::Ect0 | EcnField::Ect1 => false,
            EcnField::Ce => !self.demand_cwr && self.how != How::Accurate,
        }
    }
    /// Each segment's mark is echoed as it is (DCTCP); answers the mark before, where this is another.
    pub fn each_mark(&mut self, ce: bool) -> Option<bool> {
        let before = std::mem::replace(&mut self.marked, ce);
        self.demand_cwr = ce && self.how != How::Accurate;
        (before != ce).then_some(before)
    }
}
