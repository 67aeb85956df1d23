//! Runs of a sweep that are made apart, in other processes or on other machines: each gives a text, and whoever gathers the texts has the same results, byte for
//! byte, as [`make`](super::make) on one machine.

use super::store::{self, Id, Store};
use super::{Plan, how, measured, set_of, told, whole, written};
use crate::experiment::Threads;
use crate::run::{Ground, Options};
use penstock_measure::sweep::Sweep;
use penstock_model::Diagnostic;
use std::path::Path;

/// The point and the seed of a run by its number, below the number of points times that of seeds: all points with the first seed come first, then all with the second.
fn place(plan: &Plan, number: usize) -> Result<(usize, u64), String> {
    let points = plan.points.len();
    match number < points * plan.seeds.len() {
        true => Ok((number % points, plan.seeds[number / points])),
        false => Err(format!("there is no run {number}; there are {}", points * plan.seeds.len())),
    }
}

/// Makes the run of this number; its result as text, for [`Gathering::keep`]. `progress` is told the share of it that is done, `warn` what cannot work.
///
/// # Errors
/// There is no such run, or the ground lacks something. A point that the simulator refuses is a result.
pub fn made_apart(
    plan: &Plan,
    ground: Ground,
    number: usize,
    progress: &mut dyn FnMut(f64),
    warn: &mut dyn FnMut(&Diagnostic),
) -> Result<String, String> {
    let (point, seed) = place(plan, number)?;
    let experiment = plan.experiment(point).map_err(|faults| told(&faults))?.on_threads(Threads::One);
    let mut options = Options { seed: Some(seed), progress, warn };
    let (run, _) = measured(plan, ground, &experiment, point, &mut options)?;
    store::said(&set_of(plan, &plan.points[point]), &run, &plan.figures)
}

/// A sweep's folder while results come in.
pub struct Gathering {
    store: Store,
    ground: Ground,
    program: String,
}

impl Gathering {
    /// Opens the folder, or makes it. `program`: which program makes the runs; results of another are not taken for its own.
    ///
    /// # Errors
    /// It holds what no sweep wrote, another sweep is at work there, or it cannot be written.
    pub fn open(folder: &Path, ground: Ground, program: &str) -> Result<Gathering, String> {
        Ok(Gathering { store: Store::open(folder)?, ground, program: program.to_owned() })
    }

    fn at<T>(
        &self,
        plan: &Plan,
        number: usize,
        what: impl FnOnce(&Store, &Id<'_>, usize) -> T,
    ) -> Result<T, String> {
        let (point, seed) = place(plan, number)?;
        let experiment = plan.experiment(point).map_err(|faults| told(&faults))?.on_threads(Threads::One);
        let key = store::key(&experiment, &how(&self.program, self.ground, seed));
        let set = set_of(plan, &plan.points[point]);
        Ok(what(&self.store, &Id { key, set: &set, seed }, point))
    }

    /// The numbers of the runs that have no result yet.
    ///
    /// # Errors
    /// A point cannot be read.
    pub fn missing(&self, plan: &Plan) -> Result<Vec<usize>, String> {
        let has = |store: &Store, id: &Id<'_>, point| store.find(id, point, &plan.figures, false).is_some();
        let mut missing = Vec::new();
        for number in 0..plan.points.len() * plan.seeds.len() {
            if !self.at(plan, number, has)? {
                missing.push(number);
            }
        }
        Ok(missing)
    }

    /// Keeps the result of a run.
    ///
    /// # Errors
    /// The text is not the result of that run, or it cannot be written.
    pub fn keep(&self, plan: &Plan, number: usize, text: &str) -> Result<(), String> {
        self.at(plan, number, |store, id, _| store.put_said(id, text, &plan.figures))?
    }

    /// Writes `results.parquet`, `sweep.json` and `report.html` from the results of all runs.
    ///
    /// # Errors
    /// A run has no result, or a file cannot be written.
    pub fn whole(&self, plan: &Plan) -> Result<Sweep, String> {
        let found = |store: &Store, id: &Id<'_>, point| store.find(id, point, &plan.figures, false);
        let (points, seeds) = (plan.points.len(), plan.seeds.len());
        let mut runs = Vec::with_capacity(points * seeds);
        // Those of the first point in the order of the seeds, those of the second, and so on.
        for number in (0..points).flat_map(|point| (0..seeds).map(move |seed| seed * points + point)) {
            let run = self.at(plan, number, found)?;
            runs.push(run.ok_or_else(|| format!("run {number} has no result"))?);
        }
        let sweep = whole(plan, self.ground, runs);
        written(&self.store, &sweep)?;
        Ok(sweep)
    }
}
