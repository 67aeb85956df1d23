//! Putting headers before the rest of a frame, and taking them off: tags of VLANs, entries of MPLS label stacks, `ife`'s metadata, PPPoE.

use crate::headers::{ETH_HLEN, L3, L4};
use crate::skb::{Skb, Tagged, ethertype};
use std::sync::Arc;

/// A header in the frame, and what stands behind it. A flow dissector reads on behind that of a PPPoE session alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wrapped {
    /// It.
    pub head: Head,
    /// Network header behind it: [`L3::Other`] where a tag or another of these is.
    pub l3: L3,
    /// Transport header.
    pub l4: L4,
    /// What stands behind a tag that follows.
    pub within: Option<Box<Tagged>>,
    /// What follows behind all of that.
    pub wrapped: Option<Box<Wrapped>>,
}

/// Such a header; the ethertype before it is the packet's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Head {
    /// An entry of an MPLS label stack (RFC 3032): label 20 bits, traffic class 3, bottom of stack 1, time to live 8.
    Mpls(u32),
    /// What `ife` puts before a whole frame: the first `len` of these bytes, and that frame's source and destination hardware addresses.
    Ife {
        /// The length of all metadata, and each as type, length and value.
        meta: [u8; IFE_MAX],
        /// How many bytes count.
        len: u8,
        /// Source and destination.
        eth: ([u8; 6], [u8; 6]),
    },
    /// What stands before a packet in a PPPoE session (RFC 2516): 6 bytes, and 2 of PPP's protocol.
    Pppoe {
        /// `SESSION_ID`.
        sid: u16,
        /// Protocol of PPP: [`PPP_IP`], [`PPP_IPV6`].
        proto: u16,
    },
    /// A message of PPPoE's discovery or of PPP's own protocols, from PPPoE's header on. Nothing stands behind it.
    PppoeMessage(Arc<[u8]>),
}

/// Ethertypes of PPPoE: discovery and sessions.
pub const ETH_P_PPP_DISC: u16 = 0x8863;
/// The same of sessions.
pub const ETH_P_PPP_SES: u16 = 0x8864;
/// PPP's protocol numbers of IPv4 and IPv6.
pub const PPP_IP: u16 = 0x0021;
/// The same of IPv6.
pub const PPP_IPV6: u16 = 0x0057;
/// Length of PPPoE's header with PPP's protocol (`PPPOE_SES_HLEN`), bytes.
pub const PPPOE_SES_HLEN: u32 = 8;

/// Most bytes of `ife`'s metadata here: its length and mark, priority and index of 8 each.
pub const IFE_MAX: usize = 26;

impl Head {
    /// Bytes in the frame, with an Ethernet header that belongs to it.
    pub fn frame_len(&self) -> u32 {
        match self {
            Head::Mpls(_) => 4,
            Head::Ife { len, .. } => u32::from(*len) + ETH_HLEN,
            Head::Pppoe { .. } => PPPOE_SES_HLEN,
            Head::PppoeMessage(bytes) => bytes.len() as u32,
        }
    }
}

/// Length of a VLAN tag in the frame, bytes.
const VLAN_HLEN: u32 = 4;
/// Ethertypes of MPLS, to one and to many.
const ETH_P_MPLS: [u16; 2] = [0x8847, 0x8848];

