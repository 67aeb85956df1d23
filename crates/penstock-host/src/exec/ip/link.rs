//! `ip link`.
//!
//! Follows: linux v6.12 `net/core/rtnetlink.c` `rtnl_newlink`, `do_setlink`, `rtnl_dellink`; `drivers/net/veth.c` `veth_newlink`;
//! `net/8021q/vlan_netlink.c` `vlan_validate`, `vlan_newlink`; `net/bridge/br_if.c` `br_add_if`; `net/core/dev.c`
//! `dev_change_name`, `dev_set_mtu_ext`.
//! Differs: an index above 65535 is refused.

mod said;
mod view;

use super::{Done, errno, quiet, says};
use crate::Host;
use crate::arp::MAC_BROADCAST;
use crate::device::{ALLMULTI, INDEX_MAX, Lower, NOARP, PROMISC, class};
use crate::link::{EADDRINUSE, EADDRNOTAVAIL};
use crate::six::GenMode;
use crate::vlan::Vlan;
use penstock_lang::ip::{self, Failure, LinkData, LinkRequest, LinkVerb};
use penstock_model::{Kernel, KernelError, Time, ifname};

/// EPERM, EBUSY, ELOOP, ERANGE, EPROTONOSUPPORT.
const EPERM: i32 = 1;
const EBUSY: i32 = 16;
const ELOOP: i32 = 40;
const ERANGE: i32 = 34;
const EPROTONOSUPPORT: i32 = 93;
/// IFF_UP.
const UP: u32 = 1;

/// Kinds of Linux that are not here, with what to do instead.
pub(crate) const ELSEWHERE: [(&str, &str); 27] = [
    ("amt", TUNNELS),
    ("bareudp", TUNNELS),
    ("batadv", "write the network as links and routes"),
    ("can", "only networks of Ethernet and IP are simulated"),
    ("erspan", TUNNELS),
    ("geneve", TUNNELS),
    ("gtp", TUNNELS),
    ("hsr", "write the network as links and routes"),
    ("ip6erspan", TUNNELS),
    ("ip6gre", TUNNELS),
    ("ip6gretap", TUNNELS),
    ("ip6tnl", TUNNELS),
    ("ipip6", TUNNELS),
    ("ipoib", "only networks of Ethernet and IP are simulated"),
    ("ipvlan", "a veth pair and a bridge or routes do the same"),
    ("ipvtap", "a veth pair and a bridge or routes do the same"),
    ("macsec", TUNNELS),
    ("macvtap", "a veth pair and a bridge do the same"),
    ("netdevsim", "a dummy has qdiscs too"),
    ("netkit", "a veth pair does the same"),
    ("nlmon", "leave it out"),
    ("team", "a bond is made of the same ports"),
    ("vcan", "only networks of Ethernet and IP are simulated"),
    ("vti", TUNNELS),
    ("vti6", TUNNELS),
    ("vxcan", "only networks of Ethernet and IP are simulated"),
    ("xfrm", TUNNELS),
];
const TUNNELS: &str = "of tunnels ipip, sit, gre, gretap, vxlan and wireguard carry packets";

impl Host {
    pub(super) fn link_request(&mut self, r: &LinkRequest, now: Time) -> Done {
        if r.dev.is_none() {
            return self.group_request(r, now);
        }
        let done = self.link_request_of(r, now);
        self.macvlans_changed(now);
        done
    }
    fn link_request_of(&mut self, r: &LinkRequest, now: Time) -> Done {
        // ip looks for the master while it reads the words.
        self.master_of(r)?;
        let exists = |host: &Host| {
            r.dev
                .as_deref()
                .and_then(|d| host.ifindex(d))
                .or_else(|| r.index.filter(|&i| host.devices.get(i).is_some()))
        };
        match r.verb {
            LinkVerb::Add if r.kind.is_some() => self.link_add(r, now),
            LinkVerb::Replace => match exists(self) {
                Some(_) => Err(errno(KernelError::EOPNOTSUPP)),
                None => self.link_add(r, now),
            },
            LinkVerb::Del => {
                let ifindex = self.dev(r.dev.as_deref().unwrap_or_default())?;
                if !self.has_link_ops(ifindex) {
                    return Err(errno(KernelError::EOPNOTSUPP));
                }
                self.delete_link(ifindex, now);
                Ok(String::new())
            }
            _ => {
                let ifindex = self.dev(r.dev.as_deref().unwrap_or_default())?;
                self.link_set(ifindex, r, now)
            }
        }
    }
    /// Whether commands make and delete devices of this kind.
    fn has_link_ops(&self, ifindex: u32) -> bool {
        let device = &self.devices[ifindex];
        !device.loopback && !device.class.kind.is_empty()
    }

