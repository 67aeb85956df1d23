//! A frame's way through a bridge: in by a port, on to others, up to the bridge itself; out from the bridge.
//!
//! Follows: linux v6.12 `net/bridge/br_input.c` `br_handle_frame`, `br_handle_frame_finish`, `__br_handle_local_finish`, `br_pass_frame_up`; `br_forward.c` `br_forward`,
//! `br_flood`, `should_deliver`; `br_device.c` `br_dev_xmit`; v2.6.35 the same files.
//! Differs: no IGMP: what asks for it is refused by name. Of several copies of a flooded frame the flow's own packet is
//! the one that leaves last, by the oldest port.

use super::stp::State;
use super::vlan::{allowed_egress, handle_vlan};
use super::{Mac, spanning};
use crate::path::MAX_DEPTH;
use crate::{Host, HostCx, Timer};
use penstock_model::{Kernel, Time};
use penstock_packet::{Packet, Skb};
use penstock_sched::Xmit;

/// A frame's way through a bridge.
#[derive(Clone, Copy)]
struct Way {
    bridge: u32,
    /// The port that it came in by; `None`: the bridge sends it.
    from: Option<u32>,
    /// Its VLAN; `None`: the bridge looks at no tags.
    vid: Option<u16>,
}

/// Whom a frame is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum To {
    One,
    Group,
    All,
}

impl To {
    fn of(mac: Mac) -> To {
        match mac {
            crate::arp::MAC_BROADCAST => To::All,
            _ if mac[0] & 1 == 1 => To::Group,
            _ => To::One,
        }
    }
}

impl Host {
    /// `br_handle_frame`: a frame behind the ingress filters of a port. `Some`: it is for the port itself, as if there were no bridge.
    #[cold]
    pub(crate) fn bridge_receive(
        &mut self,
        ifindex: u32,
        frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let Some(bridge) = self.bridge_of(ifindex) else { return Some(frame) };
        let (from, to) = frame.eth;
        let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { return Some(frame) };
        if from == [0; 6] || from[0] & 1 == 1 {
            return self.not_bridged(frame, "bad-source", cx);
        }
        if to == spanning::GROUP
            && b.vlan.forwarded_groups() & 1 == 0
            && b.tree.as_ref().is_some_and(|t| t.on)
        {
            let frame = self.for_the_port(bridge, ifindex, frame, cx);
            self.bpdu_received(bridge, ifindex, frame, cx);
            return None;
        }
        if to[..5] == LINK_LOCAL && to[5] & 0xf0 == 0 && to[5] != 0 {
            if to[5] == 1 {
                return self.not_bridged(frame, "pause", cx);
            }
            if b.vlan.forwarded_groups() & 1 << to[5] == 0 {
                return Some(self.for_the_port(bridge, ifindex, frame, cx));
            }
        }
        if !b.state(ifindex, cx.now).1 {
            let state = b.tree.as_ref().and_then(|tree| tree.port(ifindex)).map(|p| p.state);
            let reason = match state {
                Some(State::Listening) => "port-listening",
                Some(State::Blocking) => "port-blocking",
                _ => "port-disabled",
            };
            return self.not_bridged(frame, reason, cx);
        }
        let frame = self.bridge_prerouting(bridge, ifindex, frame, cx)?;
        self.bridge_handle_finish(bridge, ifindex, frame, cx)
    }
    /// `br_handle_frame_finish`.
    fn bridge_handle_finish(
        &mut self,
        bridge: u32,
        ifindex: u32,
        mut frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let (from, to) = frame.eth;
        let promiscuous = self.devices[bridge].flags & crate::device::PROMISC != 0;
        let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { return Some(frame) };
        let promiscuous = promiscuous || b.promiscuous;
        let sends = b.state(ifindex, cx.now).0;
        let Some(at) = b.ports.iter().position(|p| p.ifindex == ifindex) else { return Some(frame) };
        let Ok(vid) = b.vlan.ingress(&b.ports[at].vlans, &mut frame) else {
            return self.not_bridged(frame, "vlan", cx);
        };
        if b.ports[at].set.learning {
            b.learn(from, vid.unwrap_or(0), ifindex, cx.now);
        }
        if !sends {
            return self.not_bridged(frame, "port-learning", cx);
        }
        let kind = To::of(to);
        let up = promiscuous || kind != To::One;
        let known = if kind == To::One { b.find(to, vid.unwrap_or(0), cx.now) } else { None };
        let way = Way { bridge, from: Some(ifindex), vid };
        let left = match known {
            Some(entry) if entry.local => Some(frame),
            Some(entry) => self.bridge_forward(way, entry.port, frame, up, cx),
            None => self.bridge_flood(way, kind, frame, up, cx),
        };
        if let Some(frame) = left {
            self.bridge_pass_up(way, ifindex, frame, cx);
        }
        None
    }
    /// `__br_handle_local_finish`: a frame for the port itself, which may tell who is behind it.
    #[cold]
    fn for_the_port(&mut self, bridge: u32, ifindex: u32, frame: Packet, cx: &mut HostCx<'_>) -> Packet {
        let old = self.kernel == Kernel::V2_6_35;
        if let Some(b) = self.devices[bridge].bridge.as_deref_mut()
            && b.state(ifindex, cx.now).1
            && let Some(port) = b.port(ifindex).filter(|p| p.set.learning && !old)
            && let Some(vid) = b.vlan.should_learn(&port.vlans, &frame)
        {
            b.learn(frame.eth.0, vid, ifindex, cx.now);
        }
        frame
    }
    pub(super) fn not_bridged(
        &mut self,
        frame: Packet,
        reason: &'static str,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        self.discard(frame, "bridge", reason, cx);
        None
    }

