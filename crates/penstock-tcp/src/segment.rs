//! Segments as they are handed to the host.
//!
//! Follows: RFC 9293 section 3.10.7.1 (the answer where nobody listens), RFC 3168 section 5.
//! Differs: none known.

use penstock_model::Time;
use penstock_packet::{Tcp, TcpFlags};

/// The ECN field of the IP header that a segment came in (RFC 3168 section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum EcnField {
    /// 00: its sender does not speak ECN for it.
    #[default]
    NotEct,
    /// 01: it may be marked.
    Ect1,
    /// 10: it may be marked.
    Ect0,
    /// 11: it was marked on the way.
    Ce,
}

impl EcnField {
    /// The last two bits of the header's byte for type of service.
    pub const fn of_tos(tos: u8) -> EcnField {
        match tos & 3 {
            0 => EcnField::NotEct,
            1 => EcnField::Ect1,
            2 => EcnField::Ect0,
            _ => EcnField::Ce,
        }
    }
}

/// A segment to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// Header with its options.
    pub tcp: Tcp,
    /// Payload, bytes.
    pub payload_len: u32,
    /// Payload of each segment but the last that the card is to cut of it, bytes ([`Calls::whole`](crate::Calls::whole)); 0: it is one segment.
    pub gso_size: u32,
    /// To be marked ECT(0) in the IP header (RFC 3168).
    pub ect: bool,
    /// Whether it was sent before.
    pub retransmission: bool,
    /// When it is to leave (`skb->tstamp`): now, or later for a queue that paces ([`Endpoint::paced_below`](crate::Endpoint::paced_below)) to keep; [`Time::ZERO`]
    /// where nobody says.
    pub departs: Time,
}

/// The RST that answers a segment for which there is no socket; `None` for a segment that is itself an RST.
//= RFC 9293 section 3.10.7.1
pub fn reset_for(seg: &Tcp, payload_len: u32) -> Option<Transmit> {
    if seg.flags.has(TcpFlags::RST) {
        return None;
    }
    let mut tcp = Tcp { sport: seg.dport, dport: seg.sport, flags: TcpFlags::RST, ..Tcp::default() };
    if seg.flags.has(TcpFlags::ACK) {
        tcp.seq = seg.ack;
    } else {
        let syn_fin = u32::from(seg.flags.has(TcpFlags::SYN)) + u32::from(seg.flags.has(TcpFlags::FIN));
        tcp.flags = tcp.flags.with(TcpFlags::ACK);
        tcp.ack = seg.seq.wrapping_add(payload_len).wrapping_add(syn_fin);
    }
    Some(Transmit {
        tcp,
        payload_len: 0,
        gso_size: 0,
        ect: false,
        retransmission: false,
        departs: Time::ZERO,
    })
}
