//! Marking instead of dropping.
//!
//! Follows: linux v6.12 include/net/inet_ecn.h `INET_ECN_set_ce`; RFC 3168 section 5.

use penstock_packet::{L3, Skb};

/// Marks a packet "congestion experienced". `false`, and nothing done, when its sender does not understand it.
pub fn set_ce(skb: &mut Skb) -> bool {
    let tos = match &mut skb.l3 {
        L3::Ipv4(h) => &mut h.tos,
        L3::Ipv6(h) => &mut h.traffic_class,
        _ => return false,
    };
    if *tos & 3 == 0 {
        return false;
    }
    *tos |= 3;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;

    #[test]
    fn marks_who_understands_it() {
        for (tos, marked) in [(0x10, None), (0x11, Some(0x13)), (0x12, Some(0x13)), (0x13, Some(0x13))] {
            let mut p = packet(0, 100);
            if let L3::Ipv4(h) = &mut p.l3 {
                h.tos = tos;
            }
            assert_eq!(set_ce(&mut p), marked.is_some());
            assert_eq!(p.tos(), marked.unwrap_or(tos));
        }
    }
}
