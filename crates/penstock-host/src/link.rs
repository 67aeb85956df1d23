//! Kinds of devices: what they begin with, how they hang together, when they have a carrier.
//!
//! Follows: linux v6.12 `drivers/net/{veth,dummy,ifb,loopback}.c`, `net/8021q/vlan.c` `vlan_device_event`,
//! `vlan_dev.c` `vlan_dev_open`, `net/bridge/br_if.c`, `br_stp_if.c`, `net/core/link_watch.c` `default_operstate`,
//! `net/core/dev.c` `dev_get_flags`, `unregister_netdevice_many`.
//! Differs: a carrier follows at once.

use crate::bridge::Bridge;
use crate::device::{BROADCAST, LOOPBACK, Lower, MASTER, MULTICAST, NOARP, NetDevice, POINTOPOINT};
use crate::{Effect, Host};
use penstock_model::{Kernel, KernelError, Time};
use penstock_sched::Cx;

/// What devices of a kind have in common.
#[derive(Debug)]
pub struct Class {
    /// `type` of `ip link add`; `loopback` and the empty one are not made by commands.
    pub kind: &'static str,
    /// MTU, bytes.
    pub mtu: u32,
    /// Least MTU.
    pub min_mtu: u32,
    /// Largest MTU; 0 is none.
    pub max_mtu: u32,
    /// txqueuelen, packets.
    pub tx_queue_len: u32,
    /// `IFF_NO_QUEUE`: `noqueue` is the default qdisc.
    pub no_queue: bool,
    /// `IFF_*`.
    pub flags: u32,
    /// `tso_max_size`.
    pub tso_max_size: u32,
    /// Whether the state is told: UP rather than UNKNOWN.
    pub carrier_known: bool,
    /// What `ip link` shows behind `link/`: `ether`, `loopback`, or a tunnel's, whose frames have no Ethernet header.
    pub link_type: &'static str,
}

impl Class {
    /// The speed its driver tells, Mbit/s: veth and dummy have none of their own, but veth says 10 Gbit/s.
    pub fn speed(&self, kernel: Kernel) -> Option<u32> {
        match self.kind {
            "veth" if kernel >= Kernel::V6_12 => Some(10_000),
            _ => None,
        }
    }
    /// Whether a program reads what is sent by it (`ip tuntap`). None does here, so it never has a carrier.
    pub fn is_tun(&self) -> bool {
        matches!(self.kind, "tun" | "tap")
    }
    /// Its `type` as `ip link` has it.
    pub fn type_name(&self) -> &'static str {
        if self.is_tun() { "tun" } else { self.kind }
    }
    /// Whether what is sent by it goes out within other packets.
    pub fn is_tunnel(&self) -> bool {
        matches!(self.kind, "ipip" | "sit" | "gre" | "gretap" | "vxlan" | "wireguard" | "ppp")
    }
    /// `dev->hard_header_len`, bytes.
    pub fn header_len(&self) -> u32 {
        match self.link_type {
            "ether" | "loopback" => 14,
            // PPP_HDRLEN
            "ppp" => 4,
            _ => 0,
        }
    }
}

const fn class(kind: &'static str, no_queue: bool, flags: u32) -> Class {
    Class {
        kind,
        mtu: 1500,
        min_mtu: 68,
        max_mtu: 65_535,
        tx_queue_len: 1000,
        no_queue,
        flags,
        tso_max_size: 524_280,
        carrier_known: false,
        link_type: "ether",
    }
}

const fn tunnel(kind: &'static str, mtu: u32, min_mtu: u32, max_mtu: u32) -> Class {
    Class { mtu, min_mtu, max_mtu, tso_max_size: 65_536, link_type: kind, ..class(kind, true, NOARP) }
}

