//! How evenly something was shared, and how much a delay wavers.

/// Jain's fairness index of the shares: `(Σx)² / (n·Σx²)`, from 1/n (one has all) to 1 (all alike).
/// `None` without shares or when all are zero. Source: Jain, Chiu, Hawe, DEC-TR-301 (1984).
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// The least share over the greatest: 1 where all are alike, 0 where one has nothing (RFC 5166 section 2.3.3).
/// `None` without shares or when all are zero.
pub fn min_over_max(shares: &[f64]) -> Option<f64> {
    let most = shares.iter().copied().fold(0.0, f64::max);
    (most > 0.0).then(|| shares.iter().copied().fold(f64::INFINITY, f64::min) / most)
}

/// When flows have come to share evenly for good: the end of the first window from which on Jain's index of every window of
/// `width` samples is at least `index`. Each curve is a flow's rate at these times. `None`: never, or fewer than two flows.
/// (RFC 5166 section 2.6: convergence times.)
pub fn convergence(times: &[f64], rates: &[Vec<f64>], width: usize, index: f64) -> Option<f64> {
    let samples = rates.iter().map(Vec::len).min()?.min(times.len());
    if rates.len() < 2 || width == 0 || samples < width {
        return None;
    }
    let mut since = None;
    for end in width..=samples {
        let shares: Vec<f64> = rates.iter().map(|r| r[end - width..end].iter().sum()).collect();
        match jain(&shares).is_some_and(|j| j >= index) {
            true => since = since.or(Some(times[end - 1])),
            false => since = None,
        }
    }
    since
}

/// How much flows lose together: the mean share of them that lose in an interval in which any does, from 1/n to 1.
/// Each curve is a flow's losses in these intervals. `None` where nothing is lost.
pub fn loss_synchronisation(losses: &[Vec<f64>]) -> Option<f64> {
    let samples = losses.iter().map(Vec::len).min()?;
    let with_loss = |i: usize| losses.iter().filter(|l| l[i] > 0.0).count();
    let shares: Vec<f64> =
        (0..samples).map(with_loss).filter(|&n| n > 0).map(|n| n as f64 / losses.len() as f64).collect();
    (!shares.is_empty()).then(|| shares.iter().sum::<f64>() / shares.len() as f64)
}

/// Mean of repetitions and half the width of its 95 % confidence interval (Student's t); the width is `None` for fewer than two.
/// `None` without any.
pub fn confidence(samples: &[f64]) -> Option<(f64, Option<f64>)> {
    /// Quantiles 0.975 of Student's t for 1 to 30 degrees of freedom.
    const T: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    let n = samples.len();
    if n == 0 {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / n as f64;
    let half = (n > 1).then(|| {
        let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1) as f64;
        T.get(n - 2).copied().unwrap_or(1.96) * (variance / n as f64).sqrt()
    });
    Some((mean, half))
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
    fn least_over_greatest() {
        assert_eq!(min_over_max(&[1.0, 4.0, 2.0]), Some(0.25));
        assert_eq!((min_over_max(&[0.0]), min_over_max(&[])), (None, None));
    }

    #[test]
    fn convergence_is_for_good() {
        let times = [1.0, 2.0, 3.0, 4.0, 5.0];
        let even = vec![vec![9.0, 5.0, 9.0, 5.0, 5.0], vec![1.0, 5.0, 1.0, 5.0, 5.0]];
        assert_eq!(convergence(&times, &even, 1, 0.9), Some(4.0));
        assert_eq!(convergence(&times, &even[..1], 1, 0.9), None);
        assert_eq!(convergence(&times, &[vec![1.0; 5], vec![0.0; 5]], 2, 0.9), None);
    }

    #[test]
    fn losses_together_and_apart() {
        let apart = [vec![1.0, 0.0, 0.0], vec![0.0, 2.0, 0.0]];
        assert_eq!(loss_synchronisation(&apart), Some(0.5));
        assert_eq!(loss_synchronisation(&[vec![1.0, 0.0], vec![3.0, 0.0]]), Some(1.0));
        assert_eq!(loss_synchronisation(&[vec![0.0]]), None);
    }

    #[test]
    fn intervals_are_students() {
        // Five runs of mean 3 and variance 2.5: 2.776 * sqrt(0.5).
        let (mean, half) = confidence(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!(mean, 3.0);
        assert!((half.unwrap() - 1.963).abs() < 0.001);
        assert_eq!(confidence(&[7.0]), Some((7.0, None)));
        assert_eq!(confidence(&[]), None);
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
