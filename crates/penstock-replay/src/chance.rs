//! Answers that hang on dice: whether ours come from the same distribution as the kernel's.
//!
//! The test: an answer is the place of every packet in the order of departures, and every counter `tc -s` prints. How far two
//! answers lie apart is the sum of the differences of places (of counters, each measured by its mean). The statistic of a case
//! is the energy distance between the kernel's answers and ours (Székely and Rizzo, 2004: twice the mean distance across, less the mean distances
//! within), in units of the mean distance of all; of a file, the sum over its cases. Where both come from one distribution, it makes no difference which answer
//! is whose: so p is the share of random re-labellings, case by case, whose statistic is at least as large. Nothing is assumed of the
//! distributions.

use penstock_model::Rng;
use serde_json::{Value, json};

/// Re-labellings of one test.
const LABELLINGS: u32 = 499;

/// An answer as far as the test looks at it: `order` (the numbers of the packets as they left) and `counts`.
pub fn outcome(answer: &Value) -> Value {
    let departures = answer["departures"].as_array().into_iter().flatten();
    let order: Vec<&Value> = departures.map(|d| &d["i"]).collect();
    let mut counts = Vec::new();
    for row in answer["qdiscs"].as_array().into_iter().flatten() {
        numbers(row, &mut counts);
    }
    for line in
        answer["filters"].as_array().into_iter().flatten().flat_map(|l| l.as_array().into_iter().flatten())
    {
        let text = line.as_str().unwrap_or_default();
        if text.contains("Sent") {
            let digits = |c: char| !c.is_ascii_digit();
            counts.extend(text.split(digits).filter_map(|n| n.parse::<u64>().ok()));
        }
    }
    json!({"order": order, "counts": counts})
}

/// All numbers but the options.
fn numbers(value: &Value, into: &mut Vec<u64>) {
    match value {
        Value::Number(n) => into.push(n.as_u64().unwrap_or(0)),
        Value::Array(list) => list.iter().for_each(|v| numbers(v, into)),
        Value::Object(map) => {
            map.iter().filter(|(name, _)| *name != "options").for_each(|(_, v)| numbers(v, into));
        }
        _ => {}
    }
}

/// Distances between all answers of one case, the kernel's first.
pub struct Case {
    kernels: usize,
    all: usize,
    /// By order, and by counters, in units of their mean: of the answers `a < b` at [`Case::at`].
    distances: [Vec<f64>; 2],
}

impl Case {
    /// A case of `packets` packets; the answers as [`outcome`] gives them.
    ///
    /// # Errors
    /// Answers that do not count the same things.
    pub fn new(packets: usize, kernels: &[Value], ours: &[Value]) -> Result<Case, String> {
        let all: Vec<&Value> = kernels.iter().chain(ours).collect();
        let places: Vec<Vec<f64>> = all.iter().map(|a| places(a, packets)).collect();
        let counts: Vec<Vec<f64>> = all.iter().map(|a| list(&a["counts"]).collect()).collect();
        if let Some(odd) = counts.iter().position(|c| c.len() != counts[0].len()) {
            return Err(format!(
                "answer {odd} has {} counters, the first {}",
                counts[odd].len(),
                counts[0].len()
            ));
        }
        Ok(Case {
            kernels: kernels.len(),
            all: all.len(),
            distances: [distances(&places), distances(&scaled(counts))],
        })
    }
    /// Where the distance of two answers stands.
    fn at(a: usize, b: usize) -> usize {
        let (low, high) = (a.min(b), a.max(b));
        high * (high - 1) / 2 + low
    }
    /// The energy distance of the first answers of `labels` from the others.
    fn statistic(&self, which: usize, labels: &[usize]) -> f64 {
        let distances = &self.distances[which];
        let (mut across, mut within) = (0.0, [0.0, 0.0]);
        for (n, &a) in labels.iter().enumerate() {
            for (m, &b) in labels[..n].iter().enumerate() {
                let distance = distances[Case::at(a, b)];
                match (n < self.kernels, m < self.kernels) {
                    (true, true) => within[0] += distance,
                    (false, false) => within[1] += distance,
                    _ => across += distance,
                }
            }
        }
        let (n, m) = (self.kernels as f64, (self.all - self.kernels) as f64);
        2.0 * across / (n * m) - 2.0 * within[0] / (n * n) - 2.0 * within[1] / (m * m)
    }
}

