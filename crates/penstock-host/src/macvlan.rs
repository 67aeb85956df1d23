//! Macvlans: several devices with addresses of their own over one, whichever network namespaces they are in.
//!
//! What the device below does with macvlans over it is done in its namespace, and so where a frame goes: it is told of them after each command. Where a
//! frame has to go to another namespace, or is received later ([`Effect::Across`]), that is the caller's to do.
//!
//! Follows: linux v6.12 `drivers/net/macvlan.c` `macvlan_handle_frame`, `macvlan_queue_xmit`, `macvlan_broadcast`, `macvlan_process_broadcast`,
//! `macvlan_common_newlink`, `macvlan_changelink`, `macvlan_open`, `macvlan_sync_address`, `macvlan_device_event`; `net/core/dev.c` `____dev_forward_skb`.
//! Differs: frames for groups of IPv6 come to every macvlan that may have them, others than 224.0.0.1 to none: no host here joins groups; the queue of broadcasts
//! is no shorter than what comes; a bond's carrier that changes between two commands a macvlan learns of at the next.

use crate::arp::MAC_BROADCAST;
use crate::device::{ALLMULTI, Lower, PROMISC};
use crate::path::MAX_DEPTH;
use crate::vlan::OTHERHOST;
use crate::{Counters, Effect, Host, HostCx, NetDevice, Timer};
use penstock_lang::ip::LinkData;
use penstock_model::{Handle, KernelError, Time};
use penstock_packet::{Packet, Sender};
use penstock_sched::Xmit;
use std::collections::BTreeMap;

type Mac = [u8; 6];

/// `mode`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mode {
    /// Nothing from other macvlans of the device.
    Private,
    /// Frames for others go out, and come back by a switch that sends them back.
    Vepa,
    /// Frames for others go to them at once.
    Bridge,
    /// The only one of its device, with all that comes.
    Passthru,
}

impl Mode {
    /// By its word; `None`: `source`, or none.
    pub(crate) fn of(word: &str) -> Option<Mode> {
        Some(match word {
            "private" => Mode::Private,
            "vepa" => Mode::Vepa,
            "bridge" => Mode::Bridge,
            "passthru" => Mode::Passthru,
            _ => return None,
        })
    }
}

/// What a macvlan is beside a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Macvlan {
    /// Whether the device below had a carrier after the last command.
    pub carrier: bool,
    /// When it came up, among all: the youngest is asked first.
    opened: u64,
}

/// A macvlan as the device below knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Station {
    /// Where it is.
    at: Lower,
    mac: Mac,
    mode: Mode,
    up: bool,
    /// It hears all groups (`allmulticast on`, `promisc on`).
    hears_groups: bool,
    opened: u64,
}

/// What a device knows of the macvlans over it (`macvlan_port`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Port {
    /// The order in which a broadcast comes to them.
    all: Vec<Station>,
    /// Those that are up, by their addresses.
    by_mac: BTreeMap<Mac, usize>,
    /// The only one in mode `passthru`.
    passthru: Option<usize>,
    /// What each of them has sent that the device's qdisc has refused: packets and bytes.
    refused: BTreeMap<(u32, u32), (u64, u64)>,
}

impl Port {
    fn new(mut all: Vec<Station>, refused: BTreeMap<(u32, u32), (u64, u64)>) -> Port {
        all.sort_by_key(|s| (eth_hash(s.mac), std::cmp::Reverse(s.opened)));
        let by_mac = all.iter().enumerate().filter(|(_, s)| s.up).map(|(n, s)| (s.mac, n)).collect();
        let passthru = all.iter().position(|s| s.mode == Mode::Passthru);
        Port { all, by_mac, passthru, refused }
    }
    fn station(&self, mac: Mac) -> Option<&Station> {
        self.by_mac.get(&mac).map(|&n| &self.all[n])
    }
}

/// How a frame comes to a device that is not at hand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Crossing {
    /// A macvlan sends it over the device, at once: the macvlan's namespace and its index there.
    Sent(Lower),
    /// The device has received it, at once.
    Received,
    /// It comes in by the device when what is at hand is done (`netif_rx`); another device of the machine has sent it, of the same namespace or not.
    Forwarded {
        /// Of the same namespace: it keeps its mark.
        same: bool,
    },
    /// It comes in by the device when what is at hand is done; it came from a wire.
    Heard {
        /// The device has sent it itself: it is counted as a packet without bytes, as Linux counts it.
        own: bool,
    },
}

