//! By how much one side lies above the other, with a confidence interval that supposes no distribution.
//!
//! The interval is that of Hodges and Lehmann (Lehmann 1963; Moses 1965): of all differences between a run of one side and a run of the
//! other, the k-th least to the k-th greatest hold the shift with the chance 1 - 2 P(U < k), U being the statistic of Mann and Whitney.
//! It supposes that both sides spread alike.

use serde::Serialize;

/// The confidence that is wanted.
pub(super) const LEVEL: f64 = 0.95;
/// Up to so many runs of the smaller side the chances are counted; above, U is as good as normal.
const COUNTED: usize = 30;

/// Where the true difference of two sides lies.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Chance that it holds the difference, 0..=1: 95 % or more, or what so few runs give.
    pub confidence: f64,
}

/// The interval of `after - before`. `None` unless both sides have two values.
pub(super) fn interval(before: &[f64], after: &[f64]) -> Option<Interval> {
    if before.len() < 2 || after.len() < 2 {
        return None;
    }
    let mut apart: Vec<f64> = before.iter().flat_map(|a| after.iter().map(move |b| b - a)).collect();
    apart.sort_by(f64::total_cmp);
    let (k, confidence) = bounds(before.len(), after.len());
    let (low, high) = (*apart.get(k - 1)?, *apart.get(apart.len().checked_sub(k)?)?);
    (low.is_finite() && high.is_finite()).then_some(Interval { low, high, confidence })
}

/// k for so many runs, from 1, and the confidence it gives.
pub(super) fn bounds(before: usize, after: usize) -> (usize, f64) {
    let (n, m) = (before.min(after), before.max(after));
    if n == 0 {
        return (1, 0.0);
    }
    if n > COUNTED || n * m > COUNTED * COUNTED * 4 {
        let (pairs, all) = ((n * m) as f64, (n + m + 1) as f64);
        let k = pairs / 2.0 - 1.959_964 * (pairs * all / 12.0).sqrt();
        return ((k as usize).max(1), LEVEL);
    }
    let ways = ways(n, m);
    let total: f64 = ways.iter().sum();
    let (mut k, mut below, mut confidence) = (1, ways[0], 1.0 - 2.0 * ways[0] / total);
    for way in &ways[1..] {
        below += way;
        let next = 1.0 - 2.0 * below / total;
        if next < LEVEL {
            break;
        }
        (k, confidence) = (k + 1, next);
    }
    (k, confidence.max(0.0))
}

/// In how many orders of n and m values U is 0, 1, 2 …: the partitions of that number into at most n parts of at most m each.
fn ways(n: usize, m: usize) -> Vec<f64> {
    let most = n * m;
    let mut ways = vec![vec![0.0; most + 1]; n + 1];
    ways[0][0] = 1.0;
    for part in 1..=m {
        for parts in 1..=n {
            for sum in part..=most {
                ways[parts][sum] += ways[parts - 1][sum - part];
            }
        }
    }
    (0..=most).map(|sum| ways.iter().map(|w| w[sum]).sum()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chances_are_those_of_the_published_tables() {
        // All orders of 3 and 3 values: 20; U = 0 to 9 in 1 1 2 3 3 3 3 2 1 1 of them.
        assert_eq!(ways(3, 3), [1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 2.0, 1.0, 1.0]);
        // Critical values of U for a two-sided test at 5 % (Mann and Whitney 1947, as in every textbook): 0 2 5 8 13 17 23 for n = m from 4 to 10;
        // the interval begins one further.
        let critical = [(4, 0), (5, 2), (6, 5), (7, 8), (8, 13), (9, 17), (10, 23), (20, 127)];
        for (n, u) in critical {
            assert_eq!(bounds(n, n).0, u + 1, "{n}");
            assert!(bounds(n, n).1 >= LEVEL);
        }
        assert_eq!(bounds(5, 8).0, 7);
        assert_eq!(bounds(8, 5), bounds(5, 8));
        // Too few: what the extremes give.
        assert_eq!(bounds(1, 1), (1, 0.0));
        assert!((bounds(2, 2).1 - (1.0 - 2.0 / 6.0)).abs() < 1e-12);
        assert!((bounds(3, 3).1 - 0.9).abs() < 1e-12);
        // Where counting ends the approximation goes on.
        let (counted, normal) = (bounds(30, 30).0, bounds(31, 31).0);
        assert!(counted == 318 && (330..350).contains(&normal), "{counted} {normal}");
    }

    #[test]
    fn the_interval_lies_between_the_differences() {
        let (a, b) = ([1.0, 2.0, 3.0, 4.0, 5.0], [11.0, 12.0, 13.0, 14.0, 15.0]);
        let found = interval(&a, &b).unwrap();
        // The third least of 25 differences: 6, 7, 7; the greatest are its mirror.
        assert_eq!((found.low, found.high), (7.0, 13.0));
        assert!((found.confidence - (1.0 - 2.0 * 4.0 / 252.0)).abs() < 1e-12, "{found:?}");
        assert_eq!(interval(&[1.0], &b), None);
        assert_eq!(interval(&[f64::NAN, f64::NAN], &b), None);
    }
}
