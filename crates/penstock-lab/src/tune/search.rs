//! Which points are tried next: by what was found so far, and dice that hang on nothing but the seed and the round.
//!
//! A place is a share 0..=1 of each parameter's values. The first round is a Latin hypercube. Each later round asks a tree-structured Parzen estimator (the
//! crate `tpe`), goes half way from the best point to the nearest one that has more of what is sought but misses a goal, takes the most promising place of a smooth surface
//! through what was found, and tries another choice or a place around the best. How many runs are made at a time has no part in it.

use penstock_model::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::SeedableRng as _;
use std::cmp::Ordering;

/// Points of the first round, where the search may have that many.
const FIRST: usize = 10;
/// Points of a later round.
pub(super) const ROUND: usize = 4;
/// The share of the points that the estimator takes for good ones.
const GOOD: f64 = 0.2;
/// Places that are looked at on a surface through what was found.
const LOOKS: usize = 400;
/// How far a surface may pass by a value, in cubes of distance.
const SMOOTH: f64 = 1e-4;
/// How near the end of a range is its end: the best value often is one.
const END: f64 = 0.01;

/// How bad a point is: less is better.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Loss {
    /// By how much each goal is missed; 0 and less: by how much it is met.
    pub(super) misses: Vec<f64>,
    /// By how much goals are missed, all together; 0: all are met.
    pub(super) short: f64,
    /// What is sought, turned so that less is better.
    pub(super) value: f64,
}

impl Loss {
    pub(super) fn new(misses: Vec<f64>, value: f64) -> Loss {
        Loss { short: misses.iter().map(|m| m.max(0.0)).sum(), misses, value }
    }
    /// It could not be tried.
    pub(super) fn none() -> Loss {
        Loss { misses: Vec::new(), short: f64::INFINITY, value: f64::INFINITY }
    }
    /// Goals come first. Of points that miss some, those that miss them by less.
    pub(super) fn order(&self, other: &Loss) -> Ordering {
        self.short.total_cmp(&other.short).then(self.value.total_cmp(&other.value))
    }
    fn met(&self) -> bool {
        self.short == 0.0
    }
}

/// A place that was tried.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tried {
    pub(super) at: Vec<f64>,
    pub(super) loss: Loss,
}

/// A search.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Search {
    /// For each parameter how many values it has; `None`: a range.
    pub(super) axes: Vec<Option<usize>>,
    /// What the dice hang on.
    pub(super) seed: u64,
}

impl Search {
    /// The places of the first round: at most `most`.
    pub(super) fn first(&self, most: usize) -> Vec<Vec<f64>> {
        let count = FIRST.min(most);
        let mut all = vec![Vec::new(); count];
        for (n, axis) in self.axes.iter().enumerate() {
            let mut dice = self.dice(0, n);
            let mut order: Vec<usize> = (0..count).collect();
            for i in (1..count).rev() {
                order.swap(i, dice.below(i as u32 + 1) as usize);
            }
            for (place, part) in all.iter_mut().zip(order) {
                place.push(middle(*axis, (part as f64 + chance(&mut dice)) / count as f64));
            }
        }
        all
    }

    /// The places of a later round; none of these need be new.
    pub(super) fn next(&self, tried: &[Tried], round: usize) -> Vec<Vec<f64>> {
        let mut order: Vec<&Tried> = tried.iter().collect();
        order.sort_by(|a, b| a.loss.order(&b.loss));
        let Some(best) = order.first() else { return self.first(ROUND) };
        let mut dice = self.dice(round, self.axes.len());
        let around = self.around(best, &mut dice);
        vec![
            self.estimated(&order, round, 0),
            self.between(best, tried).unwrap_or_else(|| self.estimated(&order, round, 1)),
            self.promising(best, tried, &mut dice).unwrap_or_else(|| self.around(best, &mut dice)),
            self.other_choice(best, round).unwrap_or(around),
        ]
    }

    /// Any place.
    pub(super) fn anywhere(&self, round: usize, again: usize) -> Vec<f64> {
        let mut dice = Rng::named(self.seed, &format!("tune/{round}/anywhere/{again}"));
        self.axes.iter().map(|axis| middle(*axis, chance(&mut dice))).collect()
    }

