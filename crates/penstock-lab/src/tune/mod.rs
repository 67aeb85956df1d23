//! The best values of an experiment's parameters: goals that must be met, one figure that is maximized or minimized.
//!
//! [`Tuning::new`] reads and checks everything, [`Tuning::search`] runs. What is tried next hangs on the results and the first seed alone, and results lie in the folder as
//! those of a sweep do: a search that was broken off goes the same way again, and runs nothing twice.

mod search;

use crate::experiment::{self, Bounds, Experiment, Loader, Source};
use crate::sweep::{self, Making, Plan, Runner, Store};
use penstock_measure::sweep::Run;
use penstock_measure::tune::{Goal, Probe, Tune};
use penstock_model::Diagnostic;
use search::{Loss, ROUND, Search, Tried};

/// What somebody asks for.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Wishes {
    /// What is varied: `link.uplink.rate=1mbit..20mbit`, `$RATE=1mbit..20mbit`; beside the table `[sweep.set]` of the file.
    pub set: Vec<String>,
    /// What must hold, in the words of expectations: `call owd p99 < 20ms`. Empty: the file's expectations.
    pub goals: Vec<String>,
    /// The figure that is sought.
    pub objective: String,
    /// Whether more of it is better.
    pub more: bool,
    /// How many points are tried.
    pub points: u64,
    /// How many seeds every point is run with.
    pub seeds: Option<u64>,
    /// The first seed.
    pub seed: Option<u64>,
}

/// A search, ready to be begun.
#[derive(Clone, Debug)]
pub struct Tuning {
    plan: Plan,
    goals: Vec<(Goal, Bounds)>,
    objective: String,
    more: bool,
    most: usize,
    /// How many points of `most` show what matters around the best.
    probes: usize,
}

/// How far a parameter is moved to see whether it matters, as a share of its range.
const STEP: f64 = 0.1;
/// Most other values of a parameter that are tried for that.
const OTHERS: usize = 4;
/// How often another place is drawn where one was tried already.
const AGAIN: usize = 50;
/// By how much a goal is missed at a point that has no such figure.
const ABSENT: f64 = 1e6;

