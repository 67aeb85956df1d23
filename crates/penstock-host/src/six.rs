//! IPv6 as configuration: addresses and routes are kept, checked and shown, and carry no packet.
//!
//! Follows: linux v6.12 `net/ipv6/addrconf.c` `inet6_addr_add`, `inet6_addr_del`, `net/ipv6/route.c` `ip6_route_info_create`.
//! Differs: no packet is sent or taken over IPv6; no address is made by itself (`addr_gen_mode` is `none`), none is tentative;
//! metrics of routes are not kept.

use crate::Host;
use penstock_lang::ip::Net;
use penstock_model::KernelError;
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
    /// Seconds it is valid and preferred.
    pub lifetime: (u32, u32),
    /// `noprefixroute`.
    pub no_prefix_route: bool,
}

impl Address6 {
    /// `ipv6_addr_scope` as `ip` shows it: 0 global, 253 link, 254 host.
    pub fn scope(&self) -> u8 {
        if self.addr.is_loopback() {
            254
        } else if self.addr.segments()[0] & 0xffc0 == 0xfe80 {
            253
        } else if self.addr.segments()[0] & 0xffc0 == 0xfec0 {
            200
        } else {
            0
        }
    }
    /// The network it brings.
    pub fn network(&self) -> Net {
        network(self.addr, self.len)
    }
}

impl Host {
    /// Puts an IPv6 address on a device, with the routes that follow from it: `ip -6 addr add ADDR/LEN dev …`.
    ///
    /// # Errors
    /// ENODEV, EEXIST.
    pub fn add_address6(&mut self, ifindex: u32, addr: Ipv6Addr, len: u8) -> Result<(), KernelError> {
        let device = self.devices.get(ifindex).ok_or(KernelError::errno(KernelError::ENODEV))?;
        if device.addresses6.iter().any(|a| a.addr == addr) {
            return Err(KernelError::new(KernelError::EEXIST, "ipv6: address already assigned"));
        }
        let lifetime = (u32::MAX, u32::MAX);
        self.insert_address6(ifindex, Address6 { addr, len, peer: None, lifetime, no_prefix_route: false });
        Ok(())
    }
    /// Enters an address that is not there. Those of wider scope stand first (`ipv6_link_dev_addr`).
    pub(crate) fn insert_address6(&mut self, ifindex: u32, new: Address6) {
        let rank = |a: &Address6| match a.scope() {
            253 => 0x20,
            254 => 0x10,
            200 => 0x40,
            _ => 0x8000,
        };
        let Some(device) = self.devices.get_mut(ifindex) else { return };
        let at = device.addresses6.iter().take_while(|a| rank(a) >= rank(&new)).count();
        device.addresses6.insert(at, new);
        self.six_rebuild(ifindex);
    }
}

/// A prefix without host bits.
pub fn network(addr: Ipv6Addr, len: u8) -> Net {
    let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or(0);
    Net { addr: IpAddr::V6(Ipv6Addr::from(u128::from(addr) & mask)), len }
}

/// An IPv6 route.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Route6 {
    /// Table.
    pub table: u32,
    /// Destinations.
    pub dst: Net,
    /// `RTN_*`.
    pub kind: u8,
    /// Gateway.
    pub via: Option<Ipv6Addr>,
    /// Interface index.
    pub dev: u32,
    /// Preferred source address.
    pub src: Option<Ipv6Addr>,
    /// Metric; 1024 where a command names none.
    pub metric: u32,
    /// `RTPROT_*`.
    pub proto: u8,
}

/// The routes of IPv6.
#[derive(Default)]
pub struct Six {
    /// By table, then by prefix.
    pub(crate) routes: Vec<Route6>,
}

impl Six {
    fn key(r: &Route6) -> (u32, u128, u8, u32) {
        let bits = match r.dst.addr {
            IpAddr::V6(a) => u128::from(a),
            IpAddr::V4(_) => 0,
        };
        // The kernel's tree is walked from its leaves: a prefix comes behind all that it holds.
        //= linux v6.12 net/ipv6/ip6_fib.c fib6_walk_continue
        let last = bits | u128::MAX.checked_shr(u32::from(r.dst.len)).unwrap_or(0);
        (r.table, last, 128 - r.dst.len, r.metric)
    }
    /// Enters a route; `false` where the same is there.
    pub(crate) fn insert(&mut self, route: Route6) -> bool {
        let same = |r: &&Route6| r.table == route.table && r.dst == route.dst && r.metric == route.metric;
        let there = self.routes.iter().filter(same).any(|r| r.dev == route.dev && r.via == route.via);
        if there {
            return false;
        }
        let at = self.routes.partition_point(|r| Six::key(r) <= Six::key(&route));
        self.routes.insert(at, route);
        true
    }
    /// The longest prefix that holds `dst`.
    pub(crate) fn find(&self, dst: Ipv6Addr) -> Option<&Route6> {
        let hit = |r: &&Route6| r.dst.contains(IpAddr::V6(dst)) && r.kind != 5;
        let local = self.routes.iter().filter(hit).filter(|r| r.table == 255).max_by_key(|r| r.dst.len);
        local.or_else(|| {
            let main = self.routes.iter().filter(hit).filter(|r| r.table == 254);
            main.max_by_key(|r| (r.dst.len, u32::MAX - r.metric))
        })
    }
    pub(crate) fn forget_device(&mut self, ifindex: u32) {
        self.routes.retain(|r| r.dev != ifindex);
    }
}
