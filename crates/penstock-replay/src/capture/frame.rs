//! A captured frame as a packet.

use etherparse::{
    EtherType, Ipv6ExtensionSlice, LaxLinkExtSlice, LaxNetSlice, LaxSlicedPacket, TcpOptionElement,
    TransportSlice,
};
use penstock_packet::Skb;
use penstock_packet::headers::{
    Arp, ETH_HLEN, Fragment, Icmp, Ipv4, Ipv6, L3, L4, Tcp, TcpFlags, Udp, ipproto,
};

/// How a capture's frames begin (<https://www.tcpdump.org/linktypes.html>).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Link {
    /// Ethernet, `LINKTYPE_ETHERNET`.
    Ethernet,
    /// Bare IPv4 or IPv6, `LINKTYPE_RAW` and its kin.
    Raw,
    /// Linux cooked, `LINKTYPE_LINUX_SLL`: 16 bytes, what a capture on `any` had.
    Cooked,
    /// Linux cooked, `LINKTYPE_LINUX_SLL2`: 20 bytes, what it has today.
    Cooked2,
    /// Four bytes that tell the family, `LINKTYPE_NULL`.
    Null,
}

/// `pkt_type` of a packet that this machine sent, in the cooked forms.
const PACKET_OUTGOING: u8 = 4;

impl Link {
    /// The form of this number of a link type.
    pub fn of(number: u32) -> Option<Link> {
        match number {
            0 => Some(Link::Null),
            1 => Some(Link::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Link::Raw),
            113 => Some(Link::Cooked),
            276 => Some(Link::Cooked2),
            _ => None,
        }
    }

    /// The frame as Ethernet has it, how many bytes longer that is, and whether it was coming in, where the form tells. `None`:
    /// shorter than its own head.
    pub fn ethernet(self, bytes: &[u8]) -> Option<(Vec<u8>, i64, Option<bool>)> {
        let two = |at: usize| bytes.get(at..at + 2).map(|b| [b[0], b[1]]);
        let with = |protocol: [u8; 2], source: &[u8], skip: usize, incoming: Option<bool>| {
            let mut frame = vec![2, 0, 0, 0, 0, 2];
            frame.extend_from_slice(if source.len() == 6 { source } else { &[2, 0, 0, 0, 0, 1] });
            frame.extend_from_slice(&protocol);
            frame.extend_from_slice(bytes.get(skip..)?);
            Some((frame, i64::from(ETH_HLEN) - skip as i64, incoming))
        };
        let ip = |at: usize| match bytes.get(at)? >> 4 {
            6 => Some([0x86, 0xdd]),
            _ => Some([0x08, 0x00]),
        };
        match self {
            Link::Ethernet => (bytes.len() >= ETH_HLEN as usize).then(|| (bytes.to_vec(), 0, None)),
            Link::Raw => with(ip(0)?, &[], 0, None),
            Link::Null => with(ip(4)?, &[], 4, None),
            Link::Cooked => with(two(14)?, bytes.get(6..12)?, 16, Some(bytes[1] != PACKET_OUTGOING)),
            Link::Cooked2 => with(two(0)?, bytes.get(12..18)?, 20, Some(bytes[10] != PACKET_OUTGOING)),
        }
    }
}

/// The packet of an Ethernet frame that was `len` bytes long on the wire (as many of them as were captured): its headers; what is
/// behind them is a length. A VLAN tag is beside the packet, as the kernel has it.
pub fn packet(bytes: &[u8], len: u32) -> Skb {
    let mac = |at: usize| bytes.get(at..at + 6).and_then(|b| b.try_into().ok()).unwrap_or([0; 6]);
    let ethertype = bytes.get(12..14).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
    let mut skb = Skb {
        pkt_len: 0,
        eth: (mac(6), mac(0)),
        ..Skb::new(len.max(ETH_HLEN), L3::Other(ethertype), L4::None)
    };
    if let Ok(parsed) = LaxSlicedPacket::from_ethernet(bytes) {
        read(&parsed, ethertype, &mut skb);
    }
    skb.pkt_len = skb.len;
    skb
}

