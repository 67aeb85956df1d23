//! IPv6 addresses of devices, with the routes and groups that follow from them.
//!
//! Follows: linux v6.12 `net/ipv6/addrconf.c` `ipv6_add_addr`, `ipv6_link_dev_addr`, `addrconf_prefix_route`, `addrconf_join_anycast`,
//! `dev_forward_change`, `addrconf_notify`, `addrconf_ifdown`, `init_loopback`, `addrconf_addr_gen`.

use super::fib::Route6;
use super::router::Asking;
use super::{GenMode, MIN_MTU, Ra, is_link_local, link_local, mask, network};
use crate::Host;
use crate::lifetime::Lifetime;
use crate::route::LOCAL;
use penstock_lang::ip::{AUTOJOIN, Net};
use penstock_model::{KernelError, Time};
use std::net::{IpAddr, Ipv6Addr};

/// An IPv6 address on a device.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Address6 {
    /// Address.
    pub addr: Ipv6Addr,
    /// Prefix length.
    pub len: u8,
    /// `peer`.
    pub peer: Option<Ipv6Addr>,
    /// How long it is valid and preferred.
    pub lifetime: Lifetime,
    /// It was made of a prefix that a router told of, and brings no route (`IFA_F_MANAGETEMPADDR`).
    pub(crate) by_ra: bool,
    /// It ends as the device's token does.
    pub(crate) tokenized: bool,
    /// `metric` of the routes it brings; 0 is the 256 of all that the kernel makes.
    pub metric: u32,
    /// `nodad`, `home`, `mngtmpaddr`, `autojoin` as they were said.
    pub flags: u32,
    /// `noprefixroute`.
    pub no_prefix_route: bool,
}

impl Address6 {
    /// One that stays.
    pub fn new(addr: Ipv6Addr, len: u8) -> Address6 {
        Address6 {
            addr,
            len,
            peer: None,
            lifetime: Lifetime::FOREVER,
            metric: 0,
            flags: 0,
            no_prefix_route: false,
            by_ra: false,
            tokenized: false,
        }
    }
    /// `ipv6_addr_scope` as `ip` shows it: 0 global, 253 link, 254 host.
    pub fn scope(&self) -> u8 {
        if self.addr.is_loopback() {
            254
        } else if is_link_local(self.addr) {
            253
        } else if self.addr.segments()[0] & 0xffc0 == 0xfec0 || self.addr.segments()[0] & 0xff0f == 0xff05 {
            200
        } else {
            0
        }
    }
    /// Its network, to which it brings a route.
    pub fn network(&self) -> Net {
        network(self.addr, self.len)
    }
    /// A route to `dst` as it brings them.
    fn route(&self, dst: Net, ifindex: u32) -> Route6 {
        let plain = Route6::new(dst, ifindex);
        let metric = if self.metric == 0 { plain.metric } else { self.metric };
        Route6 { metric, ..plain }
    }
    /// Whether no new connection is to use it (`IFA_F_DEPRECATED`).
    pub fn is_deprecated(&self) -> bool {
        self.lifetime.deprecated
    }
    /// The subnet's routers' address, where there is one (RFC 6164: not on links between two).
    fn anycast(&self) -> Option<Ipv6Addr> {
        let addr = Ipv6Addr::from(u128::from(self.addr) & mask(self.len));
        (self.len < 127 && !addr.is_unspecified()).then_some(addr)
    }
}

fn one(addr: Ipv6Addr) -> Net {
    Net { addr: IpAddr::V6(addr), len: 128 }
}

