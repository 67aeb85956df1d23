//! The ways of sockets that are bound to a device or to a VRF (`SO_BINDTODEVICE`).
//!
//! Follows: linux v6.12 `net/ipv4/route.c` `ip_route_output_key_hash_rcu`.

use crate::Host;
use crate::route::{Hop, Key, RouteKind};
use penstock_model::Time;
use std::net::Ipv4Addr;

impl Host {
    /// The way of a packet whose socket is bound to a device: by that one, or in that VRF.
    #[cold]
    pub(crate) fn route_bound(&mut self, key: Key) -> Hop {
        let up = self.devices.get(key.oif).is_some_and(|d| d.up);
        let on_link = self.vrf_of(key.oif) == 0;
        let hop = if up { self.fib.search_key(&key) } else { Hop::NONE };
        match hop.kind {
            None if up && on_link => {
                Hop { kind: Some(RouteKind::Unicast), oif: key.oif, next: key.dst, ..hop }
            }
            _ => hop,
        }
    }
    /// The source address of a socket that is bound to a device or a VRF; `None` where there is no route.
    pub(crate) fn source_bound(&mut self, bound: u32, dst: Ipv4Addr) -> Option<Ipv4Addr> {
        let key = Key { oif: bound, ..Key::to(dst) };
        let hop = self.route_bound(key);
        let usable = matches!(hop.kind, Some(RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast));
        let of_vrf = self.source_of_vrf(&hop, self.fib.l3mdevs().update_flow(key).l3mdev);
        usable.then(|| of_vrf.unwrap_or_else(|| self.source_for(&hop, dst)))
    }
    /// The MTU of the route to `dst` of a socket that is bound to a device or a VRF.
    pub(crate) fn mtu_bound(&mut self, bound: u32, dst: Ipv4Addr, now: Time) -> Option<u32> {
        let hop = self.route_bound(Key { oif: bound, ..Key::to(dst) });
        let usable = matches!(hop.kind, Some(RouteKind::Unicast | RouteKind::Local | RouteKind::Broadcast));
        usable.then(|| self.mtu_of(&hop, dst, now))
    }
}