fn read(parsed: &LaxSlicedPacket<'_>, ethertype: u16, skb: &mut Skb) {
    if let Some(LaxLinkExtSlice::Vlan(tag)) = parsed.link_exts.first() {
        let header = tag.header_slice();
        skb.rare_mut().vlan = Some((ethertype, u16::from_be_bytes([header[0], header[1]])));
        skb.len = skb.len.saturating_sub(4).max(ETH_HLEN);
        let EtherType(inside) = tag.ether_type();
        skb.l3 = L3::Other(inside);
    }
    match &parsed.net {
        Some(LaxNetSlice::Ipv4(ip)) => {
            let h = ip.header();
            let flags = u16::from(h.dont_fragment()) << 14 | u16::from(h.more_fragments()) << 13;
            skb.l3 = L3::Ipv4(Ipv4 {
                src: h.source_addr(),
                dst: h.destination_addr(),
                tos: h.dcp().value() << 2 | h.ecn().value(),
                ttl: h.ttl(),
                protocol: h.protocol().0,
                id: h.identification(),
                frag_off: flags | h.fragments_offset().value(),
            });
        }
        Some(LaxNetSlice::Ipv6(ip)) => {
            let h = ip.header();
            // Of extension headers that of a fragment alone is read, where it comes first.
            let first = ip.extensions().clone().into_iter().next();
            let fragment = match first {
                Some(Ipv6ExtensionSlice::Fragment(f)) => Fragment {
                    id: f.identification(),
                    frag_off: f.fragment_offset().value() << 3 | u16::from(f.more_fragments()),
                    next_header: f.next_header().0,
                },
                _ => Fragment::NONE,
            };
            skb.l3 = L3::Ipv6(Ipv6 {
                src: h.source_addr(),
                dst: h.destination_addr(),
                traffic_class: h.traffic_class(),
                flow_label: h.flow_label().value(),
                next_header: h.next_header().0,
                fragment,
                hop_limit: h.hop_limit(),
            });
        }
        Some(LaxNetSlice::Arp(arp)) => {
            let b = arp.slice();
            if let (Some(b), [0, 1, 8, 0, 6, 4]) = (b.get(..28), &b[..6]) {
                let mac = |at: usize| b[at..at + 6].try_into().unwrap_or([0; 6]);
                let ip = |at: usize| [b[at], b[at + 1], b[at + 2], b[at + 3]].into();
                let op = u16::from_be_bytes([b[6], b[7]]);
                skb.l3 = L3::Arp(Arp { op, sha: mac(8), spa: ip(14), tha: mac(18), tpa: ip(24) });
            }
        }
        None => {}
    }
    // Behind another IPv6 extension header nothing of the transport is known, as filters that look at fixed places do not know it.
    let direct = |protocol: u8| match skb.l3 {
        L3::Ipv4(h) => h.protocol == protocol,
        L3::Ipv6(h) => h.protocol() == protocol,
        _ => false,
    };
    skb.l4 = match &parsed.transport {
        Some(TransportSlice::Tcp(t)) if direct(ipproto::TCP) => L4::Tcp(tcp(t)),
        Some(TransportSlice::Udp(u)) if direct(ipproto::UDP) => {
            L4::Udp(Udp { sport: u.source_port(), dport: u.destination_port() })
        }
        Some(TransportSlice::Icmpv4(m)) if direct(ipproto::ICMP) => {
            let b = m.bytes5to8();
            let (id, seq) = (u16::from_be_bytes([b[0], b[1]]), u16::from_be_bytes([b[2], b[3]]));
            L4::Icmp(Icmp::new(m.type_u8(), m.code_u8(), id, seq))
        }
        _ => L4::None,
    };
    // What stands behind the first tag is in the frame.
    let tags = parsed.link_exts.iter().filter_map(|ext| match ext {
        LaxLinkExtSlice::Vlan(tag) => Some(tag),
        _ => None,
    });
    let tags: Vec<_> = tags.collect();
    for pair in tags.windows(2).rev() {
        let (EtherType(ethertype), header) = (pair[0].ether_type(), pair[1].header_slice());
        skb.len = skb.len.saturating_sub(4).max(ETH_HLEN);
        skb.insert_vlan(ethertype, u16::from_be_bytes([header[0], header[1]]));
    }
}

