//! Many runs of one experiment with other values and seeds: what they say together, as data, as a table, as a Parquet file and as a page.

mod columns;
mod front;
mod heat;
mod page;
mod text;

pub use page::html;
pub(crate) use page::with as page_with;
pub use text::text;

use crate::compare::Spread;
use crate::number::Unit;
use serde::Serialize;
use std::collections::BTreeMap;

/// The format of `sweep.json`.
pub const FORMAT: u32 = 1;

/// A sweep and its results.
#[derive(Clone, PartialEq, Debug)]
pub struct Sweep {
    /// Version of the program.
    pub penstock: String,
    /// The experiment's title.
    pub title: String,
    /// Where the runs were made.
    pub ground: String,
    /// How the points were chosen: `grid`, `random`, `latin`.
    pub design: String,
    /// The seeds that every point has runs with.
    pub seeds: Vec<u64>,
    /// What was varied.
    pub parameters: Vec<Parameter>,
    /// What was measured. A figure that no run has is left out.
    pub figures: Vec<Figure>,
    /// Two figures, by their places among `figures`, of which the best compromises are asked.
    pub pareto: Option<(usize, usize)>,
    /// What the parameters were set to, point by point.
    pub points: Vec<Point>,
    /// The runs: those of the first point in the order of the seeds, those of the second, and so on.
    pub runs: Vec<Run>,
}

/// Something that is varied.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Parameter {
    /// Its path in the experiment file.
    pub path: String,
    /// The unit of its numbers: `bit_s`, `ms`, `bytes`, `share`, `number`; absent where a value is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<&'static str>,
}

/// Something that is measured.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Figure {
    /// In the words of an expectation: `call owd p99`.
    pub what: String,
    /// `bit/s`, `ms`, `bytes`, `share`, or empty for a number.
    pub unit: &'static str,
    /// Whether tables and pages show it; the others are in the data only.
    pub shown: bool,
    /// Whether more of it is better, where somebody said so.
    #[serde(skip)]
    pub more: Option<bool>,
}

/// One setting of all parameters.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Point {
    /// The values in the order of the parameters, as they were written.
    pub values: Vec<String>,
    /// The same as numbers, in the units of the parameters.
    pub numbers: Vec<Option<f64>>,
}

/// One run.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Run {
    /// The number of its point.
    pub point: usize,
    /// Its seed.
    pub seed: u64,
    /// Why there are no figures.
    pub refused: Option<String>,
    /// The figures in their order; none where the run has no such figure.
    pub values: Vec<Option<f64>>,
    /// Expectations that were met.
    pub met: u64,
    /// Expectations that were not.
    pub unmet: u64,
}

/// What the runs of a point say of a figure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Median and its confidence interval.
    #[serde(flatten)]
    pub spread: Spread,
    /// Mean.
    pub mean: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
}

impl Figure {
    /// How its numbers are shown.
    pub fn kind(&self) -> Unit {
        match self.unit {
            "bit/s" => Unit::BitPerSecond,
            "ms" => Unit::Millisecond,
            "bytes" => Unit::Byte,
            "share" => Unit::Share,
            _ => Unit::Count,
        }
    }

    /// Whether more of it is better: as was said; else rates, fairness, what was received.
    pub fn more_is_better(&self) -> bool {
        if let Some(more) = self.more {
            return more;
        }
        let last = self.what.rsplit(' ').next().unwrap_or_default();
        self.unit == "bit/s" || ["fairness", "received"].contains(&last)
    }
}

impl Sweep {
    /// The runs of a point.
    pub fn of_point(&self, point: usize) -> &[Run] {
        let seeds = self.seeds.len();
        let from = (point * seeds).min(self.runs.len());
        &self.runs[from..(from + seeds).min(self.runs.len())]
    }

    /// What the runs of a point say of a figure; `None` where none has it.
    pub fn summary(&self, point: usize, figure: usize) -> Option<Summary> {
        let values: Vec<f64> = self.of_point(point).iter().filter_map(|r| *r.values.get(figure)?).collect();
        let spread = Spread::of(&values)?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let min = values.iter().copied().fold(f64::INFINITY, f64::min);
        let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Some(Summary { spread, mean, min, max })
    }

    /// The median of a figure at a point.
    pub(crate) fn median(&self, point: usize, figure: usize) -> Option<f64> {
        self.summary(point, figure).map(|s| s.spread.median)
    }

    /// The points that no other beats in both figures of the compromise, by their numbers; empty where none is asked.
    pub fn front(&self) -> Vec<usize> {
        let Some((a, b)) = self.pareto else { return Vec::new() };
        let better = |figure: usize, x: f64| if self.figures[figure].more_is_better() { x } else { -x };
        let at = |p: usize| Some((p, better(a, self.median(p, a)?), better(b, self.median(p, b)?)));
        front::of((0..self.points.len()).filter_map(at).collect())
    }

    /// How many runs could not be made, and the first reason.
    pub fn refused(&self) -> Option<(usize, &Run)> {
        let mut refused = self.runs.iter().filter(|r| r.refused.is_some());
        let first = refused.next()?;
        Some((1 + refused.count(), first))
    }

