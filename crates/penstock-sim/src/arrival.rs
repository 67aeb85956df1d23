//! Frames that arrive, and the processor that takes them.

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
        if self.captured {
            self.capture_received(host, ifindex, &packet);
        }
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
        if machine.cpu.backlog.len() > machine.host.max_backlog() {
            self.lost_at(host, packet, "cpu", "backlog");
            return;
        }
        let (first, len) = (machine.cpu.backlog.is_empty(), packet.len);
        machine.cpu.backlog.push_back((ifindex, packet));
        if first {
            self.serve(host, len);
        }
    }
    /// The processor is to take the host's next frame: at once, or behind those of machines that share it.
    fn serve(&mut self, host: u32, len: u32) {
        let machine = &mut self.machines[host as usize];
        let mut begin = self.queue.now();
        let shared = self.processors.get_mut(machine.processor as usize);
        if let Some(taken) = &shared {
            begin = begin.max(**taken);
        }
        let end = begin + machine.service(len, begin);
        if let Some(taken) = shared {
            *taken = end;
        }
        self.queue.schedule(end, Event::Cpu(host));
    }
    /// The processor has finished with its first frame.
    pub(crate) fn cpu_done(&mut self, host: u32) {
        let machine = &mut self.machines[host as usize];
        let (ifindex, packet) = machine.cpu.backlog.pop_front().expect("the processor had a frame");
        if let Some((_, next)) = machine.cpu.backlog.front() {
            let len = next.len;
            self.serve(host, len);
        }
        self.on_host(host, |h, cx| h.receive(ifindex, packet, cx));
        self.settle(host);
    }
}
