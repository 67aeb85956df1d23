//! Quantiles of delays in constant memory and constant time per packet.
//!
//! Log-linear buckets of integers (as HdrHistogram's): 64 a power of two, so a quantile is off by less than 1/64 of itself.

/// Counts of non-negative integers (nanoseconds, bytes) with exact least, greatest, sum.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Histogram {
    counts: Vec<u32>,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

const SUB_BITS: u32 = 6;
const SUB: u64 = 1 << SUB_BITS;

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: Vec::new(), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// Counts one value.
    #[inline(always)] // Some twenty instructions, with each packet.
    pub fn record(&mut self, value: u64) {
        let bucket = bucket(value);
        match self.counts.get_mut(bucket) {
            Some(count) => *count = count.saturating_add(1),
            None => self.grow(bucket),
        }
        self.count += 1;
        self.sum += u128::from(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }
    /// Counts the first of a bucket that is not there yet: at most some 3,800 are, so this happens a few times in a run.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        self.counts.resize(bucket + 64, 0);
        self.counts[bucket] = 1;
    }
    /// Counts everything that `other` counted, too.
    pub fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }
    /// How many values were counted.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The least value; `None` without any.
    pub fn min(&self) -> Option<u64> {
        (self.count > 0).then_some(self.min)
    }
    /// The greatest value; `None` without any.
    pub fn max(&self) -> Option<u64> {
        (self.count > 0).then_some(self.max)
    }
    /// The mean, rounded down; `None` without any.
    pub fn mean(&self) -> Option<u64> {
        (self.count > 0).then(|| (self.sum / u128::from(self.count)) as u64)
    }
    /// The value below which `per_mille` of 1000 lie (500 is the median), to 1/64 of itself. `None` without values.
    pub fn quantile(&self, per_mille: u32) -> Option<u64> {
        if self.count == 0 {
            return None;
        }
        let rank = (u128::from(self.count) * u128::from(per_mille.min(1000))).div_ceil(1000).max(1) as u64;
        let mut seen = 0;
        // Nothing is below the least.
        for (bucket, &n) in self.counts.iter().enumerate().skip(bucket(self.min)) {
            seen += u64::from(n);
            if seen >= rank {
                let (low, width) = bounds(bucket);
                return Some((low + width / 2).clamp(self.min, self.max));
            }
        }
        Some(self.max)
    }
}

#[inline]
fn bucket(value: u64) -> usize {
    if value < SUB {
        return value as usize;
    }
    let exponent = 63 - value.leading_zeros();
    let shift = exponent - SUB_BITS;
    ((u64::from(shift) + 1) * SUB + ((value >> shift) - SUB)) as usize
}

/// Lowest value of a bucket and how many values it holds.
fn bounds(bucket: usize) -> (u64, u64) {
    let bucket = bucket as u64;
    if bucket < SUB {
        return (bucket, 1);
    }
    let shift = bucket / SUB - 1;
    ((SUB + bucket % SUB) << shift, 1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merging_is_counting_both() {
        let (mut a, mut b, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for value in [3, 70, 5_000] {
            a.record(value);
            both.record(value);
        }
        for value in [1, 9_000_000] {
            b.record(value);
            both.record(value);
        }
        a.merge(&b);
        let figures =
            |h: &Histogram| (h.count(), h.min(), h.max(), h.mean(), h.quantile(500), h.quantile(990));
        assert_eq!(figures(&a), figures(&both));
        a.merge(&Histogram::default());
        assert_eq!(figures(&a), figures(&both));
    }

    #[test]
    fn buckets_tile_the_integers() {
        let mut next = 0;
        for b in 0..2000 {
            let (low, width) = bounds(b);
            assert_eq!(low, next, "bucket {b}");
            assert_eq!(bucket(low), b);
            assert_eq!(bucket(low + width - 1), b);
            next = low + width;
        }
        assert!(bucket(u64::MAX) < 4000);
    }

    #[test]
    fn quantiles_are_near() {
        let mut h = Histogram::default();
        assert_eq!(h.quantile(500), None);
        (1..=100_000u64).for_each(|v| h.record(v));
        for (q, exact) in [(500, 50_000u64), (950, 95_000), (990, 99_000)] {
            let got = h.quantile(q).unwrap();
            assert!(got.abs_diff(exact) <= exact / 64, "{q}: {got}");
        }
        assert_eq!((h.min(), h.max(), h.mean()), (Some(1), Some(100_000), Some(50_000)));
    }
}
