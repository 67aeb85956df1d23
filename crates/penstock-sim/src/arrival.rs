//! Frames that arrive, and the processor that takes them.

use crate::cpu::NETDEV_MAX_BACKLOG;
use crate::event::Event;
use crate::net::Net;
use penstock_host::Way;

impl Net {
    /// The oldest frame on this wire arrives.
    pub(crate) fn arrive(&mut self, wire: u32) {
        let w = &mut self.cables.wires[wire as usize];
        let (_, _, mut packet) = w.in_flight.pop_front().expect("a frame is under way where one arrives");
        if let Some(&(arrival, seq, _)) = w.in_flight.front() {
            self.queue.schedule_at(arrival, seq, Event::Arrive(wire));
        }
        let (host, ifindex) = w.to;
        let machine = &mut self.machines[host as usize];
        if machine.cpu.is_free() {
            match machine.host.way(ifindex, &mut packet, self.queue.now()) {
                Way::Out(oif) => self.pass_on(host, oif, packet),
                Way::Here => {
                    self.guard.step();
                    self.deliver(host, packet);
                    self.settle(host);
                }
                Way::Whole => {
                    self.on_host(host, |h, cx| h.receive(ifindex, packet, cx));
                    self.settle(host);
                }
            }
            return;
        }
        if machine.cpu.backlog.len() > NETDEV_MAX_BACKLOG {
            self.lost_at(host, packet, "cpu", "backlog");
            return;
        }
        if machine.cpu.backlog.is_empty() {
            let service = machine.service(packet.len, self.queue.now());
            self.queue.schedule(self.queue.now() + service, Event::Cpu(host));
        }
        machine.cpu.backlog.push_back((ifindex, packet));
    }
    /// The processor has finished with its first frame.
    pub(crate) fn cpu_done(&mut self, host: u32) {
        let machine = &mut self.machines[host as usize];
        let (ifindex, packet) = machine.cpu.backlog.pop_front().expect("the processor had a frame");
        if let Some((_, next)) = machine.cpu.backlog.front() {
            let len = next.len;
            let service = machine.service(len, self.queue.now());
            self.queue.schedule(self.queue.now() + service, Event::Cpu(host));
        }
        self.on_host(host, |h, cx| h.receive(ifindex, packet, cx));
        self.settle(host);
    }
}