/// All kinds. The first is a card.
pub static CLASSES: &[Class] = &[
    Class { carrier_known: true, tso_max_size: 65_536, ..class("", false, BROADCAST | MULTICAST) },
    Class { min_mtu: 0, max_mtu: 0, link_type: "loopback", ..class("loopback", true, LOOPBACK) },
    Class { carrier_known: true, ..class("bond", true, BROADCAST | MULTICAST | MASTER) },
    class("bridge", true, BROADCAST | MULTICAST),
    Class { min_mtu: 0, max_mtu: 0, tso_max_size: 65_536, ..class("dummy", true, BROADCAST | NOARP) },
    Class {
        min_mtu: 0,
        max_mtu: 0,
        tx_queue_len: 32,
        tso_max_size: 65_536,
        ..class("ifb", false, BROADCAST | NOARP)
    },
    Class {
        max_mtu: 0,
        tso_max_size: 65_536,
        carrier_known: true,
        ..class("macvlan", true, BROADCAST | MULTICAST)
    },
    Class { carrier_known: true, ..class("veth", true, BROADCAST | MULTICAST) },
    Class { min_mtu: 0, carrier_known: true, ..class("vlan", true, BROADCAST | MULTICAST) },
    Class {
        mtu: 65_575,
        min_mtu: 1280,
        max_mtu: 65_575,
        tso_max_size: 65_536,
        // Its state is UP from the beginning (vrf_dev_init).
        carrier_known: true,
        ..class("vrf", true, NOARP | MASTER)
    },
    Class {
        min_mtu: 0,
        max_mtu: 0,
        tx_queue_len: 3,
        tso_max_size: 65_536,
        link_type: "ppp",
        ..class("ppp", true, POINTOPOINT | MULTICAST | NOARP)
    },
    // A teql0 has no header of its own, and neither address nor flags but what its slaves have.
    Class { tx_queue_len: 100, tso_max_size: 65_536, link_type: "void", ..class("teql", false, NOARP) },
    Class { tso_max_size: 65_536, ..class("vxlan", true, BROADCAST | MULTICAST) },
    Class {
        mtu: 1420,
        min_mtu: 0,
        max_mtu: 2_147_483_552,
        tso_max_size: 65_536,
        link_type: "none",
        ..class("wireguard", true, POINTOPOINT | NOARP)
    },
    tunnel("gre", 1476, 68, 65_511),
    Class { mtu: 1462, max_mtu: 0, tso_max_size: 65_536, ..class("gretap", false, BROADCAST | MULTICAST) },
    tunnel("ipip", 1480, 68, 65_515),
    tunnel("sit", 1480, 1280, 65_555),
    Class { max_mtu: 65_521, tso_max_size: 65_536, ..class("tap", false, BROADCAST | MULTICAST) },
    Class {
        tx_queue_len: 500,
        tso_max_size: 65_536,
        link_type: "none",
        ..class("tun", false, POINTOPOINT | MULTICAST | NOARP)
    },
];

/// ENETDOWN.
pub(crate) const ENETDOWN: i32 = 100;
/// EADDRINUSE.
pub(crate) const EADDRINUSE: i32 = 98;
/// EADDRNOTAVAIL.
pub(crate) const EADDRNOTAVAIL: i32 = 99;

