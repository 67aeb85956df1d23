//! Quantiles of samples.

use serde::{Deserialize, Serialize};

/// What a set of samples looks like, in the samples' unit.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Least.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Greatest.
    pub max: f64,
}

impl Distribution {
    /// Of these samples; they come back sorted. `None` without any, or when one is not a number.
    pub fn of(samples: &mut [f64]) -> Option<Distribution> {
        if samples.is_empty() || samples.iter().any(|x| x.is_nan()) {
            return None;
        }
        samples.sort_by(f64::total_cmp);
        Some(Distribution {
            min: samples[0],
            mean: samples.iter().sum::<f64>() / samples.len() as f64,
            p50: of_sorted(samples, 0.50),
            p95: of_sorted(samples, 0.95),
            p99: of_sorted(samples, 0.99),
            max: samples[samples.len() - 1],
        })
    }

    /// One of its figures by name: `min mean p50 p95 p99 max`, and `median` and `avg` for those who say so.
    pub fn named(&self, name: &str) -> Option<f64> {
        Some(match name {
            "min" => self.min,
            "mean" | "avg" => self.mean,
            "p50" | "median" => self.p50,
            "p95" => self.p95,
            "p99" => self.p99,
            "max" => self.max,
            _ => return None,
        })
    }

    /// The names [`Distribution::named`] knows, without the synonyms.
    pub const NAMES: [&'static str; 6] = ["min", "mean", "p50", "p95", "p99", "max"];
}

/// The shares whose quantiles a record keeps where it can (`owd_quantiles_ms`): enough for a distribution function and a box plot.
pub const SHARES: [f64; 17] =
    [0.0, 0.01, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.99, 1.0];

/// The `q`-quantile (0..=1) of sorted, non-empty samples, interpolated linearly between the two nearest
/// (Hyndman & Fan's type 7, the default of numpy and R).
pub fn of_sorted(sorted: &[f64], q: f64) -> f64 {
    let at = q.clamp(0.0, 1.0) * (sorted.len() - 1) as f64;
    let below = at as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * (at - below as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_numpys() {
        let mut samples = [4.0, 1.0, 3.0, 2.0];
        let d = Distribution::of(&mut samples).unwrap();
        assert_eq!((d.min, d.mean, d.p50, d.max), (1.0, 2.5, 2.5, 4.0));
        assert!((d.p95 - 3.85).abs() < 1e-12 && (d.p99 - 3.97).abs() < 1e-12);
        assert_eq!(Distribution::of(&mut [7.0]).unwrap().p99, 7.0);
        assert_eq!(Distribution::of(&mut []), None);
        assert_eq!(Distribution::of(&mut [f64::NAN]), None);
    }

    #[test]
    fn figures_have_names() {
        let d = Distribution::of(&mut [1.0, 2.0]).unwrap();
        for name in Distribution::NAMES {
            assert!(d.named(name).is_some(), "{name}");
        }
        assert_eq!(d.named("median"), Some(1.5));
        assert_eq!(d.named("p98"), None);
    }
}
