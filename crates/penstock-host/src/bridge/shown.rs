//! What `bridge`, and the files of `/sys/class/net/NAME`, tell of a bridge and its ports.
//!
//! Follows: linux v6.12 `net/bridge/br_sysfs_br.c`, `br_sysfs_if.c`; `br_if.c` `port_cost`; `br_fdb.c` `br_fdb_dump`; `br_netlink.c` `br_fill_ifinfo`.
//! Differs: addresses of groups that a device listens to are not in the listing of `bridge fdb`: no host here joins groups.

use super::Mac;
use super::stp::{Id, State};
use crate::{Host, NetDevice};
use penstock_lang::ip::{FdbFilter, FdbView, LinkRef, PortView, VlanView};
use penstock_model::{Kernel, Span, Time};
use std::cell::Cell;

/// Files below `/sys/class/net/NAME/bridge`.
pub(crate) const FILES: [&str; 21] = [
    "ageing_time",
    "bridge_id",
    "default_pvid",
    "flush",
    "forward_delay",
    "group_addr",
    "hello_time",
    "hello_timer",
    "max_age",
    "priority",
    "root_id",
    "root_path_cost",
    "root_port",
    "stp_state",
    "tcn_timer",
    "topology_change",
    "topology_change_detected",
    "topology_change_timer",
    "vlan_filtering",
    "vlan_protocol",
    "vlan_stats_enabled",
];
/// Those of them that tell what it knows of its spanning tree.
const OF_TREE: [&str; 8] = [
    "root_id",
    "root_path_cost",
    "root_port",
    "hello_timer",
    "tcn_timer",
    "topology_change",
    "topology_change_detected",
    "topology_change_timer",
];
/// Files below `/sys/class/net/NAME/brport`.
pub(crate) const PORT_FILES: [&str; 23] = [
    "bpdu_guard",
    "broadcast_flood",
    "change_ack",
    "config_pending",
    "designated_bridge",
    "designated_cost",
    "designated_port",
    "designated_root",
    "flush",
    "forward_delay_timer",
    "hairpin_mode",
    "hold_timer",
    "isolated",
    "learning",
    "message_age_timer",
    "multicast_flood",
    "path_cost",
    "port_id",
    "port_no",
    "priority",
    "root_block",
    "state",
    "unicast_flood",
];

const INVALID: &str = "Invalid argument";
const DENIED: &str = "Permission denied";
const NOT_FOUND: &str = "No such file or directory";
/// Hundredths of a second (`clock_t`).
fn clock_t(span: Span) -> i64 {
    span.as_ns() / 10_000_000
}
/// `br_show_bridge_id`.
fn id(priority: u16, mac: Mac) -> String {
    format!("{priority:04x}.{}", mac.map(|b| format!("{b:02x}")).concat())
}

