//! Whether a route's gateway is a neighbour, and by which device.
//!
//! Follows: linux v6.12 `net/ipv4/fib_semantics.c` `fib_check_nh`, `net/ipv6/route.c` `fib6_nh_init`, `ip6_route_check_nh`.

use super::route::{EACCES, EHOSTUNREACH, ENETUNREACH};
use super::{errno, says};
use crate::Host;
use crate::route::{Key, MAIN, Route, RouteKind};
use crate::six::{Key6, Route6, is_link_local};
use penstock_lang::ip::Failure;
use penstock_model::{Kernel, KernelError};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

impl Host {
    /// `fib_check_nh`: the next hop, of either family, must be a neighbour. Answers its device.
    pub(super) fn check_gateway(
        &self,
        table: u32,
        via: Option<IpAddr>,
        dev: Option<u32>,
        onlink: bool,
        scope: u8,
    ) -> Result<u32, Failure> {
        if scope == 254 && via.is_some() {
            return Err(self.no(KernelError::EINVAL, "Route with host scope can not have a gateway"));
        }
        match via {
            Some(IpAddr::V6(via)) => {
                self.check_room6()?;
                self.check_way6(Some(via), dev, onlink)
            }
            Some(IpAddr::V4(via)) => self.check_way(table, Some(via), dev, onlink, scope),
            None => self.check_way(table, None, dev, onlink, scope),
        }
    }
    /// Refuses routes of IPv4 by more gateways of IPv6 than can be known.
    pub(super) fn check_room6(&self) -> Result<(), Failure> {
        match self.fib.is_full6() {
            true => Err(Failure {
                help: "let more routes go by the same gateway".to_owned(),
                ..says(1, "ip route … of IPv4 by more than 60000 gateways of IPv6: not simulated")
            }),
            false => Ok(()),
        }
    }
    /// The same with a gateway of IPv4, or with none.
    pub(super) fn check_way(
        &self,
        table: u32,
        via: Option<Ipv4Addr>,
        dev: Option<u32>,
        onlink: bool,
        scope: u8,
    ) -> Result<u32, Failure> {
        let down = |d: u32| !self.devices[d].up;
        let old = self.kernel == Kernel::V2_6_35;
        let Some(via) = via else {
            return match dev {
                None => Err(errno(KernelError::ENODEV)),
                Some(d) if down(d) => Err(self.no(crate::link::ENETDOWN, "Device for nexthop is not up")),
                Some(d) => Ok(d),
            };
        };
        if scope >= 253 && (onlink || old) {
            return Err(self.no(KernelError::EINVAL, "Nexthop has invalid scope"));
        }
        if onlink {
            return match dev {
                None => Err(self.no(KernelError::ENODEV, "Nexthop device required for onlink")),
                Some(d) if down(d) => Err(self.no(crate::link::ENETDOWN, "Nexthop device is not up")),
                Some(d) => Ok(d),
            };
        }
        if dev.is_some_and(down) {
            return Err(if old {
                errno(crate::link::ENETDOWN)
            } else {
                self.no(ENETUNREACH, "Nexthop has invalid gateway")
            });
        }
        // Of the routes to a gateway only those straight to the link count.
        let key = Key { oif: dev.unwrap_or(0), ..Key::to(via) };
        // In the route's own table first, where that is another than main (fib_check_nh_v4_gw).
        let key_in = self.fib.l3mdevs().update_flow(key);
        let near = (table != MAIN && !old).then(|| self.fib.find_in(table, &key_in)).flatten();
        let near = near.filter(|r| r.kind != RouteKind::Throw);
        let found = near.or_else(|| self.fib.search_route(&key).ok().flatten());
        let near = |r: &&Route| r.via.is_none() && r.nexthops.is_empty() && r.scope > scope.max(252);
        let found = found.filter(near);
        match found.map(|r| (r.kind, r.dev)) {
            Some((RouteKind::Unicast | RouteKind::Local, oif)) => {
                // An own address is reached over the device it stands on.
                let behind = dev.is_none_or(|d| d == oif);
                if behind { Ok(oif) } else { Err(self.no(ENETUNREACH, "Nexthop has invalid gateway")) }
            }
            Some(_) => Err(self.no(KernelError::EINVAL, "Nexthop has invalid gateway")),
            None if old => Err(errno(KernelError::ESRCH)),
            None => Err(self.no(ENETUNREACH, "Nexthop has invalid gateway")),
        }
    }

