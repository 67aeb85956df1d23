//! Bridges: a frame that comes in at a port goes on to the port behind which its address was heard, to all of them, or up to the bridge itself.
//!
//! Follows: linux v6.12 `net/bridge/br_if.c` `br_add_if`, `del_nbp`, `br_mtu_auto_adjust`; `br_stp.c` `br_make_forwarding`; v2.6.35 the same files.
//! Differs: no IGMP: what asks for it is refused by name. 2.6.35 has no spanning tree here.

mod bpdu;
mod fdb;
mod forward;
mod rules;
mod shown;
mod spanning;
mod stp;
#[cfg(test)]
mod tests;
mod vlan;
mod wheel;

use crate::Host;
use fdb::{Entry, Key, Macs};
use penstock_model::{Kernel, Span, Time};
use std::collections::BTreeMap;
use vlan::{Filtering, Group};

pub(crate) use fdb::Said;
pub(crate) use shown::{FILES, PORT_FILES};
use stp::PortNow;
pub(crate) use stp::State;
pub(crate) use vlan::ETH_P_8021AD;

type Mac = [u8; 6];

/// What a bridge is beside a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Bridge {
    /// The newest first, as frames for all leave.
    pub ports: Vec<Port>,
    /// Who is behind which port.
    fdb: BTreeMap<Key, Entry>,
    /// Entries made so far.
    made: u64,
    /// How long who is not heard is remembered; 0: nobody is. Default 300 s.
    pub ageing: Span,
    /// How long a port learns before it sends; 6.12 asks for it with a spanning tree alone. Default 15 s.
    pub forward_delay: Span,
    /// `hello_time`: how often the root of a spanning tree tells of itself. Default 2 s.
    pub hello_time: Span,
    /// `max_age`: how long what a root has told is believed. Default 20 s.
    pub max_age: Span,
    /// `priority` in a spanning tree. Default 0x8000.
    pub priority: u16,
    /// A macvlan over it, or over a VLAN over it, has made it promiscuous: frames for others come up to it too.
    pub promiscuous: bool,
    /// VLANs.
    pub vlan: Filtering,
    /// A command has given it an address of its own: ports do not change it.
    pub own_mac: bool,
    /// A command has given it an MTU: ports do not change it.
    pub own_mtu: bool,
    /// What it was asked for that it does not do here: the words.
    pub asked: Vec<String>,
    /// Words that set nothing here, with their values, to be shown.
    pub told: BTreeMap<String, String>,
    /// It has had a port.
    pub had_port: bool,
    /// What it knows of a spanning tree, whether it takes part in one or not. 2.6.35 has none here.
    pub tree: Option<Box<stp::Tree>>,
    /// `nf_call_iptables`, `nf_call_ip6tables`: its frames of IPv4 and of IPv6 meet the rules whatever the system's setting.
    pub calls: [bool; 2],
}

/// A device in a bridge.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Port {
    /// Which.
    pub ifindex: u32,
    /// Since when it may send, which may be to come; `None`: disabled.
    since: Option<Time>,
    /// What `type bridge_slave` has set.
    pub set: Settings,
    /// `priority` in a spanning tree, 0 to 63. Default 32.
    pub priority: u16,
    /// `cost`: path cost, 1 to 65535, where a command has set it; else it follows from the port's speed.
    pub cost: Option<u32>,
    /// `guard`: a BPDU disables it. `root_block`: it never leads to a spanning tree's root.
    pub guard: bool,
    pub root_block: bool,
    /// The VLANs that it is in.
    pub vlans: Group,
    /// Words that set nothing here, with their values, to be shown.
    pub told: BTreeMap<String, String>,
}

/// What a port does. All but `hairpin` and `isolated` is so from the beginning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Settings {
    /// Learns who is behind it.
    pub learning: bool,
    /// Takes frames whose address nobody knows.
    pub flood: bool,
    /// Takes frames for groups.
    pub mcast_flood: bool,
    /// Takes frames for all.
    pub bcast_flood: bool,
    /// A frame may leave by it that came in by it.
    pub hairpin: bool,
    /// Frames from an isolated port leave by none.
    pub isolated: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            learning: true,
            flood: true,
            mcast_flood: true,
            bcast_flood: true,
            hairpin: false,
            isolated: false,
        }
    }
}

