//! The best compromises between two figures.

/// Of points with two figures, greater ones better, those that no other beats: none is at least as good in both and better in one. By their numbers.
pub(super) fn of(mut points: Vec<(usize, f64, f64)>) -> Vec<usize> {
    points.sort_by(|x, y| y.1.total_cmp(&x.1).then(y.2.total_cmp(&x.2)).then(x.0.cmp(&y.0)));
    let mut front: Vec<usize> = Vec::new();
    let mut best: Option<(f64, f64)> = None;
    for (number, a, b) in points {
        // All that stand before have as much of the first or more.
        if best.is_none_or(|(had, most)| b > most || (b == most && a == had)) {
            front.push(number);
            best = Some((a, b));
        }
    }
    front.sort_unstable();
    front
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nobody_beats_those_in_front() {
        assert_eq!(
            of(vec![(0, 1.0, 9.0), (1, 5.0, 5.0), (2, 4.0, 4.0), (3, 9.0, 1.0), (4, 5.0, 5.0)]),
            [0, 1, 3, 4]
        );
        assert_eq!(of(vec![(0, 1.0, 1.0), (1, 1.0, 2.0), (2, 0.0, 2.0)]), [1]);
        assert!(of(Vec::new()).is_empty());
    }

    proptest! {
        #[test]
        fn it_is_what_comparing_each_with_each_gives(points in proptest::collection::vec((0u8..6, 0u8..6), 0..30)) {
            let points: Vec<(usize, f64, f64)> =
                points.into_iter().enumerate().map(|(n, (a, b))| (n, f64::from(a), f64::from(b))).collect();
            let beaten = |x: &(usize, f64, f64)| {
                points.iter().any(|y| y.1 >= x.1 && y.2 >= x.2 && (y.1 > x.1 || y.2 > x.2))
            };
            let each: Vec<usize> = points.iter().filter(|x| !beaten(x)).map(|x| x.0).collect();
            prop_assert_eq!(of(points.clone()), each);
        }
    }
}