    fn group_request(&mut self, r: &LinkRequest, now: Time) -> Done {
        let group = match r.group {
            Some(group) => group,
            // `ip link add type ifb`: the kernel names it.
            None => return self.link_add(r, now),
        };
        let all: Vec<u32> = self.devices.iter().filter(|d| d.group == group).map(|d| d.ifindex).collect();
        if r.verb == LinkVerb::Del && group == 0 {
            return Err(errno(EPERM));
        }
        if all.is_empty() {
            return Err(errno(KernelError::ENODEV));
        }
        if r.verb == LinkVerb::Del {
            if all.iter().any(|&i| !self.has_link_ops(i)) {
                return Err(errno(KernelError::EOPNOTSUPP));
            }
            for ifindex in all {
                self.delete_link(ifindex, now);
            }
            return Ok(String::new());
        }
        let each = LinkRequest { group: None, ..r.clone() };
        for ifindex in all {
            self.link_set(ifindex, &each, now)?;
        }
        Ok(String::new())
    }

    /// The namespace a request names, `None` for this one.
    fn space_wanted(&self, r: &LinkRequest) -> Result<Option<u32>, Failure> {
        let Some(name) = &r.netns else { return Ok(None) };
        match (self.space_of(name), name.parse::<u32>()) {
            (Some(space), _) => Ok(Some(space)),
            // Process 1 is in the first one.
            (None, Ok(1)) => Ok(Some(0)),
            (None, Ok(_)) => Err(errno(KernelError::ESRCH)),
            _ => Err(says(255, format!("Error: argument \"{name}\" is wrong: Invalid \"netns\" value\n"))),
        }
    }

