//! Network cards and the wires between them, as data: `card` and `segment` work them.
//!
//! A card has one frame on the wire at a time; behind it, where its `ring` allows, some that it has already taken from
//! the queueing discipline; behind that the discipline itself. The card asks for the next frame when the wire is free
//! (`ndo_start_xmit` and the stopped queue: with a ring of 0 the discipline is the only queue there is). What a card with a
//! ring has taken stays in its socket's memory until it is sent (TX completion, `skb->destructor`); without one it leaves that
//! memory with the discipline. A frame
//! occupies the wire for its length (see [`Framing`]) at the link's rate, rounded up to a nanosecond, and arrives
//! whole after the delay.
//!
//! On a shared segment there is one frame at a time for all cards. Who finds it busy waits in line.

use crate::event::{Event, Queue, Seq, Timer};
use crate::histogram::Histogram;
use crate::index::{NONE, Numbers};
use crate::meter::Watch;
use crate::spec::{Bleach, Framing};
use penstock_model::{Rate, Rng, Span, Time};
use penstock_packet::{L3, Packet};
use std::collections::{BTreeMap, VecDeque};

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
#[repr(C)]
pub(crate) struct Nic {
    // With each packet, in this order: what lies together comes into the cache together.
    pub(crate) host: u32,
    pub(crate) ifindex: u32,
    pub(crate) port: Port,
    pub(crate) rate: Option<Rate>,
    pub(crate) ring: u32,
    /// Is taking a frame from the discipline right now.
    pub(crate) sending: bool,
    /// A `TxDone` is under way.
    pub(crate) tx_pending: bool,
    /// Stands in line for its segment.
    pub(crate) in_line: bool,
    /// The wire is taken up to here by the last frame.
    pub(crate) busy_until: Time,
    /// It is an end of a veth pair.
    pub(crate) pair: bool,
    /// Nobody looks at its frames one by one, and its rate stays what it is.
    pub(crate) plain: bool,
    /// What it sends and loses, packet by packet, where somebody asks for that.
    pub(crate) watch: Option<Box<Watch>>,
    /// Taken from the discipline, not yet on the wire.
    pub(crate) queue: VecDeque<Packet>,
    /// How long frames waited for it.
    pub(crate) sojourn: Histogram,
    /// Frames that got ECN's congestion mark here.
    pub(crate) marked: u64,
    pub(crate) watchdog: Timer,
    // The others.
    /// Frames between two interrupts that tell of sent ones.
    pub(crate) tx_frames: u32,
    /// Bytes that a driver counts (BQL).
    pub(crate) bql: Option<Box<Counted>>,
    /// Frames that are sent, but of which the driver has not been told.
    pub(crate) sent: Vec<crate::sock::Owed>,
    /// With a ring: the frame on the wire, whose memory is its socket's until its sending is known (TX completion).
    pub(crate) on_wire: Option<crate::sock::Owed>,
    /// What frames on a link without a rate cost.
    pub(crate) toll: crate::still::Toll,
    /// Its place on its segment.
    pub(crate) place: u32,
    /// Who is told of its frames.
    pub(crate) capture: Option<Box<crate::capture::Capturing>>,
    /// How its rate changes.
    pub(crate) pace: Option<Box<crate::course::Pace>>,
}

/// Bytes that a driver has to tell of.
#[derive(Default)]
pub(crate) struct Counted {
    /// Of the frame on the wire.
    pub(crate) on_wire: u32,
    /// Of those that are sent.
    pub(crate) sent: u32,
}

