//! Groups that devices are in: of IPv4 (`/proc/net/igmp`), of IPv6 (`/proc/net/igmp6`), and the hardware addresses a card listens to for them
//! (`/proc/net/dev_mcast`).
//!
//! Follows: linux v6.12 `net/ipv4/igmp.c` `ip_mc_inc_group`, `ip_mc_dec_group`, `ip_mc_up`, `ip_mc_down`; `net/ipv6/mcast.c` `ipv6_dev_mc_inc`, `ipv6_mc_up`,
//! `ipv6_mc_down`; `net/ipv6/addrconf.c` `ipv6_add_dev`, `addrconf_join_solict`, `dev_forward_change`; `net/core/dev_addr_lists.c` `__hw_addr_add_ex`,
//! `__hw_addr_sync`; `net/bridge/br_multicast.c` `br_multicast_join_snoopers`.
//! Differs: no reports are sent, so no timer runs; sockets join no groups.

use crate::bond::Mode;
use crate::device::{LOOPBACK, MULTICAST, NOARP};
use crate::six::{MIN_MTU, group_mac, solicited_node};
use crate::{Host, NetDevice};
use penstock_lang::ip::GroupView;
use penstock_model::KernelError;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

/// All hosts of a link.
const ALL_HOSTS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 1);
/// All that snoop.
const SNOOPERS: Ipv4Addr = Ipv4Addr::new(224, 0, 0, 106);
const SNOOPERS6: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x6a);
/// All routers: of the link, of the machine, of the site.
const ROUTERS: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2),
    Ipv6Addr::new(0xff01, 0, 0, 0, 0, 0, 0, 2),
    Ipv6Addr::new(0xff05, 0, 0, 0, 0, 0, 0, 2),
];
const NODES: [Ipv6Addr; 2] =
    [Ipv6Addr::new(0xff01, 0, 0, 0, 0, 0, 0, 1), Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)];

/// A hardware address that a device listens to (`struct netdev_hw_addr`).
#[derive(Clone, PartialEq, Eq, Debug)]
struct Heard {
    mac: Vec<u8>,
    /// Groups that want it.
    own: u32,
    /// `ip maddr add` (`global_use`).
    by_hand: bool,
    /// Devices above that have passed it down.
    above: u32,
    /// Devices below that it was passed to.
    passed: BTreeSet<u32>,
}

impl Groups {
    /// Whether it is in a group of IPv4 (`ip_check_mc_rcu`).
    pub(crate) fn is_in4(&self, addr: Ipv4Addr) -> bool {
        self.four.iter().any(|group| group.addr == addr)
    }
}

impl Heard {
    fn wanted(&self) -> bool {
        self.own + self.above > 0 || self.by_hand
    }
    /// `refcount`.
    fn users(&self) -> u32 {
        self.own + self.above + u32::from(self.by_hand) + self.passed.len() as u32
    }
}

/// A group of IPv4 or IPv6.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Group<A> {
    addr: A,
    users: u32,
    /// The card listens for it.
    loaded: bool,
}

/// One more is in a group; whether nobody was.
fn join<A: PartialEq>(groups: &mut Vec<Group<A>>, addr: A) -> bool {
    match groups.iter_mut().find(|g| g.addr == addr) {
        Some(group) => {
            group.users += 1;
            false
        }
        None => {
            groups.insert(0, Group { addr, users: 1, loaded: false });
            true
        }
    }
}
/// One leaves a group; where it stands if nobody is left in it.
fn leave<A: PartialEq>(groups: &mut [Group<A>], addr: A) -> Option<usize> {
    let at = groups.iter().position(|g| g.addr == addr)?;
    groups[at].users -= 1;
    (groups[at].users == 0).then_some(at)
}

/// The groups that a device is in.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Groups {
    heard: Vec<Heard>,
    // The newest first.
    four: Vec<Group<Ipv4Addr>>,
    six: Vec<Group<Ipv6Addr>>,
    /// Addresses whose solicited-node groups it is in.
    solicited: BTreeSet<Ipv6Addr>,
    /// The next end of IPv6 on it leaves the others as they are.
    stays: bool,
}

