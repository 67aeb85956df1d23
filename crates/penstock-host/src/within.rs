//! Devices whose packets go on within the machine, by other devices: bridges, bonds, macvlans, VLANs, VRFs, tunnels.

use crate::{Effect, Host, HostCx};
use penstock_packet::Packet;
use penstock_sched::Xmit;

impl Host {
    /// A frame behind the ingress filters of a device in a bridge or a bond, or below macvlans (`rx_handler`). `Some`: it is for the device itself.
    #[cold]
    pub(crate) fn master_receive(
        &mut self,
        ifindex: u32,
        frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        if self.devices[ifindex].macvlans.is_some() {
            return self.macvlan_receive(ifindex, frame, cx);
        }
        match self.bond_of(ifindex) {
            Some(bond) => self.bond_receive(bond, ifindex, frame, cx),
            None => self.bridge_receive(ifindex, frame, cx),
        }
    }
    /// A packet comes to such a device from above: onto its qdisc, and `run` sends on what that lets go. What its qdisc has answered; none where this
    /// happens within `most` others already, and the packet is lost.
    //= linux v6.12 net/core/dev.c __dev_queue_xmit
    #[cold]
    pub(crate) fn queue_within(
        &mut self,
        ifindex: u32,
        packet: Packet,
        most: u32,
        run: fn(&mut Host, u32, &mut HostCx<'_>),
        cx: &mut HostCx<'_>,
    ) -> Option<Xmit> {
        if self.depth >= most {
            cx.out.push(Effect::Dropped { packet, ifindex, place: "netif", reason: "recursion" });
            return None;
        }
        self.depth += 1;
        if !self.put(ifindex, packet, cx.now) {
            self.queued(ifindex, false, cx);
        }
        let answer = self.answer;
        run(self, ifindex, cx);
        self.depth -= 1;
        Some(answer)
    }
}
