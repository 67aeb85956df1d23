//! Cards: they ask their disciplines for frames and put them on the wire.

use crate::event::Event;
use crate::flow::{Part, untag};
use crate::index::NONE;
use crate::link::{Port, serialisation};
use crate::net::Net;
use crate::sock::Owed;
use penstock_host::{Host, Transmitted};
use penstock_model::Time;
use penstock_packet::{Cutter, Packet};
use penstock_sched::Xmit;

impl Net {
    #[inline]
    pub(crate) fn kick_device(&mut self, host: u32, ifindex: u32) {
        // A device that commands have made has no card.
        let nic = self.machines[host as usize].nics.get(ifindex as usize);
        if let Some(&nic) = nic.filter(|&&n| n != NONE) {
            self.kick(nic);
        }
    }
    /// The card has something to send.
    #[inline]
    pub(crate) fn kick(&mut self, n: u32) {
        let now = self.queue.now();
        if self.tapped {
            self.mark_turn(n);
        }
        let nic = &mut self.cables.nics[n as usize];
        match nic.port {
            // A frame that leaves its host may make TCP send the next: it waits until the card has taken the first.
            Port::Wire(_) if nic.sending => {}
            // The wire may become free at this very moment: then the event that says so is still to come, and sends.
            Port::Wire(_) if nic.busy_until > now || nic.tx_pending => {
                self.fill_ring(n);
                self.await_wire(n);
            }
            Port::Wire(wire) => self.transmit(n, wire),
            Port::Segment(s) => self.join_line(s, n),
            Port::Nothing => {
                let (host, ifindex) = (nic.host, nic.ifindex);
                if self.machines[host as usize].host.device(ifindex).is_none_or(|d| d.runs_itself()) {
                    return;
                }
                while let Some(packet) = self.next_frame(n) {
                    self.lost_on(host, ifindex, packet, "link", "no-carrier");
                }
                self.arm_watchdog(n);
            }
        }
    }
    /// A packet that comes from another device is put on the qdisc of `ifindex`, and all is done that follows from it.
    #[inline]
    pub(crate) fn pass_on(&mut self, host: u32, ifindex: u32, mut packet: Packet) {
        let card = self.card_of(host, ifindex);
        if let Some((n, wire)) = card
            && self.passes_by(n, host, ifindex, &mut packet)
        {
            self.send_one(n, wire, packet);
            if !self.todo.asked.is_empty() {
                self.settle(host);
            }
            return;
        }
        if self.on_host(host, |h, cx| h.queue(ifindex, packet, cx)) {
            match card {
                Some((n, _)) => self.kick(n),
                None => self.kick_device(host, ifindex),
            }
        }
        if !self.todo.asked.is_empty() || self.guard.is_near() {
            self.settle(host);
        }
    }
    /// A packet that is made on this machine is put on the qdisc of `ifindex`, which is run.
    #[inline]
    pub(crate) fn send_on(&mut self, host: u32, ifindex: u32, mut packet: Packet) -> Transmitted {
        let card = self.card_of(host, ifindex);
        if let Some((n, wire)) = card
            && self.passes_by(n, host, ifindex, &mut packet)
        {
            self.send_one(n, wire, packet);
            return Transmitted { answer: Xmit::Success, paced: false };
        }
        let (kicks, sent) = self.on_host(host, |h, cx| h.queue_own(ifindex, packet, cx));
        if kicks {
            match card {
                Some((n, _)) => self.kick(n),
                None => self.kick_device(host, ifindex),
            }
        }
        sent
    }
    /// The card of a device that stands at a wire of its own, and that wire.
    #[inline(always)] // Into the two that call it.
    fn card_of(&self, host: u32, ifindex: u32) -> Option<(u32, u32)> {
        let n = *self.machines[host as usize].nics.get(ifindex as usize)?;
        match self.cables.nics.get(n as usize)?.port {
            Port::Wire(wire) => Some((n, wire)),
            Port::Segment(_) | Port::Nothing => None,
        }
    }
    /// Whether a packet passes the qdisc by on its way to a card that can send it at once.
    #[inline(always)] // Into the two that call it.
    fn passes_by(&mut self, n: u32, host: u32, ifindex: u32, packet: &mut Packet) -> bool {
        let now = self.queue.now();
        let nic = &self.cables.nics[n as usize];
        let idle = nic.is_plain() && !nic.sending && !nic.tx_pending && nic.busy_until <= now;
        self.guard.step();
        idle && !self.tapped
            && !self.guard.is_near()
            && self.machines[host as usize].host.passes_by(ifindex, packet, now)
    }
    /// Sees to it that the card is asked again when its wire is free, if there is anything more to send.
    #[inline(always)] // Of those that call it one counts.
    fn await_wire(&mut self, n: u32) {
        let nic = &mut self.cables.nics[n as usize];
        if nic.tx_pending {
            return;
        }
        let more = nic.on_wire.is_some()
            || !nic.queue.is_empty()
            || asks_again(&self.machines[nic.host as usize].host, nic.ifindex);
        if more {
            nic.tx_pending = true;
            self.queue.schedule(nic.busy_until, Event::TxDone(n));
        }
    }
    /// The wire of this card is free.
    pub(crate) fn tx_done(&mut self, n: u32) {
        let nic = &mut self.cables.nics[n as usize];
        nic.tx_pending = false;
        let host = nic.host;
        if let Some(owed) = nic.on_wire.take() {
            nic.sent.push(owed);
            if let Some(counted) = &mut nic.bql {
                counted.sent += std::mem::take(&mut counted.on_wire);
            }
            // The driver is told after so many frames, or when the ring has run empty.
            if nic.sent.len() as u32 >= nic.tx_frames || nic.queue.is_empty() {
                // What TCP sends then waits for the wire below, which has room for one frame.
                nic.sending = true;
                self.free_sent(n);
                self.cables.nics[n as usize].sending = false;
            }
        }
        let nic = &self.cables.nics[n as usize];
        if let Port::Wire(wire) = nic.port {
            self.transmit(n, wire);
        }
        self.settle(host);
    }
    /// Puts frames on the wire until it is busy or nothing is left.
    #[inline]
    fn transmit(&mut self, n: u32, wire: u32) {
        if self.cables.nics[n as usize].is_plain() {
            self.transmit_one(n, wire);
        } else {
            self.transmit_all(n, wire);
        }
    }
    /// The same for a card whose frames all come from its discipline and take time: one frame.
    #[inline(always)] // Into the two that call it.
    fn transmit_one(&mut self, n: u32, wire: u32) {
        if self.guard.is_over() {
            return;
        }
        let nic = &mut self.cables.nics[n as usize];
        let (host, ifindex) = (nic.host, nic.ifindex);
        nic.sending = true;
        let Some(packet) = self.on_host(host, |h, cx| h.dequeue(ifindex, cx)) else {
            self.cables.nics[n as usize].sending = false;
            self.arm_watchdog(n);
            return;
        };
        self.send_one(n, wire, packet);
    }
    /// Such a card puts a frame on the wire.
    #[inline(always)] // Into those that call it.
    fn send_one(&mut self, n: u32, wire: u32, mut packet: Packet) {
        if packet.is_noted() && packet.gso().is_some() {
            return self.send_cut(n, wire, packet);
        }
        let now = self.queue.now();
        self.note_departure(n, &mut packet);
        let nic = &mut self.cables.nics[n as usize];
        let host = nic.host;
        nic.sending = true;
        self.left_host(host, &packet);
        let (nic, w) = (&mut self.cables.nics[n as usize], &mut self.cables.wires[wire as usize]);
        nic.sending = false;
        let end = now + serialisation(w.framing.of(&packet), nic.rate);
        nic.busy_until = end;
        self.cables.hops += 1;
        if w.way.loses() {
            self.lost_at(host, packet, "link", "loss");
        } else {
            w.carry(wire, packet, end, &mut self.queue);
        }
        self.await_wire(n);
    }
    /// Such a card is given a super-packet: what it cuts of it waits in the card.
    #[cold]
    fn send_cut(&mut self, n: u32, wire: u32, packet: Packet) {
        self.cables.nics[n as usize].sending = true;
        let first = self.taken(n, packet);
        let nic = &mut self.cables.nics[n as usize];
        nic.queue.push_front(first);
        nic.sending = false;
        self.transmit_all(n, wire);
    }
    fn transmit_all(&mut self, n: u32, wire: u32) {
        let now = self.queue.now();
        while !self.guard.is_over() {
            self.cables.nics[n as usize].sending = true;
            let packet = self.next_frame(n);
            let nic = &mut self.cables.nics[n as usize];
            nic.sending = false;
            let Some(packet) = packet else {
                self.arm_watchdog(n);
                break;
            };
            let framing = self.cables.wires[wire as usize].framing;
            let takes = nic.takes(framing.of(&packet), now);
            nic.busy_until = now + takes;
            if nic.completes() {
                nic.on_wire = Some(Owed::of(&packet));
                if let Some(counted) = &mut nic.bql {
                    counted.on_wire = packet.len;
                }
            }
            if let Some(watch) = &mut nic.watch {
                watch.sends(&packet, now, now + takes);
            }
            self.put_on_wire(n, wire, packet, now + takes);
            if takes.as_ns() > 0 {
                self.fill_ring(n);
                self.await_wire(n);
                break;
            }
        }
        if self.cables.nics[n as usize].is_virtual() {
            self.receive_soon(n);
        }
    }
    /// What a cable without a rate has carried has been received: it is nobody's memory here any more.
    #[inline]
    pub(crate) fn received(&mut self, n: u32) {
        if !self.cables.nics[n as usize].sent.is_empty() {
            self.free_sent(n);
        }
    }
    fn free_sent(&mut self, n: u32) {
        let host = self.cables.nics[n as usize].host;
        self.count_sent(n);
        let mut sent = std::mem::take(&mut self.cables.nics[n as usize].sent);
        sent.drain(..).for_each(|owed| self.free_memory(host, owed));
        // Unless what that let go has left some of its own.
        let nic = &mut self.cables.nics[n as usize];
        if nic.sent.is_empty() {
            nic.sent = sent;
        }
    }
    /// The driver that counts bytes tells of those that are sent.
    fn count_sent(&mut self, n: u32) {
        let nic = &mut self.cables.nics[n as usize];
        let (host, ifindex) = (nic.host, nic.ifindex);
        if let Some(counted) = &mut nic.bql {
            let bytes = std::mem::take(&mut counted.sent);
            self.machines[host as usize].host.bql_done(ifindex, bytes, self.queue.now());
        }
    }
    pub(crate) fn arm_watchdog(&mut self, n: u32) {
        let nic = &mut self.cables.nics[n as usize];
        let wakeup = self.machines[nic.host as usize].host.next_wakeup(nic.ifindex);
        nic.watchdog.arm(wakeup, Event::Watchdog(n), &mut self.queue);
    }
    /// The card's next frame: from its ring, or from the discipline.
    #[inline(always)] // Of those that call it one counts.
    pub(crate) fn next_frame(&mut self, n: u32) -> Option<Packet> {
        let nic = &mut self.cables.nics[n as usize];
        if let Some(packet) = nic.queue.pop_front() {
            return Some(packet);
        }
        let (host, ifindex) = (nic.host, nic.ifindex);
        let packet = self.on_host(host, |h, cx| h.dequeue(ifindex, cx))?;
        Some(self.taken(n, packet))
    }
    /// The card takes a packet from the discipline; of one that is to be cut it is the first segment, and the others wait in the card.
    #[inline(always)] // As above.
    fn taken(&mut self, n: u32, mut packet: Packet) -> Packet {
        let nic = &self.cables.nics[n as usize];
        let host = nic.host;
        let (completes, virtual_cable, ifindex) = (nic.completes(), nic.is_virtual(), nic.ifindex);
        let counts = nic.bql.is_some();
        self.note_departure(n, &mut packet);
        if counts {
            self.machines[host as usize].host.bql_sent(ifindex, packet.initial_pkt_len());
        }
        if virtual_cable {
            // The other side takes it when the discipline has been run (ip_rcv orphans it).
            if packet.iif == 0 && Owed::any(&packet) {
                self.cables.nics[n as usize].sent.push(Owed::of(&packet));
            }
        } else if !completes {
            self.left_host(host, &packet);
        }
        if packet.is_noted() && packet.gso().is_some() {
            return self.cut(n, packet).unwrap_or_else(|| {
                let first = self.cables.nics[n as usize].queue.pop_front();
                first.expect("a super-packet has segments")
            });
        }
        packet
    }
    /// A super-packet is cut into frames, by the card or by the kernel before it: they wait in the card. Over a cable without a rate, as over a veth pair,
    /// it goes whole where the card would cut it: then it comes back.
    //= linux v6.12 net/core/dev.c validate_xmit_skb, net/core/gso.c skb_gso_segment, net/ipv4/tcp_offload.c tcp_gso_segment
    #[cold]
    fn cut(&mut self, n: u32, whole: Packet) -> Option<Packet> {
        let nic = &self.cables.nics[n as usize];
        let (host, ifindex) = (nic.host, nic.ifindex);
        let by_card = self.machines[host as usize].host.card_cuts(ifindex);
        if nic.is_virtual() && by_card {
            return Some(whole);
        }
        let owes = nic.completes() && whole.iif <= crate::index::LOOPBACK;
        let (segments, payload) = (whole.segments() as u16, whole.len - whole.segment_headers());
        if owes
            && !by_card
            && let Some((flow, part)) = untag(whole.flow)
        {
            let sock = self.meter.flows[flow as usize].socks[usize::from(part == Part::Back)];
            if let Some(crate::sock::Kind::Tcp(t)) = self.sockets.get_mut(sock).map(|s| &mut s.kind) {
                t.end.transmitted_cut(u32::from(segments) - 1);
            }
        }
        for number in 0..segments {
            let mut packet = self.pool.segment(&whole, number);
            let last = number + 1 == segments;
            if let Some(segment) = &mut packet.rare_mut().segment {
                segment.by = match (by_card, last) {
                    (true, _) => Cutter::Card(if last { payload } else { 0 }),
                    (false, false) => Cutter::Kernel,
                    (false, true) => Cutter::Qdisc,
                };
            }
            self.cables.nics[n as usize].queue.push_back(packet);
        }
        self.pool.free(whole);
        None
    }
    /// What is measured of a frame that a card takes: its wait, and the mark that it was given here.
    #[inline(always)] // As above.
    fn note_departure(&mut self, n: u32, packet: &mut Packet) {
        let now = self.queue.now();
        if self.captured {
            self.capture_sent(n, packet);
        }
        let nic = &mut self.cables.nics[n as usize];
        nic.sojourn.record((now - packet.queued).as_ns().max(0) as u64);
        if packet.tos() & 3 == 3 && !packet.tc.ce_counted {
            packet.tc.ce_counted = true;
            nic.marked += u64::from(packet.segments());
            if let Some((flow, Part::Data)) = untag(packet.flow) {
                let at = self.meter.flows[flow as usize].at(nic.host, nic.ifindex);
                at.marked_packets += u64::from(packet.segments());
                at.marked_bytes += u64::from(packet.all_network_len());
            }
        }
    }
    /// Fills the card's ring from the discipline, if it has one.
    #[inline]
    fn fill_ring(&mut self, n: u32) {
        if self.cables.nics[n as usize].ring > 0 {
            self.fill(n);
        }
    }
    fn fill(&mut self, n: u32) {
        let nic = &self.cables.nics[n as usize];
        let (host, ifindex) = (nic.host, nic.ifindex);
        let counts = self.cables.nics[n as usize].bql.is_some();
        while self.cables.nics[n as usize].has_room() {
            if counts && self.machines[host as usize].host.bql_stops(ifindex) {
                return;
            }
            let Some(mut packet) = self.on_host(host, |h, cx| h.dequeue(ifindex, cx)) else {
                self.arm_watchdog(n);
                return;
            };
            self.note_departure(n, &mut packet);
            if counts {
                self.machines[host as usize].host.bql_sent(ifindex, packet.initial_pkt_len());
            }
            if !self.cables.nics[n as usize].completes() {
                // What TCP sends then comes after this frame.
                self.cables.nics[n as usize].sending = true;
                self.left_host(host, &packet);
                self.cables.nics[n as usize].sending = false;
            }
            if packet.is_noted() && packet.gso().is_some() {
                // A card with a ring has a rate, or gives the packet back.
                match self.cut(n, packet) {
                    None => continue,
                    Some(whole) => packet = whole,
                }
            }
            self.cables.nics[n as usize].queue.push_back(packet);
        }
    }

    /// Sends a frame whose last bit leaves at `end`.
    #[inline(always)] // As above.
    pub(crate) fn put_on_wire(&mut self, n: u32, wire: u32, mut packet: Packet, end: Time) {
        if self.cables.nics[n as usize].pair {
            let Some(crosses) = self.cross(n, wire, packet) else { return };
            packet = crosses;
        }
        self.cables.hops += 1;
        let now = self.queue.now();
        let w = &mut self.cables.wires[wire as usize];
        if !w.way.is_up(now, end) {
            let host = self.cables.nics[n as usize].host;
            self.lost_at(host, packet, "link", "down");
            return;
        }
        if w.way.loses() {
            let host = self.cables.nics[n as usize].host;
            self.lost_at(host, packet, "link", "loss");
            return;
        }
        w.carry(wire, packet, end, &mut self.queue);
    }
}

/// Whether a device has anything more to send, or notes that it has not.
#[inline]
fn asks_again(host: &Host, ifindex: u32) -> bool {
    host.device(ifindex).is_some_and(|d| d.tree.qlen() > 0 || d.tree.watches_idle())
}
