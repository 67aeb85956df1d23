//! A frame as a capture has it: the headers with their checksums, and a payload of zeros.

use crate::carried::{Carried, Shim};
use crate::headers::{ETH_HLEN, IcmpBody, L3, L4, Quoted, ipproto};
use crate::skb::{HEADER_MAX, Skb};
use std::net::IpAddr;

/// Length of a tag.
const TAG: usize = 4;

impl Skb {
    /// Appends the frame as it stands on the wire, at most `snap` bytes of it, and answers how long all of it is. The payload is
    /// zeros, which no packet here has others than, so the checksums of TCP, UDP and ICMP are those of the headers; a packet
    /// that was damaged on its way has wrong ones. The tag of a VLAN beside the packet is in the frame.
    pub fn frame_bytes(&self, snap: usize, out: &mut Vec<u8>) -> usize {
        let mut head = [0; HEADER_MAX];
        let written = self.header_bytes(&mut head);
        let (l3, l4, transport) = self.transport();
        let start = out.len();
        out.extend_from_slice(&head[..written]);
        if let L4::Icmp(icmp) = l4
            && let IcmpBody::About(about) = &icmp.body
        {
            quote(about, (self.len as usize).saturating_sub(transport + 8), out);
        }
        if let (Some(message), None, true) = (&self.rare().message, &self.rare().carried, self.is_noted()) {
            // Behind ICMPv6's header; a BPDU has none.
            let head = if matches!(l4, L4::None) { 0 } else { 8 };
            out.truncate(start + transport + head);
            out.extend_from_slice(message);
        }
        if let Some(carried) = self.rare().carried.as_deref().filter(|_| self.is_noted()) {
            let behind = transport + if matches!(l4, L4::Udp(_)) { 8 } else { 0 };
            tunnelled(carried, behind, &mut out[start..]);
        }
        self.checksum(l3, l4, transport, &mut out[start..]);
        if self.is_noted()
            && let Some((ethertype, tci)) = self.rare().vlan
        {
            let tag = (u32::from(ethertype) << 16 | u32::from(tci)).to_be_bytes();
            out.splice(start + 12..start + 12, tag);
        }
        let beside = if self.is_noted() && self.rare().vlan.is_some() { TAG } else { 0 };
        let whole = self.len as usize + beside;
        out.resize(start + whole.min(snap), 0);
        whole
    }
    /// The frame's headers as [`Skb::header_bytes`] writes them, with the checksums of TCP, UDP and ICMP: those of a payload of zeros.
    pub fn checked_header_bytes(&self, out: &mut [u8; HEADER_MAX]) -> usize {
        let written = self.header_bytes(out);
        let (l3, l4, transport) = self.transport();
        self.checksum(l3, l4, transport, &mut out[..written]);
        written
    }
    /// Takes over what [`Skb::checked_header_bytes`] wrote and somebody changed, as [`Skb::set_header_bytes`] does. Where a checksum does not hold
    /// any more that is noted ([`TcNote::bad_checksum`](crate::skb::TcNote), [`TcNote::damaged`](crate::skb::TcNote)).
    pub fn set_checked_header_bytes(&mut self, bytes: &[u8]) {
        self.set_header_bytes(bytes);
        let mut right = [0; HEADER_MAX];
        let len = self.checked_header_bytes(&mut right).min(bytes.len());
        let (l3, l4, transport) = self.transport();
        let same = |at: usize| at + 2 > len || bytes[at..at + 2] == right[at..at + 2];
        let network = match l3 {
            L3::Ipv4(_) => same(transport - 20 + 10),
            _ => true,
        };
        let above = match l4 {
            L4::Tcp(_) => same(transport + 16),
            // RFC 768: zero says that there is none.
            L4::Udp(_) => same(transport + 6) || bytes[transport + 6..transport + 8] == [0, 0],
            L4::Icmp(_) => same(transport + 2),
            L4::None => true,
        };
        self.tc.bad_checksum |= !network;
        self.tc.damaged |= !above;
    }
    /// The innermost headers outside of a tunnel, and where the transport header begins.
    fn transport(&self) -> (&L3, &L4, usize) {
        let (l3, l4, network) = self.last_headers();
        (l3, l4, network + header_len(l3) as usize)
    }
    /// Fills the checksum of the transport header in.
    fn checksum(&self, l3: &L3, l4: &L4, transport: usize, frame: &mut [u8]) {
        let whole = match (l4, self.rare().datagram) {
            // The first fragment speaks of the whole datagram.
            (L4::Udp(_) | L4::Icmp(_), Some(bytes)) => u32::from(bytes),
            _ => self.len.saturating_sub(transport as u32),
        };
        fill(l3, l4, whole, transport, frame, if self.tc.bad_checksum { 0x0100 } else { 0 });
    }
}

