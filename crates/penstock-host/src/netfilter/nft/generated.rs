//! Numbers that are hashed.
//!
//! Follows: linux v6.12 `net/netfilter/nft_hash.c` `nft_jhash_eval`, `nft_symhash_eval`; `nf_conntrack_core.c` `nf_ct_get_id`.
//! Differs: `symhash`, a connection's id and the seed of a `jhash` that names none are keyed by what a kernel draws at boot: here they are
//! others, as spread and as steady.

use super::super::conntrack::Tuple;
use super::super::eval::Way;
use super::super::state::Memory;
use super::live::{Seen, of_name};
use penstock_lang::nft::Type;
use penstock_packet::Skb;
use penstock_sched::cls::flow::jhash2;

/// `reciprocal_scale`.
pub(super) fn scaled(hash: u32, modulus: u32) -> u32 {
    ((u64::from(hash) * u64::from(modulus)) >> 32) as u32
}

/// The seed of a rule that names none: drawn once.
pub(super) fn seed(memory: &mut Memory, way: &mut Way<'_>) -> u32 {
    if !memory.started {
        *memory = Memory { count: way.dice.0.next_u32(), started: true, ..Memory::default() };
    }
    memory.count
}

/// Jenkins' hash of what is seen, as it lies in the kernel's registers: each part fills whole words of 32 bits.
pub(super) fn jhash(seen: &[Seen], key: &[Type], seed: u32) -> u32 {
    let (mut words, mut at) = ([0u32; 16], 0);
    for (part, ty) in seen.iter().zip(key) {
        let (value, bits) = match part {
            Seen::Number(n) => (*n, ty.bits()),
            Seen::Name(name) => (of_name(name), 128),
        };
        let bytes = (bits.div_ceil(8) as usize).clamp(1, 16);
        let mut lies = [0u8; 16];
        lies[..bytes].copy_from_slice(&value.to_be_bytes()[16 - bytes..]);
        if is_host_endian(*ty) {
            lies[..bytes].reverse();
        }
        for chunk in lies[..bytes.next_multiple_of(4)].chunks(4) {
            if let (Some(word), [a, b, c, d]) = (words.get_mut(at), chunk) {
                *word = u32::from_le_bytes([*a, *b, *c, *d]);
                at += 1;
            }
        }
    }
    // One part alone is as long as it is.
    let len = match key {
        [one] => one.bits().div_ceil(8),
        _ => 4 * at as u32,
    };
    jhash2(&words[..at.min(16)], seed.wrapping_add(len).wrapping_sub(4 * at as u32))
}

/// Types whose numbers lie as the machine's own do.
fn is_host_endian(ty: Type) -> bool {
    matches!(
        ty,
        Type::Mark | Type::Classid | Type::CtState | Type::CtId | Type::Uid | Type::Gid | Type::Integer(32)
    )
}

/// A hash of addresses and ports, the same both ways.
pub(super) fn symhash(skb: &Skb) -> u32 {
    crate::tunnel::vxlan::flow_hash(skb, 0)
}

/// The number of a connection.
pub(super) fn connection(tuple: &Tuple, place: u32) -> u32 {
    use super::super::places::Key;
    let mixed =
        tuple.words().into_iter().chain([place.into()]).fold(0x9e37_79b9_7f4a_7c15u64, |sum, word| {
            let sum = (sum ^ word).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            sum ^ sum >> 29
        });
    (mixed >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Linux 6.18 gave them: `jhash ip daddr mod 1000000 seed 1`, `jhash ip daddr . udp dport mod 1000000 seed 0xdeadbeef`,
    /// `jhash udp dport mod 1000000 seed 7 offset 3`, `jhash meta mark . oifname mod 1000000 seed 7 offset 3`.
    #[test]
    fn what_linux_gave() {
        let of = |seen: &[Seen], key: &[Type], seed| scaled(jhash(seen, key, seed), 1_000_000);
        let addr = |n: u128| Seen::Number(0x7f00_0000 + n);
        for (n, wanted) in [(1, 0x000a_b313), (2, 0x0001_e7ff), (3, 0x0008_a4cb), (9, 0x0004_c0f4)] {
            assert_eq!(of(&[addr(n)], &[Type::Ipv4], 1), wanted);
        }
        for (n, port, wanted) in [(1, 53, 0x0007_a283), (2, 53, 0x000e_9370), (9, 4000, 0x000d_a001)] {
            let seen = [addr(n), Seen::Number(port)];
            assert_eq!(of(&seen, &[Type::Ipv4, Type::Service], 0xdead_beef), wanted);
        }
        for (port, wanted) in [(53, 0x0005_e76a), (4000, 0x0009_9063)] {
            assert_eq!(of(&[Seen::Number(port)], &[Type::Service], 7) + 3, wanted);
        }
        let seen = [Seen::Number(0x1234_5678), Seen::Name("lo".to_owned())];
        assert_eq!(of(&seen, &[Type::Mark, Type::Ifname], 7) + 3, 0x000d_cebe);
    }

    #[test]
    fn a_word_alone_and_words_joined() {
        let one = jhash(&[Seen::Number(0x7f00_0001)], &[Type::Ipv4], 1);
        let padded = jhash(&[Seen::Number(0x7f00_0001), Seen::Number(0)], &[Type::Ipv4, Type::Service], 1);
        assert_ne!(one, padded);
        // Two bytes alone hash as two, joined as four.
        let port = jhash(&[Seen::Number(80)], &[Type::Service], 1);
        assert_eq!(port, jhash2(&[0x5000], 1u32.wrapping_sub(2)));
        assert_eq!((scaled(u32::MAX, 7), scaled(0, 7), scaled(1 << 31, 7)), (6, 0, 3));
    }
}