impl Host {
    /// The device behind a device, wherever it is.
    pub(crate) fn lower_of(&self, device: &NetDevice) -> Option<&NetDevice> {
        let lower = device.lower?;
        self.space_ref(lower.space)?.devices.get(lower.ifindex)
    }
    /// `netif_carrier_ok` of a device that is up.
    pub(crate) fn carrier(&self, device: &NetDevice) -> bool {
        if let Some(carrier) = device.carrier {
            return carrier;
        }
        match device.class.kind {
            "veth" => device.up && self.lower_of(device).is_some_and(|peer| peer.up),
            "bond" => device.bond.as_ref().is_some_and(|b| b.carrier),
            "macvlan" => device.macvlan.as_ref().is_some_and(|m| m.carrier),
            "vlan" => self.lower_of(device).is_some_and(|lower| lower.up && self.carrier(lower)),
            "tun" | "tap" => false,
            "bridge" => {
                if let Some(tree) = self.tree_of(device.ifindex) {
                    return !tree.selected || tree.carries();
                }
                let mut ports = self.devices.iter().filter(|d| d.master == Some(device.ifindex)).peekable();
                if ports.peek().is_none() {
                    return !device.had_ports;
                }
                ports.any(|p| p.up && self.carrier(p))
            }
            _ => true,
        }
    }
    /// What is set up of devices that carry no packet here although Linux would carry some: a sentence each, naming the machine and the
    /// device. One that is down carries none there either, but a port of a bridge gives its frames to that one all the same.
    pub fn unsimulated_devices(&self) -> Vec<String> {
        let each = self.devices.iter().filter_map(|device| {
            if self.space != 0 && device.tree.root().kind() == "teql0" {
                return Some(format!(
                    "{} {}: teql0 is the first network namespace's, and a device of another one is no slave of it here: delete its qdisc teql0",
                    self.name, device.name
                ));
            }
            let port = device.master.and_then(|m| self.devices.get(m));
            let (what, instead) = match (device.class.kind, port) {
                ("macvlan", _) if device.up && device.macvlan_asked().is_some() => {
                    let what = format!("a macvlan with \"{}\"", device.macvlan_asked().unwrap_or_default());
                    (what, "write mode bridge, private, vepa or passthru")
                }
                (_, Some(master)) if matches!(master.class.kind, "bridge" | "bond" | "vrf") => return None,
                ("vrf", _) => return self.asked_of_vrf(device),
                ("bond", _) => return self.asked_of_bond(device),
                ("bridge", None) => {
                    return device.bridge.as_deref().and_then(|b| self.asked_of_bridge(device, b));
                }
                (_, Some(master)) => {
                    let kind = master.class.kind;
                    let what = format!("a port of the {kind} \"{}\"", master.name);
                    (what, "leave it out of there and give the card an address of its own")
                }
                (kind, None) if device.up => {
                    let what = match kind {
                        "vlan"
                            if device.vlan.as_ref().is_some_and(|v| self.devices.get(v.lower).is_some()) =>
                        {
                            return None;
                        }
                        "vlan" => "a vlan over a device of another network namespace".to_owned(),
                        _ if device.class.is_tunnel() => return self.asked_of_tunnel(device),
                        _ => return None,
                    };
                    (what, "write the device as a card of the host, with a [[link]] of its own")
                }
                _ => return None,
            };
            Some(format!(
                "{} {}: {what} can be set up and shown here, but carries no packets yet: {instead}",
                self.name, device.name
            ))
        });
        each.collect()
    }
    /// What a tunnel is to do that it does not do here.
    fn asked_of_tunnel(&self, device: &NetDevice) -> Option<String> {
        let (kind, name) = (device.class.kind, format!("{} {}", self.name, device.name));
        if let Some(vxlan) = &device.vxlan {
            let asked = vxlan.asked()?;
            return Some(format!(
                "{name}: a vxlan with \"{asked}\" can be set up and shown here, but frames do not meet it yet: leave it out"
            ));
        }
        if device.wireguard.is_some() || kind == "ppp" {
            return None;
        }
        match &device.tunnel {
            None => Some(format!(
                "{name}: a {kind} that was moved to another network namespace carries no packets here: make it there"
            )),
            Some(t) if t.set.remote.is_unspecified() => Some(format!(
                "{name}: a {kind} without an other end carries no packets here: say remote ADDR"
            )),
            Some(_) => None,
        }
    }
    /// What a bridge is to do that it does not do here.
    fn asked_of_bridge(&self, device: &NetDevice, bridge: &Bridge) -> Option<String> {
        let name = format!("{} {}", self.name, device.name);
        if let Some(word) = bridge.asked.first() {
            return Some(format!(
                "{name}: a bridge with \"{word}\" can be set up here, but frames do not meet it yet: leave it out"
            ));
        }
        None
    }
    /// `operstate`: what `ip` shows behind `state`.
    pub fn operstate(&self, device: &NetDevice) -> &'static str {
        if !device.up {
            return "DOWN";
        }
        if !self.carrier(device) {
            //= linux v6.12 net/core/link_watch.c default_operstate: an index of the other end is looked for here, whichever namespace that is in
            let below = device.lower.filter(|_| device.carrier.is_none());
            let strange = |i: u32| i == device.ifindex || self.devices.get(i).is_none_or(|d| self.carrier(d));
            let other =
                self.kernel >= Kernel::V6_12 && device.is_veth() && below.is_some_and(|b| strange(b.ifindex));
            return if below.is_some() && !other { "LOWERLAYERDOWN" } else { "DOWN" };
        }
        let known = device.class.carrier_known
            || device.carrier.is_some()
            || device.class.kind == "bridge" && device.had_ports;
        if known { "UP" } else { "UNKNOWN" }
    }
    /// `dev_get_flags`: `IFF_*` with UP 1, RUNNING 0x40 and LOWER_UP 0x10000.
    pub fn link_flags(&self, device: &NetDevice) -> u32 {
        let mut flags = device.flags;
        if device.up {
            flags |= 1;
            if self.carrier(device) {
                flags |= 0x1_0040;
            }
        }
        flags
    }

    /// Puts a new device in, with the MAC and the dice that follow from its name.
    pub(crate) fn new_device(&mut self, name: &str, kind: &str, index: Option<u32>) -> u32 {
        let class = crate::device::class(kind).unwrap_or(&CLASSES[0]);
        let label = match self.space {
            0 => self.name.clone(),
            space => format!("{}/{space}", self.name),
        };
        let label = match self.gone_names.get(name) {
            None => label,
            Some(count) => format!("{label}#{count}"),
        };
        let mut device = NetDevice::new(&label, name, class, self.kernel, self.seed);
        (device.clock, device.hz) = (self.clock, self.hz);
        self.conf_begins(&mut device);
        device.tree.set_default(self.default_qdisc);
        device.tree.share_blocks(&self.blocks);
        let ifindex = self.devices.insert(device, index);
        let kernel = self.kernel;
        let Host { devices, drops, acts, .. } = self;
        devices[ifindex].refresh_tree(kernel, Time::ZERO, drops, acts);
        self.rebind_rules();
        self.groups_begin(ifindex);
        ifindex
    }

    /// Brings a device up or down, and what hangs on it.
    ///
    /// # Errors
    /// ENETDOWN for a VLAN whose lower device is down, EADDRINUSE for a macvlan whose address another has that is up.
    pub(crate) fn set_link_up(&mut self, ifindex: u32, up: bool, now: Time) -> Result<(), KernelError> {
        let Some(device) = self.devices.get(ifindex) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        if device.up == up {
            return Ok(());
        }
        if up && self.macvlan_addr_busy(ifindex, device.mac) {
            return Err(KernelError::errno(EADDRINUSE));
        }
        if up && device.teql.is_some() {
            self.teql_opens()?;
        }
        if self.devices.get(ifindex).is_some_and(|d| d.wireguard.is_some()) {
            self.wireguard_up(ifindex, up, now)?;
        }
        let Some(device) = self.devices.get(ifindex) else { return Ok(()) };
        if up && device.class.kind == "vlan" && self.lower_of(device).is_none_or(|lower| !lower.up) {
            return Err(KernelError::errno(ENETDOWN));
        }
        self.set_up(ifindex, up, now);
        if !self.devices.has_vlans() {
            return Ok(());
        }
        // VLANs go up and down with the device they are on.
        let here = Lower { space: self.space, ifindex };
        let above: Vec<u32> = self
            .devices
            .iter()
            .filter(|d| d.lower == Some(here) && d.class.kind == "vlan" && d.up != up)
            .map(|d| d.ifindex)
            .collect();
        for vlan in above {
            self.set_link_up(vlan, up, now)?;
        }
        Ok(())
    }

    /// Takes a device out with all that hangs on it: its veth peer, the VLANs and macvlans over it, its place in a bridge,
    /// its addresses, routes, neighbours, qdiscs, filters.
    pub(crate) fn delete_link(&mut self, ifindex: u32, now: Time) {
        let Some(device) = self.devices.get(ifindex) else { return };
        let (peer, kind) = (device.lower, device.class.kind);
        self.detach(ifindex, now);
        let here = Lower { space: self.space, ifindex };
        if let (Some(peer), "veth") = (peer, kind) {
            if peer.space == self.space {
                self.detach(peer.ifindex, now);
            } else {
                self.in_space(peer.space, |other| other.detach(peer.ifindex, now));
            }
        }
        for space in self.space_ids() {
            self.in_space(space, |host| {
                let above: Vec<u32> =
                    host.devices.iter().filter(|d| d.lower == Some(here)).map(|d| d.ifindex).collect();
                for gone in above {
                    host.delete_link(gone, now);
                }
            });
        }
    }

    /// Takes one device out; answers it, down and without its qdiscs' packets.
    pub(crate) fn detach(&mut self, ifindex: u32, now: Time) -> Option<NetDevice> {
        self.devices.get(ifindex)?;
        self.release_ports(ifindex, now);
        self.set_up(ifindex, false, now);
        self.release(ifindex, now);
        self.set_master(ifindex, None, now);
        self.remove_routes_of(ifindex);
        self.fib.remove(|r| r.uses(ifindex));
        self.six_down(ifindex);
        self.neigh_flush(ifindex);
        self.neigh.forget_parms(ifindex);
        self.unbind_tunnel(ifindex);
        self.unbind_wireguard(ifindex);
        let below = self.devices[ifindex].vlan.as_ref().map(|vlan| vlan.lower);
        let device = self.devices.remove(ifindex);
        if let Some(below) = below.filter(|&below| self.devices.vlans_on(below).next().is_none()) {
            self.groups_of_vlans(below, false);
        }
        if let Some(device) = &device {
            self.conf_moves(&device.name, None);
            self.acts.device_gone(&device.name);
        }
        for port in self.devices.iter_mut().filter(|d| d.master == Some(ifindex)) {
            (port.master, port.bridged) = (None, false);
        }
        if device.as_ref().is_some_and(|d| d.class.kind == "vrf") {
            self.vrfs_changed();
        }
        if self.teql == Some(ifindex) {
            self.teql = None;
        }
        self.teql_follow(now);
        self.rebind_rules();
        device
    }
    /// Empties a device's tree, filters included.
    fn release(&mut self, ifindex: u32, now: Time) {
        let Host { devices, drops, acts, .. } = self;
        let Some(device) = devices.get_mut(ifindex) else { return };
        device.tree.clear(&mut Cx { now, rng: &mut device.rng, drops, acts });
        for (packet, reason) in drops.drain() {
            self.pending.push(Effect::gone(packet, ifindex, "qdisc", reason));
        }
    }

    /// Puts a device into a bridge or bond, or takes it out. A bridge takes its least port's address.
    pub(crate) fn set_master(&mut self, ifindex: u32, master: Option<u32>, now: Time) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        let old = std::mem::replace(&mut device.master, master);
        let is_vrf = |m: &u32| self.devices.get(*m).is_some_and(|d| d.class.kind == "vrf");
        if old != master && [old, master].iter().flatten().any(is_vrf) {
            self.vrf_port_changed(ifindex, now);
        }
        if let Some(old) = old {
            if self.devices.get(old).is_some_and(|d| d.bond.is_some()) {
                self.bond_release(old, ifindex, now);
            } else {
                self.remove_port(old, ifindex);
            }
        }
        if let Some(bond) = master.filter(|&m| self.devices.get(m).is_some_and(|d| d.bond.is_some())) {
            self.bond_enslave(bond, ifindex, now);
        }
        if let Some(to) = master.filter(|&m| self.devices.get(m).is_some_and(|d| d.bridge.is_some())) {
            self.add_port(to, ifindex, now);
        }
        for bridge in [old, master].into_iter().flatten() {
            let least = self
                .devices
                .iter()
                .filter(|d| d.master == Some(bridge))
                .map(|d| d.mac)
                .min()
                .unwrap_or([0; 6]);
            let Some(device) = self.devices.get_mut(bridge) else { continue };
            let Some(b) = &device.bridge else { continue };
            device.had_ports = true;
            if !b.own_mac {
                device.mac = least;
            }
            self.bridge_addressed(bridge, now);
            self.bridge_mtu_follows(bridge, now);
            self.bridge_ports_changed(bridge, now);
        }
    }

    /// The first free name `KIND0`, `KIND1`, ….
    pub(crate) fn free_name(&self, kind: &str) -> String {
        let free = (0u32..).map(|n| format!("{kind}{n}")).find(|name| self.ifindex(name).is_none());
        free.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use crate::Host;
    use penstock_model::{Kernel, Time};

    #[test]
    fn names_are_those_that_linux_takes() {
        let mut host = Host::new("r", Kernel::V6_12, 1);
        let mut said = |line: &str| host.exec(line, Time::ZERO).stderr;
        let invalid = "RTNETLINK answers: Invalid argument\n";
        for (line, want) in [
            ("ip link add name br-lan type bridge", ""),
            ("ip link add name 'wan@if5' type dummy", ""),
            ("ip link add name a23456789012345 type dummy", ""),
            ("ip link add name d%d type dummy", ""),
            ("ip link add name d%d type dummy", ""),
            ("ip link set dev d1 name e%d", ""),
            ("ip link set dev e0 name e0", ""),
            ("ip link add name a:b type dummy", invalid),
            ("ip link add name . type dummy", invalid),
            ("ip link add name 100% type dummy", invalid),
            ("ip link add name %d%d type dummy", invalid),
            ("ip link set dev d0 name x:1", invalid),
            ("ip link add v0 type veth peer name v:1", invalid),
            (
                "ip link add name a/b type dummy",
                "Error: argument \"a/b\" is wrong: \"name\" not a valid ifname\n",
            ),
            (
                "ip link add name a234567890123456 type dummy",
                "Error: argument \"a234567890123456\" is wrong: \"name\" not a valid ifname\n",
            ),
        ] {
            assert_eq!(said(line), want, "{line}");
        }
        let names: Vec<&str> = host.devices().iter().map(|d| d.name.as_str()).collect();
        assert_eq!(names, ["lo", "br-lan", "wan@if5", "a23456789012345", "d0", "e0"]);
    }
}
