//! Which slave of a bond a flow goes by.
//!
//! Follows: linux v6.12 `drivers/net/bonding/bond_main.c` `__bond_xmit_hash`, `bond_flow_dissect`, `bond_flow_ip`, `bond_eth_hash`, `bond_ip_hash`,
//! on a machine that stores the low byte first.

use penstock_packet::headers::ipproto;
use penstock_packet::{L3, L4, Skb};
use std::net::IpAddr;

/// `xmit_hash_policy`: by its number, as the kernel counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Policy {
    /// `layer2`.
    Layer2 = 0,
    /// `layer3+4`.
    Layer34 = 1,
    /// `layer2+3`.
    Layer23 = 2,
    /// `encap2+3`: kept and shown.
    Encap23 = 3,
    /// `encap3+4`: kept and shown.
    Encap34 = 4,
    /// `vlan+srcmac`: kept and shown.
    VlanSrcmac = 5,
}

impl Policy {
    /// All, by number.
    pub(crate) const ALL: [Policy; 6] = [
        Policy::Layer2,
        Policy::Layer34,
        Policy::Layer23,
        Policy::Encap23,
        Policy::Encap34,
        Policy::VlanSrcmac,
    ];
    /// The word of it.
    pub(crate) fn name(self) -> &'static str {
        ["layer2", "layer3+4", "layer2+3", "encap2+3", "encap3+4", "vlan+srcmac"][self as usize]
    }
    pub(crate) fn is_not_here(self) -> bool {
        matches!(self, Policy::Encap23 | Policy::Encap34 | Policy::VlanSrcmac)
    }
}

/// The ethertype of what a frame carries.
fn ethertype(skb: &Skb) -> u32 {
    match skb.l3 {
        L3::Ipv4(_) => 0x0800,
        L3::Ipv6(_) => 0x86dd,
        L3::Arp(_) => 0x0806,
        _ => 0,
    }
}
/// `bond_eth_hash`.
fn eth_hash(skb: &Skb) -> u32 {
    u32::from(skb.eth.0[5]) ^ u32::from(skb.eth.1[5]) ^ ethertype(skb)
}
/// `flow_get_u32_src`, `flow_get_u32_dst`: an address as the machine has it in memory.
fn word(addr: IpAddr) -> u32 {
    match addr {
        IpAddr::V4(a) => u32::from_le_bytes(a.octets()),
        IpAddr::V6(a) => {
            let o = a.octets();
            (0..4).fold(0, |sum, n| {
                sum ^ u32::from_le_bytes([o[4 * n], o[4 * n + 1], o[4 * n + 2], o[4 * n + 3]])
            })
        }
    }
}
/// Two ports as they stand in the packet.
fn ports(protocol: u8, sport: u16, dport: u16) -> u32 {
    if !matches!(protocol, ipproto::TCP | ipproto::UDP) {
        return 0;
    }
    let (s, d) = (sport.to_be_bytes(), dport.to_be_bytes());
    u32::from_le_bytes([s[0], s[1], d[0], d[1]])
}

/// The hash of a frame.
pub(super) fn xmit_hash(policy: Policy, skb: &Skb) -> u32 {
    let (mut src, mut dst, protocol, fragment) = match skb.l3 {
        L3::Ipv4(h) => (h.src.into(), h.dst.into(), h.protocol, h.frag_off & 0x3fff != 0),
        L3::Ipv6(h) => (h.src.into(), h.dst.into(), h.protocol(), h.is_later_fragment()),
        _ => return eth_hash(skb),
    };
    if policy == Policy::Layer2 {
        return eth_hash(skb);
    }
    let mut of_ports = 0;
    let mut of_icmp = 0;
    if !fragment {
        match skb.l4 {
            L4::Tcp(t) => of_ports = ports(protocol, t.sport, t.dport),
            L4::Udp(u) => of_ports = ports(protocol, u.sport, u.dport),
            L4::Icmp(i) => {
                if let Some(about) = i.about() {
                    (src, dst) = (about.src, about.dst);
                    of_ports = ports(about.protocol, about.sport, about.dport);
                } else if has_id(protocol, i.ty) {
                    let id = i.id.max(1).to_le_bytes();
                    of_icmp = u32::from_le_bytes([i.ty, i.code, id[0], id[1]]);
                }
            }
            L4::None => {}
        }
    }
    let mut hash = match policy {
        Policy::Layer23 => eth_hash(skb),
        _ if of_icmp != 0 => of_icmp,
        _ => of_ports,
    };
    hash ^= word(dst) ^ word(src);
    hash ^= hash >> 16;
    hash ^= hash >> 8;
    // The lowest bit of even ports says little.
    if policy == Policy::Layer34 { hash >> 1 } else { hash }
}

/// `icmp_has_id`, `icmpv6_has_id` (of both families' numbers the kernel asks the one list).
fn has_id(protocol: u8, ty: u8) -> bool {
    match protocol {
        ipproto::ICMP => matches!(ty, 0 | 8 | 13 | 14 | 17 | 18),
        _ => matches!(ty, 128 | 129),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{echo, set4, udp};

    /// As `bond_main.c` computes it by hand for 10.0.0.1:1000 to 10.0.0.2:2000.
    #[test]
    fn a_flow_s_hash_is_the_kernel_s() {
        let mut skb = udp("10.0.0.1", "10.0.0.2", 100);
        skb.eth = ([2, 0, 0, 0, 0, 0x11], [2, 0, 0, 0, 0, 0x23]);
        skb.l4 = L4::Udp(penstock_packet::Udp { sport: 1000, dport: 2000 });
        assert_eq!(xmit_hash(Policy::Layer2, &skb), 0x11 ^ 0x23 ^ 0x800);
        // Addresses differ in the last byte by 3, which is the highest byte of the word.
        let fold = |hash: u32| {
            let hash = hash ^ hash >> 16;
            hash ^ hash >> 8
        };
        assert_eq!(xmit_hash(Policy::Layer23, &skb), fold(0x832 ^ 0x0300_0000));
        // 1000 is 03 e8, 2000 is 07 d0: in memory 03 e8 07 d0.
        assert_eq!(xmit_hash(Policy::Layer34, &skb), fold(0xd007_e803 ^ 0x0300_0000) >> 1);
        // Fragments have no ports.
        set4(&mut skb, |h| h.frag_off = 0x2000);
        assert_eq!(xmit_hash(Policy::Layer34, &skb), fold(0x0300_0000) >> 1);
        let mut ping = echo("10.0.0.2");
        set4(&mut ping, |h| h.src = [10, 0, 0, 1].into());
        ping.l4 = L4::Icmp(penstock_packet::Icmp::new(8, 0, 0x1234, 1));
        assert_eq!(xmit_hash(Policy::Layer34, &ping), fold(0x1234_0008 ^ 0x0300_0000) >> 1);
    }
}