/// The two p of a file's cases: by order, by counters.
pub fn p_values(cases: &[Case]) -> [f64; 2] {
    let mut rng = Rng::named(1, "labellings");
    let mut labels: Vec<Vec<usize>> = cases.iter().map(|c| (0..c.all).collect()).collect();
    let sum = |labels: &[Vec<usize>], which: usize| -> f64 {
        cases.iter().zip(labels).map(|(case, labels)| case.statistic(which, labels)).sum()
    };
    let seen = [0, 1].map(|which| sum(&labels, which));
    let mut as_large = [1u32; 2];
    for _ in 0..LABELLINGS {
        for of_case in &mut labels {
            for n in (1..of_case.len()).rev() {
                of_case.swap(n, rng.below(n as u32 + 1) as usize);
            }
        }
        for which in [0, 1] {
            as_large[which] += u32::from(sum(&labels, which) >= seen[which] - 1e-9);
        }
    }
    as_large.map(|n| f64::from(n) / f64::from(LABELLINGS + 1))
}

fn list(value: &Value) -> impl Iterator<Item = f64> + '_ {
    value.as_array().into_iter().flatten().filter_map(Value::as_f64)
}

/// The place of every packet; that of one which never left is behind all.
fn places(answer: &Value, packets: usize) -> Vec<f64> {
    let mut places = vec![packets as f64; packets];
    for (n, i) in list(&answer["order"]).enumerate() {
        if let Some(place) = places.get_mut(i as usize) {
            *place = n as f64;
        }
    }
    places
}

/// Each counter in units of its mean.
fn scaled(mut counts: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    for n in 0..counts.first().map_or(0, Vec::len) {
        let mean = counts.iter().map(|c| c[n]).sum::<f64>() / counts.len() as f64;
        if mean > 0.0 {
            counts.iter_mut().for_each(|c| c[n] /= mean);
        }
    }
    counts
}

/// Of every pair, in units of the mean of all.
fn distances(answers: &[Vec<f64>]) -> Vec<f64> {
    let mut all = Vec::new();
    for (n, a) in answers.iter().enumerate() {
        for b in &answers[..n] {
            all.push(a.iter().zip(b).map(|(a, b)| (a - b).abs()).sum::<f64>());
        }
    }
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    if mean > 0.0 {
        all.iter_mut().for_each(|d| *d /= mean);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers of five packets, each dropped in `percent` of 100 throws.
    fn answers(rng: &mut Rng, n: usize, percent: u32) -> Vec<Value> {
        let one = |rng: &mut Rng| {
            let order: Vec<u32> = (0..5).filter(|_| rng.below(100) >= percent).collect();
            json!({"counts": [order.len()], "order": order})
        };
        (0..n).map(|_| one(rng)).collect()
    }

    #[test]
    fn the_same_dice_pass_and_others_do_not() {
        let mut rng = Rng::named(1, "chance");
        let mut p = |percent: u32| {
            let case = |rng: &mut Rng| {
                Case::new(5, &answers(rng, 20, 30), &answers(rng, 40, percent)).expect("they count the same")
            };
            p_values(&(0..10).map(|_| case(&mut rng)).collect::<Vec<_>>())
        };
        assert!(p(30).iter().all(|&p| p > 0.01));
        assert!(p(45).iter().all(|&p| p <= 0.01));
    }

    #[test]
    fn an_answer_is_order_and_counters() {
        let answer = json!({
            "departures": [{"i": 2, "t_ns": 5}, {"i": 0, "t_ns": 9}],
            "qdiscs": [{"kind": "red", "drops": 3, "options": {"limit": 7}}],
            "filters": [["filter …", "Sent 10 bytes 2 pkt"]],
        });
        assert_eq!(outcome(&answer), json!({"order": [2, 0], "counts": [3, 10, 2]}));
        assert_eq!(places(&outcome(&answer), 3), [1.0, 3.0, 0.0]);
        assert!(Case::new(1, &[outcome(&answer)], &[json!({"order": [], "counts": [1]})]).is_err());
    }
}