impl Tuning {
    /// Reads the experiment, its parameters, the goals and what is sought.
    ///
    /// # Errors
    /// All faults, each with its place.
    pub fn new(
        text: &str,
        name: &str,
        loader: Loader<'_>,
        wishes: &Wishes,
    ) -> Result<Tuning, Vec<Diagnostic>> {
        let plain = experiment::parse_with(text, name, loader)?;
        let mut faults = Vec::new();
        let flag = if wishes.more { "--maximize" } else { "--minimize" };
        if let Err((message, help)) = sweep::figure(&plain, &wishes.objective) {
            let source = Source { name: flag.to_owned(), text: wishes.objective.clone() };
            faults.push(source.fault(0..wishes.objective.len(), message, help));
        }
        let mut goals = Vec::new();
        for text in &wishes.goals {
            match goal(&plain, text) {
                Ok(goal) => goals.push(goal),
                Err(fault) => faults.push(fault),
            }
        }
        if wishes.goals.is_empty() {
            goals.extend(plain.expects.iter().map(|e| {
                (Goal { what: e.what.clone(), value: e.value.clone(), more: direction(&e.range) }, e.range)
            }));
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut figures = vec![wishes.objective.clone()];
        for (goal, _) in &goals {
            if !figures.contains(&goal.what) {
                figures.push(goal.what.clone());
            }
        }
        let (seeds, seed) = (wishes.seeds, wishes.seed);
        let wanted =
            sweep::Wishes { set: wishes.set.clone(), seeds, seed, figures, ..sweep::Wishes::default() };
        let plan = Plan::open(text, name, loader, &wanted)?;
        let others = |p: usize| plan.choices(p).map_or(2, |n| n.saturating_sub(1).min(OTHERS));
        let probes: usize = (0..plan.parameters.len()).map(others).sum();
        let most = wishes.points as usize;
        if most < probes + ROUND {
            let message =
                format!("--points {most}: these parameters need {} points at least", probes + ROUND);
            let help = "take more points, or fewer parameters";
            return Err(vec![Diagnostic::error(message).help(help)]);
        }
        let (objective, more) = (wishes.objective.clone(), wishes.more);
        Ok(Tuning { plan, goals, objective, more, most, probes })
    }

    /// The largest of the experiments, in memory.
    pub fn largest(&self) -> &Experiment {
        &self.plan.largest
    }

    /// The experiment's title.
    pub fn title(&self) -> &str {
        &self.plan.title
    }

    /// How many runs there are at most.
    pub fn runs(&self) -> usize {
        self.most * self.plan.seeds.len()
    }

    /// Searches, and writes `results.parquet`, `tune.json` and `report.html`.
    ///
    /// # Errors
    /// A sentence: the folder is not a sweep's, or cannot be written; or the ground lacks something. What was run stays, and is not run again.
    pub fn search(mut self, making: &Making<'_>) -> Result<Tune, String> {
        let store = Store::open(making.folder)?;
        let mut runner = Runner::new(making, &store);
        let axes = (0..self.plan.parameters.len()).map(|p| self.plan.choices(p)).collect();
        let search = Search { axes, seed: self.plan.seeds[0] };
        let (mut tried, mut runs): (Vec<Tried>, Vec<Run>) = (Vec::new(), Vec::new());
        let wanted = self.most - self.probes;
        let mut round = 0;
        while tried.len() < wanted {
            let places = match round {
                0 => search.first(wanted),
                _ => search.next(&tried, round),
            };
            let mut new = Vec::new();
            for (n, mut at) in places.into_iter().enumerate() {
                let mut again = n * AGAIN;
                while tried.len() + new.len() < wanted {
                    if self.plan.add(&at).1 {
                        new.push(at);
                        break;
                    }
                    again += 1;
                    if again == (n + 1) * AGAIN {
                        break;
                    }
                    at = search.anywhere(round, again);
                }
            }
            if new.is_empty() {
                // Few values: all of them were tried.
                break;
            }
            self.made(&mut runner, new, &mut tried, &mut runs)?;
            round += 1;
        }
        let centre = best(&tried);
        let mut probes = Vec::new();
        if let Some(centre) = centre {
            let mut new = Vec::new();
            for (parameter, place) in self.around(&search, &tried[centre].at) {
                let (point, is_new) = self.plan.add(&place);
                if point != centre {
                    probes.push(Probe { parameter, point });
                }
                if is_new {
                    new.push(place);
                }
            }
            self.made(&mut runner, new, &mut tried, &mut runs)?;
        }
        let mut sweep = sweep::whole(&self.plan, making.ground, runs);
        for figure in &mut sweep.figures {
            let goal = self.goals.iter().find(|(g, _)| g.what == figure.what);
            figure.more = goal.and_then(|(g, _)| g.more);
            if figure.what == self.objective {
                figure.more = Some(self.more);
            }
        }
        let place = |what: &str| sweep.figures.iter().position(|f| f.what == what);
        let other = self.goals.iter().find(|(g, _)| g.more.is_some() && g.what != self.objective);
        sweep.pareto = place(&self.objective).zip(other.and_then(|(g, _)| place(&g.what)));
        let tune = Tune {
            best: best(&tried),
            short: tried.iter().map(|t| t.loss.short).collect(),
            goals: self.goals.into_iter().map(|g| g.0).collect(),
            objective: self.objective,
            more: self.more,
            centre,
            probes,
            sweep,
        };
        store.write("results.parquet", tune.sweep.to_parquet().map_err(|e| e.to_string())?)?;
        store.write("tune.json", tune.to_json())?;
        store.write("report.html", penstock_measure::tune::html(&tune))?;
        Ok(tune)
    }

    /// Runs the points that were added last, and judges them.
    fn made(
        &self,
        runner: &mut Runner<'_>,
        new: Vec<Vec<f64>>,
        tried: &mut Vec<Tried>,
        runs: &mut Vec<Run>,
    ) -> Result<(), String> {
        let first = tried.len();
        let made = runner.points(&self.plan, first..first + new.len())?;
        for (n, at) in new.into_iter().enumerate() {
            let own = &made[n * self.plan.seeds.len()..][..self.plan.seeds.len()];
            tried.push(Tried { at, loss: self.loss(own) });
        }
        runs.extend(made);
        Ok(())
    }

    /// How bad a point is: each goal in the seed that is worst for it, what is sought in the median.
    fn loss(&self, runs: &[Run]) -> Loss {
        let figure = |what: &str| self.plan.figures.iter().position(|f| f.what == what);
        let values = |what: &str| -> Vec<Option<f64>> {
            let at = figure(what);
            runs.iter().map(|r| r.values.get(at?).copied().flatten()).collect()
        };
        if runs.iter().any(|r| r.refused.is_some()) {
            return Loss::none();
        }
        let mut sought: Vec<f64> = values(&self.objective).into_iter().flatten().collect();
        if sought.len() < runs.len() {
            return Loss::none();
        }
        sought.sort_by(f64::total_cmp);
        let value = penstock_measure::quantile::of_sorted(&sought, 0.5);
        let misses = self.goals.iter().map(|(goal, bounds)| {
            let each = values(&goal.what).into_iter().map(|x| x.map_or(ABSENT, |x| miss(bounds, x)));
            each.fold(f64::NEG_INFINITY, f64::max)
        });
        Loss::new(misses.collect(), if self.more { -value } else { value })
    }

    /// The places around the best: each parameter alone, a step down and up, or its other values.
    fn around(&self, search: &Search, centre: &[f64]) -> Vec<(usize, Vec<f64>)> {
        let mut all = Vec::new();
        for (n, axis) in search.axes.iter().enumerate() {
            let shares: Vec<f64> = match axis {
                None => vec![(centre[n] - STEP).max(0.0), (centre[n] + STEP).min(1.0)],
                Some(count) => {
                    let own = (centre[n] * *count as f64) as usize;
                    // Those next to it in the list, by turns.
                    let mut others: Vec<usize> = (0..*count).filter(|&i| i != own).collect();
                    others.sort_by_key(|i| i.abs_diff(own));
                    others.truncate(OTHERS);
                    others.sort_unstable();
                    others.into_iter().map(|i| (i as f64 + 0.5) / *count as f64).collect()
                }
            };
            for share in shares {
                let mut at = centre.to_vec();
                at[n] = share;
                all.push((n, at));
            }
        }
        all
    }
}

/// The point that is best, the first of equals; `None`: none could be run.
fn best(tried: &[Tried]) -> Option<usize> {
    let known = tried.iter().enumerate().filter(|(_, t)| t.loss.short.is_finite());
    known.min_by(|a, b| a.1.loss.order(&b.1.loss)).map(|(n, _)| n)
}

/// By how much a value misses its bounds, as a share of them; 0 and less: it lies within.
fn miss(bounds: &Bounds, x: f64) -> f64 {
    let scale = |bound: f64| if bound == 0.0 { 1.0 } else { bound.abs() };
    let low = if bounds.low.is_finite() { (bounds.low - x) / scale(bounds.low) } else { f64::NEG_INFINITY };
    let high =
        if bounds.high.is_finite() { (x - bounds.high) / scale(bounds.high) } else { f64::NEG_INFINITY };
    let most = low.max(high);
    match bounds.hold(x) {
        // What stands at the very bound and must not is out by a hair.
        false => most.max(f64::MIN_POSITIVE),
        true => most,
    }
}

/// Whether more of a figure is better for a goal; `None`: it must lie between.
fn direction(bounds: &Bounds) -> Option<bool> {
    match (bounds.low.is_finite(), bounds.high.is_finite()) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// A goal of the command line: `call owd p99 < 20ms`, `backup goodput = 5mbit..8mbit`.
fn goal(experiment: &Experiment, text: &str) -> Result<(Goal, Bounds), Diagnostic> {
    let source = Source { name: "--goal".to_owned(), text: text.to_owned() };
    let Some(at) = text.find(['<', '>', '=']) else {
        let help = "write a figure and what it must be: call owd p99 < 20ms";
        return Err(source.fault(0..text.len(), "there is no <, > or =", help));
    };
    let what = text[..at].split_whitespace().collect::<Vec<_>>().join(" ");
    let value: String = text[at..].chars().filter(|c| !c.is_whitespace()).collect();
    let value = value.strip_prefix('=').unwrap_or(&value);
    if let Err((message, help)) = sweep::figure(experiment, &what) {
        return Err(source.fault(0..at, message, help));
    }
    let (_, _, bounds) = experiment
        .goal(&what, value)
        .map_err(|(message, help)| source.fault(at..text.len(), message, help))?;
    Ok((Goal { what, value: value.to_owned(), more: direction(&bounds) }, bounds))
}

#[cfg(test)]
mod tests;
