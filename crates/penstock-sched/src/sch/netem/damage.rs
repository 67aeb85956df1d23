//! A bit of a packet is turned over.
//!
//! Follows: linux v6.12 `net/sched/sch_netem.c` `netem_enqueue` (`corrupt`).
//! Differs: a TCP segment's linear part is its headers, as its sender makes it; every other packet is linear as a whole.

use penstock_model::Rng;
use penstock_packet::skb::HEADER_MAX;
use penstock_packet::{L3, L4, Skb};

/// Where the network header begins.
const NETWORK: usize = 14;

/// Turns a bit over that the machine's dice choose.
pub(super) fn strike(skb: &mut Skb, rng: &mut Rng) {
    let mut bytes = [0; HEADER_MAX];
    let headers = skb.header_bytes(&mut bytes);
    let linear = if matches!(skb.l4, L4::Tcp(_)) { headers as u32 } else { skb.len };
    let (place, bit) = (rng.below(linear) as usize, rng.below(8));
    let transport = match skb.l3 {
        L3::Ipv4(_) => NETWORK + 20,
        L3::Ipv6(h) => NETWORK + h.header_len() as usize,
        _ => usize::MAX,
    };
    if place < headers {
        bytes[place] ^= 1 << bit;
        skb.set_header_bytes(&bytes[..headers]);
    }
    // Every single bit shows in the checksum that covers it: IPv4's of its header, TCP's, UDP's and ICMP's of what is behind. An IPv6 header
    // is covered by the latter in part.
    match place {
        _ if place < NETWORK => {}
        _ if place < transport && matches!(skb.l3, L3::Ipv4(_)) => skb.tc.bad_checksum = true,
        _ => skb.tc.damaged = true,
    }
}
