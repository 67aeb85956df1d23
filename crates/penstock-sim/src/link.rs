//! Network cards and the wires between them.
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
use crate::spec::{Bleach, Framing};
use penstock_model::{Rate, Rng, Span, Time};
use penstock_packet::{L3, Packet};
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
    /// Frames between two interrupts that tell of sent ones.
    pub(crate) tx_frames: u32,
    // Variables
    /// The wire is taken up to here by the last frame.
    pub(crate) busy_until: Time,
    /// Is taking a frame from the discipline right now.
    pub(crate) sending: bool,
    /// What frames on a link without a rate cost.
    pub(crate) toll: crate::still::Toll,
    /// A `TxDone` is under way.
    pub(crate) tx_pending: bool,
    /// Stands in line for its segment.
    pub(crate) in_line: bool,
    /// Taken from the discipline, not yet on the wire.
    pub(crate) queue: VecDeque<Packet>,
    /// With a ring: the frame on the wire, whose memory is its socket's until its sending is known (TX completion).
    pub(crate) on_wire: Option<crate::socket::Owed>,
    /// Frames that are sent, but of which the driver has not been told.
    pub(crate) sent: Vec<crate::socket::Owed>,
    pub(crate) watchdog: Timer,
    /// How long frames waited for it.
    pub(crate) sojourn: Histogram,
    /// What it sends and loses, packet by packet, where somebody asks for that.
    pub(crate) watch: Option<Box<crate::watch::Watch>>,
}

impl Nic {
    /// Time that a frame with `len` bytes on the wire takes from now on.
    #[inline]
    pub(crate) fn takes(&mut self, len: u32, now: Time) -> Span {
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
    /// Whether its frames wait in the discipline alone, each takes time on the wire, and nobody looks at them.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.ring == 0 && self.rate.is_some() && self.queue.is_empty() && self.watch.is_none()
    }
    /// Whether frames stay in their sockets' memory until they are sent.
    #[inline]
    pub(crate) fn completes(&self) -> bool {
        self.ring > 0 && self.rate.is_some() && matches!(self.port, Port::Wire(_))
    }
}

/// How one end's frames travel.
pub(crate) struct Way {
    pub(crate) delay: Span,
    pub(crate) loss_ppb: u32,
    pub(crate) bleach: Bleach,
    pub(crate) rng: Rng,
}

