//! From header fields to the bytes on the wire (RFC 791, 8200, 826, 9293, 768, 792).

use crate::carried::{Carried, Shim};
use crate::headers::{AccEcn, ETH_HLEN, ETH_P_TEB, Fragment, Icmp, IcmpBody, Ipv4, Ipv6, L3, L4, Tcp};
use crate::skb::{HEADER_MAX, Skb, Tagged, ethertype};
use crate::wrap::{Head, Wrapped};

struct Writer<'a> {
    out: &'a mut [u8; HEADER_MAX],
    at: usize,
}

impl Writer<'_> {
    /// As many as there is room for.
    fn bytes(&mut self, bytes: &[u8]) {
        let room = &mut self.out[self.at..];
        let fit = bytes.len().min(room.len());
        room[..fit].copy_from_slice(&bytes[..fit]);
        self.at += fit;
    }
    fn u8(&mut self, v: u8) {
        self.bytes(&[v]);
    }
    fn u16(&mut self, v: u16) {
        self.bytes(&v.to_be_bytes());
    }
    fn u32(&mut self, v: u32) {
        self.bytes(&v.to_be_bytes());
    }
}

/// Writes the headers of `skb`; answers how many bytes they are.
pub(crate) fn write(skb: &Skb, out: &mut [u8; HEADER_MAX]) -> usize {
    let mut w = Writer { out, at: 0 };
    w.bytes(&skb.eth.1);
    w.bytes(&skb.eth.0);
    w.u16(skb.protocol());
    let rare = skb.rare();
    let behind = (&rare.within, &rare.wrapped);
    network(&mut w, (&skb.l3, &skb.l4), behind, skb.network_len(), rare.carried.as_deref());
    if skb.is_noted()
        && rare.carried.is_none()
        && let Some(message) = rare.message.as_deref()
    {
        w.bytes(message);
    }
    w.at
}

/// What is behind an ethertype, `len` bytes in all: tags, a network and a transport header, what a tunnel carries.
fn network(
    w: &mut Writer<'_>,
    (mut l3, mut l4): (&L3, &L4),
    (mut within, mut wrapped): (&Option<Box<Tagged>>, &Option<Box<Wrapped>>),
    mut len: u32,
    carried: Option<&Carried>,
) {
    loop {
        while let Some(tagged) = within {
            (l3, l4, within) = (&tagged.l3, &tagged.l4, &tagged.within);
            w.u16(tagged.tci);
            w.u16(ethertype(l3));
            len = len.saturating_sub(4);
        }
        let Some(more) = wrapped else { break };
        (l3, l4, within, wrapped) = (&more.l3, &more.l4, &more.within, &more.wrapped);
        len = len.saturating_sub(more.head.frame_len());
        match &more.head {
            Head::Mpls(entry) => w.u32(*entry),
            Head::Ife { meta, len, eth } => {
                w.bytes(meta.get(..usize::from(*len)).unwrap_or(meta));
                w.bytes(&eth.1);
                w.bytes(&eth.0);
                w.u16(ethertype(l3));
            }
            Head::Pppoe { sid, proto } => {
                w.u16(0x1100);
                w.u16(*sid);
                w.u16(len as u16 + 2);
                w.u16(*proto);
            }
            Head::PppoeMessage(bytes) => w.bytes(bytes),
        }
    }
    let l4_len = match l3 {
        L3::Ipv4(h) => {
            ipv4(w, h, len as u16);
            len.saturating_sub(20)
        }
        L3::Ipv6(h) => {
            ipv6(w, h, len.saturating_sub(40) as u16);
            len.saturating_sub(h.header_len())
        }
        L3::Arp(a) => {
            w.bytes(&[0, 1, 8, 0, 6, 4]);
            w.u16(a.op);
            w.bytes(&a.sha);
            w.bytes(&a.spa.octets());
            w.bytes(&a.tha);
            w.bytes(&a.tpa.octets());
            return;
        }
        L3::Other(_) => return,
    };
    match l4 {
        L4::Tcp(t) => tcp(w, t),
        L4::Udp(u) => {
            w.u16(u.sport);
            w.u16(u.dport);
            w.u16(l4_len as u16);
            w.u16(0);
        }
        L4::Icmp(i) => icmp(w, i),
        L4::None => {}
    }
    if let Some(carried) = carried {
        tunnelled(w, carried);
    }
}

