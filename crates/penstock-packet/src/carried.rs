//! What a tunnel's packet carries: a header of the tunnel's own, and a packet or a frame behind it.

use crate::headers::{ETH_HLEN, L3, L4};
use crate::skb::{Skb, Tagged};

/// The header that stands between the outer headers and what is carried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shim {
    /// None: IP in IP (RFC 2003), IPv6 in IPv4 (RFC 4213).
    None,
    /// GRE (RFC 2784, RFC 2890): 4 bytes, and 4 for each of these.
    Gre {
        /// Checksum.
        csum: bool,
        /// Key.
        key: Option<u32>,
        /// Sequence number.
        seq: Option<u32>,
    },
    /// VXLAN (RFC 7348), behind UDP: 8 bytes.
    Vxlan {
        /// VXLAN network identifier, 24 bits.
        vni: u32,
    },
    /// A message of WireGuard, behind UDP. What is within is not to be read.
    WireGuard(WireGuard),
}

/// A message of WireGuard.
//= linux v6.12 drivers/net/wireguard/messages.h
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WireGuard {
    /// `message_handshake_initiation`: 148 bytes.
    Initiation {
        /// The index that the answer is to name.
        sender: u32,
        /// The public key of its sender, which only the other end can read, and that of the other end.
        keys: [[u8; 32]; 2],
        /// When it was sent (TAI64N), ns.
        timestamp: u64,
    },
    /// `message_handshake_response`: 92 bytes.
    Response {
        /// The index that packets are to name.
        sender: u32,
        /// The index of the initiation.
        receiver: u32,
        /// What only those can make who know the keys of both ends: a hash of these.
        proof: u64,
    },
    /// `message_data`: 16 bytes, the packet, its padding, a tag of 16 bytes. Without a packet it is a keepalive.
    Data {
        /// The index of the session at the other end.
        receiver: u32,
        /// Its number.
        counter: u64,
        /// Padding behind the packet, bytes.
        pad: u8,
    },
}

impl WireGuard {
    /// Bytes of it beside the packet within.
    pub const fn len(self) -> u32 {
        match self {
            WireGuard::Initiation { .. } => 148,
            WireGuard::Response { .. } => 92,
            WireGuard::Data { pad, .. } => 32 + pad as u32,
        }
    }
    /// Whether it takes none: never.
    pub const fn is_empty(self) -> bool {
        false
    }
    /// The words at its beginning, which anybody can read.
    pub const fn head(self) -> [u32; 4] {
        match self {
            WireGuard::Initiation { sender, .. } => [0x0100_0000, sender.swap_bytes(), 0, 0],
            WireGuard::Response { sender, receiver, .. } => {
                [0x0200_0000, sender.swap_bytes(), receiver.swap_bytes(), 0]
            }
            WireGuard::Data { receiver, counter, .. } => {
                let words = counter.swap_bytes();
                [0x0400_0000, receiver.swap_bytes(), (words >> 32) as u32, words as u32]
            }
        }
    }
}

impl Shim {
    /// Its length, bytes.
    pub const fn len(self) -> u32 {
        match self {
            Shim::None => 0,
            Shim::Gre { csum, key, seq } => {
                4 + 4 * (csum as u32 + key.is_some() as u32 + seq.is_some() as u32)
            }
            Shim::Vxlan { .. } => 8,
            Shim::WireGuard(message) => message.len(),
        }
    }
    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// Whether a flow dissector reads on behind it.
    //= linux v6.12 net/core/flow_dissector.c __skb_flow_dissect: IPPROTO_GRE, IPPROTO_IPIP, IPPROTO_IPV6
    const fn is_dissected(self) -> bool {
        matches!(self, Shim::None | Shim::Gre { .. })
    }
}

/// What is behind a tunnel's headers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Carried {
    /// The header before it.
    pub shim: Shim,
    /// Hardware addresses, source and destination, where it is a frame and not an IP packet.
    pub eth: Option<([u8; 6], [u8; 6])>,
    /// Network header.
    pub l3: L3,
    /// Transport header.
    pub l4: L4,
    /// Length from its network header on, bytes.
    pub len: u32,
    /// Behind the VLAN tags in a frame.
    pub tags: Option<Box<Tagged>>,
    /// What it carries itself.
    pub carried: Option<Box<Carried>>,
    /// See [`Rare::datagram`](crate::Rare::datagram).
    pub(crate) datagram: Option<u16>,
    /// The hash of its flow is still known (`skb->l4_hash`): so on the machine that put it in.
    pub(crate) hashed: bool,
}

impl Default for Carried {
    fn default() -> Carried {
        Carried {
            shim: Shim::None,
            eth: None,
            l3: L3::Other(0),
            l4: L4::None,
            len: 0,
            tags: None,
            carried: None,
            datagram: None,
            hashed: false,
        }
    }
}

