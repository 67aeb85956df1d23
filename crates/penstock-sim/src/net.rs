//! Everything but the programs: the machines, what lies between them, the sockets, and what is measured.

use crate::event::Queue;
use crate::link::Cables;
use crate::machine::Machine;
use crate::meter::Meter;
use crate::results::Sojourn;
use crate::sock::Sockets;
use crate::spec::HostId;
use crate::still::Guard;
use crate::wake::Wakes;
use penstock_host::{Effect, Host, HostCx};
use penstock_model::{Rng, Time};
use penstock_packet::Pool;
use std::collections::BTreeMap;

/// Everything but the programs.
pub(crate) struct Net {
    pub(crate) seed: u64,
    pub(crate) queue: Queue,
    /// Sees to it that time goes on.
    pub(crate) guard: Guard,
    pub(crate) pool: Pool,
    pub(crate) machines: Vec<Machine>,
    pub(crate) cables: Cables,
    pub(crate) sockets: Sockets,
    pub(crate) meter: Meter,
    pub(crate) wakes: Wakes,
    pub(crate) names: Names,
    pub(crate) todo: Todo,
    /// Some device has a tap.
    pub(crate) tapped: bool,
}

/// What programs find by its name.
#[derive(Default)]
pub(crate) struct Names {
    /// The first machine of each name.
    pub(crate) hosts: BTreeMap<String, u32>,
    /// As `/etc/hosts` on every host has them.
    pub(crate) addresses: BTreeMap<String, std::net::Ipv4Addr>,
    /// Lengths of files, bytes.
    pub(crate) files: BTreeMap<String, u64>,
}

/// What was asked for at this instant and is still to be done: `effects` does it.
#[derive(Default)]
pub(crate) struct Todo {
    /// By calls to the host at hand.
    pub(crate) asked: Vec<Effect>,
    /// The room of what was asked before.
    pub(crate) spare: Vec<Effect>,
    /// A program is being called: what it sends goes from its own system call, not from an interrupt.
    pub(crate) in_call: bool,
    /// An interrupt's segments are being sent.
    pub(crate) in_softirq: bool,
    /// The cards without a rate whose frames are received when that is over.
    pub(crate) unreceived: Vec<u32>,
}

impl Net {
    pub(crate) fn new(seed: u64) -> Net {
        Net {
            seed,
            queue: Queue::new(),
            guard: Guard::new(),
            pool: Pool::new(),
            machines: Vec::new(),
            cables: Cables::default(),
            sockets: Sockets::default(),
            meter: Meter::default(),
            wakes: Wakes::default(),
            names: Names::default(),
            todo: Todo::default(),
            tapped: false,
        }
    }
    /// The present.
    #[inline]
    pub(crate) fn now(&self) -> Time {
        self.queue.now()
    }
    /// A stream of chance of this run.
    pub(crate) fn rng(&self, name: &str) -> Rng {
        Rng::named(self.seed, name)
    }