    /// `br_pass_frame_up`: the bridge has received a frame.
    fn bridge_pass_up(&mut self, way: Way, port: u32, mut frame: Packet, cx: &mut HostCx<'_>) {
        let bridge = way.bridge;
        let to = frame.eth.1;
        let ours = to[0] & 1 == 1 || to == self.devices[bridge].mac || to == self.devices[port].mac;
        let told = frame.rare().ptype.is_some();
        if to == self.devices[bridge].mac {
            if told {
                frame.rare_mut().ptype = None;
            }
        } else if !ours && !told {
            frame.rare_mut().ptype = Some(crate::vlan::OTHERHOST);
        }
        let device = &mut self.devices[bridge];
        device.counters.rx_packets += 1;
        // The Ethernet header is off by then.
        device.counters.rx_bytes += u64::from(frame.network_len());
        if let (Some(vid), Some(b)) = (way.vid, device.bridge.as_deref()) {
            if b.vlan.own.has(vid) {
                handle_vlan(&b.vlan.own, vid, &mut frame);
            } else if device.flags & crate::device::PROMISC == 0 && !b.promiscuous {
                self.not_bridged(frame, "vlan", cx);
                return;
            }
        }
        frame.iif = bridge;
        self.netif_receive(bridge, frame, cx);
    }