    /// The parameters that have several values, by their places; and the others in words.
    pub(crate) fn varied(&self) -> (Vec<usize>, String) {
        let same = |n: &usize| self.points.windows(2).all(|w| w[0].values[*n] == w[1].values[*n]);
        let (fixed, varied): (Vec<usize>, Vec<usize>) = (0..self.parameters.len()).partition(same);
        let word = |n: usize| format!("{}={}", self.parameters[n].path, self.points[0].values[n]);
        let fixed = if self.points.is_empty() { Vec::new() } else { fixed };
        (varied, fixed.into_iter().map(word).collect::<Vec<_>>().join(", "))
    }

    /// A point in words: `link.uplink.rate=10mbit seed=7`.
    pub fn point_text(&self, point: usize) -> String {
        let pairs = self.parameters.iter().zip(&self.points[point].values);
        pairs.map(|(p, v)| format!("{}={v}", p.path)).collect::<Vec<_>>().join(" ")
    }

    /// `sweep.json`.
    pub fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Json<'a> {
            format: u32,
            penstock: &'a str,
            title: &'a str,
            ground: &'a str,
            design: &'a str,
            seeds: &'a [u64],
            parameters: &'a [Parameter],
            figures: &'a [Figure],
            points: Vec<JsonPoint<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pareto: Option<Pareto<'a>>,
        }
        #[derive(Serialize)]
        struct JsonPoint<'a> {
            set: BTreeMap<&'a str, &'a str>,
            runs: usize,
            #[serde(skip_serializing_if = "Option::is_none")]
            refused: Option<&'a str>,
            expects_met: u64,
            expects_unmet: u64,
            figures: BTreeMap<&'a str, Summary>,
        }
        #[derive(Serialize)]
        struct Pareto<'a> {
            figures: [&'a str; 2],
            points: Vec<usize>,
        }
        let points = (0..self.points.len()).map(|p| {
            let runs = self.of_point(p);
            let figures = self.figures.iter().enumerate();
            JsonPoint {
                set: self
                    .parameters
                    .iter()
                    .zip(&self.points[p].values)
                    .map(|(q, v)| (&*q.path, &**v))
                    .collect(),
                runs: runs.iter().filter(|r| r.refused.is_none()).count(),
                refused: runs.iter().find_map(|r| r.refused.as_deref()),
                expects_met: runs.iter().map(|r| r.met).sum(),
                expects_unmet: runs.iter().map(|r| r.unmet).sum(),
                figures: figures
                    .filter_map(|(f, figure)| Some((&*figure.what, self.summary(p, f)?)))
                    .collect(),
            }
        });
        let json = Json {
            format: FORMAT,
            penstock: &self.penstock,
            title: &self.title,
            ground: &self.ground,
            design: &self.design,
            seeds: &self.seeds,
            parameters: &self.parameters,
            figures: &self.figures,
            points: points.collect(),
            pareto: self.pareto.map(|(a, b)| Pareto {
                figures: [&self.figures[a].what, &self.figures[b].what],
                points: self.front(),
            }),
        };
        serde_json::to_string_pretty(&json).unwrap_or_default() + "\n"
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Two rates, three delays, two seeds.
    pub(crate) fn sample() -> Sweep {
        let mut sweep = Sweep {
            penstock: "0".into(),
            title: "A line <1>".into(),
            ground: "sim".into(),
            design: "grid".into(),
            seeds: vec![1, 2],
            parameters: vec![
                Parameter { path: "link.uplink.rate".into(), unit: Some("bit_s") },
                Parameter { path: "link.uplink.delay".into(), unit: Some("ms") },
            ],
            figures: vec![
                Figure { what: "backup throughput".into(), unit: "bit/s", shown: true, more: None },
                Figure { what: "call owd p99".into(), unit: "ms", shown: true, more: None },
                Figure { what: "call lost".into(), unit: "", shown: false, more: None },
            ],
            pareto: Some((0, 1)),
            points: Vec::new(),
            runs: Vec::new(),
        };
        for (rate, bits) in [("10mbit", 1e7), ("20mbit", 2e7)] {
            for delay in [1.0, 5.0, 10.0] {
                let point = sweep.points.len();
                let values = vec![rate.to_owned(), format!("{delay}ms")];
                sweep.points.push(Point { values, numbers: vec![Some(bits), Some(delay)] });
                for seed in [1, 2] {
                    let values = vec![Some(bits * 0.9), Some(delay * 2.0 + bits / 1e6 + seed as f64), None];
                    sweep.runs.push(Run { point, seed, values, met: 1, ..Run::default() });
                }
            }
        }
        sweep
    }

    #[test]
    fn points_are_summed_up() {
        let sweep = sample();
        let s = sweep.summary(0, 1).unwrap();
        assert_eq!((s.min, s.spread.median, s.max, s.mean, s.spread.runs), (13.0, 13.5, 14.0, 13.5, 2));
        assert_eq!(sweep.summary(0, 2), None);
        // Of each rate the least delay.
        assert_eq!(sweep.front(), [0, 3]);
        let json: serde_json::Value = serde_json::from_str(&sweep.to_json()).unwrap();
        assert_eq!(json["points"][3]["set"]["link.uplink.rate"], "20mbit");
        assert_eq!(json["points"][3]["figures"]["call owd p99"]["median"], 23.5);
        assert_eq!(json["pareto"]["points"], serde_json::json!([0, 3]));
        assert_eq!(sweep.point_text(3), "link.uplink.rate=20mbit link.uplink.delay=1ms");
    }
}