    /// What the estimator takes for best; `order`: what was tried, the best first.
    fn estimated(&self, order: &[&Tried], round: usize, which: usize) -> Vec<f64> {
        let of = |(n, axis): (usize, &Option<usize>)| {
            let mut dice = self.dice(round * 2 + which, n);
            let mut random = Xoshiro256PlusPlus::seed_from_u64(dice.next_u64());
            let any = chance(&mut dice);
            let asked = match axis {
                None => ask(tpe::parzen_estimator(), 1.0, order.iter().map(|t| t.at[n]), &mut random),
                Some(count) => {
                    let count = *count as f64;
                    let places = order.iter().map(|t| t.at[n] * count);
                    ask(tpe::histogram_estimator(), count, places, &mut random).map(|x| (x + 0.5) / count)
                }
            };
            middle(*axis, asked.unwrap_or(any))
        };
        self.axes.iter().enumerate().map(of).collect()
    }

    /// Half way from the best point to the nearest one that would be better if it met the goals. Where choices differ there is no half way.
    fn between(&self, best: &Tried, tried: &[Tried]) -> Option<Vec<f64>> {
        let better = |t: &&Tried| {
            let same = self.axes.iter().zip(t.at.iter().zip(&best.at));
            best.loss.met()
                && !t.loss.met()
                && t.loss.short.is_finite()
                && t.loss.value < best.loss.value
                && same.into_iter().all(|(axis, (a, b))| axis.is_none() || a == b)
        };
        let nearest = tried
            .iter()
            .filter(better)
            .min_by(|a, b| distance(&a.at, &best.at).total_cmp(&distance(&b.at, &best.at)))?;
        Some(best.at.iter().zip(&nearest.at).map(|(a, b)| (a + b) / 2.0).collect())
    }

    /// A place near the best one.
    fn around(&self, best: &Tried, dice: &mut Rng) -> Vec<f64> {
        // From half of all to a fiftieth.
        let reach = 0.5 * 0.04f64.powf(chance(dice));
        // One parameter or all of them.
        let alone = (dice.below(2) == 0).then(|| dice.below(self.axes.len() as u32) as usize);
        let moved = |(n, (axis, at)): (usize, (&Option<usize>, &f64))| {
            let step = (chance(dice) * 2.0 - 1.0) * reach;
            let other = chance(dice);
            match axis {
                _ if alone.is_some_and(|only| only != n) => *at,
                None => middle(None, (at + step).clamp(0.0, 1.0)),
                Some(_) if alone.is_some() || other < 0.2 => middle(*axis, chance(dice)),
                Some(_) => *at,
            }
        };
        self.axes.iter().zip(&best.at).enumerate().map(moved).collect()
    }

    /// The best place with another choice of one parameter: each in its turn, every second round.
    fn other_choice(&self, best: &Tried, round: usize) -> Option<Vec<f64>> {
        let others = self.axes.iter().enumerate().flat_map(|(n, axis)| {
            let count = axis.unwrap_or(0);
            let choices = (0..count).map(move |c| (c as f64 + 0.5) / count as f64);
            choices.filter(move |c| *c != best.at[n]).map(move |c| (n, c))
        });
        let others: Vec<(usize, f64)> = others.collect();
        let &(n, choice) = others.get(round % others.len().max(1))?;
        let mut at = best.at.clone();
        at[n] = choice;
        Some(at)
    }