impl Way {
    /// Whether this frame is lost.
    #[inline]
    pub(crate) fn loses(&mut self) -> bool {
        self.loss_ppb > 0 && self.rng.below(1_000_000_000) < self.loss_ppb
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
        }
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

impl Wire {
    /// Takes a frame whose last bit leaves at `end`. `wire`: its own number.
    // Apart, so that the entry is made in the queue itself. Made elsewhere and moved there by `push_back` it is written by words and read
    // by twos, which the processor waits for (store forwarding): 6 ns a packet.
    #[inline(never)]
    pub(crate) fn carry(&mut self, wire: u32, mut packet: Packet, end: Time, queue: &mut Queue) {
        self.way.bleaches(&mut packet);
        let arrival = end + self.way.delay;
        let seq = queue.reserve();
        if self.in_flight.is_empty() {
            queue.schedule_at(arrival, seq, Event::Arrive(wire));
        }
        self.in_flight.push_back((arrival, seq, packet));
    }
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
    /// Whether frames take no time, and whether what they ask for beside their own time costs any: told by `cost`, and asked
    /// with each frame.
    free: bool,
    counts_work: bool,
    pub(crate) rng: Rng,
    /// Frames waiting with the interface they came in by; the first is being served.
    pub(crate) backlog: VecDeque<(u32, Packet)>,
    /// Time spent on frames so far.
    pub(crate) busy: Span,
    /// Timer interrupts per second.
    pub(crate) hz: u32,
    /// The calls of programs that were begun or wait for their turn are over then.
    pub(crate) calls_until: Time,
    /// What packets that have passed still cost is over then.
    pub(crate) works_until: Time,
}

/// How often a frame's time is looked at anew for the interrupts that come while others are served.
const INTERRUPTED_MOST: u32 = 1000;
/// `net.core.netdev_max_backlog`, packets.
pub(crate) const NETDEV_MAX_BACKLOG: usize = 1000;

impl Cpu {
    /// A processor with nothing to do. `hz`: its timer interrupts per second.
    pub(crate) fn new(cost: crate::spec::Cost, rng: Rng, hz: u32) -> Cpu {
        let mut cpu = Cpu {
            cost: crate::spec::Cost::ZERO,
            free: true,
            counts_work: false,
            rng,
            backlog: VecDeque::new(),
            busy: Span::ZERO,
            hz,
            calls_until: Time::ZERO,
            works_until: Time::ZERO,
        };
        cpu.set_cost(cost);
        cpu
    }
    /// What it spends from now on.
    pub(crate) fn set_cost(&mut self, cost: crate::spec::Cost) {
        self.counts_work = cost.classify > Span::ZERO || cost.clock > Span::ZERO;
        self.free = cost.byte_ps == 0 && cost.packet.is_zero() && !self.counts_work;
        self.cost = cost;
    }
    /// Time for this frame, from `now`, with the timer interrupts that come meanwhile.
    pub(crate) fn service(&mut self, len: u32, now: Time) -> Span {
        let bytes = (u64::from(len) * self.cost.byte_ps / 1000) as i64;
        let own = self.cost.packet.draw(&mut self.rng) + Span::from_ns(bytes);
        self.busy += own;
        let work = own + (self.works_until - now).max(Span::ZERO);
        if self.cost.tick == Span::ZERO {
            return work;
        }
        let (before, mut whole) = (self.interrupts(now), work);
        for _ in 0..INTERRUPTED_MOST {
            let longer = work + self.cost.tick * (self.interrupts(now + whole) - before);
            if longer == whole {
                break;
            }
            whole = longer;
        }
        whole
    }
    /// Whether what packets ask for beside their own time costs any.
    #[inline]
    pub(crate) fn counts_work(&self) -> bool {
        self.counts_work
    }
    /// Work that was done at `now`: frames to come wait for its end.
    pub(crate) fn works(&mut self, work: penstock_sched::Work, now: Time) {
        let times = |cost: Span, n: u64| cost * i64::try_from(n).unwrap_or(i64::MAX);
        let takes = times(self.cost.classify, work.steps) + times(self.cost.clock, work.clock_reads);
        self.works_until = self.works_until.max(now) + takes;
        self.busy += takes;
    }
    /// A program's call that sends: when it is over. Calls are served in the order in which they are made.
    pub(crate) fn call(&mut self, now: Time) -> Time {
        self.calls_until = self.calls_until.max(now) + self.cost.send;
        self.busy += self.cost.send;
        self.calls_until
    }
    /// Timer interrupts until `now`.
    fn interrupts(&self, now: Time) -> i64 {
        let (ns, hz, second) = (now.as_ns(), i64::from(self.hz), 1_000_000_000);
        ns / second * hz + ns % second * hz / second
    }
    /// Time spent on frames and timer interrupts until `now`.
    pub(crate) fn spent(&self, now: Time) -> Span {
        self.busy + self.cost.tick * self.interrupts(now)
    }
    /// Whether frames take no time.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cpu(packet_us: i64, hz: u32) -> Cpu {
        let packet = penstock_model::traffic::Dist::Constant(Span::from_us(packet_us));
        // 11.9 us an interrupt: a Pentium III of 550 MHz, by the study of 2001.
        let cost = crate::spec::Cost { packet, tick: Span::from_ns(11_900), ..crate::spec::Cost::ZERO };
        Cpu::new(cost, Rng::named(1, "cpu"), hz)
    }

    #[test]
    fn frames_wait_for_timer_interrupts() {
        // 10000 a second take 11.9 %: a millisecond of work lasts 1/(1 - 0.119) ms.
        let service = cpu(1000, 10_000).service(100, Time::ZERO);
        assert_eq!(service, Span::from_ns(1_000_000 + 11 * 11_900));
        assert_eq!(cpu(1000, 100).service(100, Time::ZERO), Span::from_ms(1));
    }

    /// Table 2 and figure 19 of Magaña, Izkue and Villadangos 2001, in percent of the processor over rest at 100 Hz: 0.9 at 1024 Hz
    /// (1.2 with jiffies), 11.8 at 10000 Hz; scheduling adds 6 at 100 Hz and 7 at 10000, together 19.7.
    #[test]
    fn the_clock_studys_processor() {
        let second = Time::from_ns(1_000_000_000);
        let share = |cpu: &Cpu| cpu.spent(second).as_secs_f64() * 100.0;
        let rest = |hz| share(&cpu(19, hz));
        let near = |got: f64, want: f64, within: f64| assert!((got - want).abs() < within, "{got} {want}");
        near(rest(1024) - rest(100), 0.9, 0.3);
        near(rest(10_000) - rest(100), 11.8, 0.1);
        // Some 7.5 Mbit/s of 1400 bytes and 2 Mbit/s of 100: 3170 packets a second of 19 us.
        let loaded = |hz| {
            let mut cpu = cpu(19, hz);
            for _ in 0..3170 {
                cpu.service(100, Time::ZERO);
            }
            share(&cpu)
        };
        near(loaded(100) - rest(100), 6.0, 0.1);
        near(loaded(10_000) - rest(100), 19.7, 2.0);
    }

    #[test]
    fn frames_take_their_time() {
        let rate = |bits| Some(Rate::from_bit_per_s(bits));
        assert_eq!(serialisation(1538, rate(100_000_000)), Span::from_ns(123_040));
        assert_eq!(serialisation(1, rate(3_000_000_000)), Span::from_ns(3));
        assert_eq!(serialisation(1538, None), Span::ZERO);
    }
}
