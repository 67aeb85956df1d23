//! Segments that several cards share: one frame at a time for all.

use crate::event::Event;
use crate::link::{Way, Wire};
use crate::net::Net;
use penstock_host::Host;
use penstock_packet::Packet;
use std::collections::VecDeque;

impl Net {
    pub(crate) fn join_line(&mut self, s: u32, n: u32) {
        let now = self.queue.now();
        if !self.cables.nics[n as usize].in_line {
            self.cables.nics[n as usize].in_line = true;
            self.cables.segments[s as usize].line.push_back(n);
        }
        let segment = &mut self.cables.segments[s as usize];
        if segment.serving {
            // A frame that leaves its host made TCP send the next: it stands in line.
        } else if segment.busy_until <= now {
            let at_work = self.cables.nics[n as usize].host;
            self.serve_segment(s, Some(at_work));
        } else if !segment.free_pending {
            segment.free_pending = true;
            self.queue.schedule(segment.busy_until, Event::SegmentFree(s));
        }
    }
    /// The segment is free again.
    pub(crate) fn segment_free(&mut self, s: u32) {
        self.cables.segments[s as usize].free_pending = false;
        self.serve_segment(s, None);
    }
    /// Gives the free segment to the cards in line. `at_work`: the machine that asks for it, which settles what its own frames come to.
    fn serve_segment(&mut self, s: u32, at_work: Option<u32>) {
        let now = self.queue.now();
        while self.cables.segments[s as usize].busy_until <= now && !self.guard.is_over() {
            let Some(n) = self.cables.segments[s as usize].line.pop_front() else { return };
            self.cables.nics[n as usize].in_line = false;
            let (host, ifindex) = (self.cables.nics[n as usize].host, self.cables.nics[n as usize].ifindex);
            let before = self.todo.asked.len();
            self.cables.segments[s as usize].serving = true;
            let packet = self.next_frame(n);
            self.cables.segments[s as usize].serving = false;
            let Some(packet) = packet else {
                self.arm_watchdog(n);
                self.settle_other(host, at_work, before);
                continue;
            };
            self.broadcast(s, n, packet);
            let nic = &self.cables.nics[n as usize];
            let more = !nic.queue.is_empty() || qlen(&self.machines[host as usize].host, ifindex) > 0;
            if more && !nic.in_line {
                self.cables.nics[n as usize].in_line = true;
                self.cables.segments[s as usize].line.push_back(n);
            }
            self.settle_other(host, at_work, before);
        }
        let segment = &mut self.cables.segments[s as usize];
        if !segment.line.is_empty() && !segment.free_pending {
            segment.free_pending = true;
            self.queue.schedule(segment.busy_until, Event::SegmentFree(s));
        }
    }
    /// Does what a machine asks for whose card was served while another was at work, or nobody: what stands on the list from there on. Left
    /// there, it would be done as the other's.
    #[inline]
    fn settle_other(&mut self, host: u32, at_work: Option<u32>, from: usize) {
        if self.todo.asked.len() > from && at_work != Some(host) {
            let own = self.todo.asked.split_off(from);
            let others = std::mem::replace(&mut self.todo.asked, own);
            self.settle(host);
            self.todo.asked = others;
        }
    }
    /// One frame on the segment: to every other card that its address concerns.
    fn broadcast(&mut self, s: u32, n: u32, packet: Packet) {
        let now = self.queue.now();
        let segment = &mut self.cables.segments[s as usize];
        let takes = self.cables.nics[n as usize].takes(segment.framing.of(&packet), now);
        segment.busy_until = now + takes;
        if let Some(watch) = &mut self.cables.nics[n as usize].watch {
            watch.sends(&packet, now, now + takes);
        }
        let (me, to) = (self.cables.nics[n as usize].place, packet.eth.1);
        let to_all = to[0] & 1 == 1;
        let count =
            if to_all { self.cables.segments[s as usize].nics.len() } else { self.stations(s, to).len() };
        // The packet itself goes to the first, copies of it to the others.
        let (mut frame, mut wire) = (packet, None);
        for i in 0..count {
            let place = if to_all { i as u32 } else { self.stations(s, to)[i] };
            if place == me {
                continue;
            }
            let next = self.segment_wire(s, me, place);
            if let Some(wire) = wire.replace(next) {
                let mut copy = self.pool.alloc((*frame).clone());
                copy.tc.role.set_copy(true);
                self.pool.note_extra(&copy);
                let before = std::mem::replace(&mut frame, copy);
                self.put_on_wire(n, wire, before, now + takes);
                self.cables.hops -= 1;
            }
        }
        match wire {
            Some(wire) => self.put_on_wire(n, wire, frame, now + takes),
            None => self.lost_at(self.cables.nics[n as usize].host, frame, "link", "no-receiver"),
        }
    }
    /// The places of the cards that take frames for this address: those that have it, and the ports of bridges.
    fn stations(&mut self, s: u32, mac: [u8; 6]) -> &[u32] {
        let segment = &mut self.cables.segments[s as usize];
        if segment.by_mac_of != Some(self.cables.commands) {
            segment.by_mac_of = Some(self.cables.commands);
            segment.by_mac.clear();
            let mut all = Vec::new();
            for (&nic, place) in segment.nics.iter().zip(0..) {
                let nic = &self.cables.nics[nic as usize];
                let host = &self.machines[nic.host as usize].host;
                let mac = host.device(nic.ifindex).map_or([0; 6], |d| d.mac);
                segment.by_mac.entry(mac).or_default().push(place);
                if host.hears_all(nic.ifindex) {
                    all.push((mac, place));
                }
            }
            // A port of a bridge hears every frame, behind the station that it is for.
            for (mac, places) in &mut segment.by_mac {
                places.extend(all.iter().filter(|hears| hears.0 != *mac).map(|hears| hears.1));
            }
            segment.hear_all = all.into_iter().map(|hears| hears.1).collect();
        }
        segment.by_mac.get(&mac).unwrap_or(&segment.hear_all)
    }
    /// The way from one card of a segment to another, by their places.
    fn segment_wire(&mut self, s: u32, from: u32, to: u32) -> u32 {
        let segment = &self.cables.segments[s as usize];
        if let Some(&wire) = segment.wires.get(&(from, to)) {
            return wire;
        }
        let (delay, loss_ppb, bleach) = segment.ways[from as usize];
        let rng = self.rng(&format!("link:{}/loss/{from}-{to}", segment.name));
        let nic = &self.cables.nics[segment.nics[to as usize] as usize];
        let (to_card, framing) = ((nic.host, nic.ifindex), segment.framing);
        let way = Way { delay, loss_ppb, bleach, rng, course: None };
        let (far, in_flight) = (false, VecDeque::new());
        let wire = self.cables.numbers.next(&mut self.cables.wires, Wire::absent);
        self.cables.wires.push(Wire { to: to_card, framing, far, leaves: false, in_flight, way });
        self.cables.segments[s as usize].wires.insert((from, to), wire);
        wire
    }
}

#[inline]
fn qlen(host: &Host, ifindex: u32) -> u32 {
    host.device(ifindex).map_or(0, |d| d.tree.qlen())
}