    /// Where what was found so far, continued smoothly, promises most: of many places, the best that is not near one that was tried.
    fn promising(&self, best: &Tried, tried: &[Tried], dice: &mut Rng) -> Option<Vec<f64>> {
        let free: Vec<usize> = (0..self.axes.len()).filter(|&n| self.axes[n].is_none()).collect();
        let same = |t: &&Tried| {
            (0..self.axes.len()).all(|n| self.axes[n].is_none() || t.at[n] == best.at[n])
                && t.loss.value.is_finite()
                && t.loss.misses.iter().all(|m| m.is_finite())
        };
        let known: Vec<&Tried> = tried.iter().filter(same).collect();
        let short = |at: &[f64]| -> Vec<f64> { free.iter().map(|&n| at[n]).collect() };
        let places: Vec<Vec<f64>> = known.iter().map(|t| short(&t.at)).collect();
        let of = |value: &dyn Fn(&Loss) -> f64| {
            let values: Vec<f64> = known.iter().map(|t| value(&t.loss)).collect();
            Surface::through(&places, &values)
        };
        let value = of(&|loss| loss.value)?;
        let goals = 0..best.loss.misses.len();
        let misses: Vec<Surface> = goals.map(|g| of(&|loss| loss.misses[g])).collect::<Option<_>>()?;
        let mut found: Option<(Loss, Vec<f64>)> = None;
        for n in 0..LOOKS {
            let at = match n % 2 {
                0 => self.around(best, dice),
                _ => self
                    .axes
                    .iter()
                    .zip(&best.at)
                    .map(|(axis, at)| axis.map_or_else(|| middle(None, chance(dice)), |_| *at))
                    .collect(),
            };
            let place = short(&at);
            if places.iter().any(|p| distance(p, &place) < END) {
                continue;
            }
            let loss = Loss::new(misses.iter().map(|m| m.at(&place)).collect(), value.at(&place));
            if found.as_ref().is_none_or(|(least, _)| loss.order(least).is_lt()) {
                found = Some((loss, at));
            }
        }
        found.map(|(_, at)| at)
    }

    fn dice(&self, round: usize, which: usize) -> Rng {
        Rng::named(self.seed, &format!("tune/{round}/{which}"))
    }
}

/// A value of one parameter by the estimator: the first of `places` are the good ones. `None`: it refuses.
fn ask(
    estimator: tpe::density_estimation::DefaultEstimatorBuilder,
    end: f64,
    places: impl Iterator<Item = f64>,
    random: &mut Xoshiro256PlusPlus,
) -> Option<f64> {
    let range = tpe::range(0.0, end).ok()?;
    let mut optimizer = tpe::TpeOptimizerBuilder::new().gamma(GOOD).build(estimator, range).ok()?;
    for (rank, place) in places.enumerate() {
        // Its ranges do not hold their ends.
        optimizer.tell(place.min(end * (1.0 - 1e-9)), rank as f64).ok()?;
    }
    optimizer.ask(random).ok()
}

/// The middle of the choice that a share falls on; a share near the end of a range is its end.
fn middle(axis: Option<usize>, share: f64) -> f64 {
    match axis {
        Some(count) => {
            let count = count.max(1) as f64;
            ((share * count).floor().min(count - 1.0) + 0.5) / count
        }
        None if share < END => 0.0,
        None if share > 1.0 - END => 1.0,
        None => share,
    }
}

