//! A packet that is known to leave by a device, or to arrive at one.

use crate::netfilter::Hook;
use crate::{Effect, Host, HostCx, rt_tos2priority};
use penstock_packet::Packet;
use penstock_sched::Xmit;

impl Host {
    /// A packet arrives at device `ifindex`, whoever it is for: through the filters of its ingress hook and an `ifb` they may send it to. One
    /// that gets past them is delivered, whatever the routes say; no packet of this host goes further from then on.
    pub fn arrive_at(&mut self, ifindex: u32, mut packet: Packet, cx: &mut HostCx<'_>) {
        self.ends_at_ingress = true;
        (packet.iif, packet.priority) = (ifindex, 0);
        self.netif_receive(ifindex, packet, cx);
    }
    /// A packet leaves by device `ifindex` whatever the routes say, as a capture there shows it: through the rules (of a packet that
    /// came in by `from`: PREROUTING, FORWARD, POSTROUTING, its priority from its ToS; else OUTPUT and POSTROUTING) and onto the
    /// device's qdisc. Hardware addresses, TTL and fragments stay as they are.
    pub fn leave_by(&mut self, ifindex: u32, from: Option<u32>, mut packet: Packet, cx: &mut HostCx<'_>) {
        self.answer = Xmit::Success;
        packet.iif = from.unwrap_or(0);
        let hooks: &[Hook] = match from {
            Some(_) => &[Hook::Prerouting, Hook::Forward, Hook::Postrouting],
            None => &[Hook::Output, Hook::Postrouting],
        };
        // As it is, with its addresses translated.
        self.netfilter.translated = true;
        packet.reset_ct();
        for &hook in hooks {
            let four = matches!(packet.l3, penstock_packet::L3::Ipv4(_));
            if hook == Hook::Forward && four {
                packet.priority = rt_tos2priority(self.kernel, packet.tos());
            }
            let oif = if hook == Hook::Prerouting { 0 } else { ifindex };
            let busy = if four { self.netfilter.busy(hook) } else { self.netfilter.busy6(hook) };
            if busy && !self.hook(hook, &mut packet, oif, cx) {
                self.netfilter.translated = false;
                self.netfilter.let_go(&packet);
                cx.out.push(Effect::Dropped { packet, ifindex, place: hook.chain(), reason: "dropped" });
                return;
            }
        }
        self.netfilter.translated = false;
        self.dev_queue_xmit(ifindex, packet, cx);
    }
    /// A packet comes to a device from above, as it is: behind the rules, onto the qdisc (`__dev_queue_xmit`).
    pub fn comes_to(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        self.answer = Xmit::Success;
        self.dev_queue_xmit(ifindex, packet, cx);
    }
}