/// The headers that a tunnel's packet carries, where there is room for them.
fn tunnelled(w: &mut Writer<'_>, c: &Carried) {
    if HEADER_MAX - w.at < room(c) {
        return;
    }
    match c.shim {
        Shim::None => {}
        Shim::Gre { csum, key, seq } => {
            let flag = |on: bool, bit: u16| if on { bit } else { 0 };
            w.u16(flag(csum, 0x8000) | flag(key.is_some(), 0x2000) | flag(seq.is_some(), 0x1000));
            w.u16(if c.eth.is_some() { ETH_P_TEB } else { ethertype(&c.l3) });
            if csum {
                w.u32(0);
            }
            for word in [key, seq].into_iter().flatten() {
                w.u32(word);
            }
        }
        Shim::Vxlan { vni } => {
            w.u32(0x0800_0000);
            w.u32(vni << 8);
        }
        // The rest is encrypted.
        Shim::WireGuard(message) => {
            message.head().into_iter().for_each(|word| w.u32(word));
            return;
        }
    }
    if let Some((from, to)) = c.eth {
        w.bytes(&to);
        w.bytes(&from);
        w.u16(ethertype(&c.l3));
    }
    network(w, (&c.l3, &c.l4), (&c.tags, &None), c.len, c.carried.as_deref());
}

/// Bytes that the headers of what is carried may take, up to its transport header's end.
fn room(c: &Carried) -> usize {
    let tags = std::iter::successors(c.tags.as_deref(), |t| t.within.as_deref()).count();
    c.shim.len() as usize + if c.eth.is_some() { 14 } else { 0 } + 4 * tags + 48 + 60
}

fn ipv4(w: &mut Writer<'_>, h: &Ipv4, total: u16) {
    let start = w.at;
    w.u8(0x45);
    w.u8(h.tos);
    w.u16(total);
    w.u16(h.id);
    w.u16(h.frag_off);
    w.u8(h.ttl);
    w.u8(h.protocol);
    w.u16(0);
    w.bytes(&h.src.octets());
    w.bytes(&h.dst.octets());
    if w.at - start < 20 {
        return;
    }
    let sum: u32 = w.out[start..w.at].chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    let sum = !((folded & 0xffff) + (folded >> 16)) as u16;
    w.out[start + 10..start + 12].copy_from_slice(&sum.to_be_bytes());
}

fn ipv6(w: &mut Writer<'_>, h: &Ipv6, payload: u16) {
    w.u32(6 << 28 | u32::from(h.traffic_class) << 20 | h.flow_label & 0xf_ffff);
    w.u16(payload);
    w.u8(h.next_header);
    w.u8(h.hop_limit);
    w.bytes(&h.src.octets());
    w.bytes(&h.dst.octets());
    if let Some(fragment) = h.fragment() {
        w.u8(fragment.next_header);
        w.u8(0);
        w.u16(fragment.frag_off);
        w.u32(fragment.id);
    }
}

/// The option that does nothing, for padding.
const NOP: u8 = 1;

/// The Accurate ECN option; what of it stands in the padding of the option behind.
//= linux v7.2 net/ipv4/tcp_output.c tcp_options_write
fn accurate_ecn(w: &mut Writer<'_>, option: &AccEcn) -> Option<[u8; 2]> {
    let head = [if option.order1 { 174 } else { 172 }, option.len() as u8];
    let [a, b, c] = option.counters;
    match option.fields {
        0 => return Some(head),
        1 => {
            w.bytes(&head);
            w.bytes(&a[..2]);
            return Some([a[2], NOP]);
        }
        2 => {
            w.bytes(&head);
            w.bytes(&a);
            w.bytes(&b);
        }
        _ => {
            w.bytes(&head);
            w.bytes(&a);
            w.bytes(&b);
            w.bytes(&c);
            w.bytes(&[NOP]);
        }
    }
    None
}

