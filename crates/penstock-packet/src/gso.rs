//! Super-packets: one packet that a card, or the kernel just before it, cuts into segments.
//!
//! Follows: linux v6.12 `net/core/gso.c` `skb_gso_segment`, `skb_gso_validate_mac_len`; `net/ipv4/tcp_offload.c` `tcp_gso_segment`;
//! `net/ipv4/udp_offload.c` `__udp_gso_segment`; `net/ipv4/af_inet.c` `inet_gso_segment`; `net/core/dev.c` `qdisc_pkt_len_init`.

use crate::headers::{ETH_HLEN, L4, TcpFlags};
use crate::skb::Skb;

/// What a packet is cut into (`skb_shinfo(skb)->gso_size`, `gso_segs`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Gso {
    /// Payload of each segment but the last, which may have less, bytes.
    pub size: u16,
    /// How many segments there are, at least 2.
    pub segs: u16,
    /// Its sender is not trusted to have counted them (`SKB_GSO_DODGY`): a packet socket, or a guest's card.
    pub dodgy: bool,
    /// They are counted. Counters of packets go by the sender's word for a packet that is not, which is none: 0. Always so until 7.2.
    pub counted: bool,
    /// CWR is part of a counter (RFC 9768): each segment has it (`SKB_GSO_TCP_ACCECN`), not the first alone.
    pub keeps_cwr: bool,
}

/// Which segment a packet is of a super-packet that was cut before it left.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Segment {
    /// Its number, from 0.
    pub number: u16,
    /// Its payload lies in pages of the super-packet, of which its memory counts its bytes (`skb_segment`).
    pub paged: bool,
    /// Length of the super-packet whose memory it has taken over, bytes; 0 where it has not: the last segment of TCP from a packet socket does, which is
    /// to hear when all is sent (`skb_segment` where the destructor is `sock_wfree`).
    pub whole: u32,
    /// Who has cut it on its way to the wire.
    pub by: Cutter,
}

/// Who cuts a super-packet, and with that, how its socket's memory comes free.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Cutter {
    /// A qdisc: the segments go on through the queue.
    #[default]
    Qdisc,
    /// The card (TSO): the whole is free when its last segment, with this payload of all, has been sent.
    Card(u32),
    /// The kernel before the driver (`validate_xmit_skb`): each segment has its own share, and this is not the last of them.
    Kernel,
}