    /// Calls a host with what it needs; [`settle`](Net::settle) afterwards.
    #[inline]
    pub(crate) fn on_host<R>(&mut self, host: u32, call: impl FnOnce(&mut Host, &mut HostCx<'_>) -> R) -> R {
        self.guard.step();
        let now = self.queue.now();
        let mut cx = HostCx { now, pool: &mut self.pool, out: &mut self.todo.asked };
        let machine = &mut self.machines[host as usize];
        let answer = call(&mut machine.host, &mut cx);
        if machine.cpu.counts_work() {
            let work = machine.host.take_work();
            machine.cpu.works(work, now);
        }
        answer
    }

<<<<<<< HEAD
    /// Does what the calls to this host asked for, until nothing is left to do at this instant.
    #[inline(always)] // After each event; the rest is rare.
    pub(crate) fn settle(&mut self, host: u32) {
        // What forwarding comes to.
        if let [Effect::Kick(ifindex)] = self.out[..]
            && !self.guard.is_near()
        {
            self.out.clear();
            self.kick_device(host, ifindex);
        }
        if !self.out.is_empty() || self.guard.is_near() {
            self.settle_rest(host);
        }
        self.arm_host_timer(host);
    }
    #[inline(never)]
    fn settle_rest(&mut self, host: u32) {
        loop {
            if self.guard.is_near() && self.stand_still(host) {
                break;
            }
            match self.out[..] {
                [] => break,
                // What a receiver comes to. Not by `effect`: that reads the whole of what was just written in parts.
                [Effect::Deliver(_)] => {
                    if let Some(Effect::Deliver(packet)) = self.out.pop() {
                        self.delivered(host, packet);
                    }
                }
                [_] => {
                    let effect = self.out.pop().expect("there is one");
                    self.effect(host, effect);
                }
                _ => {
                    let mut work = std::mem::take(&mut self.work);
                    std::mem::swap(&mut work, &mut self.out);
                    work.drain(..).for_each(|effect| self.effect(host, effect));
                    self.work = work;
                }
            }
        }
    }

    #[inline]
    fn effect(&mut self, host: u32, effect: Effect) {
        match effect {
            Effect::Kick(ifindex) => self.kick_device(host, ifindex),
            Effect::Deliver(packet) => self.delivered(host, packet),
            Effect::Moved(packet) => self.moved(host, packet),
            Effect::Dropped { packet, ifindex, place, reason } => {
                self.lost_on(host, ifindex, packet, place, reason);
            }
        }
    }

    #[inline]
    fn delivered(&mut self, host: u32, packet: Packet) {
        match packet.iif {
            LOOPBACK => self.deliver_looped(host, packet),
            _ => self.deliver(host, packet),
        }
    }
    /// A packet that this host has sent to itself. Where it sends more than its processor can do the packet waits, behind others.
    //= linux v6.12 drivers/net/loopback.c loopback_xmit, net/core/dev.c enqueue_to_backlog
    fn deliver_looped(&mut self, host: u32, packet: Packet) {
        // loopback_xmit orphans it.
        self.free_memory(host, Owed::of(&packet));
        let now = self.queue.now();
        let lo = &mut self.machines[host as usize].lo;
        if lo.waiting.len() > NETDEV_MAX_BACKLOG {
            return self.lost_on(host, LOOPBACK, packet, "cpu", "backlog");
        }
        let wait = lo.toll.charge(now, frame(packet.len));
        if wait == Span::ZERO && lo.waiting.is_empty() {
            return self.deliver(host, packet);
        }
        lo.waiting.push_back(packet);
        self.queue.schedule(now + wait, Event::Loop(host));
    }
    /// The first of those has had its time.
    pub(crate) fn looped(&mut self, host: u32) {
        if let Some(packet) = self.machines[host as usize].lo.waiting.pop_front() {
            self.deliver(host, packet);
            self.settle(host);
        }
    }

    /// Tells what this host is about to do; `true` where that goes on for ever: then it is not done.
    #[cold]
    fn stand_still(&mut self, host: u32) -> bool {
        let name = &self.machines[host as usize].name;
        let what = |effect: &Effect| match effect {
            Effect::Kick(ifindex) => format!("{name} {}: sends", self.device_name(host, *ifindex)),
            Effect::Deliver(packet) => format!("{name}: receives {}", packet_text(packet)),
            Effect::Moved(packet) => format!("{name}: sends {} elsewhere", packet_text(packet)),
            Effect::Dropped { packet, ifindex, place, reason } => {
                let device = self.device_name(host, *ifindex);
                format!("{name} {device}: {} is dropped ({place}, {reason})", packet_text(packet))
            }
        };
        let told: Vec<String> = self.out.iter().map(what).collect();
        told.into_iter().for_each(|text| self.guard.tell(text));
        let over = self.guard.is_over();
        if over {
            self.out.clear();
            self.guard.stop();
        }
        over
    }

    #[inline]
    fn arm_host_timer(&mut self, host: u32) {
        let machine = &mut self.machines[host as usize];
        machine.timer.arm(machine.host.next_timer(), Event::HostTimer(host), &mut self.queue);
    }

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
        let nic = &mut self.nics[n as usize];
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
                while let Some(packet) = self.next_frame(n) {
                    self.lost_on(host, ifindex, packet, "link", "no-carrier");
                }
            }
        }
    }
    /// Sees to it that the card is asked again when its wire is free, if there is anything more to send.
    #[inline(always)] // Of those that call it one counts.
    fn await_wire(&mut self, n: u32) {
        let nic = &mut self.nics[n as usize];
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
        let nic = &mut self.nics[n as usize];
        nic.tx_pending = false;
        let host = nic.host;
        if let Some(owed) = nic.on_wire.take() {
            nic.sent.push(owed);
            // The driver is told after so many frames, or when the ring has run empty.
            if nic.sent.len() as u32 >= nic.tx_frames || nic.queue.is_empty() {
                // What TCP sends then waits for the wire below, which has room for one frame.
                nic.sending = true;
                self.free_sent(n);
                self.nics[n as usize].sending = false;
            }
        }
        let nic = &self.nics[n as usize];
        if let Port::Wire(wire) = nic.port {
            self.transmit(n, wire);
        }
        self.settle(host);
    }
    /// Puts frames on the wire until it is busy or nothing is left.
    #[inline]
    fn transmit(&mut self, n: u32, wire: u32) {
        if self.nics[n as usize].is_plain() {
            self.transmit_one(n, wire);
        } else {
            self.transmit_all(n, wire);
        }
    }
    /// The same for a card whose frames all come from its discipline and take time: one frame.
    #[inline(always)] // Into the two that call it.
    fn transmit_one(&mut self, n: u32, wire: u32) {
        let now = self.queue.now();
        if self.guard.is_over() {
            return;
        }
        let nic = &mut self.nics[n as usize];
        let (host, ifindex) = (nic.host, nic.ifindex);
        nic.sending = true;
        let Some(mut packet) = self.on_host(host, |h, cx| h.dequeue(ifindex, cx)) else {
            self.nics[n as usize].sending = false;
            self.arm_watchdog(n);
            return;
        };
        self.note_departure(n, &mut packet);
        self.left_host(host, &packet);
        let (nic, w) = (&mut self.nics[n as usize], &mut self.wires[wire as usize]);
        nic.sending = false;
        let end = now + serialisation(w.framing.wire_len(packet.len), nic.rate);
        nic.busy_until = end;
        self.hops += 1;
        if w.way.loses() {
            self.lost_at(host, packet, "link", "loss");
        } else {
            w.carry(wire, packet, end, &mut self.queue);
        }
        self.await_wire(n);
    }
    fn transmit_all(&mut self, n: u32, wire: u32) {
        let now = self.queue.now();
        while !self.guard.is_over() {
            self.nics[n as usize].sending = true;
            let packet = self.next_frame(n);
            let nic = &mut self.nics[n as usize];
            nic.sending = false;
            let Some(packet) = packet else {
                self.arm_watchdog(n);
                break;
            };
            let framing = self.wires[wire as usize].framing;
            let takes = nic.takes(framing.wire_len(packet.len), now);
            nic.busy_until = now + takes;
            let watched = nic.watch.is_some();
            if nic.completes() {
                nic.on_wire = Some(Owed::of(&packet));
            }
            if watched {
                self.note_sent(n, &packet, now, now + takes);
            }
            self.put_on_wire(n, wire, packet, now + takes);
            if takes.as_ns() > 0 {
                self.fill_ring(n);
                self.await_wire(n);
                break;
            }
        }
        if self.nics[n as usize].is_virtual() {
            // The peer's stack has its turn when the interrupt at hand is done (`netif_rx`, `process_backlog`); a system call is interrupted.
            if self.in_softirq {
                self.unreceived.push(n);
            } else {
                self.received(n);
            }
        }
    }
    /// What a cable without a rate has carried has been received: it is nobody's memory here any more.
    #[inline]
    pub(crate) fn received(&mut self, n: u32) {
        if !self.nics[n as usize].sent.is_empty() {
            self.free_sent(n);
        }
    }
    fn free_sent(&mut self, n: u32) {
        let host = self.nics[n as usize].host;
        let mut sent = std::mem::take(&mut self.nics[n as usize].sent);
        sent.drain(..).for_each(|owed| self.free_memory(host, owed));
        // Unless what that let go has left some of its own.
        let nic = &mut self.nics[n as usize];
        if nic.sent.is_empty() {
            nic.sent = sent;
        }
    }
    pub(crate) fn arm_watchdog(&mut self, n: u32) {
        let nic = &mut self.nics[n as usize];
        let wakeup = self.machines[nic.host as usize].host.next_wakeup(nic.ifindex);
        nic.watchdog.arm(wakeup, Event::Watchdog(n), &mut self.queue);
    }
    /// The card's next frame: from its ring, or from the discipline.
    #[inline(always)] // Of those that call it one counts.
    fn next_frame(&mut self, n: u32) -> Option<Packet> {
        let nic = &mut self.nics[n as usize];
        if let Some(packet) = nic.queue.pop_front() {
            return Some(packet);
        }
        let (host, ifindex) = (nic.host, nic.ifindex);
        let (completes, virtual_cable) = (nic.completes(), nic.is_virtual());
        let mut packet = self.on_host(host, |h, cx| h.dequeue(ifindex, cx))?;
        self.note_departure(n, &mut packet);
        if virtual_cable {
            // The other side takes it when the discipline has been run (ip_rcv orphans it).
            if packet.iif == 0 && packet.flow != 0 {
                self.nics[n as usize].sent.push(Owed::of(&packet));
            }
        } else if !completes {
            self.left_host(host, &packet);
        }
        Some(packet)
    }
    /// What is measured of a frame that a card takes: its wait, and the mark that it was given here.
    #[inline(always)] // As above.
    fn note_departure(&mut self, n: u32, packet: &mut Packet) {
        let now = self.queue.now();
        let nic = &mut self.nics[n as usize];
        nic.sojourn.record((now - packet.queued).as_ns().max(0) as u64);
        if packet.tos() & 3 == 3 && !packet.tc.ce_counted {
            packet.tc.ce_counted = true;
            if let Some((flow, Part::Data)) = untag(packet.flow) {
                let at = self.flows[flow as usize].at(nic.host, nic.ifindex);
                at.marked_packets += 1;
                at.marked_bytes += u64::from(packet.network_len());
            }
        }
    }
    /// Fills the card's ring from the discipline, if it has one.
    #[inline]
    fn fill_ring(&mut self, n: u32) {
        if self.nics[n as usize].ring > 0 {
            self.fill(n);
        }
    }
    fn fill(&mut self, n: u32) {
        let nic = &self.nics[n as usize];
        let (host, ifindex) = (nic.host, nic.ifindex);
        while self.nics[n as usize].has_room() {
            let Some(mut packet) = self.on_host(host, |h, cx| h.dequeue(ifindex, cx)) else {
                self.arm_watchdog(n);
                return;
            };
            self.note_departure(n, &mut packet);
            if !self.nics[n as usize].completes() {
                // What TCP sends then comes after this frame.
                self.nics[n as usize].sending = true;
                self.left_host(host, &packet);
                self.nics[n as usize].sending = false;
            }
            self.nics[n as usize].queue.push_back(packet);
        }
    }

    /// Sends a frame whose last bit leaves at `end`.
    #[inline(always)] // As above.
    fn put_on_wire(&mut self, n: u32, wire: u32, packet: Packet, end: Time) {
        self.hops += 1;
        let w = &mut self.wires[wire as usize];
        if w.way.loses() {
            let host = self.nics[n as usize].host;
            self.lost_at(host, packet, "link", "loss");
            return;
        }
        w.carry(wire, packet, end, &mut self.queue);
    }
    /// The oldest frame on this wire arrives.
    pub(crate) fn arrive(&mut self, wire: u32) {
        let w = &mut self.wires[wire as usize];
        let (_, _, packet) = w.in_flight.pop_front().expect("a frame is under way where one arrives");
        if let Some(&(arrival, seq, _)) = w.in_flight.front() {
            self.queue.schedule_at(arrival, seq, Event::Arrive(wire));
        }
        let nic = &self.nics[w.to_nic as usize];
        let (host, ifindex) = (nic.host, nic.ifindex);
        let cpu = &mut self.machines[host as usize].cpu;
        if cpu.is_free() {
            self.on_host(host, |h, cx| h.receive(ifindex, packet, cx));
            self.settle(host);
            return;
        }
        if cpu.backlog.len() > NETDEV_MAX_BACKLOG {
            self.lost_at(host, packet, "cpu", "backlog");
            return;
        }
        if cpu.backlog.is_empty() {
            let service = cpu.service(packet.len, self.queue.now());
            self.queue.schedule(self.queue.now() + service, Event::Cpu(host));
        }
        cpu.backlog.push_back((ifindex, packet));
    }
    /// The processor has finished with its first frame.
    pub(crate) fn cpu_done(&mut self, host: u32) {
        let cpu = &mut self.machines[host as usize].cpu;
        let (ifindex, packet) = cpu.backlog.pop_front().expect("the processor had a frame");
        if let Some((_, next)) = cpu.backlog.front() {
            let len = next.len;
            let service = cpu.service(len, self.queue.now());
            self.queue.schedule(self.queue.now() + service, Event::Cpu(host));
        }
        self.on_host(host, |h, cx| h.receive(ifindex, packet, cx));
        self.settle(host);
    }

    fn join_line(&mut self, s: u32, n: u32) {
        let now = self.queue.now();
        if !self.nics[n as usize].in_line {
            self.nics[n as usize].in_line = true;
            self.segments[s as usize].line.push_back(n);
        }
        let segment = &mut self.segments[s as usize];
        if segment.serving {
            // A frame that leaves its host made TCP send the next: it stands in line.
        } else if segment.busy_until <= now {
            self.serve_segment(s);
        } else if !segment.free_pending {
            segment.free_pending = true;
            self.queue.schedule(segment.busy_until, Event::SegmentFree(s));
        }
    }
    /// The segment is free again.
    pub(crate) fn segment_free(&mut self, s: u32) {
        self.segments[s as usize].free_pending = false;
        self.serve_segment(s);
    }
    /// Gives the free segment to the cards in line.
    fn serve_segment(&mut self, s: u32) {
        let now = self.queue.now();
        while self.segments[s as usize].busy_until <= now && !self.guard.is_over() {
            let Some(n) = self.segments[s as usize].line.pop_front() else { return };
            self.nics[n as usize].in_line = false;
            self.segments[s as usize].serving = true;
            let packet = self.next_frame(n);
            self.segments[s as usize].serving = false;
            let Some(packet) = packet else {
                self.arm_watchdog(n);
                continue;
            };
            self.broadcast(s, n, packet);
            let (host, ifindex) = (self.nics[n as usize].host, self.nics[n as usize].ifindex);
            let nic = &self.nics[n as usize];
            let more = !nic.queue.is_empty() || qlen(&self.machines[host as usize].host, ifindex) > 0;
            if more && !nic.in_line {
                self.nics[n as usize].in_line = true;
                self.segments[s as usize].line.push_back(n);
            }
        }
        let segment = &mut self.segments[s as usize];
        if !segment.line.is_empty() && !segment.free_pending {
            segment.free_pending = true;
            self.queue.schedule(segment.busy_until, Event::SegmentFree(s));
        }
    }
    /// One frame on the segment: to every other card that its address concerns.
    fn broadcast(&mut self, s: u32, n: u32, packet: Packet) {
        let now = self.queue.now();
        let segment = &mut self.segments[s as usize];
        let takes = self.nics[n as usize].takes(segment.framing.wire_len(packet.len), now);
        segment.busy_until = now + takes;
        let me = segment.nics.iter().position(|&x| x == n).expect("the card is on its segment");
        let count = segment.nics.len();
        if self.nics[n as usize].watch.is_some() {
            self.note_sent(n, &packet, now, now + takes);
        }
        let to_all = packet.eth.1[0] & 1 == 1;
        let mut last = None;
        for i in 0..count {
            let segment = &self.segments[s as usize];
            let to = &self.nics[segment.nics[i] as usize];
            if i == me || !(to_all || mac(&self.machines[to.host as usize].host, to.ifindex) == packet.eth.1)
            {
                continue;
            }
            if let Some(wire) = last.replace(segment.wires[me * count + i]) {
                let mut copy = self.pool.alloc((*packet).clone());
                copy.tc.role.set_copy(true);
                self.pool.note_extra(&copy);
                self.put_on_wire(n, wire, copy, now + takes);
                self.hops -= 1;
            }
        }
        match last {
            Some(wire) => self.put_on_wire(n, wire, packet, now + takes),
            None => self.lost_at(self.nics[n as usize].host, packet, "link", "no-receiver"),
        }
    }

    /// A packet is lost at no device in particular.
    fn lost_at(&mut self, host: u32, packet: Packet, place: &'static str, reason: &'static str) {
        self.lost_on(host, 0, packet, place, reason);
    }
    /// A packet is lost: counted by device, place and reason, and with its flow.
    pub(crate) fn lost_on(
        &mut self,
        host: u32,
        ifindex: u32,
        packet: Packet,
        place: &'static str,
        reason: &'static str,
    ) {
        if ifindex > 0 {
            let now = self.queue.now();
            if let Some(tap) = self.machines[host as usize].host.tap(ifindex) {
                tap.loses(now, &packet, place, reason);
            }
        }
        // What a meter drops has not come to the device.
        if ifindex > 0 && place != "meter" {
            self.note_lost(host, ifindex, &packet);
        }
        if packet.created >= self.since {
            let here = |d: &DropSlot| {
                d.host == host && d.ifindex == ifindex && d.reason == reason && d.place == place
            };
            let at = self.drops.iter().position(here).unwrap_or_else(|| {
                self.drops.push(DropSlot { host, ifindex, place, reason, count: DropCount::default() });
                self.drops.len() - 1
            });
            let (slot, role) = (&mut self.drops[at], packet.tc.role);
            slot.count.packets += 1;
            slot.count.bytes += u64::from(packet.len);
            slot.count.copies += u64::from(role.is_copy());
            slot.count.fragments += u64::from(role.is_fragment() && !role.is_copy());
            self.account_lost(host, ifindex, at as u32, &packet);
        }
        // What was lost on the link has left its socket's memory, or leaves it when it is sent.
        if packet.iif <= LOOPBACK && packet.flow != 0 && !matches!(place, "link" | "cpu" | "socket") {
            self.dropped_at_home(host, &packet);
        }
        self.pool.free(packet);
    }
=======
>>>>>>> main
    /// Begins to count anew: what happened so far was warming up. Queues, connections and the devices' own counters stay.
    pub(crate) fn end_warmup(&mut self) {
        let since = self.meter.end_warmup(self.queue.now());
        self.cables.end_warmup();
        self.pool.count_extras_since(since);
    }
    /// How long frames waited for each card that has taken any, by host and device.
    pub(crate) fn sojourns(&self) -> Vec<Sojourn> {
        let taken = self.cables.nics.iter().filter(|nic| nic.sojourn.count() > 0);
        let named = taken.map(|nic| Sojourn {
            host: HostId(nic.host),
            device: self.device_name(nic.host, nic.ifindex),
            waits: nic.sojourn.clone(),
        });
        named.collect()
    }
    pub(crate) fn device_name(&self, host: u32, ifindex: u32) -> String {
        let device = self.machines[host as usize].host.device(ifindex);
        device.map(|d| d.name.clone()).unwrap_or_default()
    }
}
