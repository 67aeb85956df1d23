//! `ip address`.

use super::{Done, errno, quiet};
use crate::lifetime::Lifetime;
use crate::link::EADDRNOTAVAIL;
use crate::six::Address6;
use crate::{Address, Host, Prefix};
use penstock_lang::ip::{
    AUTOJOIN, AddrSpec, AddressView, Broadcast, Family, LinkFilter, MANAGE_TEMPORARY, Net,
};
use penstock_model::{Kernel, KernelError, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Host {
    pub(super) fn addr_add(&mut self, spec: &AddrSpec, replace: bool, now: Time) -> Done {
        let ifindex = self.dev(&spec.dev)?;
        let net = match (spec.local, spec.peer) {
            (Some(net), _) => net,
            // Without an address there is no family: nobody takes the request.
            (None, None) => return Err(errno(KernelError::EOPNOTSUPP)),
            (None, Some(_)) => return Err(self.no(22, "ipv4: Local address is not supplied")),
        };
        let addr = match net.addr {
            IpAddr::V6(addr) => return self.addr6_add(ifindex, addr, net.len, spec, replace, now),
            IpAddr::V4(addr) => addr,
        };
        let (len, peer) = match spec.peer {
            Some(Net { addr: IpAddr::V4(peer), len }) => (len, Some(peer)),
            _ => (net.len, None),
        };
        let prefix = Prefix::new(addr, len);
        let reach = Prefix::new(peer.unwrap_or(addr), len);
        let broadcast = spec.broadcast.and_then(|b| match b {
            Broadcast::Last => (len <= 30).then(|| reach.broadcast()),
            Broadcast::First => (len <= 30).then(|| reach.network().addr),
            Broadcast::Addr(addr) => Some(addr),
        });
        let there = |a: &Address| a.prefix == prefix && a.network() == reach.network();
        let exists = self.devices[ifindex].networks.has(reach.network(), addr);
        //= linux v6.12 net/ipv4/devinet.c inet_rtm_newaddr: `change` makes one too
        let new = Address {
            peer: peer.filter(|p| *p != addr),
            broadcast,
            scope: spec.scope.unwrap_or(if addr.is_loopback() { 254 } else { 0 }),
            label: spec.label.clone().unwrap_or_default(),
            metric: spec.metric,
            no_prefix_route: spec.no_prefix_route,
            autojoin: spec.flags & AUTOJOIN != 0,
            //= linux v2.6.35 net/ipv4/devinet.c rtm_to_ifaddr: an address of IPv4 stays; it came with 3.9
            lifetime: Lifetime::new(spec.lifetime.filter(|_| self.kernel != Kernel::V2_6_35), self.tick(now)),
            ..Address::new(prefix)
        };
        if replace && exists {
            let device = &mut self.devices[ifindex];
            if let Some(old) = device.addresses.iter_mut().find(|a| there(a)) {
                old.lifetime = new.lifetime;
                //= linux v6.12 net/ipv4/fib_frontend.c fib_modify_prefix_metric
                if std::mem::replace(&mut old.metric, new.metric) != new.metric {
                    let address = old.clone();
                    self.move_network_route(ifindex, &address);
                }
            }
            self.lives(new.lifetime, false, now);
            return Ok(String::new());
        }
        let lifetime = new.lifetime;
        let done = quiet(self.insert_address(ifindex, new))?;
        self.lives(lifetime, false, now);
        Ok(done)
    }

    pub(super) fn addr_del(&mut self, spec: &AddrSpec) -> Done {
        let ifindex = self.dev(&spec.dev)?;
        let Some(net) = spec.local else { return Err(self.no(EADDRNOTAVAIL, "ipv4: Address not found")) };
        let gone = match net.addr {
            IpAddr::V6(addr) => {
                return quiet(self.delete_address6(ifindex, addr, net.len));
            }
            IpAddr::V4(addr) => {
                let exact = spec.has_length || spec.peer.is_some();
                let peer = spec.peer;
                self.delete_address_where(ifindex, |a| {
                    a.prefix.addr == addr
                        && match peer {
                            Some(p) => a.prefix.len == p.len && p.contains(IpAddr::V4(a.network().addr)),
                            None => !exact || a.prefix.len == net.len,
                        }
                        && spec.label.as_ref().is_none_or(|l| *l == a.label)
                })
            }
        };
        gone.map(|()| String::new()).map_err(|_| self.no(EADDRNOTAVAIL, "ipv4: Address not found"))
    }

    pub(super) fn addr_flush(&mut self, filter: &LinkFilter) -> Done {
        for ifindex in self.chosen_links(filter)? {
            let device = &self.devices[ifindex];
            let gone: Vec<Prefix> = device
                .addresses
                .iter()
                .filter(|a| chosen(filter, IpAddr::V4(a.prefix.addr), a.scope, &a.label, a.secondary))
                .map(|a| a.prefix)
                .collect();
            let gone6: Vec<(Ipv6Addr, u8)> = device
                .addresses6
                .iter()
                .filter(|a| chosen(filter, IpAddr::V6(a.addr), a.scope(), "", false))
                .map(|a| (a.addr, a.len))
                .collect();
            for prefix in gone {
                // A secondary may have gone with its primary.
                let _ = self.delete_address(ifindex, prefix);
            }
            for (addr, len) in gone6 {
                let _ = self.delete_address6(ifindex, addr, len);
            }
        }
        Ok(String::new())
    }

    fn addr6_add(
        &mut self,
        ifindex: u32,
        addr: Ipv6Addr,
        len: u8,
        spec: &AddrSpec,
        replace: bool,
        now: Time,
    ) -> Done {
        let lifetime = Lifetime::new(spec.lifetime, self.tick(now));
        let (len, peer) = match spec.peer {
            Some(Net { addr: IpAddr::V6(peer), len }) => (len, Some(peer)),
            _ => (len, None),
        };
        let there = self.devices[ifindex].addresses6.iter().any(|a| a.addr == addr);
        if spec.flags & MANAGE_TEMPORARY != 0 && len != 64 && (replace || !there) {
            //= linux v6.12 net/ipv6/addrconf.c inet6_addr_add, inet6_addr_modify
            let why = "ipv6: address with \"mngtmpaddr\" flag must have a prefix length of 64";
            return Err(if there { errno(KernelError::EINVAL) } else { self.no(KernelError::EINVAL, why) });
        }
        if replace && there {
            let (metric, no_prefix_route) = (spec.metric, spec.no_prefix_route);
            let new = Address6 {
                peer: peer.filter(|p| *p != addr),
                lifetime,
                metric,
                flags: spec.flags,
                no_prefix_route,
                ..Address6::new(addr, len)
            };
            self.modify_address6(ifindex, &new, now);
            return Ok(String::new());
        }
        let new = Address6 {
            peer: peer.filter(|p| *p != addr),
            lifetime,
            metric: spec.metric,
            flags: spec.flags,
            no_prefix_route: spec.no_prefix_route,
            ..Address6::new(addr, len)
        };
        let done = quiet(self.insert_address6(ifindex, new))?;
        self.lives(lifetime, true, now);
        Ok(done)
    }

    pub(super) fn address_views(&self, ifindex: u32, now: Time) -> Vec<AddressView> {
        let device = &self.devices[ifindex];
        let (tick, hz) = (self.tick(now), self.hz);
        let four = device.addresses.iter().map(|a| AddressView {
            addr: IpAddr::V4(a.prefix.addr),
            len: a.prefix.len,
            peer: a.peer.map(IpAddr::V4),
            broadcast: a.broadcast,
            secondary: a.secondary,
            metric: a.metric,
            flags: if a.autojoin { AUTOJOIN } else { 0 },
            no_prefix_route: a.no_prefix_route,
            scope: a.scope,
            label: a.label.clone(),
            lifetime: match a.lifetime.is_permanent() {
                //= linux v6.12 net/ipv4/devinet.c inet_fill_ifaddr
                true => (u32::MAX, u32::MAX),
                false => a.lifetime.left(tick, hz),
            },
            deprecated: a.lifetime.deprecated,
            dynamic: !a.lifetime.is_permanent(),
        });
        let six = device.addresses6.iter().map(|a| AddressView {
            addr: IpAddr::V6(a.addr),
            len: a.len,
            peer: a.peer.map(IpAddr::V6),
            broadcast: None::<Ipv4Addr>,
            secondary: false,
            metric: a.metric,
            flags: a.flags | if a.by_ra { MANAGE_TEMPORARY } else { 0 },
            no_prefix_route: a.no_prefix_route,
            scope: a.scope(),
            label: String::new(),
            lifetime: a.lifetime.left(tick, hz),
            deprecated: a.lifetime.deprecated,
            dynamic: !a.lifetime.is_permanent(),
        });
        four.chain(six).collect()
    }
}

fn chosen(filter: &LinkFilter, addr: IpAddr, scope: u8, label: &str, secondary: bool) -> bool {
    let family = match filter.family {
        Family::Inet => addr.is_ipv4(),
        Family::Inet6 => addr.is_ipv6(),
        _ => true,
    };
    let flags = u32::from(secondary) | 0x80;
    family
        && filter.to.is_none_or(|net| net.contains(addr))
        && filter.scope.is_none_or(|s| s == scope)
        && filter.label.as_ref().is_none_or(|l| l == label)
        && (filter.flags.0 ^ flags) & filter.flags.1 == 0
}
