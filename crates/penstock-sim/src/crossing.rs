//! Frames between the namespaces of a machine that no cable carries: those of macvlans.
//!
//! What a macvlan sends over the device below it, and what that one receives for it, goes on at once, as within one kernel; what one macvlan sends to another is
//! received when the interrupt at hand is over (`netif_rx`), and takes a processor's time as over `lo`.

use crate::event::Event;
use crate::machine::Machine;
use crate::net::Net;
use crate::still::frame;
use penstock_host::Crossing;
use penstock_packet::Packet;

/// Whether two are namespaces of one machine.
pub(crate) fn one_machine(machines: &[Machine], a: u32, b: u32) -> bool {
    let whole = |m: u32| machines[m as usize].spaces.of.unwrap_or(m);
    whole(a) == whole(b)
}

impl Net {
    /// A frame of this host's goes on at a device of one of its machine's namespaces.
    #[cold]
    pub(crate) fn across(&mut self, host: u32, space: u32, ifindex: u32, how: Crossing, packet: Packet) {
        let whole = self.whole(host);
        let there = match space {
            0 => whole,
            other => match self.machines[whole as usize].spaces.others.get(&other) {
                Some(&there) => there,
                None => return self.lost_at(host, packet, "netif", "no-device"),
            },
        };
        if how.is_later() {
            // dev_forward_skb orphans it.
            self.left_host(host, &packet);
            let now = self.queue.now();
            let spaces = &mut self.machines[there as usize].spaces;
            let wait = spaces.toll.charge(now, frame(packet.len));
            spaces.crossing.push_back((ifindex, how, packet));
            self.queue.schedule(now + wait, Event::Across(there));
            return;
        }
        let room = self.todo.rooms.pop().unwrap_or_default();
        let asked = std::mem::replace(&mut self.todo.asked, room);
        self.on_host(there, |h, cx| h.comes_across(ifindex, how, packet, cx));
        self.settle(there);
        self.todo.rooms.push(std::mem::replace(&mut self.todo.asked, asked));
    }
    /// The oldest frame that another device of the machine has sent comes in.
    pub(crate) fn came_across(&mut self, host: u32) {
        if let Some((ifindex, how, packet)) = self.machines[host as usize].spaces.crossing.pop_front() {
            self.on_host(host, |h, cx| h.comes_across(ifindex, how, packet, cx));
            self.settle(host);
        }
    }
}