impl Host {
    /// Puts an IPv6 address on a device, with the routes that follow from it: `ip -6 addr add ADDR/LEN dev …`.
    ///
    /// # Errors
    /// ENODEV, EEXIST; EACCES where IPv6 is off on the device, EINVAL where it is too small for that.
    pub fn add_address6(&mut self, ifindex: u32, addr: Ipv6Addr, len: u8) -> Result<(), KernelError> {
        self.insert_address6(ifindex, Address6::new(addr, len))
    }
    /// The same of an address with all that belongs to it.
    ///
    /// # Errors
    /// ENODEV, EEXIST; EACCES where IPv6 is off on the device, EINVAL where it is too small for that.
    pub(crate) fn insert_address6(&mut self, ifindex: u32, new: Address6) -> Result<(), KernelError> {
        let Some(device) = self.devices.get_mut(ifindex) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        if device.mtu < MIN_MTU {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        if device.six.conf.disabled {
            return Err(KernelError::new(13, "ipv6: IPv6 is disabled on this device"));
        }
        if device.addresses6.iter().any(|a| a.addr == new.addr) {
            return Err(KernelError::new(KernelError::EEXIST, "ipv6: address already assigned"));
        }
        if new.addr.is_multicast() && new.flags & AUTOJOIN == 0 {
            let why = "ipv6: Cannot assign multicast address without \"IFA_F_MCAUTOJOIN\" flag";
            return Err(KernelError::new(crate::link::EADDRNOTAVAIL, why));
        }
        // Those of wider scope stand first, the newest of a scope before the others.
        let rank = |a: &Address6| match a.scope() {
            0 => 14,
            200 => 5,
            253 => 2,
            _ => 1,
        };
        if !std::mem::replace(&mut self.six.on, true) {
            let all: Vec<u32> = self.devices.iter().map(|d| d.ifindex).collect();
            all.into_iter().for_each(|ifindex| self.six_up(ifindex));
        }
        let device = &mut self.devices[ifindex];
        let at = device.addresses6.iter().take_while(|a| rank(a) > rank(&new)).count();
        device.addresses6.insert(at, new.clone());
        if new.flags & AUTOJOIN != 0 {
            self.join6(ifindex, new.addr);
        }
        self.join_solicited(ifindex, new.addr);
        let device = &self.devices[ifindex];
        if !device.up
            && device.six.conf.forwarding
            && let Some(anycast) = new.anycast()
        {
            self.join_solicited(ifindex, anycast);
        }
        self.address6_works(ifindex, &new);
        Ok(())
    }

    /// The routes and groups of an address of a device that is up.
    fn address6_works(&mut self, ifindex: u32, a: &Address6) {
        let device = &mut self.devices[ifindex];
        if !device.up {
            return;
        }
        device.six.join(a.addr);
        let first = !device.loopback;
        let anycast = if device.six.conf.forwarding && first { a.anycast() } else { None };
        let local = Route6 { table: LOCAL, kind: 2, metric: 0, ..Route6::new(one(a.addr), ifindex) };
        self.six.fib.insert(local);
        if first {
            let groups = network(Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8);
            self.six.fib.insert(Route6 { table: LOCAL, kind: 5, ..Route6::new(groups, ifindex) });
            if !a.no_prefix_route && !a.by_ra {
                let expires = (!a.lifetime.is_permanent()).then(|| a.lifetime.end(self.hz));
                self.six.fib.insert(Route6 { expires, ..a.route(a.network(), ifindex) });
            }
            if let Some(peer) = a.peer {
                self.six.fib.insert(a.route(one(peer), ifindex));
            }
        }
        if let Some(addr) = anycast {
            self.join_anycast(ifindex, addr);
        }
    }
    /// `inet6_addr_modify`: how long an address that is there is valid and preferred, and the route of its network with it.
    pub(crate) fn modify_address6(&mut self, ifindex: u32, new: &Address6, now: Time) {
        let hz = self.hz;
        let (lifetime, no_prefix_route) = (new.lifetime, new.no_prefix_route);
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        let Some(a) = device.addresses6.iter_mut().find(|a| a.addr == new.addr) else { return };
        let had_route = a.lifetime.is_permanent() && !a.no_prefix_route;
        let before = a.clone();
        (a.lifetime, a.no_prefix_route, a.by_ra) = (lifetime, no_prefix_route, false);
        a.flags = before.flags & AUTOJOIN | new.flags;
        // Without one it keeps what it has.
        if new.metric != 0 {
            a.metric = new.metric;
        }
        if new.peer.is_some() {
            a.peer = new.peer;
        }
        let modified = a.clone();
        if device.up && !device.loopback {
            let expires = (!lifetime.is_permanent()).then(|| lifetime.end(hz));
            let route = Route6 { expires, ..modified.route(modified.network(), ifindex) };
            if modified.metric != before.metric && !no_prefix_route {
                //= linux v6.12 net/ipv6/addrconf.c modify_prefix_route: the old one goes with its metric
                let of_it = |r: &Route6| r.dev == ifindex && r.via.is_none();
                for dst in std::iter::once(before.network()).chain(before.peer.map(one)) {
                    self.six.fib.remove_like(&before.route(dst, ifindex), of_it);
                    self.six.fib.insert(Route6 { expires, ..modified.route(dst, ifindex) });
                }
            }
            let is = |r: &Route6| r.dev == ifindex && r.via.is_none();
            if no_prefix_route {
                if had_route {
                    self.clean_prefix_route(ifindex, &modified);
                }
            } else {
                let set = had_route && self.six.fib.set_expiry(&route, is, expires);
                if !set {
                    self.six.fib.insert(route);
                }
            }
        }
        self.lives(lifetime, true, now);
    }
    /// `check_cleanup_prefix_route`, `cleanup_prefix_route`: what becomes of the route of a network that an address does not keep any more. One
    /// that stays keeps it, as does one without a part in it; others leave it for as long as they are valid.
    fn clean_prefix_route(&mut self, ifindex: u32, gone: &Address6) {
        let device = &self.devices[ifindex];
        let own = network(gone.addr, gone.len);
        let mut others =
            device.addresses6.iter().filter(|a| a.addr != gone.addr && network(a.addr, a.len) == own);
        if others.clone().any(|a| a.lifetime.is_permanent() || a.no_prefix_route) {
            return;
        }
        let until = others.by_ref().map(|a| a.lifetime.end(self.hz)).max();
        let route = gone.route(gone.network(), ifindex);
        let is = |r: &Route6| r.dev == ifindex && r.via.is_none();
        match until {
            Some(until) => {
                self.six.fib.set_expiry(&route, |r| is(r) && r.expires.is_none(), Some(until));
            }
            None => self.six.fib.remove_like(&route, is),
        }
    }
    fn join_anycast(&mut self, ifindex: u32, addr: Ipv6Addr) {
        let device = &mut self.devices[ifindex];
        if device.six.anycast.insert(addr) {
            device.six.join(addr);
            let route = Route6 { table: LOCAL, kind: 4, metric: 0, ..Route6::new(one(addr), ifindex) };
            self.six.fib.insert(route);
            self.join_solicited(ifindex, addr);
        }
    }
    fn leave_anycast(&mut self, ifindex: u32, addr: Ipv6Addr) {
        let device = &mut self.devices[ifindex];
        if device.six.anycast.remove(&addr) {
            device.six.leave(addr);
            let like = Route6 { table: LOCAL, kind: 4, metric: 0, ..Route6::new(one(addr), ifindex) };
            self.six.fib.remove_like(&like, |r| r.kind == 4 && r.dev == ifindex);
            self.leave_solicited(ifindex, addr);
        }
    }

    /// Takes an IPv6 address from a device.
    ///
    /// # Errors
    /// ENODEV; ENXIO (6) where the device is too small for IPv6; EADDRNOTAVAIL (99) where it is not there.
    pub fn delete_address6(&mut self, ifindex: u32, addr: Ipv6Addr, len: u8) -> Result<(), KernelError> {
        let Some(device) = self.devices.get_mut(ifindex) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        if device.mtu < MIN_MTU {
            return Err(KernelError::new(6, "ipv6: IPv6 is disabled on this device"));
        }
        let Some(at) = device.addresses6.iter().position(|a| a.addr == addr && a.len == len) else {
            return Err(KernelError::new(crate::link::EADDRNOTAVAIL, "ipv6: address not found"));
        };
        let gone = device.addresses6.remove(at);
        self.leave_solicited(ifindex, addr);
        if gone.flags & AUTOJOIN != 0 {
            self.leave6(ifindex, addr);
        }
        self.netfilter.unmasquerade(ifindex, Some(addr.into()));
        let device = &mut self.devices[ifindex];
        if !device.up {
            return Ok(());
        }
        device.six.leave(addr);
        let keeps_anycast = device.addresses6.iter().any(|a| a.anycast() == gone.anycast());
        let local = Route6 { table: LOCAL, kind: 2, metric: 0, ..Route6::new(one(addr), ifindex) };
        self.six.fib.remove_like(&local, |r| r.kind == 2 && r.dev == ifindex);
        if gone.lifetime.is_permanent() && !gone.no_prefix_route {
            self.clean_prefix_route(ifindex, &gone);
        }
        if let Some(peer) = gone.peer {
            let of_it = |r: &Route6| r.dev == ifindex && r.via.is_none();
            self.six.fib.remove_like(&gone.route(one(peer), ifindex), of_it);
        }
        if let Some(anycast) = gone.anycast().filter(|_| !keeps_anycast) {
            self.leave_anycast(ifindex, anycast);
        }
        // What prefers the address as its source goes on without a preference.
        //= linux v6.12 net/ipv6/route.c rt6_remove_prefsrc
        if !self.is_local6(addr) {
            self.six.fib.forget_source(addr);
        }
        Ok(())
    }

    /// A device comes up: the routes of its addresses, `::1` on `lo`, a link-local address where it makes one.
    pub(crate) fn six_up(&mut self, ifindex: u32) {
        let device = &self.devices[ifindex];
        if device.six.conf.disabled || !device.up || device.mtu < MIN_MTU {
            return;
        }
        if self.carrier(&self.devices[ifindex]) {
            self.groups_six(ifindex, true);
        }
        for address in self.devices[ifindex].addresses6.clone() {
            self.join_solicited(ifindex, address.addr);
            self.address6_works(ifindex, &address);
        }
        self.six_makes_addresses(ifindex);
    }
    /// `addrconf_init_auto_addrs`.
    fn six_makes_addresses(&mut self, ifindex: u32) {
        let device = &self.devices[ifindex];
        if !self.six.on {
            return;
        }
        let made = match (device.loopback, device.six.conf.addr_gen_mode) {
            (true, _) => Address6::new(Ipv6Addr::LOCALHOST, 128),
            (false, GenMode::Eui64) if device.has_eui() => Address6::new(link_local(device.mac), 64),
            (false, _) => return,
        };
        // Where it is there already, it stays.
        let _ = self.insert_address6(ifindex, made);
    }
    /// A device goes down, or IPv6 on it: its addresses go, unless it is to keep them, and its routes.
    pub(crate) fn six_down(&mut self, ifindex: u32) {
        self.groups_six(ifindex, false);
        self.six.fib.remove(|r| r.dev == ifindex && r.by.is_none());
        //= linux v6.12 net/ipv6/route.c rt6_disable_ip: its neighbours go with them
        let neighbours: Vec<u32> =
            self.neigh.of_device(ifindex).filter(|&at| self.neigh.at(at).addr.is_ipv6()).collect();
        neighbours.into_iter().for_each(|at| self.neigh_delete(at));
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        let keeps = (self.six.keep_all || device.six.conf.keep_addr_on_down) && !device.six.conf.disabled;
        let netfilter = &mut self.netfilter;
        device.addresses6.retain(|a| {
            let stays = keeps && a.lifetime.is_permanent() && !is_link_local(a.addr) && !a.addr.is_loopback();
            if !stays {
                netfilter.unmasquerade(ifindex, Some(a.addr.into()));
            }
            stays
        });
        device.six.solicited.clear();
        device.six.anycast.clear();
        device.six.asking = Asking::default();
    }
    /// Says of a device which link-local address it makes. One that is up makes it now.
    pub fn set_addr_gen_mode(&mut self, ifindex: u32, mode: GenMode) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if std::mem::replace(&mut device.six.conf.addr_gen_mode, mode) != mode && device.up {
            self.six_makes_addresses(ifindex);
        }
    }
    /// Turns IPv6 on a device on or off (`disable_ipv6`).
    pub(crate) fn set_six_disabled(&mut self, ifindex: u32, disabled: bool, now: Time) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if std::mem::replace(&mut device.six.conf.disabled, disabled) == disabled {
            return;
        }
        match disabled {
            true => {
                self.groups_stay(ifindex);
                self.six_down(ifindex);
            }
            false => {
                self.six_up(ifindex);
                self.ask_routers(ifindex, now);
            }
        }
    }
    /// Makes a device a router's, or a host's (`dev_forward_change`).
    pub(crate) fn set_six_router(&mut self, ifindex: u32, router: bool) {
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        if std::mem::replace(&mut device.six.conf.forwarding, router) == router {
            return;
        }
        self.groups_of_routers(ifindex, router);
        let device = &self.devices[ifindex];
        if device.loopback {
            return;
        }
        let all: Vec<Ipv6Addr> = device.addresses6.iter().filter_map(Address6::anycast).collect();
        let up = device.up;
        for addr in all {
            match router {
                true if !up => self.join_solicited(ifindex, addr),
                false if !up => self.leave_solicited(ifindex, addr),
                true => self.join_anycast(ifindex, addr),
                false => self.leave_anycast(ifindex, addr),
            }
        }
    }
    /// `net.ipv6.conf.all.forwarding`: the machine's, and with it each device's.
    pub fn set_forwarding6(&mut self, on: bool) {
        self.six.forwarding = on;
        self.six.begins.forwarding = on;
        let all: Vec<u32> = self.devices.iter().map(|d| d.ifindex).collect();
        for ifindex in all {
            self.set_six_router(ifindex, on);
        }
        self.six.fib.invalidate();
    }
    /// `rt6_purge_dflt_routers`: a router goes by no other's word, but where it is told to (`accept_ra` 2).
    pub(crate) fn forget_routers(&mut self) {
        if !std::mem::take(&mut self.six.has_routers) {
            return;
        }
        let stays: Vec<u32> =
            self.devices.iter().filter(|d| d.six.conf.ra.of(Ra::ACCEPT) == 2).map(|d| d.ifindex).collect();
        self.six
            .fib
            .remove(|r| r.dst.len == 0 && (r.learnt.by_ra || r.learnt.router) && !stays.contains(&r.dev));
    }
    /// Sets a default route through `gateway`.
    ///
    /// # Errors
    /// EHOSTUNREACH (113) where the gateway is on no network of this machine, EEXIST where there is one already.
    pub fn add_default_route6(&mut self, gateway: Ipv6Addr) -> Result<(), KernelError> {
        let Some(way) = self.six.fib.find(gateway).filter(|r| r.via.is_none() && r.kind == 1) else {
            return Err(KernelError::errno(113));
        };
        let all = Net { addr: IpAddr::V6(Ipv6Addr::UNSPECIFIED), len: 0 };
        let (metric, proto) = (1024, crate::route::BOOT);
        let route = Route6 { via: Some(gateway), metric, proto, ..Route6::new(all, way.dev) };
        if !self.six.fib.rivals(&route).is_empty() {
            return Err(KernelError::errno(KernelError::EEXIST));
        }
        self.six.fib.insert(route);
        Ok(())
    }
    /// Whether a device has an address of IPv6.
    pub fn has_ipv6(&self) -> bool {
        self.devices.iter().any(|d| !d.loopback && !d.addresses6.is_empty())
    }
    /// Whether it forwards IPv6 (`net.ipv6.conf.all.forwarding`).
    pub fn forwards6(&self) -> bool {
        self.six.forwarding
    }
    /// Whether `addr` is one of this machine's.
    #[inline]
    pub(crate) fn is_local6(&self, addr: Ipv6Addr) -> bool {
        self.six.fib.find(addr).is_some_and(|r| r.kind == 2)
    }
    /// Whether `addr` is an address of this device (`ipv6_get_ifaddr`).
    pub(crate) fn has_address6(&self, ifindex: u32, addr: Ipv6Addr) -> bool {
        self.six.fib.to(LOCAL, &one(addr)).any(|r| r.kind == 2 && r.dev == ifindex)
    }
}
