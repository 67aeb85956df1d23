//! The receiving side's filters, what actions send from one device to another, and the ifb that gives packets back.
//!
//! Follows: linux v6.12 `net/core/dev.c` `sch_handle_ingress`, `net/sched/act_mirred.c` `tcf_mirred_forward`,
//! `drivers/net/ifb.c` `ifb_xmit`, `ifb_ri_tasklet`.
//! Differs: what mirred sends leaves after the packet that met it, not before; an ifb gives a packet back at once, not
//! from a tasklet.

use crate::{Effect, Host, HostCx, Timer};
use penstock_packet::Packet;
use penstock_sched::act::Port;
use penstock_sched::{Cx, DropReason, Xmit};

/// What mirred sends on may meet mirred again, through devices without a queue, so many times at most.
const ROUNDS: u32 = 16;

impl Host {
    /// `sch_handle_ingress`. `None`: an action has taken the packet.
    pub(crate) fn pass_ingress(
        &mut self,
        ifindex: u32,
        frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let device = &mut self.devices[ifindex];
        let mut inner =
            Cx { now: cx.now, rng: &mut device.rng, drops: &mut self.drops, acts: &mut self.acts };
        let passed = device.tree.receive(frame, &mut inner);
        for (packet, reason) in self.drops.drain() {
            if reason == DropReason::Stolen {
                cx.pool.free(packet);
                continue;
            }
            let place = "ingress";
            cx.out.push(Effect::Dropped { packet, ifindex, place, reason: reason.as_str() });
        }
        if self.acts.has_sent() {
            self.send_elsewhere(cx);
        }
        passed
    }

    /// Sends or receives what mirred has directed to other devices.
    #[cold]
    pub(crate) fn send_elsewhere(&mut self, cx: &mut HostCx<'_>) {
        let mut list = std::mem::take(&mut self.sent);
        self.acts.take_sent(&mut list);
        let answer = self.answer;
        self.depth += 1;
        for sent in list.drain(..) {
            let packet = cx.pool.alloc(sent.skb);
            if self.devices.get(sent.ifindex).is_none() || self.depth > ROUNDS {
                self.discard(packet, "mirred", "recursion", cx);
            } else if sent.receive {
                self.netif_receive(sent.ifindex, packet, cx);
            } else {
                self.answer = Xmit::Success;
                self.xmit(sent.ifindex, packet, cx);
                if matches!(self.answer, Xmit::Drop | Xmit::Cn) {
                    self.acts.sending_failed(sent.action);
                }
            }
        }
        self.depth -= 1;
        self.answer = answer;
        self.sent = list;
    }

    /// An ifb sends what its qdiscs let go: back to where mirred took it from.
    pub(crate) fn ifb_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            let Some(device) = self.devices.get_mut(ifindex) else { return };
            device.counters.rx_packets += 1;
            device.counters.rx_bytes += u64::from(packet.len);
            let from = packet.iif;
            if !packet.tc.redirected || self.devices.get(from).is_none() {
                self.devices[ifindex].counters.rx_dropped += 1;
                self.discard(packet, "ifb", "not-redirected", cx);
                continue;
            }
            (packet.tc.skip_classify, packet.tc.redirected) = (true, false);
            packet.tc.nest = Default::default();
            if packet.tc.from_ingress {
                packet.iif = from;
                self.netif_receive(from, packet, cx);
            } else {
                packet.iif = ifindex;
                self.xmit(from, packet, cx);
            }
        }
        self.timers.retain(|&(_, timer)| timer != Timer::Ifb(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert((at.max(cx.now), Timer::Ifb(ifindex)));
        }
    }

    /// Tells the actions of the devices there are, where there are any actions.
    pub(crate) fn tell_ports(&mut self) {
        if self.acts.is_empty() {
            return;
        }
        let up = |d: &crate::NetDevice| d.up && self.carrier(d);
        let ports: Vec<Port> = self
            .devices
            .iter()
            .map(|d| Port { name: d.name.clone(), ifindex: d.ifindex, up: up(d) })
            .collect();
        self.acts.set_ports(ports.into_iter());
    }
}