/// The hardware address of a group on a device (`arp_mc_map`).
fn mac4(device: &NetDevice, group: Ipv4Addr) -> Option<Vec<u8>> {
    let [_, b, c, d] = group.octets();
    match device.class.link_type {
        "ether" => Some(vec![0x01, 0, 0x5e, b & 0x7f, c, d]),
        "gre" => Some(remote(device).unwrap_or(group).octets().to_vec()),
        _ => None,
    }
}
/// The same of IPv6 (`ndisc_mc_map`).
fn mac6(device: &NetDevice, group: Ipv6Addr) -> Option<Vec<u8>> {
    match device.class.link_type {
        "ether" => Some(group_mac(group).to_vec()),
        "gre" => remote(device).map(|addr| addr.octets().to_vec()),
        _ => None,
    }
}
/// The other end of a tunnel of IPv4, where it is said.
fn remote(device: &NetDevice) -> Option<Ipv4Addr> {
    device.tunnel.as_ref().map(|t| t.set.remote).filter(|a| !a.is_unspecified())
}
/// `IPV6_ADDR_MC_SCOPE` below that of a link.
fn within(group: Ipv6Addr) -> bool {
    group.segments()[0] & 0xf < 2
}

impl Groups {
    fn hear(&mut self, mac: Vec<u8>) -> &mut Heard {
        let at = self.heard.iter().position(|h| h.mac == mac).unwrap_or_else(|| {
            self.heard.push(Heard { mac, own: 0, by_hand: false, above: 0, passed: BTreeSet::new() });
            self.heard.len() - 1
        });
        &mut self.heard[at]
    }
    fn load(&mut self, mac: Option<Vec<u8>>, on: bool) {
        let Some(mac) = mac else { return };
        let heard = self.hear(mac);
        heard.own = if on { heard.own + 1 } else { heard.own.saturating_sub(1) };
    }
}

impl NetDevice {
    fn load4(&mut self, at: usize, on: bool) {
        let group = &mut self.groups.four[at];
        let addr = group.addr;
        if std::mem::replace(&mut group.loaded, on) != on {
            let mac = mac4(self, addr);
            self.groups.load(mac, on);
        }
    }
    fn load6(&mut self, at: usize, on: bool) {
        let group = &mut self.groups.six[at];
        let addr = group.addr;
        if !within(addr) && std::mem::replace(&mut group.loaded, on) != on {
            let mac = mac6(self, addr);
            self.groups.load(mac, on);
        }
    }
    fn has_six_groups(&self) -> bool {
        self.mtu >= MIN_MTU
    }
    /// Whether its driver knows of lists of addresses (`ndo_set_rx_mode`).
    fn lists_groups(&self) -> bool {
        matches!(
            self.class.kind,
            "" | "bond" | "bridge" | "dummy" | "macvlan" | "veth" | "vlan" | "vxlan" | "tap"
        )
    }
}

impl Host {
    /// Hands on to the devices below what a device listens to, and takes back what it no longer does (`dev_set_rx_mode`).
    pub(crate) fn groups_settle(&mut self, ifindex: u32) {
        let Some(device) = self.devices.get(ifindex) else { return };
        let below: BTreeSet<u32> = match (&device.bond, device.lower, device.class.kind) {
            _ if !device.up => BTreeSet::new(),
            (Some(bond), ..) if bond.mode == Mode::ActiveBackup => bond.current.into_iter().collect(),
            (Some(bond), ..) => bond.slaves.iter().map(|s| s.ifindex).collect(),
            (_, Some(lower), "vlan" | "macvlan") if lower.space == self.space => [lower.ifindex].into(),
            _ => BTreeSet::new(),
        };
        let mut touched = BTreeSet::new();
        let mut heard = std::mem::take(&mut self.devices[ifindex].groups.heard);
        for one in &mut heard {
            let wanted = if one.wanted() { below.clone() } else { BTreeSet::new() };
            for &gone in one.passed.difference(&wanted) {
                if let Some(lower) = self.devices.get_mut(gone) {
                    let there = lower.groups.hear(one.mac.clone());
                    there.above = there.above.saturating_sub(1);
                    touched.insert(gone);
                }
            }
            for &new in wanted.difference(&one.passed) {
                if let Some(lower) = self.devices.get_mut(new) {
                    lower.groups.hear(one.mac.clone()).above += 1;
                    touched.insert(new);
                }
            }
            one.passed = wanted;
        }
        heard.retain(Heard::wanted);
        self.devices[ifindex].groups.heard = heard;
        touched.into_iter().for_each(|lower| self.groups_settle(lower));
    }