fn tcp(w: &mut Writer<'_>, t: &Tcp) {
    w.u16(t.sport);
    w.u16(t.dport);
    w.u32(t.seq);
    w.u32(t.ack);
    w.u8(((t.header_len() / 4) as u8) << 4 | (t.flags.0 >> 8) as u8 & 1);
    w.u8(t.flags.byte());
    w.u16(t.window);
    w.u32(0);
    // Options in the order and padding of tcp_options_write.
    if let Some(mss) = t.mss {
        w.bytes(&[2, 4]);
        w.u16(mss);
    }
    if let Some((val, ecr)) = t.timestamps {
        w.bytes(if t.sack_permitted { &[4, 2, 8, 10] } else { &[1, 1, 8, 10] });
        w.u32(val);
        w.u32(ecr);
    }
    let mut left = t.accecn.as_ref().and_then(|option| accurate_ecn(w, option));
    if t.sack_permitted && t.timestamps.is_none() {
        w.bytes(&left.take().unwrap_or([NOP; 2]));
        w.bytes(&[4, 2]);
    }
    if let Some(shift) = t.wscale {
        // One byte that is left goes here; two go together.
        let one = left.take_if(|l| l[1] == NOP).map_or(NOP, |l| l[0]);
        w.bytes(&[one, 3, 3, shift]);
    }
    if t.sack_count == 0
        && let Some(left) = left
    {
        w.bytes(&[left[0], left[1], NOP, NOP]);
    }
    if t.sack_count > 0 {
        w.bytes(&left.unwrap_or([NOP; 2]));
        w.bytes(&[5, 2 + 8 * t.sack_count]);
        for &(left, right) in t.sack_blocks() {
            w.u32(left);
            w.u32(right);
        }
    }
    if let Some(option) = t.fast_open() {
        let len = option.cookie().len() as u8;
        w.bytes(&[if option.exp { 254 } else { 34 }, len + if option.exp { 4 } else { 2 }]);
        if option.exp {
            w.u16(0xf989);
        }
        w.bytes(option.cookie());
        let written = u32::from(len) + if option.exp { 4 } else { 2 };
        for _ in written..option.padded_len() {
            w.u8(NOP);
        }
    }
}

fn icmp(w: &mut Writer<'_>, i: &Icmp) {
    w.u8(i.ty);
    w.u8(i.code);
    w.u16(0);
    w.u16(i.id);
    w.u16(i.seq);
    if let IcmpBody::Neighbour { target, mac } = i.body {
        w.bytes(&target.octets());
        if let Some(mac) = mac {
            // Of a solicitation the source's, of an advertisement the target's; a length of one unit of 8 bytes.
            w.bytes(&[if i.ty == 135 { 1 } else { 2 }, 1]);
            w.bytes(&mac);
        }
    }
}

/// Reads the headers that [`write`] wrote into the fields of the packet they are of.
pub(crate) fn read_back(skb: &mut Skb, bytes: &[u8]) {
    let two = |at: usize| bytes.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
    let mac = |at: usize| bytes.get(at..at + 6).and_then(|b| <[u8; 6]>::try_from(b).ok()).unwrap_or_default();
    skb.eth = (mac(6), mac(0));
    if two(12) != skb.protocol() {
        (skb.l3, skb.l4) = (L3::Other(two(12)), L4::None);
        return;
    }
    if skb.is_noted() && read_shim(skb, bytes) {
        return;
    }
    let end = read_network(&mut skb.l3, &mut skb.l4, bytes, 14);
    if skb.is_noted() && skb.rare().message.is_some() {
        read_message(skb, bytes, end);
    }
    if skb.rare().carried.is_some()
        && let Some(carried) = skb.rare_mut().carried.as_deref_mut()
    {
        read_tunnelled(carried, bytes, end);
    }
}

/// Reads what stands behind a tunnel's outer headers, as far as it was written and has no tags.
fn read_tunnelled(c: &mut Carried, bytes: &[u8], at: usize) {
    if HEADER_MAX - at < room(c) || c.tags.is_some() {
        return;
    }
    let four = |at: usize| bytes.get(at..at + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]));
    match &mut c.shim {
        Shim::None => {}
        Shim::Gre { csum, key, seq } => {
            let mut word = at + 4 + if *csum { 4 } else { 0 };
            for part in [key, seq].into_iter().flatten() {
                *part = four(word);
                word += 4;
            }
        }
        Shim::Vxlan { vni } => *vni = four(at + 4) >> 8,
        Shim::WireGuard(_) => return,
    }
    let mut at = at + c.shim.len() as usize;
    if let Some((from, to)) = &mut c.eth {
        let mac = |at: usize| bytes.get(at..at + 6).and_then(|b| <[u8; 6]>::try_from(b).ok());
        (*to, *from) = (mac(at).unwrap_or_default(), mac(at + 6).unwrap_or_default());
        at += 14;
    }
    let end = read_network(&mut c.l3, &mut c.l4, bytes, at);
    if let Some(carried) = c.carried.as_deref_mut() {
        read_tunnelled(carried, bytes, end);
    }
}