impl Crossing {
    /// Whether it comes when what is at hand is done, not at once.
    pub fn is_later(self) -> bool {
        matches!(self, Crossing::Forwarded { .. } | Crossing::Heard { .. })
    }
}

/// `macvlan_eth_hash`: which of 256 lists an address is in.
fn eth_hash(mac: Mac) -> u8 {
    let word = mac.iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte)) << 16;
    (word.wrapping_mul(0x61c8_8646_80b5_83eb) >> 56) as u8
}
/// Whether a macvlan hears the group that a frame is for (`mc_filter`).
fn hears(station: &Station, to: Mac) -> bool {
    const ALL_HOSTS: Mac = [1, 0, 0x5e, 0, 0, 1];
    station.hears_groups || to == MAC_BROADCAST || to == ALL_HOSTS || to[..2] == [0x33, 0x33]
}

impl NetDevice {
    /// The words after `type macvlan`: its mode, where it is one that is here.
    pub(crate) fn macvlan_mode(&self) -> Option<Mode> {
        match &self.data {
            LinkData::Macvlan(mode) => Mode::of(mode.split(' ').next().unwrap_or_default()),
            _ => None,
        }
    }
    /// What it is asked for that it does not do here.
    pub(crate) fn macvlan_asked(&self) -> Option<String> {
        match &self.data {
            LinkData::Macvlan(mode) if self.macvlan.is_some() => {
                let flagged = mode.contains(' ');
                (flagged || Mode::of(mode).is_none()).then(|| format!("mode {mode}"))
            }
            _ => None,
        }
    }
}

