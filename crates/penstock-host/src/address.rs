//! Addresses and link state, with the routes the kernel keeps for them.
//!
//! Follows: linux v6.12 `net/ipv4/devinet.c` `__inet_insert_ifa`, `inet_del_ifa`, `fib_frontend.c`
//! `fib_add_ifaddr`, `fib_del_ifaddr`, `fib_disable_ip`.

use crate::link::EADDRNOTAVAIL;
use crate::route::{self, Prefix, Route, RouteKind};
use crate::{Address, Effect, Host, Timer};
use penstock_model::{Kernel, KernelError, Time};
use penstock_sched::Cx;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

impl Host {
    /// Puts an address on a device, with the routes that follow from it: `ip addr add PREFIX dev …`.
    ///
    /// # Errors
    /// ENODEV, EEXIST.
    pub fn add_address(&mut self, ifindex: u32, prefix: Prefix) -> Result<(), KernelError> {
        self.insert_address(ifindex, Address::new(prefix))
    }
    /// The same with a broadcast address (`brd`). Without one the kernel still listens to the network's last
    /// address.
    ///
    /// # Errors
    /// ENODEV, EEXIST.
    pub fn add_address_with(
        &mut self,
        ifindex: u32,
        prefix: Prefix,
        broadcast: Option<Ipv4Addr>,
    ) -> Result<(), KernelError> {
        self.insert_address(ifindex, Address { broadcast, ..Address::new(prefix) })
    }
    /// `__inet_insert_ifa`: primaries stand before secondaries, those of wider scope first.
    ///
    /// # Errors
    /// ENODEV, EEXIST, EINVAL.
    pub(crate) fn insert_address(&mut self, ifindex: u32, mut new: Address) -> Result<(), KernelError> {
        let kernel = self.kernel;
        let Some(device) = self.devices.get_mut(ifindex) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        if new.label.is_empty() {
            new.label.clone_from(&device.name);
        }
        let shared = device.networks.get(new.network());
        new.secondary = shared.is_some();
        if let Some(shared) = shared {
            // The kernel asks one address after the other: of another scope, and not the very one that is first, it says so at the first.
            let other = shared.scope != new.scope && shared.primary != new.prefix.addr;
            if !other && device.networks.has(new.network(), new.prefix.addr) {
                return Err(match kernel {
                    Kernel::V2_6_35 => KernelError::errno(KernelError::EEXIST),
                    Kernel::V6_12 | Kernel::V7_2 => {
                        KernelError::new(KernelError::EEXIST, "ipv4: Address already assigned")
                    }
                });
            }
            if shared.scope != new.scope {
                return Err(match kernel {
                    Kernel::V2_6_35 => KernelError::errno(KernelError::EINVAL),
                    Kernel::V6_12 | Kernel::V7_2 => {
                        KernelError::new(KernelError::EINVAL, "ipv4: Invalid scope value")
                    }
                });
            }
        }
        let at = match new.secondary {
            true => device.addresses.len(),
            false => {
                let wider = |old: &Address| !old.secondary && new.scope <= old.scope;
                device.addresses.iter().rposition(wider).map_or(0, |i| i + 1)
            }
        };
        device.networks.insert(&new);
        device.has_own_conf = true;
        device.addresses.insert(at, new.clone());
        if new.autojoin {
            self.join4(ifindex, new.prefix.addr);
        }
        self.add_address_routes(ifindex, &new);
        Ok(())
    }