impl Skb {
    /// Puts a tag into the frame, before all that is there (`__vlan_insert_tag`): it is the packet's network header then.
    pub fn insert_vlan(&mut self, ethertype: u16, tci: u16) {
        let (l3, l4, within) = (self.l3, self.l4, self.rare_mut().within.take());
        self.rare_mut().declared = None;
        self.rare_mut().within = Some(Box::new(Tagged { tci, l3, l4, within }));
        (self.l3, self.l4) = (L3::Other(ethertype), L4::None);
        self.len += VLAN_HLEN;
    }
    /// Takes the first tag out of the frame (`__skb_vlan_pop`): ethertype and TCI.
    pub fn remove_vlan(&mut self) -> Option<(u16, u16)> {
        self.rare().within.as_ref()?;
        let tagged = *self.rare_mut().within.take()?;
        let tag = (self.protocol(), tagged.tci);
        (self.l3, self.l4, self.rare_mut().within) = (tagged.l3, tagged.l4, tagged.within);
        self.rare_mut().declared = None;
        self.len -= VLAN_HLEN;
        Some(tag)
    }
    /// How many tags are in the frame.
    pub fn tags_in_frame(&self) -> usize {
        std::iter::successors(self.rare().within.as_deref(), |t| t.within.as_deref()).count()
    }
    /// Puts a header before all that stands behind the Ethernet header, and `ethertype` before that.
    pub fn wrap(&mut self, ethertype: u16, head: Head) {
        let (l3, l4, len) = (self.l3, self.l4, head.frame_len());
        let rare = self.rare_mut();
        let (within, wrapped) = (rare.within.take(), rare.wrapped.take());
        rare.wrapped = Some(Box::new(Wrapped { head, l3, l4, within, wrapped }));
        rare.declared = None;
        (self.l3, self.l4) = (L3::Other(ethertype), L4::None);
        self.len += len;
    }
    /// Takes the first such header off, and what it stands before becomes the packet's own. `None` where there is none, or a tag before it.
    pub fn take_off(&mut self) -> Option<Head> {
        if self.rare().within.is_some() || self.rare().wrapped.is_none() {
            return None;
        }
        let more = *self.rare_mut().wrapped.take()?;
        (self.l3, self.l4) = (more.l3, more.l4);
        (self.rare_mut().within, self.rare_mut().wrapped) = (more.within, more.wrapped);
        self.rare_mut().declared = None;
        self.len -= more.head.frame_len();
        Some(more.head)
    }
    /// `skb->protocol`: the frame's ethertype, or that of a frame which has been wrapped without telling (`ife`).
    #[inline]
    pub fn declared(&self) -> u16 {
        self.rare().declared.unwrap_or_else(|| self.protocol())
    }
    /// The frame begins with its network header, whose bytes are read as an Ethernet header: what its ethertype would be is of the source address.
    pub fn lose_head(&mut self) {
        let read = match &self.l3 {
            L3::Ipv4(h) => (h.src.to_bits() >> 16) as u16,
            L3::Ipv6(h) => (h.src.to_bits() >> 80) as u16,
            _ => 0,
        };
        (self.l3, self.l4) = (L3::Other(read), L4::None);
        self.len = self.len.saturating_sub(ETH_HLEN);
    }
    /// Whether it is taken for a packet of MPLS (`eth_p_mpls` of `skb->protocol`).
    pub fn is_mpls(&self) -> bool {
        ETH_P_MPLS.contains(&self.protocol())
    }
    /// The first entry of its label stack, behind all tags in the frame.
    pub fn label(&self) -> Option<u32> {
        self.labels().next()
    }
    /// The entries of its label stack, from the first on.
    pub fn labels(&self) -> impl Iterator<Item = u32> + '_ {
        fn next<'a>(w: &&'a Wrapped) -> Option<&'a Wrapped> {
            if w.within.is_none() { w.wrapped.as_deref() } else { None }
        }
        std::iter::successors(self.rare().wrapped.as_deref(), next).map_while(|w| match w.head {
            Head::Mpls(entry) => Some(entry),
            _ => None,
        })
    }
    /// Changes the first entry; whether there is one.
    pub fn set_label(&mut self, entry: u32) -> bool {
        match self.rare_mut().wrapped.as_deref_mut() {
            Some(Wrapped { head: Head::Mpls(first), .. }) => {
                *first = entry;
                true
            }
            _ => false,
        }
    }
    /// Takes the first entry of the label stack off (`skb_mpls_pop`): what stands behind it is taken for a packet of `ethertype`. Where it is not
    /// one, what it holds is not known from then on.
    pub fn pop_label(&mut self, next: u16) {
        let labels = self.labels().count();
        if !matches!(self.take_off(), Some(Head::Mpls(_))) {
            (self.l3, self.l4) = (L3::Other(next), L4::None);
            return;
        }
        // Both ethertypes of MPLS say the same of what follows; whether anything does, the entry does not say.
        let more = labels > 1 && ETH_P_MPLS.contains(&next);
        if more {
            self.l3 = L3::Other(next);
        } else if ethertype(&self.l3) != next || labels > 1 {
            (self.l3, self.l4) = (L3::Other(next), L4::None);
            (self.rare_mut().within, self.rare_mut().wrapped) = (None, None);
        }
    }
    /// Session and PPP's protocol of a frame in a PPPoE session, behind all tags in the frame.
    pub fn pppoe(&self) -> Option<(u16, u16)> {
        let wrapped =
            self.rare().wrapped.as_deref().filter(|_| ethertype(self.innermost().0) == ETH_P_PPP_SES)?;
        match &wrapped.head {
            Head::Pppoe { sid, proto } => Some((*sid, *proto)),
            Head::PppoeMessage(bytes) => {
                let two = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
                Some((two(2)?, two(6)?))
            }
            _ => None,
        }
    }
    /// Network and transport header that a flow dissector comes to which reads through no tunnels: behind all tags in the frame, and behind the
    /// header of a PPPoE session where an IP packet is there.
    //= linux v6.12 net/core/flow_dissector.c __skb_flow_dissect: ETH_P_PPP_SES
    #[inline]
    pub fn behind_session(&self) -> (&L3, &L4) {
        let own = self.innermost();
        match self.rare().wrapped.as_deref() {
            Some(Wrapped { head: Head::Pppoe { .. }, l3, l4, within: None, wrapped: None }) => (l3, l4),
            _ => own,
        }
    }
    /// Network and transport header behind everything that is put before them, and where the first begins, in bytes from the frame's begin.
    pub(crate) fn last_headers(&self) -> (&L3, &L4, usize) {
        let mut found = (&self.l3, &self.l4, ETH_HLEN as usize);
        if !self.is_noted() {
            return found;
        }
        let (mut within, mut wrapped) = (&self.rare().within, &self.rare().wrapped);
        loop {
            while let Some(tagged) = within {
                found = (&tagged.l3, &tagged.l4, found.2 + VLAN_HLEN as usize);
                within = &tagged.within;
            }
            let Some(more) = wrapped else { return found };
            found = (&more.l3, &more.l4, found.2 + more.head.frame_len() as usize);
            (within, wrapped) = (&more.within, &more.wrapped);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{Ipv4, Udp, ipproto};
    use crate::skb::HEADER_MAX;

    fn udp() -> Skb {
        let l3 = L3::Ipv4(Ipv4::new([10, 0, 0, 1].into(), [10, 0, 0, 2].into(), ipproto::UDP));
        Skb { eth: ([1; 6], [2; 6]), ..Skb::new(100, l3, L4::Udp(Udp { sport: 7, dport: 8 })) }
    }
    fn bytes(skb: &Skb) -> Vec<u8> {
        let mut out = [0; HEADER_MAX];
        let n = skb.header_bytes(&mut out);
        out[..n].to_vec()
    }

    #[test]
    fn a_label_stack_stands_between_the_headers() {
        let mut skb = udp();
        let plain = bytes(&skb);
        skb.wrap(0x8847, Head::Mpls(20 << 12 | 1 << 8 | 255));
        skb.wrap(0x8848, Head::Mpls(30 << 12 | 64));
        assert_eq!((skb.len, skb.protocol(), skb.labels().count()), (108, 0x8848, 2));
        let all = bytes(&skb);
        assert_eq!(all[12..22], [0x88, 0x48, 0, 1, 0xe0, 64, 0, 1, 0x41, 255]);
        // The IP header's length is what it was.
        assert_eq!(all[22..], plain[14..]);
        // A byte of the second entry, and the ToS.
        let mut changed = all.clone();
        (changed[20], changed[23]) = (0x61, 0xb8);
        skb.set_header_bytes(&changed);
        assert_eq!(skb.labels().collect::<Vec<_>>(), [30 << 12 | 64, 20 << 12 | 0x2100 | 255]);
        assert_eq!(bytes(&skb), {
            // The header's checksum follows.
            let mut there = changed.clone();
            there[32..34].copy_from_slice(&bytes(&skb)[32..34]);
            there
        });
        skb.pop_label(0x8847);
        assert_eq!((skb.len, skb.protocol(), skb.label()), (104, 0x8847, Some(20 << 12 | 0x2100 | 255)));
        let mut wrong = skb.clone();
        wrong.pop_label(0x86dd);
        assert_eq!((wrong.l3, wrong.len), (L3::Other(0x86dd), 100));
        skb.pop_label(0x0800);
        assert_eq!((skb.len, skb.tos(), skb.l4), (100, 0xb8, udp().l4));
        assert!(skb.labels().next().is_none());
    }

    #[test]
    fn a_whole_frame_stands_behind_the_metadata() {
        let mut skb = udp();
        let plain = bytes(&skb);
        let mut meta = [0; IFE_MAX];
        meta[..10].copy_from_slice(&[0, 10, 0, 1, 0, 8, 0, 0, 0, 9]);
        let head = Head::Ife { meta, len: 10, eth: skb.eth };
        skb.wrap(0xed3e, head);
        skb.eth = ([3; 6], [4; 6]);
        assert_eq!(skb.len, 124);
        let mut all = bytes(&skb);
        assert_eq!(all[..14], [4, 4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 0xed, 0x3e]);
        assert_eq!((&all[14..24], &all[24..]), (&meta[..10], &plain[..]));
        let mut frame = Vec::new();
        assert_eq!(skb.frame_bytes(usize::MAX, &mut frame), 124);
        let mut whole = Vec::new();
        udp().frame_bytes(usize::MAX, &mut whole);
        assert_eq!(frame[24..], whole[..]);
        // The inner source address, and the metadatum.
        (all[30], all[23]) = (9, 7);
        skb.set_header_bytes(&all);
        let Some(Head::Ife { meta, eth, .. }) = skb.take_off() else { panic!("{skb:?}") };
        assert_eq!((meta[9], eth), (7, ([9, 1, 1, 1, 1, 1], [2; 6])));
        assert_eq!((skb.l3, skb.l4, skb.len), (udp().l3, udp().l4, 100));
    }

    #[test]
    fn a_session_stands_before_a_packet() {
        let mut skb = udp();
        let plain = bytes(&skb);
        skb.wrap(ETH_P_PPP_SES, Head::Pppoe { sid: 0x102, proto: PPP_IP });
        assert_eq!((skb.len, skb.protocol(), skb.pppoe()), (108, ETH_P_PPP_SES, Some((0x102, PPP_IP))));
        let all = bytes(&skb);
        // 86 bytes of IP, and 2 of PPP's protocol.
        assert_eq!(all[12..22], [0x88, 0x64, 0x11, 0, 1, 2, 0, 88, 0, 0x21]);
        assert_eq!(all[22..], plain[14..]);
        // A dissector reads on; what looks for a type of service does not.
        assert_eq!(skb.behind_session(), (&udp().l3, &udp().l4));
        assert_eq!((skb.dissected(), skb.innermost().0), ((&udp().l3, &udp().l4), &L3::Other(ETH_P_PPP_SES)));
        let mut changed = all.clone();
        (changed[17], changed[23]) = (9, 0xb8);
        skb.set_header_bytes(&changed);
        assert_eq!(skb.pppoe(), Some((0x109, PPP_IP)));
        skb.travel();
        skb.insert_vlan(0x8100, 7);
        assert_eq!((skb.pppoe(), skb.dissected().1), (Some((0x109, PPP_IP)), &udp().l4));
        skb.remove_vlan();
        assert_eq!(skb.take_off(), Some(Head::Pppoe { sid: 0x109, proto: PPP_IP }));
        assert_eq!((skb.len, skb.tos(), skb.l4), (100, 0xb8, udp().l4));
    }

    #[test]
    fn a_message_of_ppp_is_its_bytes() {
        // LCP's echo request 1 with the magic number 0x01020304.
        let message: [u8; 16] = [0x11, 0, 0, 5, 0, 10, 0xc0, 0x21, 9, 1, 0, 8, 1, 2, 3, 4];
        let mut skb = Skb { eth: ([1; 6], [2; 6]), ..Skb::new(14, L3::Other(0), L4::None) };
        skb.wrap(ETH_P_PPP_SES, Head::PppoeMessage(Arc::new(message)));
        assert_eq!((skb.len, skb.pppoe()), (30, Some((5, 0xc021))));
        let mut frame = Vec::new();
        assert_eq!(skb.frame_bytes(usize::MAX, &mut frame), 30);
        assert_eq!((&frame[12..14], &frame[14..]), (&[0x88, 0x64][..], &message[..]));
        // No packet is behind it.
        assert_eq!(skb.dissected().0, &L3::Other(ETH_P_PPP_SES));
        frame[26] = 7;
        skb.set_header_bytes(&frame);
        assert!(matches!(skb.take_off(), Some(Head::PppoeMessage(read)) if read[12] == 7));
    }

    /// What does not fit is left out, and nothing panics.
    #[test]
    fn more_than_fits_is_cut() {
        let mut skb = udp();
        for n in 0..60 {
            skb.wrap(0x8847, Head::Mpls(n));
        }
        assert_eq!(bytes(&skb).len(), HEADER_MAX);
        let all = bytes(&skb);
        skb.set_header_bytes(&all);
        assert_eq!(skb.labels().count(), 60);
        let mut frame = Vec::new();
        skb.frame_bytes(usize::MAX, &mut frame);
        assert_eq!(frame.len(), 340);
    }
}