impl Host {
    /// What a new macvlan over a device is refused for; the device that it is over then.
    ///
    /// # Errors
    /// EINVAL over `lo` or a tunnel, with a longer MTU than that of the device below, in mode `passthru` beside others, or beside one; EBUSY over a port of a bridge
    /// or a slave of a bond.
    pub(crate) fn check_macvlan(
        &self,
        lower: u32,
        data: &LinkData,
        mtu: Option<i64>,
    ) -> Result<Lower, KernelError> {
        let mut at = Lower { space: self.space, ifindex: lower };
        // Over another macvlan: over that one's device.
        if let Some(below) = self.devices[lower].lower.filter(|_| self.devices[lower].macvlan.is_some()) {
            at = below;
        }
        let no = |errno| Err(KernelError::errno(errno));
        let Some(below) = self.space_ref(at.space).and_then(|host| host.devices.get(at.ifindex)) else {
            return no(KernelError::EINVAL);
        };
        if mtu.is_some_and(|mtu| mtu > i64::from(below.mtu))
            || below.loopback
            || !below.has_header_of_ethernet()
        {
            return no(KernelError::EINVAL);
        }
        if below.bridged && below.macvlans.is_none() {
            return no(KernelError::EBUSY);
        }
        let alone = matches!(data, LinkData::Macvlan(mode) if mode.starts_with("passthru"));
        match &below.macvlans {
            Some(port) if alone || port.passthru.is_some() => no(KernelError::EINVAL),
            _ => Ok(at),
        }
    }
    /// `ip link set … type macvlan mode MODE`.
    ///
    /// # Errors
    /// EINVAL to or from `passthru`.
    pub(crate) fn change_macvlan(&mut self, ifindex: u32, mode: &str) -> Result<(), KernelError> {
        let passthru = |word: &str| word.starts_with("passthru");
        if let LinkData::Macvlan(now) = &mut self.devices[ifindex].data {
            if passthru(now) != passthru(mode) {
                return Err(KernelError::errno(KernelError::EINVAL));
            }
            mode.clone_into(now);
        }
        Ok(())
    }
    /// Whether an address is one of another macvlan that is up, or of the device below (`macvlan_addr_busy`).
    pub(crate) fn macvlan_addr_busy(&self, ifindex: u32, mac: Mac) -> bool {
        let device = &self.devices[ifindex];
        let Some(lower) = device.lower.filter(|_| device.macvlan.is_some()) else { return false };
        let below = self.space_ref(lower.space).and_then(|host| host.devices.get(lower.ifindex));
        let me = Lower { space: self.space, ifindex };
        below.is_some_and(|below| {
            let other = |port: &Port| port.station(mac).is_some_and(|s| s.at != me);
            port_is_shared(below) && (below.mac == mac || below.macvlans.as_deref().is_some_and(other))
        })
    }
    /// A new macvlan: an address of its own, but in mode `passthru`.
    pub(crate) fn macvlan_made(&mut self, ifindex: u32, inherited: Option<(Mac, u32)>, own_mtu: bool) {
        let device = &mut self.devices[ifindex];
        device.macvlan = Some(Box::new(Macvlan { carrier: false, opened: 0 }));
        let Some((mac, mtu)) = inherited else { return };
        if device.macvlan_mode() == Some(Mode::Passthru) {
            device.mac = mac;
        }
        if !own_mtu {
            device.mtu = mtu;
        }
    }
    /// A device has another address: with the one macvlan of mode `passthru` over it that one has it too, and the other way round.
    pub(crate) fn macvlan_addressed(&mut self, ifindex: u32, now: Time) {
        let device = &self.devices[ifindex];
        let mac = device.mac;
        let above = device.macvlans.as_deref().and_then(|port| Some(port.all[port.passthru?].at));
        let below = device.lower.filter(|_| device.macvlan_mode() == Some(Mode::Passthru));
        for at in [above, below].into_iter().flatten() {
            self.in_space(at.space, |host| {
                if let Some(d) = host.devices.get_mut(at.ifindex) {
                    d.mac = mac;
                    host.neigh_flush(at.ifindex);
                    host.bridge_addressed(at.ifindex, now);
                }
            });
        }
    }
    /// Something has changed of devices that may be macvlans or below some: each device is told who is over it, and each macvlan whether there is a carrier.
    pub(crate) fn macvlans_changed(&mut self, now: Time) {
        let ids = self.space_ids();
        let any = |host: &Host| host.devices.has_macvlans();
        if !ids.iter().any(|id| self.space_ref(*id).is_some_and(any)) {
            return;
        }
        let opened = ids.iter().filter_map(|id| self.space_ref(*id)).flat_map(|host| host.devices.iter());
        let mut opened = opened.filter_map(|d| d.macvlan.as_ref()).map(|m| m.opened).max().unwrap_or(0);
        let (mut over, mut below) = (BTreeMap::<(u32, u32), Vec<Station>>::new(), Vec::new());
        for &space in &ids {
            self.in_space(space, |host| {
                for d in host.devices.iter_mut() {
                    let (Some(lower), Some(mode)) = (d.lower, d.macvlan_mode()) else { continue };
                    let Some(m) = d.macvlan.as_deref_mut() else { continue };
                    match (d.up, m.opened) {
                        (true, 0) => {
                            opened += 1;
                            m.opened = opened;
                        }
                        (false, _) => m.opened = 0,
                        _ => {}
                    }
                    let at = Lower { space, ifindex: d.ifindex };
                    let hears_groups = d.flags & (ALLMULTI | PROMISC) != 0;
                    let station = Station { at, mac: d.mac, mode, up: d.up, hears_groups, opened: m.opened };
                    over.entry((lower.space, lower.ifindex)).or_default().push(station);
                    below.push((at, lower));
                }
            });
        }
        for &space in &ids {
            self.in_space(space, |host| {
                host.macvlan_ports(space, &mut over);
                if below.is_empty() {
                    host.devices.no_macvlans();
                }
            });
        }
        for (at, lower) in below {
            let there = self.space_ref(lower.space);
            let device = there.and_then(|host| Some((host, host.devices.get(lower.ifindex)?)));
            let carrier = device.is_some_and(|(host, d)| {
                // A card, and an end of a veth pair, loses its carrier when it goes down.
                (d.up || !matches!(d.class.kind, "" | "veth")) && host.carrier(d)
            });
            self.in_space(at.space, |host| {
                let Some(m) = host.devices.get_mut(at.ifindex).and_then(|d| d.macvlan.as_deref_mut()) else {
                    return;
                };
                if std::mem::replace(&mut m.carrier, carrier) != carrier {
                    host.bridge_follows(at.ifindex, now);
                }
            });
        }
    }
    /// Tells this namespace's devices who is over them.
    fn macvlan_ports(&mut self, space: u32, over: &mut BTreeMap<(u32, u32), Vec<Station>>) {
        for d in self.devices.iter_mut() {
            let stations = over.remove(&(space, d.ifindex)).unwrap_or_default();
            if stations.is_empty() {
                if d.macvlans.take().is_some() {
                    d.bridged = false;
                }
                continue;
            }
            let refused = d.macvlans.take().map(|port| port.refused).unwrap_or_default();
            d.macvlans = Some(Box::new(Port::new(stations, refused)));
            d.bridged = true;
        }
        let above = |d: &NetDevice| {
            d.macvlans.is_some()
                || self.devices.vlans_on(d.ifindex).any(|v| self.devices[v].macvlans.is_some())
        };
        let promiscuous: Vec<(u32, bool)> =
            self.devices.iter().filter(|d| d.bridge.is_some()).map(|d| (d.ifindex, above(d))).collect();
        for (bridge, promiscuous) in promiscuous {
            if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
                b.promiscuous = promiscuous;
            }
        }
    }
    /// The MTU of a device has changed: that of a macvlan over it is no longer (`NETDEV_CHANGEMTU`).
    pub(crate) fn macvlan_mtus_follow(&mut self, ifindex: u32, now: Time) {
        let Some(port) = &self.devices[ifindex].macvlans else { return };
        let mtu = self.devices[ifindex].mtu;
        let all: Vec<Lower> = port.all.iter().map(|s| s.at).collect();
        for at in all {
            self.in_space(at.space, |host| {
                if host.devices.get(at.ifindex).is_some_and(|d| d.mtu > mtu) {
                    // No longer than one that it could have had.
                    let _ = host.set_mtu(at.ifindex, mtu, now);
                }
            });
        }
    }
    /// What a macvlan has carried, without what the device below has refused.
    pub(crate) fn macvlan_counters(&self, device: &NetDevice) -> Counters {
        let mut counters = device.counters;
        let below =
            device.lower.and_then(|l| self.space_ref(l.space)?.devices.get(l.ifindex)?.macvlans.as_deref());
        if let Some((packets, bytes)) = below.and_then(|port| port.refused.get(&(self.space, device.ifindex)))
        {
            counters.tx_packets -= packets;
            counters.tx_bytes -= bytes;
            counters.tx_dropped += packets;
        }
        counters
    }

    /// A packet comes to a macvlan from above: onto its qdisc, and what that lets go to the device below. The answer is that of the device's qdisc where it has none
    /// itself and the device is of the same namespace.
    #[cold]
    pub(crate) fn queue_on_macvlan(&mut self, ifindex: u32, packet: Packet, cx: &mut HostCx<'_>) {
        if !self.devices[ifindex].macvlan.as_ref().is_some_and(|m| m.carrier) {
            self.queue_without_carrier(ifindex, packet, cx);
            return;
        }
        let answer = self.queue_within(ifindex, packet, MAX_DEPTH, Host::macvlan_run, cx);
        if let Some(answer) = answer
            && self.devices.get(ifindex).is_some_and(|d| d.tree.root().kind() != "noqueue")
        {
            self.answer = answer;
        }
    }
    /// `macvlan_start_xmit`: sends what its qdisc lets go, and comes again when that lets go more.
    pub(crate) fn macvlan_run(&mut self, ifindex: u32, cx: &mut HostCx<'_>) {
        while let Some(mut packet) = self.dequeue(ifindex, cx) {
            let Some(lower) = self.devices.get(ifindex).and_then(|d| d.lower) else {
                self.discard(packet, "netif", "no-device", cx);
                return;
            };
            if packet.is_noted() {
                packet.rare_mut().nest = Default::default();
            }
            let me = Lower { space: self.space, ifindex };
            self.answer = Xmit::Success;
            if lower.space == self.space {
                self.macvlan_queue_xmit(lower.ifindex, me, packet, cx);
            } else {
                let (space, ifindex, how) = (lower.space, lower.ifindex, Crossing::Sent(me));
                cx.out.push(Effect::Across { space, ifindex, how, packet });
            }
        }
        self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
        if let Some(at) = self.next_wakeup(ifindex) {
            self.timers.insert(at.max(cx.now), Timer::Cardless(ifindex));
        }
    }
    /// `macvlan_queue_xmit`, where the device below is: a macvlan sends a frame.
    fn macvlan_queue_xmit(&mut self, lower: u32, from: Lower, packet: Packet, cx: &mut HostCx<'_>) {
        let Some(port) = self.devices.get(lower).and_then(|d| d.macvlans.as_deref()) else {
            self.discard(packet, "netif", "no-device", cx);
            return;
        };
        let mode = port.all.iter().find(|s| s.at == from).map(|s| s.mode);
        if mode == Some(Mode::Bridge) {
            let to = packet.eth.1;
            if to[0] & 1 == 1 {
                let forwarded = Crossing::Forwarded { same: false };
                self.macvlan_broadcast(lower, Some(from), &[Mode::Bridge], forwarded, &packet, cx);
            } else if port.station(to).is_some_and(|s| s.mode == Mode::Bridge) {
                // To the device first, for whoever listens there.
                let how = Crossing::Forwarded { same: from.space == self.space };
                cx.out.push(Effect::Across { space: self.space, ifindex: lower, how, packet });
                return;
            }
        }
        let len = packet.len;
        self.answer = Xmit::Success;
        self.xmit(lower, packet, cx);
        if self.answer == Xmit::Drop
            && let Some(port) = self.devices.get_mut(lower).and_then(|d| d.macvlans.as_deref_mut())
        {
            let refused = port.refused.entry((from.space, from.ifindex)).or_default();
            (refused.0, refused.1) = (refused.0 + 1, refused.1 + u64::from(len));
        }
    }
    /// `macvlan_broadcast`: copies of a frame for a group, for those in these modes but who sent it.
    fn macvlan_broadcast(
        &self,
        lower: u32,
        from: Option<Lower>,
        modes: &[Mode],
        how: Crossing,
        frame: &Packet,
        cx: &mut HostCx<'_>,
    ) {
        let Some(port) = self.devices.get(lower).and_then(|d| d.macvlans.as_deref()) else { return };
        for s in &port.all {
            if !s.up || Some(s.at) == from || !modes.contains(&s.mode) || !hears(s, frame.eth.1) {
                continue;
            }
            let how = match (how, from) {
                (Crossing::Forwarded { .. }, Some(from)) => {
                    Crossing::Forwarded { same: from.space == s.at.space }
                }
                _ => how,
            };
            let mut copy = self.copy_of(frame, cx);
            if copy.is_noted() {
                copy.rare_mut().ptype = None;
            }
            cx.out.push(Effect::Across { space: s.at.space, ifindex: s.at.ifindex, how, packet: copy });
        }
    }

    /// `macvlan_handle_frame`: a frame behind the ingress filters of a device with macvlans over it. `Some`: it is for the device itself.
    #[cold]
    pub(crate) fn macvlan_receive(
        &mut self,
        ifindex: u32,
        mut frame: Packet,
        cx: &mut HostCx<'_>,
    ) -> Option<Packet> {
        const ALL: [Mode; 4] = [Mode::Private, Mode::Vepa, Mode::Passthru, Mode::Bridge];
        let Some(port) = self.devices[ifindex].macvlans.as_deref() else { return Some(frame) };
        let (from, to) = frame.eth;
        if to[0] & 1 == 1 {
            let heard = Crossing::Heard { own: false };
            let own = Crossing::Heard { own: true };
            match port.station(from).map(|s| (s.at, s.mode)) {
                // Its own, which came back: it alone hears of it.
                Some((at, Mode::Private | Mode::Passthru)) => {
                    cx.out.push(Effect::Across {
                        space: at.space,
                        ifindex: at.ifindex,
                        how: own,
                        packet: frame,
                    });
                    return None;
                }
                None => self.macvlan_broadcast(ifindex, None, &ALL, heard, &frame, cx),
                Some((at, Mode::Vepa)) => {
                    self.macvlan_broadcast(ifindex, Some(at), &[Mode::Vepa, Mode::Bridge], heard, &frame, cx);
                }
                // Bridges have seen it on its way out.
                Some((at, Mode::Bridge)) => {
                    self.macvlan_broadcast(ifindex, Some(at), &[Mode::Vepa], heard, &frame, cx);
                }
            }
            return Some(frame);
        }
        let station = match port.passthru {
            Some(n) => Some(&port.all[n]),
            None => port.station(to),
        };
        let Some(station) = station else { return Some(frame) };
        let (at, up) = (station.at, station.up);
        if !up {
            self.discard(frame, "netif", "device-down", cx);
            return None;
        }
        if frame.is_noted() && frame.rare().ptype == Some(OTHERHOST) {
            frame.rare_mut().ptype = None;
        }
        if at.space == self.space {
            let len = frame.len;
            self.across_receive(at.ifindex, len, frame, cx);
        } else {
            cx.out.push(Effect::Across {
                space: at.space,
                ifindex: at.ifindex,
                how: Crossing::Received,
                packet: frame,
            });
        }
        None
    }
    /// A frame goes on at a device of this namespace ([`Effect::Across`]).
    pub fn comes_across(&mut self, ifindex: u32, how: Crossing, mut frame: Packet, cx: &mut HostCx<'_>) {
        let Some(device) = self.devices.get_mut(ifindex) else {
            self.discard(frame, "netif", "no-device", cx);
            return;
        };
        match how {
            Crossing::Sent(from) => self.macvlan_queue_xmit(ifindex, from, frame, cx),
            Crossing::Received | Crossing::Heard { own: false } => {
                let len = frame.len;
                self.across_receive(ifindex, len, frame, cx);
            }
            // macvlan_handle_frame counts its length, which it has not asked for yet.
            Crossing::Heard { own: true } => self.across_receive(ifindex, 0, frame, cx),
            Crossing::Forwarded { same } => {
                // ____dev_forward_skb
                if !device.up || frame.len > device.mtu + LONGEST_HEADER && frame.gso().is_none() {
                    device.counters.rx_dropped += 1;
                    self.discard(frame, "netif", "too-long", cx);
                    return;
                }
                if !same {
                    frame.mark = 0;
                }
                let to = frame.eth.1;
                let above = |port: &Port| port.station(to).is_some();
                let known = device.macvlan.is_some()
                    || to == device.mac
                    || to[0] & 1 == 1
                    || device.macvlans.as_deref().is_some_and(above);
                if !known {
                    self.discard(frame, "netif", "other-host", cx);
                    return;
                }
                let mark = frame.mark;
                frame.priority = 0;
                frame.classid = Handle::UNSPEC;
                frame.sender = Sender::default();
                frame.travel();
                frame.mark = mark;
                if device.macvlan.is_some() {
                    let len = frame.len;
                    self.across_receive(ifindex, len, frame, cx);
                } else {
                    frame.iif = ifindex;
                    self.netif_receive(ifindex, frame, cx);
                }
            }
        }
    }
    /// A macvlan has received a frame, which counts for so many bytes (`macvlan_count_rx`).
    fn across_receive(&mut self, ifindex: u32, bytes: u32, mut frame: Packet, cx: &mut HostCx<'_>) {
        let device = &mut self.devices[ifindex];
        if !device.up {
            self.discard(frame, "netif", "device-down", cx);
            return;
        }
        device.counters.rx_packets += 1;
        device.counters.rx_bytes += u64::from(bytes);
        frame.iif = ifindex;
        self.netif_receive(ifindex, frame, cx);
    }
}

/// Whether the device below has others than one in mode `passthru` over it.
fn port_is_shared(below: &NetDevice) -> bool {
    below.macvlans.as_ref().is_some_and(|port| port.passthru.is_none())
}

/// An Ethernet header and a VLAN tag, bytes.
const LONGEST_HEADER: u32 = 14 + 4;

#[cfg(test)]
mod tests;