    /// Takes an address from a device. Deleting the first of a network deletes its secondaries, or with `promote_secondaries` makes the next
    /// the first.
    ///
    /// # Errors
    /// ENODEV; EADDRNOTAVAIL (99) where it is not there.
    pub fn delete_address(&mut self, ifindex: u32, prefix: Prefix) -> Result<(), KernelError> {
        self.delete_address_where(ifindex, |a| a.prefix == prefix)
    }
    /// The same for the first address that `gone` names.
    ///
    /// # Errors
    /// ENODEV, EADDRNOTAVAIL.
    pub(crate) fn delete_address_where(
        &mut self,
        ifindex: u32,
        gone: impl Fn(&Address) -> bool,
    ) -> Result<(), KernelError> {
        let Some(device) = self.devices.get_mut(ifindex) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        let Some(at) = device.addresses.iter().position(gone) else {
            return Err(KernelError::errno(EADDRNOTAVAIL));
        };
        let promotes = self.conf_max(ifindex, "promote_secondaries") > 0;
        let device = &mut self.devices[ifindex];
        let gone = device.addresses.remove(at);
        device.networks.remove(&gone);
        self.netfilter.unmasquerade(ifindex, Some(gone.prefix.addr.into()));
        if gone.autojoin {
            self.leave4(ifindex, gone.prefix.addr);
        }
        let device = &mut self.devices[ifindex];
        let shares = |a: &Address| a.secondary && a.network() == gone.network();
        let heir = device.addresses[at..].iter().position(shares).map(|n| at + n);
        if let Some(heir) = heir.filter(|_| !gone.secondary) {
            if promotes {
                // Behind the primaries of as wide a scope that stood behind it (__inet_del_ifa).
                let wide = |a: &Address| !a.secondary && gone.scope <= a.scope;
                let place = device.addresses[at..].iter().rposition(wide).map_or(at, |n| at + n + 1);
                let mut first = device.addresses.remove(heir);
                first.secondary = false;
                device.addresses.insert(place, first);
                for address in device.addresses.iter().filter(|a| a.network() == gone.network()) {
                    device.networks.insert(address);
                }
            } else {
                device.addresses.retain(|a| !shares(a));
            }
        }
        self.rebuild_address_routes(ifindex);
        Ok(())
    }

    /// Brings a device up or down. Down: its routes and neighbours go, what is queued goes with them. Up: the
    /// routes of its addresses come back, static ones do not.
    pub(crate) fn set_up(&mut self, ifindex: u32, up: bool, now: Time) {
        let Host { devices, drops, acts, .. } = self;
        let Some(device) = devices.get_mut(ifindex) else { return };
        if device.up == up {
            return;
        }
        device.up = up;
        device.tree.set_up(up, &mut Cx { now, rng: &mut device.rng, drops, acts });
        self.keep_drops(ifindex);
        self.groups_follow_link(ifindex, up);
        if up {
            let device = &self.devices[ifindex];
            if device.loopback && device.addresses.is_empty() {
                let local = Address { scope: 254, ..Address::new(Prefix::new(Ipv4Addr::LOCALHOST, 8)) };
                // It has none, so that this one is free.
                let _ = self.insert_address(ifindex, local);
            }
            let addresses = self.devices[ifindex].addresses.clone();
            for address in &addresses {
                self.add_address_routes(ifindex, address);
            }
            // Of slaves of a bond no addresses of IPv6 are made (IFF_NO_ADDRCONF).
            if self.bond_of(ifindex).is_none() {
                self.six_up(ifindex);
                self.six_forgets_mtu(ifindex);
                self.ask_routers(ifindex, now);
            }
            self.radvd_touched(ifindex, now);
            self.bond_follows(ifindex, now);
            self.bridge_follows(ifindex, now);
            self.veth_follows(ifindex, now);
            self.arp_notify(ifindex, now);
            return;
        }
        self.netfilter.unmasquerade(ifindex, None);
        self.remove_routes_of(ifindex);
        let own: Vec<Address> = self.devices[ifindex].addresses.clone();
        // Own addresses stay known while the device is down.
        for address in &own {
            self.add_address_routes(ifindex, address);
        }
        self.six_down(ifindex);
        self.neigh_flush(ifindex);
        //= linux v6.12 net/core/neighbour.c pneigh_ifdown_and_unlock
        self.remove_proxies(|_, p| p.ifindex == ifindex);
        self.forget_waiting();
        self.bond_follows(ifindex, now);
        self.bridge_follows(ifindex, now);
        self.veth_follows(ifindex, now);
    }
    pub(crate) fn neigh_flush(&mut self, ifindex: u32) {
        for at in 0..self.neigh.len() {
            if self.neigh.at(at).ifindex == ifindex {
                self.neigh_delete(at);
            }
        }
    }
    /// `fib_sync_down_dev`: a device is gone; a route over several ways goes with the last of them.
    pub(crate) fn remove_routes_of(&mut self, ifindex: u32) {
        // A nexthop takes its routes with it.
        self.nexthops_follow();
        self.fib.remove(|r| r.uses(ifindex) && r.by.is_none());
    }