    fn link_add(&mut self, r: &LinkRequest, now: Time) -> Done {
        let kind = r.kind.clone().unwrap_or_default();
        let space = self.space_wanted(r)?;
        let lower = r.link.as_deref().map(|l| self.dev(l)).transpose()?;
        let peer_request = match &r.data {
            LinkData::Peer(peer) => (**peer).clone(),
            _ => LinkRequest::default(),
        };
        let peer_space = self.space_wanted(&peer_request)?.or(space);
        for name in [&r.name, &peer_request.name].into_iter().flatten() {
            if name.len() > ifname::MAX {
                return Err(self.no(ERANGE, "Attribute failed policy validation"));
            }
        }
        self.check_settings(r)?;
        let master = self.master_of(r)?;
        let taken = |host: &Host, r: &LinkRequest| {
            r.name.as_deref().is_some_and(|n| host.ifindex(n).is_some())
                || r.index.is_some_and(|i| host.devices.get(i).is_some())
        };
        if taken(self, r) {
            return Err(errno(KernelError::EEXIST));
        }
        if kind == "tun" {
            let said = "tun/tap creation via rtnetlink is not supported";
            return Err(Failure {
                help: "ip tuntap add dev NAME mode tun".to_owned(),
                ..self.no(KernelError::EOPNOTSUPP, said)
            });
        }
        if class(&kind).is_none()
            && let Some((kind, instead)) = ELSEWHERE.iter().find(|e| e.0 == kind)
        {
            let said = format!("ip link add … type {kind}: not simulated");
            return Err(Failure { help: (*instead).to_owned(), ..says(2, said) });
        }
        // Since Linux 4.3, 3.7 and 5.6.
        let too_new =
            self.kernel == Kernel::V2_6_35 && matches!(kind.as_str(), "vrf" | "vxlan" | "wireguard");
        if class(&kind).is_none() || too_new || matches!(kind.as_str(), "" | "loopback" | "tap" | "ppp") {
            return Err(self.no(KernelError::EOPNOTSUPP, "Unknown device type"));
        }
        if let Some(address) = &r.address {
            mac_of(address)?;
        }
        if r.index.is_some_and(|i| i > INDEX_MAX) {
            return Err(errno(ERANGE));
        }
        self.check_kind(r, &kind, lower)?;
        let in_space = |host: &mut Host| host.check_tunnel(&kind, &r.data);
        self.in_space(space.unwrap_or(self.space), in_space).unwrap_or(Ok(()))?;
        if kind == "veth" {
            // The peer comes first.
            let in_peer = |host: &mut Host| {
                if taken(host, &peer_request) {
                    return Err(errno(KernelError::EEXIST));
                }
                if peer_request.name.is_some() && peer_request.name == r.name && peer_space == space {
                    return Err(errno(KernelError::EEXIST));
                }
                host.make(&peer_request, "veth", None, now)
            };
            let home = self.space;
            let peer_at = peer_space.unwrap_or(home);
            let peer = self.in_space(peer_at, in_peer).unwrap_or(Err(errno(KernelError::EINVAL)))?;
            let own_at = space.unwrap_or(home);
            let own = self
                .in_space(own_at, |host| host.make(r, "veth", None, now))
                .unwrap_or(Err(errno(KernelError::EINVAL)))?;
            let here = Lower { space: own_at, ifindex: own };
            let there = Lower { space: peer_at, ifindex: peer };
            self.in_space(own_at, |host| host.tie(own, there));
            self.in_space(peer_at, |host| host.tie(peer, here));
            self.in_space(own_at, |host| host.veth_follows(own, now));
        } else {
            let home = self.space;
            let at = space.unwrap_or(home);
            let lower = match lower {
                Some(below) if kind == "macvlan" => {
                    Some(self.check_macvlan(below, &r.data, r.mtu).map_err(|e| ip::refused(&e))?)
                }
                lower => lower.map(|ifindex| Lower { space: home, ifindex }),
            };
            let below = lower.filter(|l| l.space == home).and_then(|l| self.devices.get(l.ifindex));
            let inherit = below.map(|d| (d.mac, d.mtu, d.flags));
            let made = self
                .in_space(at, |host| {
                    let ifindex = host.make(r, &kind, lower, now)?;
                    if let (Some((mac, mtu, flags)), "vlan") = (inherit, kind.as_str()) {
                        let device = &mut host.devices[ifindex];
                        if r.address.is_none() {
                            device.mac = mac;
                        }
                        device.flags = flags & !(PROMISC | ALLMULTI);
                        if r.mtu.is_none() {
                            device.mtu = mtu;
                        }
                    }
                    // Too small for IPv6.
                    if host.devices[ifindex].mtu < crate::six::MIN_MTU {
                        host.groups_end_six(ifindex);
                    }
                    Ok(ifindex)
                })
                .unwrap_or(Err(errno(KernelError::EINVAL)))?;
            if let Some(master) = master {
                self.set_master(made, master, now);
            }
        }
        Ok(String::new())
    }

    fn tie(&mut self, ifindex: u32, lower: Lower) {
        if let Some(device) = self.devices.get_mut(ifindex) {
            device.lower = Some(lower);
        }
        if lower.space != self.space {
            self.space_number(lower.space);
        }
    }

