//! A script's dice: the same throws each time, from a seed.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes a reader of `/dev/random` or `/dev/urandom` gets at once: the interpreter reads a device to its end, which these would not
/// have.
pub(crate) const READ: usize = 1 << 20;

/// Splitmix64; whoever asks next goes on where the last one ended.
pub(crate) struct Chance {
    seed: u64,
    thrown: AtomicU64,
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance { seed, thrown: AtomicU64::new(0) }
    }
    fn at(&self, n: u64) -> u64 {
        mix(self.seed.wrapping_add((n + 1).wrapping_mul(STEP)))
    }
    /// The next 64 bits.
    pub(crate) fn next(&self) -> u64 {
        self.at(self.thrown.fetch_add(1, Ordering::Relaxed))
    }
    /// A number below `n`, which is not 0. The bias of one in 2⁶⁴/n is not seen.
    pub(crate) fn below(&self, n: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(n)) >> 64) as u64
    }
    /// The next bytes.
    pub(crate) fn bytes(&self, len: usize) -> Vec<u8> {
        let words = len.div_ceil(8) as u64;
        let start = self.thrown.fetch_add(words, Ordering::Relaxed);
        let mut bytes: Vec<u8> = (start..start + words).flat_map(|n| self.at(n).to_le_bytes()).collect();
        bytes.truncate(len);
        bytes
    }
    /// A version 4 UUID.
    pub(crate) fn uuid(&self) -> String {
        let mut b = self.bytes(16);
        b[6] = b[6] & 0x0f | 0x40;
        b[8] = b[8] & 0x3f | 0x80;
        let hex = |part: &[u8]| part.iter().map(|x| format!("{x:02x}")).collect::<String>();
        [&b[..4], &b[4..6], &b[6..8], &b[8..10], &b[10..]].map(hex).join("-")
    }
}

/// Splitmix64's finish: each number has another.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_from_zero() {
        // The first outputs of splitmix64 seeded with 0 (Vigna's reference).
        let chance = Chance::new(0);
        assert_eq!(chance.bytes(12)[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
        let other = Chance::new(0);
        assert_eq!((other.next(), other.next()), (0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4));
        assert_ne!(Chance::new(1).next(), Chance::new(0).next());
    }

    #[test]
    fn numbers_and_uuids() {
        let chance = Chance::new(7);
        let thrown: Vec<u64> = (0..600).map(|_| chance.below(6)).collect();
        assert!((0..6).all(|n| (60..140).contains(&thrown.iter().filter(|t| **t == n).count())));
        let uuid = chance.uuid();
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"), "{uuid}");
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
    }
}