    /// Drops the routes the kernel made for a device's addresses and makes them anew, after an address has gone.
    /// Static routes through networks that are no longer there go too (`fib_sync_down_addr` and a lost gateway).
    fn rebuild_address_routes(&mut self, ifindex: u32) {
        self.fib.remove(|r| r.dev == ifindex && r.proto == route::KERNEL && r.by.is_none());
        let addresses = self.devices[ifindex].addresses.clone();
        let own: Vec<Ipv4Addr> = addresses.iter().map(|a| a.prefix.addr).collect();
        for address in &addresses {
            self.add_address_routes(ifindex, address);
        }
        self.fib.remove(|r| {
            r.dev == ifindex && r.proto != route::KERNEL && r.src.is_some_and(|src| !own.contains(&src))
        });
        // Whatever way they lead, routes do not name a source that is nobody's here (fib_sync_down_addr).
        let table = match self.fib.l3mdevs().of(ifindex).table {
            0 => route::MAIN,
            table => table,
        };
        let sources: BTreeSet<Ipv4Addr> =
            self.fib.routes().filter(|r| r.table == table).filter_map(|r| r.src).collect();
        let stands =
            |src: Ipv4Addr| self.devices.iter().any(|d| d.addresses.iter().any(|a| a.prefix.addr == src));
        let lost: BTreeSet<Ipv4Addr> =
            sources.into_iter().filter(|&src| !stands(src) && !self.is_local(src)).collect();
        if !lost.is_empty() {
            self.fib.remove(|r| r.table == table && r.src.is_some_and(|src| lost.contains(&src)));
        }
        if own.is_empty() {
            // The last address: the device leaves IP altogether (inetdev_destroy, fib_disable_ip).
            self.fib.remove(|r| r.uses(ifindex) && r.by.is_none());
        }
    }

    /// `fib_add_ifaddr`.
    fn add_address_routes(&mut self, ifindex: u32, address: &Address) {
        let device = &self.devices[ifindex];
        let loopback = device.loopback;
        let (network, addr) = (address.network(), address.prefix.addr);
        let owner = if address.secondary { device.networks.get(network) } else { None };
        let src = Some(owner.map_or(addr, |shared| shared.primary));
        let vrf = self.fib.l3mdevs().of(ifindex).table;
        let made = |table, dst, kind| {
            // In a VRF's table there are all of them (fib_magic).
            let table = if vrf == 0 { table } else { vrf };
            let scope = if kind == RouteKind::Local { 254 } else { 253 };
            Route { table, kind, dev: ifindex, src, proto: route::KERNEL, scope, ..Route::new(dst) }
        };
        let mut new = vec![made(route::LOCAL, Prefix::new(addr, 32), RouteKind::Local)];
        let zero = network.addr.octets()[0] == 0;
        if device.up {
            if let Some(given) = address.broadcast.filter(|g| *g != Ipv4Addr::BROADCAST) {
                new.push(made(route::LOCAL, Prefix::new(given, 32), RouteKind::Broadcast));
            }
            if !zero && !address.secondary && (network.addr != addr || network.len < 32) {
                if loopback {
                    new.push(made(route::LOCAL, network, RouteKind::Local));
                } else if !address.no_prefix_route {
                    new.push(Route {
                        metric: address.metric,
                        ..made(route::MAIN, network, RouteKind::Unicast)
                    });
                }
                if network.len < 31 {
                    new.push(made(route::LOCAL, Prefix::new(network.broadcast(), 32), RouteKind::Broadcast));
                    // Since 5.15 or so the network's own address is not a broadcast any more.
                    if self.kernel == Kernel::V2_6_35 {
                        new.push(made(route::LOCAL, Prefix::new(network.addr, 32), RouteKind::Broadcast));
                    }
                }
            }
        }
        for r in new {
            let there = self
                .fib
                .to(r.table, r.dst)
                .any(|o| o.kind == r.kind && o.dev == r.dev && o.metric == r.metric);
            if !there {
                self.fib.insert(r);
            }
        }
    }

    /// The route of an address's network gets the metric that the address has now (`fib_modify_prefix_metric`).
    pub(crate) fn move_network_route(&mut self, ifindex: u32, address: &Address) {
        let (network, device) = (address.network(), &self.devices[ifindex]);
        let whole = network.addr == address.prefix.addr && network.len == 32;
        if !device.up || address.secondary || address.no_prefix_route || whole {
            return;
        }
        self.fib.remove(|r| {
            r.dev == ifindex
                && r.dst == network
                && r.kind == RouteKind::Unicast
                && r.proto == route::KERNEL
                && r.src == Some(address.prefix.addr)
                && r.by.is_none()
        });
        self.add_address_routes(ifindex, address);
    }

