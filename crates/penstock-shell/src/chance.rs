//! `/dev/random` and `/dev/urandom`: the same bytes each time a script runs.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes a reader gets at once: the interpreter reads a device to its end, which these would not have.
const READ: usize = 8192;

/// Splitmix64 from a fixed beginning; a script's second read goes on where the first ended.
#[derive(Default)]
pub(crate) struct Chance(AtomicU64);

impl Chance {
    /// The next [`READ`] bytes.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
        let words = (READ / 8) as u64;
        let start = self.0.fetch_add(words, Ordering::Relaxed);
        (start..start + words).flat_map(|n| mix((n + 1).wrapping_mul(STEP)).to_le_bytes()).collect()
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splitmix_from_zero() {
        // The first output of splitmix64 seeded with 0 (Vigna's reference).
        let bytes = Chance::default().bytes();
        assert_eq!(bytes.len(), READ);
        assert_eq!(bytes[..8], 0xe220_a839_7b1d_cdaf_u64.to_le_bytes());
    }
}
