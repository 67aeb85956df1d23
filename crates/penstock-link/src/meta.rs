//! What queues look at: a packet's length and headers.

use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::{Fragment, Icmp, IcmpBody, Ipv4, Ipv6, L3, L4, Tcp, TcpFlags, Udp};
use std::net::{IpAddr, SocketAddr};

/// A packet as queues see it.
#[derive(Clone, Debug)]
pub struct Meta {
    /// Length of the frame with its Ethernet header, bytes.
    pub len: u32,
    /// Network header.
    pub l3: L3,
    /// Transport header.
    pub l4: L4,
    /// `skb->priority`: what `prio` and `pfifo_fast` choose a band by. Of IPv4 it follows from the ToS.
    pub priority: u32,
    /// `skb->mark`, for `fw` filters and cake. 0 unless set.
    pub mark: u32,
}

impl Meta {
    /// Of an IP datagram, from its bytes. TCP's options and IPv4's are not read (`cake ack-filter` sees ACKs without options); of anything else than IP only the
    /// length is known.
    pub fn of_ip(datagram: &[u8]) -> Meta {
        let len = datagram.len() as u32 + ETH_HLEN;
        let read = match datagram.first().map(|b| b >> 4) {
            Some(4) => ipv4(datagram),
            Some(6) => ipv6(datagram),
            _ => None,
        };
        let (l3, l4) = read.unwrap_or((L3::Other(0), L4::None));
        Meta::with(len, l3, l4)
    }

    /// Of a datagram of UDP between these sockets: its payload in bytes and its ToS. For who has no bytes of headers.
    pub fn udp(from: SocketAddr, to: SocketAddr, payload: u32, tos: u8) -> Meta {
        let l4 = L4::Udp(Udp { sport: from.port(), dport: to.port() });
        let protocol = ipproto::UDP;
        let (header, l3) = match (from.ip(), to.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                (20, L3::Ipv4(Ipv4 { src, dst, tos, ttl: 64, protocol, id: 0, frag_off: 0 }))
            }
            (src, dst) => {
                let six = |ip: IpAddr| match ip {
                    IpAddr::V4(ip) => ip.to_ipv6_mapped(),
                    IpAddr::V6(ip) => ip,
                };
                let (src, dst) = (six(src), six(dst));
                let head = Ipv6 {
                    src,
                    dst,
                    traffic_class: tos,
                    flow_label: 0,
                    next_header: protocol,
                    hop_limit: 64,
                    fragment: Fragment::NONE,
                };
                (40, L3::Ipv6(head))
            }
        };
        Meta::with(payload + 8 + header + ETH_HLEN, l3, l4)
    }

    fn with(len: u32, l3: L3, l4: L4) -> Meta {
        let priority = match l3 {
            L3::Ipv4(ip) => priority(ip.tos),
            _ => 0,
        };
        Meta { len, l3, l4, priority, mark: 0 }
    }
}

//= linux v6.12 net/ipv4/route.c ip_tos2prio
/// `skb->priority` of a type of service.
pub(crate) fn priority(tos: u8) -> u32 {
    const PRIO: [u32; 16] = [0, 0, 0, 0, 2, 2, 2, 2, 6, 6, 6, 6, 4, 4, 4, 4];
    PRIO[usize::from((tos & 0x1e) >> 1)]
}