impl Nic {
    /// A card that is plugged into nothing.
    pub(crate) fn unplugged(host: u32, ifindex: u32) -> Nic {
        Nic {
            host,
            ifindex,
            port: Port::Nothing,
            rate: None,
            ring: 0,
            place: 0,
            pair: false,
            tx_frames: 1,
            bql: None,
            busy_until: Time::ZERO,
            sending: false,
            toll: crate::still::Toll::default(),
            tx_pending: false,
            in_line: false,
            queue: VecDeque::new(),
            on_wire: None,
            sent: Vec::new(),
            watchdog: Timer::default(),
            sojourn: Histogram::default(),
            marked: 0,
            watch: None,
            plain: true,
            capture: None,
            pace: None,
        }
    }
    /// Time that a frame with `len` bytes on the wire takes from now on.
    #[inline]
    pub(crate) fn takes(&mut self, len: u32, now: Time) -> Span {
        if let Some(pace) = &mut self.pace {
            return pace.takes(len, now);
        }
        match self.rate {
            Some(_) => serialisation(len, self.rate),
            None => self.toll.charge(now, crate::still::frame(len)),
        }
    }
    /// Whether a descriptor is known to be free.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.queue.len() + self.sent.len() < self.ring as usize
    }
    /// Whether it is an end of a cable without a rate, as of a veth pair.
    #[inline]
    pub(crate) fn is_virtual(&self) -> bool {
        self.rate.is_none() && matches!(self.port, Port::Wire(_))
    }
    /// Whether its frames wait in the discipline alone, each takes time on the wire, always the same, and nobody looks at them.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.ring == 0 && self.rate.is_some() && self.queue.is_empty() && self.plain
    }
    /// Whether frames stay in their sockets' memory until they are sent.
    #[inline]
    pub(crate) fn completes(&self) -> bool {
        self.ring > 0 && self.rate.is_some() && matches!(self.port, Port::Wire(_))
    }
}

/// How one end's frames travel.
#[repr(C)]
pub(crate) struct Way {
    // With each packet, in this order: what lies together comes into the cache together.
    pub(crate) delay: Span,
    pub(crate) loss_ppb: u32,
    pub(crate) bleach: Bleach,
    // The others.
    pub(crate) rng: Rng,
    /// How the rest of these changes with time.
    pub(crate) course: Option<Box<crate::course::Way>>,
}

impl Way {
    /// Whether this frame is lost.
    #[inline]
    pub(crate) fn loses(&mut self) -> bool {
        self.loss_ppb > 0 && self.rng.below(1_000_000_000) < self.loss_ppb
    }
    /// Becomes what it is for a frame whose first bit leaves at `begin` and its last at `end`; `false` where the link is down then, and
    /// the frame is lost.
    #[inline]
    pub(crate) fn is_up(&mut self, begin: Time, end: Time) -> bool {
        match &mut self.course {
            None => true,
            Some(course) => {
                (self.delay, self.loss_ppb) = course.at(end);
                course.is_up(begin, end + self.delay)
            }
        }
    }
    /// The least delay that it ever has.
    pub(crate) fn least_delay(&self) -> Span {
        self.course.as_ref().map_or(self.delay, |course| course.least_delay())
    }
    /// Does to a packet's ECN field what the link does.
    #[inline]
    pub(crate) fn bleaches(&self, packet: &mut Packet) {
        if self.bleach == Bleach::No {
            return;
        }
        if let L3::Ipv4(ip) = &mut packet.l3 {
            match self.bleach {
                Bleach::Ect => ip.tos &= !3,
                Bleach::Ce if ip.tos & 3 == 3 => ip.tos = ip.tos & !3 | 2,
                _ => {}
            }
            packet.tc.ce_counted &= packet.tos() & 3 == 3;
        } else if let L3::Ipv6(ip) = &mut packet.l3 {
            match self.bleach {
                Bleach::Ect => ip.traffic_class &= !3,
                Bleach::Ce if ip.traffic_class & 3 == 3 => ip.traffic_class = ip.traffic_class & !3 | 2,
                _ => {}
            }
            packet.tc.ce_counted &= packet.tos() & 3 == 3;
        }
    }
}

/// One direction of a point-to-point link.
#[repr(C)]
pub(crate) struct Wire {
    // With each packet, in this order: what lies together comes into the cache together.
    /// Host and interface that its frames come to: a card that only receives is not looked at.
    pub(crate) to: (u32, u32),
    pub(crate) framing: Framing,
    /// It joins two machines alone and has a delay: its frames come at a place of their own in the order of events.
    pub(crate) far: bool,
    /// Its other end is on another core, which fetches what is under way.
    pub(crate) leaves: bool,
    /// Frames under way with their arrivals and the places in the order of events reserved for them.
    pub(crate) in_flight: VecDeque<(Time, Seq, Packet)>,
    pub(crate) way: Way,
}