    /// A device is there (`inetdev_init`, `ipv6_add_dev`): what it was in elsewhere is forgotten.
    pub(crate) fn groups_begin(&mut self, ifindex: u32) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        device.groups = Groups::default();
        self.groups_begin_six(ifindex);
    }
    /// IPv6 is on a device from now on.
    pub(crate) fn groups_begin_six(&mut self, ifindex: u32) {
        let Some(device) = self.devices.get(ifindex) else { return };
        if !device.has_six_groups() || !device.groups.six.is_empty() {
            return;
        }
        let routes = device.six.conf.forwarding && device.flags & MULTICAST != 0;
        for group in NODES.into_iter().chain(routes.then_some(ROUTERS[0])) {
            self.join6(ifindex, group);
        }
    }
    /// IPv6 has left a device.
    pub(crate) fn groups_end_six(&mut self, ifindex: u32) {
        self.groups_six(ifindex, false);
        if let Some(device) = self.devices.get_mut(ifindex) {
            device.groups.six.clear();
        }
    }

    /// `ip_mc_inc_group`.
    pub(crate) fn join4(&mut self, ifindex: u32, addr: Ipv4Addr) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if join(&mut device.groups.four, addr) {
            device.load4(0, true);
            self.groups_settle(ifindex);
        }
    }
    /// `ip_mc_dec_group`.
    pub(crate) fn leave4(&mut self, ifindex: u32, addr: Ipv4Addr) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if let Some(at) = leave(&mut device.groups.four, addr) {
            device.load4(at, false);
            device.groups.four.remove(at);
            self.groups_settle(ifindex);
        }
    }
    /// `ipv6_dev_mc_inc`.
    pub(crate) fn join6(&mut self, ifindex: u32, addr: Ipv6Addr) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if join(&mut device.groups.six, addr) {
            device.load6(0, true);
            self.groups_settle(ifindex);
        }
    }
    /// `ipv6_dev_mc_dec`.
    pub(crate) fn leave6(&mut self, ifindex: u32, addr: Ipv6Addr) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if let Some(at) = leave(&mut device.groups.six, addr) {
            device.load6(at, false);
            device.groups.six.remove(at);
            self.groups_settle(ifindex);
        }
    }

    /// An address of a device, or one it shares with others, is there: its solicited-node group is joined.
    pub(crate) fn join_solicited(&mut self, ifindex: u32, addr: Ipv6Addr) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if device.flags & (LOOPBACK | NOARP) == 0 && device.groups.solicited.insert(addr) {
            self.join6(ifindex, solicited_node(addr));
        }
    }
    /// It has gone.
    pub(crate) fn leave_solicited(&mut self, ifindex: u32, addr: Ipv6Addr) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if device.groups.solicited.remove(&addr) {
            self.leave6(ifindex, solicited_node(addr));
        }
    }
    /// A device is a router's from now on, or is no more (`dev_forward_change`).
    pub(crate) fn groups_of_routers(&mut self, ifindex: u32, router: bool) {
        if !self.devices.get(ifindex).is_some_and(|d| d.flags & MULTICAST != 0 && d.has_six_groups()) {
            return;
        }
        for group in ROUTERS {
            if router { self.join6(ifindex, group) } else { self.leave6(ifindex, group) }
        }
    }

    /// A bridge that snoops has come up, or goes down.
    fn groups_of_bridge(&mut self, ifindex: u32, up: bool) {
        let snoops = self.devices.get(ifindex).is_some_and(|d| {
            d.bridge.as_ref().is_some_and(|b| b.told.get("mcast_snooping").is_none_or(|v| v != "0"))
        });
        match (snoops, up) {
            (false, _) => {}
            (true, true) => {
                self.join4(ifindex, SNOOPERS);
                self.join6(ifindex, SNOOPERS6);
            }
            (true, false) => {
                self.leave4(ifindex, SNOOPERS);
                self.leave6(ifindex, SNOOPERS6);
            }
        }
    }
    /// A device has come up, or goes down: IPv4's half (`ip_mc_up`, `ip_mc_down`), and what hangs on the card.
    pub(crate) fn groups_follow_link(&mut self, ifindex: u32, up: bool) {
        self.groups_of_bridge(ifindex, up);
        if up {
            self.join4(ifindex, ALL_HOSTS);
        }
        if let Some(device) = self.devices.get_mut(ifindex) {
            (0..device.groups.four.len()).for_each(|at| device.load4(at, up));
        }
        if up {
            self.groups_settle(ifindex);
        } else {
            self.leave4(ifindex, ALL_HOSTS);
        }
    }
    /// IPv6's half: it works on a device, or no more (`ipv6_mc_up`, `ipv6_mc_down`).
    pub(crate) fn groups_six(&mut self, ifindex: u32, works: bool) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if !works {
            for addr in std::mem::take(&mut device.groups.solicited) {
                self.leave6(ifindex, solicited_node(addr));
            }
        }
        let device = &mut self.devices[ifindex];
        if std::mem::take(&mut device.groups.stays) && !works {
            return;
        }
        (0..device.groups.six.len()).for_each(|at| device.load6(at, works));
        self.groups_settle(ifindex);
    }

    /// The first VLAN has come to a device, or the last has gone: GVRP and MVRP have one address (`vlan_gvrp_init_applicant`, `vlan_mvrp_init_applicant`).
    pub(crate) fn groups_of_vlans(&mut self, ifindex: u32, there: bool) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        for _ in 0..2 {
            device.groups.load(Some(vec![0x01, 0x80, 0xc2, 0, 0, 0x21]), there);
        }
        self.groups_settle(ifindex);
    }

    /// IPv6 is turned off on a device: what one that is down listens for stays.
    pub(crate) fn groups_stay(&mut self, ifindex: u32) {
        if let Some(device) = self.devices.get_mut(ifindex) {
            device.groups.stays = !device.up;
        }
    }

    /// `ip maddr add` and `del` (`SIOCADDMULTI`, `SIOCDELMULTI`).
    ///
    /// # Errors
    /// EINVAL where the device has no list of addresses, ENOENT where the address was not said.
    pub(crate) fn hear_by_hand(&mut self, ifindex: u32, mac: [u8; 6], add: bool) -> Result<(), KernelError> {
        let device = &mut self.devices[ifindex];
        if !device.lists_groups() {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let all = &mut device.groups;
        match all.heard.iter_mut().find(|h| h.mac == mac) {
            Some(heard) if add || heard.by_hand => heard.by_hand = add,
            None if add => all.hear(mac.to_vec()).by_hand = true,
            _ => return Err(KernelError::errno(KernelError::ENOENT)),
        }
        self.groups_settle(ifindex);
        Ok(())
    }

    /// All that `ip maddr` may show, device by device: hardware addresses, IPv4, IPv6.
    pub(crate) fn group_views(&self) -> Vec<GroupView<'_>> {
        self.devices
            .iter()
            .map(|device| GroupView {
                ifindex: device.ifindex,
                dev: &device.name,
                link: device.groups.heard.iter().map(|h| (h.mac.as_slice(), h.users(), h.by_hand)).collect(),
                four: device.groups.four.iter().map(|g| (g.addr, g.users)).collect(),
                six: device.groups.six.iter().map(|g| (g.addr, g.users)).collect(),
            })
            .collect()
    }
    /// `/proc/net/dev_mcast`.
    pub(crate) fn proc_dev_mcast(&self) -> String {
        let mut out = String::new();
        for device in self.devices.iter() {
            for h in &device.groups.heard {
                let mac: String = h.mac.iter().map(|b| format!("{b:02x}")).collect();
                let (i, name) = (device.ifindex, &device.name);
                let _ = writeln!(out, "{i:<4} {name:<15} {:<5} {:<5} {mac}", h.users(), u8::from(h.by_hand));
            }
        }
        out
    }
    /// `/proc/net/igmp`.
    pub(crate) fn proc_igmp(&self) -> String {
        let mut out = "Idx\tDevice    : Count Querier\tGroup    Users Timer\tReporter\n".to_owned();
        for device in self.devices.iter() {
            let all = &device.groups.four;
            for (n, g) in all.iter().enumerate() {
                if n == 0 {
                    let _ =
                        writeln!(out, "{}\t{:<10}: {:5} {:>7}", device.ifindex, device.name, all.len(), "V3");
                }
                let number = u32::from_le_bytes(g.addr.octets());
                let _ = writeln!(out, "\t\t\t\t{number:08X} {:5} 0:00000000\t\t0", g.users);
            }
        }
        out
    }
    /// `/proc/net/igmp6`.
    pub(crate) fn proc_igmp6(&self) -> String {
        let mut out = String::new();
        for device in self.devices.iter() {
            for g in &device.groups.six {
                // MAF_LOADED, MAF_NOREPORT.
                let quiet = within(g.addr) || g.addr == NODES[1];
                let flags = 4 * u8::from(g.loaded) + 8 * u8::from(quiet);
                let addr: String = g.addr.octets().iter().map(|b| format!("{b:02x}")).collect();
                let _ = writeln!(
                    out,
                    "{:<4} {:<15} {addr} {:5} {flags:08X} 0",
                    device.ifindex, device.name, g.users
                );
            }
        }
        out
    }
}