fn two(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn four(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn ipv4(b: &[u8]) -> Option<(L3, L4)> {
    let head = Ipv4 {
        src: four(b, 12)?.into(),
        dst: four(b, 16)?.into(),
        tos: *b.get(1)?,
        ttl: *b.get(8)?,
        protocol: *b.get(9)?,
        id: two(b, 4)?,
        frag_off: two(b, 6)?,
    };
    let at = usize::from(b[0] & 0xf) * 4;
    // Behind the first fragment stands no transport header.
    let first = head.frag_off & 0x1fff == 0;
    let l4 = if first { transport(b, at, head.protocol).unwrap_or(L4::None) } else { L4::None };
    Some((L3::Ipv4(head), l4))
}

fn ipv6(b: &[u8]) -> Option<(L3, L4)> {
    let address = |at: usize| -> Option<[u8; 16]> { b.get(at..at + 16)?.try_into().ok() };
    let word = four(b, 0)?;
    let mut head = Ipv6 {
        src: address(8)?.into(),
        dst: address(24)?.into(),
        traffic_class: (word >> 20) as u8,
        flow_label: word & 0xf_ffff,
        next_header: *b.get(6)?,
        hop_limit: *b.get(7)?,
        fragment: Fragment::NONE,
    };
    if head.next_header == ipproto::FRAGMENT {
        head.fragment = Fragment { next_header: *b.get(40)?, frag_off: two(b, 42)?, id: four(b, 44)? };
    }
    let l4 = match head.is_later_fragment() {
        true => L4::None,
        false => transport(b, head.header_len() as usize, head.protocol()).unwrap_or(L4::None),
    };
    Some((L3::Ipv6(head), l4))
}

fn transport(b: &[u8], at: usize, protocol: u8) -> Option<L4> {
    Some(match protocol {
        ipproto::TCP => L4::Tcp(Tcp {
            sport: two(b, at)?,
            dport: two(b, at + 2)?,
            seq: four(b, at + 4)?,
            ack: four(b, at + 8)?,
            window: two(b, at + 14)?,
            flags: TcpFlags(u16::from(*b.get(at + 12)? & 1) << 8 | u16::from(*b.get(at + 13)?)),
            ..Tcp::default()
        }),
        ipproto::UDP => L4::Udp(Udp { sport: two(b, at)?, dport: two(b, at + 2)? }),
        ipproto::ICMP => L4::Icmp(Icmp {
            ty: *b.get(at)?,
            code: *b.get(at + 1)?,
            id: two(b, at + 4)?,
            seq: two(b, at + 6)?,
            body: IcmpBody::Data,
        }),
        _ => L4::None,
    })
}

/// Writes a type of service (or traffic class) into an IP datagram, with IPv4's checksum.
pub fn set_tos(datagram: &mut [u8], tos: u8) {
    match datagram.first().map(|b| b >> 4) {
        Some(4) if datagram.len() >= 20 => {
            let old = u16::from_be_bytes([datagram[0], datagram[1]]);
            datagram[1] = tos;
            let new = u16::from_be_bytes([datagram[0], tos]);
            // RFC 1624: HC' = ~(~HC + ~m + m').
            let check = u16::from_be_bytes([datagram[10], datagram[11]]);
            let sum = u32::from(!check) + u32::from(!old) + u32::from(new);
            let sum = (sum & 0xffff) + (sum >> 16);
            let sum = (sum & 0xffff) + (sum >> 16);
            datagram[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
        }
        Some(6) if datagram.len() >= 40 => {
            datagram[0] = 0x60 | tos >> 4;
            datagram[1] = tos << 4 | datagram[1] & 0xf;
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_packet::Skb;
    use penstock_packet::skb::HEADER_MAX;

    /// The bytes that the packet crate writes of these headers.
    fn bytes(meta: &Meta) -> Vec<u8> {
        let mut head = [0; HEADER_MAX];
        let len = Skb::new(meta.len, meta.l3, meta.l4).header_bytes(&mut head);
        let mut all = head[14..len].to_vec();
        all.resize(meta.len as usize - 14, 0);
        all
    }

    #[test]
    fn headers_are_read_as_they_are_written() {
        let pairs = [("10.0.0.1:5", "10.0.0.2:6"), ("[fd00::1]:5", "[fd00::2]:6")];
        for (from, to) in pairs {
            let meta = Meta::udp(from.parse().unwrap(), to.parse().unwrap(), 100, 0xb8);
            let read = Meta::of_ip(&bytes(&meta));
            assert_eq!(
                (read.len, read.l3, read.l4, read.priority),
                (meta.len, meta.l3, meta.l4, meta.priority)
            );
        }
        let udp = Meta::udp("10.0.0.1:5".parse().unwrap(), "10.0.0.2:6".parse().unwrap(), 0, 0x10);
        assert_eq!((udp.len, udp.priority), (42, 6));
        for cut in 0..28 {
            // Whatever is cut off, nothing panics.
            let _ = Meta::of_ip(&bytes(&udp)[..cut]);
        }
    }

    #[test]
    fn a_mark_is_written_with_the_checksum() {
        let meta = |tos| Meta::udp("10.0.0.1:5".parse().unwrap(), "10.0.0.2:6".parse().unwrap(), 9, tos);
        let mut datagram = bytes(&meta(2));
        set_tos(&mut datagram, 3);
        assert_eq!(datagram, bytes(&meta(3)));
        let six = |tos| Meta::udp("[fd00::1]:5".parse().unwrap(), "[fd00::2]:6".parse().unwrap(), 9, tos);
        let mut datagram = bytes(&six(2));
        set_tos(&mut datagram, 0xbb);
        assert_eq!(datagram, bytes(&six(0xbb)));
    }
}