impl Skb {
    /// What it is cut into; none for a packet that is one segment.
    #[inline]
    pub fn gso(&self) -> Option<Gso> {
        if self.is_noted() { self.rare().gso } else { None }
    }
    /// It is a super-packet from now on, whose segments carry `size` bytes each; or is none, where all of it fits into one, or it is neither TCP nor UDP.
    pub fn set_gso(&mut self, size: u16, dodgy: bool) {
        let payload = self.len.saturating_sub(self.segment_headers());
        let cut = size > 0 && payload > u32::from(size) && matches!(self.l4, L4::Tcp(_) | L4::Udp(_));
        if cut || self.gso().is_some() {
            let segs = payload.div_ceil(u32::from(size.max(1))).min(u16::MAX.into()) as u16;
            self.rare_mut().gso = cut.then_some(Gso { size, segs, dodgy, counted: !dodgy, keeps_cwr: false });
        }
    }
    /// How many segments it is, as far as they are counted: 1 for any other packet.
    #[inline]
    pub fn segments(&self) -> u32 {
        match self.gso() {
            None => 1,
            Some(gso) => gso.segs.into(),
        }
    }
    /// How many packets the kernel's counters take it for until 7.2 (`bstats_update` of `gso_segs`).
    #[inline]
    pub fn counts_as(&self) -> u64 {
        match self.gso() {
            None => 1,
            Some(Gso { counted: false, .. }) => 0,
            Some(gso) => gso.segs.into(),
        }
    }
    /// Bytes before the payload, which each segment has: Ethernet, tags in the frame, IP, and TCP or UDP.
    pub fn segment_headers(&self) -> u32 {
        let transport = match &self.l4 {
            L4::Tcp(tcp) => tcp.header_len(),
            L4::Udp(_) => UDP_HLEN,
            _ => 0,
        };
        self.headers_before_l4() + transport
    }
    /// `qdisc_pkt_len` of a packet that comes to a device's queue: its length on the wire, with the headers of all of its segments.
    //= linux v6.12 net/core/dev.c qdisc_pkt_len_init
    #[inline]
    pub fn initial_pkt_len(&self) -> u32 {
        match self.gso() {
            None => self.len,
            Some(gso) => self.len + u32::from(gso.segs - 1) * self.segment_headers(),
        }
    }
    /// Length of the longest IP packet it becomes on the wire: of a super-packet that of one of its segments.
    //= linux v6.12 net/core/gso.c skb_gso_network_seglen
    #[inline]
    pub fn longest_network_len(&self) -> u32 {
        match self.gso() {
            None => self.network_len(),
            Some(gso) => self.segment_headers() + u32::from(gso.size) - ETH_HLEN,
        }
    }
    /// Bytes from the network header on of all frames that it becomes.
    #[inline]
    pub fn all_network_len(&self) -> u32 {
        self.initial_pkt_len() - self.segments() * ETH_HLEN
    }
    /// Whether each of its segments is a frame of at most `most` bytes (`skb_gso_validate_mac_len`).
    pub fn segments_fit(&self, most: u32) -> bool {
        self.gso().is_some_and(|gso| self.segment_headers() + u32::from(gso.size) <= most)
    }
    /// Where it is a super-packet, each of its segments keeps CWR from now on: those of a connection with Accurate ECN.
    pub fn keep_cwr(&mut self) {
        if self.gso().is_some()
            && let Some(gso) = &mut self.rare_mut().gso
        {
            gso.keeps_cwr = true;
        }
    }
    /// Becomes segment number `n` of the super-packet that it is, from 0. The network header's length follows from the packet's.
    pub fn become_segment(&mut self, n: u16) {
        let Some(gso) = self.gso() else { return };
        let headers = self.segment_headers();
        let payload = self.len - headers;
        let before = u32::from(n) * u32::from(gso.size);
        let last = n + 1 == gso.segs;
        let paged = !gso.dodgy || self.len > LINEAR_MAX;
        let takes_over = gso.dodgy && last && matches!(self.l4, L4::Tcp(_));
        let whole = if takes_over { self.len } else { 0 };
        let rare = self.rare_mut();
        (rare.gso, rare.segment) = (None, Some(Segment { number: n, paged, whole, by: Cutter::Qdisc }));
        self.len = headers + payload.saturating_sub(before).min(gso.size.into());
        self.pkt_len = self.len;
        if let crate::L3::Ipv4(ip) = &mut self.l3 {
            ip.id = ip.id.wrapping_add(n);
        }
        if let L4::Tcp(tcp) = &mut self.l4 {
            tcp.seq = tcp.seq.wrapping_add(before);
            // FIN and PSH are the last one's, CWR is the first one's.
            let of_last = if last { 0 } else { TcpFlags::FIN.0 | TcpFlags::PSH.0 };
            let of_first = if n == 0 || gso.keeps_cwr { 0 } else { TcpFlags::CWR.0 };
            tcp.flags = tcp.flags.without(TcpFlags(of_last | of_first));
        }
    }
}