impl Wire {
    /// In place of one that is elsewhere.
    pub(crate) fn absent() -> Wire {
        let rng = Rng::named(0, "");
        let way = Way { delay: Span::ZERO, loss_ppb: 0, bleach: Bleach::No, rng, course: None };
        let (framing, in_flight) = (Framing::default(), VecDeque::new());
        Wire { to: (NONE, 0), framing, far: false, leaves: false, in_flight, way }
    }
    /// Takes a frame whose last bit leaves at `end`. `wire`: its own number.
    // Apart, so that the entry is made in the queue itself. Made elsewhere and moved there by `push_back` it is written by words and read
    // by twos, which the processor waits for (store forwarding): 6 ns a packet.
    #[inline(never)]
    pub(crate) fn carry(&mut self, wire: u32, mut packet: Packet, end: Time, queue: &mut Queue) {
        self.way.bleaches(&mut packet);
        let arrival = end + self.way.delay;
        let seq = if self.far { Seq::of_wire(wire) } else { queue.reserve() };
        if self.in_flight.is_empty() && !self.leaves {
            queue.schedule_at(arrival, seq, Event::Arrive(wire));
        }
        self.in_flight.push_back((arrival, seq, packet));
    }
}

impl Wire {
    /// A frame comes from another core.
    pub(crate) fn comes(&mut self, wire: u32, packet: Packet, arrival: Time, queue: &mut Queue) {
        let seq = Seq::of_wire(wire);
        if self.in_flight.is_empty() {
            queue.schedule_at(arrival, seq, Event::Arrive(wire));
        }
        self.in_flight.push_back((arrival, seq, packet));
    }
}

/// A segment that several cards share.
pub(crate) struct Segment {
    pub(crate) name: String,
    pub(crate) nics: Vec<u32>,
    /// How the frames of each card travel: delay, loss in parts per billion, what becomes of ECN.
    pub(crate) ways: Vec<(Span, u32, Bleach)>,
    /// From one card to another, by their places, where a frame has gone from the one to the other.
    pub(crate) wires: BTreeMap<(u32, u32), u32>,
    /// The places of the cards by their addresses, as they were after so many commands.
    pub(crate) by_mac: BTreeMap<[u8; 6], Vec<u32>>,
    pub(crate) by_mac_of: Option<u64>,
    /// Places of cards that hear every frame, as of then.
    pub(crate) hear_all: Vec<u32>,
    pub(crate) framing: Framing,
    pub(crate) busy_until: Time,
    /// A card is taking a frame from its discipline right now.
    pub(crate) serving: bool,
    pub(crate) free_pending: bool,
    pub(crate) line: VecDeque<u32>,
}

/// All cards, wires and segments, by number.
#[derive(Default)]
pub(crate) struct Cables {
    pub(crate) nics: Vec<Nic>,
    pub(crate) wires: Vec<Wire>,
    pub(crate) segments: Vec<Segment>,
    /// Of wires, which segments make as they need them.
    pub(crate) numbers: Numbers,
    /// Packets over links so far.
    pub(crate) hops: u64,
    /// Commands that machines have carried out so far: any of them may have changed a card's address.
    pub(crate) commands: u64,
}

impl Cables {
    /// A card that is plugged into nothing.
    pub(crate) fn add(&mut self, host: u32, ifindex: u32) -> u32 {
        self.nics.push(Nic::unplugged(host, ifindex));
        self.nics.len() as u32 - 1
    }
    /// Begins to count anew what cards measure.
    pub(crate) fn end_warmup(&mut self) {
        for nic in &mut self.nics {
            nic.sojourn = Histogram::default();
            if let Some(watch) = &mut nic.watch {
                **watch = Watch::default();
            }
        }
    }
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
