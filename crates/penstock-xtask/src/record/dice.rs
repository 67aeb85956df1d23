//! Seeded choices for the generators.

use penstock_model::Rng;

/// Dice with the throws a generator needs.
pub struct Dice(Rng);

impl Dice {
    /// The dice of one case.
    pub fn new(kind: &str, seed: u64) -> Dice {
        Dice(Rng::named(seed, &format!("record:{kind}")))
    }
    /// A number in `low..=high`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        low + self.0.next_u64() % (high - low + 1)
    }
    /// True in `percent` of 100 throws.
    pub fn chance(&mut self, percent: u32) -> bool {
        self.0.below(100) < percent
    }
    /// One of `items`.
    pub fn pick<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.0.below(items.len() as u32) as usize].clone()
    }
    /// A number whose magnitude is spread evenly: `low..=high`.
    pub fn scale(&mut self, low: u64, high: u64) -> u64 {
        let mut top = low.max(1);
        let mut steps = 1;
        while top < high {
            top = top.saturating_mul(2);
            steps += 1;
        }
        let base = low.max(1) << self.range(0, steps - 1);
        self.range(base, base.saturating_mul(2)).clamp(low, high)
    }
}
