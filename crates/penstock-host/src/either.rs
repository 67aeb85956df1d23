//! What a socket asks of its machine, by an address of either family.

use crate::Host;
use crate::route::{Key, RouteKind};
use crate::six::{Key6, Kind6};
use crate::tcp::TcpRoute;
use penstock_model::{KernelError, Time};
use std::net::{IpAddr, Ipv6Addr};

impl Host {
    /// The source address this machine speaks to `dst` with; `None` where there is no route.
    pub fn source_to(&mut self, dst: IpAddr) -> Option<IpAddr> {
        match dst {
            IpAddr::V4(dst) => self.source_towards(dst).map(IpAddr::V4),
            IpAddr::V6(dst) => self.source_towards6(dst).map(IpAddr::V6),
        }
    }
    /// The same where a socket says why it cannot be connected: what its call returns.
    ///
    /// # Errors
    /// ENETUNREACH (101), EHOSTUNREACH (113), EACCES (13), EINVAL (22), as the way leads nowhere; EADDRNOTAVAIL (99) without an address.
    pub fn connects_by(&mut self, bound: u32, dst: IpAddr) -> Result<IpAddr, KernelError> {
        self.connects_marked(0, bound, dst)
    }
    /// The same of a socket whose packets have a mark (`SO_MARK`).
    ///
    /// # Errors
    /// As [`Host::connects_by`].
    pub fn connects_marked(&mut self, mark: u32, bound: u32, dst: IpAddr) -> Result<IpAddr, KernelError> {
        let errno = match dst {
            IpAddr::V4(dst) => {
                let key = Key { oif: bound, mark, ..Key::to(dst) };
                let hop = if bound != 0 { self.route_bound(key) } else { self.route_output(key) };
                match hop.kind {
                    Some(RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast) => 0,
                    Some(RouteKind::Unreachable) => 113,
                    Some(RouteKind::Prohibit) => 13,
                    Some(RouteKind::Blackhole) => KernelError::EINVAL,
                    Some(RouteKind::Throw) | None => 101,
                }
            }
            IpAddr::V6(dst) => match self.lookup6(&Key6 { mark, ..Key6::to(dst) }).kind {
                Some(kind) if kind.leads() => 0,
                Some(Kind6::Unreachable) => 113,
                Some(Kind6::Prohibit) => 13,
                Some(_) => KernelError::EINVAL,
                None => 101,
            },
        };
        match errno {
            0 => self.source_by(bound, dst).ok_or(KernelError::errno(99)),
            errno => {
                let ip = if dst.is_ipv4() { &mut self.snmp.ip } else { &mut self.snmp.ip6 };
                ip.out_no_routes += u64::from(errno == 101);
                Err(KernelError::errno(errno))
            }
        }
    }
    /// The source address of a socket of IPv6 that speaks to `dst` over device `dev` (`%dev` behind an address, `IPV6_PKTINFO`), and the device. 0: that
    /// which the first route names, also where the address means something on one link only.
    ///
    /// # Errors
    /// As [`Host::connects_by`].
    pub fn connects_over(
        &mut self,
        mark: u32,
        dev: u32,
        dst: Ipv6Addr,
    ) -> Result<(Ipv6Addr, u32), KernelError> {
        let key = Key6 { mark, oif: dev, strict: dev != 0, ..Key6::to(dst) };
        let hop = self.lookup6(&key);
        match hop.kind {
            Some(kind) if kind.leads() => {
                let source = self.source6(&hop, dst).ok_or(KernelError::errno(99))?;
                Ok((source, if hop.oif != 0 { hop.oif } else { dev }))
            }
            Some(Kind6::Unreachable) => Err(KernelError::errno(113)),
            Some(Kind6::Prohibit) => Err(KernelError::errno(13)),
            Some(_) => Err(KernelError::errno(KernelError::EINVAL)),
            None => {
                self.snmp.ip6.out_no_routes += 1;
                Err(KernelError::errno(101))
            }
        }
    }
    /// The same of a socket that is bound to a device or a VRF, where it speaks IPv4; 0: to none.
    pub fn source_by(&mut self, bound: u32, dst: IpAddr) -> Option<IpAddr> {
        match dst {
            IpAddr::V4(dst) if bound != 0 => self.source_bound(bound, dst).map(IpAddr::V4),
            _ => self.source_to(dst),
        }
    }
    /// The MTU of the way to `dst` of a socket that is bound to a device or a VRF, where it speaks IPv4; 0: to none.
    pub fn mtu_by(&mut self, bound: u32, dst: IpAddr, now: Time) -> Option<u32> {
        match dst {
            IpAddr::V4(dst) if bound != 0 => self.mtu_bound(bound, dst, now),
            _ => self.mtu_to(dst, now),
        }
    }
    /// What the route to `dst` says of a connection whose socket is bound to a device or a VRF; 0: to none.
    pub fn tcp_route_by(&self, bound: u32, dst: IpAddr) -> TcpRoute {
        match dst {
            IpAddr::V4(dst) if bound != 0 => self.tcp_route_of(&Key { oif: bound, ..Key::to(dst) }),
            _ => self.tcp_route_to(dst),
        }
    }
    /// The MTU of the way to `dst`; `None` where there is none. A socket's MSS follows from it.
    pub fn mtu_to(&mut self, dst: IpAddr, now: Time) -> Option<u32> {
        match dst {
            IpAddr::V4(dst) => self.mtu_towards(dst, now),
            IpAddr::V6(dst) => self.mtu_towards6(dst, now),
        }
    }
    /// The device that leads to `dst` for a socket bound to a device or a VRF (0: to none); `None` where no route does, or `dst` is not another machine.
    pub(crate) fn way_of(&mut self, bound: u32, dst: IpAddr) -> Option<u32> {
        match dst {
            IpAddr::V4(dst) => {
                let key = Key { oif: bound, ..Key::to(dst) };
                let hop = if bound != 0 { self.route_bound(key) } else { self.route_output(key) };
                (hop.kind == Some(RouteKind::Unicast)).then_some(hop.oif)
            }
            IpAddr::V6(dst) => {
                let hop = self.lookup6(&Key6::to(dst));
                (hop.kind == Some(Kind6::Unicast)).then_some(hop.oif)
            }
        }
    }
    /// Whether `addr` is one of this machine's.
    pub fn has_address(&self, addr: IpAddr) -> bool {
        match addr {
            IpAddr::V4(addr) => self.is_local(addr),
            IpAddr::V6(addr) => self.is_local6(addr),
        }
    }
    /// What the route to `dst` says of a connection.
    pub fn tcp_route_to(&self, dst: IpAddr) -> TcpRoute {
        match dst {
            IpAddr::V4(dst) => self.tcp_route(dst),
            IpAddr::V6(dst) => match self.six.fib.search_route(&Key6::to(dst)) {
                Some(route) => TcpRoute::of(&route.metrics),
                None => TcpRoute::default(),
            },
        }
    }
}
