//! What tells a connection's packets of one direction from all others.
//!
//! Follows: linux v6.12 `net/netfilter/nf_conntrack_core.c` `nf_ct_get_tuple`, `nf_ct_invert_tuple`; `nf_conntrack_proto_icmp.c`
//! `icmp_pkt_to_tuple`, `icmp_invert_tuple`.

use crate::netfilter::places::Key;
use penstock_packet::headers::{Quoted, ipproto};
use penstock_packet::{Icmp, L3, L4, Skb};
use std::net::{IpAddr, Ipv4Addr};

/// Addresses, protocol, ports. ICMP has its identifier as source port, and type and code as destination port.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Tuple {
    /// Source address, an IPv4 one in the low 32 bits.
    pub src: u128,
    /// Destination address.
    pub dst: u128,
    /// Protocol number.
    pub protocol: u8,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
    /// The zone, in which the same addresses are another connection; 0 where nobody has chosen one.
    pub zone: u16,
}

/// The type of the answer to an ICMP message, and of the message to an answer; `None`: it is neither.
fn counterpart(protocol: u8, ty: u8) -> Option<u8> {
    const PAIRS: [(u8, u8); 4] = [(8, 0), (13, 14), (15, 16), (17, 18)];
    if protocol == ipproto::ICMPV6 {
        return match ty {
            128 => Some(129),
            129 => Some(128),
            _ => None,
        };
    }
    PAIRS.iter().find_map(|&(ask, answer)| match ty {
        _ if ty == ask => Some(answer),
        _ if ty == answer => Some(ask),
        _ => None,
    })
}

fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, ipproto::ICMP | ipproto::ICMPV6)
}

pub(in crate::netfilter) fn four(addr: Ipv4Addr) -> u128 {
    u128::from(u32::from(addr))
}

pub(in crate::netfilter) fn any(addr: IpAddr) -> u128 {
    match addr {
        IpAddr::V4(a) => four(a),
        IpAddr::V6(a) => a.into(),
    }
}

impl Key for Tuple {
    fn words(&self) -> [u64; 5] {
        let ports = u64::from(self.zone) << 48
            | u64::from(self.protocol) << 32
            | u64::from(self.sport) << 16
            | u64::from(self.dport);
        [self.src as u64, (self.src >> 64) as u64, self.dst as u64, (self.dst >> 64) as u64, ports]
    }
}

impl Tuple {
    /// A packet's, in zone 0; `None` where it has none that is read.
    pub(in crate::netfilter) fn of(skb: &Skb) -> Option<Tuple> {
        let (src, dst, protocol) = match skb.l3 {
            L3::Ipv4(h) => (four(h.src), four(h.dst), h.protocol),
            L3::Ipv6(h) => (h.src.into(), h.dst.into(), h.protocol()),
            _ => return None,
        };
        let (sport, dport) = match skb.l4 {
            L4::Tcp(t) => (t.sport, t.dport),
            L4::Udp(u) => (u.sport, u.dport),
            L4::Icmp(i) => (i.id, u16::from(i.ty) << 8 | u16::from(i.code)),
            L4::None => (0, 0),
        };
        Some(Tuple { src, dst, protocol, sport, dport, zone: 0 })
    }
    /// Of the packet an ICMP error quotes; of an echo its type is not kept, and the request is meant.
    pub(in crate::netfilter) fn quoted(q: &Quoted) -> Tuple {
        let dport = match q.protocol {
            ipproto::ICMP => 8 << 8,
            ipproto::ICMPV6 => 128 << 8,
            _ => q.dport,
        };
        Tuple { src: any(q.src), dst: any(q.dst), protocol: q.protocol, sport: q.sport, dport, zone: 0 }
    }
    /// That of the answers; `None` for an ICMP message that has none.
    pub(in crate::netfilter) fn inverted(self) -> Option<Tuple> {
        let turned = Tuple { src: self.dst, dst: self.src, ..self };
        if is_icmp(self.protocol) {
            let ty = counterpart(self.protocol, (self.dport >> 8) as u8)?;
            return Some(Tuple { dport: u16::from(ty) << 8 | self.dport & 0xff, ..turned });
        }
        Some(Tuple { sport: self.dport, dport: self.sport, ..turned })
    }
    /// The same for a program.
    pub(crate) fn reverse(self) -> Option<Tuple> {
        self.inverted()
    }
    /// The same, of a tuple that a connection has.
    pub(in crate::netfilter) fn answer(self) -> Tuple {
        self.inverted().unwrap_or(self)
    }
    /// Whether it is ICMP.
    pub(crate) fn is_icmp(&self) -> bool {
        is_icmp(self.protocol)
    }
    /// Whether its first part is a message that asks for an answer.
    pub(super) fn asks(&self) -> bool {
        let ty = (self.dport >> 8) as u8;
        match self.protocol {
            ipproto::ICMP => matches!(ty, 8 | 13 | 15 | 17),
            ipproto::ICMPV6 => ty == 128,
            _ => true,
        }
    }
}

/// Whether an ICMPv6 message belongs to no connection: multicast listeners, routers and neighbours.
//= linux v6.12 net/netfilter/nf_conntrack_proto_icmpv6.c nf_conntrack_icmpv6_error
pub(super) fn is_never_tracked(ty: u8) -> bool {
    matches!(ty, 130..=136 | 143 | 151 | 152)
}

/// Whether an ICMP message speaks of another packet (`icmp_is_err`).
pub(super) fn is_error(protocol: u8, i: &Icmp) -> bool {
    match protocol {
        ipproto::ICMP => matches!(i.ty, 3 | 4 | 5 | 11 | 12),
        _ => i.ty < 128,
    }
}
