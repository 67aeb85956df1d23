//! Pairs of veth devices: what leaves by one end comes in by the other, in whichever network namespace that is.
//!
//! An end whose peer is up has a card of the caller's like any other device; frames between the two are the caller's to carry
//! ([`Host::cross`]), as nothing that leaves a namespace stays in the [`Host`] it was in.
//!
//! Follows: linux v6.12 `drivers/net/veth.c` `veth_open`, `veth_close`, `veth_xmit`; `net/core/dev.c` `____dev_forward_skb`;
//! `net/core/skbuff.c` `skb_scrub_packet`; `net/sched/sch_generic.c` `noop_enqueue`.
//! Differs: a carrier comes and goes at once, not when the work queue comes by; no GRO, no XDP.

use crate::device::Lower;
use crate::neigh::Nud;
use crate::{Effect, Host, HostCx};
use penstock_model::{Kernel, Time};
use penstock_packet::{Packet, Skb};
use penstock_sched::{Cx, Xmit};

impl Host {
    /// The other end of a veth pair: the number of its network namespace, and its index there. `None` of other devices.
    pub fn veth_peer(&self, ifindex: u32) -> Option<Lower> {
        self.devices.get(ifindex).filter(|d| d.is_veth())?.lower
    }
    /// An end of a pair has gone up or down, or been given its peer: both have a carrier while both are up.
    pub(crate) fn veth_follows(&mut self, ifindex: u32, now: Time) {
        let Some(peer) = self.veth_peer(ifindex) else { return };
        let up = self.devices[ifindex].up;
        let is_up = |host: &Host| host.devices.get(peer.ifindex).is_some_and(|d| d.up);
        let both = up && self.space_ref(peer.space).is_some_and(is_up);
        self.set_veth_carrier(ifindex, both, now);
        self.in_space(peer.space, |host| host.set_veth_carrier(peer.ifindex, both, now));
    }
    /// `netif_carrier_on`, `netif_carrier_off`.
    fn set_veth_carrier(&mut self, ifindex: u32, on: bool, now: Time) {
        let Host { devices, drops, acts, .. } = self;
        let Some(device) = devices.get_mut(ifindex).filter(|d| d.is_veth()) else { return };
        if device.is_cardless() != on {
            return;
        }
        device.set_peer_up(on);
        if !on && device.up {
            // dev_deactivate: what is queued goes.
            let mut cx = Cx { now, rng: &mut device.rng, drops, acts };
            device.tree.set_up(false, &mut cx);
            device.tree.set_up(true, &mut cx);
        }
        if !on && self.devices[ifindex].up && self.kernel >= Kernel::V6_12 {
            //= linux v6.12 net/core/neighbour.c neigh_carrier_down: all but those that a command has made
            let passing = |at: &u32| self.neigh.at(*at).state != Nud::Permanent;
            let there: Vec<u32> = self.neigh.of_device(ifindex).filter(passing).collect();
            there.into_iter().for_each(|at| self.neigh_delete(at));
        }
        self.keep_drops(ifindex);
        if on && self.devices[ifindex].up && !self.devices[ifindex].six.conf.disabled {
            self.groups_six(ifindex, true);
        }
        self.bridge_follows(ifindex, now);
    }
    /// A packet comes to an end of a pair whose other end is down, or to a device that no program reads from: there is no carrier, and in place of
    /// its qdisc stands `noop`.
    #[cold]
    pub(crate) fn queue_without_carrier(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        self.answer = Xmit::Cn;
        if self.kernel >= Kernel::V6_12 {
            self.devices[ifindex].counters.tx_dropped += 1;
        }
        cx.out.push(Effect::Dropped { packet, ifindex, place: "qdisc", reason: "no-carrier" });
    }
    /// A frame that an end of a pair here has sent is about to come in by the other end, which has `mtu` for its MTU. `false`: it is too long for
    /// that, and is lost. Within one namespace (`same`) it keeps its mark.
    pub fn cross(&mut self, ifindex: u32, frame: &mut Skb, mtu: u32, same: bool) -> bool {
        // is_skb_forwardable
        if frame.len > mtu + LONGEST_HEADER && frame.gso().is_none() {
            if let Some(device) = self.devices.get_mut(ifindex) {
                let counters = &mut device.counters;
                counters.tx_packets -= 1;
                counters.tx_bytes -= u64::from(frame.len);
                counters.tx_dropped += 1;
            }
            return false;
        }
        if same && frame.mark != 0 {
            frame.rare_mut().kept_mark = frame.mark;
        }
        true
    }
    /// A frame for a device was too long for it.
    pub fn refused_frame(&mut self, ifindex: u32) {
        if let Some(device) = self.devices.get_mut(ifindex) {
            device.counters.rx_dropped += 1;
        }
    }
}

/// An Ethernet header and a VLAN tag, bytes.
const LONGEST_HEADER: u32 = 14 + 4;