    /// What the kind's own checks say.
    fn check_kind(&self, r: &LinkRequest, kind: &str, lower: Option<u32>) -> Result<(), Failure> {
        match (kind, &r.data) {
            ("vlan", LinkData::Vlan { id, protocol, .. }) => {
                if !matches!(protocol, 0x8100 | 0x88a8) {
                    return Err(self.no(EPROTONOSUPPORT, "8021q: Invalid VLAN protocol"));
                }
                if id.is_some_and(|id| id >= 4095) {
                    return Err(self.no(ERANGE, "8021q: Invalid VLAN id"));
                }
                let Some(id) = id else {
                    return Err(self.no(KernelError::EINVAL, "8021q: VLAN id not specified"));
                };
                let Some(lower) = lower else {
                    return Err(self.no(KernelError::EINVAL, "8021q: link not specified"));
                };
                let here = Some(Lower { space: self.space, ifindex: lower });
                let same = |d: &LinkData| matches!(d, LinkData::Vlan { id: Some(i), protocol: p, .. } if i == id && p == protocol);
                if self.devices.iter().any(|d| d.lower == here && same(&d.data)) {
                    return Err(self.no(KernelError::EEXIST, "8021q: VLAN device already exists"));
                }
                if r.mtu.is_some_and(|mtu| mtu > i64::from(self.devices[lower].mtu)) {
                    return Err(errno(ERANGE));
                }
                Ok(())
            }
            ("vlan", _) => Err(self.no(KernelError::EINVAL, "8021q: VLAN properties not specified")),
            ("vrf", LinkData::Vrf(Some(0))) => Err(self.no(KernelError::EINVAL, "Invalid VRF table id")),
            ("vrf", LinkData::Vrf(Some(_))) => Ok(()),
            ("vrf", _) => Err(self.no(KernelError::EINVAL, "VRF table id is missing")),
            ("macvlan", _) if lower.is_none() => Err(errno(KernelError::EINVAL)),
            _ => Ok(()),
        }
    }
    fn check_settings(&self, r: &LinkRequest) -> Result<(), Failure> {
        //= linux v6.12.117 rtnetlink.c ifla_policy: IFLA_TXQLEN of S16_MAX at most.
        let longest = if self.kernel == Kernel::V2_6_35 { i64::MAX } else { i64::from(i16::MAX) };
        if r.txqueuelen.is_some_and(|n| !(0..=longest).contains(&n)) {
            return Err(self.no(ERANGE, "integer out of range"));
        }
        if let LinkData::Peer(peer) = &r.data {
            self.check_settings(peer)?;
        }
        //= linux v6.12 net/core/rtnetlink.c do_setlink: not beyond what the card takes
        let most = r
            .dev
            .as_deref()
            .and_then(|d| self.ifindex(d))
            .map_or(u32::MAX, |i| self.tso_max_size(&self.devices[i]));
        if r.gso_max_size.is_some_and(|n| n > most) || r.gso_max_segs.is_some_and(|n| n > 65_535) {
            return Err(errno(KernelError::EINVAL));
        }
        for (count, what) in [(r.queues.0, "transmit"), (r.queues.1, "receive")] {
            if r.kind.is_some() && count.is_some_and(|n| !(1..=4096).contains(&n)) {
                return Err(self.no(KernelError::EINVAL, &format!("Invalid number of {what} queues")));
            }
        }
        Ok(())
    }
    /// The master a request names: `Some(None)` is none.
    fn master_of(&self, r: &LinkRequest) -> Result<Option<Option<u32>>, Failure> {
        match r.master.as_deref() {
            None => Ok(None),
            Some("") => Ok(Some(None)),
            Some(name) => match self.ifindex(name) {
                Some(index) if r.master_is_vrf && self.devices[index].vrf_table().is_none() => {
                    Err(says(255, format!("Error: argument \"{name}\" is wrong: Not a valid VRF name\n")))
                }
                Some(index) => Ok(Some(Some(index))),
                None if r.master_is_vrf => {
                    Err(says(255, format!("Error: argument \"{name}\" is wrong: Not a valid VRF name\n")))
                }
                None => {
                    Err(says(255, format!("Error: argument \"{name}\" is wrong: Device does not exist\n")))
                }
            },
        }
    }

