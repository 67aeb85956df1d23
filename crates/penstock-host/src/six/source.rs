//! Which of its addresses a machine speaks with.
//!
//! Follows: linux v6.12 `net/ipv6/addrconf.c` `ipv6_dev_get_saddr`, `ipv6_get_saddr_eval`, `addrlabel.c`; RFC 6724 section 5.
//! Differs: no temporary and no home addresses.

use super::{Address6, Hop6, Kind6, Labels, is_link_local, mask};
use crate::{Devices, Host, NetDevice};
use std::net::Ipv6Addr;

/// `__ipv6_addr_src_scope`: 1 this machine, 2 this link, 5 site, 14 all; of a group its own.
fn scope(addr: Ipv6Addr) -> i32 {
    let first = addr.segments()[0];
    match first {
        _ if addr.is_multicast() => i32::from(first & 0xf),
        _ if addr.is_loopback() => 2,
        _ if is_link_local(addr) => 2,
        _ if first & 0xffc0 == 0xfec0 => 5,
        _ => 14,
    }
}

/// `ipv6_addr_orchid`: 2001:10::/28.
fn orchid(addr: Ipv6Addr) -> bool {
    u128::from(addr) & mask(28) == 0x2001_0010 << 96
}

/// How well an address speaks to another, by the rules in their order: the greater the better.
type Score = (bool, i32, bool, bool, bool, bool, u32);

fn score(labels: &Labels, a: &Address6, ifindex: u32, dst: Ipv6Addr, oif: u32) -> Score {
    let (own, wanted) = (scope(a.addr), scope(dst));
    let distance = if own >= wanted { -own } else { own - 128 };
    let common = (u128::from(a.addr) ^ u128::from(dst)).leading_zeros().min(a.len.into());
    (
        a.addr == dst,
        distance,
        is_link_local(a.addr) || !a.is_deprecated(),
        oif == 0 || oif == ifindex,
        labels.of(a.addr, ifindex) == labels.of(dst, oif),
        orchid(a.addr) == orchid(dst),
        common,
    )
}

/// The address that a machine with these devices speaks to `dst` with over device `oif`; 0 is any (`ipv6_dev_get_saddr`).
pub(crate) fn select(devices: &Devices, dst: Ipv6Addr, oif: u32) -> Option<Ipv6Addr> {
    let near = oif != 0 && (dst.is_multicast() || scope(dst) <= 2);
    let mut best: Option<(Score, Ipv6Addr)> = None;
    for device in devices.iter().filter(|d| d.up && (!near || d.ifindex == oif)) {
        for a in &device.addresses6 {
            let score = score(&devices.labels, a, device.ifindex, dst, oif);
            if best.is_none_or(|b| score > b.0) {
                best = Some((score, a.addr));
            }
        }
    }
    best.map(|b| b.1)
}

/// The first address of a device that is of no other scope than `dst`; of all scopes where `dst` is global (`nf_nat_redirect_ipv6`).
pub(crate) fn of_scope(device: &NetDevice, dst: Ipv6Addr) -> Option<Ipv6Addr> {
    // IPV6_ADDR_SCOPE_MASK: this machine, this link, site.
    let bits = |addr: Ipv6Addr| match (scope(addr), addr.is_multicast()) {
        _ if addr.is_loopback() => 0x10,
        (1, true) => 0x10,
        (2, _) => 0x20,
        (5, _) => 0x40,
        _ => 0,
    };
    let wanted = bits(dst);
    let usable =
        |a: &&Address6| a.addr.to_ipv4_mapped().is_none() && (wanted == 0 || wanted & bits(a.addr) != 0);
    device.addresses6.iter().find(usable).map(|a| a.addr)
}

impl Host {
    /// The address to speak to `dst` with over device `oif`; 0 is any.
    pub(crate) fn select_source6(&self, dst: Ipv6Addr, oif: u32) -> Option<Ipv6Addr> {
        select(&self.devices, dst, oif)
    }
    /// The source address of a packet of its own on its way (`ip6_route_get_saddr`).
    pub(crate) fn source6(&self, hop: &Hop6, dst: Ipv6Addr) -> Option<Ipv6Addr> {
        if !hop.src.is_unspecified() {
            return Some(hop.src);
        }
        let own = matches!(hop.kind, Some(Kind6::Local | Kind6::Anycast));
        self.select_source6(dst, if own { 0 } else { hop.oif })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_model::Kernel;

    /// RFC 6724 section 10.1, as far as it is about what is kept here; the kernel's own order where it has another.
    #[test]
    fn the_source_is_chosen_by_the_rules() {
        let ip = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        for (dst, candidates, want) in [
            // Appropriate scope.
            ("2001:db8:1::1", &["2001:db8:3::1/64", "fe80::1/64"][..], "2001:db8:3::1"),
            ("ff05::1", &["2001:db8:3::1/64", "fe80::1/64"], "2001:db8:3::1"),
            // The same address, and a scope that is no wider than need be.
            ("2001:db8:1::1", &["2001:db8:1::1/64", "2001:db8:2::1/64"], "2001:db8:1::1"),
            ("fe80::2", &["fe80::9/64", "2001:db8:1::1/64"], "fe80::9"),
            // The longest prefix in common, no longer than the address's own.
            ("2001:db8:1::1", &["2001:db8:1::2/64", "2001:db8:3::2/64"], "2001:db8:1::2"),
            ("2001:db8:1::1", &["2001:db8:3::2/32", "2001:db8:1::2/32"], "2001:db8:1::2"),
            // Matching labels.
            ("2002:c633:6401::1", &["2001:db8:1::2/64", "2002:c633:6401::d5e3/16"], "2002:c633:6401::d5e3"),
            ("fd11::1", &["2001:db8:1::2/64", "fd99::2/64"], "fd99::2"),
            ("2001:db8:9::1", &["fd11::2/64", "2001:db8:1::2/64"], "2001:db8:1::2"),
        ] {
            let mut host = Host::new("h", Kernel::V6_12, 1);
            let dev = host.add_device("eth0");
            for text in candidates {
                let (addr, len) = text.split_once('/').unwrap();
                host.add_address6(dev, ip(addr), len.parse().unwrap()).unwrap();
            }
            assert_eq!(host.select_source6(ip(dst), dev), Some(ip(want)), "{dst} of {candidates:?}");
        }
    }

    #[test]
    fn a_deprecated_address_and_one_of_another_device_stand_back() {
        let ip = |text: &str| text.parse::<Ipv6Addr>().unwrap();
        let mut host = Host::new("h", Kernel::V6_12, 1);
        let (a, b) = (host.add_device("eth0"), host.add_device("eth1"));
        let old = Address6 {
            lifetime: crate::Lifetime::new(Some((100, 0)), 0),
            ..Address6::new(ip("2001:db8:1::2"), 64)
        };
        host.insert_address6(a, old).unwrap();
        host.add_address6(a, ip("2001:db8:2::2"), 64).unwrap();
        host.add_address6(b, ip("2001:db8:1::3"), 64).unwrap();
        assert_eq!(host.select_source6(ip("2001:db8:1::9"), a), Some(ip("2001:db8:2::2")));
        assert_eq!(host.select_source6(ip("2001:db8:1::9"), b), Some(ip("2001:db8:1::3")));
    }
}