    /// A packet comes to a bridge from above: onto its qdisc, and what that lets go on to the ports. The answer is that of the bridge's own
    /// qdisc, where it has one.
    #[cold]
    pub(crate) fn queue_on_bridge(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        if let Some(answer) = self.queue_within(ifindex, packet, MAX_DEPTH, Host::bridge_run, cx) {
            self.answer = answer;
        }
    }
    /// `br_dev_xmit`: a bridge sends what its qdisc lets go, and comes again when that lets go more.
    pub(crate) fn bridge_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            let Some(b) = self.devices.get_mut(ifindex).and_then(|d| d.bridge.as_deref_mut()) else {
                self.discard(packet, "netif", "no-device", cx);
                return;
            };
            if packet.is_noted() {
                packet.rare_mut().nest = Default::default();
                if let Some(known) = &mut packet.rare_mut().bridged
                    && let Some(sender) = known.sender.take()
                {
                    //= linux v6.12 net/bridge/br_netfilter_hooks.c br_nf_dev_xmit
                    let port = known.from;
                    known.to = 0;
                    packet.eth.0 = sender;
                    let answer = std::mem::replace(&mut self.answer, Xmit::Success);
                    // Its port may have gone while the neighbour was asked for.
                    if let Some(left) = self.bridge_handle_finish(ifindex, port, packet, cx) {
                        self.not_bridged(left, "no-port", cx);
                    }
                    self.answer = answer;
                    continue;
                }
            }
            let Ok(vid) = b.vlan.ingress(&b.vlan.own, &mut packet) else {
                self.not_bridged(packet, "vlan", cx);
                continue;
            };
            let to = packet.eth.1;
            let kind = To::of(to);
            let known = if kind == To::One { b.find(to, vid.unwrap_or(0), cx.now) } else { None };
            let way = Way { bridge: ifindex, from: None, vid };
            let answer = std::mem::replace(&mut self.answer, Xmit::Success);
            match known {
                Some(entry) => self.bridge_forward(way, entry.port, packet, false, cx),
                None => self.bridge_flood(way, kind, packet, false, cx),
            };
            self.answer = answer;
        }
        self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert(at.max(cx.now), Timer::Cardless(ifindex));
        }
    }

    /// `br_forward`: to one port. `keep`: a copy goes, the frame comes back.
    fn bridge_forward(
        &mut self,
        way: Way,
        port: Option<u32>,
        frame: Packet,
        keep: bool,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let target = port.filter(|&p| self.should_deliver(way, p, cx.now));
        let Some(port) = target else {
            if keep {
                return Some(frame);
            }
            let same = port.is_some() && port == way.from;
            return self.not_bridged(frame, if same { "same-port" } else { "no-port" }, cx);
        };
        if keep {
            let copy = self.copy_of(&frame, cx);
            self.bridge_xmit(way, port, copy, cx);
            return Some(frame);
        }
        self.bridge_xmit(way, port, frame, cx);
        None
    }
    /// `br_flood`: to all ports but that it came from.
    fn bridge_flood(
        &mut self,
        way: Way,
        kind: To,
        mut frame: Packet,
        keep: bool,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        let mut last = None;
        //= linux v6.12 net/bridge/br_forward.c br_flood: br_tc_skb_miss_set
        if kind != To::All {
            frame.rare_mut().l2_miss = true;
        }
        let count = self.devices[way.bridge].bridge.as_ref().map_or(0, |b| b.ports.len());
        for n in 0..count {
            // What a copy sets off may change the ports.
            let Some(b) = self.devices.get(way.bridge).and_then(|d| d.bridge.as_deref()) else { break };
            let Some(port) = b.ports.get(n) else { break };
            let wants = match kind {
                To::One => port.set.flood,
                To::Group => port.set.mcast_flood || way.from.is_none(),
                To::All => port.set.bcast_flood || way.from.is_none(),
            };
            let ifindex = port.ifindex;
            if !wants || !self.should_deliver(way, ifindex, cx.now) {
                continue;
            }
            if let Some(before) = last.replace(ifindex) {
                let copy = self.copy_of(&frame, cx);
                self.bridge_xmit(way, before, copy, cx);
            }
        }
        match last {
            Some(port) if keep => {
                let copy = self.copy_of(&frame, cx);
                self.bridge_xmit(way, port, copy, cx);
                Some(frame)
            }
            Some(port) => {
                self.bridge_xmit(way, port, frame, cx);
                None
            }
            None if keep => Some(frame),
            None => self.not_bridged(frame, "no-port", cx),
        }
    }
    /// `should_deliver`.
    fn should_deliver(&self, way: Way, port: u32, now: Time) -> bool {
        let Way { from, .. } = way;
        let Some(b) = self.devices[way.bridge].bridge.as_deref() else { return false };
        let Some(to) = b.port(port) else { return false };
        let isolated = |i: u32| b.port(i).is_some_and(|p| p.set.isolated);
        (to.set.hairpin || from != Some(port))
            && b.state(port, now).0
            && allowed_egress(&to.vlans, way.vid)
            && !(to.set.isolated && from.is_some_and(isolated))
    }
    pub(crate) fn copy_of(&self, frame: &Skb, cx: &mut HostCx<'_>) -> Packet {
        let mut copy = cx.pool.alloc(frame.clone());
        copy.tc.role.set_copy(true);
        cx.pool.note_extra(&copy);
        copy
    }
    /// `__br_forward`, `br_dev_queue_push_xmit`: onto the port's qdisc, if the frame fits.
    fn bridge_xmit(&mut self, way: Way, port: u32, mut frame: Packet, cx: &mut HostCx<'_>) {
        if let Some(vid) = way.vid
            && let Some(b) = self.devices[way.bridge].bridge.as_deref()
            && let Some(p) = b.port(port)
        {
            handle_vlan(&p.vlans, vid, &mut frame);
        }
        if way.from.is_some() && frame.is_noted() && frame.rare().bridged.is_some() {
            let Some(left) = self.bridge_forwarded(way.bridge, port, frame, cx) else { return };
            frame = left;
        }
        let longest = self.devices[port].mtu + ETH_HLEN + VLAN_HLEN;
        if frame.len > longest && frame.gso().is_none() {
            self.not_bridged(frame, "too-long", cx);
            return;
        }
        self.xmit(port, frame, cx);
    }
}

/// The first bytes of addresses that bridges keep to themselves (IEEE 802.1D table 7-10).
const LINK_LOCAL: [u8; 5] = [0x01, 0x80, 0xc2, 0, 0];
/// Length of an Ethernet header and of a VLAN tag, bytes.
const ETH_HLEN: u32 = 14;
const VLAN_HLEN: u32 = 4;
