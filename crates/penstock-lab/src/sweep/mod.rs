//! Many runs of one experiment: keys of its file are varied, and each point is run with the same seeds.
//!
//! [`Plan::new`] reads and checks everything, [`make`] runs what has no result yet. Results depend on the points and seeds alone: how many runs are made at a
//! time, and how often the work was broken off, changes no byte of what is written at the end.

mod apart;
mod design;
mod edit;
mod plan;
mod store;
mod value;

pub use apart::{Gathering, made_apart};
pub use edit::change_link;
pub(crate) use plan::figure;
pub use plan::{Plan, Wishes, usual_figures};

use crate::experiment::{Experiment, Threads};
use crate::many;
use crate::run::{self, Ground, Options, Outcome};
use penstock_measure::sweep::{Figure, Point, Run, Sweep};
use penstock_model::Diagnostic;
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use store::Id;

pub(crate) use store::Store;

/// How a sweep is made.
pub struct Making<'a> {
    /// Where the runs are made.
    pub ground: Ground,
    /// Runs at a time.
    pub jobs: usize,
    /// The sweep's folder.
    pub folder: &'a Path,
    /// Whether each run's own folder is written too.
    pub folders: bool,
    /// Which program makes the runs: results of another are not taken for its own.
    pub program: &'a str,
    /// Is told of how many runs there are results, and how many of these were made just now.
    pub told: &'a (dyn Fn(usize, usize) + Sync),
    /// Is told of what cannot work, once each.
    pub warn: &'a (dyn Fn(&Diagnostic) + Sync),
    /// What is done to each experiment before it is run.
    pub prepare: &'a (dyn Fn(Experiment) -> Experiment + Sync),
}

/// Makes every run of a plan that has no result in the folder, and writes `results.parquet`, `sweep.json` and `report.html`.
///
/// # Errors
/// A sentence: the folder is not a sweep's, or cannot be written; or the ground lacks something. What was run stays, and is not run again.
pub fn make(plan: &Plan, making: &Making<'_>) -> Result<Sweep, String> {
    let store = Store::open(making.folder)?;
    let runs = Runner::new(making, &store).points(plan, 0..plan.points.len())?;
    let sweep = whole(plan, making.ground, runs);
    written(&store, &sweep)?;
    Ok(sweep)
}

/// Writes the files of a whole sweep.
fn written(store: &Store, sweep: &Sweep) -> Result<(), String> {
    store.write("results.parquet", sweep.to_parquet().map_err(|e| e.to_string())?)?;
    store.write("sweep.json", sweep.to_json())?;
    store.write("report.html", penstock_measure::sweep::html(sweep))
}

/// Makes the runs of one of so many parts, e.g. `(2, 8)`, that have no result in the folder, and writes nothing else: who has the results of all parts in one folder makes the
/// whole by [`make`]. How many runs the part has.
///
/// # Errors
/// As of [`make`].
pub fn make_part(plan: &Plan, making: &Making<'_>, part: (usize, usize)) -> Result<usize, String> {
    let store = Store::open(making.folder)?;
    let mut runner = Runner::new(making, &store);
    runner.part = Some(part);
    runner.points(plan, 0..plan.points.len()).map(|runs| runs.len())
}

/// Who makes the runs of points, and what was told so far.
pub(crate) struct Runner<'a> {
    making: &'a Making<'a>,
    store: &'a Store,
    /// Runs with a result, and those of them made just now, of earlier calls.
    done: (usize, usize),
    warned: Mutex<Vec<String>>,
    /// Only this part of the runs, from 1, of so many.
    part: Option<(usize, usize)>,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(making: &'a Making<'a>, store: &'a Store) -> Runner<'a> {
        Runner { making, store, done: (0, 0), warned: Mutex::default(), part: None }
    }

    /// Makes every run of these points that has no result: those of the first point in the order of the seeds, those of the second, and so on.
    pub(crate) fn points(&mut self, plan: &Plan, range: Range<usize>) -> Result<Vec<Run>, String> {
        let (points, seeds) = (range.len(), plan.seeds.len());
        let sets: Vec<Vec<(String, String)>> =
            plan.points[range.clone()].iter().map(|p| set_of(plan, p)).collect();
        let (stop, made) = (AtomicBool::new(false), AtomicUsize::new(0));
        let warn = |warning: &Diagnostic| {
            let mut warned = self.warned.lock().expect("nobody panics while it is held");
            if !warned.contains(&warning.message) {
                warned.push(warning.message.clone());
                (self.making.warn)(warning);
            }
        };
        // All points with the first seed, then with the second: what is broken off early has seen all points.
        let work = |n: usize| -> Option<Result<Run, String>> {
            let elsewhere = self.part.is_some_and(|(own, of)| n % of + 1 != own);
            if elsewhere || stop.load(Ordering::Relaxed) {
                return None;
            }
            let (point, seed) = (n % points, plan.seeds[n / points]);
            let done = one(plan, self.making, self.store, &sets[point], range.start + point, seed, &warn);
            if done.is_err() {
                stop.store(true, Ordering::Relaxed);
            }
            Some(done.map(|(run, new)| {
                made.fetch_add(usize::from(new), Ordering::Relaxed);
                run
            }))
        };
        let before = self.done;
        let told = |done: usize| (self.making.told)(before.0 + done, before.1 + made.load(Ordering::Relaxed));
        let mut runs = Vec::with_capacity(points * seeds);
        let mut stopped = None;
        for run in many::each(points * seeds, self.making.jobs, &told, &work).into_iter().flatten() {
            match run {
                Ok(run) => runs.push(run),
                Err(why) => stopped = stopped.or(Some(why)),
            }
        }
        if let Some(why) = stopped {
            return Err(why);
        }
        self.done = (before.0 + points * seeds, before.1 + made.into_inner());
        runs.sort_by_key(|r| (r.point, r.seed.wrapping_sub(plan.seeds[0])));
        Ok(runs)
    }
}

