//! Which flow a packet is of: the two kernels' hashes.
//!
//! Follows: linux v6.12 net/core/flow_dissector.c `skb_get_hash_perturb`, `__flow_hash_consistentify` (which fields
//! count, and that both directions count as one flow); linux v2.6.35 net/sched/sch_sfq.c `sfq_hash` with
//! include/linux/jhash.h `jhash_2words`, which lets structured addresses collide as they did.
//! Differs: 6.12 hashes by SipHash under a random key; here a keyed multiplication does. Which flows collide is as
//! random as there. For what is not IP, 2.6.35 takes addresses of kernel objects; here they are 0.

use penstock_model::Rng;
use penstock_packet::headers::ipproto;
use penstock_packet::{L3, L4, Skb, ethertype};

/// The protocol number of GRE.
const GRE: u8 = 47;

/// 6.12's key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key(u64, u64);

impl Key {
    /// That of `skb_get_hash`, which a kernel draws once as it boots: here always the same.
    pub(crate) const FIXED: Key = Key(0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9);
    /// A new key by the dice.
    pub(crate) fn draw(rng: &mut Rng) -> Key {
        Key(rng.next_u64(), rng.next_u64())
    }

    /// `skb_get_hash_perturb`.
    #[inline]
    pub(crate) fn hash(&self, skb: &Skb) -> u32 {
        self.of_headers(skb.dissected())
    }
    #[inline]
    fn of_headers(&self, (l3, l4): (&L3, &L4)) -> u32 {
        let ports = |protocol: u8, whole: bool| match l4 {
            L4::Tcp(t) if whole => (protocol, t.sport, t.dport),
            L4::Udp(u) if whole => (protocol, u.sport, u.dport),
            _ => (protocol, 0, 0),
        };
        let (src, dst, (protocol, sport, dport), label) = match l3 {
            L3::Ipv4(h) => {
                let whole = h.frag_off & 0x3fff == 0;
                (u128::from(h.src.to_bits()), u128::from(h.dst.to_bits()), ports(h.protocol, whole), 0)
            }
            L3::Ipv6(h) => {
                // A flow label stands for the ports, and ends the search before a fragment header; behind one ports are not looked at.
                let ports = match h.flow_label {
                    0 => ports(h.protocol(), h.fragment().is_none()),
                    _ => ports(h.next_header, false),
                };
                (h.src.to_bits(), h.dst.to_bits(), ports, h.flow_label)
            }
            _ => (0, 0, (0, 0, 0), 0),
        };
        let (low, high) = (src.min(dst), src.max(dst));
        let (port_low, port_high) = (sport.min(dport), sport.max(dport));
        let rest = u64::from(ethertype(l3)) << 48 | u64::from(protocol) << 40;
        let ports = u64::from(port_low) << 32 | u64::from(port_high) << 16;
        let mut h = self.0;
        if matches!(l3, L3::Ipv6(_)) {
            h = self.mix(h, (low >> 64) as u64);
            h = self.mix(h, low as u64);
            h = self.mix(h, (high >> 64) as u64);
            h = self.mix(h, high as u64);
        } else {
            h = self.mix(h, (low as u64) << 32 | high as u64);
        }
        h = self.mix(h, rest ^ u64::from(label));
        h = self.mix(h, ports);
        let hash = (self.mix(h, self.0) >> 32) as u32;
        if hash == 0 { 1 } else { hash }
    }

    /// `skb_get_hash`: what the socket has drawn, where it has done so again.
    //= linux v6.12 include/net/sock.h skb_set_hash_from_sk
    #[inline]
    pub(crate) fn hash_from_socket(&self, skb: &Skb) -> u32 {
        // What chose its transmit queue has noted it in the packet (`skb->hash`).
        if skb.rare().hash != 0 {
            return skb.rare().hash;
        }
        let hash = self.of_headers(skb.hashed());
        match skb.sender.rehashed {
            0 => hash,
            times => self.hash_word(hash ^ u32::from(times)),
        }
    }

    /// `flow_hash_from_keys` of one address alone: of the source, and of the destination. Where there are no addresses: 0.
    //= linux v6.12 net/sched/sch_cake.c cake_hash
    pub(crate) fn hosts(&self, skb: &Skb) -> [u32; 2] {
        let (l3, l4) = skb.dissected();
        //= linux v6.12 net/core/flow_dissector.c __skb_flow_dissect_gre: what stands behind GRE's header counts as the kind of packet, here nothing known.
        let kind = match (l3, l4) {
            (L3::Ipv4(h), L4::None) if h.protocol == GRE => 0,
            (L3::Ipv6(h), L4::None) if h.next_header == GRE => 0,
            _ => ethertype(l3),
        };
        let one = |address: u128| {
            let h = self.mix(self.0 ^ u64::from(kind), (address >> 64) as u64);
            let hash = (self.mix(self.mix(h, address as u64), self.0) >> 32) as u32;
            hash.max(1)
        };
        match l3 {
            L3::Ipv4(h) => [one(h.src.to_bits().into()), one(h.dst.to_bits().into())],
            L3::Ipv6(h) => [one(h.src.to_bits()), one(h.dst.to_bits())],
            _ => [0, 0],
        }
    }

