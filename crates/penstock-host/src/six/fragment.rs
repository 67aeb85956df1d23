//! Packets of IPv6 that are cut into fragments: at their source, or on a router that has put them together.
//!
//! Follows: linux v6.12 `net/ipv6/ip6_output.c` `__ip6_finish_output`, `ip6_fragment`, `__ip6_append_data` (where a socket's data is cut);
//! `output_core.c` `ipv6_select_ident`; RFC 8200 section 4.5.
//! Differs: where the kernel has room in front of a fragment's data is not looked at: what came in fragments leaves in these.

use super::{HEADER, Hop6, MIN_MTU, icmp};
use crate::{Host, HostCx};
use penstock_model::Rng;
use penstock_packet::headers::{ETH_HLEN, ipproto};
use penstock_packet::{Fragment, Ipv6, L3, L4, Packet, Skb};

/// Bytes of the headers before a fragment's data.
const HEADERS: u32 = HEADER + Fragment::LEN;

impl Host {
    /// Whether a packet has to be cut on its way (`__ip6_finish_output`): it is longer than the way takes, or than what it came in.
    #[inline]
    pub(crate) fn is_long6(&self, packet: &Skb, hop: &Hop6, cx: &HostCx<'_>) -> bool {
        let L3::Ipv6(h) = packet.l3 else { return false };
        let came = packet.rare().frag_max_size;
        packet.longest_network_len() > self.mtu6(hop, h.dst, cx.now)
            || came > 0 && packet.network_len() > came
    }

    /// `ip6_fragment`, with whom to hand the fragments to. What neither was made here nor came in fragments is not cut: its sender is told.
    #[cold]
    pub(crate) fn ip6_fragment(
        &mut self,
        mut packet: Packet,
        hop: Hop6,
        cx: &mut HostCx<'_>,
        mut next: impl FnMut(&mut Host, Packet, &mut HostCx<'_>),
    ) {
        let L3::Ipv6(h) = packet.l3 else { return };
        let mut mtu = self.mtu6(&hop, h.dst, cx.now);
        let came = packet.rare().frag_max_size;
        //= linux v6.12 net/ipv6/ip6_output.c __ip6_make_skb (ignore_df): a datagram's socket lets it be cut, not so one of TCP
        let ours = packet.iif == 0 && !matches!(packet.l4, L4::Tcp(_));
        if packet.longest_network_len() > mtu && !ours && came == 0 || came > mtu {
            self.icmp6_send(&packet, icmp::PKT_TOOBIG, 0, mtu, cx);
            self.discard(packet, "ip6_output", "too-big", cx);
            return;
        }
        if came > 0 {
            mtu = came.max(MIN_MTU);
        }
        let payload = packet.network_len() - HEADER;
        let room = mtu.max(HEADERS + 8) - HEADERS;
        let mut came_in = match came {
            0 => Vec::new(),
            _ => std::mem::take(&mut packet.rare_mut().came_in),
        };
        let kept = {
            let (last, others) = came_in.split_last().map_or((0, &[][..]), |(last, others)| (*last, others));
            let sum: u32 = came_in.iter().map(|&len| u32::from(len)).sum();
            sum == payload && u32::from(last) <= room && others.iter().all(|&len| u32::from(len) <= room)
        };
        // A socket's data is cut to multiples of 8 bytes, the last piece too as far as the room goes.
        let whole = if ours && came == 0 { room & !7 } else { room };
        let len_of = |n: usize, left: u32| match kept {
            true => u32::from(came_in[n]),
            false if left <= whole => left,
            false => room & !7,
        };
        let id = self.select_ident6();
        let next_header = h.next_header;
        let l3 = |at: u32, more: bool| {
            let frag_off = at as u16 | if more { Fragment::MF } else { 0 };
            let fragment = Fragment { id, frag_off, next_header };
            L3::Ipv6(Ipv6 { next_header: ipproto::FRAGMENT, fragment, ..h })
        };
        let first = len_of(0, payload);
        // The first fragment is the packet itself, cut short; it must go first, so the others are copies of it.
        let mut template = (*packet).clone();
        if template.is_noted() {
            template.rare_mut().carried = None;
        }
        // The first of a fragment's fragments, or of a copy's, is counted already.
        let counted = packet.tc.role.is_fragment() || packet.tc.role.is_copy();
        packet.tc.role.set_fragment();
        template.tc.role = packet.tc.role;
        if !counted {
            cx.pool.note_extra(&packet);
        }
        if !matches!(packet.l4, L4::None) && packet.rare().datagram.is_none() {
            packet.rare_mut().datagram = Some(payload as u16);
        }
        packet.len = ETH_HLEN + HEADERS + first;
        packet.pkt_len = packet.len;
        packet.l3 = l3(0, first < payload);
        self.snmp.ip6.frag_ok += 1;
        self.snmp.ip6.frag_creates += 1;
        next(self, packet, cx);
        let (mut at, mut n) = (first, 1);
        while at < payload {
            let len = len_of(n, payload - at);
            let mut piece = cx.pool.alloc(template.clone());
            cx.pool.note_extra(&piece);
            piece.len = ETH_HLEN + HEADERS + len;
            piece.pkt_len = piece.len;
            piece.l3 = l3(at, at + len < payload);
            piece.l4 = L4::None;
            self.snmp.ip6.frag_creates += 1;
            next(self, piece, cx);
            (at, n) = (at + len, n + 1);
        }
        if came_in.capacity() > 0 {
            came_in.clear();
            self.six.spare_lens.push(came_in);
        }
    }

    /// The packet is whole and stays here: what it came in is nobody's business any more.
    pub(crate) fn forget_fragments6(&mut self, packet: &mut Skb) {
        if packet.is_noted() && packet.rare().frag_max_size > 0 {
            let rare = packet.rare_mut();
            rare.frag_max_size = 0;
            let mut came_in = std::mem::take(&mut rare.came_in);
            if came_in.capacity() > 0 {
                came_in.clear();
                self.six.spare_lens.push(came_in);
            }
        }
    }

    /// `ipv6_select_ident`: any number but 0.
    fn select_ident6(&mut self) -> u32 {
        let (seed, name) = (self.seed, &self.name);
        let rng = self.six.idents.get_or_insert_with(|| Rng::named(seed, &format!("host:{name}/ident6")));
        loop {
            let id = rng.next_u32();
            if id != 0 {
                return id;
            }
        }
    }
}