impl Host {
    /// `port_cost`: the path cost that follows from a port's speed.
    pub(super) fn port_cost(&self, port: &NetDevice) -> u32 {
        let old = self.kernel == Kernel::V2_6_35;
        match self.speed(port) {
            Some(10_000) => 2,
            Some(5000) if !old => 3,
            Some(2500) if !old => 4,
            Some(1000) if !old => 5,
            Some(1000) => 4,
            Some(100) => 19,
            Some(10) | None => 100,
            Some(speed) if speed > 10_000 && !old => 1,
            Some(_) => 100,
        }
    }
    /// `bridge vlan show`: of one device, or of all; of one VLAN, or of all.
    pub(crate) fn vlan_views(&self, only: Option<u32>, vid: Option<u16>) -> Vec<VlanView> {
        let view = |d: &NetDevice| {
            let group = self.vlans_of(d)?;
            let wanted = group.iter().filter(|v| vid.is_none_or(|vid| vid == v.0));
            let vlans: Vec<_> = wanted.map(|(vid, untagged)| (vid, vid == group.pvid, untagged)).collect();
            (!vlans.is_empty()).then(|| VlanView { dev: d.name.clone(), vlans })
        };
        self.devices.iter().filter(|d| only.is_none_or(|i| i == d.ifindex)).filter_map(view).collect()
    }
    /// `bridge fdb show`, by devices; of each the newest first.
    pub(crate) fn fdb_views(
        &self,
        only: Option<u32>,
        br: Option<u32>,
        f: &FdbFilter,
        now: Time,
    ) -> Vec<FdbView> {
        let mut all = Vec::new();
        for d in self.devices.iter() {
            let of = if d.bridge.is_some() { Some(d.ifindex) } else { self.bridge_of(d.ifindex) };
            if only.is_some_and(|i| i != d.ifindex) || br.is_some_and(|br| of != Some(br)) {
                continue;
            }
            if let Some((bridge, master)) = of.and_then(|i| Some((i, self.devices.get(i)?)))
                && let Some(b) = master.bridge.as_deref()
            {
                let port = Some(d.ifindex).filter(|i| *i != bridge);
                all.extend(b.heard(now).into_iter().filter(|h| h.port == port).map(|h| FdbView {
                    mac: h.mac,
                    dev: only.is_none().then(|| d.name.clone()),
                    dst: None,
                    vlan: h.vid,
                    own: false,
                    master: Some(master.name.clone()),
                    state: match (h.local, h.stays) {
                        (true, _) => "permanent",
                        (false, true) => "static",
                        (false, false) => "",
                    },
                }));
            }
            all.extend(self.vxlan_fdb_views(d.ifindex, only.is_none(), now));
        }
        let wanted = |e: &FdbView| {
            f.vlan.is_none_or(|vlan| vlan == e.vlan)
                && f.state.is_none_or(|state| state == e.state)
                && !(f.dynamic && e.state == "permanent")
        };
        all.retain(wanted);
        all
    }
    /// `bridge link show`.
    pub(crate) fn port_views(&self, only: Option<u32>, now: Time) -> Vec<PortView> {
        let view = |d: &NetDevice| {
            let port = self.devices[self.bridge_of(d.ifindex)?].bridge.as_deref()?.port(d.ifindex)?;
            let (mut link, state) = (self.link_view(d.ifindex, now), self.port_state(d, now).1);
            // The kernel does not say that what is behind it is elsewhere: its number is taken for one here (br_fill_ifinfo).
            if let Some(LinkRef::Away(index)) = link.link
                && let Some(other) = self.devices.get(index)
            {
                link.link = Some(LinkRef::Here(other.name.clone(), other.up));
            }
            let cost = port.cost.unwrap_or(self.port_cost(d));
            Some(PortView { link, state, priority: port.priority, cost })
        };
        self.devices.iter().filter(|d| only.is_none_or(|i| i == d.ifindex)).filter_map(view).collect()
    }
    /// The state of a port (`BR_STATE_*`) and its name.
    pub(crate) fn port_state(&self, d: &NetDevice, now: Time) -> (u8, &'static str) {
        let bridge = self.bridge_of(d.ifindex).and_then(|i| self.devices[i].bridge.as_deref());
        if let Some(tree) = bridge.and_then(|b| b.tree.as_deref()) {
            let state = tree.port(d.ifindex).map_or(State::Disabled, |p| p.state);
            return (state as u8, state.name());
        }
        match bridge.map(|b| b.state(d.ifindex, now)) {
            Some((true, _)) => (3, "forwarding"),
            Some((false, true)) => (2, "learning"),
            _ => (0, "disabled"),
        }
    }
    /// A file below `/sys/class/net/NAME/bridge`; `None`: there is no such file.
    pub(crate) fn read_bridge_file(&self, d: &NetDevice, file: &str, now: Time) -> Option<String> {
        let b = d.bridge.as_deref()?;
        let vlans = self.kernel != Kernel::V2_6_35;
        let group = if b.vlan.forwarded_groups() == 0 { 0 } else { 8 };
        Some(match file {
            "ageing_time" => clock_t(b.ageing).to_string(),
            // As the root of its tree has them.
            "forward_delay" => b
                .tree
                .as_ref()
                .map_or(clock_t(b.forward_delay), |t| t.in_force(t.forward_delay, self.hz))
                .to_string(),
            "hello_time" => b
                .tree
                .as_ref()
                .map_or(clock_t(b.hello_time), |t| t.in_force(t.hello_time, self.hz))
                .to_string(),
            "max_age" => {
                b.tree.as_ref().map_or(clock_t(b.max_age), |t| t.in_force(t.max_age, self.hz)).to_string()
            }
            "bridge_id" => b.tree.as_ref().map_or(id(b.priority, d.mac), |t| id(t.own.prio, t.own.mac)),
            file if OF_TREE.contains(&file) => self.tree_file(d, file, now)?,
            "priority" => b.priority.to_string(),
            "stp_state" => u8::from(b.tree.as_ref().is_some_and(|t| t.on)).to_string(),
            "group_addr" => format!("01:80:c2:00:00:{group:02x}"),
            "vlan_filtering" if vlans => u8::from(b.vlan.on).to_string(),
            "vlan_protocol" if vlans => format!("0x{:04x}", b.vlan.protocol),
            "default_pvid" if vlans => b.vlan.default_pvid.to_string(),
            "vlan_stats_enabled" if vlans => "0".to_owned(),
            _ => return None,
        })
    }
    /// Writes one.
    pub(crate) fn write_bridge_file(
        &mut self,
        ifindex: u32,
        file: &str,
        text: &str,
        now: Time,
    ) -> Result<(), &'static str> {
        if !FILES.contains(&file) || self.devices[ifindex].bridge.is_none() {
            return Err(NOT_FOUND);
        }
        if file == "flush" {
            if let Some(b) = self.devices[ifindex].bridge.as_deref_mut() {
                b.flush(None);
            }
            return Ok(());
        }
        let hex = text.strip_prefix("0x").and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let number = hex.or_else(|| text.parse::<u32>().ok()).ok_or(INVALID)?;
        let word = match file {
            "bridge_id" => return Err(DENIED),
            file if OF_TREE.contains(&file) => return Err(DENIED),
            "default_pvid" => {
                let b = self.devices[ifindex].bridge.as_deref();
                //= linux v6.12 net/bridge/br_vlan.c br_vlan_set_default_pvid
                if number < 4095 && b.is_some_and(|b| b.vlan.on && u32::from(b.vlan.default_pvid) != number) {
                    return Err("Operation not permitted");
                }
                "vlan_default_pvid"
            }
            "vlan_protocol" => match number {
                0x8100 => return self.write_bridge_word(ifindex, file, "802.1Q", now),
                0x88a8 => return self.write_bridge_word(ifindex, file, "802.1ad", now),
                _ => return Err("Protocol not supported"),
            },
            "group_addr" => return Err(INVALID),
            word => word,
        };
        self.write_bridge_word(ifindex, word, &number.to_string(), now)
    }
    /// A file below `/sys/class/net/NAME/brport`.
    pub(crate) fn read_port_file(&self, d: &NetDevice, file: &str, now: Time) -> Option<String> {
        let b = self.devices[self.bridge_of(d.ifindex)?].bridge.as_deref()?;
        let (port, number) = (b.port(d.ifindex)?, b.port_number(d.ifindex)?);
        let of = |on: bool| u8::from(on).to_string();
        Some(match file {
            "broadcast_flood" => of(port.set.bcast_flood),
            "hairpin_mode" => of(port.set.hairpin),
            "isolated" => of(port.set.isolated),
            "learning" => of(port.set.learning),
            "multicast_flood" => of(port.set.mcast_flood),
            "unicast_flood" => of(port.set.flood),
            "path_cost" => port.cost.unwrap_or(self.port_cost(d)).to_string(),
            "port_id" => format!("0x{:x}", u32::from(port.priority) << 10 | number as u32),
            "port_no" => format!("0x{number:x}"),
            "priority" => port.priority.to_string(),
            "state" => self.port_state(d, now).0.to_string(),
            "bpdu_guard" => of(port.guard),
            "root_block" => of(port.root_block),
            _ => return self.tree_port_file(d, file, now),
        })
    }
    /// What a bridge knows of its tree; of one that never took part in any it is the root.
    fn tree_file(&self, d: &NetDevice, file: &str, now: Time) -> Option<String> {
        let b = d.bridge.as_deref()?;
        let set = Cell::new(0);
        let (tree, clock) = (b.tree.as_deref(), self.tree_clock(now, &set));
        let of = |on: bool| u8::from(on).to_string();
        let root = tree.map_or(Id { prio: b.priority, mac: d.mac }, |t| t.designated_root);
        Some(match file {
            "root_id" => id(root.prio, root.mac),
            "root_path_cost" => tree.map_or(0, |t| t.root_path_cost).to_string(),
            "root_port" => tree.map_or(0, |t| t.root_port).to_string(),
            "hello_timer" => tree.map_or(0, |t| clock.left(t.hello_timer)).to_string(),
            "tcn_timer" => tree.map_or(0, |t| clock.left(t.tcn_timer)).to_string(),
            "topology_change_timer" => tree.map_or(0, |t| clock.left(t.topology_change_timer)).to_string(),
            "topology_change" => of(tree.is_some_and(|t| t.topology_change)),
            "topology_change_detected" => of(tree.is_some_and(|t| t.topology_change_detected)),
            _ => return None,
        })
    }
    /// What it knows of a port.
    fn tree_port_file(&self, d: &NetDevice, file: &str, now: Time) -> Option<String> {
        let bridge = self.bridge_of(d.ifindex)?;
        let b = self.devices[bridge].bridge.as_deref()?;
        let known = b.tree.as_deref().and_then(|t| t.port(d.ifindex));
        let own = Id { prio: b.priority, mac: self.devices[bridge].mac };
        let own_id = b.port(d.ifindex)?.priority << 10 | b.port_number(d.ifindex)? as u16;
        let set = Cell::new(0);
        let clock = self.tree_clock(now, &set);
        let of = |on: bool| u8::from(on).to_string();
        let shown = |i: Id| id(i.prio, i.mac);
        Some(match file {
            "designated_root" => shown(known.map_or(own, |p| p.designated_root)),
            "designated_bridge" => shown(known.map_or(own, |p| p.designated_bridge)),
            "designated_port" => known.map_or(own_id, |p| p.designated_port).to_string(),
            "designated_cost" => known.map_or(0, |p| p.designated_cost).to_string(),
            "change_ack" => of(known.is_some_and(|p| p.topology_change_ack)),
            "config_pending" => of(known.is_some_and(|p| p.config_pending)),
            "message_age_timer" => known.map_or(0, |p| clock.left(p.message_age_timer)).to_string(),
            "forward_delay_timer" => known.map_or(0, |p| clock.left(p.forward_delay_timer)).to_string(),
            "hold_timer" => known.map_or(0, |p| clock.left(p.hold_timer)).to_string(),
            _ => return None,
        })
    }
    /// Writes one.
    pub(crate) fn write_port_file(
        &mut self,
        ifindex: u32,
        file: &str,
        text: &str,
        now: Time,
    ) -> Result<(), &'static str> {
        let bridge = self.bridge_of(ifindex).filter(|_| PORT_FILES.contains(&file)).ok_or(NOT_FOUND)?;
        let number = text.parse::<u32>().map_err(|_| INVALID)?;
        let Some(b) = self.devices[bridge].bridge.as_deref_mut() else { return Err(NOT_FOUND) };
        if file == "flush" {
            b.flush(Some(ifindex));
            return Ok(());
        }
        let Some(port) = b.ports.iter_mut().find(|p| p.ifindex == ifindex) else { return Err(NOT_FOUND) };
        if matches!(file, "path_cost" | "priority") {
            let (cost, priority) =
                if file == "priority" { (None, Some(number)) } else { (Some(number), None) };
            let set = self.set_port_of_tree(ifindex, priority, cost, now);
            return set.map_err(|_| "Numerical result out of range");
        }
        let set = match file {
            "broadcast_flood" => &mut port.set.bcast_flood,
            "hairpin_mode" => &mut port.set.hairpin,
            "isolated" => &mut port.set.isolated,
            "learning" => &mut port.set.learning,
            "multicast_flood" => &mut port.set.mcast_flood,
            "unicast_flood" => &mut port.set.flood,
            "bpdu_guard" => &mut port.guard,
            "root_block" => &mut port.root_block,
            _ => return Err(DENIED),
        };
        *set = number != 0;
        self.port_guards_changed(bridge, now);
        Ok(())
    }
}