    /// `siphash_1u32`: of a number instead of a packet.
    pub(crate) fn hash_word(&self, word: u32) -> u32 {
        (self.mix(self.mix(self.0, word.into()), self.0) >> 32) as u32
    }

    /// One step: both halves of a 128-bit product, folded.
    #[inline]
    fn mix(&self, h: u64, word: u64) -> u64 {
        let product = u128::from(h ^ word ^ 0x9e37_79b9_7f4a_7c15) * u128::from(self.1 | 1);
        (product as u64 ^ (product >> 64) as u64).rotate_left(29) ^ word.wrapping_mul(0xd6e8_feb8_6659_fd93)
    }
}

/// 2.6.35: `sfq_hash` before it is folded into the table.
pub(super) fn old_hash(skb: &Skb, perturbation: u32) -> u32 {
    let ports = |whole: bool| match skb.l4 {
        L4::Tcp(t) if whole => port_word(t.sport, t.dport),
        L4::Udp(u) if whole => port_word(u.sport, u.dport),
        _ => 0,
    };
    let has_ports = |protocol: u8| matches!(protocol, ipproto::TCP | ipproto::UDP);
    let (h, h2) = match &skb.l3 {
        L3::Ipv4(ip) => {
            // Any fragment, the first included, goes without ports.
            let whole = has_ports(ip.protocol) && ip.frag_off & 0x3fff == 0;
            let saddr = u32::from_le_bytes(ip.src.octets());
            (u32::from_le_bytes(ip.dst.octets()), saddr ^ u32::from(ip.protocol) ^ ports(whole))
        }
        L3::Ipv6(ip) => {
            let word = |a: [u8; 16]| u32::from_le_bytes([a[12], a[13], a[14], a[15]]);
            let saddr = word(ip.src.octets());
            let h2 = saddr ^ u32::from(ip.next_header) ^ ports(has_ports(ip.next_header));
            (word(ip.dst.octets()), h2)
        }
        _ => (u32::from(skb.protocol().to_be()), 0),
    };
    jhash_2words(h, h2, perturbation)
}

/// The first word of a transport header, as a little-endian machine reads it.
fn port_word(sport: u16, dport: u16) -> u32 {
    let (s, d) = (sport.to_be_bytes(), dport.to_be_bytes());
    u32::from_le_bytes([s[0], s[1], d[0], d[1]])
}

/// Bob Jenkins' hash of 1996, as 2.6.35 has it.
fn jhash_2words(first: u32, second: u32, initval: u32) -> u32 {
    const GOLDEN_RATIO: u32 = 0x9e37_79b9;
    let (mut a, mut b, mut c) =
        (first.wrapping_add(GOLDEN_RATIO), second.wrapping_add(GOLDEN_RATIO), initval);
    for (x, y, z) in [(13, 8, 13), (12, 16, 5), (3, 10, 15)] {
        a = a.wrapping_sub(b).wrapping_sub(c) ^ (c >> x);
        b = b.wrapping_sub(c).wrapping_sub(a) ^ (a << y);
        c = c.wrapping_sub(a).wrapping_sub(b) ^ (b >> z);
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::packet;
    use penstock_packet::Udp;

    fn udp(src: u8, dst: u8, sport: u16, dport: u16) -> penstock_packet::Packet {
        let mut p = packet(0, 100);
        if let L3::Ipv4(h) = &mut p.l3 {
            (h.src, h.dst) = ([10, 0, 0, src].into(), [10, 0, 0, dst].into());
        }
        p.l4 = L4::Udp(Udp { sport, dport });
        p
    }

    #[test]
    fn both_directions_are_one_flow_today_and_two_in_2010() {
        let key = Key::draw(&mut Rng::named(1, "sfq"));
        let (there, back) = (udp(1, 2, 1000, 2000), udp(2, 1, 2000, 1000));
        assert_eq!(key.hash(&there), key.hash(&back));
        assert_ne!(key.hash(&there), key.hash(&udp(1, 2, 1000, 2001)));
        assert_ne!(old_hash(&there, 7), old_hash(&back, 7));
    }

    #[test]
    fn a_new_key_is_a_new_hash_and_the_buckets_fill_evenly() {
        let mut rng = Rng::named(2, "sfq");
        for _ in 0..8 {
            let key = Key::draw(&mut rng);
            let mut seen = [0u32; 64];
            for i in 0..6400u32 {
                seen[(key.hash(&udp((i / 80) as u8, 9, i as u16, 80)) & 63) as usize] += 1;
            }
            // Mean 100, standard deviation 10.
            assert!(seen.iter().all(|&n| (50..160).contains(&n)), "{seen:?}");
        }
    }
}
