//! ARP: finding the hardware address of the next hop, and answering those who look for ours.
//!
//! Follows: linux v2.6.35 and v6.12 `net/ipv4/arp.c` (`arp_solicit`, `arp_process`).
//! Differs: no proxy ARP.

use crate::device::NOARP;
use crate::neigh::{Nud, UCAST_PROBES};
use crate::{Host, HostCx, timer};
use penstock_model::Kernel;
use penstock_packet::{Arp, L3, L4, Packet, Skb};
use std::net::{IpAddr, Ipv4Addr};

pub(crate) const MAC_BROADCAST: [u8; 6] = [0xff; 6];
/// Length of an ARP frame: 14 + 28, bytes. The driver pads it to 60 on the wire, nobody counts that.
const ARP_FRAME: u32 = 42;

impl Host {
    /// `neigh_probe` and `arp_solicit`.
    pub(crate) fn neigh_probe(&mut self, at: u32, cx: &mut HostCx<'_>) {
        let n = self.neigh.at(at);
        let IpAddr::V4(target) = n.addr else { return self.ndisc_solicit(at, cx) };
        let waiting = match self.kernel {
            Kernel::V2_6_35 => n.queue.front(),
            Kernel::V6_12 | Kernel::V7_2 => n.queue.back(),
        };
        let ifindex = n.ifindex;
        let own = waiting.and_then(|p| match p.l3 {
            L3::Ipv4(h) if self.is_local_on(ifindex, h.src) => Some(h.src),
            _ => None,
        });
        let tha = if n.probes < UCAST_PROBES { Some(n.mac) } else { None };
        let device = &self.devices[ifindex];
        let spa = own.or_else(|| device.address_towards(target)).unwrap_or(Ipv4Addr::UNSPECIFIED);
        let arp = Arp { op: 1, sha: device.mac, spa, tha: tha.unwrap_or([0; 6]), tpa: target };
        self.arp_send(ifindex, arp, tha.unwrap_or(MAC_BROADCAST), cx);
        self.neigh.at_mut(at).probes += 1;
    }

    pub(crate) fn arp_send(&mut self, ifindex: u32, arp: Arp, to: [u8; 6], cx: &mut HostCx<'_>) {
        let frame = cx.pool.alloc(Skb {
            created: cx.now,
            queued: cx.now,
            eth: (arp.sha, to),
            ..Skb::new(ARP_FRAME, L3::Arp(arp), L4::None)
        });
        self.xmit(ifindex, frame, cx);
    }

    /// `arp_process`.
    pub(crate) fn arp_receive(&mut self, ifindex: u32, frame: Packet, cx: &mut HostCx<'_>) {
        let L3::Arp(arp) = frame.l3 else {
            self.discard(frame, "arp", "malformed", cx);
            return;
        };
        if self.devices[ifindex].flags & NOARP != 0 {
            //= linux v6.12 net/ipv4/arp.c arp_rcv
            cx.pool.free(frame);
            return;
        }
        let to_us = frame.eth.1 != MAC_BROADCAST;
        cx.pool.free(frame);
        if arp.tpa.is_multicast() || arp.tpa.is_loopback() || !matches!(arp.op, 1 | 2) {
            return;
        }
        let mac = self.devices[ifindex].mac;
        let reply = Arp { op: 2, sha: mac, spa: arp.tpa, tha: arp.sha, tpa: arp.spa };
        if arp.op == 1 && self.is_local_at(ifindex, arp.tpa) {
            if !arp.spa.is_unspecified() {
                // The route back to the asker must be good (ip_route_input refuses our own address as a source).
                if self.is_local_at(ifindex, arp.spa) {
                    return;
                }
                let at = self.neigh.find_or_create(ifindex, arp.spa.into(), cx.now);
                self.neigh_update(at, arp.sha, Nud::Stale, true, cx);
            }
            self.arp_send(ifindex, reply, arp.sha, cx);
            return;
        }
        if arp.spa.is_unspecified() {
            return;
        }
        if let Some(at) = self.neigh.find(ifindex, arp.spa.into()) {
            let state = if arp.op == 2 && to_us { Nud::Reachable } else { Nud::Stale };
            let hz = i64::from(self.kernel.hz());
            // Of several answers within a second (locktime) the first holds.
            let tick = timer::jiffies(self.kernel, cx.now);
            let overrides = tick > self.neigh.at(at).updated + hz;
            self.neigh_update(at, arp.sha, state, overrides, cx);
        }
    }
}
