//! The one source of chance: seeded, split by name.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded random number generator (xoshiro256++). Equal seeds and names give equal streams on every platform.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The stream called `name` of the run with this seed, e.g. `link:ab/loss`.
    /// Adding another name never changes the streams there already are.
    pub fn named(seed: u64, name: &str) -> Rng {
        // FNV-1a, 64 bit, over the name; the seed enters through seed_from_u64's SplitMix64.
        let hash = name
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed ^ hash.rotate_left(17)))
    }
    /// 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    /// 32 random bits, as the kernel's `get_random_u32`.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.0.next_u64() >> 32) as u32
    }
    /// A number below `bound` by multiply and shift, as the kernel's `get_random_u32_below`. 0 when `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.next_u32()) * u64::from(bound)) >> 32) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_named() {
        let draw = |seed, name| Rng::named(seed, name).next_u64();
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
    }

    #[test]
    fn the_stream_is_the_same_on_every_platform() {
        let mut rng = Rng::named(7, "link:ab/loss");
        let first: Vec<u32> = (0..3).map(|_| rng.below(1000)).collect();
        let mut again = Rng::named(7, "link:ab/loss");
        assert_eq!(first, (0..3).map(|_| again.below(1000)).collect::<Vec<_>>());
        assert!(first.iter().all(|&x| x < 1000));
        // SplitMix64's seeding and xoshiro256++ worked out by hand from their authors' descriptions: another version of the crate
        // that drew otherwise would change every recorded run.
        let mut rng = Rng::named(7, "link:ab/loss");
        let drawn: [u64; 3] = std::array::from_fn(|_| rng.next_u64());
        assert_eq!(drawn, [0x5831_c628_59f8_6d8b, 0x477c_8daa_a283_23c4, 0xaf0d_2d4a_0487_0720]);
    }
}
