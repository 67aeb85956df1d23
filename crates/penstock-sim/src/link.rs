//! Network cards and the wires between them.
//!
//! A card has one frame on the wire at a time; behind it, where its `ring` allows, some that it has already taken from
//! the queueing discipline; behind that the discipline itself. The card asks for the next frame when the wire is free
//! (`ndo_start_xmit` and the stopped queue: with a ring of 0 the discipline is the only queue there is). A frame
//! occupies the wire for its length (see [`Framing`]) at the link's rate, rounded up to a nanosecond, and arrives
//! whole after the delay.
//!
//! On a shared segment there is one frame at a time for all cards. Who finds it busy waits in line.

use crate::event::{Seq, Timer};
use crate::spec::Framing;
use penstock_model::{Rate, Rng, Span, Time};
use penstock_packet::Packet;
use std::collections::VecDeque;

/// What a card is plugged into.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Port {
    /// One direction of a point-to-point link.
    Wire(u32),
    /// A shared segment.
    Segment(u32),
    /// Nothing: frames are lost (`place` "no-carrier").
    Nothing,
}

/// One card.
pub(crate) struct Nic {
    // Parameters
    pub(crate) host: u32,
    pub(crate) ifindex: u32,
    pub(crate) port: Port,
    pub(crate) rate: Option<Rate>,
    pub(crate) ring: u32,
    // Variables
    /// The wire is taken up to here by the last frame.
    pub(crate) busy_until: Time,
    /// Is taking a frame from the discipline right now.
    pub(crate) sending: bool,
    /// A `TxDone` is under way.
    pub(crate) tx_pending: bool,
    /// Stands in line for its segment.
    pub(crate) in_line: bool,
    /// Taken from the discipline, not yet on the wire.
    pub(crate) queue: VecDeque<Packet>,
    pub(crate) watchdog: Timer,
}

/// How one end's frames travel.
pub(crate) struct Way {
    pub(crate) delay: Span,
    pub(crate) loss_ppb: u32,
    pub(crate) rng: Rng,
}

impl Way {
    /// Whether this frame is lost.
    #[inline]
    pub(crate) fn loses(&mut self) -> bool {
        self.loss_ppb > 0 && self.rng.below(1_000_000_000) < self.loss_ppb
    }
}

/// One direction of a point-to-point link.
pub(crate) struct Wire {
    pub(crate) way: Way,
    pub(crate) to_nic: u32,
    pub(crate) framing: Framing,
    /// Frames under way with their arrivals and the places in the order of events reserved for them.
    pub(crate) in_flight: VecDeque<(Time, Seq, Packet)>,
}

/// A segment that several cards share.
pub(crate) struct Segment {
    pub(crate) nics: Vec<u32>,
    /// From each card to each, row by row.
    pub(crate) wires: Vec<u32>,
    pub(crate) framing: Framing,
    pub(crate) busy_until: Time,
    /// A card is taking a frame from its discipline right now.
    pub(crate) serving: bool,
    pub(crate) free_pending: bool,
    pub(crate) line: VecDeque<u32>,
}

/// Time that `bytes` take at `rate`, rounded up; none without a rate.
#[inline]
pub(crate) fn serialisation(bytes: u32, rate: Option<Rate>) -> Span {
    match rate {
        None => Span::ZERO,
        Some(rate) => {
            Span::from_ns((u64::from(bytes) * 1_000_000_000).div_ceil(rate.bytes_per_s().max(1)) as i64)
        }
    }
}

/// A host's processor: one server for the frames that come in.
pub(crate) struct Cpu {
    pub(crate) cost: crate::spec::Cost,
    pub(crate) rng: Rng,
    /// Frames waiting with the interface they came in by; the first is being served.
    pub(crate) backlog: VecDeque<(u32, Packet)>,
    /// Time spent on frames so far.
    pub(crate) busy: Span,
}

/// `net.core.netdev_max_backlog`, packets.
pub(crate) const NETDEV_MAX_BACKLOG: usize = 1000;

impl Cpu {
    /// Time for this frame.
    pub(crate) fn service(&mut self, len: u32) -> Span {
        let bytes = (u64::from(len) * self.cost.byte_ps / 1000) as i64;
        let service = self.cost.packet.draw(&mut self.rng) + Span::from_ns(bytes);
        self.busy += service;
        service
    }
    /// Whether frames take no time.
    pub(crate) fn is_free(&self) -> bool {
        self.cost.byte_ps == 0 && self.cost.packet.is_zero()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_take_their_time() {
        let rate = |bits| Some(Rate::from_bit_per_s(bits));
        assert_eq!(serialisation(1538, rate(100_000_000)), Span::from_ns(123_040));
        assert_eq!(serialisation(1, rate(3_000_000_000)), Span::from_ns(3));
        assert_eq!(serialisation(1538, None), Span::ZERO);
    }
}
