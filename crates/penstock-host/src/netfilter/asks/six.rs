//! `frag`, `ipv6header`: the extension headers of a packet of IPv6, of which there is at most that of a fragment here.
//!
//! Follows: linux v6.12 `net/ipv6/netfilter/ip6t_frag.c` `frag_mt6`, `ip6t_ipv6header.c` `ipv6header_mt6`.

use penstock_lang::iptables::asks::{Frag, Ipv6Header};
use penstock_packet::{L3, Skb};

/// Whether a fragment fits; what has no fragment header does not.
pub(super) fn frag(asked: &Frag, skb: &Skb) -> bool {
    let L3::Ipv6(h) = skb.l3 else { return false };
    let Some(fragment) = h.fragment() else { return false };
    let id = (asked.id.0..=asked.id.1).contains(&fragment.id) != asked.invert_id;
    let reserved = asked.reserved && fragment.frag_off & 6 != 0;
    let later = asked.first && fragment.offset() != 0;
    id && !reserved && !later && asked.more.is_none_or(|more| more == fragment.more())
}

/// Whether a packet has these headers.
pub(super) fn ipv6header(asked: &Ipv6Header, skb: &Skb) -> bool {
    let L3::Ipv6(h) = skb.l3 else { return false };
    let bit = |number: u8| Ipv6Header::BITS.iter().find(|b| b.1 == number).map_or(0, |b| b.2);
    let last = match h.protocol() {
        none @ (50 | 59) => bit(none),
        _ => bit(255),
    };
    let has = last | h.fragment().map_or(0, |_| bit(h.next_header));
    match (asked.soft, asked.invert) {
        (true, false) => (has ^ asked.headers) & asked.headers == 0,
        (true, true) => (has ^ !asked.headers) & asked.headers == 0,
        (false, invert) => (has == asked.headers) != invert,
    }
}
