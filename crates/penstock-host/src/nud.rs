//! What neighbours' states do with packets: who waits, who is asked for again, who is given up.
//!
//! Follows: linux v2.6.35 and v6.12 `net/core/neighbour.c` (`__neigh_event_send`, `neigh_timer_handler`, `neigh_update`). 2.6.35 sends its
//! first request a tick late and keeps 3 packets waiting; 6.12 sends at once and keeps 208 KB (`unres_qlen_bytes`).
//! Differs: entries are never collected.

use crate::device::NOARP;
use crate::neigh::{Nud, Parm};
use crate::route::{Key, RouteKind};
use crate::six::icmp;
use crate::{Effect, Host, HostCx, Timer, timer};
use penstock_model::{Kernel, Time};
use penstock_packet::Packet;
use std::net::Ipv4Addr;

/// `unres_qlen` of 2.6.35, packets.
const UNRES_QLEN: usize = 3;
/// `unres_qlen_bytes` of 6.12: `SK_WMEM_MAX`.
const UNRES_QLEN_BYTES: u32 = 212_992;

/// `skb->truesize` of a frame as an Ethernet driver of 6.12 would have it: data rounded up to a slab, and 512 bytes.
pub(crate) fn truesize(len: u32) -> u32 {
    (len + 320).next_power_of_two().clamp(512, 65_536 * 2) + 256
}

impl Host {
    /// Gives a packet to the neighbour `next` on `oif`; asks for its hardware address first where need be.
    #[inline(always)]
    pub(crate) fn neigh_output(&mut self, mut packet: Packet, oif: u32, at: u32, cx: &mut HostCx<'_>) {
        let Some(mac) = self.neigh.reaches(at, self.kernel, cx.now) else {
            self.neigh_resolve_output(packet, oif, at, cx);
            return;
        };
        packet.eth = (self.devices[oif].mac, mac);
        self.xmit(oif, packet, cx);
    }

    /// `neigh_resolve_output`.
    #[cold]
    fn neigh_resolve_output(&mut self, packet: Packet, oif: u32, at: u32, cx: &mut HostCx<'_>) {
        if self.neigh.at(at).state == Nud::None && self.devices[oif].flags & NOARP != 0 {
            //= linux v6.12 net/ipv4/arp.c arp_constructor, net/ipv6/ndisc.c ndisc_constructor: nobody is asked; frames go to the device's own address.
            self.neigh.at_mut(at).used = timer::jiffies(self.kernel, cx.now);
            let n = self.neigh.at_mut(at);
            (n.state, n.mac) = (Nud::Noarp, self.devices[oif].mac);
            return self.neigh_output(packet, oif, at, cx);
        }
        let Some(mut packet) = self.neigh_event_send(oif, at, Some(packet), cx).1 else { return };
        packet.eth = (self.devices[oif].mac, self.neigh.at(at).mac);
        self.xmit(oif, packet, cx);
    }
    /// `neigh_event_send`: a neighbour is needed whose hardware address may not be used without a thought. Whether it may be used; if not, it is asked for
    /// it, and the packet waits for the answer. Else the packet comes back.
    #[cold]
    pub(crate) fn neigh_event_send(
        &mut self,
        oif: u32,
        at: u32,
        packet: Option<Packet>,
        cx: &mut HostCx<'_>,
    ) -> (bool, Option<Packet>) {
        let (usable, back, solicits) = self.neigh_event(oif, at, packet, cx);
        if solicits {
            self.neigh_probe(at, cx);
        }
        (usable, back)
    }
    /// The same without the question: whether it is to be asked now.
    pub(crate) fn neigh_event(
        &mut self,
        oif: u32,
        at: u32,
        packet: Option<Packet>,
        cx: &mut HostCx<'_>,
    ) -> (bool, Option<Packet>, bool) {
        let now_tick = timer::jiffies(self.kernel, cx.now);
        let n = self.neigh.at_mut(at);
        n.used = now_tick;
        let (six, ifindex) = (n.addr.is_ipv6(), n.ifindex);
        let mut solicit = false;
        match self.neigh.at(at).state {
            Nud::None | Nud::Failed => {
                let of = |which| self.neigh.parm(six, ifindex, which);
                let (ucast, mcast) = (of(Parm::Ucast) as u32, of(Parm::Mcast));
                let retrans = self.neigh.ticks(six, ifindex, Parm::Retrans);
                let n = self.neigh.at_mut(at);
                if mcast == 0 {
                    //= linux v6.12 net/core/neighbour.c __neigh_event_send: nobody is to be asked
                    (n.state, n.updated) = (Nud::Failed, now_tick);
                    if let Some(packet) = packet {
                        cx.out.push(Effect::Dropped {
                            packet,
                            ifindex: oif,
                            place: "arp",
                            reason: "neigh-failed",
                        });
                    }
                    return (false, None, false);
                }
                n.probes = ucast;
                n.state = Nud::Incomplete;
                n.updated = now_tick;
                let expires = match self.kernel {
                    Kernel::V2_6_35 => now_tick + 1,
                    Kernel::V6_12 | Kernel::V7_2 => now_tick + retrans.max(i64::from(self.kernel.hz()) / 100),
                };
                self.neigh_timer(at, Some(timer::fires(self.kernel, cx.now, expires)));
                solicit = self.kernel != Kernel::V2_6_35;
            }
            Nud::Stale => {
                let delay = self.neigh.ticks(six, ifindex, Parm::Delay);
                let n = self.neigh.at_mut(at);
                n.state = Nud::Delay;
                n.updated = now_tick;
                let fires = timer::fires(self.kernel, cx.now, now_tick + delay);
                self.neigh_timer(at, Some(fires));
            }
            _ => {}
        }
        if self.neigh.at(at).state != Nud::Incomplete {
            return (true, packet, false);
        }
        if let Some(packet) = packet {
            self.neigh_wait(oif, at, packet, cx);
        }
        (false, None, solicit)
    }
    /// A packet waits for the neighbour's hardware address; the oldest give way where too many do.
    fn neigh_wait(&mut self, oif: u32, at: u32, packet: Packet, cx: &mut HostCx<'_>) {
        let n = self.neigh.at_mut(at);
        let size = truesize(packet.len);
        let kernel = self.kernel;
        loop {
            let full = match kernel {
                Kernel::V2_6_35 => n.queue.len() >= UNRES_QLEN,
                Kernel::V6_12 | Kernel::V7_2 => n.queue_bytes + size > UNRES_QLEN_BYTES,
            };
            if !full {
                break;
            }
            let Some(oldest) = n.queue.pop_front() else { break };
            n.queue_bytes -= truesize(oldest.len);
            let reason = "neigh-queuefull";
            cx.out.push(Effect::Dropped { packet: oldest, ifindex: oif, place: "arp", reason });
        }
        n.queue_bytes += size;
        n.queue.push_back(packet);
    }

