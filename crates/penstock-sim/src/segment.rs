//! Segments that several cards share: one frame at a time for all.

use crate::event::Event;
use crate::net::Net;
use penstock_host::Host;
use penstock_packet::Packet;

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
            self.serve_segment(s);
        } else if !segment.free_pending {
            segment.free_pending = true;
            self.queue.schedule(segment.busy_until, Event::SegmentFree(s));
        }
    }
    /// The segment is free again.
    pub(crate) fn segment_free(&mut self, s: u32) {
        self.cables.segments[s as usize].free_pending = false;
        self.serve_segment(s);
    }
    /// Gives the free segment to the cards in line.
    fn serve_segment(&mut self, s: u32) {
        let now = self.queue.now();
        while self.cables.segments[s as usize].busy_until <= now && !self.guard.is_over() {
            let Some(n) = self.cables.segments[s as usize].line.pop_front() else { return };
            self.cables.nics[n as usize].in_line = false;
            self.cables.segments[s as usize].serving = true;
            let packet = self.next_frame(n);
            self.cables.segments[s as usize].serving = false;
            let Some(packet) = packet else {
                self.arm_watchdog(n);
                continue;
            };
            self.broadcast(s, n, packet);
            let (host, ifindex) = (self.cables.nics[n as usize].host, self.cables.nics[n as usize].ifindex);
            let nic = &self.cables.nics[n as usize];
            let more = !nic.queue.is_empty() || qlen(&self.machines[host as usize].host, ifindex) > 0;
            if more && !nic.in_line {
                self.cables.nics[n as usize].in_line = true;
                self.cables.segments[s as usize].line.push_back(n);
            }
        }
        let segment = &mut self.cables.segments[s as usize];
        if !segment.line.is_empty() && !segment.free_pending {
            segment.free_pending = true;
            self.queue.schedule(segment.busy_until, Event::SegmentFree(s));
        }
    }
    /// One frame on the segment: to every other card that its address concerns.
    fn broadcast(&mut self, s: u32, n: u32, packet: Packet) {
        let now = self.queue.now();
        let segment = &mut self.cables.segments[s as usize];
        let takes = self.cables.nics[n as usize].takes(segment.framing.wire_len(packet.len), now);
        segment.busy_until = now + takes;
        let me = segment.nics.iter().position(|&x| x == n).expect("the card is on its segment");
        let count = segment.nics.len();
        if let Some(watch) = &mut self.cables.nics[n as usize].watch {
            watch.sends(&packet, now, now + takes);
        }
        let to_all = packet.eth.1[0] & 1 == 1;
        let mut last = None;
        for i in 0..count {
            let segment = &self.cables.segments[s as usize];
            let to = &self.cables.nics[segment.nics[i] as usize];
            if i == me || !(to_all || mac(&self.machines[to.host as usize].host, to.ifindex) == packet.eth.1)
            {
                continue;
            }
            if let Some(wire) = last.replace(segment.wires[me * count + i]) {
                let mut copy = self.pool.alloc((*packet).clone());
                copy.tc.role.set_copy(true);
                self.pool.note_extra(&copy);
                self.put_on_wire(n, wire, copy, now + takes);
                self.cables.hops -= 1;
            }
        }
        match last {
            Some(wire) => self.put_on_wire(n, wire, packet, now + takes),
            None => self.lost_at(self.cables.nics[n as usize].host, packet, "link", "no-receiver"),
        }
    }
}

#[inline]
fn qlen(host: &Host, ifindex: u32) -> u32 {
    host.device(ifindex).map_or(0, |d| d.tree.qlen())
}
fn mac(host: &Host, ifindex: u32) -> [u8; 6] {
    host.device(ifindex).map_or([0; 6], |d| d.mac)
}