impl Carried {
    fn innermost(&self) -> (&L3, &L4) {
        let mut found = (&self.l3, &self.l4);
        let mut tags = &self.tags;
        while let Some(tagged) = tags {
            found = (&tagged.l3, &tagged.l4);
            tags = &tagged.within;
        }
        found
    }
    /// What a flow dissector comes to that has read `outer`.
    fn dissected<'a>(&'a self, outer: (&'a L3, &'a L4)) -> (&'a L3, &'a L4) {
        if !self.shim.is_dissected() || is_fragment(outer.0) {
            return outer;
        }
        self.flow()
    }
    /// What it comes to that begins with what is carried.
    fn flow(&self) -> (&L3, &L4) {
        let own = self.innermost();
        self.carried.as_ref().map_or(own, |c| c.dissected(own))
    }
}

/// `FLOW_DIS_IS_FRAGMENT`: of IPv6 wherever a fragment header is.
fn is_fragment(l3: &L3) -> bool {
    match l3 {
        L3::Ipv4(h) => h.frag_off & 0x3fff != 0,
        L3::Ipv6(h) => h.fragment().is_some(),
        _ => false,
    }
}

impl Skb {
    /// Puts the packet into a tunnel's, behind these outer headers and the tunnel's own. `frame`: with its Ethernet header. What was noted of its
    /// connection, its fragments and its place behind a translating machine is of the packet within. `memory` is for what is carried.
    pub fn encapsulate(&mut self, mut memory: Box<Carried>, shim: Shim, frame: bool, l3: L3, l4: L4) {
        let len = self.network_len();
        let rare = self.rare_mut();
        let (tags, carried, datagram) = (rare.within.take(), rare.carried.take(), rare.datagram.take());
        (rare.inside, rare.frag_max_size) = (None, 0);
        let whole = !is_fragment(&self.l3);
        *memory = Carried {
            shim,
            eth: frame.then_some(self.eth),
            l3: self.l3,
            l4: self.l4,
            len,
            tags,
            carried,
            datagram,
            hashed: whole && matches!(self.l4, L4::Tcp(_) | L4::Udp(_)),
        };
        let ip = if matches!(l3, L3::Ipv6(_)) { 40 } else { 20 };
        let transport = if matches!(l4, L4::Udp(_)) { 8 } else { 0 };
        self.len = ETH_HLEN + ip + transport + shim.len() + if frame { ETH_HLEN } else { 0 } + len;
        self.pkt_len = self.len;
        (self.l3, self.l4, self.eth) = (l3, l4, ([0; 6], [0; 6]));
        self.rare_mut().carried = Some(memory);
    }
    /// Takes out what a tunnel's packet carries: it is that from now on. Of a frame the first tag stands beside it. Gives the memory back; `None`
    /// where nothing is carried.
    pub fn decapsulate(&mut self) -> Option<Box<Carried>> {
        self.rare().carried.as_ref()?;
        let rare = self.rare_mut();
        let mut memory = rare.carried.take()?;
        (rare.within, rare.carried, rare.datagram) =
            (memory.tags.take(), memory.carried.take(), memory.datagram);
        (rare.inside, rare.frag_max_size) = (None, 0);
        (self.l3, self.l4) = (memory.l3, memory.l4);
        self.eth = memory.eth.unwrap_or_default();
        self.len = ETH_HLEN + memory.len;
        self.pkt_len = self.len;
        if let Some(tag) = self.remove_vlan() {
            self.rare_mut().vlan = Some(tag);
        }
        Some(memory)
    }
    /// The packet that its socket has sent, which may be within tunnels' packets: its length as a frame, its headers before the transport header,
    /// and that.
    #[inline]
    pub fn as_sent(&self) -> (u32, u32, &L4) {
        if self.is_noted()
            && let Some(mut carried) = self.rare().carried.as_deref()
        {
            while let Some(deeper) = carried.carried.as_deref() {
                carried = deeper;
            }
            let ip = if matches!(carried.l3, L3::Ipv6(_)) { 40 } else { 20 };
            return (ETH_HLEN + carried.len, ETH_HLEN + ip, &carried.l4);
        }
        (self.len, self.headers_before_l4(), &self.l4)
    }
    /// Network and transport header that a flow dissector comes to which reads through tunnels, as those of `sfq`, `cake`, `choke` and the
    /// classifier `flow` do.
    #[inline]
    pub fn dissected(&self) -> (&L3, &L4) {
        if !self.is_noted() {
            return (&self.l3, &self.l4);
        }
        let own = self.behind_session();
        self.rare().carried.as_ref().map_or(own, |c| c.dissected(own))
    }
    /// The same for the hash that goes with a packet (`skb_get_hash`): a tunnel keeps that of the packet it carries, while the packet is on the
    /// machine that put it in.
    #[inline]
    pub fn hashed(&self) -> (&L3, &L4) {
        if self.is_noted()
            && let Some(carried) = self.rare().carried.as_ref().filter(|c| c.hashed)
        {
            return carried.flow();
        }
        self.dissected()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{Ipv4, Udp, ipproto};
    use crate::skb::HEADER_MAX;

    fn udp(len: u32) -> Skb {
        let l3 = Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), ipproto::UDP);
        Skb { eth: ([2; 6], [4; 6]), ..Skb::new(len, L3::Ipv4(l3), L4::Udp(Udp { sport: 5, dport: 6 })) }
    }
    fn outer(protocol: u8) -> L3 {
        L3::Ipv4(Ipv4 { id: 7, ..Ipv4::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into(), protocol) })
    }
    fn bytes(skb: &Skb) -> Vec<u8> {
        let mut out = [0; HEADER_MAX];
        let n = skb.header_bytes(&mut out);
        out[..n].to_vec()
    }

    #[test]
    fn what_goes_in_comes_out() {
        let shims = [
            (Shim::None, false, 20, ipproto::IPIP, L4::None),
            (Shim::Gre { csum: false, key: None, seq: None }, false, 24, ipproto::GRE, L4::None),
            (Shim::Gre { csum: true, key: Some(9), seq: Some(3) }, true, 50, ipproto::GRE, L4::None),
            (Shim::Vxlan { vni: 42 }, true, 50, ipproto::UDP, L4::Udp(Udp { sport: 1, dport: 4789 })),
        ];
        for (shim, frame, more, protocol, l4) in shims {
            let mut skb = udp(114);
            skb.insert_vlan(0x8100, 5);
            let (was, len) = (skb.clone(), skb.len);
            skb.encapsulate(Box::default(), shim, frame, outer(protocol), l4);
            assert_eq!((skb.len, skb.l3, skb.l4), (len + more, outer(protocol), l4), "{shim:?}");
            skb.travel();
            assert!(skb.decapsulate().is_some() && skb.decapsulate().is_none());
            // A tag of a frame stands beside it again.
            assert_eq!((skb.rare().vlan, skb.len), (Some((0x8100, 5)), 114));
            assert_eq!((skb.l3, skb.l4), (*was.innermost().0, *was.innermost().1));
            assert_eq!(skb.eth, if frame { was.eth } else { ([0; 6], [0; 6]) });
        }
    }
    #[test]
    fn headers_within_have_their_bytes() {
        let mut skb = udp(114);
        let plain = bytes(&skb);
        let gre = Shim::Gre { csum: false, key: Some(0x0102_0304), seq: Some(5) };
        skb.encapsulate(Box::default(), gre, false, outer(ipproto::GRE), L4::None);
        let seen = bytes(&skb);
        assert_eq!(&seen[16..18], 132u16.to_be_bytes());
        assert_eq!(seen[34..46], [0x30, 0, 8, 0, 1, 2, 3, 4, 0, 0, 0, 5]);
        assert_eq!(seen[46..], plain[14..]);
        // What somebody changes there is changed.
        let mut changed = seen.clone();
        changed[47] = 0xb8;
        skb.set_header_bytes(&changed);
        assert_eq!(bytes(&skb)[47], 0xb8);
        let mut vx = udp(114);
        let l4 = L4::Udp(Udp { sport: 1, dport: 4789 });
        vx.encapsulate(Box::default(), Shim::Vxlan { vni: 42 }, true, outer(ipproto::UDP), l4);
        let seen = bytes(&vx);
        assert_eq!(seen[42..50], [8, 0, 0, 0, 0, 0, 42, 0]);
        assert_eq!(seen[50..], plain[..]);
        // In a capture the checksum within is right.
        let (mut alone, mut frame) = (Vec::new(), Vec::new());
        assert_eq!(udp(114).frame_bytes(200, &mut alone), 114);
        assert_eq!(vx.frame_bytes(200, &mut frame), 164);
        assert_eq!(frame[50..], alone[..]);
        assert_ne!(frame[40..42], [0, 0]);
    }
    #[test]
    fn a_dissector_reads_through_some_tunnels_and_not_through_fragments() {
        let inner = udp(114);
        let mut skb = udp(114);
        skb.encapsulate(Box::default(), Shim::None, false, outer(ipproto::IPIP), L4::None);
        assert_eq!(skb.dissected(), (&inner.l3, &inner.l4));
        if let L3::Ipv4(h) = &mut skb.l3 {
            h.frag_off = 0x2000;
        }
        assert_eq!(skb.dissected().0, &skb.l3);
        let mut vx = udp(114);
        let l4 = L4::Udp(Udp { sport: 1, dport: 4789 });
        vx.encapsulate(Box::default(), Shim::Vxlan { vni: 42 }, true, outer(ipproto::UDP), l4);
        assert_eq!((vx.dissected().1, vx.hashed().1), (&l4, &inner.l4));
        // The next machine reads the ports, which come from that hash.
        vx.travel();
        assert_eq!(vx.hashed().1, &l4);
    }
}
