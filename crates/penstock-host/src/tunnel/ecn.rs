//! Types of service and congestion marks on the way into a tunnel and out of it (RFC 6040).
//!
//! Follows: linux v6.12 `include/net/inet_ecn.h` `INET_ECN_encapsulate`, `__INET_ECN_decapsulate`, `INET_ECN_decapsulate`;
//! `include/net/ip_tunnels.h` `ip_tunnel_get_dsfield`, `ip_tunnel_ecn_encap`.

use penstock_packet::L3;

/// Congestion experienced.
const CE: u8 = 3;
/// ECN capable transport, (1) and (0).
const ECT_1: u8 = 1;
const ECT_0: u8 = 2;

/// The type of service of a packet; 0 of what is not IP.
pub(crate) fn dsfield(l3: &L3) -> u8 {
    match l3 {
        L3::Ipv4(h) => h.tos,
        L3::Ipv6(h) => h.traffic_class,
        _ => 0,
    }
}

/// The outer type of service `tos` with the congestion bits that follow from the inner one: a packet that is marked goes as one that may be.
pub(crate) fn encapsulate(tos: u8, inner: u8) -> u8 {
    tos & !3 | if inner & 3 == CE { ECT_0 } else { inner & 3 }
}

/// What becomes of the inner bits when the outer ones are off; `None`: the packet is dropped, for its congestion would be lost.
pub(crate) fn decapsulate(outer: u8, inner: u8) -> Option<u8> {
    match (outer & 3, inner & 3) {
        (CE, 0) => None,
        (_, 0) => Some(0),
        (CE, _) => Some(CE),
        (ECT_1, ECT_0) => Some(ECT_1),
        (_, inner) => Some(inner),
    }
}

/// Sets a packet's congestion bits.
pub(crate) fn set(l3: &mut L3, ecn: u8) {
    match l3 {
        L3::Ipv4(h) => h.tos = h.tos & !3 | ecn,
        L3::Ipv6(h) => h.traffic_class = h.traffic_class & !3 | ecn,
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6040 figure 4, with inner marks down and outer ones across: Not-ECT, ECT(0), ECT(1), CE.
    #[test]
    fn marks_come_out_as_figure_4_says() {
        let order = [0, ECT_0, ECT_1, CE];
        let figure = [
            (0, [Some(0), Some(0), Some(0), None]),
            (ECT_0, [Some(ECT_0), Some(ECT_0), Some(ECT_1), Some(CE)]),
            (ECT_1, [Some(ECT_1), Some(ECT_1), Some(ECT_1), Some(CE)]),
            (CE, [Some(CE); 4]),
        ];
        for (inner, wanted) in figure {
            assert_eq!(order.map(|outer| decapsulate(0xb8 | outer, 0x10 | inner)), wanted, "{inner}");
        }
    }
    #[test]
    fn marks_go_in_but_for_ce() {
        assert_eq!([0, ECT_0, ECT_1, CE].map(|inner| encapsulate(0xbb, inner)), [0xb8, 0xba, 0xb9, 0xba]);
    }
}
