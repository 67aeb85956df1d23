//! ECN's receiving side: the echo of congestion, and what a mark asks for.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `__tcp_ecn_check_ce`, net/ipv4/tcp_dctcp.h `dctcp_ece_ack_update`; RFC 3168 section 6.1.3;
//! RFC 8257 section 3.2; v2.6.35 likewise.
//! Differs: none known.

use crate::segment::EcnField;

/// What is echoed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Echo {
    // Parameters
    /// Today's Linux.
    today: bool,
    // Variables
    /// Our segments tell of congestion until the sender says it has heard.
    demand_cwr: bool,
    /// A segment that may be marked has come (`TCP_ECN_SEEN`).
    seen: bool,
    /// The segment before was marked (DCTCP).
    marked: bool,
}

impl Echo {
    pub fn new(today: bool) -> Echo {
        Echo { today, demand_cwr: false, seen: false, marked: false }
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
    /// A segment's data was taken.
    pub fn taken(&mut self, ecn: EcnField) {
        self.demand_cwr |= ecn == EcnField::Ce;
        self.seen |= ecn != EcnField::NotEct;
    }
    /// Whether the next ACKs are to go at once.
    //= linux v6.12 net/ipv4/tcp_input.c __tcp_ecn_check_ce
    pub fn wants_quick_ack(&self, ecn: EcnField) -> bool {
        match ecn {
            // Probably a retransmission.
            EcnField::NotEct => self.seen && self.today,
            EcnField::Ect => false,
            EcnField::Ce => !self.demand_cwr,
        }
    }
    /// Each segment's mark is echoed as it is (DCTCP); answers the mark before, where this is another.
    pub fn each_mark(&mut self, ce: bool) -> Option<bool> {
        let before = std::mem::replace(&mut self.marked, ce);
        self.demand_cwr = ce;
        (before != ce).then_some(before)
    }
}