    /// `rtnl_create_link` and `register_netdevice`.
    fn make(&mut self, r: &LinkRequest, kind: &str, lower: Option<Lower>, now: Time) -> Result<u32, Failure> {
        let name = match &r.name {
            Some(name) => self.name_given(name)?,
            None => self.free_name(kind),
        };
        let mtu = r.mtu.map(|mtu| u32::try_from(mtu).unwrap_or(u32::MAX));
        if let (Some(mtu), Some(class)) = (mtu, class(kind)) {
            self.check_mtu(mtu, class.min_mtu, class.max_mtu)?;
        }
        let ifindex = self.new_device(&name, kind, r.index);
        let kernel = self.kernel;
        let device = &mut self.devices[ifindex];
        device.lower = lower;
        device.data = match &r.data {
            LinkData::Peer(_) => LinkData::None,
            LinkData::None if kind == "macvlan" => LinkData::Macvlan("vepa".to_owned()),
            other => other.clone(),
        };
        if let Some(mac) = r.address.as_deref().map(mac_of).transpose()? {
            device.mac = mac;
            if let Some(b) = device.bridge.as_deref_mut() {
                b.own_mac = true;
            }
            if let Some(b) = device.bond.as_deref_mut() {
                b.own_mac = true;
            }
        }
        let vlan = lower.filter(|l| l.space == self.space).and_then(|l| Vlan::new(l.ifindex, &device.data));
        device.mtu = mtu.unwrap_or(device.mtu);
        if let Some(qlen) = r.txqueuelen.and_then(|n| u32::try_from(n).ok()) {
            device.tx_queue_len = qlen;
        }
        device.gso.take(r);
        if let Some(n) = r.queues.0.and_then(|n| u32::try_from(n).ok()) {
            device.queues.0 = n;
        }
        if let Some(n) = r.queues.1.and_then(|n| u32::try_from(n).ok()) {
            device.queues.1 = n;
        }
        device.group = r.group.unwrap_or(0);
        device.flags = device.flags & !(r.change & !UP) | r.flags & r.change & !UP;
        self.become_tunnel(ifindex, &r.data, mtu.is_some(), true);
        let Host { devices, drops, acts, .. } = self;
        devices[ifindex].refresh_tree(kernel, now, drops, acts);
        if let Some(vlan) = vlan {
            let below = vlan.lower;
            self.devices.tag(ifindex, vlan);
            if self.devices.vlans_on(below).count() == 1 {
                self.groups_of_vlans(below, true);
            }
        }
        if let Some(mode) = r.addr_gen_mode.and_then(GenMode::of) {
            self.set_addr_gen_mode(ifindex, mode);
        }
        if let Some(b) = self.devices[ifindex].bridge.as_deref_mut() {
            b.own_mtu = mtu.is_some() && kernel != Kernel::V2_6_35;
            self.bridge_made(ifindex, now);
        }
        if kind == "vrf" {
            self.vrf_made(ifindex);
        }
        // rtnl_fill_link_netnsid
        if let Some(away) = lower.filter(|l| l.space != self.space) {
            self.space_number(away.space);
        }
        if kind == "macvlan" {
            let below = lower.and_then(|l| self.space_ref(l.space)?.devices.get(l.ifindex));
            let inherited = below.map(|d| (d.mac, d.mtu));
            self.macvlan_made(ifindex, inherited, mtu.is_some());
            self.macvlans_changed(now);
        }
        if let (LinkData::Words(words), "bridge") = (&r.data, kind)
            && let Err(e) = self.set_bridge(ifindex, words, now)
        {
            self.delete_link(ifindex, now);
            return Err(e);
        }
        if let (LinkData::Words(words), "bond") = (&r.data, kind)
            && let Err(e) = self.set_bond(ifindex, words, now)
        {
            self.delete_link(ifindex, now);
            return Err(e);
        }
        if r.change & r.flags & UP != 0
            && let Err(e) = self.set_link_up(ifindex, true, now)
        {
            self.delete_link(ifindex, now);
            return Err(ip::refused(&e));
        }
        Ok(ifindex)
    }

    fn check_mtu(&self, mtu: u32, min: u32, max: u32) -> Result<(), Failure> {
        if mtu < min {
            return Err(self.no(KernelError::EINVAL, "mtu less than device minimum"));
        }
        if max > 0 && mtu > max {
            return Err(self.no(KernelError::EINVAL, "mtu greater than device maximum"));
        }
        Ok(())
    }