/// Reads a network header at `at` and the transport header behind it; answers where that ends.
fn read_network(l3: &mut L3, l4: &mut L4, bytes: &[u8], at: usize) -> usize {
    let two = |at: usize| bytes.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
    let four = |at: usize| u32::from(two(at)) << 16 | u32::from(two(at + 2));
    let mac = |at: usize| bytes.get(at..at + 6).and_then(|b| <[u8; 6]>::try_from(b).ok()).unwrap_or_default();
    let one = |at: usize| bytes.get(at).copied().unwrap_or(0);
    let (l4_at, protocol_changed) = match l3 {
        L3::Ipv4(h) => {
            let before = h.protocol;
            (h.tos, h.id, h.frag_off) = (one(at + 1), two(at + 4), two(at + 6));
            (h.ttl, h.protocol) = (one(at + 8), one(at + 9));
            (h.src, h.dst) = (four(at + 12).into(), four(at + 16).into());
            (at + 20, h.protocol != before)
        }
        L3::Ipv6(h) => {
            let (before, had) = (h.protocol(), h.fragment().is_some());
            (h.traffic_class, h.flow_label) = ((four(at) >> 20) as u8, four(at) & 0xf_ffff);
            (h.next_header, h.hop_limit) = (one(at + 6), one(at + 7));
            let address = |at: usize| bytes.get(at..at + 16).and_then(|b| <[u8; 16]>::try_from(b).ok());
            h.src = address(at + 8).unwrap_or_default().into();
            h.dst = address(at + 24).unwrap_or_default().into();
            let mut behind = at + 40;
            if had && h.fragment().is_some() {
                let fragment = &mut h.fragment;
                fragment.next_header = one(behind);
                (fragment.frag_off, fragment.id) = (two(behind + 2), four(behind + 4));
                behind += Fragment::LEN as usize;
            }
            (behind, h.protocol() != before || h.fragment().is_some() != had)
        }
        L3::Arp(a) => {
            (a.op, a.sha, a.spa) = (two(at + 6), mac(at + 8), four(at + 14).into());
            (a.tha, a.tpa) = (mac(at + 18), four(at + 24).into());
            return at + 28;
        }
        L3::Other(_) => return at,
    };
    if protocol_changed {
        *l4 = L4::None;
    }
    match l4 {
        L4::Tcp(t) => {
            (t.sport, t.dport, t.seq, t.ack) = (two(l4_at), two(l4_at + 2), four(l4_at + 4), four(l4_at + 8));
            (t.flags.0, t.window) = (two(l4_at + 12) & 0x1ff, two(l4_at + 14));
            l4_at + t.header_len() as usize
        }
        L4::Udp(u) => {
            (u.sport, u.dport) = (two(l4_at), two(l4_at + 2));
            l4_at + 8
        }
        L4::Icmp(i) => {
            (i.ty, i.code, i.id, i.seq) = (one(l4_at), one(l4_at + 1), two(l4_at + 4), two(l4_at + 6));
            if let IcmpBody::Neighbour { target, mac: option } = &mut i.body {
                let octets = bytes.get(l4_at + 8..l4_at + 24).and_then(|b| <[u8; 16]>::try_from(b).ok());
                *target = octets.unwrap_or_default().into();
                *option = option.map(|_| mac(l4_at + 26));
            }
            l4_at + 8
        }
        L4::None => l4_at,
    }
}