    /// Sets (or clears) when the neighbour's timer fires.
    pub(crate) fn neigh_timer(&mut self, at: u32, fires: Option<Time>) {
        let n = self.neigh.at_mut(at);
        if let Some(old) = n.timer.take() {
            self.timers.remove(old, Timer::Neigh(at));
        }
        if let Some(new) = fires {
            let n = self.neigh.at_mut(at);
            n.timer = Some(new);
            //= linux v6.12 net/core/neighbour.c neigh_add_timer: who was heard of lately counts as used
            if self.kernel >= Kernel::V6_12 {
                n.used = n.used.max(n.confirmed);
            }
            self.timers.insert(new, Timer::Neigh(at));
        }
    }

    /// `neigh_timer_handler`.
    pub(crate) fn neigh_timer_fired(&mut self, at: u32, cx: &mut HostCx<'_>) {
        let kernel = self.kernel;
        let hz = i64::from(kernel.hz());
        let tick = timer::jiffies(kernel, cx.now);
        let n = self.neigh.at(at);
        let (six, ifindex) = (n.addr.is_ipv6(), n.ifindex);
        let reachable = self.neigh.reachable_time(six, ifindex, cx.now);
        let of = |which| self.neigh.ticks(six, ifindex, which);
        let (retrans, delay) = (of(Parm::Retrans), of(Parm::Delay));
        let of = |which| self.neigh.parm(six, ifindex, which) as u32;
        // neigh_max_probes: a neighbour once known is given up after the unicast requests.
        let (ucast, mcast, again) = (of(Parm::Ucast), of(Parm::Mcast), of(Parm::McastAgain));
        let n = self.neigh.at_mut(at);
        n.timer = None;
        if !n.state.in_timer() {
            return;
        }
        let mut next = tick + retrans;
        match n.state {
            Nud::Reachable if tick <= n.confirmed + reachable => next = n.confirmed + reachable,
            Nud::Reachable if tick <= n.used + delay => {
                n.state = Nud::Delay;
                n.updated = tick;
                next = tick + delay;
            }
            Nud::Reachable => {
                n.state = Nud::Stale;
                n.updated = tick;
            }
            Nud::Delay if tick <= n.confirmed + delay => {
                n.state = Nud::Reachable;
                n.updated = tick;
                next = n.confirmed + reachable;
            }
            Nud::Delay => {
                n.state = Nud::Probe;
                n.updated = tick;
                n.probes = 0;
            }
            _ => {}
        }
        let asking = matches!(n.state, Nud::Incomplete | Nud::Probe);
        let max = ucast + if n.state == Nud::Probe { again } else { mcast };
        if asking && n.probes >= max {
            n.state = Nud::Failed;
            n.updated = tick;
            self.neigh_invalidate(at, cx);
            return;
        }
        if n.state.in_timer() {
            let least = match kernel {
                Kernel::V2_6_35 => hz / 2,
                Kernel::V6_12 | Kernel::V7_2 => hz / 100,
            };
            let fires = timer::fires(kernel, cx.now, next.max(tick + least));
            self.neigh_timer(at, Some(fires));
        }
        if asking {
            self.neigh_probe(at, cx);
        }
    }

