//! What is counted of each flow, in constant time per packet.

use crate::histogram::Histogram;
use crate::results::{Extra, FlowResult, Passage, PlaceCount, TcpResult};
use crate::spec::{FlowId, HostId};
use penstock_model::{Span, Time};

/// What a packet is to its flow. `Skb::flow` carries flow and part: 0 for packets of no flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Part {
    /// Payload on its way from the flow's source to its sink: this is counted.
    Data,
    /// From the source without payload: SYN, pure ACK.
    Control,
    /// From the sink: ACKs, replies.
    Back,
}

/// The number that a packet carries for its flow and part.
#[inline]
pub(crate) const fn tag(flow: u32, part: Part) -> u32 {
    1 + 3 * flow + part as u32
}
/// Flow and part of a packet.
#[inline]
pub(crate) const fn untag(tag: u32) -> Option<(u32, Part)> {
    if tag == 0 {
        return None;
    }
    let part = match (tag - 1) % 3 {
        0 => Part::Data,
        1 => Part::Control,
        _ => Part::Back,
    };
    Some(((tag - 1) / 3, part))
}

/// `Skb::seq` of a retransmission has this bit.
pub(crate) const RETRANSMISSION: u64 = 1 << 63;

/// Counters of one flow.
#[repr(C)]
pub(crate) struct Flow {
    // With each packet, in this order: what lies together comes into the cache together.
    /// Sockets at the source and at the sink, `NONE` where there is none (yet).
    pub(crate) socks: [u32; 2],
    /// Packets made before are of the warm-up: neither sent nor received nor lost.
    pub(crate) since: Time,
    pub(crate) sent_packets: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) retransmitted_packets: u64,
    pub(crate) received_packets: u64,
    pub(crate) received_bytes: u64,
    /// What arrived, whenever it was made: rates and delays are those of what arrives.
    pub(crate) arrived_packets: u64,
    pub(crate) goodput_bytes: u64,
    pub(crate) last_received: Time,
    last_transit: i64,
    /// Jitter times 16, as RFC 3550 appendix A.8 keeps it.
    jitter_16: i64,
    /// Sum of the jitter after each packet but the first, and the greatest, ns.
    jitter_sum: i64,
    jitter_max: i64,
    owd_sum: i64,
    pub(crate) marked_packets: u64,
    pub(crate) first_received: Time,
    pub(crate) owd: Histogram,
    pub(crate) started: Option<Time>,
    // The others.
    /// Whether it began while the run warmed up.
    pub(crate) early: bool,
    pub(crate) name: String,
    pub(crate) group: String,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) proto: &'static str,
    pub(crate) completed: Option<Time>,
    pub(crate) lost_packets: u64,
    /// Where its packets were lost: places in the table of drops.
    pub(crate) lost_at: Vec<(u32, u64)>,
    pub(crate) copies: Fates,
    pub(crate) fragments: Fates,
    pub(crate) tcp: Option<TcpResult>,
    /// What it lost and where it was marked, by host and interface.
    pub(crate) places: Vec<(u32, u32, PlaceCount)>,
    /// How long each of its transfers took, where it makes several.
    pub(crate) transfers: Histogram,
    /// Each datagram by its number from 1, where they are kept.
    pub(crate) passages: Option<Vec<Passage>>,
    /// Round trips of an echo probe.
    pub(crate) rtts: Vec<(Time, Span)>,
}

/// What became of packets that were made beside those that were sent.
#[derive(Clone, Copy, Default)]
pub(crate) struct Fates {
    pub(crate) received: u64,
    pub(crate) lost: u64,
}

