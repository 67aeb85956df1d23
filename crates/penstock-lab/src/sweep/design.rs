//! Which points a sweep has: all of a grid, points drawn at random, or a Latin hypercube.

use super::value::{Value, Values};
use penstock_model::Rng;
use std::collections::BTreeSet;

/// A parameter as a design sees it: its path, which names its dice, and its values.
pub(super) type Axis<'a> = (&'a str, &'a Values);

/// Every combination, the last parameter changing first. `None`: more than `most`.
pub(super) fn grid(axes: &[Axis<'_>], most: usize) -> Option<Vec<Vec<Value>>> {
    let mut points: Vec<Vec<Value>> = vec![Vec::new()];
    for (_, values) in axes {
        let values = values.grid().unwrap_or_default();
        if points.len().checked_mul(values.len()).is_none_or(|n| n > most) {
            return None;
        }
        let with = |point: &Vec<Value>, value: &Value| point.iter().chain([value]).cloned().collect();
        points = points.iter().flat_map(|p| values.iter().map(move |v| with(p, v))).collect();
    }
    Some(once(points))
}

/// So many points drawn by this seed. Each parameter has dice of its own: another one more changes none of its values. `latin`: of as many equal parts of
/// each parameter as there are points, each part has one point.
pub(super) fn drawn(axes: &[Axis<'_>], count: usize, latin: bool, seed: u64) -> Vec<Vec<Value>> {
    let mut columns: Vec<Vec<Value>> = Vec::new();
    for (path, values) in axes {
        let mut dice = Rng::named(seed, &format!("sweep/{path}"));
        let mut order: Vec<usize> = (0..count).collect();
        if latin {
            // Fisher and Yates.
            for i in (1..count).rev() {
                order.swap(i, dice.below(i as u32 + 1) as usize);
            }
        }
        let share = |n: usize, dice: &mut Rng| {
            let chance = (dice.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
            if latin { (n as f64 + chance) / count as f64 } else { chance }
        };
        columns.push(order.into_iter().map(|n| values.at(share(n, &mut dice))).collect());
    }
    once((0..count).map(|n| columns.iter().map(|c| c[n].clone()).collect()).collect())
}

/// Each point once.
fn once(points: Vec<Vec<Value>>) -> Vec<Vec<Value>> {
    let mut seen = BTreeSet::new();
    let words = |point: &[Value]| point.iter().map(|v| v.shown.clone()).collect::<Vec<_>>();
    points.into_iter().filter(|p| seen.insert(words(p))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(points: &[Vec<Value>]) -> Vec<String> {
        points.iter().map(|p| p.iter().map(|v| v.shown.as_str()).collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn a_grid_has_all_combinations_once() {
        let (a, b) = (Values::parse("1,2,1").unwrap(), Values::parse("5ms..15ms/3").unwrap());
        let points = grid(&[("a", &a), ("b", &b)], 100).unwrap();
        assert_eq!(words(&points), ["1 5ms", "1 10ms", "1 15ms", "2 5ms", "2 10ms", "2 15ms"]);
        assert_eq!(grid(&[("a", &a), ("b", &b)], 8), None);
    }

    #[test]
    fn a_latin_hypercube_has_one_point_in_each_part() {
        let (a, b) = (Values::parse("0..1000").unwrap(), Values::parse("x,y").unwrap());
        let points = drawn(&[("a", &a), ("b", &b)], 10, true, 7);
        let mut parts: Vec<usize> =
            points.iter().map(|p| p[0].shown.parse::<f64>().unwrap() as usize * 10 / 1001).collect();
        parts.sort_unstable();
        assert_eq!(parts, (0..10).collect::<Vec<_>>());
        assert_eq!(points.iter().filter(|p| p[1].shown == "x").count(), 5);
        // Another parameter changes no value of the first.
        let alone = drawn(&[("a", &a)], 10, true, 7);
        assert_eq!(words(&alone), points.iter().map(|p| p[0].shown.clone()).collect::<Vec<_>>());
        assert_ne!(words(&alone), words(&drawn(&[("a", &a)], 10, true, 8)));
    }

    #[test]
    fn random_points_lie_in_their_ranges() {
        let a = Values::parse("1ms..9ms").unwrap();
        let points = drawn(&[("a", &a)], 200, false, 1);
        assert!(points.len() > 150);
        for point in points {
            let ms: f64 = point[0].shown.trim_end_matches("ms").parse().unwrap();
            assert!((1.0..=9.0).contains(&ms), "{ms}");
        }
    }
}