/// What stands behind an ICMPv6 header at `at`, as far as there was room for it.
fn read_message(skb: &mut Skb, bytes: &[u8], at: usize) {
    let Some(message) = &mut skb.rare_mut().message else { return };
    let read = bytes.get(at..).unwrap_or_default();
    let len = read.len().min(message.len());
    if message[..len] != read[..len] {
        let mut changed = message.to_vec();
        changed[..len].copy_from_slice(&read[..len]);
        *message = changed.into();
    }
}

/// The first tag in the frame, or the first header that wraps the rest of it, and all behind it, as though the frame began that much later. Whether
/// there is one.
fn read_shim(skb: &mut Skb, bytes: &[u8]) -> bool {
    let two = |at: usize| bytes.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]));
    let mut behind = [0; HEADER_MAX];
    let mut joined = |start: usize, ethertype: Option<u16>| {
        let rest = bytes.get(start..).unwrap_or_default();
        let at = match ethertype {
            Some(ethertype) => {
                behind[..12].copy_from_slice(bytes.get(..12).unwrap_or(&[0; 12]));
                behind[12..14].copy_from_slice(&ethertype.to_be_bytes());
                14
            }
            None => 0,
        };
        let fit = rest.len().min(HEADER_MAX - at);
        behind[at..at + fit].copy_from_slice(&rest[..fit]);
        at + fit
    };
    if let Some(tagged) = skb.rare_mut().within.take() {
        let kept = (skb.l3, skb.l4);
        (skb.l3, skb.l4, skb.rare_mut().within) = (tagged.l3, tagged.l4, tagged.within);
        let len = joined(18, Some(two(16)));
        read_back(skb, &behind[..len]);
        let (l3, l4, within) = (skb.l3, skb.l4, skb.rare_mut().within.take());
        skb.rare_mut().within = Some(Box::new(Tagged { tci: two(14), l3, l4, within }));
        (skb.l3, skb.l4) = kept;
        return true;
    }
    let Some(mut more) = skb.rare_mut().wrapped.take() else { return false };
    let kept = (skb.l3, skb.l4, skb.eth);
    (skb.l3, skb.l4) = (more.l3, more.l4);
    (skb.rare_mut().within, skb.rare_mut().wrapped) = (more.within.take(), more.wrapped.take());
    let len = match &mut more.head {
        Head::Mpls(entry) => {
            *entry = u32::from(two(14)) << 16 | u32::from(two(16));
            joined(18, Some(ethertype(&more.l3)))
        }
        Head::Ife { meta, len, eth } => {
            let (from, len) = (ETH_HLEN as usize, usize::from(*len).min(meta.len()));
            if let Some(read) = bytes.get(from..from + len) {
                meta[..len].copy_from_slice(read);
            }
            skb.eth = *eth;
            joined(from + len, None)
        }
        Head::Pppoe { sid, proto } => {
            (*sid, *proto) = (two(16), two(20));
            joined(22, Some(ethertype(&more.l3)))
        }
        Head::PppoeMessage(message) => {
            if let Some(read) = bytes.get(14..14 + message.len()).filter(|read| **read != **message) {
                *message = read.into();
            }
            joined(14 + message.len(), Some(ethertype(&more.l3)))
        }
    };
    read_back(skb, &behind[..len]);
    if let Head::Ife { eth, .. } = &mut more.head {
        *eth = skb.eth;
    }
    (more.l3, more.l4) = (skb.l3, skb.l4);
    (more.within, more.wrapped) = (skb.rare_mut().within.take(), skb.rare_mut().wrapped.take());
    skb.rare_mut().wrapped = Some(more);
    (skb.l3, skb.l4, skb.eth) = kept;
    true
}

#[cfg(test)]
mod tests {
    use crate::headers::*;
    use crate::skb::{HEADER_MAX, Skb};

