//! Captured cards: who asks for one, and what is told of its frames ([`capture`](crate::capture) has the words).

use crate::capture::{Capture, Capturing, Queues, Seen};
use crate::index::NONE;
use crate::link::Port;
use crate::net::Net;
use crate::spec::HostId;
use crate::world::World;
use penstock_packet::Skb;

impl World {
    /// Tells `to` of every frame at a device from now on; `false` where the device is not a card at a link, and nothing is told.
    pub fn capture(&mut self, host: HostId, device: &str, to: Box<dyn Capture>) -> bool {
        let machine = &self.net.machines[host.0 as usize];
        let n = machine.host.ifindex(device).and_then(|i| machine.nics.get(i as usize)).copied();
        let Some(nic) = n.filter(|&n| n != NONE).and_then(|n| self.net.cables.nics.get_mut(n as usize))
        else {
            return false;
        };
        if nic.port == Port::Nothing {
            return false;
        }
        nic.capture = Some(Box::new(Capturing { to, queues: Queues::default() }));
        nic.plain = false;
        self.net.captured = true;
        true
    }
}

impl Net {
    /// A card that may be captured takes a frame.
    #[cold]
    pub(crate) fn capture_sent(&mut self, n: u32, skb: &Skb) {
        let (now, commands) = (self.queue.now(), self.cables.commands);
        let nic = &mut self.cables.nics[n as usize];
        let Some(capture) = &mut nic.capture else { return };
        let (class, waited) = (skb.tc.class, now - skb.queued);
        let host = &self.machines[nic.host as usize].host;
        let queue = capture.queues.of(class, commands, host, nic.ifindex, now);
        capture.to.frame(now, Seen::Sent { class, queue, waited }, skb);
    }
    /// A frame arrives at a card that may be captured.
    #[cold]
    pub(crate) fn capture_received(&mut self, host: u32, ifindex: u32, skb: &Skb) {
        let now = self.queue.now();
        if let Some(capture) = self.capture_of(host, ifindex) {
            capture.to.frame(now, Seen::Received, skb);
        }
    }
    /// A packet is lost at a card that may be captured.
    #[cold]
    pub(crate) fn capture_lost(
        &mut self,
        host: u32,
        ifindex: u32,
        skb: &Skb,
        place: &'static str,
        reason: &'static str,
    ) {
        let (now, commands) = (self.queue.now(), self.cables.commands);
        let Some(&n) = self.machines[host as usize].nics.get(ifindex as usize) else { return };
        let Some(nic) = self.cables.nics.get_mut(n as usize) else { return };
        let Some(capture) = &mut nic.capture else { return };
        let class = skb.tc.class;
        let host = &self.machines[host as usize].host;
        let queue = match place {
            "qdisc" => capture.queues.of(class, commands, host, ifindex, now),
            _ => "",
        };
        capture.to.frame(now, Seen::Lost { place, reason, class, queue }, skb);
    }
    fn capture_of(&mut self, host: u32, ifindex: u32) -> Option<&mut Capturing> {
        let &n = self.machines[host as usize].nics.get(ifindex as usize)?;
        self.cables.nics.get_mut(n as usize)?.capture.as_deref_mut()
    }
}