impl Flow {
    pub(crate) fn new(name: String, from: u32, to: u32, proto: &'static str) -> Flow {
        Flow {
            name,
            group: String::new(),
            from,
            to,
            proto,
            socks: [u32::MAX; 2],
            started: None,
            early: false,
            completed: None,
            sent_packets: 0,
            sent_bytes: 0,
            received_packets: 0,
            received_bytes: 0,
            lost_packets: 0,
            since: Time::ZERO,
            lost_at: Vec::new(),
            copies: Fates::default(),
            fragments: Fates::default(),
            arrived_packets: 0,
            marked_packets: 0,
            retransmitted_packets: 0,
            goodput_bytes: 0,
            first_received: Time::ZERO,
            last_received: Time::ZERO,
            owd: Histogram::default(),
            last_transit: 0,
            jitter_16: 0,
            jitter_sum: 0,
            jitter_max: 0,
            owd_sum: 0,
            rtts: Vec::new(),
            tcp: None,
            places: Vec::new(),
            transfers: Histogram::default(),
            passages: None,
        }
    }
    /// A datagram of this number is sent.
    pub(crate) fn departs(&mut self, seq: u64, bytes: u32, now: Time) {
        if let Some(all) = &mut self.passages
            && seq == all.len() as u64 + 1
        {
            all.push(Passage { bytes, sent: now, received: None });
        }
    }
    /// A datagram of this number is delivered.
    pub(crate) fn arrives(&mut self, seq: u64, now: Time) {
        let Some(all) = &mut self.passages else { return };
        if let Some(passage) = seq.checked_sub(1).and_then(|i| all.get_mut(i as usize)) {
            passage.received = passage.received.or(Some(now));
        }
    }
    /// What is counted at a device.
    pub(crate) fn at(&mut self, host: u32, ifindex: u32) -> &mut PlaceCount {
        let found = self.places.iter().position(|p| (p.0, p.1) == (host, ifindex));
        let at = found.unwrap_or_else(|| {
            self.places.push((host, ifindex, PlaceCount::default()));
            self.places.len() - 1
        });
        &mut self.places[at].2
    }
    /// Counts from now on. What is under way will be received all the same.
    pub(crate) fn end_warmup(&mut self, now: Time) {
        let (group, socks, started) = (std::mem::take(&mut self.group), self.socks, self.started);
        let name = std::mem::take(&mut self.name);
        let (completed, passages) = (self.completed, self.passages.take());
        *self = Flow::new(name, self.from, self.to, self.proto);
        self.group = group;
        self.socks = socks;
        self.started = started.map(|_| now);
        self.early = started.is_some();
        self.completed = completed;
        self.passages = passages;
        self.since = now + Span::from_ns(1);
    }
    /// A record in which nothing is counted yet, of packets that are made since the same moment.
    pub(crate) fn blank(&self) -> Flow {
        Flow { since: self.since, ..Flow::new(String::new(), self.from, self.to, self.proto) }
    }
    /// In place of a flow of which nothing is known here.
    pub(crate) fn unknown() -> Flow {
        Flow::new(String::new(), u32::MAX, u32::MAX, "")
    }
    /// Takes what became of its packets on their way off into a record of its own: any core may count that.
    pub(crate) fn take_fates(&mut self) -> Flow {
        let mut fates = self.blank();
        std::mem::swap(&mut fates.lost_packets, &mut self.lost_packets);
        std::mem::swap(&mut fates.lost_at, &mut self.lost_at);
        std::mem::swap(&mut fates.copies, &mut self.copies);
        std::mem::swap(&mut fates.fragments, &mut self.fragments);
        std::mem::swap(&mut fates.places, &mut self.places);
        fates
    }
    /// Counts what another record has counted so. `slots`: where its places of loss stand in the table of drops.
    pub(crate) fn add_fates(&mut self, other: Flow, slots: &[u32]) {
        self.lost_packets += other.lost_packets;
        for (slot, packets) in other.lost_at {
            let slot = slots[slot as usize];
            match self.lost_at.iter_mut().find(|at| at.0 == slot) {
                Some(at) => at.1 += packets,
                None => self.lost_at.push((slot, packets)),
            }
        }
        for (mine, theirs) in [(&mut self.copies, other.copies), (&mut self.fragments, other.fragments)] {
            mine.received += theirs.received;
            mine.lost += theirs.lost;
        }
        for (host, ifindex, count) in other.places {
            let at = self.at(host, ifindex);
            at.lost_packets += count.lost_packets;
            at.lost_bytes += count.lost_bytes;
            at.marked_packets += count.marked_packets;
            at.marked_bytes += count.marked_bytes;
        }
    }
    /// Takes what the sender's side knows off into a record of its own.
    pub(crate) fn take_sending(&mut self) -> Flow {
        let mut sending = self.blank();
        sending.swap_sending(self);
        sending
    }
    /// Exchanges what the sender's side knows.
    pub(crate) fn swap_sending(&mut self, other: &mut Flow) {
        use std::mem::swap;
        swap(&mut self.socks[0], &mut other.socks[0]);
        swap(&mut self.started, &mut other.started);
        swap(&mut self.early, &mut other.early);
        swap(&mut self.completed, &mut other.completed);
        swap(&mut self.sent_packets, &mut other.sent_packets);
        swap(&mut self.sent_bytes, &mut other.sent_bytes);
        swap(&mut self.retransmitted_packets, &mut other.retransmitted_packets);
        swap(&mut self.tcp, &mut other.tcp);
        swap(&mut self.transfers, &mut other.transfers);
        swap(&mut self.rtts, &mut other.rtts);
    }
    /// A packet has its fate: it is lost at a place of the table of drops.
    pub(crate) fn lost_at(&mut self, slot: u32, packets: u64) {
        self.lost_packets += packets;
        match self.lost_at.iter_mut().find(|at| at.0 == slot) {
            Some(at) => at.1 += packets,
            None => self.lost_at.push((slot, packets)),
        }
    }
    /// The source sends so many frames with `len` bytes together.
    #[inline]
    pub(crate) fn sent(&mut self, frames: u32, len: u32, retransmission: bool, now: Time) {
        if now < self.since {
            return;
        }
        if self.sent_packets == 0 {
            self.started = self.started.or(Some(now));
        }
        self.sent_packets += u64::from(frames);
        self.sent_bytes += u64::from(len);
        self.retransmitted_packets += if retransmission { u64::from(frames) } else { 0 };
    }
    /// A frame reached the sink: of what is measured of such.
    #[inline]
    pub(crate) fn arrived(&mut self, len: u32, ce: bool, created: Time, now: Time) {
        let transit = (now - created).as_ns();
        if self.arrived_packets == 0 {
            self.first_received = now;
        } else {
            //= RFC 3550 appendix A.8
            let d = (transit - self.last_transit).abs();
            self.jitter_16 += d - ((self.jitter_16 + 8) >> 4);
            let jitter = self.jitter_16 >> 4;
            self.jitter_sum += jitter;
            self.jitter_max = self.jitter_max.max(jitter);
        }
        self.last_transit = transit;
        self.last_received = now;
        self.arrived_packets += 1;
        self.received_bytes += u64::from(len);
        self.marked_packets += u64::from(ce);
        self.owd.record(transit as u64);
        self.owd_sum += transit;
    }
    /// Sum and count of the one-way delays so far, ns.
    pub(crate) fn owd_total(&self) -> (i64, i64) {
        (self.owd_sum, self.arrived_packets as i64)
    }
    /// Interarrival jitter so far.
    pub(crate) fn jitter(&self) -> Span {
        Span::from_ns(self.jitter_16 >> 4)
    }
    pub(crate) fn result(&self, id: u32) -> FlowResult {
        FlowResult {
            id: FlowId(id),
            name: self.name.clone(),
            group: self.group.clone(),
            from: HostId(self.from),
            to: HostId(self.to),
            proto: self.proto,
            started: self.started,
            early: self.early,
            completed: self.completed,
            sent_packets: self.sent_packets,
            sent_bytes: self.sent_bytes,
            received_packets: self.received_packets,
            received_bytes: self.received_bytes,
            lost_packets: self.lost_packets,
            marked_packets: self.marked_packets,
            retransmitted_packets: self.retransmitted_packets,
            goodput_bytes: self.goodput_bytes,
            arrived_packets: self.arrived_packets,
            in_flight_packets: 0,
            copies: Extra::default(),
            fragments: Extra::default(),
            losses: Vec::new(),
            received_span: (self.arrived_packets > 0).then_some((self.first_received, self.last_received)),
            owd: self.owd.clone(),
            jitter: self.jitter(),
            jitter_mean: Span::from_ns(self.jitter_sum / (self.arrived_packets as i64 - 1).max(1)),
            jitter_max: Span::from_ns(self.jitter_max),
            tcp: self.tcp,
            places: Vec::new(),
            transfers: self.transfers.clone(),
            passages: self.passages.clone().unwrap_or_default(),
            rtts: self.rtts.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_both_ways() {
        assert_eq!(untag(0), None);
        for flow in [0, 1, 77] {
            for part in [Part::Data, Part::Control, Part::Back] {
                assert_eq!(untag(tag(flow, part)), Some((flow, part)));
            }
        }
    }

    #[test]
    fn jitter_is_rfc_3550_s() {
        let mut flow = Flow::new(String::new(), 0, 0, "udp");
        let mut exact = 0.0f64;
        let mut last: Option<i64> = None;
        for i in 0..200i64 {
            let transit = 1_000_000 + (i * 7919) % 50_000;
            let created = Time::from_ns(i * 10_000_000);
            flow.arrived(100, false, created, created + Span::from_ns(transit));
            if let Some(before) = last {
                let d = (transit - before).abs() as f64;
                exact += (d - exact) / 16.0;
            }
            last = Some(transit);
        }
        assert!((flow.jitter().as_ns() as f64 - exact).abs() < 10.0);
    }

    /// The last value forgets what was 16 packets before: mean and greatest do not.
    #[test]
    fn jitter_that_is_over_is_still_known() {
        let mut flow = Flow::new(String::new(), 0, 0, "udp");
        let (mut exact, mut sum, mut most) = (0.0f64, 0.0, 0.0f64);
        for i in 0..400i64 {
            // A burst of jitter, then calm.
            let transit = 1_000_000 + if (100..140).contains(&i) { (i % 2) * 80_000_000 } else { 0 };
            let created = Time::from_ns(i * 20_000_000);
            flow.arrived(100, false, created, created + Span::from_ns(transit));
            if i > 0 {
                let d = if (100..=140).contains(&i) && i != 100 { 80e6 } else { 0.0 };
                exact += (d - exact) / 16.0;
                (sum, most) = (sum + exact, most.max(exact));
            }
        }
        let result = flow.result(0);
        assert!(result.jitter.as_ns() < 100, "{:?}", result.jitter);
        assert!(
            (result.jitter_max.as_ns() as f64 / most - 1.0).abs() < 1e-3,
            "{:?} {most}",
            result.jitter_max
        );
        assert!(
            (result.jitter_mean.as_ns() as f64 / (sum / 399.0) - 1.0).abs() < 1e-3,
            "{:?}",
            result.jitter_mean
        );
    }
}
