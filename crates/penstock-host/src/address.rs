//! Addresses and link state, with the routes the kernel keeps for them.
//!
//! Follows: linux v6.12 `net/ipv4/devinet.c` `__inet_insert_ifa`, `inet_del_ifa`, `fib_frontend.c`
//! `fib_add_ifaddr`, `fib_del_ifaddr`, `fib_disable_ip`.

use crate::route::{Prefix, Proto, Route, RouteKind, Table};
use crate::{Address, Effect, Host};
use penstock_model::{Kernel, KernelError, Time};
use std::net::Ipv4Addr;

impl Host {
    /// Puts an address on a device, with the routes that follow from it: `ip addr add PREFIX dev …`.
    ///
    /// # Errors
    /// ENODEV, EEXIST.
    pub fn add_address(&mut self, ifindex: u32, prefix: Prefix) -> Result<(), KernelError> {
        self.add_address_with(ifindex, prefix, None)
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
        let Some(device) = self.devices.get_mut((ifindex as usize).wrapping_sub(1)) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        if device.addresses.iter().any(|a| a.prefix == prefix) {
            return Err(KernelError::errno(KernelError::EEXIST));
        }
        let same = |a: &Address| !a.secondary && a.prefix.len == prefix.len && a.prefix.contains(prefix.addr);
        let secondary = device.addresses.iter().any(same);
        device.addresses.push(Address { prefix, broadcast, secondary });
        self.add_address_routes(ifindex, prefix);
        Ok(())
    }

    /// Takes an address from a device. Deleting the first of a network deletes its secondaries
    /// (`promote_secondaries` is 0).
    ///
    /// # Errors
    /// ENODEV; EADDRNOTAVAIL (99) where it is not there.
    pub fn delete_address(&mut self, ifindex: u32, prefix: Prefix) -> Result<(), KernelError> {
        let Some(device) = self.devices.get_mut((ifindex as usize).wrapping_sub(1)) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        let Some(at) = device.addresses.iter().position(|a| a.prefix == prefix) else {
            return Err(KernelError::errno(99));
        };
        let gone = device.addresses.remove(at);
        if !gone.secondary {
            device
                .addresses
                .retain(|a| !(a.secondary && a.prefix.len == prefix.len && a.prefix.contains(prefix.addr)));
        }
        self.rebuild_address_routes(ifindex);
        Ok(())
    }

    /// Brings a device up or down. Down: its routes and neighbours go, what is queued goes with them. Up: the
    /// routes of its addresses come back, static ones do not.
    pub(crate) fn set_up(&mut self, ifindex: u32, up: bool) {
        let device = &mut self.devices[ifindex as usize - 1];
        if device.up == up {
            return;
        }
        device.up = up;
        if up {
            let prefixes: Vec<Prefix> = device.addresses.iter().map(|a| a.prefix).collect();
            for prefix in prefixes {
                self.add_address_routes(ifindex, prefix);
            }
            self.pending.push(Effect::Kick(ifindex));
            return;
        }
        self.fib.remove(|r| r.dev == ifindex);
        for at in 0..self.neigh.len() {
            if self.neigh.at(at).ifindex == ifindex {
                self.neigh_delete(at);
            }
        }
    }

    /// Drops the routes the kernel made for a device's addresses and makes them anew, after an address has gone.
    /// Static routes through networks that are no longer there go too (`fib_sync_down_addr` and a lost gateway).
    fn rebuild_address_routes(&mut self, ifindex: u32) {
        self.fib.remove(|r| r.dev == ifindex && r.proto == Proto::Kernel);
        let device = &self.devices[ifindex as usize - 1];
        let prefixes: Vec<Prefix> = device.addresses.iter().map(|a| a.prefix).collect();
        let own: Vec<Ipv4Addr> = prefixes.iter().map(|p| p.addr).collect();
        for prefix in prefixes {
            self.add_address_routes(ifindex, prefix);
        }
        self.fib.remove(|r| {
            r.dev == ifindex && r.proto != Proto::Kernel && r.src.is_some_and(|src| !own.contains(&src))
        });
        if own.is_empty() {
            // The last address: the device leaves IP altogether (inetdev_destroy, fib_disable_ip).
            self.fib.remove(|r| r.dev == ifindex);
        }
    }