    /// `do_setlink`.
    fn link_set(&mut self, ifindex: u32, r: &LinkRequest, now: Time) -> Done {
        let master = self.master_of(r)?;
        if r.name.as_deref().is_some_and(|n| n.len() > ifname::MAX) {
            return Err(self.no(ERANGE, "Attribute failed policy validation"));
        }
        if let Some(address) = r.address.as_deref().filter(|a| a.len() != 6) {
            let text = format!("Invalid address length {} - must be 6 bytes", address.len());
            return Err(says(1, text));
        }
        self.check_settings(r)?;
        if let Some(kind) = r.kind.as_deref().filter(|k| !k.ends_with("_slave"))
            && (kind != self.devices[ifindex].class.kind || !matches!(r.data, LinkData::None))
            && !matches!(
                kind,
                "bridge" | "vlan" | "bond" | "vxlan" | "macvlan" | "ipip" | "sit" | "gre" | "gretap"
            )
        {
            return Err(errno(KernelError::EOPNOTSUPP));
        }
        if let Some(space) = self.space_wanted(r)? {
            let home = self.space;
            self.move_link(ifindex, space, now).map_err(|e| ip::refused(&e))?;
            if space != home {
                return Ok(String::new());
            }
        }
        let loopback = self.devices[ifindex].loopback;
        if let Some(address) = &r.address {
            let mac = mac_of(address)?;
            if loopback {
                return Err(errno(EADDRNOTAVAIL));
            }
            if self.macvlan_addr_busy(ifindex, mac) {
                return Err(errno(EADDRINUSE));
            }
            let device = &mut self.devices[ifindex];
            device.mac = mac;
            if let Some(b) = device.bridge.as_deref_mut() {
                b.own_mac = true;
            }
            if let Some(b) = device.bond.as_deref_mut() {
                b.own_mac = true;
                self.bond_tells_slaves(ifindex, now);
            }
            //= linux v6.12 net/ipv4/arp.c arp_netdev_event, net/core/neighbour.c neigh_changeaddr: whom one knows there is forgotten.
            self.neigh_flush(ifindex);
            self.arp_notify(ifindex, now);
            self.bridge_addressed(ifindex, now);
            self.macvlan_addressed(ifindex, now);
        }
        if let Some(mtu) = r.mtu {
            let mtu = u32::try_from(mtu).unwrap_or(u32::MAX);
            let (least, most) = self.devices[ifindex].mtu_bounds();
            self.check_mtu(mtu, least, most)?;
            self.set_mtu(ifindex, mtu, now).map_err(|e| ip::refused(&e))?;
            if let Some(b) = self.devices[ifindex].bridge.as_deref_mut() {
                b.own_mtu = self.kernel != Kernel::V2_6_35;
            }
        }
        if let Some(group) = r.group {
            self.devices[ifindex].group = group;
            self.rebind_rules();
        }
        if let Some(name) = &r.name {
            self.rename(ifindex, name)?;
        }
        if let Some(alias) = &r.alias {
            self.devices[ifindex].alias.clone_from(alias);
        }
        if let Some(master) = master {
            self.enslave(ifindex, master, now)?;
        }
        let flags = r.change & !UP;
        if flags != 0 {
            let device = &mut self.devices[ifindex];
            let before = device.flags;
            device.flags = before & !flags | r.flags & flags;
            if (before ^ device.flags) & NOARP != 0 {
                //= linux v6.12 net/ipv4/arp.c arp_netdev_event: whom one knows there is forgotten.
                let there: Vec<u32> = self.neigh.of_device(ifindex).collect();
                there.into_iter().for_each(|at| self.neigh_delete(at));
            }
        }
        if r.change & UP != 0 {
            quiet(self.set_link_up(ifindex, r.flags & UP != 0, now))?;
        }
        if let Some(carrier) = r.carrier {
            if !matches!(self.devices[ifindex].class.kind, "dummy" | "bridge" | "macvlan") {
                return Err(errno(KernelError::EOPNOTSUPP));
            }
            self.devices[ifindex].carrier = Some(carrier);
            self.bridge_follows(ifindex, now);
        }
        if let Some(mode) = r.addr_gen_mode.and_then(GenMode::of) {
            self.set_addr_gen_mode(ifindex, mode);
        }
        match &r.data {
            LinkData::Tunnel(words) if r.kind.as_deref() == Some(self.devices[ifindex].class.kind) => {
                self.change_tunnel(ifindex, words, r.mtu.is_some(), now)?;
            }
            LinkData::Tunnel(_) => return Err(errno(KernelError::EOPNOTSUPP)),
            LinkData::Vlan { .. } => {
                let device = &mut self.devices[ifindex];
                crate::vlan::change(&mut device.data, &r.data);
                let lower = device.vlan.as_ref().map(|v| v.lower);
                device.vlan = lower.and_then(|lower| Vlan::new(lower, &device.data)).map(Box::new);
            }
            LinkData::Macvlan(mode) if self.devices[ifindex].macvlan.is_some() => {
                self.change_macvlan(ifindex, mode).map_err(|e| ip::refused(&e))?;
            }
            LinkData::Vxlan(_) => {
                let text = "ip link set … type vxlan: what a vxlan was made with stays here; delete it and add it anew";
                return Err(says(255, text));
            }
            _ => {}
        }
        if let LinkData::Words(words) = &r.data {
            match r.kind.as_deref() {
                Some("bridge") => self.set_bridge(ifindex, words, now)?,
                Some("bond") => self.set_bond(ifindex, words, now)?,
                Some("bridge_slave") => {
                    self.set_bridge_port(ifindex, words, now)?;
                    self.port_told(ifindex, now);
                }
                _ => {}
            }
        }
        self.devices[ifindex].gso.take(r);
        if let Some(qlen) = r.txqueuelen.and_then(|n| u32::try_from(n).ok()) {
            self.set_tx_queue_len(ifindex, qlen, now).map_err(|e| ip::refused(&e))?;
        }
        Ok(String::new())
    }

