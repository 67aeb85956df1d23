//! Many runs of experiments: settings by seeds by experiments, as many at a time as there are processors.

use super::Matrix;
use super::parameters::Setting;
use penstock_lab::experiment::Experiment;
use penstock_lab::many::{each, processors};
use penstock_lab::run::{self, Options, Outcome};
use penstock_model::Diagnostic;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// One run to be made.
pub(super) struct Job<'a> {
    /// What.
    pub(super) experiment: &'a Experiment,
    /// Whether it is of the study's own setting.
    pub(super) stated: bool,
}

/// What the runs of one setting and seed kept, by experiment.
pub(super) type Kept<T> = BTreeMap<String, Arc<T>>;

/// Reads an experiment with a parameter set, and says whether that changed its text.
pub(super) type Read<'a> = &'a (dyn Fn(&str, &Setting) -> Result<(Experiment, bool), Vec<Diagnostic>> + Sync);

/// What is to be run and what becomes of it.
pub(super) struct Plan<'a, T, R> {
    /// Experiments by name.
    pub(super) names: Vec<&'a str>,
    /// The settings; the first is the study's own.
    pub(super) settings: &'a [Setting],
    /// Seeds 1 to this one.
    pub(super) seeds: u64,
    /// How an experiment is read.
    pub(super) read: Read<'a>,
    /// What is kept of a run.
    pub(super) keep: &'a (dyn Fn(&Job<'_>, &Outcome) -> T + Sync),
    /// What the runs of one seed give together. It is asked for as soon as they are made, and they are dropped then.
    pub(super) judge: &'a (dyn Fn(usize, u64, &Kept<T>) -> R + Sync),
}

/// The runs of a seed under a setting: those that are made, and how many are wanting.
struct Pending<T> {
    kept: Kept<T>,
    wanting: usize,
}

impl<T: Send + Sync, R: Send> Plan<'_, T, R> {
    /// Makes all runs; what they give by setting and seed. Which processor made which run changes nothing.
    ///
    /// An experiment that a setting does not touch is not run again: its run under the study's own setting stands.
    ///
    /// # Errors
    /// Those of the first experiment that cannot be read or run; a folder that cannot be written.
    pub(super) fn run(&self, ask: &Matrix<'_>) -> Result<Vec<Vec<R>>, Vec<Diagnostic>> {
        let mut experiments: Vec<Vec<(Experiment, bool)>> = Vec::new();
        for setting in self.settings {
            let mut all = Vec::new();
            for name in &self.names {
                let (mut experiment, touched) = (self.read)(name, setting)?;
                if let Some(duration) = ask.duration {
                    experiment.duration = duration.min(experiment.duration);
                }
                all.push((experiment, touched));
            }
            experiments.push(all);
        }
        // By seeds, so that few runs wait for others; the study's own setting before those that lean on its runs.
        let mut jobs = Vec::new();
        for seed in 1..=self.seeds {
            for (at, all) in experiments.iter().enumerate() {
                jobs.extend((0..all.len()).filter(|n| at == 0 || all[*n].1).map(|n| (seed, at, n)));
            }
        }
        let wanting = |at: usize| experiments[at].iter().filter(|(_, touched)| at == 0 || *touched).count();
        let pending: Vec<Vec<Mutex<Pending<T>>>> = (0..self.seeds)
            .map(|_| {
                let one = |at| Mutex::new(Pending { kept: Kept::new(), wanting: wanting(at) });
                (0..self.settings.len()).map(one).collect()
            })
            .collect();
        let answers: Vec<Vec<Mutex<Option<R>>>> =
            self.settings.iter().map(|_| (0..self.seeds).map(|_| Mutex::new(None)).collect()).collect();
        let answer = |at: usize, seed: u64, kept: &Kept<T>| {
            let given = (self.judge)(at, seed, kept);
            *answers[at][seed as usize - 1].lock().expect("no judge panics while it holds the lock") =
                Some(given);
        };
        let work = |job: usize| -> Result<(), Vec<Diagnostic>> {
            let (seed, at, n) = jobs[job];
            let job = Job { experiment: &experiments[at][n].0, stated: at == 0 };
            let mut options = Options { seed: Some(seed), progress: &mut |_| {}, warn: &mut |_| {} };
            let outcome = run::run(job.experiment, &mut options)?;
            if let Some(folder) = ask.out.filter(|_| seed == 1 && job.stated) {
                std::fs::create_dir_all(folder)
                    .map_err(|e| e.to_string())
                    .and_then(|()| outcome.write(&folder.join(self.names[n])))
                    .map_err(|e| vec![Diagnostic::error(e)])?;
            }
            let kept = Arc::new((self.keep)(&job, &outcome));
            drop(outcome);
            let locked =
                |at: usize| pending[seed as usize - 1][at].lock().expect("nothing panics in between");
            let mut own = locked(at);
            own.kept.insert(self.names[n].to_owned(), kept);
            own.wanting -= 1;
            if own.wanting > 0 || self.settings.len() > 1 {
                return Ok(());
            }
            let kept = std::mem::take(&mut own.kept);
            drop(own);
            answer(at, seed, &kept);
            Ok(())
        };
        let told = |done| (ask.progress)(done, jobs.len());
        let made = each(jobs.len(), ask.jobs.unwrap_or_else(processors), &told, &work);
        made.into_iter().collect::<Result<Vec<()>, _>>()?;
        if self.settings.len() > 1 {
            for (seed, all) in (1..=self.seeds).zip(pending) {
                let mut all = all.into_iter().map(|p| p.into_inner().expect("all runs are made").kept);
                let own = all.next().unwrap_or_default();
                answer(0, seed, &own);
                for (at, mut kept) in (1..).zip(all) {
                    for (name, run) in &own {
                        kept.entry(name.clone()).or_insert_with(|| Arc::clone(run));
                    }
                    answer(at, seed, &kept);
                }
            }
        }
        let all = answers.into_iter().map(|seeds| {
            let given = |a: Mutex<Option<R>>| a.into_inner().ok().flatten().expect("each seed was judged");
            seeds.into_iter().map(given).collect()
        });
        Ok(all.collect())
    }
}