    /// `fib6_nh_init`, `ip6_route_check_nh`: the gateway must be a neighbour. Answers its device.
    pub(super) fn check_way6(
        &self,
        via: Option<Ipv6Addr>,
        dev: Option<u32>,
        onlink: bool,
    ) -> Result<u32, Failure> {
        if dev.is_some_and(|dev| self.devices[dev].mtu < crate::six::MIN_MTU) {
            // There is no IPv6 on it.
            return Err(errno(KernelError::ENODEV));
        }
        let dev = match (dev, via) {
            (None, None) => return Err(errno(KernelError::ENODEV)),
            (Some(dev), None) => dev,
            (dev, Some(via)) => self.check_gateway6(via, dev, onlink)?,
        };
        if self.devices[dev].mtu < crate::six::MIN_MTU {
            return Err(errno(KernelError::ENODEV));
        }
        if !self.devices[dev].up {
            return Err(self.no(crate::link::ENETDOWN, "Nexthop device is not up"));
        }
        if self.devices[dev].six.conf.disabled {
            return Err(self.no(EACCES, "IPv6 is disabled on nexthop device"));
        }
        Ok(dev)
    }

    /// `ip6_validate_gw`: the device that a gateway is reached by.
    pub(super) fn check_gateway6(
        &self,
        via: Ipv6Addr,
        dev: Option<u32>,
        onlink: bool,
    ) -> Result<u32, Failure> {
        if onlink {
            match dev {
                None => return Err(self.no(KernelError::ENODEV, "Nexthop device required for onlink")),
                Some(dev) if !self.devices[dev].up => {
                    return Err(self.no(crate::link::ENETDOWN, "Nexthop device is not up"));
                }
                Some(_) => {}
            }
        }
        let local = self.is_local6(via);
        if local && dev.is_some() {
            return Err(self.no(KernelError::EINVAL, "Gateway can not be a local address"));
        }
        if via.is_multicast() || via.is_unspecified() {
            return Err(self.no(KernelError::EINVAL, "Invalid gateway address"));
        }
        let dev = match dev {
            dev if is_link_local(via) => dev,
            Some(dev) if onlink => {
                //= linux v6.12 net/ipv6/route.c ip6_route_check_nh_onlink
                let table = self.fib.l3mdevs().of(dev).table;
                let found = self.six.fib.find_of(if table == 0 { MAIN } else { table }, via);
                let elsewhere = |r: &Route6| r.dst.len > 0 && (r.kind != 1 || r.dev != dev);
                if found.is_some_and(|r| !matches!(r.kind, 6..=9) && elsewhere(r)) {
                    let why = "Nexthop has invalid gateway or device mismatch";
                    return Err(self.no(KernelError::EINVAL, why));
                }
                Some(dev)
            }
            dev => {
                let key = Key6 { oif: dev.unwrap_or(0), strict: dev.is_some(), ..Key6::to(via) };
                match self.six.fib.search_route(&key).filter(|r| r.via.is_none() && matches!(r.kind, 1 | 2)) {
                    Some(r) => Some(r.dev),
                    None => return Err(errno(EHOSTUNREACH)),
                }
            }
        };
        match dev {
            None => Err(self.no(KernelError::EINVAL, "Egress device not specified")),
            Some(dev) if self.devices[dev].loopback => {
                let why = "Egress device can not be loopback device for this route";
                Err(self.no(KernelError::EINVAL, why))
            }
            Some(_) if local => Err(self.no(KernelError::EINVAL, "Gateway can not be a local address")),
            Some(dev) => Ok(dev),
        }
    }
}