/// The result of one run, and whether it was made just now.
fn one(
    plan: &Plan,
    making: &Making<'_>,
    store: &Store,
    set: &[(String, String)],
    point: usize,
    seed: u64,
    warn: &dyn Fn(&Diagnostic),
) -> Result<(Run, bool), String> {
    let experiment = plan.experiment(point).map_err(|faults| told(&faults))?;
    let experiment = (making.prepare)(experiment).on_threads(Threads::One);
    let key = store::key(&experiment, &how(making.program, making.ground, seed));
    let id = Id { key, set, seed };
    if let Some(run) = store.find(&id, point, &plan.figures, making.folders) {
        return Ok((run, false));
    }
    let mut options = Options { seed: Some(seed), progress: &mut |_| {}, warn: &mut |w| warn(w) };
    let (run, outcome) = measured(plan, making.ground, &experiment, point, &mut options)?;
    if let Some(outcome) = outcome.filter(|_| making.folders) {
        outcome.write(&store.run_folder(&id))?;
    }
    store.put(&id, &run, &plan.figures, making.folders)?;
    // As it will be read when it is found: the same bytes, whoever ran it.
    Ok((store.find(&id, point, &plan.figures, false).unwrap_or(run), true))
}

/// Makes one run: what it measured, and all of it where there was a run.
fn measured(
    plan: &Plan,
    ground: Ground,
    experiment: &Experiment,
    point: usize,
    options: &mut Options<'_>,
) -> Result<(Run, Option<Outcome>), String> {
    let seed = options.seed.unwrap_or(experiment.seed);
    match run::run_on(ground, experiment, options) {
        Ok(outcome) => {
            let record = &outcome.record;
            let value = |f: &Figure| {
                let (measure, _) = figure(experiment, &f.what).ok()?;
                run::measure(&measure, record).filter(|x| x.is_finite())
            };
            let met = record.expects.iter().filter(|e| e.ok).count() as u64;
            let unmet = record.expects.len() as u64 - met;
            let values = plan.figures.iter().map(value).collect();
            Ok((Run { point, seed, refused: None, values, met, unmet }, Some(outcome)))
        }
        // On the simulator it is the point that cannot be run: the others can.
        Err(faults) if ground == Ground::Sim => {
            let refused = Some(told(&faults));
            Ok((Run { point, seed, refused, values: vec![None; plan.figures.len()], ..Run::default() }, None))
        }
        Err(faults) => Err(told(&faults)),
    }
}

fn told(faults: &[Diagnostic]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// What a result depends on beside the experiment.
fn how(program: &str, ground: Ground, seed: u64) -> String {
    format!("{program} {} {seed}", ground.name())
}

/// What the parameters are set to at a point.
fn set_of(plan: &Plan, point: &Point) -> Vec<(String, String)> {
    plan.parameters.iter().map(|q| q.path.clone()).zip(point.values.iter().cloned()).collect()
}

/// The results of a plan; figures that no run has are left out.
pub(crate) fn whole(plan: &Plan, ground: Ground, mut runs: Vec<Run>) -> Sweep {
    let has = |n: &usize| runs.iter().any(|r| r.values.get(*n).copied().flatten().is_some());
    let kept: Vec<usize> = (0..plan.figures.len()).filter(has).collect();
    for run in &mut runs {
        run.values = kept.iter().map(|&n| run.values.get(n).copied().flatten()).collect();
    }
    let place = |n: usize| kept.iter().position(|&k| k == n);
    Sweep {
        penstock: env!("CARGO_PKG_VERSION").to_owned(),
        title: plan.title.clone(),
        ground: ground.name().to_owned(),
        design: plan.design.to_owned(),
        seeds: plan.seeds.clone(),
        parameters: plan.parameters.clone(),
        figures: kept.iter().map(|&n| plan.figures[n].clone()).collect(),
        pareto: plan.pareto.and_then(|(a, b)| Some((place(a)?, place(b)?))),
        points: plan.points.clone(),
        runs,
    }
}

#[cfg(test)]
mod tests;
