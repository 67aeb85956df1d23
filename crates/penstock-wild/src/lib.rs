//! Random inputs made from bytes, for fuzzing and the campaigns of `cargo xtask overload`.
//!
//! The same bytes give the same input. A fuzzer chooses its bytes by coverage, a campaign by a seed ([`bytes`]). Both make whole inputs that
//! are mostly valid, so that not only the parsers are tested. Nothing here knows the crates under test: the inputs are text and bytes, like
//! those of users.

mod capture;
mod experiment;
mod network;
mod script;
mod spec;
mod tc;

pub use arbitrary::{Result, Unstructured};
pub use capture::capture;
pub use experiment::experiment;
pub use network::network;
pub use script::{bash, python};
pub use spec::{record, spec};

/// So many bytes that a seed gives (SplitMix64).
pub fn bytes(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (0..len.div_ceil(8)).flat_map(|_| next().to_le_bytes()).take(len).collect()
}

/// One of these.
fn one<'a>(u: &mut Unstructured<'_>, of: &[&'a str]) -> Result<&'a str> {
    u.choose(of).copied()
}

/// A number, in one half of the cases a small one: limits are where faults are.
fn number(u: &mut Unstructured<'_>, least: u32, most: u32) -> Result<u32> {
    let top = if u.ratio(1, 2)? { most } else { most.min(least.saturating_add(8)) };
    u.int_in_range(least..=top)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_s_bytes_stay() {
        // SplitMix64 of 0, from its author's own list.
        assert_eq!(bytes(0, 8), 0xe220_a839_7b1d_cdafu64.to_le_bytes());
        assert_eq!(bytes(7, 5), bytes(7, 13)[..5]);
    }

    #[test]
    fn inputs_follow_from_the_bytes_alone_and_are_many() {
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..200 {
            let data = bytes(seed, 4096);
            let text = experiment(&mut Unstructured::new(&data)).unwrap();
            assert_eq!(text, experiment(&mut Unstructured::new(&data)).unwrap());
            seen.insert(text);
            let text = network(&mut Unstructured::new(&data)).unwrap();
            assert_eq!(text, network(&mut Unstructured::new(&data)).unwrap());
            seen.insert(text);
        }
        assert_eq!(seen.len(), 400);
        // Whatever the bytes, and however few.
        for len in 0..200 {
            for fill in [0u8, 0xff, 0x55] {
                let data = vec![fill; len];
                let u = || Unstructured::new(&data);
                let _ = (
                    experiment(&mut u()),
                    network(&mut u()),
                    bash(&mut u()),
                    python(&mut u()),
                    spec(&mut u()),
                );
                let _ = (capture(&mut u()), record(&mut u(), "{\"a\": 1}"));
            }
        }
    }
}