    /// `neigh_invalidate`: all that waited hears that the host is unreachable.
    fn neigh_invalidate(&mut self, at: u32, cx: &mut HostCx<'_>) {
        let n = self.neigh.at_mut(at);
        n.queue_bytes = 0;
        let (ifindex, six) = (n.ifindex, n.addr.is_ipv6());
        let mut waiting = std::mem::take(&mut n.queue);
        if six {
            // A host looks for another gateway from now on.
            self.six.fib.invalidate();
        }
        while let Some(packet) = waiting.pop_front() {
            // arp_error_report, ipv4_link_failure.
            self.icmp_send_by(ifindex, &packet, 3, 1, 0, cx);
            // ndisc_error_report, ip6_link_failure.
            self.icmp6_send(&packet, icmp::DEST_UNREACH, icmp::ADDR_UNREACH, 0, cx);
            cx.out.push(Effect::Dropped { packet, ifindex, place: "arp", reason: "host-unreachable" });
        }
    }

    /// `neigh_update` with a hardware address and a valid state.
    pub(crate) fn neigh_update(
        &mut self,
        at: u32,
        mac: [u8; 6],
        mut new: Nud,
        overrides: bool,
        cx: &mut HostCx<'_>,
    ) {
        let tick = timer::jiffies(self.kernel, cx.now);
        let n = self.neigh.at(at);
        let (six, ifindex) = (n.addr.is_ipv6(), n.ifindex);
        let reachable = self.neigh.reachable_time(six, ifindex, cx.now);
        let base = self.neigh.ticks(six, ifindex, Parm::Reachable);
        let kernel = self.kernel;
        let n = self.neigh.at_mut(at);
        let old = n.state;
        if matches!(old, Nud::Permanent | Nud::Noarp) {
            return;
        }
        let other = n.mac != mac;
        if new.is_connected() {
            n.confirmed = tick;
        }
        if kernel == Kernel::V2_6_35 {
            n.updated = tick;
        }
        if old.is_valid() {
            if other && !overrides {
                return;
            }
            let keeps = kernel >= Kernel::V6_12 || old.is_connected();
            if !other && new == Nud::Stale && keeps {
                new = old;
            }
        }
        if new != old || other {
            n.updated = tick;
        }
        if other {
            n.mac = mac;
            if !new.is_connected() {
                n.confirmed = tick - 2 * base;
            }
        }
        if new == old {
            return;
        }
        n.state = new;
        if old == Nud::Failed && n.addr.is_ipv6() {
            self.six.fib.invalidate();
        }
        let fires = (new == Nud::Reachable).then(|| timer::fires(kernel, cx.now, tick + reachable));
        self.neigh_timer(at, fires);
        if !old.is_valid() {
            let n = self.neigh.at_mut(at);
            n.queue_bytes = 0;
            let mut waiting = std::mem::take(&mut n.queue);
            while let Some(packet) = waiting.pop_front() {
                //= linux v6.12 net/core/neighbour.c __neigh_update: by the neighbour that its route has, which may be another device's.
                match packet.rare().next_hop {
                    Some((device, _)) if self.devices.get(device).is_some() => self.xmit(device, packet, cx),
                    _ => self.neigh_output(packet, ifindex, at, cx),
                }
            }
            // The emptied queue goes back, so that its memory is used again.
            let n = self.neigh.at_mut(at);
            if n.queue.is_empty() {
                n.queue = waiting;
            }
        }
    }

    /// A socket has proof that `peer` hears us (`dst_confirm`: TCP on an acknowledgement of new data).
    pub fn confirm(&mut self, peer: Ipv4Addr, now: Time) {
        let hop = self.fib.lookup(&Key::to(peer));
        if hop.kind != Some(RouteKind::Unicast) {
            return;
        }
        let at = match hop.neigh {
            0 => self.neigh.find(hop.oif, self.fib.next_of(&hop)),
            known => Some(known - 1),
        };
        if let Some(at) = at {
            self.neigh.at_mut(at).confirmed = timer::jiffies(self.kernel, now);
        }
    }

    /// Forgets a neighbour; whatever waited for it is dropped.
    pub(crate) fn neigh_delete(&mut self, at: u32) {
        self.neigh_timer(at, None);
        let n = self.neigh.at_mut(at);
        let ifindex = n.ifindex;
        n.queue_bytes = 0;
        for packet in std::mem::take(&mut n.queue) {
            self.pending.push(Effect::Dropped { packet, ifindex, place: "arp", reason: "purged" });
        }
        self.neigh.forget(at);
        self.fib.invalidate();
        self.six.fib.invalidate();
    }
}