impl Bridge {
    pub(crate) fn new(kernel: Kernel) -> Bridge {
        Bridge {
            ports: Vec::new(),
            fdb: BTreeMap::new(),
            made: 0,
            ageing: Span::from_secs(300),
            forward_delay: Span::from_secs(15),
            hello_time: Span::from_secs(2),
            max_age: Span::from_secs(20),
            priority: 0x8000,
            promiscuous: false,
            vlan: Filtering::new(kernel),
            own_mac: false,
            own_mtu: false,
            asked: Vec::new(),
            told: BTreeMap::new(),
            had_port: false,
            tree: None,
            calls: [false; 2],
        }
    }
    /// It is asked for something that it does not do here, unless the value is the one that changes nothing (empty: all do).
    pub(crate) fn ask(&mut self, name: &str, value: &str, harmless: &str) {
        self.asked.retain(|asked| asked.split(' ').next() != Some(name));
        if !harmless.is_empty() && value != harmless {
            self.asked.push(format!("{name} {value}"));
        }
    }
    pub(crate) fn port(&self, ifindex: u32) -> Option<&Port> {
        self.ports.iter().find(|p| p.ifindex == ifindex)
    }
    /// Whether a port sends, and whether it learns.
    fn state(&self, ifindex: u32, now: Time) -> (bool, bool) {
        if let Some(tree) = &self.tree {
            return tree.port(ifindex).map_or((false, false), |p| (p.state.sends(), p.state.learns()));
        }
        let since = self.port(ifindex).and_then(|p| p.since);
        (since.is_some_and(|since| since <= now), since.is_some())
    }
}