    fn udp(len: u32) -> Skb {
        Skb {
            eth: ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]),
            ..Skb::new(
                len,
                L3::Ipv4(Ipv4 {
                    src: "10.0.0.1".parse().unwrap(),
                    dst: "10.0.0.2".parse().unwrap(),
                    tos: 0x10,
                    ttl: 64,
                    protocol: ipproto::UDP,
                    id: 7,
                    frag_off: 0,
                }),
                L4::Udp(Udp { sport: 1000, dport: 2000 }),
            )
        }
    }

    #[test]
    fn a_udp_frame_has_its_bytes() {
        let mut out = [0; HEADER_MAX];
        let n = udp(100).header_bytes(&mut out);
        assert_eq!(n, 42);
        assert_eq!(&out[12..16], [8, 0, 0x45, 0x10]);
        assert_eq!(&out[16..18], 86u16.to_be_bytes());
        assert_eq!(&out[34..38], [0x03, 0xe8, 0x07, 0xd0]);
        assert_eq!(&out[38..40], 66u16.to_be_bytes());
        // The IPv4 header sums to ffff with its checksum in place.
        let sum: u32 = out[14..34].chunks(2).map(|c| u32::from(c[0]) << 8 | u32::from(c[1])).sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn tags_in_the_frame_stand_before_the_network_header() {
        let mut skb = udp(100);
        skb.insert_vlan(0x8100, 0x2005);
        skb.insert_vlan(0x88a8, 7);
        assert_eq!((skb.protocol(), skb.len, skb.tags_in_frame()), (0x88a8, 108, 2));
        assert_eq!(skb.innermost().0, &udp(100).l3);
        let mut bytes = [0; HEADER_MAX];
        let n = skb.header_bytes(&mut bytes);
        assert_eq!(n, 50);
        assert_eq!(&bytes[12..24], [0x88, 0xa8, 0, 7, 0x81, 0, 0x20, 5, 8, 0, 0x45, 0x10]);
        // The IP header's length is what it was.
        assert_eq!(&bytes[24..26], 86u16.to_be_bytes());
        // A byte of the inner tag, and the ToS.
        (bytes[19], bytes[23]) = (6, 0xb8);
        skb.set_header_bytes(&bytes[..n]);
        assert_eq!(skb.remove_vlan(), Some((0x88a8, 7)));
        assert_eq!(skb.remove_vlan(), Some((0x8100, 0x2006)));
        assert_eq!((skb.len, skb.tos(), skb.remove_vlan()), (100, 0xb8, None));
        assert_eq!(skb.l4, udp(100).l4);
    }

    #[test]
    fn a_solicitation_has_its_bytes() {
        let [src, dst, target]: [std::net::Ipv6Addr; 3] =
            ["fe80::1", "ff02::1:ff00:2", "fd00::2"].map(|a| a.parse().unwrap());
        let l3 = L3::Ipv6(Ipv6 {
            src,
            dst,
            traffic_class: 0,
            flow_label: 0,
            next_header: ipproto::ICMPV6,
            fragment: Fragment::NONE,
            hop_limit: 255,
        });
        let body = IcmpBody::Neighbour { target, mac: Some([2, 0, 0, 0, 0, 1]) };
        let mut skb = Skb::new(86, l3, L4::Icmp(Icmp { body, ..Icmp::new(135, 0, 0, 0) }));
        let mut out = [0; HEADER_MAX];
        let n = skb.header_bytes(&mut out);
        assert_eq!(n, 86);
        assert_eq!(&out[54..62], [135, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!((&out[62..78], &out[78..86]), (&target.octets()[..], &[1, 1, 2, 0, 0, 0, 0, 1][..]));
        let whole = skb.clone();
        skb.set_header_bytes(&out[..n]);
        assert_eq!(skb.l4, whole.l4);
        (out[77], out[85]) = (9, 8);
        skb.set_header_bytes(&out[..n]);
        let L4::Icmp(Icmp { body: IcmpBody::Neighbour { target, mac }, .. }) = skb.l4 else {
            panic!("{:?}", skb.l4)
        };
        assert_eq!((target.to_string().as_str(), mac), ("fd00::9", Some([2, 0, 0, 0, 0, 8])));
    }

    #[test]
    fn tcp_option_lengths_are_linux_s() {
        let syn = Tcp {
            mss: Some(1460),
            wscale: Some(7),
            sack_permitted: true,
            timestamps: Some((1, 0)),
            ..Tcp::default()
        };
        assert_eq!(syn.header_len(), 40);
        let ack = Tcp { timestamps: Some((1, 1)), ..Tcp::default() };
        assert_eq!(ack.header_len(), 32);
        let sack = Tcp { timestamps: Some((1, 1)), sack_count: 1, ..Tcp::default() };
        assert_eq!(sack.header_len(), 44);
        let xp = Tcp::default();
        assert_eq!(xp.header_len(), 20);
    }

    #[test]
    fn an_accurate_ecn_option_fills_the_padding_of_others() {
        let option = |fields| Some(AccEcn::new(true, fields, [0x01_02_03, 4, 5]));
        let bytes = |tcp: Tcp| {
            let mut out = [0; HEADER_MAX];
            let mut w = super::Writer { out: &mut out, at: 0 };
            super::tcp(&mut w, &tcp);
            let len = w.at;
            assert_eq!(len as u32, tcp.header_len());
            out[20..len].to_vec()
        };
        let all = bytes(Tcp { accecn: option(3), ..Tcp::default() });
        assert_eq!(all, [174, 11, 1, 2, 3, 0, 0, 4, 0, 0, 5, 1]);
        let syn_ack = Tcp {
            mss: Some(1460),
            sack_permitted: true,
            wscale: Some(8),
            accecn: option(1),
            ..Tcp::default()
        };
        assert_eq!(bytes(syn_ack), [2, 4, 5, 180, 174, 5, 1, 2, 3, 1, 4, 2, 1, 3, 3, 8]);
        let stamped = Tcp { timestamps: Some((1, 2)), wscale: Some(8), accecn: option(1), ..Tcp::default() };
        assert_eq!(bytes(stamped)[12..], [174, 5, 1, 2, 3, 3, 3, 8]);
        let mut sacks = Tcp { sack_count: 1, accecn: option(1), ..Tcp::default() };
        sacks.sack[0] = (7, 8);
        assert_eq!(bytes(sacks), [174, 5, 1, 2, 3, 1, 5, 10, 0, 0, 0, 7, 0, 0, 0, 8]);
        sacks.accecn = option(0);
        assert_eq!(bytes(sacks), [174, 2, 5, 10, 0, 0, 0, 7, 0, 0, 0, 8]);
        // A byte that is as padding, and nothing behind it.
        let alone = AccEcn::new(false, 1, [0x01_02_01, 0, 0]);
        assert_eq!(bytes(Tcp { accecn: Some(alone), ..Tcp::default() }), [172, 5, 1, 2, 1, 1, 1, 1]);
        // Fast Open: a request, a cookie, and the latter in the form of the experiment.
        let fast = |cookie: &[u8], exp| {
            let mut syn = Tcp::default();
            syn.set_fast_open(FastOpen::new(cookie, exp));
            assert_eq!(syn.fast_open().unwrap().cookie(), cookie);
            bytes(syn)
        };
        assert_eq!(fast(&[], false), [34, 2, 1, 1]);
        assert_eq!(fast(&[9, 8, 7, 6], false), [34, 6, 9, 8, 7, 6, 1, 1]);
        assert_eq!(fast(&[9, 8, 7, 6], true), [254, 8, 0xf9, 0x89, 9, 8, 7, 6]);
        assert!(FastOpen::new(&[1, 2], false).is_none() && FastOpen::new(&[1; 5], false).is_none());
        assert_eq!((alone.counter(0), alone.counter(1)), (Some(0x01_02_01), None));
    }

    #[test]
    fn what_is_changed_in_the_bytes_is_read_back() {
        let mut skb = udp(100);
        let mut bytes = [0; HEADER_MAX];
        let len = skb.header_bytes(&mut bytes);
        let whole = skb.clone();
        skb.set_header_bytes(&bytes[..len]);
        assert_eq!((skb.l3, skb.l4, skb.eth), (whole.l3, whole.l4, whole.eth));
        bytes[15] = 0xb8;
        bytes[33] = 77;
        bytes[37] = 9;
        skb.set_header_bytes(&bytes[..len]);
        let L3::Ipv4(h) = skb.l3 else { panic!("{:?}", skb.l3) };
        assert_eq!((h.tos, h.dst.octets()[3]), (0xb8, 77));
        assert!(matches!(skb.l4, L4::Udp(u) if u.dport & 0xff == 9));
        bytes[23] = 6;
        skb.set_header_bytes(&bytes[..len]);
        assert_eq!(skb.l4, L4::None);
        bytes[12] = 0x88;
        skb.set_header_bytes(&bytes[..len]);
        assert_eq!(skb.l3, L3::Other(0x8800));
    }
}