/// Length of a UDP header, bytes.
const UDP_HLEN: u32 = 8;
/// A packet socket's packet whose bytes do not fit into a page with the 16 before them has them in pages of their own (`packet_alloc_skb`).
const LINEAR_MAX: u32 = 4096 - 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::headers::{Ipv4, L3, Tcp, Udp, ipproto};
    use std::net::Ipv4Addr;

    fn tcp(len: u32) -> Skb {
        let ip = Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, ipproto::TCP);
        let flags = TcpFlags::ACK.with(TcpFlags::PSH).with(TcpFlags::FIN).with(TcpFlags::CWR);
        Skb::new(len, L3::Ipv4(ip), L4::Tcp(Tcp { seq: u32::MAX - 99, flags, ..Tcp::default() }))
    }

    #[test]
    fn a_super_packet_counts_the_headers_of_its_segments() {
        let mut skb = tcp(54 + 2500);
        skb.set_gso(1000, false);
        assert_eq!(
            skb.gso(),
            Some(Gso { size: 1000, segs: 3, dodgy: false, counted: true, keeps_cwr: false })
        );
        assert_eq!((skb.initial_pkt_len(), skb.segments(), skb.counts_as()), (54 * 3 + 2500, 3, 3));
        assert!(skb.segments_fit(1054) && !skb.segments_fit(1053));
        skb.set_gso(1000, true);
        assert_eq!((skb.segments(), skb.counts_as()), (3, 0));
    }

    #[test]
    fn what_fits_into_one_segment_is_none() {
        let mut skb = tcp(54 + 1000);
        skb.set_gso(1000, false);
        assert_eq!((skb.gso(), skb.initial_pkt_len(), skb.counts_as()), (None, 1054, 1));
        let ip = Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, ipproto::ICMP);
        let mut other = Skb::new(5000, L3::Ipv4(ip), L4::None);
        other.set_gso(1000, false);
        assert_eq!(other.gso(), None);
    }

    #[test]
    fn segments_are_what_the_kernel_makes_of_it() {
        let mut skb = tcp(54 + 2500);
        skb.set_gso(1000, false);
        let cut: Vec<Skb> = (0..3)
            .map(|n| {
                let mut segment = skb.clone();
                segment.become_segment(n);
                segment
            })
            .collect();
        let told = |s: &Skb| match (&s.l3, &s.l4) {
            (L3::Ipv4(ip), L4::Tcp(tcp)) => (s.len, s.pkt_len, ip.id, tcp.seq, tcp.flags.0, s.gso()),
            _ => unreachable!(),
        };
        let (ack, psh, fin, cwr) = (0x10, 0x08, 0x01, 0x80);
        assert_eq!(told(&cut[0]), (1054, 1054, 0, u32::MAX - 99, ack | cwr, None));
        assert_eq!(told(&cut[1]), (1054, 1054, 1, 900, ack, None));
        assert_eq!(told(&cut[2]), (554, 554, 2, 1900, ack | psh | fin, None));
    }

    #[test]
    fn a_pool_cuts_it_without_new_memory() {
        let mut pool = crate::Pool::new();
        let mut skb = tcp(54 + 2500);
        skb.set_gso(1000, false);
        skb.rare_mut().vlan = Some((0x8100, 5));
        assert_eq!((skb.longest_network_len(), skb.all_network_len()), (1040, 40 * 3 + 2500));
        let spent: Vec<_> = (0..3).map(|_| pool.alloc(skb.clone())).collect();
        spent.into_iter().for_each(|packet| pool.free(packet));
        for n in 0..3 {
            let packet = pool.segment(&skb, n);
            let mut as_cut = skb.clone();
            as_cut.become_segment(n);
            assert_eq!(format!("{packet:?}"), format!("{as_cut:?}"));
        }
        assert_eq!(pool.lent(), 3);
    }

    #[test]
    fn datagrams_have_headers_of_udp() {
        let ip = Ipv4::new(Ipv4Addr::LOCALHOST, Ipv4Addr::LOCALHOST, ipproto::UDP);
        let mut skb = Skb::new(42 + 3000, L3::Ipv4(ip), L4::Udp(Udp { sport: 1, dport: 2 }));
        skb.set_gso(1200, false);
        assert_eq!((skb.segments(), skb.initial_pkt_len()), (3, 3000 + 3 * 42));
        skb.become_segment(2);
        assert_eq!(skb.len, 42 + 600);
    }
}