/// 0..1.
fn chance(dice: &mut Rng) -> f64 {
    (dice.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// The greatest difference of any parameter.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
}

/// A smooth surface through values at places: cubic radial functions and a plane (Duchon's thin plates; Regis and Shoemaker search by them).
struct Surface {
    places: Vec<Vec<f64>>,
    weights: Vec<f64>,
}

impl Surface {
    /// `None`: there are too few places, or they lie in one plane.
    fn through(places: &[Vec<f64>], values: &[f64]) -> Option<Surface> {
        let (count, wide) = (places.len(), places.first()?.len());
        let all = count + wide + 1;
        if wide == 0 || count < wide + 2 {
            return None;
        }
        let mut rows: Vec<Vec<f64>> = vec![vec![0.0; all + 1]; all];
        for (i, place) in places.iter().enumerate() {
            for (j, other) in places.iter().enumerate() {
                rows[i][j] = cubed(place, other);
            }
            // Chance moves every value: the surface need not go through each exactly.
            rows[i][i] += SMOOTH;
            for (d, x) in place.iter().chain([&1.0]).enumerate() {
                rows[i][count + d] = *x;
                rows[count + d][i] = *x;
            }
            rows[i][all] = values[i];
        }
        Some(Surface { places: places.to_vec(), weights: solved(rows)? })
    }

    fn at(&self, place: &[f64]) -> f64 {
        let radial = self.places.iter().map(|p| cubed(p, place));
        radial.chain(place.iter().copied()).chain([1.0]).zip(&self.weights).map(|(x, w)| x * w).sum()
    }
}

/// The cube of the distance.
fn cubed(a: &[f64], b: &[f64]) -> f64 {
    let square: f64 = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum();
    square * square.sqrt()
}

/// Solves a system of equations, the right side last in each row; `None`: it has no single answer.
fn solved(mut rows: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let count = rows.len();
    for column in 0..count {
        let pivot =
            (column..count).max_by(|&a, &b| rows[a][column].abs().total_cmp(&rows[b][column].abs()))?;
        rows.swap(column, pivot);
        let (above, below) = rows.split_at_mut(column + 1);
        let row = &above[column];
        if row[column].abs() < 1e-12 {
            return None;
        }
        for other in below {
            let factor = other[column] / row[column];
            other.iter_mut().zip(row).skip(column).for_each(|(x, y)| *x -= factor * y);
        }
    }
    let mut answer = vec![0.0; count];
    for n in (0..count).rev() {
        let known: f64 = (n + 1..count).map(|m| rows[n][m] * answer[m]).sum();
        answer[n] = (rows[n][count] - known) / rows[n][n];
    }
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The least value that 36 points find; all of them.
    fn found(search: &Search, loss: &dyn Fn(&[f64]) -> Loss) -> (Loss, Vec<Vec<f64>>) {
        let mut tried: Vec<Tried> = Vec::new();
        let mut round = 0;
        while tried.len() < 36 {
            let places = if round == 0 { search.first(36) } else { search.next(&tried, round) };
            tried.extend(places.into_iter().map(|at| Tried { loss: loss(&at), at }));
            round += 1;
        }
        tried.truncate(36);
        let best = tried.iter().map(|t| t.loss.clone()).min_by(Loss::order).unwrap();
        (best, tried.into_iter().map(|t| t.at).collect())
    }

    fn free(value: f64) -> Loss {
        Loss::new(Vec::new(), value)
    }

    #[test]
    fn it_comes_near_the_best_place() {
        let mut worst = [0.0f64; 4];
        for seed in 0..40 {
            let two = Search { axes: vec![None, None], seed };
            // A bowl, its least 0 at (0.3, 0.8), 0.58 at most.
            let bowl = |x: &[f64]| free((x[0] - 0.3).powi(2) + (x[1] - 0.8).powi(2));
            worst[0] = worst[0].max(found(&two, &bowl).0.value);
            // The more the better, up to a bound that is met at 0.37: the rate of a shaper.
            let edge = |x: &[f64]| Loss::new(vec![x[0] - 0.37], -x[0]);
            let one = Search { axes: vec![None], seed };
            let (best, _) = found(&one, &edge);
            assert_eq!(best.short, 0.0, "{seed}");
            worst[1] = worst[1].max((0.37 + best.value) / 0.37);
            // A bound across two parameters, the best in the corner (1, 0.2) where the second costs.
            let slope = |x: &[f64]| Loss::new(vec![x[0] + x[1] - 1.2], -x[0] - 0.3 * x[1]);
            let (best, _) = found(&two, &slope);
            assert_eq!(best.short, 0.0, "{seed}");
            worst[2] = worst[2].max((1.06 + best.value) / 1.06);
            // Of five kinds the fourth is good, with the first parameter at its end.
            let kinds = |x: &[f64]| free((1.0 - x[0]) + if (x[1] * 5.0) as usize == 3 { 0.0 } else { 0.4 });
            worst[3] = worst[3].max(found(&Search { axes: vec![None, Some(5)], seed }, &kinds).0.value);
        }
        assert!(worst[0] < 0.01 && worst[1] < 0.02 && worst[2] < 0.05 && worst[3] < 0.05, "{worst:?}");
    }

    #[test]
    fn the_same_seed_gives_the_same_places_and_another_gives_others() {
        let loss = |x: &[f64]| free(x[0]);
        let search = |seed| Search { axes: vec![None, Some(3)], seed };
        assert_eq!(found(&search(1), &loss).1, found(&search(1), &loss).1);
        assert_ne!(found(&search(1), &loss).1, found(&search(2), &loss).1);
        for place in found(&search(3), &loss).1 {
            assert!(
                (0.0..=1.0).contains(&place[0]) && [1, 3, 5].contains(&((place[1] * 6.0).round() as i64))
            );
        }
    }
}
