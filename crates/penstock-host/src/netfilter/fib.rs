//! What rules ask the routes: `-m rpfilter`, nft's `fib`.
//!
//! Follows: linux v6.12 `net/ipv4/netfilter/ipt_rpfilter.c` `rpfilter_mt`, `rpfilter_lookup_reverse`, `nft_fib_ipv4.c` `nft_fib4_eval`,
//! `nft_fib4_eval_type`, `net/ipv6/netfilter/ip6t_rpfilter.c`, `nft_fib_ipv6.c`.
//! Differs: `fib … type` of IPv6 knows local, multicast and unicast addresses; that of IPv4 without a device does not ask the table of a VRF.

use super::eval::{Ip, Way, address_type, address_type6};
use crate::route::{Key, Ports, Route, RouteKind};
use crate::six::Key6;
use penstock_lang::iptables::Rpfilter;
use penstock_lang::nft::fib::{DADDR, IIF, MARK, SADDR};
use penstock_packet::headers::Ipv4;
use penstock_packet::{L3, Skb};
use std::net::Ipv4Addr;

/// Whether a packet has come in by `lo`.
fn from_lo(way: &Way<'_>) -> bool {
    way.devices.input == "lo"
}

/// The source of a lookup back: none where it is a broadcast, a multicast or no address (`get_saddr`).
fn source(addr: Ipv4Addr) -> Ipv4Addr {
    let no = addr.is_multicast() || addr.is_broadcast() || addr.is_unspecified();
    if no { Ipv4Addr::UNSPECIFIED } else { addr }
}

/// What a host without an address sends to its link.
fn of_no_one(h: Ipv4) -> bool {
    h.src.is_unspecified() && (h.dst.is_broadcast() || h.dst.octets()[..3] == [224, 0, 0])
}

/// A route by the rules for an address.
fn route<'a>(way: &Way<'a>, key: &Key) -> Option<&'a Route> {
    way.devices.fib?.search_route(key).ok().flatten()
}

/// The VRF of a device; 0: none.
fn vrf(way: &Way<'_>, dev: u32) -> u32 {
    way.devices.fib.map_or(0, |f| f.l3mdevs().of(dev).master)
}

/// `-m rpfilter`: whether the way back to the sender leads where the packet came from.
pub(super) fn rpfilter(asked: Rpfilter, skb: &Skb, way: &Way<'_>) -> bool {
    if from_lo(way) {
        return !asked.invert;
    }
    let iif = way.devices.ports.map_or(0, |p| p.iif);
    let mark = if asked.validmark { skb.mark } else { 0 };
    let back = match skb.l3 {
        L3::Ipv4(h) => {
            if of_no_one(h) {
                return !asked.invert;
            }
            let l3mdev = vrf(way, iif);
            let key = Key { src: source(h.dst), tos: h.tos & 0xfc, mark, l3mdev, ..Key::to(h.src) };
            route(way, &key).is_some_and(|r| {
                let may = r.kind == RouteKind::Unicast || r.kind == RouteKind::Local && asked.accept_local;
                may && (asked.loose || r.uses(iif))
            })
        }
        L3::Ipv6(h) => {
            if h.src.is_unspecified() {
                return !asked.invert;
            }
            let key = Key6 {
                src: if h.dst.is_multicast() { std::net::Ipv6Addr::UNSPECIFIED } else { h.dst },
                mark,
                oif: if asked.loose { 0 } else { iif },
                ..Key6::to(h.src)
            };
            way.devices.fib6.and_then(|f| f.search_route(&key)).is_some_and(|r| match r.kind {
                2 => asked.accept_local,
                1 => asked.loose || r.dev == iif,
                _ => false,
            })
        }
        _ => return false,
    };
    back != asked.invert
}

/// `fib … oif`: the device of the route to an address, 0 where there is none; `None`: the packet is of no family that has routes.
pub(super) fn oif(by: u8, skb: &Skb, way: &Way<'_>) -> Option<u32> {
    let ports = way.devices.ports?;
    // The device that a route must use.
    let must = match by {
        by if by & IIF != 0 => ports.iif,
        by if by & penstock_lang::nft::fib::OIF != 0 => ports.oif,
        _ => 0,
    };
    if from_lo(way) {
        return Some(ports.iif);
    }
    let mark = if by & MARK != 0 { skb.mark } else { 0 };
    Some(match skb.l3 {
        L3::Ipv4(h) => {
            if of_no_one(h) {
                return Some(ports.iif);
            }
            let (dst, src) = if by & SADDR != 0 { (h.src, source(h.dst)) } else { (h.dst, source(h.src)) };
            let ports = Ports { protocol: h.protocol, ..Ports::default() };
            let key = Key { src, tos: h.tos & 0xfc, mark, ports, l3mdev: vrf(way, must), ..Key::to(dst) };
            let found =
                route(way, &key).filter(|r| matches!(r.kind, RouteKind::Unicast | RouteKind::Broadcast));
            found.filter(|r| must == 0 || r.uses(must)).map_or(0, |r| if must != 0 { must } else { r.dev })
        }
        L3::Ipv6(h) => {
            let (dst, src) = if by & SADDR != 0 { (h.src, h.dst) } else { (h.dst, h.src) };
            let src = if src.is_multicast() { std::net::Ipv6Addr::UNSPECIFIED } else { src };
            let key = Key6 { src, mark, oif: must, ..Key6::to(dst) };
            let found = way.devices.fib6.and_then(|f| f.search_route(&key)).filter(|r| r.kind == 1);
            found.filter(|r| must == 0 || r.dev == must).map_or(0, |r| r.dev)
        }
        _ => return None,
    })
}

/// `fib … type`: a number of `RTN_…`.
pub(super) fn addr_type(by: u8, skb: &Skb, way: &Way<'_>) -> u32 {
    let Some(ip) = Ip::of(skb) else { return 0 };
    let addr = if by & DADDR != 0 { ip.dst } else { ip.src };
    match skb.l3 {
        L3::Ipv6(_) => address_type6(addr, way.devices),
        _ => {
            let ports = way.devices.ports;
            let dev = match by {
                by if by & IIF != 0 => ports.map_or(0, |p| p.iif),
                by if by & penstock_lang::nft::fib::OIF != 0 => ports.map_or(0, |p| p.oif),
                _ => 0,
            };
            address_type(addr, dev, way.devices)
        }
    }
}