    /// `dev_prep_valid_name`: the name itself, or for `eth%d` the first that is free.
    fn name_given(&self, name: &str) -> Result<String, Failure> {
        match ifname::check(name) {
            Ok(()) => Ok(name.to_owned()),
            Err(ifname::Fault::Percent) => {
                let (before, after) = ifname::pattern(name).ok_or(errno(KernelError::EINVAL))?;
                let made = |n: u32| format!("{before}{n}{after}");
                let free = (0..).map(made).find(|name| self.ifindex(name).is_none()).unwrap_or_default();
                if free.len() > ifname::MAX { Err(errno(KernelError::EINVAL)) } else { Ok(free) }
            }
            Err(_) => Err(errno(KernelError::EINVAL)),
        }
    }

    fn rename(&mut self, ifindex: u32, name: &str) -> Result<(), Failure> {
        let name = match self.devices[ifindex].name == name {
            true => name.to_owned(),
            false => self.name_given(name)?,
        };
        let name = name.as_str();
        if self.ifindex(name).is_some_and(|other| other != ifindex) {
            return Err(errno(KernelError::EEXIST));
        }
        if self.kernel == Kernel::V2_6_35 && self.devices[ifindex].up {
            return Err(errno(EBUSY));
        }
        let old = self.devices.rename(ifindex, name);
        let device = &mut self.devices[ifindex];
        for address in device.addresses.iter_mut() {
            // devinet's inetdev_changename keeps what stands behind a colon.
            if let Some(rest) =
                address.label.strip_prefix(&old).filter(|r| r.is_empty() || r.starts_with(':'))
            {
                address.label = format!("{name}{rest}");
            }
        }
        self.conf_moves(&old, Some(name));
        self.acts.device_renamed(&old, name);
        self.rebind_rules();
        Ok(())
    }

    fn enslave(&mut self, ifindex: u32, master: Option<u32>, now: Time) -> Result<(), Failure> {
        let Some(to) = master else {
            self.set_master(ifindex, None, now);
            return Ok(());
        };
        if self.devices[ifindex].master == Some(to) {
            return Ok(());
        }
        let bridge = match self.devices[to].class.kind {
            "bridge" => true,
            "vrf" if self.devices[ifindex].loopback => {
                return Err(self.no(KernelError::EOPNOTSUPP, "Can not enslave loopback device to a VRF"));
            }
            "vrf" if self.devices[ifindex].class.kind == "vrf" => {
                return Err(self.no(KernelError::EINVAL, "Can not enslave an L3 master device to a VRF"));
            }
            "bond" => {
                self.check_slave(to, ifindex)?;
                false
            }
            "vrf" => false,
            _ => return Err(errno(KernelError::EOPNOTSUPP)),
        };
        let device = &self.devices[ifindex];
        if device.loopback || ifindex == to {
            return Err(errno(KernelError::EINVAL));
        }
        if device.macvlans.is_some() && self.devices[to].class.kind != "vrf" {
            return Err(errno(EBUSY));
        }
        if bridge && device.class.kind == "bridge" {
            return Err(self.no(ELOOP, "Can not enslave a bridge to a bridge"));
        }
        self.set_master(ifindex, Some(to), now);
        Ok(())
    }

    pub(super) fn alt_names(&mut self, dev: &str, add: bool, names: Vec<String>) -> Done {
        let ifindex = self.dev(dev)?;
        for name in names {
            if add {
                if self.ifindex(&name).is_some() {
                    return Err(errno(KernelError::EEXIST));
                }
                self.devices.add_altname(ifindex, name);
            } else if !self.devices.take_altname(ifindex, &name) {
                return Err(errno(KernelError::EINVAL));
            }
        }
        Ok(String::new())
    }
}

/// An address a device may have.
fn mac_of(bytes: &[u8]) -> Result<[u8; 6], Failure> {
    let Ok(mac) = <[u8; 6]>::try_from(bytes) else { return Err(errno(KernelError::EINVAL)) };
    if mac == [0; 6] || mac == MAC_BROADCAST || mac[0] & 1 == 1 {
        return Err(errno(EADDRNOTAVAIL));
    }
    Ok(mac)
}