    fn add_address_routes(&mut self, ifindex: u32, prefix: Prefix) {
        let device = &self.devices[ifindex as usize - 1];
        let loopback = device.loopback;
        let src = Some(prefix.addr);
        let route = |table, dst, kind| Route {
            table,
            dst,
            kind,
            via: None,
            dev: ifindex,
            src,
            metric: 0,
            proto: Proto::Kernel,
        };
        let mut new = vec![route(Table::Local, Prefix::new(prefix.addr, 32), RouteKind::Local)];
        let zero = prefix.addr.octets()[0] == 0;
        if device.up && !zero && prefix.len < 32 {
            if loopback {
                new.push(route(Table::Local, prefix.network(), RouteKind::Local));
            } else {
                new.push(route(Table::Main, prefix.network(), RouteKind::Unicast));
            }
            let given = device.addresses.iter().find(|a| a.prefix == prefix).and_then(|a| a.broadcast);
            if let Some(given) = given.filter(|g| *g != Ipv4Addr::BROADCAST && *g != prefix.broadcast()) {
                new.push(route(Table::Local, Prefix::new(given, 32), RouteKind::Broadcast));
            }
            if prefix.len < 31 {
                new.push(route(Table::Local, Prefix::new(prefix.broadcast(), 32), RouteKind::Broadcast));
                // Since 5.15 or so the network's own address is no broadcast any more.
                if self.kernel == Kernel::V2_6_35 {
                    let lowest = Prefix::new(prefix.network().addr, 32);
                    new.push(route(Table::Local, lowest, RouteKind::Broadcast));
                }
            }
        }
        for r in new {
            let there = self
                .fib
                .routes()
                .iter()
                .any(|o| o.table == r.table && o.dst == r.dst && o.kind == r.kind && o.dev == r.dev);
            if !there {
                self.fib.insert(r);
            }
        }
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
        if hop.kind != Some(RouteKind::Unicast) || hop.next != gateway {
            return Err(KernelError::errno(101));
        }
        let dst = dst.network();
        if self.fib.routes().iter().any(|r| r.table == Table::Main && r.dst == dst && r.metric == 0) {
            return Err(KernelError::errno(KernelError::EEXIST));
        }
        let via = Some(gateway);
        let (kind, proto) = (RouteKind::Unicast, Proto::Boot);
        let route = Route { table: Table::Main, dst, kind, via, dev: hop.oif, src: None, metric: 0, proto };
        self.fib.insert(route);
        Ok(())
    }

    /// Sets a device's MTU, bytes.
    ///
    /// # Errors
    /// ENODEV; EINVAL outside 68..=65535 (`lo`: up to 2^31).
    pub fn set_mtu(&mut self, ifindex: u32, mtu: u32, now: Time) -> Result<(), KernelError> {
        let kernel = self.kernel;
        let Some(device) = self.devices.get_mut((ifindex as usize).wrapping_sub(1)) else {
            return Err(KernelError::errno(KernelError::ENODEV));
        };
        let most = if device.loopback { 0x7fff_ffff } else { 65_535 };
        if !(68..=most).contains(&mtu) {
            return Err(KernelError::errno(KernelError::EINVAL));
        }
        device.mtu = mtu;
        device.refresh_tree(kernel, now, &mut self.drops, &mut self.acts);
        self.keep_drops(ifindex);
        Ok(())
    }
    /// Sets a device's txqueuelen, packets.
    ///
    /// # Errors
    /// ENODEV.
    pub fn set_tx_queue_len(&mut self, ifindex: u32, packets: u32, now: Time) -> Result<(), KernelError> {
        let kernel = self.kernel;
        let Some(device) = self.devices.get_mut((ifindex as usize).wrapping_sub(1)) else {
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
            self.pending.push(Effect::Dropped { packet, ifindex, place: "qdisc", reason: reason.as_str() });
        }
        self.pending.push(Effect::Kick(ifindex));
    }
}