/// Length of a network header, with that of a fragment of IPv6.
fn header_len(l3: &L3) -> u32 {
    match l3 {
        L3::Ipv4(_) => 20,
        L3::Ipv6(h) => h.header_len(),
        _ => 0,
    }
}

/// Fills the checksum in of a transport header at `transport`, which speaks of `whole` bytes; `wrong` are the bits of it that are wrong.
fn fill(l3: &L3, l4: &L4, whole: u32, transport: usize, frame: &mut [u8], wrong: u16) {
    let (at, pseudo) = match l4 {
        L4::Tcp(_) => (16, true),
        L4::Udp(_) => (6, true),
        L4::Icmp(_) => (2, matches!(l3, L3::Ipv6(_))),
        L4::None => return,
    };
    if frame.len() < transport + at + 2 {
        return;
    }
    if let L4::Udp(_) = l4 {
        frame[transport + 4..transport + 6].copy_from_slice(&(whole as u16).to_be_bytes());
    }
    let mut sum = words(&frame[transport..]);
    if pseudo {
        sum += match l3 {
            L3::Ipv4(h) => words(&h.src.octets()) + words(&h.dst.octets()) + u64::from(h.protocol),
            L3::Ipv6(h) => words(&h.src.octets()) + words(&h.dst.octets()) + u64::from(h.protocol()),
            _ => 0,
        };
        sum += u64::from(whole);
    }
    let mut check = folded(sum);
    // RFC 768: a sum of zero is sent as ones; zero says that there is none.
    if check == 0 && matches!(l4, L4::Udp(_)) {
        check = 0xffff;
    }
    frame[transport + at..transport + at + 2].copy_from_slice(&(check ^ wrong).to_be_bytes());
}

/// Fills the checksums in of what a tunnel carries, whose own header begins at `at`.
fn tunnelled(c: &Carried, at: usize, frame: &mut [u8]) {
    let mut behind = at + c.shim.len() as usize + if c.eth.is_some() { ETH_HLEN as usize } else { 0 };
    let (mut l3, mut l4, mut len) = (&c.l3, &c.l4, c.len);
    let mut tags = &c.tags;
    while let Some(tagged) = tags {
        (l3, l4, tags) = (&tagged.l3, &tagged.l4, &tagged.within);
        behind += TAG;
        len = len.saturating_sub(TAG as u32);
    }
    let ip = header_len(l3) as usize;
    let transport = behind + ip;
    if let Some(carried) = c.carried.as_deref() {
        tunnelled(carried, transport + if matches!(l4, L4::Udp(_)) { 8 } else { 0 }, frame);
    }
    let whole = match (l4, c.datagram) {
        (L4::Udp(_), Some(bytes)) => u32::from(bytes),
        _ => len.saturating_sub(ip as u32),
    };
    fill(l3, l4, whole, transport, frame, 0);
    // RFC 2784 section 2.5: over the header and what it carries, the payload's zeros included.
    if let (Shim::Gre { csum: true, .. }, true) = (c.shim, frame.len() >= at + 8) {
        let sum = folded(words(&frame[at..]));
        frame[at + 4..at + 6].copy_from_slice(&sum.to_be_bytes());
    }
}