impl Host {
    /// The bridge a device is a port of.
    pub(crate) fn bridge_of(&self, ifindex: u32) -> Option<u32> {
        let master = self.devices.get(ifindex)?.master?;
        self.devices.get(master)?.bridge.is_some().then_some(master)
    }
    /// Whether a device hears frames for others: a port of a bridge, one below macvlans, or a VLAN above it is one.
    pub fn hears_all(&self, ifindex: u32) -> bool {
        let Some(device) = self.devices.get(ifindex) else { return false };
        if device.bridged {
            // A slave of a bond hears what the bond hears.
            return self.bond_of(ifindex).is_none_or(|bond| self.hears_all(bond));
        }
        self.devices.vlans_on(ifindex).any(|vlan| self.hears_all(vlan))
    }
    /// A port of a bridge comes, goes, goes up or down, or the bridge does: who sends from now on (`br_stp_enable_port`,
    /// `br_stp_disable_port`).
    pub(crate) fn bridge_ports_changed(&mut self, bridge: u32, now: Time) {
        let Some(device) = self.devices.get(bridge).filter(|d| d.bridge.is_some()) else { return };
        let up = device.up;
        if self.tree_of(bridge).is_some() {
            let ports = self.devices.iter().filter(|d| d.master == Some(bridge));
            let ports = ports.map(|d| PortNow {
                ifindex: d.ifindex,
                up: d.up,
                ready: d.up && self.carrier(d),
                cost: self.port_cost(d),
            });
            let ports: Vec<PortNow> = ports.collect();
            return self.tree_follows(bridge, up, &ports, now);
        }
        let ready: Vec<(u32, bool)> = self
            .devices
            .iter()
            .filter(|d| d.master == Some(bridge))
            .map(|d| (d.ifindex, up && d.up && self.carrier(d)))
            .collect();
        let kernel = self.kernel;
        let macs = self.bridge_macs(bridge);
        let Some(bridge) = self.devices[bridge].bridge.as_deref_mut() else { return };
        let delay = match kernel {
            Kernel::V2_6_35 => bridge.forward_delay,
            Kernel::V6_12 | Kernel::V7_2 => Span::ZERO,
        };
        for (ifindex, ready) in ready {
            let Some(port) = bridge.ports.iter_mut().find(|p| p.ifindex == ifindex) else { continue };
            match (port.since, ready) {
                (None, true) => port.since = Some(now + delay),
                (Some(_), false) => {
                    port.since = None;
                    bridge.forget(Some(ifindex), 0, false, &macs);
                }
                _ => {}
            }
        }
    }
    /// A device has gone up or down: the bridge that it is, or is in, hears of it.
    pub(crate) fn bridge_follows(&mut self, ifindex: u32, now: Time) {
        if let Some(bridge) = self.bridge_of(ifindex) {
            self.bridge_ports_changed(bridge, now);
        } else if self.devices.get(ifindex).is_some_and(|d| d.bridge.is_some()) {
            self.bridge_ports_changed(ifindex, now);
        }
    }
    /// The MTU of a bridge is that of its least port, unless a command has said another (`br_mtu_auto_adjust`).
    pub(crate) fn bridge_mtu_follows(&mut self, bridge: u32, now: Time) {
        if self.devices[bridge].bridge.as_ref().is_none_or(|b| b.own_mtu) {
            return;
        }
        let ports = self.devices.iter().filter(|d| d.master == Some(bridge));
        let least = ports.map(|d| d.mtu).min().unwrap_or(1500);
        // No port has an MTU that a bridge could not have.
        let _ = self.set_mtu(bridge, least, now);
    }
    /// A device is a port from now on (`br_add_if`).
    pub(crate) fn add_port(&mut self, bridge: u32, ifindex: u32, now: Time) {
        self.devices[ifindex].bridged = true;
        if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
            let (set, vlans) = (Settings::default(), Group::default());
            let (guard, root_block) = (false, false);
            b.had_port = true;
            b.ports.insert(
                0,
                Port {
                    ifindex,
                    since: None,
                    set,
                    priority: 32,
                    cost: None,
                    guard,
                    root_block,
                    vlans,
                    told: BTreeMap::new(),
                },
            );
        }
        let macs = self.bridge_macs(bridge);
        if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
            b.add_local(macs.of(Some(ifindex)), 0, Some(ifindex), now);
            b.vlans_begin(ifindex, &macs, now);
        }
    }
    /// A device is a port no more (`del_nbp`).
    pub(crate) fn remove_port(&mut self, bridge: u32, ifindex: u32) {
        if let Some(device) = self.devices.get_mut(ifindex) {
            device.bridged = false;
        }
        let macs = self.bridge_macs(bridge);
        if let Some(b) = self.devices.get_mut(bridge).and_then(|d| d.bridge.as_deref_mut()) {
            b.ports.retain(|p| p.ifindex != ifindex);
            b.forget(Some(ifindex), 0, true, &macs);
        }
    }
    /// A new bridge: its address is known in the VLANs that it is in (`br_vlan_init`).
    pub(crate) fn bridge_made(&mut self, ifindex: u32, now: Time) {
        if self.kernel != Kernel::V2_6_35 {
            self.plant_tree(ifindex, now);
        }
        let mac = self.devices[ifindex].mac;
        let Some(b) = self.devices[ifindex].bridge.as_deref_mut() else { return };
        if b.vlan.default_pvid != 0 {
            b.add_local(mac, b.vlan.default_pvid, None, now);
        }
        if b.own_mac {
            self.bridge_addressed(ifindex, now);
        }
    }
    /// A bridge or a port has another address.
    pub(crate) fn bridge_addressed(&mut self, ifindex: u32, now: Time) {
        let (bridge, port) = match self.devices[ifindex].bridge {
            Some(_) => (ifindex, None),
            None => match self.bridge_of(ifindex) {
                Some(bridge) => (bridge, Some(ifindex)),
                None => return,
            },
        };
        let macs = self.bridge_macs(bridge);
        if let Some(b) = self.devices[bridge].bridge.as_deref_mut() {
            b.addressed(port, &macs, now);
        }
    }
}
