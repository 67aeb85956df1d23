//! What one acknowledgement brings, as it is handed on from step to step.
//!
//! Follows: linux v6.12 net/ipv4/tcp_input.c `FLAG_*`, `struct tcp_sacktag_state`, include/net/tcp.h `struct rate_sample`;
//! v2.6.35 likewise.
//! Differs: none known.

use super::rtx::Seg;

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
    /// Bytes newly known to have arrived.
    pub delivered_bytes: u32,
    /// `delivered` when the segment sent last among those that arrived was sent.
    pub prior_delivered: u64,
    /// When that was sent, microseconds, and where it ended.
    pub prior_sent: u64,
    pub prior_end: u64,
    /// When `delivered` had grown last by then, and the time the window took to be sent, microseconds.
    pub prior_stamp: u64,
    pub sent_over: u64,
    pub app_limited: bool,
    /// Segments in flight then, and held for lost by then, modulo 2^32.
    pub tx_in_flight: u32,
    pub tx_lost: u32,
    /// The round trip the controller hears of, and whether it may be a delayed ACK's.
    pub rtt_us: Option<u32>,
    pub ack_delayed: bool,
    /// The timestamp of the segment at hand; 0 without.
    pub tsval: u32,
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
