//! How evenly something was shared, and how much a delay wavers.

/// Jain's fairness index of the shares: `(Σx)² / (n·Σx²)`, from 1/n (one has all) to 1 (all alike).
/// `None` without shares or when all are zero. Source: Jain, Chiu, Hawe, DEC-TR-301 (1984).
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Interarrival jitter of transit times in the order of arrival, in their unit: RFC 3550 section 6.4.1, gain 1/16.
/// 0 for fewer than two.
pub fn jitter(transits: &[f64]) -> f64 {
    transits.windows(2).fold(0.0, |j, pair| j + ((pair[1] - pair[0]).abs() - j) / 16.0)
}

/// Mean absolute difference between successive delays, in their unit (IPDV of RFC 3393, taken absolute and averaged).
/// `None` for fewer than two.
pub fn mean_variation(delays: &[f64]) -> Option<f64> {
    let pairs = delays.len().checked_sub(1).filter(|&n| n > 0)?;
    Some(delays.windows(2).map(|pair| (pair[1] - pair[0]).abs()).sum::<f64>() / pairs as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jains_index_runs_from_one_over_n_to_one() {
        assert_eq!(jain(&[2.0, 2.0, 2.0, 2.0]), Some(1.0));
        assert_eq!(jain(&[8.0, 0.0, 0.0, 0.0]), Some(0.25));
        // Jain's own example: k of n users share equally, the index is k/n.
        assert_eq!(jain(&[1.0, 1.0, 0.0, 0.0, 0.0]), Some(0.4));
        assert_eq!(jain(&[]), None);
        assert_eq!(jain(&[0.0, 0.0]), None);
    }

    #[test]
    fn jitter_follows_rfc_3550() {
        assert_eq!(jitter(&[5.0]), 0.0);
        assert_eq!(jitter(&[1.0, 17.0]), 1.0);
        assert_eq!(jitter(&[1.0, 17.0, 17.0]), 1.0 - 1.0 / 16.0);
        assert_eq!(mean_variation(&[1.0, 3.0, 2.0]), Some(1.5));
        assert_eq!(mean_variation(&[1.0]), None);
    }
}
