//! A bridge's spanning tree and the machine around it: when its timers go off, what it sends and hears, and what commands set.
//!
//! Follows: linux v6.12 `net/bridge/br_stp_bpdu.c` `br_send_bpdu`; `br_input.c` `br_handle_frame` (the group address); `br_stp_if.c` `br_stp_start`; `br_if.c`
//! `find_portno`; `br_netlink.c` `br_set_port_state`.

use super::bpdu::Bpdu;
use super::stp::{Id, PortNow, State, Times, Tree, TreePort};
use super::wheel::Clock;
use crate::{Host, HostCx, Timer};
use penstock_model::{KernelError, Span, Time};
use penstock_packet::{L3, L4, Packet, Skb};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Where BPDUs go (`br_group_address`).
pub(super) const GROUP: super::Mac = [0x01, 0x80, 0xc2, 0, 0, 0];
/// `skb->protocol` of a frame of 802.3 with LLC.
const ETH_P_802_2: u16 = 4;
/// `TC_PRIO_CONTROL`.
const TC_PRIO_CONTROL: u32 = 7;

impl Host {
    pub(crate) fn tree_clock<'a>(&self, now: Time, set: &'a Cell<u64>) -> Clock<'a> {
        Clock { kernel: self.kernel, hz: self.hz, now, set }
    }
    /// The tree of a bridge, whether it takes part in one or not.
    pub(crate) fn tree_of(&self, bridge: u32) -> Option<&Tree> {
        self.devices.get(bridge)?.bridge.as_deref()?.tree.as_deref()
    }
    /// Something happens to a bridge's tree, if it has one; and what follows from it.
    pub(crate) fn change_tree(&mut self, bridge: u32, now: Time, change: impl FnOnce(&mut Tree, Clock<'_>)) {
        let set = Cell::new(self.trees_set);
        let clock = self.tree_clock(now, &set);
        let b = self.devices.get_mut(bridge).and_then(|d| d.bridge.as_deref_mut());
        let Some(tree) = b.and_then(|b| b.tree.as_deref_mut()) else { return };
        tree.forget_stale(clock);
        change(tree, clock);
        let flushed = std::mem::take(&mut tree.flushed);
        let (waits, first) = (tree.has_out(), tree.first().map(|due| due.at));
        self.trees_set = set.get();
        if !flushed.is_empty() {
            let macs = self.bridge_macs(bridge);
            if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
                flushed.into_iter().for_each(|port| b.forget(Some(port), 0, false, &macs));
            }
        }
        self.timers.retain(|timer| timer != Timer::SpanningTree(bridge));
        if let Some(at) = if waits { Some(now) } else { first } {
            self.timers.insert(at.max(now), Timer::SpanningTree(bridge));
        }
    }
    /// Timers of trees go off, or there is something to be sent. Those of one tick have their turn, whichever tree's they are.
    #[cold]
    pub(crate) fn tree_timer_fired(&mut self, bridge: u32, cx: &mut HostCx<'_>) {
        self.send_bpdus(bridge, cx);
        let now = cx.now;
        let first = |d: &crate::NetDevice| {
            let due = d.bridge.as_deref()?.tree.as_deref()?.first().filter(|due| due.at <= now)?;
            Some((due.turn(), d.ifindex))
        };
        while let Some((_, bridge)) = self.devices.iter().filter_map(first).min() {
            self.change_tree(bridge, cx.now, Tree::run);
            self.send_bpdus(bridge, cx);
        }
        // What waits for another instant is set again.
        self.change_tree(bridge, cx.now, |_, _| {});
    }
    fn send_bpdus(&mut self, bridge: u32, cx: &mut HostCx<'_>) {
        let mut out = Vec::new();
        self.change_tree(bridge, cx.now, |tree, _| out = tree.take_out());
        for (port, bpdu) in out {
            let Some(mac) = self.devices.get(port).map(|d| d.mac) else { continue };
            let bytes = bpdu.bytes(self.hz);
            let len = bytes.len() as u32;
            let mut frame = cx.pool.alloc(Skb {
                eth: (mac, GROUP),
                priority: TC_PRIO_CONTROL,
                created: cx.now,
                ..Skb::new(14 + len, L3::Other(len as u16), L4::None)
            });
            frame.rare_mut().message = Some(Arc::from(bytes));
            frame.rare_mut().declared = Some(ETH_P_802_2);
            self.xmit(port, frame, cx);
        }
    }
    /// Whether a bridge takes BPDUs for itself.
    pub(super) fn hears_bpdus(&self, bridge: u32) -> bool {
        self.tree_of(bridge).is_some_and(|tree| tree.on)
    }
    /// A frame to the bridges' group came by a port of a bridge that hears them.
    #[cold]
    pub(super) fn bpdu_received(&mut self, bridge: u32, ifindex: u32, frame: Packet, cx: &mut HostCx<'_>) {
        let read = match &frame.l3 {
            L3::Other(len) if *len < 0x600 && frame.is_noted() => {
                frame.rare().message.as_deref().and_then(|bytes| Bpdu::read(bytes, self.hz))
            }
            _ => None,
        };
        cx.pool.free(frame);
        let Some(bpdu) = read else { return };
        self.change_tree(bridge, cx.now, |tree, clock| {
            if let Some(p) = tree.place(ifindex) {
                tree.receive(p, &bpdu, clock);
            }
        });
        self.send_bpdus(bridge, cx);
    }

    /// `stp_state`.
    pub(crate) fn set_stp(&mut self, bridge: u32, on: bool, now: Time) {
        self.change_tree(bridge, now, |tree, clock| tree.set_on(on, clock));
        if let Some(tree) = self.tree_of(bridge) {
            let span = Span::from_ms(tree.bridge_forward_delay() * 1000 / i64::from(self.hz));
            if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
                b.forward_delay = span;
            }
        }
    }
    /// `bridge link set … state` (`br_set_port_state`). EBUSY: the tree alone says it; ENETDOWN: the port is down, or without a carrier.
    pub(crate) fn set_port_state(
        &mut self,
        ifindex: u32,
        state: State,
        now: Time,
    ) -> Result<(), KernelError> {
        let Some(bridge) = self.bridge_of(ifindex) else { return Ok(()) };
        if self.hears_bpdus(bridge) {
            return Err(KernelError::errno(KernelError::EBUSY));
        }
        let device = &self.devices[ifindex];
        if !device.up || (!self.carrier(device) && state != State::Disabled) {
            return Err(KernelError::errno(crate::link::ENETDOWN));
        }
        self.change_tree(bridge, now, |tree, clock| {
            if let Some(p) = tree.place(ifindex) {
                tree.ports[p].state = state;
                tree.port_state_selection(clock);
            }
        });
        Ok(())
    }
    /// The address by which a bridge is known in its tree: its own, but for one that was made with none and has no port.
    fn tree_address(&self, bridge: u32) -> super::Mac {
        let device = &self.devices[bridge];
        let has_ports = self.devices.iter().any(|d| d.master == Some(bridge));
        let own = device.bridge.as_ref().is_some_and(|b| b.own_mac);
        if own || has_ports { device.mac } else { [0; 6] }
    }
    /// A new bridge, without ports, has what a tree needs.
    pub(super) fn plant_tree(&mut self, bridge: u32, now: Time) {
        let set = Cell::new(0);
        let (clock, mac) = (self.tree_clock(now, &set), self.tree_address(bridge));
        let up = self.devices[bridge].up;
        let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { return };
        let times = Times {
            max_age: clock.of(b.max_age),
            hello_time: clock.of(b.hello_time),
            forward_delay: clock.of(b.forward_delay),
        };
        b.tree = Some(Box::new(Tree::new(Id { prio: b.priority, mac }, times, up)));
    }
    /// One of the tree's times is set, `hello_time` and the like. ERANGE: it may not be so long.
    pub(crate) fn set_tree_time(
        &mut self,
        bridge: u32,
        name: &str,
        span: Span,
        now: Time,
    ) -> Result<(), KernelError> {
        let on = self.hears_bpdus(bridge);
        let seconds = match name {
            "hello_time" => Some(1..=10),
            "max_age" => Some(6..=40),
            // Anything without a spanning tree.
            "forward_delay" => on.then_some(2..=30),
            _ => None,
        };
        let within = |s: &std::ops::RangeInclusive<i64>| {
            span >= Span::from_secs(*s.start()) && span <= Span::from_secs(*s.end())
        };
        if !seconds.as_ref().is_none_or(within) {
            return Err(KernelError::errno(KernelError::ERANGE));
        }
        let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { return Ok(()) };
        match name {
            "hello_time" => b.hello_time = span,
            "max_age" => b.max_age = span,
            _ => b.forward_delay = span,
        }
        let name = name.to_owned();
        self.change_tree(bridge, now, |tree, clock| {
            let ticks = clock.of(span);
            match name.as_str() {
                "hello_time" => tree.set_hello_time(ticks),
                "max_age" => tree.set_max_age(ticks),
                _ => tree.set_forward_delay(ticks),
            }
        });
        Ok(())
    }
    /// The bridge's priority.
    pub(crate) fn set_bridge_priority(&mut self, bridge: u32, priority: u16, now: Time) {
        if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
            b.priority = priority;
        }
        self.change_tree(bridge, now, |tree, clock| tree.set_priority(priority, clock));
    }
    /// A port's priority, 0 to 63, and its path cost, 1 to 65535; ERANGE beyond.
    pub(crate) fn set_port_of_tree(
        &mut self,
        ifindex: u32,
        priority: Option<u32>,
        cost: Option<u32>,
        now: Time,
    ) -> Result<(), KernelError> {
        let Some(bridge) = self.bridge_of(ifindex) else { return Ok(()) };
        let too_much = priority.is_some_and(|p| p > 63) || cost.is_some_and(|c| !(1..=65_535).contains(&c));
        if too_much {
            return Err(KernelError::errno(KernelError::ERANGE));
        }
        let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { return Ok(()) };
        let Some(port) = b.ports.iter_mut().find(|p| p.ifindex == ifindex) else { return Ok(()) };
        port.priority = priority.map_or(port.priority, |p| p as u16);
        port.cost = cost.or(port.cost);
        self.change_tree(bridge, now, |tree, clock| {
            let Some(p) = tree.place(ifindex) else { return };
            if let Some(priority) = priority {
                tree.set_port_priority(p, priority as u16, clock);
            }
            if let Some(cost) = cost {
                tree.set_path_cost(p, cost, clock);
            }
        });
        Ok(())
    }
    /// The kernel tells that a port has been changed by `ip link set … type bridge_slave` (`netdev_state_change`).
    pub(crate) fn port_told(&mut self, ifindex: u32, now: Time) {
        let Some(bridge) = self.bridge_of(ifindex) else { return };
        self.change_tree(bridge, now, |tree, clock| {
            if let Some(p) = tree.place(ifindex) {
                tree.check_port(p, clock);
            }
        });
    }
    /// `guard` and `root_block` of a port.
    pub(crate) fn port_guards_changed(&mut self, bridge: u32, now: Time) {
        let Some(b) = self.devices[bridge].bridge.as_deref() else { return };
        let set: Vec<(u32, bool, bool)> =
            b.ports.iter().map(|p| (p.ifindex, p.guard, p.root_block)).collect();
        self.change_tree(bridge, now, |tree, _| {
            for port in &mut tree.ports {
                if let Some((_, guard, root_block)) = set.iter().find(|s| s.0 == port.ifindex) {
                    (port.guard, port.root_block) = (*guard, *root_block);
                }
            }
        });
    }
    /// The tree hears that the bridge or its ports have come, gone, or go up or down. `ports`: all there are, by their indexes.
    pub(super) fn tree_follows(&mut self, bridge: u32, up: bool, ports: &[PortNow], now: Time) {
        let mac = self.tree_address(bridge);
        self.change_tree(bridge, now, |tree, clock| {
            let there = |ifindex: u32| ports.binary_search_by_key(&ifindex, |p| p.ifindex).ok();
            while let Some(p) = tree.ports.iter().position(|p| there(p.ifindex).is_none()) {
                if tree.ports[p].state != State::Disabled {
                    tree.disable_port(p, clock);
                }
                tree.ports.remove(p);
            }
            if tree.ports.len() < ports.len() {
                let known: BTreeSet<u32> = tree.ports.iter().map(|p| p.ifindex).collect();
                for port in ports.iter().filter(|p| !known.contains(&p.ifindex)) {
                    tree.add_port(port.ifindex, port.cost);
                }
            }
            tree.set_address(mac, clock);
            if tree.up && !up {
                tree.disable(clock);
            }
            let differs = |port: &TreePort| {
                let now = &ports[there(port.ifindex)?];
                ((port.up, port.ready) != (now.up, now.ready)).then_some(now)
            };
            let mut changed: Vec<&PortNow> = tree.ports.iter().filter_map(differs).collect();
            changed.sort_unstable_by_key(|p| p.ifindex);
            for port in changed {
                if let Some(p) = tree.place(port.ifindex) {
                    tree.port_changes(p, port, clock);
                }
            }
            if !tree.up && up {
                tree.enable(clock);
            }
        });
    }
}