    /// Sets a default route through `gateway`.
    ///
    /// # Errors
    /// ENETUNREACH (101) where the gateway is on no network of this machine, EEXIST where there is one already.
    pub fn add_default_route(&mut self, gateway: Ipv4Addr) -> Result<(), KernelError> {
        self.add_route(Prefix::new(Ipv4Addr::UNSPECIFIED, 0), gateway)
    }
    /// Sets a route to `dst` through `gateway`.
    ///
    /// # Errors
    /// ENETUNREACH (101) where the gateway is on no network of this machine, EEXIST where there is one already.
    pub fn add_route(&mut self, dst: Prefix, gateway: Ipv4Addr) -> Result<(), KernelError> {
        let hop = self.fib.search(gateway);
        if hop.kind != Some(RouteKind::Unicast) || hop.six != 0 || hop.next != gateway {
            return Err(KernelError::errno(101));
        }
        let dst = dst.network();
        if self.fib.to(route::MAIN, dst).any(|r| r.metric == 0) {
            return Err(KernelError::errno(KernelError::EEXIST));
        }
        self.fib.insert(Route { via: Some(gateway.into()), dev: hop.oif, ..Route::new(dst) });
        Ok(())
    }

    /// Sets a device's MTU, bytes.
    ///
    /// # Errors
    /// ENODEV; EINVAL outside what the kind of device may have (a card: 68..=65535).
    pub fn set_mtu(&mut self, ifindex: u32, mtu: u32, now: Time) -> Result<(), KernelError> {
        let kernel = self.kernel;
        let Some(device) = self.devices.get_mut(ifindex) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        let (least, most) = device.mtu_bounds();
        let most = if most == 0 { 0x7fff_ffff } else { most };
        let device = &self.devices[ifindex];
        // macvlan_change_mtu
        if device.macvlan.is_some() && self.lower_of(device).is_some_and(|below| below.mtu < mtu) {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let device = &self.devices[ifindex];
        if device.teql.is_some() && self.teql_largest_mtu().is_some_and(|most| most < mtu) {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let device = &mut self.devices[ifindex];
        if !(least..=most).contains(&mtu) {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        let before = std::mem::replace(&mut device.mtu, mtu);
        device.refresh_tree(kernel, now, &mut self.drops, &mut self.acts);
        self.keep_drops(ifindex);
        if let Some(bridge) = self.bridge_of(ifindex) {
            self.bridge_mtu_follows(bridge, now);
        }
        if self.devices[ifindex].bond.is_some() {
            self.bond_tells_slaves(ifindex, now);
        }
        self.macvlan_mtus_follow(ifindex, now);
        //= linux v6.12 net/8021q/vlan.c vlan_device_event: no VLAN has a larger one
        let above: Vec<u32> = self.devices.vlans_on(ifindex).filter(|&v| self.devices[v].mtu > mtu).collect();
        for vlan in above {
            self.set_mtu(vlan, mtu, now)?;
        }
        //= linux v6.12 net/ipv4/fib_semantics.c fib_nhc_update_mtu: what was the device's own limit is another's now
        self.paths.forget(|known| known == before);
        self.six_mtu_changed(ifindex, before, now);
        Ok(())
    }
    /// Sets a device's txqueuelen, packets.
    ///
    /// # Errors
    /// ENODEV.
    pub fn set_tx_queue_len(&mut self, ifindex: u32, packets: u32, now: Time) -> Result<(), KernelError> {
        let kernel = self.kernel;
        let Some(device) = self.devices.get_mut(ifindex) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        device.tx_queue_len = packets;
        device.refresh_tree(kernel, now, &mut self.drops, &mut self.acts);
        self.keep_drops(ifindex);
        Ok(())
    }

    /// Keeps what a change of qdiscs threw away for [`Host::take_effects`].
    pub(crate) fn keep_drops(&mut self, ifindex: u32) {
        for (packet, reason) in self.drops.drain() {
            self.pending.push(Effect::gone(packet, ifindex, "qdisc", reason));
        }
        self.tell_ports();
        let device = self.devices.get(ifindex);
        if device.is_some_and(|d| d.tree.qlen() > 0 && d.runs_itself()) {
            // No card asks for what may go on now.
            self.timers.retain(|timer| timer != Timer::Cardless(ifindex));
            self.timers.insert(Time::ZERO, Timer::Cardless(ifindex));
        } else if !device.is_some_and(|d| d.is_ifb()) {
            self.pending.push(Effect::Kick(ifindex));
        }
    }
}