fn tcp(t: &etherparse::TcpSlice<'_>) -> Tcp {
    let mut tcp = Tcp {
        sport: t.source_port(),
        dport: t.destination_port(),
        seq: t.sequence_number(),
        ack: t.acknowledgment_number(),
        flags: {
            let byte = |at: usize| u16::from(t.header_slice().get(at).copied().unwrap_or(0));
            TcpFlags((byte(12) & 1) << 8 | byte(13))
        },
        window: t.window_size(),
        ..Tcp::default()
    };
    for option in t.options_iterator().map_while(Result::ok) {
        match option {
            TcpOptionElement::MaximumSegmentSize(mss) => tcp.mss = Some(mss),
            TcpOptionElement::WindowScale(shift) => tcp.wscale = Some(shift),
            TcpOptionElement::SelectiveAcknowledgementPermitted => tcp.sack_permitted = true,
            TcpOptionElement::Timestamp(val, ecr) => tcp.timestamps = Some((val, ecr)),
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                for block in [Some(first)].into_iter().chain(rest).flatten() {
                    tcp.sack[usize::from(tcp.sack_count)] = block;
                    tcp.sack_count += 1;
                }
            }
            TcpOptionElement::Noop => {}
        }
    }
    tcp
}

#[cfg(test)]
mod tests {
    use super::*;
    use penstock_packet::skb::HEADER_MAX;

    fn tcp_packet() -> Skb {
        let mut skb = packet(&[0; 14], 600);
        skb.eth = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        skb.l3 = L3::Ipv4(Ipv4 {
            src: [10, 0, 0, 1].into(),
            dst: [10, 0, 0, 2].into(),
            tos: 0x12,
            ttl: 63,
            protocol: ipproto::TCP,
            id: 9,
            frag_off: 0x4000,
        });
        skb.l4 = L4::Tcp(Tcp {
            sport: 40_000,
            dport: 443,
            seq: 7,
            ack: 8,
            flags: TcpFlags::ACK,
            window: 500,
            timestamps: Some((3, 4)),
            sack: [(1, 2), (5, 6), (0, 0), (0, 0)],
            sack_count: 2,
            ..Tcp::default()
        });
        skb
    }

    #[test]
    fn headers_written_are_read() {
        let skb = tcp_packet();
        let mut bytes = [0; HEADER_MAX];
        let length = skb.header_bytes(&mut bytes);
        let read = packet(&bytes[..length], 600);
        assert_eq!((read.l3, read.l4, read.eth, read.len), (skb.l3, skb.l4, skb.eth, 600));
    }

    #[test]
    fn a_vlan_tag_is_beside_the_packet() {
        let mut bytes = [0; HEADER_MAX];
        let length = tcp_packet().header_bytes(&mut bytes);
        let mut tagged = bytes[..12].to_vec();
        tagged.extend([0x81, 0x00, 0x20, 0x05]);
        tagged.extend(&bytes[12..length]);
        let read = packet(&tagged, 604);
        assert_eq!((read.rare().vlan, read.len, read.l3), (Some((0x8100, 0x2005)), 600, tcp_packet().l3));
        // A second one is in the frame.
        tagged.splice(12..12, [0x88, 0xa8, 0, 9]);
        let mut read = packet(&tagged, 608);
        assert_eq!((read.rare().vlan, read.len, read.protocol()), (Some((0x88a8, 9)), 604, 0x8100));
        assert_eq!((read.remove_vlan(), read.len, read.l3), (Some((0x8100, 0x2005)), 600, tcp_packet().l3));
    }

    #[test]
    fn other_link_types_become_ethernet() {
        let mut bytes = [0; HEADER_MAX];
        let length = tcp_packet().header_bytes(&mut bytes);
        let check = |link: Link, head: &[u8], incoming| {
            let mut raw = head.to_vec();
            raw.extend(&bytes[14..length]);
            let (frame, longer, came) = link.ethernet(&raw).unwrap();
            assert_eq!((frame.len() as i64, came), (raw.len() as i64 + longer, incoming), "{link:?}");
            assert_eq!(packet(&frame, 600).l3, tcp_packet().l3, "{link:?}");
        };
        check(Link::Raw, &[], None);
        check(Link::Null, &[2, 0, 0, 0], None);
        check(Link::Cooked, &[0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0], Some(false));
        check(Link::Cooked2, &[8, 0, 0, 0, 0, 0, 0, 2, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0], Some(true));
        assert_eq!(Link::Cooked.ethernet(&[0; 9]), None);
        assert_eq!(Link::of(147), None);
    }

    #[test]
    fn rubbish_is_an_unknown_packet() {
        for length in 0..64 {
            let bytes: Vec<u8> = (0..length).map(|n| (n * 37) as u8 | 0x45).collect();
            assert!(packet(&bytes, length).len >= 14);
        }
    }
}