/// The one's complement of a sum in 16 bits.
fn folded(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum of 16-bit words in network order, the last filled up.
fn words(bytes: &[u8]) -> u64 {
    let word = |c: &[u8]| u64::from(c[0]) << 8 | u64::from(c.get(1).copied().unwrap_or(0));
    bytes.chunks(2).map(word).sum()
}

/// The packet that an error speaks of, of which `room` bytes are quoted: its network header and the first 8 bytes behind it. What the
/// error does not know (lengths, the time to live) is as a packet of that length has it.
fn quote(about: &Quoted, room: usize, out: &mut Vec<u8>) {
    match (about.src, about.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut header = vec![0x45, 0];
            header.extend((room as u16).to_be_bytes());
            header.extend([0, 0, 0x40, 0, 64, about.protocol, 0, 0]);
            header.extend(src.octets().into_iter().chain(dst.octets()));
            let mut sum = words(&header);
            while sum >> 16 != 0 {
                sum = (sum & 0xffff) + (sum >> 16);
            }
            header[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
            out.extend(header);
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            out.extend([0x60, 0, 0, 0]);
            out.extend((room.saturating_sub(40) as u16).to_be_bytes());
            out.extend([if about.fragment.is_some() { ipproto::FRAGMENT } else { about.protocol }, 64]);
            out.extend(src.octets().into_iter().chain(dst.octets()));
            if let Some(fragment) = about.fragment {
                out.extend([fragment.next_header, 0]);
                out.extend(fragment.frag_off.to_be_bytes());
                out.extend(fragment.id.to_be_bytes());
                if fragment.offset() > 0 {
                    // Its contents.
                    out.extend([0; 8]);
                    return;
                }
            }
        }
        _ => return,
    }
    let header = match about.fragment {
        _ if about.src.is_ipv4() => 20,
        Some(_) => 48,
        None => 40,
    };
    let behind = room.saturating_sub(header) as u16;
    match about.protocol {
        ipproto::UDP => {
            out.extend([about.sport, about.dport, behind, 0].iter().flat_map(|w| w.to_be_bytes()));
        }
        ipproto::ICMP | ipproto::ICMPV6 => {
            // Of the messages that errors are sent about only echo requests are made here.
            let ty = if about.protocol == ipproto::ICMP { 8 } else { 128 };
            out.extend([ty, 0, 0, 0]);
            out.extend([about.sport, about.dport].iter().flat_map(|w| w.to_be_bytes()));
        }
        _ => out.extend([about.sport, about.dport, 0, 0].iter().flat_map(|w| w.to_be_bytes())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{Fragment, Icmp, Ipv4, Ipv6, Tcp, TcpFlags, Udp};

    fn v4(protocol: u8, l4: L4, len: u32) -> Skb {
        let l3 = L3::Ipv4(Ipv4 {
            src: [10, 0, 0, 1].into(),
            dst: [10, 0, 0, 2].into(),
            tos: 0,
            ttl: 64,
            protocol,
            id: 1,
            frag_off: 0,
        });
        Skb::new(len, l3, l4)
    }
    /// What a receiver comes to: all ones where the checksum holds.
    fn verify(frame: &[u8], transport: usize, pseudo: &[u8], protocol: u8) -> u64 {
        let len = (frame.len() - transport) as u64;
        let mut sum = words(&frame[transport..]);
        if !pseudo.is_empty() {
            sum += words(pseudo) + u64::from(protocol) + len;
        }
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum
    }

    #[test]
    fn a_message_without_a_transport_header_stands_behind_the_ethertype() {
        let mut skb = Skb::new(14 + 7, L3::Other(7), L4::None);
        skb.rare_mut().message = Some([0x42, 0x42, 3, 0, 0, 0, 0x80].into());
        let mut out = Vec::new();
        assert_eq!(skb.frame_bytes(100, &mut out), 21);
        assert_eq!(out[12..], [0, 7, 0x42, 0x42, 3, 0, 0, 0, 0x80]);
    }

    #[test]
    fn checksums_hold() {
        let tcp = Tcp {
            sport: 1,
            dport: 2,
            seq: 77,
            flags: TcpFlags::ACK,
            timestamps: Some((5, 6)),
            ..Tcp::default()
        };
        let udp = Udp { sport: 9, dport: 10 };
        for (protocol, l4, len) in [
            (ipproto::TCP, L4::Tcp(tcp), 1514),
            (ipproto::UDP, L4::Udp(udp), 61),
            (ipproto::ICMP, L4::Icmp(Icmp::new(8, 0, 3, 4)), 98),
        ] {
            let skb = v4(protocol, l4, len);
            let mut frame = Vec::new();
            assert_eq!(skb.frame_bytes(usize::MAX, &mut frame), len as usize);
            assert_eq!(frame.len(), len as usize);
            let pseudo = if protocol == ipproto::ICMP { vec![] } else { frame[26..34].to_vec() };
            assert_eq!(verify(&frame, 34, &pseudo, protocol), 0xffff, "{protocol}");
            // Cut short it has the same bytes, and a damaged one does not hold.
            let mut cut = Vec::new();
            assert_eq!(skb.frame_bytes(50, &mut cut), len as usize);
            assert_eq!(cut, frame[..50]);
            let mut bad = skb.clone();
            bad.tc.bad_checksum = true;
            let mut frame = Vec::new();
            bad.frame_bytes(usize::MAX, &mut frame);
            assert_ne!(verify(&frame, 34, &pseudo, protocol), 0xffff, "{protocol}");
        }
        let [src, dst]: [std::net::Ipv6Addr; 2] = ["fd00::1", "fd00::2"].map(|a| a.parse().unwrap());
        let l3 = L3::Ipv6(Ipv6 {
            src,
            dst,
            traffic_class: 0,
            flow_label: 0,
            next_header: ipproto::ICMPV6,
            fragment: Fragment::NONE,
            hop_limit: 64,
        });
        let skb = Skb::new(118, l3, L4::Icmp(Icmp::new(128, 0, 3, 4)));
        let mut frame = Vec::new();
        skb.frame_bytes(usize::MAX, &mut frame);
        assert_eq!(verify(&frame, 54, &frame[22..54], ipproto::ICMPV6), 0xffff);
    }

    #[test]
    fn tags_are_in_the_frame() {
        let mut skb = v4(ipproto::UDP, L4::Udp(Udp { sport: 9, dport: 10 }), 100);
        let mut plain = Vec::new();
        skb.frame_bytes(usize::MAX, &mut plain);
        skb.rare_mut().vlan = Some((0x8100, 5));
        let mut tagged = Vec::new();
        assert_eq!(skb.frame_bytes(usize::MAX, &mut tagged), 104);
        assert_eq!(&tagged[12..18], [0x81, 0, 0, 5, 8, 0]);
        tagged.drain(12..16);
        assert_eq!(tagged, plain);
    }

    #[test]
    fn an_error_quotes_a_packet_that_can_be_read() {
        let quoted = Quoted {
            fragment: None,
            src: [10, 0, 0, 2].into(),
            dst: [10, 0, 0, 1].into(),
            protocol: ipproto::UDP,
            sport: 33,
            dport: 44,
        };
        let body = IcmpBody::About(quoted);
        let skb = v4(ipproto::ICMP, L4::Icmp(Icmp { body, ..Icmp::new(3, 3, 0, 0) }), 14 + 20 + 8 + 28);
        let mut frame = Vec::new();
        skb.frame_bytes(usize::MAX, &mut frame);
        assert_eq!((frame.len(), frame[42], frame[51]), (70, 0x45, ipproto::UDP));
        assert_eq!(&frame[54..66], [10, 0, 0, 2, 10, 0, 0, 1, 0, 33, 0, 44]);
        assert_eq!(verify(&frame, 34, &[], ipproto::ICMP), 0xffff);
    }

    #[test]
    fn the_first_fragment_speaks_of_the_whole_datagram() {
        let mut skb = v4(ipproto::UDP, L4::Udp(Udp { sport: 9, dport: 10 }), 1514);
        skb.rare_mut().datagram = Some(3008);
        let mut frame = Vec::new();
        assert_eq!(skb.frame_bytes(usize::MAX, &mut frame), 1514);
        assert_eq!(&frame[38..40], 3008u16.to_be_bytes());
        // Behind it come zeros, up to the datagram's length.
        frame.resize(34 + 3008, 0);
        assert_eq!(verify(&frame, 34, &frame[26..34], ipproto::UDP), 0xffff);
    }

    #[test]
    fn fragments_of_ipv6_have_their_header() {
        let address = |n| std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, n);
        let whole = Ipv6::new(address(1), address(2), ipproto::UDP);
        let udp = L4::Udp(Udp { sport: 9, dport: 10 });
        // 2008 bytes of UDP in two pieces.
        let fragment = |frag_off| Fragment { id: 0x0102_0304, frag_off, next_header: ipproto::UDP };
        let piece = |frag_off| Ipv6 { next_header: ipproto::FRAGMENT, fragment: fragment(frag_off), ..whole };
        let mut first = Skb::new(14 + 48 + 1448, L3::Ipv6(piece(1)), udp);
        first.rare_mut().datagram = Some(2008);
        let last = Skb::new(14 + 48 + 560, L3::Ipv6(piece(1448)), L4::None);
        let bytes = |skb: &Skb| {
            let mut out = Vec::new();
            skb.frame_bytes(usize::MAX, &mut out);
            out
        };
        let (one, two) = (bytes(&first), bytes(&last));
        assert_eq!((one.len(), two.len()), (1510, 622));
        assert_eq!(&one[14 + 4..14 + 8], [5, 0xb0, 44, 64], "length, next header, hop limit");
        assert_eq!(&one[54..62], [17, 0, 0, 1, 1, 2, 3, 4]);
        assert_eq!(&two[54..62], [17, 0, 5, 0xa8, 1, 2, 3, 4]);
        assert_eq!(&one[66..68], 2008u16.to_be_bytes(), "the length of the whole");
        // What a receiver puts together has a checksum that is right.
        let mut sum = words(&whole.src.octets()) + words(&whole.dst.octets()) + 17 + 2008;
        sum += words(&one[62..]) + words(&two[62..]);
        assert_eq!(folded(sum), 0);
        assert_eq!((first.headers_before_l4(), last.headers_before_l4()), (62, 62));

        let mut changed = first.clone();
        let mut head = [0; HEADER_MAX];
        let len = first.header_bytes(&mut head);
        head[57] = 0;
        changed.set_header_bytes(&head[..len]);
        assert_eq!(changed.l3, L3::Ipv6(piece(0)));
        assert_eq!(changed.l4, first.l4);
    }
}
